"""The command line: what it prints where, and what it says to wrong usage."""
import json
import os
import pathlib
import pty

import pytest

import kit
from kit import fixture

VERBS = ("run", "chat", "tokenize", "logits", "plan", "inspect", "bench", "probe", "pack", "verify", "list", "help")
KINDS = ("families", "types", "kv-types", "formats", "links", "modes", "places", "enclosures", "readers", "tokenizers",
         "pretokenizers", "templates", "samplers", "errors", "verbs")


def test_version(world):
    assert world.good("--version").out.startswith("brigade ")
    shard = world.run(kit.SHARD, "--version")
    assert shard.code == 0 and shard.out.startswith("brigade-shard ")


def test_help_lists_the_verbs_that_exist(world):
    text = world.good("help").out
    listed = world.good("list", "verbs").out
    for verb in VERBS:
        assert verb in text and verb in listed
        assert "usage" in world.good("help", verb).out.lower()
        assert world.good(verb, "--help").out == world.good("help", verb).out
    for verb in ("serve", "up"):
        assert "\n  %s " % verb not in text
    assert world.run(kit.SHARD, "--help").code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_list(world, kind):
    assert kind in world.good("list").out
    rows = world.good("list", kind).out.splitlines()
    assert rows and all(len(row.split(None, 1)) == 2 for row in rows), rows
    singular = {"families": "family"}.get(kind, kind[:-1])
    assert world.good("list", singular).out.splitlines() == rows


