import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import cmdpax
from checks import EXACT, assert_numpy_doubles
from golden_files import Golden


def test_fields_are_numpy_doubles_and_jax_stays_in_single_precision(
    two_constraints: Golden,
) -> None:
    found = cmdpax.frontier(two_constraints.cmdp, thresholds=[1, 2])
    assert_numpy_doubles(
        found.thresholds, found.value, found.multipliers, found.constraint_values, found.gap
    )
    assert found.feasible.dtype == bool
    assert found.multipliers.shape == found.constraint_values.shape == (2, 2)
    assert type(found.constraint) is type(found.num_columns) is int
    assert type(found.largest_feasible) is float
    assert not jax.config.jax_enable_x64


def test_progress_counts_points(paper: Golden) -> None:
    reports: list[tuple[int, int]] = []
    cmdpax.frontier(
        paper.cmdp,
        thresholds=[3.0, 9.0, 2.0],
        progress=lambda done, total: reports.append((done, total)),
    )
    assert reports == [(1, 3), (2, 3), (3, 3)]


def test_a_looser_tolerance_leaves_true_gaps() -> None:
    cmdp = cmdpax.environments.make("queue")
    exact = cmdpax.frontier(cmdp, num_points=8)
    loose = cmdpax.frontier(cmdp, thresholds=exact.thresholds, tolerance=0.3)
    assert 1e-6 < np.nanmax(loose.gap) <= 0.3
    assert loose.num_columns < exact.num_columns
    feasible = exact.feasible
    np.testing.assert_array_equal(loose.feasible, feasible)
    assert np.all(loose.value[feasible] <= exact.value[feasible] + EXACT)
    assert np.all(exact.value[feasible] <= (loose.value + loose.gap)[feasible] + EXACT)


def test_a_limit_on_columns_warns_once_and_tells_the_truth() -> None:
    cmdp = cmdpax.environments.make("queue")
    message = r"stopped at gaps of up to .* of 8 thresholds after \d+ columns \(asked for 1e-10\)"
    with pytest.warns(cmdpax.CmdpaxWarning, match=message) as caught:
        early = cmdpax.frontier(cmdp, num_points=8, max_columns=10)
    assert len(caught) == 1
    feasible = early.feasible
    assert np.nanmax(early.gap) > 1e-10
    exact = cmdpax.frontier(cmdp, thresholds=early.thresholds)
    np.testing.assert_array_equal(feasible, exact.feasible)
    assert early.largest_feasible == pytest.approx(exact.largest_feasible, abs=EXACT)
    assert np.all(early.value[feasible] <= exact.value[feasible] + EXACT)
    assert np.all(exact.value[feasible] <= (early.value + early.gap)[feasible] + EXACT)


@pytest.mark.kills
def test_the_warning_points_at_the_callers_line(tmp_path: Path) -> None:
    script = """
import warnings
import cmdpax
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cmdpax.frontier(cmdpax.environments.make("queue"), max_columns=10)
print([warning.filename for warning in caught])
"""
    command = [sys.executable, "-c", script]
    completed = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert completed.stdout.strip() == "['<string>']"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"thresholds": []}, r"thresholds is \[\], it must be a list of numbers such as"),
        ({"thresholds": np.array(0.5)}, r"thresholds is .*0\.5.*, it must be a list of numbers"),
        ({"thresholds": [[0.5]]}, r"thresholds is \[\[0\.5\]\], it must be a list"),
        ({"thresholds": ["high"]}, r"thresholds is \['high'\], it must be a list"),
        ({"thresholds": [1.0, np.nan]}, r"thresholds\[1\] is nan; every threshold must be a fin"),
        ({"thresholds": [-np.inf, 1.0]}, r"thresholds\[0\] is -inf; every threshold must be"),
        ({"constraint": 2}, r"constraint is 2, it must be a whole number from 0 to 1\."),
        ({"constraint": -1}, r"constraint is -1, it must be a whole number from 0 to 1\."),
        ({"num_points": 3}, r"num_points is 3, it must be a whole number of at least 4\."),
        ({"tolerance": 0.0}, r"tolerance is 0\.0, it must be a positive number\."),
        ({"max_columns": 0}, r"max_columns is 0, it must be a whole number of at least 1\."),
        ({"tolerance": float("nan")}, r"tolerance is nan, it must be a positive number\."),
    ],
)
def test_wrong_arguments(
    arguments: dict[str, object], sentence: str, two_constraints: Golden
) -> None:
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        cmdpax.frontier(two_constraints.cmdp, **arguments)  # type: ignore[arg-type]


def test_models_without_constraints_or_with_one(paper: Golden) -> None:
    free = paper.cmdp.replace(constraint_rewards=[], thresholds=[])
    with pytest.raises(cmdpax.ParameterError, match="has no constraints, hence no frontier"):
        cmdpax.frontier(free)
    with pytest.raises(cmdpax.ParameterError, match="constraint is 1, it must be 0, the only one"):
        cmdpax.frontier(paper.cmdp, constraint=1)


def test_models_are_validated(paper: Golden) -> None:
    with pytest.raises(cmdpax.ModelError, match=r"initial sums to 0\.5"):
        cmdpax.frontier(paper.cmdp.replace(initial=[0.5, 0, 0, 0, 0]))
