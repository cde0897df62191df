"""What a shard maps: its slice's ranges joined by page, and never the file."""
import json
import os

import pytest

import kit
from kit import fixture

PAGE = os.sysconf("SC_PAGESIZE")


def wanted_pages(inspected, layers, head):
    """Page numbers of the tensors that a slice needs, from the tensor table."""
    pages = set()
    for t in inspected["tensors"]:
        in_layers = t["layer"] is not None and layers[0] <= t["layer"] < layers[1]
        of_head = head and t["name"] in ("output_norm.weight", "output.weight" if not inspected["desc"]["tied"]
                                         else "token_embd.weight")
        if in_layers or of_head:
            pages.update(range(t["offset"] // PAGE, (t["offset"] + t["bytes"] - 1) // PAGE + 1))
    return pages


def mapped_pages(pid, path):
    """Page numbers of the file that the process has mapped, from its own smaps."""
    pages, n_ranges = set(), 0
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            words = line.split()
            if len(words) >= 6 and "-" in words[0] and words[5] == path:
                begin, end = (int(w, 16) for w in words[0].split("-"))
                first = int(words[2], 16) // PAGE
                pages.update(range(first, first + (end - begin) // PAGE))
                n_ranges += 1
    return pages, n_ranges


def n_runs(pages):
    return sum(1 for p in pages if p - 1 not in pages)


def check(world, model, cuts):
    inspected = json.loads(world.good("inspect", model, "--json").out)
    n = inspected["desc"]["n_layers"]
    for first, last, head in cuts:
        layers = ["--layers", "%d:%d" % (first, last)] if first < last else []
        process, _ = world.shard(model, *layers, *(["--head"] if head else []))
        wanted = wanted_pages(inspected, (first, last), head)
        got, ranges = mapped_pages(process.pid, os.path.realpath(model))
        assert got == wanted, (first, last, head)
        assert ranges == n_runs(wanted)
        if (first, last) != (0, n):
            assert len(got) * PAGE < os.path.getsize(model) // 2


def test_mapped_bytes_are_the_slice(world):
    check(world, fixture("f32"), [(0, 1, False), (2, 3, False), (3, 5, False), (4, 5, True), (5, 5, True), (0, 5, True)])


def test_mapped_bytes_in_the_figures(world):
    options = ("--raw", "-p", "x", "-n", "2", "--ignore-eos", "--shards", "all")
    inspected = json.loads(world.good("inspect", fixture("f32"), "--json").out)
    for p in world.stats(fixture("f32"), *options)["per_shard"]:
        assert p["mapped_bytes"] == PAGE * len(wanted_pages(inspected, p["layers"], p["head"]))


@pytest.mark.real
def test_mapped_bytes_of_the_real_model(world):
    check(world, str(kit.MODEL), [(0, 1, False), (3, 5, False), (30, 30, True)])


@pytest.mark.real
def test_a_cold_line_needs_far_less_memory_than_a_warm_one(world):
    options = (kit.MODEL, "--raw", "-p", "A river", "-n", "3", "--temp", "0", "--ctx", "256", "--shards", "all")
    warm, cold = world.stats(*options), world.stats(*options, "--mode", "cold")
    assert warm["ids"] == cold["ids"]
    assert cold["pss_peak_bytes"] < 0.8 * warm["pss_peak_bytes"]
    print("peak PSS: warm %.1f MB, cold %.1f MB" % (warm["pss_peak_bytes"] / 1e6, cold["pss_peak_bytes"] / 1e6))
