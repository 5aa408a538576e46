"""`learn`: a learner on a simulated CMDP, with honest accounts."""

import functools
import inspect
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cmdpax.errors import CmdpaxWarning, LearnerError, ParameterError
from cmdpax.learners import DEFAULT_ALGORITHM, Named, as_algorithm
from cmdpax.learners.contract import require_sound
from cmdpax.learners.optimism import Optimism, as_optimism
from cmdpax.learning.baseline import baseline_setting, find_baselines
from cmdpax.learning.checkpoint import Checkpoint
from cmdpax.learning.group import Collected
from cmdpax.learning.history import History
from cmdpax.learning.loop import Progress, Task, make_task
from cmdpax.learning.manifest import read_manifest, write_manifest
from cmdpax.learning.settings import (
    UNSAFE_AT,
    Configuration,
    RunSettings,
    as_seeds,
    require_countable,
)
from cmdpax.learning.workers import find_saddles, run_batch
from cmdpax.model.cmdp import CMDP
from cmdpax.model.log import Log
from cmdpax.model.rescaling import rescale
from cmdpax.planning.solution import Solution, solve
from cmdpax.storage.limits import require_room

_POLICY_BYTES = 2**28


def learn(
    cmdp: CMDP,
    algorithm: Named = DEFAULT_ALGORITHM,
    *,
    num_episodes: int,
    seeds: int | Iterable[int] = 1,
    optimism: str | Optimism = "empirical",
    observations: str = "mean",
    record: int | str | Iterable[int] | None = None,
    unsafe_at: Sequence[float] = UNSAFE_AT,
    potential: bool = False,
    log: bool = False,
    precision: str = "double",
    stationary: bool = False,
    baseline: Any = None,
    progress: bool | Progress = False,
    checkpoint: str | Path | None = None,
    **parameters: Any,
) -> History:
    """Learn a CMDP online, and account for every episode in the true model.

    Args:
        cmdp: the true model, in any units: what leaves [0, 1] is rescaled for the learner, which
            never sees the model, and the accounts are in your units.
        algorithm: one of `cmdpax.algorithms()`, or a factory of your own. The default,
            "replanning", plans exactly on what it has counted; none of its parameters has to be
            tuned.
        num_episodes: K.
        seeds: how many runs (seeds 0, 1, …), or their seeds.
        optimism: "empirical", "live", "theory", or a `cmdpax.Optimism`.
        observations: what the learner sees: "mean" rewards, or "bernoulli" draws.
        record: the episodes to keep: their numbers, "all" of them, or how many (evenly spaced);
            None keeps every one up to K = 100,000, beyond that 10,000 log-spaced ones. Sums are
            over all episodes either way.
        unsafe_at: levels ε for the share of episodes with some violation ≥ ε; shares of a signal's
            range, where it leaves [0, 1].
        potential: also compute Φ_k (constant τ > 0 and margin).
        log: also keep the episodes.
        precision: "double" or "single".
        stationary: the learner knows that the model is the same at every step, and shares its
            counts over them; for models that are stored so.
        baseline: for algorithms that start from a policy that is known to be safe: "safest" (also
            None), the policy with the largest worst slack in the true model; or a policy of your
            own, `[H, S, A]` or `[S, A]`, an action for every state, or a function of the state. It
            must have slack in every constraint. The learner is told what it reaches.
        progress: show a bar, or call a function with the episodes done and in all.
        checkpoint: a file that keeps what was done, every ten seconds and when interrupted; where
            it is there already, the runs go on from it, and end bit for bit as without.
        parameters: those of the algorithm, which `cmdpax algorithms` lists. The paper's algorithms
            have `step_size` (η), `regularization` (τ; 0.02, or 0 for vanilla ones, which refuse
            another value), `max_multiplier` (λ_max) and `margin` (the learner's thresholds are
            c + margin; the accounts' are c); all but λ_max may be schedules.

    Raises:
        LearnerError: the learner returned something that is not a policy, or multipliers that are
            not numbers; nothing would account for it.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("random")
        >>> history = cmdpax.learn(cmdp, num_episodes=200, seeds=2)
        >>> history.strong_regret.objective.shape
        (2, 200)
    """
    known = as_algorithm(algorithm)
    settings = RunSettings(
        num_episodes=num_episodes,
        observations=observations,
        record=record,
        unsafe_at=unsafe_at,
        potential=potential,
        log=log,
        precision=precision,
        stationary=stationary,
        baseline=baseline_setting(baseline, known, cmdp),
    )
    count = settings.num_episodes
    chosen = known.choose(parameters, count, inspect.signature(learn).parameters)
    profile = as_optimism(optimism, count)
    configurations = [Configuration(seed, known, chosen, profile) for seed in as_seeds(seeds)]
    return learn_batch(cmdp, configurations, settings, progress, checkpoint)


