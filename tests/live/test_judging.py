"""Values in drawn models: right on average, wide enough, and the same with the same seed."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import cmdpax
from cmdpax.live.beliefs import Counts
from cmdpax.live.judging import _draw, _evaluate, _learn, _rows_of, draw_values

H, S, A = 3, 3, 2


class World(NamedTuple):
    """A model with Bernoulli signals."""

    rows: np.ndarray  # [H or 1, S, A, S]
    means: np.ndarray  # [H or 1, J, S, A]
    initial: np.ndarray

    def value(self, policy: np.ndarray) -> np.ndarray:
        """Of every signal, in loops."""
        steps, found = len(self.rows), []
        for j in range(self.means.shape[1]):
            after = np.zeros(S)
            for h in reversed(range(H)):
                q = self.means[h % steps, j] + self.rows[h % steps] @ after
                after = (policy[h] * q).sum(axis=1)
            found.append(float(self.initial @ after))
        return np.array(found)

    def counts(self, episodes: int, generator: Any, policy: np.ndarray, **told: Any) -> Counts:
        """What an agent counts that plays a policy."""
        steps, num_signals = len(self.rows), self.means.shape[1]
        went = np.zeros((steps, S, A, S), int)
        sums = np.zeros((steps, num_signals, S, A))
        for _ in range(episodes):
            state = generator.choice(S, p=self.initial)
            for h in range(H):
                action = generator.choice(A, p=policy[h, state])
                seen = generator.random(num_signals) < self.means[h % steps, :, state, action]
                sums[h % steps, :, state, action] += seen
                after = generator.choice(S, p=self.rows[h % steps, state, action])
                went[h % steps, state, action, after] += 1
                state = after
        arrays = {"support": None, "sums": sums, "squares": sums, "signals": None}
        return Counts(went, initial=self.initial, **(arrays | told))


def draw_world(generator: Any, steps: int = 1, concentration: float = 1.0) -> World:
    rows = generator.dirichlet(np.full(S, concentration), size=(steps, S, A))
    return World(rows, generator.random((steps, 2, S, A)), np.array([0.5, 0.5, 0.0]))


def uniform() -> np.ndarray:
    return np.full((H, S, A), 1 / A)


def greedy(seed: int) -> np.ndarray:
    """A policy that is sure of itself."""
    return np.eye(A)[np.random.default_rng(seed).integers(A, size=(H, S))]


@pytest.mark.parametrize("steps", [1, H])
def test_the_mean_is_the_value_in_the_model_of_the_counts(steps: int) -> None:
    generator = np.random.default_rng(1)
    world = draw_world(generator, steps)
    counts = world.counts(3000, generator, uniform())
    visits = counts.transitions.sum(axis=-1)
    empirical = World(
        np.where(
            visits[..., None] > 0, counts.transitions / np.maximum(visits, 1)[..., None], 1 / S
        ),
        counts.sums / np.maximum(visits, 1)[:, None],
        world.initial,
    )
    policies = [uniform(), greedy(3)]
    values = draw_values(counts, policies, 0)
    assert values.shape == (400, 2, 2)
    for place, policy in enumerate(policies):
        np.testing.assert_allclose(
            values[:, place].mean(axis=0), empirical.value(policy), atol=0.02
        )
        assert (values[:, place].std(axis=0) < 0.08).all()
    cmdp = cmdpax.CMDP(
        empirical.rows,
        empirical.means[:, 0],
        np.moveaxis(empirical.means[:, 1:], 0, 1),
        [0.0],
        world.initial,
        H,
    )
    exact = cmdpax.evaluate(cmdp, policies[1])
    found = values[:, 1].mean(axis=0)
    np.testing.assert_allclose(found, [exact.value, *exact.constraint_values], atol=0.02)


def test_every_model_is_evaluated_as_in_loops() -> None:
    generator = np.random.default_rng(2)
    counts = draw_world(generator, H).counts(15, generator, uniform())
    policy = greedy(0)
    policy[1, 1] = [0.3, 0.7]
    used = _rows_of(counts, policy)
    rows = np.unique(np.concatenate(used))
    models = _draw(_learn(counts, rows), counts, rows, 20, np.random.default_rng(0))
    found = _evaluate(models, counts, policy, used)
    assert models.signals is not None
    for draw in range(20):
        rows, means = np.zeros((H * S * A, S)), np.zeros((2, H * S * A))
        for place, row in enumerate(models.rows):
            for slot, state in enumerate(models.states[place]):
                rows[row, state] += models.chances[draw, place, slot]
            rows[row, models.others[draw, place]] += models.rest[draw, place]
            means[:, row] = models.signals[draw, :, place]
        np.testing.assert_allclose(rows[models.rows].sum(axis=1), 1, atol=1e-12)
        assert ((means >= 0) & (means <= 1)).all()
        world = World(
            rows.reshape(H, S, A, S), np.moveaxis(means.reshape(2, H, S, A), 0, 1), counts.initial
        )
        np.testing.assert_allclose(found[draw], world.value(policy), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("concentration", "steps", "alike"),
    [(0.3, 1, True), (1.0, 1, True), (1.0, H, True), (1.0, H, False)],
)
def test_intervals_hold_the_truth_about_as_often_as_they_say(
    concentration: float, steps: int, alike: bool
) -> None:
    """Nine in ten, for a policy that was not chosen with the data, after ten episodes or more."""
    held = []
    for seed in range(150):
        generator = np.random.default_rng(seed)
        world, policy = draw_world(generator, 1 if alike else steps, concentration), greedy(seed)
        world = World(*(np.repeat(one, steps // len(one), axis=0) for one in world[:2]), world[2])
        counts = world.counts(int(generator.integers(10, 60)), generator, uniform())
        low, high = np.quantile(draw_values(counts, [policy], seed)[:, 0], [0.05, 0.95], axis=0)
        true = world.value(policy)
        held += ((low <= true) & (true <= high)).tolist()
    assert 0.83 <= np.mean(held) <= 0.99  # of 300 values


def test_steps_that_are_alike_say_something_about_each_other() -> None:
    generator = np.random.default_rng(3)
    same = draw_world(generator)
    world = World(np.repeat(same.rows, H, axis=0), np.repeat(same.means, H, axis=0), same.initial)
    counts = world.counts(60, generator, uniform())
    by_step = draw_values(counts, [greedy(0)], 0)[:, 0].std(axis=0)
    together = {
        name: getattr(counts, name).sum(axis=0, keepdims=True)
        for name in ("transitions", "sums", "squares")
    }
    known = draw_values(counts._replace(**together), [greedy(0)], 0)[:, 0].std(axis=0)
    apart = counts._replace(support=np.broadcast_to(np.arange(S), (H, S, A, S)))
    alone = draw_values(apart, [greedy(0)], 0)[:, 0].std(axis=0)  # lists of their own
    assert (known < 1.2 * by_step).all()
    assert (by_step < 0.9 * alone).all()


def test_a_coin_that_came_up_heads_is_not_certain() -> None:
    """Where all else is certain: how much a signal varies depends on its mean."""
    went = np.zeros((1, S, A, S), int)
    went[..., 0] = 50
    sums = np.zeros((1, 2, S, A))
    sums[0, :, 0, 0] = 25  # a coin
    sums[0, :, 1, 0] = [50, 25]  # certain, and another coin
    sums[0, :, 2, 1], went[0, 2, 1, 0] = 1, 1  # tried once, heads
    counts = Counts(went, None, sums, sums, None, np.eye(S)[2])
    policy = np.zeros((H, S, A))
    policy[:, :, 0] = policy[0, 2, 1] = 1.0
    policy[0, 2, 0] = 0.0
    first = draw_values(counts, [policy], 0)[:, 0, 1]
    assert first.std() > 0.1


def test_the_same_seed_draws_the_same_models() -> None:
    generator = np.random.default_rng(4)
    counts = draw_world(generator).counts(10, generator, uniform())
    one, other = greedy(1), greedy(2)
    first = draw_values(counts, [one, other], 7)
    np.testing.assert_array_equal(first, draw_values(counts, [one, other], 7))
    assert abs(first - draw_values(counts, [one, other], 8)).max() > 0
    both = draw_values(counts, [one, one], 7)
    np.testing.assert_array_equal(both[:, 0], both[:, 1])
    swapped = draw_values(counts, [other, one], 7)
    np.testing.assert_array_equal(swapped[:, ::-1], first)


def test_listed_successors() -> None:
    """The same counts in lists; where only one state may follow there is nothing to draw."""
    generator = np.random.default_rng(5)
    world = draw_world(generator)
    counts = world.counts(2000, generator, uniform())
    order = np.array([2, 0, 1])
    support = np.broadcast_to(np.append(order, -1), (1, S, A, S + 1))
    padded = np.concatenate([counts.transitions[..., order], np.zeros((1, S, A, 1), int)], axis=-1)
    listed = counts._replace(transitions=padded, support=support)
    for policy in (uniform(), greedy(3)):
        dense, lists = (draw_values(one, [policy], 0)[:, 0] for one in (counts, listed))
        np.testing.assert_allclose(dense.mean(axis=0), lists.mean(axis=0), atol=0.02)
    following = np.array([[1, 2], [2, 0], [0, 1]])[None, :, :, None]
    sure = World(np.eye(S)[following[..., 0]], generator.random((1, 2, S, A)), np.eye(S)[0])
    known = np.broadcast_to(sure.means, (H, 2, S, A))
    nothing = np.zeros((1, S, A, 1), int)
    certain = Counts(nothing, following, None, None, known, sure.initial)
    values = draw_values(certain, [greedy(1)], 0)[:, 0]
    expected = np.broadcast_to(sure.value(greedy(1)), values.shape)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_known_signals_leave_only_the_transitions_open() -> None:
    generator = np.random.default_rng(6)
    world = draw_world(generator)
    known = np.broadcast_to(world.means, (H, 2, S, A))
    told: dict[str, Any] = {"sums": None, "squares": None, "signals": known}
    counts = world.counts(3000, generator, uniform(), **told)
    values = draw_values(counts, [greedy(2)], 0)[:, 0]
    np.testing.assert_allclose(values.mean(axis=0), world.value(greedy(2)), atol=0.05)
    unknown = counts._replace(transitions=np.zeros((1, S, A, S), int))
    wide = draw_values(unknown, [greedy(2)], 0)[:, 0]
    assert (wide.std(axis=0) > 3 * values.std(axis=0)).all()
    played = (known * greedy(2)[:, None]).sum(axis=-1)  # [H, J, S]
    assert (wide >= played.min(axis=2).sum(axis=0) - 1e-9).all()
    assert (wide <= played.max(axis=2).sum(axis=0) + 1e-9).all()


def test_what_was_never_tried_is_the_same_everywhere() -> None:
    """It may be bad everywhere: a mean that is uniform must not average out."""
    nothing = np.zeros((H, S, A, S), int)
    sums = np.zeros((H, 2, S, A))
    counts = Counts(nothing, None, sums, sums, None, np.eye(S)[0])
    values = draw_values(counts, [uniform(), greedy(0)], 0)
    np.testing.assert_allclose(values[:, 0], values[:, 1], rtol=0, atol=1e-12)
    shares = values[:, 0] / H
    np.testing.assert_allclose(shares.mean(axis=0), 0.5, atol=0.06)
    np.testing.assert_allclose(shares.std(axis=0), 12**-0.5, atol=0.04)
    assert abs(np.corrcoef(shares.T)[0, 1]) < 0.2  # but every signal by itself


def test_only_the_rows_that_a_policy_plays_matter() -> None:
    """Actions that are not there have no counts, and are never played."""
    generator = np.random.default_rng(8)
    world, policy = draw_world(generator), np.broadcast_to(np.eye(A)[0], (H, S, A))
    counts = world.counts(500, generator, policy)
    assert counts.transitions[:, :, 1].sum() == 0
    values = draw_values(counts, [policy], 0)[:, 0]
    np.testing.assert_allclose(values.mean(axis=0), world.value(policy), atol=0.12)
    assert (values.std(axis=0) < 0.15).all()


def test_large_systems_are_judged_in_fewer_models(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(9)
    counts = draw_world(generator).counts(20, generator, uniform())
    monkeypatch.setattr("cmdpax.live.judging._WORK", 1.0)
    assert len(draw_values(counts, [uniform()], 0)) == 100
