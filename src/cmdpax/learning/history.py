"""What learning leaves behind: the accounts of every run, and how to make them again.

Per episode k, with the true thresholds c,

    suboptimality_k = V_r^{π*} - V_r^{π_k},        violation_{k,i} = c_i - V_{u_i}^{π_k}.

All of it is in the user's units; V_{u_i} and c_i are in the sense of the constraint, and violations
are positive where it is missed. *Strong* regrets sum the positive parts, so that an unsafe episode
is never paid for by a safe one; *weak* regrets sum the signed terms. Constraints are summed one by
one, and the maximum over i is taken at the end.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from cmdpax.learning.summary import summarise
from cmdpax.model.log import Log
from cmdpax.model.words import PLAIN, Words
from cmdpax.storage.writing import write_npz


class Regret(NamedTuple):
    """Cumulative regrets after each recorded episode.

    Attributes:
        objective: `[…, T]`.
        constraints: `[…, T, I]`.
        maximum: `[…, T]`, the largest over the constraints; 0 without constraints.
    """

    objective: np.ndarray
    constraints: np.ndarray
    maximum: np.ndarray

    @classmethod
    def of(cls, objective: np.ndarray, constraints: np.ndarray) -> "Regret":
        """With the maximum over the constraints."""
        if constraints.shape[-1] == 0:
            return cls(objective, constraints, np.zeros_like(objective))
        return cls(objective, constraints, constraints.max(axis=-1))


class Plans(NamedTuple):
    """The plans of a learner that keeps a policy for a stretch of episodes, run by run.

    Attributes:
        episodes: the first episode of each plan, `[R, P]`; 0 after the last of a run.
        feasible: whether the model that was planned in had a feasible policy, `[R, P]`; where it
            had none, the plan is the policy with the largest worst slack.
        policies: `[R, P, H, S, A]`; None where they would take more than 256 MiB.
    """

    episodes: np.ndarray
    feasible: np.ndarray
    policies: np.ndarray | None

    @property
    def made(self) -> np.ndarray:
        """How many plans each run made, `[R]`."""
        return np.asarray((self.episodes > 0).sum(axis=1))

    @property
    def infeasible(self) -> np.ndarray:
        """How many of them were made in a model without a feasible policy, `[R]`."""
        return np.asarray(((self.episodes > 0) & ~self.feasible).sum(axis=1))


def strong_regret(
    suboptimality: Float[np.ndarray, "*R T"], violation: Float[np.ndarray, "*R T I"]
) -> Regret:
    """Cumulative sums of the positive parts."""
    return weak_regret(np.maximum(suboptimality, 0.0), np.maximum(violation, 0.0))


def weak_regret(
    suboptimality: Float[np.ndarray, "*R T"], violation: Float[np.ndarray, "*R T I"]
) -> Regret:
    """Cumulative sums of the signed terms."""
    return Regret.of(np.cumsum(suboptimality, axis=-1), np.cumsum(violation, axis=-2))


def unsafe_share(
    violation: Float[np.ndarray, "*R T I"], levels: tuple[float, ...]
) -> Float[np.ndarray, "*R E"]:
    """Share of episodes with some violation ≥ ε, for each level ε."""
    worst = violation.max(axis=-1, initial=-np.inf)
    # A violation that is not a number is not below any level.
    return np.stack([(~(worst < level)).mean(axis=-1) for level in levels], axis=-1)


def growth_exponent(
    cumulative: Float[np.ndarray, "*R T"], episodes: Integer[np.ndarray, " T"]
) -> Float[np.ndarray, "*R"]:
    """Slope of log(cumulative regret) against log k over k ∈ [K/10, K]; NaN where it is 0."""
    last = episodes >= episodes[-1] / 10
    x = np.log(episodes[last].astype(float))
    part = cumulative[..., last]
    positive = np.asarray((part > 0).all(axis=-1))
    y = np.log(np.where(positive[..., None], part, 1.0))
    x = x - x.mean()
    spread = (x * x).sum()
    slope = (y * x).sum(axis=-1) / spread if spread > 0 else np.full(part.shape[:-1], np.nan)
    return np.where(positive, slope, np.nan)


def growth_exponents(regret: Regret, episodes: Integer[np.ndarray, " T"]) -> Regret:
    """The exponent of each of the regrets: the axis of episodes is gone."""
    by_constraint = np.moveaxis(regret.constraints, -1, -2)
    return Regret(
        growth_exponent(regret.objective, episodes),
        growth_exponent(by_constraint, episodes),
        growth_exponent(regret.maximum, episodes),
    )


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Account:
    """The accounts of policies π_k in the true model, at T episodes; runs are an axis R in front.

    Attributes:
        episodes: `[T]`, the episodes k, the last one being K.
        value: V_r^{π_k}, `[R, T]`.
        constraint_values: V_u^{π_k}, `[R, T, I]`, in the senses of the constraints.
        strong_regret: cumulative positive parts: `.objective [R, T]`, `.constraints [R, T, I]`,
            `.maximum [R, T]`; exact sums over all episodes, recorded or not.
        weak_regret: cumulative signed terms, likewise.
        unsafe: share of all K episodes with some violation ≥ each of `unsafe_at`, `[R, E]`.
        unsafe_at: the levels ε; shares of a signal's range, where it leaves [0, 1].
        optimum: V_r^{π*}, or one for each run, `[R]`.
        thresholds: c, `[I]`, or `[R, I]`.
        signs: 1 where a constraint is "at least", -1 where "at most", like the thresholds.
        scales: the ranges of the signals, the objective's first, `[1 + I]` or `[R, 1 + I]`; 1 for
            signals in [0, 1].
        words: the names, units and senses of the model.
    """

    episodes: np.ndarray
    value: np.ndarray
    constraint_values: np.ndarray
    strong_regret: Regret
    weak_regret: Regret
    unsafe: np.ndarray
    unsafe_at: tuple[float, ...]
    optimum: Any
    thresholds: np.ndarray
    signs: Any = 1.0
    scales: Any = 1.0
    words: Words = PLAIN

    @property
    def suboptimality(self) -> np.ndarray:
        """V_r^{π*} - V_r^{π_k}, `[R, T]`."""
        return np.asarray(np.expand_dims(self.optimum, -1) - self.value)

    @property
    def violation(self) -> np.ndarray:
        """c - V_u^{π_k}, `[R, T, I]`, and V_u^{π_k} - c where the sense is "at most"."""
        missing = np.expand_dims(self.thresholds, -2) - self.constraint_values
        return np.asarray(
            np.expand_dims(self.signs, -2) * missing if np.ndim(self.signs) else missing
        )

    @property
    def worst_violation(self) -> np.ndarray:
        """The largest violation of any constraint, `[R, T]`; 0 without constraints."""
        violation = self.violation
        return violation.max(axis=-1) if violation.shape[-1] else np.zeros(violation.shape[:-1])

    def in_ranges(self) -> "Account":
        """The same with every signal divided by its range, so that signals can be added up."""
        scales = np.asarray(self.scales)
        if np.all(scales == 1):
            return self
        objective, constraints = scales[..., 0], scales[..., 1:]
        by_run, by_constraint = objective[..., None], constraints[..., None, :]

        def divided(regret: Regret) -> Regret:
            return Regret.of(regret.objective / by_run, regret.constraints / by_constraint)

        return dataclasses.replace(
            self,
            value=self.value / by_run,
            constraint_values=self.constraint_values / by_constraint,
            strong_regret=divided(self.strong_regret),
            weak_regret=divided(self.weak_regret),
            optimum=self.optimum / objective,
            thresholds=self.thresholds / constraints,
            scales=1.0,
        )

    def growth_exponent(self) -> Regret:
        """Exponents of the strong regrets' growth over [K/10, K]; NaN where a regret is 0."""
        return growth_exponents(self.strong_regret, self.episodes)

    def __repr__(self) -> str:
        """Runs, episodes and constraints."""
        runs, count = len(np.atleast_2d(self.value)), self.constraint_values.shape[-1]
        return f"{type(self).__name__}(runs={runs}, K={int(self.episodes[-1])}, I={count})"

    def __str__(self) -> str:
        """What was learned, in a few lines: means over runs, ± half of Student's 95 % interval."""
        return summarise(self)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class History(Account):
    """The accounts of R runs of a learner, and what it did.

    Attributes:
        multipliers: λ_k, `[R, T, I]`.
        potential: Φ_k, `[R, T]`, if asked for.
        policy: π_K, `[R, H, S, A]`.
        log: the episodes themselves, if asked for.
        manifest: everything that makes these numbers again.
        plans: when a learner that plans now and then planned; None for other learners.
    """

    multipliers: np.ndarray
    potential: np.ndarray | None
    policy: np.ndarray
    log: Log | None
    manifest: dict[str, Any]
    plans: Plans | None = None

    def summary(self) -> dict[str, np.ndarray]:
        """One number per run: regrets at K, last-iterate errors, the share of unsafe episodes.

        The mixed pair of accounts is `strong_constraints` with `weak_objective`.
        """
        return {
            "strong_objective": self.strong_regret.objective[:, -1],
            "strong_constraints": self.strong_regret.maximum[:, -1],
            "weak_objective": self.weak_regret.objective[:, -1],
            "weak_constraints": self.weak_regret.maximum[:, -1],
            "last_suboptimality": self.suboptimality[:, -1],
            "last_violation": self.worst_violation[:, -1],
        } | {f"unsafe_at_{level:g}": self.unsafe[:, i] for i, level in enumerate(self.unsafe_at)}

    def save(self, path: str | Path) -> None:
        """Write everything to an `.npz` file; the manifest is JSON text in it."""
        content: dict[str, Any] = {
            "episodes": self.episodes,
            "value": self.value,
            "constraint_values": self.constraint_values,
            "multipliers": self.multipliers,
            "unsafe": self.unsafe,
            "unsafe_at": np.array(self.unsafe_at),
            "policy": self.policy,
            "optimum": np.float64(self.optimum),
            "thresholds": self.thresholds,
            "signs": np.broadcast_to(self.signs, np.shape(self.thresholds)),
            "manifest": np.array(json.dumps(self.manifest)),
        }
        for name, regret in (("strong", self.strong_regret), ("weak", self.weak_regret)):
            content[f"{name}_objective"] = regret.objective
            content[f"{name}_constraints"] = regret.constraints
            content[f"{name}_maximum"] = regret.maximum
        if words := self.words.to_dict():
            content["words"] = np.array(json.dumps(words))
        if self.potential is not None:
            content["potential"] = self.potential
        if self.log is not None:
            content |= {f"log_{name}": array for name, array in self.log._asdict().items()}
        if self.plans is not None:
            kept = {
                name: array for name, array in self.plans._asdict().items() if array is not None
            }
            content |= {f"plan_{name}": array for name, array in kept.items()}
        write_npz(Path(path), content)
