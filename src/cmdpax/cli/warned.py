"""Warnings and interruptions on the command line: one line each, on standard error."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

import cmdpax
from cmdpax.cli.output import messages


@contextmanager
def caught() -> Iterator[None]:
    """Warnings as lines on standard error, each once."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", cmdpax.CmdpaxWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in found):
                messages.print(f"warning: {text}", style="yellow", markup=False)


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Ctrl-C ends a command whose folder goes on with the same command."""
    try:
        yield
    except KeyboardInterrupt:
        messages.print(
            f"interrupted: {folder} keeps what was reported done, the same command goes on",
            markup=False,
        )
        raise typer.Exit(130) from None
