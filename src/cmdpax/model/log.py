"""Episodes as they were observed."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdpax.checks import require_count, require_share
from cmdpax.errors import FileError, ModelError, ParameterError
from cmdpax.model import log_files
from cmdpax.model.arrays import as_floats
from cmdpax.model.log_table import Choices, Content, check_content, read_table
from cmdpax.model.validation import first_index
from cmdpax.model.words import PLAIN, Words

if TYPE_CHECKING:
    import polars


class _Arrays(NamedTuple):
    """The arrays of a log: what JAX sees, and what unpacking gives."""

    states: Any
    actions: Any
    rewards: Any
    constraint_rewards: Any


class Log(_Arrays):
    """Logged episodes, `[K, …]`; several runs have another axis in front, one episode has none.

    An episode that was cut short has the action -1 at every step that did not happen. The state
    after the last step of an episode may be -1, too: it was not observed.

    Attributes:
        states: `[K, H+1]`.
        actions: `[K, H]`.
        rewards: `[K, H]`, as observed.
        constraint_rewards: `[K, I, H]`, as observed.
        words: names and units, where the log has any; `cmdpax.estimate` passes them to the model.
            JAX's transformations and `_replace` lose them.
    """

    words: Words = PLAIN

    def __new__(
        cls,
        states: Any,
        actions: Any,
        rewards: Any,
        constraint_rewards: Any,
        *,
        words: Words = PLAIN,
    ) -> "Log":
        """Keep the arrays as they are; whatever reads a log checks it."""
        log = super().__new__(cls, states, actions, rewards, constraint_rewards)
        if words != PLAIN:
            log.words = words
        return log

    def __repr__(self) -> str:
        """The sizes: K, H and I; of the names S and A, too; and the runs, if there are several."""
        *runs, count, horizon = (1, 1, *np.shape(self.actions))[-max(2, np.ndim(self.actions)) :]
        num_constraints = (0, 0, *np.shape(self.constraint_rewards))[-2]
        names = (("S", self.words.state_names), ("A", self.words.action_names))
        sizes = {"runs": runs[0]} if runs else {}
        sizes |= {"K": count, "H": horizon, "I": num_constraints}
        sizes |= {symbol: len(known) for symbol, known in names if known is not None}
        return f"Log({', '.join(f'{name}={size}' for name, size in sizes.items())})"

    @property
    def num_episodes(self) -> int:
        """The number of episodes, of all runs together."""
        return int(np.prod(np.shape(self.actions)[:-1]))

    def run(self, index: int) -> "Log":
        """The log of one of several runs."""
        return Log(*(array[index] for array in self), words=self.words)

    def split(self, share: float = 0.5, *, seed: int | None = None) -> tuple["Log", "Log"]:
        """Two logs of different episodes: one to plan with, and one to judge the plan by.

        Args:
            share: the share of the episodes in the first log. Both logs have at least one.
            seed: the seed of the shuffle that decides which episodes go where; None keeps their
                order, so that the first log holds the first episodes. Runs are pooled.

        Raises:
            ModelError: the arrays are not a log, or there are fewer than two episodes.

        Examples:
            >>> import cmdpax
            >>> log = cmdpax.learn(cmdpax.environments.make("ring"), num_episodes=10, log=True).log
            >>> [part.num_episodes for part in log.split(0.7, seed=1)]
            [7, 3]
        """
        share, log = require_share("share", share), read_log(self)
        count, horizon = log.num_episodes, log.actions.shape[-1]
        if count < 2:
            raise ModelError("the log has one episode; to split it, at least two are needed.")
        shapes = ((horizon + 1,), (horizon,), (horizon,), log.constraint_rewards.shape[-2:])
        pooled = [array.reshape(count, *shape) for array, shape in zip(log, shapes, strict=True)]
        order = np.arange(count)
        if seed is not None:
            order = np.random.default_rng(require_count("seed", seed, 0)).permutation(count)
        first = min(max(round(share * count), 1), count - 1)
        return (
            Log(*(array[order[:first]] for array in pooled), words=self.words),
            Log(*(array[order[first:]] for array in pooled), words=self.words),
        )

    def frame(self) -> "polars.DataFrame":
        """A polars frame with a row for every step that happened.

        The columns are episode and step (both from 0), state, action, reward, next_state (null
        where it was not observed), and one for each constraint, by its name or as `constraint_0`
        and so on. States and actions are names where the log has names, in columns of the type
        Enum, otherwise indices. Several runs are pooled, one after the other.

        Raises:
            ModelError: the arrays are not a log.
        """
        return log_files.to_frame(_content(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a `.csv`, `.parquet` or `.npz` file; an existing file is replaced whole.

        `cmdpax.load_log` reads it back with exactly the same numbers. A `.npz` holds the whole log.
        The others hold the rows of `frame`: several runs are pooled, and the units, the name of the
        objective and steps that no episode reached are lost. A `.csv` also loses the order of names
        and those that never occur; give `load_log` the names, and the indices are the same.

        Raises:
            ModelError: the arrays are not a log, or a `.csv` would confuse a name with an index.
            FileError: the file cannot be written.
        """
        log_files.write(Path(path), _content(self))


