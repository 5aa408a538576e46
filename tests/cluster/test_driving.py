"""The driver, with workers that fail as ordered: what is retried, refused, held and said."""

import contextlib
import re
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import polars
import pytest

from cluster_fakes import Case, FakeError, FakeRay
from cmdpax.errors import ClusterError, CmdpaxWarning
from cmdpax.experiments import executing
from cmdpax.experiments.cluster import cutting, plan_on_cluster
from cmdpax.experiments.cluster.driving import Dispatcher
from cmdpax.experiments.cluster.messages import AnswerError, write_header
from cmdpax.experiments.cluster.scheduling import WorkerPool
from cmdpax.experiments.executing import Work, made_here, run_one
from cmdpax.experiments.runs import Batch
from report_cases import invented
from sweep_cases import assert_same_frames

pytestmark = pytest.mark.usefixtures("ray_works")


def found_in(outcomes: list[Any]) -> list[str]:
    return [run.identity for one in outcomes for run in one.batch.runs]


@pytest.mark.whole
def test_all_batches_come_back_with_the_numbers_of_this_process(
    make_case: Callable[..., Case],
) -> None:
    case = make_case()
    outcomes = case.run()
    assert sorted(found_in(outcomes)) == sorted(run.identity for run in case.runs)
    for outcome in outcomes:
        assert outcome.error is None
        assert outcome.made == made_here()
        expected, _ = run_one(case.work, outcome.batch)
        for name, table in expected.tables.items():
            assert_same_frames(outcome.tables[name], table, 1e-9)
    assert all(options["num_cpus"] == 1 for options in case.ray.asked)
    assert not any("max_calls" in options for options in case.ray.asked)
    assert all(options["max_retries"] == 0 for options in case.ray.asked)
    assert case.ray.most_pending <= 2 * 2
    assert case.said[-1] == "2 CPU workers, 4 of 4 batches done, 0 running"
    assert case.seconds_left == 0.0
    counts = [re.findall(r", (\d) of 4 batches done", text) for text in case.said]
    assert counts == sorted(counts)


def failing(times: int, what: Callable[[], list[bytes]], trials: int = 1) -> Any:
    """The answers after the trials are spoilt so often."""
    seen = Counter[str]()

    def act(worker: str, files: list[bytes]) -> list[bytes]:
        seen["calls"] += 1
        if not trials < seen["calls"] <= trials + times:
            return files
        return what()

    return act


def raising() -> list[bytes]:
    raise FakeError("The node died.\nIt was terminated.")


def an_error(worker: str) -> list[bytes]:
    return [write_header([], worker, 0.1, made_here(), "ValueError: no")]


def test_a_batch_that_fails_is_tried_on_another_worker(make_case: Callable[..., Case]) -> None:
    case = make_case(size=8)
    case.ray.act = failing(1, lambda: an_error(case.ray.ran_on[-1]))
    (outcome,) = case.run()
    assert outcome.error is None
    _, first, second = case.ray.ran_on
    assert first != second
    strategy = case.ray.asked[-1]["scheduling_strategy"]
    assert (strategy.node_id, strategy.soft) == (second, False)


def test_a_single_worker_tries_again(make_case: Callable[..., Case]) -> None:
    case = make_case(size=8, ray=FakeRay(["a"]))
    case.ray.act = failing(2, lambda: an_error("a"))
    (outcome,) = case.run()
    assert outcome.error is None
    asked = [options.get("scheduling_strategy") for options in case.ray.asked]
    assert asked == [None, None, "SPREAD", "SPREAD"]


