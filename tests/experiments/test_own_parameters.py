"""Sweeps over an algorithm of one's own, whose parameters have names of their own."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars
import pytest

import cmdpax
import sweep_cases
from cmdpax.experiments import executing, read_specification
from cmdpax.experiments.runs import Run, make_batches, make_models, make_runs
from cmdpax.learners import Algorithm, Knowledge, Learner, Parameter, Scheduled
from cmdpax.reporting.content import content
from report_cases import invent
from sweep_cases import GEARED, OWN, OWN_GRID, Geared, contents, geared, specification

pytestmark = pytest.mark.filterwarnings("ignore:max_multiplier is 6, below")
PAPER = ("step_size", "regularization", "max_multiplier", "margin")
BOTH = specification(algorithms=[OWN_GRID, {"name": "vanilla-dual", "step_size": [0.2, 0.4]}])
BANDIT = [{"environment": "bandit"}]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    """Two CMDPs, two seeds; of one's own four configurations, of a registered one two."""
    return cmdpax.sweep(BOTH, tmp_path_factory.mktemp("both"))


def runs_of(**algorithm: Any) -> list[Run]:
    chosen = [{"name": OWN} | algorithm]
    wanted = read_specification(specification(cmdps=BANDIT, seeds=1, algorithms=chosen))
    return make_runs(wanted, make_models(wanted))


def rows_of(results: cmdpax.Results, **values: Any) -> polars.DataFrame:
    return results.final.filter(**values).sort("cmdp", "seed")


class TestTables:
    def test_all_combinations_are_run(self, results: cmdpax.Results):
        own = results.final.filter(algorithm=OWN)
        assert set(own.select("gain", "mode").rows()) == {
            (gain, mode) for gain in (0.2, 0.4) for mode in ("dual", "primal-dual")
        }
        assert len(own) == 4 * 2 * 2
        assert own["configuration"].n_unique() == 4

    def test_what_an_algorithm_does_not_have_is_null(self, results: cmdpax.Results):
        own, other = results.final.filter(algorithm=OWN), rows_of(results, algorithm="vanilla-dual")
        for name in ("gain", "mode"):
            assert own[name].null_count() == 0
            assert other[name].null_count() == len(other) == 8
        for name in PAPER:
            assert own[name].null_count() == len(own) == 16
            assert other[name].null_count() == 0

    def test_columns_are_numbers_and_words_beside_the_others(self, results: cmdpax.Results):
        schema, names = results.final.schema, results.final.columns
        assert (schema["gain"], schema["mode"]) == (polars.Float64, polars.String)
        assert "gain_exponent" not in names
        last = names.index("optimism_bonus")
        chosen = names[names.index("seed") + 1 : last]
        assert set(chosen) == {
            *("gain", "mode", "max_multiplier"),
            *(f"{name}{part}" for name in PAPER for part in ("", "_exponent", "_offset")),
        } - {"max_multiplier_exponent", "max_multiplier_offset"}

    def test_numbers_are_those_of_the_parameters(self, results: cmdpax.Results):
        for gain in (0.2, 0.4):
            own = rows_of(results, algorithm=OWN, gain=gain, mode="dual")
            same = rows_of(results, algorithm="vanilla-dual", step_size=gain)
            for name in ("strong_objective", "strong_constraints", "weak_objective"):
                np.testing.assert_allclose(own[name], same[name], rtol=0, atol=1e-9)
        other = rows_of(results, algorithm=OWN, gain=0.2, mode="primal-dual")
        assert (other["strong_objective"] != same["strong_objective"]).all()

    def test_opened_again_they_are_the_same(self, results: cmdpax.Results):
        assert cmdpax.results(results.path).final.equals(results.final)


class TestBestAndCompared:
    def test_best(self, results: cmdpax.Results):
        best = results.best("weak_objective")
        assert best["algorithm"].to_list() == [OWN, "vanilla-dual"]
        own, other = best.rows(named=True)
        means = (
            results.final.filter(algorithm=OWN)
            .group_by("gain", "mode")
            .agg(polars.col("weak_objective").mean())
            .sort("weak_objective")
        )
        assert (own["gain"], own["mode"], own["score"]) == pytest.approx(means.row(0))
        assert (own["step_size"], own["margin"], other["gain"], other["mode"]) == (None,) * 4
        assert (own["runs"], other["runs"]) == (4, 4)

    def test_compare(self, results: cmdpax.Results):
        found = cmdpax.compare(results, OWN, "vanilla-dual")
        best = {row["algorithm"]: row["score"] for row in results.best().rows(named=True)}
        assert (found.pairs, found.cmdps) == (4, 2)
        assert found.first_mean == pytest.approx(best[OWN])
        assert found.second_mean == pytest.approx(best["vanilla-dual"])

    def test_configurations_are_compared_too(self, results: cmdpax.Results):
        own = rows_of(results, algorithm=OWN, gain=0.2, mode="dual")["configuration"][0]
        same = rows_of(results, algorithm="vanilla-dual", step_size=0.2)["configuration"][0]
        assert cmdpax.compare(results, own, same).difference.mean == pytest.approx(0, abs=1e-9)


