"""Bundles whose matrices lie interleaved by 16 rows: the bytes that the page says, and the same answers as the native ones."""
import json
import shutil
import struct
import sys

import numpy as np
import pytest

import kit
from test_pack import OPTIONS, QWEN2, files, logits, pack, parts

sys.path.insert(0, str(kit.ROOT / "tests" / "fixtures"))
import make_types  # noqa: E402

R16 = {8: 1200, 2: 1201, 3: 1202}
SIZES = {8: (1, 8), 2: (1, 4), 3: (2, 4)}  # f16 and 4-byte pieces of a native block


def interleaved(data, number, rows, cols):
    """By numpy: [panel, row, block, bytes] to [panel, block, f16 then pieces, row]."""
    halves, pieces = SIZES[number]
    blocks = np.frombuffer(data, np.uint8).reshape(rows // 16, 16, cols // 32, 2 * halves + 4 * pieces)
    a = blocks[..., :2 * halves].reshape(rows // 16, 16, cols // 32, halves, 2).transpose(0, 2, 3, 1, 4)
    b = blocks[..., 2 * halves:].reshape(rows // 16, 16, cols // 32, pieces, 4).transpose(0, 2, 3, 1, 4)
    flat = [x.reshape(rows // 16, cols // 32, -1) for x in (a, b)]
    return np.concatenate(flat, axis=2).tobytes()


def tensors(folder):
    """name -> (type, dims, its bytes)."""
    found = {}
    for _, f, data in parts(folder):
        for t in f.tensors:
            n, kind = int(np.prod(t["dims"])), t["type"]
            halves, pieces = SIZES.get({v: k for k, v in R16.items()}.get(kind, kind), (0, 0))
            size = n // 32 * (2 * halves + 4 * pieces) if halves else n * {0: 4, 1: 2, 30: 2}[kind]
            found[t["name"]] = kind, t["dims"], data[t["name"]][:size]
    return found


def same_but_interleaved(native, joint):
    """How many of the tensors of two bundles are interleaved in the second; all else must be as in the first."""
    a, b, n = tensors(native), tensors(joint), 0
    assert list(a) == list(b)
    for name, (kind, dims, data) in a.items():
        if b[name][0] == kind:
            assert b[name] == a[name], name
            table = name == "token_embd.weight"
            assert table or kind not in R16 or dims[1] % 16 != 0, name
            continue
        assert b[name][:2] == (R16[kind], dims), name
        assert b[name][2] == interleaved(data, kind, dims[1], dims[0]), name
        n += 1
    return n


KERNELS = ("scalar", "avx2", "avxvnni", "avx512")


@pytest.mark.parametrize("kind,head", (("Q8_0", "Q4_1"), ("Q4_0", "Q8_0"), ("Q4_1", "Q4_0")))
def test_interleaved(world, kind, head):
    args = ("--shards", "3", "--quant", kind, "--head-quant", head)
    native, _ = pack(world, QWEN2, "native", *args)
    joint, result = pack(world, QWEN2, "joint", *args, "--layout", "r16")
    # 517 rows: the tables have no panels
    assert "2 matrices keep the native layout" in result.err and "token_embd.weight (517 rows" in result.err, result
    assert same_but_interleaved(native, joint) == 5 * 7
    for exact in ((), ("--exact",)):
        want = logits(world, native, *exact)
        for shards in ("1", "3", "all"):
            assert logits(world, joint, *exact, "--shards", shards) == want, (exact, shards)
    ids = world.stats(native, *OPTIONS)["ids"]
    assert world.stats(joint, *OPTIONS, "--shards", "3")["ids"] == ids
    assert world.stats(joint, *OPTIONS, "--shards", "all", "--mode", "cold")["ids"] == ids
    assert world.good("verify", joint).out.endswith("every byte is as it was packed\n")
    # the same bytes again, the way back, and a repack as it is
    again, _ = pack(world, QWEN2, "again", *args, "--layout", "R16".lower())
    assert files(again) == files(joint)
    back, _ = pack(world, joint, "back", "--shards", "2")
    assert tensors(back) == tensors(native)
    twice, _ = pack(world, joint, "twice", "--shards", "2", "--layout", "r16")
    assert tensors(twice) == tensors(joint)
    world.refused("pack", QWEN2, joint, *args, says=("another folder",))


@pytest.mark.parametrize("kind", ("Q8_0", "Q4_0", "Q4_1"))
def test_what_is_stored_so(world, kind):
    """A file that has the type already, output table included, is interleaved and not rounded again."""
    source = world.folder / "made.gguf"
    make_types.make(kind, source)
    native, _ = pack(world, source, "native", "--shards", "2")
    joint, result = pack(world, source, "joint", "--shards", "2", "--layout", "r16")
    assert "keep the native layout" in result.err and "token_embd.weight (96 rows, F32)" in result.err, result
    assert same_but_interleaved(native, joint) == 2 * 7 + 1
    long = ",".join(str(i * 7 % 96) for i in range(45))  # more rows than a tile, and no multiple of one
    for exact in ((), ("--exact",)):
        world.good("logits", native, "--ids", long, "--out", world.folder / "want.npy", "-q", *exact)
        want = (world.folder / "want.npy").read_bytes()
        for kernel in KERNELS if kind == "Q4_1" or kit.FULL else ("",):
            env = {"BRIGADE_KERNEL": kernel} if kernel else None
            r = world.brigade("logits", joint, "--ids", long, "--out", world.folder / "got.npy", "-q", *exact,
                              "--shards", "2", env=env)
            if r.code != 0 and "CPU" in r.err:
                print("%s: this CPU does not have it" % kernel)
                continue
            assert r.code == 0 and (world.folder / "got.npy").read_bytes() == want, (kernel, exact, r)


def test_experts(world):
    source = kit.ROOT / "tests" / "fixtures" / "olmoe" / "q4_0.gguf"
    native, _ = pack(world, source, "native", "--shards", "2")
    joint, _ = pack(world, source, "joint", "--shards", "2", "--layout", "r16")
    assert same_but_interleaved(native, joint) > 16 * 3
    for exact in ((), ("--exact",)):
        assert logits(world, joint, *exact, "--shards", "2") == logits(world, source, *exact)


def test_from_words(world):
    """What GPTQ has in words goes into panels as well."""
    from test_pack import make_gptq_awq
    name = sorted(make_gptq_awq.MODELS)[0]
    make_gptq_awq.make(world.folder, name)
    args = (world.folder / name, "--quant", "Q4_0", "--allow-requantize")
    native, _ = pack(world, args[0], "native", *args[1:])
    joint, _ = pack(world, args[0], "joint", *args[1:], "--layout", "r16")
    assert same_but_interleaved(native, joint) > 0


def test_other_types_stay(world):
    joint, result = pack(world, QWEN2, "joint", "--layout", "r16")
    assert "37 matrices keep the native layout" in result.err and "F16" in result.err, result
    native, _ = pack(world, QWEN2, "native")
    assert tensors(joint) == tensors(native)
    quiet = world.good("pack", QWEN2, world.folder / "quiet", "--layout", "r16", "-q")
    assert quiet.err == ""
    six, _ = pack(world, joint, "q5", "--quant", "Q5_0", "--layout", "r16")
    assert all(kind in (0, 6) for _, f, _ in parts(six) for kind in (t["type"] for t in f.tensors))


def test_rounded_again(world):
    """From interleaved Q8_0 to Q4_0: as from the native one."""
    native, _ = pack(world, QWEN2, "native", "--quant", "Q8_0")
    joint, _ = pack(world, QWEN2, "joint", "--quant", "Q8_0", "--layout", "r16")
    world.refused("pack", joint, world.folder / "no", "--quant", "Q4_0", code=2, says=("--allow-requantize",))
    more = ("--quant", "Q4_0", "--allow-requantize", "--layout", "r16")
    a, _ = pack(world, native, "a", *more)
    b, _ = pack(world, joint, "b", *more)
    assert tensors(a) == tensors(b) and any(kind == 1201 for kind, _, _ in tensors(a).values())
    c, _ = pack(world, joint, "c", "--quant", "Q8_0", "--layout", "r16")  # already so: nothing to round
    assert tensors(c) == tensors(joint)


def retyped(path, name, old, new):
    """The file with another type number at that tensor."""
    data = bytearray(path.read_bytes())
    at = data.index(struct.pack("<Q", len(name)) + name.encode()) + 8 + len(name)
    at += 4 + 8 * struct.unpack_from("<I", data, at)[0]
    assert struct.unpack_from("<I", data, at)[0] == old
    struct.pack_into("<I", data, at, new)
    path.write_bytes(data)


@pytest.mark.parametrize("name,old,new,says", (
    ("output.weight", 8, 1200, ("output.weight", "517 rows", "Q8_0_R16 needs a multiple of 16")),
    ("token_embd.weight", 8, 1200, ("token_embd.weight", "517 rows")),
    ("blk.0.attn_norm.weight", 0, 1201, ("blk.0.attn_norm.weight", "1 rows")),
    ("blk.0.attn_q.weight", 8, 1202, ("blk.0.attn_q.weight",)),  # another size
    ("blk.0.attn_q.weight", 8, 1203, ("blk.0.attn_q.weight", "1203"))))
def test_bad_ones(world, name, old, new, says):
    out, _ = pack(world, QWEN2, "out", "--shards", "2", "--quant", "Q8_0")
    for path in sorted(out.glob("*.gguf")):
        if (struct.pack("<Q", len(name)) + name.encode()) in path.read_bytes():
            retyped(path, name, old, new)
    if name == "blk.0.attn_q.weight" and new == 1202:  # smaller blocks fit into their place: only the hash tells
        world.refused("verify", out, says=("not those that were packed",))
        return
    for verb in ("inspect", "verify"):
        world.refused(verb, out, says=says)
    world.refused("run", out, *OPTIONS, says=says)


def test_a_table_is_read_by_single_rows(world):
    source = world.folder / "made.gguf"
    make_types.make("Q8_0", source)
    out, _ = pack(world, source, "out", "--quant", "Q8_0")
    retyped(out / "model-00001-of-00002.gguf", "token_embd.weight", 8, 1200)
    world.refused("run", out, *OPTIONS, says=("token_embd.weight", "single rows"))


def test_cut_short(world):
    out, _ = pack(world, QWEN2, "out", "--shards", "2", "--quant", "Q4_0", "--layout", "r16")
    path = out / "model-00002-of-00003.gguf"
    data = path.read_bytes()
    for n in (len(data) - 1, len(data) // 2, 100):
        path.write_bytes(data[:n])
        world.refused("inspect", out, says=(path.name,))
    bad = bytearray(data)
    bad[len(data) // 2] ^= 4
    path.write_bytes(bad)
    world.refused("verify", out, says=(path.name, "not those that were packed"))


@pytest.mark.parametrize("args,says", (
    (("--layout", "r8"), ("--layout", "native or r16")), (("--layout", ""), ("--layout",)),
    (("--quant", "Q4_0_R16"), ("--quant", "--layout r16"))))
def test_wrong_usage(world, args, says):
    world.refused("pack", QWEN2, world.folder / "out", *args, code=2, says=says)
    assert not (world.folder / "out").exists()


@pytest.mark.real
def test_the_real_one(world):
    """SmolLM2 in Q4_0, native and interleaved: ids, and logits of more rows than a tile, to the byte."""
    args = ("--shards", "3", "--quant", "Q4_0", "--allow-requantize")
    native, _ = pack(world, kit.MODEL, "native", *args, timeout=120)
    joint, result = pack(world, kit.MODEL, "joint", *args, "--layout", "r16", timeout=120)
    print(result.out.strip())
    assert same_but_interleaved(native, joint) == 30 * 7
    prompt = ("-p", "Explain how a bucket brigade puts out a fire.", "--temp", "0", "-n", "24", "--ctx", "256")
    for exact in ((), ("--exact",)):
        want = world.stats(native, *prompt, *exact, timeout=120)["ids"]
        assert len(want) == 24
        assert world.stats(joint, *prompt, *exact, "--shards", "3", timeout=120)["ids"] == want
    ids = json.loads(world.good("tokenize", joint, "--json", input="Ten people pass water from hand to hand. " * 5).out)["ids"]
    assert len(ids) > 40
    for folder in (native, joint):
        world.good("logits", folder, "--ids", ",".join(map(str, ids)), "--out", world.folder / (folder.name + ".npy"), "-q",
                   "--shards", "3", timeout=120)
    assert (world.folder / "native.npy").read_bytes() == (world.folder / "joint.npy").read_bytes()
    shutil.rmtree(native)
