"""Solve a CMDP exactly: `solve`, and the `Solution` it returns."""

import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cmdpax.errors import (
    CmdpaxError,
    InfeasibleError,
    SolverError,
    check_choice,
    require_count,
    require_positive,
)
from cmdpax.evaluation import evaluate
from cmdpax.model import CMDP
from cmdpax.planning import linear_program
from cmdpax.planning.column_generation import (
    FEASIBILITY_TOLERANCE,
    Generator,
    Outcome,
    Progress,
    limiting_constraint,
    signal_scales,
)
from cmdpax.planning.dynamic_program import greedy_values
from cmdpax.planning.recovery import Mixture, Plan, markov_policy, recover_plan
from cmdpax.precision import in_double_precision
from cmdpax.validation import validate


class SlaterGap(NamedTuple):
    """Ξ = max_π min_i (V_{u_i}^π - c_i), and the constraint that limits it."""

    gap: float
    constraint: int


class Solution:
    """The exact optimum of a CMDP.

    π* and λ* need not be unique: compare values, not policies.

    Attributes:
        value: V_r^{π*}.
        constraint_values: V_u^{π*}, `[I]`.
        multipliers: λ*, `[I]`, the minimiser of the dual bound that was found.
        gap: the certified gap, dual bound minus `value`, never negative: the true optimum lies
            in `[value, value + gap]`.
        num_columns: policies that column generation used (0 for the occupancy LP).
        method: "column-generation" or "occupancy-lp".
    """

    def __init__(
        self,
        cmdp: CMDP,
        method: str,
        *,
        value: float,
        constraint_values: np.ndarray,
        multipliers: np.ndarray,
        bound: float,
        num_columns: int,
        recover: Callable[[], Plan],
    ) -> None:
        """Keep the numbers; large arrays are made when first asked for."""
        self.method = method
        self.value = value
        self.constraint_values = constraint_values
        self.multipliers = multipliers
        self.gap = max(bound - value, 0.0)
        self.num_columns = num_columns
        self._cmdp = cmdp
        self._recover = recover

    @functools.cached_property
    def _plan(self) -> Plan:
        return self._recover()

    @property
    def policy(self) -> np.ndarray:
        """π*_h(a | s), `[H, S, A]`: Markov, random in at most I places.

        Where the occupancy is zero it is greedy for r + λᵀu.
        """
        return self._plan.policy

    @property
    def occupancy(self) -> np.ndarray:
        """d_h(s, a) of π*, `[H, S, A]`."""
        return self._plan.occupancy

    @functools.cached_property
    def slater_gap(self) -> float | None:
        """Ξ = max_π min_i (V_{u_i}^π - c_i); None without constraints."""
        found = slater_gap(self._cmdp, method=self.method)
        return None if found is None else found.gap

    def __repr__(self) -> str:
        """Value, gap and method."""
        return (
            f"Solution(value={self.value:.10g}, gap={self.gap:.2g}, "
            f"num_columns={self.num_columns}, method={self.method!r})"
        )


METHODS = ("column-generation", "occupancy-lp")


@in_double_precision
def solve(
    cmdp: CMDP,
    method: str = "column-generation",
    *,
    tolerance: float = 1e-10,
    max_columns: int = 10_000,
    progress: Progress | None = None,
) -> Solution:
    """Solve max_π V_r^π subject to V_{u_i}^π ≥ c_i exactly.

    Args:
        cmdp: the model; any finite rewards.
        method: "column-generation" (the fast way) or "occupancy-lp" (the definition).
        tolerance: the gap at which column generation stops, relative to the largest reward of a
            step if that exceeds 1.
        max_columns: it also stops at this many columns, once some mixture of them is feasible;
            `gap` then tells how far it came.
        progress: called with the number of columns and the gap after every round.

    Raises:
        InfeasibleError: no policy meets the thresholds (Slater gap below -1e-9).

    Examples:
        >>> import cmdpax
        >>> solution = cmdpax.solve(cmdpax.environments.make("bandit"))
        >>> round(solution.value, 9), solution.multipliers.round(9).tolist()
        (0.6, [1.0])
    """
    validate(cmdp)
    _check_method(method)
    tolerance = require_positive("tolerance", tolerance)
    max_columns = require_count("max_columns", max_columns)
    if method == "occupancy-lp":
        return _solve_by_linear_program(cmdp)
    return _solve_by_columns(cmdp, tolerance, max_columns, progress)


