#!/usr/bin/env python3
"""Write a GGUF file of random weights with the shape of a real model: for measurements, never for answers.

    make_model.py SHAPE OUT.gguf [--type Q4_0] [--seed 1]

The same arguments give the same bytes. Weights are spread so that activations keep their size from layer to
layer. The tokenizer is a byte-level one with 256 real tokens, so text can be measured too. Needs numpy alone.
"""
import argparse
import os
import struct
import sys

import numpy as np

# layers, hidden, heads, KV heads, head size, ffn, vocabulary, tied, experts, used, expert size
SHAPES = {
    "llama-6b": ("llama", 23, 4096, 32, 8, 128, 14336, 128256, False, 0, 0, 0),
    "llama-1b": ("llama", 16, 2048, 32, 8, 64, 8192, 128256, True, 0, 0, 0),
    "olmoe-7b": ("olmoe", 16, 2048, 16, 16, 128, 1024, 50304, False, 64, 8, 1024),
    "tiny": ("llama", 3, 256, 8, 4, 32, 512, 512, True, 0, 0, 0),
}
HELP = {
    "llama-6b": "6.07 B weights, shaped like Llama 3 with 23 layers",
    "llama-1b": "1.24 B weights, shaped like Llama 3.2 1B",
    "olmoe-7b": "6.92 B weights, shaped like OLMoE: 64 experts, 8 used",
    "tiny": "0.02 B weights, to try the script",
}
U32, F32, BOOL, STR, ARR = 4, 6, 7, 8, 9
ALIGN = 32
CHUNK_BLOCKS = 1 << 20


def f16_bytes(scale, jitter):
    return (scale * jitter).astype(np.float16).view(np.uint8).reshape(-1, 2)


