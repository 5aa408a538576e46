"""What can be seen of an agent: where it stands, what it plays, what it believes."""

from typing import Any

import numpy as np

from cmdpax.data.uncertainty import Uncertainty
from cmdpax.errors import ParameterError
from cmdpax.jax_context import in_double_precision, to_numpy
from cmdpax.live import course, insight
from cmdpax.live.accounts import AgentAccount
from cmdpax.live.declaration import Declaration
from cmdpax.live.insight import Explanation, Planning
from cmdpax.live.mixing import Mixture
from cmdpax.live.record import AgentRecord
from cmdpax.live.saving import Position
from cmdpax.model.cmdp import CMDP, Sizes
from cmdpax.model.policy import Policy


class AgentView:
    """The part of an agent that only looks."""

    _now: Position

    # ---------------------------------------------------------------------------- what is played

    @property
    def policy(self) -> Policy:
        """π_k of the open or coming episode, `[H, S, A]`: a table when it is printed."""
        return insight.table_of(self._now, self._now.episode.policy)

    @property
    def plan(self) -> Policy:
        """The plan, `[H, S, A]`: π_k unless the baseline is played."""
        return insight.table_of(self._now, self._now.episode.plan)

    @property
    def mixture(self) -> Mixture | None:
        """How often the plan is played rather than the baseline; None without a baseline."""
        return self._now.playing.mixture

    @property
    def plays_plan(self) -> bool:
        """Whether the open or coming episode is played with the plan, not with the baseline."""
        return bool(self._now.episode.by_plan)

    @property
    def frozen(self) -> bool:
        """Whether the policy stays as it is until `resume`."""
        return self._now.playing.frozen

    @property
    def planning(self) -> Planning:
        """The plans that were made so far."""
        return insight.planning_of(self._now)

    @property
    def multipliers(self) -> np.ndarray:
        """λ_k of the open or coming episode, `[I]`, for signals that are scaled to [0, 1]."""
        return np.array(self._now.episode.multipliers)

    # ------------------------------------------------------------------------- what it believes

    @property
    @in_double_precision
    def model(self) -> CMDP:
        """The model of what was counted, in your units and with your names.

        Where nothing was tried, all states that may follow are as likely, and a signal is the
        worst that its range has, so that a planner does not flee there.
        """
        now = self._now
        return insight.model_of(now, course.counts(now))

    @property
    @in_double_precision
    def uncertainty(self) -> Uncertainty:
        """What the data leave open about what is played: the mixture, where there is one."""
        now = self._now
        return insight.uncertainty_of(now, course.counts(now))

    @in_double_precision
    def explain(self, state: int | str | None = None, step: int | None = None) -> Explanation:
        """What the plan does in a state, and why: values, prices and counts of every action.

        Args:
            state: its name or index; None is the one that the agent is in.
            step: from 0; None is the step that the open episode is at, or the first.
        """
        now = self._now
        declared, episode = now.declared, now.episode
        if state is None and not episode.states:
            raise ParameterError("no episode is open, so no state is known; say which state.")
        index = episode.states[-1] if state is None else declared.state_index("the state", state)
        last = declared.sizes.horizon - 1
        at = min(episode.steps, last) if step is None else step
        if isinstance(at, bool) or not isinstance(at, int | np.integer) or not 0 <= at <= last:
            raise ParameterError(f"step is {at!r}, it must be a whole number from 0 to {last}.")
        return insight.explain(now, course.counts(now), index, int(at))

    @property
    def account(self) -> AgentAccount:
        """The safety account: for every constraint what was observed, and what is believed."""
        return self._now.account

    @property
    def recent(self) -> dict[str, np.ndarray]:
        """The last 200 episodes, oldest first: rewards, constraint_returns, multipliers."""
        count = self._sizes.num_constraints
        parts = np.split(self._now.tally.recent.copy(), [1, 1 + count, 1 + 2 * count], axis=1)
        rewards, returns, multipliers, _ = parts
        return {"rewards": rewards[:, 0], "constraint_returns": returns, "multipliers": multipliers}

    @property
    def record(self) -> AgentRecord:
        """All episodes that were played, in at most 512 blocks: means and extremes of returns."""
        return self._now.record

    @property
    def visits(self) -> np.ndarray:
        """How often every action was tried, `[H, S, A]`; `[1, S, A]` if steps share counts."""
        visits = self._now.episode.visits
        if visits is None:
            raise ParameterError("this learner shows no statistics, so visits are not known.")
        return np.array(visits)

    @property
    def learner_state(self) -> Any:
        """The learner's state, as NumPy arrays."""
        return to_numpy(self._now.state)

    @property
    def declaration(self) -> Declaration:
        """What was declared about the system."""
        return self._now.declared

    # --------------------------------------------------------------------------- where it stands

    @property
    def num_episodes(self) -> int:
        """Episodes learned from, those of logs included."""
        return self._now.tally.learned

    @property
    def episode(self) -> int:
        """k, the number of the open or coming episode, from 1."""
        return self._now.tally.learned + 1

    @property
    def step(self) -> int:
        """Steps of the open episode that happened; 0 if none is open."""
        return self._now.episode.steps

    @property
    def state(self) -> Any:
        """The state that was told last, by its name if it has one; None if no episode is open."""
        states = self._now.episode.states
        return self._named("state", states[-1]) if states else None

    @property
    def action(self) -> Any:
        """The action that was given and not yet observed, by its name if it has one."""
        action = self._now.episode.action
        return None if action is None else self._named("action", action)

    @property
    def expects(self) -> str:
        """The call that comes next: "start", "act", "observe" or "end"."""
        return self._now.episode.expects(self._sizes.horizon)

    def __repr__(self) -> str:
        """The sizes, and how far it is."""
        count, horizon, states, actions = self._sizes
        sizes = f"S={states}, A={actions}, H={horizon}, I={count}"
        return f"Agent({self.declaration.algorithm!r}, {sizes}, episodes={self.num_episodes})"

    @property
    def _sizes(self) -> Sizes:
        return self._now.declared.sizes

    def _named(self, kind: str, index: int) -> Any:
        """A state or an action by its name, if it has one."""
        names = getattr(self.declaration.words, f"{kind}_names")
        return index if names is None else names[index]
