"""The layout of an ensemble never shows in its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltus._jax import jax, jnp, workers
from saltus.core.errors import BadInput
from saltus.descent._ensemble import keys, run_many


def products(index):
    """Forty gradient-like steps of a matrix product, per run, on a start drawn from the run's key."""
    start = jax.vmap(lambda k: jax.random.normal(k, (5, 5)) / 5)(keys(3, index))

    def step(w, _):
        return w + 0.1 * (w @ jnp.swapaxes(w, 1, 2) @ w - w), w[:, 0, 0]

    last, watched = jax.lax.scan(step, start, length=40)
    return {"last": last, "watched": watched.T}


def elementwise(index):
    """A product-and-exponential recursion with the run axis last."""
    u = jax.vmap(lambda k: jax.random.uniform(k, (4,)))(keys(7, index)).T

    def step(_, u):
        return u + 0.01 * (jnp.exp(-u * u) * u[::-1] - 0.3 * u * u * u)

    u = jax.lax.fori_loop(0, 50, step, u)
    return u, jnp.sum(u * u, axis=0)


def same_bits(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize(("block_fn", "axis"), [(products, 0), (elementwise, -1)])
def test_chunk_and_devices_change_no_bit(block_fn, axis):
    one = workers()[:1]
    plain = run_many(block_fn, 37, block=4, axis=axis, chunk=1, devices=one)
    for chunk in (2, 3, 100, None):
        for devices in (one, workers(), list(reversed(workers()))):
            same_bits(plain, run_many(block_fn, 37, block=4, axis=axis, chunk=chunk, devices=devices))


@pytest.mark.parametrize(("block_fn", "axis"), [(products, 0), (elementwise, -1)])
def test_a_run_is_the_same_in_any_company(block_fn, axis):
    every = run_many(block_fn, 20, block=4, axis=axis)
    some = run_many(block_fn, [17, 3, 9], block=4, axis=axis)
    same_bits(jax.tree.map(lambda a: a[[17, 3, 9]], every), some)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 12))
def test_every_run_arrives_once_and_in_its_place(runs, block, chunk):
    def echo(index):
        return index, jnp.stack([index, 2 * index], axis=0)

    first, both = run_many(echo, runs, block=block, axis=-1, chunk=chunk)
    np.testing.assert_array_equal(first, np.arange(runs))
    np.testing.assert_array_equal(both, np.stack([np.arange(runs), 2 * np.arange(runs)], axis=1))


def test_arguments_reach_every_block_and_nothing_is_compiled_twice():
    traced = []

    def scaled(index, table):
        traced.append(1)
        return table[index] * 2.0

    table = np.arange(10.0)
    np.testing.assert_array_equal(run_many(scaled, 10, block=4, args=(table,)), 2 * table)
    once = len(traced)
    np.testing.assert_array_equal(run_many(scaled, 10, block=4, args=(3 * table,)), 6 * table)
    assert len(traced) == once


def test_progress_counts_every_run():
    seen = []
    run_many(lambda i: i, 23, block=5, chunk=1, progress=lambda done, total: seen.append((done, total)))
    assert sorted(seen) == seen
    assert seen[-1] == (23, 23)
    assert len(seen) == 5


def test_keys_are_the_run_s_own():
    alone = jax.random.fold_in(jax.random.key(5), 11)
    among = keys(5, jnp.arange(20))[11]
    assert jax.random.key_data(alone).tolist() == jax.random.key_data(among).tolist()


def test_an_interrupt_stops_the_work():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_many(lambda i: i, 1000, block=1, chunk=1, progress=stop)


def test_a_failing_block_is_heard():
    def broken(index):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_many(broken, 3, block=2)


def test_too_much_memory_is_refused_with_numbers():
    with pytest.raises(BadInput, match=r"need 0\.\d+ GiB of memory and 9\.31e-07 GiB are free"):
        run_many(lambda i: jnp.zeros((i.size, 1000)), 1000, block=10, memory=1000)
    with pytest.raises(BadInput, match="GiB"):
        run_many(lambda i: jnp.zeros((i.size, 10**6)), 2**31, block=10)


def test_a_small_budget_gives_small_calls():
    seen = []
    run_many(
        lambda i: jnp.zeros((i.size, 100)),
        1024,
        block=1,
        memory=1024 * 816 + 64 * 800,
        progress=lambda done, _: seen.append(done),
    )
    assert len(seen) >= 64


@pytest.mark.parametrize(
    ("runs", "kwargs", "message"),
    [
        (0, {"block": 2}, "number of runs"),
        ([], {"block": 2}, "non-empty"),
        ([0.5], {"block": 2}, "non-empty"),
        ([-1], {"block": 2}, "run indices"),
        (3, {"block": 0}, "block and chunk"),
        (3, {"block": 2, "chunk": 0}, "block and chunk"),
        (3, {"block": 2, "axis": 1}, "run axis"),
        (3, {"block": 2, "devices": []}, "no devices"),
    ],
)
def test_bad_input_is_one_clear_line(runs, kwargs, message):
    with pytest.raises(BadInput, match=message) as caught:
        run_many(lambda i: i, runs, **kwargs)
    assert "\n" not in str(caught.value)


def test_a_result_without_the_run_axis_is_refused():
    with pytest.raises(BadInput, match="run axis"):
        run_many(lambda i: jnp.sum(i), 4, block=2)
