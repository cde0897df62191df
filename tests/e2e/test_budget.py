"""`--ram`: the memory cgroup around a run, where this machine allows one: made, kept to, removed, and named when it
was too small."""
import json
import os
import re
import signal
import sys
import time

import pytest

import kit
from kit import fixture
from test_faults import LONG

pytestmark = pytest.mark.alone

RAM, LIMIT = ("256M", 256 << 20) if not kit.SANITIZED else ("2G", 2 << 30)
PLAIN = ("--raw", "-p", "Once", "-n", "8", "--temp", "0", "--ctx", "64")
WAYS = ("cgroup1", "cgroup2", "systemd", "none")


def enclosure(world, *more):
    path = world.folder / "stats.json"
    result = world.good("run", fixture(), *PLAIN, "--ram", RAM, "--stats", path, *more)
    return json.loads(path.read_text()), result


@pytest.fixture
def enclosed(world):
    """The world, where budgets are enforced."""
    stats, result = enclosure(world)
    if stats["enclosure"]["way"] == "none":
        pytest.skip(result.lines()[0])
    return world


def group_of(process, timeout=20):
    """The folder of the memory group that the program has made for itself, once it is in there."""
    deadline = time.monotonic() + timeout * kit.SLOWER
    while time.monotonic() < deadline:
        with open("/proc/%d/cgroup" % process.pid) as f:
            for line in f:
                controllers, path = line.rstrip("\n").split(":", 2)[1:]
                if re.search(r"/brigade-%d-\d+(\.scope)?$" % process.pid, path):
                    with open("/proc/%d/mountinfo" % process.pid) as mounts:
                        kind = "cgroup2" if controllers == "" else "cgroup"
                        points = [m.split()[4] for m in mounts if " - %s " % kind in m and (
                            controllers == "" or "memory" in m.split(" - ")[1].split()[2].split(","))]
                    found = [p + path for p in points if os.path.isdir(p + path)]
                    assert found, (path, points)
                    return found[0]
        assert process.poll() is None, process.communicate(timeout=20)
        time.sleep(0.01)
    raise AssertionError("the program is in no group of its own")


def test_a_budget_is_enforced_or_said_not_to_be(world):
    stats, result = enclosure(world, "--seed", "1")
    e = stats["enclosure"]
    assert e["way"] in WAYS and e["limit_bytes"] == LIMIT
    notes = [line for line in result.lines() if "enforced" in line]
    assert len(notes) == (e["way"] == "none"), result
    if e["way"] != "none":
        assert 0 < e["peak_bytes"] <= e["limit_bytes"] and e["oom_kills"] == 0 and e["swap_bytes"] in (0, None)
        assert e["peak_bytes"] == stats["cgroup_peak_bytes"]
        assert not os.path.exists(e["group"])


@pytest.mark.parametrize("mode", ("warm", "cold"))
def test_the_same_ids_inside_and_outside(world, mode):
    inside, _ = enclosure(world, "--mode", mode, "--shards", "2")
    assert inside["ids"] == world.stats(fixture(), *PLAIN)["ids"]
    assert world.stats(fixture(), *PLAIN)["enclosure"] is None


def test_the_prompt_comes_through_standard_input(world):
    """The program is executed anew before it reads."""
    asked = ("--raw", "-n", "8", "--temp", "0", "--ctx", "64", "-q")
    outside = world.good("run", fixture(), *asked, input="Once")
    assert outside.out and world.good("run", fixture(), *asked, "--ram", RAM, input="Once").out == outside.out


def test_a_mark_of_another_process_means_nothing(world):
    for text in ("cgroup1 1 1 4096 /", "none 1 1 4096 ", "rubbish", " ", "cgroup1 x y z", "cgroup1 1 1"):
        world.good("run", fixture(), *PLAIN, "--ram", RAM, env={"BRIGADE_ENCLOSURE": text})


def test_more_than_the_machine_has_is_said(world):
    result = world.good("run", fixture(), *PLAIN, "--ram", "1000T", "--seed", "1")
    assert [line for line in result.lines() if "1000.0 TiB is more than the " in line and "of this machine" in line], result


def test_more_than_the_group_above_allows_is_said(enclosed):
    """In a group with a limit of its own, as in a container: the run stays inside it."""
    stats, _ = enclosure(enclosed)
    if stats["enclosure"]["way"] != "cgroup1":
        pytest.skip("a group with a limit is made for the test in version 1 only")
    above = os.path.join(os.path.dirname(stats["enclosure"]["group"]), "test-%s" % enclosed.mark)
    os.mkdir(above)
    try:
        with open(above + "/memory.limit_in_bytes", "w") as f:
            f.write(str(LIMIT // 2))
        command = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        result = enclosed.run("/bin/sh", "-c", command, above, kit.BRIGADE, "run", fixture(), *PLAIN, "--ram", RAM)
        assert result.code == 0, result
        sizes = ("2.0 GiB", "1.0 GiB") if kit.SANITIZED else ("256.0 MiB", "128.0 MiB")
        assert "the budget of %s is more than the %s that the cgroup %s allows" % (*sizes, above) in result.err, result
        left = [name for name in os.listdir(above) if name.startswith("brigade-")]
        assert not left, left
    finally:
        os.rmdir(above)


@pytest.mark.parametrize("how", (signal.SIGINT, signal.SIGTERM))
def test_the_group_is_removed_after_a_signal(enclosed, how):
    process = enclosed.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "2", "--ram", RAM)
    group = group_of(process)
    kit.wait_for_output(process)
    for pid in enclosed.shards_of(process, 2):
        with open("/proc/%d/cgroup" % pid) as f:
            assert os.path.basename(group) in f.read()
    process.send_signal(how)
    assert enclosed.finish(process, 20).code == 128 + how
    assert not os.path.exists(group)


def test_a_group_left_by_a_killed_run_is_removed_by_the_next(enclosed):
    process = enclosed.start(kit.BRIGADE, "run", fixture(), *LONG, "--ram", RAM)
    group = group_of(process)
    kit.wait_for_output(process)
    process.kill()
    process.communicate(timeout=20)
    assert not enclosed.gone()
    enclosure(enclosed)
    assert not os.path.exists(group)


HOG = """
import os, sys, time
open(os.path.join(sys.argv[1], "cgroup.procs"), "w").write(str(os.getpid()))
child = os.fork()  # two halves: one process alone would be the largest, and so the one to be killed
held = [bytearray(b"x") * (1 << 20) for _ in range(int(sys.argv[2]) // 2)]
time.sleep(20)
"""


def remove(group):
    """If it is there: somebody was in it when the run ended, and perhaps is not quite gone."""
    for _ in range(100):
        try:
            os.rmdir(group)
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("%s is still in use" % group)


def test_a_shard_killed_for_memory_is_named_with_the_budget(enclosed):
    """Another process in the group takes what the budget has: of all that are there, a shard has to go."""
    process = enclosed.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "2", "--ram", RAM)
    group = group_of(process)
    kit.wait_for_output(process)
    hog = enclosed.start(sys.executable, "-c", HOG, group, LIMIT >> 20)
    try:
        result = enclosed.finish(process, 30)
    finally:
        try:
            os.killpg(hog.pid, signal.SIGKILL)
        except ProcessLookupError:  # both were killed for memory too
            pass
        hog.communicate(timeout=20)
    assert result.code == 1 and len(result.lines()) == 1, result
    for word in ("shard ", "was killed for memory", "256.0 MiB" if not kit.SANITIZED else "2.0 GiB"):
        assert word in result.err, (word, result)
    assert not enclosed.gone()
    remove(group)