def q4_0(rng, n, std):
    """n blocks: a scale, 16 bytes of two nibbles from 1 to 15; (q - 8) has a mean of 0 and a standard deviation of 4.32.
    With nibbles from 0 on the mean would be -0.5: every matrix then adds the same to all elements of a row, which
    soon outweighs the rest, and a router chooses the same experts for every token."""
    jitter = rng.uniform(0.9, 1.1, n)
    pairs = rng.integers(0, 15 * 15, (n, 16), np.uint8)
    return np.concatenate([f16_bytes(std / 4.32, jitter), (pairs // 15 + 1) << 4 | (pairs % 15 + 1)], 1)


def q4_1(rng, n, std):
    jitter = rng.uniform(0.9, 1.1, n)
    d = f16_bytes(std / 4.61, jitter)
    m = f16_bytes(-7.5 * std / 4.61, jitter)
    return np.concatenate([d, m, rng.integers(0, 256, (n, 16), np.uint8)], 1)


def q8_0(rng, n, std):
    jitter = rng.uniform(0.9, 1.1, n)
    return np.concatenate([f16_bytes(std / 73.3, jitter), rng.integers(0, 255, (n, 32), np.uint8) - 127], 1)


def f16(rng, n, std):
    return (rng.standard_normal(n, np.float32) * std).astype(np.float16).view(np.uint8).reshape(-1, 2)


def f32(rng, n, std):
    return (rng.standard_normal(n, np.float32) * std).view(np.uint8).reshape(-1, 4)


# number in GGUF, elements and bytes of a block, maker
TYPES = {"F32": (0, 1, 4, f32), "F16": (1, 1, 2, f16), "Q4_0": (2, 32, 18, q4_0), "Q4_1": (3, 32, 20, q4_1),
         "Q8_0": (8, 32, 34, q8_0)}


def string(s):
    b = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(b)) + b


def key(name, kind, value):
    out = string(name) + struct.pack("<I", kind)
    if kind == STR:
        return out + string(value)
    if kind == ARR:
        elem, items = value
        body = b"".join(string(i) if elem == STR else struct.pack("<i", i) for i in items)
        return out + struct.pack("<IQ", elem, len(items)) + body
    return out + struct.pack({U32: "<I", F32: "<f", BOOL: "<?"}[kind], value)


def byte_tokens():
    """The 256 tokens of byte-level BPE: printable bytes stand for themselves, the others from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names, extra = [], 0
    for b in range(256):
        if b in plain:
            names.append(chr(b))
        else:
            names.append(chr(256 + extra))
            extra += 1
    return names


def metadata(name, shape):
    arch, layers, hidden, heads, kv, head_dim, ffn, vocab, _, experts, used, _ = shape
    tokens = byte_tokens() + ["<end>", "th"] + [f"<unused {i}>" for i in range(vocab - 258)]
    types = [1] * 256 + [3] * (vocab - 256)
    keys = [
        key("general.architecture", STR, arch), key("general.name", STR, f"{name}, random weights"),
        key(arch + ".block_count", U32, layers), key(arch + ".context_length", U32, 8192),
        key(arch + ".embedding_length", U32, hidden), key(arch + ".feed_forward_length", U32, ffn),
        key(arch + ".attention.head_count", U32, heads), key(arch + ".attention.head_count_kv", U32, kv),
        key(arch + ".attention.layer_norm_rms_epsilon", F32, 1e-5), key(arch + ".rope.freq_base", F32, 500000.0),
        key(arch + ".rope.dimension_count", U32, head_dim), key(arch + ".vocab_size", U32, vocab),
        key("tokenizer.ggml.model", STR, "gpt2"), key("tokenizer.ggml.pre", STR, "llama-bpe"),
        key("tokenizer.ggml.tokens", ARR, (STR, tokens)), key("tokenizer.ggml.token_type", ARR, (5, types)),
        key("tokenizer.ggml.merges", ARR, (STR, ["t h"])), key("tokenizer.ggml.eos_token_id", U32, 256),
        key("tokenizer.ggml.add_bos_token", BOOL, False),
    ]
    if experts:
        keys += [key(arch + ".expert_count", U32, experts), key(arch + ".expert_used_count", U32, used)]
    return keys


def tensors(shape, kind):
    """(name, dims with columns first, type, standard deviation; 0: ones)"""
    _, layers, hidden, heads, kv, head_dim, ffn, vocab, tied, experts, _, expert_ffn = shape
    near = lambda cols: cols ** -0.5
    yield "token_embd.weight", (hidden, vocab), kind, 1.0
    for n in range(layers):
        b = f"blk.{n}."
        yield b + "attn_norm.weight", (hidden,), "F32", 0
        yield b + "attn_q.weight", (hidden, heads * head_dim), kind, near(hidden)
        yield b + "attn_k.weight", (hidden, kv * head_dim), kind, near(hidden)
        yield b + "attn_v.weight", (hidden, kv * head_dim), kind, near(hidden)
        yield b + "attn_output.weight", (heads * head_dim, hidden), kind, near(heads * head_dim)
        if experts:
            yield b + "attn_q_norm.weight", (heads * head_dim,), "F32", 0
            yield b + "attn_k_norm.weight", (kv * head_dim,), "F32", 0
        yield b + "ffn_norm.weight", (hidden,), "F32", 0
        if experts:
            yield b + "ffn_gate_inp.weight", (hidden, experts), "F32", near(hidden)
            yield b + "ffn_gate_exps.weight", (hidden, expert_ffn, experts), kind, near(hidden)
            yield b + "ffn_up_exps.weight", (hidden, expert_ffn, experts), kind, near(hidden)
            yield b + "ffn_down_exps.weight", (expert_ffn, hidden, experts), kind, near(expert_ffn)
        else:
            yield b + "ffn_gate.weight", (hidden, ffn), kind, near(hidden)
            yield b + "ffn_up.weight", (hidden, ffn), kind, near(hidden)
            yield b + "ffn_down.weight", (ffn, hidden), kind, near(ffn)
    yield "output_norm.weight", (hidden,), "F32", 0
    if not tied:
        yield "output.weight", (hidden, vocab), kind, near(hidden)


def size_of(dims, kind):
    _, elems, size, _ = TYPES[kind]
    if dims[0] % elems:
        sys.exit(f"{dims[0]} columns are no multiple of {elems}, the block of {kind}")
    return int(np.prod(dims, dtype=np.int64)) // elems * size


def head(name, shape, table):
    keys = metadata(name, shape)
    out = [b"GGUF", struct.pack("<IQQ", 3, len(table), len(keys)), *keys]
    at = 0
    for tensor, dims, kind, _ in table:
        out.append(string(tensor) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) +
                   struct.pack("<IQ", TYPES[kind][0], at))
        at += -(-size_of(dims, kind) // ALIGN) * ALIGN
    whole = b"".join(out)
    return whole + bytes(-len(whole) % ALIGN)


def write_tensor(f, rng, dims, kind, std):
    _, elems, size, make = TYPES[kind]
    blocks = int(np.prod(dims, dtype=np.int64)) // elems
    if std == 0:
        f.write(np.ones(blocks, np.float32).tobytes())
    for first in range(0, blocks if std else 0, CHUNK_BLOCKS):
        f.write(make(rng, min(CHUNK_BLOCKS, blocks - first), std).tobytes())
    f.write(bytes(-(blocks * size) % ALIGN))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="shapes:\n" + "\n".join(f"  {k:10} {v}" for k, v in HELP.items()))
    p.add_argument("shape", choices=SHAPES)
    p.add_argument("out")
    p.add_argument("--type", default="Q4_0", choices=TYPES)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    table = list(tensors(SHAPES[a.shape], a.type))
    rng = np.random.Generator(np.random.PCG64(a.seed))
    part = a.out + ".part"
    with open(part, "wb") as f:
        f.write(head(a.shape, SHAPES[a.shape], table))
        for i, (_, dims, kind, std) in enumerate(table):
            write_tensor(f, rng, dims, kind, std)
            if sys.stderr.isatty():
                print(f"\r{i + 1} of {len(table)} tensors", end="", file=sys.stderr)
    os.replace(part, a.out)
    print(f"{a.out}: {os.path.getsize(a.out)} bytes, {a.shape}, {a.type}, seed {a.seed}")


if __name__ == "__main__":
    main()
