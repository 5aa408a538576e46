"""What cannot be declared: refused in one sentence that names the argument."""

from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.learners import as_algorithm
from live_cases import ALGORITHM, LISTS, LISTS_BY_STEP, assert_sentence, known, make, play

STATIONARY = {"rewards": np.zeros((1, 3, 2)), "constraint_rewards": np.zeros((2, 1, 3, 2))}
REFUSED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    # Sizes.
    "no states": ({"num_states": 0}, ("num_states is 0", "at least 1")),
    "half states": ({"num_states": 2.5}, ("num_states is 2.5",)),
    "negative actions": ({"num_actions": -2}, ("num_actions is -2",)),
    "a truth": ({"num_actions": True}, ("num_actions is True",)),
    "no steps": ({"horizon": 0}, ("horizon is 0",)),
    "steps as a text": ({"horizon": "3"}, ("horizon is '3'",)),
    "endless steps": ({"horizon": 2**31}, ("horizon is 2147483648", "below 2^31")),
    # Thresholds and the start.
    "no threshold": ({"thresholds": [1.0, np.nan]}, ("thresholds[1] is nan",)),
    "an infinite threshold": ({"thresholds": [np.inf, 1.0]}, ("thresholds[0] is inf",)),
    "nothing as a threshold": ({"thresholds": None}, ("thresholds is None", "list of numbers")),
    "a matrix of thresholds": ({"thresholds": [[1.0, 1.0]]}, ("thresholds has shape (1, 2)",)),
    "a start of two states": ({"initial": [0.5, 0.5]}, ("initial has shape (2,)", "(3,)")),
    "a start that sums to 2": ({"initial": [1, 1, 0]}, ("initial sums to 2",)),
    "a negative start": ({"initial": [1.5, -0.5, 0]}, ("initial[1] is -0.5",)),
    "a start that is no number": ({"initial": [np.nan, 1, 0]}, ("initial[0] is nan",)),
    "a first state too large": ({"initial": 3}, ("initial is 3", "0 … 2")),
    "a negative first state": ({"initial": -1}, ("initial is -1", "0 … 2")),
    "a first state of 1.0": ({"initial": 1.0}, ("initial is 1.0",)),
    "no start": ({"initial": None}, ("initial is None",)),
    "more than there can be": (
        {"thresholds": [1.0, 3.1]},
        ("the threshold of constraint 1", "at least 3.1", "[0, 3]"),
    ),
    "less than there can be": (
        {"senses": "at most", "constraint_ranges": (2, 5), "names": ["a", "b"]},
        ("the threshold of a", "at most 2.4", "[6, 15]"),
    ),
    # Known rewards.
    "rewards alone": ({"rewards": np.zeros((1, 3, 2))}, ("constraint_rewards are missing",)),
    "constraint rewards alone": (
        {"constraint_rewards": np.zeros((2, 1, 3, 2))},
        ("rewards are missing",),
    ),
    "rewards of two steps": (
        STATIONARY | {"rewards": np.zeros((2, 3, 2))},
        ("rewards has shape (2, 3, 2)",),
    ),
    "constraint rewards of one": (
        STATIONARY | {"constraint_rewards": np.zeros((1, 1, 3, 2))},
        ("thresholds has length 2",),
    ),
    "rewards that are none": (STATIONARY | {"rewards": np.full((1, 3, 2), np.nan)}, ("nan",)),
    "rewards as a text": (STATIONARY | {"rewards": "much"}, ("rewards cannot be read",)),
    "rewards above the range": (
        STATIONARY | {"rewards": np.full((1, 3, 2), 1.5), "reward_range": (0, 1)},
        ("rewards lies in [1.5, 1.5]", "reward_range is [0, 1]"),
    ),
    "constraint rewards below the range": (
        known() | {"constraint_ranges": [(0, 1), (0.99, 1)]},
        ("constraint_rewards[1] lies in", "constraint_ranges[1] is [0.99, 1]"),
    ),
    # Optimism.
    "theory without K": ({"optimism": "theory"}, ("cmdpax.Optimism.theory(num_episodes)",)),
    "empirical without rewards": ({"optimism": "empirical"}, ("give rewards", "'live'")),
    "known rewards that are not given": (
        {"optimism": cmdpax.Optimism.theory(9).replace(rewards="known")},
        ("give rewards",),
    ),
    "an unknown profile": ({"optimism": "empircal"}, ("'empircal'", "did you mean 'empirical'")),
    # Units.
    "an unknown sense": ({"senses": "at mots"}, ("'at mots'", "did you mean 'at most'")),
    "one sense for two": (
        {"senses": ["at most"]},
        ("the number of senses is 1", "that of thresholds 2"),
    ),
    "a start of lists": ({"initial": [[1.0], [0.5, 0.5], 0]}, ("initial cannot be read",)),
    "a start of 5,000 digits": ({"initial": 10**5000}, ("initial is a int that cannot be shown",)),
    "senses in arrays": ({"senses": [np.zeros(2), 10**5000]}, ("a sense is array([0., 0.])",)),
    "an optimism in an array": ({"optimism": np.zeros(3)}, ("optimism is array",)),
    "a sense that is none": ({"senses": ["at most", None]}, ("a sense is None",)),
    "a range reversed": ({"reward_range": (1, 0)}, ("reward_range is (1, 0)", "low below high")),
    "an empty range": ({"reward_range": (1, 1)}, ("reward_range is (1, 1)",)),
    "an endless range": ({"reward_range": (0, np.inf)}, ("reward_range is (0, inf)",)),
    "a huge integer in a range": ({"reward_range": (0, 10**400)}, ("reward_range is (0, 1000",)),
    "a range of three": ({"reward_range": (0, 1, 2)}, ("reward_range is (0, 1, 2)",)),
    "a number as a range": ({"reward_range": 1}, ("reward_range is 1",)),
    "a reversed one of two": (
        {"constraint_ranges": [(0, 1), (5, -5)]},
        ("constraint_ranges[1] is (5, -5)",),
    ),
    "a reversed one for all": ({"constraint_ranges": (5, -5)}, ("constraint_ranges is (5, -5)",)),
    "three ranges for two": (
        {"constraint_ranges": [(0, 1)] * 3},
        ("constraint_ranges is [(0, 1), (0, 1), (0, 1)]", "2 thresholds"),
    ),
    "one name for two": ({"names": ["a"]}, ("names is ['a']", "2 different")),
    "names twice": ({"names": ["a", "a"]}, ("names is ['a', 'a']",)),
    # Successors.
    "lists of floats": ({"successors": LISTS * 1.0}, ("successors must be integers", "float64")),
    "lists of lists": ({"successors": [[1], [1, 2]]}, ("cannot be read as an array of integers",)),
    "probabilities of others": (
        {"successors": cmdpax.Successors(np.maximum(LISTS, 0), np.ones((1, 3)))},
        ("probabilities has shape (1, 3), but successors (1, 3, 2, 2)",),
    ),
    "lists of two steps": ({"successors": LISTS_BY_STEP[:2]}, ("shape (2, 3, 2, 2)", "3 or 1")),
    "lists of two states": ({"successors": LISTS[:, :2]}, ("shape (1, 2, 2, 2)",)),
    "lists without steps": ({"successors": LISTS[0]}, ("shape (3, 2, 2)",)),
    "a state too large": ({"successors": LISTS + 1}, ("states 0 … 2 or -1",)),
    "a state below -1": ({"successors": np.where(LISTS < 0, -2, LISTS)}, ("0 … 2 or -1",)),
    "a pair that nothing follows": (
        {"successors": np.where(LISTS == 2, LISTS, -1)},
        ("at least one state",),
    ),
    "transitions of a dense model": ({"successors": np.zeros((1, 3, 2, 3))}, ("float64",)),
    # Hyperparameters and the seed.
    "no step": ({"step_size": 0}, ("step_size is 0", "positive")),
    "a step as a text": ({"step_size": "0.1"}, ("step_size is '0.1'",)),
    "an endless step": ({"step_size": np.inf}, ("step_size is inf",)),
    "negative regularization": ({"regularization": -0.1}, ("regularization is -0.1",)),
    "too much regularization": (
        {"step_size": 2.0, "regularization": 0.6},
        ("step_size times regularization is 1.2",),
    ),
    "a growing step": (
        {"step_size": cmdpax.schedules.power(0.1, -0.5), "regularization": 0.02},
        ("must not exceed 1",),
    ),
    "no cap": ({"max_multiplier": 0}, ("max_multiplier is 0",)),
    "a margin that is none": ({"margin": np.nan}, ("margin is nan",)),
    "a negative seed": ({"seed": -1}, ("-1",)),
    "half a seed": ({"seed": 1.5}, ("1.5",)),
    "a seed too large": ({"seed": 2**32}, ("4294967296",)),
}
RAW: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "thresholds as a text": ({"thresholds": "much"}, ("thresholds",)),
    "complex thresholds": ({"thresholds": [1j, 1]}, ("thresholds",)),
    "an array of states": ({"num_states": np.array([3])}, ("num_states",)),
    "no senses": ({"senses": 3}, ("senses",)),
    "a number as ranges": ({"constraint_ranges": 5}, ("constraint_ranges",)),
    "ragged ranges": ({"constraint_ranges": [(0, 1), (0,)]}, ("constraint_ranges",)),
    "lists as names": ({"names": [["a"], ["b"]]}, ("names",)),
    "lists of no slot": ({"successors": np.zeros((1, 3, 2, 0), int)}, ("successors",)),
    "lists by step, shared counts": (
        {"successors": LISTS_BY_STEP, "stationary": True},
        ("successors",),
    ),
    "a range beyond floats": ({"reward_range": (-1e308, 1e308)}, ("reward_range",)),
    "a range below floats": (
        {"constraint_ranges": (0, 5e-324), "thresholds": [1.0, 1.0]},
        ("constraint_ranges",),
    ),
}


