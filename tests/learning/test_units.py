"""Learning in any units and senses: the learner sees [0, 1], users see what they declared."""

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import cmdpax
from furnace import ENERGY, PROFIT, QUALITY, furnace

ALGORITHMS = ("replanning", "regularized-primal-dual")


def learned(cmdp: cmdpax.CMDP, algorithm: str, **more: Any) -> cmdpax.History:
    return cmdpax.learn(cmdp, algorithm, num_episodes=60, seeds=2, log=True, **more)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.filterwarnings("ignore:max_multiplier")
def test_accounts_are_those_of_the_rescaled_model_in_the_users_units(algorithm: str) -> None:
    cmdp = furnace()
    rescaling = cmdpax.rescale(cmdp)
    plain = rescaling.cmdp.with_arrays()
    found, inside = learned(cmdp, algorithm), learned(plain, algorithm)
    np.testing.assert_array_equal(found.policy, inside.policy)
    np.testing.assert_allclose(found.value, rescaling.value(inside.value), atol=1e-9)
    of_costs = 20.0 * 6 - (inside.constraint_values[..., 0] * 19.0)  # 1 … 20 kWh a step
    np.testing.assert_allclose(found.constraint_values[..., 0], of_costs, atol=1e-9)
    assert found.thresholds == pytest.approx([40.0, 2.0])
    assert found.optimum == pytest.approx(cmdpax.solve(cmdp).value, abs=1e-9)
    scale = rescaling.scale
    for name in ("strong_regret", "weak_regret"):
        ours, theirs = getattr(found, name), getattr(inside, name)
        np.testing.assert_allclose(ours.objective, scale[0] * theirs.objective, atol=1e-8)
        np.testing.assert_allclose(ours.constraints, scale[1:] * theirs.constraints, atol=1e-8)
        assert np.array_equal(ours.maximum, ours.constraints.max(axis=-1))
    np.testing.assert_array_equal(found.unsafe, inside.unsafe)  # levels are shares of a range
    np.testing.assert_allclose(found.violation, scale[1:] * inside.violation, atol=1e-9)
    np.testing.assert_allclose(found.multipliers, rescaling.multipliers(inside.multipliers))
    assert found.words == cmdp.words


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.filterwarnings("ignore:max_multiplier")
def test_every_policy_is_accounted_for_as_evaluate_says(algorithm: str) -> None:
    cmdp = furnace()
    found = learned(cmdp, algorithm)
    for run in range(2):
        exact = cmdpax.evaluate(cmdp, found.policy[run])
        assert found.value[run, -1] == pytest.approx(exact.value, abs=1e-9)
        assert found.constraint_values[run, -1] == pytest.approx(exact.constraint_values, abs=1e-9)
        missing = np.array([1, -1]) * (exact.constraint_values - cmdp.bounds)
        assert found.violation[run, -1] == pytest.approx(missing, abs=1e-9)


@pytest.mark.filterwarnings("ignore:max_multiplier")
def test_logs_hold_what_was_observed_in_the_users_units() -> None:
    cmdp = furnace()
    history = learned(cmdp, "regularized-primal-dual")
    log = history.log.run(0)
    states, actions = log.states[:, :-1], log.actions
    np.testing.assert_allclose(log.rewards, PROFIT[states, actions], atol=1e-12)
    np.testing.assert_allclose(log.constraint_rewards[:, 0], ENERGY[states, actions], atol=1e-12)
    np.testing.assert_allclose(log.constraint_rewards[:, 1], QUALITY[states, actions], atol=1e-12)
    replayed = cmdpax.replay(cmdp, "regularized-primal-dual", log)
    np.testing.assert_allclose(replayed.policies[-1], history.policy[0], atol=1e-12)
    np.testing.assert_allclose(replayed.multipliers, history.multipliers[0], atol=1e-12)
    estimated = cmdpax.estimate(
        log,
        thresholds=cmdp.bounds,
        senses=cmdp.words.senses,
        stationary=True,
        state_names=cmdp.words.state_names,
        action_names=cmdp.words.action_names,
        constraint_names=cmdp.words.constraint_names,
    )
    assert estimated.bounds.tolist() == [40.0, 2.0]
    assert estimated.words.state_names == cmdp.words.state_names
    seen = estimated.words.turn_signals(estimated.constraint_rewards)[0, 0]
    assert np.isclose(seen, ENERGY).mean() > 0.5  # pairs that were tried have their own energy


def test_a_history_file_says_its_senses(tmp_path: Path) -> None:
    history = learned(furnace(), "replanning")
    history.save(tmp_path / "history.npz")
    with np.load(tmp_path / "history.npz") as archive:
        assert archive["signs"].tolist() == [-1.0, 1.0]
        assert '"energy"' in str(archive["words"])


def test_sweeps_rank_by_ranges_and_keep_curves_in_the_users_units(tmp_path: Path) -> None:
    cmdp = furnace()
    cmdpax.save(cmdp, tmp_path / "furnace.npz")
    other = cmdp.replace(thresholds=[50.0, 2.0], state_names=["a", "b", "c"])  # stacked with it
    cmdpax.save(other, tmp_path / "other.npz")
    results = cmdpax.sweep(
        {
            "num_episodes": 60,
            "seeds": 2,
            "record": 4,
            "cmdps": [{"file": str(tmp_path / name)} for name in ("furnace.npz", "other.npz")],
            "algorithms": [{"name": "replanning"}],
        },
        tmp_path / "results",
    )
    for model in (cmdp, other):
        history = cmdpax.learn(model, "replanning", num_episodes=60, seeds=2)
        rows = results.final.filter(polars.col("cmdp") == model.fingerprint).sort("seed")
        scale = cmdpax.rescale(model).scale
        strong = history.strong_regret
        of_objective, of_each = strong.objective[:, -1], strong.constraints[:, -1]
        found = {name: rows[name].to_numpy() for name in ("strong_objective", "strong_constraints")}
        np.testing.assert_allclose(found["strong_objective"], of_objective / scale[0])
        worst = (of_each / scale[1:]).max(axis=-1)  # hours and euros are not compared as they are
        np.testing.assert_allclose(found["strong_constraints"], worst)
        np.testing.assert_allclose(rows["unsafe_at_0.01"].to_numpy(), history.unsafe[:, 1])
        curves = results.curves.filter(polars.col("cmdp") == model.fingerprint).collect()
        last = curves.filter(polars.col("episode") == 60).sort("seed")
        np.testing.assert_allclose(last["value"].to_numpy(), history.value[:, -1])
        reached = np.array(last["constraint_values"].to_list())
        np.testing.assert_allclose(reached, history.constraint_values[:, -1])
