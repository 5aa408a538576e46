"""What the user of an algorithm chooses: a typed record, and what is said about each of its fields.

A record is a `NamedTuple` whose annotations say what a field holds and, with `Parameter`, which
values it takes and what it means:

    class Parameters(NamedTuple):
        step_size: Annotated[Scheduled, Parameter("step size", above=0)] = 0.1
        gain: Annotated[float, Parameter("weight of the shortfall itself", at_least=0)] = 2.0

Keyword arguments, keys of a specification, options of the command line, entries of a manifest and
columns of a table all come from these fields. Numbers and schedules are data: one compiled program
serves all of them, and lists of numbers (`Numbers`: one for all constraints, or one for each) need
one program per length. Whole numbers, flags and choices are compiled in.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeAlias

import numpy as np

from cmdpax.checks import check_choice, real_number, require_flag, whole_number
from cmdpax.errors import ParameterError, nearest_name, shown
from cmdpax.schemes.schedules import Schedule, Scheduled, as_schedule, parse_schedule, values

Numbers: TypeAlias = float | int | tuple[float, ...]
"""One number for all constraints, or one for each; a record of choices holds a tuple."""

_KINDS: dict[Any, str] = {
    Numbers: "numbers",
    Scheduled: "schedule",
    Schedule: "schedule",
    float: "number",
    int: "whole number",
    bool: "flag",
    str: "choice",
}
_UNCAST: dict[str, Callable[[Any], Any]] = {
    "schedule": float,
    "number": float,
    "numbers": lambda cell: [float(part) for part in str(cell).split()],
    "whole number": int,
    "flag": lambda cell: cell in (True, "true"),
    "choice": str,
}
SCHEDULE_PARTS = ("", "_exponent", "_offset")
"""The endings of the names of a schedule's three columns."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One choice that the user of an algorithm makes.

    Attributes:
        help: what it means, in a few words.
        symbol: its letter in formulas and on axes, if it has one.
        above: it must exceed this number.
        at_least: it must not be below this number.
        at_most: it must not exceed this number.
        choices: the words that it may be, if it is a word.
        hint: what to do instead, for the error about a number out of range.
        added: whether files of earlier versions do not have it; its default is what they did.
        name: the field's name; taken from the record, like the next two.
        kind: "number", "numbers", "schedule", "whole number", "flag" or "choice".
        default: what it is if the user says nothing.
    """

    help: str = ""
    symbol: str = ""
    above: float | int = -math.inf
    at_least: float | int = -math.inf
    at_most: float | int = math.inf
    choices: tuple[str, ...] = ()
    hint: str = ""
    added: bool = False
    name: str = ""
    kind: str = "number"
    default: Any = None

    @property
    def is_compiled_in(self) -> bool:
        """Whether runs with different values need different programs."""
        return self.kind in ("whole number", "flag", "choice")

    @property
    def range(self) -> str:
        """The values that it takes, in words: "> 0", "≥ 0", "true or false"."""
        if self.kind == "flag":
            return "true or false"
        if self.kind == "choice":
            return ", ".join(self.choices)
        if self.at_least == self.at_most:
            return f"{self.at_least:g}"
        at_least = self.at_least if self.at_least > self.above else -math.inf
        bounds = (("> ", self.above), ("≥ ", at_least), ("≤ ", self.at_most))
        return ", ".join(f"{sign}{bound:g}" for sign, bound in bounds if math.isfinite(bound))

    # ------------------------------------------------------------------------------------ reading

    def read(self, given: Any, num_episodes: int) -> Any:
        """What the user gave, checked: a `Schedule`, a number, a flag or a word."""
        if self.kind == "flag":
            return require_flag(self.name, given)
        if self.kind == "choice":
            check_choice(self.name, given, self.choices)
            return given
        if self.kind == "schedule":
            schedule = _as_schedule(self.name, given)
            self._require_in_range(given, *_ends(schedule, num_episodes))
            return schedule
        if self.kind == "numbers":
            several = self._numbers(given)
            self._require_in_range(given, min(several), max(several))
            return several
        number = self._number(given)
        self._require_in_range(given, number, number)
        return number

    def _numbers(self, given: Any) -> tuple[float, ...]:
        parts = given.replace(",", " ").split() if isinstance(given, str) else given
        if not isinstance(parts, list | tuple | np.ndarray) or np.ndim(parts) == 0:
            parts = [parts]
        try:
            found = tuple(float(x) if isinstance(x, str) else real_number(x) for x in parts)
        except ValueError:
            found = ()
        if not found or not all(map(math.isfinite, found)):
            raise ParameterError(
                f"{self.name} is {shown(given)}, it must be a number, or a list with one number "
                "for each constraint."
            )
        return found

    def _number(self, given: Any) -> Any:
        whole = self.kind == "whole number"
        number = whole_number(given) if whole else real_number(given)
        if number is None or not (whole or math.isfinite(number)):
            sign = "positive " if self.above == 0 else ""
            what = f"a {sign}{'whole ' if whole else ''}number"
            raise ParameterError(f"{self.name} is {shown(given)}, it must be {what}.")
        return number

    def _require_in_range(self, given: Any, low: float | int, high: float | int) -> None:
        if low > self.above and low >= self.at_least and high <= self.at_most:
            return
        if self.at_least == self.at_most:
            what = f"be {self.at_least:g}"
        elif high > self.at_most:
            what = f"not exceed {self.at_most:g}"
        elif low <= self.above:
            positive = "be positive" if self.kind == "schedule" else "be a positive number"
            what = positive if self.above == 0 else f"exceed {self.above:g}"
        else:
            what = "not be negative" if self.at_least == 0 else f"be at least {self.at_least:g}"
        text = given if isinstance(given, Schedule) else shown(given)
        hint = f"; {self.hint}" if self.hint else ""
        raise ParameterError(f"{self.name} is {text}, it must {what}{hint}.")

    # ------------------------------------------------------------------------- files and tables

    def plain(self, value: Any) -> Any:
        """The value as JSON holds it: a schedule is the list of its three numbers."""
        return list(value) if self.kind in ("schedule", "numbers") else value

    def restore(self, plain: Any, num_episodes: int) -> Any:
        """The value that `plain` wrote down."""
        parts = self.kind == "schedule" and isinstance(plain, list | tuple) and len(plain) == 3
        return self.read(Schedule(*plain) if parts else plain, num_episodes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns in a table of runs; a schedule has three."""
        parts = SCHEDULE_PARTS if self.kind == "schedule" else ("",)
        return tuple(self.name + part for part in parts)

    def cells(self, value: Any) -> tuple[Any, ...]:
        """The cells of its columns; several numbers are one text."""
        if self.kind == "numbers":
            return (" ".join(repr(number).removesuffix(".0") for number in value),)
        return tuple(value) if self.kind == "schedule" else (value,)

    def from_row(self, row: Mapping[str, Any]) -> Any:
        """The value in its columns, as `plain` would write it.

        In a table of several algorithms, parameters of one name and different kinds share a type.
        """
        cells = [_UNCAST[self.kind](row[name]) for name in self.columns]
        return cells if self.kind == "schedule" else cells[0]


