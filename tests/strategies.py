"""Hypothesis strategies: small random CMDPs, policies and multipliers.

Every new shape compiles anew, so shapes, storages and stationary axes come together from a short
list. Numbers come from a NumPy generator with a drawn seed: on a coarse grid (ties and zeros
everywhere) or uniform.
"""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import cmdpax
import reference


class Kind(NamedTuple):
    """Sizes and storage of a model; A^(H·S) stays small enough for brute force."""

    num_states: int
    num_actions: int
    horizon: int
    num_constraints: int
    num_slots: int = 0  # 0: dense
    stationary: str = ""  # of p, r and u: those that do not depend on the step


KINDS = (
    Kind(1, 1, 1, 0),
    Kind(3, 2, 3, 1),
    Kind(2, 2, 4, 2, stationary="pru"),
    Kind(4, 2, 2, 3, num_slots=2),
    Kind(1, 4, 4, 1, num_slots=1, stationary="p"),
    Kind(4, 3, 1, 2, stationary="u"),
    Kind(3, 2, 3, 0, num_slots=3, stationary="r"),
)
CONSTRAINED = tuple(kind for kind in KINDS if kind.num_constraints)

SEEDS = st.integers(0, 2**32 - 1)


class _Draw:
    """Random arrays on a grid or uniform."""

    def __init__(self, seed: int, on_grid: bool) -> None:
        self.generator = np.random.default_rng(seed)
        self.on_grid = on_grid

    def numbers(self, shape: tuple[int, ...], low: float = 0.0) -> np.ndarray:
        """Numbers in [low, 1]."""
        if self.on_grid:
            unit = self.generator.integers(0, 5, shape) / 4
        else:
            unit = self.generator.random(shape)
        return low + (1 - low) * unit

    def distributions(self, shape: tuple[int, ...]) -> np.ndarray:
        """Rows that sum to 1, on a grid with zeros."""
        rows = self.generator.integers(0, 4, shape) if self.on_grid else self.numbers(shape)
        rows = rows + 1.0 * (rows.sum(axis=-1, keepdims=True) == 0)
        return rows / rows.sum(axis=-1, keepdims=True)


@st.composite
def cmdps(
    draw: st.DrawFn,
    kinds: tuple[Kind, ...] = KINDS,
    feasible: bool = True,
    slacks: tuple[float, ...] = (0.05, 0.3),
    negative: bool = True,
) -> cmdpax.CMDP:
    """CMDPs of these kinds.

    Thresholds are what a random policy reaches, less a slack; or, if not `feasible`, one of
    them is beyond what any policy reaches.
    """
    kind = draw(st.sampled_from(kinds))
    numbers = _Draw(draw(SEEDS), draw(st.booleans()))
    low = draw(st.sampled_from([0.0, -1.0])) if negative else 0.0
    steps = {name: 1 if name in kind.stationary else kind.horizon for name in "pru"}
    pairs = (kind.num_states, kind.num_actions)
    rows = numbers.distributions((steps["p"], *pairs, kind.num_slots or kind.num_states))
    if kind.num_slots:
        lists = numbers.generator.integers(0, kind.num_states, rows.shape)
        transitions = cmdpax.Successors(lists, rows)
    else:
        transitions = rows
    cmdp = cmdpax.CMDP(
        transitions=transitions,
        rewards=numbers.numbers((steps["r"], *pairs), low),
        constraint_rewards=numbers.numbers((kind.num_constraints, steps["u"], *pairs), low),
        thresholds=np.zeros(kind.num_constraints),
        initial=numbers.distributions((kind.num_states,)),
        horizon=kind.horizon,
    )
    model = reference.densify(cmdp)
    policy = numbers.distributions((kind.horizon, *pairs))
    slack = draw(st.sampled_from(slacks))
    thresholds = reference.evaluate(model, policy).constraint_values - slack
    if not feasible:
        beyond = draw(st.integers(0, kind.num_constraints - 1))
        most = reference.best_value(model, model.constraint_rewards[beyond])
        thresholds[beyond] = most + draw(st.sampled_from([1e-6, 0.1, 2.0]))
    return cmdp.replace(thresholds=thresholds)


@st.composite
def policies(draw: st.DrawFn, cmdp: cmdpax.CMDP) -> np.ndarray:
    """Policies `[H, S, A]`: random, with zeros, or deterministic."""
    numbers = _Draw(draw(SEEDS), draw(st.booleans()))
    _, horizon, num_states, num_actions = cmdp.sizes
    if draw(st.booleans()):
        return numbers.distributions((horizon, num_states, num_actions))
    return np.eye(num_actions)[numbers.generator.integers(0, num_actions, (horizon, num_states))]


@st.composite
def multipliers(draw: st.DrawFn, cmdp: cmdpax.CMDP) -> np.ndarray:
    """λ ≥ 0 with zeros now and then."""
    entries = st.sampled_from([0.0, 0.25, 1.0, 7.5])
    size = cmdp.num_constraints
    return np.array(draw(st.lists(entries, min_size=size, max_size=size)))
