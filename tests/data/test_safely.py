import pickle

import numpy as np
import pytest

import cmdpax
from cmdpax.data.planning import cut_at, mean_model, optimism_of_plans, plan, with_cuts
from cmdpax.data.posterior import Draws, learn_posterior
from cmdpax.data.safely import _Search
from data_cases import declared, evidence_of, logged, random_model, random_policy, uniform


def posterior_of(seed: int, sizes=(2, 3, 3, 2), count: int = 150, **more):
    cmdp = random_model(seed, sizes)
    log = logged(cmdp, uniform(cmdp), count, seed)
    return cmdp, learn_posterior(evidence_of(cmdp, log, **more))


# ------------------------------------------------------------------------------------------- cuts


@pytest.mark.parametrize("stationary", [False, True])
def test_deviations_are_about_those_of_the_draws(stationary):
    cmdp, posterior = posterior_of(0, count=600, stationary=stationary)
    model = mean_model(posterior)
    for seed in range(3):
        policy = random_policy(cmdp, seed)
        drawn = Draws(posterior, 1500, 1).values(policy)[:, 1:].std(axis=0)
        np.testing.assert_allclose(cut_at(model, policy, posterior).deviations, drawn, rtol=0.35)


@pytest.mark.parametrize("stationary", [False, True])
def test_cuts_support_the_deviation_from_below(stationary):
    """σ(d) ≥ ⟨g, d⟩, with equality where the cut was made (the values that g holds are fixed)."""
    cmdp, posterior = posterior_of(1, stationary=stationary)
    model = mean_model(posterior)
    policy = random_policy(cmdp, 0)
    cut = cut_at(model, policy, posterior)
    d = cmdpax.evaluate(model, policy).occupancy
    np.testing.assert_allclose((cut.gradients * d).sum(axis=(1, 2, 3)), cut.deviations)
    spread = cut.gradients / np.maximum(d, 1e-300)  # g = d σ² / σ(d) where steps are not shared
    if not stationary:
        for seed in range(5):
            other = cmdpax.evaluate(model, random_policy(cmdp, 10 + seed)).occupancy
            variances = spread * cut.deviations[:, None, None, None]
            deviations = np.sqrt((other**2 * variances).sum(axis=(1, 2, 3)))
            assert ((cut.gradients * other).sum(axis=(1, 2, 3)) <= deviations + 1e-12).all()
    np.testing.assert_allclose(cut.shares.sum(axis=1), 1)


def test_plans_keep_what_cuts_ask_for():
    _, posterior = posterior_of(2)
    model = mean_model(posterior)
    policy, found = plan(model)
    assert found
    cut = cut_at(model, policy, posterior)
    weights = np.array([0.5, 0.7])
    moved, found = plan(with_cuts(model, [cut], weights))
    assert found
    reached = cmdpax.evaluate(model, moved)
    kept = weights * (cut.gradients * reached.occupancy).sum(axis=(1, 2, 3))
    assert (reached.constraint_values - kept >= model.bounds - 1e-8).all()


def test_costs_are_cut_from_their_side():
    cmdp, _ = posterior_of(3, (1, 3, 3, 2))
    log = logged(cmdp, uniform(cmdp), 150, 3)
    turned = log._replace(constraint_rewards=1 - log.constraint_rewards)
    one = learn_posterior(evidence_of(cmdp, log))
    other = learn_posterior(
        evidence_of(cmdp, turned, thresholds=3 - cmdp.thresholds, senses="at most")
    )
    plans = []
    for posterior in (one, other):
        model = mean_model(posterior)
        cut = cut_at(model, plan(model)[0], posterior)
        moved, _ = plan(with_cuts(model, [cut], np.ones(1)))
        plans.append(cmdpax.evaluate(model, moved))
    assert abs(plans[0].value - plans[1].value) < 1e-6
    np.testing.assert_allclose(plans[0].constraint_values, 3 - plans[1].constraint_values)


