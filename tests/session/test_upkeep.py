"""The tables renewed from real indexes on loopback, whose small wheels tell of themselves what real ones do."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import LoopbackIndex
from torch_wheels import ARM, LINUX, WINDOWS, add_torch, rewrite

from assistant.catalog import Catalog, load_catalog
from assistant.catalog.refresh import Kept
from assistant.catalog.rows import AmdTarget, CudaCode, RocmCode
from assistant.host.live import LiveHost
from assistant.host.remote_wheel import BUDGET
from assistant.install import Sources
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.upkeep import Renewal, looked_over, renewed

pytestmark = pytest.mark.process

TODAY = "2027-01-15"
CARD = Gpu(vendor=Vendor.NVIDIA, name="RTX 4090", compute_capability="8.9")
RTX = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", nvidia_driver="650.10", gpus=(CARD,))


class World:
    """torch's own index and PyPI, each a real server, and tables that follow them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("own", "pypi"):
            (folder / name).mkdir()
        self.own, self.pypi = LoopbackIndex(folder / "own"), LoopbackIndex(folder / "pypi")
        self.catalog = load_catalog()
        settings = {"PIP_INDEX_URL": self.pypi.url, "PIP_CONFIG_FILE": "/dev/null"}
        for name, value in {**settings, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}.items():
            monkeypatch.setenv(name, value)

    @property
    def sources(self) -> Sources:
        """The sources of a user whose pip asks this PyPI."""
        return Sources(LiveHost(), index_url=self.own.url)

    def renew(self) -> Renewal:
        """Refresh the tables, and go on with what came of it."""
        renewal = renewed(self.sources, self.catalog, TODAY)
        self.catalog = catalog_of(renewal.found.tables, self.catalog)
        return renewal