def repeat(
    cmdp: CMDP,
    manifest: dict[str, Any],
    *,
    algorithm: Named | None = None,
    progress: bool | Progress = False,
) -> History:
    """Make the runs of a manifest again.

    With the same versions on the same device the numbers are the same bit for bit.

    Args:
        cmdp: the model of the runs; its fingerprint is checked.
        manifest: of a `History`, or read from a file.
        algorithm: the factory or its address, where it is your own: what a manifest says is never
            a reason to import anything.
        progress: as for `learn`.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("random")
        >>> history = cmdpax.learn(cmdp, "vanilla-primal-dual", num_episodes=100)
        >>> again = cmdpax.repeat(cmdp, history.manifest)
        >>> bool((again.value == history.value).all())
        True
    """
    configurations, settings = read_manifest(manifest, algorithm)
    if manifest["cmdp"] != cmdp.fingerprint:
        raise ParameterError(
            f"the CMDP's fingerprint is {cmdp.fingerprint}, the manifest's {manifest['cmdp']}; "
            "give the CMDP of the manifest."
        )
    return learn_batch(cmdp, configurations, settings, progress)


def learn_batch(
    cmdp: CMDP,
    configurations: Sequence[Configuration],
    settings: RunSettings,
    progress: bool | Progress = False,
    checkpoint: str | Path | None = None,
) -> History:
    """`learn` for configurations of one algorithm: all runs share one compiled batch."""
    given, cmdp = cmdp, rescale(cmdp).cmdp
    known = {configuration.optimism.rewards for configuration in configurations}
    if len(known) != 1:
        raise ParameterError("one batch cannot mix known and estimated rewards; make two.")
    first = configurations[0].algorithm
    chosen = [run.parameters for run in configurations]
    if len({(first.choices(one), first.lengths(one)) for one in chosen}) != 1:
        raise ParameterError("one batch cannot mix parameters that are compiled in; make several.")
    require_countable(configurations[0].algorithm, settings)
    first.require_constraints(cmdp.num_constraints)
    _require_room(cmdp, configurations, settings)
    solution = solve(given)
    _warn_small_cap(cmdp, solution, configurations)
    if settings.stationary:
        counted = 0 if configurations[0].algorithm.replans else settings.num_episodes
        require_stationary(cmdp, known == {"known"}, counted)
    saddles = find_saddles(cmdp, configurations) if settings.potential else None
    task = make_task(
        settings,
        configurations,
        (given,),
        (solution.value,),
        keep_policies=_keeps_policies(cmdp, configurations, settings.num_episodes),
        baselines=find_baselines(first, settings.baseline, (given,)),
    )
    manifest = write_manifest(given, configurations, settings, solution)
    watch = functools.partial(_inspect, configurations, cmdp.available is not None)
    opened = nullcontext() if checkpoint is None else Checkpoint(checkpoint, manifest)
    in_precision = jax.enable_x64(settings.precision == "double")
    with opened as kept, in_precision, _reporting(progress) as report:
        collected = run_batch(task, configurations, saddles, report, kept, watch)
    _require_finite(configurations, collected)
    _warn_capped(collected.capped, settings.num_episodes)
    distance = collected.rows.potential
    return History(
        **collected.accounts(task),
        potential=None if distance is None else np.asarray(distance, dtype=np.float64),
        policy=collected.policy,
        log=_in_units(task, collected.rows.log),
        manifest=manifest,
        plans=collected.plans,
        words=given.words,
    )


