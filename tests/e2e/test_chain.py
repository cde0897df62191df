"""Shards started by hand and a driver that attaches to them; peers that are absent, busy, other than expected or
malicious."""
import json
import os
import signal
import socket
import struct
import threading
import time

import pytest

import kit
import parity
import sp
from kit import fixture

pytestmark = pytest.mark.alone

OPTIONS = ("--raw", "-p", "Many hands", "--temp", "0", "-n", "12", "--ignore-eos")
LONG = ("--raw", "-p", "x", "--temp", "0", "--ignore-eos", "--ctx", "100000")
PROTOCOL = 3  # docs/wire.md
HELLO, ATTACH, STATUS, DRAIN, STOP = range(5)


def alive(processes):
    return all(p.poll() is None for p in processes)


@pytest.mark.parametrize("scheme", ("abstract", "ipc", "tcp"))
def test_a_chain_by_hand_gives_the_same_ids(world, scheme):
    want = world.stats(fixture(), *OPTIONS)["ids"]
    processes, chain = world.line_by_hand(fixture(), [2, 5], scheme=scheme)
    for _ in range(3):  # it serves one driver after another
        s = world.stats(fixture(), *OPTIONS, "--chain", chain)
        assert s["ids"] == want
        assert [p["pid"] for p in s["per_shard"]] == [p.pid for p in processes]
        assert [p["layers"] for p in s["per_shard"]] == [[0, 2], [2, 5], [5, 5]]
        assert s["hops_per_token"] == 4
    assert alive(processes)
    for p in processes:
        p.send_signal(signal.SIGTERM)
        assert world.finish(p, 10 * kit.SLOWER).code == 0
    if scheme == "ipc":
        assert not [n for n in os.listdir(world.folder) if n.startswith("shard")]


def test_one_shard_and_every_cut(world):
    want = world.stats(fixture(), *OPTIONS)["ids"]
    for cuts in ([], [1, 2, 3, 4, 5]):
        _, chain = world.line_by_hand(fixture(), cuts)
        assert world.stats(fixture(), *OPTIONS, "--chain", chain)["ids"] == want


def test_a_driver_that_vanishes_frees_its_shards(world):
    processes, chain = world.line_by_hand(fixture(), [3])
    driver = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--ctx", "256", "--chain", chain, "-n", "200", "-q")
    kit.wait_for_output(driver)
    driver.kill()
    driver.communicate(timeout=10)
    deadline, result = time.monotonic() + 10 * kit.SLOWER, None
    while time.monotonic() < deadline:
        result = world.brigade("run", fixture(), *OPTIONS, "--chain", chain, "-q")
        if result.code == 0:
            break
        assert "serves another driver" in result.err, result
        time.sleep(0.1)
    assert result.code == 0 and alive(processes), result


def test_a_second_driver_is_told_busy_at_once(world):
    processes, chain = world.line_by_hand(fixture(), [3], "--ctx", "100000")
    first = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--chain", chain)
    kit.wait_for_output(first)
    began = time.monotonic()
    world.refused("run", fixture(), *OPTIONS, "--chain", chain, "-q", says=["serves another driver", "abstract://"])
    assert time.monotonic() - began < 2 * kit.SLOWER
    assert first.poll() is None and alive(processes)
    first.send_signal(signal.SIGINT)
    assert world.finish(first, 10 * kit.SLOWER).code == 130
    assert world.good("run", fixture(), *OPTIONS, "--chain", chain, "-q").out


def test_what_the_shards_hold_must_fit(world):
    processes, chain = world.line_by_hand(fixture(), [2])
    first, second = chain.split(",")
    run = ("run", fixture(), *OPTIONS, "-q", "--chain")
    world.refused("run", fixture("q4_0"), *OPTIONS, "-q", "--chain", chain, says=[first, "another model"])
    world.refused(*run, "%s,%s" % (second, first), says=["layers"])
    world.refused(*run, first, says=["layers"])
    world.refused(*run, second, says=["layers"])
    world.refused(*run, "%s,%s,%s" % (first, first, second), says=["layers"])
    world.refused(*run, chain, "--exact", says=["--exact"])
    world.refused(*run, chain, "--kv", "f32", says=["--kv"])
    world.refused(*run, chain, "--ctx", "1000", says=["256", "--ctx"])
    assert world.good(*run, chain).out and alive(processes)


def test_chains_that_are_no_addresses(world):
    for chain in ("", ",", "nonsense", "smoke://x", "tcp://127.0.0.1", "abstract://", "abstract://a,,abstract://b"):
        result = world.brigade("run", fixture(), *OPTIONS, "-q", "--timeout", "1", "--chain", chain, timeout=10)
        assert result.code in (1, 2) and len(result.lines()) == 1, (chain, result)


