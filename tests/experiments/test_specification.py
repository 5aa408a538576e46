"""Specifications: three ways to write the same thing, and sentences for what cannot be."""

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.experiments import read_specification
from cmdpax.experiments.runs import make_models, make_runs
from cmdpax.experiments.specification import to_optimism
from cmdpax.learners import as_algorithm
from sweep_cases import specification

DUAL = "vanilla-dual"
TEXT = """
num_episodes = 30
seeds = [3, 5]
optimism = "live"
observations = "bernoulli"
record = [10, 20]
unsafe_at = [0.0, 0.1]

[[cmdps]]
environment = "random"
parameters = { num_states = 3, seed = [1, 2] }

[[cmdps]]
file = "models/own.npz"

[[algorithms]]
name = "regularized-dual"
step_size = [0.05, "0.3*(k+10)^-0.2", { initial = 0.5, exponent = 0.1 }]
regularization = [0.01, 0.02]
max_multiplier = 9

[[algorithms]]
name = "vanilla-primal-dual"
optimism = ["empirical", { profile = "theory", scale = 0.01 }]
"""
CONTENT: dict[str, Any] = {
    "num_episodes": 30,
    "seeds": [3, 5],
    "optimism": "live",
    "observations": "bernoulli",
    "record": [10, 20],
    "unsafe_at": [0.0, 0.1],
    "cmdps": [
        {"environment": "random", "parameters": {"num_states": 3, "seed": [1, 2]}},
        {"file": "models/own.npz"},
    ],
    "algorithms": [
        {
            "name": "regularized-dual",
            "step_size": [0.05, "0.3*(k+10)^-0.2", {"initial": 0.5, "exponent": 0.1}],
            "regularization": [0.01, 0.02],
            "max_multiplier": 9,
        },
        {
            "name": "vanilla-primal-dual",
            "optimism": ["empirical", {"profile": "theory", "scale": 0.01}],
        },
    ],
}


def own_factory(knowledge: Any, chosen: Any) -> Any:
    return as_algorithm(DUAL).factory(knowledge, chosen)


class _Callable:
    def __call__(self, knowledge: Any, chosen: Any) -> Any:
        raise NotImplementedError


NOT_A_FACTORY = 3


def written(folder: Path, text: str = TEXT) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def runs_of(**changes: Any) -> list[Any]:
    found = read_specification(specification(**changes))
    return make_runs(found, make_models(found))


def with_algorithm(**entries: Any) -> dict[str, Any]:
    return {"algorithms": [{"name": DUAL} | entries]}


