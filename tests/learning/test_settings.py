"""What `learn` warns of, refuses and reports."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from learning_cases import ALGORITHM, bandit, learn


class TestWarnings:
    def test_a_cap_below_what_the_theory_assumes(self):
        cmdp = bandit()
        needed = cmdp.horizon / cmdpax.slater_gap(cmdp).gap
        message = re.escape(f"below H/Ξ = {needed:.4g}")
        with pytest.warns(cmdpax.CmdpaxWarning, match=message) as caught:
            cmdpax.learn(cmdp, ALGORITHM, num_episodes=5, max_multiplier=0.99 * needed)
        assert len(caught) == 1
        assert Path(caught[0].filename) == Path(__file__)
        learn(cmdp, num_episodes=5, max_multiplier=1.01 * needed)  # no warning: it would raise

    def test_a_multiplier_at_its_cap_for_most_of_a_run(self):
        cmdp = bandit()
        unreachable = {"margin": 0.6, "step_size": 1.0, "max_multiplier": 3.0}
        with pytest.warns(cmdpax.CmdpaxWarning, match="constraint 0 was at max_multi") as caught:
            history = learn(cmdp, num_episodes=200, **unreachable)
        assert len(caught) == 1
        count = int((history.multipliers >= 3.0).sum(axis=1).max())
        assert f"in {count} of 200 episodes" in str(caught[0].message)
        half = learn(cmdp, num_episodes=int(1.5 * (200 - count)), **unreachable)
        assert (half.multipliers >= 3.0).any()  # reached, for less than half of the run


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ({"algorithm": "regularised-dual"}, "did you mean 'regularized-dual'?"),
            ({"optimism": "empiric"}, "did you mean 'empirical'?"),
            ({"observations": "means"}, "did you mean 'mean'?"),
            ({"precision": "singel"}, "did you mean 'single'?"),
            (
                {"algorithm": "vanilla-dual", "regularization": 0.1},
                "regularization is 0.1, it must be 0; use regularized-dual.",
            ),
            (
                {"algorithm": "vanilla-primal-dual", "regularization": 0.1},
                "regularization is 0.1, it must be 0; use regularized-primal-dual.",
            ),
            (
                {"algorithm": "regularized-dual", "regularization": 0},
                "regularization is 0, it must be positive; use vanilla-dual.",
            ),
            (
                {"step": 0.1},
                "regularized-primal-dual has no parameter 'step'; did you mean 'step_size'? known:",
            ),
            ({"num_episode": 3}, "has no parameter 'num_episode'; did you mean 'num_episodes'?"),
            ({"check_point": "c.npz"}, "did you mean 'checkpoint'?"),
            ({"observation": "mean"}, "did you mean 'observations'?"),
            ({"step_size": 10.0, "regularization": 0.2}, "is 2 at episode 1, it must not exceed 1"),
            (
                {"step_size": cmdpax.schedules.power(0.5, -1.0), "regularization": 0.5},
                "is 1.25 at episode 5, it must not exceed 1; lower either.",
            ),
            ({"step_size": 0.0}, "step_size is 0.0, it must be positive"),
            ({"step_size": float("nan")}, "step_size is nan, it must be a finite number"),
            ({"step_size": "big"}, "step_size is 'big', it must be a number or a schedule such as"),
            ({"step_size": [0.1]}, "step_size is [0.1], it must be a finite number or a schedule"),
            ({"regularization": -0.1}, "regularization is -0.1, it must not be negative"),
            ({"max_multiplier": 0}, "max_multiplier is 0, it must be a positive number"),
            ({"margin": float("inf")}, "margin is inf, it must be a finite number"),
            ({"num_episodes": 0}, "num_episodes is 0, it must be a whole number of at least 1"),
            ({"num_episodes": 2.5}, "num_episodes is 2.5, it must be a whole number"),
            ({"seeds": 0}, "seeds is 0, it must be a whole number of at least 1"),
            ({"seeds": []}, "seeds is [], it must be a number of runs or a list"),
            ({"seeds": [1, -1]}, "seeds is [1, -1], it must be a number of runs or a list"),
            ({"seeds": [0.5]}, "seeds is [0.5], it must be a number of runs or a list"),
            ({"seeds": 1.5}, "seeds is 1.5, it must be a number of runs or a list"),
            ({"seeds": "12"}, "seeds is '12', it must be a number of runs or a list"),
            ({"log": []}, "log is [], it must be true or false."),
            ({"potential": {}}, "potential is {}, it must be true or false."),
            ({"record": []}, "record must name episodes between 1 and 5"),
            ({"record": [0]}, "record must name episodes between 1 and 5"),
            ({"record": [6]}, "record must name episodes between 1 and 5"),
            ({"record": [1.5]}, "record must name episodes between 1 and 5"),
            ({"record": [None]}, "record must name episodes between 1 and 5"),
            ({"record": 0}, "record is 0, it must be a whole number of at least 1"),
            ({"record": 2.5}, "record is 2.5, it must be a whole number of at least 1"),
            ({"record": True}, "record is True, it must be a whole number of at least 1"),
            ({"record": "every"}, "record is 'every', it must be a whole number of at least 1"),
        ],
    )
    def test_bad_arguments(self, arguments: dict[str, Any], sentence: str):
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            learn(bandit(), **({"num_episodes": 5} | arguments))

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"bonus": "thoery"}, "optimism's bonus is 'thoery'; did you mean 'theory'?"),
            ({"rewards": "knwn"}, "optimism's rewards is 'knwn'; did you mean 'known'?"),
            ({"unvisited_rows": "zeros"}, "did you mean 'zero'?"),
            ({"scale": -1.0}, "optimism's scale is -1.0, it must not be negative"),
            ({"bonus": "theory"}, "the theory's bonuses need num_episodes"),
            ({"num_episodes": [None]}, "optimism's num_episodes is [None], it must be"),
            ({"num_episodes": 0}, "optimism's num_episodes is 0, it must be"),
            ({"failure_probability": 1.0}, "failure_probability is 1.0"),
        ],
    )
    def test_bad_optimism(self, changes: dict[str, Any], sentence: str):
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
            cmdpax.Optimism.empirical().replace(**changes)

    @pytest.mark.parametrize(
        "changes",
        [{"rewards": [[[2.0, 0.0, 0.5]]]}, {"constraint_rewards": [[[[-1.0, 0.9, 1.0]]]]}],
    )
    def test_rewards_outside_the_unit_interval_are_rescaled(self, changes):
        cmdp = bandit().replace(**changes)
        rescaling = cmdpax.rescale(cmdp)
        found, inside = learn(cmdp, num_episodes=5), learn(rescaling.cmdp, num_episodes=5)
        np.testing.assert_allclose(found.value, rescaling.value(inside.value), atol=1e-12)
        values = rescaling.constraint_values(inside.constraint_values)
        np.testing.assert_allclose(found.constraint_values, values, atol=1e-12)

    def test_an_infeasible_model(self):
        with pytest.raises(cmdpax.InfeasibleError):
            learn(bandit().replace(thresholds=[0.95]), num_episodes=5)

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"states": np.zeros((4, 1), int)}, "the log's states has shape (4, 1), expected"),
            ({"actions": np.zeros((3, 1), int)}, "the log's states has shape (4, 2), expected"),
            ({"rewards": np.zeros(4)}, "the log's rewards has shape (4,), expected (4, 1)"),
            ({"constraint_rewards": np.zeros((4, 2, 1))}, "expected (4, 1, 1)"),
            ({"actions": np.full((4, 1), 3)}, "the log's actions lie in [3, 3], the model has 0 …"),
            ({"states": np.tile([-1, 0], (4, 1))}, "the log's states lie in [-1, 0]"),
            ({"states": np.tile([0, -1], (4, 1))}, "the log's states[0, 1] is -1"),
        ],
    )
    def test_bad_logs(self, changes: dict[str, np.ndarray], sentence: str):
        good = cmdpax.Log(
            np.zeros((4, 2), int), np.zeros((4, 1), int), np.zeros((4, 1)), np.zeros((4, 1, 1))
        )
        cmdpax.replay(bandit(), ALGORITHM, good)
        with pytest.raises(cmdpax.ModelError, match=re.escape(sentence)):
            cmdpax.replay(bandit(), ALGORITHM, good._replace(**changes))

    def test_an_empty_log(self):
        empty = cmdpax.Log(*(np.zeros((0, *s)) for s in [(2,), (1,), (1,), (1, 1)]))
        with pytest.raises(cmdpax.ModelError, match="at least one episode"):
            cmdpax.replay(bandit(), ALGORITHM, empty)


def test_progress_is_reported_block_by_block() -> None:
    calls: list[tuple[int, int]] = []
    learn(num_episodes=1100, progress=lambda done, total: calls.append((done, total)))
    assert len(calls) >= 2
    assert calls == sorted(calls)
    assert calls[-1] == (1100, 1100)
    assert {total for _, total in calls} == {1100}


def test_progress_may_be_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    learn(num_episodes=20, progress=True)
    assert capsys.readouterr().out == ""
