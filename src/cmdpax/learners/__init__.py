"""Learners of an unknown CMDP: the registered algorithms, and all that an author of one needs."""

from cmdpax.learners.algorithm import Algorithm, Named
from cmdpax.learners.base import Factory, Info, Learner, Shown, on_host
from cmdpax.learners.registry import (
    DEFAULT_ALGORITHM,
    address_of,
    algorithms,
    as_algorithm,
    is_baseline,
    mixed_with_baseline,
    registered,
    require_name,
    symbol_of,
)
from cmdpax.learners.statistics import (
    Baseline,
    Counted,
    Knowledge,
    OptimisticModel,
    Statistics,
    Trajectory,
    add,
    empirical_model,
    empty_statistics,
    optimistic_model,
    record,
    transition_counts,
)
from cmdpax.learners.truncated_evaluation import evaluate
from cmdpax.schemes.hyperparameters import Hyperparameters, Rates, rates_at
from cmdpax.schemes.parameters import Numbers, Parameter
from cmdpax.schemes.schedules import Scheduled, value_at
from cmdpax.schemes.updates import dual_descent, lagrangian, mirror_ascent, primal_dual_step

__all__ = [
    "DEFAULT_ALGORITHM",
    "Algorithm",
    "Baseline",
    "Counted",
    "Factory",
    "Hyperparameters",
    "Info",
    "Knowledge",
    "Learner",
    "Named",
    "Numbers",
    "OptimisticModel",
    "Parameter",
    "Rates",
    "Scheduled",
    "Shown",
    "Statistics",
    "Trajectory",
    "add",
    "address_of",
    "algorithms",
    "as_algorithm",
    "dual_descent",
    "empirical_model",
    "empty_statistics",
    "evaluate",
    "is_baseline",
    "lagrangian",
    "mirror_ascent",
    "mixed_with_baseline",
    "on_host",
    "optimistic_model",
    "primal_dual_step",
    "rates_at",
    "record",
    "registered",
    "require_name",
    "symbol_of",
    "transition_counts",
    "value_at",
]
