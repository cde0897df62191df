"""The tiny llama against reference logits, and the same bits whatever the shards, mode, threads, batch, kernel."""
import itertools
import json

import numpy as np
import pytest

import kit
from kit import LLAMA, TYPES, fixture, reference


def logits(world, kind, ids, *args, env=None, name="out.npy"):
    path = world.folder / name
    world.good("logits", fixture(kind), "--ids", ",".join(map(str, ids)), "--out", path, "-q", *args, env=env)
    values = np.load(path)
    assert values.dtype == np.float32 and values.shape == (len(ids), 517)
    return values


@pytest.mark.parametrize("kind", TYPES)
def test_exact_logits_are_those_of_the_reference(world, kind):
    ref = reference(kind)
    got = logits(world, kind, ref["prompt_ids"], "--exact")
    want = np.load(LLAMA / (kind + ".logits_prompt.npy"))
    assert np.abs(got - want).max() <= 2e-4


@pytest.mark.parametrize("kind", TYPES)
def test_exact_greedy_ids_are_those_of_the_reference(world, kind):
    """The reference's own tokens fed back: the likeliest at each position is the reference's next."""
    ref = reference(kind)
    prompt, greedy = ref["prompt_ids"], ref["greedy_ids"]
    rows = logits(world, kind, prompt + greedy[:-1], "--exact", "--shards", "2")[len(prompt) - 1:]
    assert rows.argmax(axis=1).tolist() == greedy


def test_greedy_ids_of_f16_without_exact(world):
    ref = reference("f16")
    prompt, greedy = ref["prompt_ids"], ref["greedy_ids"]
    rows = logits(world, "f16", prompt + greedy[:-1])[len(prompt) - 1:]
    assert rows.argmax(axis=1).tolist() == greedy


def test_run_generates_the_greedy_ids(world):
    """From text, through tokenizer, sampler and all: the reference's ids where its prompt survives as text."""
    ref = reference("f32")
    text = world.good("tokenize", fixture("f32"), "--decode", input=json.dumps(ref["prompt_ids"])).out
    back = json.loads(world.good("tokenize", fixture("f32"), "--json", input=text).out)["ids"]
    options = ("--raw", "-p", text, "--temp", "0", "-n", "32", "--ignore-eos", "--exact")
    ids = world.stats(fixture("f32"), *options)["ids"]
    rows = logits(world, "f32", back + ids[:-1], "--exact")[len(back) - 1:]
    assert rows.argmax(axis=1).tolist() == ids
    if back == ref["prompt_ids"]:
        assert ids == ref["greedy_ids"]


# Everything that must not matter. The first is what the others are compared to.
SHARDS = ("1", "2", "all")
SWITCHES = [dict(zip(("shards", "mode", "threads", "batch"), row)) for row in itertools.product(
    SHARDS, ("warm", "pool", "cold"), ("1", "2"), ("64", "1", "5"))]
if kit.SANITIZED:  # a sanitized start is slow
    SWITCHES = [s for s in SWITCHES if s["mode"] == "warm" and s["threads"] == "2" and s["batch"] != "5"]
elif not kit.FULL:
    SWITCHES = [s for s in SWITCHES if s["batch"] != "1" or (s["mode"], s["threads"]) == ("warm", "2")]
    SWITCHES = [s for s in SWITCHES if s["mode"] != "pool" or (s["threads"], s["batch"]) == ("2", "5")]


def with_switches(world, kind, ids, s, *args, kernel=None):
    env = {"BRIGADE_TEST_BATCH": s["batch"]}
    if kernel:
        env["BRIGADE_KERNEL"] = kernel
    return logits(world, kind, ids, "--shards", s["shards"], "--mode", s["mode"], "--threads", s["threads"], *args,
                  env=env).tobytes()


@pytest.mark.parametrize("exact", (False, True), ids=("quantised", "exact"))
@pytest.mark.parametrize("kind", TYPES if not kit.SANITIZED else ("q8_0", "q4_0"))
def test_the_same_bits_whatever_the_split(world, kind, exact):
    # In cold mode each batch starts every process again: long prompts one token at a time belong to test-all.
    ids = reference(kind)["prompt_ids"][:24 if kit.FULL else 11]
    args = ["--exact"] if exact else []
    want = with_switches(world, kind, ids, {"shards": "1", "mode": "warm", "threads": "1", "batch": "64"}, *args)
    for s in SWITCHES:
        assert with_switches(world, kind, ids, s, *args) == want, s


def kernels(world):
    """Those that this CPU runs: one that it lacks is refused by name."""
    found = []
    for name in ("scalar", "avx2", "avxvnni", "avx512"):
        result = world.brigade("logits", fixture(), "--ids", "1", "--out", world.folder / "k.npy", "-q",
                               env={"BRIGADE_KERNEL": name})
        if result.code == 0:
            found.append(name)
        else:
            kit.refusal(result, result.code, name)
    return found


