"""What a learner knows, and what it makes of its episodes: counts and a model, Eqs. (8)-(9).

After k - 1 episodes, with n_h(s, a) visits,

    p̄_h(t | s, a) = (visits that went to t) / (n ∨ 1),      r̄, ū = mean observations (over n ∨ 1),

and the optimistic model adds bonuses that shrink with the visits:

    r̂ = r̄ + b,    û = ū + b,    ψ̂ = ψ + b^p log A,    p̂ = p̄.

Only H rows of the model change per episode, so the rows are updated and nothing of size S·A·S is
computed anew. Where the states that may follow are listed, a row has one entry per listed state.
"""

from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer

from cmdpax.learners.optimism import Bonuses
from cmdpax.model.availability import uniform_log_policy
from cmdpax.model.cmdp import Sizes
from cmdpax.model.log import Log
from cmdpax.model.transitions import (
    Successors,
    Transposed,
    at_step,
    backup_signals,
    row_at,
)


class Baseline(NamedTuple):
    """A policy that is known to be safe, and how safe it is."""

    policy: Float[Array, "H S A"]  # π_0
    constraint_values: Float[Array, " I"]  # V_u of it in the true model


class Knowledge(NamedTuple):
    """What a learner knows before its first episode."""

    sizes: Sizes
    initial: Float[Array, " S"]  # μ
    thresholds: Float[Array, " I"]  # c
    signals: Float[Array, "H J S A"] | None  # r and u, where they are known
    support: Integer[Array, "_ S A N"] | None  # the states that may follow, if listed; -1: none
    bonuses: Bonuses
    stationary: bool = False  # the model is the same at every step: counts are shared by the steps
    num_episodes: Integer[Array, ""] | None = None  # K, for an algorithm that is not anytime
    available: Bool[Array, "_ S A"] | None = None  # the actions that may be played; None: all
    baseline: Baseline | None = None  # for an algorithm that needs one

    @property
    def num_tables(self) -> int:
        """How many tables of counts there are: one per step, or one for all."""
        return 1 if self.stationary else self.sizes.horizon

    @property
    def row_length(self) -> int:
        """The entries of a row of transitions: S, or the slots of the lists."""
        lists = self.support
        return self.sizes.num_states if lists is None else int(lists.shape[-1])

    @property
    def uniform_log_policy(self) -> Float[Array, "H S A"]:
        """log π of the policy that is uniform over the available actions: where learners begin."""
        return uniform_log_policy(self.sizes[1:], self.available, self.initial.dtype)


Trajectory: TypeAlias = Log
"""One episode, as the learner sees it: states `[H+1]`, actions and rewards `[H]`, constraint
rewards `[I, H]`.

Where a live system cut it short, the steps that did not happen have action A: no table has a place
for it, and JAX drops what is written there, so that nothing is counted.
"""


# -------------------------------------------------------------------------------------- statistics


_SHORT_HORIZON = 16

Rows: TypeAlias = Array | tuple[Array, ...]
"""One array for all steps, or for a short horizon a tuple of arrays, each changed in place."""


def is_short(horizon: int) -> bool:
    """Whether the steps of a horizon are compiled one by one, each with arrays of its own.

    A slice of a large array is copied before it is multiplied, an array is not.
    """
    return horizon <= _SHORT_HORIZON


class Statistics(NamedTuple):
    """Counts and sums of the episodes so far, Eq. (8), and the rows p̂ made of them.

    H is 1 where the steps share their counts. Where and how transitions are kept is nobody's
    business but this module's: `empirical_model`, `optimistic_model` and `transition_counts` read
    them, and the shapes of what they return are always the same.
    """

    visits: Integer[Array, "H S A"]
    storage: tuple[Any, Any]  # counts and rows of p̂: see `_empty_storage`
    reward_sums: Float[Array, "H J S A"] | None  # signal 0 is the reward; None: known
    square_sums: Float[Array, "H J S A"] | None = None  # of the observations, where they are kept


class Counted(NamedTuple):
    """What several episodes of one policy add to the statistics, however many they are."""

    transitions: Integer[Array, "H S A T"]  # T as `Knowledge.row_length`
    sums: Float[Array, "H J S A"] | None  # of the observed signals; None: known
    squares: Float[Array, "H J S A"] | None


def empty_statistics(knowledge: Knowledge, *, of_stretches: bool = False) -> Statistics:
    """Statistics of no episode.

    Args:
        knowledge: what the learner knows.
        of_stretches: whether `add` will count many episodes at once; then counts are as wide as
            integers get, and the squares of the observations are kept too.
    """
    num_constraints, _, num_states, num_actions = knowledge.sizes
    num_tables, dtype = knowledge.num_tables, knowledge.initial.dtype
    integer = jnp.result_type(int) if of_stretches else jnp.int32
    sums = None
    if knowledge.signals is None:
        sums = jnp.zeros((num_tables, 1 + num_constraints, num_states, num_actions), dtype)
    return Statistics(
        visits=jnp.zeros((num_tables, num_states, num_actions), integer),
        storage=_empty_storage(knowledge, integer, whole=of_stretches),
        reward_sums=sums,
        square_sums=sums if of_stretches else None,
    )


