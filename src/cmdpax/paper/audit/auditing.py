"""`audit`: the paper's statements on a model, with the constants of their proofs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from cmdpax.checks import real_number, require_count, require_positive, require_share
from cmdpax.errors import ParameterError
from cmdpax.jax_context import cast
from cmdpax.learners import Named, as_algorithm
from cmdpax.learners.optimism import Optimism
from cmdpax.model.cmdp import CMDP
from cmdpax.model.validation import validate
from cmdpax.paper.audit import convergence, duality
from cmdpax.paper.audit.closed_form import closed_form_rows
from cmdpax.paper.audit.iterating import worst_once, worst_steps
from cmdpax.paper.audit.last_iterate import last_iterate_rows
from cmdpax.paper.audit.online import online_rows
from cmdpax.paper.audit.problem import Problem, Scheme, applies, library_scheme, make_problem, unmet
from cmdpax.paper.audit.schemes import CLOSED_FORM, LAST_ITERATE, LIBRARY
from cmdpax.paper.audit.schemes import reason_against_scheme as reason_against
from cmdpax.paper.audit.statement import Row, Statement, dismissed, judge
from cmdpax.schemes.hyperparameters import choose_hyperparameters
from cmdpax.schemes.registry import as_scheme

ALGORITHM = "regularized-primal-dual"
"""The learner that the statements on learning are about."""
STATEMENTS: tuple[Statement, ...] = (*duality.STEPS, *convergence.STEPS)
"""The statements that are checked at every iteration; `audit` takes others too."""


class Audit(NamedTuple):
    """The outcome of an audit.

    Attributes:
        rows: one per statement.
        potentials: Φ_1, …, Φ_T.
        problem: the optimum, saddle point and parameters that were used.
    """

    rows: list[Row]
    potentials: np.ndarray
    problem: Problem

    def row(self, name: str) -> Row:
        """Find the row of a statement."""
        for row in self.rows:
            if row.name == name:
                return row
        raise ParameterError(f"the audit has no statement {name!r}.")

    def verdicts(self) -> dict[str, str]:
        """Give the verdicts by name."""
        return {row.name: row.verdict for row in self.rows}


def audit(
    cmdp: CMDP,
    *,
    num_iterations: int = 1000,
    step_size: float = 0.1,
    regularization: float = 0.05,
    max_multiplier: float | None = None,
    slater_gap: float | None = None,
    accuracy: float = 0.1,
    statements: Sequence[Statement] = STATEMENTS,
    scheme: str | Scheme = library_scheme,
    online: bool = False,
    num_episodes: int = 300,
    seeds: int = 20,
    optimism: Optimism | None = None,
    learner: Named = ALGORITHM,
) -> Audit:
    """Check the paper's statements on a model.

    Args:
        cmdp: the model.
        num_iterations: T of the scheme with the model known.
        step_size: η.
        regularization: τ > 0.
        max_multiplier: λ_max; None is max(6, H/Ξ).
        slater_gap: Ξ; None computes it.
        accuracy: ε of the last-iterate theorem.
        statements: what to check at every iteration: `cmdpax.paper.audit.STATEMENTS`, and your own.
        scheme: what is iterated: one of `cmdpax.scheme_names()`, or a function of your own from
            (problem, log π_k, λ_k) to (log π_{k+1}, λ_{k+1}). Rows that are not about a scheme say
            why.
        online: check the statements on learning too, with the theory's bonuses.
        num_episodes: K of the online part.
        seeds: how many runs the online part has.
        optimism: the bonuses of the online part; None is `Optimism.theory(num_episodes)`.
        learner: the learner of the online part, Algorithm 1 by default: one of
            `cmdpax.algorithms()`, or a factory of your own. Rows that do not apply to a learner
            that plans say why.

    Examples:
        >>> import cmdpax
        >>> found = cmdpax.audit(cmdpax.environments.make("bandit"), num_iterations=100)
        >>> found.row("three-point identity").verdict
        'holds'
    """
    validate(cmdp)
    if cmdp.available is not None:
        raise ParameterError(
            "the paper's statements are about models in which every action is available; audit "
            "cmdp.replace(available=None)."
        )
    count = require_count("num_iterations", num_iterations)
    step_size = require_positive("step_size", step_size)
    if real_number(regularization) == 0:
        raise ParameterError("the audit needs regularization > 0: the saddle point depends on it.")
    regularization = require_positive("regularization", regularization)
    if max_multiplier is not None:
        max_multiplier = require_positive("max_multiplier", max_multiplier)
    choose_hyperparameters(count, step_size=step_size, regularization=regularization)
    accuracy = require_share("accuracy", accuracy)
    cmdp = validate(cmdp).with_arrays()  # statements are in the paper's terms
    algorithm = as_algorithm(learner)
    iterated = _iterated(scheme)
    with jax.enable_x64(True):
        solved = make_problem(cmdp, step_size, regularization, max_multiplier, slater_gap)
        problem = cast(solved, float)
        rows, potentials = _known_rows(problem, statements, count, iterated)
        rows += closed_form_rows(problem, potentials, reason_against(iterated, CLOSED_FORM))
        rows += last_iterate_rows(problem, accuracy, reason_against(iterated, LAST_ITERATE))
        if online:
            episodes = require_count("num_episodes", num_episodes)
            runs = require_count("seeds", seeds)
            profile = optimism or Optimism.theory(episodes)
            rows += online_rows(problem, episodes, runs, profile, algorithm)
    return Audit(rows, potentials, solved)


def _iterated(scheme: str | Scheme) -> Scheme:
    """Find the scheme of a name; the paper's is the library's."""
    if not isinstance(scheme, str):
        return scheme
    return library_scheme if scheme == LIBRARY else as_scheme(scheme)


def _known_rows(
    problem: Problem, statements: Sequence[Statement], num_iterations: int, scheme: Scheme
) -> tuple[list[Row], np.ndarray]:
    """Check the statements without and with iterations."""
    once = [statement for statement in duality.ONCE if applies(problem, statement)]
    rows = [
        judge(statement, worst, (), unmet(problem, statement.premises), None)
        for statement, worst in zip(once, worst_once(problem, once), strict=True)
    ]
    chosen = [statement for statement in statements if applies(problem, statement)]
    against = {one: reason_against(scheme, one.name) for one in chosen}
    checked = [statement for statement in chosen if not against[statement]]
    worst, potentials, shapes = worst_steps(problem, checked, num_iterations, scheme)
    outcomes = dict(zip(checked, zip(worst, shapes, strict=True), strict=True))
    for statement in chosen:
        if against[statement]:
            rows.append(dismissed(statement, against[statement]))
            continue
        found, shape = outcomes[statement]
        if len(shape) != len(statement.axes):
            raise ParameterError(
                f"the sides of {statement.name!r} have the shape {shape}, but axes is "
                f"{statement.axes!r}; name each axis by a letter."
            )
        trivial = None if statement.trivial is None else float(statement.trivial(problem))
        missing = unmet(problem, statement.premises)
        rows.append(judge(statement, found, shape, missing, trivial))
    return rows, potentials


def describe(row: Row) -> dict[str, Any]:
    """Describe a row for JSON; infinities and undefined numbers are null."""
    content = row._asdict()
    for name in ("left", "right", "slack"):
        content[name] = content[name] if np.isfinite(content[name]) else None
    return content
