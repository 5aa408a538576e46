"""Learners of an unknown CMDP, by name."""

import importlib
import inspect

from cmdpax.errors import ParameterError, in_line, nearest_name, shown
from cmdpax.estimation import Knowledge
from cmdpax.learners.base import (
    Factory,
    Hyperparameters,
    Info,
    Learner,
    Rates,
    rates_at,
)
from cmdpax.learners.dual import regularized_dual, vanilla_dual
from cmdpax.learners.primal_dual import primal_dual

__all__ = [
    "Factory",
    "Hyperparameters",
    "Info",
    "Knowledge",
    "Learner",
    "Rates",
    "algorithms",
    "factory_of",
    "rates_at",
]

DEFAULT_REGULARIZATION = 0.02

_FACTORIES: dict[str, Factory] = {
    "regularized-primal-dual": primal_dual,
    "regularized-dual": regularized_dual,
    "vanilla-primal-dual": primal_dual,
    "vanilla-dual": vanilla_dual,
}


def algorithms() -> list[str]:
    """The names that `learn` and `replay` know, sorted.

    Examples:
        >>> import cmdpax
        >>> cmdpax.algorithms()
        ['regularized-dual', 'regularized-primal-dual', 'vanilla-dual', 'vanilla-primal-dual']
    """
    return sorted(_FACTORIES)


def factory_of(algorithm: str) -> Factory:
    """The factory of a registered algorithm, or of one written as "module:factory"."""
    require_name(algorithm)
    return _imported(algorithm) if ":" in algorithm else _FACTORIES[algorithm]


def require_name(algorithm: str) -> None:
    """Refuse what is neither a registered name nor an address; nothing is imported."""
    if ":" in algorithm:
        module, _, name = algorithm.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), name)):
            raise ParameterError(
                f"algorithm {shown(algorithm)} cannot be imported (it is not of the form "
                '"package.module:name"); give the names of a module and of a factory in it.'
            )
    elif algorithm not in _FACTORIES:
        raise ParameterError(
            f"unknown algorithm {shown(algorithm)}; {nearest_name(algorithm, _FACTORIES)}."
        )


def _imported(address: str) -> Factory:
    """The factory at "package.module:name"."""
    module, _, name = address.partition(":")
    try:
        factory = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        cause = in_line(error)
        if not isinstance(error, ImportError | AttributeError):
            cause = f"{type(error).__name__}: {cause}"
        raise ParameterError(
            f"algorithm {address!r} cannot be imported ({cause}); put its module on PYTHONPATH."
        ) from None
    try:
        inspect.signature(factory).bind("knowledge", "hyperparameters")
    except (TypeError, ValueError):
        raise ParameterError(
            f"algorithm {address!r} is not a factory: it must take knowledge and hyperparameters."
        ) from None
    return factory