def test_a_batch_does_not_wait_for_another_worker_that_is_gone(
    make_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cmdpax.experiments.cluster.driving._SECONDS_BETWEEN_LOOKS", 1e-9)
    case = make_case(size=8)
    case.ray.act = failing(1, lambda: an_error(case.ray.ran_on[-1]))
    submit = case.ray.submit

    def submitted(function: Any, options: dict[str, Any], arguments: Any) -> Any:
        if hasattr(options.get("scheduling_strategy"), "node_id"):
            case.ray.workers = [case.ray.ran_on[-1]]  # the other one dies
        return submit(function, options, arguments)

    monkeypatch.setattr(case.ray, "submit", submitted)
    (outcome,) = case.run()
    assert outcome.error is None
    assert case.ray.ran_on[-1] == case.ray.ran_on[-2]
    asked = [hasattr(options.get("scheduling_strategy"), "node_id") for options in case.ray.asked]
    assert asked == [False, False, True, False]


@pytest.mark.parametrize(
    ("what", "error"),
    [
        (raising, "FakeError: The node died."),
        (lambda: an_error("a"), "ValueError: no"),
        (lambda: [b"junk"], "an answer has no header."),
        (lambda: [write_header([], "a", 1.0, made_here())], "not two Parquet tables"),
    ],
    ids=["dead", "error", "junk", "nothing"],
)
def test_twice_is_retried_and_three_times_is_given_up(
    make_case: Callable[..., Case], what: Callable[[], list[bytes]], error: str
) -> None:
    case = make_case(size=8)
    case.ray.act = failing(2, what)
    (outcome,) = case.run()
    assert outcome.error is None
    assert len(case.ray.ran_on) == 1 + 3
    case = make_case(size=8)
    case.ray.act = failing(3, what)
    (outcome,) = case.run()
    assert outcome.error is not None
    assert outcome.attempts == 3
    assert error in outcome.error
    assert "\n" not in outcome.error
    assert case.said[-1].endswith(", 1 failed")


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (
            lambda worker: [write_header([], worker, 1.0, OLD)],
            "a worker has cmdpax 0.0.1",
        ),
        (
            lambda worker: [write_header([b"x"], worker, 1.0, made_here())],
            "damaged on its way",
        ),
        (
            lambda worker: raised("cut", f"address of {worker}", ImportError("a\nno module x")),
            "ImportError: no module x",
        ),
        (lambda worker: raised(f"\x1b[36mmemory\x1b[39m ran out on {worker}\nmore"), "memory ran"),
    ],
    ids=["version", "damage", "import", "memory"],
)
def test_where_it_failed_is_found_out(
    make_case: Callable[..., Case],
    monkeypatch: pytest.MonkeyPatch,
    what: Callable[[str], list[bytes]],
    text: str,
) -> None:
    """One of two workers always fails: nothing is given up."""
    case = make_case()
    reasons: list[str] = []
    checked = Dispatcher._checked

    def watched(*arguments: Any) -> Any:
        try:
            return checked(*arguments)
        except AnswerError as error:
            reasons.append(str(error))
            raise

    monkeypatch.setattr(Dispatcher, "_checked", watched)
    case.ray.act = lambda worker, files: what(worker) if worker == "a" else files
    outcomes = case.run()
    assert all(one.error is None for one in outcomes)
    assert "a" in case.ray.ran_on
    assert all(text in reason for reason in reasons)
    assert reasons


OLD = made_here() | {"versions": {"cmdpax": "0.0.1"}}


def raised(text: str, *more: Any) -> list[bytes]:
    raise FakeError(text, *more)


def test_what_is_in_flight_is_cancelled_when_nobody_wants_it(
    make_case: Callable[..., Case],
) -> None:
    case = make_case()
    outcomes = case.driver.run(case.driver.cut(case.runs), case.say)
    next(outcomes)
    assert case.ray.pending == 2
    outcomes.close()
    assert case.ray.pending == 0


