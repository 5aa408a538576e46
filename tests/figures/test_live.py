"""Pictures of a live system: what is drawn is what was observed."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

import cmdpax
from cmdpax.figures import Truth, plot_returns, save_figure
from live_cases import assert_sentence, draw_episodes, log_of, make

HOURS, COMFORT = 12.5, -0.25


@pytest.fixture(scope="module")
def account() -> cmdpax.AgentAccount:
    """Of a cost and of a signal that is wanted."""
    return make(
        thresholds=[HOURS, COMFORT],
        senses=["at most", "at least"],
        constraint_ranges=[(0, 10), (-1, 1)],
        names=["empty hours", "comfort"],
    ).account


@pytest.fixture(scope="module")
def returns() -> tuple[np.ndarray, np.ndarray]:
    """Of 90 episodes."""
    generator = np.random.default_rng(0)
    offsets, scales = np.array([2.0, 9.0, 0.0]), np.array([1.0, 3.0, 0.5])
    drawn = offsets + scales * generator.normal(size=(90, 3))
    return drawn[:, 0], drawn[:, 1:]


def line_of(axis: Any, label: str) -> Any:
    """The line with a label that begins so."""
    (line,) = [line for line in axis.get_lines() if line.get_label().startswith(label)]
    return line


def places(axis: Any, label: str) -> tuple[list[float], list[float]]:
    line = line_of(axis, label)
    return list(line.get_xdata()), list(line.get_ydata())


def shade_of(axis: Any) -> tuple[float, float]:
    (shade,) = axis.patches
    return shade.get_y(), shade.get_y() + shade.get_height()


# ---------------------------------------------------------------------------------- the moving mean


@pytest.mark.parametrize("window", [1, 2, 20, 89])
def test_lines_are_moving_means_with_their_intervals(
    returns: Any, account: cmdpax.AgentAccount, window: int
) -> None:
    figure = plot_returns(*returns, account, window=window)
    series = [returns[0], *returns[1].T]
    assert len(figure.axes) == 3
    for axis, signal in zip(figure.axes, series, strict=True):
        episodes = list(range(window, 91))
        frames = [[signal[k] for k in range(end - window, end)] for end in episodes]
        means = [sum(frame) / window for frame in frames]
        x, y = places(axis, f"observed, mean of {window}")
        assert x == episodes
        assert y == pytest.approx(means)
        halves = [0.0] * len(frames)
        if window > 1:
            quantile = stats.t.ppf(0.975, window - 1)
            halves = [quantile * stats.sem(frame) for frame in frames]
        (around,) = axis.collections
        corners = around.get_paths()[0].vertices
        for end, mean, half in zip(episodes, means, halves, strict=True):
            heights = corners[corners[:, 0] == end, 1]
            assert heights.min() == pytest.approx(mean - half)
            assert heights.max() == pytest.approx(mean + half)


def test_titles_and_places(returns: Any, account: cmdpax.AgentAccount) -> None:
    axes = plot_returns(*returns, account, window=10).axes
    titles = [axis.get_title(loc="left") for axis in axes]
    assert titles == [f"{name} per episode" for name in ("reward", "empty hours", "comfort")]
    assert {axis.get_xlim() for axis in axes} == {(1.0, 90.0)}
    assert {axis.get_xlabel() for axis in axes} == {"episode"}
    for axis, name in zip(axes, ("observed", "at most 12.5", "at least -0.25"), strict=True):
        assert axis.get_legend().get_texts()[-1].get_text().startswith(name)


def test_a_window_of_a_hundred_unless_told(account: cmdpax.AgentAccount) -> None:
    figure = plot_returns(np.arange(500.0), np.zeros((500, 2)), account)
    x, y = places(figure.axes[0], "observed, mean of 100")
    assert (x[0], x[-1], y[0], y[-1]) == (100, 500, 49.5, 449.5)
    figure = plot_returns(np.arange(40.0), np.zeros((40, 2)), account)
    assert places(figure.axes[0], "observed, mean of 10")[0][0] == 10


def test_lists_are_taken_and_nothing_is_changed(account: cmdpax.AgentAccount) -> None:
    rewards, others = np.ones(4), np.ones((4, 2))
    for array in (rewards, others):
        array.flags.writeable = False
    plot_returns(rewards, others, account, window=2)
    figure = plot_returns([1, 2, 3, 4], [[1, 2]] * 4, account, window=2)
    assert places(figure.axes[0], "observed")[1] == [1.5, 2.5, 3.5]


# ----------------------------------------------------------------------------- thresholds and truth


def test_thresholds_and_the_shade_on_their_wrong_side(
    returns: Any, account: cmdpax.AgentAccount
) -> None:
    reward, hours, comfort = plot_returns(*returns, account, window=10).axes
    assert not reward.patches
    assert len(reward.get_lines()) == 1
    assert places(hours, "at most 12.5")[1] == [HOURS, HOURS]
    assert places(comfort, "at least -0.25")[1] == [COMFORT, COMFORT]
    assert shade_of(hours) == pytest.approx((HOURS, hours.get_ylim()[1]))
    assert shade_of(comfort) == pytest.approx((comfort.get_ylim()[0], COMFORT))


@pytest.mark.parametrize("height", [-50.0, 0.0, 400.0])
def test_everything_is_in_sight(account: cmdpax.AgentAccount, height: float) -> None:
    """However far the returns are from their threshold."""
    others = height + np.random.default_rng(1).random((40, 2))
    figure = plot_returns(np.zeros(40), others, account, window=5)
    for axis, threshold in zip(figure.axes[1:], (HOURS, COMFORT), strict=True):
        low, high = axis.get_ylim()
        assert low < threshold < high
        assert low < others.min() - 0.01 < others.max() + 0.01 < high
        bottom, top = shade_of(axis)
        assert top > bottom


def test_truth_optimum_and_marks(returns: Any, account: cmdpax.AgentAccount) -> None:
    truth = Truth([10, 50, 90], [1.0, 2.0, 2.5], [[20.0, -1.0], [11.0, 0.0], [9.0, 0.25]])
    marks = {30: "restart", 75: "a new pump"}
    figure = plot_returns(*returns, account, truth=truth, optimum=2.75, window=10, marks=marks)
    values = [truth.values, *np.array(truth.constraint_values).T.tolist()]
    for index, axis in enumerate(figure.axes):
        assert places(axis, "true value") == ([10, 50, 90], values[index])
        low, high = axis.get_ylim()
        assert low < min(values[index]) < max(values[index]) < high
        upright = [line.get_xdata() for line in axis.get_lines()[-2:]]
        assert [list(x) for x in upright] == [[30, 30], [75, 75]]
        assert [text.get_text() for text in axis.texts] == ["restart", "a new pump"]
        assert [text.xy[0] for text in axis.texts] == [30, 75]
        optimal = [line for line in axis.get_lines() if line.get_label() == "optimum"]
        assert [list(line.get_ydata()) for line in optimal] == [[2.75, 2.75]] * (index == 0)


def test_nothing_is_drawn_that_was_not_given(returns: Any, account: cmdpax.AgentAccount) -> None:
    for axis in plot_returns(*returns, account, window=10).axes:
        labels = {line.get_label() for line in axis.get_lines()}
        assert not labels & {"true value", "optimum"}
        assert not axis.texts


def test_a_run_of_an_agent_is_drawn_as_it_is_returned(tmp_path: Path) -> None:
    from cmdpax.gymnasium import interact, make_env

    cmdp = cmdpax.environments.make("bandit")
    agent = cmdpax.Agent(
        "regularized-primal-dual", num_states=1, num_actions=3, horizon=1,
        thresholds=cmdp.thresholds, initial=cmdp.initial,
    )  # fmt: skip
    found = interact(make_env(cmdp), agent, 30, seed=0)
    figure = plot_returns(found.rewards, found.constraint_returns, found.account, window=30)
    assert places(figure.axes[0], "observed") == ([30], [pytest.approx(found.rewards.mean())])
    observed = found.account[0].observed
    corners = figure.axes[1].collections[0].get_paths()[0].vertices[:, 1]
    assert (corners.min(), corners.max()) == pytest.approx((observed.low, observed.high))


# --------------------------------------------------------------------- an agent, and its file alone

OBSERVED = {
    "senses": ["at most", "at least"],
    "constraint_ranges": [(0, 10), (-1, 1)],
    "thresholds": [HOURS, COMFORT],
    "names": ["empty hours", "comfort"],
    "units": {"empty hours": "h", "reward": "EUR"},
}


def saved_agent(path: Path, num_episodes: int, **changes: Any) -> cmdpax.Agent:
    agent = make(**(OBSERVED | changes))
    if num_episodes:
        episodes = draw_episodes(agent, num_episodes)
        agent.feed(log_of(agent, episodes), own=True)
    agent.save(path)
    return agent


def drawn(figure: Figure) -> list[Any]:
    """All numbers and words of a figure's axes."""
    return [
        [
            axis.get_title(loc="left"),
            axis.get_xlim(),
            axis.get_ylim(),
            [(line.get_label(), line.get_xydata().tolist()) for line in axis.get_lines()],
            [one.get_paths()[0].vertices.tolist() for one in axis.collections],
        ]
        for axis in figure.axes
    ]


