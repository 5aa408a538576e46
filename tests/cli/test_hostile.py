"""Commands with what nobody means: one sentence, exit code 1, and no escape sequence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from live_cases import make, play

Run = Callable[..., tuple[int, str, str]]
RING = cmdpax.environments.make("ring")


def refused(run: Run, *arguments: str) -> str:
    """The sentence."""
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert len(err) < 1000
    return err


def model_with(path: Path, name: str, text: str) -> None:
    """A model whose file says something else for one of its arrays."""
    content = {key: array.tolist() for key, array in RING.named_arrays().items()}
    whole = json.dumps(content | {"horizon": RING.horizon, name: "HERE"})
    path.write_text(whole.replace('"HERE"', text))


@pytest.mark.parametrize("command", ["inspect", "solve"])
@pytest.mark.parametrize(
    ("horizon", "part"),
    [
        ("1000000000", "horizon is 1000000000, it must be at most 10000000"),
        (str(2**31), f"horizon is {2**31}, it must be at most 10000000"),
        (str(2**63), "horizon must be a whole number"),
        ("9" * 400, "of 400 digits is too large"),
        ("[6]", "horizon must be a whole number, got [6]"),
        ('"6"', "horizon must be a whole number, got '6'"),
        ("[[" * 400 + "]]" * 400, ""),
    ],
)
def test_horizons(run: Run, tmp_path: Path, command: str, horizon: str, part: str) -> None:
    model_with(tmp_path / "m.json", "horizon", horizon)
    assert part in refused(run, command, "m.json")


def test_a_horizon_whose_values_do_not_fit(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_with(tmp_path / "m.json", "horizon", "9000000")
    monkeypatch.setenv("CMDPAX_MAX_BYTES", "400000000")
    sentence = refused(run, "inspect", "m.json")
    assert "planning with horizon 9000000 and 3 states would take 412 MiB of memory" in sentence
    assert "set CMDPAX_MAX_BYTES=440000000 to allow it, or shorten the horizon" in sentence


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("rewards", "9" * 400, "of 400 digits is too large"),
        ("rewards", '[[["1", "2"], ["1", "2"], ["1", "2"]]]', "real numbers: they are <U1"),
        ("rewards", '[[[null, "2"], [1, 2], [1, 2]]]', "some of them are words"),
        ("thresholds", '"0.5"', "thresholds cannot be read as an array of real numbers"),
        ("initial", "[[[[[" * 30 + "]]]]]" * 30, "initial cannot be read as an array"),
        ("transitions", "{}", "transitions cannot be read as an array"),
    ],
)
def test_arrays(run: Run, tmp_path: Path, name: str, text: str, part: str) -> None:
    model_with(tmp_path / "m.json", name, text)
    assert part in refused(run, "inspect", "m.json")


def test_a_key_twice(run: Run, tmp_path: Path) -> None:
    model_with(tmp_path / "m.json", "horizon", '6, "rewards": [[[0, 0], [0, 0], [0, 0]]]')
    assert "the key 'rewards' is there twice" in refused(run, "solve", "m.json")


@pytest.mark.parametrize(
    ("environment", "parameter", "part"),
    [
        ("random", "num_states=100000", "would take 1.82 TiB of memory, the limit is"),
        ("random", "num_constraints=2000000000", "of memory, the limit is"),
        ("random", "horizon=2147483647", "of memory, the limit is"),
        ("random", f"num_states={'9' * 400}", "it must be a whole number"),
        ("random", f"num_states={'9' * 5000}", "it must be a whole number"),
        ("random", f"seed={10**30}", "it must be a whole number of at least 0"),
        ("random", "noise=1e400", "it must be a number between"),
        ("random", f"noise={'9' * 400}", "it must be a number between"),
        ("random", "noise=[1]", "noise is [1], it must be a number between"),
        ("random", "num_states=[[[[2]]]]", "it must be a whole number"),
        ("random", 'num_states="5"', "num_states is '5', it must be a whole number"),
        ("random", "num_states=5.0", "num_states is 5.0, it must be a whole number"),
        ("gridworld", "height=100000000", "of memory, the limit is"),
        ("gridworld", "num_constraints=2000000000", "of memory, the limit is"),
        ("gridworld", "layout=7", "layout is 7, it must be a text drawing"),
        ("inventory", "capacity=100000", "of memory, the limit is"),
        ("inventory", "demand=[1e400]", "demand"),
        ("inventory", 'demand="half"', "demand"),
        ("queue", "capacity=1000000", "of memory, the limit is"),
        ("ring", "num_states=1000000", "of memory, the limit is"),
        ("streaming", "buffer=1000000", "of memory, the limit is"),
        ("ring", "horizon=1000000000", "it must be at most 10000000"),
        ("box", f"layout={'S' * 30000 + 'X' + 'G'}", "of memory, the limit is"),
    ],
)
def test_environments(
    run: Run, tmp_path: Path, environment: str, parameter: str, part: str
) -> None:
    arguments = ("env", "make", environment, "-p", parameter, "--out", "m.npz")
    assert part in refused(run, *arguments)
    assert not (tmp_path / "m.npz").exists()


def test_a_random_cmdp_whose_slack_never_suffices() -> None:
    """Thresholds are scaled down until the gap is 0.05, which these rewards never reach."""
    seed = next(
        seed
        for seed in range(2000)
        if np.random.default_rng(seed).random() > 0.99  # u is about 1 - r, at most 0.01
    )
    sizes = {"num_states": 1, "num_actions": 1, "horizon": 1, "num_constraints": 2}
    cmdp = cmdpax.environments.make("random", **sizes, noise=0.0, seed=seed)
    assert not cmdp.thresholds.any()


@pytest.mark.parametrize("command", [("watch", "--once"), ("watch",)])
def test_names_cannot_steer_the_terminal(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    names = ["\x1b]0;owned\x07\x1b[2J", "right \u202e left\r\n"]
    play(make(names=names), 3).save(tmp_path / "a.npz")
    code, out, err = run(command[0], "a.npz", *command[1:])
    assert (code, err) == (0, "")
    assert all(one.isprintable() or one == "\n" for one in out)
    assert "\\x1b]0;owned\\x07\\x1b[2J" in out
    assert "\\u202e" in out


def test_errors_cannot_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    for name in ("\x1b[31m.npz", "\udcff.npz", "a\rb.npz"):
        sentence = refused(run, "inspect", name)
        assert all(one.isprintable() for one in sentence.rstrip("\n"))


@pytest.mark.parametrize("error", [MemoryError(), OSError(5, "Input/output error")])
def test_what_the_machine_refuses(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    cmdpax.save(RING, tmp_path / "m.npz")

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("cmdpax.slater_gap", fail)
    refused(run, "inspect", "m.npz")


def test_errors_are_one_line_in_python_too() -> None:
    """Whatever the names and values in them hold."""
    with pytest.raises(cmdpax.FileError) as caught:
        cmdpax.load("two\nlines\x1b[31m.npz")
    assert str(caught.value) == "two\\nlines\\x1b[31m.npz does not exist."


def test_iterates_that_are_no_numbers(run: Run, tmp_path: Path) -> None:
    cmdpax.save(cmdpax.environments.make("random"), tmp_path / "m.npz")
    extreme = ("-p", "step_size=1e308", "-p", "max_multiplier=1e308")
    arguments = ("iterate", "m.npz", "--scheme", "primal-dual", "--iterations", "50", *extreme)
    assert "is not a finite number with step_size 1e+308" in refused(run, *arguments)
