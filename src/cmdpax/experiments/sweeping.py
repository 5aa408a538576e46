"""`sweep` runs a specification in compiled batches, into a folder that can be resumed."""

import os
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from cmdpax.errors import CmdpaxWarning, InfeasibleError, ParameterError, SweepError
from cmdpax.experiments.cluster import prepare, require_answer, run_on_cluster
from cmdpax.experiments.executing import Outcome, Work, made_here, run_here
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.progress import Reporter, SweepProgress, shown
from cmdpax.experiments.reading import Results, results
from cmdpax.experiments.records import FORMAT
from cmdpax.experiments.runs import (
    Batch,
    Model,
    Run,
    make_batches,
    make_models,
    make_runs,
    require_fitting,
)
from cmdpax.experiments.specification import Specification, read_specification
from cmdpax.learning.learn import require_stationary
from cmdpax.planning.solution import solve
from cmdpax.storage.paths import exists

_TOLD = 8


def sweep(
    specification: Specification | dict[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    cluster: str | None = None,
    progress: bool | Reporter = False,
) -> Results:
    """Run everything that a specification asks for and the folder does not have yet.

    Called again, it does nothing and writes nothing; with a larger specification it adds what is
    missing; after a crash it finishes the rest. One process writes a folder at a time.

    Args:
        specification: a `Specification`, a dict, or a TOML file.
        out: the folder; one that holds other files is refused.
        cluster: the address of a Ray cluster whose machines run the batches; "auto" takes one that
            runs here, or starts one; None runs them in this process.
        progress: show a bar, or call a function with a `SweepProgress`.

    Raises:
        FileError: the folder is not a sweep's, or cannot be written.
        SweepError: some runs failed (on a cluster, three times); all others are in the folder.

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
    if cluster is not None:
        prepare(cluster)
    wanted = read_specification(specification)
    folder = Folder(out)
    folder.require_ours()
    models = make_models(wanted)
    runs = make_runs(wanted, models)
    _require_stationary(wanted, models, runs)
    manifest, described, known = folder.known(wanted.shared)
    is_complete = manifest is not None and models.keys() <= described.keys()
    if is_complete and known.issuperset(run.identity for run in runs) and folder.is_whole(models):
        return results(out)  # nothing is written, and nothing is locked
    require_fitting(wanted.settings, runs, models)
    solved = _described(models, described)  # before anything is written: one may be infeasible
    with folder.locked(), _reporting(progress) as report:
        missing = _missing(folder, runs)
        if cluster is not None and missing:
            require_answer(cluster)  # before anything is written
        described = _update(folder, wanted, models, solved, bool(missing))
        work = Work(wanted, _with_optima(models, described))
        tell = _Telling(report, len(runs) - len(missing), runs, wanted)
        with closing(_outcomes(missing, work, cluster, tell)) as outcomes:
            failures, capped = _commit(outcomes, folder, wanted, described, tell)
    if failures:
        raise SweepError(_failed(failures, folder))
    if capped:
        warnings.warn(
            f"in {capped} runs a multiplier was at max_multiplier in most episodes; "
            "raise max_multiplier.",
            CmdpaxWarning,
            stacklevel=2,
        )
    return results(out)


def _outcomes(
    missing: Sequence[Run], work: Work, cluster: str | None, tell: "_Telling"
) -> Generator[Outcome, None, None]:
    """Run what is missing, here or on a cluster; yields what came of it batch by batch."""
    if cluster is None:
        batches = make_batches(missing, work.models, work.wanted)
        yield from run_here(work, batches, tell.running)
    elif missing:
        yield from run_on_cluster(cluster, missing, work, tell.status)


def _commit(
    outcomes: Iterable[Outcome],
    folder: Folder,
    wanted: Specification,
    described: dict[str, Any],
    tell: "_Telling",
) -> tuple[list[Outcome], int]:
    """Write what is done; returns the failures, and how many runs were mostly at their cap."""
    failures, capped = [], 0
    for outcome in outcomes:
        if outcome.error is not None:
            failures.append(outcome)
            text = f"{_runs(outcome)} failed, the others go on: {_told(outcome)}"
            warnings.warn(text, CmdpaxWarning, stacklevel=3)
            continue
        used = dict.fromkeys(run.fingerprint for run in outcome.batch.runs)
        cmdps = {fingerprint: described[fingerprint] for fingerprint in used}
        context = outcome.made | {"shared": wanted.shared, "cmdps": cmdps}
        folder.write_part(outcome.batch.name, outcome.tables, context)
        capped += int((outcome.tables["final"]["capped"] > 0.5).sum())
        tell.done(outcome.batch)
    return failures, capped


def _failed(failures: Sequence[Outcome], folder: Folder) -> str:
    """The error at the end: a sentence, and a line per failure."""
    count = sum(len(failure.batch.runs) for failure in failures)
    first = (
        f"{_runs(*failures)} failed; everything else is in {folder.path}, and the same command "
        f"tries {'them' if count > 1 else 'it'} again:"
    )
    return "\n  ".join([first, *(_told(failure) for failure in failures)])


def _told(failure: Outcome) -> str:
    """What failed and why, with the first configurations: a batch may have thousands."""
    batch = failure.batch
    chosen = list(dict.fromkeys(run.configuration.words for run in batch.runs))
    more = f"; and {len(chosen) - _TOLD} more" if len(chosen) > _TOLD else ""
    names = "; ".join(chosen[:_TOLD]) + more
    tries = f", {failure.attempts} times" if failure.attempts > 1 else ""
    return f"{batch.algorithm} ({names}), {_runs(failure)}{tries}: {failure.error}"


def _runs(*failures: Outcome) -> str:
    count = sum(len(failure.batch.runs) for failure in failures)
    return f"{count} run{'s' if count > 1 else ''}"


def _require_stationary(
    wanted: Specification, models: dict[str, Model], runs: Sequence[Run]
) -> None:
    if not wanted.settings.stationary:
        return
    known = all(run.configuration.optimism.rewards == "known" for run in runs)
    wide = all(run.configuration.algorithm.replans for run in runs)
    for model in models.values():
        try:
            require_stationary(model.cmdp, known, 0 if wide else wanted.num_episodes)
        except ParameterError as error:
            raise ParameterError(f"{model.name}: {error}") from None


def _update(
    folder: Folder,
    wanted: Specification,
    models: dict[str, Model],
    solved: dict[str, Any],
    adds: bool,
) -> dict[str, Any]:
    """Bring the CMDPs and the manifest up to date, as the only writer; returns all CMDPs."""
    written, known, _ = folder.known(wanted.shared)
    damaged = [
        folder.cmdp_path(fingerprint)
        for fingerprint, model in models.items()
        if folder.write_cmdp(model.cmdp) and fingerprint in known
    ]
    if written is None and exists(folder.manifest_path):
        damaged.append(folder.manifest_path)
    for path in damaged:
        warnings.warn(f"{path} is damaged; it is written anew.", CmdpaxWarning, stacklevel=3)
    # What is there stays: every batch repeats it.
    described = known | {fp: solved[fp] for fp in solved if fp not in known}
    manifest = {
        "format": FORMAT,
        "specification": wanted.model_dump(mode="json"),
        "cmdps": described,
        **made_here(),
    }
    if written is None or written["cmdps"] != described or (adds and written != manifest):
        folder.write_manifest(manifest)
    return described


def _described(models: dict[str, Model], known: dict[str, Any]) -> dict[str, Any]:
    """Solve the CMDPs that are not known; returns all of them, with sources and optima."""
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


def _with_optima(models: dict[str, Model], described: dict[str, Any]) -> dict[str, Model]:
    return {fp: model._replace(optimum=described[fp]["optimum"]) for fp, model in models.items()}


def _missing(folder: Folder, runs: Sequence[Run]) -> list[Run]:
    """The runs that no whole batch of the folder has."""
    dropped, done = folder.drop_damaged()
    for damaged in dropped:
        warnings.warn(
            f"{damaged} is damaged; those of its runs that the specification asks for are "
            "computed again.",
            CmdpaxWarning,
            stacklevel=3,
        )
    return [run for run in runs if run.identity not in done]


# ---------------------------------------------------------------------------------------- progress


class _Telling:
    """Turns the progress of batches into that of the whole sweep."""

    def __init__(
        self, report: Reporter, ready: int, runs: Sequence[Run], wanted: Specification
    ) -> None:
        self._report, self._told, self._each = report, ready, wanted.num_episodes
        self._stand = SweepProgress(ready, len(runs), 0, len(runs) * self._each, "")

    def running(self, batch: Batch, episodes: int) -> None:
        self._tell(batch.algorithm, episodes * len(batch.runs))

    def status(self, text: str, seconds_left: float | None) -> None:
        """Report what a cluster says, together with the batches that were finished since."""
        self._stand = self._stand._replace(cluster=text, seconds_left=seconds_left)
        told, self._told = self._told, self._stand.runs
        self._tell("done" if self._stand.runs > told else "running")

    def done(self, batch: Batch) -> None:
        self._stand = self._stand._replace(runs=self._stand.runs + len(batch.runs))
        if not self._stand.cluster:
            self._tell("done")

    def _tell(self, batch: str, episodes: int = 0) -> None:
        episodes += self._stand.runs * self._each
        self._report(self._stand._replace(episodes=episodes, batch=batch))


@contextmanager
def _reporting(progress: bool | Reporter) -> Iterator[Reporter]:
    """The function that is reported to: the user's, a bar on standard error, or none."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda stand: None
    else:
        with shown() as named:
            yield named("sweep")
