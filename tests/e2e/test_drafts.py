"""Drafts: whatever guesses the next tokens, and however wrongly, the answer is the one without it."""
import json
import os
import signal
import time

import pytest

import kit

pytestmark = pytest.mark.alone

FIXTURES = kit.LLAMA.parent
MODELS = {name: str(FIXTURES / name) + ".gguf" for name in (
    "llama/q8_0", "llama/f32", "gemma3/q4_0", "olmoe/q4_0", "qwen2/f16", "qwen3/q4_0")}
PROMPT = "The old bridge stood. The old bridge stood by the old"
BASE = ("--raw", "-p", PROMPT, "--ignore-eos", "-n", "24")
DRAWS = {  # the last one asks for whole rows
    "greedy": ("--temp", "0"),
    "seed 3": ("--temp", "0.4", "--seed", "3"),
    "penalties": ("--temp", "0.9", "--seed", "11", "--repeat-penalty", "1.3", "--frequency-penalty", "0.2"),
    "all": ("--temp", "0.7", "--seed", "4", "--top-k", "0", "--presence-penalty", "-0.5"),
}


def drafts_of(model):
    """Ways to draft for a model: a fixed length drafts all the time, whatever it costs."""
    return {
        "lookup": ("--lookup", "on", "--draft-len", "5"),
        "lookup, chosen": ("--lookup", "on"),
        "itself": ("--draft", model, "--draft-len", "3"),
        "both": ("--lookup", "on", "--draft", model, "--draft-len", "4"),
    }


def cases():
    """Half of the combinations, each model and each draw among them; `make test-all` runs all."""
    for i, name in enumerate(MODELS):
        for k, draw in enumerate(DRAWS):
            yield pytest.param(name, draw, marks=() if (i + k) % 2 == 0 else (pytest.mark.full,))


@pytest.mark.parametrize("name,draw", cases())
def test_the_same_tokens(world, name, draw):
    model = MODELS[name]
    want = world.stats(model, *BASE, *DRAWS[draw])
    assert want["passes"] == 24 and want["drafted_tokens"] == 0
    drafted = 0
    for how, options in drafts_of(model).items():
        got = world.stats(model, *BASE, *DRAWS[draw], *options)
        assert got["ids"] == want["ids"], (how, got)
        assert 0 <= got["accepted_tokens"] <= got["drafted_tokens"]
        # A pass gives a token, and one more for each that held.
        assert got["passes"] + got["accepted_tokens"] == 24, (how, got)
        drafted += got["drafted_tokens"]
        if how == "itself" and draw in ("greedy", "seed 3"):  # it draws with the same numbers from the same bits
            assert got["accepted_tokens"] == got["drafted_tokens"] == 17 and got["passes"] == 7, got
    assert drafted > 0


@pytest.mark.parametrize("args", (("--shards", "2"), ("--shards", "all"), ("--shards", "2", "--mode", "cold"),
                                  ("--shards", "3", "--link", "nng"), ("--threads", "1", "--kv", "f32"), ("--exact",)),
                         ids=" ".join)
def test_the_same_tokens_whatever_the_line(world, args):
    for name, draw in (("llama/q8_0", "greedy"), ("olmoe/q4_0", "seed 3"), ("gemma3/q4_0", "penalties")):
        base = (MODELS[name], *BASE, *DRAWS[draw], *args)
        want = world.stats(*base)["ids"]
        for how in ("lookup", "itself"):
            got = world.stats(*base, *drafts_of(MODELS[name])[how])
            assert got["ids"] == want, (name, how)
            assert got["drafted_tokens"] > 0, (name, how)


def test_a_draft_model_that_is_another(world):
    """One that is sometimes wrong: the same weights in another type."""
    model = MODELS["llama/f32"]
    want = world.stats(model, *BASE, "--temp", "0", "-n", "60")
    for kind in ("q4_0", "q8_0", "f16"):
        got = world.stats(model, *BASE, "--temp", "0", "-n", "60", "--draft", kit.fixture(kind), "--draft-len", "4")
        assert got["ids"] == want["ids"], kind
        assert got["drafted_tokens"] >= 60 - got["passes"], kind
        assert got["draft_model"] == kit.fixture(kind) and got["drafts"][0]["kind"] == "model"
        assert got["pss_peak_bytes"] > want["pss_peak_bytes"]  # its memory counts


