"""The tables follow what the indexes list, and tell each change."""

from __future__ import annotations

from catalogs import catalog_as_of, with_tables

from assistant.catalog import Catalog
from assistant.catalog.refresh import Seen, refresh_tables, variants_to_read
from assistant.catalog.tables import AmdRelease, Table, TorchRelease
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import from_json, to_json
from assistant.plan import make_plans

KNOWN = catalog_as_of("2.15.0")
NEW = [
    Seen("pypi", "torch-2.16.0-cp312-cp312-manylinux_2_28_x86_64.whl", 540_000_000),
    Seen("pypi", "torch-2.16.0-cp312-cp312-macosx_14_0_arm64.whl", 140_000_000),
    Seen("pytorch", "torch-2.16.0+cu134-cp312-cp312-manylinux_2_28_x86_64.whl"),
    Seen("pytorch", "torch-2.16.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl"),
    Seen("pytorch", "torch-2.16.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl"),
    Seen("pytorch", "torch-2.16.0+cpu.cxx11.abi-cp312-cp312-linux_x86_64.whl"),
    Seen("pytorch", "torch-2.16.0-cp312-cp312-manylinux_2_28_aarch64.whl"),
    Seen("pytorch", "torch-2.17.0.dev20261120+cpu-cp312-cp312-manylinux_2_28_x86_64.whl"),
    Seen("pytorch", "torch-2.18.0+cpu-cp310-abi3-manylinux_2_28_x86_64.whl"),
    Seen("pytorch", "not a wheel"),
]


def refresh(seen, known=KNOWN, today="2026-12-24", **bounds):
    """Refresh a catalogue, where PyPI tells the bounds of companions by their names and versions; tables go by JSON."""
    found = refresh_tables(known, seen, lambda name, version: bounds.get(name, {}).get(version, ""), today)
    kinds = {"torch.releases": TorchRelease, "rocm.amd_releases": AmdRelease}
    tables = {name: from_json(to_json(new), Table[kinds[name]], name) for name, new in found.tables.items()}
    return with_tables(known, tables), tuple(map(str, found.changes))


def choice(catalog: Catalog, **facts: object):
    """Plan for a machine with Linux and Python 3.12."""
    return make_plans(Machine(os="linux", arch="x86_64", python="3.12", **facts), catalog).choice


def test_a_new_release_is_read_off_the_file_names():
    """Platforms, Pythons, variants, floors and sizes are; nightlies, abi3 and builds of no known kind are left out."""
    catalog, changes = refresh(NEW)
    new = catalog.release("2.16.0")
    assert new.variants == {"linux_x86_64": ("cu130", "cu134", "cpu"), "macos_arm64": ("pypi",)}
    assert new.pythons["linux_x86_64"] == ("312",)
    assert (new.glibc, new.macos.wheel, new.mb["linux_x86_64"]) == ({"linux": "2.28"}, "14.0", 540)
    assert catalog.as_of == "2026-12-24"
    assert changes[0] == "torch 2.16.0 is new: cpu, cu130, cu134, pypi."
    assert choice(catalog).torch == catalog.newest_torch == "2.16.0"


def test_rows_that_a_refresh_does_not_change_keep_their_day():
    """The new row alone is of today, and it keeps that day when a later refresh brings another one."""
    catalog, _changes = refresh(NEW)
    days = {row.version: row.as_of for row in catalog.releases}
    assert {day for version, day in days.items() if version != "2.16.0"} == {KNOWN.as_of}
    assert days["2.16.0"] == ""
    later = [Seen("pytorch", "torch-2.17.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl")]
    catalog, _changes = refresh(later, catalog, "2027-01-24")
    assert (catalog.release("2.16.0").as_of, catalog.release("2.17.0").as_of) == ("2026-12-24", "")


def test_a_cuda_major_without_a_driver_on_record_is_not_chosen():
    """The new release is planned with the CUDA that the driver is known to run."""
    catalog, _changes = refresh([*NEW, Seen("pytorch", "torch-2.16.0+cu141-cp312-cp312-manylinux_2_28_x86_64.whl")])
    card = Gpu(vendor=Vendor.NVIDIA, compute_capability="8.6")
    plan = choice(catalog, gpus=(card,), nvidia_driver="650.10")
    assert (plan.torch, plan.variant) == ("2.16.0", "cu130")


def test_a_variant_seen_on_its_index_is_no_longer_unsure():
    """The warning about an unseen build goes away with the build's appearance."""
    catalog, changes = refresh([Seen("pytorch", "torch-2.15.0+rocm7.14-cp312-cp312-manylinux_2_28_x86_64.whl")])
    assert catalog.release("2.15.0").unconfirmed == {}
    assert len(changes) == 1
    assert choice(catalog, gpus=(Gpu(vendor=Vendor.AMD, gfx="gfx1100"),)).torch == "2.15.0"


def test_nothing_new_changes_nothing():
    """An index that holds what is known leaves the tables, and their date, alone."""
    seen = [Seen("pytorch", "torch-2.15.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl")]
    assert refresh_tables(KNOWN, seen, lambda _name, _version: "", "2026-12-01") == ({}, ())


def test_companions_go_with_the_torch_that_they_name_or_are_assumed_to_go_on():
    """One whose bounds nobody tells stays unknown; one that goes with several releases goes with the next, too."""
    tag = "cp312-cp312-manylinux_2_28_x86_64"
    companions = [Seen("pytorch", f"torchvision-{version}+cu134-{tag}.whl") for version in ("0.30.0", "0.31.0")]
    catalog, changes = refresh([*NEW, *companions], torchvision={"0.30.0": "==2.16.0"})
    new, before = catalog.release("2.16.0"), catalog.release("2.15.0")
    assert (new.torchvision, before.torchvision) == (("0.30.0",), ("0.29.2",))
    assert new.torchaudio == ("2.11.1",)
    assert "torchaudio 2.11.1 is assumed to go with torch 2.16.0, as it does with 2.15.0." in changes
    assert refresh([*NEW, *companions], catalog, torchvision={"0.30.0": "==2.16.0"})[1] == ()


def test_only_variants_that_may_bring_news_are_asked_for():
    """Of the tables' recent ones and all newer ones the newest CUDA goes first, and the CPU's long page last."""
    known = ["cu132", "cu130", "cu126", "rocm7.14", "rocm7.2", "rocm7.1", "xpu", "cpu"]
    assert variants_to_read(KNOWN.releases, []) == known
    listed = ["cpu", "cu92", "cu118", "cu130", "cu140", "rocm6.4", "rocm10.0"]
    assert variants_to_read(KNOWN.releases, listed) == ["cu140", "cu130", "rocm10.0", "cpu"]
