"""Compiled programs kept between processes: for processes of our own, never at import."""

import os

import jax


def cache_compilation() -> None:
    """Keep compiled programs in the user's cache folder.

    It changes JAX's global configuration, so only processes that cmdpax itself starts may call it:
    the command line, and the workers of a cluster.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    settings = {
        "jax_compilation_cache_dir": os.path.join(base, "cmdpax", "jax"),
        "jax_persistent_cache_min_compile_time_secs": 0.1,
    }
    for name, value in settings.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]
