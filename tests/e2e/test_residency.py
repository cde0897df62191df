"""However weights are held, mapped, read in at the start or streamed, every family and format gives the same bits; and
what happens when a file fails in the middle."""
import os
import re
import shutil
import sys
import uuid

import pytest

import kit
from kit import ROOT, fixture

FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(FIXTURES))
import make_gptq_awq  # noqa: E402

MODELS = ["llama/q8_0.gguf", "llama/q4_0.gguf", "llama/f32.gguf", "qwen2/f16.gguf", "qwen3/q4_0.gguf", "gemma3/q4_0.gguf",
          "gemma3/hub", "gptneo/hub", "mistral/hub", "phi3/hub", "mixtral/hub", "olmoe/q4_0.gguf", "olmoe/hub"]
IDS = ",".join(str(7 * i % 90 + 3) for i in range(20))
GREEDY = ("--raw", "-p", "The old bridge", "--temp", "0", "--ignore-eos", "-n", "12", "--ctx", "64", "-q")
LONG = ("--raw", "-p", "x", "--temp", "0", "--ignore-eos", "--ctx", "100000")


def logits(world, model, *args):
    out = world.folder / ("%s.npy" % uuid.uuid4().hex)
    world.good("logits", model, "--ids", IDS, "--out", out, "-q", *args)
    return out.read_bytes()


def least_ring(world, model, *what):
    """The smallest ring, as the refusal of a smaller one says."""
    result = world.run(kit.SHARD, model, *what, "--control", "abstract://brigade-none", "--residency", "stream", "--ring", "1")
    assert result.code == 2 and len(result.lines()) == 1, result
    return int(re.search(r"too small to stream through: (\d+) are needed", result.err).group(1))


@pytest.mark.parametrize("model", MODELS)
def test_the_same_bits(world, model):
    model = str(FIXTURES / model)
    want = logits(world, model)
    for i, shards in enumerate(("1", "2", "all")):
        for residency in ("lock", "stream"):
            mode = ("warm", "cold")[(i + (residency == "lock")) % 2]
            assert logits(world, model, "--residency", residency, "--shards", shards, "--mode", mode) == want, (
                residency, shards, mode)


@pytest.mark.parametrize("model", MODELS)
def test_the_same_bits_through_the_smallest_ring(world, model):
    model = str(FIXTURES / model)
    want = logits(world, model)
    ring = least_ring(world, model, "--layers", "all", "--head")
    for more in ((), ("--pin", "40"), ("--pin", "100")):
        _, chain = world.line_by_hand(model, [], "--residency", "stream", "--ring", ring, *more)
        for _ in range(2): # a second driver finds it in the middle of a pass
            assert logits(world, model, "--chain", chain) == want, more


@pytest.mark.parametrize("kind", kit.TYPES)
def test_the_same_tokens(world, kind):
    want = world.stats(fixture(kind), *GREEDY)
    for residency in ("lock", "stream"):
        for mode in ("warm", "cold"):
            n = "12" if mode == "warm" else "3"
            got = world.stats(fixture(kind), *GREEDY, "-n", n, "--residency", residency, "--mode", mode, "--shards", "3")
            assert got["ids"] == want["ids"][:int(n)]
            assert all(p["read_bytes"] > 0 and p["stall_s"] <= p["compute_s"] for p in got["per_shard"])
    assert all(p["read_bytes"] == 0 and p["stall_s"] == 0 for p in want["per_shard"])


@pytest.mark.parametrize("name", sorted(make_gptq_awq.MODELS))
def test_words_that_rows_share(world, name):
    """Packed matrices are streamed whole, what lies beside them is held."""
    make_gptq_awq.make(world.folder, name)
    model = world.folder / name
    want = logits(world, model)
    assert logits(world, model, "--residency", "lock", "--shards", "2") == want
    ring = least_ring(world, model, "--layers", "all", "--head")
    _, chain = world.line_by_hand(model, [], "--residency", "stream", "--ring", ring)
    assert logits(world, model, "--chain", chain) == want


@pytest.mark.parametrize("layout", ("native", "r16"))
def test_bundles(world, layout):
    out = world.folder / "bundle"
    world.good("pack", fixture("q4_0"), out, "--shards", "3", "--layout", layout, "-q")
    want = logits(world, fixture("q4_0"))
    for residency in ("lock", "stream"):
        for shards in ("1", "3"):
            assert logits(world, out, "--residency", residency, "--shards", shards) == want


def test_what_is_streamed_is_read_in_every_pass(world):
    few, many = (world.stats(fixture("f32"), *GREEDY, "-n", n, "--residency", "stream") for n in ("4", "12"))
    read = many["per_shard"][0]["read_bytes"] - few["per_shard"][0]["read_bytes"]
    # The next pass is begun before it is known that none comes: a ring more or less.
    matrices = few["weights_bytes"]
    assert 6 * matrices < read < 10 * matrices, (read, matrices)
    pinned = world.stats(fixture("f32"), *GREEDY, "--residency", "lock")["per_shard"][0]
    assert pinned["read_bytes"] < 1.2 * matrices and pinned["mapped_bytes"] < 1.2 * matrices


def test_a_file_that_is_cut_while_it_is_streamed_is_named(world):
    model = world.folder / "model.gguf"
    shutil.copy(fixture("f32"), model)
    process = world.start(kit.BRIGADE, "run", model, *LONG, "--shards", "2", "--residency", "stream")
    kit.wait_for_output(process)
    os.truncate(model, 65536)
    result = world.finish(process, 20 * kit.SLOWER)
    assert result.code == 1 and len(result.lines()) == 1, result
    # A tensor is named unless all of the pass had been read already.
    assert re.search(r"shard \d \([^)]*\): (tensor \w+ of layer \d: )?" + re.escape(str(model)), result.err), result
    assert "65536" in result.err, result
    assert not world.gone()


def test_what_is_wrong_is_said(world):
    world.refused("run", fixture(), "-p", "x", "--residency", "all", code=2, says=["--residency", "brigade list residencies"])
    world.refused("run", fixture(), "-p", "x", "--residency", "lock", "--chain", "abstract://x", code=2,
                  says=["--residency", "--chain"])
    listed = world.good("list", "residencies").out.split("\n")
    assert [line.split()[0] for line in listed if line] == ["map", "lock", "stream"]
    for args, says in ((("--residency", "some"), "no residency \"some\""), (("--ring", "1M"), "--residency stream"),
                       (("--residency", "lock", "--pin", "10"), "--residency stream"),
                       (("--residency", "stream", "--ring", "much"), "--ring"),
                       (("--residency", "stream", "--ring", "99999999T"), "--ring"),
                       (("--residency", "stream", "--pin", "101"), "--pin")):
        result = world.run(kit.SHARD, fixture(), "--layers", "all", "--control", "abstract://brigade-none", *args)
        assert result.code == 2 and says in result.err and len(result.lines()) == 1, result


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (util-linux) is not there")
def test_memory_that_may_not_be_locked_is_said_once(world):
    """Without the privilege, and with a limit of nothing: the run goes on."""
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    args = [kit.BRIGADE, "run", fixture(), *GREEDY[:-1], "--residency", "lock", "--shards", "3"]
    result = world.run("sh", "-c", 'ulimit -l 0; exec "$@"', "sh", *drop, *args)
    assert result.code == 0, result
    said = [line for line in result.lines() if "not locked" in line]
    assert len(said) == 1 and "ulimit -l" in said[0], result
    assert result.out == world.good(*args[1:]).out
