"""The master problems of many models at once: primal simplex on I + 1 rows, in JAX.

A column n is a policy with the value f_n = V_r and the slacks G_{in} = (V_{u_i} - c_i) / e_i, where
e_i is the scale of constraint i. Over weights w ≥ 0 of the columns the master problem is

    Σ_n w_n = 1,      Σ_n w_n G_{in} - s_i - t = -ρ   for every i,      s ≥ 0,

with max t, t free, in the first phase and max Σ_n w_n f_n, t ≥ 0, in the second: they are those of
`master`, with the same numbers for variables (0 is t, 1 … I are the surpluses s, then the columns
come). One column, t and the surpluses of all rows but the tightest are a feasible basis of the
first phase; once t ≥ 0, or once it is at its largest and ρ makes it so, its basis is one of the
second. A model changes its phase on the way, and no basis is ever searched for.

With few rows, everything is an elementwise operation on whole batches: models stand along the last
axis. The inverse of the basis is updated at each pivot and polished by a step of Newton's method,
X ← X (2 - M X), which leaves errors that are the square of what they were.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, Shaped

_PATIENCE = 12  # pivots in a row without gain after which Bland's rule forbids cycles


class Basis(NamedTuple):
    """Where simplex stands.

    Attributes:
        variables: the variables of the basis.
        matrix: their columns.
        inverse: its inverse.
        second: whether the model is in its second phase.
        relaxation: ρ.
        idle: pivots in a row that gained nothing.
    """

    variables: Integer[Array, "M B"]
    matrix: Float[Array, "M M B"]
    inverse: Float[Array, "M M B"]
    second: Bool[Array, " B"]
    relaxation: Float[Array, " B"]
    idle: Integer[Array, " B"]


def multiply(left: Float[Array, "K M B"], right: Float[Array, "M N B"]) -> Float[Array, "K N B"]:
    """Products of small matrices."""
    return jnp.sum(left[:, :, None] * right[None], axis=1)


def apply(matrix: Float[Array, "K M B"], vector: Float[Array, "M B"]) -> Float[Array, "K B"]:
    """The same with a vector."""
    return jnp.sum(matrix * vector[None], axis=1)


def _argmin(table: Shaped[Array, "V B"]) -> Integer[Array, " B"]:
    return jnp.argmin(table, axis=0).astype(jnp.int32)


def first_basis(slacks: Float[Array, "I B"]) -> Basis:
    """That of the column in slot 0: the column, and in each row its surplus, or t in the tightest.

    Row 0 gives w = 1, row k gives t = G_k w - x_k, and row i gives s_i = G_i w - t - x_i.
    """
    num_constraints, batch = slacks.shape
    num_rows, kind = 1 + num_constraints, slacks.dtype
    rows = jnp.arange(1, num_rows, dtype=jnp.int32)
    tightest = rows[:, None] == 1 + _argmin(slacks)[None]  # [I, B]
    variables = jnp.concatenate(
        [jnp.full((1, batch), num_rows, jnp.int32), jnp.where(tightest, 0, rows[:, None])]
    )
    eye = jnp.broadcast_to(jnp.eye(num_rows, dtype=kind)[:, :, None], (num_rows, num_rows, batch))
    start = eye[:1]  # [1, M, B]
    single = slacks[:, None] * start - eye[1:]  # G_i w - x_i, [I, M, B]
    of_t = jnp.sum(jnp.where(tightest[:, None], single, 0.0), axis=0, keepdims=True)
    inverse = jnp.concatenate([start, jnp.where(tightest[:, None], of_t, single - of_t)])
    column = jnp.concatenate([jnp.ones((1, batch), kind), slacks])[:, None]
    on_t = jnp.where(rows[:, None, None] > 0, -jnp.ones((), kind), 0.0)
    others = jnp.where(tightest[None], on_t, -eye[1:, 1:])
    matrix = jnp.concatenate([jnp.zeros((1, num_constraints, batch), kind), others])
    return Basis(
        variables=variables,
        matrix=jnp.concatenate([column, matrix], axis=1),
        inverse=inverse,
        second=jnp.zeros(batch, bool),
        relaxation=jnp.zeros(batch, kind),
        idle=jnp.zeros(batch, jnp.int32),
    )


def _program(slacks: Float[Array, "I N B"]) -> Float[Array, "M V B"]:
    """The columns of all variables."""
    num_constraints, slots, batch = slacks.shape
    kind = slacks.dtype
    fixed = jnp.concatenate(
        [-jnp.ones((num_constraints, 1), kind), -jnp.eye(num_constraints, dtype=kind)], axis=1
    )
    fixed = jnp.concatenate([jnp.zeros((1, 1 + num_constraints), kind), fixed])
    made = jnp.concatenate([jnp.ones((1, slots, batch), kind), slacks])
    wide = jnp.broadcast_to(fixed[:, :, None], (*fixed.shape, batch))
    return jnp.concatenate([wide, made], axis=1)


def _worths(gains: Float[Array, "N B"], basis: Basis) -> Float[Array, "V B"]:
    """What a unit of each variable is worth in the model's phase."""
    num_rows, batch = basis.variables.shape
    of_t = jnp.where(basis.second, 0.0, jnp.ones((), gains.dtype))[None]
    of_columns = jnp.where(basis.second[None], gains, 0.0)
    return jnp.concatenate([of_t, jnp.zeros((num_rows - 1, batch), gains.dtype), of_columns])