def load_log(
    source: Any,
    *,
    constraints: Any = None,
    horizon: int | None = None,
    state_names: Any = None,
    action_names: Any = None,
    columns: Any = None,
    objective_name: str | None = None,
    units: Any = None,
) -> Log:
    """Read logged episodes from a table in long form, one row per step, or from `Log.save`.

    The columns are `episode`, `step`, `state`, `action`, `reward`, one for each constraint, and
    optionally `next_state`. The rows of an episode stand together, with steps that count from 0 or
    from 1. The state after the last step is that row's `next_state`, or stands in one more row
    whose action, reward and constraints are empty; without either it is -1, not observed. An
    episode that is shorter than the horizon was cut short.

    States and actions are whole numbers, which are indices, or texts, which are names. The names
    are in the order in which they are given here, or else in which the type of the column lists
    them (Enum of polars, category of pandas), or else sorted. In a `.csv`, where numbers are texts,
    all cells are names if one of them is among the names that are given.

    Args:
        source: the path of a `.csv`, `.parquet` or `.npz` file, a frame of polars or pandas, or a
            mapping of columns.
        constraints: the columns of constraints; None: all columns that mean nothing else.
        horizon: H; None: the steps of the longest episode.
        state_names: all names of states, in order.
        action_names: all names of actions, in order.
        columns: the columns that have other names, such as `{"state": "s", "episode": "run"}`.
        objective_name: what the rewards sum to.
        units: the units of the objective and of the constraints, as for `cmdpax.CMDP`.

    Raises:
        FileError: the file cannot be read, or is not a log; the sentence names the line.
        ModelError: the same for other tables; rows count from 0.
        ParameterError: an argument that does not fit the table.

    Examples:
        >>> import cmdpax
        >>> log = cmdpax.load_log(
        ...     {
        ...         "episode": [7, 7, 8],
        ...         "step": [0, 1, 0],
        ...         "state": ["cold", "warm", "cold"],
        ...         "action": ["low", "off", "low"],
        ...         "reward": [3.0, 2.0, 3.0],
        ...         "energy": [6, 0, 6],
        ...     }
        ... )
        >>> log.states.tolist(), log.actions.tolist()  # no next_state: nobody saw the last ones
        ([[0, 1, -1], [0, -1, -1]], [[0, 1], [0, -1]])
        >>> log.words.state_names, log.words.constraint_names
        (('cold', 'warm'), ('energy',))
    """
    choices = Choices(
        constraints, horizon, columns, state_names, action_names, objective_name, units
    )
    if isinstance(source, str | os.PathLike) and log_files.ending_of(Path(source)) == ".npz":
        return _load_archive(Path(source), choices)
    *arrays, found = read_table(log_files.open_table(source), choices)
    return Log(*arrays, words=found)


def _load_archive(path: Path, choices: Choices) -> Log:
    given = next((name for name, one in choices._asdict().items() if one is not None), None)
    if given is not None:
        raise ParameterError(f"{given} is given, but {path} holds a whole log; leave it out.")
    *arrays, words = log_files.read_archive(path)
    try:
        *arrays, _ = _content(Log(*arrays, words=words))
    except ModelError as error:
        raise FileError(f"{path}: {error}") from None
    return Log(*arrays, words=words)


