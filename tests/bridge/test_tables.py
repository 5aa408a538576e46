"""`from_env` against slow loops over the table itself, where an end is just an end."""

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.registration import make

import cmdpax
from cmdpax.gymnasium import from_env, make_env

HOLES = {5, 7, 11, 12}
"""Of the lake of 4 × 4; its goal is 15."""

TOY_TEXT = {
    "lake": ("FrozenLake-v1", {}, 40),
    "dry-lake": ("FrozenLake-v1", {"is_slippery": False}, 10),
    "large-lake": ("FrozenLake-v1", {"map_name": "8x8"}, 100),
    "own-lake": ("FrozenLake-v1", {"desc": ["SFHG", "FSFF"], "reward_schedule": (5, -2, -1)}, 9),
    "cliff": ("CliffWalking-v1", {}, 30),
    "slippery-cliff": ("CliffWalking-v1", {"is_slippery": True}, 60),
    "taxi": ("Taxi-v4", {}, 20),
    "rainy-taxi": ("Taxi-v4", {"is_rainy": True}, 25),
}


def toy(name: str) -> tuple[Any, int]:
    identifier, options, horizon = TOY_TEXT[name]
    return make(identifier, **options), horizon


def table_of(
    outcomes: list[list[list[tuple[float, int, float, bool]]]], initial: Any = None
) -> Any:
    """An environment that is nothing but its table."""
    return SimpleNamespace(P=outcomes, initial_state_distrib=initial)


def best_return(env: Any, horizon: int) -> float:
    """The optimal expected return, by backward induction on the table."""
    table, start = env.unwrapped.P, env.unwrapped.initial_state_distrib
    values = dict.fromkeys(range(len(table)), 0.0)
    for _ in range(horizon):
        values = {
            s: max(
                sum(p * (r + (0.0 if end else values[t])) for p, t, r, end in table[s][a])
                for a in range(len(table[s]))
            )
            for s in range(len(table))
        }
    return sum(start[s] * values[s] for s in values)


def expected_sums(env: Any, policy: np.ndarray, cost: Any) -> tuple[float, float]:
    """Expected return and expected cost of a policy, forward on the table."""
    table, start = env.unwrapped.P, env.unwrapped.initial_state_distrib
    mass = dict(enumerate(start))
    total_reward = total_cost = 0.0
    for h in range(len(policy)):
        following = dict.fromkeys(range(len(table)), 0.0)
        for s, there in mass.items():
            for a in range(len(table[s])):
                for p, t, r, end in table[s][a]:
                    weight = there * policy[h, s, a] * p
                    total_reward += weight * r
                    total_cost += weight * cost(s, a, t)
                    following[t] += 0.0 if end else weight
        mass = following
    return total_reward, total_cost


def rows_of(cmdp: cmdpax.CMDP) -> np.ndarray:
    """Dense transitions `[S, A, S]`."""
    lists, probabilities = (array[0] for array in cmdp.transitions)
    rows = np.zeros((*cmdp.rewards.shape[1:], cmdp.num_states))
    states, actions, _ = np.indices(lists.shape)
    np.add.at(rows, (states, actions, lists), probabilities)
    return rows


# ----------------------------------------------------------------------------- against the table


@pytest.mark.parametrize("name", TOY_TEXT)
def test_the_best_return_is_that_of_the_table(name: str) -> None:
    env, horizon = toy(name)
    cmdp = from_env(env, horizon)
    assert (cmdp.horizon, cmdp.num_constraints) == (horizon, 0)
    assert cmdp.num_states == env.observation_space.n
    assert cmdp.num_actions == env.action_space.n
    assert isinstance(cmdp.transitions, cmdpax.Successors)
    assert cmdpax.solve(cmdp).value == pytest.approx(best_return(env, horizon), abs=1e-9)


