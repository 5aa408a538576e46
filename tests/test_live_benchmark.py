"""The benchmark of live agents: what a policy loses, and how methods play."""

import sys
from pathlib import Path

import numpy as np
import pytest

import cmdpax
from examples.systems import SYSTEMS

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import live
import live_methods


@pytest.fixture(scope="module")
def kiln() -> live_methods.System:
    return SYSTEMS["kiln"](seed=1)


def test_violations_are_priced_and_episodes_count_as_their_neighbours(
    kiln: live_methods.System,
) -> None:
    optimum = cmdpax.solve(kiln.model)
    account = live_methods.Account(kiln, 100, every=False)
    assert len(account.grid) < 60
    rule = live_methods.every_step(kiln, kiln.rule)
    random = live_methods.every_step(kiln, live_methods.uniform(kiln))
    for episode in range(100):
        account.enter(episode, lambda first=episode < 50: random if first else rule)
    losses, unsafe = account.losses(optimum)
    earned = [cmdpax.evaluate(kiln.model, policy) for policy in (random, rule)]
    missed = 1.7 - earned[0].constraint_values[1]  # of quality; the energy suffices
    priced = earned[0].value - missed * optimum.multipliers[1]
    assert losses[0] == pytest.approx(optimum.value - priced)
    assert losses[-1] == pytest.approx(optimum.value - earned[1].value)
    assert unsafe[0]
    assert not unsafe[-1]
    assert set(losses) == {losses[0], losses[-1]}
    turn = int(np.flatnonzero(~unsafe)[0])
    assert abs(turn - 50) <= 3  # half of the way between two episodes of the grid


def test_a_whole_log_leads_to_a_better_plan(kiln: live_methods.System) -> None:
    """Estimate and solve knows nothing at first, and a lot after 50 episodes."""
    run = next(live_methods.estimate_and_solve(kiln, 0, 100))
    losses, _ = run.account.losses(cmdpax.solve(kiln.model))
    assert losses[0] > 2 * losses[-1] > 0


def test_q_learning_plays_what_is_available() -> None:
    """And learns something: it loses less than random actions do."""
    system = SYSTEMS["admission"](seed=1)
    optimum = cmdpax.solve(system.model)
    runs = list(live_methods.q_learning(system, 0, 60))
    assert [run.penalty for run in runs] == list(live_methods.PENALTIES)
    best = min(runs, key=lambda run: run.account.losses(optimum)[0][-1])
    losses, _ = best.account.losses(optimum)
    assert losses[-1] < 0.8 * losses[0]
    assert not best.account.policy[:, ~system.available].any()


def test_tables_take_the_best_penalty_and_compare_with_the_best_rival(
    capsys: pytest.CaptureFixture[str],
) -> None:
    common = {"system": "kiln", "episodes": 200, "last": 1.0, "unsafe": 0.25, "penalty": None}
    rows = [{**common, "method": "agent", "seed": seed, "loss": 2.0 + seed} for seed in (0, 1)]
    rows += [
        {**common, "method": "Q-learning", "seed": 0, "loss": loss, "penalty": penalty}
        for penalty, loss in ((1.0, 5.0), (2.0, 9.0))
    ]
    rows.append({**common, "method": "safe rule", "seed": 0, "loss": 1.0})  # is no rival
    live.show(rows, 200)
    told = capsys.readouterr().out
    assert "| kiln | 2.5 ± 0.5 (25%) | 5 ± 0 (25%) | 1 ± 0 (25%) |" in told
    assert "agent / best rival: geometric mean 0.50" in told


def test_the_verdict_names_what_is_not_kept() -> None:
    cell = live.Cell(1.0, 0.0, 1.0, 0.1)
    cells = {(system, method): cell for system in live.SYSTEMS for method in live.METHODS}
    assert live.verdict(cells, [0.25, 1.0]) == "verdict: all promises are kept"
    told = live.verdict(cells | {("kiln", "agent, baseline"): cell._replace(unsafe=0.19)}, [1.2])
    for part in ("loses 1.20", "worse than the best rival on 1", "kiln 19.0%"):
        assert part in told
    del cells["robot", "agent"]
    assert live.verdict(cells, [0.4]).endswith("1 of 54 cells are missing")
