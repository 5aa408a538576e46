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


@contextmanager
def compilation_times() -> Iterator[list[float]]:
    """Collect the seconds of every tracing, lowering and compiling, in all threads."""
    seconds: list[float] = []

    def listen(event: str, duration_secs: float, **_: Any) -> None:
        if event in _EVENTS:
            seconds.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seconds
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
