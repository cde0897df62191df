"""GGUF models in several files: any part opens the set, and each way in which a set can be wrong is one clear line."""
import json
import shutil

import pytest

import gguf
import kit

U16, I32, STRING = 2, 5, 8
OPTIONS = ("--raw", "-p", "Brigade", "--temp", "0", "-n", "8", "--ignore-eos", "--exact")


def data_of(f, t, tensors):
    later = [u["offset"] for u in tensors if u["offset"] > t["offset"]]
    return f.tail[t["offset"]:min(later) if later else len(f.tail)]


def split(source, folder, n, name="m", change=lambda i, part: None):
    """A fixture as n files, tensors dealt out in turn; change(i, part) may alter a part before it is written."""
    folder.mkdir(exist_ok=True)
    f = gguf.read(open(source, "rb").read())
    paths = []
    for i in range(n):
        part = gguf.File()
        part.version, part.pairs, part.tensors, part.tail = 3, list(f.pairs) if i == 0 else [], [], b""
        for t in f.tensors[i::n]:
            part.tensors.append({**t, "offset": len(part.tail)})
            part.tail += data_of(f, t, f.tensors)
            part.tail += b"\0" * (-len(part.tail) % 32)
        for key, kind, v in (("split.no", U16, i), ("split.count", U16, n), ("split.tensors.count", I32, len(f.tensors))):
            part.set(key, kind, v)
        change(i, part)
        paths.append(folder / ("%s-%05d-of-%05d.gguf" % (name, i + 1, n)))
        paths[-1].write_bytes(part.bytes())
    return paths


def test_any_part_opens_the_set(world):
    want = world.stats(kit.fixture("q8_0"), *OPTIONS)["ids"]
    paths = split(kit.fixture("q8_0"), world.folder / "set", 4)
    seen = set()
    for p in paths:
        o = json.loads(world.good("inspect", p, "--json").out)
        seen.add(o["identity"])
        assert {t["file"].rsplit("/", 1)[1] for t in o["tensors"]} == {q.name for q in paths}
        assert world.stats(p, *OPTIONS, "--shards", "3")["ids"] == want
    assert len(seen) == 1
    assert world.stats(paths[2], *OPTIONS, "--shards", "all", "--mode", "cold")["ids"] == want
    _, chain = world.line_by_hand(paths[1], [2, 4], "--exact", "--kv", "f32")
    assert world.stats(paths[3], *OPTIONS, "--chain", chain)["ids"] == want


def test_one_part_is_a_set_too(world):
    paths = split(kit.fixture("q8_0"), world.folder / "set", 1)
    other = paths[0].with_name("any.gguf")  # nothing else is to be found, so the name is free
    paths[0].rename(other)
    assert world.stats(other, *OPTIONS)["ids"] == world.stats(kit.fixture("q8_0"), *OPTIONS)["ids"]


def test_an_absent_part(world):
    paths = split(kit.fixture("q8_0"), world.folder / "set", 3)
    paths[1].unlink()
    world.refused("inspect", paths[0], says=(paths[0].name, paths[1].name, "No such file"))
    paths[1].mkdir()
    world.refused("inspect", paths[2], says=(paths[1].name, "folder"))


def test_a_part_under_another_name(world):
    paths = split(kit.fixture("q8_0"), world.folder / "set", 3)
    shutil.copy(paths[1], world.folder / "set" / "b.gguf")
    world.refused("inspect", world.folder / "set" / "b.gguf", says=("part 2 of 3", "-00002-of-00003.gguf"))
    shutil.copy(paths[1], paths[2])
    world.refused("inspect", paths[0], says=(paths[2].name, "part 2 of 3", "its name says 3 of 3"))


@pytest.mark.parametrize("key,kind,v,says", (
    ("split.count", U16, 0, "split.count is 0"), ("split.count", U16, 2000, "split.count is 2000"),
    ("split.count", I32, -1, "split.count is an integer"), ("split.count", STRING, "x", "split.count is a string"),
    ("split.no", U16, 3, "split.no is 3"), ("split.no", U16, 1, "part 2 of 3"), ("split.count", U16, 4, "part 3 of 4"),
    ("split.tensors.count", I32, 7, "another model"), ("general.architecture", STRING, "qwen2", "another model"),
    ("brigade.source", STRING, "x", "another model"), ("brigade.sha256", STRING, "xyz", "no hash"),
))
def test_a_part_that_says_something_else(world, key, kind, v, says):
    def change(i, part):
        if i == 2:
            part.set(key, kind, v)
    paths = split(kit.fixture("q8_0"), world.folder / "set", 3, change=change)
    for p in paths[::2]:
        world.refused("inspect", p, says=(says,))


def test_parts_of_another_set(world):
    a = split(kit.fixture("q8_0"), world.folder / "a", 3)
    split(kit.fixture("q8_0"), world.folder / "b", 3, change=lambda i, part: part.tensors.pop())
    shutil.copy(world.folder / "b" / a[2].name, a[2])
    world.refused("inspect", a[0], says=("split.tensors.count",))


def test_a_tensor_in_two_parts(world):
    def change(i, part):
        part.drop("split.tensors.count")
        if i == 1:
            part.tensors[0]["name"] = "token_embd.weight"
    paths = split(kit.fixture("q8_0"), world.folder / "set", 2, change=change)
    world.refused("inspect", paths[0], says=("token_embd.weight", "twice", paths[0].name, paths[1].name))


def test_a_cut_part(world):
    paths = split(kit.fixture("q8_0"), world.folder / "set", 2)
    data = paths[1].read_bytes()
    for n in (0, 3, 30, len(data) // 2):
        paths[1].write_bytes(data[:n])
        world.refused("inspect", paths[0], says=(paths[0].name, paths[1].name))
