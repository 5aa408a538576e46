"""Tables and numbers, as the commands print them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cmdpax.errors import plain


class PlainConsole(Console):
    """A console whose texts cannot steer the terminal: names come from files and users."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; characters of texts that are not printable are escaped."""
        super().print(*(_lines(one) if isinstance(one, str) else one for one in objects), **options)


def _lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.split("\n"))


results = PlainConsole(markup=False, highlight=False, soft_wrap=True)
messages = PlainConsole(stderr=True, markup=False, highlight=False, soft_wrap=True)


def number(value: float) -> str:
    """Write a number for people: ten significant digits at most."""
    return f"{value:.10g}"


def cell(value: Any) -> str:
    """Write a fact, or a list of facts, for people."""
    if isinstance(value, np.ndarray | list):
        return ", ".join(cell(item) for item in value) if len(value) else "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    return "none" if value is None else str(value)


def wrote(path: Path) -> None:
    """Say that a file was written."""
    messages.print(f"wrote {path}")


def table(title: str, headers: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
    """Make a table whose cells are text (a `Text` may have a style), numbers to the right."""
    result = Table(title=Text(plain(title), style="bold"), title_justify="left", title_style="")
    for position, header in enumerate(headers):
        result.add_column(Text(plain(str(header))), justify="left" if position == 0 else "right")
    for row in rows:
        cells = (cell if isinstance(cell, Text) else Text(plain(str(cell))) for cell in row)
        result.add_row(*cells)
    return result


def print_facts(title: str, rows: Iterable[Iterable[Any]], *, fold: bool = False) -> None:
    """Print names and what belongs to them; what is too long is folded, or cut."""
    listing = table(title, ("", ""), rows)
    listing.show_header = False
    listing.columns[1].overflow = "fold" if fold else "ellipsis"
    results.print(listing)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on standard output; arrays are lists, infinities null."""
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
