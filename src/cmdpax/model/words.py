"""The words of a model: names, units, and the senses of its constraints.

Inside, constraints are rewards that reach at least a threshold. A user may say "at most" as well:
a signal x that must stay at most at b becomes u = m - x with c = H m - b, where m is its *ceiling*.
Values go back the same way, since the map is its own inverse,

    V_x = H m - V_u,        V_u = H m - V_x,

so that slack, V_u - c = b - V_x, and multipliers are the same inside and outside. Words stand
beside the arrays of a model, and never in compiled code: models with other names can be stacked.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import check_choice, whole_number
from cmdpax.errors import ModelError, ParameterError, nearest_name, shown

SENSES = ("at least", "at most")
KINDS = ("state", "action", "constraint")
ARGUMENTS = ("state_names", "action_names", "constraint_names", "objective_name", "units")
"""The words that users give beside senses."""

_LONGEST = 200  # characters of a name


class Words(NamedTuple):
    """Names, units and senses; None where nothing was said.

    Attributes:
        state_names: one for each state.
        action_names: one for each action.
        constraint_names: one for each constraint.
        objective_name: what the rewards sum to.
        units: of the objective and of each constraint; an empty text where there is none.
        senses: "at least" or "at most" for each constraint; None: all are "at least".
        ceilings: m for each constraint; 0 for those that are "at least".
    """

    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None
    constraint_names: tuple[str, ...] | None = None
    objective_name: str | None = None
    units: tuple[str, ...] | None = None
    senses: tuple[str, ...] | None = None
    ceilings: tuple[float, ...] | None = None

    # ------------------------------------------------------------------------------------ in words

    def state(self, index: int) -> str:
        """The name of a state."""
        return f"state {index}" if self.state_names is None else self.state_names[index]

    def action(self, index: int) -> str:
        """The name of an action."""
        return f"action {index}" if self.action_names is None else self.action_names[index]

    def constraint(self, index: int) -> str:
        """The name of a constraint."""
        names = self.constraint_names
        return f"constraint {index}" if names is None else names[index]

    @property
    def objective(self) -> str:
        """The name of the objective."""
        return "value" if self.objective_name is None else self.objective_name

    def unit(self, signal: int = 0) -> str:
        """The unit of signal 0, the objective, or 1 + i, a constraint; it may be empty."""
        return "" if self.units is None else self.units[signal]

    def amount(self, value: float, signal: int = 0, digits: int = 6) -> str:
        """A number with its unit, such as "80 kWh"."""
        return f"{value:.{digits}g} {self.unit(signal)}".rstrip()

    def label(self, signal: int = 0) -> str:
        """The name of a signal and its unit, such as "energy [kWh]"."""
        name = self.constraint(signal - 1) if signal else self.objective
        return f"{name} [{self.unit(signal)}]" if self.unit(signal) else name

    def sense(self, constraint: int) -> str:
        """ "at least" or "at most"."""
        return SENSES[0] if self.senses is None else self.senses[constraint]

    def index_of(self, kind: str, given: Any, size: int) -> int:
        """The index of a state, an action or a constraint that is given by its name or index."""
        names = getattr(self, f"{kind}_names")
        if isinstance(given, str):
            if names is not None and given in names:
                return int(names.index(given))
            hint = nearest_name(given, names) if names else f"the {kind}s have no names; use 0 …"
            raise ParameterError(f"there is no {kind} {shown(given)}; {hint.rstrip(' …')}.")
        index = whole_number(given)
        if index is None or not 0 <= index < size:
            named = " or one of their names" if names is not None else ""
            raise ParameterError(
                f"{kind} is {shown(given)}, the {kind}s are 0 … {size - 1}{named}."
            )
        return index

    # ---------------------------------------------------------------------------------- in numbers

    @property
    def signs(self) -> np.ndarray | float:
        """1 for each constraint that is "at least", -1 where "at most"."""
        if self.senses is None:
            return 1.0
        return np.where(np.array(self.senses) == "at most", -1.0, 1.0)

    def turn(self, values: np.ndarray, horizon: int, constraint: int | None = None) -> np.ndarray:
        """Values or thresholds from inside to outside, or back.

        Args:
            values: `[…, I]`, or of one constraint, with any shape.
            horizon: H; 1 for the signals of single steps.
            constraint: which one, if it is one.
        """
        if self.senses is None:
            return values
        place = slice(None) if constraint is None else constraint
        ceilings, signs = horizon * np.array(self.ceilings)[place], np.asarray(self.signs)[place]
        return np.where(signs < 0, ceilings - values, values)

    def turn_signals(self, signals: np.ndarray) -> np.ndarray:
        """Signals of single steps, `[I, H, S, A]`, from inside to outside, or back."""
        if self.senses is None:
            return signals
        return np.moveaxis(self.turn(np.moveaxis(signals, 0, -1), 1), -1, 0)

    def slack(self, values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """How far values, as users read them, are on the right side of thresholds, `[…, I]`."""
        return np.asarray(self.signs * (np.asarray(values) - thresholds)) + 0.0  # no -0.0

    # ------------------------------------------------------------------------------------ in files

    def to_dict(self) -> dict[str, Any]:
        """What was said, as JSON holds it; empty where nothing was."""
        entries = {name: entry for name, entry in self._asdict().items() if entry is not None}
        return {
            name: list(entry) if isinstance(entry, tuple) else entry
            for name, entry in entries.items()
        }


PLAIN = Words()
"""No words: numbers for names, and every constraint "at least"."""


def make_words(
    sizes: tuple[int, int, int],
    *,
    state_names: Any = None,
    action_names: Any = None,
    constraint_names: Any = None,
    objective_name: Any = None,
    units: Any = None,
    senses: Any = None,
    ceilings: Any = None,
) -> Words:
    """Check words as users give them.

    Args:
        sizes: S, A and I.
        state_names: S different texts.
        action_names: A different texts.
        constraint_names: I different texts, or just the text where there is one constraint.
        objective_name: a text.
        units: 1 + I texts, that of the objective first, or a mapping from the names of the
            objective and of constraints to their units.
        senses: one for all constraints, or one for each.
        ceilings: m, one for each constraint; None: 0.

    Raises:
        ParameterError: other numbers of them, doubles, or something that is no text.
    """
    num_states, num_actions, num_constraints = sizes
    if isinstance(constraint_names, str):
        constraint_names = [constraint_names]
    words = Words(
        _names("state_names", state_names, num_states),
        _names("action_names", action_names, num_actions),
        _names("constraint_names", constraint_names, num_constraints),
        None if objective_name is None else _text("objective_name", objective_name),
    )
    if words.objective_name is not None and words.objective_name in (words.constraint_names or ()):
        raise ParameterError(
            f"objective_name is {words.objective_name!r}, which is also a constraint's name; give "
            "them different names."
        )
    chosen = as_senses(senses, num_constraints)
    words = words._replace(units=_units(units, words, num_constraints))
    if "at most" not in chosen:
        return words
    kept = np.zeros(num_constraints) if ceilings is None else np.asarray(ceilings, float)
    if kept.shape != (num_constraints,) or not np.isfinite(kept).all():
        raise ModelError(
            f"there are {kept.size} ceilings, there must be a finite number for each of the "
            f"{num_constraints} constraints."
        )
    return words._replace(senses=chosen, ceilings=tuple(kept.tolist()))


def as_senses(senses: Any, num_constraints: int) -> tuple[str, ...]:
    """One sense for each constraint, from one for all or one for each; None is "at least"."""
    given = SENSES[0] if senses is None else senses
    chosen = [given] * num_constraints if isinstance(given, str) else given
    if isinstance(given, str):
        check_choice("senses", given, SENSES)
    if not isinstance(chosen, Sequence | np.ndarray):
        raise ParameterError(f"senses is {shown(senses)}; {nearest_name(senses, SENSES)}.")
    if len(chosen) != num_constraints:
        raise ParameterError(
            f"the number of senses is {len(chosen)}, that of thresholds {num_constraints}; give "
            "one for all, or one for each."
        )
    for sense in chosen:
        check_choice("a sense", sense, SENSES)
    return tuple(str(sense) for sense in chosen)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > _LONGEST:
        raise ParameterError(
            f"{name} is {shown(given)}, it must be a text of 1 to {_LONGEST} characters."
        )
    return str(given)


def _names(name: str, given: Any, size: int) -> tuple[str, ...] | None:
    """Different texts, one for each of `size` things."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise ParameterError(f"{name} is {shown(given)}, it must be a list of {size} texts.")
    if len(given) != size:
        kind = name.removesuffix("_names")
        raise ParameterError(
            f"the number of {name} is {len(given)}, that of {kind}s {size}; give one for each."
        )
    texts = tuple(_text(f"{name}[{index}]", entry) for index, entry in enumerate(given))
    if len(set(texts)) < len(texts):
        double = collections.Counter(texts).most_common(1)[0][0]
        raise ParameterError(f"{name} has {double!r} twice; give every one a name of its own.")
    return texts


def _units(given: Any, words: Words, num_constraints: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = [words.objective, *(words.constraint(i) for i in range(num_constraints))]
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise ParameterError(f"units has {shown(name)}; {nearest_name(name, names)}.")
        given = [given.get(name, "") for name in names]
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    if not listed or len(given) != len(names):
        raise ParameterError(
            f"units is {shown(given)}, it must be a mapping from names to units, or a list of "
            f"{len(names)} texts, the objective's first."
        )
    for unit in given:
        if not isinstance(unit, str) or len(unit) > _LONGEST:
            raise ParameterError(f"units has {shown(unit)}, it must be a text such as 'kWh'.")
    return tuple(str(unit) for unit in given) if any(given) else None
