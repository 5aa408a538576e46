"""Logs in files: what is read back, and one sentence for what cannot be read."""

import io
import json
import re
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas
import polars
import pytest

import cmdpax
from cmdpax.model.log_cells import looks_like_index
from cmdpax.model.words import PLAIN, Words
from log_cases import TABLE, happened, logs, read_slowly, write

LOG = cmdpax.Log(
    [[0, 1, 2], [2, 0, -1]],
    [[1, 0], [1, -1]],
    [[0.1, 1e-300], [-0.0, 0.0]],
    [[[1 / 3, 2.0]], [[4.0, 0.0]]],
    words=Words(("cold", "warm", "hot"), ("off", "low"), ("energy",), "profit", ("EUR", "kWh")),
)


def refused(path: Path, **options: Any) -> str:
    """The sentence."""
    with pytest.raises(cmdpax.FileError) as found:
        cmdpax.load_log(path, **options)
    sentence = str(found.value)
    assert "\n" not in sentence
    assert len(sentence) < 1000
    return sentence


# --------------------------------------------------------------------------------- there and back


@hypothesis.given(logs())
def test_an_archive_holds_the_whole_log(tmp_path_factory: Any, log: cmdpax.Log) -> None:
    path = tmp_path_factory.getbasetemp() / "log.npz"
    log.save(path)
    again = cmdpax.load_log(path)
    for array, expected in zip(again, log, strict=True):
        np.testing.assert_array_equal(array, expected)
    assert again.words == log.words


@hypothesis.given(logs())
def test_a_parquet_holds_what_happened_and_the_names(
    tmp_path_factory: Any, log: cmdpax.Log
) -> None:
    path = tmp_path_factory.getbasetemp() / "log.parquet"
    log.save(path)
    again = cmdpax.load_log(path)
    assert happened(again) == happened(log)
    assert again.words == log.words


@hypothesis.given(logs())
def test_a_csv_holds_what_happened(tmp_path_factory: Any, log: cmdpax.Log) -> None:
    path = tmp_path_factory.getbasetemp() / "log.csv"
    names = {*(log.words.state_names or ()), *(log.words.action_names or ())}
    hypothesis.assume(not any(map(looks_like_index, names)))
    log.save(path)
    again = cmdpax.load_log(path)
    assert happened(again) == happened(log)
    assert again.words.constraint_names == log.words.constraint_names
    if log.words == PLAIN:
        assert again.words == PLAIN
        return
    assert read_slowly(path, log.words.constraint_names or ()) == happened(log)
    words = log.words
    told = cmdpax.load_log(path, state_names=words.state_names, action_names=words.action_names)
    assert told.words == words
    np.testing.assert_array_equal(told.actions[told.actions >= 0], log.actions[log.actions >= 0])


