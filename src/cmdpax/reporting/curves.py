"""The curves of a sweep: groups of runs as means, half widths and single runs."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.errors import FileError
from cmdpax.experiments.reading import Results
from cmdpax.experiments.tables import LATER
from cmdpax.intervals import half_width
from cmdpax.model.cmdp import CMDP
from cmdpax.reporting.budgets import Group
from cmdpax.reporting.encoding import all_rounded, encode
from cmdpax.reporting.tables import Sweep
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
_LARGEST_EPISODE = 2**32


# ------------------------------------------------------------------------------------------- groups


def find_groups(sweep: Sweep) -> list[Group]:
    """Group the runs of every configuration by CMDP, and over all CMDPs if there are several."""
    described = sweep.results.manifest["cmdps"]
    names = [described[fingerprint]["name"] for fingerprint in sweep.cmdps]
    sizes = [model.num_constraints for model in sweep.cmdps.values()]
    incomplete = _incomplete(sweep.results) if max(sizes) > 1 else set()
    identities, seeds = sweep.runs["run"].to_list(), sweep.runs["seed"].to_list()
    found: dict[int, dict[int, list[int]]] = {}
    for place, (configuration, cmdp) in enumerate(
        sweep.runs.select("configuration", "cmdp").iter_rows()
    ):
        found.setdefault(configuration, {}).setdefault(cmdp, []).append(place)
    groups = []
    for configuration, by_cmdp in found.items():
        whole = {
            cmdp: incomplete.isdisjoint(identities[place] for place in places)
            for cmdp, places in by_cmdp.items()
        }
        for cmdp, places in by_cmdp.items():
            runs = [f"seed {seeds[place]}" for place in places]
            series = _series_names([sizes[cmdp]], whole[cmdp])
            groups.append(Group(cmdp, configuration, runs, [[place] for place in places], series))
        if len(sizes) > 1:
            series = _series_names([sizes[cmdp] for cmdp in by_cmdp], all(whole.values()))
            shared = [names[cmdp] for cmdp in by_cmdp]
            groups.append(Group(None, configuration, shared, [*by_cmdp.values()], series))
    return groups


def _series_names(sizes: Sequence[int], whole: bool) -> tuple[str, ...]:
    """Name the series that CMDPs with these numbers of constraints share.

    `whole` says whether the regrets of every single constraint are known.
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
    """Find runs of earlier versions, which kept only the largest regret over the constraints."""
    import polars

    absent = results.curves.filter(polars.col(LATER[0]).is_null()).select("run").unique()
    return set(absent.collect()["run"])


# ------------------------------------------------------------------------------------------- blocks


def make_blocks(
    sweep: Sweep, groups: Sequence[Group], num_episodes: int, num_shown: int
) -> Iterator[tuple[dict[str, Any], str]]:
    """Describe each group, without the place of its block, and encode the block."""
    bounds = _bounds(list(sweep.cmdps.values()))
    for part in _portions(groups, count_recorded(sweep.results)):
        names = list(dict.fromkeys(name for group in part for name in group.series))
        places = sorted({place for group in part for runs in group.units for place in runs})
        episodes, curves = _read(sweep.results, sweep.runs[places], names, bounds)
        where = dict(zip(places, range(len(places)), strict=True))
        for group in part:
            yield _block(group, episodes, curves, where, num_episodes, num_shown)


def count_recorded(results: Results) -> int:
    """Count the episodes of the curves, which all runs of a folder share."""
    import polars

    return int(results.curves.select(polars.len()).collect().item()) // len(results.final)


def is_log_spaced(results: Results) -> bool:
    """Tell whether most of the recorded episodes are in the first tenth of a run."""
    import polars

    first = results.final["run"][0]
    rows = results.curves.filter(polars.col("run") == first).select("episode").collect()
    episodes = rows["episode"].to_numpy()
    return len(episodes) > 2 and bool(np.median(episodes) < episodes.max() / 10)


