"""Algorithms of one's own: the number of episodes, choices that are compiled in, other records."""

import json
import re
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import broken_learners
import cmdpax
from cmdpax.learners import (
    Algorithm,
    Hyperparameters,
    Info,
    Knowledge,
    Learner,
    Parameter,
    Scheduled,
    Shown,
    value_at,
)
from cmdpax.learning.learn import learn_batch
from cmdpax.learning.settings import RunSettings
from cmdpax.schemes.schedules import Schedule, power
from configurations import configured
from learning_cases import logged, model


class Nothing(NamedTuple):
    """Nothing to choose."""


class Chosen(NamedTuple):
    """A field of every kind."""

    rate: Annotated[Scheduled, Parameter("step", above=0)] = 0.5
    gain: Annotated[float, Parameter("weight", at_least=0)] = 2.0
    window: Annotated[int, Parameter("episodes", above=0)] = 20
    eager: bool = False
    mode: Annotated[str, Parameter("how", choices=("fast", "safe"))] = "safe"


def telling(knowledge: Knowledge, multipliers: Any) -> Learner:
    """Plays the uniform policy; its multipliers are what it was told, as a function of k."""
    plain = broken_learners.sound(knowledge, Hyperparameters())
    nothing = jnp.zeros(knowledge.sizes.num_constraints, knowledge.initial.dtype)

    def show(state: Any) -> Shown:
        told = jnp.asarray(multipliers(state.episode), nothing.dtype)
        return Shown(state.log_policy, Info(nothing + told, nothing))

    return plain._replace(show=show)


def make_agent(algorithm: Any, **parameters: Any) -> cmdpax.Agent:
    sizes = {"num_states": 3, "num_actions": 2, "horizon": 3, "thresholds": [1.0, 1.0]}
    return cmdpax.Agent(algorithm, **sizes, initial=0, **parameters)


def learn(algorithm: Any, num_episodes: int = 12, **changes: Any) -> cmdpax.History:
    return cmdpax.learn(model(2), algorithm, num_episodes=num_episodes, **changes)


class TestNumberOfEpisodes:
    def planned(self, told: list[Any], anytime: bool = False) -> Algorithm:
        def factory(knowledge: Knowledge, parameters: Nothing) -> Learner:
            told.append(knowledge.num_episodes)
            count = 0 if anytime else knowledge.num_episodes
            return telling(knowledge, lambda episode: count)

        return Algorithm("planned", factory, anytime=anytime)

    def test_who_is_not_anytime_is_told_it(self):
        planned = self.planned([])
        for count in (3, 12, 1100):
            np.testing.assert_array_equal(learn(planned, count, seeds=2).multipliers, count)
        replayed = cmdpax.replay(model(2), planned, logged(model(2)))
        np.testing.assert_array_equal(replayed.multipliers, 40)

    def test_who_is_anytime_is_not(self):
        told: list[Any] = []
        learn(self.planned(told, anytime=True))
        cmdpax.replay(model(2), self.planned(told, anytime=True), logged(model(2)))
        make_agent(self.planned(told, anytime=True))
        assert set(told) == {None}

    @pytest.mark.parametrize("anytime", [False, True])
    def test_one_program_serves_every_number(self, anytime: bool):
        told: list[Any] = []
        planned = self.planned(told, anytime)
        learn(planned)
        first = len(told)
        assert first > 0
        for count in (13, 200, 1100):
            learn(planned, count)
        assert len(told) == first

    def test_it_is_part_of_no_identity(self):
        """It is what `learn` is told anyway, and the same program whatever it is."""
        described = configured(self.planned([]), num_episodes=5).describe()
        assert set(described) == {"seed", "optimism"}

    def test_a_live_system_has_none(self):
        sentence = "planned must know the number of episodes, and a live system has none; use an"
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            make_agent(self.planned([]))


