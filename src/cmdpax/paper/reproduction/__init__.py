"""The paper's experiment, its figures, and a verdict on its claims."""

from cmdpax.paper.reproduction.reproducing import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
