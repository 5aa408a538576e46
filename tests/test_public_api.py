import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import cmdpax

PROMISED = {
    "CMDP": ["transitions", "rewards", "constraint_rewards", "thresholds", "initial", "horizon"],
    "Successors": ["successors", "probabilities"],
    "validate": ["cmdp"],
    "load": ["path"],
    "save": ["cmdp", "path"],
    "evaluate": ["cmdp", "policy"],
    "solve": ["cmdp", "method"],
    "solve_many": ["cmdps"],
    "solve_regularized": ["cmdp", "regularization", "max_multiplier"],
    "from_costs": ["transitions", "rewards", "costs", "limits", "initial", "horizon"],
    "sweep": ["specification", "out"],
    "audit": ["cmdp"],
    "results": ["path"],
}
LATER = dict(cmdpax._LATER)
"""Names that are imported when they are first used, and from where."""


def run_python(script: str, folder: Path) -> str:
    """Standard output of a script in a process of its own."""
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


def test_all_is_complete() -> None:  # its order is the linter's business
    assert len(cmdpax.__all__) == len(set(cmdpax.__all__))
    modules = {module.name for module in pkgutil.iter_modules(cmdpax.__path__)}
    public = {name for name in vars(cmdpax) if not name.startswith("_") and name not in modules} | {
        "__version__",
        "environments",
        "parameters",
        "schedules",
        *LATER,
    }
    public -= {"TYPE_CHECKING", "Any", "importlib"}  # what `__init__` itself uses
    assert public == set(cmdpax.__all__)


@pytest.mark.parametrize("name", LATER)
def test_larger_parts_are_there_when_asked_for(name: str) -> None:
    assert getattr(cmdpax, name) is getattr(importlib.import_module(LATER[name]), name)
    assert name not in vars(cmdpax)


def test_what_is_imported_later() -> None:
    assert set(LATER) >= {"Audit", "Results", "Specification", "audit", "results", "sweep"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'cmdpax' has no attribute 'sweeps'"):
        cmdpax.sweeps  # noqa: B018


@pytest.mark.kills
def test_a_missing_package_is_named(tmp_path: Path) -> None:
    script = """
import sys
sys.modules["pydantic"] = None
import cmdpax
try:
    cmdpax.sweep
except cmdpax.MissingPackageError as error:
    print(error)
"""
    expected = "cmdpax.sweep needs the package pydantic; run `pip install pydantic`."
    assert run_python(script, tmp_path) == expected


@pytest.mark.parametrize("name", PROMISED)
def test_promised_names_take_the_promised_arguments(name: str) -> None:
    parameters = list(inspect.signature(getattr(cmdpax, name)).parameters)
    assert parameters[: len(PROMISED[name])] == PROMISED[name]


def test_defaults_that_scripts_rely_on() -> None:
    assert inspect.signature(cmdpax.CMDP).parameters["horizon"].default is None
    method = inspect.signature(cmdpax.solve).parameters["method"]
    assert method.default == "column-generation"


def test_results_have_the_promised_fields() -> None:
    solution = cmdpax.solve(cmdpax.environments.make("bandit"))
    for name in ("value", "constraint_values", "policy", "occupancy", "multipliers", "gap"):
        assert getattr(solution, name) is not None
    assert solution.num_columns > 0
    assert solution.slater_gap == pytest.approx(0.4)
    assert {"value", "constraint_values", "occupancy"} <= set(cmdpax.Evaluation._fields)
    assert {"value", "policy", "multipliers"} <= set(cmdpax.RegularizedSolution._fields)


def test_every_public_thing_has_a_docstring() -> None:
    for name in cmdpax.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(cmdpax, name)), name


def test_every_module_can_be_imported() -> None:
    for module in pkgutil.walk_packages(cmdpax.__path__, "cmdpax."):
        if not module.name.endswith("__main__"):
            assert importlib.import_module(module.name).__doc__, module.name


def test_errors_form_one_family() -> None:
    for error in (
        cmdpax.ModelError,
        cmdpax.ParameterError,
        cmdpax.LearnerError,
        cmdpax.SolverError,
        cmdpax.FileError,
    ):
        assert issubclass(error, cmdpax.CmdpaxError)
    assert issubclass(cmdpax.InfeasibleError, cmdpax.CmdpaxError)
    assert issubclass(cmdpax.ModelError, ValueError)
    assert issubclass(cmdpax.LearnerError, ValueError)
    assert issubclass(cmdpax.FileError, OSError)


def test_an_infeasible_error_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(cmdpax.InfeasibleError(-0.25, 1)))
    assert (error.slater_gap, error.worst_constraint) == (-0.25, 1)
    assert "infeasible" in str(error)


# ------------------------------------------------------------------------------------ import costs


@pytest.mark.kills
def test_importing_loads_no_solver_and_no_terminal_library(tmp_path: Path) -> None:
    script = """
import sys
import jax, jaxtyping, numpy
before = set(sys.modules)
import cmdpax
new = {name.partition(".")[0] for name in set(sys.modules) - before}
heavy = {"scipy", "typer", "rich", "click", "pandas", "matplotlib"}
print(*sorted(new & (heavy | {"polars", "pydantic", "pydantic_core", "tomli_w"})))
"""
    assert run_python(script, tmp_path) == ""


@pytest.mark.kills
def test_importing_changes_nothing_in_jax(tmp_path: Path) -> None:
    script = """
import jax
before = dict(jax.config.values)
import cmdpax
print(before == dict(jax.config.values), jax.config.jax_enable_x64)
"""
    assert run_python(script, tmp_path) == "True False"


@pytest.mark.kills
def test_a_warning_points_at_the_callers_line(tmp_path: Path) -> None:
    script = """
import warnings
import cmdpax
cmdp = cmdpax.environments.make("random", num_constraints=3, seed=1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cmdpax.solve(cmdp, max_columns=1)
print([warning.filename for warning in caught])
"""
    assert run_python(script, tmp_path) == "['<string>']"