class TestChoices:
    def own(self, seen: list[Chosen]) -> Algorithm:
        def factory(knowledge: Knowledge, chosen: Chosen) -> Learner:
            seen.append(chosen)
            weight = chosen.window if chosen.eager and chosen.mode == "fast" else 1

            def multipliers(episode: Any) -> Any:
                return weight * chosen.gain * value_at(chosen.rate, episode)

            return telling(knowledge, multipliers)

        return Algorithm("own", factory)

    def test_are_plain_values_and_numbers_are_traced(self):
        seen: list[Chosen] = []
        own = self.own(seen)
        learn(own, eager=np.True_, mode="fast", window=np.int64(3))
        cmdpax.replay(model(2), own, logged(model(2)), eager=True, mode="fast", window=3)
        make_agent(own, eager=True, mode="fast", window=3)
        assert seen
        for rate, gain, *choices in seen:
            assert choices == [3, True, "fast"]
            assert list(map(type, choices)) == [int, bool, str]
            assert isinstance(rate, Schedule)
            assert all(isinstance(number, jax.core.Tracer) for number in (*rate, gain))

    def test_are_all_respected(self):
        """The multiplier is (window, if eager and fast) · gain · rate_k."""
        own, rate = self.own([]), power(0.5, 1.0)
        halves = 0.5 / np.arange(1, 13)[:, None] * np.ones(2)
        cases: list[tuple[dict[str, Any], Any]] = [
            ({}, np.full((12, 2), 1.0)),
            ({"rate": rate}, 2 * halves),
            ({"rate": rate, "gain": 3}, 3 * halves),
            ({"rate": rate, "mode": "fast"}, 2 * halves),
            ({"rate": rate, "mode": "fast", "eager": True}, 40 * halves),
            ({"rate": rate, "mode": "fast", "eager": True, "window": 5}, 10 * halves),
        ]
        for chosen, expected in cases:
            found = learn(own, **chosen).multipliers[0]
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=str(chosen))

    def test_a_new_number_compiles_nothing_and_a_new_choice_does(self):
        seen: list[Chosen] = []
        own = self.own(seen)
        learn(own)
        first = len(seen)
        learn(own, gain=7, rate=power(0.5, 0.3), seeds=[9])
        learn(own, mode="safe", eager=False, window=20)  # the defaults
        assert len(seen) == first
        for changes in ({"mode": "fast"}, {"eager": True}, {"window": 21}):
            before = len(seen)
            learn(own, **changes)
            assert len(seen) > before

    def test_the_manifest_has_them(self):
        own = self.own([])
        original = learn(own, rate="0.5*k^-1", eager=True, mode="fast", seeds=2)
        manifest = json.loads(json.dumps(original.manifest))
        assert manifest["runs"][1] == manifest["runs"][0] | {"seed": 1}
        assert {name: manifest["runs"][0][name] for name in Chosen._fields} == {
            "rate": [0.5, 1.0, 0.0],
            "gain": 2.0,
            "window": 20,
            "eager": True,
            "mode": "fast",
        }
        again = cmdpax.repeat(model(2), manifest, algorithm=own)
        np.testing.assert_array_equal(again.multipliers, original.multipliers)
        assert again.manifest == original.manifest
        del manifest["runs"][1]["gain"]
        with pytest.raises(cmdpax.ParameterError, match="own has the parameter 'gain', which is"):
            cmdpax.repeat(model(2), manifest, algorithm=own)

    def test_one_batch_has_one_program(self):
        own = self.own([])
        mixed = [configured(own, seed, mode=mode) for seed, mode in enumerate(("fast", "safe"))]
        sentence = "one batch cannot mix parameters that are compiled in"
        with pytest.raises(cmdpax.ParameterError, match=sentence):
            learn_batch(model(2), mixed, RunSettings(5))
        manifest = learn(own, seeds=2).manifest
        manifest["runs"][1]["mode"] = "fast"
        with pytest.raises(cmdpax.ParameterError, match=sentence):
            cmdpax.repeat(model(2), manifest, algorithm=own)

    def test_an_agent_keeps_them(self, tmp_path: Path):
        own, path = self.own([]), tmp_path / "agent.npz"
        agent = make_agent(own, gain=3, mode="fast", eager=True)
        np.testing.assert_allclose(agent.multipliers, 20 * 3 * 0.5)
        agent.save(path)
        loaded = cmdpax.Agent.load(path, algorithm=own)
        np.testing.assert_array_equal(loaded.multipliers, agent.multipliers)
        assert loaded.declaration.parameters == agent.declaration.parameters

        class Later(NamedTuple):
            patience: int = 3

        with pytest.raises(cmdpax.ParameterError, match="own has the parameter 'patience', which"):
            cmdpax.Agent.load(path, algorithm=indifferent(Later))


def indifferent(record: Any) -> Algorithm:
    """Its learner does not look at its parameters."""

    def factory(knowledge: Knowledge, chosen: Any) -> Learner:
        return broken_learners.sound(knowledge, Hyperparameters())

    return Algorithm("own", factory, record)


class TestSameNamesOtherTypes:
    """A parameter of one's own may have the name of the paper's, and be something else."""

    def test_a_schedule_of_caps(self):
        class Scheduling(NamedTuple):
            max_multiplier: Scheduled = 6.0

        history = learn(indifferent(Scheduling))
        assert history.manifest["runs"][0]["max_multiplier"] == [6.0, 0.0, 0.0]

    def test_a_potential_of_plain_numbers(self):
        class Numbers(NamedTuple):
            regularization: float = 0.1
            max_multiplier: float = 1e6
            margin: float = 0.0

        own = indifferent(Numbers)
        found = learn(own, potential=True)
        plain = learn(broken_learners.sound, potential=True, regularization=0.1, max_multiplier=1e6)
        assert found.potential is not None
        np.testing.assert_allclose(found.potential, plain.potential, rtol=0, atol=1e-12)
        with pytest.raises(cmdpax.ParameterError, match="constant τ > 0"):
            learn(own, potential=True, regularization=0.0)

    def test_a_margin_of_an_agent_that_is_a_plain_number(self):
        class Numbers(NamedTuple):
            margin: float = 0.0

        own = indifferent(Numbers)
        declaration = make_agent(own, margin=0.5).declaration  # in the user's units
        assert (declaration.parameters, [*declaration.margins]) == ({"margin": 0.0}, [0.5, 0.5])
        with pytest.raises(cmdpax.ParameterError, match=r"is 2\.5, and at most 2 is possible"):
            make_agent(own, margin=2.5)
