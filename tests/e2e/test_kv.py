"""The KV cache: 8-bit integers give the same ids however the line is cut, and what is not used costs nothing."""
import pytest

import kit
from kit import fixture

QWEN = str(kit.LLAMA.parent / "qwen3" / "q4_0.gguf")  # heads of 32 dimensions: q8 has no empty places
OPTIONS = ("--raw", "-p", "Brigade is a line of people", "--temp", "0", "-n", "12", "--ignore-eos")


def test_q8_is_the_same_for_every_line(world):
    want = world.stats(fixture("q8_0"), *OPTIONS, "--kv", "q8")
    assert want["kv"] == "q8"
    for more in (("--shards", "2"), ("--shards", "all"), ("--shards", "3", "--mode", "cold"), ("--threads", "1"),
                 ("--shards", "3", "--mode", "pool", "--keep", "1")):
        assert world.stats(fixture("q8_0"), *OPTIONS, "--kv", "q8", *more)["ids"] == want["ids"], more
    got = world.stats(fixture("q8_0"), *OPTIONS, "--kv", "q8", env={"BRIGADE_KERNEL": "scalar", "BRIGADE_TEST_BATCH": "3"})
    assert (got["kernel"], got["ids"]) == ("scalar", want["ids"])


def test_q8_gives_the_same_logits_to_the_bit(world):
    def logits(*more, env=None):
        path = world.folder / "logits.npy"
        world.good("logits", QWEN, "--ids", ",".join(str(i) for i in range(40)), "--out", path, "-q", *more, env=env)
        return path.read_bytes()
    for exact in ((), ("--exact",)):
        want = logits("--kv", "q8", *exact)
        assert want != logits(*exact)
        for more, env in ((("--shards", "2"), {"BRIGADE_TEST_BATCH": "1"}), (("--threads", "2"), {"BRIGADE_TEST_BATCH": "7"}),
                          (("--shards", "all", "--mode", "cold"), {}), ((), {"BRIGADE_KERNEL": "scalar"})):
            assert logits("--kv", "q8", *exact, *more, env=env) == want, (more, env)


def test_q8_by_hand_must_be_said_on_both_sides(world):
    _, chain = world.line_by_hand(fixture(), [2, 4], "--kv", "q8")
    want = world.stats(fixture(), *OPTIONS, "--kv", "q8")["ids"]
    got = world.stats(fixture(), *OPTIONS, "--kv", "q8", "--chain", chain)
    assert got["ids"] == want and got["kv_bytes"] is None
    world.refused("run", fixture(), *OPTIONS, "--chain", chain, says=["kv=q8", "--kv"])


@pytest.mark.parametrize("mode", ("warm", "cold"))
def test_a_cache_costs_what_is_used_of_it(world, mode):
    """Of a context of 100,000 positions a few are used: pages of these alone; q8 takes fewer than f16, f32 more."""
    def used(*more):
        stats = world.stats(QWEN, *OPTIONS, "--mode", mode, "--shards", "2", "--ctx", "100000", *more)
        assert stats["kv_bytes"] == sum(s["kv_bytes"] or 0 for s in stats["per_shard"])
        return stats["kv_bytes"]
    small = used("--ctx", "64")
    assert used() == small  # whatever the context
    long = ("-p", "a " * 1500)
    f16, f32, q8 = (used(*long, "--kv", kv) for kv in ("f16", "f32", "q8"))
    assert small < q8 < f16 < f32
    assert 0.5 < q8 / f16 < 0.75 and 1.6 < f32 / f16 < 2.4, (q8, f16, f32)
