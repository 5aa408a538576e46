"""Solve a CMDP exactly: `solve`, and the `Solution` it returns."""

import functools
import warnings

import numpy as np

from cmdpax.checks import check_choice, require_count, require_positive
from cmdpax.errors import CmdpaxWarning, InfeasibleError
from cmdpax.jax_context import in_double_precision
from cmdpax.model.cmdp import CMDP
from cmdpax.model.policy import Policy, of_model
from cmdpax.model.validation import validate
from cmdpax.model.words import Words
from cmdpax.planning.certificate import certify
from cmdpax.planning.column_generation import Generator, Progress
from cmdpax.planning.feasibility import SlaterGap, advise, maximise, slater_gap_of
from cmdpax.planning.master import Outcome
from cmdpax.planning.occupancies import slater_gap_by_occupancies, solve_occupancies
from cmdpax.planning.recovery import Mixture, Recover, mix, mixture_values, recover_plan
from cmdpax.planning.scaling import Scaled

METHODS = ("column-generation", "occupancy-lp")
_FREE = 1e-12  # a price below this, relative to the optimum, is rounding


class Solution:
    """The exact optimum of a CMDP.

    π* and λ* need not be unique: compare values, not policies.

    Attributes:
        value: V_r^{π*}.
        constraint_values: V_u^{π*}, `[I]`, in the senses of the constraints: no threshold is missed
            by more than 1e-9 of its constraint's scale, max |u_i|.
        thresholds: what they must reach, or not exceed, `[I]`.
        multipliers: λ*, `[I]`, the minimiser of the dual bound that was found.
        gap: the certified gap: no policy that meets the thresholds is worth more than
            `value + gap`. It includes all rounding errors, so that `value` is overstated by at most
            `gap`.
        num_columns: policies that column generation used (0 for the occupancy LP).
        method: "column-generation" or "occupancy-lp": the method that solved it.
        feasible: whether some policy meets the thresholds; where none does, `solve` raises and
            `solve_many` returns the policy with the largest worst slack.
    """

    def __init__(
        self,
        cmdp: CMDP,
        method: str,
        values: np.ndarray,
        multipliers: np.ndarray,
        gap: float,
        *,
        num_columns: int,
        recover: Recover,
        feasible: bool = True,
    ) -> None:
        """Keep the numbers; large arrays are made when first asked for."""
        self.method = method
        self.value = float(values[0])
        self.constraint_values = cmdp.words.turn(values[1:], cmdp.horizon)
        self.thresholds = cmdp.bounds
        self.multipliers = multipliers
        self.gap = gap
        self.num_columns = num_columns
        self.feasible = feasible
        self._cmdp = cmdp
        self._recover = functools.cache(recover)

    @functools.cached_property
    def policy(self) -> Policy:
        """π*_h(a | s), `[H, S, A]`: Markov, random in at most I places; printed, it is a table.

        Where the occupancy is zero it is greedy for r + λᵀu.
        """
        return of_model(self._cmdp, *self._recover())

    @property
    def occupancy(self) -> np.ndarray:
        """d_h(s, a) of π*, `[H, S, A]`."""
        _, occupancy = self._recover()
        return occupancy

    @property
    def words(self) -> Words:
        """The names, units and senses of the model."""
        return self._cmdp.words

    @property
    def slack(self) -> np.ndarray:
        """How far each constraint is on the right side of its threshold, `[I]`."""
        return self._cmdp.words.slack(self.constraint_values, self.thresholds)

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

    def __str__(self) -> str:
        """The optimum, and for each constraint what it reaches and what it costs."""
        words = self._cmdp.words
        head = f"{words.objective}: {words.amount(self.value)}, certified to {self.gap:.2g}"
        if not self.feasible:
            head = "no policy meets the constraints; this one has the largest worst slack"
        lines = [head]
        for index, (value, bound, price) in enumerate(
            zip(self.constraint_values, self.thresholds, self.multipliers, strict=True)
        ):
            sense = words.sense(index)
            line = f"{words.constraint(index)}: {words.amount(value, 1 + index)}, "
            line += f"{sense} {bound:.6g}"
            if self.feasible and price > _FREE * abs(self.value):
                unit, way = (
                    words.unit(1 + index) or "unit",
                    "more" if sense == "at most" else "less",
                )
                line += f"; each {unit} {way} would earn {words.amount(price)}, at the margin"
            lines.append(line)
        return "\n".join(lines)


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
        method: "column-generation" (the fast way) or "occupancy-lp" (the definition; if HiGHS
            does not solve it to a certificate, a warning says why, and column generation does).
        tolerance: the gap at which column generation stops, relative to the largest reward of a
            step.
        max_columns: it also stops at this many columns, once some mixture of them is feasible;
            `gap` then tells how far it came.
        progress: called with the number of columns and the gap after every round.

    Raises:
        InfeasibleError: every policy misses some threshold by more than 1e-9 of the largest
            reward of its constraint.

    Examples:
        >>> import cmdpax
        >>> solution = cmdpax.solve(cmdpax.environments.make("bandit"))
        >>> round(solution.value, 9), solution.multipliers.round(9).tolist()
        (0.6, [1.0])
    """
    validate(cmdp)
    check_choice("method", method, METHODS)
    tolerance = require_positive("tolerance", tolerance)
    max_columns = require_count("max_columns", max_columns)
    solve_by = _solve_by_occupancies if method == "occupancy-lp" else _solve_by_columns
    try:
        return solve_by(cmdp, tolerance, max_columns, progress)
    except InfeasibleError as error:
        missed = SlaterGap(error.slater_gap, error.worst_constraint)
        raise advise(Generator(cmdp, None, max_columns), cmdp, missed) from None


@in_double_precision
def slater_gap(
    cmdp: CMDP, method: str = "column-generation", *, progress: Progress | None = None
) -> SlaterGap | None:
    """The Slater gap Ξ = max_π min_i (V_{u_i}^π - c_i); None without constraints.

    Positive: all constraints can be met with that much to spare. Zero: feasible without slack.
    Negative: infeasible by that much. All in the units of the model.
    """
    validate(cmdp)
    check_choice("method", method, METHODS)
    if not cmdp.num_constraints:
        return None
    if method == "occupancy-lp":
        found = slater_gap_by_occupancies(Scaled(cmdp), cmdp.thresholds)
        if isinstance(found, SlaterGap):
            return found
        _warn_of_fallback(found, stacklevel=4)
    return slater_gap_of(Generator(cmdp, progress, max_columns=10_000), cmdp.thresholds)


def _warn_of_fallback(reason: str, stacklevel: int) -> None:
    """The stack level is past the public function and its double-precision context."""
    warnings.warn(
        f"the occupancy program was left to column generation: {reason}.",
        CmdpaxWarning,
        stacklevel=stacklevel,
    )


def _solve_by_columns(
    cmdp: CMDP, tolerance: float, max_columns: int, progress: Progress | None
) -> Solution:
    return solve_by_columns(cmdp, Generator(cmdp, progress, max_columns), tolerance)


def solve_by_columns(
    cmdp: CMDP, generator: Generator, tolerance: float, explain: bool = True
) -> Solution:
    """The optimum from the columns of a generator; `explain` as for `feasibility.maximise`."""
    found = maximise(generator, cmdp.thresholds, tolerance, explain=explain)
    mixture = mix(generator.columns, found.weights)
    solution = Solution(
        cmdp,
        "column-generation",
        *in_user_units(generator, mixture, found),
        num_columns=len(generator.columns),
        recover=functools.partial(recover_plan, generator.scaled.cmdp, mixture, found.multipliers),
    )
    if generator.is_open(found, tolerance):
        _warn_of_gap(solution, tolerance)
    return solution


def in_user_units(
    generator: Generator, mixture: Mixture, found: Outcome
) -> tuple[np.ndarray, np.ndarray, float]:
    """The mixture's values, λ and gap with rounding errors, in the user's units."""
    error = generator.rounding.of_mixture(len(mixture))[0]
    values, bound = mixture_values(mixture), found.bound + found.error
    return certify(generator.scaled, values, error, bound, found.multipliers)


def _warn_of_gap(solution: Solution, tolerance: float) -> None:
    warnings.warn(
        f"column generation stopped at a gap of {solution.gap:.2g} after "
        f"{solution.num_columns} columns (asked for {tolerance:.2g}): the optimum is "
        f"between {solution.value:.10g} and {solution.value + solution.gap:.10g}.",
        CmdpaxWarning,
        stacklevel=6,  # past `solve` and its double-precision context
    )


def _solve_by_occupancies(
    cmdp: CMDP, tolerance: float, max_columns: int, progress: Progress | None
) -> Solution:
    found = solve_occupancies(Scaled(cmdp))
    if isinstance(found, str):
        solution = _solve_by_columns(cmdp, tolerance, max_columns, progress)
        # Not if nothing is feasible, where HiGHS was right.
        _warn_of_fallback(found, stacklevel=5)
        return solution
    certified, recover = found
    return Solution(cmdp, "occupancy-lp", *certified, num_columns=0, recover=recover)
