"""`Results.repeat` makes the same run again, whatever all runs of the sweep share."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.experiments.specification import SHARED
from cmdpax.learners import as_algorithm
from sweep_cases import specification

SETTINGS = ("stationary", "observations", "precision")
PAIRS = [  # every pair of values
    (False, "mean", "double"),
    (False, "bernoulli", "single"),
    (True, "mean", "single"),
    (True, "bernoulli", "double"),
]


def test_every_setting_is_among_them() -> None:
    """A new one needs a value here; those that are left out say what is kept of a run."""
    elsewhere = {"baseline"}  # in tests/learning/test_baselines.py: few algorithms have one
    assert {*SETTINGS, *elsewhere, "num_episodes", "record", "unsafe_at"} == set(SHARED)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:max_multiplier is 6, below")
@pytest.mark.parametrize("chosen", PAIRS)
def test_the_numbers_are_those_of_the_sweep(chosen: tuple[object, ...], tmp_path: Path) -> None:
    """With known and with estimated rewards."""
    settings = dict(zip(SETTINGS, chosen, strict=True))
    results = cmdpax.sweep(
        specification(
            cmdps=[{"environment": "ring", "parameters": {"horizon": 4, "budget": 2.0}}],
            algorithms=[
                {"name": "vanilla-dual", "optimism": ["empirical", "live"]},
            ],
            seeds=1,
            unsafe_at=[0.2],
            **settings,
        ),
        tmp_path,
    )
    rows = results.final.rows(named=True)
    assert sorted(row["optimism_rewards"] for row in rows) == ["estimated", "known"]
    for row in rows:
        history = results.repeat(row["run"])
        for name, found in (
            ("strong_objective", history.strong_regret.objective[0, -1]),
            ("strong_constraints", history.strong_regret.maximum[0, -1]),
            ("weak_objective", history.weak_regret.objective[0, -1]),
            ("unsafe_at_0.2", history.unsafe[0, 0]),
        ):
            tolerance = 1e-9 if settings["precision"] == "double" else 1e-4
            np.testing.assert_allclose(found, row[name], rtol=0, atol=tolerance, err_msg=name)
        for name, value in settings.items():
            assert history.manifest[name] == value


def own(knowledge: cmdpax.learners.Knowledge, chosen: cmdpax.learners.Hyperparameters) -> object:
    return as_algorithm("vanilla-dual").factory(knowledge, chosen)


def another(knowledge: Any, chosen: Any) -> object:
    return own(knowledge, chosen)


@pytest.mark.filterwarnings("ignore:max_multiplier is 6, below")
class TestAlgorithmsOfOnesOwn:
    @pytest.fixture
    def results(self, tmp_path: Path) -> cmdpax.Results:
        bandit = [{"environment": "bandit"}]
        return cmdpax.sweep(
            specification(cmdps=bandit, algorithms=[{"name": own}], seeds=1), tmp_path
        )

    def test_are_given_as_a_factory_or_an_address(self, results: cmdpax.Results) -> None:
        row = results.final.row(0, named=True)
        for algorithm in (own, f"{__name__}:own"):
            history = results.repeat(row["run"], algorithm=algorithm)
            assert history.strong_regret.objective[0, -1] == pytest.approx(row["strong_objective"])

    def test_are_not_imported(self, results: cmdpax.Results) -> None:
        (run,) = results.final["run"]
        with pytest.raises(cmdpax.ParameterError, match=r":own', which cmdpax does not have; give"):
            results.repeat(run)
        for other in ("vanilla-dual", another, f"{__name__}:another"):
            with pytest.raises(cmdpax.ParameterError, match=r"not with .*; give the one that made"):
                results.repeat(run, algorithm=other)
        with pytest.raises(cmdpax.ParameterError, match="'as_algorithm' is not a factory"):
            results.repeat(run, algorithm=as_algorithm)
