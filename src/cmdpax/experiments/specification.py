"""Specifications say what to run; they come from Python or a TOML file and are checked here.

num_episodes = 4000
seeds = 5

[[cmdps]]
environment = "random"
parameters = { seed = [123, 124] }        # lists make a grid

[[algorithms]]
name = "regularized-primal-dual"
step_size = [0.05, 0.1, "0.3*k^-0.2"]     # numbers or schedules
regularization = [0.01, 0.02]
"""

import dataclasses
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from cmdpax.checks import require_count, require_number
from cmdpax.environments import describe
from cmdpax.errors import CmdpaxError, FileError, ParameterError, in_line, nearest_name, shown
from cmdpax.learners import Algorithm, address_of, as_algorithm, registered, require_name
from cmdpax.learners.optimism import Optimism, as_optimism
from cmdpax.learning.settings import RunSettings, as_seeds, require_countable
from cmdpax.schemes.schedules import Schedule
from cmdpax.storage.limits import require_room
from cmdpax.storage.texts import read_toml

DEFAULT_RECORDED = 1000
_DEEPEST = 20
_LARGEST = 2**63
_VALUE_BYTES = 64


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """Read one value as a list of one."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _plain(value: Any, place: str = "", depth: int = 0) -> Any:
    """Make a value one that a file could hold: a schedule becomes a table, an array a list."""
    if depth > _DEEPEST:
        raise ParameterError(f"{place[:40]}… is nested too deeply.")
    if isinstance(value, BaseModel):
        return value
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Schedule | Optimism):
        value = value._asdict()
    if isinstance(value, dict):
        return {
            _key(key, place): _plain(entry, f"{place}.{key}" if place else str(key), depth + 1)
            for key, entry in value.items()
        }
    if isinstance(value, list | tuple | range):
        require_room(f"{place}, a list of {len(value):,} values,", len(value) * _VALUE_BYTES)
        return [_plain(entry, f"{place}[{i}]", depth + 1) for i, entry in enumerate(value)]
    return _scalar(value, place)


def _key(key: Any, place: str) -> str:
    if not isinstance(key, str):
        raise ParameterError(f"{place or 'it'} has the key {shown(key)}, keys must be text.")
    return str(_scalar(key, place))


def _scalar(value: Any, place: str) -> Any:
    """Refuse what JSON and TOML do not both have: dates, objects, integers beyond 64 bits."""
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise ParameterError(f"{place} is an integer beyond 64 bits; write it as 1e20 or the like.")
    if isinstance(value, str) and not _is_unicode(value):
        raise ParameterError(f"{place} is {shown(value)}, which is not Unicode.")
    if isinstance(value, int | float | str | Algorithm | None) or callable(value):
        return value
    kind = type(value).__name__
    raise ParameterError(f"{place} is a {kind}, it must be a number, a text, a list or a table.")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


Grid: TypeAlias = Annotated[tuple[Any, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
"""One value or a list of them."""


class Models(BaseModel):
    """CMDPs: an environment with a grid of parameters, or a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    environment: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    file: str | None = None

    @model_validator(mode="after")
    def _check(self) -> "Models":
        if (self.environment is None) == (self.file is None):
            raise ParameterError("give either an environment or a file.")
        if self.environment is None:
            if self.parameters:
                raise ParameterError("parameters belong to an environment, not to a file.")
            return self
        _, known = describe(self.environment)
        for name in self.parameters:
            if name not in known:
                raise ParameterError(
                    f"environment {self.environment!r} has no parameter {name!r}; "
                    f"{nearest_name(name, known)}."
                )
            if self.parameters[name] == []:
                raise ParameterError(f"parameters.{name} is [], it must have at least one value.")
        return self


