"""The suites: which models are learned, for how long, and on which of them learners are tuned.

A suite never changes. Its models are made from seeds, and the digest of every family is pinned: a
model that has become another one is an error, not another result. What has to change becomes a
suite with another name.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from cmdpax.board.models import (
    Make,
    built_in,
    chain,
    nearly_infeasible,
    seeded,
    several_optima,
    slack,
    sparse,
)
from cmdpax.errors import ParameterError, nearest_name
from cmdpax.model.cmdp import CMDP

UNSAFE_AT = 0.01
"""An episode whose policy misses a threshold by as much counts as unsafe."""


class Family(NamedTuple):
    """Models of one kind.

    Attributes:
        name: what the board calls it.
        about: one sentence about it.
        make: the model of a seed.
        scored: seeds of the models on which learners are compared.
        training: seeds of the models on which their configurations are chosen.
        runs: of every configuration on every model.
        digest: pins all models; see `digest_of`.
    """

    name: str
    about: str
    make: Make
    scored: tuple[int, ...]
    training: tuple[int, ...] = ()
    runs: int = 1
    digest: str = ""

    def models(self) -> dict[str, CMDP]:
        """All models by name.

        Raises:
            ParameterError: they are not those that were pinned.
        """
        found = {self.model_name(seed): self.make(seed) for seed in (*self.training, *self.scored)}
        if self.digest != (now := digest_of(found)):
            raise ParameterError(
                f"the models of the family {self.name!r} have the digest {now}, the suite was "
                f"frozen with {self.digest}; use the version of cmdpax that made the results."
            )
        return found

    def model_name(self, seed: int) -> str:
        """The name of a model, and of its file."""
        return f"{self.name}-{seed}"

    def names(self, training: bool) -> tuple[str, ...]:
        """The models for training, or the scored ones."""
        return tuple(map(self.model_name, self.training if training else self.scored))


class Part(NamedTuple):
    """A sweep of the suite: its runs share these settings.

    Attributes:
        name: what the board and its folder call it.
        num_episodes: K.
        families: the names of those that are run.
        observations: "mean", or "bernoulli" for rewards that are drawn.
        optimism: "empirical" where rewards are known, "live" where they are learned.
    """

    name: str
    num_episodes: int
    families: tuple[str, ...]
    observations: str = "mean"
    optimism: str = "empirical"


class Suite(NamedTuple):
    """A frozen comparison.

    Attributes:
        name: "v1", or what else it is called.
        about: one sentence about it.
        families: all of them.
        parts: its sweeps, the cheap ones first.
        recorded: how many episodes a curve has.
    """

    name: str
    about: str
    families: tuple[Family, ...]
    parts: tuple[Part, ...]
    recorded: int = 24

    @property
    def digest(self) -> str:
        """A digest of all that must be the same for two results to be comparable."""
        families = [
            [one.name, one.digest, one.scored, one.training, one.runs] for one in self.families
        ]
        return _digest([self.name, families, self.parts, self.recorded, UNSAFE_AT])

    def family(self, name: str) -> Family:
        """The family of a name."""
        return next(one for one in self.families if one.name == name)

    def part(self, name: str) -> Part:
        """The part of a name.

        Raises:
            ParameterError: there is none.
        """
        known = {part.name: part for part in self.parts}
        if name not in known:
            raise ParameterError(
                f"the suite {self.name!r} has no part {name!r}; {nearest_name(name, known)}."
            )
        return known[name]


def digest_of(models: Mapping[str, CMDP]) -> str:
    """A digest of the fingerprints of models."""
    return _digest([[name, cmdp.fingerprint] for name, cmdp in models.items()])


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def as_suite(given: "str | Suite") -> Suite:
    """A suite by its name, or as it is.

    Raises:
        ParameterError: there is none of this name.
    """
    if isinstance(given, Suite):
        return given
    if given not in SUITES:
        raise ParameterError(f"unknown suite {given!r}; {nearest_name(given, SUITES)}.")
    return SUITES[given]


# ----------------------------------------------------------------------------------------- quick

_TINY = {"num_states": 3, "horizon": 3}
_THREE = _TINY | {"num_actions": 3}

QUICK = Suite(
    "quick",
    "One small shape and few episodes: whether everything works, and a first impression.",
    families=(
        Family(
            "random",
            "Uniform rewards and transitions; the constraint opposes the reward.",
            seeded("random", **_THREE),
            scored=(100, 101, 102, 103),
            training=(0, 1),
            digest="fe5d52977aff4abb",
        ),
        Family(
            "nearly infeasible",
            "The same with a threshold that few policies meet.",
            nearly_infeasible(**_THREE),
            scored=(100, 101, 102, 103),
            digest="3188b52619e7ed50",
        ),
        Family(
            "slack",
            "The same with a constraint that never binds.",
            slack(**_THREE),
            scored=(100, 101, 102, 103),
            digest="1571fa4c92372397",
        ),
        Family(
            "several optima",
            "The same with an action that is a copy of another one.",
            several_optima(3, **_TINY),
            scored=(100, 101, 102, 103),
            digest="1e737bad27624023",
        ),
    ),
    parts=(Part("K300", 300, ("random", "nearly infeasible", "slack", "several optima")),),
    recorded=12,
)

# -------------------------------------------------------------------------------------------- v1

_SCORED = tuple(range(100, 120))
_TRAINING = tuple(range(5))
_RUNS = 20
_V1 = (
    Family(
        "random",
        "5 states, 5 actions, 5 steps: the models of the paper's experiments.",
        seeded("random"),
        scored=_SCORED,
        training=_TRAINING,
        digest="cc52f25c15f4b3c6",
    ),
    Family(
        "nearly infeasible",
        "The same with a threshold that few policies meet.",
        nearly_infeasible(),
        scored=_SCORED,
        digest="666a0f1c84fefa4a",
    ),
    Family(
        "slack",
        "The same with a constraint that never binds.",
        slack(),
        scored=_SCORED,
        digest="fee5b3bae9bcd84c",
    ),
    Family(
        "several optima",
        "The same with actions that are copies of others.",
        several_optima(5),
        scored=_SCORED,
        digest="93e4c782f02bf199",
    ),
    Family(
        "random, 2 constraints",
        "8 states, 4 actions, 8 steps and two constraints.",
        seeded("random", num_states=8, num_actions=4, horizon=8, num_constraints=2),
        scored=_SCORED,
        digest="0daffee9dc1657b9",
    ),
    Family(
        "sparse, 2 constraints",
        "10 states, 3 actions, 8 steps, and few successors of each pair.",
        sparse(10, 3, 8, 2),
        scored=_SCORED,
        digest="97efcf3e8be0f129",
    ),
    Family(
        "minimal",
        "The paper's minimal example: one state, three actions, one step.",
        built_in("bandit"),
        scored=(0,),
        runs=_RUNS,
        digest="f3f291c964817c77",
    ),
    Family(
        "ring",
        "The same dynamics in every one of 10 steps, and a budget of moves.",
        built_in("ring", num_states=5, horizon=10, budget=5.0),
        scored=(0,),
        runs=_RUNS,
        digest="b676b03499452c00",
    ),
    Family(
        "chain",
        "Seven steps to the right, each at a cost, before there is any reward.",
        chain(8, 14, 3.0),
        scored=(0,),
        runs=_RUNS,
        digest="deadb6d62850566d",
    ),
    Family(
        "queue, small",
        "Only for tuning: a queue with room for four.",
        built_in("queue", capacity=4, horizon=8),
        scored=(),
        training=(0,),
        runs=5,
        digest="730a9b58679afda6",
    ),
    Family(
        "queue",
        "A queue with room for seven, over 14 steps.",
        built_in("queue", capacity=7, horizon=14),
        scored=(0,),
        runs=_RUNS,
        digest="91c441c55121f4fc",
    ),
    Family(
        "streaming",
        "A video with a buffer of six, over 12 steps.",
        built_in("streaming", buffer=6, horizon=12, fast=0.8, slow=0.2, playout=0.7),
        scored=(0,),
        runs=_RUNS,
        digest="f565039b75be2630",
    ),
    Family(
        "inventory",
        "A shop with room for six, and a budget.",
        built_in("inventory", capacity=6, demand=[0.2, 0.2, 0.2, 0.2, 0.1, 0.1], budget=4.0),
        scored=(0,),
        runs=_RUNS,
        digest="8ef14dbebaccd646",
    ),
    Family(
        "gridworld",
        "36 cells, 20 steps, walls and unsafe cells.",
        built_in("gridworld", height=6, width=6, horizon=20, seed=5),
        scored=(0,),
        runs=_RUNS,
        digest="81500ca68374ced2",
    ),
)
_ALL = tuple(family.name for family in _V1)
_LONG = ("random", "nearly infeasible", "slack", "several optima", "minimal", "ring")
V1 = Suite(
    "v1",
    "The board: families, sizes, numbers of constraints, noise, and three numbers of episodes.",
    families=_V1,
    parts=(
        Part("K500", 500, _ALL),
        Part("K4000", 4000, _ALL),
        Part("K4000-noisy", 4000, _LONG, "bernoulli", "live"),
        Part("K50000", 50_000, _LONG),
    ),
)

SUITES: dict[str, Suite] = {"quick": QUICK, "v1": V1}
"""All suites by name."""
