"""Checkpoints: a run that ends anywhere and goes on is the uninterrupted one, bit for bit."""

import functools
import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.batch import Configuration, Task
from cmdpax.checkpoints import Checkpoint
from cmdpax.engine import _numerics
from cmdpax.group import Group, Position
from cmdpax.hyperparameters import hyperparameters
from cmdpax.learners import factory_of
from cmdpax.options import UNSAFE_AT
from cmdpax.simulation import Design
from learning_cases import ALGORITHM, ALGORITHMS, NO_WARNING, model

NUM_EPISODES, BLOCK = 70, 16


def write_often(patch: pytest.MonkeyPatch) -> None:
    """Five blocks, three groups for two threads, and a file after every block."""
    patch.setattr("cmdpax.group.block_size", lambda *sizes: BLOCK)
    patch.setattr("cmdpax.engine._GROUP_RUNS", 2)
    patch.setattr("cmdpax.engine.num_cores", lambda: 2)
    patch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
    patch.setattr("cmdpax.checkpoints._WORTH", 0)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    write_often(monkeypatch)


small = functools.partial(model, 1, horizon=2)


@functools.cache
def corridor() -> cmdpax.CMDP:
    """Three states in successor lists, a constraint that binds."""
    return cmdpax.environments.make("gridworld", layout="S1G", horizon=3, slip=0.2)


def learn(
    algorithm: str = ALGORITHM, cmdp: cmdpax.CMDP | None = None, **changes: Any
) -> cmdpax.History:
    arguments: dict[str, Any] = {
        "num_episodes": NUM_EPISODES,
        "seeds": 5,
        "max_multiplier": NO_WARNING,
        "log": True,
        "potential": algorithm.startswith("regularized"),
    }
    return cmdpax.learn(small() if cmdp is None else cmdp, algorithm, **(arguments | changes))


