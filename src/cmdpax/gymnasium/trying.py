"""Every action in every state: what `enumerate_env` does with an environment."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import ParameterError, shown
from cmdpax.gymnasium.found_states import FoundStates
from cmdpax.gymnasium.outcomes import OUTCOME
from cmdpax.gymnasium.restoring import Restorer
from cmdpax.gymnasium.stepping import Objective, Taken, reset, take

_PLACES = 50
"""From how many of the places where a state was met it is tried, at most, if there are samples."""

_WALKED = 500
"""Steps of the episodes that check a model, beside one for each state and action."""

_REPEATED = 0.75
"""How often they repeat the last action: who turns at every step never gets far."""

ReadCosts = Callable[[Any, int, Any, Taken], np.ndarray]
"""The costs of a step, `[I]`, by state, action, next state (as the user knows them) and step."""


class Tried(NamedTuple):
    """What one try led to."""

    successor: int
    terminated: bool
    reward: float
    costs: np.ndarray  # [I]


class Trials:
    """Tries actions in an environment, and keeps what they lead to."""

    def __init__(
        self,
        env: Any,
        found: FoundStates,
        actions: list[Any],
        *,
        objective: Objective,
        costs: ReadCosts,
        samples: int,
        seed: int | None,
    ) -> None:
        """Try nothing yet.

        Args:
            env: the environment.
            found: the states, to which those that are met are added.
            actions: the environment's, in the order of 0 … A - 1.
            objective: what is maximised of vector rewards.
            costs: reads the costs of a step.
            samples: tries for each state and action; one is checked by another.
            seed: the seed of the choice of places to try a state from.
        """
        self._env, self._found, self._actions = env, found, actions
        self._objective, self._costs, self._samples = objective, costs, samples
        # Environments draw from `default_rng(seed)`: these must be other numbers.
        self._generator = np.random.default_rng(None if seed is None else [1, seed])
        self._alive: list[int] = []  # states in which episodes go on, as they were found
        self._places: dict[int, list[Any]] = {}  # where each of them was met
        self._met: dict[int, int] = {}  # how often
        self._latest: dict[int, Any] = {}  # where it was met last
        self._counts: dict[tuple[int, int], dict[tuple[int, bool], list[Any]]] = {}
        self._restorer: Restorer | None = None
        self._over = False

    @property
    def restorer(self) -> Restorer:
        """How the environment is put into a state."""
        if self._restorer is None:
            raise RuntimeError("begin comes first")
        return self._restorer

    @property
    def begun(self) -> list[int]:
        """The states in which episodes can be without having ended, so far."""
        return list(self._alive)

    def begin(self, seed: int | None, restorer: Callable[[], Restorer] | None = None) -> int:
        """Reset; returns the first state."""
        observation = reset(self._env, seed)
        self._over = False
        if restorer is not None:
            self._restorer = restorer()
        state = self._found.find(observation)
        self._meet(state, observation)
        return state

    def add(self, observation: Any) -> None:
        """Begin in a state that the user names by its observation, too."""
        state = self._found.find(observation)
        if state not in self._places:
            self._alive.append(state)
            self._places[state], self._met[state] = [observation], 1

    def run(self, horizon: int) -> None:
        """Try every action in every state that is reached, breadth first, and check it."""
        done: dict[int, int] = {}
        while any(done.get(state, 0) < self._samples for state in self._alive):
            for state in self._alive:  # it grows meanwhile
                if done.get(state, 0) < self._samples:
                    self._try_all(state, done.get(state, 0))
                    done[state] = done.get(state, 0) + 1
        if self._samples == 1:
            self._try_again()
            self._walk(horizon)

    def _try_all(self, state: int, index: int) -> None:
        """Try every action once, each time from another place where the state was met."""
        for action in range(len(self._actions)):
            places = self._places[state]
            tried = self._try(places[index % len(places)], state, action)
            counts = self._counts.setdefault((state, action), {})
            sums = counts.setdefault((tried.successor, tried.terminated), [0, 0.0, 0.0])
            sums[0] += 1
            sums[1] += tried.reward
            sums[2] = sums[2] + tried.costs

    def outcomes(self) -> tuple[np.ndarray, np.ndarray]:
        """A row for each outcome, and the mean costs of each, `[rows, I]`."""
        rows = [
            (state, action, count / self._samples, successor, reward / count, terminated)
            for (state, action), counts in self._counts.items()
            for (successor, terminated), (count, reward, _) in counts.items()
        ]
        costs = [
            total / count for counts in self._counts.values() for count, _, total in counts.values()
        ]
        return np.array(rows, dtype=OUTCOME), np.array(costs)

    def _meet(self, state: int, observation: Any) -> None:
        """Remember how to come back to a state in which an episode goes on.

        Of the places where it was met some are kept, each with the same chance; for one try it is
        the first, and the last one to check it.
        """
        if state not in self._places:
            self._alive.append(state)
            self._places[state], self._met[state] = [self.restorer.save(observation)], 1
            return
        self._met[state] += 1
        if self._samples == 1:
            self._latest[state] = self.restorer.save(observation)
            return
        places, most = self._places[state], min(self._samples, _PLACES)
        chosen = int(self._generator.integers(self._met[state]))
        if len(places) < most:
            places.append(self.restorer.save(observation))
        elif chosen < most:
            places[chosen] = self.restorer.save(observation)

    def _try(self, snapshot: Any, state: int, action: int) -> Tried:
        if self._over and not self.restorer.whole:
            reset(self._env, None)
        self.restorer.restore(snapshot)
        observation, tried = self._step(state, action)
        if not tried.terminated:
            self._meet(tried.successor, observation)
        return tried

    def _step(self, state: int, action: int) -> tuple[Any, Tried]:
        """What is observed after a step, and all that it led to."""
        taken = take(self._env, self._actions[action], self._objective)
        self._over = taken.terminated or taken.truncated
        successor = self._found.find(taken.observation)
        if not np.isfinite(taken.reward):
            raise ParameterError(
                f"the reward of {self._words(state, action)} is {taken.reward}; it must be a "
                "finite number."
            )
        values = self._found.states
        costs = self._costs(values[state], action, values[successor], taken)
        if not np.isfinite(costs).all():
            raise ParameterError(
                f"the cost of {self._words(state, action)} is {shown(costs.tolist())}; every cost "
                "must be a finite number."
            )
        return taken.observation, Tried(successor, taken.terminated, taken.reward, costs)

    # -------------------------------------------------------------------------- is it deterministic

    def _try_again(self) -> None:
        """Try everything once more, from where each state was met last.

        It differs where the environment is random, and where what is observed is not the whole
        state: the same observation was met in another way.
        """
        for state, action in self._counts:
            place = self._latest.get(state, self._places[state][0])
            self._compare(state, action, self._try(place, state, action))

    def _walk(self, horizon: int) -> None:
        """Play episodes: what tries did not tell apart may show further away from them."""
        left = _WALKED + len(self._counts)
        while left > 0:
            state = self._found.known(reset(self._env, None))
            self._over, left = state not in self._places, left - 1
            action = int(self._generator.integers(len(self._actions)))
            for _ in range(horizon):
                if self._over or state is None:
                    break
                if self._generator.random() > _REPEATED:
                    action = int(self._generator.integers(len(self._actions)))
                tried = self._step(state, action)[1]
                self._compare(state, action, tried)
                state, left = tried.successor, left - 1

    def _compare(self, state: int, action: int, again: Tried) -> None:
        """Refuse another outcome than that of the first try."""
        ((successor, terminated), (_, reward, costs)) = next(
            iter(self._counts[state, action].items())
        )
        first = Tried(successor, terminated, reward, costs)
        if not _same(first, again):
            raise ParameterError(
                f"{self._words(state, action)} led to {self._told(first)} at first, and to "
                f"{self._told(again)} when it was tried again; if the environment is random, "
                "give samples=, the tries for each state and action, such as samples=100; if it "
                "is not, what is observed is not the whole state, or "
                f"{self.restorer.means} does not restore it."
            )

    def _words(self, state: int, action: int) -> str:
        return f"action {action} in the state {shown(self._found.states[state])}"

    def _told(self, tried: Tried) -> str:
        end = ", the end," if tried.terminated else ""
        paid = f" and the cost {shown(tried.costs.tolist())}" if tried.costs.size else ""
        state = shown(self._found.states[tried.successor])
        return f"{state}{end} with the reward {tried.reward:.6g}{paid}"


def _same(first: Tried, again: Tried) -> bool:
    return first[:2] == again[:2] and np.allclose(
        [first.reward, *first.costs], [again.reward, *again.costs], rtol=1e-9, atol=1e-12
    )
