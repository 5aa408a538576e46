"""A process that runs cases, one after the other, and judges each."""

import faulthandler
import json
import os
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from fuzzing import guards
from fuzzing.cases import OUTSIDE, TEMPORARY, Case, Entry, Input, laid_out
from fuzzing.hostile import PLANTED

STACK, SAID = "stack.txt", "said.txt"
"""Files of a worker: where it was when it hung or crashed, and what libraries said."""
LIBRARY_BYTES = 2**26
"""What cmdpax itself is told not to exceed."""
_LONGEST = 20_000
_TEMPORARY_NAME = re.compile(r"writing-|\.cmdpax-|\.tmp$")


class Settings(NamedTuple):
    """What a worker is told when it starts.

    Attributes:
        module: where `TARGETS` is.
        folder: its own folder.
        cache: for compiled programs, shared by all workers.
        samples: the folder of the valid inputs.
        seconds: that a case may take.
        num_bytes: that a case may use.
    """

    module: str
    folder: Path
    cache: Path
    samples: Path
    seconds: float
    num_bytes: int


class Verdict(NamedTuple):
    """How a case ended.

    Attributes:
        status: "passed", "refused" or "found".
        kind: of a finding, in a word or two.
        place: of a finding, the file and line.
        text: what was said.
        seconds: that it took.
        num_bytes: that it used.
    """

    status: str
    kind: str
    place: str
    text: str
    seconds: float
    num_bytes: int


def work(connection: Connection, settings: Settings) -> None:
    """Run what comes through the connection, until nothing comes."""
    worker = Worker(settings)
    connection.send("ready")
    while True:
        try:
            case, given = connection.recv()
        except EOFError:
            return
        connection.send(worker.judge(case, given))


class Worker:
    """Everything that stays between two cases."""

    def __init__(self, settings: Settings) -> None:
        """Import everything, and begin to listen."""
        self._settings = settings
        settings.folder.mkdir(parents=True, exist_ok=True)
        self._temporary = settings.folder / "case" / TEMPORARY
        _prepare(settings, self._temporary)
        import importlib

        self._targets = importlib.import_module(settings.module).TARGETS
        self._samples: dict[str, list[Input]] = {}
        self._stack = (settings.folder / STACK).open("w+")
        faulthandler.enable(self._stack)
        self._guard = guards.Guard((settings.cache,), frozenset(PLANTED))
        _limit(settings.num_bytes)
        _say_into(settings.folder / SAID)

    def judge(self, case: Case, given: Input | None) -> Verdict:
        """Run one case."""
        from fuzzing.targets.base import generate

        target = self._targets[case.target]
        if given is None:
            given = generate(target, case, self._samples_of(case.target))
        self._stack.seek(0)
        self._stack.truncate()
        faulthandler.dump_traceback_later(0.9 * self._settings.seconds, file=self._stack)
        try:
            return self._run(target, case, given)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _samples_of(self, name: str) -> list[Input]:
        if name not in self._samples:
            self._samples[name] = read_samples(self._settings.samples, name)
        return self._samples[name]

    def _run(self, target: Any, case: Case, given: Input) -> Verdict:
        folder = self._settings.folder / "case"
        with laid_out(given, folder) as inside:
            outside = _contents(folder / OUTSIDE)
            before, start = guards.forget_peak(), time.perf_counter()
            with self._guard.watching((inside, self._temporary), imports=target.imports):
                status, kind, place, text = _outcome(target, inside, given.arguments)
            if case.number < 0 and status == "refused":
                status, kind = "found", "a valid input is refused"
            if status != "found":
                broken = [
                    *self._guard.seen,
                    *self._too_much(guards.peak() - before),
                    *_left(given, inside, self._temporary, target),
                    *([] if outside == _contents(folder / OUTSIDE) else [("touched", "outside")]),
                ]
                if broken:
                    status, (kind, text) = "found", broken[0]
            seconds = time.perf_counter() - start
            return Verdict(status, kind, place, text, seconds, guards.peak() - before)

    def _too_much(self, num_bytes: int) -> list[tuple[str, str]]:
        if num_bytes <= self._settings.num_bytes:
            return []
        return [("too much memory", f"{num_bytes / 2**20:.0f} MiB")]


# ----------------------------------------------------------------------------------------- outcome