def test_pairs_without_a_visit_are_not_planned_with():
    cmdp = random_model(4)
    behaviour = uniform(cmdp).copy()
    behaviour[:, 1] = [1.0, 0.0]
    log = logged(cmdp, behaviour, 300, 4)
    found = cmdpax.solve_safely(log, **declared(cmdp, thresholds=[0.0]))
    assert (found.policy[:, 1, 1] == 0).all()
    assert found.certified


# ------------------------------------------------------------------------------------- correction


def test_equal_actions_make_plans_promise_too_much():
    """Twenty actions of equal cost: the plan takes the one that looked cheapest.

    The excess of the cheapest of twenty means, each with the standard deviation s, is 1.87 s.
    """
    rng = np.random.default_rng(5)
    count, actions = 4000, 20
    played = rng.integers(0, actions, (count, 1))
    costs = 1.0 * (rng.random((count, 1, 1)) < 0.5)
    log = cmdpax.Log(np.zeros((count, 2), int), played, np.ones((count, 1)), costs)
    empty = random_model(0, (1, 1, 1, actions))
    evidence = evidence_of(empty, log, thresholds=[0.48], senses="at most")
    posterior = learn_posterior(evidence, None)
    # A weak prior leaves the differences that noise made.
    model = mean_model(posterior)
    found = optimism_of_plans(model, posterior, [], np.zeros(1), count=200, seed=1)
    deviation = np.sqrt(posterior.signals[1].variances()).mean()
    assert 1.2 < found[0] / deviation < 2.6


def test_one_action_promises_nothing():
    _, posterior = posterior_of(6, (1, 3, 3, 1), 200)
    model = mean_model(posterior)
    found = optimism_of_plans(model, posterior, [], np.zeros(1), count=200, seed=1)
    deviation = cut_at(model, np.ones((3, 3, 1)), posterior).deviations
    assert found[0] < 0.35 * deviation[0]


# --------------------------------------------------------------------------------------- the plan


def test_safe_plans_are_safe_and_plain_ones_are_not():
    safe, plain = [], []
    for seed in range(40):
        cmdp = random_model(100 + seed)
        log = logged(cmdp, uniform(cmdp), 100, seed)
        naive = cmdpax.solve(cmdpax.estimate(log, **declared(cmdp)))
        plain.append(cmdpax.evaluate(cmdp, naive.policy).constraint_values[0] - cmdp.bounds[0])
        try:
            found = cmdpax.solve_safely(log, seed=seed, **declared(cmdp))
        except cmdpax.InsufficientDataError:
            continue
        assert found.certified
        assert found.probability_met >= 0.95
        safe.append(cmdpax.evaluate(cmdp, found.policy).constraint_values[0] - cmdp.bounds[0])
    assert len(safe) >= 36
    assert np.mean(np.array(safe) < -1e-9) <= 0.1  # above that once in 20 times, if 5 % are unsafe
    assert np.mean(np.array(plain) < -1e-9) >= 0.25


def test_margins_shrink_as_data_grow_and_value_is_gained():
    cmdp = random_model(8)
    plans = [
        cmdpax.solve_safely(logged(cmdp, uniform(cmdp), count, 8), **declared(cmdp))
        for count in (60, 2000)
    ]
    assert plans[1].margins[0] < plans[0].margins[0] / 2
    optimum = cmdpax.solve(cmdp).value
    losses = [optimum - cmdpax.evaluate(cmdp, found.policy).value for found in plans]
    assert losses[1] < losses[0]


def test_more_confidence_costs_value():
    cmdp = random_model(8)
    log = logged(cmdp, uniform(cmdp), 200, 9)
    plans = [
        cmdpax.solve_safely(log, confidence=confidence, **declared(cmdp))
        for confidence in (0.6, 0.99)
    ]
    assert plans[0].value > plans[1].value
    assert plans[0].margins[0] < plans[1].margins[0]


