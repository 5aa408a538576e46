"""`cmdpax board`: run a suite, show the leaderboard, write its page."""

import itertools
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmdpax.cli.models import AsJson
from cmdpax.cli.notices import caught, resumable
from cmdpax.cli.output import messages, print_json, results, table, wrote
from cmdpax.cli.sweeps import report_to
from cmdpax.errors import ParameterError
from cmdpax.intervals import Interval
from cmdpax.storage.limits import size_text

if TYPE_CHECKING:
    from cmdpax.board import Board
    from cmdpax.board.cells import Block, Cell
    from cmdpax.board.scores import Row

board = typer.Typer(help="Compare learners on a frozen suite of models.", no_args_is_help=True)
Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH…",
        help="Folders that `board run` wrote, or stored results; the first one that has an "
        "algorithm is believed.",
    ),
]
OptionalSources = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PATH…]",
        help="The same; without any, the results that come with cmdpax.",
    ),
]
StoredSuite = Annotated[
    str, typer.Option("--suite", help="Whose results that come with cmdpax: v1 or quick.")
]
Alone = Annotated[
    bool, typer.Option("--alone", help="Leave out the results that come with cmdpax.")
]
By = Annotated[
    str,
    typer.Option(
        "--by",
        help="strong, strong_objective, strong_constraints, weak, weak_objective, "
        "weak_constraints, unsafe, last or seconds.",
    ),
]
Setting = Annotated[str, typer.Option("--setting", help="tuned, or published: as the papers say.")]
PartNames = Annotated[
    list[str] | None, typer.Option("--part", help="A part of the suite; may be repeated.")
]
Families = Annotated[
    list[str] | None, typer.Option("--family", help="A family of models; may be repeated.")
]
_DIGITS = 3


@board.command("run")
def run(
    out: Annotated[Path, typer.Option("--out", help="The folder; it can be resumed.")],
    suite: Annotated[str, typer.Option("--suite", help="v1 or quick.")] = "v1",
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithm",
            help='A name, or "module:factory" for your own; may be repeated. Default: all names.',
        ),
    ] = None,
    part: PartNames = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="auto, or the address of a Ray cluster that runs it."),
    ] = None,
    alone: Alone = False,
    as_json: AsJson = False,
) -> None:
    """Run learners on a suite, and show them beside the results that come with cmdpax.

    Example: cmdpax board run --suite quick --algorithm own:factory --out board
    """
    from cmdpax.board import run as run_board
    from cmdpax.board.reading import with_stored
    from cmdpax.experiments.progress import shown

    start, sweeps = time.perf_counter(), itertools.count()
    with caught(), resumable(out), shown(messages) as named:
        found = run_board(
            suite,
            out,
            algorithms=algorithm,
            parts=part,
            cluster=cluster,
            progress=lambda part: report_to(named(part), bool(cluster) or next(sweeps) > 0),
        )
    found = found if alone else with_stored(found)
    _print(found, "strong", "tuned", part, None, as_json)
    messages.print(f"{suite} in {out}, {time.perf_counter() - start:.1f} s")


@board.command("show")
def show(
    sources: OptionalSources = None,
    suite: StoredSuite = "quick",
    by: By = "strong",
    setting: Setting = "tuned",
    part: PartNames = None,
    family: Families = None,
    algorithm: Annotated[
        list[str] | None, typer.Option("--algorithm", help="Only this one; may be repeated.")
    ] = None,
    alone: Alone = False,
    as_json: AsJson = False,
) -> None:
    """Show the leaderboard.

    Example: cmdpax board show board --by unsafe --setting published
    """
    found = _opened(sources or [], suite, alone)
    if algorithm is not None:
        found = found.only(algorithm)
    _print(found, by, setting, part, family, as_json)


@board.command("report")
def report(
    out: Annotated[Path, typer.Option("--out", help="A .html file.")],
    sources: OptionalSources = None,
    suite: StoredSuite = "quick",
    alone: Alone = False,
) -> None:
    """Write one page with the leaderboard, its cells and their curves; it needs no network.

    Example: cmdpax board report board --out board.html
    """
    from cmdpax.reporting.board_page import write_board_page
    from cmdpax.reporting.reporting import require_page
    from cmdpax.storage.writing import write_text

    require_page(out)
    write_text(out, write_board_page(_opened(sources or [], suite, alone)))
    messages.print(f"wrote {out}, {size_text(out.stat().st_size)}")


