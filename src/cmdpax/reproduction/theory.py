"""The theorem's parameters and the theory's bonuses: where the regrets stand, how they grow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cmdpax.experiments import Results, Stand, sweep
from cmdpax.experiments.reading import SUMS
from cmdpax.parameters import regret_theorem
from cmdpax.reproduction.experiment import PRIMAL_DUAL, SEED
from cmdpax.reproduction.verdict import Claim, Quantity

EPISODES = 1_000_000
RUNS = 3
EXPONENT = 13 / 14


def theory_claim(
    folder: Path, paper: Results, progress: Callable[[str], Callable[[Stand], None]] | None
) -> tuple[Claim, dict[str, Results]]:
    """Run Algorithm 1 as the theorem has it, on every CMDP: its parameters depend on the CMDP."""
    sweeps: dict[str, Results] = {}
    growth: dict[str, dict[str, np.ndarray]] = {"objective": {}, "constraints": {}}
    for fingerprint, entry in paper.manifest["cmdps"].items():
        parameters = entry["source"]["parameters"]
        name = f"theory-{parameters['seed']}"
        preset = regret_theorem(paper.cmdps[fingerprint], EPISODES)
        sweeps[name] = sweep(
            _specification(parameters, preset._asdict()),
            folder / name,
            progress=progress(name) if progress else False,
        )
        for column, values in growth.items():
            exponents = sweeps[name].final[f"growth_{column}"].to_numpy()
            values[str(parameters["seed"])] = exponents
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
        "record": [int(k) for k in np.unique(np.geomspace(1, EPISODES, 500).round())],
    }


def _stand(results: Results) -> str:
    objective, constraint = (results.final[name].to_numpy().mean() for name in SUMS["strong"])
    return (
        f"Where they stand on the first CMDP: objective {objective:.4g}, constraint "
        f"{constraint:.4g}, that is {objective / EPISODES:.3g} and {constraint / EPISODES:.3g} per "
        "episode. The bonuses of the "
        "appendix exceed the caps of the truncated evaluation for most of the run, so that the "
        "bound says little about a million episodes."
    )
