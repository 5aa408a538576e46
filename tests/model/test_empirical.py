import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
from cmdpax.model.empirical import estimate

STATES = [[0, 1, 2, 0], [0, 1, 1, 2], [1, 0, 0, 0], [0, 1, -9, -9]]  # K = 4, H = 3
ACTIONS = [[0, 1, 0], [0, 1, 1], [1, 1, 0], [0, -1, -1]]  # the last one ended after a step
REWARDS = [[1.0, 0.5, 0.25], [0.0, 1.0, 0.5], [0.75, 0.0, 1.0], [0.25, np.nan, np.inf]]
CONSTRAINTS = [[[0, 1, 1]], [[1, 0, 0]], [[1, 1, 1]], [[1, np.nan, 5]]]


def small_log(**changes: Any) -> cmdpax.Log:
    arrays = {
        "states": np.array(STATES),
        "actions": np.array(ACTIONS),
        "rewards": np.array(REWARDS),
        "constraint_rewards": np.array(CONSTRAINTS),
    }
    return cmdpax.Log(**(arrays | changes))


def by_loop(
    log: cmdpax.Log, sizes: tuple[int, int], *, stationary: bool, absorbing: bool, costs: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transitions, signals `[1+I, H, S, A]` and initial frequencies, step by step."""
    horizon, (num_states, num_actions) = log.actions.shape[-1], sizes
    tables, num_constraints = 1 if stationary else horizon, log.constraint_rewards.shape[-2]
    seen: dict[tuple[int, ...], list[tuple[int, np.ndarray]]] = {}
    starts = np.zeros(num_states)
    for episode in np.ndindex(log.actions.shape[:-1]):
        for h in range(horizon):
            state, following = log.states[episode][h : h + 2]
            action = log.actions[episode][h]
            if action < 0:
                break
            starts[state] += h == 0
            observed = [log.rewards[episode][h], *log.constraint_rewards[episode][:, h]]
            place = (0 if stationary else h, int(state), int(action))
            seen.setdefault(place, []).append((int(following), np.array(observed)))
    everything = np.array([signals for visits in seen.values() for _, signals in visits])
    worst = np.minimum(everything.min(axis=0), 0)
    if costs:
        worst[1:] = np.maximum(everything.max(axis=0), 0)[1:]
    transitions = np.zeros((tables, num_states, num_actions, num_states))
    signals = np.zeros((1 + num_constraints, tables, num_states, num_actions))
    for place in np.ndindex(tables, num_states, num_actions):
        visits = seen.get(place, [])
        led = [following for following, _ in visits if following != -1]
        for following in led:
            transitions[(*place, following)] += 1 / len(led)
        for _, observed in visits:
            signals[(slice(None), *place)] += observed / len(visits)
        if not visits:
            signals[(slice(None), *place)] = worst
        if not led:
            transitions[place] = np.eye(num_states)[place[1]] if absorbing else 1 / num_states
    return transitions, signals, starts / starts.sum()


# ------------------------------------------------------------------------------------------ counts


def test_frequencies_and_means_of_a_log_written_by_hand() -> None:
    cmdp = estimate(small_log(), thresholds=1.5)
    assert repr(cmdp) == "CMDP(S=3, A=2, H=3, I=1, dense)"
    assert cmdp.initial.tolist() == [0.75, 0.25, 0.0]
    assert cmdp.thresholds.tolist() == [1.5]
    assert cmdp.transitions[0, 0].tolist() == [[0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]
    assert cmdp.transitions[1, 1].tolist() == [[1 / 3, 1 / 3, 1 / 3], [0.0, 0.5, 0.5]]
    assert cmdp.rewards[0].tolist() == [[1.25 / 3, 0.0], [0.0, 0.75], [0.0, 0.0]]
    assert cmdp.rewards[1].tolist() == [[0.0, 0.0], [0.0, 0.75], [0.0, 0.0]]
    assert cmdp.constraint_rewards[0, 0].tolist() == [[2 / 3, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert cmdp.constraint_rewards[0, 2].tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]


def test_shared_counts_of_a_log_written_by_hand() -> None:
    cmdp = estimate(small_log(), thresholds=1.5, stationary=True)
    assert repr(cmdp) == "CMDP(S=3, A=2, H=3, I=1, dense)"
    assert cmdp.transitions.shape == (1, 3, 2, 3)
    assert cmdp.transitions[0, 0].tolist() == [[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]]
    assert cmdp.transitions[0, 1, 1].tolist() == [0.25, 0.25, 0.5]
    assert cmdp.rewards[0].tolist() == [[2.25 / 4, 0.0], [0.0, 2.75 / 4], [0.25, 0.0]]


@st.composite
def logs(draw: st.DrawFn) -> cmdpax.Log:
    """Random logs of several shapes; after a cut they hold nonsense."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lead = draw(st.sampled_from([(1,), (6,), (2, 3)]))
    horizon, num_constraints = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    states = generator.integers(0, 3, (*lead, horizon + 1))
    actions = generator.integers(0, 2, (*lead, horizon))
    rewards = generator.integers(draw(st.sampled_from([-2, 0])), 4, (*lead, horizon)) / 2
    constraint_rewards = generator.random((*lead, num_constraints, horizon))
    length = generator.integers(0, horizon + 1, lead)
    length.flat[0] = horizon
    cut = np.arange(horizon) >= length[..., None]
    actions[cut], rewards[cut] = -1, np.nan
    states[..., 1:][cut] = 99
    last = np.arange(horizon + 1) == length[..., None]
    states[last & (generator.random(lead) < draw(st.sampled_from([0, 0.5])))[..., None]] = -1
    states[..., 0][length == 0] = -5
    np.moveaxis(constraint_rewards, -2, 0)[:, cut] = -np.inf
    return cmdpax.Log(states, actions, rewards, constraint_rewards)


@given(
    log=logs(),
    stationary=st.booleans(),
    kind=st.sampled_from(
        [("uniform", "dense"), ("absorbing", "dense"), ("absorbing", "successors")]
    ),
    costs=st.booleans(),
)
def test_the_estimate_is_that_of_a_loop(
    log: cmdpax.Log, stationary: bool, kind: tuple[str, str], costs: bool
) -> None:
    (unvisited, storage), num_constraints = kind, log.constraint_rewards.shape[-2]
    bounds = np.arange(num_constraints) / 2
    cmdp = estimate(
        log,
        num_states=4,
        num_actions=3,
        stationary=stationary,
        unvisited=unvisited,
        storage=storage,
        **{"limits" if costs else "thresholds": bounds},
    )
    transitions, signals, initial = by_loop(
        log, (4, 3), stationary=stationary, absorbing=unvisited == "absorbing", costs=costs
    )
    arguments = (transitions, signals[0], signals[1:], bounds, initial, log.actions.shape[-1])
    expected = cmdpax.from_costs(*arguments) if costs else cmdpax.CMDP(*arguments)
    assert isinstance(cmdp.transitions, cmdpax.Successors) == (storage == "successors")
    assert cmdp.sizes == expected.sizes
    assert cmdp.rewards.shape == expected.rewards.shape
    found, wanted = reference.densify(cmdp)._asdict(), reference.densify(expected)._asdict()
    for name, array in found.items():
        np.testing.assert_allclose(array, wanted[name], rtol=0, atol=1e-13, err_msg=name)


def test_lists_have_a_slot_for_each_state_that_was_seen_to_follow() -> None:
    cmdp = estimate(
        small_log(), thresholds=1.5, unvisited="absorbing", storage="successors", stationary=True
    )
    lists, chances = cmdp.transitions
    assert lists.shape == (1, 3, 2, 3)
    assert np.count_nonzero(chances, axis=-1).tolist() == [[[2, 1], [1, 3], [1, 1]]]


@pytest.mark.parametrize("stationary", [False, True])
def test_both_storages_have_the_same_values_and_optimum(stationary: bool) -> None:
    dense, listed = (
        estimate(
            small_log(), limits=2.5, unvisited="absorbing", storage=storage, stationary=stationary
        )
        for storage in ("dense", "successors")
    )
    policy = np.random.default_rng(0).dirichlet(np.ones(2), (3, 3))
    first, second = cmdpax.evaluate(dense, policy), cmdpax.evaluate(listed, policy)
    assert first.value == pytest.approx(second.value, abs=1e-12)
    np.testing.assert_allclose(first.constraint_values, second.constraint_values, atol=1e-12)
    assert cmdpax.solve(dense).value == pytest.approx(cmdpax.solve(listed).value, abs=1e-10)


def test_runs_are_pooled() -> None:
    log = small_log()
    runs = cmdpax.Log(*(array.reshape(2, 2, *array.shape[1:]) for array in log))
    assert estimate(runs, thresholds=1).fingerprint == estimate(log, thresholds=1).fingerprint
    one = estimate(runs.run(0), thresholds=1)
    assert one.fingerprint != estimate(log, thresholds=1).fingerprint
    assert one.initial.tolist() == [1.0, 0.0, 0.0]


def test_an_episode_without_a_step_is_not_counted() -> None:
    states, actions = np.array([[0, 1], [1, 1]]), np.array([[0], [-1]])
    cmdp = estimate(cmdpax.Log(states, actions, np.ones((2, 1)), np.zeros((2, 0, 1))))
    assert cmdp.initial.tolist() == [1.0, 0.0]


def test_anything_with_the_four_arrays_is_a_log_lists_too() -> None:
    log = small_log()
    plain = SimpleNamespace(**{name: array.tolist() for name, array in log._asdict().items()})
    assert estimate(plain, thresholds=1).fingerprint == estimate(log, thresholds=1).fingerprint


@pytest.mark.parametrize("empty", [[], np.zeros((4, 0, 3))])
def test_a_log_without_constraints(empty: Any) -> None:
    cmdp = estimate(small_log(constraint_rewards=empty))
    assert repr(cmdp) == "CMDP(S=3, A=2, H=3, I=0, dense)"
    assert cmdp.rewards[0].tolist() == [[1.25 / 3, 0.0], [0.0, 0.75], [0.0, 0.0]]
    assert estimate(small_log(constraint_rewards=empty), thresholds=[]).thresholds.shape == (0,)


# ----------------------------------------------------------------------------------------- choices


def test_the_largest_indices_count_only_where_they_were_reached() -> None:
    log = small_log(states=np.where(np.array(STATES) < 0, 77, STATES))
    assert estimate(log, thresholds=1).num_states == 3
    last = np.array(STATES)
    last[1, 3] = 6  # the last state of an episode counts
    assert estimate(small_log(states=last), thresholds=1).num_states == 7
    last[3, 1] = 8  # that of an episode cut short too
    assert estimate(small_log(states=last), thresholds=1).num_states == 9
    wider = estimate(small_log(), thresholds=1, num_states=5, num_actions=4)
    assert wider.sizes == cmdpax.Sizes(1, 3, 5, 4)
    assert wider.transitions[0, 4, 3].tolist() == [0.2] * 5


def test_a_given_start() -> None:
    assert estimate(small_log(), thresholds=1, initial=2).initial.tolist() == [0, 0, 1]
    given_start = [0.25, 0.5, 0.25]
    assert estimate(small_log(), thresholds=1, initial=given_start).initial.tolist() == given_start


def test_pairs_without_a_visit_are_the_worst_that_was_seen() -> None:
    absorbing = estimate(small_log(), thresholds=1, unvisited="absorbing")
    assert absorbing.transitions[0, 2, 1].tolist() == [0.0, 0.0, 1.0]
    assert absorbing.rewards[0, 2, 1] == 0.0
    assert absorbing.constraint_rewards[0, 0, 2, 1] == 0.0
    negative = estimate(small_log(rewards=np.array(REWARDS) - 1), thresholds=1)
    assert negative.rewards[0, 2, 1] == -1.0  # not 0, which would be the best place to be
    log = small_log(constraint_rewards=3.0 * np.array(CONSTRAINTS))
    cost = 3.0 - estimate(log, limits=4.0).constraint_rewards  # u = 3 - cost: 3 is the largest
    assert cost[0, 0].tolist() == [[2.0, 3.0], [3.0, 3.0], [3.0, 3.0]]


def test_costs_have_limits() -> None:
    log = small_log()
    expected = estimate(log, thresholds=1)
    cmdp = estimate(log, limits=1.25)
    assert cmdp.thresholds.tolist() == [3 - 1.25]
    visited = expected.rewards + expected.constraint_rewards[0] > 0
    np.testing.assert_allclose(
        cmdp.constraint_rewards[0][visited], 1 - expected.constraint_rewards[0][visited]
    )


def test_a_state_where_episodes_end_is_logged_to_the_last_step() -> None:
    states = np.array([[0, 1, 1, 1], [0, 0, 1, 1]])
    actions = np.array([[1, 0, 0], [0, 1, 0]])
    costs = np.array([[[0.5, 0.0, 0.0]], [[0.25, 0.5, 0.0]]])
    log = cmdpax.Log(states, actions, np.array([[1.0, 0, 0], [0, 1.0, 0]]), costs)
    cmdp = estimate(log, limits=0.5, stationary=True, unvisited="absorbing")
    solution = cmdpax.solve(cmdp)
    assert solution.value == pytest.approx(1.0)  # act at once, then stay in state 1 for free
    assert solution.constraint_values[0] == pytest.approx(0.5)


# ------------------------------------------------------------------------------------- consistency


@pytest.fixture(scope="module")
def learned() -> tuple[cmdpax.CMDP, cmdpax.Log]:
    cmdp = cmdpax.environments.make("random", num_states=3, num_actions=2, horizon=3)
    options = {"observations": "bernoulli", "max_multiplier": 8.0, "log": True, "seeds": 2}
    history = cmdpax.learn(cmdp, "regularized-primal-dual", num_episodes=3000, **options)
    assert history.log is not None
    return cmdp, history.log


@pytest.mark.whole
def test_estimates_come_near_the_truth(learned: tuple[cmdpax.CMDP, cmdpax.Log]) -> None:
    cmdp, log = learned
    found = estimate(log, thresholds=cmdp.thresholds)
    assert found.sizes == cmdp.sizes
    _, horizon, num_states, num_actions = cmdp.sizes
    for h, s, a in np.ndindex(horizon, num_states, num_actions):
        visits = np.count_nonzero((log.states[..., h] == s) & (log.actions[..., h] == a))
        near = 2 / np.sqrt(max(visits, 1))  # Hoeffding: each entry is further off with 7e-4
        np.testing.assert_allclose(found.transitions[h, s, a], cmdp.transitions[h, s, a], atol=near)
        assert found.rewards[h, s, a] == pytest.approx(cmdp.rewards[h, s, a], abs=near)
        assert found.constraint_rewards[0, h, s, a] == pytest.approx(
            cmdp.constraint_rewards[0, h, s, a], abs=near
        )
    np.testing.assert_allclose(found.initial, cmdp.initial, atol=2 / np.sqrt(6000))


def test_the_optimum_of_the_estimate_is_near_the_true_one(
    learned: tuple[cmdpax.CMDP, cmdpax.Log],
) -> None:
    cmdp, log = learned
    solution = cmdpax.solve(estimate(log, thresholds=cmdp.thresholds, unvisited="absorbing"))
    optimum = cmdpax.solve(cmdp).value
    assert solution.value == pytest.approx(optimum, abs=0.05)
    truly = cmdpax.evaluate(cmdp, solution.policy)
    assert truly.value == pytest.approx(optimum, abs=0.05)
    assert truly.constraint_values[0] >= cmdp.thresholds[0] - 0.05


# ------------------------------------------------------------------------------------------ errors


def put(name: str, place: tuple[int, ...], value: float) -> dict[str, np.ndarray]:
    array = np.array(getattr(small_log(), name))
    array[place] = value
    return {name: array}


MODEL_ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"states": np.zeros((4, 3), int)}, "states has shape (4, 3), expected (4, 4), since its act"),
    ({"rewards": np.zeros((3, 3))}, "the log's rewards has shape (3, 3), expected (4, 3), since"),
    ({"constraint_rewards": np.zeros((4, 3, 2))}, "has shape (4, 3, 2), expected (4, 3, 3)"),
    ({"constraint_rewards": np.zeros(3)}, "constraint_rewards has shape (3,), expected (4, 0, 3)"),
    ({"actions": np.array([0, 1])}, "actions has shape (2,), expected (K, H), or (R, K, H) of se"),
    ({"actions": np.array(1)}, "actions has shape (), expected (K, H)"),
    ({"actions": np.zeros((0, 3), int)}, "actions has shape (0, 3), expected (K, H)"),
    ({"actions": np.zeros((4, 0), int)}, "actions has shape (4, 0), expected (K, H)"),
    ({"actions": np.full((4, 3), -1)}, "the log has no step: every action is -1."),
    ({"actions": [[0, 1], [0]]}, "actions cannot be read as an array of real numbers: setting"),
    ({"states": np.zeros((4, 4))}, "states must be integers, got float64; use astype(int)."),
    ({"actions": np.ones((4, 3), bool)}, "actions must be integers, got bool; use astype(int)."),
    (put("states", (2, 2), -1), "states[2, 2] is -1, but states are 0 … 2; correct it, or num_st"),
    (put("actions", (1, 2), -2), "actions[1, 2] is -2, but actions are 0 … 1, or -1 where there"),
    (put("actions", (1, 1), -1), "actions[1, 1] is -1, but the episode goes on after it; -1 stan"),
    (put("rewards", (2, 1), np.nan), "the log's rewards[2, 1] is nan; every observation must be"),
    (put("constraint_rewards", (2, 0, 1), np.inf), "constraint_rewards[2, 0, 1] is inf; every ob"),
    ({"constraint_rewards": []}, "thresholds has shape (1,), expected (I,) = (0,)"),
]


