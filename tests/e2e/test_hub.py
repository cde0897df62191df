"""Folders as on the Hugging Face hub: the numbers of the reference, whatever the files, and clear refusals."""
import gzip
import json
import os
import random
import shutil

import numpy as np
import pytest

import kit
import st
from kit import ROOT, fixture, reference

FIXTURES = ROOT / "tests" / "fixtures"
INDEX = "model.safetensors.index.json"


def logits(world, model, ids, *args):
    path = world.folder / "out.npy"
    world.good("logits", model, "--ids", ",".join(map(str, ids)), "--out", path, "-q", *args)
    return np.load(path)


def check_against(world, model, ref, want):
    """Logits within 2e-4, the reference's greedy ids, and the same bits for every number of shards."""
    prompt, greedy = ref["prompt_ids"], ref["greedy_ids"]
    rows = logits(world, model, prompt + greedy[:-1], "--exact")
    assert np.abs(rows[:len(prompt)] - want).max() <= 2e-4
    assert rows[len(prompt) - 1:].argmax(axis=1).tolist() == greedy
    for shards in ("2", "all"):
        assert logits(world, model, prompt + greedy[:-1], "--exact", "--shards", shards).tobytes() == rows.tobytes()


def copy_of(world, source, config="config.json"):
    folder = world.folder / (source.parent.name + "-" + config)
    shutil.copytree(source, folder)
    shutil.copyfile(source / config, folder / "config.json")
    return folder


@pytest.mark.parametrize("config", ("config.json", "config_hub.json"))
def test_qwen2_in_five_files(world, config):
    base = FIXTURES / "qwen2"
    ref = json.loads((base / "hub.ref.json").read_text())
    check_against(world, copy_of(world, base / "hub", config), ref, np.load(base / "hub.logits_prompt.npy"))


def llama(world, name="llama", **more):
    """The tiny llama as a folder; config entries of None are left out."""
    files, dtype = more.pop("files", 1), more.pop("dtype", "F32")
    tensors, config = st.from_gguf(fixture("f32"))
    config.update(more)
    return st.write(world.folder / name, tensors, config, files, dtype)


def test_llama_in_the_order_of_the_hub(world):
    check_against(world, llama(world), reference("f32"), np.load(kit.LLAMA / "f32.logits_prompt.npy"))


def test_qwen3(world):
    base = FIXTURES / "qwen3"
    folder = st.write(world.folder / "qwen3", *st.from_gguf(base / "q4_0.gguf"), files=2)
    ref = json.loads((base / "q4_0.ref.json").read_text())
    check_against(world, folder, ref, np.load(base / "q4_0.logits_prompt.npy"))


@pytest.mark.parametrize("dtype", ("F16", "BF16"))
def test_16_bit_floats_are_the_same_as_their_values_in_32(world, dtype):
    tensors, config = st.from_gguf(fixture("f32"))
    rounded = {n: st.decode(st.encode(a, dtype), dtype, a.shape) for n, a in tensors.items()}
    assert any((rounded[n] != a).any() for n, a in tensors.items())
    narrow = st.write(world.folder / "narrow", tensors, config, files=3, dtype=dtype)
    wide = st.write(world.folder / "wide", rounded, config)
    ids = reference("f32")["prompt_ids"]
    assert logits(world, narrow, ids, "--exact").tobytes() == logits(world, wide, ids, "--exact").tobytes()
    types = {t["type"] for t in json.loads(world.good("inspect", narrow, "--json").out)["tensors"]}
    assert types == {dtype}


def test_the_same_bits_however_the_tensors_lie(world):
    ids = reference("f32")["prompt_ids"]
    want = logits(world, llama(world), ids).tobytes()
    assert logits(world, llama(world, "many", files=13), ids).tobytes() == want
    tensors, config = st.from_gguf(fixture("f32"))
    backwards = dict(sorted(tensors.items(), reverse=True))
    assert logits(world, st.write(world.folder / "backwards", backwards, config), ids).tobytes() == want
    f = st.File(tensors)  # a gap before the last tensor, bytes after it, an odd header
    last = max(f.header.values(), key=lambda v: v.get("data_offsets", [0])[0])
    at, end = last["data_offsets"]
    f.data = f.data[:at] + b"x" * 3 + f.data[at:] + b"y" * 5
    last["data_offsets"] = [at + 3, end + 3]
    folder = llama(world, "gaps")
    (folder / "model.safetensors").write_bytes(f.bytes())
    assert logits(world, folder, ids).tobytes() == want