@pytest.mark.parametrize("name", TOY_TEXT)
def test_any_policy_earns_and_pays_what_the_table_says(name: str) -> None:
    env, horizon = toy(name)

    def cost(state: int, action: int, following: int) -> float:
        return ((3 * state + 5 * action + 7 * following) % 11) / 4 - 0.5

    cmdp = from_env(env, horizon, costs=cost, limits=1.0)
    policy = np.random.default_rng(0).dirichlet(
        np.ones(cmdp.num_actions), size=(horizon, cmdp.num_states)
    )
    reward, paid = expected_sums(env, policy, cost)
    evaluation = cmdpax.evaluate(cmdp, policy)
    assert evaluation.value == pytest.approx(reward, abs=1e-9)
    assert evaluation.constraint_values[0] == pytest.approx(paid, abs=1e-9)
    assert cmdp.bounds[0] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("lake", HOLES | {15}),
        ("large-lake", {19, 29, 35, 41, 42, 46, 49, 52, 54, 59, 63}),
        ("cliff", {47}),
        ("taxi", {0, 85, 410, 475}),  # at the destination of each passenger
    ],
)
def test_where_episodes_end_they_stay(name: str, ends: set[int]) -> None:
    env, horizon = toy(name)
    cmdp = from_env(env, horizon, costs=np.ones(env.observation_space.n), limits=3.0)
    rows = rows_of(cmdp)
    absorbing = {s for s in range(cmdp.num_states) if np.all(rows[s, :, s] == 1)}
    assert absorbing == ends
    resting = sorted(ends)
    assert not cmdp.rewards[0, resting].any()
    costs = 1 - cmdp.constraint_rewards[0, 0]
    assert not costs[resting].any()
    assert np.all(np.delete(costs, resting, axis=0) == 1)


def test_outcomes_with_the_same_next_state_are_merged() -> None:
    cmdp = from_env(make("FrozenLake-v1"), 5)
    lists, probabilities = (array[0] for array in cmdp.transitions)
    assert lists.shape == (16, 4, 3)
    # In the corner, left leads left, up (both against the wall) or down.
    slots = {(t, round(p, 12)) for t, p in zip(lists[0, 0], probabilities[0, 0], strict=True) if p}
    assert slots == {(0, round(2 / 3, 12)), (4, round(1 / 3, 12))}
    dry = from_env(make("FrozenLake-v1", is_slippery=False), 5)
    assert dry.transitions.successors.shape == (1, 16, 4, 1)


def test_the_environment_of_the_model_plays_like_the_original() -> None:
    original, copy = make("CliffWalking-v1"), make_env(from_env(make("CliffWalking-v1"), 14))
    assert original.reset()[0] == copy.reset()[0] == 36
    for action in (1, 0, *[1] * 11, 2):  # into the cliff, then along it to the goal
        state, reward, terminated, *_ = original.step(action)
        assert copy.step(action)[:2] == (state, reward)
    assert terminated
    assert state == 47


def test_taxi_is_quick() -> None:
    env = make("Taxi-v4")
    start = time.perf_counter()
    from_env(env, 200, costs=lambda s, a, t: a == 4, limits=1)
    assert time.perf_counter() - start < 2


# --------------------------------------------------------------- ends where others go on


def test_an_end_in_a_state_that_is_played_leads_to_one_more_state() -> None:
    """State 1 is entered by action 0, which goes on, and by action 1, which ends there."""
    env = table_of(
        [
            [[(1.0, 1, 1.0, False)], [(0.5, 1, 10.0, True), (0.5, 0, 0.0, False)]],
            [[(1.0, 0, 4.0, False)], [(1.0, 1, 3.0, True)]],
        ],
        [1.0, 0.0],
    )
    cmdp = from_env(env, 3, costs=[0.25, 1.0], limits=2)
    assert cmdp.num_states == 3
    np.testing.assert_array_equal(
        rows_of(cmdp),
        [[[0, 1, 0], [0.5, 0, 0.5]], [[1, 0, 0], [0, 0, 1]], [[0, 0, 1], [0, 0, 1]]],
    )
    assert cmdp.rewards[0].tolist() == [[1.0, 5.0], [4.0, 3.0], [0.0, 0.0]]
    assert (1 - cmdp.constraint_rewards[0, 0]).tolist() == [[0.25] * 2, [1.0] * 2, [0.0] * 2]
    assert cmdp.initial.tolist() == [1.0, 0.0, 0.0]
    unconstrained = cmdp.replace(constraint_rewards=[], thresholds=[])
    expected = best_return(SimpleNamespace(unwrapped=env), 3)
    assert cmdpax.solve(unconstrained).value == pytest.approx(expected, abs=1e-9)


def test_only_states_that_can_be_reached_count() -> None:
    """State 2 goes on to state 1, but no episode gets to state 2."""
    outcomes = [[[(1.0, 1, 1.0, True)]], [[(1.0, 2, 9.0, False)]], [[(1.0, 1, 9.0, False)]]]
    ended = from_env(table_of(outcomes, [1, 0, 0]), 4)
    assert rows_of(ended)[:, 0].tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 0]]
    assert cmdpax.solve(ended).value == pytest.approx(1.0)
    everywhere = from_env(table_of(outcomes), 4, initial=[0.5, 0, 0.5])
    assert everywhere.num_states == 4
    assert cmdpax.solve(everywhere).value == pytest.approx(0.5 * 1 + 0.5 * 36)


