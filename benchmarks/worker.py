"""A process in which contestants run: requests on stdin, answers on stdout, one JSON object a line.

    python worker.py cpu|gpu

Each home (PyTorch, plain JAX, plain JAX in float64, saltus) has its own, so that none is measured with
another's threads or settings.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
prepared: dict[str, Callable[[], np.ndarray]] = {}


def hello(device: str) -> dict[str, Any]:
    """What there is in this process: versions and the device it found."""
    found: dict[str, Any] = {}
    if "torch" in os.environ["BENCHMARK_HOME"]:
        import torch

        if device == "gpu" and not torch.cuda.is_available():
            raise RuntimeError("PyTorch finds no GPU")
        name = torch.cuda.get_device_name() if device == "gpu" else "cpu"
        found |= {"torch": torch.__version__, "device": name, "tf32": torch.backends.cuda.matmul.allow_tf32}
    else:
        if os.environ["BENCHMARK_HOME"] == "saltus":
            import light

            light.open_saltus()
            importlib.import_module("saltus._jax")
        import jax
        import jaxlib

        if device == "gpu" and jax.default_backend() != "gpu":
            raise RuntimeError("JAX finds no GPU")
        devices = jax.local_devices()
        found |= {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "device": devices[0].device_kind}
        found |= {"devices": len(devices), "precision": os.environ.get("JAX_DEFAULT_MATMUL_PRECISION")}
    return found | {"numpy": np.__version__}


def deal(case: dict[str, Any], file: str) -> dict[str, Any]:
    """Draw what every contestant is given, and keep it in a file."""
    from work import save

    made = importlib.import_module("ours_flows" if case["flows"] else "ours").deal(case)
    save(Path(file), made)
    size = {} if case["flows"] else {"steps": made.steps, "points": made.y.shape[1]}
    return {"steps": case["steps"], **size}


def prepare(
    name: str,
    module: str,
    case: dict[str, Any],
    file: str,
    runs: list[int],
    epochs: int,
    device: str,
    dtype: str,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Everything before the first call."""
    from work import Training, load

    began = time.perf_counter()
    make = importlib.import_module(module).prepare
    if module.startswith("ours"):
        prepared[name] = make(case, runs, epochs, device, dtype, **options)
    else:
        work = load(file)
        if isinstance(work, Training):
            work = work.part(runs, epochs or work.epochs)
        else:
            work = work.part(len(runs), epochs or work.steps)
        prepared[name] = make(work, device, dtype, **options)
    return {"seconds": time.perf_counter() - began}


def call(name: str, keep: str | None = None) -> dict[str, Any]:
    """Do the work once."""
    began = time.perf_counter()
    outputs = prepared[name]()
    seconds = time.perf_counter() - began
    if keep:
        np.save(keep, outputs)
    torch: Any = sys.modules.get("torch")
    return {"seconds": seconds, "threads": torch.get_num_threads() if torch else None}


def forget() -> dict[str, Any]:
    """Drop what was prepared, before the next case."""
    prepared.clear()
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        sys.modules["torch"].cuda.empty_cache()
    return {}


def peak(kind: str, device: str, quick: bool) -> dict[str, Any]:
    return getattr(importlib.import_module("peak"), f"of_{kind}")(device, quick)


def scaling(device: str, quick: bool) -> dict[str, Any]:
    return importlib.import_module("scaling").tables(device, quick)


def main() -> None:
    # Answers keep the real stdout to themselves; whatever a library prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.insert(0, str(HERE))
    verbs = {f.__name__: f for f in (hello, deal, prepare, call, forget, peak, scaling)}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: dict[str, Any] = {"ok": verbs[request.pop("verb")](**request)}
        except Exception as error:
            traceback.print_exc()
            missing = isinstance(error, ModuleNotFoundError)
            said = str(error).strip().splitlines() or [""]
            answer = {"failed": f"{type(error).__name__}: {said[0][:110]}", "missing": missing}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
