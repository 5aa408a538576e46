"""cmdpax: constrained Markov decision processes, planned exactly.

See `cmdpax.CMDP` for the model, `cmdpax.solve` for its optimum and `cmdpax.environments` for
built-in models.
"""

from cmdpax import environments
from cmdpax.errors import (
    CmdpaxError,
    FileError,
    InfeasibleError,
    MissingPackageError,
    ModelError,
    ParameterError,
)
from cmdpax.evaluation import Evaluation, evaluate
from cmdpax.files import load, save
from cmdpax.model import CMDP, Sizes, from_costs
from cmdpax.planning import (
    RegularizedSolution,
    SlaterGap,
    Solution,
    slater_gap,
    solve,
    solve_regularized,
)
from cmdpax.transitions import Successors
from cmdpax.validation import validate

__version__ = "0.1.0"

__all__ = [
    "CMDP",
    "CmdpaxError",
    "Evaluation",
    "FileError",
    "InfeasibleError",
    "MissingPackageError",
    "ModelError",
    "ParameterError",
    "RegularizedSolution",
    "Sizes",
    "SlaterGap",
    "Solution",
    "Successors",
    "__version__",
    "environments",
    "evaluate",
    "from_costs",
    "load",
    "save",
    "slater_gap",
    "solve",
    "solve_regularized",
    "validate",
]
