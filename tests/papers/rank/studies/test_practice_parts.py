"""What the practice studies are made of, against brute force: walks, trends, adapters, claims."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from saltus import model, probe
from saltus._jax import jax, jnp
from saltus.core import stats
from saltus.papers.rank.studies import _adapters, _rank_claims, _walks, lora, scales

RNG = np.random.default_rng(0)


def test_head_spectra_are_those_of_the_whole_change() -> None:
    """Thin factors against numpy's singular values of the d x d matrix, in double precision."""
    net = model.GPT(7, 4, depth=2, heads=3, width=24, head=4)
    start = net.init(jax.random.key(0))
    keys = iter(jax.random.split(jax.random.key(1), 99))
    now = jax.tree.map(lambda w: w + 0.03 * jax.random.normal(next(keys), w.shape, w.dtype), start)
    begun, ended = (np.asarray(_walks.factors(p), np.float64) for p in (start, now))
    assert begun.shape == (4, 2, 3, 24, 4)
    for k, name in enumerate(_walks.PRODUCTS):
        found = np.asarray(probe.head_products(now, start)[name])
        a, b, a0, b0 = ended[2 * k], ended[2 * k + 1], begun[2 * k], begun[2 * k + 1]
        whole = np.einsum("lhdr,lher->lhde", a, b) - np.einsum("lhdr,lher->lhde", a0, b0)
        exact = np.linalg.svd(whole, compute_uv=False)
        np.testing.assert_allclose(found, exact[..., :8], atol=1e-6 * exact.max())
        assert (exact[..., 8:] < 1e-12 * exact.max()).all()


def test_a_walk_has_the_sizes_it_is_given() -> None:
    """Its spectrum at the end is that of factors moved by exactly so much, in directions at random."""
    start = RNG.normal(size=(4, 1, 40, 64, 16)) / 8
    moved = np.linspace(0, 0.01, 5)[:, None, None, None] * np.ones((4, 1, 40))
    found = _walks.walk(start, moved, seed=3)
    assert found["rank"].shape == (5, 2, 1, 40)
    assert np.isnan(found["rank"][0]).all()  # nothing moved yet
    known = probe.gaussian_change_rank(64, 16)
    drawn = []
    for _ in range(40):
        E, F, A, B = (RNG.normal(size=(64, 16)) for _ in range(4))
        s = np.linalg.svd(E @ B.T + A @ F.T, compute_uv=False)
        drawn.append((s**2).sum() / s[0] ** 2)
    assert np.mean(found["rank"][1:]) == pytest.approx(np.mean(drawn), rel=0.05)
    assert 1.0 < np.mean(found["rank"][1:]) / known < 1.3  # finite sizes lie above the limit of large ones
    np.testing.assert_allclose((found["spectrum"] ** 2).sum(-1), found["rank"][-1], rtol=1e-6)


def test_a_walk_that_moves_one_factor_gains_the_start_of_the_other() -> None:
    """dA B0': what is known exactly when only A moves and d is large."""
    start = np.zeros((4, 1, 1, 12, 2))
    start[1, 0, 0, :2, :2] = np.diag([3.0, 1.0])
    start[3] = start[1]
    size = np.zeros((1, 4, 1, 1))
    size[0, [0, 2]] = 0.5
    got = _walks.walk(start, size, seed=0)
    assert got["spectrum"].shape == (2, 1, 1, 4)
    assert (got["spectrum"][..., 2:] < 1e-6).all()  # of rank two, as the factor that stays


def kendall(x: Any, y: Any) -> float:
    found = [np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]) for i, j in combinations(range(len(x)), 2)]
    return float(np.mean(found))


def test_trends_are_kendalls_tau() -> None:
    order = (1.0, 0.5, 0.2, 0.1)
    values = RNG.integers(0, 5, (4, 3, 7)).astype(float)  # with ties
    found = scales.trend(values, order)
    for place in np.ndindex(3, 7):
        assert found[place] == pytest.approx(kendall(values[:, *place], order))
    assert scales.trend(np.asarray(order)[:, None], order) == pytest.approx([1.0])
    untied = RNG.normal(size=(4, 20))
    from scipy.stats import kendalltau

    known = [kendalltau(column, order).statistic for column in untied.T]
    np.testing.assert_allclose(scales.trend(untied, order), known, atol=1e-12)


def test_shuffling_keeps_the_values_of_every_network_together() -> None:
    values = RNG.normal(size=(4, 6, 3, 5))
    mixed = scales.shuffled(values, 1)
    for n in range(6):
        rows = {tuple(row.ravel()) for row in values[:, n]}
        assert {tuple(row.ravel()) for row in mixed[:, n]} == rows
    assert not np.array_equal(mixed, values)


