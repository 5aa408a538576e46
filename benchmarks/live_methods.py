"""What `live.py` compares: agents, ten lines of estimate and solve, Q-learning and a fixed rule.

Every method plays a simulated system, and tells an `Account` of the true values which policy it
plays. None of them sees the model, except that the penalties of Q-learning are multiples of λ*.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import cmdpax
from examples.systems import System

PENALTIES = (0.5, 1.0, 2.0, 4.0, 8.0)  # of Q-learning, in multiples of λ*
EVERY = 50  # episodes between two plans of estimate and solve
EXPLORED = 0.05  # the share of random actions, there and in the end in Q-learning
NUM_EVALUATED = 60  # of policies that change in every episode
ROUNDING = 1e-9


class Run(NamedTuple):
    """What one run came to."""

    account: "Account"
    penalty: float | None = None  # of Q-learning


class Account:
    """The true values of the policies that were played, against the optimum."""

    def __init__(self, system: System, num_episodes: int, every: bool) -> None:
        self.cmdp, self.num_episodes = system.model, num_episodes
        grid = np.geomspace(1, num_episodes, NUM_EVALUATED).round().astype(int) - 1
        self.grid = set(range(num_episodes) if every else grid.tolist())
        self.entered: dict[int, tuple[float, np.ndarray]] = {}
        self.policy: np.ndarray | None = None
        self.values = (0.0, np.zeros(0))

    def enter(self, episode: int, policy: Callable[[], np.ndarray]) -> None:
        """The policy of an episode, `[H, S, A]`, evaluated exactly if it is another one."""
        if episode not in self.grid:
            return
        given = policy()
        if self.policy is None or not np.array_equal(given, self.policy):
            found = cmdpax.evaluate(self.cmdp, given)
            self.policy, self.values = given, (found.value, found.constraint_values)
        self.entered[episode] = self.values

    def losses(self, optimum: cmdpax.Solution) -> tuple[np.ndarray, np.ndarray]:
        """What each episode loses, violations priced at λ*, and whether its policy is unsafe.

        An episode between two of the grid counts as the one that is nearer.
        """
        known = np.array(sorted(self.entered))
        nearest = np.searchsorted((known[1:] + known[:-1]) / 2, np.arange(self.num_episodes))
        earned = np.array([self.entered[episode][0] for episode in known])
        reached = np.array([self.entered[episode][1] for episode in known])
        missed = -self.cmdp.words.slack(reached, self.cmdp.bounds)
        scale = np.maximum(np.abs(self.cmdp.bounds), 1.0)
        priced = earned - missed.clip(0) @ optimum.multipliers
        unsafe = (missed > ROUNDING * scale).any(axis=-1)
        return (optimum.value - priced)[nearest], unsafe[nearest]


# ---------------------------------------------------------------------------------- how they play


def agent(system: System, seed: int, num_episodes: int, *name: str, **given: Any) -> Iterator[Run]:
    """An agent by the name of its algorithm, or the default one."""
    account = Account(system, num_episodes, every=not name)
    player = cmdpax.Agent(*name, **system.declaration, seed=seed, **given)
    for episode in range(num_episodes):
        account.enter(episode, lambda: player.policy)
        state = system.reset()
        player.start(state)
        for _ in range(system.horizon):
            reward, signals, state = system.step(player.act(state))
            player.observe(reward, signals, state)
        player.end()
    yield Run(account)


def with_baseline(system: System, seed: int, num_episodes: int, **given: Any) -> Iterator[Run]:
    """The agent that starts with the safe rule."""
    given = {"baseline": system.rule, "confidence": 0.9} | given
    yield from agent(system, seed, num_episodes, **given)


def named(name: str) -> Callable[..., Iterator[Run]]:
    """The agent with one of the paper's algorithms."""
    return lambda system, seed, num_episodes: agent(system, seed, num_episodes, name)


def safe_rule(system: System, seed: int, num_episodes: int) -> Iterator[Run]:
    """The fixed rule."""
    account = Account(system, num_episodes, every=False)
    for episode in range(num_episodes):
        account.enter(episode, lambda: every_step(system, system.rule))
    yield Run(account)


def every_step(system: System, policy: np.ndarray) -> np.ndarray:
    """A policy `[S, A]` or `[H, S, A]`, at every step."""
    return np.broadcast_to(policy, (system.horizon, system.num_states, system.num_actions))


def uniform(system: System) -> np.ndarray:
    """All actions that there are, with equal probabilities, `[S, A]`."""
    flags = system.available
    if flags is None:
        flags = np.ones((system.num_states, system.num_actions))
    return flags / flags.sum(axis=-1, keepdims=True)


# ---------------------------------------------------------------------------- estimate and solve


def estimate_and_solve(system: System, seed: int, num_episodes: int) -> Iterator[Run]:
    """Plan every 50 episodes on everything logged, and explore with 5 % of the actions."""
    account = Account(system, num_episodes, every=True)
    generator, logs = np.random.default_rng([seed, 1]), []
    random = played = every_step(system, uniform(system))
    for first in range(0, num_episodes, EVERY):
        if logs:
            plan = planned(system, joined(logs))
            played = (1 - EXPLORED) * plan + EXPLORED * random
        count = min(EVERY, num_episodes - first)
        for episode in range(first, first + count):
            account.enter(episode, lambda policy=played: policy)
        logs.append(logged(system, played, count, generator))
    yield Run(account)


