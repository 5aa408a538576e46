"""The schemes of the field: against slow NumPy, and what their publications claim."""

import contextlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
import reference
import scheme_reference
from available_cases import STORAGES, case
from checks import assert_distributions
from cmdpax.model.availability import stack_models
from cmdpax.schemes import Move, Scheme
from cmdpax.schemes.known.accelerated_dual import curvature
from cmdpax.schemes.known.augmented_lagrangian import line_search
from cmdpax.schemes.registry import as_scheme
from cmdpax.schemes.scheme import at_iteration
from cmdpax.schemes.updates import projected_ascent
from lanes import quick_or_whole
from learning_cases import model

POWER = cmdpax.schedules.power
SETTINGS: dict[str, dict[str, Any]] = {
    "opg-pd": {"step_size": POWER(0.4, 0.2, 1.0), "max_multiplier": 1.5},
    "omwu-pd": {"step_size": POWER(0.9, 0.2), "max_multiplier": 1.5},
    "reload": {"step_size": POWER(0.9, 0.2), "max_multiplier": 1.5},
    "pid": {
        "step_size": 0.5,
        "proportional_gain": 0.7,
        "integral_gain": POWER(0.5, 0.1),
        "derivative_gain": 0.4,
        "max_multiplier": 1.5,
    },
    "crpo": {"step_size": 0.5, "tolerance": POWER(0.2, 0.5)},
    "accelerated-dual": {"relative_step": 2.0, "regularization": 0.1, "max_multiplier": 3.0},
    "augmented-lagrangian": {"penalty": POWER(0.5, -0.2), "inner_steps": 4},
}
NAMES = tuple(cmdpax.scheme_names())


def assert_is_the_reference(cmdp: cmdpax.CMDP, name: str, iterations: int = 40) -> None:
    """Values, multipliers, the last policy and the mixture."""
    given = SETTINGS[name]
    found = cmdpax.iterate(cmdp, name, num_iterations=iterations, **given)
    flags = None if cmdp.available is None else np.broadcast_to(cmdp.available, cmdp.sizes[1:])
    world = scheme_reference.World(reference.densify(cmdp), flags)
    plain = {key: tuple(x) if isinstance(x, tuple) else x for key, x in given.items()}
    seen = scheme_reference.scheme(world, name, iterations, **plain)
    masses = [world.mass(one.policy) for one in seen]
    values = np.array([world.reached(mass) for mass in masses])
    close = {"rtol": 0, "atol": 1e-8, "err_msg": name}
    np.testing.assert_allclose(found.multipliers, [one.multipliers for one in seen], **close)
    np.testing.assert_allclose(found.value, values[:, 0], **close)
    np.testing.assert_allclose(found.constraint_values, values[:, 1:], **close)
    np.testing.assert_allclose(found.policy, seen[-1].policy, **close)
    weighted = sum(one.weight * mass for one, mass in zip(seen, masses, strict=True))
    np.testing.assert_allclose(found.mixture, world.policy_of(weighted), **close)
    assert found.potential is None


@pytest.mark.parametrize("num_constraints", [quick_or_whole(n, quick=n == 2) for n in (1, 2, 3)])
@pytest.mark.parametrize("name", SETTINGS)
def test_is_its_recursion(name: str, num_constraints: int) -> None:
    assert_is_the_reference(model(num_constraints), name)


@pytest.mark.parametrize("storage", [quick_or_whole(s, quick=s == "lists") for s in STORAGES])
@pytest.mark.parametrize("name", SETTINGS)
def test_with_actions_that_are_not_available(name: str, storage: str) -> None:
    assert_is_the_reference(case(storage, num_constraints=2).cmdp, name, 25)


