"""Parameters that an algorithm does not have, or not with such a value: one sentence, and where."""

import re
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

import cmdpax
from cmdpax.experiments import read_specification
from cmdpax.experiments.runs import make_models, make_runs
from cmdpax.learners import Algorithm, Knowledge, Learner, Parameter
from sweep_cases import OWN, geared, specification

DUAL, REGULARIZED = "vanilla-dual", "regularized-dual"
Case = tuple[str, dict[str, Any], str]


class Whole(NamedTuple):
    window: Annotated[int, Parameter("episodes", above=0)] = 20
    eager: bool = False


def whole(knowledge: Knowledge, chosen: Whole) -> Learner:
    raise NotImplementedError


def check(chosen: Whole, num_episodes: int) -> None:
    if chosen.window > num_episodes:
        raise cmdpax.ParameterError(f"window is {chosen.window}, there are {num_episodes}.")


WHOLE = f"{__name__}:whole"
CHECKED = Algorithm("checked", whole, check=check)
UNKNOWN: list[Case] = [
    (DUAL, {"stepsize": 1}, "unknown key stepsize; did you mean 'step_size'? known: "),
    (DUAL, {"gain": 1}, "unknown key gain; "),
    (DUAL, {"optimisms": "live"}, "unknown key optimisms; did you mean 'optimism'?"),
    (DUAL, {"step-size": 1}, "unknown key step-size; did you mean 'step_size'?"),
    (DUAL, {"parameters": {"step_size": 1}}, "unknown key parameters; "),
    (DUAL, {"seeds": 3}, "unknown key seeds; "),
    (OWN, {"gian": 1}, "unknown key gian; did you mean 'gain'? known: gain, mode, name, optimism."),
    (OWN, {"step_size": 1}, "unknown key step_size; "),
    (OWN, {"gain": 1, "model": "dual"}, "unknown key model; did you mean 'mode'?"),
    (OWN, {"gain": 0.5, "": 1}, "unknown key ; known: gain, mode, name, optimism."),
]
OF_ANOTHER_TYPE: list[Case] = [
    (DUAL, {"step_size": "big"}, "step_size is 'big', it must be a number or a schedule such as"),
    (DUAL, {"step_size": True}, "step_size is True, it must be a finite number or a schedule"),
    (DUAL, {"max_multiplier": "6*k^-1"}, "max_multiplier is '6*k^-1', it must be a positive numb"),
    (DUAL, {"max_multiplier": {"initial": 6}}, "max_multiplier is {'initial': 6}, it must be a p"),
    (OWN, {"gain": "much"}, "gain is 'much', it must be a number."),
    (OWN, {"gain": "0.5*k^-1"}, "gain is '0.5*k^-1', it must be a number."),
    (OWN, {"gain": [0.5, [0.5]]}, "gain is [0.5], it must be a number."),
    (OWN, {"gain": True}, "gain is True, it must be a number."),
    (OWN, {"gain": float("nan")}, "gain is nan, it must be a number."),
    (OWN, {"mode": 3}, "mode is 3; known: dual, primal-dual."),
    (WHOLE, {"window": 2.0}, "window is 2.0, it must be a positive whole number."),
    (WHOLE, {"window": True}, "window is True, it must be a positive whole number."),
    (WHOLE, {"eager": 1}, "eager is 1, it must be true or false."),
    (WHOLE, {"eager": "true"}, "eager is 'true', it must be true or false."),
]
OUT_OF_RANGE: list[Case] = [
    (DUAL, {"step_size": [0.1, 0]}, "step_size is 0, it must be positive."),
    (DUAL, {"step_size": -0.1}, "step_size is -0.1, it must be positive."),
    (DUAL, {"max_multiplier": 0}, "max_multiplier is 0, it must be a positive number."),
    (DUAL, {"regularization": 0.1}, "regularization is 0.1, it must be 0; use regularized-dual."),
    (
        REGULARIZED,
        {"regularization": 0},
        "regularization is 0, it must be positive; use vanilla-du",
    ),
    (OWN, {"gain": -1}, "gain is -1, it must not be negative."),
    (OWN, {"gain": [0.5, 50, 50.1]}, "gain is 50.1, it must not exceed 50."),
    (OWN, {"mode": "duel"}, "mode is 'duel'; did you mean 'dual'? known: dual, primal-dual."),
    (WHOLE, {"window": 0}, "window is 0, it must be a positive number."),
]


