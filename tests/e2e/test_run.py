"""`brigade run`: figures, traces, ends of an answer, prompts from everywhere."""
import json
import os

import pytest

import kit
from kit import fixture

PLAIN = ("--raw", "-p", "The old bridge", "--temp", "0", "--ignore-eos")
NUMBER = (int, float)
STATS = {
    "schema": int, "model": str, "mode": str, "shards": int, "threads": int, "kernel": str, "exact": bool, "kv": str,
    "seed": int, "prompt_tokens": int, "generated_tokens": int, "ids": list, "stop_reason": str, "start_s": NUMBER,
    "ttft_s": NUMBER, "prefill_tok_s": NUMBER, "decode_tok_s": NUMBER, "pss_peak_bytes": int, "kv_bytes": int,
    "cgroup_peak_bytes": (int, type(None)), "weights_bytes": int, "bytes_per_token": int, "hops_per_token": int,
    "hop_us_p50": (int, float, type(None)), "hop_us_p99": (int, float, type(None)), "per_shard": list,
    "passes": int, "tokens_per_pass": NUMBER, "drafted_tokens": int, "accepted_tokens": int, "drafts": list,
    "draft_model": (str, type(None)), "plan": type(None), "enclosure": type(None), "experts": type(None),
}
SHARD_STATS = {"stage": int, "pid": int, "host": str, "layers": list, "head": bool, "start_s": NUMBER,
               "compute_s": NUMBER, "wait_s": NUMBER, "mapped_bytes": int, "pss_peak_bytes": int,
               "read_bytes": int, "stall_s": NUMBER, "lives": bool, "kv_bytes": (int, type(None)), "experts": type(None)}


def check_types(value, wanted):
    assert set(value) == set(wanted)
    for key, kind in wanted.items():
        assert isinstance(value[key], kind), (key, value[key])
        assert not isinstance(value[key], bool) or kind is bool, key


@pytest.mark.parametrize("mode", ("warm", "cold"))
@pytest.mark.parametrize("shards", (1, 3, 6))
def test_stats_are_complete(world, mode, shards):
    if kit.SANITIZED and (mode, shards) == ("cold", 6):
        pytest.skip("a sanitized start is slow; three shards are run")
    n = 4 if mode == "cold" else 16
    s = world.stats(fixture(), *PLAIN, "-n", n, "--shards", shards, "--mode", mode, "--threads", "1", "--seed", "5")
    check_types(s, STATS)
    assert (s["schema"], s["mode"], s["shards"], s["threads"], s["seed"]) == (1, mode, shards, 1, 5)
    assert (s["exact"], s["kv"], s["stop_reason"]) == (False, "f16", "length")
    assert s["generated_tokens"] == len(s["ids"]) == n
    assert (s["passes"], s["tokens_per_pass"], s["drafted_tokens"], s["drafts"]) == (n, 1, 0, [])
    assert 0 < s["start_s"] <= s["ttft_s"] < 60
    assert s["prefill_tok_s"] > 0 and s["decode_tok_s"] > 0
    if mode == "warm":
        assert s["hop_us_p99"] >= s["hop_us_p50"] >= 0
    else:  # a cold pass starts processes between the hops: no time of a hop can be told from it
        assert s["hop_us_p50"] is None and s["hop_us_p99"] is None
    # A chain passes each stage and comes back; a cold line returns to the driver after each stage.
    assert s["hops_per_token"] == (shards + 1 if mode == "warm" else 2 * shards)
    inspected = json.loads(world.good("inspect", fixture(), "--json").out)
    assert s["weights_bytes"] == inspected["weights_bytes"]
    assert s["bytes_per_token"] == inspected["bytes_per_token"]
    assert s["bytes_per_token"] == sum(inspected["layer_bytes"]) + inspected["head_bytes"]
    assert len(s["per_shard"]) == shards
    edge = 0
    for i, p in enumerate(s["per_shard"]):
        check_types(p, SHARD_STATS)
        assert p["stage"] == i and p["layers"][0] == edge and p["layers"][1] >= edge
        assert p["head"] == (i == shards - 1)
        assert p["start_s"] > 0 and p["compute_s"] > 0 and p["wait_s"] >= 0 and p["pss_peak_bytes"] > 0
        assert p["lives"] == (mode == "warm") and (p["kv_bytes"] is None) == (p["layers"] == [5, 5])
        edge = p["layers"][1]
    assert edge == kit.N_LAYERS
    pages = 4096 * 4 * shards
    used = s["weights_bytes"]
    assert used <= sum(p["mapped_bytes"] for p in s["per_shard"]) <= used + pages
    if mode == "warm":  # all alive together
        assert s["pss_peak_bytes"] >= max(p["pss_peak_bytes"] for p in s["per_shard"])


