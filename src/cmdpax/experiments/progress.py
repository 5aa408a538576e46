"""The progress of a whole sweep: a bar on a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

_LINES = 100
_SECONDS = 60.0
_WIDE = 130  # columns; fewer have no room for a bar


class SweepProgress(NamedTuple):
    """How far a sweep has come."""

    runs: int  # those that are on disk
    total_runs: int
    episodes: int  # those of all runs together
    total_episodes: int
    batch: str  # what is running, for people; "done" when a batch is on disk
    cluster: str = ""  # workers and batches, for people
    seconds_left: float | None = None  # roughly, if a cluster runs it


Reporter = Callable[[SweepProgress], None]


@contextmanager
def shown(console: Console | None = None) -> Iterator[Callable[[str], Reporter]]:
    """A function that makes, for the name of a sweep, the function that it reports to."""
    console = console or Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield lambda name: _lines(console, name)
        return
    wide = console.width >= _WIDE
    columns = (
        TextColumn("{task.description}"),
        TextColumn("{task.fields[batch]:<24}"),
        *((BarColumn(),) if wide else ()),
        TextColumn("{task.fields[runs]}"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as display:
        yield lambda name: _bar(display, name, wide)


def _bar(display: Progress, name: str, wide: bool) -> Reporter:
    line = display.add_task(name, total=None, batch="starting", runs="", rate="", left="")
    pace = _Pace()

    def report(stand: SweepProgress) -> None:
        display.update(
            line,
            completed=stand.episodes,
            total=stand.total_episodes,
            batch=(stand.cluster if wide else _short(stand.cluster)) or stand.batch,
            runs=f"{stand.runs}/{stand.total_runs} runs",
            rate=pace.rate(stand),
            left=pace.left(stand),
        )

    return report


def _lines(console: Console, name: str) -> Reporter:
    """Print about a hundred lines as runs are done, or one per minute if that is more."""
    pace, told, when = _Pace(), -1, 0.0

    def report(stand: SweepProgress) -> None:
        nonlocal told, when
        now = time.perf_counter()
        worth = stand.runs - told >= stand.total_runs / _LINES or now - when >= _SECONDS
        last = stand.runs == stand.total_runs
        rate = pace.rate(stand)
        if stand.batch != "done" or stand.runs == told or not (worth or last):
            return
        told, when = stand.runs, now
        text = f"{name}: {stand.runs} of {stand.total_runs} runs done, {pace.seconds:.1f} s"
        if stand.cluster:
            left = f", {pace.left(stand)}" if stand.seconds_left is not None else ""
            text += f", {rate}{left}; {stand.cluster}"
        console.print(text)

    return report


def _short(cluster: str) -> str:
    """Shorten to, for example: 2 CPU workers, 4/20 batches, 1 failed."""
    parts = [part for part in cluster.split(", ") if not part.endswith(" running")]
    return ", ".join(part.replace(" of ", "/").removesuffix(" done") for part in parts)


class _Pace:
    """The speed of a sweep since its start."""

    def __init__(self) -> None:
        self._start, self._first = time.perf_counter(), -1

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def rate(self, stand: SweepProgress) -> str:
        """The speed of all workers together."""
        self._first = stand.episodes if self._first < 0 else self._first
        each = (stand.episodes - self._first) / max(self.seconds, 1e-9)
        return f"{each:,.0f} episodes/s"

    def left(self, stand: SweepProgress) -> str:
        """The time left, as the cluster says or at the speed so far."""
        seconds = stand.seconds_left
        if seconds is None:
            done = stand.episodes - self._first
            missing = stand.total_episodes - stand.episodes
            if done <= 0:
                return ""
            seconds = self.seconds * missing / done
        return f"about {_duration(seconds)} left"


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
