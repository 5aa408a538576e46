"""An agent's course: what it makes of an episode, and what it plays next.

A position is replaced as a whole, so that an interruption leaves the agent as it was.
"""

import dataclasses
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.errors import ParameterError
from cmdpax.learners.contract import require_sound
from cmdpax.live.beliefs import Counts
from cmdpax.live.episode import Episode
from cmdpax.live.playing import Approve, decide
from cmdpax.live.saving import Position
from cmdpax.live.steps import (
    TOGETHER,
    Choice,
    Drawn,
    chances_of_many,
    counts_of,
    follow,
    look,
    rescale,
    trajectory_of,
)


def learned(now: Position, episode: Episode, *, played: bool) -> Position:
    """The position after an episode, which the agent played or only learns from."""
    now = _followed(now, episode)
    if played:
        return accounted(now, episode)
    return now._replace(tally=dataclasses.replace(now.tally, fed=now.tally.fed + 1))


def _followed(now: Position, episode: Episode) -> Position:
    """The position whose learner has seen one more episode."""
    now = _in_wider_units(now, np.asarray(episode.observed))
    declared, signals = now.declared, np.asarray(episode.observed)
    trajectory = trajectory_of(declared.sizes, episode, declared.units.inward(signals))
    number = np.int32(now.learned + 1)
    return now._replace(state=follow(now.inputs, now.state, trajectory, number))


def accounted(now: Position, episode: Episode) -> Position:
    """The position with an episode in its account, from which nothing was learned yet."""
    signals, units = np.asarray(episode.observed), now.declared.units
    missing = now.declared.sizes.horizon - len(signals)
    missed = units.misses(signals.sum(axis=0)[1:], now.declared.thresholds, missing)
    tally = now.tally.after(signals, missed, now.episode.multipliers, missing, units)
    return now._replace(tally=tally)


def put_off(now: Position, episode: Episode) -> Position:
    """The position with an episode in its account that waits to be learned from."""
    waits = Episode(episode.states, episode.actions, episode.observed)
    return accounted(now, episode)._replace(waiting=(*now.waiting, waits))


def caught_up(now: Position, approve: Approve | None) -> Position:
    """The position once its learner has seen the episodes that wait in it."""
    begun, plans_before = time.perf_counter(), now.episode.plans
    for episode in now.waiting:
        now = _followed(now, episode)._replace(waiting=now.waiting[1:])
    return timed(decided(now, approve), plans_before, begun)


def with_learner(now: Position, ahead: Position) -> Position:
    """The position of an agent with what was learned from the episodes that wait in it.

    Args:
        now: where the agent is.
        ahead: what an earlier position of the agent has become; unless it has seen more, nothing
            changes. What is played is taken from it, unless the agent is frozen.
    """
    seen_since = ahead.learned - now.learned
    if seen_since <= 0:
        return now
    later = ahead._replace(tally=now.tally, waiting=now.waiting[seen_since:])
    if not now.playing.frozen:
        return later
    return aiming(later._replace(playing=now.playing))


def redrawn(now: Position) -> Position:
    """The position with the coming episode, where all but its number is known.

    It asks nothing of the learner, for which the programs of a plan might have to be waited for.
    """
    coming, declared = now.episode, now.declared
    block, place = divmod(now.tally.learned + 1, TOGETHER)
    uniforms, coins = chances_of_many(declared.seed, block, declared.sizes.horizon)
    choice = _choice(now, now.playing.plan)
    plan = coming.plan if choice.plan is None else choice.plan
    by_plan = choice.baseline is None or bool(coins[place] < choice.share)
    policy = plan if by_plan else np.asarray(choice.baseline)
    fresh = coming._replace(states=(), actions=(), observed=(), action=None, glimpse=None)
    drawn = Drawn(policy, uniforms[place])
    return now._replace(
        episode=fresh._replace(plan=plan, policy=policy, by_plan=by_plan, drawn=drawn)
    )


def prepare_chances(now: Position) -> None:
    """Draw the random numbers of the coming episodes, of which `redrawn` takes its own."""
    block = (now.tally.learned + 1) // TOGETHER
    for one in (block, block + 1):
        chances_of_many(now.declared.seed, one, now.declared.sizes.horizon)


def fits(now: Position, episode: Episode) -> bool:
    """Whether the ranges hold what was observed; only those that are not declared may not."""
    units, signals = now.declared.units, np.asarray(episode.observed)
    if units.declared.all():
        return True
    anew = now.learned == 0
    return units.widened(signals.min(axis=0), signals.max(axis=0), anew=anew) is units


def timed(now: Position, plans_before: Any, begun: float) -> Position:
    """The position with what the last plan took, if there is one that was not there before."""
    planned = plans_before is not None and int(now.episode.plans) > int(plans_before)
    return now._replace(seconds=time.perf_counter() - begun) if planned else now