def identity(world, model):
    return json.loads(world.good("inspect", model, "--json").out)["identity"]


def test_a_folder_is_named_in_many_ways(world):
    folder = llama(world, files=2)
    want = identity(world, folder)
    for path in ("%s/" % folder, "%s//" % folder, folder / "model-00001-of-00002.safetensors",
                 folder / "model-00002-of-00002.safetensors"):
        assert identity(world, path) == want
    os.symlink(folder, world.folder / "link")
    assert identity(world, world.folder / "link") == want
    copy = world.folder / "copy"
    shutil.copytree(folder, copy)
    assert identity(world, copy) == want
    data = bytearray((copy / "model-00002-of-00002.safetensors").read_bytes())
    data[-1] ^= 1
    (copy / "model-00002-of-00002.safetensors").write_bytes(data)
    assert identity(world, copy) != want
    (copy / "model-00002-of-00002.safetensors").write_bytes(
        (folder / "model-00002-of-00002.safetensors").read_bytes())
    (copy / "config.json").write_text((copy / "config.json").read_text().replace("SomethingFor", "AnotherFor"))
    assert identity(world, copy) != want


def test_a_weight_file_of_another_name(world):
    """What it holds counts, not what it is called: a file that no index has is a model by itself."""
    folder = llama(world, files=2)
    tensors, _ = st.from_gguf(fixture("f32"))
    (folder / "weights.bin").write_bytes(st.File(tensors).bytes())
    ids = reference("f32")["prompt_ids"]
    assert logits(world, folder / "weights.bin", ids).tobytes() == logits(world, folder, ids).tobytes()


def test_links_into_a_cache(world):
    """The hub's own cache: names in a snapshot are links to files that are called by their hashes."""
    folder = llama(world, files=2)
    blobs, snapshot = world.folder / "blobs", world.folder / "snapshot"
    blobs.mkdir(), snapshot.mkdir()
    for i, path in enumerate(sorted(folder.iterdir())):
        os.rename(path, blobs / str(i))
        os.symlink("../blobs/%d" % i, snapshot / path.name)
    ids = reference("f32")["prompt_ids"]
    want = logits(world, snapshot, ids).tobytes()
    assert logits(world, snapshot / "model-00001-of-00002.safetensors", ids).tobytes() == want


def test_shards_by_hand(world):
    folder = llama(world, files=3)
    ids = reference("f32")["prompt_ids"]
    _, chain = world.line_by_hand(folder, (2,))
    assert logits(world, folder, ids, "--chain", chain).tobytes() == logits(world, folder, ids).tobytes()


def test_inspect(world):
    folder = llama(world, files=2)
    shown = json.loads(world.good("inspect", folder, "--json").out)
    assert shown["format"] == "safetensors" and shown["arch"] == "llama" and shown["name"] == "llama"
    assert shown["desc"]["tied"] and shown["desc"]["n_kv_heads"] == 2 and shown["weights_bytes"] == 403968 * 4
    assert shown["metadata"]["brigade.hub_layout"] == "true"
    names = [t["name"] for t in shown["tensors"]]
    assert names[0] == "token_embd.weight" and names[-1] == "output_norm.weight" and len(names) == 47
    assert shown["tensors"][0]["own_name"] == "model.embed_tokens.weight"
    assert names.index("blk.1.ffn_down.weight") + 1 == names.index("blk.2.attn_norm.weight")
    text = world.good("inspect", folder).out
    assert "safetensors" in text and "llama.attention.head_count = 6" in text


