"""The specification as a TOML file: read back, it asks for the same runs."""

import json
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
from cmdpax.experiments.runs import make_runs
from cmdpax.experiments.specification import read_specification
from cmdpax.learners import as_algorithm
from cmdpax.reporting.content import content
from cmdpax.reporting.toml import InexpressibleError, specification_text
from report_cases import ALGORITHMS, invent, random_cmdps
from sweep_cases import OWN, OWN_GRID, specification

HOSTILE = "<img src=x onerror=alert(1)>"
CASES: dict[str, dict[str, Any]] = {
    "all at its default": {"num_episodes": 5, "cmdps": [{"environment": "bandit"}]},
    "grids": specification(algorithms=ALGORITHMS, seeds=[3, 1]),
    "everything": {
        "num_episodes": 100,
        "seeds": list(range(100, 200)),
        "cmdps": [
            {
                "environment": "gridworld",
                "parameters": {"layout": ["S.1/..G", "S1G"], "slip": 0.1, "horizon": 4},
            },
            {"environment": "bandit"},
        ],
        "algorithms": [
            {
                "name": "regularized-dual",
                "step_size": [0.1, "0.3*k^-0.2", {"initial": 1, "exponent": 0.5}],
                "regularization": cmdpax.schedules.power(0.1, 0.3, 2),
                "margin": [0.0, 1e-07],
                "max_multiplier": [1e22, 3],
                "optimism": ["live", {"profile": "live", "scale": 0.2}],
            },
            {"name": "vanilla-dual", "optimism": {"scale": 1}},
        ],
        "optimism": {"bonus": "theory", "num_episodes": 7, "failure_probability": 0.25},
        "observations": "bernoulli",
        "precision": "single",
        "record": list(range(1, 100, 2)),
        "unsafe_at": [-0.5, 0.0, 1e-09],
        "stationary": True,
    },
    "parameters of one's own": specification(
        algorithms=[OWN_GRID, {"name": OWN, "gain": 1}, {"name": "vanilla-dual", "margin": None}]
    ),
    "record all": specification(record="all", unsafe_at=[]),
}


def stored(given: dict[str, Any]) -> dict[str, Any]:
    """A specification as a manifest has it."""
    complete = {"algorithms": [{"name": "vanilla-dual"}]} | given
    dumped = cmdpax.Specification(**complete).model_dump(mode="json")
    return dict(json.loads(json.dumps(dumped)))


