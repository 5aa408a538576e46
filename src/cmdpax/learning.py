"""`learn`: a learner on a simulated CMDP, with honest accounts."""

import platform
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from cmdpax.arguments import (
    Algorithm,
    as_factory,
    as_levels,
    as_optimism,
    as_regularization,
    as_seeds,
    check_choice,
    episodes_to_record,
)
from cmdpax.engine import Collected, Configuration, Task, find_saddles, run_batch
from cmdpax.errors import CmdpaxWarning, MissingPackageError, ParameterError
from cmdpax.history import History
from cmdpax.hyperparameters import hyperparameters, require_count
from cmdpax.model import CMDP
from cmdpax.optimism import Optimism
from cmdpax.planning.solution import Solution, solve
from cmdpax.regret import Regret
from cmdpax.rescaling import require_unit_rewards
from cmdpax.schedules import Scheduled
from cmdpax.simulation import Design, Progress
from cmdpax.validation import validate
from cmdpax.version import __version__

UNSAFE_AT = (1e-9, 0.01, 0.02, 0.05, 0.1)


def learn(
    cmdp: CMDP,
    algorithm: Algorithm,
    *,
    num_episodes: int,
    seeds: int | Iterable[int] = 1,
    optimism: str | Optimism = "empirical",
    step_size: Scheduled = 0.1,
    regularization: Scheduled | None = None,
    max_multiplier: float = 6.0,
    margin: Scheduled = 0.0,
    observations: str = "mean",
    record: Iterable[int] | None = None,
    unsafe_at: Sequence[float] = UNSAFE_AT,
    potential: bool = False,
    log: bool = False,
    precision: str = "double",
    progress: bool | Progress = False,
) -> History:
    """Learn a CMDP online, and account for every episode in the true model.

    Args:
        cmdp: the true model; rewards in [0, 1]. The learner never sees it.
        algorithm: one of `cmdpax.algorithms()`, or a factory of your own.
        num_episodes: K.
        seeds: how many runs (seeds 0, 1, …), or their seeds.
        optimism: "empirical", "live", "theory", or a `cmdpax.Optimism`.
        step_size: η, a number or a schedule.
        regularization: τ, a number or a schedule; None is 0.02 for regularized algorithms and 0
            for vanilla ones, which refuse another value.
        max_multiplier: λ_max.
        margin: the learner's thresholds are c + margin; the accounts' are c.
        observations: what the learner sees: "mean" rewards, or "bernoulli" draws.
        record: the episodes to keep; None keeps every one up to K = 100,000, beyond that 10,000
            log-spaced ones. Sums are over all episodes either way.
        unsafe_at: levels ε for the share of episodes with some violation ≥ ε.
        potential: also compute Φ_k (constant τ > 0 and margin).
        log: also keep the episodes.
        precision: "double" or "single".
        progress: show a bar, or call a function with the episodes done and in all.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("random")
        >>> history = cmdpax.learn(cmdp, "regularized-primal-dual", num_episodes=200, seeds=2)
        >>> history.strong_regret.objective.shape
        (2, 200)
    """
    count = require_count("num_episodes", num_episodes)
    chosen = hyperparameters(
        step_size, as_regularization(algorithm, regularization), max_multiplier, margin, count
    )
    profile = as_optimism(optimism, count)
    configurations = [Configuration(seed, chosen, profile) for seed in as_seeds(seeds)]
    return learn_batch(
        cmdp,
        algorithm,
        configurations,
        num_episodes=count,
        observations=observations,
        record=record,
        unsafe_at=unsafe_at,
        potential=potential,
        log=log,
        precision=precision,
        progress=progress,
    )


def learn_batch(
    cmdp: CMDP,
    algorithm: Algorithm,
    configurations: Sequence[Configuration],
    *,
    num_episodes: int,
    observations: str = "mean",
    record: Iterable[int] | None = None,
    unsafe_at: Sequence[float] = UNSAFE_AT,
    potential: bool = False,
    log: bool = False,
    precision: str = "double",
    progress: bool | Progress = False,
) -> History:
    """`learn` for a list of configurations: all runs share one compiled batch."""
    validate(cmdp)
    require_unit_rewards(cmdp)
    check_choice("observations", observations, ("mean", "bernoulli"))
    check_choice("precision", precision, ("double", "single"))
    known = {configuration.optimism.rewards for configuration in configurations}
    if len(known) != 1:
        raise ParameterError("one batch cannot mix known and estimated rewards; make two.")
    solution = find_optimum(cmdp)
    _warn_small_cap(cmdp, solution, configurations)
    design = Design(
        factory=as_factory(algorithm),
        rewards_known=known == {"known"},
        bernoulli=observations == "bernoulli",
        stacked=False,
        keep_log=log,
        keep_log_policies=potential,
    )
    saddles = find_saddles(cmdp, configurations) if potential else None
    recorded = episodes_to_record(num_episodes, record)
    levels = as_levels(unsafe_at)
    with jax.enable_x64(precision == "double"), _reporting(progress) as report:
        task = Task(design, cmdp, solution.value, recorded, num_episodes, levels)
        collected = run_batch(task, configurations, saddles, report)
    _warn_capped(collected.capped, num_episodes)
    manifest = _manifest(
        cmdp, algorithm, configurations, num_episodes, observations, precision, levels, solution
    )
    return _history(collected, recorded, solution, cmdp, levels, manifest, num_episodes)


