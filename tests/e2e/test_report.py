"""bench --report: every combination as a program of its own, the page cache in a known state, JSON, charts, a page; and what
bench says for it: --json -, --skip, bytes from the disk."""
import json
import mmap
import shutil
import signal
import subprocess

import pytest

import kit

pytestmark = pytest.mark.alone

QUICK = ("-p", "4", "-n", "4", "--repeat", "1")


@pytest.fixture
def model(world):
    """A copy that nobody else has open, on a disk."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(world.folder)], capture_output=True, text=True, timeout=20, check=True)
    if kind.stdout.strip() in ("tmpfs", "ramfs"):
        pytest.skip("temporary files lie in memory here: a page cache cannot be dropped")
    path = world.folder / "model.gguf"
    path.write_bytes(open(kit.fixture("q8_0"), "rb").read())
    return path


def report(world, model, *args, **more):
    folder = world.folder / "report"
    result = world.good("bench", model, "--report", folder, "-q", *QUICK, *args, timeout=120, **more)
    return result, json.loads((folder / "report.json").read_text()), folder


def test_json_to_standard_output(world):
    result = world.good("bench", kit.fixture("q4_0"), "--modes", "warm", "--shards", "2", *QUICK, "--json", "-", "--skip",
                        "memory,probe,starts,tokenizer", "-q")
    figures = json.loads(result.out)
    assert figures["probe_bytes_s"] is None and figures["tokenize_mb_s"] is None and figures["starts"] is None
    row = figures["rows"][0]
    assert row["pss_peak_bytes"] is None and row["probe_share"] is None and row["ttft_s"] > row["start_s"] > 0
    result = world.good("bench", kit.fixture("q4_0"), "--modes", "warm", "--shards", "2", *QUICK, "--skip", "probe")
    assert "probe:" not in result.out and "tokenize:" in result.out and "warm" in result.out
    world.refused("bench", kit.fixture("q4_0"), "--skip", "memory,speed", code=2, says=("--skip", "memory,speed"))


@pytest.mark.real
def test_what_comes_from_the_disk_is_counted(world, model):
    """Of a model that opening it does not bring into memory as a whole."""
    shutil.copyfile(kit.MODEL, model)
    _, j, _ = report(world, model, "--modes", "warm,cold", "--shards", "2")
    assert [r["state"] for r in j["rows"]] == ["measured"] * 4, j
    size = model.stat().st_size
    for row in j["rows"]:
        m = row["median"]
        read = m["disk_start_bytes"] + m["disk_prompt_bytes"]
        if row["page_cache"] == "dropped":
            # All weights; the driver has read the header before the count began.
            assert size * 0.6 < read < 2 * size, row
        else:
            assert read < size / 100, row
        # Afterwards it is all there, but for rows of the token table that no token has asked for yet.
        assert m["disk_token_bytes"] < size / 100, row
        assert (m["start_s"] is None) == (row["mode"] == "cold") and m["ttft_s"] > 0


def test_report(world, model):
    result, j, folder = report(world, model, "--modes", "warm,cold", "--shards", "1,2", "--repeat", "2")
    assert j["schema"] == 1 and j["rounds"] == 2 and j["page_cache_seen"] and len(j["memory_bytes_s"]) == 3
    assert j["model_bytes"] == model.stat().st_size and "--report" in j["command"]
    rows = {(r["mode"], r["shards"], r["page_cache"]): r for r in j["rows"]}
    assert len(rows) == len(j["rows"]) == 8
    for row in rows.values():
        assert row["state"] == "measured" and row["why"] is None and row["ram"] == "none" and row["plan"] is None, row
        assert len(row["runs"]) == 2 and row["median"]["decode_tok_s"] > 0 and row["pss_peak_bytes"] > 0
    assert result.out.count("\n") >= 10 and "cold, shards 2" in result.out
    page = (folder / "report.html").read_text()
    assert page.count("<tr class=\"measured\">") == 8
    # Self-contained: nothing is fetched when it is looked at.
    assert "src=" not in page and "<link" not in page and "<script" not in page and "url(http" not in page
    charts = sorted(p.name for p in folder.iterdir())
    if shutil.which("gnuplot") is None:
        print("no charts are looked at: gnuplot is not installed")
        assert "gnuplot is not installed" in page and charts == ["report.html", "report.json"]
    else:
        assert page.count("<svg") == 2 and charts == ["cold.svg", "reference.svg", "report.html", "report.json"]


def test_without_gnuplot(world, model):
    folder = world.folder / "report"
    result = world.good("bench", model, "--report", folder, *QUICK, "--modes", "warm", env={"PATH": str(world.folder)},
                        timeout=120)
    assert result.lines() == ["brigade: no charts: gnuplot is not installed"]
    assert "gnuplot is not installed" in (folder / "report.html").read_text()
    assert sorted(p.name for p in folder.iterdir()) == ["report.html", "report.json"]


def test_options_are_handed_on(world, model):
    _, j, _ = report(world, model, "--modes", "warm", "-t", "1", "--ex", "--wait=block", "--link", "nng")
    assert j["options"] == ["--threads", "1", "--exact", "--wait", "block", "--link", "nng"] and len(j["ids"]) == 4
    assert [r["state"] for r in j["rows"]] == ["measured"] * 2


def test_a_combination_that_fails_is_a_row(world, model):
    _, j, folder = report(world, model, "--modes", "warm", "--shards", "1,99")
    states = {(r["shards"], r["page_cache"]): r for r in j["rows"]}
    assert states["1", "dropped"]["state"] == "measured"
    failed = states["99", "dropped"]
    assert failed["state"] == "failed" and "--shards" in failed["why"] and failed["median"] is None
    assert "--shards" in (folder / "report.html").read_text()


def test_pages_that_somebody_holds_make_a_row_void(world, model):
    with open(model, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as held:
        assert sum(held[i] for i in range(0, len(held), 4096)) >= 0
        _, j, _ = report(world, model, "--modes", "warm")
    rows = {r["page_cache"]: r for r in j["rows"]}
    assert rows["dropped"]["state"] == "void" and "page cache" in rows["dropped"]["why"]
    assert rows["dropped"]["median"] is None and rows["cached"]["state"] == "measured"


@pytest.mark.real
def test_residencies_are_rows(world, model):
    """A model that is streamed is fetched anew for each token; one that is held is not."""
    shutil.copyfile(kit.MODEL, model)
    _, j, _ = report(world, model, "--modes", "warm", "--residency", "map,lock,stream")
    assert [r["state"] for r in j["rows"]] == ["measured"] * len(j["rows"]), j
    size = model.stat().st_size
    per_token = {r["residency"]: r["median"]["disk_token_bytes"] for r in j["rows"]}
    assert per_token["map"] < size / 100 and per_token["lock"] < size / 100 and per_token["stream"] > size * 0.6
    one = world.good("bench", model, *QUICK, "--modes", "warm", "--shards", "1", "--residency", "stream", "--json", "-", "-q")
    assert json.loads(one.out)["rows"][0]["runs"][0]["disk_decode_bytes"] > size * 0.6
    world.refused("bench", model, *QUICK, "--residency", "nowhere", code=2, says="nowhere")


def test_a_run_that_takes_too_long_is_a_row(world, model):
    _, j, _ = report(world, model, "--modes", "warm", "--run-limit", "1", "-n", "100000", "-p", "1")
    assert [r["state"] for r in j["rows"]] == ["failed", "failed"]
    assert all("--run-limit" in r["why"] for r in j["rows"])


@pytest.mark.parametrize("args, says", [
    (("--modes", "warm,tepid"), "tepid"),
    (("--residency", "map,nowhere"), "nowhere"),
    (("--json", "x.json"), "--report"),
    (("--streams", "1,2"), "--report"),
])
def test_wrong_usage(world, args, says):
    folder = world.folder / "report"
    world.refused("bench", kit.fixture("q8_0"), "--report", folder, *args, code=2, says=says)
    assert not folder.exists()


def test_a_folder_that_cannot_be_written(world, model):
    world.refused("bench", model, "--report", model, says=("--report", str(model)))
    world.refused("bench", model, "--report", world.folder / "no" / "such", says=("--report", "no/such"))


def test_interrupt(world, model):
    folder = world.folder / "report"
    process = world.start(kit.BRIGADE, "bench", model, "--report", folder, "-p", "1", "-n", "100000", "--modes", "warm", "-q")
    world.shards_of(process, 1)
    process.send_signal(signal.SIGINT)
    result = world.finish(process, 30)
    assert result.code == 130 and result.lines() == ["brigade: cancelled"], result
    assert not world.gone() and list(folder.iterdir()) == []


def test_budgets(world, model):
    """One that cannot work is a row that says which would; one that can has its plan beside what came of it."""
    result, j, folder = report(world, model, "--modes", "warm,cold", "--ram", "64K,1G")
    rows = {(r["ram"], r["mode"], r["page_cache"]): r for r in j["rows"]}
    assert len(rows) == 8 and "1G" in result.out
    for mode in ("warm", "cold"):
        refused, good = rows["64K", mode, "dropped"], rows["1G", mode, "dropped"]
        assert refused["state"] == "refused" and "would do" in refused["why"] and refused["median"] is None
        assert good["state"] == "measured" and good["plan"]["budget_bytes"] == 2**30 and good["plan"]["read_bytes"] == 0
        assert good["pss_peak_bytes"] < 2**30
        assert rows["none", mode, "cached"]["state"] == "measured"
    assert "would do" in (folder / "report.html").read_text()


def test_a_budget_for_bench(world):
    figures = json.loads(world.good("bench", kit.fixture("q8_0"), "--ram", "1G", *QUICK, "--json", "-", "-q").out)
    assert len(figures["rows"]) == 1 and figures["rows"][0]["mode"] == "warm" and figures["plan"]["budget_bytes"] == 2**30
    assert figures["probe_bytes_s"] is None and figures["tokenize_mb_s"] is None
    world.refused("bench", kit.fixture("q8_0"), "--ram", "64K", says=("--ram", "would do"))
    world.refused("bench", kit.fixture("q8_0"), "--ram", "1G", "--modes", "warm,cold", code=2, says=("--ram", "--report"))
    world.refused("bench", kit.fixture("q8_0"), "--ram", "1G,2G", code=2, says=("--ram", "1G,2G"))