@pytest.mark.parametrize("batch", ("1", "2", "3"))
def test_drafts_fit_into_frames(world, batch):
    model = MODELS["qwen3/q4_0"]
    env = {"BRIGADE_TEST_BATCH": batch}
    want = world.stats(model, *BASE, "--temp", "0")["ids"]
    got = world.stats(model, *BASE, "--temp", "0", "--lookup", "on", "--draft-len", "8", env=env)
    assert got["ids"] == want
    assert (got["drafted_tokens"] > 0) == (batch != "1")


def test_ends_are_the_same(world):
    """The context, a stop string, an end token, a limit of one: with a draft that reaches beyond each."""
    for name in ("llama/q8_0", "gemma3/q4_0") if kit.FULL else ("gemma3/q4_0",):
        model = MODELS[name]
        plain = ("--raw", "-p", PROMPT, "--temp", "0")
        text = world.good("run", model, *plain, "-n", "40", "--ignore-eos", "-q").out
        stop = text[len(text) // 2:][:2]
        for args in (("--ctx", "40", "--ignore-eos"), ("-n", "1"), ("-n", "2", "--ignore-eos"), ("--ctx", "64"),
                     ("--stop", stop, "-n", "60", "--ignore-eos")):
            want = world.stats(model, *plain, *args)
            said = world.good("run", model, *plain, *args, "-q").out if "--stop" in args else None
            for how, options in drafts_of(model).items():
                got = world.stats(model, *plain, *args, *options)
                assert (got["ids"], got["stop_reason"]) == (want["ids"], want["stop_reason"]), (name, args, how)
                if said is not None:
                    assert world.good("run", model, *plain, *args, *options, "-q").out == said, (name, args, how)


def test_chat_drafts_over_turns(world):
    model, lines = MODELS["llama/q8_0"], "Name a bridge.\nName a bridge.\nName another bridge.\n"
    args = ("chat", model, "--temp", "0.5", "--seed", "9", "-n", "20", "--chat-template", "chatml", "-q")
    want = world.good(*args, input=lines).out
    for how, options in drafts_of(model).items():
        assert world.good(*args, *options, input=lines).out == want, how


def test_one_more_process_and_none_left(world):
    """The draft model has a shard of its own, and the text comes out as it is made."""
    model = MODELS["llama/q8_0"]
    process = world.start(kit.BRIGADE, "run", model, *BASE[:-1], "1000000", "--ctx", "200000", "--draft", model)
    kit.wait_for_output(process)
    assert len(world.shards_of(process, 2)) == 2
    process.send_signal(signal.SIGINT)
    result = world.finish(process, 20)
    assert result.code == 130 and "cancelled" in result.err, result


@pytest.mark.parametrize("which", (0, 1))
def test_a_shard_that_dies_is_named(world, which):
    model = MODELS["llama/q8_0"]
    process = world.start(kit.BRIGADE, "run", model, *BASE[:-1], "1000000", "--ctx", "200000", "--draft", model,
                          "--draft-len", "2", "-q")
    kit.wait_for_output(process)
    victim = world.shards_of(process, 2)[which]  # the draft model is started last
    time.sleep(0.1)
    os.kill(victim, signal.SIGKILL)
    result = world.finish(process, 20)
    assert result.code == 1 and len(result.lines()) == 1 and "shard 0" in result.err, result
    assert ("--draft" in result.err) == (which == 1), result


def test_what_is_refused(world):
    model = MODELS["llama/q8_0"]
    world.refused("run", model, *BASE, "--draft", MODELS["gemma3/q4_0"], says=("--draft", "the same tokens", "is '"))
    world.refused("run", model, *BASE, "--draft", "nowhere.gguf", says=("--draft", "nowhere.gguf"))
    world.refused("run", model, *BASE, "--draft", FIXTURES / "qwen2" / "hub", says=("--draft", "no tokenizer"))
    world.refused("run", model, *BASE, "--lookup", "often", code=2, says=("--lookup often", "on, off or auto"))
    for n in ("0", "65", "x"):
        world.refused("run", model, *BASE, "--draft-len", n, code=2, says=("--draft-len",))
    for verb in ("logits", "pack"):
        world.refused(verb, model, "--lookup", "on", code=2, says=("--lookup",))


def test_kinds_are_listed(world):
    rows = [line.split()[0] for line in world.good("list", "drafts").out.splitlines()]
    assert rows == ["lookup", "model"]
    help_text = world.good("help", "run").out
    for option in ("--lookup", "--draft ", "--draft-len"):
        assert option in help_text


@pytest.mark.real
def test_a_real_model_repeats(world):
    """SmolLM2 is asked to say a text again: the lookup drafts most of it."""
    text = kit.TEXT.read_text()[:700]
    args = ("--raw", "-p", "%s\n\nThe same text again:\n\n%s" % (text, text[:60]), "--temp", "0", "-n", "60", "--ctx", "1024")
    want = world.stats(kit.MODEL, *args, timeout=120)
    got = world.stats(kit.MODEL, *args, "--lookup", "on", "--draft-len", "12", timeout=120)
    assert got["ids"] == want["ids"]
    assert got["tokens_per_pass"] > 3, got
    with_model = world.stats(kit.MODEL, *args, "--draft", kit.MODEL, timeout=120)
    assert with_model["ids"] == want["ids"]


def bench(world, model, *args):
    path = world.folder / "bench.json"
    world.good("bench", model, "-p", "24", "-n", "40", "--repeat", "1", "-q", "--json", path, *args, timeout=120)
    return json.loads(path.read_text())["rows"]


@pytest.mark.parametrize("name", ("gptneo/hub", "mistral/hub", "mixtral/hub", "phi3/hub", "gemma3/hub"))
def test_families_without_a_tokenizer(world, name):
    model = FIXTURES / name
    want = bench(world, model, "--modes", "warm", "--shards", "1")
    got = bench(world, model, "--modes", "warm,cold", "--shards", "1,all", "--lookup", "on", "--draft-len", "6")
    for row in got:
        assert row["ids"] == want[0]["ids"], (name, row["mode"], row["shards"])
        run = row["runs"][0]
        assert run["drafted_tokens"] > 0 and run["rows_per_frame"] >= 1, row
        # 39 tokens after the first: a frame gives one, and one more for each that held.
        assert run["rows_per_frame"] == pytest.approx(39 / (39 - run["accepted_tokens"])), row


def test_bench_with_a_draft_model(world):
    model = MODELS["llama/f32"]
    want = bench(world, model, "--modes", "warm", "--shards", "1")[0]
    for draft in (model, kit.fixture("q4_0")):
        got = bench(world, model, "--modes", "warm", "--shards", "1,2", "--draft", draft, "--draft-len", "4")
        for row in got:
            assert row["ids"] == want["ids"]
            assert row["pss_peak_bytes"] > want["pss_peak_bytes"]
            run = row["runs"][0]
            assert run["drafted_tokens"] > 0
            assert draft != model or run["accepted_tokens"] == run["drafted_tokens"]
    world.refused("bench", model, "--streams", "1,2", "--draft", model, code=2, says=("--streams 1,2", "one stream"))


def test_the_routing_of_the_draft_model_is_not_written(world):
    model, path = MODELS["olmoe/q4_0"], world.folder / "routing.jsonl"
    got = world.stats(model, *BASE, "--temp", "0", "--draft", model, "--draft-len", "3", "--trace-routing", path)
    rows = path.read_text().splitlines()[1:]
    assert got["drafted_tokens"] > 0
    assert len(rows) == got["prompt_tokens"] + got["passes"] - 1 + got["drafted_tokens"]
