"""All runs are cut into batches: about a minute each, for all workers, and each run once."""

import functools
import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_cases import make_work
from cmdpax.experiments import executing, runs
from cmdpax.experiments.cluster import cutting
from cmdpax.experiments.cluster.cutting import cut, trial_of, trials
from cmdpax.experiments.cluster.scheduling import WorkerPool
from cmdpax.experiments.executing import Work, run_in_parts
from cmdpax.experiments.runs import Batch, Run, by_kind, kind_of
from sweep_cases import SMALL, assert_same_frames


@functools.cache
def mixed() -> tuple[Work, list[Run]]:
    """Two kinds: 40 runs of one algorithm, 20 of another."""
    return make_work(
        seeds=10,
        algorithms=[
            {"name": "regularized-primal-dual", "step_size": [0.2, 0.4]},
            {"name": "vanilla-dual"},
        ],
    )


@given(st.floats(0, 1e3), st.floats(0, 1e3), st.integers(0, 9), st.sampled_from(["CPU", "GPU"]))
def test_every_run_is_in_one_batch(quick: float, slow: float, workers: int, kind: str) -> None:
    work, every = mixed()
    grouped = by_kind(every, work.models)
    each = dict(zip(grouped, (quick, slow), strict=True))  # seconds per run
    rates = {kind: each[kind] / work.wanted.num_episodes for kind in grouped}
    batches = cut(every, work.models, work.wanted, rates, WorkerPool(workers, kind))
    found = [run.identity for batch in batches for run in batch.runs]
    assert sorted(found) == sorted(run.identity for run in every)
    for batch in batches:
        (own,) = {kind_of(run, work.models) for run in batch.runs}
        assert batch.seconds == pytest.approx(len(batch.runs) * each[own])
        assert kind == "GPU" or batch.seconds <= 60.1 or len(batch.runs) == 1  # a long run is alone


@given(st.integers(1, 10**6), st.floats(1e-6, 1e4), st.integers(1, 10**6), st.integers(0, 2000))
def test_the_most_runs_of_a_batch(count: int, seconds: float, num_bytes: int, workers: int) -> None:
    most = cutting._most_runs(count, seconds, num_bytes, WorkerPool(workers, "CPU"))
    share = count / (4 * max(workers, 1))
    limit = min(60 / seconds, 2**26 / num_bytes, max(share + 1, 8))
    assert 1 <= most <= max(1, limit)
    assert most >= math.floor(min(limit, count) / 2)  # not in crumbs


@pytest.mark.parametrize(
    ("kind", "count", "seconds", "workers", "most"),
    [
        ("CPU", 100_000, 0.5, 100, 120),  # a minute
        ("CPU", 100_000, 0.01, 100, 250),  # a quarter of what a worker gets
        ("CPU", 100_000, 0.01, 1, 6_000),  # a minute
        ("CPU", 10, 0.01, 4, 8),  # eight take hardly longer than one
        ("CPU", 10, 100.0, 4, 1),
        ("CPU", 1, 0.0, 0, 1),
        ("GPU", 100_000, 1.0, 4, 2_048),  # fewer would take as long
        ("GPU", 100_000, 0.01, 4, 6_000),
        ("GPU", 100_000, 0.001, 4, 6_250),
    ],
)
def test_examples(kind: str, count: int, seconds: float, workers: int, most: int) -> None:
    assert cutting._most_runs(count, seconds, 1000, WorkerPool(workers, kind)) == most


@given(st.lists(st.integers(1, 9), max_size=9), st.integers(1, 20))
def test_groups_are_packed_in_their_order(sizes: list[int], most: int) -> None:
    labels = [[(place, member) for member in range(size)] for place, size in enumerate(sizes)]
    groups: Any = labels
    parts = [list(part) for part in cutting._packed(groups, most)]
    assert [run for part in parts for run in part] == [run for group in labels for run in group]
    assert all(1 <= len(part) <= most for part in parts)
    for part, following in itertools.pairwise(parts):
        if part[-1][0] != following[0][0]:  # a group is cut only if it does not fit
            assert len(part) + sizes[following[0][0]] > most or sizes[part[-1][0]] > most
        else:
            assert sizes[part[-1][0]] > most


def test_what_runs_at_once_stays_together() -> None:
    """Each CMDP has 20 runs, which share its arrays: a batch has one or two of them."""
    work, every = make_work(
        seeds=10, cmdps=[{"environment": "random", "parameters": SMALL | {"seed": [*range(6)]}}]
    )
    rates = dict.fromkeys(by_kind(every, work.models), 1.5 / 30)  # 40 are a minute
    batches = cut(every, work.models, work.wanted, rates, WorkerPool(1, "CPU"))
    assert [len(batch.runs) for batch in batches] == [20] * 6  # a quarter is 30
    few = cut(every[:20], work.models, work.wanted, rates, WorkerPool(2, "CPU"))
    assert [len(batch.runs) for batch in few] == [7, 7, 6]


def test_trials_are_small() -> None:
    work, every = mixed()
    found = trials(every, work.models, 8)
    assert [batch.algorithm for batch in found.values()] == [
        "regularized-primal-dual",
        "vanilla-dual",
    ]
    assert all(isinstance(batch, Batch) and len(batch.runs) == 8 for batch in found.values())
    assert [len(batch.runs) for batch in trials(every, work.models, 2048).values()] == [40, 20]
    assert trial_of(work.wanted).num_episodes == 30
    long = work.wanted.model_copy(update={"num_episodes": 100_000})
    assert trial_of(long).num_episodes == 300
    assert len(trial_of(long).settings.recorded) == 1


def test_other_sizes_are_another_kind() -> None:
    sizes = [SMALL, SMALL | {"num_states": 4}, SMALL | {"horizon": 2}]
    cmdps = [{"environment": "random", "parameters": size} for size in sizes]
    work, every = make_work(cmdps=cmdps)
    assert len(trials(every, work.models, 8)) == 3


@pytest.mark.whole
def test_a_batch_in_parts_is_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """CMDPs with many runs are run first, yet the rows are in the order of the batch."""
    work, every = make_work(seeds=[*range(7)], num_episodes=12)
    few = [run for run in every if run.configuration.seed < 3]  # of the first CMDP 6, of the other
    first, second = dict.fromkeys(run.fingerprint for run in every)
    chosen = [run for run in few if run.fingerprint == first]
    chosen += [run for run in every if run.fingerprint == second]
    batch = Batch(chosen)
    whole, _ = executing.run_one(work, batch)
    parts: list[int] = []
    plain = executing.run_one

    def counted(work: Work, batch: Batch, *rest: Any) -> Any:
        parts.append(len(batch.runs))
        return plain(work, batch, *rest)

    monkeypatch.setattr(executing, "run_one", counted)
    monkeypatch.setattr(runs, "_BATCH_RUNS", 4)
    found, failed = run_in_parts(work, batch)
    assert parts == [4, 4, 4, 2, 3, 3]
    assert (list(found.batch.runs), failed) == (chosen, [])
    assert found.tables["final"]["run"].to_list() == [run.identity for run in chosen]
    for name, table in whole.tables.items():
        assert_same_frames(found.tables[name], table, 1e-9)