def _at(table: Float[Array, "*k V B"], variable: Integer[Array, " B"]) -> Float[Array, "*k B"]:
    """The entries of one variable of each model."""
    places = jnp.arange(table.shape[-2], dtype=jnp.int32)[:, None] == variable[None]
    wide = jnp.broadcast_to(places, table.shape)
    return jnp.sum(jnp.where(wide, table, 0.0), axis=-2)


def vertex_of(
    gains: Float[Array, "N B"], basis: Basis
) -> tuple[Float[Array, "M B"], Float[Array, " B"], Float[Array, "M B"]]:
    """What a basis stands for.

    Returns:
        The values of its variables, the objective of the phase, and the duals of the rows; λ is
        minus the last I of them.
    """
    point = _point(basis)
    worths = _worths(gains, basis)
    of_basis = jnp.stack([_at(worths, variable) for variable in basis.variables])
    duals = jnp.sum(of_basis[:, None] * basis.inverse, axis=0)
    return point, jnp.sum(of_basis * point, axis=0), duals


def _point(basis: Basis) -> Float[Array, "M B"]:
    """The inverse times the right-hand side, (1, -ρ, …, -ρ)."""
    first, others = basis.inverse[:, 0], jnp.sum(basis.inverse[:, 1:], axis=1)
    return first - basis.relaxation[None] * others


def slack_of(basis: Basis) -> Float[Array, " B"]:
    """t; 0 where it is not in the basis."""
    return jnp.sum(jnp.where(basis.variables == 0, _point(basis), 0.0), axis=0)


def weights_of(basis: Basis) -> Float[Array, "M B"]:
    """The weights of the columns in the basis, 0 in the places of other variables."""
    point = _point(basis)
    of_columns = basis.variables >= len(point)
    rounding = 1e3 * np.finfo(point.dtype).eps
    weights = jnp.where(of_columns & (point > rounding), point, 0.0)
    return weights / jnp.maximum(jnp.sum(weights, axis=0, keepdims=True), rounding)


def optimise(
    gains: Float[Array, "N B"],
    slacks: Float[Array, "I N B"],
    valid: Bool[Array, "N B"],
    basis: Basis,
    goal: float,
    noise: float,
    active: Bool[Array, " B"],
    most_pivots: int,
) -> Basis:
    """Go to the best vertex of each model; those that are not active stay where they are.

    Args:
        gains: f of the columns that are kept, N slots for each model.
        slacks: G of them.
        valid: whether the slot is in use.
        basis: feasible ones.
        goal: the slack t at which a model enters its second phase.
        noise: the errors of gains and slacks; improvements below them are none.
        active: which models to look at.
        most_pivots: when to stop at the latest.
    """
    program = _program(slacks)
    allowed = jnp.concatenate([jnp.ones(basis.variables.shape, bool), valid])

    def go_on(carry: tuple[Array, Array, Basis]) -> Array:
        count, improving, _ = carry
        return (count < most_pivots) & jnp.any(improving)

    def pivot(carry: tuple[Array, Array, Basis]) -> tuple[Array, Array, Basis]:
        count, improving, basis = carry
        basis, moved = _pivot(program, gains, allowed, basis, goal, noise, improving)
        return count + 1, moved, basis

    return jax.lax.while_loop(go_on, pivot, (jnp.zeros((), jnp.int32), active, basis))[2]


