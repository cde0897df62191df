"""--mode pool: some shards live, the others are started for each pass; the same ids, and failures by name."""
import json
import os
import signal
import time

import pytest

import kit
from kit import fixture

pytestmark = pytest.mark.alone

OPTIONS = ("--raw", "-p", "Brigade", "--temp", "0", "-n", "6", "--ignore-eos")
LONG = ("--raw", "-p", "x", "--temp", "0", "--ignore-eos", "--ctx", "100000")


@pytest.mark.parametrize("shards,keep,living", (
    ("1", "1", [True]), ("3", "1", [False, False, True]), ("3", "2", [False, True, True]), ("3", "3", [True] * 3),
    ("3", None, [False, True, True]), ("all", "2", None)))
def test_the_same_ids_and_as_many_live_as_asked_for(world, shards, keep, living):
    want = world.stats(fixture(), *OPTIONS)["ids"]
    more = () if keep is None else ("--keep", keep)
    stats = world.stats(fixture(), *OPTIONS, "--mode", "pool", "--shards", shards, *more)
    assert (stats["mode"], stats["ids"]) == ("pool", want)
    lives = [s["lives"] for s in stats["per_shard"]]
    assert sum(lives) == int(keep or 2) and (living is None or lives == living)
    assert not world.gone()


def test_those_that_live_are_the_same_processes_all_the_time(world):
    process = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "4", "--mode", "pool", "--keep", "2")
    kit.wait_for_output(process)
    seen = {}
    for _ in range(100):
        for pid in world.shard_pids():
            seen[pid] = seen.get(pid, 0) + 1
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert world.finish(process, 10 * kit.SLOWER).code == 130
    assert sum(n == 100 for n in seen.values()) == 2 and len(seen) > 4, seen
    assert not world.gone()


@pytest.mark.parametrize("number,says", ((signal.SIGKILL, "signal 9"), (signal.SIGSTOP, "2 s")))
def test_a_shard_that_lives_and_is_hit_is_named(world, number, says):
    process = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "3", "--mode", "pool", "--keep", "1",
                          "--timeout", "2")
    kit.wait_for_output(process)
    first = set(world.shard_pids())
    deadline = time.monotonic() + 20
    while len(first) > 1 and time.monotonic() < deadline:  # the one that is there each time
        time.sleep(0.02)
        first &= set(world.shard_pids())
    os.kill(first.pop(), number)
    result = world.finish(process, 15 * kit.SLOWER)
    assert result.code == 1 and len(result.lines()) == 1, result
    assert "shard 2 (layers" in result.err and says in result.err, result
    assert not world.gone()


def test_a_shard_that_works_once_and_is_killed_is_named(world):
    process = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "3", "--mode", "pool", "--keep", "1",
                          "--timeout", "3")
    kit.wait_for_output(process)
    lasting = set(world.shard_pids())
    for _ in range(30):
        time.sleep(0.02)
        lasting &= set(world.shard_pids())
    assert len(lasting) == 1
    for _ in range(300):
        os.kill(process.pid, signal.SIGSTOP)
        for shard in set(world.shard_pids()) - lasting:
            os.kill(shard, signal.SIGKILL)
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.01)
        if process.poll() is not None:
            break
    result = world.finish(process, 10 * kit.SLOWER)
    assert result.code == 1 and len(result.lines()) == 1, result
    assert "signal 9" in result.err and ("shard 0" in result.err or "shard 1" in result.err), result
    assert not world.gone()


def most_alive(world, *args, env):
    """The largest number of shards that were seen at once, and the ids."""
    stats = world.folder / "stats.json"
    process = world.start(kit.BRIGADE, "run", fixture(), *OPTIONS[:-3], "-n", "12", "--ignore-eos", "--shards", "6",
                          "--stats", stats, "-q", *args, env=env)
    most = 0
    while process.poll() is None:
        most = max(most, len(world.shard_pids()))
        time.sleep(0.003)
    assert world.finish(process, 5).code == 0
    return most, json.loads(stats.read_text())["ids"]


@pytest.mark.parametrize("mode,living", ((("cold",), 0), (("pool", "--keep", "2"), 2)))
def test_no_more_is_started_early_than_fits(world, mode, living):
    free, want = most_alive(world, "--mode", *mode, env={})
    assert living + 2 <= free <= living + 4  # at work, two early, one that is leaving
    one, ids = most_alive(world, "--mode", *mode, env={"BRIGADE_TEST_AHEAD": "1"})
    assert (one, ids) == (living + 1, want)


@pytest.mark.release_only("the sanitizers take memory that no plan counts")
@pytest.mark.parametrize("mode,residency,living", ((("cold",), "lock", 0), (("cold",), "stream", 0),
                                                   (("pool", "--keep", "2"), "map", 2)))
def test_a_budget_decides_how_many_are_started_early(world, mode, residency, living):
    """None in the smallest one, two at most; the next is started when the one before is gone, and all are counted."""
    how = ("--mode", *mode, "--residency", residency, "--ctx", "64")

    def plan(*more):
        return json.loads(world.good("plan", fixture(), "--shards", "6", *how, "--json", *more).out)

    want, stats = world.stats(fixture(), *OPTIONS[:-3], "-n", "12", "--ignore-eos")["ids"], world.folder / "stats.json"
    least, seen = plan()["least_bytes"], []
    for ram in (least, least + (1 << 20), least + (3 << 20), least + (32 << 20)):
        most, ids = most_alive(world, *how, "--ram", ram, env={})
        figures = json.loads(stats.read_text())
        ahead = figures["plan"]["ahead"]
        assert ids == want and most <= living + 1 + ahead == figures["plan"]["alive"], (ram, most, ahead)
        assert 0 < figures["pss_peak_bytes"] <= ram and figures["enclosure"]["oom_kills"] in (0, None)
        assert ahead == 0 or most > living + 1, "what the plan has room for is used"
        seen.append(ahead)
    assert seen[0] == 0 and seen[-1] == 2 and seen == sorted(seen), seen
    world.refused("run", fixture(), *OPTIONS, "--shards", "6", *how, "--ram", least - 1, says=("--ram", str(least), "would do"))


def test_refusals(world):
    run = ("run", fixture(), *OPTIONS)
    world.refused(*run, "--keep", "1", code=2, says=["--keep", "warm"])
    world.refused(*run, "--mode", "cold", "--keep", "1", code=2, says=["--keep", "cold"])
    world.refused(*run, "--mode", "pool", "--shards", "3", "--keep", "4", code=2, says=["--keep 4", "3 shards"])
    world.refused(*run, "--mode", "pool", "--keep", "0", code=2, says=["--keep 0"])
    world.refused(*run, "--mode", "pool", "--chain", "abstract://x", code=2, says=["--chain", "pool"])


def test_bench_compares_it(world):
    result = world.good("bench", fixture(), "--modes", "warm,pool,cold", "--shards", "1,3", "-p", "8", "-n", "4",
                        "--repeat", "1", "--keep", "2")
    rows = [line.split() for line in result.out.splitlines() if line.startswith(("warm", "pool", "cold"))]
    assert [(r[0], r[1]) for r in rows] == [(m, n) for m in ("warm", "pool", "cold") for n in ("1", "3")]
    assert "pool" in world.good("list", "modes").out
