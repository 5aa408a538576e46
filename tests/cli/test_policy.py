"""`cmdpax policy`, and what `solve` and `inspect` do with policies."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cmdpax

Run = Callable[..., tuple[int, str, str]]
RING = cmdpax.environments.make("ring").replace(
    state_names=["north", "east", "west"], action_names=["stay", "move"]
)


@pytest.fixture
def ring(tmp_path: Path) -> cmdpax.Policy:
    """The model `ring.json` and a policy of it, `policy.npz`, which `solve` could have written."""
    cmdpax.save(RING, tmp_path / "ring.json")
    policy = cmdpax.Policy([[[0.25, 0.75], [0, 1], [1, 0]]], RING)
    policy.save(tmp_path / "policy.npz")
    return policy


class TestPolicy:
    def test_prints_the_table(self, run: Run, ring: cmdpax.Policy) -> None:
        assert run("policy", "policy.npz") == (0, f"{ring}\n", "")
        assert "north  move 75 %, stay 25 %" in str(ring)

    @pytest.mark.parametrize("name", ["p.npz", "p.json", "p.csv"])
    def test_the_model_gives_names_and_how_often_states_are_reached(
        self, run: Run, ring: cmdpax.Policy, name: str
    ) -> None:
        cmdpax.Policy(ring).save(name) if name != "p.csv" else ring.save(name)
        assert run("policy", name, "--model", "ring.json") == (0, f"{ring}\n", "")

    def test_all_rows(self, run: Run, ring: cmdpax.Policy) -> None:
        still = cmdpax.Policy([[[1, 0]] * 3], RING)
        still.save("still.json")
        assert "east" not in run("policy", "still.json")[1]
        code, out, _ = run("policy", "still.json", "--all")
        assert (code, out) == (0, still.table(whole=True) + "\n")
        assert "east   stay      never" in out

    def test_json_is_what_the_file_holds(self, run: Run, ring: cmdpax.Policy) -> None:
        code, out, _ = run("policy", "policy.npz", "--json")
        assert (code, out) == (0, ring.to_json())

    @pytest.mark.parametrize(
        ("arguments", "part"),
        [
            (("policy.npz", "--model", "other.npz"), "belongs to the model with the fingerprint"),
            (("none.npz",), "none.npz does not exist."),
            (("ring.json",), "ring.json lacks the array 'policy'; it does not hold a policy."),
            (("policy.npz", "--model", "policy.npz"), "policy.npz lacks the array 'transitions'"),
            (("policy.txt",), "policies are .npz, .json or .csv files."),
            (("named.csv",), "give the model, which says what its names mean."),
        ],
    )
    def test_refused(self, run: Run, ring: cmdpax.Policy, arguments, part: str) -> None:
        cmdpax.save(cmdpax.environments.make("bandit"), "other.npz")
        ring.save("named.csv")
        code, out, err = run("policy", *arguments)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert part in err


class TestSolve:
    @pytest.mark.parametrize("name", ["p.npz", "p.json", "p.csv", "p.NPZ"])
    def test_writes_the_policy(self, run: Run, ring: cmdpax.Policy, name: str) -> None:
        code, _, err = run("solve", "ring.json", "--out", name)
        assert (code, err) == (0, f"wrote {name}\n")
        found, expected = cmdpax.load_policy(name, RING), cmdpax.solve(RING).policy
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(found.reached, expected.reached)
        assert found.words.state_names == ("north", "east", "west")

    def test_an_archive_holds_what_it_always_held_and_the_names(
        self, run: Run, ring: cmdpax.Policy
    ) -> None:
        assert run("solve", "ring.json", "--out", "p.npz")[0] == 0
        with np.load("p.npz", allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
        assert json.loads(str(found.pop("words"))) == {
            "state_names": ["north", "east", "west"],
            "action_names": ["stay", "move"],
        }
        values = {"multipliers", "value", "constraint_values", "gap", "fingerprint"}
        assert set(found) == {"policy", "occupancy"} | values
        assert cmdpax.load_policy("p.npz").words.action_names == ("stay", "move")

    def test_other_endings_are_refused_before_any_work(self, run: Run, tmp_path: Path) -> None:
        code, out, err = run("solve", "there is no model.npz", "--out", "p.xlsx")
        assert (code, out) == (1, "")
        assert err == (
            "error: p.xlsx has the ending '.xlsx'; policies are .npz, .json or .csv files.\n"
        )


class TestInspect:
    @pytest.mark.parametrize("name", ["p.npz", "p.json", "p.csv"])
    def test_says_what_a_policy_is(self, run: Run, ring: cmdpax.Policy, name: str) -> None:
        cmdpax.Policy(ring).save(name)
        code, out, _ = run("inspect", name)
        assert (code, out.split("\n")[0]) == (0, f"{name}: a policy")
        code, out, _ = run("inspect", name, "--json")
        assert (code, json.loads(out)) == (
            0,
            {
                "num_states": 3,
                "num_actions": 2,
                "horizon": 6,
                "stationary": True,
                "random_places": 6,
                "fingerprint": None,
            },
        )

    def test_what_solve_wrote(self, run: Run, ring: cmdpax.Policy) -> None:
        run("solve", "ring.json", "--out", "p.npz")
        code, out, _ = run("inspect", "p.npz", "--json")
        assert (code, json.loads(out)["fingerprint"]) == (0, RING.fingerprint)

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("p.npz", b"PK"),
            ("p.json", b'{"policy": [[[1]]], "transitions": 3}'),
            ("p.json", b"[1"),
            ("p.csv", b"threshold,feasible\n"),
            ("p.txt", b""),
        ],
    )
    def test_what_is_neither(self, run: Run, name: str, content: bytes, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(content)
        code, out, err = run("inspect", name)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert err.startswith(f"error: {name} ")

    def test_a_policy_that_is_none(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "p.json").write_text('{"policy": [[[0.5, 0.4]]]}')
        code, out, err = run("inspect", "p.json")
        assert (code, out) == (1, "")
        assert err == (
            "error: p.json: policy[0, 0] sums to 0.9, not to 1; divide the row by its sum.\n"
        )
