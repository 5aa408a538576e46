"""Check statements along the iterations of a scheme, in one compiled loop."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.paper.audit.problem import Problem, Scheme, first_move, make_step, next_move
from cmdpax.paper.audit.statement import Statement, Worst, compare, nothing_yet, worse


def worst_steps(
    problem: Problem, statements: Sequence[Statement], num_iterations: int, scheme: Scheme
) -> tuple[list[Worst], np.ndarray, list[tuple[int, ...]]]:
    """Find every statement's worst place, Φ_1, …, Φ_T, and the shapes of the sides."""
    worst, potentials = _run(problem, tuple(statements), num_iterations, scheme)
    shapes = step_shapes(problem, statements, scheme)
    return list(jax.device_get(worst)), np.asarray(potentials), shapes


@functools.partial(jax.jit, static_argnames=("statements", "num_iterations", "scheme"))
def _run(
    problem: Problem, statements: tuple[Statement, ...], num_iterations: int, scheme: Scheme
) -> tuple[tuple[Worst, ...], jax.Array]:
    def body(carry: Any, iteration: jax.Array) -> tuple[Any, jax.Array]:
        now, worst = carry
        following = next_move(problem, scheme, now.state, iteration + 1)
        step = make_step(problem, iteration, now, following)
        found = tuple(
            worse(before, compare(statement.sides(problem, step), iteration))
            for before, statement in zip(worst, statements, strict=True)
        )
        return (following, found), step.potential

    start = (first_move(problem, scheme), tuple(nothing_yet(float) for _ in statements))
    iterations = jnp.arange(1, num_iterations + 1, dtype=jnp.int32)
    (_, worst), potentials = jax.lax.scan(body, start, iterations)
    return worst, potentials


def step_shapes(
    problem: Problem, statements: Sequence[Statement], scheme: Scheme
) -> list[tuple[int, ...]]:
    """Find the shapes of the statements' sides."""

    def all_sides(given: Problem) -> Any:
        move = first_move(given, scheme)
        step = make_step(given, jnp.asarray(1, jnp.int32), move, move)
        return [
            jnp.broadcast_arrays(*map(jnp.asarray, statement.sides(given, step)))[0]
            for statement in statements
        ]

    return [side.shape for side in jax.eval_shape(all_sides, problem)]


def worst_once(problem: Problem, statements: Sequence[Statement]) -> list[Worst]:
    """Compare the sides of statements without iterations."""
    return list(jax.device_get(_once(problem, tuple(statements))))


@functools.partial(jax.jit, static_argnames="statements")
def _once(problem: Problem, statements: tuple[Statement, ...]) -> tuple[Worst, ...]:
    return tuple(compare(statement.sides(problem), 0) for statement in statements)
