"""Views of networks trained on noisy images: what they do to single pictures, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np, xr
from saltus.core import claim, stats
from saltus.papers.features.studies import _image_views
from saltus.papers.features.studies._images import NoisyPictures, describe

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab

__all__ = ["TWICE", "Rows"]

TWICE = math.log(2)


@dataclass(frozen=True)
class Rows(NoisyPictures):
    """Views of the trainings of another figure."""

    trained: ClassVar[type]
    gradients: ClassVar[bool] = True

    def run(self, lab: Lab) -> xarray.Dataset:
        made = lab.record_of(self.shared(self.trained))
        alpha, beta = self.alpha_beta()
        seen: dict[str, list[Any]] = {}
        shown: dict[str, Any] = {}
        for seed in range(self.seeds):
            run = self.prepare(seed)
            d, W = run.drawn, made.weights.values[seed]
            rng = np.random.default_rng([self.base, seed, 1])
            views = {
                "gain_signal": (W, d.signal),
                "gain_noise": (W, d.noise),
                "gain_test_signal": (W, d.test_signal),
                "gain_test_noise": (W, d.test_noise),
                # The same pixels of every test picture in an order that no picture has.
                "gain_shuffled": (W, d.test_signal[:, rng.permutation(self.d)]),
            }
            found = {name: _image_views.gain(W, X, alpha, beta) for name, (W, X) in views.items()}
            if self.gradients:
                C = made.class_weights.values[seed]
                train, test = (d.digit, d.signal, d.noise), (d.test_digit, d.test_signal, d.test_noise)
                other = self.prepare((seed + 1) % max(self.seeds, 2)).C
                for name, weights, points in (
                    ("odds", C, train), ("odds_start", run.C, train), ("odds_other", other, train),
                    ("odds_test", C, test), ("odds_test_start", run.C, test), ("odds_test_other", other,
                    test),
                ):  # fmt: skip
                    found[name] = _image_views.odds(run, weights, *points)
            for name, values in found.items():
                seen.setdefault(name, []).append(values)
            if seed == 0:
                chosen = self.chosen(run)
                C = made.class_weights.values[0] if self.gradients else run.C
                shown = _image_views.pictures(run, W, C, chosen, alpha, beta, rng)
                shown["digit"] = run.drawn.test_digit[chosen]
        return self.record(seen, shown).assign_attrs(made.attrs)

    def chosen(self, run: Any) -> Any:
        """Test points drawn: the first of each class, six of them, or one of each of many classes."""
        each = max(1, 6 // len(self.classes))
        return np.concatenate([np.flatnonzero(run.drawn.test_digit == k)[:each] for k in self.classes])

    def record(self, seen: dict[str, list[Any]], shown: dict[str, Any]) -> xarray.Dataset:
        digit = shown.pop("digit")
        data = xr.Dataset(
            {
                **{n: (("seed", "test_point" if "test" in n or "shuffled" in n else "point"), v)
                   for n, v in seen.items()},
                **{n: (("picture", "patch", "pixel"), np.asarray(v, np.float32)) for n, v in shown.items()},
                "digit": ("picture", digit),
            },
            coords={"patch": ["signal", "noise"], "seed": np.arange(self.seeds)},
        )  # fmt: skip
        describe(data, {str(name): _WORDS[str(name)] for name in data.data_vars})
        return data

    # Claims.

    def denoises(self, record: xarray.Dataset, **how: Any) -> Iterator[Claim]:
        """What the denoiser takes away of the error of x_t / alpha, its mean over points, run by run."""
        gains = [str(n) for n in record.data_vars if str(n).startswith("gain_")]
        mean = {n: record[n].values.mean(1) for n in gains}
        shuffled = ("test pictures with their pixels in another order", stats.median(mean["gain_shuffled"]))
        for name, words, control in (
            ("signal", "training pictures", shuffled),
            ("noise", "training noise", ("new noise", stats.median(mean["gain_test_noise"]))),
            ("test_signal", "test pictures", shuffled),
        ):
            yield claim.above(
                f"denoises-{name.replace('_', '-')}",
                f"The denoiser is nearer to the {words} than x_t/α is: it takes a part of the error away "
                "(median of the runs' means).",
                stats.median(mean[f"gain_{name}"]),
                0.0,
                control=control,
                **how.get(name, {}),
            )
        yield claim.below(
            "memorised",
            "On new noise it does harm: the noise it knows is the training set's (the same, median).",
            stats.median(mean["gain_test_noise"]),
            0.0,
            control=("training noise", stats.median(mean["gain_noise"])),
            **how.get("memorised", {}),
        )
        bound = self.neurons / self.d
        largest = max(float(record[n].max()) for n in mean)
        count = sum(record[n].size for n in mean)
        yield claim.below(
            "little",
            f"Nowhere is it more than m/d = {bound:.3f} nearer, since its output has m dimensions: what is "
            "seen in a denoised picture is in x_t already (largest of all patches).",
            stats.exact(largest, count),
            bound,
            control=("the share of the error that is left", stats.exact(1 - largest, count)),
        )

    def share(self, record: xarray.Dataset, name: str = "odds_test", side: float = 1.0) -> Any:
        """The median over points of the share of the gradient's energy in the noise patch, run by run."""
        return np.median(1 / (1 + np.exp(-side * record[name].values)), axis=1)

    def moved(self, record: xarray.Dataset, which: str = "odds_test", other: str = "start") -> Any:
        """By how much training moves ln of the odds of noise against signal; the median over points, run
        by run."""
        return np.median(record[which].values - record[f"{which}_{other}"].values, axis=1)

    def untrained(self, record: xarray.Dataset, which: str = "odds_test") -> Any:
        """The same between two untrained networks."""
        start, other = (record[f"{which}_{o}"].values for o in ("start", "other"))
        return np.median(other - start, axis=1)

    def on_noise(self, record: xarray.Dataset) -> Iterator[Claim]:
        yield claim.above(
            "gradient-on-noise",
            "On test pictures nine tenths of the energy of the classifier's input gradient lie in the noise "
            "patch (median of the runs' medians).",
            stats.median(self.share(record)),
            0.9,
            control=("in the picture", stats.median(self.share(record, side=-1.0))),
        )
        yield claim.above(
            "from-training",
            "Training put them there: it doubles the odds of noise against picture that the untrained "
            "network has (ln, median; the untrained network's share is "
            f"{np.median(self.share(record, 'odds_test_start')):.3f}).",
            stats.median(self.moved(record)),
            TWICE,
            control=("another untrained network", stats.median(self.untrained(record))),
            expected=False,
            because="the gradient is linear in the input, which has its energy in the noise patch, and the "
            "noise of a test picture is new to the network: an untrained one shows the same",
        )
        yield claim.above(
            "from-training-on-training-pictures",
            "On training pictures, whose noise was learnt, training doubles the odds (ln, median).",
            stats.median(self.moved(record, "odds")),
            TWICE,
            control=("on test pictures", stats.median(self.moved(record))),
        )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.features.studies import _image_pictures

        return _image_pictures.rows(self, record)


_GAIN = "part of the error of x_t/alpha that the denoiser takes away, "
_ODDS = "ln of the input gradient's energy, noise patch over picture, "
_WORDS = {
    "gain_signal": (_GAIN + "training pictures", "1"),
    "gain_noise": (_GAIN + "training noise", "1"),
    "gain_test_signal": (_GAIN + "test pictures", "1"),
    "gain_test_noise": (_GAIN + "new noise", "1"),
    "gain_shuffled": (_GAIN + "test pictures, pixels in another order", "1"),
    "odds": (_ODDS + "training points", "1"),
    "odds_start": (_ODDS + "training points, before training", "1"),
    "odds_other": (_ODDS + "training points, another untrained network", "1"),
    "odds_test": (_ODDS + "test points", "1"),
    "odds_test_start": (_ODDS + "test points, before training", "1"),
    "odds_test_other": (_ODDS + "test points, another untrained network", "1"),
    "shown": ("test points", "1"),
    "gradient": ("derivative of the own class's output by the point", "1"),
    "plain": ("x_t/alpha", "1"),
    "denoised": ("(x_t - beta f)/alpha", "1"),
    "removed": ("beta f/alpha", "1"),
    "digit": ("digit shown", "1"),
}
