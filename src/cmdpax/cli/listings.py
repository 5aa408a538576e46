"""`cmdpax algorithms` and `cmdpax schemes`: what there is, and what its parameters mean."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import typer

import cmdpax
from cmdpax.cli.models import AsJson
from cmdpax.cli.output import print_json, results, table
from cmdpax.learners import DEFAULT_ALGORITHM, Algorithm, as_algorithm
from cmdpax.schemes.choosing import HasParameters
from cmdpax.schemes.parameters import in_words
from cmdpax.schemes.registry import as_scheme
from cmdpax.schemes.scheme import Scheme

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", help="Those whose parameters are listed.", show_default=False
    ),
]
_LEGEND = (
    "[K]: must know the number of episodes. [baseline]: starts from a safe policy.\n"
    "[I = 1]: handles one constraint. `cmdpax algorithms NAME` lists its parameters."
)
Found = TypeVar("Found", Algorithm, Scheme)


def algorithms(names: Names = None, as_json: AsJson = False) -> None:
    """List the learning algorithms, or the parameters of some.

    Example: cmdpax algorithms replanning
    """
    known = _found(as_algorithm, names, cmdpax.algorithms)
    if as_json:
        print_json({"algorithms": [_described(one) for one in known]})
    elif names:
        _list_parameters((_heading(one), one) for one in known)
    else:
        _list(("algorithm", ""), ((_titled(one), one.summary + _needs(one)) for one in known))
        results.print(_LEGEND)


def schemes(names: Names = None, as_json: AsJson = False) -> None:
    """List the schemes of `cmdpax iterate`, or the parameters of some.

    Example: cmdpax schemes pid
    """
    known = _found(as_scheme, names, cmdpax.scheme_names)
    if as_json:
        print_json({"schemes": [_described_scheme(one) for one in known]})
    elif names:
        _list_parameters((f"{one.name}: {one.summary}", one) for one in known)
    else:
        _list(("scheme", ""), ((one.name, one.summary) for one in known))
        results.print("`cmdpax schemes NAME` lists its parameters.")


def _found(
    find: Callable[[str], Found], names: list[str] | None, every: Callable[[], list[str]]
) -> list[Found]:
    return [find(name) for name in names or every()]


def _list(headers: tuple[str, ...], rows: Iterable[Iterable[Any]], whole: int = 1) -> None:
    """Print words; the first columns, which have to be typed, are not cut."""
    listing = table("", headers, rows)
    for column in listing.columns:
        column.justify = "left"
    for column in listing.columns[:whole]:
        column.no_wrap = True
    results.print(listing)


def _list_parameters(of: Iterable[tuple[str, HasParameters]]) -> None:
    headers = ("parameter", "", "kind", "default", "range", "meaning")
    for heading, each in of:
        results.print(heading)
        rows = (
            (one.name, one.symbol, one.kind, in_words(one.default), one.range, one.help)
            for one in each.parameters
        )
        _list(headers, rows, whole=4)


def _titled(algorithm: Algorithm) -> str:
    return algorithm.name + (" (default)" if algorithm.name == DEFAULT_ALGORITHM else "")


def _needs(algorithm: Algorithm) -> str:
    """What an algorithm needs, in symbols."""
    most = algorithm.max_constraints
    needs = [] if algorithm.anytime else ["K"]
    needs += ["baseline"] * algorithm.needs_baseline
    needs += [] if most is None else [f"I {'=' if most == 1 else '≤'} {most}"]
    return f" [{', '.join(needs)}]" if needs else ""


def _heading(algorithm: Algorithm) -> str:
    """What an algorithm is and needs, in sentences."""
    said = [f"{_titled(algorithm)}: {algorithm.summary}"]
    if not algorithm.anytime:
        said.append("It must know the number of episodes.")
    if algorithm.needs_baseline:
        said.append("It starts from a safe baseline.")
    if (most := algorithm.max_constraints) is not None:
        said.append(f"It handles {most} constraint{'s' if most > 1 else ''}.")
    return " ".join(said)


def _described(algorithm: Algorithm) -> dict[str, Any]:
    return {
        "name": algorithm.name,
        "summary": algorithm.summary,
        "default": algorithm.name == DEFAULT_ALGORITHM,
        "anytime": algorithm.anytime,
        "replans": algorithm.replans,
        "needs_baseline": algorithm.needs_baseline,
        "max_constraints": algorithm.max_constraints,
        "parameters": _described_parameters(algorithm),
    }


def _described_scheme(scheme: Scheme) -> dict[str, Any]:
    return {
        "name": scheme.name,
        "summary": scheme.summary,
        "source": scheme.source,
        "parameters": _described_parameters(scheme),
    }


def _described_parameters(of: HasParameters) -> list[dict[str, Any]]:
    fields = ("name", "symbol", "kind", "default", "range", "choices", "help")
    return [
        {name: getattr(one, name) for name in fields} | {"default": one.plain(one.default)}
        for one in of.parameters
    ]
