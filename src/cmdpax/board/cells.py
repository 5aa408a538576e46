"""What a board knows: a cell for every part, family, algorithm and setting."""

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from cmdpax.errors import FileError, ParameterError, in_line
from cmdpax.storage.texts import parse_json

MEASURES = {
    "strong": "strong regret, objective + worst constraint",
    "strong_objective": "strong regret of the objective",
    "strong_constraints": "strong regret of the worst constraint",
    "weak": "weak regret, objective + worst constraint",
    "weak_objective": "weak regret of the objective",
    "weak_constraints": "weak regret of the worst constraint",
    "unsafe": "share of unsafe episodes",
    "last": "error of the last policy, objective + worst constraint",
    "seconds": "seconds per episode",
}
"""The accounts by which a board can be read; less is better in all of them."""
CURVES = ("strong_objective", "strong_constraints", "weak_objective", "weak_constraints")
SETTINGS = {
    "tuned": "the best of its configurations on the models for training",
    "published": "as its paper says",
}
STATES = {
    "done": "all runs are there",
    "failed": "some run failed",
    "skipped": "the algorithm cannot do it",
    "missing": "not run yet",
}


class Cell(NamedTuple):
    """An algorithm on a family of models.

    Attributes:
        part: the part of the suite.
        family: the family.
        algorithm: its name or address.
        setting: "tuned" or "published".
        state: one of `STATES`; the numbers are there only if it is "done".
        configuration: the parameters in words.
        reason: why it failed, or cannot be done.
        runs: how many runs the means are over.
        means: by measure, over the runs; "seconds" is there where compilation could be told apart.
        halves: the halves of Student's 95 % intervals, where there is one.
        curves: means over the runs at the recorded episodes, by account.
    """

    part: str
    family: str
    algorithm: str
    setting: str
    state: str
    configuration: str = ""
    reason: str = ""
    runs: int = 0
    means: Mapping[str, float] = {}
    halves: Mapping[str, float] = {}
    curves: Mapping[str, tuple[float, ...]] = {}


class Block(NamedTuple):
    """A family in a part: what a rank is over.

    Attributes:
        part: the part's name.
        family: the family's name.
        num_episodes: K.
        num_constraints: of the family's models.
        sizes: S, A and H.
        about: a sentence about the family.
    """

    part: str
    family: str
    num_episodes: int
    num_constraints: int
    sizes: tuple[int, int, int]
    about: str


@dataclasses.dataclass(frozen=True)
class Board:
    """Results of a suite.

    Attributes:
        suite: its name.
        digest: that of the suite.
        blocks: what is compared on.
        episodes: the recorded episodes of every part.
        traits: what is known about each algorithm.
        cells: the results.
        made: what they were computed with.
    """

    suite: str
    digest: str
    blocks: tuple[Block, ...]
    episodes: dict[str, tuple[int, ...]]
    traits: dict[str, dict[str, bool | str]]
    cells: tuple[Cell, ...]
    made: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def algorithms(self) -> list[str]:
        """All of them, sorted."""
        return sorted(self.traits)

    def cell(self, block: Block, algorithm: str, setting: str) -> Cell:
        """One result; an algorithm that was not run has a cell that says so."""
        key = (block.part, block.family, algorithm, setting)
        return self._by_place.get(key) or Cell(*key, state="missing")

    @functools.cached_property
    def _by_place(self) -> dict[tuple[str, str, str, str], Cell]:
        return {cell[:4]: cell for cell in self.cells}

    def beside(self, other: "Board") -> "Board":
        """These results, and those of other algorithms from elsewhere.

        Raises:
            ParameterError: the others are those of another suite.
        """
        if (self.suite, self.digest) != (other.suite, other.digest):
            raise ParameterError(
                f"results of the suite {other.suite!r} (digest {other.digest}) cannot stand beside "
                f"those of {self.suite!r} ({self.digest}); compare results of one suite."
            )
        new = set(other.traits) - set(self.traits)
        traits = self.traits | {name: other.traits[name] for name in other.traits if name in new}
        blocks = {(one.part, one.family): one for one in (*other.blocks, *self.blocks)}
        return dataclasses.replace(
            self,
            blocks=tuple(blocks.values()),
            episodes=other.episodes | self.episodes,
            traits=traits,
            cells=(*self.cells, *(cell for cell in other.cells if cell.algorithm in new)),
        )

    def only(self, algorithms: Iterable[str]) -> "Board":
        """The results of some algorithms."""
        kept = set(algorithms)
        traits = {name: about for name, about in self.traits.items() if name in kept}
        cells = tuple(cell for cell in self.cells if cell.algorithm in kept)
        return dataclasses.replace(self, traits=traits, cells=cells)

    def to_json(self) -> str:
        """All of it as text, numbers with six digits: what is stored."""
        content = dataclasses.asdict(self)
        content["blocks"] = [block._asdict() for block in self.blocks]
        content["cells"] = [
            {name: value for name, value in cell._asdict().items() if value}
            for cell in sorted(self.cells, key=lambda cell: cell[:4])
        ]
        return json.dumps(_short(content), sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: bytes, source: str) -> "Board":
        """What `to_json` wrote.

        Raises:
            FileError: it is something else.
        """
        try:
            board: Board = TypeAdapter(cls).validate_python(parse_json(text, finite=True))
            _require_sound(board)
        except (ValidationError, ValueError) as error:
            why = in_line(error)[:200]
            raise FileError(f"{source} holds no board ({why}); run the suite again.") from None
        return board


def _require_sound(board: Board) -> None:
    """Refuse contradictions, with a `ValueError` that says which."""
    places = {(block.part, block.family) for block in board.blocks}
    if len(places) < len(board.blocks) or len(board._by_place) < len(board.cells):
        raise ValueError("a block or a cell is there twice")
    if any(block.num_episodes < 1 for block in board.blocks):
        raise ValueError("a block has no episodes")
    if any(block.part not in board.episodes for block in board.blocks):
        raise ValueError("a part has no episodes")
    for cell in board.cells:
        if cell[:2] not in places or cell.algorithm not in board.traits:
            raise ValueError("a cell has no block, or an unknown algorithm")
        if cell.setting not in SETTINGS or cell.state not in STATES:
            raise ValueError(f"a cell is {cell.setting[:40]!r}, {cell.state[:40]!r}")
        if cell.state == "done" and not {"strong", *CURVES[:2]} <= cell.means.keys():
            raise ValueError("a cell lacks its regrets")


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_short(entry) for entry in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
