"""Tables of steps as logs, and back: mappings, frames of polars and pandas, and choices."""

from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas
import polars
import pytest

import cmdpax
from cmdpax.model.words import PLAIN, Words
from log_cases import COLUMNS, TABLE, changed, happened, logs, read_slowly, write


def same(one: cmdpax.Log, other: cmdpax.Log) -> None:
    for array, expected in zip(one, other, strict=True):
        np.testing.assert_array_equal(array, expected)
    assert one.words == other.words


# ---------------------------------------------------------------------------------- what is read


def test_a_mapping_becomes_a_log() -> None:
    log = cmdpax.load_log(COLUMNS)
    assert log.states.tolist() == [[0, 1, -1], [0, -1, -1]]
    assert log.actions.tolist() == [[0, 1], [0, -1]]
    assert log.rewards.tolist() == [[3.0, 2.0], [3.0, 0.0]]
    assert log.constraint_rewards.tolist() == [[[6.0, 0.0]], [[6.5, 0.0]]]
    assert log.words == Words(("cold", "warm"), ("low", "off"), ("energy",))
    kinds = [array.dtype for array in log]
    assert kinds == [np.int64, np.int64, np.float64, np.float64]


@hypothesis.given(logs(named=True, most_runs=0))
def test_a_frame_is_read_as_it_was_written(log: cmdpax.Log) -> None:
    again = cmdpax.load_log(log.frame())
    assert happened(again) == happened(log)
    assert again.words == log.words


@hypothesis.given(logs(named=False))
def test_a_frame_without_names(log: cmdpax.Log) -> None:
    again = cmdpax.load_log(log.frame(), horizon=log.actions.shape[-1])
    assert happened(again) == happened(log)
    assert again.words == PLAIN
    assert again.actions.shape[-1] == log.actions.shape[-1]


def test_a_frame_has_a_row_for_every_step() -> None:
    frame = cmdpax.load_log(COLUMNS).frame()
    assert frame.columns == ["episode", "step", "state", "action", "reward", "next_state", "energy"]
    assert frame.rows() == [
        (0, 0, "cold", "low", 3.0, "warm", 6.0),
        (0, 1, "warm", "off", 2.0, None, 0.0),
        (1, 0, "cold", "low", 3.0, None, 6.5),
    ]
    assert frame["state"].dtype == polars.Enum(["cold", "warm"])


def test_runs_are_pooled_one_after_the_other() -> None:
    generator = np.random.default_rng(1)
    log = cmdpax.Log(
        generator.integers(0, 3, (2, 4, 6)),
        generator.integers(0, 2, (2, 4, 5)),
        generator.random((2, 4, 5)),
        generator.random((2, 4, 1, 5)),
    )
    again = cmdpax.load_log(log.frame())
    assert again.num_episodes == 8
    for array, expected in zip(again, log, strict=True):
        np.testing.assert_array_equal(array, expected.reshape(8, *expected.shape[2:]))
    assert again.words.constraint_names is None


def test_a_slow_reader_finds_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", TABLE)
    log = cmdpax.load_log(path)
    assert happened(log) == read_slowly(path, ["energy", "parts"])
    assert happened(log)[0][0] == ["cold", "warm", "hot"]
    assert happened(log)[1][0] == ["cold", None]
    same(cmdpax.load_log(polars.read_csv(path)), log)
    same(cmdpax.load_log(pandas.read_csv(path)), log)


@hypothesis.given(logs(named=True, most_runs=0))
def test_the_table_that_a_slow_reader_reads(log: cmdpax.Log) -> None:
    frame = log.frame()
    rows = frame.rows(named=True)
    assert len(rows) == np.count_nonzero(log.actions != -1)
    found: dict[int, tuple[list[Any], ...]] = {}
    for row in rows:
        states, actions, rewards, others = found.setdefault(row["episode"], ([], [], [], []))
        states[len(actions) :] = [row["state"], row["next_state"]]
        actions.append(row["action"])
        rewards.append(row["reward"].hex())
        others.append([row[name].hex() for name in log.words.constraint_names or ()])
    expected = [
        (*episode[:3], [list(one) for one in zip(*episode[3], strict=True)])
        for episode in found.values()
    ]
    if log.words.constraint_names:
        assert expected == happened(log)


# ----------------------------------------------------------------------------------------- choices


def test_names_that_are_given_decide_the_order() -> None:
    log = cmdpax.load_log(COLUMNS, state_names=["warm", "hot", "cold"], action_names=["off", "low"])
    assert log.states[0].tolist() == [2, 0, -1]
    assert log.actions[0].tolist() == [1, 0]
    assert log.words.state_names == ("warm", "hot", "cold")


