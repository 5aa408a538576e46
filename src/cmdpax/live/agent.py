"""`Agent`: a learner that is asked for actions and told what happened."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from cmdpax.checks import require_flag, require_index
from cmdpax.errors import ParameterError
from cmdpax.jax_context import in_double_precision, to_numpy
from cmdpax.learners import Algorithm, Named, as_algorithm
from cmdpax.learners.contract import require_sound
from cmdpax.learners.optimism import Optimism
from cmdpax.live import saving
from cmdpax.live.accounts import AgentAccount, Tally, make_account
from cmdpax.live.declaration import FOREVER, Declaration, declare
from cmdpax.live.episode import EpisodeRecord, OpenEpisode
from cmdpax.live.inputs import Setting, make_inputs
from cmdpax.live.logs import Logged, episodes_of
from cmdpax.live.steps import ComingEpisode, begin, follow, look, no_steps, shapes, trajectory_of
from cmdpax.live.turns import Turn, in_turn
from cmdpax.model.log import Log
from cmdpax.storage.trees import leaves_of


class _Now(NamedTuple):
    """Where an agent stands: replaced as a whole, so that no interruption leaves a half of it."""

    state: Any  # the learner's
    tally: Tally
    coming: ComingEpisode
    episode: OpenEpisode


class Agent:
    """A learner for a live system: it is asked for actions, and told what happened.

        agent.start(state)
        for every step:
            action = agent.act(state)
            agent.observe(reward, constraint_rewards, next_state)
        agent.end()

    The learners are those of `cmdpax.learn`: the same definitions, told sizes, thresholds, the
    start and, where they are known, the rewards. The model is unknown. Programs are compiled when
    an agent is made, not while it decides. Calls of several threads are taken one after the other.

    Args:
        algorithm: one of `cmdpax.algorithms()`, "module:factory", or a factory of your own.
        num_states: S; states are 0 … S - 1.
        num_actions: A.
        horizon: H, the steps of an episode.
        thresholds: c, one per constraint, on the sum over an episode, in your units.
        initial: μ, the distribution of the first state, or the one state that is always first.
        seed: of the actions' randomness.
        rewards: r, `[H, S, A]` or `[1, S, A]`, where it is known; then `constraint_rewards` too.
        constraint_rewards: u, `[I, H, S, A]` or `[I, 1, S, A]`.
        successors: the states that may follow, where that is known, `[H or 1, S, A, N]`, -1 for
            unused slots; or a `cmdpax.Successors`, of which only the places are used.
        optimism: a profile or a `cmdpax.Optimism`; None is "empirical" where rewards are given,
            else "live".
        stationary: the system is the same at every step: counts are shared by the steps.
        reward_range: the least and the largest reward of a step, in your units.
        constraint_ranges: likewise of the constraints' signals: one pair for all, or one for each.
        senses: "at least" or "at most" (costs), for all constraints or for each.
        names: of the constraints, for the account.
        parameters: those of the algorithm, as for `learn`. Of the paper's algorithms, λ_max bounds
            multipliers of signals that are scaled to [0, 1], and the margin makes thresholds
            stricter by so much of such a signal.

    Examples:
        >>> import cmdpax
        >>> agent = cmdpax.Agent(
        ...     "regularized-primal-dual", num_states=2, num_actions=2, horizon=3,
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
        algorithm: Named,
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
        optimism: str | Optimism | None = None,
        stationary: bool = False,
        reward_range: tuple[float, float] = (0.0, 1.0),
        constraint_ranges: Any = (0.0, 1.0),
        senses: str | Sequence[str] = "at least",
        names: Sequence[str] | None = None,
        **parameters: Any,
    ) -> None:
        """Check the declaration, and compile."""
        given = dict(locals())
        known = as_algorithm(algorithm)
        chosen = given.pop("parameters")
        about = {name: given[name] for name in given if name not in ("self", "algorithm")}
        declared = declare(known, chosen, tuple(about), **about)
        self._prepare(declared, known)
        tally = Tally.empty(declared.sizes.num_constraints)
        with jax.enable_x64(True):
            first = begin(self._setting, self._inputs, np.uint32(declared.seed))
        self._go_on(first, tally, OpenEpisode())

    # ------------------------------------------------------------------------------- ask and tell

    @in_turn
    def start(self, state: int) -> None:
        """Begin an episode in a state."""
        self._require("start")
        first = require_index("the first state", state, self._sizes.num_states, "states")
        if not self._declared.initial[first] > 0:
            raise ParameterError(
                f"the first state is {first}, which initial gives probability 0; declare where "
                "episodes begin."
            )
        self._now.tally.require_room(1, self._sizes.horizon)
        self._now = self._now._replace(episode=OpenEpisode((first,)))

    @in_turn
    def act(self, state: int) -> int:
        """The action for the step; the state is the one that was told last."""
        self._require("act")
        episode = self._now.episode
        current = episode.states[-1]
        if require_index("the state", state, self._sizes.num_states, "states") != current:
            raise ParameterError(
                f"the state is {state}, but {current} was told last; act in that one, or, if the "
                "system went on meanwhile, agent.end() the episode and start anew."
            )
        action = int(self._now.coming.actions[episode.steps, current])
        self._now = self._now._replace(episode=episode._replace(action=action))
        return action

    @in_turn
    def observe(
        self,
        reward: float,
        constraint_rewards: Any,
        next_state: int,
        *,
        action: int | None = None,
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
        signals = self._declared.signals(reward, constraint_rewards)
        done = episode.action if action is None else action
        taken = require_index("action", done, self._sizes.num_actions, "actions")
        following = require_index("next_state", next_state, self._sizes.num_states, "states")
        self._declared.require_listed(episode.steps, episode.states[-1], taken, following)
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
        signals = np.array(episode.observed).reshape(-1, 1 + self._sizes.num_constraints)
        if episode.steps:
            self._now = self._after(Logged(episode.states, episode.actions, signals), True)
        else:
            self._now = self._now._replace(episode=OpenEpisode())
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
        own = require_flag("own", own)
        episodes = episodes_of(log, self._declared)
        self._now.tally.require_room(len(episodes), self._sizes.horizon)
        for states, actions, _ in episodes:
            for step, action in enumerate(actions):
                self._declared.require_listed(step, states[step], action, states[step + 1])
        for episode in episodes:
            self._now = self._after(episode, own)

    # --------------------------------------------------------------------------------- what it is

    @property
    def policy(self) -> np.ndarray:
        """π_k of the open or coming episode, `[H, S, A]`."""
        return np.array(self._now.coming.policy)

    @property
    def multipliers(self) -> np.ndarray:
        """λ_k of the open or coming episode, `[I]`, of signals that are scaled to [0, 1]."""
        return np.array(self._now.coming.multipliers)

    @property
    def account(self) -> AgentAccount:
        """The safety account: for every constraint what was observed, and what is believed."""
        return self._account(self._now)

    def _account(self, now: _Now) -> AgentAccount:
        declared, coming = self._declared, now.coming
        horizon = self._sizes.horizon
        believed = np.clip(coming.constraint_values, 0, horizon)  # dual learners do not truncate
        estimates = declared.units.constraint_values(believed, horizon)
        return make_account(
            now.tally,
            declared.units,
            declared.names,
            declared.thresholds,
            horizon,
            estimates,
            np.asarray(coming.multipliers),
        )

    @property
    def recent(self) -> dict[str, np.ndarray]:
        """The last 200 episodes, oldest first: rewards, constraint_returns, multipliers."""
        count = self._sizes.num_constraints
        parts = np.split(self._now.tally.recent.copy(), [1, 1 + count, 1 + 2 * count], axis=1)
        rewards, returns, multipliers, _ = parts
        return {"rewards": rewards[:, 0], "constraint_returns": returns, "multipliers": multipliers}

    @property
    def visits(self) -> np.ndarray:
        """How often every action was tried, `[H, S, A]`; `[1, S, A]` if steps share counts."""
        if self._now.coming.visits is None:
            raise ParameterError("this learner shows no statistics, so visits are not known.")
        return np.array(self._now.coming.visits)

    @property
    def learner_state(self) -> Any:
        """The learner's state, as NumPy arrays."""
        return to_numpy(self._now.state)

    @property
    def declaration(self) -> Declaration:
        """What was declared of the system."""
        return self._declared

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
    def state(self) -> int | None:
        """The state that was told last; None if no episode is open."""
        states = self._now.episode.states
        return states[-1] if states else None

    @property
    def action(self) -> int | None:
        """The action that was given and not yet observed."""
        return self._now.episode.action

    @property
    def expects(self) -> str:
        """The call that comes next: "start", "act", "observe" or "end"."""
        return self._now.episode.expects(self._sizes.horizon)

    def __repr__(self) -> str:
        """The sizes, and how far it is."""
        count, horizon, states, actions = self._sizes
        sizes = f"S={states}, A={actions}, H={horizon}, I={count}"
        return f"Agent({self._declared.algorithm!r}, {sizes}, episodes={self.num_episodes})"

    # --------------------------------------------------------------------------------------- files

    @in_turn
    def save(self, path: str | Path) -> None:
        """Write everything to a file, whole or not at all; no other process may save to it then."""
        self._owned.require(Path(path))
        now = self._now
        account, leaves = self._account(now), leaves_of(now.state)
        saved = saving.Saved(self._declared, now.tally, now.episode, leaves, account)
        saving.save(Path(path), saved)

    @classmethod
    @in_double_precision
    def load(cls, path: str | Path, *, algorithm: Named | None = None) -> "Agent":
        """An agent that goes on where the saved one was.

        Args:
            path: what `save` wrote, with the same version of cmdpax.
            algorithm: the factory, where it is your own, or its address: files are never a reason
                to import anything. It is compared by its name.

        Raises:
            FileError: the file is damaged, something else, or of another version.
        """
        found = saving.read(Path(path))
        known = found.declared.algorithm_of(path, algorithm)
        agent = cls.__new__(cls)
        agent._prepare(found.declared, known)
        wanted = shapes(agent._setting, agent._inputs)
        state = saving.restore(Path(path), found.leaves, wanted)
        agent._go_on(state, found.tally, found.episode)
        return agent

    # -------------------------------------------------------------------------------------- inside

    _now: _Now

    def _prepare(self, declared: Declaration, algorithm: Algorithm) -> None:
        """What never changes, and what belongs to this object alone."""
        self._turn, self._owned = Turn(), saving.Owned()
        self._declared = declared
        self._sizes = declared.sizes
        chosen = algorithm.restore(declared.parameters, FOREVER)
        choices = algorithm.choices(chosen)
        self._setting = Setting(algorithm.program, choices, declared.sizes, declared.stationary)
        with jax.enable_x64(True):
            self._inputs = make_inputs(declared, algorithm.numbers(chosen))

    @in_double_precision
    def _go_on(self, state: Any, tally: Tally, episode: OpenEpisode) -> None:
        """Take up a position, and compile every program before the first decision."""
        self._now = _Now(state, tally, self._look(state, tally), episode)
        nothing = jax.tree.map(np.asarray, no_steps(self._sizes, float))
        self._follow(state, nothing, 1)

    def _look(self, state: Any, tally: Tally) -> ComingEpisode:
        seed, number = np.uint32(self._declared.seed), np.int32(tally.learned + 1)
        coming = jax.tree.map(np.asarray, look(self._setting, self._inputs, state, seed, number))
        kept = "the agent is as it was" if tally.learned else ""
        require_sound(self._declared.algorithm, number * coming.flaws[None], lambda place: kept)
        return coming

    def _after(self, episode: Logged, played: bool) -> _Now:
        """Where the agent stands after an episode, which it played or only learns from."""
        declared, now = self._declared, self._now
        signals = episode.signals
        inside = declared.units.inward(signals)
        trajectory = trajectory_of(self._sizes, episode.states, episode.actions, inside)
        state = self._follow(now.state, trajectory, now.tally.learned + 1)
        missing = self._sizes.horizon - len(signals)
        missed = declared.units.misses(signals.sum(axis=0)[1:], declared.thresholds, missing)
        tally = dataclasses.replace(now.tally, fed=now.tally.fed + 1)
        if played:
            tally = now.tally.after(signals, missed, self.multipliers, missing)
        return _Now(state, tally, self._look(state, tally), OpenEpisode())

    def _follow(self, state: Any, trajectory: Any, episode: int) -> Any:
        seed = np.uint32(self._declared.seed)
        return follow(self._setting, self._inputs, state, trajectory, seed, np.int32(episode))

    def _require(self, call: str) -> None:
        self._now.episode.require(call, self._sizes.horizon)
