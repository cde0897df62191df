"""brigade probe: what it measures, what it remembers, what it does to the file and to the cache."""
import json
import os
import pty
import signal
import subprocess
import time

import pytest

import kit
from kit import fixture

pytestmark = pytest.mark.alone

SLOW = pytest.mark.release_only("times under the sanitizers mean nothing")


@pytest.fixture
def large(world):
    """A file of 66 MiB that is no hole, and on a disk."""
    path = world.folder / "large"
    block = os.urandom(1 << 20)
    with open(path, "wb") as f:
        for _ in range(66):
            f.write(block)
        os.fsync(f.fileno())
    kind = subprocess.run(["stat", "-f", "-c", "%T", path], stdout=subprocess.PIPE, check=True).stdout.strip()
    if kind in (b"tmpfs", b"ramfs"):
        pytest.skip("the temporary folder lies in memory")
    return path


def cache(world):
    return world.folder / ".cache" / "brigade" / "probe.json"


def test_small_file(world):
    text = world.good("probe", fixture()).out
    assert "memory " in text and " GB/s" in text and "rough" in text
    j = json.loads(world.good("probe", fixture(), "--json").out)
    assert j["schema"] == 1 and j["rough"] and not j["remembered"]
    assert j["memory_bytes_s"] > 1e7 and j["disk_bytes_s"] > 0
    assert j["best"]["reader"] in ("uring", "threads") and j["best"] in j["rows"]
    assert not cache(world).exists(), "a rough figure is not for keeping"


def test_memory_alone(world):
    j = json.loads(world.good("probe", "--json").out)
    assert j["memory_bytes_s"] > 1e7 and j["disk_bytes_s"] is None and j["why"]
    assert 0 < j["memory_median_bytes_s"] <= j["memory_bytes_s"] and j["load"] >= 0
    # Which it is this machine decides, and both are said.
    busy = j["load"] > j["cpus"] or j["memory_bytes_s"] > 1.5 * j["memory_median_bytes_s"]
    assert busy == (j["note"] is not None and "other work" in j["note"])


def test_refusals(world):
    world.refused("probe", world.folder / "nothing", says="nothing")
    empty = world.folder / "empty"
    empty.mkdir()
    world.refused("probe", empty, says="empty")
    world.refused("probe", "/dev/zero", says="not a regular file")
    world.refused("probe", fixture(), "--nonsense", code=2, says="--nonsense")


@SLOW
def test_remembered(world, large):
    before = os.stat(large)
    first = json.loads(world.good("probe", large, "--json").out)
    assert not first["remembered"] and not first["rough"] and first["best"]["samples"] >= 2
    assert {r["direct"] for r in first["rows"]} == {True, False} or not first["rows"][0]["direct"]
    after = os.stat(large)
    assert (before.st_mtime_ns, before.st_size, before.st_blocks) == (after.st_mtime_ns, after.st_size, after.st_blocks)
    again = world.good("probe", large, "--json")
    j = json.loads(again.out)
    assert j["remembered"] and "--fresh" in again.err
    assert {k: v for k, v in j.items() if k != "remembered"} == {k: v for k, v in first.items() if k != "remembered"}
    # Another file of the same disk: the same figures, and nothing is read.
    assert json.loads(world.good("probe", fixture(), "--json", "-q").out)["remembered"] == (
        os.stat(fixture()).st_dev == before.st_dev)
    fresh = json.loads(world.good("probe", large, "--json", "--fresh").out)
    assert not fresh["remembered"]
    # What was changed by hand into nonsense is measured again, and the file is whole afterwards.
    stored = json.loads(cache(world).read_text())
    stored["probes"][0]["disk_bytes_s"] = -1
    cache(world).write_text(json.dumps(stored))
    assert not json.loads(world.good("probe", large, "--json").out)["remembered"]
    assert json.loads(cache(world).read_text())["probes"][0]["disk_bytes_s"] > 0
    assert os.listdir(cache(world).parent) == ["probe.json"]


@SLOW
def test_interrupted(world, large):
    process = world.start(kit.BRIGADE, "probe", large)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    result = world.finish(process, 20)
    assert result.code == 130 and result.err == "brigade: cancelled\n" and result.out == "", result
    assert not cache(world).exists()


def on_terminal(world, *args, **more):
    """The result, and what came on the terminal that is standard error."""
    master, slave = pty.openpty()
    process = world.start(kit.BRIGADE, *args, stderr=slave, **more)
    os.close(slave)
    result = world.finish(process, 30)
    os.set_blocking(master, False)
    try:
        text = os.read(master, 1 << 20)
    except OSError:
        text = b""
    os.close(master)
    assert result.code == 0, text
    return result, text


@SLOW
def test_progress_on_a_terminal(world, large):
    result, text = on_terminal(world, "probe", large)
    assert b"probing the disk" in text and text.endswith(b"\r\x1b[K"), "a bar, and it is wiped: %r" % text
    assert result.out.startswith("machine ")


@SLOW
def test_quiet_and_a_cache_that_cannot_be_written(world, large):
    result, text = on_terminal(world, "probe", large, "--json", "-q", env={"XDG_CACHE_HOME": "/proc/nowhere"})
    assert text == b""
    j = json.loads(result.out)
    assert j["disk_bytes_s"] > 0 and "not remembered" in j["note"]