def planned(system: System, log: cmdpax.Log) -> np.ndarray:
    """The best policy of the estimated model; the one with the largest slack if none is safe."""
    told = system.declaration
    sizes = {name: told[name] for name in ("num_states", "num_actions")}
    words = {name: told[name] for name in ("thresholds", "senses", "stationary", "available")}
    initial = np.eye(system.num_states)[system.start]
    kept = {"storage": "successors", "unvisited": "absorbing"} if system.listed else {}
    model = cmdpax.estimate(log, **sizes, **words, **kept, initial=initial)
    try:
        return np.asarray(cmdpax.solve(model).policy)
    except cmdpax.InfeasibleError:
        return np.asarray(cmdpax.solve_many([model])[0].policy)


def joined(logs: list[cmdpax.Log]) -> cmdpax.Log:
    """All episodes in one log."""
    return cmdpax.Log(*(np.concatenate(parts) for parts in zip(*logs, strict=True)))


def logged(
    system: System, policy: np.ndarray, count: int, generator: np.random.Generator
) -> cmdpax.Log:
    """Episodes of one policy, all at once."""
    horizon, width = system.horizon, len(system.errors)
    states, actions = np.full((count, horizon + 1), system.start), np.zeros((count, horizon), int)
    observed = np.zeros((count, width, horizon))
    cumulative = np.cumsum(policy, axis=-1)[..., :-1]
    for step in range(horizon):
        at = states[:, step]
        chosen = (generator.random((count, 1)) >= cumulative[step, at]).sum(axis=-1)
        signals, states[:, step + 1] = system.draw(step, at, chosen, generator)
        actions[:, step], observed[:, :, step] = chosen, signals
    return cmdpax.Log(states, actions, observed[:, 0], observed[:, 1:])


# -------------------------------------------------------------------------------------- Q-learning


class QTable:
    """Tabular Q-learning for several penalties at once, epsilon-greedy."""

    def __init__(self, system: System, penalties: np.ndarray, generator: Any) -> None:
        self.system, self.penalties, self.generator = system, penalties, generator
        self.flags = uniform(system) > 0
        steps = 1 if system.stationary else system.horizon
        shape = (len(penalties), steps, system.num_states, system.num_actions)
        self.visits = np.zeros(shape)
        self.q = np.where(self.flags, 0.0, -np.inf) + np.zeros(shape)
        self.runs = np.arange(len(penalties))

    def policy(self, run: int, explored: float) -> np.ndarray:
        """What is played: the best actions, any of them with equal probability, or any action."""
        best = self.q[run] == self.q[run].max(axis=-1, keepdims=True)
        greedy = best / best.sum(axis=-1, keepdims=True)
        return every_step(self.system, (1 - explored) * greedy + explored * uniform(self.system))

    def episode(self, explored: float) -> None:
        """One episode of every run."""
        system, runs, generator = self.system, self.runs, self.generator
        states = np.full(len(runs), system.start)
        signs = np.append(1.0, system.model.words.signs)
        discount = 1 - 1 / system.horizon if system.stationary else 1.0
        for step in range(system.horizon):
            place = 0 if system.stationary else step
            values = self.q[runs, place, states]
            best = values == values.max(axis=-1, keepdims=True)
            any_of = np.where(generator.random((len(runs), 1)) < explored, self.flags[states], best)
            ranks = generator.random(any_of.shape)
            actions = np.where(any_of, ranks, -1.0).argmax(axis=-1)
            observed, following = system.draw(step, states, actions, generator)
            target = (observed * signs * self.penalties).sum(axis=-1)
            if system.stationary or step + 1 < system.horizon:
                after = 0 if system.stationary else step + 1
                target += discount * self.q[runs, after, following].max(axis=-1)
            at = (runs, place, states, actions)
            self.visits[at] += 1
            self.q[at] += self.visits[at] ** -0.6 * (target - self.q[at])
            states = following


def q_learning(system: System, seed: int, num_episodes: int) -> Iterator[Run]:
    """Q-learning with a fixed price for each constraint's signal, for five of them."""
    prices = cmdpax.solve(system.model).multipliers
    weights = np.array([np.append(1.0, share * prices) for share in PENALTIES])
    table = QTable(system, weights, np.random.default_rng([seed, 2]))
    accounts = [Account(system, num_episodes, every=False) for _ in PENALTIES]
    for episode in range(num_episodes):
        explored = max(EXPLORED, (1 + episode) ** -0.5)
        for run, account in enumerate(accounts):
            account.enter(episode, lambda run=run, share=explored: table.policy(run, share))
        table.episode(explored)
    for account, penalty in zip(accounts, PENALTIES, strict=True):
        yield Run(account, penalty)


ALGORITHMS = (
    "regularized-primal-dual",
    "regularized-dual",
    "vanilla-primal-dual",
    "vanilla-dual",
)
METHODS: dict[str, Callable[..., Iterator[Run]]] = {
    "agent": agent,
    "agent, baseline": with_baseline,
    **{name: named(name) for name in ALGORITHMS},
    "estimate + solve": estimate_and_solve,
    "Q-learning": q_learning,
    "safe rule": safe_rule,
}
