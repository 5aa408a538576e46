"""Tables and numbers, as the commands print them."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cmdpax.errors import plain


class PlainConsole(Console):
    """A console whose texts cannot steer the terminal: names come from files and users."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; the characters of texts that are not printable are escaped."""
        super().print(*(_lines(one) if isinstance(one, str) else one for one in objects), **options)


def _lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.split("\n"))


results = PlainConsole(highlight=False, soft_wrap=True)
messages = PlainConsole(stderr=True, highlight=False, soft_wrap=True)


def number(value: float) -> str:
    """A number for people: ten significant digits at most."""
    return f"{value:.10g}"


def table(title: str, headers: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
    """A table whose cells are text (never markup; a `Text` may have a style), numbers right."""
    result = Table(title=Text(plain(title), style="bold"), title_justify="left", title_style="")
    for position, header in enumerate(headers):
        result.add_column(Text(plain(str(header))), justify="left" if position == 0 else "right")
    for row in rows:
        cells = (cell if isinstance(cell, Text) else Text(plain(str(cell))) for cell in row)
        result.add_row(*cells)
    return result


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on standard output; arrays as lists, infinities as null."""
    print(json.dumps({name: _plain(entry) for name, entry in content.items()}, allow_nan=False))


def _plain(entry: Any) -> Any:
    if isinstance(entry, np.ndarray):
        return [_plain(item) for item in entry.tolist()]
    if isinstance(entry, dict):
        return {name: _plain(item) for name, item in entry.items()}
    if isinstance(entry, list | tuple):
        return [_plain(item) for item in entry]
    if isinstance(entry, float | np.floating):
        return float(entry) if np.isfinite(entry) else None
    return entry
