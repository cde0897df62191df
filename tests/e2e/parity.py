"""The rows of the gate: each family x format x stored type that there is a reference for.

A row is one line in ROWS; docs/models.md is made from them too. References:
    hub      tests/fixtures/<family>/hub: logits, hidden states and ids of Hugging Face's transformers
    variant  tests/fixtures/variants/<name>.npz: the same, of a model that make_variants.py makes again
    type     a model of blocks of that type, made by make_types.py, and numpy_forward.py on the values that they stand for
    gguf     tests/fixtures/<family>/<type>.*: logits and ids of the dequantised file, kept; hidden states from
             tests/fixtures/numpy_forward.py as the test runs
    ints     a GPTQ or AWQ checkpoint that make_gptq_awq.py makes: numpy_forward.py of its weights as floats, then too
"""
import dataclasses
import json
import pathlib
import shutil
import sys

import numpy as np

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
sys.path.insert(0, str(FIXTURES))
import make_gguf  # noqa: E402
import make_gptq_awq  # noqa: E402
import make_types  # noqa: E402
import make_variants  # noqa: E402
import numpy_forward  # noqa: E402

LOGITS, HIDDEN = 2e-4, 5e-4  # absolute; logits of the fixtures have a deviation of 1.3 to 8


@dataclasses.dataclass
class Reference:
    ids: list
    greedy: list
    logits: np.ndarray
    hidden: np.ndarray


IDS = [1, 34, 78, 12, 51, 90, 12, 51, 7, 66, 23, 95, 40, 3, 78, 12, 84, 29]


def computed(model, ids=IDS, n_greedy=12):
    """By numpy, as the test runs."""
    forward = numpy_forward.Forward(model)
    hidden, logits = forward.feed(ids)
    greedy, margins = forward.greedy(logits[-1], n_greedy)
    assert min(margins) > 4 * LOGITS, min(margins)  # else the tokens say nothing
    return Reference(ids, greedy, logits, hidden)


@dataclasses.dataclass(frozen=True)
class Row:
    family: str  # as `brigade list families` has it
    kind: str  # of reference
    name: str  # folder, variant, or folder/file
    stored: str = "F32"
    shows: str = ""  # what beside the family
    config: str = "config.json"  # which spelling, of a hub row
    gguf: tuple = None  # made into a GGUF file by make_gguf.py first: its options
    packed: tuple = None  # made into a bundle by `brigade pack` first: its options

    @property
    def held(self):
        """The type that is computed with."""
        return self.stored + ("_R16" if "r16" in (self.packed or ()) else "")

    @property
    def format(self):
        if self.packed is not None:
            return "bundle"
        return "gguf" if self.kind in ("gguf", "type") or self.gguf is not None else "safetensors"

    @property
    def id(self):
        extra = ["gguf", *self.gguf] if self.gguf is not None else []
        extra += ["bundle"] if self.packed is not None else []
        return "-".join([self.name.replace("/", "-"), *extra] + (["hub"] if self.config == "config_hub.json" else []))

    def model(self, folder):
        """The path to run (packed: to pack); what has to be made is made in folder."""
        if self.kind == "gguf":
            return FIXTURES / (self.name + ".gguf")
        if self.kind == "type":
            make_types.make(self.stored, folder / "made.gguf")
            return folder / "made.gguf"
        if self.kind == "ints":
            return make_gptq_awq.make(folder, self.name)
        source = make_variants.make(folder, self.name) if self.kind == "variant" else FIXTURES / self.name / "hub"
        if self.gguf is not None:
            return make_gguf.make(source, folder / "made.gguf", self.gguf)
        if self.config == "config.json":
            return source
        made = folder / "spelled"
        made.mkdir()
        for path in source.glob("model*"):
            (made / path.name).symlink_to(path)
        shutil.copy(source / self.config, made / "config.json")
        return made

    def reference(self, model):
        if self.kind == "variant":
            z = np.load(FIXTURES / "variants" / (self.name + ".npz"))
            return Reference(z["ids"].tolist(), z["greedy"].tolist(), z["logits"], z["hidden"])
        if self.kind == "type":
            return computed(make_types.make(self.stored, model))
        if self.kind == "ints":
            return computed(numpy_forward.open_model(make_gptq_awq.floats(model), 64), make_gptq_awq.IDS)
        stem = self.name if self.kind == "gguf" else self.name + "/hub"
        ref = json.loads((FIXTURES / (stem + ".ref.json")).read_text())
        ids, hidden = ref["prompt_ids"], FIXTURES / (stem + ".hidden.npy")
        rows = np.load(hidden) if hidden.exists() else numpy_forward.Forward(
            numpy_forward.open_model(model, len(ids))).feed(ids)[0]
        return Reference(ids, ref["greedy_ids"], np.load(FIXTURES / (stem + ".logits_prompt.npy")), rows)


def both(family, name, **more):
    return [Row(family, "hub", name, config=c, **more) for c in ("config.json", "config_hub.json")]


