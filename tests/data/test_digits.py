"""The digits that ship with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saltus import data
from saltus.core.errors import BadInput
from saltus.data import _catalogue, _keep


def test_they_are_the_digits(cache: Path) -> None:
    digits = data.load("digits")
    assert digits.x.shape == (1797, 8, 8)
    assert digits.x.dtype == digits.y.dtype == np.uint8
    assert (digits.x.min(), digits.x.max(), digits.peak) == (0, 16, 16)
    assert np.bincount(digits.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert digits.x[0, 0].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]
    assert len(digits.test_x) == len(digits.test_y) == 0
    assert not cache.exists()  # nothing was fetched, nothing was written


def test_labels_belong_to_images(cache: Path) -> None:
    digits = data.load("digits")
    x, y = digits.x.reshape(-1, 64) / 16.0, digits.y
    centres = np.stack([x[:900][y[:900] == k].mean(0) for k in range(10)])
    nearest = ((x[900:, None] - centres) ** 2).sum(-1).argmin(1)
    assert (nearest == y[900:]).mean() > 0.85
    shuffled = np.random.default_rng(0).permutation(y[900:])
    assert (nearest == shuffled).mean() < 0.2


def test_they_are_small() -> None:
    assert _keep.kept(_catalogue.ENTRIES["digits"]).stat().st_size < 100_000


def test_damaged_digits_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "digits.npz"
    broken.write_bytes(_keep.kept(_catalogue.ENTRIES["digits"]).read_bytes()[:-100])
    monkeypatch.setattr(_keep, "kept", lambda entry: broken)
    with pytest.raises(BadInput, match="install saltus again"):
        data.load("digits")
