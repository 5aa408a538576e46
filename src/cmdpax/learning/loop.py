"""Learners on a simulated CMDP: many runs in one compiled batch.

The loop holds the learner and the episode that it plays, nothing else. Its policies go, a block of
episodes at a time, to the accounts, which evaluate them in the true model: next to the learner,
never in it. The number of episodes is data, so that one program serves every K.

The randomness of episode k of a run comes from `fold_in(run key, k)`: a longer run has the shorter
one as its prefix, and a run is the same alone and in any batch.
"""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, Key

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner, learner_key
from cmdpax.learners.contract import make_checked
from cmdpax.learners.optimism import Bonuses
from cmdpax.learners.statistics import Baseline, Knowledge, Trajectory
from cmdpax.learning.settings import Configuration, RunSettings
from cmdpax.model.cmdp import CMDP, Sizes
from cmdpax.model.evaluation import policy_values, signal_array, signals_of
from cmdpax.model.rescaling import Rescaling, rescale
from cmdpax.model.transitions import row_at, sample_index, sample_row, support_of

Value = TypeVar("Value")
_BLOCK_BYTES = 2**24  # policies that are kept until they are accounted for
_ACCELERATOR_BLOCK_BYTES = 2**31


class Runs(NamedTuple):
    """Runs of one algorithm, stacked: every array has a leading axis R."""

    keys: Key[Array, " R"]
    parameters: dict[str, Any]  # numbers and schedules, by name
    bonuses: Bonuses
    num_episodes: Integer[Array, " R"] | None = None  # K, where the algorithm needs it
    baseline: Baseline | None = None  # where the algorithm needs one


class Design(NamedTuple):
    """What is compiled in: the algorithm, and what may be known and observed."""

    algorithm: Algorithm
    rewards_known: bool
    bernoulli: bool = False  # observations are Bernoulli draws, not the means
    stacked: bool = False  # one CMDP per run
    keep_log: bool = False
    keep_log_policies: bool = False
    keep_policies: bool = False  # those of stretches
    stationary: bool = False  # the learner shares its counts over the steps
    choices: tuple[tuple[str, Any], ...] = ()  # parameters that are compiled in
    runs_last: bool = False  # the layout of the states: runs are the last axis, not the first

    @property
    def axis(self) -> int:
        """The axis of the runs in states and policies."""
        return -1 if self.runs_last else 0


class Task(NamedTuple):
    """What all runs of a batch share; a stacked design has a CMDP of the same shape for each."""

    design: Design
    rescalings: Sequence[Rescaling]  # of the CMDP of all runs, or of one per run
    optima: Sequence[float]  # V_r^{π*} of the rescaled CMDPs, likewise
    recorded: np.ndarray
    num_episodes: int
    levels: tuple[float, ...]
    baselines: Sequence[Baseline] | None = None  # of the rescaled CMDPs, where they are needed

    def part(self, members: Sequence[int]) -> "Task":
        """The task of some of the runs."""
        if not self.design.stacked:
            return self
        found = self.baselines
        return self._replace(
            rescalings=[self.rescalings[i] for i in members],
            optima=[self.optima[i] for i in members],
            baselines=None if found is None else [found[i] for i in members],
        )

    @property
    def cmdps(self) -> list[CMDP]:
        """What is learned: rewards in [0, 1]."""
        return [rescaling.cmdp for rescaling in self.rescalings]


def make_task(
    settings: RunSettings,
    configurations: Sequence[Configuration],
    cmdps: Sequence[CMDP],
    optima: Sequence[float],
    recorded: np.ndarray | None = None,
    keep_policies: bool = False,
    baselines: Sequence[Baseline] | None = None,
) -> Task:
    """The task of configurations of one algorithm, on one CMDP or on one for each of them.

    CMDPs and optima are in the user's units; what is learned is rescaled to [0, 1].
    """
    _, algorithm, chosen, optimism = configurations[0]
    design = Design(
        algorithm=algorithm.program,
        choices=algorithm.choices(chosen),
        rewards_known=optimism.rewards == "known",
        bernoulli=settings.observations == "bernoulli",
        stacked=len(cmdps) > 1,
        keep_log=settings.log,
        keep_log_policies=settings.potential,
        keep_policies=keep_policies,
        stationary=settings.stationary,
    )
    kept = settings.recorded if recorded is None else recorded
    found = {id(cmdp): rescale(cmdp) for cmdp in cmdps}  # many runs may share one
    rescalings = [found[id(cmdp)] for cmdp in cmdps]
    rescaled = [
        one.rescaled_value(optimum) for one, optimum in zip(rescalings, optima, strict=True)
    ]
    levels = tuple(settings.unsafe_at)
    return Task(design, rescalings, rescaled, kept, settings.num_episodes, levels, baselines)


