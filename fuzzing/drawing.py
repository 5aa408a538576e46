"""Values that Hypothesis draws: the same for a seed, in every process."""

from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

from fuzzing import hostile

_DRAWN = 4
"""Values, of which the last is taken: the first are as plain as can be."""


class _Provider(HypothesisProvider):
    """Draws without the constants of the modules that a process happens to have imported."""

    def _maybe_draw_constant(self, *given: Any, **more: Any) -> None:
        return None


AVAILABLE_PROVIDERS["fuzzing"] = _Provider


def draw(strategy: st.SearchStrategy[Any], origin: int) -> Any:
    """A value that depends on the origin alone."""
    found: list[Any] = []

    @seed(origin)
    @settings(
        backend="fuzzing",
        database=None,
        deadline=None,
        max_examples=_DRAWN,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found[-1]


# -------------------------------------------------------------------------------------- strategies

SCALARS = st.one_of(
    st.sampled_from(hostile.NUMBERS),
    st.sampled_from([text for text in hostile.TEXTS if text.isprintable()]),
    st.sampled_from([None, True, False, 10**400, -(10**400)]),
    st.integers(-3, 12),
    st.floats(),
    st.text(max_size=8),
)
"""Numbers and texts, of which most are out of place."""
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=6,
)
"""Values as JSON has them."""


def mostly(*values: Any) -> st.SearchStrategy[Any]:
    """One of these values, or any other."""
    return st.sampled_from(values) | PLAIN


def table(**values: tuple[Any, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Keyword arguments, each left out, as it should be, or anything."""
    return st.fixed_dictionaries(
        {}, optional={name: mostly(*some) for name, some in values.items()}
    )