def test_the_bytes_of_a_csv(tmp_path: Path) -> None:
    LOG.save(tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_bytes().decode() == (
        "episode,step,state,action,reward,next_state,energy\n"
        "0,0,cold,low,0.1,warm,0.3333333333333333\n"
        "0,1,warm,off,1e-300,hot,2.0\n"
        "1,0,hot,low,-0.0,cold,4.0\n"
    )


def test_what_a_table_loses(tmp_path: Path) -> None:
    LOG.save(tmp_path / "log.parquet")
    kept = cmdpax.load_log(tmp_path / "log.parquet").words
    assert kept == LOG.words._replace(objective_name=None, units=None)
    LOG.save(tmp_path / "log.csv")
    found = cmdpax.load_log(tmp_path / "log.csv").words
    assert found == Words(("cold", "hot", "warm"), ("low", "off"), ("energy",))


def test_an_archive_keeps_runs_and_senses(tmp_path: Path) -> None:
    words = Words(constraint_names=("energy",), senses=("at most",), ceilings=(3.5,))
    log = cmdpax.Log(*(np.stack([array, array]) for array in map(np.asarray, LOG)), words=words)
    log.save(tmp_path / "log.npz")
    again = cmdpax.load_log(tmp_path / "log.npz")
    assert again.states.shape == (2, 2, 3)
    assert again.words == words


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    LOG.save(path)
    before = path.read_bytes()
    broken = LOG._replace(rewards=[[np.inf, 0.0], [0.0, 0.0]])
    for name in ("log.csv", "log.parquet", "log.npz"):
        with pytest.raises(cmdpax.ModelError, match="rewards"):
            broken.save(tmp_path / name)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["log.csv"]
    LOG.save(str(path))
    assert path.read_bytes() == before


def test_a_name_that_a_csv_would_confuse_with_an_index(tmp_path: Path) -> None:
    words = Words(("1", "2", "3"), ("off", "low"), ("energy",))
    log = cmdpax.Log(*LOG, words=words)
    with pytest.raises(cmdpax.ModelError, match=r"the name '1' could not be told from an index"):
        log.save(tmp_path / "log.csv")
    log.save(tmp_path / "log.parquet")
    assert cmdpax.load_log(tmp_path / "log.parquet").words == words


def test_numbers_in_a_csv_are_names_if_they_are_given_as_such(tmp_path: Path) -> None:
    rows = ["episode,step,state,action,reward", "0,0,10,0,1", "0,1,2,1,1", "0,2,30,,"]
    path = write(tmp_path / "log.csv", "\n".join(rows))
    assert cmdpax.load_log(path).states.tolist() == [[10, 2, 30]]
    log = cmdpax.load_log(path, state_names=["2", "10", "30"], action_names=["off", "low"])
    assert log.states.tolist() == [[1, 0, 2]]
    assert log.actions.tolist() == [[0, 1]]
    assert refused(path, state_names=["2", "30"]).endswith(
        "line 2: there is no state '10'; did you mean '30'? known: 2, 30."
    )


# ------------------------------------------------------------------------------ files of others


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\nb", "\n\n\nb"),
        lambda text: text.replace("cold", '"cold"'),
        lambda text: text.replace(",6.0", ", 6 ").replace("0.5", "+.5e0"),
        lambda text: text.replace(",,,,", ", ,  ,,"),
        lambda text: text.replace("a,1", "a,1.0").replace("b,1", "b,1."),
    ],
)
def test_ways_to_write_the_same(tmp_path: Path, change: Any) -> None:
    path, other = write(tmp_path / "one.csv", TABLE), write(tmp_path / "two.CSV", change(TABLE))
    assert happened(cmdpax.load_log(other)) == happened(cmdpax.load_log(path))


def test_what_pandas_writes(tmp_path: Path) -> None:
    """Indices become floats where a cell is empty, and the index is a column without a name."""
    frame = pandas.read_csv(io.StringIO(TABLE))
    frame["action"] = frame["action"].map({"low": 1, "high": 2, "off": 0})
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    assert ",1.0," in path.read_text()
    assert cmdpax.load_log(path).actions.tolist() == [[1, 2], [0, -1]]
    frame.to_csv(path)
    assert "has a column without a name, such as pandas writes for its index" in refused(path)
    assert cmdpax.load_log(path, constraints=["energy"]).num_episodes == 2
    with pytest.raises(cmdpax.ModelError, match="has a column without a name"):
        cmdpax.load_log(pandas.read_csv(path))