@pytest.mark.parametrize("name", NAMES)
def test_without_constraints_it_looks_for_the_best_policy(name: str) -> None:
    cmdp = model(1).replace(constraint_rewards=np.zeros((0, 3, 3, 2)), thresholds=[], senses=())
    best = cmdpax.solve(cmdp).value
    given = {"accelerated-dual": {"regularization": 1e-3}, "rpg-pd": {"policy_floor": 0.0}}
    settings = given.get(name, {})
    if "step_size" in as_scheme(name).names:
        settings = {"step_size": 2.0, **settings}
    found = cmdpax.iterate(cmdp, name, num_iterations=200, **settings)
    assert found.multipliers.shape == found.constraint_values.shape == (200, 0)
    assert found.value[-1] == pytest.approx(best, abs=0.02)
    assert_distributions(found.policy)
    assert_distributions(found.mixture)


# ------------------------------------------------------------------------------- in any program


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("name", NAMES)
def test_steps_run_jitted_and_vmapped_over_models_and_parameters(name: str) -> None:
    """One definition, alone and in a batch of two models with parameters of their own."""
    scheme, models = as_scheme(name), [model(2), model(2, seed=1)]
    chosen = [scheme.choose({}, 3), scheme.choose(_others(scheme), 3)]
    numbers = [scheme.numbers(one) for one in chosen]
    choices = scheme.choices(chosen[0])

    def few(cmdp: cmdpax.CMDP, numbers: dict[str, Any]) -> tuple[Any, Any]:
        record = scheme.assemble(numbers, choices)
        state, shown = scheme.init(cmdp, record), []
        for k in range(1, 4):
            move = scheme.step(cmdp, at_iteration(record, jnp.int32(k)), state)
            state = move.state
            shown.append((move.log_policy, move.multipliers))
        return shown[-1]

    together = stack_models(models)
    stacked = jax.tree.map(lambda *parts: jnp.stack([*map(jnp.asarray, parts)]), *numbers)
    batch = jax.jit(jax.vmap(few))(together, stacked)
    for index, (cmdp, one) in enumerate(zip(models, numbers, strict=True)):
        alone = few(jax.device_put(cmdp), jax.tree.map(jnp.asarray, one))
        for part, whole in zip(alone, batch, strict=True):
            np.testing.assert_allclose(np.exp(whole[index]), np.exp(part), rtol=0, atol=1e-10)


def _others(scheme: Scheme) -> dict[str, Any]:
    """Other numbers than the defaults, for whatever the scheme has."""
    numbers = {"step_size": 0.7, "regularization": 0.1, "penalty": 2.0, "tolerance": 0.2}
    return {name: number for name, number in numbers.items() if name in scheme.names}


@pytest.mark.parametrize("name", NAMES)
def test_iterations_do_not_depend_on_how_many_there_are(name: str) -> None:
    """Also across the blocks of the loop."""
    one, more = (cmdpax.iterate(model(1), name, num_iterations=t) for t in (1030, 1040))
    np.testing.assert_array_equal(one.value, more.value[:1030])
    np.testing.assert_array_equal(one.multipliers, more.multipliers[:1030])


# ---------------------------------------------------------------------------- what is chosen


def test_rpg_pd_is_the_primal_dual_scheme_with_a_floor() -> None:
    given = {"num_iterations": 60, "regularization": 0.05, "policy_floor": 0.1, "step_size": 0.3}
    one, other = (cmdpax.iterate(model(2), name, **given) for name in ("rpg-pd", "primal-dual"))
    for name in ("value", "multipliers", "potential", "policy", "mixture"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    defaults = cmdpax.iterate(model(2), "rpg-pd", num_iterations=5)
    assert defaults.potential is not None
    assert as_scheme("rpg-pd").choose({}, 1).policy_floor > 0


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        (
            "pid",
            {"policy_floor": 0.1},
            "pid has no parameter 'policy_floor'; known: derivative_gai",
        ),
        ("reload", {"step": 0.1}, "reload has no parameter 'step'; did you mean 'step_size'?"),
        ("crpo", {"tolerance": -1}, "tolerance is -1, it must not be negative."),
        ("accelerated-dual", {"regularization": 0}, "must be a positive number; use dual."),
        ("accelerated-dual", {"regularization": POWER(1, 1)}, "it must be a positive number."),
        ("augmented-lagrangian", {"inner_steps": 0}, "inner_steps is 0, it must be"),
        ("augmented-lagrangian", {"inner_steps": 2.5}, "inner_steps is 2.5, it must be"),
        ("augmented-lagrangian", {"inner_steps": 10**9}, "it must not exceed 10000."),
        ("rpg-pd", {"regularization": 20}, "step_size times regularization is 2 at episode 1"),
        ("rpg", {}, "scheme is 'rpg'; did you mean 'rpg-pd'?"),
    ],
)
def test_refused(name: str, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError) as caught:
        cmdpax.iterate(model(1), name, num_iterations=3, **given)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_out_of_all_proportion_are_refused_or_harmless(name: str) -> None:
    """No policy is invented where the numbers overflow."""
    huge = {"step_size": 1e308, "penalty": 1e308, "relative_step": 1e308}
    given = {key: number for key, number in huge.items() if key in as_scheme(name).names}
    given |= {"regularization": 0.0} if name == "rpg-pd" else {}
    found = None
    with contextlib.suppress(cmdpax.ParameterError):
        found = cmdpax.iterate(model(2), name, num_iterations=8, **given)
    if found is not None:
        assert_distributions(found.policy)