def _outcome(target: Any, inside: Path, arguments: dict[str, Any]) -> tuple[str, str, str, str]:
    """How a target ended: status, kind, place and text."""
    from cmdpax.errors import CmdpaxError
    from fuzzing.targets.base import UnsoundError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(inside, arguments)
    except CmdpaxError as error:
        if not _is_sentence(str(error)):
            return ("found", "no sentence", _place(error), _told(error))
        return ("refused", "", "", f"{type(error).__name__}: {error}")
    except UnsoundError as error:
        return ("found", "unsound", str(error)[:60], _told(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return ("found", type(error).__name__, _place(error), _told(error))
    return ("passed", "", "", "")


def _is_sentence(text: str) -> bool:
    """Lines that go on are indented; what a person is to read is no book."""
    first, *others = text.splitlines() or [""]
    ends = first.endswith((".", ":" if others else "."))
    return ends and all(line.startswith("  ") for line in others) and len(text) < _LONGEST


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-20_000:]


def _place(error: BaseException) -> str:
    """The last line of the library, and the last of all."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if f"{os.sep}cmdpax{os.sep}" in frame.filename]
    if not own:
        return ""
    file = own[-1].filename.rpartition(f"{os.sep}cmdpax{os.sep}")[2]
    return f"{file}:{own[-1].lineno}"


def _left(given: Input, inside: Path, temporary: Path, target: Any) -> list[tuple[str, str]]:
    """What lies there and should not, or should and does not."""
    found = [("left behind", str(path)) for path in temporary.iterdir()]
    laid = {entry.path for entry in given.entries}
    # A command line that was changed may name any output.
    named = {word.rpartition("=")[2] for word in given.arguments.get("line", ())}
    for path in sorted(inside.rglob("*")):
        name = os.fspath(path.relative_to(inside))
        wanted = target.outputs.match(name) or name in named
        wanted = wanted or any(one.startswith(f"{name}/") for one in laid)
        if name not in laid and (not wanted or _TEMPORARY_NAME.search(path.name)):
            found.append(("left behind", name))
    return found + [
        ("a foreign file is changed", entry.path)
        for entry in given.entries
        if entry.foreign and not _as_laid(inside, entry)
    ]


def _as_laid(inside: Path, entry: Entry) -> bool:
    path = inside / entry.path
    if entry.kind == "link":
        return path.is_symlink() and os.readlink(path) == entry.leads_to
    if entry.kind == "folder":
        return path.is_dir() and not path.is_symlink()
    if entry.kind == "pipe":
        return path.is_fifo()
    return path.is_file() and not path.is_symlink() and path.read_bytes() == entry.content


def _contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


# ----------------------------------------------------------------------------------------- process


def _prepare(settings: Settings, temporary: Path) -> None:
    """Before anything is imported: where caches and temporary files go, and what can be planted."""
    planted = settings.folder / "planted"
    planted.mkdir(exist_ok=True)
    (planted / f"{PLANTED[0]}.py").write_text("def f(*given): return None\nfly = f\n")
    sys.path.append(str(planted))
    sys.dont_write_bytecode = True  # beside a module that a specification may import
    os.environ |= {
        "MPLCONFIGDIR": str(settings.cache / "matplotlib"),
        "CMDPAX_MAX_BYTES": str(LIBRARY_BYTES),
        "TMPDIR": str(temporary),
        "COLUMNS": "200",
    }
    tempfile.tempdir = str(temporary)
    cache_programs(settings.cache)


def cache_programs(folder: Path) -> None:
    """Compile each program once for all processes."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"XDG_CACHE_HOME": str(folder), "JAX_PLATFORMS": "cpu"}
    from cmdpax.jax_context import cache_compilation

    cache_compilation()


def _say_into(path: Path) -> None:
    """Keep what libraries print past Python, such as Rust's panics, from the terminal."""
    with path.open("wb") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())


def _limit(num_bytes: int) -> None:
    """The machine is spared, whatever a case asks for."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    counted = Path("/proc/self/statm")
    if counted.exists():  # on Linux
        used = int(counted.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 4 * num_bytes, resource.RLIM_INFINITY))


# ----------------------------------------------------------------------------------------- samples


def write_samples(folder: Path, name: str, samples: list[Input]) -> None:
    """Keep the valid inputs of a target for all workers."""
    content = [
        {"entries": [entry.to_dict() for entry in given.entries], "arguments": given.arguments}
        for given in samples
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content))


def read_samples(folder: Path, name: str) -> list[Input]:
    """What `write_samples` kept."""
    return [
        Input(tuple(Entry.from_dict(entry) for entry in given["entries"]), given["arguments"])
        for given in json.loads((folder / f"{name}.json").read_text())
    ]
