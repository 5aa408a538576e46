"""Runs and their identities, and the batches that they are run in."""

from collections import Counter
from typing import Any

import jax
import pytest

import cmdpax
from cmdpax.experiments import runs as module
from cmdpax.experiments.runs import (
    Batch,
    Run,
    batch_name,
    episodes_in_memory,
    make_batches,
    make_models,
    make_runs,
)
from cmdpax.experiments.specification import read_specification
from sweep_cases import SMALL, specification

ALGORITHM = "regularized-primal-dual"


def runs_of(**changes: Any) -> list[Run]:
    wanted = read_specification(specification(**changes))
    return make_runs(wanted, make_models(wanted))


def batches_of(**changes: Any) -> list[Batch]:
    wanted = read_specification(specification(**changes))
    models = make_models(wanted)
    runs = make_runs(wanted, models)
    batches = make_batches(runs, models, wanted)
    assert Counter(run for batch in batches for run in batch.runs) == Counter(runs)
    assert len({batch.name for batch in batches}) == len(batches)
    return batches


def random(**parameters: Any) -> dict[str, Any]:
    return {"environment": "random", "parameters": SMALL | parameters}


class TestRuns:
    def test_all_combinations(self):
        found = runs_of(
            seeds=[3, 8, 9],
            cmdps=[random(seed=[1, 2], num_constraints=[1, 2]), {"environment": "bandit"}],
            algorithms=[
                {
                    "name": ALGORITHM,
                    "step_size": [0.1, "0.2*k^-0.1"],
                    "regularization": [0.01, 0.02],
                    "max_multiplier": [5, 6, 7],
                    "margin": [0.0, 0.1],
                    "optimism": ["empirical", "live"],
                },
                {"name": "vanilla-dual", "step_size": [0.1, 0.2]},
            ],
        )
        assert len(found) == 3 * 5 * (2 * 2 * 3 * 2 * 2 + 2)
        assert len({run.identity for run in found}) == len(found)
        assert len({run.configuration_name for run in found}) == 2 * 2 * 3 * 2 * 2 + 2
        assert len({run.fingerprint for run in found}) == 5
        assert {run.configuration.seed for run in found} == {3, 8, 9}

    def test_each_once(self):
        repeated = runs_of(
            seeds=[0, 1, 1],
            cmdps=[random(seed=[1, 2, 1]), random(seed=2)],
            algorithms=[{"name": ALGORITHM, "step_size": [0.2, 0.4, "0.4*k^-0"]}] * 2,
        )
        assert repeated == runs_of()

    def test_the_identity_has_everything_that_numbers_depend_on(self):
        alone: dict[str, Any] = {"seeds": [0], "cmdps": [random(seed=1)]}
        chosen = {"name": ALGORITHM, "step_size": 0.2}
        changes: list[dict[str, Any]] = [
            {},
            {"num_episodes": 31},
            {"seeds": [1]},
            {"cmdps": [random(seed=2)]},
            {"observations": "bernoulli"},
            {"precision": "single"},
            {"optimism": "live"},
            {"optimism": {"scale": 0.081}},
            {"algorithms": [chosen | {"name": "regularized-dual"}]},
            {"algorithms": [chosen | {"step_size": 0.21}]},
            {"algorithms": [chosen | {"step_size": "0.2*k^-0.01"}]},
            {"algorithms": [chosen | {"step_size": "0.2*(k+1)^-0.01"}]},
            {"algorithms": [chosen | {"regularization": 0.021}]},
            {"algorithms": [chosen | {"max_multiplier": 6.1}]},
            {"algorithms": [chosen | {"margin": 0.01}]},
            {"algorithms": [chosen | {"optimism": {"unvisited_rows": "zero"}}]},
        ]
        found = [runs_of(**(alone | {"algorithms": [chosen]} | change)) for change in changes]
        identities = {run.identity for runs in found for run in runs}
        assert len(identities) == len(changes) == sum(len(runs) for runs in found)

    def test_the_identity_has_nothing_else(self):
        expected = {run.identity for run in runs_of()}
        turned = runs_of(
            seeds=[1, 0],
            cmdps=[random(seed=2), random(seed=1)],
            algorithms=[{"name": ALGORITHM, "step_size": [0.4, 0.2]}],
            record=[3],
            unsafe_at=[0.5],
        )
        assert {run.identity for run in turned} == expected
        larger = runs_of(
            seeds=[7, 1, 0],
            cmdps=[random(seed=[3, 2, 1])],
            algorithms=[
                {"name": "vanilla-dual"},
                {"name": ALGORITHM, "step_size": [1, 0.4, 0.2], "optimism": ["live", "empirical"]},
            ],
        )
        assert {run.identity for run in larger} > expected

    def test_a_file_and_an_environment_are_the_same_cmdp(self, tmp_path):
        cmdp = cmdpax.environments.make("random", **SMALL, seed=1)
        cmdpax.save(cmdp, tmp_path / "one.json")
        found = runs_of(cmdps=[{"file": str(tmp_path / "one.json")}])
        made = runs_of(cmdps=[random(seed=1)])
        assert [run.identity for run in found] == [run.identity for run in made]

    def test_models_have_names_for_people(self):
        content = specification(cmdps=[random(seed=[1, 2]), {"environment": "ring"}])
        names = [model.name for model in make_models(read_specification(content)).values()]
        expected = "random(num_states=3, num_actions=2, horizon=3, seed=1)"
        assert names == [expected, expected.replace("seed=1", "seed=2"), "ring"]