def _in_units(task: Task, log: Log | None) -> Log | None:
    """What was observed, in the user's units and senses."""
    if log is None:
        return None
    factors, offsets = task.rescalings[0].outward(1)
    return log._replace(
        rewards=factors[0] * log.rewards + offsets[0],
        constraint_rewards=factors[1:, None] * log.constraint_rewards + offsets[1:, None],
    )


def require_stationary(cmdp: CMDP, rewards_known: bool, num_episodes: int) -> None:
    """Counts can be shared over the steps only where the model is stored once for all of them."""
    arrays = {"transitions": jax.tree.leaves(cmdp.transitions)[0].shape[0]}
    if not rewards_known:
        arrays |= {
            "rewards": cmdp.rewards.shape[0],
            "constraint_rewards": cmdp.constraint_rewards.shape[1],
        }
    for name, length in arrays.items():
        if length != 1:
            raise ParameterError(
                f"stationary is true, but the CMDP's {name} are stored for {length} steps; store "
                "them once (a leading axis of 1), or learn with stationary=False."
            )
    if num_episodes * cmdp.horizon >= 2**31:
        raise ParameterError(
            f"num_episodes × horizon is {num_episodes * cmdp.horizon}, the counts that all steps "
            "share hold less than 2^31; learn fewer episodes."
        )


def _require_room(
    cmdp: CMDP, configurations: Sequence[Configuration], settings: RunSettings
) -> None:
    """Refuse more accounts than fit: V, strong and weak regrets of every signal, λ, and the log.

    The log of a learner that plans is made of the counts of its stretches.
    """
    num_constraints, horizon, *pairs = cmdp.sizes
    num_runs, first = len(configurations), configurations[0]
    kept = len(settings.recorded) * (3 + 4 * num_constraints)
    logged = settings.num_episodes * horizon * (3 + num_constraints) if settings.log else 0
    if settings.log and first.algorithm.replans:
        stretches = int(first.effort(settings.num_episodes))
        logged += stretches * horizon * math.prod(pairs) * cmdp.row_length
    require_room(
        f"the accounts of {num_runs} runs of {settings.num_episodes} episodes",
        8 * num_runs * (kept + logged),
        "record fewer episodes or run fewer seeds",
    )


def _keeps_policies(cmdp: CMDP, configurations: Sequence[Configuration], num_episodes: int) -> bool:
    """Whether the policies of all plans of all runs fit into what a history may take for them."""
    _, *pairs = cmdp.sizes
    plans = sum(run.effort(num_episodes) for run in configurations)
    # Short stretches are often several times as many.
    return 8 * math.prod(pairs) * 5 * plans < _POLICY_BYTES


def _require_finite(configurations: Sequence[Configuration], collected: Collected) -> None:
    """No account that is not a number, wherever it came from, such as a checkpoint."""
    finite = np.isfinite(np.stack(collected.rows[:3])).all(axis=(0, 2, 3))
    if not finite.all():
        run = configurations[int(np.argmin(finite))]
        raise LearnerError(
            f"the accounts of {run.algorithm.name} (seed {run.seed}, {run.words}) are not finite "
            "numbers; "
            "choose less extreme hyperparameters, and begin anew without the checkpoint."
        )


def _inspect(
    configurations: Sequence[Configuration], restricted: bool, first: int, flaws: np.ndarray
) -> None:
    """Refuse runs that cannot be accounted for, of a group that begins at a place."""

    def name_run(place: int) -> str:
        run = configurations[first + place]
        return f"seed {run.seed}, {run.words}"

    require_sound(configurations[0].algorithm.name, flaws, name_run, restricted)


def _warn_small_cap(
    cmdp: CMDP, solution: Solution, configurations: Sequence[Configuration]
) -> None:
    """The theory assumes λ_max ≥ H/Ξ; practice often does not need it."""
    caps: list[Any] = [getattr(run.parameters, "max_multiplier", None) for run in configurations]
    if not all(isinstance(cap, float) for cap in caps):
        return
    gap = solution.slater_gap
    if gap is None:
        return
    needed = cmdp.horizon / gap if gap > 0 else np.inf
    smallest = min(caps)
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
