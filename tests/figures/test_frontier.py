"""Pictures of frontiers: what is drawn is what was found."""

from pathlib import Path

import numpy as np
import pytest

import cmdpax
from cmdpax.figures import plot_frontier, save_figure
from word_cases import office


@pytest.fixture(scope="module")
def queue() -> cmdpax.Frontier:
    thresholds = [18.0, 0.0, 25.0, 9.0, 4.5, 21.0]  # not in order
    return cmdpax.frontier(cmdpax.environments.make("queue"), constraint=1, thresholds=thresholds)


@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_it_can_be_written(queue: cmdpax.Frontier, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"frontier{ending}"
    save_figure(plot_frontier(queue, own_threshold=8.0), path)
    assert path.stat().st_size > 2000


def test_a_path_may_be_text(queue: cmdpax.Frontier, tmp_path: Path) -> None:
    figure = plot_frontier(queue)
    save_figure(figure, str(tmp_path / "frontier.png"))
    assert (tmp_path / "frontier.png").stat().st_size > 2000
    with pytest.raises(cmdpax.FileError, match=r"frontier.txt has the ending '.txt'; pictures are"):
        save_figure(figure, str(tmp_path / "frontier.txt"))


def test_lines_are_the_feasible_points_from_left_to_right(queue: cmdpax.Frontier) -> None:
    above, below = plot_frontier(queue).axes
    drawn = [1, 4, 3, 0]
    for axis, heights in ((above, queue.value), (below, queue.multipliers[:, 1])):
        line = axis.get_lines()[0]
        np.testing.assert_array_equal(line.get_xdata(), queue.thresholds[drawn])
        np.testing.assert_array_equal(line.get_ydata(), heights[drawn])
    assert above.get_xlim() == below.get_xlim()
    assert below.get_ylim()[0] == 0.0
    assert below.get_xlabel() == "admission, at least"


def test_the_infeasible_part_is_shaded_from_the_largest_feasible_threshold(
    queue: cmdpax.Frontier,
) -> None:
    for axis in plot_frontier(queue).axes:
        (shade,) = axis.patches
        assert shade.get_x() == pytest.approx(queue.largest_feasible)
        assert shade.get_x() + shade.get_width() == pytest.approx(axis.get_xlim()[1])
    above = plot_frontier(queue).axes[0]
    (label,) = above.texts
    assert label.get_text() == "infeasible"
    assert queue.largest_feasible < label.get_position()[0] < above.get_xlim()[1]


def test_a_narrow_part_is_named_beside_it() -> None:
    """At its other side there is no room, and the word would lie over the axis."""
    queue = cmdpax.environments.make("queue")
    most = cmdpax.frontier(queue).largest_feasible
    found = cmdpax.frontier(queue, thresholds=[0.0, most / 2, most])
    above = plot_frontier(found).axes[0]
    (label,) = above.texts
    ((shade,), (low, high)) = above.patches, above.get_xlim()
    assert shade.get_width() < 0.05 * (high - low)
    assert low < label.get_position()[0] < most
    assert (label.get_ha(), label.get_va(), label.get_rotation()) == ("right", "top", 90.0)


def test_nothing_is_shaded_where_everything_is_feasible() -> None:
    found = cmdpax.frontier(cmdpax.environments.make("bandit"), thresholds=[0.2, 0.4])
    for axis in plot_frontier(found).axes:
        assert not axis.patches
        assert not axis.texts


@pytest.mark.parametrize(("own", "told"), [(8.0, 1), (19.0, 1), (100.0, 0)])
def test_the_models_threshold_is_marked_where_it_is_in_sight(
    queue: cmdpax.Frontier, own: float, told: int
) -> None:
    figure = plot_frontier(queue, own_threshold=own)
    limits = plot_frontier(queue).axes[0].get_xlim()
    for axis in figure.axes:
        assert axis.get_lines()[-1].get_xdata() == [own, own]
        assert axis.get_xlim() == limits
    marks = [text for text in figure.axes[0].texts if "of the model" in text.get_text()]
    assert len(marks) == told


@pytest.mark.parametrize("thresholds", [[0.5], [2.0], [2.0, 3.0], [0.5, 2.0]])
def test_few_points_or_none_are_drawn_all_the_same(thresholds: list[float], tmp_path: Path) -> None:
    found = cmdpax.frontier(cmdpax.environments.make("bandit"), thresholds=thresholds)
    save_figure(plot_frontier(found, own_threshold=0.5), tmp_path / "frontier.png")


def test_nothing_feasible_at_all_is_shaded_whole(tmp_path: Path) -> None:
    cmdp = cmdpax.environments.make("queue").replace(thresholds=[5.0, 100.0])
    found = cmdpax.frontier(cmdp, num_points=4)
    figure = plot_frontier(found)
    (shade,) = figure.axes[0].patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == pytest.approx(
        figure.axes[0].get_xlim()
    )
    save_figure(figure, tmp_path / "frontier.png")


def test_a_bound_from_above_is_drawn_as_one() -> None:
    """In names and units; the infeasible part is to the left, and the value rises to the right."""
    model = office()
    found = cmdpax.frontier(model, constraint="energy", num_points=12)
    above, below = plot_frontier(found, own_threshold=model.bounds[0]).axes
    assert below.get_xlabel() == "energy [kWh], at most"
    assert above.get_title(loc="left") == "best savings [EUR]"
    assert below.get_title(loc="left").startswith("multiplier of energy [EUR per kWh]: the slope")
    (shade,) = above.patches
    assert shade.get_x() == pytest.approx(above.get_xlim()[0])
    assert shade.get_x() + shade.get_width() == pytest.approx(found.largest_feasible)
    assert np.all(np.diff(above.get_lines()[0].get_ydata()) >= -1e-9)
    assert np.all(above.get_lines()[0].get_xdata() > found.largest_feasible)
    assert {text.get_text() for text in above.texts} <= {"infeasible", "of the model: 24 kWh"}
