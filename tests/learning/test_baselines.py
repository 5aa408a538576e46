"""Algorithms that start from a safe baseline: who finds it, who tells what it reaches, and where it
is written down."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from baseline_cases import ADDRESS, CAUTIOUS, cautious, mixture
from cmdpax.experiments import read_specification
from cmdpax.experiments.cluster.messages import read_order, write_model, write_order
from cmdpax.experiments.executing import Work
from cmdpax.experiments.runs import Batch, make_models, make_runs
from cmdpax.experiments.sizing import estimate
from cmdpax.learners import Algorithm
from cmdpax.planning.safest import safest_policy
from learning_cases import logged, model
from sweep_cases import SMALL


def safe_table() -> np.ndarray:
    """A policy of `model(2)` that has slack and is not the safest: near to it."""
    return 0.9 * safest_policy(model(2)) + 0.1 / 2


def learn(cmdp: cmdpax.CMDP | None = None, algorithm: Any = CAUTIOUS, **changes: Any) -> Any:
    arguments = {"num_episodes": 4} | changes
    return cmdpax.learn(model(2) if cmdp is None else cmdp, algorithm, **arguments)


class TestSafest:
    def test_it_has_the_largest_worst_slack_in_the_scales_of_the_constraints(self) -> None:
        cmdp = model(2)
        largest = cmdp.constraint_rewards.max(axis=(1, 2, 3))
        scaled = cmdp.replace(
            constraint_rewards=cmdp.constraint_rewards / largest[:, None, None, None],
            thresholds=cmdp.thresholds / largest,
        )
        gap = cmdpax.slater_gap(scaled)
        assert gap is not None
        found = cmdpax.evaluate(scaled, safest_policy(cmdp)).constraint_values - scaled.thresholds
        assert found.min() == pytest.approx(gap.gap, abs=1e-9)

    def test_the_units_of_a_constraint_do_not_matter(self) -> None:
        cmdp = model(2)
        factors = np.array([1000.0, 1.0])
        other = cmdp.replace(
            constraint_rewards=cmdp.constraint_rewards * factors[:, None, None, None],
            thresholds=cmdp.thresholds * factors,
        )
        found = [
            cmdpax.evaluate(cmdp, safest_policy(one)).constraint_values for one in (cmdp, other)
        ]
        np.testing.assert_allclose(*found, rtol=0, atol=1e-9)

    def test_without_constraints_it_is_uniform(self) -> None:
        assert (safest_policy(model(0)) == 0.5).all()


class TestSimulations:
    @pytest.mark.parametrize("given", [None, "safest"])
    def test_the_runner_finds_the_safest_policy(self, given: Any) -> None:
        history, safest = learn(baseline=given), safest_policy(model(2))
        np.testing.assert_allclose(history.policy[0], mixture(safest), rtol=0, atol=1e-12)
        assert history.manifest["baseline"] == "safest"

    def test_a_policy_is_taken_in_all_its_forms(self) -> None:
        table = safe_table()
        expected = learn(baseline=table)
        np.testing.assert_allclose(expected.policy[0], mixture(table), rtol=0, atol=1e-12)

        def by_name(state: str, step: int) -> Any:
            return table[step, int(state[1:])]

        for form in (cmdpax.Policy(table), by_name, table.tolist()):
            np.testing.assert_array_equal(learn(baseline=form).policy, expected.policy)

    def test_the_learner_is_told_what_it_reaches_in_its_own_units(self) -> None:
        """Costs in tens, rewards from -1: what a replay shows is back in the user's units."""
        small = model(2)
        cmdp = cmdpax.CMDP(
            small.transitions,
            2 * small.rewards - 1,
            10 * (1 - small.constraint_rewards),
            10 * (small.horizon - small.thresholds),
            small.initial,
            small.horizon,
            senses="at most",
        )
        log = logged(small, 3)
        costs = 10 * (1 - np.asarray(log.constraint_rewards))
        log = cmdpax.Log(log.states, log.actions, 2 * np.asarray(log.rewards) - 1, costs)
        found = cmdpax.replay(cmdp, CAUTIOUS, log, baseline=safe_table())
        expected = cmdpax.evaluate(cmdp, safe_table()).constraint_values
        shown = np.broadcast_to(expected, found.optimistic_constraint_values.shape)
        np.testing.assert_allclose(found.optimistic_constraint_values, shown, rtol=0, atol=1e-9)

    def test_runs_are_made_again_from_what_their_manifest_says(self) -> None:
        for given in ("safest", safe_table()):
            history = learn(baseline=given, seeds=2)
            manifest = json.loads(json.dumps(history.manifest))
            again = cmdpax.repeat(model(2), manifest, algorithm=CAUTIOUS)
            np.testing.assert_array_equal(again.policy, history.policy)
            np.testing.assert_array_equal(again.value, history.value)

    def test_a_policy_of_all_steps_is_written_down_once(self) -> None:
        table = np.broadcast_to(safe_table()[:1], (3, 3, 2))
        small = model(2).replace(thresholds=np.full(2, 0.1))
        assert np.shape(learn(small, baseline=table).manifest["baseline"]) == (1, 3, 2)

    def test_a_checkpoint_belongs_to_its_baseline(self, tmp_path: Path) -> None:
        path = tmp_path / "kept"
        history = learn(baseline=safe_table(), checkpoint=path)
        again = learn(baseline=safe_table(), checkpoint=path)
        np.testing.assert_array_equal(again.policy, history.policy)
        with pytest.raises(cmdpax.FileError, match="baseline differs"):
            learn(checkpoint=path)


