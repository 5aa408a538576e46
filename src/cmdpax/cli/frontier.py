"""`cmdpax frontier`: what the threshold of a constraint costs."""

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import cmdpax
from cmdpax.cli.models import AsJson, ModelFile
from cmdpax.cli.notices import caught
from cmdpax.cli.output import messages, number, print_facts, print_json, results, table
from cmdpax.errors import FileError, ParameterError
from cmdpax.planning.frontier import MOST_POINTS
from cmdpax.storage.writing import require_target, write_npz, write_text


def frontier(
    file: ModelFile,
    constraint: Annotated[
        str, typer.Option("--constraint", help="Its name, or its index from 0.")
    ] = "0",
    points: Annotated[int, typer.Option("--points", help="How many thresholds.")] = 20,
    lowest: Annotated[
        float | None, typer.Option("--from", help="The lowest threshold (with --to).")
    ] = None,
    highest: Annotated[
        float | None, typer.Option("--to", help="The highest threshold (with --from).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Draw (.png, .pdf, .svg) or write the numbers (.csv, .npz)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Optimal value and multiplier against the threshold of a constraint.

    Example: cmdpax frontier random.npz --points 20 --out frontier.png
    """
    write = None if out is None else _writer(out)
    thresholds = _thresholds(lowest, highest, points)
    chosen = {"num_points": points} if thresholds is None else {"thresholds": thresholds}
    cmdp = cmdpax.load(file)
    start = time.perf_counter()
    with caught(), _bar() as report:
        found = cmdpax.frontier(
            cmdp, constraint=_index(cmdp, constraint), progress=report, **chosen
        )
    seconds = time.perf_counter() - start
    if write is not None:
        write(cmdp, found)
        messages.print(f"wrote {out}")
    if as_json:
        place, words = found.constraint, found.words
        own = {
            "name": words.constraint(place),
            "sense": words.sense(place),
            "own_threshold": float(cmdp.bounds[place]),
        }
        print_json({**_fields(found), **own, "seconds": seconds})
    else:
        _print(file, cmdp, found, seconds)


def _index(cmdp: cmdpax.CMDP, constraint: str) -> int | str:
    """The name of a constraint, or an index where no constraint has that name."""
    named = constraint in (cmdp.words.constraint_names or ())
    return constraint if named or not constraint.isdecimal() else int(constraint)


def _fields(found: cmdpax.Frontier) -> dict[str, Any]:
    """The numbers."""
    return {name: entry for name, entry in found._asdict().items() if name != "words"}


def _thresholds(lowest: float | None, highest: float | None, points: int) -> np.ndarray | None:
    """Space the thresholds evenly; None leaves them to the library."""
    if lowest is None and highest is None:
        return None
    if lowest is None or highest is None:
        raise typer.BadParameter("--from and --to belong together: give both, or none.")
    if points < 2:
        raise ParameterError(f"--points is {points}, it must be at least 2.")
    if points > MOST_POINTS:
        raise ParameterError(f"--points is {points}, it must be at most {MOST_POINTS}.")
    with np.errstate(all="ignore"):  # `frontier` refuses ends that are not numbers
        return np.linspace(lowest, highest, points)


def _writer(out: Path) -> Callable[[cmdpax.CMDP, cmdpax.Frontier], None]:
    """Find how to write a file with this ending; others are refused before any work is done."""
    numbers = {".csv": _write_csv, ".npz": _write_arrays}
    ending = out.suffix.lower()
    if ending in numbers:
        require_target(out)
        return functools.partial(numbers[ending], out)
    from cmdpax.figures import plot_frontier, save_figure
    from cmdpax.figures.style import FORMATS

    if ending not in FORMATS:
        known = ", ".join((*FORMATS, *numbers))
        raise FileError(f"{out} has the ending {out.suffix!r}; frontiers are {known} files.")
    require_target(out)

    def draw(cmdp: cmdpax.CMDP, found: cmdpax.Frontier) -> None:
        save_figure(plot_frontier(found, float(cmdp.bounds[found.constraint])), out)

    return draw


def _write_arrays(out: Path, cmdp: cmdpax.CMDP, found: cmdpax.Frontier) -> None:
    """Write all fields, with the fingerprint of the model they belong to."""
    write_npz(out, {**_fields(found), "fingerprint": np.array(cmdp.fingerprint)})


def _write_csv(out: Path, cmdp: cmdpax.CMDP, found: cmdpax.Frontier) -> None:
    """Write a row per threshold, in full precision; cells are empty where it is infeasible."""
    indices = range(cmdp.num_constraints)
    headers = ["threshold", "feasible", "value", "gap"]
    headers += [f"multiplier_{i}" for i in indices] + [f"constraint_value_{i}" for i in indices]
    lines = [",".join(headers)]
    for point, (threshold, feasible) in enumerate(
        zip(found.thresholds.tolist(), found.feasible.tolist(), strict=True)
    ):
        numbers = [found.value[point], found.gap[point]]
        numbers += [*found.multipliers[point], *found.constraint_values[point]]
        cells = [repr(float(entry)) if feasible else "" for entry in numbers]
        lines.append(",".join([repr(threshold), str(feasible).lower(), *cells]))
    write_text(out, "\n".join(lines) + "\n")


def _print(file: Path, cmdp: cmdpax.CMDP, found: cmdpax.Frontier, seconds: float) -> None:
    gaps = found.gap[found.feasible]
    index, words = found.constraint, found.words
    most = words.sense(index) == "at most"
    unit = words.unit(1 + index)
    facts = [
        (
            f"{words.constraint(index)} in the model",
            f"{words.sense(index)} {number(cmdp.bounds[index])} {unit}".rstrip(),
        ),
        (
            f"{'smallest' if most else 'largest'} that can be met",
            f"{number(found.largest_feasible)} {unit}".rstrip(),
        ),
        ("largest certified gap", f"{gaps.max():.2g}" if gaps.size else "nothing is feasible"),
        ("columns", found.num_columns),
        ("seconds", f"{seconds:.3f}"),
    ]
    print_facts(f"{file}: {cmdp!r}, {words.constraint(index)}", facts)
    multipliers = found.multipliers[:, found.constraint]
    rows = zip(
        map(number, found.thresholds),
        map(_cell, found.value),
        map(_cell, multipliers),
        ("yes" if feasible else "no" for feasible in found.feasible),
        strict=True,
    )
    headers = (f"{words.label(1 + index)}, {words.sense(index)}", words.label(), "multiplier")
    results.print(table("Frontier", (*headers, "feasible"), rows))


def _cell(value: float) -> str:
    return "" if np.isnan(value) else number(value)


@contextmanager
def _bar() -> Iterator[Any]:
    """Show a bar with the points that are done, on a terminal."""
    if not messages.is_terminal:
        yield None
        return
    columns = (TextColumn("frontier"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as display:
        line = display.add_task("frontier", total=None)
        yield lambda done, total: display.update(line, completed=done, total=total)
