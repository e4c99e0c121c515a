"""The code blocks of a page, run one after another; what they print stands in the page.

    ```python             run in one namespace for the whole page; a ```text block after it is its output
    ```python NAME.py     written to a file of that name
    ```console            commands after "$ ", run by a shell's rules; what follows is their output

Blocks of any other kind (```sh among them) are left alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w+)(?: +(\S+))?\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
TIMED = re.compile(r"\d+(?:\.\d+)? (?:s|min|h)\b on .*")
WIDTH = "100"


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file it is for, its content, and where the content lies."""

    language: str
    file: str
    code: str
    start: int
    line: int


def blocks(text: str) -> list[Block]:
    return [
        Block(m[1], m[2] or "", m[3], m.start(3), text.count("\n", 0, m.start()) + 2)
        for m in FENCE.finditer(text)
    ]


def execute(text: str, folder: Path, name: str) -> list[tuple[Block, str]]:
    """Run a page's blocks in `folder`; **returns** each block that holds output, and what it should hold."""
    module = types.ModuleType("saltus_page")  # dataclasses look their module up by name
    sys.modules[module.__name__] = module
    seen: list[tuple[Block, str]] = []
    listed = blocks(text)
    with contextlib.chdir(folder):
        for block, after in zip(listed, [*listed[1:], None], strict=True):
            if block.language == "console":
                seen.append((block, _console(block.code)))
            elif block.language == "python" and block.file:
                Path(block.file).write_text(block.code)
            elif block.language == "python":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    padded = "\n" * (block.line - 1) + block.code
                    exec(compile(padded, name, "exec", dont_inherit=True), vars(module))
                said = steady(printed.getvalue())
                if after is not None and after.language == "text":
                    seen.append((after, said))
                elif said:
                    raise AssertionError(f"{name}, line {block.line}: this prints, and no text block follows")
    return seen


def refreshed(text: str, seen: list[tuple[Block, str]]) -> str:
    """The page with every output as it came out, where it differs by more than rounding."""
    for block, said in sorted(seen, key=lambda item: -item[0].start):
        if not alike(block.code, said):
            text = text[: block.start] + said + text[block.start + len(block.code) :]
    return text


def alike(expected: str, got: str) -> bool:
    """Whether two outputs are the same words, with numbers within 2% or a unit of the second decimal."""
    words = [NUMBER.sub("#", text).split() for text in (expected, got)]
    if words[0] != words[1]:
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(got), strict=True)
    return all(abs(float(a) - float(b)) <= 0.011 + 0.02 * abs(float(a)) for a, b in pairs)


def steady(text: str) -> str:
    """Output without what differs from run to run: how long something took, and on which machine."""
    return "".join(f"{TIMED.sub('...', line).rstrip()}\n" for line in text.rstrip().splitlines())


def _console(code: str) -> str:
    said = []
    for line in code.splitlines():
        if not line.startswith("$ "):
            continue
        words = shlex.split(line[2:])
        if words[0] == "saltus":
            words[:1] = [sys.executable, "-m", "saltus"]
        env = {**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1"}
        done = subprocess.run(words, capture_output=True, text=True, env=env)
        if done.returncode:
            raise AssertionError(f"{line}: exit status {done.returncode}: {done.stderr[-500:]}")
        said.append(f"{line}\n{steady(done.stdout)}")
    return "".join(said)
