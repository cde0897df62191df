"""Bundles: the same numbers as the model that was packed, the same bytes from the same request, and nothing else passes."""
import fcntl
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import sys
import time

import numpy as np
import pytest

import gguf
import kit

sys.path.insert(0, str(kit.ROOT / "tests" / "fixtures"))
import make_gptq_awq  # noqa: E402
import make_group_types as reference  # noqa: E402: quantising that shares nothing with the engine

QWEN2 = kit.ROOT / "tests" / "fixtures" / "qwen2" / "f16.gguf"
OPTIONS = ("--raw", "-p", "Brigade", "--temp", "0", "-n", "12", "--ignore-eos", "--exact")
NUMBERS = {"Q4_0": 2, "Q4_1": 3, "Q8_0": 8, "Q8_0_G16": 1000, "Q8_0_G64": 1001, "Q4_0_G16": 1002, "Q4_0_G64": 1003,
           "Q4_1_G16": 1004, "Q4_1_G64": 1005}


def pack(world, model, name, *args, **more):
    out = world.folder / name
    return out, world.good("pack", model, out, *args, **more)


def files(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def logits(world, model, *args):
    path = world.folder / "logits.npy"
    world.good("logits", model, "--ids", "5,17,300,41,9", "--out", path, "-q", *args)
    return path.read_bytes()


def parts(folder):
    """Each GGUF file of a bundle, with the place of its data (they are aligned to 4096 bytes, gguf.py knows 32)."""
    found = []
    for path in sorted(folder.glob("*.gguf")):
        data = path.read_bytes()
        f = gguf.read(data)
        assert f.get("general.alignment") == 4096
        start = (f.data_start + 4095) // 4096 * 4096
        found.append((path, f, {t["name"]: data[start + t["offset"]:] for t in f.tensors}))
    return found


def requantised(source, kind, head):
    """The file that a model is when its matrices are quantised, by numpy alone."""
    f = gguf.read(pathlib.Path(source).read_bytes())
    old, tail = f.tail, b""
    for t in f.tensors:
        n = int(np.prod(t["dims"]))
        raw = old[t["offset"]:]
        name = head if t["name"] == "output.weight" else kind
        group = int(name.split("_G")[1]) if "_G" in name else 32
        if len(t["dims"]) == 2 and t["dims"][0] % max(group, 32) == 0:
            assert t["type"] == 1
            numbers = np.frombuffer(raw, np.float16, n).astype(np.float32)
            raw, t["type"] = reference.quantize(name.split("_G")[0], numbers, group).tobytes(), NUMBERS[name]
        else:
            raw = raw[:n * {0: 4, 1: 2}[t["type"]]]
        t["offset"] = len(tail)
        tail += raw + b"\0" * (-len(raw) % 32)
    f.tail = tail
    return f.bytes()


def test_as_it_is(world):
    want = logits(world, QWEN2)
    f = gguf.read(QWEN2.read_bytes())
    for n in ("1", "3", "all"):
        out, result = pack(world, QWEN2, "as-" + n, "--shards", n)
        assert len(list(out.glob("*.gguf"))) == (6 if n == "all" else int(n)) + 1
        for shards in ("1", "4", "all"):
            assert logits(world, out, "--shards", shards) == want, (n, shards)
        assert world.good("verify", out).out.endswith("every byte is as it was packed\n")
        names = []
        for path, part, data in parts(out):
            names += data
            for t in part.tensors:
                original = f.tensor(t["name"])
                assert (t["dims"], t["type"]) == (original["dims"], original["type"])
                size = int(np.prod(t["dims"])) * {0: 4, 1: 2}[t["type"]]
                assert data[t["name"]][:size] == f.tail[original["offset"]:original["offset"] + size]
        assert sorted(names) == sorted(t["name"] for t in f.tensors)
    first = parts(world.folder / "as-3")[0][1]
    for key, kind, v in f.pairs:
        if key != "general.alignment":
            assert first.get(key) == v, key
    ids = world.stats(out, "-p", "Hello", "--temp", "0", "-n", "4")["ids"]  # tokenizer and chat template came along
    assert ids == world.stats(QWEN2, "-p", "Hello", "--temp", "0", "-n", "4")["ids"]


@pytest.mark.parametrize("family", ("qwen2", "mixtral", "olmoe"))
def test_from_the_hub(world, family):
    """safetensors with names and layouts of their own, experts too, become canonical GGUF and stay the same numbers."""
    hub = kit.ROOT / "tests" / "fixtures" / family / "hub"
    out, _ = pack(world, hub, "out", "--shards", "3")
    want = logits(world, hub, "--exact")
    assert logits(world, out, "--exact", "--shards", "2") == want
    small, _ = pack(world, hub, "small", "--shards", "2", "--quant", "Q8_0")
    stored = {t["name"]: t["type"] for _, f, _ in parts(small) for t in f.tensors}
    assert stored.get("output.weight", stored["token_embd.weight"]) == stored["blk.1.attn_q.weight"] == 8
    assert all(v == 0 for k, v in stored.items() if "norm" in k or "ffn_gate_inp" in k)
    a, b = (np.frombuffer(x[-4 * 5 * 517:], np.float32) for x in (want, logits(world, small, "--exact")))
    assert 0 < np.abs(a - b).mean() < 0.2 * np.abs(a).mean()  # another type (and another expert at times), still that model


@pytest.mark.parametrize("name", sorted(make_gptq_awq.MODELS))
def test_gptq_and_awq(world, name):
    """Their weights as floats, rounded to another type: the same bytes as from the float twin; as they are, refused."""
    make_gptq_awq.make(world.folder, name)
    source, twin = world.folder / name, world.folder / (name + "-f32")
    world.refused("pack", source, world.folder / "no", says=("scales lie beside", "--allow-requantize"))
    world.refused("pack", source, world.folder / "no", "--quant", "Q8_0", code=2, says=("--allow-requantize",))
    out, _ = pack(world, source, "out", "--shards", "2", "--quant", "Q8_0", "--allow-requantize")
    want, _ = pack(world, twin, "want", "--shards", "2", "--quant", "Q8_0")
    for (_, f, a), (_, g, b) in zip(parts(out), parts(want)):
        assert [(t["name"], t["type"]) for t in f.tensors] == [(t["name"], t["type"]) for t in g.tensors]
        assert a == b
    assert not (world.folder / "no").exists()


def test_the_tokenizer_comes_along(world):
    """tokenizer.json and its like lie beside the weights: the bundle has them too, and its manifest their hashes."""
    source = world.folder / "hub"
    shutil.copytree(QWEN2.parent / "hub", source)
    tokenizer = kit.ROOT / "tests" / "fixtures" / "tokenizers" / "tiny_bpe517"
    (source / "tokenizer.json").write_bytes(gzip.decompress((tokenizer / "tokenizer.json.gz").read_bytes()))
    shutil.copy(tokenizer / "tokenizer_config.json", source)
    out, _ = pack(world, source, "out", "--shards", "2")
    text = "Ten people pass\n water, héllo."
    ids = world.good("tokenize", source, input=text).out
    assert ids == world.good("tokenize", out, input=text).out and len(ids.split()) > 5
    options = ("-p", "Hello", "--raw", "--temp", "0", "-n", "6", "--ignore-eos", "--exact")
    assert world.stats(out, *options)["ids"] == world.stats(source, *options)["ids"]
    listed = {f["file"]: f["sha256"] for f in json.loads((out / "manifest.json").read_text())["tokenizer"]}
    assert set(listed) == {"tokenizer.json", "tokenizer_config.json", "config.json"}
    for name, digest in listed.items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    assert "3 of a tokenizer" in world.good("verify", out).out
    world.good("pack", source, out, "--shards", "2")  # all there already
    good = (out / "tokenizer.json").read_bytes()
    (out / "tokenizer.json").write_bytes(good.replace(b"1", b"2", 1))
    world.refused("verify", out, says=("tokenizer.json", "not those that were packed"))
    world.refused("pack", source, out, "--shards", "2", "-q", says=("tokenizer.json", "another folder"))
    (out / "tokenizer.json").unlink()
    world.refused("verify", out, says=("tokenizer.json is not there",))
    manifest = json.loads((out / "manifest.json").read_text())
    for bad in ("../hub/tokenizer.json", "tokenizer.json.tmp-/../x", "notes.txt", "a\0b", ""):
        manifest["tokenizer"][0]["file"] = bad
        (out / "manifest.json").write_text(json.dumps(manifest))
        world.refused("verify", out, says=("is no file of one",))


@pytest.mark.parametrize("kind,head", (("Q8_0", "Q8_0"), ("Q4_0", "Q4_0"), ("Q4_1", "Q8_0"), ("Q4_0_G16", "Q8_0_G16"),
                                       ("Q4_1_G16", "Q4_0"), ("Q8_0", "Q4_1_G16"), ("Q4_0_G64", "Q8_0_G64")))
def test_requantised(world, kind, head):
    plain = world.folder / "plain.gguf"
    plain.write_bytes(requantised(QWEN2, kind, head))
    out, result = pack(world, QWEN2, "out", "--shards", "3", "--quant", kind.lower(), "--head-quant", head)
    assert ("stay as they are" in result.err) == ("G64" in kind), result  # 96 columns
    for args in (("--exact",), ()):
        want = logits(world, plain, *args)
        assert logits(world, out, "--shards", "3", *args) == want
        assert logits(world, out, *args) == want
    assert world.stats(out, *OPTIONS, "--shards", "3")["ids"] == world.stats(plain, *OPTIONS)["ids"]
    assert world.stats(out, *OPTIONS, "--shards", "all", "--mode", "cold")["ids"] == world.stats(plain, *OPTIONS)["ids"]


def test_head_alone(world):
    out, _ = pack(world, QWEN2, "out", "--head-quant", "Q8_0")
    types = {t["name"]: t["type"] for _, f, _ in parts(out) for t in f.tensors}
    assert types.pop("output.weight") == 8
    assert set(types.values()) == {0, 1}
    out, _ = pack(world, kit.fixture("f16"), "tied", "--quant", "Q4_0", "--head-quant", "Q8_0")  # one table for both
    types = {t["name"]: t["type"] for _, f, _ in parts(out) for t in f.tensors}
    assert types["token_embd.weight"] == 8 and types["blk.0.attn_q.weight"] == 2 and types["output_norm.weight"] == 0


def test_shards_by_hand(world):
    out, _ = pack(world, kit.fixture("f16"), "out", "--shards", "2", "--quant", "Q8_0")
    want = world.stats(out, *OPTIONS)["ids"]
    _, chain = world.line_by_hand(out, [2, 5], "--exact", "--kv", "f32")  # the tied table lies in the first file
    assert world.stats(out / "model-00003-of-00003.gguf", *OPTIONS, "--chain", chain)["ids"] == want


def test_the_same_bytes_again(world):
    copy = world.folder / "elsewhere" / "other-name.gguf"
    copy.parent.mkdir()
    shutil.copy(QWEN2, copy)
    a, _ = pack(world, QWEN2, "a", "--shards", "2", "--quant", "Q4_0")
    b, _ = pack(world, copy, "b", "--shards", "2", "--quant", "Q4_0")
    assert files(a) == files(b)


def hash_of(data):
    at = re.search(rb"brigade\.sha256\x08\0\0\0\x40\0\0\0\0\0\0\0", data).end()
    return data[at:at + 64].decode(), hashlib.sha256(data[:at] + b"0" * 64 + data[at + 64:]).hexdigest()


def test_the_hash_is_what_the_page_says(world):
    out, _ = pack(world, QWEN2, "out", "--shards", "2")
    manifest = json.loads((out / "manifest.json").read_text())
    assert [f["file"] for f in manifest["files"]] == [p.name for p, _, _ in parts(out)]
    for f in manifest["files"]:
        said, is_ = hash_of((out / f["file"]).read_bytes())
        assert f["sha256"] == said == is_


def test_every_byte_counts(world):
    out, _ = pack(world, QWEN2, "out", "--shards", "2")
    for path, f, _ in parts(out):
        good = path.read_bytes()
        # in the head, at its end, in padding, in the middle, the last one
        for at in (re.search(b"general.architecture", good).end() + 14, 4095, len(good) // 2, len(good) - 1):
            bad = bytearray(good)
            bad[at] ^= 1
            path.write_bytes(bad)
            world.refused("verify", out, says=(path.name,))
        path.write_bytes(good)
    world.good("verify", out)
    assert "no hash in 1 of them" in world.good("verify", QWEN2).out


def test_begun_again(world):
    whole, _ = pack(world, QWEN2, "whole", "--shards", "3", "--quant", "Q8_0")
    out = world.folder / "out"
    shutil.copytree(whole, out)
    (out / "manifest.json").unlink()
    world.refused("inspect", out, says=("holds no model",))
    (out / "model-00003-of-00004.gguf").rename(out / "model-00003-of-00004.gguf.part")
    (out / "model-00004-of-00004.gguf").unlink()
    (out / "model-00003-of-00004.gguf.part").write_bytes(b"cut")
    kept = os.stat(out / "model-00001-of-00004.gguf")
    result = world.good("pack", QWEN2, out, "--shards", "3", "--quant", "Q8_0")
    assert result.err.count("was there already") == 2, result
    assert os.stat(out / "model-00001-of-00004.gguf").st_ino == kept.st_ino
    assert files(out) == files(whole)
    assert world.good("pack", QWEN2, out, "--shards", "3", "--quant", "Q8_0").err.count("was there already") == 4


def test_another_request_is_refused(world):
    out, _ = pack(world, QWEN2, "out", "--shards", "2", "--quant", "Q8_0")
    before = files(out)
    for args in (("--shards", "2"), ("--shards", "2", "--quant", "Q4_0"), ("--shards", "2", "--quant", "Q8_0", "--head-quant", "F16"),
                 ("--shards", "3", "--quant", "Q8_0")):
        world.refused("pack", QWEN2, out, *args, says=("another folder",))
    world.refused("pack", kit.fixture("f16"), out, "--shards", "2", "--quant", "Q8_0", says=("another folder",))
    world.refused("pack", out, out, says=("another folder",))
    (out / "notes.txt").write_text("mine")
    world.refused("pack", QWEN2, out, "--shards", "2", "--quant", "Q8_0", says=("notes.txt", "another folder"))
    (out / "notes.txt").unlink()
    assert files(out) == before


def test_two_at_once(world):
    out = world.folder / "out"
    out.mkdir()
    lock = os.open(out, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    world.refused("pack", QWEN2, out, says=("another pack",))
    os.close(lock)
    world.good("pack", QWEN2, out)


def test_packed_again(world):
    """A bundle is a model: packing it again changes the cut and not the numbers."""
    a, _ = pack(world, QWEN2, "a", "--shards", "all", "--quant", "Q8_0")
    b, _ = pack(world, a, "b", "--shards", "2")
    c, _ = pack(world, a / "model-00003-of-00007.gguf", "c", "--shards", "2")
    assert logits(world, a) == logits(world, b)
    assert files(b) == files(c)
    world.good("verify", b)
    world.refused("pack", a, world.folder / "d", "--quant", "Q4_0", code=2, says=("is Q8_0 already", "--allow-requantize"))
    d, _ = pack(world, a, "d", "--quant", "Q4_0", "--allow-requantize")
    world.good("run", d, *OPTIONS)


@pytest.mark.parametrize("args,says", (
    (("--quant", "Q9"), "no such type"), (("--quant", "Q6_K"), "read, and not written"), (("--head-quant", "nope"), "no such type"),
    (("--shards", "0"), "--shards"), (("--shards", "7"), "7 shards"), (("more",), "one word too many")))
def test_wrong_usage(world, args, says):
    world.refused("pack", QWEN2, world.folder / "out", *args, code=2, says=says)
    assert not (world.folder / "out").exists()


def test_where_it_cannot_be(world):
    world.refused("pack", QWEN2, code=2, says=("OUT is missing",))
    world.refused("pack", QWEN2, "/nowhere/out", says=("/nowhere/out",))
    file = world.folder / "file"
    file.write_text("")
    world.refused("pack", QWEN2, file, says=("folder",))
    world.refused("pack", world.folder / "absent", world.folder / "out", says=("absent",))
    out = world.folder / "full"
    out.mkdir()
    (out / "model-00001-of-00002.gguf.part").symlink_to(file)
    world.refused("pack", QWEN2, out, says=("model-00001-of-00002.gguf",))
    assert file.read_text() == ""  # nothing is written through a link that somebody left there


@pytest.mark.parametrize("number,says", ((0x7e00, "not finite"), (0x7c00, "not finite"), (0xfc00, "not finite")))
def test_numbers_that_are_none(world, number, says):
    f = gguf.read(QWEN2.read_bytes())
    t = f.tensor("blk.3.ffn_up.weight")
    at = t["offset"] + 2 * 777
    f.tail = f.tail[:at] + struct.pack("<H", number) + f.tail[at + 2:]
    bad = world.folder / "bad.gguf"
    bad.write_bytes(f.bytes())
    out = world.folder / "out"
    world.good("pack", bad, world.folder / "same")  # nothing is computed with it
    r = world.brigade("pack", bad, out, "--shards", "2", "--quant", "Q8_0", "-q")
    kit.refusal(r, says=("blk.3.ffn_up.weight", says))
    assert not list(out.glob("*.part")) and not (out / "manifest.json").exists()


def test_numbers_too_large_for_the_type(world):
    f = gguf.read(pathlib.Path(kit.fixture("f32")).read_bytes())
    t = f.tensor("blk.1.attn_v.weight")
    f.tail = f.tail[:t["offset"]] + struct.pack("<f", 1e9) + f.tail[t["offset"] + 4:]
    bad = world.folder / "bad.gguf"
    bad.write_bytes(f.bytes())
    for kind in ("Q8_0", "Q4_0", "Q4_1", "F16", "Q5_1"):
        world.refused("pack", bad, world.folder / kind, "--quant", kind, "-q", says=("blk.1.attn_v.weight", "too large for " + kind))
    world.good("pack", bad, world.folder / "bf16", "--quant", "BF16")


MANIFESTS = (
    (lambda m: [], "an object is wanted"),
    (lambda m: {}, "brigade_bundle"),
    (lambda m: {**m, "brigade_bundle": 2}, "version 2"),
    (lambda m: {**m, "files": []}, "no files"),
    (lambda m: {**m, "files": {}}, "files"),
    (lambda m: {**m, "files": [3]}, "an object is wanted"),
    (lambda m: {**m, "files": m["files"][:-1]}, "2 files, the set has 3"),
    (lambda m: {**m, "files": m["files"][::-1]}, "where the set has"),
    (lambda m: {**m, "files": [{**m["files"][0], "file": "../x.gguf"}]}, "no name"),
    (lambda m: {**m, "files": [{**m["files"][0], "file": "x\0.gguf"}]}, "no name"),
    (lambda m: {**m, "files": [{**m["files"][0], "file": "absent.gguf"}]}, "absent.gguf"),
    (lambda m: {**m, "files": [{**f, "bytes": f["bytes"] + 1} for f in m["files"]]}, "bytes"),
    (lambda m: {**m, "files": [{**f, "sha256": "0" * 64} for f in m["files"]]}, "hash"),
    (lambda m: {**m, "files": [{**f, "sha256": 7} for f in m["files"]]}, "sha256"),
    (lambda m: {**m, "source": "0" * 64}, "another model"),
    (lambda m: {k: v for k, v in m.items() if k != "source"}, "source"),
)


def test_manifests_that_do_not_fit(world):
    out, _ = pack(world, QWEN2, "out", "--shards", "2")
    path = out / "manifest.json"
    good = json.loads(path.read_text())
    for change, says in MANIFESTS:
        path.write_text(json.dumps(change(good)))
        for verb in ("inspect", "verify"):
            world.refused(verb, out, says=(str(out), says))
    path.write_text("{")
    world.refused("inspect", out, says=("manifest.json", "line 1"))
    path.unlink()
    path.mkdir()
    world.refused("inspect", out, says=("manifest.json",))


def test_files_of_two_packs(world):
    a, _ = pack(world, QWEN2, "a", "--shards", "2", "--quant", "Q8_0")
    b, _ = pack(world, QWEN2, "b", "--shards", "2")
    shutil.copy(b / "model-00002-of-00003.gguf", a)
    world.refused("inspect", a, says=("model-00002-of-00003.gguf", "another model", "as stored"))
    world.refused("inspect", a / "model-00003-of-00003.gguf", says=("another model",))
    (a / "model-00002-of-00003.gguf").unlink()
    world.refused("run", a, *OPTIONS, says=("model-00002-of-00003.gguf",))


@pytest.mark.real
def test_the_real_one(world):
    """Q8_0 and Q4_0 of it, run by 3 shards: ids as --exact of the same weights from one file; memory far below the model."""
    options = ("-p", "Explain how a bucket brigade puts out a fire.", "--temp", "0", "-n", "24", "--ctx", "256", "--exact")
    for kind in ("Q8_0", "Q4_0"):
        out, result = pack(world, kit.MODEL, kind, "--shards", "3", "--quant", kind, "--allow-requantize", timeout=120)
        peak = float(re.search(r"peak memory ([0-9.]+) MiB", result.out).group(1))
        print("%s: %s" % (kind, result.out.strip()))
        assert 1 < peak < 24
        want = world.stats(out, *options, "--shards", "3", timeout=120)["ids"]
        single, _ = pack(world, kit.MODEL, kind + "-single", "--quant", kind, "--allow-requantize", timeout=120)
        assert world.stats(single, *options, "--shards", "1", timeout=120)["ids"] == want
        assert len(want) == 24
        world.good("verify", out)
        shutil.rmtree(single)


@pytest.mark.real
@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGKILL))
def test_stopped_and_begun_again(world, number):
    args = ("--shards", "5", "--quant", "Q8_0", "--allow-requantize")
    whole, _ = pack(world, kit.MODEL, "whole", *args, timeout=120)
    out = world.folder / "out"
    process = world.start(kit.BRIGADE, "pack", kit.MODEL, out, *args)
    deadline = time.monotonic() + 60
    while not (out / "model-00003-of-00006.gguf.part").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.001)
    process.send_signal(number)
    result = world.finish(process, 20)
    assert result.code == (130 if number == signal.SIGINT else -9), result
    left = {p.name for p in out.iterdir()}
    assert "model-00002-of-00006.gguf" in left and "manifest.json" not in left
    assert ("model-00003-of-00006.gguf.part" in left) == (number == signal.SIGKILL)
    again = world.good("pack", kit.MODEL, out, *args, timeout=120)
    assert again.err.count("was there already") == 2, again
    assert files(out) == files(whole)
