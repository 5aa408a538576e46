"""`cmdpax watch`: what holds every day, the plan, and what is unexplored."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import cmdpax
from cmdpax.cli import watching
from live_cases import make, play
from pump_cases import NAMES, WAIT, pump_agent
from watch_cases import cells, watched


def costing(cost: float, num_episodes: int, **changes: Any) -> cmdpax.Agent:
    """One state and three steps with costs of this and of nothing in turns; at most 2."""
    agent = make(thresholds=[2.0], senses="at most", names=["cost"], **changes)
    for episode in range(num_episodes):
        agent.start(0)
        while agent.expects == "act":
            agent.act(agent.state)
            agent.observe(0.5, [cost * (episode % 2)], 0)
        agent.end()
    agent.save("a.npz")
    return agent


def test_what_is_shown_every_day(run: Any) -> None:
    agent = costing(1.0, 60)
    _, out, _ = run("watch", "a.npz")
    left = agent.account[0].episodes_left
    assert left is not None
    assert 10 < left < 100
    assert cells(out, "this shows") == ["", "open"]
    assert cells(out, "episodes until then") == ["", f"about {left}"]
    agent = costing(1.0, 300)
    assert agent.account[0].always_verdict == "met"
    _, out, _ = run("watch", "a.npz")
    assert cells(out, "this shows") == ["", "met"]
    assert "until then" not in out


def test_when_a_verdict_cannot_be_foreseen(run: Any) -> None:
    watched(0)
    assert cells(run("watch", "a.npz")[1], "episodes until then") == ["", "?", "?"]


def below(out: str, start: str) -> list[str]:
    """The line that begins so, and those after it."""
    lines = out.splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith(start)]
    return lines[first:]


@pytest.mark.parametrize("feasible", [True, False])
def test_the_plan(run: Any, feasible: bool) -> None:
    thresholds = [0.5, 0.5] if feasible else [2.9, 2.9]
    agent = play(make("replanning", thresholds=thresholds), 12)
    agent.save("a.npz")
    info = agent.learner_state
    assert bool(info.feasible) == feasible
    count = int(info.remaining)
    played = f"played for {count} more episode{'s' if count > 1 else ''}"
    why = "feasible in its model," if feasible else "no policy meets all constraints in its model,"
    line, *_ = below(run("watch", "a.npz")[1], "plan ")
    assert line.startswith(f"plan {int(info.num_plans)}: {why} ")
    assert line.endswith(played)


def test_a_learner_without_plans(run: Any) -> None:
    watched(3)
    out = run("watch", "a.npz")[1]
    assert "\nplan " not in out
    assert "\nunexplored: " in out


WORDS = {"state_names": ["idle", "busy", "late"], "action_names": ["rest", "work"]}


def test_what_is_unexplored(run: Any) -> None:
    agent = watched(6, **WORDS)
    visits = agent.visits
    counts, named = below(run("watch", "a.npz")[1], "unexplored: ")[:2]
    never, rarely = (visits == 0).sum(), ((visits > 0) & (visits < 5)).sum()
    told = f"{never} of 18 triples of step, state and action were never tried, {rarely} only 1 to 4"
    assert counts == f"unexplored: {told} times"
    reached = (visits == 0) & (visits.sum(axis=-1, keepdims=True) > 0)
    names = [
        f"{WORDS['action_names'][a]} in {WORDS['state_names'][s]} at step {h}"
        for h, s, a in np.argwhere(reached)
    ]
    head, _, listed = named.partition(": ")
    assert head == "never tried, though the state was visited"
    shown, _, more = listed.partition(" and ")
    assert set(shown.split(", ")) <= set(names)
    assert len(shown.split(", ")) == min(5, len(names))
    assert more == (f"{len(names) - 5} more" if len(names) > 5 else "")


def test_what_is_unexplored_where_steps_share_counts(run: Any) -> None:
    agent = costing(1.0, 1, stationary=True, available=[[1, 0], [1, 0], [1, 1]], **WORDS)
    tried, _ = agent.visits[0, 0]
    assert tried == 3
    (counts, *others) = below(run("watch", "a.npz")[1], "unexplored: ")
    told = "3 of 4 pairs of state and action were never tried, 1 only 1 to 4 times"
    assert counts == f"unexplored: {told}"
    assert not others[0].startswith("never tried")  # where it was, there is no other


def test_the_policy(run: Any) -> None:
    agent = watched(9, **WORDS)
    out = run("watch", "a.npz")[1]
    visits = agent.visits.sum(axis=(0, 2))
    order = np.argsort(-visits)
    rows = below(out, "never tried")[4:7]
    for row, state in zip(rows, order, strict=True):
        _, name, count, decisions, _ = (part.strip() for part in re.split("[│┃]", row))
        assert (name, count) == (WORDS["state_names"][state], str(visits[state]))
        visited = np.flatnonzero(agent.visits[:, state].any(axis=-1))
        first = agent.policy[visited[0], state]
        assert decisions.startswith(WORDS["action_names"][first.argmax()])
        assert re.search(rf"\b{round(100 * first.max())}\b", decisions)


def test_runs_of_steps(run: Any) -> None:
    """Certain actions, by step: where a state was never visited nothing is said."""
    changes = {"thresholds": [], "horizon": 9, "stationary": True, "random_visits": 0}
    agent = play(make("replanning", **changes, **WORDS), 4)
    agent.save("a.npz")
    out = run("watch", "a.npz")[1]
    policy = agent.policy
    for state, name in enumerate(WORDS["state_names"]):
        (row,) = [line for line in out.splitlines() if line.startswith(f"│ {name}")]
        decisions = re.split("[│┃]", row)[3].strip()
        actions = policy[:, state].argmax(axis=-1)
        runs = np.split(np.arange(9), 1 + np.flatnonzero(np.diff(actions)))
        texts = [WORDS["action_names"][actions[one[0]]] for one in runs]
        if len(runs) > 1:
            for number, one in enumerate(runs):
                where = f"{one[0]}–{one[-1]}" if len(one) > 1 else f"{one[0]}"
                kind = "" if number else "steps " if len(one) > 1 else "step "
                texts[number] += f" at {kind}{where}"
        more = f", … ({len(runs) - 3} more)" if len(runs) > 3 else ""
        assert decisions == ", ".join(texts[:3]) + more


def test_before_the_first_episode(run: Any) -> None:
    watched(0, initial=[0.2, 0.0, 0.8], **WORDS)
    out = run("watch", "a.npz")[1]
    assert "18 of 18 triples" in out
    rows = below(out, "unexplored")[2:]
    assert "begins in" in rows[0]
    assert [row.split()[1] for row in rows[2:4]] == ["late", "idle"]


def test_names_cannot_steer_the_terminal(run: Any) -> None:
    watched(5, state_names=["\x1b[31m", "b", "c" * 90], action_names=["[red]", "\x07"])
    out = run("watch", "a.npz")[1]
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "c" * 90 not in out
    assert "[red]" in out


def test_a_file_of_before_shows_no_plan(run: Any) -> None:
    watched(5)
    with np.load("a.npz") as archive:
        entries = {name: archive[name] for name in archive if not name.startswith("shown_")}
    np.savez("a.npz", **entries)
    code, out, _ = run("watch", "a.npz")
    assert code == 0
    assert "unexplored" not in out
    assert "the last 5 episodes" in out


@pytest.mark.parametrize(("height", "rows"), [(60, 3), (28, 1), (20, 0)])
def test_a_low_terminal_shows_less_of_the_policy(run: Any, height: int, rows: int) -> None:
    watched(30, "a.npz")
    console = Console(width=80, height=height)
    stamp, saved = watching._look(Path("a.npz"))
    with console.capture() as caught:
        console.print(watching._fitting(console, Path("a.npz"), stamp, saved))
    lines = caught.get().splitlines()
    assert sum(line.startswith("│ state ") for line in lines) == rows
    assert max(map(len, lines)) <= 80
    assert "the last 30 episodes:" in lines


def test_what_is_played_beside_the_plan(run: Any) -> None:
    """A baseline without slack, and a policy that stays."""
    agent = pump_agent(0.1, baseline=[WAIT, WAIT], **NAMES)
    agent.freeze()
    agent.save("a.npz")
    told = agent.account.playing
    assert len(told) == 2
    _, out, _ = run("watch", "a.npz")
    assert tuple(below(out, "frozen: the policy stays")[:2]) == told
    assert told[1].startswith("the baseline is played in all episodes: its slack is believed to be")
    _, out, _ = run("watch", "a.npz", "--json")
    assert json.loads(out)["playing"] == list(told)
