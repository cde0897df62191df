#!/usr/bin/env python3
"""Brigade beside llama.cpp under a budget of memory: one model, one disk, the same memory cgroup for both.

    ram.py --brigade build/release/brigade --llama-bench PATH [--ram 90%,75%,50%,25%] [--repeat 3] [-p 1] [-n 16]
           [--llama-n 4] [--llama-threads 1,2] [--limit 600] [--json FILE] MODEL.gguf [-- OPTION...]

For each budget and round: the disk and the memory are probed, both programs run one after the other, each in a new memory
cgroup of exactly the budget (no swap), and disk and memory are probed again. Before every run the file is synced,
dropped from the page cache and found under 1 % resident, else the run is void. llama.cpp maps the file and does not
repack weights (its copy would be memory beyond the budget); each of its thread counts is run, and the best median
counts. Bytes read are the kernel's: of the program and its children, and of the whole disk. Our own runs are void when
they read something else for a token than `brigade plan` says. The bound is 1 / max(M / memory speed, (M - P) / disk
speed), with M and P of the plan and the means of the two probes; "at once" is the same with memory and disk as fast
as they are beside each other. What is killed for memory is a row that says "killed";
what is not done after --limit seconds is ended and says so. Words after -- go to `brigade bench`.

Needs a cgroup that this user may make (root, or a delegated one: --cgroup FOLDER) and Python alone.
"""
import argparse
import ctypes
import json
import mmap
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PAGE = mmap.PAGESIZE
PROBE_LIMIT = 120


# ---- the page cache ----

def resident(path):
    """Share of the file that lies in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    size = os.path.getsize(path)
    pages = ctypes.create_string_buffer((size + PAGE - 1) // PAGE)
    fd = os.open(path, os.O_RDONLY)
    try:
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        if at in (None, ctypes.c_void_p(-1).value):
            sys.exit("%s: cannot be mapped: %s" % (path, os.strerror(ctypes.get_errno())))
        try:
            if libc.mincore(at, size, pages) != 0:
                sys.exit("%s: mincore: %s" % (path, os.strerror(ctypes.get_errno())))
        finally:
            libc.munmap(at, size)
    finally:
        os.close(fd)
    return sum(p & 1 for p in pages.raw) / len(pages.raw)


def drop(path):
    """The file out of the page cache; the share that stayed."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
    return resident(path)


# ---- memory cgroups, of the first and the second kind ----

class Group:
    """A new memory cgroup of so many bytes, without swap."""

    def __init__(self, root, name, size):
        self.path = os.path.join(root, name)
        self.v1 = os.path.exists(os.path.join(root, "memory.limit_in_bytes"))
        os.mkdir(self.path)
        try:
            if self.v1:
                self.write("memory.limit_in_bytes", size)
                if os.path.exists(os.path.join(self.path, "memory.memsw.limit_in_bytes")):
                    self.write("memory.memsw.limit_in_bytes", size)
            else:
                self.write("memory.max", size)
                self.write("memory.swap.max", 0)
        except OSError:
            os.rmdir(self.path)
            raise

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w") as f:
            f.write(str(value))

    def number(self, name, key=None):
        try:
            with open(os.path.join(self.path, name)) as f:
                text = f.read()
        except OSError:
            return 0
        if key is None:
            return int(text)
        return next((int(line.split()[1]) for line in text.splitlines() if line.split()[0] == key), 0)

    def join(self):
        """Called in the child, before it becomes the program."""
        self.write("cgroup.procs", os.getpid())

    def figures(self):
        peak = "memory.max_usage_in_bytes" if self.v1 else "memory.peak"
        events = "memory.oom_control" if self.v1 else "memory.events"
        return {"peak_bytes": self.number(peak), "oom_kills": self.number(events, "oom_kill")}

    def pids(self):
        """Of this group and of those that a program made inside it, and the folders, inner ones first."""
        pids, folders = [], []
        for folder, _, _ in os.walk(self.path, topdown=False):
            folders.append(folder)
            try:
                with open(os.path.join(folder, "cgroup.procs")) as f:
                    pids += [int(p) for p in f.read().split()]
            except OSError:
                pass
        return pids, folders

    def close(self):
        """What still runs in it was started from here: it is ended. Bounded in time."""
        deadline = time.monotonic() + 20
        while True:
            pids, folders = self.pids()
            for p in pids:
                try:
                    os.kill(p, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                for folder in folders:
                    os.rmdir(folder)
                return
            except OSError as e:
                if time.monotonic() > deadline:
                    print("ram.py: %s: not removed: %s" % (self.path, e), file=sys.stderr)
                    return
                time.sleep(0.1)


def find_root(given):
    """The folder in which cgroups with a limit of memory can be made."""
    for root in [given] if given else ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"]:
        known = [os.path.join(root, n) for n in ("memory.limit_in_bytes", "cgroup.controllers")]
        if any(os.path.exists(k) for k in known) and os.access(root, os.W_OK):
            return root
    sys.exit("ram.py: no folder of cgroups that this user may write to (--cgroup FOLDER)")


# ---- a run ----

def read_bytes():
    """Fetched from storage by this process and all children that it has waited for."""
    with open("/proc/self/io") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("read_bytes:"))