def test_outcomes_of_probability_zero_do_not_count() -> None:
    outcomes = [[[(1.0, 1, 1.0, True), (0.0, 1, 5.0, False)]], [[(1.0, 1, 7.0, False)]]]
    cmdp = from_env(table_of(outcomes, [1, 0]), 4)
    assert cmdp.num_states == 2
    assert cmdp.rewards[0].tolist() == [[1.0], [0.0]]


def test_a_start_in_a_hole_is_played() -> None:
    cmdp = from_env(make("FrozenLake-v1"), 4, initial=5, costs=np.eye(16)[5], limits=0)
    assert cmdp.num_states == 17
    evaluation = cmdpax.evaluate(cmdp, np.full((1, 17, 4), 0.25))
    assert evaluation.constraint_values[0] == pytest.approx(1.0)  # once, then over


def test_the_start_can_be_given() -> None:
    lake = make("FrozenLake-v1", is_slippery=False)
    assert cmdpax.solve(from_env(lake, 1)).value == 0
    assert cmdpax.solve(from_env(lake, 1, initial=14)).value == pytest.approx(1.0)
    uniform = (np.eye(16)[14] + np.eye(16)[8]) / 2
    assert cmdpax.solve(from_env(lake, 1, initial=uniform)).value == pytest.approx(0.5)
    assert from_env(lake, 1, initial=np.int64(14)).initial[14] == 1


# -------------------------------------------------------------------------------------------- costs


def test_every_kind_of_cost() -> None:
    lake = make("FrozenLake-v1")
    by_state = np.linspace(0, 1, 16)
    by_pair = by_state[:, None] * np.array([0.0, 0.5, 1.0, 4.0])
    cmdp = from_env(
        lake,
        7,
        costs=[by_state, by_pair, lambda s, a, t: t in HOLES, list(by_state)],
        limits=[1, 2, 0.5, 3.0],
    )
    assert cmdp.constraint_rewards.shape == (4, 1, 16, 4)
    highest = by_pair[14, 3]  # 15 is the goal, where nothing is paid
    ceilings = np.array([1.0, highest, 1.0, 1.0])
    costs = ceilings[:, None, None] - cmdp.constraint_rewards[:, 0]
    np.testing.assert_allclose(cmdp.thresholds, 7 * ceilings - [1, 2, 0.5, 3])
    np.testing.assert_array_equal(costs[3], costs[0])
    for state in range(16):
        resting = state in HOLES | {15}
        paid = 0.0 if resting else by_state[state]
        np.testing.assert_allclose(costs[0, state], paid, atol=1e-12)
        np.testing.assert_allclose(costs[1, state], paid * np.array([0, 0.5, 1, 4]), atol=1e-12)
        falls = [
            0.0 if resting else sum(p for p, t, *_ in lake.unwrapped.P[state][a] if t in HOLES)
            for a in range(4)
        ]
        np.testing.assert_allclose(costs[2, state], falls, atol=1e-12)


def test_a_cost_function_sees_the_next_state_of_the_environment() -> None:
    """Not the extra state, although the end leads there."""
    seen = []
    outcomes = [[[(0.5, 0, 0.0, True), (0.5, 0, 0.0, False)]]]
    cmdp = from_env(
        table_of(outcomes, [1]), 2, costs=lambda *triple: seen.append(triple) or 1, limits=2
    )
    assert cmdp.num_states == 2
    assert seen == [(0, 0, 0), (0, 0, 0)]


def test_a_budget_that_binds() -> None:
    lake, horizon = make("FrozenLake-v1"), 60
    free = cmdpax.solve(from_env(lake, horizon))

    def falls(state: int, action: int, following: int) -> bool:
        return following in HOLES

    solution = cmdpax.solve(from_env(lake, horizon, costs=falls, limits=0.1))
    reward, paid = expected_sums(lake, solution.policy, falls)
    assert paid == pytest.approx(0.1, abs=1e-9)
    assert reward == pytest.approx(solution.value, abs=1e-9)
    assert 0.1 < reward < free.value - 0.1
    assert solution.multipliers[0] > 0


