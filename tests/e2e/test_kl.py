"""What 8-bit activations and each stored type cost on real models, over a fixed text. `make kl`.

Two figures a file, each the mean over the tokens of the Kullback-Leibler divergence of the next-token distributions:
of the quick way from --exact of the same file, which must be small, and of --exact of the file from --exact of the
best that there is of the model, which tells people what a type costs. SmolLM2 is had as Q4_1 only: that is its best.
"""
import itertools
import json
import os
import shutil
import threading

import numpy as np
import pytest

import kit
from kit import GEMMA, MODEL, TEXT

MIN_TOKENS = 1000  # of the text
LIMIT, TOP1 = 0.01, 0.95
# Packed from the model, the head too.
TYPES = ("F16", "BF16", "Q8_0", "Q8_0_G16", "Q8_0_G64", "Q5_1", "Q5_0", "Q4_1", "Q4_1_G16", "Q4_1_G64", "Q4_0",
         "Q4_0_G16", "Q4_0_G64")


def logits(world, model, ids, name, *args):
    path = world.folder / name
    world.good("logits", model, "--ids", ",".join(map(str, ids)), "--out", path, "-q", *args, timeout=600)
    return np.load(path, mmap_mode="r")


def divergences(a, b):
    """Of rows of logits: KL divergence of b from a in nat, and whether the likeliest token is the same; a value a row.
    Exponentials in 32 bits, sums in 64: a figure is right to about 1e-7."""
    top_a, top_b = a.max(axis=1, keepdims=True), b.max(axis=1, keepdims=True)
    e = np.exp(a - top_a)
    sum_a, sum_b = e.sum(axis=1, dtype=np.float64), np.exp(b - top_b).sum(axis=1, dtype=np.float64)
    apart = np.log(sum_a) - np.log(sum_b) + (top_a.astype(np.float64) - top_b)[:, 0]
    return (e * (a - b)).sum(axis=1, dtype=np.float64) / sum_a - apart, a.argmax(axis=1) == b.argmax(axis=1)


STEP = 4  # rows at once: of a quarter of a million logits they stay in the cache


def pieces(rows):
    return (np.asarray(rows[at:at + STEP]) for at in range(0, len(rows), STEP))


def divergence(a, b):
    """Mean KL divergence of b from a in nat, and the part of rows whose likeliest token is the same; of pieces."""
    kl, same = (np.concatenate(c) for c in zip(*(divergences(x, y) for x, y in zip(a, b, strict=True))))
    return kl.mean(), same.mean()


class Stream:
    """Logits that come through a pipe while they are computed: those of a text are gigabytes."""

    def __init__(self, world, model, ids, *args):
        read, write = os.pipe()
        self.process = world.start(kit.BRIGADE, "logits", model, "--ids", ",".join(map(str, ids)), "--out",
                                   "/dev/fd/%d" % write, "-q", *args, pass_fds=(write,))
        os.close(write)
        self.pipe = os.fdopen(read, "rb")
        self.end = threading.Timer(600 * kit.SLOWER, self.process.kill)  # then the pipe ends
        self.end.start()

    def pieces(self):
        with self.pipe:
            assert np.lib.format.read_magic(self.pipe) == (1, 0)
            shape, _, dtype = np.lib.format.read_array_header_1_0(self.pipe)
            for at in range(0, shape[0], STEP):
                n = min(STEP, shape[0] - at)
                piece = self.pipe.read(n * shape[1] * dtype.itemsize)
                yield np.frombuffer(piece, dtype).reshape(n, shape[1])

    def finish(self, world):
        self.end.cancel()
        result = world.finish(self.process, 30)
        assert result.code == 0, result


def text_ids(world, model):
    ids = json.loads(world.good("tokenize", model, "--json", input=TEXT.read_text()).out)["ids"]
    assert len(ids) >= MIN_TOKENS
    return ids


def measure(world, model, ids, best=None):
    """Prints a line of the table and checks the limits. The exact and the quick run compute at the same time, with one
    thread each: two for each would wait for one another."""
    runs = [Stream(world, model, ids, "--threads", "1", *how) for how in (("--exact",), ())]
    figures = []
    try:
        against = pieces(best) if best is not None else itertools.repeat(None)
        for exact, quick, original in zip(runs[0].pieces(), runs[1].pieces(), against):
            kl, same = divergences(exact, quick)
            figures.append((kl, same, divergences(original, exact)[0] if best is not None else 0 * kl))
    finally:
        for run in runs:
            run.finish(world)
    kl, same, cost = (np.concatenate(column) for column in zip(*figures))
    assert len(kl) == len(ids)
    kl, same, cost = kl.mean(), same.mean(), cost.mean()
    print("| %-22s | %.5f | %5.1f %% | %.5f |" % (model.name, kl, 100 * same, cost))
    assert 0 <= kl <= LIMIT and same >= TOP1, (model.name, kl, same)
    return kl, cost


HEAD = "\n| file | KL of 8-bit activations | same likeliest token | KL to the best original |\n|---|---|---|---|"


@pytest.mark.real
def test_smollm2(world):
    print(HEAD)
    assert measure(world, MODEL, text_ids(world, MODEL))[0] > 0  # otherwise nothing was compared


@pytest.mark.real
@pytest.mark.full
def test_cache_on_smollm2(world):
    """What a cache of 8-bit integers costs beside one of half floats, activations being the same."""
    ids = text_ids(world, MODEL)
    for how in ((), ("--exact",)):
        half = logits(world, MODEL, ids, "half.npy", *how, "--kv", "f16")
        whole = logits(world, MODEL, ids, "whole.npy", *how, "--kv", "f32")
        q8 = logits(world, MODEL, ids, "q8.npy", *how, "--kv", "q8")
        (kl, same), (of_f16, _) = divergence(pieces(half), pieces(q8)), divergence(pieces(whole), pieces(half))
        print("| cache q8 from f16%s | %.6f | %5.1f %% | f16 from f32: %.6f |" % (
            ", exact activations" if how else "", kl, 100 * same, of_f16))
        assert 0 < kl <= LIMIT and same >= TOP1, (how, kl, same)


@pytest.mark.real
@pytest.mark.full
def test_types_on_smollm2(world):
    print(HEAD)
    ids, costs = text_ids(world, MODEL), {}
    best = logits(world, MODEL, ids, "best.npy", "--exact")
    for kind in TYPES:
        packed = world.folder / kind
        world.good("pack", MODEL, packed, "--quant", kind, "--head-quant", kind, "--allow-requantize", "-q", timeout=120)
        costs[kind] = measure(world, packed, ids, best)[1]
        shutil.rmtree(packed)
    assert 0 < costs["Q8_0"] < costs["Q4_0"] / 10


@pytest.mark.gemma
def test_gemma(world):
    print(HEAD)
    measure(world, GEMMA, text_ids(world, GEMMA))
