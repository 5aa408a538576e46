"""UOpt-RPGPD on the model of its authors' notebook: their loop as it runs there, and ours.

    python benchmarks/uopt_notebook.py [--episodes 300000] [--seeds 3]

The notebook of matsuolab/Uniform-PAC-Primal-Dual-CMDP draws S = 30, A = 3, H = 10 with the key of
seed 12 and prints the optimum 5.188404. Its figure shows the violation of every episode, not their
sum. In our runs of its loop the strong violation after 300,000 episodes is 5,153 with its key and
5,877 with another; that of the library's learner is 6,850, 6,541 and 5,587 with three seeds. The
loop differs from the printed algorithm, and `notebook_run` with it:

* it adds τ times the terms of the entropy before it averages over π, which weighs them twice;
* it reads the policy one step past the horizon, where JAX repeats the last step: an entropy more;
* it counts episode k before it evaluates π_k;
* it computes the dual step from π_{k+1} and the Q of π_k.

Needs nothing but jax, numpy, scipy and jaxtyping.
"""

import argparse
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import cmdpax

NUM_STATES, NUM_ACTIONS, HORIZON, SEED = 30, 3, 10, 12
PAIRS = (HORIZON, NUM_STATES, NUM_ACTIONS)
DELTA, BONUS_SCALE = 0.1, 0.001


class Instance(NamedTuple):
    """The notebook's model; u = 1 - r."""

    rewards: Any  # [H, S, A]
    transitions: Any  # [H, S, A, S]
    start: Any
    threshold: Any


def draw() -> Instance:
    """The model, from JAX's generator as it was then.

    Since then the draws of gammas below 1 have changed: they were boosted by U^(1/α), and now by
    (1 - U)^(1/α).
    """
    with jax.threefry_partitionable(False):
        keys = [jax.random.PRNGKey(SEED)]
        for _ in range(3):
            keys.append(jax.random.split(keys[-1])[0])
        rewards = jax.random.bernoulli(keys[1], 0.5, PAIRS).astype(jnp.float32)
        shape, alpha = (HORIZON, NUM_STATES * NUM_ACTIONS, NUM_STATES), jnp.float32(0.1)
        each = jax.random.split(keys[2], int(np.prod(shape)))
        uniform = jax.vmap(
            lambda key: jax.random.uniform(jax.random.split(key)[1], (), alpha.dtype)
        )
        boost = jnp.log(uniform(each)).reshape(shape) / alpha
        gammas = jax.random.loggamma(keys[2], jnp.full(shape, alpha + 1), dtype=alpha.dtype)
        rows = np.asarray(jax.nn.softmax(gammas + boost, axis=-1), float).reshape(*PAIRS, -1)
        start = int(jax.random.randint(keys[3], (), 0, NUM_STATES))
    utility = 1 - np.asarray(rewards, float)
    values = np.zeros(NUM_STATES)
    for h in reversed(range(HORIZON)):
        values = (utility[h] + rows[h] @ values).max(axis=-1)
    rows = rows / rows.sum(axis=-1, keepdims=True)
    return Instance(np.asarray(rewards, float), rows, start, 0.5 * values[start])


def as_cmdp(instance: Instance) -> cmdpax.CMDP:
    """The same for the library."""
    rewards, transitions, start, threshold = instance
    initial = np.eye(NUM_STATES)[start]
    constraints = 1 - rewards[None]
    return cmdpax.CMDP(transitions, rewards, constraints, np.array([threshold]), initial)


# ----------------------------------------------------------------------------- the notebook's loop


class State(NamedTuple):
    """What an episode starts from."""

    key: Any
    policy: Any  # [H, S, A], probabilities, as there
    counts: Any  # [H, S, A, S]
    multiplier: Any


def evaluate(transitions: Any, signal: Any, policy: Any, tau: Any) -> Any:
    """Q of a policy, with their entropy and the step past the horizon."""

    def step(following: Any, at: Any) -> Any:
        (q_values, decision), (rows, gained, own, left) = following, at
        softened = q_values + tau * jax.scipy.special.entr(decision)
        values = jnp.sum(decision * softened, axis=1)
        cap = (1 + tau * jnp.log(jnp.asarray(NUM_ACTIONS, signal.dtype))) * left
        q_values = jnp.minimum(gained + rows @ values, cap)
        return (q_values, own), q_values

    left = jnp.arange(HORIZON, 0, -1, dtype=signal.dtype)
    past = (jnp.zeros_like(signal[0]), policy[-1])
    return jax.lax.scan(step, past, (transitions, signal, policy, left), reverse=True)[1]


