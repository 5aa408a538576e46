"""The default agent plans: its whole life, from the first decision to a file and back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.learners import DEFAULT_ALGORITHM
from lanes import quick_or_whole
from learning_cases import model
from live_cases import (
    LISTS,
    System,
    assert_counted,
    assert_same,
    call_next,
    draw_episodes,
    known,
    log_of,
    make,
    play,
    replay_calls,
)

UNITS: dict[str, Any] = {
    "senses": ["at most", "at least"],
    "constraint_ranges": [(0, 20), (-1, 1)],
    "reward_range": (-3, 5),
    "names": ["energy", "comfort"],
    "thresholds": [32.0, -0.5],
}
CASES: dict[str, dict[str, Any]] = {
    "noisy, two constraints": {"thresholds": [1.4, 1.4]},
    "noisy, shared counts": {"thresholds": [1.4, 1.4], "stationary": True},
    "noisy, costs in other units": UNITS,
    "lists, shared counts, costs": UNITS | {"successors": LISTS, "stationary": True},
    "known rewards": known() | {"thresholds": [1.2, 1.2]},
    "known rewards, shared counts": known() | {"thresholds": [1.2, 1.2], "stationary": True},
    "out of reach": {},
    "cautious": {"thresholds": [1.0, 1.0], "pessimism": [1.0, 0.0], "margin": 0.05},
    "no constraints": {"thresholds": ()},
}
every_case = pytest.mark.parametrize(
    "name", [quick_or_whole(name, quick=name == "noisy, two constraints") for name in CASES]
)


def agent_for(name: str, **changes: Any) -> cmdpax.Agent:
    return make(DEFAULT_ALGORITHM, **(CASES[name] | changes))


def num_plans(agent: cmdpax.Agent) -> int:
    return int(agent.learner_state.num_plans)


def test_without_a_name() -> None:
    arguments: dict[str, Any] = {
        "num_states": 3,
        "num_actions": 2,
        "horizon": 3,
        "thresholds": [1.4, 1.4],
        "initial": [0.5, 0.5, 0.0],
        "seed": 11,
        "reward_range": (0, 1),
        "constraint_ranges": (0, 1),
    }
    agent = cmdpax.Agent(**arguments)
    assert agent.declaration.algorithm == DEFAULT_ALGORITHM
    assert not agent.declaration.own
    assert repr(agent).startswith("Agent('replanning', S=3, A=2, H=3, I=2")
    assert_same(play(agent, 5), play(agent_for("noisy, two constraints"), 5))


def test_a_file_keeps_its_algorithm(tmp_path: Path) -> None:
    play(make("regularized-primal-dual"), 2).save(tmp_path / "a.npz")
    assert cmdpax.Agent.load(tmp_path / "a.npz").declaration.algorithm == "regularized-primal-dual"
    with pytest.raises(cmdpax.ParameterError, match="saved with the algorithm 'regularized-prim"):
        cmdpax.Agent.load(tmp_path / "a.npz", algorithm=DEFAULT_ALGORITHM)


@every_case
def test_saved_and_loaded_after_every_call(tmp_path: Path, name: str) -> None:
    """In the middle of a stretch and of an episode, the agent goes on as if nothing were."""
    saved, plain = agent_for(name), agent_for(name)
    system, places = System(plain), set()
    while plain.num_episodes < 9:
        saved.save(tmp_path / "a.npz")
        saved = cmdpax.Agent.load(tmp_path / "a.npz")
        assert_same(saved, plain)
        places.add((plain.expects, plain.step))
        assert call_next(saved, system) == call_next(plain, system)
    assert len(places) == 8
    assert plain.account.cut_short > 0
    assert num_plans(plain) >= 2


@every_case
def test_what_is_told_and_what_is_fed(name: str) -> None:
    """The same counts and the same plans, whichever way the episodes come; some are cut short."""
    told, fed = agent_for(name, growth=0.3), agent_for(name, growth=0.3)
    episodes = draw_episodes(told, 40)
    replay_calls(told, episodes)
    fed.feed(log_of(fed, episodes[:13]), own=True)
    fed.feed(log_of(fed, episodes[13:]), own=True)
    if "reward_range" not in CASES[name]:  # slow counts have no other units
        assert_counted(told, episodes)
        assert_counted(fed, episodes)
    assert num_plans(told) == num_plans(fed) < 40
    np.testing.assert_array_equal(told.policy, fed.policy)
    np.testing.assert_array_equal(told.multipliers, fed.multipliers)
    assert told.account.episodes == fed.account.episodes == 40


@pytest.mark.whole
@pytest.mark.optimised
@pytest.mark.parametrize("observations", ["mean", "bernoulli"])
def test_the_plans_of_learn(observations: str) -> None:
    """An agent that is fed with a simulated run's episodes makes the run's plans."""
    cmdp, seed = model(2), 2**31 + 7
    history = cmdpax.learn(
        cmdp, num_episodes=120, seeds=[seed], optimism="live", observations=observations, log=True
    )
    agent = cmdpax.Agent(
        num_states=3,
        num_actions=2,
        horizon=3,
        thresholds=cmdp.thresholds,
        initial=cmdp.initial,
        seed=seed,
        reward_range=(0, 1),  # otherwise it goes by what it has observed
        constraint_ranges=(0, 1),
        posterior_weight=0.35,  # agents explore less than simulated runs
        untried_weight=0.05,
        random_visits=0.0,
    )
    assert history.log is not None
    assert history.plans is not None
    assert history.plans.policies is not None
    log, compared = history.log.run(0), 0
    for first, policy in zip(history.plans.episodes[0], history.plans.policies[0], strict=True):
        if first == 0:
            continue
        part = slice(agent.num_episodes, int(first) - 1)
        if part.start < part.stop:
            agent.feed(cmdpax.Log(*(array[part] for array in log)))
        assert num_plans(agent) == compared + 1
        np.testing.assert_allclose(agent.policy, policy, rtol=0, atol=1e-9)
        compared += 1
    assert compared == history.plans.made[0] > 20


def test_what_it_believes_is_the_value_of_its_plan() -> None:
    """The thresholds are met in the model that it planned in, where that is possible at all."""
    agent = play(agent_for("noisy, costs in other units"), 30)
    assert bool(agent.learner_state.feasible)
    energy, comfort = agent.account
    assert energy.optimistic <= energy.threshold + 1e-6
    assert comfort.optimistic >= comfort.threshold - 1e-6
    assert (agent.multipliers >= 0).all()
    hopeless = play(agent_for("out of reach"), 30)
    assert not bool(hopeless.learner_state.feasible)
    np.testing.assert_allclose(hopeless.policy.sum(axis=-1), 1)


def draw_step(cmdp: cmdpax.CMDP, step: int, state: int, action: int, generator: Any) -> Any:
    """Bernoulli signals and the next state of a dense model."""

    def now(array: np.ndarray) -> Any:
        return array[0 if len(array) == 1 else step, state, action]

    means = [now(cmdp.rewards), *map(now, cmdp.constraint_rewards)]
    reward, *signals = (float(generator.random() < mean) for mean in means)
    return reward, signals, int(generator.choice(cmdp.num_states, p=now(cmdp.transitions)))


@pytest.mark.whole
@pytest.mark.parametrize("stationary", [False, True])
def test_it_learns_a_noisy_system(stationary: bool) -> None:
    """Rewards are draws, and nothing but the sizes and the thresholds is known."""
    cmdp = cmdpax.environments.make("ring") if stationary else model(2)
    agent = cmdpax.Agent(
        num_states=cmdp.num_states,
        num_actions=cmdp.num_actions,
        horizon=cmdp.horizon,
        thresholds=cmdp.thresholds,
        initial=cmdp.initial,
        stationary=stationary,
    )
    generator = np.random.default_rng(1)
    found = []  # a single plan may be one that explores
    for episode in range(600):
        agent.start(int(generator.choice(cmdp.num_states, p=cmdp.initial)))
        while agent.expects == "act":
            state, step = agent.state, agent.step
            assert state is not None
            agent.observe(*draw_step(cmdp, step, state, agent.act(state), generator))
        agent.end()
        if episode >= 400:
            found.append(cmdpax.evaluate(cmdp, agent.policy))
    assert np.mean([one.value for one in found]) > cmdpax.solve(cmdp).value - 0.1
    reached = np.mean([one.constraint_values for one in found], axis=0)
    assert (reached > cmdp.thresholds - 0.1).all()
    assert num_plans(agent) < 300