def assert_refused(arguments: dict[str, Any], parts: tuple[str, ...]) -> None:
    with pytest.raises((cmdpax.ParameterError, cmdpax.ModelError)) as caught:
        make(**arguments)
    assert_sentence(caught.value)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(*REFUSED[name])


@pytest.mark.parametrize("name", RAW)
def test_refused_in_a_sentence(name: str) -> None:
    assert_refused(*RAW[name])


def test_the_seed_is_named() -> None:
    assert_refused({"seed": -1}, ("seed is -1",))


def test_algorithms_and_their_regularization() -> None:
    with pytest.raises(cmdpax.ParameterError, match="did you mean 'regularized-dual'"):
        make("regularised-dual")
    with pytest.raises(cmdpax.ParameterError, match="cannot be imported"):
        make("no_such_module:factory")
    with pytest.raises(cmdpax.ParameterError, match="is not a factory"):
        make("os:getcwd")
    with pytest.raises(cmdpax.ParameterError, match=r"is 0\.1, it must be 0; use regularized-d"):
        make("vanilla-dual", regularization=0.1)
    with pytest.raises(cmdpax.ParameterError, match="it must be positive; use vanilla-dual"):
        make("regularized-dual", regularization=0.0)
    with pytest.raises(cmdpax.ParameterError, match="has no parameter 'stepsize'; did you mean 's"):
        make(stepsize=0.1)