class TestThreeWays:
    def test_a_dict_a_model_and_a_file_are_the_same(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        from_dict = read_specification(CONTENT)
        as_model = cmdpax.Specification(**CONTENT)
        assert read_specification(as_model) is as_model
        assert from_dict == as_model
        written(tmp_path)
        for path in ("sweep.toml", Path("sweep.toml")):
            assert read_specification(path) == from_dict

    def test_files_are_relative_to_the_file_that_names_them(self, tmp_path, monkeypatch):
        (tmp_path / "models").mkdir()
        cmdp = cmdpax.environments.make("bandit")
        cmdpax.save(cmdp, tmp_path / "models" / "own.npz")
        path = written(tmp_path)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        models = make_models(read_specification(path))
        assert models[cmdp.fingerprint].name == "own"
        absolute = TEXT.replace("models/own.npz", str(tmp_path / "models" / "own.npz"))
        assert cmdp.fingerprint in make_models(read_specification(written(elsewhere, absolute)))

    def test_what_is_written_down_is_read_again(self):
        everything = CONTENT | {
            "optimism": cmdpax.Optimism.theory(99, scale=0.5),
            "algorithms": [
                {"name": own_factory, "step_size": cmdpax.schedules.power(0.3, 0.2, 10)},
                {"name": DUAL, "margin": [0.1, "0.2*k^-0.5"], "optimism": cmdpax.Optimism.live()},
            ],
        }
        for content in (CONTENT, everything):
            found = read_specification(content)
            assert read_specification(found.model_dump(mode="json")) == found

    def test_numpy_and_ranges_are_plain_lists_and_numbers(self):
        found = read_specification(
            specification(
                num_episodes=np.int64(30),
                seeds=range(2),
                record=np.array([10, 20]),
                cmdps=[{"environment": "random", "parameters": {"seed": range(3)}}],
                **with_algorithm(step_size=np.array([0.1, 0.2]), max_multiplier=np.float32(6)),
            )
        )
        assert found == read_specification(
            specification(
                seeds=[0, 1],
                record=[10, 20],
                cmdps=[{"environment": "random", "parameters": {"seed": [0, 1, 2]}}],
                **with_algorithm(step_size=[0.1, 0.2], max_multiplier=6.0),
            )
        )
        assert found.model_dump(mode="json")["seeds"] == [0, 1]


class TestValues:
    @pytest.mark.parametrize(
        "value",
        ["0.3*(k+10)^-0.2", {"initial": 0.3, "exponent": 0.2, "offset": 10}],
        ids=["text", "table"],
    )
    def test_schedules(self, value: Any):
        schedule = cmdpax.schedules.power(0.3, 0.2, offset=10)
        step_size = as_algorithm(DUAL).parameters[0]
        assert (step_size.name, step_size.read(value, 30)) == ("step_size", schedule)
        run = runs_of(**with_algorithm(step_size=value))[0]
        assert run.configuration.parameters.step_size == schedule
        assert run == runs_of(**with_algorithm(step_size=schedule))[0]
        assert run == runs_of(**with_algorithm(step_size=[schedule]))[0]

    def test_numbers_are_constant_schedules(self):
        for value in (2, 2.0, {"initial": 2}, cmdpax.schedules.constant(2.0)):
            assert runs_of(**with_algorithm(step_size=value)) == runs_of(
                **with_algorithm(step_size=2.0)
            )

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("live", cmdpax.Optimism.live()),
            ("theory", cmdpax.Optimism.theory(30)),
            ({"scale": 1}, cmdpax.Optimism.empirical(1.0)),
            ({"profile": "live", "scale": 0.2}, cmdpax.Optimism.live(0.2)),
            (
                {"profile": "theory", "failure_probability": 0.2},
                cmdpax.Optimism.theory(30, failure_probability=0.2),
            ),
            (cmdpax.Optimism.live(0.7), cmdpax.Optimism.live(0.7)),
        ],
    )
    def test_optimism(self, value: Any, expected: cmdpax.Optimism):
        """For all algorithms, or for one, which comes first."""
        assert runs_of(optimism=value)[0].configuration.optimism == expected
        for given in (value, [value]):
            run = runs_of(optimism="empirical", **with_algorithm(optimism=given))[0]
            assert run.configuration.optimism == expected

    def test_whole_numbers_are_numbers(self):
        found = to_optimism({"scale": 1, "unvisited_rewards": 1, "rewards": "estimated"}, 5)
        assert isinstance(found.scale, float)
        assert isinstance(found.unvisited_rewards, float)
        assert to_optimism({"unvisited_rewards": None}, 5).unvisited_rewards is None

    def test_the_default_regularization_is_the_algorithms(self):
        regularized = runs_of()[0].configuration.parameters
        assert regularized.regularization.initial == 0.02
        plain = runs_of(**with_algorithm())[0].configuration.parameters
        assert plain.regularization == (0.0, 0.0, 0.0)

    def test_a_factory_of_ones_own(self):
        address = f"{__name__}:own_factory"
        called, named = (
            read_specification(specification(algorithms=[{"name": name}]))
            for name in (own_factory, address)
        )
        assert called == named
        assert called.algorithms[0].name == address
        assert as_algorithm(address).factory is own_factory

    def test_recorded_episodes(self):
        def recorded(record: Any) -> list[int]:
            return read_specification(specification(record=record)).settings.recorded.tolist()

        assert recorded(5) == [6, 12, 18, 24, 30]
        assert recorded(1) == [30]
        assert recorded([7, 3, 3]) == [3, 7, 30]
        assert recorded("all") == recorded(30) == recorded(1000) == list(range(1, 31))


