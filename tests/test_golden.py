"""Golden numbers: an independent implementation's, to 1e-9."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cmdpax
from checks import METHODS, assert_optimal
from golden_files import GOLDEN_FOLDER, GOLDEN_NAMES, Golden


@pytest.mark.parametrize("method", METHODS)
def test_optima(golden: Golden, method: str) -> None:
    solution = cmdpax.solve(golden.cmdp, method)
    assert_optimal(golden.cmdp, solution, float(golden["optimum_value"]))
    assert solution.multipliers == pytest.approx(golden["optimum_multipliers"], abs=1e-9)
    assert solution.constraint_values == pytest.approx(
        golden["optimum_constraint_values"], abs=1e-9
    )
    assert solution.slater_gap == pytest.approx(float(golden["optimum_slater_gap"]), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_unconstrained_optima(golden: Golden, method: str) -> None:
    free = golden.cmdp.replace(constraint_rewards=[], thresholds=[])
    solution = cmdpax.solve(free, method)
    assert solution.value == pytest.approx(float(golden["unconstrained_value"]), abs=1e-9)


def test_saddle_points(golden: Golden) -> None:
    found = cmdpax.solve_regularized(
        golden.cmdp,
        regularization=float(golden["saddle_regularization"]),
        max_multiplier=float(golden["saddle_max_multiplier"]),
    )
    assert found.value == pytest.approx(float(golden["saddle_value"]), abs=1e-9)
    assert found.multipliers == pytest.approx(golden["saddle_multipliers"], abs=1e-9)
    np.testing.assert_allclose(found.policy, golden["saddle_policy"], rtol=0, atol=1e-9)


# What a user's script does, in a process of its own where nothing is configured.
_SCRIPT = """
import json, sys, threading, warnings
import numpy as np, jax
import cmdpax

warnings.simplefilter("error")
after_import = jax.config.jax_enable_x64
with np.load(sys.argv[1]) as archive:
    golden = {key: archive[key] for key in archive.files}
cmdp = cmdpax.CMDP(*(golden["cmdp_" + name] for name in cmdpax.CMDP.ARRAYS))
report = {"x64 after import": after_import}

def work(place):
    errors, arrays = {}, []
    for method in ("column-generation", "occupancy-lp"):
        solution = cmdpax.solve(cmdp, method)
        errors[method + " value"] = solution.value - golden["optimum_value"]
        errors[method + " multipliers"] = solution.multipliers - golden["optimum_multipliers"]
        errors[method + " constraints"] = (
            solution.constraint_values - golden["optimum_constraint_values"]
        )
        errors[method + " slater gap"] = solution.slater_gap - golden["optimum_slater_gap"]
        reached = cmdpax.evaluate(cmdp, solution.policy)
        errors[method + " policy"] = reached.value - golden["optimum_value"]
        errors[method + " occupancy"] = solution.occupancy - reached.occupancy
        arrays += [solution.multipliers, solution.constraint_values, solution.policy]
        arrays += [solution.occupancy, reached.occupancy, reached.constraint_values]
    saddle = cmdpax.solve_regularized(cmdp, regularization=0.05, max_multiplier=6.0)
    for name in ("value", "multipliers", "policy"):
        errors["saddle " + name] = getattr(saddle, name) - golden["saddle_" + name]
    arrays += [saddle.multipliers, saddle.policy, saddle.log_policy]
    report[place + " errors"] = {name: float(np.abs(e).max()) for name, e in errors.items()}
    kinds = {(np.ndarray if isinstance(a, np.ndarray) else type(a), a.dtype) for a in arrays}
    report[place + " types"] = sorted(f"{kind.__name__} {dtype}" for kind, dtype in kinds)
    report[place + " x64"] = jax.config.jax_enable_x64

work("main")
thread = threading.Thread(target=work, args=["thread"])
thread.start()
thread.join()
report["jax precision"] = str(jax.numpy.ones(3).dtype)
print(json.dumps(report))
"""


@pytest.mark.kills
@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_in_a_process_with_single_precision_as_jax_starts(name: str, tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(GOLDEN_FOLDER / f"{name}.npz")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert completed.returncode == 0, completed.stderr
    report = json.loads(completed.stdout)
    assert report["x64 after import"] is False
    assert report["jax precision"] == "float32"
    for place in ("main", "thread"):
        assert report[f"{place} types"] == ["ndarray float64"]
        assert report[f"{place} x64"] is False
        assert len(report[f"{place} errors"]) == 15
        assert max(report[f"{place} errors"].values()) <= 1e-9, report
