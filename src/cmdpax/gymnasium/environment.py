"""Any CMDP as a Gymnasium environment.

An episode has H steps and is then truncated; it never terminates. The constraints travel in
`info`, as rewards and as costs: a constraint V_{u_i} ≥ c_i is the cost m_i - u_i with the limit
H m_i - c_i, where m_i is 1 for constraint rewards in [0, 1] and the largest of them otherwise.
"""

import functools
from typing import Any, TypeAlias

import numpy as np
from gymnasium.core import Env
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Discrete, MultiDiscrete

from cmdpax.checks import check_choice, require_flag, whole_number
from cmdpax.errors import ParameterError, nearest_name, shown
from cmdpax.model.cmdp import CMDP, ceilings
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import validate

Observation: TypeAlias = Any
"""The state, an `int`; or `[state, step]`, an array of two integers."""


class CMDPEnv(Env[Observation, Any]):
    """A CMDP as an environment; `make_env` explains the arguments.

    `step` and `reset` return an `info` with the same keys:

    * `"costs"`: `[I]`, what the step cost, cost_i = m_i - u_i; the user's own, where the sense of
      a constraint is "at most";
    * `"cost"`: the same as a number, where there is one constraint;
    * `"constraint_rewards"`: `[I]`, the u_i that were observed;
    * `"step"`: how many steps of the episode are done, 0 … H;
    * `"action_mask"`: `[A]`, 1 for the actions that are available next and 0 for the others, if the
      model says which are; after the last step, as before it.

    A reset earns nothing and costs nothing: its numbers are all 0. Vector environments show the
    `info` of a reset in place of a step's, so sums over them stay right.

    Attributes:
        cmdp: the model.
        limits: `[I]`, the largest allowed expected sum of each cost, H m_i - c_i.
    """

    cmdp: CMDP
    limits: np.ndarray

    def __init__(
        self, cmdp: CMDP, *, observe_step: bool = False, observations: str = "mean"
    ) -> None:
        """Check the model and lay its arrays out for quick steps."""
        self.cmdp = validate(cmdp)
        check_choice("observations", observations, ("mean", "bernoulli"))
        if observations == "bernoulli":
            _check_unit_interval(cmdp)
        self._observe_step = require_flag("observe_step", observe_step)
        self._bernoulli = observations == "bernoulli"
        num_states, num_actions = cmdp.num_states, cmdp.num_actions
        self.action_space = Discrete(num_actions)
        self.observation_space = (
            MultiDiscrete([num_states, cmdp.horizon + 1]) if observe_step else Discrete(num_states)
        )
        lists = cmdp.transitions if isinstance(cmdp.transitions, Successors) else None
        self._successors = None if lists is None else lists.successors
        self._cumulative = _cumulative(cmdp.transitions if lists is None else lists.probabilities)
        self._cumulative_initial = _cumulative(cmdp.initial)
        by_pair = np.moveaxis(cmdp.constraint_rewards, 0, -1)  # [H, S, A, I]
        self._constraint_rewards = by_pair.copy()  # the I numbers of a pair side by side
        self._ceilings = ceilings(cmdp.constraint_rewards)
        if cmdp.words.senses is not None:  # costs as the user gave them
            given = np.array(cmdp.words.ceilings)
            self._ceilings = np.where(cmdp.words.signs < 0, given, self._ceilings)
        self.limits = cmdp.horizon * self._ceilings - cmdp.thresholds
        self._state = 0
        self._step: int | None = None  # None before the first reset
        again = functools.partial(
            CMDPEnv, cmdp, observe_step=observe_step, observations=observations
        )
        # Gymnasium's `check_env` takes an episode of one step for a mistake, except of an
        # environment that says that it is not deterministic. This one is, given its seed.
        self.spec = EnvSpec("cmdpax/CMDP-v0", entry_point=again, nondeterministic=cmdp.horizon == 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: the seed of the random numbers from here on; None goes on with the present ones.
            options: `{"state": s}` starts in the state s, an index or a name; None draws it from
                `initial`.
        """
        state = self._given_state(options or {})
        super().reset(seed=seed)
        self._state = self._draw(self._cumulative_initial) if state is None else state
        self._step = 0
        nothing = np.zeros(self.cmdp.num_constraints)
        return self._observation(), self._info(nothing, nothing.copy())

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action; returns (observation, reward, terminated, truncated, info)."""
        step, state = self._current_step(), self._state
        action = _as_index("action", action, self.cmdp.num_actions)
        self._require_available(action)
        # An array that is stationary has one step, which `%` picks.
        cumulative = self._cumulative[step % len(self._cumulative), state, action]
        rewards, constraint_rewards = self.cmdp.rewards, self._constraint_rewards
        reward = float(rewards[step % len(rewards), state, action])
        constraints = constraint_rewards[step % len(constraint_rewards), state, action].copy()
        following = self._draw(cumulative)
        if self._successors is not None:
            lists = self._successors
            following = int(lists[step % len(lists), state, action, following])
        if self._bernoulli:
            reward = float(self.np_random.random() < reward)
            constraints = np.where(self.np_random.random(constraints.shape) < constraints, 1.0, 0.0)
        self._state, self._step = following, step + 1
        info = self._info(self._ceilings - constraints, constraints)
        return self._observation(), reward, False, self._step == self.cmdp.horizon, info

    def _draw(self, cumulative: np.ndarray) -> int:
        """Inverse transform: the first index whose cumulative probability exceeds the number."""
        return int(cumulative.searchsorted(self.np_random.random(), side="right"))

    def _observation(self) -> Observation:
        if self._observe_step:
            return np.array((self._state, self._step), dtype=np.int64)
        return self._state

    def _info(self, costs: np.ndarray, constraint_rewards: np.ndarray) -> dict[str, Any]:
        info: dict[str, Any] = {
            "costs": costs,
            "constraint_rewards": constraint_rewards,
            "step": self._step,
        }
        if len(costs) == 1:
            info["cost"] = float(costs[0])
        if self.cmdp.available is not None:
            info["action_mask"] = self._flags().astype(np.int8)
        return info

    def _flags(self) -> np.ndarray:
        """Which actions are available, `[A]`, where some are not."""
        flags, step = self.cmdp.available, min(self._step or 0, self.cmdp.horizon - 1)
        return np.asarray(flags[step % len(flags), self._state])

    def _require_available(self, action: int) -> None:
        if self.cmdp.available is None or self._flags()[action]:
            return
        words = self.cmdp.words
        raise ParameterError(
            f"{words.action(action)} is not available in {words.state(self._state)} at step "
            f'{self._step}; choose one that info["action_mask"] marks with 1.'
        )

    def _current_step(self) -> int:
        """The step that comes next, 0 … H - 1; an error where there is none."""
        if self._step is None:
            raise ParameterError("step was called before reset; call env.reset() first.")
        if self._step == self.cmdp.horizon:
            raise ParameterError(
                f"the episode ended with its step {self._step}, the horizon; call env.reset() "
                "to start another."
            )
        return self._step

    def _given_state(self, options: dict[str, Any]) -> int | None:
        """The state to start in, where the options give one."""
        for name in options:
            if name != "state":
                raise ParameterError(
                    f"reset has no option {name!r}; {nearest_name(name, ['state'])}."
                )
        if "state" not in options:
            return None
        given, words = options["state"], self.cmdp.words
        if isinstance(given, str) and words.state_names is not None:
            return words.index_of("state", given, self.cmdp.num_states)
        return _as_index('options["state"]', given, self.cmdp.num_states)


def make_env(cmdp: CMDP, *, observe_step: bool = False, observations: str = "mean") -> CMDPEnv:
    """A Gymnasium environment that plays a CMDP.

    Args:
        cmdp: the model, dense or with successor lists, stationary or not.
        observe_step: whether an observation is `[state, step]` instead of the state alone.
            Optimal policies of a finite horizon depend on the step.
        observations: "mean" rewards, or "bernoulli" draws of them, of the reward and of each
            constraint reward alone; those must be in [0, 1].

    Examples:
        >>> import cmdpax
        >>> from cmdpax.gymnasium import make_env
        >>> env = make_env(cmdpax.environments.make("random"), observe_step=True)
        >>> env.observation_space, env.limits.round(3).tolist()
        (MultiDiscrete([5 6]), [2.489])
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(2)
        >>> observation.tolist(), round(reward, 3), round(info["cost"], 3), info["step"]
        ([0, 1], 0.22, 0.086, 1)
    """
    return CMDPEnv(cmdp, observe_step=observe_step, observations=observations)


def _cumulative(probabilities: np.ndarray) -> np.ndarray:
    """Cumulative sums of the last axis, each divided by its total.

    They end with exactly 1, above every number of [0, 1), and an outcome of probability 0 adds
    nothing: it is never the first that exceeds a number.
    """
    sums = np.cumsum(probabilities, axis=-1)
    sums /= sums[..., -1:].copy()
    return sums


def _check_unit_interval(cmdp: CMDP) -> None:
    """Refuse rewards that are not probabilities."""
    for name in ("rewards", "constraint_rewards"):
        values = getattr(cmdp, name)
        outside = values[(values < 0) | (values > 1)]
        if outside.size:
            raise ParameterError(
                f'observations="bernoulli" draws with the {name} as probabilities, but one of '
                f'them is {outside[0]:.6g}; use "mean", or cmdpax.rescale first.'
            )


def _as_index(name: str, value: Any, length: int) -> int:
    """One of 0 … length - 1."""
    index = whole_number(value)
    if index is None or not 0 <= index < length:
        raise ParameterError(
            f"{name} is {shown(value)}, it must be a whole number between 0 and {length - 1}."
        )
    return index
