"""Heads of other people's transformers, from safetensors files, in the form the probes here take.

Names and layouts of GPT-2 (one matrix for queries, keys and values, inputs first), of Llama, OPT and the
like (a matrix each, outputs first, perhaps fewer keys than queries), of BERT and ViT, of timm and GPT-NeoX.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from saltus.core.errors import BadInput
from saltus.probe._tensors import opened as _opened

# What follows a layer's number, and what the matrix is.
_SEPARATE = {
    "W_Q": r"(q_proj|query|attention\.wq|attn\.to_q)\.weight",
    "W_K": r"(k_proj|key|attention\.wk|attn\.to_k)\.weight",
    "W_V": r"(v_proj|value|attention\.wv|attn\.to_v)\.weight",
    "W_O": r"(o_proj|out_proj|attention\.output\.dense|attention\.wo|attn\.to_out\.0)\.weight",
}
_KINDS = {
    **{name: rf"(.*\.)?{pattern}" for name, pattern in _SEPARATE.items()},
    "gpt2": r"(.*\.)?attn\.c_attn\.weight",
    "gpt2_out": r"(.*\.)?attn\.c_proj\.weight",
    "timm": r"(.*\.)?attn\.qkv\.weight",
    "timm_out": r"(.*\.)?attn\.proj\.weight",
    "neox": r"(.*\.)?attention\.query_key_value\.weight",
    "neox_out": r"(.*\.)?attention\.dense\.weight",
    **{f"own_{n}": rf"attention\.{n}" for n in _SEPARATE},
}
_LAYER = re.compile(r"(?:^|.*?\.)(?:h|layers?|blocks?|resblocks)\.(\d+)\.(.*)")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads")


def heads_of(where: Path | str, heads: int | None = None) -> dict[str, Any]:
    """Heads of a network on disk: `blocks.{i}.attention.W_Q` [width, heads, head] and so on, float32.

    - `where`: a safetensors file, or a folder of them with the `config.json` that says how many heads.
    - `heads`: how many, where no such file does.

    The result is what `head_products` and `head_matrices` take. Keys and values that several queries
    share are given to each of them.
    """
    where = Path(where)
    if heads is not None and heads < 1:
        raise BadInput(f"heads must be 1 or more, not {heads}")
    files = sorted(where.glob("*.safetensors")) if where.is_dir() else [where]
    if not files or not all(f.is_file() for f in files):
        raise BadInput(f"{where}: no safetensors file there")
    about = _about(where if where.is_dir() else where.parent)
    count = heads or next((about[name] for name in _HEADS if name in about), None)
    if count is not None and (not isinstance(count, int) or count < 1):
        raise BadInput(f"{where}: its config.json says {str(count)[:40]!r} for the number of heads")
    layers: dict[int, dict[str, np.ndarray]] = {}
    for file in files:
        for number, kind, array in _matrices(file):
            if kind in layers.setdefault(number, {}):
                raise BadInput(
                    f"{where}: layer {number} has more than one {kind}; one network a file, please"
                )
            layers[number][kind] = array
    if not layers:
        raise BadInput(f"{where}: no attention matrices of a known name (such as layers.0.self_attn.q_proj)")
    return {"blocks": [{"attention": _layer(layers[n], count, n, where)} for n in sorted(layers)]}


def matrices_of(where: Path | str, *names: str) -> tuple[np.ndarray, ...]:
    """Matrices of a safetensors file by their own names, float32 at least, for `product_spectrum` and its
    like."""
    with _opened(Path(where)) as held:
        found = tuple(held.read(name) for name in names)
    for name, array in zip(names, found, strict=True):
        if array.ndim < 2 or not array.size:
            raise BadInput(f"{where}: {name} has shape {array.shape}, not that of a matrix")
    return found


def _about(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        found = json.loads(path.read_text()) if path.is_file() else {}
    except ValueError as error:
        raise BadInput(f"{path} is not JSON") from error
    return found if isinstance(found, dict) else {}


def _matrices(file: Path) -> list[tuple[int, str, np.ndarray]]:
    """(layer, kind, matrix) of everything in a file that belongs to a head."""
    found = []
    with _opened(file) as held:
        for name in held.names:
            layer = _LAYER.fullmatch(name)
            kind = layer and next((k for k, p in _KINDS.items() if re.fullmatch(p, layer[2])), None)
            if layer and kind:
                array = held.read(name)
                want = 3 if kind.startswith("own_") else 2
                if array.ndim != want or not array.size:
                    raise BadInput(f"{file}: {name} has shape {array.shape}, not that of a matrix")
                found.append((int(layer[1]), kind, array.astype(np.float32, copy=False)))
    return found


def _layer(held: dict[str, np.ndarray], count: int | None, number: int, where: Path) -> dict[str, np.ndarray]:
    """W_Q, W_K, W_V, W_O [width, heads, head] of one layer, from whichever form it is stored in."""
    if "own_W_Q" in held:
        own = {name: held[f"own_{name}"] for name in _SEPARATE if f"own_{name}" in held}
        if len(own) < len(_SEPARATE) or len({m.shape for m in own.values()}) > 1:
            raise BadInput(f"{where}: layer {number} does not have four matrices of one shape")
        return own
    if count is None:
        raise BadInput(f"{where}: how many heads there are is not in a config.json beside it; say heads=...")
    try:
        q, k, v, out = _flat(held, count)
    except KeyError as error:
        raise BadInput(f"{where}: layer {number} has no {error.args[0]}") from error
    except ValueError as error:
        raise BadInput(f"{where}: the matrices of layer {number} are not of {count} heads") from error
    head = len(q) // count
    shapes = ", ".join(str(m.shape) for m in (q, k, v, out))
    fits = len(q) == count * head > 0 and len(k) % head == 0 and len(k) == len(v) and out.shape[1] == len(q)
    if not fits or count % (len(k) // head):
        raise BadInput(f"{where}: matrices {shapes} do not have {count} heads")
    if len({m.shape[1] for m in (q, k, v)} | {len(out)}) > 1:
        raise BadInput(f"{where}: matrices {shapes} of layer {number} are not of one width")
    shared = count // (len(k) // head)

    def split(m: np.ndarray, times: int = 1) -> np.ndarray:
        return np.repeat(m.T.reshape(m.shape[1], -1, head), times, axis=1)

    return {
        "W_Q": split(q),
        "W_K": split(k, shared),
        "W_V": split(v, shared),
        "W_O": out.reshape(len(out), count, head),
    }


def _flat(held: dict[str, np.ndarray], count: int) -> tuple[np.ndarray, ...]:
    """Queries, keys and values with outputs first, and the matrix that takes heads back."""
    if "gpt2" in held:
        return (*np.split(held["gpt2"].T, 3), held["gpt2_out"].T)
    if "timm" in held:
        return (*np.split(held["timm"], 3), held["timm_out"])
    if "neox" in held:
        joined = held["neox"].reshape(count, 3, -1, held["neox"].shape[-1])
        return (*(joined[:, i].reshape(-1, joined.shape[-1]) for i in range(3)), held["neox_out"])
    return tuple(held[name] for name in ("W_Q", "W_K", "W_V", "W_O"))
