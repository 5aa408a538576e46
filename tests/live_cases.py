"""What several tests of the agent share: a small agent, systems to play, slow counts.

Few sizes: every new one compiles anew.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
import learning_reference
import reference

ALGORITHM = "regularized-primal-dual"
PRIMAL_DUAL = ("regularized-primal-dual", "vanilla-primal-dual")
PROGRAMS = (PRIMAL_DUAL, ("regularized-dual",), ("vanilla-dual",))
"""All algorithms; those of one program together, so that it is compiled once."""
Call = Callable[[cmdpax.Agent], Any]
Steps = tuple[list[int], list[int], list[float], list[list[float]]]
"""Of an episode: states, actions, rewards, and per constraint its signals."""


def make(algorithm: Any = ALGORITHM, **changes: Any) -> cmdpax.Agent:
    """Three states, two actions, three steps, two constraints; the rewards are not known."""
    arguments: dict[str, Any] = {
        "num_states": 3,
        "num_actions": 2,
        "horizon": 3,
        "thresholds": [2.4, 2.7],  # more than can be reached: multipliers grow
        "initial": [0.5, 0.5, 0.0],
        "seed": 11,
        "reward_range": (0, 1),
        "constraint_ranges": (0, 1),
    }
    return cmdpax.Agent(algorithm, **(arguments | changes))


def known(num_constraints: int = 2) -> dict[str, np.ndarray]:
    """Rewards that an agent may be told."""
    generator = np.random.default_rng(5)
    return {
        "rewards": generator.random((3, 3, 2)),
        "constraint_rewards": generator.random((num_constraints, 1, 3, 2)),
    }


# ----------------------------------------------------------------------------------- what is played


class System:
    """What follows a step is a function of its place in the run: it can be played again."""

    def __init__(self, agent: cmdpax.Agent, cut: bool = True) -> None:
        self.declared, self.cut = agent.declaration, cut

    def first(self, episode: int) -> int:
        """Where an episode begins."""
        allowed = np.flatnonzero(self.declared.initial)
        return int(np.random.default_rng(episode).choice(allowed))

    def length(self, episode: int) -> int:
        """How many steps it has: every third episode is cut short, wherever it can be."""
        horizon = self.declared.sizes.horizon
        if not self.cut or episode % 3 or horizon == 1:
            return horizon
        return int(np.random.default_rng((episode, 0)).integers(1, horizon))

    def step(self, *place: int) -> tuple[float, np.ndarray, int]:
        """Reward, signals and next state at an episode's step, in a state, after an action."""
        generator, lists = np.random.default_rng(place), self.declared.successors
        low, high, *_ = self.declared.units
        signals = low + (high - low) * generator.random(len(low))
        if lists is None:
            return signals[0], signals[1:], int(generator.integers(self.declared.sizes.num_states))
        _, step, state, action = place
        row = lists[step % len(lists), state, action]
        return signals[0], signals[1:], int(generator.choice(row[row >= 0]))


def call_next(agent: cmdpax.Agent, system: System) -> str:
    """The one call that comes next, and its name."""
    expected = agent.expects
    if expected == "start":
        agent.start(system.first(agent.episode))
    elif expected == "end" or (
        # Short episodes with an even number end after an action was given, others before.
        agent.step == system.length(agent.episode) and (agent.episode % 2 or expected == "observe")
    ):
        agent.end()
        return "end"
    elif expected == "act":
        agent.act(agent.state)
    else:
        now = agent._now.episode  # the agent itself would answer with names
        agent.observe(*system.step(agent.episode, agent.step, now.states[-1], now.action))
    return expected


def play(agent: cmdpax.Agent, num_episodes: int, cut: bool = True) -> cmdpax.Agent:
    """Play until so many episodes are counted."""
    system = System(agent, cut)
    while agent.num_episodes < num_episodes:
        call_next(agent, system)
    return agent


def replay_calls(agent: cmdpax.Agent, episodes: Iterable[Steps]) -> None:
    """Tell logged episodes call by call, as what was really done."""
    for states, actions, rewards, constraint_rewards in episodes:
        agent.start(states[0])
        for step, action in enumerate(actions):
            agent.act(states[step])
            signals = [signal[step] for signal in constraint_rewards]
            agent.observe(rewards[step], signals, states[step + 1], action=action)
        agent.end()


