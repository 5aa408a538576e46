"""Files of earlier versions are opened, and what goes on from them has the numbers of then."""

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import cmdpax

EARLIER = Path(__file__).parent / "earlier"
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import earlier_files  # noqa: E402
import fixed_systems  # noqa: E402
import named_arrays  # noqa: E402

PLANNED = re.compile(r"policy|multiplier|optimistic|price")
"""What follows from plans, which a later version may make better."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EARLIER, tmp_path / "earlier"))


def assert_as_then(
    found: named_arrays.Arrays, group: str, numbers: Path = EARLIER / "numbers.npz"
) -> None:
    with np.load(numbers) as archive:
        then = {name: archive[name] for name in archive.files if name.startswith(f"{group}/")}
    assert len(then) > 5
    differences = named_arrays.compare_all(then, found)
    assert [name for name, one in differences.items() if not one.passes(name)] == []


def do_as_then(agent: cmdpax.Agent, place: Path, then: dict[str, np.ndarray]) -> None:
    """Go on to the twentieth episode, with the actions that the agent gave then."""
    system = fixed_systems.System(
        cmdpax.load(place / "model.npz"), then["agent/uniforms"], **earlier_files.UNITS
    )
    given = iter([agent.action, *then["agent/actions"].tolist()])
    while agent.num_episodes < 20:
        episode, step = agent.episode, agent.step
        if agent.expects == "start":
            agent.start(system.first(episode))
        elif agent.expects == "end" or step == system.length(episode):
            agent.end()
        elif agent.expects == "act":
            agent.act(agent.state)
        else:
            action = agent.declaration.action_index(next(given))
            action = 0 if (episode + step) % 11 == 0 else action
            state = agent.declaration.state_index("the state", agent.state)
            agent.observe(*system.step(episode, step, state, action), action=action)
    assert list(given) == []


def test_a_manifest_repeats_its_runs(folder: Path) -> None:
    assert_as_then(earlier_files.repeated(folder), "history")


@pytest.mark.whole
def test_a_checkpoint_goes_on_or_says_why_not(folder: Path) -> None:
    """Versions and the processor must be those that wrote it."""
    refused = ""
    try:
        assert_as_then(earlier_files.resumed(folder), "checkpoint")
    except cmdpax.FileError as error:
        refused = str(error)
    assert not refused or (
        "is the checkpoint of other runs" in refused and "delete this one" in refused
    )


def test_an_agent_goes_on_in_the_middle_of_its_episode(folder: Path) -> None:
    agent = cmdpax.Agent.load(folder / "agent.npz")
    assert (agent.episode, agent.step, agent.expects) == (13, 1, "observe")
    assert agent.declaration.parameters["margin"] == [0.01, 0.0, 0.0]
    assert_as_then(earlier_files.continued(folder, agent), "agent")


def test_an_agent_that_plans_goes_on_in_the_middle_of_its_episode(folder: Path) -> None:
    """Names, units and two constraints; it had no margins, no baseline and no account for all days.

    What it holds is what it was then, and what is done then counts as it did. Plans that it makes
    from then on are those of this version. What is new begins anew, or is as if the user had said
    nothing of it.
    """
    place = folder / "replanning"
    agent = cmdpax.Agent.load(place / "agent.npz")
    assert (agent.episode, agent.step, agent.expects) == (13, 1, "observe")
    assert (agent.state, agent.action) == ("high", "work")
    assert [one.name for one in agent.account] == ["energy", "comfort"]
    declared = agent.declaration
    assert declared.units.declared.all()
    assert (declared.baseline, declared.confidence, declared.asks) == (None, None, False)
    np.testing.assert_array_equal(declared.margins, [0, 0])
    for added in ("random_visits", "doubt"):
        assert declared.parameters[added] == 0  # which it did not know
    assert declared.parameters["posterior_weight"] == 0.35  # not what agents choose today
    assert (agent.mixture, agent.frozen, agent.plays_plan) == (None, False, True)
    np.testing.assert_array_equal(agent.plan, agent.policy)
    assert (agent.account.playing, agent.account[0].always.size) == ((), 0)
    with np.load(place / "numbers.npz") as archive:
        then = dict(archive)
    np.testing.assert_allclose(agent.policy, then["agent/saved/policy"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(agent.multipliers, then["agent/saved/multipliers"], atol=1e-12)
    do_as_then(agent, place, then)
    named = named_arrays.chosen(agent, named_arrays.AGENT)
    found = named_arrays.named_arrays("agent", {"end": named})
    counted = {
        name: then[name]
        for name in then
        if name.startswith("agent/end/") and not PLANNED.search(name)
    }
    assert len(counted) > 25
    differences = named_arrays.compare_all(counted, found)
    assert [name for name, one in differences.items() if not one.passes(name)] == []
    assert agent.account[0].always.size == 8  # of its twenty episodes
    agent.save(place / "agent.npz")
    assert cmdpax.Agent.load(place / "agent.npz").num_episodes == 20
    for look in (agent.model, agent.uncertainty, agent.explain("mid"), agent.planning):
        assert str(look)


@pytest.mark.whole
def test_a_sweep_is_resumed_and_keeps_its_runs(folder: Path) -> None:
    before = {path: path.read_bytes() for path in (folder / "sweep").rglob("*.parquet")}
    assert_as_then(earlier_files.enlarged(folder), "sweep")
    assert all(path.read_bytes() == content for path, content in before.items())
