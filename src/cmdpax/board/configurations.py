"""Fair tuning: every algorithm has at most `BUDGET` configurations, which are listed here.

The first one is as its paper says: the published constants where there are any, our defaults where
the paper leaves them open. Our defaults are always among the others. Which one counts as tuned is
decided on models for training, see `reading`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cmdpax.errors import ParameterError, shown
from cmdpax.experiments.specification import Grids, read_specification
from cmdpax.learners import algorithms, as_algorithm
from cmdpax.learners.algorithm import Named

BUDGET = 4
"""The most configurations of an algorithm."""


def _scaled(*scales: float, name: str = "bonus_scale") -> tuple[dict[str, Any], ...]:
    """Nothing but a scale: as published, then the default, then two others."""
    return tuple({name: scale} if scale else {} for scale in scales)


_DEFAULT = 0.0  # stands for our default in `_scaled`
_DAMPED: tuple[dict[str, Any], ...] = (
    {},
    {"step_size": 0.2},
    {"step_size": 0.2, "regularization": 0.01},
    {
        "step_size": "1*k^-0.3",
        "regularization": "1*k^-0.6",
        "margin": "1*k^-0.5",
        "max_multiplier": 20.0,
    },
)
_PLAIN: tuple[dict[str, Any], ...] = (
    {},
    {"step_size": 0.05},
    {"step_size": 0.2},
    {"step_size": 0.4},
)
_CONFIGURATIONS: dict[str, Sequence[Mapping[str, Any]]] = {
    "crpo": ({}, {"step_size": "4*k^-0.5"}, {"tolerance": "0.1*k^-0.5"}, {"tolerance": "2*k^-0.5"}),
    "dope": _scaled(1.0, _DEFAULT, 0.00005, 0.001),
    "flexdome": (
        {},
        {"step_size": "4*k^-0.333333"},
        {"margin_share": "0.1*k^-0.166667"},
        {"regularization": "0.02*k^-0.333333"},
    ),
    "ghosh": _scaled(1.0, _DEFAULT, 0.02, 0.4),
    "opse": (
        {"bonus_scale": 1.0, "compensation": 1.0, "temperature": 0.1},
        {},
        {"bonus_scale": 0.02, "compensation": 0.02},
        {"temperature": 0.005},
    ),
    "opt-aug": _scaled(1.0, _DEFAULT, 0.00002, 0.001),
    "opt-dual": _scaled(1.0, _DEFAULT, 0.00005, 0.002),
    "opt-lp": _scaled(1.0, _DEFAULT, 0.002, 0.05),
    "opt-lp-bonus": _scaled(1.0, _DEFAULT, 0.00005, 0.001),
    "opt-pess-lp": _scaled(1.0, _DEFAULT, 0.0001, 0.002),
    "opt-pess-primal-dual": (
        {"margin_scale": 1.0, "bonus_scale": 1.0},
        {},
        {"margin_scale": 0.0005},
        {"step_scale": 0.25},
    ),
    "opt-primal-dual": (
        {"step_scale": 1.0, "bonus_scale": 1.0},
        {},
        {"step_scale": 25.0},
        {"step_scale": 400.0},
    ),
    "optimistic-planning": _scaled(1.0, _DEFAULT, 0.02, 0.3),
    "posterior-sampling": ({}, {"prior": 0.25}, {"prior": 4.0}, {"growth": 0.2}),
    "regularized-dual": _DAMPED,
    "regularized-primal-dual": _DAMPED,
    "replanning": ({}, {"posterior_weight": 0.1}, {"pessimism": 0.1}, {"pessimism": 0.25}),
    "s-ops": _scaled(1.0, _DEFAULT, 0.01, 0.1, name="caution"),
    "safe-psrl": ({}, {"inertia": 0.1}, {"inertia": 1.0}, {"bonus_scale": 0.0}),
    "triple-q": ({"bonus_scale": 1.0}, {}, {"margin": 0.02}, {"queue_scale": 0.25}),
    "uopt-rpgpd": _scaled(1.0, _DEFAULT, 0.0002, 0.005),
    "vanilla-dual": _PLAIN,
    "vanilla-primal-dual": _PLAIN,
}


class Entrant(NamedTuple):
    """An algorithm on the board.

    Attributes:
        name: its name or address.
        configurations: as keys of a specification, the one of its paper first.
    """

    name: str
    configurations: tuple[dict[str, Any], ...]

    @property
    def tables(self) -> list[dict[str, Any]]:
        """As a specification has them."""
        return [{"name": self.name, **one} for one in self.configurations]


def entrants(given: Sequence[Named | Mapping[str, Any]] | None) -> list[Entrant]:
    """The algorithms that take part.

    Args:
        given: names, addresses, factories, or tables as in a specification, whose lists are grids
            and whose first combination counts as that of the paper; None takes all registered
            algorithms.

    Raises:
        ParameterError: one is unknown, twice there, or has too many configurations.
    """
    found: dict[str, Entrant] = {}
    for one in algorithms() if given is None else given:
        entrant = _entrant(one)
        if entrant.name in found:
            raise ParameterError(
                f"{entrant.name} is there twice; give all its configurations in one table."
            )
        found[entrant.name] = entrant
    if not found:
        raise ParameterError("no algorithm takes part; name at least one.")
    return list(found.values())


def _entrant(given: Named | Mapping[str, Any]) -> Entrant:
    table = dict(given) if isinstance(given, Mapping) else {"name": given}
    grids = _checked(table)
    algorithm = as_algorithm(grids.name)
    own = [*grids.parameters, *(["optimism"] if grids.optimism else [])]
    if not own:
        chosen = _CONFIGURATIONS.get(algorithm.name, ({},))
        return Entrant(algorithm.name, tuple(map(dict, chosen)))
    configurations: list[dict[str, Any]] = [{}]
    for name in own:
        values = grids.optimism if name == "optimism" else grids.parameters[name]
        configurations = [one | {name: value} for one in configurations for value in values or ()]
    if len(configurations) > BUDGET:
        raise ParameterError(
            f"{algorithm.name} has {len(configurations)} configurations, the board gives every "
            f"algorithm {BUDGET}; leave some out."
        )
    return Entrant(algorithm.name, tuple(configurations))


def _checked(table: dict[str, Any]) -> Grids:
    """A table as a specification reads it."""
    if not table.get("name"):
        raise ParameterError(f"an algorithm is {shown(table)}; give its name.")
    about = {"num_episodes": 1, "cmdps": [{"environment": "bandit"}], "algorithms": [table]}
    return read_specification(about).algorithms[0]
