"""A policy that meets its constraints with a given probability, from a log: `solve_safely`."""

from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import require_count, require_positive, require_share
from cmdpax.data.advice import Advice, advise
from cmdpax.data.evidence import gather
from cmdpax.data.planning import Cut, cut_at, mean_model, optimism_of_plans, plan, with_cuts
from cmdpax.data.posterior import Draws, Posterior, learn_posterior
from cmdpax.data.uncertainty import Uncertainty, from_draws, rounding_of
from cmdpax.errors import InsufficientDataError
from cmdpax.jax_context import in_double_precision
from cmdpax.model.cmdp import CMDP
from cmdpax.model.log import Log
from cmdpax.model.policy import Policy

_SEARCH_DRAWS = 500
_ROUNDS = 12
_BOOTSTRAPS = 48
_CLOSE = 0.05  # standard deviations: a margin this near to the smallest is kept
_CAUTION = 0.8  # exponent of a change of z: cuts that are still to come make plans safer
_MOST_OPTIMISM = 8.0  # standard deviations
_CORRECTIONS = 3  # of β, until plans promise no more than was corrected
_TRIES = 2  # of certifying with fresh draws


class SafePlan(NamedTuple):
    """A policy with what a log says about its safety.

    Attributes:
        policy: π_h(a | s), which prints as a table.
        uncertainty: its values in models drawn afresh, after the correction.
        margins: how far the expected value of each constraint is on the right side of its bound,
            `[I]`, in the user's units.
        correction: by how much the constraint values of `uncertainty` were moved to the wrong side,
            since the plan was made from the data that judge it, `[I]`.
        confidence: the joint probability that was asked for.
        model: the expected model, with the names of the log. Actions that the plan avoids since
            they were hardly tried are not available in it.
        certified: whether that probability was reached with fresh draws.
    """

    policy: Policy
    uncertainty: Uncertainty
    margins: np.ndarray
    correction: np.ndarray
    confidence: float
    model: CMDP
    certified: bool

    @property
    def value(self) -> float:
        """The expected value of the objective."""
        return float(self.uncertainty.expected[0])

    @property
    def constraint_values(self) -> np.ndarray:
        """The expected values of the constraints, `[I]`, after the correction."""
        return self.uncertainty.expected[1:]

    @property
    def probability_met(self) -> float:
        """The probability of meeting all constraints."""
        return self.uncertainty.probability_met.joint

    def __str__(self) -> str:
        """What is promised, and with which probability."""
        asked, reached = f"{100 * self.confidence:.4g} %", f"{100 * self.probability_met:.4g} %"
        verdict = f"all constraints are met with probability {reached} (asked for: {asked})"
        if not self.certified:
            verdict = f"not certified: {verdict}"
        words, lines = self.uncertainty.words, [verdict]
        low, high = self.uncertainty.value
        lines.append(f"{words.label()}: {self.value:.4g} expected, {low:.4g} to {high:.4g}")
        for index, margin in enumerate(self.margins):
            bound = words.amount(self.uncertainty.thresholds[index], 1 + index)
            lines.append(
                f"{words.label(1 + index)}: {self.constraint_values[index]:.4g} expected, "
                f"{words.sense(index)} {bound}, margin {words.amount(margin, 1 + index, 3)}"
            )
        return "\n".join(lines)


