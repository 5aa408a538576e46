"""cmdpax: constrained Markov decision processes, planned exactly and learned online.

See `cmdpax.CMDP` for the model, `cmdpax.solve` for its optimum, `cmdpax.learn` for learning it,
`cmdpax.iterate` for the schemes, `cmdpax.sweep` for many runs, and `cmdpax.environments` for
built-in models.
"""

import importlib
from typing import TYPE_CHECKING, Any

from cmdpax import environments, parameters, schedules
from cmdpax.accounting import account
from cmdpax.errors import (
    ClusterError,
    CmdpaxError,
    CmdpaxWarning,
    FileError,
    InfeasibleError,
    LearnerError,
    MissingPackageError,
    ModelError,
    OrderError,
    ParameterError,
    SolverError,
    SweepError,
)
from cmdpax.evaluation import Evaluation, evaluate
from cmdpax.files import load, save
from cmdpax.history import Account, History
from cmdpax.intervals import Interval
from cmdpax.iteration import Iterates, iterate
from cmdpax.layouts import from_arrays
from cmdpax.learners import algorithms
from cmdpax.learning import learn, repeat
from cmdpax.live import Agent, AgentAccount, ConstraintAccount, EpisodeRecord, ObjectiveAccount
from cmdpax.log import Log
from cmdpax.logs import estimate
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

if TYPE_CHECKING:
    from cmdpax.auditing import Audit, audit
    from cmdpax.experiments import Comparison, Results, Specification, compare, results, sweep
    from cmdpax.planning.frontier import Frontier, frontier
    from cmdpax.reporting import report
    from cmdpax.reproduction import Reproduction, reproduce

# They bring polars, pydantic or much code, so they are imported when they are asked for.
_LATER = {
    "Audit": "cmdpax.auditing",
    "Comparison": "cmdpax.experiments",
    "Frontier": "cmdpax.planning.frontier",
    "Reproduction": "cmdpax.reproduction",
    "Results": "cmdpax.experiments",
    "Specification": "cmdpax.experiments",
    "audit": "cmdpax.auditing",
    "compare": "cmdpax.experiments",
    "frontier": "cmdpax.planning.frontier",
    "report": "cmdpax.reporting",
    "reproduce": "cmdpax.reproduction",
    "results": "cmdpax.experiments",
    "sweep": "cmdpax.experiments",
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
    "Audit",
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
    "Regret",
    "RegularizedSolution",
    "Replay",
    "Reproduction",
    "Rescaling",
    "Results",
    "Sizes",
    "SlaterGap",
    "Solution",
    "SolverError",
    "Specification",
    "Successors",
    "SweepError",
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
    "parameters",
    "repeat",
    "replay",
    "report",
    "reproduce",
    "rescale",
    "results",
    "save",
    "schedules",
    "slater_gap",
    "solve",
    "solve_regularized",
    "sweep",
    "validate",
]
