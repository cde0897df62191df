"""Two network namespaces on one machine as two machines: a chain across them gives the same ids."""
import subprocess
import uuid

import pytest

import kit
from kit import fixture


def ip(*args):
    return subprocess.run(["ip", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)


@pytest.fixture
def machines():
    """Two namespaces joined by a pair of virtual cables: [(name, address)]."""
    mark = uuid.uuid4().hex[:6]
    names, made = ["brig%sa" % mark, "brig%sb" % mark], []
    try:
        for name in names:
            done = ip("netns", "add", name)
            if done.returncode != 0:
                pytest.skip("no network namespaces here: %s" % done.stdout.strip())
            made.append(name)
        steps = [("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable", "netns", names[1])]
        for i, name in enumerate(names):
            steps += [("-n", name, "addr", "add", "10.99.7.%d/24" % (i + 1), "dev", "cable"),
                      ("-n", name, "link", "set", "cable", "up"), ("-n", name, "link", "set", "lo", "up")]
        for step in steps:
            done = ip(*step)
            if done.returncode != 0:
                pytest.skip("no virtual network here: ip %s: %s" % (" ".join(step), done.stdout.strip()))
        yield [(names[0], "10.99.7.1"), (names[1], "10.99.7.2")]
    finally:
        for name in made:
            ip("netns", "del", name)


def chain_across(world, machines, model, layers, *more):
    """One shard in each namespace; the driver will be in the first."""
    (here, here_address), (there, there_address) = machines
    urls = []
    for name, address, args in ((there, there_address, ["--layers", "0:%d" % layers[0]]),
                                (here, here_address, ["--layers", "%d:%d" % layers, "--head"])):
        process = world.start("ip", "netns", "exec", name, kit.SHARD, model, *args, *more, "--insecure", "--control",
                              "tcp://%s:0" % address)
        urls.append(world.listening(process))
    return ",".join(urls)


def test_a_chain_across_two_namespaces(world, machines):
    options = ("--raw", "-p", "Two banks of a river", "--temp", "0", "-n", "24", "--ignore-eos")
    want = world.good("run", fixture(), *options, "-q").out
    chain = chain_across(world, machines, fixture(), (2, kit.N_LAYERS))
    run = ("ip", "netns", "exec", machines[0][0], kit.BRIGADE, "run", fixture(), *options, "-q", "--chain", chain)
    refused = world.run(*run)
    assert refused.code in (1, 2) and "--insecure" in refused.err, refused
    result = world.run(*run, "--insecure")
    assert result.code == 0 and result.out == want, result


def test_a_network_that_falls_silent_is_noticed(world, machines):
    """The cable is pulled in the middle of an answer: no packet says so, the deadline does."""
    chain = chain_across(world, machines, fixture(), (2, kit.N_LAYERS), "--ctx", "100000")
    run = world.start("ip", "netns", "exec", machines[0][0], kit.BRIGADE, "run", fixture(), "--raw", "-p", "x", "--temp", "0",
                      "--ignore-eos", "--ctx", "100000", "--chain", chain, "--insecure", "--timeout", "2", "-q")
    kit.wait_for_output(run)
    assert ip("-n", machines[1][0], "link", "set", "cable", "down").returncode == 0
    kit.refusal_while_printing(world.finish(run, 20 * kit.SLOWER), ["shard ", machines[1][1]])


@pytest.mark.real
def test_the_real_model_across_two_namespaces(world, machines):
    options = ("-p", "Name three rivers.", "--temp", "0", "-n", "32")
    want = world.good("run", kit.MODEL, *options, "-q").out
    chain = chain_across(world, machines, str(kit.MODEL), (15, 30))
    result = world.run("ip", "netns", "exec", machines[0][0], kit.BRIGADE, "run", kit.MODEL, *options, "-q", "--chain",
                       chain, "--insecure")
    assert result.code == 0 and result.out == want, result
