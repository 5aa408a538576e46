"""JSON and TOML from outside: a value, or one sentence."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
from cmdpax.storage.texts import parse_json, read_bytes, read_toml

REFUSED = {
    "a key twice": ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' is there twice"),
    "400 digits": (f'{{"a": {"9" * 400}}}', "the integer 99999999… of 400 digits is too large"),
    "5,000 digits": (f'{{"a": [-{"9" * 5000}]}}', "of 5000 digits is too large"),
    "deep lists": ("[" * 100_000, "it is nested too deeply"),
    "deep objects": ('{"a":' * 100_000, "it is nested too deeply"),
    "half of a character": ('{"a": ["\\ud800"]}', "holds half of a character"),
    "half of a character in a key": ('{"\\uDC00": 1}', "holds half of a character"),
    "many keys": ("{" + '"a": 1, ' * 30_000 + '"b": 2}', "the key 'a' is there twice"),
    "many keys, the last twice": (
        "{" + ", ".join(f'"{i}": 1' for i in range(30_000)) + ', "0": 2}',
        "the key '0' is there twice",
    ),
    "no JSON": ("{", "Expecting"),
    "nothing": ("", "Expecting"),
}


class TestJson:
    @pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
    def test_refused(self, text: str, reason: str) -> None:
        with pytest.raises(ValueError, match=re.escape(reason)):
            parse_json(text)

    def test_long_integers_are_floats_beyond_64_bits(self) -> None:
        text = f"[{2**63 - 1}, {-(2**63)}, {2**63}, 1{'0' * 300}, -7]"
        found = parse_json(text)
        assert found == [2**63 - 1, -(2**63), 2.0**63, 1e300, -7]
        assert [type(one) for one in found] == [int, int, float, float, int]

    def test_whole_characters_of_two_halves(self) -> None:
        assert parse_json('{"\\ud83d\\ude00": "\\ud83d\\ude00"}') == {"😀": "😀"}

    @pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80"])
    def test_bytes_that_are_no_text(self, text: bytes) -> None:
        with pytest.raises(ValueError, match="utf"):
            parse_json(b'{"a": "' + text + b'"}')

    def test_texts_that_no_file_can_hold(self) -> None:
        with pytest.raises(ValueError, match="surrogates"):
            parse_json('{"a": "\ud800"}')

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        )
    )
    def test_everything_else_is_as_the_standard_library_reads_it(self, value: object) -> None:
        text = json.dumps(value)
        assert json.dumps(parse_json(text)) == json.dumps(json.loads(text)) == text


class TestToml:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (f"a = {'9' * 400}", "of 400 digits is too large"),
            (f"a = {'9' * 5000}", ""),
            ("a = " + "[" * 100_000, "nested too deeply"),
            ("a = " + "[" * 300 + "]" * 300, "nested too deeply"),
            ("a" + ".a" * 500 + " = 1", "more than a hundred parts"),
            ("a" + ".a" * 20_000 + " = 1", "a key has more than a hundred parts"),
            ("a = 1\na = 2", "Cannot overwrite a value"),
            ('a = "\\uD800"', ""),
        ],
    )
    def test_refused(self, text: str, reason: str, tmp_path: Path) -> None:
        path = tmp_path / "s.toml"
        path.write_text(text)
        with pytest.raises(cmdpax.FileError) as caught:
            read_toml(path)
        assert str(caught.value).startswith(f"{path} is not a TOML file: ")
        assert reason in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "s.toml").write_bytes(b"a = '\xff'")
        with pytest.raises(cmdpax.FileError, match="is not a TOML file"):
            read_toml(tmp_path / "s.toml")

    def test_what_it_says(self, tmp_path: Path) -> None:
        (tmp_path / "s.toml").write_text("a = 1\n[b]\nc = [1.5, 'x', true]\n")
        assert read_toml(tmp_path / "s.toml") == {"a": 1, "b": {"c": [1.5, "x", True]}}


def test_a_file_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMDPAX_MAX_BYTES", "10000000")
    with pytest.raises(cmdpax.FileError, match=r"/dev/zero would take .* the limit is"):
        read_toml(Path("/dev/zero"))


def test_a_text_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.json").write_text("[" + "0," * 5000 + "0]")
    monkeypatch.setenv("CMDPAX_MAX_BYTES", "100000")
    with pytest.raises(cmdpax.FileError, match=r"is 97\.7 KiB; set CMDPAX_MAX_BYTES=17"):
        read_bytes(tmp_path / "m.json")
    with pytest.raises(cmdpax.FileError, match="the limit is"):
        read_toml(tmp_path / "m.json")