def test_list_says_what_is_supported(world):
    types = {row.split()[0] for row in world.good("list", "types").out.splitlines()}
    assert {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"} <= types
    pre = {row.split()[0] for row in world.good("list", "pretokenizers").out.splitlines()}
    assert {"gpt-2", "smollm", "qwen2", "llama-bpe"} <= pre


RUN = ("run", fixture(), "-p", "x")
WRONG = [
    (("nonsense",), "nonsense"),
    (("rnu",), "run"),
    (("run",), "MODEL"),
    (("list", "nonsense"), "nonsense"),
    (("help", "nonsense"), "nonsense"),
    ((*RUN, "--nonsense"), "--nonsense"),
    ((*RUN, "--temp"), "--temp"),
    ((*RUN, "extra"), "extra"),
    ((*RUN, "--temp", "-1"), "--temp"),
    ((*RUN, "--temp", "hot"), "--temp"),
    ((*RUN, "--temp", "inf"), "--temp"),
    ((*RUN, "--top-p", "nan"), "--top-p"),
    ((*RUN, "--top-p", "0"), "--top-p"),
    ((*RUN, "--top-p", "1.5"), "--top-p"),
    ((*RUN, "--min-p", "-0.1"), "--min-p"),
    ((*RUN, "--top-k", "-1"), "--top-k"),
    ((*RUN, "--repeat-penalty", "0"), "--repeat-penalty"),
    ((*RUN, "--presence-penalty", "9"), "--presence-penalty"),
    ((*RUN, "--seed", "x"), "--seed"),
    ((*RUN, "--shards", "0"), "--shards"),
    ((*RUN, "--shards", "two"), "--shards"),
    ((*RUN, "--shards", "99999999999999999999"), "--shards"),
    ((*RUN, "--shards", "7"), "5 layers"),
    ((*RUN, "--mode", "tepid"), "--mode"),
    ((*RUN, "--kv", "f64"), "--kv"),
    ((*RUN, "--threads", "0"), "--threads"),
    ((*RUN, "-n", "0"), "-n"),
    ((*RUN, "--ctx", "0"), "--ctx"),
    ((*RUN, "--timeout", "0"), "--timeout"),
    ((*RUN, "--timeout", "nan"), "--timeout"),
    ((*RUN, "--stop", ""), "--stop"),
    ((*RUN, "-f", "/dev/null"), "-f"),
    ((*RUN, "--raw", "--system", "x"), "--system"),
    ((*RUN, "--chain", "abstract://x", "--shards", "2"), "--shards"),
    ((*RUN, "--chain", "abstract://x", "--mode", "cold"), "--mode"),
    (("run", fixture(), "-p", "", "--raw"), "prompt"),
    (("logits", fixture(), "--ids", "1,2"), "--out"),
    (("logits", fixture(), "--ids", "1,frog", "--out", "x.npy"), "--ids"),
    (("logits", fixture(), "--ids", "517", "--out", "x.npy"), "517"),
    (("bench", fixture(), "--modes", "warm,tepid"), "tepid"),
    (("bench", fixture(), "--shards", "1,9"), "--shards"),
]


@pytest.mark.parametrize("args,says", WRONG, ids=[" ".join(a)[-40:] for a, _ in WRONG])
def test_wrong_usage(world, args, says):
    args = [a if a != "x.npy" else str(world.folder / a) for a in args]
    world.refused(*args, code=2, says=says)


WRONG_SHARD = [
    ((fixture(), "--layers", "0:2"), "--control"),
    ((fixture(), "--control", "abstract://x"), "--layers"),
    ((fixture(), "--layers", "3:2", "--control", "abstract://x"), "--layers"),
    ((fixture(), "--layers", "0:6", "--control", "abstract://x"), "--layers"),
    ((fixture(), "--layers", "0:2", "--head", "--control", "abstract://x"), "--head"),
    ((fixture(), "--layers", "all", "--control", "smoke://x"), "smoke"),
    ((fixture(), "--layers", "all", "--control", "tcp://0.0.0.0:0"), "--insecure"),
    ((fixture(), "--layers", "all", "--nonsense", "--control", "abstract://x"), "--nonsense"),
    (("--layers", "all", "--control", "abstract://x"), "MODEL"),
]


@pytest.mark.parametrize("args,says", WRONG_SHARD, ids=[" ".join(a)[-40:] for a, _ in WRONG_SHARD])
def test_wrong_usage_of_a_shard(world, args, says):
    kit.refusal(world.run(kit.SHARD, *args), 2, says)


def test_a_terminal_without_a_prompt_is_wrong_usage(world):
    master, slave = pty.openpty()
    try:
        process = world.start(kit.BRIGADE, "run", fixture(), stdin=slave)
        kit.refusal(world.finish(process, 20 * kit.SLOWER), 2, "-p")
    finally:
        os.close(master)
        os.close(slave)


def test_no_arguments(world):
    result = world.brigade()
    assert result.code == 2 and result.out == "" and "run" in result.err


def test_stdout_holds_the_text_and_nothing_else(world):
    options = ("run", fixture(), "--raw", "-p", "The sun", "--temp", "0", "-n", "12")
    loud, quiet = world.good(*options), world.good(*options, "-q")
    assert loud.out == quiet.out and loud.out != ""
    assert quiet.err == ""
    assert "\r" not in loud.err and "\x1b" not in loud.err
    assert "tok/s" in loud.err and "context" in loud.err
    streamed = "".join(world.good("tokenize", fixture(), "--decode", "--no-special", input=str(ids)).out
                       for ids in [world.stats(*options[1:])["ids"]])
    assert loud.out == streamed + "\n" and not streamed.endswith("\n")


def test_an_answer_ends_with_one_newline(world):
    """Where both go to one pipe the figures begin a line of their own; an answer that has a newline gets no other."""
    options = ("run", fixture(), "--raw", "-p", "The sun", "--seed", "1", "--ignore-eos", "--ctx", "4000")
    newline = json.loads(world.good("tokenize", fixture(), "--json", input="\n").out)["ids"]
    ids = world.stats(*options[1:], "-n", "2000")["ids"]
    for n, before in ((12, 0), (ids.index(*newline) + 1, 1)):
        text = world.good("tokenize", fixture(), "--decode", "--no-special", input=str(ids[:n])).out
        assert text.endswith("\n") == (before == 1)
        piped = world.run("sh", "-c", 'exec "$@" 2>&1', "sh", kit.BRIGADE, *options, "-n", n)
        answer, figures = piped.out.rsplit("brigade: ", 1)
        assert piped.code == 0 and answer.endswith(text + "\n" * (1 - before)), piped
        assert figures.endswith("\n")


def test_a_file_that_cannot_be_written_is_said_before_the_work(world):
    for flag in ("--stats", "--trace"):
        world.refused("run", fixture(), "-p", "x", "-n", "4", flag, "/nowhere/at/all.json", "-q", says="/nowhere")
    world.refused("logits", fixture(), "--ids", "1", "--out", "/nowhere/at/all.npy", says="/nowhere")
    assert world.brigade("run", fixture(), "-p", "x", "-n", "4", "-q", "--stats", "/dev/full").code == 1


def test_stdout_that_is_full_or_closed_is_a_failure(world):
    with open("/dev/full", "wb") as full:
        process = world.start(kit.BRIGADE, "run", fixture(), "-p", "x", "-n", "8", "--temp", "0", stdout=full)
        result = world.finish(process, 20 * kit.SLOWER)
    assert result.code == 1 and "standard output" in result.err, result


def test_tests_that_measure_time_are_alone():
    """Those that others run beside must not have a limit of time that a busy machine breaks."""
    measuring = [p for p in pathlib.Path(__file__).parent.glob("test_*.py") if "monotonic() - " + "began" in p.read_text()]
    assert len(measuring) >= 4
    for path in measuring:
        assert "pytest.mark.alone" in path.read_text(), path
