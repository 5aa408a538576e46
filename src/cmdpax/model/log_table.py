"""Logged episodes as a table in long form, one row per step, and back.

The columns are episode, step, state, action and reward, one for each constraint, and `next_state`.
The rows of an episode stand together and in order. The state after its last step is that row's
`next_state`, or stands in one more row whose action and rewards are empty; without either it is -1.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import require_count
from cmdpax.errors import FileError, ModelError, ParameterError, cut, nearest_name, shown
from cmdpax.model.log_cells import (
    Named,
    is_numeric,
    read_indices,
    read_labels,
    read_numbers,
    read_whole,
)
from cmdpax.model.log_columns import Column, Table
from cmdpax.model.words import Words, make_words
from cmdpax.storage.limits import max_bytes, max_file_bytes, require_room

NEEDED = ("episode", "step", "state", "action", "reward")
NEXT = "next_state"
ROLES = (*NEEDED, NEXT)
"""What the columns mean that are no constraints; also their names, if nobody says otherwise."""


class Choices(NamedTuple):
    """What a user says about a table; None where nothing was said."""

    constraints: Any = None
    horizon: Any = None
    columns: Any = None
    words: Mapping[str, Any] = {}


class Content(NamedTuple):
    """The arrays of a log, and its words."""

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    constraint_rewards: np.ndarray
    words: Words


class _Rows(NamedTuple):
    """The N rows: where they belong, and what they say.

    Attributes:
        episode: which episode, `[N]`.
        step: counted from 0, `[N]`.
        ends: whether it is the last row of its episode, `[N]`.
        states: `[N]`.
        actions: `[N]`, -1 where a row only tells the state after the last step.
        next_states: `[N]`, -1 where it is empty.
        signals: rewards and what the constraints sum up, `[1 + I, N]`.
    """

    episode: np.ndarray
    step: np.ndarray
    ends: np.ndarray
    states: np.ndarray
    actions: np.ndarray
    next_states: np.ndarray
    signals: np.ndarray


# ---------------------------------------------------------------------------------------- reading


def read_table(table: Table, choices: Choices) -> Content:
    """The episodes in a table.

    Raises:
        FileError, ModelError: what a file, or another table, holds is not a log.
        ParameterError: an argument that does not fit the table.
    """
    roles = _find_roles(table, choices.columns)
    constraints = _find_constraints(table, roles, choices.constraints)
    words = _said_words(choices.words, constraints)
    if not table.num_rows:
        raise table.error(f"{table.title} has no rows; a log has one for every step.")
    columns = {role: table.column(name) for role, name in roles.items()}
    episode, step, ends = _find_episodes(table, columns["episode"], columns["step"])
    asked = [Named(role, columns[role]) for role in ("state", NEXT) if role in columns]
    states = read_indices(table, "state", asked, words.state_names)
    actions = read_indices(
        table, "action", [Named("action", columns["action"])], words.action_names
    )
    next_states = np.full_like(states.columns[0], -1) if len(asked) < 2 else states.columns[1]
    signals = _read_signals(table, columns["reward"], constraints)
    rows = _Rows(episode, step, ends, states.columns[0], actions.columns[0], next_states, signals)
    _check_rows(table, rows, columns, constraints)
    words = words._replace(state_names=states.names, action_names=actions.names)
    return Content(*_placed(table, rows, choices.horizon), words)


def _find_roles(table: Table, given: Any) -> dict[str, str]:
    """The column of each role that the table has."""
    doubled = (
        {name for name in table.names if table.names.count(name) > 1}
        if len(set(table.names)) < len(table.names)
        else set()
    )
    if doubled:
        double = next(name for name in table.names if name in doubled)
        raise table.error(f"{table.title} has the column {shown(double)} twice; rename one.")
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"columns is {shown(given)}, it must be a mapping such as {{'state': 's'}}."
        )
    for role in given:
        if role not in ROLES:
            raise ParameterError(f"columns has {shown(role)}; {nearest_name(role, ROLES)}.")
    roles = {role: given.get(role, role) for role in ROLES}
    for role, name in roles.items():
        if name not in table.names and (role != NEXT or role in given):
            other = "" if role in given else f", or say columns={{'{role}': …}}"
            raise table.error(
                f"{table.title} lacks the column {shown(name)}; {table.nearest(name)}{other}."
            )
    return {role: name for role, name in roles.items() if name in table.names}


def _find_constraints(table: Table, roles: Mapping[str, str], given: Any) -> dict[str, Column]:
    """The columns of constraints, by their names."""
    if given is None:
        rest = [name for name in table.names if name not in roles.values()]
        found = {name: table.column(name) for name in rest}
        for name, column in found.items():
            _require_meant(table, name, column)
        return found
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Sequence | np.ndarray):
        raise ParameterError(f"constraints is {shown(given)}, it must be a list of columns.")
    for name in listed:
        if not isinstance(name, str) or name not in table.names:
            raise ParameterError(
                f"constraints has {shown(name)}, which is no column of {table.title}; "
                f"{table.nearest(name)}."
            )
    if len(set(listed)) < len(listed):
        raise ParameterError(f"constraints is {shown(given)}, it has a column twice.")
    return {str(name): table.column(name) for name in listed}


def _require_meant(table: Table, name: str, column: Column) -> None:
    """Refuse a column that is a constraint only because nobody said which ones are."""
    fix = "; say which columns are constraints with constraints=[…]"
    if not name.strip() or name == "Unnamed: 0":
        raise table.error(
            f"{table.title} has a column without a name, such as pandas writes for its index{fix}."
        )
    if not is_numeric(column):
        read_numbers(table, _told(name), column, fix)


def _told(name: str) -> str:
    """A column of a constraint, for sentences."""
    return f"column {shown(cut(name, 60))}"


def _said_words(given: Mapping[str, Any], constraints: Iterable[str]) -> Words:
    """The words that arguments and columns give."""
    names = list(constraints)
    sizes = [
        len(given[kind]) if isinstance(given.get(kind), Sequence | np.ndarray) else 0
        for kind in ("state_names", "action_names")
    ]
    unnamed = names == [unnamed_constraint(index) for index in range(len(names))]
    return make_words(
        (sizes[0], sizes[1], len(names)), constraint_names=None if unnamed else names, **given
    )


def _find_episodes(
    table: Table, episodes: Column, steps: Column
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which episode and step each row belongs to, and whether it ends its episode."""
    labels = read_labels(table, "episode", episodes)
    counted = read_whole(table, "step", steps)
    if counted[0] not in (0, 1):
        table.refuse(0, f"the first step is {counted[0]}; steps count from 0 or from 1")
    begins = np.concatenate([[True], labels[1:] != labels[:-1]])
    starts = np.flatnonzero(begins)
    episode = np.cumsum(begins) - 1
    step = np.arange(len(labels)) - starts[episode]
    wrong = counted != counted[0] + step
    _, firsts = np.unique(labels[starts], return_index=True)
    again = np.ones(len(starts), bool)
    again[firsts] = False
    wrong[starts[again]] = True
    if wrong.any():
        row = int(np.argmax(wrong))
        returns = bool(begins[row] and again[episode[row]])
        _refuse_order(table, row, counted, episodes, returns, bool(begins[row]))
    return episode, step, np.append(begins[1:], True)


