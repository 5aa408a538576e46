"""Stretches of episodes in constant time, and the group of runs that is made of them.

A learner that keeps its policy π for n episodes draws n independent episodes, of which it sees the
counts alone. They are drawn as such, whatever n is:

    m_1 ~ Multinomial(n, μ);   per step h: the actions of m_h(s) episodes ~ Multinomial(m_h(s), π),
    where those of a pair go ~ Multinomial(m_h(s, a), p_h(· | s, a)),   m_{h+1} their sums.

The accounts of a stretch are n times those of its policy, exactly, so a run of K episodes costs as
much as its plans. `learning.episodes` distributes the counts over single episodes where a log is
asked for.
"""

import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from cmdpax.errors import LearnerError
from cmdpax.learners.base import Info, Learner
from cmdpax.learners.contract import factory_name, flaws_of, row_sums
from cmdpax.learners.statistics import Counted
from cmdpax.learning.loop import Design, Runs, make_learner
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import policy_values, signal_array
from cmdpax.model.sampling import binomial, multinomial
from cmdpax.model.transitions import Successors, at_step

Running: TypeAlias = tuple[Any, Integer[Array, "*R"], Float[Array, "*R H S A"]]
"""Where the runs are: the learners' states, how many episodes the stretches of each run have taken,
and the last policy that was played."""


class Stretches(NamedTuple):
    """Some stretches of every run, one after the other; first axis: stretches.

    A run that has ended has stretches of 0 episodes.
    """

    first: Integer[Array, "E R"]  # the first episode
    length: Integer[Array, "E R"]  # episodes
    values: Float[Array, "E R J"]  # V_r, V_u of the policy in the true model
    multipliers: Float[Array, "E R I"]
    feasible: Any  # whether the model that was planned in was, [E, R]
    flaws: Any  # of `cmdpax.learners.contract`, [E, R, 3]
    policies: Any  # [E, R, H, S, A] where they are kept
    counted: Counted | None  # where a log is kept


def play_stretch(
    key: Key[Array, ""],
    cmdp: CMDP,
    policy: Float[Array, "H S A"],
    count: Integer[Array, ""],
    *,
    rewards_known: bool,
    bernoulli: bool,
) -> Counted:
    """The counts of so many episodes of a policy; consumes the key."""
    num_states, dtype = cmdp.num_states, policy.dtype
    start_key, step_key, sums_key = jax.random.split(key, 3)
    lists = isinstance(cmdp.transitions, Successors)

    def step(
        there: Float[Array, " S"], at: tuple[Array, Array]
    ) -> tuple[Float[Array, " S"], Integer[Array, "S A T"]]:
        index, decision = at
        first, second = jax.random.split(jax.random.fold_in(step_key, index))
        chosen = multinomial(first, there, decision)
        transitions = at_step(cmdp.transitions, index)
        rows = transitions.probabilities if lists else transitions
        went = multinomial(second, chosen, rows)
        if lists:
            following = jnp.zeros(num_states, dtype).at[transitions.successors].add(went)
        else:
            following = went.sum(axis=(0, 1))
        return following, went.astype(jnp.result_type(int))

    everyone = jnp.asarray(count).astype(dtype)
    there = multinomial(start_key, everyone, jnp.asarray(cmdp.initial))
    _, went = jax.lax.scan(step, there, (jnp.arange(cmdp.horizon), policy))
    if rewards_known:
        return Counted(went, None, None)
    visits = went.sum(axis=-1).astype(dtype)[:, None]
    signals = signal_array(cmdp)
    if not bernoulli:
        return Counted(went, visits * signals, visits * signals**2)
    bits = jax.random.bits(sums_key, signals.shape, jnp.uint64)
    ones = binomial(bits, jnp.broadcast_to(visits, signals.shape), signals)
    return Counted(went, ones, ones)


def _planner(design: Design, learner: Learner, info: Info) -> tuple[Any, Any, Any, Any]:
    """What a learner that plans must have: absorb, and in `Info` its plans so far, whether the
    last one is feasible, and the episodes that are left of it."""
    found = (learner.absorb, info.num_plans, info.feasible, info.remaining)
    if any(part is None for part in found):
        raise LearnerError(
            f"the learner {factory_name(design.algorithm.factory)} does not say what it "
            "plans; give it absorb, and let show say num_plans, feasible and remaining, or "
            "declare its algorithm without replans=True."
        )
    return found


@functools.partial(jax.jit, static_argnames=("design", "size"), donate_argnames="states")
def advance_stretches(
    design: Design,
    cmdp: CMDP,
    runs: Runs,
    states: Running,
    num_episodes: Integer[Array, ""],
    size: int,
) -> tuple[Running, Stretches]:
    """Play the next stretches of every run, at most `size` of them, until K episodes are played."""

    def stretch(model: CMDP, run: Runs, running: Running) -> tuple[Running, Stretches]:
        state, done, last = running
        learner = make_learner(design, model, run)
        log_policy, info = learner.show(state)
        absorb, number, feasible, remaining = _planner(design, learner, info)
        policy = jnp.exp(log_policy)
        count = jnp.minimum(jnp.maximum(remaining, 1), num_episodes - done)
        key = jax.random.fold_in(run.keys, number)
        counted = play_stretch(
            key,
            model,
            policy,
            count,
            rewards_known=design.rewards_known,
            bernoulli=design.bernoulli,
        )
        shown = Stretches(
            done + 1,
            count,
            policy_values(model, policy[None, ..., None])[0, :, 0],
            info.multipliers,
            feasible,
            flaws_of(row_sums(policy, model.available), info.multipliers),
            policy if design.keep_policies else None,
            counted if design.keep_log else None,
        )
        last = jnp.where(count > 0, policy, last)
        return (absorb(state, counted, count), done + count, last), shown

    batch = jax.vmap(stretch, in_axes=(0 if design.stacked else None, 0, 0))
    batch = jax.jit(batch, inline=True)  # traced once, for its shapes and in the loop
    shapes = jax.eval_shape(batch, cmdp, runs, states)[1]
    buffer = jax.tree.map(lambda s: jnp.zeros((size, *s.shape), s.dtype), shapes)

    def unfinished(carry: tuple[Array, Running, Stretches]) -> Array:
        index, (_, done, _), _ = carry
        return (index < size) & jnp.any(done < num_episodes)

    def body(carry: tuple[Array, Running, Stretches]) -> tuple[Array, Running, Stretches]:
        index, states, buffer = carry
        states, shown = batch(cmdp, runs, states)
        buffer = jax.tree.map(lambda kept, new: kept.at[index].set(new), buffer, shown)
        return index + 1, states, buffer

    start = (jnp.int32(0), states, buffer)
    _, states, buffer = jax.lax.while_loop(unfinished, body, start)
    return states, buffer
