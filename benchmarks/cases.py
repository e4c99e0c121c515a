"""What is timed, and who takes part."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

PANELS = (  # figures 2(a) and 2(b): signals and spreads, in the unit of the reading
    ((1.0, 2.0), (0.05, 0.05)),
    ((2.0, 2.0), (0.05, 0.05)),
    ((3.0, 2.0), (0.05, 0.05)),
    *(((1.0, 2.0), (spread, 0.05)) for spread in (0.1, 0.5, 1.0, 2.0)),
)


@dataclass(frozen=True)
class Contestant:
    """One way to do the work.

    - `home`: the process it runs in; `module`: the file under benchmarks; `options`: for its `prepare`.
    - `runs`: how many of the runs are timed, 0 for all; the time is multiplied to stand for all.
    - `epochs`: how many of the epochs (for flows: steps) are timed, 0 for all; likewise.
    - `counts`: which arithmetic it does, "plain" or "reduced".
    """

    name: str
    home: str
    module: str
    dtype: str = "float32"
    options: dict[str, Any] = field(default_factory=dict)
    runs: int = 0
    epochs: int = 0
    counts: str = "plain"


@dataclass(frozen=True)
class Case:
    """One piece of work: every setting of (mu, sigma) with every seed.

    - `checked`: runs whose outputs are compared with the plain path in float64.
    """

    name: str
    says: str
    contestants: tuple[Contestant, ...]
    repeats: int = 3
    reading: str = "as-drawn"
    settings: tuple[Any, ...] = (((1.0, 2.0), (0.05, 0.05)),)
    depth: int = 4
    dim: int = 64
    width: int = 64
    points: int = 5000
    epochs: int = 40
    seeds: int = 1
    checked: int = 1
    flows: bool = False
    steps: int = 0

    @property
    def runs(self) -> int:
        return self.seeds if self.flows else self.seeds * len(self.settings)

    def chosen(self, runs: int) -> list[int]:
        """That many runs (0: all), spread over the settings so that the checked ones are among them."""
        if not runs or runs >= self.runs:
            return list(range(self.runs))
        # Run number = setting * seeds + seed; seed by seed, all settings in turn.
        by_seed = [s * self.seeds + n for n in range(self.seeds) for s in range(len(self.settings))]
        return sorted(by_seed[:runs])

    def as_json(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if k != "contestants"}


def saltus(name: str, path: str, dtype: str, **more: Any) -> Contestant:
    return Contestant(name, "saltus", "ours", dtype, {"path": path}, counts=path, **more)


def torch(name: str, module: str, runs: int = 0, epochs: int = 0, **options: Any) -> Contestant:
    return Contestant(name, "torch", f"peers.{module}", options=options, runs=runs, epochs=epochs)


def plain_jax(name: str, dtype: str = "float32", **more: Any) -> Contestant:
    return Contestant(name, "jax64" if dtype == "float64" else "jax", "peers.plain_jax", dtype, **more)


def one_run(reading: str, device: str, compiled: bool) -> Case:
    few = 1 if device == "gpu" else 4
    peers = [
        torch("published protocol", "published", epochs=few),
        torch("PyTorch eager loop", "torch_loop", epochs=few),
        torch("PyTorch torch.compile", "torch_compile", epochs=10),
        plain_jax("plain JAX", epochs=10),
        plain_jax("plain JAX, float64", "float64", epochs=10),
        saltus("saltus plain", "plain", "float32", epochs=10),
        saltus("saltus reduced, float32", "reduced", "float32"),
        saltus("saltus reduced (default)", "reduced", "float64"),
    ]
    if not compiled:
        peers = [p for p in peers if "compile" not in p.name and p.name != "plain JAX, float64"]
    return Case(
        f"fig2c-{reading}",
        f"figure 2(c) {reading}: one run of four layers, d = 64, width 64, 40 epochs",
        tuple(peers),
        repeats=5 if compiled else 3,
        reading=reading,
    )


def many_runs(device: str) -> Case:
    gpu = device == "gpu"
    seeds = 512 if gpu else 32
    peers = (
        torch("published protocol", "published", runs=1, epochs=1 if gpu else 2),
        torch("PyTorch eager loop", "torch_loop", runs=2, epochs=1 if gpu else 2),
        torch("torch.func ensemble", "torch_ensemble", epochs=2 if gpu else 1),
        torch("torch.func ensemble, compiled", "torch_ensemble", epochs=2 if gpu else 1, compiled=True),
        torch("PyTorch torch.compile", "torch_compile", runs=2, epochs=2 if gpu else 4),
        plain_jax("plain JAX vmap", epochs=0 if gpu else 1),
        saltus("saltus plain", "plain", "float32", epochs=0 if gpu else 2),
        *([saltus("saltus plain, float64", "plain", "float64")] if gpu else []),
        saltus("saltus reduced, float32", "reduced", "float32"),
        saltus("saltus reduced (default)", "reduced", "float64"),
    )
    return Case(
        f"fig2c-{seeds}-seeds",
        f"figure 2(c) as-drawn: {seeds} seeds of the four-layer run",
        peers,
        seeds=seeds,
        checked=2,
    )


def two_panels(device: str) -> Case:
    gpu, panels = device == "gpu", len(PANELS)
    peers = (
        torch("published protocol", "published", runs=1, epochs=1 if gpu else 4),
        torch("PyTorch eager loop", "torch_loop", runs=panels, epochs=1 if gpu else 2),
        torch("torch.func ensemble", "torch_ensemble", runs=0 if gpu else 4 * panels, epochs=1),
        plain_jax("plain JAX vmap", runs=0 if gpu else 4 * panels, epochs=0 if gpu else 4),
        saltus("saltus plain", "plain", "float32", epochs=0 if gpu else 1),
        saltus("saltus reduced, float32", "reduced", "float32"),
        saltus("saltus reduced (default)", "reduced", "float64"),
    )
    return Case(
        "fig2ab-32-seeds",
        f"figures 2(a) and 2(b) as-drawn: {panels} settings of one layer, 32 seeds each",
        peers,
        settings=PANELS,
        depth=1,
        seeds=32,
        checked=panels,
    )


def tiny_flows(device: str) -> Case:
    gpu = device == "gpu"
    runs, steps = (2**20, 10_000) if gpu else (100_000, 2_000)

    def peer(name: str, home: str, module: str, **more: Any) -> Contestant:
        return Contestant(name, home, f"peers.{module}", "float64", **more)

    peers = (
        peer("PyTorch eager, run by run", "torch", "flows_torch", runs=1, epochs=2_000),
        peer("PyTorch eager, batched", "torch", "flows_torch", epochs=200 if gpu else 50),
        peer("plain JAX vmap", "jax64", "flows_jax", epochs=1_000 if gpu else 200),
        Contestant("saltus", "saltus", "ours_flows", "float64", {"watch": False}),
        Contestant("saltus, watched every step", "saltus", "ours_flows", "float64", {"watch": True}),
    )
    return Case(
        "tiny-flows",
        f"{runs} flows of d = 3 in float64, {steps} steps each",
        peers,
        flows=True,
        seeds=runs,
        steps=steps,
        checked=1,
    )


def cases(device: str, quick: bool) -> list[Case]:
    """Every case of this device."""
    found = [tiny_flows(device), many_runs(device), one_run("as-drawn", device, compiled=device == "cpu")]
    if device == "cpu":
        found += [one_run("as-written", device, compiled=False), two_panels(device)]
    return [small(case) for case in found] if quick else found


def small(case: Case) -> Case:
    """The same in seconds: to see that everything runs and agrees, not to measure."""
    case = replace(case, says=f"a small version of: {case.says}")
    peers = tuple(replace(p, epochs=min(p.epochs, 1)) for p in case.contestants)
    if case.flows:
        peers = tuple(replace(p, epochs=0) for p in case.contestants)
        return replace(case, contestants=peers, repeats=1, seeds=512, steps=600)
    return replace(
        case,
        contestants=peers,
        repeats=1,
        points=400,
        epochs=2,
        seeds=min(case.seeds, 4),
        checked=min(case.checked, 4 * len(case.settings)),
    )
