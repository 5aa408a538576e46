"""What exploring is worth to a learner that plans.

What is worth exploring is r + λᵀu, with the λ of the last plan; the constraints stay what the
counts say. With V = V_{h+1} of r + λᵀu under the last plan and p̂, n visits, and Λ = 1 + ‖λ‖₁,
`bernstein` and `count` add a bonus to the objective,

    bernstein    min(a √(Var_p̂(V)/n) + b (H - h) Λ/n, (H - h) Λ)
    count        Λ · scale/√n
    none         0

with n ∨ 1 for n, or what an estimate is worth where the steps share what they have in common.
A bonus is earned at every visit, and in a long episode a learner may earn it again and again and
go nowhere. So `posterior` adds nothing, and moves the rows that it plans in instead:

    p' = (1 - ε)(p̂ + w √log(1 + k) (p̃ - p̂)) + ε e_t,   ε = min(1, w' log(1 + k)/(n ∨ ¼)),

with p̃ drawn from the posterior for each plan, and e_t certain of the best state that may follow,
which is found by a backward induction in which ε of each row is free. The draw explores what may be
better than it looks, in proportion to how likely that is; the rest tries what was hardly tried at
all, however its draw comes out. Both grow slowly with k: plans become rarer, and a draw that is
unlucky at all of them would cost a share of all episodes. What this does to a constraint is taken
back to first order, to the degree that a pair has been tried:

    max V_{r̂ + λᵀg} subject to V_{û_i - g_i} ≥ c_i under p',
    g_i = n/(n + prior) ⟨p' - p̂, V_{u_i}⟩,

so that r + λᵀu is that of p', and V_u of the last plan that of p̂. Where rewards are estimated from
what was observed, their own uncertainty is added: for `bernstein` their standard errors and ranges,
for `posterior` 0.7 w √log(1 + k) of a normal draw around each mean, and the share 2ε of what is
missing to 1, with n of the observations: an unlucky first few must not look like the truth.

Pessimism κ plans with û - κ b^u, where b^u_i is scale/√n for `count`, and otherwise
min(√(Var_p̂(V_{u_i})/n) + (H - h)/n, H - h), with twice the deviation where the steps share counts:
then their errors add up. The objective gains Σ_i λ_i κ b^u_i, so that the Lagrangian stays as
optimistic as it was. A negative κ is optimism in the constraints. Where nothing is feasible, what
is worth exploring is whether each constraint can be met: each has a bonus of its own then, for
`posterior` w' log(1 + k) span(V_{u_i})/n over the states that may follow, and nothing is taken
back.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from cmdpax.learners.estimates import Estimates, RowPosterior, valid_slots, with_probabilities
from cmdpax.learners.replanner import Model, Number
from cmdpax.learners.statistics import Knowledge
from cmdpax.model.availability import flags_at, only_available
from cmdpax.model.sampling import dirichlet
from cmdpax.model.transitions import Transitions, pick_step
from cmdpax.planning.batched_induction import first_of_best

_NEVER = 0.25  # what a pair that was never tried counts as, in visits
_NOISE, _HOPE = 0.7, 2.0  # times w and w', for rewards that are estimated
_ANYTHING = 3.0  # pairs
_SMALLEST = 1e-300  # instead of 0, where it divides or is a concentration


def with_bonuses(
    estimates: Estimates,
    bonuses: Float[Array, "H J S A"],
    reduced: Float[Array, "H I S A"],
) -> Model:
    """max V_{r̂ + b + Σ_i λ_i κ b^u_i} subject to V_{û_i - κ b^u_i} ≥ c_i, under p̂.

    Args:
        estimates: the estimates.
        bonuses: of the Lagrangian, and of every constraint by itself.
        reduced: κ b^u.
    """
    of_constraints = estimates.signals[:, 1:]
    rewards = estimates.signals[:, 0] + bonuses[:, 0] + _priced(estimates, reduced)
    signals = jnp.concatenate([rewards[:, None], of_constraints - reduced], axis=1)
    return Model(estimates.transitions, signals, of_constraints + bonuses[:, 1:])


def posterior_model(
    key: Key[Array, ""],
    knowledge: Knowledge,
    estimates: Estimates,
    reduced: Float[Array, "H I S A"],
    weights: tuple[Number, Number],
    prior: Number,
) -> Model:
    """max V_{r̂ + λᵀ(g + κ b^u)} subject to V_{û_i - g_i - κ b^u_i} ≥ c_i, under p'.

    Args:
        key: of the draw.
        knowledge: what the learner knows.
        estimates: the estimates.
        reduced: κ b^u.
        weights: w and w'.
        prior: weight of the uniform prior on each row.
    """
    first, second = jax.random.split(key)
    growing = jnp.log1p(estimates.episode)
    weight, rarely = weights[0] * jnp.sqrt(growing), weights[1] * growing
    moved = _moved_rows(first, knowledge, estimates, weight, rarely, prior)
    tried = estimates.visits / (estimates.visits + prior)
    difference = moved - estimates.probabilities
    every = jnp.moveaxis(estimates.next_values, 1, 0)
    of_constraints = [_expected(difference, estimates, values) for values in every[1:]]
    spans = [_span(knowledge, estimates, values) for values in every[1:]]
    signals = estimates.signals
    hopeful = signals[:, 1:] + rarely * _stacked(spans, reduced) / estimates.visits_or_one[:, None]
    reduced = reduced + tried[:, None] * _stacked(of_constraints, reduced)
    rewards = signals[:, 0] + _priced(estimates, reduced)
    if estimates.errors is not None:
        moves = _moved_signals(second, estimates, weight, rarely)
        rewards = rewards + jnp.einsum("j,hjsa->hsa", estimates.weights, moves)
        hopeful = hopeful + moves[:, 1:]
    planned = jnp.concatenate([rewards[:, None], signals[:, 1:] - reduced], axis=1)
    return Model(with_probabilities(estimates.transitions, moved), planned, hopeful)


def doubted(knowledge: Knowledge, estimates: Estimates, doubt: Number) -> Estimates:
    """Estimates whose û are reduced by what they may be wrong; 0 where nothing was tried.

    A pair with n visits is reduced by `doubt` standard errors of û and of its row: with v the
    variance of V_{u_i} over the states that may follow, and s their range, √(n v + s²/4)/(n + 1).
    """
    of_constraints, visits = estimates.signals[:, 1:], estimates.visits
    errors = []
    for values in jnp.moveaxis(estimates.next_values, 1, 0)[1:]:
        spread, span = _variance(estimates, values), _span(knowledge, estimates, values)
        errors.append(jnp.sqrt(visits * spread + span**2 / 4) / (visits + 1))
    wrong = _stacked(errors, of_constraints)
    if estimates.errors is not None:
        wrong = wrong + estimates.errors.together[:, 1:]
        of_constraints = jnp.where(doubt > 0, _with_worse(estimates), of_constraints)
    return estimates._replace(
        signals=jnp.concatenate([estimates.signals[:, :1], of_constraints - doubt * wrong], axis=1)
    )


def _with_worse(estimates: Estimates) -> Float[Array, "H I S A"]:
    """û; where nothing was tried, twice their deviation below the mean of the pairs that were.

    Their variance counts as if three more pairs had had that of anything in [0, 1].
    """
    assert estimates.errors is not None
    of_constraints, axes = estimates.signals[:, 1:], (0, 2, 3)
    tried = jnp.broadcast_to(estimates.errors.visits[:, 1:] > 0, of_constraints.shape)
    number = jnp.sum(tried, axis=axes, keepdims=True).astype(of_constraints.dtype)
    means = jnp.sum(jnp.where(tried, of_constraints, 0), axis=axes, keepdims=True)
    mean = means / jnp.maximum(number, 1)
    squares = jnp.sum(jnp.where(tried, (of_constraints - mean) ** 2, 0), axis=axes, keepdims=True)
    deviation = jnp.sqrt((squares + _ANYTHING / 12) / (number + _ANYTHING))
    return jnp.where(tried, of_constraints, jnp.maximum(mean - 2 * deviation, 0))


def _moved_rows(
    key: Key[Array, ""],
    knowledge: Knowledge,
    estimates: Estimates,
    weight: Number,
    rarely: Number,
    prior: Number,
) -> Float[Array, "_ S A T"]:
    """p'; one row for all steps where they share their counts."""
    means = estimates.probabilities
    drawn = sample_rows(key, knowledge, estimates.rows, prior)
    rows = jnp.maximum(means + weight * (drawn - means), 0)  # w may exceed 1
    rows = rows / jnp.maximum(jnp.sum(rows, axis=-1, keepdims=True), _SMALLEST)
    share = jnp.minimum(rarely / jnp.maximum(estimates.visits, _NEVER), 1.0)
    slots = _best_successors(knowledge, estimates, share)
    tables = means.shape[0]  # the first step stands for all that share their rows
    best = jax.nn.one_hot(slots[:tables], means.shape[-1], dtype=means.dtype)
    return (1 - share[:tables, ..., None]) * rows + share[:tables, ..., None] * best


