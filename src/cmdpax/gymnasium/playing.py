"""`play`: a policy in an environment, and what it earned and paid."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import require_count
from cmdpax.errors import ParameterError, shown
from cmdpax.gymnasium.limits import warn_of_limit
from cmdpax.gymnasium.readers import Reader, as_numbers, given_cost, reader_of
from cmdpax.gymnasium.spaces import (
    Decoder,
    actions_of,
    decoder_of,
    encoder_of,
    require_single,
    require_states,
    states_of,
)
from cmdpax.gymnasium.stepping import Objective, Taken, reset, take
from cmdpax.intervals import Interval, interval
from cmdpax.model.arrays import ArrayLike
from cmdpax.model.validation import check_policy


class Played(NamedTuple):
    """Episodes that a policy played, in the environment's units.

    Attributes:
        rewards: sums over every episode, `[K]`.
        costs: the same for the costs, `[K, I]`; I = 0 where there are none.
        steps: `[K]`.
        terminated: whether the environment ended the episode, `[K]`.
    """

    rewards: np.ndarray
    costs: np.ndarray
    steps: np.ndarray
    terminated: np.ndarray

    @property
    def value(self) -> Interval:
        """The mean of the rewards, with Student's 95 % interval."""
        return interval(self.rewards)

    @property
    def constraint_values(self) -> tuple[Interval, ...]:
        """The same for every cost."""
        return tuple(interval(cost) for cost in self.costs.T)

    def __str__(self) -> str:
        """In one line."""
        parts = [f"reward {self.value}"]
        for index, cost in enumerate(self.constraint_values):
            parts.append(f"cost {f'{index} ' if len(self.costs.T) > 1 else ''}{cost}")
        ends = f"{self.terminated.sum():,} terminated, {self.steps.mean():.4g} steps on average"
        return f"{len(self.rewards):,} episodes: {', '.join(parts)}; {ends}"


def play(
    env: Any,
    policy: ArrayLike,
    num_episodes: int,
    *,
    horizon: int | None = None,
    costs: Any = None,
    objective: Any = None,
    encoder: Callable[[Any], int] | None = None,
    decoder: Decoder | None = None,
    seed: int | None = None,
) -> Played:
    """Play a policy in an environment: what it really earns and pays there.

    `cmdpax.evaluate` has the exact values in a model; here the environment decides. An episode
    ends at the horizon, or where the environment ends or truncates it.

    Args:
        env: a Gymnasium environment, as for `interact`.
        policy: π, `[H, S, A]`, such as `solution.policy`; or `[1, S, A]` with a horizon. S may be
            one more than the environment has, for ended episodes.
        num_episodes: K.
        horizon: H, if the policy is the same at every step.
        costs: as for `interact`: a name in `info`, a function, an array, or a list of these. None
            takes what the environment gives, which may be nothing.
        objective: which component of a vector reward is maximised, as for `interact`. The others,
            with the other sign, are then the costs, unless costs are given.
        encoder: turns observations into states, where they are not Discrete.
        decoder: turns actions 0 … A - 1 into the environment's.
        seed: the seed of the environment's first reset, and of the policy's random choices.

    Examples:
        >>> import cmdpax, gymnasium
        >>> from cmdpax.gymnasium import from_env, play
        >>> lake, holes = gymnasium.make("FrozenLake-v1"), {5, 7, 11, 12}
        >>> falls = lambda s, a, t: t in holes
        >>> plan = cmdpax.solve(from_env(lake, 60, costs=falls, limits=0.1))
        >>> played = play(lake, plan.policy, 500, costs=falls, seed=0)
        >>> print(f"{plan.value:.3f} is promised, {played.value} was earned")
        0.466 is promised, 0.474 ± 0.044 was earned
        >>> print(played.constraint_values[0])
        0.104 ± 0.027
    """
    count = require_count("num_episodes", num_episodes)
    seed = None if seed is None else require_count("seed", seed, 0)
    chosen = _policy(policy, horizon)
    require_single(env, "a policy plays in one; give it a single environment, or play in one")
    require_states(env, encoder)
    _check_sizes(env, chosen, encoder, decoder)
    warn_of_limit(env, len(chosen))
    num_states = states_of(env, encoder) or chosen.shape[1]
    read = None if costs is None else reader_of(costs, (num_states, chosen.shape[2]))
    coders = encoder_of(env, encoder), decoder_of(env, decoder)
    player = _Player(env, chosen.cumsum(axis=-1), *coders, Objective(objective), read, seed)
    rows = [player.play(seed if index == 0 else None) for index in range(count)]
    rewards, paid, steps, terminated = zip(*rows, strict=True)
    return Played(np.array(rewards), np.stack(paid), np.array(steps), np.array(terminated))


