"""Costs that are further inside `info`, or that a function finds there."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.gymnasium import from_env, interact, make_env
from cmdpax.gymnasium.readers import as_numbers, entry, reader_of
from live_cases import make

# As MASA-Safe-RL's monitor puts it there, with the cost of a step beside sums.
MONITORED = {
    "labels": {"goal"},
    "constraint": {
        "type": "cmdp",
        "step": {"cost": 0.25, "violation": 0.0, "cum_cost": 1.5},
        "episode": {"cum_cost": 1.5, "satisfied": 1.0},
    },
    "parts": [1.0, np.array([2.0, 4.0])],
    "TimeLimit.truncated": True,
    "by number": {3: 7.0},
}


class Told:
    """Two places, and the same `info` after every step."""

    def __init__(self, info: dict[str, Any]) -> None:
        self.info = info

    def reset(self) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return action, 0.5, False, False, self.info


def agent(num_constraints: int = 1) -> cmdpax.Agent:
    """Two states and actions, three steps; costs up to 9."""
    arguments = {"thresholds": [4.0] * num_constraints, "constraint_ranges": (0, 9)}
    return make(num_states=2, num_actions=2, initial=0, senses="at most", **arguments)


@pytest.mark.parametrize(
    ("costs", "per_step"),
    [
        ("constraint.step.cost", [0.25]),
        ("constraint.step.violation", [0.0]),
        ("parts.0", [1.0]),
        ("parts.1", [2.0, 4.0]),
        ("parts.1.1", [4.0]),
        ("by number.3", [7.0]),
        ("TimeLimit.truncated", [1.0]),  # a name with a dot is a name
        (["constraint.step.cost", "parts.1.0"], [0.25, 2.0]),
        (("parts.1.0", "parts.0"), [2.0, 1.0]),
        (lambda info: info["constraint"]["step"]["cost"] * 4, [1.0]),
        (lambda info: "goal" in info["labels"], [1.0]),
        (lambda info: info["parts"][1], [2.0, 4.0]),
        ([lambda info: info["parts"][0], lambda s, a, t: 3.0, "parts.1.0"], [1.0, 3.0, 2.0]),
        ([[0.5, 0.5], lambda info: Fraction(1, 4)], [0.5, 0.25]),
    ],
)
def test_costs_inside_info(costs: Any, per_step: list[float]) -> None:
    found = interact(Told(MONITORED), agent(len(per_step)), 2, costs=costs)
    np.testing.assert_allclose(found.constraint_returns, [3 * np.array(per_step)] * 2)


def test_signals_are_reached_likewise() -> None:
    least = make(num_states=2, num_actions=2, initial=0, thresholds=[0.5])
    found = interact(Told(MONITORED), least, 1, signals="constraint.step.cost")
    assert found.constraint_returns.tolist() == [[0.75]]


@pytest.mark.parametrize(
    ("info", "costs", "sentence"),
    [
        (MONITORED, "toll", r"environment's info has no 'toll', it has \['TimeLimit.truncated', "),
        (
            MONITORED,
            "constraint",
            r"info\['constraint'\] is a dict with \['episode', 'step', 'type'\]; name one of "
            r"these, such as 'constraint.episode'.$",
        ),
        (
            MONITORED,
            "constraint.step",
            r"info\['constraint'\]\['step'\] is a dict with \['cost', 'cum_cost', 'violation'\]; ",
        ),
        (
            MONITORED,
            "constraint.step.costs",
            r"info\['constraint'\]\['step'\] has no 'costs', it has \['cost', 'cum_cost', 'viol",
        ),
        (MONITORED, "constraint.type", r"\['type'\] is 'cmdp', of the type str; it must be a num"),
        (MONITORED, "constraint.type.cost", r"\['type'\] is 'cmdp', .* and has no entry 'cost'"),
        (MONITORED, "parts.2", r"info\['parts'\] has no '2', it is a list of 2; name one of 0 … 1"),
        (MONITORED, "labels", r"info\['labels'\] is \{'goal'\}, of the type set; it must be a num"),
        (MONITORED, ["parts.1"], r"info\['parts'\]\['1'\] is array\(\[2., 4.\]\); it must be one"),
        (MONITORED, "parts", r"info\['parts'\] is \[1.0, array.* of the type list; it must be a"),
        (MONITORED, lambda info: None, r"costs\(info\) is None, of the type NoneType; it must be"),
        (
            MONITORED,
            lambda info: info["constraint"]["cost"],
            r"costs\(info\) raised KeyError: 'cost'; the environment's info has \['TimeLimit.trunc",
        ),
        (
            MONITORED,
            [lambda info: info["parts"][0]["cost"]],
            r"costs\[0\]\(info\) raised TypeError: 'float' object is not subscriptable; the envir",
        ),
        (
            MONITORED,
            [lambda s, a, t: {"cost": 1.0}],
            r"costs\[0\]\(state, action, next_state\) is a dict with \['cost'\]; name one of the",
        ),
        (MONITORED, lambda s, a: 0.0, "takes neither .state, action, next_state. nor info"),
        ({"cost": {"total": 1.0}}, None, r"info\['cost'\] is a dict with \['total'\]; .*'cost.to"),
        ({"costs": "high"}, None, r"info\['costs'\] is 'high', of the type str; it must be a numb"),
        ({"cost": {}}, None, r"info\['cost'\] is a dict with \[\]; name one of these.$"),
    ],
)
def test_an_entry_that_is_no_number_is_shown(info: Any, costs: Any, sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        interact(Told(info), agent(), 1, costs=costs)


def test_what_no_one_can_mean_is_short_in_a_sentence() -> None:
    many = {f"entry {index}": {} for index in range(500)}
    with pytest.raises(cmdpax.ParameterError) as raised:
        entry(many, "none")
    assert len(str(raised.value)) < 350


def test_functions_without_a_signature_take_a_step() -> None:
    """`max` takes anything, `dict.get` says nothing: they get state, action and next state."""
    assert reader_of(max, (3, 3))(0, 2, 1, {}).tolist() == [2.0]
    with pytest.raises(cmdpax.ParameterError, match=r"is .*, of the type"):
        as_numbers(object(), "a thing")


def test_a_table_has_no_info() -> None:
    env = make_env(cmdpax.environments.make("ring"))
    env.unwrapped.P = {0: {0: [(1.0, 0, 1.0, False)]}}
    with pytest.raises(cmdpax.ParameterError, match="one argument, but a table has no info; give"):
        from_env(env, 3, costs=lambda info: 1.0, limits=1, initial=0)
