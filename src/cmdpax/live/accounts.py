"""The safety account of a live system: what was observed, next to what the learner believes.

Observed returns are sums over the steps of an episode, in the user's units. Their mean over all
whole episodes estimates the mean value of the policies that were *played*, early ones included, and
its interval is Student's; the recent ones say more about the policy that is played now. Episodes
that were cut short have no return: they are not in the means, but verdicts are given only if they
hold whatever the missing steps might have brought. The estimate V̂_u is the learner's belief about
the coming episode: that of the paper's learners errs towards meeting the constraint, and a learner
that plans believes that its plan meets it wherever it can. So it is no evidence of safety.

Student's interval is valid for a single look. Beside it stands one that may be looked at every day
(`live.sequences`), about the mean of all episodes.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import ParameterError
from cmdpax.intervals import Interval, half_width, interval, student
from cmdpax.live.declaration import Declaration
from cmdpax.live.every_day import after_returns, bands_of, show_verdicts
from cmdpax.live.record import Blocks
from cmdpax.live.sequences import Band, Sequence
from cmdpax.live.units import ROUNDING, Units

RECENT = 200
"""Episodes that count as recent."""

FEW = 30
"""With fewer recent episodes there is no verdict."""

COUNTED = ("episodes", "steps", "cut_short", "fed")
"""What tally and account both count."""

_COUNTS = 2**31  # visits are 32-bit integers


@dataclasses.dataclass(frozen=True)
class Tally:
    """Running sums of the observed returns; entry 0 is the reward."""

    mean: np.ndarray  # [J]
    squares: np.ndarray  # sums of squared distances from the mean, [J]
    missed: np.ndarray  # episodes whose return misses its threshold, [I]
    recent: np.ndarray  # the last episodes: returns, multipliers, missing steps, [n, J + I + 1]
    always: np.ndarray  # the sums of a `Sequence`, if missing steps bring least, or most, [5, 2, J]
    blocks: Blocks  # all episodes, thinned
    episodes: int = 0  # that were played
    steps: int = 0
    cut_short: int = 0
    fed: int = 0  # logged episodes that were learned from, and are not in the account

    @classmethod
    def empty(cls, num_constraints: int) -> "Tally":
        """The tally before the first episode."""
        nothing = np.zeros(1 + num_constraints)
        missed = np.zeros(num_constraints, dtype=np.int64)
        recent = np.zeros((0, 2 + 2 * num_constraints))
        always = np.array(Sequence.empty((2, 1 + num_constraints)))
        return cls(nothing, nothing, missed, recent, always, Blocks.empty(num_constraints))

    @property
    def learned(self) -> int:
        """Episodes that the learner has seen, k - 1."""
        return self.episodes + self.fed

    @property
    def whole(self) -> int:
        """Episodes that were played to their end."""
        return self.episodes - self.cut_short

    def require_room(self, num_episodes: int, horizon: int) -> None:
        """Refuse more episodes than the learners' counts can hold."""
        if (self.learned + num_episodes) * horizon >= _COUNTS:
            raise ParameterError("the agent's counts are 32-bit integers, 2^31 steps are too many.")

    @property
    def sequence(self) -> Sequence:
        """What the intervals that may be looked at every day are made of, of shape `[2, J]`."""
        return Sequence(*self.always)

    def after(
        self,
        signals: np.ndarray,
        missed: np.ndarray,
        multipliers: np.ndarray,
        missing: int,
        units: Units,
    ) -> "Tally":
        """The tally after one more episode, with the signals `[steps, J]` (Welford)."""
        returns, cut = signals.sum(axis=0), int(missing > 0)
        before = (returns - self.mean) * (1 - cut)
        mean = self.mean + before / (self.whole + 1)
        newest = np.concatenate([returns, multipliers, [missing]])[None]
        always = after_returns(self.sequence, returns, missing, missing + len(signals), units)
        return Tally(
            mean,
            self.squares + before * (returns - mean),
            self.missed + missed,
            np.concatenate([self.recent[1 - RECENT :], newest]),
            np.array(always),
            self.blocks.after(returns, missed, cut > 0),
            self.episodes + 1,
            self.steps + len(signals),
            self.cut_short + cut,
            self.fed,
        )

    def observed(self, signal: int) -> Interval:
        """The mean return of a signal over all whole episodes."""
        count = self.whole
        if count < 2:
            return Interval(float(self.mean[signal]) if count else np.nan, np.inf, count)
        spread = np.sqrt(self.squares[signal] / (count - 1) / count)
        return Interval(float(self.mean[signal]), float(student(count) * spread), count)

    def lately(self, signal: int) -> Interval:
        """The mean return of a signal over the recent whole episodes."""
        whole = self.recent[self.recent[:, -1] == 0, signal]
        return interval(whole) if len(whole) else Interval(np.nan, np.inf, 0)


