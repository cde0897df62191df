"""Several sequences at once: each gets the tokens that it gets alone, whatever shares its frames."""
import json

import numpy
import pytest

import kit

PROMPT, GENERATED = 11, 9


def prompt(stream, vocab):
    x, ids = 12345 + stream * 7919, []
    for _ in range(PROMPT):
        x = (x * 1664525 + 1013904223) % 2**32
        ids.append((x >> 8) % vocab)
    return ids


def bench(world, model, *args, env=None):
    path = world.folder / "streams.json"
    world.good("bench", model, "-p", str(PROMPT), "-n", str(GENERATED), "--repeat", "1", "-q", "--json", path, *args,
               env=env, timeout=120)
    return json.loads(path.read_text())["rows"]


def check_alone(world, model, stream, got, *args):
    """A run of this stream alone, over the same tokens: each must be the likeliest after those before it."""
    vocab = json.loads(world.good("inspect", model, "--json").out)["desc"]["vocab"]
    out = world.folder / "alone.npy"
    ids = prompt(stream, vocab) + got
    world.good("logits", model, "--ids", ",".join(map(str, ids[:-1])), "--out", out, "-q", *args)
    assert numpy.load(out)[PROMPT - 1:].argmax(axis=1).tolist() == got, (model, stream)


@pytest.mark.parametrize("kind", ["llama/q8_0", "gemma3/q4_0", "gptneo/hub", "olmoe/q4_0"])
def test_streams_do_not_touch_each_other(world, kind):
    model = kit.ROOT / "tests" / "fixtures" / kind
    model = model if model.is_dir() else model.with_suffix(".gguf")
    want = None
    for args, env in ((("--modes", "warm", "--shards", "1,2,all", "--streams", "1,2,3,7"), {}),
                      (("--modes", "warm", "--shards", "all", "--streams", "3,7", "--flights", "9"), {}),
                      (("--modes", "warm", "--shards", "2", "--streams", "7", "--flights", "2", "--threads", "3"),
                       {"BRIGADE_TEST_BATCH": "2"}),
                      (("--modes", "warm", "--shards", "2", "--streams", "7", "--flights", "3"),
                       {"BRIGADE_KERNEL": "scalar"})):
        for row in bench(world, model, *args, env=env):
            assert len(row["ids"]) == row["streams"]
            want = row["ids"] if want is None or len(want) < row["streams"] else want
            assert row["ids"] == want[:row["streams"]], (kind, args, row["shards"], row["streams"])
    assert len(want) == 7 and len({tuple(ids) for ids in want}) > 1
    for i in (0, 1, 6):
        check_alone(world, model, i, want[i])


def test_streams_in_cold_mode_and_exact(world):
    model = kit.fixture("q8_0")
    rows = bench(world, model, "--exact", "--modes", "warm,cold", "--shards", "2", "--streams", "1,2,5")
    for row in rows:
        assert row["ids"] == rows[2]["ids"][:row["streams"]]
    for i in (0, 4):
        check_alone(world, model, i, rows[2]["ids"][i], "--exact")


def test_frames_carry_all_streams(world):
    rows = bench(world, kit.fixture("q8_0"), "--modes", "warm", "--shards", "2", "--streams", "1,6", "--flights", "1")
    assert [r["rows_per_frame"] for r in rows] == [1, 6]
    rows = bench(world, kit.fixture("q8_0"), "--modes", "warm", "--shards", "2", "--streams", "6", "--flights", "2")
    assert rows[0]["rows_per_frame"] == 3 and rows[0]["flights"] == 2


def test_streams_refused(world):
    for value in ("0", "257", "x", "1,,2", "1,"):
        world.refused("bench", kit.fixture(), "--streams", value, code=2, says="--streams")
