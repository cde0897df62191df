"""Chat templates: Brigade's interpreter against python3-jinja2, set up as transformers sets it up. Results must be
equal, failures equal in kind (and in line, where jinja2 says one)."""
import json

import pytest

import kit
import templates_kit
import templates_snippets

MODEL = str(kit.ROOT / "build" / "fixtures" / "tok_tiny_bpe517.gguf")
FIXTURES = kit.ROOT / "tests" / "fixtures"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def differences(world, cases):
    """cases: (template, context). The list of those that differ, to read; and how many there were that failed."""
    different, n_failed = [], 0
    for template, context in cases:
        theirs = templates_kit.by_jinja2(template, {**TOKENS, "tools": None, "documents": None,
                                                    "add_generation_prompt": True, **context})
        ours = templates_kit.by_brigade(world, MODEL, template, context)
        n_failed += theirs[0] != "text"
        if not templates_kit.same(ours, theirs):
            different.append("%r\n  jinja2:  %r\n  brigade: %r" % (template[:300], theirs, ours))
    return different, n_failed


def test_the_language(world):
    """Small templates, each for one trait."""
    cases = [(t, templates_snippets.CONTEXT) for t in templates_snippets.all_snippets()]
    cases = cases[::5] if kit.SANITIZED else cases
    different, n_failed = differences(world, cases)
    assert not different, "\n".join(different)
    assert len(cases) - n_failed > len(cases) / 4 and n_failed > len(cases) / 4


def references():
    return json.loads((FIXTURES / "chat" / "references.json").read_text())


def templates():
    found = {p.name: p.read_text() for p in sorted((FIXTURES / "templates").glob("*.jinja"))}
    found["smollm2"] = (FIXTURES / "chat" / "smollm2_template.txt").read_text()
    found.update({r["tokenizer"]: r["chat_template"] for r in references()})
    return found


@pytest.mark.parametrize("name", sorted(templates()))
def test_whole_templates(world, name):
    """Templates of the published formats on all conversations, good and bad ones."""
    conversations = json.loads((FIXTURES / "templates" / "conversations.json").read_text())
    different, _ = differences(world, [(templates()[name], c) for c in conversations.values()])
    assert not different, "\n".join(different)


def named():
    return [line.split()[0] for line in kit.subprocess.run([kit.BRIGADE, "list", "templates"], check=True,
                                                           stdout=kit.subprocess.PIPE, text=True).stdout.split("\n") if line]


def test_the_fixtures_of_the_reference_library(world):
    """What transformers' own rendering gave, prompt and ids."""
    n = 0
    for reference in references():
        if not reference["tokenizer"].startswith("tiny_bpe"):  # the unit test has the others
            continue
        model = str(kit.ROOT / "build" / "fixtures" / ("tok_%s.gguf" % reference["tokenizer"]))
        for case in reference["cases"]:
            given = world.folder / "given.json"
            given.write_text(json.dumps({k: v for k, v in case.items() if k not in ("rendered", "ids", "error")}))
            if "error" in case:
                world.refused("tokenize", model, "--messages", given, "--text", says="line 1")
                continue
            assert world.good("tokenize", model, "--messages", given, "--text").out == case["rendered"]
            ids = world.good("tokenize", model, "--messages", given).out
            assert [int(w) for w in ids.split()] == case["ids"], case["name"]
            n += 1
    assert n >= 30


def test_messages_as_a_list_and_the_names(world):
    given = world.folder / "given.json"
    given.write_text('[{"role": "user", "content": "Hi\\u0000!"}]')
    own = world.good("tokenize", MODEL, "--messages", given, "--text")
    chatml = world.good("tokenize", MODEL, "--messages", given, "--text", "--chat-template", "chatml")
    assert own.raw == chatml.raw == b"<|im_start|>user\nHi\0!<|im_end|>\n<|im_start|>assistant\n"
    names = named()
    texts = {world.good("tokenize", MODEL, "--messages", given, "--text", "--chat-template", n).raw for n in names}
    assert len(texts) == len(names) >= 6
    assert all(b"Hi\0!" in t for t in texts)


def test_what_is_refused(world):
    given, template = world.folder / "given.json", world.folder / "t.jinja"
    given.write_text('[{"role": "user", "content": "Hi"}]')
    render = ("tokenize", MODEL, "--messages", given, "--text")
    world.refused(*render, "--chat-template", "nosuch", code=2, says=["nosuch", "brigade list templates"])
    world.refused(*render, "--chat-template", "./nosuch", says="./nosuch")
    world.refused("tokenize", MODEL, "--text", code=2, says="--messages")
    world.refused("tokenize", MODEL, "--chat-template", "chatml", code=2, says="--messages")
    world.refused(*render, "--decode", code=2, says="--decode")
    world.refused(*render, "--json", code=2, says="--json")
    world.refused("run", MODEL, "--raw", "--chat-template", "chatml", "-p", "x", code=2, says="--raw")
    template.write_text("")
    world.refused(*render, "--chat-template", template, says=[template, "empty"])
    template.write_text("{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}")
    world.refused(*render, "--chat-template", template, says=[template, "line 1", "limit"], timeout=20)
    template.write_text("\n{{ raise_exception('only in\nverse') }}")
    world.refused(*render, "--chat-template", template, says=[template, "line 2", "only in?verse"])
    world.refused("run", MODEL, "-p", "x", "--chat-template", template, says=[template, "line 2", "only in?verse"])
    world.refused("chat", MODEL, "--chat-template", template, says=[template, "line 2", "only in?verse"], input="Hi\n")
    template.write_bytes(b"x" * ((1 << 20) + 1))
    world.refused(*render, "--chat-template", template, says=template)
    for text, says in (("{", "line 1"), ("{}", "messages"), ('{"messages": 5}', "messages"), ('"x"', "line 1"), ("[" * 5000, "line 1"), ("", "line")):
        given.write_text(text)
        world.refused(*render, says=says)
    world.refused("tokenize", MODEL, "--messages", "/nowhere.json", says="/nowhere.json")


def test_run_and_chat_use_it(world):
    """A template of one's own decides what the model reads."""
    model, template = kit.fixture(), world.folder / "t.jinja"
    template.write_text("{% for m in messages %}{{ m.role }} says {{ m.content }}.{% endfor %}")
    options = ("--temp", "0", "-n", "6", "--ignore-eos")
    own = world.stats(model, "-p", "Hello", "--chat-template", template, *options)
    raw = world.stats(model, "-p", "user says Hello.", "--raw", *options)
    named_one = world.stats(model, "-p", "Hello", "--chat-template", "chatml", *options)
    assert own["ids"] == raw["ids"] and own["prompt_tokens"] == raw["prompt_tokens"]
    assert named_one["prompt_tokens"] != own["prompt_tokens"]
    said = world.good("chat", model, "--chat-template", template, *options, "-q", input="Hello\n").out
    assert said == world.good("run", model, "-p", "Hello", "--chat-template", template, *options, "-q").out
