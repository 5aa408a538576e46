"""The page about a sweep or a reproduction."""

from html import escape
from typing import Any

from cmdpax.reporting.frame import Opening, write_frame
from cmdpax.reporting.sections import write_claims, write_replay, write_story
from cmdpax.reporting.story import tell_story
from cmdpax.reporting.templates import asset, fill

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
    "results",
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
    slots = {
        "story": write_story(sides, first["num_episodes"]),
        "playground": asset("playground.html"),
        "claims": write_claims(payload["claims"]),
        "replay": write_replay(payload),
    }
    return write_frame(
        Opening(f"{payload['folder']}: cmdpax report", heading, lead),
        {name: text for name, text in _SECTIONS.items() if slots.get(name, "-")},
        fill(asset("results.html"), **slots),
        payload,
        scripts=_SCRIPTS,
        styles=_STYLES,
        blocks=blocks,
    )


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
