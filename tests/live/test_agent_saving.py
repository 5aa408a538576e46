"""Files of agents: whole or not at all, and complete."""

import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from checkpoint_cases import arrays_in, contents
from lanes import quick_or_whole
from live_cases import (
    LISTS,
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
from storage_cases import aside

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("regularized-primal-dual", {}),
    "known rewards": ("vanilla-primal-dual", known()),
    "lists, shared counts, costs": (
        "regularized-dual",
        {
            "successors": LISTS,
            "stationary": True,
            "senses": ["at most", "at least"],
            "constraint_ranges": [(0, 20), (-1, 1)],
            "reward_range": (-3, 5),
            "names": ["energy", "comfort"],
            "thresholds": [10.0, 2.5],
            "margin": cmdpax.schedules.power(0.2, 0.5, offset=3),
            "step_size": cmdpax.schedules.power(0.8, 0.3),
        },
    ),
    "no constraints, theory": (
        "vanilla-dual",
        {"thresholds": (), "optimism": cmdpax.Optimism.theory(100), "initial": 1},
    ),
}


def again(agent: cmdpax.Agent, path: Path, **arguments: Any) -> cmdpax.Agent:
    agent.save(path)
    return cmdpax.Agent.load(path, **arguments)


class TestComplete:
    @pytest.mark.parametrize(
        "name", [quick_or_whole(name, quick=name == "plain") for name in CASES]
    )
    def test_saved_and_loaded_after_every_call(self, tmp_path: Path, name: str):
        algorithm, arguments = CASES[name]
        saved, plain = (make(algorithm, **arguments) for _ in range(2))
        system, calls = System(plain), set()
        while plain.num_episodes < 7:
            saved = again(saved, tmp_path / "a.npz")
            assert_same(saved, plain)
            calls.add((plain.expects, plain.step))
            assert call_next(saved, system) == call_next(plain, system)
        assert len(calls) == 8  # every place of an episode, an open action too
        assert_same(saved, plain)
        assert plain.account.cut_short > 0

    @pytest.mark.parametrize("name", CASES)
    def test_the_declaration_is_kept(self, tmp_path: Path, name: str):
        algorithm, arguments = CASES[name]
        agent = make(algorithm, **arguments)
        found = again(agent, tmp_path / "a.npz").declaration
        for field, one, other in zip(found._fields, found, agent.declaration, strict=True):
            assert type(one) is type(other), field
            if isinstance(one, np.ndarray):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
            elif field == "units":
                np.testing.assert_array_equal(np.array(one), np.array(other))
            else:
                assert one == other, field

    def test_the_account_stands_in_it_as_text(self, tmp_path: Path):
        agent = play(make(), 5)
        agent.save(tmp_path / "a.npz")
        head = json.loads(str(arrays_in((tmp_path / "a.npz").read_bytes())["agent"]))
        assert cmdpax.AgentAccount.from_dict(head["account"]) == agent.account
        assert head["cmdpax"] == cmdpax.__version__

    def test_saving_changes_nothing(self, tmp_path: Path):
        agent, other = play(make(), 3), play(make(), 3)
        agent.start(0)
        other.start(0)
        agent.save(tmp_path / "a.npz")
        assert_same(agent, other)

    def test_a_copy_goes_its_own_way(self, tmp_path: Path):
        agent = play(make(), 3)
        copy = again(agent, tmp_path / "a.npz")
        before = snapshot(agent)
        play(copy, 6)
        assert snapshot(agent) == before
        play(agent, 6)
        assert_same(agent, copy)

    def test_names_and_paths(self, tmp_path: Path, monkeypatch):
        """Any name; a suffix is neither needed nor added, and names are no patterns."""
        monkeypatch.chdir(tmp_path)
        agent = play(make(), 2)
        for name in ("agent", "agent.v1", "agent[1].npz", "ö ü.npz"):
            agent.save(name)
            assert_same(cmdpax.Agent.load(name), agent)
            assert_same(cmdpax.Agent.load(tmp_path / name), agent)
        assert set(contents(tmp_path)) == {"agent", "agent.v1", "agent[1].npz", "ö ü.npz"}

    @pytest.mark.parametrize(
        "optimism",
        [cmdpax.Optimism.live(np.float32(0.25)), cmdpax.Optimism.theory(np.int64(100))],
    )
    def test_optimism_in_numpy_numbers(self, tmp_path: Path, optimism: cmdpax.Optimism):
        agent = play(make(optimism=optimism), 1)
        assert_same(again(agent, tmp_path / "a.npz"), agent)

    def test_numpy_numbers(self, tmp_path: Path):
        agent = make(
            num_states=np.int64(3),
            horizon=np.int32(3),
            seed=np.uint32(11),
            step_size=np.float32(0.5),
            max_multiplier=np.int64(6),
            margin=cmdpax.schedules.power(np.float32(0.5), np.int64(1)),
            thresholds=np.array([2, 1]),
            stationary=np.True_,
        )
        assert_same(again(agent, tmp_path / "a.npz"), agent)


