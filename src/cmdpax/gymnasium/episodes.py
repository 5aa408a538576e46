"""Episodes of an environment, played by an agent."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import CmdpaxWarning
from cmdpax.gymnasium.encoders import Encoder
from cmdpax.gymnasium.signals import Signals
from cmdpax.gymnasium.stepping import Objective, reset, take
from cmdpax.live import Agent, AgentAccount, EpisodeRecord
from cmdpax.model.log import Log


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


class Translation(NamedTuple):
    """Between the environment's observations, actions and rewards, and those of an agent."""

    encode: Encoder
    decode: Callable[[int], Any]
    end_state: int | None
    objective: Objective


class Player:
    """Plays one episode after the other, and keeps what an `Interaction` holds."""

    def __init__(
        self,
        env: Any,
        agent: Agent,
        source: Signals,
        translation: Translation,
        *,
        stays: bool,
        log: bool,
    ) -> None:
        """Play nothing yet.

        Args:
            env: the environment.
            agent: the agent.
            source: where its signals come from.
            translation: of states, actions and rewards.
            stays: whether terminated episodes stay where they ended.
            log: whether to keep the episodes.
        """
        self._env, self._agent, self._source = env, agent, source
        self._encode, self._decode, self._end_state, self._objective = translation
        self._stays = stays
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
        state = self._encode(reset(self._env, seed))
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

    def warn_short(self, limit: int | None) -> None:
        """An agent that looks further ahead than any episode lasts learns something else.

        Args:
            limit: on time, if it was warned of before.
        """
        horizon, longest = self._agent.declaration.sizes.horizon, max(self._steps)
        if longest < horizon and longest != limit and not any(self._terminated):
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

    def _step(self, state: int, action: int) -> tuple[int, float, np.ndarray, bool, bool]:
        taken = take(self._env, self._decode(action), self._objective)
        following = self._encode(taken.observation)
        costs = self._source.read(state, action, following, taken)
        if taken.terminated and self._end_state is not None:
            following = self._end_state
        self._went_on.add(state)
        if taken.terminated and self._stays:
            self._ended.add(following)
        if not self._warned:
            self._warn_mixed(state, following)
        return following, taken.reward, costs, taken.terminated, taken.truncated

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
