"""`compare`, `worse` and `judge`, by themselves."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from cmdpax.paper.audit import Statement
from cmdpax.paper.audit.online import _binomial_tail
from cmdpax.paper.audit.statement import Worst, compare, judge, nothing_yet, worse

INF, NAN = float("inf"), float("nan")
pytestmark = pytest.mark.usefixtures("double_precision")


def statement(axes: str = "", **changes: object) -> Statement:
    return Statement("name", "place", "text", axes, lambda *_: (0.0, 0.0), **changes)  # type: ignore[arg-type]


def worst(left: float, right: float) -> Worst:
    return compare((left, right), 1)


class TestCompare:
    def test_the_smallest_slack_of_sides_that_broadcast(self) -> None:
        left = jnp.array([[0.0, 3.0, 1.0], [2.0, 2.0, 2.5]])
        found = compare((left, jnp.array([[5.0], [4.0]])), 6)
        assert (found.left, found.right, found.slack) == (2.5, 4.0, 1.5)
        assert (found.iteration, found.place, found.least_right) == (6, 5, 4.0)

    def test_the_first_of_equal_places(self) -> None:
        assert compare((jnp.array([0.0, 1.0, 1.0]), 2.0), 1).place == 1

    @pytest.mark.parametrize(
        ("left", "right"), [(NAN, 1.0), (1.0, NAN), (INF, INF), (-INF, -INF), (INF, 1.0)]
    )
    def test_undefined_differences_are_the_worst(self, left: float, right: float) -> None:
        found = compare((jnp.array([0.0, left]), jnp.array([-9.0, right])), 1)
        assert found.slack == -INF
        assert found.place == 1

    def test_an_infinite_right_side_is_no_trouble(self) -> None:
        assert worst(7.0, INF).slack == INF
        assert compare((jnp.array([7.0, 0.0]), jnp.array([INF, 1.0])), 1).slack == 1.0


class TestWorse:
    def test_the_smaller_slack_with_all_that_belongs_to_it(self) -> None:
        first, second = compare((1.0, 9.0), 1), compare((19.0, 20.0), 2)
        for pair in ((first, second), (second, first)):
            found = worse(*pair)
            assert (found.slack, found.left, found.iteration) == (1.0, 19.0, 2)
            assert found.least_right == 9.0  # of both

    def test_the_earlier_of_two_that_tie(self) -> None:
        first, second = compare((1.0, 2.0), 1), compare((5.0, 6.0), 2)
        assert worse(first, second).iteration == 1

    def test_anything_is_worse_than_nothing(self) -> None:
        found = worse(nothing_yet(float), compare((0.0, 1e300), 3))
        assert (found.iteration, found.right) == (3, 1e300)


class TestJudge:
    @pytest.mark.parametrize(
        ("left", "right", "verdict"),
        [
            (1.0, 2.0, "holds"),
            (2.0, 2.0, "holds"),
            (2.0 + 1e-9, 2.0, "holds"),  # the tolerance is relative to the right side …
            (2.0 + 3e-9, 2.0, "fails"),
            (1e-9, 0.0, "holds"),  # … or to 1
            (2e-9, 0.0, "fails"),
            (NAN, 1.0, "fails"),
            (1.0, NAN, "fails"),
            (INF, INF, "fails"),
            (1.0, INF, "holds"),
            (INF, 1.0, "fails"),
            (1.0, -INF, "fails"),
        ],
    )
    def test_verdicts(self, left: float, right: float, verdict: str) -> None:
        assert judge(statement(), worst(left, right), (), [], None).verdict == verdict

    def test_a_tolerance_of_ones_own(self) -> None:
        found = worst(1.05, 1.0)
        assert judge(statement(), found, (), [], None).verdict == "fails"
        assert judge(statement(tolerance=0.1), found, (), [], None).verdict == "holds"

    @pytest.mark.parametrize(
        ("trivial", "verdict"), [(2.0, "vacuous"), (1.0, "vacuous"), (3.0, "holds"), (NAN, "holds")]
    )
    def test_vacuous_if_the_least_right_side_is_never_below(
        self, trivial: float, verdict: str
    ) -> None:
        sides = (jnp.array([4.0, 0.0]), jnp.array([5.0, 2.0]))
        assert judge(statement(), compare(sides, 1), (), [], trivial).verdict == verdict

    def test_what_fails_is_not_vacuous(self) -> None:
        assert judge(statement(), worst(9.0, 2.0), (), [], 1.0).verdict == "fails"

    def test_premises_come_before_all_else(self) -> None:
        row = judge(statement(note="a remark"), worst(9.0, 2.0), (), ["one", "two"], 1.0)
        assert row.verdict == "premise not met"
        assert row.note == "one; two; a remark"

    def test_the_place_is_named(self) -> None:
        left = np.zeros((2, 3, 4))
        left[1, 0, 2] = 5.0
        found = compare((jnp.asarray(left), 1.0), 8)
        row = judge(statement("hsa"), found, (2, 3, 4), [], None)
        assert row.worst == {"k": 8, "h": 1, "s": 0, "a": 2}
        assert (row.name, row.place, row.text) == ("name", "place", "text")
        once = judge(statement(), compare((0.0, 1.0), 0), (), [], None)
        assert once.worst == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"premises": ("unit reward",)}, "did you mean 'unit rewards'"),
        ({"axes": "hs"}, "have the shape \\(\\), but axes is 'hs'"),
    ],
)
def test_statements_that_make_no_sense(changes: dict[str, Any], message: str) -> None:
    plain = Statement("own", "here", "0 ≤ 1", "", lambda problem, step: (0.0, 1.0))
    with pytest.raises(cmdpax.ParameterError, match=message):
        cmdpax.audit(
            cmdpax.environments.make("bandit"),
            num_iterations=20,
            statements=[plain._replace(**changes)],
        )


def test_few_failures_may_be_chance() -> None:
    """1 of 20 runs, each of which may fail with probability 1/30."""
    tail = sum(math.comb(20, k) * (1 / 30) ** k * (29 / 30) ** (20 - k) for k in range(1, 21))
    assert _binomial_tail(1, 20, 1 / 30) == pytest.approx(tail)
    assert tail == pytest.approx(1 - (29 / 30) ** 20)
    assert _binomial_tail(4, 20, 1 / 30) < 0.05
