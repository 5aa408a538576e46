"""The registered algorithms and their parameters as a table: `<!-- table: algorithms -->`."""

from typing import Any

from cmdpax.learners import Algorithm, algorithms, as_algorithm
from cmdpax.schemes.parameters import in_words

_COMMENT = "<!-- table: algorithms -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the table into one page (an event of MkDocs)."""
    return markdown.replace(_COMMENT, table()) if _COMMENT in markdown else markdown


def table() -> str:
    """A row for each parameter of each algorithm."""
    names = ("algorithm", "anytime", "parameter", "symbol", "default", "range", "")
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|"
    rows = [row for name in algorithms() for row in _rows(as_algorithm(name))]
    return "\n".join([head, *rows])


def _rows(algorithm: Algorithm) -> list[str]:
    found = []
    for place, one in enumerate(algorithm.parameters):
        name, anytime = (f"`{algorithm.name}`", "yes" if algorithm.anytime else "no")
        first = (name, anytime) if place == 0 else ("", "")
        kind = ", or a schedule" if one.kind == "schedule" else ""
        cells = (
            *first,
            f"`{one.name}`",
            one.symbol,
            in_words(one.default),
            one.range,
            one.help + kind,
        )
        found.append("| " + " | ".join(cells) + " |")
    return found
