"""A learner of one's own: primal-dual, with multipliers that react to the shortfall itself too.

Dual descent integrates the shortfall c - V_u. A proportional term damps its oscillations (Stooke,
Achiam and Abbeel, 2020): λ_k = clip(integral_k + gain · shortfall_k).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

import cmdpax
from cmdpax.estimation import Statistics, Trajectory, empty_statistics, optimistic_model, record
from cmdpax.learners import Hyperparameters, Info, Knowledge, Learner, rates_at
from cmdpax.learners.primal_dual import evaluate
from cmdpax.schemes import dual_descent, lagrangian, mirror_ascent

GAIN = 2.0


class State(NamedTuple):
    """What the next episode needs; `log_policy` is what it plays."""

    episode: Any  # k
    log_policy: Any  # log π_k, [H, S, A]
    integral: Any  # [I]
    statistics: Statistics  # of the episodes before


def proportional_integral(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """Make the learner: two pure functions."""
    num_constraints, *pairs = knowledge.sizes
    dtype = knowledge.initial.dtype

    def init() -> State:
        uniform = jnp.full(pairs, -jnp.log(pairs[-1]), dtype)
        counts = empty_statistics(knowledge)
        return State(jnp.int32(1), uniform, jnp.zeros(num_constraints, dtype), counts)

    def update(state: State, trajectory: Trajectory) -> tuple[State, Info]:
        eta, tau, cap, margin = rates_at(hyperparameters, state.episode)
        model = optimistic_model(knowledge, state.statistics)
        every_q, values = evaluate(model, state.log_policy, knowledge.initial)
        slacks = values - (knowledge.thresholds + margin)
        multipliers = jnp.clip(state.integral - GAIN * slacks, 0, cap)  # λ_k
        q_lagrangian = lagrangian(every_q, multipliers, tau)
        log_policy = mirror_ascent(state.log_policy, q_lagrangian, eta)
        integral = dual_descent(state.integral, slacks, eta, tau, cap)
        counts = record(knowledge, state.statistics, trajectory)
        info = Info(multipliers, values, q_lagrangian)
        return State(state.episode + 1, log_policy, integral, counts), info

    return Learner(init, update)


if __name__ == "__main__":
    cmdp = cmdpax.environments.make("random")
    history = cmdpax.learn(cmdp, proportional_integral, num_episodes=4000, seeds=5)
    print("strong violation", history.summary()["strong_constraints"].round(1))