class TestRepeating:
    @pytest.mark.parametrize("algorithm", [geared, OWN], ids=["object", "address"])
    def test_every_value_is_that_of_the_row(self, results: cmdpax.Results, algorithm: Any):
        cmdp = next(iter(results.cmdps))
        for row in rows_of(results, algorithm=OWN, cmdp=cmdp, seed=1).rows(named=True):
            history = results.repeat(row["run"], algorithm=algorithm)
            (run,) = history.manifest["runs"]
            assert {name: run[name] for name in Geared._fields} == {
                name: row[name] for name in Geared._fields
            }
            found = history.strong_regret.objective[0, -1]
            assert found == pytest.approx(row["strong_objective"], abs=1e-9)

    def test_an_algorithm_is_known_by_its_own_address(self, tmp_path: Path):
        chosen = [{"name": GEARED, "gain": 0.3}]
        results = cmdpax.sweep(specification(cmdps=BANDIT, algorithms=chosen, seeds=1), tmp_path)
        (row,) = results.final.rows(named=True)
        assert row["algorithm"] == "sweep_cases:GEARED"  # though it has that name here, too
        for algorithm in (GEARED, "sweep_cases:GEARED"):
            assert results.repeat(row["run"], algorithm).manifest["runs"][0]["gain"] == 0.3
        with pytest.raises(cmdpax.ParameterError, match="not with 'geared'; give the one that ma"):
            results.repeat(row["run"], geared)

    def test_an_algorithm_without_an_address_is_refused(self):
        for name in ("mine", "vanilla-dual"):  # the second is the name of another one
            lost = Algorithm(name, geared)
            sentence = rf"algorithms\[0\]: the algorithm '{name}' stands in no module; give it"
            with pytest.raises(cmdpax.ParameterError, match=sentence):
                read_specification(specification(algorithms=[{"name": lost}]))

    def test_parameters_that_came_later_are_missing(
        self, results: cmdpax.Results, monkeypatch: pytest.MonkeyPatch
    ):
        class Later(NamedTuple):
            gain: float = 0.1
            step_size: float = 0.1
            more: float = 0.0

        run = results.final.filter(algorithm=OWN)["run"][0]
        monkeypatch.setattr(sweep_cases, "geared", Algorithm("geared", geared, Later))
        with pytest.raises(cmdpax.ParameterError, match="has the parameter 'step_size', which is"):
            results.repeat(run, algorithm=OWN)


class TestIdentities:
    def test_depend_on_the_values(self):
        plain = {"gain": 0.2, "mode": "dual"}
        changes: list[dict[str, Any]] = [{}, {"gain": 0.2000001}, {"mode": "primal-dual"}]
        found = [run for change in changes for run in runs_of(**(plain | change))]
        for name in ("identity", "configuration_name"):
            assert len({getattr(run, name) for run in found}) == len(changes)

    def test_do_not_depend_on_how_a_value_is_written(self):
        default = runs_of()[0].identity
        for same in ({"gain": 0.1}, {"mode": ["dual"]}, {"gain": None}, {"gain": np.float64(0.1)}):
            assert [run.identity for run in runs_of(**same)] == [default]
        assert runs_of(gain=1) == runs_of(gain=1.0) == runs_of(gain=[1, 1.0])

    def test_belong_to_the_algorithm(self):
        (first,), (second,) = runs_of(), runs_of(name=GEARED)
        assert first.configuration.parameters == second.configuration.parameters
        assert first.identity != second.identity


