from typing import Any

import numpy as np
import pytest

import cmdpax
import reference
from checks import assert_moves

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left
MAP = [
    ".......G",
    "...P....",
    "........",
    ".....P..",
    "........",
    "........",
    "...P....",
    "S.......",
]
WALLED = ["S.#P", ".P..", "#..G"]

Cell = tuple[int, int]


class Rover:
    """The rules, one move at a time."""

    def __init__(self, rows: list[str], horizon: int, rock_reward: float = 1.0) -> None:
        self.signs = {
            (row, column): sign
            for row, line in enumerate(rows)
            for column, sign in enumerate(line)
            if sign != "#"
        }
        self.horizon = horizon
        self.reward = {"G": 1.0, "P": rock_reward, ".": 0.0, "S": 0.0}
        self.cost = {"G": 0.0, "P": 1.0, ".": 0.0, "S": 0.0}

    def move(self, cell: Cell, direction: int) -> tuple[Cell, float, float]:
        """The next cell, what is earned and what it costs."""
        sign = self.signs[cell]
        if sign in "GP":  # over: the same again, spread over the horizon
            return cell, self.reward[sign] / self.horizon, self.cost[sign] / self.horizon
        down, right = MOVES[direction]
        ahead = (cell[0] + down, cell[1] + right)
        if ahead not in self.signs:
            return cell, 0.0, 0.0
        return ahead, self.reward[self.signs[ahead]], self.cost[self.signs[ahead]]


@pytest.mark.parametrize("rows", [MAP, WALLED])
@pytest.mark.parametrize(("slip", "rock_reward"), [(0.1, 1.0), (0.0, 0.25), (1.0, 0.0)])
def test_every_move_from_every_cell(rows: list[str], slip: float, rock_reward: float) -> None:
    cmdp = cmdpax.environments.make(
        "mars-rover", layout="/".join(rows), slip=slip, rock_reward=rock_reward, horizon=12
    )
    rover = Rover(rows, 12, rock_reward)
    cells = list(rover.signs)  # row by row
    assert cmdp.sizes == (1, 12, len(cells), 4)
    assert_moves(cmdp, cells, rover.move, slip)
    assert cmdp.transitions.successors.shape == (1, len(cells), 4, 4)
    assert cmdp.initial.tolist() == [1.0 if rover.signs[cell] == "S" else 0.0 for cell in cells]
    assert cmdp.thresholds.tolist() == [12 - 0.3]


def test_the_default_map() -> None:
    cmdp = cmdpax.environments.make("mars-rover")
    assert cmdp.sizes == (1, 30, 64, 4)
    assert cmdp.thresholds.tolist() == [30 - 0.3]
    assert np.flatnonzero(cmdp.initial).tolist() == [56]  # the lower left corner
    drawn = cmdpax.environments.make("mars-rover", layout="\n".join(MAP))
    assert drawn.fingerprint == cmdp.fingerprint
    stored = cmdp.with_arrays().fingerprint  # without its senses
    assert stored == "1dc0dc21906d8a2aba96f359ca661e7c71f3508cb8ea323cbfb9c7b72990d9d4"


def test_cells_by_hand() -> None:
    cmdp = cmdpax.environments.make("mars-rover")
    model = reference.densify(cmdp)
    goal, rock, corner = 7, 8 + 3, 56
    beside_goal, above_rock = 6, 3
    up, right, down, left = range(4)
    for a in range(4):
        assert model.transitions[0, goal, a, goal] == pytest.approx(1.0)
        assert model.transitions[0, rock, a, rock] == pytest.approx(1.0)
        assert cmdp.rewards[0, goal, a] == cmdp.rewards[0, rock, a] == 1 / 30
        assert cmdp.constraint_rewards[0, 0, goal, a] == 1.0
        assert cmdp.constraint_rewards[0, 0, rock, a] == 1 - 1 / 30
    # The move itself with 0.9, and each direction with 0.1 / 4.
    assert model.transitions[0, corner, up, corner - 8] == pytest.approx(0.925)
    assert model.transitions[0, corner, left, corner] == pytest.approx(0.95)
    assert cmdp.rewards[0, beside_goal, right] == pytest.approx(0.925)
    assert cmdp.rewards[0, beside_goal, left] == pytest.approx(0.025)
    assert cmdp.constraint_rewards[0, 0, above_rock, down] == pytest.approx(0.075)
    assert cmdp.constraint_rewards[0, 0, above_rock, up] == pytest.approx(0.975)


