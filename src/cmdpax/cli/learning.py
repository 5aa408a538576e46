"""`cmdpax learn` and `cmdpax iterate`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import cmdpax
from cmdpax.cli.models import AsJson, ModelFile
from cmdpax.cli.notices import caught, resumable
from cmdpax.cli.output import (
    cell,
    messages,
    number,
    print_facts,
    print_json,
    results,
    table,
    wrote,
)
from cmdpax.cli.parameters import chosen_parameters
from cmdpax.errors import FileError, ParameterError
from cmdpax.intervals import interval
from cmdpax.learners import DEFAULT_ALGORITHM, as_algorithm
from cmdpax.learning.settings import SAFEST
from cmdpax.schemes.registry import as_scheme
from cmdpax.storage.writing import require_target, write_npz

Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "-p", "--parameter", help="key=value: a number, or a schedule such as 0.3*k^-0.2."
    ),
]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the curves (.png, .pdf, .svg).")]
Out = Annotated[Path | None, typer.Option("--out", help="Write the numbers to this .npz.")]

_TOLD = ("algorithm", "num_episodes", "optimum", "support", "stationary")


def learn(
    file: ModelFile,
    algorithm: Annotated[
        str, typer.Option("--algorithm", help="One of `cmdpax algorithms`.")
    ] = DEFAULT_ALGORITHM,
    episodes: Annotated[int, typer.Option("--episodes", help="K.")] = 4000,
    seeds: Annotated[str, typer.Option("--seeds", help="A number of runs, or 7,8,9.")] = "5",
    optimism: Annotated[
        str, typer.Option("--optimism", help="empirical, live, theory.")
    ] = "empirical",
    observations: Annotated[str, typer.Option("--observations", help="mean, bernoulli.")] = "mean",
    precision: Annotated[str, typer.Option("--precision", help="double, single.")] = "double",
    stationary: Annotated[
        bool, typer.Option("--stationary", help="The steps share their counts.")
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            help="The safe policy that some algorithms start from: a policy's file, or safest.",
        ),
    ] = None,
    parameter: Parameters = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="Keep what was done in this file, and go on from it."),
    ] = None,
    as_json: AsJson = False,
    out: Out = None,
    plot: Plot = None,
) -> None:
    """Learn a CMDP online in simulation, and account for every episode.

    Example: cmdpax learn random.npz --episodes 4000 --seeds 5
    """
    _require_targets(out, plot)
    known = as_algorithm(algorithm)
    chosen = chosen_parameters(parameter, known.names, f"{known.name} has no parameter")
    if checkpoint is not None and checkpoint in (file, out, plot):
        raise FileError(f"{checkpoint} is given twice; the checkpoint needs a file of its own.")
    cmdp = cmdpax.load(file)
    given: Any = baseline
    if baseline is not None and baseline != SAFEST:
        given = cmdpax.load_policy(baseline, cmdp)
    start = time.perf_counter()
    resumed = checkpoint is not None and checkpoint.exists()
    kept = nullcontext() if checkpoint is None else resumable(checkpoint)
    with caught(), kept, _bar() as report:
        history = cmdpax.learn(
            cmdp,
            algorithm,
            num_episodes=episodes,
            seeds=_seeds(seeds),
            optimism=optimism,
            observations=observations,
            precision=precision,
            stationary=stationary,
            baseline=given,
            progress=report,
            checkpoint=checkpoint,
            **chosen,
        )
    seconds = time.perf_counter() - start
    if out is not None:
        history.save(out)
        wrote(out)
    if plot is not None:
        from cmdpax.figures import plot_history, save_figure

        save_figure(plot_history(history), plot)
        wrote(plot)
    if as_json:
        print_json(_learned(history, seconds))
    else:
        _print_history(file, cmdp, history)
        rate = f"({len(history.value) * episodes / seconds:,.0f} episodes/s)"
        messages.print(
            f"{len(history.value)} runs of {episodes:,} episodes in {seconds:.1f} s, "
            + (f"going on from {checkpoint}" if resumed else f"compilation included {rate}")
        )


def iterate(
    file: ModelFile,
    scheme: Annotated[
        str, typer.Option("--scheme", help=f"One of: {', '.join(cmdpax.scheme_names())}.")
    ],
    iterations: Annotated[int, typer.Option("--iterations", help="T.")] = 1000,
    parameter: Parameters = None,
    as_json: AsJson = False,
    out: Out = None,
    plot: Plot = None,
) -> None:
    """Iterate a scheme on a known CMDP; `cmdpax schemes` lists their parameters.

    Example: cmdpax iterate random.npz --scheme primal-dual -p regularization=0.05
    """
    _require_targets(out, plot)
    known = as_scheme(scheme)
    chosen = chosen_parameters(parameter, known.names, f"{known.name} has no parameter")
    cmdp = cmdpax.load(file)
    start = time.perf_counter()
    iterates = cmdpax.iterate(cmdp, scheme, num_iterations=iterations, **chosen)
    seconds = time.perf_counter() - start
    solution = cmdpax.solve(cmdp)
    if out is not None:
        arrays = iterates._asdict().items()
        write_npz(out, {name: array for name, array in arrays if array is not None})
        wrote(out)
    if plot is not None:
        from cmdpax.figures import plot_iterates, save_figure

        figure = plot_iterates(
            iterates, solution.value, cmdp.bounds, solution.multipliers, cmdp.words
        )
        save_figure(figure, plot)
        wrote(plot)
    content = _iterated(cmdp, iterates, solution, seconds)
    if as_json:
        print_json(content)
        return
    rows = ((name.replace("_", " "), cell(value)) for name, value in content.items())
    print_facts(f"{file}: {cmdp!r}, {scheme}", rows)


def _iterated(
    cmdp: cmdpax.CMDP, iterates: cmdpax.Iterates, solution: cmdpax.Solution, seconds: float
) -> dict[str, Any]:
    mixture = cmdpax.evaluate(cmdp, iterates.mixture)
    last, mixed = iterates.constraint_values[-1], mixture.constraint_values
    distance = iterates.potential
    return {
        "optimal_value": solution.value,
        "last_suboptimality": solution.value - float(iterates.value[-1]),
        "last_violation": _largest(-cmdp.words.slack(last, cmdp.bounds)),
        "mixture_suboptimality": solution.value - mixture.value,
        "mixture_violation": _largest(-cmdp.words.slack(mixed, cmdp.bounds)),
        "last_multipliers": iterates.multipliers[-1],
        "optimal_multipliers": solution.multipliers,
        "last_potential": None if distance is None else float(distance[-1]),
        "seconds": seconds,
    }


def _largest(violation: np.ndarray) -> float:
    return float(violation.max()) if violation.size else 0.0


def _learned(history: cmdpax.History, seconds: float) -> dict[str, Any]:
    summary = {name: values.tolist() for name, values in history.summary().items()}
    exponents = history.growth_exponent()
    return {
        **{name: history.manifest[name] for name in _TOLD},
        "runs": len(history.value),
        **summary,
        "growth_exponent_objective": exponents.objective,
        "growth_exponent_constraints": exponents.maximum,
        "multipliers": history.multipliers[:, -1],
        "optimal_multipliers": history.manifest["optimal_multipliers"],
        **_planned(history),
        "seconds": seconds,
    }


def _planned(history: cmdpax.History) -> dict[str, np.ndarray]:
    """How often each run planned, and how often in vain; nothing for learners that do not plan."""
    if history.plans is None:
        return {}
    return {"plans": history.plans.made, "infeasible_plans": history.plans.infeasible}


def _print_history(file: Path, cmdp: cmdpax.CMDP, history: cmdpax.History) -> None:
    title = f"{file}: {cmdp!r}, {history.manifest['algorithm']}"
    rows = [
        (name.replace("_", " "), *_interval(values)) for name, values in history.summary().items()
    ]
    rows += [
        (name.replace("_", " "), *_interval(counts)) for name, counts in _planned(history).items()
    ]
    results.print(str(history))
    results.print(table(title, ("account", "mean", "± 95 %"), rows))
    if cmdp.num_constraints:
        last, best = history.multipliers[:, -1], history.manifest["optimal_multipliers"]
        multipliers = [
            (cmdp.words.constraint(i), *_interval(last[:, i]), number(best[i]))
            for i in range(cmdp.num_constraints)
        ]
        headers = ("multiplier", "mean at K", "± 95 %", "optimal")
        results.print(table("Multipliers", headers, multipliers))
    if history.manifest["support"] == "known":
        messages.print("the learner knew which states may follow (successor lists)")


def _interval(values: np.ndarray) -> tuple[str, str]:
    """Write the mean, and half of Student's 95 % interval."""
    if len(values) < 2:
        return number(float(values.mean())), "one run"
    found = interval(values)
    return f"{found.mean:.6g}", f"{found.half:.3g}"


def _require_targets(out: Path | None, plot: Path | None) -> None:
    if out is not None:
        if out.suffix != ".npz":
            raise FileError(f"{out} has the ending {out.suffix!r}; results are .npz files.")
        require_target(out)
    if plot is not None:
        from cmdpax.figures import require_picture

        require_picture(plot)


def _seeds(text: str) -> int | list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"--seeds is {text!r}, it must be a number of runs or a list such as 7,8,9."
        ) from None
    return numbers if "," in text else numbers[0]


@contextmanager
def _bar() -> Iterator[Any]:
    """Show a bar with episodes, episodes/s and the time left, on a terminal."""
    if not messages.is_terminal:
        yield False
        return
    columns = (
        TextColumn("learning"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages, transient=True) as display:
        line = display.add_task("learning", total=None, rate="compiling")
        start, first = time.perf_counter(), -1

        def report(done: int, total: int) -> None:
            nonlocal first
            first = done if first < 0 else first  # a checkpoint's episodes do not count
            rate = f"{(done - first) / (time.perf_counter() - start):,.0f} episodes/s per run"
            display.update(line, completed=done, total=total, rate=rate)

        yield report
