"""Certificates hold on every model, in exact arithmetic."""

import pathlib
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import exact
import strategies
from certified import HARD, METHODS, flaws_of_gap, flaws_on
from checks import one_step
from cmdpax.planning.certificate import Rounding, sharper_bound
from cmdpax.planning.dynamic_program import greedy_values
from cmdpax.planning.scaling import Scaled
from degenerate import degenerate
from lanes import quick_or_whole


def hard_models(every: int = 1) -> pytest.MarkDecorator:
    paths = enumerate(HARD[::every])
    chosen = [quick_or_whole(path, quick=index * every % 21 == 0) for index, path in paths]
    return pytest.mark.parametrize("path", chosen, ids=lambda path: path.stem)


may_fall_back = pytest.mark.filterwarnings("ignore::cmdpax.CmdpaxWarning")


# ------------------------------------------------------------------------------- every hard model


def test_there_are_hard_models() -> None:
    assert len(HARD) == 105


@hard_models()
def test_hard_models_are_solved_to_certificates_that_hold(path: pathlib.Path) -> None:
    # HiGHS takes its time with long horizons: `make certify` asks it about all of them.
    methods = METHODS if HARD.index(path) % 3 == 0 else METHODS[:1]
    assert flaws_on(cmdpax.load(path), methods=methods) == []


@hard_models(every=7)
@may_fall_back
def test_slater_gaps_and_frontiers_of_hard_models(path: pathlib.Path) -> None:
    cmdp = cmdpax.load(path)
    scales = exact.scales_of(cmdp)
    found, other = (cmdpax.slater_gap(cmdp, method) for method in METHODS)
    assert found.gap == pytest.approx(other.gap, abs=1e-7 * scales[1:].max())
    frontier = cmdpax.frontier(cmdp, num_points=4)
    reached = frontier.value[frontier.feasible]  # thresholds rise
    assert np.all(np.diff(reached) <= 1e-7 * scales[0])
    if not np.isfinite(frontier.largest_feasible):
        assert found.gap < 0
        return
    thresholds = cmdp.thresholds.copy()
    thresholds[0] = frontier.largest_feasible
    assert np.isfinite(cmdpax.solve(cmdp.replace(thresholds=thresholds)).value)
    thresholds[0] += 1e-7 * scales[1]
    with pytest.raises(cmdpax.InfeasibleError):
        cmdpax.solve(cmdp.replace(thresholds=thresholds))


@hard_models(every=7)
def test_saddle_points_of_hard_models(path: pathlib.Path) -> None:
    cmdp = cmdpax.load(path)
    scales = exact.scales_of(cmdp)
    most = 6 * scales[0] / scales[1:].min()
    saddle = cmdpax.solve_regularized(cmdp, 0.01 * scales[0], most)
    assert np.isfinite(saddle.value)
    assert saddle.residual <= 1e-7 * max(scales.max(), most)


# ------------------------------------------------------------------------- what was seen elsewhere


@pytest.mark.parametrize("name", ["gridworld", "mars-rover"])
def test_thresholds_at_the_largest_feasible(name: str) -> None:
    cmdp = cmdpax.environments.make(name)
    thresholds = cmdp.thresholds.copy()
    thresholds[0] = cmdpax.frontier(cmdp).largest_feasible
    solution = cmdpax.solve(cmdp.replace(thresholds=thresholds))
    assert solution.gap <= 1e-8
    assert solution.slater_gap == pytest.approx(0.0, abs=1e-9)


