"""The lemmas on admissible starts: which hold, which fail, by how much, and when."""

from __future__ import annotations

import math

import numpy as np
import pytest

from saltus.core.errors import BadInput
from saltus.papers.sim.law import admissible, lemmas, unrolled
from saltus.papers.sim.law.assumptions import shared_constants
from saltus.papers.sim.law.inequalities import Constants, failing, margins

A2 = (1.0, 18.0)
ETA2 = 0.999 / (9 * 20 * 18)
LN_OMEGA = -64.39509 * math.log(10)
C2 = Constants(1.0, 18.0, 1.5, LN_OMEGA, 20.0, 137.76844, 1.1001, 99.0)
HOLD_FOR_GD = ("D.1", "D.2", "D.2 phase", "D.3 phase", "D.4", "D.5 lower", "D.5 upper", "Cor D.2", "D.6")


def near_rank_one(*excess: float) -> np.ndarray:
    return math.exp(LN_OMEGA) * np.stack([np.ones((2, 2)) + e * np.eye(2) for e in excess])


def naive(kind: str, W: np.ndarray, a: np.ndarray, eta: float) -> np.ndarray:
    A, one = np.diag(a), np.eye(len(a))
    if kind == "recursion":
        return W + eta * (W @ A + A @ W - 0.5 * (A @ W @ W + W @ W @ A + 2 * W @ A @ W))
    M = 0.5 * ((W - one) @ A + A @ (W - one))
    return (one - eta * M) @ W @ (one - eta * M)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_unrolled_steps(d: int) -> None:
    rng = np.random.default_rng(d)
    U, a, eta = rng.normal(size=(5, d, d)), rng.uniform(0.1, 2, d), 0.03
    W = U @ U.transpose(0, 2, 1)
    w = unrolled.pack(W)
    got = {"recursion": unrolled.recursion(w, a, eta), "gd": unrolled.gd(w, a, eta)}
    rows = tuple(tuple(U[:, i, k] for k in range(d)) for i in range(d))
    got_U = unrolled.gram(unrolled.gd_factor(rows, a, eta))
    for kind, entries in got.items():
        expected = np.stack([naive(kind, x, a, eta) for x in W])
        np.testing.assert_allclose(unrolled.unpack(entries), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(unrolled.unpack(got_U), unrolled.unpack(got["gd"]), rtol=1e-11, atol=1e-12)
    G = [[W[:, i, j] * (a[i] + a[j]) for j in range(d)] for i in range(d)]
    N = unrolled.unpack(unrolled.noise(w, a))
    for i in range(d):
        for j in range(d):
            S = (
                0.5
                * W[:, i, j]
                * (W[:, i, i] * (3 * a[i] + a[j]) + (i != j) * W[:, j, j] * (3 * a[j] + a[i]))
            )
            drift = (np.stack([naive("recursion", x, a, 1.0) for x in W]) - W)[:, i, j]
            np.testing.assert_allclose(G[i][j] - S - N[:, i, j], drift, rtol=1e-10, atol=1e-11)
    F = unrolled.factor(W)
    np.testing.assert_allclose(F @ F.transpose(0, 2, 1), W, rtol=1e-9, atol=1e-10)


def reference(W: np.ndarray, a: tuple[float, ...], eta: float, c: Constants, steps: int) -> dict[str, float]:
    """The worst excess of each bound from a stored trajectory, written out from the statements in logs."""
    path = [W]
    for _ in range(steps):
        path.append(naive("gd", path[-1], np.array(a), eta))
    d, ln = len(a), lambda x: math.log(abs(x))
    ln_N = math.log(2 * c.gamma * c.alpha * d) + c.ln_P + 2 * (math.log(c.beta) + c.ln_omega)
    out = dict.fromkeys(lemmas.BOUNDS, -math.inf)

    def see(name: str, value: float) -> None:
        out[name] = max(out[name], value)

    for t in range(1, steps + 1):
        w, last = path[t], path[t - 1]
        for i in range(d):
            for j in range(i + 1):
                S = eta * t * (a[i] + a[j])
                N = sum(
                    0.5 * w[k, i] * w[k, j] * (a[i] + a[j] + 2 * a[k]) for k in range(d) if k not in (i, j)
                )
                if N:
                    see("Cor D.1", ln(N) - ln_N)
                see("D.1", ln(w[i, j]) - ln(W[i, j]) - S * c.kappa)
                if t <= c.ln_P / (2 * eta * c.gamma * c.alpha * c.kappa):
                    see("D.2", ln(W[i, j]) + S / c.kappa - ln(w[i, j]))
                    see("D.2 phase", ln(w[i, j]) - c.ln_phase)
                if i != j:
                    see("D.8", ln(w[i, j]) - c.ln_phase)
            own = (c.ln_phase - ln(W[i, i])) / (2 * eta * a[i] * c.kappa)
            if t <= own:
                see("D.3", ln(W[i, i]) + 2 * eta * t * a[i] / c.kappa - ln(w[i, i]))
                see("D.3 phase", ln(w[i, i]) - c.ln_phase)
            see("D.5 lower", -w[i, i])
            see("D.5 upper", ln(w[i, i]) - math.log(1 + 2 / c.K))
            if w[i, i] != last[i, i]:
                see("Cor D.2", ln(w[i, i] - last[i, i]) + math.log(c.K))
            # Lemma D.4 from the first step in its range, lambda the largest value so far.
            from_t0 = [p[i, i] for p in path[: t + 1] if ln(p[i, i]) >= c.ln_phase]
            if len(from_t0) > 1 and (lam := max(from_t0)) < 1 - 1 / c.K:
                grown = 2 * eta * (len(from_t0) - 1) * a[i] * (1 - lam) / c.kappa
                see("D.4", ln(from_t0[0]) + grown - ln(w[i, i]))
            if any(p[i, i] >= 1 - 2 / c.K for p in path[: t + 1]):
                see("D.6", math.log(1 - 2 / c.K) - ln(w[i, i]))
            for j in range(i):
                caps = [max(ln(p[i, j]), c.ln_omega) for p in path[:t] if p[i, i] > 0.8]
                if caps:
                    see("D.7", ln(w[i, j]) - min(caps))
    return out


def test_streaming_is_what_a_stored_trajectory_says() -> None:
    """A large step and a large start, so that the whole of learning fits into 300 steps."""
    a, eta = (1.0, 5.0), 0.02
    W = 1e-3 * np.array([[1.2, 1.0], [1.0, 1.4]])
    c = Constants(1.0, 5.0, 1.4, math.log(1e-3), 20.0, math.log(60.0), 1.11, 50.0)
    report = lemmas.check(a, W, eta, c, steps=300, dynamics="gd")
    for name, value in reference(W, a, eta, c, 300).items():
        got = report.bounds[name].worst[0]
        if name == "D.4":  # the loop's one-step form implies the other, and is at least as strict
            assert (value > 0) <= (got > 0)
        else:
            assert got == pytest.approx(value, abs=1e-8, rel=1e-8), name
    assert report.bounds["Cor D.1"].share == 1.0
    assert report.bounds["D.5 upper"].share == 0.0


def test_diagonals_fall_short_of_lemma_d3_under_gradient_descent() -> None:
    report = lemmas.check(A2, near_rank_one(0.45, 0.2, 0.1, 0.01, 1e-3), ETA2, C2, dynamics="gd")
    d3 = report.bounds["D.3"]
    np.testing.assert_allclose(d3.worst[1:], [0.374, 0.933, 3.09, 5.35], atol=6e-3)
    assert d3.worst[0] < 0
    # The weak diagonal falls to its Schur complement once the strong axis saturates.
    assert (d3.entry[1:] == 1).all()
    assert (np.diff(d3.first[1:]) < 0).all()
    saturated = math.log(1e64) / (2 * 18 * ETA2)
    np.testing.assert_allclose(d3.first[1:], saturated, rtol=0.05)
    for name in HOLD_FOR_GD:
        assert report.bounds[name].share == 0.0, name
    assert (report.stopped == -1).all()
    np.testing.assert_allclose(np.diagonal(report.W, axis1=1, axis2=2), 1.0, atol=1e-3)


def test_corollary_d1_is_short_of_a_factor_P() -> None:
    report = lemmas.check(A2, near_rank_one(0.45), ETA2, C2, dynamics="gd")
    found = report.worst("Cor D.1")
    assert 15 < found.excess < C2.ln_P
    assert found.entry == (1, 1)
    assert 0 < found.step < report.steps


def test_recursion_from_a_start_outside_the_cone_bound() -> None:
    """e = 0.2 survives and e = 0.1 turns negative; the pole is far beyond this test's horizon."""
    report = lemmas.check(A2, near_rank_one(0.2, 0.1), ETA2, C2, steps=40_000)
    lower = report.bounds["D.5 lower"]
    assert lower.first.tolist() == [-1, 13735]
    assert lower.entry[1].tolist() == [1, 1]
    assert report.bounds["D.3"].worst[0] == pytest.approx(5.93, abs=0.01)
    assert report.bounds["D.3"].worst[1] == math.inf


def test_exactly_singular_start_is_stepped_in_U_and_never_learns() -> None:
    W0 = math.exp(LN_OMEGA) * np.ones((1, 2, 2))
    for steps, short in ((15_000, 8.57), (50_000, 211.9)):
        report = lemmas.check(A2, W0, ETA2, C2, steps=steps, dynamics="gd")
        assert report.form == "U"
        assert report.bounds["D.3"].worst[0] == pytest.approx(short, abs=0.05)
        assert report.W[0, 0, 0] < math.exp(LN_OMEGA)
        assert report.bounds["D.7"].share == 0.0


def test_rank_two_of_three_keeps_its_rank_and_its_suppression() -> None:
    """Rounding of U U^T must not read as a violation of D.7 or D.8."""
    a = (1.0, 11.0, 121.0)
    U = np.random.default_rng(0).uniform(0.5, 1, (2, 3, 2))
    W0 = 1e-100 * U @ U.transpose(0, 2, 1)
    c = shared_constants(a, W0)
    report = lemmas.check(a, W0, 0.999 / (9 * 20 * 121), c, steps=250_000, dynamics="gd")
    assert report.form == "U"
    assert report.bounds["D.7"].share == report.bounds["D.8"].share == 0.0
    np.testing.assert_allclose(report.W[:, [1, 2], [1, 2]], 1.0, atol=1e-6)
    assert (report.W[:, 0, 0] < 1e-90).all()


def test_values_that_are_not_finite_stop_that_run_only() -> None:
    W0 = np.array([[[0.1, 0.05], [0.05, 0.1]], [[3.0, 0.5], [0.5, 4.0]]])
    c = Constants(1.0, 2.0, 80.0, math.log(0.05), 20.0, math.log(2.0), 1.2, 10.0)
    report = lemmas.check((1.0, 2.0), W0, 0.5, c, steps=200)
    assert report.stopped[0] == -1
    assert 0 < report.stopped[1] < 10
    assert np.isfinite(report.bounds["D.8"].worst[0])
    assert not any(np.isnan(b.worst).any() for b in report.bounds.values())
    assert "1 stopped" in report.explain()


def test_underflow_is_said() -> None:
    W0 = 1e-160 * (np.ones((1, 2, 2)) + 0.45 * np.eye(2))
    c = shared_constants(A2, W0)
    report = lemmas.check(A2, W0, ETA2, c, steps=500, dynamics="gd")
    assert report.underflow
    assert np.isnan(report.bounds["Cor D.1"].worst).all()
    assert "underflow" in report.explain()
    assert not lemmas.check(A2, near_rank_one(0.45), ETA2, C2, steps=10).underflow


def test_bad_input_is_named() -> None:
    with pytest.raises(BadInput, match="axes"):
        lemmas.check((1.0, 2.0, 3.0), near_rank_one(0.1), ETA2, C2)
    with pytest.raises(BadInput, match="dynamics"):
        lemmas.check(A2, near_rank_one(0.1), ETA2, C2, dynamics="flow")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="without zeros"):
        lemmas.check(A2, np.eye(2), ETA2, C2)


