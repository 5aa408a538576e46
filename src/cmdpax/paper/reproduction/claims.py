"""The paper's claims, each with the quantities that decide it.

A configuration is chosen per algorithm and CMDP in hindsight, by the sum of the strong regrets, as
the paper does; differences are between runs with the same seed.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from cmdpax.model.evaluation import evaluate
from cmdpax.paper.reproduction.experiment import (
    DECAYING_STEP_SIZE,
    DUAL,
    LARGER,
    PRIMAL_DUAL,
    REGULARIZATION,
    STEP_SIZE,
    VANILLA_STEP_SIZES,
)
from cmdpax.paper.reproduction.measured import STRONG, Measured, first_of, means, total
from cmdpax.paper.reproduction.verdict import Claim, Quantity
from cmdpax.planning import solve_regularized
from cmdpax.schemes.iteration import iterate

_EXACT_ITERATIONS = 100_000


def strong_regrets(number: int, paper: Measured, pair: tuple[str, str]) -> Claim:
    """Claims 1 and 2: the strong regrets of regularized are below those of vanilla."""
    vanilla, regularized = pair
    parts = {"objective": STRONG[:1], "constraint": STRONG[1:], "objective + constraint": STRONG}
    quantities = []
    for part, columns in parts.items():
        text = f"strong {part} regret, regularized minus vanilla"
        found = paper.difference(regularized, vanilla, columns)
        quantities.append(Quantity(text, found, "below"))
    cmdp = first_of(paper.cmdps)
    kind = regularized.removeprefix("regularized-")
    return Claim(
        number,
        f"The strong regrets of the regularized {kind} algorithm are below the vanilla one's.",
        tuple(quantities),
        f"On the first CMDP, objective and constraint: regularized "
        f"{means(paper.best(cmdp, regularized), STRONG)}, "
        f"vanilla {means(paper.best(cmdp, vanilla), STRONG)}.",
    )


def weak_regrets(paper: Measured) -> Claim:
    """Claim 3: with weak regrets it is the other way round."""
    quantities = []
    for vanilla, regularized in (PRIMAL_DUAL, DUAL):
        kind = vanilla.removeprefix("vanilla-")
        for part, column in (("objective", "weak_objective"), ("constraint", "weak_constraints")):
            text = f"weak {part} regret, vanilla minus regularized, {kind}"
            found = paper.difference(vanilla, regularized, (column,))
            quantities.append(Quantity(text, found, "below"))
        text = f"vanilla's weak objective regret per episode of the second half, {kind}"
        slopes = paper.each(_late_slope, paper, vanilla)
        quantities.append(Quantity(text, slopes, "below", 0.01))
    return Claim(
        3,
        "With weak regrets it is the other way round, and vanilla's weak objective regret is flat "
        "or negative.",
        tuple(quantities),
        "Flat: below 0.01 per episode. Where the other part fails: a fixed τ can leave the "
        "regularized policy slightly unsafe and slightly better than optimal, and its weak "
        "objective regret below vanilla's.",
    )


def _late_slope(cmdp: str, paper: Measured, algorithm: str) -> np.ndarray:
    last = paper.num_episodes
    curve = paper.curve(cmdp, algorithm, "weak_objective", [last // 2, last])
    return np.asarray((curve[:, 1] - curve[:, 0]) / (last - last // 2))


def damped(paper: Measured) -> Claim:
    """Claim 4: the oscillation is smaller with τ."""
    return Claim(
        4,
        "Regularization damps the oscillation of the violation.",
        tuple(
            Quantity(
                f"standard deviation over the second half, {regularized} minus {vanilla}",
                paper.difference(regularized, vanilla, ("violation_std",)),
                "below",
            )
            for vanilla, regularized in (PRIMAL_DUAL, DUAL)
        ),
    )


def step_sizes(paper: Measured) -> Claim:
    """Claim 5: η changes the frequency of the oscillation, not its size."""
    vanilla, small, large = PRIMAL_DUAL[0], min(VANILLA_STEP_SIZES), max(VANILLA_STEP_SIZES)

    def pair(cmdp: str, column: str) -> tuple[np.ndarray, np.ndarray]:
        rows = (paper.rows(cmdp, vanilla, step_size=eta) for eta in (large, small))
        first, second = (total(row, (column,)) for row in rows)
        return first, second

    faster = f"sign changes per 1,000 episodes, η = {large} minus η = {small}"
    changes = paper.each(lambda cmdp: np.subtract(*pair(cmdp, "sign_changes")))
    ratio = f"standard deviation over the second half, η = {large} over η = {small}"
    ratios = paper.each(lambda cmdp: np.divide(*pair(cmdp, "violation_std")))
    exact = f"the same with the model known, second half of {_EXACT_ITERATIONS:,} iterations"
    return Claim(
        5,
        "With a larger η vanilla oscillates faster, but not less.",
        (
            Quantity(faster, changes, "above"),
            Quantity(ratio, ratios, "above", 0.9),
            Quantity(exact, paper.each(_exact_ratio, paper, large, small), "above", 0.9),
        ),
        "“Not less”: at least 0.9 times. A larger η also ends the first, large swings sooner, of "
        "which a short run's second half still has some; the oscillation that stays, seen with "
        "the model known, has the same size.",
    )


def _exact_ratio(cmdp: str, paper: Measured, large: float, small: float) -> np.ndarray:
    """Divide the oscillation of one step size by another's, with the model known."""
    model = paper.results.cmdps[paper.cmdps[cmdp]]
    sizes = []
    for eta in (large, small):
        found = iterate(model, "primal-dual", num_iterations=_EXACT_ITERATIONS, step_size=eta)
        sizes.append(found.constraint_values[_EXACT_ITERATIONS // 2 :, 0].std())
    return certain(sizes[0] / sizes[1])


def certain(number: float) -> np.ndarray:
    """Write a number that no chance is in as two equal runs: its interval is a point."""
    return np.repeat(number, 2)


def persistent(long: Measured) -> Claim:
    """Claim 6: vanilla's violations persist."""
    vanilla = PRIMAL_DUAL[0]
    kinds: tuple[tuple[str, dict[str, float]], ...] = (
        (f"constant η = {STEP_SIZE}", {"step_size_exponent": 0.0}),
        (f"decaying η = {DECAYING_STEP_SIZE}", {"step_size_exponent": 0.2}),
    )

    def exponent(cmdp: str, chosen: dict[str, float]) -> np.ndarray:
        return total(long.rows(cmdp, vanilla, **chosen), ("growth_constraints",))

    return Claim(
        6,
        "Vanilla's violations persist: its strong constraint regret grows linearly in the end, "
        "also with a decaying η.",
        tuple(
            Quantity(
                f"growth exponent over the last decade of {long.num_episodes:,} episodes, {text}",
                long.each(exponent, chosen),
                "above",
                0.9,
            )
            for text, chosen in kinds
        ),
        _decades(long, vanilla, "swings", "constant η", step_size_exponent=0.0),
    )


def _decades(long: Measured, algorithm: str, what: str, kind: str, **chosen: float) -> str:
    """List the growth exponents on the first CMDP, decade by decade."""
    import polars

    runs = long.rows(first_of(long.cmdps), algorithm, **chosen)["run"].to_list()
    curve = (
        long.results.curves.filter(polars.col("run").is_in(runs))
        .group_by("episode")
        .agg(polars.col("strong_constraints").mean())
        .sort("episode")
        .collect()
    )
    episodes, regrets = (curve[name].to_numpy() for name in ("episode", "strong_constraints"))
    ends = [k for k in (10**3, 10**4, 10**5, 10**6) if k <= long.num_episodes]
    at = np.exp(np.interp(np.log(ends), np.log(episodes), np.log(np.maximum(regrets, 1e-300))))
    shown = [
        f"{np.log10(at[i + 1] / at[i]):.2f} over [{start:,}, {end:,}]"
        for i, (start, end) in enumerate(itertools.pairwise(ends))
    ]
    if not shown:
        return ""
    return (
        f"The first {what} are larger than those that stay, so the exponent approaches 1 from "
        f"below, if they stay; on the first CMDP with {kind} it is {', '.join(shown)}."
    )


def caps(measured: Measured) -> Claim:
    """Claim 7: λ_max is immaterial once it is large."""

    def change(cmdp: str, algorithm: str, cap: float) -> np.ndarray:
        found = total(measured.rows(cmdp, algorithm, max_multiplier=cap), STRONG)
        largest = total(measured.rows(cmdp, algorithm, max_multiplier=24.0), STRONG)
        return np.asarray(abs(found - largest) / largest)

    return Claim(
        7,
        "λ_max is immaterial once it is large.",
        tuple(
            Quantity(
                f"change of the strong regrets' sum, λ_max = {cap:g} against 24, {algorithm}",
                measured.each(change, algorithm, cap),
                "below",
                0.05,
            )
            for algorithm in PRIMAL_DUAL
            for cap in (6.0, 12.0)
        ),
        "Immaterial: a relative change below 0.05.",
    )


def dual_alike(paper: Measured, costs: dict[str, np.ndarray]) -> Claim:
    """Claim 8: dual performs like primal-dual, at a higher cost per episode."""
    primal_dual, dual = PRIMAL_DUAL[1], DUAL[1]

    def ratio(cmdp: str) -> np.ndarray:
        first, second = (total(paper.best(cmdp, name), STRONG) for name in (dual, primal_dual))
        return np.asarray(np.abs(np.log2(first / second)))

    text = "log₂ of the ratio of the strong regrets' sums, its absolute value"
    return Claim(
        8,
        "The regularized dual algorithm performs like the primal-dual one, at a higher cost per "
        "episode.",
        (
            Quantity(text, paper.each(ratio), "below", 1.0),
            Quantity("time per episode, dual over primal-dual", costs, "above", 1.0),
        ),
        "Alike: within a factor of two. " + _regret_ratio(paper, primal_dual, dual),
    )


def _regret_ratio(paper: Measured, primal_dual: str, dual: str) -> str:
    cmdp = first_of(paper.cmdps)
    first, second = (total(paper.best(cmdp, name), STRONG).mean() for name in (dual, primal_dual))
    return (
        f"On the first CMDP the sums are {first:.4g} (dual) and {second:.4g} (primal-dual): the "
        "dual algorithm plans for its multipliers anew in every episode."
    )


def larger_sizes(sizes: dict[str, Measured]) -> Claim:
    """Claim 9: larger CMDPs behave alike."""
    vanilla, regularized = PRIMAL_DUAL
    quantities = []
    for name, measured in sizes.items():
        for part, columns in (("strong regrets' sum", STRONG), ("oscillation", ("violation_std",))):
            text = f"{part}, regularized minus vanilla, {name}"
            found = measured.difference(regularized, vanilla, columns)
            quantities.append(Quantity(text, found, "below"))
    remark = "Same grids of η and τ, same number of episodes."
    return Claim(9, "Larger CMDPs behave alike.", tuple(quantities), remark)


def strict_safety(safety: Measured) -> Claim:
    """Claim 10: with the margin of strict safety the share of unsafe episodes falls."""
    algorithm = PRIMAL_DUAL[1]

    def change(cmdp: str, column: str) -> np.ndarray:
        without, margin = _margins(safety, cmdp, algorithm)
        return total(margin, (column,)) - total(without, (column,))

    cmdp = first_of(safety.cmdps)
    without, margin = _margins(safety, cmdp, algorithm)
    columns = ("unsafe_at_1e-09", "strong_objective")
    return Claim(
        10,
        "With the strict-safety margin the share of unsafe episodes falls.",
        tuple(
            Quantity(
                f"share of episodes with a violation ≥ {level}, with margin minus without",
                safety.each(change, f"unsafe_at_{level}"),
                "below",
            )
            for level in ("1e-09", "0.01", "0.1")
        ),
        f"The margin is {margin['margin'][0]:.4g}. Its price, on the first CMDP: share of unsafe "
        f"episodes and strong objective regret go from {means(without, columns)} to "
        f"{means(margin, columns)}.",
    )


def _margins(safety: Measured, cmdp: str, algorithm: str) -> tuple[Any, Any]:
    import polars

    rows = safety.rows(cmdp, algorithm)
    return rows.filter(polars.col("margin") == 0), rows.filter(polars.col("margin") > 0)


def fixed_bias(long: Measured) -> Claim:
    """Claim 11, which is ours: a fixed τ leaves a bias."""
    algorithm = PRIMAL_DUAL[1]

    def column(cmdp: str, name: str, decay: float) -> np.ndarray:
        return total(long.rows(cmdp, algorithm, regularization_exponent=decay), (name,))

    def slower(cmdp: str) -> np.ndarray:
        return np.subtract(*(column(cmdp, "growth_constraints", decay) for decay in (0.0, 0.2)))

    bias = long.each(_saddle_violation, long)
    reached = {cmdp: column(cmdp, "last_violation", 0.0) / bias[cmdp][0] for cmdp in bias}
    text = "violation of the last policy, over that one"
    return Claim(
        11,
        "Ours, not the paper's: with a fixed τ the iterates converge to a point that violates the "
        "constraint, so that the regularized strong regret grows linearly again; with a decaying τ "
        "it grows more slowly.",
        (
            Quantity(f"violation at the saddle point, τ = {REGULARIZATION}", bias, "above"),
            Quantity(text, reached, "above", 0.8),
            Quantity(text, reached, "below", 1.25),
            Quantity(
                "growth exponent of the strong constraint regret, fixed minus decaying τ",
                long.each(slower),
                "above",
            ),
        ),
        _decades(long, algorithm, "errors", "fixed τ", regularization_exponent=0.0),
    )


def _saddle_violation(cmdp: str, long: Measured) -> np.ndarray:
    model = long.results.cmdps[long.cmdps[cmdp]]
    saddle = solve_regularized(model, REGULARIZATION, 6.0)
    violation = model.thresholds - evaluate(model, saddle.policy).constraint_values
    return certain(violation.max())


def larger_of(results: Any, seeds: Sequence[int]) -> dict[str, Measured]:
    """Open the sweep over larger CMDPs once for every size, by name."""
    return {
        "S = {num_states}, A = {num_actions}, H = {horizon}".format(**sizes): Measured(
            results, seeds, **sizes
        )
        for sizes in LARGER
    }
