"""Tables of steps as logs, and back: frames, mappings, and a sentence for each defect."""

import re
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas
import polars
import pytest

import cmdpax
from cmdpax.model.words import PLAIN, Words
from log_cases import TABLE, happened, logs, read_slowly, write

COLUMNS = {
    "episode": [7, 7, 8],
    "step": [0, 1, 0],
    "state": ["cold", "warm", "cold"],
    "action": ["low", "off", "low"],
    "reward": [3.0, 2.0, 3.0],
    "energy": [6.0, 0.0, 6.5],
}


def changed(**columns: Any) -> dict[str, Any]:
    """Two short episodes, with other columns."""
    return COLUMNS | columns


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


# ------------------------------------------------------------------------------------------ defects


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"step": [0, 2, 0]},
            "row 1: step 2 of the episode 7 comes after step 0; add what is missing, or end the "
            "episode there.",
        ),
        (
            {"step": [0, 0, 0]},
            "row 1: step 0 of the episode 7 is there twice; remove one of the rows.",
        ),
        (
            {"step": [1, 0, 1]},
            "row 1: step 0 of the episode 7 comes after step 1; sort the rows by step, or give "
            "every episode a label of its own.",
        ),
        (
            {"step": [0, 1, 1]},
            "row 2: the episode 8 begins with step 1, the first one with 0; complete it, or count "
            "all steps from the same number.",
        ),
        (
            {"step": [2, 3, 2]},
            "row 0: the first step is 2; steps count from 0 or from 1, in order.",
        ),
        ({"step": [0, 0.5, 0]}, "row 1: the step is 0.5, expected a whole number."),
        ({"step": [0, np.inf, 0]}, "row 1: the step is inf, expected a whole number."),
        ({"step": [0, 2**40, 0]}, f"row 1: the step is {2**40}, expected a whole number."),
        ({"step": [0, None, 0]}, "row 1: the step is empty; every row needs one."),
        ({"step": ["0", "1", "0"]}, "row 0: the step is '0', a text, expected a number."),
        (
            {"episode": [7, 8, 7], "step": [0, 0, 1]},
            "row 2: the episode 7 goes on after another one; sort the rows by episode and step, "
            "or give every episode a label of its own.",
        ),
        (
            {"episode": ["b", "a", "b"], "step": [0, 0, 0]},
            "row 2: the episode 'b' goes on after another one; sort the rows by episode and step, "
            "or give every episode a label of its own.",
        ),
        ({"episode": [None, 7, 8]}, "row 0: the episode is empty; every row needs one."),
        ({"episode": [7, 7, np.nan]}, "row 2: the episode is nan; every row needs one."),
        ({"state": ["cold", None, "cold"]}, "row 1: the state is empty; every row needs one."),
        ({"state": ["cold", " ", "cold"]}, "row 1: the state is empty; every row needs one."),
        (
            {"state": [0, 0.5, 1]},
            "row 1: the state is 0.5, neither a whole number nor a name.",
        ),
        (
            {"state": [0, -1, 1]},
            "row 1: the state is -1, indices are 0 or more; leave the cell empty where nothing is "
            "known.",
        ),
        ({"state": [0, np.inf, 1]}, "row 1: the state is inf, neither a whole number nor a name."),
        ({"state": [0, 2**40, 1]}, f"row 1: the state is {2**40}, the states are 0 … {2**31 - 2}."),
        (
            {"state": ["cold", 3, "cold"]},
            "row 1: the state is 3, but 'cold' at row 0 is of another type; expected whole "
            "numbers, or texts that are names.",
        ),
        (
            {"state": ["x" * 201, "warm", "cold"]},
            "row 0: the state is 'xxxx",
        ),
        (
            {"next_state": [1, 2, 0]},
            "row 0: the next_state is 1, a number, but the state is a name; use one of the two.",
        ),
        (
            {"next_state": ["warm", "hot", "cold"], "state": ["cold", "hot", "cold"]},
            "row 0: the next_state is 'warm', but the state at row 1 is 'hot'; correct one of "
            "them, or leave next_state empty.",
        ),
        (
            {"action": [None, "off", "low"]},
            "row 0: the action is empty, but the episode goes on; only its last row may leave it "
            "empty, and then tells the state after the last step.",
        ),
        (
            {"action": ["low", None, "low"]},
            "row 1: the action is empty, but the reward is 2.0; add the action, or leave both "
            "empty where the episode has ended.",
        ),
        (
            {"action": ["low", None, "low"], "reward": [1, None, 1]},
            "row 1: the action is empty, but the column 'energy' is 0.0; add the action, or leave "
            "both empty where the episode has ended.",
        ),
        (
            {
                "action": ["low", None, "low"],
                "reward": [1, None, 1],
                "energy": [1, None, 1],
                "next_state": [None, "cold", None],
            },
            "row 1: the action is empty, but the next_state is 'cold'; add the action, or leave "
            "both empty where the episode has ended.",
        ),
        ({"action": [None] * 3}, " has no step: every action is empty."),
        ({"reward": [1, np.nan, 1]}, "row 1: the reward is nan; every step needs a finite number."),
        ({"reward": [1, None, 1]}, "row 1: the reward is empty; every step needs a finite number."),
        (
            {"reward": [1, -np.inf, 1]},
            "row 1: the reward is -inf; every step needs a finite number.",
        ),
        ({"reward": [1, "x", 1]}, "row 1: the reward is 'x', but 1 at row 0 is of another type;"),
        ({"reward": [True, False, True]}, ": the reward is of the type bool; expected numbers."),
        (
            {"reward": np.array([True, False, True])},
            ": the reward is of the type bool; expected numbers.",
        ),
        (
            {"energy": ["1", "2", "3"]},
            "row 0: the column 'energy' is '1', a text, expected a number; say which columns are "
            "constraints with constraints=[…].",
        ),
        (
            {"energy": [1j, 2, 3]},
            "row 1: the column 'energy' is 2, but 1j at row 0 is of another type; expected "
            "numbers; say which columns are constraints with constraints=[…].",
        ),
        (
            {"energy": [1, 2, np.inf]},
            "row 2: the column 'energy' is inf; every step needs a finite number.",
        ),
        (
            {"": [0, 1, 2]},
            " has a column without a name, such as pandas writes for its index; say which columns "
            "are constraints with constraints=[…].",
        ),
        (
            {"reward": polars.Series([True, False, True])},
            ": the reward is of the type Boolean; expected numbers.",
        ),
        ({"reward": [1, 10**30, 10**400]}, ": the reward is of the type int; expected numbers."),
        ({"state": [0, 10**30, 0]}, "row 1: the state is 1e+30, the states are 0 … 2147483646."),
        ({"state": np.array([b"a", b"b", b"a"])}, ": the state is of the type |S1; expected whole"),
        (
            {"state": pandas.Series(pandas.Timestamp(0, tz="UTC")).repeat(3)},
            ": the state is of the type Timestamp; expected whole numbers, or texts",
        ),
        ({"episode": [[1], [2], [3]]}, ": the episode is of the type list; expected whole numbers"),
        ({name: [] for name in COLUMNS}, " has no rows; a log has one for every step."),
    ],
)
def test_a_defect_is_told_with_its_row(columns: dict[str, Any], sentence: str) -> None:
    start = "the table" if sentence.startswith((" ", ":")) else "the table, "
    with pytest.raises(cmdpax.ModelError, match=re.escape(start + sentence)) as found:
        cmdpax.load_log(changed(**columns))
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 300


