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
from cmdpax.gymnasium.signals import Signals
from cmdpax.gymnasium.spaces import check_spaces, decoder_of, encoder_of, end_state_of, states_of
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
        constraint_returns: the same for the constraints' signals, `[K, I]`.
        multipliers: λ_k, `[K, I]`.
        steps: steps of the environment, `[K]`.
        terminated: whether the environment ended the episode, `[K]`.
        account: the agent's account at the end.
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
    finite-horizon model has it: so the learner knows that nothing is to be gained there.

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
        seed: the seed of the environment's first reset.
        callbacks: called with (agent, `EpisodeRecord`) after every episode; one that returns True
            ends the interaction.
        progress: show a bar with the account, or call a function with (done, total).
        checkpoint: a file to save the agent to, now and then, at the end and when interrupted. One
            that is there is not loaded; an agent that has learned more is not overwritten.
        checkpoint_seconds: the least time between two saves; 0 saves after every episode.
        log: also return the episodes.

    Examples:
        >>> import cmdpax, cmdpax.gymnasium
        >>> cmdp = cmdpax.environments.make("bandit")
        >>> env = cmdpax.gymnasium.make_env(cmdp)
        >>> agent = cmdpax.Agent(
        ...     num_states=1, num_actions=3, horizon=1,
        ...     thresholds=cmdp.thresholds, initial=cmdp.initial, seed=0,
        ... )
        >>> found = cmdpax.gymnasium.interact(env, agent, 200, seed=0)
        >>> found.constraint_returns.shape, found.account.episodes
        ((200, 1), 200)
    """
    count = require_count("num_episodes", num_episodes)
    check_choice("on_termination", on_termination, ("stay", "end"))
    check_spaces(env, agent, encoder, decoder)
    num_states = states_of(env, encoder)
    end_state = end_state_of(agent, num_states, end_state)
    source = Signals(costs, signals, agent, num_states or agent.declaration.sizes.num_states)
    translated = (encoder_of(env, encoder), decoder_of(env, decoder), end_state)
    player = _Player(env, agent, source, *translated, stays=on_termination == "stay", log=log)
    called = _callbacks(callbacks)
    keeper = _Keeper(agent, checkpoint, checkpoint_seconds)
    if agent.expects != "start":
        agent.end()
    try:
        with _reporting(progress, agent) as report:
            report(0, count)
            for index in range(count):
                record = player.play(seed if index == 0 else None)
                keeper.keep()
                report(index + 1, count)
                answers = [callback(agent, record) for callback in called]
                if any(isinstance(answer, bool | np.bool) and answer for answer in answers):
                    break
    finally:
        keeper.keep(now=True)
    player.warn_short()
    return player.interaction()


def _callbacks(given: Any) -> list[Callback]:
    called = [given] if callable(given) or given is None else given
    if not isinstance(called, Iterable) or not all(callable(c) or c is None for c in called):
        raise ParameterError(
            f"callbacks is {shown(given)}, it must be a function or some in a list."
        )
    return [callback for callback in called if callback is not None]


class _Player:
    """Plays one episode after the other, and keeps what an `Interaction` holds."""

    def __init__(
        self,
        env: Any,
        agent: Agent,
        source: Signals,
        encode: Encoder,
        decode: Callable[[int], Any],
        end_state: int | None,
        *,
        stays: bool,
        log: bool,
    ) -> None:
        self._env, self._agent, self._source = env, agent, source
        self._encode, self._decode, self._end_state, self._stays = encode, decode, end_state, stays
        self._ended: set[int] = set()
        self._went_on: set[int] = set()
        self._warned = False
        self._records: list[EpisodeRecord] = []
        self._multipliers: list[np.ndarray] = []
        self._steps: list[int] = []  # of the environment
        self._terminated: list[bool] = []
        self._logs: list[Log] | None = [] if log else None

    def play(self, seed: int | None) -> EpisodeRecord:
        """One episode of the environment, as one of the agent."""
        agent, multipliers = self._agent, self._agent.multipliers
        state = self._reset(seed)
        agent.start(state)
        states, actions, signals = [state], [], []
        over = terminated = False
        steps = 0
        while agent.expects == "act" and not over:
            action = agent.declaration.action_index(agent.act(states[-1]))
            if terminated:
                state, reward, costs = states[-1], 0.0, self._source.nothing()
            else:
                state, reward, costs, terminated, truncated = self._step(states[-1], action)
                steps += 1
                over = not self._stays if terminated else truncated
            agent.observe(reward, costs, state)
            states.append(state)
            actions.append(action)
            signals.append(np.append(reward, costs))
        self._records.append(agent.end())
        self._multipliers.append(multipliers)
        self._steps.append(steps)
        self._terminated.append(terminated)
        if self._logs is not None:
            horizon = agent.declaration.sizes.horizon
            self._logs.append(_logged(states, actions, np.array(signals).T, horizon))
        return self._records[-1]

    def warn_short(self) -> None:
        """An agent that looks further ahead than any episode lasts learns something else."""
        horizon, longest = self._agent.declaration.sizes.horizon, max(self._steps)
        if longest < horizon and not any(self._terminated):
            warnings.warn(
                f"the environment truncated all {len(self._steps)} episodes before the agent's "
                f"horizon of {horizon}, the longest after {longest} steps; make the agent with "
                f"horizon={longest}.",
                CmdpaxWarning,
                stacklevel=3,
            )

    def interaction(self) -> Interaction:
        """All episodes so far."""
        records, logs = self._records, self._logs
        return Interaction(
            np.array([record.reward for record in records], dtype=float),
            np.array([record.constraint_returns for record in records], dtype=float),
            np.array(self._multipliers, dtype=float),
            np.array(self._steps, dtype=np.int64),
            np.array(self._terminated, dtype=bool),
            self._agent.account,
            None if logs is None else Log(*map(np.stack, zip(*logs, strict=True))),
        )

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
        costs = self._source.read(state, action, following, cost, info)
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


def _logged(states: list[int], actions: list[int], signals: np.ndarray, horizon: int) -> Log:
    """One episode as arrays; steps that did not happen have action -1."""
    missing = horizon - len(actions)
    observed = np.pad(signals, ((0, 0), (0, missing)))
    return Log(
        np.array(states + states[-1:] * missing, dtype=np.int64),
        np.array(actions + [-1] * missing, dtype=np.int64),
        observed[0],
        observed[1:],
    )


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
