"""What exploring is worth to a learner that plans: bonuses for the Lagrangian.

What is worth exploring is r + λᵀu, with the λ of the last plan, so the whole bonus goes to the
objective, and the constraints stay estimates. With V = V_{h+1} of r + λᵀu under the last plan and
p̂, n visits and Λ = 1 + ‖λ‖₁, the bonus of a pair (s, a) at step h is

    count        Λ · scale/√n
    bernstein    min(a √(Var_p̂(V)/n) + b (H - h) Λ/n, (H - h) Λ)
    posterior    ⟨p̃ - p̂, V⟩,   p̃ ~ Dirichlet(counts + prior/T), drawn anew for every plan
    none         0

with n ∨ 1 for n. Where rewards are estimated from what was observed, their own uncertainty is
added: for `bernstein` the deviation and the range of what was observed, for `posterior` a normal
draw around each mean.

Pessimism κ plans with û - κ b^u, where b^u_i is scale/√n for `count`, and otherwise
min(√(Var_p̂(V_{u_i})/n) + (H - h)/n, H - h). The objective then gains Σ_i λ_i κ b^u_i, so that the
Lagrangian stays as optimistic as it was. A negative κ is optimism in the constraints.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from cmdpax.learners.replanner import Estimates, Model, Number
from cmdpax.learners.statistics import Knowledge
from cmdpax.model.sampling import dirichlet
from cmdpax.model.transitions import Successors

_LARGEST_VARIANCE = 0.25  # of an observation in [0, 1]


def with_bonuses(
    estimates: Estimates,
    bonus: Float[Array, "H S A"],
    constraint_bonuses: Float[Array, "H I S A"],
    pessimism: Float[Array, " I"],
) -> Model:
    """max V_{r̂ + b + Σ_i λ_i κ b^u_i} subject to V_{û_i - κ b^u_i} ≥ c_i, under p̂."""
    reduced = pessimism[None, :, None, None] * constraint_bonuses
    gained = jnp.einsum("i,hisa->hsa", estimates.multipliers, reduced)
    rewards = estimates.signals[:, :1] + (bonus + gained)[:, None]
    signals = jnp.concatenate([rewards, estimates.signals[:, 1:] - reduced], axis=1)
    return estimates.transitions, signals


def count_bonus(estimates: Estimates, scale: Number) -> Float[Array, "H S A"]:
    """scale/√(n ∨ 1)."""
    return scale / jnp.sqrt(estimates.visits)


def bernstein_bonus(
    estimates: Estimates,
    weights: Float[Array, "L J"],
    deviation: Number,
    rest: Number,
) -> Float[Array, "H L S A"]:
    """min(a √(Var_p̂(V)/n) + b (H - h) Λ/n, (H - h) Λ) of each of several sums of signals.

    Args:
        estimates: the estimates.
        weights: of the signals in each sum, such as (1, λ); Λ is the sum of a row.
        deviation: a.
        rest: b.
    """
    horizon = estimates.signals.shape[0]
    values = jnp.einsum("lj,hjs->lhs", weights, estimates.next_values)
    variance = jax.vmap(lambda one: _variance(estimates, one))(values)
    variance = jnp.moveaxis(variance, 0, 1)
    steps = jnp.arange(horizon - 1, -1, -1, dtype=variance.dtype)  # H - h
    ranges = steps[:, None] * jnp.sum(jnp.abs(weights), axis=-1)[None]
    deviations = jnp.sqrt(variance)
    if estimates.variances is not None:
        observed = jnp.sqrt(estimates.variances)
        deviations = deviations + jnp.einsum("lj,hjsa->hlsa", jnp.abs(weights), observed)
        ranges = ranges + jnp.sum(jnp.abs(weights), axis=-1)[None]
    visits, ranges = estimates.visits[:, None], ranges[:, :, None, None]
    return jnp.minimum(deviation * deviations / jnp.sqrt(visits) + rest * ranges / visits, ranges)


def posterior_bonus(
    key: Key[Array, ""], knowledge: Knowledge, estimates: Estimates, prior: Number
) -> Float[Array, "H S A"]:
    """⟨p̃ - p̂, V⟩ of the Lagrangian, and a draw of its rewards where they are estimated."""
    first, second = jax.random.split(key)
    values = jnp.einsum("j,hjs->hs", estimates.weights, estimates.next_values)
    drawn = sample_rows(first, knowledge, estimates.counts, prior)
    bonus = _expected(estimates, drawn - estimates.rows, values)
    if estimates.variances is None:
        return bonus
    noise = sample_noise(second, knowledge, estimates)
    return bonus + jnp.einsum("j,hjsa->hsa", estimates.weights, noise)


def sample_rows(
    key: Key[Array, ""],
    knowledge: Knowledge,
    counts: Float[Array, "H S A T"],
    prior: Number,
) -> Float[Array, "H S A T"]:
    """Rows p̃ ~ Dirichlet(counts + prior/T); T counts the states that may follow."""
    valid = jnp.ones(counts.shape, bool)
    if knowledge.support is not None:
        valid = jnp.broadcast_to(knowledge.support >= 0, counts.shape)
    length = jnp.sum(valid, axis=-1, keepdims=True).astype(counts.dtype)
    return dirichlet(key, counts + prior / length, valid)


def sample_noise(
    key: Key[Array, ""], knowledge: Knowledge, estimates: Estimates
) -> Float[Array, "H J S A"]:
    """Draws around the mean observations: normal, of variance (n σ² + 1/4)/(n + 1)²."""
    assert estimates.variances is not None
    visits = estimates.visits[:, None]
    spread = jnp.sqrt(visits * estimates.variances + _LARGEST_VARIANCE) / (visits + 1)
    shape = (knowledge.num_tables, *spread.shape[1:])  # the steps share what they share
    return jax.random.normal(key, shape, spread.dtype) * spread


def sampled_transitions(
    key: Key[Array, ""], knowledge: Knowledge, estimates: Estimates, prior: Number
) -> Array | Successors:
    """p̃ in the storage of p̂."""
    drawn = sample_rows(key, knowledge, estimates.counts, prior)
    if isinstance(estimates.transitions, Successors):
        return estimates.transitions._replace(probabilities=drawn)
    return drawn


def _expected(
    estimates: Estimates, rows: Float[Array, "_ S A T"], values: Float[Array, "H S"]
) -> Float[Array, "H S A"]:
    """Σ_t rows(t) V_{h+1}(t)."""
    return jnp.sum(rows * estimates.following(values), axis=-1)


def _variance(estimates: Estimates, values: Float[Array, "H S"]) -> Float[Array, "H S A"]:
    """Var_p̂(V_{h+1}) of every pair."""
    following, rows = estimates.following(values), estimates.rows
    mean = jnp.sum(rows * following, axis=-1)
    return jnp.maximum(jnp.sum(rows * (following - mean[..., None]) ** 2, axis=-1), 0)
