"""Features emerging: what both networks point at, and what they make of a point, over training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.core.study import study
from saltus.papers.features.studies._both_snr import BothSnr
from saltus.papers.features.studies._images import Run, describe

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

__all__ = ["Film"]

TIMES_CHANCE = 2.0
STRIPS = {
    "denoiser_points": "the direction that most of the denoiser's weights share, its parts in the spans of "
    "the training pictures and of the training noise",
    "removed": "beta f/alpha for a training point",
    "classifier_points": "the same direction of the classifier's first layer",
    "gradient": "derivative of the own class's output by that point",
}


def leading(W: Any) -> tuple[float, Any]:
    """The largest singular value of weights [m, d] over the root of m, and its direction [d]."""
    _, sizes, rows = np.linalg.svd(np.asarray(W, float), full_matrices=False)
    return float(sizes[0] / np.sqrt(len(W))), rows[0]


def parts(direction: Any, run: Run) -> Any:
    """Its parts in the spans of the training pictures and of the training noise [2, d]."""
    spans = [np.linalg.qr(x.T)[0] for x in (run.drawn.signal, run.drawn.noise)]
    return np.stack([basis @ (basis.T @ direction) for basis in spans])


def shares(W: Any, run: Run) -> Any:
    """How much of the leading direction lies in either span: n/d by chance."""
    return (parts(leading(W)[1], run) ** 2).sum(1)


def upright(strip: Any) -> Any:
    """The frames [frame, 2, d] with signs such that each is as much like the last one as can be."""
    signs = np.sign((strip * strip[-1]).sum((1, 2)))
    return strip * np.where(signs == 0, 1.0, signs)[:, None, None]


@study(
    "features/film",
    figure="3",
    cites="han2025feature",
    cost="10 s on two cores, beside the trainings of figures 4 and 8",
    checks=(
        "at either SNR the denoiser's leading direction holds pictures and noise (control: before training)",
        "at low SNR the classifier's holds no more of the pictures than chance has (control: high SNR)",
        "at high SNR it holds no more of the noise than chance has (control: low SNR)",
    ),
)
@dataclass(frozen=True)
class Film(BothSnr):
    """Features emerging, frame by frame: the denoiser comes to point at both, the classifier at one.

    Views of the trainings of figures 4 and 8. The direction that most of a network's weights share, split
    into its parts in the span of the training pictures and in that of the training noise, and what both
    networks make of one training point, at nine moments of the first run.
    """

    def run(self, lab: Lab) -> xarray.Dataset:
        made, seen, strips = [], [], []
        for one, record in self.trainings(lab):
            made.append(record)
            runs = [one.prepare(seed) for seed in range(self.seeds)]
            seen.append(
                {
                    "denoiser_share": [
                        shares(W, r) for W, r in zip(record.weights.values, runs, strict=True)
                    ],
                    "denoiser_start": [shares(r.W, r) for r in runs],
                    "classifier_share": [
                        shares(W, r) for W, r in zip(record.class_weights.values, runs, strict=True)
                    ],
                }
            )
            strips.append(self.strip(record, runs[0]))
        data = xr.Dataset(
            {
                **{n: (("snr", "seed", "patch"), [s[n] for s in seen]) for n in seen[0]},
                **{
                    n: (("snr", "frame", "patch", "pixel"), np.asarray([s[n] for s in strips], np.float32))
                    for n in STRIPS
                },
                "denoiser_frame": (("snr", "frame"), [m.frame.values for m in made]),
                "classifier_frame": (("snr", "frame"), [m.class_frame.values for m in made]),
            },
            coords={
                "snr": [self.snr, self.high],
                "patch": ["signal", "noise"],
                "seed": np.arange(self.seeds),
            },
        )
        describe(data, {str(name): _WORDS[str(name)] for name in data.data_vars})
        return data.assign_attrs(data=self.world.data)

    def strip(self, record: xarray.Dataset, run: Run) -> dict[str, Any]:
        """The frames of the first run: of the first training point what is taken away, and the gradient."""
        from saltus.papers.features import model

        alpha, beta = self.alpha_beta()
        x = np.stack([run.drawn.signal[0], run.drawn.noise[0]])
        digit = run.drawn.digit[:1]
        rng = np.random.default_rng([self.base, 2])
        x_t = alpha * x + beta * rng.standard_normal(x.shape)
        found: dict[str, list[Any]] = {name: [] for name in STRIPS}
        for W in np.asarray(record.frames.values, float):
            size, direction = leading(W)
            found["denoiser_points"].append(size * parts(direction, run))
            f = np.asarray(model.denoise(W, x_t, model.prefactor(len(W))))
            found["removed"].append(beta / alpha * f)
        for C in np.asarray(record.class_frames.values, float):
            size, direction = leading(C)
            found["classifier_points"].append(size * parts(direction, run))
            found["gradient"].append([run.gradients(C, digit, patch[None])[0] for patch in x])
        held = {name: np.asarray(values) for name, values in found.items()}
        return {name: upright(v) if name.endswith("points") else v for name, v in held.items()}

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        chance = min(1.0, self.n / self.d)
        low, high = self.snr, self.high
        for snr in (low, high):
            here = record.sel(snr=snr)
            yield claim.above(
                f"denoiser-both-{'low' if snr == low else 'high'}",
                f"At SNR {snr:g} pictures and noise each hold at least twice of the denoiser's leading "
                "direction "
                f"that they would by chance, {chance:.3f} (lesser of both shares, median).",
                stats.median(here.denoiser_share.min("patch").values),
                TIMES_CHANCE * chance,
                control=("before training", stats.median(here.denoiser_start.min("patch").values)),
                expected=snr == low,
                because=""
                if snr == low
                else "its products with both are of one order, and pictures are so much longer than noise is "
                "in "
                "their span that the direction that gives these products is nearly theirs",
            )
        for name, snr, other, patch, words in (
            ("low", low, high, "signal", "pictures"),
            ("high", high, low, "noise", "noise"),
        ):
            share = record.classifier_share.sel(patch=patch)
            yield claim.below(
                f"classifier-one-{name}",
                f"At SNR {snr:g} the {words} hold less than that of the classifier's (share, median).",
                stats.median(share.sel(snr=snr).values),
                TIMES_CHANCE * chance,
                control=(f"at SNR {other:g}", stats.median(share.sel(snr=other).values)),
            )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.features.studies import _image_pictures

        return _image_pictures.film(self, record)


_WORDS = {
    "denoiser_share": ("share of the denoiser's leading direction in a span", "1"),
    "denoiser_start": ("the same before training", "1"),
    "classifier_share": ("share of the classifier's leading direction in a span", "1"),
    "denoiser_frame": ("training time of a frame", "time"),
    "classifier_frame": ("step of a frame", "step"),
    **{name: (words, "1") for name, words in STRIPS.items()},
}
