#!/usr/bin/python3
"""Replay which experts were chosen (`brigade run --trace-routing`) through caches: what hit rate has which rule?

    replay_routing.py TRACE.jsonl...                   a table for each trace
    replay_routing.py --made-up 1.0,0.3 --experts 64   a trace drawn here, to see how the rules differ

A cache holds experts of all layers; its size is a share of all experts. In each layer of each frame all experts that
its rows use must be there together; those that are not are read, and others make room. The first --warm-up frames fill
the cache and are not counted.

rules:
  lru          the one used longest ago makes room
  lfu          the one used least often does: counts halve every --half-life turns of their layer; of equals, the one
               whose layer is farthest ahead in the cycle
  worth        the one worth least does: uses count as with lfu, and --recent more, half of which is gone at each turn
               of their layer
  layer-lru    each layer has its share of the cache; lru among its own
  layer-lfu    the same with lfu
  least-stale  those not used in this pass make room before those that were; of equals, the one whose layer is farthest
               ahead in the cycle, then lru
  pinned       the experts used most often in the first half of the trace stay for good, in each layer alike; counted
               over the second half
  random       any
  belady       the one that is used again last: no rule can be better, and none can know it

--speed gives bytes of one expert, dense bytes a token, and bytes a second of disk and memory: then tokens a second
are printed too, reading and computing one after the other.

--made-up S,R[,DRIFT]: each layer prefers experts by a Zipf law of exponent S in an order of its own; a token keeps each
expert of the token before with probability R and draws the others; the preferences change every DRIFT tokens.
"""
import argparse
import json
import sys

import numpy as np

SHARES = (12.5, 25, 37.5, 50, 75)


class Trace:
    """steps: [(frame, layer's number among those with experts, [experts as numbers over all layers])]"""

    def __init__(self, name, n_layers, n_experts, frames):
        self.name, self.n_layers, self.n_experts, self.n_frames = name, n_layers, n_experts, len(frames)
        self.used = sum(len(rows[0][0]) for rows in frames[:1])
        self.steps = [(f, layer, sorted({layer * n_experts + e for row in rows for e in row[layer]}))
                      for f, rows in enumerate(frames) for layer in range(n_layers)]

    def overlap(self):
        """Of the experts of a frame, how many the frame before used too."""
        before, same, n = {}, 0, 0
        for frame, layer, need in self.steps:
            if frame > 0:
                same, n = same + len(before[layer] & set(need)), n + len(need)
            before[layer] = set(need)
        return same / max(n, 1)


def read(path):
    with open(path) as f:
        head = json.loads(f.readline())
        frames, last = [], None
        for row in map(json.loads, f):
            if row["frame"] != last:
                frames.append([])
            frames[-1].append(row["experts"])
            last = row["frame"]
    if not frames:
        sys.exit("%s: no rows" % path)
    return Trace(path, len(head["layers"]), head["experts"], frames)


def make_up(words, n_layers, n_experts, used, n_frames, seed):
    exponent, repeat, *drift = map(float, words.split(","))
    drift = int(drift[0]) if drift else n_frames + 1
    rng = np.random.default_rng(seed)
    popularity = np.arange(1, n_experts + 1) ** -exponent
    popularity /= popularity.sum()
    frames, before = [], [[] for _ in range(n_layers)]
    for t in range(n_frames):
        if t % drift == 0:
            order = [rng.permutation(n_experts) for _ in range(n_layers)]
        row = []
        for layer in range(n_layers):
            kept = [e for e in before[layer] if rng.random() < repeat]
            while len(kept) < used:
                e = int(order[layer][rng.choice(n_experts, p=popularity)])
                if e not in kept:
                    kept.append(e)
            before[layer] = kept
            row.append(kept)
        frames.append([row])
    name = "made up: Zipf %g, kept %g" % (exponent, repeat)
    name += ", changing every %d" % drift if drift <= n_frames else ""
    return Trace(name, n_layers, n_experts, frames)


