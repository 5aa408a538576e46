"""Files that are no agent's, of another version, or damaged: refused in one sentence."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
import damages
from checkpoint_cases import arrays_in, contents
from learning_cases import model
from live_cases import (
    ALGORITHM,
    System,
    assert_sentence,
    call_next,
    draw_episodes,
    known,
    log_of,
    make,
    snapshot,
)

Change = Callable[[dict[str, Any], dict[str, Any]], Any]


@pytest.fixture(scope="module")
def agent() -> cmdpax.Agent:
    """Rewards known, many episodes counted, one open with an action given."""
    agent = make(**known())
    agent.feed(log_of(agent, draw_episodes(agent, 220)), own=True)
    system = System(agent)
    while (agent.step, agent.expects) != (1, "observe"):
        call_next(agent, system)
    return agent


@pytest.fixture(scope="module")
def content(agent: cmdpax.Agent, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "a.npz"
    agent.save(path)
    return path.read_bytes()


@pytest.fixture
def path(content: bytes, tmp_path: Path) -> Path:
    """A whole file, to be damaged."""
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    return path


def assert_refused(path: Path, *parts: str) -> None:
    """With one sentence that names the file, which stays as it is."""
    before = contents(path.parent)
    with pytest.raises(cmdpax.FileError) as caught:
        cmdpax.Agent.load(path)
    assert_sentence(caught.value)
    for part in (str(path), *parts):
        assert part in str(caught.value)
    assert contents(path.parent) == before


def edit(path: Path, change: Change) -> None:
    """A whole file that says something else: change its text and its arrays."""
    arrays: dict[str, Any] = arrays_in(path.read_bytes())
    head = json.loads(str(arrays["agent"]))
    change(head, arrays)
    np.savez(path, **(arrays | {"agent": np.array(json.dumps(head))}))


def with_waiting(head: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Two episodes, of three steps and of one, that the learner has not seen."""
    arrays["waiting_steps"] = np.array([3, 1])
    arrays["waiting_states"] = np.array([0, 1, 2, 0, 1, 2])
    arrays["waiting_actions"] = np.array([0, 1, 0, 1])
    arrays["waiting_observed"] = np.full((4, 3), 0.5)


def as_earlier(head: dict[str, Any]) -> list[Any]:
    """The text of a file of format 2, whose declaration has a list of hyperparameters."""
    declared = head["declaration"]
    declared["hyperparameters"] = list(declared.pop("parameters").values())
    head["format"] = 2
    return declared["hyperparameters"]