@in_double_precision
def slater_gap(
    cmdp: CMDP, method: str = "column-generation", *, progress: Progress | None = None
) -> SlaterGap | None:
    """The Slater gap Ξ = max_π min_i (V_{u_i}^π - c_i); None without constraints.

    Positive: all constraints can be met with that much to spare. Zero: feasible without slack.
    Negative: infeasible, by that much.
    """
    validate(cmdp)
    _check_method(method)
    if not cmdp.num_constraints:
        return None
    if method == "occupancy-lp":
        gap, constraint = linear_program.maximise_slack(cmdp)
        return SlaterGap(gap + 0.0, constraint)
    generator = Generator(cmdp, progress, max_columns=10_000)
    tolerance = 1e-10 * max(1.0, generator.scales[1:].max())
    found = generator.maximise_slack(tolerance, goal=np.inf)
    return _as_slater_gap(found, generator)


def _check_method(method: str) -> None:
    check_choice("method", method, METHODS)


def _as_slater_gap(found: Outcome, generator: Generator) -> SlaterGap:
    worst = limiting_constraint(found.master, generator.columns, generator.thresholds)
    return SlaterGap(found.master.value + 0.0, worst)  # no -0.0


def _require_feasible(slack: Outcome, generator: Generator, tolerance: float) -> None:
    """Go on only if the smallest slack can be raised to 0 (up to the tolerance)."""
    if slack.master.value >= -tolerance:
        return
    if slack.bound < -tolerance:
        raise InfeasibleError(*_as_slater_gap(slack, generator))
    raise CmdpaxError(
        f"cannot tell whether the CMDP is feasible: its Slater gap is between "
        f"{slack.master.value:.3g} and {slack.bound:.3g}, and column generation makes no more "
        'progress; try solve with method="occupancy-lp".'
    )


def maximise(generator: Generator, tolerance: float, signal: int = 0) -> Outcome:
    """The optimum at the generator's thresholds: of V_r, or of V_{u_i} for signal 1 + i.

    Raises:
        InfeasibleError: no policy meets the thresholds.
    """
    scales = np.maximum(generator.scales, 1.0)
    relaxation = 0.0
    if generator.cmdp.num_constraints:
        scale = scales[1:].max()
        slack = generator.maximise_slack(1e-10 * scale, goal=0.0)
        _require_feasible(slack, generator, FEASIBILITY_TOLERANCE * scale)
        relaxation = max(0.0, -slack.master.value)
    return generator.maximise_reward(tolerance * scales[signal], relaxation, signal)


def _solve_by_columns(
    cmdp: CMDP, tolerance: float, max_columns: int, progress: Progress | None
) -> Solution:
    generator = Generator(cmdp, progress, max_columns)
    found = maximise(generator, tolerance)
    gap = found.bound - found.master.value
    if gap > tolerance * max(generator.scales[0], 1.0):
        warnings.warn(
            f"column generation stopped at a gap of {gap:.2g} after "
            f"{len(generator.columns)} columns (asked for {tolerance:.2g}): the optimum is "
            f"between {found.master.value:.10g} and {found.bound:.10g}.",
            stacklevel=4,  # past `solve` and its double-precision context
        )
    mixture = Mixture.of(generator.columns, found.master.weights)
    values = mixture.signal_values
    return Solution(
        cmdp,
        "column-generation",
        value=float(values[0]),
        constraint_values=values[1:],
        multipliers=found.multipliers,
        bound=found.bound,
        num_columns=len(generator.columns),
        recover=lambda: recover_plan(cmdp, mixture, found.multipliers),
    )


def _solve_by_linear_program(cmdp: CMDP) -> Solution:
    optimum = linear_program.maximise_reward(cmdp)
    if optimum is None:
        optimum = _solve_without_slack(cmdp)
    occupancy, multipliers = optimum
    policy = markov_policy(cmdp, occupancy, multipliers)
    result = evaluate(cmdp, policy)
    weights = np.insert(multipliers, 0, 1.0)
    values = greedy_values(cmdp, weights[None])[0]
    return Solution(
        cmdp,
        "occupancy-lp",
        value=result.value,
        constraint_values=result.constraint_values,
        multipliers=multipliers,
        bound=float(weights @ values - multipliers @ cmdp.thresholds),
        num_columns=0,
        recover=lambda: Plan(policy, result.occupancy),
    )


def _solve_without_slack(cmdp: CMDP) -> linear_program.OccupancyOptimum:
    """The occupancy LP when HiGHS calls it infeasible: it is, or Ξ = 0 up to rounding."""
    scale = max(1.0, signal_scales(cmdp)[1:].max())
    slack = linear_program.maximise_slack(cmdp)
    if slack.slater_gap < -FEASIBILITY_TOLERANCE * scale:
        raise InfeasibleError(*slack)
    missing = max(0.0, -slack.slater_gap)
    for rounding in (0.0, 1e-12, 1e-11, 1e-10, FEASIBILITY_TOLERANCE):
        optimum = linear_program.maximise_reward(cmdp, missing + rounding * scale)
        if optimum is not None:
            return optimum
    raise SolverError("a program whose Slater gap is 0, and which it finds infeasible")
