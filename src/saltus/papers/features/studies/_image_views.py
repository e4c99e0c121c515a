"""What trained networks do to single pictures: input gradients and their energy, denoising and its gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np

if TYPE_CHECKING:
    from saltus.papers.features.studies._images import Run

__all__ = ["gain", "odds", "pictures"]


def gain(W: Any, X: Any, alpha: float, beta: float) -> Any:
    """How much of the error of x_t / alpha the denoiser takes away, in expectation over the noise, for each
    patch.

    Without a network the error of x_t / alpha is (beta / alpha) eps, with one it is (beta / alpha) (eps -
    f), so this is 1 - E||f - eps||^2 / d: the loss of the patch itself, in closed form. It is at most m /
    d, since f lies in the span of m weights, and negative where the network does harm.

    **Arguments:** `W` [m, d], with prefactor 1/sqrt(m); `X` [P, d]. **Returns** [P].
    """
    W = np.asarray(W, float)
    c2 = 1 / len(W)
    G, A = W @ W.T, np.asarray(X, float) @ W.T
    s = np.diag(G)
    U = alpha**2 * A**2 + beta**2 * s
    square = ((U @ G) * U).sum(1) + 4 * (alpha * beta) ** 2 * ((A @ G**2) * A).sum(1)
    change = c2 * (square + 2 * beta**4 * (G**3).sum()) - 4 * alpha * beta * np.sqrt(c2) * (A @ s)
    return -change / W.shape[1]


def odds(run: Run, C: Any, digit: Any, signal: Any, noise: Any) -> Any:
    """ln of the input gradient's energy in the noise patch over that in the picture, for each point."""
    energy = [(run.gradients(np.asarray(C, float), digit, x) ** 2).sum(1) for x in (noise, signal)]
    return np.log(energy[0] / energy[1])


def pictures(
    run: Run, W: Any, C: Any, chosen: Any, alpha: float, beta: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Points of the test as figure 3 shows them, each name [picture, patch, pixel].

    `shown`: the point itself; `gradient`: of the own class's output by the point; `plain`: x_t / alpha,
    which is what no network makes of x_t; `denoised`: (x_t - beta f) / alpha; `removed`: plain less denoised.
    """
    from saltus.papers.features import model

    d = run.drawn
    x = np.stack([d.test_signal[chosen], d.test_noise[chosen]], 1)
    digit = d.test_digit[chosen]
    W, C = np.asarray(W, float), np.asarray(C, float)
    x_t = alpha * x + beta * rng.standard_normal(x.shape)
    f = np.asarray(model.denoise(W, x_t, model.prefactor(len(W))))
    gradient = np.stack([run.gradients(C, digit, x[:, p]) for p in (0, 1)], 1)
    found = {"shown": x, "gradient": gradient, "plain": x_t / alpha, "removed": beta * f / alpha}
    return {**found, "denoised": found["plain"] - found["removed"]}
