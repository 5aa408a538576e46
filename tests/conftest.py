"""Settings of the test process, and the golden models.

JAX's 64-bit types stay off: the library switches them on where it needs them, and tests call it
the way a user does.
"""

import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import jax
import pytest

from golden_files import GOLDEN_NAMES, Golden

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

_COMMON: dict[str, Any] = {
    "deadline": None,
    "max_examples": 25,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("dev", **_COMMON)
hypothesis.settings.register_profile("ci", derandomize=True, print_blob=True, **_COMMON)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(params=GOLDEN_NAMES)
def golden(request: pytest.FixtureRequest) -> Golden:
    """Every golden model in turn."""
    return Golden(request.param)


@pytest.fixture
def bandit() -> Golden:
    """The paper's minimal example."""
    return Golden("bandit")


@pytest.fixture
def paper() -> Golden:
    """The CMDP of the paper's experiments: S = A = H = 5, I = 1."""
    return Golden("paper")


@pytest.fixture
def two_constraints() -> Golden:
    """S = 4, A = 3, H = 6, I = 2, both constraints binding."""
    return Golden("two_constraints")


@pytest.fixture
def double_precision() -> Iterator[None]:
    """JAX's 64-bit types, for tests of the functions below the public ones."""
    with jax.enable_x64(True):
        yield
