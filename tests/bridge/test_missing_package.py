import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.kills


def run_python(script: str, folder: Path) -> str:
    """Standard output of a script in a process of its own."""
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


def test_a_missing_gymnasium_is_named_with_the_extra(tmp_path: Path) -> None:
    script = """
import sys
sys.modules["gymnasium"] = None
import cmdpax
try:
    import cmdpax.gymnasium
except cmdpax.MissingPackageError as error:
    print(error, isinstance(error, ImportError), error.__suppress_context__)
"""
    assert run_python(script, tmp_path) == (
        "cmdpax.gymnasium needs the package gymnasium; run `pip install 'cmdpax[gymnasium]'`. "
        "True True"
    )


def test_the_library_alone_does_not_import_gymnasium(tmp_path: Path) -> None:
    script = """
import sys
import cmdpax
cmdpax.solve(cmdpax.environments.make("bandit"))
print("gymnasium" in sys.modules, "cmdpax.gymnasium" in sys.modules)
import cmdpax.gymnasium
print("gymnasium" in sys.modules)
"""
    assert run_python(script, tmp_path).split() == ["False", "False", "True"]


def test_importing_registers_the_families(tmp_path: Path) -> None:
    script = """
import gymnasium
env = gymnasium.make("cmdpax.gymnasium:cmdpax/mars-rover-v0")
print(env.observation_space)
"""
    assert run_python(script, tmp_path) == "Discrete(64)"
