"""A learner of one's own: primal-dual, with multipliers that react to the shortfall itself too.

Dual descent integrates the shortfall c - V_u. A proportional term damps its oscillations (Stooke,
Achiam and Abbeel, 2020): λ_k = clip(integral_k + gain · shortfall_k).
"""

from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp

import cmdpax
from cmdpax.learners import (
    Info,
    Knowledge,
    Learner,
    Parameter,
    Scheduled,
    Shown,
    Statistics,
    Trajectory,
    dual_descent,
    empty_statistics,
    evaluate,
    lagrangian,
    mirror_ascent,
    optimistic_model,
    record,
    value_at,
)


class Parameters(NamedTuple):
    """What a user chooses: keyword arguments, keys of a sweep, columns of its tables."""

    step_size: Annotated[Scheduled, Parameter("step size", symbol="η", above=0)] = 0.1
    gain: Annotated[float, Parameter("weight of the shortfall itself", at_least=0)] = 2.0
    max_multiplier: Annotated[float, Parameter("largest multiplier", above=0)] = 6.0


class State(NamedTuple):
    """Episode k is about to be played, and its values in the optimistic model are known."""

    episode: Any  # k
    log_policy: Any  # log π_k, [H, S, A]
    multipliers: Any  # λ_k, [I]
    integral: Any  # [I]
    constraint_values: Any  # V̂_u of π_k, [I]
    q_values: Any  # Q̂_z of π_k, [H, S, A]
    statistics: Statistics  # of the episodes before


def proportional_integral(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """Make the learner: three pure functions."""
    num_constraints, dtype = knowledge.sizes.num_constraints, knowledge.initial.dtype

    def prepare(episode: Any, log_policy: Any, integral: Any, statistics: Statistics) -> State:
        model = optimistic_model(knowledge, statistics)
        every_q, values = evaluate(model, log_policy, knowledge.initial)
        shortfall = knowledge.thresholds - values
        cap = parameters.max_multiplier
        multipliers = jnp.clip(integral + parameters.gain * shortfall, 0, cap)
        q_values = lagrangian(every_q, multipliers, jnp.zeros((), dtype))
        return State(episode, log_policy, multipliers, integral, values, q_values, statistics)

    def init(key: Any) -> State:
        uniform = knowledge.uniform_log_policy  # over the available actions
        nothing = jnp.zeros(num_constraints, dtype)
        return prepare(jnp.int32(1), uniform, nothing, empty_statistics(knowledge))

    def update(state: State, trajectory: Trajectory, key: Any) -> State:
        eta, zero = value_at(parameters.step_size, state.episode), jnp.zeros((), dtype)
        slacks, cap = state.constraint_values - knowledge.thresholds, parameters.max_multiplier
        log_policy = mirror_ascent(state.log_policy, state.q_values, eta)
        integral = dual_descent(state.integral, slacks, eta, zero, cap)
        counts = record(knowledge, state.statistics, trajectory)
        return prepare(state.episode + 1, log_policy, integral, counts)

    def show(state: State) -> Shown:
        _, log_policy, multipliers, _, values, q_values, statistics = state
        return Shown(log_policy, Info(multipliers, values, q_values, statistics))

    return Learner(init, update, show)


if __name__ == "__main__":
    cmdp = cmdpax.environments.make("random")
    for gain in (0.0, 2.0):
        history = cmdpax.learn(cmdp, proportional_integral, num_episodes=4000, seeds=5, gain=gain)
        print(f"gain {gain:g}: strong violation", history.summary()["strong_constraints"].round(1))
