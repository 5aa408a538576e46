"""Learning on a live system: ask for actions, tell what happened, keep an account."""

from cmdpax.live.accounts import AgentAccount, ConstraintAccount, ObjectiveAccount
from cmdpax.live.agent import Agent
from cmdpax.live.episode import EpisodeRecord
from cmdpax.live.record import AgentRecord
from cmdpax.live.sequences import Band

__all__ = [
    "Agent",
    "AgentAccount",
    "AgentRecord",
    "Band",
    "ConstraintAccount",
    "EpisodeRecord",
    "ObjectiveAccount",
]
