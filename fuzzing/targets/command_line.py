"""The command line in this process: its exit code, and what it says."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator, Sequence
from unittest import mock

from cmdpax.cli import main
from cmdpax.errors import CmdpaxError
from fuzzing.targets.base import UnsoundError, require

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LONGEST = 20_000


class RefusedError(CmdpaxError):
    """The command ended with the exit code 1 or 2, and said why."""


def run_command(arguments: Sequence[str]) -> str:
    """What the command prints.

    Raises:
        RefusedError: it ended with an error, in the way that is promised.
        UnsoundError: it ended in another way.
    """
    with _captured() as (output, errors), mock.patch.object(sys, "argv", ["cmdpax", *arguments]):
        try:
            main()
            code: object = 0
        except SystemExit as ending:
            code = ending.code
    said, told = _text(output), _text(errors)
    for stream, text in (("standard output", said), ("standard error", told)):
        found = _CONTROLS.search(text)
        require(found is None, f"{stream} has the raw character {found and found[0]!r}")
        require("Traceback (most recent" not in text, f"{stream} has a traceback: {text[-2000:]}")
    if code in (0, None):
        return said
    if code == 1:
        _require_sentence(told)
    elif code != 2:
        raise UnsoundError(f"the exit code is {code!r}; it said {told!r}")
    raise RefusedError("the command said why.")


def _require_sentence(told: str) -> None:
    """The last thing that is said is one error; lines that go on are indented."""
    lines = [line for line in told.splitlines() if line.strip() and not line.startswith(" ")]
    errors = [line for line in lines if line.startswith("error: ")]
    require(len(errors) == 1 and lines[-1] == errors[0], f"this is not one sentence: {told!r}")
    require(len(errors[0]) < _LONGEST, f"the sentence has {len(errors[0])} characters")


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Both streams, encoded as a terminal would have them."""
    output = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="")
    errors = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace", newline="")
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        yield output, errors


def _text(stream: io.TextIOWrapper) -> str:
    if stream.closed:
        return ""
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
