"""The pure functions of an agent: begin, look at the coming episode, follow a finished one.

The learner is the one that `cmdpax.learn` runs, with the same random numbers: the actions of
episode k come from `fold_in(key of the seed, k)` at the places where a simulated run with mean
observations takes them, so that an agent that is shown such a run's states chooses the run's
actions. (The numbers depend on JAX's settings: `jax_threefry_partitionable=False` gives others.)
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from cmdpax.jax_context import cast
from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner, learner_key
from cmdpax.learners.contract import flaws_of, make_checked, row_sums
from cmdpax.learners.statistics import Knowledge, Trajectory, counts_of_rows
from cmdpax.live.declaration import FOREVER, Declaration
from cmdpax.live.episode import Episode
from cmdpax.model.cmdp import Sizes
from cmdpax.model.transitions import sample_index

_COMPILED_IN = {"static": True}
TOGETHER = 64
"""Episodes whose random numbers are drawn at once where a thread plans."""

_COIN = 2**31  # an episode's coin has a key of its own


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LearnerInputs:
    """What makes a learner: what is compiled in, and arrays in the learner's own units."""

    algorithm: Algorithm = dataclasses.field(metadata=_COMPILED_IN)
    choices: tuple[tuple[str, Any], ...] = dataclasses.field(metadata=_COMPILED_IN)  # parameters
    sizes: Sizes = dataclasses.field(metadata=_COMPILED_IN)
    stationary: bool = dataclasses.field(metadata=_COMPILED_IN)
    seed: Any
    initial: Any
    thresholds: Any
    signals: Any  # [H, J, S, A] or None
    support: Any  # [H or 1, S, A, N] or None
    available: Any  # [H or 1, S, A] or None
    bonuses: Any
    parameters: Any  # numbers and schedules, by name
    baseline: Any = None  # where the algorithm needs one

    @property
    def key(self) -> Key[Array, ""]:
        """The key of everything random in an agent."""
        return _key(self.seed)

    @property
    def learner(self) -> Learner:
        """The learner, told what it may know and no more."""
        knowledge = Knowledge(
            self.sizes,
            self.initial,
            self.thresholds,
            self.signals,
            self.support,
            self.bonuses,
            self.stationary,
            available=self.available,
            baseline=self.baseline,
        )
        parameters = self.algorithm.assemble(self.parameters, self.choices)
        return make_checked(self.algorithm.factory, knowledge, parameters)


def make_inputs(declared: Declaration, algorithm: Algorithm) -> LearnerInputs:
    """Convert the declaration to the learner's units, in the working precision."""
    sizes, units = declared.sizes, declared.units
    chosen = algorithm.restore(declared.parameters, FOREVER)
    signals, lists = None, declared.successors
    if declared.rewards is not None:
        shape = (sizes.horizon, sizes.num_states, sizes.num_actions)
        constraints = () if declared.constraint_rewards is None else declared.constraint_rewards
        known = [declared.rewards, *constraints]
        stacked = np.stack([np.broadcast_to(signal, shape) for signal in known], axis=-1)
        signals = jnp.asarray(np.moveaxis(units.inward(stacked), -1, 1))
    return LearnerInputs(
        algorithm.program,
        algorithm.choices(chosen),
        sizes,
        declared.stationary,
        np.uint32(declared.seed),
        jnp.asarray(declared.initial),
        jnp.asarray(declared.aims(declared.margins)),
        signals,
        None if lists is None else jnp.asarray(lists),
        None if declared.available is None else jnp.asarray(declared.available),
        cast(declared.optimism.numbers(sizes), float),
        cast(algorithm.numbers(chosen), float),
        declared.known_baseline,
    )


@jax.jit
def begin(inputs: LearnerInputs) -> Any:
    """The learner's state before the first episode."""
    return inputs.learner.init(learner_key(inputs.key, 0))


@jax.jit
def follow(inputs: LearnerInputs, state: Any, trajectory: Trajectory, episode: Any) -> Any:
    """The learner's state after episode k."""
    return inputs.learner.update(state, trajectory, learner_key(inputs.key, episode))


@functools.partial(jax.jit, static_argnames="horizon")
def chances(seed: Any, episode: Any, horizon: int) -> tuple[Float[Array, " H"], Float[Array, ""]]:
    """The uniform numbers of an episode: one for every step's action, and that of its coin."""
    key = jax.random.fold_in(_key(seed), episode)
    uniforms = jax.random.uniform(key, (1 + 2 * horizon,), float)[1::2]
    return uniforms, jax.random.uniform(jax.random.fold_in(key, _COIN), (), float)


