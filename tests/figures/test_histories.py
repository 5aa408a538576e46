"""Pictures of sweeps: what is drawn is what was measured."""

from pathlib import Path

import numpy as np
import polars
import pytest

import cmdpax
from cmdpax.figures import KINDS, plot_history, plot_iterates, plot_sweep, save_figure
from cmdpax.figures.colours import ALGORITHMS
from cmdpax.figures.style import around_mean
from cmdpax.intervals import half_width
from report_cases import invent
from sweep_cases import specification
from word_cases import office

PAIR = [{"name": "regularized-primal-dual"}, {"name": "vanilla-primal-dual"}]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    wanted = specification(algorithms=PAIR, seeds=3)
    return cmdpax.sweep(wanted, tmp_path_factory.mktemp("drawn"))


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
    values = table["weak_objective"].to_numpy().reshape(3, -1)
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
        assert colours["vanilla-primal-dual"] == ALGORITHMS["vanilla-primal-dual"][0]


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
        value, *regrets, _, constraint, strong, weak, multiplier = figure.axes
        assert {axis.get_xscale() for axis in (*regrets, strong, weak)} == {"linear"}
        assert {axis.get_xscale() for axis in (value, constraint, multiplier)} == {scale}
        assert {axis.lines[0].get_drawstyle() for axis in (*regrets, strong, weak)} == {"default"}
        drawn = {axis.lines[0].get_drawstyle() for axis in (value, constraint, multiplier)}
        assert drawn == {style}


# ----------------------------------------------------------------------------------------- in words


@pytest.fixture(scope="module")
def history() -> cmdpax.History:
    return cmdpax.learn(office(), "regularized-primal-dual", num_episodes=20, seeds=2)


def test_a_history_is_drawn_in_names_units_and_senses(history: cmdpax.History) -> None:
    figure = plot_history(history)
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == [
        *("savings [EUR]", "strong regret, savings [EUR]", "weak regret, savings [EUR]", ""),
        *("energy [kWh], at most 24", "strong regret, energy [kWh]", "weak regret, energy [kWh]"),
        "multiplier of energy [EUR per kWh]",
        *("comfort [h], at least 3", "strong regret, comfort [h]", "weak regret, comfort [h]"),
        "multiplier of comfort [EUR per h]",
    ]
    energy, comfort = figure.axes[4], figure.axes[8]
    for index, axis in enumerate((energy, comfort)):
        line = axis.get_lines()[0].get_ydata()
        np.testing.assert_allclose(line, history.constraint_values[..., index].mean(axis=0))
    assert energy.patches[0].get_y() == 24
    assert comfort.patches[0].get_y() + comfort.patches[0].get_height() == pytest.approx(3)
    assert "2 runs" in figure.get_suptitle()


def test_bands_of_a_history_are_the_range_of_its_runs(history: cmdpax.History) -> None:
    strong = plot_history(history).axes[1]
    band = strong.collections[0].get_paths()[0].vertices
    values = history.strong_regret.objective[:, -1]
    heights = band[band[:, 0] == 20, 1]
    assert (heights.min(), heights.max()) == pytest.approx((values.min(), values.max()))


def test_of_many_constraints_those_with_most_regret_are_drawn() -> None:
    cmdp = cmdpax.environments.make(
        "random", num_states=3, num_actions=2, horizon=3, num_constraints=7
    )
    history = cmdpax.learn(cmdp, "regularized-primal-dual", num_episodes=10, max_multiplier=9)
    figure = plot_history(history)
    assert len(figure.axes) == 4 * 6
    assert "2 constraints with less regret are left out" in figure.get_suptitle()
    last = history.strong_regret.constraints[0, -1]
    drawn = [axis.get_title(loc="left").split(",")[0] for axis in figure.axes[4::4]]
    assert drawn == [f"utility {index}" for index in sorted(np.argsort(-last, kind="stable")[:5])]


