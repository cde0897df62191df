"""safetensors files and hub folders written by numpy: for tests that change one thing and nothing else."""
import json
import struct

import numpy as np

import gguf

DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def encode(array, dtype):
    """Bytes of a float array as F32, F16 or BF16 (rounded to nearest even)."""
    if dtype != "BF16":
        return np.ascontiguousarray(array, DTYPES[dtype]).tobytes()
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()


def decode(data, dtype, shape):
    array = np.frombuffer(data, DTYPES[dtype]).reshape(shape)
    if dtype == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


class File:
    """header: {name: {"dtype", "shape", "data_offsets"}}, text replaces it when set; data: the tensors' bytes."""

    def __init__(self, tensors=(), dtype="F32"):
        self.header, self.data, self.text, self.length = {"__metadata__": {"format": "pt"}}, b"", None, None
        for name, array in dict(tensors).items():
            data = encode(array, dtype)
            self.header[name] = {"dtype": dtype, "shape": list(array.shape),
                                 "data_offsets": [len(self.data), len(self.data) + len(data)]}
            self.data += data

    def bytes(self):
        text = self.text if self.text is not None else json.dumps(self.header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text) if self.length is None else self.length) + text + self.data


def read(data):
    f = File()
    n, = struct.unpack_from("<Q", data)
    f.header, f.data = json.loads(data[8:8 + n]), data[8 + n:]
    return f


def dequantised(g, t):
    """A tensor of a GGUF file as floats: F32, F16, Q8_0 and Q4_0."""
    shape, n = t["dims"][::-1], int(np.prod(t["dims"]))
    if t["type"] == 0:
        return np.frombuffer(g.tail, np.float32, n, t["offset"]).reshape(shape)
    if t["type"] == 1:
        return np.frombuffer(g.tail, np.float16, n, t["offset"]).astype(np.float32).reshape(shape)
    if t["type"] == 8:
        blocks = np.frombuffer(g.tail, np.uint8, n // 32 * 34, t["offset"]).reshape(-1, 34)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        return (blocks[:, 2:].view(np.int8).astype(np.float32) * scale).reshape(shape)
    assert t["type"] == 2
    blocks = np.frombuffer(g.tail, np.uint8, n // 32 * 18, t["offset"]).reshape(-1, 18)
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    q = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype(np.float32) - 8
    return (q * scale).reshape(shape)


ROWS = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
        "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
         "output.weight": "lm_head.weight"}


def own_name(name):
    if name in WHOLE:
        return WHOLE[name]
    _, layer, row, kind = name.split(".")
    return "model.layers.%s.%s.%s" % (layer, ROWS[row], kind)


def halves(rows, n_heads):
    """Rows of queries or keys from GGUF's order for llama (pairs) to the hub's (halves)."""
    d = rows.shape[0] // n_heads
    return rows.reshape(n_heads, d // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def from_gguf(path):
    """({name: floats}, config) of a llama, qwen2 or qwen3 file, as the hub has them."""
    g = gguf.read(open(path, "rb").read())
    arch = g.get("general.architecture")
    get = lambda key: g.get("%s.%s" % (arch, key))
    n_heads, n_kv = get("attention.head_count"), get("attention.head_count_kv")
    tensors = {}
    for t in g.tensors:
        array = dequantised(g, t)
        if arch == "llama" and ".attn_q." in t["name"]:
            array = halves(array, n_heads)
        if arch == "llama" and ".attn_k." in t["name"]:
            array = halves(array, n_kv)
        tensors[own_name(t["name"])] = array
    tied = "lm_head.weight" not in tensors
    width = tensors["model.layers.0.self_attn.q_proj.weight"].shape[0] // n_heads
    config = {"model_type": arch, "architectures": ["SomethingForCausalLM"], "hidden_act": "silu",
              "hidden_size": get("embedding_length"), "num_hidden_layers": get("block_count"),
              "intermediate_size": get("feed_forward_length"), "num_attention_heads": n_heads,
              "num_key_value_heads": n_kv, "head_dim": width, "max_position_embeddings": get("context_length"),
              "rms_norm_eps": round(get("attention.layer_norm_rms_epsilon"), 9), "rope_theta": get("rope.freq_base"),
              "rope_scaling": None, "tie_word_embeddings": tied, "torch_dtype": "float32",
              "vocab_size": tensors["model.embed_tokens.weight"].shape[0]}
    return tensors, config


def write(folder, tensors, config, files=1, dtype="F32"):
    """A folder; with several files the tensors are dealt out in turn, and there is an index."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if files == 1:
        (folder / "model.safetensors").write_bytes(File(tensors, dtype).bytes())
        return folder
    names = sorted(tensors)
    weight_map = {}
    for i in range(files):
        part = "model-%05d-of-%05d.safetensors" % (i + 1, files)
        (folder / part).write_bytes(File({n: tensors[n] for n in names[i::files]}, dtype).bytes())
        weight_map.update({n: part for n in names[i::files]})
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder
