"""How sure the values of a policy are, when all that is known is a log: `uncertainty`."""

from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import check_choice, require_count, require_positive, require_share
from cmdpax.data.evidence import Evidence, gather
from cmdpax.data.posterior import Draws, learn_posterior
from cmdpax.data.robust import Bounds, robust_bounds
from cmdpax.errors import ParameterError, shown
from cmdpax.jax_context import in_double_precision
from cmdpax.model.cmdp import CMDP
from cmdpax.model.empirical import make_model, seen_frequencies
from cmdpax.model.evaluation import evaluate
from cmdpax.model.log import Log
from cmdpax.model.policy import Policy
from cmdpax.model.validation import validate_policy
from cmdpax.model.words import Words

METHODS = ("posterior", "robust")
LEVELS = (0.999, 0.99, 0.975, 0.95, 0.9, 0.8, 0.5)
"""The confidences at which the robust bound is tried."""
_NEVER = 1e-9  # a chance of reaching a pair that is no chance


class Probability(NamedTuple):
    """How probable it is that constraints are met.

    Attributes:
        joint: all of them at once.
        each: one by one, `[I]`.
    """

    joint: float
    each: np.ndarray


class Uncertainty(NamedTuple):
    """What a log leaves open about a policy's values in the true model.

    Attributes:
        value: the low and the high end of the interval for V_r^π, `[2]`.
        constraint_values: the same for each V_{u_i}^π, `[I, 2]`, in the senses of the constraints.
        probability_met: that of all constraints, and of each. The robust bound has no
            probabilities: it gives the highest of the levels 0.999, 0.99, 0.975, 0.95, 0.9, 0.8,
            0.5 and `confidence` at which it still shows that the constraints are met, and 0 if it
            never does.
        expected: the posterior means of the values, `[1 + I]`; for the robust bound, the middles of
            the intervals.
        thresholds: what the constraints must reach, or not exceed, `[I]`.
        confidence: the confidence of the intervals.
        method: "posterior" or "robust".
        draws: the values in the models that were drawn, `[samples, 1 + I]`; None for the robust
            bound.
        words: names, units and senses.
    """

    value: np.ndarray
    constraint_values: np.ndarray
    probability_met: Probability
    expected: np.ndarray
    thresholds: np.ndarray
    confidence: float
    method: str
    draws: np.ndarray | None
    words: Words

    def __str__(self) -> str:
        """A line for the objective, for each constraint, and for all of them."""
        words, percent = self.words, f"{100 * self.confidence:.4g} %"
        low, high = self.value
        lines = [
            f"{words.label()}: {self.expected[0]:.4g}, {percent} interval {low:.4g} to {high:.4g}"
        ]
        kind = "probability" if self.method == "posterior" else "confidence"
        for index, (low, high) in enumerate(self.constraint_values):
            bound = words.amount(self.thresholds[index], 1 + index)
            lines.append(
                f"{words.label(1 + index)}: {self.expected[1 + index]:.4g}, {percent} interval "
                f"{low:.4g} to {high:.4g}; {words.sense(index)} {bound} with {kind} "
                f"{self.probability_met.each[index]:.3g}"
            )
        if len(self.thresholds) > 1:
            lines.append(f"all constraints are met with {kind} {self.probability_met.joint:.3g}")
        return "\n".join(lines)