def _refuse_order(
    table: Table, row: int, steps: np.ndarray, episodes: Column, returns: bool, begins: bool
) -> None:
    """Say what is wrong with the place of a row."""
    step, episode = int(steps[row]), episodes.cell(row)
    if returns:
        table.refuse(
            row,
            f"the episode {episode} goes on after another one; sort the rows by episode and step, "
            "or give every episode a label of its own",
        )
    if begins:
        table.refuse(
            row,
            f"the episode {episode} begins with step {step}, the first one with {steps[0]}; "
            "complete it, or count all steps from the same number",
        )
    before = int(steps[row - 1])
    if step == before:
        why = f"step {step} of the episode {episode} is there twice; remove one of them"
    elif step < before:
        why = (
            f"step {step} of the episode {episode} comes after step {before}; sort the rows, or "
            "give every episode a label of its own"
        )
    else:
        why = (
            f"step {step} of the episode {episode} comes after step {before}; add what is missing, "
            "or end the episode before it"
        )
    table.refuse(row, why)


def _read_signals(table: Table, reward: Column, constraints: Mapping[str, Column]) -> np.ndarray:
    """Rewards and what the constraints sum up, `[1 + I, N]`; NaN where a cell is empty."""
    found = [read_numbers(table, "reward", reward)]
    found += [read_numbers(table, _told(name), column) for name, column in constraints.items()]
    return np.stack(found)


def _check_rows(
    table: Table, rows: _Rows, columns: Mapping[str, Column], constraints: Mapping[str, Column]
) -> None:
    """Whether the cells of each row go together, and with the next row."""
    acted = rows.actions >= 0
    if not acted.any():
        raise table.error(f"{table.title} has no step: every action is empty.")
    _refuse_first(table, rows.states < 0, lambda row: "the state is empty; every row needs one")
    _refuse_first(
        table,
        ~acted & ~rows.ends,
        lambda row: (
            "the action is empty, but the episode goes on; only its last row may leave it "
            "out, and then tells the state after the last step"
        ),
    )
    signals = {"reward": columns["reward"]}
    signals |= {_told(name): column for name, column in constraints.items()}
    for (what, column), numbers in zip(signals.items(), rows.signals, strict=True):
        _refuse_first(
            table,
            acted & ~np.isfinite(numbers),
            lambda row, what=what, column=column: (
                f"the {what} is {column.cell(row)}; every observation must be a finite number"
            ),
        )
        _refuse_first(
            table,
            ~acted & ~column.empty,
            lambda row, what=what, column=column: (
                f"the {what} is {column.cell(row)}, but the "
                "action is empty; add it, or leave both empty"
            ),
        )
    if NEXT in columns:
        _check_next_states(table, rows, columns)