def test_an_agent_and_its_file_give_the_same_picture(tmp_path: Path) -> None:
    agent = saved_agent(tmp_path / "a.npz", 40)
    first = drawn(plot_returns(agent))
    for source in (
        tmp_path / "a.npz",
        str(tmp_path / "a.npz"),
        cmdpax.Agent.load(tmp_path / "a.npz"),
    ):
        assert drawn(plot_returns(source)) == first


def test_the_picture_of_an_agent_is_that_of_its_whole_episodes(tmp_path: Path) -> None:
    agent = saved_agent(tmp_path / "a.npz", 60)
    recent = agent.recent
    returns = np.column_stack([recent["rewards"], recent["constraint_returns"]])
    whole = np.arange(1, 61) % 3 > 0  # every third one is cut short
    figure = plot_returns(agent, window=10, marks={30: "restart"}, optimum=2.0)
    for index, axis in enumerate(figure.axes):
        x, y = places(axis, "observed, mean of 10")
        assert x == list(range(10, 61))
        frames = [returns[end - 10 : end, index][whole[end - 10 : end]] for end in range(10, 61)]
        assert y == pytest.approx([frame.mean() for frame in frames])
        corners = axis.collections[0].get_paths()[0].vertices
        for end, frame in zip(range(10, 61), frames, strict=True):
            heights = corners[corners[:, 0] == end, 1]
            half = stats.t.ppf(0.975, len(frame) - 1) * stats.sem(frame)
            assert heights.max() == pytest.approx(frame.mean() + half)
        assert [text.get_text() for text in axis.texts] == ["restart"]
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == [
        "reward [EUR] per episode", "empty hours [h] per episode", "comfort per episode"
    ]  # fmt: skip
    assert places(figure.axes[1], "at most 12.5")[1] == [HOURS, HOURS]


