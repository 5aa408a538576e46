"""Taxi with a toll: S = 500 states, planned exactly for every budget.

    python examples/taxi.py taxi.png

Every step in the middle column costs a toll of 1. How much reward does a smaller budget cost, and
which budgets can no policy keep (a fifth of the rides begin in the toll zone)?
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np
from matplotlib.figure import Figure

import cmdpax
from cmdpax.figures import save_figure
from cmdpax.gymnasium import from_env

HORIZON, TOLL_COLUMN = 30, 2
BUDGETS = np.arange(0.1, 2.41, 0.1)


def main(picture: Path) -> cmdpax.Frontier:
    """The optimal reward against the budget."""
    env = gymnasium.make("Taxi-v4")
    columns = [column for _, column, _, _ in map(env.unwrapped.decode, range(500))]
    tolls = (np.array(columns) == TOLL_COLUMN).astype(float)
    cmdp = from_env(env, HORIZON, costs=tolls, limits=BUDGETS[0])
    found = cmdpax.frontier(cmdp, thresholds=BUDGETS)
    kept, smallest = found.feasible, found.largest_feasible
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    prices = found.multipliers[:, 0]  # constant between kinks of the reward
    for axis, name, heights, colour, style in (
        (above, "optimal reward", found.value, "C0", "default"),
        (below, "price of a toll, in reward", prices, "C1", "steps-mid"),
    ):
        line = {"color": colour, "drawstyle": style, "marker": "o", "markersize": 3}
        axis.plot(BUDGETS[kept], heights[kept], **line)
        axis.axvspan(0, smallest, color="gray", alpha=0.15, linewidth=0)
        axis.text(smallest / 2, heights[kept].mean(), "infeasible", rotation=90, va="center")
        axis.set_xlim(0, BUDGETS[-1])
        axis.set_title(name, loc="left", fontsize=10)
    below.set_xlabel("budget: expected tolls per ride")
    save_figure(figure, picture)
    for budget in (0.5, 1.0, 2.0):
        value = found.value[np.isclose(BUDGETS, budget)][0]
        print(f"tolls at most {budget}: reward {value:.3f}")
    print(f"no policy pays less than {smallest:.3f} tolls per ride")
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "taxi.png"))
