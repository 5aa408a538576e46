"""Wrong learners are refused with a sentence, by `learn`, `replay` and `Agent` alike."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import broken_learners
import cmdpax
from cmdpax.learners.contract import earliest_flaws, factory_name, first_flaws, flaws_of
from cmdpax.learning.loop import Task
from cmdpax.learning.workers import run_batch
from configurations import configured, designed
from learning_cases import NO_WARNING, logged, model

NUM_EPISODES = 40
CONTRACT = {
    "nothing": "returned None from its factory; return cmdpax.learners.Learner(init, update, show)",
    "pair": "returned a tuple from its factory",
    "no_functions": "has an init, update or show that is not a function; return cmdpax.learners.",
    "nothing_to_show": "has an init, update or show that is not a function",
    "two_functions": "has an init, update or show that is not a function",
    "no_key": "has init without the arguments (key); let it take them",
    "keeps_a_key": "returned a key as state.episode from init, which no file can hold; keep jax.",
    "no_array": "returned a str as state.episode from init; keep arrays",
    "no_state_later": "returned a state of another structure from update (None); keep the",
    "with_info": "returned a state of another structure from update (a tuple); keep the",
    "other_state": "returned a state of another structure from update (a WithPolicy)",
    "growing": "changed state.episode from int32[] to int32[2] in update; keep the structure",
    "retyped": "changed state.episode from int32[] to float",
    "words_later": "returned a str as state.episode from update; keep arrays",
    "no_shown": "returned None from show; return Shown(log_policy, Info(…))",
    "policy_alone": "from show; return Shown(log_policy, Info(…))",
    "no_pair": "returned a tuple from show; return Shown(log_policy, Info(…))",
    "no_info": "returned a Shown from show; return Shown(log_policy, Info(…))",
    "no_policy": "returned a policy of shape None, expected (H, S, A) = (3, 3, 2)",
    "no_step": "returned a policy of shape (3, 2), expected (H, S, A) = (3, 3, 2); give log_policy",
    "whole_numbers": "returned a log_policy of type int",
    "complex_multipliers": "returned multipliers of type complex",
    "one_multiplier": "returned multipliers of shape (7,), expected (2,); give zeros where it has",
    "no_multipliers": "returned multipliers of shape None, expected (2,); give zeros where it has",
    "one_value": "returned constraint_values of shape (), expected (2,)",
    "counted_values": "returned constraint_values of type int",
    "q_of_a_step": "returned q_values of shape (3, 2), expected (3, 3, 2); give None where it has",
    "other_statistics": "returned a int as statistics; give None where it has none",
}
NUMBERS = {
    "logits": "a policy with rows that do not sum to 1 in episode 1",
    "not_a_number": "a policy with entries that are not finite numbers in episode 1",
    "infinite": "a policy with entries that are not finite numbers in episode 1",
    "wild_multipliers": "multipliers that are not finite numbers in episode 1",
}


def learn(factory: Any, **changes: Any) -> cmdpax.History:
    arguments = {"num_episodes": NUM_EPISODES, "seeds": 2, "max_multiplier": NO_WARNING}
    return cmdpax.learn(model(2), factory, **(arguments | changes))


def replay(factory: Any) -> cmdpax.Replay:
    return cmdpax.replay(model(2), factory, logged(model(2)), max_multiplier=NO_WARNING)


def make_agent(factory: Any) -> cmdpax.Agent:
    return cmdpax.Agent(
        factory, num_states=3, num_actions=2, horizon=3, thresholds=[1.0, 1.0], initial=0
    )


USES: list[Callable[[Any], Any]] = [learn, replay, make_agent]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", CONTRACT)
def test_a_broken_contract_names_the_learner_and_the_fix(
    name: str, use: Callable[[Any], Any]
) -> None:
    factory = getattr(broken_learners, name)
    with pytest.raises(cmdpax.LearnerError) as raised:
        use(factory)
    message = str(raised.value)
    assert message.startswith(f"the learner {factory_name(factory)} ")
    assert CONTRACT[name] in message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_cannot_be_accounted_for_are_refused(
    name: str, use: Callable[[Any], Any]
) -> None:
    with pytest.raises(cmdpax.LearnerError, match=re.escape(NUMBERS[name])):
        use(getattr(broken_learners, name))


def test_single_precision_too() -> None:
    for name, message in NUMBERS.items():
        with pytest.raises(cmdpax.LearnerError, match=re.escape(message)):
            learn(getattr(broken_learners, name), precision="single")
    assert learn(broken_learners.sound, precision="single").policy.shape == (2, 3, 3, 2)


def test_a_wrong_learner_does_not_run_to_its_end() -> None:
    """Ten million episodes would take minutes; one block is enough."""
    done: list[int] = []
    with pytest.raises(cmdpax.LearnerError, match="in episode 1 "):
        learn(
            broken_learners.not_a_number,
            num_episodes=10**7,
            progress=lambda episodes, total: done.append(episodes),
        )
    assert max(done) == 0


@pytest.mark.parametrize("num_episodes", [1600, 2500])
def test_a_policy_that_breaks_late_is_found(num_episodes: int, tmp_path: Path) -> None:
    """In the last block, or in one that is not; nothing of it is left in a checkpoint."""
    path = tmp_path / "runs.npz"
    sentence = rf"in episode {broken_learners.LATE} \(seed 3, step_size 0.1, regularization 0, "
    for _ in range(2):
        with pytest.raises(cmdpax.LearnerError, match=sentence):
            learn(
                broken_learners.later_not_a_number,
                num_episodes=num_episodes,
                seeds=[3],
                checkpoint=path,
            )
    assert learn(broken_learners.later_not_a_number, num_episodes=1400).value.shape == (2, 1400)


@pytest.mark.exact
def test_the_run_is_named() -> None:
    """One of the runs that are wrong, with its seed and what was chosen for it."""
    with pytest.raises(cmdpax.LearnerError) as raised:
        cmdpax.learn(
            cmdpax.environments.make("random"),
            "regularized-dual",
            num_episodes=30,
            seeds=[5, 6, 7],
            regularization=1e-100,
        )
    assert re.fullmatch(
        "regularized-dual returned a policy with entries that are not finite numbers in episode 1 "
        r"\(seed [567], step_size 0.1, regularization 1e-100, max_multiplier 6, margin 0\); choose "
        "less extreme hyperparameters, or correct the learner if it is your own.",
        str(raised.value),
    )


def test_repeated_runs_are_checked_too() -> None:
    cmdp = model(2)
    name = broken_learners.logits.__qualname__
    manifest = learn(broken_learners.sound).manifest | {"algorithm": name}
    with pytest.raises(cmdpax.LearnerError, match="rows that do not sum to 1"):
        cmdpax.repeat(cmdp, manifest, algorithm=broken_learners.logits)


@pytest.mark.parametrize("name", ["with_policy", "stateless", "in_a_tuple"])
def test_what_a_state_is_is_nobodys_business(name: str, tmp_path: Path) -> None:
    """What is played is what it shows, in `learn`, in `replay` and by an agent."""
    factory = getattr(broken_learners, name)
    history, plain = (learn(f, log=True) for f in (factory, "vanilla-dual"))
    uniform = np.full((3, 3, 2), 0.5)
    np.testing.assert_allclose(history.policy, np.stack([uniform] * 2), rtol=0, atol=1e-12)
    expected = cmdpax.evaluate(model(2), uniform)
    np.testing.assert_allclose(history.value, expected.value, rtol=0, atol=1e-12)
    assert plain.log is not None
    replayed = cmdpax.replay(model(2), factory, plain.log.run(0))
    np.testing.assert_allclose(replayed.policies[-1], uniform, rtol=0, atol=1e-12)
    agent = make_agent(factory)
    agent.save(tmp_path / "agent.npz")
    for one in (agent, cmdpax.Agent.load(tmp_path / "agent.npz", algorithm=factory)):
        np.testing.assert_allclose(one.policy, uniform, rtol=0, atol=1e-12)


def test_a_number_of_python_may_get_its_type_later() -> None:
    for use in USES:
        use(broken_learners.counting_in_python)


def test_an_agent_keeps_what_it_learned() -> None:
    """A policy that breaks after some episodes is refused, and the agent is as it was."""
    agent = make_agent(broken_learners.wrong_if_regularized)
    assert agent.expects == "start"
    agent = cmdpax.Agent(
        broken_learners.wrong_if_regularized,
        num_states=3,
        num_actions=2,
        horizon=3,
        thresholds=[1.0],
        initial=0,
        regularization=0.9,
    )
    for _ in range(5):
        one_episode(agent)
    with pytest.raises(cmdpax.LearnerError, match=r"in episode 7 \(the agent is as it was\); "):
        one_episode(agent)
    assert (agent.num_episodes, agent.expects) == (5, "end")
    np.testing.assert_allclose(agent.policy, 0.5)


def one_episode(agent: cmdpax.Agent) -> None:
    agent.start(0)
    for _ in range(3):
        agent.act(agent.state or 0)
        agent.observe(0.5, [0.5], 0)
    agent.end()


@pytest.mark.parametrize("runs_last", [False, True])
def test_what_is_not_a_number_is_never_safe(
    runs_last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two runs in a batch one breaks in episode 7: from there on every episode is unsafe."""
    monkeypatch.setattr(
        "cmdpax.learning.workers._on_accelerator",
        lambda task: task._replace(design=task.design._replace(runs_last=runs_last)),
    )
    monkeypatch.setattr("cmdpax.learning.workers.num_cores", lambda: 1)
    fine, broken = run_both(broken_learners.wrong_if_regularized)
    assert fine["flaws"].tolist() == [0, 0, 0]
    assert broken["flaws"].tolist() == [7, 0, 0]
    assert fine["unsafe"].tolist() == [0]
    assert broken["unsafe"].tolist() == [NUM_EPISODES - 6]
    assert np.isfinite(fine["values"]).all()
    np.testing.assert_array_equal(np.isnan(broken["values"]).any(axis=-1), np.arange(40) >= 6)
    for one in run_both(broken_learners.wild_multipliers):
        assert one["flaws"].tolist() == [0, 0, 1]
        assert one["capped"].tolist() == [NUM_EPISODES] * 2


