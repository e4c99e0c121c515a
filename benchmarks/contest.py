"""One case: everybody prepares, then everybody's repeats in turn, then outputs are compared."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, Contestant, saltus
from homes import Failed, Homes
from work import load

# Largest difference of an output at x̂ from the plain path in float64, in units of the largest |mu|. In
# float32 a rounding error is 6e-8 and these trainings pass close to a saddle, which multiplies it.
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}
FEW_FLOWS = 8
MOST_SECONDS = 60.0  # a contestant that has spent this long is not repeated again


def hold(case: Case, homes: Homes, scratch: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All contestants' times and differences."""
    dealt = scratch / f"{case.name}.npz"
    result: dict[str, Any] = {"says": case.says, "runs": case.runs, "case": case.as_json(), "entries": []}
    try:
        result |= homes["saltus"].ask("deal", case=case.as_json(), file=str(dealt))
        reference = _reference(case, homes, scratch)
    except Failed as reason:
        return result | {"failed": str(reason)}
    entries = []
    for contestant in case.contestants:
        say(f"  {contestant.name}: preparing")
        entry = _prepare(case, contestant, homes, dealt)
        result["entries"].append(entry)
        if "failed" in entry:
            say(f"  {contestant.name}: {entry['failed']}")
        else:
            entries.append((contestant, entry))
    for repeat in range(case.repeats):
        for contestant, entry in entries:
            if "failed" in entry or sum(entry["times"]) > MOST_SECONDS:
                continue
            keep = scratch / "outputs.npy" if repeat == 0 else None
            try:
                answer = homes[contestant.home].ask(
                    "call", name=contestant.name, keep=str(keep) if keep else None
                )
            except Failed as reason:
                entry["failed"] = str(reason)
                continue
            entry["times"].append(answer["seconds"])
            entry["threads"] = answer["threads"]
            if keep:
                entry |= _compare(case, contestant, np.load(keep), reference)
    for contestant, entry in entries:
        if "failed" not in entry:
            _conclude(case, contestant, entry, result)
    for home in homes.started():
        home.ask("forget")
    dealt.unlink()
    return result


def _prepare(case: Case, contestant: Contestant, homes: Homes, dealt: Path) -> dict[str, Any]:
    runs = case.chosen(contestant.runs)
    length = case.steps if case.flows else case.epochs
    entry: dict[str, Any] = {
        "name": contestant.name,
        "dtype": contestant.dtype,
        "timed": {"runs": len(runs), "epochs": contestant.epochs or length},
        "times": [],
    }
    try:
        home = homes[contestant.home]
        began = time.perf_counter()
        home.ask(
            "prepare",
            name=contestant.name,
            module=contestant.module,
            case=case.as_json(),
            file=str(dealt),
            runs=runs,
            epochs=contestant.epochs,
            device=homes.device,
            dtype=contestant.dtype,
            options=contestant.options,
        )
        entry["prepare_seconds"] = time.perf_counter() - began
        entry["first_seconds"] = home.ask("call", name=contestant.name)["seconds"]
    except Failed as reason:
        entry["failed"] = f"{'missing: ' if reason.missing else ''}{reason}"
    return entry


def _reference(case: Case, homes: Homes, scratch: Path) -> dict[int, np.ndarray]:
    """Outputs of the checked runs by saltus' plain path in float64; for flows, W by numbers of steps."""
    if case.flows:
        return _descend(case, load(scratch / f"{case.name}.npz"))
    runs, keep = case.chosen(case.checked), scratch / "reference.npy"
    plain = saltus("reference", "plain", "float64")
    home = homes["saltus"]
    home.ask(
        "prepare", name="reference", module=plain.module, case=case.as_json(), file="", runs=runs, epochs=0,
        device=homes.device, dtype=plain.dtype, options=plain.options,
    )  # fmt: skip
    home.ask("call", name="reference", keep=str(keep))
    return dict(zip(runs, np.load(keep), strict=True))


