"""`report`: a folder of results, a board, or an agent's file, as one page."""

import os
from pathlib import Path

from cmdpax.errors import FileError
from cmdpax.experiments.tables import readable
from cmdpax.storage.paths import exists, is_folder
from cmdpax.storage.writing import require_target, write_text

ENDINGS = (".html", ".htm")


def report(source: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Write one self-contained page: it opens from disk, offline.

    Args:
        source: a folder that `sweep`, `reproduce` or `board.run` wrote, or a file that `agent.save`
            wrote.
        out: the page, a `.html` file, which is replaced whole or not at all.

    Returns:
        Where the page is.

    Raises:
        FileError: there are no results, a file is damaged or not an agent's, or the page cannot be
            written.
    """
    path, found = Path(out), Path(source)
    require_page(path)
    with readable(found):
        page = _page(found)
    write_text(path, page)
    return path


def _page(source: Path) -> str:
    from cmdpax.board.folder import BoardFolder
    from cmdpax.board.reading import read, with_stored
    from cmdpax.reporting.agent_page import write_agent_page
    from cmdpax.reporting.board_page import write_board_page
    from cmdpax.reporting.content import content
    from cmdpax.reporting.page import write_page

    if exists(source) and not is_folder(source):
        return write_agent_page(source)
    if exists(BoardFolder(source).record_path):
        return write_board_page(with_stored(read(source)))
    return write_page(*content(source))


def require_page(path: Path) -> None:
    """Refuse a path that no page can be written to, before any work is done for it."""
    if path.suffix.lower() not in ENDINGS:
        raise FileError(f"{path} has the ending {path.suffix!r}; a page is a .html file.")
    require_target(path)
