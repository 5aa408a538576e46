"""`enumerate_env`: what is found by trying is what there is."""

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete, MultiDiscrete
from gymnasium.wrappers import TimeLimit

import cmdpax
from cmdpax.gymnasium import enumerate_env, from_env, make_env, play
from enumeration_cases import Counter, Table, random_table, shown

RNG = np.random.default_rng(5)


# ------------------------------------------------------------------------------ against the table


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("show", [int, shown])
def test_the_model_is_that_of_the_table(seed: int, show: Any) -> None:
    """Also where episodes end in states from which others go on, and where states are not met."""
    env = random_table(seed, show)
    found = enumerate_env(env, 6, costs="toll.paid", limits=4.0)
    known = from_env(env, 6, costs=np.arange(7.0), limits=4.0)
    assert cmdpax.slater_gap(found.cmdp).gap == pytest.approx(cmdpax.slater_gap(known).gap)
    solutions = [cmdpax.solve(cmdp) for cmdp in (found.cmdp, known)]
    assert solutions[0].value == pytest.approx(solutions[1].value, abs=1e-9)
    played = play(env, solutions[0].policy, 400, seed=0, **found.arguments)
    assert abs(played.value.mean - solutions[0].value) < 4 * played.value.half + 1e-9
    paid = played.constraint_values[0]
    assert abs(paid.mean - solutions[0].constraint_values[0]) < 4 * paid.half + 1e-9


@pytest.mark.parametrize(
    ("name", "options"),
    [("FrozenLake-v1", {"is_slippery": False}), ("CliffWalking-v1", {}), ("Taxi-v4", {})],
)
def test_toy_text_is_found_as_its_table_says(name: str, options: Any) -> None:
    """To the last bit, in all states that episodes can be in."""
    env = gymnasium.make(name, **options)

    def cost(s: int, a: int, t: int) -> float:
        return float((s + 2 * a + 3 * t) % 5 == 0)

    found = enumerate_env(env, 15, costs=cost, limits=2.0, resets=1)
    first = found.encoder(env.reset(seed=0)[0])
    known = from_env(env, 15, costs=cost, limits=2.0, initial=first)
    assert found.cmdp.sizes == known.sizes
    assert found.states == tuple(range(known.num_states))
    long = known.replace(horizon=100)
    uniform = np.full((1, *known.rewards.shape[1:]), 1 / known.num_actions)
    alive = cmdpax.evaluate(long, uniform).occupancy.sum(axis=(0, 2)) > 0
    assert alive.sum() > 15
    for ours, theirs in zip(found.cmdp.transitions, known.transitions, strict=True):
        np.testing.assert_array_equal(ours[0, alive], theirs[0, alive])
    np.testing.assert_array_equal(found.cmdp.initial, known.initial)
    np.testing.assert_array_equal(found.cmdp.rewards[0, alive], known.rewards[0, alive])
    np.testing.assert_array_equal(found.cmdp.signals[0, 0, alive], known.signals[0, 0, alive])


def test_states_that_are_not_met_rest_where_states_have_numbers() -> None:
    env = Table([[1], [0], [0]], [[1.0], [2.0], [50.0]], [[0], [0], [0]])
    found = enumerate_env(env, 3)
    assert found.cmdp.num_states == 3
    assert found.cmdp.rewards[0].tolist() == [[1.0], [2.0], [0.0]]
    assert found.cmdp.transitions.successors[0, 2].tolist() == [[2]]
    more = enumerate_env(env, 3, states=[2])
    assert more.cmdp.rewards[0].tolist() == [[1.0], [2.0], [50.0]]
    assert more.cmdp.initial.tolist() == [1.0, 0.0, 0.0]


def test_an_end_where_others_go_on_has_a_state_of_its_own() -> None:
    env = Table([[1, 1], [0, 1]], [[1, 5], [2, 3]], [[0, 1], [0, 0]], shown)
    found = enumerate_env(env, 4, state_names=lambda o: f"place {abs(o[1]):.0f}")
    assert found.cmdp.words.state_names == ("place 0", "place 1", "ended")
    assert [state.tolist() for state in found.states] == [[0.0, 0.0], [0.5, -1.0]]
    assert found.encoder.num_states == 2
    assert cmdpax.solve(found.cmdp).value == pytest.approx(1 + 3 + 2 + 5)


# -------------------------------------------------------------------------------- random outcomes


MODEL = cmdpax.from_arrays(
    RNG.dirichlet(np.ones(4), (3, 4)), RNG.uniform(size=(4, 3)), horizon=500,
    initial=[0.5, 0.5, 0, 0],
    costs=RNG.uniform(size=(4, 3)), limits=250.0,
)  # fmt: skip


