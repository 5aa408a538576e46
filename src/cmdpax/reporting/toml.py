"""A specification as a TOML file, which `cmdpax sweep` reads."""

import textwrap
from typing import Any

from cmdpax.errors import CmdpaxError
from cmdpax.experiments.specification import Grids, Models, Specification, to_optimism

_TABLES = {"cmdps": Models, "algorithms": Grids}
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_WIDTH = 96


class InexpressibleError(CmdpaxError):
    """Something that TOML has no words for."""


def specification_text(specification: dict[str, Any]) -> str:
    """The file, from a specification as a manifest has it; what is at its default is left out.

    Raises:
        InexpressibleError: it holds a null that means something, or text that is not Unicode.
    """
    lines = _entries(specification, Specification)
    for name, table in _TABLES.items():
        for entry in specification[name]:
            lines += ["", f"[[{name}]]", *_entries(entry, table)]
    try:
        return str("\n".join(lines).encode(), "utf-8") + "\n"
    except UnicodeEncodeError:
        raise InexpressibleError("text is not Unicode.") from None


def _entries(content: dict[str, Any], table: Any) -> list[str]:
    """The keys of a table, one per line, without its tables."""
    lines = []
    for name, value in content.items():
        field = table.model_fields.get(name)
        default = field.get_default(call_default_factory=True) if field else None
        if name in _TABLES or value == (list(default) if isinstance(default, tuple) else default):
            continue
        if name == "optimism":
            value = [_without_nulls(one) for one in _listed(value)]
        if table is Grids or name == "optimism":  # one value is a list of one
            value = value[0] if isinstance(value, list) and len(value) == 1 else value
        lines.append(f"{name} = {_value(value)}")
    return lines


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _without_nulls(optimism: Any) -> Any:
    """TOML has no null; where it is what is meant without a word, it can be left out."""
    if not isinstance(optimism, dict):
        return optimism
    said = {key: value for key, value in optimism.items() if value is not None}
    if to_optimism(said, 1) != to_optimism(optimism, 1):
        raise InexpressibleError("TOML has no null.")
    return said


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return _array(value)
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    raise InexpressibleError(f"TOML has no {value!r}.")


def _array(values: list[Any]) -> str:
    line = ", ".join(_value(value) for value in values)
    if len(line) <= _WIDTH or not all(isinstance(value, int | float) for value in values):
        return f"[{line}]"
    return "[\n" + textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="  ") + "\n]"


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _text(name)


def _text(text: str) -> str:
    """In quotes; control characters are escaped."""
    letters = (
        _ESCAPED.get(
            letter, f"\\u{ord(letter):04x}" if ord(letter) < 32 or letter == "\x7f" else letter
        )
        for letter in text
    )
    return f'"{"".join(letters)}"'
