"""The diagonal head's gradient, and its flow in logarithms, as others would write them."""

from __future__ import annotations

from typing import Any

import numpy as np


def numpy_gradient(X: Any, Y: Any) -> Any:
    """m [2d] -> g [2d] with numpy's batched products."""
    across, tokens = np.ascontiguousarray(X.transpose(0, 2, 1)), X.shape[0] * X.shape[1]

    def g(m: Any) -> Any:
        a, c = np.split(np.asarray(m), 2)
        logits = (X * a) @ across
        P = np.exp(logits - logits.max(-1, keepdims=True))
        P /= P.sum(-1, keepdims=True)
        Z = P @ X
        E = Z * c - Y
        V = (E * c) @ across
        Q = P * (V - (P * V).sum(-1, keepdims=True))
        return -np.concatenate([((Q @ X) * X).sum((0, 1)), (E * Z).sum((0, 1))]) / tokens

    return g


def jax_gradient(X: Any, Y: Any) -> Any:
    """The same by automatic differentiation of the loss, compiled."""
    import jax
    import jax.numpy as jnp

    X, Y = jnp.asarray(X), jnp.asarray(Y)

    def loss(m: Any) -> Any:
        a, c = jnp.split(m, 2)
        P = jax.nn.softmax(jnp.einsum("sik,sjk->sij", X * a, X), axis=-1)
        return 0.5 * jnp.mean(jnp.sum((jnp.einsum("sij,sjk->sik", P, X) * c - Y) ** 2, -1))

    slope = jax.jit(jax.grad(loss))
    return lambda m: -slope(m)


def torch_gradient(X: Any, Y: Any) -> Any:
    """The same in eager PyTorch."""
    import torch

    X, Y = torch.as_tensor(np.array(X)), torch.as_tensor(np.array(Y))

    def g(m: Any) -> Any:
        w = torch.tensor(np.array(m), requires_grad=True)
        a, c = w.chunk(2)
        P = torch.softmax((X * a) @ X.transpose(1, 2), -1)
        loss = 0.5 * (((P @ X) * c - Y) ** 2).sum(-1).mean()
        return -torch.autograd.grad(loss, w)[0].numpy()

    return g


def scipy_flow(X: Any, Y: Any, P: Any, K: Any, times: Any, atol: float) -> Any:
    """m [T, 2d] at times by scipy's Radau, gradient in numpy; a call compiles once.

    The Jacobian is JAX's: with one by differences Radau's steps shrink to nothing at a transition.
    """
    import jax
    import jax.numpy as jnp
    from scipy.integrate import solve_ivp

    g, slope = numpy_gradient(np.asarray(X), np.asarray(Y)), jax_gradient(X, Y)

    def products(y: Any, K: Any, xp: Any = np) -> Any:
        return (xp.exp(xp.minimum(2 * y, 40)) - xp.exp(xp.minimum(2 * (K - y), 40))) / 4

    jac = jax.jit(jax.jacfwd(lambda y: slope(products(y, jnp.asarray(K), jnp))))

    def go() -> Any:
        found = solve_ivp(
            lambda t, y: g(products(y, K)), (0, times[-1]), P, "Radau", times,
            rtol=1e-13, atol=atol, jac=lambda t, y: np.asarray(jac(y)),
        )  # fmt: skip
        if not found.success:
            raise RuntimeError(f"scipy: {found.message}")
        return products(found.y.T, K)

    return go


def diffrax_flow(X: Any, Y: Any, P: Any, K: Any, times: Any, atol: float) -> Any:
    """The same by Kvaerno5 of diffrax, all by automatic differentiation; a call compiles once."""
    import diffrax
    import jax
    import jax.numpy as jnp

    g, K = jax_gradient(X, Y), jnp.asarray(K)

    def products(y: Any) -> Any:
        return (jnp.exp(jnp.minimum(2 * y, 40)) - jnp.exp(jnp.minimum(2 * (K - y), 40))) / 4

    @jax.jit
    def go(P: Any) -> Any:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: g(products(y))), diffrax.Kvaerno5(), 0.0, times[-1], 1e-4, P,
            saveat=diffrax.SaveAt(ts=jnp.asarray(times)), max_steps=100_000, throw=False,
            stepsize_controller=diffrax.PIDController(rtol=atol, atol=atol),
        )  # fmt: skip
        return jax.vmap(products)(found.ys)

    return lambda: np.asarray(go(jnp.asarray(P)))