def test_no_algorithm() -> None:
    with pytest.raises(cmdpax.ParameterError, match="algorithm"):
        make(None)


class TestAccepted:
    def test_optimism_by_default(self):
        assert make().declaration.optimism == cmdpax.Optimism.live()
        assert make(**known()).declaration.optimism == cmdpax.Optimism.empirical()
        assert make(**known(), optimism="live").declaration.optimism == cmdpax.Optimism.live()
        theory = cmdpax.Optimism.theory(50)
        assert make(optimism=theory).declaration.optimism == theory

    def test_hyperparameters_by_default(self):
        assert make().declaration.parameters == {
            "step_size": [0.1, 0.0, 0.0],
            "regularization": [0.02, 0.0, 0.0],
            "max_multiplier": 6.0,
            "margin": [0.0, 0.0, 0.0],
        }
        for vanilla in ("vanilla-primal-dual", "vanilla-dual"):
            assert make(vanilla).declaration.parameters["regularization"] == [0.0, 0.0, 0.0]

    def test_known_rewards_that_are_not_used_are_not_learned_from(self):
        agent = make(**known(), optimism="live")
        np.testing.assert_array_equal(agent.policy, make().policy)
        assert str(agent.account.to_dict()) == str(make().account.to_dict())
        assert agent.declaration.rewards is agent.declaration.constraint_rewards is None

    def test_known_rewards_without_constraints(self):
        agent = make(thresholds=[], rewards=known()["rewards"])
        assert agent.declaration.optimism == cmdpax.Optimism.empirical()
        assert agent.learner_state.statistics.reward_sums is None
        same = make(thresholds=[], rewards=known()["rewards"], constraint_rewards=[])
        np.testing.assert_array_equal(agent.policy, same.policy)

    def test_one_state_is_a_start(self):
        agent, same = make(initial=1), make(initial=[0.0, 1.0, 0.0])
        np.testing.assert_array_equal(agent.declaration.initial, same.declaration.initial)
        assert str(agent.account.to_dict()) == str(same.account.to_dict())
        with pytest.raises(cmdpax.ParameterError, match="probability 0"):
            agent.start(0)

    def test_one_threshold_is_a_number(self):
        agent = make(thresholds=1.5)
        assert [one.threshold for one in agent.account] == [1.5]

    def test_thresholds_that_can_just_be_met(self):
        agent = make(thresholds=[3.0, 0.0], senses=["at least", "at most"])
        assert [one.threshold for one in agent.account] == [3.0, 0.0]

    def test_lists_and_probabilities(self):
        """Of a model's successors only the places are used, and of those the possible ones."""
        chances = np.where(LISTS < 0, 0.0, 0.5)
        model = cmdpax.Successors(np.where(LISTS < 0, 1, LISTS), chances)
        np.testing.assert_array_equal(make(successors=model).declaration.successors, LISTS)

    def test_what_is_given_is_copied(self):
        thresholds, initial = np.array([2.4, 2.7]), np.array([0.5, 0.5, 0.0])
        lists = LISTS.astype(np.int32)  # as it is kept
        agent = make(thresholds=thresholds, initial=initial, successors=lists)
        before = agent.account.to_dict()
        thresholds[:], initial[:], lists[:] = 0, 0, 0
        assert str(agent.account.to_dict()) == str(before)
        assert agent.declaration.initial.tolist() == [0.5, 0.5, 0.0]
        np.testing.assert_array_equal(agent.declaration.successors, LISTS)

    def test_as_text(self):
        assert repr(make()) == f"Agent('{ALGORITHM}', S=3, A=2, H=3, I=2, episodes=0)"


