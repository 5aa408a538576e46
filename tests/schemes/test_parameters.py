"""What the user of an algorithm chooses: typed records, and the sentences about their fields."""

import collections
import json
import math
import re
from typing import Annotated, Any, NamedTuple, Union

import numpy as np
import pytest

import cmdpax
from cmdpax.learners import Algorithm, Parameter, Scheduled
from cmdpax.schemes.parameters import in_words, parameters_in_words, parameters_of
from cmdpax.schemes.schedules import Schedule, constant, power

LONG = 2**31 - 1


class Chosen(NamedTuple):
    """A field of every kind."""

    rate: Annotated[Scheduled, Parameter("step", symbol="α", above=0)] = 0.5
    gain: Annotated[float, Parameter("weight", at_least=0, at_most=10)] = 2
    window: Annotated[int, Parameter("episodes", above=0)] = 20
    eager: bool = False
    mode: Annotated[str, Parameter("how", choices=("fast", "safe"))] = "safe"


def nobody(knowledge: Any, parameters: Chosen) -> Any:
    """A factory that is never called."""
    raise AssertionError


OWN = Algorithm("own", nobody)


def the(name: str) -> Parameter:
    return next(one for one in OWN.parameters if one.name == name)


def only(annotation: Any, default: Any) -> Parameter:
    """The field of a record that has no other."""

    class Record(NamedTuple):
        x: annotation = default

    (found,) = parameters_of(Record)
    return found


def refused(sentence: str) -> Any:
    return pytest.raises(cmdpax.ParameterError, match=re.escape(sentence))


class TestFields:
    def test_kinds_come_from_annotations(self):
        assert {one.name: one.kind for one in OWN.parameters} == {
            "rate": "schedule",
            "gain": "number",
            "window": "whole number",
            "eager": "flag",
            "mode": "choice",
        }
        compiled = [one.name for one in OWN.parameters if one.is_compiled_in]
        assert compiled == ["window", "eager", "mode"]

    @pytest.mark.parametrize(
        "annotation",
        [Scheduled, Schedule, int | Schedule | float, Union[Schedule, int, float]],  # noqa: UP007
    )
    def test_a_schedule_is_declared_in_any_order(self, annotation: Any):
        assert only(annotation, 0.1).kind == "schedule"
        assert only(Annotated[annotation, "a note", Parameter("step")], 0.1).help == "step"

    def test_what_is_said_about_them_is_kept(self):
        rate = the("rate")
        assert (rate.help, rate.symbol, rate.above) == ("step", "α", 0)
        assert the("mode").choices == ("fast", "safe")
        assert the("eager").help == ""

    def test_defaults_are_read_like_what_is_given(self):
        defaults = Chosen(*(one.default for one in OWN.parameters))
        assert defaults == (constant(0.5), 2.0, 20, False, "safe")
        assert list(map(type, defaults)) == [Schedule, float, int, bool, str]
        assert only(Scheduled, power(0.3, 0.2)).default == (0.3, 0.2, 0.0)
        assert only(Scheduled, "0.3*k^-0.2").default == (0.3, 0.2, 0.0)

    @pytest.mark.parametrize(
        ("annotation", "default", "sentence"),
        [
            (float, None, "the parameter x has no default; declare it as Scheduled, float,"),
            (list[float], [0.1], "the parameter x has the type list[float]; declare it as"),
            (float | None, 0.1, "the parameter x has the type float | None; declare it as"),
            (float | int, 1, "the parameter x has the type float | int; declare it as"),
            (complex, 1j, "the parameter x has the type <class 'complex'>; declare it as"),
            (Any, 1, "the parameter x has the type typing.Any; declare it as"),
            (Annotated[float, Parameter(above=0)], -1, "x is -1, it must be a positive number."),
            (float, "much", "x is 'much', it must be a number."),
            (int, 0.5, "x is 0.5, it must be a whole number."),
            (bool, 1, "x is 1, it must be true or false."),
            (str, "word", "x is 'word'; known: none."),
        ],
    )
    def test_records_that_cannot_be_chosen_from(self, annotation: Any, default: Any, sentence: str):
        with refused(sentence):
            only(annotation, default)

    def test_a_field_without_a_default(self):
        with refused("the parameter gain has no default; declare it as Scheduled, float, Numbers,"):
            parameters_of(NamedTuple("Record", [("gain", float)]))
        untyped = collections.namedtuple("untyped", "gain", defaults=(1,))
        with refused("the parameter gain has the type None; declare it as"):
            parameters_of(untyped)

    @pytest.mark.parametrize("record", [dict, tuple, int, Chosen(), {"gain": 1.0}, None])
    def test_what_is_no_record(self, record: Any):
        with refused("; declare them as a NamedTuple."):
            parameters_of(record)
        if record is not None:  # which stands for the annotation of the factory
            with refused("the parameters of an algorithm are "):
                Algorithm("own", nobody, record)