@may_fall_back
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threshold", [-1e7, -1e20, -1e139])
def test_a_constraint_that_is_switched_off(threshold: float, method: str) -> None:
    cmdp = cmdpax.environments.make("random")
    free = cmdpax.solve(cmdp.replace(constraint_rewards=np.zeros((0, 5, 5, 5)), thresholds=[]))
    solution = cmdpax.solve(cmdp.replace(thresholds=[threshold]), method)
    assert solution.value == pytest.approx(free.value, abs=1e-12)
    assert solution.multipliers.tolist() == [0.0]
    assert solution.slater_gap == pytest.approx(-threshold, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threshold", [1e20, 1e139])
def test_a_threshold_out_of_reach_is_infeasible(threshold: float, method: str) -> None:
    cmdp = cmdpax.environments.make("random").replace(thresholds=[threshold])
    with pytest.raises(cmdpax.InfeasibleError) as raised:
        cmdpax.solve(cmdp, method)
    assert raised.value.slater_gap == pytest.approx(-threshold, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "factor"), [("rewards", 1e308), ("constraint_rewards", 1e142), ("thresholds", 1e141)]
)
def test_what_cannot_be_computed_is_refused(name: str, factor: float) -> None:
    cmdp = cmdpax.environments.make("random")
    large = cmdp.replace(**{name: factor * np.maximum(getattr(cmdp, name), 0.5)})
    sentence = rf"^{name}\[.*\] is .*e\+\d\d\d.* exceeds 1e\+140; choose a larger unit\.$"
    with pytest.raises(cmdpax.ModelError, match=sentence):
        cmdpax.solve(large)
    tiny = cmdp.replace(rewards=1e-150 * cmdp.rewards)
    with pytest.raises(cmdpax.ModelError, match=r"below 1e-140; choose a smaller unit\.$"):
        cmdpax.solve(tiny)


@pytest.mark.parametrize("method", METHODS)
def test_large_units_hide_no_infeasibility(method: str) -> None:
    cmdp = one_step([1.0, 0.0], [[0.0, 0.02], [1e8, 1e8]], [0.05, 0.0])
    with pytest.raises(cmdpax.InfeasibleError) as raised:
        cmdpax.solve(cmdp, method)
    assert raised.value.worst_constraint == 0
    assert raised.value.slater_gap == pytest.approx(-0.03, abs=1e-12)


@may_fall_back
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("units", [(1e-8, 1.0, 1e8), (1e130, 1e-130, 1.0)])
def test_units_change_nothing_but_the_units(units: tuple[float, ...], method: str) -> None:
    cmdp = cmdpax.environments.make("random", num_constraints=2, seed=1)
    plain = cmdpax.solve(cmdp, method)
    reward, *others = units
    others = np.array(others)
    solution = cmdpax.solve(
        cmdp.replace(
            rewards=reward * cmdp.rewards,
            constraint_rewards=others[:, None, None, None] * cmdp.constraint_rewards,
            thresholds=others * cmdp.thresholds,
        ),
        method,
    )
    assert solution.value == pytest.approx(reward * plain.value, rel=1e-9)
    assert solution.gap <= 1e-9 * reward
    assert solution.constraint_values == pytest.approx(others * plain.constraint_values, rel=1e-9)
    assert solution.multipliers == pytest.approx(reward / others * plain.multipliers, rel=1e-7)


# ------------------------------------------------------------------------------ rounding is bounded


