"""`cmdpax estimate`: a model from logged episodes; and how commands read logs."""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

import cmdpax
from cmdpax.cli.models import AsJson
from cmdpax.cli.output import number, print_facts, print_json, wrote
from cmdpax.errors import FileError, ParameterError, nearest_name, shown
from cmdpax.model.log_table import unnamed_constraint
from cmdpax.model.words import PLAIN, Words
from cmdpax.storage.writing import require_target

LogFile = Annotated[
    Path, typer.Argument(help="Logged episodes as .csv, .parquet or .npz.", metavar="LOG")
]
AtLeastBounds = Annotated[
    list[str] | None,
    typer.Option(
        "--at-least",
        help="NAME=NUMBER: a column, and what its sum must reach; NUMBER where there is one.",
    ),
]
AtMostBounds = Annotated[
    list[str] | None,
    typer.Option("--at-most", help="NAME=NUMBER: a column, and what its sum may reach at most."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="ROLE=NAME: a column with another name, such as state=s."),
]
Horizon = Annotated[
    int | None, typer.Option("--horizon", help="Steps; by default those of the longest episode.")
]
Stationary = Annotated[bool, typer.Option("--stationary", help="The steps share their counts.")]
Initial = Annotated[
    str | None,
    typer.Option("--initial", help="The first state; by default as often as in the log."),
]

_IN_OPTIONS = (
    (r"say columns=\{'(\w+)': …\}", r"say --column \1=NAME"),
    (
        r"say which columns are constraints with constraints=\[…\]",
        "name the constraints with --at-least or --at-most",
    ),
    (r"^columns has ", "--column names "),
    (r"^constraints has ", "--at-least or --at-most names "),
    (r", or list the names with \w+_names", ""),
)
"""How sentences about arguments of `cmdpax.load_log` are told on the command line."""


class Logged(NamedTuple):
    """A log, and what the command line says about its constraints.

    Attributes:
        log: the episodes.
        thresholds: one for each of the log's constraints.
        senses: "at least" or "at most" for each.
    """

    log: cmdpax.Log
    thresholds: list[float]
    senses: list[str]

    @property
    def bounds(self) -> dict[str, Any]:
        """The arguments that `cmdpax.estimate` and its like take besides the log."""
        return {"thresholds": self.thresholds, "senses": self.senses}

    def state(self, given: str | None) -> int | str | None:
        """A state by its name, or by its index where no state has that name."""
        names = self.log.words.state_names or ()
        return int(given) if given and given.isdecimal() and given not in names else given


def read_logged(
    file: Path,
    at_least: list[str] | None,
    at_most: list[str] | None,
    *,
    columns: list[str] | None = None,
    horizon: int | None = None,
    names: Words = PLAIN,
) -> Logged:
    """Read a log, and match the options about constraints with its columns.

    Args:
        file: the log.
        at_least: the values of `--at-least`.
        at_most: the values of `--at-most`.
        columns: the values of `--column`.
        horizon: the value of `--horizon`.
        names: the states and actions that a policy or a model has, in its order.

    Raises:
        FileError: the file cannot be read, or is not a log.
        ParameterError: the options do not go together, or not with the file.
    """
    given = [_parse_bound("at least", text) for text in at_least or []]
    given += [_parse_bound("at most", text) for text in at_most or []]
    named = [bound.name for bound in given if bound.name is not None]
    double = next((name for name in named if named.count(name) > 1), None)
    if double is not None:
        raise ParameterError(f"the constraint {shown(double)} is given twice; give it once.")
    if len(named) < len(given) > 1:
        raise ParameterError(
            "--at-least and --at-most are given several times, once without a name; write "
            "NAME=NUMBER for each."
        )
    roles = dict(_parse_column(text) for text in columns) if columns else None
    said: dict[str, Any] = {"horizon": horizon, "columns": roles}
    if file.suffix.lower() != ".npz":  # which has its own names, and no other columns
        said |= {"constraints": named or None}
        said |= {"state_names": names.state_names, "action_names": names.action_names}
    log = _load(file, said)
    _require_names(file, log, names)
    count = log.constraint_rewards.shape[-2]
    signals = log.words.constraint_names or [unnamed_constraint(index) for index in range(count)]
    bounds = _in_order(file, signals, given)
    return Logged(log, [bound.threshold for bound in bounds], [bound.sense for bound in bounds])


def _load(file: Path, said: dict[str, Any]) -> cmdpax.Log:
    """A log; what is wrong is told in the words of the command line."""
    try:
        return cmdpax.load_log(file, **said)
    except (FileError, ParameterError) as error:
        sentence = str(error)
        for pattern, replacement in _IN_OPTIONS:
            sentence = re.sub(pattern, replacement, sentence)
        raise type(error)(sentence) from None


def _require_names(file: Path, log: cmdpax.Log, names: Words) -> None:
    """Refuse a log whose indices stand for other states or actions."""
    for kind in ("state", "action"):
        found, expected = (getattr(words, f"{kind}_names") for words in (log.words, names))
        if found is not None and expected is not None and found != expected:
            raise ParameterError(
                f"the {kind}s of {file} are {shown(found)}, expected {shown(expected)}; save the "
                "log as a table, whose names are looked up."
            )