@in_double_precision
def uncertainty(
    log: Log,
    policy: Any,
    *,
    thresholds: Any = None,
    limits: Any = None,
    senses: Any = None,
    confidence: float = 0.95,
    method: str = "posterior",
    stationary: bool = False,
    initial: Any = None,
    reward_range: Any = None,
    constraint_ranges: Any = None,
    num_states: int | None = None,
    num_actions: int | None = None,
    available: Any = None,
    prior_weight: float | None = None,
    samples: int = 2000,
    seed: int = 0,
    **words: Any,
) -> Uncertainty:
    """The values that a policy may have in the true model, as far as a log tells.

    "posterior" draws models from a Bayesian posterior and evaluates the policy in each of them
    (`cmdpax.data.posterior` has the priors). It is meant for a policy that was chosen without the
    log: a plan that was made from the same data looks better in them than it is, so plan with one
    part of `log.split()` and judge with the other, or let `cmdpax.solve_safely` correct for it.

    "robust" needs no prior: with at least the given confidence all of its intervals hold at once,
    for every policy, whether or not it was chosen with the log, and also for logs of a learner
    (`cmdpax.data.robust`). It is much wider, and needs declared ranges.

    Args:
        log: the episodes, as for `cmdpax.estimate`.
        policy: π_h(a | s), `[H, S, A]`, or `[1, S, A]` for a stationary one.
        thresholds: `[I]`, or a number: what constraint rewards must reach, in their senses.
        limits: in place of thresholds, if all constraints are costs: what they may reach at most.
        senses: "at least" or "at most", for all constraints or for each; with `thresholds`.
        confidence: that of each interval ("posterior"), or of all at once ("robust").
        method: "posterior" or "robust".
        stationary: whether all steps share one model; their counts are then added up.
        initial: a state, its name, or a distribution `[S]`; None learns it from the log.
        reward_range: the least and the largest reward of a step. Needed by "robust", and where the
            policy reaches a pair of a state and an action that the log never visited.
        constraint_ranges: the same for constraints: one pair for all, or one for each.
        num_states: S; None takes the names, or the size of the policy.
        num_actions: A, likewise.
        available: which actions there are, `[S, A]` or `[H, S, A]`; None: all of them.
        prior_weight: how many observations the prior of a row of transitions is worth; None lets
            the log suggest it.
        samples: how many models are drawn.
        seed: the seed of the draws.
        words: names and units, as for `cmdpax.CMDP`; by default those of the log.

    Raises:
        ModelError: the arrays are not a log, or the policy is none of these sizes.
        ParameterError: a range is missing, or arguments do not go together.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("random")
        >>> log = cmdpax.learn(cmdp, num_episodes=500, log=True).log
        >>> found = cmdpax.uncertainty(
        ...     log, cmdpax.solve(cmdp).policy, thresholds=cmdp.thresholds, initial=0,
        ...     reward_range=(0, 1), constraint_ranges=(0, 1),
        ... )
        >>> found.value.shape, found.constraint_values.shape
        ((2,), (1, 2))
    """
    check_choice("method", method, METHODS)
    confidence = require_share("confidence", confidence)
    samples, seed = require_count("samples", samples, 100), require_count("seed", seed, 0)
    if prior_weight is not None:
        prior_weight = require_positive("prior_weight", prior_weight)
    evidence = gather(
        "uncertainty",
        log,
        thresholds=thresholds,
        limits=limits,
        senses=senses,
        stationary=stationary,
        initial=initial,
        reward_range=reward_range,
        constraint_ranges=constraint_ranges,
        num_states=_size(policy, 1, num_states, log, words),
        num_actions=_size(policy, 2, num_actions, log, words),
        available=available,
        words=words,
    )
    seen = seen_model(evidence)
    checked = validate_policy(seen, in_order_of(evidence.words, policy))
    if method == "robust":
        _require_ranges(evidence)
        return _from_bounds(evidence, checked, confidence)
    require_visits(evidence, seen, checked)
    draws = Draws(learn_posterior(evidence, prior_weight), samples, seed)
    return from_draws(evidence, draws.values(checked), confidence)


def _size(policy: Any, axis: int, given: int | None, log: Any, words: dict[str, Any]) -> int | None:
    """S or A: as given, as many as names, or those of the policy."""
    kind = ("", "state_names", "action_names")[axis]
    named = words.get(kind) is not None or getattr(getattr(log, "words", None), kind, None)
    try:
        shape = np.shape(policy)
    except ValueError:  # lists of various lengths
        shape = ()
    return shape[axis] if given is None and not named and len(shape) == 3 else given


def in_order_of(words: Words, policy: Any) -> Any:
    """The policy with its states and actions in the order of the log's names."""
    if not isinstance(policy, Policy):
        if hasattr(policy, "policy"):  # of `solve`, or of `solve_safely`
            raise ParameterError(
                f"the policy is a {type(policy).__name__}, which has one; give its .policy."
            )
        return policy
    array = np.asarray(policy)
    for axis, kind in ((1, "state"), (2, "action")):
        theirs, ours = getattr(policy.words, f"{kind}_names"), getattr(words, f"{kind}_names")
        if theirs is None or ours is None or theirs == ours:
            continue
        if set(theirs) != set(ours):
            other = next(iter(sorted(set(theirs) ^ set(ours))))
            owner = "policy" if other in theirs else "log"
            raise ParameterError(
                f"only the {owner} has the {kind} {shown(other)}; read the log with "
                f"{kind}_names=policy.words.{kind}_names."
            )
        array = np.take(array, [theirs.index(name) for name in ours], axis=axis)
    return array


