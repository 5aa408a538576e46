"""What `print` shows of a history and of an account: a few lines, in words and units."""

import dataclasses

import numpy as np
import pytest

import cmdpax
from cmdpax.intervals import interval
from cmdpax.model.words import PLAIN
from word_cases import office


@pytest.fixture(scope="module")
def history() -> cmdpax.History:
    return cmdpax.learn(office(), "vanilla-primal-dual", num_episodes=20, seeds=3)


def test_a_history_in_words(history: cmdpax.History) -> None:
    head, savings, energy, comfort, unsafe = str(history).splitlines()
    assert head == (
        "vanilla-primal-dual: 3 runs of 20 episodes; means ± 95 % half width over the runs"
    )
    last, regret = (
        interval(values[:, -1]) for values in (history.value, history.strong_regret.objective)
    )
    assert savings == (
        f"savings [EUR]: last {last}, optimum {history.optimum:.4g} EUR; strong regret {regret} EUR"
    )
    last = interval(history.constraint_values[:, -1, 0])
    regret = interval(history.strong_regret.constraints[:, -1, 0])
    assert energy == f"energy [kWh]: last {last}, at most 24 kWh; strong regret {regret} kWh"
    assert "comfort [h]: last " in comfort
    assert ", at least 3 h; strong regret " in comfort
    share = interval(100 * history.unsafe[:, history.unsafe_at.index(0.01)])
    assert unsafe == f"episodes unsafe by 1 % of a signal's range or more: {share} %"


def test_one_run_has_no_intervals() -> None:
    cmdp = cmdpax.environments.make("bandit")
    cmdp = cmdp.replace(constraint_names=None, objective_name=None, units=None)
    text = str(cmdpax.learn(cmdp, "vanilla-primal-dual", num_episodes=1))
    assert text.startswith("vanilla-primal-dual: 1 run of 1 episode\n")
    assert "±" not in text
    assert "value: last " in text
    assert "constraint 0: last " in text


def test_an_account_has_no_algorithm() -> None:
    model = office()
    found = cmdpax.account(model, [cmdpax.solve(model).policy] * 3)
    head, _, energy, comfort, unsafe = str(found).splitlines()
    assert head == "1 run of 3 episodes"
    assert energy.startswith("energy [kWh]: last ")
    assert ", at most 24 kWh; strong regret 0 kWh" in energy
    assert "comfort [h]: last 3, at least 3 h" in comfort
    assert unsafe == "episodes unsafe by 1 % of a signal's range or more: 0 %"


def test_no_constraints() -> None:
    cmdp = cmdpax.environments.make(
        "random", num_states=3, num_actions=2, horizon=3, num_constraints=0
    )
    lines = str(cmdpax.learn(cmdp, "vanilla-primal-dual", num_episodes=4)).splitlines()
    assert len(lines) == 2


def test_many_constraints_stay_a_few_lines(history: cmdpax.History) -> None:
    def wide(array: np.ndarray) -> np.ndarray:
        return np.repeat(array, 10, axis=-1)

    strong = history.strong_regret
    many = dataclasses.replace(
        history,
        words=PLAIN,
        constraint_values=wide(history.constraint_values),
        strong_regret=strong._replace(constraints=wide(strong.constraints)),
        thresholds=wide(history.thresholds),
        signs=wide(np.asarray(history.signs)),
    )
    lines = str(many).splitlines()
    assert len(lines) == 12
    assert "12 constraints with less regret are left out" in lines


def test_the_representation_is_a_line(history: cmdpax.History) -> None:
    assert repr(history) == "History(runs=3, K=20, I=2)"
