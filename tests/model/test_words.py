"""Names, units and senses: what is "at most" is stored as before, and read as it was said."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import strategies
from cmdpax.model.words import PLAIN, SENSES, Words
from furnace import ENERGY, HORIZON, QUALITY, STATES, furnace


def test_inside_everything_is_at_least() -> None:
    cmdp = furnace()
    np.testing.assert_array_equal(cmdp.constraint_rewards[0, 0], 20.0 - ENERGY)
    np.testing.assert_array_equal(cmdp.constraint_rewards[1, 0], QUALITY)
    assert cmdp.thresholds.tolist() == [HORIZON * 20.0 - 40.0, 2.0]
    assert cmdp.bounds.tolist() == [40.0, 2.0]
    assert cmdp.initial.tolist() == [1.0, 0.0, 0.0]


def test_both_senses_are_those_of_the_same_model_by_hand() -> None:
    """Energy as a reward of its own, -energy at least -40, is the same problem."""
    cmdp = furnace()
    by_hand = furnace(
        constraint_rewards=[-ENERGY, QUALITY],
        thresholds=[-40.0, 2.0],
        senses=None,
        units=None,
    )
    found, expected = cmdpax.solve(cmdp), cmdpax.solve(by_hand)
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    assert found.multipliers == pytest.approx(expected.multipliers, abs=1e-9)
    assert found.constraint_values == pytest.approx([-1, 1] * expected.constraint_values, abs=1e-9)
    assert found.slack == pytest.approx(expected.slack, abs=1e-9)
    assert found.slater_gap == pytest.approx(expected.slater_gap, abs=1e-9)
    reached = cmdpax.evaluate(cmdp, found.policy)
    assert reached.constraint_values == pytest.approx(found.constraint_values, abs=1e-9)
    assert reached.constraint_values[0] == pytest.approx(
        float((reached.occupancy * ENERGY).sum()), abs=1e-9
    )
    saddle, same = (
        cmdpax.solve_regularized(model, regularization=0.05) for model in (cmdp, by_hand)
    )
    assert saddle.constraint_values == pytest.approx([-1, 1] * same.constraint_values, abs=1e-7)
    iterates, same_iterates = (
        cmdpax.iterate(model, "primal-dual", num_iterations=5, step_size=0.01)
        for model in (cmdp, by_hand)
    )
    np.testing.assert_allclose(
        iterates.constraint_values, [-1, 1] * same_iterates.constraint_values, atol=1e-9
    )
    policies = np.stack([found.policy, np.full_like(found.policy, 1 / 3)])
    account, same_account = (cmdpax.account(model, policies) for model in (cmdp, by_hand))
    np.testing.assert_allclose(account.violation, same_account.violation, atol=1e-9)
    np.testing.assert_allclose(
        account.strong_regret.constraints, same_account.strong_regret.constraints, atol=1e-9
    )
    assert account.constraint_values[0] == pytest.approx(found.constraint_values, abs=1e-9)


def test_a_frontier_of_a_limit_ascends_in_its_units() -> None:
    cmdp = furnace()
    found = cmdpax.frontier(cmdp, constraint="energy", num_points=8)
    assert np.all(np.diff(found.thresholds) > 0)
    assert found.constraint == 0
    assert not found.feasible[0]  # the tightest limit comes first
    assert found.feasible[1:].all()
    assert found.thresholds[0] < found.largest_feasible < found.thresholds[1]
    for limit, value in zip(found.thresholds[1:], found.value[1:], strict=True):
        exact = cmdpax.solve(cmdp.replace(thresholds=[limit, 2.0]))
        assert value == pytest.approx(exact.value, abs=1e-7)
    given = cmdpax.frontier(cmdp, constraint=0, thresholds=[40.0, 30.0])
    assert given.thresholds.tolist() == [40.0, 30.0]
    assert str(given).splitlines()[:2] == [
        "energy at most, and the best profit [EUR]",
        f"40 kWh: {given.value[0]:.6g} EUR",
    ]
    assert given.value[0] > given.value[1]
    with pytest.raises(cmdpax.ParameterError, match="no constraint 'energie'; did you mean 'ener"):
        cmdpax.frontier(cmdp, constraint="energie")


def test_printed_in_words() -> None:
    cmdp = furnace()
    assert str(cmdp).splitlines() == [
        "CMDP(S=3, A=3, H=6, I=2, dense)",
        "maximise profit [EUR]",
        "energy at most 40 kWh",
        "quality at least 2",
    ]
    lines = str(cmdpax.solve(cmdp)).splitlines()
    assert lines[0].startswith("profit: ")
    assert " EUR, certified to " in lines[0]
    assert lines[1].startswith("energy: 40 kWh, at most 40; each kWh more would earn ")
    assert lines[1].endswith(" EUR, at the margin")
    assert lines[2].startswith("quality: ")


def test_an_infeasible_limit_says_what_to_change() -> None:
    with pytest.raises(cmdpax.InfeasibleError) as raised:
        cmdpax.solve(furnace(thresholds=[5.0, 2.0]))
    sentence = str(raised.value)
    assert "energy being the worst: it must be at most 5 kWh, and " in sentence
    least = float(sentence.partition("and ")[2].partition(" kWh is the least")[0])
    raised = float(sentence.rpartition("raise its limit by ")[2].removesuffix(" kWh."))
    assert least - 5 <= raised + 1e-4
    cmdpax.solve(furnace(thresholds=[5 + raised, 2.0]))  # it is enough
    with pytest.raises(cmdpax.InfeasibleError):
        cmdpax.solve(furnace(thresholds=[least - 1e-3, 2.0]))
    with pytest.raises(cmdpax.InfeasibleError, match="lower its threshold by") as other:
        cmdpax.solve(furnace(thresholds=[1000.0, 20.0]))
    assert "quality being the worst: it must be at least 20, and " in str(other.value)
    with pytest.raises(cmdpax.InfeasibleError, match="alone is not enough; relax every limit"):
        cmdpax.solve(furnace(thresholds=[1.0, 20.0]))


def test_names_and_units_do_not_matter_for_the_fingerprint_but_senses_do() -> None:
    cmdp = furnace()
    renamed = furnace(
        state_names=None, action_names=None, constraint_names=None, units=None, initial=0
    )
    assert renamed.fingerprint == cmdp.fingerprint
    assert cmdp.with_arrays().fingerprint != cmdp.fingerprint  # the same arrays, all "at least"
    flags = np.ones((3, 3), bool)
    assert furnace(available=flags).fingerprint == cmdp.fingerprint  # all are available
    flags[0, 2] = False
    assert furnace(available=flags).fingerprint != cmdp.fingerprint


def test_models_with_other_names_stack() -> None:
    first, second = furnace(), furnace(state_names=["a", "b", "c"], initial="b")
    assert jax.tree.structure(first) == jax.tree.structure(second)
    stacked = jax.tree.map(lambda *arrays: np.stack(arrays), first, second)
    assert stacked.words == PLAIN
    assert stacked.rewards.shape == (2, 1, 3, 3)


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@given(
    names=st.lists(
        st.text(min_size=1, max_size=8).filter(str.strip), min_size=3, max_size=3, unique=True
    ),
    sense=st.sampled_from(["at least", "at most"]),
)
def test_words_survive_files(
    suffix: str, names: list[str], sense: str, tmp_path_factory: Any
) -> None:
    path = tmp_path_factory.mktemp("words") / f"model{suffix}"
    try:
        path_safe = [name.encode() for name in names]
    except UnicodeEncodeError:  # halves of characters, which no file can hold
        return
    assert path_safe
    cmdp = furnace(state_names=names, initial=0, senses=[sense, "at most"])
    cmdpax.save(cmdp, path)
    found = cmdpax.load(path)
    assert found.words == cmdp.words
    assert found.fingerprint == cmdp.fingerprint
    np.testing.assert_array_equal(found.bounds, cmdp.bounds)


def test_replaced_in_the_senses_of_the_model() -> None:
    cmdp = furnace()
    tighter = cmdp.replace(thresholds=[30.0, 2.0])
    assert tighter.bounds.tolist() == [30.0, 2.0]
    assert tighter.words == cmdp.words
    assert cmdp.replace(constraint_rewards=[[ENERGY], [QUALITY]]).fingerprint == cmdp.fingerprint
    free = cmdp.replace(constraint_rewards=[], thresholds=[])
    assert free.num_constraints == 0
    assert free.words.state_names == STATES
    np.testing.assert_array_equal(cmdp.signals[:, 0], [ENERGY, QUALITY])
    same = cmdp.replace(constraint_rewards=cmdp.signals, thresholds=cmdp.bounds)
    assert same.fingerprint == cmdp.fingerprint
    assert cmdp.replace(state_names=["x", "y", "z"]).words.state(2) == "z"


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"state_names": ["a", "b"], "initial": 0},
        "the number of state_names is 2, that of states 3; give one for each.",
    ),
    ({"state_names": ["a", "b", "a"], "initial": 0}, "state_names has 'a' twice"),
    ({"action_names": "abc"}, "action_names is 'abc', it must be a list of 3 texts."),
    ({"action_names": [1, 2, 3]}, "action_names[0] is 1, it must be a text of 1 to 200"),
    ({"units": {"energi": "kWh"}}, "units has 'energi'; did you mean 'energy'? known: energy,"),
    ({"units": ["EUR"]}, "units is ['EUR'], it must be a mapping from names to units, or a list"),
    ({"objective_name": "energy"}, "objective_name is 'energy', which is also a constraint's"),
    ({"initial": "cold"}, "initial is 'cold'; known: busy, hot, idle."),
    ({"initial": "idle", "state_names": None}, "initial is 'idle', but the states have no names"),
    ({"senses": ["at most"]}, "the number of senses is 1, that of thresholds 2; give one for all"),
    ({"senses": ["at most", "less"]}, "a sense is 'less'; did you mean 'at least'? known:"),
]


@pytest.mark.parametrize(("changes", "sentence"), WRONG)
def test_words_that_do_not_fit(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError) as raised:
        furnace(**changes)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    "words",
    ['"text"', "[1, 2]", '{"colour": 1}', '{"senses": ["at most"]}', '{"ceilings": [1e999, 1]}',
     '{"senses": ["at most", "at most"], "ceilings": [1]}', '{"state_names": ["a"]}', "nonsense"],
)  # fmt: skip
def test_words_in_files_are_checked(words: str, tmp_path: Path) -> None:
    cmdpax.save(furnace(), tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as archive:
        arrays = dict(archive)
    np.savez(tmp_path / "model.npz", **(arrays | {"words": np.array(words)}))
    if words == '{"ceilings": [1e999, 1]}':  # ceilings of what is "at least" are not read
        assert cmdpax.load(tmp_path / "model.npz").words.ceilings is None
        return
    with pytest.raises(cmdpax.CmdpaxError) as raised:
        cmdpax.load(tmp_path / "model.npz")
    assert str(raised.value).endswith(".")


# ------------------------------------------------------------------------------------- properties


@given(cmdp=strategies.cmdps(), data=st.data())
def test_turning_twice_changes_nothing(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    count = cmdp.num_constraints
    senses = data.draw(st.lists(st.sampled_from(SENSES), min_size=count,
                                max_size=count))  # fmt: skip
    words = Words(senses=tuple(senses), ceilings=tuple(float(i) for i in range(count)))
    values = np.random.default_rng(0).normal(size=(3, count))
    turned = words.turn(values, 7)
    np.testing.assert_allclose(words.turn(turned, 7), values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        words.slack(turned, words.turn(cmdp.thresholds, 7)), values - cmdp.thresholds, atol=1e-12
    )


# --------------------------------------------------------------------------------------- rounding


def test_single_precision_is_enough() -> None:
    generator = np.random.default_rng(0)
    rows = generator.dirichlet(np.ones(40), (3, 40)).astype(np.float32)
    assert np.abs(rows.astype(float).sum(axis=-1) - 1).max() > 1e-8
    cmdp = cmdpax.from_arrays(rows, np.ones((40, 3), np.float32), horizon=4, initial=0)
    assert np.abs(cmdp.transitions.sum(axis=-1) - 1).max() <= 1e-8
    policy = generator.dirichlet(np.ones(3), (4, 40)).astype(np.float32)
    assert cmdpax.evaluate(cmdp, policy).value == pytest.approx(4.0, abs=1e-6)


def test_rewards_that_leave_their_range_by_rounding_are_clipped() -> None:
    cmdp = furnace(constraint_rewards=[QUALITY], thresholds=[2.0], senses=None, units=None,
                   constraint_names=None)  # fmt: skip
    nearly = cmdp.replace(rewards=np.array([[[1 + 1e-7, 0.5, -1e-8]] * 3]))
    found = cmdpax.rescale(nearly)
    assert found.scale.tolist() == [1.0, 1.0]
    assert found.cmdp.rewards.max() == 1.0
    assert found.cmdp.rewards.min() == 0.0


# ------------------------------------------------------------------------------------ rescaling


def test_rescaled_results_map_back_to_the_users_senses() -> None:
    cmdp = furnace()
    rescaling = cmdpax.rescale(cmdp)
    signals = (rescaling.cmdp.rewards, rescaling.cmdp.constraint_rewards)
    assert all(signal.min() >= 0 and signal.max() <= 1 for signal in signals)
    solution, exact = cmdpax.solve(rescaling.cmdp), cmdpax.solve(cmdp)
    assert float(rescaling.value(solution.value)) == pytest.approx(exact.value, abs=1e-9)
    assert rescaling.constraint_values(solution.constraint_values) == pytest.approx(
        exact.constraint_values, abs=1e-9
    )
    assert rescaling.multipliers(solution.multipliers) == pytest.approx(exact.multipliers, abs=1e-9)
    factors, offsets = rescaling.outward(HORIZON)
    inside = np.append(solution.value, rescaling.cmdp.words.turn(solution.constraint_values, 6))
    outside = np.append(exact.value, exact.constraint_values)
    assert factors * inside + offsets == pytest.approx(outside, abs=1e-9)
