"""The engine: configurations in, NumPy arrays of their accounts out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.errors import ParameterError
from cmdpax.estimation import Optimism
from cmdpax.history import Log
from cmdpax.hyperparameters import is_constant
from cmdpax.learners.base import Hyperparameters
from cmdpax.model import CMDP
from cmdpax.potential import Saddle, potential, saddle_of
from cmdpax.simulation import Block, Design, Entries, Progress, Runs, account_block, blocks, no_sums


class Configuration(NamedTuple):
    """One run: its seed and what the user chose for it."""

    seed: int
    hyperparameters: Hyperparameters
    optimism: Optimism


class Collected(NamedTuple):
    """NumPy arrays of all runs; the first axis of the first four is recorded episodes."""

    entries: Entries
    multipliers: np.ndarray
    potential: np.ndarray | None
    log: Log | None
    unsafe: np.ndarray  # counts, [R, E]
    capped: np.ndarray  # episodes with λ_i at its cap, [R, I]
    policy: np.ndarray  # [R, H, S, A]


def run_batch(
    design: Design,
    cmdp: CMDP,
    configurations: Sequence[Configuration],
    optimum: float,
    recorded: np.ndarray,
    num_episodes: int,
    levels: tuple[float, ...],
    saddles: Saddle | None,
    report: Progress,
) -> Collected:
    """Run all blocks, and keep what is recorded."""
    dtype = jnp.result_type(float)
    model = cast(cmdp, dtype)
    runs = stack_runs(cmdp, configurations, dtype)
    optima = jnp.full(len(configurations), optimum, dtype)
    saddle = None if saddles is None else cast(saddles, dtype)
    sums = no_sums(len(configurations), 1 + cmdp.num_constraints, len(levels), dtype)
    capped = jnp.zeros((len(configurations), cmdp.num_constraints), jnp.int32)
    kept: list[tuple[Any, ...]] = []
    for first, count, block in blocks(design, model, runs, num_episodes):
        sums, entries = account_block(
            model,
            optima,
            jnp.asarray(levels, dtype),
            block.log_policies,
            jnp.int32(count),
            sums,
            design.stacked,
        )
        caps = runs.hyperparameters.max_multiplier
        capped = capped + _count_capped(block.multipliers, caps, jnp.int32(count))
        distance = None if saddle is None else _potentials(saddle, block)
        places = recorded[(recorded >= first) & (recorded < first + count)] - first
        shown = _take((entries, block.multipliers, distance), places)
        kept.append((*shown, _take(block.log, np.arange(count))))
        last = block.log_policies[count - 1]
        report(first + count - 1, num_episodes)
    entries, multipliers, distance, log = (_join(pieces) for pieces in zip(*kept, strict=True))
    return Collected(
        entries,
        multipliers,
        distance,
        None if log is None else Log(*(np.moveaxis(np.asarray(a), 0, 1) for a in log)),
        np.asarray(sums.unsafe),
        np.asarray(capped),
        np.exp(np.asarray(last, dtype=np.float64)),
    )


def _take(tree: Any, places: np.ndarray) -> Any:
    """Rows of the leading axis as NumPy arrays; few rows are picked before they are copied."""
    if len(places) == 0:
        return jax.tree.map(lambda array: np.zeros((0, *array.shape[1:])), tree)
    padded = np.resize(places, 1 << (len(places) - 1).bit_length())

    def pick(array: jax.Array) -> np.ndarray:
        if 4 * len(padded) < array.shape[0]:
            return np.asarray(array[padded])[: len(places)]
        return np.asarray(array)[places]

    return jax.tree.map(pick, tree)


def _join(pieces: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *pieces)


@jax.jit
def _count_capped(multipliers: Any, caps: Any, count: Any) -> Any:
    played = (jnp.arange(multipliers.shape[0]) < count)[:, None, None]
    return jnp.sum((multipliers >= caps[:, None]) & played, axis=0, dtype=jnp.int32)


@jax.jit
def _potentials(saddle: Saddle, block: Block) -> Any:
    return jax.vmap(jax.vmap(potential), in_axes=(None, 0, 0))(
        saddle, block.log_policies, block.multipliers
    )


def cast(tree: Any, dtype: Any) -> Any:
    """Floating arrays in the working precision, on the device."""

    def cast(array: Any) -> jax.Array:
        return jnp.asarray(array, dtype if np.asarray(array).dtype.kind == "f" else None)

    return jax.tree.map(cast, tree)


def stack_runs(cmdp: CMDP, configurations: Sequence[Configuration], dtype: Any) -> Runs:
    """Stack the configurations; the key of a run is that of its seed alone."""
    keys = [jax.random.key(c.seed, impl="threefry2x32") for c in configurations]
    bonuses = [c.optimism.numbers(cmdp.sizes) for c in configurations]
    chosen = [c.hyperparameters for c in configurations]

    def stack(*numbers: float) -> jax.Array:
        return jnp.asarray(np.array(numbers), dtype)

    return Runs(jnp.stack(keys), jax.tree.map(stack, *chosen), jax.tree.map(stack, *bonuses))


def stack_saddles(cmdp: CMDP, configurations: Sequence[Configuration]) -> Saddle:
    """The saddle point that each run approaches, stacked."""
    found: dict[tuple[float, float, float], Saddle] = {}
    keys = []
    for _, chosen, _ in configurations:
        tau, margin = chosen.regularization, chosen.margin
        if not (is_constant(tau) and is_constant(margin) and tau.initial > 0):
            raise ParameterError("the potential is defined for a constant τ > 0 and margin.")
        key = (tau.initial, chosen.max_multiplier, margin.initial)
        if key not in found:
            found[key] = saddle_of(cmdp, *key)
        keys.append(key)
    return jax.tree.map(lambda *arrays: np.stack(arrays), *(found[key] for key in keys))