@pytest.mark.parametrize(("changes", "message"), MODEL_ERRORS)
def test_arrays_that_are_no_log(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(cmdpax.ModelError, match=re.escape(message)) as raised:
        estimate(small_log(**changes), thresholds=1.0)
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)


OPTION_ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"num_states": 2}, "the log's states[0, 2] is 2, but states are 0 … 1; correct it, or num_s"),
    ({"num_actions": 1}, "the log's actions[0, 1] is 1, but actions are 0 … 0, or -1 where there"),
    ({"thresholds": [1.0, 2.0]}, "thresholds has shape (2,), expected (I,) = (1,): one number for"),
    ({"thresholds": None, "limits": []}, "limits has shape (0,), expected (I,) = (1,)"),
    ({"thresholds": np.inf}, "thresholds[0] is inf; every entry must be a finite number."),
    ({"initial": [0.5, 0.5]}, "initial has shape (2,), expected (S,) = (3,)."),
]


@pytest.mark.parametrize(("options", "message"), OPTION_ERRORS)
def test_options_that_do_not_fit_the_log(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cmdpax.ModelError, match=re.escape(message)):
        estimate(small_log(), **({"thresholds": 1.0} | options))


def test_errors_in_one_of_several_runs_name_the_run() -> None:
    log = small_log(**put("rewards", (2, 1), np.nan))
    runs = cmdpax.Log(*(array.reshape(2, 2, *array.shape[1:]) for array in log))
    with pytest.raises(cmdpax.ModelError, match=r"the log's rewards\[1, 0, 1\] is nan"):
        estimate(runs, thresholds=1.0)


