"""OPG-PD: optimistic projected gradients, after Ding, Wei, Zhang and Ribeiro (2023).

    π_k = Proj(π̂_k + ηQ_{k-1}),    π̂_{k+1} = Proj(π̂_k + ηQ_k),    onto the simplex of every (h, s)

and the multipliers as in `two_sequences`. (arXiv 2306.11700; constants ours.) The publication
proves that its last iterate converges linearly, at a rate that depends on the problem, if the
optimal occupancy is unique and every state is reached.
"""

import functools

from cmdpax.schemes.known.two_sequences import Parameters, init, step
from cmdpax.schemes.scheme import Scheme
from cmdpax.schemes.updates import projected_ascent

OPG_PD = Scheme(
    "opg-pd",
    init,
    functools.partial(step, ascend=projected_ascent),
    Parameters,
    summary="Optimistic projected gradients of both players, with two sequences each.",
    source="Ding, Wei, Zhang and Ribeiro 2023, arXiv 2306.11700",
)
