"""Check the statements on learning: many seeds, the theory's bonuses."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.jax_context import cast
from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner, learner_key
from cmdpax.learners.contract import make_checked
from cmdpax.learners.optimism import Bonuses, Optimism
from cmdpax.learners.statistics import Knowledge
from cmdpax.learning.history import growth_exponent
from cmdpax.learning.loop import knowledge_of
from cmdpax.paper.audit.episodes import play_episode
from cmdpax.paper.audit.learning import (
    ALWAYS,
    ON_EVENT,
    rewards_near,
    transitions_near,
    visits_enough,
)
from cmdpax.paper.audit.planning import reason_against
from cmdpax.paper.audit.problem import Problem, applies, unmet
from cmdpax.paper.audit.statement import (
    Row,
    Statement,
    Verdict,
    Worst,
    compare,
    dismissed,
    judge,
    nothing_yet,
    worse,
)
from cmdpax.schemes.hyperparameters import Hyperparameters

_LEVELS = (0.01, 0.1)
_SIGNIFICANCE = 0.05  # below it, failures are not due to chance
_NO_EVENT = "the success event happened in no run"


def online_rows(
    problem: Problem,
    num_episodes: int,
    seeds: int,
    optimism: Optimism,
    algorithm: Algorithm,
) -> list[Row]:
    """Check the statements on learning; where rewards leave [0, 1] a row says only that."""
    missing = unmet(problem, ("unit rewards",))
    if missing:
        nothing = (math.nan, math.nan, math.nan)
        return [
            Row("online statements", "Section 5", "", *nothing, "premise not met", {}, missing[0])
        ]
    event = (rewards_near, transitions_near, visits_enough(optimism.failure_probability))
    rest = [statement for statement in (*ON_EVENT, *ALWAYS) if applies(problem, statement)]
    checked = [one for one in rest if not reason_against(algorithm, one.name)]
    bonuses = cast(optimism.numbers(problem.cmdp.sizes), float)
    known, statements = optimism.rewards == "known", (*event, *checked)
    parameters, inputs = _inputs(problem, algorithm, num_episodes)
    worst, shown = _run(
        problem, bonuses, parameters, known, statements, num_episodes, seeds, inputs
    )
    parts = worst[: len(event)]
    found = {one.name: part for one, part in zip(checked, worst[len(event) :], strict=True)}
    happened = np.all([np.asarray(part.slack) > 0 for part in parts], axis=0)  # per seed
    rows = [
        _event_row(statement, part, optimism, seeds)
        for statement, part in zip(event, parts, strict=True)
    ]
    rows += _checked_rows(problem, algorithm, rest, found, happened)
    true_values, optimistic_values, allowed = map(np.asarray, shown)
    errors = optimistic_values - true_values
    sums = _sum_rows(problem, errors, allowed, happened) + _regret_rows(problem, true_values)
    against = [reason_against(algorithm, row.name) for row in sums]
    return rows + [
        dismissed(row, reason) if reason else row for row, reason in zip(sums, against, strict=True)
    ]


def _checked_rows(
    problem: Problem,
    algorithm: Algorithm,
    statements: Sequence[Statement],
    found: Mapping[str, Worst],
    happened: np.ndarray,
) -> list[Row]:
    """Judge the statements that were checked; the others do not apply."""
    rows = []
    for statement in statements:
        if statement.name not in found:
            rows.append(dismissed(statement, reason_against(algorithm, statement.name)))
            continue
        kept = happened if statement in ON_EVENT else np.ones_like(happened)
        rows.append(_row(problem, statement, found[statement.name], kept))
    return rows


class _Inputs(NamedTuple):
    """What is compiled in: the algorithm, and its parameters that are no numbers."""

    algorithm: Algorithm
    choices: tuple[tuple[str, Any], ...]

    def learner(self, knowledge: Knowledge, numbers: Any) -> Learner:
        """Make the learner from what it may know and from the other parameters."""
        parameters = self.algorithm.assemble(numbers, self.choices)
        return make_checked(self.algorithm.factory, knowledge, parameters)


def _inputs(problem: Problem, algorithm: Algorithm, num_episodes: int) -> tuple[Any, _Inputs]:
    """Take the audit's η, τ and λ_max where an algorithm has them, else its defaults."""
    given = {}
    if algorithm.record is Hyperparameters:
        names = ("step_size", "regularization", "max_multiplier")
        given = {name: float(getattr(problem, name)) for name in names}
    chosen = algorithm.choose(given, num_episodes)
    numbers = cast(algorithm.numbers(chosen), float)
    return numbers, _Inputs(algorithm.program, algorithm.choices(chosen))