@pytest.mark.parametrize("kind", TYPES)
def test_the_same_bits_from_every_kernel(world, kind):
    names = kernels(world)
    assert "scalar" in names
    ids = reference(kind)["prompt_ids"]
    for args in ([], ["--exact"], ["--kv", "f32"]):
        s = {"shards": "2", "mode": "warm", "threads": "2", "batch": "7"}
        want = with_switches(world, kind, ids, s, *args, kernel="scalar")
        for name in names[1:]:
            assert with_switches(world, kind, ids, s, *args, kernel=name) == want, (name, args)


def test_a_kernel_that_does_not_exist_is_named(world):
    result = world.brigade("run", fixture(), "-p", "x", "-n", "2", env={"BRIGADE_KERNEL": "abacus"})
    assert result.code != 0 and "abacus" in result.err and len(result.lines()) == 1, result


def test_cache_types_differ_and_exact_has_f32(world):
    """Otherwise the comparisons above would compare nothing."""
    ids = reference("q8_0")["prompt_ids"]
    f16, f32 = logits(world, "q8_0", ids), logits(world, "q8_0", ids, "--kv", "f32")
    exact = logits(world, "q8_0", ids, "--exact")
    assert not np.array_equal(f16, f32) and not np.array_equal(f32, exact)
    assert np.array_equal(exact, logits(world, "q8_0", ids, "--exact", "--kv", "f32"))


@pytest.mark.release_only("a sanitized start is slow; three shards and four tokens are run instead")
def test_run_gives_the_same_ids_in_every_mode(world):
    options = (fixture("q4_0"), "--raw", "-p", "A line of people", "--temp", "0", "-n", "48" if kit.FULL else "20", "--ignore-eos")
    want = world.stats(*options)["ids"]
    assert len(want) >= 20
    for shards, mode, threads in itertools.product(("1", "3", "all"), ("warm", "cold"), ("1", "2")):
        got = world.stats(*options, "--shards", shards, "--mode", mode, "--threads", threads)
        assert got["ids"] == want, (shards, mode, threads)


def test_cold_gives_the_ids_of_warm(world):
    options = (fixture("q4_0"), "--raw", "-p", "A line", "--temp", "0", "-n", "4", "--ignore-eos", "--shards", "3")
    assert world.stats(*options, "--mode", "cold")["ids"] == world.stats(*options)["ids"]


def test_drawn_ids_depend_on_the_seed_and_nothing_else(world):
    options = (fixture(), "--raw", "-p", "A line", "--temp", "1.5", "-n", "24", "--ignore-eos", "--top-k", "200")
    want = world.stats(*options, "--seed", "7")["ids"]
    for more in (("--shards", "all"), ("--threads", "1"), ("--mode", "cold", "--shards", "2")):
        assert world.stats(*options, "--seed", "7", *more)["ids"] == want, more
    assert world.stats(*options, "--seed", "8")["ids"] != want
    whole = ("--top-k", "0", "--top-p", "1", "--min-p", "0")  # needs every logit of a row
    assert world.stats(*options, *whole, "--seed", "7")["ids"] == world.stats(
        *options, *whole, "--seed", "7", "--shards", "3")["ids"]


# Other families: one fixture each, against the reference and against themselves.
FAMILIES = ("qwen2/f16", "qwen3/q4_0", "olmoe/q4_0", "gemma3/q4_0", "gptneo/hub")


def family_model(name):
    path = LLAMA.parent / name
    return path if path.is_dir() else path.with_name(path.name + ".gguf")


def family_logits(world, name, ids, *args, env=None):
    path = world.folder / "family.npy"
    world.good("logits", family_model(name), "--ids", ",".join(map(str, ids)), "--out", path, "-q", *args, env=env)
    return np.load(path)


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_those_of_the_reference(world, name):
    ref = json.loads((LLAMA.parent / (name + ".ref.json")).read_text())
    prompt, greedy = ref["prompt_ids"], ref["greedy_ids"]
    rows = family_logits(world, name, prompt + greedy[:-1], "--exact", "--shards", "2")
    assert np.abs(rows[:len(prompt)] - np.load(LLAMA.parent / (name + ".logits_prompt.npy"))).max() <= 2e-4
    assert rows[len(prompt) - 1:].argmax(axis=1).tolist() == greedy


@pytest.mark.parametrize("name", FAMILIES)
def test_families_give_the_same_bits_whatever_the_split(world, name):
    ids = json.loads((LLAMA.parent / (name + ".ref.json")).read_text())["prompt_ids"][:11]
    want = family_logits(world, name, ids).tobytes()
    for args in (("--shards", "2"), ("--shards", "all"), ("--shards", "2", "--mode", "cold"), ("--threads", "1")):
        assert family_logits(world, name, ids, *args).tobytes() == want, args
    for env in ({"BRIGADE_KERNEL": "scalar"}, {"BRIGADE_TEST_BATCH": "3"}):
        assert family_logits(world, name, ids, env=env).tobytes() == want, env


def test_learned_positions_end_where_their_table_does(world):
    args = (family_model("gptneo/hub"), "--out", world.folder / "family.npy", "-q")
    world.good("logits", *args, "--ids", ",".join(["5"] * 128))
    world.refused("logits", *args, "--ids", ",".join(["5"] * 129), says=["128 positions"])
