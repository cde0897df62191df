#!/usr/bin/env python3
"""docs/models.md from the program's own tables and the rows of the gate: models_page.py BRIGADE [--check].

Without --check the page is written; with it, a page that is not what would be written is a failure.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from parity import HIDDEN, LOGITS, ROWS  # noqa: E402

PAGE = ROOT / "docs" / "models.md"
SOURCES = {"hub": "Hugging Face", "variant": "Hugging Face", "gguf": "numpy", "type": "numpy", "ints": "numpy"}
REAL = {"Q4_1": "SmolLM2", "Q4_K": "Gemma 3", "Q5_0": "Gemma 3", "Q6_K": "Gemma 3", "Q8_0": "Gemma 3"}  # real files

# What lies in no table: real models that tests do not fetch, the stand-in that is tested for each, and how to run them.
STAND_INS = [
    ("Qwen3-4B-Instruct", "qwen3", "hf download Qwen/Qwen3-4B-Instruct-2507 --local-dir Qwen3-4B-Instruct",
     "-p 'What is 2 + 2?'"),
    ("OLMoE-1B-7B", "olmoe", "hf download allenai/OLMoE-1B-7B-0924 --local-dir OLMoE-1B-7B",
     "--raw -p 'Bitcoin is'"),
    # on the hub as a pickle: transformers writes safetensors, and has its tokenizer elsewhere
    ("TinyStories-1M", "gpt-neo",
     "python3 -c \"from transformers import AutoModelForCausalLM as M, AutoTokenizer as T; n = 'TinyStories-1M'; "
     "M.from_pretrained('roneneldan/' + n).save_pretrained(n); "
     "T.from_pretrained('EleutherAI/gpt-neo-125M').save_pretrained(n)\"",
     "--raw -p 'Once upon a time'"),
]

HEAD = """# Models

Made by `make docs-models` from the program's own tables (`brigade list KIND`) and the rows of `make parity`; a test
fails when the page is old.

## How it is checked

`make parity`, a part of `make test`, holds each row below to a reference, with `--exact`:

- logits of a prompt, each within %g of the reference, and every greedy token after it the same;
- what enters the first layer, leaves each layer and leaves the final norm (`logits --hidden`), within %g;
- the same bits for 1 shard, 2, and one for each layer, without `--exact` too.

References are of two kinds. **Hugging Face**: what transformers computes in 32-bit floats of the same safetensors
(`tests/fixtures/make_references.py`). **numpy**: what a forward pass that shares no code with Brigade computes of the
dequantised file (`tests/fixtures/numpy_forward.py`, which agrees with Hugging Face on all models of this page). Figures
such as eps, bases, windows and scales are changed in a copy of a file, and the change of the logits must be the one that
numpy foretells. `make mutate` puts faults into the code, one at a time (a window off by one, a missing bias, a softmax at
the wrong place): each must turn a check red.

The models of these checks are tiny, with random weights. Real ones, fetched by `make model` and `make model-gemma`:
SmolLM2-135M-Instruct (Q4_1) and Gemma 3 270M (Q4_K, Q5_0, Q6_K, Q8_0), of each 64 greedy tokens in `--exact` against
numpy. What 8-bit activations and each stored type cost in accuracy is measured on them:
[benchmarks.md](benchmarks.md#what-types-cost).
""" % (LOGITS, HIDDEN)


def listed(brigade, kind):
    out = subprocess.run([brigade, "list", kind], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line.split(None, 1) for line in out.splitlines()]


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]) + "\n"


def unique(items):
    return list(dict.fromkeys(i for i in items if i))


def families(brigade):
    rows = []
    for name, words in listed(brigade, "families"):
        mine = [r for r in ROWS if r.family == name]
        rows.append((name, words, ", ".join(unique(r.format for r in mine)) or "-",
                     "; ".join(unique(r.shows for r in mine if SOURCES[r.kind] == "Hugging Face")) or "plain"
                     if any(SOURCES[r.kind] == "Hugging Face" for r in mine) else "-",
                     ", ".join(unique(r.held for r in mine if SOURCES[r.kind] == "numpy")) or "-", str(len(mine))))
    return table(("family", "", "formats", "against Hugging Face", "against numpy, types", "rows"), rows)


def formats(brigade):
    return table(("format", "", "rows"), [(name, words, str(sum(r.format == name for r in ROWS)))
                                          for name, words in listed(brigade, "formats")])


def types(brigade):
    rows = []
    for name, words in listed(brigade, "types"):
        blocks = (ROOT / "tests" / "fixtures" / "dequant" / (name + ".bin")).exists()
        by = "numpy" if "_G" in name else "the reference library"
        checked = "blocks of %s, bit for bit" % by if blocks else "-"
        if name.endswith("_R16"):
            checked = "%s, bit for bit" % name[:-4]
        rows.append((name, words, checked,
                     ", ".join(unique([*(r.family for r in ROWS if r.held == name), REAL.get(name)])) or "-"))
    return table(("type", "", "values are checked with", "rows in families, real models"), rows)


def plain(brigade, kind):
    return table((kind[:-1], ""), [(n, w) for n, w in listed(brigade, kind)])


def stand_ins():
    text = table(("model", "family", "tested in its place"), [
        (name, family, "tiny model of random weights (stand-in): " + ", ".join(unique(
            r.id for r in ROWS if r.family == family and r.kind != "variant"))) for name, family, _, _ in STAND_INS])
    text += "\n    pip install huggingface_hub transformers torch\n"
    for name, _, fetch, prompt in STAND_INS:
        text += "\n    %s\n" % fetch
        text += "    brigade pack %s %s.q4 --shards 4 --quant Q4_0 --head-quant Q8_0\n" % (name, name)
        text += "    brigade run %s.q4 %s --temp 0 --shards 4\n" % (name, prompt)
    return text


def page(brigade):
    return "\n".join([
        HEAD, "## Families\n", families(brigade), "## Formats\n", formats(brigade), "## Stored types\n", types(brigade),
        "## Tokenizers\n", plain(brigade, "tokenizers"), "Pre-tokenizers of the first kind:\n",
        plain(brigade, "pretokenizers"),
        "## Models that tests stand in for\n",
        "These are larger than a test may fetch; a stand-in of the same family is tested. The commands fetch, pack and run "
        "the real\none (8 GB of disk for the download of Qwen3-4B, 14 GB for OLMoE).\n", stand_ins()])


def main():
    brigade, text = sys.argv[1], page(sys.argv[1])
    if sys.argv[2:] != ["--check"]:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        print("docs/models.md: as the tables are")
        return 0
    print("docs/models.md is old: make docs-models", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