@functools.partial(
    jax.jit, static_argnames=("rewards_known", "statements", "num_episodes", "seeds", "inputs")
)
def _run(
    problem: Problem,
    bonuses: Bonuses,
    parameters: Any,
    rewards_known: bool,
    statements: tuple[Statement, ...],
    num_episodes: int,
    seeds: int,
    inputs: _Inputs,
) -> tuple[list[Worst], tuple[jax.Array, jax.Array, jax.Array]]:
    """Run all seeds, which are the leading axis of everything that comes back.

    Returns:
        The worst places, and for every episode and signal (r, u_i and ψ) the true value, the
        optimistic value, and the bonuses Σ_h E[2 b] that bound their difference.
    """
    knowledge = knowledge_of(problem.cmdp, bonuses, rewards_known)

    def one(key: jax.Array) -> Any:
        learner = inputs.learner(knowledge, parameters)
        state = learner.init(learner_key(key, 0))
        nothing = jnp.zeros(learner.show(state).log_policy.shape)
        start = (state, nothing, [nothing_yet(float) for _ in statements])

        def body(carry: Any, iteration: jax.Array) -> tuple[Any, Any]:
            state, expected, worst = carry
            following, episode = play_episode(
                problem, knowledge, learner, state, expected, key, iteration
            )
            found = [
                worse(before, compare(statement.sides(problem, episode), iteration))
                for before, statement in zip(worst, statements, strict=True)
            ]
            mass, log_a = episode.occupancy, problem.log_num_actions
            bonus = 2 * jnp.sum(mass * (episode.reward_bonus + episode.transition_bonus))
            of_entropy = 2 * jnp.sum(mass * episode.transition_bonus) * log_a
            allowed = jnp.full_like(episode.values, bonus).at[-1].set(of_entropy)
            shown = episode.values, episode.optimistic_values, allowed
            return (following, expected + mass, found), shown

        iterations = jnp.arange(1, num_episodes + 1, dtype=jnp.int32)
        (_, _, worst), shown = jax.lax.scan(body, start, iterations)
        return worst, shown

    keys = jax.vmap(lambda seed: jax.random.key(seed, impl="threefry2x32"))(jnp.arange(seeds))
    if inputs.algorithm.replans:  # run by run, or all would plan in every episode
        return jax.lax.map(one, keys)
    return jax.vmap(one)(keys)


def _event_row(statement: Statement, worst: Worst, optimism: Optimism, seeds: int) -> Row:
    """Compare the share of runs in which a part of the event failed with δ/3."""
    slack = np.asarray(worst.slack)
    failures, allowed = int((slack <= 0).sum()), optimism.failure_probability / 3
    share, run = failures / seeds, int(slack.argmin())
    # The probability of so many failures or more if each run fails with probability δ/3.
    chance = _binomial_tail(failures, seeds, allowed)
    return Row(
        statement.name,
        statement.place,
        f"share of {seeds} runs without: {statement.text} ≤ δ/3",
        share,
        allowed,
        allowed - share,
        "fails" if share > allowed and chance < _SIGNIFICANCE else "holds",
        {"run": run, "k": int(np.asarray(worst.iteration)[run])},
        f"smallest margin {slack.min():.3g}; chance of {failures} failures or more: {chance:.2g}",
    )


def _binomial_tail(failures: int, trials: int, probability: float) -> float:
    """Compute P[X ≥ failures] for a binomial X."""
    return sum(
        math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k)
        for k in range(failures, trials + 1)
    )


def _row(problem: Problem, statement: Statement, worst: Worst, kept: np.ndarray) -> Row:
    """Judge a statement by the worst of the runs that count."""
    if not kept.any():
        nothing = (math.nan, math.nan, math.nan)
        verdict: Verdict = "premise not met"
        text = statement.text
        return Row(statement.name, statement.place, text, *nothing, verdict, {}, _NO_EVENT)
    slack = np.where(kept, np.asarray(worst.slack), np.inf)
    run = int(slack.argmin())
    one = Worst(*(np.asarray(entry)[run] for entry in worst))
    one = one._replace(least_right=np.asarray(worst.least_right)[kept].min())
    trivial = None if statement.trivial is None else float(statement.trivial(problem))
    row = judge(
        statement, one, _shape(problem, statement.axes), unmet(problem, statement.premises), trivial
    )
    return row._replace(worst={"run": run} | row.worst)


def _shape(problem: Problem, axes: str) -> tuple[int, ...]:
    cmdp = problem.cmdp
    lengths = {
        "h": cmdp.horizon,
        "i": cmdp.num_constraints,
        "j": 1 + cmdp.num_constraints,
        "s": cmdp.num_states,
        "a": cmdp.num_actions,
    }
    return tuple(lengths[axis] for axis in axes)