def with_tokenizer(folder):
    """The tokenizer that the GGUF fixture has too."""
    source = FIXTURES / "tokenizers" / "tiny_bpe517"
    (folder / "tokenizer.json").write_bytes(gzip.decompress((source / "tokenizer.json.gz").read_bytes()))
    shutil.copyfile(source / "tokenizer_config.json", folder / "tokenizer_config.json")
    return folder


def test_text_in_and_out(world):
    folder = with_tokenizer(llama(world, files=2))
    options = ("-p", "Why is the sky blue?", "--temp", "0", "-n", "24", "--exact")
    for more in ((), ("--raw", "--ignore-eos")):
        want = world.stats(fixture("f32"), *options, *more)
        got = world.stats(folder, *options, *more)
        assert got["ids"] == want["ids"] and got["prompt_tokens"] == want["prompt_tokens"] > 4
    text = "a  line, naïve & long\n"
    for model in (folder, folder / "model-00002-of-00002.safetensors"):
        assert world.good("tokenize", model, input=text).out == world.good("tokenize", fixture("f32"), input=text).out
    vocab = json.loads(world.good("inspect", folder, "--json").out)["vocab"]
    assert vocab["n_tokens"] == 517 and vocab["eos"] == 2


def test_a_folder_without_tokenizer_says_so(world):
    folder = llama(world)
    for verb in (("run", "-p", "x"), ("tokenize",)):
        refused(world, folder, "no tokenizer", verb=verb)
    (folder / "tokenizer.json").write_text("{")
    for verb in (("run", "-p", "x"), ("tokenize",), ("inspect",)):
        refused(world, folder, "tokenizer.json", verb=verb)
    logits(world, folder, [1, 2])  # needs none


def test_an_output_table_beside_a_tied_one_is_not_read(world):
    tensors, config = st.from_gguf(fixture("f32"))
    ids = reference("f32")["prompt_ids"]
    want = logits(world, st.write(world.folder / "plain", tensors, config), ids, "--exact")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"] * 2
    tied = st.write(world.folder / "tied", tensors, config)
    assert logits(world, tied, ids, "--exact").tobytes() == want.tobytes()
    config["tie_word_embeddings"] = False
    untied = st.write(world.folder / "untied", tensors, config)
    assert logits(world, untied, ids, "--exact").tobytes() == (want * 2).tobytes()


def test_buffers_and_other_towers_are_left_out(world):
    tensors, config = st.from_gguf(fixture("f32"))
    ids = reference("f32")["prompt_ids"]
    want = logits(world, st.write(world.folder / "plain", tensors, config), ids).tobytes()
    f = st.File(tensors)
    for name, shape in (("model.layers.0.self_attn.rotary_emb.inv_freq", []), ("vision_tower.w", [2, 2, 2, 2, 2, 2])):
        n = 8 * int(np.prod(shape))
        f.header[name] = {"dtype": "I64", "shape": shape, "data_offsets": [len(f.data), len(f.data) + n]}
        f.data += b"z" * n
    folder = world.folder / "plain"
    (folder / "model.safetensors").write_bytes(f.bytes())
    assert logits(world, folder, ids).tobytes() == want


# ---- refusals ----

VERBS = (("inspect",), ("logits", "--ids", "1", "--out", "/dev/null"), ("run", "-p", "x", "--raw"), ("bench",))


def refused(world, path, *says, verb=("inspect",)):
    return kit.refusal(world.brigade(*verb, path, timeout=10), 1, [str(path), *says])


def Q(f):
    return f.header["model.layers.1.self_attn.q_proj.weight"]


def overlap(f):
    other = f.header["model.layers.2.self_attn.q_proj.weight"]
    Q(f)["data_offsets"] = [n + 4 for n in other["data_offsets"]]


def doubled_key(f):
    text = json.dumps(f.header)
    f.text = ('{"model.norm.weight": {"dtype":"F32","shape":[1],"data_offsets":[0,4]},' + text[1:]).encode()


