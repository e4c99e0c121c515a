"""The GPU kernel of the linear trainings against the compiled loop: does it agree, and how long does it take.

    python benchmarks/gpu_probe.py --out FOLDER [--seconds 55]

Needs jax and numpy. Writes FOLDER/gpu_probe.json after every part, so that what ends early is not lost.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import light
import numpy as np

light.open_saltus()

from saltus._jax import jax  # noqa: E402
from saltus.papers.sim.training import kernel, protocol, resident, runs, train  # noqa: E402
from saltus.papers.sim.training.engines import _whole  # noqa: E402
from saltus.papers.sim.training.tables import programs  # noqa: E402

AGREES = {"float64": 1e-9, "float32": 1e-4}
BEGAN = time.perf_counter()
SMALL: dict[str, Any] = {}
COUNTS = [1, 512, 4096]


def four_layers(dtype: str, **changes: Any) -> Any:
    sizes = {"depth": 4, "dim": 64, "width": 64, "epochs": 40, **changes, **SMALL}
    return protocol(sizes.pop("reading", "as-drawn"), (1, 2), 0.05, dtype=dtype, **sizes)


def looks(how: Any) -> np.ndarray:
    return np.unique(np.concatenate([[0], np.round(np.geomspace(1, how.steps, 60)).astype(int)]))


def seconds(call: Callable[[], Any], repeats: int) -> dict[str, float]:
    """The first call, and the least of the later ones."""
    took = []
    for _ in range(1 + repeats):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return {"first": took[0], "best": min(took[1:])}


def checks(dtype: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Largest differences of the kernel from the loop, eight runs of each case."""
    found = []
    for case in cases:
        how = four_layers(dtype, **case)
        asked: dict[str, Any] = {"at": looks(how), "watch": [[1, 2], [1, 0], [0, 2]]}
        by = {e: train(how, 8, engine=e, **asked) for e in ("loop", "kernel")}
        apart = {
            name: float(np.max(np.abs(by["loop"][name] - by["kernel"][name])))
            for name in ("output", "loss", "loss_test", "loss_train", "diverged_at", "nearest")
        }
        worst = max(apart.values())
        moved = float(np.max(np.abs(by["loop"]["output"][:, -1] - by["loop"]["output"][:, 0])))
        alone = train(how, [3], engine="kernel", **asked)
        found.append(
            {
                "case": case,
                "dtype": dtype,
                "apart": apart,
                "moved": moved,
                "agrees": bool(worst <= AGREES[dtype]) and moved > 0.1,
                "same_alone": bool(np.array_equal(alone["output"][0], by["kernel"]["output"][3])),
            }
        )
        print(f"check {dtype} {case}: worst {worst:.2e}, {found[-1]}", flush=True)
    return found


def timings(
    dtype: str, counts: list[int], engines: tuple[str, ...], repeats: int = 3
) -> list[dict[str, Any]]:
    how, found = four_layers(dtype), []
    for count in counts:
        for engine in engines:

            def call(engine: str = engine, count: int = count) -> Any:
                return train(how, count, at=looks(how), train_loss=False, engine=engine)

            took = seconds(call, repeats if count < 4096 else 1)
            found.append({"dtype": dtype, "runs": count, "engine": engine, **took})
            print(
                f"{dtype} {count} runs by {engine}: first {took['first']:.2f} s, "
                f"then {took['best'] * 1e3:.1f} ms = {took['best'] / count * 1e3:.4f} ms a run",
                flush=True,
            )
    return found


def parts(dtype: str) -> dict[str, float]:
    """Milliseconds of one block's programs: data, raw numbers, training, and all that on 512 runs."""
    how = four_layers(dtype)
    shape = runs._shape(how)
    index = np.arange(resident.block_of(shape))
    numbers = {
        "base": np.uint32(0),
        "mu": how.world.test_point(),
        "sigma": how.world.sigmas,
        "factor": np.float64(how.loss_factor),
        "lr": np.float64(how.lr),
        "scale": np.float64(1),
        "watch": how.world.test_point()[None],
        "at": looks(how),
    }
    data, raw = map(jax.jit, programs(shape, True))
    run = jax.jit(resident.resident(shape, False, jax.default_backend() == "cpu"))
    table = {**data(index, numbers), "raw": raw(index, numbers)}
    calls = {
        "data": lambda: data(index, numbers),
        "raw": lambda: raw(index, numbers),
        "training": lambda: run(index, numbers, table),
    }
    found = {
        name: 1e3 * seconds(lambda call=call: jax.block_until_ready(call()), 3)["best"]  # type: ignore[misc]
        for name, call in calls.items()
    }
    print(f"one block of {len(index)}, {dtype}, ms: {found}", flush=True)
    return found


