"""Checkpoints of other runs and damaged ones: refused in one sentence, and left as they are."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from checkpoint_cases import arrays_in, contents, head_of, interrupt, learn, small, write_often
from cmdpax.learning.checkpoint import Checkpoint
from damages import empty, flip, truncate
from learning_cases import NO_WARNING


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    write_often(monkeypatch)


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A checkpoint in the middle of `learn()`."""
    path = tmp_path_factory.mktemp("partly") / "c.npz"
    with pytest.MonkeyPatch.context() as patch:
        write_often(patch)
        patch.setattr("cmdpax.learning.workers.num_cores", lambda: 1)
        interrupt(path, 8)
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
        edit(path, lambda head, _: head.update(format=9))
        assert_refused(path, "has the checkpoint format 9, this version of cmdpax reads 2")


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
    "infinitely many episodes": lambda head, arrays: arrays.update({"0.0": np.array(np.inf)}),
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
                with Checkpoint(path, manifest) as checkpoint:
                    groups = checkpoint._groups
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


class TestTwoAtOnce:
    def test_the_second_is_told_and_the_first_ends_as_without(self, tmp_path: Path) -> None:
        path, refused = tmp_path / "c.npz", []

        def disturb(done: int, total: int) -> None:
            for changes in ({}, {"seeds": 2}):  # the same runs, and others
                with pytest.raises(cmdpax.FileError) as caught:
                    learn(checkpoint=path, **changes)
                refused.append(str(caught.value))

        found = learn(checkpoint=path, progress=disturb)
        assert len(refused) > 10
        assert set(refused) == {
            f"{path} is being written by another process; wait for it, or give another path."
        }
        np.testing.assert_array_equal(found.value, learn().value)
        assert os.listdir(tmp_path) == ["c.npz"]

    def test_who_is_refused_lets_go_of_it(self, path: Path) -> None:
        for _ in range(2):
            assert_refused(path, "is the checkpoint of other runs", seeds=2)
        learn(checkpoint=path)
        assert os.listdir(path.parent) == ["c.npz"]


@pytest.mark.parametrize("size", [2**32, 6, 0, -1, 1.0, "2", None, True, [2]])
def test_a_group_size_that_is_none(path: Path, size: Any) -> None:
    edit(path, lambda head, arrays: head.update(group_size=size))
    assert_refused(path, "is not a readable checkpoint")


def _plant(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Any:
    return lambda head, arrays: arrays.update({name: change(arrays[name])})


IMPOSSIBLE = {
    "more episodes than there are": _plant("0.0", lambda done: done + 1000),
    "fewer than none": _plant("0.0", lambda done: done - 1000),
    "no number": _plant("0.0", lambda done: np.array("seventy")),
}


@pytest.mark.parametrize("change", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_positions_that_cannot_be(path: Path, change: Any) -> None:
    edit(path, change)
    assert_refused(path, "is not a readable checkpoint")


def test_other_episodes_than_are_kept(path: Path) -> None:
    edit(path, _plant("0.0", lambda done: done - 1))
    with pytest.raises(cmdpax.FileError, match="is not a readable checkpoint"):
        learn(checkpoint=path)


def test_accounts_that_are_no_numbers(path: Path) -> None:
    """Whoever wrote them: NaN is never an account."""

    def change(head: dict[str, Any], arrays: dict[str, Any]) -> None:
        for name, array in arrays.items():
            if name.startswith("1.") and array.dtype.kind == "f" and array.ndim == 2:
                arrays[name] = np.full_like(array, np.nan)

    edit(path, change)
    with pytest.raises(cmdpax.LearnerError, match="not finite numbers"):
        learn(checkpoint=path)
