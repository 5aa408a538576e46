"""`cmdpax solve-safely` and `cmdpax uncertainty`: what a log allows, and what it leaves open."""

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import cmdpax
from cmdpax.cli.data import (
    AtLeastBounds,
    AtMostBounds,
    Columns,
    Horizon,
    Initial,
    LogFile,
    Logged,
    Stationary,
    read_logged,
)
from cmdpax.cli.models import AsJson
from cmdpax.cli.output import number, print_facts, print_json, results, table, wrote
from cmdpax.errors import InsufficientDataError, ModelError, ParameterError, nearest_name, shown
from cmdpax.model import policy_files
from cmdpax.model.log_table import unnamed_constraint
from cmdpax.model.policy import with_content
from cmdpax.model.policy_files import ending_of
from cmdpax.model.validation import check_policy
from cmdpax.model.words import PLAIN, Words
from cmdpax.storage.writing import require_target

Confidence = Annotated[
    float, typer.Option("--confidence", help="The joint probability of meeting all constraints.")
]
Ranges = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        help="NAME=LOW:HIGH: the least and the largest value of a step; NAME is reward, or a "
        "constraint's column.",
    ),
]
Samples = Annotated[int, typer.Option("--samples", help="Models that are drawn.")]
Seed = Annotated[int, typer.Option("--seed", help="The seed of the draws.")]


