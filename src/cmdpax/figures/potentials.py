"""A picture of the potential: Φ_k, the bound of Lemma 4.1, and the measured bias."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cmdpax.figures.style import OTHERS, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_potentials(
    potentials: Mapping[float, np.ndarray], bounds: Mapping[float, np.ndarray]
) -> "Figure":
    """Draw one colour per τ: Φ_k as a line, its bound dashed, what is left in the end dotted."""
    figure, axes = canvas(1, 1, "iteration", (5.6, 3.6))
    axis = axes[0, 0]
    for colour, (tau, values) in zip(OTHERS, potentials.items(), strict=False):
        iterations = np.arange(1, len(values) + 1)
        axis.plot(iterations, values, color=colour, linewidth=1.2, label=f"Φ, τ = {tau:g}")
        axis.plot(iterations, bounds[tau], color=colour, linestyle="--", linewidth=0.9)
        bias = values[3 * len(values) // 4 :].max()
        axis.axhline(bias, color=colour, linestyle=":", linewidth=0.9)
    axis.set_yscale("log")
    axis.set_ylim(bottom=1e-14)  # rounding below
    axis.set_ylabel("potential\n(dashed: bound, dotted: measured bias)", fontsize=9)
    axis.legend(frameon=False, fontsize=8, loc="lower left")
    return figure
