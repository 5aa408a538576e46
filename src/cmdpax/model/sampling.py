"""Binomial, multinomial and Dirichlet draws on arrays, exact for counts up to 2⁵³.

A binomial count with n·min(p, 1 - p) < 10 is drawn by inversion, a larger one by transformed
rejection (Hörmann, 1993, algorithm BTRS), whose ratio of probabilities is computed relative to the
mode, so that it stays exact to 10⁻¹⁰ where n is 10¹². A multinomial count is drawn outcome by
outcome, each a binomial share of what is left. Dirichlet rows are gamma variates over their sum
(Marsaglia and Tsang, 2000), in logarithms, so that tiny concentrations do not underflow.

All of it is compiled, and every lane stops by itself: a draw depends on its key alone, not on what
is drawn beside it. Rejection needs new numbers in a loop, where JAX's own generator takes ten times
as long as everything else; there each lane goes on with SplitMix64 (Steele, Lea and Flood, 2014)
from 64 bits of JAX's.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, UInt64

_INVERTED_BELOW = 10.0  # of n·p; the constants of BTRS hold from there on
_LONGEST_SEARCH = 200  # of an inversion: n·p < 10 reaches 60 once in 10²⁰ draws

# What Stirling's formula misses of log k!, for k < 10; a series for larger ones.
_STIRLING = np.array(
    [
        math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
        for k in range(10)
    ]
)


def multinomial(
    key: Key[Array, ""], counts: Float[Array, "*rows"], weights: Float[Array, "*rows T"]
) -> Float[Array, "*rows T"]:
    """How often each of T outcomes comes in `counts` draws, row by row; consumes the key.

    Args:
        key: of all draws.
        counts: n, whole numbers, `[…]`.
        weights: proportional to the outcomes' probabilities, `[…, T]`. A row of zeros is for n = 0.
    """
    outcomes = jnp.moveaxis(weights, -1, 0)
    # What is left for this outcome and all later ones; sums from the end keep small ones exact.
    rest = jnp.cumsum(outcomes[::-1], axis=0)[::-1]
    shares = jnp.where(rest > 0, outcomes / jnp.where(rest > 0, rest, 1), 0)
    bits = jax.random.bits(key, (outcomes.shape[0] - 1, *counts.shape), jnp.uint64)

    def draw(left: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        drawn = binomial(at[0], left, at[1])
        return left - drawn, drawn

    last, drawn = jax.lax.scan(draw, counts, (bits, shares[:-1]))
    return jnp.moveaxis(jnp.concatenate([drawn, last[None]]), 0, -1)


def binomial(
    bits: UInt64[Array, "*lanes"], counts: Float[Array, "*lanes"], shares: Float[Array, "*lanes"]
) -> Float[Array, "*lanes"]:
    """Successes in n trials of probability p each, from 64 random bits per lane."""
    below = jnp.minimum(shares, 1 - shares)
    small = counts * below < _INVERTED_BELOW
    bits, uniform = _next_uniform(bits)
    inverted = _inverted(uniform, jnp.where(small, counts, 0), jnp.where(small, below, 0))
    rejected = _rejected(bits, counts, jnp.where(small, 0.5, below), small)
    drawn = jnp.where(small, inverted, rejected)
    return jnp.where(shares > 0.5, counts - drawn, drawn)


def _next_uniform(
    bits: UInt64[Array, "*lanes"],
) -> tuple[UInt64[Array, "*lanes"], Float[Array, "*lanes"]]:
    """The generator's next state, and a number from [0, 1): SplitMix64."""
    bits = bits + jnp.uint64(0x9E3779B97F4A7C15)
    mixed = (bits ^ (bits >> 30)) * jnp.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> 27)) * jnp.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> 31)
    return bits, (mixed >> 11).astype(jnp.float64) * 2.0**-53


