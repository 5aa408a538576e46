from typing import Any

import numpy as np
import pytest

import cmdpax
import reference
from checks import assert_moves

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left
UP, RIGHT, DOWN, LEFT = range(4)
MAP = [".S##", ".X..", "#...", "##.G"]
HALL = ["S....", ".#.X.", ".....", "G.#.."]

Cell = tuple[int, int]
Pair = tuple[Cell, Cell]  # the agent's cell and the box's


class Game:
    """The rules, one move at a time."""

    def __init__(self, rows: list[str], horizon: int) -> None:
        self.signs = {
            (row, column): sign
            for row, line in enumerate(rows)
            for column, sign in enumerate(line)
            if sign != "#"
        }
        self.horizon = horizon
        (agent,) = (cell for cell, sign in self.signs.items() if sign == "S")
        (box,) = (cell for cell, sign in self.signs.items() if sign == "X")
        self.start: Pair = (agent, box)

    def ahead(self, cell: Cell, direction: int) -> Cell:
        down, right = MOVES[direction]
        return (cell[0] + down, cell[1] + right)

    def next_pair(self, pair: Pair, direction: int) -> Pair:
        agent, box = pair
        if self.signs[agent] == "G":
            return pair
        to = self.ahead(agent, direction)
        if to not in self.signs:
            return pair
        if to != box:
            return to, box
        beyond = self.ahead(box, direction)
        return (to, beyond) if beyond in self.signs else pair

    def is_cornered(self, box: Cell) -> bool:
        return sum(self.ahead(box, direction) not in self.signs for direction in range(4)) >= 2

    def move(self, pair: Pair, direction: int) -> tuple[Pair, float, float]:
        """The next pair, what is earned and what it costs."""
        reached = self.next_pair(pair, direction)
        reward = 0.0
        if self.signs[reached[0]] == "G":
            reward = 1.0 if reached != pair else 1 / self.horizon
        return reached, reward, self.is_cornered(reached[1]) / self.horizon

    def pairs(self) -> list[Pair]:
        """All that can be reached, by depth-first search, in order."""
        found, rest = {self.start}, [self.start]
        while rest:
            pair = rest.pop()
            for direction in range(4):
                reached = self.next_pair(pair, direction)
                if reached not in found:
                    found.add(reached)
                    rest.append(reached)
        return sorted(found)


@pytest.mark.parametrize("rows", [MAP, HALL])
@pytest.mark.parametrize("slip", [0.0, 0.1, 1.0])
def test_every_move_from_every_state(rows: list[str], slip: float) -> None:
    cmdp = cmdpax.environments.make("box", layout="/".join(rows), slip=slip, horizon=12)
    game = Game(rows, 12)
    pairs = game.pairs()
    assert cmdp.sizes == (1, 12, len(pairs), 4)
    assert_moves(cmdp, pairs, game.move, slip)
    assert cmdp.initial.tolist() == [1.0 if pair == game.start else 0.0 for pair in pairs]
    assert cmdp.thresholds.tolist() == [12 - 0.1]


def test_the_default_map() -> None:
    cmdp = cmdpax.environments.make("box")
    assert cmdp.sizes == (1, 30, 60, 4)
    assert cmdp.thresholds.tolist() == [30 - 0.1]
    drawn = cmdpax.environments.make("box", layout="\n".join(MAP))
    assert drawn.fingerprint == cmdp.fingerprint
    stored = cmdp.with_arrays().fingerprint  # without its senses
    assert stored == "f2fa4d72351bc2e8102aa8c49ef770bafe5867023d071f9518295d2a3271e59b"


class Walk:
    """Moves through the default model, which is deterministic, from the start."""

    def __init__(self, **parameters: Any) -> None:
        self.cmdp = cmdpax.environments.make("box", **parameters)
        self.transitions = reference.densify(self.cmdp).transitions[0]
        self.state = int(self.cmdp.initial.argmax())
        self.rewards: list[float] = []
        self.costs: list[float] = []

    def go(self, *actions: int) -> int:
        for action in actions:
            self.rewards.append(float(self.cmdp.rewards[0, self.state, action]))
            self.costs.append(1 - float(self.cmdp.constraint_rewards[0, 0, self.state, action]))
            self.state = int(self.transitions[self.state, action].argmax())
        return self.state


def test_the_short_way_leaves_the_box_in_a_corner() -> None:
    walk = Walk()
    walk.go(DOWN, RIGHT, RIGHT, DOWN, DOWN)
    assert walk.rewards == [0, 0, 0, 0, 1]
    assert walk.costs == pytest.approx([1 / 30] * 5)
    arrived = walk.state
    assert walk.go(UP, LEFT) == arrived  # for good, and the cost goes on
    assert walk.rewards[5:] == [1 / 30] * 2
    assert walk.costs[5:] == pytest.approx([1 / 30] * 2)


def test_the_long_way_pushes_the_box_aside() -> None:
    walk = Walk()
    walk.go(LEFT, DOWN, RIGHT, DOWN, RIGHT, RIGHT, DOWN)
    assert walk.rewards == [0] * 6 + [1]
    assert walk.costs == [0] * 7