def draw_episodes(agent: cmdpax.Agent, num_episodes: int, cut: bool = True) -> list[Steps]:
    """Episodes of random actions, some cut short, the shortest of one step."""
    system, generator = System(agent, cut), np.random.default_rng(3)
    num_constraints, _, _, num_actions = agent.declaration.sizes
    episodes = []
    for number in range(1, num_episodes + 1):
        states, actions, observed = [system.first(number)], [], []
        for step in range(system.length(number)):
            actions.append(int(generator.integers(num_actions)))
            reward, signals, following = system.step(number, step, states[-1], actions[-1])
            states.append(following)
            observed.append([reward, *signals])
        columns = np.array(observed).T.tolist()
        episodes.append((states, actions, columns[0], columns[1 : 1 + num_constraints]))
    return episodes


def log_of(agent: cmdpax.Agent, episodes: list[Steps]) -> cmdpax.Log:
    """The same as arrays: steps that did not happen have action -1."""
    num_constraints, horizon, *_ = agent.declaration.sizes
    count = len(episodes)
    log = cmdpax.Log(
        np.zeros((count, horizon + 1), int),
        np.full((count, horizon), -1),
        np.full((count, horizon), np.nan),
        np.full((count, num_constraints, horizon), np.nan),
    )
    for k, (states, actions, rewards, constraint_rewards) in enumerate(episodes):
        log.states[k, : len(states)] = states
        log.actions[k, : len(actions)] = actions
        log.rewards[k, : len(rewards)] = rewards
        for i, signal in enumerate(constraint_rewards):
            log.constraint_rewards[k, i, : len(signal)] = signal
    return log


# --------------------------------------------------------------------------------- what an agent is


def snapshot(agent: cmdpax.Agent) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """All that an agent is, bit for bit: what it learned, saw, believes, and the open episode."""
    now = agent._now
    tree = {
        "state": agent.learner_state,
        "tally": dataclasses.asdict(now.tally),
        "episode": now.episode,
    }
    found = {}
    for path, leaf in jax.tree.leaves_with_path(tree):
        array = np.asarray(leaf)
        found[jax.tree_util.keystr(path)] = (array.dtype.str, array.shape, array.tobytes())
    return found


def assert_same(one: cmdpax.Agent, other: cmdpax.Agent) -> None:
    """Bit for bit, and by everything that is public."""
    assert differences(one, other) == []
    for name in ("num_episodes", "episode", "step", "state", "action", "expects"):
        assert getattr(one, name) == getattr(other, name), name
    assert repr(one) == repr(other)
    assert str(one.account.to_dict()) == str(other.account.to_dict())


def differences(one: cmdpax.Agent, other: cmdpax.Agent) -> list[str]:
    """The parts that are not the same."""
    ours, theirs = snapshot(one), snapshot(other)
    assert list(ours) == list(theirs)
    return [name for name in ours if ours[name] != theirs[name]]


def assert_close(one: cmdpax.Agent, other: cmdpax.Agent, tolerance: float) -> None:
    """Counts exactly, numbers to a tolerance."""
    ours, theirs = (jax.tree.leaves(agent.learner_state) for agent in (one, other))
    for found, expected in zip(ours, theirs, strict=True):
        allowed = 0 if found.dtype.kind == "i" else tolerance
        np.testing.assert_allclose(found, expected, rtol=0, atol=allowed)
    np.testing.assert_allclose(one.policy, other.policy, rtol=0, atol=tolerance)
    np.testing.assert_allclose(one.multipliers, other.multipliers, rtol=0, atol=tolerance)


def assert_sentence(error: BaseException) -> None:
    """One line that ends as sentences do."""
    assert re.fullmatch(r"[^\n]+\.", str(error))


def assert_refused(agent: cmdpax.Agent, call: Call, kind: type, *parts: str) -> None:
    """With a sentence that has these parts; the agent is what it was."""
    before, expected = snapshot(agent), agent.expects
    with pytest.raises(kind) as caught:
        call(agent)
    assert_sentence(caught.value)
    for part in parts:
        assert part in str(caught.value)
    assert snapshot(agent) == before
    assert agent.expects == expected


# ------------------------------------------------------------------------------------ slow and sure


class Counting(learning_reference.Memory):
    """Counts in loops, also where the steps share them or the states that may follow are listed."""

    stationary = False
    lists: np.ndarray | None = None

    def __init__(self, model: Any, profile: Any) -> None:
        super().__init__(model, profile)
        if self.lists is not None:
            self.support = np.zeros(model.transitions.shape)
            for h, s, a in np.ndindex(model.rewards.shape):
                row = self.lists[h % len(self.lists), s, a]
                self.support[h, s, a, row[row >= 0]] = 1

    def count(self, states: Any, actions: Any, rewards: Any, constraint_rewards: Any) -> None:
        """Add one episode."""
        for h, a in enumerate(actions):
            at = (slice(None) if self.stationary else h, states[h], a)
            self.visits[at] += 1
            self.went[(*at, states[h + 1])] += 1
            self.rewards[at] += rewards[h]
            for i in range(len(self.constraint_rewards)):
                self.constraint_rewards[(i, *at)] += constraint_rewards[i][h]


