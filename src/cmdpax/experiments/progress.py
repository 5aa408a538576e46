"""One progress display over a whole sweep: a bar on a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class Stand(NamedTuple):
    """Where a sweep stands."""

    runs: int  # done, and on disk
    total_runs: int
    episodes: int  # of all runs together
    total_episodes: int
    batch: str  # what is running, for people


Reporter = Callable[[Stand], None]


@contextmanager
def shown(console: Console | None = None) -> Iterator[Callable[[str], Reporter]]:
    """For every sweep by its name the function that it reports to."""
    console = console or Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield lambda name: _lines(console, name)
        return
    columns = (
        TextColumn("{task.description}"),
        TextColumn("{task.fields[batch]:<24}"),
        BarColumn(),
        TextColumn("{task.fields[runs]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as display:
        yield lambda name: _bar(display, name)


def _bar(display: Progress, name: str) -> Reporter:
    line = display.add_task(name, total=None, batch="compiling", runs="", rate="")
    start, first = time.perf_counter(), -1

    def report(stand: Stand) -> None:
        nonlocal first
        first = stand.episodes if first < 0 else first
        seconds = max(time.perf_counter() - start, 1e-9)
        display.update(
            line,
            completed=stand.episodes,
            total=stand.total_episodes,
            batch=stand.batch,
            runs=f"{stand.runs} of {stand.total_runs} runs",
            rate=f"{(stand.episodes - first) / seconds:,.0f} episodes/s",
        )

    return report


def _lines(console: Console, name: str) -> Reporter:
    """A line whenever runs are done, and on disk."""
    start, told = time.perf_counter(), -1

    def report(stand: Stand) -> None:
        nonlocal told
        if stand.batch == "done" and stand.runs != told:
            told = stand.runs
            seconds = time.perf_counter() - start
            console.print(f"{name}: {stand.runs} of {stand.total_runs} runs done, {seconds:.1f} s")

    return report
