"""Any number of runs of the symmetric two-layer linear model, watched at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jax, jnp, workers
from saltus.core.errors import BadInput, nearest
from saltus.descent._ensemble import host_memory, run_many
from saltus.papers.sim.symmetric import kernel
from saltus.papers.sim.symmetric.algebra import gram, loss_at, rates, training_loss
from saltus.papers.sim.symmetric.starts import DRAWS, drawn, drawn_in_lots
from saltus.papers.sim.symmetric.steps import HOW
from saltus.papers.sim.symmetric.stops import looks, stretches
from saltus.papers.sim.symmetric.watch import Descents, Diverged, Hits, Lowest, Rises, View, Watcher

__all__ = ["COMPILER_OPTIONS", "WATCH", "evolve", "starts"]

WATCH: tuple[Watcher, ...] = (Descents(), Hits(), Lowest(), Diverged(), Rises())
# Runs computed together: on a host their state stays in the first cache; on a GPU they fill it, unless
# many kept steps would fill its memory first.
HOST_BLOCK, GPU_BLOCK, GPU_BLOCK_KEEPING = 128, 2**18, 2**14
COMPILER_OPTIONS = (("xla_cpu_prefer_vector_width", "512"),)
LARGEST = 6  # every product is written out: d = 6 already compiles for seconds
STEPS_ARE_COUNTED_TO = {"float64": 2**53, "float32": 2**24}


class _Setting(NamedTuple):
    """Everything a compiled program depends on; what it does not is an argument of it."""

    d: int
    width: int
    start: str
    how: str
    watch: tuple[Watcher, ...]
    dtype: str
    stored: int
    engine: str
    each: frozenset[str]  # arguments that differ from run to run
    paced: bool  # whether steps change their length on the way


def evolve(
    a: Any,
    target: Any,
    runs: int | Sequence[int] | np.ndarray,
    *,
    how: str = "gd",
    eta: Any = 0.01,
    steps: int,
    start: str | Any = "uniform",
    scale: Any = 0.1,
    width: int | None = None,
    power: int = 1,
    watch: tuple[Watcher, ...] = WATCH,
    at: Sequence[int] | np.ndarray | None = None,
    paces: Sequence[tuple[int, float]] = (),
    base: int = 0,
    dtype: str = "float64",
    engine: str = "auto",
    block: int | None = None,
    chunk: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: Callable[[int, int], None] | None = None,
    memory: int | None = None,
) -> dict[str, np.ndarray]:
    """Run f(x) = U U^T x from `runs` starts and say what was seen; every array has the run axis first.

    - `a` [d] or [N, d]: diagonal of A = E[x x^T]; `target` [d] or [N, d]: the test point x̂. An argument
      with N rows gives run i its row i, so a sweep over settings is one call.
    - `how`: "gd" (gradient descent on U), "recursion" (eq. D.2 on W) or "flow" (RK4 of the exact flow).
    - `eta`: step in the paper's clock, a number or [N]; `steps`: how many.
    - `start`: "uniform" on [0, scale], "gaussian" with standard deviation scale, or U(0) itself
      [d, d'] or [N, d, d']; `scale`: a number or [N]; `width`: d', by default d.
    - `power`: 2 puts A^2 in the place of A in the dynamics and in the training loss.
    - `watch`: watchers (`symmetric.watch`), each adding its results. `at`: steps at which to keep the
      state, giving `at`, `path_w` [run, T, d, d], `path_loss` and `path_train` [run, T].
    - `paces`: pairs (n, factor), ascending in n: from step n on, every step is `factor` times eta long.
      What counts steps then counts them in units of eta.
    - `base`: run i starts from the key fold_in(key(base), i).
    - `engine`: "loop" (XLA's loop over steps) or "kernel" (`symmetric.kernel`: one GPU kernel for all
      steps; elsewhere it is interpreted, for checking); "auto" takes the kernel on a GPU.
    - `block`, `chunk`, `devices`, `progress`, `memory`: as in `descent.run_many`.

    Always there: `loss`, `train`, `w` [run, d, d] after the last step, and `start_loss`. `hit` is in the
    paper's time; names that end in `_step` count steps; never is inf.
    """
    if how not in HOW:
        raise BadInput(f"how is one of {', '.join(HOW)}; got {how!r}{nearest(str(how), HOW)}")
    if dtype not in STEPS_ARE_COUNTED_TO:
        raise BadInput(f"dtype is float64 or float32; got {dtype!r}")
    if not 1 <= steps <= STEPS_ARE_COUNTED_TO[dtype]:
        raise BadInput(f"steps must be between 1 and {STEPS_ARE_COUNTED_TO[dtype]} in {dtype}; got {steps}")
    most = (
        runs if isinstance(runs, int | np.integer) else int(np.max(np.asarray(runs), initial=-1)) + 1
    ) or 1
    if power < 1:
        raise BadInput(f"power must be 1 (A) or more; got {power}")
    args = {
        "a": _array("a", np.asarray(a, float) ** power, 1, most),
        "target": _array("target", target, 1, most),
        "eta": _array("eta", eta, 0, most),
    }
    d = args["a"].shape[-1]
    if args["target"].shape[-1] != d:
        raise BadInput(f"a has {d} entries and target {args['target'].shape[-1]}; they must be as many")
    kind = start if isinstance(start, str) else "given"
    if isinstance(start, str):
        if start not in DRAWS:
            raise BadInput(f"start is uniform, gaussian or an array; got {start!r}{nearest(start, DRAWS)}")
        args["scale"] = _array("scale", scale, 0, most)
    else:
        args["U0"] = _array("start", start, 2, most)
        if args["U0"].shape[-2] != d or (width or args["U0"].shape[-1]) != args["U0"].shape[-1]:
            raise BadInput(f"a start must be [{d}, width]; got {args['U0'].shape}")
        width = args["U0"].shape[-1]
    if (width := d if width is None else width) < 1 or d > LARGEST:
        raise BadInput(f"this engine is for 1 <= d <= {LARGEST} and width >= 1; got d={d}, width={width}")
    kept = looks(at, steps)
    stops = stretches(kept, paces, steps)
    numbers = {"steps": np.int64(steps), "base": np.uint32(base), **stops}
    alone = {"a": 1, "target": 1, "eta": 0, "scale": 0, "U0": 2}
    each = frozenset(name for name, value in args.items() if value.ndim > alone[name])

    places = list(devices) if devices is not None else workers()
    if engine not in ("auto", "loop", "kernel"):
        raise BadInput(f"engine is auto, loop or kernel; got {engine!r}")
    on_gpu = bool(places) and places[0].platform == "gpu"
    if engine == "kernel" or (engine == "auto" and on_gpu and kernel.available()):
        engine = "kernel" if on_gpu else "interpreted"
    else:
        engine = "loop"
    found = run_many(
        _block(_Setting(d, width, kind, how, tuple(watch), dtype, len(kept), engine, each, bool(paces))),
        runs,
        block=block or ((GPU_BLOCK if len(kept) < 8 else GPU_BLOCK_KEEPING) if on_gpu else HOST_BLOCK),
        axis=-1,
        chunk=chunk,
        devices=places,
        progress=progress,
        memory=memory,
        args=(args, numbers),
        compiler_options=COMPILER_OPTIONS,
    )
    if "hit" in found:
        own = args["eta"] if "eta" not in each else args["eta"][_index(runs)][:, None, None]
        found["hit"] = found["hit"] * own
    if len(kept):
        found["at"] = kept
        if paces:
            wanted = np.isin(stops["at"], kept)
            found |= {name: found[name][:, wanted] for name in ("path_w", "path_loss", "path_train")}
    return found


@lru_cache(maxsize=256)
def _block(setting: _Setting) -> Callable[..., dict[str, Any]]:
    """The function of one block of runs, the same object for the same setting."""
    d, dtype = setting.d, jnp.dtype(setting.dtype)

    def block(index: jax.Array, args: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
        def own(name: str) -> Any:
            # [N, ...] -> [..., B]; what is shared stays as it is
            value = jnp.asarray(args[name])
            return jnp.moveaxis(value[index], 0, -1) if name in setting.each else value

        a, target, eta = own("a").astype(dtype), own("target").astype(dtype), own("eta").astype(dtype)
        u0 = _start(setting, index, own, numbers["base"]).astype(dtype)
        if setting.engine != "loop":
            # Inside a kernel everything is an array over its runs.
            a, target, eta = (
                jnp.broadcast_to(x if x.ndim > n else x[..., None], (*x.shape[:n], index.size))
                for x, n in ((a, 1), (target, 1), (eta, 0))
            )
        setup = (tuple(a), tuple(target), eta)
        state: Any = tuple(u0[i] if setting.engine == "loop" else tuple(u0[i]) for i in range(d))
        if setting.how == "recursion":
            state = gram(state)

        def view(n: Any, state: Any, setup: Any) -> View:
            a, target, _, *pace = setup
            w = state if setting.how == "recursion" else gram(state)
            number = jnp.asarray(n).astype(dtype)
            if pace:
                offset, factor = pace
                number = offset + number * factor
            return View(number, w, loss_at(w, target), training_loss(w, rates(a)))

        def advance(n: Any, carry: tuple[Any, Any], setup: Any) -> tuple[Any, Any]:
            state, seen = carry
            here = view(n, state, setup)
            seen = tuple(w.update(s, here) for w, s in zip(setting.watch, seen, strict=True))
            eta = setup[2] * setup[4] if setting.paced else setup[2]
            return HOW[setting.how](setup[0], eta)(state), seen

        def at_pace(pace: Any) -> Any:
            if not setting.paced:
                return setup
            pace = (x.astype(dtype) for x in pace)
            return (*setup, *(x if setting.engine == "loop" else jnp.full(index.size, x) for x in pace))

        def many(begun: Any, end: Any, carry: Any, pace: Any) -> Any:
            setup = at_pace(pace)
            if setting.engine == "loop":
                return jax.lax.fori_loop(begun, end, lambda n, c: advance(n, c, setup), carry)
            return kernel.loop(begun, end, advance, carry, setup, interpret=setting.engine == "interpreted")

        first = view(0, state, setup)
        carry = (state, tuple(w.begin(first) for w in setting.watch))
        path, carry = _walk(many, lambda n, state: view(n, state, setup), carry, numbers, setting)
        last = view(numbers["steps"], carry[0], at_pace((numbers["offset"][-1], numbers["factor"][-1])))
        out = {"loss": last.loss, "train": last.train, "w": _dense(last.w), "start_loss": first.loss, **path}
        for watcher, seen in zip(setting.watch, carry[1], strict=True):
            out |= watcher.result(watcher.update(seen, last), last)
        return out

    return block


def _walk(
    many: Callable[..., Any],
    view: Callable[..., View],
    carry: Any,
    numbers: dict[str, Any],
    setting: _Setting,
) -> tuple[dict[str, Any], Any]:
    """All steps, from one stop to the next; and what was kept."""
    paces = (numbers["offset"], numbers["factor"])
    path: dict[str, Any] = {}
    begun = jnp.zeros_like(numbers["steps"])
    if setting.stored or setting.paced:

        def stretch(carry: tuple[Any, Any], to: Any) -> tuple[Any, Any]:
            (begun, inner), (end, pace) = carry, to
            inner = many(begun, end, inner, pace)
            if not setting.stored:
                return (end, inner), {}
            here = view(end, inner[0])
            return (end, inner), {"path_w": _dense(here.w), "path_loss": here.loss, "path_train": here.train}

        ends = numbers["at"]
        before = tuple(x[: ends.size] for x in paces)
        (begun, carry), path = jax.lax.scan(stretch, (begun, carry), (ends, before))
    return path, many(begun, numbers["steps"], carry, tuple(x[-1] for x in paces))


def _dense(w: Any) -> jax.Array:
    return jnp.stack([jnp.stack(row) for row in w])


def _start(setting: _Setting, index: jax.Array, own: Callable[[str], Any], base: Any) -> jax.Array:
    """U(0) [d, d', B]."""
    if setting.start != "given":
        return drawn(setting.start, base, index, setting.d, setting.width, own("scale"))
    given = own("U0")
    return given if "U0" in setting.each else jnp.broadcast_to(given[..., None], (*given.shape, index.size))


def starts(
    runs: int | Sequence[int],
    d: int,
    width: int | None = None,
    *,
    start: str = "uniform",
    scale: float = 0.1,
    base: int = 0,
) -> np.ndarray:
    """The U(0) [run, d, d'] that `evolve` would draw for these runs."""
    if start not in DRAWS:
        raise BadInput(f"start is uniform or gaussian; got {start!r}{nearest(start, DRAWS)}")
    number = int(runs) if isinstance(runs, int | np.integer) else len(runs)
    # The starts as drawn and as handed on, where they end, and what is seen of them on the way.
    need, free = 48 * number * d * ((width or d) + d), host_memory()
    if need > free:
        raise BadInput(
            f"{number} starts need {need / 2**30:.3g} GiB of memory and {free / 2**30:.3g} GiB are free; "
            "ask for fewer"
        )
    return drawn_in_lots(start, base, _index(runs), d, width or d) * scale


def _index(runs: int | Sequence[int] | np.ndarray) -> np.ndarray:
    return np.arange(runs) if isinstance(runs, int | np.integer) else np.asarray(runs)


def _array(name: str, value: Any, dims: int, most: int) -> np.ndarray:
    array = np.asarray(value, np.float64)
    if array.ndim not in (dims, dims + 1) or not np.all(np.isfinite(array)) or array.size == 0:
        raise BadInput(
            f"{name} must be finite numbers with {dims} or {dims + 1} axes; got shape {array.shape}"
        )
    if array.ndim == dims + 1 and len(array) < most:
        raise BadInput(f"{name} has rows for {len(array)} runs, and {most} are asked for")
    if name == "a" and np.any(array < 0):
        raise BadInput("a is the diagonal of a second moment and cannot be negative")
    return array
