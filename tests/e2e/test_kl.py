"""What 8-bit activations and each stored type cost on real models, over a fixed text. `make kl`.

Two figures a file, each the mean over the tokens of the Kullback-Leibler divergence of the next-token distributions:
of the quick way from --exact of the same file, which must be small, and of --exact of the file from --exact of the
best that there is of the model, which tells people what a type costs. SmolLM2 is had as Q4_1 only: that is its best.
"""
import json
import shutil

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


def log_softmax(rows):
    rows = rows.astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))


def divergence(a, b, step=20):
    """Mean KL divergence of b from a in nat, and the part of rows whose likeliest token is the same."""
    total, same = 0.0, 0
    for at in range(0, len(a), step):
        p, q = log_softmax(a[at:at + step]), log_softmax(b[at:at + step])
        total += float((np.exp(p) * (p - q)).sum())
        same += int((p.argmax(axis=1) == q.argmax(axis=1)).sum())
    return total / len(a), same / len(a)


def text_ids(world, model):
    ids = json.loads(world.good("tokenize", model, "--json", input=TEXT.read_text()).out)["ids"]
    assert len(ids) >= MIN_TOKENS
    return ids


def measure(world, model, ids, best=None):
    """Prints a line of the table and checks the limits; returns the exact logits."""
    exact = logits(world, model, ids, "exact.npy", "--exact")
    quick = logits(world, model, ids, "quick.npy")
    kl, same = divergence(exact, quick)
    cost = divergence(best, exact)[0] if best is not None else 0.0
    print("| %-22s | %.5f | %5.1f %% | %.5f |" % (model.name, kl, 100 * same, cost))
    assert 0 <= kl <= LIMIT and same >= TOP1, (model.name, kl, same)
    return exact, kl, cost


HEAD = "\n| file | KL of 8-bit activations | same likeliest token | KL to the best original |\n|---|---|---|---|"


@pytest.mark.real
def test_smollm2(world):
    print(HEAD)
    assert measure(world, MODEL, text_ids(world, MODEL))[1] > 0  # otherwise nothing was compared


@pytest.mark.real
@pytest.mark.full
def test_cache_on_smollm2(world):
    """What a cache of 8-bit integers costs beside one of half floats, activations being the same."""
    ids = text_ids(world, MODEL)
    for how in ((), ("--exact",)):
        half = logits(world, MODEL, ids, "half.npy", *how, "--kv", "f16")
        whole = logits(world, MODEL, ids, "whole.npy", *how, "--kv", "f32")
        q8 = logits(world, MODEL, ids, "q8.npy", *how, "--kv", "q8")
        (kl, same), (of_f16, _) = divergence(half, q8), divergence(whole, half)
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
        costs[kind] = measure(world, packed, ids, best)[2]
        shutil.rmtree(packed)
    assert 0 < costs["Q8_0"] < costs["Q4_0"] / 10


@pytest.mark.gemma
def test_gemma(world):
    print(HEAD)
    measure(world, GEMMA, text_ids(world, GEMMA))
