"""Runs that fail in a sweep: they are listed, the others are done, and nothing of them is kept."""

import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import broken_learners
import cmdpax
from cmdpax.errors import CmdpaxError, CmdpaxWarning
from cmdpax.experiments import executing
from cmdpax.experiments.executing import in_one_line
from sweep_cases import SMALL, assert_same_frames, specification

pytestmark = pytest.mark.filterwarnings("ignore:.* failed, the others go on")
ONE = [{"environment": "random", "parameters": SMALL | {"seed": 1}}]
HALF = {"name": "broken_learners:wrong_if_regularized", "regularization": [0.0, 1.0]}


def sweep(folder: Path, *algorithms: dict[str, Any], **changes: Any) -> Any:
    return cmdpax.sweep(specification(cmdps=ONE, algorithms=list(algorithms), **changes), folder)


def error_of(folder: Path, *algorithms: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(cmdpax.SweepError) as raised:
        sweep(folder, *algorithms, **changes)
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("pair", "the learner broken_learners:pair returned a tuple from its factory; return"),
        ("no_step", "returned a policy of shape (3, 2), expected (H, S, A) = (3, 3, 2); give"),
        ("growing", "changed state.episode from int32[] to int32[2] in update; keep"),
        ("raising", "ZeroDivisionError: nothing left … to divide (broken_learners.py:"),
        ("logits", "a policy with rows that do not sum to 1, first in episode 1 (seed 0); norm"),
        ("not_a_number", "a policy with entries that are not finite numbers, first in episode 1 ("),
        ("wild_multipliers", "multipliers that are not finite numbers, first in episode 1 (seed"),
    ],
)
def test_one_algorithm_that_fails_does_not_end_the_others(
    name: str, sentence: str, tmp_path: Path
) -> None:
    """It comes first; the other one is done all the same, with its usual numbers."""
    address, fine = f"broken_learners:{name}", {"name": "vanilla-dual", "step_size": 0.2}
    message = error_of(tmp_path / "out", {"name": address, "step_size": [0.2, 0.4]}, fine)
    first, *lines = message.splitlines()
    assert first == (
        f"4 runs failed; everything else is in {tmp_path / 'out'}, and the same command tries "
        "them again:"
    )
    (line,) = lines
    told = "regularization 0, max_multiplier 6, margin 0"
    both = f"step_size 0.2, {told}; step_size 0.4, {told}"
    assert line.startswith(f"  {address} ({both}), 4 runs: ")
    assert sentence in line
    found = cmdpax.results(tmp_path / "out")
    assert set(found.final["algorithm"]) == {"vanilla-dual"}
    expected = sweep(tmp_path / "alone", fine)
    assert_same_frames(found.final, expected.final, 0.0)


def test_the_failed_runs_of_a_batch_are_left_out(tmp_path: Path) -> None:
    """Four runs share a batch; those with τ = 1 break in episode 7, the others are written."""
    message = error_of(tmp_path, HALF)
    assert message.startswith("2 runs failed; ")
    assert message.count("\n") == 1
    assert re.search(
        r"wrong_if_regularized \(step_size 0.1, regularization 1, max_multiplier 6, margin 0\), "
        r"2 runs: a policy with entries that are not finite numbers, first in episode 7 \(seed 0\)",
        message,
    )
    found = cmdpax.results(tmp_path)
    assert found.final["regularization"].to_list() == [0.0, 0.0]
    assert found.final["seed"].to_list() == [0, 1]
    curves = found.curves.collect()
    assert set(curves["run"]) == set(found.final["run"])
    assert np.isfinite(curves["value"].to_numpy()).all()
    (part,) = (tmp_path / "parts").iterdir()
    assert (tmp_path / "final" / f"{part.stem}.parquet").exists()


def test_the_same_command_tries_them_again_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error_of(tmp_path, HALF)
    tried: list[float] = []
    plain = executing.run_one

    def counted(work: Any, batch: Any, *rest: Any) -> Any:
        tried.extend(run.configuration.parameters.regularization.initial for run in batch.runs)
        return plain(work, batch, *rest)

    monkeypatch.setattr(executing, "run_one", counted)
    error_of(tmp_path, HALF)
    assert tried == [1.0, 1.0]
    monkeypatch.setattr(  # the learner is mended
        broken_learners, "wrong_if_regularized", broken_learners.sound
    )
    assert len(sweep(tmp_path, HALF).final) == 4
    assert tried == [1.0] * 4