class Own(NamedTuple):
    """The parameters of a scheme of one's own."""

    price: float = 0.5


def test_a_scheme_of_ones_own() -> None:
    """It plans for a price that never changes, and keeps count."""
    dual = as_scheme("dual")

    def init(cmdp: cmdpax.CMDP, parameters: Own) -> Any:
        return jnp.asarray(0, jnp.int32)

    def step(cmdp: cmdpax.CMDP, rates: Any, count: Any) -> Move:
        prices = jnp.full(cmdp.num_constraints, rates.price)
        planned = dual.greedy_step(cmdp, dual.record(*map(jnp.asarray, (0.1, 0.0, 6.0))), prices)
        return Move(planned.log_policy, prices, count + 1, weight=(count < 1).astype(float))

    own = Scheme("own", init, step, Own)
    found = cmdpax.iterate(model(1), own, num_iterations=3, price=0.25)
    assert (found.multipliers == 0.25).all()
    cmdp = model(1)
    priced = cmdp.replace(rewards=cmdp.rewards + 0.25 * cmdp.constraint_rewards[0], thresholds=[0])
    best = cmdpax.solve(priced).value
    reached = found.value + 0.25 * found.constraint_values[:, 0]
    np.testing.assert_allclose(reached, best, rtol=0, atol=1e-10)
    with pytest.raises(cmdpax.ParameterError, match="own has no parameter 'prize'"):
        cmdpax.iterate(model(1), own, num_iterations=3, prize=1)


# --------------------------------------------------------------------------- what is published