class TestBatches:
    def test_few_runs_per_cmdp_are_pooled_and_many_are_not(self):
        pooled = batches_of(seeds=3)  # 6 per CMDP
        assert [len(batch.runs) for batch in pooled] == [12]
        apart = batches_of(seeds=4)  # 8 per CMDP
        assert [len(batch.runs) for batch in apart] == [8, 8]
        assert all(len({run.fingerprint for run in batch.runs}) == 1 for batch in apart)

    @pytest.mark.parametrize("seeds", [1, 8])
    def test_a_batch_has_one_program(self, seeds: int):
        grid = {"layout": "S.1/..G", "horizon": [4, 5]}
        content = specification(
            seeds=seeds,
            cmdps=[
                random(seed=[1, 2], num_constraints=[0, 1, 2], horizon=[3, 4]),
                random(seed=1, num_states=4),
                {"environment": "gridworld", "parameters": grid},
            ],
            algorithms=[
                {"name": ALGORITHM, "optimism": ["empirical", "live", {"scale": 1}]},
                {"name": "vanilla-primal-dual"},
            ],
        )
        models = make_models(read_specification(content))
        batches = batches_of(**content)
        kinds = []
        for batch in batches:
            cmdps = [models[run.fingerprint].cmdp for run in batch.runs]
            shapes = {str([leaf.shape for leaf in jax.tree.leaves(cmdp)]) for cmdp in cmdps}
            rewards = {run.configuration.optimism.rewards for run in batch.runs}
            structures = {jax.tree.structure(cmdp) for cmdp in cmdps}
            algorithms = {run.algorithm for run in batch.runs}
            assert len(shapes) == len(rewards) == len(structures) == len(algorithms) == 1
            assert algorithms == {batch.algorithm}
            kinds.append((batch.algorithm, *rewards, *shapes, *structures))
        if seeds == 1:
            assert len(set(kinds)) == len(kinds)  # nothing is cut without need
            assert len(kinds) == (6 + 1 + 2) * 3

    @pytest.mark.parametrize(("most", "sizes"), [(5, [4, 4, 4]), (11, [6, 6]), (1, [1] * 12)])
    def test_the_number_of_runs_is_bounded(self, monkeypatch, most: int, sizes: list[int]):
        monkeypatch.setattr(module, "_BATCH_RUNS", most)
        assert [len(batch.runs) for batch in batches_of(seeds=3)] == sizes

    def test_memory_is_bounded(self, monkeypatch):
        model_bytes = 3 * 3 * 2 * 3 * (12 + 8)  # counts and p̂; its own p
        run_bytes = model_bytes + 2 * 30 * (3 + 4) * 8
        monkeypatch.setattr(module, "_BATCH_BYTES", 3 * run_bytes)
        assert [len(batch.runs) for batch in batches_of(seeds=3)] == [3, 3, 3, 3]
        monkeypatch.setattr(module, "_BATCH_BYTES", 1)  # never less than one
        assert len(batches_of(seeds=3)) == 12

    def test_the_name_is_that_of_the_runs(self):
        batch, other = batches_of(seeds=1)[0], batches_of(seeds=[1])[0]
        assert batch.name == batch_name([run.identity for run in batch.runs])
        assert batch.name != other.name

    def test_measures_need_more_episodes_than_the_curves(self):
        wanted = read_specification(specification(record=5))
        assert episodes_in_memory(wanted).tolist() == list(range(1, 31))
        long = read_specification(specification(num_episodes=200_000, record=[77_777]))
        kept = episodes_in_memory(long)
        assert {77_777, 20_000, 200_000} <= set(kept.tolist())
        assert len(kept) < 11_000
