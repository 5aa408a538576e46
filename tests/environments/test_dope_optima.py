"""The optima of DOPE's three models, from the descriptions in costs and another linear program.

Nothing of `cmdpax.environments` is used to write the models down, so that a slip in a sign, a scale
or a threshold would move an optimum.
"""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

import cmdpax


class Costly(NamedTuple):
    """max Σ gains subject to Σ costs ≤ budget, the same at every step."""

    rows: dict[tuple[int, int], dict[int, float]]  # p(t | s, a) of the actions that there are
    gains: dict[tuple[int, int], float]
    costs: dict[tuple[int, int], float]
    budget: float
    initial: dict[int, float]
    horizon: int


def optimum(model: Costly) -> float:
    """Of the program over d_h(s, a), one equation per step and state."""
    pairs = list(model.rows)
    states = sorted({s for s, _ in pairs})
    number = {
        (h, *pair): h * len(pairs) + n for h in range(model.horizon) for n, pair in enumerate(pairs)
    }
    equal, equal_to = [], []
    for h in range(model.horizon):
        for s in states:
            row = np.zeros(len(number))
            for pair in pairs:
                if pair[0] == s:
                    row[number[h, *pair]] += 1
                if h > 0:
                    row[number[h - 1, *pair]] -= model.rows[pair].get(s, 0.0)
            equal.append(row)
            equal_to.append(0.0 if h else model.initial.get(s, 0.0))
    gains = np.tile([model.gains[pair] for pair in pairs], model.horizon)
    costs = np.tile([model.costs[pair] for pair in pairs], model.horizon)
    found = linprog(-gains, costs[None], [model.budget], np.array(equal), np.array(equal_to))
    assert found.success
    return float(-found.fun)


def three_states(raw: bool) -> Costly:
    """STAY earns and costs nothing; MOVE goes on around, earns s + 1 and costs 1; at most 3."""
    rows = {(s, a): {(s + a) % 3: 1.0} for s in range(3) for a in range(2)}
    gains = {(s, a): a * (s + 1) / (1 if raw else 3) for s, a in rows}
    start = dict.fromkeys(range(3), 1 / 3) if raw else {0: 1.0}
    return Costly(rows, gains, {(s, a): float(a) for s, a in rows}, 3.0, start, 6)


def media_streaming() -> Costly:
    """A buffer of at most 9: up μ(1 - 0.8), down (1 - μ) 0.8, μ = 0.9 at a price or 0.1."""
    rows: dict[tuple[int, int], dict[int, float]] = {}
    for s in range(10):
        for a, arrival in enumerate((0.9, 0.1)):
            row: dict[int, float] = {}
            up, down = arrival * 0.2, (1 - arrival) * 0.8
            for t, chance in ((s + 1, up), (s - 1, down), (s, 1 - up - down)):
                inside = min(max(t, 0), 9)
                row[inside] = row.get(inside, 0.0) + chance
            rows[s, a] = row
    gains = {(s, a): float(s > 0) for s, a in rows}
    return Costly(rows, gains, {(s, a): float(a == 0) for s, a in rows}, 5.0, {0: 1.0}, 10)


def inventory() -> Costly:
    """Orders of at most 5 - s, revenue if all demand is met; in units of 0.132 and 19."""
    chances = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)
    rows: dict[tuple[int, int], dict[int, float]] = {}
    gains, costs = {}, {}
    for s in range(6):
        for a in range(6 - s):
            row: dict[int, float] = {}
            for demand, chance in enumerate(chances):
                left = max(s + a - demand, 0)
                row[left] = row.get(left, 0.0) + chance
            rows[s, a] = row
            met = sum(0.08 * d * chance for d, chance in enumerate(chances) if d <= s + a)
            gains[s, a] = met / 0.132
            costs[s, a] = ((4 + 2 * a if a > 0 else 0) + s + a) / 19
    return Costly(rows, gains, costs, 3.5, {0: 1.0}, 7)


@pytest.mark.parametrize(
    ("name", "options", "model"),
    [
        ("ring", {}, three_states(raw=False)),
        ("ring", {"scale_rewards": False, "uniform_start": True}, three_states(raw=True)),
        ("streaming", {}, media_streaming()),
        ("inventory", {}, inventory()),
    ],
    ids=["ring", "raw ring", "streaming", "inventory"],
)
def test_the_optimum_is_that_of_the_description(
    name: str, options: dict[str, bool], model: Costly
) -> None:
    cmdp = cmdpax.environments.make(name, **options)
    assert cmdpax.solve(cmdp).value == pytest.approx(optimum(model), abs=1e-8)