def last_errors(cmdp: cmdpax.CMDP, name: str, num_iterations: int, **given: Any) -> np.ndarray:
    """The largest error of value and constraint in the last tenth of the iterates."""
    best = cmdpax.solve(cmdp)
    found = cmdpax.iterate(cmdp, name, num_iterations=num_iterations, **given)
    tail = slice(-num_iterations // 10, None)
    missed = np.maximum(cmdp.bounds - found.constraint_values[tail], 0)
    return max(np.abs(best.value - found.value[tail]).max(), missed.max())


@pytest.mark.parametrize("environment", ["bandit", "random"])
def test_optimistic_schemes_converge_where_the_vanilla_one_oscillates(environment: str) -> None:
    cmdp = cmdpax.environments.make(environment)
    given = {"num_iterations": 3000, "step_size": 0.2}
    vanilla = last_errors(cmdp, "primal-dual", **given)
    assert vanilla > 0.1
    assert last_errors(cmdp, "opg-pd", **given) < 0.01
    for name in ("omwu-pd", "reload"):
        assert last_errors(cmdp, name, **given) < vanilla / 4
        assert last_errors(cmdp, name, 3000, step_size=0.6) < 0.02


def test_opg_pd_converges_linearly() -> None:
    """Errors fall by a factor in every stretch, down to rounding."""
    cmdp = cmdpax.environments.make("bandit")
    found = cmdpax.iterate(cmdp, "opg-pd", num_iterations=6000, step_size=0.2)
    errors = np.abs(found.constraint_values[:, 0] - 0.5) + np.abs(found.multipliers[:, 0] - 1)
    worst = errors.reshape(6, 1000).max(axis=1)
    assert (worst[1:] < 0.2 * worst[:-1] + 1e-12).all()
    assert worst[-1] < 1e-6


def test_omwu_pd_and_reload_make_the_same_steps_inside_the_box() -> None:
    """2Q_k - Q_{k-1}, once both know a gradient: their starts differ."""
    rng = np.random.default_rng(0)
    log_policy, first, second = (jnp.asarray(rng.normal(size=(2, 3, 4))) for _ in range(3))
    omwu = as_scheme("omwu-pd").step.keywords["ascend"]
    eta = jnp.asarray(0.3)
    played = omwu(log_policy, first, eta, None)
    following = omwu(omwu(log_policy, second, eta, None), second, eta, None)
    reload = played + eta * (2 * second - first)
    expected = reload - jax.nn.logsumexp(reload, axis=-1, keepdims=True)
    np.testing.assert_allclose(following, expected, rtol=0, atol=1e-5)


def test_pid_without_p_and_d_is_the_vanilla_dual_step() -> None:
    given = {"proportional_gain": 0.0, "derivative_gain": 0.0, "integral_gain": 0.4}
    cmdp = model(2)
    found = cmdpax.iterate(
        cmdp, "pid", num_iterations=80, step_size=2.0, max_multiplier=1.0, **given
    )
    before = np.vstack([np.zeros(2), found.multipliers[:-1]])
    expected = np.clip(before - 0.4 * (found.constraint_values - cmdp.bounds), 0, 1.0)
    np.testing.assert_allclose(found.multipliers, expected, rtol=0, atol=1e-12)
    assert 0 < found.multipliers.max() <= 1.0


def test_pid_is_damped_by_its_proportional_term() -> None:
    cmdp, given = cmdpax.environments.make("random"), {"num_iterations": 3000, "step_size": 0.5}

    def swing(gain: float) -> float:
        found = cmdpax.iterate(cmdp, "pid", proportional_gain=gain, **given)
        return float(np.ptp(found.constraint_values[-500:]))

    assert swing(0.0) > 0.1
    assert swing(1.0) < 1e-3


def test_the_accelerated_dual_keeps_its_guarantee_and_beats_plain_descent() -> None:
    """D(λ) - min D ≤ 2L‖λ*‖²/(k + 1)², with the curvature that the scheme itself assumes."""
    cmdp, tau = cmdpax.environments.make("random"), 0.1

    def dual_function(multipliers: np.ndarray) -> float:
        priced = cmdp.rewards + np.tensordot(multipliers, cmdp.constraint_rewards, axes=1)
        priced = cmdp.replace(
            rewards=priced, constraint_rewards=np.zeros((0, 5, 5, 5)), thresholds=[], senses=()
        )
        found = cmdpax.solve_regularized(priced, tau)
        return found.value - float(multipliers @ cmdp.thresholds)

    found = cmdpax.iterate(cmdp, "accelerated-dual", num_iterations=2000, regularization=tau)
    best = found.multipliers[-1]
    assert abs(found.constraint_values[-1, 0] - cmdp.bounds[0]) < 1e-10
    with jax.enable_x64(True):
        bound = float(curvature(jax.device_put(cmdp), tau))
    errors = [
        dual_function(found.multipliers[k - 1]) - dual_function(best) for k in (2, 5, 20, 80, 300)
    ]
    limits = [2 * bound * float(best @ best) / k**2 for k in (2, 5, 20, 80, 300)]
    assert all(error <= limit for error, limit in zip(errors, limits, strict=True))
    plain = cmdpax.iterate(
        cmdp, "dual", num_iterations=300, regularization=tau, step_size=1 / bound
    )
    assert abs(plain.multipliers[-1] - best) > 10 * abs(found.multipliers[299] - best)


def test_crpo_stays_near_the_threshold_and_mixes_what_meets_it() -> None:
    cmdp = cmdpax.environments.make("random")
    best = cmdpax.solve(cmdp)
    found = cmdpax.iterate(cmdp, "crpo", num_iterations=3000, step_size=0.2, tolerance=0.01)
    mixture = cmdpax.evaluate(cmdp, found.mixture)
    assert mixture.constraint_values[0] >= cmdp.bounds[0] - 0.01 - 1e-12
    assert abs(mixture.value - best.value) < 0.05
    assert (found.multipliers == 0).all()


@pytest.mark.parametrize(
    ("environment", "penalty"),
    [("bandit", 1.0), ("random", 1.0), ("inventory", 10.0), ("queue", 0.1)],
)
def test_the_augmented_lagrangian_is_there_in_few_iterations(
    environment: str, penalty: float
) -> None:
    cmdp = cmdpax.environments.make(environment)
    best = cmdpax.solve(cmdp)
    found = cmdpax.iterate(
        cmdp, "augmented-lagrangian", num_iterations=30, inner_steps=40, penalty=penalty
    )
    slack = cmdp.words.slack(found.constraint_values[-1], cmdp.bounds)
    assert abs(found.value[-1] - best.value) < 1e-4
    assert slack.min() > -1e-4
    np.testing.assert_allclose(found.multipliers[-1], best.multipliers, rtol=0, atol=0.01)


# ------------------------------------------------------------------------------- their parts


@pytest.mark.usefixtures("double_precision")
def test_projected_ascent_finds_the_nearest_distribution() -> None:
    """Any number of actions may be missing; a row may be there already."""
    rng = np.random.default_rng(5)
    flags = rng.random((2, 20, 5)) < 0.6
    flags[..., 1] |= ~flags.any(axis=-1)
    policy = np.where(flags, rng.random(flags.shape), 0)
    policy /= policy.sum(axis=-1, keepdims=True)
    q = 3 * rng.normal(size=flags.shape)
    with np.errstate(divide="ignore"):
        log_policy = jnp.asarray(np.log(policy))
    moved = jnp.asarray(q), jnp.asarray(0.5), jnp.asarray(flags)
    found = np.exp(projected_ascent(log_policy, *moved))
    assert_distributions(found)
    world = scheme_reference.World.__new__(scheme_reference.World)
    world.flags, world.horizon, world.num_states = flags, *flags.shape[:2]
    np.testing.assert_allclose(found, world.project(policy, q, 0.5), rtol=0, atol=1e-12)
    still = np.exp(projected_ascent(log_policy, jnp.zeros(q.shape), *moved[1:]))
    np.testing.assert_allclose(still, policy, rtol=0, atol=1e-12)
    far = np.exp(projected_ascent(log_policy, jnp.asarray(q), jnp.asarray(1e200), moved[2]))
    best = np.argmax(np.where(flags, q, -np.inf), axis=-1)
    np.testing.assert_array_equal(far, np.eye(5)[best])


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("num_constraints", [0, 1, 3])
def test_the_line_search_finds_the_maximum(num_constraints: int) -> None:
    rng = np.random.default_rng(num_constraints)
    grid = np.linspace(0, 1, 20_001)
    ends = set()
    for _ in range(40):
        change, prices = rng.normal(size=1 + num_constraints), rng.normal(size=num_constraints)
        change[1:] *= rng.integers(0, 2, num_constraints)  # some do not change at all
        brackets = np.maximum(prices - 2.0 * grid[:, None] * change[1:], 0)
        worth = grid * change[0] - (brackets**2).sum(axis=1) / (2 * 2.0)
        share = float(line_search(*map(jnp.asarray, (change, prices, 2.0))))
        at_share = np.maximum(prices - 2.0 * share * change[1:], 0)
        reached = share * change[0] - (at_share**2).sum() / (2 * 2.0)
        assert 0 <= share <= 1
        assert reached >= worth.max() - 1e-12
        ends.add(share if share in (0, 1) else 0.5)
    assert ends >= {0, 1}
    assert num_constraints == 0 or 0.5 in ends
