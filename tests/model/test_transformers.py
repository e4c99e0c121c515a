"""ViT and GPT against plain numpy in float64, and how they start."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saltus import model, probe
from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.model import _attention, _attention_kernel

sys.path.insert(0, str(Path(__file__).parent))
import plain_transformer as plain

RANDOM = np.random.default_rng(0)
VIT = model.ViT((8, 12), 3, patch=4, classes=5, depth=2, heads=3, width=8, head=4, mlp=10)
GPT = model.GPT(13, 6, depth=2, heads=2, width=8)
IMAGES = RANDOM.normal(size=(3, 8, 12, 3))
TOKENS = RANDOM.integers(0, 13, (3, 5))


def moved(net, by=0.3):
    """Parameters none of which has a special value."""
    start = jax.jit(net.init)(jax.random.key(0))
    return jax.tree.map(lambda leaf: np.asarray(leaf) + by * RANDOM.normal(size=leaf.shape), start)


@pytest.mark.parametrize("net", [VIT, replace(VIT, pool="mean", bias=True, unroll=True)])
def test_vit_by_hand(net):
    params = moved(net)
    known = np.stack([plain.vit(params, image, 4, net.pool) for image in IMAGES])
    found = jax.jit(net.apply)(params, IMAGES)
    np.testing.assert_allclose(found, known, atol=1e-12)
    np.testing.assert_allclose(jax.jit(net.apply)(params, IMAGES.reshape(3, -1)), found, atol=1e-13)
    np.testing.assert_allclose(jax.jit(net.apply)(params, IMAGES[1:2]), found[1:2], atol=1e-12)


def test_gpt_by_hand():
    params = moved(GPT)
    found = jax.jit(GPT.apply)(params, TOKENS)
    np.testing.assert_allclose(found, np.stack([plain.gpt(params, row) for row in TOKENS]), atol=1e-12)
    # What comes later changes nothing, and a written-out network is the same one.
    later = TOKENS.copy()
    later[:, 3:] = (later[:, 3:] + 1) % 13
    other = jax.jit(replace(GPT, unroll=True).apply)(params, later)
    np.testing.assert_allclose(other[:, :3], found[:, :3], atol=1e-12)
    assert np.abs(other[:, 3:] - found[:, 3:]).max() > 1e-3


@pytest.mark.parametrize(("net", "x"), [(VIT, IMAGES), (GPT, TOKENS)])
def test_slopes_are_those_of_finite_differences(net, x):
    params = moved(net)
    names = list(probe.paths(params))
    leaves, tree = jax.tree.flatten(params)
    into = RANDOM.normal(size=jax.eval_shape(net.apply, params, x).shape)
    loss = jax.jit(lambda p: jnp.sum(net.apply(p, x) * into))
    slopes = jax.tree.leaves(jax.jit(jax.grad(loss))(params))
    for number, name in enumerate(names):
        along = RANDOM.normal(size=leaves[number].shape)

        def at(step, number=number, along=along):
            new = [leaf + step * along if i == number else leaf for i, leaf in enumerate(leaves)]
            return float(loss(jax.tree.unflatten(tree, new)))

        estimate = (at(1e-5) - at(-1e-5)) / 2e-5
        exact = float(np.sum(slopes[number] * along))
        assert exact == pytest.approx(estimate, rel=1e-6, abs=1e-7), name


def test_what_is_drawn():
    net = model.ViT((8, 8), 1, patch=2, depth=2, heads=4, width=64, head=32, mlp=48, scale=0.5)
    params = jax.jit(net.init)(jax.random.key(3))
    drawn = probe.paths(params)
    inputs = {"W_Q": 64, "W_K": 64, "W_V": 64, "W_O": 128, "W_1": 64, "W_2": 48, "b_2": 48, "b_O": 128}
    for name, leaf in drawn.items():
        part = name.split(".")[-1]
        values = np.asarray(leaf)
        if part in inputs:
            bound = 0.5 / np.sqrt(inputs[part])
            assert np.abs(values).max() <= bound
            assert values.std() == pytest.approx(bound / np.sqrt(3), rel=5 / np.sqrt(2 * values.size))
    assert np.abs(drawn["embed.W"]).max() == pytest.approx(0.5, rel=0.05)  # 1 / sqrt(4): not scaled
    assert np.std(drawn["embed.positions"]) == pytest.approx(1, rel=0.15)
    assert (np.asarray(drawn["head.norm.scale"]) == 1).all()
    # Another scale is the same draw.
    twice = probe.paths(jax.jit(replace(net, scale=1.0).init)(jax.random.key(3)))
    np.testing.assert_allclose(twice["blocks.1.mlp.W_2"], 2 * drawn["blocks.1.mlp.W_2"], rtol=1e-12)
    np.testing.assert_array_equal(twice["embed.W"], drawn["embed.W"])


def test_gpt_starts_as_gpt_2():
    drawn = probe.paths(jax.jit(model.GPT(300, 20, depth=3, heads=2, width=32).init)(jax.random.key(0)))
    for name, std in {
        "embed.tokens": 0.02,
        "blocks.0.attention.W_K": 0.02,
        "blocks.2.attention.W_O": 0.02 / 6**0.5,
        "blocks.1.mlp.W_2": 0.02 / 6**0.5,
    }.items():
        values = np.asarray(drawn[name])
        assert values.std() == pytest.approx(std, rel=5 / np.sqrt(2 * values.size)), name
    assert not np.asarray(drawn["blocks.0.attention.b_Q"]).any()


@pytest.mark.parametrize("tokens", [16, 17])
def test_the_kernel_is_plain_attention(tokens):
    joined = jnp.asarray(RANDOM.normal(size=(2, tokens, 3, 2, 16)), jnp.float32)
    slope = jnp.asarray(RANDOM.normal(size=(2, tokens, 2, 16)), jnp.float32)

    def both(attend):
        out, back = jax.vjp(attend, joined)
        return out, back(slope)[0]

    found = both(jax.jit(_attention.attend_joined))
    known = both(jax.jit(lambda j: _attention.attend("plain", *(j[:, :, i] for i in range(3)))))
    for a, b in zip(found, known, strict=True):
        np.testing.assert_allclose(a, b, atol=3e-6)


def test_what_the_kernel_takes():
    taken = [(t, h) for t in range(1, 140) for h in (8, 16, 48, 128) if _attention_kernel.fits(t, h)]
    assert taken == [(t, h) for t in (16, 17, 32, 33, 64, 65, 128, 129) for h in (16, 128)]


def test_fewer_bits_change_little():
    params = jax.jit(VIT.init)(jax.random.key(0))
    exact = jax.jit(VIT.apply)(params, IMAGES)
    rough = jax.jit(replace(VIT, compute="bfloat16").apply)(params, IMAGES)
    assert rough.dtype == jnp.float32
    assert 1e-5 < np.abs(rough - exact).max() < 0.05


@pytest.mark.parametrize(
    "make",
    [
        lambda: model.ViT((8, 9), patch=4),
        lambda: model.ViT(pool="max"),
        lambda: model.ViT(attention="flash"),
        lambda: model.ViT((8, 8), patch=2, attention="kernel", head=48),
        lambda: model.ViT(depth=0),
        lambda: model.ViT(scale=-1.0),
        lambda: model.GPT(heads=5),
        lambda: model.GPT(attention="kernel"),
        lambda: VIT.apply(VIT.init(jax.random.key(0)), np.ones((3, 7))),
        lambda: GPT.apply(GPT.init(jax.random.key(0)), np.ones((1, 7), int)),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(BadInput):
        make()
