"""What the library does to JAX's settings and to its compiled programs."""

import jax
import jax.numpy as jnp
import pytest

from cmdpax import jax_context


@jax.jit
def doubled(number: jax.Array) -> jax.Array:
    return 2 * number


@pytest.mark.parametrize("most", [0, 10**9])
def test_programs_are_forgotten_where_they_are_too_many(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubled(jnp.ones(3))
    assert doubled._cache_size() == 1
    monkeypatch.setattr(jax_context, "_MOST_MAPPINGS", most)
    jax_context.drop_programs_if_many()
    assert doubled._cache_size() == (1 if most else 0)
    assert doubled(jnp.ones(3)).tolist() == [2, 2, 2]
