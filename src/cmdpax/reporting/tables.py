"""The lists of a sweep, and the measures of its runs.

Everywhere else on the page, CMDPs, algorithms and configurations are places in these lists.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from cmdpax.experiments.reading import Results
from cmdpax.experiments.tables import SUMS, parameters_of_row
from cmdpax.learners import is_baseline, registered, symbol_of
from cmdpax.model.cmdp import CMDP
from cmdpax.reporting.encoding import all_rounded
from cmdpax.schemes.parameters import in_words

if TYPE_CHECKING:
    import polars

MOST_RUNS = 20_000
_MOST_NAMED_RUNS = 2_000
_LABELS = {
    "strong": "strong regret, sum",
    "weak": "weak regret, sum",
    "strong_objective": "strong regret, objective",
    "strong_constraints": "strong regret, constraints",
    "weak_objective": "weak regret, objective",
    "weak_constraints": "weak regret, constraints",
    "growth_objective": "growth exponent of the strong regret, objective",
    "growth_constraints": "growth exponent of the strong regret, constraints",
    "last_suboptimality": "suboptimality of the last policy",
    "last_violation": "violation of the last policy",
    "violation_std": "standard deviation of the violation, second half",
    "suboptimality_std": "standard deviation of the suboptimality, second half",
    "sign_changes": "sign changes of the violation per 1,000 episodes",
    "capped": "share of episodes with a multiplier at its cap",
    "plans": "plans made",
    "infeasible_plans": "plans without a feasible policy",
}
_UNSAFE = "unsafe_at_"


class Sweep(NamedTuple):
    """A sweep with finished runs, listed for the page.

    Attributes:
        results: the folder that was read.
        cmdps: the CMDPs that have runs, by fingerprint, in the order of the manifest.
        algorithms: baselines first, then in the order of the specification.
        configurations: as the page has them, algorithm by algorithm.
        runs: a row per run: `run`, `seed`, and places `cmdp` and `configuration`; sorted by these.
    """

    results: Results
    cmdps: dict[str, CMDP]
    algorithms: list[str]
    configurations: list[dict[str, Any]]
    runs: "polars.DataFrame"


def list_sweep(results: Results) -> Sweep:
    """List what a sweep with finished runs consists of."""
    import polars

    final = results.final
    with_runs = set(final["cmdp"])
    cmdps = {one: results.cmdps[one] for one in results.manifest["cmdps"] if one in with_runs}
    algorithms = _algorithms(results)
    configurations = _configurations(final, algorithms)
    places = {entry["id"]: place for place, entry in enumerate(configurations)}
    runs = final.select(
        "run",
        "seed",
        cmdp=polars.col("cmdp").replace_strict({one: i for i, one in enumerate(cmdps)}),
        configuration=polars.col("configuration").replace_strict(places),
    ).sort("configuration", "cmdp", "seed")
    return Sweep(results, cmdps, algorithms, configurations, runs)


def _algorithms(results: Results) -> list[str]:
    """List the algorithms; those of earlier specifications, whose runs a folder may hold, last."""
    specified = [entry["name"] for entry in results.manifest["specification"]["algorithms"]]
    there = dict.fromkeys(results.final["algorithm"])
    found = [name for name in dict.fromkeys([*specified, *there]) if name in there]
    return sorted(found, key=lambda name: not is_baseline(name))


def planning(sweep: Sweep) -> list[int]:
    """Find the places of the algorithms that keep a policy for stretches of episodes."""
    final = sweep.results.final
    counted = set()
    if "plans" in final.columns:
        counted = set(final.filter(final["plans"].is_finite())["algorithm"])
    return [
        place
        for place, name in enumerate(sweep.algorithms)
        if name in counted or ((known := registered(name)) is not None and known.replans)
    ]


def parameter_labels(configurations: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """List the parameters that configurations have, each with its symbol or its name."""
    names = dict.fromkeys(name for entry in configurations for name in entry["parameters"])
    return [(name, symbol_of(name)) for name in names]


def _configurations(final: "polars.DataFrame", algorithms: list[str]) -> list[dict[str, Any]]:
    """Describe the configurations, within an algorithm in the order of `final`."""
    rows = final.unique("configuration", keep="first", maintain_order=True).to_dicts()
    rows.sort(key=lambda row: algorithms.index(row["algorithm"]))
    entries = [_configuration(row, algorithms) for row in rows]
    for place, algorithm in enumerate(algorithms):
        _name(algorithm, [entry for entry in entries if entry["algorithm"] == place])
    return entries


def _configuration(row: dict[str, Any], algorithms: list[str]) -> dict[str, Any]:
    return {
        "id": row["configuration"],
        "algorithm": algorithms.index(row["algorithm"]),
        "label": "",
        "parameters": _in_order(row["algorithm"], parameters_of_row(row)),
        "optimism": _optimism(row),
    }


def _in_order(algorithm: str, parameters: dict[str, str]) -> dict[str, str]:
    """Sort parameters as their algorithm has them: tables begin with those of other algorithms."""
    known = registered(algorithm)
    first = () if known is None else known.names
    return {
        name: parameters[name]
        for name in dict.fromkeys((*first, *parameters))
        if name in parameters
    }


def _optimism(row: dict[str, Any]) -> str:
    """Name the scale, and what differs from the paper's simulations."""
    parts = [f"scale {row['optimism_scale']:g}"]
    if row["optimism_bonus"] == "theory":
        failure = row["optimism_failure_probability"]
        parts.append(
            f"the theory's bonuses (δ = {failure:g}, K = {row['optimism_num_episodes']:,})"
        )
    if row["optimism_rewards"] == "estimated":
        unvisited = row["optimism_unvisited_rewards"]
        where = "" if unvisited is None else f" ({unvisited:g} where unvisited)"
        parts.append(f"rewards estimated{where}")
    if row["optimism_unvisited_rows"] == "zero":
        parts.append("unvisited rows zero")
    return ", ".join(parts)


