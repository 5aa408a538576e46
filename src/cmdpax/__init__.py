"""cmdpax: constrained Markov decision processes, planned exactly and learned online.

See `cmdpax.CMDP` for the model, `cmdpax.solve` for its optimum, `cmdpax.learn` for learning it,
`cmdpax.iterate` for the schemes, `cmdpax.sweep` for many runs, and `cmdpax.environments` for
built-in models.
"""

import importlib
from typing import TYPE_CHECKING, Any

from cmdpax import environments
from cmdpax.errors import (
    ClusterError,
    CmdpaxError,
    CmdpaxWarning,
    FileError,
    InfeasibleError,
    InsufficientDataError,
    LearnerError,
    MissingPackageError,
    ModelError,
    OrderError,
    ParameterError,
    SolverError,
    SweepError,
)
from cmdpax.intervals import Interval
from cmdpax.learners import algorithms
from cmdpax.learners.optimism import Optimism
from cmdpax.learning.accounts import account
from cmdpax.learning.history import Account, History, Regret
from cmdpax.learning.learn import learn, repeat
from cmdpax.learning.replay import Replay, replay
from cmdpax.live import (
    Agent,
    AgentAccount,
    AgentRecord,
    Band,
    ConstraintAccount,
    EpisodeRecord,
    ObjectiveAccount,
)
from cmdpax.model.cmdp import CMDP, Sizes, from_costs
from cmdpax.model.empirical import estimate
from cmdpax.model.evaluation import Evaluation, evaluate
from cmdpax.model.files import load, save
from cmdpax.model.log import Log, load_log
from cmdpax.model.policy import Policy, load_policy
from cmdpax.model.rescaling import Rescaling, rescale
from cmdpax.model.toolbox import from_arrays
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import validate
from cmdpax.planning import (
    RegularizedSolution,
    SlaterGap,
    Solution,
    slater_gap,
    solve,
    solve_many,
    solve_regularized,
)
from cmdpax.schemes import presets as parameters
from cmdpax.schemes import schedules
from cmdpax.schemes.iteration import Iterates, iterate
from cmdpax.schemes.registry import scheme_names
from cmdpax.version import __version__

if TYPE_CHECKING:
    from cmdpax.data.safely import SafePlan, solve_safely
    from cmdpax.data.uncertainty import Uncertainty, uncertainty
    from cmdpax.experiments import Comparison, Results, Specification, compare, results, sweep
    from cmdpax.paper.audit import Audit, audit
    from cmdpax.paper.reproduction import Reproduction, reproduce
    from cmdpax.planning.frontier import Frontier, frontier
    from cmdpax.reporting import report

# They bring polars, pydantic or much code, so they are imported when they are asked for.
_LATER = {
    "Audit": "cmdpax.paper.audit",
    "Comparison": "cmdpax.experiments",
    "Frontier": "cmdpax.planning.frontier",
    "Reproduction": "cmdpax.paper.reproduction",
    "Results": "cmdpax.experiments",
    "SafePlan": "cmdpax.data.safely",
    "Specification": "cmdpax.experiments",
    "Uncertainty": "cmdpax.data.uncertainty",
    "audit": "cmdpax.paper.audit",
    "compare": "cmdpax.experiments",
    "frontier": "cmdpax.planning.frontier",
    "report": "cmdpax.reporting",
    "reproduce": "cmdpax.paper.reproduction",
    "results": "cmdpax.experiments",
    "solve_safely": "cmdpax.data.safely",
    "sweep": "cmdpax.experiments",
    "uncertainty": "cmdpax.data.uncertainty",
}


def __getattr__(name: str) -> Any:
    """Import the larger parts when they are first used."""
    if name not in _LATER:
        raise AttributeError(f"module 'cmdpax' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_LATER[name]), name)
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"cmdpax.{name} needs the package {error.name}; run `pip install {error.name}`."
        ) from None


__all__ = [
    "CMDP",
    "Account",
    "Agent",
    "AgentAccount",
    "AgentRecord",
    "Audit",
    "Band",
    "ClusterError",
    "CmdpaxError",
    "CmdpaxWarning",
    "Comparison",
    "ConstraintAccount",
    "EpisodeRecord",
    "Evaluation",
    "FileError",
    "Frontier",
    "History",
    "InfeasibleError",
    "InsufficientDataError",
    "Interval",
    "Iterates",
    "LearnerError",
    "Log",
    "MissingPackageError",
    "ModelError",
    "ObjectiveAccount",
    "Optimism",
    "OrderError",
    "ParameterError",
    "Policy",
    "Regret",
    "RegularizedSolution",
    "Replay",
    "Reproduction",
    "Rescaling",
    "Results",
    "SafePlan",
    "Sizes",
    "SlaterGap",
    "Solution",
    "SolverError",
    "Specification",
    "Successors",
    "SweepError",
    "Uncertainty",
    "__version__",
    "account",
    "algorithms",
    "audit",
    "compare",
    "environments",
    "estimate",
    "evaluate",
    "from_arrays",
    "from_costs",
    "frontier",
    "iterate",
    "learn",
    "load",
    "load_log",
    "load_policy",
    "parameters",
    "repeat",
    "replay",
    "report",
    "reproduce",
    "rescale",
    "results",
    "save",
    "schedules",
    "scheme_names",
    "slater_gap",
    "solve",
    "solve_many",
    "solve_regularized",
    "solve_safely",
    "sweep",
    "uncertainty",
    "validate",
]
