"""A dataset as it lies on disk: in plain text and numbers, with a checksum."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core.errors import BadInput

if TYPE_CHECKING:
    import numpy
    import xarray


def digest(data: xarray.Dataset) -> str:
    """A checksum of every array's name, shape, type and bytes."""
    total = hashlib.sha256()
    for name in sorted(map(str, data.variables)):
        variable = data.variables[name]
        values = _plain(variable.values)
        total.update(f"{name}|{variable.dims}|{values.shape}|{values.dtype}|".encode())
        total.update(np.ascontiguousarray(values).tobytes())
    return total.hexdigest()


def _plain(values: numpy.ndarray) -> numpy.ndarray:
    """Text as fixed-width unicode, so that its bytes are its content."""
    if values.dtype.kind not in "OTU":
        return values
    # A single word picked from wider ones comes back from disk as wide as itself.
    return values.astype("U") if values.ndim else np.asarray(str(values))


def tidy(data: xarray.Dataset) -> xarray.Dataset:
    """The dataset as it will come back from disk: in memory, with plain text."""
    # How an array was stored is no part of it: data read back must be stored again in the very same bytes.
    out = data.drop_encoding()
    for name, variable in data.variables.items():
        if variable.dtype.kind in "OTU":
            out[name] = (variable.dims, _plain(variable.values), variable.attrs)
    return out


def one_nan(data: xarray.Dataset) -> xarray.Dataset:
    """The dataset with a single kind of NaN, of which there are many.

    A chunk of nothing but NaN is not stored and comes back as the plain one, whatever sign 0/0 gave it.
    """
    out = data.copy()
    for name, variable in data.variables.items():
        lost = np.isnan(variable.values) if variable.dtype.kind in "fc" else np.zeros(1, bool)
        if lost.any():
            plain = np.where(lost, variable.dtype.type(np.nan), variable.values)
            out[name] = (variable.dims, plain, variable.attrs)
    return out


def ready(data: xarray.Dataset) -> xarray.Dataset:
    """The dataset as it is to be written, or one line saying what in it no record can hold."""
    if not isinstance(data, xr.Dataset):
        raise BadInput(f"a record holds an xarray Dataset, not {type(data).__name__}")
    for name, variable in data.variables.items():
        _check_name(name)
        if variable.dtype.kind in "mM":
            raise BadInput(f"a record cannot hold the dates in {name!r}; store them as numbers")
        _check_attrs(variable.attrs, f"attributes of {name!r}")
    _check_attrs(data.attrs, "dataset's attributes")
    for name, index in data.xindexes.items():
        if isinstance(index, xr.indexes.PandasMultiIndex):
            raise BadInput(f"a record cannot hold the many-levelled index {name!r}; reset_index undoes it")
    return one_nan(tidy(data))


def _check_name(name: Any) -> None:
    """Each array is a folder on the disk."""
    if not isinstance(name, str):
        raise BadInput(f"a record cannot hold a variable named {name!r}; names are words")
    if not name or name.startswith((".", "__")) or {"/", "\\", "\0"} & set(name) or len(name.encode()) > 200:
        raise BadInput(f"a record cannot hold a variable named {name[:40]!r}; use letters, digits and _")


def _check_attrs(attrs: Any, which: str) -> None:
    for key, value in attrs.items():
        try:
            json.dumps({key: value.tolist() if hasattr(value, "tolist") else value})
        except (TypeError, ValueError):
            raise BadInput(
                f"a record cannot hold {key!r} of the {which}, a {type(value).__name__}: "
                "use words, numbers and lists of them"
            ) from None


def write(data: xarray.Dataset, path: Path) -> None:
    """Write what `ready` gave."""
    # Zarr's format 2 has a stable specification for text; format 3 does not yet.
    data.to_zarr(path, mode="w", zarr_format=2, consolidated=False)


def read(path: Path) -> xarray.Dataset:
    """Read it back as it was."""
    # Units are labels here: "seconds" must not turn a number into a date. What zarr only warns of (an array
    # without its description) the checksum will tell.
    with (
        warnings.catch_warnings(action="ignore"),
        xr.open_zarr(path, consolidated=False, decode_times=False, decode_timedelta=False) as opened,
    ):
        return tidy(opened.load())