def find_optimum(cmdp: CMDP) -> Solution:
    """The exact optimum, against which regrets are measured."""
    try:
        return solve(cmdp)
    except MissingPackageError:  # a machine with SciPy alone
        return solve(cmdp, "occupancy-lp")


def _history(
    collected: Collected,
    recorded: np.ndarray,
    solution: Solution,
    cmdp: CMDP,
    levels: tuple[float, ...],
    manifest: dict[str, Any],
    num_episodes: int,
) -> History:
    """Signal 0 is the objective."""
    values, strong, weak = (np.asarray(array, dtype=np.float64) for array in collected.entries)
    distance = collected.potential
    return History(
        episodes=recorded,
        value=values[..., 0],
        constraint_values=values[..., 1:],
        multipliers=np.asarray(collected.multipliers, dtype=np.float64),
        strong_regret=Regret.of(strong[..., 0], strong[..., 1:]),
        weak_regret=Regret.of(weak[..., 0], weak[..., 1:]),
        unsafe=collected.unsafe / num_episodes,
        unsafe_at=levels,
        potential=None if distance is None else np.asarray(distance, dtype=np.float64),
        policy=collected.policy,
        log=collected.log,
        optimum=solution.value,
        thresholds=cmdp.thresholds,
        manifest=manifest,
    )


def _manifest(
    cmdp: CMDP,
    algorithm: Algorithm,
    configurations: Sequence[Configuration],
    num_episodes: int,
    observations: str,
    precision: str,
    levels: tuple[float, ...],
    solution: Solution,
) -> dict[str, Any]:
    """Everything that makes the numbers again, as JSON can hold it."""
    name = algorithm if isinstance(algorithm, str) else getattr(algorithm, "__qualname__", "own")
    return {
        "cmdp": cmdp.fingerprint,
        "algorithm": name,
        "num_episodes": num_episodes,
        "observations": observations,
        "precision": precision,
        "unsafe_at": list(levels),
        "optimum": solution.value,
        "optimal_multipliers": solution.multipliers.tolist(),
        "runs": [
            {
                "seed": seed,
                "step_size": list(chosen.step_size),
                "regularization": list(chosen.regularization),
                "max_multiplier": chosen.max_multiplier,
                "margin": list(chosen.margin),
                "optimism": optimism._asdict(),
            }
            for seed, chosen, optimism in configurations
        ],
        "versions": {
            "cmdpax": __version__,
            "jax": jax.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "device": jax.devices()[0].device_kind,
    }


def _warn_small_cap(
    cmdp: CMDP, solution: Solution, configurations: Sequence[Configuration]
) -> None:
    """The theory assumes λ_max ≥ H/Ξ; practice often does not need it."""
    gap = solution.slater_gap
    if gap is None:
        return
    needed = cmdp.horizon / gap if gap > 0 else np.inf
    smallest = min(chosen.max_multiplier for _, chosen, _ in configurations)
    if smallest < needed:
        warnings.warn(
            f"max_multiplier is {smallest:g}, below H/Ξ = {needed:.4g} that the theory assumes.",
            CmdpaxWarning,
            stacklevel=4,
        )


def _warn_capped(capped: np.ndarray, num_episodes: int) -> None:
    """A multiplier that stays at its cap cannot enforce its constraint."""
    if capped.size and capped.max() > num_episodes / 2:
        _, constraint = np.unravel_index(int(capped.argmax()), capped.shape)
        warnings.warn(
            f"the multiplier of constraint {constraint} was at max_multiplier in "
            f"{capped.max()} of {num_episodes} episodes; raise max_multiplier.",
            CmdpaxWarning,
            stacklevel=4,
        )


@contextmanager
def _reporting(progress: bool | Progress) -> Iterator[Progress]:
    """The function to report to: the user's, a bar on standard error, or none."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda done, total: None
    else:
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("episodes", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
