"""`stationary=True`: the steps share their counts, and everything else stays as it is."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
import learning_reference
import reference
from cmdpax.experiments import read_specification
from cmdpax.experiments.records import seal
from cmdpax.experiments.runs import make_models, make_runs
from cmdpax.jax_context import cast
from cmdpax.learners.statistics import Statistics, Trajectory, empty_statistics, record
from cmdpax.learning.learn import require_stationary
from cmdpax.learning.loop import knowledge_of
from lanes import quick_or_whole
from learning_cases import ALGORITHM, ALGORITHMS, NO_WARNING, learn, logged, model, reference_run
from sweep_cases import specification


@functools.cache
def dense() -> cmdpax.CMDP:
    """Three states; transitions, rewards and constraint rewards are stored once."""
    cmdp = model(2)
    cmdp = cmdp.replace(
        transitions=cmdp.transitions[:1],
        rewards=cmdp.rewards[:1],
        constraint_rewards=cmdp.constraint_rewards[:, :1],
    )
    uniform = np.full((1, 3, 2), 0.5)
    return cmdp.replace(thresholds=cmdpax.evaluate(cmdp, uniform).constraint_values - 0.05)


@functools.cache
def corridor(horizon: int = 3) -> cmdpax.CMDP:
    """Three states in successor lists, a constraint that binds."""
    return cmdpax.environments.make("gridworld", layout="S1G", horizon=horizon, slip=0.2)


MODELS = {"dense": dense, "lists": corridor, "lists, long": functools.partial(corridor, 20)}


class SharedMemory(learning_reference.Memory):
    """Every visit counts for every step."""

    def __init__(self, model: reference.Dense, profile: learning_reference.Profile) -> None:
        super().__init__(model, profile)
        if model.rewards.shape[-1] == corridor().num_actions:
            self.support = model.transitions > 0

    def count(self, states: Any, actions: Any, rewards: Any, constraint_rewards: Any) -> None:
        """Add one episode."""
        for h, a in enumerate(actions):
            s = states[h]
            self.visits[:, s, a] += 1
            self.went[:, s, a, states[h + 1]] += 1
            self.rewards[:, s, a] += rewards[h]
            for i in range(len(self.constraint_rewards)):
                self.constraint_rewards[i, :, s, a] += constraint_rewards[i][h]


# -------------------------------------------------------------------------------------- statistics


def statistics_of(cmdp: cmdpax.CMDP, log: cmdpax.Log) -> Statistics:
    bonuses = cast(cmdpax.Optimism.live().numbers(cmdp.sizes), float)
    knowledge = knowledge_of(cast(cmdp, float), bonuses, rewards_known=False, stationary=True)
    episodes = Trajectory(
        jnp.asarray(log.states, jnp.int32),
        jnp.asarray(log.actions, jnp.int32),
        jnp.asarray(log.rewards, float),
        jnp.asarray(log.constraint_rewards, float),
    )
    found, _ = jax.lax.scan(
        lambda state, episode: (record(knowledge, state, episode), None),
        empty_statistics(knowledge),
        episodes,
    )
    return found


def rows_of(cmdp: cmdpax.CMDP, found: Statistics) -> np.ndarray:
    """p̂ as `[S, A, S]`."""
    rows = np.asarray(found.storage[1])[0]
    if not isinstance(cmdp.transitions, cmdpax.Successors):
        return np.moveaxis(rows, 0, -1)
    written = np.zeros((cmdp.num_states, cmdp.num_actions, cmdp.num_states))
    for s, a, n in np.ndindex(rows.shape):
        written[s, a, cmdp.transitions.successors[0, s, a, n]] += rows[s, a, n]
    return written


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("num_episodes", [0, 1, 40])
def test_statistics_are_counts_over_all_steps(name: str, num_episodes: int) -> None:
    cmdp = MODELS[name]().with_arrays()
    log = cmdpax.Log(*(array[:num_episodes] for array in logged(cmdp)))
    found = statistics_of(cmdp, log)
    memory = SharedMemory(reference.densify(cmdp), cmdpax.Optimism.live()._asdict())
    for episode in zip(*log, strict=True):
        memory.count(*episode)
    assert found.visits.shape == (1, *cmdp.sizes[2:])
    np.testing.assert_array_equal(found.visits[0], memory.visits[0])
    assert int(found.visits.sum()) == num_episodes * cmdp.horizon
    assert found.reward_sums is not None
    sums = [memory.rewards[0], *memory.constraint_rewards[:, 0]]
    np.testing.assert_allclose(found.reward_sums[0], sums, rtol=0, atol=1e-12)
    rows = memory.guess().transitions[0]  # where nothing was tried: uniform over what may follow
    np.testing.assert_allclose(rows_of(cmdp, found), rows, rtol=0, atol=1e-15)


@pytest.mark.usefixtures("double_precision")
def test_twice_in_an_episode_counts_twice() -> None:
    log = cmdpax.Log(
        np.array([[0, 0, 0, 1]]),
        np.array([[1, 1, 1]]),
        np.array([[0.25, 0.5, 1.0]]),
        np.array([[[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]]),
    )
    found = statistics_of(dense(), log)
    visits = np.zeros((3, 2), int)
    visits[0, 1] = 3
    np.testing.assert_array_equal(found.visits[0], visits)
    np.testing.assert_allclose(rows_of(dense(), found)[0, 1], [2 / 3, 1 / 3, 0])
    assert found.reward_sums is not None
    np.testing.assert_allclose(found.reward_sums[0, :, 0, 1], [1.75, 2.0, 0.0])


# ---------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize(
    ("algorithm", "name", "optimism"),
    [
        ("regularized-primal-dual", "dense", "live"),
        quick_or_whole("vanilla-primal-dual", "dense", "live", quick=False),
        ("regularized-primal-dual", "lists, long", "empirical"),
        quick_or_whole("vanilla-primal-dual", "lists, long", "empirical", quick=False),
        ("regularized-dual", "lists", "live"),
        quick_or_whole("vanilla-dual", "dense", "empirical", quick=False),
    ],
)
def test_learners_are_those_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, algorithm: str, name: str, optimism: str
) -> None:
    assert algorithm in ALGORITHMS
    cmdp = MODELS[name]().with_arrays()
    chosen: dict[str, Any] = {"step_size": 0.4, "max_multiplier": NO_WARNING}
    history = cmdpax.learn(
        cmdp,
        algorithm,
        num_episodes=40,
        optimism=optimism,
        observations="bernoulli",
        log=True,
        stationary=True,
        **chosen,
    )
    assert history.log is not None
    tau = 0.02 if algorithm.startswith("regularized") else 0.0
    arguments = (cmdp, algorithm, history.log.run(0), getattr(cmdpax.Optimism, optimism)())
    separate = reference_run(*arguments, regularization=tau, **chosen)
    monkeypatch.setattr(learning_reference, "Memory", SharedMemory)
    expected = reference_run(*arguments, regularization=tau, **chosen)
    close = {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(history.multipliers[0], expected.multipliers, **close)
    np.testing.assert_allclose(history.policy[0], expected.policy[-1], **close)
    values = cmdpax.account(cmdp, expected.policy)
    np.testing.assert_allclose(history.value[0], values.value, **close)
    np.testing.assert_allclose(history.constraint_values[0], values.constraint_values, **close)
    assert np.abs(separate.policy - expected.policy).max() > 1e-3  # it makes a difference


@pytest.mark.parametrize(
    ("name", "optimism", "support"),
    [("dense", "live", "all states"), ("lists, long", "empirical", "known")],
)
def test_the_manifest_says_so_and_repeats(name: str, optimism: str, support: str) -> None:
    cmdp = MODELS[name]().with_arrays()
    chosen: dict[str, Any] = {"observations": "bernoulli", "log": True, "seeds": 1}
    history = learn(cmdp, optimism=optimism, stationary=True, **chosen)
    manifest = json.loads(json.dumps(history.manifest))
    assert (manifest["stationary"], manifest["support"]) == (True, support)
    again = cmdpax.repeat(cmdp, manifest)
    np.testing.assert_array_equal(again.value, history.value)
    np.testing.assert_array_equal(again.policy, history.policy)
    assert again.manifest == history.manifest


def test_manifests_that_do_not_say_it_repeat() -> None:
    cmdp = cmdpax.environments.make("bandit")
    history = cmdpax.learn(cmdp, "vanilla-primal-dual", num_episodes=30)
    assert history.manifest["stationary"] is False
    older = {name: entry for name, entry in history.manifest.items() if name != "stationary"}
    again = cmdpax.repeat(cmdp, older)
    np.testing.assert_array_equal(again.value, history.value)
    np.testing.assert_array_equal(again.policy, history.policy)
    assert again.manifest == history.manifest


class TestRefused:
    @pytest.mark.parametrize("optimism", ["empirical", "live"])
    def test_transitions_of_every_step(self, optimism: str):
        sentence = (
            "stationary is true, but the CMDP's transitions are stored for 3 steps; store them "
            "once (a leading axis of 1), or learn with stationary=False."
        )
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            learn(stationary=True, optimism=optimism)

    @pytest.mark.parametrize("name", ["rewards", "constraint_rewards"])
    def test_estimated_rewards_of_every_step(self, name: str):
        array = getattr(dense(), name)
        cmdp = dense().replace(**{name: np.repeat(array, 3, axis=array.ndim - 3)})
        sentence = f"but the CMDP's {name} are stored for 3 steps"
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            learn(cmdp, stationary=True, optimism="live")
        require_stationary(cmdp, rewards_known=True, num_episodes=5)  # there is no count of them

    def test_counts_that_would_overflow(self):
        """H = 3, and 3 · 715,827,883 = 2^31 + 1."""
        sentence = "num_episodes × horizon is 2147483649, the counts that all steps share"
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            learn(dense(), stationary=True, num_episodes=715_827_883)
        require_stationary(dense(), rewards_known=True, num_episodes=715_827_882)

    @pytest.mark.parametrize("value", [1, None, "yes"])
    def test_what_is_not_true_or_false(self, value: Any):
        sentence = f"stationary is {value!r}, it must be true or false."
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            learn(dense(), stationary=value)


# ------------------------------------------------------------------------------------------ sweeps

BANDIT: dict[str, Any] = {
    "num_episodes": 30,
    "seeds": 2,
    "cmdps": [{"environment": "bandit"}],
    "algorithms": [{"name": ALGORITHM, "step_size": [0.2, "0.3*k^-0.2"]}],
}


def names_of(**changes: Any) -> list[tuple[str, str]]:
    wanted = read_specification(BANDIT | changes)
    runs = make_runs(wanted, make_models(wanted))
    return [(run.identity, run.configuration_name) for run in runs]


class TestSweeps:
    def test_identities_of_other_runs_are_those_of_older_versions(self):
        older = [
            ("8d03a8e307418b68", "113b2892"),
            ("6164ea60840fe12e", "113b2892"),
            ("d36b375e8dde9181", "718a5b02"),
            ("d94e1cb9d082dd86", "718a5b02"),
        ]
        assert names_of() == names_of(stationary=False) == older

    def test_identities_of_stationary_runs_are_their_own(self):
        plain, stationary = names_of(), names_of(stationary=True)
        assert not {identity for identity, _ in plain} & {identity for identity, _ in stationary}
        assert [name for _, name in plain] == [name for _, name in stationary]

    def test_it_is_true_or_false(self):
        for value in (1, "yes"):
            with pytest.raises(cmdpax.ParameterError, match=f"stationary is {value!r}"):
                read_specification(BANDIT | {"stationary": value})

    def test_models_of_every_step_are_named(self, tmp_path):
        sentence = "seed=1): stationary is true, but the CMDP's transitions are stored for 3 steps"
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            cmdpax.sweep(specification(stationary=True), tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_runs_are_those_of_learn(self, tmp_path):
        grid = {"layout": "S1G", "horizon": 3, "slip": 0.2}
        results = cmdpax.sweep(
            BANDIT
            | {
                "stationary": True,
                "seeds": 1,
                "cmdps": [{"environment": "gridworld", "parameters": grid}],
                "algorithms": [{"name": ALGORITHM, "step_size": 0.4}],
            },
            tmp_path,
        )
        assert results.manifest["specification"]["stationary"] is True
        with pytest.warns(cmdpax.CmdpaxWarning):  # λ_max
            history = cmdpax.learn(
                corridor(), ALGORITHM, num_episodes=30, step_size=0.4, stationary=True
            )
        assert results.final["last_suboptimality"][0] == pytest.approx(
            history.suboptimality[0, -1], abs=1e-12
        )

    def test_folders_that_do_not_say_it_go_on(self, tmp_path):
        """And hold no stationary runs, neither do folders that say so."""
        cmdpax.sweep(BANDIT, tmp_path)
        self.check_not_mixed(tmp_path)
        for path in (tmp_path / "manifest.json", *(tmp_path / "parts").iterdir()):
            forget(path)
        self.check_not_mixed(tmp_path)
        assert len(cmdpax.sweep(BANDIT | {"seeds": 3}, tmp_path).final) == 6
        (tmp_path / "manifest.json").unlink()
        self.check_not_mixed(tmp_path)
        results = cmdpax.sweep(BANDIT | {"seeds": 4}, tmp_path)
        assert len(results.final) == 8
        assert results.manifest["specification"]["stationary"] is False

    def test_stationary_folders_hold_nothing_else(self, tmp_path):
        cmdpax.sweep(BANDIT | {"stationary": True}, tmp_path)
        with pytest.raises(
            cmdpax.ParameterError, match="holds runs with stationary = True, the specification has"
        ):
            cmdpax.sweep(BANDIT, tmp_path)

    @staticmethod
    def check_not_mixed(folder: Path) -> None:
        sentence = (
            f"{folder} holds runs with stationary = False, the specification has True; "
            "use another folder."
        )
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            cmdpax.sweep(BANDIT | {"stationary": True}, folder)


def forget(path: Path) -> None:
    """As version 0.1 wrote it."""
    content = json.loads(path.read_text())
    for place in ("specification", "shared"):
        content.get(place, {}).pop("stationary", None)
    if content.pop("seal", None):
        content["seal"] = seal(content)
    path.write_text(json.dumps(content))
