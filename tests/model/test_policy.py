"""A policy is an array that goes where arrays go, and prints as a table."""

import copy
import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cmdpax
import strategies

# Two machines that wear: a new one is used, a worn one is repaired now and then.
CMDP = cmdpax.CMDP(
    transitions=[[[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.8, 0.2]]]],
    rewards=[[[1.0, 0.0], [0.4, 0.0]]],
    constraint_rewards=[],
    thresholds=[],
    initial=[1.0, 0.0],
    horizon=4,
    state_names=["new", "worn"],
    action_names=["run", "repair"],
)
USE, REPAIR = [1.0, 0.0], [0.0, 1.0]
STEPS = [[USE, REPAIR], [USE, REPAIR], [USE, [0.25, 0.75]], [USE, USE]]


def policy() -> cmdpax.Policy:
    return cmdpax.Policy(STEPS, CMDP)


def lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


class TestArray:
    def test_it_is_an_array(self) -> None:
        found = policy()
        assert isinstance(found, np.ndarray)
        assert (found.shape, found.dtype) == ((4, 2, 2), np.float64)
        assert type(np.asarray(found)) is np.ndarray
        np.testing.assert_array_equal(found, STEPS)

    @pytest.mark.parametrize(
        "compute",
        [
            lambda p: p[0],
            lambda p: p[:2],
            lambda p: p[..., None],
            lambda p: p[p > 0],
            lambda p: next(iter(p)),
            lambda p: p + p,
            lambda p: 2 * p,
            lambda p: -p,
            lambda p: p == p,
            lambda p: np.log1p(p),
            lambda p: p.sum(axis=-1),
            lambda p: p.mean(axis=0),
            lambda p: p @ np.ones(2),
            lambda p: np.add(p, p, out=np.zeros(p.shape)),
            lambda p: np.einsum("hsa->hs", p),
            lambda p: np.stack([p, p]),
            lambda p: np.where(p > 0, p, 0.0),
            lambda p: np.array(p),
            lambda p: p.copy(),
            lambda p: p.argmax(axis=-1),
            lambda p: p.nonzero()[0],
            lambda p: p.reshape(-1),
            lambda p: p.transpose(2, 0, 1),
            lambda p: p.astype(np.float32),
            lambda p: p.round(1),
            np.squeeze,
            np.argsort,
            np.round,
        ],
    )
    def test_what_is_computed_is_a_plain_array(self, compute) -> None:
        found, expected = compute(policy()), compute(np.array(STEPS))
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("compute", [np.max, np.sum, lambda p: p[0, 0, 0], lambda p: p.min()])
    def test_single_numbers(self, compute) -> None:
        assert type(compute(policy())) is np.float64

    @pytest.mark.parametrize("view", [lambda p: p.T, lambda p: p.mT, lambda p: p.view()])
    def test_other_views_print_as_arrays_and_know_no_names(self, view) -> None:
        found, expected = view(policy()), view(np.array(STEPS))
        assert (repr(found), str(found)) == (repr(expected), str(expected))
        assert (found.words, found.reached, found.fingerprint) == (
            cmdpax.Policy(STEPS).words,
            None,
            None,
        )
        again = pickle.loads(pickle.dumps(found))
        assert type(again) is np.ndarray
        assert copy.copy(found).dtype == found.dtype

    def test_nobody_can_change_it(self) -> None:
        given = np.array(STEPS)
        found = cmdpax.Policy(given, CMDP)
        given[:] = 0.5
        np.testing.assert_array_equal(found, STEPS)
        for change in (
            lambda: found.__setitem__(0, 0.5),
            lambda: found.reached.__setitem__(0, 0.5),
            lambda: np.add(found, 1.0, out=found),
        ):
            with pytest.raises(ValueError, match="read-only"):
                change()
        found.copy()[:] = 0.5

    def test_it_goes_into_every_function(self) -> None:
        found, plain = policy(), np.array(STEPS)
        assert cmdpax.evaluate(CMDP, found).value == cmdpax.evaluate(CMDP, plain).value
        played = cmdpax.account(CMDP, np.stack([found, found]))
        assert played.value[0] == pytest.approx(cmdpax.evaluate(CMDP, plain).value)
        doubled = jax.jit(lambda array: 2 * array)(found)
        assert isinstance(doubled, jax.Array)
        np.testing.assert_array_equal(doubled, 2 * plain)
        for convert in (jnp.asarray, jax.device_put, jax.vmap(jnp.sum)):
            assert isinstance(convert(found), jax.Array)
        assert isinstance(found * jnp.ones((4, 2, 2)), jax.Array)
        file = io.BytesIO()
        np.save(file, found)
        file.seek(0)
        np.testing.assert_array_equal(np.load(file), plain)

    @pytest.mark.parametrize(
        "again", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
    )
    def test_copies_keep_everything(self, again) -> None:
        found, expected = again(policy()), policy()
        assert type(found) is cmdpax.Policy
        assert (str(found), found.fingerprint) == (str(expected), CMDP.fingerprint)
        np.testing.assert_array_equal(found.reached, expected.reached)
        assert not found.flags.writeable

    @given(data=st.data())
    @settings(max_examples=15)
    def test_how_often_states_are_reached(self, data: st.DataObject) -> None:
        cmdp = data.draw(strategies.cmdps())
        array = data.draw(strategies.policies(cmdp))
        found = cmdpax.Policy(array, cmdp)
        occupancy = cmdpax.evaluate(cmdp, array).occupancy
        np.testing.assert_array_equal(found.reached, occupancy.sum(axis=-1))
        np.testing.assert_allclose(found.reached[..., None] * found, occupancy, atol=1e-15)

    def test_a_stationary_one_is_repeated(self) -> None:
        found = cmdpax.Policy([[USE, REPAIR]], CMDP)
        np.testing.assert_array_equal(found, [[USE, REPAIR]] * 4)

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            ([[USE, [0.5, 0.4]]], r"policy\[0, 1\] sums to 0.9, not to 1"),
            ([[USE, [np.nan, 1.0]]], r"policy\[0, 1, 0\] is nan; every entry must be finite"),
            ([[USE, [-1.0, 2.0]]], r"policy\[0, 1, 0\] is -1.0; probabilities cannot be negative"),
            ([USE, REPAIR], r"policy has shape \(2, 2\), expected \(H, S, A\)"),
            (np.zeros((0, 2, 2)), r"policy has shape \(0, 2, 2\), expected \(H, S, A\)"),
            ([[["run", "repair"]]], r"policy cannot be read as an array of real numbers"),
        ],
    )
    @pytest.mark.parametrize("cmdp", [None, CMDP])
    def test_what_is_no_policy(self, wrong, sentence, cmdp) -> None:
        with pytest.raises(cmdpax.ModelError, match=sentence.replace("must be finite", "must be")):
            cmdpax.Policy(wrong, cmdp)

    def test_what_is_no_policy_of_the_model(self) -> None:
        with pytest.raises(cmdpax.ModelError, match=r"policy has shape \(3, 2, 2\), expected"):
            cmdpax.Policy(STEPS[:3], CMDP)


