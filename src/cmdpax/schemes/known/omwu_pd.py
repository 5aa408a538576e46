"""OMWU-PD: optimistic multiplicative weights, after Ding, Wei, Zhang and Ribeiro (2023).

    π_k ∝ π̂_k exp(ηQ_{k-1}),    π̂_{k+1} ∝ π̂_k exp(ηQ_k)

and the multipliers as in `two_sequences`: OPG-PD in the geometry of KL divergence, which the code
of the publication (arXiv 2306.11700) compares with. Constants ours; no rate is claimed. Both lines
together are π_{k+1} ∝ π_k exp(η (2Q_k - Q_{k-1})), the step of ReLOAD.
"""

import functools

from jaxtyping import Array, Float

from cmdpax.model.availability import Flags
from cmdpax.schemes.known.two_sequences import Parameters, init, step
from cmdpax.schemes.scheme import Scheme
from cmdpax.schemes.updates import mirror_ascent


def _ascend(
    log_policy: Float[Array, "H S A"],
    q_values: Float[Array, "H S A"],
    step_size: Float[Array, ""],
    _: Flags | None,
) -> Float[Array, "H S A"]:
    """Actions that are not available stay at -∞."""
    return mirror_ascent(log_policy, q_values, step_size)


OMWU_PD = Scheme(
    "omwu-pd",
    init,
    functools.partial(step, ascend=_ascend),
    Parameters,
    summary="Optimistic multiplicative weights, with two sequences for each player.",
    source="Ding, Wei, Zhang and Ribeiro 2023, arXiv 2306.11700 (its code)",
)