def seen(now: Position) -> Position:
    """The position with the coming episode, before it is decided what is played."""
    return now._replace(episode=_look(now))


def decided(now: Position, approve: Approve | None, *, judge: bool = False) -> Position:
    """The position with the coming episode, and with what is played if there is a new plan.

    Args:
        now: after an episode was learned from.
        approve: asked before a new plan is played.
        judge: judge the plan that is played again, since much was learned.
    """
    coming = _look(now)
    baseline, asks = now.declared.mixed_baseline is not None, now.declared.asks
    anew = coming.plans is not None and int(coming.plans) != now.playing.plans
    if not now.playing.frozen and (((baseline or asks) and anew) or (baseline and judge)):
        shown = np.asarray(coming.plan) if now.playing.plan is None else _shown_plan(now)
        playing = decide(
            now.playing,
            now.declared,
            shown,
            int(coming.plans),
            lambda: counts(now),
            now.tally.learned,
            approve,
        )
        now = aiming(now._replace(playing=playing))
        coming = _look(now)
    return now._replace(episode=coming)


def counts(now: Position) -> Counts:
    """What was counted, in the learner's units."""
    declared = now.declared
    told = counts_of(now.inputs, now.state)
    if told is None:
        raise ParameterError(
            f"{declared.algorithm} shows no statistics, so what it has counted is not known; use "
            "an algorithm that shows them, such as 'replanning'."
        )
    found, sums, squares = told
    if sums is not None and squares is None:
        squares = sums  # numbers in [0, 1] are not smaller than their squares
    known = now.inputs.signals
    return Counts(
        np.asarray(found),
        declared.successors,
        None if sums is None else np.asarray(sums),
        None if squares is None else np.asarray(squares),
        None if known is None else np.asarray(known),
        np.asarray(declared.initial),
    )


def compile_all(now: Position, nothing: np.ndarray) -> None:
    """Run the programs that an episode needs once, and drop what they give."""
    declared = now.declared
    trajectory = trajectory_of(declared.sizes, Episode(), nothing)
    follow(now.inputs, now.state, trajectory, np.int32(1))
    if not declared.units.declared.all():
        ones = np.ones(1 + declared.sizes.num_constraints)
        rescale(now.inputs, now.state, ones, 0 * ones)


def _in_wider_units(now: Position, signals: np.ndarray) -> Position:
    """The same position where ranges that are not declared hold what was observed."""
    declared = now.declared
    if declared.units.declared.all() or not len(signals):
        return now
    anew = now.learned == 0
    units = declared.units.widened(signals.min(axis=0), signals.max(axis=0), anew=anew)
    if units is declared.units:
        return now
    slopes, offsets = declared.units.conversion(units)
    state = rescale(now.inputs, now.state, slopes, offsets)
    return aiming(now._replace(declared=declared._replace(units=units), state=state))


def aiming(now: Position) -> Position:
    """The position whose learner is told the present thresholds, with their margins.

    What its baseline reaches is told in the same units. A baseline that the data contradict is no
    reason to doubt everything else: the learner then looks for what is safe.
    """
    aims = jnp.asarray(now.declared.aims(now.playing.margins(now.declared)))
    told, mixture = {}, now.playing.mixture
    if mixture is not None and "doubt" in now.inputs.parameters:
        doubt = now.declared.parameters.get("doubt", 0.0) if mixture.trusted else 0.0
        told["doubt"] = jnp.full_like(now.inputs.parameters["doubt"], doubt)
    parameters = now.inputs.parameters | told
    known = now.declared.known_baseline
    inputs = dataclasses.replace(now.inputs, thresholds=aims, baseline=known, parameters=parameters)
    return now._replace(inputs=inputs)


def _choice(now: Position, plan: np.ndarray | None) -> Choice:
    baseline, mixture = now.declared.mixed_baseline, now.playing.mixture
    share = np.float64(0.0 if mixture is None else mixture.share)
    return Choice(plan, baseline, share)


def _shown_plan(now: Position) -> np.ndarray:
    """The learner's last plan, where an earlier one is played."""
    number = np.int32(now.tally.learned + 1)
    coming, _ = look(now.inputs, now.state, number, _choice(now, None))
    return np.asarray(coming.plan)


def _look(now: Position) -> Episode:
    """The coming episode, with what the learner believes in the user's units."""
    declared, done = now.declared, now.tally.learned
    number = np.int32(done + 1)
    found = look(now.inputs, now.state, number, _choice(now, now.playing.plan))
    coming, flaws = jax.tree.map(np.asarray, found)
    kept = "the agent is as it was" if done else ""
    restricted = declared.available is not None
    require_sound(declared.algorithm, number * flaws[None], lambda place: kept, restricted)
    horizon = declared.sizes.horizon
    believed: Any = np.clip(coming.optimistic, 0, horizon)  # dual learners do not truncate
    return coming._replace(optimistic=declared.units.constraint_values(believed, horizon))
