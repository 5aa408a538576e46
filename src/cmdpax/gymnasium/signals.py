"""What an environment gives at a step, as the signals of an agent's constraints."""

import warnings
from typing import Any

import numpy as np

from cmdpax.errors import CmdpaxWarning, ParameterError
from cmdpax.gymnasium.readers import as_numbers, given_cost, reader_of, require_one_each
from cmdpax.gymnasium.stepping import VECTOR, Taken
from cmdpax.live import Agent


class Signals:
    """Turns what an environment gives at a step into the signals that an agent expects.

    Costs are converted where a constraint is "at least" its threshold: u = 1 - cost. Components of
    a vector reward are rewards, which are costs with the other sign where it is "at most".
    """

    def __init__(self, costs: Any, signals: Any, agent: Agent, num_states: int) -> None:
        """Read the arguments of `interact`.

        Args:
            costs: None takes what the environment gives; else as for `interact`.
            signals: the same, taken as they are by every constraint.
            agent: what was declared.
            num_states: of the environment; the agent may have one more.
        """
        if costs is not None and signals is not None:
            raise ParameterError(
                "give costs or signals, not both: costs are converted, signals not."
            )
        self._declared = agent.declaration
        low, high, self._at_most, declared = (array[1:] for array in self._declared.units)
        self._unit = ((low == 0) & (high == 1)) | ~declared
        self._checked = False
        self._rewarded = False  # the environment gives constraint rewards, not only costs
        self._rest: np.ndarray | None = None
        self._converts, source = signals is None, costs if signals is None else signals
        if costs is not None:
            self._require_convertible()
        pairs = (num_states, self._declared.sizes.num_actions)
        self._read = None if source is None else reader_of(source, pairs)

    def read(self, state: int, action: int, following: int, taken: Taken) -> np.ndarray:
        """The signals of a step, `[I]`."""
        if not self._at_most.size:
            return np.zeros(0)
        count = self._at_most.size
        told = f"the agent has {count} thresholds"
        if self._read is None:
            return require_one_each(self._given(taken), count, told)
        found = require_one_each(self._read(state, action, following, taken.info), count, told)
        return self._from_costs(found) if self._converts else found

    def nothing(self) -> np.ndarray:
        """The signals of a step after the end, `[I]`, refused where a range does not allow them."""
        if self._rest is None:
            free = ~self._at_most & self._unit & self._converts & (not self._rewarded)
            rest = np.where(free, 1.0, 0.0)
            self._require_allowed(rest)
            self._rest = rest
        return self._rest

    def _require_allowed(self, nothing: np.ndarray) -> None:
        units, names = self._declared.units, ("reward", *self._declared.names)
        for index, value in enumerate((0.0, *nothing)):
            low, high = units.low[index], units.high[index]
            if units.declared[index] and not low <= value <= high:
                raise ParameterError(
                    "the environment terminated, and steps after that have no reward and no cost, "
                    f"but the declared range of {names[index]} is [{low:g}, {high:g}]; declare one "
                    f"that has {value:g}, or give on_termination='end'."
                )

    def _given(self, taken: Taken) -> np.ndarray:
        """What the environment gives: costs, and constraint rewards where they are wanted."""
        given = taken.info.get("constraint_rewards")
        rewards = None if given is None else as_numbers(given, "info['constraint_rewards']")
        if taken.components is not None and taken.components.size:
            return self._from_components(taken.components)
        if rewards is None or self._at_most.all():
            return self._from_costs(given_cost(taken.cost, taken.info))
        self._rewarded = True
        costs = given_cost(taken.cost, taken.info) if self._at_most.any() else 0.0
        return np.where(self._at_most, costs, rewards)

    def _from_components(self, components: np.ndarray) -> np.ndarray:
        """Parts of a vector reward, with the other sign where they must be "at most"."""
        self._rewarded = True
        count = self._at_most.size
        if len(components) != count:
            raise ParameterError(
                f"the reward has {len(components)} components beside the objective, the agent has "
                f"{count} thresholds; say with signals= which they are, such as "
                f"signals='{VECTOR}.1'."
            )
        return np.where(self._at_most, -components, components) + 0.0  # no -0.0

    def _from_costs(self, costs: np.ndarray) -> np.ndarray:
        """Costs as they are, or 1 - cost."""
        self._require_convertible()
        return np.where(self._at_most, costs, 1 - costs)

    def _require_convertible(self) -> None:
        """Refuse constraints that cannot take costs; warn where a limit seems to be meant."""
        if self._checked:
            return
        self._checked = True
        for index, name in enumerate(self._declared.names):
            if not self._at_most[index]:
                self._require_one(index, name)

    def _require_one(self, index: int, name: str) -> None:
        low, high = (array[1 + index] for array in self._declared.units[:2])
        if not self._unit[index]:
            raise ParameterError(
                f"{name} must be at least its threshold and has the range [{low:g}, {high:g}], but "
                "gets costs; give signals= in place of costs=, or declare senses='at most' with "
                "the limit and the range of the cost."
            )
        threshold, horizon = self._declared.thresholds[index], self._declared.sizes.horizon
        if threshold < horizon / 2:
            warnings.warn(
                f"{name} must be at least {threshold:g} and gets 1 - cost, so more than half of "
                f"the {horizon} steps may cost 1; if {threshold:g} is the limit of the cost, "
                "declare senses='at most'.",
                CmdpaxWarning,
                stacklevel=7,
            )
