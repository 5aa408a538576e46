"""The picture of schemes against each other."""

import functools
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.figures import plot_schemes
from word_cases import office

NAMES = ("reload", "crpo", "dual", "opg-pd", "omwu-pd", "pid")


@functools.cache
def bandit() -> tuple[cmdpax.CMDP, dict[str, cmdpax.Iterates]]:
    cmdp = cmdpax.environments.make("bandit")
    return cmdp, {name: cmdpax.iterate(cmdp, name, num_iterations=30) for name in NAMES}


def panels(figure: Any) -> dict[str, Any]:
    return {axis.get_title(): axis for axis in figure.axes if axis.get_title()}


def marks(axis: Any) -> dict[str, tuple[float, float]]:
    lines = {line.get_marker(): line for line in axis.get_lines()}
    return {sign: (line.get_xdata()[0], line.get_ydata()[0]) for sign, line in lines.items()}


def test_every_scheme_has_its_path_and_the_saddle_point() -> None:
    cmdp, found = bandit()
    figure = plot_schemes({"a bandit": cmdp}, {"a bandit": found})
    assert tuple(panels(figure)) == NAMES
    assert [block.get_suptitle() for block in figure.subfigs[:-1]] == ["a bandit"]
    for name, axis in panels(figure).items():
        points = np.column_stack(
            [found[name].constraint_values[:, 0] - 0.5, found[name].multipliers]
        )
        (path,) = axis.collections
        np.testing.assert_allclose([piece[0] for piece in path.get_segments()], points[:-1])
        np.testing.assert_allclose([piece[1] for piece in path.get_segments()], points[1:])
        assert marks(axis)["s"] == pytest.approx(points[0])
        assert marks(axis)["o"] == pytest.approx(points[-1])
        assert marks(axis)["x"] == pytest.approx((0.0, 1.0), abs=1e-9)
        across, upward = axis.get_xlim(), axis.get_ylim()
        assert across[0] < points[:, 0].min() <= points[:, 0].max() < across[1]
        assert upward[0] < points[:, 1].min() <= points[:, 1].max() < upward[1]


def test_paths_go_from_pale_to_dark_and_only_violation_is_shaded() -> None:
    cmdp, found = bandit()
    axis = panels(plot_schemes({"": cmdp}, {"": found}))["reload"]
    (path,) = axis.collections
    brightness = path.get_colors()[:, :3].sum(axis=1)
    assert (np.diff(brightness) <= 1e-9).all()
    assert brightness[0] > 2 * brightness[-1]
    (shade,) = axis.patches
    assert shade.get_bbox().x1 == 0
    assert shade.get_bbox().x0 < axis.get_xlim()[0]


def test_of_several_models_each_has_a_block_in_its_words() -> None:
    """An upper limit has slack below it."""
    cmdp, found = bandit()
    iterates = {"dual": cmdpax.iterate(office(), "dual", num_iterations=8, step_size=0.01)}
    models, both = (
        {"a $1 bandit": cmdp, "office": office()},
        {"a $1 bandit": found, "office": iterates},
    )
    figure = plot_schemes(models, both)
    first, second, _ = figure.subfigs
    assert (first.get_suptitle(), second.get_suptitle()) == (r"a \$1 bandit", "office")
    assert second.get_supxlabel() == "slack of energy [kWh]"
    assert second.get_supylabel().startswith("multiplier of energy [EUR per kWh]")
    (axis,) = panels(second).values()
    slack = office().bounds[0] - iterates["dual"].constraint_values[:, 0]
    assert marks(axis)["o"] == pytest.approx((slack[-1], iterates["dual"].multipliers[-1, 0]))
    (other,) = panels(plot_schemes({"": office()}, {"": iterates}, constraint=1)).values()
    comfort = iterates["dual"].constraint_values[-1, 1] - office().bounds[1]
    assert marks(other)["o"][0] == pytest.approx(comfort)


def test_places_without_a_path_are_empty() -> None:
    cmdp, found = bandit()
    two = {name: found[name] for name in NAMES[:2]}
    for iterates, places in ((two, 2), (found, 10)):
        axes = plot_schemes({"": cmdp}, {"": iterates}).axes
        shown = [True] * len(iterates) + [False] * (places - len(iterates))
        assert [axis.get_visible() for axis in axes] == shown


def test_nothing_to_draw_is_refused() -> None:
    cmdp, _ = bandit()
    for models, iterates in (({}, {}), ({"": cmdp}, {"": {}})):
        with pytest.raises(cmdpax.ParameterError, match="there is nothing to draw; give a model"):
            plot_schemes(models, iterates)
