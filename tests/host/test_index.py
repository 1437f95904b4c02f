"""The look at package sources, against a real HTTP server and real folders."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from unearth import PackageFinder

from assistant.host.index import Found, find_wheels, list_each, wheel_sizes, wheel_version
from assistant.model.machine import Machine

LINUX = "cp311-cp311-manylinux_2_28_x86_64"


def look(*indexes: str, find_links: tuple[str, ...] = (), python: str = "3.11", **told: object) -> Found:
    """Look for torch on a usual Linux machine, unless told otherwise."""
    facts = {"os": "linux", "arch": "x86_64"} | {
        name: told.pop(name) for name in ("os", "arch", "glibc") if name in told
    }
    how = {"timeout": 5.0, **told}
    return find_wheels("torch", Machine(**facts), python, index_urls=indexes, find_links=find_links, **how)


class TestFindWheels:
    """Which wheels the sources hold for a target."""

    @pytest.mark.parametrize("speaks_json", [False, True], ids=["PEP 503", "PEP 691"])
    def test_lists_wheels_newest_first_with_hash_and_local_version(self, loopback_index, speaks_json):
        """Wheels come newest first, each with its address, hash and local version tag."""
        loopback_index.speaks_json = speaks_json
        for version in ("2.9.1", "2.13.0+cpu", "2.13.0"):
            loopback_index.add("torch", version, LINUX)
        found = look(loopback_index.url)
        assert [str(wheel_version(wheel)) for wheel in found.wheels] == ["2.13.0+cpu", "2.13.0", "2.9.1"]
        assert all(len(wheel.sha256) == 64 and wheel.url.startswith("http") for wheel in found.wheels)
        assert [asked.status for asked in found.asked] == ["ok"]

    @pytest.mark.parametrize(
        ("tag", "target"),
        [
            ("cp311-cp311-win_amd64", {"os": "windows", "arch": "AMD64"}),
            ("cp313-cp313t-win_amd64", {"os": "windows", "python": "3.13t"}),
            ("cp311-cp311-win_arm64", {"os": "windows", "arch": "ARM64"}),
            ("cp312-none-macosx_11_0_arm64", {"os": "macos", "arch": "arm64", "python": "3.12.4"}),
            ("cp311-none-macosx_10_9_x86_64", {"os": "macos"}),
            ("cp311-cp311-manylinux_2_28_aarch64", {"arch": "aarch64"}),
            ("cp311-cp311-manylinux2014_x86_64", {"glibc": "2.17"}),
            ("cp311-cp311-linux_x86_64", {}),
            ("py3-none-any", {}),
        ],
    )
    def test_keeps_the_wheel_of_the_target_only(self, loopback_index, tag, target):
        """Only the wheel whose tags the target takes is listed."""
        loopback_index.add("torch", "2.13.0", tag)
        loopback_index.add("torch", "2.14.0", "cp310-cp310-manylinux_2_28_x86_64")
        loopback_index.add("torch", "2.15.0", "cp311-cp311-manylinux_2_28_ppc64le")
        assert [wheel.filename for wheel in look(loopback_index.url, **target).wheels] == [f"torch-2.13.0-{tag}.whl"]

    def test_leaves_out_what_needs_a_newer_glibc(self, loopback_index):
        """A wheel for glibc 2.28 does not fit a machine with 2.17."""
        loopback_index.add("torch", "2.13.0", LINUX)
        assert look(loopback_index.url, glibc="2.17").asked[0].status == "nothing"

    def test_tells_nothing_there_from_could_not_look(self, loopback_index):
        """An index without the project says so; one that fails, refuses or is none was not looked through."""
        assert [asked.status for asked in look(loopback_index.url).asked] == ["nothing"]
        for trouble, reason in ((500, "HTTP 500"), (401, "HTTP 401"), ("page", "it is not a package index")):
            loopback_index.trouble["torch"] = trouble
            found = look(loopback_index.url)
            assert [(asked.status, asked.reason) for asked in found.asked] == [("unreachable", reason)]

    def test_a_stalled_source_does_not_hold_up_the_others(self, loopback_index, tmp_path):
        """What the other sources have is told in time, and the stalled one is told as not looked through."""
        loopback_index.trouble["torch"] = "stall"
        (tmp_path / "links").mkdir()
        wheel = loopback_index.add("torch", "2.13.0+cpu", LINUX).rename(
            tmp_path / "links" / f"torch-2.13.0+cpu-{LINUX}.whl"
        )
        began = time.monotonic()
        found = look(loopback_index.url, find_links=(str(wheel.parent),), timeout=0.5)
        assert time.monotonic() - began < 3
        assert [asked.status for asked in found.asked] == ["unreachable", "ok"]
        assert [wheel.where for wheel in found.wheels] == ["find-links"]

    def test_names_the_reason_when_nobody_answers(self):
        """A port where nobody listens gives a reason, not an exception."""
        (asked,) = look("http://127.0.0.1:9/simple").asked
        assert asked.status == "unreachable"
        assert asked.reason

    @pytest.mark.parametrize("shape", ["address", "path"])
    def test_looks_into_folders(self, loopback_index, tmp_path, shape):
        """A find-links folder, as path or file address, gives wheels with their size; a missing one is told."""
        wheel = loopback_index.add("torch", "2.13.0+cpu", LINUX)
        folder = wheel.parent
        gone = tmp_path / "gone"
        links = (folder.as_uri(), gone.as_uri()) if shape == "address" else (str(folder), str(gone))
        found = look(find_links=links)
        assert [(asked.status, asked.reason) for asked in found.asked] == [
            ("ok", ""),
            ("unreachable", "there is no such folder"),
        ]
        assert [(wheel.where, wheel.size) for wheel in found.wheels] == [("find-links", wheel.stat().st_size)]

    def test_looks_into_an_index_on_disk(self, loopback_index):
        """A file: index, as company mirrors on a share are, is read like one on a server."""
        wheel = loopback_index.add("torch", "2.13.0", LINUX)
        (wheel.parent / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
        found = look(loopback_index.folder.as_uri(), where="official")
        assert [(wheel.where, Path(wheel.filename).suffix) for wheel in found.wheels] == [("official", ".whl")]

    def test_never_shows_a_password(self, loopback_index):
        """Names and passwords in an index's address reach neither the wheels nor the account of the sources."""
        loopback_index.add("torch", "2.13.0", LINUX)
        for address in (loopback_index.url, "http://127.0.0.1:9/simple"):
            found = look(address.replace("://", "://joe:s3cret@"))
            assert "s3cret" not in repr(found)
            assert found.asked[0].source == address

    def test_asks_nobody_without_sources(self):
        """No source is no wheel, and PyPI is not asked in its place."""
        assert look() == Found()


