"""What a target is: valid inputs, how they are changed, and what is done with them."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fuzzing.cases import Case, Input
from fuzzing.files import mutate_one


class UnsoundError(AssertionError):
    """What was read is not what it should be."""


class Target(NamedTuple):
    """A border of the library.

    Attributes:
        name: for the command line, the tables and the files.
        samples: makes the valid inputs; all of them must be accepted.
        run: does something with an input that lies in the working directory; returns if it was
            accepted, and raises an error of cmdpax if it was refused. Anything else is a finding.
        mutate: changes an input; files to take parts from are given.
        weight: its share of the time.
        imports: whether the input may say what is imported.
        outputs: how the names of files begin that may be there afterwards, if they were not before.
    """

    name: str
    samples: Callable[[], list[Input]]
    run: Callable[[Path, dict[str, Any]], None]
    mutate: Callable[[Random, Input, Sequence[bytes]], Input] = mutate_one
    weight: float = 1.0
    imports: bool = False
    outputs: re.Pattern[str] = re.compile(r"(?i)out\.")


def generate(target: Target, case: Case, samples: Sequence[Input]) -> Input:
    """The input of a case; those with negative numbers are the valid ones."""
    if case.number < 0:
        return samples[-case.number - 1]
    rng = Random(f"{case.seed}/{case.target}/{case.number}")
    donors = [entry.content for sample in samples for entry in sample.entries]
    begun = rng.choice(samples) if samples else Input((), {})
    return target.mutate(rng, begun, donors)


def require(holds: bool, sentence: str) -> None:
    """Say what is wrong with a result."""
    if not holds:
        raise UnsoundError(sentence)