class ObjectiveAccount(NamedTuple):
    """The reward of a live system.

    Attributes:
        observed: mean return over all whole episodes, with its 95 % interval.
        recent: the same over the last 200.
        unit: its unit; it may be empty.
        always: an interval for the mean over all episodes that may be looked at every day.
    """

    observed: Interval
    recent: Interval
    unit: str = ""
    always: Band = Band()


class ConstraintAccount(NamedTuple):
    """One constraint of a live system, in the user's units.

    Attributes:
        name: its name.
        sense: "at least" or "at most".
        threshold: the bound on the sum over an episode.
        optimistic: V̂_u of the policy of the coming episode, as the learner believes; of a plan,
            its value in the model that it was made in.
        observed: mean return over all whole episodes, with its 95 % interval.
        recent: the same over the last 200.
        verdict: what the last 200 episodes show: "met" or "missed" where their interval says so,
            whatever the steps missing in episodes cut short might have brought, else "open", and
            always with fewer than 30. Where all returns are equal, the interval is that of the
            rule of three: 3/n of the range of a return.
        missed: episodes whose own return misses the threshold (returns vary, so a safe policy has
            such episodes too); those cut short count if no further step could mend them.
        episodes: how many episodes were played.
        multiplier: λ, as the learner has it.
        price: λ in the user's units, reward per unit of the constraint.
        unit: of the constraint; it may be empty.
        always: an interval for the mean over all episodes that may be looked at every day: with
            probability 95 % it is right after every one of them. The missing steps of episodes cut
            short are in it, from the least that they might have brought to the most.
        always_verdict: what it shows: "met", "missed" or "open". Stopping at the first "met" errs
            with probability 5 % at most. Where no range was declared this is asymptotic, and the
            verdict is "open" if an episode was cut short.
        episodes_left: while that is open, about how many more episodes it takes if mean and
            variance stay as they are; None where nothing is left or nothing can be said.
    """

    name: str
    sense: str
    threshold: float
    optimistic: float
    observed: Interval
    recent: Interval
    verdict: str
    missed: int
    episodes: int
    multiplier: float
    price: float
    unit: str = ""
    always: Band = Band()
    always_verdict: str = "open"
    episodes_left: int | None = None


