"""Spectra of what products have gained: brute force, closed forms, and instances anybody can make again."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from saltus import model, probe
from saltus._jax import jax, jnp
from saltus.core.errors import BadInput

RANDOM = np.random.default_rng(0)
SPECTRUM = {m: jax.jit(partial(probe.product_spectrum, method=m)) for m in ("qr", "gram")}


def mixed(seed, *shape):
    """Normal numbers from a counter, without any library's generator."""
    j = np.arange(1, np.prod(shape) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = (np.uint64(seed) * np.uint64(2**40) + j) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return ndtri(((z >> np.uint64(11)).astype(float) + 0.5) / 2**53).reshape(shape)


def pairs(d, e, r, scale, batch=()):
    a0, b0 = RANDOM.normal(size=(*batch, d, r)), RANDOM.normal(size=(*batch, e, r))
    return (
        a0 + scale * RANDOM.normal(size=a0.shape),
        b0 + scale * RANDOM.normal(size=b0.shape),
        a0,
        b0,
    )


def brute(a, b, a0, b0):
    change = (a - a0) @ np.swapaxes(b, -1, -2) + a0 @ np.swapaxes(b - b0, -1, -2)
    return np.linalg.svd(change, compute_uv=False)


@pytest.mark.parametrize("method", ["qr", "gram", "whole"])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-8])
def test_every_method_is_the_singular_values_of_the_change(method, scale):
    given = pairs(24, 20, 4, scale, (2, 3))
    found = probe.product_spectrum(*map(jnp.asarray, given), method=method)
    exact = brute(*given)[..., :8]
    assert found.shape == (2, 3, 8)
    # Moments square what they hold: half the digits are left for values near zero.
    limit = 3e-7 if method == "gram" else 1e-11
    np.testing.assert_allclose(found / exact[..., :1], exact / exact[..., :1], atol=limit)
    assert (brute(*given)[..., 8:] < 1e-6 * exact[..., :1]).all()  # 2r is all the rank there is


@pytest.mark.parametrize(("d", "e", "r"), [(1, 1, 1), (5, 3, 1), (3, 7, 9), (12, 12, 6), (9, 12, 4)])
def test_any_shapes(d, e, r):
    given = pairs(d, e, r, 0.1)
    exact = brute(*given)[: min(d, e, 2 * r)]
    for method in ("qr", "gram", "auto"):
        found = np.asarray(probe.product_spectrum(*map(jnp.asarray, given), method=method))
        assert found.shape == exact.shape
        np.testing.assert_allclose(found, exact, atol=1e-5 * exact[0])


@given(st.floats(-100, 100), st.integers(0, 2**31))
def test_columns_may_be_scaled_against_each_other(power, seed):
    """A D (B / D)' is A B': what balances the factors changes no spectrum."""
    given = np.random.default_rng(seed).normal(size=(2, 6, 2))
    known = np.linalg.svd(given[0] @ given[1].T, compute_uv=False)[:2]
    factor = np.array([2.0**power, 1.0])
    for method in ("qr", "gram"):
        found = SPECTRUM[method](given[0] * factor, given[1] / factor)
        np.testing.assert_allclose(found, known, atol=1e-6 * known[0])


def test_without_a_beginning_it_is_the_product_itself():
    a, b, *_ = pairs(16, 12, 3, 1.0)
    found = probe.product_spectrum(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose(found, np.linalg.svd(a @ b.T, compute_uv=False)[:3], atol=1e-12)


def test_the_regenerable_instance():
    a0, b0, e, f = (mixed(seed, 512, 128) for seed in (20, 21, 22, 23))
    left, right = np.hstack([0.1 * e, a0]), np.hstack([b0 + 0.1 * f, 0.1 * f])
    exact = np.linalg.svd(np.linalg.qr(left, mode="r") @ np.linalg.qr(right, mode="r").T, compute_uv=False)
    assert exact[0] == pytest.approx(105.8937546948, abs=1e-9)
    given = [jnp.asarray(m) for m in (a0 + 0.1 * e, b0 + 0.1 * f, a0, b0)]
    found = probe.product_spectrum(*given)
    assert float(probe.stable_rank_of(found)) == pytest.approx(60.2025922280, abs=1e-9)
    by_moments = probe.product_spectrum(*given, method="gram")
    assert float(probe.stable_rank_of(by_moments)) == pytest.approx(60.2025922280, abs=1e-6)
    start = probe.product_spectrum(given[2], given[3])
    assert float(probe.stable_rank_of(start)) == pytest.approx(41.4149672753, abs=1e-9)
    narrow = probe.product_spectrum(*(m.astype(jnp.float32) for m in given))
    assert narrow.dtype == jnp.float32
    assert float(probe.stable_rank_of(narrow)) == pytest.approx(60.2025922280, rel=1e-4)


def low_rank(scale, d=256, r=64, rank=8):
    """A start, and a change of both factors of rank 8, in float32."""
    a0, b0 = (RANDOM.normal(size=(d, r)) / np.sqrt(d) for _ in range(2))
    change = [
        scale * RANDOM.normal(size=(d, rank)) @ RANDOM.normal(size=(rank, r)) / np.sqrt(d * r)
        for _ in range(2)
    ]
    return [np.asarray(m, np.float32) for m in (a0 + change[0], b0 + change[1], a0, b0)]


@pytest.mark.parametrize(("scale", "limit"), [(1.0, 1e-6), (0.01, 2e-5), (0.001, 2e-4)])
@pytest.mark.parametrize("method", ["qr", "gram"])
def test_small_changes_survive_float32(scale, limit, method):
    given = low_rank(scale)
    exact = brute(*(m.astype(np.float64) for m in given))
    found = np.asarray(probe.product_spectrum(*map(jnp.asarray, given), method=method))
    np.testing.assert_allclose(found / exact[0], exact[:128] / exact[0], atol=limit)
    # Rounded to 16 bits, the change of a thousandth is gone: what the masters are kept for.
    rounded = [np.asarray(jnp.asarray(m, jnp.bfloat16), np.float64) for m in given]
    lost = brute(*rounded)
    rank, wrong = (float(np.sum((s / s[0]) ** 2)) for s in (exact, lost))
    assert wrong > 2 * rank if scale == 0.001 else wrong == pytest.approx(rank, rel=0.5)


def test_nothing_and_not_finite():
    a = jnp.ones((4, 8, 2))
    assert not np.asarray(probe.product_spectrum(a, a, a, a)).any()
    assert not np.asarray(probe.product_spectrum(a, a, a, a, method="gram")).any()
    broken = a.at[1, 0, 0].set(jnp.nan)
    for method in ("qr", "gram", "whole"):
        found = np.asarray(probe.product_spectrum(broken, a, a, a, method=method))
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2, 3]]).all()


