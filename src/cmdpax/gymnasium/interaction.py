"""`interact`: an agent decides in an environment, and keeps its account."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cmdpax.checks import check_choice, real_number, require_count
from cmdpax.errors import FileError, ParameterError, shown
from cmdpax.gymnasium.encoders import Encoder
from cmdpax.gymnasium.episodes import Interaction, Player, Translation
from cmdpax.gymnasium.limits import warn_of_limit
from cmdpax.gymnasium.signals import Signals
from cmdpax.gymnasium.spaces import (
    Decoder,
    check_spaces,
    decoder_of,
    encoder_of,
    end_state_of,
    states_of,
)
from cmdpax.gymnasium.stepping import Objective
from cmdpax.live import Agent, EpisodeRecord
from cmdpax.live.saving import read

Callback = Callable[[Agent, EpisodeRecord], Any]
"""Called after every episode; returning True ends the interaction."""

_SECONDS = 10.0
_REFRESH = 0.2


def interact(
    env: Any,
    agent: Agent,
    num_episodes: int,
    *,
    costs: Any = None,
    signals: Any = None,
    objective: Any = None,
    encoder: Encoder | None = None,
    decoder: Decoder | None = None,
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
            `info["cost"]`; a name is another entry of `info`, with dots for one that is further
            inside, such as "constraint.step.cost"; a function is called with (state, action,
            next_state), or with `info` if it takes one argument; an array `[S]` or `[S, A]` is
            looked up; a list has one of these per constraint. Constraints "at most" take them as
            they are; those "at least" take `info["constraint_rewards"]` if it is there, or
            1 - cost if their range is (0, 1).
        signals: in place of costs, the same, but taken by every constraint as it is declared.
        objective: where the reward is a vector (mo-gymnasium), the index of the component that is
            maximised, a weight for each component, or a function of the vector. The other
            components (those of weight 0) are the constraints' signals, in this order, unless
            costs or signals are given: as they are for "at least", and with the other sign, as
            costs, for "at most". `info["vector_reward"]` has the vector.
        encoder: turns observations into states, where they are not Discrete.
        decoder: turns actions 0 … A - 1 into the environment's, where these are not Discrete or
            are more than the agent uses: a list of actions, or a function.
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
    coders = encoder_of(env, encoder), decoder_of(env, decoder)
    translation = Translation(*coders, end_state, Objective(objective))
    player = Player(env, agent, source, translation, stays=on_termination == "stay", log=log)
    called = _callbacks(callbacks)
    keeper = _Keeper(agent, checkpoint, checkpoint_seconds)
    limit = warn_of_limit(env, agent.declaration.sizes.horizon)
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
    player.warn_short(limit)
    return player.interaction()


def _callbacks(given: Any) -> list[Callback]:
    called = [given] if callable(given) or given is None else given
    if not isinstance(called, Iterable) or not all(callable(c) or c is None for c in called):
        raise ParameterError(
            f"callbacks is {shown(given)}, it must be a function or some in a list."
        )
    return [callback for callback in called if callback is not None]


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
