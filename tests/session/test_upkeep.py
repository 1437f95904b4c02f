"""The tables renewed from real indexes on loopback: what is asked of them, what is learnt, and what is said."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogs import catalog_as_of, with_rows, with_tables
from loopback import LoopbackIndex
from torch_wheels import ARM, LINUX, WINDOWS, add_torch

from assistant.catalog import Catalog
from assistant.catalog.tables import Row
from assistant.host.live import LiveHost
from assistant.host.web import read_index_page, read_required_versions
from assistant.install import Sources
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session import upkeep
from assistant.session.upkeep import Renewal, renew

pytestmark = [pytest.mark.process, pytest.mark.full]

TODAY = "2027-01-15"
CARD = Gpu(vendor=Vendor.NVIDIA, name="RTX 4090", compute_capability="8.9")
RTX = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", nvidia_driver="650.10", gpus=(CARD,))
RADEON = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", gpus=(Gpu(vendor=Vendor.AMD, gfx="gfx1100"),))


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

    def renew(self, index: str = "") -> Renewal:
        """Refresh the tables by the index that is named, for a user whose pip asks this PyPI, and go on with them."""
        renewal = renew(Sources(LiveHost(), index_url=index or self.own.url), self.catalog, TODAY)
        self.catalog = with_tables(self.catalog, renewal.found.tables)
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


def unchecked(renewal: Renewal) -> list[str]:
    """Give the sentences on what was not checked."""
    return [str(one.sentence) for one in renewal.answers if one.status == "unchecked"]


def serve(monkeypatch: pytest.MonkeyPatch, index: LoopbackIndex, pages: dict[str, bytes]) -> None:
    """Let an index hold some pages of links alone."""

    def answer(path: str) -> tuple[int, str, bytes]:
        page = pages.get(path.removeprefix("/simple/"))
        return (404, "text/plain", b"") if page is None else (200, "text/html", page)

    monkeypatch.setattr(index, "answer", answer)


def links(*names: str) -> bytes:
    """Write a page as PyTorch's index does, with the hashes of each file and of its metadata, which nobody can pack."""
    made = ((name, hashlib.sha256(name.encode()).hexdigest()) for name in names)
    line = '<a href="/whl/{0}#sha256={1}" data-dist-info-metadata="sha256={2}" data-core-metadata="sha256={2}">{0}</a>'
    return "\n".join(line.format(name, digest, digest[::-1]) for name, digest in made).encode()


@pytest.mark.parametrize("speaks_json", [False, True], ids=["PEP 503", "PEP 691"])
def test_indexes_that_hold_what_is_known_change_nothing(world, speaks_json):
    """Nothing would be written, and no wheel is read."""
    world.own.speaks_json = world.pypi.speaks_json = speaks_json
    renewal = world.renew()
    assert renewal.found == ({}, ())
    assert not [path for path in (*world.own.requests, *world.pypi.requests) if ".whl" in path]
    assert [one.status for one in renewal.answers] == ["ok", "ok"]


def test_a_new_release_is_known_with_its_builds_and_its_pairs(world):
    """Builds come from pages, pairs from PyPI's JSON; the code of a build is assumed as in the one before."""
    for build, platform in (("cu135", LINUX), ("cu135", WINDOWS), ("rocm11.0", LINUX), ("cpu", LINUX)):
        add_torch(world.own, "2.16.0", build, platform=platform)
    add_torch(world.own, "2.14.2", "cpu")
    for index in (world.own, world.pypi):
        index.add("torchvision", "0.29.3", f"cp312-cp312-{LINUX}", requires=("torch==2.14.2",))
        index.add("torchvision", "0.31.0", f"cp312-cp312-{LINUX}", requires=("numpy", "torch==2.16.0", "x; extra=='y'"))
    add_torch(world.pypi, "2.16.0")
    add_torch(world.pypi, "2.16.0", platform=ARM)
    renewal = world.renew()
    assert unchecked(renewal) == []
    release = world.catalog.release("2.16.0")
    assert release.variants["linux_x86_64"] == ("cu135", "rocm11.0", "cpu")
    assert (release.torchvision, world.catalog.release("2.14.2").torchvision) == (("0.31.0",), ("0.29.3",))
    for machine, variant in ((RTX, "cu135"), (RADEON, "rocm11.0")):
        choice = make_plans(machine, world.catalog).choice
        assert (choice.torch, choice.variant) == ("2.16.0", variant)
        assert any("is assumed to hold code for" in str(reason) for reason in choice.reasons)


@pytest.mark.parametrize("trouble", [503, 403, "stall", "page"])
def test_an_index_that_is_down_takes_nothing_away(world, monkeypatch, trouble):
    """What the other one lists is taken over; the one that is down is named once, and asked again the next time."""
    monkeypatch.setattr(upkeep, "PAGE_SECONDS", 1.0)
    add_torch(world.own, "2.16.0", "cu132")
    add_torch(world.pypi, "2.16.0")
    before = world.catalog
    world.own.trouble["torch"] = trouble
    (sentence,) = unchecked(world.renew())
    assert world.own.url in sentence
    assert {row.version for row in before.releases} < {row.version for row in world.catalog.releases}
    old = before.release("2.15.0")
    assert world.catalog.release("2.15.0") == replace(old, as_of=before.as_of)
    assert world.catalog.release("2.16.0").pypi["linux_x86_64"] == "cu132"
    del world.own.trouble["torch"]
    world.renew()
    assert world.catalog.release("2.16.0").variants["linux_x86_64"] == ("cu132",)