def _portions(groups: Sequence[Group], length: int) -> Iterator[list[Group]]:
    """Split the groups into portions of whole configurations that fit the memory."""
    portion: list[Group] = []
    rows = 0
    for _, members in itertools.groupby(groups, lambda group: group.configuration):
        part = list(members)
        # A group over all CMDPs has all the runs of its configuration.
        needed = length * max(sum(map(len, group.units)) for group in part)
        if portion and rows + needed > _ROWS_AT_ONCE:
            yield portion
            portion, rows = [], 0
        portion += part
        rows += needed
    yield portion


def _bounds(models: Sequence[CMDP]) -> np.ndarray:
    """Bounds as users read them, and the signs of their senses, `[2, N, I]`.

    NaN where a CMDP has fewer constraints than another.
    """
    table = np.full((2, len(models), max(model.num_constraints for model in models)), np.nan)
    for place, model in enumerate(models):
        table[0, place, : model.num_constraints] = model.bounds
        table[1, place, : model.num_constraints] = model.words.signs
    return table


def _read(
    results: Results, runs: "polars.DataFrame", names: Sequence[str], bounds: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Read the episodes `[T]` and every series of these runs, `[R, T]`, in one pass."""
    places = runs.select("run").with_row_index("place").lazy()
    columns = {name: _column(name) for name in names}
    rows = results.curves.join(places, on="run", how="inner").select("place", "episode", **columns)
    table = rows.sort("place", "episode").collect()
    episodes = table["episode"].to_numpy()[: len(table) // len(runs)]
    same = np.array_equal(table["episode"].to_numpy(), np.tile(episodes, len(runs)))
    if not same or not len(episodes):
        raise FileError(f"{results.path} has curves of different episodes; use another folder.")
    found = {name: table[name].to_numpy().reshape(len(runs), -1) for name in names}
    limits, signs = bounds[:, runs["cmdp"].to_numpy()]
    for name in names:
        series, constraint = _parts(name)
        if series == "violation" and constraint is not None:
            missing = limits[:, constraint, None] - found[name]
            found[name] = signs[:, constraint, None] * missing
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
    group: Group,
    episodes: np.ndarray,
    curves: Mapping[str, np.ndarray],
    where: Mapping[int, int],
    num_episodes: int,
    num_shown: int,
) -> tuple[dict[str, Any], str]:
    """Describe a group, and encode its numbers."""
    places = [[where[place] for place in runs] for runs in group.units]
    shown = min(len(places), num_shown)
    rows, oscillating = [], []
    for name in group.series:
        curve = curves[name]
        values = np.stack([curve[r].mean(axis=0) if len(r) > 1 else curve[r[0]] for r in places])
        part = _rows(values, shown)
        rows.append(part)
        if _parts(name)[0] in _OSCILLATING:
            oscillating.append(np.delete(part, 1, axis=0) if len(part) > 1 else part)
    # Means come first, then the first run of every series, …: `thin` drops the last rows first.
    kept = thin(np.stack(oscillating, axis=1).reshape(-1, len(episodes)), num_episodes)
    described = {
        "cmdp": group.cmdp,
        "configuration": group.configuration,
        "units": len(places),
        "unit": "CMDPs" if group.cmdp is None else "runs",
        "shown": group.names[:shown],
        "recorded": len(episodes),
        "kept": len(kept),
        "series": list(group.series),
        # What the accounts of the first run, or of the only one, say at the end.
        "ends": all_rounded([part[2 if len(part) > 1 else 0, -1] for part in rows]),
    }
    if episodes[-1] >= _LARGEST_EPISODE:  # more than a block has room for
        described["episodes"] = episodes[kept].tolist()
    each = len(rows[0])
    half_widths = range(1, each * len(rows), each) if each > 1 else ()
    return described, encode(episodes[kept], np.concatenate(rows)[:, kept], half_widths)


def _rows(values: np.ndarray, shown: int) -> np.ndarray:
    """Give the mean, half width and first few of several units, or the numbers of a single one."""
    if len(values) == 1:
        return values
    with np.errstate(invalid="ignore", over="ignore"):  # some runs went to infinity
        mean, half = values.mean(axis=0), half_width(values)
    return np.vstack([mean, np.where(np.isfinite(half), half, 0.0), values[:shown]])