class TestSweeps:
    def wanted(self, **changes: Any) -> dict[str, Any]:
        plain = {
            "num_episodes": 4,
            "cmdps": [{"environment": "random", "parameters": SMALL | {"seed": [1, 2]}}],
            "algorithms": [{"name": ADDRESS, "share": [0.5, 1.0]}],
        }
        return plain | changes

    def test_every_model_of_a_batch_has_its_own(self, tmp_path: Path) -> None:
        results = cmdpax.sweep(self.wanted(), tmp_path)
        assert len(results.final) == 4
        for row in results.final.iter_rows(named=True):
            cmdp = results.cmdps[row["cmdp"]]
            history = results.repeat(row["run"], algorithm=ADDRESS)
            expected = mixture(safest_policy(cmdp), row["share"])
            np.testing.assert_allclose(history.policy[0], expected, rtol=0, atol=1e-12)
            strong = history.summary()["strong_objective"][0]
            assert row["strong_objective"] == pytest.approx(strong, abs=1e-9)
        assert cmdpax.sweep(self.wanted(), tmp_path).final.equals(results.final)

    def test_a_table_of_ones_own_is_kept_in_the_folder(self, tmp_path: Path) -> None:
        one = [{"environment": "random", "parameters": SMALL | {"seed": 1}}]
        cmdp = cmdpax.environments.make("random", **SMALL, seed=1)
        table = 0.9 * safest_policy(cmdp) + 0.05
        results = cmdpax.sweep(self.wanted(cmdps=one, baseline=table), tmp_path)
        for run, share in results.final.select("run", "share").iter_rows():
            again = results.repeat(run, algorithm=ADDRESS)
            np.testing.assert_allclose(again.policy[0], mixture(table, share), rtol=0, atol=1e-12)
        with pytest.raises(cmdpax.ParameterError, match="holds runs with baseline = "):
            cmdpax.sweep(self.wanted(cmdps=one), tmp_path)

    def test_the_names_of_other_runs_do_not_depend_on_it(self) -> None:
        both = [{"name": ADDRESS}, {"name": "vanilla-dual"}]
        names = []
        for baseline in ("safest", [[0.5, 0.5]] * 3):
            wanted = read_specification(self.wanted(algorithms=both, baseline=baseline))
            names.append([run.identity for run in make_runs(wanted, ["a"])])
        (own, other), (own_now, other_now) = names
        assert own != own_now
        assert other == other_now

    def test_workers_are_sent_it(self) -> None:
        wanted = read_specification(self.wanted(baseline=[[0.25, 0.75]] * 3))
        models = make_models(wanted)
        batch = Batch(make_runs(wanted, models))
        files = [write_model(model.cmdp) for model in models.values()]
        work, _ = read_order(write_order(Work(wanted, models), batch), files)
        assert work.wanted.settings.baseline == ((0.25, 0.75),) * 3

    def test_workers_of_other_algorithms_are_sent_none(self) -> None:
        both = [{"name": ADDRESS}, {"name": "vanilla-dual"}]
        wanted = read_specification(self.wanted(algorithms=both, baseline=[[0.25, 0.75]] * 3))
        models = make_models(wanted)
        others = [run for run in make_runs(wanted, models) if run.algorithm == "vanilla-dual"]
        files = [write_model(model.cmdp) for model in models.values()]
        work, _ = read_order(write_order(Work(wanted, models), Batch(others)), files)
        assert work.wanted.settings.baseline is None