def test_many_episodes_are_drawn_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cmdpax.live.record.MOST", 16)
    agent = saved_agent(tmp_path / "a.npz", 70)
    assert agent.record.episodes.tolist() == [8] * 8 + [6]
    figure = plot_returns(agent, window=10)
    x, y = places(figure.axes[0], "observed, mean of 16")  # of whole blocks
    assert x == [16, 24, 32, 40, 48, 56, 64, 70]
    recent = agent.recent["rewards"]
    short = np.arange(1, 71) % 3 == 0
    assert y[0] == pytest.approx(recent[:16][~short[:16]].mean())
    assert y[-1] == pytest.approx(recent[56:][~short[56:]].mean())
    assert figure.axes[0].get_xlim() == (1.0, 70.0)


def test_names_are_no_mathematics(tmp_path: Path) -> None:
    agent = saved_agent(tmp_path / "a.npz", 12, names=["$\\frac{$", "$x$"], units=None)
    save_figure(plot_returns(agent), tmp_path / "a.svg")


@pytest.mark.parametrize("named", [True, False])
def test_an_agent_without_whole_episodes(tmp_path: Path, named: bool) -> None:
    agent = saved_agent(tmp_path / "a.npz", 0)
    source = tmp_path / "a.npz" if named else agent
    sentence = f"{source if named else 'the agent'} has played no whole episode"
    with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)) as caught:
        plot_returns(source)
    assert_sentence(caught.value)
    agent.start(0)
    agent.act(0)
    agent.observe(0.5, [1.0, 0.0], 1)
    agent.end()
    with pytest.raises(cmdpax.ParameterError, match="the agent has played no whole episode"):
        plot_returns(agent)


