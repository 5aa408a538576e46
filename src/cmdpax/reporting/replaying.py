"""How to make the runs of a page again."""

import shlex
from typing import Any

from cmdpax.errors import CmdpaxError
from cmdpax.experiments.reading import Results
from cmdpax.experiments.runs import combinations, make_runs
from cmdpax.experiments.specification import Specification, read_specification
from cmdpax.learners import registered
from cmdpax.reporting.toml import InexpressibleError, specification_text

_SWEEP = "cmdpax sweep specification.toml --out again"
_REPRODUCE = "cmdpax reproduce --out again"


def replay_reproduction(command: str | None) -> dict[str, Any]:
    """Tell how to make a reproduction again: by the command that made it, if that is known."""
    return {"command": command or _REPRODUCE, "specification": None, "notes": []}


def replay_sweep(name: str, results: Results) -> dict[str, Any]:
    """Tell how to make a sweep again: specification as TOML, command, and what else is needed."""
    manifest = results.manifest
    notes = [*_file_notes(manifest), *_algorithm_notes(manifest), *_coverage_notes(results)]
    try:
        text = specification_text(manifest["specification"])
        return {"command": _SWEEP, "specification": text, "notes": notes}
    except InexpressibleError:
        code = (
            f"import cmdpax; found = cmdpax.results({name!r}); "
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


def _coverage_notes(results: Results) -> list[str]:
    """Compare the runs of a folder with those that its specification, the last one, asks for."""
    import polars

    try:
        # A folder is no reason to import the algorithms that it names, and without their defaults
        # nobody knows which runs it asks for.
        wanted = read_specification(results.manifest["specification"], importing=False)
        if not all(registered(entry.name) for entry in wanted.algorithms):
            return []
        runs = make_runs(wanted, ["any"])
        sources = _sources(wanted)
    except CmdpaxError:  # such as more runs than fit in memory
        return []
    asked = {(run.configuration_name, run.configuration.seed) for run in runs}
    cmdps = [fp for fp, entry in results.manifest["cmdps"].items() if entry["source"] in sources]
    on_them = results.final.filter(polars.col("cmdp").is_in(cmdps))
    done = sum(pair in asked for pair in on_them.select("configuration", "seed").iter_rows())
    missing, others = len(asked) * len(cmdps) - done, len(results.final) - done
    notes = []
    if missing:
        notes.append(f"The sweep is not finished: {missing:,} of its runs are missing here.")
    if others:
        notes.append(
            f"The folder also holds {others:,} runs of earlier specifications, which this one does "
            "not ask for."
        )
    return notes


def _sources(wanted: Specification) -> list[dict[str, Any]]:
    """List what a manifest says about the origin of a specification's CMDPs."""
    found: list[dict[str, Any]] = []
    for entry in wanted.cmdps:
        if entry.environment is None:
            found.append({"file": entry.file})
            continue
        for chosen in combinations(entry.parameters):
            found.append({"environment": entry.environment, "parameters": chosen})
    return found
