"""Seconds of all of SIM's figures at 32 seeds each, in a fresh process and a fresh store.

    python benchmarks/figures.py [--seeds 32] [--only ID ...] [--reading as-drawn] [--out FILE]

The clock starts before the interpreter does and stops after it has ended: imports, compilation, training,
theory, claims, and figures as PNG and PDF are all in it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TARGET = 90.0  # seconds on two cores, for everything


def measure(words: list[str]) -> dict[str, Any]:
    """Run the studies in a process of their own and time it from outside."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "seconds.json"
        began = time.time()
        done = subprocess.run(
            [sys.executable, str(HERE / "figures.py"), *words, "--child", str(answer), "--began", str(began)],
            cwd=folder,
        )
        total = time.time() - began
        if not answer.exists():
            raise RuntimeError(f"the process of the studies ended with status {done.returncode}")
        found = json.loads(answer.read_text())
    return {"total_seconds": total, "target_seconds": TARGET, "within_target": total < TARGET, **found}


def studies(only: list[str]) -> list[Any]:
    """The studies that are figures of the paper, in their order."""
    from saltus import python

    chosen = [i for i in python.find(["sim"]) if re.fullmatch(r"sim/fig\d+[a-z]?", i.id)]
    if unknown := set(only) - {i.id for i in chosen}:
        raise SystemExit(f"figures.py: no figure {', '.join(sorted(unknown))}")

    def number(info: Any) -> tuple[int, str]:
        digits, letter = re.fullmatch(r"sim/fig(\d+)(\w?)", info.id).groups()  # type: ignore[union-attr]
        return int(digits), letter

    return sorted((i for i in chosen if not only or i.id in only), key=number)


def child(asked: argparse.Namespace) -> None:
    """Every study in turn, each with its own seconds."""
    chosen = studies(asked.only)
    from dataclasses import fields

    import matplotlib.pyplot  # noqa: F401
    import xarray  # noqa: F401

    import saltus._jax  # noqa: F401
    from saltus.core.settings import resolve
    from saltus.report.turns import in_turn

    ready = time.time()
    built, rows = [], []
    for info in chosen:
        has = {f.name for f in fields(info.cls)}
        given = {"seeds": asked.seeds} if "seeds" in has else {}
        if asked.reading and "reading" in has:
            given["reading"] = asked.reading
        built.append(info.cls(**resolve(info.cls, given, info.id)))
    for turn in in_turn(built, Path("store")):
        row: dict[str, Any] = {"id": turn.outcome.info.id, "seeds": turn.outcome.settings.get("seeds")}
        row |= {f"{name}_seconds": spent for name, spent in turn.seconds.items()}
        row |= {"claims": len(turn.outcome.claims), "as_documented": turn.outcome.as_documented}
        rows.append(row | {"files": len(turn.views)})
        print(f"  {row['id']}: {_sum(row):.1f}", file=sys.stderr, flush=True)
    Path(asked.child).write_text(
        json.dumps({"import_seconds": ready - asked.began, "seeds": asked.seeds, "studies": rows})
    )


def _sum(row: dict[str, Any]) -> float:
    return sum(v for k, v in row.items() if k.endswith("_seconds"))


def show(found: dict[str, Any]) -> str:
    """The table."""
    lines = [f"{'':14}{'compute':>9}{'law':>8}{'draw':>8}   seconds, {found['seeds']} seeds"]
    for row in found["studies"]:
        if "failed" in row:
            lines.append(f"{row['id']:14}  failed: {row['failed']}")
            continue
        odd = "" if row["as_documented"] else "  a claim did not come out as documented"
        own = "" if row["seeds"] else "  (has no seeds)"
        law = row.get("law_seconds", row.get("law_and_claims_seconds", 0.0))
        lines.append(
            f"{row['id']:14}{row['compute_seconds']:9.2f}{law:8.2f}{row['draw_seconds']:8.2f}{own}{odd}"
        )
    within = "within" if found["within_target"] else "OVER"
    lines.append(f"imports {found['import_seconds']:.1f} s")
    lines.append(
        f"all {found['total_seconds']:.1f} s, {within} the target of {found['target_seconds']:.0f} s"
    )
    return "\n".join(lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--seeds", type=int, default=32)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--reading", default="")
    options.add_argument("--out", type=Path)
    options.add_argument("--child", help=argparse.SUPPRESS)
    options.add_argument("--began", type=float, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.child:
        child(asked)
        return 0
    import environment

    before = environment.load()
    words = ["--seeds", str(asked.seeds), "--only", *asked.only]
    found = measure([*words, *(["--reading", asked.reading] if asked.reading else [])])
    print(show(found))
    if asked.out:
        whole = {"environment": environment.environment("cpu"), "load": [before, environment.load()], **found}
        asked.out.write_text(json.dumps(whole, indent=1) + "\n")
    return 1 if any("failed" in row for row in found["studies"]) else 0


if __name__ == "__main__":
    # Nothing on the way may warm the caches of a study: not even an import in this process.
    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.exit(main())