@pytest.mark.parametrize(
    ("margin", "part"), [(-0.1, "not negative"), (5.0, "at most 0.6 is possible")]
)
def test_margins_that_cannot_be(margin: float, part: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=part):
        make(margin=margin)


def test_a_policy_of_no_numbers_is_refused_and_the_agent_is_as_it_was() -> None:
    agent = make("vanilla-primal-dual", step_size=1e308)
    with pytest.raises(cmdpax.LearnerError, match="not finite numbers"):
        play(agent, 5)
    before = (agent.step, agent.num_episodes, agent.visits.tolist())
    assert agent.expects == "end" or agent.step > 0
    with pytest.raises(cmdpax.LearnerError, match="not finite numbers"):
        agent.end()
    assert (agent.step, agent.num_episodes, agent.visits.tolist()) == before
    assert np.isfinite(agent.policy).all()


def test_agents_explore_less_than_long_simulations_do() -> None:
    """Three defaults differ; what the user says counts, and None says nothing."""
    chosen = make("replanning", posterior_weight=None, untried_weight=0.02).declaration.parameters
    known = {one.name: one.default for one in as_algorithm("replanning").parameters}
    assert chosen["posterior_weight"] == 0.1 < known["posterior_weight"]
    assert (chosen["untried_weight"], chosen["random_visits"]) == (0.02, 2.0)
    safe = make("replanning", baseline=lambda state: 0).declaration.parameters
    assert (safe["doubt"], safe["random_visits"]) == (0.5, 2.0)
    same = set(known) - {"posterior_weight", "untried_weight", "random_visits"} - {"margin"}
    plain = {one.name: one.plain(one.default) for one in as_algorithm("replanning").parameters}
    assert {name: chosen[name] for name in same} == {name: plain[name] for name in same}
