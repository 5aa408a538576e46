"""The theorem's parameters and the theory's bonuses: how large the regrets are, how they grow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cmdpax.experiments import Results, SweepProgress, sweep
from cmdpax.experiments.tables import SUMS
from cmdpax.learners.optimism import Optimism
from cmdpax.paper.reproduction.experiment import PRIMAL_DUAL, SEED, log_spaced
from cmdpax.paper.reproduction.measured import Measured
from cmdpax.paper.reproduction.verdict import Claim, Quantity
from cmdpax.schemes.presets import regret_theorem

EPISODES = 1_000_000
RUNS = 3
EXPONENT = 13 / 14


def theory_claim(
    folder: Path, paper: Measured, progress: Callable[[str], Callable[[SweepProgress], None]] | None
) -> tuple[Claim, dict[str, Results]]:
    """Run Algorithm 1 on every CMDP with the theorem's parameters, which depend on the CMDP."""
    sweeps: dict[str, Results] = {}
    growth: dict[str, dict[str, np.ndarray]] = {"objective": {}, "constraints": {}}
    for seed, fingerprint in paper.cmdps.items():
        parameters = paper.results.manifest["cmdps"][fingerprint]["source"]["parameters"]
        name = f"theory-{seed}"
        preset = regret_theorem(paper.results.cmdps[fingerprint], EPISODES)
        sweeps[name] = sweep(
            _specification(parameters, preset._asdict()),
            folder / name,
            progress=progress(name) if progress else False,
        )
        for column, values in growth.items():
            values[seed] = sweeps[name].final[f"growth_{column}"].to_numpy()
    return Claim(
        12,
        "With the theorem's parameters the strong regrets grow at most like K^(13/14).",
        tuple(
            Quantity(
                f"growth exponent of the strong {text} regret over the last decade of "
                f"{EPISODES:,} episodes",
                growth[column],
                "below",
                EXPONENT,
            )
            for text, column in (("objective", "objective"), ("constraint", "constraints"))
        ),
        _stand(next(iter(sweeps.values()))),
    ), sweeps


def _specification(parameters: dict[str, Any], preset: dict[str, float]) -> dict[str, Any]:
    return {
        "num_episodes": EPISODES,
        "seeds": list(range(SEED, SEED + RUNS)),
        "cmdps": [{"environment": "random", "parameters": parameters}],
        "algorithms": [{"name": PRIMAL_DUAL[1], **preset}],
        "optimism": "theory",
        "record": log_spaced(EPISODES),
    }


def _stand(results: Results) -> str:
    """Say how large the regrets are on a CMDP, and why."""
    import polars

    objective, constraint = (results.final[name].to_numpy().mean() for name in SUMS["strong"])
    bonuses = Optimism.theory(EPISODES).numbers(next(iter(results.cmdps.values())).sizes)
    safe = results.curves.filter(polars.col("strong_constraints") == 0)
    each = safe.group_by("run").agg(polars.col("episode").max()).collect()
    last_safe = each["episode"].to_numpy().min() if len(each) == len(results.final) else 0
    return (
        f"Where they stand on the first CMDP: objective {objective:.4g}, constraint "
        f"{constraint:.4g}, that is {objective / EPISODES:.3g} and {constraint / EPISODES:.3g} per "
        f"episode. The appendix' bonuses are {bonuses.reward + bonuses.transition:.0f}/√n after n "
        "visits: while they reach the caps of the truncated evaluation, all actions look alike and "
        "the policy stays nearly uniform, here without a violation in any run up to the recorded "
        f"episode {last_safe:,}. "
        "An exponent is not defined where a regret is 0 at the start of the decade."
    )