def test_indices_may_have_names() -> None:
    log = cmdpax.load_log(changed(state=[0, 2, 0]), state_names=["cold", "warm", "hot"])
    assert log.states[0].tolist() == [0, 2, -1]
    assert log.words.state_names == ("cold", "warm", "hot")


def test_types_that_list_names_decide_the_order() -> None:
    names = ["warm", "hot", "cold"]
    frame = polars.DataFrame(COLUMNS).with_columns(
        polars.col("state").cast(polars.Enum(names)), polars.col("action").cast(polars.Categorical)
    )
    log = cmdpax.load_log(frame)
    assert log.words.state_names == tuple(names)
    assert log.words.action_names == ("low", "off")
    other = pandas.DataFrame(COLUMNS)
    other["state"] = pandas.Categorical(other["state"], names)
    same(cmdpax.load_log(other), log)
    assert cmdpax.load_log(frame, state_names=["cold", "warm"]).states[0].tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("following", "order"),
    [
        (["hot", None, "hot"], ("warm", "hot", "cold")),  # all of them are listed
        ([None] * 3, ("warm", "hot", "cold")),
        (["hot", None, "ice"], ("cold", "hot", "ice")),  # then the list is not all there is
    ],
)
def test_one_type_may_list_the_names_of_both_columns(
    following: list[str | None], order: tuple[str, ...]
) -> None:
    states = ["cold", "hot", "cold"]
    plain = changed(state=states, next_state=following)
    listed = polars.Series(states, dtype=polars.Enum(["warm", "hot", "cold"]))
    found = cmdpax.load_log(plain | {"state": listed})
    assert found.words.state_names == order
    assert found.states[0, 0] == order.index("cold")
    assert set(cmdpax.load_log(plain).words.state_names or ()) <= set(order)


def test_constraints_that_are_named() -> None:
    table = changed(note=["a", "b", "c"], parts=[1, 0, 1])
    log = cmdpax.load_log(table, constraints=["parts", "energy"])
    assert log.words.constraint_names == ("parts", "energy")
    assert log.constraint_rewards[0].tolist() == [[1.0, 0.0], [6.0, 0.0]]
    assert cmdpax.load_log(table, constraints="parts").words.constraint_names == ("parts",)
    none = cmdpax.load_log(table, constraints=[])
    assert none.constraint_rewards.shape == (2, 0, 2)
    assert none.words.constraint_names is None


def test_columns_with_other_names() -> None:
    table = {f"my {name}": cells for name, cells in COLUMNS.items()}
    roles = {name: f"my {name}" for name in COLUMNS if name != "energy"}
    log = cmdpax.load_log(table, columns=roles)
    np.testing.assert_array_equal(log.actions, cmdpax.load_log(COLUMNS).actions)
    assert log.words.constraint_names == ("my energy",)


def test_units_and_the_name_of_the_objective() -> None:
    log = cmdpax.load_log(COLUMNS, objective_name="profit", units={"energy": "kWh"})
    assert [log.words.label(), log.words.label(1)] == ["profit", "energy [kWh]"]


def test_a_longer_horizon_cuts_every_episode_short() -> None:
    log = cmdpax.load_log(COLUMNS, horizon=4)
    assert log.actions.tolist() == [[0, 1, -1, -1], [0, -1, -1, -1]]
    assert log.states.shape == (2, 5)


def test_steps_may_count_from_1() -> None:
    same(cmdpax.load_log(changed(step=[1, 2, 1])), cmdpax.load_log(COLUMNS))


@pytest.mark.parametrize(
    "labels",
    [
        ["2026-01-01", "2026-01-01", "2026-01-02"],
        [2.5, 2.5, -1.0],
        [9, 9, 2**63],
        np.array(["2026-01-01", "2026-01-01", "2026-01-02"], "M8[s]"),
        polars.Series([1, 1, 2]).cast(polars.Date),
        polars.Series([1, 1, 2]).cast(polars.Duration),
        pandas.Series(["x", "x", "y"], dtype="category"),
    ],
)
def test_episodes_have_any_labels(labels: Any) -> None:
    same(cmdpax.load_log(changed(episode=labels)), cmdpax.load_log(COLUMNS))