def run_both(factory: Any) -> list[dict[str, np.ndarray]]:
    """Two runs, with τ = 0 and 1; unsafe is what violates a threshold by a million."""
    cmdp = model(2)
    runs = [configured(factory, regularization=tau) for tau in (0.0, 1.0)]
    recorded = np.arange(1, NUM_EPISODES + 1)
    optima = [cmdpax.solve(cmdp).value]
    task = Task(designed(runs[0]), [cmdpax.rescale(cmdp)], optima, recorded, NUM_EPISODES, (1e6,))
    with jax.enable_x64(True):
        found = run_batch(task, runs, None, lambda done, total: None)
    return [
        {
            "flaws": found.flaws[run],
            "unsafe": found.unsafe[run],
            "capped": found.capped[run],
            "values": found.rows.values[run],
        }
        for run in range(2)
    ]


def test_names_of_factories() -> None:
    assert factory_name(broken_learners.sound) == "broken_learners:sound"
    partly = functools.partial(broken_learners.sound)
    assert factory_name(partly) == "broken_learners:sound"
    with pytest.raises(cmdpax.LearnerError, match="learner broken_learners:Configurable returned"):
        learn(broken_learners.Configurable())


def test_the_earliest_flaw_counts() -> None:
    """Of three runs in four episodes; a policy is given for two steps and two states."""
    policies = np.full((4, 3, 2, 2, 2), 0.5)
    policies[2, 0, 1, 0] = [0.7, 0.7]
    policies[3, 0, 0, 0] = [np.nan, 0.5]
    policies[1, 2, 0, 0] = [np.inf, 0.0]
    multipliers = np.zeros((4, 3, 1))
    multipliers[1, 0] = np.nan
    with jax.enable_x64(True):
        flaws = flaws_of(jax.numpy.asarray(policies.sum(axis=-1)), jax.numpy.asarray(multipliers))
        found = np.asarray(first_flaws(flaws, 11))
    assert found.tolist() == [[14, 13, 12], [0, 0, 0], [12, 0, 0]]
    earliest, episodes = earliest_flaws(found)
    assert (earliest.tolist(), episodes.tolist()) == ([2, 0, 0], [12, 0, 12])
