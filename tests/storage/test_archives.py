"""`.npz` files from outside: bombs, odd headers, other methods, two members of one name."""

import io
import threading
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.storage.archives import read_npz

MODEL = cmdpax.environments.make("ring").with_arrays()
NAMES = (*MODEL.named_arrays(), "horizon")


def array_file(array: Any) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
    return content.getvalue()


def members_of(cmdp: cmdpax.CMDP) -> dict[str, bytes]:
    arrays = {**cmdp.named_arrays(), "horizon": np.array(cmdp.horizon)}
    return {f"{name}.npy": array_file(array) for name, array in arrays.items()}


def header(text: str, numbers: bytes = b"") -> bytes:
    """An array's file with a header of one's own."""
    content = text.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content + numbers


def write(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def refused(path: Path, part: str = "is not a readable .npz file") -> None:
    with pytest.raises(cmdpax.FileError) as caught:
        cmdpax.load(path)
    assert str(caught.value).startswith(str(path))
    assert part in str(caught.value)


def zeros(path: Path, name: str, num_bytes: int) -> Path:
    """A small file that declares, and holds, many bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members_of(MODEL).items():
            if member != f"{name}.npy":
                archive.writestr(member, content)
        with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
            shape = (1, num_bytes // 8, 1)
            file.write(header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}"))
            for _ in range(num_bytes // 2**20):
                file.write(bytes(2**20))
    return path


class TestBombs:
    def test_what_is_declared_is_refused_before_it_is_unpacked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = zeros(tmp_path / "bomb.npz", "rewards", 32 * 2**20)
        assert path.stat().st_size < 50_000
        monkeypatch.setenv("CMDPAX_MAX_BYTES", str(16 * 2**20))
        unpacked, read = [], zipfile.ZipExtFile.read

        def counted(self: zipfile.ZipExtFile, size: int | None = -1) -> bytes:
            content = read(self, size)
            unpacked.append(len(content))
            return content

        monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
        refused(path, "would take 32 MiB of memory, the limit is 16 MiB; set CMDPAX_MAX_BYTES=34")
        assert sum(unpacked) < 10_000

    def test_the_limit_can_be_raised(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "model.npz"
        cmdpax.save(MODEL, path)
        monkeypatch.setenv("CMDPAX_MAX_BYTES", "100")
        refused(path, "the limit is 100 bytes")
        monkeypatch.setenv("CMDPAX_MAX_BYTES", "100000")
        assert cmdpax.load(path).fingerprint == MODEL.fingerprint

    @pytest.mark.parametrize("value", ["4G", "-1", "1e9", "٣", "9" * 30])
    def test_a_limit_that_is_no_number(
        self, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cmdpax.save(MODEL, tmp_path / "model.npz")
        monkeypatch.setenv("CMDPAX_MAX_BYTES", value)
        with pytest.raises(cmdpax.ParameterError, match="CMDPAX_MAX_BYTES is"):
            cmdpax.load(tmp_path / "model.npz")

    def test_small_numbers_count_as_the_doubles_that_they_become(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        members = members_of(MODEL) | {"rewards.npy": array_file(np.zeros(2**20, np.int8))}
        monkeypatch.setenv("CMDPAX_MAX_BYTES", str(2 * 2**20))
        refused(write(tmp_path / "model.npz", members), "would take 8 MiB")

    def test_unknown_names_are_told_before_anything_is_unpacked(self, tmp_path: Path) -> None:
        members = members_of(MODEL) | {"notes.npy": b"no array at all"}
        refused(write(tmp_path / "model.npz", members), "has the unknown array 'notes'")


HEADERS: dict[str, str] = {
    "no dictionary": "3",
    "nothing": "",
    "not closed": "{'descr': '<f8', 'fortran_order': False, 'shape': (2,",
    "a call": "__import__('os').system('true')",
    "no shape": "{'descr': '<f8', 'fortran_order': False}",
    "a shape of words": "{'descr': '<f8', 'fortran_order': False, 'shape': ('a',)}",
    "a negative shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3, 2)}",
    "a shape of bools": "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 3, 2)}",
    "a huge shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 4)}",
    "an order of words": "{'descr': '<f8', 'fortran_order': 'no', 'shape': (1, 3, 2)}",
    "no type": "{'descr': 'hello', 'fortran_order': False, 'shape': (1, 3, 2)}",
    "a type of types": "{'descr': [('a', '<f8')] * 3, 'fortran_order': False, 'shape': (1, 3, 2)}",
    "an empty type": "{'descr': '<U0', 'fortran_order': False, 'shape': (1, 3, 2)}",
    "a number as type": "{'descr': 7, 'fortran_order': False, 'shape': (1, 3, 2)}",
    "a null": "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3, 2)}\x00",
    "more keys": "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3, 2), 'x': 1}",
    "deep": "(" * 5000,
}


def long_header(num_bytes: int) -> bytes:
    """A header of version 2 with so many spaces."""
    start = b"\x93NUMPY\x02\x00" + num_bytes.to_bytes(4, "little")
    return start + b"{'descr': '<f8', 'fortran_order': False, 'shape': (), }".ljust(num_bytes)


class TestMembers:
    def test_long_headers_are_not_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        members = members_of(MODEL) | {"rewards.npy": long_header(2**24)}
        path, most, read = write(tmp_path / "model.npz", members), [], zipfile.ZipExtFile.read

        def counted(self: zipfile.ZipExtFile, size: int | None = -1) -> bytes:
            content = read(self, size)
            most.append(len(content))
            return content

        monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
        refused(path)
        assert max(most) <= 10_000

    def test_records_are_refused(self, tmp_path: Path) -> None:
        records = np.zeros((1, 3, 2), [("a", "<f8")])
        refused(write(tmp_path / "m.npz", members_of(MODEL) | {"rewards.npy": array_file(records)}))

    def test_warnings_of_other_threads_stay_warnings(self, tmp_path: Path) -> None:
        """A change of Python's filters would be one for the whole process."""
        cmdpax.save(MODEL, tmp_path / "m.npz")
        before = list(warnings.filters)
        threads = [
            threading.Thread(target=lambda: [cmdpax.load(tmp_path / "m.npz") for _ in range(20)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        seen = []
        while any(thread.is_alive() for thread in threads):
            seen.append(list(warnings.filters) == before)
        assert all(seen)
        assert warnings.filters == before

    @pytest.mark.parametrize("text", HEADERS.values(), ids=HEADERS)
    def test_odd_headers(self, text: str, tmp_path: Path) -> None:
        members = members_of(MODEL) | {"rewards.npy": header(text, bytes(48))}
        with pytest.raises(cmdpax.CmdpaxError) as caught:
            cmdpax.load(write(tmp_path / "model.npz", members))
        assert str(tmp_path / "model.npz") in str(caught.value)

    @pytest.mark.parametrize("version", [(1, 1), (3, 0), (9, 9)])
    def test_other_versions(self, version: tuple[int, int], tmp_path: Path) -> None:
        content = bytearray(array_file(MODEL.rewards))
        content[6:8] = bytes(version)
        refused(write(tmp_path / "m.npz", members_of(MODEL) | {"rewards.npy": bytes(content)}))

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_methods_that_numpy_does_not_use(self, method: int, tmp_path: Path) -> None:
        path = write(tmp_path / "model.npz", members_of(MODEL), method)
        refused(path)
        content = bytearray(path.read_bytes())
        content[60:90] = bytes(30)
        path.write_bytes(content)
        refused(path)

    def test_both_methods_that_numpy_uses(self, tmp_path: Path) -> None:
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            path = write(tmp_path / "model.npz", members_of(MODEL), method)
            assert cmdpax.load(path).fingerprint == MODEL.fingerprint

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    @pytest.mark.parametrize("twice", ["rewards.npy", "rewards"])
    def test_two_of_one_name(self, twice: str, tmp_path: Path) -> None:
        path = write(tmp_path / "model.npz", members_of(MODEL))
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(twice, array_file(np.zeros((1, 3, 2))))
        refused(path)

    @pytest.mark.parametrize("lie", [0, 1, 175, 177, 2**32 - 2])
    def test_declared_sizes_that_lie(self, lie: int, tmp_path: Path) -> None:
        path = write(tmp_path / "model.npz", members_of(MODEL))
        content = path.read_bytes()
        name = content.rindex(b"thresholds.npy")  # in the table of contents
        place = content.rindex(b"PK\x01\x02", 0, name) + 24
        path.write_bytes(content[:place] + lie.to_bytes(4, "little") + content[place + 4 :])
        refused(path, "")

    def test_arrays_in_columns(self, tmp_path: Path) -> None:
        array = np.asfortranarray(np.arange(24.0).reshape(2, 3, 4))
        np.savez(tmp_path / "a.npz", array=array, empty=np.zeros((0, 3)), text=np.array("ü"))
        found = read_npz(tmp_path / "a.npz")
        np.testing.assert_array_equal(found["array"], array)
        assert found["empty"].shape == (0, 3)
        assert str(found["text"]) == "ü"

    @pytest.mark.parametrize(
        "array",
        [
            np.array([["1"] * 2] * 3)[None],
            np.zeros((1, 3, 2), "datetime64[s]"),
            np.zeros((1, 3, 2), "timedelta64[s]"),
            np.zeros((1, 3, 2), complex),
            np.zeros((1, 3, 2), "V8"),
            np.array([[b"1"] * 2] * 3)[None],
        ],
        ids=lambda array: str(array.dtype),
    )
    def test_arrays_that_are_no_numbers(self, array: np.ndarray, tmp_path: Path) -> None:
        members = members_of(MODEL) | {"rewards.npy": array_file(array)}
        with pytest.raises(cmdpax.ModelError, match="rewards cannot be read as an array of real"):
            cmdpax.load(write(tmp_path / "model.npz", members))

    @pytest.mark.parametrize("kind", ["<f2", ">f8", "<i2", "?", "<f4"])
    def test_numbers_of_other_types(self, kind: str, tmp_path: Path) -> None:
        whole = MODEL.replace(rewards=np.ones((1, 3, 2)))
        members = members_of(whole) | {"rewards.npy": array_file(np.ones((1, 3, 2), kind))}
        found = cmdpax.load(write(tmp_path / "model.npz", members))
        assert found.fingerprint == whole.fingerprint
