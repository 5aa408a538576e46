"""`run`: a sweep for every part of a suite, into one folder that can be resumed."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cmdpax.board.cells import Board
from cmdpax.board.configurations import Entrant, entrants
from cmdpax.board.folder import BoardFolder, Chosen, Entry, Record
from cmdpax.board.reading import read
from cmdpax.board.suites import UNSAFE_AT, Part, Suite, as_suite
from cmdpax.errors import ParameterError, SweepError
from cmdpax.experiments.progress import Reporter
from cmdpax.experiments.runs import make_runs
from cmdpax.experiments.specification import read_specification
from cmdpax.experiments.sweeping import sweep
from cmdpax.learners import Algorithm, as_algorithm
from cmdpax.learners.algorithm import Named
from cmdpax.learning.baseline import find_baselines
from cmdpax.model.cmdp import CMDP

Telling = Callable[[str], bool | Reporter]
"""Makes what a sweep reports to, given the name of its part."""


def run(
    suite: str | Suite,
    out: str | os.PathLike[str],
    *,
    algorithms: Sequence[Named | Mapping[str, Any]] | None = None,
    parts: Sequence[str] | None = None,
    cluster: str | None = None,
    progress: bool | Telling = False,
) -> Board:
    """Run the algorithms on a suite, as far as the folder does not have their results yet.

    Every algorithm has at most four configurations. What it cannot do is left out, and the board
    says why; runs that fail lose their own cells and nothing else.

    Args:
        suite: "v1" or "quick".
        out: the folder; it may have the results of other algorithms on the same suite.
        algorithms: names, addresses, factories, or tables as in a specification; None takes all
            that are registered.
        parts: the names of some parts; None runs all of them, the cheap ones first.
        cluster: as in `cmdpax.sweep`.
        progress: show a bar for every sweep, or a function that makes what it reports to.

    Raises:
        ParameterError: a name is unknown, or the folder has the results of another suite.
        FileError: the folder is not a board's, or cannot be written.
    """
    chosen, taking = as_suite(suite), entrants(algorithms)
    wanted = [chosen.part(name) for name in parts] if parts is not None else chosen.parts
    folder = BoardFolder(out)
    folder.require_ours()
    folder.record_of(chosen)  # refused before anything is made
    with folder.locked():
        folder.sweep_away()
        record = folder.record_of(chosen)
        for entrant in taking:
            _enter(record, entrant, folder)
        for part in wanted:
            _run_part(chosen, part, taking, folder, record, cluster, progress)
    return read(out, suite=chosen)


def _enter(record: Record, entrant: Entrant, folder: BoardFolder) -> None:
    """Put an algorithm on the board, with the same configurations as before."""
    configurations = list(entrant.configurations)
    known = record.entries.setdefault(
        entrant.name, Entry(tables=configurations, traits=_traits(as_algorithm(entrant.name)))
    )
    if known.tables != configurations:
        raise ParameterError(
            f"{folder.path} has {entrant.name} with other configurations; use another folder."
        )


def _traits(algorithm: Algorithm) -> dict[str, bool | str]:
    return {
        "summary": algorithm.summary,
        "plans": algorithm.replans,
        "needs_baseline": algorithm.needs_baseline,
        "needs_episodes": not algorithm.anytime,
        "one_constraint": algorithm.max_constraints == 1,
    }


def _run_part(
    suite: Suite,
    part: Part,
    taking: Sequence[Entrant],
    folder: BoardFolder,
    record: Record,
    cluster: str | None,
    progress: bool | Telling,
) -> None:
    """Run a part, in as few sweeps as possible: algorithms that can do the same go together."""
    models = {name: suite.family(name).models() for name in part.families}
    for family in models.values():
        for name, cmdp in family.items():
            folder.write_model(name, cmdp)
    together: dict[tuple[int, tuple[str, ...]], list[Entrant]] = {}
    for entrant in taking:
        entry = record.entries[entrant.name]
        able = _able(as_algorithm(entrant.name), entry, part, models)
        by_runs: dict[int, list[str]] = {}
        for name in able:
            by_runs.setdefault(suite.family(name).runs, []).append(name)
        for runs, names in by_runs.items():
            together.setdefault((runs, tuple(names)), []).append(entrant)
        entry.chosen[part.name] = _chosen(part, entrant)
        entry.failures.pop(part.name, None)
    folder.write(record)
    for (runs, able_ones), group in together.items():
        files = [str(folder.model_path(model)) for name in able_ones for model in models[name]]
        specification = _specification(part, suite.recorded, group, files, runs)
        report = progress(part.name) if callable(progress) else progress
        failures: list[str] = []
        try:
            sweep(specification, folder.sweep_path(part.name), cluster=cluster, progress=report)
        except SweepError as error:
            failures = [line.strip() for line in str(error).split("\n")[1:]]
        for entrant in group:
            _finish(record.entries[entrant.name], entrant.name, part, able_ones, failures)
        folder.write(record)


def _able(
    algorithm: Algorithm, entry: Entry, part: Part, models: Mapping[str, Mapping[str, CMDP]]
) -> list[str]:
    """The families that an algorithm can do; for the others the entry says why not."""
    skipped = entry.skipped[part.name] = {}
    for name in models.keys() - set(entry.finished.get(part.name, ())):
        try:
            for cmdp in models[name].values():
                algorithm.require_constraints(cmdp.num_constraints)
                find_baselines(algorithm, None, [cmdp])
        except ParameterError as error:
            skipped[name] = str(error)
    return [name for name in models if name not in skipped]


def _specification(
    part: Part, recorded: int, group: Sequence[Entrant], files: Sequence[str], runs: int
) -> dict[str, Any]:
    episodes = np.unique(np.geomspace(1, part.num_episodes, recorded).round().astype(int))
    return {
        "num_episodes": part.num_episodes,
        "observations": part.observations,
        "optimism": part.optimism,
        "record": episodes.tolist(),
        "unsafe_at": [UNSAFE_AT],
        "seeds": runs,
        "cmdps": [{"file": file} for file in files],
        "algorithms": [table for entrant in group for table in entrant.tables],
    }


def _chosen(part: Part, entrant: Entrant) -> list[Chosen]:
    """The digests by which the tables of a sweep know the configurations, and their parameters."""
    found = []
    for table in entrant.tables:
        alone = _specification(part, 1, [entrant], ["none"], 1) | {"algorithms": [table]}
        run = make_runs(read_specification(alone), [""])[0]
        words = run.configuration.words
        found.append(Chosen(digest=run.configuration_name, words=words))
    return found


def _finish(
    entry: Entry, name: str, part: Part, families: Sequence[str], failures: Sequence[str]
) -> None:
    """Note what was run to the end, and what failed."""
    before = entry.finished.get(part.name, [])
    entry.finished[part.name] = list(dict.fromkeys([*before, *families]))
    if own := [line for line in failures if line.startswith(f"{name} (")]:
        entry.failures[part.name] = [*entry.failures.get(part.name, []), *own]