def test_slack_constraints_and_none_at_all_cost_nothing():
    cmdp = random_model(10)
    log = logged(cmdp, uniform(cmdp), 400, 10)
    best = cmdpax.solve(cmdpax.estimate(log, **declared(cmdp, thresholds=[0.0])))
    found = cmdpax.solve_safely(log, **declared(cmdp, thresholds=[0.0]))
    assert found.probability_met == 1.0
    assert abs(found.value - best.value) < 0.1
    free = log._replace(constraint_rewards=np.zeros((400, 0, 3)))
    plan = cmdpax.solve_safely(free, num_states=3, num_actions=2)
    assert plan.certified
    assert plan.margins.shape == (0,)


def test_the_same_seed_gives_the_same_plan():
    cmdp = random_model(11, (2, 3, 3, 2))
    log = logged(cmdp, uniform(cmdp), 200, 11)
    one, same, other = (cmdpax.solve_safely(log, seed=seed, **declared(cmdp)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.policy, same.policy)
    np.testing.assert_array_equal(one.uncertainty.draws, same.uncertainty.draws)
    assert not np.array_equal(one.uncertainty.draws, other.uncertainty.draws)


def test_it_speaks_in_the_words_of_the_log():
    cmdp = random_model(12)
    log = logged(cmdp, uniform(cmdp), 300, 12)
    found = cmdpax.solve_safely(
        log,
        limits=[2.0],
        constraint_names="energy",
        units={"energy": "kWh"},
        state_names=["cold", "warm", "hot"],
        action_names=["wait", "heat"],
    )
    first, _, third = str(found).splitlines()
    assert first.startswith("all constraints are met with probability ")
    assert first.endswith("(asked for: 95 %)")
    assert third.startswith("energy [kWh]: ")
    assert "at most 2 kWh, margin" in third
    assert "cold" in str(found.policy)
    assert found.model.words.state_names == ("cold", "warm", "hot")


def test_masks_are_kept():
    cmdp = random_model(13)
    flags = np.ones((3, 2), bool)
    flags[2, 0] = False
    behaviour = np.broadcast_to(flags / flags.sum(axis=1, keepdims=True), cmdp.sizes[1:])
    log = logged(cmdp, behaviour, 200, 13)
    found = cmdpax.solve_safely(log, available=flags, **declared(cmdp, thresholds=[0.5]))
    assert (found.policy[:, 2, 0] == 0).all()


# -------------------------------------------------------------------------------------- refusals


def test_too_little_data_is_refused_with_advice():
    cmdp = random_model(14)
    log = logged(cmdp, uniform(cmdp), 12, 14)
    free = cmdp.with_arrays(rewards=cmdp.constraint_rewards[0])
    best = cmdpax.solve(free.replace(thresholds=[-1.0])).value
    with pytest.raises(cmdpax.InsufficientDataError) as caught:
        cmdpax.solve_safely(log, **declared(cmdp, thresholds=[best - 0.05]))
    error = caught.value
    assert error.probability < 0.95
    assert not error.plan.certified
    assert str(error.plan).startswith("not certified")
    advice = error.advice
    assert 1 <= len(advice.pairs) <= 5
    shares = [need.share for need in advice.pairs]
    assert shares == sorted(shares, reverse=True)
    for need in advice.pairs:
        step, state, action = need.step, need.state, need.action
        there = (log.states[:, step] == state) & (log.actions[:, step] == action)
        assert need.visits == there.sum()
    assert advice.pairs[0].text in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_advised_number_of_episodes_is_about_enough():
    cmdp = random_model(14)
    free = cmdp.with_arrays(rewards=cmdp.constraint_rewards[0])
    best = cmdpax.solve(free.replace(thresholds=[-1.0])).value
    told = declared(cmdp, thresholds=[best - 0.1])
    with pytest.raises(cmdpax.InsufficientDataError) as caught:
        cmdpax.solve_safely(logged(cmdp, uniform(cmdp), 20, 14), **told)
    needed = caught.value.advice.episodes
    assert needed is None or needed > 20
    enough = 2000 if needed is None else 4 * needed
    assert cmdpax.solve_safely(logged(cmdp, uniform(cmdp), min(enough, 4000), 16), **told).certified


def test_what_no_policy_can_meet_is_said():
    cmdp = random_model(17)
    log = logged(cmdp, uniform(cmdp), 300, 17)
    with pytest.raises(cmdpax.InsufficientDataError, match="relax its bound") as caught:
        cmdpax.solve_safely(log, **declared(cmdp, thresholds=[3.5]))
    assert caught.value.advice.episodes is None
    assert caught.value.probability == 0.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"confidence": 0}, "confidence is 0, it must be between 0 and 1"),
        ({"samples": 10}, "samples is 10"),
        ({"limits": 1.0}, "thresholds and limits"),
        ({"colour": 1}, "solve_safely has no argument 'colour'"),
    ],
)
def test_wrong_arguments_get_a_sentence(changes, sentence):
    cmdp = random_model(18)
    log = logged(cmdp, uniform(cmdp), 20, 18)
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        cmdpax.solve_safely(log, **(declared(cmdp) | changes))


