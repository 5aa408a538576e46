"""Sweeps whose pages the browser opens, and what those pages must show.

Every number is computed again from the tables of the sweep, by polars and NumPy alone.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import polars

import cmdpax
from cmdpax.intervals import half_width
from golden_files import Golden
from sweep_cases import OWN_GRID, SMALL
from word_cases import office

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = "<img src=x onerror=alert(1)>"
"""A name that becomes a picture and a program wherever it is not escaped."""

_BOTH = ("vanilla-primal-dual", "regularized-primal-dual")
_PATIENCE = 10  # seconds until a page that does not change is taken to be wrong
_Found = TypeVar("_Found")


class Example(NamedTuple):
    """A sweep and its page."""

    results: cmdpax.Results
    path: Path


def _sweep(folder: Path, **specification: Any) -> cmdpax.Results:
    algorithms = [{"name": name, "step_size": [0.1, 0.3]} for name in _BOTH]
    plain = {"num_episodes": 60, "seeds": 3, "record": "all", "algorithms": algorithms}
    return cmdpax.sweep(plain | specification, folder)


def _example(folder: Path, name: str = "sweep", **specification: Any) -> Example:
    """Run a small sweep and make its page."""
    results = _sweep(folder / name, **specification)
    return Example(results, cmdpax.report(folder / name, folder / "report.html"))


def small(folder: Path) -> Example:
    """Two CMDPs, two algorithms with two configurations each, three seeds: 24 runs."""
    return _example(
        folder, cmdps=[{"environment": "random", "parameters": SMALL | {"seed": [1, 2]}}]
    )


def two_constraints(folder: Path) -> Example:
    """One CMDP with two constraints, from a file; all its names and the folder's are hostile."""
    file = folder / f"{HOSTILE}.npz"
    names = {"constraint_names": [HOSTILE, "<b>& $x$</b>"], "objective_name": f"r {HOSTILE}"}
    units = [HOSTILE, "</script>", "%{x}"]
    cmdpax.save(Golden("two_constraints").cmdp.replace(**names, units=units), file)
    return _example(folder, HOSTILE, cmdps=[{"file": str(file)}], num_episodes=40, seeds=2)


def in_words(folder: Path) -> Example:
    """A model in names and units, with one constraint "at most" and one "at least"."""
    cmdpax.save(office(), folder / "office.npz")
    return _example(folder, "offices", cmdps=[{"file": str(folder / "office.npz")}], seeds=2)


def unconstrained(folder: Path) -> Example:
    """One CMDP without constraints, one seed."""
    file = folder / "free.npz"
    cmdp = cmdpax.environments.make("random", **SMALL)
    cmdpax.save(cmdp.replace(constraint_rewards=[], thresholds=[]), file)
    algorithms = [{"name": _BOTH[1]}]
    return _example(folder, cmdps=[{"file": str(file)}], seeds=1, algorithms=algorithms)


def own_parameters(folder: Path) -> Example:
    """An algorithm with parameters of its own beside one of the paper's."""
    algorithms = [OWN_GRID, {"name": "vanilla-dual", "step_size": [0.1, 0.3]}]
    return _example(folder, cmdps=[{"environment": "bandit"}], seeds=2, algorithms=algorithms)


def planning(folder: Path) -> Example:
    """A learner that plans beside one that does not; records are dense at the beginning."""
    algorithms = [{"name": _BOTH[1]}, {"name": "replanning", "pessimism": [0.0, 1.0]}]
    record = [1, 2, 3, 5, 8, 13, 20, 35, 60, 100, 180, 300, 600]
    cmdps = [{"environment": "random", "parameters": SMALL | {"seed": 1}}]
    chosen = {"algorithms": algorithms, "record": record, "num_episodes": 600}
    return _example(folder, cmdps=cmdps, **chosen)


def long(folder: Path) -> Example:
    """More episodes than a screen has places, every one recorded, and it swings all the time."""
    algorithms = [{"name": _BOTH[0], "step_size": 0.05}]
    cmdps = [{"environment": "bandit"}]
    return _example(folder, cmdps=cmdps, num_episodes=100_000, seeds=1, algorithms=algorithms)


def reproduction(folder: Path) -> Example:
    """Two sweeps of different lengths and one claim, as `reproduce` leaves them."""
    whole = folder / "reproduction"
    random = {"environment": "random", "parameters": SMALL | {"seed": 1}}
    results = _sweep(whole / "paper", cmdps=[{"environment": "bandit"}], num_episodes=300)
    _sweep(whole / "caps", cmdps=[random], num_episodes=30, seeds=2)
    interval = {"mean": 1.25, "half": 0.5, "size": 3}
    quantity = {"text": "a ratio <b>", "side": "above", "bound": 1.0, "cmdps_held": 1}
    claim = {
        **{"number": 1, "sentence": f"Something is larger. {HOSTILE}", "remark": "As expected."},
        **{"first_cmdp": "undecided", "family": "undecided", "cmdps": 1, "cmdps_held": 0},
        "quantities": [quantity | {"first_cmdp": interval, "family": interval}],
    }
    (whole / "verdict.json").write_text(json.dumps([claim]), encoding="utf-8")
    return Example(results, cmdpax.report(whole, folder / "report.html"))


