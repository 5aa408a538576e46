"""How far rounding can take computed values and bounds from the exact ones.

A certificate holds in exact arithmetic for the model exactly as it is stored. Results in double
precision are therefore widened by a bound on all rounding errors, whatever the order of summation
(Higham, Accuracy and Stability of Numerical Algorithms, chapter 3): with unit roundoff ε = 2⁻⁵³ a
sum of n products errs by at most n ε Σ|a||b| (1 + n ε).

Let N be the largest number of successors of a state and an action, J = 1 + I the number of signals,
and T_{j,h} = Σ_{k≥h} max |z_{j,k}| a bound on the values of signal j from step h on.

* *Values of a deterministic policy*: a step adds a reward to an expectation of N terms, so it errs
  by (N + 2) ε T_{j,h}. The total is (N + 2) ε Σ_h T_{j,h}, plus the mean over initial states.
* *Values of a random policy*: its occupancy is a sum over at most S·A pairs at each step, and its
  values are sums over all of them.
* *The maximum over policies of V_{wᵀz}*: let b_h(s) be the computed wᵀW_h(s) of the policy being
  built. For every action, wᵀz_h + p_h b_{h+1} ≤ b_h + δ_h, since the action was chosen by computed
  numbers that err by (N + 2J + 2) ε Σ_j |w_j| T_{j,h}, and b_h differs from the chosen number by as
  much again plus (N + J + 2) ε Σ_j |w_j| T_{j,h}. By induction no policy exceeds the computed
  maximum by more than Σ_h δ_h.

Rows of transitions may sum to 1 + 1e-8; the errors grow by that factor at each step.

These worst-case bounds grow with H² and λ. Where they exceed the tolerance, the maximum is computed
again with 64 bits of mantissa and, if that does not suffice and the model is small, in integers,
without rounding (`sharper_bound`).
"""

import jax
import numpy as np

from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.planning.scaling import Scaled
from cmdpax.planning.stepping import Stepper, part_at

_ROUNDOFF = 2.0**-53
_MARGIN = 1.01  # for products of errors, and for the rounding of the bounds themselves
_FINER = float(np.finfo(np.longdouble).eps) / 2 / _ROUNDOFF  # 2⁻¹¹, or 1 without extended precision
_MOST_WORK = 2_000_000  # stored transitions times steps for which a second pass is worthwhile
_MOST_STEPS = 5_000
_MOST_INTEGERS = 300_000  # the same, for integers
_BITS = 256  # after the binary point: numbers of 1e-60 keep all their digits


class Rounding:
    """Bounds on the rounding errors of one (scaled) model.

    Attributes:
        of_values: for the computed (V_r, V_u) of a deterministic policy, `[1 + I]`.
        of_policy: the same for a random policy, computed from its occupancy, `[1 + I]`.
        of_maximum: for the computed maximum of V_{wᵀz}, per unit of w, `[1 + I]`.
        size: bounds on |V_r| and |V_u|, `[1 + I]`.
    """

    def __init__(self, cmdp: CMDP) -> None:
        """Bound the errors of a model."""
        lists = isinstance(cmdp.transitions, Successors)
        probabilities = cmdp.transitions.probabilities if lists else cmdp.transitions
        # Products with ones are faster than sums along short rows.
        ones = np.ones(probabilities.shape[-1], dtype=np.float32)
        num_successors = int(((probabilities > 0).astype(np.float32) @ ones).max())
        most = float((probabilities @ ones.astype(float)).max())
        growth = max(1.0, most * (1 + _dot(probabilities.shape[-1]))) ** cmdp.horizon
        largest = np.empty((1 + cmdp.num_constraints, cmdp.horizon))
        largest[0] = _per_step(cmdp.rewards)  # one number where rewards are the same at every step
        largest[1:] = _per_step(cmdp.constraint_rewards)
        ahead = growth * np.cumsum(largest[:, ::-1], axis=1)  # T, the last step first
        every, size = ahead.sum(axis=1), ahead[:, -1]
        # A list may name a state several times.
        num_arrivals = (
            cmdp.num_states * cmdp.num_actions * (probabilities.shape[-1] if lists else 1)
        )
        num_signals, num_initial = len(largest), int(np.count_nonzero(cmdp.initial))
        self.size = size
        self.of_values = _dot(num_successors + 2) * every + _dot(num_initial + 1) * size
        self.of_policy = (
            _dot(num_arrivals + 4) * every + _dot(2 * cmdp.horizon + num_arrivals) * size
        )
        self.of_maximum = (
            _dot(3 * num_successors + 5 * num_signals + 6) * every
            + _dot(num_initial + 2 * num_signals + 1) * size
        )

    def of_bound(
        self, multipliers: np.ndarray, signal: int | None, thresholds: np.ndarray
    ) -> np.ndarray:
        """The error of D(λ) = max_π V_{z + λᵀu} - λᵀc at rows of λ; z is a signal, or 0."""
        objective = 0.0 if signal is None else self.of_maximum[signal]
        products = _dot(len(thresholds) + 2) * np.abs(thresholds)
        return np.asarray(objective + multipliers @ (self.of_maximum[1:] + products))

    def of_mixture(self, num_columns: int) -> np.ndarray:
        """The error of the computed (V_r, V_u) of a mixture of that many policies."""
        return self.of_values + _dot(num_columns + 3) * self.size