def sweep(dtype: str, until: float) -> list[dict[str, Any]]:
    """512 runs with other tiles, numbers of warps and blocks, as far as the time goes."""
    how, found, usual = four_layers(dtype), [], (kernel.TILE, kernel.WARPS)
    block, known = resident.block_of(runs._shape(how)), None
    plan = [(*usual, block), (64, 8, block), (16, 16, block), (16, 4, block), (8, 8, block), (32, 8, block)]
    plan += [(*usual, 2 * block), (64, 4, block), (64, 16, block), (*usual, 512)]
    for tile, warps, block in plan:
        if time.perf_counter() - BEGAN > until:
            break
        kernel.TILE, kernel.WARPS = tile, warps
        _whole.cache_clear()
        resident.resident.cache_clear()
        last: dict[str, Any] = {}

        def call(block: int = block, last: dict[str, Any] = last) -> None:
            last |= train(how, COUNTS[1], at=looks(how), train_loss=False, engine="kernel", block=block)

        row = {"dtype": dtype, "tile": tile, "warps": warps, "block": block}
        try:
            row |= seconds(call, 2)
            known = last["output"] if known is None else known
            row["apart"] = float(np.max(np.abs(last["output"] - known)))
        except Exception as error:
            row["failed"] = f"{type(error).__name__}: {str(error)[:300]}"
        found.append(row)
        print(row, flush=True)
    kernel.TILE, kernel.WARPS = usual
    _whole.cache_clear()
    resident.resident.cache_clear()
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--seconds", type=float, default=55)
    options.add_argument("--small", action="store_true", help="does it run; its numbers mean nothing")
    asked = options.parse_args()
    if asked.small:
        SMALL.update(dim=16, width=16, points=70, epochs=2)
        COUNTS[:] = [1, 2, 3]
    asked.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"device": jax.local_devices()[0].device_kind, "jax": jax.__version__}
    print(found, flush=True)
    readings = ("as-drawn", "as-written")
    small = [{"reading": r, "depth": n, "epochs": 2} for r in readings for n in (2,)]
    usual = ("kernel", "loop")
    plan: dict[str, Callable[[], Any]] = {
        "check": lambda: checks("float64", [{}]),
        "time": lambda: timings("float64", COUNTS, usual),
        "parts": lambda: parts("float64"),
        "check float32": lambda: checks("float32", [{}]),
        "time float32": lambda: timings("float32", COUNTS[:2], usual),
        "check more": lambda: checks("float64", [*small, {"depth": 1, "width": 16, "dim": 16, "epochs": 2}]),
        "sweep": lambda: sweep("float64", asked.seconds - 6),
        "sweep float32": lambda: sweep("float32", asked.seconds - 6),
    }
    for name, part in plan.items():
        if time.perf_counter() - BEGAN > asked.seconds - 6:
            found[name] = "no time left"
            continue
        try:
            found[name] = part()
        except Exception as error:
            traceback.print_exc()
            found[name] = f"{type(error).__name__}: {str(error)[:2000]}"
        found[f"{name}, ended at"] = time.perf_counter() - BEGAN
        (asked.out / "gpu_probe.json").write_text(json.dumps(found, indent=1) + "\n")
    agree = [c["agrees"] and c["same_alone"] for k, v in found.items() if k[:5] == "check" for c in _rows(v)]
    print("all agree" if agree and all(agree) else "NOT ALL AGREE", f"{time.perf_counter() - BEGAN:.0f} s")
    return 0 if agree and all(agree) else 1


def _rows(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else []


if __name__ == "__main__":
    raise SystemExit(main())
