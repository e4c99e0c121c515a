"""Theory against experiment as a number, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from saltus._lazy import np, xr
from saltus.core import stats
from saltus.core.errors import BadInput

if TYPE_CHECKING:
    import xarray


def distance(
    runs: xarray.Dataset,
    law: xarray.Dataset,
    *,
    over: str = "seed",
    variables: Sequence[str] | None = None,
    scale: float | None = None,
) -> xarray.Dataset:
    """Root-mean-square distance between runs and law, relative to the law's own size, for each run.

    **Arguments:** `runs` and `law` share variable names; shared coordinates are matched, dimensions the law
    lacks are broadcast; `over`: the dimension that counts runs; `scale`: what to divide by (default: the
    root mean square of the law).

    **Returns:** for each variable, the distance per run, with `attrs` median, low, high (95% interval), n.
    """
    names = list(variables or [str(v) for v in runs.data_vars if v in law.data_vars])
    if not names:
        ours, theirs = sorted(map(str, runs.data_vars)), sorted(map(str, law.data_vars))
        raise BadInput(f"runs ({', '.join(ours)}) and law ({', '.join(theirs)}) share no variable")
    found = {}
    for name in names:
        for side, data in (("runs", runs), ("law", law)):
            if name not in data:
                raise BadInput(f"the {side} have no variable {name!r}")
        seen, said = xr.align(runs[name], law[name], join="inner", exclude=[over])
        for dim in seen.dims:
            if dim != over and seen.sizes[dim] == 0:
                raise BadInput(f"runs and law share no value of coordinate {dim!r}")
        # A run that left the numbers is infinitely far; where the law says nothing, nothing is compared.
        with np.errstate(over="ignore", invalid="ignore"):
            gap = ((seen - said) ** 2).where(np.isfinite(seen), np.inf).where(said.notnull())
        rest = [d for d in gap.dims if d != over]
        with np.errstate(over="ignore"):  # a law may leave the numbers as well as a run
            size = scale if scale is not None else float(np.sqrt((said**2).mean()))
        if size == 0 and said.notnull().all():
            raise BadInput(f"the law of {name!r} is zero everywhere: give scale=, what to divide by")
        # From a law that is infinite, or undefined wherever it is not zero, no distance can be told.
        size = size if 0 < size < np.inf else np.nan
        per_run: xarray.DataArray = gap.mean(rest) ** 0.5 / size
        if over in per_run.dims:
            e = stats.median(per_run.values)
            per_run.attrs.update(median=e.value, low=e.low, high=e.high, n=e.n)
        found[name] = per_run
    return xr.Dataset(found)