class TestWhole:
    """A save that fails leaves the file as it was, and nothing beside it."""

    @pytest.mark.parametrize("place", ["creating", "writing", "flushing", "renaming"])
    @pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
    def test_failures(self, tmp_path: Path, monkeypatch, place: str, kind: type):
        path, agent = tmp_path / "a.npz", play(make(), 2)
        agent.save(path)
        before = contents(tmp_path)
        play(agent, 3)

        def fail(*arguments: Any, **more: Any) -> None:
            if place == "writing":
                arguments[0].write(b"half of a fi")
            raise kind(28, "No space left on device")

        target: dict[str, tuple[Any, str]] = {
            "creating": (Path, "open"),
            "writing": (np, "savez"),
            "flushing": (os, "fsync"),
            "renaming": (os, "replace"),
        }
        sentence = f"cannot write {path}: No space left on device."
        expected = cmdpax.FileError if kind is OSError else KeyboardInterrupt
        with monkeypatch.context() as patch:
            patch.setattr(*target[place], fail)
            with pytest.raises(expected, match=re.escape(sentence) if kind is OSError else None):
                agent.save(path)
        assert contents(tmp_path) == before
        assert cmdpax.Agent.load(path).num_episodes == 2
        assert_same(again(agent, path), agent)

    def test_no_folder(self, tmp_path: Path):
        with pytest.raises(cmdpax.FileError, match=r"the folder .*none does not exist; create it"):
            make().save(tmp_path / "none" / "a.npz")
        with pytest.raises(cmdpax.FileError, match="it is a folder"):
            make().save(tmp_path)
        assert contents(tmp_path) == {}

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_may_not_be_written(self, tmp_path: Path):
        make().save(tmp_path / "a.npz")
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(cmdpax.FileError, match="cannot write"):
                make().save(tmp_path / "a.npz")
        finally:
            tmp_path.chmod(0o700)

    def test_what_killed_ones_left_is_removed(self, tmp_path: Path):
        neighbours = [
            "a.npz.bak",
            ".a.npy.q",
            ".a.npz.writing-a1_b2c3d",
            aside("b.npz", "a1b2c3d4"),
        ]
        neighbours += [aside("b.npz", "a1b2c3d4"), aside("a.npz", "short")]
        neighbours += [aside("a.npz", "a1b2c3d4") + ".bak"]
        for name in (aside("a.npz", "a1b2c3d4"), aside("a.npz", "00000000"), *neighbours):
            (tmp_path / name).write_bytes(b"half of a fi")
        make().save(tmp_path / "a.npz")
        assert set(contents(tmp_path)) == {"a.npz", *neighbours}

    def test_a_folder_that_looks_like_a_left_one(self, tmp_path: Path):
        (tmp_path / ".a.npz.original").mkdir()
        agent = make()
        try:
            agent.save(tmp_path / "a.npz")
        except cmdpax.FileError:
            return
        assert_same(cmdpax.Agent.load(tmp_path / "a.npz"), agent)

    def test_nothing_is_read_while_it_is_written(self, tmp_path: Path):
        """Another process that watches the file finds a whole one at every moment."""
        path, agent, stop, failed = tmp_path / "a.npz", make(), threading.Event(), []
        agent.save(path)

        def watch() -> None:
            while not stop.is_set():
                try:
                    arrays_in(path.read_bytes())
                except Exception as error:
                    failed.append(error)

        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in range(40):
            agent.save(path)
        stop.set()
        watcher.join()
        assert failed == []


MODULE = """
from cmdpax.learners.primal_dual import primal_dual

def factory(knowledge, hyperparameters):
    return primal_dual(knowledge, hyperparameters)
"""


def own_factory(knowledge: Any, hyperparameters: Any) -> Any:
    from cmdpax.learners.primal_dual import primal_dual

    return primal_dual(knowledge, hyperparameters)


class TestOwnFactories:
    def test_given_again(self, tmp_path: Path):
        path, agent = tmp_path / "a.npz", play(make(own_factory), 4)
        agent.save(path)
        sentence = f"{path} was saved with the factory 'own_factory' of your own; give it as algor"
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            cmdpax.Agent.load(path)
        found = cmdpax.Agent.load(path, algorithm=own_factory)
        assert_same(found, agent)
        assert_same(play(found, 6), play(agent, 6))
        assert_same(again(found, path, algorithm=own_factory), agent)

    def test_it_learns_as_the_registered_one(self):
        own, registered = make(own_factory, regularization=0.02), make()
        episodes = draw_episodes(own, 6)
        for agent in (own, registered):
            agent.feed(log_of(agent, episodes), own=True)
        assert snapshot(own) == snapshot(registered)

    def test_by_module_and_name(self, tmp_path: Path, monkeypatch):
        (tmp_path / "my_learner_of_the_tests.py").write_text(MODULE)
        monkeypatch.syspath_prepend(tmp_path)
        algorithm, path = "my_learner_of_the_tests:factory", tmp_path / "a.npz"
        agent = play(make(algorithm), 3)
        assert repr(agent).startswith(f"Agent('{algorithm}'")
        agent.save(path)
        assert_same(cmdpax.Agent.load(path, algorithm=algorithm), agent)
        monkeypatch.delitem(sys.modules, "my_learner_of_the_tests")
        with pytest.raises(cmdpax.ParameterError, match="of your own; give it as algorithm"):
            cmdpax.Agent.load(path)  # a file is no reason to import anything
        assert "my_learner_of_the_tests" not in sys.modules

    def test_another_kind_of_learner_is_refused(self, tmp_path: Path):
        path = tmp_path / "a.npz"
        play(make(own_factory), 1).save(path)
        with pytest.raises(
            cmdpax.ParameterError, match="algorithm 'own_factory', not with 'vanill"
        ):
            cmdpax.Agent.load(path, algorithm="vanilla-dual")
        play(make("vanilla-dual"), 1).save(path)
        with pytest.raises(cmdpax.ParameterError, match="'vanilla-dual', not with 'regularized-d"):
            cmdpax.Agent.load(path, algorithm="regularized-dual")
