"""`cmdpax env`: built-in models."""

import json
from pathlib import Path
from typing import Annotated

import typer

import cmdpax
from cmdpax.cli.output import messages, results, table
from cmdpax.cli.parameters import parse_parameter

environments = typer.Typer(help="Built-in CMDPs.", no_args_is_help=True)


@environments.command("list")
def list_environments() -> None:
    """List the built-in CMDPs with their parameters and defaults."""
    rows = []
    for name in cmdpax.environments.names():
        summary, defaults = cmdpax.environments.describe(name)
        settings = ", ".join(f"{key}={json.dumps(value)}" for key, value in defaults.items())
        rows.append((name, summary, settings))
    listing = table("Environments", ("name", "model", "parameters (-p key=value)"), rows)
    for column in listing.columns:
        column.justify, column.overflow = "left", "fold"
    listing.show_lines = True
    results.print(listing, soft_wrap=False)


@environments.command("make")
def make_environment(
    name: Annotated[str, typer.Argument(help="One of `cmdpax env list`.")],
    out: Annotated[Path, typer.Option("--out", help="The .npz or .json file to write.")],
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", help="key=value, as often as needed."),
    ] = None,
) -> None:
    """Write a built-in CMDP to a file.

    Example: cmdpax env make random -p num_states=10 -p seed=7 --out random.npz
    """
    parameters = dict(parse_parameter(text) for text in parameter or [])
    cmdp = cmdpax.environments.make(name, **parameters)
    cmdpax.save(cmdp, out)
    messages.print(f"wrote {out}: {cmdp!r}, fingerprint {cmdp.fingerprint[:16]}")
