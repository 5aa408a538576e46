"""Pictures of what learning and iterating did."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.figures.labels import bounded, plain_text, price
from cmdpax.figures.style import CONSTRAINT, OBJECTIVE, OTHERS, REFERENCE, band, canvas
from cmdpax.learning.history import History
from cmdpax.model.words import PLAIN, Words
from cmdpax.schemes.iteration import Iterates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_CONSTRAINTS = 5  # with a row of their own
_NOTHING = 1e-12  # a multiplier below this is rounding
_TITLE: dict[str, Any] = {"fontsize": 9, "loc": "left"}


def plot_history(history: History) -> "Figure":
    """Draw what every episode's policy is worth, both regrets and the multipliers.

    The objective and every constraint have a row, in their names and units: the value of each
    episode's policy against the optimum or the bound, whose wrong side is shaded; the strong regret
    after it, and the weak one; the multiplier. Lines are means over the runs, and bands go from the
    lowest run to the highest. Of more than five constraints, those with the largest strong regrets
    are drawn.

    A learner that plans keeps its policy longer and longer: its values and multipliers are steps on
    a logarithmic axis. Regrets stay on a linear one, where their growth can be seen.
    """
    kept = _worst(history)
    figure, axes = canvas(1 + len(kept), 4 if kept else 3, "episode", (3.3, 2.3))
    for axis in axes[:-1].flat:
        axis.set_xlabel("")
    _objective(axes[0], history)
    for row, constraint in zip(axes[1:], kept, strict=True):
        _constraint(row, history, constraint)
    if history.plans is not None:
        for axis in (*axes[:, 0], *axes[1:, 3:].flat):
            axis.set_xscale("log")
    if kept:
        _explain(axes[0, 3])
    figure.suptitle(_heading(history, len(kept)), fontsize=10)
    return figure


def _worst(history: History) -> list[int]:
    """List the constraints to draw, in their order."""
    last = history.strong_regret.constraints[:, -1].mean(axis=0)
    worst = np.argsort(-last, kind="stable")[:_MOST_CONSTRAINTS]
    return sorted(worst.tolist())


def _heading(history: History, drawn: int) -> str:
    runs, several = len(history.value), len(history.value) > 1
    text = f"{plain_text(str(history.manifest['algorithm']))}, "
    text += f"{runs} runs: their mean, from the lowest to the highest" if several else "1 run"
    left = history.constraint_values.shape[-1] - drawn
    return text + (f"; {left} constraints with less regret are left out" if left else "")


def _objective(row: Any, history: History) -> None:
    """Draw the objective's row."""
    words, episodes = history.words, history.episodes
    _band(row[0], episodes, history.value, OBJECTIVE, "", _style(history))
    row[0].axhline(float(np.mean(history.optimum)), color=REFERENCE, linestyle="--", linewidth=1.0)
    row[0].set_title(plain_text(words.label()), **_TITLE)
    _regrets(row[1:3], history, OBJECTIVE, None)


def _constraint(row: Any, history: History, index: int) -> None:
    """Draw a constraint's row."""
    words, episodes, style = history.words, history.episodes, _style(history)
    _band(row[0], episodes, history.constraint_values[..., index], CONSTRAINT, "", style)
    bound = float(np.mean(history.thresholds[..., index]))
    mark_bound(row[0], bound, words.sense(index))
    row[0].set_title(plain_text(bounded(words, index, bound)), **_TITLE)
    _regrets(row[1:3], history, CONSTRAINT, index)
    _band(row[3], episodes, history.multipliers[..., index], OTHERS[0], "", style)
    best = float(history.manifest["optimal_multipliers"][index])
    row[3].axhline(best, color=REFERENCE, linestyle="--", linewidth=1.0)
    _scale(row[3], history.multipliers[..., index], best)
    row[3].set_title(plain_text(price(words, index)), **_TITLE)


def _scale(axis: Any, values: np.ndarray, other: float = 0.0) -> None:
    """Keep rounding errors from filling an axis."""
    if max(float(np.max(np.abs(values))), abs(other)) < _NOTHING:
        axis.set_ylim(-0.05, 1.0)


def _style(history: History) -> str:
    return "default" if history.plans is None else "steps-post"


