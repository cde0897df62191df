"""`brigade tokenize` on the fixtures' strings: a sample of them, for each is a process; the unit test has all."""
import json

import pytest

import kit

NAMES = ("gpt2", "tiny_bpe517", "tiny_bpe1031", "tiny_spm517")


def load(name):
    folder = kit.ROOT / "build" / "fixtures"
    return str(folder / ("tok_%s.gguf" % name)), json.loads((folder / ("tok_%s.json" % name)).read_text())


def sample(cases, n=40):
    if kit.FULL:
        return cases
    step = max(1, len(cases) // (n // (4 if kit.SANITIZED else 1)))
    return cases[::step]


@pytest.mark.parametrize("name", NAMES)
def test_ids_and_text_of_the_fixtures(world, name):
    model, fixture = load(name)
    cases = sample(fixture["cases"])
    assert cases
    plainly = ("--no-special",) if name == "tiny_spm517" else ()  # that fixture knows no added tokens in text
    for case in cases:
        got = json.loads(world.good("tokenize", model, "--json", *plainly, input=case["text"]).out)
        assert got["ids"] == case["ids"], case["text"]
        assert len(got["pieces"]) == len(case["ids"])
        plain = world.good("tokenize", model, *plainly, input=case["text"]).out
        assert [int(w) for w in plain.split()] == case["ids"]
        if case["ids"]:
            back = world.good("tokenize", model, "--decode", input=plain).out
            assert back == case["decode"], case["text"]


def test_decode_takes_lists_and_refuses_the_rest(world):
    model, _ = load("tiny_bpe517")
    ids = json.loads(world.good("tokenize", model, "--json", input="a bridge").out)["ids"]
    for text in (" ".join(map(str, ids)), "\n".join(map(str, ids)), json.dumps(ids)):
        assert world.good("tokenize", model, "--decode", input=text).out == "a bridge"
    assert world.good("tokenize", model, "--decode", input="").out == ""
    assert world.good("tokenize", model, input="").out.strip() == ""
    world.refused("tokenize", model, "--decode", input="1 frog", code=2, says="standard input")
    assert world.brigade("tokenize", model, "--decode", input="99999").code != 0


def test_added_tokens_and_no_special(world):
    model, _ = load("tiny_bpe517")
    text = "<s>x</s>"
    special = json.loads(world.good("tokenize", model, "--json", input=text).out)["ids"]
    plain = json.loads(world.good("tokenize", model, "--json", "--no-special", input=text).out)["ids"]
    assert len(special) == 3 and len(plain) > 3
    ids = json.dumps(special)
    assert world.good("tokenize", model, "--decode", input=ids).out == text
    assert world.good("tokenize", model, "--decode", "--no-special", input=ids).out == "x"


def test_an_unknown_pre_tokenizer_is_named_and_overridden(world):
    source = kit.fixture()
    data = open(source, "rb").read()
    key = b"tokenizer.ggml.pre" + (8).to_bytes(4, "little") + (5).to_bytes(8, "little")
    assert data.count(key + b"qwen2") == 1
    path = world.folder / "odd.gguf"
    path.write_bytes(data.replace(key + b"qwen2", key + b"qwen9"))
    world.refused("tokenize", path, input="x", says=["qwen9", "--pre"])
    assert world.good("tokenize", path, "--pre", "qwen2", input="x y").out == world.good(
        "tokenize", source, input="x y").out
    assert world.brigade("tokenize", path, "--pre", "nonsense", input="x").code != 0


def test_a_stream_of_bytes_of_any_kind_is_text(world):
    model, _ = load("gpt2")
    noise = bytes(range(256)) * 16 + b"\xf0\x9f\x98" + b"\0" * 10
    got = json.loads(world.good("tokenize", model, "--json", input=noise).out)
    assert got["ids"] and all(i < 50257 for i in got["ids"])
    assert world.good("tokenize", model, input="\u65e5\u672c\u8a9e " * 20000).code == 0
