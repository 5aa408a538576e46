"""The panels of a sweep's picture: which columns they show, and in which words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from cmdpax.experiments.reading import Results
from cmdpax.experiments.tables import LATER
from cmdpax.figures.labels import bounded
from cmdpax.model.cmdp import CMDP
from cmdpax.model.words import Words

if TYPE_CHECKING:
    import polars

_MOST = 4  # constraints with panels of their own


class Panel(NamedTuple):
    """What a panel shows.

    Attributes:
        column: a column of `curves`, or what is computed from some.
        title: what it is, in words.
        nonnegative: whether it cannot be below 0.
        zero: whether a line is drawn at 0.
    """

    column: "str | polars.Expr"
    title: str
    nonnegative: bool = False
    zero: bool = False


def iterate_panels(models: Mapping[str, CMDP]) -> list[list[Panel]]:
    """List violations and the suboptimality, in one row.

    Without common names, the violation is the largest of all constraints.
    """
    words = _common_words(models)
    if words is None:
        titles = {"violation": "constraint violation", "suboptimality": "suboptimality"}
        return [[Panel(column, title, zero=True) for column, title in titles.items()]]
    constraints = range(next(iter(models.values())).num_constraints)
    panels = [_violation(models, words, index) for index in constraints]
    return [[*panels, Panel("suboptimality", f"suboptimality, {words.label()}", zero=True)]]


def _violation(models: Mapping[str, CMDP], words: Words, index: int) -> Panel:
    import polars

    bounds = {fingerprint: float(model.bounds[index]) for fingerprint, model in models.items()}
    limit = polars.col("cmdp").replace_strict(bounds, default=None)
    missing = limit - polars.col("constraint_values").list.get(index)
    same = len(set(bounds.values())) == 1
    name = bounded(words, index, min(bounds.values())) if same else words.label(1 + index)
    sign = -1.0 if words.sense(index) == "at most" else 1.0
    return Panel(sign * missing, f"violation, {name}", zero=True)


def regret_panels(results: Results, models: Mapping[str, CMDP]) -> list[list[Panel]]:
    """List strong regrets and weak ones, in a row each where constraints have names."""
    words = _common_words(models)
    if words is None or not _has_single_regrets(results):
        return [[panel for kind in ("strong", "weak") for panel in _largest(kind)]]
    constraints = range(next(iter(models.values())).num_constraints)
    return [_single(kind, words, constraints) for kind in ("strong", "weak")]


def _largest(kind: str) -> list[Panel]:
    return [
        Panel(f"{kind}_{of}", f"{kind} regret, {title}", kind == "strong", kind == "weak")
        for of, title in (("constraints", "constraint"), ("objective", "objective"))
    ]


def _single(kind: str, words: Words, constraints: range) -> list[Panel]:
    import polars

    each = polars.col(f"{kind}_by_constraint").list
    columns = [each.get(index) for index in constraints]
    panels = [
        Panel(column, f"{kind} regret, {words.label(1 + index)}", kind == "strong", kind == "weak")
        for index, column in zip(constraints, columns, strict=True)
    ]
    return [*panels, _largest(kind)[1]._replace(title=f"{kind} regret, {words.label()}")]


def _has_single_regrets(results: Results) -> bool:
    """Tell whether the regrets of single constraints are known: earlier versions left them out."""
    import polars

    absent = results.curves.select(polars.col(LATER[0]).is_null().any())
    return not absent.collect().item()


def _common_words(models: Mapping[str, CMDP]) -> Words | None:
    """Give the words that all CMDPs share; None where they differ, or name no constraint."""
    said = {
        (model.num_constraints, model.words._replace(state_names=None, ceilings=None))
        for model in models.values()
    }
    count, words = next(iter(said))
    named = words.constraint_names is not None and 0 < count <= _MOST
    return words if len(said) == 1 and named else None
