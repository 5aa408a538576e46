"""A claim, what was measured for it, and whether it holds."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from cmdpax.intervals import Decision, Interval, interval


class Quantity(NamedTuple):
    """Something measured, and on which side of a bound the claim wants it.

    Attributes:
        text: what was measured.
        values: one number per run, by CMDP.
        side: "below" or "above".
        bound: the number that the values are compared with.
    """

    text: str
    values: Mapping[str, np.ndarray]
    side: Literal["below", "above"]
    bound: float = 0.0

    def on(self, cmdp: str) -> Interval:
        """Average over the runs on one CMDP, with an interval."""
        return interval(self.values[cmdp])

    def over_family(self) -> Interval:
        """Average over the CMDPs' means, with an interval."""
        return interval([values.mean() for values in self.values.values()])

    def decide(self, found: Interval) -> Decision:
        """Decide by the interval: on the claimed side of the bound, on the other, or neither."""
        return found.decide(self.side, self.bound)

    def num_held(self) -> int:
        """Count the CMDPs on which it holds."""
        return sum(self.decide(self.on(cmdp)) == "holds" for cmdp in self.values)


class Claim(NamedTuple):
    """A sentence of the paper, and the quantities that decide it.

    Attributes:
        number: its number in the documentation.
        sentence: what is claimed.
        quantities: what was measured; all of it must be on the claimed side.
        remark: what explains the outcome.
    """

    number: int
    sentence: str
    quantities: tuple[Quantity, ...]
    remark: str = ""

    def on(self, cmdp: str) -> Decision:
        """Decide whether it holds on one CMDP."""
        return _all([q.decide(q.on(cmdp)) for q in self.quantities])

    def over_family(self) -> Decision:
        """Decide whether it holds on average over the CMDPs."""
        return _all([q.decide(q.over_family()) for q in self.quantities])

    def num_held(self) -> int:
        """Count the CMDPs on which all of it holds."""
        return sum(self.on(cmdp) == "holds" for cmdp in self.quantities[0].values)


def _all(decisions: list[Decision]) -> Decision:
    if "fails" in decisions:
        return "fails"
    return "undecided" if "undecided" in decisions else "holds"


def as_record(claim: Claim) -> dict[str, Any]:
    """Describe a claim for `verdict.json`: on the first CMDP, and on the family."""
    first = next(iter(claim.quantities[0].values))
    return {
        "number": claim.number,
        "sentence": claim.sentence,
        "first_cmdp": claim.on(first),
        "family": claim.over_family(),
        "cmdps": len(claim.quantities[0].values),
        "cmdps_held": claim.num_held(),
        "remark": claim.remark,
        "quantities": [
            {
                "text": quantity.text,
                "side": quantity.side,
                "bound": quantity.bound,
                "first_cmdp": _plain(quantity.on(first)),
                "family": _plain(quantity.over_family()),
                "cmdps_held": quantity.num_held(),
            }
            for quantity in claim.quantities
        ],
    }


def _plain(found: Interval) -> dict[str, float | int | None]:
    mean, half = (number if np.isfinite(number) else None for number in found[:2])
    return {"mean": mean, "half": half, "size": found.size}


def as_markdown(claims: list[Claim]) -> str:
    """Write the verdict for people."""
    first = next(iter(claims[0].quantities[0].values))
    count = len(claims[0].quantities[0].values)
    lines = ["# Verdict", ""]
    for claim in claims:
        outcome = f"**{claim.on(first)}**"
        header, rule = "| measured | claimed | first CMDP |", "|---|---|---|"
        if count > 1:
            outcome += f"; over {count} CMDPs **{claim.over_family()}**, "
            outcome += f"on {claim.num_held()} of them one by one"
            header, rule = header + f" {count} CMDPs | holds on |", rule + "---|---|"
        lines += [f"## {claim.number}. {claim.sentence}", "", outcome, "", header, rule]
        for quantity in claim.quantities:
            row = f"| {quantity.text} | {quantity.side} {quantity.bound:g} | {quantity.on(first)} |"
            if count > 1:
                row += f" {quantity.over_family()} | {quantity.num_held()} |"
            lines.append(row)
        lines += ["", *([claim.remark, ""] if claim.remark else [])]
    return "\n".join(lines)
