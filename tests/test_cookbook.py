"""`docs/cookbook.md`: what it says about itself; `test_docs.py` runs it."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "cookbook.md").read_text(encoding="utf-8")
PROBLEMS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


def test_the_contents_name_every_problem():
    anchors = re.findall(r"\]\(#([\w-]+)\)", PAGE.partition("\n## ")[0])
    assert anchors == [re.sub(r"\W+", "-", title.lower()) for title in PROBLEMS]


@pytest.mark.parametrize("title", PROBLEMS)
def test_a_problem_takes_fewer_than_25_lines(title):
    blocks = re.findall(r"```pycon\n(.*?)```", PROBLEMS[title], re.DOTALL)
    lines = re.findall(r"^(?:>>>|\.\.\.) .*", "".join(blocks), re.MULTILINE)
    assert 0 < len(lines) < 25


@pytest.mark.parametrize("title", PROBLEMS)
def test_a_problem_ends_in_a_table_or_a_picture(title):
    *_, last = re.findall(r"```pycon\n(.*?)```|!\[.+\]\((images/.+?)\)", PROBLEMS[title], re.DOTALL)
    code, picture = last
    printed = [line for line in code.splitlines() if not line.startswith((">>> ", "... "))]
    assert (DOCS / picture).is_file() if picture else printed
