"""Solve many CMDPs of one shape at once: `solve_many`.

The compiled planner (`batched`) proposes, certificates decide. What it proposes for a model is
taken if its bound, widened by all rounding errors, meets its value, and if it is clear whether the
model is feasible. Models on which the last bits decide, such as those without any slack, go through
`solve`, whose master problem has more bits.

Rounding errors are bounded as in `certificate`, once for all models of a call: in scaled units no
signal exceeds 1, so that bounds of the largest model hold for the others. The planner's own
formulas, D(λ) = V_r + Σ_i λ_i (V_{u_i} - c_i), add a few roundings of V_u and c per constraint.

Models are planned in parts of a power of two of them, the last one filled up with copies: each such
number compiles a program. Threads do not pay, since JAX runs programs this small in the thread that
calls, and lets no other one go on.
"""

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from cmdpax.checks import require_positive
from cmdpax.errors import InfeasibleError, ModelError, ParameterError, SolverError
from cmdpax.jax_context import drop_programs_if_many, in_double_precision
from cmdpax.model.arrays import ArrayLike, as_floats
from cmdpax.model.availability import stack_models
from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import validate
from cmdpax.planning import batched
from cmdpax.planning.certificate import Rounding
from cmdpax.planning.column_generation import Generator
from cmdpax.planning.feasibility import SENSITIVE, SLACK_TOLERANCE, TOLERANCE, negligible_slack
from cmdpax.planning.recovery import Recover, mix, mixture_values, recover_plan, simplify_plan
from cmdpax.planning.scaling import Scaled
from cmdpax.planning.solution import Solution, solve, solve_by_columns

_LARGEST_PART = 128  # models in one compiled call: the slowest of them decides when it ends
_MOST_COLUMNS = 10_000
_MOST_BYTES = 2**28  # of transitions that are stacked at once
_ROUNDOFF = 2.0**-53
_SLACK_GAP = 1e-10  # of scale: a worst slack this near its bound is the largest

_compiled = jax.jit(batched.plan_stacked)


def solve_many(
    cmdps: Iterable[CMDP],
    *,
    tolerance: float = 1e-10,
    multipliers: ArrayLike | None = None,
) -> list[Solution]:
    """Solve many CMDPs of one shape: what `solve` returns, for each of them.

    It is far faster than a loop over `solve` where models are small. A model that no policy
    satisfies raises nothing: its solution has `feasible = False`, the value NaN, and the policy
    with the largest worst slack, max_π min_i (V_{u_i}^π - c_i) / max |u_i|.

    Args:
        cmdps: the models; their arrays must have the same shapes, but for `available`, which only
            some may have.
        tolerance: the largest gap of a solution, relative to the largest reward of a step; where
            the compiled planner does not reach it, `solve` does what it can.
        multipliers: where to begin, `[number of models, I]`, such as those of an earlier plan for
            similar models; None begins at 0. The optima are the same.

    Raises:
        ModelError: a model is not valid, or differs from the first in shape.
        SolverError: it cannot be told whether some model is feasible.

    Examples:
        >>> import cmdpax
        >>> bandit = cmdpax.environments.make("bandit")
        >>> models = [bandit.replace(thresholds=[c]) for c in (0.3, 0.5, 2.0)]
        >>> [round(solution.value, 9) for solution in cmdpax.solve_many(models)]
        [0.8, 0.6, nan]
    """
    models = [validate(cmdp) for cmdp in cmdps]
    tolerance = require_positive("tolerance", tolerance)
    if not models:
        return []
    _check_shapes(models)
    start = _checked_start(multipliers, len(models), models[0].num_constraints)
    return list(itertools.chain.from_iterable(_solve_batches(models, start, tolerance)))


def _check_shapes(models: Sequence[CMDP]) -> None:
    first = _shapes_of(models[0])
    for index, cmdp in enumerate(models):
        if _shapes_of(cmdp) != first:
            raise ModelError(
                f"cmdps[{index}] is {cmdp!r} and cmdps[0] is {models[0]!r}: the arrays of all "
                "models must have the same shapes; solve those of one shape at a time."
            )


def _shapes_of(cmdp: CMDP) -> tuple[object, ...]:
    transitions = cmdp.transitions
    lists = isinstance(transitions, Successors)
    stored = transitions.probabilities if lists else transitions
    signals = cmdp.rewards.shape, cmdp.constraint_rewards.shape
    return cmdp.horizon, lists, stored.shape, *signals


def _checked_start(
    multipliers: ArrayLike | None, num_models: int, num_constraints: int
) -> np.ndarray:
    if multipliers is None:
        return np.zeros((num_models, num_constraints))
    start = as_floats("multipliers", multipliers)
    if start.shape != (num_models, num_constraints):
        raise ParameterError(
            f"multipliers has shape {start.shape}, expected one row of λ for each model, "
            f"{(num_models, num_constraints)}."
        )
    if not np.all(np.isfinite(start) & (start >= 0)):
        raise ParameterError("multipliers must be finite and not negative.")
    return start


