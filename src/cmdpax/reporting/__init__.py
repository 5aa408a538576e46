"""One page about a sweep or a reproduction, to look at and to send."""

from cmdpax.reporting.reporting import report

__all__ = ["report"]
