"""What a page is made of: the sweeps in a folder, and the verdict of a reproduction."""

from pathlib import Path
from typing import Any, get_args

from pydantic_core import SchemaValidator, ValidationError
from pydantic_core import core_schema as form

from cmdpax.errors import FileError, ParameterError, in_line
from cmdpax.experiments.ownership import listed
from cmdpax.experiments.reading import Results
from cmdpax.intervals import Decision
from cmdpax.storage.paths import exists, is_folder
from cmdpax.storage.texts import parse_json, read_bytes

_MANIFEST, _VERDICT, _REPLAY = "manifest.json", "verdict.json", "replay.json"
_PAPER = "paper"
LABELS = {
    _PAPER: "The paper's experiment",
    "caps": "Caps on the multipliers",
    "safety": "A margin for strict safety",
    "larger": "Larger CMDPs",
    "long": "Long runs",
}
"""What the sweeps of a reproduction are about."""


def is_sweep(path: Path) -> bool:
    """Tell whether a folder holds a sweep; else it can only hold a reproduction."""
    return exists(path / _MANIFEST)


def find_sweeps(path: Path) -> dict[str, Results]:
    """Open the sweep in a folder, or those of a reproduction by name, the paper's first.

    Raises:
        FileError: there is neither, or a file is damaged.
        ParameterError: no run is finished.
    """
    sweeps: dict[str, Results] = {}
    for name, folder in _folders(path).items():
        results = Results(folder)
        # A reproduction that was interrupted has folders without a finished run.
        if not results.final.is_empty():
            sweeps[name] = results
        elif not sweeps:
            raise ParameterError(f"{folder} holds no finished runs; run the sweep again.")
    return sweeps


def _folders(path: Path) -> dict[str, Path]:
    """Find the folders of sweeps; a page always shows the first one."""
    if is_sweep(path):
        return {folder_name(path): path}
    inside = is_folder(path)
    if not exists(path / _PAPER / _MANIFEST):
        wrong = "holds no results" if inside else "is not a folder"
        raise FileError(
            f"{path} {wrong}; give one that `sweep` or `reproduce` wrote, or a file that "
            "agent.save wrote."
        )
    found = [name for name in listed(path) if is_sweep(path / name)]
    known = list(LABELS)
    found.sort(key=lambda name: (known.index(name) if name in known else len(known), name))
    return {name: path / name for name in found}


def folder_name(path: Path) -> str:
    """Name a folder, without the folders that it is in."""
    return path.resolve().name or str(path)


# ------------------------------------------------------------------------------- the verdict's form


def _entry(**fields: form.CoreSchema) -> form.CoreSchema:
    """Describe a JSON object that has exactly these fields."""
    required = {name: form.typed_dict_field(field) for name, field in fields.items()}
    return form.typed_dict_schema(required, extra_behavior="forbid")


_TEXT, _WHOLE, _NUMBER = (
    form.str_schema(),
    form.int_schema(),
    form.float_schema(allow_inf_nan=False),
)
_DECISION = form.literal_schema(list(get_args(Decision)))
_INTERVAL = _entry(
    mean=form.nullable_schema(_NUMBER), half=form.nullable_schema(_NUMBER), size=_WHOLE
)
_QUANTITY = _entry(
    text=_TEXT,
    side=form.literal_schema(["below", "above"]),
    bound=_NUMBER,
    first_cmdp=_INTERVAL,
    family=_INTERVAL,
    cmdps_held=_WHOLE,
)
_CLAIM = _entry(
    number=_WHOLE,
    sentence=_TEXT,
    first_cmdp=_DECISION,
    family=_DECISION,
    cmdps=_WHOLE,
    cmdps_held=_WHOLE,
    remark=_TEXT,
    quantities=form.list_schema(_QUANTITY),
)
_CLAIMS = SchemaValidator(form.list_schema(_CLAIM))


def read_claims(path: Path) -> list[dict[str, Any]] | None:
    """Read the verdict of a reproduction, if it is there."""
    file = path / _VERDICT
    if not exists(file):
        return None
    try:
        claims: list[dict[str, Any]] = _CLAIMS.validate_json(read_bytes(file), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _damaged(file, f"{place}: {first['msg']}" if place else first["msg"]) from None
    return claims


def read_command(path: Path) -> str | None:
    """Read the command that made a reproduction, if it is there."""
    file = path / _REPLAY
    if not exists(file):
        return None
    try:
        command = parse_json(read_bytes(file))["command"]
        if not isinstance(command, str):
            raise ValueError("its command is no text")
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(file, str(error)) from None
    return command


def _damaged(path: Path, reason: str) -> FileError:
    return FileError(
        f"{path} is damaged ({in_line(reason)}); run `cmdpax reproduce` again to write it anew."
    )