@functools.lru_cache(maxsize=16)
def chances_of_many(seed: int, block: int, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """`chances` of `TOGETHER` successive episodes: seldom asked for, seldom waited for."""
    with jax.enable_x64(True):
        numbers = (block * TOGETHER + np.arange(TOGETHER)).astype(np.uint32)
        drawn = jax.vmap(chances, in_axes=(None, 0, None))(np.uint32(seed), numbers, horizon)
        uniforms, coins = map(np.asarray, drawn)
    return uniforms, coins


def _key(seed: Any) -> Key[Array, ""]:
    return jax.random.key(seed, impl="threefry2x32")


@dataclasses.dataclass(frozen=True)
class Drawn:
    """The actions that `look` draws, up to rounding; each is drawn when it is asked for."""

    policy: np.ndarray  # [H, S, A]
    uniforms: np.ndarray  # [H]

    def __getitem__(self, place: tuple[int, int]) -> int:
        """The action of a step and a state, by inverse transform as in `sample_index`."""
        step, _ = place
        cumulative = self.policy[place].cumsum()
        total = cumulative[-1]
        reached = min(self.uniforms[step] * total, np.nextafter(total, 0.0))
        return int(cumulative.searchsorted(reached, side="right"))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """All of them, `[H, S]`."""
        steps, states = map(range, self.policy.shape[:2])
        return np.array([[self[step, state] for state in states] for step in steps], np.int32)


class Choice(NamedTuple):
    """Where a coin decides between two policies; as arrays."""

    plan: Any  # [H, S, A]; None: what the learner shows
    baseline: Any  # [H, S, A]
    share: Any  # α, how often it is the plan


@jax.jit
def look(
    inputs: LearnerInputs, state: Any, episode: Any, choice: Choice
) -> tuple[Episode, Bool[Array, " 3"]]:
    """Episode k before it begins, V̂_u in the learner's units, and the flaws of its policy."""
    log_policy, info = inputs.learner.show(state)
    shown = jnp.exp(log_policy)
    uniforms, coin = chances(inputs.seed, episode, inputs.sizes.horizon)
    plan = shown if choice.plan is None else choice.plan
    policy, by_plan = plan, jnp.array(True)
    if choice.baseline is not None:
        by_plan = coin < choice.share
        policy = jnp.where(by_plan, plan, choice.baseline)
    draw = jax.vmap(jax.vmap(sample_index, in_axes=(None, 0)))
    coming = Episode(
        drawn=draw(uniforms, policy),
        policy=policy,
        multipliers=info.multipliers,
        optimistic=info.constraint_values,
        visits=None if info.statistics is None else info.statistics.visits,
        plan=plan,
        by_plan=by_plan,
        plans=info.num_plans,
        feasible=info.feasible,
        remaining=info.remaining,
    )
    return coming, flaws_of(row_sums(shown, inputs.available), info.multipliers)


@jax.jit
def counts_of(inputs: LearnerInputs, state: Any) -> tuple[Any, ...] | None:
    """How often each successor came, `[H or 1, S, A, T]`, and the sums and squares of signals.

    None where the learner shows no statistics; those that plan do.
    """
    statistics = inputs.learner.show(state).info.statistics
    if statistics is None:
        return None
    return counts_of_rows(statistics), statistics.reward_sums, statistics.square_sums


@jax.jit
def rescale(inputs: LearnerInputs, state: Any, slopes: Any, offsets: Any) -> Any:
    """The learner's state where every signal x of a step is slope · x + offset."""
    assert inputs.learner.rescale is not None
    return inputs.learner.rescale(state, slopes, offsets)


def trajectory_of(sizes: Sizes, episode: Episode, signals: np.ndarray) -> Trajectory:
    """What happened in an episode, as the learner takes it; signals are in its units.

    A step that did not happen has action A, for which nothing is counted.
    """
    num_constraints, horizon, _, num_actions = sizes
    states = np.zeros(horizon + 1, np.int32)
    states[: len(episode.states)] = episode.states
    actions = np.full(horizon, num_actions, np.int32)
    actions[: episode.steps] = episode.actions
    observed = np.zeros((horizon, 1 + num_constraints))
    observed[: episode.steps] = signals
    return Trajectory(states, actions, observed[:, 0], observed[:, 1:].T)