def model_bytes(cmdp: CMDP, stacked: bool) -> int:
    """Of one run: p̂ and the counts, and the true transitions where every run has its own."""
    _, horizon, num_states, num_actions = cmdp.sizes
    stored = sum(array.nbytes for array in jax.tree.leaves(cmdp.transitions))
    counted = 12 * horizon * num_states * num_actions * cmdp.row_length
    return counted + (stored if stacked else 0)


def stack_runs(
    sizes: Sizes,
    configurations: Sequence[Configuration],
    num_episodes: int,
    dtype: Any,
    baselines: Sequence[Baseline] | None = None,
) -> Runs:
    """Stack the configurations; the key of a run is that of its seed alone.

    Baselines are one for each run, or one for all.
    """
    algorithm = configurations[0].algorithm
    seeds = jnp.asarray(np.array([c.seed for c in configurations], dtype=np.uint32))
    keys = jax.vmap(functools.partial(jax.random.key, impl="threefry2x32"))(seeds)
    records, places = _distinct(c.parameters for c in configurations)
    chosen = [algorithm.numbers(parameters) for parameters in records]
    profiles, profile_places = _distinct(c.optimism for c in configurations)
    bonuses = [profile.numbers(sizes) for profile in profiles]
    counts = None if algorithm.anytime else jnp.full(len(seeds), num_episodes, jnp.int32)

    def stack(trees: list[Any], places: np.ndarray) -> Any:
        return jax.tree.map(lambda *numbers: jnp.asarray(np.array(numbers)[places], dtype), *trees)

    given = None
    if baselines is not None:
        which = np.arange(len(seeds)) if len(baselines) > 1 else np.zeros(len(seeds), int)
        given = stack(list(baselines), which)
    return Runs(keys, stack(chosen, places), stack(bonuses, profile_places), counts, given)


def _distinct(values: Iterable[Value]) -> tuple[list[Value], np.ndarray]:
    """The different ones, and for each value its place among them: 10⁵ runs are often few."""
    found: dict[Value, int] = {}
    places = [found.setdefault(value, len(found)) for value in values]
    return list(found), np.array(places)


# ------------------------------------------------------------------------------------ one episode


def play(
    key: Key[Array, ""], cmdp: CMDP, policy: Float[Array, "H S A"], bernoulli: bool
) -> Trajectory:
    """Play a policy for one episode; consumes the key."""
    horizon, num_signals = cmdp.horizon, 1 + cmdp.num_constraints
    per_step = 2 + (num_signals if bernoulli else 0)
    dtype = policy.dtype
    uniforms = jax.random.uniform(key, (1 + horizon * per_step,), dtype)

    def step(
        state: Integer[Array, ""], at: tuple[Array, Array, Array]
    ) -> tuple[Array, tuple[Array, Array, Array]]:
        index, decision, uniform = at
        action = sample_index(uniform[0], decision[state])
        following = sample_row(uniform[1], row_at(cmdp.transitions, index, state, action))
        observed = signals_of(cmdp, index, state, action)
        if bernoulli:
            observed = (uniform[2:] < observed).astype(dtype)
        return following, (following, action, observed)

    first = sample_index(uniforms[0], cmdp.initial)
    stages = (jnp.arange(horizon), policy, uniforms[1:].reshape(horizon, per_step))
    _, (states, actions, observed) = jax.lax.scan(step, first, stages, unroll=min(horizon, 8))
    return Trajectory(
        states=jnp.concatenate([first[None], states]),
        actions=actions,
        rewards=observed[:, 0],
        constraint_rewards=observed[:, 1:].T,
    )


