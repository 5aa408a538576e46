"""Sweeps: specifications, runs in compiled batches, results on disk.

Imported when it is needed: it brings polars and pydantic.
"""

from cmdpax.experiments.estimation import Estimate, estimate
from cmdpax.experiments.progress import Stand
from cmdpax.experiments.reading import Results, results
from cmdpax.experiments.specification import Specification, read_specification
from cmdpax.experiments.sweeping import sweep

__all__ = [
    "Estimate",
    "Results",
    "Specification",
    "Stand",
    "estimate",
    "read_specification",
    "results",
    "sweep",
]
