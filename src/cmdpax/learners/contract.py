"""What a learner must return, and what is said of one that does not.

Structure and shapes are checked while a learner is traced, which costs nothing per episode. Numbers
can only be checked while it runs: `flaws_of` is part of the compiled accounts. What is played is
exp(log_policy), so a policy has no negative entries and only its sums have to be looked at. Where
actions are not available, any probability of one of them spoils the sum of its row (`row_sums`).
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, Key

from cmdpax.errors import LearnerError
from cmdpax.learners.base import Factory, Info, Learner, Shown
from cmdpax.learners.statistics import Counted, Knowledge, Statistics, Trajectory
from cmdpax.model.availability import Flags
from cmdpax.model.cmdp import Sizes

_ARRAYS = (jax.Array, np.ndarray, np.generic, int, float)
_ARGUMENTS = (  # of init, update, show and absorb
    ("key",),
    ("state", "trajectory", "key"),
    ("state",),
    ("state", "counted", "num_episodes"),
)
_OTHERS = "choose less extreme hyperparameters, or correct the learner if it is your own"
FLAWS = (
    ("a policy with entries that are not finite numbers", _OTHERS),
    ("a policy with rows that do not sum to 1", "normalize it, as jax.nn.log_softmax does"),
    ("multipliers that are not finite numbers", _OTHERS),
)
"""What may be wrong with an episode's numbers, and how it is mended."""
_WRONG_SUMS = 1
_OF_AVAILABLE = (
    "a policy with rows that do not sum to 1 over the available actions",
    "normalize it, as jax.nn.log_softmax does, with -inf where knowledge.available is false",
)


def flaw_in_words(flaw: int, restricted: bool) -> tuple[str, str]:
    """One of `FLAWS`, as it is said where only some actions are available, or where all are."""
    return _OF_AVAILABLE if restricted and flaw == _WRONG_SUMS else FLAWS[flaw]


# ----------------------------------------------------------------------------------- while it runs


def row_sums(
    policies: Float[Array, "... H S A"], available: Flags | None
) -> Float[Array, "... H S"]:
    """Σ_a π(a | s), plus 1 for every action that has a probability and is not available."""
    sums = jnp.sum(policies, axis=-1)
    if available is None:
        return sums
    wrong = (policies > 0) & ~jnp.broadcast_to(available, policies.shape)
    return sums + jnp.sum(wrong, axis=-1).astype(sums.dtype)


def flaws_of(
    sums: Float[Array, "... H S"], multipliers: Float[Array, "... I"]
) -> Bool[Array, "... 3"]:
    """Which of `FLAWS` some episodes have, from the sums of their policies' rows."""
    tolerance = 1e-6 if sums.dtype.itemsize >= 8 else 1e-3
    finite = jnp.all(jnp.isfinite(sums), axis=(-2, -1))
    normalized = jnp.all(jnp.abs(sums - 1) <= tolerance, axis=(-2, -1))
    bounded = jnp.all(jnp.isfinite(multipliers), axis=-1)
    return jnp.stack([~finite, finite & ~normalized, ~bounded], axis=-1)


def first_flaws(
    found: Bool[Array, "E ... 3"], first: int | Integer[Array, ""]
) -> Integer[Array, "... 3"]:
    """The first of the episodes first, first + 1, … that has each flaw; 0 where none has."""
    episodes = first + jnp.argmax(found, axis=0).astype(jnp.int32)
    return jnp.where(jnp.any(found, axis=0), episodes, 0)


def earliest_flaws(
    firsts: Integer[np.ndarray, "R 3"],
) -> tuple[Integer[np.ndarray, " R"], Integer[np.ndarray, " R"]]:
    """The earliest flaw of each run and its episode, from what `first_flaws` found; 0 if none."""
    flaws = np.where(firsts > 0, firsts, np.inf).argmin(axis=1)
    return flaws, np.take_along_axis(firsts, flaws[:, None], axis=1)[:, 0]


def require_sound(
    algorithm: str,
    firsts: Integer[np.ndarray, "R 3"],
    name_run: Callable[[int], str],
    restricted: bool,
) -> None:
    """Raise for the first run with a flaw; `name_run` says which one it is.

    `restricted` says whether only some actions are available.
    """
    flaws, episodes = earliest_flaws(firsts)
    for place in np.flatnonzero(episodes)[:1]:
        what, fix = flaw_in_words(int(flaws[place]), restricted)
        run = f" ({name})" if (name := name_run(int(place))) else ""
        raise LearnerError(f"{algorithm} returned {what} in episode {episodes[place]}{run}; {fix}.")


# ----------------------------------------------------------------------------- while it is traced


