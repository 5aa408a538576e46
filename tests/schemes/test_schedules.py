import re

import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from cmdpax import schedules


def test_a_constant_never_changes() -> None:
    np.testing.assert_array_equal(schedules.values(schedules.constant(0.3), [1, 10, 10**6]), 0.3)
    np.testing.assert_array_equal(schedules.values(0.3, [1, 10]), 0.3)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (schedules.power(0.3, 0.5), [0.3, 0.3 / 2, 0.03]),
        (schedules.power(2.0, 1.0, offset=3), [0.5, 2 / 7, 2 / 103]),
        (schedules.power(0.1, -0.5), [0.1, 0.2, 1.0]),
        (schedules.power(1.0, 1.0, offset=-0.5), [2.0, 1 / 3.5, 1 / 99.5]),
    ],
)
def test_powers_of_the_episode(schedule: schedules.Schedule, expected: list[float]) -> None:
    np.testing.assert_allclose(schedules.values(schedule, [1, 4, 100]), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.3*k^-0.2", schedules.power(0.3, 0.2)),
        (" 0.3 * (k + 10) ^ -0.2 ", schedules.power(0.3, 0.2, 10)),
        ("3*(k-.5)^-1", schedules.power(3.0, 1.0, -0.5)),
        ("1e-3*k^+2e-1", schedules.power(1e-3, -0.2)),
        ("2.*k^0", schedules.power(2.0, 0.0)),
    ],
)
def test_written_schedules(text: str, expected: schedules.Schedule) -> None:
    assert schedules.parse_schedule("step_size", text) == expected


@pytest.mark.parametrize(
    "text", ["", "big", "0.3", "k^-0.2", "-0.3*k^-0.2", "0.3*k**-0.2", "0.3*k^-0.2 + 1", "0.3*K^1"]
)
def test_what_is_no_written_schedule(text: str) -> None:
    sentence = f"margin is {text!r}, it must be a number or a schedule such as 0.3*k^-0.2 or"
    with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
        schedules.parse_schedule("margin", text)


def test_a_written_offset_must_leave_the_first_episode() -> None:
    with pytest.raises(cmdpax.ParameterError, match="it must exceed -1"):
        schedules.parse_schedule("step_size", "0.3*(k-1)^-0.2")


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("offset", [0.0, 7.5])
def test_jitted_code_sees_the_same_numbers(offset: float) -> None:
    schedule = schedules.power(0.3, 0.2, offset)
    traced = schedules.Schedule(*(jnp.asarray(number, float) for number in schedule))
    for k in (1, 2, 50, 10**6):
        found = schedules.value_at(traced, jnp.int32(k))
        assert float(found) == pytest.approx(0.3 * (k + offset) ** -0.2, rel=1e-14)


@pytest.mark.parametrize("offset", [-1.0, -2.0, float("nan")])
def test_the_first_episode_must_have_a_value(offset: float) -> None:
    with pytest.raises(cmdpax.ParameterError, match="it must exceed -1"):
        schedules.power(0.1, 0.5, offset)


@pytest.mark.parametrize("value", ["0.1", True, None, float("inf"), np.array([0.1, 0.2])])
def test_neither_a_number_nor_a_schedule(value: object) -> None:
    sentence = f"step_size is {value!r}, it must be a finite number or a schedule"
    with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
        schedules.as_schedule("step_size", value)  # type: ignore[arg-type]


def test_numpy_numbers_are_numbers() -> None:
    assert schedules.as_schedule("step_size", np.float32(0.5)) == (0.5, 0.0, 0.0)
    assert schedules.as_schedule("step_size", 1) == (1.0, 0.0, 0.0)
