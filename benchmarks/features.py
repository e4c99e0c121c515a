"""The denoiser of the feature-learning paper: this engine beside its peers, and the closed form beside
sampling.

    python benchmarks/features.py [--device gpu] [--quick] [--only NAME ...] [--out FILE]
    python benchmarks/features.py --show results/FILE.json

Everybody trains the same networks from the same arrays, each in a process of its own: d = 1000, n = 30, m =
20, gradient descent on the expected DDPM loss in closed form. Peers work in R^d, saltus in the span of
patches and starts. Who is slow is timed on fewer steps (last column); the cost of a step is constant.
`difference` is the largest distance of a product <w_r, x_p> from plain numpy in float64 after the steps that
were timed, over the largest product.

`sampling` is the time of one gradient of the expected loss, to a relative error, by sampling noises as the
paper does and in closed form. Needs JAX and numpy; PyTorch's lines say so where it is missing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import environment
import numpy as np
from light import open_saltus

HERE = Path(__file__).resolve().parent
N, D, M, STEPS, ETA = 30, 1000, 20, 40_000, 0.5 / 1000
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}

# Name, module, options, steps timed (of STEPS) with one run and with many; 0: not timed there.
CONTESTANTS: tuple[tuple[str, str, dict[str, Any], int, int], ...] = (
    ("saltus", "features_ours", {}, STEPS, STEPS),
    ("plain JAX, R^d", "features_jax", {}, 2000, 200),
    ("plain numpy, R^d", "features_numpy", {}, 400, 0),
    ("PyTorch eager, R^d", "features_torch", {}, 400, 100),
    ("torch.compile, R^d", "features_torch", {"compiled": True}, 400, 100),
)


def deal(runs: int, file: Path) -> None:
    """Draws at n SNR^2 = 0.75 and 6.75 by turns, in R^d."""
    open_saltus()
    from saltus.papers.features import world

    X, omega, W = [], [], []
    for run in range(runs):
        rng = np.random.default_rng(run)
        sample = world.TwoPatch(N, D, (5.0, 15.0)[run % 2]).draw(rng)
        X.append(sample.X)
        omega.append(sample.omega)
        W.append(world.start(rng, M, D, 1e-3))
    np.savez(file, X=np.stack(X), omega=np.stack(omega), W=np.stack(W))


def flops(dim: int) -> float:
    """Multiplications and additions of one step of one run in `dim` dimensions."""
    patches = N + 2
    return 4 * patches * M * dim + 4 * M**2 * dim + 8 * patches * M**2


def contend(asked: argparse.Namespace) -> dict[str, Any]:
    """In a process of its own: prepare, call once, then the repeats."""
    given = np.load(asked.file)
    module = importlib.import_module(f"peers.{asked.module}")
    call = module.prepare(
        {k: given[k] for k in given.files},
        ETA,
        asked.steps,
        asked.device,
        asked.dtype,
        **json.loads(asked.options),
    )
    times = []
    began = time.perf_counter()
    products = call()
    first = time.perf_counter() - began
    for _ in range(asked.repeats):
        began = time.perf_counter()
        products = call()
        times.append(time.perf_counter() - began)
        if sum(times) > 60:
            break
    np.save(asked.keep, np.asarray(products, float))
    return {"first_seconds": first, "times": times, "dim": getattr(module, "DIM", D)}


def hold(name: str, runs: int, dtype: str, asked: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """One case: every contestant, each compared with numpy after as many steps."""
    file = scratch / "dealt.npz"
    deal(runs, file)
    entries, known = [], {}
    for told, module, options, one, many in CONTESTANTS:
        steps = one if runs == 1 else many
        if not steps or (asked.peers and told.split(",")[0] not in asked.peers):
            continue
        if asked.quick:
            steps = min(steps, 20)
        print(f"  {told}", file=sys.stderr, flush=True)
        entry: dict[str, Any] = {"name": told, "steps": steps, "dtype": dtype}
        keep = scratch / "products.npy"
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    __file__,
                    "--contend",
                    "--module",
                    module,
                    "--options",
                    json.dumps(options),
                ),
                *("--file", str(file), "--keep", str(keep), "--steps", str(steps), "--device", asked.device),
                *("--dtype", dtype, "--repeats", "1" if asked.quick else str(asked.repeats)),
            ],
            capture_output=True,
            text=True,
            cwd=HERE,
        )
        if done.returncode:
            entry["failed"] = (done.stderr.strip().splitlines() or ["no word"])[-1]
            entries.append(entry)
            continue
        entry |= json.loads(done.stdout.splitlines()[-1])
        share = STEPS / steps
        least, middle = min(entry["times"]), float(np.median(entry["times"]))
        entry["seconds"], entry["median_seconds"] = least * share, middle * share
        entry["compile_seconds"] = max(0.0, entry["first_seconds"] - middle)
        entry["us_per_step_and_run"] = 1e6 * least / steps / runs
        entry["gflops"] = 1e-9 * flops(entry["dim"]) * steps * runs / least
        if steps not in known:
            known[steps] = reference(file, min(runs, 4), steps if steps < STEPS else None)
        if known[steps] is not None:
            own = np.load(keep)[: len(known[steps])]
            entry["gap"] = float(np.abs(own - known[steps]).max() / np.abs(known[steps]).max())
            entry["agrees"] = entry["gap"] <= TOLERANCE[dtype]
        entries.append(entry)
    return {"name": name, "runs": runs, "dtype": dtype, "entries": entries}


def reference(file: Path, runs: int, steps: int | None) -> np.ndarray | None:
    """Products of the first runs by plain numpy in float64; for whole trainings, in the span."""
    from peers import features_numpy

    given = np.load(file)
    few = {k: given[k][:runs] for k in given.files}
    if steps is None:
        from saltus.papers.features import world

        short = [world.into_span(x, w)[:2] for x, w in zip(few["X"], few["W"], strict=True)]
        few |= {"X": np.stack([x for x, _ in short]), "W": np.stack([w for _, w in short])}
        steps, runs = STEPS, 1
        few = {k: v[:1] for k, v in few.items()}
    return features_numpy.prepare(few, ETA, steps, "cpu", "float64")()


def sampling(asked: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Seconds for one gradient: closed form, and by sampling to several relative errors."""
    open_saltus()
    from saltus._jax import jax, jnp
    from saltus.papers.features.law import ddpm

    file = scratch / "dealt.npz"
    deal(1, file)
    given = np.load(file)
    # Weights of the size they have at rest, where the error matters.
    W = jnp.asarray(given["W"][0] * (1.47 / 0.0316))
    X, omega = jnp.asarray(given["X"][0]), jnp.asarray(given["omega"][0])
    alpha, beta = ddpm.ALPHA_BETA
    noises = 20 if asked.quick else 2000 if asked.device == "gpu" else 200
    exact = jax.jit(lambda w: ddpm.gradient(w, X, omega, alpha, beta, M**-0.5))
    drawn = jax.jit(lambda k: ddpm.monte_carlo(k, W, X, omega, alpha, beta, M**-0.5, noises)[1])

    def timed(call: Any, repeats: int) -> tuple[float, Any]:
        value = jax.block_until_ready(call())
        began = time.perf_counter()
        for _ in range(repeats):
            value = jax.block_until_ready(call())
        return (time.perf_counter() - began) / repeats, value

    closed, known = timed(lambda: exact(W), 200)
    once, _ = timed(lambda: drawn(jax.random.key(0)), 2)
    keys = range(4)
    errors = [float(jnp.linalg.norm(drawn(jax.random.key(k)) - known) / jnp.linalg.norm(known)) for k in keys]
    error = float(np.sqrt(np.mean(np.square(errors))))
    rows = [{"noises": noises, "error": error, "seconds": once, "times_closed": once / closed}]
    for noises_of, goal in ((2000, error * (noises / 2000) ** 0.5), (None, 1e-2), (None, 1e-3)):
        # The error falls as the root of the number of noises; the time grows with it.
        count = noises_of or noises * (error / goal) ** 2
        seconds = once * count / noises
        rows.append({"noises": count, "error": goal, "seconds": seconds, "times_closed": seconds / closed})
    return {"closed_seconds": closed, "rows": rows}


