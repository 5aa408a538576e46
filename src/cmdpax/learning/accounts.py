"""`account`: the accounts of any sequence of policies."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cmdpax.errors import ModelError
from cmdpax.jax_context import in_double_precision
from cmdpax.learning.history import Account, strong_regret, unsafe_share, weak_regret
from cmdpax.learning.settings import UNSAFE_AT
from cmdpax.model.arrays import ArrayLike, as_floats
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import policy_values
from cmdpax.model.validation import validate, validate_policy
from cmdpax.planning.solution import solve

_BLOCK_BYTES = 2**26


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
        episodes=np.arange(1, len(sequence) + 1),
        value=values[:, 0],
        constraint_values=cmdp.words.turn(values[:, 1:], cmdp.horizon),
        strong_regret=strong_regret(suboptimality, violation),
        weak_regret=weak_regret(suboptimality, violation),
        unsafe=unsafe_share(violation, tuple(unsafe_at)),
        unsafe_at=tuple(unsafe_at),
        optimum=solution.value,
        thresholds=cmdp.bounds,
        signs=np.broadcast_to(cmdp.words.signs, cmdp.thresholds.shape),
        words=cmdp.words,
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
