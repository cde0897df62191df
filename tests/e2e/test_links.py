"""Every way that frames can travel on one machine gives the same ids, and notices the same deaths."""
import os
import signal
import subprocess
import time

import pytest

import kit
from kit import fixture

pytestmark = pytest.mark.alone

LINKS = ("nng", "shm")
OPTIONS = ("--raw", "--temp", "0", "-n", "12", "--ignore-eos")
LONG = ("--raw", "-p", "x", "--temp", "0", "--ignore-eos", "--ctx", "100000")
# More rows than a slot of the ring has room for: such a frame travels beside it.
PROMPTS = {"short": "Many hands", "long": "Many hands make light work of the bucket. " * 60}


@pytest.mark.parametrize("prompt", sorted(PROMPTS))
def test_every_link_mode_and_wait_gives_the_same_ids(world, prompt):
    text = ("-p", PROMPTS[prompt], "--ctx", "4096")
    want = world.stats(fixture(), *OPTIONS, *text, "--link", "nng")
    assert prompt == "short" or want["prompt_tokens"] > 600, want
    for link in LINKS:
        for more in (("--shards", "all"), ("--shards", "3", "--wait", "hold"), ("--shards", "3", "--mode", "cold")):
            assert world.stats(fixture(), *OPTIONS, *text, "--link", link, *more)["ids"] == want["ids"], (link, more)


def mapped_rings(pid):
    with open("/proc/%d/maps" % pid) as maps:
        return sum("brigade-ring" in line for line in maps)


@pytest.mark.parametrize("link", LINKS)
def test_warm_shards_share_memory_when_asked_to(world, link):
    """A ring to the one before and a ring to the next for each, and the driver's two: or none at all."""
    run = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "3", "--link", link)
    kit.wait_for_output(run)
    rings = [mapped_rings(pid) for pid in [run.pid, *world.shards_of(run, 3)]]
    assert rings == [2 if link == "shm" else 0] * 4
    run.send_signal(signal.SIGINT)
    assert world.finish(run, 10 * kit.SLOWER).code == 130


def test_a_chain_of_shards_with_both_links(world):
    want = world.stats(fixture(), *OPTIONS, "-p", "Many hands")["ids"]
    urls = []
    for i, link in enumerate(("nng", "shm", "nng")):
        layers = ["--layers", "%d:%d" % (2 * i, min(2 * i + 2, kit.N_LAYERS))] + (["--head"] if i == 2 else [])
        urls.append(world.shard(fixture(), *layers, "--link", link)[1])
    for link in LINKS:
        assert world.stats(fixture(), *OPTIONS, "-p", "Many hands", "--chain", ",".join(urls), "--link", link)["ids"] == want


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("number", (signal.SIGKILL, signal.SIGSTOP))
@pytest.mark.parametrize("victim", (0, 1, 2))
def test_a_death_is_noticed_on_every_link(world, link, number, victim):
    run = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "3", "--link", link, "--timeout", "2")
    kit.wait_for_output(run)
    began = time.monotonic()
    os.kill(world.shards_of(run, 3)[victim], number)
    result = world.finish(run, 12 * kit.SLOWER)
    says = "signal 9" if number == signal.SIGKILL else "no answer in 2"
    assert result.code == 1 and len(result.lines()) == 1, result
    assert "shard %d" % victim in result.err and says in result.err, result
    assert time.monotonic() - began < (3 if number == signal.SIGKILL else 8) * kit.SLOWER
    assert not world.gone()


def test_processes_that_may_not_look_into_each_other_use_sockets(world):
    """A shard in a process namespace of its own cannot open what is offered to it."""
    tried = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=20)
    if tried.returncode != 0:
        pytest.skip("no process namespaces here")
    want = world.stats(fixture(), *OPTIONS, "-p", "Many hands")["ids"]
    control = "abstract://brigade-test-apart-%d" % os.getpid()
    shard = world.start("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", kit.SHARD, fixture(), "--layers", "all",
                        "--head", "--control", control)
    url = world.listening(shard)
    try:
        assert world.stats(fixture(), *OPTIONS, "-p", "Many hands", "--chain", url)["ids"] == want
    finally:
        shard.kill()  # and what it started dies with it


def test_wrong_names(world):
    world.refused("run", fixture(), *OPTIONS, "-p", "x", "--link", "pigeon", code=2, says=["--link", "brigade list links"])
    world.refused("run", fixture(), *OPTIONS, "-p", "x", "--wait", "long", code=2, says=["--wait", "hold"])
    shard = world.run(kit.SHARD, fixture(), "--head", "--control", "abstract://x", "--link", "pigeon")
    assert shard.code == 2 and "--link" in shard.err, shard
    shard = world.run(kit.SHARD, fixture(), "--head", "--control", "shm+abstract://x")
    assert shard.code == 2 and "shm+" in shard.err and "control" in shard.err, shard
