"""The theory of gradual rank increase: its studies by the clock, the paper's size, and peers side by side.

    python benchmarks/theory.py [--quick] [--only studies paper gradient flow] [--out FILE]

- studies: the ten studies at their own size in a fresh process and a fresh store, timed from outside.
- paper: d = 50, 1000 samples: the whole of Algorithm 1, then the flow at six alphas, two at a time.
- gradient: one gradient at d = 8 and d = 50, after the first call.
- flow: Toy A at alpha = 1e-32, by solvers of the same logarithmic form, with tolerances that make errors
  alike; `error` is the largest difference of a product from a run at a thousandth of the tolerance.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import environment
import numpy as np
from light import open_saltus

HERE = Path(__file__).resolve().parent
TARGETS = {"studies": 90.0, "paper": 300.0}
STUDIES = [
    "fig2",
    "fig3",
    "fig8",
    "fig9",
    "fig10",
    "fig11",
    "staircase",
    "limit",
    "assumptions",
    "deep-diagonal",
]
POWERS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def studies(quick: bool) -> dict[str, Any]:
    """Seconds of `saltus run` with all of them, from outside."""
    chosen = [f"rank/{name}" for name in (["fig2"] if quick else STUDIES)]
    few = ["--teachers", "1", "--dim", "4"] if quick else []
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from saltus.cli import main; sys.exit(main())"
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", code, str(HERE.parent / "src"), "run", *chosen, *few, "--json"]
        began = time.perf_counter()
        done = subprocess.run([*words, "--out", f"{folder}/store"], capture_output=True, text=True)
        seconds = time.perf_counter() - began
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(rows) != len(chosen):
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    each = {row["id"]: row["seconds"] for row in rows}
    return {"seconds": seconds, "target": TARGETS["studies"], "status": done.returncode, "each": each}


def paper(quick: bool) -> dict[str, Any]:
    """Seconds of Algorithm 1 to its end and of six flows, compilation included."""
    from saltus.papers.rank.law import flow, greedy
    from saltus.papers.rank.studies import _toys
    from saltus.papers.rank.world import Toy

    toy, atol = (Toy(4, 3, 30) if quick else Toy(50, 10, 1000)), _toys.Toys().atol
    problem = toy.problem()
    began = time.perf_counter()
    found = greedy.run(problem, atol=atol)
    climbed = time.perf_counter()
    last = _toys.last_stage(found, _toys.Toys().learnt)
    until = _toys.horizon(greedy.Staircase(found.stages[: last + 1], found.end))

    def one(power: float) -> dict[str, int]:
        return flow.simulate(problem, flow.log_inverse(power), until, atol=atol).path.counts

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        counts = list(pool.map(one, POWERS[::-1]))[::-1]  # the longest first
    ended = time.perf_counter()
    return {
        "algorithm_seconds": climbed - began, "stages": len(found.stages) - 1, "end": found.end,
        "flows_seconds": ended - climbed, "stages_that_count": last, "counts": counts,
        "seconds": ended - began, "target": TARGETS["paper"],
    }  # fmt: skip


def least(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The quickest of some calls after a first one, and what it returns."""
    value, times = call(), []
    for _ in range(repeats):
        began = time.perf_counter()
        value = np.asarray(call())
        times.append(time.perf_counter() - began)
    return min(times), value


def gradient(quick: bool) -> list[dict[str, Any]]:
    """Everybody's gradient at the teacher's weights shrunk a little."""
    import jax
    from peers import theory as peers

    from saltus.papers.rank.world import Toy

    rows = []
    for toy in (Toy(),) if quick else (Toy(), Toy(50, 10, 1000)):
        problem, m = toy.problem(), 0.7 * toy.teacher()
        X, _, Y = problem.data
        ours = jax.jit(problem.objective.pull)
        calls: dict[str, Any] = {"saltus": lambda m, ours=ours, data=problem.data: ours(m, data)}
        makes = {
            "plain JAX": peers.jax_gradient,
            "numpy": peers.numpy_gradient,
            "PyTorch": peers.torch_gradient,
        }
        known = None
        for name, make in makes.items():
            try:
                calls[name] = make(np.asarray(X), np.asarray(Y))
            except ImportError:
                rows.append({"dim": toy.dim, "name": name, "failed": "not installed"})
        for name, call in calls.items():
            seconds, value = least(lambda call=call, m=m: call(m), 3 if quick else 200)
            known = value if known is None else known
            gap = float(np.abs(value - known).max())
            rows.append({"dim": toy.dim, "name": name, "seconds": seconds, "gap": gap, "agrees": gap < 1e-12})
    return rows


def flows(quick: bool) -> list[dict[str, Any]]:
    """One path of Toy A from 1e-32 to the end of its stages that count."""
    from peers import theory as peers

    from saltus.papers.rank.law import flow
    from saltus.papers.rank.world import Toy

    problem, L, until = Toy().problem(), flow.log_inverse(32), 2.6 if quick else 7.86
    times = np.linspace(0.0, until, 200)[1:]
    X, _, Y = (np.asarray(x) for x in problem.data)
    P, K = problem.start - L, problem.kappa - 2 * L
    known = flow.simulate(problem, L, until, atol=1e-8).products(times)
    runs = {
        "saltus": lambda: flow.simulate(problem, L, until, atol=1e-5).products(times),
        "diffrax Kvaerno5": peers.diffrax_flow(X, Y, P, K, times * L, 1e-7),
        "scipy Radau, numpy": peers.scipy_flow(X, Y, P, K, times * L, 1e-5),
    }
    rows = []
    for name, call in runs.items():
        seconds, value = least(call, 1 if quick else 3)
        error = float(np.abs(value - known).max())
        rows.append({"name": name, "seconds": seconds, "error": error, "agrees": error < 1e-3})
    return rows


PARTS = {"studies": studies, "paper": paper, "gradient": gradient, "flow": flows}


def show(result: dict[str, Any]) -> str:
    """The tables."""
    lines = ["QUICK: small sizes; no number here is a measurement"] if result["quick"] else []
    if found := result.get("studies"):
        lines += [f"{name:22}{seconds:8.1f} s" for name, seconds in found["each"].items()]
        lines += [f"ten studies, cold {found['seconds']:.1f} s, target {found['target']:.0f} s"]
    if found := result.get("paper"):
        words = f"paper's size: Algorithm 1 {found['algorithm_seconds']:.1f} s ({found['stages']} stages)"
        lines += [f"{words}, six flows {found['flows_seconds']:.1f} s; target {found['target']:.0f} s"]
    for row in result.get("gradient", []):
        told = row.get("failed") or f"{1e6 * row['seconds']:10.1f} us  gap {row['gap']:.1e}"
        lines.append(f"gradient, d = {row['dim']:3}  {row['name']:20}{told}")
    for row in result.get("flow", []):
        lines.append(f"flow  {row['name']:20}{row['seconds']:9.3f} s  error {row['error']:.1e}")
    return "\n".join(lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    before = environment.load()
    result: dict[str, Any] = {"environment": environment.environment("cpu"), "quick": asked.quick}
    if "studies" in asked.only:  # before anything is warm
        result["studies"] = studies(asked.quick)
    open_saltus()
    import saltus._jax  # noqa: F401

    for name in asked.only:
        if name != "studies":
            result[name] = PARTS[name](asked.quick)
    result["load"] = [before, environment.load()]
    print(show(result))
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=1) + "\n")
    rows = [*result.get("gradient", []), *result.get("flow", [])]
    return 0 if all(row.get("agrees", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
