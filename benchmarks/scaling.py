"""How the cost grows with the number of runs, the dimension, the depth and the number of steps."""

from __future__ import annotations

from functools import partial
from typing import Any

import ours
import ours_flows
import peak

# as drawn, mu 1,2: everything else as in figure 2(c), but fewer epochs
BASE: dict[str, Any] = {"dim": 64, "width": 64, "depth": 4, "epochs": 2, "runs": 8}
SMALLER: dict[str, Any] = {"dim": 16, "width": 16, "depth": 2, "epochs": 1, "runs": 2, "points": 300}

CPU: dict[str, dict[str, list[int]]] = {
    "reduced": {"runs": [1, 8, 32, 128], "dim": [16, 64, 256], "depth": [1, 2, 4, 8], "epochs": [2, 4, 8]},
    "plain": {"runs": [1, 4, 16], "dim": [16, 64, 128], "depth": [1, 4]},
}
GPU: dict[str, dict[str, list[int]]] = {
    "reduced": {"runs": [1, 512, 4096], "dim": [64, 256], "depth": [4, 8], "epochs": [2, 8]},
    "plain": {"runs": [512], "dim": [64, 128]},
}
QUICK = {"reduced": {"runs": [1, 2], "depth": [1, 2]}, "plain": {"runs": [1, 2]}}


def tables(device: str, quick: bool) -> dict[str, Any]:
    """Rows {what, path, value, seconds, ns_per_run_step}; compilation apart, data and start included."""
    wanted = QUICK if quick else GPU if device == "gpu" else CPU
    repeats = 1 if quick else 3
    rows = []
    for path, grid in wanted.items():
        base = SMALLER if quick else {**BASE, "runs": 512 if device == "gpu" else BASE["runs"]}
        if path == "plain" and device == "cpu" and not quick:
            base = {**base, "epochs": 1, "runs": 4}
        held: dict[tuple[Any, ...], float] = {}
        for what, values in grid.items():
            for value in values:
                setting = {**base, what: value}
                if what == "dim":
                    setting["width"] = value
                known = tuple(sorted(setting.items()))
                if known not in held:
                    held[known] = peak.best(ours.scaled(setting, path), repeats)
                points = 3 * setting.get("points", 5000)
                steps = setting["runs"] * setting["epochs"] * -(-points // 128)
                rows.append(_row(what, path, value, held[known], steps))
    rows += flows(device, quick, repeats)
    return {"base": SMALLER if quick else BASE, "rows": rows}


def flows(device: str, quick: bool, repeats: int) -> list[dict[str, Any]]:
    """The same for descent on U: runs, steps and dimension."""
    gpu, rows = device == "gpu", []
    runs, steps = (100, 20) if quick else (2**18, 4_000) if gpu else (16_384, 1_000)
    for many in [runs // 8, runs] if quick else [runs // 256, runs // 16, runs]:
        rows.append((many, "runs", many, steps, 3))
    for long in [steps] if quick else [steps // 4, steps, steps * 4]:
        rows.append((long, "steps", runs, long, 3))
    for d in (2, 3) if quick else (2, 3, 4):
        rows.append((d, "d", runs, steps, d))
    found = []
    for value, what, many, long, d in rows:
        seconds = peak.best(partial(ours_flows.engine, many, long, d), repeats)
        found.append(_row(what, "flows", value, seconds, many * long))
    return found


def _row(what: str, path: str, value: int, seconds: float, run_steps: int) -> dict[str, Any]:
    return {
        "path": path,
        "what": what,
        "value": value,
        "seconds": seconds,
        "ns_per_run_step": 1e9 * seconds / run_steps,
    }
