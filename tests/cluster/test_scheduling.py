"""Which batch next, without a cluster: nothing is lost, and nothing is tried for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmdpax.experiments.cluster.scheduling import BATCHES_IN_FLIGHT, MOST_ATTEMPTS, BatchQueue

SECONDS = st.lists(st.floats(0, 1e4), max_size=12)


@given(SECONDS, st.data())
def test_every_batch_ends_done_or_given_up(seconds: list[float], data: st.DataObject) -> None:
    schedule = BatchQueue(seconds)
    running: set[int] = set()
    waiting = set(range(len(seconds)))
    failures = dict.fromkeys(waiting, 0)
    starts = dict.fromkeys(waiting, 0)
    while schedule.unfinished:
        num_workers = data.draw(st.integers(0, 3), label="workers")
        while (place := schedule.start(num_workers)) is not None:
            assert place in waiting
            assert seconds[place] == max(seconds[other] for other in waiting)
            waiting.remove(place)
            running.add(place)
            starts[place] += 1
            assert schedule.attempts[place] == starts[place] == failures[place] + 1
            assert len(running) <= BATCHES_IN_FLIGHT * max(num_workers, 1)
        assert not waiting or len(running) >= BATCHES_IN_FLIGHT * max(num_workers, 1)
        assert schedule.num_running == len(running) > 0
        place = data.draw(st.sampled_from(sorted(running)), label="which ends")
        running.remove(place)
        if data.draw(st.booleans(), label="well"):
            schedule.finish(place)
            continue
        failures[place] += 1
        again = schedule.fail(place, data.draw(st.sampled_from([(), ("a",), ("b", "c")])))
        assert again == (failures[place] < MOST_ATTEMPTS)
        waiting |= {place} if again else set()
    assert schedule.num_given_up == sum(n == MOST_ATTEMPTS for n in failures.values())
    assert schedule.num_done == len(seconds) - schedule.num_given_up
    assert schedule.seconds_left == pytest.approx(0.0, abs=1e-6)
    assert all(1 <= starts[place] <= MOST_ATTEMPTS == 3 for place in starts)
    assert schedule.attempts == list(starts.values())


def test_it_avoids_the_workers_on_which_it_failed() -> None:
    schedule = BatchQueue([1.0])
    assert (schedule.start(1), schedule.attempts, schedule.failed_on) == (0, [1], [()])
    schedule.fail(0, ["a"])
    assert (schedule.start(1), schedule.attempts, schedule.failed_on) == (0, [2], [("a",)])
    schedule.fail(0)  # a worker that died has no name
    assert (schedule.start(1), schedule.attempts, schedule.failed_on) == (0, [3], [("a",)])


def test_seconds_left() -> None:
    schedule = BatchQueue([1.0, 5.0, 2.0])
    assert schedule.seconds_left == 8.0
    assert schedule.start(1) == 1
    assert schedule.seconds_left == 8.0
    schedule.finish(1)
    assert schedule.seconds_left == 3.0
    assert schedule.start(1) == 2
    schedule.finish(2, seconds=6.0)  # three times as slow as expected: so is the rest
    assert schedule.seconds_left == 3.0
    assert schedule.start(1) == 0
    for attempt in range(3):
        assert schedule.fail(0) == (attempt < 2)
        schedule.start(1)
    assert schedule.seconds_left == 0.0


def test_what_is_withdrawn_was_no_attempt() -> None:
    schedule = BatchQueue([1.0, 2.0])
    assert schedule.start(1) == 1
    schedule.withdraw(1)
    assert (schedule.num_running, schedule.seconds_left) == (0, 3.0)
    assert (schedule.start(1), schedule.attempts) == (1, [0, 1])