def test_columns_that_are_missing_or_there_twice() -> None:
    table = {name if name != "state" else "State": cells for name, cells in COLUMNS.items()}
    with pytest.raises(
        cmdpax.ModelError,
        match=r"the table lacks the column 'state'; did you mean 'State'\? known: State, action, "
        r"energy, episode, reward, step, or say columns={'state': …}\.",
    ):
        cmdpax.load_log(table)
    with pytest.raises(cmdpax.ModelError, match=r"lacks the column 's'; known: State, .* step\.$"):
        cmdpax.load_log(table, columns={"state": "s"})
    with pytest.raises(cmdpax.ModelError, match="lacks the column 'after'"):
        cmdpax.load_log(COLUMNS, columns={"next_state": "after"})
    frame = pandas.DataFrame(COLUMNS)
    double = pandas.concat([frame, frame[["energy"]]], axis=1)
    with pytest.raises(cmdpax.ModelError, match="has the column 'energy' twice; rename one"):
        cmdpax.load_log(double)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": ["state"]}, "columns is ['state'], it must be a mapping such as"),
        ({"columns": {"stat": "s"}}, "columns has 'stat'; did you mean 'state'? known: action,"),
        ({"constraints": 3}, "constraints is 3, it must be a list of columns."),
        (
            {"constraints": ["enrgy"]},
            "constraints has 'enrgy', which is no column of the table; did you mean 'energy'?",
        ),
        ({"constraints": [0]}, "constraints has 0, which is no column of the table;"),
        ({"constraints": ["energy"] * 2}, "constraint_names has 'energy' twice"),
        ({"state_names": "cold"}, "state_names is 'cold', it must be a list"),
        ({"state_names": ["cold", "cold"]}, "state_names has 'cold' twice"),
        ({"action_names": [1, 2]}, "action_names[0] is 1, it must be a text"),
        ({"horizon": 0}, "horizon is 0, it must be a whole number of at least 1."),
        ({"horizon": 1.5}, "horizon is 1.5, it must be a whole number"),
        ({"units": {"enrgy": "kWh"}}, "units has 'enrgy'; did you mean 'energy'?"),
        ({"objective_name": "energy"}, "objective_name is 'energy', which is also a constraint's"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
        cmdpax.load_log(COLUMNS, **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"state_names": ["cold", "warmer"]},
            "row 1: there is no state 'warm'; did you mean 'warmer'? known: cold, warmer.",
        ),
        ({"action_names": ["low"]}, "row 1: there is no action 'off'; known: low."),
        (
            {"horizon": 1},
            "row 1: the episode 7 has a step more than the horizon, 1; give a larger horizon, or "
            "end the episode there.",
        ),
    ],
)
def test_rows_that_do_not_fit_the_options(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cmdpax.ModelError, match=re.escape(f"the table, {sentence}")):
        cmdpax.load_log(COLUMNS, **options)


