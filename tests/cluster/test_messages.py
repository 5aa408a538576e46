"""Orders arrive as they were sent; answers that are wrong are refused; nothing is unpickled."""

import functools
import io
import json
import pickle
from collections.abc import Callable
from typing import Any

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmdpax.experiments.cluster.cutting import Rate, cut, kind_of, trial_of, trials
from cmdpax.experiments.cluster.messages import (
    AnswerError,
    read_answer,
    read_header,
    read_order,
    read_rate,
    write_answer,
    write_header,
    write_model,
    write_order,
)
from cmdpax.experiments.executing import Work, run_one, table_schemas
from cmdpax.experiments.runs import Batch, Run, make_batches, make_models, make_runs
from cmdpax.experiments.specification import read_specification
from sweep_cases import SMALL, specification


def make_work(**changes: Any) -> tuple[Work, list[Run]]:
    """What a sweep hands to a cluster."""
    wanted = read_specification(specification(**changes))
    models = make_models(wanted)
    runs = make_runs(wanted, models)
    optima = {fingerprint: 1.0 + place for place, fingerprint in enumerate(models)}
    return Work(make_batches(runs, models, wanted), wanted, models, optima), runs


def files_of(work: Work) -> list[bytes]:
    """The CMDPs, as they travel."""
    return [write_model(model.cmdp) for model in work.models.values()]


# ------------------------------------------------------------------------------------------ orders

ORDERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "schedules": {
        "algorithms": [
            {
                "name": "regularized-primal-dual",
                "step_size": [0.1, "0.3*k^-0.2", {"initial": 0.3, "exponent": 0.5, "offset": 10}],
                "regularization": [0.02, "0.1*(k+3)^-0.25"],
                "margin": [0.0, "0.1*k^-0.5"],
                "max_multiplier": [3.5, 6],
            }
        ]
    },
    "optimism": {
        "algorithms": [
            {"name": "vanilla-dual", "optimism": ["theory", {"scale": 0.3, "rewards": "known"}]}
        ]
    },
    "options": {
        "observations": "bernoulli",
        "precision": "single",
        "record": "all",
        "unsafe_at": [0.25],
        "seeds": [7, 2**32 - 1],
    },
}


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_arrives_as_it_was_sent(name: str) -> None:
    work, _ = make_work(**ORDERS[name])
    for batch in work.batches:
        order = write_order(work, batch)
        json.loads(order)  # text, no pickled object
        found, found_batch = read_order(order, files_of(work))
        assert found_batch == batch
        assert found_batch.name == batch.name
        assert found.wanted == work.wanted
        used = {run.fingerprint for run in batch.runs}
        assert found.optima == {fingerprint: work.optima[fingerprint] for fingerprint in used}
        assert set(found.models) == used
        for fingerprint in used:
            assert found.models[fingerprint].name == work.models[fingerprint].name
            assert found.models[fingerprint].cmdp.fingerprint == fingerprint


# ----------------------------------------------------------------------------------------- answers


class Case:
    """A batch that was run, its answer, and what it is checked with."""

    def __init__(self) -> None:
        self.work, _ = make_work(algorithms=[{"name": "vanilla-dual", "step_size": [0.2, 0.4]}])
        (self.batch,) = self.work.batches
        work = self.work
        self.tables = run_one(self.batch, work.wanted, work.models, work.optima, lambda *_: None)
        self.schemas = table_schemas(work, self.batch)

    def read(self, files: Any) -> Any:
        return read_answer(self.batch, self.work, files, self.schemas)


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


def test_an_answer_arrives_as_it_was_sent(case: Case) -> None:
    found = case.read(write_answer(case.tables))
    assert list(found) == ["final", "curves"]
    assert all(found[name].equals(case.tables[name]) for name in found)


