"""A statement to check: two sides, where they are compared, and how the outcome is judged."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

Verdict = Literal["holds", "fails", "vacuous", "premise not met", "does not apply"]


Sides: TypeAlias = tuple[Any, Any]
"""Both sides of left ≤ right at every index: arrays that broadcast."""


class Statement(NamedTuple):
    """A statement of the paper (or a user's own) as a pure function.

    Attributes:
        name: a short name.
        place: where it stands in the paper.
        text: what is compared, left ≤ right.
        axes: the names of the sides' axes, such as "hsa"; the iteration k comes before them.
        sides: from the `Problem` (and, unless it is checked once, the `Step`) to both sides.
        premises: names of what must hold for it, as `unmet` knows them.
        trivial: what the left side never exceeds anyway; a right side above it says nothing.
        tolerance: the rounding that is allowed, relative to the right side.
        note: which reading was used where print and proof differ, and the like.
    """

    name: str
    place: str
    text: str
    axes: str
    sides: Callable[..., Sides]
    premises: tuple[str, ...] = ()
    trivial: Callable[[Any], Any] | None = None
    tolerance: float = 1e-9
    note: str = ""


def as_statement(
    name: str, place: str, axes: str = "", premises: tuple[str, ...] = (), **more: Any
) -> Callable[[Callable[..., Sides]], Statement]:
    """Make a statement of a function; the first line of its docstring says what is compared."""

    def make(sides: Callable[..., Sides]) -> Statement:
        text = (sides.__doc__ or "").partition("\n")[0].removesuffix(".")
        return Statement(name, place, text, axes, sides, premises, **more)

    return make


class Worst(NamedTuple):
    """The smallest slack so far, and where it was."""

    slack: Float[Array, ""]
    left: Float[Array, ""]
    right: Float[Array, ""]
    iteration: Integer[Array, ""]
    place: Integer[Array, ""]  # flat, within the axes
    least_right: Float[Array, ""]


def nothing_yet(dtype: Any) -> Worst:
    """Start before the first comparison."""
    infinite = jnp.asarray(jnp.inf, dtype)
    zero = jnp.asarray(0, jnp.int32)
    return Worst(infinite, infinite, infinite, zero, zero, infinite)


def compare(sides: Sides, iteration: Any) -> Worst:
    """Find the worst place of one iteration."""
    left, right = jnp.broadcast_arrays(*map(jnp.asarray, sides))
    slack = jnp.where(jnp.isnan(right - left), -jnp.inf, right - left).reshape(-1)
    place = jnp.argmin(slack)
    return Worst(
        slack[place],
        left.reshape(-1)[place],
        right.reshape(-1)[place],
        jnp.asarray(iteration, jnp.int32),
        place.astype(jnp.int32),
        jnp.min(right),
    )


def worse(first: Worst, second: Worst) -> Worst:
    """Keep the worse of two."""
    taken = second.slack < first.slack
    chosen = Worst(*(jnp.where(taken, b, a) for a, b in zip(first, second, strict=True)))
    return chosen._replace(least_right=jnp.minimum(first.least_right, second.least_right))


class Row(NamedTuple):
    """One row of an audit.

    Attributes:
        name: the statement's name.
        place: where it stands in the paper.
        text: what is compared, left ≤ right.
        left: the left side at the worst place.
        right: the right side there.
        slack: right - left there, the smallest of all.
        verdict: "holds", "fails", "vacuous", "premise not met" or "does not apply".
        worst: the indices of the worst place: k from 1, all others from 0.
        note: why, or which reading was used.
    """

    name: str
    place: str
    text: str
    left: float
    right: float
    slack: float
    verdict: Verdict
    worst: dict[str, int]
    note: str


NOTHING = (math.nan, math.nan, math.nan)
"""Both sides and the slack, where there is nothing to compare."""


def dismissed(statement: Statement | Row, reason: str) -> Row:
    """Make the row of a statement that does not apply, of the statement or of its row."""
    name, place, text, *_ = statement
    return Row(name, place, text, *NOTHING, "does not apply", {}, reason)


def judge(
    statement: Statement, worst: Worst, shape: Sequence[int], unmet: Sequence[str], trivial: Any
) -> Row:
    """Judge a statement by its worst place."""
    slack, left, right = (float(number) for number in worst[:3])
    scale = max(1.0, abs(right)) if np.isfinite(right) else 1.0
    verdict: Verdict = "holds"
    notes = [statement.note] if statement.note else []
    if unmet:
        verdict = "premise not met"
        notes = [*unmet, *notes]
    elif not slack >= -statement.tolerance * scale:
        verdict = "fails"
    elif trivial is not None and float(worst.least_right) >= float(trivial):
        verdict = "vacuous"
        notes.append(f"the right side is never below {float(trivial):.4g}, which holds anyway")
    where = {"k": int(worst.iteration)} if int(worst.iteration) else {}
    if statement.axes:
        indices = np.unravel_index(int(worst.place), tuple(shape))
        where |= {axis: int(i) for axis, i in zip(statement.axes, indices, strict=True)}
    return Row(
        statement.name,
        statement.place,
        statement.text,
        left,
        right,
        slack,
        verdict,
        where,
        "; ".join(notes),
    )