PARAMETER_ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"limits": 1.0}, "thresholds and limits (at most) are both given; give thresholds"),
    ({"thresholds": None}, "the log has constraint rewards (I = 1): give thresholds (at least), "),
    ({"num_states": 0}, "num_states must be a whole number, at least 1, got 0."),
    ({"num_actions": 2.0}, "num_actions must be a whole number, at least 1, got 2.0."),
    ({"initial": 3}, "initial is 3, but states are 0 … 2."),
    (
        {"unvisited": "absorbed"},
        "unvisited is 'absorbed'; did you mean 'absorbing'? known: absorbing, uniform.",
    ),
    ({"storage": "sparse"}, "storage is 'sparse'; known: dense, successors."),
    (
        {"storage": "successors"},
        'storage="successors" cannot hold unvisited="uniform", whose rows have all states; choose '
        'unvisited="absorbing" or storage="dense".',
    ),
]


@pytest.mark.parametrize(("options", "message"), PARAMETER_ERRORS)
def test_arguments_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=re.escape(message)) as raised:
        estimate(small_log(), **({"thresholds": 1.0} | options))
    assert str(raised.value).endswith(".")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "the log is a NoneType without states; give a cmdpax.Log, which cmdpax.load_log"),
        ("log.csv", "the log is a str without states; give a cmdpax.Log, which cmdpax.load_log"),
        (SimpleNamespace(states=1, actions=1), "a SimpleNamespace without rewards; give"),
    ],
)
def test_what_is_no_log(wrong: Any, message: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=re.escape(message)):
        estimate(wrong)
