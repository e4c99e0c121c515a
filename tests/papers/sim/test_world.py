from __future__ import annotations

import numpy as np
import pytest

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.sim.world import World

KEY = jax.random.key(7)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"mu": ()}, "empty"),
        ({"mu": (1, -2)}, "positive"),
        ({"mu": (1, float("nan"))}, "finite"),
        ({"mu": "ab"}, "numbers"),
        ({"mu": (1, 2), "sigma": -0.1}, "negative"),
        ({"mu": (1, 2), "sigma": (0.1, 0.2, 0.3)}, "one per concept"),
        ({"mu": (1, 2), "dim": 1}, "do not fit"),
        ({"mu": (1, 2), "dim": 2.5}, "whole number"),
        ({"mu": (1, 2), "points": 0}, "at least 1"),
        ({"mu": (1, 2), "points": 2**31}, "too many"),
        ({"mu": (1,), "truncate": True}, "two concepts"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, says):
    with pytest.raises(BadInput, match=says) as error:
        World(**settings)
    assert "\n" not in str(error.value)


def test_readings():
    written, drawn = World.reading("as-written", [1, 2], 0.25), World.reading("as-drawn", [1, 2], 0.25)
    assert (written.sigma, written.origin, drawn.sigma, drawn.origin) == (0.25, False, 0.5, True)
    np.testing.assert_allclose(
        World.reading("as-drawn", (1, 2), 0.05, dim=2).second_moment(), [0.05 + 1 / 3, 0.05 + 4 / 3]
    )
    assert World.reading("as-drawn", (1, 2), (0.25, 0.04)).sigma == (0.5, 0.2)
    with pytest.raises(BadInput, match="did you mean as-drawn"):
        World.reading("as_drawn", (1, 2))
    with pytest.raises(BadInput, match="negative"):
        World.reading("as-drawn", (1, 2), -1.0)
    with pytest.raises(BadInput, match="origin"):
        World.reading("as-drawn", (1, 2), origin=False)


def test_moments_of_the_published_settings():
    np.testing.assert_allclose(World((1, 2), dim=3).second_moment(), [0.5025, 2.0025, 0])
    np.testing.assert_allclose(
        World((1, 2), dim=3, origin=True).second_moment(), [0.3358333333, 1.3358333333, 0]
    )
    rates = np.linalg.eigvalsh(World((1, 2)).augmented_moment())
    np.testing.assert_allclose(rates, [0.001388, 0.8505, 2.6532], rtol=5e-4)
    rates = np.linalg.eigvalsh(World.reading("as-drawn", (1, 2)).augmented_moment())
    np.testing.assert_allclose(rates, [0.1540, 0.7002, 1.9125], rtol=5e-4)


@pytest.mark.parametrize("origin", [False, True])
def test_moments_are_those_of_the_sample(origin):
    world = World((1, 2, 0.5), sigma=(0.3, 0.1, 0.7), dim=4, points=200_000, origin=origin)
    y = np.asarray(world.sample_concepts(KEY))
    lifted = np.hstack([y, np.ones((len(y), 1))])
    np.testing.assert_allclose(lifted.T @ lifted / len(y), world.augmented_moment(), atol=4e-3)
    np.testing.assert_allclose(world.second_moment()[:3], np.diag(world.augmented_moment())[:3])


def test_points_named_by_the_paper():
    world = World((1, 2), origin=True)
    np.testing.assert_array_equal(world.test_point(), [1, 2])
    np.testing.assert_array_equal(world.corner((0, 1)), [0, 2])
    np.testing.assert_array_equal(world.corners(), [[0, 0], [0, 2], [1, 0], [1, 2]])
    np.testing.assert_array_equal(world.centres(), [[1, 0], [0, 2], [0, 0]])
    with pytest.raises(BadInput, match="zeros and ones"):
        world.corner((1, 2))
    with pytest.raises(BadInput, match="corners"):
        World((1.0,) * 17).corners()


def test_the_rotation_is_orthonormal_and_uniform_in_sign():
    world = World((1, 2), dim=5)
    q = np.asarray(jax.jit(jax.vmap(world.rotation))(jax.random.split(KEY, 400)))
    np.testing.assert_allclose(
        np.einsum("nds,ndr->nsr", q, q), np.broadcast_to(np.eye(2), (400, 2, 2)), atol=1e-12
    )
    assert np.abs(q.mean(0)).max() < 5 / np.sqrt(400 * 5)
    np.testing.assert_array_equal(World((1, 2), dim=5, rotate=False).rotation(KEY), np.eye(5, 2))


def test_the_data_lie_in_the_plane_of_the_concepts():
    world = World((1, 2), dim=6, points=50)
    x, target = world.sample(KEY)
    assert x is target
    np.testing.assert_allclose(x @ world.rotation(KEY), world.sample_concepts(KEY), atol=1e-12)


def test_truncation_draws_again_what_is_too_near_and_nothing_else():
    plain = World.reading("as-drawn", (1, 2), dim=2)
    whole = plain.draw(KEY)
    cut = World.reading("as-drawn", (1, 2), dim=2, truncate=True).draw(KEY)
    inside = np.linalg.norm(np.asarray(whole.y) - [1, 2], axis=1) < 0.5
    assert inside.any()
    np.testing.assert_array_equal(np.asarray(cut.y)[~inside], np.asarray(whole.y)[~inside])
    assert float(cut.nearest) >= 0.5 > float(whole.nearest)
    assert int(cut.discarded) >= inside.sum()
    # A counted expectation over many seeds: 42 of 15000, from the non-central chi-square.
    counts = jax.jit(
        jax.vmap(lambda key: World.reading("as-drawn", (1, 2), dim=2, truncate=True).draw(key).discarded)
    )
    assert 40 < np.asarray(counts(jax.random.split(KEY, 40))).mean() < 46


def test_truncation_of_a_well_separated_world_changes_no_bit():
    world = World((1, 2), points=500)
    cut = World((1, 2), points=500, truncate=True).draw(KEY)
    np.testing.assert_array_equal(cut.y, world.sample_concepts(KEY))
    assert int(cut.discarded) == 0
    assert float(cut.nearest) == pytest.approx(
        float(jnp.min(jnp.linalg.norm(world.sample_concepts(KEY) - jnp.array([1.0, 2.0]), axis=1)))
    )


def test_the_origin_cluster_joins_and_leaves_the_rest_where_it_was():
    alone, joined = World((1, 2), points=20), World((1, 2), points=20, origin=True)
    assert joined.sample_concepts(KEY).shape == (60, 2)
    assert np.abs(np.asarray(joined.sample_concepts(KEY))[40:]).max() < 0.5
    np.testing.assert_array_equal(joined.sample_concepts(KEY)[:40], alone.sample_concepts(KEY))
    assert (alone.size, joined.size) == (40, 60)