def _policy(policy: Any, horizon: int | None) -> np.ndarray:
    checked = check_policy(policy)
    if horizon is None:
        if len(checked) == 1:
            raise ParameterError(
                "the policy has one step; give horizon=, how many steps an episode has."
            )
        return checked
    steps = require_count("horizon", horizon)
    if len(checked) not in (1, steps):
        raise ParameterError(
            f"horizon is {steps}, but the policy has {len(checked)} steps; leave out horizon=."
        )
    return np.broadcast_to(checked, (steps, *checked.shape[1:]))


def _check_sizes(env: Any, policy: np.ndarray, encoder: Any, decoder: Any) -> None:
    _, num_states, num_actions = policy.shape
    found = states_of(env, encoder)
    if found is not None and not num_states - 1 <= found <= num_states:
        raise ParameterError(
            f"the {'environment' if encoder is None else 'encoder'} has {found} states, the policy "
            f"{num_states}; give a policy of the environment's model."
        )
    count = actions_of(env, decoder)
    if count is not None and count != num_actions:
        raise ParameterError(
            f"the {'environment' if decoder is None else 'decoder'} has {count} actions, the "
            f"policy {num_actions}; give the decoder= of the policy's model."
        )


class _Player:
    """Draws the actions of a policy."""

    def __init__(
        self,
        env: Any,
        cumulative: np.ndarray,
        encode: Callable[[Any], int],
        decode: Callable[[int], Any],
        objective: Objective,
        read: Reader | None,
        seed: int | None,
    ) -> None:
        self._env, self._cumulative, self._read = env, cumulative, read
        self._encode, self._decode, self._objective = encode, decode, objective
        # Environments draw from `default_rng(seed)`: the policy must not draw the same numbers.
        self._generator = np.random.default_rng(None if seed is None else [1, seed])
        self._given: bool | None = None  # whether the environment gives costs without being asked

    def play(self, seed: int | None) -> tuple[float, np.ndarray, int, bool]:
        """One episode: its reward, its costs, its steps, and whether it was ended."""
        state = self._state(reset(self._env, seed))
        reward, costs = 0.0, np.zeros(0)
        for step, rows in enumerate(self._cumulative):
            row = rows[state]
            action = int(np.searchsorted(row, self._generator.random() * row[-1], side="right"))
            taken = take(self._env, self._decode(action), self._objective)
            following = self._state(taken.observation)
            paid = self._costs(state, action, following, taken)
            costs = paid if step == 0 else costs + paid
            reward += taken.reward
            state = following
            if taken.terminated or taken.truncated:
                break
        return reward, costs, step + 1, taken.terminated

    def _state(self, observation: Any) -> int:
        state = self._encode(observation)
        size = self._cumulative.shape[1]
        if not isinstance(state, int | np.integer) or not 0 <= state < size:
            raise ParameterError(
                f"the observation {shown(observation)} is the state {shown(state)}, the policy has "
                f"the states 0 … {size - 1}."
            )
        return int(state)

    def _costs(self, state: int, action: int, following: int, taken: Taken) -> np.ndarray:
        if self._read is not None:
            return self._read(state, action, following, taken.info)
        if taken.components is not None:
            return -taken.components + 0.0  # no -0.0
        given = taken.cost is not None or "costs" in taken.info or "cost" in taken.info
        if self._given is None:  # the first step decides for all of them
            self._given = given
        elif given and not self._given:
            raise ParameterError(
                "the environment gives a cost at some steps, but gave none at the first one; say "
                "with costs= what a step costs, such as lambda info: info.get('cost', 0.0)."
            )
        return given_cost(taken.cost, taken.info) if self._given else as_numbers([], "no cost")
