"""The tables follow what the indexes list, and tell each change."""

from __future__ import annotations

from catalogs import catalog_as_of, with_tables

from assistant.catalog import Catalog
from assistant.catalog.refresh import Metadata, Seen, kept, refreshed
from assistant.catalog.rows import TorchTables
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import from_json, to_json
from assistant.plan import make_plans

KEPT = kept(catalog_as_of("2.15.0"))
TABLES = KEPT.torch
NEW = [
    Seen("pypi", "torch-2.16.0-cp312-cp312-manylinux_2_28_x86_64.whl", 540_000_000),
    Seen("pypi", "torch-2.16.0-cp312-cp312-macosx_14_0_arm64.whl", 140_000_000),
    Seen("cu134", "torch-2.16.0+cu134-cp312-cp312-manylinux_2_28_x86_64.whl"),
    Seen("cu130", "torch-2.16.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl"),
    Seen("cpu", "torch-2.16.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl"),
    Seen("cpu", "torch-2.17.0.dev20261120+cpu-cp312-cp312-manylinux_2_28_x86_64.whl"),
    Seen("cpu", "not a wheel"),
]


def row(tables, version):
    """Find a release's row."""
    return next(row for row in tables.releases.rows if row.version == version)


def with_torch(tables: TorchTables) -> Catalog:
    """Make a catalogue with other tables of torch, which go through JSON."""
    return with_tables(catalog_as_of("2.15.0"), torch=from_json(to_json(tables), TorchTables, "torch.json"))


def test_a_new_release_is_read_off_the_file_names():
    """Platforms, Pythons, variants, floors and sizes are taken over; nightlies are not."""
    (tables, *_others), _changed, changes = refreshed(KEPT, NEW, {}, "2026-12-24")
    new = row(tables, "2.16.0")
    assert new.variants == {"linux_x86_64": ("cu130", "cu134", "cpu"), "macos_arm64": ("pypi",)}
    assert new.pythons["linux_x86_64"] == ("312",)
    assert (new.glibc, new.macos.wheel, new.mb["linux_x86_64"]) == ({"linux": "2.28"}, "14.0", 540)
    assert tables.releases.as_of == "2026-12-24"
    assert tuple(map(str, changes)) == ("torch 2.16.0 is new: cpu, cu130, cu134, pypi.",)


def test_rows_that_a_refresh_does_not_change_keep_their_day():
    """The new row alone is of today, and it keeps that day when a later refresh brings another one."""
    (tables, *_others), _changed, _changes = refreshed(KEPT, NEW, {}, "2026-12-24")
    day = KEPT.torch.releases.as_of
    assert {one.as_of or tables.releases.as_of for one in tables.releases.rows if one.version != "2.16.0"} == {day}
    assert row(tables, "2.16.0").as_of == ""
    later = [Seen("cpu", "torch-2.17.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl")]
    (tables, *_others), _changed, _changes = refreshed(KEPT._replace(torch=tables), later, {}, "2027-01-24")
    assert (row(tables, "2.16.0").as_of, row(tables, "2.17.0").as_of) == ("2026-12-24", "")


def test_a_refreshed_table_plans_the_new_release():
    """The tables go through JSON into a catalogue, and the planner uses them."""
    catalog = with_torch(refreshed(KEPT, NEW, {}, "2026-12-24").tables.torch)
    assert catalog.newest_torch == "2.16.0"
    assert make_plans(Machine(os="linux", arch="x86_64", python="3.12"), catalog).choice.torch == "2.16.0"


def test_a_cuda_major_without_a_driver_on_record_is_not_chosen():
    """The new release is planned with the CUDA that the driver is known to run."""
    seen = [*NEW, Seen("cu141", "torch-2.16.0+cu141-cp312-cp312-manylinux_2_28_x86_64.whl")]
    catalog = with_torch(refreshed(KEPT, seen, {}, "2026-12-24").tables.torch)
    card = Gpu(vendor=Vendor.NVIDIA, compute_capability="8.6")
    machine = Machine(os="linux", arch="x86_64", python="3.12", gpus=(card,), nvidia_driver="650.10")
    choice = make_plans(machine, catalog).choice
    assert (choice.torch, choice.variant) == ("2.16.0", "cu130")


def test_a_variant_seen_on_its_index_is_no_longer_unsure():
    """The warning about an unseen build goes away with the build's appearance."""
    seen = [Seen("rocm7.14", "torch-2.15.0+rocm7.14-cp312-cp312-manylinux_2_28_x86_64.whl")]
    (tables, *_others), _changed, changes = refreshed(KEPT, seen, {}, "2026-12-01")
    assert row(tables, "2.15.0").unconfirmed == {}
    assert len(changes) == 1
    card = Gpu(vendor=Vendor.AMD, gfx="gfx1100")
    machine = Machine(os="linux", arch="x86_64", python="3.12", gpus=(card,))
    assert make_plans(machine, with_torch(tables)).choice.torch == "2.15.0"


def test_nothing_new_changes_nothing():
    """An index that holds what is known leaves the tables, and their date, alone."""
    seen = [Seen("cu130", "torch-2.15.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl")]
    assert refreshed(KEPT, seen, {}, "2026-12-01") == (KEPT, {}, ())


def test_what_stands_beside_torch_gains_python_versions():
    """A first onnxruntime for Python 3.15 is noted."""
    seen = [Seen("pypi", "onnxruntime-1.32.0-cp315-cp315-manylinux_2_28_x86_64.whl")]
    (tables, *_others), _changed, changes = refreshed(KEPT, seen, {}, "2026-12-01")
    found = next(row for row in tables.basics.rows if row.package == "onnxruntime")
    assert "315" in found.pythons["linux_x86_64"]
    assert tuple(map(str, changes)) == ("onnxruntime has wheels for more Python versions.",)


def test_a_companion_that_came_out_for_no_one_torch_is_learnt_with_its_builds():
    """It goes with each torch that its bounds let in; PyPI's build is that of the newest torch there."""
    seen = [
        Seen("pypi", "torchaudio-2.11.2-py3-none-manylinux_2_28_x86_64.whl"),
        Seen("pypi", "torchaudio-2.11.2-py3-none-win_amd64.whl"),
        Seen("cu130", "torchaudio-2.11.2+cu130-py3-none-manylinux_2_28_x86_64.whl"),
    ]
    facts = {one.filename: Metadata("torchaudio", "2.11.2", requires=("torch>=2.11",)) for one in seen}
    (tables, *_others), changed, changes = refreshed(KEPT, seen, facts, "2026-12-24")
    assert "torch" in changed
    assert "torchaudio 2.11.2 goes with torch 2.15.0." in map(str, changes)
    catalog = with_torch(tables)
    builds = (
        ("cu132", "linux_x86_64"),
        ("cu130", "linux_x86_64"),
        ("cu126", "linux_x86_64"),
        ("cu132", "windows_amd64"),
    )
    have = [catalog.has_companion("torchaudio", "2.11.2", "2.15.0", (*build, "312")) for build in builds]
    assert have == [True, True, False, False]
    assert refreshed(KEPT._replace(torch=tables), seen, facts, "2027-01-24").tables.torch is tables
