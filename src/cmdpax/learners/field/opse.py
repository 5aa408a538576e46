"""OPSE: one multiplier, searched for among soft policies that are cautious about the constraint.

After Kitamura, Ghosh, Kozuno, Kumagai, Kasaura, Hoshino, Hosoe and Matsuo (2025), "Provably
efficient RL under episode-wise safety in constrained MDPs with linear function approximation",
arXiv:2502.10138, Algorithm 2 and Definitions 2-3, in a tabular form; constants ours:

    for k = 1, 2, …:
        b = 1/√(n ∨ 1)                                            of the episodes before
        for any λ, backward in h:
            Q_r = r + clip(C b + p̄ V_r, 0, (H - h)(1 + κ log A))  optimistic
            Q_u = u + clip(p̄ V_u - C b, 0, H - h)                 cautious
            Q_† = B b + clip(B b + p̄ V_†, 0, B (H - h))           compensates for the caution
            π^λ = softmax((Q_† + Q_r + λ Q_u)/κ)
            V_r = ⟨π^λ, Q_r - κ log π^λ⟩,  V_u = ⟨π^λ, Q_u⟩,  V_† = ⟨π^λ, Q_†⟩
        π_k = the baseline if V_u < c at λ = λ_max,
              else π^λ, with the smallest λ for which V_u ≥ c     bisection of [0, λ_max]
        play π_k, count

A policy is only played if even its cautious V_u meets the threshold, so that with bonuses that are
wide enough no episode violates it. V_u need not be monotone in λ, but is nearly.

The publication has linear features. With one feature for each pair its regression is p̄ shrunk by
n/(n + 1), and b = 1/√(n + 1); here it is p̄ itself, and where n = 0 each clip ends at the bound
that b pushes to. Its theory needs C of the order of S A H, and B larger than that by H/Ξ and more;
its experiments have all of them at 1 to 5, κ = 0.1 and λ_max = 300. Here C is `bonus_scale`, B is
`compensation`, and the defaults are what works in small experiments: a softmax at κ = 0.1 is far
from the optimum in the paper's CMDP. Where rewards are estimated, C b is added to the mean of r and
subtracted from that of u, within [0, 1].
"""

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, Key

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.statistics import (
    Knowledge,
    OptimisticModel,
    Statistics,
    Trajectory,
    empirical_model,
    empty_statistics,
    is_short,
    record,
)
from cmdpax.model.availability import flags_at, only_available, surprisal_of
from cmdpax.model.evaluation import backward_scan
from cmdpax.schemes.parameters import Parameter

BonusScale = Annotated[float, Parameter("weight of the bonuses of r and u", at_least=0)]
Temperature = Annotated[float, Parameter("temperature of the soft policies", "κ", above=0)]
MaxMultiplier = Annotated[
    float, Parameter("the largest multiplier that is tried", "λ_max", above=0)
]
SearchSteps = Annotated[int, Parameter("how often the interval of λ is halved", at_least=1)]


class Opse(NamedTuple):
    """The parameters of `opse`."""

    bonus_scale: BonusScale = 0.1
    compensation: Annotated[
        float, Parameter("weight of the bonus that makes up for the caution", "B", at_least=0)
    ] = 0.1
    temperature: Temperature = 0.02
    max_multiplier: MaxMultiplier = 300.0
    search_steps: SearchSteps = 20


class Optimism(NamedTuple):
    """What `opse` and `ghosh` make of the bonus b."""

    scale: Any  # C
    compensation: Any  # B
    entropy: Any  # κ in V_r
    of_constraint: int  # 1 if b is added to u, -1 if it is subtracted


class SearchState(NamedTuple):
    """What the next episode needs."""

    log_policy: Float[Array, "H S A"]  # log π_k
    multipliers: Float[Array, " I"]  # λ; 0 where the baseline is played
    constraint_values: Float[Array, " I"]  # V_u of π^λ, or of the baseline
    statistics: Statistics