def test_frequencies_and_means_are_those_of_many_tries() -> None:
    env, count = make_env(MODEL), 600
    found = enumerate_env(env, 500, limits=250.0, samples=count, resets=2000)
    assert found.cmdp.sizes == MODEL.sizes
    truth = MODEL.transitions[0]
    estimated = np.zeros_like(truth)
    lists = found.cmdp.transitions
    places = (*np.indices(lists.successors[0].shape)[:2], lists.successors[0])
    np.add.at(estimated, places, lists.probabilities[0])
    spread = np.sqrt(truth * (1 - truth) / count)
    assert (abs(estimated - truth) < 5 * spread).all()
    assert abs(estimated - truth).max() > 1e-3  # they are estimates
    np.testing.assert_allclose(found.cmdp.rewards, MODEL.rewards, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.cmdp.signals, MODEL.signals, rtol=0, atol=1e-12)
    assert found.cmdp.initial[:2] == pytest.approx([0.5, 0.5], abs=0.06)
    again = enumerate_env(env, 500, limits=250.0, samples=count, resets=2000)
    assert again.cmdp.fingerprint == found.cmdp.fingerprint
    other = enumerate_env(env, 500, limits=250.0, samples=count, resets=2000, seed=1)
    assert other.cmdp.fingerprint != found.cmdp.fingerprint


def test_rewards_that_are_random_are_means() -> None:
    env = make_env(MODEL, observations="bernoulli")
    found = enumerate_env(env, 500, limits=250.0, samples=400, resets=50)
    spread = np.sqrt(MODEL.rewards * (1 - MODEL.rewards) / 400)
    assert (abs(found.cmdp.rewards - MODEL.rewards) < 5 * spread + 1e-9).all()


class Hidden(gymnasium.Env[Any, Any]):
    """A card that nobody sees decides: the first draw of an episode is 0 or 1, and pays at the end.

    With cards that are kept as they were met, one of them would be taken for granted.
    """

    observation_space, action_space = MultiDiscrete([2, 2]), Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.card, self.place = int(self.np_random.integers(2)), 0
        return np.array([0, 0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place += 1
        over = self.place == 2
        return np.array([1, action]), float(over and action == self.card), over, False, {}


def test_what_is_hidden_is_averaged_over_the_places_where_a_state_was_met() -> None:
    found = enumerate_env(Hidden(), 2, samples=200, resets=400)
    assert 0.4 < cmdpax.solve(found.cmdp).value < 0.8  # in truth 0.5, by a known card 1
    for seed in range(6):
        with pytest.raises(
            cmdpax.ParameterError, match="not the whole state, or a copy of the env"
        ):
            enumerate_env(Hidden(), 2, resets=5, seed=seed)


# ------------------------------------------------------------------------- what samples=1 finds out


@pytest.mark.parametrize(
    ("kept", "means"), [("state", "env.unwrapped.state"), ("s", "env.unwrapped.s"), ("", "a copy")]
)
def test_hidden_states_are_found_out(kept: str, means: str) -> None:
    sentence = (
        rf"action 0 in the state 0 led to 0 with the reward 1 at first, and to 0 with the reward "
        rf"\d+ when it was tried again; .*samples=100; if it is not, .* or {means}.* not restore it"
    )
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        enumerate_env(Counter(kept), 5, seed=None)


def test_random_environments_are_found_out() -> None:
    with pytest.raises(cmdpax.ParameterError, match="the environment is random, give samples="):
        enumerate_env(gymnasium.make("FrozenLake-v1"), 5)
    noisy = Table([[0]], [[0.0]], [[0]])
    noisy.step = lambda action: (  # type: ignore[method-assign]
        0, 0.0, False, False, {"cost": noisy.np_random.random()}
    )  # fmt: skip
    with pytest.raises(
        cmdpax.ParameterError, match=r"with the reward 0 and the cost \[0\.\d+\] at"
    ):
        enumerate_env(noisy, 5, limits=1.0)


def test_random_first_states_are_found_out() -> None:
    taxi = gymnasium.make("Taxi-v4")
    with pytest.raises(
        cmdpax.ParameterError, match=r"10 episodes began in \d+ different states; gi"
    ):
        enumerate_env(taxi, 5)
    found = enumerate_env(taxi, 5, resets=400)
    assert np.count_nonzero(found.cmdp.initial) > 200
    assert found.cmdp.initial.sum() == pytest.approx(1.0)


def test_too_many_states_and_a_limit_on_time() -> None:
    class Line(Counter):
        def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            self.place += 1
            return [self.place, "x"], 1.0, False, self.place >= 5, {}

    with pytest.raises(
        cmdpax.ParameterError, match=r"more than 20 states .* \[20, 'x'\]; give max_"
    ):
        enumerate_env(Line(), 5, seed=None, max_states=20)
    near = enumerate_env(Line(), 5, seed=None, encoder=lambda o: min(3, o[0] if o else 0))
    assert near.cmdp.num_states == 4
    limited = TimeLimit(Table([[0, 0]], [[1, 0]], [[0, 0]]), 4)
    with pytest.warns(cmdpax.CmdpaxWarning, match="cuts every episode after 4 steps, but the hori"):
        assert cmdpax.solve(enumerate_env(limited, 9).cmdp).value == 9.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enumerate_env(limited, 4)