def make_learner(design: Design, cmdp: CMDP, run: Runs) -> Learner:
    """The learner of a single run, told what it may know of the model and no more."""
    knowledge = knowledge_of(cmdp, run.bonuses, design.rewards_known, design.stationary)
    knowledge = knowledge._replace(num_episodes=run.num_episodes, baseline=run.baseline)
    parameters = design.algorithm.assemble(run.parameters, design.choices)
    return make_checked(design.algorithm.factory, knowledge, parameters)


def knowledge_of(
    cmdp: CMDP, bonuses: Bonuses, rewards_known: bool, stationary: bool = False
) -> Knowledge:
    """What a learner may know of a model."""
    return Knowledge(
        cmdp.sizes,
        jnp.asarray(cmdp.initial),
        jnp.asarray(cmdp.thresholds),
        signal_array(cmdp) if rewards_known else None,
        support_of(cmdp.transitions),
        bonuses,
        stationary,
        available=None if cmdp.available is None else jnp.asarray(cmdp.available),
    )


# ---------------------------------------------------------------------------------- many episodes


class Rows(NamedTuple):
    """What is kept of some episodes, or of all that are recorded; first axis: episodes."""

    values: Any = None  # V_r, V_u of the true model, [E, R, J]
    strong: Any = None  # cumulative regrets, [E, R, J]
    weak: Any = None
    multipliers: Any = None  # λ_k, [E, R, I]
    potential: Any = None  # Φ_k, [E, R], where it is asked for
    log: Trajectory | None = None  # of every episode, where it is asked for


@functools.partial(jax.jit, static_argnames="design")
def start(design: Design, cmdp: CMDP, runs: Runs) -> Any:
    """The states of all runs before their first episode."""

    def one(model: CMDP, run: Runs) -> Any:
        return make_learner(design, model, run).init(learner_key(run.keys, 0))

    batch = jax.vmap(one, in_axes=(0 if design.stacked else None, 0), out_axes=design.axis)
    return batch(cmdp, runs)