def mark_bound(axis: Any, bound: float, sense: str) -> None:
    """Draw a bound, and shade its wrong side as far as the axis goes."""
    low, high = axis.get_ylim()
    low, high = min(low, bound), max(high, bound)
    room = 0.06 * (high - low or 1.0)
    low, high = low - room, high + room
    wrong = (bound, high) if sense == "at most" else (low, bound)
    axis.axhspan(*wrong, color=REFERENCE, alpha=0.12, linewidth=0)
    axis.axhline(bound, color=REFERENCE, linestyle="--", linewidth=1.0)
    axis.set_ylim(low, high)


def _regrets(axes: Any, history: History, colour: str, constraint: int | None) -> None:
    """Draw the strong and the weak regret of the objective, or of a constraint."""
    label = history.words.label(0 if constraint is None else 1 + constraint)
    regrets = {"strong": history.strong_regret, "weak": history.weak_regret}
    for axis, (name, regret) in zip(axes, regrets.items(), strict=True):
        one = regret.objective if constraint is None else regret.constraints[..., constraint]
        _band(axis, history.episodes, one, colour, "")
        axis.axhline(0.0, color=REFERENCE, linewidth=0.6)
        axis.set_title(plain_text(f"{name} regret, {label}"), **_TITLE)
        _scale(axis, one)


def _explain(axis: Any) -> None:
    """Say what is drawn, where the objective has no multiplier."""
    axis.set_axis_off()
    text = (
        "Dashed: optima and bounds, with\nthe wrong side of a bound shaded.\n"
        "Strong regret adds up what each\nepisode misses; weak regret lets\n"
        "better episodes pay for worse ones."
    )
    look = {"va": "top", "fontsize": 9, "color": REFERENCE, "linespacing": 1.5}
    told = axis.text(0.0, 0.95, text, transform=axis.transAxes, **look)
    told.set_in_layout(False)  # it must not make the column wider


def plot_iterates(
    iterates: Iterates,
    optimum: float,
    thresholds: np.ndarray,
    optimal: Any,
    words: Words = PLAIN,
) -> "Figure":
    """Draw the errors and multipliers of a scheme's iterates.

    Args:
        iterates: what `cmdpax.iterate` found.
        optimum: the optimal value.
        thresholds: the bounds of the constraints in their senses, `cmdp.bounds`.
        optimal: the optimal multipliers.
        words: the names, units and senses of the model.
    """
    figure, axes = canvas(1, 2, "iteration")
    steps = np.arange(1, len(iterates.value) + 1)
    errors, prices = axes[0]
    label = plain_text(f"suboptimality, {words.label()}" if words != PLAIN else "suboptimality")
    errors.plot(steps, optimum - iterates.value, color=OBJECTIVE, label=label)
    if thresholds.size:
        violation = -words.slack(iterates.constraint_values, thresholds)
        for colour, (values, label) in zip(_colours(), _violations(violation, words), strict=False):
            errors.plot(steps, values, color=colour, label=plain_text(label))
    errors.axhline(0.0, color=REFERENCE, linewidth=0.8)
    errors.set_title("errors of each iterate")
    errors.legend(frameon=False, fontsize=9)
    for constraint, best in enumerate(optimal):
        colour = OTHERS[constraint % len(OTHERS)]
        values, label = iterates.multipliers[:, constraint], plain_text(price(words, constraint))
        prices.plot(steps, values, color=colour, linewidth=1.2, label=label)
        prices.axhline(best, color=colour, linestyle="--", linewidth=0.8)
    prices.set_title("multipliers (dashed: optimal)")
    if len(optimal):
        prices.legend(frameon=False, fontsize=9)
    return figure


def _colours() -> tuple[str, ...]:
    return (CONSTRAINT, *OTHERS)


def _violations(violation: np.ndarray, words: Words) -> list[tuple[np.ndarray, str]]:
    """List a line for each constraint that has a name; the largest where none has, or many."""
    count = violation.shape[-1]
    if words.constraint_names is None or count > _MOST_CONSTRAINTS:
        return [(violation.max(axis=-1), "violation (largest)")]
    return [(violation[:, i], f"violation, {words.label(1 + i)}") for i in range(count)]


def _band(
    axis: Any,
    episodes: np.ndarray,
    values: np.ndarray,
    colour: str,
    label: str,
    style: str = "default",
    linestyle: str = "-",
) -> None:
    """Draw the mean over runs, and the range of the runs around it."""
    around = (values.min(axis=0), values.max(axis=0))
    look = {"color": colour, "label": label, "drawstyle": style, "linestyle": linestyle}
    band(axis, episodes, values.mean(axis=0), around, **look)