def seen_model(evidence: Evidence) -> CMDP:
    """The frequencies of a log; a pair without a visit stays where it is, and earns nothing."""
    found = evidence.found
    signals = np.zeros((1 + found.num_constraints, *found.shape))
    transitions = seen_frequencies(found)
    return make_model(
        found, transitions, signals, evidence.bounds, evidence.senses, evidence.initial
    )


def require_visits(evidence: Evidence, seen: CMDP, policy: np.ndarray) -> None:
    """Refuse a policy that reaches what was never visited, where no range is declared."""
    undeclared = np.isnan(evidence.ranges).any(axis=1)
    if not undeclared.any():
        return
    steps = evidence.found.shape[0]
    reached = evaluate(seen, policy).occupancy
    chances = reached.max(axis=0, keepdims=True) if steps == 1 else reached
    blind = (chances.ravel() > _NEVER) & (evidence.found.visits() == 0)
    if blind.any():
        row = int(np.argmax(np.where(blind, chances.ravel(), 0)))
        missing = "constraint_ranges=" if undeclared[1:].any() else ""
        if undeclared[0]:
            missing = f"reward_range= and {missing}" if missing else "reward_range="
        raise ParameterError(
            f"the policy plays {evidence.place(row)}, which it reaches in "
            f"{100 * chances.ravel()[row]:.3g} % of the episodes and the log never visits; declare "
            f"{missing}, the least and the largest value of a step, or log that pair."
        )


def from_draws(evidence: Evidence, draws: np.ndarray, confidence: float) -> Uncertainty:
    """Intervals and probabilities of values in drawn models, `[samples, 1 + I]`."""
    tail = (1 - confidence) / 2
    ends = np.quantile(draws, [tail, 1 - tail], axis=0).T
    met = evidence.signs * (draws[:, 1:] - evidence.bounds) >= -rounding_of(evidence)
    return Uncertainty(
        ends[0],
        ends[1:],
        Probability(float(met.all(axis=1).mean()), met.mean(axis=0)),
        draws.mean(axis=0),
        evidence.bounds,
        confidence,
        "posterior",
        draws,
        evidence.words,
    )


def rounding_of(evidence: Evidence) -> np.ndarray:
    """How far a value may miss its bound by rounding alone, `[I]`."""
    signals = evidence.found.signals[1:]
    largest = evidence.found.horizon * np.abs(signals).max(axis=1, initial=0.0)
    return np.asarray(1e-9 * np.ptp(signals, axis=1) + 1e-13 * largest)


def _require_ranges(evidence: Evidence) -> None:
    undeclared = np.isnan(evidence.ranges).any(axis=1)
    if undeclared.any():
        name = "reward_range" if undeclared[0] else "constraint_ranges"
        raise ParameterError(
            f"{name} is not declared, but the robust bound needs the least and the largest value "
            f'of a step: without them a mean may be anything; give {name}=, or method="posterior".'
        )


def _from_bounds(evidence: Evidence, policy: np.ndarray, confidence: float) -> Uncertainty:
    """The robust intervals, and the highest level at which they show that constraints are met."""
    bounds = robust_bounds(evidence, policy, confidence)
    each, joint = np.zeros(len(evidence.bounds)), 0.0
    if not len(each):
        joint = 1.0
    for level in sorted({*LEVELS, confidence}, reverse=True):
        if joint > 0:
            break
        at = bounds if level == confidence else robust_bounds(evidence, policy, level)
        met = _met(evidence, at)
        each = np.where((each == 0) & met, level, each)
        joint = level if met.all() else 0.0
    ends = np.stack([bounds.low, bounds.high], axis=1)
    return Uncertainty(
        ends[0],
        ends[1:],
        Probability(joint, each),
        ends.mean(axis=1),
        evidence.bounds,
        confidence,
        "robust",
        None,
        evidence.words,
    )


def _met(evidence: Evidence, bounds: Bounds) -> np.ndarray:
    """Whether the worse end of each constraint's interval meets its bound, `[I]`."""
    worse = np.where(evidence.signs > 0, bounds.low[1:], bounds.high[1:])
    return np.asarray(evidence.signs * (worse - evidence.bounds) >= -rounding_of(evidence))