REFUSED = [
    ({"num_episode": 3}, "unknown key num_episode; did you mean 'num_episodes'?"),
    ({"num_episodes": 0}, "specification: num_episodes is 0, it must be a whole number"),
    ({"num_episodes": "many"}, "num_episodes is 'many', it must be a whole number"),
    ({"seeds": 0}, "seeds is 0, it must be a whole number of at least 1"),
    ({"seeds": "12"}, "seeds is '12', it must be a number of runs or a list"),
    ({"seeds": [-1]}, "seeds is [-1], it must be a number of runs or a list"),
    ({"record": 0}, "record is 0, it must be a whole number of at least 1"),
    ({"record": "some"}, "record is 'some', it must be a whole number"),
    ({"record": [31]}, "record must name episodes between 1 and 30"),
    ({"unsafe_at": [float("inf")]}, "unsafe_at is [inf], it must be a list of numbers"),
    ({"unsafe_at": "ab"}, "unsafe_at is 'ab'"),
    ({"observations": "means"}, "observations is 'means'; did you mean 'mean'?"),
    ({"precision": "singel"}, "precision is 'singel'; did you mean 'single'?"),
    ({"optimism": "empiric"}, "optimism is 'empiric'; did you mean 'empirical'?"),
    ({"optimism": {"scael": 1}}, "optimism has the unknown key 'scael'; did you mean 'scale'?"),
    ({"optimism": {"profile": "lives"}}, "optimism is 'lives'; did you mean 'live'?"),
    ({"optimism": {"scale": "big"}}, "optimism's scale is 'big', it must be a number."),
    ({"optimism": {"scale": None}}, "optimism's scale is None, it must be a number."),
    ({"optimism": {"scale": True}}, "optimism's scale is True, it must be a number."),
    ({"optimism": {"scale": -1}}, "optimism's scale is -1.0, it must not be negative"),
    ({"optimism": {"unvisited_rewards": "?"}}, "optimism's unvisited_rewards is '?'"),
    ({"optimism": {"num_episodes": "?"}}, "optimism's num_episodes is '?'"),
    ({"cmdps": []}, "cmdps is []"),
    ({"cmdps": [{}]}, "cmdps[0]: give either an environment or a file"),
    ({"cmdps": [{"environment": "ring", "file": "a.npz"}]}, "cmdps[0]: give either"),
    ({"cmdps": [{"environment": "rnig"}]}, "cmdps[0]: unknown environment 'rnig'"),
    ({"cmdps": [{"environs": "ring"}]}, "cmdps[0].environs; did you mean 'environment'?"),
    (
        {"cmdps": [{"environment": "random"}, {"environment": "random", "parameters": {"sed": 1}}]},
        "cmdps[1]: environment 'random' has no parameter 'sed'; did you mean 'seed'?",
    ),
    (
        {"cmdps": [{"environment": "random", "parameters": {"seed": []}}]},
        "cmdps[0]: parameters.seed is [], it must have at least one value",
    ),
    ({"cmdps": [{"environment": "random", "parameters": 3}]}, "cmdps[0].parameters is 3"),
    ({"cmdps": [{"file": "a.npz", "parameters": {"seed": 1}}]}, "parameters belong to an env"),
    ({"algorithms": []}, "algorithms is []"),
    ({"algorithms": [DUAL]}, "algorithms[0] is 'vanilla-dual'"),
    ({"algorithms": [{"step_size": 1}]}, "algorithms[0].name is missing."),
    ({"algorithms": [{"name": DUAL}, {"name": "vanila-dual"}]}, "algorithms[1]: unknown algorithm"),
    ({"algorithms": [{"name": "vanila-dual"}]}, "did you mean 'vanilla-dual'?"),
    ({"algorithms": [{"name": "nowhere:factory"}]}, "'nowhere:factory' cannot be imported"),
    ({"algorithms": [{"name": f"{__name__}:absent"}]}, "cannot be imported"),
    ({"algorithms": [{"name": f"{__name__}:NOT_A_FACTORY"}]}, "is not a factory: it must take"),
    ({"num-episodes": 5}, "unknown key num-episodes; did you mean 'num_episodes'"),
    ({"unsafe_at": [0.01, 0.0100000001]}, "two of its levels are nearly the same"),
    ({"num_episodes": 2**31}, "must be below 2^31"),
    ({"algorithms": [{"name": lambda knowledge, chosen: None}]}, "<lambda>' cannot be imported"),
    ({"algorithms": [{"name": functools.partial(own_factory)}]}, "cannot be imported"),
    ({"algorithms": [{"name": _Callable()}]}, "cannot be imported"),
    (with_algorithm(stepsize=1), "algorithms[0]: unknown key stepsize; did you mean 'step_size'?"),
    (with_algorithm(step_size=[]), "algorithms[0].step_size is []"),
    (with_algorithm(step_size="big"), "algorithms[0]: step_size is 'big', it must be a number or"),
    (with_algorithm(step_size={"initia": 1}), "unknown key 'initia'; did you mean 'initial'?"),
    (with_algorithm(regularization={"exponent": 1}), "it needs the key 'initial'"),
    (with_algorithm(margin=[0.0, float("nan")]), "algorithms[0]: margin is nan"),
    (with_algorithm(step_size={"initial": 1, "offset": -1}), "it must exceed -1"),
    (with_algorithm(optimism=["live", "deed"]), "algorithms[0]: optimism is 'deed'"),
]


