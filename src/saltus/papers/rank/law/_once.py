"""Programs made once, also when several threads ask for them at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["FirstAlone", "once"]

P = ParamSpec("P")
R = TypeVar("R")


def once(make: Callable[P, R]) -> Callable[P, R]:
    """`lru_cache` in which a second thread waits for the first, instead of making the same thing again."""
    cached, lock = lru_cache(maxsize=64)(make), threading.RLock()

    @wraps(make)
    def get(*args: P.args, **kwargs: P.kwargs) -> R:
        with lock:
            return cached(*args, **kwargs)  # type: ignore[arg-type]

    return get


class FirstAlone:
    """A jitted function whose first call with given shapes is alone: two would compile the same program."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call, self._lock = call, threading.Lock()
        self._seen: set[Hashable] = set()

    def __call__(self, *args: Any) -> Any:
        import jax

        leaves, tree = jax.tree.flatten(args)
        key = (tree, tuple((getattr(x, "shape", ()), str(getattr(x, "dtype", type(x)))) for x in leaves))
        if key in self._seen:
            return self._call(*args)
        with self._lock:
            found = self._call(*args)
            self._seen.add(key)
        return found