@pytest.mark.parametrize("where", ("abstract://brigade-test-nobody-%d", "tcp://127.0.0.1:%d"))
def test_nobody_listens(world, where):
    url = where % (kit.free_port() if "tcp" in where else os.getpid())
    began = time.monotonic()
    world.refused("run", fixture(), *OPTIONS, "-q", "--chain", url, "--timeout", "1.5", says=url)
    assert 1.2 < time.monotonic() - began < 6 * kit.SLOWER


def test_plain_tcp_beyond_this_machine_must_be_asked_for(world):
    result = world.brigade("run", fixture(), *OPTIONS, "-q", "--chain", "tcp://192.0.2.1:7000", timeout=5)
    assert result.code in (1, 2) and "--insecure" in result.err and len(result.lines()) == 1, result


def test_a_shard_of_the_chain_that_dies_is_named(world):
    processes, chain = world.line_by_hand(fixture(), [2, 4], "--ctx", "100000", scheme="tcp")
    run = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--chain", chain, "--timeout", "2")
    kit.wait_for_output(run)
    processes[1].kill()
    kit.refusal_while_printing(world.finish(run, 10 * kit.SLOWER), ["shard 1", chain.split(",")[1]])
    assert alive([processes[0], processes[2]])


def test_a_shard_of_the_chain_that_is_stopped_is_named(world):
    processes, chain = world.line_by_hand(fixture(), [2, 4], "--ctx", "100000", scheme="tcp")
    run = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--chain", chain, "--timeout", "2")
    kit.wait_for_output(run)
    processes[2].send_signal(signal.SIGSTOP)
    kit.refusal_while_printing(world.finish(run, 12 * kit.SLOWER), ["shard 2", chain.split(",")[2], "2"])


# ---- peers that speak the protocol and lie ----


class FakeShard(threading.Thread):
    """Listens as a shard's control socket; answers each request with what `answer` makes of its fields. None:
    nothing is said."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.url = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.start()

    def run(self):
        try:
            sock, _ = self.listener.accept()
            peer = sp.Peer(sock, sp.REP, sp.REQ)
            while True:
                request = peer.recv()
                reply = self.answer(sp.unpack(request[4:]))
                if reply is not None:
                    peer.send(request[:4] + (reply if isinstance(reply, bytes) else sp.pack(reply)))
        except OSError:
            pass


def hello_of(world, **changes):
    """A good hello for the whole fixture, with changes."""
    identity = bytes.fromhex(json.loads(world.good("inspect", fixture(), "--json").out)["identity"])
    fields = dict(version=PROTOCOL, kind=HELLO, err=0, text="", identity=identity, layers=5, first=0, last=6, hidden=96,
                  vocab=517, ctx=256, slots=1, numeric="a2 act=q8 kv=f16", kernel="x", host="h", pid=1, threads=1,
                  mapped=1, unlocked=0, state=0)
    fields.update(changes)
    return list(fields.values())


LIES = [
    ("another protocol version", dict(version=PROTOCOL + 1), ["version %d" % (PROTOCOL + 1)]),
    ("another model", dict(identity=b"x" * 32), ["another model"]),
    ("another arithmetic", dict(numeric="a99 act=q8 kv=f16"), ["a99"]),
    ("slice that does not fit", dict(last=9), []),
    ("empty slice", dict(first=3, last=3), []),
    ("an error of its own", dict(err=4, text="the dog ate it"), None),
    ("an identity that is short", dict(identity=b"x"), []),
    ("a text with a newline", dict(host="a\nb"), []),
    ("a state that does not exist", dict(state=77), []),
]


@pytest.mark.parametrize("changes,says", [c[1:] for c in LIES], ids=[c[0] for c in LIES])
def test_a_shard_that_is_not_what_it_should_be(world, changes, says):
    reply = hello_of(world, **changes)
    if says is None:
        reply, says = reply[:4], ["the dog ate it"]
    shard = FakeShard(lambda _: reply)
    world.refused("run", fixture(), *OPTIONS, "-q", "--timeout", "3", "--chain", shard.url, says=[shard.url, *says])


GARBAGE = [b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"GET / HTTP/1.1",
           b"\x91" * 60000, b"\xdc\xff\xff" + b"\x00" * 60000]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_a_shard_that_answers_with_garbage(world, garbage):
    shard = FakeShard(lambda _: garbage)
    world.refused("run", fixture(), *OPTIONS, "-q", "--timeout", "3", "--chain", shard.url, says=shard.url)


def test_a_shard_that_never_answers(world):
    shard = FakeShard(lambda _: None)
    began = time.monotonic()
    world.refused("run", fixture(), *OPTIONS, "-q", "--timeout", "1", "--chain", shard.url, says=shard.url)
    assert time.monotonic() - began < 8 * kit.SLOWER


def test_a_driver_that_lies_leaves_the_shard_unharmed(world):
    process, url = world.shard(fixture(), "--layers", "all", "--head", control="tcp://127.0.0.1:0")
    peer = sp.dial(url, sp.REQ, sp.REP)
    good = peer.ask([PROTOCOL, HELLO])
    assert good[:4] == [PROTOCOL, HELLO, 0, ""] and len(good) == 20
    identity, numeric = good[4], good[12]
    other_version = peer.ask([PROTOCOL + 1, HELLO])
    assert other_version[2] != 0 and "version" in other_version[3]
    for garbage in GARBAGE + [[PROTOCOL, 99], [PROTOCOL, ATTACH], [PROTOCOL, STATUS, 5], [PROTOCOL, DRAIN, 7]]:
        reply = peer.ask(garbage)
        assert len(reply) >= 4, garbage
    attach = [PROTOCOL, ATTACH, 42, 0, 1, 64, 256, 1, identity, numeric, "tcp://127.0.0.1:%d" % kit.free_port()]
    for at, wrong in ((3, 5), (4, 0), (4, 2**40), (5, 0), (5, 2**31), (6, 10**6), (7, 99), (8, b"x" * 32), (9, "a9"),
                      (10, "nonsense"), (10, "x" * 200), (10, "tcp://192.0.2.1:1")):
        reply = peer.ask(attach[:at] + [wrong] + attach[at + 1:])
        assert reply[2] != 0 and reply[3] != "", (at, wrong, reply)
    peer.close()
    assert process.poll() is None
    assert world.stats(fixture(), *OPTIONS, "--chain", url)["ids"] == world.stats(fixture(), *OPTIONS)["ids"]


class Sink(threading.Thread):
    """A driver's data socket: takes what the last shard sends."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.url = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.messages = []
        self.start()

    def run(self):
        try:
            sock, _ = self.listener.accept()
            peer = sp.Peer(sock, sp.PULL, sp.PUSH)
            while True:
                self.messages.append(peer.recv())
        except OSError:
            pass


