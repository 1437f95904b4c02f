"""The tables are whole, dated, sourced and agree with one another."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from importlib.resources import files

import msgspec
import pytest
from tables import each

from assistant.catalog import load_catalog, number, tables
from assistant.catalog.catalog import Bundle, Launcher
from assistant.catalog.companions import Companion, WheelSource
from assistant.catalog.identity import CardRow
from assistant.catalog.tables import AmdRelease, BuildCode, Driver, TorchRelease, load_table, rows
from assistant.model.errors import BadInput

CATALOG = load_catalog()


def test_every_table_is_read_as_a_whole():
    """Each row has the keys of its table and no others, whether code reads it by field or looks it up."""
    kinds = {
        "bundles.bundles": Bundle,
        "companions.companions": Companion,
        "companions.wheel_sources": WheelSource,
        "cuda.code": BuildCode,
        "cuda.drivers": Driver,
        "launchers.launchers": Launcher,
        "names.idle_names": str,
        "rocm.amd_releases": AmdRelease,
        "rocm.code": BuildCode,
        "torch.releases": TorchRelease,
    }
    for file in (files("assistant.catalog") / "data").iterdir():
        for title in json.loads(file.read_bytes()):
            name = f"{file.name.removesuffix('.json')}.{title}"
            kind = CardRow if name.startswith("gpus_") else kinds.pop(name, None)
            listed = load_table(name, kind).rows if kind else rows(name)
            assert kind or not {*listed[0]} & {*dir(dict)}, f"{name}: a column that no attribute can name"
    assert kinds == {}


@each("slip", [{"code": "8.9", "wordz": "x"}, {"code": "8.9", "words": "x", "more": 1}, {"words": "x"}])
def test_a_slip_of_the_pen_in_a_row_is_refused(slip, monkeypatch):
    """A misspelt, a further or a forgotten key must not become a default that nobody meant."""
    table = {"source": "s", "as_of": "2026-01-01", "defaults": {"words": ""}, "rows": [{"code": "8.6"}, slip]}
    monkeypatch.setattr(tables, "_read_data_file", lambda _file: {"slip": msgspec.json.encode(table)})
    with pytest.raises(BadInput, match="other keys"):
        rows(f"{'-'.join(slip)}.slip")


def test_every_build_is_described():
    """No build rests on an assumption: CUDA has machine code and a driver floor on record, ROCm has GPU targets."""
    for platform in {platform for row in CATALOG.releases for platform in row.variants}:
        for wheel in CATALOG.wheels(platform, None):
            assert not wheel.assumed, wheel
            assert wheel.gfx or not wheel.variant.startswith("rocm"), wheel
            if wheel.variant.startswith("cu"):
                assert wheel.sm, wheel
                assert CATALOG.drivers[wheel.variant, platform.startswith("windows")].least, wheel


def test_releases_stand_in_order_and_are_no_newer_than_their_table():
    """A table that is dated before its newest release would give way to one that a user refreshed without it."""
    table = CATALOG.table("torch.releases", TorchRelease)
    versions = [number(row.version) for row in table.rows]
    assert versions == sorted({*versions})
    assert max(row.date for row in table.rows) <= table.as_of


def test_companions_pair_with_known_releases():
    """DirectML and AMD's index build on releases that the catalogue knows, with their torchvision."""
    for row in CATALOG.rows("directml.releases"):
        assert row.torchvision in CATALOG.release(row.torch).torchvision
    for row in CATALOG.amd_releases:
        assert CATALOG.release(row.torch).torchvision


def test_overrides_pretend_a_target_that_exists():
    """An override leads to a target that some build holds."""
    held = {gfx for row in CATALOG.rocm_code for gfx in row.gfx}
    assert {row.as_gfx for row in CATALOG.rows("rocm.overrides")} <= held


def test_facts_that_many_answers_hang_on():
    """The ends of support that peers get wrong."""
    by_release = {row.version: row for row in CATALOG.releases}
    assert not any(tag.startswith("cu12") for tag in by_release["2.15.0"].variants["linux_x86_64"])
    assert "cu126" in by_release["2.14.1"].variants["windows_amd64"]
    assert "310" not in by_release["2.15.0"].pythons["any"]
    assert max(CATALOG.wheels("macos_x86_64", None), key=lambda wheel: wheel.number).version == "2.2.2"


def test_numbers_compare_as_versions():
    """Neither text nor decimals: 7.14 is after 7.2, 10.0 after 7.14, and local tags do not count."""
    assert number("7.14") > number("7.2")
    assert number("10.0") > number("7.14")
    assert number("2.14.1+cu126") == (2, 14, 1)
    assert number(None) == ()


def test_indexes():
    """Each variant leads to its index; PyPI is the installer's default."""
    assert CATALOG.index_url("cu126") == "https://download.pytorch.org/whl/cu126"
    assert CATALOG.index_url("nightly/cpu") == "https://download.pytorch.org/whl/nightly/cpu"
    assert CATALOG.index_url("amd-index").startswith("https://stable.repo.amd.com/")
    assert CATALOG.index_url("amd-index", "2.12.0").startswith("https://repo.amd.com/")
    assert CATALOG.index_url("nightly/amd-index").startswith("https://rocm.nightlies.amd.com/")
    assert CATALOG.index_url("pypi") is None
    assert any(mirror.flat for mirror in CATALOG.mirrors)


def test_every_row_has_a_source_and_a_day():
    """A table names where it was read and when; a row with a day of its own has one that is a day."""
    for file in (files("assistant.catalog") / "data").iterdir():
        for title, table in json.loads(file.read_bytes()).items():
            name = file.name
            days = [row["as_of"] for row in table["rows"] if isinstance(row, dict) and "as_of" in row]
            assert table["source"], f"{name}.{title}"
            assert table["rows"], f"{name}.{title}"
            assert all(date.fromisoformat(day).year > 2020 for day in (table["as_of"], *days)), f"{name}.{title}"


@pytest.mark.process
def test_a_table_is_read_when_it_is_asked_for():
    """Whoever asks for the releases of torch waits for no other file."""
    code = (
        "import assistant.catalog as c; c.load_catalog().releases; from assistant.catalog import tables; "
        "print(tables._read_data_file.cache_info().currsize)"
    )
    read = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(read) == len({"torch"})
