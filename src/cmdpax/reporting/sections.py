"""The sections of the page that are text: the story, the claims, how to replay."""

import json
import math
from html import escape
from typing import Any

from cmdpax.intervals import Interval
from cmdpax.reporting.story import Side
from cmdpax.reporting.templates import asset, fill

_NOTHING = 0.02  # a share of the violation that counts as nothing


def number(value: float | None) -> str:
    """Write four significant digits and a true minus sign; a dash stands for nothing."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return text.replace("-", "−")


def write_story(sides: list[Side], num_episodes: int) -> str:
    """Tell what happened in one run of each side, and what the two accounts say."""
    if not sides:
        return ""
    parts = [_side(side, place, num_episodes) for place, side in enumerate(sides)]
    run = f" ({escape(sides[0].run)})" if sides[0].run else ""
    each = " of each algorithm" if len(sides) > 1 else ""
    scale = " Both charts have the same scale." if len(sides) > 1 else ""
    remark = (
        f"One run{run}{each}, with the settings that turned out best{_symbols(sides)}, on the "
        f"first problem: by how much each of {num_episodes:,} episodes misses the threshold"
        f"{_of_constraints(sides)}.{scale} Other algorithms, means over all runs and the objective "
        "are below."
    )
    outcome = _outcome(*sides) if len(sides) > 1 else ""
    return fill(asset("story.html"), sides="\n".join(parts), outcome=outcome, remark=remark)


def _symbols(sides: list[Side]) -> str:
    """Say what the letters in the sides' labels mean."""
    letters = {"η": "the step size", "τ": "the regularization", "κ": "the pessimism"}
    labels = " ".join(side.label for side in sides)
    known = [f"{letter} is {word}" for letter, word in letters.items() if f"{letter} = " in labels]
    if any(side.algorithm.startswith("vanilla-") for side in sides):
        known.append("vanilla is without regularization")
    return f" ({'; '.join(known)})" if known else ""


def _outcome(first: Side, second: Side) -> str:
    """Tell what the second side changes, whichever way it went."""
    one, other = escape(first.algorithm), escape(second.algorithm)
    text = ""
    if first.swing and second.swing is not None:
        text = f"The swing of the second half is ±{number(second.swing)} with {other}, and "
        text += f"±{number(first.swing)} with {one}. "
    strong = f"{number(second.strong)} against {number(first.strong)}"
    if second.strong >= first.strong:
        return f"{text}The strong regret is not smaller here ({strong}): damped is not yet safe."
    if first.weak >= second.weak:
        return f"{text}The strong regret is {strong}."
    weak = f"{number(first.weak)} against {number(second.weak)}"
    return (
        f"{text}By weak regret <strong>{one} looks better</strong> ({weak}), because its errors "
        f"cancel. By strong regret <strong>{other} is better</strong> ({strong})."
    )


def _of_constraints(sides: list[Side]) -> str:
    """Name the one of several constraints that is shown, or the only one if it has a name."""
    if sides[0].constraint is None:
        return f" of {escape(sides[0].signal)}" if sides[0].signal else ""
    shown = {side.constraint: side.signal for side in sides if side.constraint is not None}
    names = " and ".join(escape(shown[place] or f"constraint {place}") for place in sorted(shown))
    return f" of {names}, that with the largest strong regret"


def _side(side: Side, place: int, num_episodes: int) -> str:
    unsafe = ""
    if side.num_unsafe is not None:
        share = 100 * side.num_unsafe / num_episodes
        unsafe = f"{side.num_unsafe:,} of {num_episodes:,} episodes ({share:.0f} %) were unsafe, "
    text = f"{unsafe}by {number(side.strong)} in all"
    if side.hidden < _NOTHING:
        text += ", and next to nothing cancels."
    else:
        text += (
            f"; the others were safer than needed by {number(side.spared)}. So weak regret shows "
            f"only {number(max(side.weak, 0.0))} of the {number(side.strong)}."
        )
    text += f" {_ending(side)}"
    if side.plans is not None:
        text += (
            f" It made {side.plans:,} plan{'s' if side.plans != 1 else ''}, and played each "
            "unchanged until the next: the curve has steps."
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
    """Tell where the run ends, and why that may be on the wrong side."""
    if side.last is None:
        return ""
    if side.last <= 0:
        return "Its last episode is safe."
    end = f"Its last episode misses the threshold by {number(side.last)}"
    settled = side.swing is not None and side.swing < side.last and side.spared > 0
    if side.biased and settled:
        return f"{end}: a fixed τ leaves a small constant error, which a margin removes."
    return f"{end}."


# ------------------------------------------------------------------------------------------- claims


def write_claims(claims: list[dict[str, Any]] | None) -> str:
    """Write every claim with its decision, and the numbers that decide it."""
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
    """Write the quantity that decides in a line; the others are behind it."""
    quantities = claim["quantities"]
    deciding = [one for one in quantities if _decided(one) == claim["first_cmdp"]]
    chosen = (deciding or quantities)[0]
    more = f" (and {len(quantities) - 1} more)" if len(quantities) > 1 else ""
    found = _interval(chosen["first_cmdp"])
    return f"{escape(chosen['text'])}: {found}, claimed {_side_of(chosen)}{more}"


def _decided(quantity: dict[str, Any]) -> str:
    """Decide as the reproduction did, by the whole interval."""
    mean, half, size = (quantity["first_cmdp"][name] for name in Interval._fields)
    found = Interval(math.nan if mean is None else mean, math.inf if half is None else half, size)
    return found.decide(quantity["side"], quantity["bound"])


def _side_of(quantity: dict[str, Any]) -> str:
    return f"{quantity['side']} {number(quantity['bound'])}"


def _quantity(quantity: dict[str, Any], several: bool) -> str:
    cells = [escape(quantity["text"]), _side_of(quantity), _interval(quantity["first_cmdp"])]
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
    """Write the command, the specification, and the manifests."""
    replay = payload["replay"]
    text = replay["specification"]
    made = payload["sweeps"][0]["manifest"]
    versions = ", ".join(f"{name} {number}" for name, number in made.get("versions", {}).items())
    return fill(
        asset("replay.html"),
        command=escape(replay["command"]),
        specification="" if text is None else fill(asset("specification.html"), text=escape(text)),
        notes="".join(f"<p class='note'>{escape(note)}</p>" for note in replay["notes"]),
        made=escape(f"Made with {versions} on {made.get('device')}."),
        manifests="\n".join(_manifest(sweep) for sweep in payload["sweeps"]),
    )


def _manifest(sweep: dict[str, Any]) -> str:
    text = escape(json.dumps(sweep["manifest"], indent=1, ensure_ascii=False))
    title = f"Manifest: {escape(sweep['label'])}"
    return f"<details><summary>{title}</summary><pre tabindex='0'>{text}</pre></details>"