# ------------------------------------------------------------------------------------------ checks


def read_log(log: Any) -> Log:
    """The four arrays, of shapes that fit; indices are integers, observations are floats."""
    for name in Log._fields:
        if not hasattr(log, name):
            raise ParameterError(
                f"the log is a {type(log).__name__} without {name}; give a cmdpax.Log, which "
                "cmdpax.load_log reads from a table, and history.log is after learn(…, log=True)."
            )
    arrays = {name: as_floats(f"the log's {name}", getattr(log, name)) for name in Log._fields}
    *lead, horizon = arrays["actions"].shape or (0,)
    if arrays["constraint_rewards"].shape == (0,):  # as a CMDP without constraints has it
        arrays["constraint_rewards"] = np.zeros((*lead, 0, horizon))
    _check_shapes(arrays, lead, horizon)
    for name in ("states", "actions"):
        given = np.asarray(getattr(log, name))
        if given.dtype.kind not in "iu":
            raise ModelError(
                f"the log's {name} must be integers, got {given.dtype}; use astype(int)."
            )
        arrays[name] = given.astype(np.int64)
    words = getattr(log, "words", PLAIN)  # other types than `Log` may use the name as they like
    return Log(**arrays, words=words if isinstance(words, Words) else PLAIN)


def _check_shapes(arrays: dict[str, np.ndarray], lead: list[int], horizon: int) -> None:
    if len(lead) not in (1, 2) or 0 in (*lead, horizon):
        raise ModelError(
            f"the log's actions has shape {arrays['actions'].shape}, expected (K, H), or (R, K, H) "
            "of several runs: at least one episode and one step."
        )
    num_constraints = (0, 0, *arrays["constraint_rewards"].shape)[-2]
    expected = {
        "states": (*lead, horizon + 1),
        "rewards": (*lead, horizon),
        "constraint_rewards": (*lead, num_constraints, horizon),
    }
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise ModelError(
                f"the log's {name} has shape {arrays[name].shape}, expected {shape}, since its "
                f"actions has {arrays['actions'].shape}."
            )


def _content(given: Log) -> Content:
    """What a table or a file holds of a log, checked."""
    log = read_log(given)
    played = log.actions != -1
    check_played(played)
    require_observed(log, played)
    content = Content(*log, words=log.words)
    check_content(content)
    return content


def check_played(played: np.ndarray) -> None:
    """Require that steps that did not happen come last, and that some step happened."""
    if not played.any():
        raise ModelError("the log has no step: every action is -1.")
    resumed = played[..., 1:] & ~played[..., :-1]
    if resumed.any():
        *episode, step = first_index(resumed)
        raise ModelError(
            f"the log's actions{[*episode, step]} is -1, but the episode goes on after it; -1 "
            "stands for all steps from the first one on that did not happen."
        )


def reached(played: np.ndarray) -> np.ndarray:
    """Which states were reached: the first of an episode that has a step, and each next one."""
    return np.concatenate([played[..., :1], played], axis=-1)


def unobserved(states: np.ndarray, played: np.ndarray) -> np.ndarray:
    """Which final states of episodes are -1, `[…, H+1]`: nobody saw where the last step led."""
    acted = np.concatenate([played, np.zeros_like(played[..., :1])], axis=-1)
    return reached(played) & ~acted & (states == -1)


def require_final_states(states: np.ndarray, played: np.ndarray) -> None:
    """Refuse a log that does not say where the last step of every episode led."""
    missing = unobserved(states, played)
    if missing.any():
        raise ModelError(
            f"the log's states{first_index(missing)} is -1: the state after the last step was not "
            "observed, but is needed here; add it, or leave that step out."
        )


def require_observed(log: Log, played: np.ndarray) -> None:
    """Refuse steps that happened and whose observations are not finite numbers."""
    for name in ("rewards", "constraint_rewards"):
        array = getattr(log, name)
        read = played if name == "rewards" else played[..., None, :]
        wrong = read & ~np.isfinite(array)
        if wrong.any():
            index = first_index(wrong)
            raise ModelError(
                f"the log's {name}{index} is {array[tuple(index)]}; every observation must be a "
                "finite number."
            )
