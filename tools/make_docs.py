#!/usr/bin/env python3
"""Makes the pages of docs/ that are made: from records, from the program's own words, from executed blocks.

    python tools/make_docs.py tutorial           run docs/tutorial.md's blocks and write what they print
    python tools/make_docs.py list               the table of studies in README.md
    python tools/make_docs.py PAPER STORE...     docs/PAPER.md, docs/PAPER-claims.md, docs/PAPER-figures.md
    add --draft to do without records that are missing

A page with numbers has its words in tools/pages/NAME.md; nobody types a number that a record holds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))

from pages import blocks, claims, pictures, records, tables, template  # noqa: E402

from saltus.core.errors import BadInput  # noqa: E402

MADE = "<!-- made by tools/make_docs.py: change tools/pages/{name} or the program, not this page -->\n"


def papers() -> list[str]:
    """The papers that have a page of words."""
    return sorted(file.stem for file in (ROOT / "tools" / "pages").glob("*.md"))


def tutorial() -> None:
    file = DOCS / "tutorial.md"
    text = file.read_text()
    with tempfile.TemporaryDirectory() as folder:
        seen = blocks.execute(text, Path(folder), file.name)
    file.write_text(blocks.refreshed(text, seen))


def listed() -> None:
    file = ROOT / "README.md"
    file.write_text(tables.between(file.read_text(), "studies", tables.studies(), file))


def paper(name: str, stores: list[Path], draft: bool) -> None:
    """The page in words, the table of every claim, and the gallery."""
    source = ROOT / "tools" / "pages" / f"{name}.md"
    words = source.read_text()
    template.tags(words, name)
    found = records.collect(stores, draft=draft, paper=name)
    head = MADE.format(name=source.name)
    (DOCS / f"{name}.md").write_text(head + template.fill(words, found, name, draft=draft))
    title = f"# {name}: every claim, with its number, interval and control\n\n"
    (DOCS / f"{name}-claims.md").write_text(head + title + claims.page(found))
    body, files = pictures.gallery(found, DOCS / "figures" / name)
    (DOCS / f"{name}-figures.md").write_text(head + f"# {name}: every figure\n\n" + body)
    (DOCS / "figures" / name).mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        file.write_bytes(data)
    odd = claims.odd(found.values())
    print(f"{name}: {len(found)} outcomes, {len(files)} figures; other than documented: {odd or 'none'}")


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("what", choices=("tutorial", "list", *papers()))
    options.add_argument("stores", nargs="*", type=Path)
    options.add_argument("--draft", action="store_true")
    asked = options.parse_args()
    try:
        if asked.what == "tutorial":
            tutorial()
        elif asked.what == "list":
            listed()
        else:
            paper(asked.what, asked.stores, asked.draft)
    except BadInput as error:
        print(f"make_docs: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
