"""SmolLM2-135M-Instruct: the same ids whatever the split."""
import itertools
import json
import os
import signal
import time

import numpy as np
import pytest

import kit

pytestmark = pytest.mark.real
PROMPT = ("-p", "Explain how a bucket brigade puts out a fire.", "--temp", "0", "-n", "64", "--ignore-eos", "--ctx", "512")


def test_the_rendered_prompt(world):
    """The chat template as the model was trained on it, to the id."""
    text = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
    n = len(json.loads(world.good("tokenize", kit.MODEL, "--json", input=text).out)["ids"])
    options = ("--temp", "0", "-n", "12", "--ignore-eos", "--ctx", "256")
    templated = world.stats(kit.MODEL, "-p", "Hello", *options)
    assert templated["prompt_tokens"] == n
    assert world.stats(kit.MODEL, "--raw", "-p", text, *options)["ids"] == templated["ids"]


MATRIX = [(s, m, t, b) for s, m, t, b in itertools.product(
    ("1", "2", "7", "30", "all"), ("warm", "cold"), ("1", "2"), ("64", "1"))]
if not kit.FULL:  # every shard count and mode, threads and batch taking turns
    MATRIX = [("1", "warm", "1", "1"), ("2", "warm", "1", "64"), ("7", "warm", "2", "1"), ("30", "warm", "2", "64"),
              ("all", "warm", "1", "64"), ("1", "cold", "2", "64"), ("2", "cold", "1", "64"), ("7", "cold", "2", "64"),
              ("all", "cold", "2", "64"), ("7", "pool", "2", "64")]


def test_the_same_ids_in_every_split(world):
    want = world.stats(kit.MODEL, *PROMPT, timeout=60)["ids"]
    assert len(want) == 64
    for shards, mode, threads, batch in MATRIX:
        s = world.stats(kit.MODEL, *PROMPT, "--shards", shards, "--mode", mode, "--threads", threads,
                        env={"BRIGADE_TEST_BATCH": batch}, timeout=180)
        assert s["ids"] == want, (shards, mode, threads, batch)
        print("shards %-3s %s threads %s batch %-2s: %6.1f tok/s" % (shards, mode, threads, batch, s["decode_tok_s"]))


def logits(world, ids, name, *args, env=None, timeout=120):
    path = world.folder / name
    world.good("logits", kit.MODEL, "--ids", ",".join(map(str, ids)), "--out", path, "-q", *args, env=env, timeout=timeout)
    return np.load(path, mmap_mode="r")


def text_ids(world, n):
    ids = json.loads(world.good("tokenize", kit.MODEL, "--json", input=kit.TEXT.read_text()).out)["ids"]
    assert len(ids) >= n
    return ids[:n]


def test_the_same_logits_to_the_bit(world):
    ids = text_ids(world, 48)
    want = logits(world, ids, "want.npy").tobytes()
    cases = [("2", "warm", "1", "1"), ("7", "warm", "2", "13"), ("all", "warm", "2", "64"), ("30", "cold", "2", "64")]
    if kit.FULL:
        cases += [(s, m, t, b) for s, m, t, b in itertools.product(
            ("1", "2", "7", "30", "all"), ("warm", "cold"), ("1", "2"), ("64", "1")) if (m, b) != ("cold", "1")]
    for shards, mode, threads, batch in cases:
        got = logits(world, ids, "got.npy", "--shards", shards, "--mode", mode, "--threads", threads,
                     env={"BRIGADE_TEST_BATCH": batch})
        assert got.tobytes() == want, (shards, mode, threads, batch)
    for kernel in ("avx2", "scalar"):
        got = world.brigade("logits", kit.MODEL, "--ids", ",".join(map(str, ids[:12])), "--out", world.folder / "k.npy",
                            "-q", env={"BRIGADE_KERNEL": kernel}, timeout=120)
        if got.code == 0:  # a CPU without it refuses; that is tested elsewhere
            rows = np.load(world.folder / "k.npy")
            assert rows.tobytes() == np.load(world.folder / "want.npy")[:12].tobytes(), kernel


def test_a_chain_by_hand(world):
    want = world.stats(kit.MODEL, *PROMPT)["ids"]
    _, chain = world.line_by_hand(kit.MODEL, [10, 20], "--ctx", "512", scheme="tcp")
    assert world.stats(kit.MODEL, *PROMPT, "--chain", chain)["ids"] == want


@pytest.mark.alone
def test_a_long_prompt_is_no_fault_with_a_short_timeout(world):
    """The deadline is on progress: a prompt that computes for longer than it is not given up."""
    slow = {"BRIGADE_KERNEL": "scalar"}
    prompt = kit.TEXT.read_text()[:400]
    s = world.stats(kit.MODEL, "--raw", "-p", prompt, "-n", "1", "--threads", "1", "--timeout", "1", env=slow, timeout=120)
    print("prefill took %.1f s with a timeout of 1 s" % (s["prompt_tokens"] / s["prefill_tok_s"]))
    assert s["generated_tokens"] == 1


@pytest.mark.alone
@pytest.mark.parametrize("number,says", ((signal.SIGKILL, "signal 9"), (signal.SIGSTOP, "no answer in 2")))
def test_a_shard_lost_in_the_middle_of_a_token(world, number, says):
    process = world.start(kit.BRIGADE, "run", kit.MODEL, "-p", "Tell me a long story.", "--ignore-eos", "--shards", "7",
                          "--timeout", "2", env={"BRIGADE_KERNEL": "scalar"})
    kit.wait_for_output(process, timeout=60)
    shards = world.shards_of(process, 7)
    time.sleep(0.05)
    victim = shards[3]
    began = time.monotonic()
    os.kill(victim, number)
    result = world.finish(process, 15)
    assert result.code == 1 and len(result.lines()) == 1 and "shard 3" in result.err and says in result.err, result
    assert time.monotonic() - began < 8
    assert not world.gone()
