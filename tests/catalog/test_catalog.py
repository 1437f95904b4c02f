"""The tables are whole, dated, sourced and agree with one another."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from importlib import import_module
from importlib.resources import files

import pytest

from assistant.catalog import load_catalog, number
from assistant.catalog.tables import Table, read_tables
from assistant.model.record import Record

CATALOG = load_catalog()


# What each data file is decoded into.
TABLES = {
    "bundles": "catalog.bundles:BundleTables",
    "companions": "catalog.companions:CompanionTables",
    "containers": "export.launch:ContainerTables",
    "cuda": "catalog.rows:CudaTables",
    "directml": "catalog.rows:DirectmlTables",
    "generations": "catalog.identity:GenerationTables",
    "gpus_amd": "catalog.identity:CardTables",
    "gpus_intel": "catalog.identity:CardTables",
    "gpus_nvidia": "catalog.identity:CardTables",
    "indexes": "catalog.rows:IndexTables",
    "launchers": "catalog.launchers:LauncherTables",
    "names": "catalog.names:NameTables",
    "needs": "catalog.needs:NeedTables",
    "onnxruntimes": "catalog.onnxruntimes:OnnxRuntimeTables",
    "places": "catalog.launchers:PlaceTables",
    "rocm": "catalog.rows:RocmTables",
    "systems": "catalog.rows:SystemTables",
    "torch": "catalog.rows:TorchTables",
}
TELEMETRY = "telemetry"  # `host/telemetry.py` reads it without a record


class Switch(Record, frozen=True):
    """A variable that keeps a library from reporting."""

    name: str
    value: str
    of: str


class Switches(Record, frozen=True):
    """The file of these variables."""

    switches: Table[Switch]


def kind(name: str) -> type[Record]:
    """Return the record of a data file."""
    if name == TELEMETRY:
        return Switches
    module, _colon, title = TABLES[name].partition(":")
    return getattr(import_module(f"assistant.{module}"), title)


def shipped():
    """Name the data files that are shipped."""
    return sorted(path.name.removesuffix(".json") for path in (files("assistant.catalog") / "data").iterdir())


def test_every_data_file_has_a_kind_and_decodes():
    """No file lies there unread, and each one follows its schema strictly."""
    assert shipped() == sorted([*TABLES, TELEMETRY])
    for name in shipped():
        read_tables(name, kind(name))


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
    table = CATALOG.torch.releases
    versions = [number(row.version) for row in table.rows]
    assert versions == sorted({*versions})
    assert max(row.date for row in table.rows) <= table.as_of


def test_companions_pair_with_known_releases():
    """DirectML and AMD's index build on releases that the catalogue knows, with their torchvision."""
    for row in CATALOG.directml.releases.rows:
        assert row.torchvision in CATALOG.release(row.torch).torchvision
    for row in CATALOG.amd_releases:
        assert CATALOG.release(row.torch).torchvision


def test_overrides_pretend_a_target_that_exists():
    """An override leads to a target that some build holds."""
    held = {gfx for row in CATALOG.rocm.code.rows for gfx in row.gfx}
    assert {row.as_gfx for row in CATALOG.rocm.overrides.rows} <= held


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
def test_loading_leaves_the_gpu_tables_alone():
    """Planning reads its own tables, and no identity table."""
    code = (
        "import assistant.catalog as c; c.load_catalog(); from assistant.catalog.tables import shipped; "
        "print(shipped.cache_info().currsize)"
    )
    read = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(read) == len({"torch", "cuda", "rocm", "directml", "systems"})
