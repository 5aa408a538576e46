"""`cmdpax audit`: the paper's statements on a model, one row each."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import cmdpax
from cmdpax.cli.models import AsJson
from cmdpax.cli.notices import caught
from cmdpax.cli.output import messages, print_json, results, table
from cmdpax.cli.parameters import chosen_parameters
from cmdpax.errors import ParameterError

_COLOURS = {"holds": "green", "fails": "red", "vacuous": "yellow", "premise not met": "yellow"}
_NOTHING = "–"
_NUMBERS = ("step_size", "regularization", "max_multiplier")


def audit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CMDP, .npz or .json.")],
    online: Annotated[
        bool, typer.Option("--online", help="Also the statements on learning.")
    ] = False,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", help="The learner of the online part; by default Algorithm 1."),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option("--scheme", help=f"What is iterated: {', '.join(cmdpax.scheme_names())}."),
    ] = "primal-dual",
    iterations: Annotated[int, typer.Option("--iterations", help="T, model known.")] = 1000,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--parameter",
            help="step_size=0.1, regularization=0.05 or max_multiplier=6: η, τ, λ_max.",
        ),
    ] = None,
    accuracy: Annotated[float, typer.Option("--accuracy", help="ε of the theorem.")] = 0.1,
    episodes: Annotated[int, typer.Option("--episodes", help="K of the online part.")] = 300,
    seeds: Annotated[int, typer.Option("--seeds", help="Runs of the online part.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Check the paper's statements on a model, with the constants of their proofs.

    Example: cmdpax audit random.npz --online
    """
    from cmdpax.paper.audit.auditing import ALGORITHM, describe

    if algorithm is not None and not online:
        raise ParameterError("--algorithm is the learner of the online part; give --online too.")
    chosen = chosen_parameters(parameter, _NUMBERS, "an audit has no parameter")
    cmdp = cmdpax.load(file)
    with caught():
        found = cmdpax.audit(
            cmdp,
            num_iterations=iterations,
            **chosen,
            accuracy=accuracy,
            scheme=scheme,
            online=online,
            num_episodes=episodes,
            seeds=seeds,
            learner=ALGORITHM if algorithm is None else algorithm,
        )
    if as_json:
        problem = found.problem
        numbers = {name: float(getattr(problem, name)) for name in (*_NUMBERS, "slater_gap")}
        print_json({**numbers, "rows": [describe(row) for row in found.rows]})
        return
    _print(f"{file}: {cmdp!r}", found)


def _print(title: str, found: Any) -> None:
    headers = ("statement", "left", "right", "slack", "verdict")
    listing = table(title, headers, [])
    for row in found.rows:
        sides = (row.left, row.right, row.slack)
        numbers = (_NOTHING if math.isnan(side) else f"{side:.4g}" for side in sides)
        cells = (row.name, *numbers, row.verdict)
        listing.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in cells))
    results.print(listing)
    for row in found.rows:
        if row.verdict == "holds":
            continue
        where = ", ".join(f"{axis} = {place}" for axis, place in row.worst.items())
        worst = f"worst at {where}" if row.verdict == "fails" and where else ""
        remarks = "; ".join(part for part in (worst, row.note) if part)
        messages.print(f"{row.name} ({row.place}): {remarks}")
