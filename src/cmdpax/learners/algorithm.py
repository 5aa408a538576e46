"""An algorithm: a name, the factory of its learners, and the parameters that a user chooses."""

import dataclasses
import importlib
import inspect
import itertools
import typing
from collections.abc import Callable
from typing import Any, TypeAlias

from cmdpax.errors import ParameterError, in_line, shown
from cmdpax.learners.base import Factory
from cmdpax.schemes.choosing import HasParameters
from cmdpax.schemes.hyperparameters import Hyperparameters, require_damped
from cmdpax.schemes.parameters import SCHEDULE_PARTS, Parameter, parameters_of

_MODEL = "cmdp horizon initial num_actions num_states rewards constraint_rewards thresholds"
_LIVE = (
    "successors available reward_range constraint_ranges senses names seed units baseline "
    "baseline_values plan approve confidence"
)
_WORDS = "state_names action_names constraint_names objective_name"
_RUN = "algorithm num_episodes seeds optimism observations record unsafe_at potential log precision"
_CALL = "stationary progress checkpoint name run configuration cmdp_name cmdps"
_TABLE = (
    "runs score strong weak strong_objective strong_constraints weak_objective weak_constraints "
    "growth_objective growth_constraints last_suboptimality last_violation violation_std "
    "suboptimality_std sign_changes capped plans infeasible_plans"
)
RESERVED = frozenset(" ".join((_MODEL, _LIVE, _WORDS, _RUN, _CALL, _TABLE)).split())
"""Names that mean something else where parameters are given, or in the table of a sweep."""
_RESERVED_PREFIXES = ("optimism_", "unsafe_at_")


@dataclasses.dataclass(frozen=True)
class Algorithm(HasParameters):
    """A learning algorithm, with all that is known about it before it runs.

    Attributes:
        name: what users call it.
        factory: makes a learner from `Knowledge` and the record of parameters.
        record: the `NamedTuple` of its parameters; None takes the annotation of the factory's
            second argument, else `Hyperparameters`.
        summary: one line about it.
        parameters: the fields of the record; given only where they differ from what it says.
        replans: whether its learners keep a policy for stretches of episodes, and have `absorb`.
        anytime: whether it needs no number of episodes; if not, `knowledge.num_episodes` is K.
        baseline: whether figures draw it as what others are compared with.
        needs_baseline: whether it starts from a policy that is known to be safe, which is then
            `knowledge.baseline`.
        max_constraints: the most constraints that it can handle; None: any number.
        live: names and values of parameters whose defaults differ in an agent.
        live_safe: the same for an agent that has a baseline.
        check: called with the chosen record and K; raises if the parameters do not fit together.
    """

    name: str
    factory: Factory
    record: Any = None
    summary: str = ""
    parameters: tuple[Parameter, ...] = ()
    replans: bool = False
    anytime: bool = True
    baseline: bool = False
    needs_baseline: bool = False
    max_constraints: int | None = None
    live: tuple[tuple[str, Any], ...] = ()
    live_safe: tuple[tuple[str, Any], ...] = ()
    check: Callable[[Any, int], None] | None = None

    def __post_init__(self) -> None:
        """Complete what follows from the factory and from the record."""
        record = _record_of(self.factory) if self.record is None else self.record
        parameters = self.parameters or parameters_of(record)
        for parameter in parameters:
            if parameter.name in RESERVED or parameter.name.startswith(_RESERVED_PREFIXES):
                raise ParameterError(
                    f"{self.name} has a parameter {parameter.name!r}, which means something else "
                    "where parameters are given; give it another name."
                )
        names = [parameter.name for parameter in parameters]
        for name, part in itertools.product(names, SCHEDULE_PARTS[1:]):
            if name + part in names:
                raise ParameterError(
                    f"{self.name} has the parameters {name!r} and {name + part!r}, which would be "
                    "one schedule in a table; give one of them another name."
                )
        object.__setattr__(self, "record", record)
        object.__setattr__(self, "parameters", parameters)
        if self.check is None and record is Hyperparameters:
            object.__setattr__(self, "check", require_damped)

    @property
    def program(self) -> "Algorithm":
        """Itself without name, defaults and ranges: algorithms of one factory share a program."""
        bare = tuple(Parameter(name=one.name, kind=one.kind) for one in self.parameters)
        return dataclasses.replace(
            self, name="", summary="", parameters=bare, baseline=False, live=(), check=None
        )

    def require_constraints(self, count: int) -> None:
        """Refuse more constraints than the algorithm can handle.

        Raises:
            ParameterError: there are too many.
        """
        most = self.max_constraints
        if most is not None and count > most:
            noun = "constraint" if most == 1 else "constraints"
            raise ParameterError(
                f"{self.name} handles {most} {noun}, the CMDP has {count}; use an algorithm that "
                "handles any number, such as 'replanning'."
            )


def _record_of(factory: Any) -> Any:
    """The annotation of a factory's second argument, if it is a record."""
    function = getattr(factory, "func", factory)  # of a partial
    if not inspect.isroutine(function):
        function = type(function).__call__
    try:
        hints = typing.get_type_hints(function)
        names = list(inspect.signature(factory).parameters)
        record = hints[names[1]]
    except (KeyError, IndexError, NameError, TypeError, ValueError, AttributeError):
        return Hyperparameters
    is_record = isinstance(record, type) and issubclass(record, tuple)
    return record if is_record and hasattr(record, "_fields") else Hyperparameters


# -------------------------------------------------------------------------- found by name or object

Named: TypeAlias = str | Algorithm | Factory
"""A registered name, an address "module:name", an `Algorithm`, or a factory."""


def wrap(own: Any, name: str) -> Algorithm:
    """An algorithm of the user's own: an `Algorithm` as it is, or a factory.

    Raises:
        ParameterError: it is neither.
    """
    known = own if isinstance(own, Algorithm) else None
    try:
        inspect.signature(own if known is None else known.factory).bind("knowledge", "parameters")
    except (TypeError, ValueError):
        raise ParameterError(
            f"algorithm {shown(name)} is not a factory: it must take knowledge and parameters."
        ) from None
    return Algorithm(name, own) if known is None else known


def require_address(address: str) -> None:
    """Refuse what cannot be the address of a factory; nothing is imported."""
    module, _, name = address.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ParameterError(
            f"algorithm {shown(address)} cannot be imported (it is not of the form "
            '"package.module:name"); give the names of a module and of a factory in it.'
        )


def imported(address: str) -> Algorithm:
    """The algorithm at "package.module:name", which is what it is called from then on."""
    require_address(address)
    module, _, name = address.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        cause = in_line(error)
        if not isinstance(error, ImportError | AttributeError):
            cause = f"{type(error).__name__}: {cause}"
        raise ParameterError(
            f"algorithm {address!r} cannot be imported ({cause}); put its module on PYTHONPATH."
        ) from None
    return dataclasses.replace(wrap(found, address), name=address)


def name_of(own: Any) -> str:
    """What a factory of the user's own is called."""
    function = getattr(own, "func", own)  # of a partial
    return str(getattr(function, "__qualname__", type(function).__qualname__))