NAME = "model.layers.1.self_attn.q_proj.weight"
HEADERS = [
    ("overlapping ranges", overlap, ["q_proj.weight", "overlap"]),
    ("the same range twice", lambda f: Q(f).update(
        data_offsets=f.header["model.layers.2.self_attn.q_proj.weight"]["data_offsets"]), ["overlap"]),
    ("a range that ends before it begins", lambda f: Q(f).update(data_offsets=[40000, 4]), [NAME, "40000 to 4"]),
    ("a range past the end", lambda f: Q(f).update(data_offsets=[2**50, 2**50 + 96 * 96 * 4]), [NAME, "the file has"]),
    ("a range of 2^60 bytes", lambda f: Q(f).update(data_offsets=[0, 2**60]), [NAME, str(2**60)]),
    ("a range of more than 64 bits", lambda f: Q(f).update(data_offsets=[0, 2**64]), []),
    ("a negative range", lambda f: Q(f).update(data_offsets=[-4, 96]), [NAME, "-4"]),
    ("a range of floats", lambda f: Q(f).update(data_offsets=[0.5, 4.5]), [NAME]),
    ("a range of one number", lambda f: Q(f).update(data_offsets=[0]), [NAME, "data_offsets"]),
    ("no range", lambda f: Q(f).pop("data_offsets"), [NAME, "data_offsets"]),
    ("a range of another size", lambda f: Q(f).update(shape=[96, 95]), [NAME, "need %d" % (96 * 95 * 4)]),
    ("a shape that overflows", lambda f: Q(f).update(shape=[2**40, 2**40]), [NAME, "shape"]),
    ("a shape of nothing", lambda f: Q(f).update(shape=[0, 2**62]), [NAME]),
    ("a shape of nine", lambda f: Q(f).update(shape=[1] * 9), [NAME, "8 dimensions"]),
    ("a shape of text", lambda f: Q(f).update(shape="big"), [NAME, "a string"]),
    ("no shape", lambda f: Q(f).pop("shape"), [NAME, "shape"]),
    ("an unknown dtype", lambda f: Q(f).update(dtype="F99"), [NAME, "F99"]),
    ("a dtype that is no weight", lambda f: Q(f).update(dtype="I32"), [NAME, "I32"]),
    ("no dtype", lambda f: Q(f).pop("dtype"), [NAME, "dtype"]),
    ("a tensor that is a number", lambda f: f.header.update({NAME: 3}), [NAME, "a whole number"]),
    ("a missing tensor", lambda f: f.header.pop(NAME), [NAME, "missing"]),
    ("no token table", lambda f: f.header.pop("model.embed_tokens.weight"), ["model.embed_tokens.weight", "missing"]),
    ("a tensor that nobody knows", lambda f: f.header.update(
        {"model.layers.1.self_attn.gate.weight": f.header.pop("model.layers.1.mlp.up_proj.weight")}),
     ["model.layers.1.self_attn.gate.weight", "not supported"]),
    ("a layer too many", lambda f: f.header.update(
        {"model.layers.5.mlp.up_proj.weight": f.header.pop("model.layers.4.mlp.up_proj.weight")}),
     ["model.layers.5.mlp.up_proj.weight", "no layer"]),
    ("another shape of the same size", lambda f: Q(f).update(shape=[192, 48]), [NAME, "48 x 192"]),
    ("a name that is no text", lambda f: f.header.update({"a\x01b": Q(f)}), ["printable ASCII"]),
    ("a name without end", lambda f: f.header.update({"a" * 600: Q(f)}), ["600"]),
    ("metadata that are a number", lambda f: f.header.update({"__metadata__": 3}), ["__metadata__"]),
    ("a doubled key", doubled_key, ["header", "duplicate"]),
    ("a header of 2^60 bytes", lambda f: setattr(f, "length", 2**60), [str(2**60)]),
    ("a header of 2^64 - 1 bytes", lambda f: setattr(f, "length", 2**64 - 1), [str(2**64 - 1)]),
    ("a header of nothing", lambda f: setattr(f, "length", 0), ["header"]),
    ("a header that is cut", lambda f: setattr(f, "length", 100), ["header"]),
    ("a header that is no JSON", lambda f: setattr(f, "text", b"{nothing here}"), ["header"]),
    ("a header that is an array", lambda f: setattr(f, "text", b"[1, 2, 3, 4]"), ["{"]),
    ("a header in depth", lambda f: setattr(f, "text", b'{"a":' + b"[" * 100000), ["header"]),
    ("a header of bad UTF-8", lambda f: setattr(f, "text", b'{"a\xff": 1}'), ["header"]),
    ("an empty header", lambda f: setattr(f, "text", b"{}"), ["missing"]),
]


