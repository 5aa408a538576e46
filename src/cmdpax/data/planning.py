"""Planning with margins for what a log leaves open.

With d the occupancy of a policy and σ²(s, a) the posterior variance of Q_u(s, a) that comes from
the row and the signal of one pair, the value V_u has about the standard deviation

    σ(d) = (Σ_{h,s,a} d_h(s, a)² σ_h²(s, a))^½,        σ²(s, a) = Var_p̄(V_u) / (α + n + 1) + Var(ū),

where pairs that the steps share are added up before they are squared. A plan must keep

    V_u(d) - (z + β) σ(d) ≥ c,

with z and β as `safely` finds them. σ is convex and homogeneous, so that σ(d) ≥ ⟨g_k, d⟩ for its
gradient g_k at any plan d_k, with equality at d_k: each plan that was made adds a *cut*,

    ⟨d, u - (z + β) g_k⟩ ≥ c,

which is a constraint like any other (σ_h is that of the plan d_k). Pairs that were hardly visited
are not planned with where another action was tried more often: a planner would find those among
them that were lucky.
"""

from typing import NamedTuple

import numpy as np

from cmdpax.data.posterior import Posterior
from cmdpax.model.cmdp import CMDP
from cmdpax.model.empirical import make_model
from cmdpax.model.evaluation import evaluate
from cmdpax.planning.many import best_or_nearest

_MOST_CUTS = 8  # the latest ones: programs with few constraints are solved fast
_ENOUGH = 10  # visits of a pair that may always be planned with
_TIES = 3.0**0.5  # see `optimism_of_plans`
_SHARE = 0.25  # of the visits of the most tried action, which will do where that is less


class Cut(NamedTuple):
    """What a plan taught about the uncertainty of the constraints.

    Attributes:
        gradients: g of each constraint, `[I, H, S, A]`.
        deviations: σ(d) of each constraint at the plan, `[I]`.
        shares: what each row contributes to σ², `[I, rows]`; they sum to 1.
    """

    gradients: np.ndarray
    deviations: np.ndarray
    shares: np.ndarray


def mean_model(posterior: Posterior) -> CMDP:
    """The expected model; what was hardly tried is avoided, what never was earns the worst."""
    evidence = posterior.evidence
    signals = posterior.mean_signals()
    visits = posterior.visits.reshape(evidence.found.shape)
    unseen = visits == 0
    for index, signal in enumerate(signals):
        cost = index > 0 and evidence.senses[index - 1] == "at most"
        known = posterior.signals[index]
        signal[unseen] = known.high if cost else known.low
    flags = evidence.found.available
    there = np.ones_like(unseen) if flags is None else flags
    least = np.minimum(_SHARE * visits.max(axis=-1, keepdims=True), _ENOUGH)
    tried = there & ~unseen & (visits >= least)
    found = evidence.found._replace(available=np.where(tried.any(-1, keepdims=True), tried, there))
    transitions, start = posterior.mean_transitions(), posterior.mean_start
    return make_model(found, transitions, signals, evidence.bounds, evidence.senses, start)


def with_cuts(model: CMDP, cuts: list[Cut], weights: np.ndarray) -> CMDP:
    """The model whose constraints keep z + β deviations, `[I]`, from their bounds."""
    count = model.num_constraints
    if not cuts or not weights.any():
        return model
    if len(cuts) > 1:  # always as many, since each number would be another program to compile
        cuts = (cuts[-_MOST_CUTS:] + cuts[-1:] * _MOST_CUTS)[:_MOST_CUTS]
    weights = (weights * np.broadcast_to(model.words.signs, count))[:, None, None, None]
    senses = [model.words.sense(i) for i in range(count)]
    moved = [model.signals - weights * cut.gradients for cut in cuts]
    return CMDP(
        model.transitions,
        model.rewards,
        np.concatenate(moved),
        np.tile(model.bounds, len(cuts)),
        model.initial,
        model.horizon,
        available=model.available,
        senses=senses * len(cuts),
    )


def plan(model: CMDP) -> tuple[np.ndarray, bool]:
    """The best policy, `[H, S, A]`, and True; or that with the largest worst slack, and False."""
    found = best_or_nearest(model)
    return np.asarray(found.policy), found.feasible