def read_back(text: str, folder: Path) -> cmdpax.Specification:
    (folder / "specification.toml").write_text(text, encoding="utf-8")
    return read_specification("specification.toml")


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_is_equal(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    manifest = stored(CASES[case])
    text = specification_text(manifest)
    assert read_back(text, tmp_path) == read_specification(manifest)
    assert max(map(len, text.splitlines())) <= 100


def test_what_is_at_its_default_is_left_out() -> None:
    assert specification_text(stored(CASES["all at its default"])).splitlines() == [
        "num_episodes = 5",
        'cmdps = [{ environment = "bandit" }]',
        'algorithms = [{ name = "vanilla-dual" }]',
    ]


def test_lists_are_narrow() -> None:
    """A list is one line if it fits; a longer one is broken between numbers, never inside one."""
    lists = {"short": [1, 2.5], "numbers": [-(10**90), 1e-300] * 5, "words": ["a, b"] * 30}
    entry = {"environment": "e", "parameters": lists | {"tables": [{"a": 1, "b": 2}] * 9}}
    content = {"num_episodes": 5, "cmdps": [entry], "algorithms": []}
    text = specification_text(content)
    assert tomllib.loads(text) == content
    assert "short = [1, 2.5]\n" in text
    assert "numbers = [\n    -1000" in text
    assert text.count("1e-300,") == 4  # the last one ends the list


def test_an_optimism_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has fields that are None, which TOML cannot say: those are left out, and mean the same."""
    monkeypatch.chdir(tmp_path)
    chosen = [cmdpax.Optimism.theory(50), cmdpax.Optimism.live(0.5)]
    manifest = stored(
        specification(algorithms=[{"name": "vanilla-dual", "optimism": chosen}], optimism=chosen[0])
    )
    read = read_back(specification_text(manifest), tmp_path)
    assert make_runs(read, ["a"]) == make_runs(read_specification(manifest), ["a"])


PLAIN_TEXT = st.text(st.characters(exclude_categories=("Cs",)))
VALUES = st.recursive(
    PLAIN_TEXT | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN_TEXT, st.dictionaries(PLAIN_TEXT, VALUES, max_size=4))
def test_any_text_and_value(text: str, parameters: dict[str, Any]) -> None:
    entry = {"environment": text, "parameters": parameters}
    content = {"num_episodes": 5, "cmdps": [entry], "algorithms": [{"name": text}]}
    read = tomllib.loads(specification_text(content))
    if not parameters:  # its default
        del entry["parameters"]
    assert read == content
    # 1 is not 1.0, and True is not 1; tables come last.
    assert json.dumps(read, sort_keys=True) == json.dumps(content, sort_keys=True)


@pytest.mark.parametrize(
    "parameters",
    [{"a": None}, {"a": [1, None]}, {"a": {"b": None}}, {"a": "\ud800"}, {"\udfff": 1}],
)
def test_what_toml_cannot_say(parameters: dict[str, Any]) -> None:
    entry = {"environment": "random", "parameters": parameters}
    with pytest.raises(InexpressibleError):
        specification_text({"num_episodes": 5, "cmdps": [entry], "algorithms": []})


def test_a_null_that_means_something(tmp_path: Path) -> None:
    """The profile says 1 where the null says nothing."""
    optimism = {"profile": "live", "unvisited_rewards": None}
    cmdps = [{"environment": "bandit"}]
    path = invent(specification(cmdps=cmdps, optimism=optimism), tmp_path / "it's").path
    payload, _ = content(path)
    replay = payload["replay"]
    assert replay["specification"] is None
    assert replay["notes"] == [
        "No TOML file can say this specification; the manifest of the folder has it."
    ]
    python, option, code = shlex.split(replay["command"])
    assert (python, option) == ("python", "-c")
    assert 'cmdpax.results("it\'s")' in code
    compile(code, "command", "exec")


def own_factory(knowledge: Any, chosen: Any) -> Any:
    return as_algorithm("vanilla-dual").factory(knowledge, chosen)


class TestNotes:
    def test_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        cmdp = cmdpax.environments.make("bandit")
        cmdpax.save(cmdp, f"{HOSTILE}.npz")
        wanted = specification(cmdps=[{"file": f"{HOSTILE}.npz"}])
        payload, _ = content(invent(wanted, tmp_path / HOSTILE).path)
        assert payload["folder"] == HOSTILE
        assert payload["sweeps"][0]["cmdps"][0]["name"] == HOSTILE
        assert payload["replay"]["notes"] == [
            f"The CMDP {HOSTILE} is read from {HOSTILE}.npz; its arrays are also in this sweep's "
            f"folder, as cmdps/{cmdp.fingerprint[:16]}.npz."
        ]
        assert (tmp_path / HOSTILE / "cmdps" / f"{cmdp.fingerprint[:16]}.npz").exists()
        read = read_back(payload["replay"]["specification"], tmp_path)
        assert read == read_specification(wanted)

    def test_algorithms_of_ones_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A page can be made where the algorithm cannot be imported."""
        wanted = specification(
            cmdps=[{"environment": "bandit"}], algorithms=[{"name": own_factory}]
        )
        path = invent(wanted, tmp_path).path
        payload, _ = content(path)
        found = payload["replay"]
        address = f"{__name__}:own_factory"
        assert found["notes"] == [
            f"The algorithm {address} is one's own: its module must be on PYTHONPATH."
        ]
        assert f'name = "{address}"' in found["specification"]
        monkeypatch.delattr(f"{__name__}.own_factory")
        with pytest.raises(cmdpax.ParameterError, match="cannot be imported"):
            read_specification(cmdpax.results(path).manifest["specification"])
        payload, _ = content(path)
        assert payload["replay"] == found

    def test_runs_that_are_missing(self, tmp_path: Path) -> None:
        path = invent(specification(seeds=10), tmp_path).path
        before = len(cmdpax.results(path).final)
        next((path / "parts").iterdir()).unlink()
        left = len(cmdpax.results(path).final)
        assert 0 < left < before == 40
        payload, _ = content(path)
        assert payload["replay"]["notes"] == [
            f"The sweep is not finished: {before - left} of its runs are missing here."
        ]

    def test_runs_of_earlier_specifications(self, tmp_path: Path) -> None:
        invent(specification(cmdps=random_cmdps(seed=[1, 2, 3]), seeds=[1, 2]), tmp_path)
        later = {"name": "vanilla-dual"}
        path = invent(
            specification(cmdps=random_cmdps(seed=[3, 4]), seeds=[2], algorithms=[later]), tmp_path
        ).path
        payload, _ = content(path)
        assert payload["replay"]["notes"] == [
            "The folder also holds 12 runs of earlier specifications, which this one does not ask "
            "for."
        ]


def test_the_command_runs(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """What the page says, typed into a shell."""
    wanted = specification(cmdps=[{"environment": "bandit"}], algorithms=ALGORITHMS[:1])
    payload, _ = content(invent(wanted, tmp_path / "sweep").path)
    replay = payload["replay"]
    (tmp_path / "specification.toml").write_text(replay["specification"], encoding="utf-8")
    program, *arguments = shlex.split(replay["command"])
    code, out, _ = run(*arguments, "--dry-run", "--json")
    assert (program, code) == ("cmdpax", 0)
    assert json.loads(out)["runs"] == 2 * 2