def _empty_storage(knowledge: Knowledge, integer: Any, whole: bool) -> tuple[Rows, Rows]:
    """Counts and p̂ before the first episode.

    Rows have T = S entries, or one per slot of the lists of states that may follow. Counts are
    `[S, A, T]` per step. The rows of p̂ are kept as their products with values are fastest:
    `[T, S, A]` per step, lists `[S, A, T]`.
    """
    _, _, num_states, num_actions = knowledge.sizes
    support, dtype = knowledge.support, knowledge.initial.dtype
    mass = jnp.asarray(knowledge.bonuses.unvisited_mass, dtype)
    num_tables, row_length = knowledge.num_tables, knowledge.row_length
    pairs = (num_tables, num_states, num_actions)
    if support is None:
        rows = jnp.broadcast_to(mass / num_states, (num_tables, num_states, *pairs[1:]))
    else:
        valid = jnp.broadcast_to(support >= 0, (*pairs, row_length)).astype(dtype)
        rows = mass * valid / jnp.sum(valid, axis=-1, keepdims=True)
    counts = jnp.zeros((*pairs, row_length), integer)
    short = is_short(knowledge.sizes.horizon) and not (knowledge.stationary or whole)
    return (tuple(counts), tuple(rows)) if short else (counts, rows)


def record(knowledge: Knowledge, statistics: Statistics, trajectory: Trajectory) -> Statistics:
    """Count an episode: H rows change."""
    steps = jnp.arange(knowledge.sizes.horizon)
    if knowledge.stationary:
        steps = jnp.zeros_like(steps)
    states, actions = trajectory.states[:-1], trajectory.actions
    at = (steps, states, actions)
    visits = statistics.visits.at[at].add(1)
    entries = _entries(knowledge.support, trajectory)
    counts, rows = statistics.storage
    listed = knowledge.support is not None
    if isinstance(counts, tuple):
        each = [
            _count(count, row, visits[step], states[step], actions[step], entries[step], listed)
            for step, (count, row) in enumerate(zip(counts, rows, strict=True))
        ]
        counts, rows = (tuple(new) for new in zip(*each, strict=True))
    else:
        counts = counts.at[(*at, entries)].add(1)
        means = _means(counts[at], visits[at], rows.dtype)
        rows = rows.at[at if listed else (steps, slice(None), states, actions)].set(means)
    sums, squares = statistics.reward_sums, statistics.square_sums
    if sums is not None:
        observed = jnp.vstack([trajectory.rewards[None], trajectory.constraint_rewards]).T
        sums = sums.at[steps, :, states, actions].add(observed)
        if squares is not None:
            squares = squares.at[steps, :, states, actions].add(observed**2)
    return Statistics(visits, (counts, rows), sums, squares)


def add(knowledge: Knowledge, statistics: Statistics, counted: Counted) -> Statistics:
    """Count a stretch of episodes at once; the statistics are those `of_stretches`."""
    if knowledge.stationary:
        counted = jax.tree.map(lambda array: array.sum(axis=0, keepdims=True), counted)
    before, rows = statistics.storage
    counts = before + counted.transitions
    visits = counts.sum(axis=-1)
    means = counts.astype(rows.dtype) / jnp.maximum(visits, 1).astype(rows.dtype)[..., None]
    tried = (visits > 0)[..., None]
    if knowledge.support is None:
        means, tried = (jnp.moveaxis(array, -1, 1) for array in (means, tried))
    sums, squares = statistics.reward_sums, statistics.square_sums
    if sums is not None and squares is not None:
        assert counted.sums is not None
        assert counted.squares is not None
        sums, squares = sums + counted.sums, squares + counted.squares
    return Statistics(visits, (counts, jnp.where(tried, means, rows)), sums, squares)


def rescale_signals(
    statistics: Statistics, slopes: Float[Array, " J"], offsets: Float[Array, " J"]
) -> Statistics:
    """The statistics of observations slope · x + offset, where they were those of x."""
    sums, squares = statistics.reward_sums, statistics.square_sums
    if sums is None:
        return statistics
    slope, offset = (array[None, :, None, None] for array in (slopes, offsets))
    visits = statistics.visits[:, None].astype(sums.dtype)
    moved = slope * sums + offset * visits
    if squares is not None:
        squares = slope**2 * squares + 2 * slope * offset * sums + offset**2 * visits
    return statistics._replace(reward_sums=moved, square_sums=squares)


def _count(
    count: Array, row: Array, visits: Array, state: Array, action: Array, entry: Array, listed: bool
) -> tuple[Array, Array]:
    """Count one step of an episode, in arrays of that step."""
    count = count.at[state, action, entry].add(1)
    means = _means(count[state, action], visits[state, action], row.dtype)
    place = (state, action) if listed else (slice(None), state, action)
    return count, row.at[place].set(means)


