"""Algorithms: what is chosen of their parameters, where records come from, and addresses."""

import dataclasses
import functools
import inspect
import re
import sys
import types
from typing import Annotated, Any, NamedTuple

import pytest

import broken_learners
import cmdpax
from cmdpax.learners import (
    Algorithm,
    Hyperparameters,
    Knowledge,
    Learner,
    Parameter,
    Scheduled,
    address_of,
    as_algorithm,
)
from cmdpax.learners.algorithm import RESERVED
from cmdpax.schemes.schedules import constant, power
from configurations import configured
from learning_cases import ALGORITHM, ALGORITHMS, bandit

OF_LEARN = inspect.signature(cmdpax.learn).parameters


class Chosen(NamedTuple):
    rate: Annotated[Scheduled, Parameter("step", above=0)] = 0.5
    mode: Annotated[str, Parameter("how", choices=("fast", "safe"))] = "safe"


def annotated(knowledge: Knowledge, chosen: Chosen) -> Learner:
    return broken_learners.sound(knowledge, Hyperparameters())


def plain(knowledge, chosen):
    return broken_learners.sound(knowledge, chosen)


OWN = Algorithm("own", annotated)


def refused(sentence: str) -> Any:
    return pytest.raises(cmdpax.ParameterError, match=re.escape(sentence))


class TestChoosing:
    def test_what_is_not_given_is_the_default(self):
        assert OWN.choose({}, 5) == (constant(0.5), "safe")
        assert OWN.choose({"mode": "fast"}, 5) == (constant(0.5), "fast")
        assert OWN.choose({"rate": None, "mode": None}, 5) == OWN.choose({}, 5)
        assert type(OWN.choose({}, 5)) is Chosen

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("rates", "did you mean 'rate'? known: mode, rate."),
            ("step_size", "known: mode, rate."),
            ("", "known: mode, rate."),
        ],
    )
    def test_unknown_names(self, name: str, hint: str):
        with refused(f"own has no parameter {name!r}; {hint}"):
            OWN.choose({name: 1}, 5)

    def test_the_nearest_name_may_be_an_argument_of_learn(self):
        with refused("own has no parameter 'num_episode'; did you mean 'num_episodes'? known: alg"):
            OWN.choose({"num_episode": 1}, 5, OF_LEARN)
        with refused("own has no parameter 'seed'; did you mean 'seeds'?"):
            cmdpax.learn(bandit(), OWN, num_episodes=5, seed=1)

    def test_an_algorithm_without_parameters_has_none(self):
        empty = Algorithm("empty", plain, NamedTuple("Nothing", []))
        assert empty.choose({}, 5) == ()
        with refused("empty has no parameter 'rate'; known: none."):
            empty.choose({"rate": 1}, 5)

    def test_parameters_that_do_not_fit_together(self):
        def check(chosen: Chosen, num_episodes: int) -> None:
            if chosen.mode == "fast" and num_episodes > 9:
                raise cmdpax.ParameterError("that is too fast.")

        checked = dataclasses.replace(OWN, check=check)
        assert checked.choose({"mode": "fast"}, 9).mode == "fast"
        with refused("that is too fast."):
            checked.choose({"mode": "fast"}, 10)

    def test_who_has_the_papers_numbers_must_damp_them(self):
        """ητ ≤ 1, also for a factory of one's own; not for other records."""
        for algorithm in (as_algorithm(ALGORITHM), as_algorithm(plain)):
            with refused("step_size times regularization is 2 at episode 1"):
                algorithm.choose({"step_size": 2.0, "regularization": 1.0}, 5)
        assert OWN.check is None

    def test_numbers_are_data_and_choices_are_compiled_in(self):
        chosen = OWN.choose({"rate": power(0.3, 0.2)}, 5)
        assert OWN.numbers(chosen) == {"rate": power(0.3, 0.2)}
        assert OWN.choices(chosen) == (("mode", "safe"),)
        assert OWN.assemble(OWN.numbers(chosen), OWN.choices(chosen)) == chosen