class TestRefused:
    @pytest.mark.parametrize(("changes", "sentence"), REFUSED)
    def test_unknown_and_impossible(self, changes: dict[str, Any], sentence: str):
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)) as caught:
            read_specification(specification(**changes))
        message = str(caught.value)
        assert message.startswith("the specification: ")
        assert "\n" not in message

    def test_what_is_missing_is_named(self):
        with pytest.raises(cmdpax.ParameterError, match=r"num_episodes is missing\."):
            read_specification({})

    @pytest.mark.parametrize(
        ("entries", "sentence"),
        [
            (
                {"name": "regularized-dual", "step_size": [1, 10], "regularization": [0.01, 0.2]},
                "step_size times regularization is 2 at episode 1, it must not exceed 1",
            ),
            ({"regularization": 0.1}, "regularization is 0.1, it must be 0; use regularized-dual."),
            (
                {"name": "regularized-dual", "regularization": [0.1, 0]},
                "regularization is 0, it must be positive; use vanilla-dual.",
            ),
            ({"step_size": 0}, "it must be positive"),
            ({"max_multiplier": [6, 0]}, "max_multiplier is 0, it must be a positive number"),
        ],
    )
    def test_impossible_combinations_name_the_algorithm(
        self, entries: dict[str, Any], sentence: str
    ):
        algorithms = [{"name": DUAL}, {"name": DUAL} | entries]
        pattern = r"algorithms\[1\]: .*" + re.escape(sentence)
        with pytest.raises(cmdpax.ParameterError, match=pattern):
            runs_of(algorithms=algorithms)

    def test_cmdps_that_cannot_be_made_are_named(self, tmp_path):
        absent = str(tmp_path / "absent.npz")
        for entry, sentence in (
            ({"file": absent}, f"{absent} does not exist"),
            ({"environment": "random", "parameters": {"num_states": [3, 0]}}, "num_states is 0"),
        ):
            with pytest.raises(cmdpax.ParameterError, match=re.escape(f"cmdps[1]: {sentence}")):
                runs_of(cmdps=[{"environment": "bandit"}, entry])

    def test_files_that_are_no_specification(self, tmp_path):
        with pytest.raises(cmdpax.FileError, match=r"absent\.toml does not exist"):
            read_specification(tmp_path / "absent.toml")
        with pytest.raises(cmdpax.FileError, match="cannot be read"):
            read_specification(tmp_path)
        with pytest.raises(cmdpax.FileError, match="is not a TOML file"):
            read_specification(written(tmp_path, "num_episodes = "))
        (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(cmdpax.FileError, match="is not a TOML file"):
            read_specification(tmp_path / "binary.toml")
        path = written(tmp_path, TEXT.replace("step_size", "stepsize"))
        with pytest.raises(
            cmdpax.ParameterError, match=re.escape(f"{path}: algorithms[0]: unknown key")
        ):
            read_specification(path)
