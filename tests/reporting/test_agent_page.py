"""`report` of an agent's file: one page with its account, returns, policy and declaration."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
import damages
import page_cases
from cmdpax.reporting.agent_content import LONGEST, MOST_CONSTRAINTS
from live_cases import assert_sentence, draw_episodes, log_of, make
from page_elements import HOSTILE, Elements
from watch_cases import watched

THREE = {
    "thresholds": [12.5, -0.25, 1.0],
    "senses": ["at most", "at least", "at most"],
    "constraint_ranges": [(0, 10), (-1, 1), (0, 1)],
    "names": ["empty hours", "comfort", "noise"],
    "units": {"empty hours": "h", "reward": "EUR"},
    "state_names": ["idle", "busy", "late"],
    "action_names": ["rest", "work"],
}


def page_of(path: Path) -> str:
    return cmdpax.report(path, path.parent / "page.html").read_text(encoding="utf-8")


def text_of(page: str) -> str:
    """What a reader sees, roughly: without the scripts and the tags."""
    body = page[page.index("<body>") : page.index('<script type="application/json"')]
    return " ".join(re.sub("<[^>]*>", " ", body).split())


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> tuple[cmdpax.Agent, Path]:
    """Three constraints, some episodes cut short."""
    path = tmp_path_factory.mktemp("agent") / "a.npz"
    return watched(60, path, **THREE), path


@pytest.fixture(scope="module")
def page(agent: tuple[cmdpax.Agent, Path]) -> str:
    return page_of(agent[1])


# ------------------------------------------------------------------------------------------ content


def test_the_account_is_in_it(agent: Any, page: str) -> None:
    text = text_of(page)
    account = agent[0].account
    assert f"for 60 episodes, of which {account.cut_short} were cut short. Saved on" in text
    for one in account:
        for number in (one.observed, one.recent, one.always):
            assert str(number).replace("-", "−") in text
        assert f"{one.sense} {one.threshold:g}".replace("-", "−") in text
        assert f"{one.missed} of 60" in text
    assert "reward [EUR]" in text
    assert "empty hours [h]" in text
    verdicts = re.findall(r"class='badge (\w+)'>(\w+)<", page)
    kinds = {"met": "holds", "missed": "fails", "open": "undecided"}
    assert verdicts == [(kinds[one.verdict], one.verdict) for one in account]


def test_the_charts_are_the_record(agent: Any, page: str) -> None:
    payload, record = Elements(page).payload(), agent[0].record
    assert (payload["length"], payload["window"]) == (1, 15)
    assert payload["last"] == record.last.tolist()
    assert [one["label"] for one in payload["signals"]] == [
        "reward [EUR]",
        "empty hours [h]",
        "comfort",
        "noise",
    ]
    assert [one["threshold"] for one in payload["signals"]] == [None, 12.5, -0.25, 1.0]
    returns = agent[0].recent["constraint_returns"][:, 1]
    whole = np.arange(1, 61) % 3 > 0
    low = payload["signals"][2]["low"]
    assert [value is None for value in low] == (~whole).tolist()
    np.testing.assert_allclose([value for value in low if value is not None], returns[whole], 1e-6)
    assert payload["episodes"] == list(range(15, 61))
    mean = returns[45:][whole[45:]].mean()
    assert payload["signals"][2]["mean"][-1] == pytest.approx(mean, rel=1e-6)
    assert f"The last mean is {mean:.4g}".replace("-", "−") in text_of(page)


def test_the_policy_and_what_is_unexplored(agent: Any, page: str) -> None:
    text, visits = text_of(page), agent[0].visits
    names = [THREE["state_names"][state] for state in np.argsort(-visits.sum(axis=(0, 2)))]
    rows = re.findall(r"<tr><th scope='row'>(idle|busy|late)</th><td>([\d,]+)</td>", page)
    assert [name for name, _ in rows] == names
    assert sum(int(count) for _, count in rows) == visits.sum()
    assert f"{(visits == 0).sum()} of 18 triples of step, state and action were never tri" in text


def test_the_declaration_is_in_it(page: str) -> None:
    text = text_of(page)
    for part in (
        "comfort at least −0.25 −1 to 1 declared 0",
        "states 3 actions 2; available: all of them",
        "in 2 states, most often in idle (50 %)",
        "algorithm regularized-primal-dual parameters step_size = 0.1, regularization = 0.02",
        "seed 11",
    ):
        assert part in text


def test_a_baseline_and_a_frozen_policy(tmp_path: Path) -> None:
    agent = make(
        "replanning",
        **(THREE | {"reward_range": (0, 1)}),
        baseline=np.zeros(3, int),
        confidence=0.8,
        margin=[0.5, 0.25, 0.0],
        approve=lambda change: False,
    )
    agent.freeze()
    agent.save(tmp_path / "a.npz")
    text = text_of(page_of(tmp_path / "a.npz"))
    assert f"The plan is played in {100 * agent.mixture.share:.3g} % of the episodes" in text
    assert "The agent is frozen" in text
    assert "Plans that were declined in a row: 1." in text
    assert "baseline given, to be safe with a confidence of 0.8" in text
    assert "plans are approved before they are played" in text
    assert "empty hours [h] at most 12.5 0 to 10 declared 0.5" in text


def test_ranges_that_were_observed(tmp_path: Path) -> None:
    make("replanning", reward_range=(0, 1), thresholds=[]).save(tmp_path / "a.npz")
    assert "0 to 1 declared" in text_of(page_of(tmp_path / "a.npz"))
    with np.load(tmp_path / "a.npz") as archive:
        entries = dict(archive)
    head = json.loads(str(entries["agent"]))
    head["declaration"]["units"][3] = [False]
    np.savez(tmp_path / "a.npz", **(entries | {"agent": np.array(json.dumps(head))}))
    assert "0 to 1 as observed so far" in text_of(page_of(tmp_path / "a.npz"))


@pytest.mark.parametrize("count", [0, 1])
def test_without_a_whole_episode(tmp_path: Path, count: int) -> None:
    agent = make(**THREE)
    if count:
        agent.start(0)
        agent.act(0)
        agent.observe(0.5, [1.0, 0.0, 0.0], 1)
        agent.end()
    agent.save(tmp_path / "a.npz")
    page = page_of(tmp_path / "a.npz")
    assert "No whole episode has been played yet." in text_of(page)
    assert Elements(page).payload()["signals"] == []


def test_without_constraints(tmp_path: Path) -> None:
    watched(5, tmp_path / "a.npz", thresholds=[], senses=(), constraint_ranges=None, names=None)
    page = page_of(tmp_path / "a.npz")
    assert "There is no constraint." in text_of(page)
    assert len(Elements(page).payload()["signals"]) == 1


def test_a_file_of_before(tmp_path: Path) -> None:
    watched(30, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        entries = {
            name: one for name, one in archive.items() if not name.startswith(("blocks_", "shown_"))
        }
    np.savez(tmp_path / "a.npz", **entries)
    text = text_of(page_of(tmp_path / "a.npz"))
    assert text.count("This file is from an earlier version") == 2
    assert "The last mean is" in text


def test_an_open_episode_and_logs_of_others(tmp_path: Path) -> None:
    agent = make()
    agent.feed(log_of(agent, draw_episodes(agent, 6)))
    agent.start(0)
    agent.act(0)
    agent.observe(0.5, [0.5, 0.5], 1)
    agent.save(tmp_path / "a.npz")
    text = text_of(page_of(tmp_path / "a.npz"))
    assert "It also learned from 6 logged episodes that others played." in text
    assert "Episode 7 is open, after 1 of 3 steps." in text


# --------------------------------------------------------------------------------- safety and looks


def test_the_page_is_as_safe_and_as_complete_as_the_other(page: str) -> None:
    elements = Elements(page)
    policy = next(a["content"] for t, a in elements.found if "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "slot:" not in page
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in elements.found:
        assert not any(name.startswith("on") for name in attributes)
        assert not any(str(a).startswith(("http", "//")) for a in attributes.values()), tag
        for name in ("aria-describedby", "for"):
            assert attributes.get(name, ids[0]) in ids
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids
    assert sum("chart" in (a.get("class") or "").split() for _, a in elements.found) == 4


def test_names_are_text(tmp_path: Path) -> None:
    folder = tmp_path / "<b>"
    folder.mkdir()
    path = folder / "<script>alert(1)<!-- slot: payload -->.npz"
    names = [HOSTILE, "<!-- slot: policy -->", "\u202e' onload='x"]
    changes = {"names": names, "units": ["<u>", "'\"", "&lt;", "<i>"]}
    actions = {"state_names": [HOSTILE, "b", "c"], "action_names": ["</td>", "b"]}
    watched(12, path, **(THREE | changes | actions))
    page = cmdpax.report(path, tmp_path / "page.html").read_text(encoding="utf-8")
    elements = Elements(page)
    tags = {tag for tag, _ in elements.found}
    assert not tags & {"img", "u", "i", "b"}
    assert page.count("</script>") == sum(tag == "script" for tag, _ in elements.found)
    assert not any(name.startswith("on") for _, a in elements.found for name in a)
    assert elements.payload()["signals"][1]["label"].startswith("</script><img src=x onerror=alert")
    assert "&lt;!-- slot: policy --&gt;" in page
    assert "\u202e" not in page


def test_a_large_system_makes_a_page_of_bounded_size(tmp_path: Path) -> None:
    """More constraints than are shown, names of 200 characters: the most urgent come first."""
    count = 40
    names = [f"{place} {'x' * 190}" for place in range(count)]
    thresholds = np.full(count, 0.1)
    thresholds[-3:] = 2.99  # at least this of three: missed
    agent = make(thresholds=thresholds, names=names, state_names=[f"{s}" * 200 for s in "abc"])
    agent.feed(log_of(agent, draw_episodes(agent, 60)), own=True)
    assert [one.verdict for one in agent.account][-4:] == ["met", *["missed"] * 3]
    agent.save(tmp_path / "a.npz")
    page = page_of(tmp_path / "a.npz")
    plotly = max(Elements(page).scripts, key=len)
    assert len(page) - len(plotly) < 500_000
    signals = Elements(page).payload()["signals"]
    assert len(signals) == 1 + MOST_CONSTRAINTS
    assert max(len(one["label"]) for one in signals) <= LONGEST
    assert [one["label"].split()[0] for one in signals[-3:]] == ["37", "38", "39"]
    assert "16 more constraints are not shown" in text_of(page)


# ------------------------------------------------------------------------------- files, and the CLI


def test_a_page_depends_on_the_file_alone(agent: Any, page: str, tmp_path: Path) -> None:
    found = cmdpax.report(agent[1], tmp_path / "again.html").read_text(encoding="utf-8")
    assert found == page
    os.utime(agent[1], (0, 0))
    again = cmdpax.report(agent[1], tmp_path / "again.html").read_text(encoding="utf-8")
    assert "Saved on 1 January 1970 at 00:00 UTC." in again


def test_command(run: Any, tmp_path: Path) -> None:
    watched(4)
    code, out, err = run("report", "a.npz", "--out", "page.html")
    assert (code, out) == (0, "")
    assert re.fullmatch(r"wrote page\.html, [\d.]+ MiB\n", err)
    assert "Agent a.npz" in (tmp_path / "page.html").read_text(encoding="utf-8")


def is_text(path: Path) -> None:
    path.write_text("an agent")


def is_another(path: Path) -> None:
    np.savez(path, rewards=np.zeros(3))


def says_something_else(path: Path) -> None:
    with np.load(path) as archive:
        entries = dict(archive)
    head = json.loads(str(entries["agent"]))
    head["tally"]["episodes"] = 7
    np.savez(path, **(entries | {"agent": np.array(json.dumps(head))}))


@pytest.mark.parametrize(
    "damage",
    [damages.truncate, damages.empty, damages.flip, is_text, is_another, says_something_else],
)
def test_what_is_no_agents_file(run: Any, tmp_path: Path, damage: Any) -> None:
    watched(4)
    (tmp_path / "page.html").write_text("before")
    damage(Path("a.npz"))
    code, out, err = run("report", "a.npz", "--out", "page.html")
    assert (code, out) == (1, "")
    assert err.startswith("error: a.npz is not a readable file of an agent: ")
    assert err.count("\n") == 1
    assert (tmp_path / "page.html").read_text() == "before"


def test_what_is_not_there(run: Any) -> None:
    code, _, err = run("report", "none.npz", "--out", "page.html")
    assert code == 1
    assert err.startswith("error: none.npz ")


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_an_interrupted_page_leaves_the_one_before(
    agent: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    out = tmp_path / "page.html"
    out.write_text("before")

    def fail(*_: Any) -> None:
        raise kind(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(cmdpax.FileError if kind is OSError else kind) as caught:
        cmdpax.report(agent[1], out)
    if kind is OSError:
        assert_sentence(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert out.read_text() == "before"


# ------------------------------------------------------------------------------------ in a browser


NAMES_OF = "() => document.getElementById('{}').data.map((trace) => trace.name)"
SHADE = "() => { const [s] = cmdpax.byId('returns-chart-2').layout.shapes; return [s.y0, s.y1]; }"


@pytest.fixture(scope="module")
def blocks(program: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an agent whose episodes are joined to blocks."""
    path = tmp_path_factory.mktemp("blocks") / "a.npz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cmdpax.live.record.MOST", 16)
        agent = make(**THREE)
        agent.feed(log_of(agent, draw_episodes(agent, 90)), own=True)
        agent.save(path)
        return cmdpax.report(path, path.parent / "page.html")