def learn_from(instance: Instance, state: State, episode: Any) -> State:
    """The policy and the multiplier after episode k = 0, 1, …, which the counts include."""
    k = episode.astype(state.policy.dtype)
    eta, tau = (k + 3) ** -0.53, (k + 3) ** -0.4
    visits = state.counts.sum(axis=-1)
    number = jnp.maximum(visits, 1).astype(k.dtype)
    rows = state.counts.astype(k.dtype) / number[..., None]
    rows = jnp.where(visits[..., None] > 0, rows, 1 / NUM_STATES)
    log_term = np.log(48 * NUM_STATES**2 * NUM_ACTIONS * HORIZON / DELTA)
    iterated = jnp.log(jnp.log(jnp.maximum(2 * number, jnp.e)))
    phi = jnp.sqrt((2 * iterated + 2 * log_term) / number)
    bonus = BONUS_SCALE * (jnp.sqrt(rows).sum(axis=-1) * phi + 5 * phi**2)
    q_reward = evaluate(rows, instance.rewards + bonus, state.policy, tau)
    q_constraint = evaluate(rows, 1 - instance.rewards + bonus, state.policy, jnp.zeros_like(tau))
    q_values = q_reward + state.multiplier * q_constraint
    policy = jax.nn.softmax((1 - eta * tau) * jnp.log(state.policy) + eta * q_values, axis=-1)
    value = jnp.sum((q_constraint * policy)[0, instance.start])
    slope = instance.threshold - value - tau * state.multiplier
    multiplier = jnp.maximum(state.multiplier + eta * slope, 0)
    return state._replace(policy=policy, multiplier=multiplier)


def play(instance: Instance, state: State) -> State:
    """Play an episode with the notebook's stream of keys, and count it."""
    key, first = jax.random.split(state.key)
    initial = jax.nn.one_hot(instance.start, NUM_STATES, dtype=state.policy.dtype)
    start = jax.random.choice(first, NUM_STATES, p=initial)

    def step(carried: Any, at: Any) -> Any:
        key, current = carried
        decision, rows = at
        key, used = jax.random.split(key)
        action = jax.random.choice(used, NUM_ACTIONS, p=decision[current])
        key, used = jax.random.split(key)
        following = jax.random.choice(used, NUM_STATES, p=rows[current, action])
        return (key, following), (current, action, following)

    (key, _), at = jax.lax.scan(step, (key, start), (state.policy, instance.transitions))
    return state._replace(key=key, counts=state.counts.at[(jnp.arange(HORIZON), *at)].add(1))


def first_state(dtype: Any) -> State:
    """Before the first episode."""
    policy = jnp.full(PAIRS, 1 / NUM_ACTIONS, dtype)
    counts = jnp.zeros((*PAIRS, NUM_STATES), jnp.int32)
    return State(jax.random.PRNGKey(SEED), policy, counts, jnp.zeros((), dtype))


def notebook_run(instance: Instance, num_episodes: int) -> tuple[np.ndarray, np.ndarray]:
    """V_r and V_u of every policy of the notebook's loop, in single precision as there."""
    model = jax.tree.map(lambda array: jnp.asarray(array, jnp.float32), instance)
    model = model._replace(start=jnp.asarray(instance.start, jnp.int32))

    def episode(state: State, index: Any) -> Any:
        zero = jnp.zeros((), jnp.float32)
        signals = (model.rewards, 1 - model.rewards)
        every_q = [evaluate(model.transitions, z, state.policy, zero) for z in signals]
        values = [jnp.sum((q * state.policy)[0, model.start]) for q in every_q]
        return learn_from(model, play(model, state), index), jnp.stack(values)

    with jax.threefry_partitionable(False):
        run = jax.jit(
            lambda: jax.lax.scan(episode, first_state(jnp.float32), jnp.arange(num_episodes))
        )
        values = np.asarray(run()[1], float)
    return values[:, 0], values[:, 1]


def regrets(optimum: float, threshold: float, values: Any) -> tuple[float, float]:
    """Strong regret and strong violation."""
    lost, short = optimum - values[0], threshold - values[1]
    return float(np.maximum(lost, 0).sum()), float(np.maximum(short, 0).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=300_000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    instance = draw()
    cmdp = as_cmdp(instance)
    optimum = cmdpax.solve(cmdp).value
    print(f"optimum {optimum:.6f} (notebook: 5.188404), threshold {instance.threshold:.6f}")
    print(f"after {arguments.episodes} episodes   strong regret   strong violation   seconds")
    begun = time.perf_counter()
    values = notebook_run(instance, arguments.episodes)
    found = [("as in the notebook", *regrets(optimum, instance.threshold, values))]
    taken = [time.perf_counter() - begun]
    history = cmdpax.learn(
        cmdp, "uopt-rpgpd", num_episodes=arguments.episodes, seeds=arguments.seeds
    )
    summary = history.summary()
    pairs = zip(summary["strong_objective"], summary["strong_constraints"], strict=True)
    found += [(f"ours, seed {seed}", *pair) for seed, pair in enumerate(pairs)]
    taken += [time.perf_counter() - begun - taken[0]] * arguments.seeds
    for (name, regret, violation), seconds in zip(found, taken, strict=True):
        print(f"{name:<26}{regret:>14.0f}{violation:>19.0f}{seconds:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
