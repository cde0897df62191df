"""What the e2e tests share: where things are, how programs are run with a deadline, and what must not be left.

Every program that a test starts carries the test's own mark in its environment, so that leftovers can be told
from other people's processes.
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANT = os.environ.get("BRIGADE_VARIANT", "release")
FULL = os.environ.get("BRIGADE_DEPTH") == "full"
SANITIZED = VARIANT in ("san", "tsan")
SLOWER = 5 if SANITIZED else 1  # factor for deadlines
BRIGADE = str(ROOT / "build" / VARIANT / "brigade")
SHARD = str(ROOT / "build" / VARIANT / "brigade-shard")
LLAMA = ROOT / "tests" / "fixtures" / "llama"
TYPES = ("f32", "f16", "q8_0", "q4_0", "q5_0")
N_LAYERS = 5  # of the fixtures
MODEL = pathlib.Path(os.environ.get("BRIGADE_MODELS", "models")) / "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = MODEL if MODEL.is_absolute() else ROOT / MODEL
GEMMA = MODEL.parent / "gemma-3-270m-q4_k_m.gguf"
TEXT = ROOT / "tests" / "fixtures" / "text" / "brigade.txt"
MARK = "BRIGADE_TEST_MARK"


def fixture(kind="q8_0"):
    return str(LLAMA / (kind + ".gguf"))


def reference(kind):
    return json.loads((LLAMA / (kind + ".ref.json")).read_text())


class Result:
    def __init__(self, args, code, out, err, seconds):
        self.args, self.code, self.seconds = args, code, seconds
        self.raw, self.out, self.err = out, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def __repr__(self):
        return "%s\nexit code %s after %.2f s\nstdout: %s\nstderr: %s" % (
            " ".join(self.args), self.code, self.seconds, self.out[-2000:], self.err[-2000:])

    def lines(self):
        """Of stderr, without the notes about the context that a run begins with."""
        return [line for line in self.err.split("\n")
                if line and not line.startswith(("brigade: context of ", "brigade: a context of "))]


class World:
    """The programs of one test: a mark, a folder for temporary files, and everything that was started."""

    def __init__(self, folder):
        self.mark = uuid.uuid4().hex
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.started = []

    def env(self, extra=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("BRIGADE_")}
        env.update({MARK: self.mark, "TMPDIR": str(self.temporary), "HOME": str(self.folder), "LC_ALL": "C.UTF-8"})
        if SANITIZED:
            env["ASAN_OPTIONS"] = "detect_leaks=1:exitcode=99"
            env["LSAN_OPTIONS"] = "print_suppressions=0:suppressions=%s" % (ROOT / "tests/lsan.supp")
            env["UBSAN_OPTIONS"] = "print_stacktrace=1:exitcode=99"
        env.update(extra or {})
        return env

    def start(self, *args, env=None, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([str(a) for a in args], cwd=ROOT, env=self.env(env), start_new_session=True,
                                   **more)
        self.started.append(process)
        return process

    def finish(self, process, timeout, input=None):
        """The end of a started program as a Result; one that does not end in time is a failure."""
        began = time.monotonic()
        try:
            out, err = process.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate(timeout=20)
            raise AssertionError("still running after %s s: %r" % (
                timeout, Result([str(a) for a in process.args], None, out or b"", err or b"", timeout)))
        return Result([str(a) for a in process.args], process.returncode, out or b"", err or b"",
                      time.monotonic() - began)

    def run(self, *args, input=None, env=None, timeout=30):
        if isinstance(input, str):
            input = input.encode("utf-8")
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        return self.finish(self.start(*args, env=env, stdin=stdin), timeout * SLOWER, input)

    def brigade(self, *args, **more):
        return self.run(BRIGADE, *args, **more)

    def good(self, *args, **more):
        result = self.brigade(*args, **more)
        assert result.code == 0, result
        return result

    def stats(self, *args, **more):
        """Figures of a `brigade run` that must succeed."""
        path = self.folder / ("stats-%s.json" % uuid.uuid4().hex)
        self.good("run", *args, "--stats", path, "-q", **more)
        return json.loads(path.read_text())

    def refused(self, *args, code=1, says=(), **more):
        """A failure as it must be: this exit code, one line on stderr that says these words, nothing on stdout."""
        return refusal(self.brigade(*args, **more), code, says)

    def shard(self, model, *args, control=None, env=None):
        """A shard started by hand; returns (process, its control URL) once it listens."""
        control = control or "abstract://brigade-test-%s" % uuid.uuid4().hex
        process = self.start(SHARD, model, *args, "--control", control, env=env)
        return process, self.listening(process)

    def listening(self, process):
        """Wait until a shard says where it listens."""
        os.set_blocking(process.stderr.fileno(), False)
        text, deadline = b"", time.monotonic() + 20 * SLOWER
        while time.monotonic() < deadline and process.poll() is None:
            text += process.stderr.read() or b""
            found = re.search(rb"listening at (\S+)\n", text)
            if found:
                return found.group(1).decode()
            time.sleep(0.005)
        raise AssertionError("the shard does not listen: %r" % text)

    def line_by_hand(self, model, cuts, *args, scheme="abstract"):
        """Shards for layers 0:cuts[0], cuts[0]:cuts[1] ... and the rest with the head: (processes, --chain)."""
        edges = [0, *cuts]
        n = n_layers(self, model)
        processes, urls = [], []
        for i, first in enumerate(edges):
            last = edges[i + 1] if i + 1 < len(edges) else n
            head = ["--head"] if i + 1 == len(edges) else []
            layers = ["--layers", "%d:%d" % (first, last)] if first < last else []
            control = "tcp://127.0.0.1:0" if scheme == "tcp" else None
            if scheme == "ipc":
                control = "ipc://%s/shard%d" % (self.folder, i)
            process, url = self.shard(model, *layers, *head, *args, control=control)
            processes.append(process)
            urls.append(url)
        return processes, ",".join(urls)

    def marked(self):
        """Living processes that carry the mark: {pid: state and command}."""
        found = {}
        needle = ("%s=%s" % (MARK, self.mark)).encode()
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            try:
                if needle not in open("/proc/%s/environ" % entry.name, "rb").read().split(b"\0"):
                    continue
                command = open("/proc/%s/cmdline" % entry.name, "rb").read().replace(b"\0", b" ").decode()
                state = open("/proc/%s/stat" % entry.name).read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state not in "ZX":
                found[int(entry.name)] = command
        return found

    def shard_pids(self):
        return sorted(p for p, command in self.marked().items() if command.split(" ")[0].endswith("brigade-shard"))

    def shards_of(self, process, n, timeout=20):
        """Wait until the program has n shard processes; their pids in the order of stages."""
        deadline = time.monotonic() + timeout * SLOWER
        while time.monotonic() < deadline:
            pids = self.shard_pids()
            if len(pids) >= n:
                return pids
            assert process.poll() is None, self.finish(process, 5)
            time.sleep(0.005)
        raise AssertionError("no %d shards in time: %s" % (n, self.marked()))

    def gone(self, timeout=8, but=()):
        """Wait until nothing of the test runs; what still does is returned."""
        deadline = time.monotonic() + timeout * SLOWER
        while True:
            left = {p: c for p, c in self.marked().items() if p not in but}
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.02)

    def end(self):
        """End what the test left on purpose (shards started by hand), by the politest means that works."""
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.started:
            try:
                process.communicate(timeout=5 * SLOWER)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate(timeout=20)


def refusal(result, code=1, says=()):
    assert result.code == code, result
    assert result.out == "", result
    assert len(result.lines()) == 1, result
    for word in says if isinstance(says, (list, tuple)) else [says]:
        assert str(word) in result.err, (word, result)
    return result


def n_layers(world, model):
    return json.loads(world.good("inspect", model, "--json").out)["desc"]["n_layers"]


def wait_for_output(process, n=1, timeout=20):
    """Read from the program's stdout until n bytes have come: it is at work then."""
    os.set_blocking(process.stdout.fileno(), False)
    text, deadline = b"", time.monotonic() + timeout * SLOWER
    while time.monotonic() < deadline:
        text += process.stdout.read() or b""
        if len(text) >= n:
            os.set_blocking(process.stdout.fileno(), True)
            return text
        if process.poll() is not None:
            break
        time.sleep(0.002)
    raise AssertionError("no output: exit code %s, %r" % (process.poll(), process.stderr.read()))


def abstract_names():
    """Abstract socket addresses of Brigade on this machine."""
    with open("/proc/net/unix") as f:
        return {w for line in f for w in line.split()[7:] if w.startswith("@brigade")}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def refusal_while_printing(result, says):
    """As refusal, of a run whose answer had begun."""
    assert result.code == 1 and len(result.lines()) == 1, result
    for word in says:
        assert word in result.err, (word, result)