def shown(result: dict[str, Any]) -> str:
    here = result["environment"]
    lines = [f"{here['gpu'] or here['cpu']}, {here['cores']} cores; load {result['load'][0]} before"]
    if result["quick"]:
        lines.append("QUICK: small sizes, to see that everything runs; no number here is a measurement")
    for case in result["cases"]:
        lines.append(f"\n{case['name']}: {case['runs']} x {STEPS} steps, {case['dtype']}")
        lines.append(f"{'':24}{'seconds':>10}{'median':>10}{'compile':>9}{'us step run':>12}{'GFLOP/s':>9}"
                     f"{'difference':>12}  timed")  # fmt: skip
        for e in case["entries"]:
            if "failed" in e:
                lines.append(f"{e['name']:24}{e['failed'][:80]}")
                continue
            gap = f"{e['gap']:.0e}{'' if e['agrees'] else ' NO'}" if "gap" in e else ""
            lines.append(
                f"{e['name']:24}{e['seconds']:10.3g}{e['median_seconds']:10.3g}{e['compile_seconds']:9.2f}"
                f"{e['us_per_step_and_run']:12.4g}{e['gflops']:9.2f}{gap:>12}  {e['steps']} steps"
            )
    if "sampling" in result:
        s = result["sampling"]
        lines.append(f"\none gradient: closed form {s['closed_seconds'] * 1e3:.3g} ms, exact")
        lines += [
            f"  {r['noises']:.3g} noises a patch: relative error {r['error']:.2g}, {r['seconds'] * 1e3:.4g} "
            f"ms, {r['times_closed']:.3g} times the closed form"
            for r in s["rows"]
        ]
    return "\n".join(lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options.add_argument("--quick", action="store_true", help="few steps: does everything run and agree")
    options.add_argument("--only", nargs="*", default=[], metavar="NAME", help="one, ensemble, sampling")
    options.add_argument(
        "--peers", nargs="*", default=[], metavar="NAME", help="contestants, as in 'plain JAX'"
    )
    options.add_argument("--runs", type=int, help="runs of the ensemble")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--out", type=Path, help="where the result goes")
    options.add_argument("--show", type=Path, metavar="FILE", help="print a result's tables again")
    for name in ("--module", "--options", "--file", "--keep", "--dtype"):
        options.add_argument(name, help=argparse.SUPPRESS)
    options.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    options.add_argument("--contend", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.contend:
        open_saltus()
        print(json.dumps(contend(asked)))
        return 0
    if asked.show:
        print(shown(json.loads(asked.show.read_text())))
        return 0
    many = asked.runs or (4 if asked.quick else 1024 if asked.device == "gpu" else 16)
    wanted = [("one", 1, "float64"), ("ensemble", many, "float64")]
    if asked.device == "gpu":
        wanted.append(("ensemble-float32", many, "float32"))
    result: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()), "quick": asked.quick, "device": asked.device,
        "environment": environment.environment(asked.device), "load": [environment.load()], "cases": [],
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="saltus-bench-") as scratch:
        for name, runs, dtype in wanted:
            if not asked.only or name in asked.only:
                print(name, file=sys.stderr, flush=True)
                result["cases"].append(hold(name, runs, dtype, asked, Path(scratch)))
        if not asked.only or "sampling" in asked.only:
            result["sampling"] = sampling(asked, Path(scratch))
    result["load"].append(environment.load())
    out = asked.out
    if out is None and not asked.quick:
        out = HERE / "results" / f"{environment.slug(asked.device)}-features-{result['date']}.json"
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1) + "\n")
    print(shown(result))
    wrong = [e["name"] for c in result["cases"] for e in c["entries"] if not e.get("agrees", True)]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
