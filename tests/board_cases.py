"""What tests of the board share: a tiny suite, and boards of invented runs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cmdpax import board
from cmdpax.board import Board, Family, Part, Suite
from cmdpax.board.models import Make, seeded
from cmdpax.board.suites import digest_of
from cmdpax.experiments import executing
from report_cases import invented
from sweep_cases import SMALL

LEARNERS = ("crpo", "regularized-primal-dual", "uopt-rpgpd")
"""The last one handles one constraint."""


def family(name: str, make: Make, scored: Sequence[int], **others: Any) -> Family:
    """A family that is frozen as it is now."""
    made = Family(name, f"Models called {name}.", make, tuple(scored), **others)
    models = {made.model_name(seed): make(seed) for seed in (*made.training, *made.scored)}
    return made._replace(digest=digest_of(models))


TINY = Suite(
    "tiny",
    "Two shapes, and hardly any episodes.",
    families=(
        family("one", seeded("random", **SMALL), (1, 2), training=(0,)),
        family("pair", seeded("random", num_constraints=2, **SMALL), (1, 2), runs=2),
    ),
    parts=(Part("K30", 30, ("one", "pair")), Part("K50", 50, ("one",))),
    recorded=4,
)


def invent(
    out: Path,
    algorithms: Sequence[Any] = LEARNERS,
    run_batch: Callable[..., Any] = invented,
    **settings: Any,
) -> Board:
    """A board whose runs are random numbers: nothing has to be compiled for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executing, "run_batch", run_batch)
        return board.run(TINY, out, algorithms=algorithms, **settings)


def fails(*algorithms: str, constraints: int) -> Callable[..., Any]:
    """Runs of some algorithms fail on models with so many constraints."""

    def run_batch(task: Any, configurations: Sequence[Any], *others: Any) -> Any:
        of_ours = configurations[0].algorithm.name in algorithms
        if of_ours and task.cmdps[0].num_constraints == constraints:
            raise ValueError("no luck")
        return invented(task, configurations, *others)

    return run_batch
