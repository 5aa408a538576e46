"""`learn`: runs that do not depend on their company, exact sums, warnings and errors."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from checks import assert_numpy_doubles
from cmdpax.learners import Hyperparameters, Knowledge, Learner, as_algorithm
from cmdpax.learning.learn import learn_batch
from cmdpax.learning.settings import RunSettings
from configurations import configured
from learning_cases import ALGORITHM, NO_WARNING, bandit, learn, model


def accounts_of(history: cmdpax.History) -> dict[str, np.ndarray]:
    arrays = {
        "value": history.value,
        "constraint_values": history.constraint_values,
        "multipliers": history.multipliers,
        "policy": history.policy,
        "unsafe": history.unsafe,
    }
    for name, regret in (("strong", history.strong_regret), ("weak", history.weak_regret)):
        arrays |= {f"{name}_{key}": array for key, array in regret._asdict().items()}
    return arrays


def assert_same_accounts(
    found: cmdpax.History, expected: cmdpax.History, tolerance: float = 0.0
) -> None:
    other = accounts_of(expected)
    for name, array in accounts_of(found).items():
        np.testing.assert_allclose(array, other[name], rtol=0, atol=tolerance, err_msg=name)


def run_of(history: cmdpax.History, index: int) -> dict[str, np.ndarray]:
    return {name: array[index] for name, array in accounts_of(history).items()}


class TestRuns:
    def test_a_run_is_the_same_alone_and_in_any_batch(self):
        alone, trio = learn(seeds=[4]), learn(seeds=[3, 4, 5])
        for name, expected in run_of(alone, 0).items():
            found = run_of(trio, 1)[name]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=name)
        assert np.abs(trio.value[0] - trio.value[1]).max() > 1e-6

    def test_bit_for_bit_when_repeated(self):
        assert_same_accounts(learn(), learn())

    def test_a_longer_run_has_the_shorter_one_as_its_prefix(self):
        short, longer = learn(num_episodes=50), learn(num_episodes=1100)
        np.testing.assert_array_equal(longer.value[:, :50], short.value)
        np.testing.assert_array_equal(longer.multipliers[:, :50], short.multipliers)
        strong = longer.strong_regret.constraints[:, :50]
        np.testing.assert_array_equal(strong, short.strong_regret.constraints)
        assert longer.episodes.tolist() == list(range(1, 1101))

    def test_a_number_of_seeds_counts_from_zero(self):
        assert_same_accounts(learn(seeds=2), learn(seeds=[0, 1]))
        assert_same_accounts(learn(seeds=np.int64(2)), learn(seeds=np.array([0, 1])))

    def test_configurations_in_one_batch_are_the_single_runs(self):
        schedule = cmdpax.schedules.power(0.5, 0.3)
        singles: list[dict[str, Any]] = [
            {"step_size": 0.2, "regularization": 0.1, "margin": 0.05},
            {"step_size": schedule, "regularization": 0.0, "optimism": cmdpax.Optimism(scale=0.5)},
            {"regularization": 0.05, "optimism": cmdpax.Optimism(unvisited_rows="zero")},
        ]
        configurations = [
            configured(ALGORITHM, seed, num_episodes=60, max_multiplier=NO_WARNING, **chosen)
            for seed, chosen in enumerate(singles)
        ]
        batch = learn_batch(model(2), configurations, RunSettings(60))
        for index, chosen in enumerate(singles):
            expected = run_of(learn(seeds=[index], **chosen), 0)
            for name, found in run_of(batch, index).items():
                np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-9, err_msg=name)

    def test_known_and_estimated_rewards_are_two_batches(self):
        profiles = (cmdpax.Optimism.empirical(), cmdpax.Optimism.live())
        mixed = [configured(ALGORITHM, optimism=profile) for profile in profiles]
        with pytest.raises(cmdpax.ParameterError, match="cannot mix known and estimated"):
            learn_batch(bandit(), mixed, RunSettings(5))

    @pytest.mark.whole
    def test_a_stationary_model_of_successor_lists(self):
        """The storage does not matter: the same numbers as the dense model's."""
        grid = cmdpax.environments.make("gridworld", layout="S.1/..G", horizon=4)
        assert isinstance(grid.transitions, cmdpax.Successors)
        lists, probabilities = grid.transitions
        dense = np.zeros((*lists.shape[:3], grid.num_states))
        for at in np.ndindex(lists.shape):
            dense[(*at[:3], lists[at])] += probabilities[at]
        chosen = {"num_episodes": 30, "optimism": cmdpax.Optimism.theory(30, scale=0.01)}
        found = learn(grid, **chosen, log=True)
        assert found.log is not None
        replayed = cmdpax.replay(
            grid.replace(transitions=dense),
            ALGORITHM,
            found.log.run(0),
            optimism=chosen["optimism"],
            max_multiplier=NO_WARNING,
        )
        np.testing.assert_allclose(found.multipliers[0], replayed.multipliers, rtol=0, atol=1e-11)
        accounts = cmdpax.account(grid, replayed.policies)
        np.testing.assert_allclose(found.value[0], accounts.value, rtol=0, atol=1e-11)


