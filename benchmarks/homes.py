"""The processes contestants run in, one for each library and precision, and how to ask them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NAMES = ("torch", "jax", "jax64", "saltus")


class Failed(Exception):
    """What a contestant could not do; `missing` when its library is not installed."""

    def __init__(self, says: str, missing: bool = False) -> None:
        super().__init__(says)
        self.missing = missing


class Home:
    """One worker process."""

    def __init__(self, name: str, device: str, scratch: Path, log: Path | None) -> None:
        settings = {
            "BENCHMARK_HOME": name,
            # So that no time of compiling is saved by an earlier run.
            "TORCHINDUCTOR_CACHE_DIR": str(scratch / f"inductor-{name}"),
            # Several processes share a GPU; none may take all of its memory.
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            # float32 means float32: no TF32 on a GPU, as in PyTorch.
            "JAX_DEFAULT_MATMUL_PRECISION": "highest",
        }
        if name == "jax64":
            settings["JAX_ENABLE_X64"] = "1"
        if device == "cpu":
            settings |= {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
        self.name, self.device = name, device
        self._errors = open(log, "a") if log else None  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors or subprocess.DEVNULL,
            text=True,
            env={**os.environ, **settings},
        )

    def ask(self, verb: str, **what: Any) -> Any:
        """The answer to one request."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"verb": verb, **what}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(f"the {self.name} process ended (status {self.process.poll()}) during {verb}")
        answer = json.loads(line)
        if "failed" in answer:
            raise Failed(answer["failed"], answer["missing"])
        return answer["ok"]

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if self._errors:
            self._errors.close()


class Homes:
    """All of them, started when first needed; one that cannot start answers with its reason."""

    def __init__(self, device: str, scratch: Path, log: Path | None = None) -> None:
        self.device, self.scratch, self.log = device, scratch, log
        self.found: dict[str, Any] = {}
        self._homes: dict[str, Home] = {}
        self._broken: dict[str, Failed] = {}

    def __getitem__(self, name: str) -> Home:
        if name in self._broken:
            raise self._broken[name]
        if name not in self._homes:
            home = Home(name, self.device, self.scratch, self.log)
            try:
                self.found[name] = home.ask("hello", device=self.device)
            except Failed as reason:
                home.close()
                self._broken[name] = reason
                self.found[name] = {"missing" if reason.missing else "failed": str(reason)}
                raise
            self._homes[name] = home
        home = self._homes[name]
        if home.process.poll() is not None:
            # It took its own life, for want of memory say; the next case gets a fresh one.
            home.close()
            del self._homes[name]
            return self[name]
        return home

    def started(self) -> list[Home]:
        return list(self._homes.values())

    def close(self) -> None:
        for home in self._homes.values():
            home.close()