def counting_for(agent: cmdpax.Agent) -> Counting:
    """Counts of no episode yet."""
    model = stand_in(agent)
    return _kind(agent)(model, agent.declaration.optimism._asdict())


def _kind(agent: cmdpax.Agent) -> type[Counting]:
    declared = agent.declaration
    marks = {"stationary": declared.stationary, "lists": declared.successors}
    return type("CountingThis", (Counting,), marks)


def stand_in(agent: cmdpax.Agent) -> reference.Dense:
    """What the agent was told, as the reference takes it, for rewards in [0, 1]."""
    declared = agent.declaration
    num_constraints, *pairs = declared.sizes
    rewards, constraint_rewards = np.zeros(pairs), np.zeros((num_constraints, *pairs))
    if declared.rewards is not None:
        rewards[:] = declared.rewards
        constraint_rewards[:] = declared.constraint_rewards
    return reference.Dense(
        np.zeros((*pairs, declared.sizes.num_states)),
        rewards,
        constraint_rewards,
        np.array(declared.thresholds + declared.margins),
        np.array(declared.initial),
    )


def reference_after(agent: cmdpax.Agent, episodes: list[Steps]) -> learning_reference.Seen:
    """λ, V̂_u and π for the episode that follows these, by the slow learner."""
    declared = agent.declaration
    dual = not str(declared.algorithm).endswith("primal-dual")
    learner = learning_reference.dual_learner if dual else learning_reference.primal_dual_learner
    chosen = declared.parameters.items()
    rates = learning_reference.Rates(
        **{k: tuple(n) if isinstance(n, list) else n for k, n in chosen}
    )

    def and_one_more() -> Iterator[Any]:
        yield from episodes
        yield ([0], [], [], [])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning_reference, "Memory", _kind(agent))
        profile = declared.optimism._asdict()
        *_, last = learner(stand_in(agent), profile, and_one_more(), rates)
    return last


def assert_counted(agent: cmdpax.Agent, episodes: list[Steps]) -> None:
    """Visits, transition counts, p̂ and the sums of rewards are those of exactly these episodes."""
    counted = counting_for(agent)
    for episode in episodes:
        counted.count(*episode)
    statistics = agent.learner_state.statistics
    tables = 1 if agent.declaration.stationary else agent.declaration.sizes.horizon
    np.testing.assert_array_equal(agent.visits, counted.visits[:tables])
    guess = counted.guess()
    for h in range(tables):
        went = _written_out(agent, h, np.asarray(statistics.storage[0][h]))
        np.testing.assert_array_equal(went, counted.went[h])
        rows = np.asarray(statistics.storage[1][h])
        if agent.declaration.successors is None:
            rows = np.moveaxis(rows, 0, -1)
        rows = _written_out(agent, h, rows)
        np.testing.assert_allclose(rows, guess.transitions[h], rtol=0, atol=1e-15)
    if statistics.reward_sums is not None:
        sums = np.concatenate([counted.rewards[None], counted.constraint_rewards])
        sums = np.moveaxis(sums, 0, 1)[:tables]
        np.testing.assert_allclose(statistics.reward_sums, sums, rtol=0, atol=1e-12)
    for leaf in jax.tree.leaves(agent.learner_state):
        assert not np.isnan(leaf).any()  # log 0 = -∞ is in greedy policies


def _written_out(agent: cmdpax.Agent, h: int, rows: np.ndarray) -> np.ndarray:
    """Rows with one entry per state, `[S, A, S]`; those of unused slots must be 0."""
    lists = agent.declaration.successors
    if lists is None:
        return rows
    full = np.zeros((*rows.shape[:2], rows.shape[0]))
    for s, a, n in np.ndindex(rows.shape):
        following = lists[h % len(lists), s, a, n]
        assert following >= 0 or rows[s, a, n] == 0
        full[s, a, following] += rows[s, a, n]
    return full


LISTS = np.array([[[[1, 2], [0, -1]], [[2, 0], [1, -1]], [[0, 1], [-1, 2]]]])
"""Of three states and two actions: the states that may follow, the same at every step."""
LISTS_BY_STEP = np.concatenate([LISTS, LISTS[:, ::-1], (LISTS + 1) % 3])
"""Of three steps."""
