"""`cmdpax inspect` and `cmdpax solve`: a model, and its optimum."""

import json
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import cmdpax
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
from cmdpax.cli.policies import describe_policy
from cmdpax.errors import FileError, InfeasibleError
from cmdpax.model.policy_files import ending_of, is_policy_file
from cmdpax.planning import METHODS
from cmdpax.storage.writing import require_target, write_npz

ModelFile = Annotated[Path, typer.Argument(help="A CMDP as .npz or .json.")]
_MOST_NAMES = 12  # of states or actions that are shown
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def inspect(file: ModelFile, as_json: AsJson = False) -> None:
    """Describe a CMDP: sizes, sparsity, reward ranges, feasibility; or a policy.

    Example: cmdpax inspect random.npz
    """
    try:
        cmdp = cmdpax.load(file)
    except FileError:
        if not is_policy_file(file):
            raise
        describe_policy(file, as_json)
        return
    with _progress("Slater gap") as report:
        slater = cmdpax.slater_gap(cmdp, progress=report)
    facts = _facts(cmdp, slater)
    if as_json:
        print_json(facts)
        return
    rows = ((name.replace("_", " "), cell(value)) for name, value in facts.items())
    print_facts(str(file), rows, fold=True)


def solve(
    file: ModelFile,
    method: Annotated[
        str, typer.Option("--method", help=f"{METHODS[0]} (fast) or {METHODS[1]} (cross-check).")
    ] = METHODS[0],
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the policy: .csv, .json, or .npz with all numbers."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the policy (.png, .pdf, .svg).")
    ] = None,
) -> None:
    """Solve a CMDP exactly and print its optimum.

    Example: cmdpax solve random.npz --out policy.npz
    """
    _require_targets(out, plot)
    cmdp = cmdpax.load(file)
    start = time.perf_counter()
    try:
        with _progress("solving") as report, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solution = cmdpax.solve(cmdp, method, progress=report)
    except InfeasibleError as error:
        if as_json:
            print_json(_infeasible(method, error, time.perf_counter() - start))
        raise
    seconds = time.perf_counter() - start
    for warning in caught:
        messages.print(f"warning: {warning.message}", style="yellow")
    with _progress("Slater gap"):
        slater_gap = solution.slater_gap
    if out is not None:
        _write_policy(out, cmdp, solution)
    if plot is not None:
        _draw_policy(plot, cmdp, solution)
    if as_json:
        print_json(_solved(solution, slater_gap, seconds))
    else:
        _print_solution(file, cmdp, solution, slater_gap, seconds)


@contextmanager
def _progress(task: str) -> Iterator[Any]:
    """Show columns and gap in a line on standard error while work is going on."""
    if not messages.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as display:
        line = display.add_task(task)

        def report(num_columns: int, gap: float) -> None:
            state = f"gap {gap:.2e}" if np.isfinite(gap) else "looking for a feasible policy"
            if task != "solving":
                state = "…"
            display.update(line, description=f"{task}: {num_columns} columns, {state}")

        yield report


def _facts(cmdp: cmdpax.CMDP, slater: cmdpax.SlaterGap | None) -> dict[str, Any]:
    """Collect what `inspect` tells, in order."""
    lists = isinstance(cmdp.transitions, cmdpax.Successors)
    chances = cmdp.transitions.probabilities if lists else cmdp.transitions
    per_row = np.count_nonzero(chances, axis=-1)[_available_rows(cmdp, len(chances))]
    return {
        "num_states": cmdp.num_states,
        "num_actions": cmdp.num_actions,
        "horizon": cmdp.horizon,
        "num_constraints": cmdp.num_constraints,
        "storage": "successors" if lists else "dense",
        "stationary_transitions": chances.shape[0] == 1,
        "stored_transitions": chances.size,
        "successors_per_pair": [int(per_row.min()), float(per_row.mean()), int(per_row.max())],
        "nonzero_share": float(per_row.mean() / cmdp.num_states),
        "start_states": int(np.count_nonzero(cmdp.initial)),
        "reward_range": [float(cmdp.rewards.min()), float(cmdp.rewards.max())],
        "constraint_reward_ranges": [[float(u.min()), float(u.max())] for u in cmdp.signals],
        **_words(cmdp),
        "thresholds": cmdp.bounds,
        "feasible": slater is None or slater.gap >= -1e-9,
        "slater_gap": None if slater is None else slater.gap,
        "limiting_constraint": None if slater is None else cmdp.words.constraint(slater.constraint),
        "fingerprint": cmdp.fingerprint,
    }