@pytest.mark.parametrize(
    ("algorithm", "regularization", "bounds"),
    [
        ("regularized-primal-dual", 0.02, "≥ 0"),
        ("regularized-dual", 0.02, "> 0"),
        ("vanilla-primal-dual", 0.0, "0"),
        ("vanilla-dual", 0.0, "0"),
    ],
)
def test_the_papers_algorithms_differ_in_their_regularization(
    algorithm: str, regularization: float, bounds: str
) -> None:
    known = as_algorithm(algorithm)
    assert known.names == Hyperparameters._fields
    chosen = known.choose({}, 5)
    assert chosen == (constant(0.1), constant(regularization), 6.0, constant(0.0))
    ranges = {one.name: one.range for one in known.parameters}
    assert ranges == {
        "step_size": "> 0",
        "regularization": bounds,
        "max_multiplier": "> 0",
        "margin": "",
    }


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_identity_of_a_run_is_that_of_older_versions(algorithm: str) -> None:
    """Folders of sweeps and manifests have these names: a new one would make all runs anew."""
    described = configured(algorithm, 3).describe()
    assert list(described) == [
        "seed",
        "step_size",
        "regularization",
        "max_multiplier",
        "margin",
        "optimism",
    ]
    tau = 0.02 if algorithm.startswith("regularized") else 0.0
    numbers = ([0.1, 0.0, 0.0], [tau, 0.0, 0.0], 6.0, [0.0, 0.0, 0.0])
    assert tuple(described.values())[:-1] == (3, *numbers)


class TestReservedNames:
    @pytest.mark.parametrize("name", ["seeds", "num_episodes", "log", "run", "optimism_scale"])
    def test_are_refused(self, name: str):
        record = type("Record", (NamedTuple("Record", [(name, float)]),), {})
        taken = (Parameter(name=name),)
        with refused(f"own has a parameter {name!r}, which means something else"):
            Algorithm("own", plain, record, parameters=taken)

    def test_are_all_arguments_beside_which_parameters_are_given(self):
        for function in (cmdpax.learn, cmdpax.replay, cmdpax.Agent):
            # An agent takes margins in the user's units, and passes schedules on.
            named = set(inspect.signature(function).parameters) - {"parameters", "margin"}
            assert named <= RESERVED, function


class TestAddedParameters:
    """Files of earlier versions do not have them: the default is what their learners did."""

    class Grown(NamedTuple):
        gain: float = 2.0
        later: Annotated[float, Parameter(added=True)] = 0.5

    def test_their_default_stands_for_what_is_missing(self):
        grown = Algorithm("own", plain, self.Grown)
        assert grown.restore({"gain": 3.0}, 10) == (3.0, 0.5)
        assert grown.restore({"gain": 3.0, "later": 4.0}, 10) == (3.0, 4.0)
        with refused("own has the parameter 'gain', which is missing."):
            grown.restore({"later": 4.0}, 10)


