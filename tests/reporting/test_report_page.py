"""`report` as a file: what is written, what is escaped, what is allowed, what is refused."""

import base64
import hashlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import polars
import pytest

import cmdpax
from cmdpax.reporting.content import content
from cmdpax.reporting.page import write_page
from cmdpax.reporting.sections import number, write_claims, write_story
from cmdpax.reporting.story import Side, tell_story
from page_elements import HOSTILE, Elements
from report_cases import ALGORITHMS, invent, random_cmdps


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two CMDPs, two algorithms, three seeds."""
    out = tmp_path_factory.mktemp("results") / "sweep"
    invent(
        {
            "num_episodes": 40,
            "seeds": 3,
            "record": "all",
            "cmdps": random_cmdps(seed=[1, 2]),
            "algorithms": ALGORITHMS,
        },
        out,
    )
    return out


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return cmdpax.report(folder, folder.parent / "page.html").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------------------- the file


def test_it_is_written_whole_and_replaced(folder, tmp_path):
    out = tmp_path / "page.html"
    out.write_text("before")
    assert cmdpax.report(folder, out) == out
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_page_depends_on_the_folder_alone(folder, page, tmp_path):
    assert cmdpax.report(folder, tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_nothing_is_left_in_the_template(page):
    assert "slot:" not in page


def test_ids_are_unique_and_what_refers_to_them_exists(page):
    found = Elements(page).found
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in found:
        for name in ("for", "aria-describedby", "aria-labelledby", "data-copies"):
            assert attributes.get(name, ids[0]) in ids
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids


def test_every_chart_has_a_text_alternative_and_takes_the_keyboard(page):
    charts = [a for _, a in Elements(page).found if "chart" in (a.get("class") or "").split()]
    assert len(charts) >= 8
    for chart in charts:
        assert chart["tabindex"] == "0"
        assert chart["role"] == "img"
        assert chart["aria-label"]
        assert chart["aria-describedby"] == f"{chart['id']}-text"


def test_the_browser_may_run_these_scripts_alone_and_fetch_nothing(page):
    elements = Elements(page)
    policy = next(a["content"] for t, a in elements.found if "http-equiv" in a)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    assert rules["img-src"] == "data: blob:"
    kinds = [attributes for tag, attributes in elements.found if tag == "script"]
    own = [text for text, a in zip(elements.scripts, kinds, strict=True) if "type" not in a]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in own]
    assert len(own) == 1
    assert f"'sha256-{digests[0]}'" in rules["script-src"].split()
    assert len(rules["script-src"].split()) == 2  # and Plotly's
    for tag, attributes in elements.found:
        assert not any(name.startswith("on") for name in attributes)
        assert not any(str(a).startswith(("http", "//")) for a in attributes.values()), tag


# ------------------------------------------------------------------------------------------- names


def test_names_are_text(folder):
    payload, blocks = content(folder)
    payload = json.loads(json.dumps(payload))
    sweep = payload["sweeps"][0]
    payload["folder"] = sweep["label"] = HOSTILE
    sweep["cmdps"][0]["name"] = HOSTILE
    sweep["algorithms"] = [HOSTILE, "other"]
    sweep["configurations"][0]["label"] = HOSTILE
    payload["replay"] = {"command": HOSTILE, "specification": HOSTILE, "notes": [HOSTILE]}
    payload["claims"] = [claim(sentence=HOSTILE, remark=HOSTILE, text=HOSTILE)]
    page = write_page(payload, blocks)
    elements = Elements(page)
    assert "img" not in {tag for tag, _ in elements.found}
    assert elements.payload()["sweeps"][0]["cmdps"][0]["name"] == HOSTILE
    assert page.count("</script>") == sum(tag == "script" for tag, _ in elements.found)
    assert page.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&amp;amp;") >= 8


def claim(**texts: str) -> dict[str, Any]:
    interval = {"mean": -1.5, "half": 0.25, "size": 3}
    return {
        "number": 1,
        "sentence": texts["sentence"],
        "remark": texts["remark"],
        "first_cmdp": "holds",
        "family": "fails",
        "cmdps": 2,
        "cmdps_held": 1,
        "quantities": [
            {
                "text": texts["text"],
                "side": "below",
                "bound": 0.0,
                "first_cmdp": interval,
                "family": {"mean": 2.0, "half": None, "size": 2},
                "cmdps_held": 1,
            }
        ],
    }


def test_the_line_below_a_claim_is_what_decides_it():
    one = claim(sentence="It is smaller.", remark="", text="a difference")
    other = one["quantities"][0] | {"text": "a ratio", "bound": -1.4}  # its interval holds -1.4
    both = one | {"quantities": [*one["quantities"], other], "first_cmdp": "undecided"}
    assert "<small>a ratio: −1.5 ± 0.25, claimed below −1.4 (and 1 more)</small>" in write_claims(
        [both]
    )
    assert "<small>a difference: −1.5 ± 0.25, claimed below 0</small>" in write_claims([one])


def test_claims_have_their_numbers():
    told = write_claims([claim(sentence="It is smaller.", remark="Why.", text="a difference")])
    for part in ("1 hold,", "holds</span>1. It is smaller.", "a difference: −1.5 ± 0.25", "Why."):
        assert part in told
    assert "Over 2 CMDPs: fails; on 1 of them one by one." in told
    assert "<td>below 0</td><td>−1.5 ± 0.25</td><td>2</td>" in told
    assert write_claims(None) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (-1.23456, "−1.235"), (12345.6, "12,346"), (1e-7, "1e−07")],
)
def test_numbers_for_people(value, text):
    assert number(value) == text


# ------------------------------------------------------------------------------------------- story


def test_the_story_is_of_a_vanilla_algorithm_and_its_counterpart(folder):
    results = cmdpax.results(folder)
    payload, _ = content(folder)
    sweep = payload["sweeps"][0]
    sides = tell_story(sweep)
    assert [s.algorithm for s in sides] == ["vanilla-primal-dual", "regularized-primal-dual"]
    first = next(iter(results.manifest["cmdps"]))
    best = results.best(cmdps=[first])
    for side in sides:
        chosen = best.filter(polars.col("algorithm") == side.algorithm)["configuration"][0]
        row = results.final.filter(
            (polars.col("configuration") == chosen)
            & (polars.col("cmdp") == first)
            & (polars.col("seed") == int(side.run.removeprefix("seed ")))
        ).row(0, named=True)
        group = sweep["groups"][side.group]
        assert sweep["configurations"][group["configuration"]]["id"] == chosen
        assert group["shown"][0] == side.run
        assert side.strong == pytest.approx(row["strong_constraints"], rel=1e-6)
        assert side.weak == pytest.approx(row["weak_constraints"], rel=1e-6)
        assert side.spared == pytest.approx(side.strong - side.weak)
        assert side.num_unsafe == round(40 * row["unsafe_at_1e-09"])
    text = write_story(sides, 40)
    for side in sides:
        assert f"<b>{number(side.strong)}</b>" in text
        assert f"<b>− {number(side.spared)}</b>" in text
        assert f"<b>= {number(side.weak)}</b>" in text
        assert f"of the {number(side.strong)}." in text


def test_of_several_constraints_the_worst_is_told(tmp_path):
    results = invent(
        {
            "num_episodes": 30,
            "seeds": 2,
            "record": "all",
            "cmdps": random_cmdps(num_constraints=3),
            "algorithms": ALGORITHMS,
        },
        tmp_path / "sweep",
    )
    payload, _ = content(tmp_path / "sweep")
    sweep = payload["sweeps"][0]
    sides = tell_story(sweep)
    assert len(sides) == 2
    for side in sides:
        chosen = sweep["configurations"][sweep["groups"][side.group]["configuration"]]["id"]
        curves = results.curves.filter(
            (polars.col("configuration") == chosen)
            & (polars.col("seed") == int(side.run.removeprefix("seed ")))
        ).collect()
        last = curves.sort("episode").row(-1, named=True)
        strong, weak = last["strong_by_constraint"], last["weak_by_constraint"]
        assert side.constraint == strong.index(max(strong))
        assert side.strong == pytest.approx(max(strong), rel=1e-6)
        assert side.weak == pytest.approx(weak[side.constraint], rel=1e-6)
        assert side.as_record()["series"] == f"violation[{side.constraint}]"
    assert "with the largest strong regret" in write_story(sides, 30)


SIDE = Side("vanilla-dual", "η = 0.1", "", 0, None, 12, 30.0, 5.0, 0.2, 0.1, False)
STEADY = SIDE._replace(
    algorithm="regularized-dual", strong=20.0, weak=19.9, swing=0.01, last=0.02, biased=True
)


def test_the_story_says_which_account_prefers_whom():
    told = write_story([SIDE, STEADY], 40)
    assert "<strong>vanilla-dual looks better</strong> (5 against 19.9)" in told
    assert "<strong>regularized-dual is better</strong> (20 against 30)" in told
    assert "So weak regret shows only 5 of the 30." in told
    assert "next to nothing cancels" in told
    assert "±0.01 with regularized-dual, and ±0.2 with vanilla-dual" in told


def test_the_story_is_honest_where_the_other_is_no_better():
    told = write_story([SIDE, STEADY._replace(strong=31.0)], 40)
    assert "The strong regret is not smaller here (31 against 30)" in told
    assert "looks better" not in told


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, True),
        ({"biased": False}, False),  # a decaying τ, or a margin
        ({"swing": 0.5}, False),  # it has not settled
        ({"last": -0.1}, False),  # nothing is missed
        ({"weak": 20.0}, False),  # it never came near the threshold
    ],
)
def test_the_bias_is_blamed_only_where_it_is_the_reason(changes, told):
    sentence = "a fixed τ leaves a small constant error, which a margin removes"
    assert (sentence in write_story([SIDE, STEADY._replace(**changes)], 40)) == told


def test_a_bias_needs_a_constant_regularization_without_a_margin(folder):
    payload, _ = content(folder)
    sweep = payload["sweeps"][0]
    assert [side.biased for side in tell_story(sweep)] == [False, True]  # vanilla has no τ
    changed = json.loads(json.dumps(sweep))
    for configuration in changed["configurations"]:
        configuration["parameters"]["margin"] = "0.1"
    assert [side.biased for side in tell_story(changed)] == [False, False]
    changed = json.loads(json.dumps(sweep))
    for configuration in changed["configurations"]:
        configuration["parameters"]["regularization"] = "0.1*k^-0.2"
    assert [side.biased for side in tell_story(changed)] == [False, False]
    for configuration in changed["configurations"]:
        configuration["parameters"] = {"gain": "2"}  # as an algorithm of one's own may have
    assert [side.biased for side in tell_story(changed)] == [False, False]


def test_without_a_pair_the_story_is_of_the_worst_and_the_best(folder):
    payload, _ = content(folder)
    sweep = json.loads(json.dumps(payload["sweeps"][0]))
    sweep["algorithms"] = ["one", "two"]
    strong = {side.algorithm: side.strong for side in tell_story(sweep)}
    assert strong
    assert min(strong, key=strong.__getitem__) == list(strong)[-1]


@pytest.mark.parametrize("name", ["strong", "strong_constraints", "weak_constraints"])
def test_what_is_not_a_number_is_no_side_of_the_story(folder, name: str):
    """Earlier versions wrote such accounts; in a page they are null."""
    payload, _ = content(folder)
    sweep = json.loads(json.dumps(payload["sweeps"][0]))
    first = tell_story(sweep)[0].algorithm
    runs = sweep["runs"]
    for place, configuration in enumerate(runs["configuration"]):
        if sweep["algorithms"][sweep["configurations"][configuration]["algorithm"]] == first:
            runs["measures"][name][place] = None
    assert first not in [side.algorithm for side in tell_story(sweep)]


def test_a_single_constraint_without_a_number_is_not_the_one_told(folder):
    payload, _ = content(folder)
    sweep = json.loads(json.dumps(payload["sweeps"][0]))
    for group in sweep["groups"]:
        for at, series in enumerate(group["series"]):
            if series.startswith("weak_constraints["):
                group["ends"][at] = None
    assert {side.constraint for side in tell_story(sweep)} == {None}


def test_without_constraints_there_is_no_story(folder):
    payload, _ = content(folder)
    sweep = json.loads(json.dumps(payload["sweeps"][0]))
    sweep["cmdps"][0]["sizes"]["num_constraints"] = 0
    assert tell_story(sweep) == []
    assert write_story([], 40) == ""


# ------------------------------------------------------------------------------------ command line


def test_command(run, folder, tmp_path):
    code, out, err = run("report", str(folder), "--out", "page.html")
    assert (code, out) == (0, "")
    assert re.fullmatch(r"wrote page\.html, [\d.]+ MiB\n", err)
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nowhere --out page.html", "error: nowhere is not a folder; give one that"),
        (". --out page.html", "error: . holds no results; give one that"),
        (". --out page.pdf", "error: page.pdf has the ending '.pdf'; a page is a .html file."),
        (". --out deep/page.html", "error: cannot write deep/page.html: the folder deep does not"),
    ],
)
def test_what_is_refused(run, tmp_path, arguments, message):
    code, out, err = run("report", *shlex.split(arguments))
    assert (code, out) == (1, "")
    assert err.startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_the_command_that_the_page_tells_makes_the_numbers_again(run, tmp_path):
    specification = {
        "num_episodes": 20,
        "seeds": [3, 5],
        "cmdps": [{"environment": "bandit"}],
        "algorithms": [{"name": "vanilla-primal-dual", "step_size": [0.1, "0.3*k^-0.2"]}],
    }
    before = cmdpax.sweep(specification, tmp_path / "results")
    run("report", "results", "--out", "page.html")
    replay = Elements((tmp_path / "page.html").read_text(encoding="utf-8")).payload()["replay"]
    (tmp_path / "specification.toml").write_text(replay["specification"], encoding="utf-8")
    program, *arguments = shlex.split(replay["command"])
    code, _, _ = run(*arguments)
    assert (program, code) == ("cmdpax", 0)
    assert cmdpax.results(tmp_path / "again").final.equals(before.final)
