"""Optimism: what a learner adds to its estimates, as choices and as numbers, Eq. (9).

Every bonus of the paper has the form (a number) / √(n ∨ 1), with n visits:

    b^r = reward/√(n ∨ 1),    b^p = transition/√(n ∨ 1),    b = b^r + b^p.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from cmdpax.checks import check_choice, real_number, require_count, require_number, require_share
from cmdpax.errors import ParameterError
from cmdpax.model.cmdp import Sizes


@dataclasses.dataclass(frozen=True)
class Optimism:
    """How optimistic a learner is, and what it knows. Use a profile, and change what differs.

    Attributes:
        bonus: "theory" (the appendix' constants) or "count" (b = b^p = scale/√(n ∨ 1)).
        scale: multiplies the bonuses.
        rewards: "known" or "estimated".
        unvisited_rows: p̂ where n = 0: "zero" (0/1, as printed) or "uniform".
        unvisited_rewards: r̂ and û where n = 0 and rewards are estimated; None is 0 plus the bonus.
        num_episodes: K in the theory's constants.
        failure_probability: δ in the theory's constants.
    """

    bonus: str = "count"
    scale: float = 0.08
    rewards: str = "known"
    unvisited_rows: str = "uniform"
    unvisited_rewards: float | None = None
    num_episodes: int | None = None
    failure_probability: float = 0.1

    def __post_init__(self) -> None:
        """Refuse choices that do not exist."""
        choices = {
            "bonus": ("theory", "count"),
            "rewards": ("known", "estimated"),
            "unvisited_rows": ("zero", "uniform"),
        }
        for name, known in choices.items():
            check_choice(f"optimism's {name}", getattr(self, name), known)
        if not 0 <= real_number(self.scale) < math.inf:
            raise ParameterError(f"optimism's scale is {self.scale}, it must not be negative.")
        if self.unvisited_rewards is not None:
            require_number("optimism's unvisited_rewards", self.unvisited_rewards)
        if self.num_episodes is not None:
            require_count("optimism's num_episodes", self.num_episodes)
        elif self.bonus == "theory":
            raise ParameterError(
                "the theory's bonuses need num_episodes, the K of their logarithms."
            )
        require_share("failure_probability", self.failure_probability)

    @classmethod
    def theory(
        cls, num_episodes: int, failure_probability: float = 0.1, scale: float = 1.0
    ) -> "Optimism":
        """The paper's analysis: its constants, rewards estimated, unvisited rows zero."""
        return cls(
            bonus="theory",
            scale=scale,
            rewards="estimated",
            unvisited_rows="zero",
            num_episodes=num_episodes,
            failure_probability=failure_probability,
        )

    @classmethod
    def empirical(cls, scale: float = 0.08) -> "Optimism":
        """The paper's simulations: rewards known, unvisited rows uniform."""
        return cls(scale=scale)

    @classmethod
    def live(cls, scale: float = 0.3) -> "Optimism":
        """Practice without known rewards: they are 1 where nothing was tried."""
        return cls(scale=scale, rewards="estimated", unvisited_rewards=1.0)

    def replace(self, **changes: Any) -> "Optimism":
        """The same with some choices changed."""
        return dataclasses.replace(self, **changes)

    def _asdict(self) -> dict[str, Any]:
        """The choices by name."""
        return dataclasses.asdict(self)

    def numbers(self, sizes: Sizes) -> "Bonuses":
        """The choices as numbers: b^r = reward/√(n ∨ 1), b^p = transition/√(n ∨ 1)."""
        num_constraints, horizon, num_states, num_actions = sizes
        reward, transition = 0.0, 1.0
        if self.bonus == "theory":
            # Appendix: δ' = δ/3, b^r = √(½ log(2SAH(I+1)K/δ')), b^p = H √(2S + 2 log(SAHK/δ')).
            pairs = num_states * num_actions * horizon * (self.num_episodes or 1)
            delta = self.failure_probability / 3
            reward = math.sqrt(0.5 * math.log(2 * pairs * (num_constraints + 1) / delta))
            transition = horizon * math.sqrt(2 * num_states + 2 * math.log(pairs / delta))
        uniform = self.unvisited_rows == "uniform"
        unvisited = self.unvisited_rewards
        return Bonuses(
            reward=self.scale * reward,
            transition=self.scale * transition,
            unvisited_mass=1.0 if uniform else 0.0,
            unvisited_reward=math.nan if unvisited is None else float(unvisited),
        )


class Bonuses(NamedTuple):
    """An `Optimism` as numbers that may be traced: one program serves them all."""

    reward: Any  # b^r √(n ∨ 1)
    transition: Any  # b^p √(n ∨ 1)
    unvisited_mass: Any  # of p̂ where n = 0, spread evenly over the states that may follow
    unvisited_reward: Any  # r̂, û where n = 0; NaN: 0 plus the bonus


def as_optimism(optimism: str | Optimism, num_episodes: int) -> Optimism:
    """A profile by name, or an `Optimism` as it is."""
    if isinstance(optimism, Optimism):
        return optimism
    profiles: dict[str, Callable[[], Optimism]] = {
        "theory": lambda: Optimism.theory(num_episodes),
        "empirical": Optimism.empirical,
        "live": Optimism.live,
    }
    check_choice("optimism", optimism, tuple(profiles))
    return profiles[optimism]()