def make(content: dict[str, Any]) -> None:
    wanted = read_specification(content)
    make_runs(wanted, make_models(wanted))


def refused(content: dict[str, Any], *parts: str) -> str:
    """The sentence about a specification; it is one line."""
    with pytest.raises(cmdpax.ParameterError) as caught:
        make(content)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    for part in parts:
        assert part in message, message
    return message


@pytest.mark.parametrize(
    ("name", "entries", "sentence"), [*UNKNOWN, *OF_ANOTHER_TYPE, *OUT_OF_RANGE]
)
def test_the_sentence_says_where(name: str, entries: dict[str, Any], sentence: str) -> None:
    table = {"name": name} | entries
    first = refused(specification(algorithms=[table]))
    assert first.startswith(f"the specification: algorithms[0]: {sentence}")
    second = refused(specification(algorithms=[{"name": DUAL}, table]))
    assert second == first.replace("algorithms[0]", "algorithms[1]")


def test_no_value_at_all() -> None:
    for name in (OWN, DUAL):
        key = "gain" if name == OWN else "margin"
        refused(specification(algorithms=[{"name": name, key: []}]), f"algorithms[0].{key} is []")


def test_a_schedule_is_checked_up_to_the_last_episode() -> None:
    table = {"name": REGULARIZED, "step_size": "0.1*k^1", "regularization": 0.5}
    sentence = "algorithms[0]: step_size times regularization is 1.5 at episode 30"
    assert refused(specification(algorithms=[table])).startswith(sentence)


def test_parameters_that_do_not_fit_together() -> None:
    for algorithm in (CHECKED, f"{__name__}:CHECKED"):
        table = {"name": algorithm, "window": [30, 31]}
        refused(specification(algorithms=[table]), "algorithms[0]: window is 31, there are 30.")


def test_a_file_names_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(
        'num_episodes = 30\ncmdps = [{ environment = "bandit" }]\n'
        f'[[algorithms]]\nname = "{OWN}"\ngian = 1\n'
    )
    sentence = f"{path}: algorithms[0]: unknown key gian; did you mean 'gain'?"
    with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
        read_specification(path)


class TestFilesOfResults:
    """They are no reason to import anything: of one's own parameters nothing is known."""

    def test_own_parameters_are_taken_as_they_are(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("importlib.import_module", None)
        table = {"name": "nowhere:factory", "gain": [1, "x", True], "anything": {"a": 1}}
        found = read_specification(specification(algorithms=[table]), importing=False)
        chosen = found.algorithms[0].parameters
        assert chosen == {"gain": (1, "x", True), "anything": ({"a": 1},)}

    def test_registered_ones_are_checked(self):
        with pytest.raises(cmdpax.ParameterError, match=r"algorithms\[0\]: unknown key gain"):
            read_specification(
                specification(algorithms=[{"name": DUAL, "gain": 1}]), importing=False
            )


NAMES = ("run", "seed", "score", "runs", "strong", "capped", "last_violation", "unsafe_at_0.1")


@pytest.mark.parametrize("name", [name.replace(".", "_") for name in NAMES])
def test_names_of_other_columns_are_not_for_parameters(name: str) -> None:
    record = NamedTuple("Record", [(name, float)])
    with pytest.raises(cmdpax.ParameterError, match=f"own has a parameter '{name}', which means"):
        Algorithm("own", geared, record, parameters=(Parameter(name=name, default=0.0),))


@pytest.mark.parametrize("part", ["_exponent", "_offset"])
def test_two_parameters_are_not_parts_of_one_schedule(part: str) -> None:
    record = NamedTuple("Record", [("gain", float), (f"gain{part}", float)])
    taken = tuple(Parameter(name=name, default=0.0) for name in record._fields)
    sentence = f"own has the parameters 'gain' and 'gain{part}', which would be one schedule"
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        Algorithm("own", geared, record, parameters=taken)
