"""OptLP with a plan in every episode: batches of runs, and a loop that solves linear programs.

    python benchmarks/field_planning.py [--runs 64] [--episodes 100] [--solved 8] [--models NAME …]

`opt-lp` with `growth=0` runs through `cmdpax.learn`, accounts included; a rate is that of the
second call, and what the first took longer is compilation. Rates are per second of processor time,
which others on the machine hardly change; batches of runs use all cores, the loop uses one. The
loop is one run of the same learner as it is usually written: NumPy, and in every episode the
extended linear program for HiGHS, with sparse matrices that are assembled without Python loops.
Both are in one process. At the end both plan between the same bounds, and the last column says how
far their optima differ where every pair was tried 30 times. Needs numpy, jax, jaxtyping and SciPy.
"""

import argparse
import os
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import cmdpax
from cmdpax.jax_context import in_double_precision
from cmdpax.planning.batched import plan

MODELS = ("random", "streaming", "inventory")
SCALE, FAILURE = 0.01, 0.1  # of the widths; the defaults of `opt-lp`


class Structure(NamedTuple):
    """What the programs of all episodes share, z `[H, S, A, T]` being flat."""

    rows: np.ndarray  # of the blocks with which bounds are written
    columns: np.ndarray
    equal: sparse.csr_array
    equal_to: np.ndarray


class Dense(NamedTuple):
    """A model, written out for every step."""

    transitions: np.ndarray
    signals: np.ndarray  # [J, H, S, A]
    thresholds: np.ndarray
    initial: np.ndarray


def written_out(cmdp: cmdpax.CMDP) -> Dense:
    _, horizon, num_states, num_actions = cmdp.sizes
    pairs = (horizon, num_states, num_actions)
    signals = [cmdp.rewards, *cmdp.constraint_rewards]
    return Dense(
        np.broadcast_to(cmdp.transitions, (*pairs, num_states)).copy(),
        np.stack([np.broadcast_to(signal, pairs) for signal in signals]),
        cmdp.thresholds,
        cmdp.initial,
    )


