"""`reproduce`: run the paper's experiment, draw its figures, and say which claims hold."""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cmdpax.checks import require_count
from cmdpax.experiments import Results, SweepProgress, sweep
from cmdpax.learning.settings import RUN_BYTES
from cmdpax.paper.reproduction import claims
from cmdpax.paper.reproduction.costs import compilation_times, cost_ratios
from cmdpax.paper.reproduction.experiment import (
    DUAL,
    PRIMAL_DUAL,
    QUICK,
    cmdp_seeds,
    specifications,
)
from cmdpax.paper.reproduction.measured import Measured
from cmdpax.paper.reproduction.output import FIGURES, held
from cmdpax.paper.reproduction.pictures import draw_figures
from cmdpax.paper.reproduction.tables import configuration_table, table_as_markdown, write_table
from cmdpax.paper.reproduction.theory import theory_claim
from cmdpax.paper.reproduction.verdict import Claim, as_markdown, as_record
from cmdpax.reporting import report
from cmdpax.storage.limits import require_room
from cmdpax.storage.writing import write_text


class Reproduction(NamedTuple):
    """What a reproduction found.

    Attributes:
        cmdps: the fingerprints of the CMDPs that count, the paper's first.
        sweeps: the results by name: "paper", "caps", "safety", "larger", "long", and "theory-SEED".
        claims: the claims, each with its quantities and decisions.
        figures: the files of the pictures.
        page: the file `report.html`, which shows all of it.
        seconds: how long it took.
        compile_seconds: how much of that was compilation.
    """

    cmdps: list[str]
    sweeps: dict[str, Results]
    claims: list[Claim]
    figures: list[Path]
    page: Path
    seconds: float
    compile_seconds: float


def reproduce(
    out: str | os.PathLike[str],
    *,
    quick: bool = False,
    num_cmdps: int = 1,
    theory: bool = False,
    progress: Callable[[str], Callable[[SweepProgress], None]] | None = None,
) -> Reproduction:
    """Run the paper's experiment into a folder; what is there already is not run again.

    Args:
        out: the folder; one that holds other files is refused.
        quick: 1,000 episodes and two runs, for a first look.
        num_cmdps: how many CMDPs of the family to take, the paper's first.
        theory: run the theorem's parameters and the theory's bonuses too, for a million episodes.
        progress: takes the name of a sweep and gives the function that it reports to.
    """
    num_cmdps = require_count("num_cmdps", num_cmdps)
    require_room(f"a reproduction with {num_cmdps:,} CMDPs", num_cmdps * RUN_BYTES)
    start = time.perf_counter()
    seeds = cmdp_seeds(num_cmdps)
    folder = Path(out)
    with held(folder), compilation_times() as compiling:
        sweeps = {
            name: sweep(
                specification, folder / name, progress=progress(name) if progress else False
            )
            for name, specification in specifications(seeds, **(QUICK if quick else {})).items()
        }
        found = judge(sweeps, seeds)
        paper = Measured(sweeps["paper"], seeds)
        if theory:
            claim, more = theory_claim(folder, paper, progress)
            found.append(claim)
            sweeps |= more
        figures = draw_figures(sweeps, folder / FIGURES)
        _write(folder, found, paper, _command(quick, num_cmdps, theory))
        page = report(folder, folder / "report.html")
    seconds = time.perf_counter() - start
    cmdps = list(paper.cmdps.values())
    return Reproduction(cmdps, sweeps, found, figures, page, seconds, sum(compiling))


def judge(sweeps: dict[str, Results], seeds: Sequence[int]) -> list[Claim]:
    """Judge all claims on the CMDPs with these seeds; the folders may hold more."""
    paper, caps, safety, long = (
        Measured(sweeps[name], seeds) for name in ("paper", "caps", "safety", "long")
    )
    return [
        claims.strong_regrets(1, paper, PRIMAL_DUAL),
        claims.strong_regrets(2, paper, DUAL),
        claims.weak_regrets(paper),
        claims.damped(paper),
        claims.step_sizes(paper),
        claims.persistent(long),
        claims.caps(caps),
        claims.dual_alike(paper, cost_ratios(paper, DUAL[1], PRIMAL_DUAL[1])),
        claims.larger_sizes(claims.larger_of(sweeps["larger"], seeds)),
        claims.strict_safety(safety),
        claims.fixed_bias(long),
    ]


def _command(quick: bool, num_cmdps: int, theory: bool) -> str:
    """Write the command that makes the reproduction again, for the page."""
    options = [("--quick", quick), (f"--cmdps {num_cmdps}", num_cmdps > 1), ("--theory", theory)]
    return " ".join(["cmdpax reproduce --out again", *(name for name, given in options if given)])


def _write(folder: Path, found: list[Claim], paper: Measured, command: str) -> None:
    """Write verdict.md and .json, configurations.md and .csv, and replay.json."""
    records: Any = [as_record(claim) for claim in found]
    table = configuration_table(paper)
    contents = {
        "verdict.md": as_markdown(found) + "\n",
        "configurations.md": table_as_markdown(table) + "\n",
        "verdict.json": json.dumps(records, indent=1, allow_nan=False, ensure_ascii=False) + "\n",
        "replay.json": json.dumps({"command": command}) + "\n",
    }
    for name, text in contents.items():
        write_text(folder / name, text)
    write_table(table, folder / "configurations.csv")