def _solve_batches(
    models: Sequence[CMDP], start: np.ndarray, tolerance: float
) -> Iterator[list[Solution]]:
    """Solutions of the models, of as many at a time as are stacked."""
    drop_programs_if_many()
    size = _batch_size(models[0])
    for first in range(0, len(models), size):
        at = slice(first, first + size)
        yield _solve_batch(models[at], start[at], tolerance, first)


def _batch_size(cmdp: CMDP) -> int:
    """How many models are stacked at once."""
    stored = jax.tree.leaves(cmdp.transitions)[-1].nbytes
    return max(1, _MOST_BYTES // stored)


class _Judged(NamedTuple):
    """Plans with what certifies them.

    Attributes:
        plans: the planner's results, as NumPy arrays.
        constraint_values: theirs, which users may change.
        multipliers: likewise.
        gaps: certified, in the user's units.
        solved: whether the certificate is good enough.
        unfeasible: whether no policy is feasible, beyond doubt, and the worst slack is the largest.
    """

    plans: Any
    constraint_values: np.ndarray
    multipliers: np.ndarray
    gaps: np.ndarray
    solved: np.ndarray
    unfeasible: np.ndarray


@in_double_precision
def _solve_batch(
    models: Sequence[CMDP], start: np.ndarray, tolerance: float, first: int
) -> list[Solution]:
    """Solutions of models that are stacked together; the first has that number."""
    stack = stack_models(models)
    found = _judge(stack, _plan_all(_shared_lists(stack), start), tolerance)
    return [
        _solution(cmdp, found, index, first + index, tolerance) for index, cmdp in enumerate(models)
    ]


def _plan_all(stack: CMDP, start: np.ndarray) -> batched.Plan:
    """Plan a stack part by part."""
    firsts = range(0, len(start), _LARGEST_PART)
    parts = [_plan_part(stack, start, first) for first in firsts]
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)


def _plan_part(stack: CMDP, start: np.ndarray, first: int) -> batched.Plan:
    """Plan some of the models, and copies of the first of them up to a power of two."""
    count = min(len(start) - first, _LARGEST_PART)
    chosen = first + np.arange(1 << (count - 1).bit_length())
    chosen[count:] = first

    def pick(array: np.ndarray) -> np.ndarray:
        if len(array) == 1 or len(chosen) == count:  # shared, or nothing to fill up
            return array[first : first + count] if len(array) > 1 else array
        return array[chosen]

    found = _compiled(jax.tree.map(pick, stack), pick(start))
    return jax.tree.map(lambda array: np.asarray(array)[:count], found)


def _shared_lists(stack: CMDP) -> CMDP:
    """Lists of successors that are the same in all models, once: they are read much faster."""
    if not isinstance(stack.transitions, Successors):
        return stack
    lists = stack.transitions.successors
    if not (lists == lists[:1]).all():
        return stack
    children, horizon = stack.tree_flatten()
    once = stack.transitions._replace(successors=lists[:1])
    return CMDP.tree_unflatten(horizon, (once, *children[1:]))


def _judge(stack: CMDP, plans: Any, tolerance: float) -> _Judged:
    """Widen bounds by rounding errors, and see which plans they confirm."""
    scales = _scales_of(stack)
    of_rewards, of_constraints = scales[:, 0], scales[:, 1:]
    rounding = _rounding(stack)
    relative = plans.multipliers * of_constraints / of_rewards[:, None]
    sizes = rounding.size[1:] + np.abs(stack.thresholds) / of_constraints
    more = rounding.of_maximum[1:] + 1.01 * _ROUNDOFF * (stack.num_constraints + 12) * sizes
    error = rounding.of_mixture(1 + stack.num_constraints)[0] + rounding.of_maximum[0]
    errors = error + np.sum(relative * more, axis=1)
    gaps = np.maximum(plans.upper_bound - plans.value, 0.0) + errors * of_rewards
    horizon = stack.horizon
    sensitive = relative.sum(axis=1) * negligible_slack(horizon, cautious=True) > SENSITIVE
    met = plans.worst_slack >= -negligible_slack(horizon)
    solved = plans.feasible & met & ~sensitive & (gaps <= tolerance * of_rewards)
    shares = plans.multipliers * of_constraints  # they sum to 1 where nothing is feasible
    doubt = np.sum(shares * more, axis=1)
    largest = plans.slack_bound <= plans.worst_slack + _SLACK_GAP
    unfeasible = ~plans.feasible & (plans.slack_bound + doubt < -TOLERANCE) & largest
    copies = np.array(plans.constraint_values), np.array(plans.multipliers)
    return _Judged(plans, *copies, gaps, solved, unfeasible)


