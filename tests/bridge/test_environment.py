import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec, make, make_vec, registry
from gymnasium.spaces import Discrete, MultiDiscrete
from gymnasium.utils.env_checker import check_env

import cmdpax
from cmdpax.gymnasium import CMDPEnv, make_env
from cmdpax.gymnasium.registration import register_environments

IDS = [f"cmdpax/{name}-v0" for name in cmdpax.environments.names()]


def changing_model(*, lists: bool, seed: int = 0) -> cmdpax.CMDP:
    """Two constraints, everything different at every step, and many probabilities 0."""
    rng = np.random.default_rng(seed)
    horizon, num_states, num_actions = 6, 5, 3
    rows = rng.dirichlet(np.full(num_states, 0.7), size=(horizon, num_states, num_actions))
    rows[rows < 0.1] = 0.0
    rows /= rows.sum(axis=-1, keepdims=True)
    order = rng.permuted(np.broadcast_to(np.arange(num_states), rows.shape), axis=-1)
    shuffled = cmdpax.Successors(order, np.take_along_axis(rows, order, axis=-1))
    return cmdpax.CMDP(
        transitions=shuffled if lists else rows,
        rewards=rng.random((horizon, num_states, num_actions)),
        constraint_rewards=rng.random((2, horizon, num_states, num_actions)),
        thresholds=[1.0, 2.0],
        initial=[0.0, 0.5, 0.2, 0.3, 0.0],
    )


def play(env: Any, seed: int | None, actions: Any = None) -> list[tuple[Any, ...]]:
    """An episode: (observation, action, reward, info) of every step."""
    observation, _ = env.reset(seed=seed)
    steps, done = [], False
    rng = np.random.default_rng(99)
    while not done:
        action = int(rng.integers(env.action_space.n)) if actions is None else actions(observation)
        following, reward, terminated, done, info = env.step(action)
        assert not terminated
        steps.append((observation, action, reward, info))
        observation = following
    return steps


def make_checked(cmdp: cmdpax.CMDP, **options: Any) -> CMDPEnv:
    """An environment with the specification that `check_env` wants."""
    env = make_env(cmdp, **options)
    env.spec = EnvSpec("own-v0", entry_point=lambda: make_env(cmdp, **options))
    return env


# ---------------------------------------------------------------------------- Gymnasium's own check


@pytest.mark.parametrize("options", [{}, {"observe_step": True, "observations": "bernoulli"}])
@pytest.mark.parametrize("identifier", IDS)
def test_every_registered_environment_passes_the_check(
    identifier: str, options: dict[str, Any]
) -> None:
    check_env(make(identifier, **options).unwrapped)  # warnings are errors


@pytest.mark.parametrize("observe_step", [False, True])
@pytest.mark.parametrize("lists", [False, True])
def test_own_models_pass_the_check(lists: bool, observe_step: bool) -> None:
    check_env(make_checked(changing_model(lists=lists), observe_step=observe_step))


def test_a_plain_model_passes_the_check() -> None:
    cmdp = changing_model(lists=False).replace(constraint_rewards=[], thresholds=[])
    env = make_checked(cmdp)
    check_env(env)
    assert env.reset()[1].keys() == {"costs", "constraint_rewards", "step"}
    assert env.step(0)[-1]["costs"].shape == env.limits.shape == (0,)


# ------------------------------------------------------------------------------------- the episode


def test_spaces() -> None:
    cmdp = changing_model(lists=True)
    assert make_env(cmdp).action_space == Discrete(3)
    assert make_env(cmdp).observation_space == Discrete(5)
    assert make_env(cmdp, observe_step=True).observation_space == MultiDiscrete([5, 7])


@pytest.mark.parametrize("lists", [False, True])
def test_what_a_step_returns_is_what_the_model_says(lists: bool) -> None:
    cmdp = changing_model(lists=lists)
    rows = changing_model(lists=False).transitions
    env = make_env(cmdp, observe_step=True)
    for seed in range(20):
        steps = play(env, seed)
        assert len(steps) == 6
        for h, ((state, step), action, reward, info) in enumerate(steps):
            assert (step, info["step"]) == (h, h + 1)
            assert reward == cmdp.rewards[h, state, action]
            u = cmdp.constraint_rewards[:, h, state, action]
            np.testing.assert_array_equal(info["constraint_rewards"], u)
            np.testing.assert_array_equal(info["costs"], 1 - u)
            if h:
                before, taken = steps[h - 1][0][0], steps[h - 1][1]
                assert rows[h - 1, before, taken, state] > 0