class Grids(BaseModel):
    """An algorithm and its parameters, each one value or a list; all combinations are run."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Grid]  # the algorithm's parameters

    name: str
    optimism: Grid | None = None

    @model_validator(mode="before")
    @classmethod
    def _address(cls, content: Any) -> Any:
        """Replace a factory by its address, and leave out nulls."""
        if not isinstance(content, dict):
            return content
        given = {key: value for key, value in content.items() if value is not None}
        name = given.get("name")
        if callable(name) or isinstance(name, Algorithm):
            return given | {"name": address_of(name)}
        return given

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> "Grids":
        require_name(self.name)
        # Without importing, nothing is known about the parameters of a user's own algorithm.
        importing = (info.context or {"importing": True})["importing"]
        algorithm = as_algorithm(self.name) if importing else registered(self.name)
        if algorithm is not None:
            self._check_parameters(algorithm)
        for value in self.optimism or ():
            to_optimism(value, 1)
        return self

    def _check_parameters(self, algorithm: Algorithm) -> None:
        known = {one.name: one for one in algorithm.parameters}
        for name, values in self.parameters.items():
            if name not in known:
                hint = nearest_name(name, (*known, *Grids.model_fields))
                raise ParameterError(f"unknown key {name}; {hint}.")
            for value in values:
                known[name].read(value, 1)

    @property
    def parameters(self) -> dict[str, tuple[Any, ...]]:
        """The values of every parameter that is given; None stands for the default."""
        given = self.model_extra or {}
        return {name: values for name, values in given.items() if values != (None,)}


class Specification(BaseModel):
    """All runs of a sweep: CMDPs × algorithms × parameters × seeds.

    The other keys are settings of the runs (`RunSettings`): `num_episodes`, `observations`,
    `precision`, `record` (by default 1,000 episodes, evenly spaced), `unsafe_at`, `stationary` and
    `baseline` (of the algorithms that start from one, on every CMDP).

    Attributes:
        cmdps: environments with parameters, or files.
        algorithms: names with grids of parameters.
        seeds: the number of runs (with seeds 0, 1, …), or a list of seeds.
        optimism: the profile of algorithms that do not give their own.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    cmdps: tuple[Models, ...] = Field(min_length=1)
    algorithms: tuple[Grids, ...] = Field(min_length=1)
    seeds: Any = 1
    optimism: Any = "empirical"

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, content: Any) -> Any:
        """Fill in defaults, refuse unknown keys, and make all values plain."""
        if not isinstance(content, dict):
            return _plain(content)
        known = (*cls.model_fields, *SHARED)
        for name in content:
            if name not in known:
                raise ParameterError(f"unknown key {name}; {nearest_name(name, known)}.")
        if "num_episodes" not in content:
            raise ParameterError("num_episodes is missing.")
        return _plain(DEFAULT_SETTINGS | content)

    @model_validator(mode="after")
    def _check(self) -> "Specification":
        as_seeds(self.seeds)
        to_optimism(self.optimism, self.settings.num_episodes)
        for grids in self.algorithms:
            if (known := registered(grids.name)) is not None:
                require_countable(known, self.settings)
        known_ones = [registered(grids.name) for grids in self.algorithms]
        wants = [one is None or one.needs_baseline for one in known_ones]
        if self.settings.baseline is not None and not any(wants):
            raise ParameterError(
                "baseline was given, but none of the algorithms starts from a policy that is known "
                "to be safe; leave it out."
            )
        return self

    @property
    def settings(self) -> RunSettings:
        """The settings that all runs share."""
        return RunSettings.from_dict(self.model_extra or {})

    @property
    def num_episodes(self) -> int:
        """K of every run."""
        return self.settings.num_episodes

    @property
    def shared(self) -> dict[str, Any]:
        """The settings that all runs of a folder share, as JSON holds them."""
        content = self.model_dump(mode="json")
        return {name: content[name] for name in SHARED}


_LEFT_TO_LEARN = ("potential", "log")
SHARED = tuple(
    field.name for field in dataclasses.fields(RunSettings) if field.name not in _LEFT_TO_LEARN
)
"""The settings that all runs of a folder share: those of `learn` that a specification has."""
DEFAULT_SETTINGS = {
    name: value
    for name, value in RunSettings(num_episodes=1, record=DEFAULT_RECORDED).to_dict().items()
    if name in SHARED and name != "num_episodes"
}


