"""A draft model inside the model's budget: counted before anything else, the same tokens, never over."""
import json

import pytest

import kit

pytestmark = pytest.mark.alone

FIXTURES = kit.LLAMA.parent
Q8, F32, Q4 = (str(kit.fixture(kind)) for kind in ("q8_0", "f32", "q4_0"))
GEMMA, HUB = str(FIXTURES / "gemma3" / "q4_0.gguf"), str(FIXTURES / "gemma3" / "hub")
PROMPT = "The old bridge stood. The old bridge stood by the old"
RUN = ("--raw", "-p", PROMPT, "--ignore-eos", "-n", "24")
RELEASE = pytest.mark.release_only("the sanitizers take memory that no plan counts")


def plan(world, model, *args):
    return json.loads(world.good("plan", model, "--json", *args).out)


def test_a_plan_with_a_draft_model(world):
    how = ("--ctx", "64", "--residency", "stream")
    alone, both = plan(world, F32, *how), plan(world, F32, *how, "--draft", Q4)
    assert (alone["draft_model"], both["draft_model"]) == (None, Q4)
    assert alone["memory"]["draft"] == 0 and both["memory"]["draft"] > plan(world, Q4)["token_bytes"]
    # All but what rounding adds is the draft model's.
    assert 0 <= both["least_bytes"] - alone["least_bytes"] - both["memory"]["draft"] < 8192
    at = plan(world, F32, *how, "--draft", Q4, "--ram", both["least_bytes"])
    assert at["total_bytes"] == sum(at["memory"].values()) <= both["least_bytes"]
    world.refused("plan", F32, *how, "--draft", Q4, "--ram", both["least_bytes"] - 1,
                  says=("--ram", F32, "and the draft model " + Q4, str(both["least_bytes"]), "would do"))
    # What the draft model has the weights have not.
    ram = both["least_bytes"] + (1 << 20)
    assert plan(world, F32, *how, "--draft", Q4, "--ram", ram)["held_bytes"] < plan(world, F32, *how, "--ram", ram)["held_bytes"]


def test_what_is_drafted_is_checked_by_a_plan_too(world):
    world.refused("plan", Q8, "--draft", GEMMA, says=("--draft", "the same tokens"))
    world.refused("plan", Q8, "--draft", "nowhere.gguf", "--ram", "1G", says=("--draft", "nowhere.gguf"))


MODES = {"warm": (), "cold": ("--mode", "cold", "--shards", "3"), "pool": ("--mode", "pool", "--shards", "3", "--keep", "1")}


def cases():
    """Some of the combinations, each residency and each mode among them; `make test-all` runs all."""
    sample = (("map", "pool"), ("lock", "warm"), ("stream", "cold"))
    for residency in ("map", "lock", "stream"):
        for mode in MODES:
            yield pytest.param(residency, mode, marks=() if (residency, mode) in sample else (pytest.mark.full,))


@RELEASE
@pytest.mark.parametrize("residency,mode", cases())
def test_the_smallest_budget_gives_the_same_tokens(world, residency, mode):
    """In a memory cgroup of that size, where this machine allows one; one page less is refused."""
    args = MODES[mode]
    for model, draft, draw in ((F32, Q4, ("--temp", "0")), (Q8, Q8, ("--temp", "0.4", "--seed", "3"))):
        want = world.stats(model, *RUN, *draw, "--ctx", "128")["ids"]
        how = ("--ctx", "128", "--residency", residency, *args)
        least = plan(world, model, *how, "--draft", draft)["least_bytes"]
        options = (*RUN, *draw, *how, "--draft", draft, "--draft-len", "3", "--lookup", "off")
        got = world.stats(model, *options, "--ram", least, timeout=60)
        assert got["ids"] == want, (model, draft)
        assert got["drafted_tokens"] > 0 and got["draft_model"] == draft
        assert model != draft or got["accepted_tokens"] == got["drafted_tokens"]
        assert got["plan"]["residency"] == residency and got["plan"]["memory"]["draft"] > 0
        assert 0 < got["plan"]["measured"]["pss_peak_bytes"] <= least
        assert got["enclosure"]["oom_kills"] in (0, None)
        world.refused("run", model, *options, "--ram", least - 4096, says=("--ram", "and the draft model", "would do"))


@RELEASE
def test_chat_and_bench(world):
    lines = "Name a bridge.\nName another bridge.\n"
    args = ("chat", Q8, "--temp", "0.5", "--seed", "9", "-n", "20", "--chat-template", "chatml", "-q", "--ctx", "256")
    want = world.good(*args, input=lines).out
    how = ("--draft", Q4, "--draft-len", "3")
    least = plan(world, Q8, "--ctx", "256", "--draft", Q4)["least_bytes"]
    assert world.good(*args, *how, "--ram", least, input=lines).out == want
    path = world.folder / "bench.json"
    bench = ("bench", F32, "-p", "24", "-n", "40", "--repeat", "1", "-q", "--json", path, "--modes", "warm", "--shards", "1")
    world.good(*bench)
    want = json.loads(path.read_text())["rows"][0]["ids"]
    least = plan(world, F32, "--ctx", "64", "--draft", Q4, "--for", "bench")["least_bytes"]
    world.good(*bench, *how, "--ram", least)
    row = json.loads(path.read_text())["rows"][0]
    assert row["ids"] == want and row["runs"][0]["drafted_tokens"] > 0
    world.refused(*bench, *how, "--ram", least - 4096, says=("--ram", "and the draft model", "would do"))


def test_plans_are_for_verbs(world):
    """bench has no tokenizer, logits whole rows besides; the smallest budgets are those of the verbs themselves."""
    least = {verb: plan(world, GEMMA, "--ctx", "32", "--for", verb)["least_bytes"] for verb in ("run", "chat", "bench", "logits")}
    assert least["run"] == least["chat"] == plan(world, GEMMA, "--ctx", "32")["least_bytes"] > least["bench"]
    assert plan(world, GEMMA, "--for", "bench")["ctx"] == 96  # of its own prompt and answer
    assert plan(world, HUB, "--ctx", "32", "--for", "bench")["memory"]["driver"] <= plan(world, HUB, "--ctx", "32")["memory"]["driver"]
    ids = ",".join("12" * 16)
    world.refused("bench", GEMMA, "-p", "16", "-n", "16", "--ram", least["bench"] - 4096, says=(str(least["bench"]), "would do"))
    world.refused("logits", GEMMA, "--ids", ids, "--out", world.folder / "l.npy", "--ram", least["logits"] - 4096,
                  says=(str(least["logits"]), "would do"))
    world.refused("plan", GEMMA, "--for", "serve", code=2, says=("--for serve", "bench"))