def test_nobody_is_there(make_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cmdpax.experiments.cluster.driving._SECONDS_BETWEEN_LOOKS", 1e-9)
    monkeypatch.setattr("cmdpax.experiments.cluster.driving._SECONDS_ALONE", 1e-9)
    case = make_case(ray=FakeRay([]))
    waits = 0

    def wait(*arguments: Any, **options: Any) -> Any:
        nonlocal waits
        waits += 1
        if waits == 10:
            case.ray.workers.append("a")
        return FakeRay.wait(case.ray, *arguments, **options)

    monkeypatch.setattr(case.ray, "wait", wait)
    with pytest.warns(CmdpaxWarning, match="has no workers; waiting until some join") as warned:
        assert len(case.run()) == 4
    assert len(warned) == 1


def test_a_plan_says_that_its_trial_failed(
    make_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_case()
    case.ray.act = failing(3, raising, trials=0)
    cluster = case.driver._cluster
    monkeypatch.setattr(
        "cmdpax.experiments.cluster.connected", lambda address: contextlib.nullcontext(cluster)
    )
    with pytest.raises(ClusterError, match=r"a trial of regularized-primal-dual failed .* died"):
        plan_on_cluster("auto", case.runs, case.work)


def test_the_rest_goes_on(make_case: Callable[..., Case]) -> None:
    case = make_case()
    unlucky: list[str] = []

    def act(worker: str, files: list[bytes]) -> list[bytes]:
        if len(files) == 4 and len(unlucky) < 3:
            unlucky.append(worker)
            raise FakeError("no")
        return files

    case.ray.act = act
    outcomes = case.run()
    assert sorted(found_in(outcomes)) == sorted(run.identity for run in case.runs)
    assert sum(one.error is None for one in outcomes) >= 3


def test_an_answer_to_another_order_is_refused(make_case: Callable[..., Case]) -> None:
    """As a worker would that mixes up two batches."""
    case = make_case()
    kept: list[list[bytes]] = []

    def act(worker: str, files: list[bytes]) -> list[bytes]:
        kept.append(files)
        return kept[1] if len(kept) > 1 else files  # the first is that of the trial

    case.ray.act = act
    outcomes = case.run()
    failed = [one for one in outcomes if one.error is not None]
    assert len(failed) == 3
    assert all("other runs than those" in one.error for one in failed)


def test_a_trial_that_fails_leaves_it_to_the_batches(make_case: Callable[..., Case]) -> None:
    case = make_case()
    case.ray.act = failing(3, raising, trials=0)
    outcomes = case.run()
    assert all(one.error is None for one in outcomes)
    assert len(outcomes) == 4


def test_accelerators_are_asked_for(
    make_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Larger trials, larger batches, and on all cores of their process."""
    crews: list[WorkerPool] = []
    case = make_case(ray=FakeRay(["a"], "GPU"), seeds=8)  # 32 runs: more than a trial on a core has
    monkeypatch.setattr(cutting, "_most_runs", lambda *taken: crews.append(taken[-1]) or 32)
    trialled: list[int] = []
    plain = cutting.run_in_parts

    def counted(work: Work, batch: Batch) -> Any:
        trialled.append(len(batch.runs))
        return plain(work, batch)

    monkeypatch.setattr(cutting, "run_in_parts", counted)
    outcomes = case.run()
    assert all(one.error is None for one in outcomes)
    assert all(options["num_gpus"] == 1 for options in case.ray.asked)
    assert not any("max_calls" in options for options in case.ray.asked)
    assert all(options["num_cpus"] == 1 for options in case.ray.asked)
    assert not any("runtime_env" in options for options in case.ray.asked)
    assert trialled == [32, 32]
    assert crews == [WorkerPool(1, "GPU")]
    assert case.said[0].startswith("1 GPU worker, 0 of 1 batches done, 1 running")


@pytest.mark.whole
def test_several_accelerators_of_a_machine_have_a_process_per_batch(
    make_case: Callable[..., Case],
) -> None:
    ray = FakeRay(["a"], "GPU")
    ray.each = 2.0
    case = make_case(ray=ray)
    assert all(one.error is None for one in case.run())
    assert all(options["max_calls"] == 1 for options in case.ray.asked)
    assert case.said[0].startswith("2 GPU workers, ")
    assert case.driver._cluster.pool() == WorkerPool(2, "GPU", several=True)


@pytest.mark.whole
def test_memory_is_flat_with_twenty_thousand_runs(
    make_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are taken one by one, and nothing of them is kept."""
    monkeypatch.setattr(executing, "run_batch", invented)
    case = make_case(size=512, seeds=5_000, record=4, num_episodes=8)
    batches = case.driver.cut(case.runs)
    assert len(case.runs) == 20_000
    assert len(batches) == 40
    alive: list[weakref.ref[polars.DataFrame]] = []
    count = most = 0
    for outcome in case.driver.run(batches, case.say):
        assert outcome.error is None
        count += len(outcome.batch.runs)
        alive = [one for one in alive if one() is not None]
        alive += [weakref.ref(table) for table in outcome.tables.values()]
        most = max(most, len(alive))
        del outcome
    assert count == 20_000
    assert case.ray.most_pending <= 2 * 2  # two per worker
    assert case.ray.most_alive <= 2 * 2 + 1  # and the one that was read
    assert most == 2  # of one batch


def test_nobody_waits_for_the_last_accelerator_when_it_is_gone(
    make_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cmdpax.experiments.cluster.driving._SECONDS_BETWEEN_LOOKS", 1e-9)
    case = make_case(ray=FakeRay(["a"], "GPU"))

    def act(worker: str, files: list[bytes]) -> list[bytes]:
        if len(case.ray.ran_on) == 2:  # the trial and one batch
            case.ray.kind = "CPU"
        return files

    case.ray.act = act
    outcomes = case.run()
    assert sorted(found_in(outcomes)) == sorted(run.identity for run in case.runs)
    assert all(one.error is None for one in outcomes)
    assert len(case.ray.ran_on) == 1 + 4  # none twice
    assert [options.get("num_gpus") for options in case.ray.asked] == [1, 1, 1, None, None, None]


@pytest.mark.parametrize(
    ("workers", "kind", "text"),
    [
        (1, "CPU", "1 CPU worker, 0 of 4 batches done, 1 running"),
        (3, "GPU", "3 GPU workers, 0 of 4 batches done, 3 running"),
        (0, "CPU", "0 CPU workers, 0 of 4 batches done, 0 running"),
    ],
)
def test_what_is_said(make_case: Callable[..., Case], workers: int, kind: str, text: str) -> None:
    case = make_case(ray=FakeRay([str(one) for one in range(workers)], kind))
    batches = [Batch(case.runs[first : first + 2]) for first in range(0, 8, 2)]
    dispatcher = Dispatcher(case.driver._cluster, {}, case.work, batches)
    while dispatcher._queue.start(workers) is not None:
        pass
    dispatcher._tell(case.say)
    assert case.said == [text]
    assert case.seconds_left == (0.0 if workers else None)


def test_a_worker_that_joins_is_counted(
    make_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cmdpax.experiments.cluster.driving._SECONDS_BETWEEN_LOOKS", 1e-9)
    case = make_case(size=1, ray=FakeRay(["a"]))

    def act(worker: str, files: list[bytes]) -> list[bytes]:
        if len(case.ray.ran_on) == 3:
            case.ray.workers.append("b")
        return files

    case.ray.act = act
    assert len(case.run()) == 8
    assert {text[:12] for text in case.said} == {"1 CPU worker", "2 CPU worker"}
    assert "b" in case.ray.ran_on
