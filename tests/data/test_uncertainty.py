import re

import numpy as np
import pytest

import cmdpax
from data_cases import declared, logged, random_model, random_policy, uniform

RANGES = {"reward_range": (0, 1), "constraint_ranges": (0, 1)}


def prior_model(rng: np.random.Generator) -> cmdpax.CMDP:
    """A model from the prior: rows from a symmetric Dirichlet, mean signals uniform."""
    shape = (2, 3, 2)
    return cmdpax.CMDP(
        rng.dirichlet(np.full(3, 1.0), shape),
        rng.random(shape),
        rng.random((1, *shape)),
        [1.0],
        [1.0, 0.0, 0.0],
    )


@pytest.mark.parametrize("noise", ["bernoulli", "normal"])
def test_posterior_covers_models_from_its_prior(noise):
    """95 % intervals hold 93 to 97 % of the values, here give or take the error of 400 of them.

    `benchmarks/coverage.py` measures it with many more.
    """
    rng = np.random.default_rng(0)
    held = []
    for seed in range(200):
        cmdp = prior_model(rng)
        log = logged(cmdp, uniform(cmdp), 40, seed, noise=noise)
        policy = random_policy(cmdp, seed)
        wide = (-1, 2) if noise == "normal" else (0, 1)
        found = cmdpax.uncertainty(
            log, policy, samples=400, reward_range=wide, constraint_ranges=wide, **declared(cmdp)
        )
        truth = cmdpax.evaluate(cmdp, policy)
        ends = np.vstack([found.value, found.constraint_values])
        values = np.array([truth.value, *truth.constraint_values])
        held += ((ends[:, 0] <= values) & (values <= ends[:, 1])).tolist()
    assert 0.91 <= np.mean(held) <= 0.985


def test_probabilities_are_those_of_the_draws():
    cmdp = random_model(0, (2, 3, 3, 2))
    log = logged(cmdp, uniform(cmdp), 60, 0)
    policy = random_policy(cmdp, 1)
    found = cmdpax.uncertainty(log, policy, samples=300, **RANGES, **declared(cmdp))
    assert found.draws is not None
    met = found.draws[:, 1:] >= cmdp.thresholds
    np.testing.assert_allclose(found.probability_met.each, met.mean(axis=0))
    assert found.probability_met.joint == met.all(axis=1).mean()
    np.testing.assert_allclose(found.value, np.quantile(found.draws[:, 0], [0.025, 0.975]))
    np.testing.assert_allclose(found.expected, found.draws.mean(axis=0))


def test_more_data_is_more_certain_and_right():
    cmdp = random_model(1)
    policy = random_policy(cmdp, 2)
    truth = cmdpax.evaluate(cmdp, policy)
    widths = []
    for count in (50, 800):
        log = logged(cmdp, uniform(cmdp), count, 1)
        found = cmdpax.uncertainty(log, policy, **RANGES, **declared(cmdp))
        widths.append(float(np.diff(found.value)[0]))
    assert widths[1] < widths[0] / 2.5
    assert abs(found.expected[0] - truth.value) < 2 * widths[1]


def test_senses_turn_values_and_not_probabilities():
    cmdp = random_model(2)
    log = logged(cmdp, uniform(cmdp), 80, 2)
    turned = log._replace(constraint_rewards=1 - log.constraint_rewards)
    policy = random_policy(cmdp, 3)
    for method in ("posterior", "robust"):
        one = cmdpax.uncertainty(
            log, policy, thresholds=cmdp.thresholds, method=method, initial=cmdp.initial, **RANGES
        )
        other = cmdpax.uncertainty(
            turned,
            policy,
            limits=cmdp.horizon - cmdp.thresholds,
            method=method,
            initial=cmdp.initial,
            **RANGES,
        )
        room = 0.05 if method == "posterior" else 1e-9
        np.testing.assert_allclose(
            one.constraint_values[0], cmdp.horizon - other.constraint_values[0, ::-1], atol=room
        )
        assert abs(one.probability_met.joint - other.probability_met.joint) <= room


def test_the_robust_levels_are_the_highest_that_are_shown():
    cmdp = random_model(3)
    log = logged(cmdp, uniform(cmdp), 300, 3)
    policy = random_policy(cmdp, 4)
    reached = cmdpax.evaluate(cmdp, policy).constraint_values
    sure = cmdpax.uncertainty(
        log, policy, thresholds=[-1.0], method="robust", confidence=0.9, **RANGES
    )
    assert sure.probability_met.joint == 0.999
    never = cmdpax.uncertainty(log, policy, thresholds=reached, method="robust", **RANGES)
    assert never.probability_met.joint == 0.0
    low = sure.constraint_values[0, 0]
    at = cmdpax.uncertainty(
        log, policy, thresholds=[low], method="robust", confidence=0.9, **RANGES
    )
    assert at.probability_met.joint == 0.9
    assert at.method == "robust"
    assert at.draws is None


def test_it_speaks_in_the_words_of_the_log():
    cmdp = random_model(4)
    log = logged(cmdp, uniform(cmdp), 60, 4)
    found = cmdpax.uncertainty(
        log,
        uniform(cmdp),
        limits=5.0,
        constraint_names="energy",
        objective_name="profit",
        units={"profit": "EUR", "energy": "kWh"},
    )
    first, second = str(found).splitlines()
    assert re.fullmatch(r"profit \[EUR\]: [\d.]+, 95 % interval [\d.]+ to [\d.]+", first)
    assert second.startswith("energy [kWh]: ")
    assert second.endswith("at most 5 kWh with probability 1")