@functools.partial(jax.jit, static_argnames=("design", "size"), donate_argnames="states")
def advance(
    design: Design,
    cmdp: CMDP,
    runs: Runs,
    states: Any,
    first: Integer[Array, ""],
    num_episodes: Integer[Array, ""],
    size: int,
) -> tuple[Any, tuple[Any, Any, Rows]]:
    """Play episodes first, first + 1, … (`num_episodes` ≤ `size` of them) of every run.

    Returns the states, and a block: the policies `[E, R, H, S, A]` (or `[E, H, S, A, R]`, as the
    design says), their logarithms where the potential needs them, and multipliers and log.
    """

    def episode(model: CMDP, run: Runs, state: Any, index: Array) -> tuple[Any, Any]:
        learner = make_learner(design, model, run)
        key = jax.random.fold_in(run.keys, index)
        shown = learner.show(state)
        policy = jnp.exp(shown.log_policy)
        trajectory = play(key, model, policy, design.bernoulli)
        next_state = learner.update(state, trajectory, learner_key(run.keys, index))
        log = trajectory if design.keep_log else None
        log_policy = shown.log_policy if design.keep_log_policies else None
        rows = Rows(multipliers=shown.info.multipliers, log=log)
        return next_state, (policy, log_policy, rows)

    axis = design.axis
    batch = jax.vmap(
        episode,
        in_axes=(0 if design.stacked else None, 0, axis, None),
        out_axes=(axis, (axis, 0, 0)),
    )
    shapes = jax.eval_shape(batch, cmdp, runs, states, first)[1]
    buffer = jax.tree.map(lambda s: jnp.zeros((size, *s.shape), s.dtype), shapes)

    def body(index: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        states, buffer = carry
        states, shown = batch(cmdp, runs, states, first + index)
        buffer = jax.tree.map(lambda kept, new: kept.at[index].set(new), buffer, shown)
        return states, buffer

    return jax.lax.fori_loop(0, num_episodes, body, (states, buffer))


def block_size(sizes: Sizes, num_runs: int, dtype: Any) -> int:
    """Episodes per block: as many as memory allows, at most 1024.

    A processor's caches like small blocks; an accelerator's many threads do not.
    """
    _, *pairs = sizes
    limit = _BLOCK_BYTES if jax.default_backend() == "cpu" else _ACCELERATOR_BLOCK_BYTES
    policy_bytes = num_runs * jnp.dtype(dtype).itemsize * math.prod(pairs)
    return int(min(1024, max(1, limit // policy_bytes)))


# ----------------------------------------------------------------------------------- the accounts


class Sums(NamedTuple):
    """Running sums of the accounts of every run, with the compensation of their rounding."""

    strong: Float[Array, "R J"]  # positive parts; entry 0 is the objective
    strong_lost: Float[Array, "R J"]
    weak: Float[Array, "R J"]
    weak_lost: Float[Array, "R J"]
    unsafe: Integer[Array, "R L"]  # episodes with some violation ≥ each level


def no_sums(num_runs: int, num_signals: int, num_levels: int, dtype: Any) -> Sums:
    """Before the first episode."""
    nothing = jnp.zeros((num_runs, num_signals), dtype)
    counts = jnp.zeros((num_runs, num_levels), jnp.int32)
    return Sums(nothing, nothing, nothing, nothing, counts)


@functools.partial(jax.jit, static_argnames=("stacked", "runs_last"))
def account_block(
    cmdp: CMDP,
    optima: Float[Array, " R"],
    levels: Float[Array, " L"],
    policies: Float[Array, "E ..."],  # as `advance` gives them
    num_episodes: Integer[Array, ""],
    sums: Sums,
    stacked: bool,
    runs_last: bool = False,
) -> tuple[Sums, Rows]:
    """Evaluate a block of policies in the true model and add them to the sums."""
    values = _true_values(cmdp, policies, stacked, -1 if runs_last else 1)
    thresholds = jnp.broadcast_to(cmdp.thresholds, (*optima.shape, cmdp.num_constraints))
    targets = jnp.concatenate([optima[:, None], thresholds], axis=1)
    played = (jnp.arange(values.shape[0], dtype=jnp.int32) < num_episodes)[:, None, None]
    missing = jnp.where(played, targets[None] - values, 0)
    strong, strong_lost, strong_path = _add(sums.strong, sums.strong_lost, jnp.maximum(missing, 0))
    weak, weak_lost, weak_path = _add(sums.weak, sums.weak_lost, missing)
    # Compared one by one: a violation that is not a number is below no level, and a maximum may
    # drop it.
    safe = jnp.all(missing[..., 1:, None] < levels[None, None, None], axis=-2)
    unsafe = sums.unsafe + jnp.sum(~safe & played, axis=0, dtype=jnp.int32)
    return (
        Sums(strong, strong_lost, weak, weak_lost, unsafe),
        Rows(values, strong_path, weak_path),
    )


def _true_values(
    cmdp: CMDP, policies: Float[Array, "E ..."], stacked: bool, axis: int
) -> Float[Array, "E R J"]:
    """(V_r, V_u) of a block of policies, whose runs are the given axis."""
    if stacked:

        def of_run(model: CMDP, some: Float[Array, "E H S A"]) -> Float[Array, "E J"]:
            return policy_values(model, some[..., None])[..., 0]

        return jax.vmap(of_run, in_axes=(0, axis), out_axes=1)(cmdp, policies)
    if axis == -1:
        return jnp.swapaxes(policy_values(cmdp, policies), 1, 2)
    flat = policies.reshape(-1, *policies.shape[2:], 1)
    return policy_values(cmdp, flat).reshape(*policies.shape[:2], -1)


def _add(
    total: Float[Array, "R J"], lost: Float[Array, "R J"], terms: Float[Array, "E R J"]
) -> tuple[Float[Array, "R J"], Float[Array, "R J"], Float[Array, "E R J"]]:
    """Cumulative sums with Kahan's compensation, one term after the other."""

    def step(carry: tuple[Array, Array], term: Array) -> tuple[tuple[Array, Array], Array]:
        total, lost = carry
        term = term - lost
        bigger = total + term
        return (bigger, (bigger - total) - term), bigger

    (total, lost), path = jax.lax.scan(step, (total, lost), terms)
    return total, lost, path


Progress = Callable[[int, int], None]
"""Called with the episodes done and the episodes in all."""
