"""What several tests of sweeps share: a small specification, and what a folder holds."""

from typing import Annotated, Any, NamedTuple

import numpy as np
import polars

import cmdpax
from cmdpax.learners import (
    Algorithm,
    Hyperparameters,
    Knowledge,
    Learner,
    Parameter,
    as_algorithm,
)
from cmdpax.schemes.schedules import constant
from storage_cases import contents as contents

SMALL = {"num_states": 3, "num_actions": 2, "horizon": 3}
"""Parameters of "random" whose shapes several tests compile."""


def specification(**changes: Any) -> dict[str, Any]:
    """Two CMDPs of one shape, two step sizes, two seeds: eight runs in one stacked batch."""
    plain: dict[str, Any] = {
        "num_episodes": 30,
        "seeds": 2,
        "cmdps": [{"environment": "random", "parameters": SMALL | {"seed": [1, 2]}}],
        "algorithms": [{"name": "regularized-primal-dual", "step_size": [0.2, 0.4]}],
        "record": 5,
    }
    return plain | changes


def toml(seeds: int = 2, step_size: str = "[0.2, 0.4]") -> str:
    """The same as a user writes it."""
    return f"""
num_episodes = 30
seeds = {seeds}
record = 5

[[cmdps]]
environment = "random"
parameters = {{ num_states = 3, num_actions = 2, horizon = 3, seed = [1, 2] }}

[[algorithms]]
name = "regularized-primal-dual"
step_size = {step_size}
"""


# ------------------------------------------------------------------------ an algorithm of one's own


class Geared(NamedTuple):
    """What its user chooses: a number, and a word that is compiled in."""

    gain: Annotated[float, Parameter("step size", at_least=0, at_most=50)] = 0.1
    mode: Annotated[str, Parameter("what is learned", choices=("dual", "primal-dual"))] = "dual"


def geared(knowledge: Knowledge, chosen: Geared) -> Learner:
    """The vanilla algorithm of a mode, whose step size is the gain."""
    nothing = constant(0.0)
    numbers = Hyperparameters(constant(chosen.gain), nothing, 6.0, nothing)
    return as_algorithm(f"vanilla-{chosen.mode}").factory(knowledge, numbers)


GEARED = Algorithm("geared", geared, summary="A vanilla algorithm with a gain.")
OWN = "sweep_cases:geared"
"""Where sweeps find it."""
OWN_GRID = {"name": OWN, "gain": [0.2, 0.4], "mode": ["dual", "primal-dual"]}


# -------------------------------------------------------------------------------------- comparisons


def assert_same_results(
    found: cmdpax.Results, expected: cmdpax.Results, tolerance: float = 1e-9
) -> None:
    """The same runs with the same numbers, in whatever batches."""
    assert_same_frames(found.final.sort("run"), expected.final.sort("run"), tolerance)
    curves = [one.curves.collect().sort("run", "episode") for one in (found, expected)]
    assert_same_frames(curves[0], curves[1], tolerance)


def assert_same_frames(
    found: polars.DataFrame, expected: polars.DataFrame, tolerance: float
) -> None:
    """The same columns; floating numbers, alone or in lists, up to a tolerance."""
    assert found.schema == expected.schema
    assert len(found) == len(expected)
    for name, kind in expected.schema.items():
        if isinstance(kind, polars.List):
            one, other = (frame[name].explode().to_numpy() for frame in (found, expected))
        else:
            one, other = found[name].to_numpy(), expected[name].to_numpy()
        if kind.is_float() or isinstance(kind, polars.List):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance, err_msg=name)
        else:
            assert found[name].to_list() == expected[name].to_list(), name
