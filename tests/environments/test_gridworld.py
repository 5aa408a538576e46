import numpy as np
import pytest

import cmdpax
import reference

MOVES = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}  # up, right, down, left
LAYOUT = """
    S.1#
    .#2G
    ..1.
"""


def walk(rows: list[str], slip: float) -> np.ndarray:
    """p(t | s, a), cell by cell."""
    cells = [
        (row, column)
        for row, line in enumerate(rows)
        for column, sign in enumerate(line)
        if sign != "#"
    ]
    number_of = {cell: number for number, cell in enumerate(cells)}
    transitions = np.zeros((len(cells), 4, len(cells)))
    for (row, column), s in number_of.items():
        for a in range(4):
            if rows[row][column] == "G":
                transitions[s, a, s] = 1.0
                continue
            for direction, (down, right) in MOVES.items():
                chance = slip / 4 + (1 - slip if direction == a else 0.0)
                t = number_of.get((row + down, column + right), s)
                transitions[s, a, t] += chance
    return transitions


@pytest.mark.parametrize("slip", [0.0, 0.1, 1.0])
def test_a_drawn_map_cell_by_cell(slip: float) -> None:
    cmdp = cmdpax.environments.make("gridworld", layout=LAYOUT, slip=slip, horizon=6, budget=0.75)
    rows = [line.strip() for line in LAYOUT.split()]
    signs = [sign for line in rows for sign in line if sign != "#"]
    assert cmdp.sizes == (2, 6, 10, 4)
    assert isinstance(cmdp.transitions, cmdpax.Successors)
    assert cmdp.transitions.successors.shape == (1, 10, 4, 4)
    model = reference.densify(cmdp)
    np.testing.assert_allclose(model.transitions[0], walk(rows, slip), rtol=0, atol=1e-15)
    for s, sign in enumerate(signs):
        assert np.all(cmdp.rewards[0, s] == (1.0 if sign == "G" else 0.0))
        for kind in (1, 2):
            unsafe = 1.0 if sign == str(kind) else 0.0
            assert np.all(cmdp.constraint_rewards[kind - 1, 0, s] == 1 - unsafe)
    assert cmdp.thresholds.tolist() == [6 - 0.75, 6 - 0.75]
    assert cmdp.initial.tolist() == [1.0] + [0.0] * 9


def test_rows_may_be_separated_by_slashes() -> None:
    drawn = cmdpax.environments.make("gridworld", layout=LAYOUT)
    inline = cmdpax.environments.make("gridworld", layout="S.1#/.#2G/..1.")
    assert inline.fingerprint == drawn.fingerprint


def test_several_starts_share_the_initial_mass() -> None:
    cmdp = cmdpax.environments.make("gridworld", layout="S.S/..G")
    assert cmdp.initial.tolist() == [0.5, 0.0, 0.5, 0.0, 0.0, 0.0]


def test_a_uniform_start_avoids_goals() -> None:
    cmdp = cmdpax.environments.make("gridworld", layout="S.#/..G", uniform_start=True)
    assert cmdp.initial.tolist() == [0.25, 0.25, 0.25, 0.25, 0.0]


def test_the_shortest_way_by_hand() -> None:
    # Three moves to the goal, and the four steps that are left earn 1 each.
    cmdp = cmdpax.environments.make("gridworld", layout="S..G/....", slip=0.0, horizon=7)
    assert cmdp.num_constraints == 0
    assert cmdpax.solve(cmdp).value == 4.0


def test_a_budget_of_zero_leads_around_unsafe_cells() -> None:
    cmdp = cmdpax.environments.make("gridworld", layout="S1G/...", slip=0.0, horizon=6, budget=0.0)
    # Two moves through the unsafe cell, four around it.
    solution = cmdpax.solve(cmdp)
    assert solution.value == pytest.approx(2.0, abs=1e-9)
    half = cmdpax.solve(cmdp.replace(thresholds=[0.5]))
    assert half.value == pytest.approx(3.0, abs=1e-9)


@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0])
def test_limits_are_what_a_mixture_of_fastest_and_safest_needs(tightness: float) -> None:
    parameters = {"height": 4, "width": 4, "horizon": 8, "num_constraints": 2, "seed": 3}
    cmdp = cmdpax.environments.make("gridworld", tightness=tightness, **parameters)
    ends = [
        cmdpax.environments.make("gridworld", tightness=end, **parameters).thresholds
        for end in (0.0, 1.0)
    ]
    expected = (1 - tightness) * ends[0] + tightness * ends[1]
    np.testing.assert_allclose(cmdp.thresholds, expected, rtol=0, atol=1e-12)
    model = reference.densify(cmdp)
    safest = reference.best_value(model, model.constraint_rewards.sum(axis=0))
    assert ends[1].sum() == pytest.approx(safest, abs=1e-12)
    assert cmdpax.slater_gap(cmdp).gap >= -1e-9


def test_random_maps_have_the_numbers_asked_for() -> None:
    cmdp = cmdpax.environments.make(
        "gridworld", height=20, width=30, wall_density=0.2, unsafe_density=0.25, num_constraints=2
    )
    num_walls, num_goals = 120, round(600 / 400)
    assert cmdp.num_states == 600 - num_walls
    assert np.count_nonzero(cmdp.rewards[0, :, 0]) == num_goals
    candidates = cmdp.num_states - num_goals - 1  # neither goals nor the start
    for constraint in cmdp.constraint_rewards:
        assert np.count_nonzero(constraint[0, :, 0] == 0) == round(0.25 * candidates)
    assert cmdp.initial[0] == 1.0


def test_the_transitions_of_a_random_map_are_distributions_over_neighbours() -> None:
    cmdp = cmdpax.environments.make("gridworld", height=6, width=7, slip=0.3)
    lists, chances = cmdp.transitions
    np.testing.assert_allclose(chances.sum(axis=-1), 1.0, rtol=0, atol=1e-15)
    for s, a in np.ndindex(cmdp.num_states, 4):
        used = lists[0, s, a][chances[0, s, a] > 0]
        assert len(set(used)) == len(used)  # one slot per successor
        assert np.all(abs(used - s) <= 7)


def test_sizes_can_be_tiny() -> None:
    cmdp = cmdpax.environments.make("gridworld", height=1, width=1)
    assert cmdp.num_states == 1
    assert cmdpax.solve(cmdp).value == 0.0


def test_another_seed_is_another_map() -> None:
    prints = {cmdpax.environments.make("gridworld", seed=seed).fingerprint for seed in range(3)}
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("S../.", "layout has rows of lengths [3, 1], they must be equal"),
        ("", "layout has rows of lengths [], they must be equal and not empty"),
        ("S.x", "layout has 'x'; use # wall, S start, G goal"),
        ("..G", "layout has no start: mark at least one cell with S"),
        (7, "layout is 7, it must be a text drawing"),
    ],
)
def test_bad_drawings(layout: object, message: str) -> None:
    with pytest.raises(cmdpax.ParameterError) as raised:
        cmdpax.environments.make("gridworld", layout=layout)
    assert message in str(raised.value)


def test_a_horizon_that_nobody_can_plan_is_refused_at_once() -> None:
    with pytest.raises(cmdpax.ModelError, match="horizon is 2147483647, it must be at most"):
        cmdpax.environments.make("gridworld", horizon=2**31 - 1)
