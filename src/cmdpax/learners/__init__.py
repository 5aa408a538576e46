"""Learners of an unknown CMDP: the registered algorithms, and what an author of one needs."""

import dataclasses
from typing import Any

from cmdpax.errors import ParameterError, nearest_name, shown
from cmdpax.estimation import (
    Knowledge,
    OptimisticModel,
    Statistics,
    Trajectory,
    empty_statistics,
    optimistic_model,
    record,
)
from cmdpax.learners.algorithm import (
    Algorithm,
    Named,
    address_of,
    imported,
    name_of,
    require_address,
    wrap,
)
from cmdpax.learners.base import Factory, Info, Learner, Shown
from cmdpax.learners.dual import regularized_dual, vanilla_dual
from cmdpax.learners.parameters import (
    Hyperparameters,
    Parameter,
    Rates,
    parameters_of,
    rates_at,
)
from cmdpax.learners.primal_dual import evaluate, primal_dual
from cmdpax.schedules import Scheduled, value_at
from cmdpax.schemes import dual_descent, lagrangian, mirror_ascent, primal_dual_step

__all__ = [
    "Algorithm",
    "Factory",
    "Hyperparameters",
    "Info",
    "Knowledge",
    "Learner",
    "Named",
    "OptimisticModel",
    "Parameter",
    "Rates",
    "Scheduled",
    "Shown",
    "Statistics",
    "Trajectory",
    "address_of",
    "algorithms",
    "as_algorithm",
    "dual_descent",
    "empty_statistics",
    "evaluate",
    "is_baseline",
    "lagrangian",
    "mirror_ascent",
    "optimistic_model",
    "primal_dual_step",
    "rates_at",
    "record",
    "registered",
    "require_name",
    "symbol_of",
    "value_at",
]


def _with_regularization(**said: Any) -> tuple[Parameter, ...]:
    """The hyperparameters, with something else said about the regularization."""
    return tuple(
        dataclasses.replace(one, **said) if one.name == "regularization" else one
        for one in parameters_of(Hyperparameters)
    )


def _default(regularization: float) -> Any:
    return Parameter(name="regularization", kind="schedule").read(regularization, 1)


_ALGORITHMS = (
    Algorithm(
        "regularized-primal-dual",
        primal_dual,
        summary="Algorithm 1: truncated optimistic evaluation, mirror ascent, regularized duals.",
        parameters=_with_regularization(default=_default(0.02)),
    ),
    Algorithm(
        "regularized-dual",
        regularized_dual,
        summary="Algorithm 3: soft planning in the optimistic model, regularized duals.",
        parameters=_with_regularization(default=_default(0.02), above=0, hint="use vanilla-dual"),
    ),
    Algorithm(
        "vanilla-primal-dual",
        primal_dual,
        summary="Algorithm 1 without regularization: its iterates oscillate.",
        parameters=_with_regularization(at_most=0, hint="use regularized-primal-dual"),
        baseline=True,
    ),
    Algorithm(
        "vanilla-dual",
        vanilla_dual,
        summary="Algorithm 3 without regularization: greedy planning.",
        parameters=_with_regularization(at_most=0, hint="use regularized-dual"),
        baseline=True,
    ),
)
_BY_NAME = {algorithm.name: algorithm for algorithm in _ALGORITHMS}


def algorithms() -> list[str]:
    """The names that `learn` and `replay` know, sorted.

    Examples:
        >>> import cmdpax
        >>> cmdpax.algorithms()
        ['regularized-dual', 'regularized-primal-dual', 'vanilla-dual', 'vanilla-primal-dual']
    """
    return sorted(_BY_NAME)


def registered(name: str) -> Algorithm | None:
    """The registered algorithm of a name, if there is one."""
    return _BY_NAME.get(name)


def is_baseline(name: str) -> bool:
    """Whether an algorithm is one that others are compared with."""
    found = registered(name)
    return found is not None and found.baseline


def symbol_of(parameter: str) -> str:
    """The letter of a parameter of the registered algorithms, or its name in words."""
    symbols = {one.name: one.symbol for known in _ALGORITHMS for one in known.parameters}
    return symbols.get(parameter) or parameter.replace("_", " ")


def as_algorithm(given: Named) -> Algorithm:
    """A registered algorithm by its name, or the user's own: by address, or as an object.

    Raises:
        ParameterError: there is none.
    """
    if callable(given) or isinstance(given, Algorithm):
        return wrap(given, name_of(given))
    given = str(given)
    require_name(given)
    return imported(given) if ":" in given else _BY_NAME[given]


def require_name(algorithm: str) -> None:
    """Refuse what is neither a registered name nor an address; nothing is imported."""
    if ":" in algorithm:
        require_address(algorithm)
    elif algorithm not in _BY_NAME:
        raise ParameterError(
            f"unknown algorithm {shown(algorithm)}; {nearest_name(algorithm, _BY_NAME)}."
        )
