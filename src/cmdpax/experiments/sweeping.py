"""`sweep`: all runs of a specification, in compiled batches, into a folder that can be resumed."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from cmdpax.arguments import as_factory
from cmdpax.batch import Collected, Task
from cmdpax.engine import run_batch
from cmdpax.errors import CmdpaxWarning, FileError, InfeasibleError, ParameterError
from cmdpax.experiments.folder import DamagedError, Folder
from cmdpax.experiments.measures import accounts_of, curve_rows, final_rows
from cmdpax.experiments.progress import Reporter, Stand, shown
from cmdpax.experiments.reading import Results, results
from cmdpax.experiments.runs import (
    Batch,
    Model,
    Run,
    episodes_in_memory,
    make_batches,
    make_models,
    make_runs,
)
from cmdpax.experiments.specification import Specification, read_specification
from cmdpax.learning import require_stationary
from cmdpax.manifest import device, versions
from cmdpax.planning.solution import solve
from cmdpax.simulation import Design

FORMAT = 1
SHARED = ("num_episodes", "observations", "precision", "record", "unsafe_at", "stationary")


def sweep(
    specification: Specification | dict[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    progress: bool | Reporter = False,
) -> Results:
    """Run everything that a specification asks for and the folder does not have yet.

    Calling it again does nothing; with a larger specification it adds what is missing; after a
    crash it finishes the rest. One process writes a folder at a time.

    Args:
        specification: a `Specification`, a dict, or a TOML file.
        out: the folder.
        progress: show a bar, or call a function with a `Stand`.

    Examples:
        >>> import cmdpax, tempfile
        >>> specification = {
        ...     "num_episodes": 100,
        ...     "seeds": 2,
        ...     "cmdps": [{"environment": "bandit"}],
        ...     "algorithms": [{"name": "vanilla-dual", "step_size": [0.1, 0.2]}],
        ... }
        >>> results = cmdpax.sweep(specification, tempfile.mkdtemp())
        >>> results.final.shape[0]
        4
    """
    wanted = read_specification(specification)
    folder = Folder(out)
    models = make_models(wanted)
    runs = make_runs(wanted, models)
    _require_stationary(wanted, models, runs)
    known = (stored_manifest(folder, wanted) or {}).get("cmdps", {})
    solved = _described(models, known)  # before anything is written: one may be infeasible
    with folder.locked(), _reporting(progress) as report:
        missing = _missing(folder, runs)
        described = _update(folder, wanted, models, solved, bool(missing))
        optima = {fingerprint: described[fingerprint]["optimum"] for fingerprint in models}
        ready = len(runs) - len(missing)
        capped = 0
        for batch in make_batches(missing, models, wanted):
            tables = run_one(
                batch, wanted, models, optima, _reporter(report, batch, ready, runs, wanted)
            )
            folder.write_part(batch.name, tables, _context(wanted, described, batch))
            capped += int((tables["final"]["capped"] > 0.5).sum())
            ready += len(batch.runs)
            report(_stand(ready, 0, runs, wanted, "done"))
    if capped:
        warnings.warn(
            f"in {capped} runs a multiplier was at max_multiplier in most episodes; "
            "raise max_multiplier.",
            CmdpaxWarning,
            stacklevel=2,
        )
    return results(out)


def _require_stationary(
    wanted: Specification, models: dict[str, Model], runs: Sequence[Run]
) -> None:
    if not wanted.stationary:
        return
    known = all(run.configuration.optimism.rewards == "known" for run in runs)
    for model in models.values():
        try:
            require_stationary(model.cmdp, known, wanted.num_episodes)
        except ParameterError as error:
            raise ParameterError(f"{model.name}: {error}") from None


def stored_manifest(folder: Folder, wanted: Specification) -> dict[str, Any] | None:
    """The manifest that is there, if any; what all runs share must be as it says.

    A lost or damaged one is put together from what the batches say.
    """
    try:
        before = folder.read_manifest() if folder.manifest_path.exists() else None
    except DamagedError:
        before = None
    contexts = folder.contexts() if before is None and folder.path.is_dir() else []
    if before is None and not contexts:
        return None
    if before is None:
        merged = {fp: entry for context in contexts for fp, entry in context["cmdps"].items()}
        before = {"format": FORMAT, "specification": contexts[0]["shared"], "cmdps": merged}
    if before["format"] > FORMAT:
        raise FileError(
            f"{folder.path} was written by a newer cmdpax (format {before['format']}); upgrade."
        )
    said = {"stationary": False} | before["specification"]  # folders of 0.1 do not say it
    for name, new in _shared(wanted).items():
        old = said.get(name)
        if old != new:
            raise ParameterError(
                f"{folder.path} holds runs with {name} = {old}, the specification has {new}; "
                "use another folder."
            )
    return before


def _shared(wanted: Specification) -> dict[str, Any]:
    content = wanted.model_dump(mode="json")
    return {name: content[name] for name in SHARED}


def _context(wanted: Specification, described: dict[str, Any], batch: Batch) -> dict[str, Any]:
    """What a batch's entry says besides its runs."""
    fingerprints = dict.fromkeys(run.fingerprint for run in batch.runs)
    return {"shared": _shared(wanted), "cmdps": {fp: described[fp] for fp in fingerprints}}


