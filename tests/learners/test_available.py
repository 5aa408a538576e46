"""Actions that are not available: no learner plays them, counts them or gives them probability."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from available_cases import HORIZON, STORAGES, Case, case
from cmdpax.jax_context import cast
from cmdpax.learners import Algorithm, Knowledge, Learner, Shown, as_algorithm
from cmdpax.learners.estimates import make_estimates
from cmdpax.learners.exploration import _best_successors
from cmdpax.learners.replanning import OptimisticPlanning
from cmdpax.learners.statistics import Trajectory, empty_statistics, record, transition_counts
from cmdpax.learning.loop import knowledge_of, make_learner, stack_runs
from configurations import configured, designed
from lanes import quick_or_whole
from learning_cases import NO_WARNING, OURS

NUM_EPISODES = 40
DETERMINISTIC = ("optimistic-planning", "vanilla-dual", "vanilla-primal-dual")
"""They are the same with and without the others: neither log A nor a draw for each pair enters."""
every_optimism = pytest.mark.parametrize(
    "optimism", ["empirical", quick_or_whole("live", quick=False)]
)
KEY = jax.random.key(5)


def capped(algorithm: str) -> dict[str, Any]:
    return {} if as_algorithm(algorithm).replans else {"max_multiplier": NO_WARNING}


def learn(cmdp: cmdpax.CMDP, algorithm: Any, **changes: Any) -> cmdpax.History:
    more = capped(algorithm) if isinstance(algorithm, str) else {"max_multiplier": NO_WARNING}
    arguments = {"num_episodes": NUM_EPISODES, "seeds": 2, "log": True} | more | changes
    return cmdpax.learn(cmdp, algorithm, **arguments)


def assert_available(one: Case, history: cmdpax.History) -> None:
    """In the policies, and in all that was played."""
    assert history.log is not None
    states, actions = history.log.states[..., :-1], history.log.actions
    assert one.flags[np.arange(HORIZON), states, actions].all()
    assert (history.policy[:, ~one.flags] == 0).all()
    np.testing.assert_allclose(history.policy.sum(axis=-1), 1, rtol=0, atol=1e-9)
    if history.plans is not None and history.plans.policies is not None:
        assert (history.plans.policies[:, :, ~one.flags] == 0).all()


@pytest.mark.parametrize("storage", [quick_or_whole(one, quick=one == "steps") for one in STORAGES])
@pytest.mark.parametrize("algorithm", OURS)
@every_optimism
def test_nothing_else_is_played(storage: str, algorithm: str, optimism: str) -> None:
    one = case(storage)
    history = learn(one.cmdp, algorithm, optimism=optimism)
    assert_available(one, history)
    assert history.optimum == pytest.approx(cmdpax.solve(one.plain).value, abs=1e-9)
    cmdpax.account(one.cmdp, history.policy)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("algorithm", OURS)
def test_nothing_else_is_counted_plain_jitted_and_vmapped(algorithm: str) -> None:
    """A learner on its own, as an author would call it."""
    one = case("steps")
    configuration = configured(algorithm, num_episodes=NUM_EPISODES)
    runs = stack_runs(one.cmdp.sizes, [configuration, configured(algorithm, 1)], 40, float)
    design, cmdp = designed(configuration), cast(one.cmdp, float)
    single = jax.tree.map(lambda array: array[0], runs)
    learner = make_learner(design, cmdp, single)
    knowledge = knowledge_of(cmdp, single.bonuses, design.rewards_known)
    episodes = _episodes(one)

    def run(some: Learner) -> tuple[Any, Shown]:
        def step(state: Any, episode: Trajectory) -> tuple[Any, Shown]:
            return some.update(state, episode, KEY), some.show(state)

        return jax.lax.scan(step, some.init(KEY), episodes)

    state, shown = jax.jit(lambda: run(learner))()
    assert (np.asarray(shown.log_policy)[:, ~one.flags] == -np.inf).all()
    assert not np.isnan(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(state)])).any()
    statistics = learner.show(state).info.statistics
    assert statistics is not None
    assert (np.asarray(statistics.visits)[~one.flags] == 0).all()
    assert int(statistics.visits.sum()) == HORIZON * len(episodes.actions)
    assert (np.asarray(transition_counts(knowledge, statistics))[~one.flags] == 0).all()
    plain = learner.update(learner.init(KEY), jax.tree.map(lambda array: array[0], episodes), KEY)
    np.testing.assert_allclose(
        np.exp(learner.show(plain).log_policy), np.exp(shown.log_policy[1]), rtol=0, atol=1e-12
    )
    batch = jax.jit(jax.vmap(lambda chosen: run(make_learner(design, cmdp, chosen))[1].log_policy))
    np.testing.assert_allclose(np.exp(batch(runs)[0]), np.exp(shown.log_policy), rtol=0, atol=1e-12)


def _episodes(one: Case) -> Trajectory:
    """Random episodes of available actions."""
    generator = np.random.default_rng(2)
    states = generator.integers(0, 3, (6, HORIZON + 1))
    actions = one.numbered(states[:, :-1], generator.integers(0, 2, (6, HORIZON)))
    observed = generator.random((6, 2, HORIZON))
    return Trajectory(
        jnp.asarray(states, jnp.int32),
        jnp.asarray(actions, jnp.int32),
        jnp.asarray(observed[:, 0]),
        jnp.asarray(observed[:, 1:]),
    )


@pytest.mark.parametrize("algorithm", DETERMINISTIC)
@every_optimism
def test_a_learner_makes_of_a_log_what_it_makes_without_the_others(
    algorithm: str, optimism: str
) -> None:
    one = case("steps")
    log = learn(one.plain, "vanilla-primal-dual", seeds=1).log
    assert log is not None
    log = log.run(0)
    numbered = log._replace(actions=one.numbered(log.states[:, :-1], log.actions))
    more: dict[str, Any] = {"optimism": optimism} | capped(algorithm)
    found = cmdpax.replay(one.cmdp, algorithm, numbered, **more)
    left = cmdpax.replay(one.plain, algorithm, log, **more)
    np.testing.assert_allclose(found.multipliers, left.multipliers, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.policies, one.widened(left.policies), rtol=0, atol=1e-9)
    assert (found.policies[:, ~one.flags] == 0).all()
    np.testing.assert_allclose(
        found.optimistic_constraint_values,
        left.optimistic_constraint_values,
        rtol=0,
        atol=1e-9,
    )


@pytest.mark.parametrize("algorithm", [name for name in OURS if not as_algorithm(name).replans])
def test_a_run_is_that_of_the_model_without_the_others(algorithm: str) -> None:
    """Without bonuses log A has no effect: caps are above all that can be reached."""
    one = case("steps")
    changes: dict[str, Any] = {"optimism": cmdpax.Optimism.empirical(0.0)}
    found, left = (learn(model, algorithm, **changes) for model in one[:2])
    assert found.log is not None
    assert left.log is not None
    np.testing.assert_array_equal(found.log.states, left.log.states)
    np.testing.assert_array_equal(
        found.log.actions, one.numbered(left.log.states[..., :-1], left.log.actions)
    )
    np.testing.assert_allclose(found.value, left.value, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        found.strong_regret.constraints, left.strong_regret.constraints, rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(found.policy, one.widened(left.policy), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "algorithm", ["regularized-primal-dual", quick_or_whole("replanning", quick=False)]
)
def test_learners_find_the_optimum_of_the_available_actions(algorithm: str) -> None:
    one = case("lists")
    history = learn(one.cmdp, algorithm, num_episodes=3000, log=False)
    np.testing.assert_allclose(history.value[:, -1], history.optimum, rtol=0, atol=0.1)


@pytest.mark.parametrize(
    "algorithm", ["regularized-dual", quick_or_whole("replanning", quick=False)]
)
def test_a_sweep_stacks_models_with_flags_of_their_own(algorithm: str, tmp_path: Any) -> None:
    """Runs of several models in one batch are those of each alone."""
    cmdps = [case("steps", seed).cmdp for seed in range(3)]
    files = [tmp_path / f"{number}.npz" for number in range(3)]
    for cmdp, path in zip(cmdps, files, strict=True):
        cmdpax.save(cmdp, path)
    specification = {
        "num_episodes": NUM_EPISODES,
        "seeds": 1,
        "cmdps": [{"file": str(path)} for path in files],
        "algorithms": [{"name": algorithm} | capped(algorithm)],
    }
    found = cmdpax.sweep(specification, tmp_path / "sweep").final
    for cmdp in cmdps:
        row = found.filter(found["cmdp"] == cmdp.fingerprint)
        alone = learn(cmdp, algorithm, seeds=1, log=False)
        assert row["strong_objective"][0] == pytest.approx(
            float(alone.strong_regret.objective[0, -1]), abs=1e-8
        )


@pytest.mark.usefixtures("double_precision")
def test_what_is_hoped_for_follows_available_actions() -> None:
    """Other actions, never tried, would promise most."""
    for seed in range(5):
        one = case("steps", seed)
        episodes = _episodes(one)
        states, actions = np.asarray(episodes.states[:, :-1]), np.asarray(episodes.actions)
        ranks = np.argmax(one.actions[np.arange(HORIZON), states] == actions[..., None], axis=-1)
        found = _hoped_for(one.cmdp, episodes)
        left = _hoped_for(one.plain, episodes._replace(actions=jnp.asarray(ranks, jnp.int32)))
        np.testing.assert_array_equal(np.take_along_axis(found, one.actions, axis=2), left)


def _hoped_for(cmdp: cmdpax.CMDP, episodes: Trajectory) -> np.ndarray:
    """The best state that may follow every pair."""
    bonuses = cmdpax.Optimism.empirical().numbers(cmdp.sizes)
    knowledge = knowledge_of(cast(cmdp, float), bonuses, True)
    statistics = empty_statistics(knowledge, of_stretches=True)
    for index in range(len(episodes.actions)):
        episode = jax.tree.map(lambda array, at=index: array[at], episodes)
        statistics = record(knowledge, statistics, episode)
    nothing = jnp.zeros((HORIZON, 2, 3))
    made = (nothing, jnp.asarray([0.7]), jnp.asarray(7), "none", 1.0)
    estimates = make_estimates(knowledge, statistics, *made)
    share = jnp.minimum(0.5 / jnp.maximum(estimates.visits, 0.25), 1.0)
    return np.asarray(_best_successors(knowledge, estimates, share))


def test_a_log_with_other_actions_is_refused() -> None:
    one = case("steps")
    log = learn(one.cmdp, "vanilla-dual", seeds=1).log
    assert log is not None
    log = log.run(0)
    actions = log.actions.copy()
    state = int(log.states[7, 1])
    actions[7, 1] = np.flatnonzero(~one.flags[1, state])[0]
    with pytest.raises(cmdpax.ModelError) as raised:
        cmdpax.replay(one.cmdp, "vanilla-dual", log._replace(actions=actions))
    assert str(raised.value) == (
        f"the log plays action {actions[7, 1]} in state {state} at episode 7, step 1, where it is "
        "not available; make it available or correct the log."
    )


def _uniform(knowledge: Knowledge, parameters: Any) -> Learner:
    """A learner that does not ask what is available."""
    return _careless("regularized-primal-dual", knowledge, parameters)


def _planning(knowledge: Knowledge, parameters: OptimisticPlanning) -> Learner:
    """One that keeps its policy for stretches."""
    return _careless("optimistic-planning", knowledge, parameters)


def _careless(algorithm: str, knowledge: Knowledge, parameters: Any) -> Learner:
    learner = as_algorithm(algorithm).factory(knowledge, parameters)
    _, *pairs = knowledge.sizes

    def show(state: Any) -> Shown:
        everything = jnp.full(pairs, -jnp.log(pairs[-1]), knowledge.initial.dtype)
        return learner.show(state)._replace(log_policy=everything)

    return learner._replace(show=show)


def test_a_learner_that_plays_other_actions_breaks_its_contract() -> None:
    one = case("steps")
    log = learn(one.cmdp, "vanilla-dual", seeds=1).log
    assert log is not None
    match = (
        r"do not sum to 1 over the available actions in episode 1 .*with -inf where knowledge.av"
    )
    with pytest.raises(cmdpax.LearnerError, match=match):
        learn(one.cmdp, _uniform)
    with pytest.raises(cmdpax.LearnerError, match=match):
        cmdpax.learn(one.cmdp, Algorithm("careless", _planning, replans=True), num_episodes=9)
    with pytest.raises(cmdpax.LearnerError, match=match):
        cmdpax.replay(one.cmdp, _uniform, log.run(0), max_multiplier=NO_WARNING)
    with pytest.raises(cmdpax.LearnerError, match="over the available actions"):
        cmdpax.Agent(
            _uniform,
            num_states=3,
            num_actions=3,
            horizon=HORIZON,
            thresholds=[1.0],
            initial=0,
            available=one.flags,
        )