def test_the_horizon_truncates() -> None:
    env = make_env(changing_model(lists=False))
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(6)]
    assert ends == [(False, False)] * 5 + [(False, True)]


def test_one_constraint_has_a_cost_that_is_a_number() -> None:
    env = make_env(cmdpax.environments.make("bandit"))
    assert env.reset(seed=0)[1]["cost"] == 0.0
    assert "cost" not in make_env(changing_model(lists=False)).reset(seed=0)[1]
    info = env.step(2)[-1]
    assert type(info["cost"]) is float
    assert info["cost"] == info["costs"][0] == 1 - env.cmdp.constraint_rewards[0, 0, 0, 2]
    assert info["costs"].dtype == np.float64


def test_a_reset_earns_and_costs_nothing() -> None:
    state, info = make_env(changing_model(lists=False)).reset(seed=1)
    assert state in (1, 2, 3)
    assert info["step"] == 0
    assert info["costs"].tolist() == info["constraint_rewards"].tolist() == [0.0, 0.0]


def test_the_arrays_of_a_step_are_the_callers() -> None:
    env = make_env(cmdpax.environments.make("bandit"))
    env.reset()
    first = env.step(0)[-1]
    first["costs"] += 100
    first["constraint_rewards"] += 100
    env.reset()
    assert env.step(0)[-1]["constraint_rewards"] == env.cmdp.constraint_rewards[0, 0, 0, 0]


def test_costs_and_limits_of_rewards_outside_the_unit_interval() -> None:
    bandit = cmdpax.environments.make("bandit")
    cmdp = bandit.replace(
        constraint_rewards=[[[[-1.0, 4.0, 3.0]]], [[[0.5, 0.2, 0.1]]]], thresholds=[2.0, 0.3]
    )
    env = make_env(cmdp)
    costs = []
    for action in range(3):
        env.reset()
        costs.append(env.step(action)[-1]["costs"])
    np.testing.assert_allclose(np.transpose(costs), [[5.0, 0.0, 1.0], [0.5, 0.8, 0.9]])
    np.testing.assert_allclose(env.limits, [4.0 - 2.0, 1.0 - 0.3])


def test_costs_are_those_the_model_was_made_of() -> None:
    costs = np.array([[[[0.0, 7.0], [3.0, 1.0]]], [[[0.1, 0.9], [0.2, 0.4]]]])  # [I, 1, S, A]
    cmdp = cmdpax.from_costs(
        transitions=np.full((1, 2, 2, 2), 0.5),
        rewards=np.zeros((1, 2, 2)),
        costs=costs,
        limits=[11.0, 1.5],
        initial=[1.0, 0.0],
        horizon=4,
    )
    env = make_env(cmdp)
    np.testing.assert_allclose(env.limits, [11.0, 1.5])
    for state, action, _, info in play(env, 0):
        np.testing.assert_allclose(info["costs"], costs[:, 0, state, action])


# --------------------------------------------------------------------------------------- randomness


@pytest.mark.parametrize("identifier", IDS)
def test_the_same_seed_gives_the_same_episode(identifier: str) -> None:
    options = {"observations": "bernoulli"}
    first = play(make(identifier, **options), 5)
    again = play(make(identifier, **options), 5)
    np.testing.assert_equal(first, again)
    assert len(first) == cmdpax.environments.make(identifier[7:-3]).horizon


@pytest.mark.parametrize("lists", [False, True])
def test_another_seed_gives_another_episode(lists: bool) -> None:
    env = make_env(changing_model(lists=lists))
    episodes = [[step[0] for step in play(env, seed)] for seed in range(10)]
    assert len({tuple(states) for states in episodes}) > 5
    without = [[step[0] for step in play(env, None)] for _ in range(10)]
    assert len({tuple(states) for states in without}) > 5


@pytest.mark.parametrize("lists", [False, True])
def test_next_states_have_the_frequencies_of_their_row(lists: bool) -> None:
    rows = changing_model(lists=False).transitions
    env = make_env(changing_model(lists=lists))
    env.reset(seed=7)
    for state, action in np.ndindex(5, 3):
        row = rows[0, state, action]
        counts, trials = np.zeros(5), 2000
        for _ in range(trials):
            env.reset(options={"state": state})
            counts[env.step(action)[0]] += 1
        assert not counts[row == 0].any()
        used = row > 0
        deviation = np.sum((counts - trials * row)[used] ** 2 / (trials * row[used]))
        assert deviation < 30  # chi-square with 4 degrees of freedom: 5e-6


