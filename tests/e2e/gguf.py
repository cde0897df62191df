"""GGUF headers read and written: for tests that change one thing in a file and nothing else."""
import struct

SIZES = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value, = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def string(self):
        n = self.number("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, n = self.number("<I"), self.number("<Q")
            return element, [self.value(element) for _ in range(n)]
        return self.number(SIZES[kind])


def string(text):
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def value(kind, v):
    if kind == STRING:
        return string(v)
    if kind == ARRAY:
        return struct.pack("<IQ", v[0], len(v[1])) + b"".join(value(v[0], e) for e in v[1])
    return struct.pack(SIZES[kind], v)


class File:
    """pairs: [(key, kind, value)]; tensors: [{name, dims, type, offset}]; tail: the tensors' bytes."""

    def tensor(self, name):
        return next(t for t in self.tensors if t["name"] == name)

    def remove(self, name):
        self.tensors.remove(self.tensor(name))

    def get(self, key):
        return next(v for k, _, v in self.pairs if k == key)

    def drop(self, key):
        self.pairs = [p for p in self.pairs if p[0] != key]

    def set(self, key, kind, v):
        self.drop(key)
        self.pairs.append((key, kind, v))

    def bytes(self):
        out = b"GGUF" + struct.pack("<IQQ", self.version, len(self.tensors), len(self.pairs))
        for key, kind, v in self.pairs:
            out += string(key) + struct.pack("<I", kind) + value(kind, v)
        for t in self.tensors:
            out += string(t["name"]) + struct.pack("<I", len(t["dims"]))
            out += struct.pack("<%dQ" % len(t["dims"]), *t["dims"]) + struct.pack("<IQ", t["type"], t["offset"])
        return out + b"\0" * (-len(out) % 32) + self.tail


def read(data):
    r, f = Reader(data), File()
    assert data[:4] == b"GGUF"
    r.at = 4
    f.version, n_tensors, n_pairs = r.number("<I"), r.number("<Q"), r.number("<Q")
    f.pairs, f.tensors = [], []
    for _ in range(n_pairs):
        key, kind = r.string(), r.number("<I")
        f.pairs.append((key, kind, r.value(kind)))
    for _ in range(n_tensors):
        t = {"name": r.string()}
        t["dims"] = [r.number("<Q") for _ in range(r.number("<I"))]
        t["type"], t["offset"] = r.number("<I"), r.number("<Q")
        f.tensors.append(t)
    f.data_start = (r.at + 31) // 32 * 32
    f.tail = data[f.data_start:]
    return f
