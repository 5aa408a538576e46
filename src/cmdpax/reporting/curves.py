"""The curves of a sweep: groups of runs as means, half widths and single runs."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdpax.errors import FileError
from cmdpax.experiments.reading import Results
from cmdpax.experiments.tables import LATER
from cmdpax.intervals import half_width
from cmdpax.model.cmdp import CMDP
from cmdpax.reporting.budgets import Allotment
from cmdpax.reporting.encoding import all_rounded, encode
from cmdpax.reporting.tables import Listing
from cmdpax.reporting.thinning import thin

if TYPE_CHECKING:
    import polars

_OBJECTIVE = ("suboptimality", "strong_objective", "weak_objective")
_CONSTRAINTS = ("violation", "strong_constraints", "weak_constraints")
_LISTS = {
    "multipliers": "multipliers",
    "violation": "constraint_values",
    "strong_constraints": "strong_by_constraint",
    "weak_constraints": "weak_by_constraint",
}
_OSCILLATING = ("suboptimality", "violation", "multipliers")
_ROWS_AT_ONCE = 4_000_000


class Unit(NamedTuple):
    """A run, or the runs on a CMDP: what a group's means are over."""

    name: str
    runs: list[int]  # places in the listing


class Members(NamedTuple):
    """The runs of a configuration on one CMDP, or, with None, on all of them."""

    cmdp: int | None
    configuration: int
    units: list[Unit]
    series: tuple[str, ...]


# ------------------------------------------------------------------------------------------- groups


def find_groups(results: Results, listing: Listing, models: Sequence[CMDP]) -> list[Members]:
    """Configuration by configuration: a group per CMDP, and one over all if there are several."""
    described = results.manifest["cmdps"]
    names = [described[fingerprint]["name"] for fingerprint in listing.cmdps]
    sizes = [model.num_constraints for model in models]
    incomplete = _incomplete(results) if max(sizes) > 1 else set()
    identities, seeds = listing.runs["run"].to_list(), listing.runs["seed"].to_list()
    found: dict[int, dict[int, list[int]]] = {}
    for place, (configuration, cmdp) in enumerate(
        listing.runs.select("configuration", "cmdp").iter_rows()
    ):
        found.setdefault(configuration, {}).setdefault(cmdp, []).append(place)
    groups = []
    for configuration, by_cmdp in found.items():
        whole = {
            cmdp: incomplete.isdisjoint(identities[place] for place in places)
            for cmdp, places in by_cmdp.items()
        }
        for cmdp, places in by_cmdp.items():
            units = [Unit(f"seed {seeds[place]}", [place]) for place in places]
            series = series_names([sizes[cmdp]], whole[cmdp])
            groups.append(Members(cmdp, configuration, units, series))
        if len(models) > 1:
            units = [Unit(names[cmdp], places) for cmdp, places in by_cmdp.items()]
            series = series_names([sizes[cmdp] for cmdp in by_cmdp], all(whole.values()))
            groups.append(Members(None, configuration, units, series))
    return groups


def series_names(sizes: Sequence[int], whole: bool) -> tuple[str, ...]:
    """The series that CMDPs with these numbers of constraints share.

    Args:
        sizes: I of each.
        whole: whether the regrets of every single constraint are known.
    """
    if min(sizes) == 0:
        return _OBJECTIVE
    if len(set(sizes)) > 1:
        return (*_OBJECTIVE, *_CONSTRAINTS)
    lists = ["multipliers"]
    if sizes[0] > 1:
        lists += ["violation", *(("strong_constraints", "weak_constraints") if whole else ())]
    single = [f"{name}[{i}]" for name in lists for i in range(sizes[0])]
    return (*_OBJECTIVE, *_CONSTRAINTS, *single)


def _incomplete(results: Results) -> set[str]:
    """Runs of earlier versions, which kept only the largest regret over the constraints."""
    import polars

    absent = results.curves.filter(polars.col(LATER[0]).is_null()).select("run").unique()
    return set(absent.collect()["run"])


# ------------------------------------------------------------------------------------------- blocks


def make_blocks(
    results: Results,
    listing: Listing,
    models: Sequence[CMDP],
    groups: Sequence[Members],
    allotment: Allotment,
) -> Iterator[tuple[dict[str, Any], str]]:
    """Each group as the page describes it, without the place of its block, and the block."""
    own = allotment.num_cmdps
    chosen = [group for group in groups if group.cmdp is None or group.cmdp < own]
    thresholds = _thresholds(models)
    for part in _portions(chosen, count_recorded(results)):
        names = list(dict.fromkeys(name for group in part for name in group.series))
        places = sorted({place for group in part for unit in group.units for place in unit.runs})
        episodes, curves = _read(results, listing.runs[places], names, thresholds)
        where = dict(zip(places, range(len(places)), strict=True))
        for group in part:
            yield _block(group, episodes, curves, where, allotment)


