"""What an agent believes, in the user's words and units: model, uncertainty, reasons."""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.data.uncertainty import Probability, Uncertainty
from cmdpax.errors import ParameterError
from cmdpax.live.beliefs import Counts
from cmdpax.live.declaration import Declaration
from cmdpax.live.judging import draw_values
from cmdpax.live.saving import Position
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import q_values
from cmdpax.model.policy import Policy, with_content
from cmdpax.model.policy_files import Content
from cmdpax.model.transitions import Successors
from cmdpax.model.words import ARGUMENTS, Words

if TYPE_CHECKING:
    import polars

_CONFIDENCE = 0.95


class Planning(NamedTuple):
    """The plans of an agent.

    Attributes:
        plans: how many were made.
        feasible: whether the last one meets all constraints in the model that it was made in.
        remaining: episodes until the next one is made, if nothing else happens.
        seconds: what the last one took in `end`, with all that was learned there.
        declined: how many in a row `approve` has declined.
        waiting: episodes that were played but not yet learned from, where a thread plans.
    """

    plans: int
    feasible: bool
    remaining: int
    seconds: float
    declined: int
    waiting: int = 0


class Explanation(NamedTuple):
    """Why an agent does what it does in a state.

    Attributes:
        state: the state, in words.
        step: the step, from 0.
        actions: the actions that there are, in words.
        probabilities: how probable the plan makes each, `[A]`.
        visits: how often each was tried here.
        values: what each earns from here on, and then the plan, `[A]`.
        constraint_values: the same of the constraints, `[A, I]`.
        prices: reward per unit of each constraint, `[I]`.
        words: names, units and senses.
    """

    state: str
    step: int
    actions: tuple[str, ...]
    probabilities: np.ndarray
    visits: np.ndarray
    values: np.ndarray
    constraint_values: np.ndarray
    prices: np.ndarray
    words: Words

    @property
    def scores(self) -> np.ndarray:
        """Values with the constraints at their prices, `[A]`: the plan takes the best of them."""
        signs = np.array([-1.0 if "most" in s else 1.0 for s in self._senses])
        return np.asarray(self.values + self.constraint_values @ (signs * self.prices))

    @property
    def _senses(self) -> list[str]:
        return [self.words.sense(index) for index in range(len(self.prices))]

    def frame(self) -> "polars.DataFrame":
        """A polars frame with a row for every action."""
        import polars

        columns: dict[str, Any] = {
            "action": self.actions,
            "probability": self.probabilities,
            "tried": self.visits,
            self.words.label(): self.values,
        }
        for index in range(len(self.prices)):
            columns[self.words.label(1 + index)] = self.constraint_values[:, index]
        return polars.DataFrame(columns | {"with prices": self.scores})

    def __str__(self) -> str:
        """The table, with the prices above it."""
        lines = [f"in {self.state} at step {self.step}, expected from here on"]
        for index, price in enumerate(self.prices):
            label = self.words.label(1 + index)
            sense = self.words.sense(index)
            lines.append(f"{label}, {sense} its threshold, has a price of {price:.4g} per unit")
        heads = ["action", "plan", "tried", self.words.label()]
        heads += [self.words.label(1 + index) for index in range(len(self.prices))]
        rows = [[*heads, "with prices"]]
        for place, action in enumerate(self.actions):
            numbers = [self.values[place], *self.constraint_values[place], self.scores[place]]
            share = f"{100 * self.probabilities[place]:.3g} %"
            shown = [f"{number:.4g}" for number in numbers]
            rows.append([action, share, f"{self.visits[place]:,}", *shown])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip())
        return "\n".join(lines)


def planning_of(now: Position) -> Planning:
    """The plans so far."""
    coming = now.episode
    if coming.plans is None:
        raise ParameterError(f"{now.declared.algorithm} does not plan, so there are no plans.")
    numbers = int(coming.plans), bool(coming.feasible), int(coming.remaining)
    return Planning(*numbers, now.seconds, now.playing.declined, len(now.waiting))


def table_of(now: Position, policy: Any) -> Policy:
    """A policy with the names of the declaration."""
    words = now.declared.words
    names = Words(state_names=words.state_names, action_names=words.action_names)
    return with_content(Content(np.array(policy, dtype=float), names))


