"""Policies in files: what is written is read back exactly, and what is no policy is refused."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cmdpax
import strategies

ENDINGS = ("npz", "json", "csv")
NAMED = cmdpax.environments.make("ring").replace(
    state_names=["a, quoted", 'b "twice"', "ç\nnext"], action_names=["stay", "move"]
)
POLICY = cmdpax.solve(NAMED).policy
every_ending = pytest.mark.parametrize("ending", ENDINGS)


def assert_same(found: cmdpax.Policy, expected: cmdpax.Policy) -> None:
    assert type(found) is cmdpax.Policy
    np.testing.assert_array_equal(found, expected, strict=False)
    np.testing.assert_array_equal(found.reached, expected.reached)
    assert (found.words, found.fingerprint) == (expected.words, expected.fingerprint)


def refused(path: Path, *cmdp: cmdpax.CMDP) -> str:
    """The sentence."""
    with pytest.raises((cmdpax.FileError, cmdpax.ModelError)) as caught:
        cmdpax.load_policy(path, *cmdp)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert len(sentence) < 500
    return sentence


class TestRoundTrips:
    @given(data=st.data(), ending=st.sampled_from(ENDINGS))
    @settings(max_examples=30)
    def test_of_random_policies(self, data: st.DataObject, ending: str) -> None:
        cmdp = data.draw(strategies.cmdps())
        if data.draw(st.booleans()):
            names = [f"s{index}" for index in reversed(range(cmdp.num_states))]
            cmdp = cmdp.replace(state_names=names)
        policy = cmdpax.Policy(data.draw(strategies.policies(cmdp)), cmdp)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"policy.{ending}"
            policy.save(path)
            assert_same(cmdpax.load_policy(path, cmdp), policy)
            assert_same(cmdpax.Policy.load(str(path), cmdp), policy)
            if ending != "csv":
                assert_same(cmdpax.load_policy(path), policy)

    @every_ending
    def test_of_names(self, ending: str, tmp_path: Path) -> None:
        POLICY.save(tmp_path / f"p.{ending}")
        assert_same(cmdpax.load_policy(tmp_path / f"p.{ending}", NAMED), POLICY)

    @every_ending
    def test_without_a_model(self, ending: str, tmp_path: Path) -> None:
        policy = cmdpax.Policy(np.random.default_rng(3).dirichlet(np.ones(3), (4, 5)))
        policy.save(tmp_path / f"p.{ending}")
        assert_same(cmdpax.load_policy(tmp_path / f"p.{ending}"), policy)

    def test_texts(self, tmp_path: Path) -> None:
        for name, write in (("p.csv", POLICY.to_csv), ("p.json", POLICY.to_json)):
            assert write(tmp_path / name) is None
            assert (tmp_path / name).read_text(encoding="utf-8") == write()

    def test_a_csv_in_whole(self) -> None:
        policy = cmdpax.Policy([[[0.1, 0.9]], [[1.0, 0.0]]])
        assert policy.to_csv() == (
            "step,state,action,probability,reached\n0,0,0,0.1,\n0,0,1,0.9,\n1,0,0,1.0,\n"
        )

    def test_an_object_in_whole(self) -> None:
        cmdp = cmdpax.environments.make("bandit").replace(state_names=["start"], action_names=None)
        assert json.loads(cmdpax.Policy([[[0.5, 0.5, 0]]], cmdp).to_json()) == {
            "policy": [[[0.5, 0.5, 0.0]]],
            "reached": [[1.0]],
            "words": {"state_names": ["start"]},
            "fingerprint": cmdp.fingerprint,
        }
        assert json.loads(cmdpax.Policy([[[1.0]]]).to_json()) == {"policy": [[[1.0]]]}

    def test_polars_reads_the_csv(self, tmp_path: Path) -> None:
        import polars

        POLICY.to_csv(tmp_path / "p.csv")
        assert polars.read_csv(tmp_path / "p.csv").equals(POLICY.frame())


class TestModels:
    def test_the_model_names_a_policy_that_has_no_names(self, tmp_path: Path) -> None:
        (tmp_path / "p.json").write_text(json.dumps({"policy": POLICY.tolist()}))
        assert cmdpax.load_policy(tmp_path / "p.json").reached is None
        assert_same(cmdpax.load_policy(tmp_path / "p.json", NAMED), cmdpax.Policy(POLICY, NAMED))

    @pytest.mark.parametrize("ending", ["npz", "json"])
    def test_of_another_model(self, ending: str, tmp_path: Path) -> None:
        POLICY.save(tmp_path / f"p.{ending}")
        other = NAMED.replace(thresholds=[1.0])
        sentence = refused(tmp_path / f"p.{ending}", other)
        assert f"{NAMED.fingerprint[:16]}…, not to this one, {other.fingerprint[:16]}…" in sentence

    def test_of_another_size(self, tmp_path: Path) -> None:
        cmdpax.Policy(POLICY).save(tmp_path / "p.npz")
        assert "policy has shape (6, 3, 2), expected" in refused(
            tmp_path / "p.npz", cmdpax.environments.make("bandit")
        )

    def test_a_stationary_array_is_one_for_every_step(self, tmp_path: Path) -> None:
        (tmp_path / "p.json").write_text(
            json.dumps({"policy": [[[1, 0]] * 3], "reached": [[1, 0, 0]]})
        )
        found = cmdpax.load_policy(tmp_path / "p.json", NAMED)
        assert_same(found, cmdpax.Policy([[[1, 0]] * 3], NAMED))

    def test_names_in_a_csv_need_the_model(self, tmp_path: Path) -> None:
        POLICY.save(tmp_path / "p.csv")
        sentence = refused(tmp_path / "p.csv")
        assert "line 2: the state is 'a, quoted'; give the model, which says what its" in sentence
        other = NAMED.replace(action_names=["wait", "move"])
        assert "the model has no action 'stay'; use its names" in refused(tmp_path / "p.csv", other)
        smaller = cmdpax.environments.make("random", num_states=1).with_arrays()
        cmdpax.Policy(POLICY).save(tmp_path / "q.csv")
        assert "line 4: the states are 0 … 0" in refused(tmp_path / "q.csv", smaller)

    def test_what_solve_wrote_before_there_were_names(self, tmp_path: Path) -> None:
        solution = cmdpax.solve(NAMED)
        np.savez(
            tmp_path / "old.npz",
            policy=np.asarray(solution.policy),
            occupancy=solution.occupancy,
            multipliers=solution.multipliers,
            value=solution.value,
            constraint_values=solution.constraint_values,
            gap=solution.gap,
            fingerprint=np.array(NAMED.fingerprint),
        )
        assert_same(cmdpax.load_policy(tmp_path / "old.npz", NAMED), POLICY)
        alone = cmdpax.load_policy(tmp_path / "old.npz")
        assert (alone.words.state_names, alone.fingerprint) == (None, NAMED.fingerprint)
        np.testing.assert_array_equal(alone.reached, POLICY.reached)


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "part"),
        [
            ({"policy": None}, "lacks the array 'policy'; it does not hold a policy."),
            ({"policy": [[1.0, 0.0]]}, "policy has shape (1, 2), expected (H, S, A)."),
            ({"policy": [[]]}, "policy has shape (1, 0), expected (H, S, A)."),
            ({"policy": [[[0.5, 0.4]]]}, "policy[0, 0] sums to 0.9, not to 1"),
            ({"policy": [[["a", "b"]]]}, "policy cannot be read as an array of real numbers"),
            ({"policy": [[[float("nan"), 1]]]}, "policy[0, 0, 0] is nan; every entry must be"),
            ({"policy": [[[2, -1]]]}, "policy[0, 0, 1] is -1.0; probabilities cannot be negative"),
            ({"reached": [[1, 2]]}, "reached has shape (1, 2), expected (H, S) = (1, 1)."),
            ({"reached": [[7]]}, "reached has entries outside of [0, 1]"),
            ({"reached": [[float("nan")]]}, "reached[0, 0] is nan"),
            ({"occupancy": [[1]]}, "occupancy has shape (1, 1), policy (1, 1, 2)."),
            ({"fingerprint": "abc"}, "has the fingerprint 'abc', expected 64 hexadecimal digits."),
            ({"words": {"state_name": ["a"]}}, "expected an object with state_names and action_n"),
            (
                {"words": {"state_names": ["a", "b"]}},
                "the number of state_names is 2, that of states 1",
            ),
            ({"words": {"action_names": ["a", "a"]}}, "action_names has 'a' twice"),
            ({"polisy": 1}, "unknown entry 'polisy'; did you mean 'policy'?"),
        ],
    )
    @pytest.mark.parametrize("ending", ["npz", "json"])
    def test_content(self, changes, part: str, ending: str, tmp_path: Path) -> None:
        entries = {"policy": [[[1.0, 0.0]]], "reached": [[1.0]], **changes}
        if "occupancy" in changes:
            del entries["reached"]
        entries = {name: entry for name, entry in entries.items() if entry is not None}
        path = tmp_path / f"p.{ending}"
        if ending == "json":
            path.write_text(json.dumps(entries))
        else:
            if "words" in entries:
                entries["words"] = json.dumps(entries["words"])
            np.savez(path, **entries)
        assert part in refused(path)

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("", "has the columns [], expected step, state, action, probability, reached."),
            ("a,b\n0,1\n", "has the columns ['a', 'b'], expected step"),
            ("step,state,action,probability\n", "has no rows; a policy has one for every"),
            ("HEAD0,0,0,1\n0,0,0,0\n", "two rows for one step, state and action"),
            ("HEAD0,0,0,0.5\n", "policy[0, 0] sums to 0.5, not to 1"),
            ("HEAD0,0,0,nan\n", "policy[0, 0, 0] is nan"),
            ("HEAD0,0,0,one\n", "line 2: 'one' is no number; expected a probability."),
            ("HEAD0,0,0,\n", "line 2: '' is no number; expected a probability."),
            ("HEAD0,0,0,1,2,3\n", "line 2: it has 6 cells, expected 5."),
            ("HEAD0,0\n", "line 2: it has 2 cells, expected 5."),
            ("HEAD-1,0,0,1\n", "line 2: the step is '-1', expected a whole number."),
            ("HEAD0,0,²,1\n", "line 2: the action is '²'; give the model"),
            ("HEAD0,0,0,1\n1,0,0,1\n1,1,0,1\n1,2,0,1\n", "has 4 rows for 2 steps and 3 states"),
            ("HEAD0,0,0,1\n1,1,0,0.5\n1,1,1,0.5\n1,1,2,0\n", "has no row for state 1 at step 0"),
            ("HEAD999999999,0,0,1\n", "has 1 rows for 1000000000 steps and 1 states"),
            ("HEAD0,0,999999999,1\n", "of memory, the limit is 4 GiB"),
            ('HEAD"0,0,0,1\n', "line 2: it has 1 cells, expected 5."),
            ("step,state,action,probability,reached\n0,0,0,1,5\n", "reached has entries outside"),
            (
                "step,state,action,probability,reached\n0,0,0,1,1\n1,0,0,1,\n",
                "reached[1, 0] is nan",
            ),
        ],
    )
    def test_tables(self, text: str, part: str, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.delenv("CMDPAX_MAX_BYTES", raising=False)
        path = tmp_path / "p.csv"
        text = text.replace("HEAD", "step,state,action,probability\n")
        path.write_text(text, encoding="utf-8")
        assert part in refused(path)

    @every_ending
    def test_truncated(self, ending: str, tmp_path: Path) -> None:
        path = tmp_path / f"p.{ending}"
        cmdpax.Policy(POLICY).save(path)
        whole = path.read_bytes()
        for length in range(0, len(whole) - 1, max(1, len(whole) // 40)):
            path.write_bytes(whole[:length])
            try:
                found = cmdpax.load_policy(path)
            except (cmdpax.FileError, cmdpax.ModelError):
                continue
            # The end of a table may be missing; what is left is of fewer steps, or of fewer states.
            assert ending == "csv"
            horizon, num_states, num_actions = found.shape
            part = np.asarray(POLICY)[:horizon, :num_states, :num_actions]
            np.testing.assert_array_equal(found, part)

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        for ending in ENDINGS:
            path = tmp_path / f"p.{ending}"
            path.write_bytes(b"\xff\xfe\x00step")
            assert f"p.{ending} is not a readable .{ending} file: " in refused(path)
        (tmp_path / "p.json").write_text("[1]")
        assert "holds a list, expected an object with the array 'policy'." in refused(
            tmp_path / "p.json"
        )

    def test_nothing_is_unpickled(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "p.npz", allow_pickle=True, policy=np.array([{}], object))
        assert "it holds pickled objects" in refused(tmp_path / "p.npz")

    @every_ending
    def test_places(self, ending: str, tmp_path: Path) -> None:
        with pytest.raises(cmdpax.FileError, match="does not exist"):
            cmdpax.load_policy(tmp_path / f"none.{ending}")
        with pytest.raises(cmdpax.FileError, match="does not exist; create it first"):
            POLICY.save(tmp_path / "none" / f"p.{ending}")
        for work in (POLICY.save, cmdpax.load_policy):
            with pytest.raises(cmdpax.FileError, match=r"'.txt'; policies are .npz, .json or .csv"):
                work(tmp_path / "p.txt")
        assert list(tmp_path.iterdir()) == []
