"""inspect, bench, chat, and an installed copy."""
import fcntl
import json
import os
import pty
import subprocess
import termios
import time

import numpy as np
import pytest

import gguf
import kit
from kit import fixture


def test_inspect(world):
    text = world.good("inspect", fixture()).out
    for word in ("llama", "Q8_0", "blk.4.ffn_down.weight", "tied"):
        assert word in text
    j = json.loads(world.good("inspect", fixture(), "--json").out)
    assert j["schema"] == 1 and j["arch"] == "llama" and len(j["layer_bytes"]) == kit.N_LAYERS
    assert j["weights_bytes"] == sum(t["bytes"] for t in j["tensors"])
    assert len(j["identity"]) == 64
    other = json.loads(world.good("inspect", fixture("q4_0"), "--json").out)
    assert other["identity"] != j["identity"]


def test_identity_does_not_depend_on_the_name(world):
    copy = world.folder / "copy.gguf"
    copy.write_bytes(open(fixture(), "rb").read())
    ids = {json.loads(world.good("inspect", p, "--json").out)["identity"] for p in (fixture(), copy)}
    assert len(ids) == 1


@pytest.mark.release_only("times under the sanitizers mean nothing, and a hundred starts are slow")
def test_bench(world):
    path = world.folder / "bench.json"
    result = world.good("bench", fixture(), "--modes", "warm,cold", "--shards", "1,3", "-p", "8", "-n", "4", "--repeat", "2",
                        "--json", path, timeout=60)
    for word in ("warm", "cold", "hop", "start"):
        assert word in result.out.lower(), word
    j = json.loads(path.read_text())
    text = json.dumps(j)
    assert "tokenize:" in result.out and j["tokenize_mb_s"] > 0
    for word in ("decode_tok_s", "prefill_tok_s", "hop_us_p50", "pss_peak_bytes", "bytes_per_token"):
        assert word in text, word


def test_bench_goes_on_with_made_up_tokens(world):
    """What is recorded is the likeliest after each of them, as `logits` has it for the same ids."""
    path, rows = world.folder / "bench.json", world.folder / "o.npy"
    args = ("bench", fixture(), "--modes", "warm,cold", "--shards", "2", "-p", "4", "-n", "6", "--repeat", "1", "--random-tokens")
    world.good(*args, "--skip", "memory,probe,starts,tokenizer", "--json", path, "-q", timeout=60)
    x, made_up, vocab = 12345, [], json.loads(world.good("inspect", fixture(), "--json").out)["desc"]["vocab"]
    for _ in range(4 + 5):
        x = (x * 1664525 + 1013904223) % 2**32
        made_up.append((x >> 8) % vocab)
    world.good("logits", fixture(), "--ids", " ".join(map(str, made_up)), "--out", rows, "-q")
    want = np.load(rows)[3:].argmax(axis=1).tolist()
    assert [row["ids"] for row in json.loads(path.read_text())["rows"]] == [[want], [want]]
    world.refused(*args, "--lookup", "on", code=2, says=("--random-tokens", "leave out"))


def test_bench_needs_no_tokenizer(world):
    g = gguf.read(open(fixture(), "rb").read())
    for key, _, _ in list(g.pairs):
        if key.startswith("tokenizer."):
            g.drop(key)
    path = world.folder / "mute.gguf"
    path.write_bytes(g.bytes())
    world.good("inspect", path)
    world.good("logits", path, "--ids", "1 2 3", "--out", world.folder / "o.npy", "-q")
    mute = world.good("bench", path, "--modes", "warm", "--shards", "2", "-p", "4", "-n", "2", "--repeat", "1", timeout=60)
    assert "tokenize:" not in mute.out
    world.refused("run", path, "-p", "x", says="no tokenizer")


CHAT = ("chat", fixture(), "--temp", "0", "-n", "6", "--ignore-eos")


def test_chat_from_a_file(world):
    result = world.good(*CHAT, "--shards", "2", input="Hello\n\n/reset\nHello\n/nonsense\n/exit\nnever read\n")
    answers = result.out.split("\n")
    assert len(answers) == 3 and answers[0] == answers[1] != "" and answers[2] == "", result
    assert "no such command" in result.err


def test_chat_remembers(world):
    """The second turn sees the first: its answer is the one to the whole conversation."""
    two = world.good(*CHAT, "-q", input="Hello\nAgain\n").out
    one = world.good(*CHAT, "-q", input="Again\n").out
    assert two.split("\n")[1] != one.split("\n")[0]


def test_chat_that_outgrows_its_context(world):
    result = world.brigade(*CHAT, "-q", "--ctx", "64", input="Hello there\n" * 20)
    assert result.code == 1 and "context" in result.err and len(result.lines()) == 1, result


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, world, *args):
        self.master, slave = pty.openpty()
        self.process = world.start(kit.BRIGADE, *args, stdin=slave, stdout=slave, stderr=slave, env={"TERM": "dumb"},
                                   preexec_fn=self.take_terminal)
        os.close(slave)
        os.set_blocking(self.master, False)
        self.text = ""

    @staticmethod
    def take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def until(self, words, timeout=20):
        deadline = time.monotonic() + timeout * kit.SLOWER
        while words not in self.text:
            assert time.monotonic() < deadline, (words, self.text)
            try:
                self.text += os.read(self.master, 65536).decode("utf-8", "replace")
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:  # the program has closed its side
                assert words in self.text, (words, self.text)
        self.text = self.text.split(words, 1)[1]

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        try:
            return self.process.wait(timeout=15 * kit.SLOWER)
        finally:
            os.close(self.master)


def test_chat_on_a_terminal(world):
    t = Terminal(world, *CHAT)
    t.until("> ")
    t.type("Hello\n")
    t.until("> ")
    t.type("/exit\n")
    assert t.end() == 0


def test_ctrl_c_ends_an_answer_and_then_the_program(world):
    t = Terminal(world, "chat", fixture(), "--temp", "0", "--ignore-eos", "--ctx", "100000", "--shards", "2")
    t.until("> ")
    t.type("Hello\n")
    time.sleep(0.5)
    t.type("\x03")
    t.until("> ")
    t.type("\x03")
    assert t.end() == 130
    assert not world.gone()


@pytest.mark.release_only("the installed programs are the release's")
def test_an_installed_copy(world):
    target = world.folder / "root"
    done = subprocess.run(["make", "--no-print-directory", "install", "DESTDIR=%s" % target, "PREFIX=/opt/brigade"],
                          cwd=kit.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    installed = target / "opt" / "brigade"
    assert sorted(p.name for p in (installed / "bin").iterdir()) == ["brigade", "brigade-shard"]
    assert (installed / "share" / "man" / "man1" / "brigade.1").exists()
    result = world.run("brigade", "run", fixture(), "--raw", "-p", "x", "-n", "4", "-q", "--shards", "2",
                       env={"PATH": "%s:/usr/bin:/bin" % (installed / "bin")})
    assert result.code == 0, result