def _update(
    folder: Folder,
    wanted: Specification,
    models: dict[str, Model],
    solved: dict[str, Any],
    adds: bool,
) -> dict[str, Any]:
    """Bring the CMDPs and the manifest up to date, as the only writer; all CMDPs described."""
    before = stored_manifest(folder, wanted)
    described = (before["cmdps"] if before else {}) | solved
    _write_models(folder, models, before)
    manifest = _manifest(wanted, described)
    try:
        written = folder.read_manifest() if folder.manifest_path.exists() else None
    except DamagedError:
        path = folder.manifest_path
        warnings.warn(f"{path} is damaged; it is written anew.", CmdpaxWarning, stacklevel=3)
        written = None
    if written is None or written["cmdps"] != described or (adds and written != manifest):
        folder.write_manifest(manifest)
    return described


def _manifest(wanted: Specification, described: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "specification": wanted.model_dump(mode="json"),
        "cmdps": described,
        "versions": versions(),
        "device": device(),
    }


def _write_models(folder: Folder, models: dict[str, Model], before: dict[str, Any] | None) -> None:
    for fingerprint, model in models.items():
        if folder.write_cmdp(model.cmdp) and before and fingerprint in before["cmdps"]:
            path = folder.cmdp_path(fingerprint)
            warnings.warn(f"{path} is damaged; it is written anew.", CmdpaxWarning, stacklevel=4)


def _described(models: dict[str, Model], known: dict[str, Any]) -> dict[str, Any]:
    """The CMDPs by fingerprint: where they come from, and their optima."""
    described = dict(known)
    for fingerprint, model in models.items():
        if fingerprint in described:
            continue
        try:
            solution = solve(model.cmdp)
        except InfeasibleError as error:
            raise ParameterError(f"{model.name}: {error}") from None
        gap = solution.slater_gap
        described[fingerprint] = {
            "name": model.name,
            "source": model.source,
            "sizes": model.cmdp.sizes._asdict(),
            "optimum": solution.value,
            "multipliers": solution.multipliers.tolist(),
            "slater_gap": None if gap is None else float(gap),
        }
    return described


def _missing(folder: Folder, runs: Sequence[Run]) -> list[Run]:
    """The runs that no whole batch of the folder has."""
    for damaged in folder.drop_damaged():
        warnings.warn(
            f"{damaged} is damaged; those of its runs that the specification asks for are "
            "computed again.",
            CmdpaxWarning,
            stacklevel=3,
        )
    done = {run for batch in folder.parts().values() for run in batch}
    return [run for run in runs if run.identity not in done]


def run_one(
    batch: Batch,
    wanted: Specification,
    models: dict[str, Model],
    optima: dict[str, float],
    report: Callable[[int, int], None],
) -> dict[str, Any]:
    """Run a batch: its tables. Pure, so that it may run anywhere."""
    fingerprints = [run.fingerprint for run in batch.runs]
    stacked = len(set(fingerprints)) > 1
    chosen = fingerprints if stacked else fingerprints[:1]
    in_memory = episodes_in_memory(wanted)
    design = Design(
        factory=as_factory(batch.algorithm),
        rewards_known=batch.runs[0].configuration.optimism.rewards == "known",
        bernoulli=wanted.observations == "bernoulli",
        stacked=stacked,
        keep_log=False,
        stationary=wanted.stationary,
    )
    task = Task(
        design,
        [models[fingerprint].cmdp for fingerprint in chosen],
        [optima[fingerprint] for fingerprint in chosen],
        in_memory,
        wanted.num_episodes,
        wanted.unsafe_at,
    )
    with jax.enable_x64(wanted.precision == "double"):
        collected = run_batch(task, [run.configuration for run in batch.runs], None, report)
    return _tables(batch, wanted, models, optima, collected)


def _tables(
    batch: Batch,
    wanted: Specification,
    models: dict[str, Model],
    optima: dict[str, float],
    collected: Collected,
) -> dict[str, Any]:
    fingerprints = [run.fingerprint for run in batch.runs]
    accounts = accounts_of(
        collected,
        episodes_in_memory(wanted),
        np.array([optima[fingerprint] for fingerprint in fingerprints]),
        np.array([models[fingerprint].cmdp.thresholds for fingerprint in fingerprints]),
    )
    names = [models[fingerprint].name for fingerprint in fingerprints]
    return {
        "final": final_rows(batch.runs, names, accounts, collected, wanted.unsafe_at),
        "curves": curve_rows(batch.runs, accounts, wanted.recorded()),
    }


# ---------------------------------------------------------------------------------------- progress


def _stand(
    ready: int, episodes: int, runs: Sequence[Run], wanted: Specification, text: str
) -> Stand:
    count = wanted.num_episodes
    return Stand(ready, len(runs), ready * count + episodes, len(runs) * count, text)


def _reporter(
    report: Reporter, batch: Batch, ready: int, runs: Sequence[Run], wanted: Specification
) -> Callable[[int, int], None]:
    """Episodes of a batch as those of the whole sweep."""

    def tell(episodes: int, _: int) -> None:
        report(_stand(ready, episodes * len(batch.runs), runs, wanted, batch.algorithm))

    return tell


@contextmanager
def _reporting(progress: bool | Reporter) -> Iterator[Reporter]:
    """The function to report to: the user's, a bar on standard error, or none."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda stand: None
    else:
        with shown() as named:
            yield named("sweep")