ROWS = [
    *(Row("llama", "gguf", "llama/" + t, stored=t.upper()) for t in ("f32", "f16", "q8_0", "q4_0", "q5_0")),
    Row("llama", "variant", "llama_mha", shows="no grouped heads, tied"),
    Row("llama", "variant", "llama_bias", shows="biases of attention and MLP"),
    Row("llama", "variant", "llama_llama3", shows="llama-3 rope scaling"),
    Row("llama", "variant", "llama_llama3", gguf=(), shows="llama-3 rope scaling"),
    Row("llama", "variant", "llama_linear", shows="linear rope scaling"),
    Row("llama", "variant", "llama_linear", gguf=(), shows="linear rope scaling"),
    Row("llama", "variant", "llama_yarn", shows="YaRN"),
    Row("llama", "variant", "llama_yarn", gguf=(), shows="YaRN"),
    Row("llama", "variant", "llama_f16", stored="F16"),
    Row("llama", "variant", "llama_bf16", stored="BF16"),
    *both("mistral", "mistral", shows="window of 9"),
    Row("mistral", "variant", "mistral_nemo", shows="head size other than hidden / heads"),
    *both("mixtral", "mixtral", shows="4 experts, 2 used"),
    Row("llama", "hub", "mixtral", gguf=(), shows="Mixtral's experts, stacked"),
    Row("llama", "hub", "mixtral", gguf=("one_by_one",), shows="Mixtral's experts, one by one"),
    Row("mixtral", "variant", "mixtral_window", shows="window of 8"),
    Row("qwen2", "gguf", "qwen2/f16", stored="F16"),
    *both("qwen2", "qwen2", shows="five files with an index"),
    Row("qwen2", "hub", "qwen2", packed=("--shards", "3"), shows="three slices"),
    Row("qwen2", "variant", "qwen2_window", shows="window in the later layers"),
    Row("qwen2", "variant", "qwen2_yarn", shows="YaRN, tied"),
    Row("qwen3", "gguf", "qwen3/q4_0", stored="Q4_0"),
    Row("qwen3", "variant", "qwen3"),
    Row("qwen3", "variant", "qwen3", gguf=()),
    Row("qwen3moe", "variant", "qwen3moe", shows="8 experts, 3 used"),
    Row("qwen3moe", "variant", "qwen3moe", gguf=(), shows="8 experts, 3 used"),
    Row("qwen3moe", "variant", "qwen3moe_sparse", shows="every second layer dense, not renormalised"),
    Row("qwen3moe", "variant", "qwen3moe_only", shows="one layer dense"),
    *both("olmoe", "olmoe", shows="16 experts, 4 used"),
    Row("olmoe", "gguf", "olmoe/q4_0", stored="Q4_0", shows="16 experts, 4 used"),
    Row("olmoe", "variant", "olmoe_clip", shows="clip_qkv"),
    Row("olmoe", "variant", "olmoe_clip", gguf=(), shows="clip_qkv"),
    Row("olmoe", "variant", "olmoe_renormalised", shows="renormalised"),
    *both("gemma3", "gemma3", shows="window of 8, two rope bases"),
    Row("gemma3", "hub", "gemma3", gguf=()),
    Row("gemma3", "gguf", "gemma3/q4_0", stored="Q4_0"),
    Row("gemma3", "variant", "gemma3_linear", shows="scaled rope, scale of scores, pattern of 3"),
    *both("phi3", "phi3", shows="window of 10"),
    Row("phi3", "variant", "phi3_partial", shows="partial rotary"),
    Row("phi3", "variant", "phi3_partial", gguf=(), shows="partial rotary"),
    Row("phi3", "variant", "phi3_short", shows="longrope, short factors"),
    Row("phi3", "variant", "phi3_long", shows="longrope, long factors"),
    Row("phi3", "variant", "phi3_short", gguf=(), shows="longrope, short factors"),
    Row("phi3", "variant", "phi3_long", gguf=(), shows="longrope, long factors"),
    *both("gpt-neo", "gptneo", shows="alternating window"),
    Row("gpt-neo", "variant", "gptneo_wide", shows="intermediate_size, another pattern"),
    *(Row("gemma3", "type", "type/" + t, stored=t) for t in make_types.NUMBERS),
    Row("llama", "gguf", "llama/q8_0", stored="Q8_0", packed=("--layout", "r16", "--shards", "2")),
    Row("olmoe", "gguf", "olmoe/q4_0", stored="Q4_0", shows="16 experts, 4 used", packed=("--layout", "r16")),
    Row("gemma3", "type", "type/Q4_1", stored="Q4_1", packed=("--layout", "r16")),
    Row("llama", "ints", "gptq4_act", stored="GPTQ4", shows="act-order, two files, quantize_config.json"),
    Row("llama", "ints", "gptq4_plain", stored="GPTQ4", shows="groups of 128, BF16 scales, no g_idx"),
    Row("mixtral", "ints", "gptq4_mixtral", stored="GPTQ4", shows="act-order in experts"),
    Row("qwen2", "ints", "gptq8_v2", stored="GPTQ8", shows="gptq_v2, one group, quantised head"),
    Row("qwen2", "ints", "gptq8_act", stored="GPTQ8", shows="act-order, groups of 64"),
    Row("llama", "ints", "awq4", stored="AWQ4", shows="groups of 64"),
    Row("llama", "ints", "awq4_old", stored="AWQ4", shows="quant_config.json, tied"),
]