@pytest.mark.usefixtures("double_precision")
@given(cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED), data=st.data())
def test_errors_of_computed_bounds_are_bounded(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    scaled = Scaled(cmdp).cmdp
    size = st.floats(0.0, 1e6)
    multipliers = np.array([data.draw(size) for _ in range(cmdp.num_constraints)])
    rounding, model = Rounding(scaled), exact.as_exact(scaled)
    weights = np.insert(multipliers, 0, 1.0)
    computed = weights @ greedy_values(scaled, weights[None])[0] - multipliers @ scaled.thresholds
    error = float(rounding.of_bound(multipliers, 0, scaled.thresholds))
    true = exact.dual_value(model, multipliers, scaled.thresholds)
    assert abs(true - exact.fixed(computed)) <= exact.fixed(error)
    for worth in (error, 0.0):  # with more mantissa, which some machines lack, and in integers
        finer, smaller = sharper_bound(scaled, rounding, multipliers, 0, scaled.thresholds, worth)
        assert smaller < error or worth
        assert abs(true - exact.fixed(finer)) <= exact.fixed(smaller)
    assert smaller <= 2.0**-52 * abs(finer)


def test_large_models_get_no_second_look() -> None:
    cmdp = cmdpax.environments.make("gridworld", height=40, width=40, horizon=200)
    bounds = Rounding(cmdp)
    thresholds = np.zeros(cmdp.num_constraints)
    assert sharper_bound(cmdp, bounds, thresholds, 0, thresholds, 0.0) is None


def test_long_horizons_are_certified_beyond_double_precision() -> None:
    """Worst-case bounds of double precision would leave 1e-6 here."""
    [path] = [path for path in HARD if path.stem == "default_raises_3998"]
    solution = cmdpax.solve(cmdpax.load(path))
    assert solution.multipliers.max() > 1e3
    assert solution.gap < 1e-7


@pytest.mark.exact
@may_fall_back
def test_steep_optima_are_certified_in_integers() -> None:
    """λ is 4e6 relative to scale: with 64 bits of mantissa the bound would err by 4e-7."""
    cmdp = degenerate(12_003_869).cmdp
    for method in METHODS:
        solution = cmdpax.solve(cmdp, method)
        assert solution.gap < 1e-8 * np.abs(cmdp.rewards).max()
        assert not exact.flaws_of(cmdp, solution)


@may_fall_back
@pytest.mark.parametrize(
    "seed", [14_006_347, 14_010_937, 14_020_266, 14_021_103, 31_010_529, 41_001_170]
)
def test_rounding_of_constant_constraints_decides_nothing(seed: int) -> None:
    """Every policy has the same V_u but for its last bits: bases of the master are nearly singular.

    The first was certified 5 below its optimum, with the bound of thresholds that nothing met; the
    others had a wrong Slater gap, or stopped undecided.
    """
    model = degenerate(seed)
    assert not flaws_on(model.cmdp, model.feasible)
    assert not flaws_of_gap(model)


# ---------------------------------------------------------------------------- the verifier verifies


def claims(**changes: Any) -> list[str]:
    cmdp = cmdpax.environments.make("random")
    solution = cmdpax.solve(cmdp)
    names = ("value", "gap", "multipliers", "policy")
    claimed = {name: getattr(solution, name) for name in names} | changes
    return exact.flaws_of(cmdp, SimpleNamespace(**claimed))


def test_wrong_claims_are_found() -> None:
    solution = cmdpax.solve(cmdpax.environments.make("random"))
    assert claims() == []
    assert "the bound is" in claims(value=solution.value - 1e-11, gap=0.0)[0]
    assert "the bound is" in claims(multipliers=solution.multipliers + 1e-6)[0]
    assert "worth" in claims(value=solution.value + 1e-9)[0]
    assert "gap" in claims(gap=-1e-15)[0]
    spread = 0.999 * solution.policy + 0.0002
    assert any("random in 21 places" in flaw for flaw in claims(policy=spread))
    greedy = np.eye(5)[np.zeros((5, 5), dtype=int)]
    assert any("is missed by" in flaw for flaw in claims(policy=greedy))


def test_methods_that_disagree_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cmdp = cmdpax.environments.make("bandit")
    assert flaws_on(cmdp, feasible=True) == []
    assert "feasible is False" in flaws_on(cmdp, feasible=False)[0]
    original = cmdpax.solve

    def other(model: cmdpax.CMDP, method: str) -> cmdpax.Solution:
        solution = original(model, method)
        if method == "occupancy-lp":
            solution.value -= 1e-6
            solution.gap += 2e-6
        return solution

    monkeypatch.setattr(cmdpax, "solve", other)
    assert any("the methods differ" in flaw for flaw in flaws_on(cmdp))


def test_a_fallback_is_no_flaw(monkeypatch: pytest.MonkeyPatch) -> None:
    from cmdpax.planning import linear_program

    monkeypatch.setattr(linear_program, "maximise_reward", lambda cmdp: "HiGHS is on holiday")
    cmdp = cmdpax.environments.make("bandit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert flaws_on(cmdp) == []
    with pytest.warns(cmdpax.CmdpaxWarning, match="HiGHS is on holiday"):
        cmdpax.solve(cmdp, "occupancy-lp")
