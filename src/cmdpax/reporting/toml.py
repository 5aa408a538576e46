"""A specification as a TOML file, which `cmdpax sweep` reads."""

import re
import textwrap
from typing import Any

import tomli_w

from cmdpax.errors import CmdpaxError
from cmdpax.experiments.specification import (
    DEFAULT_SETTINGS,
    Grids,
    Models,
    Specification,
    to_optimism,
)
from cmdpax.learners import registered

_TABLES = {"cmdps": Models, "algorithms": Grids}
_ARRAY = re.compile(
    r"\[\n((?: {4}[^ \]].*,\n)+)\]"
)  # never inside a text, whose line breaks are escaped
_WIDTH = 80


class InexpressibleError(CmdpaxError):
    """Something that TOML has no words for."""


def specification_text(specification: dict[str, Any]) -> str:
    """Write a specification, as a manifest has it, as TOML; defaults are left out.

    Raises:
        InexpressibleError: it holds a null that means something, or text that is not Unicode.
    """
    content = _entries(specification, Specification)
    for name, table in _TABLES.items():
        content[name] = [_entries(entry, table) for entry in specification[name]]
    try:
        text = tomli_w.dumps(content)
        text.encode()
    except (TypeError, UnicodeEncodeError) as error:
        raise InexpressibleError(f"the specification has no TOML: {error}.") from None
    return _ARRAY.sub(_narrowed, text)


def _entries(content: dict[str, Any], table: Any) -> dict[str, Any]:
    """Collect the keys of a table that are not at their default, without its tables."""
    entries = {}
    for name, value in content.items():
        field = table.model_fields.get(name)
        default = DEFAULT_SETTINGS.get(name) if table is Specification else None
        if field is not None:
            default = field.get_default(call_default_factory=True)
        if name in _TABLES or value == (list(default) if isinstance(default, tuple) else default):
            continue
        if table is Grids and _is_default(content["name"], name, value):
            continue
        if name == "optimism":
            value = [_without_nulls(one) for one in _listed(value)]
        if table is Grids or name == "optimism":  # one value is a list of one
            value = value[0] if isinstance(value, list) and len(value) == 1 else value
        entries[name] = value
    return entries


def _is_default(algorithm: str, parameter: str, values: Any) -> bool:
    """Tell whether a registered algorithm would choose the same by itself."""
    found = registered(algorithm)
    known = {} if found is None else {one.name: one for one in found.parameters}
    if parameter not in known or len(_listed(values)) != 1:
        return False
    (value,) = _listed(values)
    return value is None or bool(known[parameter].read(value, 1) == known[parameter].default)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _without_nulls(optimism: Any) -> Any:
    """Leave out nulls that are the default anyway, since TOML has no null."""
    if not isinstance(optimism, dict):
        return optimism
    said = {key: value for key, value in optimism.items() if value is not None}
    if to_optimism(said, 1) != to_optimism(optimism, 1):
        raise InexpressibleError("TOML has no null.")
    return said


def _narrowed(array: re.Match[str]) -> str:
    """Put an array on one line where it fits, or on few: tomli-w gives every value its own."""
    values = array[1].replace("\n    ", " ").strip(" ,\n")
    if len(values) <= _WIDTH:
        return f"[{values}]"
    if '"' in values or "{" in values:  # neither a text nor an inline table may be broken
        return array[0]
    lines = textwrap.wrap(values, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n    ".join(["[", *lines]) + "\n]"
