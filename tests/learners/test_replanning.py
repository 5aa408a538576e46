"""Learners that plan: against the slow reference, properties, and what is defined at the edges."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
import replanning_reference
from cmdpax.jax_context import cast, drop_programs_if_many
from cmdpax.learners.estimates import Estimates, RowPosterior
from cmdpax.learners.exploration import doubted, posterior_model, sample_noise, sample_rows
from cmdpax.learners.pooling import Errors
from cmdpax.learners.replanner import Model
from cmdpax.learning.loop import Design, Runs, knowledge_of, make_learner, stack_runs
from cmdpax.model.evaluation import q_values
from configurations import configured, designed
from learning_cases import logged, model

pytestmark = pytest.mark.usefixtures("double_precision", "few_at_a_time")
PROFILES = {
    "known": cmdpax.Optimism.empirical(),
    "estimated": cmdpax.Optimism.live(),
    "from 0": cmdpax.Optimism.live().replace(unvisited_rewards=None),
}


@pytest.fixture
def few_at_a_time() -> None:
    """Every test compiles learners of its own."""
    drop_programs_if_many()


@functools.partial(jax.jit, static_argnames="design")
def begun(design: Design, cmdp: cmdpax.CMDP, run: Runs) -> Any:
    return make_learner(design, cmdp, run).init(jax.random.key(0))


@functools.partial(jax.jit, static_argnames="design")
def followed(design: Design, cmdp: cmdpax.CMDP, run: Runs, state: Any, episode: cmdpax.Log) -> Any:
    return make_learner(design, cmdp, run).update(state, episode, jax.random.key(1))


@functools.partial(jax.jit, static_argnames="design")
def shown_by(design: Design, cmdp: cmdpax.CMDP, run: Runs, state: Any) -> Any:
    return make_learner(design, cmdp, run).show(state)


def fed(
    cmdp: cmdpax.CMDP,
    name: str,
    log: cmdpax.Log,
    profile: str = "known",
    stationary: bool = False,
    **parameters: Any,
) -> list[dict[str, Any]]:
    """What is shown before every episode of a log, and after the last.

    Models and numbers are arguments, so that tests with the same shapes share their programs.
    """
    configuration = configured(name, optimism=PROFILES[profile], num_episodes=10**9, **parameters)
    runs = stack_runs(cmdp.sizes, [configuration], 10**9, float)
    design = designed(configuration, stationary=stationary)
    given = (design, cast(cmdp, float), jax.tree.map(lambda array: array[0], runs))
    state, shown = begun(*given), []
    for episode in [*zip(*log, strict=True), None]:
        log_policy, info = shown_by(*given, state)
        shown.append(
            {
                "policy": np.exp(np.asarray(log_policy)),
                "multipliers": np.asarray(info.multipliers),
                "constraint_values": np.asarray(info.constraint_values),
                "number": int(info.num_plans),
                "remaining": int(info.remaining),
                "feasible": bool(info.feasible),
            }
        )
        if episode is not None:
            states, actions, rewards, constraint_rewards = episode
            trajectory = cmdpax.Log(
                jnp.asarray(states, jnp.int32),
                jnp.asarray(actions, jnp.int32),
                jnp.asarray(rewards, float),
                jnp.asarray(constraint_rewards, float),
            )
            state = followed(*given, state, trajectory)
    return shown


def test_states_that_were_hardly_visited_are_left_at_random() -> None:
    """The share min(1, (m/(n ∨ 1))²) of the actions is random, or none if it is below 1 %."""
    cmdp, log, most = model(1), logged(model(1)), 1.5
    # A plan in every episode: the policy that is shown is of the episodes before.
    chosen: dict[str, Any] = {"pooling": "none", "growth": 0.0, "exploration": "none"}
    plain, mixed = (
        fed(cmdp, "replanning", log, random_visits=number, **chosen) for number in (0.0, most)
    )
    visits = np.zeros(cmdp.sizes[1:3])
    for episode, (before, after) in enumerate(zip(plain, mixed, strict=True)):
        share = np.minimum((most / np.maximum(visits, 1)) ** 2, 1)[..., None]
        share[share < 0.01] = 0
        wanted = (1 - share) * before["policy"] + share / cmdp.num_actions
        np.testing.assert_allclose(after["policy"], wanted, rtol=0, atol=1e-12)
        if episode < len(log.actions):
            np.add.at(visits, (np.arange(cmdp.horizon), log.states[episode, :-1]), 1)
    assert visits.max() > 10 * most > visits.min()


@pytest.mark.parametrize(
    ("exploration", "profile", "choices"),
    [
        ("none", "known", {}),
        ("count", "known", {"growth": 0.3, "margin": 0.05}),
        ("count", "from 0", {"pessimism": 0.3, "bonus_scale": 0.2}),
        ("bernstein", "known", {"growth": 0.3, "stretch": 0.4}),
        ("bernstein", "estimated", {"growth": 0.3, "deviation_weight": 0.3}),
        ("bernstein", "from 0", {"growth": 0.2, "pessimism": 0.1, "multiplier_cap": 0.5}),
    ],
)
@pytest.mark.parametrize(("num_constraints", "pooling"), [(1, "none"), (2, "steps")])
def test_plans_are_those_of_the_reference(
    exploration: str,
    profile: str,
    choices: dict[str, float],
    num_constraints: int,
    pooling: str,
) -> None:
    cmdp = model(num_constraints)
    cmdp = cmdp.replace(thresholds=cmdp.thresholds - 0.3)  # pessimism and margins leave slack
    log = logged(cmdp)
    chosen: dict[str, Any] = {"exploration": exploration, "pooling": pooling, **choices}
    shown = fed(cmdp, "replanning", log, profile=profile, **chosen)
    expected = replanning_reference.plans(
        cmdp,
        log,
        shown,
        exploration=exploration,
        rewards=PROFILES[profile].rewards,
        unvisited_rewards=PROFILES[profile].unvisited_rewards,
        growth=choices.get("growth", 0.05),
        stretch=choices.get("stretch", 1.0),
        scale=choices.get("bonus_scale", 0.08),
        weights=(choices.get("deviation_weight", 0.5), 0.2),
        pessimism=choices.get("pessimism", 0.0),
        cap=choices.get("multiplier_cap", 10.0),
        margin=choices.get("margin", 0.0),
        pooling=pooling,
    )
    assert len(expected) > 5
    assert shown[-1]["number"] == len(expected)
    for made in expected:
        assert_optimal(made, shown[made.episode - 1])
    assert any(shown[made.episode - 1]["feasible"] for made in expected)


def assert_optimal(made: replanning_reference.Made, found: dict[str, Any]) -> None:
    """The policy is one of the best ones, and the multipliers prove it."""
    planned = made.planned
    assert found["remaining"] == made.length
    played = planned if found["feasible"] else made.hopeful
    reached = cmdpax.evaluate(played, found["policy"])
    np.testing.assert_allclose(
        found["constraint_values"], reached.constraint_values, rtol=0, atol=1e-9
    )
    slacks = reached.constraint_values - planned.thresholds
    try:
        solution = cmdpax.solve(planned)
    except cmdpax.InfeasibleError:
        assert not found["feasible"]
        scales = np.abs(played.constraint_rewards).max(axis=(1, 2, 3))
        scales[scales == 0] = 1.0
        scaled = played.replace(
            constraint_rewards=played.constraint_rewards / scales[:, None, None, None],
            thresholds=played.thresholds / scales,
        )
        gap = cmdpax.slater_gap(scaled)
        assert gap is not None
        assert (slacks / scales).min() == pytest.approx(gap.gap, abs=1e-7)
        return
    assert found["feasible"]
    assert slacks.min() > -1e-8
    assert reached.value == pytest.approx(solution.value, abs=1e-8)
    weighted = planned.rewards + np.tensordot(
        found["multipliers"], planned.constraint_rewards, axes=1
    )
    free = cmdpax.solve(planned.replace(rewards=weighted, constraint_rewards=[], thresholds=[]))
    bound = free.value - found["multipliers"] @ planned.thresholds
    assert bound == pytest.approx(solution.value, abs=1e-7)


def test_shared_counts_are_those_of_the_reference() -> None:
    cmdp = model(1)
    once = cmdp.replace(
        transitions=cmdp.transitions[:1],
        rewards=cmdp.rewards[:1],
        constraint_rewards=cmdp.constraint_rewards[:, :1],
        thresholds=cmdp.thresholds - 0.4,
    )
    log = logged(cmdp)
    choices: dict[str, Any] = {"exploration": "bernstein", "growth": 0.3}
    shown = fed(once, "replanning", log, profile="estimated", stationary=True, **choices)
    written_out = once.replace(
        transitions=np.repeat(once.transitions, 3, axis=0),
        rewards=np.repeat(once.rewards, 3, axis=0),
        constraint_rewards=np.repeat(once.constraint_rewards, 3, axis=1),
    )
    expected = replanning_reference.plans(
        written_out,
        log,
        shown,
        rewards="estimated",
        unvisited_rewards=1.0,
        stationary=True,
        **choices,
    )
    assert len(expected) > 5
    for made in expected:
        assert_optimal(made, shown[made.episode - 1])


def test_lists_make_the_plans_of_dense_models() -> None:
    """With one slot per state, in another order: for every exploration that has no randomness."""
    cmdp = model(1)
    order = np.array([2, 0, 1])
    successors = np.broadcast_to(order, cmdp.transitions.shape).copy()
    lists = cmdp.replace(transitions=cmdpax.Successors(successors, cmdp.transitions[..., order]))
    log = logged(cmdp)
    for exploration in ("bernstein", "count"):
        one, other = (
            fed(some, "replanning", log, exploration=exploration, pooling="none")
            for some in (cmdp, lists)
        )
        for dense, listed in zip(one, other, strict=True):
            np.testing.assert_allclose(listed["policy"], dense["policy"], rtol=0, atol=1e-8)


def test_lists_that_all_steps_share_are_pooled_as_dense_models() -> None:
    cmdp = model(1)
    successors = np.broadcast_to(np.array([2, 0, 1]), (1, *cmdp.transitions.shape[1:])).copy()
    rows = cmdp.transitions[:1][..., successors[0, 0, 0]]
    lists = cmdp.replace(transitions=cmdpax.Successors(successors, rows))
    log = logged(cmdp)
    one, other = (fed(some, "replanning", log, exploration="bernstein") for some in (cmdp, lists))
    for dense, listed in zip(one, other, strict=True):
        np.testing.assert_allclose(listed["policy"], dense["policy"], rtol=0, atol=1e-8)


def test_pessimism_of_minus_one_with_counts_is_optimistic_planning() -> None:
    cmdp, log = model(2), logged(model(2))
    ours = fed(
        cmdp,
        "replanning",
        log,
        exploration="count",
        pooling="none",
        pessimism=-1.0,
        multiplier_cap=1e9,
    )
    published = fed(cmdp, "optimistic-planning", log)
    for one, other in zip(ours, published, strict=True):
        np.testing.assert_allclose(one["policy"], other["policy"], rtol=0, atol=1e-8)


def test_without_growth_every_episode_has_its_plan() -> None:
    shown = fed(model(1), "replanning", logged(model(1)), growth=0.0)
    assert [one["number"] for one in shown] == list(range(1, 42))
    assert {one["remaining"] for one in shown} == {1}


def test_permuting_the_states_permutes_everything() -> None:
    cmdp, log = model(1), logged(model(1))
    order = np.array([1, 2, 0])  # the new state i is the old state order[i]
    place = np.argsort(order)
    other = cmdpax.CMDP(
        transitions=cmdp.transitions[:, order][..., order],
        rewards=cmdp.rewards[:, order],
        constraint_rewards=cmdp.constraint_rewards[:, :, order],
        thresholds=cmdp.thresholds,
        initial=cmdp.initial[order],
    )
    for exploration in ("bernstein", "count", "none"):
        one = fed(cmdp, "replanning", log, exploration=exploration)
        moved = log._replace(states=place[log.states])
        two = fed(other, "replanning", moved, exploration=exploration)
        for mine, theirs in zip(one, two, strict=True):
            np.testing.assert_allclose(
                theirs["policy"], mine["policy"][:, order], rtol=0, atol=1e-8
            )
            np.testing.assert_allclose(
                theirs["multipliers"], mine["multipliers"], rtol=0, atol=1e-8
            )


# ------------------------------------------------------------------------------------- randomness


@functools.cache
def estimates() -> tuple[Any, Estimates]:
    cmdp = cast(model(1), float)
    knowledge = knowledge_of(cmdp, cast(PROFILES["known"].numbers(cmdp.sizes), float), True)
    rng = np.random.default_rng(3)
    counts = jnp.asarray(rng.integers(0, 9, (3, 3, 2, 3)), float)
    visits = jnp.maximum(counts.sum(axis=-1), 1)
    made = Estimates(
        counts / visits[..., None],
        jnp.asarray(rng.random((3, 2, 3, 2))),
        visits,
        None,
        RowPosterior(counts),
        jnp.asarray(rng.random((3, 2, 3))),
        jnp.array([0.7]),
        jnp.asarray(20.0),
    )
    return knowledge, made


WEIGHTS, PRIOR = (0.4, 0.3), 0.5


def with_untried(made: Estimates) -> Estimates:
    """A pair that was never tried, and what is known of it: nothing."""
    rows = made.transitions.at[1, 2, 0].set(1 / 3)
    counts = made.rows.counts.at[1, 2, 0].set(0.0)
    visits = made.visits.at[1, 2, 0].set(0.0)
    return made._replace(transitions=rows, rows=RowPosterior(counts), visits=visits)


def planned_in(made: Estimates, key: Any, knowledge: Any, reduced: Any = 0.0) -> Model:
    full = jnp.broadcast_to(jnp.asarray(reduced, float), made.signals[:, 1:].shape)
    return posterior_model(key, knowledge, made, full, WEIGHTS, PRIOR)


@pytest.mark.parametrize("estimated", [False, True])
def test_the_posterior_model_is_what_its_formulas_say(estimated: bool) -> None:
    knowledge, made = estimates()
    made = with_untried(made)
    observed = None
    if estimated:
        errors = jnp.full(made.signals.shape, 0.2)
        observed = np.random.default_rng(4).integers(0, 5, made.signals.shape).astype(float)
        made = made._replace(errors=Errors(errors, 2 * errors, jnp.asarray(observed)))
    key = jax.random.key(5)
    first, second = jax.random.split(key)
    drawn = np.asarray(sample_rows(first, knowledge, made.rows, PRIOR))
    noise = np.asarray(sample_noise(second, made)) if estimated else None
    found = planned_in(made, key, knowledge, 0.1)
    rows, signals, hopeful = replanning_reference.posterior_model(
        *(np.asarray(part) for part in (made.transitions, made.signals, made.visits)),
        *(np.asarray(part) for part in (made.next_values, made.multipliers, drawn)),
        noise=noise,
        observed=observed,
        reduced=0.1,
        episode=20,
        weights=WEIGHTS,
        prior=PRIOR,
    )
    np.testing.assert_allclose(found.transitions, rows, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.signals, signals, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.hopeful, hopeful, rtol=1e-11, atol=1e-13)


def test_what_is_doubted_is_reduced_by_what_it_may_be_wrong() -> None:
    """û - doubt (σ_u + √(n v + s²/4)/(n + 1)); what was never tried is 2 deviations worse."""
    knowledge, made = estimates()
    made, doubt = with_untried(made), 0.3
    observed = np.broadcast_to(np.asarray(made.visits)[:, None], made.signals.shape)
    errors = np.random.default_rng(4).random(made.signals.shape)
    some = Errors(jnp.zeros_like(made.signals), jnp.asarray(errors), jnp.asarray(observed))
    made = made._replace(errors=some)
    found = doubted(knowledge, made, doubt).signals
    signals, rows, visits, values = (
        np.asarray(one)
        for one in (made.signals, made.transitions, made.visits, made.next_values[:, 1])
    )
    np.testing.assert_array_equal(found[:, 0], signals[:, 0])
    tried = visits > 0
    mean = signals[:, 1][tried].mean()
    squares = ((signals[:, 1][tried] - mean) ** 2).sum()
    worse = max(mean - 2 * ((squares + 3 / 12) / (tried.sum() + 3)) ** 0.5, 0)
    assert tried.sum() == tried.size - 1
    for h, s, a in np.ndindex(visits.shape):
        spread = rows[h, s, a] @ values[h] ** 2 - (rows[h, s, a] @ values[h]) ** 2
        width, n = np.ptp(values[h]), visits[h, s, a]
        error = errors[h, 1, s, a] + (n * spread + width**2 / 4) ** 0.5 / (n + 1)
        known = signals[h, 1, s, a] if n else worse
        np.testing.assert_allclose(found[h, 1, s, a], known - doubt * error, rtol=1e-9)
    np.testing.assert_array_equal(doubted(knowledge, made, 0.0).signals, signals)


def test_what_was_never_observed_is_hoped_to_be_one() -> None:
    knowledge, made = estimates()
    nothing = jnp.zeros_like(made.signals)
    unknown = made._replace(errors=Errors(nothing, nothing, nothing), visits=1e12 * made.visits)
    found = planned_in(unknown, jax.random.key(0), knowledge)
    known = planned_in(unknown._replace(errors=None), jax.random.key(0), knowledge)
    hoped = np.asarray(found.signals - known.signals)
    missing = 1 - np.asarray(made.signals)
    np.testing.assert_allclose(hoped[:, 0], missing[:, 0] + 0.7 * missing[:, 1], rtol=1e-9)
    np.testing.assert_array_equal(hoped[:, 1], 0)
    np.testing.assert_allclose(found.hopeful, 1, rtol=0, atol=1e-9)


def test_what_was_never_tried_leads_to_the_best_that_may_follow() -> None:
    knowledge, made = estimates()
    made = with_untried(made)
    row = np.asarray(planned_in(made, jax.random.key(0), knowledge).transitions)[1, 2, 0]
    assert sorted(row) == [0.0, 0.0, 1.0]


def test_moved_rows_leave_the_constraints_of_the_last_plan_as_they_were() -> None:
    """V_{û - g} under p' is V_û under p̂, where V belongs to the policy and all pairs are tried."""
    knowledge, made = estimates()
    policy = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(2), (3, 3)))
    every_q, before = q_values(made.transitions, made.signals, policy)
    values = jnp.sum(policy[:, None] * every_q, axis=-1)
    later = jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])
    made = made._replace(next_values=later, visits=1e12 * made.visits)
    # Many visits keep ε at 0 and take back everything; the rows are drawn of few counts.
    found = planned_in(made, jax.random.key(1), knowledge)
    assert np.abs(np.asarray(found.transitions - made.transitions)).max() > 0.1
    after = q_values(found.transitions, found.signals, policy)[1]
    np.testing.assert_allclose(after[1], before[1], rtol=1e-9)
    assert np.abs(np.asarray(after[0] - before[0])).max() > 0.01
    # The Lagrangian is that of the moved rows.
    plain = q_values(found.transitions, made.signals, policy)[1]
    np.testing.assert_allclose(after[0] + 0.7 * after[1], plain[0] + 0.7 * plain[1], rtol=1e-9)