def disk_bytes(path):
    """Read from the whole disk that holds the file; None where that is not a block device."""
    dev = os.stat(path).st_dev
    with open("/proc/diskstats") as f:
        for line in f:
            v = line.split()
            if (int(v[0]), int(v[1])) == (os.major(dev), os.minor(dev)):
                return int(v[5]) * 512
    return None


def enclosed(a, command, size):
    """Run in a cgroup of its own from an empty page cache: what it said, how it ended, what it read."""
    left = drop(a.model)
    group = Group(a.root, "brigade-bench-%d-%d" % (os.getpid(), time.monotonic_ns()), size)
    before, disk, began, late = read_bytes(), disk_bytes(a.model), time.monotonic(), False
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=group.join)
            try:
                p.wait(a.limit)
            except subprocess.TimeoutExpired:
                late = True
                p.kill()
                p.wait(60)
            figures = group.figures()
        finally:
            group.close()
        out.seek(0)
        err.seek(0)
        text, words = out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace").strip()
    after = disk_bytes(a.model)
    r = {"seconds": time.monotonic() - began, "read_bytes": read_bytes() - before, "resident_before": left,
         "disk_bytes": after - disk if disk is not None else None, **figures}
    if late:
        r["state"] = "not done after %d s" % a.limit
    elif p.returncode == -signal.SIGKILL or figures["oom_kills"] > 0:
        r["state"] = "killed"
    elif p.returncode != 0:
        r["state"] = "failed: %s" % (words.splitlines() or ["exit code %d" % p.returncode])[-1][:200]
    else:
        r["state"] = "good" if left < 0.01 else "void: %.1f %% of the file was in the page cache" % (100 * left)
    return r, text


def ask(command, limit=PROBE_LIMIT):
    p = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    if p.returncode != 0:
        raise RuntimeError((p.stderr.strip().splitlines() or ["%s %s failed" % tuple(command[:2])])[-1])
    return json.loads(p.stdout)


def brigade(a, budget, row):
    command = [a.brigade, "bench", a.model, "-q", "--modes", "warm", "--shards", "1", "-p", str(a.prompt),
               "-n", str(a.n), "--random-tokens", "--repeat", "1", "--skip", "memory,probe,starts,tokenizer",
               "--json", "-", "--ram", str(budget)] + a.more
    r, text = enclosed(a, command, budget)
    if r["state"].startswith(("good", "void")):
        figures = json.loads(text)
        run, ids, passes = (figures["rows"][0][k] for k in ("runs", "ids", "rows_per_frame"))
        run, ids = run[0], ids[0]
        r.update(tok_s=run["decode_tok_s"], start_s=run["start_s"], ids=ids,
                 token_bytes=run["disk_decode_bytes"] / (a.n - 1))
        # It may have made a group of its own, and has planned for itself, which it does best.
        if r["peak_bytes"] < (figures["cgroup_peak_bytes"] or 0) <= budget:
            r["peak_bytes"] = figures["cgroup_peak_bytes"]
        row["plan"] = plan = figures.get("plan") or row["plan"]
        r["plan_s"] = plan.get("token_s")
        wanted = plan["read_bytes"]
        slack = 0.2 * wanted + 0.02 * plan["token_bytes"] + 2**20
        read = r["token_bytes"] * max(passes, 1)  # a pass may give several tokens
        too_little = read < wanted - slack and not plan.get("expert_hit_rate")
        if r["state"] == "good" and (too_little or read > wanted + slack):
            r["state"] = "void: %.1f MiB read in a pass, planned %.1f" % (read / 2**20, wanted / 2**20)
    return r


