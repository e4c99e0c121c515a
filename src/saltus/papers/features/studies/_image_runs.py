"""Both networks trained on noisy images over many seeds, and what is kept of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.papers.features.studies._images import NoisyPictures, Run, describe

if TYPE_CHECKING:
    import xarray

    from saltus.core.lab import Lab

__all__ = ["FRAMES", "train_classifier", "train_denoiser"]

FRAMES = 9  # moments of the first run at which the weights themselves are kept
LOOKS = 60  # of the denoiser, evenly in time; the classifier's are even in the logarithm
STATIONARY = 1500  # evaluations that the way from the last step to the stationary point may take


def products(A: Any, n: int) -> tuple[Any, ...]:
    """Mean over points of the largest |<w_r, patch>|, and of the mean over neurons; of their pictures and
    of their noise; A [..., 2n, m]."""
    sizes = abs(A)
    largest, middle = sizes.max(-1), sizes.mean(-1)
    return tuple(x[..., half].mean(-1) for x in (largest, middle) for half in (slice(n), slice(n, None)))


def train_denoiser(study: NoisyPictures, lab: Lab) -> xarray.Dataset:
    """The denoiser over time, and the stationary point that it heads for [seed]."""
    path = lab.keep("denoiser", partial(_denoiser, study, lab))
    data = path.merge(lab.keep("stationary", partial(_stationary, study, lab, path)))
    describe(data, _DENOISER)
    return data.drop_vars("inside")


def _in_span(study: NoisyPictures) -> Any:
    """Patches, weights of the patches, first weights in coordinates of the span, and its bases, run by
    run."""
    from saltus.papers.features import world

    held = []
    for seed in range(study.seeds):
        run = study.prepare(seed)
        sample = world.sample_of([run.drawn.signal, run.drawn.noise], run.drawn.digit)
        X, W, basis = world.into_span(sample.X, run.W)
        held.append((X, sample.omega, W, basis))
    return tuple(np.stack(parts) for parts in zip(*held, strict=True))


def _denoiser(study: NoisyPictures, lab: Lab) -> xarray.Dataset:
    from saltus.papers.features.training import paced

    X, omega, W, bases = _in_span(study)
    alpha, beta = study.alpha_beta()
    times = np.linspace(0, study.horizon, LOOKS + 1)
    with lab.progress("denoisers") as tick:
        seen = paced.descend_paced(X, omega, W, times=times, alpha=alpha, beta=beta, progress=tick)
    shown = np.unique(np.linspace(0, LOOKS, FRAMES).round().astype(int))
    sizes = [
        products(x @ np.swapaxes(w, -1, -2), study.n) for x, w in zip(X[:, None], seen["W"], strict=True)
    ]
    signal, noise, mean_signal, mean_noise = np.moveaxis(np.asarray(sizes), 1, 0)
    final = seen["W"][:, -1] @ np.swapaxes(bases, -1, -2)
    return xr.Dataset(
        {
            "loss": (("seed", "time"), 1 + seen["loss"] / (2 * study.d)),
            "slope": (("seed", "time"), seen["slope"]),
            "tried": (("seed", "time"), seen["tried"]),
            "signal": (("seed", "time"), signal),
            "noise": (("seed", "time"), noise),
            "mean_signal": (("seed", "time"), mean_signal),
            "mean_noise": (("seed", "time"), mean_noise),
            "reached": ("seed", seen["reached"][:, -1]),
            "weights": (("seed", "neuron", "pixel"), np.asarray(final, np.float32)),
            "frames": (
                ("frame", "neuron", "pixel"),
                np.asarray(seen["W"][0, shown] @ bases[0].T, np.float32),
            ),
            "inside": (("seed", "neuron", "coordinate"), seen["W"][:, -1]),
        },
        coords={"time": times, "frame": times[shown], "seed": np.arange(study.seeds)},
    )


def _stationary(study: NoisyPictures, lab: Lab, path: xarray.Dataset) -> xarray.Dataset:
    from saltus.papers.features.training import rest

    X, omega, _, bases = _in_span(study)
    alpha, beta = study.alpha_beta()
    with lab.progress("stationary points") as tick:
        end = rest.come_to_rest(
            X, omega, path.inside.values, alpha=alpha, beta=beta, slope=1e-5, trials=STATIONARY, progress=tick
        )
    A = X @ np.swapaxes(end["W"], -1, -2)
    signal, noise, *_ = products(A, study.n)
    largest, each = abs(A).max(-1), []
    for seed in range(study.seeds):
        run = study.prepare(seed)
        of_class = run.index(run.drawn.digit)
        parts = largest[seed, : study.n], largest[seed, study.n :]
        each.append([[part[of_class == k].mean() for k in range(len(study.classes))] for part in parts])
    by_class = np.asarray(each)
    return xr.Dataset(
        {
            "end_signal": ("seed", signal),
            "end_noise": ("seed", noise),
            "end_slope": ("seed", end["slope"]),
            "end_tried": ("seed", end["tried"]),
            "end_loss": ("seed", 1 + end["loss"] / (2 * study.d)),
            "class_signal": (("seed", "class"), by_class[:, 0]),
            "class_noise": (("seed", "class"), by_class[:, 1]),
            "end_weights": (("seed", "neuron", "pixel"),
                            np.asarray(end["W"] @ np.swapaxes(bases, -1, -2), np.float32)),
        },
        coords={"seed": np.arange(study.seeds), "class": list(study.classes)},
    )  # fmt: skip


def train_classifier(study: NoisyPictures, lab: Lab) -> xarray.Dataset:
    """The classifier over its steps."""
    data = lab.keep("classifier", partial(_classifier, study, lab))
    describe(data, _CLASSIFIER)
    return data


def _classifier(study: NoisyPictures, lab: Lab) -> xarray.Dataset:
    runs = [study.prepare(seed) for seed in range(study.seeds)]
    at = np.unique(np.concatenate([[0], np.geomspace(1, study.class_steps, 30).round()])).astype(int)
    shown = np.unique(np.linspace(0, len(at) - 1, FRAMES).round().astype(int))
    with lab.progress("classifiers") as tick:
        paths, bases = _train(study, runs, at, tick)
    seen: dict[str, list[Any]] = {}
    final, frames = [], None
    for number, (run, path, basis) in enumerate(zip(runs, paths, bases, strict=True)):
        for name, value in _watch(run, path, basis, study.n).items():
            seen.setdefault(name, []).append(value)
        # All steps lie in the span of the patches; the rest of the first weights stays as it was.
        final.append(run.C + (path[-1] - path[0]) @ basis.T)
        if number == 0:
            frames = run.C + (path[shown] - path[0]) @ basis.T
    return xr.Dataset(
        {
            **{name: (("seed", "step"), values) for name, values in seen.items()},
            "class_weights": (("seed", "filter", "pixel"), np.asarray(final, np.float32)),
            "class_frames": (("class_frame", "filter", "pixel"), np.asarray(frames, np.float32)),
        },
        coords={"step": at, "class_frame": at[shown], "seed": np.arange(study.seeds)},
    )


def _train(study: NoisyPictures, runs: list[Run], at: Any, tick: Callable[[int, int], None]) -> Any:
    """Weights at every look [run, t, neurons, D] in coordinates of the patches' span, and the bases."""
    from saltus.papers.features import training, world

    samples, start, bases = [], [], []
    for run in runs:
        sample = world.sample_of([run.drawn.signal, run.drawn.noise], run.labels(run.drawn.digit))
        basis = np.linalg.qr(sample.X.T)[0]
        samples.append(sample._replace(X=sample.X @ basis))
        bases.append(basis)
        start.append(run.C @ basis)
    data, W0 = world.stack(samples), np.stack(start)
    how: dict[str, Any] = dict(eta=study.class_eta, at=at, block=1, progress=tick)
    if not study.two:
        V = np.stack([run.V for run in runs])
        return training.train_classes(data, V, W0, **how)["W"], bases
    halves = W0.reshape(len(runs), 2, study.neurons, -1)
    found = training.train_classifier(data, halves, **how)["W"]
    return found.reshape(*found.shape[:2], 2 * study.neurons, -1), bases


