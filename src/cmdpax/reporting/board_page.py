"""The page of a board: leaderboard, cells and their curves, the trade-off, and profiles."""

from html import escape
from typing import Any

from cmdpax.board.cells import MEASURES, SETTINGS, Board, Cell
from cmdpax.board.scores import LEAST, critical_value
from cmdpax.errors import ParameterError
from cmdpax.figures.colours import pens
from cmdpax.reporting.encoding import plain
from cmdpax.reporting.frame import Opening, write_frame
from cmdpax.reporting.templates import asset, fill

_SECTIONS = {
    "leaderboard": "Leaderboard",
    "cells": "Cells",
    "curves": "Curves",
    "tradeoff": "Trade-off",
    "profiles": "Profiles",
    "about": "What it shows",
}


def write_board_page(board: Board) -> str:
    """Put the page together.

    Raises:
        ParameterError: the board has no results.
    """
    done = sum(cell.state == "done" for cell in board.cells)
    if not done:
        raise ParameterError("the board has no results yet; run its suite first.")
    lead = (
        f"{len(board.algorithms)} learners on the suite {escape(board.suite)}, "
        f"{len(board.blocks)} blocks of models: who loses least, by which account, and at what "
        "cost."
    )
    main = fill(
        asset("board.html"),
        accounts="".join(_option(name, label) for name, label in MEASURES.items()),
        settings="".join(_option(name, f"{name}: {label}") for name, label in SETTINGS.items()),
        blocks=_blocks(board),
        learners=_learners(board),
        made=_made(board),
    )
    return write_frame(
        Opening(f"Board {board.suite}", f"The board: {escape(board.suite)}", lead),
        _SECTIONS,
        main,
        _payload(board),
        scripts=("core", "charts", "board", "boardcharts", "main"),
        styles=("page", "board"),
    )


def _option(name: str, label: str) -> str:
    return f'<option value="{escape(name)}">{escape(label)}</option>'


def _blocks(board: Board) -> str:
    rows = []
    for block in board.blocks:
        states, actions, horizon = block.sizes
        numbers = (f"{block.num_episodes:,}", states, actions, horizon, block.num_constraints)
        cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
        names = f"<th scope='row'>{escape(block.part)}</th><td>{escape(block.family)}</td>"
        rows.append(f"<tr>{names}{cells}<td>{escape(block.about)}</td></tr>")
    return "".join(rows)


def _learners(board: Board) -> str:
    rows = []
    for name in board.algorithms:
        about = board.traits[name]
        wants = [
            word
            for trait, word in (
                ("needs_baseline", "a safe policy"),
                ("needs_episodes", "the number of episodes"),
                ("one_constraint", "at most one constraint"),
            )
            if about.get(trait)
        ]
        reasons = dict.fromkeys(
            cell.reason for cell in board.cells if cell.algorithm == name and cell.reason
        )
        said = escape(" ".join(reasons)) or "–"
        rows.append(
            f"<tr><th scope='row'>{escape(name)}</th><td>{escape(str(about.get('summary', '')))}"
            f"</td><td>{escape(', '.join(wants)) or '–'}</td><td>{said}</td></tr>"
        )
    return "".join(rows)


def _made(board: Board) -> str:
    versions = board.made.get("versions", {})
    listed = ", ".join(f"{name} {number}" for name, number in versions.items())
    return escape(
        f"Suite {board.suite}, digest {board.digest}. Made with {listed or 'an unknown version'} "
        f"on {board.made.get('device', 'an unknown device')}."
    )


def _payload(board: Board) -> dict[str, Any]:
    """What the scripts draw."""
    found = pens(board.algorithms)
    count = len(board.algorithms)
    content = {
        "blocks": [block._asdict() | {"sizes": list(block.sizes)} for block in board.blocks],
        "algorithms": [{"name": name, **board.traits[name]} for name in board.algorithms],
        "measures": dict(MEASURES),
        "episodes": {part: list(episodes) for part, episodes in board.episodes.items()},
        "least": LEAST,
        "critical": [None, None, *(critical_value(k) for k in range(2, count + 1))],
        "cells": {
            setting: [
                [_cell(board.cell(block, name, setting)) for block in board.blocks]
                for name in board.algorithms
            ]
            for setting in SETTINGS
        },
        "palette": {
            "light": {name: pen.colour for name, pen in found.items()},
            "dark": {name: pen.on_dark for name, pen in found.items()},
            "dashes": {name: pen.dash for name, pen in found.items()},
        },
    }
    return dict(plain(content))


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "state": cell.state,
        "reason": cell.reason,
        "configuration": cell.configuration,
        "runs": cell.runs,
        "means": dict(cell.means),
        "halves": dict(cell.halves),
        "curves": {name: list(values) for name, values in cell.curves.items()},
    }
