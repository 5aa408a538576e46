"""Agents that play simulated systems, the same in every run; for `same_numbers.py`."""

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cmdpax
from fixed_runs import PROGRAMS, Cases, logged, model
from named_arrays import AGENT, chosen

NUM_EPISODES = 30


class System:
    """A model that an agent plays, in the units that the agent declares.

    Which state follows is decided by numbers that are drawn in advance, one per episode and step,
    so that agents which do the same see the same. Some episodes are cut short, and in some steps
    somebody else decides.
    """

    def __init__(
        self,
        cmdp: cmdpax.CMDP,
        uniforms: np.ndarray,
        reward_range: tuple[float, float] = (0.0, 1.0),
        constraint_ranges: Any = (0.0, 1.0),
        senses: Any = "at least",
    ) -> None:
        """Make it ready; ranges and senses are those of `cmdpax.Agent`."""
        self.cmdp, self.uniforms = cmdp, uniforms
        low, high = np.array([reward_range, *self._each(constraint_ranges, 2)]).T
        at_most = np.array([sense == "at most" for sense in ["", *self._each(senses, 1)]])
        self._start, self._slope = np.where(at_most, (high, low - high), (low, high - low))

    def _each(self, given: Any, depth: int) -> Any:
        """One entry per constraint, of one for all or one for each."""
        count = self.cmdp.num_constraints
        single = isinstance(given, str) if depth == 1 else np.ndim(given) == 1
        return [given] * count if single else given

    def thresholds(self) -> np.ndarray:
        """The model's thresholds in these units."""
        return self._start[1:] * self.cmdp.horizon + self._slope[1:] * self.cmdp.thresholds

    def first(self, episode: int) -> int:
        """The state in which an episode begins."""
        return self._draw(self.cmdp.initial, self.uniforms[episode - 1, 0])

    def step(
        self, episode: int, step: int, state: int, action: int
    ) -> tuple[float, np.ndarray, int]:
        """Reward, signals and next state."""

        def at(array: np.ndarray) -> Any:
            return array[..., step % array.shape[-3], state, action]

        signals = np.array([at(self.cmdp.rewards), *at(self.cmdp.constraint_rewards)])
        told = self._start + self._slope * signals
        rows = self.cmdp.transitions
        uniform = self.uniforms[episode - 1, step + 1]
        if not isinstance(rows, cmdpax.Successors):
            return told[0], told[1:], self._draw(rows[step % len(rows), state, action], uniform)
        place = (step % len(rows.successors), state, action)
        return told[0], told[1:], int(rows.successors[place][self._draw(rows[1][place], uniform)])

    def length(self, episode: int) -> int:
        """Every seventh episode is cut short."""
        return self.cmdp.horizon if episode % 7 else max(1, self.cmdp.horizon // 2)

    @staticmethod
    def _draw(probabilities: np.ndarray, uniform: float) -> int:
        """The largest index with mass is the last that can be drawn, whatever the sum rounds to."""
        last = np.flatnonzero(probabilities)[-1]
        return int(min(last, np.searchsorted(np.cumsum(probabilities), uniform, side="right")))


def play(agent: cmdpax.Agent, system: System, is_over: Callable[[cmdpax.Agent], bool]) -> list[int]:
    """Make the calls that come next until it is over; returns the agent's actions."""
    actions, declared = [], agent.declaration
    while not is_over(agent):
        episode, step = agent.episode, agent.step
        if agent.expects == "start":
            agent.start(system.first(episode))
        elif agent.expects == "end" or step == system.length(episode):
            agent.end()
        elif agent.expects == "act":
            actions.append(agent.act(agent.state))
        else:
            instead = 0 if (episode + step) % 11 == 0 else declared.action_index(agent.action)
            state = declared.state_index("the state", agent.state)
            told = system.step(episode, step, state, instead)
            agent.observe(*told, action=instead)
    return actions


def after(num_episodes: int, step: int = 0) -> Callable[[cmdpax.Agent], bool]:
    """Over when so many episodes were played, and so many steps of the next one."""
    return lambda agent: (agent.num_episodes, agent.step) >= (num_episodes, step)


def draws(num_episodes: int, horizon: int) -> np.ndarray:
    """The numbers that decide which states follow, `[K, H + 1]`."""
    return np.random.default_rng(5).random((num_episodes, horizon + 1))


def agent_of(
    algorithm: str, system: System, units: dict[str, Any], declared: dict[str, Any]
) -> cmdpax.Agent:
    """An agent for a system."""
    _, horizon, num_states, num_actions = system.cmdp.sizes
    return cmdpax.Agent(
        algorithm,
        num_states=num_states,
        num_actions=num_actions,
        horizon=horizon,
        thresholds=system.thresholds(),
        initial=system.cmdp.initial,
        **units,
        **declared,
    )


def agent_cases() -> Cases:
    """Agents that were fed a log, and agents that played, were saved, loaded, and went on."""
    for algorithm in sorted(PROGRAMS):
        yield f"fed/{algorithm}", functools.partial(_fed_case, algorithm)
    for name, case in _played_cases().items():
        yield f"played/{name}", functools.partial(_played_case, *case)


def _fed_case(algorithm: str) -> dict[str, Any]:
    """Its own run's log: the agent ends where the run was."""
    history, cmdp = logged("dense", algorithm), model("dense")
    found = {}
    for own in (False, True):
        agent = agent_of(algorithm, System(cmdp, draws(1, 5)), {}, {"seed": 3})
        agent.feed(cmdpax.Log(*(array[:50] for array in history.log.run(0))), own=own)
        found["own" if own else "others"] = chosen(agent, AGENT)
    return found


def _played_cases() -> dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """By name: an algorithm, a model, the units of its signals, and what else is declared."""
    power = cmdpax.schedules.power
    dense = model("dense")
    known = {"rewards": dense.rewards, "constraint_rewards": dense.constraint_rewards}
    two = {
        "reward_range": (-2.0, 3.0),
        "constraint_ranges": [(0.0, 20.0), (-1.0, 1.0)],
        "senses": ["at most", "at least"],
    }
    costs: dict[str, Any] = {"constraint_ranges": (0.0, 8.0), "senses": "at most"}
    chances = {"successors": model("lists").transitions, "stationary": True}
    scheduled = {"step_size": power(0.3, 0.2), "margin": power(0.1, 0.5)}
    fixed = {"step_size": 0.2, "regularization": 0.05, "max_multiplier": 9.0, "margin": 0.02}
    theory = cmdpax.Optimism.theory(NUM_EPISODES, scale=0.01)
    return {
        "plain": ("regularized-primal-dual", "dense", {}, {"seed": 1}),
        "known rewards": ("vanilla-dual", "dense", {}, known | {"seed": 2, "step_size": 0.3}),
        "units, lists": ("regularized-dual", "lists", two, {"seed": 3} | chances | fixed),
        "long": ("vanilla-primal-dual", "long-lists", costs, {"seed": 4, "stationary": True}),
        "schedules": ("vanilla-primal-dual", "dense", costs, {"seed": 5} | scheduled),
        "theory": ("regularized-dual", "long", {}, {"seed": 6, "optimism": theory}),
    }


def _played_case(
    algorithm: str, where: str, units: dict[str, Any], declared: dict[str, Any]
) -> dict[str, Any]:
    cmdp = model(where)
    system = System(cmdp, draws(NUM_EPISODES, cmdp.horizon), **units)
    agent = agent_of(algorithm, system, units, declared)
    # In an episode that is not cut short, after an action that nobody has answered yet.
    middle = after(NUM_EPISODES // 2, 2)
    actions = play(agent, system, lambda now: middle(now) and now.expects == "observe")
    halfway = chosen(agent, AGENT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.npz"
        agent.save(path)
        agent = cmdpax.Agent.load(path)
    loaded = chosen(agent, AGENT)
    actions += play(agent, system, after(NUM_EPISODES))
    return {
        "actions": actions,
        "halfway": halfway,
        "loaded": loaded,
        "end": chosen(agent, AGENT),
    }
