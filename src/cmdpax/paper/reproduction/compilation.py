"""How much of the time went into compilation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

_EVENTS = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


class Compiled:
    """Seconds spent so far, of all threads together."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.seconds = 0.0

    def __call__(self, event: str, duration_secs: float, **_: Any) -> None:
        """What JAX calls."""
        if event in _EVENTS:
            self.seconds += duration_secs


@contextmanager
def compilation_time() -> Iterator[Compiled]:
    """Count tracing, lowering and compiling while it is open."""
    compiled = Compiled()
    jax.monitoring.register_event_duration_secs_listener(compiled)
    try:
        yield compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(compiled)
