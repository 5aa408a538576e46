"""`python -m fuzzing`: run, or replay a failure that was kept."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fuzzing.cases import Case, Failure, keep, kept
from fuzzing.driver import Defects, Fuzzing, table
from fuzzing.targets import TARGETS
from fuzzing.targets.base import generate
from fuzzing.worker import Settings, read_samples, write_samples

KEPT = Path("build/fuzz")
SECONDS_PER_CASE, BYTES_PER_CASE = 30.0, 768 * 2**20


def main() -> int:
    """Parse, run, and tell; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of everything")
    parser.add_argument("--seed", type=int, help="of the inputs; a new one by default")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    commands = parser.add_subparsers(dest="command")
    again = commands.add_parser("replay", help="run failures that were kept again")
    again.add_argument("files", type=Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.command == "replay":
        return max(replay(file) for file in arguments.files)
    seed = int.from_bytes(os.urandom(4)) if arguments.seed is None else arguments.seed
    return fuzz(arguments.targets, arguments.seconds, seed, arguments.workers)


def fuzz(targets: list[str], seconds: float, seed: int, num_workers: int) -> int:
    """Run for some seconds, and tell what was found."""
    start = time.monotonic()
    print(f"seed {seed}, {num_workers} workers, {', '.join(targets)}", flush=True)
    samples = KEPT / "samples"
    warm_up = []
    for name in targets:
        made = TARGETS[name].samples()
        write_samples(samples, name, made)
        warm_up += [Case(name, seed, -1 - index) for index in range(len(made))]

    def keep_it(failure: Failure) -> Path:
        target, case = TARGETS[failure.case.target], failure.case
        given = generate(target, case, read_samples(samples, case.target))
        path = keep(failure, given, KEPT)
        print(f"{failure.kind} in {case.target}, {failure.place}: {path}", flush=True)
        return path

    defects = Defects(keep_it)
    weights = {name: TARGETS[name].weight for name in targets}
    with_workers(
        num_workers,
        weights,
        seed,
        lambda fuzzing: _run(fuzzing, warm_up, seconds - (time.monotonic() - start), defects),
    )
    return 1 if defects.counts else 0


def _run(fuzzing: Fuzzing, warm_up: list[Case], seconds: float, defects: Defects) -> None:
    begun = time.monotonic()
    fuzzing.run(warm_up, seconds, defects.add)
    print(f"\nseed {fuzzing.seed}, {time.monotonic() - begun:.0f} s")
    print(table(fuzzing.tallies))
    for defect, count in defects.counts.most_common():
        target, kind, place = defect
        print(f"\n{count} × {kind} in {target} at {place}")
        print("  " + "\n  ".join(defects.texts[defect].strip().splitlines()[-6:]))
        for path in defects.files[defect]:
            print(f"  python -m fuzzing replay {path}")


def replay(file: Path) -> int:
    """Run a failure again; 1 if it still is one."""
    failure, given = kept(file)
    verdicts = []
    with_workers(
        1,
        {failure.case.target: 1.0},
        failure.case.seed,
        lambda fuzzing: verdicts.append(fuzzing.replay(failure.case, given)),
    )
    (verdict,) = verdicts
    print(f"{file}: {verdict.status} {verdict.kind} {verdict.place}\n{verdict.text}")
    return 1 if verdict.status == "found" else 0


def with_workers(
    number: int, weights: dict[str, float], seed: int, use: Callable[[Fuzzing], None]
) -> None:
    """Workers in a folder of their own, and afterwards none of it."""
    folder = Path(tempfile.mkdtemp(prefix="cmdpax-fuzzing-"))
    settings = [
        Settings(
            "fuzzing.targets",
            folder / f"worker-{index}",
            KEPT.resolve() / "cache",
            KEPT.resolve() / "samples",
            SECONDS_PER_CASE,
            BYTES_PER_CASE,
        )
        for index in range(number)
    ]
    fuzzing = Fuzzing(settings, weights, seed)
    try:
        use(fuzzing)
    finally:
        fuzzing.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
