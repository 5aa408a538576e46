"""What a worker does: it turns an order into an answer and touches nothing else."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from cmdpax.experiments.cluster.cutting import measure
from cmdpax.experiments.cluster.messages import read_order, write_answer, write_header
from cmdpax.experiments.executing import in_one_line, made_here, run_in_parts
from cmdpax.jax_context import cache_compilation
from cmdpax.learning.workers import one_core


def run_order(order: bytes, on_one_core: bool, *models: bytes) -> list[bytes]:
    """Run a batch; the header is followed by what `write_answer` makes."""

    def run(work: Any, batch: Any) -> list[bytes]:
        return write_answer(*run_in_parts(work, batch))

    return _answer(order, models, on_one_core, run)


def measure_order(order: bytes, on_one_core: bool, *models: bytes) -> list[bytes]:
    """Run a trial; the header is followed by what `measure` found, as JSON."""

    def run(work: Any, batch: Any) -> list[bytes]:
        return [json.dumps(measure(work, batch)).encode()]

    return _answer(order, models, on_one_core, run)


def _answer(
    order: bytes,
    models: Sequence[bytes],
    on_one_core: bool,
    run: Callable[[Any, Any], list[bytes]],
) -> list[bytes]:
    """Answer with files, or with an error as text: the driver unpickles nothing."""
    begun, files, error = time.perf_counter(), [], None
    cache_compilation()
    try:
        work, batch = read_order(order, models)
        with one_core(on_one_core):
            files = run(work, batch)
    except Exception as raised:
        error = in_one_line(raised)
    seconds = time.perf_counter() - begun
    return [write_header(files, _worker(), seconds, made_here(), error), *files]


def _worker() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())