class _Estimates(NamedTuple):
    """The model of the counts."""

    model: OptimisticModel
    signals: Float[Array, "H J S A"]  # r and u
    bonus: Float[Array, "H S A"]  # b
    tried: Bool[Array, "H S A"]  # n > 0


class _Found(NamedTuple):
    """π^λ and its V_u."""

    multiplier: Float[Array, ""]
    log_policy: Float[Array, "H S A"]
    constraint_values: Float[Array, " I"]


class _Search(NamedTuple):
    """An interval whose upper end is safe, if any is."""

    turn: Integer[Array, ""]
    lower: Float[Array, ""]
    upper: _Found
    feasible: Bool[Array, ""]  # whether λ_max is


def opse(knowledge: Knowledge, parameters: Opse) -> Learner:
    """Soft policies that are cautious about the constraint; the baseline where none is safe."""
    scale, compensation = parameters.bonus_scale, parameters.compensation
    optimism = Optimism(scale, compensation, parameters.temperature, of_constraint=-1)
    return soft_search(knowledge, optimism, parameters)


def soft_search(knowledge: Knowledge, optimism: Optimism, parameters: Any) -> Learner:
    """A learner that searches for the smallest λ in every episode.

    Args:
        knowledge: what it knows; a baseline is played where λ_max fails.
        optimism: what it makes of bonuses.
        parameters: a record with temperature, max_multiplier and search_steps.
    """

    def planned(statistics: Statistics) -> SearchState:
        """π_k from the episodes before k."""
        estimates = _estimates(knowledge, statistics, optimism)
        found = _search(knowledge, estimates, optimism, parameters)
        played, baseline = found.upper, knowledge.baseline
        if baseline is not None:
            nothing = jnp.zeros_like(played.multiplier)
            safe = _Found(nothing, jnp.log(baseline.policy), baseline.constraint_values)
            played = jax.tree.map(
                lambda one, other: jnp.where(found.feasible, one, other), played, safe
            )
        multipliers = jnp.broadcast_to(played.multiplier, knowledge.thresholds.shape)
        return SearchState(played.log_policy, multipliers, played.constraint_values, statistics)

    def init(_: Key[Array, ""]) -> SearchState:
        return planned(empty_statistics(knowledge))

    def update(state: SearchState, trajectory: Trajectory, _: Key[Array, ""]) -> SearchState:
        return planned(record(knowledge, state.statistics, trajectory))

    def show(state: SearchState) -> Shown:
        info = Info(state.multipliers, state.constraint_values, statistics=state.statistics)
        return Shown(state.log_policy, info)

    return Learner(init, update, show)


def _estimates(knowledge: Knowledge, statistics: Statistics, optimism: Optimism) -> _Estimates:
    (_, *pairs), dtype = knowledge.sizes, knowledge.initial.dtype
    model = empirical_model(knowledge, statistics)
    visits = jnp.broadcast_to(statistics.visits, pairs)
    bonus, tried = 1 / jnp.sqrt(jnp.maximum(visits, 1).astype(dtype)), visits > 0
    signals = model.signals
    if knowledge.signals is None:
        signs = jnp.full(signals.shape[1], optimism.of_constraint, dtype).at[0].set(1)
        signs = signs[None, :, None, None]
        moved = jnp.clip(signals + signs * optimism.scale * bonus[:, None], 0, 1)
        signals = jnp.where(tried[:, None], moved, jnp.maximum(signs, 0))
    return _Estimates(model, signals, bonus, tried)


