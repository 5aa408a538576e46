"""What the board says: regrets over the best, ranks with critical differences, profiles, fronts.

A *block* is a family of models in a part of the suite. In a block an algorithm has one number for
every account, its mean over the runs.

*Over the best*: x/x_best, with a thousandth per episode added to both, so that differences below
that do not count; averaged geometrically over blocks. A failure is infinite.

*Ranks* (Friedman; Demšar, 2006, "Statistical comparisons of classifiers over multiple data sets"):
in every block the best of k has rank 1, those that are equal share the mean of their ranks, and the
mean ranks R_j over N blocks are compared:

    χ² = 12N/(k(k + 1)) (Σ_j R_j² - k(k + 1)²/4)
    F = (N - 1) χ²/(N(k - 1) - χ²)                    with k - 1 and (k - 1)(N - 1) degrees
    critical difference = q √(k(k + 1)/(6N))          Nemenyi, q the studentized range's over √2

Two whose mean ranks differ by less than the critical difference cannot be told apart at 5 %.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cmdpax.board.cells import MEASURES, SETTINGS, Block, Board
from cmdpax.errors import ParameterError, nearest_name

LEAST = 1e-3
"""What does not count, per episode."""
_PER_EPISODE = ("unsafe", "last")
_LEVEL = 0.05


class Ranking(NamedTuple):
    """Mean ranks, and how far they must be apart.

    Attributes:
        mean_ranks: `[k]`.
        num_blocks: N.
        chi_square: Friedman's statistic.
        p_value: of Iman and Davenport's F, for the hypothesis that all are alike.
        critical_difference: Nemenyi's, at 5 %.
    """

    mean_ranks: np.ndarray
    num_blocks: int
    chi_square: float
    p_value: float
    critical_difference: float


class Row(NamedTuple):
    """A line of the leaderboard.

    Attributes:
        algorithm: its name or address.
        ratio: its account over the best one's, as a geometric mean over its blocks.
        worst: the largest of these ratios.
        rank: the mean rank over the blocks that all have; NaN if there are none.
        done: how many blocks it has.
        failed: how many of its blocks failed.
        skipped: how many it cannot do.
        missing: how many were not run.
        unsafe: the mean share of unsafe episodes.
        objective: the mean strong regret of the objective, per episode.
        constraints: that of the worst constraint.
        weak: the mean weak regret of objective + worst constraint, per episode.
        last: the mean error of the last policy.
        seconds: the mean seconds per episode; NaN where that was not measured.
    """

    algorithm: str
    ratio: float
    worst: float
    rank: float
    done: int
    failed: int
    skipped: int
    missing: int
    unsafe: float
    objective: float
    constraints: float
    weak: float
    last: float
    seconds: float


# --------------------------------------------------------------------------------- numbers alone


def over_best(values: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Every value over the best of its block, `[N, k]`.

    Args:
        values: infinite for a failure, NaN for what is not there.
        least: per block, what is added to both, `[N]`; negative values count as 0.
    """
    shifted = np.where(np.isnan(values), np.nan, np.maximum(values, 0.0)) + least[:, None]
    found = np.where(np.isnan(shifted), np.inf, shifted)
    best = found.min(axis=1, initial=np.inf, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = shifted / best
    return np.where(np.isposinf(shifted), np.inf, np.where(shifted == best, 1.0, ratios))


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks in every row from 1 on; equal numbers share the mean of their ranks, `[N, k]`."""
    below = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return below + (equal + 1) / 2


def ranking(values: np.ndarray) -> Ranking:
    """Compare k algorithms over N blocks, `[N, k]`; less is better, infinity is a failure."""
    from scipy.stats import f

    num_blocks, count = values.shape
    means = ranks(values).mean(axis=0) if num_blocks else np.full(count, np.nan)
    if num_blocks < 2 or count < 2:
        return Ranking(means, num_blocks, math.nan, math.nan, math.inf)
    spread = float((means**2).sum()) - count * (count + 1) ** 2 / 4
    chi_square = 12 * num_blocks / (count * (count + 1)) * spread
    left = num_blocks * (count - 1) - chi_square
    statistic = (num_blocks - 1) * chi_square / left if left > 0 else math.inf
    freedom = (count - 1, (count - 1) * (num_blocks - 1))
    p_value = float(f.sf(statistic, *freedom))
    difference = critical_value(count) * math.sqrt(count * (count + 1) / (6 * num_blocks))
    return Ranking(means, num_blocks, chi_square, p_value, difference)


def critical_value(count: int) -> float:
    """Nemenyi's q for k algorithms: the studentized range's 95 % quantile over √2."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - _LEVEL, count, math.inf)) / math.sqrt(2)


def profiles(ratios: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Performance profiles: the share of blocks in which a ratio is at most so much, `[k, L]`.

    A block that an algorithm does not have counts as one in which it is never good enough.
    """
    with np.errstate(invalid="ignore"):
        within = ratios[:, :, None] <= levels
    return np.asarray(within.mean(axis=0))


def front(points: np.ndarray) -> np.ndarray:
    """Which points `[k, 2]` no other one is at least as good as in both and better in one."""
    as_good = (points[None] <= points[:, None]).all(axis=2)
    better = (points[None] < points[:, None]).any(axis=2)
    return ~np.any(as_good & better, axis=1) & ~np.any(np.isnan(points), axis=1)


# ---------------------------------------------------------------------------------------- a board


def choose_blocks(
    board: Board, parts: Sequence[str] | None = None, families: Sequence[str] | None = None
) -> list[Block]:
    """The blocks of some parts and families.

    Raises:
        ParameterError: there is no such part or family.
    """
    for what, given, known in (
        ("part", parts, {block.part for block in board.blocks}),
        ("family", families, {block.family for block in board.blocks}),
    ):
        for name in given or ():
            if name not in known:
                raise ParameterError(
                    f"the board has no {what} {name!r}; {nearest_name(name, known)}."
                )
    return [
        block
        for block in board.blocks
        if (parts is None or block.part in parts) and (families is None or block.family in families)
    ]


def values(board: Board, blocks: Sequence[Block], by: str, setting: str) -> np.ndarray:
    """An account of every algorithm in every block, `[N, k]`; infinite for a failure, else NaN."""
    found = np.full((len(blocks), len(board.algorithms)), np.nan)
    for row, block in enumerate(blocks):
        for place, algorithm in enumerate(board.algorithms):
            cell = board.cell(block, algorithm, setting)
            if cell.state == "failed":
                found[row, place] = np.inf
            elif cell.state == "done":
                found[row, place] = cell.means.get(by, np.nan)
    return found


def ratios(board: Board, blocks: Sequence[Block], by: str, setting: str) -> np.ndarray:
    """An account of every algorithm over the best one's, `[N, k]`."""
    require_account(by, setting)
    each = [LEAST * (1 if by in _PER_EPISODE else block.num_episodes) for block in blocks]
    least = np.zeros(len(blocks)) if by == "seconds" else np.array(each)
    return over_best(values(board, blocks, by, setting), least)


def require_account(by: str, setting: str) -> None:
    """Refuse an account or a setting that the board does not have.

    Raises:
        ParameterError: it says which there are.
    """
    if by not in MEASURES:
        raise ParameterError(f"there is no account {by!r}; {nearest_name(by, MEASURES)}.")
    if setting not in SETTINGS:
        raise ParameterError(f"there is no setting {setting!r}; {nearest_name(setting, SETTINGS)}.")


def leaderboard(
    board: Board,
    by: str = "strong",
    *,
    setting: str = "tuned",
    parts: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
) -> tuple[list[Row], Ranking]:
    """The algorithms of a board, the best first.

    Args:
        board: the results.
        by: one of `MEASURES`.
        setting: "tuned", or "published" for configurations as papers say.
        parts: the names of some parts; None takes all.
        families: likewise.

    Returns:
        A row per algorithm, and the ranking over the blocks that all of them have, in the order of
        `board.algorithms`.
    """
    blocks = choose_blocks(board, parts, families)
    found = ratios(board, blocks, by, setting)
    ranked = ranking(found[~np.isnan(found).any(axis=1)])
    rows = [
        _row(board, blocks, name, setting, found[:, place], float(ranked.mean_ranks[place]))
        for place, name in enumerate(board.algorithms)
    ]
    return sorted(rows, key=lambda row: (math.isnan(row.ratio), row.ratio, row.algorithm)), ranked


def _row(
    board: Board, blocks: Sequence[Block], name: str, setting: str, own: np.ndarray, rank: float
) -> Row:
    cells = [board.cell(block, name, setting) for block in blocks]
    states = [cell.state for cell in cells]
    there = own[~np.isnan(own)]

    def mean(measure: str, per_episode: bool = False) -> float:
        numbers = [
            cell.means[measure] / (block.num_episodes if per_episode else 1)
            for cell, block in zip(cells, blocks, strict=True)
            if measure in cell.means
        ]
        return float(np.mean(numbers)) if numbers else math.nan

    return Row(
        name,
        float(np.exp(np.log(there).mean())) if len(there) else math.nan,
        float(there.max()) if len(there) else math.nan,
        rank,
        done=states.count("done"),
        failed=states.count("failed"),
        skipped=states.count("skipped"),
        missing=states.count("missing"),
        unsafe=mean("unsafe"),
        objective=mean("strong_objective", True),
        constraints=mean("strong_constraints", True),
        weak=mean("weak", True),
        last=mean("last"),
        seconds=mean("seconds"),
    )
