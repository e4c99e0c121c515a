"""Heads read from files laid out as other libraries lay them out."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from safetensors import numpy as written

from saltus import model, probe
from saltus._jax import jax
from saltus.core.errors import BadInput

RANDOM = np.random.default_rng(0)
D, H, E = 12, 3, 4
NAMES = ("W_Q", "W_K", "W_V", "W_O")


def save_file(tensors, *args):
    """safetensors writes an array's memory as it lies, whatever its strides say."""
    written.save_file({name: np.ascontiguousarray(x) for name, x in tensors.items()}, *args)


def network(groups=H):
    """Two layers of heads W [d, heads, e]; keys and values of fewer groups than heads."""
    counts = {"W_Q": H, "W_K": groups, "W_V": groups, "W_O": H}
    return [{n: RANDOM.normal(size=(D, counts[n], E)).astype(np.float32) for n in NAMES} for _ in range(2)]


def flat(w):
    """Outputs first, as in a linear layer of PyTorch."""
    return np.ascontiguousarray(w.reshape(D, -1).T)


def gpt2(net):
    return {
        f"{start}h.{i}.attn.{name}": value
        for i, w in enumerate(net)
        for start in ("transformer.",)
        for name, value in {
            "c_attn.weight": np.concatenate([flat(w[n]).T for n in NAMES[:3]], axis=1),
            "c_attn.bias": np.zeros(3 * D, np.float32),
            "c_proj.weight": flat(w["W_O"]),
        }.items()
    }


def separate(layer, names):
    def write(net):
        found = {}
        for i, w in enumerate(net):
            for name, n in zip(names, NAMES, strict=True):
                value = w[n].reshape(D, -1) if n == "W_O" else flat(w[n])
                found[f"{layer.format(i)}{name}.weight"] = np.ascontiguousarray(value)
        return found | {"embed.weight": np.zeros((5, D), np.float32)}

    return write


def timm(net):
    out = {
        f"blocks.{i}.attn.qkv.weight": np.concatenate([flat(w[n]) for n in NAMES[:3]])
        for i, w in enumerate(net)
    }
    return out | {f"blocks.{i}.attn.proj.weight": w["W_O"].reshape(D, -1) for i, w in enumerate(net)}


def neox(net):
    found = {}
    for i, w in enumerate(net):
        by_head = np.stack([w[n].transpose(1, 2, 0) for n in NAMES[:3]], axis=1)  # [H, 3, e, d]
        found[f"gpt_neox.layers.{i}.attention.query_key_value.weight"] = by_head.reshape(-1, D)
        found[f"gpt_neox.layers.{i}.attention.dense.weight"] = w["W_O"].reshape(D, -1)
    return found


