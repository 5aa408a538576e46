"""What a worker does: it turns an order into an answer and touches nothing else."""

import json
import time

from cmdpax.experiments.cluster.cutting import measure
from cmdpax.experiments.cluster.messages import read_order, write_answer, write_header
from cmdpax.experiments.executing import in_one_line, made_here, run_in_parts
from cmdpax.jax_context import cache_compilation
from cmdpax.learning.workers import one_core


def answer(order: bytes, is_trial: bool, on_one_core: bool, *models: bytes) -> list[bytes]:
    """Run or measure a batch; the header is followed by its tables, or by its rate as JSON.

    An error is text in the header: the driver unpickles nothing.
    """
    begun, error = time.perf_counter(), None
    files: list[bytes] = []
    cache_compilation()
    try:
        work, batch = read_order(order, models)
        with one_core(on_one_core):
            if is_trial:
                files = [json.dumps(measure(work, batch)).encode()]
            else:
                files = write_answer(*run_in_parts(work, batch))
    except Exception as raised:
        error = in_one_line(raised)
    seconds = time.perf_counter() - begun
    return [write_header(files, _worker(), seconds, made_here(), error), *files]


def _worker() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())
