"""The same vision transformer in PyTorch: eager and through torch.compile, in a process of its own.

    python vit_torch.py FOLDER --device cpu|gpu --steps N [--warm N]

FOLDER/case.npz holds sizes, parameters, images and orders (see `vit_case.py`). Prints `ready` once both are
compiled and warm, waits for a line, then times them and prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

Params = dict[str, Tensor]


def forward(params: Params, images: Tensor, sizes: dict[str, Any], dtype: torch.dtype) -> Tensor:
    """Outputs [B, classes] at normalised images [B, height, width, channels]; parameters stay float32."""
    p = {name: value.to(dtype) for name, value in params.items()}
    side, d, heads, head = (sizes[name] for name in ("patch", "width", "heads", "head"))
    b, height, width, channels = images.shape
    x = images.to(dtype).reshape(b, height // side, side, width // side, side, channels)
    x = x.transpose(2, 3).reshape(b, -1, side * side * channels)
    x = F.linear(x, p["embed.W"].T, p["embed.b"])
    x = torch.cat([p["embed.class"].expand(b, 1, d), x], dim=1) + p["embed.positions"]
    tokens = x.shape[1]
    for i in range(sizes["depth"]):
        at = f"blocks.{i}."
        y = F.layer_norm(x, (d,), p[at + "norm1.scale"], p[at + "norm1.bias"])
        joined = torch.cat([p[at + f"attention.W_{n}"].reshape(d, -1) for n in "QKV"], dim=1)
        qkv = F.linear(y, joined.T).reshape(b, tokens, 3, heads, head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, tokens, heads * head)
        x = x + F.linear(y, p[at + "attention.W_O"].reshape(d, -1), p[at + "attention.b_O"])
        y = F.layer_norm(x, (d,), p[at + "norm2.scale"], p[at + "norm2.bias"])
        y = F.gelu(F.linear(y, p[at + "mlp.W_1"].T, p[at + "mlp.b_1"]))
        x = x + F.linear(y, p[at + "mlp.W_2"].T, p[at + "mlp.b_2"])
    y = F.layer_norm(x[:, 0], (d,), p["head.norm.scale"], p["head.norm.bias"])
    return F.linear(y, p["head.W"].T, p["head.b"]).float()


def parameters(case: dict[str, np.ndarray], device: str) -> Params:
    names = [name for name in case if name.startswith("params.")]
    return {
        n.removeprefix("params."): torch.tensor(case[n], dtype=torch.float32, device=device).requires_grad_()
        for n in names
    }


def normalised(case: dict[str, Any], images: Tensor) -> Tensor:
    """Bytes to numbers with mean 0 and deviation 1 in each channel."""
    return (images.float() - case["mean"]) * case["factor"]


class Trainer:
    """Adam on the network, the whole step but Adam's own in one function."""

    def __init__(self, case: dict[str, Any], device: str, compiled: bool, lr: float) -> None:
        self.case = case | {n: torch.tensor(case[n], device=device) for n in ("mean", "factor")}
        self.params = parameters(case, device)
        self.sizes = json.loads(str(case["sizes"]))
        self.images = torch.tensor(case["images"], device=device)
        self.labels = torch.tensor(case["labels"].astype(np.int64), device=device)
        self.order = torch.tensor(case["order"].astype(np.int64), device=device)
        self.batch, self.dtype = int(case["batch"]), torch.bfloat16 if device == "cuda" else torch.float32
        fused = {"fused": True} if device == "cuda" else {"foreach": True}
        self.adam = torch.optim.Adam(list(self.params.values()), lr=lr, **fused)
        self.loss = torch.compile(self._loss, dynamic=False, fullgraph=True) if compiled else self._loss

    def _loss(self, params: Params, at: Tensor) -> Tensor:
        x = normalised(self.case, self.images[at])
        return F.cross_entropy(forward(params, x, self.sizes, self.dtype), self.labels[at])

    def step(self, number: int) -> Tensor:
        begins = number * self.batch % (len(self.order) - self.batch + 1)
        loss = self.loss(self.params, self.order[begins : begins + self.batch])
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        self.adam.step()
        return loss.detach()

    def run(self, first: int, steps: int) -> list[float]:
        losses = [self.step(first + n) for n in range(steps)]
        return torch.stack(losses).cpu().tolist()  # waits for the device


def gradient(case: dict[str, Any], images: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Outputs, loss and its slope by every parameter in float32 on the host: what ours is compared with."""
    params, sizes = parameters(case, "cpu"), json.loads(str(case["sizes"]))
    given = case | {n: torch.tensor(case[n]) for n in ("mean", "factor")}
    out = forward(params, normalised(given, torch.tensor(images)), sizes, torch.float32)
    F.cross_entropy(out, torch.tensor(labels.astype(np.int64))).backward()
    found = {name: value.grad.numpy() for name, value in params.items() if value.grad is not None}
    return found | {"output": out.detach().numpy()}


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--warm", type=int, default=3)
    options.add_argument("--skip", nargs="*", default=[])
    asked = options.parse_args()
    with np.load(asked.folder / "case.npz") as held:
        case: dict[str, Any] = {name: held[name] for name in held.files}
    device = "cuda" if asked.device == "gpu" else "cpu"
    ways = [way for way in ("eager", "compile") if way not in asked.skip]
    trainers, found = {}, {"torch": torch.__version__}
    for way in ways:
        began = time.perf_counter()
        try:
            trainers[way] = Trainer(case, device, way == "compile", float(case["lr"]))
            losses = trainers[way].run(0, asked.warm)
            found[way] = {"warm_seconds": time.perf_counter() - began, "losses": losses}
        except Exception as error:
            trainers.pop(way, None)
            found[way] = {"failed": f"{type(error).__name__}: {str(error)[:500]}"}
    print("ready", flush=True)
    sys.stdin.readline()
    for way, trainer in trainers.items():
        found[way] |= timed(trainer, asked.warm, asked.steps)
    print(json.dumps(found), flush=True)
    return 0


def timed(trainer: Trainer, first: int, steps: int) -> dict[str, Any]:
    """Seconds of the best of three stretches."""
    seconds = []
    for part in range(3):
        call: Callable[[int, int], list[float]] = trainer.run
        began = time.perf_counter()
        call(first + part * steps, steps)
        seconds.append(time.perf_counter() - began)
    rate = steps * trainer.batch / min(seconds)
    return {"seconds": seconds, "steps": steps, "images_per_second": rate}


if __name__ == "__main__":
    raise SystemExit(main())
