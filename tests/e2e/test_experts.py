"""Mixtures of experts: however many of them a token uses, however they lie in the file, whatever the router says."""
import json
import sys

import numpy as np
import pytest

import gguf
import kit
from kit import LLAMA

FIXTURES = LLAMA.parent
sys.path.insert(0, str(FIXTURES))
import numpy_forward  # noqa: E402

OLMOE = FIXTURES / "olmoe" / "q4_0.gguf"  # 3 layers, 4 of 16 experts
IDS = json.loads((FIXTURES / "olmoe" / "q4_0.ref.json").read_text())["prompt_ids"]


def logits(world, path, ids, *args):
    out = world.folder / "out.npy"
    world.good("logits", path, "--ids", ",".join(map(str, ids)), "--out", out, "-q", *args)
    return np.load(out)


def changed(world, change):
    """A copy of the fixture, its header changed."""
    f = gguf.read(OLMOE.read_bytes())
    change(f)
    path = world.folder / "changed.gguf"
    path.write_bytes(f.bytes())
    return path


@pytest.mark.parametrize("used", (1, 3, 16))
def test_any_number_of_experts_is_used(world, used):
    path = changed(world, lambda f: f.set("olmoe.expert_used_count", 4, used))
    want = numpy_forward.Forward(numpy_forward.open_model(path, 64)).feed(IDS)[1]
    assert np.abs(logits(world, path, IDS, "--exact") - want).max() <= 2e-4


def apart(f):
    """Stacked experts as tensors of their own: the bytes stay where they are."""
    tensors, f.tensors = f.tensors, []
    for t in tensors:
        stem, stacked, _ = t["name"].partition("_exps.weight")
        if not stacked:
            f.tensors.append(t)
            continue
        *dims, n = t["dims"]
        size = {0: 4, 2: 18 / 32}[t["type"]] * np.prod(dims)
        f.tensors += [{**t, "name": "%s.%d.weight" % (stem, e), "dims": dims, "offset": t["offset"] + int(size * e)}
                      for e in range(n)]


def test_experts_lie_one_by_one(world):
    assert logits(world, changed(world, apart), IDS).tobytes() == logits(world, OLMOE, IDS).tobytes()


def test_one_expert_is_missing(world):
    def change(f):
        apart(f)
        f.remove("blk.1.ffn_up.7.weight")
    result = world.brigade("logits", changed(world, change), "--ids", "1", "--out", world.folder / "x.npy", "-q")
    kit.refusal(result, 1, "blk.1.ffn_up.7.weight")


def write_router(f, layer, value):
    t = f.tensor("blk.%d.ffn_gate_inp.weight" % layer)
    assert t["type"] == 0
    n = int(np.prod(t["dims"]))
    w = np.frombuffer(f.tail[t["offset"]:t["offset"] + 4 * n], "<f4").reshape(t["dims"][::-1]).copy()
    value(w)
    f.tail = f.tail[:t["offset"]] + w.tobytes() + f.tail[t["offset"] + 4 * n:]


def spoil(f, layer, expert):
    """Other weights in one expert of a layer."""
    t = f.tensor("blk.%d.ffn_up_exps.weight" % layer)
    size = int(np.prod(t["dims"])) // 32 * 18 // t["dims"][2]
    at = t["offset"] + expert * size
    f.tail = f.tail[:at] + f.tail[at:at + size][18:] + f.tail[at:at + 18] + f.tail[at + size:]


def test_a_tied_router_takes_the_first_experts(world):
    """All logits of layer 1 are 0: experts 0 to 3 are used, a sixteenth of each."""
    def tied(f, spoilt=None):
        write_router(f, 1, lambda w: w.fill(0))
        if spoilt is not None:
            spoil(f, 1, spoilt)

    path = changed(world, tied)
    got = logits(world, path, IDS, "--exact")
    want = numpy_forward.Forward(numpy_forward.open_model(path, 64)).feed(IDS)[1]  # its sort is stable too
    assert np.abs(got - want).max() <= 2e-4
    for expert, matters in ((0, True), (3, True), (4, False), (15, False)):
        path = changed(world, lambda f: tied(f, expert))
        assert np.array_equal(logits(world, path, IDS, "--exact"), got) != matters, expert


def test_a_router_of_nan_stays_visible(world):
    def broken(w):
        w[5] = np.nan
    path = changed(world, lambda f: write_router(f, 1, broken))
    for args in ((), ("--exact", "--shards", "all")):
        assert np.isnan(logits(world, path, IDS, *args)).all()


def test_inspect_shows_them(world):
    text = world.good("inspect", OLMOE).out
    assert "experts          16 in a layer, 4 used, ffn 32; weights as the softmax over all gives them\n" in text
    assert "q and k norm     all heads as one\n" in text
    j = json.loads(world.good("inspect", OLMOE, "--json").out)
    assert j["desc"]["experts"] == {"n_experts": 16, "n_used": 4, "ffn": 32, "weights": "as_they_are", "dense_layers": []}
    assert j["desc"]["qk_norm"] == "whole" and j["desc"]["clip_qkv"] == 0
    ups = [t for t in j["tensors"] if t["role"] == "expert_up" and t["layer"] == 2]
    assert [t["expert"] for t in ups] == list(range(16)) and {t["bytes"] for t in ups} == {64 * 32 * 18 // 32}
    plain = world.good("inspect", kit.fixture()).out.replace(kit.fixture(), "")
    assert "expert" not in plain and "q and k norm" not in plain
    assert json.loads(world.good("inspect", kit.fixture(), "--json").out)["desc"]["experts"] is None


@pytest.mark.parametrize("name", ("phi3/hub", "olmoe/q4_0.gguf"))
def test_a_bundle_holds_the_parts(world, name):
    """Joined and stacked tensors are written apart, and read so."""
    model, bundle = FIXTURES / name, world.folder / "bundle"
    world.good("pack", model, bundle, "--shards", "2", "-q")
    for args in (("--exact",), ("--shards", "3")):
        assert logits(world, bundle, IDS, *args).tobytes() == logits(world, model, IDS, *args).tobytes()


def test_streamed_experts_are_counted_and_change_no_bit(world):
    args = (OLMOE, "--raw", "-p", "the old bridge", "-n", "12", "--ignore-eos", "--temp", "0")
    plain = world.stats(*args)
    assert plain["experts"] is None
    for more in ((), ("--shards", "2"), ("--shards", "all", "--mode", "cold"), ("-t", "2")):
        s = world.stats(*args, "--residency", "stream", *more)
        assert s["ids"] == plain["ids"], more
        e = s["experts"]
        assert e["used"] >= 3 * 4 * 12 and 0 <= e["hit_rate"] < 1 and e["read_bytes"] > 0, e
        assert e["used"] == sum(p["experts"]["used"] for p in s["per_shard"] if p["experts"]), s
        assert e["read_bytes"] <= sum(p["read_bytes"] for p in s["per_shard"])
        assert ("cold" in more) == (e["hit_rate"] == 0), e  # what lives once finds nothing