def test_the_sum_over_an_episode_as_it_is_played() -> None:
    """Uniform actions played by the rules, against the exact values."""
    rows, horizon, num_episodes = ["..G", "P..", "S.P"], 9, 4000
    cmdp = cmdpax.environments.make("mars-rover", layout="/".join(rows), horizon=horizon, slip=0.1)
    rover, generator = Rover(rows, horizon), np.random.default_rng(5)
    sums = np.zeros((num_episodes, 2))
    for episode in range(num_episodes):
        cell: Cell = (2, 0)
        for _ in range(horizon):
            action = generator.integers(4)
            slips = generator.random() < 0.1
            cell, earned, paid = rover.move(cell, generator.integers(4) if slips else action)
            sums[episode] += (earned, paid)
    found = cmdpax.evaluate(cmdp, np.full((horizon, 9, 4), 0.25))
    exact = np.array([found.value, found.constraint_values[0]])
    errors = sums.std(axis=0) / np.sqrt(num_episodes)
    assert np.all(errors < 0.015)
    assert np.all(np.abs(sums.mean(axis=0) - exact) < 4 * errors)


@pytest.mark.parametrize("budget", [0.0, 0.9, 1.8])
def test_an_optimum_by_hand(budget: float) -> None:
    # One move to the rock and 4 of 5 steps on it: 1.8; two moves to the goal: 1.6.
    cmdp = cmdpax.environments.make("mars-rover", layout="PS.G", horizon=5, slip=0, budget=budget)
    solution = cmdpax.solve(cmdp)
    assert solution.value == pytest.approx(1.6 + 0.2 * budget / 1.8, abs=1e-9)
    if budget == 0.9:
        assert solution.multipliers == pytest.approx([1 / 9], abs=1e-9)


def test_the_default_constraint_binds_and_only_for_the_rocks_reward() -> None:
    cmdp = cmdpax.environments.make("mars-rover")
    solution, lp = cmdpax.solve(cmdp), cmdpax.solve(cmdp, method="occupancy-lp")
    assert solution.value == pytest.approx(1.546391110047, abs=1e-9)
    assert lp.value == pytest.approx(solution.value, abs=1e-9)
    assert solution.multipliers == pytest.approx([0.20256258], abs=1e-7)
    assert lp.multipliers == pytest.approx(solution.multipliers, abs=1e-7)
    assert solution.constraint_values == pytest.approx([0.3], abs=1e-9)
    assert 0.2999 < solution.slater_gap < 0.3
    plain = cmdpax.environments.make("mars-rover", rock_reward=0.0)
    assert cmdpax.solve(plain).multipliers == pytest.approx([0.0], abs=1e-9)


def test_several_starts_share_the_initial_mass() -> None:
    cmdp = cmdpax.environments.make("mars-rover", layout="S.P/S.G")
    assert cmdp.initial.tolist() == [0.5, 0.0, 0.0, 0.5, 0.0, 0.0]


@pytest.mark.whole
def test_it_can_be_learned() -> None:
    cmdp = cmdpax.environments.make("mars-rover")
    cap = 101  # above H over the Slater gap: no warning
    history = cmdpax.learn(cmdp, "regularized-primal-dual", num_episodes=5, max_multiplier=cap)
    assert history.value.shape == (1, 5)
    assert np.all((history.value >= 0) & (history.value <= 2))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"layout": "S.X"}, "layout has 'X'; use # wall, S start, G goal, . free, P rock."),
        ({"layout": "..G"}, "layout has no start: mark at least one cell with S."),
        ({"layout": 7}, "layout is 7, it must be a text drawing."),
        ({"horizon": 0}, "horizon is 0, it must be a whole number of at least 1."),
        ({"slip": 1.5}, "slip is 1.5, it must be a number between 0 and 1."),
        ({"budget": -0.1}, "budget is -0.1, it must be a number between 0 and infinity."),
        ({"rock_reward": 2}, "rock_reward is 2, it must be a number between 0 and 1."),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(cmdpax.ParameterError) as raised:
        cmdpax.environments.make("mars-rover", **parameters)
    assert str(raised.value) == message
