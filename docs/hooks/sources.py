"""Code of the repository in pages, as it is: `<!-- source: FILE NAME -->`, NAME optional.

The comment, alone on its line, becomes a code block with the file, or with one function or class
of it; `outer.inner` is a function within a function. A name that is gone stops the build.
"""

import ast
import re
import textwrap
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

_COMMENT = re.compile(r"^<!-- source: (?P<file>\S+)(?: (?P<name>\S+))? -->$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Put the code into one page (an event of MkDocs)."""
    root = Path(config.config_file_path).parent
    try:
        return insert(markdown, root)
    except (OSError, LookupError) as error:
        raise PluginError(f"{page.file.src_uri}: {error}") from error


def insert(markdown: str, root: Path) -> str:
    """Replace every comment by its code."""

    def block(match: re.Match[str]) -> str:
        code = source(root / match["file"], match["name"])
        return f'``` {{.python .source title="{match["file"]}"}}\n{code.rstrip()}\n```'

    return _COMMENT.sub(block, markdown)


def source(path: Path, name: str | None) -> str:
    """The text of a file, or of one definition in it, without its indentation."""
    text = path.read_text(encoding="utf-8")
    if name is None:
        return text
    node: Any = ast.parse(text)
    for part in name.split("."):
        found = [child for child in node.body if getattr(child, "name", None) == part]
        if not found:
            raise LookupError(f"{path.name} has no {name}")
        node = found[0]
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines))
