"""The page of the paper's experiment, as part of the site: `make docs` runs the experiment."""

from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

_MADE = Path("build") / "reproduction" / "report.html"


def on_files(files: Files, config: Any) -> Files:
    """Add the page (an event of MkDocs)."""
    page = Path(config.config_file_path).parent / _MADE
    if not page.exists():
        raise PluginError(f"{_MADE} does not exist; run `make docs`, which makes it.")
    files.append(File.generated(config, "reproduction.html", abs_src_path=str(page)))
    return files