def _pivot(
    program: Float[Array, "M V B"],
    gains: Float[Array, "N B"],
    allowed: Bool[Array, "V B"],
    basis: Basis,
    goal: float,
    noise: float,
    active: Bool[Array, " B"],
) -> tuple[Basis, Bool[Array, " B"]]:
    """One step of simplex in each active model, and whether there was something to gain."""
    starts = active & ~basis.second & (slack_of(basis) >= goal)
    basis = basis._replace(second=basis.second | starts)
    point, _, duals = vertex_of(gains, basis)
    reduced = _worths(gains, basis) - jnp.sum(duals[:, None] * program, axis=0)
    numbers = jnp.arange(reduced.shape[0], dtype=jnp.int32)[:, None]
    inside = jnp.any(basis.variables[:, None] == numbers[None], axis=0)
    tolerance = noise * (1.0 + jnp.sum(jnp.abs(duals[1:]), axis=0))
    improving = allowed & ~inside & (reduced > tolerance[None]) & active[None]
    by_gain = _argmin(jnp.where(improving, -reduced, jnp.inf))
    entering = jnp.where(basis.idle > _PATIENCE, _argmin(~improving), by_gain)
    column = _at(program, entering)
    direction = apply(basis.inverse, column)
    leaving, step = _leaving(point, direction, basis)
    moves = jnp.any(improving, axis=0) & jnp.isfinite(step)
    gained = step * _at(reduced, entering) > noise
    idle = jnp.where(moves & ~gained, basis.idle + 1, 0)
    exchanged = _exchange(basis, leaving, entering, column, direction, moves)
    return exchanged._replace(idle=idle), moves


def _leaving(
    point: Float[Array, "M B"], direction: Float[Array, "M B"], basis: Basis
) -> tuple[Integer[Array, " B"], Float[Array, " B"]]:
    """The place whose variable first becomes 0, and the step to there; infinite without one.

    Of several that a little slip would let pass it is that with the largest pivot (Harris, 1973).
    """
    epsilon = np.finfo(point.dtype).eps
    size = jnp.max(jnp.abs(direction), axis=0, keepdims=True)
    shrinking = (direction > 64 * epsilon * size) & (basis.second[None] | (basis.variables != 0))
    safe = jnp.where(shrinking, direction, 1.0)
    room = jnp.maximum(point, 0.0)
    furthest = jnp.min(
        jnp.where(shrinking, (room + 4 * epsilon) / safe, jnp.inf), axis=0, keepdims=True
    )
    first = shrinking & (room / safe <= furthest)
    by_pivot = _argmin(jnp.where(first, -direction, jnp.inf))
    large = np.iinfo(jnp.int32).max
    by_number = _argmin(jnp.where(first, basis.variables, large))
    leaving = jnp.where(basis.idle > _PATIENCE, by_number, by_pivot)
    step = _at(jnp.where(first, room / safe, 0.0), leaving)
    return leaving, jnp.where(jnp.any(first, axis=0), step, jnp.inf)


def _exchange(
    basis: Basis,
    leaving: Integer[Array, " B"],
    entering: Integer[Array, " B"],
    column: Float[Array, "M B"],
    direction: Float[Array, "M B"],
    moves: Bool[Array, " B"],
) -> Basis:
    """The basis with another variable in one place, where the model moves."""
    places = jnp.arange(direction.shape[0], dtype=jnp.int32)[:, None]
    place = (places == leaving[None]) & moves[None]  # [M, B]
    pivot = jnp.where(moves, _at(direction, leaving), 1.0)
    matrix = jnp.where(place[None], column[:, None], basis.matrix)
    row = jnp.sum(jnp.where(place[:, None], basis.inverse, 0.0), axis=0) / pivot[None]
    inverse = basis.inverse - direction[:, None] * row[None]
    inverse = jnp.where(place[:, None], row[None], inverse)
    twice = 2.0 * jnp.eye(matrix.shape[0], dtype=matrix.dtype)[:, :, None]
    polished = multiply(inverse, twice - multiply(matrix, inverse))
    return basis._replace(
        variables=jnp.where(place, entering[None], basis.variables),
        matrix=matrix,
        inverse=jnp.where(moves[None, None], polished, basis.inverse),
    )
