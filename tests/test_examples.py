"""The examples run, are short, draw something, and say what is true."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax

FOLDER = Path(__file__).parent.parent / "examples"
NAMES = ["cliff_walking", "frozen_lake", "own_algorithm", "service_queue", "taxi"]


def example(name: str) -> dict[str, Any]:
    """The names of an example, which is not run yet."""
    return runpy.run_path(str(FOLDER / f"{name}.py"))


def require_picture(path: Path) -> None:
    """A PNG that is not empty."""
    from matplotlib.image import imread

    assert imread(path).std() > 0.01


def test_all_are_named_and_short() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == NAMES
    for name in NAMES:
        most = 100 if name == "own_algorithm" else 60  # a learner with its record and its state
        assert len((FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()) < most, name


@pytest.mark.parametrize("name", ["cliff_walking", "frozen_lake", "service_queue", "taxi"])
def test_they_say_how_they_are_run(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert f"python examples/{name}.py {name}.png" in text


@pytest.mark.whole
def test_frozen_lake(tmp_path: Path) -> None:
    picture = tmp_path / "lake.png"
    optimum, truth, account = example("frozen_lake")["main"](picture, num_episodes=1000)
    require_picture(picture)
    assert optimum == pytest.approx(0.7094029, abs=1e-6)
    assert abs(truth.values[-1] - optimum) < 0.08
    assert abs(truth.constraint_values[-1, 0] - 4) < 0.3
    assert abs(account[0].recent.mean - truth.constraint_values[-4:, 0].mean()) < 0.8
    assert account.episodes == 1000


@pytest.mark.whole
def test_cliff_walking(tmp_path: Path) -> None:
    picture = tmp_path / "cliff.png"
    found = example("cliff_walking")["main"](picture)
    require_picture(picture)
    budgets, values, costs = np.array(found).T
    assert (np.diff(values) < 0).all()  # a smaller budget costs reward
    np.testing.assert_allclose(costs[1:], budgets[1:], atol=1e-6)
    assert costs[0] < budgets[0]


@pytest.mark.whole
def test_taxi(tmp_path: Path) -> None:
    picture = tmp_path / "taxi.png"
    found = example("taxi")["main"](picture)
    require_picture(picture)
    assert found.largest_feasible == pytest.approx(0.2)  # rides that begin in the zone
    assert np.isnan(found.value[~found.feasible]).all()
    assert (np.diff(found.value[found.feasible]) > -1e-9).all()
    assert np.nanmax(found.value) == pytest.approx(7.93)


@pytest.mark.whole
def test_service_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart changes nothing."""
    picture = tmp_path / "queue.png"
    restarted = example("service_queue")["main"](picture)
    require_picture(picture)
    assert abs(restarted.account[0].recent.mean - 25) < 5
    monkeypatch.setattr(cmdpax.Agent, "load", lambda path: kept[0])
    kept: list[cmdpax.Agent] = []
    monkeypatch.setattr(cmdpax.Agent, "save", lambda agent, path: kept.append(agent))
    uninterrupted = example("service_queue")["main"](tmp_path / "again.png")
    assert uninterrupted is kept[0]
    np.testing.assert_array_equal(uninterrupted.policy, restarted.policy)
    np.testing.assert_array_equal(uninterrupted.visits, restarted.visits)
    assert uninterrupted.account == restarted.account
