"""Theory that runs: the paper's statements, checked on a model."""

from cmdpax.paper.audit.auditing import STATEMENTS, Audit, audit
from cmdpax.paper.audit.problem import Problem, Scheme, Step, library_scheme
from cmdpax.paper.audit.statement import Row, Sides, Statement

__all__ = [
    "STATEMENTS",
    "Audit",
    "Problem",
    "Row",
    "Scheme",
    "Sides",
    "Statement",
    "Step",
    "audit",
    "library_scheme",
]