class TestOthers:
    def test_another_version(self, path: Path, agent: cmdpax.Agent, monkeypatch):
        """It is read if its format is, and if its learner keeps the same numbers."""
        monkeypatch.setattr("cmdpax.version.__version__", "0.7.3")
        found = cmdpax.Agent.load(path)
        assert snapshot(found) == snapshot(agent)
        edit(path, lambda head, arrays: head.update(leaves=3))
        sentences = (f"saved by cmdpax {cmdpax.__version__}", "cmdpax 0.7.3", "feed your log")
        assert_refused(path, *sentences)

    def test_another_format(self, path: Path):
        edit(path, lambda head, arrays: head.update(format=9))
        assert_refused(path, "(format 9)", "(formats 2 to 4)")

    @pytest.mark.parametrize("algorithm", [ALGORITHM, "vanilla-dual"])
    def test_an_earlier_format_is_read(self, tmp_path: Path, algorithm: str):
        path, agent = tmp_path / "a.npz", make(algorithm, step_size=0.3, margin=0.01)
        agent.feed(log_of(agent, draw_episodes(agent, 5)), own=True)
        agent.save(path)
        edit(path, lambda head, arrays: as_earlier(head))
        found = cmdpax.Agent.load(path)
        assert found.declaration.parameters == agent.declaration.parameters
        assert snapshot(found) == snapshot(agent)
        found.save(path)
        head = json.loads(str(arrays_in(path.read_bytes())["agent"]))
        assert (head["format"], "hyperparameters" in head["declaration"]) == (4, False)

    def test_sums_that_an_earlier_file_has_not_begin_anew(self, path: Path, agent: cmdpax.Agent):
        edit(path, lambda head, arrays: arrays.pop("tally_always"))
        found = cmdpax.Agent.load(path)
        assert [one.always.size for one in found.account] == [0, 0]
        assert [one.always.size for one in agent.account] == [220, 220]
        assert [one.observed for one in found.account] == [one.observed for one in agent.account]
        found.save(path)
        assert snapshot(cmdpax.Agent.load(path)) == snapshot(found)

    def test_what_is_not_there(self, tmp_path: Path):
        assert_refused(tmp_path / "none.npz", "does not exist")
        (tmp_path / "folder.npz").mkdir()
        sentence = (
            f"{tmp_path / 'folder.npz'} is a folder, not a file; give a file that agent.save wrote."
        )
        with pytest.raises(cmdpax.FileError, match=re.escape(sentence)):
            cmdpax.Agent.load(tmp_path / "folder.npz")

    def test_a_file_that_may_not_be_read(self, path: Path, monkeypatch):
        def refuse(self: Path, *arguments: Any) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        with pytest.raises(cmdpax.FileError, match=re.escape(f"{path} cannot be read: Permission")):
            cmdpax.Agent.load(path)

    def test_other_files(self, path: Path):
        cmdpax.save(model(2), path)
        assert_refused(path, "not a readable file of an agent")
        np.savez(path, agent=np.arange(3))
        assert_refused(path, "not a readable file of an agent")
        with path.open("wb") as file:
            np.save(file, np.arange(5))
        assert_refused(path, "not a readable file of an agent")
        for text in ("", "an agent\n", "{}", '{"format": 1}', "PK\x03\x04"):
            path.write_text(text)
            assert_refused(path, "not a readable file of an agent")

    @pytest.mark.parametrize("text", ["", "[]", "{}", "3", "null", '{"format": 1}', "NaN"])
    def test_other_texts(self, path: Path, text: str):
        np.savez(path, **(arrays_in(path.read_bytes()) | {"agent": np.array(text)}))
        assert_refused(path, "not a readable file of an agent")

    @pytest.mark.parametrize("name", ["agent", "leaf_3", "open_states", "tally_recent", "more"])
    def test_nothing_is_unpickled(self, path: Path, name: str, tmp_path: Path):
        class Trap:
            def __reduce__(self) -> tuple[Any, ...]:
                return Path.touch, (tmp_path / "unpickled",)

        arrays = arrays_in(path.read_bytes()) | {name: np.array([Trap()], dtype=object)}
        np.savez(path, allow_pickle=True, **arrays)
        assert_refused(path)
        assert not (tmp_path / "unpickled").exists()


WRONG: dict[str, Change] = {
    "no declaration": lambda head, arrays: head.pop("declaration"),
    "no seed": lambda head, arrays: head["declaration"].pop("seed"),
    "more declared": lambda head, arrays: head["declaration"].update(more=1),
    "three parameters": lambda head, arrays: head["declaration"]["parameters"].pop("margin"),
    "a schedule of two": lambda head, arrays: head["declaration"]["parameters"]["margin"].pop(),
    "no parameters": lambda head, arrays: head["declaration"].pop("parameters"),
    "a list of parameters": lambda head, arrays: head["declaration"].update(
        parameters=list(head["declaration"]["parameters"].values())
    ),
    "three hyperparameters": lambda head, arrays: as_earlier(head).pop(),
    "five hyperparameters": lambda head, arrays: as_earlier(head).append(0.0),
    "both": lambda head, arrays: head["declaration"].update(hyperparameters=[1, 1, 1, 1]),
    "another optimism": lambda head, arrays: head["declaration"].update(optimism={"bonus": "x"}),
    "no tally": lambda head, arrays: head.pop("tally"),
    "no leaves": lambda head, arrays: head.pop("leaves"),
    "fewer leaves": lambda head, arrays: head.update(leaves=3),
    "more leaves": lambda head, arrays: head.update(leaves=300),
    "no account": lambda head, arrays: head.pop("account"),
    "a leaf is missing": lambda head, arrays: arrays.pop("leaf_3"),
    "a leaf is shorter": lambda head, arrays: arrays.update(leaf_1=arrays["leaf_1"][:2]),
    "a leaf of another type": lambda head, arrays: arrays.update(leaf_0=np.array(1.0)),
    "no open episode": lambda head, arrays: arrays.pop("open_states"),
    "no recent ones": lambda head, arrays: arrays.pop("tally_recent"),
    "rewards are missing": lambda head, arrays: arrays.pop("declared_rewards"),
    "an endless belief": lambda head, arrays: head["account"]["constraints"][0].update(
        optimistic=10**400
    ),
    "another algorithm": lambda head, arrays: head["declaration"].update(algorithm="vanilla-dual"),
}
DO_NOT_FIT: dict[str, Change] = {
    "thresholds are missing": lambda head, arrays: arrays.pop("declared_thresholds"),
    "a shorter start": lambda head, arrays: arrays.update(declared_initial=np.array([0.5, 0.5])),
    "other sizes": lambda head, arrays: head["declaration"].update(sizes=[2, 3, 4, 2]),
    "fewer observed": lambda head, arrays: arrays.update(open_observed=np.zeros((0, 3))),
    "fewer means": lambda head, arrays: arrays.update(tally_mean=np.zeros(1)),
    "infinitely many missed": lambda head, arrays: arrays.update(
        tally_missed=np.full(arrays["tally_missed"].shape, np.inf)
    ),
    "fewer sums": lambda head, arrays: arrays.update(tally_always=np.zeros((4, 2, 3))),
    "sums that cannot be": lambda head, arrays: arrays.update(tally_always=-arrays["tally_always"]),
    "sums of more episodes": lambda head, arrays: arrays.update(
        tally_always=arrays["tally_always"] + 1
    ),
    "more episodes": lambda head, arrays: head["tally"].update(episodes=500),
    "waiting ones are missing": lambda head, arrays: arrays.pop("waiting_states"),
    "waiting ones of no steps": lambda head, arrays: arrays.update(
        waiting_steps=0 * arrays["waiting_steps"]
    ),
    "waiting states that are none": lambda head, arrays: arrays.update(
        waiting_states=9 + arrays["waiting_states"]
    ),
    "waiting ones that are longer": lambda head, arrays: arrays.update(
        waiting_steps=1 + arrays["waiting_steps"]
    ),
    "no numbers were observed in waiting ones": lambda head, arrays: arrays.update(
        waiting_observed=np.nan * arrays["waiting_observed"]
    ),
    "an action that is none": lambda head, arrays: arrays.update(open_action=np.array(9)),
}


