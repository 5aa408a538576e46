"""Agents with an algorithm of one's own: parameters are declared, saved, and read again."""

import json
import re
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import broken_learners
import cmdpax
from cmdpax.learners import Algorithm, Hyperparameters, Knowledge, Learner, Parameter, Shown
from cmdpax.live.saving import FORMAT
from live_cases import (
    assert_counted,
    assert_same,
    assert_sentence,
    draw_episodes,
    log_of,
    make,
    play,
    snapshot,
)
from sweep_cases import GEARED, OWN, Geared, geared

CHOSEN: dict[str, Any] = {"gain": 0.4, "mode": "primal-dual"}


def refused(sentence: str, algorithm: Any = geared, **changes: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)) as caught:
        make(algorithm, **changes)
    assert_sentence(caught.value)


def text_of(path: Path) -> dict[str, Any]:
    with np.load(path) as arrays:
        return dict(json.loads(str(arrays["agent"])))


def rewrite(path: Path, **parameters: Any) -> None:
    """Other values for parameters, in a file that is whole otherwise."""
    with np.load(path) as content:
        arrays: dict[str, Any] = dict(content)
    head = json.loads(str(arrays["agent"]))
    head["declaration"]["parameters"] |= parameters
    np.savez(path, **(arrays | {"agent": np.array(json.dumps(head))}))


class Wide(NamedTuple):
    margin: Annotated[str, Parameter(choices=("wide", "narrow"))] = "wide"


class Flagged(NamedTuple):
    margin: bool = True


class TestDeclared:
    def test_as_plain_values(self):
        assert make(geared).declaration.parameters == {"gain": 0.1, "mode": "dual"}
        agent = make(geared, gain=np.float32(2), mode="primal-dual")
        assert agent.declaration.parameters == {"gain": 2.0, "mode": "primal-dual"}
        assert json.dumps(agent.declaration.parameters) == '{"gain": 2.0, "mode": "primal-dual"}'
        assert (agent.declaration.algorithm, agent.declaration.own) == ("geared", True)

    @pytest.mark.parametrize("mode", ["dual", "primal-dual"])
    def test_are_what_it_learns_with(self, mode: str):
        own = make(geared, gain=0.4, mode=mode)
        paper = make(f"vanilla-{mode}", step_size=0.4)
        episodes = draw_episodes(own, 150)  # until multipliers grow
        for agent in (own, paper):
            agent.feed(log_of(agent, episodes), own=True)
        assert snapshot(own) == snapshot(paper)
        assert own.multipliers.max() > 0

    def test_unknown_ones(self):
        refused("geared has no parameter 'gian'; did you mean 'gain'?", gian=1)
        refused("geared has no parameter 'step_size'; ", step_size=1)
        refused("geared has no parameter 'sensees'; did you mean 'senses'?", sensees="at most")
        sentence = "vanilla-dual has no parameter 'gain'; "
        refused(sentence, "vanilla-dual", gain=1)

    def test_impossible_values(self):
        refused("gain is 'much', it must be a number.", gain="much")
        refused("gain is -1, it must not be negative.", gain=-1)
        refused("gain is 51, it must not exceed 50.", gain=51)
        refused("mode is 'duel'; did you mean 'dual'?", mode="duel")
        refused("gain is -1, it must not be negative.", OWN, gain=-1)

    @pytest.mark.parametrize("record", [Wide, Flagged])
    def test_a_margin_that_is_no_number_is_not_taken_for_one(self, record: Any):
        own = Algorithm("own", lambda knowledge, chosen: geared(knowledge, Geared()), record)
        assert make(own).declaration.parameters == record()._asdict()

    def test_the_number_of_episodes_is_not_known(self):
        sentence = (
            "planned must know the number of episodes, and a live system has none; use an "
            "algorithm that is anytime."
        )
        refused(sentence, Algorithm("planned", geared, anytime=False))


