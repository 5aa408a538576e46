"""The folder of a reproduction: its sweeps, and what is written beside them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cmdpax.experiments.folder import Folder
from cmdpax.experiments.ownership import LOCK, OwnedFolder, listed, require_no_links
from cmdpax.paper.reproduction.experiment import cmdp_seeds, specifications

FIGURES = "figures"
FILES = (
    "verdict.md",
    "verdict.json",
    "configurations.md",
    "configurations.csv",
    "replay.json",
    "report.html",
)
_PAPER = "paper"
_THEORY = re.compile(r"theory-\d+")


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Be the only process that writes a reproduction; a folder with other files is refused."""
    require_no_links(path / FIGURES / name for name in listed(path / FIGURES))
    with _Reproduction(path).locked():
        yield


class _Reproduction(OwnedFolder):
    content = "reproduction"
    folders = (FIGURES,)
    files = FILES

    def is_earlier(self) -> bool:
        """Whether it has what earlier versions wrote, beginning with the paper's sweep."""
        known = {*specifications(cmdp_seeds(1)), *FILES, FIGURES, LOCK}
        if not all(name in known or _THEORY.fullmatch(name) for name in listed(self.path)):
            return False
        return Folder(self.path / _PAPER).is_ours()
