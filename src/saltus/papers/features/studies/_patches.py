"""The trainings of `features/patches`: both tasks on data of many patches, feature by feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np, xr
from saltus.papers.features.studies._phase import PACE

if TYPE_CHECKING:
    import xarray

    from saltus.papers.features.many import ManyPatch
    from saltus.papers.features.studies.patches import Patches
    from saltus.papers.features.world import Sample

GROUPS = ("common", "rare", "weak", "noise")
LEVEL = 0.15  # saturation: the first mean product over this
SHOWN = 1.5  # training time looked at, over that of the last blow-up
TRIALS = 2000  # evaluations that the way from there to rest may take
LOOKS = 200
FRESH = 400  # new points that hold one feature alone
WORDS = {
    "strength": "omega |x|^2 of the rare and of the weak feature over that of the common one",
    "pull": "<x̄, x_p>, mean over the patches of a feature",
    "early": "denoiser: mean product before saturation",
    "end": "denoiser: mean product at rest",
    "solved": "denoiser: product at the solved stationary point",
    "gap": "denoiser: largest distance of a product from the solved point at the end, over the largest "
    "product",
    "slope": "denoiser: norm of the gradient at the end",
    "spread": "denoiser: largest coefficient of variation of a product over neurons at the end",
    "gain": "share of the error of x_t/alpha that the denoiser takes away",
    "gain_start": "the same before training",
    "gain_unseen": "the same of a direction that the data do not have",
    "fitted": "classifier: largest product when the loss is first below 0.1, mean over the classes",
    "reached": "classifier: the same when the common feature's is first over 1",
    "last": "classifier: the same at the end of training",
    "alone": "classifier: accuracy at new points that hold this feature alone",
    "probe": "accuracy there of a linear probe on the denoiser's neurons",
    "probe_start": "the same of the untrained network",
    "probe_shuffled": "the same with labels in another order",
    "path": "denoiser: mean product",
    "class_path": "classifier: largest product, mean over the classes",
}


def groups(world: ManyPatch) -> list[Any]:
    """Rows of the patches of each feature, and of all noises."""
    found = [slice(2 * k, 2 * k + 2) for k in range(len(world.mu))]
    return [*found, slice(2 * len(world.mu), None)]


def by_group(world: ManyPatch, values: Any) -> Any:
    """Means [..., group] over the patches of a group of what is known patch by patch [..., P]."""
    return np.stack([values[..., g].mean(-1) for g in groups(world)], -1)


def draws(study: Patches, world: ManyPatch, task: str) -> tuple[Sample, Any]:
    """Data and starts of all seeds, stacked, in coordinates of their span."""
    from saltus.papers.features.world import into_span, stack, start

    heads = 1 if task == "denoiser" else 2
    samples, starts = [], []
    for seed in range(study.seeds):
        rng = np.random.default_rng([study.base, seed, heads])
        sample = world.draw(rng)
        X, W0, _ = into_span(sample.X, start(rng, heads * study.m, world.d, study.sigma0))
        samples.append(sample._replace(X=X))
        starts.append(W0 if heads == 1 else W0.reshape(2, study.m, -1))
    return stack(samples), np.stack(starts)


def own_products(W: Any, p: dict[str, Any]) -> dict[str, Any]:
    """Of a classifier: the largest |<w_jr, x_p>| over the neurons of the patch's own class, and the loss."""
    from saltus._jax import jax, jnp
    from saltus.papers.features import model

    f, A = model.classifier_outputs(W, p["X"], p["members"])
    of_plus = (p["labels"] @ p["members"]) > 0  # every patch belongs to points of one class
    own = jnp.where(of_plus, jnp.abs(A[0]).max(-1), jnp.abs(A[1]).max(-1))
    return {"largest": own, "loss": jnp.mean(jax.nn.softplus(-p["labels"] * f))}


def denoiser(study: Patches, world: ManyPatch, *, views: bool = False) -> xarray.Dataset:
    """Denoisers of all seeds to rest: products of each group [seed, group]."""
    from saltus.papers.features.law import stage_one, stationary
    from saltus.papers.features.many import pull
    from saltus.papers.features.training import paced, rest

    alpha, beta = study.noise()
    sample, start = draws(study, world, "denoiser")
    solved = np.stack(
        [
            stationary.solve(o, X @ X.T, study.m, alpha, beta).a
            for X, o in zip(sample.X, sample.omega, strict=True)
        ]
    )
    xbar = stage_one.mean_patch(sample.X, sample.omega)
    last = float(stage_one.blow_up(start, xbar, 4 * alpha * beta * study.m**-0.5).max())
    times = np.linspace(0, SHOWN * last, LOOKS)
    how: dict[str, Any] = dict(alpha=alpha, beta=beta)
    W = paced.descend_paced(sample.X, sample.omega, start, times=times, **how)["W"]
    end = rest.come_to_rest(sample.X, sample.omega, W[:, -1], slope=1e-6, trials=TRIALS, **how)
    A = np.einsum("std,spd->stp", W.mean(2), sample.X)  # means over neurons [seed, t, P]
    last_A = np.einsum("sd,spd->sp", end["W"].mean(1), sample.X)
    first, rows = np.argmax(A.max(-1) > LEVEL, axis=1), np.arange(study.seeds)
    found = {
        "pull": pull(sample.X, sample.omega),
        "early": A[rows, first],
        "end": last_A,
        "solved": solved,
    }
    data = xr.Dataset({name: (("seed", "group"), by_group(world, v)) for name, v in found.items()})
    each = end["W"] @ np.swapaxes(sample.X, -1, -2)  # [seed, m, P]
    data["gap"] = ("seed", np.abs(last_A - solved).max(1) / solved.max(1))
    data["slope"] = ("seed", end["slope"])
    data["spread"] = ("seed", (each.std(1) / np.abs(each.mean(1))).max(1))
    if not views:
        return data
    data = data.merge(_views(study, world, sample, start, end["W"]))
    data["path"] = (("seed", "group", "clock"), np.moveaxis(by_group(world, A), 1, 2))
    return data.assign_coords(clock=times / last)


