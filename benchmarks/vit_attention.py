"""Ways to do attention on this machine: do they run, do they agree, how long do they take.

    python benchmarks/vit_attention.py [--batch 512]

One line of JSON a way, each in a process of its own, so that one that brings it down takes no other along.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

TOKENS, HEADS, HEAD = 65, 8, 128
WAYS = ("kernel", "cudnn", "plain")
AGREES = 2e-2  # of bf16 results, whose numbers have eight bits


def tried(ways: tuple[str, ...] = WAYS, batch: int = 512) -> dict[str, dict[str, Any]]:
    """What each way gave, from a process for each, one after another."""
    found = {}
    for way in ways:
        words = [sys.executable, str(Path(__file__).resolve()), "--way", way, "--batch", str(batch)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=90)
            lines = done.stdout.strip().splitlines()
            found[way] = json.loads(lines[-1]) if lines else {"failed": done.stderr[-800:]}
        except (subprocess.TimeoutExpired, ValueError) as error:
            found[way] = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
    return found


def one(way: str, batch: int) -> dict[str, Any]:
    """Agreement with the plain way in float32, and milliseconds of a forward and backward pass."""
    import light

    light.open_saltus()
    from vit_ours import least

    from saltus._jax import jax, jnp
    from saltus.model import _attention

    def attend(joined: Any, way: str) -> Any:
        if way == "kernel":
            return _attention.attend_joined(joined)
        return _attention.attend(way, *(joined[:, :, i] for i in range(3)))

    def both(joined: Any, slope: Any, way: str) -> Any:
        out, back = jax.vjp(lambda j: attend(j, way), joined)
        return out, back(slope.astype(out.dtype))[0]

    run = jax.jit(both, static_argnums=2)
    of_joined, of_slope = jax.random.split(jax.random.key(0))
    joined = jax.random.normal(of_joined, (batch, TOKENS, 3, HEADS, HEAD), jnp.bfloat16)
    slope = jax.random.normal(of_slope, (batch, TOKENS, HEADS, HEAD), jnp.bfloat16)
    few = slice(0, 4)
    known = run(joined[few].astype(jnp.float32), slope[few].astype(jnp.float32), "plain")
    got = run(joined[few], slope[few], way)
    apart = [
        float(jnp.linalg.norm(g.astype(jnp.float32) - k) / jnp.linalg.norm(k))
        for g, k in zip(got, known, strict=True)
    ]
    seconds = least(lambda: run(joined, slope, way), 10)
    # `not >` would let nan pass.
    agrees = all(a <= AGREES for a in apart)
    return {"apart": apart, "agrees": agrees, "milliseconds": 1e3 * seconds, "batch": batch}


def best(found: dict[str, dict[str, Any]]) -> list[str]:
    """The ways that agree, fastest first."""
    fine = [way for way, row in found.items() if row.get("agrees")]
    return sorted(fine, key=lambda way: found[way]["milliseconds"])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--way", choices=WAYS)
    options.add_argument("--batch", type=int, default=512)
    asked = options.parse_args()
    if asked.way:
        try:
            print(json.dumps(one(asked.way, asked.batch)))
        except Exception as error:
            print(json.dumps({"failed": f"{type(error).__name__}: {str(error)[:800]}"}))
    else:
        for way, row in tried(batch=asked.batch).items():
            print(way, json.dumps(row))
