"""Python functions with arguments that Hypothesis draws."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import cmdpax
from cmdpax.learners import Algorithm, Parameter, Scheduled
from fuzzing.cases import Input
from fuzzing.drawing import draw, mostly, table
from fuzzing.targets.base import Target, require
from fuzzing.targets.checkpoints import require_sound
from fuzzing.targets.models import SIZES, small_model

Keywords = dict[str, Any]
_LONG = 50
"""More episodes, iterations or points than this take time, and are no defect."""
_RATES: dict[str, tuple[Any, ...]] = {
    "step_size": (0.1, 1e-3, 5),
    "regularization": (0.02, 0, None),
    "max_multiplier": (60.0, 6),
}
_ALGORITHMS = tuple(cmdpax.algorithms())
_PARAMETERS = {
    name: sorted(cmdpax.environments.describe(name)[1].items())
    for name in cmdpax.environments.names()
}


class _Chosen(NamedTuple):
    """A parameter of every kind."""

    rate: Annotated[Scheduled, Parameter(above=0)] = 0.5
    gain: Annotated[float, Parameter(at_least=0, at_most=10)] = 2.0
    window: Annotated[int, Parameter(above=0)] = 20
    eager: bool = False
    mode: Annotated[str, Parameter(choices=("fast", "safe"))] = "safe"


def _nobody(knowledge: Any, chosen: _Chosen) -> Any:
    raise AssertionError


_OWN = Algorithm("own", _nobody)
_KINDS: dict[str, tuple[Any, ...]] = {
    "rate": (0.5, "0.3*k^-0.2", {"initial": 1.0}, [0.3, 0.2, 1.0]),
    "gain": (2.0,),
    "window": (20,),
    "eager": (False, True),
    "mode": ("safe", "fast"),
}


def _choose(keywords: Keywords) -> None:
    chosen = _OWN.choose(keywords, 5)
    described = _OWN.describe(chosen)
    require(_OWN.restore(described, 5) == chosen, "what is described is something else")
    rows = {
        column: cell
        for one in _OWN.parameters
        for column, cell in zip(one.columns, one.cells(getattr(chosen, one.name)), strict=True)
    }
    found = {one.name: one.from_row(rows) for one in _OWN.parameters}
    require(found == described, "what stands in a table is something else")


def _restore(keywords: Keywords) -> None:
    _OWN.restore(_OWN.describe(_OWN.choose({}, 5)) | keywords, 5)


def _environment(keywords: Keywords) -> None:
    cmdpax.validate(cmdpax.environments.make(**keywords))


def _learn(keywords: Keywords) -> None:
    if not any(_is_long(keywords.get(name)) for name in ("num_episodes", "seeds")):
        given: Keywords = {"num_episodes": 5} | keywords
        require_sound(cmdpax.learn(small_model(), given.pop("algorithm", _ALGORITHMS[0]), **given))


def _iterate(keywords: Keywords) -> None:
    if not _is_long(keywords.get("num_iterations")):
        given: Keywords = {"scheme": "primal-dual", "num_iterations": 3} | keywords
        found = cmdpax.iterate(small_model(), **given)
        require(bool(np.isfinite(found.value).all()), "a value is not finite")


def _frontier(keywords: Keywords) -> None:
    if not _is_long(keywords.get("num_points")):
        cmdpax.frontier(small_model(), **keywords)


def _agent(keywords: Keywords) -> None:
    given: Keywords = {**SIZES, "thresholds": [0.5], "initial": 0} | keywords
    agent = cmdpax.Agent(given.pop("algorithm", _ALGORITHMS[0]), **given)
    require(bool(np.isfinite(agent.policy).all()), "the agent's policy is not finite")


def _schedule(keywords: Keywords) -> None:
    text = keywords.get("text", "")
    found = cmdpax.schedules.parse_schedule("step_size", text if isinstance(text, str) else "")
    cmdpax.schedules.as_schedule("step_size", found)
    cmdpax.schedules.values(keywords.get("value", 0.1), keywords.get("episodes", 1))


def _is_long(count: Any) -> bool:
    """Counts that are taken, and take long; what cannot be a count is refused at once."""
    return isinstance(count, int | float) and _LONG < count < 2**31


_OPTIMISM = ("empirical", "live", "theory")
_FUNCTIONS: dict[str, tuple[Callable[[Keywords], None], st.SearchStrategy[Any]]] = {
    "environments.make": (
        _environment,
        st.sampled_from(cmdpax.environments.names()).flatmap(
            lambda name: table(**{key: (default,) for key, default in _PARAMETERS[name]}).map(
                lambda chosen: {"name": name, **chosen}
            )
        ),
    ),
    "learn": (
        _learn,
        table(
            **_RATES,
            algorithm=_ALGORITHMS,
            num_episodes=(5,),
            seeds=(2, [0, 7]),
            margin=(0.0, 0.1),
            optimism=_OPTIMISM,
            observations=("mean", "bernoulli"),
            record=(None, [1, 5]),
            unsafe_at=([0.1],),
            precision=("double",),
            stationary=(False,),
        ),
    ),
    "choose": (_choose, table(**_KINDS, rates=(0.5,))),
    "restore": (_restore, table(**_KINDS)),
    "iterate": (
        _iterate,
        table(**_RATES, num_iterations=(3,), scheme=tuple(cmdpax.scheme_names())),
    ),
    "frontier": (
        _frontier,
        table(constraint=(0,), num_points=(3,), thresholds=([0.1, 0.2],), tolerance=(1e-9,)),
    ),
    "agent": (
        _agent,
        table(
            **_RATES,
            algorithm=_ALGORITHMS,
            thresholds=([0.5], 0.5),
            initial=(0, [1.0, 0.0, 0.0]),
            seed=(0, 7),
            num_states=(3,),
            num_actions=(2,),
            horizon=(3,),
            rewards=(None,),
            constraint_rewards=(None,),
            successors=(None,),
            optimism=(None, *_OPTIMISM),
            reward_range=([0.0, 1.0],),
            constraint_ranges=([0.0, 1.0],),
            senses=("at least", "at most"),
            names=(None, ["energy"]),
        ),
    ),
    "schedule": (
        _schedule,
        st.fixed_dictionaries(
            {
                "text": mostly("0.3*k^-0.2")
                | st.from_regex(r"[0-9.e+*k^()-]{1,12}", fullmatch=True),
                "value": mostly(0.1),
                "episodes": mostly(1, [1, 2]),
            }
        ),
    ),
}


def _samples() -> list[Input]:
    valid: dict[str, Keywords] = {name: {} for name in _FUNCTIONS} | {
        "environments.make": {"name": "random"},
        "schedule": {"text": "0.3*k^-0.2"},
    }
    return [Input((), {"function": name, "keywords": some}) for name, some in valid.items()]


def _mutate(rng: Random, given: Input, donors: Any) -> Input:
    _, strategy = _FUNCTIONS[given.arguments["function"]]
    keywords = draw(strategy, rng.getrandbits(32))
    return given._replace(arguments=given.arguments | {"keywords": keywords})


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    function, _ = _FUNCTIONS[arguments["function"]]
    function(dict(arguments["keywords"]))


CALLS = Target("calls", _samples, _run, _mutate, imports=True)
