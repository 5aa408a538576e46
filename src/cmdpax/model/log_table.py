"""Logged episodes as a table in long form, one row per step, and back.

The columns are episode, step, state, action and reward, one for each constraint, and `next_state`.
The rows of an episode stand together and in order. The state after its last step is that row's
`next_state`, or stands in one more row whose action and rewards are empty; without either it is -1.
"""

import collections
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import ModelError, ParameterError, cut, nearest_name, shown
from cmdpax.model.log_cells import Named, read_indices, read_numbers
from cmdpax.model.log_columns import Table
from cmdpax.model.log_rows import Rows, check_rows, find_episodes, to_arrays
from cmdpax.model.words import Words, make_words

NEXT = "next_state"
ROLES = ("episode", "step", "state", "action", "reward", NEXT)
"""What columns mean that are no constraints; also their names, if nobody says otherwise."""

COMMAS = "separate the cells by commas, and write decimals with a point"


class Choices(NamedTuple):
    """What a user says about a table, the arguments of `load_log`; None where nothing was said."""

    constraints: Any = None
    horizon: Any = None
    columns: Any = None
    state_names: Any = None
    action_names: Any = None
    objective_name: Any = None
    units: Any = None


class Content(NamedTuple):
    """The arrays of a log, and its words."""

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    constraint_rewards: np.ndarray
    words: Words


# ----------------------------------------------------------------------------------------- reading


def read_table(table: Table, choices: Choices) -> Content:
    """The episodes in a table.

    Raises:
        CmdpaxError: the table's own error, if it does not hold episodes.
        ParameterError: an argument that does not fit the table.
    """
    roles = _find_roles(table, choices.columns)
    names, fix = _find_constraints(table, roles, choices.constraints)
    said = _make_words(choices, choices.state_names, choices.action_names, names)
    if not table.num_rows:
        raise table.error(f"{table.title} has no rows; a log has one for every step.")
    columns = {role: table.column(name) for role, name in roles.items()}
    signals = {"reward": columns["reward"]}
    signals |= {f"column {shown(cut(name, 60))}": table.column(name) for name in names}
    asked = [Named(role, columns[role]) for role in ("state", NEXT) if role in columns]
    episode, step, ends = find_episodes(table, columns["episode"], columns["step"])
    states = read_indices(table, "state", asked, said.state_names)
    actions = read_indices(table, "action", [Named("action", columns["action"])], said.action_names)
    numbers = [
        read_numbers(table, Named(*named), fix if at else "")
        for at, named in enumerate(signals.items())
    ]
    unknown = np.full_like(episode, -1)
    rows = Rows(
        *(episode, step, ends, states.columns[0], actions.columns[0]),
        next_states=states.columns[1] if len(asked) > 1 else unknown,
        signals=np.stack(numbers),
    )
    check_rows(table, rows, dict(asked), signals)
    words = _make_words(choices, states.names, actions.names, names)
    return Content(*to_arrays(table, rows, columns["episode"], choices.horizon), words)


def _find_roles(table: Table, given: Any) -> dict[str, str]:
    """The column of each role that the table has."""
    double, times = next(iter(collections.Counter(table.names).most_common(1)), ("", 1))
    if times > 1:
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
            hint = _hint(table, name)
            if role not in given and hint != COMMAS and table.names:
                hint += f"; if one of these is the {role}, say columns={{'{role}': …}}"
            raise table.error(f"{table.title} lacks the column {shown(name)}; {hint}.")
    return {role: name for role, name in roles.items() if name in table.names}


def _hint(table: Table, name: object) -> str:
    """What to do about a column that is not there."""
    return COMMAS if lacks_commas(table.names) else table.nearest(name)


def lacks_commas(names: Sequence[str]) -> bool:
    """Whether names of columns look like a header with another separator."""
    (only,) = names if len(names) == 1 else ("",)
    return ";" in only or "\t" in only