def count_recorded(results: Results) -> int:
    """How many episodes the curves have: all runs of a folder share them."""
    import polars

    return int(results.curves.select(polars.len()).collect().item()) // len(results.final)


def _portions(groups: Sequence[Members], length: int) -> Iterator[list[Members]]:
    """Whole configurations, as many as may be in memory together."""
    portion: list[Members] = []
    rows = 0
    for _, members in itertools.groupby(groups, lambda group: group.configuration):
        part = list(members)
        # A group over all CMDPs has all the runs of its configuration.
        needed = length * max(sum(len(unit.runs) for unit in group.units) for group in part)
        if portion and rows + needed > _ROWS_AT_ONCE:
            yield portion
            portion, rows = [], 0
        portion += part
        rows += needed
    yield portion


def _thresholds(models: Sequence[CMDP]) -> np.ndarray:
    """c, `[N, I]`, NaN where a CMDP has fewer constraints than another."""
    table = np.full((len(models), max(model.num_constraints for model in models)), np.nan)
    for row, model in zip(table, models, strict=True):
        row[: model.num_constraints] = model.thresholds
    return table


def _read(
    results: Results, runs: "polars.DataFrame", names: Sequence[str], thresholds: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Episodes `[T]`, and every series of these runs, `[R, T]`, in one reading of the files."""
    places = runs.select("run").with_row_index("place").lazy()
    columns = {name: _column(name) for name in names}
    rows = results.curves.join(places, on="run", how="inner").select("place", "episode", **columns)
    table = rows.sort("place", "episode").collect()
    episodes = table["episode"].to_numpy()[: len(table) // len(runs)]
    same = np.array_equal(table["episode"].to_numpy(), np.tile(episodes, len(runs)))
    if not same or not len(episodes):
        raise FileError(f"{results.path} has curves of different episodes; use another folder.")
    found = {name: table[name].to_numpy().reshape(len(runs), -1) for name in names}
    limits = thresholds[runs["cmdp"].to_numpy()]
    for name in names:
        series, constraint = _parts(name)
        if series == "violation" and constraint is not None:
            found[name] = limits[:, constraint, None] - found[name]
    return episodes, found


def _column(name: str) -> "polars.Expr":
    import polars

    series, constraint = _parts(name)
    if constraint is None:
        return polars.col(name)
    return polars.col(_LISTS[series]).list.get(constraint, null_on_oob=True)


def _parts(name: str) -> tuple[str, int | None]:
    """ "multipliers[2]" is ("multipliers", 2), "violation" is ("violation", None)."""
    series, _, constraint = name.partition("[")
    return series, int(constraint[:-1]) if constraint else None


def _block(
    group: Members,
    episodes: np.ndarray,
    curves: Mapping[str, np.ndarray],
    where: Mapping[int, int],
    allotment: Allotment,
) -> tuple[dict[str, Any], str]:
    """The group as it is described, and its numbers."""
    places = [[where[place] for place in unit.runs] for unit in group.units]
    single = all(len(runs) == 1 for runs in places)
    shown = min(len(places), allotment.num_shown)
    rows, oscillating = [], []
    for name in group.series:
        curve = curves[name]
        values = (
            curve[[runs[0] for runs in places]]
            if single
            else np.stack([curve[runs].mean(axis=0) for runs in places])
        )
        part = _rows(values, shown)
        rows.append(part)
        if _parts(name)[0] in _OSCILLATING:
            oscillating.append(np.delete(part, 1, axis=0) if len(part) > 1 else part)
    # The means first, then the first run of every series, …: the most important are kept for sure.
    kept = thin(np.stack(oscillating, axis=1).reshape(-1, len(episodes)), allotment.num_episodes)
    described = {
        "cmdp": group.cmdp,
        "configuration": group.configuration,
        "units": len(places),
        "unit": "CMDPs" if group.cmdp is None else "runs",
        "shown": [unit.name for unit in group.units[:shown]],
        "recorded": len(episodes),
        "kept": len(kept),
        "series": list(group.series),
        # Of the first run, or of the only one: what its accounts say in the end.
        "ends": all_rounded([part[2 if len(part) > 1 else 0, -1] for part in rows]),
    }
    each = len(rows[0])
    half_widths = range(1, each * len(rows), each) if each > 1 else ()
    return described, encode(episodes[kept], np.concatenate(rows)[:, kept], half_widths)


def _rows(values: np.ndarray, shown: int) -> np.ndarray:
    """Of several units their mean, half width and the first of them; of one its numbers."""
    if len(values) == 1:
        return values
    with np.errstate(invalid="ignore", over="ignore"):  # of runs that went to infinity
        mean, half = values.mean(axis=0), half_width(values)
    return np.vstack([mean, np.where(np.isfinite(half), half, 0.0), values[:shown]])
