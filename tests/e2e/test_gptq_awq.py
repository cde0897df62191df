"""GPTQ and AWQ checkpoints: the bits of what their weights stand for, the same in every split; refusals. Their
numbers are held to a reference by test_parity.py."""
import json
import shutil
import struct
import sys

import numpy as np
import pytest

import kit
from kit import ROOT

sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
import make_gptq_awq  # noqa: E402

IDS = make_gptq_awq.IDS
NAMES = sorted(make_gptq_awq.MODELS)
ORDERED = [n for n in NAMES if make_gptq_awq.MODELS[n].get("act_order")]
TYPES = {"gptq4": "GPTQ4", "gptq8": "GPTQ8", "awq4": "AWQ4"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gptq_awq")
    for name in NAMES:
        make_gptq_awq.make(folder, name)
    yield folder
    shutil.rmtree(folder)


def logits(world, model, *args, env=None):
    path = world.folder / "out.npy"
    world.good("logits", model, "--ids", ",".join(map(str, IDS)), "--out", path, "-q", *args, env=env)
    return np.load(path)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(ORDERED)))
def test_bits_are_those_of_floats(world, models, name):
    """Columns in the order in which they lie: each product is that of the same floats."""
    want = logits(world, make_gptq_awq.floats(models / name), "--exact")
    assert logits(world, models / name, "--exact").tobytes() == want.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_whatever_the_split(world, models, name):
    for exact in ((), ("--exact",)):
        want = logits(world, models / name, *exact, "--threads", "1").tobytes()
        for args, env in ((("--shards", "2"), {"BRIGADE_TEST_BATCH": "1"}),
                          (("--shards", "all", "--threads", "2"), {"BRIGADE_TEST_BATCH": "4"}),
                          (("--mode", "cold", "--shards", "2"), {}),
                          ((), {"BRIGADE_KERNEL": "scalar"}), ((), {"BRIGADE_KERNEL": "avx2"})):
            if env.get("BRIGADE_KERNEL") == "avx2" and "avx2" not in open("/proc/cpuinfo").read():
                continue
            assert logits(world, models / name, *exact, *args, env=env).tobytes() == want, (exact, args, env)


def test_inspect_names_types_and_counts_all_bytes(world, models):
    for name in NAMES:
        shown = json.loads(world.good("inspect", models / name, "--json").out)
        packed = [t for t in shown["tensors"] if t["type"] == TYPES[name.split("_")[0]]]
        assert sum("attn_q.weight" in t["name"] for t in packed) == 2
        assert all((t["beside_bytes"] > 0) == (t in packed) for t in shown["tensors"])
        n_bytes = sum(t["bytes"] + t["beside_bytes"] for t in shown["tensors"])
        files = sum(path.stat().st_size for path in (models / name).glob("*.safetensors"))
        assert shown["weights_bytes"] == n_bytes and 0.8 * files < n_bytes < files


# ---------------------------------------------------------------- checkpoints that must be refused


def load(folder):
    """Tensors of a folder of one file: {name: (dtype, shape, bytes)}."""
    data = (folder / "model.safetensors").read_bytes()
    n, = struct.unpack_from("<Q", data)
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__")
    return {k: (t["dtype"], t["shape"], data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])
            for k, t in head.items()}


def store(folder, tensors):
    head, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text +
                                               b"".join(t[2] for t in tensors.values()))


def changed(world, models, name, said=None, tensors=None):
    """A copy whose quantization_config and tensors were changed."""
    folder = world.folder / "changed"
    shutil.copytree(models / name, folder)
    config = json.loads((folder / "config.json").read_text())
    for key, value in (said or {}).items():
        config["quantization_config"][key] = value
        if value is None:
            del config["quantization_config"][key]
    (folder / "config.json").write_text(json.dumps(config))
    if tensors:
        all_of_them = load(folder)
        tensors(all_of_them)
        store(folder, all_of_them)
    return folder


SAID = [
    ("gptq8_act", {"group_size": 128}, ("scales", "5 x 104", "groups of 128", "3 x 104")),
    ("gptq8_act", {"group_size": 32}, ("scales", "10 x 104")),
    ("gptq8_act", {"group_size": 0}, ("group_size", "0")),
    ("gptq8_act", {"group_size": -2}, ("group_size", "-2")),
    ("gptq8_act", {"group_size": 1.5}, ("group_size", "1.5")),
    ("gptq8_act", {"group_size": "64"}, ("group_size",)),
    ("gptq8_act", {"group_size": None}, ("group_size is missing",)),
    ("gptq8_act", {"bits": None}, ("bits is missing",)),
    ("gptq8_act", {"bits": 4}, ("scales", "5 x 104", "10 x 104")),
    ("gptq8_act", {"bits": 3}, ("bits is 3", "not supported")),
    ("gptq8_act", {"bits": 2}, ("bits is 2", "not supported")),
    ("awq4", {"bits": 8}, ("AWQ", "bits is 8")),
    ("awq4", {"version": "gemv"}, ("gemv", "gemm")),
    ("awq4", {"version": "GEMV_FAST"}, ("GEMV_FAST", "gemm")),
    ("awq4", {"backend": "llm-awq"}, ("llm-awq",)),
    ("awq4", {"group_size": 128}, ("scales", "groups of 128")),
    ("awq4", {"quant_method": "gptq"}, ("scales", "shape")),
    ("gptq8_act", {"quant_method": "bitsandbytes"}, ("bitsandbytes", "gptq and awq")),
    ("gptq8_act", {"quant_method": None}, ("quant_method is missing",)),
    ("gptq8_act", {"checkpoint_format": "marlin"}, ("marlin",)),
    ("gptq8_act", {"is_marlin_format": True}, ("marlin",)),
    ("gptq8_act", {"pack_dtype": "int64"}, ("int64",)),
    ("gptq8_act", {"dynamic": {"-:.*": {}}}, ("dynamic",)),
]


