"""Files that fail under a running model: one line that names the file and the shard, no signal, nothing left."""
import os
import shutil
import subprocess
import time

import pytest

import kit
from kit import fixture
from test_faults import LONG, failure

pytestmark = pytest.mark.alone

def copy_of(world, kind="f32"):
    path = world.folder / "model.gguf"
    shutil.copy(fixture(kind), path)
    return path


@pytest.mark.parametrize("shards", ("1", "3"))
@pytest.mark.parametrize("mode", ("warm", "cold"))
def test_a_mapped_file_that_becomes_shorter_is_named(world, mode, shards):
    """From the middle of the layers on there is nothing any more; the token table, which is read, stays."""
    path = copy_of(world)
    process = world.start(kit.BRIGADE, "run", path, *LONG, "--shards", shards, "--mode", mode, "--timeout", "5")
    kit.wait_for_output(process)
    os.truncate(path, 800_000)
    result = failure(world, process, 20, ["shard "])
    words = ["%s: the file became shorter while it was in use: it has 800000 bytes" % path]
    if mode == "cold":  # a shard that started after it says that
        words.append("%s has 800000 bytes, it had %d" % (path, os.path.getsize(fixture("f32"))))
    assert any(w in result.err for w in words), result


@pytest.mark.parametrize("shards", ("1", "3"))
@pytest.mark.parametrize("residency", ("map", "lock", "stream"))
def test_a_file_that_loses_its_last_bytes_is_named(world, residency, shards):
    """Where it is mapped, what was cut of the last page reads as zeros: there is no signal."""
    path = copy_of(world)
    had = path.stat().st_size
    has = had - 64
    assert has // 4096 == (had - 1) // 4096, "more than a part of the last page would be cut"
    process = world.start(kit.BRIGADE, "run", path, *LONG, "--shards", shards, "--residency", residency)
    kit.wait_for_output(process)
    os.truncate(path, has)
    failure(world, process, 20, ["shard ", "%s: " % path, "%d bytes" % has, "it had %d" % had])


def test_a_mapped_file_that_becomes_empty_is_named(world):
    path = copy_of(world)
    process = world.start(kit.BRIGADE, "run", path, *LONG, "--shards", "3", "--timeout", "5")
    kit.wait_for_output(process)
    os.truncate(path, 0)
    failure(world, process, 20, [str(path), "became shorter while it was in use"])


def test_a_shard_by_hand_names_the_file_and_its_layers(world):
    path = copy_of(world)
    process, url = world.shard(path, "--layers", "1:3")
    others, more = world.line_by_hand(fixture("f32"), [1])
    rest, tail = world.shard(fixture("f32"), "--layers", "3:5", "--head")
    os.truncate(path, 100_000)
    chain = ",".join((more.split(",")[0], url, tail))
    kit.refusal(world.brigade("run", fixture("f32"), "--raw", "-p", "x", "-n", "4", "--chain", chain, "--timeout", "3",
                              timeout=20), 1, ["shard 1", url])
    ended = world.finish(process, 10 * kit.SLOWER)
    assert ended.code == 1, ended
    last = ended.err.strip().split("\n")[-1]
    assert last.startswith("brigade-shard: layers 1:3: %s: the file became shorter while it was in use" % path), ended
    assert rest.poll() is None and others[0].poll() is None


# ---- a disk that fails ----


@pytest.fixture
def disk(tmp_path):
    """A file system in a file, to be cut off in its middle: what lies behind the cut is an error to read."""
    tools = [shutil.which(t, path=os.environ["PATH"] + ":/usr/sbin:/sbin") for t in ("mkfs.ext4", "mount", "umount")]
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control") or None in tools:
        pytest.skip("a disk that fails is made by root, with loop devices and mkfs.ext4")
    d = Disk(tmp_path, *tools)
    yield d
    d.unmount()


class Disk:
    def __init__(self, folder, mkfs, mount, umount):
        self.image, self.point, self._mount, self._umount = folder / "disk.image", folder / "disk", mount, umount
        self.image.write_bytes(b"")
        os.truncate(self.image, 32 << 20)
        self.point.mkdir()
        subprocess.run([mkfs, "-q", "-O", "^has_journal", str(self.image)], check=True, timeout=60)
        self.mounted = False

    def mount(self):
        done = subprocess.run([self._mount, "-o", "loop", str(self.image), str(self.point)], stderr=subprocess.PIPE,
                              timeout=60)
        if done.returncode != 0:
            pytest.skip("no loop mount: %s" % done.stderr.decode().strip())
        self.mounted = True

    def unmount(self):
        if self.mounted:
            subprocess.run([self._umount, str(self.point)], check=True, timeout=60)
            self.mounted = False

    def cut(self, data, offset):
        """From now on nothing of the file with these bytes can be read from that offset on."""
        at = self.image.read_bytes().find(data[offset:offset + 4096])
        assert at > 0, "the file is not to be found on its disk"
        os.truncate(self.image, at)


def forget(path):
    """Drop the cached pages of a file; those that are mapped stay."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@pytest.mark.parametrize("options", (["--mode", "cold"],), ids=lambda o: o[-1])
def test_a_disk_that_fails_is_named_with_the_file(world, disk, options):
    """Weights in the second half of the file can no longer be read, while the model runs."""
    data = open(fixture("f32"), "rb").read()
    disk.mount()
    path = disk.point / "model.gguf"
    path.write_bytes(data)
    forget(path)
    process = world.start(kit.BRIGADE, "run", path, *LONG, "--shards", "3", "--timeout", "5", *options)
    kit.wait_for_output(process)
    disk.cut(data, 1_200_000 // 4096 * 4096)
    deadline = time.monotonic() + 20 * kit.SLOWER
    while process.poll() is None and time.monotonic() < deadline:
        forget(path)
        time.sleep(0.01)
    result = failure(world, process, 5, ["shard ", str(path)])
    assert "cannot be read from its disk" in result.err, result


def test_a_file_that_is_shorter_when_a_shard_starts_is_named(world):
    """The driver waits for its prompt meanwhile, with the file open; the shard is told what was described."""
    path = copy_of(world)
    process = world.start(kit.BRIGADE, "chat", path, "--chat-template", "chatml", "--mode", "cold", "--shards", "2", "-q",
                          "-n", "1", stdin=subprocess.PIPE)
    process.stdin.write(b"Once.\n")
    process.stdin.flush()
    kit.wait_for_output(process)
    os.truncate(path, 1_000_000)
    process.stdin.write(b"Again.\n")
    process.stdin.flush()
    result = failure(world, process, 20, ["shard ", "%s has 1000000 bytes, it had " % path])
    assert "when it was described" in result.err, result
