"""Orders arrive as they were sent; answers that are wrong are refused; nothing is unpickled."""

import io
import json
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
from cluster_cases import make_work
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
from cmdpax.experiments.executing import Outcome, Work, made_here, run_one, table_schemas
from cmdpax.experiments.runs import Batch, make_batches
from sweep_cases import OWN, OWN_GRID


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
    "parameters of one's own": {"algorithms": [{"name": "vanilla-dual"}, OWN_GRID]},
    "optimism": {
        "algorithms": [
            {"name": "vanilla-dual", "optimism": ["theory", {"scale": 0.3, "rewards": "known"}]}
        ]
    },
    "an algorithm that workers do not have": {
        "algorithms": [{"name": "vanilla-dual"}, {"name": "cluster_learners:troubled"}]
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
    work, runs = make_work(**ORDERS[name])
    for batch in make_batches(runs, work.models, work.wanted):
        order = write_order(work, batch)
        json.loads(order)  # text, no pickled object
        found, found_batch = read_order(order, files_of(work))
        assert found_batch == batch
        assert found_batch.name == batch.name
        own = [grids for grids in work.wanted.algorithms if grids.name == batch.algorithm]
        assert list(found.wanted.algorithms) == own
        assert found.wanted.model_copy(update={"algorithms": work.wanted.algorithms}) == work.wanted
        used = {run.fingerprint for run in batch.runs}
        assert set(found.models) == used
        for fingerprint in used:
            model, sent = found.models[fingerprint], work.models[fingerprint]
            assert (model.name, model.optimum) == (sent.name, sent.optimum)
            assert model.cmdp.fingerprint == fingerprint


# ----------------------------------------------------------------------------------------- answers


class Case:
    """A batch that was run, its answer, and what it is checked with."""

    def __init__(self, **algorithm: Any) -> None:
        self.work, runs = make_work(algorithms=[algorithm])
        (self.batch,) = make_batches(runs, self.work.models, self.work.wanted)
        work = self.work
        self.done, self.failed = run_one(work, self.batch)
        self.tables = self.done.tables
        self.schemas = table_schemas(work, self.batch)

    def read(self, files: Any) -> Any:
        return read_answer(self.batch, self.work, files, self.schemas, self.done.made)

    def answer(self, tables: Any = None, failed: Sequence[Outcome] = ()) -> list[bytes]:
        return write_answer(self.done._replace(tables=tables or self.tables), failed)


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(name="vanilla-dual", step_size=[0.2, 0.4])


def test_an_answer_arrives_as_it_was_sent(case: Case) -> None:
    found, failed = case.read(case.answer())
    assert (found.batch, found.made) == (case.batch, made_here())
    assert list(found.tables) == ["final", "curves"]
    assert all(table.equals(case.tables[name]) for name, table in found.tables.items())
    assert failed == case.failed == []


def test_runs_that_failed_arrive_too(case: Case) -> None:
    first, *others = case.batch.runs
    failed = [Outcome.failure(Batch([first]), "a policy\x1b[31m of NaN")]
    rest = {
        name: table.filter(polars.col("run") != first.identity)
        for name, table in case.tables.items()
    }
    found, told = case.read(case.answer(tables=rest, failed=failed))
    assert list(found.batch.runs) == others
    assert found.tables["final"].equals(rest["final"])
    assert told == [failed[0]._replace(error="a policy[31m of NaN.")]
    with pytest.raises(AnswerError, match="other runs"):
        case.read(case.answer(failed=failed))  # its rows are there all the same
    nothing = {name: table.head(0) for name, table in case.tables.items()}
    everything = [Outcome.failure(case.batch, "no.")]
    found, told = case.read(case.answer(tables=nothing, failed=everything))
    assert (list(found.batch.runs), told) == ([], everything)


@pytest.mark.parametrize(
    "junk",
    [b"", b"{}x", b"[1]", b'[{"runs": ["0"], "error": "no"}]', b'[{"runs": [], "error": ""}]'],
)
def test_failed_runs_of_other_batches_are_refused(case: Case, junk: bytes) -> None:
    with pytest.raises(AnswerError, match="failed runs are not those of the batch"):
        case.read([*case.answer()[:2], junk])


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
    "other step sizes": (
        with_column("final", step_size=polars.col("step_size") * 2),
        "other parameters",
    ),
    "gaps": (with_column("final", capped=polars.lit(None, polars.Float64)), "final has gaps"),
    "gaps in curves": (
        with_column("curves", value=polars.lit(None, polars.Float64)),
        "curves has gaps",
    ),
    "regrets of no number": (
        with_column("final", strong_constraints=polars.lit(math.nan)),
        "final has accounts that are not numbers",
    ),
    "infinite values": (
        with_column("curves", value=polars.lit(math.inf)),
        "curves has accounts that are not numbers",
    ),
    "multipliers of no number": (
        with_column("curves", multipliers=polars.concat_list(polars.lit(math.nan))),
        "curves has accounts that are not numbers",
    ),
    "weak regrets of two": (
        with_column("curves", weak_by_constraint=polars.concat_list("value", "value")),
        "weak_by_constraint are not those",
    ),
    "no multipliers": (with_column("curves", multipliers=EMPTY), "multipliers are not those"),
    "exchanged": (lambda t: {"final": t["curves"], "curves": t["final"]}, "other columns"),
}


