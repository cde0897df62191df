"""Files that are cut, damaged or lying: one line that names the file and the reason, exit code 1, never a crash."""
import random
import struct

import pytest

import gguf
import kit
from kit import fixture


def refused(world, path, says=(), verb=None):
    return kit.refusal(world.brigade(*(verb or ("inspect",)), path, timeout=10), 1, [str(path), *says])


def write(world, data, name="damaged.gguf"):
    path = world.folder / name
    path.write_bytes(data)
    return path


def test_a_file_cut_at_any_byte(world):
    data = open(fixture(), "rb").read()
    head = gguf.read(data).data_start
    points = set(range(0, 64)) | set(range(0, head, 997 if not kit.FULL else 53)) | {
        head - 1, head, head + 1, len(data) // 2, len(data) - 1}
    if kit.SANITIZED:
        points = sorted(points)[::8]
    for n in sorted(points):
        refused(world, write(world, data[:n]))
    for verb in (("run", "-p", "x", "--raw", "-n", "2"), ("tokenize",), ("bench",)):
        refused(world, write(world, data[:len(data) - 1]), verb=verb)
    shard = world.run(kit.SHARD, write(world, data[:len(data) - 1]), "--layers", "all", "--control", "abstract://x")
    assert shard.code == 1 and "damaged.gguf" in shard.err and len(shard.lines()) == 1, shard


def test_what_is_no_model(world):
    refused(world, world.folder / "absent.gguf")
    refused(world, write(world, b""))
    refused(world, write(world, b"PK\x03\x04" + b"x" * 1000))
    refused(world, write(world, b"\x00" * 4096))
    refused(world, world.folder)
    refused(world, "/dev/zero")
    data = bytearray(open(fixture(), "rb").read())
    data[4:8] = struct.pack("<I", 1)
    refused(world, write(world, data), says=["version"])
    data[4:8] = struct.pack("<I", 99)
    refused(world, write(world, data), says=["99"])
    data[4:8] = struct.pack(">I", 3)
    refused(world, write(world, data))


@pytest.mark.parametrize("at", (8, 16), ids=("tensors", "pairs"))
@pytest.mark.parametrize("value", (0, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1))
def test_absurd_counts(world, at, value):
    data = bytearray(open(fixture(), "rb").read())
    data[at:at + 8] = struct.pack("<Q", value)
    refused(world, write(world, data))


BIG = 2**64 - 1
EDITS = [
    ("a type that is not known", lambda g: g.tensor("blk.1.attn_q.weight").update(type=77), ["attn_q", "77"]),
    ("a type that is not supported", lambda g: g.tensor("blk.1.attn_q.weight").update(type=15), ["attn_q", "Q8_K"]),
    ("rows that are no whole blocks", lambda g: g.tensor("blk.1.attn_q.weight").update(type=12),
     ["attn_q", "96 columns", "Q4_K", "256"]),
    ("an architecture that is not known", lambda g: g.set("general.architecture", 8, "mamba"), ["mamba"]),
    ("no architecture", lambda g: g.drop("general.architecture"), ["architecture"]),
    ("a missing tensor", lambda g: g.remove("blk.3.ffn_up.weight"), ["blk.3.ffn_up.weight"]),
    ("no output norm", lambda g: g.remove("output_norm.weight"), ["output_norm.weight"]),
    ("a doubled tensor", lambda g: g.tensor("blk.3.ffn_up.weight").update(name="blk.2.ffn_up.weight"),
     ["blk.2.ffn_up.weight"]),
    ("a doubled key", lambda g: g.pairs.append(g.pairs[3]), [lambda g: g.pairs[3][0]]),
    ("a dimension of zero", lambda g: g.tensor("blk.1.attn_q.weight").update(dims=[96, 0]), ["blk.1.attn_q.weight"]),
    ("no dimensions", lambda g: g.tensor("blk.1.attn_q.weight").update(dims=[]), ["blk.1.attn_q.weight"]),
    ("five dimensions", lambda g: g.tensor("blk.1.attn_q.weight").update(dims=[2, 2, 2, 2, 2]), ["blk.1.attn_q.weight"]),
    ("dimensions that overflow", lambda g: g.tensor("blk.1.attn_q.weight").update(dims=[2**40, 2**40]),
     ["blk.1.attn_q.weight"]),
    ("dimensions of another model", lambda g: g.tensor("blk.1.attn_q.weight").update(dims=[96, 64]),
     ["blk.1.attn_q.weight"]),
    ("a row that is no whole block", lambda g: g.tensor("blk.1.attn_q.weight").update(dims=[48, 192]),
     ["blk.1.attn_q.weight"]),
    ("an offset past the end", lambda g: g.tensor("blk.1.attn_q.weight").update(offset=2**40), ["blk.1.attn_q.weight"]),
    ("an offset that overflows", lambda g: g.tensor("blk.1.attn_q.weight").update(offset=BIG - 31),
     ["blk.1.attn_q.weight"]),
    ("an offset that is not aligned", lambda g: g.tensor("blk.1.attn_q.weight").update(offset=1),
     ["blk.1.attn_q.weight"]),
    ("an alignment of zero", lambda g: g.set("general.alignment", 4, 0), ["alignment"]),
    ("an alignment that is no power of two", lambda g: g.set("general.alignment", 4, 33), ["alignment"]),
    ("no layers", lambda g: g.set("llama.block_count", 4, 0), ["layers is 0"]),
    ("more layers than tensors", lambda g: g.set("llama.block_count", 4, 6), ["blk.5"]),
    ("a billion layers", lambda g: g.set("llama.block_count", 4, 10**9), ["layers is 1000000000"]),
    ("fewer layers than tensors", lambda g: g.set("llama.block_count", 4, 4), ["blk.4"]),
    ("no heads", lambda g: g.set("llama.attention.head_count", 4, 0), ["head_count"]),
    ("heads that do not divide", lambda g: g.set("llama.attention.head_count_kv", 4, 4), ["head"]),
    ("an epsilon that is no number", lambda g: g.set("llama.attention.layer_norm_rms_epsilon", 6, float("nan")), []),
    ("a width that is text", lambda g: g.set("llama.embedding_length", 8, "wide"), ["embedding_length"]),
    ("a width that is huge", lambda g: g.set("llama.embedding_length", 4, 2**31), ["hidden size"]),
    ("a vocabulary that does not fit", lambda g: g.set("tokenizer.ggml.tokens", 9, (8, ["a"] * 500)), ["tokens"]),
    ("token types that do not fit", lambda g: g.set("tokenizer.ggml.token_type", 9, (5, [1] * 3)), ["token_type"]),
    ("an end token outside", lambda g: g.set("tokenizer.ggml.eos_token_id", 4, 99999), ["eos"]),
]


@pytest.mark.parametrize("edit,says", [e[1:] for e in EDITS], ids=[e[0] for e in EDITS])
def test_lying_headers(world, edit, says):
    g = gguf.read(open(fixture(), "rb").read())
    edit(g)
    words = [w(g) if callable(w) else w for w in says]
    path = write(world, g.bytes())
    refused(world, path, says=words)
    refused(world, path, says=words, verb=("run", "-p", "x", "--raw", "-n", "2"))


def test_an_edit_of_nothing_is_still_a_model(world):
    """Otherwise the tests above might refuse what this file writes badly."""
    g = gguf.read(open(fixture(), "rb").read())
    path = write(world, g.bytes())
    options = ("--raw", "-p", "x", "--temp", "0", "-n", "8", "--ignore-eos")
    assert world.stats(path, *options)["ids"] == world.stats(fixture(), *options)["ids"]


def test_a_merge_that_means_nothing_is_named(world):
    g = gguf.read(open(fixture(), "rb").read())
    g.set("tokenizer.ggml.merges", 9, (8, ["nospace"]))
    result = world.brigade("tokenize", write(world, g.bytes()), input="x")
    assert result.code == 1 and "damaged.gguf" in result.err and len(result.lines()) == 1, result


def test_random_damage_never_crashes(world):
    """Bytes of the header replaced at random: an answer or a refusal, both in time, is all that may come of it."""
    data = open(fixture(), "rb").read()
    head = gguf.read(data).data_start
    rng = random.Random(20)
    for _ in range(400 if kit.FULL else 12 if kit.SANITIZED else 60):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(head)] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        path = write(world, damaged)
        for args in (("inspect", path), ("run", path, "--raw", "-p", "ab", "-n", "2", "--temp", "0", "-q", "--ctx", "32")):
            result = world.brigade(*args, timeout=20)
            assert result.code in (0, 1), result
            if result.code == 1:
                kit.refusal(result, 1, path)


def test_a_shard_names_a_file_that_changed_under_it(world):
    """The file shrinks after the shard has mapped it: one line, no hang."""
    path = write(world, open(fixture("f32"), "rb").read())
    process, url = world.shard(path, "--layers", "all", "--head")
    with open(path, "r+b") as f:
        f.truncate(100_000)
    result = world.brigade("run", fixture("f32"), "--raw", "-p", "x", "-n", "4", "--chain", url, "--timeout", "3",
                           timeout=15)
    assert result.code == 1 and len(result.lines()) == 1, result
    ended = world.finish(process, 10 * kit.SLOWER)
    assert ended.code == 1, ended