@dataclasses.dataclass(frozen=True)
class AgentAccount:
    """The account of a live system; iterating and indexing go over its constraints.

    Attributes:
        episodes: episodes played.
        steps: the steps in them.
        cut_short: episodes that ended before the horizon; they are not in the means.
        fed: logged episodes, played by others, that were learned from; they are not in the account.
        objective: the reward.
        constraints: one `ConstraintAccount` for each.
        playing: what is played beside the learner's last plan, in sentences.
    """

    episodes: int
    steps: int
    cut_short: int
    fed: int
    objective: ObjectiveAccount
    constraints: tuple[ConstraintAccount, ...]
    playing: tuple[str, ...] = ()

    def __len__(self) -> int:
        """I, the number of constraints."""
        return len(self.constraints)

    def __iter__(self) -> Iterator[ConstraintAccount]:
        """The constraints, in order."""
        return iter(self.constraints)

    def __getitem__(self, index: int) -> ConstraintAccount:
        """One constraint."""
        return self.constraints[index]

    def __str__(self) -> str:
        """A line for the reward, two per constraint, and what is played."""
        count = "1 episode" if self.episodes == 1 else f"{self.episodes} episodes"
        count += f" ({self.cut_short} cut short)" if self.cut_short else ""
        lines = [f"{count}, reward {_amount(self.objective.observed, self.objective.unit)}"]
        for one in self:
            older = one.episodes > RECENT
            lately = f"; the last {RECENT}: {_amount(one.recent, one.unit)}" if older else ""
            told = f"{_amount(one.observed, one.unit)}, {one.sense} {one.threshold:g}{lately}"
            lines.append(f"{one.name}: {told} ({one.verdict})")
            lines.append(f"    {_always(one)}")
        return "\n".join([*lines, *self.playing])

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers and words.

        Intervals are (mean, half, size), those that may be looked at every day (low, high, size,
        exact), with NaN or infinity where there is none.
        """
        return {name: getattr(self, name) for name in COUNTED} | {
            "objective": self.objective._asdict(),
            "constraints": [one._asdict() for one in self],
            "playing": list(self.playing),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "AgentAccount":
        """The account that `to_dict` wrote, through JSON or not."""

        def intervals(entry: dict[str, Any]) -> dict[str, Any]:
            found = {name: Interval(*entry[name]) for name in ("observed", "recent")}
            return entry | found | {"always": Band(*entry["always"])}

        return cls(
            **{name: content[name] for name in COUNTED},
            objective=ObjectiveAccount(**intervals(content["objective"])),
            constraints=tuple(
                ConstraintAccount(**intervals(one)) for one in content["constraints"]
            ),
            playing=tuple(content.get("playing", ())),
        )


def _amount(observed: Interval, unit: str) -> str:
    return f"{observed} {unit}".rstrip()


def _always(one: ConstraintAccount) -> str:
    """What an account shows every day, in words."""
    left = one.episodes_left
    more = "" if left is None else f", about {roughly(left)} more episodes would decide"
    kind = "" if one.always.exact else ", asymptotic"
    shown = str(one.always).removeprefix("~ ")
    told = f"{shown} {one.unit}".rstrip()
    return f"looked at every day: {told} ({one.always_verdict}{more}{kind})"


def roughly(count: int) -> str:
    """A number of episodes with two digits that count."""
    unit = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // unit) * unit:,}"


def make_account(
    declared: Declaration, tally: Tally, estimates: np.ndarray, multipliers: np.ndarray
) -> AgentAccount:
    """The account of a tally and of what the learner believes, both in the user's units."""
    units, thresholds = declared.units, declared.thresholds
    prices = units.prices(multipliers)
    bands = bands_of(tally.sequence, declared)
    verdicts = show_verdicts(tally.sequence, bands, declared, tally.cut_short)
    constraints = tuple(
        ConstraintAccount(
            name=declared.names[i],
            sense=units.senses[i],
            threshold=float(thresholds[i]),
            optimistic=float(estimates[i]),
            observed=tally.observed(1 + i),
            recent=tally.lately(1 + i),
            verdict=_verdict(tally.recent, 1 + i, declared),
            missed=int(tally.missed[i]),
            episodes=tally.episodes,
            multiplier=float(multipliers[i]),
            price=float(prices[i]),
            unit=declared.words.unit(1 + i),
            always=bands[1 + i],
            always_verdict=verdicts[i][0],
            episodes_left=verdicts[i][1],
        )
        for i in range(len(thresholds))
    )
    return AgentAccount(
        **{name: getattr(tally, name) for name in COUNTED},
        objective=ObjectiveAccount(
            tally.observed(0), tally.lately(0), declared.words.unit(), bands[0]
        ),
        constraints=constraints,
    )


def _verdict(recent: np.ndarray, signal: int, declared: Declaration) -> str:
    """What the recent episodes show about a constraint, see `ConstraintAccount`."""
    if len(recent) < FEW:
        return "open"
    low, high, at_most, known = (array[signal] for array in declared.units)
    if recent[:, -1].any() and not known:  # nobody knows what the missing steps might have brought
        return "open"
    threshold, horizon = float(declared.thresholds[signal - 1]), declared.sizes.horizon
    missing = recent[:, -1]
    rounding = ROUNDING * max(1.0, abs(threshold))
    slack = []  # of the mean: if the missing steps brought the worst, then the best
    for step in (high, low) if at_most else (low, high):
        returns = recent[:, signal] + missing * step
        half = float(half_width(returns)) or 3 / len(returns) * horizon * (high - low)
        distance = (threshold - returns.mean()) if at_most else (returns.mean() - threshold)
        slack.append((distance, half))
    (worst, half_of_worst), (best, half_of_best) = slack
    if worst >= half_of_worst - rounding:
        return "met"
    return "missed" if best <= rounding - half_of_best else "open"