def _means(counts: Array, visits: Array, dtype: Any) -> Array:
    return counts.astype(dtype) / visits.astype(dtype)[..., None]


def _entries(support: Array | None, trajectory: Trajectory) -> Integer[Array, " H"]:
    """Which entry of its row each transition of an episode belongs to."""
    following = trajectory.states[1:]
    if support is None:
        return following

    def slot(step: Array, state: Array, action: Array, successor: Array) -> Array:
        return jnp.argmax(row_at(support, step, state, action) == successor).astype(jnp.int32)

    steps = jnp.arange(following.shape[0])
    return jax.vmap(slot)(steps, trajectory.states[:-1], trajectory.actions, following)


# -------------------------------------------------------------------------------- optimistic model


class OptimisticModel(NamedTuple):
    """r̂ and û (stacked), p̂ and b^p of Eq. (9)."""

    signals: Float[Array, "H J S A"]  # r̂, û_1, …
    transitions: Any  # p̂: `Transposed` or `Successors`, all steps or a tuple of steps
    transition_bonus: Float[Array, "H S A"]  # b^p
    available: Bool[Array, "_ S A"] | None = None  # the actions that may be played; None: all

    def expected_next(
        self, step: int | Integer[Array, ""], values: Float[Array, "L S"]
    ) -> Float[Array, "L S A"]:
        """Σ_t p̂_h(t | s, a) V(t) of several functions of the state, h = step + 1.

        With a short horizon each step has arrays of its own, so that the step must be a number.
        """
        return backup_signals(at_step(self.transitions, step), values)


def optimistic_model(knowledge: Knowledge, statistics: Statistics) -> OptimisticModel:
    """The optimistic model of the episodes counted so far, Eq. (9)."""
    bonuses, (_, *pairs) = knowledge.bonuses, knowledge.sizes
    dtype = jnp.result_type(bonuses.transition)
    visits = jnp.maximum(statistics.visits, 1).astype(dtype)  # n ∨ 1
    shrinking = jnp.broadcast_to(1 / jnp.sqrt(visits), pairs)
    transition_bonus = bonuses.transition * shrinking
    bonus = (bonuses.reward + bonuses.transition) * shrinking
    transitions = _transitions(knowledge.support, statistics.storage[1])
    if knowledge.signals is not None:
        signals = knowledge.signals + bonus[:, None]
        return OptimisticModel(signals, transitions, transition_bonus, knowledge.available)
    assert statistics.reward_sums is not None
    signals = statistics.reward_sums / visits[:, None] + bonus[:, None]
    untried = (statistics.visits == 0) & ~jnp.isnan(bonuses.unvisited_reward)
    signals = jnp.where(untried[:, None], bonuses.unvisited_reward, signals)
    return OptimisticModel(signals, transitions, transition_bonus, knowledge.available)


def empirical_model(knowledge: Knowledge, statistics: Statistics) -> OptimisticModel:
    """The model of the episodes counted so far without a bonus: r̄ and ū (or r and u), and p̄."""
    zero = jnp.zeros((), knowledge.initial.dtype)
    plain = knowledge.bonuses._replace(reward=zero, transition=zero)
    return optimistic_model(knowledge._replace(bonuses=plain), statistics)


def counts_of_rows(statistics: Statistics) -> Integer[Array, "H S A T"]:
    """How often each entry of each row followed; H is 1 where the steps share their counts."""
    counts, _ = statistics.storage
    return jnp.stack(counts) if isinstance(counts, tuple) else counts


def means_of_rows(knowledge: Knowledge, statistics: Statistics) -> Float[Array, "H S A T"]:
    """The rows of p̄ entry by entry; H is 1 where the steps share their counts."""
    rows = statistics.storage[1]
    together = jnp.stack(rows) if isinstance(rows, tuple) else rows
    return together if knowledge.support is not None else jnp.moveaxis(together, 1, -1)


def transition_counts(knowledge: Knowledge, statistics: Statistics) -> Integer[Array, "H S A S"]:
    """How often each state followed, `[H, S, A, S]`; H is 1 where the steps share their counts."""
    counts = counts_of_rows(statistics)
    if knowledge.support is None:
        return counts
    successors = jnp.broadcast_to(jnp.maximum(knowledge.support, 0), counts.shape)
    places = jnp.indices(counts.shape[:3], sparse=True)
    empty = jnp.zeros((*counts.shape[:3], knowledge.sizes.num_states), counts.dtype)
    return empty.at[(*(place[..., None] for place in places), successors)].add(counts)


def _transitions(support: Array | None, rows: Rows) -> Any:
    """The rows of p̂ in the storage that they have."""
    if support is None:
        return tuple(map(Transposed, rows)) if isinstance(rows, tuple) else Transposed(rows)
    lists = jnp.maximum(support, 0)
    if not isinstance(rows, tuple):
        return Successors(lists, rows)
    return tuple(Successors(at_step(lists, step), row) for step, row in enumerate(rows))
