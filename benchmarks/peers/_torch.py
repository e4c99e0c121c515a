"""What the PyTorch peers share: networks from given arrays, points on the device, the number of threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from work import Training

TYPES = {"float32": torch.float32, "float64": torch.float64}


def place(device: str) -> str:
    """PyTorch's name of the device."""
    return "cuda" if device == "gpu" else "cpu"


def tensor(array: np.ndarray, device: str) -> Tensor:
    return torch.as_tensor(array, device=place(device))


def network(work: Training, run: int, device: str, dtype: str) -> nn.Sequential:
    """The linear network of one run, before training."""
    layers = []
    for number, all_weights in enumerate(work.weights):
        weight = all_weights[run]
        options: dict[str, Any] = dict(device=place(device), dtype=TYPES[dtype], bias=bool(work.biases))
        layer = nn.Linear(weight.shape[1], weight.shape[0], **options)
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(weight))
            if work.biases:
                layer.bias.copy_(torch.as_tensor(work.biases[number][run]))
        layers.append(layer)
    return nn.Sequential(*layers)


def wait(device: str) -> None:
    if device == "gpu":
        torch.cuda.synchronize()


def fewest_seconds_threads(call: Callable[[], Any], device: str) -> int:
    """Set and return the number of threads with which a short piece of the work is quickest.

    Matrices this small often run quicker on one thread; a peer gets whatever suits it.
    """
    cores = len(os.sched_getaffinity(0))
    if device == "gpu" or cores == 1:
        return torch.get_num_threads()
    seconds = {}
    for count in (1, cores):
        torch.set_num_threads(count)
        call()
        began = time.perf_counter()
        call()
        seconds[count] = time.perf_counter() - began
    best = min(seconds, key=lambda count: seconds[count])
    torch.set_num_threads(best)
    return best