LAYOUTS = {
    "gpt2": gpt2,
    "llama": separate("model.layers.{}.self_attn.", ("q_proj", "k_proj", "v_proj", "o_proj")),
    "opt": separate("model.decoder.layers.{}.self_attn.", ("q_proj", "k_proj", "v_proj", "out_proj")),
    "bert": separate(
        "bert.encoder.layer.{}.attention.", ("self.query", "self.key", "self.value", "output.dense")
    ),
    "vit": separate(
        "vit.encoder.layer.{}.attention.",
        ("attention.query", "attention.key", "attention.value", "output.dense"),
    ),
    "timm": timm,
    "neox": neox,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_the_same_network(layout, tmp_path):
    net = network()
    save_file(LAYOUTS[layout](net), tmp_path / "model.safetensors")
    found = probe.heads_of(tmp_path / "model.safetensors", heads=H)
    for layer, w in zip(found["blocks"], net, strict=True):
        for name in NAMES:
            np.testing.assert_array_equal(layer["attention"][name], w[name])


def test_shards_and_a_config_and_shared_keys(tmp_path):
    net = network(groups=1)
    whole = LAYOUTS["llama"](net)
    names = sorted(whole)
    for part in (0, 1):
        save_file({n: whole[n] for n in names[part::2]}, tmp_path / f"model-{part}-of-2.safetensors")
    with pytest.raises(BadInput, match=r"heads="):
        probe.heads_of(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": H, "num_key_value_heads": 1}))
    found = probe.heads_of(tmp_path)
    for layer, w in zip(found["blocks"], net, strict=True):
        np.testing.assert_array_equal(layer["attention"]["W_K"], np.repeat(w["W_K"], H, axis=1))
        np.testing.assert_array_equal(layer["attention"]["W_Q"], w["W_Q"])


def test_spectra_of_what_a_checkpoint_gained(tmp_path):
    start, now = network(), network()
    for name, net in (("start", start), ("now", now)):
        save_file(LAYOUTS["gpt2"](net), tmp_path / f"{name}.safetensors")
    heads = [probe.heads_of(tmp_path / f"{name}.safetensors", heads=H) for name in ("now", "start")]
    found = probe.head_products(*heads)["VO"]
    for i, (w, w0) in enumerate(zip(now, start, strict=True)):
        for head in range(H):
            gained = w["W_V"][:, head] @ w["W_O"][:, head].T - w0["W_V"][:, head] @ w0["W_O"][:, head].T
            exact = np.linalg.svd(gained.astype(float), compute_uv=False)[: 2 * E]
            np.testing.assert_allclose(found[i, head], exact, atol=1e-5 * exact[0])


def test_our_own_and_sixteen_bits(tmp_path):
    net = model.GPT(7, 4, depth=2, heads=2, width=8)
    params = jax.jit(net.init)(jax.random.key(0))
    named = {n: np.asarray(v, np.float32) for n, v in probe.paths(params).items()}
    save_file(named, tmp_path / "own.safetensors")
    found = probe.heads_of(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(found["blocks"][1]["attention"]["W_O"], named["blocks.1.attention.W_O"])
    save_file({n: v.astype(np.float16) for n, v in named.items()}, tmp_path / "half.safetensors")
    with pytest.warns(UserWarning, match="16-bit"):
        probe.heads_of(tmp_path / "half.safetensors")


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(BadInput, match="no safetensors file"):
        probe.heads_of(tmp_path)
    (tmp_path / "a.safetensors").write_bytes(b"12345678{}")
    with pytest.raises(BadInput, match="not a safetensors file"):
        probe.heads_of(tmp_path)
    save_file({"x": np.zeros(2)}, tmp_path / "a.safetensors")
    with pytest.raises(BadInput, match="no attention matrices"):
        probe.heads_of(tmp_path)
    save_file(LAYOUTS["llama"](network()), tmp_path / "a.safetensors")
    with pytest.raises(BadInput, match="do not have 5 heads"):
        probe.heads_of(tmp_path, heads=5)
    lacking = {n: v for n, v in LAYOUTS["llama"](network()).items() if "v_proj" not in n}
    save_file(lacking, tmp_path / "a.safetensors")
    with warnings.catch_warnings(), pytest.raises(BadInput, match="has no W_V"):
        probe.heads_of(tmp_path, heads=H)


Q = "model.layers.0.self_attn.q_proj.weight"


def raw(path, kinds):
    """A file of any kind of numbers: name -> (kind, shape, bytes)."""
    head, blob = {}, b""
    for name, (kind, shape, data) in kinds.items():
        head[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + blob)
    return path


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({Q: np.zeros(D, np.float32)}, r"q_proj.weight has shape \(12,\)"),
        ({Q: np.zeros((0, D), np.float32)}, r"has shape \(0, 12\)"),
        ({Q: np.zeros((D, D + 1), np.float32)}, "layer 0 are not of one width"),
        ({Q.replace("q_", "v_"): np.zeros((E, D), np.float32)}, "do not have 3 heads"),
        ({Q: np.zeros((D, D), np.int8)}, "int8 numbers"),
    ],
)
def test_wrong_shapes_and_kinds_are_one_line(changed, says, tmp_path):
    save_file(LAYOUTS["llama"](network()) | changed, tmp_path / "a.safetensors")
    with pytest.raises(BadInput, match=says):
        probe.heads_of(tmp_path, heads=H)


@pytest.mark.parametrize("heads", [0, -3])
def test_heads_are_counted_from_one(heads, tmp_path):
    save_file(LAYOUTS["llama"](network()), tmp_path / "a.safetensors")
    with pytest.raises(BadInput, match="1 or more"):
        probe.heads_of(tmp_path, heads=heads)
    (tmp_path / "config.json").write_text(json.dumps({"n_head": "three"}))
    with pytest.raises(BadInput, match="three"):
        probe.heads_of(tmp_path)


def test_layers_of_different_shapes_are_said(tmp_path):
    small = {
        "model.layers.1" + n[14:]: x[:6, :6] for n, x in LAYOUTS["llama"](network()).items() if "rs.0" in n
    }
    save_file(LAYOUTS["llama"](network()) | small, tmp_path / "a.safetensors")
    with pytest.raises(BadInput, match="different shapes"):
        probe.head_products(probe.heads_of(tmp_path, heads=H))


def test_any_pair_of_matrices_by_name(tmp_path):
    """bfloat16 as it lies on the disk: the upper half of a float32."""
    a, b = RANDOM.normal(size=(2, 9, 4)).astype(np.float32)
    upper = {n: (x.view(np.uint32) >> 16).astype(np.uint16) for n, x in (("up.A", a), ("up.B", b))}
    kinds = {n: ("BF16", x.shape, x.tobytes()) for n, x in upper.items()}
    kinds |= {"tiny": ("F8_E4M3", (2, 2), bytes(4)), "one": ("F32", (3,), bytes(12))}
    file = raw(tmp_path / "lora.safetensors", kinds)
    with pytest.warns(UserWarning, match="16-bit"):
        found = probe.matrices_of(file, "up.A", "up.B")
    for x, want in zip(found, upper.values(), strict=True):
        np.testing.assert_array_equal(x, (want.astype(np.uint32) << 16).view(np.float32))
    values = np.linalg.svd(found[0].astype(float) @ found[1].T.astype(float), compute_uv=False)[:4]
    np.testing.assert_allclose(probe.product_spectrum(*found), values, rtol=1e-5)
    for name, says in (("up.C", "did you mean up"), ("tiny", "kind of numbers"), ("one", r"shape \(3,\)")):
        with pytest.raises(BadInput, match=says):
            probe.matrices_of(file, name)


@pytest.mark.parametrize("kept", [0, 7, 60, 0.5, 0.999])
def test_a_truncated_file_is_one_line(kept, tmp_path):
    file = tmp_path / "a.safetensors"
    save_file(LAYOUTS["llama"](network()), file)
    whole = file.read_bytes()
    file.write_bytes(whole[: kept if isinstance(kept, int) else int(kept * len(whole))])
    for read in (lambda: probe.heads_of(file, heads=H), lambda: probe.matrices_of(file, Q)):
        with pytest.raises(BadInput, match="not a safetensors file"):
            read()
