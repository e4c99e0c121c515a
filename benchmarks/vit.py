"""The paper's vision transformer: training and spectra, beside PyTorch eager and compiled, in one run.

    python benchmarks/vit.py [--device cpu|gpu] [--quick] [--out FILE]

Every contestant starts from the same parameters and images, compiles first, and is then timed alone. Needs
jax and numpy; without PyTorch its lines say so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", ".6")  # PyTorch needs its part of the device

import environment
import light
import numpy as np

light.open_saltus()

import vit_case  # noqa: E402

HERE = Path(__file__).resolve().parent


class Peer:
    """PyTorch in a process of its own, which compiles while we do and is timed when we are idle."""

    def __init__(self, folder: Path, device: str, steps: int, skip: tuple[str, ...] = ()) -> None:
        words = [sys.executable, str(HERE / "peers" / "vit_torch.py"), str(folder)]
        words += ["--device", device, "--steps", str(steps), "--skip", *skip]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def times(self) -> dict[str, Any]:
        """Wait until it is ready, let it run, and what it found."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self.process.stdout.readline().strip() != "ready":
            return {"failed": f"ended with {self.process.wait()}"}
        self.process.stdin.write("go\n")
        self.process.stdin.close()
        line = self.process.stdout.readline()
        self.process.wait()
        return json.loads(line) if line else {"failed": f"ended with {self.process.returncode}"}

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def ours(
    device: str, ways: tuple[str, ...], quick: bool, table: Any, params: Any, steps: int
) -> dict[str, Any]:
    """Every way to do attention, timed; one that fails says why."""
    from vit_ours import Ours, model_for, timed

    found: dict[str, Any] = {}
    for way in ways:
        try:
            contestant = Ours(model_for(device, way, quick), table, vit_case.BATCH[quick])
            contestant.take(params)
            found[way] = timed(contestant, 3, steps)
        except Exception as error:
            found[way] = {"failed": f"{type(error).__name__}: {str(error)[:1000]}"}
        print(f"ours, {way}: {found[way]}", file=sys.stderr, flush=True)
    return found


def best_of(found: dict[str, Any]) -> str | None:
    """The way with most images a second."""
    done = {way: row["images_per_second"] for way, row in found.items() if "images_per_second" in row}
    return max(done, key=lambda way: done[way]) if done else None


def summary(result: dict[str, Any], quick: bool) -> list[str]:
    """One line a contestant: images a second, and the part of the matrix rate that is."""
    sizes = vit_case.QUICK if quick else vit_case.PAPER
    per_image = vit_case.flops(sizes, vit_case.model(quick).tokens)
    rows = {f"saltus, {way}": row for way, row in result["ours"].items()}
    rows |= {f"PyTorch {w}": r for w, r in result["torch"].items() if isinstance(r, dict)}
    lines = []
    for name, row in rows.items():
        rate = row.get("images_per_second")
        part = f"{rate * per_image / result['matrix_rate']:.1%} of the matrix rate" if rate else ""
        lines.append(f"{name:<20} {rate:>10,.0f} images/s  {part}" if rate else f"{name:<20} {row}")
    return lines


def measure(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from vit_ours import Ours, agreement, matrix_rate, model_for, plain_spectra, spectra

    from saltus.descent.network import Table

    device, quick = asked.device, asked.quick
    data = vit_case.made_up(64 if quick else 4096 if device == "gpu" else 1024)
    table = Table(data["x"], data["y"], np.full(3, 127.5), np.full(3, 73.6))
    params = vit_case.save(folder, quick, data, table.mean, table.std)
    steps = 2 if quick else 40 if device == "gpu" else 1
    result: dict[str, Any] = {"environment": environment.environment(device), "quick": quick}
    peer = Peer(folder, device, steps, ("compile",) if quick else ())
    try:
        result["matrix_rate"] = matrix_rate(quick or device == "cpu")
        ways = ("kernel", "cudnn", "plain") if device == "gpu" else ("plain",)
        result["ours"] = ours(device, ways, quick, table, params, steps)
        result["torch"] = peer.times()
    finally:
        peer.end()
    if "failed" not in result["torch"]:
        with np.load(folder / "case.npz") as held:
            result["agreement"] = agreement({n: held[n] for n in held.files}, quick)
    way = best_of(result["ours"]) or "plain"
    mine = Ours(model_for(device, way, quick), table, vit_case.BATCH[quick])
    mine.run(2)
    methods = ("gram", "qr", "whole") if device == "gpu" or quick else ("qr", "gram")
    result["spectra"] = spectra(mine.carry.params, mine.start, methods, 1)
    result["plain_spectra"] = plain_spectra(mine.carry.params, mine.start, 2)
    return result


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options.add_argument("--quick", action="store_true", help="does it run; its numbers mean nothing")
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="saltus-vit-") as folder:
        result = measure(asked, Path(folder))
    result["seconds"] = time.time() - began
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(result, indent=1) + "\n")
    print("\n".join(summary(result, asked.quick)))
    print({k: v for k, v in result.items() if k in ("agreement", "spectra", "plain_spectra", "matrix_rate")})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