def test_names_that_look_a_little_like_numbers(tmp_path: Path) -> None:
    """Python would read "0_1" as 1, "٣" as 3 and "nan" as no number at all."""
    rows = ["episode,step,state,action,reward", "0,0,0_1,nan,1", "0,1,٣,inf,1", "0,2,1e3,1 2,2"]
    log = cmdpax.load_log(write(tmp_path / "log.csv", "\n".join(rows)))
    assert log.words.state_names == ("0_1", "1e3", "٣")
    assert log.words.action_names == ("1 2", "inf", "nan")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("a,2", "a,3", "line 3: step 3 of the episode 'a' comes after step 1; add what is missing"),
        ("b,1", "b,0", "line 5: the episode 'b' begins with step 0, the first one with 1;"),
        ("b,1", "a,4", "line 4: the action is empty, but the episode goes on;"),
        ("16.0", "1_6", "line 3: the reward is '1_6', expected a number."),
        ("16.0", "sixteen", "line 3: the reward is 'sixteen', expected a number."),
        ("16.0", "1e400", "line 3: the reward is '1e400'; every step needs a finite number."),
        ("16.0", "nan", "line 3: the reward is 'nan'; every step needs a finite number."),
        ("16.0", "", "line 3: the reward is empty; every step needs a finite number."),
        ("0.9", "½", "line 3: the column 'parts' is '½', expected a number; say which columns"),
        ("0.9", "0.9,1", "line 3: it has 8 cells, the header has 7."),
        ("warm,", "", "line 3: it has 6 cells, the header has 7."),
        (
            "warm",
            "7",
            "line 3: the state is '7', a number, but 'cold' at line 2 is a name; use one",
        ),
        ("low", "1.5", "line 3: the action is 'high', a name, but '1.5' at line 2 is a number;"),
        ("a,2", "a,two", "line 3: the step is 'two', expected a number."),
        ("a,2", "a,1.5", "line 3: the step is '1.5', expected a whole number."),
        ("a,2", "a,", "line 3: the step is empty; every row needs one."),
        (",parts\n", ",energy\n", " has the column 'energy' twice; rename one."),
        (",parts\n", ", \n", " has a column without a name, such as pandas writes for its index;"),
        ("step,state", "step,states", " lacks the column 'state'; did you mean 'states'? known:"),
        (
            ",",
            ";",
            " lacks the column 'episode'; separate the cells by commas, and write "
            "decimals with a point.",
        ),
    ],
)
def test_a_defect_is_told_with_its_line(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = write(tmp_path / "log.csv", TABLE.replace(old, new, 1 if old != "," else -1))
    start = f"{path}" if sentence.startswith(" ") else f"{path}, "
    assert refused(path).startswith(start + sentence)


def test_lines_are_those_of_an_editor(tmp_path: Path) -> None:
    """Blank lines count, and a cell may go over several lines."""
    text = TABLE.replace("\nb", '\n\nb,1,"co\nld",off,0.5,0,0\nc')
    text = text.replace("0.5,0.0,0.0", "x,0,0")
    assert "line 8: the reward is 'x'" in refused(write(tmp_path / "log.csv", text))
    assert text.split("\n")[7].startswith("c,1,cold,off,x")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no header; its first line must name the columns."),
        (b"\n" + TABLE.encode(), "has no header; its first line must name the columns."),
        (TABLE.split("\n")[0].encode(), "has no rows; a log has one for every step."),
        (b"\xff\xfe\x00rubbish", "is not text in UTF-8: its byte 0 is 0xff; save it as UTF-8."),
        (b"\x00" * 1000, "lacks the column 'episode'; known: \\x00"),
        (b'episode,"step', "is not a readable .csv file: unexpected end of data."),
        (TABLE.encode() + b'b,2,"', "is not a readable .csv file: unexpected end of data."),
        (b"a" * 200_000, "is not a readable .csv file: field larger than field limit (131072)."),
    ],
)
def test_rubbish(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    assert refused(path).startswith(f"{path} {sentence}")


def test_many_columns_of_one_name_take_no_time(tmp_path: Path) -> None:
    names = ",".join(["x"] * 200_000)
    assert "has the column 'x' twice" in refused(write(tmp_path / "log.csv", names))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_what_is_not_there(tmp_path: Path, ending: str) -> None:
    assert refused(tmp_path / f"none{ending}") == f"{tmp_path / f'none{ending}'} does not exist."
    folder = tmp_path / f"folder{ending}"
    folder.mkdir()
    assert refused(folder) == f"{folder} is a folder, not a file."
    with pytest.raises(cmdpax.FileError, match="is a folder"):
        LOG.save(folder)
    with pytest.raises(cmdpax.FileError, match=r"the folder .* does not exist; create it first"):
        LOG.save(tmp_path / "nowhere" / f"log{ending}")


def test_other_endings(tmp_path: Path) -> None:
    sentence = "has the ending '.xlsx'; logs are .csv, .parquet or .npz files."
    assert refused(tmp_path / "log.xlsx").endswith(sentence)
    with pytest.raises(cmdpax.FileError, match=re.escape(sentence)):
        LOG.save(tmp_path / "log.xlsx")
    assert refused(tmp_path).endswith("logs are .csv, .parquet or .npz files.")


def test_files_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ending in (".csv", ".parquet", ".npz"):
        LOG.save(tmp_path / f"log{ending}")
    monkeypatch.setenv("CMDPAX_MAX_BYTES", "60")
    for ending in (".csv", ".parquet", ".npz"):
        sentence = refused(tmp_path / f"log{ending}")
        assert "of memory, the limit is 60 bytes; set CMDPAX_MAX_BYTES=" in sentence


# ----------------------------------------------------------------------------------------- parquet


def test_a_parquet_of_others(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    polars.read_csv(io.StringIO(TABLE)).write_parquet(path)
    log = cmdpax.load_log(path)
    assert log.words.state_names == ("cold", "hot", "warm")
    assert happened(log)[0][0] == ["cold", "warm", "hot"]
    frame = polars.read_csv(io.StringIO(TABLE))
    frame.with_columns(polars.lit("x").alias("note")).write_parquet(path)
    assert refused(path) == (
        f"{path}, row 0: the column 'note' is 'x', a text, expected a number; say which columns "
        "are constraints with constraints=[…]."
    )
    assert cmdpax.load_log(path, constraints=["parts"]).words.constraint_names == ("parts",)


def test_rows_of_a_parquet_count_from_0(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    frame = polars.read_csv(io.StringIO(TABLE.replace("a,2", "a,3")))
    frame.write_parquet(path)
    assert refused(path).startswith(f"{path}, row 1: step 3 of the episode 'a' comes after step 1")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 40 + b"PAR1", b"PK\x03\x04"])
def test_damaged_parquets(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(content)
    assert refused(path).startswith(f"{path} is not a readable .parquet file: ")


def test_a_long_text_in_many_rows_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    frame = polars.DataFrame({"episode": range(1000), "step": 0, "action": 0, "reward": 0.0})
    frame.with_columns(polars.lit("x" * 20_000).alias("state")).write_parquet(path)
    assert path.stat().st_size < 1_000_000  # of twenty million characters
    assert "has texts of more than 10000 bytes in the column 'state'" in refused(path)


def test_a_path_is_no_pattern(tmp_path: Path) -> None:
    LOG.save(tmp_path / "log.parquet")
    assert refused(tmp_path / "*.parquet").endswith("*.parquet does not exist.")
    LOG.save(tmp_path / "[l]og.parquet")
    assert cmdpax.load_log(tmp_path / "[l]og.parquet").num_episodes == 2


# ---------------------------------------------------------------------------------------- archives


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"actions": None}, "lacks the array 'actions'; it needs states, actions, rewards,"),
        ({"reward": np.ones(3)}, "has the unknown array 'reward'; did you mean 'rewards'? known:"),
        ({"words": np.array("{")}, "its words are not readable: Expecting property name"),
        ({"words": np.array("[]")}, "words is [], expected an object with names and units."),
        ({"words": np.array('{"name": []}')}, "words is {'name': []}, expected an object"),
        ({"words": np.array('{"state_names": ["a", "a", "b"]}')}, "state_names has 'a' twice"),
        ({"words": np.array('{"state_names": ["a"]}')}, "states[0, 1] is 1, but states are 0 … 0,"),
        (
            {"words": np.array('{"state_names": 3}')},
            "in words, state_names is 3, it must be a list",
        ),
        ({"words": np.array('{"senses": ["most"]}')}, "in words, a sense is 'most'"),
        (
            {"words": np.array('{"senses": ["at most"], "ceilings": ["x"]}')},
            "in words, the ceilings cannot be read as an array of real numbers",
        ),
        ({"rewards": np.ones((2, 3))}, "the log's rewards has shape (2, 3), expected (2, 2)"),
        ({"actions": np.ones((2, 2))}, "the log's actions must be integers, got float64;"),
        ({"states": np.full((2, 3), -1)}, "the log's states[0, 0] is -1, but states are"),
        ({"rewards": np.full((2, 2), np.nan)}, "the log's rewards[0, 0] is nan;"),
        (
            {"actions": np.array([[-1, 0], [0, 0]])},
            "the log's actions[0, 0] is -1, but the episode",
        ),
    ],
)
def test_archives_that_are_no_logs(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    words = {"state_names": ["cold", "warm", "hot"], "constraint_names": ["energy"]}
    arrays = {**LOG._asdict(), "words": np.array(json.dumps(words))} | changes
    path = tmp_path / "log.npz"
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    found = refused(path)
    assert found.startswith(f"{path}")
    assert sentence in found


def test_an_archive_of_four_arrays_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    np.savez(path, **LOG._asdict())
    assert cmdpax.load_log(path).words == PLAIN
    np.savez(path, **LOG._asdict() | {"constraint_rewards": []})
    assert cmdpax.load_log(path).constraint_rewards.shape == (2, 0, 2)


@pytest.mark.parametrize(
    "options",
    [{"horizon": 3}, {"constraints": ["energy"]}, {"state_names": ["a"]}, {"columns": {}}],
)
def test_options_of_tables_do_not_go_with_archives(tmp_path: Path, options: Any) -> None:
    LOG.save(tmp_path / "log.npz")
    (name,) = options
    with pytest.raises(cmdpax.ParameterError, match=f"{name} is given, but .* holds a whole log"):
        cmdpax.load_log(tmp_path / "log.npz", **options)