class TestTheLastState:
    def test_may_be_empty_everywhere(self) -> None:
        expected = cmdpax.load_log(COLUMNS)
        same(cmdpax.load_log(changed(next_state=[None] * 3)), expected)
        nulls = polars.DataFrame(COLUMNS).with_columns(next_state=polars.lit(None))
        same(cmdpax.load_log(nulls), expected)
        same(cmdpax.load_log(nulls.with_columns(polars.col("next_state").cast(str))), expected)

    def test_is_the_next_state(self) -> None:
        log = cmdpax.load_log(changed(next_state=["warm", "hot", None]))
        assert log.states.tolist() == [[0, 2, 1], [0, -1, -1]]
        assert log.words.state_names == ("cold", "hot", "warm")

    def test_need_not_be_said_elsewhere(self) -> None:
        log = cmdpax.load_log(changed(next_state=[None, "hot", ""]))
        assert log.states.tolist() == [[0, 2, 1], [0, -1, -1]]

    def test_has_a_row_of_its_own(self) -> None:
        table = {
            "episode": [1, 1, 2],
            "step": [0, 1, 0],
            "state": [4, 2, 0],
            "action": [1, None, 0],
            "reward": [0.5, None, 1.0],
            "next_state": [2.0, float("nan"), 3.0],
        }
        log = cmdpax.load_log(table)
        assert log.states.tolist() == [[4, 2], [0, 3]]
        assert log.actions.tolist() == [[1], [0]]
        same(cmdpax.load_log(pandas.DataFrame(table)), log)

    def test_of_an_episode_without_a_step(self) -> None:
        log = cmdpax.load_log(
            changed(action=["low", "off", None], reward=[3.0, 2.0, None], energy=[6.0, 0.0, None])
        )
        assert log.actions.tolist() == [[0, 1], [-1, -1]]
        assert log.num_episodes == 2


# ------------------------------------------------------------------------------------ other types


NUMBERS = {
    "episode": [1, 1, 2],
    "step": [0, 1, 0],
    "state": [0, 2, 1],
    "action": [1, 0, 1],
    "reward": [3, 2, 0],
    "next_state": [2, None, None],
    "energy": [6.5, 0.0, 6.0],
}


@pytest.mark.parametrize(
    "convert",
    [
        polars.DataFrame,
        pandas.DataFrame,
        lambda columns: pandas.DataFrame(columns).convert_dtypes(),
        lambda columns: pandas.DataFrame(columns).astype(object),
        lambda columns: {name: np.array(cells, object) for name, cells in columns.items()},
        lambda columns: {name: np.array(cells, float) for name, cells in columns.items()},
        lambda columns: {name: pandas.Series(cells) for name, cells in columns.items()},
        lambda columns: {name: polars.Series(cells) for name, cells in columns.items()},
        lambda columns: {name: tuple(cells) for name, cells in columns.items()},
        lambda columns: polars.DataFrame(columns).cast(polars.Decimal(10, 2)),
        lambda columns: polars.DataFrame(columns).cast(polars.Float32),
        lambda columns: polars.DataFrame(columns).with_columns(
            polars.col("state", "action", "next_state").cast(polars.UInt8),
            polars.col("reward").cast(polars.Int128),
        ),
    ],
)
def test_types_of_numbers(convert: Any) -> None:
    same(cmdpax.load_log(convert(NUMBERS)), cmdpax.load_log(NUMBERS))


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame.astype("category"),
        lambda frame: frame.astype(object),
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.to_dict("list"),
        lambda frame: frame.to_dict("series"),
    ],
)
def test_types_of_texts(convert: Any) -> None:
    table = changed(next_state=["warm", "cold", None])
    frame = pandas.DataFrame(table)
    texts = ["state", "action", "next_state"]
    converted = convert(frame[texts])
    columns = {name: converted[name] for name in texts}
    whole = changed(**columns)
    same(cmdpax.load_log(whole), cmdpax.load_log(table))
    if isinstance(converted, pandas.DataFrame):
        same(cmdpax.load_log(pandas.DataFrame(whole)), cmdpax.load_log(table))


def test_integers_that_floats_cannot_tell_apart_are_different_episodes() -> None:
    labels = np.array([2**63, 2**63 + 1, 2**63 + 2], np.uint64)
    log = cmdpax.load_log(changed(episode=labels, step=[0, 0, 0]))
    assert log.num_episodes == 3
    log = cmdpax.load_log(polars.DataFrame(changed(episode=labels, step=[0, 0, 0])))
    assert log.num_episodes == 3


# ---------------------------------------------------------------------------------------- estimates


def test_estimates_keep_the_words() -> None:
    log = cmdpax.load_log(
        changed(parts=[1, 0, 1]), objective_name="profit", units={"energy": "kWh"}
    )
    cmdp = cmdpax.estimate(
        log,
        thresholds=[12, 1],
        senses=["at most", "at least"],
        available=[[1, 1], [0, 1]],
        initial="cold",
    )
    assert str(cmdp).split("\n")[1:4] == [
        "maximise profit",
        "energy at most 12 kWh",
        "parts at least 1",
    ]
    assert cmdp.words.state_names == ("cold", "warm")
    with pytest.raises(cmdpax.ModelError, match="is low, which is not available in cold"):
        cmdpax.estimate(log, thresholds=[12, 1], available=[[0, 1], [1, 1]])
