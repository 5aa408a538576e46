"""The learners that others have published, one file each; `docs/field.md` explains how they differ.

A file has the pseudo-code and its source, the record of parameters, the factory, and an `Algorithm`
that says what the learner needs. Where the source leaves a constant open, or where it is only known
from memory, the docstring says "after …; constants ours".
"""

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.field.crpo import ALGORITHM as CRPO
from cmdpax.learners.field.dope import ALGORITHM as DOPE
from cmdpax.learners.field.flexdome import ALGORITHM as FLEXDOME
from cmdpax.learners.field.ghosh import ALGORITHM as GHOSH
from cmdpax.learners.field.opse import ALGORITHM as OPSE
from cmdpax.learners.field.opt_aug import ALGORITHM as OPT_AUG
from cmdpax.learners.field.opt_dual import ALGORITHM as OPT_DUAL
from cmdpax.learners.field.opt_lp import ALGORITHM as OPT_LP
from cmdpax.learners.field.opt_lp_bonus import ALGORITHM as OPT_LP_BONUS
from cmdpax.learners.field.opt_pess_lp import ALGORITHM as OPT_PESS_LP
from cmdpax.learners.field.opt_pess_primal_dual import ALGORITHM as OPT_PESS_PRIMAL_DUAL
from cmdpax.learners.field.opt_primal_dual import ALGORITHM as OPT_PRIMAL_DUAL
from cmdpax.learners.field.s_ops import ALGORITHM as S_OPS
from cmdpax.learners.field.safe_psrl import ALGORITHM as SAFE_PSRL
from cmdpax.learners.field.triple_q import ALGORITHM as TRIPLE_Q
from cmdpax.learners.field.uopt_rpgpd import ALGORITHM as UOPT_RPGPD

ALGORITHMS: tuple[Algorithm, ...] = (
    CRPO,
    DOPE,
    FLEXDOME,
    GHOSH,
    OPSE,
    OPT_AUG,
    OPT_DUAL,
    OPT_LP,
    OPT_LP_BONUS,
    OPT_PESS_LP,
    OPT_PESS_PRIMAL_DUAL,
    OPT_PRIMAL_DUAL,
    S_OPS,
    SAFE_PSRL,
    TRIPLE_Q,
    UOPT_RPGPD,
)
"""All of them, for the registry."""