def _descend(case: Case, work: Any) -> dict[int, np.ndarray]:
    """W [few, d, d] of the first runs, in numpy, after every number of steps somebody is timed for."""
    wanted = {c.epochs or case.steps for c in case.contestants}
    u, found = work.start[:FEW_FLOWS], {}
    rate = work.eta * (work.a[:, None] + work.a) / 2
    for step in range(1, max(wanted) + 1):
        u = u - (rate * (u @ np.swapaxes(u, 1, 2) - np.eye(len(work.a)))) @ u
        if step in wanted:
            found[step] = u @ np.swapaxes(u, 1, 2)
    return found


def _compare(
    case: Case, contestant: Contestant, outputs: np.ndarray, reference: dict[int, np.ndarray]
) -> dict[str, Any]:
    """The largest difference over checked runs and looks, and whether it is within tolerance."""
    tolerance = TOLERANCE[contestant.dtype]
    if case.flows:
        return _compare_flows(contestant, case, outputs, reference)
    runs = case.chosen(contestant.runs)
    both = [(outputs[place], reference[run]) for place, run in enumerate(runs) if run in reference]
    unit = max(abs(m) for mu, _ in case.settings for m in mu)
    # A part of the epochs has the first of the looks.
    gaps = [np.max(np.abs(own - known[: len(own)])) for own, known in both]
    gap = float(max(gaps)) / unit if gaps else float("nan")
    return {"gap": gap, "agrees": bool(gap <= tolerance), "checked": len(both)}


def _compare_flows(
    contestant: Contestant, case: Case, outputs: np.ndarray, reference: dict[int, np.ndarray]
) -> dict[str, Any]:
    """Against the same descent in numpy, for as many steps as were timed."""
    few = min(len(outputs), FEW_FLOWS)
    known = reference[contestant.epochs or case.steps][:few]
    gap = float(np.max(np.abs(outputs[:few] - known)))
    return {"gap": gap, "agrees": bool(gap <= TOLERANCE[contestant.dtype]), "checked": few}


def _conclude(case: Case, contestant: Contestant, entry: dict[str, Any], result: dict[str, Any]) -> None:
    """Times of the whole work, from those of the part that was timed."""
    timed = entry["timed"]
    share = case.runs / timed["runs"] * (case.steps if case.flows else case.epochs) / timed["epochs"]
    least, middle = min(entry["times"]), statistics.median(entry["times"])
    entry["times_part"] = share
    entry["seconds"], entry["median_seconds"] = least * share, middle * share
    # What the first call took longer than the others: compilation, and warming up.
    entry["compile_seconds"] = max(0.0, entry["first_seconds"] - middle)
    entry["ms_per_run"] = 1e3 * least * share / case.runs
    entry["run_steps_per_second"] = case.runs * result["steps"] / (least * share)
    flops = _flops(case, contestant.counts, result)
    entry["gflops"] = 1e-9 * flops * case.runs / (least * share)


FLOW_STEP = 93  # for d = 3: 30 for W, which is symmetric, 9 for M, 54 for U - M U


def _flops(case: Case, counts: str, result: dict[str, Any]) -> float:
    """Multiplications and additions of one run, tests and data apart."""
    if case.flows:
        return FLOW_STEP * result["steps"]
    d, h = case.dim, case.width
    sizes = [d, *[h] * (case.depth - 1), d]
    layers = [into * out for into, out in itertools.pairwise(sizes)]
    if counts == "plain":
        # Forward and two products backward in every layer, but no slope of the inputs.
        return case.epochs * result["points"] * 2 * (3 * sum(layers) - layers[0])
    # The same three products on k rows in place of a batch, all but the first layer; then the update.
    k = len(case.settings[0][0]) + (case.reading == "as-drawn")
    later = sum(layers[1:])
    return result["steps"] * (6 * k * later + 2 * later + (2 * k + 3) * k * d)