@pytest.mark.parametrize("dark", [False, True])
def test_the_charts_are_drawn(open_page: Any, blocks: Path, screenshot: Any, dark: bool) -> None:
    page = page_cases.ready(open_page(blocks, dark=dark))
    screenshot(page, f"agent-{'dark' if dark else 'light'}")
    assert page.locator(".chart[data-drawn] .main-svg").count() >= 4
    assert page.locator("#failure").is_hidden()
    found = page.evaluate(NAMES_OF.format("returns-chart-3"))
    assert found == ["least to largest", "95 % interval", "mean of 24", "at most 1"]
    (inner, outer) = page.evaluate(SHADE)
    assert (inner, outer < -0.25) == (-0.25, True)  # below a threshold of "at least"
    assert page.evaluate("() => document.body.scrollWidth <= innerWidth")


def test_single_episodes_and_hostile_names_are_drawn(
    open_page: Any, program: str, tmp_path: Path
) -> None:
    watched(9, tmp_path / "a.npz", names=[HOSTILE, "<b>b</b>"])
    page = page_cases.ready(open_page(cmdpax.report(tmp_path / "a.npz", tmp_path / "page.html")))
    found = page.evaluate(NAMES_OF.format("returns-chart-1"))
    assert found[0] == "episodes"
    assert page.locator("main img").count() == 0


def test_an_agent_without_episodes_is_shown(open_page: Any, program: str, tmp_path: Path) -> None:
    make().save(tmp_path / "a.npz")
    page = page_cases.ready(open_page(cmdpax.report(tmp_path / "a.npz", tmp_path / "page.html")))
    page.locator("#theme").click()
    assert page.locator("#returns").inner_text().endswith("No whole episode has been played yet.")