def uninterrupted(**chosen: Any) -> cmdpax.History:
    """In the same groups, one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        write_often(patch)
        patch.setattr("cmdpax.engine.num_cores", lambda: 1)
        return learn(**chosen)


@pytest.fixture(scope="module")
def expected() -> cmdpax.History:
    """What nobody interrupted."""
    return uninterrupted()


def assert_same(found: cmdpax.History, expected: cmdpax.History) -> None:
    """Bit for bit: accounts, multipliers, policies, distances, episodes and the manifest."""
    ours, theirs = (jax.tree.leaves_with_path(vars(history)) for history in (found, expected))
    assert [path for path, _ in ours] == [path for path, _ in theirs]
    for (path, one), (_, other) in zip(ours, theirs, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        name = jax.tree_util.keystr(path)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        assert one.tobytes() == other.tobytes(), name


def arrays_in(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def episodes_in(content: bytes) -> list[int]:
    """How far each of its groups is."""
    arrays = arrays_in(content)
    return [int(arrays[name]) for name in arrays if name.endswith(".0")]


class Copies:
    """As `progress`: every file that a process killed at that moment would leave."""

    def __init__(self, path: Path) -> None:
        self.path, self.found, self.lock = path, dict[bytes, None](), threading.Lock()

    def __call__(self, done: int, total: int) -> None:
        with self.lock:
            if self.path.exists():
                self.found[self.path.read_bytes()] = None

    def some(self, count: int) -> list[bytes]:
        """The first, the last and some between."""
        found = list(self.found)
        places = np.linspace(0, len(found) - 1, count).round().astype(int)
        return [found[place] for place in places]


class Interrupting:
    """As `progress`: Ctrl-C at the n-th report."""

    def __init__(self, reports: int) -> None:
        self.left = reports

    def __call__(self, done: int, total: int) -> None:
        self.left -= 1
        if self.left <= 0:
            raise KeyboardInterrupt


def interrupt(path: Path, reports: int, **changes: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        learn(checkpoint=path, progress=Interrupting(reports), **changes)


DENSE: dict[str, Any] = {}
LISTS: dict[str, Any] = {
    "cmdp": corridor,
    "optimism": "live",
    "observations": "bernoulli",
    "precision": "single",
    "record": [1, 17, 40],
    "potential": False,
}


class TestResumed:
    @pytest.mark.parametrize("case", [DENSE, LISTS], ids=["dense, double", "lists, single"])
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_from_any_moment(self, tmp_path, algorithm: str, case: dict[str, Any]):
        chosen = case | ({"cmdp": case["cmdp"]()} if "cmdp" in case else {})
        whole = uninterrupted(algorithm=algorithm, **chosen)
        copies = Copies(tmp_path / "c.npz")
        assert_same(learn(algorithm, **chosen, checkpoint=copies.path, progress=copies), whole)
        assert len(copies.found) >= 10
        for index, content in enumerate(copies.some(4)):
            path = tmp_path / f"{index}.npz"
            path.write_bytes(content)
            assert_same(learn(algorithm, **chosen, checkpoint=path), whole)
            assert episodes_in(path.read_bytes()) == [NUM_EPISODES] * 3
        first = episodes_in(copies.some(4)[1])
        assert any(0 < done < NUM_EPISODES for done in first)

    @pytest.mark.parametrize("reports", [1, 2, 5, 9])
    def test_after_an_interruption(self, tmp_path, expected, reports: int):
        path = tmp_path / "c.npz"
        interrupt(path, reports)
        assert_same(learn(checkpoint=path), expected)

    def test_after_three_interruptions(self, tmp_path, expected):
        path = tmp_path / "c.npz"
        stages = []
        for reports in (4, 5, 4):
            interrupt(path, reports)
            stages.append(sum(episodes_in(path.read_bytes())))
        assert stages == sorted(set(stages))
        assert_same(learn(checkpoint=path), expected)

    @pytest.mark.parametrize("cores", [1, 8])
    def test_on_other_numbers_of_cores(self, tmp_path, expected, monkeypatch, cores: int):
        """Groups are as large as the file says."""
        path = tmp_path / "c.npz"
        interrupt(path, 6)
        monkeypatch.setattr("cmdpax.engine.num_cores", lambda: cores)
        monkeypatch.setattr("cmdpax.engine._GROUP_RUNS", 64)
        assert_same(learn(checkpoint=path), expected)
        assert head_of(path)["group_size"] == 2

    def test_a_finished_one_is_the_result(self, tmp_path, expected, monkeypatch):
        path = tmp_path / "c.npz"
        learn(checkpoint=path)
        before = contents(tmp_path)
        monkeypatch.setattr("cmdpax.group.advance", None)  # nothing is played
        told: list[tuple[int, int]] = []
        found = learn(checkpoint=path, progress=lambda *numbers: told.append(numbers))
        assert_same(found, expected)
        assert told[-1] == (NUM_EPISODES, NUM_EPISODES)
        assert contents(tmp_path) == before

    def test_warnings_count_all_episodes(self, tmp_path):
        """λ at its cap: those before the interruption, too."""
        path, cap = tmp_path / "c.npz", {"max_multiplier": 1e-3}
        with pytest.warns(cmdpax.CmdpaxWarning) as whole:
            learn(**cap)
        with pytest.warns(cmdpax.CmdpaxWarning):
            interrupt(path, 8, **cap)
        with pytest.warns(cmdpax.CmdpaxWarning) as resumed:
            learn(checkpoint=path, **cap)
        ours, theirs = ([str(one.message) for one in found] for found in (resumed, whole))
        assert ours == theirs
        assert any(f"of {NUM_EPISODES} episodes" in text for text in ours)

    def test_progress_begins_where_it_was(self, tmp_path):
        path = tmp_path / "c.npz"
        interrupt(path, 9)
        done = sum(episodes_in(path.read_bytes())) // 3
        told: list[int] = []
        learn(checkpoint=path, progress=lambda done, total: told.append(done))
        assert max(told[:3]) >= done > 0
        assert told[-1] == NUM_EPISODES

    def test_by_name_and_by_path(self, tmp_path, expected, monkeypatch):
        """Names are not patterns: `run[1]` is not `run1`."""
        monkeypatch.chdir(tmp_path)
        for name in (".run[1].checkpoint.a1_b2c3d", ".run1.checkpoint.a1_b2c3d"):
            Path(name).write_bytes(b"half of a fi")
        interrupt(Path("run[1].checkpoint"), 5)
        assert_same(learn(checkpoint="run[1].checkpoint"), expected)
        assert set(contents(tmp_path)) == {"run[1].checkpoint", ".run1.checkpoint.a1_b2c3d"}


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files of a folder: when they were written, and what is in them."""
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(folder.iterdir())
    }


