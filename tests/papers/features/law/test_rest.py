"""The classifier's rates, conditions, concentration, and what gradients and weights are made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput
from saltus.papers.features import model, training, world
from saltus.papers.features.law import (
    classifier,
    concentration,
    conditions,
    ddpm,
    parts,
    second_stage,
)
from saltus.papers.features.world import TwoPatch

A, B = ddpm.ALPHA_BETA


def trained(steps: int, sigma0: float = 1e-3) -> tuple[world.Sample, np.ndarray, np.ndarray]:
    sample, W0 = TwoPatch(8, 200, 4.0).draw_in_span(np.random.default_rng(2), 8, sigma0)
    W0 = W0.reshape(2, 4, -1)
    at = np.arange(steps + 1)
    return sample, W0, training.train_classifier(world.stack([sample]), W0[None], eta=0.1, at=at)["W"][0]


def test_the_early_law_is_the_training_of_tiny_weights() -> None:
    sample, W0, path = trained(12, 1e-10)
    for k in (1, 5, 12):
        said = classifier.early(W0, sample.X, sample.members, sample.labels, 0.1, k)[-1]
        np.testing.assert_allclose(sample.X @ np.swapaxes(path[k], -1, -2), said, rtol=1e-7, atol=1e-17)


def test_rates() -> None:
    found = classifier.rates(0.1, 20, 30, 1000, 5.0, 1.0)
    assert found.signal / found.noise == pytest.approx(TwoPatch(mu=5.0).chi / 2)


def test_the_boundary_of_the_table() -> None:
    mus = np.full(3, 10.0)
    for sigma0, chi in ((1e-3, 2.66), (1e-4, 2.41), (1e-5, 2.30)):
        assert classifier.boundary(sigma0, mus[0], 1.0, 1000) == pytest.approx(chi, rel=0.02)
    assert classifier.boundary(1e-300, 10.0, 1.0, 1000) == pytest.approx(2, rel=0.01)


def test_stages_bracket_the_boundary() -> None:
    found = classifier.stages(30, 1000, 20, 15.0, 1.0, 1e-3, 0.1)
    assert 0 < found.signal < found.noise


def test_theorem_32_tells_the_cases() -> None:
    steps, loss = [0, 10, 20], [0.7, 0.05, 0.01]
    big, small = np.full((3, 2), 3.0), np.full((3, 2), 0.1)
    assert classifier.theorem32(steps, loss, big, small) == ("signal", 10, -1)
    assert classifier.theorem32(steps, loss, small, big) == ("noise", -1, 10)
    assert classifier.theorem32(steps, loss, big, big).case == "neither"
    assert classifier.theorem32(steps, [0.7] * 3, big, small).case == "neither"


def test_the_recursion_of_rho_rebuilds_the_weights() -> None:
    sample, W0, path = trained(60)
    rho = parts.classifier_coefficients(path, sample.X, sample.members, sample.labels, 0.1)
    units = sample.X / (sample.X**2).sum(1, keepdims=True)
    np.testing.assert_allclose(W0 + np.einsum("jpm,pd->jmd", rho, units), path[-1], atol=1e-12)
    bounds = classifier.memory_bounds(path[-1], W0, sample.X, sample.members, sample.labels, steps=60)
    assert max(bounds.values()) <= 1
    grown = classifier.memory_bounds(300 * path[-1], W0, sample.X, sample.members, sample.labels, steps=60)
    assert min(grown.values()) > 1


@given(st.integers(0, 2**31))
def test_no_signal_product_changes_sign(seed: int) -> None:
    """Lemma C.6, for projected noises and a step below m/|mu|^2."""
    sample, W0 = TwoPatch(6, 50, 2.0, project_noise=True).draw_in_span(np.random.default_rng(seed), 6, 0.01)
    W0 = W0.reshape(2, 3, -1)
    found = training.train_classifier(world.stack([sample]), W0[None], eta=0.2, at=[0, 30, 100])["W"][0]
    signs = np.sign(found[..., :2])
    assert (signs == signs[0]).all()


def test_slopes_are_projections_and_dominant_early() -> None:
    sample, W0 = TwoPatch(5, 60, 3.0).draw_in_span(np.random.default_rng(0), 3, 1e-4)
    found = parts.slopes(W0, W0, sample.X, sample.omega, A, B)
    g = np.asarray(ddpm.gradient(jnp.asarray(W0), sample.X, sample.omega, A, B, 3**-0.5))
    np.testing.assert_allclose(found.patches, sample.X @ g.T)
    np.testing.assert_allclose(found.start, (g * W0).sum(1))
    np.testing.assert_allclose(found.start, found.start_dominant, rtol=1e-3, atol=1e-16)
    big = parts.slopes(30 * W0 / 1e-2, W0, sample.X, sample.omega, A, B)
    assert big.residual_leads().mean() > 0.5 > found.residual_leads().mean()


def test_coefficients_rebuild_a_trained_denoiser() -> None:
    sample, W0 = TwoPatch(5, 60, 3.0).draw_in_span(np.random.default_rng(0), 3, 1e-2)
    W = training.train_denoiser(sample.X[None], sample.omega[None], W0[None], eta=0.01, at=[60])["W"][0, 0]
    found = parts.coefficients(W, W0, sample.X)
    np.testing.assert_allclose(found.rebuild(W0, sample.X), W, atol=1e-13 * np.abs(W).max())
    stray = found.stray(W0)
    units = sample.X / (sample.X**2).sum(1, keepdims=True)
    own = np.diagonal(found.phi)[:, None] * W0 + np.concatenate([found.gamma, found.rho]).T @ units
    np.testing.assert_allclose(np.linalg.norm(W - own, axis=1), stray, rtol=1e-9)
    assert (stray > 1e-6).all()  # eq. 22 is not exact
    assert (stray < 0.05 * np.linalg.norm(W, axis=1)).all()
    start = parts.coefficients(W0, W0, sample.X)
    np.testing.assert_allclose(start.phi, np.eye(len(W0)), atol=1e-12)


def test_the_papers_experiment_is_outside_its_conditions() -> None:
    given = dict(n=30, d=1000, m=20, mu=5.0, sigma_xi=1.0, sigma0=1e-3, eta=0.1)
    for kind, broken in (("both", "d ≥ n⁷m⁵"), ("classifier", "d ≥ n⁴m"), ("denoiser", "d ≥ n⁴")):
        items = {i.name: i for i in conditions.check(kind, **given)}
        assert not items[broken].holds
        assert items["n ≥ log(m/δ)"].holds
    need = {i.name: i.margin for i in conditions.check("both", **given)}["d ≥ n⁷m⁵"]
    assert 1000 / need == pytest.approx(30**7 * 20**5)
    low, high = conditions.window(30, 1000, 20)
    assert low > high
    low, high = conditions.window(30, 30**16 * 20**14, 20)
    assert low < 0 == pytest.approx(high, abs=1e-12)
    with pytest.raises(BadInput, match="classifier"):
        conditions.check("all", **given)


def test_constants_and_logarithms_only_make_it_harder() -> None:
    given = dict(n=3, d=10**12, m=1, mu=1.0, sigma_xi=1e-5, sigma0=1e-6, eta=1e-9)
    for kind in conditions.KINDS:
        plain, hard = conditions.check(kind, **given), conditions.check(kind, **given, C=2, logs=True)
        assert all(h.margin <= p.margin for p, h in zip(plain, hard, strict=True))


def test_concentration_fails_as_rarely_as_it_says() -> None:
    it, m, delta, runs = TwoPatch(20, 2000, 4.0), 30, 0.2, 200
    reports = []
    for seed in range(runs):
        sample, W0 = it.draw_in_span(np.random.default_rng(seed), m, 0.01)
        reports.append(concentration.report(sample.X, sample.labels, W0, 1.0, 0.01, 2000, delta))
    for name in reports[0]:
        if not name.startswith("mean"):  # of order: their constants need more neurons
            assert np.mean([r[name] > 1 for r in reports]) <= delta, name


def test_near_zero_bounds_a_normal_variable() -> None:
    from math import erf

    for c in (0.01, 0.3, 1.0, 3.0):
        assert concentration.near_zero(c, 1.0) >= erf(c / 2**0.5)
    assert model.prefactor(1) == 1


def test_conditions_of_any_size() -> None:
    """In logarithms: a dimension no float can hold, and the window where it is."""
    given = dict(n=30, d=10**400, m=20, mu=1.0, sigma_xi=1e-100, sigma0=1e-200, eta=1e-300)
    for kind in conditions.KINDS:
        found = {i.name: i for i in conditions.check(kind, **given, logs=True)}
        assert all(np.isfinite(i.log_margin) for i in found.values())
    big = {i.name: i for i in conditions.check("both", **given)}
    log10 = (400 - np.log10(30**7 * 20**5)) * np.log(10)
    assert big["d ≥ n⁷m⁵"].log_margin == pytest.approx(log10, rel=1e-12)
    assert big["d ≥ n⁷m⁵"].margin == np.inf
    assert big["σξ ≤ d⁻¹ᐟ⁴"].margin == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(
    "bad", [{"sigma0": 0.0}, {"d": 0}, {"eta": -1.0}, {"mu": float("nan")}, {"delta": 2.0}, {"C": np.inf}]
)
def test_conditions_need_numbers_above_zero(bad: dict[str, float]) -> None:
    given = dict(n=1, d=10, m=1, mu=1.0, sigma_xi=1.0, sigma0=1e-3, eta=0.1)
    with pytest.raises(BadInput, match=next(iter(bad))):
        conditions.check("both", **{**given, **bad})


def test_no_start_is_near_zero_where_the_premise_holds() -> None:
    """Lemma C.14: with its premise the least product is that large; without it is not."""
    it, m, delta, steps = TwoPatch(4, 10**9, 4.0), 3, 0.2, 100
    found = {True: [], False: []}
    for sigma0 in (1e-3, 1e-7):
        for seed in range(200):
            sample, W0 = it.draw_in_span(np.random.default_rng(seed), 2 * m, sigma0)
            one = concentration.apart(sample.X, W0, 1.0, sigma0, it.d, steps, delta)
            found[one.premise <= 1].append(one.conclusion)
    assert [len(v) for v in found.values()] == [200, 200]
    assert np.mean(np.asarray(found[True]) > 1) <= delta
    assert np.mean(np.asarray(found[False]) > 1) > delta


@pytest.mark.parametrize(("mu", "case"), [(5.0, "noise"), (15.0, "signal")])
def test_the_second_stage_nears_its_reference(mu: float, case: str) -> None:
    """Lemmas C.8, C.12 and C.19 in the paper's setting; the measures against automatic derivatives."""
    sample, W0 = TwoPatch(mu=mu, project_noise=True).draw_in_span(np.random.default_rng(0), 40, 1e-3)
    W0 = W0.reshape(2, 20, -1)
    path = training.train_classifier(world.stack([sample]), W0[None], eta=0.1, at=np.arange(60))["W"][0]
    found = second_stage.approach(path, W0, sample.X, sample.members, sample.labels, 0.1, case)
    until = classifier.stages(30, 1000, 20, mu, 1.0, 1e-3, 0.1)
    late = int(np.ceil(getattr(until, case)))
    assert found.lead[late:].min() >= 1 > found.lead[0]
    assert found.gain[late:].min() >= 0 > found.gain[0]
    assert found.slope.max() <= 1
    assert (np.diff(found.distance[late:]) < 0).all()

    aim, W, y = second_stage.reference(W0, sample.X, sample.labels, case), path[late], sample.labels

    def output(W: jnp.ndarray, i: int) -> jnp.ndarray:
        return model.classify(W, sample.X[sample.members[i] > 0])

    leads = [y[i] * float(jax.jvp(lambda w, i=i: output(w, i), (W,), (aim,))[1]) for i in range(len(y))]
    assert found.lead[late] == pytest.approx(min(leads) / (2 * np.log(40)), rel=1e-9)
    g = jax.grad(model.classifier_loss)(W, sample.X, sample.members, y.astype(float))
    loss = float(model.classifier_loss(W, sample.X, sample.members, y.astype(float)))
    scale = max(mu**2, (sample.X[2:] ** 2).sum(1).mean())
    assert found.slope[late] == pytest.approx(float((g**2).sum()) / scale / loss, rel=1e-9)
    with pytest.raises(BadInput, match="signal"):
        second_stage.reference(W0, sample.X, y, "both")


def test_the_rest_takes_over_by_the_time_the_loss_falls() -> None:
    sample, W0 = TwoPatch(6, 200, 5.0).draw_in_span(np.random.default_rng(1), 4, 1e-3)
    at = np.linspace(0, 6000, 121).astype(int)
    given = dict(eta=0.005, at=at)
    path = training.train_denoiser(sample.X[None], sample.omega[None], W0[None], **given)["W"][0]
    found = parts.second_stage_end(at, path, W0, sample.X, sample.omega, A, B)
    one = [parts.slopes(W, W0, sample.X, sample.omega, A, B).residual_leads() for W in path]
    when = int(np.argmax(at == found.signals))
    assert 0 < found.first == min(k for k in found if k >= 0)
    assert one[when][:2].mean() > 0.5 >= one[when - 1][:2].mean()
