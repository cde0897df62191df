"""brigade plan: what it says adds up, the smallest budget is the smallest, and a lesser one is refused in words."""
import json

import pytest

import kit
from kit import fixture

pytestmark = pytest.mark.alone

PAGE = 4096


def plan(world, model, *args):
    return json.loads(world.good("plan", model, "--json", *args).out)


def test_json_adds_up(world):
    j = plan(world, fixture("f32"), "--ram", "64M", "--ctx", "128", "-t", "2")
    assert j["schema"] == 1 and j["budget_bytes"] == 64 << 20 and j["ctx"] == 128
    assert j["total_bytes"] == sum(j["memory"].values()) <= j["budget_bytes"]
    assert j["token_bytes"] == j["held_bytes"] + j["read_bytes"]
    assert j["residency"] in ("map", "lock") and j["read_bytes"] == 0 and j["regime"] in ("memory-bound", "compute-bound")
    assert j["token_s"] > 0 and j["memory_bytes_s"] > 0
    free = plan(world, fixture("f32"), "--ctx", "128")
    assert free["budget_bytes"] is None and free["least_bytes"] == j["least_bytes"]


@pytest.mark.parametrize("model,options", (
    ("llama/f32.gguf", ()), ("llama/f32.gguf", ("--mode", "cold")), ("olmoe/q4_0.gguf", ("--exact",)),
    ("gemma3/hub", ("--shards", "3")), ("llama/f32.gguf", ("--residency", "stream"))))
def test_the_smallest_budget_is_the_smallest(world, model, options):
    model = kit.ROOT / "tests" / "fixtures" / model
    least = plan(world, model, *options)["least_bytes"]
    at = plan(world, model, "--ram", least, *options)
    assert at["least_bytes"] == least and at["total_bytes"] <= least and least % PAGE == 0
    world.refused("plan", model, "--ram", least - 1, *options, says=("--ram", str(model), str(least), "would do"))


def test_more_memory_is_never_slower(world):
    least, held = plan(world, fixture("f32"), "--ctx", "64")["least_bytes"], -1
    for more in (0, 100, 300, 900, 2500, 6000):
        j = plan(world, fixture("f32"), "--ctx", "64", "--ram", least + more * 1024)
        assert j["held_bytes"] >= held and j["total_bytes"] <= least + more * 1024
        held = j["held_bytes"]
    assert held == j["token_bytes"]


def test_for_people(world):
    text = world.good("plan", fixture(), "--ram", "1G").out
    for word in ("budget", "smallest", "context", "kv", "together", "tokens/s", "-bound"):
        assert word in text, word
    assert "none" in world.good("plan", fixture()).out


def test_sizes(world):
    assert plan(world, fixture(), "--ram", "1.5G")["budget_bytes"] == 3 << 29
    world.refused("plan", fixture(), "--ram", "50%", says=("would do",))  # a share of a tiny file
    assert plan(world, fixture(), "--ram", "auto")["budget_bytes"] > 1 << 24
    for wrong in ("4GB", "0", "-1", "x", "", "1e9", "5 G", "2000%"):
        world.refused("plan", fixture(), "--ram", wrong, code=2, says=("--ram",))


def test_what_is_no_model(world):
    world.refused("plan", world.folder / "absent.gguf", "--ram", "1G", says=("absent.gguf",))
    world.refused("plan", fixture(), "--shards", "99", "--ram", "1G", code=2, says=("--shards 99",))


RUN = ("--raw", "-p", "Brigade", "--temp", "0", "-n", "6", "--ignore-eos")


def test_a_run_with_room_for_all(world):
    want = world.stats(fixture("f32"), *RUN)
    assert want["plan"] is None
    got = world.stats(fixture("f32"), *RUN, "--ram", "200M")
    assert got["ids"] == want["ids"] and got["plan"]["read_bytes"] == 0
    assert got["plan"]["measured"]["token_s"] > 0
    assert got["plan"]["measured"]["pss_peak_bytes"] > 0
    if not kit.SANITIZED:  # which take memory that no plan counts
        assert got["plan"]["measured"]["pss_peak_bytes"] <= got["plan"]["total_bytes"]


def test_a_run_is_refused_before_anything_starts(world):
    for verb in ("run", "chat"):
        world.refused(verb, fixture(), "--ram", "2M", says=("--ram", "2.0 MiB", "would do"))
    world.refused("logits", fixture(), "--ram", "2M", "--ids", "1,2", "--out", world.folder / "o.npy", says=("would do",))
    assert not (world.folder / "o.npy").exists()
    world.refused("run", fixture(), *RUN, "--ram", "1G", "--chain", "abstract://nobody", code=2, says=("--ram", "--chain"))


def test_the_context_is_chosen_to_fit(world):
    err = world.good("run", fixture(), *RUN, "--ram", "300M").err
    assert "context of " in err
    said = plan(world, fixture(), "--ram", "300M")
    assert "context of %d tokens" % said["ctx"] in err


@pytest.mark.release_only("the sanitizers take memory that no plan counts")
@pytest.mark.parametrize("model", ("llama/f32.gguf", "olmoe/q4_0.gguf"))
def test_the_smallest_budget_runs_and_gives_the_same_tokens(world, model):
    model = kit.ROOT / "tests" / "fixtures" / model
    options = (*RUN, "--ctx", "64")
    want = world.stats(model, *options)["ids"]
    for residency in ("auto", "map", "lock", "stream"):
        how = ("--ctx", "64", "--residency", residency)
        least = plan(world, model, *how)["least_bytes"]
        got = world.stats(model, *RUN, *how, "--ram", least, timeout=60)
        assert got["ids"] == want, residency
        assert residency == "auto" or got["plan"]["residency"] == residency
        assert got["plan"]["read_bytes"] == 0 or got["plan"]["residency"] == "stream"
        assert 0 < got["plan"]["measured"]["pss_peak_bytes"] <= least


@pytest.mark.release_only("the sanitizers take memory that no plan counts")
@pytest.mark.parametrize("options", (("--shards", "3"), ("--mode", "cold", "--shards", "3"), ("--shards", "all")))
def test_a_budget_of_several_processes(world, options):
    want = world.stats(fixture("q4_0"), *RUN, "--ctx", "64")["ids"]
    how = ("--ctx", "64", "--residency", "stream", *options)
    least = plan(world, fixture("q4_0"), *how)["least_bytes"]
    for ram in (least, least + (1 << 20)):
        got = world.stats(fixture("q4_0"), *RUN, *how, "--ram", ram, timeout=60)
        assert got["ids"] == want
        assert got["pss_peak_bytes"] <= ram