# ------------------------------------------------------------------------- what was not seen yet


def test_one_observation_certifies_nothing_where_a_range_is_declared():
    log = cmdpax.Log(*map(np.array, ([[0, 0]], [[0]], [[0.6]], [[[0.27]]])))
    assert cmdpax.solve_safely(log, limits=0.3).probability_met == 1.0  # the log is all there is
    with pytest.raises(cmdpax.InsufficientDataError):
        cmdpax.solve_safely(log, limits=0.3, constraint_ranges=(0, 1))


def test_rare_costs_that_were_not_seen_yet_are_possible():
    """A cost of 100 with a chance of 3 %, at most 1: in a third of the logs it never came."""
    certified = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        played = rng.integers(0, 2, (80, 1))
        costs = np.where((played == 1) & (rng.random((80, 1)) < 0.03), 100.0, 0.0)
        log = cmdpax.Log(np.zeros((80, 2), int), played, 1.0 * played, costs[:, None])
        try:
            found = cmdpax.solve_safely(log, limits=1.0, constraint_ranges=(0, 100))
        except cmdpax.InsufficientDataError:
            continue
        certified += 3 * found.policy[0, 0, 1] > 1
    assert certified <= 1


def test_states_that_nothing_led_to_are_possible():
    states = np.zeros((40, 11), int)  # a leak of 1 % would have been missed as often as not
    log = cmdpax.Log(states, states[:, :10], np.zeros((40, 10)), np.zeros((40, 1, 10)))
    given = {"limits": 0.01, "stationary": True, "constraint_ranges": (0, 1)}
    with pytest.raises(cmdpax.InsufficientDataError):
        cmdpax.solve_safely(log, num_states=2, **given)


def test_rounding_of_large_costs_is_no_slack():
    rng = np.random.default_rng(0)
    states = np.zeros((200, 5), int)
    costs = 1e9 + rng.random((200, 1, 4))
    log = cmdpax.Log(states, states[:, :4], np.zeros((200, 4)), costs)
    with pytest.raises(cmdpax.InsufficientDataError):
        cmdpax.solve_safely(log, limits=4e9 + 1.5)
    assert cmdpax.solve_safely(log, limits=4e9 + 2.5).certified


def test_policies_that_risk_little_need_little_correction():
    """Doing nothing is safe beyond doubt, though plans of such data promise far too much."""
    rng = np.random.default_rng(1)
    count, actions = 100, 12
    played = rng.integers(0, actions, (count, 1)) * (rng.random((count, 1)) < 0.5)
    costs = np.where(played == 0, 0.0, 1.0 * (rng.random((count, 1)) < 0.6))
    log = cmdpax.Log(np.zeros((count, 2), int), played, 1.0 * (played > 0), costs[:, None])
    found = cmdpax.solve_safely(log, limits=0.3, num_actions=actions)
    assert found.policy[0, 0, 0] > 0.3


@pytest.mark.parametrize("shape", [(2, 2), (9, 2), (4, 3, 2)])
def test_flags_of_other_sizes_get_a_sentence(shape):
    cmdp = random_model(19)
    log = logged(cmdp, uniform(cmdp), 20, 19)
    with pytest.raises(cmdpax.ModelError, match=r"available has shape .* expected \(S, A\)"):
        cmdpax.solve_safely(log, available=np.ones(shape, bool), **declared(cmdp))