# ------------------------------------------------------------------------------------ expectations


def expected_curve(
    results: cmdpax.Results, configuration: str, series: str, cmdp: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Episodes `[T]`, and the units' series `[U, T]` with the half width of the mean `[T]`.

    Units are the runs on one CMDP, or, over all, the means of the CMDPs.
    """
    curves = results.curves.filter(polars.col("configuration") == configuration)
    if cmdp is not None:
        curves = curves.filter(polars.col("cmdp") == cmdp)
    unit = "seed" if cmdp is not None else "cmdp"
    kept = curves.select("episode", "cmdp", "seed", value=_series(results, series)).collect()
    means = kept.group_by(unit, "episode").agg(polars.col("value").mean())
    wide = means.pivot(unit, index="episode", values="value", sort_columns=True).sort("episode")
    units = wide.drop("episode").to_numpy().T
    return wide["episode"].to_numpy(), units, half_width(units)


def _series(results: cmdpax.Results, name: str) -> polars.Expr:
    """A series of the page as a column: of one constraint, if it ends in [i]."""
    base, _, place = name.removesuffix("]").partition("[")
    if not place:
        return polars.col(base)
    index = int(place)
    if base == "violation":
        bounds = {one: float(cmdp.bounds[index]) for one, cmdp in results.cmdps.items()}
        at_most = any(cmdp.words.sense(index) == "at most" for cmdp in results.cmdps.values())
        missing = polars.col("cmdp").replace_strict(bounds)
        missing = missing - polars.col("constraint_values").list.get(index)
        return -missing if at_most else missing
    column = {
        "strong_constraints": "strong_by_constraint",
        "weak_constraints": "weak_by_constraint",
        "multipliers": "multipliers",
    }[base]
    return polars.col(column).list.get(index)


def best_of(results: cmdpax.Results, by: str = "strong", cmdp: str | None = None) -> dict[str, str]:
    """The configurations that are best in hindsight, by algorithm."""
    best = results.best(by, None if cmdp is None else [cmdp])
    return dict(zip(best["algorithm"], best["configuration"], strict=True))


# -------------------------------------------------------------------------------------- in the page


def ready(page: "Page") -> "Page":
    """Wait until the page says that everything is drawn."""
    page.wait_for_function("() => document.documentElement.dataset.ready === 'true'")
    return page


def eventually(page: "Page", look: Callable[[], _Found]) -> _Found:
    """Look again until nothing is wrong any more: pages answer when they have time."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            return look()
        except (AssertionError, LookupError, StopIteration, ValueError):  # half of it is there
            page.wait_for_timeout(50)
    return look()


def settled(page: "Page") -> None:
    """Wait until no chart was drawn for a while: for what must not have changed."""
    page.evaluate(
        """() => new Promise((done) => {
          let [before, same] = ["", 0];
          const look = () => {
            const charts = [...document.querySelectorAll(".chart")];
            const now = charts.map((chart) => chart.dataset.drawn).join();
            same = now === before ? same + 1 : 0;
            before = now;
            if (same === 5) done(); else setTimeout(look, 50);
          };
          look();
        })"""
    )


def traces(page: "Page", chart: str) -> list[dict[str, Any]]:
    """What a chart shows now, as Plotly has it."""
    found: list[dict[str, Any]] = page.evaluate(
        """(id) => document.getElementById(id).data.map((trace) => ({
          name: trace.name, x: Array.from(trace.x), y: Array.from(trace.y), fill: trace.fill,
          mode: trace.mode, line: trace.line, marker: trace.marker, error: trace.error_x?.array,
        }))""",
        chart,
    )
    return found


def layout(page: "Page", chart: str, *names: str) -> Any:
    """A setting of a chart's layout as drawn, such as "xaxis", "range"."""
    return page.evaluate(
        """([id, names]) =>
          names.reduce((part, name) => part[name], document.getElementById(id)._fullLayout)""",
        [chart, names],
    )


def assert_close(found: Any, expected: Any, relative: float = 1e-4) -> None:
    """Equal up to the digits that a page keeps; entries near 0 by the size of the others."""
    numbers = np.asarray(expected, dtype=float)
    size = float(np.max(np.abs(numbers), initial=0))
    np.testing.assert_allclose(
        np.asarray(found, dtype=float), numbers, rtol=relative, atol=1e-6 * size
    )