def solve_safely(
    file: LogFile,
    at_least: AtLeastBounds = None,
    at_most: AtMostBounds = None,
    confidence: Confidence = 0.95,
    ranges: Ranges = None,
    column: Columns = None,
    horizon: Horizon = None,
    stationary: Stationary = False,
    initial: Initial = None,
    samples: Samples = 2000,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the policy: .csv, .json or .npz.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan from a log, so that all constraints are met with a given probability.

    Where the log supports no such policy, it says what data would help, and ends with exit code 1.

    Example: cmdpax solve-safely log.csv --at-most energy=60 --stationary --out policy.csv
    """
    if out is not None:
        ending_of(out)
        require_target(out)
    logged = read_logged(file, at_least, at_most, columns=column, horizon=horizon)
    try:
        plan = cmdpax.solve_safely(
            logged.log,
            **logged.bounds,
            **_ranges(logged, ranges),
            confidence=confidence,
            stationary=stationary,
            initial=logged.state(initial),
            samples=samples,
            seed=seed,
        )
    except InsufficientDataError as error:
        if as_json:
            print_json(_refused(error))
        raise
    if out is not None:
        plan.policy.save(out)
        wrote(out)
    if as_json:
        print_json(_planned(plan))
        return
    facts = [
        ("episodes", logged.log.num_episodes),
        ("probability that all constraints are met", f"{plan.probability_met:.4g}"),
        ("asked for", f"{confidence:.4g}"),
    ]
    print_facts(f"{file}: {plan.model!r}", facts)
    _print_values(plan.uncertainty, [f"{margin:.3g}" for margin in plan.margins])


def uncertainty(
    file: LogFile,
    policy: Annotated[Path, typer.Argument(help="A policy: .csv, .json or .npz.")],
    at_least: AtLeastBounds = None,
    at_most: AtMostBounds = None,
    confidence: Annotated[
        float, typer.Option("--confidence", help="The confidence of the intervals.")
    ] = 0.95,
    method: Annotated[
        str, typer.Option("--method", help="posterior, or robust (needs ranges).")
    ] = "posterior",
    ranges: Ranges = None,
    column: Columns = None,
    horizon: Horizon = None,
    stationary: Stationary = False,
    initial: Initial = None,
    samples: Samples = 2000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Tell what a policy may be worth in the true model, as far as a log tells.

    Example: cmdpax uncertainty log.csv policy.csv --at-most energy=60 --stationary
    """
    options: dict[str, Any] = {"columns": column, "horizon": horizon}
    names = _names_in(policy)
    if names != PLAIN:  # of a table, which may have states that were never logged
        found_first = read_logged(file, at_least, at_most, **options).log.words
        names = _joined(names, found_first)
    judged = _read_policy(policy, names)
    logged = read_logged(file, at_least, at_most, **options, names=judged.words)
    declared = _ranges(logged, ranges)
    if method == "robust":
        _require_all(logged, declared)
    found = cmdpax.uncertainty(
        logged.log,
        judged,
        **logged.bounds,
        **declared,
        confidence=confidence,
        method=method,
        stationary=stationary,
        initial=logged.state(initial),
        samples=samples,
        seed=seed,
    )
    if as_json:
        print_json(_known(found))
        return
    facts = [
        ("episodes", logged.log.num_episodes),
        ("method", found.method),
        (f"{_kind(found)} that all constraints are met", _met(found, found.probability_met.joint)),
    ]
    print_facts(f"{policy}, judged by {file}", facts)
    _print_values(found)


def _names_in(policy: Path) -> Words:
    """The names of states and actions in a table of a policy, in order; none if it has indices."""
    if policy.suffix.lower() != ".csv":
        return PLAIN
    import polars

    try:
        frame = polars.read_csv(policy, columns=["state", "action"], infer_schema=False)
    except Exception:  # whatever the reader raises: what is wrong is told when it is read
        return PLAIN
    found = (sorted({text for text in frame[kind] if text}) for kind in ("state", "action"))
    states, actions = (None if all(map(str.isdecimal, one)) else tuple(one) for one in found)
    return Words(state_names=states, action_names=actions)


def _joined(one: Words, other: Words) -> Words:
    """All names of both, in order."""
    pairs = (
        (one.state_names, other.state_names),
        (one.action_names, other.action_names),
    )
    states, actions = (
        None if None in pair else tuple(sorted({*(pair[0] or ()), *(pair[1] or ())}))
        for pair in pairs
    )
    return Words(state_names=states, action_names=actions)


def _read_policy(path: Path, names: Words) -> cmdpax.Policy:
    """A policy, whose table is read with these names."""
    if names == PLAIN:
        return cmdpax.load_policy(path)
    try:
        known = names.state_names, names.action_names
        sizes = None if None in known else (len(known[0] or ()), len(known[1] or ()))
        content = policy_files.read(path, names, sizes)
        return with_content(content._replace(policy=check_policy(content.policy)))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _kind(found: cmdpax.Uncertainty) -> str:
    return "probability" if found.method == "posterior" else "confidence"


def _met(found: cmdpax.Uncertainty, chance: float) -> str:
    """A probability; the robust bound only shows that something holds, or does not."""
    return "not shown" if found.method == "robust" and chance == 0 else f"{chance:.4g}"


def _print_values(found: cmdpax.Uncertainty, margins: list[str] | None = None) -> None:
    """The objective and each constraint: what is expected, the interval, and what must hold.

    Everything fits into 80 columns, unless names are long.
    """
    words = found.words
    headers = ["", "expected", f"{100 * found.confidence:.4g} % interval", "must be", "met with"]
    ends = np.vstack([found.value[None], found.constraint_values])
    bounds = [
        f"{words.sense(index)} {number(bound)}"
        for index, bound in enumerate(found.thresholds.tolist())
    ]
    met = [_met(found, chance) for chance in found.probability_met.each]
    columns = [
        [words.label(index) for index in range(len(ends))],
        [f"{value:.4g}" for value in found.expected],
        [f"{low:.4g} to {high:.4g}" for low, high in ends],
        ["", *bounds],
        ["", *met],
    ]
    if margins is not None:
        headers.append("margin")
        columns.append(["", *margins])
    results.print(table("Values", headers, zip(*columns, strict=True)))


def _ranges(logged: Logged, given: list[str] | None) -> dict[str, Any]:
    """The declared ranges, as `cmdpax.uncertainty` takes them."""
    if not given:
        return {}
    names = _constraint_names(logged)
    objective = logged.log.words.objective_name or "reward"
    found: dict[str, tuple[float, float]] = {}
    for text in given:
        name, pair = _range(text)
        if name not in (objective, *names):
            raise ParameterError(
                f"--range names {shown(name)}; {nearest_name(name, (objective, *names))}."
            )
        if name in found:
            raise ParameterError(f"--range names {shown(name)} twice; give it once.")
        found[name] = pair
    declared: dict[str, Any] = {}
    if objective in found:
        declared["reward_range"] = found[objective]
    if any(name in found for name in names):
        declared["constraint_ranges"] = [found.get(name) for name in names]
    return declared


def _require_all(logged: Logged, declared: dict[str, Any]) -> None:
    """Refuse a signal without a range, in the words of the command line."""
    count = logged.log.constraint_rewards.shape[-2]
    objective = logged.log.words.objective_name or "reward"
    pairs = (declared.get("reward_range"), *(declared.get("constraint_ranges") or [None] * count))
    names = (objective, *_constraint_names(logged))
    for name, pair in zip(names, pairs, strict=True):
        if pair is None:
            raise ParameterError(
                f"the range of {shown(name)} is not declared, but the robust bound needs the least "
                f"and the largest value of a step: without them a mean may be anything; give "
                f"--range {name}=LOW:HIGH, or --method posterior."
            )


def _constraint_names(logged: Logged) -> list[str]:
    """The columns of the constraints, as `--at-most` takes them."""
    count = logged.log.constraint_rewards.shape[-2]
    return list(logged.log.words.constraint_names or map(unnamed_constraint, range(count)))


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, _, pair = text.rpartition("=")
    try:
        low, high = map(float, pair.split(":"))
    except ValueError:
        low, high = math.nan, math.nan
    if not (name and math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ParameterError(f"--range is {shown(text)}; write NAME=LOW:HIGH, such as reward=0:1.")
    return name, (low, high)


def _known(found: cmdpax.Uncertainty) -> dict[str, Any]:
    words, count = found.words, range(len(found.thresholds))
    return {
        "method": found.method,
        "confidence": found.confidence,
        "objective": words.label(),
        "constraints": [words.label(1 + i) for i in count],
        "senses": [words.sense(i) for i in count],
        "thresholds": found.thresholds,
        "value": found.value,
        "constraint_values": found.constraint_values,
        "expected": found.expected,
        "probability_met": {
            "joint": found.probability_met.joint,
            "each": found.probability_met.each,
        },
    }


def _planned(plan: cmdpax.SafePlan) -> dict[str, Any]:
    return {
        "certified": plan.certified,
        **_known(plan.uncertainty),
        "margins": plan.margins,
        "correction": plan.correction,
    }


def _refused(error: InsufficientDataError) -> dict[str, Any]:
    """What a script may want to know; the sentence is printed as every error."""
    advice = error.advice
    return {
        "certified": False,
        "confidence": error.confidence,
        "probability_met": {"joint": error.probability},
        "episodes_needed": advice.episodes,
        "pairs_needed": [
            {"pair": need.text, "visits": need.visits, "share": need.share} for need in advice.pairs
        ],
    }
