"""Gridworlds of any size, stored as stationary successor lists."""

import numpy as np

from cmdpax.checks import require_count, require_flag, require_number
from cmdpax.environments.grid import (
    MOVE_NAMES,
    MOVES,
    cell_names,
    neighbours,
    read_drawing,
    slipping,
)
from cmdpax.environments.parameters import require_fitting, stable
from cmdpax.model.cmdp import CMDP, from_costs
from cmdpax.model.validation import validate
from cmdpax.planning.dynamic_program import greedy_values

_CELLS_PER_GOAL = 400


def gridworld(
    height: int = 8,
    width: int = 8,
    horizon: int = 32,
    slip: float = 0.1,
    num_constraints: int = 1,
    wall_density: float = 0.1,
    unsafe_density: float = 0.2,
    uniform_start: bool = False,
    budget: float | None = None,
    tightness: float = 0.5,
    seed: int = 0,
    layout: str | None = None,
) -> CMDP:
    """Reach a goal through walls and unsafe cells, on a budget of time spent in those.

    States are the cells without wall, row by row; actions 0 … 3 are up, right, down and left. A
    move goes astray with probability `slip` (all four directions alike) and stays put at walls
    and edges. A goal is never left and earns 1 per step. Unsafe cells of kind i cost 1 per step,
    and constraint i limits their expected sum to `budget`. With `budget=None` the limits are what
    a mixture of the fastest policy (weight 1 - `tightness`) and the safest one (`tightness`)
    needs, so that they bind and can be met.

    The map is random (`numpy.random.default_rng(seed)`; a goal per 400 cells, start at the first
    free cell or uniform over all) or drawn: `layout` holds rows separated by `/` or new lines, with
    `#` wall, `S` start, `G` goal, `.` free, and `1` … `9` unsafe cells of that kind; sizes, numbers
    and densities then come from the drawing.

    Source: ours, in the manner of the gridworlds of the safe-RL literature.
    """
    slip = require_number("slip", slip, 0.0, 1.0)
    horizon = require_count("horizon", horizon)
    tightness = require_number("tightness", tightness, 0.0, 1.0)
    if layout is not None:
        drawing, cells = _parse(layout)
    else:
        drawing, cells = _draw(
            (require_count("height", height), require_count("width", width)),
            require_count("num_constraints", num_constraints, minimum=0),
            require_number("wall_density", wall_density, 0.0, 0.9),
            require_number("unsafe_density", unsafe_density, 0.0, 1.0),
            np.random.default_rng(require_count("seed", seed, minimum=0, maximum=2**63 - 1)),
        )
    walls, goals, starts = (drawing == sign for sign in "#GS")
    if require_flag("uniform_start", uniform_start):
        starts = ~walls & ~goals
    at_goal, starts = (places[~walls].astype(float) for places in (goals, starts))
    unsafe = cells[:, ~walls].astype(float)
    num_kinds = len(unsafe)
    shape = (1, len(at_goal), len(MOVES))
    cmdp = from_costs(
        transitions=slipping(neighbours(walls, goals), slip),
        rewards=np.broadcast_to(at_goal[None, :, None], shape),
        costs=np.broadcast_to(unsafe[:, None, :, None], (num_kinds, *shape)),
        limits=np.full(num_kinds, 0.0 if budget is None else require_number("budget", budget, 0)),
        initial=starts / starts.sum(),
        horizon=horizon,
        state_names=cell_names(walls),
        action_names=MOVE_NAMES,
        constraint_names=_constraint_names(num_kinds),
        objective_name="steps at the goal",
    )
    if budget is not None or num_kinds == 0:
        return cmdp
    thresholds = _reachable_thresholds(cmdp, tightness)
    return cmdp.with_arrays(thresholds=thresholds).with_words(cmdp.words)


def _constraint_names(num_kinds: int) -> list[str]:
    if num_kinds == 1:
        return ["unsafe steps"]
    return [f"unsafe steps of kind {kind + 1}" for kind in range(num_kinds)]


def _draw(
    shape: tuple[int, int],
    num_kinds: int,
    wall_density: float,
    unsafe_density: float,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw exact numbers of walls, goals and unsafe cells in random places, as `_parse` does."""
    num_cells = shape[0] * shape[1]
    require_fitting(num_cells, max(len(MOVES), num_kinds), len(MOVES))
    num_goals = max(1, round(num_cells / _CELLS_PER_GOAL)) if num_cells > 1 else 0
    order = np.append(generator.permutation(np.arange(1, num_cells)), 0)
    num_walls = min(round(wall_density * num_cells), num_cells - num_goals - 1)
    drawing = np.full(num_cells, ".")
    drawing[order[:num_walls]] = "#"
    drawing[order[num_walls : num_walls + num_goals]] = "G"
    drawing[0] = "S"  # the upper left corner is always free
    rest = order[num_walls + num_goals : -1]
    unsafe = np.zeros((num_kinds, num_cells), dtype=bool)
    for cells in unsafe:
        chosen = generator.permutation(rest)[: round(unsafe_density * len(rest))]
        cells[chosen] = True
    return drawing.reshape(shape), unsafe.reshape(num_kinds, *shape)


def _parse(layout: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a map, `[rows, columns]`, and the unsafe cells of every kind, `[I, rows, columns]`."""
    drawing = read_drawing(layout, "123456789", "1 … 9 unsafe")
    kinds = [digit for digit in "123456789" if (drawing == digit).any()]
    num_kinds = int(kinds[-1]) if kinds else 0
    unsafe = [drawing == str(kind + 1) for kind in range(num_kinds)]
    return drawing, np.array(unsafe, dtype=bool).reshape(num_kinds, *drawing.shape)


def _reachable_thresholds(cmdp: CMDP, tightness: float) -> np.ndarray:
    """Compute V_u of a mixture of the fastest policy and the safest one, which is thus feasible."""
    fastest = np.eye(1 + cmdp.num_constraints)[0]
    values = greedy_values(validate(cmdp), np.stack([fastest, 1.0 - fastest]))[:, 1:]
    return stable((1 - tightness) * values[0] + tightness * values[1])
