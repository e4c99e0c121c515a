"""Our side of the transformer contest: training steps, spectra of all heads, and the plain ways beside them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import vit_case

from saltus import probe
from saltus._jax import jax, jnp
from saltus.descent._how import adam
from saltus.descent._world import cross_entropy
from saltus.descent.network import Table
from saltus.descent.network._engine import Engine, compiled, rate_table
from saltus.descent.network._fit import members_of


def model_for(device: str, way: str, quick: bool) -> Any:
    """The network as this device computes it best."""
    more: dict[str, Any] = {"compute": "bfloat16", "unroll": True} if device == "gpu" else {}
    return vit_case.model(quick, attention=way, **more)


class Ours:
    """Training by `descent.network`: its own compiled loop, from data to updated parameters."""

    def __init__(self, model: Any, table: Table, batch: int) -> None:
        how = adam(vit_case.LR, steps=2**15, batch=batch)
        self.engine = Engine(model, how, how.plan(len(table)), cross_entropy, (), "float32", False)
        self.begin, self.advance, _ = compiled(self.engine)
        self.keys, self.scales = members_of([(0, 1.0)], 0)
        self.arrays, self.rates, self.at = table.arrays(), rate_table(how, 2**15), 0
        self.carry, self.start = self.begin(self.keys, self.scales)
        self.start = jax.tree.map(jnp.copy, self.start)

    def take(self, params: Any) -> None:
        """Start from these parameters."""
        self.carry = self.carry._replace(
            params=jax.tree.map(lambda leaf: jnp.array(leaf, jnp.float32), params)
        )

    def run(self, steps: int) -> float:
        """The mean loss of so many more steps."""
        begins, self.at = self.at, self.at + steps
        self.carry = self.carry._replace(loss=jnp.zeros((), jnp.float32))
        first, last = jnp.int32(begins), jnp.int32(self.at)
        self.carry = self.advance(self.carry, first, last, self.keys, self.rates, self.arrays)
        return float(self.carry.loss) / steps  # waits for the device


def timed(ours: Ours, warm: int, steps: int) -> dict[str, Any]:
    """Seconds to compile and of the best of three stretches."""
    began = time.perf_counter()
    losses = [ours.run(warm)]
    compile_seconds, seconds = time.perf_counter() - began, []
    for _ in range(3):
        began = time.perf_counter()
        losses.append(ours.run(steps))
        seconds.append(time.perf_counter() - began)
    rate = steps * ours.engine.plan.batch / min(seconds)
    return {
        "warm_seconds": compile_seconds, "seconds": seconds, "steps": steps,
        "images_per_second": rate, "mean_losses": losses,
    }  # fmt: skip


def least(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest call after one that is not counted."""
    jax.block_until_ready(call())
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(call())
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def matrix_rate(quick: bool) -> float:
    """Operations per second of large products of random bf16 matrices, float32 on a CPU."""
    size, repeats = (512, 3) if quick else (8192, 20)
    dtype = jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16
    a = jax.random.normal(jax.random.key(0), (size, size), dtype)

    @jax.jit
    def chain(a: Any, b: Any) -> Any:
        # Each product is the next one's operand, so none can be left out; the factor keeps them finite.
        def step(_: int, b: Any) -> Any:
            return jnp.matmul(a, b, precision=jax.lax.Precision.DEFAULT) * dtype(size**-0.5)

        return jax.lax.fori_loop(0, repeats, step, b)

    return repeats * 2.0 * size**3 / least(lambda: chain(a, a), 3)


def spectra(params: Any, start: Any, methods: tuple[str, ...], repeats: int = 3) -> dict[str, Any]:
    """Seconds for the spectra of the change of both products in every head, by each method."""
    found: dict[str, Any] = {}
    for method in methods:
        call = jax.jit(partial(probe.head_products, method=method))
        try:
            found[method] = least(lambda call=call: call(params, start), repeats)
        except Exception as error:
            found[method] = f"{type(error).__name__}: {str(error)[:300]}"
    return found


def plain_spectra(params: Any, start: Any, heads: int) -> dict[str, float]:
    """Seconds of a plain singular value decomposition of the d x d change, head after head; some of them."""
    k, q = probe.head_matrices(params, "W_K")[0], probe.head_matrices(params, "W_Q")[0]
    k0, q0 = probe.head_matrices(start, "W_K")[0], probe.head_matrices(start, "W_Q")[0]

    @jax.jit
    def one(k: Any, q: Any, k0: Any, q0: Any) -> Any:
        return jnp.linalg.svd(k @ q.T - k0 @ q0.T, compute_uv=False)

    each = least(lambda: [one(k[i], q[i], k0[i], q0[i]) for i in range(heads)], 1) / heads
    layers = len(probe.find(params, "**.attention.W_K"))
    return {"a_head": each, "heads_timed": heads, "all": each * 2 * layers * len(k)}


def agreement(case: dict[str, Any], quick: bool, count: int = 8) -> dict[str, float]:
    """Largest relative differences from PyTorch in float32: outputs, and the slope of every parameter."""
    from peers import vit_torch

    model = vit_case.model(quick)
    params = jax.jit(model.init)(jax.random.key(0))
    params = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)
    x, y = case["images"][:count], case["labels"][:count]
    seen = (jnp.asarray(x, jnp.float32) - case["mean"]) * case["factor"]

    def loss(p: Any) -> Any:
        out = model.apply(p, seen)
        return jnp.mean(jax.vmap(cross_entropy)(out, jnp.asarray(y))), out

    (_, out), slope = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    theirs = vit_torch.gradient(case, x, y)
    gap = {"output": _apart(np.asarray(out), theirs["output"])}
    slopes = {n: _apart(np.asarray(v), theirs[n]) for n, v in probe.paths(slope).items()}
    worst = max(slopes, key=lambda n: slopes[n])
    return gap | {"slope": slopes[worst], "worst": worst}  # type: ignore[dict-item]


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))
