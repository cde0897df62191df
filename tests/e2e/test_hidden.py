"""`logits --hidden`: what is at every boundary of the layers, the same in every run mode, and its refusals."""
import numpy as np
import pytest

import kit
from kit import LLAMA, N_LAYERS, fixture, reference

HIDDEN = 96


def hidden(world, ids, *args, kind="f32", env=None):
    path = world.folder / "hidden.npy"
    world.good("logits", fixture(kind), "--ids", ",".join(map(str, ids)), "--hidden", path, "-q", *args, env=env)
    rows = np.load(path)
    assert rows.dtype == np.float32 and rows.shape == (N_LAYERS + 2, len(ids), HIDDEN)
    return rows


def test_every_boundary_is_that_of_the_reference(world):
    want = np.load(LLAMA / "f32.hidden.npy")
    got = hidden(world, reference("f32")["prompt_ids"], "--exact")
    assert np.abs(got - want).max() <= 5e-4
    for i in range(1, len(want)):  # the boundaries differ: a shifted list would not pass
        assert np.abs(want[i] - want[i - 1]).max() > 0.1


def test_the_same_bits_in_every_mode(world):
    ids = reference("q8_0")["prompt_ids"]
    want = hidden(world, ids, kind="q8_0").tobytes()
    cases = [(("--mode", "cold"), {}), (("--shards", "all", "--threads", "2"), {}),
             ((), {"BRIGADE_TEST_BATCH": "7"}), (("--out", world.folder / "logits.npy"), {"BRIGADE_TEST_BATCH": "1"})]
    for args, env in cases:
        assert hidden(world, ids, *args, kind="q8_0", env=env).tobytes() == want, (args, env)
    plain = world.folder / "plain.npy"
    world.good("logits", fixture(), "--ids", ",".join(map(str, ids)), "--out", plain, "-q")
    assert np.load(plain).tobytes() == np.load(world.folder / "logits.npy").tobytes()


def test_over_a_chain_of_single_layers(world):
    ids = reference("q8_0")["prompt_ids"][:9]
    want = hidden(world, ids, kind="q8_0").tobytes()
    _, chain = world.line_by_hand(fixture(), list(range(1, N_LAYERS + 1)), "--ctx", "64", scheme="tcp")
    assert hidden(world, ids, "--chain", chain, kind="q8_0").tobytes() == want
    path = world.folder / "after.npy"  # the same shards then serve as a plain chain
    world.good("logits", fixture(), "--ids", "1,2", "--out", path, "--chain", chain, "-q")


def test_shards_of_several_layers_are_refused(world):
    path = world.folder / "h.npy"
    world.refused("logits", fixture(), "--ids", "1", "--hidden", path, "--shards", "2", code=2, says="--shards")
    _, chain = world.line_by_hand(fixture(), [1, 3], "--ctx", "64")
    world.refused("logits", fixture(), "--ids", "1", "--hidden", path, "--chain", chain, "-q",
                  says=("--hidden", "shard 1"))
    assert not path.exists()


@pytest.mark.parametrize("where,says", (("/dev/stdout", "pipe"), ("/nonexistent/h.npy", "/nonexistent")))
def test_where_it_cannot_be_written(world, where, says):
    world.refused("logits", fixture(), "--ids", "1", "--hidden", where, "-q", says=says)


def test_a_failure_leaves_neither_file(world):
    h, out = world.folder / "h.npy", world.folder / "nowhere" / "l.npy"
    world.refused("logits", fixture(), "--ids", "1", "--hidden", h, "--out", out, "-q", says="nowhere")
    world.refused("logits", fixture(), "--ids", "1", code=2, says="--out")
    assert not list(world.folder.glob("h.npy*"))