class TestDamaged:
    @pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
    def test_parts(self, path: Path, change: Change):
        edit(path, change)
        assert_refused(path, "not a readable file of an agent")

    @pytest.mark.parametrize("change", DO_NOT_FIT.values(), ids=DO_NOT_FIT)
    def test_parts_that_do_not_fit(self, path: Path, change: Change):
        edit(path, with_waiting)
        cmdpax.Agent.load(path)
        edit(path, change)
        assert_refused(path, "not a readable file of an agent")

    def test_an_unchanged_edit_is_no_damage(self, path: Path, agent: cmdpax.Agent):
        edit(path, lambda head, arrays: None)
        assert snapshot(cmdpax.Agent.load(path)) == snapshot(agent)

    @pytest.mark.parametrize("damage", [damages.truncate, damages.empty, damages.flip])
    def test_files(self, path: Path, damage: Callable[[Path], None]):
        damage(path)
        assert_refused(path, "not a readable file of an agent")

    def test_cut_off_anywhere(self, path: Path, content: bytes):
        places = {*range(0, len(content), 97), *range(len(content) - 64, len(content))}
        for place in places:
            path.write_bytes(content[:place])
            with pytest.raises(cmdpax.FileError, match="not a readable file of an agent"):
                cmdpax.Agent.load(path)

    @pytest.mark.whole
    def test_other_bytes_anywhere(self, path: Path, content: bytes, agent: cmdpax.Agent):
        """Found, or harmless: in what zip files say besides, such as dates."""
        generator, whole, found = np.random.default_rng(1), snapshot(agent), 0
        for place in generator.integers(0, len(content), 1200):
            changed = bytearray(content)
            changed[place] ^= 1 << int(generator.integers(8))
            path.write_bytes(changed)
            try:
                assert snapshot(cmdpax.Agent.load(path)) == whole
            except cmdpax.FileError:
                found += 1
        assert found > 900

    def test_other_digits_in_shapes(self, path: Path, content: bytes, agent: cmdpax.Agent):
        """Every digit of every shape: of 200 recent episodes none would be left, unnoticed."""
        whole = snapshot(agent)
        for place in digits_of_shapes(content):
            for digit in b"0123456789":
                changed = bytearray(content)
                changed[place] = digit
                path.write_bytes(changed)
                try:
                    assert snapshot(cmdpax.Agent.load(path)) == whole
                except cmdpax.FileError:
                    assert digit != content[place]

    def test_what_comes_after_it(self, path: Path, content: bytes, agent: cmdpax.Agent):
        path.write_bytes(content + b"more")
        try:
            found = cmdpax.Agent.load(path)
        except cmdpax.FileError:
            return
        assert snapshot(found) == snapshot(agent)


def digits_of_shapes(content: bytes) -> list[int]:
    """Where the headers of arrays say their shapes."""
    places = []
    for match in re.finditer(rb"'shape': \(([0-9, ]*)\)", content):
        begin, end = match.span(1)
        places += [place for place in range(begin, end) if content[place : place + 1].isdigit()]
    assert len(places) > 20
    return places
