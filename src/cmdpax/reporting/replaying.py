"""How to make the runs of a page again."""

import shlex
from typing import Any, NamedTuple

from cmdpax.errors import CmdpaxError
from cmdpax.experiments.reading import Results
from cmdpax.experiments.runs import combinations, make_runs
from cmdpax.experiments.specification import Specification, read_specification
from cmdpax.learners import registered
from cmdpax.reporting.sources import Source
from cmdpax.reporting.toml import InexpressibleError, specification_text

_SWEEP = "cmdpax sweep specification.toml --out again"
_REPRODUCE = "cmdpax reproduce --out again"


class Coverage(NamedTuple):
    """A folder against the specification that it names, which is the last one.

    Attributes:
        missing: runs that the specification asks for, and the folder does not have yet.
        others: runs of the folder that it does not ask for.
    """

    missing: int
    others: int


def replay_reproduction(command: str | None) -> dict[str, Any]:
    """The command that makes a reproduction again: the one that made it, if that is known."""
    return {"command": command or _REPRODUCE, "specification": None, "notes": []}


def replay_sweep(source: Source, coverage: Coverage | None) -> dict[str, Any]:
    """The specification of a sweep as a TOML file, its command, and what else is needed."""
    manifest = source.results.manifest
    notes = [*_file_notes(manifest), *_algorithm_notes(manifest), *_coverage_notes(coverage)]
    try:
        text = specification_text(manifest["specification"])
        return {"command": _SWEEP, "specification": text, "notes": notes}
    except InexpressibleError:
        code = (
            f"import cmdpax; found = cmdpax.results({source.name!r}); "
            'cmdpax.sweep(found.manifest["specification"], "again")'
        )
        notes.append("No TOML file can say this specification; the manifest of the folder has it.")
        return {"command": f"python -c {shlex.quote(code)}", "specification": None, "notes": notes}


def _file_notes(manifest: dict[str, Any]) -> list[str]:
    return [
        f"The CMDP {entry['name']} is read from {entry['source']['file']}; its arrays are also in "
        f"this sweep's folder, as cmdps/{fingerprint[:16]}.npz."
        for fingerprint, entry in manifest["cmdps"].items()
        if "file" in entry["source"]
    ]


def _algorithm_notes(manifest: dict[str, Any]) -> list[str]:
    names = dict.fromkeys(entry["name"] for entry in manifest["specification"]["algorithms"])
    return [
        f"The algorithm {name} is one's own: its module must be on PYTHONPATH."
        for name in names
        if ":" in name
    ]


def _coverage_notes(coverage: Coverage | None) -> list[str]:
    notes = []
    if coverage is not None and coverage.missing:
        notes.append(
            f"The sweep is not finished: {coverage.missing:,} of its runs are missing here."
        )
    if coverage is not None and coverage.others:
        notes.append(
            f"The folder also holds {coverage.others:,} runs of earlier specifications, which this "
            "one does not ask for."
        )
    return notes


def cover(results: Results) -> Coverage | None:
    """What the folder has, and what its specification asks for; None where that cannot be said."""
    import polars

    specification = results.manifest["specification"]
    try:
        # A folder is no reason to import the algorithms that it names, and without their defaults
        # nobody knows which runs it asks for.
        wanted = read_specification(specification, importing=False)
        if not all(registered(entry.name) for entry in wanted.algorithms):
            return None
        runs = make_runs(wanted, ["any"])
        sources = _sources(wanted)
    except CmdpaxError:  # such as more runs than fit in memory
        return None
    asked = {(run.configuration_name, run.configuration.seed) for run in runs}
    cmdps = [fp for fp, entry in results.manifest["cmdps"].items() if entry["source"] in sources]
    on_them = results.final.filter(polars.col("cmdp").is_in(cmdps))
    done = sum(pair in asked for pair in on_them.select("configuration", "seed").iter_rows())
    return Coverage(len(asked) * len(cmdps) - done, len(results.final) - done)


def _sources(wanted: Specification) -> list[dict[str, Any]]:
    """What the manifest says of the CMDPs of a specification."""
    found: list[dict[str, Any]] = []
    for entry in wanted.cmdps:
        if entry.environment is None:
            found.append({"file": entry.file})
            continue
        for chosen in combinations(entry.parameters):
            found.append({"environment": entry.environment, "parameters": chosen})
    return found