class TestSums:
    @pytest.mark.whole
    def test_sums_are_those_of_the_policies_that_were_played(self):
        cmdp = model(2)
        history = learn(log=True, unsafe_at=(-0.1, 0.0, 0.05))
        assert history.log is not None
        for run in range(2):
            log = history.log.run(run)
            policies = cmdpax.replay(cmdp, ALGORITHM, log, max_multiplier=NO_WARNING).policies
            expected = cmdpax.account(cmdp, policies, unsafe_at=(-0.1, 0.0, 0.05))
            for found, other in (
                (history.strong_regret, expected.strong_regret),
                (history.weak_regret, expected.weak_regret),
            ):
                for name in ("objective", "constraints", "maximum"):
                    np.testing.assert_allclose(
                        getattr(found, name)[run], getattr(other, name), rtol=0, atol=1e-10
                    )
            np.testing.assert_allclose(history.unsafe[run], expected.unsafe)
            np.testing.assert_allclose(history.suboptimality[run], expected.suboptimality)
            np.testing.assert_allclose(history.violation[run], expected.violation)
        assert 0 < history.unsafe[:, 1].mean() < history.unsafe[:, 0].mean() <= 1

    def test_what_is_recorded_does_not_change_the_sums(self):
        every, some = learn(num_episodes=1100), learn(num_episodes=1100, record=[1030, 7, 7, 100])
        assert some.episodes.tolist() == [7, 100, 1030, 1100]
        places = some.episodes - 1
        for name, array in accounts_of(every).items():
            found = accounts_of(some)[name]
            picked = array if name in ("policy", "unsafe") else array[:, places]
            np.testing.assert_array_equal(found, picked, err_msg=name)

    @pytest.mark.parametrize(
        ("record", "kept"),
        [(2, [10, 20]), (3, [7, 13, 20]), (50, range(1, 21)), ("all", range(1, 21))],
    )
    def test_so_many_episodes_or_all_may_be_recorded(self, record: Any, kept: Any):
        every, some = learn(num_episodes=20), learn(num_episodes=20, record=record)
        assert some.episodes.tolist() == list(kept)
        np.testing.assert_array_equal(some.value, every.value[:, some.episodes - 1])
        again = cmdpax.repeat(model(2), json.loads(json.dumps(some.manifest)))
        np.testing.assert_array_equal(again.episodes, some.episodes)

    @pytest.mark.whole
    def test_long_runs_record_log_spaced_episodes_and_sum_all(self):
        long = {"num_episodes": 120_000, "seeds": 1, "algorithm": "vanilla-primal-dual"}
        spaced = learn(bandit(), **long)
        assert {1, 12_000, 120_000} <= set(spaced.episodes.tolist())
        assert 5_000 < len(spaced.episodes) <= 10_002
        assert np.all(np.diff(spaced.episodes) > 0)
        every = learn(bandit(), record=range(1, 120_001), **long)
        for terms, strong, weak in (
            (every.suboptimality[0], spaced.strong_regret.objective, spaced.weak_regret.objective),
            (
                every.violation[0, :, 0],
                spaced.strong_regret.constraints[..., 0],
                spaced.weak_regret.constraints[..., 0],
            ),
        ):
            places = spaced.episodes - 1
            total = np.cumsum(np.maximum(terms, 0))[places]
            np.testing.assert_allclose(strong[0], total, rtol=0, atol=1e-8)
            np.testing.assert_allclose(weak[0], np.cumsum(terms)[places], rtol=0, atol=1e-8)

    def test_growth_exponents_are_those_of_the_strong_regrets(self):
        history = learn(num_episodes=200)
        exponents = history.growth_exponent()
        assert exponents.objective.shape == exponents.maximum.shape == (2,)
        assert exponents.constraints.shape == (2, 2)
        last = history.episodes >= 20
        x = np.log(history.episodes[last])
        slope = np.polyfit(x, np.log(history.strong_regret.maximum[0, last]), 1)[0]
        assert exponents.maximum[0] == pytest.approx(slope, abs=1e-9)

    def test_the_potential_is_the_distance_to_the_saddle_point(self):
        history = learn(potential=True, log=True, margin=0.02, regularization=0.1)
        assert history.potential is not None
        assert history.log is not None
        cmdp = model(2)
        aim = cmdp.replace(thresholds=cmdp.thresholds + 0.02)
        saddle = cmdpax.solve_regularized(aim, 0.1, NO_WARNING)
        replayed = cmdpax.replay(
            cmdp,
            ALGORITHM,
            history.log.run(1),
            margin=0.02,
            regularization=0.1,
            max_multiplier=NO_WARNING,
        )
        mass = cmdpax.evaluate(cmdp, saddle.policy).occupancy
        ratio = saddle.log_policy - np.log(replayed.policies)
        distance = (mass * ratio).sum(axis=(1, 2, 3))
        distance += ((saddle.multipliers - replayed.multipliers) ** 2).sum(axis=1) / 2
        np.testing.assert_allclose(history.potential[1], distance, rtol=0, atol=1e-8)

    @pytest.mark.parametrize(
        "chosen",
        [{"regularization": 0.0}, {"regularization": cmdpax.schedules.power(0.1, 0.1)}],
    )
    def test_the_potential_needs_a_constant_regularization(self, chosen):
        with pytest.raises(cmdpax.ParameterError, match="constant τ > 0"):
            learn(potential=True, **chosen)