def test_observed_variance_widens_the_posterior() -> None:
    knowledge, made = estimates()
    visits = made.visits[:, None]
    own = jnp.broadcast_to(jnp.sqrt(visits * 0.09 + 0.25) / (visits + 1), made.signals.shape)
    observed = jnp.broadcast_to(visits, own.shape)
    unknown = made._replace(errors=Errors(jnp.zeros_like(own), own, observed))
    keys = jax.random.split(jax.random.key(1), 20_000)

    def spread(some: Estimates) -> np.ndarray:
        rewards = jax.jit(jax.vmap(lambda key: planned_in(some, key, knowledge).signals[:, 0]))
        return np.asarray(rewards(keys)).var(axis=0)

    noise = (0.7 * WEIGHTS[0]) ** 2 * np.log(21) * (1 + 0.7**2) * np.asarray(own[:, 0]) ** 2
    np.testing.assert_allclose(spread(unknown) - spread(made), noise, rtol=0.15)


def test_rows_are_drawn_once_where_the_steps_share_them() -> None:
    knowledge, made = estimates()
    shared = sample_rows(jax.random.key(0), knowledge, RowPosterior(made.rows.counts[:1]), 1.0)
    assert shared.shape == (1, 3, 2, 3)


def test_pooled_rows_are_drawn_around_a_common_row() -> None:
    """With α → ∞ all steps have one row, which has the moments of Dirichlet(common + prior/T)."""
    knowledge, made = estimates()
    counts = made.rows.counts
    common = counts.sum(axis=0, keepdims=True)
    alike = RowPosterior(counts, common, jnp.asarray(1e12))
    keys = jax.random.split(jax.random.key(0), 20_000)
    draw = jax.jit(jax.vmap(lambda key: sample_rows(key, knowledge, alike, 1.0)))
    found = np.asarray(draw(keys))
    np.testing.assert_allclose(found[:, 0], found[:, 2], rtol=0, atol=1e-4)
    alpha = np.asarray(common[0]) + 1 / 3
    total = alpha.sum(axis=-1, keepdims=True)
    mean = alpha / total
    variance = mean * (1 - mean) / (total + 1)
    error = 5 * np.sqrt(variance / len(keys))
    assert (np.abs(found[:, 1].mean(axis=0) - mean) < error).all()
    np.testing.assert_allclose(found[:, 1].var(axis=0), variance, rtol=0.1, atol=1e-12)