class TestReading:
    @pytest.mark.parametrize(
        ("name", "given", "expected"),
        [
            ("rate", 1, (1.0, 0.0, 0.0)),
            ("rate", np.float32(0.5), (0.5, 0.0, 0.0)),
            ("rate", power(2, 1, 3), (2.0, 1.0, 3.0)),
            ("rate", "0.3*(k+10)^-0.2", (0.3, 0.2, 10.0)),
            ("rate", {"initial": 1, "exponent": 0.5}, (1.0, 0.5, 0.0)),
            ("rate", {"initial": 1, "offset": 2}, (1.0, 0.0, 2.0)),
            ("gain", 0, 0.0),
            ("gain", np.array(10), 10.0),
            ("window", np.int64(3), 3),
            ("window", 10**400, 10**400),
            ("eager", np.True_, True),
            ("mode", "fast", "fast"),
        ],
    )
    def test_values_become_plain_python(self, name: str, given: Any, expected: Any):
        found = the(name).read(given, 100)
        assert found == expected
        assert type(found) is (Schedule if name == "rate" else type(expected))

    @pytest.mark.parametrize(
        ("name", "given", "sentence"),
        [
            ("rate", 0, "rate is 0, it must be positive."),
            ("rate", -1.0, "rate is -1.0, it must be positive."),
            ("rate", power(-2, 1), "rate is -2*k^-1, it must be positive."),
            ("rate", math.nan, "rate is nan, it must be a finite number or a schedule"),
            (
                "rate",
                "fast",
                "rate is 'fast', it must be a number or a schedule such as 0.3*k^-0.2",
            ),
            ("rate", "0*k^-1", "rate is '0*k^-1', it must be positive."),
            ("rate", [0.1, 0, 0], "rate is [0.1, 0, 0], it must be a finite number or a schedule"),
            ("rate", Schedule(1, 1, -1), "rate has the offset -1, it must exceed -1."),
            (
                "rate",
                {"initial": 1, "exponnent": 1},
                "unknown key 'exponnent'; did you mean 'exponent",
            ),
            ("rate", {"exponent": 1}, "rate is {'exponent': 1}, it needs the key 'initial'."),
            ("rate", True, "rate is True, it must be a finite number or a schedule"),
            ("gain", -0.1, "gain is -0.1, it must not be negative."),
            ("gain", 11, "gain is 11, it must not exceed 10."),
            ("gain", math.inf, "gain is inf, it must be a number."),
            ("gain", 10**400, "it must be a number."),
            ("gain", "2", "gain is '2', it must be a number."),
            ("gain", power(1, 1), "it must be a number."),
            ("gain", True, "gain is True, it must be a number."),
            ("window", 0, "window is 0, it must be a positive number."),
            ("window", -(10**400), "it must be a positive number."),
            ("window", 2.0, "window is 2.0, it must be a positive whole number."),
            ("window", True, "window is True, it must be a positive whole number."),
            ("eager", 1, "eager is 1, it must be true or false."),
            ("eager", "true", "eager is 'true', it must be true or false."),
            ("mode", "sage", "mode is 'sage'; did you mean 'safe'? known: fast, safe."),
            ("mode", 3, "mode is 3; known: fast, safe."),
        ],
    )
    def test_impossible_values(self, name: str, given: Any, sentence: str):
        with refused(sentence):
            the(name).read(given, 100)

    @pytest.mark.parametrize(
        ("bounds", "given", "sentence"),
        [
            ({"above": 2}, 2, "x is 2, it must exceed 2."),
            ({"at_least": 2}, 1, "x is 1, it must be at least 2."),
            ({"at_most": 2}, 3, "x is 3, it must not exceed 2."),
            ({"at_least": 2, "at_most": 2}, 3, "x is 3, it must be 2."),
            ({"above": 0, "at_most": 1, "hint": "use y"}, 2, "it must not exceed 1; use y."),
            ({"above": 0, "at_most": 1, "hint": "use y"}, 0, "be a positive number; use y."),
        ],
    )
    def test_ranges(self, bounds: dict[str, Any], given: Any, sentence: str):
        with refused(sentence):
            Parameter(name="x", **bounds).read(given, 5)

    def test_ranges_in_words(self):
        ranges = {one.name: one.range for one in OWN.parameters}
        assert ranges == {
            "rate": "> 0",
            "gain": "≥ 0, ≤ 10",
            "window": "> 0",
            "eager": "true or false",
            "mode": "fast, safe",
        }
        assert Parameter().range == ""
        assert Parameter(at_least=0, at_most=0).range == "0"


