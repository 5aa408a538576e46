"""What every learner that plans must do, wherever it runs: batches, files, agents, sweeps."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.jax_context import cast
from cmdpax.learners import Learner, as_algorithm
from cmdpax.learning.loop import make_learner, stack_runs
from configurations import configured, designed
from lanes import quick_or_whole
from learning_cases import OURS, logged, model

REPLANNERS = [name for name in OURS if as_algorithm(name).replans]
every_replanner = pytest.mark.parametrize(
    "algorithm", [quick_or_whole(name, quick=name == "replanning") for name in REPLANNERS]
)
pytestmark = [every_replanner, pytest.mark.usefixtures("short_blocks")]
CLOSE = {"rtol": 0, "atol": 1e-9}
SMALL = {"num_states": 3, "num_actions": 2, "horizon": 3}
"""The sizes of `model`: a program of a learner that plans takes seconds to compile, so the tests
share the shape, the number of constraints and the size of blocks wherever they can."""


@pytest.fixture
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs have many blocks of stretches."""
    monkeypatch.setattr("cmdpax.learning.stretch_group._STRETCHES_PER_BLOCK", 8)


def learn(algorithm: str, cmdp: cmdpax.CMDP | None = None, **changes: Any) -> cmdpax.History:
    arguments = {"num_episodes": 300, "seeds": 2} | changes
    return cmdpax.learn(model(1) if cmdp is None else cmdp, algorithm, **arguments)


def assert_same_runs(one: cmdpax.History, other: cmdpax.History) -> None:
    np.testing.assert_allclose(one.value, other.value, **CLOSE)
    np.testing.assert_allclose(one.multipliers, other.multipliers, **CLOSE)
    np.testing.assert_allclose(one.strong_regret.maximum, other.strong_regret.maximum, **CLOSE)