class TestSaved:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "a.npz"

    @pytest.fixture
    def agent(self, path: Path) -> cmdpax.Agent:
        agent = play(make(geared, **CHOSEN), 4)
        agent.save(path)
        return agent

    def test_with_their_names(self, agent: cmdpax.Agent, path: Path):
        head = text_of(path)
        assert head["format"] == FORMAT
        assert head["declaration"]["parameters"] == CHOSEN
        assert "hyperparameters" not in head["declaration"]

    @pytest.mark.parametrize("algorithm", [geared, GEARED], ids=["factory", "algorithm"])
    def test_and_loaded_with_the_algorithm(self, agent: cmdpax.Agent, path: Path, algorithm: Any):
        found = cmdpax.Agent.load(path, algorithm=algorithm)
        assert found.declaration.parameters == CHOSEN
        assert_same(found, agent)
        assert_same(play(found, 7), play(agent, 7))

    def test_and_refused_without(self, agent: cmdpax.Agent, path: Path):
        sentence = f"{path} was saved with the factory 'geared' of your own; give it as algorithm."
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            cmdpax.Agent.load(path)
        with pytest.raises(cmdpax.ParameterError, match="'geared', not with 'vanilla-dual'; give"):
            cmdpax.Agent.load(path, algorithm="vanilla-dual")

    def test_by_address(self, path: Path):
        agent = play(make(OWN, **CHOSEN), 3)
        assert agent.declaration.algorithm == OWN
        agent.save(path)
        assert_same(cmdpax.Agent.load(path, algorithm=OWN), agent)
        with pytest.raises(cmdpax.ParameterError, match=f"'{OWN}' of your own; give it as algor"):
            cmdpax.Agent.load(path)

    def test_the_name_of_a_registered_one_is_refused(self):
        with pytest.raises(cmdpax.ParameterError, match="has the name of a registered one; give"):
            make(Algorithm("vanilla-dual", geared), **CHOSEN)

    def test_an_algorithm_that_has_others_by_now(self, agent: cmdpax.Agent, path: Path):
        class More(NamedTuple):
            gain: float = 0.1
            mode: Annotated[str, Parameter(choices=("dual", "primal-dual"))] = "dual"
            more: int = 1

        class Less(NamedTuple):
            gain: Annotated[float, Parameter(at_most=0.3)] = 0.1
            mode: Annotated[str, Parameter(choices=("dual", "primal-dual"))] = "dual"

        for record, sentence in (
            (More, "geared has the parameter 'more', which is missing."),
            (Less, "gain is 0.4, it must not exceed 0.3."),
        ):
            with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)) as caught:
                cmdpax.Agent.load(path, algorithm=Algorithm("geared", geared, record))
            assert_sentence(caught.value)

    @pytest.mark.parametrize(
        "parameters", [{"gain": "x"}, {"gain": None}, {"gain": [1, 2]}, {"mode": 3}, {"gain": -1}]
    )
    def test_other_values_in_the_file(
        self, agent: cmdpax.Agent, path: Path, parameters: dict[str, Any]
    ):
        rewrite(path, **parameters)
        with pytest.raises(cmdpax.CmdpaxError) as caught:
            cmdpax.Agent.load(path, algorithm=geared)
        assert_sentence(caught.value)

    def test_the_file_is_watched_without_the_algorithm(self, run: Any):
        agent = play(make(OWN, **CHOSEN), 3)
        agent.save("a.npz")
        code, out, err = run("watch", "a.npz", "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["episodes"] == 3


class Hidden(NamedTuple):
    """A state that says nothing by itself."""

    what: Any


def hiding(knowledge: Knowledge, chosen: Geared) -> Learner:
    """Its state has fields of its own; all that may be seen is what it shows."""
    plain = geared(knowledge, chosen)
    return Learner(
        lambda key: Hidden(plain.init(key)),
        lambda state, trajectory, key: Hidden(plain.update(state.what, trajectory, key)),
        lambda state: plain.show(state.what),
    )


def silent(knowledge: Knowledge, chosen: Hyperparameters) -> Learner:
    """It counts, but does not show it."""
    plain = geared(knowledge, Geared(jnp.asarray(0.1), "dual"))

    def show(state: Any) -> Shown:
        shown = plain.show(state)
        return shown._replace(info=shown.info._replace(statistics=None))

    return plain._replace(show=show)


class TestShown:
    @pytest.mark.parametrize("stationary", [False, True])
    def test_visits_are_those_that_the_learner_shows(self, stationary: bool):
        hidden, plain = (make(one, stationary=stationary, **CHOSEN) for one in (hiding, geared))
        episodes = draw_episodes(plain, 6)
        for agent in (hidden, plain):
            agent.feed(log_of(agent, episodes), own=True)
            assert agent.visits.shape == (1 if stationary else 3, 3, 2)
        assert_counted(plain, episodes)
        np.testing.assert_array_equal(hidden.visits, plain.visits)
        np.testing.assert_array_equal(hidden.policy, plain.policy)
        np.testing.assert_array_equal(hidden.multipliers, plain.multipliers)

    @pytest.mark.parametrize("learner", [silent, broken_learners.sound])
    def test_what_is_not_shown_is_not_known(self, learner: Any, tmp_path: Path):
        agent = play(make(learner), 3)
        assert agent.account.episodes == 3
        sentence = "this learner shows no statistics, so visits are not known."
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            _ = agent.visits
        agent.save(tmp_path / "a.npz")
        assert_same(cmdpax.Agent.load(tmp_path / "a.npz", algorithm=learner), agent)
