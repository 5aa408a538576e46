"""The borders that are fuzzed, by name."""

from fuzzing.targets.agents import AGENTS
from fuzzing.targets.answers import ANSWERS, ORDERS
from fuzzing.targets.base import Target
from fuzzing.targets.boards import BOARDS
from fuzzing.targets.calls import CALLS
from fuzzing.targets.checkpoints import CHECKPOINTS, REPEATS
from fuzzing.targets.commands import COMMANDS
from fuzzing.targets.folders import FOLDERS
from fuzzing.targets.log_tables import LOG_TABLES
from fuzzing.targets.logs import LOGS
from fuzzing.targets.models import MODELS
from fuzzing.targets.policies import POLICIES, POLICY_FILES
from fuzzing.targets.specifications import SPECIFICATIONS

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        MODELS,
        POLICIES,
        POLICY_FILES,
        LOGS,
        LOG_TABLES,
        SPECIFICATIONS,
        FOLDERS,
        BOARDS,
        CHECKPOINTS,
        REPEATS,
        AGENTS,
        ANSWERS,
        ORDERS,
        COMMANDS,
        CALLS,
    )
}
