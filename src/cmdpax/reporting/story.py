"""Which runs tell the story: one that swings, and one that does not."""

from typing import Any, NamedTuple

_ANY_VIOLATION = "unsafe_at_1e-09"
_ACCOUNTS = ("strong", "strong_constraints", "weak_constraints")


class Side(NamedTuple):
    """One run of an algorithm's best configuration on the first CMDP.

    Attributes:
        algorithm: its name.
        label: the configuration's label.
        run: which run it is, such as "seed 123"; empty if there is only one.
        group: the place of its curves.
        constraint: of several constraints, the one with the largest strong regret; else None.
        num_unsafe: episodes below the threshold; None if the sweep did not count them.
        strong: the violations' positive parts, summed over all episodes.
        weak: the violations' sum with signs.
        swing: standard deviation of the violation over the second half; None if it is not known.
        last: violation of the last episode; None, like `swing`, with several constraints.
        biased: whether τ is constant and above 0, without a margin.
        plans: how many plans it made; None if it does not plan.
        signal: what the constraint is called, with its unit; empty if it has no name.
    """

    algorithm: str
    label: str
    run: str
    group: int
    constraint: int | None
    num_unsafe: int | None
    strong: float
    weak: float
    swing: float | None
    last: float | None
    biased: bool
    plans: int | None = None
    signal: str = ""

    @property
    def hidden(self) -> float:
        """Give the share of the violation that the account with signs does not show."""
        return min(self.spared / self.strong, 1.0) if self.strong > 0 else 0.0

    @property
    def spared(self) -> float:
        """Give by how much the safe episodes were safer than needed, in all."""
        return self.strong - self.weak

    def as_record(self) -> dict[str, Any]:
        """Describe what the page's script needs."""
        of = "" if self.constraint is None else f"[{self.constraint}]"
        steps = self.plans is not None
        series = f"violation{of}"
        return {"group": self.group, "series": series, "steps": steps, "signal": self.signal}


def tell_story(sweep: dict[str, Any]) -> list[Side]:
    """Pick two sides of a sweep, or one, or none where there is nothing to violate.

    They are a vanilla algorithm and its regularized counterpart; among several such pairs, the one
    where the strong regret falls most. Without a pair they are the algorithm whose account cancels
    most and the one with the smallest strong regret.
    """
    if not sweep["cmdps"] or not sweep["cmdps"][0]["sizes"]["num_constraints"]:
        return []
    sides = {side.algorithm: side for side in _best_sides(sweep)}
    if not sides:
        return []
    pairs = [
        (side, sides[counterpart])
        for name, side in sides.items()
        if (counterpart := name.replace("vanilla-", "regularized-")) in sides
        and counterpart != name
    ]
    if pairs:
        one, other = max(pairs, key=lambda pair: pair[0].strong - pair[1].strong)
        return [one, other]
    swinging = max(sides.values(), key=lambda side: min(side.strong, side.spared))
    steady = min(sides.values(), key=lambda side: side.strong)
    return [swinging] if swinging == steady else [swinging, steady]


def _best_sides(sweep: dict[str, Any]) -> list[Side]:
    """Pick every algorithm's configuration with the smallest mean strong regret on CMDP 0."""
    runs = sweep["runs"]
    places: dict[int, list[int]] = {}
    for place, (cmdp, configuration) in enumerate(
        zip(runs["cmdp"], runs["configuration"], strict=True)
    ):
        accounts = (runs["measures"][name][place] for name in _ACCOUNTS)
        if (
            cmdp == 0 and None not in accounts
        ):  # earlier versions wrote numbers that are not defined
            places.setdefault(configuration, []).append(place)
    groups = {
        group["configuration"]: index
        for index, group in enumerate(sweep["groups"])
        if group["cmdp"] == 0 and "violation" in group["series"]
    }
    best: dict[int, tuple[float, int]] = {}
    for configuration, own in places.items():
        if configuration in groups:
            mean = sum(runs["measures"]["strong"][place] for place in own) / len(own)
            algorithm = sweep["configurations"][configuration]["algorithm"]
            best[algorithm] = min(best.get(algorithm, (mean, configuration)), (mean, configuration))
    chosen = [configuration for _, configuration in best.values()]
    return [_side(sweep, one, groups[one], places[one]) for one in chosen]


def _side(sweep: dict[str, Any], configuration: int, group: int, places: list[int]) -> Side:
    """Describe the run that the group shows first."""
    runs, shown = sweep["runs"], sweep["groups"][group]["shown"]
    seeds = [f"seed {runs['seed'][place]}" for place in places]
    place = places[seeds.index(shown[0])] if shown and shown[0] in seeds else places[0]
    measures = {name: column[place] for name, column in runs["measures"].items()}
    share = measures.get(_ANY_VIOLATION)
    described = sweep["configurations"][configuration]
    constraint, strong, weak = _accounts(sweep["groups"][group], measures)
    return Side(
        sweep["algorithms"][described["algorithm"]],
        described["label"],
        shown[0] if len(places) > 1 and shown else "",
        group,
        constraint,
        None if share is None or constraint is not None else round(share * sweep["num_episodes"]),
        strong,
        weak,
        None if constraint is not None else _rounded(measures.get("violation_std")),
        None if constraint is not None else _rounded(measures.get("last_violation")),
        _is_biased(described),
        None if measures.get("plans") is None else round(measures["plans"]),
        _signal(sweep["cmdps"][0]["constraints"], constraint),
    )


def _signal(constraints: list[dict[str, Any]], chosen: int | None) -> str:
    """Name the constraint of a side; of several whose regrets are not known, none can be named."""
    if chosen is None and len(constraints) > 1:
        return ""
    found = constraints[chosen or 0]
    return str(found["label"]) if found["named"] else ""


def _is_biased(configuration: dict[str, Any]) -> bool:
    """Tell whether τ is constant and above 0 without a margin; a schedule's text has a k in it."""
    chosen = configuration["parameters"]
    tau = chosen.get("regularization", "0")
    return bool(chosen.get("margin") == "0" and tau != "0" and "k" not in tau)


def _accounts(group: dict[str, Any], measures: dict[str, float]) -> tuple[int | None, float, float]:
    """Find both regrets of one constraint: the largest of each may belong to different ones."""
    ends = dict(zip(group["series"], group["ends"], strict=True))
    single = [name for name in ends if name.startswith("strong_constraints[")]
    both = [(ends[name], ends[name.replace("strong", "weak")], name) for name in single]
    known = [accounts for accounts in both if None not in accounts]
    if not known:
        return None, measures["strong_constraints"], measures["weak_constraints"]
    strong, weak, name = max(known)
    return int(name.removeprefix("strong_constraints")[1:-1]), strong, weak


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2g}")
