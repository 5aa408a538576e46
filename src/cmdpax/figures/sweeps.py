"""Pictures of a sweep: algorithms against each other, each with its best configuration.

Lines are means over runs, with Student's 95 % intervals; with several CMDPs both are over the
CMDPs' means. Intervals of fewer than three runs, or CMDPs, are not drawn, and those of strong
regrets and multipliers end at 0 (`around_mean`). Where the CMDPs name their constraints, each one
has a panel, in its name and unit.
"""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.checks import check_choice
from cmdpax.errors import FileError, ParameterError, nearest_name
from cmdpax.experiments.reading import Results
from cmdpax.experiments.tables import readable
from cmdpax.figures.colours import line_style, pens
from cmdpax.figures.labels import plain_text, price
from cmdpax.figures.panels import iterate_panels, regret_panels
from cmdpax.figures.style import OTHERS, REFERENCE, around_mean, band, canvas
from cmdpax.learners import is_baseline

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure

KINDS = ("iterates", "regret", "multipliers")
_PANEL = (3.1, 2.4)


def plot_sweep(
    results: Results,
    kind: str,
    *,
    algorithms: Sequence[str] | None = None,
    cmdp: str | None = None,
) -> "Figure":
    """Draw a sweep.

    Args:
        results: the results of the sweep.
        kind: "iterates" (violation and suboptimality of each episode), "regret" (strong and weak)
            or "multipliers".
        algorithms: the algorithms to draw; None draws all.
        cmdp: the name or fingerprint of one CMDP; None takes all.
    """
    check_choice("kind", kind, KINDS)
    chosen = pick_cmdps(results, cmdp)
    if kind == "multipliers":
        return _multipliers(results, best_lines(results, algorithms, chosen[:1]), chosen[0])
    lines = best_lines(results, algorithms, chosen)
    models = {fingerprint: results.cmdps[fingerprint] for fingerprint in chosen}
    rows = iterate_panels(models) if kind == "iterates" else regret_panels(results, models)
    figure, axes = canvas(len(rows), len(rows[0]), "episode", _PANEL)
    for axis, panel in zip(axes.flat, itertools.chain(*rows), strict=True):
        draw_lines(axis, results, lines, panel.column, chosen, nonnegative=panel.nonnegative)
        axis.set_title(plain_text(panel.title), fontsize=9)
        if panel.zero:
            axis.axhline(0.0, color=REFERENCE, linewidth=0.6)
    name_lines(figure, axes[0, 0])
    return figure


def pick_cmdps(results: Results, wanted: str | None) -> list[str]:
    """Find the fingerprints of the CMDPs to draw."""
    described = results.manifest["cmdps"]
    if wanted is None:
        return list(described)
    found = [
        f
        for f, entry in described.items()
        if wanted and (wanted == entry["name"] or f.startswith(wanted))
    ]
    if not found:
        names = [entry["name"] for entry in described.values()]
        raise ParameterError(
            f"{results.path} has no CMDP {wanted!r}; {nearest_name(wanted, names)}."
        )
    if len(found) > 1:
        raise ParameterError(
            f"{results.path} has {len(found)} CMDPs {wanted!r}; give a fingerprint such as "
            f"{found[0][:12]}."
        )
    return found


def best_lines(
    results: Results, algorithms: Sequence[str] | None, cmdps: Sequence[str]
) -> list[dict[str, Any]]:
    """Pick every algorithm's best configuration on these CMDPs, in a fixed order of colours.

    A line to draw has `algorithm`, `configuration`, `label`, `colour` and `dash`. All algorithms of
    the sweep, drawn or not, share the colours: they are those of its page.
    """
    known = results.best(cmdps=cmdps).to_dicts()
    names = [row["algorithm"] for row in known]
    for name in algorithms or ():
        if name not in names:
            raise ParameterError(
                f"{results.path} has no algorithm {name!r} on these CMDPs; "
                f"{nearest_name(name, names)}."
            )
    known.sort(key=lambda row: not is_baseline(row["algorithm"]))
    drawn = pens(results.final["algorithm"].unique().to_list())
    return [
        row | {"label": name, "colour": drawn[name].colour, "dash": drawn[name].dash}
        for row in known
        if (name := row["algorithm"]) in (algorithms or names)
    ]


def draw_lines(
    axis: Any,
    results: Results,
    lines: Sequence[dict[str, Any]],
    column: "str | polars.Expr",
    cmdps: Sequence[str],
    *,
    nonnegative: bool | None = None,
) -> None:
    """Draw mean and interval of a column for each configuration.

    Args:
        axis: where.
        results: the results of the sweep.
        lines: as `best_lines` gives them.
        column: of `curves`, or an expression.
        cmdps: fingerprints.
        nonnegative: whether no value can be below 0; None: if it is named a strong regret.
    """
    if nonnegative is None:
        nonnegative = isinstance(column, str) and "strong" in column
    for line in lines:
        episodes, values = curve(results, line["configuration"], column, cmdps)
        around = around_mean(values, nonnegative)
        style = line_style(line.get("dash", "solid"))
        named = {"color": line["colour"], "label": line["label"]}
        band(axis, episodes, values.mean(axis=0), around, linestyle=style, **named)


def curve(
    results: Results, configuration: str, column: "str | polars.Expr", cmdps: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Read episodes `[T]` and values: `[R, T]` of runs on one CMDP, or `[N, T]` of CMDPs' means."""
    import polars

    rows = results.curves.filter(
        (polars.col("configuration") == configuration) & polars.col("cmdp").is_in(list(cmdps))
    )
    unit = "cmdp" if len(cmdps) > 1 else "seed"
    value = polars.col(column) if isinstance(column, str) else column
    with readable(results.path):
        means = rows.group_by(unit, "episode").agg(value=value.mean())
        table = means.sort(unit, "episode").collect()
    episodes = table["episode"].unique().sort().to_numpy()
    if not len(table) or len(table) != len(episodes) * table[unit].n_unique():
        raise FileError(f"{results.path} has curves of different episodes; use another folder.")
    return episodes, table["value"].to_numpy().reshape(-1, len(episodes))


def _multipliers(results: Results, lines: Sequence[dict[str, Any]], fingerprint: str) -> "Figure":
    """Draw λ of each constraint on one CMDP, the optimum dotted."""
    import polars

    optimal = results.manifest["cmdps"][fingerprint]["multipliers"]
    if not optimal:
        raise ParameterError("the CMDP has no constraints, hence no multipliers to draw.")
    figure, axes = canvas(1, len(optimal), "episode", _PANEL)
    words = results.cmdps[fingerprint].words
    for constraint, axis in enumerate(axes.flat):
        multiplier = polars.col("multipliers").list.get(constraint)
        draw_lines(axis, results, lines, multiplier, [fingerprint], nonnegative=True)
        axis.axhline(optimal[constraint], color=OTHERS[-1], linestyle=":", linewidth=1.0)
        axis.set_ylabel(f"{plain_text(price(words, constraint))}\n(dotted: optimal)", fontsize=9)
    name_lines(figure, axes[0, 0])
    return figure


def name_lines(figure: "Figure", axis: Any) -> None:
    """Put one legend for all panels above them."""
    handles, labels = axis.get_legend_handles_labels()
    columns = min(len(labels), 1 if figure.get_figwidth() < 5 else 4)
    figure.legend(
        handles, labels, loc="outside upper center", ncols=columns, frameon=False, fontsize=8
    )