class TestWheelSizes:
    """How large files are, without fetching them."""

    def test_tells_sizes_on_servers_and_disks(self, loopback_index):
        """Sizes come by HEAD or from the disk; a file that is not there is left out."""
        wheel = loopback_index.add("torch", "2.13.0", LINUX)
        address = f"{loopback_index.url}/torch/{wheel.name}"
        sizes = wheel_sizes([address, wheel.as_uri(), f"{loopback_index.url}/none/none.whl", "file:///none.whl"])
        assert sizes == {address: wheel.stat().st_size, wheel.as_uri(): wheel.stat().st_size}

    def test_keeps_its_time_limit(self, loopback_index):
        """A server that does not answer costs the limit once, not once per file."""
        loopback_index.trouble["torch"] = "stall"
        began = time.monotonic()
        assert wheel_sizes([f"{loopback_index.url}/torch/{n}.whl" for n in range(40)], timeout=0.5) == {}
        assert time.monotonic() - began < 3


class TestListEach:
    """What indexes hold of several projects, whatever it runs on."""

    @pytest.mark.parametrize("speaks_json", [False, True], ids=["PEP 503", "PEP 691"])
    def test_a_page_is_read_as_unearth_reads_it(self, loopback_index, speaks_json):
        """Every wheel with its address and hash; neither archives, nor other projects' files, nor broken names."""
        loopback_index.speaks_json = speaks_json
        for name, version in (("torch", "2.9.1"), ("torch", "2.13.0+cpu"), ("numpy", "1.0")):
            loopback_index.add(name, version, LINUX)
        (loopback_index.folder / "torch" / "torch-2.0.tar.gz").write_bytes(b"")
        (loopback_index.folder / "torch" / "torch-nonsense.whl").write_bytes(b"")
        held = list_each(["torch", "numpy", "absent"], index_urls=[loopback_index.url], timeout=5.0)
        told = {name: found for (name, _url), found in held.items()}
        finder = PackageFinder(index_urls=[loopback_index.url], ignore_compatibility=True, only_binary=["torch"])
        known = {
            (one.link.filename, one.link.url_without_fragment, one.link.hash_option["sha256"][0])
            for one in finder.find_all_packages("torch")
        }
        assert {(one.filename, one.url, one.sha256) for one in told["torch"].wheels} == known
        assert len(known) == 2
        assert [asked.status for asked in told["absent"].asked] == ["nothing"]
        assert len(told["numpy"].wheels) == 1
