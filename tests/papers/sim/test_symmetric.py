"""The engine of the symmetric model against plain loops, an adaptive solver and the published fixtures."""

from __future__ import annotations

import numpy as np
import pytest

from saltus._jax import jax, jnp, workers
from saltus.core.errors import BadInput
from saltus.papers.sim.law import descents, two_layer
from saltus.papers.sim.symmetric import (
    Cone,
    Descents,
    Diverged,
    Hits,
    Lowest,
    Rises,
    eigenvalues,
    evolve,
    smallest_eigenvalue,
    starts,
)
from saltus.papers.sim.symmetric.algebra import positive
from saltus.papers.sim.symmetric.starts import drawn

MU = np.array([1.0, 1.5, 2.2])
A = 0.05**2 + MU**2 / 3
FIXTURE = np.array([[0.06, 0.03, 0.005], [0.002, 0.08, 0.09], [0.06, 0.07, 0.05]])


def plain(U, a, eta, steps, how):
    """Every W along the way, by matrix products in numpy."""
    W, path = U @ U.T, []
    for _ in range(steps + 1):
        path.append(W)
        if how == "gd":
            M = 0.5 * ((W - np.eye(len(a))) * a + a[:, None] * (W - np.eye(len(a))))
            U = U - eta * M @ U
            W = U @ U.T
        else:
            V = W * a + a[:, None] * W - 0.5 * (a[:, None] * (W @ W) + (W @ W) * a + 2 * (W * a) @ W)
            W = W + eta * V
    return np.array(path)


