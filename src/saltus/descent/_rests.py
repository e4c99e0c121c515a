"""What a compiled program rests on: everything its functions look up by name while they are traced.

A program is compiled once and used again for an equal setup. A function that reads a global number is equal
to itself after that number was changed, at a prompt or in a notebook, and so is a frozen dataclass with such
a method; so all that is looked up belongs to the key.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from saltus.probe import Probe

# Nobody changes these while a program runs.
SETTLED = {"saltus", "jax", "jaxlib", "numpy", "optax", "equinox", "diffrax", "builtins", "math", "functools"}
SETTLED |= {"dataclasses", "typing", "collections", "abc", "operator", "itertools"}
# What Python and dataclasses put into a class, and what makes an object, whose fields are compared.
MADE = {
    "__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__match_args__",
    "__init__", "__new__", "__post_init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__",
    "__replace__", "__slots__", "__orig_bases__", "__parameters__", "__abstractmethods__", "_abc_impl",
    "__firstlineno__", "__static_attributes__", "__dataclass_fields__", "__dataclass_params__",
}  # fmt: skip
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def rests_on(parts: Iterable[Any]) -> tuple[Any, ...] | None:
    """All that the parts look up, to be compared; None where some of it may change in place."""
    found: list[Any] = []
    seen: dict[int, Any] = {}
    return tuple(found) if all(_known(part, found, seen) for part in parts) else None


def _known(part: Any, found: list[Any], seen: dict[int, Any]) -> bool:
    if id(part) in seen:
        return True
    if isinstance(part, PLAIN):
        found.append((type(part), part))
        return True
    if isinstance(part, ModuleType):
        return _settled(part.__name__)
    seen[id(part)] = part
    if isinstance(part, tuple | frozenset):
        return all(_known(p, found, seen) for p in part)
    if isinstance(part, functools.partial):
        inside = (part.func, part.args, *part.keywords.values())
        found.append(tuple(part.keywords))
        return all(_known(p, found, seen) for p in inside)
    if isinstance(part, MethodType):
        return _known(part.__func__, found, seen) and _known(part.__self__, found, seen)
    if isinstance(part, FunctionType):
        found.append(part)
        return all(_known(p, found, seen) for p in _looked_up(part))
    if isinstance(part, type):
        found.append(part)
        if _settled(part.__module__):
            return True
        written = (_code_of(value) for name, value in vars(part).items() if name not in MADE)
        return all(_known(p, found, seen) for p in (*written, *part.__bases__))
    if isinstance(part, BuiltinFunctionType | MemberDescriptorType | np.ufunc):
        return True
    if isinstance(part, Probe):
        found.append(part)
        return _known(part.fn, found, seen) and _known(part.coords, found, seen)
    if hasattr(part, "__wrapped__"):  # what jax.jit and its like give back
        return _known(part.__wrapped__, found, seen)
    if _settled(type(part).__module__) and callable(part) and not hasattr(part, "__dataclass_fields__"):
        return True
    frozen = getattr(type(part), "__dataclass_params__", None)
    if frozen is not None and frozen.frozen and type(part).__hash__ is not None:
        fields = (getattr(part, name) for name in part.__dataclass_fields__)
        return _known(type(part), found, seen) and all(_known(v, found, seen) for v in fields)
    return False


def _settled(module: str | None) -> bool:
    return (module or "").partition(".")[0] in SETTLED


def _code_of(value: Any) -> Any:
    """The function in a static or class method or a property; anything else as it is."""
    return getattr(value, "fget", getattr(value, "__func__", value))


def _looked_up(fn: FunctionType) -> Iterator[Any]:
    """What a function finds: its defaults, what it closes over, and globals that may be rebound."""
    yield from fn.__defaults__ or ()
    yield from (fn.__kwdefaults__ or {}).values()
    for cell in fn.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing in it yet
            yield []
    if not _settled(fn.__module__):
        for name in sorted(_names(fn.__code__)):
            if name in fn.__globals__:
                yield fn.__globals__[name]


def _names(code: CodeType) -> set[str]:
    """The names in a function and in those written inside it."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))