def test_initial_states_have_the_frequencies_of_the_initial_distribution() -> None:
    env = make_env(changing_model(lists=False))
    counts = np.bincount([env.reset(seed=seed)[0] for seed in range(2000)], minlength=5)
    assert counts[0] == counts[4] == 0
    np.testing.assert_allclose(counts / 2000, [0.0, 0.5, 0.2, 0.3, 0.0], atol=0.05)


def test_an_outcome_of_probability_zero_never_happens() -> None:
    """Neither at the ends of the unit interval nor where a row sums to a little less than 1."""
    row = np.array([0.0, 0.7, 0.0, 0.3 - 5e-9, 0.0])
    cmdp = cmdpax.CMDP([[[row]] * 5], np.zeros((1, 5, 1)), [], [], row, horizon=2)
    env = make_env(cmdp)
    for uniform, expected in [(0.0, 1), (0.7, 1), (0.70001, 3), (1 - 2**-53, 3)]:

        class Fixed:
            def random(self, uniform: float = uniform) -> float:
                return uniform

        env.np_random = Fixed()  # type: ignore[assignment]
        assert env.reset()[0] == expected
        assert env.step(0)[0] == expected


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("observations", ["mean", "bernoulli"])
def test_mean_returns_are_the_values_of_the_policy(lists: bool, observations: str) -> None:
    cmdp = changing_model(lists=lists)
    rng = np.random.default_rng(3)
    policy = rng.dirichlet(np.ones(3), size=(6, 5))
    env = make_env(cmdp, observe_step=True, observations=observations)
    env.reset(seed=11)
    sums = []
    for _ in range(3000):
        steps = play(env, None, lambda o: rng.choice(3, p=policy[o[1], o[0]]))
        signals = [[reward, *info["costs"]] for _, _, reward, info in steps]
        sums.append(np.sum(signals, axis=0))
    evaluation = cmdpax.evaluate(cmdp, policy)
    expected = [evaluation.value, *(6 - evaluation.constraint_values)]
    errors = np.std(sums, axis=0) / np.sqrt(len(sums))
    assert np.all(np.abs(np.mean(sums, axis=0) - expected) < 4 * errors)


def test_bernoulli_draws_are_zero_or_one_and_independent() -> None:
    means = np.broadcast_to([0.4, 0.6], (1, 5, 3, 2))
    cmdp = changing_model(lists=False).replace(
        rewards=np.full((1, 5, 3), 0.5), constraint_rewards=np.moveaxis(means, -1, 0)
    )
    env = make_env(cmdp, observations="bernoulli")
    steps = [step for seed in range(30) for step in play(env, seed)]
    drawn = {(reward, *info["constraint_rewards"]) for _, _, reward, info in steps}
    assert drawn == set(itertools.product([0.0, 1.0], repeat=3))
    for *_, info in steps:
        np.testing.assert_array_equal(info["costs"], 1 - info["constraint_rewards"])


# ----------------------------------------------------------------------------------- registered ids


def test_parameters_of_the_family_are_passed_on() -> None:
    env = make("cmdpax/queue-v0", capacity=10, observe_step=True)
    expected = cmdpax.environments.make("queue", capacity=10)
    assert env.unwrapped.cmdp.fingerprint == expected.fingerprint  # type: ignore[attr-defined]
    assert env.observation_space == MultiDiscrete([11, 21])
    with pytest.raises(cmdpax.ParameterError, match="no parameter 'capacty'"):
        make("cmdpax/queue-v0", capacty=10)


def test_registering_again_changes_nothing() -> None:
    before = {identifier: registry[identifier] for identifier in IDS}
    register_environments()
    assert all(registry[identifier] is spec for identifier, spec in before.items())


def test_a_specification_can_be_stored() -> None:
    stored = make("cmdpax/random-v0", seed=4, observations="bernoulli").spec.to_json()
    env = EnvSpec.from_json(stored).make()
    assert env.unwrapped.cmdp.fingerprint == (  # type: ignore[attr-defined]
        cmdpax.environments.make("random", seed=4).fingerprint
    )


