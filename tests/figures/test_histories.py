"""Pictures of sweeps: what is drawn is what was measured."""

from pathlib import Path

import numpy as np
import polars
import pytest

import cmdpax
from cmdpax.figures import KINDS, plot_history, plot_sweep, save_figure
from cmdpax.figures.style import ALGORITHMS
from cmdpax.intervals import half_width
from sweep_cases import specification

PAIR = [{"name": "regularized-primal-dual"}, {"name": "vanilla-primal-dual"}]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    return cmdpax.sweep(specification(algorithms=PAIR), tmp_path_factory.mktemp("drawn"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_every_kind_can_be_written(
    results: cmdpax.Results, kind: str, ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"picture{ending}"
    save_figure(plot_sweep(results, kind), path)
    assert path.stat().st_size > 2000
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_lines_are_means_and_bands_are_intervals(results: cmdpax.Results) -> None:
    fingerprint = next(iter(results.cmdps))
    name = results.manifest["cmdps"][fingerprint]["name"]
    figure = plot_sweep(results, "regret", algorithms=["vanilla-primal-dual"], cmdp=name)
    rows = results.curves.filter(
        (polars.col("cmdp") == fingerprint) & (polars.col("algorithm") == "vanilla-primal-dual")
    )
    table = rows.sort("seed", "episode").collect()
    values = table["weak_objective"].to_numpy().reshape(2, -1)
    axis = figure.axes[3]
    line = axis.get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), table["episode"].unique().sort())
    np.testing.assert_allclose(line.get_ydata(), values.mean(axis=0))
    band = axis.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx((values.mean(axis=0) + half_width(values)).max())


def test_colours_belong_to_algorithms(results: cmdpax.Results) -> None:
    for algorithms in (["vanilla-primal-dual"], None):
        figure = plot_sweep(results, "iterates", algorithms=algorithms)
        colours = {line.get_label(): line.get_color() for line in figure.axes[0].get_lines()}
        assert colours["vanilla-primal-dual"] == ALGORITHMS["vanilla-primal-dual"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "regrets"}, "did you mean 'regret'"),
        ({"kind": "regret", "algorithms": ["vanilla"]}, "no algorithm 'vanilla'"),
        ({"kind": "regret", "cmdp": "rndom"}, "no CMDP 'rndom'"),
    ],
)
def test_what_is_not_there(
    results: cmdpax.Results, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(cmdpax.ParameterError, match=message):
        plot_sweep(results, **arguments)  # type: ignore[arg-type]


def test_no_constraints_no_multipliers(tmp_path: Path) -> None:
    parameters = {"num_states": 3, "num_actions": 2, "horizon": 3, "num_constraints": 0}
    free = [{"environment": "random", "parameters": parameters}]
    results = cmdpax.sweep(specification(cmdps=free), tmp_path)
    plot_sweep(results, "regret")
    with pytest.raises(cmdpax.ParameterError, match="no constraints"):
        plot_sweep(results, "multipliers")


def test_a_learner_that_plans_has_steps_on_a_logarithmic_axis() -> None:
    planned, other = (
        plot_history(cmdpax.learn(cmdpax.environments.make("bandit"), name, num_episodes=40))
        for name in ("replanning", "vanilla-primal-dual")
    )
    for figure, scale, style in ((planned, "log", "steps-post"), (other, "linear", "default")):
        strong, weak, errors, multipliers = figure.axes
        assert {axis.get_xscale() for axis in (strong, weak)} == {"linear"}
        assert {axis.get_xscale() for axis in (errors, multipliers)} == {scale}
        assert {axis.lines[0].get_drawstyle() for axis in (strong, weak)} == {"default"}
        assert {axis.lines[0].get_drawstyle() for axis in (errors, multipliers)} == {style}