def first_group() -> Group:
    """Of `learn()`, without its saddle point."""
    chosen = hyperparameters(0.1, 0.02, NO_WARNING, 0.0, NUM_EPISODES)
    configurations = [Configuration(seed, chosen, cmdpax.Optimism.empirical()) for seed in (0, 1)]
    design = Design(factory_of(ALGORITHM), True, False, False, True, keep_log_policies=True)
    recorded = np.arange(1, NUM_EPISODES + 1)
    task = Task(design, (small(),), (0.5,), recorded, NUM_EPISODES, UNSAFE_AT)
    return Group.of(task, configurations, None)


def leaves_of(content: bytes, group: int) -> list[bytes]:
    arrays = arrays_in(content)
    return [arrays[name].tobytes() for name in sorted(arrays) if name.startswith(f"{group}.")]


@pytest.fixture
def numerics() -> Iterator[None]:
    """Those of the threads that groups run in."""
    with _numerics(True, 0):
        yield


class TestWriting:
    def test_what_is_kept_stays_while_the_group_goes_on(self, tmp_path, numerics):
        """States are changed in place, and another group's time to write comes later."""
        group, path = first_group(), tmp_path / "c.npz"
        position = group.go_on(group.first_position(), BLOCK)
        checkpoint = Checkpoint(path, {})
        checkpoint.group_size = 2
        checkpoint.offer(0, lambda: position)
        before = leaves_of(path.read_bytes(), 0)
        for found in (checkpoint, Checkpoint(path, {})):  # as it was made, and as it was read
            if found is not checkpoint:
                restored = found.restore(0, group.first_position())
                assert restored is not None
                position = restored
            for _ in range(2):
                position = group.go_on(position, BLOCK)
            found.offer(1, lambda here=position: here)
            assert leaves_of(path.read_bytes(), 0) == before
            assert leaves_of(path.read_bytes(), 1) != before

    @pytest.mark.parametrize("reports", [3, 8])
    def test_an_interruption_keeps_everything(self, tmp_path, monkeypatch, reports: int):
        """Though it was not time to write."""
        monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (3600.0,))
        interrupt(tmp_path / "c.npz", reports)
        # Two groups report that they begin.
        assert sum(episodes_in((tmp_path / "c.npz").read_bytes())) >= (reports - 2) * BLOCK

    def test_writing_takes_a_small_part_of_the_time(self, tmp_path, numerics, monkeypatch):
        """A file that takes three seconds is written once a minute."""
        clock = SimpleNamespace(now=0.0)
        monkeypatch.setattr("cmdpax.checkpoints.time", SimpleNamespace(monotonic=lambda: clock.now))
        monkeypatch.setattr("cmdpax.checkpoints._WORTH", 20)
        position, written = first_group().first_position(), []

        def make() -> Position:
            clock.now += 3.0
            written.append(clock.now)
            return position

        checkpoint = Checkpoint(tmp_path / "c.npz", {}, seconds=10.0)
        checkpoint.group_size = 2
        for now in (9.0, 11.0, 13.0, 73.0, 75.0, 77.0):
            clock.now = now
            checkpoint.offer(0, make)
        assert written == [14.0, 78.0]

    def test_only_when_it_is_time(self, tmp_path, numerics):
        path = tmp_path / "c.npz"
        checkpoint = Checkpoint(path, {}, seconds=3600.0)
        checkpoint.group_size = 2
        checkpoint.offer(0, lambda: pytest.fail("it is not time"))
        assert not path.exists()
        checkpoint.offer(0, first_group().first_position, now=True)
        assert path.exists()

    def test_a_write_that_fails_leaves_the_older_file(self, tmp_path, expected):
        path, written = tmp_path / "c.npz", []
        save = np.savez

        def fail(file: Any, **arrays: Any) -> None:
            if len(written) == 4:
                file.write(b"half of a fi")
                raise OSError(28, "No space left on device")
            written.append(file)
            save(file, **arrays)

        sentence = f"cannot write {path}: No space left on device."
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(np, "savez", fail)
            with pytest.raises(cmdpax.FileError, match=re.escape(sentence)):
                learn(checkpoint=path)
        assert list(contents(tmp_path)) == ["c.npz"]
        assert 0 < sum(episodes_in(path.read_bytes())) < 3 * NUM_EPISODES
        assert_same(learn(checkpoint=path), expected)

    def test_leftovers_of_killed_writers_are_removed(self, tmp_path, expected):
        path = tmp_path / "c.npz"
        interrupt(path, 5)
        neighbours = ["other.npz", "c.npz.bak", ".c.npy.q", ".cXnpz.q"]
        for name in (".c.npz.a1_b2c3d", *neighbours):
            (tmp_path / name).write_bytes(b"half of a fi")
        assert_same(learn(checkpoint=path), expected)
        assert set(contents(tmp_path)) == {"c.npz", *neighbours}


