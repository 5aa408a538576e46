"""The exact optimum of many CMDPs in one compiled program: `plan`, on NumPy and JAX alone.

It is column generation (`column_generation`) with everything that belongs to one model in arrays of
fixed size. A round is

1. one backward induction for r + λᵀu, or for λᵀu while no mixture is feasible: a policy with the
   values (V_r, V_u), and the bound D(λ) = V_r + λᵀ(V_u - c) on the optimum (`batched_columns`);
2. that policy as another column of the master problem, and simplex from the basis as it was, which
   ends at the next λ (`batched_simplex`);

until the smallest bound meets the master's value. With one constraint this is Newton's method on
the piecewise linear dual: λ is the slope between the best policies on either side of the threshold,
and some six rounds do. Only the columns of the basis and the most promising others are kept.

`plan` is a pure function of one model for `jit`, `vmap`, `scan` and `while_loop`. Under `vmap` the
batch goes to the last axis, where the kernels want it, and rounds go on until the last model is
done; a model that is done does not change any more, whatever stands beside it.

All tolerances are those of `feasibility`, relative to the scale of each signal, max |u_i|. Actions
whose values differ by less than 1e-11 of them tie, and the first is taken, so that bounds, too, are
exact up to H times that.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Integer

from cmdpax.model.arrays import ROW_SUM_TOLERANCE
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.batched_columns import (
    Column,
    markov_policy,
    mixed_occupancy,
    mixed_values,
    no_columns,
    occupancy_of,
    price,
)
from cmdpax.planning.batched_induction import Stack, scale, stack
from cmdpax.planning.batched_simplex import (
    Basis,
    first_basis,
    optimise,
    slack_of,
    vertex_of,
    weights_of,
)

_MISSED = 1e-9  # of scale: by how much a policy may miss a threshold, as in `feasibility`
_MOST_ROUNDS, _MORE_ROUNDS = 100, 50  # in all, and more for every constraint
_MOST_PIVOTS, _MORE_PIVOTS = 20, 2  # in one round, and more for every row of the master problem


class Plan(NamedTuple):
    """The optimum of a CMDP; where nothing is feasible, the policy with the largest worst slack.

    Attributes:
        policy: π_h(a | s), Markov; where it never comes, greedy for what is maximised, and with
            upper bounds uniform over the available actions.
        occupancy: d_h(s, a) of it.
        multipliers: the λ of the smallest bound; without a feasible policy that of the bound on the
            worst slack, with Σ_i λ_i max |u_i| = 1.
        value: V_r of the policy.
        constraint_values: V_u of it.
        upper_bound: what no feasible policy exceeds, up to rounding; -∞ if there is none.
        feasible: whether some policy misses no threshold by more than 1e-9 of scale.
        worst_slack: min_i (V_{u_i} - c_i) / max |u_i| of the policy; ∞ without constraints.
        slack_bound: what no policy's worst slack exceeds; ∞ where nobody had to find out.
        rounds: backward inductions.
    """

    policy: Float[Array, "*B H S A"]
    occupancy: Float[Array, "*B H S A"]
    multipliers: Float[Array, "*B I"]
    value: Float[Array, "*B"]
    constraint_values: Float[Array, "*B I"]
    upper_bound: Float[Array, "*B"]
    feasible: Bool[Array, "*B"]
    worst_slack: Float[Array, "*B"]
    slack_bound: Float[Array, "*B"]
    rounds: Integer[Array, "*B"]


def plan(
    cmdp: CMDP,
    multipliers: Float[Array, " I"] | None = None,
    upper: Float[Array, "_ S A T"] | None = None,
) -> Plan:
    """Plan one CMDP, in the precision of its arrays; for `jit` and `vmap`.

    Args:
        cmdp: the model; nothing is checked.
        multipliers: where to begin, such as the λ of the last plan; None begins at 0. The optimum
            is the same, some rounds are saved.
        upper: upper bounds on the probabilities, with transitions that are lower bounds: the plan
            is the best of policies and of rows in between, the optimum of the extended linear
            program of Efroni et al. (2020), and `occupancy` and values are those of these rows.
    """
    start = jnp.zeros_like(cmdp.thresholds) if multipliers is None else multipliers
    one = jax.tree.map(lambda array: jnp.asarray(array)[None], (cmdp, start, upper))
    return jax.tree.map(lambda array: array[0], plan_stacked(*one))


@custom_vmap
def plan_stacked(cmdps: CMDP, multipliers: Float[Array, "b I"], upper: Any = None) -> Plan:
    """Plans for models that are stacked along the first axis; arrays with 1 there belong to all."""
    batch = max(array.shape[0] for array in jax.tree.leaves((cmdps, multipliers, upper)))
    models = stack(cmdps, batch, upper)
    scaled, units, magnitudes = scale(models)
    if not cmdps.num_constraints:
        return _plan_freely(scaled, units)
    thresholds = jnp.swapaxes(cmdps.thresholds, 0, 1) / units[1:]
    program = _program(scaled, thresholds, magnitudes)
    ratios = units[1:] / units[:1]
    return _result(program, units, _generate(program, multipliers.T * ratios))


@plan_stacked.def_vmap
def _plan_batch(size: int, batched: Any, *stacks: Any) -> tuple[Plan, Any]:
    """A batch of stacks is one longer stack."""
    arrays, tree = jax.tree.flatten(stacks)
    flags = jax.tree.leaves(batched)
    both = list(zip(arrays, flags, strict=True))
    inner = max(array.shape[1 if flag else 0] for array, flag in both)

    def merge(array: Array, flag: bool) -> Array:
        if not flag and array.shape[0] == 1:
            return array
        shape = array.shape[2:] if flag else array.shape[1:]
        wide = jnp.broadcast_to(array if flag else array[None], (size, inner, *shape))
        return wide.reshape(size * inner, *shape)

    merged = jax.tree.unflatten(tree, [merge(*one) for one in both])
    plans = plan_stacked(*merged)
    split = jax.tree.map(lambda array: array.reshape(size, inner, *array.shape[1:]), plans)
    return split, jax.tree.map(lambda _: True, split)


def _plan_freely(models: Stack, units: Float[Array, "J c"]) -> Plan:
    """Without constraints one backward induction is all."""
    weights = jnp.ones((1, models.batch), models.signals.dtype)
    values, column = price(models, weights)
    occupancy = occupancy_of(models, column)
    value = values[0] * units[0]
    never = jnp.full_like(value, jnp.inf)
    return _to_front(
        Plan(
            policy=markov_policy(models, occupancy, column.actions),
            occupancy=occupancy,
            multipliers=jnp.zeros((0, models.batch), value.dtype),
            value=value,
            constraint_values=jnp.zeros((0, models.batch), value.dtype),
            upper_bound=value,
            feasible=jnp.ones(models.batch, bool),
            worst_slack=never,
            slack_bound=never,
            rounds=jnp.ones(models.batch, jnp.int32),
        )
    )


class _Program(NamedTuple):
    """Scaled models with their thresholds.

    Attributes:
        models: the models, whose signals are scaled.
        thresholds: c in these units, within what values can reach.
        magnitudes: the scale e of each signal in these units.
        excess: what every c_i / e_i was lowered by.
    """

    models: Stack
    thresholds: Float[Array, "I b"]
    magnitudes: Float[Array, "J c"]
    excess: Float[Array, " b"]

    @property
    def epsilon(self) -> float:
        """Rounding of values."""
        return float(np.finfo(self.thresholds.dtype).eps) * self.models.horizon

    @property
    def missed(self) -> float:
        """The slack, relative to scale, below which nothing is feasible."""
        return -max(_MISSED, 16 * self.epsilon)

    def slacks(self, values: Float[Array, "J N B"]) -> Float[Array, "I N B"]:
        """Of columns with these values, relative: G_i = (V_{u_i} - c_i) / e_i."""
        return (values[1:] - self.thresholds[:, None]) / self.magnitudes[1:, None]


def _program(
    models: Stack, thresholds: Float[Array, "I b"], magnitudes: Float[Array, "J c"]
) -> _Program:
    """With thresholds in reach of rounding: no slack would tell policies apart at c = 1e20.

    What no policy comes near is lowered for all constraints alike, which changes no policy's place
    among the others, and what every policy exceeds is raised.
    """
    # More than any value, though rows may sum to a little more than 1.
    limit = (models.horizon + 1) * (1 + ROW_SUM_TOLERANCE) ** models.horizon
    wanted = thresholds / magnitudes[1:]
    excess = jnp.maximum(jnp.max(wanted, axis=0) - limit, 0.0)
    # Differences of thresholds first: subtracting the excess would round them away.
    below = (limit - (jnp.max(wanted, axis=0)[None] - wanted)) * magnitudes[1:]
    lowered = jnp.maximum(jnp.where(excess[None] > 0, below, thresholds), -limit)
    return _Program(models, lowered, magnitudes, excess)


class _Bound(NamedTuple):
    """The smallest bound so far, its λ and its greedy actions."""

    value: Float[Array, " B"]
    multipliers: Float[Array, "I B"]
    actions: Integer[Array, "H S B"]

    def lowered(self, other: "_Bound", where: Bool[Array, " B"]) -> "_Bound":
        """The smaller of two, where the other one counts."""
        better = where & (other.value < self.value)
        return jax.tree.map(lambda new, old: jnp.where(better, new, old), other, self)


class _State(NamedTuple):
    """Column generation of all models between two rounds.

    Attributes:
        turn: rounds so far.
        rounds: those in which the model was active.
        active: whether the model still looks for its optimum.
        values: (V_r, V_u) of the columns.
        columns: their policies, and what else they are.
        valid: which slots are in use.
        basis: of the master problem.
        multipliers: λ of the next round, per unit of relative slack.
        for_value: whether the next round maximises r + λᵀu; otherwise λᵀu.
        bound: on the value.
        slack_bound: on the worst slack.
    """

    turn: Integer[Array, ""]
    rounds: Integer[Array, " B"]
    active: Bool[Array, " B"]
    values: Float[Array, "J N B"]
    columns: Column
    valid: Bool[Array, "N B"]
    basis: Basis
    multipliers: Float[Array, "I B"]
    for_value: Bool[Array, " B"]
    bound: _Bound
    slack_bound: _Bound


def _generate(program: _Program, multipliers: Float[Array, "I b"]) -> _State:
    """Rounds until every model is done."""
    num_constraints = program.thresholds.shape[0]
    most_rounds = _MOST_ROUNDS + _MORE_ROUNDS * num_constraints

    def go_on(state: _State) -> Array:
        return jnp.any(state.active) & (state.turn < most_rounds)

    start = _first_state(program, multipliers * program.magnitudes[1:])
    return jax.lax.while_loop(go_on, lambda state: _round(program, state), start)


def _first_state(program: _Program, multipliers: Float[Array, "I b"]) -> _State:
    models, kind = program.models, program.thresholds.dtype
    num_constraints, batch = program.thresholds.shape[0], models.batch
    slots = 2 * num_constraints + 4
    columns = no_columns(models, slots)
    nothing = _Bound(
        jnp.full(batch, jnp.inf, kind),
        jnp.zeros((num_constraints, batch), kind),
        jnp.zeros(columns.actions.shape[1:], columns.actions.dtype),
    )
    return _State(
        turn=jnp.zeros((), jnp.int32),
        rounds=jnp.zeros(batch, jnp.int32),
        active=jnp.ones(batch, bool),
        values=jnp.zeros((1 + num_constraints, slots, batch), kind),
        columns=columns,
        valid=jnp.zeros((slots, batch), bool),
        basis=first_basis(jnp.zeros((num_constraints, batch), kind)),
        multipliers=jnp.broadcast_to(jnp.maximum(multipliers, 0.0), (num_constraints, batch)),
        for_value=jnp.ones(batch, bool),
        bound=nothing,
        slack_bound=nothing,
    )


def _round(program: _Program, state: _State) -> _State:
    """Price, add the column, optimise the master problem, and see who is done."""
    state = _price(program, state)
    slacks = program.slacks(state.values)
    single = first_basis(slacks[:, 0])
    before = jax.tree.map(
        lambda new, old: jnp.where(state.turn == 0, new, old), single, state.basis
    )
    goal, noise = 2 * program.epsilon, 4 * program.epsilon
    most = _MOST_PIVOTS + _MORE_PIVOTS * before.variables.shape[0]
    columns = (state.values[0], slacks, state.valid)
    basis = optimise(*columns, before, goal, noise, state.active, most)
    stalled = jnp.all(basis.variables == before.variables, axis=0) & (state.turn > 0)
    stalled &= basis.second == state.for_value
    return _judge(program, state, basis, stalled)


def _price(program: _Program, state: _State) -> _State:
    """The best policy at λ as another column, and its bound."""
    objective = state.for_value.astype(state.values.dtype)
    weights = jnp.concatenate([objective[None], state.multipliers / program.magnitudes[1:]])
    values, column = price(program.models, weights)
    slacks = program.slacks(values[:, None])[:, 0] + state.basis.relaxation[None]
    value = objective * values[0] + jnp.sum(state.multipliers * slacks, axis=0)
    bound = _Bound(value, state.multipliers, column.actions)
    place = _slot(program, state) & state.active[None]
    return state._replace(
        values=jnp.where(place[None], values[:, None], state.values),
        columns=jax.tree.map(
            lambda new, old: jnp.where(place[:, None, None], new[None], old), column, state.columns
        ),
        valid=state.valid | place,
        bound=state.bound.lowered(bound, state.active & state.for_value),
        slack_bound=state.slack_bound.lowered(bound, state.active & ~state.for_value),
    )


def _slot(program: _Program, state: _State) -> Bool[Array, "N B"]:
    """Where the next column goes: a free slot, else that of the column that promises least."""
    slacks = program.slacks(state.values)
    num_constraints, slots, _ = slacks.shape
    places = jnp.arange(slots, dtype=jnp.int32)[:, None]
    numbers = 1 + num_constraints + places[None]
    used = jnp.any(state.basis.variables[:, None] == numbers, axis=0) & state.valid
    objective = jnp.where(state.for_value[None], state.values[0], 0.0)
    promise = objective + jnp.sum(state.multipliers[:, None] * slacks, axis=0)
    ranked = jnp.where(used, jnp.inf, jnp.where(state.valid, promise, -jnp.inf))
    return places == jnp.argmin(ranked, axis=0).astype(jnp.int32)[None]


def _judge(program: _Program, state: _State, basis: Basis, stalled: Bool[Array, " B"]) -> _State:
    """Who is done, who goes on to the second phase, and the next λ."""
    _, value, duals = vertex_of(state.values[0], basis)
    goal, tolerance = 2 * program.epsilon, 16 * program.epsilon
    total = 1.0 + jnp.sum(jnp.abs(duals[1:]), axis=0)
    bound = jnp.where(basis.second, state.bound.value, state.slack_bound.value)
    over = (bound - value <= tolerance * total) | stalled
    slack = slack_of(basis)
    relaxed = state.active & over & ~basis.second & (slack >= program.missed)
    relaxation = jnp.where(relaxed, jnp.minimum(goal - slack, -program.missed), basis.relaxation)
    basis = basis._replace(second=basis.second | relaxed, relaxation=relaxation)
    # The first round's bound was that of the thresholds as they are.
    extra = jnp.where(relaxed, relaxation, 0.0) * jnp.sum(state.bound.multipliers, axis=0)
    _, _, duals = vertex_of(state.values[0], basis)
    return state._replace(
        turn=state.turn + 1,
        rounds=state.rounds + state.active.astype(jnp.int32),
        active=state.active & (relaxed | ~over),
        basis=basis,
        multipliers=jnp.where(state.active[None], jnp.maximum(-duals[1:], 0.0), state.multipliers),
        for_value=jnp.where(state.active, basis.second, state.for_value),
        bound=state.bound._replace(value=state.bound.value + extra),
    )


def _result(program: _Program, units: Float[Array, "J c"], state: _State) -> Plan:
    """The mixture as one Markov policy, with its numbers in the user's units."""
    feasible = state.basis.second
    weights = weights_of(state.basis)
    slots = jnp.maximum(state.basis.variables - program.thresholds.shape[0] - 1, 0)
    values = mixed_values(state.values, slots, weights)
    best = jax.tree.map(
        lambda one, other: jnp.where(feasible, one, other), state.bound, state.slack_bound
    )
    occupancy = mixed_occupancy(program.models, state.columns, slots, weights)
    relative = (values[1:] - program.thresholds) / program.magnitudes[1:] - program.excess[None]
    in_user_units = jnp.where(feasible[None], units[:1], 1.0) / units[1:]
    return _to_front(
        Plan(
            policy=markov_policy(program.models, occupancy, best.actions),
            occupancy=occupancy,
            multipliers=best.multipliers / program.magnitudes[1:] * in_user_units,
            value=values[0] * units[0],
            constraint_values=values[1:] * units[1:],
            upper_bound=jnp.where(feasible, state.bound.value * units[0], -jnp.inf),
            feasible=feasible,
            worst_slack=jnp.min(relative, axis=0),
            slack_bound=state.slack_bound.value - program.excess,
            rounds=state.rounds,
        )
    )


def _to_front(plans: Plan) -> Plan:
    """The models along the first axis, as they came."""
    return jax.tree.map(lambda array: jnp.moveaxis(array, -1, 0), plans)
