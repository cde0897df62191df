#!/usr/bin/env python3
"""Measure Brigade beside llama.cpp in one run, taking turns, and print medians.

    run.py --brigade build/release/brigade --llama-bench PATH [-p 512] [-n 64] [--repeat 5] [--json FILE]
           [--svg FILE] MODEL.gguf...

Each round runs both programs on each model, the order turned from round to round; --busy K does so beside K busy
processes of equal priority. llama-bench is asked with flash attention on and off and the better median counts for
it. Speeds are of the programs' own clocks, after a warm-up of each. The probe reads memory once, as many threads as
the programs have; GB/s are bytes of weights read a token times tokens a second. Needs Python alone.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

TIMEOUT = 1800


def ask(command):
    r = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if r.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), (r.stderr.strip() or r.stdout).splitlines()[-1]))
    return r.stdout


def brigade_once(a, model, p, n):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "bench.json")
        ask([a.brigade, "bench", model, "-q", "--modes", "warm", "--shards", a.shards, "-p", str(p), "-n", str(n),
             "--random-tokens", "--repeat", "1", "--json", out] + (["-t", str(a.threads)] if a.threads else []))
        with open(out) as f:
            r = json.load(f)
    return r["rows"][0], r["probe_bytes_s"]


def brigade(a, model):
    """As llama-bench: the prompt alone, then tokens after next to nothing."""
    prompt, _ = brigade_once(a, model, a.p, 2)
    tokens, probe = brigade_once(a, model, 1, a.n)
    return {"prefill": prompt["prefill_tok_s"], "decode": tokens["decode_tok_s"], "bytes": tokens["bytes_per_token"],
            "probe": probe}


def llama(a, model, flash):
    rows = json.loads(ask([a.llama_bench, "-m", model, "-p", str(a.p), "-n", str(a.n), "-r", "1", "-o", "json", "-fa",
                           flash, "-t", str(a.threads or os.cpu_count()), "-ngl", "0"]))
    speed = {"prefill" if row["n_gen"] == 0 else "decode": row["avg_ts"] for row in rows}
    return dict(speed, build="%s (%s)" % (rows[0]["build_commit"], rows[0]["build_number"]))


def contenders(a):
    all_ = {"brigade": lambda m: brigade(a, m)}
    if a.llama_bench:
        all_["llama.cpp, fa off"] = lambda m: llama(a, m, "0")
        all_["llama.cpp, fa on"] = lambda m: llama(a, m, "1")
    return all_


def measure(a):
    runs = {m: {name: [] for name in contenders(a)} for m in a.models}
    for i in range(a.repeat):
        for m in a.models:
            order = list(contenders(a).items())
            for name, run in order[i % len(order):] + order[:i % len(order)]:
                runs[m][name].append(run(m))
                print("round %d of %d, %s, %s: %s" % (i + 1, a.repeat, os.path.basename(m), name, ", ".join(
                    "%s %.2f" % (k, runs[m][name][-1][k]) for k in ("prefill", "decode"))), file=sys.stderr)
    return runs


def median(rows, what):
    return statistics.median(r[what] for r in rows)


def summary(a, runs):
    out = []
    for m, by in runs.items():
        ours = by["brigade"]
        row = {"model": os.path.basename(m), "bytes_per_token": ours[0]["bytes"],
               "probe_gb_s": median(ours, "probe") / 1e9}
        for what in ("prefill", "decode"):
            row[what] = median(ours, what)
            theirs = [median(rows, what) for name, rows in by.items() if name != "brigade"]
            row["llama_" + what] = max(theirs) if theirs else None
        row["gb_s"] = row["decode"] * row["bytes_per_token"] / 1e9
        row["llama_gb_s"] = row["llama_decode"] * row["bytes_per_token"] / 1e9 if row["llama_decode"] else None
        out.append(row)
    return out


def table(rows):
    def times(row, what):
        return "%.2f" % (row[what] / row["llama_" + what]) if row["llama_" + what] else "-"

    def num(v):
        return "-" if v is None else "%.1f" % v
    print("| model | prefill tok/s | llama.cpp | ratio | decode tok/s | llama.cpp | ratio | GB/s | llama.cpp | probe GB/s |"
          " share |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        print("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.0f %% |" % (
            r["model"], num(r["prefill"]), num(r["llama_prefill"]), times(r, "prefill"), num(r["decode"]),
            num(r["llama_decode"]), times(r, "decode"), num(r["gb_s"]), num(r["llama_gb_s"]), num(r["probe_gb_s"]),
            100 * r["gb_s"] / r["probe_gb_s"]))


def chart(rows, path):
    """Bars of GB/s: ours, theirs, and a line for the probe."""
    width, bar, left = 640, 18, 250
    most = max(r["probe_gb_s"] for r in rows) * 1.1
    scale = (width - left - 60) / most
    y, parts = 30, []
    for r in rows:
        parts.append('<text x="8" y="%d">%s</text>' % (y + bar, r["model"]))
        for who, v, colour in (("Brigade", r["gb_s"], "#2b6cb0"), ("llama.cpp", r["llama_gb_s"], "#a0aec0")):
            if v is None:
                continue
            parts.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%.1f %s</text>' %
                         (left, y, v * scale, bar - 3, colour, left + v * scale + 4, y + bar - 5, v, who))
            y += bar
        x = left + r["probe_gb_s"] * scale
        parts.append('<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#c53030" stroke-width="2"/>' %
                     (x, y - 2 * bar, x, y))
        y += 12
    text = ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">'
            '<rect width="100%%" height="100%%" fill="white"/><text x="8" y="18">GB/s of weights read in decode; the red '
            'line is memory read once</text>%s</svg>\n' % (width, y + 10, "".join(parts)))
    with open(path, "w") as f:
        f.write(text)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+", metavar="MODEL.gguf")
    p.add_argument("--brigade", default="build/release/brigade")
    p.add_argument("--llama-bench", help="without it, Brigade alone is measured")
    p.add_argument("--shards", default="1")
    p.add_argument("--threads", type=int, help="of both programs; default: Brigade's own choice, all CPUs for llama.cpp")
    p.add_argument("-p", type=int, default=512)
    p.add_argument("-n", type=int, default=64)
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--busy", type=int, default=0, help="measure beside so many busy processes")
    p.add_argument("--json")
    p.add_argument("--svg")
    a = p.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(a.busy)]
    try:
        runs = measure(a)
    finally:
        for b in busy:
            b.kill()
            b.wait()
    rows = summary(a, runs)
    table(rows)
    builds = {r["build"] for by in runs.values() for name, rs in by.items() if name != "brigade" for r in rs}
    print("\n%d and %d tokens, medians of %d, %d busy processes beside; llama.cpp %s" %
          (a.p, a.n, a.repeat, a.busy, ", ".join(builds) or "not measured"))
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"summary": rows, "runs": runs}, f, indent=1)
    if a.svg:
        chart(rows, a.svg)


if __name__ == "__main__":
    main()