def test_parameters_of_ones_own_are_checked_too() -> None:
    own = Case(name=OWN, gain=[0.2, 0.4])
    found, _ = own.read(own.answer())
    assert found.tables["final"]["gain"].unique().sort().to_list() == [0.2, 0.4]
    assert found.tables["final"]["mode"].unique().to_list() == ["dual"]
    for change, message in (
        (with_column("final", gain=polars.col("gain") + 1), "other parameters"),
        (with_column("final", mode=polars.lit("primal-dual")), "other parameters"),
        (with_column("final", gain=polars.lit(None, polars.Float64)), "other parameters"),
        (with_rows("final", lambda table: table.drop("mode")), "other columns"),
        (with_column("final", step_size=polars.lit(0.1)), "other columns"),
    ):
        with pytest.raises(AnswerError, match=message):
            own.read(own.answer(tables=change(own.tables)))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_refused(case: Case, name: str) -> None:
    change, message = WRONG[name]
    with pytest.raises(AnswerError, match=message):
        case.read(case.answer(tables=change(case.tables)))


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
    final, curves, failed = good = case.answer()
    for files in (
        [junk, curves, failed],
        [final, junk, failed],
        [junk] * 3,
        [final, curves],
        [junk],
        [],
        [*good, junk],
    ):
        with pytest.raises(AnswerError, match="not two Parquet tables"):
            case.read(files)


WELL: dict[str, Any] = {"worker": "a", "seconds": 1.0, "made": made_here()}


@given(data=st.data())
def test_damaged_files_are_refused_before_they_are_read(case: Case, data: st.DataObject) -> None:
    files = case.answer()
    header = write_header(files, **WELL)
    assert read_header([header, *files]) == tuple(WELL.values())
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


@pytest.mark.parametrize(
    ("error", "told"), [("no", "no."), ("it is NaN.", "it is NaN."), ("", "A worker did not say")]
)
def test_what_a_worker_reports_is_told_as_a_sentence(error: str, told: str) -> None:
    with pytest.raises(AnswerError) as raised:
        read_header([write_header([], **WELL, error=error)])
    assert str(raised.value).startswith(told)
    assert str(raised.value).endswith(".")
    assert raised.value.workers == ("a",)


def test_a_header_is_read_as_it_was_written() -> None:
    assert read_header([write_header([b"x"], **WELL), b"x"]) == tuple(WELL.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"seconds": -1.0},
        {"seconds": float("nan")},
        {"seconds": "soon"},
        {"seconds": 10**400},
        {"made": {}},
        {"made": {"versions": [], "device": "cpu"}},
        {"made": {"versions": None, "device": "cpu"}},
    ],
)
def test_a_header_with_wrong_entries_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(AnswerError, match="an answer has no header"):
        read_header([write_header([], **(WELL | changes))])


def test_texts_of_a_header_are_short() -> None:
    long = {"versions": {"cmdpax": cmdpax.__version__, "x" * 999: "y" * 999}, "device": "z" * 9999}
    _, _, made = read_header([write_header([], **(WELL | {"made": long}))])
    assert len(json.dumps(made)) < 1000


def test_an_answer_of_another_version_is_refused() -> None:
    made = WELL["made"] | {"versions": {"cmdpax": "0.0.1"}}
    with pytest.raises(AnswerError, match=r"a worker has cmdpax 0\.0\.1, the driver .*; install"):
        read_header([write_header([], **(WELL | {"made": made}))])


@pytest.mark.parametrize(
    "files", [[], [b""], [b"[1]"], [b"[1, 2, 3]"], [b"[-1, 0]"], [b"[NaN, 0]"], [b'["a", {}]']]
)
def test_a_wrong_rate_is_refused(files: list[bytes]) -> None:
    with pytest.raises(AnswerError, match="a trial's answer"):
        read_rate(files)


def test_rates() -> None:
    assert read_rate([b"[0.5, 2]"]) == (0.5, 2.0)