def _check_next_states(table: Table, rows: _Rows, columns: Mapping[str, Column]) -> None:
    _refuse_first(
        table,
        (rows.next_states >= 0) & (rows.actions < 0),
        lambda row: (
            f"the next_state is {columns[NEXT].cell(row)}, but the action is empty; add "
            "it, or leave both empty"
        ),
    )
    other = np.append(rows.next_states[:-1] != rows.states[1:], False)
    _refuse_first(
        table,
        ~rows.ends & (rows.next_states >= 0) & other,
        lambda row: (
            f"the next_state is {columns[NEXT].cell(row)}, but the state at "
            f"{table.place(row + 1)} is {columns['state'].cell(row + 1)}; correct one of them, or "
            "leave next_state empty"
        ),
    )


def _refuse_first(table: Table, wrong: np.ndarray, why: Any) -> None:
    """Refuse the first row that is wrong, if there is any."""
    if wrong.any():
        row = int(np.argmax(wrong))
        table.refuse(row, why(row))


def _placed(
    table: Table, rows: _Rows, given: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The arrays of a log; an episode that is shorter than the horizon is cut short."""
    acted = rows.actions >= 0
    longest = int(rows.step[acted].max()) + 1
    horizon = longest if given is None else require_count("horizon", given)
    if longest > horizon:
        row = int(np.argmax(acted & (rows.step >= horizon)))
        table.refuse(row, f"the episode has more than {horizon} steps; give a larger horizon")
    count, num_signals = int(rows.episode[-1]) + 1, len(rows.signals)
    is_file = table.error is FileError
    require_room(
        f"the log of {count} episodes and {horizon} steps",
        8 * count * (horizon * (1 + num_signals) + horizon + 1),
        "shorten the episodes",
        table.error,
        max_file_bytes() if is_file else max_bytes(),
    )
    states = np.full((count, horizon + 1), -1)
    actions = np.full((count, horizon), -1)
    signals = np.zeros((num_signals, count, horizon))
    states[rows.episode, rows.step] = rows.states
    last = acted & rows.ends
    states[rows.episode[last], rows.step[last] + 1] = rows.next_states[last]
    places = rows.episode[acted], rows.step[acted]
    actions[places] = rows.actions[acted]
    signals[:, *places] = rows.signals[:, acted]
    return states, actions, signals[0], np.moveaxis(signals[1:], 0, 1)


# ---------------------------------------------------------------------------------------- writing


def unnamed_constraint(index: int) -> str:
    """The column of a constraint that has no name."""
    return f"constraint_{index}"


def to_columns(content: Content) -> dict[str, np.ndarray]:
    """A row for every step that happened; several runs are pooled, one after the other.

    Args:
        content: a log whose arrays were checked, also for several runs.

    Raises:
        ModelError: a state does not exist, or a constraint has the name of another column.
    """
    horizon = content.actions.shape[-1]
    states = content.states.reshape(-1, horizon + 1)
    actions = content.actions.reshape(-1, horizon)
    num_constraints = content.constraint_rewards.shape[-2]
    constraint_rewards = content.constraint_rewards.reshape(-1, num_constraints, horizon)
    names = content.words.constraint_names
    named = names or tuple(unnamed_constraint(index) for index in range(num_constraints))
    taken = next((name for name in named if name in ROLES), None)
    if taken is not None:
        raise ModelError(
            f"a constraint has the name {taken!r}, which is that of another column; write a .npz "
            "file, or rename it."
        )
    played = actions != -1
    episode, step = np.nonzero(played)
    _check_indices(content, states, actions, played)
    return {
        "episode": episode,
        "step": step,
        "state": states[episode, step],
        "action": actions[episode, step],
        "reward": content.rewards.reshape(-1, horizon)[episode, step],
        NEXT: states[episode, step + 1],
    } | {name: constraint_rewards[episode, i, step] for i, name in enumerate(named)}


def _check_indices(
    content: Content, states: np.ndarray, actions: np.ndarray, played: np.ndarray
) -> None:
    """Refuse states and actions that do not exist; a state after the last step may be -1."""
    before = np.concatenate([played, np.zeros_like(played[:, :1])], axis=1)
    after = np.concatenate([np.zeros_like(played[:, :1]), played], axis=1)
    words = content.words
    for name, indices, read, unseen, known in (
        ("states", states, before | after, after & ~before & (states == -1), words.state_names),
        ("actions", actions, played, np.zeros_like(played), words.action_names),
    ):
        size = np.iinfo(np.int64).max if known is None else len(known)
        wrong = read & ~unseen & ((indices < 0) | (indices >= size))
        if wrong.any():
            place = np.unravel_index(int(np.argmax(wrong)), getattr(content, name).shape)
            raise ModelError(
                f"the log's {name}{[int(i) for i in place]} is {indices.ravel()[wrong.argmax()]}, "
                f"but {name} are 0 or more" + (f", below {size}" if known else "") + "; correct it."
            )
