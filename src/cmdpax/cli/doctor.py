"""`cmdpax doctor`: what is installed here, and whether it works; a table to paste into an issue."""

import importlib.metadata
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import typer

import cmdpax
from cmdpax.cli.models import AsJson
from cmdpax.cli.output import cell, messages, print_facts, print_json
from cmdpax.errors import CmdpaxError
from cmdpax.jax_context import compilation_cache

_OPTIONAL = {"gymnasium": "gymnasium", "ray": "ray"}  # distribution: extra
_MEBIBYTE = 2**20

Result = TypeVar("Result")


def doctor(as_json: AsJson = False) -> None:
    """Show versions, devices, cores and the cache, and solve a small model as a check.

    Example: cmdpax doctor
    """
    facts = {
        "cmdpax": f"{cmdpax.__version__} in {Path(cmdpax.__file__).parent}",
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        **_processors(),
        **_packages(),
    }
    problems = []
    for name, examine in {"devices": _devices, "cache": _cache, "check": _check}.items():
        try:
            facts[name] = examine()
        except (CmdpaxError, OSError, RuntimeError) as error:
            facts[name] = "failed"
            problems.append(f"{name}: {error}")
    if as_json:
        print_json({**facts, "problems": problems})
    else:
        print_facts(
            "cmdpax doctor", ((name, cell(fact)) for name, fact in facts.items()), fold=True
        )
    for problem in problems:
        messages.print(f"problem: {problem}", style="red")
    if problems:
        raise typer.Exit(1)


def _processors() -> dict[str, Any]:
    """How many cores this process may use of how many, and the memory in GiB where it is known."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts: dict[str, Any] = {"cores": f"{usable} usable of {os.cpu_count()}"}
    names = ("SC_PAGE_SIZE", "SC_PHYS_PAGES")
    if all(name in getattr(os, "sysconf_names", {}) for name in names):
        size, pages = map(os.sysconf, names)
        facts["memory"] = f"{size * pages / 2**30:.1f} GiB"
    return facts


def _packages() -> dict[str, str]:
    """The versions of what cmdpax requires, and of its extras or how to install them."""
    required = importlib.metadata.requires("cmdpax") or []
    names = [_name(line) for line in required if "extra ==" not in line]
    facts = {name: _version(name) or "missing" for name in sorted({*names, "jaxlib"})}
    for name, extra in _OPTIONAL.items():
        facts[name] = _version(name) or f"not installed (pip install 'cmdpax[{extra}]')"
    return facts


def _name(requirement: str) -> str:
    """The name that a requirement begins with."""
    length = next(
        (i for i, letter in enumerate(requirement) if not (letter.isalnum() or letter in "-_.")),
        len(requirement),
    )
    return requirement[:length]


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _devices() -> str:
    """What JAX computes on."""
    import jax

    devices = jax.devices()
    return f"{len(devices)} × {devices[0].device_kind} ({devices[0].platform})"


def _cache() -> str:
    """Where compiled programs are kept, and how much room they take."""
    folder = Path(compilation_cache())
    if not folder.exists():
        return f"{folder}, nothing yet"
    if not os.access(folder, os.W_OK):
        raise CmdpaxError(
            f"{folder} cannot be written, so that every process compiles anew; "
            "make it writable, or set XDG_CACHE_HOME to a folder that is."
        )
    sizes = [file.stat().st_size for file in folder.iterdir() if file.is_file()]
    return f"{folder}, {len(sizes)} files, {sum(sizes) / _MEBIBYTE:.0f} MiB"


def _check() -> str:
    """Solve the minimal example, and learn it for a few episodes, against what they should give."""
    cmdp = cmdpax.environments.make("bandit")
    solution, solved = _timed(lambda: cmdpax.solve(cmdp))
    exact = cmdpax.solve(cmdp, "occupancy-lp").value
    if not np.isclose(solution.value, exact, atol=1e-9):
        raise CmdpaxError(
            f"solve says {solution.value:.12g} and the linear program {exact:.12g} about the model "
            "bandit; please report this with the table above."
        )
    history, learned = _timed(
        lambda: cmdpax.learn(cmdp, "regularized-primal-dual", num_episodes=10)
    )
    if not np.isfinite(history.strong_regret.maximum).all():
        raise CmdpaxError(
            "learning the model bandit gave a regret that is not finite; please report this with "
            "the table above."
        )
    return f"solved in {solved:.1f} s and learned in {learned:.1f} s, compilation included"


def _timed(function: Callable[[], Result]) -> tuple[Result, float]:
    begun = time.perf_counter()
    return function(), time.perf_counter() - begun
