"""Fixed sweeps, audits and a reproduction, for `same_numbers.py`."""

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cmdpax
from fixed_runs import Cases, history_of, model

GRIDS = [
    {"name": "regularized-primal-dual", "step_size": [0.1, "0.3*k^-0.2"], "regularization": 0.05},
    {"name": "vanilla-dual", "step_size": [0.1, 0.2]},
]
SPECIFICATION: dict[str, Any] = {
    "num_episodes": 100,
    "seeds": 2,
    "record": 20,
    "cmdps": [{"environment": "random", "parameters": {"seed": [123, 124]}}],
    "algorithms": GRIDS,
}
RING = {"environment": "ring", "parameters": {"horizon": 4, "budget": 2.0}}
GRID = {"environment": "gridworld", "parameters": {"height": 3, "width": 3, "horizon": 4}}
# Eight runs of one CMDP are a batch of their own, fewer share one with those of other CMDPs.
MANY = {
    "name": "regularized-primal-dual",
    "step_size": [0.1, 0.2],
    "regularization": [0.02, {"initial": 0.3, "exponent": 0.4, "offset": 10}],
    "margin": [0.0, 0.05],
}
OWN = {"name": "vanilla-primal-dual", "optimism": {"profile": "live", "scale": 0.1}}
SWEEPS: dict[str, dict[str, Any]] = {
    "two models": SPECIFICATION | {"cmdps": [*SPECIFICATION["cmdps"], RING]},
    "stationary": SPECIFICATION | {"cmdps": [RING, GRID], "stationary": True, "optimism": "live"},
    "one model": SPECIFICATION | {"cmdps": [RING], "algorithms": [MANY, OWN]},
    "single": SPECIFICATION
    | {
        "cmdps": [RING],
        "algorithms": GRIDS[:1],
        "precision": "single",
        "observations": "bernoulli",
        "optimism": "theory",
        "unsafe_at": [0.0, 0.2],
        "record": [1, 10, 50],
    },
}


@contextlib.contextmanager
def swept(name: str) -> Iterator[cmdpax.Results]:
    """The results of a sweep, in a folder that is opened again."""
    with tempfile.TemporaryDirectory() as folder:
        cmdpax.sweep(SWEEPS[name], Path(folder) / "sweep")
        yield cmdpax.results(Path(folder) / "sweep")


def sweep_cases() -> Cases:
    """Sweeps of one batch and of several, of both precisions."""
    for name in SWEEPS:
        yield name, functools.partial(_sweep_case, name)


def _sweep_case(name: str) -> dict[str, Any]:
    with swept(name) as results:
        found = tables(results) | {"best": results.best()}
        algorithms = sorted(set(found["final"]["algorithm"]))
        if len(algorithms) == 2:
            found["strong"] = cmdpax.compare(results, *algorithms)
            found["weak"] = cmdpax.compare(results, *algorithms, by="weak")
        if name == "two models":
            found["repeat"] = history_of(results.repeat(found["final"]["run"][0]))
        return found


def tables(results: cmdpax.Results) -> dict[str, Any]:
    """Both frames, in an order that depends on the runs alone."""
    return {
        "final": results.final.sort("run"),
        "curves": results.curves.collect().sort("run", "episode"),
        "cmdps": sorted(results.cmdps),
    }


# ---------------------------------------------------------------------------------------- audits


def audit_cases() -> Cases:
    """The statements, with the model known and unknown."""
    dense = model("dense")
    yield "known", functools.partial(_audit_case, dense, num_iterations=100)
    yield (
        "online",
        functools.partial(
            _audit_case, dense, num_iterations=50, online=True, num_episodes=30, seeds=3
        ),
    )
    lists, given = model("lists"), {"step_size": 0.2, "regularization": 0.1, "accuracy": 0.2}
    yield "lists", functools.partial(_audit_case, lists, num_iterations=50, **given)


def _audit_case(cmdp: cmdpax.CMDP, **given: Any) -> dict[str, Any]:
    """Numbers and verdicts; sentences may be put in other words."""
    found = cmdpax.audit(cmdp, **given)
    rows = {
        row.name: {
            "sides": [row.left, row.right, row.slack],
            "verdict": row.verdict,
            "worst": row.worst,
        }
        for row in found.rows
    }
    return {"potentials": found.potentials, "rows": rows}


# ---------------------------------------------------------------------------------- reproduction


def reproduction_cases() -> Cases:
    """The quick reproduction: its claims and tables."""
    yield "quick", _reproduction_case


def _reproduction_case() -> dict[str, Any]:
    import polars

    with tempfile.TemporaryDirectory() as folder:
        found = cmdpax.reproduce(Path(folder) / "out", quick=True)
        table = polars.read_csv(Path(folder) / "out" / "configurations.csv")
    return {
        "cmdps": found.cmdps,
        "claims": {claim.number: _claim(claim) for claim in found.claims},
        "configurations": table,
        "final": {name: results.final.sort("run") for name, results in found.sweeps.items()},
    }


def _claim(claim: Any) -> dict[str, Any]:
    """What was measured, and the verdict, unless it depends on measured times."""
    timed = ["time per episode" in quantity.text for quantity in claim.quantities]
    quantities = {
        index: {"values": quantity.values, "side": quantity.side, "bound": quantity.bound}
        for index, quantity in enumerate(claim.quantities)
        if not timed[index]
    }
    decided = {} if any(timed) else {"holds": claim.over_family(), "held": claim.num_held()}
    return decided | quantities
