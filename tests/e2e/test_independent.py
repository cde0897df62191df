"""Real models against numpy: the ids of 64 greedy tokens in --exact are those of an independent forward pass of the
dequantised file (tests/fixtures/numpy_forward.py, which shares no code with Brigade)."""
import json

import numpy as np
import pytest

import kit
from parity import numpy_forward

N = 64
PROMPT = "A bucket brigade is a line of people who pass water from hand to hand. It works because"


@pytest.mark.parametrize("model", (pytest.param(kit.MODEL, marks=pytest.mark.real, id="smollm2"),
                                   pytest.param(kit.GEMMA, marks=pytest.mark.gemma, id="gemma3")))
def test_64_greedy_tokens(world, model):
    prompt = json.loads(world.good("tokenize", model, "--json", input=PROMPT).out)["ids"]
    options = ("--raw", "-p", PROMPT, "--temp", "0", "-n", str(N), "--ignore-eos", "--exact", "--ctx", "256")
    stats = world.stats(model, *options, "--shards", "3", timeout=300)
    keys = numpy_forward.Gguf(model).keys
    if keys.get("tokenizer.ggml.add_bos_token"):  # a run begins with it, text alone does not
        prompt = [keys["tokenizer.ggml.bos_token_id"], *prompt]
    assert stats["prompt_tokens"] == len(prompt) and len(stats["ids"]) == N
    forward = numpy_forward.Forward(numpy_forward.open_model(model, 256), np.float32)
    # Each id is the likeliest one after those before it: so the list is the greedy one, by one pass over all of it.
    logits = forward.feed(prompt + stats["ids"][:-1], slice(len(prompt) - 1, None))[1]
    best = np.sort(logits, axis=1)
    print("%s: least margin %.4f" % (model.name, (best[:, -1] - best[:, -2]).min()))
    assert list(logits.argmax(axis=1)) == stats["ids"]
