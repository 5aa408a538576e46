"""What exploring is worth to a learner that plans: bonuses for the Lagrangian.

What is worth exploring is r + λᵀu, with the λ of the last plan, so the whole bonus goes to the
objective, and the constraints stay estimates. With V = V_{h+1} of r + λᵀu under the last plan and
p̂, n visits and Λ = 1 + ‖λ‖₁, the bonus of a pair (s, a) at step h is

    posterior    w √log(1 + k) ⟨p̃ - p̂, V⟩ + w' log(1 + k) span(V)/n,   p̃ ~ posterior, per plan
    bernstein    min(a √(Var_p̂(V)/n) + b (H - h) Λ/n, (H - h) Λ)
    count        Λ · scale/√n
    none         0

with n ∨ 1 for n, or what an estimate is worth where the steps share what they have in common;
span(V) is the range of V over the states that may follow (s, a). The draw explores what may be
better than it looks, in proportion to how likely that is; the span tries what was hardly tried at
all, however its draw comes out. Both grow slowly with k: plans become rarer, and a draw that is
unlucky at all of them would cost a share of all episodes. Where rewards are estimated from what
was observed, their own uncertainty is added: for `bernstein` their standard errors and ranges, for
`posterior` a normal draw around each mean.

Pessimism κ plans with û - κ b^u, where b^u_i is scale/√n for `count`, and otherwise
min(√(Var_p̂(V_{u_i})/n) + (H - h)/n, H - h), with twice the deviation where the steps share counts:
then their errors add up. The objective gains Σ_i λ_i κ b^u_i, so that the Lagrangian stays as
optimistic as it was. A negative κ is optimism in the constraints. Where nothing is feasible, each
constraint has its own bonus, as above with u_i for r + λᵀu: what is worth exploring is then whether
it can be met.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from cmdpax.learners.estimates import Estimates, RowPosterior, valid_slots, with_probabilities
from cmdpax.learners.replanner import Model, Number
from cmdpax.learners.statistics import Knowledge
from cmdpax.model.sampling import dirichlet
from cmdpax.model.transitions import Transitions

_SMALLEST = 1e-300  # concentration of a Dirichlet distribution


def with_bonuses(
    estimates: Estimates,
    bonuses: Float[Array, "H J S A"],
    constraint_bonuses: Float[Array, "H I S A"],
    pessimism: Float[Array, " I"],
) -> Model:
    """max V_{r̂ + b + Σ_i λ_i κ b^u_i} subject to V_{û_i - κ b^u_i} ≥ c_i, under p̂.

    Args:
        estimates: the estimates.
        bonuses: of the Lagrangian, and of every constraint by itself.
        constraint_bonuses: b^u.
        pessimism: κ.
    """
    reduced = pessimism[None, :, None, None] * constraint_bonuses
    gained = jnp.einsum("i,hisa->hsa", estimates.multipliers, reduced)
    rewards = estimates.signals[:, :1] + bonuses[:, :1] + gained[:, None]
    signals = jnp.concatenate([rewards, estimates.signals[:, 1:] - reduced], axis=1)
    return Model(estimates.transitions, signals, estimates.signals[:, 1:] + bonuses[:, 1:])


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
    variance = jax.vmap(lambda one: _variance(estimates, one), out_axes=1)(
        _sums(estimates, weights)
    )
    steps = jnp.arange(horizon - 1, -1, -1, dtype=variance.dtype)  # H - h
    ranges = steps[:, None] * jnp.sum(jnp.abs(weights), axis=-1)[None]
    errors = jnp.sqrt(variance / estimates.visits[:, None])
    if estimates.errors is not None:
        observed = jnp.hypot(*estimates.errors)
        errors = errors + jnp.einsum("lj,hjsa->hlsa", jnp.abs(weights), observed)
        ranges = ranges + jnp.sum(jnp.abs(weights), axis=-1)[None]
    visits, ranges = estimates.visits[:, None], ranges[:, :, None, None]
    return jnp.minimum(deviation * errors + rest * ranges / visits, ranges)


def posterior_bonus(
    key: Key[Array, ""],
    knowledge: Knowledge,
    estimates: Estimates,
    weights: Float[Array, "L J"],
    prior: Number,
) -> Float[Array, "H L S A"]:
    """⟨p̃ - p̂, V⟩ of several sums of signals, and draws of the signals where they are estimated."""
    first, second = jax.random.split(key)
    drawn = sample_rows(first, knowledge, estimates.rows, prior) - estimates.probabilities
    bonus = jnp.stack(
        [jnp.sum(drawn * estimates.following(one), axis=-1) for one in _sums(estimates, weights)], 1
    )
    if estimates.errors is None:
        return bonus
    return bonus + jnp.einsum("lj,hjsa->hlsa", weights, sample_noise(second, estimates))


def span_bonus(
    knowledge: Knowledge, estimates: Estimates, weights: Float[Array, "L J"]
) -> Float[Array, "H L S A"]:
    """span(V)/n, where span(V) is what a visit may change at most."""
    valid = valid_slots(knowledge) > 0

    def span(values: Float[Array, "H S"]) -> Float[Array, "H S A"]:
        following = estimates.following(values)
        largest = jnp.max(jnp.where(valid, following, -jnp.inf), axis=-1)
        return largest - jnp.min(jnp.where(valid, following, jnp.inf), axis=-1)

    spans = [span(one) / estimates.visits for one in _sums(estimates, weights)]
    return jnp.stack(spans, axis=1)


def sample_rows(
    key: Key[Array, ""], knowledge: Knowledge, rows: RowPosterior, prior: Number
) -> Float[Array, "H S A T"]:
    """Rows p̃ of the posterior; T counts the states that may follow."""
    valid = valid_slots(knowledge)
    smallest = prior / jnp.sum(valid, axis=-1, keepdims=True)
    shape = rows.counts.shape
    if rows.common is None or rows.concentration is None:
        return dirichlet(key, rows.counts + smallest, jnp.broadcast_to(valid > 0, shape))
    first, second = jax.random.split(key)
    common = dirichlet(first, rows.common + smallest, valid > 0)
    drawn = jnp.maximum(rows.concentration * common, _SMALLEST)
    return dirichlet(second, rows.counts + drawn, jnp.broadcast_to(valid > 0, shape))


def sample_noise(key: Key[Array, ""], estimates: Estimates) -> Float[Array, "_ J S A"]:
    """Normal draws around the mean observations; the steps share what they share."""
    assert estimates.errors is not None
    common, own = estimates.errors
    first, second = jax.random.split(key)
    together = jax.random.normal(first, (1, *own.shape[1:]), own.dtype)
    return common * together + own * jax.random.normal(second, own.shape, own.dtype)


def sampled_transitions(
    key: Key[Array, ""], knowledge: Knowledge, estimates: Estimates, prior: Number
) -> Transitions:
    """p̃ in the storage of p̂."""
    drawn = sample_rows(key, knowledge, estimates.rows, prior)
    return with_probabilities(estimates.transitions, drawn)


def _sums(estimates: Estimates, weights: Float[Array, "L J"]) -> Float[Array, "L H S"]:
    """V_{h+1} of weighted sums of signals."""
    return jnp.einsum("lj,hjs->lhs", weights, estimates.next_values)


def _variance(estimates: Estimates, values: Float[Array, "H S"]) -> Float[Array, "H S A"]:
    """Var_p̂(V_{h+1}) of every pair."""
    following, rows = estimates.following(values), estimates.probabilities
    mean = jnp.sum(rows * following, axis=-1)
    return jnp.maximum(jnp.sum(rows * (following - mean[..., None]) ** 2, axis=-1), 0)
