"""`cmdpax reproduce`: the paper's experiment, figures and claims."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from cmdpax.cli.notices import caught, resumable
from cmdpax.cli.output import messages, results, table, wrote
from cmdpax.cli.sweeps import best_table

_COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def reproduce(
    out: Annotated[Path, typer.Option("--out", help="The folder; it can be resumed.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="1,000 episodes and two runs: a first look.")
    ] = False,
    cmdps: Annotated[int, typer.Option("--cmdps", help="CMDPs of the family.", min=1)] = 1,
    theory: Annotated[
        bool, typer.Option("--theory", help="Also the theorem's parameters, K = 1,000,000.")
    ] = False,
) -> None:
    """Run the paper's experiment, draw its figures, and say which of its claims hold.

    Example: cmdpax reproduce --out reproduction
    """
    from cmdpax.experiments.progress import shown
    from cmdpax.paper.reproduction import reproduce as run

    with caught(), resumable(out), shown(messages) as named:
        found = run(out, quick=quick, num_cmdps=cmdps, theory=theory, progress=named)
    results.print(
        best_table(
            "Best configurations by strong regret", found.sweeps["paper"].best(cmdps=found.cmdps)
        )
    )
    results.print(_verdict(found.claims))
    for path in (out / "verdict.md", out / "configurations.md", out / "figures", found.page):
        wrote(path)
    messages.print(
        f"{found.seconds:.0f} s in all, of which compilation {found.compile_seconds:.0f} s"
    )


def _verdict(claims: list[Any]) -> Any:
    """Make a row per claim."""
    first = next(iter(claims[0].quantities[0].values))
    count = len(claims[0].quantities[0].values)
    headers = ["claim", "first CMDP"]
    if count > 1:
        headers += [f"{count} CMDPs", "holds on"]
    listing = table("Claims (numbers in verdict.md)", headers, [])
    for claim in claims:
        cells = [f"{claim.number}. {claim.sentence}", claim.on(first)]
        if count > 1:
            cells += [claim.over_family(), str(claim.num_held())]
        listing.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in cells))
    return listing