class _Bound(NamedTuple):
    """An option about a constraint; without a name it speaks of the only one."""

    sense: str
    name: str | None
    threshold: float


def _parse_bound(sense: str, text: str) -> _Bound:
    name, equals, digits = text.rpartition("=")
    try:
        threshold = float(digits)
    except ValueError:
        threshold = math.nan
    if not math.isfinite(threshold):
        raise ParameterError(
            f"--{sense.replace(' ', '-')} is {shown(text)}; write NAME=NUMBER, such as energy=60."
        )
    return _Bound(sense, name if equals else None, threshold)


def _parse_column(text: str) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    if not equals:
        raise ParameterError(f"--column is {shown(text)}; write ROLE=NAME, such as state=s.")
    return role, name


def _in_order(file: Path, names: Iterable[str], given: list[_Bound]) -> list[_Bound]:
    """The options in the order of the log's constraints, one for each."""
    names = list(names)
    if len(given) == 1 and given[0].name is None and len(names) == 1:
        return given
    if given and not names:
        raise ParameterError(f"{file} has no constraint; leave out --at-least and --at-most.")
    found: dict[str, _Bound] = {}
    for bound in given:
        if bound.name is None:
            raise ParameterError(
                f"{file} has {len(names)} constraints; write NAME=NUMBER for each of them: "
                f"{', '.join(names)}."
            )
        if bound.name not in names:
            hint = nearest_name(bound.name, names)
            raise ParameterError(f"{file} has no constraint {shown(bound.name)}; {hint}.")
        found[bound.name] = bound
    for name in names:
        if name not in found:
            raise ParameterError(
                f"{file} has the constraint {shown(name)}; give its threshold: --at-least or "
                f"--at-most {name}=NUMBER."
            )
    return [found[name] for name in names]


# --------------------------------------------------------------------------------------- estimate


def estimate(
    file: LogFile,
    out: Annotated[Path, typer.Option("--out", help="Write the model: .npz or .json.")],
    at_least: AtLeastBounds = None,
    at_most: AtMostBounds = None,
    column: Columns = None,
    horizon: Horizon = None,
    stationary: Stationary = False,
    initial: Initial = None,
    unvisited: Annotated[
        str,
        typer.Option("--unvisited", help="Where pairs without a visit lead: uniform, absorbing."),
    ] = "uniform",
    as_json: AsJson = False,
) -> None:
    """Estimate a CMDP from logged episodes: frequencies and means.

    Example: cmdpax estimate log.csv --at-most energy=60 --out model.npz
    """
    require_target(out)
    logged = read_logged(file, at_least, at_most, columns=column, horizon=horizon)
    cmdp = cmdpax.estimate(
        logged.log,
        **logged.bounds,
        initial=logged.state(initial),
        stationary=stationary,
        unvisited=unvisited,
    )
    cmdpax.save(cmdp, out)
    wrote(out)
    if as_json:
        print_json(_facts(logged.log, cmdp))
    else:
        print_facts(f"{file}: {cmdp!r}", _rows(logged.log, cmdp))


def _facts(log: cmdpax.Log, cmdp: cmdpax.CMDP) -> dict[str, Any]:
    words, count = cmdp.words, range(cmdp.num_constraints)
    by_step = _visited(log, cmdp)
    return {
        "num_episodes": log.num_episodes,
        "num_steps": int(np.count_nonzero(log.actions != -1)),
        "num_states": cmdp.num_states,
        "num_actions": cmdp.num_actions,
        "horizon": cmdp.horizon,
        "constraints": [words.constraint(index) for index in count],
        "senses": [words.sense(index) for index in count],
        "thresholds": cmdp.bounds,
        "visited_pairs": int(np.count_nonzero(by_step.any(axis=0))),
        "visited_share": float(by_step.any(axis=0).mean()),
        "visited_share_by_step": float(by_step.mean()),
        "fingerprint": cmdp.fingerprint,
    }


def _visited(log: cmdpax.Log, cmdp: cmdpax.CMDP) -> np.ndarray:
    """Which actions were played where, flags `[H, S, A]`."""
    found = np.zeros((cmdp.horizon, cmdp.num_states, cmdp.num_actions), bool)
    *_, steps = played = np.nonzero(log.actions != -1)
    found[steps, log.states[..., :-1][played], log.actions[played]] = True
    return found


def _rows(log: cmdpax.Log, cmdp: cmdpax.CMDP) -> list[tuple[str, str]]:
    facts, words = _facts(log, cmdp), cmdp.words
    pairs = cmdp.num_states * cmdp.num_actions
    rows = [
        ("episodes", str(facts["num_episodes"])),
        ("steps", str(facts["num_steps"])),
        (
            "pairs of a state and an action visited",
            f"{facts['visited_pairs']} of {pairs} ({_percent(facts['visited_share'])})",
        ),
        ("the same at each step", _percent(facts["visited_share_by_step"])),
    ]
    for index, bound in enumerate(cmdp.bounds.tolist()):
        rows.append((words.label(1 + index), f"{words.sense(index)} {number(bound)}"))
    return rows


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
