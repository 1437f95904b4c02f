"""The tables renewed from real indexes on loopback: their pages, and the metadata of their wheels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogs import catalog_as_of, with_rows, with_tables
from loopback import LoopbackIndex
from torch_wheels import ARM, LINUX, WINDOWS, add_torch

from assistant.catalog import Catalog
from assistant.host.live import LiveHost
from assistant.install import Sources
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.upkeep import Renewal, renewed

pytestmark = [pytest.mark.process, pytest.mark.full]

TODAY = "2027-01-15"
CARD = Gpu(vendor=Vendor.NVIDIA, name="RTX 4090", compute_capability="8.9")
RTX = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", nvidia_driver="650.10", gpus=(CARD,))


class World:
    """torch's own index and PyPI, each a real server, and tables that follow them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("own", "pypi"):
            (folder / name).mkdir()
        self.own, self.pypi = LoopbackIndex(folder / "own"), LoopbackIndex(folder / "pypi")
        self.catalog = catalog_as_of("2.15.0")
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
        tables = renewal.found.tables
        self.catalog = with_tables(self.catalog, torch=tables.torch, rocm=tables.rocm)
        return renewal


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Give a world whose indexes hold what the tables end with."""
    world = World(tmp_path, monkeypatch)
    add_torch(world.own, "2.15.0", "cu132")
    add_torch(world.pypi, "2.15.0")
    yield world
    for index in (world.own, world.pypi):
        index.close()


def test_indexes_that_hold_what_is_known_change_nothing(world):
    """No metadata are read, nothing would be written."""
    renewal = world.renew()
    assert renewal.found.changed == {}
    assert not any(path.endswith(".metadata") for path in (*world.own.requests, *world.pypi.requests))
    assert [one.status for one in renewal.listing.answers] == ["ok", "ok"]


def test_a_new_release_is_known_with_its_builds_and_its_pairs(world):
    """Builds come from pages, pairs from metadata; the code of a build is assumed as in the one before."""
    for build, platform in (("cu135", LINUX), ("cu135", WINDOWS), ("rocm11.0", LINUX), ("cpu", LINUX)):
        add_torch(world.own, "2.16.0", build, platform=platform)
    add_torch(world.pypi, "2.16.0")
    add_torch(world.pypi, "2.16.0", platform=ARM)
    world.pypi.add("torchvision", "0.31.0", f"cp312-cp312-{LINUX}", requires=("torch>=2.16",))
    renewal = world.renew()
    assert not renewal.read.unread
    assert not any(path.endswith(".whl") for path in (*world.own.requests, *world.pypi.requests))
    release = world.catalog.release("2.16.0")
    assert release.variants["linux_x86_64"] == ("cu135", "rocm11.0", "cpu")
    assert release.torchvision == ("0.31.0",)
    assert set(renewal.found.changed) == {"torch"}
    choice = make_plans(RTX, world.catalog).choice
    assert (choice.torch, choice.variant) == ("2.16.0", "cu135")
    assert any("is assumed to hold code for" in str(reason) for reason in choice.reasons)
    amd = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", gpus=(Gpu(vendor=Vendor.AMD, gfx="gfx1100"),))
    choice = make_plans(amd, world.catalog).choice
    assert choice.variant == "rocm11.0"
    assert any("is assumed to hold code for" in str(reason) for reason in choice.reasons)


@pytest.mark.parametrize("trouble", [503, "stall", "page"])
def test_an_index_that_is_down_takes_nothing_away(world, monkeypatch, trouble):
    """What the other one lists is taken over; the one that is down is named, and asked again the next time."""
    if trouble == "stall":
        monkeypatch.setattr("assistant.session.upkeep.LIST_SECONDS", 5.0)
    add_torch(world.own, "2.16.0", "cu132")
    add_torch(world.pypi, "2.16.0")
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


def test_variants_are_found_where_each_has_a_folder(world, tmp_path, monkeypatch):
    """An index without a page for all builds lists its variants as folders."""
    folders = tmp_path / "by-variant"
    folders.mkdir()
    index = LoopbackIndex(folders)
    add_torch(index, "2.16.0", "cu137")
    page = "".join(f'<a href="{name}/">{name}/</a>' for name in ("cu137", "lost+found", "torch_stable.html"))
    answers = {"/simple/": page, "/simple/cu137/torch/": index.answer("/simple/torch/")[2].decode()}

    def answer(path: str) -> tuple[int, str, bytes]:
        return (200, "text/html", answers[path].encode()) if path in answers else (404, "text/plain", b"")

    monkeypatch.setattr(index, "answer", answer)
    world.own.close()
    world.own = index
    renewal = world.renew()
    assert world.catalog.release("2.16.0").variants == {"linux_x86_64": ("cu137",)}
    assert not renewal.listing.unchecked


def test_pairs_come_from_metadata(world):
    """One torch that is named, and bounds where none is; an older line's patch gets its own."""
    add_torch(world.own, "2.14.2", "cpu")
    add_torch(world.own, "2.16.0", "cpu")
    world.own.add("torchvision", "0.29.3+cpu", f"cp312-cp312-{LINUX}", requires=("torch==2.14.2",))
    world.pypi.add("torchvision", "0.31.0", f"cp312-cp312-{LINUX}", requires=("torch==2.16.0",))
    world.pypi.add("torchaudio", "2.16.0", f"cp312-cp312-{LINUX}", requires=("torch==2.16.0",))
    world.renew()
    pairs = {row.version: (row.torchvision, row.torchaudio) for row in world.catalog.releases}
    assert pairs["2.14.2"] == (("0.29.3",), ())
    assert pairs["2.16.0"] == (("0.31.0",), ("2.16.0",))


def test_amds_own_indexes_are_asked(world, tmp_path, monkeypatch):
    """A new ROCm for a known torch is a release."""
    (tmp_path / "amd").mkdir()
    amd = LoopbackIndex(tmp_path / "amd")
    tables = world.catalog.rocm
    indexes = tuple(
        replace(row, url=amd.url if row.key == "rocm10" else world.pypi.url) for row in tables.amd_indexes.rows
    )
    world.catalog = with_tables(world.catalog, rocm=with_rows(tables, amd_indexes=indexes))
    add_torch(amd, "2.15.0", "rocm10.2.0")
    add_torch(amd, "2.15.0", "rocm10.2.0", platform=WINDOWS)
    monkeypatch.setattr(Catalog, "index_url", lambda _self, _variant, _torch="": world.own.url)
    renewal = renewed(Sources(LiveHost()), world.catalog, TODAY)
    after = renewal.found.tables.rocm
    new = after.amd_releases.rows[-1]
    assert (new.torch, new.rocm, new.index, new.systems) == ("2.15.0", "10.2.0", "rocm10", ("linux", "windows"))
    assert set(renewal.found.changed) == {"rocm"}
    assert [one.status for one in renewal.listing.answers].count("ok") == len(renewal.listing.answers)
    amd.trouble["torch"] = 503
    down = renewed(Sources(LiveHost()), world.catalog, TODAY)
    assert [one for one in down.listing.unchecked if amd.url in str(one)]
    assert down.found.changed == {}
    amd.close()