def llama(a, budget, threads):
    prompt = str(a.prompt if a.prompt > 1 else 0)
    r, text = enclosed(a, [a.llama_bench, "-m", a.model, "-p", prompt, "-n", str(a.llama_n), "-r", "1", "-o", "json",
                           "-ngl", "0", "-t", str(threads)] + a.llama_flags, budget)
    if r["state"].startswith(("good", "void")):
        row = next(row for row in json.loads(text) if row["n_gen"] > 0)
        r.update(tok_s=row["avg_ts"], build="%s (%s)" % (row["build_commit"], row["build_number"]))
    return r


def llama_flags(a):
    """Mapped, and not repacked; the names changed over time."""
    p = subprocess.run([a.llama_bench, "--help"], capture_output=True, text=True, timeout=60, check=False)
    text = p.stdout + p.stderr
    if "--repack" not in text:
        sys.exit("%s cannot be told not to repack: a newer one is needed" % a.llama_bench)
    return (["-lm", "mmap"] if "--load-mode" in text else ["-mmp", "1"]) + ["--repack", "0"]


# ---- rounds ----

def measure_budget(a, word, rows):
    size = os.path.getsize(a.model)
    budget = int(size * float(word[:-1]) / 100) if word.endswith("%") else int(word)
    budget -= budget % PAGE
    row = rows.setdefault(word, {"ram": word, "budget": budget, "brigade": [], "probes": [],
                                 "llama": {str(t): [] for t in a.llama_threads} if a.llama_bench else {}})
    if "plan" not in row:
        try:
            row["plan"] = ask([a.brigade, "plan", a.model, "--ram", str(budget), "--ctx", str(a.n + 1), "--shards", "1",
                               "--json"] + a.more)
        except RuntimeError as e:
            row["plan"] = None
            row["why"] = str(e)
    turns = [("llama", t) for t in row["llama"]] + ([("brigade", None)] if row["plan"] else [])
    turn = len(row["probes"]) // 2 % max(len(turns), 1)
    row["probes"].append(ask([a.brigade, "probe", a.model, "--fresh", "--json"]))
    for who, threads in turns[turn:] + turns[:turn]:
        r = brigade(a, budget, row) if who == "brigade" else llama(a, budget, threads)
        (row["brigade"] if who == "brigade" else row["llama"][threads]).append(r)
        print("%s, %s%s: %s" % (word, who, " -t %s" % threads if threads else "",
                                "%.3f tok/s, %.2f GB read, %.0f s" % (r["tok_s"], r["read_bytes"] / 1e9, r["seconds"])
                                if r["state"] == "good" else r["state"]), file=sys.stderr)
    row["probes"].append(ask([a.brigade, "probe", a.model, "--fresh", "--json"]))


def median(runs, what):
    good = [r[what] for r in runs if r["state"] == "good"]
    return statistics.median(good) if good else None


def at_once(row, weights, read):
    """Tokens a second when memory and disk are read side by side, as fast as both were probed at once, until the shorter
    one is done, and the other goes on alone."""
    def mean(name):
        v = [x[name] for x in row["probes"] if x.get(name)]
        return statistics.mean(v) if v else None
    memory, disk, with_disk, with_memory = (mean(n) for n in ("memory_bytes_s", "disk_bytes_s", "beside_memory_bytes_s",
                                                             "beside_disk_bytes_s"))
    if not (memory and disk and with_disk and with_memory):
        return None
    both = min(weights / with_disk, read / with_memory)
    return 1 / (both + max(weights - with_disk * both, 0) / memory + max(read - with_memory * both, 0) / disk)