@pytest.mark.parametrize(
    ("how", "d", "width"), [("gd", 3, 3), ("gd", 2, 5), ("gd", 4, 2), ("recursion", 3, 3)]
)
def test_steps_follow_a_plain_loop(how, d, width):
    mu = np.linspace(1, 2, d)
    a = 0.01 + mu**2 / d
    found = evolve(a, mu, 5, how=how, width=width, steps=300, at=np.arange(301), eta=0.02, base=4)
    U0 = starts(5, d, width, base=4)
    assert U0.min() >= 0
    assert U0.max() <= 0.1
    for run in range(5):
        path = plain(U0[run], a, 0.02, 300, how)
        np.testing.assert_allclose(found["path_w"][run], path, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(
            found["path_loss"][run], two_layer.loss_at(path, mu), rtol=1e-9, atol=1e-14
        )
        np.testing.assert_allclose(
            found["path_train"][run], two_layer.training_loss(path, a), rtol=1e-9, atol=1e-14
        )
        np.testing.assert_allclose(found["w"][run], found["path_w"][run, -1], rtol=1e-14)


def test_the_flow_agrees_with_an_adaptive_solver():
    # RK4 with time step .02: within 2e-7 of order 8 at rtol 1e-11, all the way through learning.
    at = np.arange(0, 1501, 50)
    found = evolve(A, MU, 12, how="flow", eta=0.02, steps=1500, at=at)
    U = two_layer.flow(starts(12, 3), A, at * 0.02, rtol=1e-11, atol=1e-14)
    error = np.abs(found["path_w"] - np.asarray(two_layer.gram(U))).max()
    assert error < 2e-7
    coarse = evolve(A, MU, 12, how="flow", eta=0.04, steps=750, at=at // 2)
    ratio = np.abs(coarse["path_w"] - np.asarray(two_layer.gram(U))).max() / error
    assert 12 < ratio < 20  # order 4


def test_steps_that_change_their_length():
    # The same time in short steps, then in four times longer ones: order 8 again, and steps count in etas.
    paces, at = [(300, 4.0)], np.array([0, 100, 300, 310, 600])
    times = 0.02 * np.array([0, 100, 300, 340, 1500])
    watch = (Hits((0.5,)),)
    found = evolve(A, MU, 12, how="flow", eta=0.02, steps=600, at=at, paces=paces, watch=watch)
    np.testing.assert_array_equal(found["at"], at)
    U = two_layer.flow(starts(12, 3), A, times, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found["path_w"], two_layer.gram(U), atol=1e-5)
    fine = evolve(A, MU, 12, how="flow", eta=0.02, steps=1500, watch=watch)
    np.testing.assert_allclose(found["hit"], fine["hit"], atol=2e-3)
    assert (found["hit"] > 6.0).any()  # some are reached in the longer steps
    # Without looks on the way, and in a kernel, the same numbers.
    options = dict(how="flow", eta=0.02, steps=600, paces=paces, watch=watch)
    for engine in ("loop", "kernel"):
        again = evolve(A, MU, 12, engine=engine, **options)
        for name in ("hit", "w", "loss"):
            np.testing.assert_allclose(again[name], found[name], rtol=1e-12, atol=1e-15)
    # A pace of one is no pace.
    same = evolve(A, MU, 12, how="flow", eta=0.02, steps=600, paces=[(300, 1.0)], watch=watch)
    plain = evolve(A, MU, 12, how="flow", eta=0.02, steps=600, watch=watch)
    np.testing.assert_allclose(same["w"], plain["w"], rtol=1e-13)
    np.testing.assert_allclose(same["hit"], plain["hit"], rtol=1e-13)


@pytest.mark.parametrize("paces", [[(0, 2.0)], [(600, 2.0)], [(5, 2.0), (5, 3.0)], [(5, 0.0)], [(5, np.nan)]])
def test_paces_that_cannot_be(paces):
    with pytest.raises(BadInput, match="paces"):
        evolve(A, MU, 2, how="flow", steps=600, paces=paces)


@pytest.mark.parametrize("kind", ["uniform", "gaussian"])
def test_starts_drawn_in_lots_are_those_of_the_runs(kind):
    index = np.array([5, 0, 70_000, 2, *range(2000, 3100)])
    found = starts(index, 3, 5, start=kind, scale=0.3, base=4)
    whole = np.moveaxis(np.asarray(drawn(kind, 4, index, 3, 5, 0.3)), -1, 0)
    np.testing.assert_array_equal(found, whole)


def test_what_is_watched_is_what_the_path_says():
    watch = (Descents((1e-4, 1e-2)), Hits((0.3, 0.9)), Lowest(), Diverged(), Rises(), Cone())
    at = np.arange(2001)
    found = evolve(A, MU, 40, how="recursion", steps=2000, at=at, watch=watch)
    path, loss, train = found["path_w"], found["path_loss"], found["path_train"]
    diagonal = np.diagonal(path, axis1=2, axis2=3)
    for n, theta in enumerate((1e-4, 1e-2)):
        np.testing.assert_array_equal(found["descents"][:, n], descents.loss_legs(loss, theta).falling)

    def first(event):
        return np.where(event.any(1), event.argmax(1), np.inf)

    np.testing.assert_array_equal(found["negative_step"], first((diagonal < 0).any(2)))
    np.testing.assert_array_equal(found["diverged_step"], first(~(loss <= 1e6 * loss[:, :1])))
    np.testing.assert_array_equal(found["nonfinite_step"], first(~np.isfinite(loss)))
    np.testing.assert_array_equal(found["lowest"], np.nanmin(diagonal, axis=1))
    finite = np.isfinite(path).all((2, 3))
    least = np.full(finite.shape, np.inf)
    least[finite] = np.linalg.eigvalsh(path[finite])[:, 0]
    clear = (np.abs(least + 1e-12) > 1e-14).all(1)
    np.testing.assert_array_equal(found["indefinite_step"][clear], first(least < -1e-12)[clear])
    steady = np.isinf(found["diverged_step"])
    assert 0.5 < steady.mean() < 1  # both kinds were looked at
    rises = np.diff(train[steady], axis=1) / train[steady, :1]
    np.testing.assert_array_equal(found["train_rises"][steady], (rises > 1e-12).sum(1))
    np.testing.assert_allclose(found["train_rise"][steady], np.maximum(rises.max(1), 0), atol=1e-15)
    for n, level in enumerate((0.3, 0.9)):
        for k in range(3):
            for run in np.flatnonzero(steady)[:10]:
                step = int(first(diagonal[run : run + 1, :, k] >= level)[0])
                before, now = diagonal[run, step - 1 : step + 1, k]
                assert found["hit"][run, n, k] == pytest.approx(
                    0.01 * (step - (now - level) / (now - before))
                )


def test_published_start_of_the_two_readings_of_the_dynamics():
    # mu = (1, 1.5, 2.2): the recursion diverges from a start that the flow learns.
    for eta, negative, diverged in ((0.01, 529, 1298), (0.001, 7328, 16331)):
        found = evolve(A, MU, 1, how="recursion", start=FIXTURE, eta=eta, steps=int(20 / eta))
        assert found["negative_step"][0] == negative
        assert found["diverged_step"][0] == diverged
        assert found["nonfinite_step"][0] >= diverged
    flow = evolve(A, MU, 1, how="flow", start=FIXTURE, eta=0.01, steps=6000)
    assert flow["descents"][0, 0] == 2
    # Published as the next point of a grid of .04.
    np.testing.assert_allclose(np.ceil(flow["hit"][0, 0] / 0.04) * 0.04, (24.00, 3.48, 1.44), atol=1e-9)
    assert flow["lowest"][0, 0] == pytest.approx(6.361e-4, abs=1e-7)
    gd = evolve(A, MU, 1, how="gd", start=FIXTURE, eta=0.01, steps=6000)
    np.testing.assert_allclose(np.diagonal(gd["w"][0]), 1, atol=1e-3)


def test_published_flow_of_two_axes():
    found = evolve(
        [0.5025, 1.1275],
        [1, 1.5],
        1,
        how="flow",
        start=[[0.1, 0.05], [0.02, 0.12]],
        eta=0.01,
        steps=800,
        at=[200, 400, 800],
    )
    w = found["path_w"][0]
    entries = np.stack([w[:, 0, 0], w[:, 0, 1], w[:, 1, 1]], 1)
    np.testing.assert_allclose(
        entries,
        [
            [0.07379935, 0.09249130, 0.56592972],
            [0.32314387, 0.05239213, 0.98778144],
            [0.96337660, 0.00033006, 0.99999603],
        ],
        atol=2e-8,
    )
    np.testing.assert_allclose(found["path_loss"][0], [0.4660744, 0.1795425, 0.00065268], atol=2e-7)
    np.testing.assert_allclose(found["path_train"][0], [0.3287263, 0.1174275, 0.00033708], atol=2e-7)


def test_layout_changes_no_bit():
    watch = (Descents((1e-3,)), Lowest())
    one = evolve(A, MU, 50, steps=200, block=16, watch=watch, chunk=1, devices=workers()[:1])
    for layout in ({"chunk": 3}, {"chunk": 8, "devices": workers()[:1]}):
        other = evolve(A, MU, 50, steps=200, block=16, watch=watch, **layout)
        for name, value in one.items():
            assert value.tobytes() == other[name].tobytes(), name


def test_a_sweep_gives_each_run_its_own_setting():
    mu = np.array([[1.0, 1.5], [1.0, 2.0], [0.7, 1.7]])
    a, eta, scale = 0.01 + mu**2 / 2, np.array([0.01, 0.02, 0.005]), np.array([0.1, 0.05, 0.2])
    together = evolve(a, mu, 3, eta=eta, scale=scale, steps=400)
    for run in range(3):
        alone = evolve(a[run], mu[run], [run], eta=eta[run], scale=scale[run], steps=400)
        for name, value in alone.items():
            np.testing.assert_allclose(together[name][run], value[0], rtol=1e-12, atol=1e-15, err_msg=name)


def test_a_squared_is_the_flow_of_the_squared_moment():
    one, other = (evolve(a, MU, 4, power=p, steps=100) for a, p in ((A, 2), (A**2, 1)))
    np.testing.assert_array_equal(one["w"], other["w"])


def test_single_precision_starts_where_double_does():
    single, double = (evolve(A, MU, 6, steps=500, dtype=t, at=[0]) for t in ("float32", "float64"))
    assert single["w"].dtype == np.float32
    np.testing.assert_allclose(single["path_w"], double["path_w"], rtol=1e-6)
    np.testing.assert_allclose(single["w"], double["w"], atol=1e-4)


def test_gaussian_starts_have_their_scale():
    U = starts(4000, 2, 3, start="gaussian", scale=0.3)
    assert U.shape == (4000, 2, 3)
    assert U.std() == pytest.approx(0.3, rel=0.02)
    assert abs(U.mean()) < 0.01


@pytest.mark.parametrize("d", range(1, 7))
def test_eigenvalues_and_the_cone_agree_with_lapack(d):
    rng = np.random.default_rng(d)
    W = rng.normal(size=(500, d, d)) * 10.0 ** rng.integers(-8, 3, size=(500, 1, 1))
    W = W + np.swapaxes(W, 1, 2)
    W[0], W[1], W[2] = np.diag(rng.normal(size=d)), 0, 1
    W[3:200] = W[3:200] @ W[3:200]  # the positive ones
    entries = tuple(tuple(jnp.asarray(W[:, i, j]) for j in range(d)) for i in range(d))
    expected = np.linalg.eigvalsh(W)
    size = np.abs(expected).max(axis=1, keepdims=True) + 1e-300
    found = np.sort(np.stack(jax.jit(eigenvalues)(entries), 1), axis=1)
    np.testing.assert_allclose(found / size, expected / size, atol=1e-13)
    np.testing.assert_array_equal(jax.jit(smallest_eigenvalue)(entries), found[:, 0])
    clear = np.abs(expected[:, 0]) > 1e-9 * size[:, 0]
    holds = np.asarray(jax.jit(positive)(entries))
    np.testing.assert_array_equal(holds[clear], (expected[:, 0] > 0)[clear])
    assert holds.any()
    assert not holds.all()


@pytest.mark.parametrize("how", ["gd", "recursion", "flow"])
def test_the_kernel_is_the_loop(how):
    # Interpreted here; on a GPU the same program is one kernel.
    mu = np.array([1.0, 1.5])
    asked = {"how": how, "steps": 60, "at": [0, 60], "block": 8, "eta": np.linspace(0.05, 0.1, 12)}
    plain, kernel = (evolve(mu**2 / 2, mu, 12, engine=engine, **asked) for engine in ("loop", "kernel"))
    assert plain.keys() == kernel.keys()
    for name, value in plain.items():
        np.testing.assert_allclose(kernel[name], value, rtol=1e-11, atol=1e-15, err_msg=name)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"how": "flwo"}, "did you mean flow"),
        ({"dtype": "int8"}, "float64 or float32"),
        ({"steps": 0}, "steps must be"),
        ({"steps": 2**25, "dtype": "float32"}, "steps must be"),
        ({"start": "unifrom"}, "did you mean uniform"),
        ({"start": np.ones((2, 2))}, "a start must be"),
        ({"width": 0}, "width >= 1"),
        ({"target": [1.0, 2.0]}, "as many"),
        ({"a": [-1.0, 1, 1]}, "negative"),
        ({"a": [np.nan, 1, 1]}, "finite"),
        ({"a": np.ones((2, 3))}, "rows for 2 runs"),
        ({"a": np.ones(7), "target": np.ones(7)}, "d <= 6"),
        ({"at": [5, 3]}, "ascending"),
        ({"at": [0, 1000]}, "ascending"),
        ({"runs": 0}, "number of runs"),
        ({"runs": 10**9, "at": list(range(100))}, "GiB"),
        ({"power": 0}, "power"),
        ({"engine": "warp"}, "engine"),
    ],
)
def test_bad_input_is_one_clear_line(wrong, message):
    asked = {"a": A, "target": MU, "runs": 3, "steps": 100} | wrong
    with pytest.raises(BadInput, match=message) as caught:
        evolve(asked.pop("a"), asked.pop("target"), asked.pop("runs"), **asked)
    assert "\n" not in str(caught.value)


