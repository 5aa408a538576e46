"""Sweeps: specifications, runs in compiled batches, results on disk.

`cmdpax` imports this package only when it is needed, since it brings polars and pydantic.
"""

from cmdpax.experiments.progress import SweepProgress
from cmdpax.experiments.reading import Results, results
from cmdpax.experiments.sizing import Estimate, estimate
from cmdpax.experiments.specification import Specification, read_specification
from cmdpax.experiments.statistics import Comparison, compare
from cmdpax.experiments.sweeping import sweep

__all__ = [
    "Comparison",
    "Estimate",
    "Results",
    "Specification",
    "SweepProgress",
    "compare",
    "estimate",
    "read_specification",
    "results",
    "sweep",
]