@pytest.mark.parametrize("name,said,says", SAID, ids=lambda v: str(v)[:40])
def test_settings_that_do_not_fit(world, models, name, said, says):
    folder = changed(world, models, name, said)
    world.refused("logits", folder, "--ids", "1", "--out", world.folder / "o.npy", "-q", says=says)


Q = "model.layers.1.self_attn.q_proj"


def without(suffix):
    return lambda t: t.pop(Q + suffix)


def replaced(suffix, change):
    def apply(t):
        t[Q + suffix] = change(*t[Q + suffix])
    return apply


def at_column(column, group):
    return replaced(".g_idx", lambda d, s, b: (d, s, b[:4 * column] + struct.pack("<i", group) + b[4 * column + 4:]))


def reshaped(*shape):
    return lambda d, s, b: (d, list(shape), b)


TENSORS = [
    ("gptq8_act", at_column(7, 5), (Q + ".g_idx", "column 7", "group 5", "there are 5")),
    ("gptq8_act", at_column(0, -1), (Q + ".g_idx", "column 0", "group -1")),
    ("gptq8_act", without(".g_idx"), (Q + ".g_idx", "missing", "desc_act")),
    ("gptq8_act", without(".scales"), (Q + ".scales", "missing")),
    ("gptq8_act", without(".qzeros"), (Q + ".qzeros", "missing")),
    ("gptq8_act", without(".qweight"), (Q, "without a '.qweight'")),
    ("gptq8_act", replaced(".g_idx", lambda d, s, b: (d, [319], b[:-4])), (Q + ".g_idx", "320 columns")),
    ("gptq8_act", replaced(".qweight", lambda d, s, b: (d, [79, 320], b[:-1280])), (Q, "g_idx", "316 columns")),
    ("gptq8_act", replaced(".qweight", reshaped(320, 80)), (Q + ".scales", "1280 columns")),
    ("gptq8_act", replaced(".qweight", reshaped(80 * 320)), (Q + ".qweight", "no matrix")),
    ("gptq8_act", replaced(".qweight", lambda d, s, b: ("F32", s, b)), (Q + ".qweight", "I32")),
    ("gptq8_act", replaced(".qweight", lambda d, s, b: (d, [0, 320], b"")), (Q + ".qweight", "no matrix")),
    ("gptq8_act", replaced(".scales", lambda d, s, b: ("I16", s, b)), (Q + ".scales", "I16", "F16")),
    ("gptq8_act", replaced(".qzeros", reshaped(80, 5)), (Q + ".qzeros", "80 x 5", "5 x 80")),
    ("awq4", replaced(".qweight", reshaped(160, 80)), (Q, "shape")),
    ("awq4", replaced(".qzeros", lambda d, s, b: ("F32", s, b)), (Q + ".qzeros", "F32", "I32")),
    ("gptq8_act", lambda t: t.update({"model.embed_tokens" + s: t["lm_head" + s] for s in
                                      (".qweight", ".qzeros", ".scales", ".g_idx")}) or
     t.pop("model.embed_tokens.weight"), ("embed_tokens", "single rows are read")),
]


@pytest.mark.parametrize("name,change,says", TENSORS, ids=[str(i) for i in range(len(TENSORS))])
def test_tensors_that_do_not_fit(world, models, name, change, says):
    folder = changed(world, models, name, tensors=change)
    world.refused("logits", folder, "--ids", "1", "--out", world.folder / "o.npy", "-q", says=says)


def test_quantised_and_nobody_says_how(world, models):
    folder = changed(world, models, "awq4")
    config = json.loads((folder / "config.json").read_text())
    del config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config))
    world.refused("logits", folder, "--ids", "1", "--out", world.folder / "o.npy", "-q",
                  says=(".qweight", "quantize_config.json"))


def test_a_bias_that_is_not_idle_counts(world, models):
    """Zeros are left out, anything else is part of the model or refused."""
    def spoil(t):
        dtype, shape, data = t["model.layers.0.mlp.down_proj.bias"]
        t["model.layers.0.mlp.down_proj.bias"] = (dtype, shape, data[:-2] + b"\x00\x3c")
    folder = changed(world, models, "gptq8_v2", tensors=spoil)
    world.refused("logits", folder, "--ids", "1", "--out", world.folder / "o.npy", "-q", says="down_proj.bias")


def test_cut_files(world, models):
    """Wherever a file ends: one line, no crash."""
    whole = (models / "gptq8_act" / "model.safetensors").read_bytes()
    folder = changed(world, models, "gptq8_act")
    for n in (0, 7, 1000, len(whole) // 2, len(whole) - 1):
        (folder / "model.safetensors").write_bytes(whole[:n])
        world.refused("logits", folder, "--ids", "1", "--out", world.folder / "o.npy", "-q", says="model.safetensors")


@pytest.mark.skipif(kit.SANITIZED, reason="plain words only")
def test_types_are_listed(world):
    listed = world.good("list", "types").out
    assert all(t in listed for t in TYPES.values())