def _moved_signals(
    key: Key[Array, ""], estimates: Estimates, weight: Number, rarely: Number
) -> Float[Array, "H J S A"]:
    """What is added to estimated signals: a draw, and a share of what is missing to 1."""
    assert estimates.errors is not None
    share = jnp.minimum(_HOPE * rarely / jnp.maximum(estimates.errors.visits, _NEVER), 1.0)
    return _NOISE * weight * sample_noise(key, estimates) + share * (1 - estimates.signals)


def _best_successors(
    knowledge: Knowledge, estimates: Estimates, share: Float[Array, "H S A"]
) -> Integer[Array, "H S A"]:
    """The slots t, by backward induction for the Lagrangian where a share ε of each row is free.

    W_h(s) = max_a (r̂ + λᵀû)_h(s, a) + (1 - ε) ⟨p̂, W_{h+1}⟩ + ε W_{h+1}(t).
    """
    lagrangian = jnp.einsum("j,hjsa->hsa", estimates.weights, estimates.signals)
    valid = valid_slots(knowledge) > 0

    def step(
        values: Float[Array, " S"], at: tuple[Array, Array, Array]
    ) -> tuple[Float[Array, " S"], Integer[Array, "S A"]]:
        index, signal, free = at
        following = estimates.following_at(index, values)
        rows = pick_step(estimates.probabilities, index)
        hoped = jnp.where(pick_step(valid, index), following, -jnp.inf)
        expected = jnp.sum(rows * following, axis=-1)
        every_q = signal + (1 - free) * expected + free * jnp.max(hoped, axis=-1)
        every_q = only_available(every_q, flags_at(knowledge.available, index))
        return jnp.max(every_q, axis=-1), first_of_best(hoped, -1)

    steps = jnp.arange(share.shape[0])
    start = jnp.zeros(share.shape[1], share.dtype)
    return jax.lax.scan(step, start, (steps, lagrangian, share), reverse=True)[1]


