"""Fixtures of the e2e tests, the check after every test that nothing was left behind, and how several processes share
the list of tests (run.py)."""
import hashlib
import os

import pytest

import kit

PART = os.environ.get("BRIGADE_E2E_PART")  # "together", "alone", or not set: all
CLAIMS = os.environ.get("BRIGADE_E2E_CLAIMS")  # folder with a file for each test that a process has taken


def pytest_configure(config):
    config.addinivalue_line("markers", "real: needs the model that `make model` fetches")
    config.addinivalue_line("markers", "gemma: needs the model that `make model-gemma` fetches")
    config.addinivalue_line("markers", "release_only(reason): not under the sanitizers")
    config.addinivalue_line("markers", "full: only in `make test-all`")
    config.addinivalue_line("markers", "alone: no other test may run meanwhile: it measures time, memory or page cache")


def pytest_report_header():
    return "programs of build/%s, %s, %s" % (kit.VARIANT, "every combination" if kit.FULL else "a sample",
                                             "real model" if kit.MODEL.exists() else "no real model")


def choose_part(config, items):
    mine = [item for item in items if PART is None or (item.get_closest_marker("alone") is not None) == (PART == "alone")]
    if len(mine) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(mine)])
        items[:] = mine


def claimed(items):
    """Those that no other process has taken before; each is taken when it is asked for."""
    for item in items:
        name = hashlib.sha256(item.nodeid.encode()).hexdigest()
        try:
            os.close(os.open(os.path.join(CLAIMS, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            continue
        yield item


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """As pytest's own, over the tests that can be claimed: the next is claimed while one runs, for pytest must know it."""
    if CLAIMS is None or session.config.option.collectonly:
        return None
    if session.testsfailed:
        raise session.Interrupted("%d errors during collection" % session.testsfailed)
    mine = claimed(session.items)
    item = next(mine, None)
    while item is not None:
        following = next(mine, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def pytest_collection_modifyitems(config, items):
    choose_part(config, items)
    for item in items:
        release_only = item.get_closest_marker("release_only")
        if item.get_closest_marker("full") and not kit.FULL:
            item.add_marker(pytest.mark.skip(reason="only in `make test-all`"))
        for marker, model, goal in (("real", kit.MODEL, "model"), ("gemma", kit.GEMMA, "model-gemma")):
            if item.get_closest_marker(marker) and kit.SANITIZED:
                item.add_marker(pytest.mark.skip(reason="real models are run without sanitizers"))
            elif item.get_closest_marker(marker) and not model.exists():
                item.add_marker(pytest.mark.skip(reason="%s is not there: `make %s` fetches it" % (model, goal)))
        if release_only and kit.SANITIZED:
            item.add_marker(pytest.mark.skip(reason=release_only.args[0]))


def shared_memory():
    return {n for n in os.listdir("/dev/shm") if "brig" in n and "fuzz" not in n}


@pytest.fixture
def world(tmp_path):
    """Runs programs; afterwards no process, temporary file or shared memory of the test may be there."""
    for program in (kit.BRIGADE, kit.SHARD):
        assert os.path.exists(program), "%s is not built" % program
    before = shared_memory()
    w = kit.World(tmp_path)
    yield w
    by_hand = {p.pid for p in w.started}
    left = w.gone(but=by_hand)
    w.end()
    files = sorted(p.name for p in w.temporary.iterdir())
    assert not left, "processes were left behind: %s" % left
    assert not files, "temporary files were left behind: %s" % files
    assert shared_memory() <= before, "shared memory was left behind"
