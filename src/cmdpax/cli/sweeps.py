"""`cmdpax sweep`, `plot`, `report` and `compare`: many runs, their pictures, their tests."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cmdpax.cli.models import AsJson
from cmdpax.cli.notices import caught, resumable
from cmdpax.cli.output import messages, print_facts, print_json, results, table, wrote
from cmdpax.learners import registered, symbol_of
from cmdpax.schemes.parameters import in_words
from cmdpax.storage.limits import size_text

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `sweep` wrote.")]
_MOST_PARAMETERS = 6  # beyond that, a table has no columns for what is everywhere the default


def sweep(
    specification: Annotated[Path, typer.Argument(metavar="SPEC.toml")],
    out: Annotated[Path, typer.Option("--out", help="The folder; it can be resumed.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how large it is, and run nothing.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="auto, or the address of a Ray cluster that runs it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run all combinations that a TOML file names, and keep their accounts.

    Example: cmdpax sweep examples/sweep.toml --out results
    """
    from cmdpax import experiments
    from cmdpax.experiments.progress import shown

    if dry_run:
        with caught():
            estimated = experiments.estimate(specification, out, cluster)
        _print_estimate(estimated, as_json)
        return
    start = time.perf_counter()
    with caught(), resumable(out), shown(messages) as named:
        report = report_to(named("sweep"), bool(cluster))
        found = experiments.sweep(specification, out, cluster=cluster, progress=report)
    seconds = time.perf_counter() - start
    best = found.best()
    if as_json:
        print_json({"runs": len(found.final), "seconds": seconds, "best": best.to_dicts()})
        return
    results.print(best_table(f"{out}: best configurations by strong regret", best))
    messages.print(f"{len(found.final)} runs in {out}, {seconds:.1f} s")


def report_to(report: Callable[[Any], None], told: bool) -> Callable[[Any], None]:
    """Pass reports on; before the first, unless it is told, a line says on which devices we are."""
    from cmdpax.learning.manifest import devices

    def tell(stand: Any) -> None:
        nonlocal told
        if not told:
            messages.print(f"on {devices()}")
            told = True
        report(stand)

    return tell


def plot(
    folder: Folder,
    kind: Annotated[str, typer.Option("--kind", help="iterates, regret, multipliers.")],
    out: Annotated[Path, typer.Option("--out", help="A .png, .pdf or .svg file.")],
    algorithm: Annotated[
        list[str] | None, typer.Option("--algorithm", help="Only this one; may be repeated.")
    ] = None,
    cmdp: Annotated[str | None, typer.Option("--cmdp", help="The name of one CMDP.")] = None,
) -> None:
    """Draw the algorithms of a sweep, each with its best configuration.

    Example: cmdpax plot results --kind regret --out regret.pdf
    """
    from cmdpax.experiments import results as open_results
    from cmdpax.figures import plot_sweep, require_picture, save_figure

    require_picture(out)
    figure = plot_sweep(open_results(folder), kind, algorithms=algorithm, cmdp=cmdp)
    save_figure(figure, out)
    wrote(out)


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A folder that `sweep` or `reproduce` wrote, or a file that agent.save wrote.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="A .html file.")],
) -> None:
    """Write one page to look at and to send: it needs no network and no other file.

    Example: cmdpax report results --out report.html
    """
    from cmdpax.reporting import report as write

    write(source, out)
    messages.print(f"wrote {out}, {size_text(out.stat().st_size)}")


def compare(
    folder: Folder,
    first: Annotated[str, typer.Argument(metavar="A", help="An algorithm, or a configuration.")],
    second: Annotated[str, typer.Argument(metavar="B")],
    by: Annotated[
        str, typer.Option("--by", help="strong, weak, or a column of `final`.")
    ] = "strong",
    as_json: AsJson = False,
) -> None:
    """Compare two algorithms in pairs: the same CMDP, the same seed.

    Example: cmdpax compare results regularized-primal-dual vanilla-primal-dual
    """
    from cmdpax.experiments import results as open_results
    from cmdpax.experiments.statistics import compare as compare_pairs

    found = compare_pairs(open_results(folder), first, second, by)
    if as_json:
        difference = found.difference
        ends = {"difference": difference.mean, "low": difference.low, "high": difference.high}
        print_json(found._asdict() | ends)
        return
    rows = (
        (f"mean of {first}", f"{found.first_mean:.6g}"),
        (f"mean of {second}", f"{found.second_mean:.6g}"),
        ("ratio", f"{found.ratio:.4g}"),
        (f"difference, 95 % interval over {found.unit}", found.difference),
        ("pairs (CMDP, seed)", found.pairs),
        (f"CMDPs where {first} is smaller", f"{found.first_smaller} of {found.cmdps}"),
    )
    print_facts(f"{by}: {first} against {second}", rows)


def best_table(title: str, best: Any) -> Any:
    """Make a row per algorithm."""
    from cmdpax.experiments.tables import parameters_of_row

    found = best.to_dicts()
    words = [parameters_of_row(row) for row in found]
    shown = [name for name in dict.fromkeys(itertools.chain(*words)) if name != "margin"]
    if len(shown) > _MOST_PARAMETERS:
        pairs = [*zip((row["algorithm"] for row in found), words, strict=True)]
        shown = [name for name in shown if not all(_is_default(name, *pair) for pair in pairs)]
    rows = [
        (row["algorithm"], *(said.get(name, "") for name in shown), row["runs"], score)
        for row, said in zip(found, words, strict=True)
        for score in [f"{row['score']:.4g}"]
    ]
    return table(title, ("algorithm", *map(symbol_of, shown), "runs", "mean regret"), rows)


def _is_default(name: str, algorithm: str, words: dict[str, str]) -> bool:
    """Whether an algorithm does not have a parameter, or has it as it is by default."""
    known = registered(algorithm)
    defaults = {} if known is None else {one.name: one.default for one in known.parameters}
    return name not in words or (name in defaults and words[name] == in_words(defaults[name]))


def _print_estimate(found: Any, as_json: bool) -> None:
    if as_json:
        print_json(found._asdict())
        return
    rows = (
        *((("workers", f"{found.workers:,}"),) if found.workers is not None else ()),
        ("runs to do", f"{found.runs:,}"),
        ("runs there already", f"{found.runs_done:,}"),
        ("compiled batches" if found.workers is None else "batches", f"{found.batches:,}"),
        ("episodes", f"{found.episodes:,}"),
        ("on disk, about", size_text(found.num_bytes)),
        ("time, about", f"{found.seconds:.0f} s"),
        ("of it compilation", f"{found.compile_seconds:.0f} s"),
    )
    print_facts("Nothing was run", rows)
    if found.cut:
        names = ("algorithm", "S, A, H, I", "runs", "batches", "runs each", "s each")
        results.print(table("The batches, at most", names, [_row(**share) for share in found.cut]))


def _row(
    algorithm: str, sizes: str, runs: int, batches: int, batch_runs: int, batch_seconds: float
) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (runs, batches, batch_runs))
    return (algorithm, sizes, *counts, f"{batch_seconds:.3g}")