def _dot(num_terms: int) -> float:
    return _MARGIN * num_terms * _ROUNDOFF


def _per_step(signals: np.ndarray) -> np.ndarray:
    """The largest absolute entry of each step."""
    return np.abs(signals).max(axis=(-2, -1))


def sharper_bound(
    cmdp: CMDP,
    rounding: Rounding,
    multipliers: np.ndarray,
    signal: int | None,
    thresholds: np.ndarray,
    worth: float,
) -> tuple[float, float] | None:
    """D(λ) and its error, which is at most `worth` where possible.

    None for a large model and, without extended precision, for any that is not small.
    """
    stored = jax.tree.leaves(cmdp.transitions)[-1]
    work = stored[0].size * cmdp.horizon
    small = work <= _MOST_INTEGERS
    if work > _MOST_WORK or cmdp.horizon > _MOST_STEPS or (_FINER == 1.0 and not small):
        return None
    weights = np.insert(multipliers, 0, 0.0)
    if signal is not None:
        weights[signal] += 1.0
    error = _FINER * float(rounding.of_bound(multipliers, signal, thresholds))
    if error > worth and small:
        bound, error = _bound_in_integers(cmdp, weights, thresholds), 0.0
    else:
        extended = weights.astype(np.longdouble)
        bound = float(cmdp.initial @ _maxima(cmdp, extended) - extended[1:] @ thresholds)
    return bound, error + _dot(1) * abs(bound)


def _maxima(cmdp: CMDP, weights: np.ndarray) -> np.ndarray:
    """max_π V_{wᵀz} from each state, by backward induction in the precision of w."""
    stepper, num_pairs = Stepper(cmdp), cmdp.num_states * cmdp.num_actions
    states, actions = np.divmod(np.arange(num_pairs), cmdp.num_actions)
    values = np.zeros((cmdp.num_states, 1), weights.dtype)
    for step in reversed(range(cmdp.horizon)):
        q_values = stepper.expected(step, states, actions, values)[:, 0]
        q_values += stepper.signals(step, states, actions) @ weights
        q_values = q_values.reshape(cmdp.num_states, -1)
        values = _available_at(cmdp, step, q_values).max(axis=1, keepdims=True)
    return values[:, 0]


def _available_at(cmdp: CMDP, step: int, q_values: np.ndarray) -> np.ndarray:
    """Q of one step, `[S, A]`, without effect on its maxima where actions are not available."""
    if cmdp.available is None:
        return q_values
    return np.where(part_at(cmdp.available, step), q_values, q_values.min())


def _bound_in_integers(cmdp: CMDP, weights: np.ndarray, thresholds: np.ndarray) -> float:
    """D(λ) in integer multiples of 2⁻²⁵⁶: doubles and products keep every digit that matters."""
    factors, values = _as_integers(weights), np.zeros(cmdp.num_states, dtype=object)
    lists = cmdp.transitions if isinstance(cmdp.transitions, Successors) else None
    stored = cmdp.transitions if lists is None else lists.probabilities
    last, changing = cmdp.horizon - 1, cmdp.rewards.shape[0] + cmdp.constraint_rewards.shape[1] > 2
    for step in range(last, -1, -1):
        if step == last or stored.shape[0] > 1:
            rows = _as_integers(part_at(stored, step))
        if step == last or changing:
            constraints = part_at(cmdp.constraint_rewards.swapaxes(0, 1), step)
            signals = _as_integers(np.concatenate([part_at(cmdp.rewards, step)[None], constraints]))
            gained = (factors[:, None, None] * signals).sum(axis=0)
        if lists is None:
            expected = rows @ values
        else:
            expected = (rows * values[part_at(lists.successors, step)]).sum(axis=-1)
        highest = _available_at(cmdp, step, gained + expected).max(axis=1)
        values = -(-highest >> _BITS)  # rounded up
    bound = _as_integers(cmdp.initial) @ values - factors[1:] @ _as_integers(thresholds)
    return float(np.ldexp(float(bound >> _BITS), -_BITS))


def _as_integers(numbers: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.frompyfunc(int, 1, 1)(np.ldexp(numbers, _BITS))
    return found


def certify(
    scaled: Scaled, values: np.ndarray, error: float, bound: float, multipliers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """From scaled (V_r, V_u), the error of V_r, and a bound that includes its own error.

    Returns:
        (V_r, V_u) of the policy, the λ of the bound, and the gap: the bound minus V_r, plus the
        rounding errors of both; all in the user's units.
    """
    gap = scaled.number(max(bound - values[0], 0.0) + error)
    return scaled.to_user(values), scaled.user_multipliers(multipliers), gap
