"""Colours of algorithms: fixed, shared by pictures and page, and never two alike."""

import itertools
from pathlib import Path
from typing import Any

import pytest

import cmdpax
from cmdpax.figures import plot_sweep
from cmdpax.figures.colours import ALGORITHMS, DASHES, line_style, pens
from cmdpax.reporting.content import content
from learning_cases import OURS
from report_cases import invent
from sweep_cases import specification

OWN = ["broken_learners:sound", "sweep_cases:geared"]


def _luminance(colour: str) -> float:
    """As the rules on contrast define it (WCAG 2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one: str, other: str) -> float:
    low, high = sorted([_luminance(one), _luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_every_registered_algorithm_has_a_colour() -> None:
    assert set(ALGORITHMS) == set(cmdpax.algorithms())


def test_no_two_in_one_picture_are_alike() -> None:
    names = [*ALGORITHMS, "mine:first", "mine:second"]
    found = pens(names)
    assert list(found) == names
    for one, other in itertools.combinations(found.values(), 2):
        assert (one.colour, one.dash) != (other.colour, other.dash)
        assert (one.on_dark, one.dash) != (other.on_dark, other.dash)


def test_those_of_this_package_differ_in_colour() -> None:
    assert len({pen.colour for pen in pens([*OURS, "mine:first", "mine:second"]).values()}) == 9


@pytest.mark.parametrize("count", [1, 5, 6, 11, 25])
def test_many_of_ones_own(count: int) -> None:
    found = pens([*OURS, *(f"mine:number_{i}" for i in range(count))])
    assert len({(pen.colour, pen.dash) for pen in found.values()}) == 7 + count
    assert len({pen.colour for pen in found.values()}) == 7 + min(count, 5)


def test_a_colour_depends_on_the_name_alone_where_it_is_free() -> None:
    alone = pens(["mine:first"])["mine:first"]
    assert pens(["replanning", "mine:first"])["mine:first"] == alone
    assert pens(["mine:first", "vanilla-dual", "replanning"])["mine:first"] == alone
    many = [f"mine:number_{i}" for i in range(9)]
    assert pens(many) == pens(many[::-1])


def test_thin_lines_can_be_seen_on_both_grounds() -> None:
    for pen in pens([*cmdpax.algorithms(), *(f"mine:number_{i}" for i in range(5))]).values():
        assert _contrast(pen.colour, "#FFFFFF") >= 3
        assert _contrast(pen.on_dark, "#16161A") >= 3


def test_dashes_have_names_in_both_libraries() -> None:
    assert len({str(line_style(dash)) for dash in DASHES}) == len(DASHES)


def test_pictures_and_page_agree(tmp_path: Path) -> None:
    """Of a folder with algorithms of one's own; pictures of some of them have the same colours."""
    names = ["regularized-primal-dual", "replanning", *OWN]
    wanted = specification(cmdps=[{"environment": "bandit"}], seeds=1, record="all")
    results = invent(wanted | {"algorithms": [{"name": name} for name in names]}, tmp_path)
    payload, _ = content(results.path)
    palette: dict[str, Any] = payload["palette"]
    assert set(palette) == {"light", "dark", "dashes"}
    for chosen in (None, [OWN[1], "replanning"]):
        lines = plot_sweep(results, "regret", algorithms=chosen).axes[3].get_lines()[:-1]
        assert {line.get_label() for line in lines} == set(chosen or names)
        for line in lines:
            assert line.get_color() == palette["light"][line.get_label()]
            assert line_style(palette["dashes"][line.get_label()]) == line.get_linestyle()