class TestOfSolutions:
    @pytest.mark.parametrize("method", ["column-generation", "occupancy-lp"])
    def test_solve(self, method: str) -> None:
        cmdp = cmdpax.environments.make("random")
        solution = cmdpax.solve(cmdp, method)
        assert type(solution.policy) is cmdpax.Policy
        assert solution.policy is solution.policy
        assert solution.policy.fingerprint == cmdp.fingerprint
        np.testing.assert_array_equal(solution.policy.reached, solution.occupancy.sum(axis=-1))
        assert repr(solution.policy) == "Policy(H=5, S=5, A=5, random in 1 place)"

    def test_solve_many(self) -> None:
        cmdps = [cmdpax.environments.make("random", seed=seed) for seed in (1, 2)]
        cmdps.append(cmdps[0].replace(thresholds=[100.0]))
        for cmdp, solution in zip(cmdps, cmdpax.solve_many(cmdps), strict=True):
            assert solution.policy.fingerprint == cmdp.fingerprint
            np.testing.assert_allclose(
                solution.policy.reached, cmdpax.evaluate(cmdp, solution.policy).occupancy.sum(-1)
            )


class TestTable:
    def test_in_words(self) -> None:
        expected = """
Policy(H=4, S=2, A=2, random in 1 place)
state  steps  action                    reached
new    all    run                      50–100 %
worn   0–1    repair                 up to 50 %
worn   2      repair 75 %, run 25 %        35 %
worn   3      run                        46.5 %
"""
        np.testing.assert_allclose(policy().reached[:, 0], [1, 0.5, 0.65, 0.535], atol=1e-12)
        assert lines(str(policy())) == lines(expected)

    def test_without_a_model(self) -> None:
        expected = """
Policy(H=4, S=2, A=2, random in 1 place)
state    steps  action
state 0  all    action 0
state 1  0–1    action 1
state 1  2      action 1 75 %, action 0 25 %
state 1  3      action 0
"""
        assert lines(str(cmdpax.Policy(STEPS))) == lines(expected)

    def test_a_stationary_policy_has_no_column_of_steps(self) -> None:
        expected = """
Policy(H=4, S=2, A=2, deterministic)
state  action       reached
new    run         50–100 %
worn   repair    up to 50 %
"""
        found = str(cmdpax.Policy([[USE, REPAIR]], CMDP))
        assert [line.split() for line in lines(found)] == [line.split() for line in lines(expected)]

    def test_what_is_never_reached_is_shown_on_demand(self) -> None:
        found = cmdpax.Policy([[REPAIR, USE]], CMDP)
        assert lines(str(found))[1:] == [
            "state  action  reached",
            "new    repair    100 %",
            "1 row is never reached, and left out",
        ]
        assert lines(found.table(whole=True))[1:] == [
            "state  action  reached",
            "new    repair    100 %",
            "worn   run       never",
        ]

    def test_rounding_shows_nothing_as_certain_or_impossible(self) -> None:
        steps = [[[1 - 1e-7, 1e-7], REPAIR], [[1.0, 0.0], REPAIR]]
        assert lines(str(cmdpax.Policy(steps)))[2:4] == [
            "state 0  0      action 0 >99.9 %, action 1 <0.1 %",
            "state 0  1      action 0",
        ]

    def test_steps_that_look_alike_are_one_row(self) -> None:
        found = cmdpax.Policy([[[0.3, 0.7]], [[0.1 + 0.2, 0.7]], [[0.31, 0.69]]])
        assert lines(str(found))[2:] == [
            "state 0  0–1    action 1 70 %, action 0 30 %",
            "state 0  2      action 1 69 %, action 0 31 %",
        ]

    def test_many_actions(self) -> None:
        found = cmdpax.Policy(np.full((1, 1, 10), 0.1))
        four = ", ".join(f"action {index} 10 %" for index in range(4))
        assert lines(str(found))[2] == f"state 0  {four}, 6 more"

    def test_names_cannot_steer_the_terminal(self) -> None:
        names = ["\x1b[2J" + "long " * 30, "b"]
        found = str(cmdpax.Policy(STEPS, CMDP.replace(state_names=names)))
        assert "\x1b" not in found
        assert max(map(len, lines(found))) < 100

    def test_of_many_rows_those_are_shown_that_are_reached_most(self) -> None:
        chain = cmdpax.Successors(
            np.arange(1, 61).clip(max=59)[None, :, None, None], np.ones((1, 60, 1, 1))
        )
        start = np.zeros(60)
        start[[0, 30]] = 0.9, 0.1
        cmdp = cmdpax.CMDP(chain, np.zeros((1, 60, 1)), [], [], start, horizon=40)
        shown = lines(str(cmdpax.Policy(np.ones((1, 60, 1)), cmdp)))
        assert len(shown) == 39
        assert shown[-1] == "… 24 more rows are reached less often, and left out; to_csv has all"
        assert [line.split()[1] for line in shown[2:-1]] == [str(state) for state in range(36)]
        assert len(lines(cmdpax.Policy(np.ones((1, 60, 1)), cmdp).table(whole=True))) == 62
        told = lines(str(cmdpax.Policy(np.ones((1, 60, 1)))))
        assert told[-1] == "… 24 more rows are left out; to_csv has all"

    def test_a_large_one(self) -> None:
        """In a second or so, where a loop over rows would take minutes."""
        actions = np.random.default_rng(0).integers(0, 4, (100, 10_000))
        found = cmdpax.Policy(np.eye(4)[actions])
        assert len(lines(str(found))) == 39
        assert repr(found) == "Policy(H=100, S=10000, A=4, deterministic)"


class TestFrame:
    def test_names(self) -> None:
        found = policy().frame()
        assert found.columns == ["step", "state", "action", "probability", "reached"]
        assert found.rows()[:2] == [(0, "new", "run", 1.0, 1.0), (0, "worn", "repair", 1.0, 0.0)]
        worn = found.filter(step=2, state="worn").select("action", "probability").rows()
        assert worn == [("run", 0.25), ("repair", 0.75)]
        assert len(found) == 9

    def test_indices_and_what_is_unknown(self) -> None:
        found = cmdpax.Policy(STEPS).frame()
        assert found.rows()[1] == (0, 1, 1, 1.0, None)
        assert found["reached"].dtype.is_float()
