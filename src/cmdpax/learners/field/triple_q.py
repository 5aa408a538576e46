"""Triple-Q: model-free, with a table for the reward, one for the constraint, and a virtual queue.

    Q = C = H, Z = 0, counts 0
    for k = 1, …, K:
        play a_h = argmax_a Q_h(s_h, a) + (Z/η) C_h(s_h, a);    C̄ += C_1(s_1, a_1)
        for every step h, with t the visits of (s_h, a_h) in this frame:
            α = (χ + 1)/(χ + t),    b = ¼ √(H² ι (χ + 1)/(χ + t))
            Q_h(s_h, a_h) = (1 - α) Q_h(s_h, a_h) + α (r_h + Q_{h+1}(s_{h+1}, a_{h+1}) + b)
            C_h(s_h, a_h) = (1 - α) C_h(s_h, a_h) + α (u_h + C_{h+1}(s_{h+1}, a_{h+1}) + b)
        at the end of a frame of ⌊K^0.6⌋ episodes:
            Q += 2 H³ √ι/η;    where Q ≥ H or C ≥ H: Q = C = H;    counts 0
            Z = [Z + c + ε - C̄/K^0.6]_+;    C̄ = 0

    χ = K^0.2,    η = K^0.2,    ι = 128 log(√(2SAH) K),    ε = 8 √(S A H⁶ ι³)/K^0.2

After Wei, Liu and Ying (2022), "Triple-Q: A Model-Free Algorithm for Constrained Reinforcement
Learning with Sublinear Regret and Zero Constraint Violation", arXiv 2106.01577; a_{h+1} is what
the policy of the episode plays in s_{h+1}. In their own experiment all constants are tuned by hand.
Here `bonus_scale` multiplies √ι, in b as in the frame's inflation, `queue_scale` multiplies η, and
`margin` is ε: as published it exceeds H for every K below 10³⁰, even in tiny models.

The state has no model and no statistics. Z/η is the multiplier that `Info` shows, and its
constraint value is Σ_s μ(s) C_1(s, a).
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.field.confidence import BonusScale
from cmdpax.learners.statistics import Knowledge, Trajectory
from cmdpax.model.availability import only_available
from cmdpax.planning.dynamic_program import greedy
from cmdpax.schemes.parameters import Parameter


class Parameters(NamedTuple):
    """What the user of Triple-Q chooses."""

    margin: Annotated[float, Parameter("what is added to the threshold", "ε", at_least=0)] = 0.1
    queue_scale: Annotated[float, Parameter("multiplies η", above=0)] = 1.0
    bonus_scale: BonusScale = 0.0001


class TripleQState(NamedTuple):
    """Before episode k is played."""

    episode: Integer[Array, ""]  # k
    tables: Float[Array, "H J S A"]  # Q and C
    visits: Integer[Array, "H S A"]  # of this frame
    queue: Float[Array, " I"]  # Z
    gathered: Float[Array, " I"]  # C̄ of this frame
    log_policy: Float[Array, "H S A"]  # log π_k


class Constants(NamedTuple):
    """What follows from K."""

    frame: Integer[Array, ""]  # ⌊K^0.6⌋ episodes
    rate: Float[Array, ""]  # χ
    queue: Float[Array, ""]  # η
    width: Float[Array, ""]  # √ι


def constants_of(knowledge: Knowledge, parameters: Parameters) -> Constants:
    """The numbers of the source, scaled."""
    assert knowledge.num_episodes is not None
    _, horizon, num_states, num_actions = knowledge.sizes
    num_episodes = knowledge.num_episodes.astype(knowledge.initial.dtype)
    power = num_episodes**0.2
    iota = 128 * jnp.log((2 * num_states * num_actions * horizon) ** 0.5 * num_episodes)
    frame = jnp.floor(num_episodes**0.6 + 1e-6).astype(jnp.int32)
    width = parameters.bonus_scale * jnp.sqrt(iota)
    return Constants(frame, power, parameters.queue_scale * power, width)


def triple_q(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """Triple-Q."""
    num_constraints, horizon, num_states, num_actions = knowledge.sizes
    dtype, constants = knowledge.initial.dtype, constants_of(knowledge, parameters)
    unvisited = jnp.zeros((horizon, num_states, num_actions), jnp.int32)

    def decide(tables: Float[Array, "H J S A"], queue: Float[Array, " I"]) -> Float[Array, "H S A"]:
        """The policy that is greedy for Q + (Z/η) C."""
        weighed = jnp.einsum("i,hisa->hsa", queue / constants.queue, tables[:, 1:])
        allowed = only_available(tables[:, 0] + weighed, knowledge.available)
        return jax.vmap(greedy)(allowed)[0]

    def init(_: Key[Array, ""]) -> TripleQState:
        shape = (horizon, 1 + num_constraints, num_states, num_actions)
        tables, queue = jnp.full(shape, horizon, dtype), jnp.zeros(num_constraints, dtype)
        first, log_policy = jnp.asarray(1, jnp.int32), decide(tables, queue)
        return TripleQState(first, tables, unvisited, queue, queue, log_policy)

    def update(state: TripleQState, trajectory: Trajectory, _: Key[Array, ""]) -> TripleQState:
        episode, tables, visits, queue, gathered, _ = state
        state_1, action_1 = trajectory.states[0], trajectory.actions[0]
        promised = tables[0, 1:, state_1, action_1]
        gathered = gathered + jnp.where(action_1 < num_actions, promised, 0)
        tables, visits = _learn(knowledge, constants, state, trajectory)
        # "At the end of a frame."
        ends = episode % constants.frame == 0
        tables = jnp.where(ends, _inflate(horizon, constants, tables), tables)
        shortfall = knowledge.thresholds + parameters.margin
        shortfall = shortfall - gathered / constants.frame.astype(dtype)
        queue = jnp.where(ends, jnp.maximum(queue + shortfall, 0), queue)
        visits, gathered = jnp.where(ends, 0, visits), jnp.where(ends, 0, gathered)
        log_policy = decide(tables, queue)
        return TripleQState(episode + 1, tables, visits, queue, gathered, log_policy)

    def show(state: TripleQState) -> Shown:
        values = jnp.sum(jnp.exp(state.log_policy[0])[None] * state.tables[0], axis=-1)
        constraint_values = (values @ knowledge.initial)[1:]
        return Shown(state.log_policy, Info(state.queue / constants.queue, constraint_values))

    return Learner(init, update, show)


def _learn(
    knowledge: Knowledge, constants: Constants, state: TripleQState, trajectory: Trajectory
) -> tuple[Float[Array, "H J S A"], Integer[Array, "H S A"]]:
    """The tables and the visits after an episode; what did not happen is written nowhere."""
    horizon, dtype = knowledge.sizes.horizon, state.tables.dtype
    steps = jnp.arange(horizon)
    states, actions = trajectory.states[:-1], trajectory.actions
    visits = state.visits.at[steps, states, actions].add(1)
    times = visits[steps, states, actions].astype(dtype)  # t
    rate = (constants.rate + 1) / (constants.rate + times)  # α
    bonus = horizon * constants.width * jnp.sqrt(rate) / 4
    observed = jnp.vstack([trajectory.rewards[None], trajectory.constraint_rewards]).T
    if knowledge.signals is not None:
        observed = knowledge.signals[steps, :, states, actions]
    values = jnp.sum(jnp.exp(state.log_policy)[:, None] * state.tables, axis=-1)
    later = jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])  # V_{h+1}, and V_{H+1} = 0
    target = observed + later[steps, :, trajectory.states[1:]] + bonus[:, None]
    old = state.tables[steps, :, states, actions]
    new = (1 - rate)[:, None] * old + rate[:, None] * target
    return state.tables.at[steps, :, states, actions].set(new), visits


def _inflate(
    horizon: int, constants: Constants, tables: Float[Array, "H J S A"]
) -> Float[Array, "H J S A"]:
    """Q grows; where Q or C reach H, both begin anew."""
    inflated = tables.at[:, 0].add(2 * horizon**3 * constants.width / constants.queue)
    full = jnp.any(inflated >= horizon, axis=1, keepdims=True)
    return jnp.where(full, horizon, inflated)


ALGORITHM = Algorithm(
    "triple-q",
    triple_q,
    summary="Triple-Q: model-free, optimistic tables for both signals and a virtual queue.",
    anytime=False,
    max_constraints=1,
)
