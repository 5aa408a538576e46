"""`python -m fuzzing`: run, or replay failures that were kept."""

import argparse
import importlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzzing.cases import Case, Failure, keep, kept
from fuzzing.driver import Defects, Fuzzing, table
from fuzzing.targets.base import Target, generate
from fuzzing.worker import Settings, cache_programs, read_samples, write_samples


def main() -> int:
    """Parse, run, and tell; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=600.0, help="after the valid inputs")
    add("--cases", type=int, help="of every target, at most")
    add("--seed", type=int, help="of the inputs; a new one by default")
    add("--workers", type=int, default=os.cpu_count(), help="processes")
    add("--targets", nargs="+", metavar="TARGET", help="some of them; all by default")
    add("--module", default="fuzzing.targets", help="where TARGETS is")
    add("--folder", type=Path, default=Path("build/fuzz"), help="where failures are kept")
    add("--case-seconds", type=float, default=30.0, help="that a case may take")
    add("--case-mebibytes", type=int, default=768, help="that a case may use")
    commands = parser.add_subparsers(dest="command")
    again = commands.add_parser("replay", help="run failures that were kept again")
    again.add_argument("files", type=Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.command == "replay":
        return max(replay(arguments, file) for file in arguments.files)
    if arguments.seed is None:
        arguments.seed = int.from_bytes(os.urandom(4))
    return fuzz(arguments)


def fuzz(arguments: argparse.Namespace) -> int:
    """Run for some time, and tell what was found."""
    start = time.monotonic()
    cache_programs(arguments.folder.resolve() / "cache")
    known: dict[str, Target] = importlib.import_module(arguments.module).TARGETS
    targets = {name: known[name] for name in arguments.targets or known}
    print(f"seed {arguments.seed}, {arguments.workers} workers: {', '.join(targets)}", flush=True)
    samples = arguments.folder / "samples"
    valid = []
    for name, target in targets.items():
        made = target.samples()
        write_samples(samples, name, made)
        valid += [Case(name, arguments.seed, -1 - index) for index in range(len(made))]

    def keep_it(failure: Failure) -> Path:
        case = failure.case
        given = generate(targets[case.target], case, read_samples(samples, case.target))
        path = keep(failure, given, arguments.folder)
        print(f"{failure.kind} in {case.target}, {failure.place}: {path}", flush=True)
        return path

    defects = Defects(keep_it)
    weights = {name: target.weight for name, target in targets.items()}
    with _workers(arguments, arguments.workers, weights, arguments.seed) as fuzzing:
        fuzzing.run(valid, defects.add, arguments.seconds, arguments.cases)
        print(f"\nseed {arguments.seed}, {time.monotonic() - start:.0f} s")
        print(table(fuzzing.tallies))
    _tell(defects, arguments)
    return 1 if defects.counts else 0


def _tell(defects: Defects, arguments: argparse.Namespace) -> None:
    other = f" --module {arguments.module}" if arguments.module != "fuzzing.targets" else ""
    for defect, count in defects.counts.most_common():
        target, kind, place = defect
        print(f"\n{count} × {kind} in {target} at {place}")
        print("  " + "\n  ".join(defects.texts[defect].strip().splitlines()[-6:]))
        for path in defects.files[defect]:
            print(f"  python -m fuzzing{other} replay {path}")


def replay(arguments: argparse.Namespace, file: Path) -> int:
    """Run a failure again; 1 if it still is one."""
    failure, given = kept(file)
    case = failure.case
    with _workers(arguments, 1, {case.target: 1.0}, case.seed) as fuzzing:
        verdict = fuzzing.replay(case, given)
    print(f"{file}: {verdict.status} {verdict.kind} {verdict.place}\n{verdict.text}".rstrip())
    return 1 if verdict.status == "found" else 0


@contextmanager
def _workers(
    arguments: Any, number: int, weights: dict[str, float], seed: int
) -> Iterator[Fuzzing]:
    """Workers in a folder of their own, and afterwards none of it."""
    folder = Path(tempfile.mkdtemp(prefix="cmdpax-fuzzing-"))
    kept_in = arguments.folder.resolve()
    settings = [
        Settings(
            arguments.module,
            folder / f"worker-{index}",
            kept_in / "cache",
            kept_in / "samples",
            arguments.case_seconds,
            arguments.case_mebibytes * 2**20,
        )
        for index in range(number)
    ]
    fuzzing = Fuzzing(settings, weights, seed)
    try:
        yield fuzzing
    finally:
        fuzzing.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
