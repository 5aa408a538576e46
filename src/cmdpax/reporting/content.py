"""All that a page shows, as JSON and as blocks of numbers."""

import os
from typing import Any, NamedTuple

from cmdpax.environments import make
from cmdpax.figures.style import palette
from cmdpax.intervals import student
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.solution import solve
from cmdpax.reporting.budgets import Allotment, CurveGroup, allot
from cmdpax.reporting.curves import Members, count_recorded, find_groups, make_blocks
from cmdpax.reporting.encoding import all_rounded, plain, rounded
from cmdpax.reporting.problems import describe_problem, find_frontiers
from cmdpax.reporting.replaying import cover, replay_reproduction, replay_sweep
from cmdpax.reporting.sources import Source, Sources, find_sources
from cmdpax.reporting.tables import (
    Listing,
    list_sweep,
    measure_label,
    measure_names,
    measure_runs,
    parameter_labels,
)

BUDGET = 1_700_000
"""Numbers in all blocks of a page: about three megabytes."""
_FORMAT = 1
_STUDENT_UP_TO = 60
_MOST_FRONTIERS = 8
_MOST_DESCRIBED = 20


class Content(NamedTuple):
    """What a page shows.

    Attributes:
        payload: for JSON; floats have seven digits, what is not finite is null.
        blocks: the groups' curves, encoded.
    """

    payload: dict[str, Any]
    blocks: list[str]


class _Sweep(NamedTuple):
    """A sweep before its curves are read."""

    source: Source
    listing: Listing
    models: list[CMDP]
    groups: list[Members]
    num_recorded: int


def content(folder: str | os.PathLike[str], *, budget: int = BUDGET) -> Content:
    """All that a page shows of a sweep, or of a reproduction.

    Args:
        folder: of a sweep, or of a reproduction with its sweeps.
        budget: numbers in all blocks together; curves beyond that are thinned.

    Raises:
        FileError: there are no results, or a file is damaged.
        ParameterError: no run is finished.
    """
    sources = find_sources(folder)
    sweeps = [_prepare(source) for source in sources.sweeps]
    sizes = [
        [CurveGroup(group.cmdp, len(group.units), len(group.series)) for group in sweep.groups]
        for sweep in sweeps
    ]
    allotments = allot(sizes, [sweep.num_recorded for sweep in sweeps], budget)
    blocks: list[str] = []
    frontiers: dict[str, Any] = {}  # sweeps of one folder share CMDPs
    described = [
        _describe(sweep, allotment, blocks, frontiers)
        for sweep, allotment in zip(sweeps, allotments, strict=True)
    ]
    return Content(_payload(sources, described), blocks)


def _payload(sources: Sources, sweeps: list[dict[str, Any]]) -> dict[str, Any]:
    first = sources.sweeps[0]
    if sources.kind == "sweep":
        replay = replay_sweep(first, cover(first.results))
    else:
        replay = replay_reproduction(sources.command)
    return {
        "format": _FORMAT,
        "folder": plain(sources.name),
        "kind": sources.kind,
        "sweeps": sweeps,
        "claims": plain(sources.claims),
        "student": [None, None, *(rounded(student(n)) for n in range(2, _STUDENT_UP_TO + 1))],
        "playground": _playground(),
        "replay": plain(replay),
        "palette": {"light": palette(dark=False), "dark": palette(dark=True)},
    }


# --------------------------------------------------------------------------------------- one sweep


def _prepare(source: Source) -> _Sweep:
    listing = list_sweep(source.results)
    models = [source.results.cmdps[fingerprint] for fingerprint in listing.cmdps]
    groups = find_groups(source.results, listing, models)
    return _Sweep(source, listing, models, groups, count_recorded(source.results))


def _describe(
    sweep: _Sweep, allotment: Allotment, blocks: list[str], frontiers: dict[str, Any]
) -> dict[str, Any]:
    """A sweep as the page has it; its blocks and frontiers are added to those there are."""
    source, listing, models, groups, _ = sweep
    results = source.results
    described_groups = []
    for group, block in make_blocks(results, listing, models, groups, allotment):
        described_groups.append(group | {"block": len(blocks)})
        blocks.append(block)
    names = measure_names(results)
    return {
        "name": plain(source.name),
        "label": plain(source.label),
        "num_episodes": results.manifest["specification"]["num_episodes"],
        "manifest": _manifest(results.manifest),
        "algorithms": listing.algorithms,
        "cmdps": _problems(sweep, allotment.num_cmdps, frontiers),
        "with_curves": allotment.num_cmdps,
        "parameters": list(map(list, parameter_labels(listing.configurations))),
        "configurations": listing.configurations,
        "groups": described_groups,
        "measures": [{"name": name, "label": measure_label(name)} for name in names],
        "runs": measure_runs(results, listing),
    }


def _problems(sweep: _Sweep, listed: int, frontiers: dict[str, Any]) -> list[dict[str, Any]]:
    """All CMDPs; those without curves of their own without pictures."""
    described = sweep.source.results.manifest["cmdps"]
    problems = []
    for place, (fingerprint, model) in enumerate(
        zip(sweep.listing.cmdps, sweep.models, strict=True)
    ):
        # With several CMDPs the first one is shown in place of all, curves or not.
        shown = place < max(listed, 1)
        problem = describe_problem(model, described[fingerprint], rewards=shown)
        if shown and place < _MOST_FRONTIERS:
            if fingerprint not in frontiers:
                frontiers[fingerprint] = find_frontiers(model, described[fingerprint]["optimum"])
            problem["frontier"] = frontiers[fingerprint]
        problems.append(problem)
    return problems


def _manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with the first of its CMDPs."""
    first = dict(list(manifest["cmdps"].items())[:_MOST_DESCRIBED])
    return dict(plain(manifest | {"cmdps": first}))


# ----------------------------------------------------------------------------- what is always there


def _playground() -> dict[str, Any]:
    """The paper's minimal example, which the reader can play."""
    bandit = make("bandit")
    solution = solve(bandit)
    return {
        "rewards": all_rounded(bandit.rewards.ravel()),
        "constraint_rewards": all_rounded(bandit.constraint_rewards.ravel()),
        "threshold": rounded(bandit.thresholds[0]),
        "optimum": rounded(solution.value),
        "multiplier": rounded(solution.multipliers[0]),
        "max_multiplier": 6,
    }
