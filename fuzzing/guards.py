"""What a case may not do: import, write outside its folder, start processes, use much memory.

Python asks the first finder of modules for every module that is not loaded, and tells an audit hook
before it does any of the rest. A hook cannot be removed, so there is one for the life of the
process, which listens while a case runs.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {  # the events that change something, and which of their arguments are paths
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
}
_NEVER = (
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "pickle.find_class",
    "socket.bind",
    "socket.connect",
    "subprocess.Popen",
    "webbrowser.open",
)
_FONTS = ("fc-list",)  # which Matplotlib asks once for the fonts of the system
_FOLLOWING = ("open", "os.chmod", "os.truncate", "os.utime")  # links are followed
_LIBRARY = "cmdpax."
_MACHINERY = ("importlib", "<frozen importlib")


class Guard:
    """Listens to what the process does, and writes down what it may not do."""

    def __init__(self, allowed: tuple[Path, ...], planted: frozenset[str]) -> None:
        """Begin to listen, for as long as the process lives.

        Args:
            allowed: folders that every case may write to, such as a cache.
            planted: modules that only the content of files names.
        """
        self._always = tuple(os.path.realpath(path) for path in allowed)
        self._planted = planted
        self._folders: tuple[str, ...] = ()
        self._imports = False
        self._active = self._busy = False
        self.seen: list[tuple[str, str]] = []
        sys.addaudithook(self._hear)
        sys.meta_path.insert(0, self)

    @contextmanager
    def watching(self, folders: tuple[Path, ...], *, imports: bool) -> Iterator[None]:
        """Listen while a case runs.

        Args:
            folders: where it may write.
            imports: whether it may import what its input names.
        """
        self.seen = []
        self._folders = (*self._always, *(os.path.realpath(path) for path in folders))
        self._imports = imports
        self._active = True
        try:
            yield
        finally:
            self._active = False

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._active or self._busy:
            return
        self._busy = True
        try:
            self._judge(event, arguments)
        finally:
            self._busy = False

    def _judge(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = bool(set(mode or "") & set("wax+")) or bool((flags or 0) & _WRITING)
            if writes:
                self._require_inside("open", path)
        elif event in _PATHS:
            for index in _PATHS[event]:
                self._require_inside(event, arguments[index])
        elif event in _NEVER and arguments[:1] != _FONTS:
            self.seen.append((event, repr(arguments)[:300]))

    def _require_inside(self, what: str, path: Any) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return  # an open file
        text = os.fsdecode(path)
        parent = os.path.realpath(os.path.dirname(text) or ".")
        place = os.path.join(parent, os.path.basename(text))
        if what in _FOLLOWING:
            place = os.path.realpath(place)
        inside = any(place == root or place.startswith(root + os.sep) for root in self._folders)
        if not inside and place != os.devnull:
            self.seen.append(("wrote outside its folder", f"{what}: {place}"))

    def find_spec(self, module: str, path: Any = None, target: Any = None) -> None:
        """Find nothing; an import that no code of the library says is the content's."""
        top = module.partition(".")[0]
        if not self._active or self._imports or top == "importlib":
            return  # the machinery itself is imported as it is needed
        frame = _importer()
        dynamic = (
            frame is not None
            and str(frame.f_globals.get("__name__")).startswith(_LIBRARY)
            and not _said(module, frame.f_code)
        )
        if top in self._planted or dynamic:
            self.seen.append(("imported", module))


def _importer() -> FrameType | None:
    """The code that wants a module, behind the machinery of imports and this file."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        inside = f"{os.sep}importlib{os.sep}" in file or file.startswith(_MACHINERY)
        if not inside and file != __file__:
            return frame
        frame = frame.f_back
    return None


def _said(module: str, code: CodeType) -> bool:
    """Whether the code itself names a module, in an import statement or as a text."""
    names = (*code.co_names, *(text for text in code.co_consts if isinstance(text, str)))
    parent, _, last = module.rpartition(".")
    return (
        module in names
        or any(name.startswith(f"{module}.") for name in names)
        or (last in names and (parent in names or not parent))
    )


# ------------------------------------------------------------------------------------------ memory

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> int:
    """Measure anew from here on; returns the bytes that are used now (0 where none can tell)."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return 0
    return _field("VmRSS")


def peak() -> int:
    """The most bytes that were used since `forget_peak`."""
    return _field("VmHWM")


def _field(name: str) -> int:
    """Bytes, as Linux counts them; 0 where there is no such file."""
    for line in _STATUS.read_text().splitlines() if _STATUS.exists() else ():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0