def test_names_decide_which_state_is_which():
    cmdp = random_model(5).replace(state_names=["a", "b", "c"], action_names=["x", "y"])
    log = logged(cmdp, uniform(cmdp), 80, 5)
    policy = cmdpax.Policy(random_policy(cmdp, 5), cmdp)
    given = {"thresholds": cmdp.bounds, "num_states": 3, "num_actions": 2}
    plain = cmdpax.uncertainty(log, np.asarray(policy), **given)
    order, actions = [2, 0, 1], [1, 0]
    other = cmdp.replace(
        transitions=cmdp.transitions[:, order][:, :, actions][..., order],
        rewards=cmdp.rewards[:, order][:, :, actions],
        constraint_rewards=cmdp.constraint_rewards[:, :, order][..., actions],
        initial=cmdp.initial[order],
        state_names=["c", "a", "b"],
        action_names=["y", "x"],
    )
    moved = cmdpax.Policy(np.asarray(policy)[:, order][..., actions], other)
    words = {"state_names": ["a", "b", "c"], "action_names": ["x", "y"]}
    named = cmdpax.uncertainty(log, moved, thresholds=cmdp.bounds, **words)
    np.testing.assert_allclose(named.expected, plain.expected)
    with pytest.raises(cmdpax.ParameterError, match="only the log has the state 'd'"):
        cmdpax.uncertainty(
            log,
            moved,
            thresholds=cmdp.bounds,
            state_names=["a", "b", "c", "d"],
            action_names=["x", "y"],
        )


# ----------------------------------------------------------------------- what was never visited


def blind_log() -> tuple[cmdpax.CMDP, cmdpax.Log, np.ndarray]:
    """A log that never plays action 1 in state 0 at the first step, and a policy that does."""
    cmdp = random_model(6).replace(initial=[1.0, 0.0, 0.0])
    behaviour = uniform(cmdp).copy()
    behaviour[0, 0] = [1.0, 0.0]
    policy = uniform(cmdp).copy()
    policy[0, 0] = [0.0, 1.0]
    return cmdp, logged(cmdp, behaviour, 200, 6), policy


def test_unvisited_pairs_need_ranges():
    cmdp, log, policy = blind_log()
    with pytest.raises(
        cmdpax.ParameterError,
        match=r"^the policy plays action 1 in state 0 at step 0, which it reaches in 100 % of the "
        r"episodes and the log never visits; declare reward_range= and constraint_ranges=, the "
        r"least and the largest value of a step, or log that pair\.$",
    ):
        cmdpax.uncertainty(log, policy, **declared(cmdp))
    found = cmdpax.uncertainty(
        log, policy, reward_range=(0, 10), constraint_ranges=(0, 1), **declared(cmdp)
    )
    assert np.diff(found.value) > 8  # the reward of that step is uniform over [0, 10]


def test_policies_of_visited_pairs_need_none():
    cmdp, log, _ = blind_log()
    behaviour = uniform(cmdp).copy()
    behaviour[0, 0] = [1.0, 0.0]
    found = cmdpax.uncertainty(log, behaviour, **declared(cmdp))
    truth = cmdpax.evaluate(cmdp, behaviour).value
    assert found.value[0] < truth < found.value[1]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"confidence": 1.0}, "confidence is 1.0, it must be between 0 and 1"),
        ({"method": "bayes"}, "method is 'bayes'; .*known: posterior, robust"),
        ({"method": "robust"}, "reward_range is not declared, but the robust bound needs"),
        ({"samples": 3}, "samples is 3, it must be a whole number of at least 100"),
        ({"reward_range": (1, 0)}, r"reward_range is \(1, 0\), it must be two numbers"),
        (
            {"reward_range": (0, 0.1)},
            r"the log has the observation [\d.]+ outside of the declared range of the reward",
        ),
        ({"constraint_ranges": [(0, 1)] * 3}, "there are 1 constraints"),
        ({"prior_weight": 0}, "prior_weight is 0, it must be a positive number"),
        ({"thresholds": None}, "the log has constraint rewards"),
        ({"colour": "red"}, "uncertainty has no argument 'colour'"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_wrong_arguments_get_a_sentence(changes, sentence):
    cmdp = random_model(7)
    log = logged(cmdp, uniform(cmdp), 20, 7)
    with pytest.raises(cmdpax.CmdpaxError, match=sentence):
        cmdpax.uncertainty(log, uniform(cmdp), **(declared(cmdp) | changes))


def test_a_wrong_policy_gets_a_sentence():
    cmdp = random_model(8)
    log = logged(cmdp, uniform(cmdp), 20, 8)
    with pytest.raises(cmdpax.ModelError, match=r"policy has shape \(2, 3, 2\)"):
        cmdpax.uncertainty(log, uniform(cmdp)[:2], **declared(cmdp))


@pytest.mark.parametrize("plan", [cmdpax.solve, lambda cmdp: cmdpax.solve_safely(certain_log())])
def test_a_plan_in_place_of_its_policy_gets_a_sentence(plan):
    cmdp = random_model(8)
    log = logged(cmdp, uniform(cmdp), 20, 8)
    with pytest.raises(cmdpax.ParameterError, match=r"is a S\w+, which has one; give its \.policy"):
        cmdpax.uncertainty(log, plan(cmdp), **declared(cmdp))


def certain_log() -> cmdpax.Log:
    """One state, one action, one step, and no constraint."""
    return cmdpax.Log([[0, 0]], [[0]], [[1.0]], np.zeros((1, 0, 1)))
