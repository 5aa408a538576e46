"""A picture of a policy: what it does where, and how often it is there."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.checks import require_count, require_index
from cmdpax.figures.labels import plain_text
from cmdpax.figures.maps import (
    Grid,
    draw_arrows,
    draw_map,
    grid_of,
    has_choice,
    map_size,
    mark_places,
)
from cmdpax.figures.style import REFERENCE
from cmdpax.model.arrays import ArrayLike
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import Evaluation, evaluate
from cmdpax.model.validation import validate_policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REACHED = 1e-9  # probability of a state that counts as never
_PARTS = 12  # of a cell, which is divided among the actions where they are random
_MOST_PARTS = 4800  # of all steps
_MOST_NAMED = 12  # actions in the legend
_LONGEST = 44  # characters of a state's name
_WIDEST = 44  # characters of a heading in one line
_FEW = 12  # states that are drawn whether they are reached or not
# Of different hues, as far as they go: pale cells must not look like another action's.
_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#A6192E", "#6A3D9A", "#555555", "#CC79A7", "#8B6B00",
    "#D55E00", "#56B4E9",
)  # fmt: skip


def plot_policy(
    cmdp: CMDP, policy: ArrayLike, *, step: int | None = None, max_states: int = 60
) -> "Figure":
    """Draw a policy and its occupancy: a map, or a chart of states over steps.

    If the names of states and actions say that the model is a map (`grid_of`), cells are shaded by
    how often they are visited and arrows show the actions that are taken there, the longer and
    darker the likelier. Over all steps, an action counts as often as it is taken. White cells are
    never reached, and have no arrow; nor have cells where it does not matter what is done, such as
    a goal that is never left. Walls are dark.

    Other models have a row for each state and a column for each step, in the colours of the
    actions; a cell is divided where the action is random, and the paler the rarer the state is
    reached.

    Args:
        cmdp: the model.
        policy: π_h(a | s), `[H, S, A]`, or `[1, S, A]` for a stationary one, such as
            `solution.policy`.
        step: only this one, from 0; None draws all.
        max_states: rows of the chart; if more states are reached, the most visited ones are drawn.
            States that are never reached are left out, unless there are few.

    Examples:
        >>> import cmdpax
        >>> from cmdpax.figures import plot_policy
        >>> queue = cmdpax.environments.make("queue")
        >>> figure = plot_policy(queue, cmdpax.solve(queue).policy)  # a figure of matplotlib
    """
    if step is not None:
        step = require_index("step", step, cmdp.horizon, "steps")
    max_states = require_count("max_states", max_states)
    found = evaluate(cmdp, policy)
    grid = grid_of(cmdp.words)
    if grid is not None:
        figure = _map(cmdp, grid, found.occupancy, step)
    else:
        chances = validate_policy(cmdp, policy)
        figure = _chart(cmdp, chances, found.occupancy, step, max_states)
    figure.suptitle(plain_text(summary(cmdp, found)), fontsize=9, color=REFERENCE)
    return figure


def summary(cmdp: CMDP, found: Evaluation) -> str:
    """Say what a policy is worth, such as "savings: 68.7 EUR, energy: 40 kWh (at most 60)"."""
    words = cmdp.words
    parts = [f"{words.objective}: {words.amount(found.value, digits=4)}"]
    for index, (value, bound) in enumerate(zip(found.constraint_values, cmdp.bounds, strict=True)):
        amount = words.amount(value, 1 + index, digits=4)
        parts.append(f"{words.constraint(index)}: {amount} ({words.sense(index)} {bound:.4g})")
    shown, left = parts[:5], len(parts) - 5
    lines = [", ".join(shown)]
    if len(lines[0]) > _WIDEST:
        lines = shown
    return "\n".join(lines) + (f", {left} more" if left > 0 else "")


# ---------------------------------------------------------------------------------------------- map


def _map(cmdp: CMDP, grid: Grid, occupancy: np.ndarray, step: int | None) -> "Figure":
    from matplotlib.figure import Figure

    mass = occupancy.sum(axis=0) if step is None else occupancy[step]
    visits = mass.sum(axis=1)
    width, height = map_size(grid)
    figure = Figure(figsize=(width + 1.6, height + 1.5), layout="constrained")
    axis = figure.subplots()
    image = draw_map(axis, grid, visits)
    reached = visits > _REACHED
    chances = mass / np.where(reached, visits, 1.0)[:, None]
    handles = mark_places(axis, cmdp, grid)
    draw_arrows(axis, grid, chances, reached & has_choice(cmdp))
    said = "expected visits per episode" if step is None else f"probability at step {step}"
    bar = figure.colorbar(image, ax=axis, shrink=0.8, pad=0.03)
    bar.set_label(said, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    if handles:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8
        )
    return figure


# -------------------------------------------------------------------------------------------- chart


def _chart(
    cmdp: CMDP,
    chances: np.ndarray,
    occupancy: np.ndarray,
    step: int | None,
    max_states: int,
) -> "Figure":
    """Draw states over steps in the colours of the actions."""
    from matplotlib.figure import Figure

    chosen = slice(None) if step is None else slice(step, step + 1)
    chances, mass = chances[chosen], occupancy[chosen]
    states = _most_visited(mass.sum(axis=(0, 2)), max_states)
    visits = mass.sum(axis=2)[:, states]  # [H, N]
    width = float(np.clip(0.28 * len(chances), 2.6, 9.0)) + 2.6
    figure = Figure(figsize=(width, max(2.2, 0.17 * len(states) + 1.4)), layout="constrained")
    axis = figure.subplots()
    taken = mass.sum(axis=(0, 1))
    _paint(axis, chances[:, states], visits, action_colours(taken > _REACHED))
    first = 0 if step is None else step
    axis.set_xlim(-0.5, len(chances) - 0.5)
    ticks = np.arange(0, len(chances), max(1, -(-len(chances) // 12)))
    axis.set_xticks(ticks, [str(first + tick) for tick in ticks], fontsize=8)
    axis.set_xlabel("step", fontsize=9)
    name_states(axis, cmdp, states)
    if len(states) < cmdp.num_states:
        reached = int((mass.sum(axis=(0, 2)) > _REACHED).sum())
        kind = "reached" if reached <= len(states) else "most visited"
        axis.set_ylabel(f"the {len(states)} {kind} of {cmdp.num_states} states", fontsize=8)
    random = (chances[:, states].max(axis=-1) < 1 - 1e-6) & (visits > _REACHED)
    _name_actions(figure, cmdp, taken, bool(random.any()))
    return figure


def _most_visited(visits: np.ndarray, most: int) -> np.ndarray:
    """List the states to draw, in their order."""
    if len(visits) <= min(most, _FEW):
        return np.arange(len(visits))
    ranked = np.argsort(-visits, kind="stable")[:most]
    return np.sort(ranked[visits[ranked] > _REACHED])


def _paint(axis: Any, chances: np.ndarray, visits: np.ndarray, colours: np.ndarray) -> None:
    """Paint a cell for every step and state: divided by probabilities, the paler the rarer."""
    steps, rows, _ = chances.shape
    parts = int(np.clip(_MOST_PARTS // steps, 1, _PARTS))
    middles = (np.arange(parts) + 0.5) / parts
    ends = np.cumsum(chances, axis=-1)  # [H, N, A]
    actions = (middles[:, None] > ends[:, :, None, :]).sum(axis=-1)  # [H, N, parts]
    actions = np.minimum(actions, len(colours) - 1)
    # The root keeps rare states in sight; those that are never reached are white.
    strength = np.where(visits > _REACHED, 0.15 + 0.85 * np.sqrt(np.clip(visits, 0, 1)), 0.0)
    painted = 1 - strength[..., None, None] * (1 - colours[actions])  # [H, N, parts, 3]
    image = painted.transpose(1, 0, 2, 3).reshape(rows, steps * parts, 3)
    extent = (-0.5, steps - 0.5, rows - 0.5, -0.5)
    axis.imshow(np.clip(image, 0, 1), extent=extent, aspect="auto", interpolation="nearest")
    if steps <= 60:
        axis.vlines(np.arange(1, steps) - 0.5, -0.5, rows - 0.5, color="white", linewidth=0.6)
    axis.hlines(np.arange(1, rows) - 0.5, -0.5, steps - 0.5, color="white", linewidth=0.6)
    axis.spines[:].set_visible(False)


def name_states(axis: Any, cmdp: CMDP, states: np.ndarray) -> None:
    """Write the names of states beside rows 0, 1, …"""
    names = [cmdp.words.state(index) for index in states.tolist()]
    short = [name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…" for name in names]
    size = 8 if len(states) <= 30 else 6
    axis.set_yticks(np.arange(len(states)), [plain_text(name) for name in short], fontsize=size)
    axis.tick_params(length=0)


def action_colours(taken: np.ndarray) -> np.ndarray:
    """Give each action a colour, `[A, 3]`.

    Of more than ten actions, those that are taken, `[A]` flags, have different ones; if these are
    more than ten as well, neighbours look alike.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    chosen = np.ones_like(taken) if len(taken) <= len(_COLOURS) else taken
    found, count = np.ones((len(taken), 3)), int(chosen.sum())
    if count <= len(_COLOURS):
        found[chosen] = np.array([to_rgb(colour) for colour in _COLOURS[:count]])
    else:
        found[chosen] = np.asarray(colormaps["turbo"](np.linspace(0.03, 0.97, count)))[:, :3]
    return found


def _name_actions(figure: "Figure", cmdp: CMDP, taken: np.ndarray, random: bool) -> None:
    """Put the actions that are taken into a legend, the most frequent ones if there are many."""
    from matplotlib.patches import Patch

    colours = action_colours(taken > _REACHED)
    kept = np.sort(np.argsort(-taken, kind="stable")[:_MOST_NAMED])
    kept = kept[taken[kept] > _REACHED]
    handles = [
        Patch(color=colours[index], label=plain_text(cmdp.words.action(index)))
        for index in kept.tolist()
    ]
    left = int((taken > _REACHED).sum()) - len(kept)
    if left:
        handles.append(Patch(color="none", label=f"and {left} rarer ones"))
    title = "pale: rarely there\nwhite: never" + ("\ndivided: random" if random else "")
    figure.legend(
        handles=handles, loc="outside right upper", frameon=False, fontsize=8,
        title=title, title_fontsize=7, alignment="left",
    )  # fmt: skip
