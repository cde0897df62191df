"""Nothing is allocated for a token: a hundred more of them leave every process with the same count of allocations,
and NNG's buffers, which come and go with each message, do not pile up."""
import pathlib
import shutil
import struct

import pytest

import kit

FEW, MANY = 20, 120
COUNTED = pathlib.Path(kit.BRIGADE).parent / "counted"


def counts(world, n, args):
    """{program: sorted [(ours, nng, nng's most at once)] of its processes}"""
    folder = world.folder / ("counts-%d" % n)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    env = {"LD_PRELOAD": str(COUNTED / "count_allocs.so"), "COUNT_ALLOCS": str(folder)}
    result = world.run(COUNTED / "brigade", "run", kit.fixture("q8_0"), "--raw", "-p", "Brigade", "-n", str(n),
                       "--ignore-eos", "-q", *args, env=env)
    assert result.code == 0, result
    found = {}
    for path in sorted(folder.iterdir()):
        ours, nng, _, peak = struct.unpack("<4q", path.read_bytes())
        found.setdefault(path.name.rsplit(".", 1)[0], []).append((ours, nng, peak))
    return {name: sorted(v) for name, v in found.items()}


@pytest.mark.release_only("the sanitizers have an allocator of their own")
@pytest.mark.parametrize("args", [("--temp", "0"), ("--seed", "1", "--stop", "nothing like this"),
                                  ("--seed", "1", "--top-k", "0"),
                                  ("--seed", "1", "--repeat-penalty", "1.1", "--frequency-penalty", "0.1"),
                                  ("--temp", "0", "--exact", "--kv", "f32")],
                         ids=["greedy", "sampled", "whole-rows", "penalties", "exact"])
def test_a_token_allocates_nothing(world, args):
    few, many = counts(world, FEW, ("--shards", "2", *args)), counts(world, MANY, ("--shards", "2", *args))
    assert sorted(few) == ["brigade", "brigade-shard"] and len(few["brigade-shard"]) == 2
    for name in few:
        for (a, a_nng, a_peak), (b, b_nng, b_peak) in zip(few[name], many[name]):
            assert a > 0 and b_nng > a_nng, "the counter sees nothing"
            assert b == a, (name, few, many)
            assert b_peak <= a_peak + 16, (name, few, many)
