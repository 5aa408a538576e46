"""An agent that is told a simulated run's episodes is where the run is."""

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import cmdpax
from lanes import quick_or_whole
from learning_cases import NO_WARNING, PROFILES, every_algorithm, model
from live_cases import (
    PRIMAL_DUAL,
    PROGRAMS,
    Steps,
    assert_counted,
    differences,
    draw_episodes,
    log_of,
    make,
    reference_after,
)

NUM_EPISODES, SEED = 25, 2**31 + 7
CLOSE = {"rtol": 0, "atol": 1e-9}


class Case(NamedTuple):
    """A model, what is chosen, and what of it is known."""

    cmdp: cmdpax.CMDP
    chosen: dict[str, Any]
    observations: str = "mean"


def corridor(horizon: int) -> cmdpax.CMDP:
    """Three cells in successor lists; stored once for all steps."""
    grid = cmdpax.environments.make("gridworld", layout="S1G", horizon=horizon, slip=0.2)
    return grid.with_arrays()  # as constraint rewards


@functools.cache
def case_of(name: str) -> Case:
    schedules = {
        "step_size": cmdpax.schedules.power(0.8, 0.3),
        "margin": cmdpax.schedules.power(0.2, 0.5, offset=3),
    }
    if name == "known rewards, schedules":
        return Case(model(2), {"optimism": "empirical", **schedules})
    if name == "live, drawn rewards":
        return Case(model(2), {"optimism": "live", "step_size": 0.5}, "bernoulli")
    if name == "theory, drawn rewards":
        return Case(model(2), {"optimism": cmdpax.Optimism.theory(NUM_EPISODES)}, "bernoulli")
    if name == "lists, margin":
        return Case(corridor(3), {"optimism": "live", "margin": 0.1})
    if name == "long lists, shared counts":
        return Case(corridor(18), {"optimism": "empirical", "stationary": True, "step_size": 0.4})
    if name == "dense, shared counts":
        return Case(
            cmdpax.environments.make("ring").with_arrays(), {"optimism": "live", "stationary": True}
        )
    if name == "mars rover":
        return Case(cmdpax.environments.make("mars-rover").with_arrays(), {"optimism": "empirical"})
    assert name == "no constraints"
    return Case(model(0), {"optimism": "live"})


DRAWN = ("live, drawn rewards", "theory, drawn rewards")  # one program for both
GROUPS = [
    *((("known rewards, schedules",), algorithms) for algorithms in PROGRAMS),
    *((DRAWN, algorithms) for algorithms in PROGRAMS),
    *((("lists, margin",), algorithms) for algorithms in PROGRAMS),
    (("long lists, shared counts",), PRIMAL_DUAL),
    (("long lists, shared counts",), ("regularized-dual",)),
    (("dense, shared counts",), ("vanilla-dual",)),
    (("no constraints",), PRIMAL_DUAL),
    (("no constraints",), ("vanilla-dual",)),
    (("mars rover",), ("regularized-primal-dual",)),
]


@functools.cache
def history_of(name: str, algorithm: str) -> cmdpax.History:
    """One episode more than the agent is told: it shows λ_{K+1} and π_{K+1}."""
    cmdp, chosen, observations = case_of(name)
    return cmdpax.learn(
        cmdp,
        algorithm,
        num_episodes=NUM_EPISODES + 1,
        seeds=[SEED],
        max_multiplier=NO_WARNING,
        observations=observations,
        log=True,
        **chosen,
    )


def agent_for(name: str, algorithm: str) -> cmdpax.Agent:
    """An agent that is told what the learner of the run knows."""
    cmdp, chosen, _ = case_of(name)
    told = {}
    if chosen["optimism"] == "empirical":
        told = {"rewards": cmdp.rewards, "constraint_rewards": cmdp.constraint_rewards}
    if isinstance(cmdp.transitions, cmdpax.Successors):
        told["successors"] = cmdp.transitions
    return cmdpax.Agent(
        algorithm,
        num_states=cmdp.num_states,
        num_actions=cmdp.num_actions,
        horizon=cmdp.horizon,
        thresholds=cmdp.thresholds,
        initial=cmdp.initial,
        seed=SEED,
        max_multiplier=NO_WARNING,
        **(told | chosen),
    )


def first_of(log: cmdpax.Log | None, count: int = NUM_EPISODES) -> cmdpax.Log:
    assert log is not None
    return cmdpax.Log(*(array[:count] for array in log.run(0)))


def as_steps(log: cmdpax.Log) -> list[Steps]:
    return [tuple(array[k].tolist() for array in log) for k in range(len(log.actions))]


def follow_calls(agent: cmdpax.Agent, log: cmdpax.Log, history: cmdpax.History) -> None:
    """Tell every step; before every episode the agent has the run's multipliers."""
    own = history.manifest["observations"] == "mean"  # the same places in the random numbers
    for k, (states, actions, rewards, constraint_rewards) in enumerate(zip(*log, strict=True)):
        np.testing.assert_allclose(agent.multipliers, history.multipliers[0, k], **CLOSE)
        agent.start(states[0])
        for step, action in enumerate(actions):
            given = agent.act(states[step])
            assert given == action or not own
            signals = constraint_rewards[:, step]
            done = {} if own else {"action": action}
            agent.observe(rewards[step], signals, states[step + 1], **done)
        record = agent.end()
        assert (record.episode, record.steps) == (k + 1, len(actions))
        assert abs(record.reward - rewards.sum()) <= 1e-12
        np.testing.assert_allclose(record.constraint_returns, constraint_rewards.sum(axis=1))


