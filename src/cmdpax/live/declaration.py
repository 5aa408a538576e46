"""What the user declares about a live system, checked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cmdpax.checks import require_count, require_flag, require_index, whole_number
from cmdpax.errors import ParameterError, shown
from cmdpax.learners import (
    Algorithm,
    Baseline,
    Hyperparameters,
    Named,
    Parameter,
    as_algorithm,
    registered,
)
from cmdpax.learners.optimism import Optimism, as_optimism
from cmdpax.live.checking import (
    baseline_values_of,
    confidence_of,
    constraint_names_of,
    listed_successors,
    margins_of,
    real_numbers,
    require_baseline,
    require_in_range,
    require_margin,
    stand_in_of,
    thresholds_of,
)
from cmdpax.live.units import Units, declare_units, units_from
from cmdpax.model.arrays import is_single
from cmdpax.model.cmdp import Sizes
from cmdpax.model.policy_forms import baseline_of
from cmdpax.model.words import SENSES, Words, make_words
from cmdpax.schemes.schedules import Schedule
from cmdpax.storage.limits import require_room

_ARRAYS = (
    "thresholds",
    "initial",
    "rewards",
    "constraint_rewards",
    "successors",
    "available",
    "margins",
    "baseline",
    "baseline_values",
)
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
    words: Words  # names of states and actions, and units
    margins: np.ndarray  # [I], by how much thresholds are made stricter for the learner
    baseline: np.ndarray | None  # [H, S, A], where there is one
    confidence: float | None  # of meeting all constraints, where there is a baseline
    asks: bool  # whether somebody approves plans before they are played
    baseline_values: np.ndarray | None = None  # [I], where the learner itself starts from it

    @property
    def mixed_baseline(self) -> np.ndarray | None:
        """The baseline beside which the agent plays plans; one that its learner needs is not."""
        return self.baseline if self.baseline_values is None else None

    @property
    def known_baseline(self) -> Baseline | None:
        """The baseline that the learner starts from, with what it reaches in its present units."""
        if self.baseline is None or self.baseline_values is None:
            return None
        inward = self.units.thresholds_inward(self.baseline_values, self.sizes.horizon)
        return Baseline(jnp.asarray(self.baseline), jnp.asarray(inward))

    def aims(self, margins: np.ndarray) -> np.ndarray:
        """What the learner aims at, `[I]`: thresholds with margins, in its units."""
        stricter = self.thresholds + np.where(self.units.at_most[1:], -margins, margins)
        return self.units.thresholds_inward(stricter, self.sizes.horizon)

    def signals(self, reward: Any, constraint_rewards: Any) -> np.ndarray:
        """What was observed in a step, as one array in the user's units, checked."""
        count = self.sizes.num_constraints
        try:
            others = real_numbers([] if constraint_rewards is None else constraint_rewards)
            if not is_single(reward):
                raise TypeError
            signals = np.append(real_numbers(reward), others)
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

    def state_index(self, what: str, given: Any) -> int:
        """The index of a state, given by its name or index; `what` says which state it is."""
        if isinstance(given, str) and self.words.state_names is not None:
            return self.words.index_of("state", given, self.sizes.num_states)
        return require_index(what, given, self.sizes.num_states, "states")

    def action_index(self, given: Any) -> int:
        """The index of an action, given by its name or index."""
        if isinstance(given, str) and self.words.action_names is not None:
            return self.words.index_of("action", given, self.sizes.num_actions)
        return require_index("action", given, self.sizes.num_actions, "actions")

    def is_available(self, step: int, state: int, action: int) -> bool:
        """Whether an action can be played in a state."""
        flags = self.available
        return flags is None or bool(flags[0 if len(flags) == 1 else step, state, action])

    def require_possible(self, step: int, state: int, action: int, following: int) -> None:
        """Refuse an action or a next state that is not declared: it cannot be counted."""
        if not self.is_available(step, state, action):
            raise ParameterError(
                f"{self.words.action(action)} is not available in {self.words.state(state)} at "
                f"step {step}; tell what was done, or declare it as available."
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
        head["words"] = self.words.to_dict()
        return head, {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def from_entries(cls, head: Mapping[str, Any], arrays: Mapping[str, Any]) -> "Declaration":
        """The declaration that `to_entries` took apart, checked as if a user had made it."""
        if "hyperparameters" in head:  # as the first versions called them
            head = dict(head)
            earlier = zip(Hyperparameters._fields, head.pop("hyperparameters"), strict=True)
            head["parameters"] = dict(earlier)
        said = dict(head.get("words", {}))  # the first versions had none
        head = {"confidence": None, "asks": False, **head, "words": said}
        if set(head) != set(cls._fields) - set(_ARRAYS) or type(head["own"]) is not bool:
            raise ParameterError(f"the declaration has the entries {', '.join(head)}.")
        given: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
        margins = given.pop("margins")
        given |= {name: head[name] for name in ("stationary", "names", "seed")}
        given |= dict(zip(Sizes._fields[1:], head["sizes"][1:], strict=True))
        lows, highs, (_, *at_most), *flags = head["units"]
        declared = flags[0] if flags else [True] * len(lows)  # the first versions knew all ranges
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
            reward_range=None,
            constraint_ranges=None,
            units=units_from(lows, highs, at_most, declared),
            senses=[SENSES[bool(most)] for most in at_most],
            state_names=said.get("state_names"),
            action_names=said.get("action_names"),
            unit_names=said.get("units"),
            margin=margins,
            confidence=head["confidence"],
            asks=head["asks"],
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
    parameters, margin = dict(parameters), given.pop("margin")
    if isinstance(margin, str | Mapping | Schedule) and "margin" in algorithm.names:
        parameters["margin"], margin = margin, None  # a schedule, in the learner's units
    algorithm.require_constraints(len(thresholds_of(given["thresholds"])))
    require_baseline(algorithm, given)
    if not algorithm.replans:
        for name in ("baseline", "asks"):
            needed = name == "baseline" and algorithm.needs_baseline
            if given[name] is not None and given[name] is not False and not needed:
                said = "approve" if name == "asks" else name
                raise ParameterError(
                    f"{said} was given, but {algorithm.name} changes its policy in every episode; "
                    "use an algorithm that keeps it for stretches, such as 'replanning'."
                )
    said_by_user = {name: one for name, one in parameters.items() if one is not None}
    usual = algorithm.live if given["baseline"] is None else algorithm.live_safe
    chosen = algorithm.choose(dict(usual) | said_by_user, FOREVER, known)
    own = registered(algorithm.name) is not algorithm
    described = algorithm.describe(chosen)
    return _declared(
        algorithm.name, own, described, **given, margin=margin, adapts=algorithm.replans
    )


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
    state_names: Any,
    action_names: Any,
    unit_names: Any,
    margin: Any,
    baseline: Any,
    confidence: Any,
    asks: bool,
    baseline_values: Any,
    units: Units | None = None,
    adapts: bool = False,
) -> Declaration:
    limits = thresholds_of(thresholds)
    sizes = _sizes(len(limits), horizon, num_states, num_actions)
    stationary = require_flag("stationary", stationary)
    profile = _profile(optimism, rewards, constraint_rewards, sizes)
    chosen_names = constraint_names_of(names, len(limits))
    words = make_words(
        (sizes.num_states, sizes.num_actions, len(limits)),
        state_names=state_names,
        action_names=action_names,
        constraint_names=chosen_names,
        objective_name=None if "reward" in chosen_names else "reward",
        units=unit_names,
    )
    stand_in = stand_in_of(sizes, words, limits, initial, rewards, constraint_rewards, available)
    known = profile.rewards == "known"
    if units is None:
        told = [stand_in.rewards, *stand_in.constraint_rewards] if known else None
        units = declare_units(
            reward_range,
            constraint_ranges,
            senses,
            stand_in.thresholds,
            sizes.horizon,
            known=told,
            adapts=adapts,
        )
    units.require_reachable(stand_in.thresholds, chosen_names, sizes.horizon)
    if known:
        require_in_range(stand_in, units)
    margins = margins_of(margin, units, stand_in.thresholds, words, sizes.horizon)
    reached = baseline_values_of(baseline_values, units, stand_in.thresholds, margins, words)
    given = parameters.get("margin")
    if not isinstance(given, str | bool | None):  # words and flags of one's own are something else
        scheduled = Parameter(name="margin", kind="schedule").restore(given, 1)
        require_margin(scheduled, units, stand_in.thresholds, sizes.horizon)
    flags = stand_in.available
    lists = None if successors is None else listed_successors(successors, flags, sizes, stationary)
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
        words,
        margins,
        baseline_of(baseline, sizes, words, flags),
        confidence_of(confidence, baseline if reached is None else None),
        require_flag("asks", asks),
        reached,
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


def _seed(given: Any) -> int:
    seed = whole_number(given)
    if seed is None or not 0 <= seed < 2**32:
        raise ParameterError(
            f"seed is {shown(given)}, it must be a whole number from 0 to 2^32 - 1."
        )
    return seed