def structure_of(model: Dense) -> Structure:
    """Where entries stand, and the flow: what leaves (h, s) is what comes to it."""
    horizon, num_states, *_ = model.transitions.shape
    number = np.arange(model.transitions.size).reshape(model.transitions.shape)
    rows = np.repeat(number.ravel(), num_states)
    columns = (rows // num_states) * num_states + np.tile(np.arange(num_states), number.size)
    places = np.arange(horizon * num_states).reshape(horizon, num_states)
    leaves = np.broadcast_to(places[:, :, None, None], number.shape).ravel()
    comes = np.broadcast_to(places[1:, None, None], number[:-1].shape).ravel()
    at = np.concatenate([leaves, comes]), np.concatenate([number.ravel(), number[:-1].ravel()])
    entries = np.concatenate([np.ones(leaves.size), -np.ones(comes.size)])
    equal_to = np.concatenate([model.initial, np.zeros((horizon - 1) * num_states)])
    return Structure(rows, columns, sparse.csr_array((entries, at)), equal_to)


def bounds_of(counts: np.ndarray, episode: int) -> tuple[np.ndarray, np.ndarray]:
    """max(p̄ - β, 0) and min(p̄ + β, 1); any row where a pair was never tried."""
    visits = counts.sum(axis=-1, keepdims=True)
    number = np.maximum(visits, 1)
    rows = np.where(visits > 0, counts / number, 1 / counts.shape[-1])
    log_term = np.log(6 * visits.size * episode / FAILURE)
    widths = SCALE * (
        2 * np.sqrt(rows * (1 - rows) * log_term / number) + 14 / 3 * log_term / number
    )
    lower = np.where(visits > 0, np.maximum(rows - widths, 0), 0.0)
    return lower, np.where(visits > 0, np.minimum(rows + widths, 1), 1.0)


def solved(model: Dense, shared: Structure, bounds: Any) -> tuple[float, np.ndarray]:
    """The optimum of the extended program, and its policy."""
    shape = model.transitions.shape
    flat = [bound.reshape(-1, shape[-1], 1) for bound in bounds]
    eye = np.eye(shape[-1])[None]
    at, size = (shared.rows, shared.columns), (model.transitions.size,) * 2
    blocks = [
        sparse.csr_array((entries.ravel(), at), shape=size)
        for entries in (flat[0] - eye, eye - flat[1])
    ]
    signals = np.repeat(model.signals[..., None], shape[-1], axis=-1).reshape(
        len(model.signals), -1
    )
    limits = sparse.vstack([*blocks, sparse.csr_array(-signals[1:])])
    at_most = np.concatenate([np.zeros(2 * size[0]), -model.thresholds])
    found = linprog(-signals[0], limits, at_most, shared.equal, shared.equal_to)
    assert found.success
    mass = np.maximum(found.x.reshape(shape).sum(axis=-1), 0)
    total = mass.sum(axis=-1, keepdims=True)
    policy = np.where(total > 0, mass / np.where(total > 0, total, 1), 1 / shape[2])
    return float(-found.fun), policy


def looped(cmdp: cmdpax.CMDP, num_episodes: int) -> tuple[float, float]:
    """Episodes per processor second of the loop, and how far its optimum is from ours."""
    generator, model = np.random.default_rng(0), written_out(cmdp)
    shared, counts = structure_of(model), np.zeros(model.transitions.shape)
    begun = time.process_time()
    for episode in range(1, num_episodes + 1):
        bounds = bounds_of(counts, episode)
        _, policy = solved(model, shared, bounds)
        state = generator.choice(len(model.initial), p=model.initial)
        for h, decision in enumerate(policy):
            action = generator.choice(len(decision[state]), p=decision[state])
            following = generator.choice(len(model.initial), p=model.transitions[h, state, action])
            counts[h, state, action, following] += 1
            state = following
    rate = num_episodes / (time.process_time() - begun)
    bounds = bounds_of(generator.multinomial(30, model.transitions).astype(float), 1000)
    value, _ = solved(model, shared, bounds)
    return rate, abs(value - planned(model, cmdp.horizon, bounds))


@in_double_precision
def planned(model: Dense, horizon: int, bounds: tuple[np.ndarray, np.ndarray]) -> float:
    """The optimum that our planner finds between the same bounds."""
    arrays = (bounds[0], model.signals[0], model.signals[1:], model.thresholds, model.initial, None)
    cmdp = cmdpax.CMDP.tree_unflatten(horizon, tuple(map(_as_jax, arrays)))
    return float(jax.jit(plan)(cmdp, None, jnp.asarray(bounds[1])).value)


def _as_jax(array: np.ndarray | None) -> Any:
    return None if array is None else jnp.asarray(array)


def batched(cmdp: cmdpax.CMDP, num_runs: int, num_episodes: int) -> tuple[float, float]:
    """Episodes per processor second of all runs together, and what compilation took."""
    walls = []
    for _ in range(2):
        begun = time.process_time()
        cmdpax.learn(
            cmdp,
            "opt-lp",
            num_episodes=num_episodes,
            seeds=num_runs,
            record=[num_episodes],
            growth=0.0,
            bonus_scale=SCALE,
        )
        walls.append(time.process_time() - begun)
    return num_runs * num_episodes / walls[1], walls[0] - walls[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=[64])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--solved", type=int, default=8, help="episodes of the loop")
    parser.add_argument("--models", nargs="+", default=MODELS)
    given = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, JAX {jax.__version__}\n")
    heads = ("model", "S, A, H", "runs", "episodes/(core s)", "the loop's", "ratio", "compile [s]")
    print(f"| {' | '.join(heads)} | differ by |\n{'|---' * 8}|")
    for name in given.models:
        cmdp = cmdpax.environments.make(name)
        _, horizon, num_states, num_actions = cmdp.sizes
        slow, difference = looped(cmdp, given.solved)
        for num_runs in given.runs:
            fast, compilation = batched(cmdp, num_runs, given.episodes)
            print(
                f"| {name} | {num_states}, {num_actions}, {horizon} | {num_runs} | {fast:,.0f} | "
                f"{slow:.2f} | {fast / slow:,.0f} | {compilation:.1f} | {difference:.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
