from __future__ import annotations

from pathlib import Path

import data_files
import pytest
from data_files import Client

from saltus.data import _catalogue


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; no client can be found."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("SALTUS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "data"


@pytest.fixture
def small(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`mnist` stands for fourteen pictures."""
    monkeypatch.setitem(_catalogue.ENTRIES, "mnist", data_files.small_mnist())


@pytest.fixture
def client(tmp_path: Path, cache: Path) -> Client:
    """Puts a stand-in for a registry client on the path; returns the file that lists how it was called."""

    def make(name: str, does: str, payload: bytes = b"", as_name: str = "it.tgz") -> Path:
        calls, held = tmp_path / f"{name}.calls", tmp_path / f"{name}.payload"
        held.write_bytes(payload)
        script = tmp_path / "bin" / name
        script.write_text(
            f'#!/bin/sh\nPATH=/usr/bin:/bin\necho "$@" >> {calls}\nPAYLOAD={held}\nNAME={as_name}\n{does}\n'
        )
        script.chmod(0o755)
        return calls

    return make