def test_trace_is_complete(world):
    path = world.folder / "trace.json"
    world.good("run", fixture(), *PLAIN, "-n", "8", "--shards", "3", "--trace", path)
    events = json.loads(path.read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert len(names) == 4 and names[0] == "driver"
    work = [e for e in events if e["ph"] == "X"]
    assert work and all(e["dur"] >= 0 and e["ts"] >= 0 and e["pid"] in names for e in work)
    for track in (1, 2, 3):  # the prompt, and the seven tokens that were fed back
        assert len([e for e in work if e["pid"] == track and e["name"] == "work"]) >= 8, track


def test_prompts_from_a_file_and_from_stdin(world):
    options = ("--raw", "--temp", "0", "-n", "8", "--ignore-eos")
    want = world.stats(fixture(), *options, "-p", "The old bridge\nin the rain")["ids"]
    path = world.folder / "prompt.txt"
    path.write_text("The old bridge\nin the rain\n")
    assert world.stats(fixture(), *options, "-f", path)["ids"] == want
    assert world.stats(fixture(), *options, input="The old bridge\nin the rain\n")["ids"] == want
    assert world.stats(fixture(), *options, input="The old bridge in the rain")["ids"] != want
    world.refused("run", fixture(), "-f", "/nowhere.txt", says="/nowhere.txt")


def test_the_chat_template_is_applied_unless_raw(world):
    options = ("-p", "Hello", "--temp", "0", "-n", "2", "--ignore-eos")
    raw, chat = world.stats(fixture(), *options, "--raw"), world.stats(fixture(), *options)
    system = world.stats(fixture(), *options, "--system", "Be brief.")
    assert raw["prompt_tokens"] < chat["prompt_tokens"] < system["prompt_tokens"]


def test_a_stop_string_ends_the_answer_before_it(world):
    text = world.good("run", fixture(), *PLAIN, "-n", "24", "-q").out
    stop = text[10:14]
    at = text.index(stop)
    s_path = world.folder / "s.json"
    cut = world.good("run", fixture(), *PLAIN, "-n", "24", "-q", "--stop", stop, "--stop", "\x01never", "--stats", s_path)
    assert cut.out == text[:at] + "\n"
    assert json.loads(s_path.read_text())["stop_reason"] == "stop"


def test_a_full_context_ends_the_answer(world):
    s = world.stats(fixture(), *PLAIN, "--ctx", "40")
    assert s["stop_reason"] == "context"
    assert s["prompt_tokens"] + s["generated_tokens"] in (40, 41)  # the last token needs no place


def test_a_prompt_longer_than_the_context(world):
    world.refused("run", fixture(), "--raw", "-p", "word " * 300, says=["256", "--ctx"])
    world.refused("run", fixture(), "--raw", "-p", "one two three four five", "--ctx", "3", says="--ctx")


def test_the_context_is_said(world):
    assert "context of 256" in world.good("run", fixture(), *PLAIN, "-n", "2").err
    long = world.good("run", fixture(), *PLAIN, "-n", "2", "--ctx", "1000").err
    assert "more than the 256" in long


def test_end_of_turn_ends_the_answer(world):
    """Drawn hot, the tiny model meets an end token soon; with --ignore-eos the same seed goes on."""
    options = (fixture(), "--raw", "-p", "x", "--temp", "50", "--top-k", "0", "--top-p", "1", "--min-p", "0", "-n", "200")
    for seed in range(1, 40):
        s = world.stats(*options, "--seed", seed)
        if s["stop_reason"] == "eos":
            on = world.stats(*options, "--seed", seed, "--ignore-eos")
            assert on["stop_reason"] == "length" and on["generated_tokens"] == 200
            n = s["generated_tokens"]
            assert on["ids"][:n] == s["ids"]
            return
    raise AssertionError("no seed met an end token")


def test_seeds_are_printed_and_repeat_the_text(world):
    options = ("run", fixture(), "--raw", "-p", "x", "--temp", "2", "-n", "12", "--ignore-eos")
    first = world.good(*options)
    seed = first.err.split("seed ")[1].split(",")[0]
    assert world.good(*options, "--seed", seed, "-q").out == first.out


def test_sampler_options_reach_the_draw(world):
    options = (fixture(), "--raw", "-p", "x", "-n", "16", "--ignore-eos", "--seed", "3")
    greedy = world.stats(*options, "--temp", "0")["ids"]
    assert world.stats(*options, "--temp", "5", "--top-k", "1")["ids"] == greedy
    assert world.stats(*options, "--temp", "5", "--top-k", "0", "--top-p", "0.000001")["ids"] == greedy
    assert world.stats(*options, "--temp", "5", "--min-p", "0.999999")["ids"] == greedy
    no_twice = world.stats(*options, "--temp", "0", "--repeat-penalty", "1.0", "--presence-penalty", "2",
                           "--frequency-penalty", "2")["ids"]
    assert len(set(no_twice)) >= len(set(greedy))


def test_the_tiny_model_needs_no_network_and_no_writable_home(world):
    env = {"HOME": "/nowhere"}
    assert world.brigade("run", fixture(), *PLAIN, "-n", "4", "--shards", "2", env=env).code == 0


def test_the_shard_program_is_found_beside_a_link(world):
    """`brigade` finds brigade-shard beside itself, also when it is called by a link from another folder."""
    link = world.folder / "brigade"
    os.symlink(kit.BRIGADE, link)
    assert world.run(link, "run", fixture(), *PLAIN, "-n", "4").code == 0
