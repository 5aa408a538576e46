"""The saddle point of the regularized Lagrangian, Eq. (5).

With entropy in the policy and a square in the multipliers,

    L_τ(π, λ) = V_r^π + τ·entropy(π) + λᵀ(V_u^π - c) + τ/2 ‖λ‖²,

maximised over π and minimised over λ ∈ [0, λ_max]^I, has one saddle point (π*_τ, λ*_τ). The inner
maximum is soft backward induction, so what is left is a smooth, τ-strongly convex function of I
numbers on a box,

    D_τ(λ) = softDP_τ(r + λᵀu) - λᵀc + τ/2 ‖λ‖²,    ∇D_τ(λ) = V_u^{π_λ} - c + τλ,

minimised by L-BFGS-B, then by projected Newton steps down to rounding (the policy's error is that
of λ divided by τ, so L-BFGS's 1e-8 would not suffice). The Hessian is ∂V_u^{π_λ}/∂λ,
plus τ on the diagonal.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cmdpax.checks import require_positive
from cmdpax.jax_context import in_double_precision
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import evaluate
from cmdpax.model.validation import validate
from cmdpax.planning.dynamic_program import Plan, place, soft_plan

_MAX_NEWTON_STEPS = 200
_PATIENCE = 3  # steps without improvement before it ends
_ROUNDING = 1e-14  # of values
_PART_KEPT = 1e-4  # of the decrease that the gradient promises (Armijo)


class RegularizedSolution(NamedTuple):
    """The saddle point of the regularized Lagrangian.

    Attributes:
        value: `L_τ(π*_τ, λ*_τ)`, the value of the regularized Lagrangian.
        policy: π*_τ, `[H, S, A]`.
        multipliers: λ*_τ, `[I]`.
        log_policy: log π*_τ, exact where the policy underflows.
        constraint_values: V_u of π*_τ, `[I]`, in the senses of the constraints.
        residual: largest entry of λ - clip(λ - ∇D_τ(λ)): 0 at the saddle.
        occupancy: d_h(s, a) of π*_τ, `[H, S, A]`.
    """

    value: float
    policy: np.ndarray
    multipliers: np.ndarray
    log_policy: np.ndarray
    constraint_values: np.ndarray
    residual: float
    occupancy: np.ndarray


@in_double_precision
def solve_regularized(
    cmdp: CMDP, regularization: float, max_multiplier: float = 6.0
) -> RegularizedSolution:
    """The regularized saddle point `(π*_τ, λ*_τ)` on [0, λ_max]^I.

    It exists for every CMDP, feasible or not, since the multipliers are bounded.

    Args:
        cmdp: the model; any finite rewards.
        regularization: τ > 0.
        max_multiplier: λ_max > 0.

    Examples:
        >>> import cmdpax
        >>> saddle = cmdpax.solve_regularized(
        ...     cmdpax.environments.make("bandit"), regularization=0.05, max_multiplier=6.0)
        >>> saddle.multipliers.round(6).tolist()
        [0.976973]
    """
    validate(cmdp)
    regularization = require_positive("regularization", regularization)
    max_multiplier = require_positive("max_multiplier", max_multiplier)
    dual = _Dual(cmdp, regularization)
    multipliers = np.zeros(cmdp.num_constraints)
    if cmdp.num_constraints:
        multipliers = _quasi_newton(dual, multipliers, max_multiplier)
        multipliers = _newton(dual, multipliers, max_multiplier)
    value, gradient = dual(multipliers)
    _, signal_values, log_policy = dual.plan(multipliers)
    policy = np.exp(log_policy)
    return RegularizedSolution(
        value=value,
        policy=policy,
        multipliers=multipliers,
        log_policy=np.array(log_policy),
        constraint_values=cmdp.words.turn(np.array(signal_values)[1:], cmdp.horizon),
        residual=_residual(multipliers, gradient, max_multiplier),
        occupancy=evaluate(cmdp, policy).occupancy,
    )


def _residual(multipliers: np.ndarray, gradient: np.ndarray, max_multiplier: float) -> float:
    step = np.clip(multipliers - gradient, 0.0, max_multiplier)
    return float(np.abs(multipliers - step).max(initial=0.0))


class _Dual:
    """D_τ with its gradient and Hessian, on NumPy arrays."""

    def __init__(self, cmdp: CMDP, regularization: float) -> None:
        self._cmdp = place(cmdp)
        self._thresholds = cmdp.thresholds
        self._regularization = regularization

    def plan(self, multipliers: np.ndarray) -> Plan:
        return _plan(self._cmdp, jnp.asarray(multipliers), jnp.asarray(self._regularization))

    def __call__(self, multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        tau = self._regularization
        best, signal_values, _ = self.plan(multipliers)
        value = float(best) - multipliers @ self._thresholds
        value = value + tau / 2 * multipliers @ multipliers
        # Danskin: the derivative of the inner maximum is V_u of its maximiser.
        constraint_values = np.asarray(signal_values)[1:]
        gradient = constraint_values - self._thresholds + tau * multipliers
        return float(value), gradient

    def hessian(self, multipliers: np.ndarray) -> np.ndarray:
        tau = self._regularization
        slope = np.asarray(_slope(self._cmdp, jnp.asarray(multipliers), jnp.asarray(tau)))
        return (slope + slope.T) / 2 + tau * np.eye(len(multipliers))


@jax.jit
def _plan(cmdp: CMDP, multipliers: Float[Array, " I"], regularization: Float[Array, ""]) -> Plan:
    weights = jnp.concatenate([jnp.ones(1, multipliers.dtype), multipliers])
    return soft_plan(cmdp, weights, regularization)


@jax.jit
def _slope(
    cmdp: CMDP, multipliers: Float[Array, " I"], regularization: Float[Array, ""]
) -> Float[Array, "I I"]:
    """∂V_u^{π_λ} / ∂λ."""

    def constraint_values(point: Float[Array, " I"]) -> Float[Array, " I"]:
        _, signal_values, _ = _plan(cmdp, point, regularization)
        return signal_values[1:]

    return jax.jacfwd(constraint_values)(multipliers)


def _quasi_newton(dual: _Dual, multipliers: np.ndarray, max_multiplier: float) -> np.ndarray:
    """L-BFGS-B: from anywhere to near the minimum."""
    import scipy.optimize

    result = scipy.optimize.minimize(
        dual,
        multipliers,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, max_multiplier)] * len(multipliers),
        options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 500},
    )
    return np.clip(result.x, 0.0, max_multiplier)


def _newton(dual: _Dual, multipliers: np.ndarray, max_multiplier: float) -> np.ndarray:
    """Projected Newton steps (Bertsekas, 1982), until they no longer improve.

    Multipliers near a bound that the gradient would cross go to the bound. If they took part in the
    Newton step, the bound would cut it short, and the remainder might not descend.
    """
    value, gradient = dual(multipliers)
    error = _residual(multipliers, gradient, max_multiplier)
    best, least, idle = multipliers, error, 0
    for _ in range(_MAX_NEWTON_STEPS):
        near = min(error, 0.01 * max_multiplier)
        step = _direction(dual, multipliers, gradient, near, max_multiplier)
        for length in 0.5 ** np.arange(30):
            trial = np.clip(multipliers + length * step, 0.0, max_multiplier)
            trial_value, trial_gradient = dual(trial)
            trial_error = _residual(trial, trial_gradient, max_multiplier)
            promised = gradient @ (multipliers - trial)
            # Near the minimum values differ by rounding alone, and gradients decide.
            if trial_value <= value - _PART_KEPT * promised or trial_error <= error / 2:
                break
        improved = trial_error < least or trial_value < value - _ROUNDING * abs(value)
        idle = 0 if improved else idle + 1
        multipliers, value, gradient, error = trial, trial_value, trial_gradient, trial_error
        if error < least:
            best, least = multipliers, error
        if least == 0.0 or idle == _PATIENCE:
            break
    return best


def _direction(
    dual: _Dual, multipliers: np.ndarray, gradient: np.ndarray, near: float, max_multiplier: float
) -> np.ndarray:
    """Newton's step for free multipliers, and minus the gradient for the others."""
    pinned = ((multipliers <= near) & (gradient > 0)) | (
        (multipliers >= max_multiplier - near) & (gradient < 0)
    )
    free, step = np.flatnonzero(~pinned), -gradient
    hessian = dual.hessian(multipliers)[np.ix_(free, free)]
    # Not `solve`: copies of a constraint in large units make the Hessian singular.
    step[free] = -np.linalg.lstsq(hessian, gradient[free], rcond=None)[0]
    return step
