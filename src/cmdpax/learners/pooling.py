"""What the steps of an episode have in common, and how much: estimates that are drawn together.

Many models are the same at every step, nearly the same, or the same in most places, and nobody says
so. A learner that counts each step by itself then learns everything H times. Here an estimate at
step h is drawn towards the mean over the steps, by as much as the counts show that they agree.

Let x be what is observed at a pair (s, a): the state that follows as a unit vector, or a reward.
With n_h observations at step h, N of all steps, means x̄_h and x̄, and v the variance of all of them,

    E[n_h |x̄_h - x̄|²] = v (1 - ρ)(1 - n_h/N) + v ρ n_h (1 - 2 n_h/N + Σ_g n_g²/N²),

where ρ is the share of v that lies between the steps (their intraclass correlation). Summed over
all steps and pairs that gives one number ρ̂, and α = 1/ρ̂ - 1: the steps are as alike as if each row
had been drawn from a Dirichlet distribution of concentration α around a common row. So

    common row   m = Σ_h e_h x̄_h / Σ_h e_h,   e_h = n_h α/(n_h + α)     what step h says about m
    estimate     (n_h x̄_h + α m)/(n_h + α),
    worth        n_h + α E/(α + E) observations, E = Σ_h e_h.

If all steps are the same, ρ̂ goes to 0, and each step is estimated from all of them. If they have
nothing in common, α is small and forgotten after as many visits. Since ρ̂ is an average, a few pairs
that differ keep α bounded, and every estimate converges to the truth of its own step.

The mean of a reward at step h is uncertain in two ways: the common mean has the variance v/(E + 1),
and around it step h has 1/(1/(v ρ) + n_h/v_h), with its own variance v_h of the observations. Both
v and v_h are shrunk by one observation towards σ², the usual variance of the observations of one
pair:

    σ² = (Σ n_h v_h + 3/4) / (Σ (n_h - 1) + 3)          over all pairs that were tried twice.

A pair that is nearly always tried at one step, and is all but certain there, would otherwise look
certain at all others. (1/4 is the largest variance there is. Where signals are told in a range that
is far wider than their noise, it would make good estimates look bad for hundreds of visits.)
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

_SMALLEST_SHARE = 1e-12  # ρ: α stays a number
_LARGEST_SHARE = 1 - 1e-8  # 1 - ρ is not lost in rounding
_LARGEST_VARIANCE = 0.25  # of an observation in [0, 1]
_MORE = 3.0  # observations of this variance


class PooledRows(NamedTuple):
    """Rows of transitions that are drawn together."""

    means: Float[Array, "H S A T"]
    visits: Float[Array, "H S A"]  # what each estimate is worth, in observations
    common: Float[Array, "1 S A T"]  # E m: what was observed of the common row
    concentration: Float[Array, ""]  # α


class Errors(NamedTuple):
    """How far estimated signals may be from the truth: standard deviations."""

    common: Float[Array, "H J S A"]  # of what all steps share: they are wrong together
    own: Float[Array, "H J S A"]
    visits: Float[Array, "H J S A"]  # what each estimate is worth, in observations

    @property
    def together(self) -> Float[Array, "H J S A"]:
        """Of the estimates."""
        return jnp.hypot(self.common, self.own)


def pool_rows(
    counts: Float[Array, "H S A T"],
    uniform: Float[Array, "1 S A T"],
    prior: float | Float[Array, ""],
) -> PooledRows:
    """Draw the rows of all steps together.

    Args:
        counts: how often each successor came.
        uniform: the row of a pair that was tried at no step.
        prior: the smallest α.
    """
    visits = counts.sum(axis=-1)
    total = visits.sum(axis=0, keepdims=True)
    overall = counts.sum(axis=0, keepdims=True) / jnp.maximum(total, 1)[..., None]
    variances = 1 - jnp.sum(overall**2, axis=-1)  # of a unit vector
    gaps = jnp.sum((counts / jnp.maximum(visits, 1)[..., None] - overall) ** 2, axis=-1)
    share = jnp.minimum(share_between(visits, gaps, variances), 1 / (1 + prior))
    alpha = 1 / share - 1
    said = alpha / (visits + alpha)  # e_h / n_h
    common = jnp.sum(said[..., None] * counts, axis=0, keepdims=True)
    evidence = common.sum(axis=-1)
    centre = jnp.where(
        (total > 0)[..., None], common / jnp.where(total > 0, evidence, 1)[..., None], uniform
    )
    means = (counts + alpha * centre) / (visits + alpha)[..., None]
    return PooledRows(means, visits + alpha * evidence / (alpha + evidence), common, alpha)


def pool_signals(
    visits: Float[Array, "H S A"],
    sums: Float[Array, "H J S A"],
    squares: Float[Array, "H J S A"],
    unvisited: Float[Array, ""],
) -> tuple[Float[Array, "H J S A"], Errors]:
    """Means of observed signals, drawn together, and how far they may be wrong.

    Args:
        visits: n.
        sums: sums of the observations.
        squares: sums of their squares.
        unvisited: the estimate where no step was tried.
    """
    number, every = visits[:, None], visits.sum(axis=0, keepdims=True)[:, None]
    overall = sums.sum(axis=0, keepdims=True) / jnp.maximum(every, 1)
    spread = jnp.maximum(squares.sum(axis=0, keepdims=True) / jnp.maximum(every, 1) - overall**2, 0)
    means = sums / jnp.maximum(number, 1)
    share = share_between(number, (means - overall) ** 2, spread, axes=(0, 2, 3))
    alpha = 1 / share - 1
    said = alpha / (number + alpha)  # e_h / n_h
    evidence = jnp.sum(said * number, axis=0, keepdims=True)
    weighted = jnp.sum(said * sums, axis=0, keepdims=True)
    centre = jnp.where(every > 0, weighted / jnp.where(every > 0, evidence, 1), unvisited)
    within = jnp.maximum(squares / jnp.maximum(number, 1) - means**2, 0)
    usual = usual_variance(number, within)
    # One observation more, of the usual variance: a single one shows no variance at all. A step
    # that was tried often says no more about the others than its share of the evidence.
    variance = (evidence * spread + usual) / (evidence + 1)
    between = variance * share
    within = (number * within + usual) / (number + 1)
    own = between * within / (within + number * between)
    common = said * jnp.sqrt(variance / (evidence + 1))
    worth = number + alpha * evidence / (alpha + evidence)
    return (1 - said) * means + said * centre, Errors(common, jnp.sqrt(own), worth)


def usual_variance(
    visits: Float[Array, "H ... S A"], variances: Float[Array, "H J S A"]
) -> Float[Array, "1 J 1 1"]:
    """σ² of each signal, from the variances of the observations of each pair and step.

    Args:
        visits: n_h, with an axis of length 1 or J before the pairs.
        variances: v_h.
    """
    axes = (0, 2, 3)
    squares = jnp.sum(jnp.where(visits > 1, visits * variances, 0), axis=axes, keepdims=True)
    degrees = jnp.sum(jnp.maximum(visits - 1, 0), axis=axes, keepdims=True)
    return (squares + _MORE * _LARGEST_VARIANCE) / (degrees + _MORE)


def share_between(
    visits: Float[Array, "H ... S A"],
    gaps: Float[Array, "H ... S A"],
    variances: Float[Array, "1 ... S A"],
    axes: tuple[int, ...] | None = None,
) -> Float[Array, "..."]:
    """ρ̂, the share of the variance that lies between the steps, from sums over all pairs.

    Args:
        visits: n_h.
        gaps: |x̄_h - x̄|².
        variances: v.
        axes: those that are summed over; None: all of them.
    """
    share = visits / jnp.maximum(visits.sum(axis=0, keepdims=True), 1)
    within = jnp.where(visits > 0, variances * (1 - share), 0.0)
    likeness = 1 - 2 * share + jnp.sum(share**2, axis=0, keepdims=True)
    between = variances * visits * likeness
    kept = axes is not None

    def total(terms: Array) -> Array:
        return jnp.sum(terms, axis=axes, keepdims=kept)

    excess = total(visits * gaps) - total(within)
    room = total(between) - total(within)
    found = excess / jnp.where(room > 0, room, 1)
    return jnp.clip(jnp.where(room > 0, found, 0.0), _SMALLEST_SHARE, _LARGEST_SHARE)
