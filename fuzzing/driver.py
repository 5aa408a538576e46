"""Cases handed to workers, their time measured, and what they find written down."""

import multiprocessing
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from fuzzing.cases import Case, Failure, Input
from fuzzing.worker import SAID, STACK, Settings, Verdict, work

_STARTING = 300.0
_COMPILING = 5.0
"""How much longer the first, valid cases may take: they compile programs."""
_BLOCKED = 4.0
"""How much longer a case may take that does not use the processor."""
_SAID = 2000
"""Characters of a worker's last words."""
Found = Callable[[Failure], None]


class Tally:
    """What was run of a target."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.statuses: Counter[str] = Counter()
        self.seconds = self.slowest = 0.0
        self.slowest_number = 0
        self.num_bytes = 0
        self.next_number = 0

    def count(self, case: Case, verdict: Verdict) -> None:
        """Add a case."""
        self.statuses[verdict.status] += 1
        if case.number < 0:
            return  # programs were compiled
        self.seconds += verdict.seconds
        if verdict.seconds > self.slowest:
            self.slowest, self.slowest_number = verdict.seconds, case.number
        self.num_bytes = max(self.num_bytes, verdict.num_bytes)


class _Busy(NamedTuple):
    """A case that runs, since when, and what it may take."""

    case: Case
    begun: float
    used: float  # seconds of the processor before it
    limit: float


class Crewman:
    """A worker, from the driver's side: replaced when it dies or takes too long."""

    def __init__(self, settings: Settings) -> None:
        """Start the process."""
        self.settings = settings
        self.busy: _Busy | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.settings), daemon=True)
        self.process.start()
        theirs.close()
        self.ready = False
        self.started = time.monotonic()

    def give(self, case: Case, given: Input | None, patience: float = 1.0) -> None:
        """Let it run a case."""
        limit = patience * self.settings.seconds
        self.busy = _Busy(case, time.monotonic(), self._used(), limit)
        self.connection.send((case, given))

    def answer(self) -> Verdict | None:
        """The verdict that has come, if it is one; a worker that died or hangs is replaced."""
        try:
            if self.connection.poll():
                return self._received(self.connection.recv())
        except (EOFError, OSError):
            return self._replaced("crashed")
        return self._replaced("hung") if self._is_late() else None

    def _is_late(self) -> bool:
        """By the processor's time, since others may use it too; by the clock if nothing happens."""
        if self.busy is None:
            return not self.ready and time.monotonic() - self.started > _STARTING
        _, begun, used, limit = self.busy
        elapsed = time.monotonic() - begun
        return elapsed > limit and (elapsed > _BLOCKED * limit or self._used() - used > limit)

    def _used(self) -> float:
        """Seconds of the processor that the process used."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _received(self, message: Any) -> Verdict | None:
        if isinstance(message, Verdict):
            self.busy = None
            return message
        self.ready = True
        return None

    def _replaced(self, kind: str) -> Verdict:
        """End the process, whose last words are in its file, and start another one."""
        if self.busy is None:
            raise RuntimeError(f"a worker {kind} before its first case")
        seconds = time.monotonic() - self.busy.begun
        self.end()
        stack = (self.settings.folder / STACK).read_text().splitlines()
        said = (self.settings.folder / SAID).read_text(errors="replace")[-_SAID:]
        text = f"{said}\nthe worker {kind}, exit code {self.process.exitcode}"
        self.busy = None
        self._start()
        return Verdict("found", kind, _place(stack), "\n".join([*stack[::-1], text]), seconds, 0)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _place(stack: list[str]) -> str:
    """The innermost line of the library in what faulthandler wrote, which begins with that."""
    for line in stack:
        if line.startswith("  File") and "/cmdpax/" in line:
            file, _, rest = line.partition('"')[2].partition('"')
            return f"{file.rpartition('/cmdpax/')[2]}:{rest.split()[2]}"
    return ""


class Fuzzing:
    """Workers, and the tallies of the targets."""

    def __init__(self, settings: list[Settings], weights: dict[str, float], seed: int) -> None:
        """Start the workers."""
        self.tallies = {name: Tally() for name in weights}
        self.seed = seed
        self._weights = weights
        self._crew = [Crewman(one) for one in settings]

    def run(
        self, valid: list[Case], found: Found, seconds: float, num_cases: int | None = None
    ) -> None:
        """The valid cases, then case after case.

        Args:
            valid: inputs that must be accepted.
            found: called with every failure.
            seconds: after which it ends, counted from the last valid case on.
            num_cases: of every target, after which it ends too.
        """
        waiting = list(valid)
        end = time.monotonic() + seconds
        for one in self._answers(found):
            if time.monotonic() > end:
                break
            if waiting:
                one.give(waiting.pop(0), None, patience=_COMPILING)
                end = time.monotonic() + seconds
            elif case := self._next(num_cases):
                one.give(case, None)
            elif not any(other.busy for other in self._crew):
                break

    def replay(self, case: Case, given: Input) -> Verdict:
        """Run one input."""
        one = self._crew[0]
        while not one.ready:
            one.answer()
            wait([one.connection], timeout=0.1)
        one.give(case, given, patience=_COMPILING)
        while (verdict := one.answer()) is None:
            wait([one.connection], timeout=0.1)
        return verdict

    def _next(self, num_cases: int | None) -> Case | None:
        """Of the target that had the least of its share of the time."""

        def spent(name: str) -> float:
            running = [one.busy for one in self._crew if one.busy and one.busy.case.target == name]
            begun = sum(time.monotonic() - busy.begun for busy in running)
            return (self.tallies[name].seconds + begun) / self._weights[name]

        open_ones = [
            name
            for name in self._weights
            if num_cases is None or self.tallies[name].next_number < num_cases
        ]
        if not open_ones:
            return None
        name = min(open_ones, key=spent)
        tally = self.tallies[name]
        tally.next_number += 1
        return Case(name, self.seed, tally.next_number - 1)

    def _answers(self, found: Found) -> Iterator[Crewman]:
        """Workers that have nothing to do, each time that there is one."""
        while True:
            for one in self._crew:
                case = one.busy.case if one.busy else None
                verdict = one.answer()
                if verdict is not None and case is not None:
                    self.tallies[case.target].count(case, verdict)
                    if verdict.status == "found":
                        found(Failure(case, verdict.kind, verdict.place, verdict.text))
                if one.ready and one.busy is None:
                    yield one
            connections: list[Connection] = [one.connection for one in self._crew]
            wait(connections, timeout=0.1)

    def end(self) -> None:
        """End the workers."""
        for one in self._crew:
            one.end()


class Defects:
    """Failures by what they most likely have in common; the first few of each are kept."""

    def __init__(self, keep: Callable[[Failure], Path], most: int = 3) -> None:
        """With how a failure is kept."""
        self._keep, self._most = keep, most
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.files: dict[tuple[str, str, str], list[Path]] = defaultdict(list)
        self.texts: dict[tuple[str, str, str], str] = {}

    def add(self, failure: Failure) -> None:
        """Count a failure."""
        self.counts[failure.defect] += 1
        if len(self.files[failure.defect]) < self._most:
            self.files[failure.defect].append(self._keep(failure))
            self.texts.setdefault(failure.defect, failure.text)


def table(tallies: dict[str, Tally]) -> str:
    """What was run, a line per target; the slowest case has its number."""
    lines = [
        f"{'target':16}{'cases':>9}{'passed':>9}{'refused':>9}{'found':>7}{'cases/s':>9}"
        f"{'MiB':>6}{'slowest':>10}"
    ]
    for name, tally in tallies.items():
        passed, refused, found = (tally.statuses[one] for one in ("passed", "refused", "found"))
        cases = passed + refused + found
        rate = cases / tally.seconds if tally.seconds else 0.0
        lines.append(
            f"{name:16}{cases:9,}{passed:9,}{refused:9,}{found:7,}{rate:9,.1f}"
            f"{tally.num_bytes / 2**20:6.0f}{tally.slowest:9.1f}s (case {tally.slowest_number})"
        )
    return "\n".join(lines)
