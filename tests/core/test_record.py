from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import saltus
from saltus.core import arrays, record
from saltus.core.errors import BadInput

PART = {"part": "x"}
any_array = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.uint16, np.bool_, np.dtype("U3")]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@settings(max_examples=20)
@given(any_array)
def test_any_array_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray
) -> None:
    folder = tmp_path_factory.mktemp("record")
    dims = tuple(f"d{i}" for i in range(values.ndim))
    made = arrays.tidy(xr.Dataset({"a": (dims, values)}))
    assert (made.a.values == values).all() or values.dtype.kind == "f"
    values = values if values.dtype.kind not in "Uf" else arrays.one_nan(made).a.values
    record.write(folder / "one", made, PART)
    held = record.read(folder / "one").data
    assert held.a.dtype == values.dtype
    assert held.a.values.tobytes() == np.ascontiguousarray(values).tobytes()
    assert held.a.dims == dims
    # Storing what was read back writes the same files: resumed and uninterrupted runs cannot differ.
    record.write(folder / "two", held, PART)
    assert tree(folder / "one") == tree(folder / "two")


def test_nothing_but_nan_comes_back_whatever_its_sign(tmp_path: Path) -> None:
    for values in (np.full(3, -np.nan), np.asarray([1.0, -np.nan]), np.asarray(-np.nan)):
        dims = ("x",) * values.ndim
        record.write(tmp_path / str(values.size), xr.Dataset({"a": (dims, values)}), PART)
        np.testing.assert_array_equal(record.read(tmp_path / str(values.size)).data.a, values)
        (tmp_path / str(values.size)).rename(tmp_path / f"{values.size}-{values.ndim}")


def test_a_word_picked_from_longer_ones_comes_back(tmp_path: Path) -> None:
    made = xr.Dataset({"a": ("x", [1.0, 2.0])}, coords={"x": ["mu", "mu and sigma"]}).isel(x=0)
    record.write(tmp_path / "one", made, PART)
    assert record.read(tmp_path / "one").data.x.item() == "mu"


def test_everything_a_study_makes_comes_back(Plain: Any, tmp_path: Path) -> None:
    made = Plain().part(0)
    record.write(tmp_path / "one", made, PART)
    held = record.read(tmp_path / "one").data
    xr.testing.assert_identical(held, arrays.tidy(made))
    assert held.x.attrs["units"] == "seconds"
    assert held.odd.values.tobytes() == made.odd.values.tobytes()
    assert held.label.values.tolist() == ["é", "longer ☃"]
    assert not any(v.encoding for v in held.variables.values())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (lambda: xr.Dataset({"a/b": 1.0}), "named 'a/b'"),
        (lambda: xr.Dataset({"": 1.0}), "named ''"),
        (lambda: xr.Dataset({"..": 1.0}), "named '..'"),
        (lambda: xr.Dataset({"a\0": 1.0}), "named 'a"),
        (lambda: xr.Dataset({"a" * 300: 1.0}), "named 'aaa"),
        (lambda: xr.Dataset({3: 1.0}), "names are words"),
        (lambda: xr.Dataset({"a": 1.0}, attrs={"made": print}), "'made' of the dataset's attributes"),
        (lambda: xr.Dataset({"a": ((), 1.0, {"of": {1, 2}})}), "'of' of the attributes of 'a', a set"),
        (
            lambda: xr.Dataset(coords={"a": ("t", [1]), "b": ("t", [2])}).set_index(t=["a", "b"]),
            "many-levelled index",
        ),
        (lambda: 3, "an xarray Dataset, not int"),
    ],
)  # fmt: skip
def test_what_no_record_can_hold(data: Callable[[], Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=says):
        record.write(tmp_path / "one", data(), PART)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dates", [np.array(["2025-01-01"], "M8[ns]"), np.array([1], "m8[ns]")])
def test_dates_are_refused(dates: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="store them as numbers"):
        record.write(tmp_path / "one", xr.Dataset({"a": ("t", dates)}), PART)
    assert not (tmp_path / "one").exists()


def test_digest_sees_every_bit() -> None:
    base = xr.Dataset({"a": ("t", [0.0, 1.0])})
    others = [
        xr.Dataset({"a": ("t", [-0.0, 1.0])}),
        xr.Dataset({"b": ("t", [0.0, 1.0])}),
        xr.Dataset({"a": ("s", [0.0, 1.0])}),
        xr.Dataset({"a": ("t", np.array([0.0, 1.0], np.float32))}),
        base.assign_coords(t=[0, 1]),
    ]
    assert len({arrays.digest(d) for d in [base, *others]}) == 6


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    Plain = request.getfixturevalue("Plain")
    return saltus.run(Plain(), out=tmp_path_factory.mktemp("store")).record.path


@pytest.fixture
def broken(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "record"))


