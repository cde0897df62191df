"""Folders with a tokenizer.json: `tokenize` needs nothing else, and a hub folder runs with its own."""
import json
import shutil

import kit

FIXTURES = kit.ROOT / "build" / "fixtures"


def copy_tokenizer(name, folder):
    folder.mkdir(exist_ok=True)
    for file in (FIXTURES / ("tok_%s" % name)).iterdir():
        shutil.copy(file, folder)
    return folder


def test_a_folder_of_tokenizer_files_is_enough(world, tmp_path):
    folder = copy_tokenizer("tiny_bpe517", tmp_path / "only")
    cases = json.loads((FIXTURES / "tok_tiny_bpe517.json").read_text())["cases"]
    for case in cases[:: len(cases) // 8]:
        for model in (folder, folder / "tokenizer.json"):
            got = json.loads(world.good("tokenize", str(model), "--json", input=case["text"]).out)
            assert got["ids"] == case["ids"], case["text"]
        assert world.good("tokenize", str(folder), "--decode", input=json.dumps(case["ids"])).out == case["decode"]


def test_damaged_files_are_one_line_that_names_them(world, tmp_path):
    folder = copy_tokenizer("tiny_bpe517", tmp_path / "bad")
    whole = json.loads((folder / "tokenizer.json").read_text())
    whole["model"]["merges"].append(["a", "a" * 50])
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    world.refused("tokenize", str(folder), input="x", says="merge 256")
    (folder / "tokenizer.json").write_text(json.dumps(whole)[:-1])
    world.refused("tokenize", str(folder), input="x", says="tokenizer.json: line 1")
    (folder / "tokenizer.json").unlink()
    world.refused("tokenize", str(folder), input="x", says=str(folder))


def test_no_special_keeps_user_defined_tokens(world, tmp_path):
    folder = copy_tokenizer("tiny_bpe517", tmp_path / "user")
    whole = json.loads((folder / "tokenizer.json").read_text())
    n = max(t for t in whole["model"]["vocab"].values()) + 1
    whole["added_tokens"].append({"id": n, "content": "<tool>", "special": False, "normalized": False})
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    for flags, control in (((), True), (("--no-special",), False)):
        ids = json.loads(world.good("tokenize", str(folder), "--json", *flags, input="<s><tool>").out)["ids"]
        assert ids[-1] == n and (ids[0] == whole["model"]["vocab"]["<s>"]) == control


def test_a_hub_folder_runs_with_its_tokenizer(world, tmp_path):
    folder = copy_tokenizer("tiny_bpe517", tmp_path / "hub")
    for file in (kit.ROOT / "tests" / "fixtures" / "qwen2" / "hub").iterdir():
        if file.name.startswith("model") or file.name == "config.json":
            shutil.copy(file, folder)
    text = "a bridge over water"
    n_ids = len(json.loads(world.good("tokenize", str(folder), "--json", input=text).out)["ids"])
    stats = tmp_path / "stats.json"
    world.good("run", str(folder), "-p", text, "-n", "4", "--raw", "--stats", str(stats))
    assert json.loads(stats.read_text())["prompt_tokens"] == n_ids
    shown = json.loads(world.good("inspect", str(folder), "--json").out)["vocab"]
    assert shown["n_tokens"] == 517
