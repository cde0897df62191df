"""Processes that are killed, stopped or interrupted in the middle of the work: a named failure in time, and nothing
left running."""
import os
import signal
import time

import pytest

import kit
from kit import fixture

pytestmark = pytest.mark.alone

# A context far beyond what the tiny model was trained with: it generates for minutes unless something happens.
LONG = ("--raw", "-p", "x", "--temp", "0", "--ignore-eos", "--ctx", "100000")


def begin(world, *more, shards=3, kind="q8_0"):
    """A run that is generating: (program, pids of its shards in the order of stages)."""
    process = world.start(kit.BRIGADE, "run", fixture(kind), *LONG, "--shards", shards, *more)
    kit.wait_for_output(process)
    return process, world.shards_of(process, shards)


def failure(world, process, timeout, says):
    result = world.finish(process, timeout * kit.SLOWER)
    assert result.code == 1 and len(result.lines()) == 1, result
    for word in says:
        assert word in result.err, (word, result)
    assert not world.gone()
    return result


@pytest.mark.parametrize("victim", (0, 1, 2))
def test_a_shard_that_is_killed_is_named_with_its_signal(world, victim):
    process, shards = begin(world)
    began = time.monotonic()
    os.kill(shards[victim], signal.SIGKILL)
    failure(world, process, 5, ["shard %d" % victim, "signal 9"])
    assert time.monotonic() - began < 3 * kit.SLOWER


@pytest.mark.parametrize("victim", (0, 2))
def test_a_shard_that_is_stopped_is_named_with_the_time(world, victim):
    process, shards = begin(world, "--timeout", "2")
    began = time.monotonic()
    os.kill(shards[victim], signal.SIGSTOP)
    failure(world, process, 12, ["shard %d" % victim, "no answer in 2"])
    assert 1.5 < time.monotonic() - began < 8 * kit.SLOWER


def test_a_shard_that_is_stopped_for_a_moment_is_no_fault(world):
    process = world.start(kit.BRIGADE, "run", fixture(), "--raw", "-p", "x", "--temp", "0", "--ignore-eos", "--ctx", "4000",
                          "-n", "3000" if not kit.SANITIZED else "600", "--shards", "3", "--timeout", "5", "-q")
    kit.wait_for_output(process)
    shard = world.shards_of(process, 3)[1]
    os.kill(shard, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(shard, signal.SIGCONT)
    result = world.finish(process, 60 * kit.SLOWER)
    assert result.code == 0, result


@pytest.mark.parametrize("number", (signal.SIGKILL, signal.SIGSEGV))
def test_a_cold_shard_that_is_killed_is_named(world, number):
    """Cold shards come and go; the driver is held still while one of them is hit."""
    # AddressSanitizer would catch a SIGSEGV and report on its own, unless it comes before it is set up.
    asan = {"ASAN_OPTIONS": "detect_leaks=1:exitcode=99:handle_segv=0"} if kit.SANITIZED else {}
    process = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "3", "--mode", "cold", "--timeout", "3",
                          env=asan)
    kit.wait_for_output(process)
    for _ in range(200):
        os.kill(process.pid, signal.SIGSTOP)
        for shard in world.shard_pids():
            os.kill(shard, number)
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.01)
        if process.poll() is not None:
            break
    failure(world, process, 10, ["shard ", "signal %d" % number])


def test_a_cold_shard_that_is_stopped_is_named(world):
    process = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "3", "--mode", "cold", "--timeout", "2")
    kit.wait_for_output(process)
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        for shard in world.shard_pids():
            try:
                os.kill(shard, signal.SIGSTOP)
            except ProcessLookupError:
                pass
        time.sleep(0.005)
    failure(world, process, 10, ["shard ", "2"])


@pytest.mark.parametrize("mode", ("warm", "pool", "cold"))
def test_shards_die_with_a_driver_that_is_killed(world, mode):
    process = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "4", "--mode", mode)
    kit.wait_for_output(process)
    process.kill()
    process.communicate(timeout=10)
    assert not world.gone(timeout=3)


def test_stopped_shards_die_with_a_driver_that_is_killed(world):
    process, shards = begin(world, shards=4)
    for pid in shards:
        os.kill(pid, signal.SIGSTOP)
    process.kill()
    process.communicate(timeout=10)
    assert not world.gone(timeout=3)


@pytest.mark.parametrize("mode", ("warm", "pool", "cold"))
@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM))
def test_an_interrupt_ends_the_answer_and_leaves_nothing(world, mode, number):
    stats = world.folder / "stats.json"
    process = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "3", "--mode", mode, "--stats", stats)
    kit.wait_for_output(process)
    os.killpg(process.pid, number)  # as a terminal does: the shards hear it too
    result = world.finish(process, 8 * kit.SLOWER)
    assert result.code == 128 + number, result
    assert "tok/s" in result.err and "cancelled" in result.err, result
    assert '"cancelled"' in stats.read_text()
    assert not world.gone()


def test_an_interrupt_while_a_shard_does_not_answer(world):
    process, shards = begin(world, "--timeout", "60")
    os.kill(shards[1], signal.SIGSTOP)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    result = world.finish(process, 10 * kit.SLOWER)
    assert result.code == 130, result
    assert not world.gone()


def test_a_reader_that_goes_away_ends_the_run(world):
    process = world.start(kit.BRIGADE, "run", fixture(), *LONG, "--shards", "2")
    kit.wait_for_output(process)
    process.stdout.close()
    process.stdout = None
    assert process.wait(timeout=10 * kit.SLOWER) != 0
    assert "seed" not in process.stderr.read().decode()  # it has ended; nobody is there to be told figures
    assert not world.gone()


def test_no_addresses_are_left(world):
    before = kit.abstract_names()
    for mode in ("warm", "pool", "cold"):
        world.good("run", fixture(), "--raw", "-p", "x", "-n", "3", "--shards", "3", "--mode", mode)
    deadline = time.monotonic() + 5
    while not kit.abstract_names() <= before and time.monotonic() < deadline:
        time.sleep(0.05)
    # Other programs of this machine may have started meanwhile: only what stays is a leftover of ours.
    assert not {n for n in kit.abstract_names() - before if any(str(p.pid) in n for p in world.started)}


def test_no_room_for_the_cache_is_a_failure_in_words(world):
    """A context whose cache is larger than any memory: a limit or a shard's words, never a signal."""
    result = world.brigade("run", fixture(), "--raw", "-p", "x", "-n", "4", "-q", "--ctx", "1000000000", timeout=20)
    assert result.code in (0, 1, 2) and len(result.lines()) == (result.code != 0), result
    assert "signal" not in result.err


def test_a_missing_shard_program_is_named(world):
    alone = world.folder / "brigade"
    alone.write_bytes(open(kit.BRIGADE, "rb").read())
    alone.chmod(0o755)
    result = world.run(alone, "run", fixture(), "--raw", "-p", "x", "-n", "2", env={"PATH": "/usr/bin:/bin"})
    assert result.code == 1 and "brigade-shard" in result.err and len(result.lines()) == 1, result


@pytest.mark.skipif(kit.SANITIZED, reason="the sanitizers need more address space than any limit")
@pytest.mark.parametrize("kilobytes", (30000, 60000, 100000, 140000))
def test_too_little_address_space_is_a_failure_in_words(world, kilobytes):
    """NNG itself would hang or crash."""
    result = world.run("/bin/sh", "-c", "ulimit -v %d; exec %s run %s --raw -p x -n 2 -q" % (
        kilobytes, kit.BRIGADE, fixture()), timeout=20)
    assert result.code == 1 and len(result.lines()) == 1, result
