"""The sections of an agent's page, as HTML: names from files are text."""

import re
from html import escape
from typing import Any

from cmdpax.errors import cut, plain, shown
from cmdpax.learners import registered
from cmdpax.live.accounts import ConstraintAccount
from cmdpax.live.declaration import FOREVER, Declaration
from cmdpax.live.glimpse import MOST_STATES
from cmdpax.live.playing import Playing
from cmdpax.live.wording import (
    VERDICTS,
    account_rows,
    plan_line,
    policy_rows,
    unexplored_lines,
)
from cmdpax.reporting.agent_content import LONGEST, AgentContent
from cmdpax.schemes.parameters import in_words

_BADGES = {"met": "holds", "missed": "fails", "open": "undecided"}
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")
_UNKNOWN = "<p>This file is from an earlier version, which did not save it.</p>"


def said(text: str, most: int = LONGEST) -> str:
    """Make text from a file HTML: cut, in one line, and nothing but text."""
    return escape(cut(plain(text), most))


def numeric(text: str) -> str:
    """Write text of ours with numbers as HTML, with true minus signs."""
    return escape(_MINUS.sub("−", plain(text)))


def table(caption: str, heads: list[str], rows: list[list[str]], *, numbers: bool = True) -> str:
    """Make a table of cells that are HTML; the first one of a row is its head."""
    kind = " class='number'" if numbers else ""
    first, *others = heads
    top = f"<th scope='col'>{first}</th>" + "".join(
        f"<th scope='col'{kind}>{one}</th>" for one in others
    )
    body = "".join(
        f"<tr><th scope='row'>{head}</th>"
        + "".join(f"<td{kind}>{cell}</td>" for cell in cells)
        + "</tr>"
        for head, *cells in rows
    )
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{caption}'>"
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


# -------------------------------------------------------------------------------------- the account


def write_verdicts(content: AgentContent) -> str:
    """Write a line for every constraint: what its account shows."""
    items = "".join(_verdict(content.label(1 + index), one) for index, one in _shown(content))
    left = len(content.account) - len(content.chosen)
    more = f"<p class='note'>{left:,} more constraints are not shown, none more urgent.</p>"
    if not items:
        return "<p>There is no constraint.</p>"
    return f"<ul class='claims'>{items}</ul>{more if left else ''}"


def _shown(content: AgentContent) -> list[tuple[int, ConstraintAccount]]:
    return list(zip(content.chosen, content.constraints, strict=True))


def _verdict(label: str, one: ConstraintAccount) -> str:
    count = one.recent.size
    recent = "no whole episode yet"
    if count:
        recent = f"{one.recent} in the last {count:,} whole episode{'s' if count > 1 else ''}"
    text = f": {recent}, {one.sense} {one.threshold:.6g}"
    every = f"Valid every day: {one.always} ({one.always_verdict})."
    badge = f"<span class='badge {_BADGES[one.verdict]}'>{one.verdict}</span>"
    return f"<li>{badge}{escape(label)}{numeric(text)}<small>{numeric(every)}</small></li>"


def write_account(content: AgentContent) -> str:
    """Write all quantities of the account, with a column for the reward and every constraint."""
    rows = account_rows(content.account, content.position.declared.algorithm)
    cells = [[row.objective, *(row.constraints[index] for index in content.chosen)] for row in rows]
    bodies = [
        [said(row.name), *(_cell(row.name, cell) for cell in line)]
        for row, line in zip(rows, cells, strict=True)
    ]
    heads = ["per episode", *(escape(content.label(signal)) for signal in content.signals)]
    return table("The account", heads, bodies)


def _cell(row: str, text: str) -> str:
    if row in VERDICTS and text:
        return f"<span class='verdict {_BADGES[text]}'>{text}</span>"
    return numeric(text)


# ------------------------------------------------------------------------------------- the pictures


def write_charts(content: AgentContent) -> str:
    """Make room for a chart for every signal, each with its text alternative."""
    if content.moving is None:
        return "<p>No whole episode has been played yet.</p>"
    figures = [_figure(content, place, signal) for place, signal in enumerate(content.signals)]
    return f"<div class='columns'>{''.join(figures)}</div>"


def _figure(content: AgentContent, place: int, signal: int) -> str:
    assert content.moving is not None
    label, name = escape(content.label(signal)), f"returns-chart-{place}"
    mean, half = content.moving.mean[-1, signal], content.moving.half[-1, signal]
    last = f"The last mean is {mean:.4g}" if mean == mean else "The last episodes were cut short"
    last += f" ± {half:.2g}" if mean == mean and half < float("inf") else ""
    if signal:
        one = content.account[signal - 1]
        last += f"; the threshold is {one.sense} {one.threshold:.6g}"
    return (
        f"<figure><h3>{label}</h3><div class='chart small' id='{name}' tabindex='0' role='img' "
        f"aria-label='Returns of the episodes: {label}' aria-describedby='{name}-text'></div>"
        f"<figcaption id='{name}-text'>{numeric(last)}.</figcaption></figure>"
    )


# ---------------------------------------------------------------------------------- what is played


