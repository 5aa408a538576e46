"""The files of the page, and how they are filled."""

import functools
import re
from importlib.resources import files


@functools.cache
def asset(name: str) -> str:
    """Read a file in `assets/`."""
    return (files("cmdpax.reporting") / "assets" / name).read_text(encoding="utf-8")


def fill(template: str, **slots: str) -> str:
    """Put HTML into the slots of a template, in one pass: what is put in is not searched again."""
    return re.sub(r"<!-- slot: (\w+) -->", lambda found: slots[found[1]], template)
