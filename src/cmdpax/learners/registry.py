"""The registered algorithms, and how an algorithm is found: by name, by address, or as it is."""

import dataclasses
import sys
from typing import Any

from cmdpax.errors import ParameterError, nearest_name, shown
from cmdpax.learners.algorithm import Algorithm, Named, imported, name_of, require_address, wrap
from cmdpax.learners.dual import regularized_dual, vanilla_dual
from cmdpax.learners.field import ALGORITHMS as FIELD
from cmdpax.learners.field.s_ops import mix
from cmdpax.learners.primal_dual import primal_dual
from cmdpax.learners.replanning import (
    LIVE,
    LIVE_SAFE,
    optimistic_planning,
    posterior_sampling,
    replanning,
)
from cmdpax.schemes.hyperparameters import Hyperparameters
from cmdpax.schemes.parameters import Parameter, parameters_of


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
    Algorithm(
        "replanning",
        replanning,
        summary="Exact plans on what was counted, which try what may be better; plans rarely.",
        replans=True,
        live=LIVE,
        live_safe=LIVE_SAFE,
    ),
    Algorithm(
        "posterior-sampling",
        posterior_sampling,
        summary="Exact plans in models drawn from the posterior; plans rarely.",
        replans=True,
    ),
    Algorithm(
        "optimistic-planning",
        optimistic_planning,
        summary="Exact plans with a bonus of scale/√n in the objective and every constraint.",
        replans=True,
    ),
    *FIELD,
)
_BY_NAME = {algorithm.name: algorithm for algorithm in _ALGORITHMS}
DEFAULT_ALGORITHM = "replanning"
"""What learns where a user names no algorithm; the paper's are always named."""


def algorithms() -> list[str]:
    """The names that `learn` and `replay` know, sorted.

    Examples:
        >>> import cmdpax
        >>> cmdpax.algorithms()[-2:]
        ['vanilla-dual', 'vanilla-primal-dual']
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
    """The letter that the first registered algorithm has for a parameter, or its name in words."""
    symbols = (
        one.symbol for known in _ALGORITHMS for one in known.parameters if one.name == parameter
    )
    return next(symbols, "") or parameter.replace("_", " ")


def as_algorithm(given: Any) -> Algorithm:
    """A registered algorithm by its name, or the user's own: by address, or as an object.

    Raises:
        ParameterError: there is none.
    """
    if isinstance(given, Algorithm) and registered(given.name) not in (None, given):
        raise ParameterError(
            f"the algorithm {given.name!r} of your own has the name of a registered one; give it "
            "another, or its runs could not be told apart."
        )
    if callable(given) or isinstance(given, Algorithm):
        return wrap(given, name_of(given))
    given = str(given)
    require_name(given)
    return imported(given) if ":" in given else _BY_NAME[given]


def mixed_with_baseline(algorithm: Named, name: str | None = None) -> Algorithm:
    """Any algorithm, with a safe baseline that plays as many of its episodes as safety needs.

    Before every episode a draw decides who plays it: the baseline, with the probability at which
    the episode meets all constraints in expectation, or the algorithm (S-OPS, `docs/field.md`).
    It has the parameters of the algorithm, and `caution`.

    Args:
        algorithm: a registered name, an address, an `Algorithm`, or a factory.
        name: what the result is called; None adds "-with-baseline" to the algorithm's name.

    Raises:
        ParameterError: there is no such algorithm, or it is such a mixture already.

    Examples:
        >>> import cmdpax
        >>> from cmdpax.learners import mixed_with_baseline
        >>> cmdp = cmdpax.environments.make("random")
        >>> safer = mixed_with_baseline("posterior-sampling")
        >>> history = cmdpax.learn(cmdp, safer, num_episodes=50, growth=0.1)
        >>> history.manifest["algorithm"], history.manifest["baseline"]
        ('posterior-sampling-with-baseline', 'safest')
    """
    within = as_algorithm(algorithm)
    return mix(within, name or f"{within.name}-with-baseline")


def require_name(algorithm: str) -> None:
    """Refuse what is neither a registered name nor an address; nothing is imported."""
    if ":" in algorithm:
        require_address(algorithm)
    elif algorithm not in _BY_NAME:
        raise ParameterError(
            f"unknown algorithm {shown(algorithm)}; {nearest_name(algorithm, _BY_NAME)}."
        )


def address_of(algorithm: Named) -> str:
    """The name, or where an algorithm of the user's own can be imported from."""
    if isinstance(algorithm, str):
        return algorithm
    if not isinstance(algorithm, Algorithm):
        # An object has no name of its own, and its class is something else.
        return f"{algorithm.__module__}:{getattr(algorithm, '__qualname__', repr(algorithm))}"
    if registered(algorithm.name) is algorithm or ":" in algorithm.name:
        return algorithm.name
    home = getattr(algorithm.factory, "__module__", "")  # others, such as a script, may import it
    modules = sorted(sys.modules, key=lambda name: (name != home, name == "__main__"))
    for module in modules:
        for name, found in list(vars(sys.modules.get(module, object)).items()):
            if found is algorithm:
                return f"{module}:{name}"
    raise ParameterError(
        f"the algorithm {algorithm.name!r} stands in no module; give it a name at the top level of "
        "one, so that it can be imported."
    )