def test_an_index_beyond_the_names() -> None:
    with pytest.raises(cmdpax.ModelError, match="row 1: the state is 2, the states are 0 … 1"):
        cmdpax.load_log(changed(state=[0, 2, 0]), state_names=["cold", "warm"])


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (3, "the log is 3, it must be a path, a frame of polars or pandas, or a mapping"),
        (polars.LazyFrame(COLUMNS), "or a mapping of columns; collect it first."),
        ([COLUMNS], "it must be a path, a frame"),
    ],
)
def test_what_is_no_table(source: Any, sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
        cmdpax.load_log(source)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"reward": [1.0]}, "the column 'reward' has 1 cells, 'episode' has 3; every column"),
        ({"reward": 1.0}, "the column 'reward' is 1.0, it must be a list or an array"),
        ({"reward": "abc"}, "the column 'reward' is 'abc', it must be a list or an array"),
        ({"reward": np.ones((3, 1))}, "the column 'reward' is array([[1.]"),
    ],
)
def test_columns_of_other_shapes(columns: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cmdpax.ModelError, match=re.escape(sentence)):
        cmdpax.load_log(changed(**columns))


def test_an_empty_mapping_lacks_columns() -> None:
    with pytest.raises(cmdpax.ModelError, match="lacks the column 'episode'; known: none, or say"):
        cmdpax.load_log({})


def test_one_long_episode_among_many_short_ones_needs_room(monkeypatch: Any) -> None:
    """200,000 rows may ask for 10^10 cells."""
    count = 2000
    table = {
        "episode": [0] * count + list(range(1, count)),
        "step": [*range(count), *[0] * (count - 1)],
        "state": [0] * (2 * count - 1),
        "action": [0] * (2 * count - 1),
        "reward": np.zeros(2 * count - 1),
    }
    assert cmdpax.load_log(table).actions.shape == (count, count)
    monkeypatch.setenv("CMDPAX_MAX_BYTES", "1000000")
    with pytest.raises(cmdpax.ModelError, match="the log of 2000 episodes and 2000 steps would"):
        cmdpax.load_log(table)


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


# ----------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (
            cmdpax.Log([[0, 5, 0]], [[0, 0]], [[1.0, 1.0]], [], words=Words(("a", "b"))),
            "the log's states[0, 1] is 5, but states are 0 … 1, as there are names; correct it.",
        ),
        (
            cmdpax.Log([[0, -1, 0]], [[0, 0]], [[1.0, 1.0]], []),
            "the log's states[0, 1] is -1, but states are 0 or more; correct it.",
        ),
        (
            cmdpax.Log([[0, 0, 0]], [[0, -2]], [[1.0, 1.0]], []),
            "the log's actions[0, 1] is -2, but actions are 0 or more; correct it.",
        ),
        (cmdpax.Log([[0, 0]], [[0]], [[np.nan]], []), "the log's rewards[0, 0] is nan; every"),
        (cmdpax.Log([[0, 0]], [[-1]], [[0.0]], []), "the log has no step: every action is -1."),
        (
            cmdpax.Log([[0, 0]], [[0]], [[0.0]], [[[1.0]]], words=Words(None, None, ("step",))),
            "a constraint has the name 'step', as another column of the table; rename it, or write "
            "a .npz file.",
        ),
        (
            cmdpax.Log([[0, 0]], [[0]], [[0.0]], [], words=Words(("a\ud800",))),
            "holds half of a character, which no file can; rename it.",
        ),
    ],
)
def test_logs_that_no_table_can_hold(log: cmdpax.Log, sentence: str) -> None:
    with pytest.raises(cmdpax.ModelError, match=re.escape(sentence)):
        log.frame()