def to_optimism(value: Any, num_episodes: int) -> Optimism:
    """Read a profile's name, or a table of a profile and what differs from it."""
    if not isinstance(value, dict):
        return as_optimism(value, num_episodes)
    changes = dict(value)
    known = tuple(Optimism.__dataclass_fields__)
    for key in value:
        if key not in (*known, "profile"):
            hint = nearest_name(key, (*known, "profile"))
            raise ParameterError(f"optimism has the unknown key {key!r}; {hint}.")
        is_default = key == "unvisited_rewards" and value[key] is None
        if key in ("scale", "unvisited_rewards", "failure_probability") and not is_default:
            changes[key] = require_number(f"optimism's {key}", value[key])
    if value.get("num_episodes") is not None:
        changes["num_episodes"] = require_count("optimism's num_episodes", value["num_episodes"])
    profile = changes.pop("profile", None)
    base = Optimism() if profile is None else as_optimism(profile, num_episodes)
    return base.replace(**changes)


def read_specification(
    given: "Specification | dict[str, Any] | str | os.PathLike[str]", *, importing: bool = True
) -> Specification:
    """Read a specification from a dict or a TOML file; one that is read already stays as it is.

    Args:
        given: the specification. The files that a TOML file names are relative to it.
        importing: whether algorithms with an address, "module:factory", are imported, to see that
            they are there. What a user gives to `sweep` may be a reason to import; what a file of
            results says is not.

    Raises:
        ParameterError: something is unknown or impossible; the message says where.
        FileError: the file cannot be read.
    """
    if isinstance(given, Specification):
        return given
    if isinstance(given, dict):
        return _validated("the specification", given, importing)
    path = Path(given)
    with _modules_beside(path):
        specification = _validated(str(path), read_toml(path), importing)
    for entry in specification.algorithms if importing else ():
        _require_beside(path, entry.name)
    models = tuple(_beside(path, entry) for entry in specification.cmdps)
    return specification.model_copy(update={"cmdps": models})


@contextmanager
def _modules_beside(path: Path) -> Iterator[None]:
    """Let the user's own algorithms be found in the folder of a TOML file."""
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _require_beside(path: Path, name: str) -> None:
    """Refuse a module from another folder if there is one of its name beside the file.

    Python imports a module once: the first of that name would silently stand for both.
    """
    module, _, factory = name.partition(":")
    beside = path.parent.resolve() / f"{module.split('.')[0]}.py"
    if not factory or not beside.is_file():
        return
    found = getattr(sys.modules[module.split(".")[0]], "__file__", None)
    if found is not None and Path(found).resolve() != beside:
        raise ParameterError(
            f"{path}: {name} would be the {module} of {Path(found).parent}, which is imported "
            f"already, not {beside}; rename one of them, or begin a new process."
        )


def _beside(path: Path, entry: Models) -> Models:
    """Make the path of a CMDP's file relative to the TOML file that names it."""
    if entry.file is None:
        return entry
    file = str(path.parent / entry.file)
    if not _is_unicode(file):
        raise FileError(f"the name of the folder of {path} is not Unicode; rename it.")
    return entry.model_copy(update={"file": file})


def _validated(source: str, content: dict[str, Any], importing: bool) -> Specification:
    try:
        return Specification.model_validate(content, context={"importing": importing})
    except ValidationError as error:
        raise ParameterError(f"{source}: {in_line(_sentence(error))}") from None
    except CmdpaxError as error:
        raise ParameterError(f"{source}: {in_line(error)}") from None


def _sentence(error: ValidationError) -> str:
    """Say where the first problem is, what it is, and the nearest name."""
    first = error.errors()[0]
    location = first["loc"]
    place = _place(location)
    if first["type"] == "extra_forbidden":
        hint = nearest_name(str(location[-1]), Models.model_fields)
        table = _place(location[:-1])
        key = f"{table}.{location[-1]}" if table else str(location[-1])
        return f"unknown key {key}; {hint}."
    if first["type"] == "missing":
        return f"{place} is missing."
    if "error" in first.get("ctx", {}):  # one of our own sentences
        sentence = str(first["ctx"]["error"])
        return sentence if sentence.startswith(place) else f"{place}: {sentence}"
    message = first["msg"].rstrip(".")
    return f"{place} is {shown(first['input'])}: {message[0].lower()}{message[1:]}."


def _place(location: tuple[int | str, ...]) -> str:
    """Write a location as algorithms[0].step_size, without pydantic's names of types."""
    parts = [part for part in location if isinstance(part, int) or part.isidentifier()]
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in parts).lstrip(".")
