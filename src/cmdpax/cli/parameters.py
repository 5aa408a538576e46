"""`-p key=value`: how every command takes the parameters of an algorithm, scheme or environment."""

from collections.abc import Sequence
from typing import Any

from cmdpax.errors import ParameterError, nearest_name
from cmdpax.storage.texts import parse_json


def parse_parameter(text: str) -> tuple[str, Any]:
    """Read `key=value`; the value is read as JSON where it is JSON, else as text."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ParameterError(f"parameter {text!r} has no value; write key=value.")
    try:
        return key, parse_json(value)
    except ValueError:
        return key, value


def chosen_parameters(
    parameters: Sequence[str] | None, known: Sequence[str], refusal: str
) -> dict[str, Any]:
    """Read `key=value` pairs as keyword arguments; a name that is not known is refused."""
    chosen: dict[str, Any] = {}
    for text in parameters or ():
        key, value = parse_parameter(text)
        if key not in known:
            raise ParameterError(f"{refusal} {key!r}; {nearest_name(key, known)}.")
        chosen[key] = value
    return chosen