class Rule:
    """Which resident makes room: the one with the smallest key. Arrays are over (layer, expert)."""

    def __init__(self, trace, size, args):
        self.trace, self.args = trace, args
        n = trace.n_layers * trace.n_experts
        self.layer_of = np.repeat(np.arange(trace.n_layers), trace.n_experts)
        self.here = np.zeros(n, bool)
        self.last = np.full(n, -1.0)  # clock of the last use
        self.size, self.clock = size, 0

    def victims_of(self, layer):
        return self.here

    def room(self, layer):
        return self.size - int(self.here.sum())

    def used(self, frame, need):
        self.clock += 1
        self.last[need] = self.clock

    def key(self, frame, layer):
        return self.last

    def tie(self, layer):
        """Of those with one key, the one whose layer is farthest ahead in the cycle: this one, then that before it."""
        return (layer - self.layer_of - 1) % self.trace.n_layers - (self.layer_of == layer) * self.trace.n_layers

    def step(self, frame, layer, need):
        """Misses."""
        need = np.asarray(need)
        missing = need[~self.here[need]]
        self.used(frame, need)
        free = self.room(layer)
        if len(missing) > free:
            may = self.victims_of(layer).copy()
            may[need] = False
            candidates = np.flatnonzero(may)
            n = min(len(missing) - free, len(candidates))
            order = np.lexsort((self.last[candidates], self.tie(layer)[candidates], self.key(frame, layer)[candidates]))
            self.here[candidates[order[:n]]] = False
        self.here[need] = True
        self.trim(need, layer)
        return len(missing)

    def trim(self, need, layer):
        """A frame of many rows needs more than there is room for: it goes through in parts, the last one stays."""
        over = -self.room(layer)
        if over > 0:
            self.here[need[:over]] = False


class Lfu(Rule):
    def __init__(self, trace, size, args):
        super().__init__(trace, size, args)
        self.count = np.zeros(len(self.here))
        self.decay = 0.5 ** (1 / args.half_life)

    def used(self, frame, need):
        super().used(frame, need)
        self.count[need] += 1

    def step(self, frame, layer, need):
        first = layer * self.trace.n_experts
        self.count[first:first + self.trace.n_experts] *= self.decay
        return super().step(frame, layer, need)

    def key(self, frame, layer):
        return self.count


class Worth(Lfu):
    def __init__(self, trace, size, args):
        super().__init__(trace, size, args)
        self.recent = np.zeros(len(self.here))

    def used(self, frame, need):
        super().used(frame, need)
        self.recent[need] += self.args.recent

    def step(self, frame, layer, need):
        first = layer * self.trace.n_experts
        self.recent[first:first + self.trace.n_experts] *= 0.5
        return super().step(frame, layer, need)

    def key(self, frame, layer):
        return self.count + self.recent


def of_layer(base):
    class OfLayer(base):
        def victims_of(self, layer):
            return self.here & (self.layer_of == layer)

        def room(self, layer):
            share = self.size // self.trace.n_layers
            return share - int((self.here & (self.layer_of == layer)).sum())
    return OfLayer


class LeastStale(Rule):
    def __init__(self, trace, size, args):
        super().__init__(trace, size, args)
        self.frame_of = np.full(len(self.here), -1)

    def used(self, frame, need):
        super().used(frame, need)
        self.frame_of[need] = frame

    def key(self, frame, layer):
        return (self.frame_of == frame).astype(float)  # then by the tie


class Random(Rule):
    def __init__(self, trace, size, args):
        super().__init__(trace, size, args)
        self.rng = np.random.default_rng(args.seed)

    def key(self, frame, layer):
        return self.rng.random(len(self.here))


class Belady(Rule):
    def __init__(self, trace, size, args):
        super().__init__(trace, size, args)
        uses = [[] for _ in self.here]
        for at, (_, _, need) in enumerate(trace.steps):
            for e in need:
                uses[e].append(at)
        self.uses, self.next = uses, np.array([u[0] if u else np.inf for u in uses], float)
        self.at, self.passed = 0, np.zeros(len(self.here), int)

    def used(self, frame, need):
        super().used(frame, need)
        for e in need:
            self.passed[e] += 1
            self.next[e] = self.uses[e][self.passed[e]] if self.passed[e] < len(self.uses[e]) else np.inf

    def key(self, frame, layer):
        return -self.next


