"""The numbers of a run: its row of `final`, and its rows of `curves`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars

from cmdpax.experiments.runs import Run
from cmdpax.learning.history import Account, Plans, growth_exponent

MAY_BE_NAN = (
    "growth_objective",
    "growth_constraints",
    "violation_std",
    "suboptimality_std",
    "sign_changes",
)
"""The measures in `final` that a sound run may lack; every other number in it is finite."""

PLANNED = ("plans", "infeasible_plans")
"""The measures in `final` that only learners that plan have."""


def final_rows(
    runs: Sequence[Run],
    names: Sequence[str],
    accounts: Account,
    capped: np.ndarray,
    plans: Plans | None = None,
) -> polars.DataFrame:
    """A row per run: what it was, and its measures after the last episode.

    `capped` counts the episodes in which each multiplier was at its cap, `[R, I]`; learners that
    plan have two more columns.
    """
    num_episodes = int(accounts.episodes[-1])
    columns: dict[str, Any] = {
        **identity_columns(runs, names),
        **chosen_columns(runs),
        "num_episodes": np.full(len(runs), num_episodes),
        "strong_objective": accounts.strong_regret.objective[:, -1],
        "strong_constraints": accounts.strong_regret.maximum[:, -1],
        "weak_objective": accounts.weak_regret.objective[:, -1],
        "weak_constraints": accounts.weak_regret.maximum[:, -1],
        "growth_objective": growth_exponent(accounts.strong_regret.objective, accounts.episodes),
        "growth_constraints": growth_exponent(accounts.strong_regret.maximum, accounts.episodes),
        "last_suboptimality": accounts.suboptimality[:, -1],
        "last_violation": accounts.worst_violation[:, -1],
        **oscillation(accounts),
        "capped": capped.max(axis=-1, initial=0) / num_episodes,
    }
    if plans is not None:
        counts = (plans.made, plans.infeasible)
        columns |= dict(zip(PLANNED, (count.astype(float) for count in counts), strict=True))
    for index, level in enumerate(accounts.unsafe_at):
        columns[f"unsafe_at_{level:g}"] = accounts.unsafe[:, index]
    return polars.DataFrame(columns)


def identity_columns(runs: Sequence[Run], names: Sequence[str]) -> dict[str, Any]:
    """The columns that tell one run from another; `names` are those of the CMDPs."""
    return {
        "run": [run.identity for run in runs],
        "cmdp": [run.fingerprint for run in runs],
        "cmdp_name": list(names),
        "algorithm": [run.algorithm for run in runs],
        "configuration": [run.configuration_name for run in runs],
        "seed": [run.configuration.seed for run in runs],
    }


def chosen_columns(runs: Sequence[Run]) -> dict[str, Any]:
    """The parameters and the optimism; a schedule has three columns, one for each of its parts."""
    chosen = [run.configuration for run in runs]
    columns: dict[str, Any] = {}
    for parameter in chosen[0].algorithm.parameters:
        cells = (parameter.cells(getattr(one.parameters, parameter.name)) for one in chosen)
        columns |= dict(zip(parameter.columns, map(list, zip(*cells, strict=True)), strict=True))
    profiles = [one.optimism._asdict() for one in chosen]
    kinds = {"unvisited_rewards": polars.Float64, "num_episodes": polars.Int64}  # may be all null
    for name in profiles[0]:
        values = [profile[name] for profile in profiles]
        columns[f"optimism_{name}"] = polars.Series(values, dtype=kinds.get(name))
    return columns


def oscillation(accounts: Account) -> dict[str, np.ndarray]:
    """Standard deviations, and sign changes per 1,000 episodes, in the second half of a run.

    They are NaN unless every episode of that half was kept.
    """
    last = int(accounts.episodes[-1])
    half = accounts.episodes > last // 2
    violation = accounts.worst_violation[:, half]
    suboptimality = accounts.suboptimality[:, half]
    count = violation.shape[1]
    if count != last - last // 2 or count < 2:
        nothing = np.full(len(violation), np.nan)
        return {"violation_std": nothing, "suboptimality_std": nothing, "sign_changes": nothing}
    changes = np.diff(violation > 0, axis=1).sum(axis=1)
    changes = np.where(np.isfinite(violation).all(axis=1), changes, np.nan)
    return {
        "violation_std": violation.std(axis=1),
        "suboptimality_std": suboptimality.std(axis=1),
        "sign_changes": 1000 * changes / (count - 1),
    }


def curve_rows(
    runs: Sequence[Run], accounts: Account, multipliers: np.ndarray, recorded: np.ndarray
) -> polars.DataFrame:
    """A row per run and recorded episode."""
    places = np.searchsorted(accounts.episodes, recorded)

    def flat(array: np.ndarray) -> np.ndarray:
        return np.asarray(array[:, places].reshape(len(runs) * len(places), *array.shape[2:]))

    def lists(array: np.ndarray) -> polars.Series:
        kind = polars.Array(polars.Float64, array.shape[-1])
        return polars.Series(flat(array), dtype=kind).cast(polars.List(polars.Float64))

    identities = np.repeat([run.identity for run in runs], len(recorded))
    return polars.DataFrame(
        {
            "run": identities,
            "episode": np.tile(recorded, len(runs)),
            "value": flat(accounts.value),
            "suboptimality": flat(accounts.suboptimality),
            "violation": flat(accounts.worst_violation),
            "strong_objective": flat(accounts.strong_regret.objective),
            "strong_constraints": flat(accounts.strong_regret.maximum),
            "weak_objective": flat(accounts.weak_regret.objective),
            "weak_constraints": flat(accounts.weak_regret.maximum),
            "constraint_values": lists(accounts.constraint_values),
            "multipliers": lists(multipliers),
            "strong_by_constraint": lists(accounts.strong_regret.constraints),
            "weak_by_constraint": lists(accounts.weak_regret.constraints),
        }
    )
