"""Specifications with values that nobody expects: each is one sentence."""

import datetime
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import cmdpax
from cmdpax.experiments.runs import Run, make_models, make_runs
from cmdpax.experiments.specification import read_specification
from sweep_cases import specification


def runs_of(**changes: Any) -> list[Run]:
    found = read_specification(specification(**changes))
    return make_runs(found, make_models(found))


def with_algorithm(**entries: Any) -> dict[str, Any]:
    return {"algorithms": [{"name": "vanilla-dual"} | entries]}


NESTED: Any = 1
for _ in range(5000):
    NESTED = [NESTED]
DATE = datetime.date(2026, 5, 1)
ODD = [
    ({"num_episodes": 10**400}, "num_episodes is an integer beyond 64 bits"),
    ({"num_episodes": 10**5000}, "num_episodes is an integer beyond 64 bits"),
    ({"num_episodes": DATE}, "num_episodes is a date, it must be a number, a text, a list or a"),
    ({"num_episodes": [30]}, "num_episodes is [30], it must be a whole number"),
    ({"seeds": 2_000_000_000}, "2,000,000,000 runs would take 1.86 TiB of memory, the limit is"),
    ({"seeds": range(2_000_000_000)}, "seeds, a list of 2,000,000,000 values, would take"),
    ({"seeds": [datetime.time(1, 2)]}, "seeds[0] is a time"),
    ({"seeds": [[1]]}, "seeds is [[1]], it must be a number of runs or a list"),
    ({"record": [[1, 2], [3]]}, "record must name episodes between 1 and 30"),
    ({"record": ["a", 1]}, "record must name episodes"),
    ({"record": "all", "num_episodes": 2_000_000_000}, "2,000,000,000 episodes would take"),
    ({"record": 2**31 - 1, "num_episodes": 2**31 - 1}, "2,147,483,647 episodes would take"),
    ({"unsafe_at": [10**400]}, "unsafe_at[0] is an integer beyond 64 bits"),
    ({"unsafe_at": DATE}, "unsafe_at is a date"),
    ({"optimism": {"scale": 10**400}}, "optimism.scale is an integer beyond 64 bits"),
    ({"optimism": {"unvisited_rewards": float("inf")}}, "unvisited_rewards is inf, it must be"),
    ({"optimism": NESTED}, "is nested too deeply"),
    ({"optimism": {1: 2}}, "optimism has the key 1, keys must be text"),
    ({"optimism": {"profile": "\ud800"}}, "which is not Unicode"),
    ({"cmdps": [{"file": "half \udcff.npz"}]}, "which is not Unicode"),
    ({"cmdps": [{"environment": "random", "parameters": {"seed": DATE}}]}, "seed is a date"),
    ({"cmdps": [{"environment": "random", "parameters": {"seed": NESTED}}]}, "too deeply"),
    (with_algorithm(step_size=10**20), "algorithms[0].step_size is an integer beyond 64 bits"),
    (with_algorithm(step_size=[[0.1]]), "algorithms[0]: step_size is [0.1], it must be a finite"),
    (with_algorithm(step_size={"initial": [1]}), "it must be a finite number or a schedule"),
    (with_algorithm(step_size="1e999*k^-1"), "it must be a finite number or a schedule"),
    (with_algorithm(margin=b"bytes"), "algorithms[0].margin is a bytes"),
    (with_algorithm(optimism={"num_episodes": [1]}), "optimism's num_episodes is [1]"),
]
ADDRESSES = ["..:x", ":x", "x:", "a:b:c", "a b:c", "a/b:c", ".a:b", "a.:b", "a:b.c", "a\0:b", "1:a"]


class TestOddValues:
    @pytest.mark.parametrize(("changes", "sentence"), ODD, ids=[one[1] for one in ODD])
    def test_are_one_sentence(self, changes: dict[str, Any], sentence: str) -> None:
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)) as caught:
            read_specification(specification(**changes))
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        "text",
        [
            f"num_episodes = {'9' * 400}",
            f"num_episodes = {'9' * 5000}",
            f"seeds = {'[' * 5000}{']' * 5000}",
            f"a = {'{b=' * 3000}1{'}' * 3000}",
            "seeds = 1\nseeds = 2",
            "num_episodes = 2026-05-01",
        ],
        ids=range(6),
    )
    def test_in_files(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "odd.toml").write_text(text)
        with pytest.raises(cmdpax.CmdpaxError, match=r"odd\.toml") as caught:
            read_specification(tmp_path / "odd.toml")
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("path", ["a\0b", "n" * 300 + ".toml", "half \ud800"])
    def test_of_paths(self, path: str) -> None:
        with pytest.raises(cmdpax.FileError):
            read_specification(path)

    def test_grids_are_counted_before_they_are_made(self) -> None:
        many = list(range(1, 10**4))
        with pytest.raises(cmdpax.ParameterError, match=r"algorithms\[0\]: the list of 3,998,800"):
            runs_of(**with_algorithm(step_size=many, max_multiplier=many, margin=many))
        parameters = dict.fromkeys(("seed", "horizon", "num_states", "num_actions"), many)
        with pytest.raises(cmdpax.ParameterError, match=r"cmdps\[0\]: the list of 9,996,000,599"):
            runs_of(cmdps=[{"environment": "random", "parameters": parameters}])

    def test_the_limit_is_told_and_can_be_raised(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CMDPAX_MAX_BYTES", "4096")
        with pytest.raises(
            cmdpax.ParameterError, match="the limit is 4 KiB; set CMDPAX_MAX_BYTES="
        ):
            runs_of(**with_algorithm(step_size=[0.1, 0.2, 0.3]))
        assert len(runs_of(**with_algorithm())) == 4


class TestAddresses:
    @pytest.mark.parametrize("address", ADDRESSES)
    def test_that_are_none(self, address: str) -> None:
        for importing in (True, False):
            with pytest.raises(cmdpax.ParameterError, match="cannot be imported") as caught:
                read_specification(
                    specification(algorithms=[{"name": address}]), importing=importing
                )
            assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("code", "cause"),
        [
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("def (", "SyntaxError: "),
            ("raise SystemExit(3)", "SystemExit: 3"),
            ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
            ("import absent_module", "No module named 'absent_module'"),
            ("def __getattr__(name): raise KeyError(name)", "KeyError: 'factory'"),
        ],
    )
    def test_of_modules_that_fail(
        self, code: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "failing.py").write_text(code)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "failing", raising=False)
        with pytest.raises(cmdpax.ParameterError, match=re.escape(cause)) as caught:
            read_specification(specification(algorithms=[{"name": "failing:factory"}]))
        assert "\n" not in str(caught.value)
        monkeypatch.delitem(sys.modules, "failing", raising=False)
