"""Which runs tell the story: one that swings, and one that does not."""

from typing import Any, NamedTuple

_ANY_VIOLATION = "unsafe_at_1e-09"


class Side(NamedTuple):
    """One run of an algorithm's best configuration on the first CMDP.

    Attributes:
        algorithm: its name.
        label: of the configuration.
        run: which of its runs, "seed 123"; empty if there is one.
        group: the place of its curves.
        num_unsafe: episodes below the threshold; None if the sweep did not count them.
        strong: the violations' positive parts, summed over all episodes.
        weak: the violations' sum with signs.
        swing: standard deviation of the violation over the second half, if it is known.
        last: violation of the last episode.
    """

    algorithm: str
    label: str
    run: str
    group: int
    num_unsafe: int | None
    strong: float
    weak: float
    swing: float | None
    last: float | None

    @property
    def hidden(self) -> float:
        """The share of the violation that the account with signs does not show."""
        return min(self.spared / self.strong, 1.0) if self.strong > 0 else 0.0

    @property
    def spared(self) -> float:
        """By how much the safe episodes were safer than needed, in all."""
        return self.strong - self.weak

    def as_record(self) -> dict[str, Any]:
        """What the page's script needs."""
        return {"group": self.group, "series": "violation"}


def tell_story(sweep: dict[str, Any]) -> list[Side]:
    """Two sides of a sweep, or one, or none where there is nothing to violate.

    A vanilla algorithm and its regularized counterpart where there are such; else the algorithm
    whose account cancels most, and that with the smallest strong regret.
    """
    if not sweep["cmdps"] or not sweep["cmdps"][0]["sizes"]["num_constraints"]:
        return []
    sides = {side.algorithm: side for side in _best_sides(sweep)}
    for vanilla in sides:
        regularized = vanilla.replace("vanilla-", "regularized-")
        if vanilla != regularized and regularized in sides:
            return [sides[vanilla], sides[regularized]]
    if not sides:
        return []
    swinging = max(sides.values(), key=lambda side: min(side.strong, side.spared))
    steady = min(sides.values(), key=lambda side: side.strong)
    return [swinging] if swinging == steady else [swinging, steady]


def _best_sides(sweep: dict[str, Any]) -> list[Side]:
    """Of every algorithm the configuration with the smallest mean strong regret on CMDP 0."""
    runs = sweep["runs"]
    places: dict[int, list[int]] = {}
    for place, (cmdp, configuration) in enumerate(
        zip(runs["cmdp"], runs["configuration"], strict=True)
    ):
        if cmdp == 0 and runs["measures"]["strong"][place] is not None:
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
    """The run that the group shows first."""
    runs, shown = sweep["runs"], sweep["groups"][group]["shown"]
    seeds = [f"seed {runs['seed'][place]}" for place in places]
    place = places[seeds.index(shown[0])] if shown and shown[0] in seeds else places[0]
    measures = {name: column[place] for name, column in runs["measures"].items()}
    share = measures.get(_ANY_VIOLATION)
    described = sweep["configurations"][configuration]
    return Side(
        sweep["algorithms"][described["algorithm"]],
        described["label"],
        shown[0] if len(places) > 1 and shown else "",
        group,
        None if share is None else round(share * sweep["num_episodes"]),
        measures["strong_constraints"],
        measures["weak_constraints"],
        _rounded(measures.get("violation_std")),
        _rounded(measures.get("last_violation")),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2g}")
