"""The board: learners on a frozen suite of models, compared by several accounts.

>>> from cmdpax import board
>>> [suite.name for suite in board.SUITES.values()]
['quick', 'v1']

A board is a folder with a sweep for every part of its suite, and what was asked for.
"""

from cmdpax.board.cells import MEASURES, Board
from cmdpax.board.reading import read, stored
from cmdpax.board.running import run
from cmdpax.board.scores import Ranking, leaderboard
from cmdpax.board.suites import SUITES, Family, Part, Suite

__all__ = [
    "MEASURES",
    "SUITES",
    "Board",
    "Family",
    "Part",
    "Ranking",
    "Suite",
    "leaderboard",
    "read",
    "run",
    "stored",
]