def catalog_of(tables: Kept, before: Catalog) -> Catalog:
    """Make a catalogue of refreshed tables."""
    return Catalog(tables.torch, tables.cuda, tables.rocm, before.directml, before.systems)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Give a world whose indexes hold what the tables end with."""
    world = World(tmp_path, monkeypatch)
    add_torch(world.own, "2.15.0", "cu132", sm=(75, 80, 86, 90, 100, 120))
    add_torch(world.pypi, "2.15.0", of="cu132", sm=(75, 80, 86, 90, 100, 120))
    yield world
    for index in (world.own, world.pypi):
        index.close()


def rows(renewal: Renewal, variant: str) -> list[CudaCode | RocmCode]:
    """Return the code rows of a variant."""
    tables = renewal.found.tables
    return [row for row in (*tables.cuda.code.rows, *tables.rocm.code.rows) if row.variant == variant]


def test_indexes_that_hold_what_is_known_change_nothing(world):
    """No wheel is read, nothing would be written."""
    renewal = world.renew()
    assert renewal.found.changed == {}
    assert renewal.read.sizes == {}
    assert [one.status for one in renewal.listing.answers] == ["ok", "ok"]


def test_a_new_cuda_and_a_new_rocm_major_are_known_without_code(world):
    """Their targets come from the wheels, at most a megabyte of each, and the planner takes them."""
    add_torch(world.own, "2.16.0", "cu135", sm=(80, 86, 90, 100, 120), ptx=120, more=2_000)
    add_torch(world.own, "2.16.0", "cu135", platform=WINDOWS, python="313", sm=(80, 90, 120))
    add_torch(world.own, "2.16.0", "rocm11.0", gfx=("gfx942", "gfx1100", "gfx1201", "gfx1250"), more=2_000)
    add_torch(world.own, "2.16.0", "cpu")
    add_torch(world.pypi, "2.16.0", of="cu135", sm=(80, 86, 90, 100, 120), ptx=120, requires=("triton==3.10.0",))
    add_torch(world.pypi, "2.16.0", of="cpu", platform=ARM)
    world.pypi.add("torchvision", "0.31.0", "py3-none-manylinux_2_28_x86_64", requires=("torch>=2.16",))
    renewal = world.renew()
    assert not renewal.read.unread
    assert all(0 < count <= BUDGET for count in renewal.read.sizes.values())
    assert [(row.platform, row.sm, row.ptx) for row in rows(renewal, "cu135")] == [
        ("linux_x86_64", (80, 86, 90, 100, 120), 120),
        ("windows_amd64", (80, 90, 120), None),
    ]
    assert [row.gfx for row in rows(renewal, "rocm11.0")] == [("gfx942", "gfx1100", "gfx1201", "gfx1250")]
    release = world.catalog.release("2.16.0")
    assert release.pypi == {"linux_x86_64": "cu135", "linux_aarch64": "cpu"}
    assert release.torchvision == ("0.31.0",)
    triton = next(row for row in renewal.found.tables.companions.companions.rows if row.name == "triton")
    assert (triton.ranges[-1].versions, triton.ranges[-1].torch) == ("==3.10.0", ("==2.16.0",))
    assert set(renewal.found.changed) == {"torch", "cuda", "rocm", "companions"}
    choice = make_plans(RTX, world.catalog).choice
    assert (choice.torch, choice.variant) == ("2.16.0", "cu135")
    amd = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", gpus=(Gpu(vendor=Vendor.AMD, gfx="gfx1250"),))
    assert make_plans(amd, world.catalog).choice.variant == "rocm11.0"


def test_a_dropped_architecture_is_known_by_its_wheel(world):
    """The change names it, and cards of it keep the release before."""
    add_torch(world.own, "2.16.0", "cu132", sm=(80, 86, 90, 100, 120))
    add_torch(world.own, "2.16.0", "cpu")
    changes = [str(one) for one in world.renew().found.changes]
    assert any("no longer for sm_75" in one for one in changes)
    t4 = Machine(
        os="linux",
        arch="x86_64",
        glibc="2.39",
        python="3.12",
        nvidia_driver="650.10",
        gpus=(Gpu(vendor=Vendor.NVIDIA, name="T4", compute_capability="7.5"),),
    )
    assert make_plans(t4, world.catalog).choice.torch == "2.15.0"
    assert make_plans(RTX, world.catalog).choice.torch == "2.16.0"


def test_a_patch_of_an_old_line_is_known(world):
    """It takes what nobody tells from the release before it, not from the newest."""
    add_torch(world.own, "2.14.2", "cu126")
    renewal = world.renew()
    assert [str(one) for one in renewal.found.changes] == ["torch 2.14.2 is new: cu126."]
    assert renewal.read.sizes == {}  # the row of cu126 reaches to 2.14
    release = world.catalog.release("2.14.2")
    assert (release.glibc, release.macos) == ({"linux": "2.28"}, world.catalog.release("2.14.1").macos)
    assert release.pypi == {}  # PyPI answered, and does not hold it
    assert world.catalog.newest_torch == "2.15.0"


def test_a_line_that_goes_on_as_before_extends_its_row(world):
    """No second row for the same code."""
    add_torch(world.own, "2.16.0", "cu132", sm=(75, 80, 86, 90, 100, 120))
    row = next(row for row in rows(world.renew(), "cu132") if row.last == "2.16")
    assert (row.platform, row.first) == (LINUX.removeprefix("many").replace("linux_2_28", "linux"), "2.12")


@pytest.mark.parametrize("trouble", [503, "stall", "page"])
def test_an_index_that_is_down_takes_nothing_away(world, monkeypatch, trouble):
    """What the other one lists is taken over; the one that is down is named, and asked again the next time."""
    if trouble == "stall":
        monkeypatch.setattr("assistant.session.upkeep.LIST_SECONDS", 5.0)
    add_torch(world.own, "2.16.0", "cu132", sm=(90,))
    add_torch(world.pypi, "2.16.0", of="cu132", sm=(75, 90))
    before = world.catalog
    world.own.trouble["torch"] = trouble
    renewal = world.renew()
    assert len(renewal.listing.unchecked) == 1
    assert world.own.url in str(renewal.listing.unchecked[0])
    assert {row.version for row in before.releases} < {row.version for row in world.catalog.releases}
    old = before.release("2.15.0")
    assert world.catalog.release("2.15.0") == replace(old, as_of=before.torch.releases.as_of)
    assert world.catalog.release("2.16.0").pypi["linux_x86_64"] == "cu132"
    del world.own.trouble["torch"]
    world.renew()
    assert world.catalog.release("2.16.0").variants["linux_x86_64"] == ("cu132",)


def test_a_wheel_that_cannot_be_read_leaves_its_code_unknown(world):
    """The release is there, its code assumed as before; the next refresh tries again."""
    add_torch(world.own, "2.16.0", "cu132", sm=(90,), more=9_000)
    world.own.parts = "whole"
    renewal = world.renew()
    (sentence,) = renewal.read.unread
    assert "torch-2.16.0+cu132" in str(sentence)
    assert "does not serve parts" in str(sentence)
    (wheel,) = [one for one in world.catalog.wheels("linux_x86_64", "312", "cu132") if one.version == "2.16.0"]
    assert wheel.assumed
    world.own.parts = "served"
    assert rows(world.renew(), "cu132")[-1].sm == (90,)


def test_a_wheel_of_another_name_tells_nothing(world):
    """What is inside decides, not what its name says."""
    wheel = add_torch(world.own, "2.17.0", "cu132", sm=(90,))
    wheel.rename(wheel.with_name(wheel.name.replace("2.17", "2.16")))
    renewal = world.renew()
    assert "not what its name says" in str(renewal.read.unread[0])
    assert rows(renewal, "cu132") == [row for row in load_catalog().cuda.code.rows if row.variant == "cu132"]


def test_variants_are_found_where_each_has_a_folder(world, tmp_path, monkeypatch):
    """An index without a page for all builds lists its variants as folders."""
    folders = tmp_path / "by-variant"
    folders.mkdir()
    index = LoopbackIndex(folders)
    add_torch(index, "2.16.0", "cu137", sm=(90, 120))
    files = folders / "torch"
    page = "".join(f'<a href="{name}/">{name}/</a>' for name in ("cu137", "lost+found", "torch_stable.html"))
    answers = {"/simple/": page, "/simple/cu137/torch/": index.answer("/simple/torch/")[2].decode()}

    def answer(path: str) -> tuple[int, str, bytes]:
        if path in answers:
            return 200, "text/html", answers[path].encode()
        file = files / path.rpartition("/")[2].replace("%2B", "+")
        return (200, "application/octet-stream", file.read_bytes()) if file.is_file() else (404, "text/plain", b"")

    monkeypatch.setattr(index, "answer", answer)
    world.own.close()
    world.own = index
    renewal = world.renew()
    assert world.catalog.release("2.16.0").variants == {"linux_x86_64": ("cu137",)}
    assert [row.sm for row in rows(renewal, "cu137")] == [(90, 120)]
    assert not renewal.listing.unchecked


def test_pairs_come_from_metadata(world):
    """One torch that is named, and bounds where none is; an older line's patch gets its own."""
    add_torch(world.own, "2.14.2", "cpu")
    add_torch(world.own, "2.16.0", "cpu")
    world.own.add("torchvision", "0.29.3+cpu", f"cp312-cp312-{LINUX}", requires=("torch==2.14.2",))
    world.pypi.add("torchvision", "0.31.0", f"cp312-cp312-{LINUX}", requires=("torch==2.16.0",))
    world.pypi.add("torchaudio", "2.16.0", f"cp312-cp312-{LINUX}", requires=("torch==2.16.0",))
    world.pypi.add("vllm", "0.34.0", f"cp38-abi3-{LINUX}", requires=("torch==2.16.0",))
    world.pypi.add("whisperx", "99.0", requires=("torch~=2.16.0",))
    world.pypi.add("ultralytics", "99.0", requires=("torch>=1.8",))  # its open range holds that already
    renewal = world.renew()
    pairs = {row.version: (row.torchvision, row.torchaudio) for row in world.catalog.releases}
    assert pairs["2.14.2"] == (("0.29.3",), ())
    assert pairs["2.16.0"] == (("0.31.0",), ("2.16.0",))
    told = {row.name: row.ranges[-1] for row in renewal.found.tables.companions.companions.rows}
    assert (told["vllm"].versions, told["vllm"].torch) == ("==0.34.0", ("==2.16.0",))
    assert told["ultralytics"].versions != "==99.0"


