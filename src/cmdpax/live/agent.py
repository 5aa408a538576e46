"""`Agent`: a learner that is asked for actions and told what happened."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cmdpax.checks import require_flag
from cmdpax.errors import ParameterError
from cmdpax.jax_context import in_double_precision, to_numpy
from cmdpax.learners import DEFAULT_ALGORITHM, Named, as_algorithm
from cmdpax.learners.contract import require_sound
from cmdpax.learners.optimism import Optimism
from cmdpax.live import saving
from cmdpax.live.accounts import AgentAccount, Tally
from cmdpax.live.declaration import Declaration, declare
from cmdpax.live.episode import Episode, EpisodeRecord, episodes_of
from cmdpax.live.saving import Position
from cmdpax.live.steps import LearnerInputs, begin, follow, look, make_inputs, trajectory_of
from cmdpax.live.turns import Turn, in_turn
from cmdpax.model.cmdp import Sizes
from cmdpax.model.log import Log


class Agent:
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
        reward_range: the least and the largest reward of a step, in your units.
        constraint_ranges: the same for the constraints' signals: one pair for all, or one for each.
        senses: "at least" or "at most" (costs), for all constraints or for each.
        names: the names of the constraints, for the account; `constraint_names` is the same.
        state_names: the names of the states; then `act` and `observe` take them.
        action_names: the names of the actions; then `act` returns one.
        units: the units of the reward and of the constraints, as for `cmdpax.CMDP`; the objective
            is called "reward".
        parameters: those of the algorithm, as for `learn`. In the paper's algorithms, λ_max bounds
            the multipliers of signals scaled to [0, 1], and the margin makes thresholds stricter,
            in units of such a signal.

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
        reward_range: tuple[float, float] = (0.0, 1.0),
        constraint_ranges: Any = (0.0, 1.0),
        senses: str | Sequence[str] = "at least",
        names: Sequence[str] | None = None,
        constraint_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        units: Mapping[str, str] | Sequence[str] | None = None,
        **parameters: Any,
    ) -> None:
        """Check the declaration, and compile."""
        given = dict(locals())
        known = as_algorithm(algorithm)
        chosen = given.pop("parameters")
        about = {name: given[name] for name in given if name not in ("self", "algorithm")}
        known_names = tuple(about)
        about |= {"unit_names": about.pop("units"), "names": about.pop("constraint_names") or names}
        declared = declare(known, chosen, known_names, **about)
        tally = Tally.empty(declared.sizes.num_constraints)
        with jax.enable_x64(True):
            inputs = make_inputs(declared, known)
            self._go_on(inputs, Position(declared, begin(inputs), tally, Episode()))

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
        if episode.steps:
            self._now = self._after(episode, True)
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
        own = require_flag("own", own)
        episodes = episodes_of(log, self.declaration)
        self._now.tally.require_room(len(episodes), self._sizes.horizon)
        for episode in episodes:
            for step, action in enumerate(episode.actions):
                state, following = episode.states[step : step + 2]
                self.declaration.require_possible(step, state, action, following)
        for episode in episodes:
            self._now = self._after(episode, own)

    # --------------------------------------------------------------------------------- what it is

    @property
    def policy(self) -> np.ndarray:
        """π_k of the open or coming episode, `[H, S, A]`."""
        return np.array(self._now.episode.policy)

    @property
    def multipliers(self) -> np.ndarray:
        """λ_k of the open or coming episode, `[I]`, for signals that are scaled to [0, 1]."""
        return np.array(self._now.episode.multipliers)

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

    # --------------------------------------------------------------------------------------- files

    @in_turn
    def save(self, path: str | Path) -> None:
        """Write everything to a file, whole or not at all; no other process may save to it then."""
        self._owned.require(Path(path))
        saving.save(Path(path), self._now)

    @classmethod
    @in_double_precision
    def load(cls, path: str | Path, *, algorithm: Named | None = None) -> "Agent":
        """An agent that goes on where the saved one was.

        Args:
            path: what `save` wrote, with the same version of cmdpax.
            algorithm: the factory, where it is your own, or its address: files are never a reason
                to import anything. It is compared by its name.

        Raises:
            FileError: the file is damaged, not an agent's, or from another version.
        """
        found = saving.read(Path(path))
        known = found.declared.algorithm_of(path, algorithm)
        inputs = make_inputs(found.declared, known)
        state = saving.restore(Path(path), found.state, jax.eval_shape(begin, inputs))
        agent = cls.__new__(cls)
        agent._go_on(inputs, found._replace(state=state))
        return agent

    # -------------------------------------------------------------------------------------- inside

    _now: Position

    @property
    def _sizes(self) -> Sizes:
        return self._now.declared.sizes

    @in_double_precision
    def _go_on(self, inputs: LearnerInputs, position: Position) -> None:
        """Take up a position, and compile every program before the first decision."""
        self._turn, self._owned, self._inputs = Turn(), saving.Owned(), inputs
        coming, before = self._look(position), position.episode
        episode = coming._replace(
            states=before.states,
            actions=before.actions,
            observed=before.observed,
            action=before.action,
        )
        self._now = position._replace(episode=episode)
        nothing = np.zeros((0, 1 + self._sizes.num_constraints))
        trajectory = trajectory_of(self._sizes, Episode(), nothing)
        follow(inputs, position.state, trajectory, np.int32(1))

    def _look(self, position: Position) -> Episode:
        """The coming episode, with what the learner believes in the user's units."""
        declared, learned = position.declared, position.tally.learned
        number = np.int32(learned + 1)
        coming, flaws = jax.tree.map(np.asarray, look(self._inputs, position.state, number))
        kept = "the agent is as it was" if learned else ""
        restricted = declared.available is not None
        require_sound(declared.algorithm, number * flaws[None], lambda place: kept, restricted)
        horizon = declared.sizes.horizon
        believed = np.clip(coming.optimistic, 0, horizon)  # dual learners do not truncate
        return coming._replace(optimistic=declared.units.constraint_values(believed, horizon))

    def _after(self, episode: Episode, played: bool) -> Position:
        """Where the agent stands after an episode, which it played or only learns from."""
        declared, now = self.declaration, self._now
        units, sizes, signals = declared.units, declared.sizes, np.asarray(episode.observed)
        trajectory = trajectory_of(sizes, episode, units.inward(signals))
        number = np.int32(now.tally.learned + 1)
        state = follow(self._inputs, now.state, trajectory, number)
        missing = sizes.horizon - len(signals)
        missed = units.misses(signals.sum(axis=0)[1:], declared.thresholds, missing)
        tally = dataclasses.replace(now.tally, fed=now.tally.fed + 1)
        if played:
            tally = now.tally.after(signals, missed, self.multipliers, missing)
        after = now._replace(state=state, tally=tally)
        return after._replace(episode=self._look(after))

    def _named(self, kind: str, index: int) -> Any:
        """A state or an action by its name, if it has one."""
        names = getattr(self.declaration.words, f"{kind}_names")
        return index if names is None else names[index]

    def _require(self, call: str) -> None:
        self._now.episode.require(call, self._sizes.horizon)
