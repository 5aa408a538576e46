"""What a learner makes of its episodes: counts, the empirical model, and optimism, Eqs. (8)-(9).

After k - 1 episodes, with n_h(s, a) visits,

    p̄_h(t | s, a) = (visits that went to t) / (n ∨ 1),      r̄, ū = mean observations (over n ∨ 1),

and the optimistic model adds bonuses that shrink with the visits:

    r̂ = r̄ + b,    û = ū + b,    ψ̂ = ψ + b^p log A,    p̂ = p̄,      b = b^r + b^p,

where every bonus of the paper has the form (a number) / √(n ∨ 1). Only H rows of the model change
per episode, so the rows are updated and nothing of size S·A·S is computed anew.
"""

import dataclasses
import math
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.errors import ParameterError, nearest_name
from cmdpax.model import Sizes


class Trajectory(NamedTuple):
    """One episode, as the learner sees it."""

    states: Integer[Array, " H+1"]
    actions: Integer[Array, " H"]
    rewards: Float[Array, " H"]
    constraint_rewards: Float[Array, "I H"]


# --------------------------------------------------------------------------------------- optimism


@dataclasses.dataclass(frozen=True)
class Optimism:
    """How optimistic a learner is, and what it knows. Use a profile, and change what differs.

    Attributes:
        bonus: "theory" (the appendix' constants) or "count" (b = b^p = scale/√(n ∨ 1)).
        scale: multiplies the bonuses.
        rewards: "known" or "estimated".
        unvisited_rows: p̂ where n = 0: "zero" (0/1, as printed) or "uniform".
        unvisited_rewards: r̂ and û where n = 0 and rewards are estimated; None is 0 plus the bonus.
        num_episodes: K in the theory's constants.
        failure_probability: δ in the theory's constants.
    """

    bonus: str = "count"
    scale: float = 0.08
    rewards: str = "known"
    unvisited_rows: str = "uniform"
    unvisited_rewards: float | None = None
    num_episodes: int | None = None
    failure_probability: float = 0.1

    def __post_init__(self) -> None:
        """Refuse choices that do not exist."""
        choices = {
            "bonus": ("theory", "count"),
            "rewards": ("known", "estimated"),
            "unvisited_rows": ("zero", "uniform"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                hint = nearest_name(str(getattr(self, name)), known)
                raise ParameterError(f"optimism's {name} is {getattr(self, name)!r}; {hint}.")
        if not (math.isfinite(self.scale) and self.scale >= 0):
            raise ParameterError(f"optimism's scale is {self.scale}, it must not be negative.")
        if self.bonus == "theory" and not (self.num_episodes and self.num_episodes > 0):
            raise ParameterError(
                "the theory's bonuses need num_episodes, the K of their logarithms."
            )
        if not 0 < self.failure_probability < 1:
            raise ParameterError(
                f"failure_probability is {self.failure_probability}, it must be between 0 and 1."
            )

    @classmethod
    def theory(
        cls, num_episodes: int, failure_probability: float = 0.1, scale: float = 1.0
    ) -> "Optimism":
        """The paper's analysis: its constants, rewards estimated, unvisited rows zero."""
        return cls(
            bonus="theory",
            scale=scale,
            rewards="estimated",
            unvisited_rows="zero",
            num_episodes=num_episodes,
            failure_probability=failure_probability,
        )

    @classmethod
    def empirical(cls, scale: float = 0.08) -> "Optimism":
        """The paper's simulations: rewards known, unvisited rows uniform."""
        return cls(scale=scale)

    @classmethod
    def live(cls, scale: float = 0.3) -> "Optimism":
        """Practice without known rewards: they are 1 where nothing was tried."""
        return cls(scale=scale, rewards="estimated", unvisited_rewards=1.0)

    def replace(self, **changes: Any) -> "Optimism":
        """The same with some choices changed."""
        return dataclasses.replace(self, **changes)

    def _asdict(self) -> dict[str, Any]:
        """The choices by name."""
        return dataclasses.asdict(self)

    def numbers(self, sizes: Sizes) -> "Bonuses":
        """The choices as numbers: b^r = reward/√(n ∨ 1), b^p = transition/√(n ∨ 1)."""
        num_constraints, horizon, num_states, num_actions = sizes
        reward, transition = 0.0, 1.0
        if self.bonus == "theory":
            # Appendix: δ' = δ/3, b^r = √(½ log(2SAH(I+1)K/δ')), b^p = H √(2S + 2 log(SAHK/δ')).
            pairs = num_states * num_actions * horizon * (self.num_episodes or 1)
            delta = self.failure_probability / 3
            reward = math.sqrt(0.5 * math.log(2 * pairs * (num_constraints + 1) / delta))
            transition = horizon * math.sqrt(2 * num_states + 2 * math.log(pairs / delta))
        uniform = self.unvisited_rows == "uniform"
        unvisited = self.unvisited_rewards
        return Bonuses(
            reward=self.scale * reward,
            transition=self.scale * transition,
            unvisited_row=1.0 / num_states if uniform else 0.0,
            unvisited_reward=math.nan if unvisited is None else float(unvisited),
        )


class Bonuses(NamedTuple):
    """An `Optimism` as numbers that may be traced: one program serves them all."""

    reward: Any  # b^r √(n ∨ 1)
    transition: Any  # b^p √(n ∨ 1)
    unvisited_row: Any  # p̂ where n = 0
    unvisited_reward: Any  # r̂, û where n = 0; NaN: 0 plus the bonus


# -------------------------------------------------------------------------------------- statistics


_SHORT_HORIZON = 16

Rows: TypeAlias = Array | tuple[Array, ...]
"""`[H, S, A, T]`; for a short horizon a tuple of H arrays `[S, A, T]`, each changed in place."""


def is_short(horizon: int) -> bool:
    """Whether the steps of a horizon are compiled one by one, each with arrays of its own.

    A slice of a large array is copied before it is multiplied, an array is not.
    """
    return horizon <= _SHORT_HORIZON


class Statistics(NamedTuple):
    """Counts and sums of the episodes so far, Eq. (8), and the rows p̂ made of them."""

    visits: Integer[Array, "H S A"]
    transition_counts: Any  # Rows of integers
    transitions: Any  # Rows: p̂
    reward_sums: Float[Array, "H J S A"] | None  # signal 0 is the reward; None: known


def empty_statistics(sizes: Sizes, bonuses: Bonuses, known: bool, dtype: Any) -> Statistics:
    """Statistics of no episode."""
    num_constraints, horizon, num_states, num_actions = sizes
    pairs = (horizon, num_states, num_actions)
    counts = jnp.zeros((*pairs, num_states), jnp.int32)
    rows = jnp.broadcast_to(jnp.asarray(bonuses.unvisited_row, dtype), counts.shape)
    short = is_short(horizon)
    return Statistics(
        visits=jnp.zeros(pairs, jnp.int32),
        transition_counts=tuple(counts) if short else counts,
        transitions=tuple(rows) if short else rows,
        reward_sums=None
        if known
        else jnp.zeros((horizon, 1 + num_constraints, num_states, num_actions), dtype),
    )


def record(statistics: Statistics, trajectory: Trajectory) -> Statistics:
    """Count an episode: H rows change."""
    steps = jnp.arange(statistics.visits.shape[0])
    states, actions, successors = trajectory.states[:-1], trajectory.actions, trajectory.states[1:]
    at = (steps, states, actions)
    visits = statistics.visits.at[at].add(1)
    counts, rows = statistics.transition_counts, statistics.transitions
    if isinstance(counts, tuple):
        counts, rows = _count_by_step(counts, rows, visits, trajectory)
    else:
        counts = counts.at[(*at, successors)].add(1)
        rows = rows.at[at].set(_means(counts[at], visits[at], rows.dtype))
    sums = statistics.reward_sums
    if sums is not None:
        observed = jnp.vstack([trajectory.rewards[None], trajectory.constraint_rewards])
        sums = sums.at[steps, :, states, actions].add(observed.T)
    return Statistics(visits, counts, rows, sums)


def _count_by_step(
    counts: tuple[Array, ...], rows: Rows, visits: Array, trajectory: Trajectory
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The same, where every step has arrays of its own."""
    new_counts, new_rows = [], []
    for step, (count, row) in enumerate(zip(counts, rows, strict=True)):
        at = (trajectory.states[step], trajectory.actions[step])
        count = count.at[(*at, trajectory.states[step + 1])].add(1)
        new_counts.append(count)
        new_rows.append(row.at[at].set(_means(count[at], visits[(step, *at)], row.dtype)))
    return tuple(new_counts), tuple(new_rows)


def _means(counts: Array, visits: Array, dtype: Any) -> Array:
    return counts.astype(dtype) / visits.astype(dtype)[..., None]


# -------------------------------------------------------------------------------- optimistic model


class OptimisticModel(NamedTuple):
    """r̂ and û (stacked), p̂ and b^p of Eq. (9)."""

    signals: Float[Array, "H J S A"]  # r̂, û_1, …
    transitions: Rows  # p̂
    transition_bonus: Float[Array, "H S A"]  # b^p


def optimistic_model(
    statistics: Statistics, bonuses: Bonuses, known: Float[Array, "H J S A"] | None
) -> OptimisticModel:
    """The optimistic model of the episodes counted so far, Eq. (9)."""
    dtype = jnp.result_type(bonuses.transition)
    visits = jnp.maximum(statistics.visits, 1).astype(dtype)  # n ∨ 1
    shrinking = 1 / jnp.sqrt(visits)
    transition_bonus = bonuses.transition * shrinking
    bonus = (bonuses.reward + bonuses.transition) * shrinking
    if known is not None:
        return OptimisticModel(known + bonus[:, None], statistics.transitions, transition_bonus)
    assert statistics.reward_sums is not None
    signals = statistics.reward_sums / visits[:, None] + bonus[:, None]
    untried = (statistics.visits == 0) & ~jnp.isnan(bonuses.unvisited_reward)
    signals = jnp.where(untried[:, None], bonuses.unvisited_reward, signals)
    return OptimisticModel(signals, statistics.transitions, transition_bonus)
