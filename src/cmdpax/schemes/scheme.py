"""What a scheme is: two pure functions of a known model, a name, and what a user chooses.

    init(cmdp, parameters)         -> state    before the first iteration
    step(cmdp, parameters, state)  -> Move     iteration k: π_k, λ_k, and the state after it

A step gets the numbers of iteration k: schedules are replaced by their values there. Everything
but what is compiled in may be traced, so one definition runs plain, jitted, and vmapped over
parameters and stacked models.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Array, Float, Integer

from cmdpax.model.cmdp import CMDP
from cmdpax.schemes.choosing import HasParameters
from cmdpax.schemes.parameters import Parameter, parameters_of
from cmdpax.schemes.schedules import Schedule, value_at


class Move(NamedTuple):
    """One iteration k.

    Attributes:
        log_policy: log π_k, which is evaluated for the accounts.
        multipliers: λ_k.
        state: what iteration k + 1 needs.
        weight: of π_k in the mixture; None: the same as all others.
    """

    log_policy: Float[Array, "H S A"]
    multipliers: Float[Array, " I"]
    state: Any
    weight: Float[Array, ""] | None = None


Rates: TypeAlias = Any
"""The record of parameters at one iteration: schedules are replaced by their values."""

Step: TypeAlias = Callable[[CMDP, Rates, Any], Move]
"""From the model, the numbers of an iteration and the state before it."""


@dataclasses.dataclass(frozen=True)
class Scheme(HasParameters):
    """A scheme, with all that is known about it before it runs.

    Attributes:
        name: what users call it.
        init: from the model and the record of parameters to the state before iteration 1.
        step: one iteration.
        record: the `NamedTuple` of its parameters.
        summary: one line about it.
        source: where it was published.
        greedy_step: the iteration without regularization, where that is another program.
        has_potential: whether it looks for the regularized saddle point, to which Φ_k is measured.
        check: called with the chosen record and T; raises if the parameters do not fit together.
        parameters: the fields of the record.
    """

    name: str
    init: Callable[[CMDP, Any], Any]
    step: Step
    record: Any
    summary: str = ""
    source: str = ""
    greedy_step: Step | None = None
    has_potential: bool = False
    check: Callable[[Any, int], None] | None = None
    parameters: tuple[Parameter, ...] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        """Read the record."""
        object.__setattr__(self, "parameters", parameters_of(self.record))

    def step_with(self, chosen: Any) -> Step:
        """The iteration for a record: another one where there is no regularization at all."""
        if self.greedy_step is not None and chosen.regularization.initial == 0:
            return self.greedy_step
        return self.step


def at_iteration(parameters: Any, iteration: Integer[Array, ""]) -> Any:
    """The record of iteration k = 1, 2, …: schedules are replaced by their values."""
    return type(parameters)(
        *(value_at(one, iteration) if isinstance(one, Schedule) else one for one in parameters)
    )