def _search(
    knowledge: Knowledge, estimates: _Estimates, optimism: Optimism, parameters: Any
) -> _Search:
    """First λ = λ_max and λ = 0, then the middle of what is between them."""
    most = jnp.asarray(parameters.max_multiplier, knowledge.initial.dtype)
    has_baseline = knowledge.baseline is not None

    def go_on(search: _Search) -> Array:
        unfinished = (search.turn < 2 + parameters.search_steps) & (
            search.lower < search.upper.multiplier
        )
        return unfinished & search.feasible if has_baseline else unfinished

    def halve(search: _Search) -> _Search:
        first = search.turn == 0
        middle = (search.lower + search.upper.multiplier) / 2
        tried = jnp.where(first, most, jnp.where(search.turn == 1, jnp.zeros_like(most), middle))
        found = _soft_policy(knowledge, estimates, optimism, parameters.temperature, tried)
        safe = jnp.all(found.constraint_values >= knowledge.thresholds)
        upper = jax.tree.map(
            lambda new, old: jnp.where(first | safe, new, old), found, search.upper
        )
        lower = jnp.where(first | safe, search.lower, tried)
        return _Search(search.turn + 1, lower, upper, search.feasible & (safe | ~first))

    nothing = _Found(most, knowledge.uniform_log_policy, jnp.zeros_like(knowledge.thresholds))
    start = _Search(jnp.int32(0), jnp.zeros_like(most), nothing, jnp.ones((), bool))
    return jax.lax.while_loop(go_on, halve, start)


def _soft_policy(
    knowledge: Knowledge,
    estimates: _Estimates,
    optimism: Optimism,
    temperature: Any,
    multiplier: Float[Array, ""],
) -> _Found:
    """π^λ and its V_u: one backward induction for Q_r, Q_u and Q_† together."""
    (num_constraints, horizon, num_states, num_actions) = knowledge.sizes
    dtype = knowledge.initial.dtype
    scale, most = optimism.scale, optimism.compensation

    def each(reward: Any, constraint: Any, compensation: Any) -> Float[Array, "L 1 1"]:
        """A number for every Q."""
        numbers = [reward, *[constraint] * num_constraints, compensation]
        return jnp.stack([jnp.asarray(one, dtype) for one in numbers])[:, None, None]

    bonuses = each(scale, optimism.of_constraint * scale, most)
    extremes = each(jnp.inf, optimism.of_constraint * jnp.inf, jnp.inf)
    caps = each(1 + optimism.entropy * jnp.log(num_actions).astype(dtype), 1.0, most)
    parts = each(1.0, multiplier, 1.0)

    def step(values: Float[Array, "L S"] | None, at: tuple[Any, ...]) -> tuple[Array, Array]:
        index, signals, bonus, tried, steps_left = at  # H - h
        every_q = jnp.concatenate([signals, most * bonus[None]])
        if values is not None:
            later = bonuses * bonus[None] + estimates.model.expected_next(index, values)
            later = jnp.where(tried[None], later, extremes)
            every_q = every_q + jnp.clip(later, 0, caps * steps_left)
        flags = flags_at(knowledge.available, index)
        scores = only_available(jnp.sum(parts * every_q, axis=0) / temperature, flags)
        log_decision = jax.nn.log_softmax(scores, axis=-1)
        decision = jnp.exp(log_decision)
        entropy = jnp.sum(decision * surprisal_of(log_decision, flags), axis=-1)
        gained = jnp.sum(decision[None] * every_q, axis=-1)
        return gained.at[0].add(optimism.entropy * entropy), log_decision

    steps_left = jnp.arange(horizon - 1, -1, -1, dtype=dtype)
    stages = (
        jnp.arange(horizon),
        estimates.signals,
        estimates.bonus,
        estimates.tried,
        steps_left,
    )
    nothing = jnp.zeros((2 + num_constraints, num_states), dtype)
    values, log_policy = backward_scan(step, nothing, stages, is_short(horizon))
    return _Found(multiplier, log_policy, (values @ knowledge.initial)[1:-1])


ALGORITHM = Algorithm(
    "opse",
    opse,
    summary="OPSE: soft policies that are cautious about one constraint, else the baseline.",
    needs_baseline=True,
    max_constraints=1,
)
