"""Golden traces of schemes and learners: an independent implementation's, to 1e-8."""

import numpy as np
import pytest

import cmdpax
from golden_files import Golden
from lanes import quick_or_whole

SCHEMES = ("primal_dual", "dual")
TAU = {"vanilla": 0.0, "regularized": 0.05}
SETTINGS = {
    "theory": ("noisy", cmdpax.Optimism.theory(1000, failure_probability=0.1), 6.0),
    "scaled_theory": ("noisy", cmdpax.Optimism.theory(1000, 0.1, scale=0.02), 6.0),
    "empirical": ("clean", cmdpax.Optimism.empirical(0.08), 6.0),
    "capped": ("clean", cmdpax.Optimism.empirical(0.08), 0.4),
}


def assert_golden(golden: Golden, key: str, found: np.ndarray) -> None:
    np.testing.assert_allclose(found, golden[key], rtol=0, atol=1e-8, err_msg=key)


@pytest.mark.parametrize("kind", TAU)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_with_the_model_known(golden: Golden, scheme: str, kind: str) -> None:
    def iterate(count: int) -> cmdpax.Iterates:
        return cmdpax.iterate(
            golden.cmdp,
            scheme.replace("_", "-"),
            num_iterations=count,
            step_size=0.1,
            regularization=TAU[kind],
            max_multiplier=6.0,
        )

    prefix = f"known_{scheme}_{kind}"
    found = iterate(300)
    for name in ("multipliers", "value", "constraint_values"):
        assert_golden(golden, f"{prefix}_{name}", getattr(found, name))
    assert_golden(golden, f"{prefix}_policy_at_300", found.policy)
    assert_golden(golden, f"{prefix}_policy_at_10", iterate(10).policy)
    assert (found.potential is None) == (kind == "vanilla")
    if (scheme, kind) == ("primal_dual", "regularized"):
        assert found.potential is not None
        assert_golden(golden, f"{prefix}_potential", found.potential)


@pytest.mark.parametrize("kind", [quick_or_whole(kind, quick=kind != "vanilla") for kind in TAU])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_learners_fed_with_logged_episodes(
    golden: Golden, setting: str, scheme: str, kind: str
) -> None:
    log, optimism, max_multiplier = SETTINGS[setting]
    found = cmdpax.replay(
        golden.cmdp,
        f"{kind}-{scheme.replace('_', '-')}",
        cmdpax.Log(*(golden[f"log_{log}_{name}"] for name in cmdpax.Log._fields)),
        optimism=optimism,
        step_size=0.1,
        regularization=TAU[kind],
        max_multiplier=max_multiplier,
    )
    prefix = f"online_{setting}_{scheme}_{kind}"
    assert_golden(golden, f"{prefix}_multipliers", found.multipliers)
    optimistic = found.optimistic_constraint_values
    assert_golden(golden, f"{prefix}_optimistic_constraint_values", optimistic)
    for k in (1, 2, 10, 120):
        assert_golden(golden, f"{prefix}_policy_at_{k}", found.policies[k - 1])
    assert (found.q_values is None) == (scheme == "dual")
    if found.q_values is not None:
        assert_golden(golden, f"{prefix}_q_at_10", found.q_values[9])


def test_every_trace_is_compared(golden: Golden) -> None:
    """The keys above are all there are: nothing golden is left out."""
    known = {f"known_{scheme}_{kind}" for scheme in SCHEMES for kind in TAU}
    online = {f"online_{s}_{scheme}_{kind}" for s in SETTINGS for scheme in SCHEMES for kind in TAU}
    logs = {"log_noisy", "log_clean"}
    for key in golden.numbers:
        if key.startswith(("known_", "online_", "log_")):
            assert any(key.startswith(prefix) for prefix in known | online | logs), key