def test_a_push_against_a_wall_moves_nothing() -> None:
    walk = Walk()
    pushed = walk.go(DOWN)
    assert walk.go(DOWN) == pushed  # the box is at the wall below
    walk = Walk()
    beside = walk.go(LEFT, DOWN, RIGHT, RIGHT)  # the box is now at the right edge
    assert walk.go(RIGHT) == beside
    assert walk.costs[2:] == pytest.approx([0, 1 / 30, 1 / 30])


def test_walls_stop_the_agent() -> None:
    walk = Walk()
    start = walk.state
    assert walk.go(UP, RIGHT) == start


def test_walls_on_opposite_sides_count_as_well() -> None:
    walk = Walk(layout="SX..G", horizon=10)  # a corridor
    walk.go(RIGHT)
    assert walk.costs == pytest.approx([0.1])
    walk = Walk(layout="...../SX..G/.....", horizon=10)  # no wall beside the box
    walk.go(RIGHT)
    assert walk.costs == [0]


def test_a_box_at_the_goal_bars_it() -> None:
    cmdp = cmdpax.environments.make("box", layout="SXG", horizon=6, budget=1.0)
    assert cmdp.sizes == (1, 6, 3, 4)  # before the only push, and on two cells after it
    assert cmdpax.solve(cmdp).value == 0.0


def test_the_sum_over_an_episode_as_it_is_played() -> None:
    """Uniform actions played by the rules, against the exact values."""
    horizon, num_episodes, slip = 15, 4000, 0.3
    cmdp = cmdpax.environments.make("box", horizon=horizon, slip=slip)
    game, generator = Game(MAP, horizon), np.random.default_rng(5)
    sums = np.zeros((num_episodes, 2))
    for episode in range(num_episodes):
        pair = game.start
        for _ in range(horizon):
            action = DOWN if generator.random() < 0.5 else RIGHT
            slips = generator.random() < slip
            pair, earned, paid = game.move(pair, int(generator.integers(4)) if slips else action)
            sums[episode] += (earned, paid)
    policy = np.tile([0.0, 0.5, 0.5, 0.0], (horizon, cmdp.num_states, 1))
    found = cmdpax.evaluate(cmdp, policy)
    exact = np.array([found.value, found.constraint_values[0]])
    errors = sums.std(axis=0) / np.sqrt(num_episodes)
    assert np.all(errors < 0.015)
    assert np.all(np.abs(sums.mean(axis=0) - exact) < 4 * errors)


@pytest.mark.parametrize("budget", [0.05, 0.1, 0.5])
def test_the_optimum_by_hand(budget: float) -> None:
    # Five moves earn 1 + 25/30 and cost 1 in all; seven earn 1 + 23/30 and cost nothing.
    cmdp = cmdpax.environments.make("box", budget=budget)
    solution, lp = cmdpax.solve(cmdp), cmdpax.solve(cmdp, method="occupancy-lp")
    assert solution.value == pytest.approx(53 / 30 + budget * 2 / 30, abs=1e-9)
    assert lp.value == pytest.approx(solution.value, abs=1e-9)
    assert solution.multipliers == pytest.approx([2 / 30], abs=1e-9)
    assert lp.multipliers == pytest.approx([2 / 30], abs=1e-9)
    assert solution.constraint_values == pytest.approx([budget], abs=1e-9)
    assert solution.slater_gap == pytest.approx(budget, abs=1e-9)


def test_with_slips_no_policy_is_free_of_cost() -> None:
    cmdp = cmdpax.environments.make("box", slip=0.1)
    solution, lp = cmdpax.solve(cmdp), cmdpax.solve(cmdp, method="occupancy-lp")
    assert lp.value == pytest.approx(solution.value, abs=1e-9)
    assert solution.multipliers[0] > 0.07
    assert 0.06 < solution.slater_gap < 0.07


def test_several_starts_share_the_initial_mass() -> None:
    cmdp = cmdpax.environments.make("box", layout="SX./S.G")
    assert sorted(cmdp.initial)[-2:] == [0.5, 0.5]
    assert cmdp.initial.sum() == 1.0


@pytest.mark.whole
def test_it_can_be_learned() -> None:
    cmdp = cmdpax.environments.make("box")
    cap = 301  # above H over the Slater gap: no warning
    history = cmdpax.learn(cmdp, "regularized-primal-dual", num_episodes=5, max_multiplier=cap)
    assert history.value.shape == (1, 5)
    assert np.all((history.value >= 0) & (history.value <= 2))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"layout": "SXP"}, "layout has 'P'; use # wall, S start, G goal, . free, X box."),
        ({"layout": ".XG"}, "layout has no start: mark at least one cell with S."),
        ({"layout": "S.G"}, "layout has 0 boxes: mark exactly one cell with X."),
        ({"layout": "SXX"}, "layout has 2 boxes: mark exactly one cell with X."),
        ({"layout": None}, "layout is None, it must be a text drawing."),
        ({"horizon": 0}, "horizon is 0, it must be a whole number of at least 1."),
        ({"slip": -1}, "slip is -1, it must be a number between 0 and 1."),
        ({"budget": "x"}, "budget is 'x', it must be a number between 0 and infinity."),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(cmdpax.ParameterError) as raised:
        cmdpax.environments.make("box", **parameters)
    assert str(raised.value) == message