def refused(call: Any, *parts: str) -> None:
    with pytest.raises(cmdpax.ParameterError) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
    assert str(caught.value).endswith(".")


class TestRefusals:
    def test_algorithms_that_start_from_none(self) -> None:
        start = "baseline was given, but vanilla-dual does not start from a policy that is known"
        refused(lambda: learn(algorithm="vanilla-dual", baseline="safest"), start)
        log = logged(model(2), 3)
        refused(lambda: cmdpax.replay(model(2), "vanilla-dual", log, baseline=[0] * 3), start)
        known = {"name": "vanilla-dual"}
        wanted = TestSweeps().wanted(algorithms=[known], baseline="safest")
        refused(lambda: read_specification(wanted), "none of the algorithms starts from a policy")

    @pytest.mark.parametrize(
        ("given", "part"),
        [
            ("best", "baseline is 'best'; give \"safest\", a policy [H, S, A] or [S, A] of proba"),
            ([[0.5, 0.6]] * 3, "baseline has [0.5, 0.6] in s0 at step 0; its probabilities"),
            ([0, 1], "baseline has shape (2,), expected (3, 3, 2) or (3, 2); give a policy"),
            (lambda state: 5, "baseline gives 5 for a state; give one of the actions 0 … 1"),
        ],
    )
    def test_what_is_no_policy(self, given: Any, part: str) -> None:
        refused(lambda: learn(baseline=given), part)

    def test_large_tables_belong_in_no_manifest(self) -> None:
        large = np.full((1, 50_001, 2), 0.5)
        wanted = TestSweeps().wanted(baseline=large)
        refused(
            lambda: read_specification(wanted), "baseline has 100,002 probabilities, a manifest"
        )

    def test_a_baseline_that_is_not_safe(self, tmp_path: Path) -> None:
        reached = cmdpax.evaluate(model(2), safe_table()).constraint_values
        strict = model(2).replace(thresholds=reached + np.array([-0.3, 0.01]))
        said = (
            "the baseline reaches",
            "in utility 1, which must be at least",
            "missing it by 0.01",
        )
        refused(lambda: learn(strict, baseline=safe_table()), *said)
        refused(
            lambda: learn(model(2).replace(thresholds=reached), baseline=safe_table()),
            'without slack; give one that has slack in every constraint, or baseline="safest"',
        )
        wanted = TestSweeps().wanted(baseline=[[0.0, 1.0]] * 3)
        cmdp = cmdpax.environments.make("random", **SMALL, seed=1)
        assert (cmdpax.evaluate(cmdp, [[[0.0, 1.0]] * 3]).constraint_values < cmdp.thresholds).any()
        refused(lambda: cmdpax.sweep(wanted, tmp_path), "random(", "the baseline reaches")

    def test_a_model_without_slack(self) -> None:
        gap = cmdpax.slater_gap(model(1))
        assert gap is not None
        tight = model(1).replace(thresholds=model(1).thresholds + gap.gap)
        refused(lambda: learn(tight), "the safest policy reaches", "no policy has slack in every")

    def test_more_constraints_than_an_algorithm_handles(self, tmp_path: Path) -> None:
        said = "cautious handles 2 constraints, the CMDP has 3; use an algorithm that handles any"
        refused(lambda: learn(model(3)), said)
        refused(lambda: cmdpax.replay(model(3), CAUTIOUS, logged(model(3), 3)), said)
        single = Algorithm("single", cautious, needs_baseline=True, max_constraints=1)
        refused(lambda: learn(algorithm=single), "single handles 1 constraint, the CMDP has 2;")
        three = [{"environment": "random", "parameters": SMALL | {"num_constraints": 3}}]
        wanted = TestSweeps().wanted(cmdps=three)
        refused(lambda: cmdpax.sweep(wanted, tmp_path), "handles 2 constraints, the CMDP has 3")
        assert not any(tmp_path.iterdir())
        refused(lambda: estimate(wanted), "handles 2 constraints, the CMDP has 3")