def test_a_file_that_is_no_agents(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_text("an agent")
    for path in (tmp_path / "a.npz", tmp_path / "none.npz", tmp_path):
        with pytest.raises(cmdpax.FileError, match=re.escape(f"{path} ")) as caught:
            plot_returns(path)
        assert_sentence(caught.value)


def test_an_agent_has_its_returns_itself(tmp_path: Path, account: cmdpax.AgentAccount) -> None:
    agent = saved_agent(tmp_path / "a.npz", 4)
    with pytest.raises(cmdpax.ParameterError, match="account cannot be given together with an"):
        plot_returns(agent, account=account)
    with pytest.raises(cmdpax.ParameterError, match="constraint_returns and account cannot"):
        plot_returns(tmp_path / "a.npz", [[1.0, 2.0]], account)
    with pytest.raises(cmdpax.ParameterError, match="account is missing: give"):
        plot_returns([1.0], [[1.0, 2.0]])


# ------------------------------------------------------------------------------------- few episodes


@pytest.mark.parametrize("count", [1, 2, 7])
def test_fewer_episodes_than_the_window(
    count: int, account: cmdpax.AgentAccount, tmp_path: Path
) -> None:
    rewards = np.arange(float(count))
    figure = plot_returns(rewards, np.ones((count, 2)), account, window=100)
    x, y = places(figure.axes[0], f"observed, mean of {count}")
    assert (x[-1], y[-1]) == (count, rewards.mean())
    assert figure.axes[0].get_xlim() == (1.0, max(2, count))
    save_figure(figure, tmp_path / "few.png")


@pytest.mark.parametrize("count", [1, 60, 100])
def test_fewer_episodes_than_the_window_can_be_seen(
    count: int, account: cmdpax.AgentAccount
) -> None:
    figure = plot_returns(np.arange(float(count)), np.ones((count, 2)), account)
    line = line_of(figure.axes[0], "observed")
    assert len(line.get_xdata()) > 1 or line.get_marker() not in ("None", None, "")


def test_no_episode_yet(account: cmdpax.AgentAccount) -> None:
    with pytest.raises(cmdpax.ParameterError, match="at least one"):
        plot_returns(np.zeros(0), np.zeros((0, 2)), account)


def test_without_constraints(tmp_path: Path) -> None:
    account = make(thresholds=[]).account
    rewards, nothing = np.arange(12.0), np.zeros((12, 0))
    truth = Truth([3], [1.0], np.zeros((1, 0)))
    figure = plot_returns(rewards, nothing, account, window=4, truth=truth, optimum=5.0)
    (axis,) = figure.axes
    assert places(axis, "observed")[1] == [rewards[k : k + 4].mean() for k in range(9)]
    assert places(axis, "true value") == ([3], [1.0])
    save_figure(figure, tmp_path / "plain.svg")


def test_constant_returns_on_their_threshold(account: cmdpax.AgentAccount) -> None:
    figure = plot_returns(np.ones(9), np.tile([HOURS, COMFORT], (9, 1)), account, window=3)
    for axis, threshold in zip(figure.axes[1:], (HOURS, COMFORT), strict=True):
        low, high = axis.get_ylim()
        assert low < threshold < high


@pytest.mark.parametrize(
    "arguments",
    [
        ([1.0, 2.0, 3.0], [[1.0, 2.0]] * 3, {"window": 0}),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], {}),
        ([1.0, 2.0, 3.0], [[1.0, 2.0]] * 2, {}),
    ],
)
def test_what_does_not_fit_is_refused(account: cmdpax.AgentAccount, arguments: Any) -> None:
    rewards, others, options = arguments
    with pytest.raises(cmdpax.CmdpaxError):
        plot_returns(rewards, others, account, **options)


# -------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_it_can_be_written(
    returns: Any, account: cmdpax.AgentAccount, ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"returns{ending}"
    figure = plot_returns(*returns, account, window=10, marks={40: "restart"}, optimum=2.0)
    assert isinstance(figure, Figure)
    save_figure(figure, path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG" if ending == ".png" else b"<?xml")
    assert len(content) > 5000


def test_a_late_mark_leaves_the_axes_as_wide_as_they_are(
    returns: Any, account: cmdpax.AgentAccount, tmp_path: Path
) -> None:
    widths = []
    for marks in (None, {88: "restarted by the operator"}):
        figure = plot_returns(*returns, account, window=10, marks=marks)
        save_figure(figure, tmp_path / "a.png")
        widths.append(figure.axes[0].get_position().width)
    assert widths[1] > 0.95 * widths[0]
