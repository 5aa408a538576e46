"""Whether two checkouts of the library compute the same numbers in a fixed set of runs.

    python benchmarks/same_numbers.py --before FOLDER     # compare this checkout with another one
    python benchmarks/same_numbers.py --record FILE.npz   # record the numbers of this one
    python benchmarks/same_numbers.py --write-files FOLDER

The first runs both checkouts in processes of their own, on the same machine and with the same
packages, and exits with 1 if anything is missing or differs by more than 1e-10 of the largest entry
of its array (1e-4 in single precision). The last writes the files of `tests/earlier`.

Only the public API is used, so that whatever is inside may move. Every process has one core: how
runs are divided among threads is then the same everywhere. A checkout takes about four minutes of
processor time, nearly all of it compilation; times are of the processor too.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Set
from typing import Any, NamedTuple

import numpy as np

from named_arrays import Arrays, Difference, compare_all, named_arrays

ABOUT = "about"  # an entry beside the arrays, as JSON: see `About`
SHOWN = 12  # differences that are listed one by one


class About(NamedTuple):
    """What a record says about itself."""

    seconds: dict[str, float]  # processor time of each group
    failed: list[str]  # cases that raised an error


def groups() -> dict[str, Callable[[], Any]]:
    """The groups of cases by name; imported here, since they import the library."""
    import fixed_experiments
    import fixed_runs
    import fixed_systems

    return {
        "planning": fixed_runs.planning_cases,
        "learn": fixed_runs.learn_cases,
        "checkpoint": fixed_runs.checkpoint_cases,
        "replay": fixed_runs.replay_cases,
        "iterate": fixed_runs.iterate_cases,
        "agent": fixed_systems.agent_cases,
        "sweep": fixed_experiments.sweep_cases,
        "audit": fixed_experiments.audit_cases,
        "reproduction": fixed_experiments.reproduction_cases,
    }


def use_one_core() -> None:
    """Before JAX counts them."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def record(path: str, only: list[str] | None) -> None:
    """In a process of its own: run the cases and write their arrays.

    A case that fails is reported and left out, so that the comparison finds its arrays missing.
    """
    import cmdpax

    print(f"recording {pathlib.Path(cmdpax.__file__).parents[2]}", flush=True)
    arrays: Arrays = {}
    about = About({}, [])
    known = groups()
    if unknown := set(only or ()) - set(known):
        raise SystemExit(f"there is no group {min(unknown)!r}; the groups are {', '.join(known)}.")
    for group in only or known:
        start, before, count = time.process_time(), len(arrays), 0
        for name, compute in known[group]():
            count += 1
            try:
                arrays |= named_arrays(f"{group}/{name}", compute())
            except Exception:  # whatever a later version raises, the other cases are worth running
                about.failed.append(f"{group}/{name}")
                print(f"failed: {group}/{name}\n{traceback.format_exc()}", file=sys.stderr)
        about.seconds[group] = time.process_time() - start
        made, seconds = len(arrays) - before, about.seconds[group]
        print(f"{group}: {count} cases, {made} arrays, {seconds:.0f} s", flush=True)
    np.savez_compressed(path, **arrays, **{ABOUT: np.array(json.dumps(about))})


def read(path: pathlib.Path) -> tuple[Arrays, About]:
    """The arrays of a record, and what it says about itself."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return arrays, About(*json.loads(str(arrays.pop(ABOUT))))


def before_and_after(before: str, only: list[str] | None) -> bool:
    """Record both checkouts, print how they compare, and return whether all is the same."""
    folders = {"before": pathlib.Path(before), "after": pathlib.Path(__file__).parents[1]}
    records = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, folder in folders.items():
            source, path = (folder / "src").resolve(), pathlib.Path(scratch) / f"{name}.npz"
            if not (source / "cmdpax").is_dir():
                raise SystemExit(f"{folder} is not a checkout of cmdpax: it has no src/cmdpax.")
            command = [sys.executable, __file__, "--record", str(path)]
            command += ["--only", *only] if only else []
            subprocess.run(command, env=os.environ | {"PYTHONPATH": str(source)}, check=True)
            records[name] = read(path)
    (old, about_old), (new, about_new) = records.values()
    found = compare_all(old, new)
    print_table(found, new.keys() - old.keys(), about_old, about_new)
    return print_verdict(found, about_old.failed)


def print_table(found: dict[str, Difference], added: Set[str], before: About, after: About) -> None:
    """A row per group."""
    columns = ("group", "equal", "differ", "largest", "missing", "other shape", "new", "seconds")
    print("\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for group in before.seconds:
        there = [found[name] for name in found if name.split("/")[0] == group]
        kinds = [one.kind for one in there]
        row = (
            group,
            *(kinds.count(kind) for kind in ("equal", "differs")),
            f"{max((one.size for one in there), default=0.0):.1e}",
            *(kinds.count(kind) for kind in ("missing", "shape")),
            sum(name.split("/")[0] == group for name in added),
            f"{before.seconds[group]:.0f} → {after.seconds[group]:.0f}",
        )
        print("| " + " | ".join(map(str, row)) + " |")


def print_verdict(found: dict[str, Difference], failed_before: list[str]) -> bool:
    """The arrays that are furthest apart, and whether all is the same.

    It is not if a case failed before: there is nothing to compare it with.
    """
    others = {name: one for name, one in found.items() if one.kind != "equal"}
    failed = [name for name, one in others.items() if not one.passes(name)]
    ordered = sorted(others, key=lambda name: (name not in failed, -others[name].size))
    for name in ordered[:SHOWN]:
        size = f" by {others[name].size:.1e}" if others[name].kind == "differs" else ""
        print(f"{'FAILS' if name in failed else 'passes'}: {name}: {others[name].kind}{size}")
    if len(ordered) > SHOWN:
        print(f"and {len(ordered) - SHOWN} more")
    for name in failed_before:
        print(f"FAILS: {name}: raised an error before, so that nothing can be compared")
    equal = len(found) - len(others)
    print(f"\n{equal} of {len(found)} arrays are equal bit for bit; {len(failed)} fail.")
    return not failed and not failed_before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--before", metavar="FOLDER", help="compare with another checkout")
    what.add_argument("--record", metavar="FILE", help="write this checkout's numbers to an .npz")
    what.add_argument("--write-files", metavar="FOLDER", help="write the files of tests/earlier")
    parser.add_argument("--only", nargs="+", metavar="GROUP", help="some groups of cases")
    arguments = parser.parse_args()
    use_one_core()
    if "PYTHONPATH" not in os.environ:  # this checkout, whichever one is installed
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "src"))
    warnings.simplefilter("ignore")  # small caps and the like are meant here
    if arguments.before:
        print(f"{platform.machine()}, Python {platform.python_version()}", flush=True)
        raise SystemExit(0 if before_and_after(arguments.before, arguments.only) else 1)
    if arguments.record:
        record(arguments.record, arguments.only)
        return
    import earlier_files

    earlier_files.write(pathlib.Path(arguments.write_files))


if __name__ == "__main__":
    main()
