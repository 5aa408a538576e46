"""No file that is read is a reason to import anything, but the TOML that is given to `sweep`.

Every kind of file names a module that leaves a trace when it is imported. It is in the working
directory and on the path, so that nothing but restraint keeps it from being imported.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.experiments import estimate
from cmdpax.live import saving
from live_cases import make as make_agent
from report_cases import invent
from sweep_cases import specification

ADDRESS = "planted:factory"
PLANTED = """
from pathlib import Path
Path(__file__).with_name("imported").touch()

def factory(knowledge, hyperparameters):
    from cmdpax.learners import as_algorithm
    return as_algorithm("vanilla-dual").factory(knowledge, hyperparameters)
"""
TOML = 'num_episodes = 30\nrecord = 5\n[[cmdps]]\nenvironment = "bandit"\n[[algorithms]]\nname = '
BANDIT = [{"environment": "bandit"}]
Run = Callable[..., tuple[int, str, str]]


class Planted:
    """The module, and whether it was imported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "planted.py").write_text(PLANTED)
        (folder / "planted.toml").write_text(f'{TOML}"{ADDRESS}"\n')
        (folder / "plain.toml").write_text(f'{TOML}"vanilla-dual"\n')

    @property
    def trace(self) -> Path:
        return self.folder / "imported"

    def forget(self) -> None:
        """As in a new process."""
        sys.modules.pop("planted", None)
        self.trace.unlink(missing_ok=True)

    def was_imported(self) -> bool:
        return self.trace.exists() or "planted" in sys.modules


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planted]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = Planted(tmp_path)
    yield module
    module.forget()


@pytest.fixture
def sweep(planted: Planted, tmp_path: Path) -> Path:
    """The folder of a sweep with the algorithm, as somebody else would send it."""
    wanted = specification(cmdps=BANDIT, algorithms=[{"name": ADDRESS}, {"name": "vanilla-dual"}])
    path = invent(wanted, tmp_path / "sweep").path
    assert planted.was_imported()
    planted.forget()
    return path


def test_the_toml_of_a_sweep_is_a_reason(run: Run, planted: Planted) -> None:
    """The control: what is planted would be found, by a sweep and by its estimate."""
    for options in (("--dry-run",), ()):
        code, _, error = run("sweep", "planted.toml", "--out", "out", *options)
        assert code == 0, error
        assert planted.was_imported()
        planted.forget()


class TestFolders:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("report", "sweep", "--out", "page.html"),
            ("plot", "sweep", "--kind", "regret", "--out", "regret.png"),
            ("compare", "sweep", ADDRESS, "vanilla-dual"),
            ("sweep", "plain.toml", "--out", "sweep"),
            ("sweep", "plain.toml", "--out", "sweep", "--dry-run"),
        ],
        ids=" ".join,
    )
    @pytest.mark.parametrize("damaged", [False, True])
    def test_commands(
        self, run: Run, sweep: Path, planted: Planted, arguments: tuple[str, ...], damaged: bool
    ) -> None:
        if damaged:  # an address in the wrong place, and no seal
            manifest = json.loads((sweep / "manifest.json").read_bytes())
            manifest["specification"]["optimism"] = {"profile": ADDRESS}
            manifest["specification"]["cmdps"][0]["environment"] = ADDRESS
            (sweep / "manifest.json").write_text(json.dumps(manifest))
        code, _, error = run(*arguments)
        assert code == int(damaged and arguments[0] != "sweep"), error
        assert not planted.was_imported()

    def test_the_library(self, sweep: Path, planted: Planted) -> None:
        found = cmdpax.results(sweep)
        found.best()
        estimate(specification(cmdps=BANDIT, algorithms=[{"name": "vanilla-dual"}]), sweep)
        for row in found.final.rows(named=True):
            if row["algorithm"] == ADDRESS:
                with pytest.raises(cmdpax.ParameterError, match="it as algorithm="):
                    found.repeat(row["run"])
            else:
                found.repeat(row["run"])
        assert not planted.was_imported()

    def test_of_a_reproduction(self, run: Run, sweep: Path, planted: Planted) -> None:
        folder = sweep.parent / "reproduction"
        folder.mkdir()
        sweep.rename(folder / "paper")
        (folder / "replay.json").write_text(json.dumps({"command": ADDRESS}))
        assert run("report", "reproduction", "--out", "page.html")[0] == 0
        code, _, error = run("reproduce", "--quick", "--out", "reproduction")
        assert (code, "holds runs with num_episodes = 30" in error) == (1, True)
        assert not planted.was_imported()