def test_intervals_count_networks_and_not_heads() -> None:
    values = RNG.normal(2.0, 0.1, (6, 3, 8))
    found = _rank_claims.networks(values)
    assert found.n == 6
    medians = np.median(values.reshape(6, -1), axis=1)
    assert (found.low, found.high) == (medians.min(), medians.max())
    assert _rank_claims.networks(values[:5]).low == -np.inf  # too few to say anything
    tau = scales.per_network(np.asarray([3.0, 2.0, 1.0])[:, None, None] * np.ones((3, 6, 4)), (1, 0.5, 0.1))
    assert tau == stats.Estimate(1.0, 1.0, 1.0, 6)


def adapted(rank: float) -> tuple[Any, Any]:
    base = model.ViT(image=(4, 4), channels=1, patch=2, classes=3, depth=1, heads=2, width=6, head=3, mlp=5)
    net = _adapters.Adapted(base, 6, ((rank, 1.0),), 0.0)
    return net, net.init(jax.random.key(4))


def test_adapters_begin_at_the_network_they_adapt() -> None:
    for rank in (0.0, 2.0, 7.0):
        net, params = adapted(rank)
        x = jnp.asarray(RNG.normal(size=(4, 4, 1)))
        np.testing.assert_allclose(net.apply(params, x), net.base.apply(params["fixed"], x), rtol=1e-5)
        for block in _adapters.changes(params):
            assert all(not np.asarray(w).any() for w in block.values())


@pytest.mark.parametrize("rank", [1, 2, 4, 6])
def test_adapters_have_their_rank_and_no_other_weights_learn(rank: int) -> None:
    net, params = adapted(float(rank))
    x, w = jnp.asarray(RNG.normal(size=(4, 4, 1))), jnp.asarray(RNG.normal(size=3))
    for _ in range(3):
        grads = jax.grad(lambda p: net.apply(p, x) @ w)(params)
        fixed = {k: v for k, v in grads["fixed"].items() if k != "head"}
        assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(fixed))
        params = jax.tree.map(lambda p, g: p - 0.3 * g, params, grads)
    # From `up` = 0 a single point moves it in few directions: fill it for the rank to show.
    for block in params["blocks"]:
        for one in block.values():
            one["up"] = jnp.asarray(RNG.normal(size=one["up"].shape))
    for block in _adapters.changes(params):
        for change in block.values():
            assert np.linalg.matrix_rank(np.asarray(change, float), tol=1e-4) == rank


def test_adapters_of_full_rank_can_be_any_free_change() -> None:
    """up down' with as many columns as the matrix has reaches what `free` is; the outputs are the same."""
    free, with_free = adapted(7.0)
    full, with_full = adapted(6.0)
    x = jnp.asarray(RNG.normal(size=(4, 4, 1)))
    for one, other in zip(with_free["blocks"], with_full["blocks"], strict=True):
        for name in one:
            change = RNG.normal(size=one[name]["free"].shape)
            down = np.asarray(other[name]["down"], float)
            one[name]["free"] = jnp.asarray(change)
            other[name]["up"] = jnp.asarray(change @ np.linalg.pinv(down).T)
    for a, b in zip(_adapters.changes(with_free), _adapters.changes(with_full), strict=True):
        for name in a:
            np.testing.assert_allclose(a[name], b[name], atol=1e-3)
    np.testing.assert_allclose(free.apply(with_free, x), full.apply(with_full, x), rtol=1e-2, atol=1e-3)


def test_correlation_of_ranks() -> None:
    from scipy.stats import spearmanr

    pairs = RNG.integers(0, 6, (30, 2)).astype(float)
    assert lora._spearman(pairs) == pytest.approx(spearmanr(*pairs.T).statistic)
    assert lora._spearman(np.ones((4, 2))) == 0.0


def test_rank_that_suffices_lies_between_those_tried() -> None:
    import xarray as xr

    one = lora.Adapters(tasks=("parity",), scales=(1.0,), ranks=(1, 2, 4), seeds=3)
    loss = np.asarray(
        [
            [1.0, 0.5, 0.1, 0.05, 0.0],  # exactly a tenth of the gap is left at rank 2
            [1.0, 0.9, 0.8, 0.7, 0.0],  # never
            [1.0, 0.05, 0.04, 0.03, 0.0],  # below rank 1
        ]
    )
    record = xr.Dataset({"loss": (("task", "scale", "seed", "rank"), loss[None, None])})
    found = one.suffices(record)[0, 0]
    assert found[0] == pytest.approx(2.0)
    assert found[1] == 8.0
    assert 0.5 < found[2] < 1.0
