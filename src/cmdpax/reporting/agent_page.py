"""The page about an agent: its account, its returns, what it plays, and its declaration."""

from html import escape
from pathlib import Path

from cmdpax.reporting.agent_content import AgentContent, chart_data, read_agent
from cmdpax.reporting.agent_sections import (
    said,
    write_account,
    write_charts,
    write_facts,
    write_played,
    write_ranges,
    write_unexplored,
    write_verdicts,
)
from cmdpax.reporting.frame import Opening, write_frame
from cmdpax.reporting.templates import asset, fill

_SECTIONS = {
    "account": "The account",
    "returns": "Returns",
    "played": "What is played",
    "unexplored": "Unexplored",
    "declaration": "Declaration",
}


def write_agent_page(path: Path) -> str:
    """Put the page of an agent's file together."""
    content = read_agent(path)
    main = fill(
        asset("agent.html"),
        verdicts=write_verdicts(content),
        table=write_account(content),
        drawn=_drawn(content),
        charts=write_charts(content),
        played=write_played(content),
        unexplored=write_unexplored(content),
        ranges=write_ranges(content),
        facts=write_facts(content),
    )
    name = escape(content.name)
    opening = Opening(f"{content.name}: cmdpax report", f"Agent {name}", _lead(content))
    return write_frame(
        opening,
        _SECTIONS,
        main,
        chart_data(content),
        scripts=("core", "charts", "agent", "main"),
        styles=("page",),
    )


def _lead(content: AgentContent) -> str:
    """What the agent is, how far it is, and when it was saved."""
    declared, account = content.position.declared, content.account
    _, horizon, num_states, num_actions = declared.sizes
    lead = (
        f"A live system with {_counted(num_states, 'state')}, {_counted(num_actions, 'action')} "
        f"and {_counted(horizon, 'step')} per episode, controlled by {said(declared.algorithm)} "
        f"for {_counted(account.episodes, 'episode')}"
    )
    if account.cut_short:
        lead += f", of which {account.cut_short:,} were cut short"
    lead += ". "
    if account.fed:
        logged = _counted(account.fed, "logged episode")
        lead += f"It also learned from {logged} that others played. "
    if content.position.episode.states:
        steps = content.position.episode.steps
        number = content.position.tally.learned + 1
        lead += f"Episode {number:,} is open, after {steps:,} of {horizon:,} steps. "
    return f"{lead}Saved on {content.saved}."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def _drawn(content: AgentContent) -> str:
    """What the charts draw, in words."""
    if content.moving is None:
        return ""
    length, window = int(content.record.episodes[0]), content.moving.window
    every = "Every point is an episode"
    if length > 1:
        every = (
            f"The pale band reaches from the least to the largest of {length:,} episodes in a row"
        )
    text = (
        f"{every}; the line is the mean of up to {window:,} episodes, with Student's 95 % "
        "interval. The shaded side of a threshold is the wrong one: single episodes may be there, "
        "but the mean must not stay there."
    )
    first = int(content.record.first[0])
    if first > 1:
        text += f" What was played before episode {first:,} is not in the file."
    return f"<p>{text}</p>"