def test_runs_that_are_all_wrong_are_not_played_to_the_end(tmp_path: Path) -> None:
    episodes: list[int] = []
    wanted = specification(
        cmdps=ONE,
        algorithms=[{"name": "broken_learners:not_a_number"}],
        num_episodes=10**7,
        record=5,
    )
    with pytest.raises(cmdpax.SweepError, match="2 runs failed"):
        cmdpax.sweep(wanted, tmp_path, progress=lambda stand: episodes.append(stand.episodes))
    assert max(episodes) <= 2 * 1024


def test_every_failure_is_said_at_once(tmp_path: Path) -> None:
    with pytest.warns(CmdpaxWarning, match="2 runs failed, the others go on: broken_learners:"):
        error_of(tmp_path, HALF, {"name": "vanilla-dual"})


def test_what_is_not_the_learners_fault_ends_the_sweep(tmp_path: Path) -> None:
    """A function of the user's that is told the progress may raise; Ctrl-C does."""

    def raising(kind: type[BaseException]) -> Callable[[Any], None]:
        def report(stand: Any) -> None:
            raise kind("enough")

        return report

    for kind in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(kind, match="enough"):
            cmdpax.sweep(specification(cmdps=ONE), tmp_path, progress=raising(kind))


def test_a_module_that_cannot_be_imported_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(cmdpax.ParameterError, match="cannot be imported"):
        sweep(tmp_path / "out", {"name": "vanilla-dual"}, {"name": "no_such_module:learner"})
    assert not (tmp_path / "out").exists()


def test_errors_in_one_line() -> None:
    def line(error: Exception) -> str:
        try:
            raise error
        except Exception as raised:
            return in_one_line(raised)

    assert line(CmdpaxError("a sentence.")) == "a sentence."
    assert re.fullmatch(r"ValueError: no \(test_failing_runs.py:\d+\)", line(ValueError("no")))
    nested = "INTERNAL: it\n\nTraceback (most recent call last):\n  File x\nKeyError: 'y'"
    assert line(RuntimeError(nested)).startswith("RuntimeError: INTERNAL: it … KeyError: 'y' (")
    assert line(ValueError()).startswith("ValueError:  (")


# ------------------------------------------------------------ folders that were written before


@pytest.fixture
def poisoned(tmp_path: Path) -> cmdpax.Results:
    """As earlier versions wrote it: one of two configurations has accounts that are not numbers."""
    grid = {"name": "regularized-dual", "regularization": [0.1, 0.2]}
    results = sweep(tmp_path, grid, {"name": "vanilla-dual"})
    broken = polars.col("regularization") == 0.1
    regrets = ("strong_objective", "strong_constraints", "weak_objective", "weak_constraints")
    nan = [polars.when(broken).then(math.nan).otherwise(polars.col(n)).alias(n) for n in regrets]
    zero = ("last_violation", "unsafe_at_0.01")
    safe = [polars.when(broken).then(0.0).otherwise(polars.col(n)).alias(n) for n in zero]
    results.final = results.final.with_columns(*nan, *safe)
    return results


@pytest.mark.parametrize("by", ["strong", "weak", "unsafe_at_0.01", "last_violation", "capped"])
def test_a_configuration_without_numbers_never_wins(poisoned: cmdpax.Results, by: str) -> None:
    best = poisoned.best(by).filter(polars.col("algorithm") == "regularized-dual")
    assert best["regularization"].to_list() == [0.2]
    assert math.isfinite(best["score"][0])


def test_not_even_against_a_measure_that_is_not_defined(poisoned: cmdpax.Results) -> None:
    """A growth exponent is NaN where the regret was 0: better than a regret that is NaN."""
    poisoned.final = poisoned.final.with_columns(growth_objective=polars.lit(math.nan))
    best = poisoned.best("growth_objective").filter(polars.col("algorithm") == "regularized-dual")
    assert best["regularization"].to_list() == [0.2]


def test_it_loses_every_comparison(poisoned: cmdpax.Results) -> None:
    broken = poisoned.final.filter(polars.col("regularization") == 0.1)["configuration"][0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lost = cmdpax.compare(poisoned, broken, "vanilla-dual", by="unsafe_at_0.01")
        won = cmdpax.compare(poisoned, "vanilla-dual", broken, by="unsafe_at_0.01")
    assert (lost.first_mean, lost.first_smaller) == (math.inf, 0)
    assert won.first_smaller == 1
