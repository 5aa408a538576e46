"""The rows of a table as steps of episodes: what must hold among them, and where they belong."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cmdpax.checks import require_count
from cmdpax.errors import FileError
from cmdpax.model.log_cells import Named, read_labels, read_whole
from cmdpax.model.log_columns import Column, Table
from cmdpax.storage.limits import max_bytes, max_file_bytes, require_room


class Rows(NamedTuple):
    """What the N rows of a table say; -1 and NaN stand for empty cells.

    Attributes:
        episode: the episode that a row belongs to, `[N]`, counted from 0.
        step: `[N]`, counted from 0.
        ends: whether it is the last row of its episode, `[N]`.
        states: `[N]`.
        actions: `[N]`; where it is -1, the row tells the state after the last step.
        next_states: `[N]`.
        signals: the rewards and what the constraints sum up, `[1 + I, N]`.
    """

    episode: np.ndarray
    step: np.ndarray
    ends: np.ndarray
    states: np.ndarray
    actions: np.ndarray
    next_states: np.ndarray
    signals: np.ndarray


# ---------------------------------------------------------------------------------------- episodes


def find_episodes(
    table: Table, episodes: Column, steps: Column
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which episode and step each row belongs to, and whether it ends its episode."""
    labels = read_labels(table, Named("episode", episodes))
    counted = read_whole(table, Named("step", steps))
    if counted[0] not in (0, 1):
        earlier = np.isin(counted, (0, 1)) & (labels == labels[0])
        fix = "; sort the rows by episode and step" if earlier.any() else ", in order"
        table.refuse(0, f"the first step is {counted[0]}, but steps count from 0 or from 1{fix}")
    begins = np.concatenate([[True], labels[1:] != labels[:-1]])
    starts = np.flatnonzero(begins)
    episode = np.cumsum(begins) - 1
    step = np.arange(len(labels)) - starts[episode]
    again = np.ones(len(starts), bool)  # whether the label was there before
    again[np.unique(labels[starts], return_index=True)[1]] = False

    def why(row: int) -> str:
        label = episodes.cell(row)
        if begins[row] and again[episode[row]]:
            return (
                f"the episode {label} goes on after another one; sort the rows by episode and "
                "step, or give every episode a label of its own"
            )
        missing = int(counted[0] if begins[row] else counted[row - 1] + 1)
        elsewhere = (labels == labels[row]) & (counted == missing)
        place = table.place(int(elsewhere.argmax())) if elsewhere.any() else None
        sort = place and f", and step {missing} is at {place}; sort the rows by episode and step"
        if begins[row]:
            begun = f"the episode {label} begins with step {counted[row]}, the first one with"
            fix = sort or "; complete it, or count all steps from the same number"
            return f"{begun} {counted[0]}{fix}"
        return _why_not_next(label, int(counted[row - 1]), int(counted[row]), sort)

    table.refuse_first((counted != counted[0] + step) | (begins & again[episode]), why)
    return episode, step, np.append(begins[1:], True)


def _why_not_next(label: str, before: int, step: int, sort: str | None) -> str:
    """What is wrong with a step that does not follow the one before it.

    Args:
        label: the episode.
        before: the step of the row before.
        step: the step of the row.
        sort: the advice to sort the rows, if the step in between is elsewhere in the table.
    """
    if step == before:
        return f"step {step} of the episode {label} is there twice; remove one of the rows"
    follows = f"step {step} of the episode {label} comes after step {before}"
    if step < before:
        return f"{follows}; sort the rows by step, or give every episode a label of its own"
    return f"{follows}{sort or '; add what is missing, or end the episode there'}"


# ------------------------------------------------------------------------------------------ checks


def check_rows(
    table: Table, rows: Rows, states: Mapping[str, Column], signals: Mapping[str, Column]
) -> None:
    """Refuse rows whose cells do not go together, or do not fit the next row.

    Args:
        table: the table.
        rows: what it says.
        states: the columns of states: `state`, and `next_state` if there is one.
        signals: the columns of rewards and constraints, in the order of `rows.signals`.
    """
    acted = rows.actions >= 0
    if not acted.any():
        raise table.error(f"{table.title} has no step: every action is empty.")
    table.refuse_first(rows.states < 0, lambda row: "the state is empty; every row needs one")
    table.refuse_first(
        ~acted & ~rows.ends,
        lambda row: (
            "the action is empty, but the episode goes on; only its last row may leave it empty, "
            "and then tells the state after the last step"
        ),
    )
    for named, numbers in zip(signals.items(), rows.signals, strict=True):
        _check_signal(table, Named(*named), numbers, acted)
    if len(states) > 1:
        _check_next_states(table, rows, *states.values())


def _check_signal(table: Table, named: Named, numbers: np.ndarray, acted: np.ndarray) -> None:
    what, column = named
    table.refuse_first(
        acted & ~np.isfinite(numbers),
        lambda row: f"the {what} is {column.cell(row)}; every step needs a finite number",
    )
    table.refuse_first(
        ~acted & ~column.empty,
        lambda row: (
            f"the action is empty, but the {what} is {column.cell(row)}; add the action, or leave "
            "both empty where the episode has ended"
        ),
    )


def _check_next_states(table: Table, rows: Rows, states: Column, next_states: Column) -> None:
    table.refuse_first(
        (rows.next_states >= 0) & (rows.actions < 0),
        lambda row: (
            f"the action is empty, but the next_state is {next_states.cell(row)}; add the action, "
            "or leave both empty where the episode has ended"
        ),
    )
    differs = np.append(rows.next_states[:-1] != rows.states[1:], False)
    table.refuse_first(
        ~rows.ends & (rows.next_states >= 0) & differs,
        lambda row: (
            f"the next_state is {next_states.cell(row)}, but the state at {table.place(row + 1)} "
            f"is {states.cell(row + 1)}; correct one of them, or leave next_state empty"
        ),
    )


# ------------------------------------------------------------------------------------------ arrays


def to_arrays(
    table: Table, rows: Rows, episodes: Column, given: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The arrays of a log; an episode that is shorter than the horizon is cut short.

    Args:
        table: the table.
        rows: what it says, checked.
        episodes: the labels of the episodes.
        given: the horizon; None: the steps of the longest episode.
    """
    acted = rows.actions >= 0
    horizon = int(rows.step[acted].max()) + 1 if given is None else require_count("horizon", given)
    table.refuse_first(
        acted & (rows.step >= horizon),
        lambda row: (
            f"the episode {episodes.cell(row)} has a step more than the horizon, {horizon}; give a "
            "larger horizon, or end the episode there"
        ),
    )
    count, num_signals = int(rows.episode[-1]) + 1, len(rows.signals)
    require_room(
        f"the log of {count} episodes and {horizon} steps",
        8 * count * (horizon * (2 + num_signals) + 1),
        "shorten the longest episode",
        table.error,
        max_file_bytes() if table.error is FileError else max_bytes(),
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
