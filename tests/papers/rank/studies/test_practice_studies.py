"""The studies of trained transformers at tiny settings, from training to figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus
from saltus.core import study as registry
from saltus.core.errors import BadInput
from saltus.core.lab import Lab
from saltus.papers.rank.studies import language, lora, pairs, scales, spectra, stable

NET: dict[str, Any] = dict(depth=2, heads=2, width=8, head=2, batch=64, seeds=2, looks=32)
IMAGES: dict[str, Any] = dict(**NET, mlp=8, patch=4, points=128, epochs=20, warm=1)
SWEEP: dict[str, Any] = dict(**{**IMAGES, "seeds": 1}, scales=(1.0, 0.5, 0.2))
LORA: dict[str, Any] = dict(
    tasks=("parity",), scales=(1.0, 0.3), ranks=(1, 2), seeds=1, points=64, epochs=4, depth=1, heads=1,
    head=4, width=4,
)  # fmt: skip
ALL: list[tuple[Any, dict[str, Any]]] = [
    (spectra.OneHead, IMAGES),
    (spectra.EveryLayer, IMAGES),
    (spectra.BothProducts, IMAGES),
    (stable.AdamRanks, IMAGES),
    (scales.ValuesByScale, SWEEP),
    (scales.RankByScale, SWEEP),
    (language.LanguageRanks, dict(**{**NET, "batch": 8}, context=8, lines=100)),
    (lora.Adapters, LORA),
]
SLOW: list[tuple[Any, dict[str, Any]]] = [
    (stable.SgdRanks, IMAGES),
    (pairs.Pairs, dict(data=("digits",), epochs=3, seeds=1)),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One store, so that figures of one training train once."""
    root = tmp_path_factory.mktemp("store")
    return lambda: Lab(root=root)


def told(one: Any, lab: Lab) -> tuple[Any, list[Any]]:
    import matplotlib.pyplot as plt

    record = one.run(lab)
    law = one.law(record)
    claims = list(one.claims(record, law))
    json.dumps([c.as_json() for c in claims], allow_nan=False)
    assert len({c.id for c in claims}) == len(claims) > 0
    assert all(c.expected or c.because for c in claims)
    assert all(np.isfinite(c.estimate.value) for c in claims)
    figure = one.draw(record, law)
    assert figure.axes
    plt.close(figure)
    for name in [*record.data_vars, *record.coords]:
        assert record[name].dtype != object, name
    return record, claims


@pytest.mark.parametrize(
    ("kind", "changes"),
    [*ALL, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_small_runs_give_claims_and_a_figure(
    kind: Any, changes: dict[str, Any], lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "lines" in changes:
        changes = dict(changes)
        short(monkeypatch, changes.pop("lines"))
    told(kind(**changes), lab())


def short(monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    """Only so many lines of the text."""
    from saltus import data

    load = data.load

    class Held:
        def __init__(self, name: str) -> None:
            whole = load(name)
            self.parts: dict[str, str] = {}
            self.whole = "\n".join(whole.whole.splitlines()[:lines])  # type: ignore[union-attr]

    monkeypatch.setattr(data, "load", lambda name, *_: Held(name))


def test_every_practice_study_is_here() -> None:
    ids = {"fig1", "fig4", "fig5", "fig6", "fig7", "fig12", "fig14", "fig15", "fig20", "lora"}
    assert {registry.info(f"rank/{i}").cls for i in ids} == {kind for kind, _ in [*ALL, *SLOW]}


def test_a_record_holds_what_it_says(lab: Any) -> None:
    """Stable ranks are those of the spectra kept; nothing has moved before the first step."""
    record = stable.AdamRanks(**IMAGES).run(lab())
    assert record.sizes["member"] == 2
    assert (record.moved.isel(step=0) == 0).all()
    assert (record.moved.isel(step=-1) > 0).all()
    last = record.spectrum.isel(shown=-1)
    by_hand = (last.values.astype(float) ** 2).sum(-1)
    np.testing.assert_allclose(record["rank"].isel(step=-1).values, by_hand, rtol=1e-4)
    values = record["values"].isel(step=-1).values
    np.testing.assert_allclose(values[..., :4] / values[..., :1], last.values[..., :4], rtol=1e-4)
    assert np.isfinite(record.random_rank.isel(step=slice(1, None)).values).all()
    assert (record.loss_train.isel(step=-1) < record.loss_train.isel(step=0)).all()
    # Seeds are draws of their own.
    assert not np.allclose(record.start[0], record.start[1])


def test_the_same_seed_alone_or_among_others(lab: Any) -> None:
    """What one network of several does is what it does alone."""
    several = stable.AdamRanks(**IMAGES).run(lab())
    alone = stable.AdamRanks(**{**IMAGES, "seeds": 1}).run(lab())
    np.testing.assert_allclose(alone["rank"][0, :, 1:5], several["rank"][0, :, 1:5], rtol=2e-2)
    np.testing.assert_array_equal(alone.start[0], several.start[0])


@pytest.mark.parametrize(
    ("kind", "wrong", "says"),
    [
        (spectra.OneHead, dict(warm=50), "warm must be at most"),
        (spectra.OneHead, dict(data="nothere"), "data"),
        (spectra.OneHead, dict(epochs=0), "epochs"),
        (scales.RankByScale, dict(scales=(1.0, 0.5)), "three or more"),
        (scales.RankByScale, dict(scales=(0.1, 0.5, 1.0)), "descending"),
        (language.LanguageRanks, dict(tokens=100), "256 or more"),
        (language.LanguageRanks, dict(warm=3.0), "warm must be at most"),
        (pairs.Pairs, dict(data=("digits", "digits")), "twice"),
        (pairs.Pairs, dict(data=("nothere",)), "nothere"),
        (lora.Adapters, dict(tasks=("nothere",)), "nothere"),
        (lora.Adapters, dict(ranks=(2, 1)), "ranks go up"),
        (lora.Adapters, dict(ranks=(1, 64)), "ranks go up"),
        (lora.Adapters, dict(batch=1024), "batch must be at most"),
    ],
)
def test_bad_settings_are_one_line(kind: Any, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        kind(**wrong)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "says"), [(dict(patch=3), "patch must divide"), (dict(batch=4096), "batch must be at most")]
)
def test_what_only_the_data_can_refuse(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        spectra.OneHead(**{**IMAGES, **changes}).run(Lab())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["fig1", "fig4", "fig5", "fig6", "fig7", "fig12", "fig14", "fig15", "fig20", "lora"]
)
def test_defaults_come_out_as_documented(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = Path(tmp_path_factory.getbasetemp()) / "practice"
    outcome = saltus.run(registry.info(f"rank/{name}").cls(), out=store)
    assert not [c.id for c in outcome.claims if not c.as_documented]
