"""What an agent plays: its learner's plan, an earlier one, or one of two policies by a coin."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdpax.errors import ParameterError, shown
from cmdpax.live.beliefs import Counts
from cmdpax.live.declaration import Declaration
from cmdpax.live.judging import draw_values
from cmdpax.live.mixing import Mixture, mix
from cmdpax.model.policy_table import decision, make_change
from cmdpax.model.words import Words

if TYPE_CHECKING:
    import polars

_FEW = 1e-9  # probabilities that differ by less are the same


class Playing(NamedTuple):
    """What is played from the coming episode on.

    Attributes:
        plans: how many plans the learner had made when this was decided.
        plan: the plan, `[H, S, A]`, where it need not be the learner's last one; else None.
        mixture: how much of it is played beside the baseline; None without a baseline.
        frozen: whether it stays, whatever the learner plans.
        declined: how many plans in a row were declined.
        made_with: the mixture's margins with which the plan was made, `[I]`; empty: none.
    """

    plans: int = 0
    plan: np.ndarray | None = None
    mixture: Mixture | None = None
    frozen: bool = False
    declined: int = 0
    made_with: tuple[float, ...] = ()

    def margins(self, declared: Declaration) -> np.ndarray:
        """By how much thresholds are stricter for the learner, `[I]`, in the user's units."""
        own = () if self.mixture is None else self.mixture.margins
        return _beside(declared.margins, own)

    def told(self, declared: Declaration) -> tuple[str, ...]:
        """What there is to say about it, in words; nothing where it is the learner's last plan."""
        lines = ["frozen: the policy stays until resume"] if self.frozen else []
        if self.declined:
            plans = "plan was" if self.declined == 1 else f"{self.declined} plans were"
            lines.append(f"the last {plans} declined, the one before is kept")
        if self.mixture is not None:
            words, slack = declared.words, self.mixture.slack
            amounts = [words.amount(one, 1 + index, digits=4) for index, one in enumerate(slack)]
            named = zip(amounts, declared.names, strict=True)
            lines.append(self.mixture.told([f"{amount} in {name}" for amount, name in named]))
        return tuple(lines)

    def to_entries(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What JSON can hold, and the arrays."""
        head = self._asdict() | {"mixture": self.mixture and self.mixture._asdict()}
        plan = head.pop("plan")
        return head, {} if plan is None else {"plan": plan}

    @classmethod
    def from_entries(
        cls, head: Mapping[str, Any], arrays: Mapping[str, Any], num_constraints: int
    ) -> "Playing":
        """What `to_entries` took apart, checked."""
        mixture = head["mixture"]
        if mixture is not None:
            numbers = float(mixture["share"]), float(mixture["probability"])
            if not all(0 <= number <= 1 for number in numbers):
                raise ValueError("shares and probabilities")
            vectors = [tuple(map(float, mixture[name])) for name in ("slack", "margins")]
            sound = np.isfinite(np.array(vectors)).all()
            if not sound or len(vectors[0]) != num_constraints:
                raise ValueError("slacks and margins")
            mixture = Mixture(*numbers, bool(mixture["trusted"]), *vectors)
        counts = head["plans"], head["declined"]
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError("counts of plans")
        made_with = tuple(map(float, head.get("made_with", ())))
        if not np.isfinite(made_with).all() or len(made_with) not in (0, num_constraints):
            raise ValueError("margins")
        frozen = bool(head["frozen"])
        return cls(counts[0], arrays.get("plan"), mixture, frozen, counts[1], made_with)


class PolicyChange(NamedTuple):
    """What a new plan would change; `approve` decides whether it is played.

    Attributes:
        before: the plan that is played, `[H, S, A]`.
        after: the plan that would be, `[H, S, A]`.
        episode: the number of the episode that it would be played from.
        words: the names of states and actions.
    """

    before: np.ndarray
    after: np.ndarray
    episode: int
    words: Words

    def frame(self) -> "polars.DataFrame":
        """A polars frame with a row for every state and step at which the plans differ."""
        import polars

        rows = [
            (
                self.words.state(int(state)),
                int(step),
                decision(self.before[step, state], self.words),
                decision(self.after[step, state], self.words),
            )
            for state, step in np.argwhere((self.before != self.after).any(axis=-1).T)
        ]
        return polars.DataFrame(rows, schema=("state", "step", "before", "after"), orient="row")

    def __str__(self) -> str:
        """The table, in at most some forty lines."""
        lines = make_change(self.before, self.after, self.words, None)
        return "\n".join([f"from episode {self.episode:,} on", *lines])


Approve = Callable[[PolicyChange], Any]


def decide(
    playing: Playing,
    declared: Declaration,
    plan: np.ndarray,
    plans: int,
    counts: Callable[[], Counts],
    episodes: int,
    approve: Approve | None,
) -> Playing:
    """What is played after the learner's plan number `plans`.

    Args:
        playing: what is played now.
        declared: the declaration.
        plan: the learner's plan, `[H, S, A]`.
        plans: its number.
        counts: what was counted, if it is needed.
        episodes: that were counted.
        approve: asked where the plan differs from the one that is played.
    """
    now, anew = playing._replace(plans=plans), plans != playing.plans
    if declared.asks and anew:
        now = _asked(now, declared, plan, episodes, approve)
    if anew and not now.declined and playing.mixture is not None:
        now = now._replace(made_with=playing.mixture.margins)
    if declared.mixed_baseline is None or declared.confidence is None:
        return now
    policies = [np.asarray(declared.mixed_baseline), plan if now.plan is None else now.plan]
    values = draw_values(counts(), policies, declared.seed + plans)
    units, horizon = declared.units, declared.sizes.horizon
    thresholds = units.thresholds_inward(declared.thresholds, horizon)
    slacks = (values[..., 1:] - thresholds) * units.scale[1:]
    own = np.array(now.made_with or np.zeros(len(declared.margins)))
    mixture = mix(slacks, own, declared.confidence, episodes, declared.margins)
    return now._replace(mixture=mixture)


def _beside(margins: np.ndarray, own: tuple[float, ...]) -> np.ndarray:
    """The user's margins, and those of a mixture."""
    return margins + np.array(own) if own else margins


def _asked(
    playing: Playing,
    declared: Declaration,
    plan: np.ndarray,
    episodes: int,
    approve: Approve | None,
) -> Playing:
    """Let the user decide about a new plan; the first one has nothing that it could replace."""
    before = playing.plan if playing.plan is not None else declared.mixed_baseline
    if before is None or not (np.abs(before - plan) > _FEW).any():
        return playing._replace(plan=plan, declined=0)
    if approve is None:
        raise ParameterError("this agent asks before it plays a plan; give approve= again.")
    answer = approve(PolicyChange(before, plan, episodes + 1, declared.words))
    if not isinstance(answer, bool | np.bool_):
        raise ParameterError(
            f"approve returned {shown(answer)}; return True to play the plan, or False."
        )
    if answer:
        return playing._replace(plan=plan, declined=0)
    return playing._replace(plan=before, declined=playing.declined + 1)
