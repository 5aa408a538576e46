"""How a claim is decided: by the 95 % interval of what was measured."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from cmdpax.intervals import Interval, interval
from cmdpax.paper.reproduction.verdict import Claim, Quantity, as_markdown, as_record

CLEAR, VAGUE, OPPOSITE = [-1.0, -1.1, -0.9], [-1.0, 3.0, -2.0], [1.0, 1.1, 0.9]


def quantity(*values: list[float], side: str = "below", bound: float = 0.0) -> Quantity:
    """Measured on one CMDP after the other."""
    measured = {str(index): np.array(numbers) for index, numbers in enumerate(values)}
    return Quantity("something", measured, side, bound)  # type: ignore[arg-type]


def test_intervals_are_students() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, 7)
    expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
    found = interval(values)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_one_number_has_no_interval() -> None:
    found = interval([2.0])
    assert found == Interval(2.0, np.inf, 1)
    assert str(found) == "2"
    assert quantity([2.0]).decide(found) == "undecided"


@pytest.mark.parametrize(
    ("values", "side", "bound", "expected"),
    [
        (CLEAR, "below", 0.0, "holds"),
        (CLEAR, "above", 0.0, "fails"),
        (CLEAR, "above", -2.0, "holds"),
        (VAGUE, "below", 0.0, "undecided"),
        (VAGUE, "above", 0.0, "undecided"),
        (OPPOSITE, "below", 0.0, "fails"),
        ([0.0, 0.0], "below", 0.05, "holds"),
        ([0.0, 0.0], "below", 0.0, "undecided"),  # exactly on the bound
    ],
)
def test_decisions(values: list[float], side: str, bound: float, expected: str) -> None:
    found = quantity(values, side=side, bound=bound)
    assert found.decide(found.on("0")) == expected


def test_all_quantities_must_hold() -> None:
    clear, vague, opposite = (quantity(values) for values in (CLEAR, VAGUE, OPPOSITE))
    assert Claim(1, "", (clear, clear)).on("0") == "holds"
    assert Claim(1, "", (clear, vague)).on("0") == "undecided"
    assert Claim(1, "", (clear, vague, opposite)).on("0") == "fails"


def test_the_family_is_over_the_cmdps_means() -> None:
    """Many runs on one CMDP do not make the family's interval smaller."""
    found = quantity([1.0] * 50, [3.0] * 50)
    assert found.over_family() == interval([1.0, 3.0])
    claim = Claim(1, "", (quantity(CLEAR, CLEAR, OPPOSITE),))
    assert claim.num_held() == 2
    assert claim.over_family() == "undecided"


def test_what_is_written() -> None:
    claims = [
        Claim(4, "It is small.", (quantity(CLEAR, OPPOSITE),), "Because."),
        Claim(5, "It is large.", (quantity(CLEAR, CLEAR, side="above"),)),
    ]
    text = as_markdown(claims)
    assert "## 4. It is small.\n\n**holds**; over 2 CMDPs **undecided**, on 1 of them" in text
    assert "| something | below 0 | -1 ± 0.25 | 0 ± 13 | 1 |" in text
    assert "Because." in text
    record = as_record(claims[1])
    assert (record["first_cmdp"], record["family"], record["cmdps_held"]) == ("fails", "fails", 0)
    assert record["quantities"][0]["first_cmdp"]["mean"] == pytest.approx(-1.0)