class TestHistory:
    def test_shapes_and_types(self):
        history = learn(num_episodes=30)
        assert history.episodes.shape == (30,)
        assert history.value.shape == history.suboptimality.shape == (2, 30)
        assert history.constraint_values.shape == history.multipliers.shape == (2, 30, 2)
        assert history.strong_regret.objective.shape == history.weak_regret.maximum.shape == (2, 30)
        assert history.unsafe.shape == (2, len(history.unsafe_at))
        assert history.policy.shape == (2, 3, 3, 2)
        assert history.potential is None
        assert history.log is None
        assert_numpy_doubles(*accounts_of(history).values())

    def test_the_summary_has_one_number_per_run(self):
        history = learn(num_episodes=30, unsafe_at=(0.0, 0.5))
        summary = history.summary()
        np.testing.assert_array_equal(
            summary["strong_constraints"], history.strong_regret.maximum[:, -1]
        )
        np.testing.assert_array_equal(
            summary["weak_objective"], history.weak_regret.objective[:, -1]
        )
        worst = history.violation[:, -1].max(axis=-1)
        np.testing.assert_array_equal(summary["last_violation"], worst)
        np.testing.assert_array_equal(summary["unsafe_at_0.5"], history.unsafe[:, 1])
        assert {array.shape for array in summary.values()} == {(2,)}

    def test_without_constraints_nothing_is_violated(self):
        history = learn(model(0), num_episodes=20)
        assert history.strong_regret.constraints.shape == (2, 20, 0)
        assert not history.strong_regret.maximum.any()
        assert not history.unsafe.any()
        assert not history.summary()["last_violation"].any()

    def test_a_violation_that_is_not_a_number_is_not_zero(self):
        history = learn(num_episodes=20)
        lost = dataclasses.replace(history, constraint_values=history.constraint_values * np.nan)
        assert np.isnan(lost.summary()["last_violation"]).all()

    def test_saved_files_hold_everything(self, tmp_path: Path):
        history = learn(num_episodes=20, log=True, potential=True)
        history.save(tmp_path / "run.npz")
        with np.load(tmp_path / "run.npz", allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
        for name, array in accounts_of(history).items():
            np.testing.assert_array_equal(content[name], array, err_msg=name)
        np.testing.assert_array_equal(content["episodes"], history.episodes)
        np.testing.assert_array_equal(content["thresholds"], history.thresholds)
        np.testing.assert_array_equal(content["potential"], history.potential)
        assert float(content["optimum"]) == history.optimum
        assert tuple(content["unsafe_at"]) == history.unsafe_at
        assert history.log is not None
        for name, array in history.log._asdict().items():
            np.testing.assert_array_equal(content[f"log_{name}"], array)
        assert json.loads(str(content["manifest"])) == history.manifest
        assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]

    def test_the_manifest_replays_the_run(self):
        original = learn(
            seeds=[7, 9],
            step_size=cmdpax.schedules.power(0.4, 0.2, offset=3),
            regularization=0.05,
            margin=0.01,
            optimism=cmdpax.Optimism.theory(100, scale=0.05),
            observations="bernoulli",
            record=[3, 30],
            unsafe_at=(0.2,),
            potential=True,
            log=True,
        )
        manifest = json.loads(json.dumps(original.manifest))
        cmdp = model(2)
        assert manifest["cmdp"] == cmdp.fingerprint
        assert manifest["optimum"] == original.optimum
        assert set(manifest["versions"]) == {"cmdpax", "jax", "numpy", "python"}
        repeated = cmdpax.repeat(cmdp, manifest)
        assert_same_accounts(repeated, original)
        assert repeated.manifest == original.manifest
        np.testing.assert_array_equal(repeated.potential, original.potential)
        assert repeated.log is not None
        assert original.log is not None
        np.testing.assert_array_equal(repeated.log.states, original.log.states)

    def test_a_manifest_belongs_to_its_cmdp(self):
        manifest = learn(num_episodes=5).manifest
        with pytest.raises(cmdpax.ParameterError, match="fingerprint"):
            cmdpax.repeat(bandit(), manifest)
        with pytest.raises(
            cmdpax.ParameterError, match=r"not a manifest of `learn`: .*num_episodes"
        ):
            cmdpax.repeat(bandit(), {"cmdp": "?"})


def own_factory(knowledge: Knowledge, chosen: Hyperparameters) -> Learner:
    return as_algorithm(ALGORITHM).factory(knowledge, chosen)


NOT_A_FACTORY = 3


class TestAddresses:
    def test_a_factory_by_its_address(self):
        found = learn(algorithm=f"{__name__}:own_factory", regularization=0.02)
        assert_same_accounts(found, learn())
        assert found.manifest["algorithm"] == f"{__name__}:own_factory"
        assert_same_accounts(cmdpax.repeat(model(2), found.manifest, algorithm=own_factory), found)

    @pytest.mark.parametrize(
        ("address", "sentence"),
        [
            ("nowhere:factory", "'nowhere:factory' cannot be imported (No module named 'nowhere')"),
            (f"{__name__}:absent", "put its module on PYTHONPATH."),
            (":factory", "cannot be imported"),
            ("math:", "cannot be imported"),
            (f"{__name__}:NOT_A_FACTORY", "is not a factory: it must take"),
        ],
    )
    def test_bad_addresses(self, address: str, sentence: str):
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            learn(algorithm=address)
