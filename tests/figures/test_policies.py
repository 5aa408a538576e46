"""Charts of policies: colours are actions, paleness is rarity."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import cmdpax
from cmdpax.figures import plot_policy, save_figure
from word_cases import office

OFF, HALF, FULL = (np.array(to_rgb(colour)) for colour in ("#0072B2", "#E69F00", "#009E73"))
PARTS = 12


@pytest.fixture(scope="module")
def model() -> cmdpax.CMDP:
    return office()


def image(model: cmdpax.CMDP, policy: np.ndarray, **options: int) -> np.ndarray:
    """The painted chart, `[S, H, parts, 3]`."""
    painted = plot_policy(model, policy, **options).axes[0].images[0].get_array()
    return np.asarray(painted).reshape(len(painted), -1, PARTS, 3)


def test_certain_states_have_the_colours_of_their_actions(model: cmdpax.CMDP) -> None:
    for action, colour in enumerate((OFF, HALF, FULL)):
        policy = np.tile(np.eye(3)[action], (1, 5, 1))
        painted = image(model, policy)
        assert painted.shape == (5, 8, PARTS, 3)
        np.testing.assert_allclose(painted[1, 0], np.tile(colour, (PARTS, 1)))
        np.testing.assert_allclose(painted[[0, 2, 3, 4], 0], 1.0)  # the start is 17 °C


def test_rare_states_are_paler(model: cmdpax.CMDP) -> None:
    policy = np.tile(np.eye(3)[0], (1, 5, 1))
    occupancy = cmdpax.evaluate(model, policy).occupancy.sum(axis=2)
    chance = occupancy[1, 1]  # it may stay at 17 °C
    strength = 0.15 + 0.85 * np.sqrt(chance)
    np.testing.assert_allclose(image(model, policy)[1, 1, 0], 1 - strength * (1 - OFF))


def test_random_actions_divide_a_cell(model: cmdpax.CMDP) -> None:
    policy = np.tile([0.25, 0.0, 0.75], (1, 5, 1))
    first = image(model, policy)[1, 0]
    np.testing.assert_allclose(first[:3], np.tile(OFF, (3, 1)))
    np.testing.assert_allclose(first[3:], np.tile(FULL, (9, 1)))
    figure = plot_policy(model, policy)
    assert "divided: random" in figure.legends[0].get_title().get_text()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["off", "full"]


def test_names_units_and_bounds_are_written(model: cmdpax.CMDP) -> None:
    figure = plot_policy(model, cmdpax.solve(model).policy)
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        f"{16 + state} °C" for state in range(5)
    ]
    heading = figure.get_suptitle()
    for part in ("savings: ", " EUR", " kWh (at most 24)", "comfort: 3 h (at least 3)"):
        assert part in heading


def test_one_step(model: cmdpax.CMDP) -> None:
    policy = cmdpax.solve(model).policy
    whole = image(model, policy)
    np.testing.assert_allclose(image(model, policy, step=3), whole[:, 3:4])
    axis = plot_policy(model, policy, step=3).axes[0]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["3"]


def test_of_many_states_the_most_visited_are_drawn(model: cmdpax.CMDP) -> None:
    policy = np.tile(np.eye(3)[2], (1, 5, 1))
    visits = cmdpax.evaluate(model, policy).occupancy.sum(axis=(0, 2))
    axis = plot_policy(model, policy, max_states=2).axes[0]
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert names == [model.words.state(i) for i in sorted(np.argsort(-visits)[:2])]
    assert axis.get_ylabel() == "the 2 most visited of 5 states"


def test_states_that_are_never_reached_are_left_out_of_many() -> None:
    box = cmdpax.environments.make("box")
    solution = cmdpax.solve(box)
    visits = solution.occupancy.sum(axis=(0, 2))
    axis = plot_policy(box, solution.policy).axes[0]
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert names == [box.words.state(i) for i in np.flatnonzero(visits > 1e-9).tolist()]
    assert axis.get_ylabel() == f"the {len(names)} reached of {box.num_states} states"


def test_many_actions_and_no_words(tmp_path: Path) -> None:
    cmdp = cmdpax.environments.make("random", num_states=70, num_actions=15, horizon=3)
    figure = plot_policy(cmdp, np.full((1, 70, 15), 1 / 15))
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(texts) == 13
    assert texts[-1] == "and 3 rarer ones"
    assert len(figure.axes[0].get_yticklabels()) == 60
    assert figure.axes[0].get_ylabel() == "the 60 most visited of 70 states"
    save_figure(figure, tmp_path / "policy.png")


def test_a_policy_of_another_model_is_refused(model: cmdpax.CMDP) -> None:
    with pytest.raises(cmdpax.ModelError, match="policy has shape"):
        plot_policy(model, np.full((8, 5, 2), 0.5))


def test_few_of_many_actions_have_different_colours() -> None:
    cmdp = cmdpax.environments.make("random", num_states=4, num_actions=15, horizon=3)
    policy = np.tile(0.5 * (np.eye(15)[3] + np.eye(15)[12]), (1, 4, 1))
    figure = plot_policy(cmdp, policy)
    colours = [handle.get_facecolor()[:3] for handle in figure.legends[0].legend_handles]
    np.testing.assert_allclose(colours, [OFF, HALF])
    painted = np.asarray(figure.axes[0].images[0].get_array())
    assert not (painted == 0).all(axis=-1).any()