def cut_at(model: CMDP, policy: np.ndarray, posterior: Posterior) -> Cut:
    """The cut of a policy."""
    shape = posterior.evidence.found.shape
    steps, size = shape[0], shape[1] * shape[2]
    occupancy = evaluate(model, policy).occupancy
    weights = posterior.transitions.sizes().reshape(shape)
    gradients, totals, shares = [], [], []
    for index, signal in enumerate(model.signals):
        variances = posterior.signals[1 + index].variances().reshape(shape)
        spread = _deviations(model, policy, signal, variances, weights)
        used = occupancy * spread  # d σ, [H, S, A]
        pooled = used.sum(axis=0, keepdims=True) if steps == 1 else used
        total = float(np.sqrt((pooled**2).sum()))
        gradients.append(pooled * spread / max(total, np.finfo(float).tiny))
        totals.append(total)
        shares.append(pooled.reshape(steps * size) ** 2 / max(total**2, np.finfo(float).tiny))
    empty = np.zeros((0, *policy.shape))
    return Cut(
        np.stack(gradients) if gradients else empty,
        np.array(totals),
        np.array(shares).reshape(len(totals), steps * size),
    )


def _deviations(
    model: CMDP,
    policy: np.ndarray,
    signal: np.ndarray,
    variances: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """σ_h(s, a), `[H, S, A]`: what a pair's own row leaves open, where it is visited once."""
    values = np.zeros(model.num_states)
    spread = np.zeros(policy.shape)
    for step in reversed(range(model.horizon)):
        at = step % len(model.transitions)
        rows = model.transitions[at]
        means = rows @ values
        second = np.maximum(rows @ values**2 - means**2, 0.0)
        spread[step] = np.sqrt(second / (weights[at] + 1) + variances[at])
        values = (policy[step] * (signal[step % len(signal)] + means)).sum(axis=1)
    return spread


def optimism_of_plans(
    model: CMDP,
    posterior: Posterior,
    cuts: list[Cut],
    weights: np.ndarray,
    *,
    count: int,
    seed: int,
) -> np.ndarray:
    """By how much plans promise too much because they were made from the same data, `[I]`.

    A parametric bootstrap: draw a model from the posterior, draw from it data of the same numbers
    of visits, plan with the frequencies of these, and compare what the plan promises with what it
    achieves in the model. Frequencies, and not posterior means: a posterior whose prior is right
    promises nothing too much, and the bootstrap would take its prior to be right.

    Where many plans are equally good in truth, noise decides between them. In the bootstrap it does
    so three times (in the log, in the model drawn, in the new data), but only the last part is an
    excess, which is then 1/√3 of the real one. Hence the factor √3; elsewhere it is cautious.
    """
    evidence = posterior.evidence
    signs = evidence.signs
    excess = []
    for index in range(count):
        truth, seen = _twins(model, posterior, np.random.default_rng([seed, 1, index]))
        policy, _ = plan(with_cuts(seen, cuts, weights))
        promised = evaluate(seen, policy).constraint_values
        excess.append(signs * (promised - evaluate(truth, policy).constraint_values))
    # Rare models in which everything is otherwise are among the draws that judge a plan; a mean
    # over all would count them twice.
    ordered = np.sort(excess, axis=0)
    middle = ordered[count // 4 : count - count // 4]
    error = (ordered[-count // 4] - ordered[count // 4]) / 1.35 / np.sqrt(count)
    return np.asarray(_TIES * np.maximum(middle.mean(axis=0) + error, 0.0))


def _twins(model: CMDP, posterior: Posterior, rng: np.random.Generator) -> tuple[CMDP, CMDP]:
    """A model from the posterior, and what data of the same size would say about it."""
    found = posterior.evidence.found
    known_rows = posterior.transitions
    count = len(known_rows.counts)
    mixing = np.tile(known_rows.draw_mixing(1, rng), (count, 1))
    rows = known_rows.draw(np.arange(count), mixing, rng)
    sizes = posterior.transitions.counts.sum(axis=1).astype(int)
    counts = rng.multinomial(sizes, rows)
    again = np.where(sizes[:, None] > 0, counts / np.maximum(sizes, 1)[:, None], rows)
    true_signals, seen_signals = [], []
    known = np.concatenate([model.rewards[None], model.signals])
    for signal, expected in zip(posterior.signals, known.reshape(len(known), -1), strict=True):
        noise = np.where(posterior.visits > 0, np.sqrt(signal.variances()), 0.0)
        truth = expected + noise * rng.standard_normal(len(noise))
        true_signals.append(np.clip(truth, signal.low, signal.high))
        seen = true_signals[-1] + noise * rng.standard_normal(len(noise))
        seen_signals.append(np.clip(seen, signal.low, signal.high))
    shape = found.shape
    models = []
    for transitions, signals in ((rows, true_signals), (again, seen_signals)):
        arrays = np.reshape(signals, (-1, *shape))
        models.append(
            model.replace(
                transitions=transitions.reshape(*shape, -1),
                rewards=arrays[0],
                constraint_rewards=arrays[1:],
            )
        )
    return models[0], models[1]