def test_random_admissible_starts_two_axes() -> None:
    """Few starts; the shares over 100 are in the slow test below."""
    W0 = admissible.random_starts(A2, 8, seed=2)
    c = shared_constants(A2, W0)
    assert all(failing(margins(A2, np.log(np.abs(w)), ETA2, c)) == [] for w in W0)
    gd = lemmas.check(A2, W0, ETA2, c, dynamics="gd")
    assert gd.bounds["Cor D.1"].share == 1.0
    assert gd.bounds["D.3"].share >= 0.6
    for name in (*HOLD_FOR_GD, "D.7", "D.8"):
        assert gd.bounds[name].share == 0.0, name
    # D.8 with room: the largest off-diagonal is some 26 decades below the allowed one.
    assert gd.bounds["D.8"].worst.max() < -50
    # It peaks near omega^((1 - a_weak/a_strong)/2), when the strong axis saturates.
    peak = gd.bounds["D.8"].worst + c.ln_phase
    np.testing.assert_allclose(peak, 0.5 * (1 - 1 / 18) * c.ln_omega, atol=1.5)


@pytest.mark.slow
def test_recursion_blows_up_inside_the_assumptions() -> None:
    report = lemmas.check(A2, near_rank_one(0.1), ETA2, C2)
    assert report.stopped.tolist() == [243_078]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "n", "dynamics", "shares"),
    [
        (A2, 100, "gd", {"D.1": 0.0, "D.3": 0.96, "D.5 lower": 0.0, "Cor D.2": 0.0}),
        (A2, 100, "recursion", {"D.1": 0.29, "D.3": 1.0, "D.5 lower": 0.74, "Cor D.2": 0.74}),
        ((1.0, 11.0, 121.0), 30, "gd", {"D.1": 0.0, "D.3": 1.0, "D.5 lower": 0.0, "Cor D.2": 0.0}),
        ((1.0, 11.0, 121.0), 30, "recursion", {"D.1": 0.77, "D.3": 1.0, "D.5 lower": 1.0, "Cor D.2": 1.0}),
    ],
)
def test_shares_of_admissible_starts_violating(
    a: tuple[float, ...], n: int, dynamics: lemmas.Dynamics, shares: dict[str, float]
) -> None:
    W0 = admissible.random_starts(a, n, seed=1)
    c = shared_constants(a, W0)
    eta = 0.999 / (9 * 20 * max(a))
    assert all(failing(margins(a, np.log(np.abs(w)), eta, c)) == [] for w in W0)
    report = lemmas.check(a, W0, eta, c, dynamics=dynamics)
    for name, share in shares.items():
        # Three standard errors of the difference of two such shares.
        error = 3 * math.sqrt(2 * share * (1 - share) / n)
        assert report.bounds[name].share == pytest.approx(share, abs=error + 1e-12), name
    for name in ("D.2", "D.2 phase", "D.3 phase", "D.4", "D.5 upper", "D.6", "D.7", "D.8"):
        assert report.bounds[name].share == 0.0, name
    assert report.bounds["Cor D.1"].share == 1.0
    assert report.bounds["Cor D.1"].worst.max() < c.ln_P


@pytest.mark.slow
def test_suppression_fails_in_blow_ups_at_close_signals() -> None:
    a, eta = (1.0, 3.1), 0.999 / (9 * 20 * 3.1)
    ln_omega = -90.17778 * math.log(10)
    c = Constants(1.0, 3.1, 1.5, ln_omega, 20.0, 198.89423, 1.1001, 99.0)
    W0 = math.exp(ln_omega) * np.stack([np.ones((2, 2)) + e * np.eye(2) for e in (0.01, 0.1, 0.45)])
    report = lemmas.check(a, W0, eta, c)
    assert (report.stopped >= 0).tolist() == [True, True, False]
    assert report.bounds["D.7"].violated.tolist() == [True, True, False]
    assert report.bounds["Cor D.1"].worst[2] == pytest.approx(73, abs=1)
