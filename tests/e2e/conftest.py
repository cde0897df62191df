"""Fixtures of the e2e tests, and the check after every test that nothing was left behind."""
import os

import pytest

import kit


def pytest_configure(config):
    config.addinivalue_line("markers", "real: needs the model that `make model` fetches")
    config.addinivalue_line("markers", "gemma: needs the model that `make model-gemma` fetches")
    config.addinivalue_line("markers", "release_only(reason): not under the sanitizers")
    config.addinivalue_line("markers", "full: only in `make test-all`")


def pytest_report_header():
    return "programs of build/%s, %s, %s" % (kit.VARIANT, "every combination" if kit.FULL else "a sample",
                                             "real model" if kit.MODEL.exists() else "no real model")


def pytest_collection_modifyitems(items):
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