# ---------------------------------------------------------------------------------------- refused


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A checkpoint in the middle of `learn()`."""
    path = tmp_path_factory.mktemp("partly") / "c.npz"
    with pytest.MonkeyPatch.context() as patch:
        write_often(patch)
        interrupt(path, 7)
    return path.read_bytes()


@pytest.fixture
def path(partly: bytes, tmp_path: Path) -> Path:
    """The same, to be damaged."""
    copy = tmp_path / "c.npz"
    copy.write_bytes(partly)
    return copy


def assert_refused(path: Path, sentence: str, **changes: Any) -> None:
    """With one sentence that names the file, which stays as it is."""
    before = contents(path.parent)
    with pytest.raises(cmdpax.FileError, match=re.escape(sentence)) as caught:
        learn(checkpoint=path, **changes)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(path.parent) == before


def head_of(path: Path) -> dict[str, Any]:
    return json.loads(str(arrays_in(path.read_bytes())["checkpoint"]))


def edit(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """A whole file that says something else: change its text and its arrays."""
    arrays: dict[str, Any] = arrays_in(path.read_bytes())
    head = head_of(path)
    change(head, arrays)
    arrays["checkpoint"] = np.array(json.dumps(head))
    np.savez(path, **arrays)


class TestOtherRuns:
    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"num_episodes": 71}, "their num_episodes differs (70, here 71)"),
            (
                {"algorithm": "regularized-dual"},
                "their algorithm differs (regularized-primal-dual, here regularized-dual)",
            ),
            ({"observations": "bernoulli"}, "their observations differs (mean, here bernoulli)"),
            ({"precision": "single"}, "their precision differs (double, here single)"),
            ({"record": [5]}, "their record differs"),
            ({"unsafe_at": [0.5]}, "their unsafe_at differs"),
            ({"potential": False}, "their potential differs (True, here False)"),
            ({"log": False}, "their log differs (True, here False)"),
            ({"seeds": 4}, "their runs differs"),
            ({"seeds": [0, 1, 2, 3, 5]}, "their runs differs"),
            ({"step_size": 0.2}, "their runs differs"),
            ({"regularization": 0.03}, "their runs differs"),
            ({"margin": 0.01}, "their runs differs"),
            ({"max_multiplier": 2 * NO_WARNING}, "their runs differs"),
            ({"optimism": cmdpax.Optimism.empirical(0.1)}, "their runs differs"),
        ],
    )
    def test_by_their_arguments(self, path: Path, changes: dict[str, Any], sentence: str):
        assert_refused(path, f"{path} is the checkpoint of other runs: {sentence}", **changes)

    def test_by_their_cmdp(self, path: Path):
        assert_refused(path, "of other runs: their cmdp differs", cmdp=small(seed=1))

    @pytest.mark.parametrize("package", ["cmdpax", "jax", "numpy", "python"])
    def test_by_their_versions(self, path: Path, package: str):
        edit(path, lambda head, _: head["manifest"]["versions"].update({package: "0.0.1"}))
        assert_refused(path, "their versions differs")

    def test_by_their_device(self, path: Path):
        edit(path, lambda head, _: head["manifest"].update(device="NVIDIA H200"))
        assert_refused(path, "their device differs (NVIDIA H200, here cpu)")

    def test_by_an_older_manifest(self, path: Path):
        edit(path, lambda head, _: head["manifest"].pop("stationary"))
        assert_refused(path, "their stationary differs (None, here False)")

    def test_by_its_format(self, path: Path):
        edit(path, lambda head, _: head.update(format=2))
        assert_refused(path, "has the checkpoint format 2, this version of cmdpax reads 1")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def randomize(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(5000))


def replace_by_a_cmdp(path: Path) -> None:
    cmdpax.save(small(), path)


def replace_by_an_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(5))


def replace_by_objects(path: Path) -> None:
    np.savez(path, checkpoint=np.array([{}], dtype=object))


Change = Callable[[dict[str, Any], dict[str, Any]], None]
WRONG: dict[str, Change] = {
    "no groups": lambda head, arrays: head.pop("leaves"),
    "no group size": lambda head, arrays: head.pop("group_size"),
    "no manifest": lambda head, arrays: head.pop("manifest"),
    "a manifest of another kind": lambda head, arrays: head.update(manifest=[]),
    "groups of another kind": lambda head, arrays: head.update(leaves=[3]),
    "fewer arrays": lambda head, arrays: head["leaves"].update({"0": 3}),
    "more arrays": lambda head, arrays: head["leaves"].update({"0": 1000}),
    "an array is missing": lambda head, arrays: arrays.pop("0.3"),
    "an axis is shorter": lambda head, arrays: arrays.update({"0.3": arrays["0.3"][:, :1]}),
    "an axis is missing": lambda head, arrays: arrays.update({"0.3": arrays["0.3"][0]}),
    "fewer runs": lambda head, arrays: arrays.update({"0.1": arrays["0.1"][:1]}),
    "another type": lambda head, arrays: arrays.update({"0.1": arrays["0.1"].astype(float)}),
    "texts": lambda head, arrays: arrays.update({"0.1": arrays["0.1"].astype(str)}),
    "a number of episodes that is an array": lambda head, arrays: arrays.update(
        {"0.0": np.array([16])}
    ),
}


class TestDamaged:
    @pytest.mark.parametrize(
        "damage",
        [
            truncate,
            empty,
            flip,
            randomize,
            replace_by_a_cmdp,
            replace_by_an_array,
            replace_by_objects,
        ],
    )
    def test_files(self, path: Path, damage: Callable[[Path], None]):
        damage(path)
        assert_refused(path, f"{path} is not a readable")

    @pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
    def test_arrays_and_texts(self, path: Path, change: Change):
        edit(path, change)
        sentence = f"{path} is not a readable checkpoint; delete it to begin anew, or give another."
        with pytest.raises(cmdpax.FileError, match=re.escape(sentence)):
            learn(checkpoint=path)

    def test_a_flipped_bit_anywhere_is_found_or_harmless(self, path: Path, partly: bytes):
        """Harmless ones are in what zip files say besides: dates, attributes."""
        manifest, expected = head_of(path)["manifest"], arrays_in(partly)
        found = 0
        for place in np.random.default_rng(0).integers(0, len(partly), 300):
            content = bytearray(partly)
            content[place] ^= 1 << int(place % 8)
            path.write_bytes(content)
            try:
                groups = Checkpoint(path, manifest)._groups
            except cmdpax.FileError:
                found += 1
                continue
            for group, leaves in groups.items():
                for index, leaf in enumerate(leaves):
                    assert leaf.tobytes() == expected[f"{group}.{index}"].tobytes()
        assert found > 200

    def test_folders(self, tmp_path: Path):
        path = tmp_path / "none" / "c.npz"
        with pytest.raises(cmdpax.FileError, match=r"the folder .*none does not exist; create it"):
            learn(checkpoint=path)
        with pytest.raises(cmdpax.FileError, match="it is a folder"):
            learn(checkpoint=tmp_path)
        assert contents(tmp_path) == {}

    def test_a_file_that_may_not_be_read(self, path: Path, monkeypatch):
        def refuse(self: Path, *arguments: Any) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        with pytest.raises(cmdpax.FileError, match=re.escape(f"{path}")):
            learn(checkpoint=path)