class TestSchedules:
    """They are monotone, so that the first and the last episode say all about a range."""

    @pytest.mark.parametrize(
        ("schedule", "sentence"),
        [
            (power(3, 1), "x is 3*k^-1, it must not exceed 2."),
            (power(1, -0.5), "x is 1*k^0.5, it must not exceed 2."),
            (power(2, 1), "x is 2*k^-1, it must be at least 0.5."),
        ],
    )
    def test_both_ends_are_checked(self, schedule: Schedule, sentence: str):
        bounded = Parameter(name="x", kind="schedule", at_least=0.5, at_most=2)
        with refused(sentence):
            bounded.read(schedule, 5)

    def test_the_ends_depend_on_the_number_of_episodes(self):
        growing = Parameter(name="x", kind="schedule", at_most=2)
        assert growing.read(power(1, -0.5), 4) == (1, -0.5, 0)
        with refused("it must not exceed 2."):
            growing.read(power(1, -0.5), 5)

    @pytest.mark.parametrize("exponent", [40, 1e5, 1e308])
    def test_what_underflows_keeps_its_sign(self, exponent: float):
        """0.5·k^-40 is no double for the last k, and still positive for every k."""
        vanishing = power(0.5, exponent)
        assert the("rate").read(vanishing, LONG) == vanishing
        with refused("it must be positive."):
            the("rate").read(power(-0.5, exponent), LONG)
        at_least = Parameter(name="x", kind="schedule", at_least=0)
        assert at_least.read(power(0.0, exponent), LONG) == (0.0, exponent, 0.0)
        assert at_least.read(power(0.0, -exponent), LONG) == (0.0, -exponent, 0.0)
        with refused("it must not be negative."):
            at_least.read(power(-0.5, exponent), LONG)


class TestFilesAndTables:
    CHOSEN = Chosen(power(0.3, 0.2, 1), 0.1, 3, True, "fast")

    def test_what_is_described_is_restored(self):
        described = OWN.describe(self.CHOSEN)
        assert described == {
            "rate": [0.3, 0.2, 1.0],
            "gain": 0.1,
            "window": 3,
            "eager": True,
            "mode": "fast",
        }
        read = json.loads(json.dumps(described))
        restored = OWN.restore(read | {"seed": 7}, 100)
        assert restored == self.CHOSEN
        assert list(map(type, restored)) == list(map(type, self.CHOSEN))

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"rate": [0.3]}, "rate is [0.3], it must be a finite number or a schedule"),
            ({"rate": [0.3, "a", 0.0]}, "it must be a finite number or a schedule"),
            ({"rate": None}, "rate is None, it must be a finite number or a schedule"),
            ({"gain": None}, "gain is None, it must be a number."),
            ({"gain": 11.0}, "gain is 11.0, it must not exceed 10."),
            ({"window": [3]}, "window is [3], it must be a positive whole number."),
            ({"mode": None}, "mode is None; known: fast, safe."),
        ],
    )
    def test_what_nobody_described_is_refused(self, change: dict[str, Any], sentence: str):
        with refused(sentence):
            OWN.restore(OWN.describe(self.CHOSEN) | change, 100)

    @pytest.mark.parametrize("name", Chosen._fields)
    def test_nothing_may_be_missing(self, name: str):
        described = OWN.describe(self.CHOSEN)
        del described[name]
        with refused(f"own has the parameter {name!r}, which is missing."):
            OWN.restore(described, 100)

    def test_columns_of_a_table(self):
        row: dict[str, Any] = {"seed": 7}
        for one in OWN.parameters:
            row |= zip(one.columns, one.cells(getattr(self.CHOSEN, one.name)), strict=True)
        assert row == {
            "seed": 7,
            "rate": 0.3,
            "rate_exponent": 0.2,
            "rate_offset": 1.0,
            "gain": 0.1,
            "window": 3,
            "eager": True,
            "mode": "fast",
        }
        found = {one.name: one.from_row(row) for one in OWN.parameters}
        assert found == OWN.describe(self.CHOSEN)
        assert OWN.restore(found, 100) == self.CHOSEN

    def test_for_people(self):
        words = "rate 0.3*(k+1)^-0.2, gain 0.1, window 3, eager True, mode fast"
        assert parameters_in_words(self.CHOSEN) == words
        each = [f"{one.name} {in_words(getattr(self.CHOSEN, one.name))}" for one in OWN.parameters]
        assert ", ".join(each) == words
