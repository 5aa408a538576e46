"""The safety account of a live system: what was observed, next to what the learner believes.

Observed returns are sums over the steps of an episode, in the user's units. Their mean over all
episodes estimates the mean value of the policies that were *played*, early ones included, and its
interval is Student's; the recent ones say more about the policy that is played now. The optimistic
estimate V̂_u is the learner's belief about the coming episode: it errs towards meeting the
constraint, so it is no evidence of safety.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cmdpax.intervals import Interval, interval, student
from cmdpax.live.units import Units

RECENT = 200
"""Episodes that count as recent."""


@dataclasses.dataclass(frozen=True)
class Tally:
    """Running sums of the observed returns; entry 0 is the reward."""

    mean: np.ndarray  # [J]
    squares: np.ndarray  # sums of squared distances from the mean, [J]
    missed: np.ndarray  # episodes whose return misses its threshold, [I]
    recent: np.ndarray  # returns and multipliers of the last episodes, [n, J + I]
    episodes: int = 0
    steps: int = 0
    cut_short: int = 0

    @classmethod
    def empty(cls, num_constraints: int) -> "Tally":
        """Of no episode."""
        nothing = np.zeros(1 + num_constraints)
        missed = np.zeros(num_constraints, dtype=np.int64)
        return cls(nothing, nothing, missed, np.zeros((0, 1 + 2 * num_constraints)))

    def after(
        self, signals: np.ndarray, missed: np.ndarray, multipliers: np.ndarray, horizon: int
    ) -> "Tally":
        """With one more episode, whose steps observed the signals `[steps, J]` (Welford)."""
        returns, episodes = signals.sum(axis=0), self.episodes + 1
        before = returns - self.mean
        mean = self.mean + before / episodes
        newest = np.concatenate([returns, multipliers])[None]
        return Tally(
            mean,
            self.squares + before * (returns - mean),
            self.missed + missed,
            np.concatenate([self.recent[1 - RECENT :], newest]),
            episodes,
            self.steps + len(signals),
            self.cut_short + (len(signals) < horizon),
        )

    def observed(self, signal: int) -> Interval:
        """The mean return of a signal over all episodes."""
        count = self.episodes
        if count < 2:
            return Interval(float(self.mean[signal]) if count else np.nan, np.inf, count)
        spread = np.sqrt(self.squares[signal] / (count - 1) / count)
        return Interval(float(self.mean[signal]), float(student(count) * spread), count)

    def lately(self, signal: int) -> Interval:
        """The mean return of a signal over the recent episodes."""
        if not len(self.recent):
            return Interval(np.nan, np.inf, 0)
        return interval(self.recent[:, signal])


class ObjectiveAccount(NamedTuple):
    """The reward of a live system.

    Attributes:
        observed: mean return over all episodes, with its 95 % interval.
        recent: the same of the last 200.
    """

    observed: Interval
    recent: Interval


class ConstraintAccount(NamedTuple):
    """One constraint of a live system, in the user's units.

    Attributes:
        name: its name.
        sense: "at least" or "at most".
        threshold: of the sum over an episode.
        optimistic: V̂_u of the policy of the coming episode, as the learner believes.
        observed: mean return over all episodes, with its 95 % interval.
        recent: the same of the last 200.
        missed: episodes whose own return misses the threshold (returns vary, so a safe policy has
            such episodes too).
        episodes: how many were counted.
        multiplier: λ, as the learner has it.
        price: λ in the user's units, reward per unit of the constraint.
    """

    name: str
    sense: str
    threshold: float
    optimistic: float
    observed: Interval
    recent: Interval
    missed: int
    episodes: int
    multiplier: float
    price: float

    @property
    def verdict(self) -> str:
        """What the recent returns show: "met", "missed", or "open" while the interval says both."""
        sign = -1.0 if self.sense == "at most" else 1.0
        slack = sign * (self.recent.mean - self.threshold)
        rounding = 1e-9 * max(1.0, abs(self.threshold))
        if not np.isfinite(self.recent.half) or abs(slack) < self.recent.half - rounding:
            return "open"
        return "met" if slack >= -rounding else "missed"


@dataclasses.dataclass(frozen=True)
class AgentAccount:
    """The account of a live system; iterating and indexing go over its constraints.

    Attributes:
        episodes: episodes counted.
        steps: steps counted.
        cut_short: episodes that ended before the horizon.
        objective: the reward.
        constraints: one `ConstraintAccount` for each.
    """

    episodes: int
    steps: int
    cut_short: int
    objective: ObjectiveAccount
    constraints: tuple[ConstraintAccount, ...]

    def __len__(self) -> int:
        """I."""
        return len(self.constraints)

    def __iter__(self) -> Iterator[ConstraintAccount]:
        """The constraints, in order."""
        return iter(self.constraints)

    def __getitem__(self, index: int) -> ConstraintAccount:
        """One constraint."""
        return self.constraints[index]

    def __str__(self) -> str:
        """A line for the reward, and one per constraint."""
        count = "1 episode" if self.episodes == 1 else f"{self.episodes} episodes"
        lines = [f"{count}, reward {self.objective.observed}"]
        for one in self:
            older = one.recent.size < one.episodes
            lately = f"; the last {one.recent.size}: {one.recent}" if older else ""
            told = f"{one.observed}, {one.sense} {one.threshold:g}{lately}"
            lines.append(f"{one.name}: {told} ({one.verdict})")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it; intervals are (mean, half, size), verdicts are told too."""
        return {
            "episodes": self.episodes,
            "steps": self.steps,
            "cut_short": self.cut_short,
            "objective": self.objective._asdict(),
            "constraints": [one._asdict() | {"verdict": one.verdict} for one in self],
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "AgentAccount":
        """The account that `to_dict` wrote, through JSON or not."""

        def intervals(entry: dict[str, Any]) -> dict[str, Any]:
            fields = {name: value for name, value in entry.items() if name != "verdict"}
            return fields | {name: Interval(*entry[name]) for name in ("observed", "recent")}

        return cls(
            content["episodes"],
            content["steps"],
            content["cut_short"],
            ObjectiveAccount(**intervals(content["objective"])),
            tuple(ConstraintAccount(**intervals(one)) for one in content["constraints"]),
        )


def make_account(
    tally: Tally,
    units: Units,
    names: tuple[str, ...],
    thresholds: np.ndarray,
    estimates: np.ndarray,
    multipliers: np.ndarray,
) -> AgentAccount:
    """The account of a tally and of what the learner believes, both in the user's units."""
    prices = units.prices(multipliers)
    constraints = tuple(
        ConstraintAccount(
            name=names[i],
            sense=units.senses[i],
            threshold=float(thresholds[i]),
            optimistic=float(estimates[i]),
            observed=tally.observed(1 + i),
            recent=tally.lately(1 + i),
            missed=int(tally.missed[i]),
            episodes=tally.episodes,
            multiplier=float(multipliers[i]),
            price=float(prices[i]),
        )
        for i in range(len(thresholds))
    )
    objective = ObjectiveAccount(tally.observed(0), tally.lately(0))
    return AgentAccount(tally.episodes, tally.steps, tally.cut_short, objective, constraints)
