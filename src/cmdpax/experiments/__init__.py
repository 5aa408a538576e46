"""Sweeps: specifications, runs in compiled batches, results on disk.

Imported when it is needed: it brings polars and pydantic.
"""

from cmdpax.experiments.estimation import Estimate, estimate
from cmdpax.experiments.progress import Stand
from cmdpax.experiments.reading import Results, results
from cmdpax.experiments.specification import Specification, read_specification
from cmdpax.experiments.statistics import Comparison, compare
from cmdpax.experiments.sweeping import sweep

__all__ = [
    "Comparison",
    "Estimate",
    "Results",
    "Specification",
    "Stand",
    "compare",
    "estimate",
    "read_specification",
    "results",
    "sweep",
]