def chunk(place: Path) -> Path:
    return next(p for p in sorted((place / "data.zarr" / "x").iterdir()) if not p.name.startswith("."))


def rewrite(sealed: bool = False, **changes: Any) -> Callable[[Path], object]:
    """Change what a manifest says; without its seal, as in the records of the first saltus."""

    def do(place: Path) -> None:
        file = place / "manifest.json"
        held = json.loads(file.read_text()) | changes | ({} if sealed else {"seal": ...})
        file.write_text(json.dumps({k: v for k, v in held.items() if v is not ...}))

    return do


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a chunk of noise": lambda p: chunk(p).write_bytes(b"noise"),
    "a chunk with one bit flipped": lambda p: chunk(p).write_bytes(chunk(p).read_bytes()[:-1] + b"\xff"),
    "a chunk cut short": lambda p: chunk(p).write_bytes(chunk(p).read_bytes()[:10]),
    "a chunk gone": lambda p: chunk(p).unlink(),
    "no arrays": lambda p: shutil.rmtree(p / "data.zarr"),
    "arrays without description": lambda p: (p / "data.zarr" / "x" / ".zarray").write_text("{"),
    "one array gone": lambda p: shutil.rmtree(p / "data.zarr" / "up"),
    "no manifest": lambda p: (p / "manifest.json").unlink(),
    "an empty manifest": lambda p: (p / "manifest.json").write_text(""),
    "a manifest cut short": lambda p: (p / "manifest.json").write_text('{"format": "saltus-rec'),
    "a manifest of noise": lambda p: (p / "manifest.json").write_bytes(b"\xff\xfe\x00"),
    "a manifest too deep": lambda p: (p / "manifest.json").write_text("[" * 100_000),
    "a manifest that is a list": lambda p: (p / "manifest.json").write_text("[1]"),
    "another format": rewrite(format="something else"),
    "a newer format": rewrite(format_version=99),
    "a strange format version": rewrite(format_version="one"),
    "no settings": rewrite(settings=...),
    "strange settings": rewrite(settings=[1]),
    "no seconds": rewrite(seconds=...),
    "no processor": rewrite(machine={"cores": 2}),
    "another checksum": rewrite(digest="0"),
    "other seconds under the seal": rewrite(sealed=True, seconds=float("nan")),
    "no commit under the seal": rewrite(sealed=True, commit=...),
    "an array without description": lambda p: (p / "data.zarr" / "x" / ".zarray").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_clear_line(broken: Path, damage: str) -> None:
    saltus.load(broken)
    DAMAGE[damage](broken)
    with pytest.raises(BadInput, match=r"damaged|not a saltus record|newer") as caught:
        record.read(broken)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("path", ["nowhere", "x" * 5000, "nul\0l", ""])
def test_no_record_there(path: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        record.read(tmp_path / path)


def test_the_manifest_says_everything(whole: Path) -> None:
    manifest = saltus.load(whole).attrs["manifest"]
    assert manifest["study"] == "tests/plain"
    assert manifest["settings"]["mu"] == [[1.0, 2.0], [2.0, 2.0]]
    assert manifest["parts"] == ["part 0", "part 1", "part 2"]
    assert manifest["packages"]["zarr"]
    assert manifest["command"].startswith("saltus run ")
    assert saltus.load(whole / "data.zarr").sizes["seed"] == 24