def _sum_rows(
    problem: Problem, errors: np.ndarray, bonuses: np.ndarray, happened: np.ndarray
) -> list[Row]:
    """Compare sums of on-policy errors with sums of bonuses, both `[R, K, L]`, for every K' ≤ K."""
    names = ["r", *(f"u_{i}" for i in range(problem.num_constraints)), "ψ"]
    sums, bounds = np.cumsum(errors, axis=1), np.cumsum(bonuses, axis=1)
    return [
        _sum_row(problem, name, sums[..., index], bounds[..., index], happened)
        for index, name in enumerate(names)
    ]


def _sum_row(
    problem: Problem, name: str, errors: np.ndarray, bounds: np.ndarray, happened: np.ndarray
) -> Row:
    slack = np.where(happened[:, None], bounds - errors, np.inf)
    run, place = np.unravel_index(int(slack.argmin()), slack.shape)
    episodes = np.arange(1, errors.shape[1] + 1)
    largest = problem.horizon * (float(problem.log_num_actions) if name == "ψ" else 1.0)
    vacuous = bool((bounds >= largest * episodes).all())
    held = bool(slack[run, place] >= -1e-9 * max(1.0, bounds[run, place]))
    verdict: Verdict = ("vacuous" if vacuous else "holds") if held else "fails"
    note = f"the sum grows like K^{_mean_exponent(errors):.2f} over the last decade"
    if not happened.any():
        verdict, note = "premise not met", _NO_EVENT
    elif vacuous:
        note += f"; the right side is never below {largest:.3g} per episode, which holds anyway"
    added = "b^p log A" if name == "ψ" else "b"
    return Row(
        f"estimation error of {name}",
        "App. E, estimation error",
        f"Σ_k (V̂ - V) ≤ Σ_k Σ_h E[2 {added}] for every K' ≤ K",
        float(errors[run, place]),
        float(bounds[run, place]),
        float(slack[run, place]),
        verdict,
        {"run": int(run), "k": int(place) + 1},
        note,
    )


def _mean_exponent(sums: np.ndarray) -> float:
    """Average the growth exponents of sums `[R, K]` over the runs that have one; else NaN."""
    exponents = growth_exponent(sums, np.arange(1, sums.shape[1] + 1))
    defined = exponents[np.isfinite(exponents)]
    return float(defined.mean()) if defined.size else math.nan


def _regret_rows(problem: Problem, true_values: np.ndarray) -> list[Row]:
    """Check the regret theorem's exponent, and the remark on ε-safety; values are `[R, K, L]`."""
    values = true_values[..., :-1]
    targets = np.append(np.asarray(problem.optimal_values[0]), np.asarray(problem.cmdp.thresholds))
    missing = np.maximum(targets - values, 0.0)
    sums = np.cumsum(missing, axis=1)
    num_episodes = values.shape[1]
    exponents = [_mean_exponent(sums[..., j]) for j in range(values.shape[-1])]
    cmdp, gap = problem.cmdp, float(problem.slater_gap)
    constant = math.inf
    if gap > 0:
        constant = cmdp.horizon**4.5 * cmdp.num_constraints**1.5 / gap**2
    constant += cmdp.horizon**2 * cmdp.num_states**0.5 * cmdp.num_actions**0.25
    bound, trivial = constant * num_episodes ** (13 / 14), cmdp.horizon * num_episodes
    largest = max((e for e in exponents if not math.isnan(e)), default=0.0)
    vacuous = bound >= trivial
    regret = Row(
        "regret exponent",
        "Theorem 5.2",
        "largest growth exponent of the strong regrets ≤ 13/14",
        largest,
        13 / 14,
        13 / 14 - largest,
        "vacuous" if vacuous else ("holds" if largest <= 13 / 14 else "premise not met"),
        {},
        f"at K = {num_episodes} the theorem's leading terms are {bound:.3g}, any algorithm has at "
        f"most HK = {trivial}; η, τ and λ_max are those of the audit, not the theorem's",
    )
    return [regret, *(_safety_row(missing[..., 1:], sums[:, -1, 1:], level) for level in _LEVELS)]


def _safety_row(violations: np.ndarray, regrets: np.ndarray, level: float) -> Row:
    """Check #{k : some violation ≥ ε} ≤ Σ_i R_i(K)/ε."""
    unsafe = (violations.max(axis=-1, initial=0.0) >= level).sum(axis=1)
    bound = regrets.sum(axis=-1) / level
    run = int((bound - unsafe).argmin())
    slack = float(bound[run] - unsafe[run])
    num_episodes = violations.shape[1]
    held = slack >= -1e-9 * max(1.0, bound[run])
    verdict: Verdict = "holds" if held else "fails"
    if held and bound.min() >= num_episodes:
        verdict = "vacuous"
    return Row(
        f"ε-safety, ε = {level:g}",
        "Section 5.3, remark",
        "episodes with some violation ≥ ε ≤ Σ_i R_i(K)/ε",
        float(unsafe[run]),
        float(bound[run]),
        slack,
        verdict,
        {"run": run},
        "",
    )