def test_an_index_that_lists_rubbish_teaches_nothing(world, monkeypatch):
    """Names that are none, no names at all, and JSON that breaks off."""
    serve(monkeypatch, world.own, {"torch/": links("torch-9.9.whl", "torch-x-y-z-a.whl", "../../etc/passwd")})
    renewal = world.renew()
    assert renewal.found == ({}, ())
    assert "perhaps it has moved" in unchecked(renewal)[0]
    for rubbish in (b"<![x[<a href=", b'{"files": [{"filename": 3}]}', b"[" * 100_000, b"\xff\xfe"):
        assert not read_index_page("text/html", rubbish)
        assert read_index_page("application/vnd.pypi.simple.v1+json", rubbish) is None
        assert read_required_versions(rubbish, "0.30.0", "torch") == ""


def test_only_folders_of_variants_that_may_bring_news_are_asked_for(world, monkeypatch):
    """An index that lists a folder for each variant is asked for the tables' recent ones, and for newer ones."""
    folders = b'<a href="cu137/">a</a><a href="/whl/cu92/">b</a><a href="lost+found/">c</a><a href="d.html">d</a>'
    serve(monkeypatch, world.own, {"": folders, "cu137/torch/": links(f"torch-2.16.0+cu137-cp312-cp312-{LINUX}.whl")})
    renewal = world.renew()
    assert world.catalog.release("2.16.0").variants == {"linux_x86_64": ("cu137",)}
    assert unchecked(renewal) == []
    assert [path for path in world.own.requests if path.endswith("/torch/")] == ["/simple/cu137/torch/"]


def test_where_builds_are_in_no_list_the_known_variants_are_asked_for(world, monkeypatch):
    """What they hold is learnt, and that another variant would be missed is said."""
    serve(monkeypatch, world.own, {"cu130/torch/": links(f"torch-2.16.0+cu130-cp312-cp312-{LINUX}.whl")})
    (sentence,) = unchecked(world.renew())
    assert "a new CUDA or ROCm would be missed" in sentence
    assert world.catalog.release("2.16.0").variants == {"linux_x86_64": ("cu130",)}


def test_a_mirror_tells_the_pair_of_the_newest_companion(world, monkeypatch):
    """It has PyPI's JSON for projects, if at all; a pair that it does not tell stays unknown."""
    versions = ("0.30.0", "0.31.0")
    for torch, companion in zip(("2.16.0", "2.17.0"), versions, strict=True):
        add_torch(world.own, torch, "cpu")
        world.own.add("torchvision", f"{companion}+cpu", f"cp312-cp312-{LINUX}")
    told = b'{"info": {"version": "0.31.0", "requires_dist": ["torch==2.17.0"]}}'
    serve(monkeypatch, world.pypi, {"torch/": links(), "/pypi/torchvision/json": told})
    assert unchecked(world.renew()) == []
    assert [world.catalog.release(torch).torchvision for torch in ("2.16.0", "2.17.0")] == [(), ("0.31.0",)]
    assert world.pypi.requests.count("/pypi/torchvision/json") == 1


def test_a_refresh_transfers_a_megabyte_at_most(world, monkeypatch):
    """A page that is larger than what is left is not read to its end, and named; what others list counts."""
    folders = b'<a href="cu132/">cu132</a><a href="cpu/">cpu</a>'
    long = links(*(f"torch-2.{n}.0+cpu-cp312-cp312-{LINUX}.whl" for n in range(3000)))
    assert len(long) > upkeep.MOST_BYTES
    build = links(f"torch-2.16.0+cu132-cp312-cp312-{LINUX}.whl")
    serve(monkeypatch, world.own, {"": folders, "cu132/torch/": build, "cpu/torch/": long})
    renewal = world.renew()
    assert renewal.transferred < 10_000
    assert unchecked(renewal) == [f"Not checked: {world.own.url}/cpu/torch/ (it is too large)."]
    assert world.catalog.release("2.16.0").variants == {"linux_x86_64": ("cu132",)}


def test_a_folder_serves_as_an_index(world, tmp_path):
    """As an address and as a path."""
    (tmp_path / "folder" / "torch").mkdir(parents=True)
    page = tmp_path / "folder" / "torch" / "index.html"
    for version, index in (("2.16.0", page.parents[1].as_uri()), ("2.17.0", str(page.parents[1]))):
        page.write_bytes(links(f"torch-{version}+cpu-cp312-cp312-{LINUX}.whl"))
        assert unchecked(world.renew(index)) == []
        assert world.catalog.newest_torch == version


def test_amds_own_indexes_are_asked(world, tmp_path, monkeypatch):
    """A new ROCm for a known torch is a release; a server that is down is named."""
    (tmp_path / "amd").mkdir()
    amd = LoopbackIndex(tmp_path / "amd")
    indexes = [Row({**row, "url": amd.url}) for row in world.catalog.rows("rocm.amd_indexes") if row.key == "rocm10"]
    world.catalog = with_rows(world.catalog, {"rocm.amd_indexes": indexes})
    add_torch(amd, "2.15.0", "rocm10.2.0")
    add_torch(amd, "2.15.0", "rocm10.2.0", platform=WINDOWS)
    monkeypatch.setattr(Catalog, "index_url", lambda _self, _variant, _torch="": world.own.url)
    renewal = renew(Sources(LiveHost()), world.catalog, TODAY)
    new = renewal.found.tables["rocm.amd_releases"].rows[-1]
    assert (new.torch, new.rocm, new.index, new.systems) == ("2.15.0", "10.2.0", "rocm10", ("linux", "windows"))
    assert list(renewal.found.tables) == ["rocm.amd_releases"]
    assert {one.status for one in renewal.answers} == {"ok"}
    amd.trouble["torch"] = 503
    down = renew(Sources(LiveHost()), world.catalog, TODAY)
    assert [one for one in unchecked(down) if amd.url in one]
    assert down.found.tables == {}
    amd.close()
