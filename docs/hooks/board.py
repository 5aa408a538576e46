"""The page of the board, as part of the site: it is made from the stored results of `quick`."""

from typing import Any

from mkdocs.structure.files import File, Files

from cmdpax.board import stored
from cmdpax.reporting.board_page import write_board_page


def on_files(files: Files, config: Any) -> Files:
    """Add the page (an event of MkDocs)."""
    page = write_board_page(stored("quick"))
    files.append(File.generated(config, "board-quick.html", content=page))
    return files