def _name(algorithm: str, entries: list[dict[str, Any]]) -> None:
    """Label an algorithm's configurations by their first parameter and by those that vary.

    The first parameter of a learner that plans says nothing: what is not at its default does.
    """
    labels = parameter_labels(entries)
    known = registered(algorithm)
    told = {labels[0][0]} if labels else set()
    if known is not None and known.replans:
        usual = {one.name: in_words(one.default) for one in known.parameters}
        told = {
            name
            for entry in entries
            for name, words in entry["parameters"].items()
            if words != usual.get(name)
        }
    varies = [
        (name, label)
        for name, label in labels
        if name in told or len({entry["parameters"].get(name) for entry in entries}) > 1
    ]
    for entry in entries:
        parts = [f"{label} = {entry['parameters'].get(name, '–')}" for name, label in varies]
        if len({other["optimism"] for other in entries}) > 1:
            parts.append(entry["optimism"])
        entry["label"] = ", ".join(parts) or ("default parameters" if labels else "no parameters")
    count = Counter(entry["label"] for entry in entries)
    for entry in entries:
        if (
            count[entry["label"]] > 1
        ):  # they differ in digits or choices that the label does not show
            entry["label"] += f" ({entry['id']})"


# ----------------------------------------------------------------------------------------- measures


def measure_names(results: Results) -> list[str]:
    """List the sums of regrets, then the measures of `final`."""
    columns = results.final.columns
    return [*SUMS, *columns[columns.index(SUMS["strong"][0]) :]]


def measure_label(name: str) -> str:
    """Say in words what a measure is."""
    if name.startswith(_UNSAFE):
        level = float(name.removeprefix(_UNSAFE))
        return "share of unsafe episodes" + ("" if 0 <= level < 1e-6 else f" (by ≥ {level:g})")
    return _LABELS.get(name, name.replace("_", " "))


def measure_runs(sweep: Sweep) -> dict[str, Any]:
    """List every run's measures; of very many runs, the means of a configuration on a CMDP."""
    import polars

    names = measure_names(sweep.results)
    sums = {name: polars.sum_horizontal(*parts) for name, parts in SUMS.items()}
    measured = sweep.results.final.select("run", *names[len(SUMS) :], **sums)
    table = sweep.runs.join(measured, on="run", how="left", maintain_order="left")
    identities = table["run"].to_list() if len(table) <= _MOST_NAMED_RUNS else None
    if len(table) > MOST_RUNS:
        by = ("configuration", "cmdp")
        table = table.group_by(*by, maintain_order=True).agg(polars.col(*names).mean())
        table = table.with_columns(seed=polars.lit(None, dtype=polars.Int64))
    return {
        "cmdp": table["cmdp"].to_list(),
        "configuration": table["configuration"].to_list(),
        "seed": table["seed"].to_list(),
        "run": identities,
        "measures": {name: all_rounded(table[name]) for name in names},
    }
