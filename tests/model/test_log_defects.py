"""One sentence for each defect of a table, with its row; and logs that no table can hold."""

import re
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import cmdpax
from cmdpax.model.words import Words
from log_cases import COLUMNS, changed

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
            "row 0: the first step is 2, but steps count from 0 or from 1, in order.",
        ),
        (
            {"step": [2, 0, 1], "episode": [7, 7, 7]},
            "row 0: the first step is 2, but steps count from 0 or from 1; sort the rows by "
            "episode and step.",
        ),
        (
            {"step": [0, 2, 1], "episode": [7, 7, 7]},
            "row 1: step 2 of the episode 7 comes after step 0, and step 1 is at row 2; sort the "
            "rows by episode and step.",
        ),
        (
            {"step": [0, 1, 0], "episode": [7, 8, 8]},
            "row 1: the episode 8 begins with step 1, the first one with 0, and step 0 is at row "
            "2; sort the rows by episode and step.",
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
        r"energy, episode, reward, step; if one of these is the state, say columns={'state': …}\.",
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
    with pytest.raises(cmdpax.ModelError, match=r"lacks the column 'episode'; known: none\.$"):
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
