"""Everything that a page shows, as JSON and as blocks of numbers."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cmdpax.environments import make
from cmdpax.figures.colours import pens
from cmdpax.intervals import student
from cmdpax.planning.solution import solve
from cmdpax.reporting.budgets import Group, allot
from cmdpax.reporting.curves import count_recorded, find_groups, is_log_spaced, make_blocks
from cmdpax.reporting.encoding import all_rounded, plain, rounded
from cmdpax.reporting.problems import describe_problem, find_frontiers
from cmdpax.reporting.replaying import replay_reproduction, replay_sweep
from cmdpax.reporting.sources import (
    LABELS,
    find_sweeps,
    folder_name,
    is_sweep,
    read_claims,
    read_command,
)
from cmdpax.reporting.tables import (
    Sweep,
    list_sweep,
    measure_label,
    measure_names,
    measure_runs,
    parameter_labels,
    planning,
)

BUDGET = 1_700_000
"""Numbers in all blocks of a page: about three megabytes."""
_FORMAT = 1
_STUDENT_UP_TO = 60
_MOST_FRONTIERS = 8
_MOST_DESCRIBED = 20


def content(
    folder: str | os.PathLike[str], *, budget: int = BUDGET
) -> tuple[dict[str, Any], list[str]]:
    """Collect everything that a page shows of a sweep or of a reproduction.

    Args:
        folder: the folder of a sweep, or of a reproduction with its sweeps.
        budget: how many numbers all blocks may have together; longer curves are thinned.

    Returns:
        The payload for JSON, where floats have seven digits and null stands for what is not
        finite, and the encoded curves of all groups.

    Raises:
        FileError: there are no results, or a file is damaged.
        ParameterError: no run is finished.
    """
    path = Path(folder)
    found = find_sweeps(path)
    sweeps = [list_sweep(results) for results in found.values()]
    groups = [find_groups(sweep) for sweep in sweeps]
    recorded = [count_recorded(results) for results in found.values()]
    alone = is_sweep(path)
    blocks: list[str] = []
    frontiers: dict[str, Any] = {}  # sweeps of one folder share CMDPs
    described = [
        {"name": plain(name), "label": plain(name if alone else LABELS.get(name, name))}
        | _describe(sweep, own, *allotted, blocks, frontiers)
        for name, sweep, own, allotted in zip(
            found, sweeps, groups, allot(groups, recorded, budget), strict=True
        )
    ]
    name, first = next(iter(found.items()))
    replay = replay_sweep(name, first) if alone else replay_reproduction(read_command(path))
    payload = {
        "format": _FORMAT,
        "folder": plain(folder_name(path)),
        "kind": "sweep" if alone else "reproduction",
        "sweeps": described,
        "claims": None if alone else plain(read_claims(path)),
        "student": [None, None, *(rounded(student(n)) for n in range(2, _STUDENT_UP_TO + 1))],
        "playground": _playground(),
        "replay": plain(replay),
        "palette": _palette(sweeps),
    }
    return payload, blocks


# --------------------------------------------------------------------------------------- one sweep


def _describe(
    sweep: Sweep,
    groups: list[Group],
    num_episodes: int,
    num_shown: int,
    num_cmdps: int,
    blocks: list[str],
    frontiers: dict[str, Any],
) -> dict[str, Any]:
    """Describe a sweep; its blocks and frontiers are added to those of the sweeps before it."""
    described_groups = []
    chosen = [group for group in groups if group.cmdp is None or group.cmdp < num_cmdps]
    for group, block in make_blocks(sweep, chosen, num_episodes, num_shown):
        described_groups.append(group | {"block": len(blocks)})
        blocks.append(block)
    manifest = sweep.results.manifest
    names, plans = measure_names(sweep.results), planning(sweep)
    return {
        "num_episodes": manifest["specification"]["num_episodes"],
        "manifest": _manifest(manifest),
        "algorithms": sweep.algorithms,
        "planning": plans,
        "log_episodes": bool(plans) and is_log_spaced(sweep.results),
        "cmdps": _problems(sweep, num_cmdps, frontiers),
        "with_curves": num_cmdps,
        "parameters": list(map(list, parameter_labels(sweep.configurations))),
        "configurations": sweep.configurations,
        "groups": described_groups,
        "measures": [{"name": name, "label": measure_label(name)} for name in names],
        "runs": measure_runs(sweep),
    }


def _problems(sweep: Sweep, with_curves: int, frontiers: dict[str, Any]) -> list[dict[str, Any]]:
    """Describe all CMDPs; those without curves of their own have no pictures."""
    described = sweep.results.manifest["cmdps"]
    problems = []
    for place, (fingerprint, model) in enumerate(sweep.cmdps.items()):
        # With several CMDPs the first one is shown in place of all, curves or not.
        shown = place < max(with_curves, 1)
        problem = plain(describe_problem(model, described[fingerprint], rewards=shown))
        if shown and place < _MOST_FRONTIERS:
            if fingerprint not in frontiers:
                frontiers[fingerprint] = find_frontiers(model, described[fingerprint]["optimum"])
            problem["frontier"] = frontiers[fingerprint]
        problems.append(problem)
    return problems


def _manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """Keep only the first CMDPs of a manifest."""
    first = dict(list(manifest["cmdps"].items())[:_MOST_DESCRIBED])
    return dict(plain(manifest | {"cmdps": first}))


# ----------------------------------------------------------------------------- what is always there


def _palette(sweeps: Sequence[Sweep]) -> dict[str, dict[str, str]]:
    """Give every algorithm of the page its colour, on either ground, and its dash."""
    found = pens(name for sweep in sweeps for name in sweep.algorithms)
    return {
        "light": {plain(name): pen.colour for name, pen in found.items()},
        "dark": {plain(name): pen.on_dark for name, pen in found.items()},
        "dashes": {plain(name): pen.dash for name, pen in found.items()},
    }


def _playground() -> dict[str, Any]:
    """Describe the paper's minimal example, which the reader can play."""
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
