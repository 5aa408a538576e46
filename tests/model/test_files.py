import json
import os
import pickle
import re
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cmdpax
import strategies
from golden_files import Golden

both_formats = pytest.mark.parametrize("suffix", [".npz", ".json"])


def ring() -> cmdpax.CMDP:
    return cmdpax.environments.make("ring")


def gridworld() -> cmdpax.CMDP:
    return cmdpax.environments.make("gridworld", height=3, width=3, horizon=5)


def entries(cmdp: cmdpax.CMDP) -> dict[str, Any]:
    """What a file of this model holds."""
    return {**cmdp.named_arrays(), "horizon": cmdp.horizon}


def write(path: Path, content: dict[str, Any]) -> Path:
    """A file with this content, whether it describes a model or not."""
    if path.suffix == ".npz":
        np.savez(path, allow_pickle=True, **content)
    else:
        plain = {name: np.asarray(entry).tolist() for name, entry in content.items()}
        path.write_text(json.dumps(plain))
    return path


# --------------------------------------------------------------------------------------- round trip


@both_formats
@given(cmdp=strategies.cmdps())
@settings(max_examples=20)
def test_a_round_trip_keeps_everything(
    suffix: str, tmp_path_factory: pytest.TempPathFactory, cmdp: cmdpax.CMDP
) -> None:
    path = tmp_path_factory.mktemp("files") / f"model{suffix}"
    cmdpax.save(cmdp, path)
    loaded = cmdpax.load(path)
    assert loaded.fingerprint == cmdp.fingerprint
    assert loaded.sizes == cmdp.sizes
    for name, array in cmdp.named_arrays().items():
        np.testing.assert_array_equal(loaded.named_arrays()[name], array)


@both_formats
def test_golden_models_survive_files(suffix: str, golden: Golden, tmp_path: Path) -> None:
    path = tmp_path / f"{golden.name}{suffix}"
    cmdpax.save(golden.cmdp, str(path))
    assert cmdpax.load(str(path)).fingerprint == golden.cmdp.fingerprint


def test_names_in_files(tmp_path: Path) -> None:
    common = {"rewards", "constraint_rewards", "thresholds", "initial", "horizon"}
    models = ((ring(), {"transitions"}), (gridworld(), {"successors", "probabilities"}))
    with_words = [(cmdp, {*names, "words"}) for cmdp, names in models]
    without = [(cmdp.with_arrays(), names) for cmdp, names in models]
    for cmdp, names in (*with_words, *without):
        cmdpax.save(cmdp, tmp_path / "model.npz")
        with np.load(tmp_path / "model.npz", allow_pickle=False) as archive:
            assert set(archive.files) == common | names
            assert archive["horizon"] == cmdp.horizon
        cmdpax.save(cmdp, tmp_path / "model.json")
        assert set(json.loads((tmp_path / "model.json").read_text())) == common | names


@both_formats
def test_the_horizon_may_be_left_out_of_a_file(suffix: str, tmp_path: Path) -> None:
    content = entries(ring().replace(rewards=np.zeros((6, 3, 2))))
    del content["horizon"]
    assert cmdpax.load(write(tmp_path / f"model{suffix}", content)).horizon == 6


def test_a_null_horizon_in_json_is_no_horizon(tmp_path: Path) -> None:
    path = write(tmp_path / "model.json", entries(ring()))
    path.write_text(path.read_text().replace('"horizon": 6', '"horizon": null'))
    assert cmdpax.load(path).horizon == 1


def test_no_constraints_in_json(tmp_path: Path) -> None:
    cmdp = cmdpax.environments.make("random", num_constraints=0)
    cmdpax.save(cmdp, tmp_path / "model.json")
    loaded = cmdpax.load(tmp_path / "model.json")
    assert loaded.num_constraints == 0
    assert cmdpax.solve(loaded).value == pytest.approx(cmdpax.solve(cmdp).value, abs=1e-12)


def test_integers_in_a_file_are_numbers(tmp_path: Path) -> None:
    content = entries(ring())
    content["rewards"] = np.round(content["rewards"]).astype(np.int8)
    assert cmdpax.load(write(tmp_path / "model.npz", content)).rewards.dtype == np.float64


# ----------------------------------------------------------------------------------- bad content


@both_formats
@pytest.mark.parametrize("model", [ring, gridworld])
def test_missing_arrays_are_named(suffix: str, model: Any, tmp_path: Path) -> None:
    for name in model().named_arrays():
        content = entries(model())
        del content[name]
        path = write(tmp_path / f"model{suffix}", content)
        with pytest.raises(cmdpax.FileError) as raised:
            cmdpax.load(path)
        assert str(raised.value).startswith(f"{path} lacks the array {name!r}; it needs ")


