"""CliffWalking with a cost: how far from the edge the best walk stays, for three budgets.

    python examples/cliff_walking.py cliff_walking.png

The ground is slippery, a fall costs 100 and leads back to the start. A step next to the cliff costs
1: the plan maximises the reward while the expected number of such steps stays within the budget.
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import cmdpax
from cmdpax.figures import save_figure
from cmdpax.gymnasium import from_env

HORIZON, BUDGETS = 100, (100.0, 3.0, 0.5)


def main(picture: Path) -> list[tuple[float, float, float]]:
    """Plan for every budget; returns (budget, value, cost)."""
    env = gymnasium.make("CliffWalking-v1", is_slippery=True)
    rows, columns = env.unwrapped.shape
    costs = np.zeros((rows, columns))
    costs[rows - 2, 1:-1] = 1.0  # the row above the cliff
    figure = Figure(figsize=(6.4, 6.0), layout="constrained")
    found = []
    for axis, budget in zip(figure.subplots(len(BUDGETS), 1), BUDGETS, strict=True):
        cmdp = from_env(env, HORIZON, costs=costs.ravel(), limits=budget)
        solution = cmdpax.solve(cmdp)
        spent = cmdpax.evaluate(cmdp, solution.policy).constraint_values[0]
        found.append((budget, solution.value, float(spent)))
        visits = solution.occupancy.sum(axis=(0, 2)).reshape(rows, columns)
        visits[-1, -1] = np.nan  # the goal, where finished walks stay
        image = axis.imshow(visits, cmap="viridis", vmin=0)
        axis.add_patch(Rectangle((0.5, rows - 1.5), columns - 2, 1, facecolor="black"))
        for column, name in ((0, "start"), (columns / 2, "cliff"), (columns - 1, "goal")):
            colour = "white" if name == "cliff" else "black"
            axis.text(column, rows - 1, name, color=colour, ha="center", va="center", fontsize=8)
        axis.set(xticks=[], yticks=[])
        title = f"at most {budget:g} steps at the edge: {spent:.2f}, reward {solution.value:.1f}"
        axis.set_title(title, loc="left", fontsize=10)
        figure.colorbar(image, ax=axis, label="visits")
        print(title)
    save_figure(figure, picture)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "cliff_walking.png"))