# --------------------------------------------------------------------------------------- the edges

NAMES = ["replanning", "posterior-sampling", "optimistic-planning"]


@pytest.mark.parametrize("name", NAMES)
def test_an_infeasible_estimate_is_played_with_the_largest_worst_slack(name: str) -> None:
    cmdp = model(1)
    best = cmdpax.solve(cmdp.replace(rewards=cmdp.constraint_rewards[0], thresholds=[-9.0]))
    impossible = cmdp.replace(thresholds=[best.value + 1.0])
    shown = fed(
        impossible,
        name,
        logged(cmdp, 5),
        **({} if name != "replanning" else {"exploration": "none"}),
    )
    assert not any(one["feasible"] for one in shown)
    assert all((one["multipliers"] == 0).all() for one in shown)  # the last feasible plan's
    if name == "replanning":
        # Before the first episode every row is uniform: the best action is the best reward.
        greedy = cmdp.constraint_rewards[0].argmax(axis=-1)
        np.testing.assert_array_equal(shown[0]["policy"].argmax(axis=-1), greedy)


@pytest.mark.parametrize("name", NAMES)
def test_models_without_constraints_are_learned(name: str) -> None:
    history = cmdpax.learn(model(0), name, num_episodes=200)
    assert history.strong_regret.maximum[0, -1] == 0
    assert history.suboptimality[0, -1] < 0.2


def test_rows_that_count_as_zero_are_planned_with(tmp_path: Any) -> None:
    history = cmdpax.learn(model(1), "replanning", num_episodes=200, optimism="theory")
    assert np.isfinite(history.value).all()


def test_caution_explores_whether_a_constraint_can_be_met() -> None:
    """Only the second action is safe. A learner that fears what it has not tried never tries it.

    With κ = 1 and the largest worst slack of the reduced constraints, every plan is infeasible.
    """
    cmdp = model(1)
    safe = np.zeros_like(cmdp.constraint_rewards)
    safe[..., 1] = 1.0
    hard = cmdp.replace(constraint_rewards=safe, rewards=1 - safe[0], thresholds=[2.0])
    history = cmdpax.learn(
        hard,
        "replanning",
        num_episodes=3000,
        seeds=6,
        pessimism=1.0,
        optimism=PROFILES["from 0"],
        observations="bernoulli",
    )
    last = history.plans.made - 1
    assert history.plans.feasible[np.arange(6), last].all()
    assert history.violation.max(axis=-1)[:, -1].max() <= 0
    assert history.unsafe[:, -1].max() < 0.1
