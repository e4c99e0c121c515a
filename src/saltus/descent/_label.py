"""Names, coordinates and units for what the runs have seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from saltus._lazy import xr
from saltus.core.errors import BadInput
from saltus.descent import _over
from saltus.descent._batches import Plan
from saltus.descent._flow import Flow
from saltus.probe import Probe


def dataset(
    setup: Any,
    swept: Sequence[_over.Axis],
    values: Sequence[np.ndarray],
    seeds: np.ndarray,
    moments: np.ndarray,
    plan: Plan | None,
    params: Any,
    seen: Mapping[str, Any],
) -> xr.Dataset:
    """One program's results [(swept...), seed, ...] as a dataset."""
    names = _over.names(swept)
    dims = (*(names[a.key] for a in swept), "seed")
    clock = "step" if plan is not None else "time"
    found = xr.Dataset(coords={"seed": ("seed", seeds)} | _clock(setup.how, swept, values, moments, plan))
    for a in swept:
        found = found.assign_coords({names[a.key]: (names[a.key], _over.labels(a.values))})
        found[names[a.key]].attrs["long_name"] = f"{a.owner}: {a.field}"
    for probe in setup.probes:
        for name, array in _variables(probe, seen["seen"][probe.name]).items():
            labelled = _labelled(probe, name, array, (*dims, clock))
            for dim, size in labelled.sizes.items():
                if found.sizes.get(dim, size) != size:
                    raise BadInput(
                        f"probe {name} has {size} along {dim!r} where another has {found.sizes[dim]}; "
                        "give one of the axes another name"
                    )
            found[name] = labelled
            found[name].attrs.update(probe.attrs)
        if probe.coords is not None:
            labels = probe.coords(params)
            found = found.assign_coords({d: (d, list(v)) for d, v in labels.items()})
    event = {"step": ("step", "-1: never"), "time": ("time", "nan: never")}[clock]
    for name, what in (("diverged_at", "loss no longer finite"), ("stopped_at", "stop rule fired")):
        found[name] = (dims, seen[name], {"long_name": f"{event[0]} at which {what} ({event[1]})"})
    if "solver_steps" in seen:
        found["solver_steps"] = (dims, seen["solver_steps"], {"long_name": "steps the solver took"})
    return found


def joined(pieces: list[xr.Dataset], separate: Sequence[_over.Axis], names: Mapping[str, str]) -> xr.Dataset:
    """Programs compiled one by one, put together along the fields they differ in."""
    for a in reversed(separate):
        dim = xr.DataArray(_over.labels(a.values), dims=names[a.key], name=names[a.key])
        n = len(a.values)
        try:
            pieces = [
                xr.concat(pieces[i : i + n], dim, join="exact", coords="different", compat="equals")
                for i in range(0, len(pieces), n)
            ]
        except ValueError as error:
            raise BadInput(
                f"over: results at different {a.key} have different shapes or steps, so they are no one "
                "array; watch something of one shape, give steps instead of epochs, or train each alone"
            ) from error
        for piece in pieces:
            piece[names[a.key]].attrs["long_name"] = f"{a.owner}: {a.field}"
    return pieces[0]


def _clock(
    how: Any,
    swept: Sequence[_over.Axis],
    values: Sequence[np.ndarray],
    moments: np.ndarray,
    plan: Plan | None,
) -> dict[str, Any]:
    if plan is None or isinstance(how, Flow):
        return {"time": ("time", moments, {"long_name": "time"})}
    rate = next((i for i, a in enumerate(swept) if (a.owner, a.field) == ("how", "lr")), None)
    if rate is None:
        time: Any = ("step", np.asarray(how.clock(moments)))
    else:
        time = ((_over.names(swept)[swept[rate].key], "step"), np.outer(values[rate], moments))
    return {
        "step": ("step", moments, {"long_name": "step"}),
        "time": (*time, {"long_name": "time (sum of learning rates)"}),
        "epoch": ("step", moments / plan.per_epoch, {"long_name": "epoch"}),
    }


def _variables(probe: Probe, seen: Any) -> dict[str, np.ndarray]:
    if not isinstance(seen, Mapping):
        return {probe.name: _array(probe, seen)}
    return {f"{probe.name}_{key}": _array(probe, value) for key, value in seen.items()}


def _array(probe: Probe, seen: Any) -> np.ndarray:
    if not isinstance(seen, np.ndarray):
        raise BadInput(f"probe {probe.name} must give an array or a dict of arrays")
    return seen


def _labelled(probe: Probe, name: str, array: np.ndarray, outer: tuple[str, ...]) -> xr.Variable:
    rank = array.ndim - len(outer)
    if probe.dims and len(probe.dims) != rank:
        raise BadInput(f"probe {name} names the axes {probe.dims} but gives {rank} of them")
    return xr.Variable((*outer, *(probe.dims or tuple(f"{name}_{i}" for i in range(rank)))), array)