def _views(study: Patches, world: ManyPatch, sample: Sample, start: Any, final: Any) -> xarray.Dataset:
    """What the trained denoisers do with a feature, and what a linear probe reads off their neurons."""
    from saltus.papers.features.studies._image_views import gain

    alpha, beta = study.noise()
    K = len(world.mu)
    names = ("gain", "gain_start", "gain_unseen", "probe", "probe_start", "probe_shuffled")
    found: dict[str, list[Any]] = {name: [] for name in names}
    for seed, (X, W0, W) in enumerate(zip(sample.X, start, final, strict=True)):
        # The error of what lies outside the span is not the network's: shares are of all d coordinates.
        share = X.shape[1] / world.d
        found["gain"].append(share * by_group(world, gain(W, X, alpha, beta)))
        found["gain_start"].append(share * by_group(world, gain(W0, X, alpha, beta)))
        found["gain_unseen"].append(share * gain(W, np.zeros((1, X.shape[1])), alpha, beta)[0])
        rng = np.random.default_rng([study.base, seed, 9])
        right = []
        for k in range(K):
            alone = tuple(i == k for i in range(K))
            parts = [world.fresh(rng, FRESH, X, alone) for _ in range(2)]
            y = [labels for _, labels in parts]
            h = [((x @ W.T) ** 2).sum(1) for x, _ in parts]
            before = [((x @ W0.T) ** 2).sum(1) for x, _ in parts]
            right.append([probe(h, y), probe(before, y), probe(h, [rng.permutation(v) for v in y])])
        for name, values in zip(names[3:], zip(*right, strict=True), strict=True):
            found[name].append([*values, np.nan])
    dims = {"gain_unseen": ("seed",)}
    return xr.Dataset({n: (dims.get(n, ("seed", "group")), np.asarray(v)) for n, v in found.items()})


def probe(h: Any, y: Any) -> float:
    """Accuracy on the second set of the least-squares readout fitted to the first; h: two of [points, m]."""
    middle, size = h[0].mean(0), h[0].std(0) + 1e-300
    Z = [np.column_stack([(v - middle) / size, np.ones(len(v))]) for v in h]
    ridge = 1e-6 * len(Z[0]) * np.eye(Z[0].shape[1])
    weights = np.linalg.solve(Z[0].T @ Z[0] + ridge, Z[0].T @ y[0])
    return float((np.sign(Z[1] @ weights) == y[1]).mean())


def classifier(study: Patches, world: ManyPatch, *, views: bool = False) -> xarray.Dataset:
    """Classifiers of all seeds: largest products of each group [seed, group]."""
    from saltus.papers.features import model, training

    sample, start = draws(study, world, "classifier")
    eta = PACE * study.m / (sample.omega * (sample.X**2).sum(-1)).max()
    steps = int(study.classifier_span / PACE)
    at = np.unique(np.linspace(0, steps, LOOKS).astype(int))
    how: dict[str, Any] = dict(eta=eta)
    seen = training.train_classifier(sample, start, at=at, look=own_products, **how)
    largest, rows = by_group(world, seen["largest"]), np.arange(study.seeds)  # [seed, t, group]

    def when(good: Any) -> Any:
        some = good.any(1)[:, None]
        return np.where(some, largest[rows, np.argmax(good, axis=1)], np.nan)

    found = {
        "fitted": when(seen["loss"] < 0.1),
        "reached": when(largest[:, :, 0] > 1),
        "last": largest[:, -1],
    }
    data = xr.Dataset({name: (("seed", "group"), v) for name, v in found.items()})
    if not views:
        return data
    K, right = len(world.mu), []
    final = training.train_classifier(sample, start, at=[steps], **how)["W"][:, 0]
    for seed, W in enumerate(final):
        rng = np.random.default_rng([study.base, seed, 8])
        row = []
        for k in range(K):
            x, y = world.fresh(rng, FRESH, sample.X[seed], tuple(i == k for i in range(K)))
            row.append(float(model.accuracy(W, x, y)))
        right.append([*row, np.nan])
    data["alone"] = (("seed", "group"), right)
    data["class_path"] = (("seed", "group", "k"), np.moveaxis(largest, 1, 2))
    return data.assign_coords(k=at * PACE)
