"""The sections of the page that are text: the story, the claims, how to replay."""

import json
from html import escape
from typing import Any

from cmdpax.reporting.story import Side
from cmdpax.reporting.templates import asset, fill


def number(value: float | None) -> str:
    """Four significant digits, a true minus sign, a dash for nothing."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return text.replace("-", "−")


def write_story(sides: list[Side], num_episodes: int) -> str:
    """What happened in one run of each, and what the two accounts say."""
    if not sides:
        return ""
    parts = [_side(side, place, num_episodes) for place, side in enumerate(sides)]
    run = f" ({escape(sides[0].run)})" if sides[0].run else ""
    remark = (
        f"One run{run} of each algorithm, with the configuration that is best in hindsight, on the "
        f"first CMDP: the violation of the threshold in each of {num_episodes:,} episodes, largest "
        "over the constraints. Both charts have the same scale. Means over all runs, the objective "
        "and other configurations are below."
    )
    return fill(asset("story.html"), sides="\n".join(parts), remark=remark)


def _side(side: Side, place: int, num_episodes: int) -> str:
    unsafe = ""
    if side.num_unsafe is not None:
        share = 100 * side.num_unsafe / num_episodes
        unsafe = f"{side.num_unsafe:,} of {num_episodes:,} episodes ({share:.0f} %) were unsafe, "
    text = (
        f"{unsafe}by {number(side.strong)} in all. The others were safer than needed by "
        f"{number(side.spared)}: the account with signs hides {side.hidden:.0%} of the violation. "
        f"{_ending(side)}"
    )
    return fill(
        asset("side.html"),
        algorithm=escape(side.algorithm),
        label=escape(side.label),
        place=str(place),
        strong=number(side.strong),
        spared=number(side.spared),
        weak=number(side.weak),
        text=escape(text[0].upper() + text[1:]),
    )


def _ending(side: Side) -> str:
    """Whether it still swings, and where it ends."""
    swing = "" if side.swing is None else f"Its second half swings by ±{number(side.swing)}"
    if side.last is None or not swing:
        return ""
    end = f", and its last episode violates the threshold by {number(side.last)}"
    if side.last <= 0:
        return f"{swing}, and its last episode is safe."
    if not side.algorithm.startswith("regularized"):
        return f"{swing}{end}."
    return f"{swing}{end}: the bias of a fixed τ, which a margin or a decaying τ takes away."


# ------------------------------------------------------------------------------------------- claims


def write_claims(claims: list[dict[str, Any]] | None) -> str:
    """The verdict: every claim with its decision, and the numbers that decide it."""
    if not claims:
        return ""
    counts = {kind: sum(claim["first_cmdp"] == kind for claim in claims) for kind in _MEANING}
    told = [f"{count} {_PLURAL.get(kind, kind)}" for kind, count in counts.items() if count]
    meaning = " ".join(f"<em>{kind}</em>: {text}." for kind, text in _MEANING.items())
    return fill(
        asset("claims.html"),
        counts=", ".join(told),
        meaning=meaning,
        items="".join(_claim(claim) for claim in claims),
    )


_MEANING = {
    "holds": "every quantity is on the claimed side, and so is its 95 % interval",
    "fails": "an interval is on the other side",
    "undecided": "an interval holds the bound",
}


_PLURAL = {"holds": "hold", "fails": "fail"}


def _claim(claim: dict[str, Any]) -> str:
    several = claim["cmdps"] > 1
    held = f"on {claim['cmdps_held']} of them one by one"
    family = f"Over {claim['cmdps']} CMDPs: {claim['family']}; {held}."
    return fill(
        asset("claim.html"),
        decision=claim["first_cmdp"],
        number=str(claim["number"]),
        sentence=escape(claim["sentence"]),
        gist=_gist(claim),
        family=family if several else "",
        header="<th scope='col'>mean over the CMDPs</th>" if several else "",
        rows="".join(_quantity(quantity, several) for quantity in claim["quantities"]),
        remark=escape(claim["remark"]),
    )


def _gist(claim: dict[str, Any]) -> str:
    """The first of the quantities, in a line; the others are behind it."""
    first, *others = claim["quantities"]
    more = f" (and {len(others)} more)" if others else ""
    found = _interval(first["first_cmdp"])
    return f"{escape(first['text'])}: {found}, claimed {_side_of(first)}{more}"


def _side_of(quantity: dict[str, Any]) -> str:
    return f"{quantity['side']} {number(quantity['bound'])}"


def _quantity(quantity: dict[str, Any], several: bool) -> str:
    cells = [
        escape(quantity["text"]),
        _side_of(quantity),
        _interval(quantity["first_cmdp"]),
    ]
    if several:
        cells.append(_interval(quantity["family"]))
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _interval(found: dict[str, Any]) -> str:
    if found["mean"] is None:
        return "not defined"
    if found["half"] is None:
        return number(found["mean"])
    return f"{number(found['mean'])} ± {found['half']:.2g}"


# ------------------------------------------------------------------------------------------- replay


def write_replay(payload: dict[str, Any]) -> str:
    """The command, the specification, and the manifests."""
    replay = payload["replay"]
    made = payload["sweeps"][0]["manifest"]
    versions = ", ".join(f"{name} {number}" for name, number in made.get("versions", {}).items())
    return fill(
        asset("replay.html"),
        command=escape(replay["command"]),
        specification=_specification(replay["specification"]),
        notes="".join(f"<p class='note'>{escape(note)}</p>" for note in replay["notes"]),
        made=escape(f"Made with {versions} on {made.get('device')}."),
        manifests="\n".join(_manifest(sweep) for sweep in payload["sweeps"]),
    )


def _specification(text: str | None) -> str:
    return "" if text is None else fill(asset("specification.html"), text=escape(text))


def _manifest(sweep: dict[str, Any]) -> str:
    text = escape(json.dumps(sweep["manifest"], indent=1, ensure_ascii=False))
    title = f"Manifest: {escape(sweep['label'])}"
    return f"<details><summary>{title}</summary><pre tabindex='0'>{text}</pre></details>"
