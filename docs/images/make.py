"""Make the pictures of the documentation: `python docs/images/make.py`, a few seconds."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import cmdpax

FOLDER = Path(__file__).parent
COLOURS = {"vanilla-primal-dual": "#D55E00", "regularized-primal-dual": "#0072B2"}


def draw_strong_regret() -> None:
    """Vanilla against regularized primal-dual learning on the paper's CMDP, K = 4000."""
    cmdp = cmdpax.environments.make("random")
    figure = Figure(figsize=(8.4, 5.6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    for algorithm, colour in COLOURS.items():
        history = cmdpax.learn(cmdp, algorithm, num_episodes=4000, seeds=range(123, 128))
        label = algorithm.partition("-")[0]
        violation, strong = history.violation[..., 0], history.strong_regret
        draw_runs(axes[0, 0], history.episodes, violation[:1], colour, label)
        draw_runs(axes[0, 1], history.episodes, history.suboptimality[:1], colour, label)
        draw_runs(axes[1, 0], history.episodes, strong.maximum, colour, label)
        draw_runs(axes[1, 1], history.episodes, strong.objective, colour, label)
    titles = (
        "violation of each episode's policy (one run)",
        "suboptimality of each episode's policy (one run)",
        "strong regret, constraint (5 runs)",
        "strong regret, objective (5 runs)",
    )
    for axis, title in zip(axes.flat, titles, strict=True):
        axis.set_title(title, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[0]:
        axis.axhline(0.0, color="#555555", linewidth=0.8)
        axis.set_ylim(-0.6, 0.8)
    for axis in axes[1]:
        axis.set_xlabel("episode")
    axes[0, 0].legend(frameon=False)
    figure.savefig(FOLDER / "strong-regret.png", dpi=130, metadata={"Software": None})


def draw_runs(
    axis: Axes, episodes: np.ndarray, values: np.ndarray, colour: str, label: str
) -> None:
    """Mean over runs, and their range."""
    axis.plot(episodes, values.mean(axis=0), color=colour, linewidth=1.2, label=label)
    if len(values) > 1:
        low, high = values.min(axis=0), values.max(axis=0)
        axis.fill_between(episodes, low, high, color=colour, alpha=0.2, linewidth=0)


if __name__ == "__main__":
    draw_strong_regret()