SIGMA = np.array([0.05, 0.05, 0.05, 0.5])
FIG9 = np.array([1, 1.5, 2.2, 2.7])
WORLDS = {  # mu, a, scale of the start, horizon
    "fig5": (np.array([1, 1.5, 0]), np.array([0.5025, 1.1275, 0]), 0.2, 20),
    "fig8": (MU, A, 0.1, 100),
    "fig9": (FIG9, SIGMA**2 + FIG9**2 / 4, 0.1, 100),
}
# Shares of 1, 2, 3, 4 descents (flow of U, theta .1%), of divergence and of a negative diagonal entry
# (recursion, eta .01); from 512 to 6000 starts elsewhere, and 512 of ours.
TABLE = [
    ("fig5", 1, (0.60, 0.40, 0, 0), 0.010, 0.213),
    pytest.param("fig5", 2, (0.11, 0.89, 0, 0), 0.014, 0.141, marks=pytest.mark.slow),
    ("fig8", 1, (0.18, 0.67, 0.15, 0), 0.225, None),
    pytest.param("fig8", 2, (0.00, 0.45, 0.55, 0), 0.355, None, marks=pytest.mark.slow),
    pytest.param("fig9", 1, (0.18, 0.61, 0.20, 0.010), 0.369, None, marks=pytest.mark.slow),
    pytest.param("fig9", 2, (0.00, 0.25, 0.52, 0.229), 0.619, None, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("world", "power", "shares", "diverged", "negative"), TABLE)
def test_shares_of_descents_and_of_divergence(world, power, shares, diverged, negative):
    mu, a, scale, horizon = WORLDS[world]
    flow = evolve(a, mu, 512, how="flow", eta=0.02, steps=horizon * 50, power=power, scale=scale)
    counts = [(flow["descents"][:, 0] == n).mean() for n in (1, 2, 3, 4)]
    np.testing.assert_allclose(counts, shares, atol=0.06)
    found = evolve(a, mu, 512, how="recursion", steps=horizon * 100, power=power, scale=scale)
    assert np.isfinite(found["diverged_step"]).mean() == pytest.approx(diverged, abs=0.06)
    if negative is not None:
        assert np.isfinite(found["negative_step"]).mean() == pytest.approx(negative, abs=0.06)
    gd = evolve(a, mu, 512, how="gd", steps=horizon * 100, power=power, scale=scale)
    assert np.isinf(gd["diverged_step"]).all()
    assert (gd["train_rises"] == 0).all()


def test_more_starts_than_there_is_memory_for_are_refused_before_they_are_drawn() -> None:
    for runs in (10**12, range(10**12)):
        with pytest.raises(BadInput, match=r"1000000000000 starts need .* GiB of memory"):
            starts(runs, 3)