def _watch(run: Run, path: Any, basis: Any, n: int) -> dict[str, Any]:
    """Loss, accuracies and products of one run at every look."""
    d = run.drawn
    moved = path - path[0]
    seen = []
    for kind in ("train", "test"):
        signal, noise, digit = (d.signal, d.noise, d.digit) if kind == "train" else d[3:]
        fixed, inside = [p @ run.C.T for p in (signal, noise)], [p @ basis for p in (signal, noise)]
        for k, step in enumerate(moved):
            A = [f + p @ step.T for f, p in zip(fixed, inside, strict=True)]
            out = run.read_out(A[0] ** 2 + A[1] ** 2)
            hit = run.right(out, digit).mean()
            if kind == "train":
                sizes = products(np.concatenate(A), n)
                seen.append([run.loss(out, digit), hit, *sizes])
            else:
                seen[k].append(hit)
    names = ("class_loss", "train_accuracy", "learnt_signal", "learnt_noise", "learnt_mean_signal",
             "learnt_mean_noise", "test_accuracy")  # fmt: skip
    return {name: np.asarray(seen)[:, i] for i, name in enumerate(names)}


_DENOISER = {
    "loss": ("expected loss over both patches, over that with no network", "1"),
    "slope": ("norm of the gradient of the loss summed over coordinates", "1"),
    "tried": ("evaluations of loss and gradient so far", "1"),
    "signal": ("denoiser: mean over points of the largest |<w_r, picture>|", "1"),
    "noise": ("denoiser: mean over points of the largest |<w_r, noise>|", "1"),
    "mean_signal": ("denoiser: mean over points and neurons of |<w_r, picture>|", "1"),
    "mean_noise": ("denoiser: mean over points and neurons of |<w_r, noise>|", "1"),
    "reached": ("training time reached", "time"),
    "weights": ("the denoiser's weights at the end", "1"),
    "frames": ("the denoiser's weights along the first run", "1"),
    "end_weights": ("the denoiser's weights at the stationary point", "1"),
    "end_signal": ("signal at the stationary point", "1"),
    "end_noise": ("noise at the stationary point", "1"),
    "end_slope": ("norm of the gradient there", "1"),
    "end_tried": ("evaluations on the way there", "1"),
    "end_loss": ("loss there", "1"),
    "class_signal": ("signal at the stationary point, points of one class", "1"),
    "class_noise": ("noise at the stationary point, points of one class", "1"),
    "time": ("training time, steps on the loss summed over coordinates added up", "time"),
    "frame": ("training time of a kept moment", "time"),
}
_CLASSIFIER = {
    "class_loss": ("training loss of the classifier", "1"),
    "train_accuracy": ("share of training points on the right side", "1"),
    "test_accuracy": ("share of test points on the right side", "1"),
    "learnt_signal": ("classifier: mean over points of the largest |<w_r, picture>|", "1"),
    "learnt_noise": ("classifier: mean over points of the largest |<w_r, noise>|", "1"),
    "learnt_mean_signal": ("classifier: mean over points and neurons of |<w_r, picture>|", "1"),
    "learnt_mean_noise": ("classifier: mean over points and neurons of |<w_r, noise>|", "1"),
    "class_weights": ("the classifier's first layer at the end", "1"),
    "class_frames": ("the classifier's first layer along the first run", "1"),
    "step": ("step of the classifier", "step"),
    "class_frame": ("step of a kept moment", "step"),
}
