"""`cmdpax watch`: the account and the plan of a live agent, from the file that it is saved to."""

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from cmdpax.cli.glimpses import ROWS, plan_lines, policy_table
from cmdpax.cli.output import print_json, results, table
from cmdpax.errors import plain
from cmdpax.live.wording import VERDICTS, account_rows, labelled

_BLOCKS = "▁▂▃▄▅▆▇█"
_UNLIMITED = 10_000  # columns, where no terminal has an end
_WIDTH = 50  # characters of a line of recent returns
_COLOURS = {"met": "green", "missed": "red", "open": "yellow"}


def watch(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file that agent.save wrote.")],
    interval: Annotated[
        float, typer.Option("--interval", min=0.1, help="Seconds between two looks.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once, and end.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the account once, as one JSON object.")
    ] = False,
) -> None:
    """Show an agent's account and plan, and refresh them while it learns; Ctrl-C ends.

    Example: cmdpax watch agent.npz
    """
    if as_json:
        _, saved = _look(path)
        print_json(saved.account.to_dict())
    elif once or not results.is_terminal:
        width = results.width if results.is_terminal else _UNLIMITED
        results.print(view(path, *_look(path)), width=width)
    else:
        _refresh(path, interval)


_Stamp = tuple[int, int]  # the time in nanoseconds, and the inode


def _stamp(path: Path) -> _Stamp:
    """Find what changes when the file is written again; reading finds out that it has gone."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_ino


def _look(path: Path) -> tuple[_Stamp, Any]:
    """Read the file; its stamp is taken before, so that what is written meanwhile is seen next."""
    from cmdpax.live.saving import read

    stamp = _stamp(path)
    return stamp, read(path)


def _refresh(path: Path, interval: float) -> None:
    """Refresh the view in place until Ctrl-C; the file is read again when it was written again."""
    from rich.live import Live

    stamp, saved = _look(path)
    console = Console(highlight=False)  # wraps: what is refreshed must not be cut off
    try:
        with Live(_fitting(console, path, stamp, saved), console=console, auto_refresh=False) as on:
            while True:
                time.sleep(interval)
                if _stamp(path) != stamp:
                    stamp, saved = _look(path)
                on.update(_fitting(console, path, stamp, saved), refresh=True)
    except KeyboardInterrupt:
        return


def _fitting(console: Console, path: Path, stamp: _Stamp, saved: Any) -> Group:
    """Show as much of the policy as the terminal has room for."""
    for rows in range(ROWS, 0, -1):
        found = view(path, stamp, saved, rows)
        if len(console.render_lines(found)) < console.height:
            return found
    return view(path, stamp, saved, 0)


def view(path: Path, stamp: _Stamp, saved: Any, rows: int = ROWS) -> Group:
    """Show the account, the plan with so many rows of its policy, and recent returns."""
    declared, account = saved.declared, saved.account
    sizes = declared.sizes
    written, _ = stamp
    age = max(0.0, time.time() - written / 1e9)
    head = Text(plain(f"{path}: {declared.algorithm}, "), style="bold")
    head.append(f"S={sizes.num_states} A={sizes.num_actions} H={sizes.horizon}, ")
    head.append(f"{account.episodes:,} episodes, {account.steps:,} steps")
    if account.cut_short:
        head.append(f" ({account.cut_short:,} cut short)")
    if saved.episode.states:
        steps = f"{saved.episode.steps} of {sizes.horizon} steps"
        head.append(f", after {steps} of episode {saved.tally.learned + 1}")
    head.append(f", saved {_duration(age)} ago", style="dim")
    listing = _table(account, declared.algorithm)
    parts: list[Any] = [head, listing, *(Text(plain(line)) for line in account.playing)]
    glimpse = saved.episode.glimpse
    if glimpse is not None:  # earlier files show nothing of it
        policy = policy_table(declared, glimpse, rows)
        parts += [*plan_lines(declared, glimpse), *([] if policy is None else [policy])]
    return Group(*parts, *_lines(declared.names, saved.tally.recent))


def _table(account: Any, algorithm: str) -> Table:
    """Make a column for the reward and for every constraint."""
    columns = [("reward", account.objective.unit), *((one.name, one.unit) for one in account)]
    rows = [
        (row.name, row.objective, *map(_verdict if row.name in VERDICTS else str, row.constraints))
        for row in account_rows(account, algorithm)
    ]
    result = table("", ("per episode", *(labelled(*column) for column in columns)), rows)
    result.title = None
    return result


def _verdict(found: str) -> Text:
    return Text(found, style=_COLOURS[found])


def _lines(names: tuple[str, ...], recent: np.ndarray) -> list[Text]:
    """Draw the recent returns, oldest left; each character is the mean of a few episodes."""
    if len(recent) < 2:
        return []
    width = max(len(name) for name in ("reward", *names))
    lines = [Text(f"the last {len(recent)} episodes:", style="dim")]
    for index, name in enumerate(("reward", *names)):
        parts = np.array_split(recent[:, index], min(_WIDTH, len(recent)))
        means = np.array([part.mean() for part in parts])
        low, high = float(means.min()), float(means.max())
        levels = (means - low) / (high - low) if high > low else np.zeros_like(means)
        blocks = "".join(_BLOCKS[round(level * (len(_BLOCKS) - 1))] for level in levels)
        lines.append(Text(plain(f"{name:>{width}} {blocks} {low:.4g} … {high:.4g}")))
    return lines


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