def test_an_environment_can_be_pickled_in_an_episode() -> None:
    env = make_env(changing_model(lists=True))
    env.reset(seed=2)
    env.step(1)
    copy = pickle.loads(pickle.dumps(env))
    for _ in range(5):
        np.testing.assert_equal(env.step(0), copy.step(0))


@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.kills)])
def test_vectors_play_what_single_environments_play(mode: str) -> None:
    # JAX has threads, so the test process must not fork.
    kwargs = {"context": "spawn"} if mode == "async" else {}
    vector = make_vec(
        "cmdpax/queue-v0", num_envs=2, vectorization_mode=mode, vector_kwargs=kwargs, horizon=4
    )
    singles = [make("cmdpax/queue-v0", horizon=4) for _ in range(2)]
    try:
        states, _ = vector.reset(seed=20)
        assert [env.reset(seed=20 + i)[0] for i, env in enumerate(singles)] == states.tolist()
        for h in range(4):
            states, rewards, _, truncated, infos = vector.step(np.array([h, 15 - h]))
            for i, env in enumerate(singles):
                state, reward, _, end, info = env.step((h, 15 - h)[i])
                assert (states[i], rewards[i], truncated[i]) == (state, reward, end)
                np.testing.assert_array_equal(infos["costs"][i], info["costs"])
        assert truncated.all()
        *_, infos = vector.step(np.array([0, 0]))  # this one resets
        assert infos["step"].tolist() == [0, 0]
        assert not infos["costs"].any()
    finally:
        vector.close()


# ------------------------------------------------------------------------------------------- errors


def test_steps_out_of_turn() -> None:
    env = make_env(cmdpax.environments.make("bandit"))
    with pytest.raises(cmdpax.ParameterError, match="called before reset; call"):
        env.step(0)
    env.reset()
    env.step(0)
    with pytest.raises(cmdpax.ParameterError, match="ended with its step 1, the horizon; call"):
        env.step(0)
    env.reset()
    env.step(0)


@pytest.mark.parametrize("action", [-1, 3, 1.0, "0", None, np.array([0])])
def test_no_such_action(action: Any) -> None:
    env = make_env(cmdpax.environments.make("bandit"))
    env.reset()
    with pytest.raises(cmdpax.ParameterError, match=r"action is .* between 0 and 2"):
        env.step(action)
    assert env.step(np.int64(2))[3]  # a wrong action was no step


@pytest.mark.parametrize("state", [-1, 5, 0.5, None])
def test_no_such_state_to_start_in(state: Any) -> None:
    env = make_env(changing_model(lists=False))
    assert env.reset(options={"state": 4})[0] == 4
    with pytest.raises(cmdpax.ParameterError, match=r'options\["state"\] is .* between 0 and 4'):
        env.reset(options={"state": state})


def test_no_such_option() -> None:
    with pytest.raises(cmdpax.ParameterError, match="no option 'states'; did you mean 'state'"):
        make_env(changing_model(lists=False)).reset(options={"states": 1})


@pytest.mark.parametrize("name", ["rewards", "constraint_rewards"])
def test_bernoulli_draws_need_probabilities(name: str) -> None:
    cmdp = changing_model(lists=False)
    wrong = cmdp.replace(**{name: getattr(cmdp, name) * 3 - 1})
    make_env(wrong)
    with pytest.raises(cmdpax.ParameterError, match=f"the {name} as probabilities, but one"):
        make_env(wrong, observations="bernoulli")


def test_wrong_arguments() -> None:
    cmdp = changing_model(lists=False)
    with pytest.raises(cmdpax.ParameterError, match="observations is 'means'; did you mean"):
        make_env(cmdp, observations="means")
    with pytest.raises(cmdpax.ParameterError, match="observe_step is 1, it must be true or false"):
        make_env(cmdp, observe_step=1)  # type: ignore[arg-type]
    with pytest.raises(cmdpax.ModelError, match="initial sums to"):
        make_env(cmdp.replace(initial=cmdp.initial / 2))


def test_a_start_by_its_name_and_costs_as_they_were_given() -> None:
    env = make_env(cmdpax.environments.make("ring", scale_rewards=False))
    observation, _ = env.reset(seed=0, options={"state": "place 2"})
    assert observation == 2
    _, reward, _, _, info = env.step(1)
    assert (reward, info["cost"]) == (3.0, 1.0)
    assert env.limits.tolist() == [3.0]
    with pytest.raises(cmdpax.ParameterError, match="there is no state 'place 7'"):
        env.reset(options={"state": "place 7"})