@both_formats
def test_unknown_arrays_are_named_with_the_nearest(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"model{suffix}", entries(ring()) | {"reward": [1.0]})
    expected = f"{path} has the unknown array 'reward'; did you mean 'rewards'?"
    with pytest.raises(cmdpax.FileError, match=re.escape(expected)):
        cmdpax.load(path)


@both_formats
def test_both_storages_at_once_are_one_too_many(suffix: str, tmp_path: Path) -> None:
    content = entries(gridworld()) | {"transitions": np.ones((1, 1, 1, 1))}
    with pytest.raises(cmdpax.FileError, match="unknown array 'transitions'"):
        cmdpax.load(write(tmp_path / f"model{suffix}", content))


@both_formats
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("initial", [0.5, 0.0, 0.0], "initial sums to 0.5, not to 1"),
        ("rewards", [[[1.0, float("nan")]] * 3], "rewards[0, 0, 1] is nan"),
        ("thresholds", [1.0, 2.0], "thresholds has length 2"),
        ("horizon", 0, "horizon is 0, it must be at least 1"),
        ("horizon", 2.5, "horizon must be a whole number"),
    ],
)
def test_what_is_no_model_is_refused_with_the_name_of_the_file(
    suffix: str, name: str, value: object, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path / f"model{suffix}", entries(ring()) | {name: value})
    with pytest.raises(cmdpax.ModelError) as raised:
        cmdpax.load(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert message in str(raised.value)


# -------------------------------------------------------------------------- damaged and other files


def assert_unreadable(path: Path, reason: str = "is not a readable") -> None:
    """A sentence with the name of the file, in one line."""
    with pytest.raises(cmdpax.FileError) as raised:
        cmdpax.load(path)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert reason in message
    assert "\n" not in message


@both_formats
@pytest.mark.parametrize("model", [ring, gridworld])
def test_truncated_files(suffix: str, model: Any, tmp_path: Path) -> None:
    whole = tmp_path / f"whole{suffix}"
    cmdpax.save(model(), whole)
    content = whole.read_bytes()
    path = tmp_path / f"cut{suffix}"
    cuts = sorted({*range(0, len(content) - 2, max(1, len(content) // 150)), 1, 2, 3, 4, 5, 6})
    for length in cuts:
        path.write_bytes(content[:length])
        assert_unreadable(path)


@given(data=st.data())
@settings(max_examples=200)
def test_changed_bytes_never_raise_anything_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp()
    whole = folder / "whole.npz"
    if not whole.exists():
        cmdpax.save(ring(), whole)
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    path = folder / "changed.npz"
    path.write_bytes(content)
    message = f"{path}: fine"
    try:
        cmdpax.load(path)
    except (cmdpax.FileError, cmdpax.ModelError) as error:
        message = str(error)
    assert message.startswith(str(path))


def archive_with(path: Path, member: bytes) -> Path:
    """An archive whose every array is this sequence of bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in entries(ring()):
            archive.writestr(f"{name}.npy", member)
    return path


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), ",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 14 + ",)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 40 + ",)}",
        "{'descr': 'strange', 'fortran_order': False, 'shape': (3,)}",
        "nonsense((((",
    ],
)
def test_damaged_headers(header: str, tmp_path: Path) -> None:
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    assert_unreadable(archive_with(tmp_path / "model.npz", member + bytes(24)))


def test_an_archive_that_asks_for_a_password(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    cmdpax.save(ring(), path)
    content = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + flags] |= 1
    path.write_bytes(content)
    assert_unreadable(path)


class Trap:
    """Unpickling it writes a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.target),)


def test_pickled_arrays_are_never_loaded(tmp_path: Path) -> None:
    content = entries(ring())
    content["rewards"] = np.array([Trap(tmp_path / "sprung")], dtype=object)
    path = tmp_path / "model.npz"
    np.savez(path, allow_pickle=True, **content)
    assert_unreadable(path)
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_by_another_name_is_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(pickle.dumps({"rewards": Trap(tmp_path / "sprung")}))
    assert_unreadable(path)
    assert not (tmp_path / "sprung").exists()


def test_a_single_array_is_not_a_model(tmp_path: Path) -> None:
    with (tmp_path / "model.npz").open("wb") as file:
        np.save(file, np.ones(3))
    assert_unreadable(tmp_path / "model.npz")


def test_an_archive_of_other_files_is_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(cmdpax.FileError, match="lacks the array 'transitions'"):
        cmdpax.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name in entries(ring()):
            archive.writestr(name, "hello")
    with pytest.raises((cmdpax.FileError, cmdpax.ModelError)) as raised:
        cmdpax.load(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "text", ["", "{", "nonsense", '{"rewards": [1, 2', "\x00\x01\x02", "[" * 100_000]
)
def test_json_that_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    assert_unreadable(path)


def test_json_in_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(b"\xff\xfe\xfa\x80 {}")
    assert_unreadable(path)


@pytest.mark.parametrize(("text", "kind"), [("[1, 2]", "list"), ("3", "int"), ("null", "NoneType")])
def test_json_of_something_else(text: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    assert_unreadable(path, f"holds a {kind}, expected an object with the arrays")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rewards", "[[[0, NaN], [0, 1], [0, 1]]]", "rewards[0, 0, 1] is nan"),
        ("rewards", "[[[0, Infinity], [0, 1], [0, 1]]]", "rewards[0, 0, 1] is inf"),
        ("rewards", "[[[0, null], [0, 1], [0, 1]]]", "rewards[0, 0, 1] is nan"),
        ("rewards", "[[[0], [0, 1], [0, 1]]]", "rewards cannot be read as an array of real num"),
        ("rewards", '"zero"', "rewards cannot be read as an array of real numbers"),
        ("rewards", '{"a": 1}', "rewards cannot be read as an array of real numbers"),
        ("rewards", "3", "rewards has shape (), expected (H, S, A)"),
        ("thresholds", "null", "thresholds has shape (), expected (I,)"),
        ("horizon", '"six"', "horizon must be a whole number, got 'six'"),
        ("horizon", "true", "horizon must be a whole number"),
    ],
)
def test_json_with_odd_arrays(name: str, text: str, message: str, tmp_path: Path) -> None:
    content = {key: np.asarray(entry).tolist() for key, entry in entries(ring()).items()}
    content[name] = "HERE"
    path = tmp_path / "model.json"
    path.write_text(json.dumps(content).replace('"HERE"', text))
    with pytest.raises(cmdpax.ModelError, match=re.escape(message)):
        cmdpax.load(path)


def test_json_with_ragged_successors(tmp_path: Path) -> None:
    content = {key: np.asarray(entry).tolist() for key, entry in entries(gridworld()).items()}
    content["successors"][0][0][0] = [0]
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(cmdpax.ModelError, match="successors cannot be read as an array of int"):
        cmdpax.load(tmp_path / "model.json")


# ------------------------------------------------------------------------------------------- paths


@both_formats
def test_a_file_that_is_not_there(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"absent{suffix}"
    assert_unreadable(path, "does not exist.")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.mkdir()
    assert_unreadable(path, "is a folder, not a file.")
    with pytest.raises(cmdpax.FileError, match="it is a folder"):
        cmdpax.save(ring(), path)


@pytest.mark.parametrize("name", ["model", "model.csv", "model.npy"])
def test_only_two_endings_are_known(name: str, tmp_path: Path) -> None:
    for use in (cmdpax.load, lambda path: cmdpax.save(ring(), path)):
        with pytest.raises(cmdpax.FileError, match=r"models are \.npz or \.json files"):
            use(tmp_path / name)


@both_formats
def test_saving_into_a_folder_that_does_not_exist(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "absent" / f"model{suffix}"
    expected = f"cannot write {path}: the folder {path.parent} does not exist; create it first."
    with pytest.raises(cmdpax.FileError, match=re.escape(expected)):
        cmdpax.save(ring(), path)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------ whole or not


class DiskFullError(OSError):
    """Raised in the middle of writing."""


@both_formats
@pytest.mark.parametrize("failure", [DiskFullError(28, "No space left on device"), MemoryError()])
def test_a_failure_in_the_middle_leaves_the_old_file_and_nothing_else(
    suffix: str, failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"model{suffix}"
    cmdpax.save(ring(), path)
    before = path.read_bytes()

    def fail(*args: Any, **kwargs: Any) -> None:
        if suffix == ".npz":
            args[0].write(b"half of a file")
        raise failure

    target = (np, "savez_compressed") if suffix == ".npz" else (json, "dumps")
    monkeypatch.setattr(*target, fail)
    expected = cmdpax.FileError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected):
        cmdpax.save(gridworld(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_failing_rename_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(cmdpax.FileError, match=r"cannot write .*: Permission denied\."):
        cmdpax.save(ring(), tmp_path / "model.npz")
    assert os.listdir(tmp_path) == []


@both_formats
def test_an_invalid_model_is_not_written(suffix: str, tmp_path: Path) -> None:
    broken = ring().replace(initial=[0.5, 0.0, 0.0])
    with pytest.raises(cmdpax.ModelError, match=r"initial sums to 0\.5"):
        cmdpax.save(broken, tmp_path / f"model{suffix}")
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_replaced_and_has_usual_permissions(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_text("something old")
    cmdpax.save(ring(), path)
    assert cmdpax.load(path).fingerprint == ring().fingerprint
    usual = tmp_path / "usual"
    usual.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