ROUNDED = [f"['tally']['{one}']" for one in ("mean", "squares", "recent", "always")]
ROUNDED += [f"['tally']['blocks'].{one}" for one in ("mean", "squares", "low", "high")]


def assert_learned_the_same(fed: cmdpax.Agent, told: cmdpax.Agent) -> None:
    """Bit for bit; the sums of the account may be rounded otherwise."""
    for name in differences(fed, told):
        assert name in ROUNDED
    for name, array in told.recent.items():
        np.testing.assert_allclose(fed.recent[name], array, **CLOSE)
    for one, other in zip(fed.account, told.account, strict=True):
        np.testing.assert_allclose(one.observed, other.observed, **CLOSE)
        assert (one.missed, one.optimistic) == (other.missed, other.optimistic)


@pytest.mark.parametrize(
    ("names", "algorithms"),
    [quick_or_whole(*group, quick=group[0][0].startswith("known")) for group in GROUPS],
    ids=[f"{names[0]}, {one[0]}" for names, one in GROUPS],
)
def test_the_run_of_learn(names: tuple[str, ...], algorithms: tuple[str, ...]) -> None:
    for name, algorithm in itertools.product(names, algorithms):
        history = history_of(name, algorithm)
        log = first_of(history.log)
        agent = agent_for(name, algorithm)
        follow_calls(agent, log, history)
        assert agent.num_episodes == NUM_EPISODES
        np.testing.assert_allclose(agent.multipliers, history.multipliers[0, -1], **CLOSE)
        np.testing.assert_allclose(agent.policy, history.policy[0], **CLOSE)
        assert_counted(agent, as_steps(log))
        fed = agent_for(name, algorithm)
        first = fed.policy
        fed.feed(first_of(history.log, 9), own=True)
        fed.feed(cmdpax.Log(*(array[9:] for array in log)), own=True)
        assert_learned_the_same(fed, agent)
        learned = abs(agent.policy - first).max() > 1e-3
        assert learned or name == "theory, drawn rewards"  # so optimistic that all is alike


@pytest.mark.parametrize("name", ["lists, margin", "no constraints"])
def test_estimates_are_those_of_replay(name: str) -> None:
    """Where the slow reference is not asked."""
    cmdp, chosen, _ = case_of(name)
    for algorithm in PRIMAL_DUAL:
        agent = agent_for(name, algorithm)
        episodes = draw_episodes(agent, 12, cut=False)
        agent.feed(log_of(agent, episodes[:11]), own=True)
        log = log_of(agent, episodes)
        found = cmdpax.replay(cmdp, algorithm, log, max_multiplier=NO_WARNING, **chosen)
        believed = [one.optimistic for one in agent.account]
        np.testing.assert_allclose(believed, found.optimistic_constraint_values[-1], **CLOSE)
        np.testing.assert_allclose(agent.policy, found.policies[-1], **CLOSE)


HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "numbers": {"step_size": 0.3, "margin": 0.05},
    "capped": {"step_size": 2.0, "max_multiplier": 0.3},
    "schedules": {
        "step_size": cmdpax.schedules.power(0.8, 0.3),
        "margin": cmdpax.schedules.power(0.2, 0.5, offset=3),
    },
}


@every_algorithm
def test_the_slow_reference(algorithm: str) -> None:
    """Every profile with every kind of hyperparameters; some episodes are cut short."""
    told = {"rewards": model(2).rewards, "constraint_rewards": model(2).constraint_rewards}
    for optimism in PROFILES.values():
        for chosen in HYPERPARAMETERS.values():
            arguments = chosen | (told if optimism.rewards == "known" else {})
            if algorithm.startswith("regularized"):
                arguments["regularization"] = 0.1
            agent = make(algorithm, optimism=optimism, **arguments)
            episodes = draw_episodes(agent, 15)
            agent.feed(log_of(agent, episodes), own=True)
            expected = reference_after(agent, episodes)
            believed = [one.optimistic for one in agent.account]
            np.testing.assert_allclose(agent.multipliers, expected.multipliers, **CLOSE)
            possible = np.clip(expected.constraint_values, 0, agent.declaration.sizes.horizon)
            np.testing.assert_allclose(believed, possible, **CLOSE)
            np.testing.assert_allclose(agent.policy, expected.policy, **CLOSE)
            if "max_multiplier" in chosen and optimism.rewards == "known":
                assert (expected.multipliers <= 0.3).all()


def test_actions_follow_the_policy() -> None:
    """Over many episodes of a policy that hardly changes, against four standard errors."""
    agent = make(step_size=1e-9)
    drawn = []
    for _ in range(400):
        agent.start(0)
        drawn.append(agent.act(0))
        agent.observe(0.5, [0.5, 0.5], 1)
        agent.end()
    assert abs(np.mean(drawn) - 0.5) <= 4 * 0.5 / 20
    again = make(step_size=1e-9, seed=12)
    again.start(0)
    others = [again.act(0)]
    for _ in range(30):
        again.observe(0.5, [0.5, 0.5], 1)
        again.end()
        again.start(0)
        others.append(again.act(0))
    assert others != drawn[:31]  # another seed
