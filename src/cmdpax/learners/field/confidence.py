"""How far a row or a mean may be from its estimate: the widths that published learners start from.

With n visits and a logarithm L that each learner says,

    β^p_h(t | s, a) = 2 √(p̄ (1 - p̄) L/(n ∨ 1)) + (14/3) L/(n ∨ 1)     empirical Bernstein
    β^r_h(s, a) = √(L/(n ∨ 1))                                          Hoeffding

as Efroni et al. (2020) have them, after the public code of DOPE. They are so wide that a learner
with them hardly learns within 10⁵ episodes, so that each learner multiplies them by a parameter
`bonus_scale`: 1 is what is published.
"""

from typing import Annotated, Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from cmdpax.schemes.parameters import Parameter

FailureProbability = Annotated[
    float, Parameter("chance that a confidence set misses", "δ", above=0, at_most=1)
]
BonusScale = Annotated[float, Parameter("multiplies the published confidence widths", at_least=0)]


def row_widths(
    probabilities: Float[Array, "*H S A T"],
    visits: Float[Array, "*H S A"],
    log_term: Any,
    valid: Bool[Array, "... T"] | None = None,
) -> Float[Array, "*H S A T"]:
    """β^p, entry by entry; 0 in slots of a list that hold no state."""
    worth = jnp.maximum(visits, 1)[..., None]
    deviation = jnp.sqrt(probabilities * (1 - probabilities) * log_term / worth)
    widths = 2 * deviation + 14 / 3 * log_term / worth
    return widths if valid is None else jnp.where(valid, widths, 0)


def mean_widths(visits: Float[Array, "*H S A"], log_term: Any) -> Float[Array, "*H S A"]:
    """β^r, for a signal in [0, 1] that is estimated."""
    return jnp.sqrt(log_term / jnp.maximum(visits, 1))
