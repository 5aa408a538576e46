"""What learning leaves behind: the accounts of every run, and how to make them again."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from cmdpax.learning.regret import Regret, growth_exponents
from cmdpax.model.log import Log
from cmdpax.storage.writing import write_npz


@dataclasses.dataclass(frozen=True, kw_only=True)
class Account:
    """The accounts of policies π_k in the true model, at T episodes; runs are an axis R in front.

    Attributes:
        episodes: `[T]`, the episodes k, the last one being K.
        value: V_r^{π_k}, `[R, T]`.
        constraint_values: V_u^{π_k}, `[R, T, I]`.
        strong_regret: cumulative positive parts: `.objective [R, T]`, `.constraints [R, T, I]`,
            `.maximum [R, T]`; exact sums over all episodes, recorded or not.
        weak_regret: cumulative signed terms, likewise.
        unsafe: share of all K episodes with some violation ≥ each of `unsafe_at`, `[R, E]`.
        unsafe_at: the levels ε.
        optimum: V_r^{π*}, or one for each run, `[R]`.
        thresholds: c, `[I]`, or `[R, I]`.
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

    @property
    def suboptimality(self) -> np.ndarray:
        """V_r^{π*} - V_r^{π_k}, `[R, T]`."""
        return np.asarray(np.expand_dims(self.optimum, -1) - self.value)

    @property
    def violation(self) -> np.ndarray:
        """c - V_u^{π_k}, `[R, T, I]`."""
        return np.asarray(np.expand_dims(self.thresholds, -2) - self.constraint_values)

    @property
    def worst_violation(self) -> np.ndarray:
        """The largest violation of any constraint, `[R, T]`; 0 without constraints."""
        violation = self.violation
        return violation.max(axis=-1) if violation.shape[-1] else np.zeros(violation.shape[:-1])

    def growth_exponent(self) -> Regret:
        """Exponents of the strong regrets' growth over [K/10, K]; NaN where a regret is 0."""
        return growth_exponents(self.strong_regret, self.episodes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class History(Account):
    """The accounts of R runs of a learner, and what it did.

    Attributes:
        multipliers: λ_k, `[R, T, I]`.
        potential: Φ_k, `[R, T]`, if asked for.
        policy: π_K, `[R, H, S, A]`.
        log: the episodes themselves, if asked for.
        manifest: everything that makes these numbers again.
    """

    multipliers: np.ndarray
    potential: np.ndarray | None
    policy: np.ndarray
    log: Log | None
    manifest: dict[str, Any]

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
            "manifest": np.array(json.dumps(self.manifest)),
        }
        for name, regret in (("strong", self.strong_regret), ("weak", self.weak_regret)):
            content[f"{name}_objective"] = regret.objective
            content[f"{name}_constraints"] = regret.constraints
            content[f"{name}_maximum"] = regret.maximum
        if self.potential is not None:
            content["potential"] = self.potential
        if self.log is not None:
            content |= {f"log_{name}": array for name, array in self.log._asdict().items()}
        write_npz(Path(path), content)
