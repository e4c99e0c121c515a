"""Make src/saltus/data/digits.npz from the digits that scikit-learn's wheel holds.

python -m pip download scikit-learn==1.9.1 --no-deps --only-binary=:all: -d WHEELS
python tools/make_digits.py WHEELS/scikit_learn-*.whl
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

from saltus.data import _keep
from saltus.data._catalogue import ENTRIES
from saltus.data._content import digest

MEMBER = "sklearn/datasets/data/digits.csv.gz"
CSV_SHA256 = "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"


def main(wheel: str) -> None:
    with zipfile.ZipFile(wheel) as held:
        text = gzip.decompress(held.read(MEMBER))
    found = hashlib.sha256(text).hexdigest()
    if found != CSV_SHA256:
        raise SystemExit(f"{MEMBER} is not the table this was written for: sha256 {found}")
    # One row per image: 64 numbers from 0 to 16, then the digit.
    table = np.loadtxt(io.StringIO(text.decode()), delimiter=",").astype(np.uint8)
    content = {"train_x": table[:, :64].reshape(-1, 8, 8), "train_y": table[:, 64].copy()}
    target = _keep.kept(ENTRIES["digits"])
    _keep.write(target, content, small=True)
    print(f"{target}: {target.stat().st_size} bytes, sha256 of the content {digest(content)}")


if __name__ == "__main__":
    main(str(Path(sys.argv[1])))
