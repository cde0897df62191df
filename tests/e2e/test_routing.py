"""--trace-routing: which experts each row chose, the same however the model is run, and those that it should be."""
import json
import sys

import numpy as np
import pytest

import kit
from kit import LLAMA

FIXTURES = LLAMA.parent
sys.path.insert(0, str(FIXTURES))
import make_variants  # noqa: E402
import numpy_forward  # noqa: E402

OLMOE = FIXTURES / "olmoe" / "q4_0.gguf"  # 3 layers, 4 of 16 experts
MIXTRAL = FIXTURES / "mixtral" / "hub"
IDS = [i % 97 for i in json.loads((FIXTURES / "olmoe" / "q4_0.ref.json").read_text())["prompt_ids"]]  # all have them


class Recorder(numpy_forward.Forward):
    """The independent forward pass, and the sets of experts that it takes: [layer][row]."""

    def mixture(self, x, at):
        name = at + ("block_sparse_moe.gate" if self.m.has(at + "block_sparse_moe.gate.weight") else "mlp.gate")
        order = np.argsort(-self.linear(x, name), axis=-1, kind="stable")[:, :self.m.used]
        self.__dict__.setdefault("chosen", []).append(np.sort(order, axis=-1).tolist())
        return super().mixture(x, at)


def trace(world, verb, model, *args):
    """(what the first line says, the rows)"""
    path = world.folder / "routes.jsonl"
    world.good(verb, model, "--trace-routing", path, "-q", *args)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    return lines[0], lines[1:]


def logits(world, model, *args):
    return trace(world, "logits", model, "--ids", ",".join(map(str, IDS)), "--out", world.folder / "x.npy", *args)


@pytest.mark.parametrize("model", (OLMOE, MIXTRAL, "qwen3moe_sparse"))
def test_they_are_those_that_the_router_prefers(world, model):
    layers = None
    if model == "qwen3moe_sparse":  # every second layer has none
        model, layers = make_variants.make(world.folder, model), [1, 3]
    forward = Recorder(numpy_forward.open_model(model, 64))
    forward.feed(IDS)
    head, rows = logits(world, model, "--exact")
    assert head == {"schema": 1, "model": str(model), "layers": layers or list(range(len(forward.chosen))),
                    "experts": forward.m.experts, "used": forward.m.used}
    assert [(r["slot"], r["position"]) for r in rows] == [(0, i) for i in range(len(IDS))]
    assert [r["experts"] for r in rows] == [list(layers) for layers in zip(*forward.chosen)]


def test_the_same_however_it_is_run(world):
    def rows(*args, env=None):
        path = world.folder / "routes.jsonl"
        world.good("logits", OLMOE, "--ids", ",".join(map(str, IDS)), "--out", world.folder / "x.npy", "-q",
                   "--trace-routing", path, *args, env=env)
        return [(r["position"], r["experts"]) for r in map(json.loads, path.read_text().splitlines()[1:])]
    want = rows()
    assert len(want) == len(IDS)
    for args in (("--shards", "2"), ("--shards", "all", "--mode", "cold"), ("--link", "nng", "--shards", "all")):
        assert rows(*args) == want, args
    assert rows(env={"BRIGADE_TEST_BATCH": "3"}) == want
    _, chain = world.line_by_hand(OLMOE, [1, 3], "--ctx", "64")
    assert rows("--chain", chain) == want


def test_bench_writes_its_first_run(world):
    args = ("--modes", "warm", "--shards", "1,2", "-p", "5", "-n", "3", "--repeat", "2")
    head, rows = trace(world, "bench", OLMOE, *args)
    assert head["layers"] == [0, 1, 2]
    assert [r["position"] for r in rows] == list(range(5 + 3 - 1))  # the last token is drawn and not sent
    assert all(len(set(layer)) == 4 and sorted(layer) == layer for r in rows for layer in r["experts"])
    _, rows = trace(world, "bench", OLMOE, *args, "--streams", "3")
    assert {r["slot"] for r in rows} == {0, 1, 2} and len(rows) == 3 * 7


def test_what_is_refused(world):
    out = ("--ids", "1", "--out", world.folder / "x.npy", "-q")
    result = world.brigade("logits", kit.fixture(), *out, "--trace-routing", world.folder / "r")
    kit.refusal(result, 2, "--trace-routing: %s has no experts" % kit.fixture())
    result = world.brigade("logits", OLMOE, *out, "--trace-routing", world.folder / "none" / "r")
    kit.refusal(result, 1, str(world.folder / "none" / "r"))
    assert not (world.folder / "x.npy").exists() and not (world.folder / "r").exists()


def test_replay(world):
    """The replay of a trace: no rule is better than the one that knows the future, and with room for all they are equal."""
    path = world.folder / "routes.jsonl"
    world.good("logits", OLMOE, "--ids", ",".join(map(str, IDS)), "--out", world.folder / "x.npy", "-q",
               "--trace-routing", path, env={"BRIGADE_TEST_BATCH": "1"})
    tool = kit.ROOT / "tests" / "bench" / "replay_routing.py"
    result = world.run(sys.executable, tool, path, "--warm-up", "4", "--shares", "25,50,100", timeout=60)
    assert result.code == 0, result
    rows = [line.split("|")[1:-1] for line in result.out.splitlines() if line.startswith("|")]
    names = [cell.strip() for cell in rows[0][1:]]
    assert names[-1] == "belady" and len(rows) == 5
    for row in rows[2:]:
        rates = dict(zip(names, (float(cell.rstrip(" %")) for cell in row[1:])))
        del rates["pinned"]  # which is counted over another part
        assert rates["belady"] == max(rates.values()), rates
        assert row[0].strip() != "100 %" or len(set(rates.values())) == 1, rates  # only what is new is missed
    assert rows[2][1:] != rows[3][1:]
