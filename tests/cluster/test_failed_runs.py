"""The driver, with learners that are wrong: their runs fail once, and the others are done."""

from collections.abc import Callable

import pytest

from cluster_fakes import Case

pytestmark = pytest.mark.usefixtures("ray_works")
HALF = {"name": "broken_learners:wrong_if_regularized", "regularization": [0.0, 1.0]}


def test_runs_that_cannot_be_accounted_for_are_failed_once(make_case: Callable[..., Case]) -> None:
    """The others of their batch are done, and nobody tries them again."""
    case = make_case(size=8, algorithms=[HALF])
    done, failed = case.run()
    assert done.error is None
    assert failed.error is not None
    for outcome, tau in ((done, 0.0), (failed, 1.0)):
        chosen = [run.configuration.parameters for run in outcome.batch.runs]
        assert [one.regularization.initial for one in chosen] == [tau] * 4
    assert done.tables["final"]["run"].to_list() == [run.identity for run in done.batch.runs]
    assert failed.attempts == 1
    assert "not finite numbers, first in episode 7 (seed 0); choose" in failed.error
    assert len(case.ray.ran_on) == 1 + 1  # the trial, and the batch once


def test_a_learner_that_is_none_fails_and_the_others_are_done(
    make_case: Callable[..., Case],
) -> None:
    case = make_case(size=8, algorithms=[{"name": "broken_learners:nothing"}, HALF], seeds=1)
    outcomes = case.run()
    (failed,) = (one for one in outcomes if one.batch.algorithm.endswith("nothing"))
    assert failed.error is not None
    assert failed.error.startswith("the learner broken_learners:nothing returned None from its")
    assert any(one.error is None for one in outcomes)