def test_a_certain_log_needs_no_more_visits():
    """Where nothing is left open there is nothing to log, and no list of pairs is announced."""
    log = cmdpax.Log([[0, -1]] * 3, [[0]] * 3, [[1.0]] * 3, [[[0.3]]] * 3)
    with pytest.raises(
        cmdpax.InsufficientDataError, match=r"by 0\.1; relax its bound\.$"
    ) as caught:
        cmdpax.solve_safely(log, limits=0.2)
    assert caught.value.advice.pairs == ()


def test_what_fresh_draws_confirm_is_not_refused():
    """A search may end a draw or two below the probability that 2,000 fresh draws confirm."""

    class Unlucky(_Search):
        def _look(self, target, nearest):
            found, nearest = super()._look(target, nearest)
            return None, (found or nearest)._replace(probability=0.948)

    cmdp = random_model(3)
    log = logged(cmdp, uniform(cmdp), 300, 3)
    evidence = evidence_of(cmdp, log, thresholds=[0.0])
    plan = Unlucky(learn_posterior(evidence), 0.95, 200, 0).run()
    assert plan.certified
    assert plan.probability_met >= 0.95


def test_a_second_search_asks_for_no_less():
    """With 500 draws in a search, its second target must not fall below a high confidence."""
    targets = []

    class Searched(_Search):
        def _look(self, target, nearest):
            targets.append(target)
            return super()._look(target, nearest)

        def _certify(self, found, attempt):
            return super()._certify(found, attempt)._replace(certified=False)

    cmdp = random_model(3)
    log = logged(cmdp, uniform(cmdp), 300, 3)
    evidence = evidence_of(cmdp, log, thresholds=[0.0])
    with pytest.raises(cmdpax.InsufficientDataError):
        Searched(learn_posterior(evidence), 0.9999, 100, 0).run()
    assert targets == sorted(targets)
    assert len(targets) == 2


def test_all_constraints_that_are_missed_are_told():
    """To relax the worst one alone would not help."""
    log = cmdpax.Log([[0, -1]] * 3, [[0]] * 3, [[1.0]] * 3, [[[0.3], [0.4]]] * 3)
    with pytest.raises(
        cmdpax.InsufficientDataError,
        match=r"misses one by 0\.1 and two by 0\.3; relax these bounds\.$",
    ):
        cmdpax.solve_safely(log, limits=[0.2, 0.1], constraint_names=["one", "two"])


def test_plans_that_promise_more_than_the_first_are_corrected_again():
    """Plans at the edge of what can be kept depend more on luck than the first plan."""
    tried = []

    class Edgy(_Search):
        def _correct(self, candidate, target):
            judged = super()._correct(candidate, target)
            self._optimism = np.maximum(self._optimism, [0.0, 2.0][len(tried) > 0])
            tried.append((candidate, judged))
            return self._judge(candidate.made, target)

    cmdp = random_model(8)
    log = logged(cmdp, uniform(cmdp), 300, 8)
    plan = Edgy(learn_posterior(evidence_of(cmdp, log)), 0.95, 200, 0).run()
    assert len(tried) == 3  # the first plan, one that needed more, and one that has enough
    np.testing.assert_array_equal(plan.policy, tried[-1][0].made.policy)
    assert (plan.correction > 1.9 * tried[-1][0].deviations * 0.8).all()
    assert plan.certified


@pytest.mark.parametrize("function", ["solve_safely", "uncertainty"])
def test_models_that_no_memory_holds_get_a_sentence(function):
    log = cmdpax.Log([[1_999_999_999, 0]], [[0]], [[1.0]], np.zeros((1, 0, 1)))
    arguments = [] if function == "solve_safely" else [np.ones((1, 1, 1))]
    with pytest.raises(cmdpax.ParameterError, match="the possible models of 2000000000 states"):
        getattr(cmdpax, function)(log, *arguments, num_states=2_000_000_000, num_actions=1)