def _find_constraints(table: Table, roles: Mapping[str, str], given: Any) -> tuple[list[str], str]:
    """The columns of constraints, and what to do if one of them is none."""
    if given is None:
        fix = "; say which columns are constraints with constraints=[…]"
        rest = [name for name in table.names if name not in roles.values()]
        if any(not name.strip() or name == "Unnamed: 0" for name in rest):
            raise table.error(
                f"{table.title} has a column without a name, such as pandas writes for its "
                f"index{fix}."
            )
        return rest, fix
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Sequence | np.ndarray):
        raise ParameterError(f"constraints is {shown(given)}, it must be a list of columns.")
    for name in listed:
        if not isinstance(name, str) or name not in table.names:
            raise ParameterError(
                f"constraints has {shown(name)}, which is no column of {table.title}; "
                f"{table.nearest(name)}."
            )
    return [str(name) for name in listed], ""


def _make_words(choices: Choices, states: Any, actions: Any, constraints: list[str]) -> Words:
    """The words that arguments and columns give."""
    sizes = [len(one) if isinstance(one, Sequence | np.ndarray) else 0 for one in (states, actions)]
    unnamed = constraints == [unnamed_constraint(index) for index in range(len(constraints))]
    return make_words(
        (sizes[0], sizes[1], len(constraints)),
        state_names=states,
        action_names=actions,
        constraint_names=None if unnamed else constraints,
        objective_name=choices.objective_name,
        units=choices.units,
    )


# ----------------------------------------------------------------------------------------- writing


def unnamed_constraint(index: int) -> str:
    """The column of a constraint that has no name."""
    return f"constraint_{index}"


def to_columns(content: Content) -> dict[str, np.ndarray]:
    """A row for every step that happened; several runs are pooled, one after the other.

    Args:
        content: a log whose arrays were checked, also one of several runs.

    Raises:
        ModelError: a constraint has the name of another column.
    """
    horizon, num_constraints = content.actions.shape[-1], content.constraint_rewards.shape[-2]
    states = content.states.reshape(-1, horizon + 1)
    actions = content.actions.reshape(-1, horizon)
    constraint_rewards = content.constraint_rewards.reshape(len(actions), num_constraints, horizon)
    names = content.words.constraint_names or tuple(map(unnamed_constraint, range(num_constraints)))
    taken = next((name for name in names if name in ROLES), None)
    if taken is not None:
        raise ModelError(
            f"a constraint has the name {taken!r}, as another column of the table; rename it, or "
            "write a .npz file."
        )
    episode, step = np.nonzero(actions != -1)
    return {
        "episode": episode,
        "step": step,
        "state": states[episode, step],
        "action": actions[episode, step],
        "reward": content.rewards.reshape(-1, horizon)[episode, step],
        NEXT: states[episode, step + 1],
    } | {name: constraint_rewards[episode, index, step] for index, name in enumerate(names)}


def check_content(content: Content) -> None:
    """Refuse names that no file can hold, and states and actions that do not exist.

    A state after the last step may be -1.

    Raises:
        ModelError: there are some.
    """
    _check_names(content.words)
    played = content.actions != -1
    never = np.zeros_like(played[..., :1])
    acted, arrived = (np.concatenate(pair, axis=-1) for pair in ((played, never), (never, played)))
    unseen = arrived & ~acted & (content.states == -1)
    words = content.words
    for name, read, names in (
        ("states", (acted | arrived) & ~unseen, words.state_names),
        ("actions", played, words.action_names),
    ):
        indices = getattr(content, name)
        largest = np.iinfo(np.int64).max if names is None else len(names) - 1
        wrong = read & ((indices < 0) | (indices > largest))
        if wrong.any():
            place = tuple(int(at) for at in np.argwhere(wrong)[0])
            known = "0 or more" if names is None else f"0 … {largest}, as there are names"
            raise ModelError(
                f"the log's {name}{list(place)} is {indices[place]}, but {name} are {known}; "
                "correct it."
            )


def _check_names(words: Words) -> None:
    for name in itertools.chain(*(names or () for names in words[:3])):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ModelError(
                f"the name {shown(name)} holds half of a character, which no file can; rename it."
            ) from None
