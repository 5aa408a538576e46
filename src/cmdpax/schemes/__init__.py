"""The schemes of the paper and of the field: the updates, and what iterates them.

A scheme of one's own is a `Scheme`, whose steps return a `Move`.
"""

from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.schedules import Scheduled
from cmdpax.schemes.scheme import Move, Scheme

__all__ = ["Move", "Parameter", "Scheduled", "Scheme"]