class TestRepeat:
    def test_needs_the_algorithm(self, sweep: Path, planted: Planted) -> None:
        found = cmdpax.results(sweep)
        (run, *_) = found.final.filter(algorithm=ADDRESS)["run"]
        with pytest.raises(cmdpax.ParameterError, match=r"not with 'vanilla-dual'; give the one"):
            found.repeat(run, algorithm="vanilla-dual")
        assert not planted.was_imported()
        by_address = found.repeat(run, algorithm=ADDRESS)
        assert planted.was_imported()
        by_factory = found.repeat(run, algorithm=sys.modules["planted"].factory)
        assert (by_address.value == by_factory.value).all()

    @pytest.mark.parametrize("name", [ADDRESS, "factory", "planted", "", "..:x", 3, None, ["a"]])
    def test_a_manifest_that_names_it(self, planted: Planted, name: Any) -> None:
        cmdp = cmdpax.environments.make("bandit")
        manifest = cmdpax.learn(cmdp, "vanilla-dual", num_episodes=5).manifest
        stored = json.loads(json.dumps(manifest | {"algorithm": name}))
        with pytest.raises(cmdpax.ParameterError, match=r"it as algorithm=|not a manifest"):
            cmdpax.repeat(cmdp, stored)
        assert not planted.was_imported()


class TestOtherFiles:
    @pytest.mark.parametrize("ending", ["npz", "json"])
    def test_models(self, run: Run, planted: Planted, tmp_path: Path, ending: str) -> None:
        cmdp = cmdpax.environments.make("bandit")
        entries = {**cmdp.named_arrays(), "horizon": cmdp.horizon}
        for place in ("algorithm", "horizon", "rewards", "transitions"):
            changed = entries | {place: ADDRESS}
            if ending == "npz":
                np.savez(tmp_path / "m.npz", **changed)
            else:
                lists = {name: np.asarray(entry).tolist() for name, entry in changed.items()}
                (tmp_path / "m.json").write_text(json.dumps(lists))
            for command in (
                ("inspect",),
                ("solve",),
                ("frontier",),
                ("audit",),
                ("iterate", "--scheme", "dual", "--iterations", "5"),
                ("learn", "--algorithm", "vanilla-dual", "--episodes", "5"),
            ):
                code, _, error = run(command[0], f"m.{ending}", *command[1:])
                assert code == 1, error
        (tmp_path / "models.toml").write_text(
            TOML.replace('environment = "bandit"', f'file = "m.{ending}"') + '"vanilla-dual"\n'
        )
        assert run("sweep", "models.toml", "--out", "out")[0] == 1
        assert not planted.was_imported()

    def test_checkpoints(
        self, run: Run, planted: Planted, saved_bandit: cmdpax.CMDP, tmp_path: Path
    ) -> None:
        cmdpax.learn(saved_bandit, ADDRESS, num_episodes=5, checkpoint=tmp_path / "c.npz")
        planted.forget()
        options = ("--algorithm", "vanilla-dual", "--episodes", "5", "--checkpoint", "c.npz")
        code, _, error = run("learn", "m.npz", *options)
        assert (code, "c.npz" in error) == (1, True)
        assert not planted.was_imported()

    @pytest.mark.parametrize("own", [True, False])
    def test_agents(self, run: Run, planted: Planted, tmp_path: Path, own: bool) -> None:
        """Also one whose file says that its algorithm is a built-in one."""
        agent = make_agent(ADDRESS)
        agent.save(tmp_path / "agent.npz")
        if not own:
            saved = saving.read(tmp_path / "agent.npz")
            declared = saved.declared._replace(own=False)
            saving.save(tmp_path / "agent.npz", saved._replace(declared=declared))
        planted.forget()
        assert run("watch", "agent.npz", "--once")[0] == 0
        assert run("watch", "agent.npz", "--json")[0] == 0
        with pytest.raises(cmdpax.CmdpaxError):
            cmdpax.Agent.load(tmp_path / "agent.npz")
        assert not planted.was_imported()