def _as_schedule(name: str, given: Any) -> Schedule:
    """A number, a schedule, a text such as "0.3*k^-0.2", or a table of a schedule's numbers."""
    if isinstance(given, str):
        return as_schedule(name, parse_schedule(name, given))
    if isinstance(given, Mapping):
        for key in given:
            if key not in Schedule._fields:
                hint = nearest_name(key, Schedule._fields)
                raise ParameterError(f"{name} has the unknown key {key!r}; {hint}.")
        if "initial" not in given:
            raise ParameterError(f"{name} is {shown(given)}, it needs the key 'initial'.")
        given = Schedule(*(given.get(key, 0.0) for key in Schedule._fields))
    return as_schedule(name, given)


def _ends(schedule: Schedule, num_episodes: int) -> tuple[float, float]:
    """The smallest and the largest x_k: schedules are monotone in k.

    What underflows keeps the sign that it has at every k.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        ends = values(schedule, [1, num_episodes])
    ends = np.where((ends == 0) | np.isnan(ends), schedule.initial, ends)
    return float(ends.min()), float(ends.max())


def parameters_of(record: Any) -> tuple[Parameter, ...]:
    """The fields of a typed record.

    Raises:
        ParameterError: it is not a `NamedTuple`, or a field has a type that cannot be chosen.
    """
    if not (isinstance(record, type) and issubclass(record, tuple) and hasattr(record, "_fields")):
        raise ParameterError(
            f"the parameters of an algorithm are {shown(record)}; declare them as a NamedTuple."
        )
    hints = typing.get_type_hints(record, include_extras=True)
    defaults: dict[str, Any] = getattr(record, "_field_defaults", {})
    return tuple(
        _parameter(name, hints.get(name), defaults.get(name))
        for name in getattr(record, "_fields", ())
    )


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    said = Parameter()
    if typing.get_origin(hint) is Annotated:
        hint, *notes = typing.get_args(hint)
        said = next((note for note in notes if isinstance(note, Parameter)), said)
    known = [kind for annotation, kind in _KINDS.items() if _same(hint, annotation)]
    if not known or default is None:
        what = "no default" if known else f"the type {hint}"
        raise ParameterError(
            f"the parameter {name} has {what}; declare it as Scheduled, float, Numbers, int, bool "
            "or str, with a default."
        )
    found = dataclasses.replace(said, name=name, kind=known[0])
    return dataclasses.replace(found, default=found.read(default, 1))


def _same(hint: Any, annotation: Any) -> bool:
    """Whether two annotations are the same; a union may be written in any order."""
    if isinstance(annotation, types.UnionType):
        return set(typing.get_args(hint)) == set(typing.get_args(annotation))
    return bool(hint is annotation)


def choose(
    record: Any, parameters: Iterable[Parameter], given: Mapping[str, Any], num_episodes: int
) -> Any:
    """The record of what was given and of the defaults; None stands for a default."""
    return record(
        **{
            one.name: one.default
            if given.get(one.name) is None
            else one.read(given[one.name], num_episodes)
            for one in parameters
        }
    )


def parameters_in_words(chosen: Any) -> str:
    """A record in words: step_size 0.1, regularization 0.02, max_multiplier 6, margin 0."""
    return ", ".join(f"{name} {in_words(value)}" for name, value in chosen._asdict().items())


def in_words(value: Any) -> str:
    """The value of a parameter in words."""
    if isinstance(value, tuple) and not isinstance(value, Schedule):
        return " ".join(f"{number:g}" for number in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
