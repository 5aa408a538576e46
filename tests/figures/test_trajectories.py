"""Pictures of an episode: the path that it took, and its sums against the bounds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.figures import plot_trajectory, save_figure
from word_cases import COMFORT, ENERGY, maze, office


def episode(model: cmdpax.CMDP, states: list[int], actions: list[int]) -> cmdpax.Log:
    """With the signals of the model, as the user gave them."""
    signals = model.words.turn_signals(model.constraint_rewards)
    rewards = [model.rewards[0, s, a] for s, a in zip(states, actions, strict=False)]
    costs = [signals[:, 0, s, a] for s, a in zip(states, actions, strict=False)]
    return cmdpax.Log(states, actions, np.array(rewards), np.array(costs).T)


ROOM = episode(office(), [1, 2, 3, 2, 3, 3, 2, 1, 0], [2, 2, 0, 2, 1, 0, 0, 0])
WALK = episode(maze(), [0, 3, 5, 6, 6, 7, 4, 2, 2], [2, 2, 1, 2, 1, 0, 0, 0])


def test_sums_are_drawn_against_their_bounds() -> None:
    figure = plot_trajectory(office(), ROOM)
    main, savings, energy, comfort = figure.axes
    signals = (ROOM.rewards, *ROOM.constraint_rewards)
    for axis, signal in zip((savings, energy, comfort), signals, strict=True):
        line = axis.get_lines()[0]
        np.testing.assert_allclose(line.get_ydata(), [0, *np.cumsum(signal)])
        np.testing.assert_array_equal(line.get_xdata(), np.arange(9))
    assert savings.get_title(loc="left").startswith("savings [EUR]: ")
    assert energy.get_title(loc="left").startswith("energy [kWh], at most 24: ")
    assert comfort.get_title(loc="left") == "comfort [h], at least 3: 6"
    (above,), (below,) = energy.patches, comfort.patches
    assert above.get_y() == ENERGY
    assert below.get_y() + below.get_height() == pytest.approx(COMFORT)
    assert len(main.get_yticklabels()) == 4  # 20 °C is never reached


def test_states_over_steps_with_marks_for_actions() -> None:
    main = plot_trajectory(office(), ROOM).axes[0]
    np.testing.assert_allclose(main.get_lines()[0].get_ydata(), ROOM.states)
    marks = {one.get_label(): np.asarray(one.get_offsets()) for one in main.collections}
    assert marks["full"].tolist() == [[0, 1], [1, 2], [3, 2]]
    assert marks["half"].tolist() == [[4, 3]]
    assert marks["off"].tolist() == [[2, 3], [5, 3], [6, 2], [7, 1]]


def test_a_path_on_a_map() -> None:
    main = plot_trajectory(maze(), WALK).axes[0]
    told = {(round(t.get_position()[1]), round(t.get_position()[0])): t.get_text()
            for t in main.texts}  # fmt: skip
    assert told == {
        (0, 0): "0", (1, 0): "1", (2, 0): "2", (2, 1): "3–4", (2, 2): "5", (1, 2): "6",
        (0, 2): "7–8",
    }  # fmt: skip
    (path,) = [one for one in main.collections if one.get_zorder() == 3]
    ends = np.array([piece.vertices for piece in path.get_paths()])
    assert np.abs(ends[0, 0]).max() < 0.1
    assert np.round(ends[:, 1]).tolist() == [
        [0, 1], [0, 2], [1, 2], [1, 2], [2, 2], [2, 1], [2, 0], [2, 0],
    ]  # fmt: skip


def test_places_that_are_visited_again_and_again() -> None:
    walk = episode(maze(), [0, 3, 0, 3, 0, 3, 0, 3, 0], [2, 0, 2, 0, 2, 0, 2, 0])
    texts = [text.get_text() for text in plot_trajectory(maze(), walk).axes[0].texts]
    assert texts == ["0 …", "1 …"]


def test_an_episode_of_a_log(tmp_path: Path) -> None:
    model = office()
    log = cmdpax.learn(model, "vanilla-primal-dual", num_episodes=4, seeds=2, log=True).log
    assert log is not None
    figure = plot_trajectory(model, log, episode=3, run=1)
    np.testing.assert_allclose(
        figure.axes[2].get_lines()[0].get_ydata()[1:],
        np.cumsum(log.constraint_rewards[1, 3, 0]),
    )
    save_figure(figure, tmp_path / "trajectory.png")
    with pytest.raises(cmdpax.ParameterError, match="episode is 4, the episodes are 0 … 3"):
        plot_trajectory(model, log, episode=4)
    with pytest.raises(cmdpax.ParameterError, match="run is 2"):
        plot_trajectory(model, log, run=2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": [0, 1]}, "shapes"),
        ({"constraint_rewards": np.zeros((1, 8))}, "shapes"),
        ({"actions": [3] * 8}, "has action 3, the model's actions are 0 … 2"),
        ({"states": [9] * 9}, "has state 9"),
    ],
)
def test_what_is_no_episode_of_the_model(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=message):
        plot_trajectory(office(), ROOM._replace(**changes))
