"""A table of every configuration: means over runs and CMDPs, with 95 % intervals."""

from pathlib import Path
from typing import TYPE_CHECKING

from cmdpax.intervals import Interval, interval
from cmdpax.paper.reproduction.measured import Measured
from cmdpax.storage.writing import write_atomically

if TYPE_CHECKING:
    import polars

MEASURES = (
    "strong_objective",
    "strong_constraints",
    "weak_objective",
    "weak_constraints",
    "violation_std",
    "unsafe_at_0.01",
)


def configuration_table(paper: Measured) -> "polars.DataFrame":
    """Make a row per configuration; intervals are over CMDPs if there are several."""
    import polars

    rows = []
    keys = ["algorithm", "step_size", "regularization"]
    counted = polars.col("cmdp").is_in(list(paper.cmdps.values()))
    for key, group in paper.results.final.filter(counted).group_by(keys, maintain_order=True):
        row: dict[str, object] = dict(zip(keys, key, strict=True)) | {"runs": len(group)}
        for measure in MEASURES:
            by_cmdp = group.group_by("cmdp", maintain_order=True).agg(polars.col(measure).mean())
            values = by_cmdp[measure] if len(by_cmdp) > 1 else group[measure]
            found = interval(values.to_numpy())
            row |= {measure: found.mean, f"{measure}_half": found.half}
        row["strong_sum"] = row["strong_objective"] + row["strong_constraints"]  # type: ignore[operator]
        rows.append(row)
    return polars.DataFrame(rows).sort("algorithm", "strong_sum")


def write_table(table: "polars.DataFrame", path: Path) -> None:
    """Write a table as CSV, whole or not at all."""
    write_atomically(path, table.write_csv)


def table_as_markdown(table: "polars.DataFrame") -> str:
    """Write the table for people, best configurations first."""
    names = ("algorithm", "η", "τ", *(measure.replace("_", " ") for measure in MEASURES))
    lines = ["# Every configuration", "", "| " + " | ".join(names) + " |"]
    lines.append("|---" * len(names) + "|")
    for row in table.to_dicts():
        cells = [row["algorithm"], f"{row['step_size']:g}", f"{row['regularization']:g}"]
        cells += [
            str(Interval(row[measure], row[f"{measure}_half"], row["runs"])) for measure in MEASURES
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