def write_played(content: AgentContent) -> str:
    """Write what the coming episode is played with, in the states that were visited most."""
    position = content.position
    glimpse = position.episode.glimpse
    lines = [f"<p>{numeric(line)}</p>" for line in _playing(position.declared, position.playing)]
    if glimpse is None:
        return "".join(lines) + _UNKNOWN
    plan = plan_line(glimpse)
    if plan is not None:
        text = plan.text[0].upper() + plan.text[1:]
        lines.insert(0, f"<p>{numeric(text)}.</p>")
    found = policy_rows(position.declared, glimpse, MOST_STATES)
    if found is None:
        return "".join(lines)
    heads = [escape(head) for head in found.heads]
    rows = [[escape(cell) for cell in row] for row in found.rows]
    return "".join(lines) + table("What is played", heads, rows, numbers=False)


def _playing(declared: Declaration, playing: Playing) -> list[str]:
    """What is played besides the learner's last plan."""
    lines = []
    if playing.mixture is not None:
        share, safe = 100 * playing.mixture.share, 100 * playing.mixture.probability
        lines.append(
            f"The plan is played in {share:.3g} % of the episodes and the baseline in the others. "
            f"This meets all constraints with a probability of about {safe:.3g} %, as the data say."
        )
    if playing.frozen:
        lines.append("The agent is frozen: its policy stays as it is until it resumes.")
    if declared.asks and playing.declined:
        lines.append(f"Plans that were declined in a row: {playing.declined:,}.")
    return lines


def write_unexplored(content: AgentContent) -> str:
    """Write how much was never tried, and some of it."""
    glimpse = content.position.episode.glimpse
    if glimpse is None:
        return _UNKNOWN
    lines = unexplored_lines(content.position.declared, glimpse)
    if not lines:
        return "<p>This learner does not say what it has tried.</p>"
    return "".join(f"<p>{escape(line[0].upper() + line[1:])}.</p>" for line in lines)


# ---------------------------------------------------------------------------------- the declaration


def write_ranges(content: AgentContent) -> str:
    """Write the bounds, ranges and margins of all signals."""
    declared, rows = content.position.declared, []
    for signal in content.signals:
        low, high, _, known = (array[signal] for array in declared.units)
        bound, margin = "", ""
        if signal:
            one = content.account[signal - 1]
            bound, margin = (
                f"{one.sense} {one.threshold:.6g}",
                f"{declared.margins[signal - 1]:.4g}",
            )
        source = "declared" if known else "as observed so far"
        cells = (bound, f"{low:.6g} to {high:.6g}", source, margin)
        rows.append([escape(content.label(signal)), *map(numeric, cells)])
    heads = ["signal", "per episode", "range of a step", "which is", "margin"]
    return table("Thresholds and ranges", heads, rows)


def write_facts(content: AgentContent) -> str:
    """Write everything else that was declared, as a list of terms."""
    declared = content.position.declared
    facts = {**_system(declared), **_learner(declared)}
    return "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in facts.items())


def _system(declared: Declaration) -> dict[str, str]:
    count, horizon, num_states, num_actions = declared.sizes
    likeliest = int(declared.initial.argmax())
    begins = said(declared.words.state(likeliest))
    starts = int((declared.initial > 0).sum())
    if starts > 1:
        share = 100 * declared.initial[likeliest]
        begins = f"in {starts:,} states, most often in {begins} ({share:.3g} %)"
    alike = "all alike" if declared.stationary else "which may differ"
    available = "all of them"
    if declared.available is not None:
        share = 100 * declared.available.mean()
        available = f"{share:.3g} % of those in all states" if share < 100 else available
    return {
        "states": f"{num_states:,}",
        "actions": f"{num_actions:,}; available: {available}",
        "steps per episode": f"{horizon:,}, {alike}",
        "constraints": f"{count:,}",
        "episodes begin": begins,
        "states that may follow": "any" if declared.successors is None else "as listed",
        "rewards": "observed" if declared.rewards is None else "known",
    }


def _learner(declared: Declaration) -> dict[str, str]:
    optimism = declared.optimism
    facts = {
        "algorithm": said(declared.algorithm),
        "parameters": _parameters(declared),
        "optimism": f"scale {optimism.scale:g}, bonuses by {optimism.bonus}",
    }
    if declared.baseline is not None:
        confidence = declared.confidence
        asked = "" if confidence is None else f", to be safe with a confidence of {confidence:g}"
        facts["baseline"] = f"given{asked}"
    if declared.asks:
        facts["plans"] = "are approved before they are played"
    return facts | {"seed": f"{declared.seed}"}


def _parameters(declared: Declaration) -> str:
    """The parameters, in words where the algorithm is known."""
    known, given = registered(declared.algorithm), declared.parameters
    words = {name: shown(value) for name, value in given.items()}
    if known is not None and not declared.own:
        restored: Any = known.restore(given, FOREVER)
        words = {name: in_words(getattr(restored, name)) for name in known.names}
    return ", ".join(f"{said(name)} = {numeric(text)}" for name, text in words.items()) or "none"
