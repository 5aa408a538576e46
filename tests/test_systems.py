"""The simulated systems are what their models say, and their rules are safe."""

from pathlib import Path

import numpy as np
import pytest

import cmdpax
from examples.systems import SYSTEMS, System
from lanes import quick_or_whole

FOLDER = Path(__file__).parent.parent / "examples" / "systems"


@pytest.fixture(params=list(SYSTEMS), scope="module")
def system(request: pytest.FixtureRequest) -> System:
    return SYSTEMS[request.param](seed=3)


def every_step(system: System, policy: np.ndarray) -> np.ndarray:
    return np.broadcast_to(policy, (system.horizon, *policy.shape))


def slack(system: System, policy: np.ndarray) -> np.ndarray:
    """How far each constraint is from its threshold, in the true model."""
    reached = cmdpax.evaluate(system.model, every_step(system, policy)).constraint_values
    return system.model.words.slack(reached, system.model.bounds)


def test_they_are_short_and_listed() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "base"}
    assert files == set(SYSTEMS)
    for name in files:
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        assert len(text.splitlines()) < 90, name


def test_every_outcome_is_possible_and_declared(system: System) -> None:
    """The model is valid, and no meter leaves its range, however large its error is."""
    cmdpax.validate(system.model)
    chances, _, signals = system.tables
    told = system.declaration
    spread = 2 * np.array(system.errors)
    ranges = np.vstack([told["reward_range"], np.atleast_2d(told["constraint_ranges"])])
    means = signals[chances > 0]
    assert (means - spread >= ranges[:, 0] - 1e-12).all()
    assert (means + spread <= ranges[:, 1] + 1e-12).all()
    for coin in system.coins:
        assert 0 <= means[:, coin].min() <= means[:, coin].max() <= 1


def test_simulated_means_are_those_of_the_model(system: System) -> None:
    """Every pair of a state and an action, many times at two of the steps."""
    generator, count = np.random.default_rng(0), 1_500
    flags = np.ones((system.num_states, system.num_actions), bool)
    states, actions = np.nonzero(flags if system.available is None else system.available)
    states, actions = states[:40], actions[:40]
    exact = np.concatenate([system.model.rewards[None], system.model.signals])
    for step in (0, system.horizon - 1):
        place = (0 if system.stationary else step, states, actions)
        observed, following = system.draw(
            step, np.tile(states, (count, 1)), np.tile(actions, (count, 1)), generator
        )
        expected = np.moveaxis(exact[:, *place], 0, -1)
        error = 5 * observed.std(axis=0) / count**0.5 + 1e-9
        assert (abs(observed.mean(axis=0) - expected) <= error).all()
        chances, after, _ = (table[place] for table in system.tables)
        mean_after = (chances * after).sum(axis=-1)
        error = 5 * following.std(axis=0) / count**0.5 + 1e-9
        assert (abs(following.mean(axis=0) - mean_after) <= error).all()


@pytest.mark.parametrize("name", [quick_or_whole(name, quick=name == "kiln") for name in SYSTEMS])
def test_an_agent_takes_the_declaration_and_every_observation(name: str) -> None:
    """The loop of the documentation, with an algorithm that compiles quickly."""
    system = SYSTEMS[name](seed=3)
    agent = cmdpax.Agent("vanilla-dual", **system.declaration)
    for _ in range(2):
        state = system.reset()
        agent.start(state)
        for _ in range(system.horizon):
            reward, signals, state = system.step(agent.act(state))
            agent.observe(reward, signals, state)
        agent.end()
    assert agent.account[0].episodes == 2


def test_steps_are_those_of_the_model(system: System) -> None:
    """Episodes of the rule, one step at a time, earn the rule's value."""
    exact = cmdpax.evaluate(system.model, every_step(system, system.rule))
    returns = []
    for _ in range(8 if system.horizon > 100 else 60):
        state, total = system.reset(), np.zeros(len(system.errors))
        for _ in range(system.horizon):
            reward, signals, state = system.step(system.safe_rule(state))
            total += np.append(reward, signals)
        returns.append(total)
    variance = np.var(returns, axis=0) + 1 / len(returns)  # of few episodes that may be alike
    error = 5 * np.sqrt(variance / len(returns))
    means = np.append(exact.value, exact.constraint_values)
    assert (abs(np.mean(returns, axis=0) - means) <= error).all()


def test_the_rule_is_safe_with_slack(system: System) -> None:
    """By a twentieth of every threshold at least, and it can always be followed."""
    assert (slack(system, system.rule) > 0.05 * abs(system.model.bounds)).all()
    for state in range(system.num_states):
        assert system.is_available(state, system.safe_rule(state))


def test_every_constraint_binds_and_costs_reward(system: System) -> None:
    """A plan without constraints would be unsafe, and the rule leaves something to be learned."""
    solution = cmdpax.solve(system.model)
    np.testing.assert_allclose(solution.constraint_values, system.model.bounds, rtol=1e-6)
    assert (solution.multipliers * abs(system.model.bounds) > 0.01 * abs(solution.value)).all()
    rule = every_step(system, system.rule)
    assert cmdpax.evaluate(system.model, rule).value < solution.value - 0.05 * abs(solution.value)
