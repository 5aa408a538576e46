"""`cmdpax estimate`, and how commands read logs."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cmdpax
from cmdpax.cli.data import read_logged
from log_cases import TABLE, write

Run = Callable[..., tuple[int, str, str]]
OUT = ("--out", "m.npz")


@pytest.fixture
def log(tmp_path: Path) -> cmdpax.Log:
    """The table `log.csv`, in the folder where the commands run; it has two constraints."""
    return cmdpax.load_log(write(tmp_path / "log.csv", TABLE))


def refused(run: Run, *arguments: str) -> str:
    """The sentence."""
    code, out, err = run("estimate", *arguments, *OUT)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert not Path("m.npz").exists()
    return err


def test_writes_what_the_library_estimates(run: Run, log: cmdpax.Log) -> None:
    code, out, err = run(
        *("estimate", "log.csv", "--at-most", "energy=20", "--at-least", "parts=0.5", *OUT)
    )
    assert (code, err) == (0, "wrote m.npz\n")
    expected = cmdpax.estimate(
        cmdpax.load_log("log.csv", constraints=["parts", "energy"]),
        thresholds=[0.5, 20],
        senses=["at least", "at most"],
    )
    found = cmdpax.load("m.npz")
    assert found.fingerprint == expected.fingerprint
    assert found.words == expected.words
    assert found.words.state_names == ("cold", "hot", "warm")
    cells = [[cell.strip() for cell in line.split("│")[1:3]] for line in out.split("\n")]
    assert [row for row in cells if row] == [
        ["episodes", "2"],
        ["steps", "3"],
        ["pairs of a state and an action visited", "3 of 9 (33.3 %)"],
        ["the same at each step", "16.7 %"],
        ["parts", "at least 0.5"],
        ["energy", "at most 20"],
    ]
    assert out.startswith("log.csv: CMDP(S=3, A=3, H=2, I=2, dense)\n")


def test_options(run: Run, log: cmdpax.Log) -> None:
    code, out, _ = run(
        *("estimate", "log.csv", "--at-most", "energy=20", "--horizon", "4", "--stationary"),
        *("--initial", "warm", "--unvisited", "absorbing", "--json", *OUT),
    )
    expected = cmdpax.estimate(
        cmdpax.load_log("log.csv", constraints=["energy"], horizon=4),
        limits=20.0,
        stationary=True,
        initial="warm",
        unvisited="absorbing",
    )
    found = json.loads(out)
    assert (code, found.pop("fingerprint")) == (0, expected.fingerprint)
    assert cmdpax.load("m.npz").fingerprint == expected.fingerprint
    assert found == {
        "num_episodes": 2,
        "num_steps": 3,
        "num_states": 3,
        "num_actions": 3,
        "horizon": 4,
        "constraints": ["energy"],
        "senses": ["at most"],
        "thresholds": [20.0],
        "visited_pairs": 3,
        "visited_share": 1 / 3,
        "visited_share_by_step": 3 / 36,
    }


@pytest.mark.parametrize("option", [("--at-most", "20"), ("--at-most", "energy=20")])
def test_a_single_constraint_needs_no_name(run: Run, log: cmdpax.Log, option: tuple) -> None:
    one = log._replace(constraint_rewards=log.constraint_rewards[:, :1])
    named = cmdpax.Log(*one, words=log.words._replace(constraint_names=("energy",)))
    for name in ("one.csv", "one.parquet", "one.npz"):
        named.save(name)
        assert run("estimate", name, *option, *OUT)[0] == 0
        found = cmdpax.load("m.npz")
        assert str(found).split("\n")[2] == "energy at most 20"


def test_constraints_without_names(run: Run, log: cmdpax.Log) -> None:
    cmdpax.Log(*log).save("log.npz")
    options = ("--at-least", "constraint_1=0", "--at-most", "constraint_0=20")
    assert run("estimate", "log.npz", *options, *OUT)[0] == 0
    found = cmdpax.load("m.npz")
    assert found.bounds.tolist() == [20.0, 0.0]
    assert found.words.constraint_names is None


def test_no_constraints(run: Run, tmp_path: Path) -> None:
    text = "\n".join(line.rsplit(",", 2)[0] for line in TABLE.split("\n"))
    write(tmp_path / "log.csv", text)
    assert run("estimate", "log.csv", *OUT)[0] == 0
    assert cmdpax.load("m.npz").num_constraints == 0
    sentence = refused_after(run, "log.csv", "--at-most", "60")
    assert "log.csv has no constraint; leave out --at-least and --at-most" in sentence


def refused_after(run: Run, *arguments: str) -> str:
    """The sentence, where a file of an earlier command is there."""
    Path("m.npz").unlink()
    return refused(run, *arguments)


def test_columns_with_other_names(run: Run, tmp_path: Path, log: cmdpax.Log) -> None:
    write(tmp_path / "other.csv", TABLE.replace("episode", "run").replace("state", "s=1"))
    options = ("--column", "episode=run", "--column", "state=s=1", "--at-most", "energy=20")
    assert run("estimate", "other.csv", *options, *OUT)[0] == 0
    found = cmdpax.load("m.npz")
    run("estimate", "log.csv", "--at-most", "energy=20", *OUT)
    assert cmdpax.load("m.npz").fingerprint == found.fingerprint


def test_a_name_may_hold_the_sign_of_equality(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log.csv", TABLE.replace("energy", "a=b"))
    assert run("estimate", "log.csv", "--at-most", "a=b=20", *OUT)[0] == 0
    assert cmdpax.load("m.npz").words.constraint_names == ("a=b",)


def test_the_initial_state_by_its_index(run: Run, log: cmdpax.Log) -> None:
    for initial in ("2", "warm"):
        assert (
            run("estimate", "log.csv", "--at-most", "energy=2", "--initial", initial, *OUT)[0] == 0
        )
        np.testing.assert_array_equal(cmdpax.load("m.npz").initial, [0, 0, 1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "log.csv has the constraint 'energy'; give its threshold: --at-least or --at-most"),
        (
            ("--at-most", "20"),
            "log.csv has 2 constraints; write NAME=NUMBER for each of them: energy",
        ),
        (("--at-most", "x"), "--at-most is 'x'; write NAME=NUMBER, such as energy=60."),
        (("--at-least", "energy=nan"), "--at-least is 'energy=nan'; write NAME=NUMBER"),
        (("--at-least", "energy="), "--at-least is 'energy='; write NAME=NUMBER"),
        (("--at-least", "1", "--at-most", "energy=1"), "are given several times, once without a"),
        (
            ("--at-least", "energy=1", "--at-most", "energy=2"),
            "'energy' is given twice; give it once.",
        ),
        (
            ("--at-most", "enrgy=20"),
            "--at-least or --at-most names 'enrgy', which is no column of log.csv; did you mean",
        ),
        (("--at-most", "energy=20", "--column", "state"), "--column is 'state'; write ROLE=NAME"),
        (
            ("--at-most", "energy=20", "--column", "x=y"),
            "--column names 'x'; known: action, episode",
        ),
        (
            ("--at-most", "energy=20", "--initial", "worm"),
            "initial is 'worm'; did you mean 'warm'?",
        ),
        (("--at-most", "energy=20", "--initial", "7"), "initial"),
        (("--at-most", "energy=20", "--unvisited", "x"), "unvisited is 'x'; known: absorbing, "),
        (
            ("--at-most", "energy=20", "--horizon", "1"),
            "log.csv, line 3: the episode 'a' has a step",
        ),
        (("--at-most", "energy=20", "--horizon", "0"), "horizon is 0, it must be a whole number"),
    ],
)
def test_refused(run: Run, log: cmdpax.Log, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused(run, "log.csv", *arguments)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "episode",
            "shift",
            "lacks the column 'episode'; known: action, energy, parts, reward, shift, state, "
            "step; if one of these is the episode, say --column episode=NAME.",
        ),
        (
            "parts",
            "parts,remark",
            "expected a number; name the constraints with --at-least or --at-most.",
        ),
        ("a,2,warm", "a,2,7", "'cold' at line 2 is a name; use one of the two."),
    ],
)
def test_defects_are_told_in_the_words_of_the_command_line(
    run: Run, tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    text = TABLE.replace(old, new, 1)
    if new.endswith("remark"):
        head, *rows = text.splitlines()
        text = "\n".join([head, *(f"{row},fine" for row in rows)]) + "\n"
    write(tmp_path / "log.csv", text)
    assert refused(run, "log.csv").rstrip().endswith(sentence)


def test_refused_archives(run: Run, log: cmdpax.Log) -> None:
    log.save("log.npz")
    sentence = refused(run, "log.npz", "--at-most", "energy=2")
    assert "log.npz has the constraint 'parts'; give its threshold" in sentence
    sentence = refused(run, "log.npz", "--at-most", "enrgy=2")
    assert "log.npz has no constraint 'enrgy'; did you mean 'energy'?" in sentence
    assert "horizon is given, but log.npz holds a whole log" in refused(
        *(run, "log.npz", "--at-most", "energy=2", "--at-most", "parts=2", "--horizon", "3")
    )


def test_a_state_that_no_model_has_room_for(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log.csv", f"episode,step,state,action,reward\n0,0,{2**31 - 3},0,1\n")
    sentence = refused(run, "log.csv")
    assert "the CMDP of 2147483646 states would take more than a million TiB of memory" in sentence


def test_names_that_are_expected(log: cmdpax.Log, tmp_path: Path) -> None:
    options = (["parts=0"], ["energy=20"])
    names = log.words._replace(state_names=("warm", "hot", "cold"))
    found = read_logged(tmp_path / "log.csv", *options, names=names)
    assert found.log.words.state_names == ("warm", "hot", "cold")
    assert found.log.states[0].tolist() == [2, 0, 1]
    path = tmp_path / "log.npz"
    log.save(path)
    assert read_logged(path, *options, names=log.words).log.words == log.words
    with pytest.raises(
        cmdpax.ParameterError, match=r"the states of .* are \('cold', 'hot', 'warm'\)"
    ):
        read_logged(path, *options, names=names)


def test_files_that_cannot_be(run: Run, log: cmdpax.Log) -> None:
    assert refused(run, "none.csv") == "error: none.csv does not exist.\n"
    assert "logs are .csv, .parquet or .npz files." in refused(run, "log.txt")
    code, out, err = run("estimate", "none.csv", "--out", "nowhere/m.npz")
    assert (code, out) == (1, "")
    assert "the folder nowhere does not exist; create it first." in err
    code, _, err = run("estimate", "log.csv", "--at-most", "energy=2", "--out", "m.csv")
    assert (code, "models are .npz or .json files." in err) == (1, True)
    assert run("estimate", "log.csv")[0] == 2
