"""The paper's figures, in its layout, and one of the long runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmdpax.experiments import Results
from cmdpax.figures.colours import pens
from cmdpax.figures.style import REFERENCE, canvas, save_figure
from cmdpax.figures.sweeps import best_lines, curve, draw_lines, name_lines, plot_sweep
from cmdpax.paper.reproduction.experiment import DUAL, PRIMAL_DUAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANEL = (3.25, 2.3)


def draw_figures(sweeps: dict[str, Results], folder: Path) -> list[Path]:
    """Draw every figure as PNG and PDF."""
    paper = sweeps["paper"]
    first = next(iter(paper.manifest["cmdps"]))
    figures = {
        "iterates": iterates(paper, first),
        "regret-primal-dual": regrets(paper, PRIMAL_DUAL, first),
        "regret-dual": regrets(paper, DUAL, first),
        "multipliers": plot_sweep(paper, "multipliers", algorithms=PRIMAL_DUAL, cmdp=first),
        "long-run": long_run(sweeps["long"]),
    }
    paths = []
    for name, figure in figures.items():
        for ending in (".png", ".pdf"):
            paths.append(folder / (name + ending))
            save_figure(figure, paths[-1])
    return paths


def iterates(paper: Results, cmdp: str) -> "Figure":
    """Draw violation and suboptimality of each episode, vanilla against regularized primal-dual.

    The upper row shows means over runs, in which oscillations cancel as soon as the runs are out of
    step; the lower row shows one run.
    """
    figure, axes = canvas(2, 2, "episode", _PANEL)
    lines = _named(paper, PRIMAL_DUAL, cmdp)
    panels = (("violation", "constraint violation"), ("suboptimality", "objective suboptimality"))
    for place, (column, label) in enumerate(panels):
        mean, single = axes[:, place]
        draw_lines(mean, paper, lines, column, [cmdp])
        for line in lines:
            episodes, values = curve(paper, line["configuration"], column, [cmdp])
            single.plot(episodes, values[0], color=line["colour"], linewidth=0.8)
        mean.set_ylabel(f"{label}\n(mean of {len(values)} runs)", fontsize=9)
        single.set_ylabel(f"{label}\n(one run)", fontsize=9)
        for axis in (mean, single):
            axis.axhline(0.0, color=REFERENCE, linewidth=0.6)
    return _finished(figure, axes)


def regrets(paper: Results, pair: tuple[str, str], cmdp: str) -> "Figure":
    """Draw strong regrets on the left and weak ones on the right."""
    figure, axes = canvas(1, 4, "episode", (2.6, 2.3))
    lines = _named(paper, pair, cmdp)
    panels = (
        ("strong_constraints", "constraint regret", "(a) strong regrets"),
        ("strong_objective", "objective regret", ""),
        ("weak_constraints", "constraint regret", "(b) weak regrets"),
        ("weak_objective", "objective regret", ""),
    )
    for axis, (column, label, title) in zip(axes.flat, panels, strict=True):
        draw_lines(axis, paper, lines, column, [cmdp])
        axis.set_ylabel(label, fontsize=9)
        axis.set_title(title, fontsize=10, loc="left")
        if column.startswith("weak"):
            axis.axhline(0.0, color=REFERENCE, linewidth=0.6)
    return _finished(figure, axes)


def long_run(long: Results) -> "Figure":
    """Draw the long runs' strong regrets on log axes, constant and decaying parameters."""
    figure, axes = canvas(1, 2, "episode", _PANEL)
    first = next(iter(long.manifest["cmdps"]))
    kinds = (
        (PRIMAL_DUAL[0], "step_size_exponent", False, "vanilla, constant η", "#555555"),
        (PRIMAL_DUAL[0], "step_size_exponent", True, "vanilla, decaying η", "#E69F00"),
        (PRIMAL_DUAL[1], "regularization_exponent", False, "regularized, fixed τ", "#CC79A7"),
        (PRIMAL_DUAL[1], "regularization_exponent", True, "regularized, decaying τ", "#009E73"),
    )
    lines = [
        {
            "algorithm": name,
            "configuration": _configuration(long, name, column, decays),
            "label": label,
            "colour": colour,
            "dash": pens([name])[name].dash,
        }
        for name, column, decays, label, colour in kinds
    ]
    panels = (
        ("strong_constraints", "strong regret, constraint"),
        ("strong_objective", "strong regret, objective"),
    )
    for axis, (column, label) in zip(axes.flat, panels, strict=True):
        draw_lines(axis, long, lines, column, [first])
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_ylabel(label, fontsize=9)
        axis.set_xlim(left=100)
        axis.set_ylim(bottom=5)
    return _finished(figure, axes)


def _configuration(long: Results, algorithm: str, column: str, decays: bool) -> str:
    import polars

    rows = long.final.filter(
        (polars.col("algorithm") == algorithm) & ((polars.col(column) > 0) == decays)
    )
    return str(rows["configuration"][0])


def _named(paper: Results, pair: tuple[str, str], cmdp: str) -> list[dict[str, Any]]:
    """Pick each algorithm's best configuration on the CMDP, vanilla first, with a short name."""
    lines = {line["algorithm"]: line for line in best_lines(paper, pair, [cmdp])}
    return [lines[name] | {"label": name.partition("-")[0]} for name in pair]


def _finished(figure: "Figure", axes: Any) -> "Figure":
    for axis in axes.flat:
        axis.tick_params(labelsize=8)
        axis.xaxis.label.set_size(9)
    name_lines(figure, axes[0, 0])
    return figure
