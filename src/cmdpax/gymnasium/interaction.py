"""`interact`: an agent decides in an environment, and keeps its account."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import check_choice, real_number, require_count
from cmdpax.errors import CmdpaxWarning, FileError, ParameterError, shown
from cmdpax.gymnasium.encoders import Encoder
from cmdpax.gymnasium.signals import ObservedStep, Signals, require_nothing_allowed, signals_of
from cmdpax.gymnasium.spaces import Translation, translation_of
from cmdpax.live import Agent, AgentAccount, EpisodeRecord
from cmdpax.live.saving import read
from cmdpax.model.log import Log

Callback = Callable[[Agent, EpisodeRecord], Any]
"""Called after every episode; returning True ends the interaction."""

_SECONDS = 10.0
_REFRESH = 0.2


class Interaction(NamedTuple):
    """Episodes that an agent played in an environment, in the user's units.

    Attributes:
        rewards: sums over every episode, `[K]`.
        constraint_returns: likewise of the constraints' signals, `[K, I]`.
        multipliers: λ_k, `[K, I]`.
        steps: steps of the environment, `[K]`.
        terminated: whether the environment ended the episode, `[K]`.
        account: the agent's, at the end.
        log: the episodes themselves, if asked for; steps that did not happen have action -1.
    """

    rewards: np.ndarray
    constraint_returns: np.ndarray
    multipliers: np.ndarray
    steps: np.ndarray
    terminated: np.ndarray
    account: AgentAccount
    log: Log | None


def interact(
    env: Any,
    agent: Agent,
    num_episodes: int,
    *,
    costs: Any = None,
    signals: Any = None,
    encoder: Encoder | None = None,
    decoder: Callable[[int], Any] | None = None,
    on_termination: str = "stay",
    end_state: int | None = None,
    seed: int | None = None,
    callbacks: Callback | Iterable[Callback] | None = None,
    progress: bool | Callable[[int, int], None] = False,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = _SECONDS,
    log: bool = False,
) -> Interaction:
    """Let an agent decide in an environment for some episodes.

    An episode ends at the agent's horizon. One that the environment truncates earlier is cut short.
    One that terminates stays where it ended for the remaining steps, without reward and cost, as a
    finite-horizon model has it: so the learner knows that nothing is to be had there.

    Args:
        env: a Gymnasium environment, or anything with its `reset` and `step` (five values, or
            Safety-Gymnasium's six).
        agent: an agent of the same sizes.
        num_episodes: how many to play, in addition to those that the agent has. An episode that is
            open is ended first, as cut short: an environment cannot go on in the middle of one.
        costs: where costs come from. None takes that of a step with six values, `info["costs"]` or
            `info["cost"]`; a name is another entry of `info`; a function is called with (state,
            action, next_state); an array `[S]` or `[S, A]` is looked up; a list has one of these
            per constraint. Constraints "at most" take them as they are; those "at least" take
            `info["constraint_rewards"]` if it is there, or 1 - cost if their range is (0, 1).
        signals: in place of costs, the same, but taken by every constraint as it is declared.
        encoder: turns observations into states, where they are not Discrete.
        decoder: turns actions 0 … A - 1 into the environment's, where they are not Discrete.
        on_termination: "stay", or "end" to cut terminated episodes short.
        end_state: the state where terminated episodes stay, in place of the last observation's.
            None is the last state of an agent that has one more than the environment (or than the
            encoder says). Needed where episodes can go on from an observation that ends others.
        seed: of the environment's first reset.
        callbacks: called with (agent, `EpisodeRecord`) after every episode; one that returns True
            ends the interaction.
        progress: show a bar with the account, or call a function with the episodes done and in all.
        checkpoint: a file to save the agent to, now and then, at the end and when interrupted. One
            that is there is not loaded; an agent that has learned more is not overwritten.
        checkpoint_seconds: how often, at the most; 0 is after every episode.
        log: also return the episodes.

    Examples:
        >>> import cmdpax, cmdpax.gymnasium
        >>> cmdp = cmdpax.environments.make("bandit")
        >>> env = cmdpax.gymnasium.make_env(cmdp)
        >>> agent = cmdpax.Agent(
        ...     "regularized-primal-dual", num_states=1, num_actions=3, horizon=1,
        ...     thresholds=cmdp.thresholds, initial=cmdp.initial, seed=0,
        ... )
        >>> found = cmdpax.gymnasium.interact(env, agent, 200, seed=0)
        >>> found.constraint_returns.shape, found.account.episodes
        ((200, 1), 200)
    """
    count = require_count("num_episodes", num_episodes)
    check_choice("on_termination", on_termination, ("stay", "end"))
    translation = translation_of(env, agent, encoder, decoder, end_state)
    source = signals_of(costs, signals, agent, translation.num_states)
    player = _Player(env, agent, source, translation, on_termination == "stay")
    called = _callbacks(callbacks)
    keeper = _Keeper(agent, checkpoint, checkpoint_seconds)
    played: list[_Played] = []
    if agent.expects != "start":
        agent.end()
    try:
        with _reporting(progress, agent) as report:
            report(0, count)
            for index in range(count):
                episode = player.play(seed if index == 0 else None)
                played.append(episode if log else episode.without_steps())
                keeper.keep()
                report(index + 1, count)
                answers = [callback(agent, episode.record) for callback in called]
                if any(isinstance(answer, bool | np.bool) and answer for answer in answers):
                    break
    finally:
        keeper.keep(now=True)
    _warn_short(played, agent)
    return _interaction(played, agent, log)


def _callbacks(given: Any) -> list[Callback]:
    called = [given] if callable(given) or given is None else given
    if not isinstance(called, Iterable) or not all(callable(c) or c is None for c in called):
        raise ParameterError(
            f"callbacks is {shown(given)}, it must be a function or some in a list."
        )
    return [callback for callback in called if callback is not None]


class _Played(NamedTuple):
    record: EpisodeRecord
    multipliers: np.ndarray
    steps: int
    terminated: bool
    states: list[int]
    actions: list[int]
    signals: list[np.ndarray]

    def without_steps(self) -> "_Played":
        """What is kept where nobody asks for the log."""
        return self._replace(states=[], actions=[], signals=[])


class _Player:
    """Plays one episode after the other."""

    def __init__(
        self, env: Any, agent: Agent, source: Signals, translation: Translation, stays: bool
    ) -> None:
        self._env, self._agent, self._source, self._stays = env, agent, source, stays
        self._encode, self._decode, self._end_state, _ = translation
        self._ended: set[int] = set()
        self._went_on: set[int] = set()
        self._warned = False
        self._rest: np.ndarray | None = None  # the signals of a step after the end

    def play(self, seed: int | None) -> _Played:
        """One episode of the environment, as one of the agent."""
        agent, multipliers = self._agent, self._agent.multipliers
        state = self._reset(seed)
        agent.start(state)
        states, actions, signals = [state], [], []
        over = terminated = False
        steps = 0
        while agent.expects == "act" and not over:
            action = agent.act(states[-1])
            if terminated:
                state, reward, costs = states[-1], 0.0, self._nothing()
            else:
                state, reward, costs, terminated, truncated = self._step(states[-1], action)
                steps += 1
                over = not self._stays if terminated else truncated
            agent.observe(reward, costs, state)
            states.append(state)
            actions.append(action)
            signals.append(np.append(reward, costs))
        return _Played(agent.end(), multipliers, steps, terminated, states, actions, signals)

    def _nothing(self) -> np.ndarray:
        """The signals of a step after the end, checked once."""
        if self._rest is None:
            rest = self._source.nothing()
            require_nothing_allowed(self._agent, rest)
            self._rest = rest
        return self._rest

    def _reset(self, seed: int | None) -> int:
        values = self._env.reset() if seed is None else self._env.reset(seed=seed)
        if not isinstance(values, tuple) or len(values) != 2:
            raise ParameterError(
                f"the environment's reset returns {shown(values)}; it must return an observation "
                "and an info (Gymnasium)."
            )
        return self._encode(values[0])

    def _step(self, state: int, action: int) -> tuple[int, float, np.ndarray, bool, bool]:
        values = self._env.step(self._decode(action))
        if len(values) not in (5, 6):
            raise ParameterError(
                f"the environment's step returns {len(values)} values; it must return five "
                "(Gymnasium) or six (Safety-Gymnasium)."
            )
        cost = values[2] if len(values) == 6 else None
        observation, reward, *_ = values
        terminated, truncated, info = values[-3:]
        following = self._encode(observation)
        costs = self._source.read(ObservedStep(state, action, following, cost, info))
        if terminated and self._end_state is not None:
            following = self._end_state
        self._went_on.add(state)
        if terminated and self._stays:
            self._ended.add(following)
        if not self._warned:
            self._warn_mixed(state, following)
        return following, float(reward), costs, bool(terminated), bool(truncated)

    def _warn_mixed(self, *states: int) -> None:
        """Staying in a state that others go on from would be counted as if it were played."""
        mixed = [state for state in states if state in self._ended and state in self._went_on]
        if mixed:
            self._warned = True
            warnings.warn(
                f"episodes terminated in state {mixed[0]} and also went on from it, so that "
                "staying there is counted as playing there; make the agent with one state more, "
                "where terminated episodes stay.",
                CmdpaxWarning,
                stacklevel=5,
            )


class _Keeper:
    """Saves an agent now and then."""

    def __init__(self, agent: Agent, path: str | Path | None, seconds: float) -> None:
        if not real_number(seconds) >= 0:
            raise ParameterError(
                f"checkpoint_seconds is {shown(seconds)}, it must be a number that is not negative."
            )
        self._agent, self._path, self._seconds = agent, path, seconds
        self._saved = time.monotonic()
        if path is not None:
            _require_older(Path(path), agent)
            agent.save(path)  # a path that cannot be written to is refused before any episode

    def keep(self, *, now: bool = False) -> None:
        if self._path is None or not (now or time.monotonic() - self._saved >= self._seconds):
            return
        self._agent.save(self._path)
        self._saved = time.monotonic()


def _require_older(path: Path, agent: Agent) -> None:
    """Refuse to write over what has learned more: somebody forgot to load it."""
    if not path.exists():
        return
    learned = read(path).tally.learned
    if learned > agent.num_episodes:
        raise FileError(
            f"{path} has an agent of {learned} episodes, this one has {agent.num_episodes}; go on "
            "with cmdpax.Agent.load, or give another file."
        )


def _warn_short(played: list[_Played], agent: Agent) -> None:
    """An agent that looks further ahead than any episode lasts learns something else."""
    horizon = agent.declaration.sizes.horizon
    if all(episode.steps < horizon and not episode.terminated for episode in played):
        longest = max(episode.steps for episode in played)
        warnings.warn(
            f"the environment truncated all {len(played)} episodes before the agent's horizon of "
            f"{horizon}, the longest after {longest} steps; make the agent with horizon={longest}.",
            CmdpaxWarning,
            stacklevel=3,
        )


def _interaction(played: list[_Played], agent: Agent, log: bool) -> Interaction:
    count, horizon = agent.declaration.sizes[:2]
    records = [episode.record for episode in played]
    shape = (len(played), count)
    return Interaction(
        np.array([record.reward for record in records], dtype=float),
        np.array([record.constraint_returns for record in records], dtype=float).reshape(shape),
        np.array([episode.multipliers for episode in played], dtype=float).reshape(shape),
        np.array([episode.steps for episode in played], dtype=np.int64),
        np.array([episode.terminated for episode in played], dtype=bool),
        agent.account,
        _log(played, count, horizon) if log else None,
    )


def _log(played: list[_Played], num_constraints: int, horizon: int) -> Log:
    """The episodes as arrays; steps that did not happen have action -1."""
    count = len(played)
    states = np.zeros((count, horizon + 1), dtype=np.int64)
    actions = np.full((count, horizon), -1)
    signals = np.zeros((count, 1 + num_constraints, horizon))
    for index, episode in enumerate(played):
        length = len(episode.actions)
        states[index, : length + 1] = episode.states
        states[index, length + 1 :] = episode.states[-1]
        actions[index, :length] = episode.actions
        signals[index, :, :length] = np.array(episode.signals).T
    return Log(states, actions, signals[:, 0], signals[:, 1:])


@contextmanager
def _reporting(
    progress: bool | Callable[[int, int], None], agent: Agent
) -> Iterator[Callable[[int, int], None]]:
    """The function to report to: the user's, a bar with the account, or none."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda done, total: None
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.text import Text

    columns = (TextColumn("episodes"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    bar = Progress(*columns, TimeRemainingColumn())
    task = bar.add_task("episodes", total=None)
    shown = 0.0
    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as display:

        def report(done: int, total: int) -> None:
            nonlocal shown
            if time.monotonic() - shown < _REFRESH and done < total:
                return
            shown = time.monotonic()
            bar.update(task, completed=done, total=total)
            display.update(Group(bar, Text(str(agent.account))), refresh=True)

        yield report
