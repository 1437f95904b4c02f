"""The tables renewed from real indexes on loopback: their pages, and the metadata of their wheels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import LoopbackIndex
from torch_wheels import ARM, LINUX, WINDOWS, add_torch

from assistant.catalog import Catalog, load_catalog
from assistant.catalog.refresh import Kept
from assistant.host.live import LiveHost
from assistant.install import Sources
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.upkeep import Renewal, looked_over, renewed

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
    return Catalog(tables.torch, before.cuda, tables.rocm, before.directml, before.systems)


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
    add_torch(world.pypi, "2.16.0", requires=("triton==3.10.0",))
    add_torch(world.pypi, "2.16.0", platform=ARM)
    world.pypi.add("torchvision", "0.31.0", f"cp312-cp312-{LINUX}", requires=("torch>=2.16",))
    renewal = world.renew()
    assert not renewal.read.unread
    assert not any(path.endswith(".whl") for path in (*world.own.requests, *world.pypi.requests))
    release = world.catalog.release("2.16.0")
    assert release.variants["linux_x86_64"] == ("cu135", "rocm11.0", "cpu")
    assert release.torchvision == ("0.31.0",)
    triton = next(row for row in renewal.found.tables.companions.companions.rows if row.name == "triton")
    assert (triton.ranges[-1].versions, triton.ranges[-1].torch) == ("==3.10.0", ("==2.16.0",))
    assert set(renewal.found.changed) == {"torch", "companions"}
    choice = make_plans(RTX, world.catalog).choice
    assert (choice.torch, choice.variant) == ("2.16.0", "cu135")
    assert any("is assumed to hold code for" in str(reason) for reason in choice.reasons)
    amd = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", gpus=(Gpu(vendor=Vendor.AMD, gfx="gfx1100"),))
    choice = make_plans(amd, world.catalog).choice
    assert choice.variant == "rocm11.0"
    assert any("is assumed to hold code for" in str(reason) for reason in choice.reasons)


def test_a_patch_of_an_old_line_is_known(world):
    """It takes what nobody tells from the release before it, not from the newest."""
    add_torch(world.own, "2.14.2", "cu126")
    renewal = world.renew()
    assert [str(one) for one in renewal.found.changes] == ["torch 2.14.2 is new: cu126."]
    release = world.catalog.release("2.14.2")
    assert (release.glibc, release.macos) == ({"linux": "2.28"}, world.catalog.release("2.14.1").macos)
    assert release.pypi == {}  # PyPI answered, and does not hold it
    assert world.catalog.newest_torch == "2.15.0"


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


def test_metadata_that_cannot_be_had_leave_the_pair_unknown(world, monkeypatch):
    """The release is there; the next refresh tries again."""
    add_torch(world.own, "2.16.0", "cpu")
    world.pypi.add("torchvision", "0.31.0", f"cp312-cp312-{LINUX}", requires=("torch==2.16.0",))
    answer = world.pypi.answer

    def without(path: str) -> tuple[int, str, bytes]:
        return (404, "text/plain", b"") if path.endswith(".metadata") else answer(path)

    with monkeypatch.context() as patch:
        patch.setattr(world.pypi, "answer", without)
        (sentence,) = world.renew().read.unread
    assert "torchvision-0.31.0" in str(sentence)
    assert "HTTP 404" in str(sentence)
    assert world.catalog.release("2.16.0").torchvision == ()
    world.renew()
    assert world.catalog.release("2.16.0").torchvision == ("0.31.0",)


@pytest.mark.parametrize(
    "content", [b"Name: torchvision\nVersion: 0.30.9\n", b"\xff\x00", b"x" * (2 << 20)], ids=["other", "bytes", "large"]
)
def test_metadata_of_something_else_tell_nothing(world, monkeypatch, content):
    """What they say must fit the file's name, and be no more than metadata are."""
    add_torch(world.own, "2.16.0", "cpu")
    world.pypi.add("torchvision", "0.31.0", f"cp312-cp312-{LINUX}", requires=("torch==2.16.0",))
    answer = world.pypi.answer

    def other(path: str) -> tuple[int, str, bytes]:
        return (200, "text/plain", content) if path.endswith(".metadata") else answer(path)

    monkeypatch.setattr(world.pypi, "answer", other)
    (sentence,) = world.renew().read.unread
    assert "torchvision-0.31.0" in str(sentence)
    assert world.catalog.release("2.16.0").torchvision == ()


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
    add_torch(world.own, "2.16.0", "cu135")
    renewal = looked_over(world.sources, world.catalog, TODAY)
    assert [str(one) for one in renewal.found.changes] == ["torch 2.16.0 is new: cu135."]
    assert not any(path.endswith(".whl") for path in (*world.own.requests, *world.pypi.requests))


def test_refreshed_tables_are_read_again(world):
    """What is written can be read: every table goes through JSON."""
    add_torch(world.own, "2.16.0", "cu135")
    import msgspec  # noqa: PLC0415 - for this one test

    for table in world.renew().found.changed.values():
        assert msgspec.json.decode(json.dumps(msgspec.to_builtins(table)), type=type(table)) == table


def test_amds_own_indexes_are_asked(world, tmp_path, monkeypatch):
    """A new ROCm for a known torch is a release."""
    (tmp_path / "amd").mkdir()
    amd = LoopbackIndex(tmp_path / "amd")
    tables = world.catalog.rocm
    indexes = tuple(
        replace(row, url=amd.url if row.key == "rocm10" else world.pypi.url) for row in tables.amd_indexes.rows
    )
    known, rocm = world.catalog, replace(tables, amd_indexes=replace(tables.amd_indexes, rows=indexes))
    world.catalog = Catalog(known.torch, known.cuda, rocm, known.directml, known.systems)
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