@pytest.mark.optimised
class TestRuns:
    def test_accounts_are_those_of_the_policies_that_were_played(self, algorithm: str) -> None:
        history = learn(algorithm)
        assert history.plans is not None
        firsts = history.plans.episodes[0]
        firsts = firsts[firsts > 0]
        assert firsts[0] == 1
        assert (np.diff(firsts) > 0).all()
        lengths = np.diff(np.append(firsts, 301))
        assert history.plans.policies is not None
        policies = np.repeat(history.plans.policies[0, : len(firsts)], lengths, axis=0)
        np.testing.assert_allclose(policies[-1], history.policy[0], **CLOSE)
        expected = cmdpax.account(model(1), policies)
        np.testing.assert_allclose(history.value[0], expected.value, **CLOSE)
        for name in ("strong_regret", "weak_regret"):
            found, wanted = getattr(history, name), getattr(expected, name)
            np.testing.assert_allclose(found.objective[0], wanted.objective, **CLOSE)
            np.testing.assert_allclose(found.constraints[0], wanted.constraints, **CLOSE)
        np.testing.assert_allclose(history.unsafe[0], expected.unsafe, **CLOSE)

    def test_a_run_is_the_same_alone_and_in_the_batch_of_an_accelerator(
        self, algorithm: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Processors with two cores run one of two seeds each; accelerators run all together."""
        alone = [learn(algorithm, seeds=seeds) for seeds in ([4, 5], [6, 9])]
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
        together = learn(algorithm, seeds=[4, 5, 6])
        for run, (one, place) in enumerate([(alone[0], 0), (alone[0], 1), (alone[1], 0)]):
            for name in ("value", "policy", "multipliers"):
                found, expected = getattr(together, name)[run], getattr(one, name)[place]
                np.testing.assert_allclose(found, expected, **CLOSE)
            regrets = [history.strong_regret.maximum for history in (together, one)]
            np.testing.assert_allclose(regrets[0][run], regrets[1][place], **CLOSE)

    def test_a_longer_run_has_the_shorter_as_its_prefix(self, algorithm: str) -> None:
        """Up to the stretch that the shorter one cannot finish."""
        long, short = learn(algorithm), learn(algorithm, num_episodes=90)
        assert short.plans is not None
        for run in range(2):
            last = short.plans.episodes[run].max()
            np.testing.assert_array_equal(long.value[run, :last], short.value[run, :last])

    def test_what_is_recorded_changes_nothing(self, algorithm: str) -> None:
        every, few = learn(algorithm), learn(algorithm, record=[1, 7, 250])
        at = np.array([1, 7, 250, 300]) - 1
        np.testing.assert_array_equal(few.episodes, at + 1)
        np.testing.assert_array_equal(few.value, every.value[:, at])
        np.testing.assert_array_equal(
            few.strong_regret.objective, every.strong_regret.objective[:, at]
        )

    def test_a_log_changes_nothing_and_makes_the_same_plans(self, algorithm: str) -> None:
        """The learner that is fed with the log's episodes one by one makes the same plans.

        Observations are summed before a learner sees them, so one kind for each of them is enough.
        """
        if algorithm == "optimistic-planning":
            pytest.skip("it counts as the others do, and draws nothing")
        observations = "mean" if algorithm == "posterior-sampling" else "bernoulli"
        chosen: dict[str, Any] = {"optimism": "live", "observations": observations}
        with_log, without = (learn(algorithm, log=log, **chosen) for log in (True, False))
        np.testing.assert_array_equal(with_log.value, without.value)
        assert with_log.log is not None
        assert with_log.log.states.shape == (2, 300, 4)
        replayed = cmdpax.replay(model(1), algorithm, with_log.log.run(1), optimism="live", seed=1)
        assert with_log.plans is not None
        assert with_log.plans.policies is not None
        for place, first in enumerate(with_log.plans.episodes[1]):
            if first:
                np.testing.assert_allclose(
                    replayed.policies[first - 1], with_log.plans.policies[1, place], **CLOSE
                )

    def test_counts_of_a_trillion_episodes(self, algorithm: str) -> None:
        history = learn(algorithm, num_episodes=10**12, record=50)
        assert history.episodes[-1] == 10**12
        assert np.isfinite(history.strong_regret.objective).all()
        exponent = history.growth_exponent().objective[0]
        assert exponent < 0.9 or history.strong_regret.objective[0, -1] < 1e5
        assert history.plans is not None
        assert history.plans.episodes.shape[1] < 1500

    def test_ties_and_unreachable_states_are_policies(self, algorithm: str) -> None:
        """Equal rewards everywhere, and a start from which two states cannot be reached."""
        cmdp = model(1)
        stay = np.zeros_like(cmdp.transitions)
        stay[..., 0] = 1.0
        flat = cmdp.replace(
            transitions=stay,
            rewards=np.full_like(cmdp.rewards, 0.5),
            constraint_rewards=np.full_like(cmdp.constraint_rewards, 0.5),
            thresholds=[1.0],
            initial=[1.0, 0.0, 0.0],
        )
        history = learn(algorithm, flat)
        assert history.summary()["strong_objective"].max() < 1e-9
        np.testing.assert_allclose(history.policy.sum(axis=-1), 1, rtol=0, atol=1e-9)


class TestWhereTheyRun:
    @pytest.mark.optimised
    def test_plain_jitted_and_vmapped_over_seeds_and_parameters(self, algorithm: str) -> None:
        with jax.enable_x64(True):
            cmdp, log = cast(model(1), float), logged(model(1), 6)
            episodes = cmdpax.Log(
                jax.numpy.asarray(log.states, "int32"),
                jax.numpy.asarray(log.actions, "int32"),
                jax.numpy.asarray(log.rewards, float),
                jax.numpy.asarray(log.constraint_rewards, float),
            )
            configurations = [
                configured(algorithm, seed, num_episodes=100, growth=growth)
                for seed, growth in ((0, 0.05), (3, 0.4), (4, 2.0))
            ]
            design = designed(configurations[0])
            runs = stack_runs(cmdp.sizes, configurations, 100, float)

            def followed(run: Any) -> Any:
                learner: Learner = make_learner(design, cmdp, run)
                state, _ = jax.lax.scan(
                    lambda state, episode: (learner.update(state, episode, run.keys), None),
                    learner.init(run.keys),
                    episodes,
                )
                return learner.show(state)

            together, single = jax.jit(jax.vmap(followed))(runs), jax.jit(followed)
            for place in range(3):
                one = jax.tree.map(lambda array, at=place: array[at], runs)
                alone = single(one)
                found = jax.tree.map(lambda array, at=place: array[at], together)
                for mine, theirs in zip(
                    jax.tree.leaves(found), jax.tree.leaves(alone), strict=True
                ):
                    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-7)

    def test_manifests_repeat_and_files_keep_the_plans(
        self, algorithm: str, tmp_path: Path
    ) -> None:
        history = learn(algorithm, growth=0.2)
        manifest = json.loads(json.dumps(history.manifest))
        again = cmdpax.repeat(model(1), manifest)
        np.testing.assert_array_equal(again.value, history.value)
        assert {*manifest["runs"][0]} >= {"growth", "stretch", "margin"}
        assert "step_size" not in manifest["runs"][0]
        history.save(tmp_path / "h.npz")
        with np.load(tmp_path / "h.npz") as stored:
            assert history.plans is not None
            np.testing.assert_array_equal(stored["plan_episodes"], history.plans.episodes)
            assert stored["plan_policies"].shape[2:] == (3, 3, 2)

    def test_a_checkpoint_goes_on_bit_for_bit(self, algorithm: str, tmp_path: Path) -> None:
        whole = learn(algorithm)
        calls = []

        def interrupt(done: int, total: int) -> None:
            calls.append(done)
            if len(calls) == 4:
                raise KeyboardInterrupt

        kept = tmp_path / "runs.ckpt"
        with pytest.raises(KeyboardInterrupt):
            learn(algorithm, checkpoint=kept, progress=interrupt)
        assert kept.exists()
        resumed = learn(algorithm, checkpoint=kept)
        np.testing.assert_array_equal(resumed.value, whole.value)
        np.testing.assert_array_equal(resumed.policy, whole.policy)

    def test_sweeps_have_their_columns_and_repeat_runs(
        self, algorithm: str, tmp_path: Path
    ) -> None:
        results = cmdpax.sweep(
            {
                "num_episodes": 200,
                "seeds": 2,
                "cmdps": [
                    {"environment": "random", "parameters": SMALL | {"seed": [0, 1]}},
                ],
                "algorithms": [{"name": algorithm, "growth": [0.05, 0.5]}],
            },
            tmp_path / "sweep",
        )
        final = results.final
        assert len(final) == 8
        assert set(final["growth"]) == {0.05, 0.5}
        run = final["run"][0]
        again = results.repeat(run)
        assert again.strong_regret.objective[0, -1] == pytest.approx(
            final["strong_objective"][0], abs=1e-9
        )

    def test_agents_play_the_plans(self, algorithm: str, tmp_path: Path) -> None:
        cmdp = model(1)
        declared: dict[str, Any] = {
            "horizon": 3,
            "initial": cmdp.initial,
            "num_states": 3,
            "num_actions": 2,
            "thresholds": cmdp.thresholds,
            "constraint_ranges": [(0, 1)],
        }
        agent = cmdpax.Agent(algorithm, **declared, growth=0.3)
        rng = np.random.default_rng(0)
        for _ in range(30):
            state = int(rng.choice(3, p=cmdp.initial))
            agent.start(state)
            for h in range(3):
                action = agent.act(state)
                state = int(rng.choice(3, p=cmdp.transitions[h, state, action]))
                agent.observe(0.5, [0.5], state)
            agent.end()
        agent.save(tmp_path / "agent.npz")
        again = cmdpax.Agent.load(tmp_path / "agent.npz")
        np.testing.assert_array_equal(again.policy, agent.policy)
        assert agent.visits.sum() == 90

    def test_shared_counts_and_lists(self, algorithm: str) -> None:
        grid = cmdpax.environments.make("gridworld", horizon=6)
        history = learn(algorithm, grid, stationary=True, num_episodes=60, seeds=1)
        assert np.isfinite(history.value).all()


class TestRefused:
    def test_single_precision(self, algorithm: str, tmp_path: Path) -> None:
        sentence = f'precision is "single", and {algorithm} counts in 64 bits; use "double".'
        with pytest.raises(cmdpax.ParameterError, match=sentence):
            learn(algorithm, precision="single")
        with pytest.raises(cmdpax.ParameterError, match="counts in 64 bits"):
            cmdpax.sweep(
                {
                    "num_episodes": 5,
                    "precision": "single",
                    "cmdps": [{"environment": "bandit"}],
                    "algorithms": [{"name": algorithm}],
                },
                tmp_path / "sweep",
            )
        assert not (tmp_path / "sweep").exists()

    def test_parameters_of_other_learners_and_impossible_ones(self, algorithm: str) -> None:
        with pytest.raises(cmdpax.ParameterError, match="has no parameter 'step_size'"):
            learn(algorithm, step_size=0.1)
        with pytest.raises(cmdpax.ParameterError, match=r"growth is -0\.1, it must not be"):
            learn(algorithm, growth=-0.1)
        with pytest.raises(cmdpax.ParameterError, match="stretch is 0"):
            learn(algorithm, stretch=0)
        with pytest.raises(cmdpax.ParameterError, match="the potential is defined for"):
            learn(algorithm, potential=True)

    def test_more_episodes_than_can_be_counted(self, algorithm: str) -> None:
        with pytest.raises(cmdpax.ParameterError, match="num_episodes is"):
            learn(algorithm, num_episodes=10**16)
        with pytest.raises(cmdpax.ParameterError, match=r"memory|room|take"):
            learn(algorithm, num_episodes=10**12, log=True)


def test_pessimism_is_one_number_or_one_for_each_constraint(algorithm: str, tmp_path: Path) -> None:
    if algorithm != "replanning":
        pytest.skip("it has no pessimism")
    cmdp = model(2)
    plain = {"exploration": "none"}  # which compiles faster
    same = [
        learn(algorithm, cmdp, pessimism=given, **plain) for given in (0.3, [0.3, 0.3], "0.3, 0.3")
    ]
    for other in same[1:]:
        assert_same_runs(same[0], other)
    assert same[1].manifest["runs"][0]["pessimism"] == [0.3, 0.3]
    assert_same_runs(cmdpax.repeat(cmdp, same[1].manifest), same[1])
    sentence = "pessimism has 3 numbers, the CMDP has 2 constraints; give one number, or one for"
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        learn(algorithm, cmdp, pessimism=[1, 2, 3])
    for wrong in ("x", [], [np.nan], {}):
        with pytest.raises(cmdpax.ParameterError, match="it must be a number, or a list with one"):
            learn(algorithm, cmdp, pessimism=wrong)
    results = cmdpax.sweep(
        {
            "num_episodes": 50,
            "seeds": 1,
            "cmdps": [{"environment": "random", "parameters": SMALL | {"num_constraints": 2}}],
            "algorithms": [{"name": algorithm, "pessimism": [0.5, [0.25, 1]], **plain}],
        },
        tmp_path / "sweep",
    )
    assert set(results.final["pessimism"]) == {"0.5", "0.25 1"}
    for row in results.final.to_dicts():
        again = results.repeat(row["run"]).strong_regret.objective[0, -1]
        assert again == pytest.approx(row["strong_objective"], abs=1e-9)
