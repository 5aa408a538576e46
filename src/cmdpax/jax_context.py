"""Double precision where the numbers are made, without touching JAX's configuration.

JAX computes in single precision unless told otherwise, and its switch is global or, as a
context, local to a thread. A float64 JAX array that leaves the context silently becomes
float32 at its next use, so arrays of this library leave it as NumPy arrays.
"""

import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def in_double_precision(
    function: Callable[Parameters, Result],
) -> Callable[Parameters, Result]:
    """Run a function with JAX's 64-bit types enabled in this thread, for this call only."""

    @functools.wraps(function)
    def wrapped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped


def to_numpy(tree: Result) -> Result:
    """The same tree with every JAX array copied into a NumPy array, which users may change."""
    return jax.tree.map(np.array, tree)


def cast(tree: Any, dtype: Any) -> Any:
    """Floating arrays in the working precision, on the device."""

    def convert(array: Any) -> jax.Array:
        return jnp.asarray(array, dtype if np.asarray(array).dtype.kind == "f" else None)

    return jax.tree.map(convert, tree)


def compilation_cache() -> str:
    """The user's folder for compiled programs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "cmdpax", "jax")


def cache_compilation() -> None:
    """Keep compiled programs in the user's cache folder.

    It changes JAX's global configuration, so only processes that cmdpax itself starts may call it:
    the command line, and the workers of a cluster.
    """
    settings = {
        "jax_compilation_cache_dir": compilation_cache(),
        "jax_persistent_cache_min_compile_time_secs": 0.1,
    }
    for name, value in settings.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]


_MOST_MAPPINGS = 40_000


def drop_programs_if_many() -> None:
    """Forget compiled programs before the operating system refuses the next one.

    XLA maps every compiled function into memory by itself, some 2,000 mappings for a learner that
    plans, and Linux allows a process 65,530 of them: beyond that XLA ends the process with a
    segmentation fault. What is still needed is compiled anew, or comes from the cache of programs.
    """
    try:
        with open("/proc/self/maps", "rb") as file:
            count = file.read().count(b"\n")
    except OSError:  # another operating system
        return
    if count > _MOST_MAPPINGS:
        jax.clear_caches()  # type: ignore[no-untyped-call]
