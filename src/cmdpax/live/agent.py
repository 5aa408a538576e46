"""`Agent`: a learner that is asked for actions and told what happened."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cmdpax.checks import check_choice, require_flag
from cmdpax.errors import OrderError, ParameterError
from cmdpax.jax_context import in_double_precision
from cmdpax.learners import DEFAULT_ALGORITHM, Named, as_algorithm
from cmdpax.learners.optimism import Optimism
from cmdpax.live import course, saving
from cmdpax.live.accounts import Tally
from cmdpax.live.background import Background
from cmdpax.live.checking import asks_of, either_names
from cmdpax.live.declaration import declare
from cmdpax.live.episode import Episode, EpisodeRecord, episodes_of
from cmdpax.live.playing import Approve, Playing
from cmdpax.live.saving import Position
from cmdpax.live.steps import begin, make_inputs
from cmdpax.live.turns import Turn, in_turn
from cmdpax.live.view import AgentView
from cmdpax.model.log import Log


class Agent(AgentView):
    """A learner for a live system: it is asked for actions, and told what happened.

        agent.start(state)
        for every step:
            action = agent.act(state)
            agent.observe(reward, constraint_rewards, next_state)
        agent.end()

    The learners are those of `cmdpax.learn`: the same definitions, told sizes, thresholds, the
    start and, where they are known, the rewards. The model is unknown. Programs are compiled when
    an agent is made, not while it decides. Calls from several threads are taken one by one.

    Args:
        algorithm: one of `cmdpax.algorithms()`, "module:factory", or a factory of your own; by
            default the one that `learn` takes.
        num_states: S; states are 0 … S - 1.
        num_actions: A.
        horizon: H, the steps of an episode.
        thresholds: c, one per constraint, on the sum over an episode, in your units.
        initial: μ, the distribution of the first state, or the one state that is always first.
        seed: the seed of the actions' randomness.
        rewards: r, `[H, S, A]` or `[1, S, A]`, where it is known; then `constraint_rewards` too.
        constraint_rewards: u, `[I, H, S, A]` or `[I, 1, S, A]`.
        successors: the states that may follow, where that is known, `[H or 1, S, A, N]`, -1 for
            unused slots; or a `cmdpax.Successors`, whose probabilities only mark the slots in use.
        available: which actions there are, `[S, A]` or `[H, S, A]`; None: all of them.
        optimism: a profile or a `cmdpax.Optimism`; None is "empirical" where rewards are given,
            else "live".
        stationary: the system is the same at every step: counts are shared by the steps.
        reward_range: the least and the largest reward of a step, in your units. Without it the
            agent takes the range that it has observed, and widens it when it has to; a declared
            range helps. (Algorithms that do not replan take [0, 1].)
        constraint_ranges: the same for the constraints' signals: one pair for all, or one for each.
        senses: "at least" or "at most" (costs), for all constraints or for each.
        names: the names of the constraints, for the account; `constraint_names` is the same.
        state_names: the names of the states; then `act` and `observe` take them.
        action_names: the names of the actions; then `act` returns one.
        units: the units of the reward and of the constraints, as for `cmdpax.CMDP`; the objective
            is called "reward".
        margin: by how much thresholds are made stricter for the learner, in your units, one number
            for all constraints or one for each; the account keeps to the thresholds. A schedule
            is one for signals scaled to [0, 1].
        baseline: a policy that is trusted to be safe, and played first: `[H, S, A]` or `[S, A]`, an
            action for every state, or a function of the state. Plans are then played as often as
            the confidence allows. An algorithm that starts from a safe policy plays it when it
            decides to.
        baseline_values: for such an algorithm, what an episode of the baseline brings on average in
            each constraint, `[I]`, in your units: nobody can evaluate it for you.
        confidence: with which probability every episode's policy must meet all constraints, where
            there is a baseline; None is 0.9.
        approve: called with a `PolicyChange` before a new plan is played; where it returns False
            the plan is not played.
        plan: "foreground" learns and plans in `end`; "background" does so in a thread, while the
            old policy is played on. Then `end` takes as long as it takes to count, `approve` is
            called in that thread, and which episode a plan is first played in depends on how long
            it took; what went wrong in the thread is raised by the next `end`.
        parameters: those of the algorithm, as for `learn`. In the paper's algorithms, λ_max bounds
            the multipliers of signals scaled to [0, 1].

    Examples:
        >>> import cmdpax
        >>> agent = cmdpax.Agent(
        ...     num_states=2, num_actions=2, horizon=3,
        ...     thresholds=[30.0], senses="at most", constraint_ranges=(0, 20), initial=0, seed=1,
        ... )
        >>> agent.start(0)
        >>> for _ in range(3):
        ...     action = agent.act(agent.state)
        ...     agent.observe(reward=0.5, constraint_rewards=[8.0], next_state=1 - agent.state)
        >>> agent.end()
        EpisodeRecord(episode=1, steps=3, reward=1.5, constraint_returns=array([24.]))
        >>> agent.account[0].threshold, agent.account[0].observed.mean
        (30.0, 24.0)
    """

    def __init__(
        self,
        algorithm: Named = DEFAULT_ALGORITHM,
        *,
        num_states: int,
        num_actions: int,
        horizon: int,
        thresholds: Any,
        initial: Any,
        seed: int = 0,
        rewards: Any = None,
        constraint_rewards: Any = None,
        successors: Any = None,
        available: Any = None,
        optimism: str | Optimism | None = None,
        stationary: bool = False,
        reward_range: tuple[float, float] | None = None,
        constraint_ranges: Any = None,
        senses: str | Sequence[str] = "at least",
        names: Sequence[str] | None = None,
        constraint_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        units: Mapping[str, str] | Sequence[str] | None = None,
        margin: Any = None,
        baseline: Any = None,
        baseline_values: Any = None,
        confidence: float | None = None,
        approve: Approve | None = None,
        plan: str = "foreground",
        **parameters: Any,
    ) -> None:
        """Check the declaration, and compile."""
        given = dict(locals())
        known = as_algorithm(algorithm)
        chosen = given.pop("parameters")
        about = {name: given[name] for name in given if name not in ("self", "algorithm", "plan")}
        known_names = tuple(about)
        about |= {"unit_names": about.pop("units"), "asks": asks_of(about.pop("approve"))}
        about["names"] = either_names(names, about.pop("constraint_names"))
        declared = declare(known, chosen, known_names, **about)
        tally = Tally.empty(declared.sizes.num_constraints)
        with jax.enable_x64(True):
            inputs = make_inputs(declared, known)
            first = Position(declared, begin(inputs), tally, Episode(), Playing(), inputs)
            self._go_on(first, approve, plan)

    # ------------------------------------------------------------------------------- ask and tell

    @in_turn
    def start(self, state: int | str) -> None:
        """Begin an episode in a state."""
        self._require("start")
        first = self.declaration.state_index("the first state", state)
        if not self.declaration.initial[first] > 0:
            raise ParameterError(
                f"the first state is {self._named('state', first)}, which initial gives "
                "probability 0; declare where "
                "episodes begin."
            )
        self._now.tally.require_room(1, self._sizes.horizon)
        self._now = self._now._replace(episode=self._now.episode._replace(states=(first,)))

    @in_turn
    def act(self, state: int | str | None) -> Any:
        """The action for the step, by its name if it has one; the state is the last that was told.

        States may be given by name or by index.
        """
        self._require("act")
        episode = self._now.episode
        current = episode.states[-1]
        if self.declaration.state_index("the state", state) != current:
            told = self._named("state", current)
            raise ParameterError(
                f"the state is {state}, but {told} was told last; act in that one, or, if the "
                "system went on meanwhile, agent.end() the episode and start anew."
            )
        action = int(episode.drawn[episode.steps, current])
        self._now = self._now._replace(episode=episode._replace(action=action))
        return self._named("action", action)

    @in_turn
    def observe(
        self,
        reward: float,
        constraint_rewards: Any,
        next_state: int | str,
        *,
        action: int | str | None = None,
    ) -> None:
        """Tell what a step brought.

        Args:
            reward: in your units, within `reward_range`.
            constraint_rewards: the constraints' signals, one number each, in your units and within
                `constraint_ranges`: constraint rewards where they must be at least their
                threshold, costs where at most.
            next_state: the state that follows.
            action: what was done, where it is not what the agent said: a person or a safeguard
                stepped in. Learning is from what was done.
        """
        self._require("observe")
        episode = self._now.episode
        signals = self.declaration.signals(reward, constraint_rewards)
        done = episode.action if action is None else action
        taken = self.declaration.action_index(done)
        following = self.declaration.state_index("next_state", next_state)
        self.declaration.require_possible(episode.steps, episode.states[-1], taken, following)
        self._now = self._now._replace(episode=episode.after(taken, signals, following))

    @in_turn
    @in_double_precision
    def end(self) -> EpisodeRecord:
        """End the episode, and learn from the steps that happened.

        Before the horizon it cuts the episode short: the steps that were observed count, an action
        that was not is dropped. If none happened, nothing is counted and no episode was played.
        """
        self._require("end")
        episode, number = self._now.episode, self.episode
        signals = np.reshape(episode.observed, (-1, 1 + self._sizes.num_constraints))
        if episode.steps and self._background is not None and course.fits(self._now, episode):
            now = self._background.advanced(course.put_off(self._now, episode))
            self._now = course.redrawn(now)
            self._background.learn_from(self._now)
        elif episode.steps:
            self._settle()
            begun = time.perf_counter()
            now = course.learned(self._now, episode, played=True)
            now = course.decided(now, self._approve)
            self._now = course.timed(now, episode.plans, begun)
        else:
            self._now = self._now._replace(episode=episode._replace(states=(), action=None))
        returns = signals.sum(axis=0)
        return EpisodeRecord(number, episode.steps, float(returns[0]), returns[1:])

    @in_turn
    @in_double_precision
    def feed(self, log: Log, *, own: bool = False) -> None:
        """Learn from logged episodes, as if the agent had played them.

        Args:
            log: `.states [K, H+1]`, `.actions [K, H]`, `.rewards [K, H]`, `.constraint_rewards
                [K, I, H]`, in your units; steps that did not happen have action -1. All of it is
                checked before any of it is counted; interrupted, the first episodes are.
            own: agents played these episodes (such as this one before an upgrade), so that they
                belong in the account; others only teach.
        """
        self._require("feed")
        self._settle()
        own = require_flag("own", own)
        episodes = episodes_of(log, self.declaration)
        self._now.tally.require_room(len(episodes), self._sizes.horizon)
        for episode in episodes:
            for step, action in enumerate(episode.actions):
                state, following = episode.states[step : step + 2]
                self.declaration.require_possible(step, state, action, following)
        now = self._now
        try:
            for episode in episodes:
                later = course.learned(now, episode, played=own)
                now = course.seen(later) if own else later  # an account holds all multipliers
        finally:  # interrupted, too
            self._now = course.decided(now, self._approve, judge=True)

    # ------------------------------------------------------------------------------ what it plays

    @in_turn
    @in_double_precision
    def freeze(self) -> None:
        """Play the present policy, or mixture, from the next episode on, whatever is learned.

        What happens is still learned from and accounted for, and plans are made of it; they are
        not played until `resume`.
        """
        self._require("freeze")
        now, playing = self._now, self._now.playing
        plan = now.episode.plan if playing.plan is None else playing.plan
        self._now = now._replace(playing=playing._replace(plan=np.array(plan), frozen=True))
        if self._background is not None:
            self._background.learn_from(self._now)

    @in_turn
    @in_double_precision
    def resume(self) -> None:
        """Play the learner's plans again, after `freeze`."""
        self._require("resume")
        self._settle()
        now, playing = self._now, self._now.playing
        if not playing.frozen:
            raise OrderError("agent.resume was called, but the agent is not frozen.")
        kept = playing.plan if now.declared.asks else None
        thawed = now._replace(playing=playing._replace(frozen=False, plan=kept))
        self._now = course.decided(thawed, self._approve)

    @in_turn
    @in_double_precision
    def catch_up(self) -> None:
        """Wait until all episodes are learned from, and the plan is made, if a thread plans.

        The last plan is played from the next episode on.
        """
        self._require("catch_up")
        self._settle()

    # --------------------------------------------------------------------------------------- files

    @in_turn
    def save(self, path: str | Path) -> None:
        """Write everything to a file, whole or not at all; no other process may save to it then.

        A plan that is made in the background is not waited for: episodes that it has not learned
        from are in the file.
        """
        self._owned.require(Path(path))
        saving.save(Path(path), self._now)

    @classmethod
    @in_double_precision
    def load(
        cls,
        path: str | Path,
        *,
        algorithm: Named | None = None,
        approve: Approve | None = None,
        plan: str = "foreground",
    ) -> "Agent":
        """An agent that goes on where the saved one was.

        Args:
            path: what `save` wrote.
            algorithm: the factory, where it is your own, or its address: files are never a reason
                to import anything. It is compared by its name.
            approve: who approves plans, where the saved agent asked.
            plan: "foreground" or "background", as for an agent that is made.

        Raises:
            FileError: the file is damaged, not an agent's, or from another version.
        """
        found = saving.read(Path(path))
        known = found.declared.algorithm_of(path, algorithm)
        if found.declared.asks != asks_of(approve):
            does = "asked before it played a plan" if found.declared.asks else "did not ask"
            fix = "give approve= again" if found.declared.asks else "leave approve= out"
            raise ParameterError(f"{path} was saved by an agent that {does}; {fix}.")
        inputs = make_inputs(found.declared, known)
        state = saving.restore(Path(path), found.state, jax.eval_shape(begin, inputs))
        agent = cls.__new__(cls)
        agent._go_on(found._replace(state=state, inputs=inputs), approve, plan)
        return agent

    # -------------------------------------------------------------------------------------- inside

    @in_double_precision
    def _go_on(self, position: Position, approve: Approve | None, plan: str) -> None:
        """Take up a position, and compile every program before the first decision."""
        check_choice("plan", plan, ("foreground", "background"))
        self._turn, self._owned, self._approve = Turn(), saving.Owned(), approve
        self._background = Background(approve, self._turn) if plan == "background" else None
        now = course.decided(course.aiming(position), approve)
        self._now = now._replace(episode=now.episode.going_on(position.episode))
        num_constraints = position.declared.sizes.num_constraints
        course.compile_all(self._now, np.zeros((0, 1 + num_constraints)))
        if self._background is not None:
            course.prepare_chances(self._now)

    @in_double_precision
    def _settle(self) -> None:
        """Learn from the episodes that wait, or wait until the thread has."""
        now, thread = self._now, self._background
        if not now.waiting:
            return
        later = course.caught_up(now, self._approve) if thread is None else thread.settled(now)
        coming = course.redrawn(later).episode.going_on(now.episode)
        self._now = later._replace(episode=coming)

    def __getstate__(self) -> dict[str, Any]:
        """A copy goes on by itself: with a turn and a thread of its own, and no files yet."""
        turn, thread = Turn(), self._background
        own = {"_turn": turn, "_owned": saving.Owned()}
        own["_background"] = None if thread is None else thread.of_copy(turn)
        return self.__dict__ | own

    def _require(self, call: str) -> None:
        self._now.episode.require(call, self._sizes.horizon)
