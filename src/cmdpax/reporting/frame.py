"""The frame of every page: one HTML file that needs nothing else.

Scripts are allowed by their checksums and everything from outside is forbidden, so that a browser
runs nothing that a name in a file might smuggle in, and fetches nothing.
"""

import base64
import functools
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from cmdpax.reporting.templates import asset, fill
from cmdpax.version import __version__


class Opening(NamedTuple):
    """The top of a page; `heading` and `lead` are HTML."""

    title: str
    heading: str
    lead: str


def write_frame(
    opening: Opening,
    sections: Mapping[str, str],
    main: str,
    payload: dict[str, Any],
    *,
    scripts: Sequence[str],
    styles: Sequence[str],
    blocks: Sequence[str] = (),
) -> str:
    """Put a page together.

    Args:
        opening: its top.
        sections: the sections in `main`, by identifier, and what links to them say.
        main: its content, as HTML.
        payload: what its scripts draw.
        scripts: the names of its scripts, in order.
        styles: the names of its style sheets.
        blocks: encoded curves.
    """
    script = "\n".join(asset(f"{name}.js") for name in scripts)
    links = (f'<a href="#{name}">{text}</a>' for name, text in sections.items())
    return fill(
        asset("page.html"),
        title=escape(opening.title),
        heading=opening.heading,
        lead=opening.lead,
        version=escape(__version__),
        style="\n".join(asset(f"{name}.css") for name in styles),
        navigation="\n    ".join(links),
        main=main,
        payload=_as_json(payload),
        plotly=_plotly()[0],
        blocks="\n".join(
            f'<script type="text/plain" id="block-{place}">{block}</script>'
            for place, block in enumerate(blocks)
        ),
        script=script,
        policy=_policy(script),
    )


@functools.cache
def _plotly() -> tuple[str, str]:
    """Compress Plotly.js, as text; also gives its checksum."""
    source = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    compressed = base64.b64encode(zlib.compress(source.encode(), 9)).decode()
    return compressed, _checksum(source)


def _checksum(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _policy(script: str) -> str:
    """Allow nothing from outside, these two scripts alone, and styles that Plotly sets."""
    scripts = f"script-src {_checksum(script)} {_plotly()[1]}"
    return (
        f"default-src 'none'; {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _as_json(payload: dict[str, Any]) -> str:
    """Write JSON that cannot end the script element it stands in."""
    text = json.dumps(payload, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