def _available_rows(cmdp: cmdpax.CMDP, length: int) -> np.ndarray:
    """Find the stored rows that belong to actions that are available, `[length, S, A]`."""
    flags = np.ones((1, cmdp.num_states, cmdp.num_actions), bool)
    if cmdp.available is not None:
        flags = cmdp.available if len(cmdp.available) == length else cmdp.available.any(axis=0)
    return np.broadcast_to(flags, (length, *flags.shape[-2:]))


def _words(cmdp: cmdpax.CMDP) -> dict[str, Any]:
    """The names, units and senses that a model has."""
    words, count = cmdp.words, range(cmdp.num_constraints)
    facts: dict[str, Any] = {
        "objective": words.label(),
        "constraints": [words.label(1 + i) for i in count],
        "senses": [words.sense(i) for i in count],
    }
    for kind in ("state", "action"):
        names = getattr(words, f"{kind}_names")
        facts[f"{kind}_names"] = None if names is None else _some(names)
    share = None if cmdp.available is None else float(cmdp.available.mean())
    return facts | {"available_share": share}


def _some(names: tuple[str, ...]) -> list[str]:
    """A few names."""
    return [*names] if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 1], "…"]


def _infeasible(method: str, error: InfeasibleError, seconds: float) -> dict[str, Any]:
    return {
        "feasible": False,
        "value": None,
        "constraint_values": None,
        "multipliers": None,
        "slater_gap": error.slater_gap,
        "worst_constraint": error.worst_constraint,
        "gap": None,
        "num_columns": None,
        "method": method,
        "seconds": seconds,
    }


def _solved(solution: cmdpax.Solution, slater_gap: float | None, seconds: float) -> dict[str, Any]:
    words, count = solution.words, range(len(solution.thresholds))
    return {
        "feasible": True,
        "value": solution.value,
        "objective": words.label(),
        "constraints": [words.label(1 + i) for i in count],
        "constraint_values": solution.constraint_values,
        "thresholds": solution.thresholds,
        "senses": [words.sense(i) for i in count],
        "slack": solution.slack,
        "multipliers": solution.multipliers,
        "slater_gap": slater_gap,
        "gap": solution.gap,
        "num_columns": solution.num_columns,
        "method": solution.method,
        "seconds": seconds,
    }


def _print_solution(
    file: Path,
    cmdp: cmdpax.CMDP,
    solution: cmdpax.Solution,
    slater_gap: float | None,
    seconds: float,
) -> None:
    words, unit = cmdp.words, cmdp.words.unit()
    facts = [
        ("optimal " + words.objective, f"{number(solution.value)} {unit}".strip()),
        ("certified gap", f"{solution.gap:.2g}"),
        ("Slater gap", "no constraints" if slater_gap is None else number(slater_gap)),
        ("method", solution.method),
        ("columns", solution.num_columns),
        ("seconds", f"{seconds:.3f}"),
    ]
    print_facts(f"{file}: {cmdp!r}", facts)
    if cmdp.num_constraints:
        rows = zip(
            (words.label(1 + i) for i in range(cmdp.num_constraints)),
            map(number, solution.constraint_values),
            (
                f"{words.sense(i)} {number(bound)}"
                for i, bound in enumerate(solution.thresholds.tolist())
            ),
            (f"{slack:.3g}" for slack in solution.slack),
            map(number, solution.multipliers),
            strict=True,
        )
        headers = ("constraint", "value", "threshold", "slack", "multiplier")
        results.print(table("Constraints", headers, rows))


def _require_targets(out: Path | None, plot: Path | None) -> None:
    """Refuse files that could not be written, before anything is solved for them."""
    if out is not None:
        ending_of(out)
        require_target(out)
    if plot is not None:
        from cmdpax.figures import require_picture

        require_picture(plot)


def _draw_policy(plot: Path, cmdp: cmdpax.CMDP, solution: cmdpax.Solution) -> None:
    from cmdpax.figures import plot_policy, save_figure

    save_figure(plot_policy(cmdp, solution.policy), plot)
    wrote(plot)


def _write_policy(out: Path, cmdp: cmdpax.CMDP, solution: cmdpax.Solution) -> None:
    """Write the policy; a .npz also holds the values."""
    if ending_of(out) != ".npz":
        solution.policy.save(out)
        wrote(out)
        return
    content: dict[str, Any] = {
        "policy": solution.policy,
        "occupancy": solution.occupancy,
        "multipliers": solution.multipliers,
        "value": np.float64(solution.value),
        "constraint_values": solution.constraint_values,
        "gap": np.float64(solution.gap),
        "fingerprint": np.array(cmdp.fingerprint),
    }
    if names := solution.policy.words.to_dict():
        content["words"] = np.array(json.dumps(names))
    write_npz(out, content)
    wrote(out)