class TestBatches:
    def test_words_have_programs_of_their_own_and_numbers_share_one(self):
        wanted = read_specification(specification(algorithms=[OWN_GRID]))
        models = make_models(wanted)
        batches = make_batches(make_runs(wanted, models), models, wanted)
        chosen = [{run.configuration.parameters for run in batch.runs} for batch in batches]
        assert sorted(map(sorted, chosen)) == [
            [(0.2, mode), (0.4, mode)] for mode in ("dual", "primal-dual")
        ]

    @pytest.fixture
    def ran(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """The parameters of the runs that are made."""
        made: list[Any] = []
        run_batch = executing.run_batch

        def watched(task: Any, configurations: Any, *others: Any) -> Any:
            made.extend(one.parameters for one in configurations)
            return run_batch(task, configurations, *others)

        monkeypatch.setattr(executing, "run_batch", watched)
        return made

    def test_only_what_is_missing_is_run(self, ran: list[Any], tmp_path: Path):
        grid = {"name": OWN, "gain": [0.2], "mode": "dual"}
        plain = specification(cmdps=BANDIT, seeds=1, algorithms=[grid])
        cmdpax.sweep(plain, tmp_path)
        before = contents(tmp_path / "final")
        grid["gain"] = [0.2, 0.4]
        results = cmdpax.sweep(plain | {"algorithms": [{"name": "vanilla-dual"}, grid]}, tmp_path)
        assert ran[0] == (0.2, "dual")
        assert sorted(map(len, ran[1:])) == [2, 4]
        assert (0.4, "dual") in ran
        assert before.items() <= contents(tmp_path / "final").items()
        assert results.final["gain"].to_list() == [0.2, 0.4, None]
        cmdpax.sweep(plain, tmp_path)
        assert len(ran) == 3


# ------------------------------------------------------------------------ other kinds of parameters


class Kinds(NamedTuple):
    rate: Annotated[Scheduled, Parameter("step", above=0)] = 0.5
    window: Annotated[int, Parameter("episodes", above=0)] = 20
    eager: bool = False


class SameNames(NamedTuple):
    """Names of the paper's parameters, and of those above, that hold something else."""

    step_size: float = 0.5
    regularization: bool = True
    margin: Annotated[str, Parameter("how", choices=("wide", "0.5"))] = "wide"
    window: float = 2.5
    eager: int = 3


class Nothing(NamedTuple):
    """Nothing to choose."""


def kinds(knowledge: Knowledge, chosen: Kinds) -> Learner:
    return geared(knowledge, Geared())


def same_names(knowledge: Knowledge, chosen: SameNames) -> Learner:
    return geared(knowledge, Geared())


def nothing(knowledge: Knowledge, chosen: Nothing) -> Learner:
    return geared(knowledge, Geared())


MIXED = (
    {"name": kinds, "rate": ["0.5*(k+1)^-0.2", 0.1], "window": 7, "eager": [True, False]},
    {"name": same_names, "margin": ["wide", "0.5"]},
    {"name": nothing},
    {"name": "regularized-dual", "step_size": 0.25, "margin": 0.5},
)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    wanted = specification(cmdps=BANDIT, seeds=1, algorithms=list(MIXED))
    return cmdpax.sweep(wanted, tmp_path_factory.mktemp("mixed"))


class TestOtherKinds:
    def test_have_columns_of_their_types(self, tmp_path: Path):
        alone = specification(cmdps=BANDIT, seeds=1, algorithms=[MIXED[0]])
        final = invent(alone, tmp_path).final
        names = ["rate", "rate_exponent", "rate_offset", "window", "eager"]
        assert final.select(names).dtypes == [*[polars.Float64] * 3, polars.Int64, polars.Boolean]
        assert final.columns[6:11] == names
        assert final.select(names).unique().sort(names).rows() == [
            (0.1, 0.0, 0.0, 7, False),
            (0.1, 0.0, 0.0, 7, True),
            (0.5, 0.2, 1.0, 7, False),
            (0.5, 0.2, 1.0, 7, True),
        ]

    def test_are_repeated_whatever_others_of_the_same_name_are(self, mixed: cmdpax.Results):
        """In a table of all of them they share a column, which has one type."""
        factories = {f"{__name__}:{one.__name__}": one for one in (kinds, same_names, nothing)}
        assert len(mixed.final) == 4 + 2 + 1 + 1
        for row in mixed.final.rows(named=True):
            history = mixed.repeat(row["run"], factories.get(row["algorithm"]))
            (run,) = history.manifest["runs"]
            own = {name: run[name] for name in run if name not in ("seed", "optimism")}
            (made,) = [
                one.configuration.describe()
                for one in self.runs(mixed)
                if one.identity == row["run"]
            ]
            assert own == {name: made[name] for name in own}
            assert {name: type(value) for name, value in own.items()} == {
                name: type(made[name]) for name in own
            }

    def runs(self, mixed: cmdpax.Results) -> list[Run]:
        wanted = read_specification(mixed.manifest["specification"])
        return make_runs(wanted, make_models(wanted))

    def test_are_told_in_words(self, mixed: cmdpax.Results):
        payload, _ = content(mixed.path)
        (sweep,) = payload["sweeps"]
        names = sweep["algorithms"]
        told = {(names[one["algorithm"]], one["label"]) for one in sweep["configurations"]}
        assert len(told) == 8
        assert (f"{__name__}:nothing", "no parameters") in told
        paper = next(
            one for one in sweep["configurations"] if "regularized-d" in names[one["algorithm"]]
        )
        assert paper["parameters"] == {
            **{"step_size": "0.25", "regularization": "0.02", "max_multiplier": "6"},
            "margin": "0.5",
        }

    def test_nothing_to_choose(self, mixed: cmdpax.Results):
        row = mixed.final.filter(algorithm=f"{__name__}:nothing").row(0, named=True)
        chosen = [name for one in (Kinds, SameNames, Geared) for name in one._fields]
        assert {row.get(name) for name in chosen} == {None}
        with pytest.raises(cmdpax.ParameterError, match=r"algorithms\[0\]: unknown key gain; "):
            read_specification(specification(algorithms=[{"name": nothing, "gain": 1}]))
