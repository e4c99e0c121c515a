"""Results as plain text."""

from __future__ import annotations

from typing import Any

import figures

HEAD = (
    f"{'':32}{'whole work':>12}{'median':>12}{'compile':>9}{'ms a run':>12}"
    f"{'GFLOP/s':>9}{'of peak':>9}{'difference':>12}  timed"
)


def everything(result: dict[str, Any]) -> str:
    """All there is in a result file."""
    parts = [machine(result)]
    if result.get("peak"):
        parts.append(peaks(result["peak"]))
    parts += [case(name, found, result.get("peak", {})) for name, found in result["cases"].items()]
    if result.get("scaling"):
        parts.append(scaling(result["scaling"]))
    if result.get("figures"):
        parts.append("All figures of SIM\n" + figure_times(result["figures"]))
    return "\n\n".join(parts)


def machine(result: dict[str, Any]) -> str:
    here, homes = result["environment"], result["homes"]
    lines = [
        f"{here['gpu'] or here['cpu']}, {here['cores']} cores",
        f"Python {here['python']}, commit {here['commit']}",
        f"load {result['load'][0]} before, {result['load'][-1]} after; {result['seconds']:.0f} s in all",
    ]
    for name, found in homes.items():
        lines.append(f"  {name}: " + ", ".join(f"{k} {v}" for k, v in found.items()))
    if result["quick"]:
        lines.append("QUICK: small sizes, to see that everything runs; no number here is a measurement")
    elif result["load"][0][0] > 0.5:
        lines.append("The machine was NOT quiet: these times are too long, and not equally so")
    return "\n".join(lines)


def peaks(peak: dict[str, Any]) -> str:
    lines = ["Matrix products, GFLOP/s (small: 64 x 64 by 64 x 128, many at once)"]
    kinds = sorted({kind for row in peak.values() for kind in row})
    lines.append(" " * 12 + "".join(f"{kind:>16}" for kind in kinds))
    for name, row in peak.items():
        lines.append(f"{name:12}" + "".join(f"{row[k] / 1e9:16.1f}" if k in row else " " * 16 for k in kinds))
    return "\n".join(lines)


def highest(peak: dict[str, Any], dtype: str) -> float:
    """The fastest large product of any library on the device."""
    return max(
        (row.get(f"large {dtype}", 0.0) for name, row in peak.items() if name != "numpy host"), default=0.0
    )


def case(name: str, found: dict[str, Any], peak: dict[str, Any]) -> str:
    lines = [f"{name}: {found['says']}", HEAD]
    if "failed" in found:
        return f"{lines[0]}\n  failed: {found['failed']}"
    for e in found["entries"]:
        if "failed" in e:
            lines.append(f"{e['name']:32}  {e['failed']}")
            continue
        top = highest(peak, e["dtype"])
        share = f"{100e9 * e['gflops'] / top:8.1f}%" if top else " " * 9
        timed = f"{e['timed']['runs']} runs, {e['timed']['epochs']} " if e["times_part"] > 1 else "all"
        unit = "" if timed == "all" else ("steps" if found["case"]["flows"] else "epochs")
        gap = f"{e['gap']:.1e}" + ("" if e["agrees"] else " NO")
        lines.append(
            f"{e['name']:32}{clock(e['seconds']):>12}{clock(e['median_seconds']):>12}"
            f"{e['compile_seconds']:>7.1f} s{e['ms_per_run']:12.4g}{e['gflops']:9.4g}{share}{gap:>12}"
            f"  {timed}{unit}"
        )
    fastest = {e["name"]: e["run_steps_per_second"] for e in found["entries"] if "run_steps_per_second" in e}
    ours = [v for k, v in fastest.items() if k.startswith("saltus")]
    others = {k: v for k, v in fastest.items() if not k.startswith("saltus")}
    if ours and others:
        told = ", ".join(f"{max(ours) / v:.3g} x {k}" for k, v in others.items())
        lines.append(f"  steps of one run per second, best of ours: {max(ours):.3g} = {told}")
    return "\n".join(lines)


def scaling(found: dict[str, Any]) -> str:
    lines = ["Cost of saltus against size, seconds (ns per step of one run)"]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in found["rows"]:
        groups.setdefault((row["path"], row["what"]), []).append(row)
    for (path, what), rows in groups.items():
        cells = "   ".join(f"{r['value']}: {r['seconds']:.3g} ({r['ns_per_run_step']:.3g})" for r in rows)
        lines.append(f"  {path:8} {what:6} {cells}")
    return "\n".join(lines)


def figure_times(found: dict[str, Any]) -> str:
    return found["failed"] if "failed" in found else figures.show(found)


def clock(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.4g} s"
