"""What every study of trained transformers shares: its settings, the training, the record of all heads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import jax, np, xr
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.papers.rank.studies import _walks

if TYPE_CHECKING:
    import xarray

    from saltus.core.lab import Lab

__all__ = ["Trained", "put_together", "record_of", "trained"]

SHOWN = 6  # steps whose whole spectra are kept
KEPT = 10  # singular values kept of every step
VERSION = 1  # raised when what a training computes changes


@dataclass(frozen=True)
class Trained:
    """Settings that all trainings have."""

    depth: int = setting(3, "layers", low=1)
    heads: int = setting(8, "heads of each layer", low=1)
    width: int = setting(64, "numbers of a token", low=4)
    head: int = setting(16, "width of a head", low=1)
    batch: int = setting(64, "points a step", low=1)
    seeds: int = setting(6, "networks trained", low=1)
    looks: int = setting(48, "steps looked at, evenly in the logarithm", low=32)
    compute: str = setting("float32", "numbers to compute with", choices=("float32", "bfloat16"))
    base: int = setting(0, "key that all seeds share", low=0, high=2**32 - 1)

    # What this training is called, and what its scales are for the table of presets.
    kind: ClassVar[str] = ""
    figures_of: ClassVar[str] = ""

    def tables(self, lab: Lab) -> tuple[Any, Any]:
        """What is learnt, and what it is tested on."""
        raise NotImplementedError

    def network(self, train: Any) -> Any:
        raise NotImplementedError

    def descent(self, steps: int) -> Any:
        raise NotImplementedError

    def steps(self, points: int) -> int:
        """Updates in all."""
        raise NotImplementedError

    def of_training(self) -> dict[str, Any]:
        """Everything a training depends on: every setting that is not a study's own."""
        from saltus.core import lab as labs

        kind = _owner(type(self))
        names = [n for n in labs.settings.hints(kind) if n not in ("scale",)]
        return {"version": VERSION, **labs.settings.plain_all({n: getattr(self, n) for n in names})}

    @property
    def numbers(self) -> str | None:
        return None if self.compute == "float32" else self.compute

    def size(self) -> str:
        """How large the network is, in words for figures."""
        return (
            f"{self.depth} layers of {self.heads} heads of width {self.head}, tokens of {self.width}, "
            f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        )


def _owner(cls: Any) -> Any:
    """The class that declares the training, above the study that shows it."""
    return next(c for c in cls.__mro__ if "kind" in vars(c))


def trained(study: Trained, lab: Lab, scales: tuple[float, ...] | None = None) -> xarray.Dataset:
    """The record of this training; made once for all studies that show it.

    **Arguments:** `scales`: of the initial values, every one with every seed.
    """
    about: Mapping[str, Any] = {**study.of_training(), "scales": list(scales or ())}
    with lab.progress("training") as tick:
        return lab.share(study.kind, about, lambda keep: _train(study, lab, scales, tick, keep))


def _train(
    study: Trained, lab: Lab, scales: tuple[float, ...] | None, tick: Any, keep: Path | None
) -> xarray.Dataset:
    from saltus import descent, probe
    from saltus.descent import network

    train, test = study.tables(lab)
    steps = study.steps(len(train))
    found = network.fit(
        study.network(train),
        train,
        study.descent(steps),
        seeds=study.seeds,
        scales=scales,
        test=test,
        watch=[probe.head_spectra(), _walks.changes()],
        at=descent.at.log(study.looks),
        keep=keep if steps > 5000 else None,
        base=study.base,
        progress=tick,
    )
    many = study.seeds * len(scales or (1,)) > 1
    starts = [_member(found.start, m if many else None) for m in range(study.seeds * len(scales or (1,)))]
    seen = {name: np.asarray(value) for name, value in found.seen.items()}
    return record_of(found.steps, seen, starts, found.seeds, found.scales, found.diverged_at, study.base)


def _member(params: Any, m: int | None) -> Any:
    params = params if m is None else jax.tree.map(lambda leaf: leaf[m], params)
    return np.asarray(_walks.factors(params))


