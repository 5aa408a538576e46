"""`account`: the accounts of any sequence of policies."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cmdpax.errors import ModelError
from cmdpax.evaluation import policy_values
from cmdpax.model import CMDP, ArrayLike, as_floats
from cmdpax.options import UNSAFE_AT
from cmdpax.planning.solution import solve
from cmdpax.precision import in_double_precision
from cmdpax.regret import Regret, growth_exponents, strong_regret, unsafe_share, weak_regret
from cmdpax.validation import validate, validate_policy

_BLOCK_BYTES = 2**26


class Account(NamedTuple):
    """The accounts of K policies, one after the other.

    Attributes:
        value: V_r^{π_k}, `[K]`.
        constraint_values: V_u^{π_k}, `[K, I]`.
        suboptimality: V_r^{π*} - V_r^{π_k}, `[K]`.
        violation: c - V_u^{π_k}, `[K, I]`.
        strong_regret: cumulative sums of positive parts.
        weak_regret: cumulative sums of signed terms.
        unsafe: share of policies with some violation ≥ each of `unsafe_at`.
        unsafe_at: the levels.
        optimum: V_r^{π*}.
    """

    value: np.ndarray
    constraint_values: np.ndarray
    suboptimality: np.ndarray
    violation: np.ndarray
    strong_regret: Regret
    weak_regret: Regret
    unsafe: np.ndarray
    unsafe_at: tuple[float, ...]
    optimum: float

    def growth_exponent(self) -> Regret:
        """Exponents of the strong regrets' growth over [K/10, K]."""
        return growth_exponents(self.strong_regret, np.arange(1, len(self.value) + 1))


@in_double_precision
def account(
    cmdp: CMDP, policies: ArrayLike, *, unsafe_at: tuple[float, ...] = UNSAFE_AT
) -> Account:
    """Account for a sequence of policies, `[K, H, S, A]`, in the true model.

    Examples:
        The paper's minimal example. Playing the first two options in turn has no weak regret, and
        a strong one of K/5:

        >>> import cmdpax, numpy as np
        >>> cmdp = cmdpax.environments.make("bandit")
        >>> in_turn = np.eye(3)[np.arange(100) % 2][:, None, None, :]
        >>> result = cmdpax.account(cmdp, in_turn)
        >>> weak, strong = result.weak_regret, result.strong_regret
        >>> [round(abs(float(regret[-1])), 9) for regret in (weak.objective, weak.maximum)]
        [0.0, 0.0]
        >>> [round(float(regret[-1]), 9) for regret in (strong.objective, strong.maximum)]
        [20.0, 20.0]
    """
    validate(cmdp)
    sequence = as_floats("policies", policies)
    if sequence.ndim != 4 or not len(sequence):
        raise ModelError(f"policies has shape {sequence.shape}, expected (K, H, S, A), K ≥ 1.")
    sequence = np.stack([validate_policy(cmdp, policy) for policy in sequence])
    solution = solve(cmdp)
    values = _values(cmdp, sequence)
    suboptimality = solution.value - values[:, 0]
    violation = cmdp.thresholds - values[:, 1:]
    return Account(
        values[:, 0],
        values[:, 1:],
        suboptimality,
        violation,
        strong_regret(suboptimality, violation),
        weak_regret(suboptimality, violation),
        unsafe_share(violation, tuple(unsafe_at)),
        tuple(unsafe_at),
        solution.value,
    )


@jax.jit
def _evaluate_all(cmdp: CMDP, policies: Float[Array, "K H S A"]) -> Float[Array, "K J"]:
    return policy_values(cmdp, policies[..., None])[..., 0]


def _values(cmdp: CMDP, policies: np.ndarray) -> np.ndarray:
    """(V_r, V_u) of every policy, `[K, 1+I]`, in blocks of one size."""
    size = max(1, min(len(policies), _BLOCK_BYTES // policies[0].nbytes))
    model = jax.device_put(cmdp)
    parts = []
    for first in range(0, len(policies), size):
        block = policies[first : first + size]
        padded = np.resize(block, (size, *block.shape[1:]))
        parts.append(np.asarray(_evaluate_all(model, jnp.asarray(padded)))[: len(block)])
    return np.concatenate(parts)