def _priced(estimates: Estimates, signals: Float[Array, "H I S A"]) -> Float[Array, "H S A"]:
    """λᵀ of what the constraints are reduced by."""
    return jnp.einsum("i,hisa->hsa", estimates.multipliers, signals)


def _stacked(
    tables: list[Float[Array, "H S A"]], like: Float[Array, "H I S A"]
) -> Float[Array, "H I S A"]:
    """One table for each constraint; there may be none."""
    return jnp.stack(tables, axis=1) if tables else jnp.zeros_like(like)


def _expected(
    rows: Float[Array, "_ S A T"], estimates: Estimates, values: Float[Array, "H S"]
) -> Float[Array, "H S A"]:
    """⟨p, V_{h+1}⟩ of rows, or of differences between rows."""
    return jnp.sum(rows * estimates.following(values), axis=-1)


def _span(
    knowledge: Knowledge, estimates: Estimates, values: Float[Array, "H S"]
) -> Float[Array, "H S A"]:
    """The range of V over the states that may follow: what a visit may change at most."""
    valid, following = valid_slots(knowledge) > 0, estimates.following(values)
    largest = jnp.max(jnp.where(valid, following, -jnp.inf), axis=-1)
    return largest - jnp.min(jnp.where(valid, following, jnp.inf), axis=-1)


def count_bonus(estimates: Estimates, scale: Number) -> Float[Array, "H S A"]:
    """scale/√(n ∨ 1)."""
    return scale / jnp.sqrt(estimates.visits_or_one)


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
    errors = jnp.sqrt(variance / estimates.visits_or_one[:, None])
    if estimates.errors is not None:
        observed = estimates.errors.together
        errors = errors + jnp.einsum("lj,hjsa->hlsa", jnp.abs(weights), observed)
        ranges = ranges + jnp.sum(jnp.abs(weights), axis=-1)[None]
    visits, ranges = estimates.visits_or_one[:, None], ranges[:, :, None, None]
    return jnp.minimum(deviation * errors + rest * ranges / visits, ranges)


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
    common, own = estimates.errors.common, estimates.errors.own
    first, second = jax.random.split(key)
    together = jax.random.normal(first, (1, *own.shape[1:]), own.dtype)
    return common * together + own * jax.random.normal(second, own.shape, own.dtype)


def sampled_transitions(
    key: Key[Array, ""], knowledge: Knowledge, estimates: Estimates, prior: Number
) -> Transitions:
    """p̃ in the storage of p̂."""
    drawn = sample_rows(key, knowledge, estimates.rows, prior)
    return with_probabilities(estimates.transitions, drawn)


def drawn_model(
    key: Key[Array, ""], knowledge: Knowledge, estimates: Estimates, prior: Number
) -> Model:
    """One draw of the posterior: transitions, and rewards where they are estimated."""
    first, second = jax.random.split(key)
    signals = estimates.signals
    if estimates.errors is not None:
        signals = signals + sample_noise(second, estimates)
    return Model(sampled_transitions(first, knowledge, estimates, prior), signals)


def _sums(estimates: Estimates, weights: Float[Array, "L J"]) -> Float[Array, "L H S"]:
    """V_{h+1} of weighted sums of signals."""
    return jnp.einsum("lj,hjs->lhs", weights, estimates.next_values)


def _variance(estimates: Estimates, values: Float[Array, "H S"]) -> Float[Array, "H S A"]:
    """Var_p̂(V_{h+1}) of every pair."""
    following, rows = estimates.following(values), estimates.probabilities
    mean = _expected(rows, estimates, values)
    return jnp.maximum(jnp.sum(rows * (following - mean[..., None]) ** 2, axis=-1), 0)