def _inverted(
    uniform: Float[Array, "*lanes"], counts: Float[Array, "*lanes"], shares: Float[Array, "*lanes"]
) -> Float[Array, "*lanes"]:
    """Inversion: the first k with P[X ≤ k] > U, searched from 0."""
    odds = shares / (1 - shares)
    none = jnp.exp(counts * jnp.log1p(-shares))  # P[X = 0]

    def searching(carry: tuple[Array, Array, Array, Array]) -> Bool[Array, ""]:
        step, _, left, mass = carry
        return jnp.any(left > mass) & (step < _LONGEST_SEARCH)

    def search(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        step, found, left, mass = carry
        beyond = left > mass
        found = jnp.where(beyond, found + 1, found)
        left = jnp.where(beyond, left - mass, left)
        # P[X = k] = P[X = k - 1] (n - k + 1)/k · p/(1 - p)
        ratio = (counts - found + 1) / jnp.maximum(found, 1) * odds
        return step + 1, found, left, jnp.where(beyond, mass * ratio, mass)

    start = (jnp.int32(0), jnp.zeros_like(counts), uniform, none)
    _, found, _, _ = jax.lax.while_loop(searching, search, start)
    return jnp.minimum(found, counts)


def _rejected(
    bits: UInt64[Array, "*lanes"],
    counts: Float[Array, "*lanes"],
    shares: Float[Array, "*lanes"],
    done: Bool[Array, "*lanes"],
) -> Float[Array, "*lanes"]:
    """BTRS: transformed rejection with a squeeze, for n·p ≥ 10; lanes that are done stay 0."""
    spread = jnp.sqrt(counts * shares * (1 - shares))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * shares
    alpha = (2.83 + 5.1 / b) * spread
    mode = jnp.floor((counts + 1) * shares)
    drift = jnp.log(shares / (1 - shares) * (counts - mode + 1) / (mode + 1))
    at_mode = _stirling_rest(mode) + _stirling_rest(counts - mode)

    def log_ratio(k: Float[Array, "*lanes"]) -> Float[Array, "*lanes"]:
        """log P[X = k] - log P[X = mode]."""
        away = k - mode
        return (
            away * drift
            - (counts - k + 0.5) * jnp.log1p(-away / (counts - mode + 1))
            - (k + 0.5) * jnp.log1p(away / (mode + 1))
            + (at_mode - _stirling_rest(k) - _stirling_rest(counts - k))
        )

    def attempt(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        bits, found, done = carry
        bits, u = _next_uniform(bits)
        bits, v = _next_uniform(bits)
        u = u - 0.5
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + counts * shares + 0.5)
        inside = (k >= 0) & (k <= counts)
        squeezed = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        height = jnp.log(v * alpha / (a / (us * us) + b))
        below = height <= log_ratio(jnp.clip(k, 0, counts))
        accepted = inside & (squeezed | below) & ~done
        return bits, jnp.where(accepted, k, found), done | accepted

    start = (bits, jnp.zeros_like(counts), done)
    _, found, _ = jax.lax.while_loop(lambda carry: ~jnp.all(carry[2]), attempt, start)
    return found


def _stirling_rest(k: Float[Array, "*lanes"]) -> Float[Array, "*lanes"]:
    """log k! - [(k + ½) log(k + 1) - (k + 1) + ½ log 2π]."""
    x = 1 / (k + 1)
    series = x * (1 / 12 - x * x * (1 / 360 - x * x * (1 / 1260 - x * x / 1680)))
    table = jnp.asarray(_STIRLING, k.dtype)
    return jnp.where(k < 10, table[jnp.clip(k, 0, 9).astype(jnp.int32)], series)


# --------------------------------------------------------------------------------------- Dirichlet


def dirichlet(
    key: Key[Array, ""], concentrations: Float[Array, "*rows T"], valid: Bool[Array, "*rows T"]
) -> Float[Array, "*rows T"]:
    """Rows from Dirichlet distributions over their valid entries; consumes the key."""
    logs = _log_gamma_variates(key, jnp.where(valid, concentrations, 1))
    return jax.nn.softmax(jnp.where(valid, logs, -jnp.inf), axis=-1)


def _log_gamma_variates(
    key: Key[Array, ""], shapes: Float[Array, "*lanes"]
) -> Float[Array, "*lanes"]:
    """Logarithms of gamma variates: Marsaglia and Tsang's rejection."""
    raised = jnp.where(shapes < 1, shapes + 1, shapes)  # Γ(α) = Γ(α + 1) U^(1/α)
    d = raised - 1 / 3
    c = 1 / jnp.sqrt(9 * d)

    def attempt(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        bits, found, done = carry
        bits, first = _next_uniform(bits)
        bits, second = _next_uniform(bits)
        x = jax.scipy.special.ndtri(first + 2.0**-54)  # a standard normal number
        y = jnp.maximum(c * x, -1 + 1e-16)
        grown = 3 * jnp.log1p(y)  # log v, v = (1 + c x)³
        excess = y * (3 + y * (3 + y))  # v - 1
        height = jnp.log1p(-second)
        accepted = (c * x > -1) & (height < x * x / 2 + d * (grown - excess)) & ~done
        return bits, jnp.where(accepted, grown, found), done | accepted

    bits = jax.random.bits(key, shapes.shape, jnp.uint64)
    bits, uniform = _next_uniform(bits)
    start = (bits, jnp.zeros_like(shapes), jnp.zeros(shapes.shape, bool))
    _, found, _ = jax.lax.while_loop(lambda carry: ~jnp.all(carry[2]), attempt, start)
    boost = jnp.where(shapes < 1, jnp.log1p(-uniform) / shapes, 0)
    return jnp.log(d) + found + boost
