"""Warnings and interruptions on the command line: one line each, on standard error."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

import cmdpax
from cmdpax.cli.output import messages


@contextmanager
def caught() -> Iterator[None]:
    """Print warnings as lines on standard error when they happen, each once."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            messages.print(f"warning: {message}", style="yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("always", cmdpax.CmdpaxWarning)
        warnings.showwarning = tell  # type: ignore[assignment]
        yield


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Let Ctrl-C end a command that goes on when it is given again."""
    try:
        yield
    except KeyboardInterrupt:
        messages.print(
            f"interrupted: {folder} keeps what was reported done, the same command goes on"
        )
        raise typer.Exit(130) from None
