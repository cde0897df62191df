"""The gate: each row of parity.py against its reference, and against itself in every split. `make parity`."""
import json

import numpy as np
import pytest

import gguf
import kit
import parity
from parity import ROWS, make_variants, numpy_forward


def listed(world, kind):
    return {line.split()[0] for line in world.good("list", kind).out.splitlines()}


def chosen():
    """All rows; under the sanitizers, which are slow, the first of each family and format."""
    first = {(row.family, row.format): row for row in reversed(ROWS)}
    return [row for row in ROWS if not kit.SANITIZED or row in first.values()]


@pytest.fixture(params=chosen(), ids=lambda row: row.id)
def case(request, world, tmp_path):
    """(row, path of the model, reference)."""
    row = request.param
    made = tmp_path / "made"
    made.mkdir()
    path = row.model(made)
    ref = row.reference(path)
    if row.packed is not None:
        world.good("pack", path, tmp_path / "bundle", "-q", *row.packed)
        path = tmp_path / "bundle"
    return row, path, ref


def outputs(world, model, ids, *args, hidden=False):
    """Logits, and hidden rows when asked."""
    out, rows = world.folder / "logits.npy", world.folder / "hidden.npy"
    wish = ("--hidden", rows) if hidden else ()
    world.good("logits", model, "--ids", ",".join(map(str, ids)), "--out", out, "-q", *wish, *args)
    return (np.load(out), np.load(rows)) if hidden else np.load(out)


def test_row(world, case):
    _, model, ref = case
    n = len(ref.ids)
    logits, hidden = outputs(world, model, ref.ids, "--exact", hidden=True)
    assert hidden.shape == ref.hidden.shape and logits.shape == ref.logits.shape
    worst = np.abs(hidden - ref.hidden).max(axis=(1, 2))  # of each boundary: the first that is wrong is the cause
    assert (worst <= parity.HIDDEN).all(), worst
    assert np.abs(logits - ref.logits).max() <= parity.LOGITS

    more = outputs(world, model, ref.ids + ref.greedy[:-1], "--exact", "--shards", "2")
    assert more[:n].tobytes() == logits.tobytes()
    assert more[n - 1:].argmax(axis=1).tolist() == ref.greedy

    quick = outputs(world, model, ref.ids)
    for shards in ("2", "all"):
        assert outputs(world, model, ref.ids, "--shards", shards).tobytes() == quick.tobytes(), shards


def test_every_family_and_format_has_a_row(world):
    assert listed(world, "families") <= {row.family for row in ROWS}
    assert listed(world, "formats") <= {row.format for row in ROWS}


def test_rows_have_names_of_their_own():
    assert len({row.id for row in ROWS}) == len(ROWS)


# ---- what the rows can't see: that a figure is the file's. The change is foretold by numpy_forward.py ----

CONFIGS = [
    ("llama_mha", {"rms_norm_eps": 0.2}), ("llama_mha", {"rope_theta": 300.0}),
    ("llama_llama3", {"rope_scaling": {"rope_type": "llama3", "factor": 3.0, "low_freq_factor": 0.5,
                                       "high_freq_factor": 2.0, "original_max_position_embeddings": 32}}),
    ("llama_linear", {"rope_scaling": {"type": "linear", "factor": 1.5}}),
    ("llama_yarn", {"rope_scaling": {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 16,
                                     "beta_fast": 4.0, "beta_slow": 0.5, "attention_factor": 1.7}}),
    ("llama_yarn", {"rope_scaling": {"rope_type": "yarn", "factor": 3.0}, "max_position_embeddings": 24}),
    ("llama_yarn", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096},
                    "max_position_embeddings": 16384}),
    ("qwen2_window", {"sliding_window": 3}), ("qwen2_window", {"max_window_layers": 2}),
    ("qwen2_window", {"use_sliding_window": False}), ("qwen3", {"rms_norm_eps": 0.2}),
    ("qwen3moe", {"num_experts_per_tok": 1}), ("qwen3moe", {"norm_topk_prob": False}),
    ("olmoe_clip", {"clip_qkv": 0.3}), ("olmoe_clip", {"clip_qkv": None}), ("olmoe_clip", {"norm_topk_prob": True}),
    ("mistral_nemo", {"sliding_window": 4}), ("mixtral_window", {"sliding_window": None}),
    ("mixtral_window", {"num_experts_per_tok": 3}), ("phi3_partial", {"sliding_window": 2}),
    ("phi3_short", {"max_position_embeddings": 640}), ("phi3_long", {"original_max_position_embeddings": 200}),
    ("gemma3_linear", {"query_pre_attn_scalar": 7}), ("gemma3_linear", {"rope_local_base_freq": 200.0}),
    ("gemma3_linear", {"sliding_window_pattern": 2}), ("gemma3_linear", {"rms_norm_eps": 0.2}),
    ("gptneo_wide", {"layer_norm_epsilon": 0.2}), ("gptneo_wide", {"window_size": 2}),
    ("gptneo_wide", {"attention_types": [[["global"], 3]]}),
]
F32 = 6
KEYS = [
    ("llama/f32", "llama.attention.layer_norm_rms_epsilon", 0.2), ("llama/f32", "llama.rope.freq_base", 300.0),
    ("qwen2/f16", "qwen2.attention.layer_norm_rms_epsilon", 0.2), ("qwen3/q4_0", "qwen3.rope.freq_base", 300.0),
    ("gemma3/q4_0", "gemma3.rope.freq_base_swa", 200.0), ("gemma3/q4_0", "gemma3.rope.freq_base", 200.0),
    ("olmoe/q4_0", "olmoe.attention.layer_norm_rms_epsilon", 0.2),
]


def foretold(world, model, before, ids):
    """The engine's logits of a changed model are numpy's, and far from those before."""
    want = numpy_forward.Forward(numpy_forward.open_model(model, len(ids))).feed(ids)[1]
    assert np.abs(want - before).max() > 50 * parity.LOGITS
    assert np.abs(outputs(world, model, ids, "--exact") - want).max() <= parity.LOGITS


FORETOLD = pytest.mark.release_only("they run the code that rows run")


@FORETOLD
@pytest.mark.parametrize("name,changes", CONFIGS, ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_figures_of_a_config_are_read(world, name, changes):
    folder = make_variants.make(world.folder, name)
    before = parity.Row("", "variant", name).reference(folder)
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None or k not in changes}))
    foretold(world, folder, before.logits, before.ids)


@FORETOLD
@pytest.mark.parametrize("name,key,value", KEYS)
def test_figures_of_a_gguf_file_are_read(world, name, key, value):
    row = parity.Row("", "gguf", name)
    before = row.reference(row.model(None))
    f = gguf.read(row.model(None).read_bytes())
    f.get(key)  # it is there
    f.set(key, F32, value)
    changed = world.folder / "changed.gguf"
    changed.write_bytes(f.bytes())
    foretold(world, changed, before.logits, before.ids)