@pytest.mark.parametrize(
    ("d", "r", "start", "change"),
    [(512, 128, 41.31, 58.06), (768, 64, 31.42, 49.15), (128, 32, 10.33, 14.52), (32, 8, 2.58, 3.63)],
)
def test_what_chance_gives(d, r, start, change):
    assert probe.gaussian_rank(d, r) == pytest.approx(start, abs=0.005)
    assert probe.gaussian_change_rank(d, r) == pytest.approx(change, abs=0.005)


def test_chance_by_drawing():
    a, b, a0, b0 = pairs(256, 256, 64, 0.01, (12,))
    now = [jnp.asarray(m) for m in (a, b)]
    start = [jnp.asarray(m) for m in (a0, b0)]
    keys = jax.random.split(jax.random.key(0))
    drawn = [probe.random_change(k, n, s) for k, n, s in zip(keys, now, start, strict=True)]
    for new, old, then in zip(drawn, now, start, strict=True):
        sizes = [jnp.linalg.norm(m - then, axis=(-2, -1)) for m in (new, old)]
        np.testing.assert_allclose(*sizes, rtol=1e-10)
    ranks = probe.stable_rank_of(probe.product_spectrum(*drawn, *start))
    # Finite sizes lie above the limit of large ones, by about d^(-2/3): 10% at 128, 7% at 256, 3% at 512.
    above = np.asarray(ranks) / probe.gaussian_change_rank(256, 64) - 1
    assert 0.0 < above.mean() < 3.5 * 256 ** (-2 / 3)


def test_heads_of_a_transformer():
    net = model.GPT(11, 5, depth=2, heads=3, width=12)
    start = net.init(jax.random.key(0))
    keys = iter(jax.random.split(jax.random.key(1), 99))
    now = jax.tree.map(lambda leaf: leaf + 0.01 * jax.random.normal(next(keys), leaf.shape), start)
    found = probe.head_products(now, start)
    for name, (left, right) in {"KQ": ("W_K", "W_Q"), "VO": ("W_V", "W_O")}.items():
        assert found[name].shape == (2, 3, 8)
        for layer in range(2):
            p, p0 = (np.asarray(t["blocks"][layer]["attention"][left]) for t in (now, start))
            q, q0 = (np.asarray(t["blocks"][layer]["attention"][right]) for t in (now, start))
            for head in range(3):
                exact = brute(p[:, head], q[:, head], p0[:, head], q0[:, head])[:8]
                np.testing.assert_allclose(found[name][layer, head], exact, atol=1e-12)
    control = probe.random_head_products(jax.random.key(2), now, start)
    assert control["VO"].shape == found["VO"].shape


@pytest.mark.parametrize(
    "make",
    [
        lambda: probe.product_spectrum(jnp.ones((3, 2)), jnp.ones((3, 2)), jnp.ones((3, 2))),
        lambda: probe.product_spectrum(jnp.ones((3, 2)), jnp.ones((3, 1))),
        lambda: probe.product_spectrum(
            jnp.ones((3, 2)), jnp.ones((3, 2)), jnp.ones((4, 2)), jnp.ones((3, 2))
        ),
        lambda: probe.product_spectrum(jnp.ones((3, 2)), jnp.ones((3, 2)), method="guess"),
        lambda: probe.gaussian_edge(0),
        lambda: probe.head_products({"w": jnp.ones(3)}),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(BadInput):
        make()
