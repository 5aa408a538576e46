"""Comparing two algorithms in pairs."""

from pathlib import Path

import numpy as np
import polars
import pytest

import cmdpax
from cmdpax.intervals import half_width, interval
from sweep_cases import SMALL, specification

PAIR = [
    {"name": "regularized-primal-dual", "step_size": [0.2, 0.4]},
    {"name": "vanilla-primal-dual", "step_size": [0.2]},
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    wanted = specification(algorithms=PAIR, seeds=3)
    return cmdpax.sweep(wanted, tmp_path_factory.mktemp("pairs"))


def test_several_cmdps(results: cmdpax.Results) -> None:
    found = cmdpax.compare(results, "regularized-primal-dual", "vanilla-primal-dual")
    best = results.best().filter(polars.col("algorithm") == "regularized-primal-dual")
    final = results.final.with_columns(
        score=polars.col("strong_objective") + polars.col("strong_constraints")
    )
    first = final.filter(polars.col("configuration") == best["configuration"][0])
    second = final.filter(polars.col("algorithm") == "vanilla-primal-dual")
    differences = [
        (
            first.filter(polars.col("cmdp") == cmdp).sort("seed")["score"].to_numpy()
            - second.filter(polars.col("cmdp") == cmdp).sort("seed")["score"].to_numpy()
        ).mean()
        for cmdp in results.cmdps
    ]
    assert found.unit == "CMDPs"
    assert (found.pairs, found.cmdps) == (6, 2)
    assert found.difference == pytest.approx(interval(differences))
    assert found.first_smaller == sum(value < 0 for value in differences)
    assert found.ratio == pytest.approx(found.first_mean / found.second_mean)


def test_one_cmdp(tmp_path: Path) -> None:
    """The interval is over the seeds."""
    one = [{"environment": "random", "parameters": SMALL | {"seed": 1}}]
    results = cmdpax.sweep(specification(algorithms=PAIR, cmdps=one, seeds=3), tmp_path)
    found = cmdpax.compare(
        results, "vanilla-primal-dual", "regularized-primal-dual", by="last_violation"
    )
    assert (found.unit, found.difference.size) == ("seeds", 3)
    swapped = cmdpax.compare(
        results, "regularized-primal-dual", "vanilla-primal-dual", by="last_violation"
    )
    assert swapped.difference.mean == pytest.approx(-found.difference.mean)


def test_configurations_can_be_compared(results: cmdpax.Results) -> None:
    names = results.final.filter(polars.col("algorithm") == PAIR[0]["name"])["configuration"]
    first, second = sorted(set(names))
    found = cmdpax.compare(results, first, second)
    assert found.pairs == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("vanilla-primal-dua", "vanilla-primal-dual"), "did you mean 'vanilla-primal-dual'"),
        (
            ("vanilla-primal-dual", "regularized-primal-dual", "strong_objectiv"),
            "did you mean 'strong_obj",
        ),
    ],
)
def test_what_is_not_there(
    results: cmdpax.Results, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(cmdpax.ParameterError, match=message):
        cmdpax.compare(results, *arguments)


def test_half_widths_along_an_axis() -> None:
    values = np.random.default_rng(1).normal(size=(6, 3))
    expected = [interval(column).half for column in values.T]
    np.testing.assert_allclose(half_width(values), expected)
    assert np.isinf(half_width(values[:1])).all()


def test_every_cmdp_counts_alike(tmp_path: Path) -> None:
    """Means and difference agree, also where one CMDP has more seeds."""
    one, both = specification()["cmdps"], specification(algorithms=PAIR)
    single = [{"environment": "random", "parameters": one[0]["parameters"] | {"seed": 1}}]
    cmdpax.sweep(both | {"seeds": [5, 6]}, tmp_path)
    results = cmdpax.sweep(both | {"cmdps": single, "seeds": [7, 8, 9, 10]}, tmp_path)
    found = cmdpax.compare(results, "regularized-primal-dual", "vanilla-primal-dual")
    assert (found.pairs, found.cmdps) == (8, 2)
    assert found.first_mean - found.second_mean == pytest.approx(found.difference.mean)
