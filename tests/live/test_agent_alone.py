"""Nothing around an agent matters: interruptions, other agents, threads, JAX's settings."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from checks import assert_numpy_doubles
from cmdpax.live.steps import begin, follow, look
from live_cases import (
    System,
    assert_same,
    call_next,
    draw_episodes,
    known,
    log_of,
    make,
    play,
    snapshot,
)


def interrupt(patch: pytest.MonkeyPatch, address: str, after: int = 0) -> None:
    """Ctrl-C at the first call of a function, or at a later one."""
    function, calls = resolve_name(address), itertools.count()

    def call(*arguments: Any) -> Any:
        if next(calls) == after:
            raise KeyboardInterrupt
        return function(*arguments)

    patch.setattr(address.replace(":", "."), call)


class TestInterrupted:
    @pytest.mark.parametrize(
        "place",
        [
            "cmdpax.live.course:look",
            "cmdpax.live.course:follow",
            "cmdpax.live.course:trajectory_of",
            "cmdpax.live.accounts:Tally.after",
            "cmdpax.live.units:Units.inward",
        ],
    )
    @pytest.mark.parametrize("steps", [1, 3])
    def test_an_end_can_be_repeated(self, monkeypatch, place: str, steps: int):
        agent, plain = play(make(), 3), play(make(), 3)
        for one in (agent, plain):
            one.start(0)
            for _ in range(steps):
                one.act(one.state)
                one.observe(0.5, [0.25, 0.75], 1)
        before = snapshot(agent)
        with monkeypatch.context() as patch:
            interrupt(patch, place)
            with pytest.raises(KeyboardInterrupt):
                agent.end()
        assert snapshot(agent) == before
        assert agent.end().steps == plain.end().steps == steps
        assert_same(agent, plain)

    @pytest.mark.parametrize("call", ["start", "act", "observe"])
    def test_other_calls_can_be_repeated(self, monkeypatch, call: str):
        agent, plain = make(), make()
        system = System(plain)
        while plain.expects != call:
            call_next(agent, system)
            call_next(plain, system)
        before = snapshot(agent)
        with monkeypatch.context() as patch:
            interrupt(patch, "cmdpax.live.declaration:require_index")
            with pytest.raises(KeyboardInterrupt):
                call_next(agent, system)
        assert snapshot(agent) == before
        call_next(agent, system)
        call_next(plain, system)
        assert_same(agent, plain)

    def test_feeding_stops_between_two_episodes(self, monkeypatch):
        """What was counted is counted, and `num_episodes` says how much."""
        agent, plain = make(), make()
        episodes = draw_episodes(agent, 6)
        with monkeypatch.context() as patch:
            interrupt(patch, "cmdpax.live.course:look", after=3)
            with pytest.raises(KeyboardInterrupt):
                agent.feed(log_of(agent, episodes), own=True)
        assert agent.num_episodes == 3
        agent.feed(log_of(agent, episodes[3:]), own=True)
        plain.feed(log_of(plain, episodes), own=True)
        assert_same(agent, plain)

    def test_making_one(self, monkeypatch):
        with monkeypatch.context() as patch:
            interrupt(patch, "cmdpax.live.course:follow")
            with pytest.raises(KeyboardInterrupt):
                make()
        assert_same(make(), make())


class TestOthers:
    def test_two_agents_in_turns(self):
        """Of the same sizes, so that they share their programs."""
        costs = {"senses": "at most", "constraint_ranges": (0, 9), "thresholds": [3.0, 20.0]}
        declared = [{}, costs | {"seed": 3, "step_size": 1.0}]
        together = [make(**one) for one in declared]
        systems = [System(agent) for agent in together]
        while together[1].num_episodes < 6:
            for agent, system in zip(together, systems, strict=True):
                call_next(agent, system)
        for agent, one in zip(together, declared, strict=True):
            alone, system = make(**one), System(agent)
            while (alone.episode, alone.step, alone.expects) != (
                agent.episode,
                agent.step,
                agent.expects,
            ):
                call_next(alone, system)
            assert_same(alone, agent)

    def test_programs_are_compiled_when_an_agent_is_made(self, tmp_path: Path):
        agent = make(**known())
        sizes = [program._cache_size() for program in (begin, follow, look)]
        play(agent, 4)
        agent.feed(log_of(agent, draw_episodes(agent, 3)), own=True)
        agent.save(tmp_path / "a.npz")
        play(cmdpax.Agent.load(tmp_path / "a.npz"), 9)
        play(make(**known(), seed=8, thresholds=[1.0, 2.0], step_size=0.3, names=["a", "b"]), 2)
        assert [program._cache_size() for program in (begin, follow, look)] == sizes


class TestThreads:
    def in_thread(self, function: Callable[[], Any]) -> Any:
        """What it returns, or raises here."""
        found: list[Any] = []

        def run() -> None:
            try:
                found.append(function())
            except BaseException as error:
                found.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(found[0], BaseException):
            raise found[0]
        return found[0]

    def test_made_here_and_played_there(self):
        agent, plain = make(), play(make(), 5)
        self.in_thread(lambda: play(agent, 3))
        assert_same(play(agent, 5), plain)

    def test_made_saved_and_loaded_there(self, tmp_path: Path):
        path, plain = tmp_path / "a.npz", play(make(), 5)
        self.in_thread(lambda: play(make(), 3).save(path))
        found = self.in_thread(lambda: play(cmdpax.Agent.load(path), 4))
        assert_same(play(found, 5), plain)
        assert_numpy_doubles(found.policy, found.multipliers)

    def test_several_at_once(self):
        agents, plain = [make(seed=seed) for seed in range(4)], [make(seed=s) for s in range(4)]
        threads = [threading.Thread(target=play, args=(agent, 15)) for agent in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for agent, one in zip(agents, plain, strict=True):
            assert_same(agent, play(one, 15))


class TestPrecision:
    def test_jax_is_left_as_it_is(self, tmp_path: Path):
        """In single precision, as tests and users have it."""
        for call in (make, lambda: play(make(), 2), lambda: make().save(tmp_path / "a.npz")):
            call()
            assert jax.config.jax_enable_x64 is False
            assert jnp.zeros(1).dtype == jnp.float32
        cmdpax.Agent.load(tmp_path / "a.npz")
        with pytest.raises(cmdpax.ParameterError):
            make(horizon=0)
        with pytest.raises(cmdpax.OrderError):
            make().end()
        assert jnp.zeros(1).dtype == jnp.float32

    def test_with_double_precision_switched_on(self, double_precision):
        agent = play(make(), 4)
        with jax.enable_x64(False):
            assert_same(agent, play(make(), 4))

    def test_what_comes_out_is_numpy(self):
        agent = play(make(), 2)
        assert_numpy_doubles(agent.policy, agent.multipliers)
        assert agent.policy.shape == (3, 3, 2)
        assert type(agent.visits) is np.ndarray
        assert agent.visits.dtype == np.int32
        for leaf in jax.tree.leaves(agent.learner_state):
            assert type(leaf) is np.ndarray
            assert leaf.dtype in (np.float64, np.int32)
        agent.start(0)
        assert type(agent.act(0)) is int
        assert type(agent.state) is type(agent.step) is int
        agent.observe(np.float32(0.5), np.array([0.5, 0.5], np.float32), np.int8(1))
        assert type(agent.state) is int
        record = agent.end()
        assert type(record.reward) is float
        assert_numpy_doubles(record.constraint_returns)
        assert isinstance(record, cmdpax.EpisodeRecord)