@board.command("store")
def store(
    sources: Sources,
    out: Annotated[Path, typer.Option("--out", help="A .json file.")],
) -> None:
    """Write the means of all cells to one small file, which `show` and `report` read as well.

    Example: cmdpax board store board --out quick.json
    """
    from cmdpax.storage.writing import write_text

    write_text(out, _opened(sources, "", alone=True).to_json())
    wrote(out)


def _opened(sources: list[Path], suite: str, alone: bool) -> "Board":
    from cmdpax.board.reading import read, stored, with_stored

    if not sources:
        found = stored(suite)
        if found is None:
            raise ParameterError(
                f"no results of the suite {suite!r} come with cmdpax; run it, or give a folder."
            )
        return found
    first, *others = [read(source) for source in sources]
    for other in others:
        first = first.beside(other)
    return first if alone else with_stored(first)


def _print(
    found: "Board",
    by: str,
    setting: str,
    parts: list[str] | None,
    families: list[str] | None,
    as_json: bool,
) -> None:
    from cmdpax.board.scores import choose_blocks, leaderboard

    rows, ranked = leaderboard(found, by, setting=setting, parts=parts, families=families)
    if as_json:
        ranking = ranked._asdict() | {"mean_ranks": ranked.mean_ranks}
        print_json(
            {
                "suite": found.suite,
                "by": by,
                "setting": setting,
                "rows": [row._asdict() for row in rows],
                "ranking": ranking,
            }
        )
        return
    blocks = choose_blocks(found, parts, families)
    title = f"{found.suite}: {by}, {setting}"
    results.print(_leaderboard(title, rows, _means(found, rows, blocks, by, setting)))
    if math.isfinite(ranked.critical_difference):
        messages.print(
            f"ranks over {ranked.num_blocks} blocks (p = {ranked.p_value:.2g}); differences below "
            f"{ranked.critical_difference:.2f} are not significant (5 %)"
        )
    for algorithm, reason in _reasons(found).items():
        messages.print(f"{algorithm}: {reason}")


def _leaderboard(title: str, rows: "list[Row]", means: list[str]) -> Any:
    """The table; in a single block there are means instead of worst ratios."""
    headers = (
        "algorithm",
        "× best",
        "mean" if means else "worst",
        "rank",
        "unsafe",
        "blocks",
        "µs",
    )
    cells = [_cells(row) for row in rows]
    if means:
        cells = [(*row[:2], mean, *row[3:]) for row, mean in zip(cells, means, strict=True)]
    listing = table(title, headers, cells)
    listing.columns[0].min_width = max((len(row.algorithm) for row in rows), default=0)
    listing.columns[5].overflow = "fold"
    return listing


def _means(
    found: "Board", rows: "list[Row]", blocks: "list[Block]", by: str, setting: str
) -> list[str]:
    """The means over the runs in a single block, with their intervals; nothing for several."""
    if len(blocks) != 1:
        return []
    return [_mean(found.cell(blocks[0], row.algorithm, setting), by) for row in rows]


def _cells(row: "Row") -> tuple[str, ...]:
    lost = [
        f"{count} {what}"
        for what, count in (
            ("failed", row.failed),
            ("cannot", row.skipped),
            ("not run", row.missing),
        )
        if count
    ]
    return (
        row.algorithm,
        _number(row.ratio),
        _number(row.worst),
        _number(row.rank),
        "" if math.isnan(row.unsafe) else f"{100 * row.unsafe:.2g} %",
        ", ".join([str(row.done), *lost]),
        _number(row.seconds * 1e6),
    )


def _mean(cell: "Cell", by: str) -> str:
    """The mean over the runs of a cell, with its interval."""
    if by not in cell.means:
        return ""
    return str(Interval(cell.means[by], cell.halves.get(by, math.inf), cell.runs))


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.{_DIGITS}g}" if math.isfinite(value) else "∞"


def _reasons(found: "Board") -> dict[str, str]:
    """Why cells failed or cannot be done: the first reason of every algorithm."""
    reasons: dict[str, str] = {}
    for cell in found.cells:
        if cell.reason:
            reasons.setdefault(cell.algorithm, cell.reason)
    return reasons