def with_column(table: str, **columns: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda tables: tables | {table: tables[table].with_columns(**columns)}


def with_rows(
    table: str, change: Callable[[polars.DataFrame], polars.DataFrame]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda tables: tables | {table: change(tables[table])}


EMPTY = polars.lit([], polars.List(polars.Float64))
WRONG: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "other run": (with_column("final", run=polars.lit("0" * 16)), "other runs"),
    "other CMDP": (with_column("final", cmdp=polars.lit("0" * 64)), "other runs"),
    "other seeds": (with_column("final", seed=polars.col("seed") + 1), "other runs"),
    "fewer runs": (with_rows("final", lambda table: table.head(-1)), "other runs"),
    "a run twice": (with_rows("final", lambda t: polars.concat([t, t.head(1)])), "other runs"),
    "other order": (with_rows("final", lambda table: table.reverse()), "other runs"),
    "no runs": (with_rows("final", lambda table: table.head(0)), "other runs"),
    "column more": (with_column("final", evil=polars.lit(1)), "other columns"),
    "column less": (with_rows("final", lambda table: table.drop("capped")), "other columns"),
    "other type": (with_column("final", seed=polars.col("seed").cast(str)), "other columns"),
    "objects": (with_column("final", run=polars.col("run").cast(polars.Binary)), "other columns"),
    "curves of others": (with_column("curves", run=polars.lit("0" * 16)), "curves are of other"),
    "other episodes": (with_column("curves", episode=polars.col("episode") + 1), "curves are of"),
    "fewer episodes": (with_rows("curves", lambda table: table.head(-1)), "curves are of other"),
    "no multipliers": (with_column("curves", multipliers=EMPTY), "multipliers are not those"),
    "exchanged": (lambda t: {"final": t["curves"], "curves": t["final"]}, "other columns"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_refused(case: Case, name: str) -> None:
    change, message = WRONG[name]
    with pytest.raises(AnswerError, match=message):
        case.read(write_answer(change(case.tables)))


class Trap:
    """Does harm when it is unpickled."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("it was unpickled",)


def csv_file() -> bytes:
    file = io.BytesIO()
    polars.DataFrame({"run": [1]}).write_csv(file)
    return file.getvalue()


@pytest.mark.parametrize("junk", [b"", b"PAR1", b"PAR1PAR1", pickle.dumps(Trap()), csv_file()])
def test_junk_is_refused(case: Case, junk: bytes) -> None:
    good = write_answer(case.tables)
    for files in ([junk, good[1]], [good[0], junk], [junk] * 2, [junk], [], [*good, junk]):
        with pytest.raises(AnswerError, match="not two Parquet tables"):
            case.read(files)


@given(data=st.data())
def test_damaged_files_are_refused_before_they_are_read(case: Case, data: st.DataObject) -> None:
    files = write_answer(case.tables)
    header = write_header("a", 1.0, None, files)
    assert read_header([header, *files]) == ("a", None)
    which = data.draw(st.integers(0, 1))
    damaged = bytearray(files[which])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    files[which] = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    with pytest.raises(AnswerError, match="damaged on its way"):
        read_header([header, *files])
    with pytest.raises(AnswerError, match="damaged on its way"):
        read_header([header])


@pytest.mark.parametrize(
    "files",
    [None, [], b"{}", ["{}"], [b""], [b"[]"], [b"{}"], [b'{"worker": 1}'], [pickle.dumps(Trap())]],
)
def test_a_wrong_header_is_refused(files: Any) -> None:
    with pytest.raises(AnswerError, match="an answer"):
        read_header(files)


def test_headers() -> None:
    assert read_header([write_header("a", 1.0, "no", [])]) == ("a", "no")
    assert read_header([write_header("a", 1.0, None, [b"x"]), b"x"]) == ("a", None)


@pytest.mark.parametrize(
    "files", [[], [b""], [b"[1]"], [b"[1, 2, 3]"], [b"[-1, 0]"], [b"[NaN, 0]"], [b'["a", {}]']]
)
def test_a_wrong_rate_is_refused(files: list[bytes]) -> None:
    with pytest.raises(AnswerError, match="a trial's answer"):
        read_rate(files)


def test_rates() -> None:
    assert read_rate([b"[0.5, 2]"]) == Rate(0.5, 2.0)


# ----------------------------------------------------------------------------------------- cutting


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


@given(quick=st.floats(0, 1e3), slow=st.floats(0, 1e3))
def test_all_runs_are_cut_into_batches_of_a_minute(quick: float, slow: float) -> None:
    work, runs = mixed()
    kinds = list(trials(runs, work.models))
    each = dict(zip(kinds, (quick, slow), strict=True))  # seconds per run
    rates = {kind: Rate(each[kind] / work.wanted.num_episodes, 0.0) for kind in kinds}
    pieces = cut(runs, work.models, work.wanted, rates)
    found = [run.identity for piece in pieces for run in piece.batch.runs]
    assert sorted(found) == sorted(run.identity for run in runs)
    for batch, seconds in pieces:
        (kind,) = {kind_of(run, work.models) for run in batch.runs}
        assert seconds == pytest.approx(len(batch.runs) * each[kind])
        assert seconds <= 60.1 or len(batch.runs) == 1  # a long run is alone
    for kind in kinds:
        sizes = [len(p.batch.runs) for p in pieces if kind_of(p.batch.runs[0], work.models) == kind]
        total = sum(sizes)
        if 0 < each[kind] <= 60:  # not in crumbs: half a minute, or as much as there is
            assert max(sizes) >= min(60 / each[kind] - 1, total // 2) / 2


def test_trials_are_small() -> None:
    work, runs = mixed()
    found = trials(runs, work.models)
    assert [batch.algorithm for batch in found.values()] == [
        "regularized-primal-dual",
        "vanilla-dual",
    ]
    assert all(isinstance(batch, Batch) and len(batch.runs) == 8 for batch in found.values())
    assert trial_of(work.wanted).num_episodes == 30
    long = work.wanted.model_copy(update={"num_episodes": 100_000})
    assert trial_of(long).num_episodes == 300
    assert len(trial_of(long).recorded()) == 1


def test_other_sizes_are_another_kind() -> None:
    sizes = [SMALL, SMALL | {"num_states": 4}, SMALL | {"horizon": 2}]
    cmdps = [{"environment": "random", "parameters": size} for size in sizes]
    work, runs = make_work(cmdps=cmdps)
    assert len(trials(runs, work.models)) == 3
