"""Settings of the test process, and the golden models.

JAX's 64-bit types stay off: the library switches them on where it needs them, and tests call it
the way a user does.
"""

import os
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jax
import pytest

import cmdpax
import lanes
from browsing import NO_BROWSER
from cmdpax.cli import main
from cmdpax.jax_context import cache_compilation, drop_programs_if_many
from golden_files import GOLDEN_NAMES, Golden

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

_COMMON: dict[str, Any] = {
    "deadline": None,
    "max_examples": 25,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("dev", **_COMMON)
hypothesis.settings.register_profile("ci", derandomize=True, print_blob=True, **_COMMON)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lanes that fixtures tell, and which programs are optimised."""
    for item in items:
        lanes.mark_by_fixtures(item)
        lanes.mark_by_numbers(item)
    lanes.collected[:] = items
    lanes.sort(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> lanes.Files | None:
    """How tests are divided among workers."""
    return lanes.Files(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """No test leaves its lane."""
    with lanes.kept(item):
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that the page was not tried in a browser: a green run must not hide it."""
    reasons = [
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and NO_BROWSER in report.longrepr[2]
    ]
    if reasons:
        terminalreporter.write_line(f"{len(reasons)} tests skipped, {reasons[0]}.", yellow=True)


@pytest.fixture(params=GOLDEN_NAMES)
def golden(request: pytest.FixtureRequest) -> Golden:
    """Every golden model in turn."""
    return Golden(request.param)


@pytest.fixture
def bandit() -> Golden:
    """The paper's minimal example."""
    return Golden("bandit")


@pytest.fixture
def paper() -> Golden:
    """The CMDP of the paper's experiments: S = A = H = 5, I = 1."""
    return Golden("paper")


@pytest.fixture
def two_constraints() -> Golden:
    """S = 4, A = 3, H = 6, I = 2, both constraints binding."""
    return Golden("two_constraints")


@pytest.fixture
def double_precision() -> Iterator[None]:
    """JAX's 64-bit types, for tests of the functions below the public ones."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session", autouse=True)
def cache_folder(pytestconfig: pytest.Config) -> Iterator[Path]:
    """Compiled programs of the tests and of the commands they start, never in the user's home.

    All workers share them, and the next run finds them: half of a test's time is compilation.
    """
    folder = pytestconfig.cache.mkdir("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        cache_compilation()
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        yield folder


@pytest.fixture(scope="module", autouse=True)
def few_programs() -> None:
    """Forget compiled programs before they are too many; `learn` does so itself."""
    drop_programs_if_many()


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Call `cmdpax …` in an empty folder; returns (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    settings = {name: getattr(jax.config, name) for name in names}

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cmdpax", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    yield call
    for name, value in settings.items():
        jax.config.update(name, value)


@pytest.fixture
def saved_bandit(tmp_path: Path) -> cmdpax.CMDP:
    """The model `m.npz`, in the folder where the commands run."""
    cmdp = cmdpax.environments.make("bandit")
    cmdpax.save(cmdp, tmp_path / "m.npz")
    return cmdp