@in_double_precision
def solve_safely(
    log: Log,
    *,
    thresholds: Any = None,
    limits: Any = None,
    senses: Any = None,
    confidence: float = 0.95,
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
) -> SafePlan:
    """The best policy that meets every constraint of the unknown model with a joint probability.

    Plans that a log suggests are about as often unsafe as safe, since constraints bind at an
    optimum. So this plans with margins: `z` posterior standard deviations of each constraint's
    value, as they depend on the policy (`cmdpax.data.planning`), with the smallest `z` for which
    the policy meets all constraints in a share `confidence` of the models drawn from the posterior.
    A plan looks better in the data from which it was made than it is; a bootstrap says by how many
    of these deviations, and the margins grow by as much (`correction`). In the end fresh draws
    certify the plan. Pairs of states and actions that the log never visits are not played where
    another one was.

    Args:
        log: the episodes, as for `cmdpax.estimate`; of any behaviour, the more varied the better.
        thresholds: `[I]`, or a number: what constraint rewards must reach, in their senses.
        limits: in place of thresholds, if all constraints are costs: what they may reach at most.
        senses: "at least" or "at most", for all constraints or for each; with `thresholds`.
        confidence: the joint probability of meeting all constraints.
        stationary: whether all steps share one model; their counts are then added up.
        initial: a state, its name, or a distribution `[S]`; None learns it from the log.
        reward_range: the least and the largest reward of a step; None takes those of the log.
        constraint_ranges: the same for constraints: one pair for all, or one for each.
        num_states: S; None takes the names, or the largest state of the log.
        num_actions: A, likewise.
        available: which actions there are, `[S, A]` or `[H, S, A]`; None: all of them.
        prior_weight: how many observations the prior of a row of transitions is worth; None lets
            the log suggest it.
        samples: how many models certify the plan.
        seed: the seed of all draws.
        words: names and units, as for `cmdpax.CMDP`; by default those of the log.

    Raises:
        InsufficientDataError: no policy that was found is safe with that probability; it says which
            data would help, and has the policy that came nearest.
        ModelError: the arrays are not a log.
        ParameterError: arguments do not go together.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("streaming")
        >>> log = cmdpax.learn(cmdp, num_episodes=1000, log=True).log.run(0)
        >>> plan = cmdpax.solve_safely(log, limits=5.0, stationary=True, num_states=10)
        >>> plan.certified, plan.probability_met >= 0.95
        (True, True)
        >>> bool(cmdpax.evaluate(cmdp, plan.policy).constraint_values[0] <= 5.0)
        True
    """
    confidence = require_share("confidence", confidence)
    samples, seed = require_count("samples", samples, 100), require_count("seed", seed, 0)
    if prior_weight is not None:
        prior_weight = require_positive("prior_weight", prior_weight)
    evidence = gather(
        "solve_safely",
        log,
        thresholds=thresholds,
        limits=limits,
        senses=senses,
        stationary=stationary,
        initial=initial,
        reward_range=reward_range,
        constraint_ranges=constraint_ranges,
        num_states=num_states,
        num_actions=num_actions,
        available=available,
        words=words,
    )
    posterior = learn_posterior(evidence, prior_weight)
    return _Search(posterior, confidence, samples, seed).run()


class _Made(NamedTuple):
    """A policy, and how it was planned.

    Attributes:
        policy: `[H, S, A]`.
        optimum: whether it is the best for its margins, not only the safest.
        weight: z.
        weights: z + β, `[I]`.
        cuts: those that it respects.
    """

    policy: np.ndarray
    optimum: bool
    weight: float
    weights: np.ndarray
    cuts: tuple[Cut, ...]


class _Candidate(NamedTuple):
    """A policy that was tried.

    Attributes:
        made: the policy.
        cut: what it taught.
        deviations: the standard deviations of the constraints in the drawn models, `[I]`.
        value: the expected objective.
        probability: the share of the draws in which all constraints are met, after the correction.
        missing: by how many standard deviations the margins are too small; negative if too large.
    """

    made: _Made
    cut: Cut
    deviations: np.ndarray
    value: float
    probability: float
    missing: float