class TestRecords:
    """Of a bare function: the annotation of its second argument, else the paper's numbers."""

    def test_the_annotation_of_the_second_argument(self):
        assert as_algorithm(annotated).record is Chosen
        assert as_algorithm(annotated).names == ("rate", "mode")

    def test_of_a_partial_and_of_an_object(self):
        def make(scale: float, knowledge: Knowledge, chosen: Chosen) -> Learner:
            raise AssertionError

        class Making:
            def __call__(self, knowledge: Knowledge, chosen: Chosen) -> Learner:
                raise AssertionError

            def method(self, knowledge: Knowledge, chosen: Chosen) -> Learner:
                raise AssertionError

        partly = (functools.partial(make, 2.0), functools.partial(make, scale=2.0))
        for factory in (partly[0], Making(), Making().method):
            assert as_algorithm(factory).record is Chosen
        with refused("is not a factory: it must take knowledge and parameters."):
            as_algorithm(partly[1])  # the first argument would be given twice

    def test_else_the_papers(self):
        def of_anything(knowledge: Knowledge, chosen: Any) -> Learner:
            raise AssertionError

        def of_a_dict(knowledge: Knowledge, chosen: dict[str, float]) -> Learner:
            raise AssertionError

        def of_what_is_not_there(knowledge: Knowledge, chosen: "Elsewhere") -> Learner:  # noqa: F821
            raise AssertionError

        for factory in (plain, of_anything, of_a_dict, of_what_is_not_there):
            assert as_algorithm(factory).record is Hyperparameters
        assert as_algorithm(plain).choose({}, 5).regularization == constant(0.0)

    def test_an_annotation_that_cannot_be_chosen_from(self):
        class Odd(NamedTuple):
            names: list[str] = []  # noqa: RUF012

        def odd(knowledge: Knowledge, chosen: Odd) -> Learner:
            raise AssertionError

        with refused("the parameter names has the type list[str]; declare it as Scheduled"):
            as_algorithm(odd)

    @pytest.mark.parametrize("factory", [lambda: 3, lambda knowledge: 3, len])
    def test_what_is_no_factory(self, factory: Any):
        for own in (factory, Algorithm("own", factory)):
            with refused("is not a factory: it must take knowledge and parameters."):
                as_algorithm(own)


class TestAddresses:
    @pytest.fixture
    def module(self, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
        """With a factory, and an algorithm that is made of it."""
        module = types.ModuleType("own_module")
        code = "from cmdpax.learners import Algorithm\ndef make(knowledge, chosen): ...\n"
        exec(code, module.__dict__)
        module.MINE = Algorithm("mine", module.make)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "own_module", module)
        return module

    def test_of_an_algorithm_in_a_module(self, module: Any):
        assert address_of(module.MINE) == "own_module:MINE"
        assert address_of(module.make) == "own_module:make"
        for address in ("own_module:MINE", "own_module:make"):
            found = as_algorithm(address)
            assert found.name == address
            assert found.factory is module.make
            assert address_of(found) == address

    def test_what_an_address_says_of_an_algorithm_is_kept(self, module: Any):
        module.MINE = Algorithm("mine", annotated, summary="slow", anytime=False, baseline=True)
        found = as_algorithm("own_module:MINE")
        assert dataclasses.replace(found, name="mine") == module.MINE

    def test_of_one_that_is_nowhere(self, module: Any):
        with pytest.raises(cmdpax.ParameterError, match="'mine' stands in no module"):
            address_of(dataclasses.replace(module.MINE))

    def test_of_a_partial(self, module: Any):
        module.PARTIAL = Algorithm("part", functools.partial(module.make))
        assert address_of(module.PARTIAL) == "own_module:PARTIAL"

    def test_of_registered_ones(self):
        for name in ALGORITHMS:
            assert address_of(name) == address_of(as_algorithm(name)) == name


def test_a_registered_name_is_not_for_ones_own() -> None:
    """Runs of it would be repeated with the registered one, without a word."""
    mine = Algorithm("vanilla-dual", as_algorithm("vanilla-primal-dual").factory)
    with pytest.raises(cmdpax.ParameterError, match="has the name of a registered one"):
        as_algorithm(mine)
    assert as_algorithm(as_algorithm("vanilla-dual")) is as_algorithm("vanilla-dual")


def test_algorithms_of_one_factory_share_a_program() -> None:
    """Vanilla is τ = 0, not a second program to compile."""
    programs = [as_algorithm(f"{kind}-primal-dual").program for kind in ("vanilla", "regularized")]
    assert programs[0] == programs[1]
    assert hash(programs[0]) == hash(programs[1])
    assert as_algorithm("vanilla-dual").program != as_algorithm("regularized-dual").program
