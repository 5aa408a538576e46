"""What a batch of runs is: configurations in, NumPy arrays of their accounts out."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.history import Log
from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.parameters import parameters_in_words
from cmdpax.model import CMDP, Sizes
from cmdpax.optimism import Optimism
from cmdpax.simulation import Design, Entries, Runs

Value = TypeVar("Value")


class Configuration(NamedTuple):
    """One run: its seed and what the user chose for it."""

    seed: int
    algorithm: Algorithm
    parameters: Any  # the algorithm's record
    optimism: Optimism

    @property
    def words(self) -> str:
        """The parameters, for people."""
        return parameters_in_words(self.parameters)

    def describe(self) -> dict[str, Any]:
        """As JSON holds it; schedules are (initial, exponent, offset)."""
        chosen = self.algorithm.describe(self.parameters)
        return {"seed": self.seed, **chosen, "optimism": self.optimism._asdict()}


class Task(NamedTuple):
    """What all runs of a batch share; a stacked design has a CMDP of the same shape for each."""

    design: Design
    cmdps: Sequence[CMDP]  # the one of all runs, or one per run
    optima: Sequence[float]  # V_r^{π*}, likewise
    recorded: np.ndarray
    num_episodes: int
    levels: tuple[float, ...]

    def part(self, members: Sequence[int]) -> "Task":
        """The task of some of the runs."""
        if not self.design.stacked:
            return self
        chosen = [self.cmdps[i] for i in members]
        return self._replace(cmdps=chosen, optima=[self.optima[i] for i in members])


class Collected(NamedTuple):
    """NumPy arrays of all runs, which are the leading axis of everything."""

    entries: Entries  # [R, T, J]
    multipliers: np.ndarray  # [R, T, I]
    potential: np.ndarray | None  # [R, T]
    log: Log | None
    unsafe: np.ndarray  # counts, [R, E]
    capped: np.ndarray  # episodes with λ_i at its cap, [R, I]
    policy: np.ndarray  # [R, H, S, A]
    flaws: np.ndarray  # the first episode with each of the contract's flaws, 0 if none has, [R, 3]


def model_bytes(cmdp: CMDP, stacked: bool) -> int:
    """Of one run: p̂ and the counts, and the true transitions where every run has its own."""
    _, horizon, num_states, num_actions = cmdp.sizes
    arrays = jax.tree.leaves(cmdp.transitions)
    row_length = arrays[-1].shape[-1]
    own = sum(array.nbytes for array in arrays) if stacked else 0
    return 12 * horizon * num_states * num_actions * int(row_length) + own


def cast(tree: Any, dtype: Any) -> Any:
    """Floating arrays in the working precision, on the device."""

    def convert(array: Any) -> jax.Array:
        return jnp.asarray(array, dtype if np.asarray(array).dtype.kind == "f" else None)

    return jax.tree.map(convert, tree)


def stack_runs(
    sizes: Sizes, configurations: Sequence[Configuration], num_episodes: int, dtype: Any
) -> Runs:
    """Stack the configurations; the key of a run is that of its seed alone."""
    algorithm = configurations[0].algorithm
    seeds = jnp.asarray(np.array([c.seed for c in configurations], dtype=np.uint32))
    keys = jax.vmap(functools.partial(jax.random.key, impl="threefry2x32"))(seeds)
    records, places = _distinct(c.parameters for c in configurations)
    chosen = [algorithm.numbers(parameters) for parameters in records]
    profiles, profile_places = _distinct(c.optimism for c in configurations)
    bonuses = [profile.numbers(sizes) for profile in profiles]
    counts = None if algorithm.anytime else jnp.full(len(seeds), num_episodes, jnp.int32)

    def stack(trees: list[Any], places: np.ndarray) -> Any:
        return jax.tree.map(lambda *numbers: jnp.asarray(np.array(numbers)[places], dtype), *trees)

    return Runs(keys, stack(chosen, places), stack(bonuses, profile_places), counts)


def _distinct(values: Iterable[Value]) -> tuple[list[Value], np.ndarray]:
    """The different ones, and for each value its place among them: 10⁵ runs are often few."""
    found: dict[Value, int] = {}
    places = [found.setdefault(value, len(found)) for value in values]
    return list(found), np.array(places)