def test_frames_that_lie_end_the_run_and_not_the_shard(world):
    """A driver that attaches as it should and then sends frames with lying lengths."""
    process, url = world.shard(fixture(), "--layers", "all", "--head", control="tcp://127.0.0.1:0")
    frames = [b"", b"\xc1", b"x" * 64, b"\xdd\xff\xff\xff\xff" + b"\0" * 200, b"\xdc\x00\x18" + b"\xcf" + b"\xff" * 500,
              bytes(4096), struct.pack(">Q", 2**63) * 16]
    for run_id, frame in enumerate(frames, 1000):
        sink = Sink()
        control = sp.dial(url, sp.REQ, sp.REP)
        deadline = time.monotonic() + 10
        while True:  # the run before may still be ending
            hello = control.ask([PROTOCOL, HELLO])
            reply = control.ask([PROTOCOL, ATTACH, run_id, 0, 1, 64, 256, 1, hello[4], hello[12], sink.url])
            if reply[2] == 0 or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        assert reply[2] == 0, reply
        data = sp.dial(reply[4], sp.PUSH, sp.PULL)
        try:
            data.send(frame)
            status = control.ask([PROTOCOL, STATUS, run_id])
            for _ in range(40):
                if status[2] != 0 or status[4] != 1 or sink.messages:
                    break
                time.sleep(0.05)
                status = control.ask([PROTOCOL, STATUS, run_id])
        finally:
            data.close()
            control.close()
        assert process.poll() is None, frame
    deadline = time.monotonic() + 10
    while world.brigade("run", fixture(), *OPTIONS, "-q", "--chain", url).code != 0:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)


def test_the_context_of_the_run_chooses_rotary_factors_not_the_room_of_a_cache(world):
    row = next(row for row in parity.ROWS if row.name == "phi3_short")  # other factors from 65 positions on
    made = world.folder / "made"
    made.mkdir()
    model = row.model(made)
    args = ("logits", model, "--ids", ",".join(map(str, row.reference(model).ids)), "-q", "--out")
    world.good(*args, world.folder / "one.npy")
    for room in ("64", "200"):
        _, chain = world.line_by_hand(model, [1], "--ctx", room)
        world.good(*args, world.folder / "two.npy", "--chain", chain)
        assert (world.folder / "two.npy").read_bytes() == (world.folder / "one.npy").read_bytes(), room