def test_a_look_reads_no_wheel(world):
    """`catalog check` names what is new from the indexes' pages alone."""
    add_torch(world.own, "2.16.0", "cu135", sm=(90,))
    renewal = looked_over(world.sources, world.catalog, TODAY)
    assert [str(one) for one in renewal.found.changes] == ["torch 2.16.0 is new: cu135."]
    assert not any(path.endswith(".whl") for path in (*world.own.requests, *world.pypi.requests))


def test_refreshed_tables_are_read_again(world):
    """What is written can be read: every table goes through JSON."""
    add_torch(world.own, "2.16.0", "cu135", sm=(90,))
    import msgspec  # noqa: PLC0415 - for this one test

    for table in world.renew().found.changed.values():
        assert msgspec.json.decode(json.dumps(msgspec.to_builtins(table)), type=type(table)) == table


def test_amds_own_indexes_are_asked(world, tmp_path, monkeypatch):
    """A new ROCm for a known torch is a release; a target that its metadata names for the first time is served."""
    (tmp_path / "amd").mkdir()
    amd = LoopbackIndex(tmp_path / "amd")
    tables = world.catalog.rocm
    indexes = tuple(
        replace(row, url=amd.url if row.key == "rocm10" else world.pypi.url) for row in tables.amd_indexes.rows
    )
    known, rocm = world.catalog, replace(tables, amd_indexes=replace(tables.amd_indexes, rows=indexes))
    world.catalog = Catalog(known.torch, known.cuda, rocm, known.directml, known.systems)
    wheel = add_torch(amd, "2.15.0", "rocm10.2.0")
    add_torch(amd, "2.15.0", "rocm10.2.0", platform=WINDOWS)
    with zipfile.ZipFile(wheel) as read:
        (name,) = [one for one in read.namelist() if one.endswith("METADATA")]
    extras = b"Provides-Extra: device-gfx1250\nProvides-Extra: device-gfx1100\nProvides-Extra: opt-einsum\n"
    rewrite(wheel, lambda files: {**files, name: files[name] + extras})
    monkeypatch.setattr(Catalog, "index_url", lambda _self, _variant, _torch="": world.own.url)
    renewal = renewed(Sources(LiveHost()), world.catalog, TODAY)
    after = renewal.found.tables.rocm
    new = after.amd_releases.rows[-1]
    assert (new.torch, new.rocm, new.index, new.systems) == ("2.15.0", "10.2.0", "rocm10", ("linux", "windows"))
    assert after.amd_targets.rows[-1] == AmdTarget(gfx="gfx1250", systems=("linux",))
    assert set(renewal.found.changed) == {"rocm"}
    assert [one.status for one in renewal.listing.answers].count("ok") == len(renewal.listing.answers)
    amd.trouble["torch"] = 503
    down = renewed(Sources(LiveHost()), world.catalog, TODAY)
    assert [one for one in down.listing.unchecked if amd.url in str(one)]
    assert down.found.changed == {}
    amd.close()
