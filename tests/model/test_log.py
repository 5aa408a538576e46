import copy
import pickle

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.model.words import PLAIN, Words

WORDS = Words(("low", "high"), ("wait", "work"), ("energy",), "parts", ("pieces", "kWh"))


def make_log(count: int = 5, runs: int = 0, words: Words = WORDS) -> cmdpax.Log:
    """Episodes of two steps that can be told apart: the rewards are the episode's number."""
    lead = (runs, count) if runs else (count,)
    number = np.arange(np.prod(lead), dtype=float).reshape(lead)
    return cmdpax.Log(
        np.zeros((*lead, 3), int),
        np.ones((*lead, 2), int),
        np.stack([number, number], axis=-1),
        np.full((*lead, 1, 2), 0.5),
        words=words,
    )


# ------------------------------------------------------------------------------- arrays and words


def test_a_log_is_four_arrays_and_its_words() -> None:
    log = make_log()
    states, actions, rewards, constraint_rewards = log
    assert (states.shape, actions.shape) == ((5, 3), (5, 2))
    assert log._fields == ("states", "actions", "rewards", "constraint_rewards")
    assert log.words == WORDS
    assert cmdpax.Log(states, actions, rewards, constraint_rewards).words == PLAIN


def test_it_is_shown_by_its_sizes() -> None:
    assert repr(make_log()) == "Log(K=5, H=2, I=1, S=2, A=2)"
    assert str(make_log(3, runs=2, words=PLAIN)) == "Log(runs=2, K=3, H=2, I=1)"
    episode = cmdpax.Log(*(array[0] for array in make_log(words=PLAIN)))
    assert repr(episode) == "Log(K=1, H=2, I=1)"


def test_words_survive_copies_and_pickles() -> None:
    for other in (copy.deepcopy(make_log()), pickle.loads(pickle.dumps(make_log()))):
        assert isinstance(other, cmdpax.Log)
        assert other.words == WORDS
        np.testing.assert_array_equal(other.rewards, make_log().rewards)


def test_jax_sees_the_arrays_alone() -> None:
    log = make_log()
    mapped = jax.tree.map(lambda array: array + 1, log)
    assert isinstance(mapped, cmdpax.Log)
    assert len(jax.tree.leaves(log)) == 4
    assert mapped.words == PLAIN
    assert jax.tree.structure(log) == jax.tree.structure(make_log(words=PLAIN))
    assert isinstance(log._replace(rewards=0), cmdpax.Log)


def test_the_log_of_a_run_keeps_the_words() -> None:
    log = make_log(runs=2)
    assert log.run(1).rewards[:, 0].tolist() == [5, 6, 7, 8, 9]
    assert log.run(1).words == WORDS
    assert (log.num_episodes, log.run(0).num_episodes, log.run(0).run(0).num_episodes) == (10, 5, 1)


# ------------------------------------------------------------------------------------------- split


def test_a_split_in_order() -> None:
    first, second = make_log().split()
    assert [first.rewards[:, 0].tolist(), second.rewards[:, 0].tolist()] == [[0, 1], [2, 3, 4]]
    assert first.words == second.words == WORDS


@pytest.mark.parametrize("share", [0.001, 0.3, 0.5, 0.999])
def test_a_shuffled_split_has_every_episode_once(share: float) -> None:
    first, second = make_log(3, runs=3).split(share, seed=2)
    assert first.num_episodes == min(max(round(9 * share), 1), 8)
    found = [*first.rewards[:, 0], *second.rewards[:, 0]]
    assert sorted(found) == list(range(9))
    assert found != list(range(9))
    again, _ = make_log(3, runs=3).split(share, seed=2)
    np.testing.assert_array_equal(again.rewards, first.rewards)


def test_a_split_without_constraints() -> None:
    log = make_log(words=PLAIN)._replace(constraint_rewards=[])
    first, second = log.split()
    assert (first.constraint_rewards.shape, second.constraint_rewards.shape) == (
        (2, 0, 2),
        (3, 0, 2),
    )


def test_splits_that_cannot_be() -> None:
    with pytest.raises(cmdpax.ModelError, match="one episode; to split it, at least two"):
        make_log(1).split()
    with pytest.raises(cmdpax.ParameterError, match="share is 1, it must be between 0 and 1"):
        make_log().split(1)
    with pytest.raises(cmdpax.ParameterError, match="seed is -1"):
        make_log().split(seed=-1)
    with pytest.raises(cmdpax.ModelError, match=r"the log's rewards has shape \(4, 2\)"):
        make_log()._replace(rewards=np.zeros((4, 2))).split()


# ----------------------------------------------------------------------------- names in estimates


def test_an_estimate_takes_the_names_of_its_log() -> None:
    cmdp = cmdpax.estimate(make_log(), limits=2.0, action_names=["idle", "work"])
    assert cmdp.words.state_names == ("low", "high")
    assert cmdp.words.action_names == ("idle", "work")
    assert cmdp.words.label(1) == "energy [kWh]"
    assert cmdp.words.label() == "parts [pieces]"
    assert cmdp.num_states == 2  # as many as names, though only one was reached


def test_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(cmdpax.ParameterError, match="number of state_names is 2, that of states 3"):
        cmdpax.estimate(make_log(), thresholds=0.0, num_states=3)


# ----------------------------------------------------------------------- a final state not observed


def cut(log: cmdpax.Log) -> cmdpax.Log:
    log.states[0, -1] = -1
    return log


def test_a_final_state_that_was_not_observed_counts_for_rewards_alone() -> None:
    log = cut(make_log(2))
    log.states[1, -1] = 1
    cmdp = cmdpax.estimate(log, thresholds=0.0)
    assert cmdp.rewards[1, 0, 1] == 0.5  # both episodes
    assert cmdp.transitions[1, 0, 1].tolist() == [0.0, 1.0]  # the second one
    alone = cmdpax.estimate(log.split()[0], thresholds=0.0)
    assert alone.transitions[1, 0, 1].tolist() == [0.5, 0.5]
    assert alone.constraint_rewards[0, 1, 0, 1] == 0.5


def test_a_state_in_the_middle_must_be_observed() -> None:
    log = make_log()
    log.states[2, 1] = -1
    with pytest.raises(cmdpax.ModelError, match=r"the log's states\[2, 1\] is -1, but states are"):
        cmdpax.estimate(log, thresholds=0.0)


def test_what_needs_final_states_says_so() -> None:
    sentence = r"the log's states\[0, 2\] is -1: the state after the last step was not observed"
    cmdp = cmdpax.estimate(make_log(), thresholds=0.0)
    with pytest.raises(cmdpax.ModelError, match=sentence):
        cmdpax.replay(cmdp, "regularized-primal-dual", cut(make_log()))
    agent = cmdpax.Agent(num_states=2, num_actions=2, horizon=2, thresholds=[0.0], initial=0)
    with pytest.raises(cmdpax.ModelError, match=sentence):
        agent.feed(cut(make_log()))
    from cmdpax.figures import plot_trajectory

    with pytest.raises(cmdpax.ParameterError, match=r"has state -1, .* give a whole episode"):
        plot_trajectory(cmdp, cut(make_log()))