def summarise(row):
    p = row["plan"]
    disk = [x["disk_bytes_s"] for x in row["probes"] if x.get("disk_bytes_s")]
    memory = [x["memory_bytes_s"] for x in row["probes"] if x.get("memory_bytes_s")]
    s = {"ram": row["ram"], "budget": row["budget"], "why": row.get("why"), "disk": statistics.mean(disk) if disk else None,
         "memory": statistics.mean(memory) if memory else None, "bound": None, "at_once": None,
         "brigade": median(row["brigade"], "tok_s")}
    if p and s["memory"] and (s["disk"] or not p["read_bytes"]):
        s["bound"] = 1 / max(p["token_bytes"] / s["memory"], p["read_bytes"] / s["disk"] if p["read_bytes"] else 0)
        s["at_once"] = at_once(row, p["token_bytes"], p["read_bytes"])
    tokens = [r["plan_s"] for r in row["brigade"] if r["state"] == "good" and r.get("plan_s")]
    s["predicted"] = 1 / statistics.median(tokens) if tokens else None
    speeds = [(median(runs, "tok_s"), t) for t, runs in row["llama"].items()]
    s["llama"], s["llama_threads"] = max(((v, t) for v, t in speeds if v), default=(None, None))
    s["states"] = sorted({r["state"] for r in row["brigade"]} - {"good"})
    s["llama_states"] = sorted({r["state"] for runs in row["llama"].values() for r in runs} - {"good"})
    s["token_bytes"], s["planned"] = median(row["brigade"], "token_bytes"), p and p["read_bytes"]
    s["peak"] = max([r["peak_bytes"] for r in row["brigade"]], default=None)
    s["llama_read"] = median(row["llama"].get(s["llama_threads"], []), "read_bytes")
    return s


def table(rows):
    def num(v, digits=2, unit=1):
        return "-" if v is None else "%.*f" % (digits, v / unit)

    def ratio(x, y):
        return "%.2f" % (x / y) if x and y else "-"
    print("| budget | Brigade tok/s | predicted | bound | of bound | of bound at once | llama.cpp tok/s | ratio | bound allows | "
          "read MB/token | planned | cgroup peak / budget | llama.cpp read GB | disk GB/s | memory GB/s | what else |\n|" + "---|" * 16)
    for s in rows:
        notes = [s["why"]] if s["why"] else []
        notes += s["states"] + ["llama.cpp: " + t for t in s["llama_states"]]
        print("| %s (%.2f GB) | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |" % (
            s["ram"], s["budget"] / 1e9, num(s["brigade"]), num(s["predicted"]), num(s["bound"]),
            ratio(s["brigade"], s["bound"]), ratio(s["brigade"], s["at_once"]),
            num(s["llama"]) + (" (-t %s)" % s["llama_threads"] if s["llama"] else ""), ratio(s["brigade"], s["llama"]),
            ratio(s["bound"], s["llama"]), num(s["token_bytes"], 1, 1e6), num(s["planned"], 1, 1e6),
            ratio(s["peak"], s["budget"]), num(s["llama_read"], 2, 1e9), num(s["disk"], 2, 1e9), num(s["memory"], 1, 1e9),
            "; ".join(notes) or "-"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", metavar="MODEL.gguf")
    p.add_argument("more", nargs="*", metavar="OPTION", help="after --: for brigade bench and plan, such as --residency stream")
    p.add_argument("--brigade", default="build/release/brigade")
    p.add_argument("--llama-bench", help="without it, Brigade alone is measured")
    p.add_argument("--ram", default="90%,75%,50%,25%", help="budgets: shares of the file, or bytes")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("-p", dest="prompt", type=int, default=1, help="tokens of a prompt before: it fills caches of experts")
    p.add_argument("-n", type=int, default=16, help="tokens of Brigade, at least 2")
    p.add_argument("--llama-n", type=int, default=4, help="tokens of llama.cpp, which may be slow")
    p.add_argument("--llama-threads", default="1,2", type=lambda v: v.split(","))
    p.add_argument("--limit", type=int, default=600, help="seconds for one run")
    p.add_argument("--cgroup", help="the folder to make cgroups in")
    p.add_argument("--json")
    a = p.parse_args()
    if a.n < 2:
        p.error("-n: at least 2")
    a.root = find_root(a.cgroup)
    a.llama_flags = llama_flags(a) if a.llama_bench else []
    rows = {}
    for _ in range(a.repeat):
        for word in a.ram.split(","):
            measure_budget(a, word, rows)
    results = [summarise(r) for r in rows.values()]
    table(results)
    builds = {r["build"] for row in rows.values() for runs in row["llama"].values() for r in runs if "build" in r}
    print("\n%s, %.2f GB; %d and %d tokens, medians of %d; llama.cpp %s %s" % (
        os.path.basename(a.model), os.path.getsize(a.model) / 1e9, a.n, a.llama_n, a.repeat,
        ", ".join(sorted(builds)) or "not measured", " ".join(a.llama_flags)))
    if a.json:
        with open(a.json + ".tmp", "w") as f:
            json.dump({"summary": results, "runs": rows}, f, indent=1)
        os.replace(a.json + ".tmp", a.json)


if __name__ == "__main__":
    main()