class Pinned(Rule):
    """Pinned ones are there from the start and never go; others pass through and are read each time."""

    def __init__(self, trace, size, args):
        super().__init__(trace, size, args)
        count = np.zeros(len(self.here))
        for frame, _, need in trace.steps:
            if frame < trace.n_frames // 2:
                count[need] += 1
        share = size // trace.n_layers
        for layer in range(trace.n_layers):
            at = layer * trace.n_experts
            self.here[at + np.argsort(-count[at:at + trace.n_experts], kind="stable")[:share]] = True

    def step(self, frame, layer, need):
        return int((~self.here[np.asarray(need)]).sum())


RULES = {"lru": Rule, "lfu": Lfu, "worth": Worth, "layer-lru": of_layer(Rule), "layer-lfu": of_layer(Lfu),
         "least-stale": LeastStale, "pinned": Pinned, "random": Random, "belady": Belady}


def replay(trace, name, share, args):
    """(uses, misses) of the frames that count."""
    size = round(trace.n_layers * trace.n_experts * share / 100)
    rule = RULES[name](trace, size, args)
    begin = max(args.warm_up, trace.n_frames // 2 if name == "pinned" else 0)
    uses = misses = 0
    for frame, layer, need in trace.steps:
        missed = rule.step(frame, layer, need)
        if frame >= begin:
            uses, misses = uses + len(need), misses + missed
    return uses, misses


def speed(trace, uses, misses, frames, args):
    expert, dense, disk, memory = args.speed
    return 1 / (dense / memory + uses / frames * expert / memory + misses / frames * expert / disk)


def table(trace, args):
    print("%s: %d frames, %d layers of %d experts, %d used; of a frame's experts %.0f %% were used by the one before"
          % (trace.name, trace.n_frames, trace.n_layers, trace.n_experts, trace.used, 100 * trace.overlap()))
    print("\n| cache |" + "".join(" %s |" % name for name in args.rules) + "\n|---|" + "---|" * len(args.rules))
    for share in args.shares:
        cells = []
        for name in args.rules:
            uses, misses = replay(trace, name, share, args)
            cell = "%.1f %%" % (100 * (1 - misses / max(uses, 1)))
            if args.speed:
                begin = max(args.warm_up, trace.n_frames // 2 if name == "pinned" else 0)
                cell += ", %.2f" % speed(trace, uses, misses, trace.n_frames - begin, args)
            cells.append(cell)
        print("| %g %% |" % share + "".join(" %s |" % c for c in cells), flush=True)
    print()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda s: [float(x) for x in s.split(",")]
    p.add_argument("traces", nargs="*")
    p.add_argument("--rules", type=lambda s: s.split(","), default=list(RULES), help="comma-separated (all)")
    p.add_argument("--shares", type=numbers, default=SHARES, help="%% of all experts (12.5,25,37.5,50,75)")
    p.add_argument("--warm-up", type=int, default=50, metavar="FRAMES", help="not counted (50)")
    p.add_argument("--half-life", type=float, default=32, metavar="TURNS", help="of lfu's counts (32)")
    p.add_argument("--recent", type=float, default=8, help="what a recent use is worth more (8)")
    p.add_argument("--speed", type=numbers, metavar="EXPERT,DENSE,DISK,MEMORY", help="bytes and bytes a second")
    p.add_argument("--made-up", action="append", default=[], metavar="S,R[,DRIFT]")
    p.add_argument("--layers", type=int, default=16)
    p.add_argument("--experts", type=int, default=64)
    p.add_argument("--used", type=int, default=8)
    p.add_argument("--frames", type=int, default=400)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    unknown = [r for r in a.rules if r not in RULES]
    if unknown or (not a.traces and not a.made_up) or (a.speed and len(a.speed) != 4):
        p.error("unknown rule %s" % unknown[0] if unknown else "no trace, and none made up" if not a.speed
                else "--speed takes four numbers")
    for trace in [read(t) for t in a.traces] + [make_up(w, a.layers, a.experts, a.used, a.frames, a.seed)
                                                for w in a.made_up]:
        if trace.n_frames <= a.warm_up:
            sys.exit("%s: %d frames, %d of them to warm up" % (trace.name, trace.n_frames, a.warm_up))
        table(trace, a)


if __name__ == "__main__":
    main()
