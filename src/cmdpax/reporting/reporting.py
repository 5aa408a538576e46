"""`report`: a folder of results as one page."""

import os
from pathlib import Path

from cmdpax.errors import FileError
from cmdpax.experiments.tables import readable
from cmdpax.storage.writing import require_target, write_text

ENDINGS = (".html", ".htm")


def report(folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Write one self-contained page about a sweep or a reproduction: it opens from disk, offline.

    Args:
        folder: a folder that `sweep` or `reproduce` wrote.
        out: the page, a `.html` file, which is replaced whole or not at all.

    Returns:
        Where the page is.

    Raises:
        FileError: there are no results, a file is damaged, or the page cannot be written.
    """
    from cmdpax.reporting.content import content
    from cmdpax.reporting.page import write_page

    path = Path(out)
    require_page(path)
    with readable(Path(folder)):
        page = write_page(*content(folder))
    write_text(path, page)
    return path


def require_page(path: Path) -> None:
    """Refuse a path that no page can be written to, before any work is done for it."""
    if path.suffix.lower() not in ENDINGS:
        raise FileError(f"{path} has the ending {path.suffix!r}; a page is a .html file.")
    require_target(path)
