"""What learning leaves behind: the accounts of every run, and how to make them again."""

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdpax.regret import Regret, growth_exponents
from cmdpax.storage.writing import write_npz


class Log(NamedTuple):
    """Logged episodes, `[K, …]`, or of several runs `[R, K, …]`.

    Attributes:
        states: `[K, H+1]`.
        actions: `[K, H]`.
        rewards: `[K, H]`, as observed.
        constraint_rewards: `[K, I, H]`, as observed.
    """

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    constraint_rewards: np.ndarray

    def run(self, index: int) -> "Log":
        """The log of one of several runs."""
        return Log(*(array[index] for array in self))


@dataclasses.dataclass(frozen=True)
class History:
    """The accounts of R runs at T recorded episodes.

    Attributes:
        episodes: `[T]`, the recorded episodes, the last one being K.
        value: V_r^{π_k} in the true model, `[R, T]`.
        constraint_values: V_u^{π_k} in the true model, `[R, T, I]`.
        multipliers: λ_k, `[R, T, I]`.
        strong_regret: cumulative positive parts: `.objective [R, T]`, `.constraints [R, T, I]`,
            `.maximum [R, T]`; exact sums over all episodes, recorded or not.
        weak_regret: cumulative signed terms, likewise.
        unsafe: share of all K episodes with some violation ≥ each of `unsafe_at`, `[R, E]`.
        unsafe_at: the levels ε.
        potential: Φ_k, `[R, T]`, if asked for.
        policy: π_K, `[R, H, S, A]`.
        log: the episodes themselves, if asked for.
        optimum: V_r^{π*}.
        thresholds: c, `[I]`.
        manifest: everything that makes these numbers again.
    """

    episodes: np.ndarray
    value: np.ndarray
    constraint_values: np.ndarray
    multipliers: np.ndarray
    strong_regret: Regret
    weak_regret: Regret
    unsafe: np.ndarray
    unsafe_at: tuple[float, ...]
    potential: np.ndarray | None
    policy: np.ndarray
    log: Log | None
    optimum: float
    thresholds: np.ndarray
    manifest: dict[str, Any]

    @property
    def suboptimality(self) -> np.ndarray:
        """V_r^{π*} - V_r^{π_k}, `[R, T]`."""
        return self.optimum - self.value

    @property
    def violation(self) -> np.ndarray:
        """c - V_u^{π_k}, `[R, T, I]`."""
        return self.thresholds - self.constraint_values

    def growth_exponent(self) -> Regret:
        """Exponents of the strong regrets' growth over [K/10, K]; NaN where a regret is 0."""
        return growth_exponents(self.strong_regret, self.episodes)

    def summary(self) -> dict[str, np.ndarray]:
        """One number per run: regrets at K, last-iterate errors, the share of unsafe episodes.

        The mixed pair of accounts is `strong_constraints` with `weak_objective`.
        """
        last = self.violation[:, -1]
        return {
            "strong_objective": self.strong_regret.objective[:, -1],
            "strong_constraints": self.strong_regret.maximum[:, -1],
            "weak_objective": self.weak_regret.objective[:, -1],
            "weak_constraints": self.weak_regret.maximum[:, -1],
            "last_suboptimality": self.suboptimality[:, -1],
            "last_violation": last.max(axis=-1) if last.size else np.zeros(len(last)),
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
