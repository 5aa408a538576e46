"""The page as one HTML file that needs nothing else.

Scripts are allowed by their checksums and everything from outside is forbidden, so that a browser
runs nothing that a name in a file might smuggle in, and fetches nothing.
"""

import base64
import functools
import hashlib
import json
import zlib
from html import escape
from importlib.resources import files
from typing import Any

from cmdpax.reporting.sections import write_claims, write_replay, write_story
from cmdpax.reporting.story import tell_story
from cmdpax.reporting.templates import asset, fill
from cmdpax.version import __version__

_SCRIPTS = (
    "core",
    "charts",
    "selection",
    "story",
    "playground",
    "problem",
    "curves",
    "plane",
    "table",
    "comparison",
    "main",
)
_STYLES = ("page", "playground")
_SECTIONS = {
    "story": "In a minute",
    "playground": "Playground",
    "claims": "Claims",
    "problem": "The problem",
    "curves": "Curves",
    "plane": "Trade-off",
    "table": "Configurations",
    "comparison": "Comparison",
    "replay": "Replay",
}


def write_page(payload: dict[str, Any], blocks: list[str]) -> str:
    """Put the page together from what `content` found."""
    first = payload["sweeps"][0]
    sides = tell_story(first)
    payload = payload | {"story": [side.as_record() for side in sides]}
    heading, lead = _opening(payload)
    script = "\n".join(asset(f"{name}.js") for name in _SCRIPTS)
    slots = {
        "title": f"{escape(payload['folder'])}: cmdpax report",
        "heading": heading,
        "lead": lead,
        "version": escape(__version__),
        "style": "\n".join(asset(f"{name}.css") for name in _STYLES),
        "story": write_story(sides, first["num_episodes"]),
        "playground": asset("playground.html"),
        "claims": write_claims(payload["claims"]),
        "replay": write_replay(payload),
        "payload": _as_json(payload),
        "plotly": _plotly()[0],
        "blocks": "\n".join(
            f'<script type="text/plain" id="block-{place}">{block}</script>'
            for place, block in enumerate(blocks)
        ),
        "script": script,
        "policy": _policy(script),
    }
    slots["navigation"] = _navigation(slots)
    return fill(asset("page.html"), **slots)


def _opening(payload: dict[str, Any]) -> tuple[str, str]:
    sweeps = payload["sweeps"]
    runs = sum(len(sweep["runs"]["cmdp"]) for sweep in sweeps)
    first = sweeps[0]
    if payload["kind"] == "reproduction":
        heading = "Truly no-regret learning in constrained MDPs, reproduced"
        lead = (
            "The experiment of Müller et al. (ICML 2024) on constrained Markov decision processes "
            "(CMDPs): learners that must earn and stay safe in a world they do not know. "
            f"{len(first['configurations'])} configurations, {first['num_episodes']:,} episodes "
            f"each, {runs:,} runs in all, and what became of the paper's claims."
        )
        return heading, lead
    counted = (
        _counted(len(first["configurations"]), "configuration"),
        _counted(len(first["algorithms"]), "algorithm"),
        _counted(len(first["cmdps"]), "constrained Markov decision process", "es"),
        _counted(runs, "run"),
    )
    lead = "{} of {} on {}: {} of {} episodes.".format(*counted, f"{first['num_episodes']:,}")
    return f"Sweep {escape(payload['folder'])}", lead


def _counted(count: int, noun: str, plural: str = "s") -> str:
    return f"{count:,} {noun}{plural if count != 1 else ''}"


def _navigation(slots: dict[str, str]) -> str:
    """Link to the sections that are there."""
    present = {name: text for name, text in _SECTIONS.items() if slots.get(name, "-")}
    return "\n    ".join(f'<a href="#{name}">{text}</a>' for name, text in present.items())


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