def test_iterates_miss_bounds_in_their_senses() -> None:
    model = office()
    iterates = cmdpax.iterate(model, "primal-dual", num_iterations=10)
    figure = plot_iterates(iterates, 20.0, model.bounds, [0.1, 0.2], model.words)
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].get_lines()}
    energy, comfort = iterates.constraint_values.T
    np.testing.assert_allclose(lines["violation, energy [kWh]"], energy - 24)
    np.testing.assert_allclose(lines["violation, comfort [h]"], 3 - comfort)
    np.testing.assert_allclose(lines["suboptimality, savings [EUR]"], 20 - iterates.value)


@pytest.fixture(scope="module")
def offices(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    folder = tmp_path_factory.mktemp("offices")
    cmdpax.save(office(), folder / "office.npz")
    wanted = specification(
        cmdps=[{"file": str(folder / "office.npz")}], algorithms=PAIR, seeds=2, record="all"
    )
    return invent(wanted, folder / "sweep")


def test_a_sweep_has_a_panel_for_every_named_constraint(offices: cmdpax.Results) -> None:
    figure = plot_sweep(offices, "iterates")
    assert [axis.get_title() for axis in figure.axes] == [
        "violation, energy [kWh], at most 24",
        "violation, comfort [h], at least 3",
        "suboptimality, savings [EUR]",
    ]
    for index, axis in enumerate(figure.axes[:2]):
        line = axis.get_lines()[0]
        (best,) = offices.best().filter(algorithm=line.get_label())["configuration"]
        rows = offices.curves.filter(polars.col("configuration") == best).sort("seed", "episode")
        reached = np.array(rows.collect()["constraint_values"].to_list())[:, index]
        missed = (reached - 24 if index == 0 else 3 - reached).reshape(2, -1).mean(axis=0)
        np.testing.assert_allclose(line.get_ydata(), missed)
    regrets = plot_sweep(offices, "regret")
    assert [axis.get_title() for axis in regrets.axes] == [
        f"{kind} regret, {name}"
        for kind in ("strong", "weak")
        for name in ("energy [kWh]", "comfort [h]", "savings [EUR]")
    ]
    labels = [axis.get_ylabel() for axis in plot_sweep(offices, "multipliers").axes]
    assert labels[0].startswith("multiplier of energy [EUR per kWh]")


# -------------------------------------------------------------------------------------------- bands


def test_two_numbers_have_no_band(offices: cmdpax.Results) -> None:
    assert around_mean(np.array([[1.0, 2.0], [3.0, 5.0]])) is None
    for kind in KINDS:
        for axis in plot_sweep(offices, kind).axes:
            assert axis.get_lines()
            assert not axis.collections


def test_bands_of_what_cannot_be_negative_end_at_zero() -> None:
    values = np.array([[1.0, 10.0], [2.0, 11.0], [60.0, 12.0]])
    mean, half = values.mean(axis=0), half_width(values)
    assert mean[0] < half[0]
    low, high = around_mean(values, nonnegative=True)  # type: ignore[misc]
    np.testing.assert_allclose(low, [0.0, mean[1] - half[1]])
    np.testing.assert_allclose(high, mean + half)
    low, _ = around_mean(values)  # type: ignore[misc]
    np.testing.assert_allclose(low, mean - half)


def test_no_strong_regret_is_drawn_below_zero(tmp_path: Path) -> None:
    """Three CMDPs of which one is much harder: the interval of their mean would reach below 0."""
    cmdps = [
        {"environment": "random", "parameters": {"num_states": s, "horizon": h, "seed": 1}}
        for s, h in ((2, 1), (2, 2), (6, 12))
    ]
    results = invent(specification(cmdps=cmdps, algorithms=PAIR, seeds=1), tmp_path)
    for axis in plot_sweep(results, "regret").axes[:2]:
        assert axis.collections
        for band in axis.collections:
            assert band.get_paths()[0].vertices[:, 1].min() >= 0
