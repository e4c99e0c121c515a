"""A function of the state with names for its axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from saltus.core.errors import BadInput
from saltus.probe._state import State

# Names a record gives to axes and variables of its own.
RESERVED = ("seed", "step", "time", "epoch", "diverged_at", "stopped_at", "solver_steps")


@dataclass(frozen=True, eq=False)
class Probe:
    """Something to watch.

    - `name`: the variable's name; `fn(state)`: an array, or a dict of arrays for several variables
      called `name_key`.
    - `dims`: one name per axis of the array; unnamed axes become `name_0`, `name_1`, ...
    - `coords(params)`: labels along `dims`, from the shapes of the parameters.
    - `attrs`: `long_name` and `units` for axes of plots.
    """

    name: str
    fn: Callable[[State], Any]
    dims: tuple[str, ...] = ()
    coords: Callable[[Any], Mapping[str, Any]] | None = None
    attrs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise BadInput(f"probe {self.name!r} needs a function of a State; got {type(self.fn).__name__}")
        if not self.name.isidentifier():
            raise BadInput(f"a probe's name must be an identifier (letters, digits, _); got {self.name!r}")
        for name in (self.name, *self.dims):
            if name in RESERVED:
                raise BadInput(f"probe {self.name!r}: the name {name!r} is taken by the record itself")

    def __call__(self, state: State) -> Any:
        return self.fn(state)


def probe(
    *dims: str, name: str | None = None, units: str = "", long_name: str = ""
) -> Callable[[Callable[[State], Any]], Probe]:
    """Decorator: name the axes of a function of the state, as in `@probe("axis")`."""

    def wrap(fn: Callable[[State], Any]) -> Probe:
        attrs = {"long_name": long_name or _first_line(fn), "units": units}
        return Probe(name or fn.__name__, fn, dims, attrs={k: v for k, v in attrs.items() if v})

    return wrap


def as_probe(watched: Any) -> Probe:
    """The probe for what a user wrote in `watch`: a `Probe` as it is, a function under its own name."""
    if isinstance(watched, Probe):
        return watched
    name = getattr(watched, "__name__", None)
    if not callable(watched) or name is None:
        raise BadInput(f"watch takes functions of a State or Probes; got {watched!r}")
    if not name.isidentifier():
        raise BadInput(f"this function has no usable name ({name}); wrap it: probe.Probe('my_name', fn)")
    long_name = _first_line(watched)
    return Probe(
        name,
        watched,
        tuple(getattr(watched, "dims", ())),
        attrs={"long_name": long_name} if long_name else {},
    )


def _first_line(fn: Callable[..., Any]) -> str:
    return (fn.__doc__ or "").strip().split("\n")[0].rstrip(".")