def _scales_of(stack: CMDP) -> np.ndarray:
    """max |r| and max |u_i| of each model, `[B, 1 + I]`; 1 where a signal is 0."""
    of_rewards = np.abs(stack.rewards).max(axis=(1, 2, 3))
    of_constraints = np.abs(stack.constraint_rewards).max(axis=(2, 3, 4), initial=0.0)
    scales = np.column_stack([of_rewards, of_constraints])
    return np.where(scales > 0, scales, 1.0)


def _rounding(stack: CMDP) -> Rounding:
    """Bounds on rounding that hold for every model, per unit of each signal's scale."""
    transitions = jax.tree.map(_as_one, stack.transitions)
    children, horizon = stack.tree_flatten()
    pairs = stack.rewards.shape[2:]
    ones = np.ones((1, *pairs)), np.ones((stack.num_constraints, 1, *pairs))
    initial = (stack.initial > 0).any(axis=0).astype(float)
    widest = (transitions, *ones, children[3][0], initial)
    return Rounding(CMDP.tree_unflatten(horizon, widest))


def _as_one(array: np.ndarray) -> np.ndarray:
    """The models of a stack as if they were steps of one."""
    return array.reshape(-1, *array.shape[2:])


def _solution(cmdp: CMDP, found: _Judged, index: int, number: int, tolerance: float) -> Solution:
    """The solution of one model: what was planned, or what `solve` says."""
    if found.solved[index]:
        return _confirmed(cmdp, found, index)
    if found.unfeasible[index]:
        return _missed(cmdp, found, index)
    try:
        return solve(cmdp, tolerance=tolerance)
    except InfeasibleError:
        return largest_slack(cmdp)
    except SolverError as error:
        raise SolverError(f"cmdps[{number}]: {error}") from None


def _confirmed(cmdp: CMDP, found: _Judged, index: int) -> Solution:
    plans, multipliers = found.plans, found.multipliers[index]
    values = np.insert(found.constraint_values[index], 0, plans.value[index])
    return Solution(
        cmdp,
        "column-generation",
        values,
        multipliers,
        float(found.gaps[index]),
        num_columns=int(plans.rounds[index]),
        recover=functools.partial(_simpler_plan, cmdp, plans.occupancy[index], values, multipliers),
    )


def _simpler_plan(
    cmdp: CMDP, occupancy: np.ndarray, values: np.ndarray, multipliers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The Markov policy, random in as few places as that of `solve`."""
    scaled = Scaled(cmdp)
    multipliers = np.ldexp(multipliers, scaled.exponents[1:] - scaled.exponents[0])
    target = np.ldexp(values, -scaled.exponents)
    return simplify_plan(scaled.cmdp, np.array(occupancy), multipliers, target)


def _missed(cmdp: CMDP, found: _Judged, index: int) -> Solution:
    """Where nothing is feasible."""
    plans = found.plans
    plan = plans.policy[index].copy(), plans.occupancy[index].copy()
    return _infeasible(
        cmdp,
        found.constraint_values[index],
        found.multipliers[index],
        int(plans.rounds[index]),
        lambda: plan,
    )


@in_double_precision
def largest_slack(cmdp: CMDP) -> Solution:
    """The policy with the largest worst slack, max_π min_i (V_{u_i}^π - c_i) / max |u_i|."""
    return _largest_slack(cmdp, Generator(cmdp, None, _MOST_COLUMNS))


@in_double_precision
def best_or_nearest(cmdp: CMDP, tolerance: float = 1e-10) -> Solution:
    """What `solve` returns, or `largest_slack` where no policy meets the constraints."""
    generator = Generator(cmdp, None, _MOST_COLUMNS)
    try:
        return solve_by_columns(cmdp, generator, tolerance, explain=False)
    except InfeasibleError:
        return _largest_slack(cmdp, generator)


def _largest_slack(cmdp: CMDP, generator: Generator) -> Solution:
    scaled = generator.scaled
    scales, wanted = scaled.magnitudes[1:], scaled.thresholds(cmdp.thresholds)
    # What no policy comes near is lowered for all constraints alike; see `batched`.
    excess = max(float((wanted / scales).max()) - scaled.limit, 0.0)
    lowered = np.maximum(wanted - excess * scales, -scaled.limit)
    slack = generator.maximise_slack(lowered, scales, SLACK_TOLERANCE, goal=np.inf)
    mixture = mix(generator.columns, slack.weights)
    units = np.ldexp(1.0, scaled.exponents[1:])
    return _infeasible(
        cmdp,
        scaled.to_user(mixture_values(mixture))[1:],
        slack.multipliers / units,
        len(generator.columns),
        lambda: recover_plan(scaled.cmdp, mixture, slack.multipliers),
    )


def _infeasible(
    cmdp: CMDP,
    constraint_values: np.ndarray,
    multipliers: np.ndarray,
    num_columns: int,
    recover: Recover,
) -> Solution:
    return Solution(
        cmdp,
        "column-generation",
        np.insert(constraint_values, 0, np.nan),
        multipliers,
        np.nan,
        num_columns=num_columns,
        recover=recover,
        feasible=False,
    )
