"""Warnings on the command line: one line each, on standard error."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import cmdpax
from cmdpax.cli.output import messages


@contextmanager
def caught() -> Iterator[None]:
    """Warnings as lines on standard error, each once."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", cmdpax.CmdpaxWarning)
        yield
    for text in dict.fromkeys(str(warning.message) for warning in found):
        messages.print(f"warning: {text}", style="yellow", markup=False)