class _Search:
    """Looks for the smallest margins that are enough."""

    def __init__(self, posterior: Posterior, confidence: float, samples: int, seed: int) -> None:
        self._posterior, self._evidence = posterior, posterior.evidence
        self._confidence, self._samples, self._seed = confidence, samples, seed
        self._draws = Draws(posterior, _SEARCH_DRAWS, seed, "merge states that are alike")
        self._model = mean_model(posterior)
        self._cuts: list[Cut] = []
        self._optimism = np.zeros(len(self._evidence.bounds))  # β

    def run(self) -> SafePlan:
        """The plan, certified, or an error that says what is missing."""
        # Half of what may fail, since posteriors of few data and many actions are less than right.
        target = (1 + self._confidence) / 2
        nearest: _Candidate | None = None
        for attempt in range(_TRIES):
            found, nearest = self._look(target, nearest)
            chosen = found or nearest
            plan = self._certify(chosen, attempt)
            if plan.certified:
                return plan
            if found is None and nearest.probability < self._confidence:
                break
            target = max(target, min((target + 1) / 2, 1 - 1 / _SEARCH_DRAWS))
        raise self._refuse(chosen, plan)

    def _look(
        self, target: float, nearest: _Candidate | None
    ) -> tuple[_Candidate | None, _Candidate]:
        """`_find`, until plans with such margins promise no more than what is corrected."""
        found, nearest = self._find(target, nearest)
        for _ in range(_CORRECTIONS):
            if found is None or not found.made.cuts:  # the first plan is corrected already
                break
            again = self._correct(found, target)
            if again.probability >= target:
                return again, again
            found, nearest = self._find(target, again, again.made.weight)
        return found, nearest

    def _find(
        self, target: float, nearest: _Candidate | None, start: float = 0.0
    ) -> tuple[_Candidate | None, _Candidate]:
        """The best candidate that reaches the target, and the one that came nearest to it."""
        best: _Candidate | None = None
        weight, wanted = start, max(_quantile(target), 0.5)
        low, high = 0.0, np.inf  # margins that were too small, and margins that no policy keeps
        for _ in range(_ROUNDS):
            tried = self._try(weight, target)
            if not self._cuts and len(self._evidence.bounds):
                tried = self._correct(tried, target)
            if nearest is None or tried.probability > nearest.probability:
                nearest = tried
            if tried.probability >= target:
                best = tried if best is None or tried.value > best.value else best
                if tried.missing > -_CLOSE or weight == 0:
                    break
            self._cuts.append(tried.cut)
            if tried.made.optimum:
                low = weight if tried.missing > 0 else low
                following = _next_weight(
                    weight, tried, wanted, float(self._optimism.max(initial=0))
                )
                weight = following if following < high else (low + high) / 2
            else:
                low, high = min(low, 0.9 * weight), min(high, weight)
                weight = (low + high) / 2
            if high - low < _CLOSE:
                break
        assert nearest is not None
        return best, nearest

    def _try(self, weight: float, target: float) -> _Candidate:
        """Plan with margins of so many standard deviations, and judge the plan."""
        weights = weight + self._optimism if weight else 0 * self._optimism
        policy, optimum = plan(with_cuts(self._model, self._cuts, weights))
        return self._judge(_Made(policy, optimum, weight, weights, tuple(self._cuts)), target)

    def _judge(self, made: _Made, target: float) -> _Candidate:
        evidence = self._evidence
        values = self._draws.values(made.policy)
        slack = evidence.signs * (values[:, 1:] - evidence.bounds)
        deviations = np.maximum(slack.std(axis=0), np.finfo(float).tiny)
        slack = slack - self._optimism * deviations
        met = (slack >= -rounding_of(evidence)).all(axis=1)
        worst = np.sort((slack / deviations).min(axis=1, initial=np.inf))
        missing = -float(worst[max(int(np.floor((1 - target) * len(worst))) - 1, 0)])
        return _Candidate(
            made,
            cut_at(self._model, made.policy, self._posterior),
            deviations,
            float(values[:, 0].mean()),
            float(met.mean()),
            missing,
        )

    def _correct(self, tried: _Candidate, target: float) -> _Candidate:
        """Find out by how many deviations such plans promise too much, and judge this one again."""
        first = not tried.made.cuts
        missing = np.full(len(self._optimism), max(tried.missing, 0.0))
        excess = optimism_of_plans(
            self._model,
            self._posterior,
            [tried.cut] if first else list(tried.made.cuts),
            missing if first else tried.made.weights,
            count=_BOOTSTRAPS,
            seed=self._seed,
        )
        found = np.minimum(excess / tried.deviations, _MOST_OPTIMISM)
        if not first:  # where margins are large the bootstrap is too cautious
            found = (self._optimism + found) / 2
        self._optimism = np.maximum(self._optimism, found)
        return self._judge(tried.made, target)

    def _certify(self, found: _Candidate, attempt: int) -> SafePlan:
        """The plan with what fresh draws say about it."""
        evidence = self._evidence
        fresh = Draws(self._posterior, self._samples, self._seed + 1 + attempt)
        values = fresh.values(found.made.policy)
        correction = self._optimism * values[:, 1:].std(axis=0)
        values[:, 1:] -= evidence.signs * correction
        sure = from_draws(evidence, values, self._confidence)
        return SafePlan(
            Policy(found.made.policy, self._model),
            sure,
            evidence.signs * (sure.expected[1:] - evidence.bounds),
            correction,
            self._confidence,
            self._model,
            sure.probability_met.joint >= self._confidence,
        )

    def _refuse(self, nearest: _Candidate, plan: SafePlan) -> InsufficientDataError:
        count = int(self._evidence.found.first.sum())
        advice: Advice = advise(
            self._evidence,
            nearest.cut,
            plan.margins + plan.correction,
            plan.correction,
            _quantile(self._confidence),
            count,
        )
        return InsufficientDataError(plan.probability_met, self._confidence, plan, advice)


def _next_weight(weight: float, tried: _Candidate, wanted: float, optimism: float) -> float:
    """z of the next plan: in proportion to the margins that the last one had."""
    if weight == 0:
        return max(tried.missing - optimism, 0.1)
    had = max(wanted - tried.missing, 0.1 * wanted)  # standard deviations
    return weight * float(np.clip(wanted / had, 0.5, 2.0)) ** _CAUTION


def _quantile(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(confidence))
