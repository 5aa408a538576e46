"""The schemes of the paper and of the field, for a model that is known: one file each."""

from cmdpax.schemes.known.accelerated_dual import ACCELERATED_DUAL
from cmdpax.schemes.known.augmented_lagrangian import AUGMENTED_LAGRANGIAN
from cmdpax.schemes.known.crpo import CRPO
from cmdpax.schemes.known.dual import DUAL
from cmdpax.schemes.known.omwu_pd import OMWU_PD
from cmdpax.schemes.known.opg_pd import OPG_PD
from cmdpax.schemes.known.pid import PID
from cmdpax.schemes.known.primal_dual import PRIMAL_DUAL, RPG_PD
from cmdpax.schemes.known.reload import RELOAD

SCHEMES = (
    ACCELERATED_DUAL,
    AUGMENTED_LAGRANGIAN,
    CRPO,
    DUAL,
    OMWU_PD,
    OPG_PD,
    PID,
    PRIMAL_DUAL,
    RELOAD,
    RPG_PD,
)
"""The registered schemes, by name."""
