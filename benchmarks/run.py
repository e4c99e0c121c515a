"""Everything SIM's speed rests on, with peers side by side in one run.

    python benchmarks/run.py [--device cpu|gpu] [--only NAME ...] [--quick] [--out FILE]
    python benchmarks/run.py --show FILE

Parts: the cases of `cases.py` by name, `scaling` and (on a CPU) `figures`. Every contestant prepares and
compiles first; then all of them take turns, and the least and the median of their times are kept. Results
go to benchmarks/results/<machine>-<date>.json. PyTorch is optional: without it, its lines say so.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contest
import environment
import figures
import tables
from cases import cases
from homes import Failed, Homes

HERE = Path(__file__).resolve().parent
PEAKS = (("torch", "torch"), ("jax", "jax"), ("jax", "jax64"), ("numpy", "jax"))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def peaks(homes: Homes, quick: bool) -> dict[str, Any]:
    """Multiplications and additions per second of every library that is there."""
    found: dict[str, Any] = {}
    for library, home in PEAKS:
        name = f"{library} host" if library == "numpy" and homes.device == "gpu" else library
        try:
            rates = homes[home].ask("peak", kind=library, device=homes.device, quick=quick)
        except Failed as reason:
            say(f"  peak of {library}: {reason}")
            continue
        # JAX in float64 has rates of both precisions; the better of the two float32 ones stays.
        held = found.setdefault(name, {})
        held |= {kind: max(rate, held.get(kind, 0.0)) for kind, rate in rates.items()}
    return found


def measure(
    asked: argparse.Namespace, scratch: Path, keep: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """The whole result; `keep` is handed what there is after every part, so that a stop loses only one."""
    began, device = time.time(), asked.device
    chosen = [c for c in cases(device, asked.quick) if not asked.only or c.name in asked.only]
    homes = Homes(device, scratch, asked.log)
    result: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "quick": asked.quick,
        "device": device,
        "environment": environment.environment(device),
        "load": [environment.load()],
        "cases": {},
    }
    try:
        # Figures first: with nothing else alive, as for somebody who types one command.
        if device == "cpu" and (not asked.only or "figures" in asked.only):
            result["figures"] = figure_times(asked.quick)
            keep(result)
        if chosen:
            say("peak")
            result["peak"] = peaks(homes, asked.quick)
        for case in chosen:
            say(f"{case.name} ({time.time() - began:.0f} s so far)")
            result["cases"][case.name] = contest.hold(case, homes, scratch, say)
            keep(result)
        if not asked.only or "scaling" in asked.only:
            say(f"scaling ({time.time() - began:.0f} s so far)")
            try:
                result["scaling"] = homes["saltus"].ask("scaling", device=device, quick=asked.quick)
            except Failed as reason:
                result["scaling"] = {"rows": [], "failed": str(reason)}
    finally:
        homes.close()
    result["homes"] = homes.found
    result["load"].append(environment.load())
    result["seconds"] = time.time() - began
    return result


def figure_times(quick: bool) -> dict[str, Any]:
    say("figures")
    try:
        return figures.measure(["--seeds", "2", "--only", "sim/fig2a"] if quick else ["--seeds", "32"])
    except RuntimeError as reason:
        return {"failed": str(reason), "studies": []}


def troubles(result: dict[str, Any]) -> list[str]:
    """Everything that failed or disagreed; what is merely not installed is none."""
    found = [f"{n}: {c['failed']}" for n, c in result["cases"].items() if "failed" in c]
    for name, case in result["cases"].items():
        for e in case["entries"]:
            if "failed" in e and not e["failed"].startswith("missing"):
                found.append(f"{name}, {e['name']}: {e['failed']}")
            elif not e.get("agrees", True):
                found.append(f"{name}, {e['name']}: differs by {e['gap']:.1e}")
    for name in ("scaling", "figures"):
        if "failed" in result.get(name, {}):
            found.append(f"{name}: {result[name]['failed']}")
    found += [
        f"{r['id']}: {r['failed']}" for r in result.get("figures", {}).get("studies", []) if "failed" in r
    ]
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options.add_argument("--only", nargs="*", default=[], metavar="NAME", help="parts, by name")
    options.add_argument("--quick", action="store_true", help="small sizes: does everything run and agree")
    options.add_argument("--out", type=Path, help="where the result goes")
    options.add_argument("--log", type=Path, help="what the contestants' processes print")
    options.add_argument("--show", type=Path, metavar="FILE", help="print a result's tables again")
    asked = options.parse_args()
    if asked.show:
        print(tables.everything(json.loads(asked.show.read_text())))
        return 0
    names = [c.name for c in cases(asked.device, asked.quick)] + ["scaling", "figures"]
    if unknown := set(asked.only) - set(names):
        options.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    out = asked.out
    if out is None and not asked.quick:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        out = HERE / "results" / f"{environment.slug(asked.device)}-{today}.json"

    def keep(result: dict[str, Any]) -> None:
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(result, indent=1) + "\n")

    with tempfile.TemporaryDirectory(prefix="saltus-bench-") as scratch:
        result = measure(asked, Path(scratch), keep)
    keep(result)
    print(tables.everything(result))
    if out is not None:
        print(f"\nkept in {out}")
    wrong = troubles(result)
    for line in wrong:
        say(f"WRONG {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
