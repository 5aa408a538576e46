"""Values that break programs, as JSON and TOML can say them."""

import datetime
import math
from random import Random
from typing import Any, NamedTuple


class Raw(NamedTuple):
    """Text that goes into a file as it is."""

    text: str


class Pairs(NamedTuple):
    """A table whose keys may be there twice."""

    pairs: tuple[tuple[str, Any], ...]


PLANTED = ("planted_module", "wave", "no_such_module")
"""Modules that nothing but the content of a file names: one of ours, one of Python's, none."""
ADDRESSES = (
    *(f"{name}:fly" for name in PLANTED),
    "planted_module:f:g",
    "planted_module.deeper:f",
    "..:x",
    ":",
    ":x",
    "planted_module:",
    "os:getcwd",
)
TEXTS = (
    "",
    " ",
    "1",
    "nan",
    "true",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\x00",
    "a\nb\rc",
    "\u202eevil",
    "\ud800",
    "é" * 300,
    "x" * 300,
    "../../outside/thesis",
    "/",
    ".",
    "..",
    "con.npz",
    "[bold]markup[/bold]",
    "[/]",
    "{0}{name!r}%s%n",
    "<script>alert(1)</script>",
    "0.3*k^-0.2",
    "9" * 400 + "*k^-1",
    *ADDRESSES,
)
NUMBERS = (
    0,
    -1,
    1,
    2,
    7,
    2**31 - 1,
    2**31,
    2**32,
    2**63,
    2**64,
    -(2**63) - 1,
    10**9,
    -0.0,
    0.5,
    1e308,
    -1e308,
    1e-320,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
)
DATES = (
    datetime.date(2024, 2, 29),
    datetime.time(23, 59, 59),
    datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
)


def long_integer(digits: int) -> Raw:
    """An integer that most programs cannot hold."""
    return Raw("9" * digits)


def nested(depth: int, opening: str = "[", closing: str = "]") -> Raw:
    """Brackets in brackets."""
    return Raw(opening * depth + closing * depth)


def value(rng: Random) -> Any:
    """Any of them."""
    kind = rng.randrange(10)
    if kind < 3:
        return rng.choice(NUMBERS)
    if kind < 5:
        return rng.choice(TEXTS)
    return rng.choice(
        (
            None,
            True,
            False,
            [],
            {},
            [[]],
            [[1, 2], [3]],
            [None],
            ["a", 1],
            {"a": {"b": []}},
            [0] * 1000,
            long_integer(400),
            long_integer(5000),
            Raw("1e400"),
            Raw("-" + "9" * 400),
            nested(200),
            nested(2000),
            nested(100_000),
            nested(500, '{"a":', "1}"),
            *DATES,
        )
    )
