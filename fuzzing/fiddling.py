"""A folder whose files are gone, renamed, swapped, or replaced, or have company."""

from collections.abc import Callable
from random import Random

from fuzzing.cases import CANARY, Entry, Input

_OUTSIDE = "../../outside"
_FOREIGN = (
    "notes.txt",
    ".package.json.bak",
    ".notes.npz.old",
    "final/thesis.parquet",
    "curves/.mine.parquet.x",
    "parts/todo.json",
    "cmdps/own.npz",
    "final/deeper/x.parquet",
)


def fiddle(rng: Random, given: Input) -> Input:
    """The input with something done to one of its files or folders."""
    return rng.choice(_WAYS)(rng, given) if _own(given) else given


def _own(given: Input) -> list[Entry]:
    """What may be changed: files in folders, but for those of somebody else."""
    return [one for one in given.entries if not one.foreign and "/" in one.path]


def _pick(rng: Random, given: Input) -> Entry:
    return rng.choice(_own(given))


def _without(given: Input, *gone: Entry) -> Input:
    return given._replace(entries=tuple(one for one in given.entries if one not in gone))


def _gone(rng: Random, given: Input) -> Input:
    return _without(given, _pick(rng, given))


def _folder_gone(rng: Random, given: Input) -> Input:
    parent = _pick(rng, given).path.rpartition("/")[0] + "/"
    inside = [one for one in given.entries if one.path.startswith(parent) and not one.foreign]
    return _without(given, *inside) if len(inside) < len(given.entries) - 2 else given


def _renamed(rng: Random, given: Input) -> Input:
    entry = _pick(rng, given)
    parent, _, name = entry.path.rpartition("/")
    names = (f"0{name[1:]}", f"{name}.bak", f".{name}", "x" * 200, name.upper(), "\x1b[31m")
    return _without(given, entry).with_entry(entry._replace(path=f"{parent}/{rng.choice(names)}"))


def _swapped(rng: Random, given: Input) -> Input:
    one, other = _pick(rng, given), _pick(rng, given)
    return given.with_entry(one._replace(content=other.content)).with_entry(
        other._replace(content=one.content)
    )


def _as_folder(rng: Random, given: Input) -> Input:
    entry = _pick(rng, given)
    mine = Entry(f"{entry.path}/mine.txt", b"mine", foreign=True)
    return _without(given, entry).with_entry(mine)


def _as_pipe(rng: Random, given: Input) -> Input:
    return given.with_entry(Entry(_pick(rng, given).path, kind="pipe"))


def _as_link(rng: Random, given: Input) -> Input:
    """To a file outside, to nothing, to itself, to a device, or to a copy."""
    entry = _pick(rng, given)
    name = entry.path.rpartition("/")[2]
    places = (f"../{_OUTSIDE}/{CANARY}", "nowhere", name, "/dev/zero", "/dev/null", ".")
    return given.with_entry(Entry(entry.path, kind="link", leads_to=rng.choice(places)))


def _folder_as_link(rng: Random, given: Input) -> Input:
    """A folder of ours leads outside, where files of the same endings lie."""
    path = _pick(rng, given).path.rpartition("/")[0]
    if any(one.foreign and one.path.startswith(f"{path}/") for one in given.entries):
        return given
    inside = [one for one in given.entries if one.path.startswith(f"{path}/")]
    steps = "/".join([".."] * (path.count("/") + 1))
    link = Entry(path, kind="link", leads_to=f"{steps}/outside")
    return _without(given, *inside).with_entry(link)


def _foreign(rng: Random, given: Input) -> Input:
    root = next(one.path for one in given.entries if "/" in one.path).partition("/")[0]
    path = f"{root}/{rng.choice(_FOREIGN)}"
    blocked = {one.path for one in given.entries if one.kind != "folder"}
    parents = [path[:at] for at, sign in enumerate(path) if sign == "/"]
    if path in blocked or blocked & set(parents):
        return given
    return given.with_entry(Entry(path, b"mine", foreign=True))


def _of_another(rng: Random, given: Input) -> Input:
    """A manifest of another program, and nothing that says that the folder is ours."""
    manifests = [one for one in given.entries if one.path.endswith("manifest.json")]
    gone = [one for one in given.entries if one.path.endswith("/.lock") or "/parts/" in one.path]
    changed = _without(given, *gone, *manifests)
    for one in manifests:
        changed = changed.with_entry(Entry(one.path, b'{"manifest_version": 3}', foreign=True))
    return _foreign(rng, changed)


def _closed(rng: Random, given: Input) -> Input:
    entry = _pick(rng, given)
    return given.with_entry(entry._replace(mode=rng.choice((0o000, 0o200, 0o444))))


_WAYS: tuple[Callable[[Random, Input], Input], ...] = (
    *(_gone, _gone, _folder_gone, _renamed, _swapped, _as_folder, _as_pipe, _as_link),
    *(_folder_as_link, _foreign, _foreign, _of_another, _closed),
)
