"""Runs may be the last axis of everything, as accelerators like it: the numbers are the same."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from cmdpax.jax_context import cast
from cmdpax.learning.loop import (
    Design,
    Task,
    account_block,
    advance,
    no_sums,
    stack_runs,
    start,
)
from cmdpax.learning.settings import Configuration
from configurations import configured, designed
from lanes import quick_or_whole
from learning_cases import learn, model

NUM_RUNS, NUM_EPISODES = 3, 6
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""A layout is a matter of the program, not of how well it is compiled."""


class Case(NamedTuple):
    """How models are stored, and what is known of them."""

    lists: bool
    stacked: bool
    optimism: cmdpax.Optimism

    def cmdps(self) -> list[cmdpax.CMDP]:
        """One, or one per run."""
        seeds = range(NUM_RUNS if self.stacked else 1)
        if self.lists:
            make = functools.partial(cmdpax.environments.make, "gridworld", layout="S1G", horizon=2)
            return [make(slip=0.1 + 0.1 * seed) for seed in seeds]
        return [model(2, seed=seed, horizon=2) for seed in seeds]

    def together(self) -> Any:
        """As JAX arrays."""
        if not self.stacked:
            return cast(self.cmdps()[0], float)
        return jax.tree.map(lambda *arrays: jnp.asarray(np.stack(arrays)), *self.cmdps())


KNOWN, ESTIMATED = cmdpax.Optimism.empirical(), cmdpax.Optimism.live()
CASES = {
    "dense, known": Case(False, False, KNOWN),
    "lists, estimated": Case(True, False, ESTIMATED),
    "dense, stacked, known": Case(False, True, KNOWN),
    "lists, stacked, estimated": Case(True, True, ESTIMATED),
}
LEARNERS = [  # every new pair of algorithm and case compiles anew, but for the vanilla primal-dual
    ("regularized-primal-dual", "dense, known"),
    ("regularized-primal-dual", "lists, stacked, estimated"),
    ("vanilla-primal-dual", "dense, known"),
    ("vanilla-primal-dual", "lists, stacked, estimated"),
    ("regularized-dual", "lists, estimated"),
    ("vanilla-dual", "dense, stacked, known"),
]


def configurations_of(algorithm: str, optimism: cmdpax.Optimism) -> list[Configuration]:
    return [
        configured(algorithm, run, optimism=optimism, step_size=0.5 + 0.2 * run)
        for run in range(NUM_RUNS)
    ]


def runs_at(tree: Any, axis: int) -> Any:
    """The last axis at another place."""
    return jax.tree.map(lambda array: jnp.moveaxis(array, -1, axis), tree)


def assert_close(found: Any, expected: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize(
    ("algorithm", "name"),
    [quick_or_whole(*learner, quick=learner[1] == "dense, known") for learner in LEARNERS],
)
def test_states_and_episodes(algorithm: str, name: str) -> None:
    case = CASES[name]
    chosen = configurations_of(algorithm, case.optimism)
    cmdp, runs = case.together(), stack_runs(case.cmdps()[0].sizes, chosen, NUM_EPISODES, float)
    kept = {"bernoulli": True, "keep_log": True, "keep_log_policies": True}
    plain = designed(chosen[0], stacked=case.stacked, **kept)

    def played(design: Design) -> tuple[Any, Any, Any]:
        begun = quick_start(design, cmdp, runs)
        count = jnp.int32(NUM_EPISODES)
        return begun, *quick_advance(design, cmdp, runs, begun, jnp.int32(1), count, 8)

    begun, ended, (policies, *others) = played(plain._replace(runs_last=True))
    expected = played(plain)
    assert_close((runs_at(begun, 0), runs_at(ended, 0)), expected[:2])
    assert_close((runs_at(policies, 1), *others), expected[2])
    assert np.ptp(np.asarray(policies), axis=-1).max() > 1e-3  # the runs differ


quick_start = jax.jit(start.__wrapped__, static_argnames="design", compiler_options=QUICK)
quick_advance = jax.jit(
    advance.__wrapped__, static_argnames=("design", "size"), compiler_options=QUICK
)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_accounts(case: Case) -> None:
    cmdp, sizes = case.together(), case.cmdps()[0].sizes
    shape = (8, NUM_RUNS, sizes.horizon, sizes.num_states)
    policies = np.random.default_rng(0).dirichlet(np.ones(sizes.num_actions), shape)
    nothing = no_sums(NUM_RUNS, 1 + sizes.num_constraints, 2, float)
    found, expected = (
        account_block(
            cmdp,
            jnp.asarray([0.5, 0.6, 0.7]),
            jnp.asarray([0.0, 0.05]),
            jnp.asarray(np.moveaxis(policies, 1, -1) if runs_last else policies),
            jnp.int32(NUM_EPISODES),
            nothing,
            case.stacked,
            runs_last,
        )
        for runs_last in (True, False)
    )
    assert_close(found, expected)
    cmdps = case.cmdps() if case.stacked else case.cmdps() * NUM_RUNS
    for run, one in enumerate(cmdps):
        for episode in range(NUM_EPISODES):
            reached = cmdpax.evaluate(one.with_arrays(), policies[episode, run])
            values = [reached.value, *reached.constraint_values]
            np.testing.assert_allclose(found[1].values[episode, run], values, rtol=0, atol=1e-12)


@pytest.mark.whole
def test_a_batch_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cmdpax.learning.group.block_size", lambda *sizes: 16)
    monkeypatch.setattr("cmdpax.learning.workers.num_cores", lambda: 1)
    chosen: dict[str, Any] = {"log": True, "potential": True, "record": [7]}
    expected = learn(model(1, horizon=2), **chosen)
    designs = []

    def runs_last(task: Task) -> Task:
        designs.append(task.design._replace(runs_last=True))
        return task._replace(design=designs[-1])

    monkeypatch.setattr("cmdpax.learning.workers._on_accelerator", runs_last)
    found = learn(model(1, horizon=2), **chosen)
    assert designs
    assert found.policy.shape == (2, 2, 3, 2)
    ours, theirs = (
        {name: value for name, value in vars(history).items() if name not in ("manifest", "words")}
        for history in (found, expected)
    )
    assert_close(ours, theirs)