def model_of(now: Position, counts: Counts) -> CMDP:
    """The model of the counts, in the user's units."""
    declared = now.declared
    _, num_states, num_actions, row_length = counts.transitions.shape
    visits = counts.transitions.sum(axis=-1)
    valid = np.ones((1, num_states, num_actions, row_length), bool)
    if counts.support is not None:
        valid = counts.support >= 0
    even = valid / valid.sum(axis=-1, keepdims=True)
    shares = counts.transitions / np.maximum(visits, 1)[..., None]
    rows = np.where((visits > 0)[..., None], shares, even)
    transitions: Any = rows
    if counts.support is not None:
        lists = np.broadcast_to(np.maximum(counts.support, 0), rows.shape)
        transitions = Successors(lists, rows)
    signals = _outward(declared, _means(counts, visits))
    return CMDP(
        transitions,
        signals[0],
        signals[1:],
        declared.thresholds,
        declared.initial,
        declared.sizes.horizon,
        available=declared.available,
        senses=list(declared.units.senses),
        **{name: getattr(declared.words, name) for name in ARGUMENTS},
    )


def _means(counts: Counts, visits: np.ndarray) -> np.ndarray:
    """Mean signals inside, `[J, H or 1, S, A]`; the worst where nothing is known."""
    if counts.signals is not None:
        return np.moveaxis(counts.signals, 1, 0)
    assert counts.sums is not None
    return np.moveaxis(counts.sums / np.maximum(visits, 1)[:, None], 1, 0)


def _outward(declared: Declaration, signals: np.ndarray) -> np.ndarray:
    """Signals `[J, …]` of steps in the user's units."""
    low, high, at_most, _ = (array[:, None, None, None] for array in declared.units)
    return np.asarray(
        np.where(at_most, high - signals * (high - low), low + signals * (high - low))
    )


def uncertainty_of(now: Position, counts: Counts) -> Uncertainty:
    """Values of what is played, in models drawn from what the counts leave possible."""
    declared, playing = now.declared, now.playing
    units, horizon = declared.units, declared.sizes.horizon
    policies, share = [np.asarray(now.episode.plan)], 1.0
    if playing.mixture is not None and declared.mixed_baseline is not None:
        policies, share = [*policies, declared.mixed_baseline], playing.mixture.share
    values = draw_values(counts, policies, declared.seed)
    mixed = share * values[:, 0] + (1 - share) * values[:, -1]
    inner = mixed[:, 1:] - units.thresholds_inward(declared.thresholds, horizon)
    met = inner >= -1e-9
    rewards = mixed[:, :1] * units.scale[0] + horizon * units.low[0]
    draws = np.hstack([rewards, units.constraint_values(mixed[:, 1:], horizon)])
    tail = (1 - _CONFIDENCE) / 2
    ends = np.quantile(draws, [tail, 1 - tail], axis=0).T
    return Uncertainty(
        ends[0],
        ends[1:],
        Probability(float(met.all(axis=1).mean()), met.mean(axis=0)),
        draws.mean(axis=0),
        declared.thresholds,
        _CONFIDENCE,
        "posterior",
        draws,
        declared.words._replace(senses=tuple(units.senses)),
    )


def explain(now: Position, counts: Counts, state: int, step: int) -> Explanation:
    """Values, prices and counts of the actions in a state."""
    declared = now.declared
    model, plan = model_of(now, counts), np.asarray(now.episode.plan)
    each = [np.broadcast_to(signal, plan.shape) for signal in (model.rewards, *model.signals)]
    by_step = jnp.asarray(np.stack(each, axis=1))
    transitions = jax.tree.map(jnp.asarray, model.transitions)
    every_q, _ = q_values(transitions, by_step, jnp.asarray(plan))
    values = np.asarray(every_q[step, :, state])  # [J, A]
    there = [a for a in range(model.num_actions) if declared.is_available(step, state, a)]
    visits = counts.transitions.sum(axis=-1)
    words = declared.words._replace(senses=tuple(declared.units.senses))
    return Explanation(
        declared.words.state(state),
        step,
        tuple(declared.words.action(a) for a in there),
        plan[step, state, there],
        visits[step % len(visits), state, there],
        values[0, there],
        values[1:, there].T,
        declared.units.prices(np.asarray(now.episode.multipliers)),
        words,
    )
