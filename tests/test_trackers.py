"""`docs/trackers.md`: what its functions hand over is what the history holds."""

import re
import struct
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cmdpax

PAGE = (Path(__file__).parent.parent / "docs" / "trackers.md").read_text(encoding="utf-8")
FILES = dict(
    re.findall(r'^```python title="(\w+)\.py"\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE)
)
NUM_RUNS, RECORDED = 2, [1, 10, 20]


@pytest.fixture(scope="module")
def history() -> cmdpax.History:
    cmdp = cmdpax.environments.make("bandit")
    return cmdpax.learn(cmdp, "vanilla-dual", num_episodes=20, seeds=[3, 5], record=RECORDED)


@pytest.fixture
def function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Callable[..., None]]]:
    """A function of the page, by the name of its file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, code in FILES.items():
        Path(f"{name}.py").write_text(code, encoding="utf-8")
    yield lambda name: getattr(__import__(name), name)
    for name in FILES:
        sys.modules.pop(name, None)


def test_every_function_takes_about_ten_lines() -> None:
    trackers = {name: code for name, code in FILES.items() if name != "tracking"}
    assert sorted(trackers) == ["log_episode", "to_mlflow", "to_tensorboard", "to_wandb"]
    for code in trackers.values():
        assert len(code.partition("def ")[2].splitlines()) <= 12


def expected(history: cmdpax.History, run: int) -> dict[str, list[float]]:
    return {
        "violation": history.violation[run, :, 0].tolist(),
        "strong_regret/constraints": history.strong_regret.maximum[run].tolist(),
        "weak_regret/objective": history.weak_regret.objective[run].tolist(),
    }


def events(folder: Path) -> Iterator[Any]:
    """What TensorBoard reads: records of a length, its checksum, an event, its checksum."""
    from tensorboardX.proto.event_pb2 import Event

    for path in sorted(folder.glob("events.out.tfevents.*")):
        content, place = path.read_bytes(), 0
        while place < len(content):
            (length,) = struct.unpack_from("<Q", content, place)
            yield Event.FromString(content[place + 12 : place + 12 + length])
            place += 12 + length + 4


def test_tensorboard_reads_what_was_written(history: cmdpax.History, function: Any) -> None:
    function("to_tensorboard")(history, "runs")
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "vanilla-dual-3",
        "vanilla-dual-5",
    ]
    for run, folder in enumerate(("runs/vanilla-dual-3", "runs/vanilla-dual-5")):
        drawn: dict[str, list[tuple[int, float]]] = {}
        for event in events(Path(folder)):
            for value in event.summary.value:
                drawn.setdefault(value.tag, []).append((event.step, value.simple_value))
        for name, numbers in expected(history, run).items():
            assert [step for step, _ in drawn[name]] == RECORDED
            assert [number for _, number in drawn[name]] == pytest.approx(numbers, rel=1e-6)
        assert "strong_constraints" not in drawn  # those are beside it, with the parameters
        last = {
            v.tag: v.simple_value for e in events(Path(folder) / "last") for v in e.summary.value
        }
        assert "_hparams_/session_start_info" in last
        regret = history.summary()["strong_constraints"][run]
        assert last["strong_constraints"] == pytest.approx(regret, rel=1e-6)


def test_episodes_of_a_live_system_are_logged_as_they_happen(function: Any) -> None:
    agent = cmdpax.Agent(
        "vanilla-dual",
        num_states=1,
        num_actions=2,
        horizon=2,
        initial=0,
        thresholds=[1.0],
        names=["parts"],
    )
    log_episode = function("log_episode")
    for brought in (0.25, 0.75):
        agent.start(0)
        while agent.expects == "act":
            agent.act(0)
            agent.observe(0.5, [brought], 0)
        log_episode(agent, agent.end())
    sys.modules["log_episode"].writer.close()
    drawn = [
        (value.tag, event.step, value.simple_value)
        for event in events(Path("live"))
        for value in event.summary.value
    ]
    assert drawn == [
        ("reward", 1, 1.0),
        ("parts/return", 1, 0.5),
        ("parts/mean", 1, 0.5),
        ("reward", 2, 1.0),
        ("parts/return", 2, 1.5),
        ("parts/mean", 2, 1.0),
    ]


class Tracked:
    """Stands in for a run of Weights & Biases, and for MLflow."""

    def __init__(self, **given: Any) -> None:
        self.given, self.summary = given, {}
        self.logged: list[tuple[int | None, dict[str, float]]] = []

    def log(self, numbers: dict[str, float], step: int | None = None) -> None:
        assert all(type(number) is float for number in numbers.values())
        self.logged.append((step, numbers))

    def __enter__(self) -> "Tracked":
        return self

    def __exit__(self, *_: object) -> None:
        """As a context ends."""


def require_curves(tracked: Tracked, history: cmdpax.History, run: int) -> None:
    curves = [(step, numbers) for step, numbers in tracked.logged if step is not None]
    assert [step for step, _ in curves] == RECORDED
    for name, numbers in expected(history, run).items():
        assert [one[name] for _, one in curves] == pytest.approx(numbers)


def test_weights_and_biases(
    history: cmdpax.History, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[Tracked] = []

    def init(*, project: str, group: str, name: str, config: dict[str, Any]) -> Tracked:
        runs.append(Tracked(project=project, group=group, name=name, config=config))
        return runs[-1]

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    function("to_wandb")(history, "safety")
    assert [run.given["name"] for run in runs] == ["vanilla-dual-3", "vanilla-dual-5"]
    for run, tracked in enumerate(runs):
        require_curves(tracked, history, run)
        assert tracked.given["config"]["seed"] == (3, 5)[run]
        last = history.summary()["strong_objective"][run]
        assert tracked.summary["strong_objective"] == pytest.approx(last)


def test_mlflow(history: cmdpax.History, function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, files, experiments = [], [], []

    def start_run(*, run_name: str) -> Tracked:
        runs.append(Tracked(name=run_name))
        return runs[-1]

    stand_in = types.SimpleNamespace(
        set_experiment=experiments.append,
        start_run=start_run,
        log_params=lambda chosen: runs[-1].given.update(chosen),
        log_metrics=lambda numbers, step=None: runs[-1].log(numbers, step),
        log_artifact=lambda path: files.append(Path(path).is_file()),
    )
    monkeypatch.setitem(sys.modules, "mlflow", stand_in)
    function("to_mlflow")(history, "safety")
    assert (experiments, files) == (["safety"], [True])
    for run, tracked in enumerate(runs):
        require_curves(tracked, history, run)
        assert tracked.given["algorithm"] == "vanilla-dual"
        ((_, last),) = [entry for entry in tracked.logged if entry[0] is None]
        assert last["last_violation"] == pytest.approx(history.summary()["last_violation"][run])
