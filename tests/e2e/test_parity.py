"""The gate: each row of parity.py against its reference, and against itself in every split. `make parity`."""
import json

import numpy as np
import pytest

import kit
import parity
from parity import ROWS


def listed(world, kind):
    return {line.split()[0] for line in world.good("list", kind).out.splitlines()}


@pytest.fixture(params=ROWS, ids=lambda row: row.id)
def case(request, world, tmp_path):
    """(row, path of the model, reference), when this program has the family and the format."""
    row = request.param
    for kind, name in (("families", row.family), ("formats", row.format)):
        if name not in listed(world, kind):
            pytest.skip("no %s among the %s of this program" % (name, kind))
    made = tmp_path / "made"
    made.mkdir()
    path = row.model(made)
    ref = row.reference(path)
    if row.packed is not None:
        world.good("pack", path, tmp_path / "bundle", "-q", *row.packed)
        path = tmp_path / "bundle"
    return row, path, ref


def outputs(world, model, ids, *args, hidden=False):
    """Logits, and hidden rows when asked."""
    out, rows = world.folder / "logits.npy", world.folder / "hidden.npy"
    wish = ("--hidden", rows) if hidden else ()
    world.good("logits", model, "--ids", ",".join(map(str, ids)), "--out", out, "-q", *wish, *args)
    return (np.load(out), np.load(rows)) if hidden else np.load(out)


def test_row(world, case):
    _, model, ref = case
    n = len(ref.ids)
    logits, hidden = outputs(world, model, ref.ids, "--exact", hidden=True)
    assert hidden.shape == ref.hidden.shape and logits.shape == ref.logits.shape
    worst = np.abs(hidden - ref.hidden).max(axis=(1, 2))  # of each boundary: the first that is wrong is the cause
    assert (worst <= parity.HIDDEN).all(), worst
    assert np.abs(logits - ref.logits).max() <= parity.LOGITS

    more = outputs(world, model, ref.ids + ref.greedy[:-1], "--exact", "--shards", "2")
    assert more[:n].tobytes() == logits.tobytes()
    assert more[n - 1:].argmax(axis=1).tolist() == ref.greedy

    quick = outputs(world, model, ref.ids)
    for shards in ("2", "all"):
        assert outputs(world, model, ref.ids, "--shards", shards).tobytes() == quick.tobytes(), shards


def test_every_family_and_format_has_a_row(world):
    assert listed(world, "families") <= {row.family for row in ROWS}
    assert listed(world, "formats") <= {row.format for row in ROWS}


def test_rows_have_names_of_their_own():
    assert len({row.id for row in ROWS}) == len(ROWS)
