"""`assistant catalog`, and package sources named on the command line: a real process, a real index on loopback."""

from __future__ import annotations

import json
import sys

import pytest
from refused import refused

from assistant.catalog import load_catalog

pytestmark = pytest.mark.process

PYTHON = f"{sys.version_info.major}{sys.version_info.minor}"
TAG = f"cp{PYTHON}-cp{PYTHON}-manylinux_2_28_x86_64"
NEWEST = load_catalog().wheels("linux_x86_64", PYTHON)[0].version
BROKEN = "http://127.0.0.1:9/simple"


def test_refresh_says_what_each_source_answered(run, loopback_index):
    """The one that is down, the one that answers, and only with both that nothing is new."""
    loopback_index.add("torch", NEWEST, TAG)
    half = run("catalog", "refresh", "--index-url", BROKEN, index=loopback_index.url)
    assert half.returncode == 0
    assert half.stdout.splitlines()[0].startswith(f"! Not checked: {BROKEN} (")
    assert f"✓ {loopback_index.url}: torch {NEWEST} is the newest of its releases (1)." in half.stdout
    assert "Up to date" not in half.stdout
    assert "Nothing new was seen" in half.stdout
    whole = run("catalog", "refresh", "--index-url", loopback_index.url, index=loopback_index.url)
    assert whole.returncode == 0
    assert "Up to date" in whole.stdout


def test_an_index_that_holds_no_torch_is_not_up_to_date(run, loopback_index):
    """It may have moved: that is said, and nothing is claimed."""
    loopback_index.add("numpy", "2.0")
    done = run("catalog", "refresh", "--index-url", loopback_index.url, index=loopback_index.url)
    refused(done, 1, "it lists no torch; perhaps it has moved", "stay as they are")


def test_refresh_writes_what_the_index_lists_and_plans_use_it(run, loopback_index, tmp_path):
    """The changes are shown, the file goes to the user's folder, and the next plan takes the new release."""
    loopback_index.add("torch", "9.1.0+cpu", TAG)
    done = run("catalog", "refresh", "--yes", "--index-url", loopback_index.url, index=loopback_index.url)
    assert done.returncode == 0, done.stderr
    assert "+ torch 9.1.0 is new: cpu." in done.stdout
    (written,) = (tmp_path / "home").rglob("catalog.json")
    assert str(written) in done.stdout
    plan = json.loads(run("plan", "--json", "--backend", "cpu", "--index-url", loopback_index.url).stdout)["choice"]
    assert plan["torch"] == "9.1.0"
    again = run("catalog", "refresh", "--json", "--index-url", loopback_index.url, index=loopback_index.url)
    told = json.loads(again.stdout)
    assert (told["changes"], told["not_checked"], told["written"]) == ([], [], None)


def test_refresh_asks_before_it_writes(run, loopback_index, tmp_path):
    """No is no."""
    loopback_index.add("torch", "9.1.0+cpu", TAG)
    done = run("catalog", "refresh", "--index-url", loopback_index.url, index=loopback_index.url, input="n\n")
    assert done.returncode == 130
    assert "Nothing was written" in done.stderr
    assert not list((tmp_path / "home").rglob("catalog.json"))


def test_refresh_without_a_network_keeps_the_tables(run, tmp_path):
    """One sentence that names the index."""
    refused(run("catalog", "refresh", "--yes", "--index-url", BROKEN), 1, BROKEN, "stay as they are")
    assert not list((tmp_path / "home").rglob("catalog.json"))


def test_spoilt_tables_are_named_by_every_plan(run, tmp_path):
    """The plan rests on the shipped tables and says so."""
    spoilt = tmp_path / "home" / "pytorch-setup-assistant" / "catalog.json"
    spoilt.parent.mkdir(parents=True)
    spoilt.write_text('{"torch": 3}')
    brief = tmp_path / "m.json"
    brief.write_text('{"os": "linux", "arch": "x86_64", "python": "3.12", "gpus": []}')
    done = run("plan", "--machine", brief, "--json")
    assert done.returncode == 0
    (warning,) = json.loads(done.stdout)["choice"]["warnings"]
    assert str(spoilt) in warning["text"]


def test_a_plan_takes_torch_from_the_index_that_is_named(run, loopback_index):
    """Nothing is asked of it before the packages are resolved."""
    arguments = ("plan", "--backend", "cpu", "--index-url", loopback_index.url)
    assert json.loads(run(*arguments, "--json").stdout)["choice"]["index_url"] == loopback_index.url
    assert "GB of disk" in run(*arguments).stdout


def test_a_wheel_with_a_wrong_hash_is_refused(run, loopback_index, tmp_path):
    """What arrives is not what the index promised: one sentence, and nothing is left."""
    loopback_index.add("torch", f"{NEWEST}+cpu", TAG)
    for name in ("numpy", "onnx", "onnxruntime", "ipykernel"):
        loopback_index.add(name, "1.0")
    loopback_index.trouble["torch"] = "hash"
    arguments = ("install", "--yes", "--backend", "cpu", "--index-url", loopback_index.url)
    done = run(*arguments, "--target", tmp_path / "env", index=loopback_index.url)
    refused(done, 1, "hash", "torch")
    assert not (tmp_path / "env").exists()