@pytest.mark.parametrize("edit,says", [h[1:] for h in HEADERS], ids=[h[0] for h in HEADERS])
def test_lying_headers(world, edit, says):
    tensors, config = st.from_gguf(fixture("f32"))
    f = st.File(tensors)
    edit(f)
    folder = st.write(world.folder / "m", {}, config)
    (folder / "model.safetensors").write_bytes(f.bytes())
    for verb in VERBS[:2 if kit.FULL else 1]:
        refused(world, folder, *says, verb=verb)


def test_a_file_cut_at_any_byte(world):
    folder = llama(world)
    path = folder / "model.safetensors"
    data = path.read_bytes()
    head = 8 + int.from_bytes(data[:8], "little")
    points = set(range(0, 24)) | set(range(0, head, 997 if not kit.FULL else 53)) | {
        head - 1, head, head + 1, len(data) // 2, len(data) - 1}
    for n in sorted(points)[::8 if kit.SANITIZED else 1]:
        path.write_bytes(data[:n])
        refused(world, folder, "model.safetensors")
    for verb in VERBS:
        refused(world, folder, "model.safetensors", verb=verb)
    shard = world.run(kit.SHARD, folder, "--layers", "all", "--control", "abstract://x")
    assert shard.code == 1 and "model.safetensors" in shard.err and len(shard.lines()) == 1, shard


def set_map(edit):
    def change(folder):
        index = json.loads((folder / INDEX).read_text())
        edit(index)
        (folder / INDEX).write_text(json.dumps(index))
    return change


def to_fifo(folder):
    (folder / "model-00002-of-00002.safetensors").unlink()
    os.mkfifo(folder / "model-00002-of-00002.safetensors")


PART = "model-00002-of-00002.safetensors"
NORM = "model.norm.weight"
FOLDERS = [
    ("a file that is absent", lambda d: (d / PART).unlink(), [PART, "No such file"]),
    ("a file that is a folder", lambda d: ((d / PART).unlink(), (d / PART).mkdir()), [PART, "folder"]),
    ("a file that is a pipe", to_fifo, [PART, "not a regular file"]),
    ("a file that links to itself", lambda d: ((d / PART).unlink(), os.symlink(PART, d / PART)), [PART]),
    ("an index that names absent files", set_map(lambda i: i["weight_map"].update({NORM: "gone.safetensors"})),
     ["gone.safetensors", "No such file"]),
    ("an index that leaves the folder", set_map(lambda i: i["weight_map"].update({NORM: "../m.safetensors"})),
     [INDEX, "../m.safetensors"]),
    ("an index with a whole path", set_map(lambda i: i["weight_map"].update({NORM: "/etc/passwd"})),
     [INDEX, "/etc/passwd"]),
    ("an index with a name of nothing", set_map(lambda i: i["weight_map"].update({NORM: ""})), [INDEX]),
    ("an index with a number", set_map(lambda i: i["weight_map"].update({NORM: 7})), [INDEX, "a whole number"]),
    ("an index with the wrong file", set_map(lambda i: i["weight_map"].update(
        {n: PART for n in i["weight_map"]})), [INDEX, "is not in"]),
    ("an index with a tensor that is nowhere", set_map(lambda i: i["weight_map"].update({"x.y": PART})),
     [INDEX, "'x.y'", PART]),
    ("an index without a map", set_map(lambda i: i.pop("weight_map")), [INDEX, "weight_map"]),
    ("an index of nothing", set_map(lambda i: i.update(weight_map={})), [INDEX, "weight_map"]),
    ("an index that is an array", lambda d: (d / INDEX).write_text("[]"), [INDEX, "an array"]),
    ("an index that is cut", lambda d: (d / INDEX).write_text('{"weight_map": {'), [INDEX, "line"]),
    ("an index of too many files", set_map(lambda i: i.update(weight_map={"a%d" % n: "f%d" % n for n in range(3000)})),
     ["f0", "No such file"]),
    ("a tensor in two files", lambda d: (d / PART).write_bytes((d / PART.replace("2-", "1-")).read_bytes()),
     ["is both in"]),
    ("no index", lambda d: (d / INDEX).unlink(), [INDEX, "model.safetensors"]),
    ("no config", lambda d: (d / "config.json").unlink(), ["config.json"]),
    ("an empty config", lambda d: (d / "config.json").write_text(""), ["config.json"]),
    ("a config that is an array", lambda d: (d / "config.json").write_text("[1]"), ["config.json", "an array"]),
    ("a config that is a folder", lambda d: ((d / "config.json").unlink(), (d / "config.json").mkdir()),
     ["config.json", "folder"]),
    ("a config without end", lambda d: (d / "config.json").write_text("[" * 3000), ["config.json"]),
]


@pytest.mark.parametrize("edit,says", [f[1:] for f in FOLDERS], ids=[f[0] for f in FOLDERS])
def test_lying_folders(world, edit, says):
    folder = llama(world, "m", files=2)
    edit(folder)
    refused(world, folder, *says)


CONFIGS = [
    ("an unknown model type", {"model_type": "mamba"}, ["config.json", "mamba"]),
    ("another vocabulary", {"vocab_size": 516}, ["config.json", "vocab_size", "516", "517"]),
    ("another width", {"hidden_size": 48, "head_dim": 16}, ["embed_tokens", "96 x 517"]),
    ("more layers", {"num_hidden_layers": 6}, ["model.layers.5.input_layernorm.weight", "missing"]),
    ("fewer layers", {"num_hidden_layers": 4}, ["model.layers.4.", "no layer"]),
    ("a billion layers", {"num_hidden_layers": 10**9}, ["config.json", "1000000000"]),
    ("no layers", {"num_hidden_layers": 0}, ["config.json", "num_hidden_layers"]),
    ("heads that do not divide", {"num_key_value_heads": 4}, ["head"]),
    ("an output table that is not there", {"tie_word_embeddings": False}, ["lm_head.weight", "missing"]),
    ("biases that are not there", {"attention_bias": True}, ["attention_bias"]),
    ("biases of the MLP that are not there", {"mlp_bias": True}, ["mlp_bias"]),
    ("weights that are quantised", {"quantization_config": {"quant_method": "fp8"}}, ["quantization_config", "fp8"]),
    ("an epsilon of text", {"rms_norm_eps": "small"}, ["config.json", "rms_norm_eps"]),
    ("an epsilon above one", {"rms_norm_eps": 2}, ["epsilon"]),
    ("a theta of nothing", {"rope_theta": 0}, ["rotary base"]),
    ("another activation", {"hidden_act": "relu"}, ["config.json", "hidden_act", "relu"]),
    ("a head size that is odd", {"head_dim": 15}, ["15"]),
]


@pytest.mark.parametrize("change,says", [c[1:] for c in CONFIGS], ids=[c[0] for c in CONFIGS])
def test_configs_that_do_not_fit(world, change, says):
    refused(world, llama(world, **change), *says)


def test_random_damage_never_crashes(world):
    folder = llama(world, files=2)
    parts = [folder / n for n in (PART, INDEX, "config.json")]
    rng = random.Random(21)
    for _ in range(300 if kit.FULL else 10 if kit.SANITIZED else 60):
        path = rng.choice(parts)
        data = path.read_bytes()
        damaged = bytearray(data)
        head = 8 + int.from_bytes(data[:8], "little") if path.name == PART else len(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(head)] = rng.choice((0, 34, 44, 58, 91, 123, 125, 127, 255, rng.randrange(256)))
        path.write_bytes(damaged)
        result = world.brigade("inspect", folder, timeout=20)
        assert result.code in (0, 1), result
        if result.code == 1:
            kit.refusal(result, 1, folder)
        path.write_bytes(data)
    assert world.brigade("inspect", folder).code == 0