def make_checked(factory: Factory, knowledge: Knowledge, parameters: Any) -> Learner:
    """The learner of a factory; what it returns is checked whenever it is traced."""
    refuse = functools.partial(_refuse, factory)
    learner = factory(knowledge, parameters)
    fix = "return cmdpax.learners.Learner(init, update, show), three functions"
    if not isinstance(learner, Learner):
        refuse(f"returned {_kind(learner)} from its factory", fix)
    functions = learner[:3] if learner.absorb is None else learner[:4]
    if not all(map(callable, functions)):
        refuse("has an init, update or show that is not a function", fix)

    for function, names in zip(functions, _ARGUMENTS, strict=False):
        _check_signature(refuse, function, names)

    def init(key: Key[Array, ""]) -> Any:
        state = learner.init(key)
        _check_arrays(refuse, state, "init")
        return state

    def update(state: Any, trajectory: Trajectory, key: Key[Array, ""]) -> Any:
        following = learner.update(state, trajectory, key)
        _check_same(refuse, state, following)
        return following

    def show(state: Any) -> Shown:
        shown = learner.show(state)
        if not (isinstance(shown, Shown) and isinstance(shown.info, Info)):
            refuse(f"returned {_kind(shown)} from show", "return Shown(log_policy, Info(…))")
        _check_policy(refuse, knowledge.sizes, shown.log_policy)
        _check_info(refuse, knowledge.sizes, shown.info)
        return shown

    def absorb(state: Any, counted: Counted, num_episodes: Integer[Array, ""]) -> Any:
        assert learner.absorb is not None
        following = learner.absorb(state, counted, num_episodes)
        _check_same(refuse, state, following)
        return following

    return Learner(init, update, show, None if learner.absorb is None else absorb, learner.rescale)


def factory_name(factory: Factory) -> str:
    """What a factory is called, for people: "module:name"."""
    named = factory.func if isinstance(factory, functools.partial) else factory
    name = getattr(named, "__qualname__", type(named).__qualname__)
    return f"{getattr(named, '__module__', 'builtins')}:{name}"


Refuse = Callable[[str, str], NoReturn]
"""Called with what is wrong and how it is mended; raises."""


def _refuse(factory: Factory, what: str, fix: str) -> NoReturn:
    raise LearnerError(f"the learner {factory_name(factory)} {what}; {fix}.")


def _check_signature(refuse: Refuse, function: Any, names: tuple[str, ...]) -> None:
    """A function takes what it will be called with."""
    try:
        inspect.signature(function).bind(*names)
    except TypeError:
        name = getattr(function, "__name__", "a function")
        refuse(f"has {name} without the arguments ({', '.join(names)})", "let it take them")
    except ValueError:  # written in C, perhaps: calling it will tell
        return


def _check_policy(refuse: Refuse, sizes: Sizes, log_policy: Any) -> None:
    """The logarithm of a policy has a row for every step and state."""
    _, *pairs = sizes
    shape = tuple(pairs)
    found = getattr(log_policy, "shape", None)
    if found != shape:
        refuse(
            f"returned a policy of shape {found}, expected (H, S, A) = {shape}",
            "give log_policy a row for every step and state, as jnp.broadcast_to makes them",
        )
    if not jnp.issubdtype(log_policy.dtype, jnp.floating):
        refuse(
            f"returned a log_policy of type {log_policy.dtype}",
            "give it the type knowledge.initial.dtype",
        )


def _check_arrays(refuse: Refuse, state: Any, source: str) -> None:
    """A state holds arrays and numbers, nothing else."""
    for path, leaf in jax.tree.leaves_with_path(state):
        place = jax.tree_util.keystr(path)
        if not isinstance(leaf, _ARRAYS):
            what = f"returned {_kind(leaf)} as state{place} from {source}"
            refuse(what, "keep arrays in the state")
        if jnp.issubdtype(jax.typeof(leaf).dtype, jax.dtypes.prng_key):
            what = f"returned a key as state{place} from {source}, which no file can hold"
            refuse(what, "keep jax.random.key_data(key), or use the key that update gets")


def _check_same(refuse: Refuse, state: Any, following: Any) -> None:
    """A state keeps its structure, shapes and types from episode to episode."""
    fix = "keep the structure, shapes and types that init gives"
    structures: list[Any] = [jax.tree.structure(tree) for tree in (state, following)]
    if structures[0] != structures[1]:
        refuse(f"returned a state of another structure from update ({_kind(following)})", fix)
    _check_arrays(refuse, following, "update")
    before, after = (jax.tree.leaves_with_path(tree) for tree in (state, following))
    for (path, old), (_, new) in zip(before, after, strict=True):
        was, now = jax.typeof(old), jax.typeof(new)
        # A number whose type Python chose takes the type of what follows it.
        if was.shape != now.shape or (was.dtype != now.dtype and not was.weak_type):
            place = jax.tree_util.keystr(path)
            refuse(f"changed state{place} from {_array(was)} to {_array(now)} in update", fix)


def _check_info(refuse: Refuse, sizes: Sizes, info: Info) -> None:
    """`Info` has the shapes that the accounts take."""
    num_constraints, *pairs = sizes
    expected: list[tuple[str, tuple[int, ...], str]] = [
        ("multipliers", (num_constraints,), "give zeros where it has none"),
        ("constraint_values", (num_constraints,), "give zeros where it has none"),
    ]
    if info.q_values is not None:
        expected.append(("q_values", tuple(pairs), "give None where it has none"))
    for name, shape, fix in expected:
        array = getattr(info, name)
        found = getattr(array, "shape", None)
        if found != shape:
            refuse(f"returned {name} of shape {found}, expected {shape}", fix)
        if not jnp.issubdtype(array.dtype, jnp.floating):
            refuse(f"returned {name} of type {array.dtype}", "give real numbers")
    if not isinstance(info.statistics, Statistics | None):
        refuse(f"returned {_kind(info.statistics)} as statistics", "give None where it has none")


def _kind(value: Any) -> str:
    """The type of a value, for people."""
    return "None" if value is None else f"a {type(value).__name__}"


def _array(kind: Any) -> str:
    return f"{kind.dtype}{list(kind.shape)}"
