"""What the user declares about a live system, checked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import require_count, require_flag, require_index, whole_number
from cmdpax.errors import ModelError, ParameterError, shown
from cmdpax.learners import (
    Algorithm,
    Hyperparameters,
    Named,
    Parameter,
    as_algorithm,
    registered,
)
from cmdpax.learners.optimism import Optimism, as_optimism
from cmdpax.live.units import ROUNDING, Units, declare_units
from cmdpax.model.arrays import as_floats, as_indices, fill_pairs, is_single
from cmdpax.model.cmdp import CMDP, Sizes
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import validate
from cmdpax.model.words import SENSES
from cmdpax.schemes.schedules import Schedule, is_constant
from cmdpax.storage.limits import require_room

_ARRAYS = ("thresholds", "initial", "rewards", "constraint_rewards", "successors", "available")
FOREVER = 2**31 - 1
"""The most episodes that can be counted: how many a live system will have is not known."""


class Declaration(NamedTuple):
    """Everything that defines an agent, in the user's units."""

    algorithm: str  # a registered name, "module:factory", or the name of the user's own
    own: bool  # the factory is the user's, and is given again when a file is loaded
    sizes: Sizes
    thresholds: np.ndarray  # [I]
    initial: np.ndarray  # [S]
    seed: int
    rewards: np.ndarray | None  # [H or 1, S, A], where they are known
    constraint_rewards: np.ndarray | None  # [I, H or 1, S, A]
    successors: np.ndarray | None  # [H or 1, S, A, N], -1 for unused slots, where they are known
    stationary: bool
    optimism: Optimism
    parameters: dict[str, Any]  # of the algorithm, as JSON holds them
    units: Units
    names: tuple[str, ...]  # of the constraints
    available: np.ndarray | None  # [H or 1, S, A] of flags; None: every action is

    def signals(self, reward: Any, constraint_rewards: Any) -> np.ndarray:
        """What was observed in a step, as one array in the user's units, checked."""
        count = self.sizes.num_constraints
        try:
            others = _real([] if constraint_rewards is None else constraint_rewards)
            if not is_single(reward):
                raise TypeError
            signals = np.append(_real(reward), others)
        except (TypeError, ValueError, OverflowError):
            raise ParameterError(
                f"reward is {shown(reward)} and constraint_rewards {shown(constraint_rewards)}; "
                f"they must be a number and {count} numbers."
            ) from None
        if others.shape != (count,):
            raise ParameterError(
                f"constraint_rewards has shape {others.shape}, expected ({count},): one number for "
                f"each of {', '.join(self.names) or 'no constraint'}."
            )
        names = ("the reward", *(f"the signal of {name}" for name in self.names))
        self.units.require_inside(signals, names)
        return signals

    def is_available(self, step: int, state: int, action: int) -> bool:
        """Whether an action can be played in a state."""
        flags = self.available
        return flags is None or bool(flags[0 if len(flags) == 1 else step, state, action])

    def require_possible(self, step: int, state: int, action: int, following: int) -> None:
        """Refuse an action or a next state that is not declared: it cannot be counted."""
        if not self.is_available(step, state, action):
            raise ParameterError(
                f"action {action} is not available in state {state} at step {step}; tell what was "
                "done, or declare it as available."
            )
        if self.successors is None:
            return
        row = self.successors[0 if len(self.successors) == 1 else step, state, action]
        if following not in row:
            raise ParameterError(
                f"state {following} follows state {state} and action {action} at step {step}, "
                f"where successors lists {sorted(row[row >= 0].tolist())}; declare it too."
            )

    def algorithm_of(self, path: str | Path, given: Named | None) -> Algorithm:
        """The algorithm that a saved agent goes on with; one of the user's own must be given."""
        found = registered(self.algorithm) if given is None else as_algorithm(given)
        if found is None or (given is None and self.own):  # a file may say anything
            raise ParameterError(
                f"{path} was saved with the factory {self.algorithm!r} of your own; give it as "
                "algorithm."
            )
        if found.name != self.algorithm:
            raise ParameterError(
                f"{path} was saved with the algorithm {self.algorithm!r}, not with "
                f"{found.name!r}; give that one, or none where it has a name."
            )
        return found

    def to_entries(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What JSON can hold, and the arrays."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        head = {name: entry for name, entry in self._asdict().items() if name not in arrays}
        head["optimism"] = self.optimism._asdict()
        head["units"] = [array.tolist() for array in self.units]
        return head, {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def from_entries(cls, head: Mapping[str, Any], arrays: Mapping[str, Any]) -> "Declaration":
        """The declaration that `to_entries` took apart, checked as if a user had made it."""
        if "hyperparameters" in head:  # as the first versions called them
            head = dict(head)
            earlier = zip(Hyperparameters._fields, head.pop("hyperparameters"), strict=True)
            head["parameters"] = dict(earlier)
        if set(head) != set(cls._fields) - set(_ARRAYS) or type(head["own"]) is not bool:
            raise ParameterError(f"the declaration has the entries {', '.join(head)}.")
        given: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
        given |= {name: head[name] for name in ("stationary", "names", "seed")}
        given |= dict(zip(Sizes._fields[1:], head["sizes"][1:], strict=True))
        (low, *lows), (high, *highs), (_, *at_most) = head["units"]
        found = None if head["own"] else registered(str(head["algorithm"]))
        parameters = dict(head["parameters"])
        if found is not None:
            parameters = found.describe(found.restore(parameters, FOREVER))
        return _declared(
            str(head["algorithm"]),
            head["own"],
            parameters,
            **given,
            optimism=Optimism(**head["optimism"]),
            reward_range=(low, high),
            constraint_ranges=list(zip(lows, highs, strict=True)),
            senses=[SENSES[bool(most)] for most in at_most],
        )


def declare(
    algorithm: Algorithm, parameters: Mapping[str, Any], known: Sequence[str], **given: Any
) -> Declaration:
    """Check what the user says about a system and about the learner, and complete it."""
    if not algorithm.anytime:
        raise ParameterError(
            f"{algorithm.name} must know the number of episodes, and a live system has none; use "
            "an algorithm that is anytime."
        )
    chosen = algorithm.choose(parameters, FOREVER, known)
    own = registered(algorithm.name) is not algorithm
    return _declared(algorithm.name, own, algorithm.describe(chosen), **given)


def _declared(
    algorithm: str,
    own: bool,
    parameters: dict[str, Any],
    *,
    num_states: int,
    num_actions: int,
    horizon: int,
    thresholds: Any,
    initial: Any,
    seed: int,
    rewards: Any,
    constraint_rewards: Any,
    successors: Any,
    available: Any,
    optimism: str | Optimism | None,
    stationary: bool,
    reward_range: Any,
    constraint_ranges: Any,
    senses: Any,
    names: Sequence[str] | None,
) -> Declaration:
    limits = _thresholds(thresholds)
    sizes = _sizes(len(limits), horizon, num_states, num_actions)
    stationary = require_flag("stationary", stationary)
    units = declare_units(reward_range, constraint_ranges, senses, len(limits))
    profile = _profile(optimism, rewards, constraint_rewards, sizes)
    stand_in = _stand_in(sizes, limits, initial, rewards, constraint_rewards, available)
    chosen_names = _names(names, len(limits))
    units.require_reachable(stand_in.thresholds, chosen_names, sizes.horizon)
    known = profile.rewards == "known"
    if known:
        _require_in_range(stand_in, units)
    given = parameters.get("margin")
    if not isinstance(given, str | bool | None):  # words and flags of one's own are something else
        margin = Parameter(name="margin", kind="schedule").restore(given, 1)
        _require_margin(margin, units, stand_in.thresholds, sizes.horizon)
    flags = stand_in.available
    lists = None if successors is None else _listed(successors, flags, sizes, stationary)
    _require_room(
        sizes,
        1 if stationary else sizes.horizon,
        sizes.num_states if lists is None else lists.shape[-1],
    )
    return Declaration(
        algorithm,
        own,
        sizes,
        stand_in.thresholds,
        stand_in.initial,
        _seed(seed),
        stand_in.rewards if known else None,
        stand_in.constraint_rewards if known else None,
        lists,
        stationary,
        profile,
        parameters,
        units,
        chosen_names,
        flags,
    )


def _sizes(num_constraints: int, *counts: Any) -> Sizes:
    return Sizes(num_constraints, *map(require_count, Sizes._fields[1:], counts))


def _require_room(sizes: Sizes, steps: int, num_slots: int) -> None:
    """A learner counts where every action led, and estimates how likely that is."""
    _, _, num_states, num_actions = sizes
    require_room(
        f"a learner of {num_states} states, {num_actions} actions and {steps} steps",
        12 * steps * num_states * num_actions * num_slots,
        "declare stationary=True or the successors",
    )


def _profile(
    optimism: str | Optimism | None, rewards: Any, constraint_rewards: Any, sizes: Sizes
) -> Optimism:
    """What was chosen; else "empirical" where rewards are known, "live" where they are not."""
    given = rewards is not None and (constraint_rewards is not None or not sizes.num_constraints)
    if not given and (rewards is not None or constraint_rewards is not None):
        missing = "rewards" if rewards is None else "constraint_rewards"
        raise ParameterError(
            f"{missing} are missing: give both rewards and constraint_rewards where they are "
            "known, or neither."
        )
    if isinstance(optimism, str) and optimism == "theory":
        raise ParameterError(
            "optimism 'theory' needs a number of episodes; give "
            "cmdpax.Optimism.theory(num_episodes)."
        )
    usual = "empirical" if given else "live"
    profile = as_optimism(usual if optimism is None else optimism, FOREVER)
    if profile.rewards == "known" and not given:
        raise ParameterError(
            "this optimism takes the rewards as known; give rewards and constraint_rewards, or "
            "use optimism='live'."
        )
    return profile


def _stand_in(
    sizes: Sizes,
    thresholds: np.ndarray,
    initial: Any,
    rewards: Any,
    constraint_rewards: Any,
    available: Any,
) -> CMDP:
    """A CMDP whose states stay, so that the arrays are checked as those of any model."""
    num_constraints, horizon, num_states, num_actions = sizes
    if is_single(initial):
        state = require_index("initial", initial, num_states, "states")
        initial = np.eye(num_states)[state]
    pairs = (1, num_states, num_actions)
    if rewards is None:
        rewards, constraint_rewards = np.zeros(pairs), np.zeros((num_constraints, *pairs))
    elif constraint_rewards is None:
        constraint_rewards = []
    stay = np.broadcast_to(np.arange(num_states)[None, :, None, None], (*pairs, 1))
    transitions = Successors(stay, np.ones((*pairs, 1)))
    arrays = (transitions, rewards, constraint_rewards, thresholds, initial)
    return validate(CMDP(*arrays, horizon=horizon, available=available))


def _require_in_range(model: CMDP, units: Units) -> None:
    """Known rewards must lie in the ranges that are declared."""
    named = [("rewards", model.rewards)]
    named += [(f"constraint_rewards[{i}]", u) for i, u in enumerate(model.constraint_rewards)]
    for index, (name, signal) in enumerate(named):
        low, high = float(signal.min()), float(signal.max())
        room = ROUNDING * units.scale[index]
        if low < units.low[index] - room or high > units.high[index] + room:
            which = f"constraint_ranges[{index - 1}]" if index else "reward_range"
            raise ParameterError(
                f"{name} lies in [{low:g}, {high:g}], {which} is "
                f"[{units.low[index]:g}, {units.high[index]:g}]; declare the range that they have."
            )


def _require_margin(margin: Schedule, units: Units, thresholds: np.ndarray, horizon: int) -> None:
    """Refuse a margin that loosens thresholds, or with which no episode can meet them."""
    if margin.initial < 0:
        raise ParameterError(f"margin is {margin}, it must not be negative.")
    inside = units.thresholds_inward(thresholds, horizon)
    if is_constant(margin) and (inside + margin.initial > horizon * (1 + ROUNDING)).any():
        raise ParameterError(
            f"margin is {margin}, with which a threshold is out of reach (margins are in signals "
            "that are scaled to [0, 1]); give a smaller one."
        )


def _listed(
    successors: Any, available: np.ndarray | None, sizes: Sizes, stationary: bool
) -> np.ndarray:
    """The states that may follow, -1 for unused slots."""
    _, horizon, num_states, num_actions = sizes
    told = isinstance(successors, Successors)
    lists = as_indices("successors", successors.successors if told else successors)
    fits = lists.ndim == 4 and lists.shape[0] in (1, horizon)
    if not fits or lists.shape[1:3] != (num_states, num_actions):
        raise ModelError(
            f"successors has shape {lists.shape}, expected "
            f"({horizon} or 1, {num_states}, {num_actions}, N), -1 for unused slots."
        )
    if told:
        probabilities = as_floats("probabilities", successors.probabilities)
        if probabilities.shape != lists.shape:
            raise ModelError(
                f"probabilities has shape {probabilities.shape}, but successors {lists.shape}; "
                "give one for each."
            )
        lists = np.where(probabilities > 0, lists, -1)
    if available is not None:
        lists = fill_pairs(lists, available, 0)
    if stationary and lists.shape[0] != 1:
        raise ModelError(
            f"stationary is true, but successors are listed for {lists.shape[0]} steps; list them "
            "once (a leading axis of 1), or declare stationary=False."
        )
    if (
        not lists.size
        or lists.max() >= num_states
        or lists.min() < -1
        or not (lists >= 0).any(axis=-1).all()
    ):
        raise ModelError(
            f"successors must be states 0 … {num_states - 1} or -1, at least one state for every "
            "pair of a state and an action."
        )
    found = lists.astype(np.int32)
    found.setflags(write=False)
    return found


def _names(given: Sequence[str] | None, num_constraints: int) -> tuple[str, ...]:
    if given is None:
        return tuple(f"constraint {i}" for i in range(num_constraints))
    names = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    words = not isinstance(given, str) and all(isinstance(name, str) for name in names)
    if not words or len(names) != num_constraints or len(set(names)) < len(names):
        raise ParameterError(
            f"names is {shown(given)}, it must be {num_constraints} different words, one for each "
            "threshold."
        )
    return tuple(names)


def _thresholds(given: Any) -> np.ndarray:
    try:
        return _real(given)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"thresholds is {shown(given)}, it must be a list of numbers, one for each constraint."
        ) from None


def _real(given: Any) -> np.ndarray:
    """Real numbers as an array with one axis; words are refused, even those that look like one."""
    array = np.atleast_1d(np.asarray(given))
    if array.dtype.kind == "O":  # integers of any size, decimals, fractions
        array = np.array([float(entry) for entry in array.ravel()]).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise TypeError
    return array.astype(float)


def _seed(given: Any) -> int:
    seed = whole_number(given)
    if seed is None or not 0 <= seed < 2**32:
        raise ParameterError(
            f"seed is {shown(given)}, it must be a whole number from 0 to 2^32 - 1."
        )
    return seed