def test_two_budgets() -> None:
    cliff, horizon = make("CliffWalking-v1", is_slippery=True), 40

    def falls(state: int, action: int, following: int) -> bool:
        return following == 36 and state != 36

    at_the_edge = np.repeat([0.0, 1.0, 0.0], [24, 12, 12])
    cmdp = from_env(cliff, horizon, costs=[falls, at_the_edge], limits=[0.3, 4.0])
    solution = cmdpax.solve(cmdp)
    _, fallen = expected_sums(cliff, solution.policy, falls)
    _, edge = expected_sums(cliff, solution.policy, lambda s, a, t: at_the_edge[s])
    assert fallen <= 0.3 + 1e-8
    assert edge <= 4.0 + 1e-8
    assert solution.value < cmdpax.solve(from_env(cliff, horizon)).value


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"costs": np.zeros(16)}, "costs came without limits"),
        ({"limits": 1.0}, "limits came without costs"),
        ({"costs": np.zeros(15), "limits": 1}, r"costs has shape \(15,\), expected \(S,\) = \(16,"),
        ({"costs": [np.zeros((4, 16))], "limits": 1}, r"costs\[0\] has shape \(4, 16\)"),
        ({"costs": np.zeros(16), "limits": [1, 2]}, "but the number of costs is 1; give one limit"),
        ({"costs": [np.zeros(16)] * 2, "limits": 1}, "but the number of costs is 2; give one"),
        ({"costs": np.zeros(16), "limits": np.nan}, "limits is nan; every limit"),
        ({"costs": np.zeros(16), "limits": "much"}, "limits is 'much', which cannot be read"),
        ({"costs": np.full(16, np.nan), "limits": 1}, r"costs at \[0\] is nan; every cost"),
        ({"costs": lambda s, a, t: np.inf, "limits": 1}, r"costs is inf for .* = \(0, 0, 0\)"),
        ({"costs": lambda s, a, t: None, "limits": 1}, "costs is None for"),
        ({"costs": [["a"] * 16], "limits": 1}, r"costs\[0\] is \['a', .*cannot be read"),
        ({"initial": 16}, "initial is 16, but states are 0 … 15"),
        ({"initial": 0.5}, "initial must be a state .* got 0.5"),
        ({"initial": [1.0, 0.0]}, r"initial is \[1.0, 0.0\], it must be"),
        ({"initial": "start"}, "initial is 'start', but the states have no names"),
        ({"initial": np.full(16, 0.5)}, "initial sums to 8, not to 1"),
        ({"horizon": 0}, "horizon is 0, it must be a whole number of at least 1"),
        ({"horizon": 2.5}, "horizon is 2.5, it must be a whole number"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((cmdpax.ParameterError, cmdpax.ModelError), match=message):
        from_env(make("FrozenLake-v1"), **({"horizon": 5} | arguments))


def test_an_environment_without_a_table() -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"Blackjack.* has no table P of transitions"):
        from_env(make("Blackjack-v1"), 5)
    with pytest.raises(cmdpax.ParameterError, match="has no initial_state_distrib; give initial"):
        from_env(table_of([[[(1.0, 0, 0.0, False)]]]), 5)


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ([[[(0.5, 0, 0, False)]]], r"probabilities of P\[0\]\[0\] sum to 0.5, not to 1"),
        ([[[(1.0, 0, 0, False)], []]], r"probabilities of P\[0\]\[1\] sum to 0, not to 1"),
        ([[[(1.0, 1, 0, False)]]], r"P\[0\]\[0\] lists the next state 1, it must be one of 0 … 0"),
        ([[[(1.0, 0.5, 0, False)]]], r"lists the next state 0.5"),
        ([[[(1.0, np.inf, 0, False)]]], "lists the next state inf"),
        ([[[(-1.0, 0, 0, False), (2.0, 0, 0, False)]]], "lists the probability -1, it must"),
        ([[[(np.nan, 0, 0, False)]]], "lists the probability nan"),
        ([[[(1.0, 0, np.inf, False)]]], "lists the reward inf, it must be a finite number"),
        ([[[(1.0, 0, 0)]]], r"P cannot be read; P\[s\]\[a\] must be a list"),
        ({1: {0: [(1.0, 0, 0, False)]}}, "P cannot be read"),
        ([[[(1.0, 0, 10**400, False)]]], "P cannot be read"),
        ([[[(1.0, 0, 0, False)]], []], "P has 0 or 1 actions; it needs a state"),
        ([], "P has no states"),
    ],
)
def test_wrong_tables(outcomes: Any, message: str) -> None:
    with pytest.raises(cmdpax.ModelError, match=message):
        from_env(table_of(outcomes), 3, initial=0)