def record_of(
    steps: Any,
    seen: Mapping[str, Any],
    starts: list[Any],
    seeds: Any,
    scales: Any,
    diverged_at: Any,
    base: int,
) -> xarray.Dataset:
    """The record of a training, controls included, from what was seen along it.

    **Arguments:** `seen`: `spectrum_KQ`, `spectrum_VO` [member, look, layer, head, k], `moved` [member, look,
    4, layer, head], losses and accuracies [member, look]; `starts`: of each member, its first factors [4,
    layer, head, d, r].

    **Returns:** of what was gained `rank` [product, look, layer, head], its stable rank, `values` [product,
    look, layer, head, order], its largest singular values, and `spectrum` [product, shown, layer, head,
    index], all of them over the largest at the few steps `shown`, the last among them; of the first weights
    `start` and `start_rank`; of random changes of the same size `random` (at the last look), `random_rank`,
    and of tiny ones `tiny_rank`; each by `member`.
    """
    steps = np.asarray(steps)
    shown = shown_of(steps)
    values = np.stack([np.asarray(seen[f"spectrum_{p}"], np.float64) for p in _walks.PRODUCTS], axis=1)
    heads = ("member", "product", "step", "layer", "head")
    first, walks, small = [], [], []
    for m, start in enumerate(starts):
        first.append(_start_spectra(start))
        walks.append(_walks.walk(start, np.asarray(seen["moved"])[m], seed=base + 7919 * (m + 1)))
        small.append(_walks.tiny(start, seed=base + 104729 * (m + 1)))
    begun = np.stack(first)
    data = {
        "spectrum": (
            ("member", "product", "shown", "layer", "head", "index"),
            _walks.normalised(values[:, :, shown]).astype(np.float32),
        ),
        "values": ((*heads, "order"), values[..., :KEPT].astype(np.float32)),
        "rank": (heads, _walks.stable_rank(values)),
        "start": (("member", "product", "layer", "head", "of_start"), _walks.normalised(begun)),
        "start_rank": (("member", "product", "layer", "head"), _walks.stable_rank(begun)),
        "random": (
            ("member", "product", "layer", "head", "index"),
            np.stack([w["spectrum"] for w in walks]),
        ),
        "random_rank": (heads, np.stack([np.moveaxis(w["rank"], 0, 1) for w in walks])),
        "tiny_rank": (("member", "product", "layer", "head"), np.stack(small)),
        "moved": (("member", "step", "factor", "layer", "head"), np.asarray(seen["moved"], np.float64)),
        "seed": (("member",), np.asarray(seeds)),
        "scale": (("member",), np.where(np.isnan(scales), 1.0, scales)),
        "diverged_at": (("member",), np.asarray(diverged_at)),
        "shape": (("side",), np.asarray(starts[0].shape[-2:])),
    }
    for name in ("loss_train", "loss_test", "accuracy_train", "accuracy_test"):
        data[name] = (("member", "step"), np.asarray(seen[name], np.float64))
    layers = np.arange(1, values.shape[3] + 1)
    coords = {"step": steps, "shown": steps[shown], "product": list(_walks.PRODUCTS), "layer": layers}
    return put_together(xr.Dataset(data, coords=coords))


def shown_of(steps: Any) -> Any:
    """Looks whose whole spectra are kept: a few over the logarithm of the steps, and the last."""
    wanted = np.geomspace(max(1, steps[-1] / 300), steps[-1], SHOWN)
    return np.unique([int(abs(steps - w).argmin()) for w in wanted])


def _start_spectra(start: Any) -> Any:
    """Singular values of the first products [product, layer, head, k]."""
    from saltus.probe import product_spectrum

    return np.asarray(product_spectrum(start[0::2], start[1::2]), np.float64)


def put_together(data: xarray.Dataset) -> xarray.Dataset:
    """The record with words for each of its variables."""
    for name, words, unit in (
        ("spectrum", "singular values of what the product gained, over the largest", "1"),
        ("values", "largest singular values of what the product gained", "1"),
        ("shown", "training step", "step"),
        ("rank", "stable rank of what the product gained", "1"),
        ("start", "singular values of the first product, over the largest", "1"),
        ("start_rank", "stable rank of the first product", "1"),
        ("random", "singular values after random changes of the same size, over the largest", "1"),
        ("random_rank", "stable rank of what random changes of the same size give", "1"),
        ("tiny_rank", "stable rank of what tiny random changes give", "1"),
        ("moved", "Frobenius norm of the change of a factor", "1"),
        ("seed", "seed", "1"),
        ("scale", "scale of the initial values", "1"),
        ("diverged_at", "first step that is not finite, -1 if none", "step"),
        ("shape", "rows and columns of a head's factors", "1"),
        ("loss_train", "training loss", "1"),
        ("loss_test", "test loss", "1"),
        ("accuracy_train", "share of training points that are right", "1"),
        ("accuracy_test", "share of test points that are right", "1"),
        ("step", "training step", "step"),
    ):
        if name in data:
            data[name].attrs.update(long_name=words, units=unit)
    return data


def memory(points: int, bytes_each: int, what: str) -> None:
    """Refuse in one line what would not fit the machine."""
    import os

    here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    need = points * bytes_each
    if need > 0.8 * here:
        raise BadInput(
            f"{what} takes {need / 1e9:.0f} GB and this machine has {here / 1e9:.0f}; "
            f"ask for smaller pictures with --side {max(8, int(math.sqrt(0.5 * here / points / 3)))}"
        )
