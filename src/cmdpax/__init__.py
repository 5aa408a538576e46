"""cmdpax: constrained Markov decision processes, planned exactly and learned online.

See `cmdpax.CMDP` for the model, `cmdpax.solve` for its optimum, `cmdpax.learn` for learning it,
`cmdpax.iterate` for the schemes, and `cmdpax.environments` for built-in models.
"""

from cmdpax import environments, parameters, schedules
from cmdpax.accounting import Account, account
from cmdpax.errors import (
    CmdpaxError,
    CmdpaxWarning,
    FileError,
    InfeasibleError,
    MissingPackageError,
    ModelError,
    ParameterError,
)
from cmdpax.evaluation import Evaluation, evaluate
from cmdpax.files import load, save
from cmdpax.history import History, Log
from cmdpax.iteration import Iterates, iterate
from cmdpax.learners import algorithms
from cmdpax.learning import learn, repeat
from cmdpax.model import CMDP, Sizes, from_costs
from cmdpax.optimism import Optimism
from cmdpax.planning import (
    RegularizedSolution,
    SlaterGap,
    Solution,
    slater_gap,
    solve,
    solve_regularized,
)
from cmdpax.regret import Regret
from cmdpax.replaying import Replay, replay
from cmdpax.rescaling import Rescaling, rescale
from cmdpax.transitions import Successors
from cmdpax.validation import validate
from cmdpax.version import __version__

__all__ = [
    "CMDP",
    "Account",
    "CmdpaxError",
    "CmdpaxWarning",
    "Evaluation",
    "FileError",
    "History",
    "InfeasibleError",
    "Iterates",
    "Log",
    "MissingPackageError",
    "ModelError",
    "Optimism",
    "ParameterError",
    "Regret",
    "RegularizedSolution",
    "Replay",
    "Rescaling",
    "Sizes",
    "SlaterGap",
    "Solution",
    "Successors",
    "__version__",
    "account",
    "algorithms",
    "environments",
    "evaluate",
    "from_costs",
    "iterate",
    "learn",
    "load",
    "parameters",
    "repeat",
    "replay",
    "rescale",
    "save",
    "schedules",
    "slater_gap",
    "solve",
    "solve_regularized",
    "validate",
]
