"""The notebooks run from top to bottom, show pictures, and are stored clean.

Jupyter is not needed: code cells run one after the other in one namespace, and what a cell ends
with is displayed. Two of IPython's commands are understood: `%matplotlib inline`, which does
nothing here, and `%%writefile`.
"""

import ast
import io
import json
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "notebooks"
SMALLER = {"from_csv_to_a_safe_policy": {"LOGS": 3}}
"""For each notebook, smaller numbers for those at its top."""

Names = dict[str, Any]


def cells_of(name: str, kind: str) -> list[dict[str, Any]]:
    """The cells of a notebook, each with its source as one text."""
    book = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    chosen = [cell for cell in book["cells"] if cell["cell_type"] == kind]
    return [{**cell, "source": "".join(cell["source"])} for cell in chosen]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a notebook runs: its files, and modules among them, are there."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.use("agg")
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def execute(name: str) -> tuple[Names, list[bytes]]:
    """Run a notebook; returns its names and its pictures, as PNG."""
    names: Names = {"__name__": "__main__"}
    pictures: list[bytes] = []
    numbers = dict(SMALLER.get(name, {}))
    for cell in cells_of(name, "code"):
        command, _, rest = cell["source"].partition("\n")
        if command.startswith("%%writefile "):
            Path(command.split()[1]).write_text(rest, encoding="utf-8")
            continue
        source = re.sub(r"^%matplotlib inline$", "", cell["source"], flags=re.MULTILINE)
        for number in list(numbers):
            source, found = re.subn(
                rf"^{number} = \d+", f"{number} = {numbers[number]}", source, flags=re.MULTILINE
            )
            if found:
                del numbers[number]
        pictures += run_cell(source, cell["id"], names)
    assert not numbers  # each was found
    return names, pictures


def run_cell(source: str, place: str, names: Names) -> list[bytes]:
    """Run one cell, and return the pictures that Jupyter would show below it."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    tree, shown = ast.parse(source, place), []
    if isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, place, "exec"), names)
        shown.append(eval(compile(last, place, "eval"), names))
    else:
        exec(compile(tree, place, "exec"), names)
    shown += [plt.figure(number) for number in plt.get_fignums()]
    pictures = []
    for value in shown:
        if isinstance(value, Figure):
            pictures.append(io.BytesIO())
            value.savefig(pictures[-1], format="png", dpi=50)
        else:
            getattr(value, "_repr_html_", value.__repr__)()
    plt.close("all")
    return [picture.getvalue() for picture in pictures]


def check_learner(names: Names) -> None:
    plain, same = names["plain"], names["same"]
    np.testing.assert_allclose(plain.value, same.value, atol=1e-9)
    looking, usual = (names["histories"][name] for name in ("looking ahead, 1", "vanilla"))
    measures = ("strong_objective", "strong_constraints")
    for better, worse in zip(
        *(map(each.summary().get, measures) for each in (looking, usual)), strict=True
    ):
        assert (better < worse).all()
    assert len(names["results"].final) == 9 * 12
    assert "looking_ahead:looking_ahead" in [row.algorithm for row in names["standings"]]


def check_agent(names: Names) -> None:
    assert names["agent"].account.episodes == 300 + 7  # frozen ones count
    assert names["again"].num_episodes == 300 + 7 + 1
    assert names["again"].account[0].threshold == 0.5
    assert 0 < names["answers"].count(False) < len(names["answers"])
    rule, agent, best = names["values"]
    assert rule.value < agent.value <= best.value + 0.2
    assert names["page"].stat().st_size > 100_000


def check_policy(names: Names) -> None:
    assert names["plan"].certified
    assert names["plain"].constraint_values[0] == pytest.approx(1.0)
    assert names["safe_stops"] < 1 < names["stops"]  # what the text prepares for
    assert names["crew_profit"] < names["safe_profit"]
    assert "log about" in str(names["refusal"])


def check_paper(names: Names) -> None:
    strategy = names["accounts"]["B"]
    assert strategy.weak_regret.maximum[-1] == pytest.approx(0, abs=1e-12)
    assert strategy.strong_regret.maximum[-1] == pytest.approx(4)
    swings = [row["late swing"] for row in names["rows"] if "late swing" in row]
    assert swings == sorted(swings, reverse=True)
    assert "fails" not in names["verdicts"].values()
    vanilla, regularized = (history.summary() for history in names["histories"].values())
    for measure in ("strong_objective", "strong_constraints"):
        assert regularized[measure].mean() < vanilla[measure].mean()
    assert regularized["weak_constraints"].mean() > vanilla["weak_constraints"].mean()


CHECKS: dict[str, Callable[[Names], None]] = {
    "add_your_learner": check_learner,
    "an_agent_on_a_live_system": check_agent,
    "from_csv_to_a_safe_policy": check_policy,
    "the_paper_in_an_hour": check_paper,
}


@pytest.mark.whole
@pytest.mark.parametrize("name", CHECKS)
def test_it_runs_and_what_it_says_is_true(name: str, folder: Path) -> None:
    from matplotlib.image import imread

    names, pictures = execute(name)
    assert len(pictures) >= 2
    for picture in pictures:
        assert imread(io.BytesIO(picture)).std() > 0.01
    CHECKS[name](names)


def test_all_are_here_and_listed() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(CHECKS)
    for page in (FOLDER / "README.md", ROOT / "docs" / "notebooks.md"):
        assert set(re.findall(r"(\w+)\.ipynb", page.read_text(encoding="utf-8"))) == set(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_it_is_stored_clean(name: str) -> None:
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert text == runpy.run_path(str(FOLDER / "clean.py"))["clean"](text), "run clean.py"
    assert not re.search(r"(?:/home|/root|/tmp|/Users|/work|[A-Z]:\\\\)[/\\]", text)
    book = json.loads(text)
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    identifiers = [cell["id"] for cell in book["cells"]]
    assert len(set(identifiers)) == len(identifiers)
    assert all(re.fullmatch(r"[a-z0-9-]{1,64}", identifier) for identifier in identifiers)
    common = {"cell_type", "id", "metadata", "source"}
    for cell in book["cells"]:
        more = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == common | more
        assert all(line.endswith("\n") for line in cell["source"][:-1])


@pytest.mark.parametrize("name", CHECKS)
def test_its_links_lead_somewhere(name: str) -> None:
    text = "\n".join(cell["source"] for cell in cells_of(name, "markdown"))
    assert text.startswith("# ")
    links = re.findall(r"\]\(([^)#\s]+)(?:#([^)\s]+))?\)", text)
    assert len(links) > 2
    for target, anchor in links:
        page = (FOLDER / target).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
        slugs = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
        assert not anchor or anchor in slugs, (target, anchor)


def test_the_verdict_is_the_one_of_the_docs() -> None:
    docs = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    (verdict,) = (c for c in cells_of("the_paper_in_an_hour", "markdown") if c["id"] == "verdict")
    rows = re.findall(r"^\| \d+\. .*$", verdict["source"], re.MULTILINE)
    assert len(rows) == 11
    for row in rows:
        assert row in docs
