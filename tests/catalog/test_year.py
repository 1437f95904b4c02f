"""A simulated year of indexes: after each of twelve steps every machine gets what a table gives, judged beforehand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec
import pytest
from loopback import LoopbackIndex
from tables import each

from assistant.catalog import Catalog, load_catalog
from assistant.catalog.refresh import Metadata, Seen, kept, refreshed, to_read
from assistant.host.live import LiveHost
from assistant.install import Sources
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.model.record import replace, to_json, with_words
from assistant.plan import make_plans
from assistant.session.upkeep import renewed

pytestmark = pytest.mark.full

YEAR = json.loads((Path(__file__).parent / "year.json").read_text(encoding="utf-8"))
STEPS = [step["step"] for step in YEAR["steps"]]
PLATFORMS = {
    "linux_x86_64": "manylinux_{glibc}_x86_64",
    "linux_aarch64": "manylinux_{glibc}_aarch64",
    "windows_amd64": "win_amd64",
    "windows_arm64": "win_arm64",
    "macos_arm64": "macosx_{macos}_arm64",
    "macos_x86_64": "macosx_10_9_x86_64",
}


def tag(python: str, platform: str, glibc: str = "2_28", macos: str = "14_0") -> str:
    """Give the tags of a wheel's file name."""
    return f"cp{python.rstrip('t')}-cp{python}-{PLATFORMS[platform].format(glibc=glibc, macos=macos)}"


def builds(step: int) -> Iterator[dict[str, Any]]:
    """Give what lies on the pages that answer at a step; what an index held before, it holds still."""
    down = tuple(YEAR["steps"][step].get("trouble", ()))
    for build in YEAR["builds"]:
        if build["step"] <= step and not any(re.match(page.replace("*", ""), build["source"]) for page in down):
            yield build


def listed(build: dict[str, Any]) -> Iterator[tuple[Seen, Metadata]]:
    """Give the wheels of a build with their metadata; the code that they hold is told by no page."""
    site, _slash, key = build["source"].partition("/")
    local = {"pytorch": f"+{key}", "amd": f"+rocm{build.get('rocm')}", "pypi": ""}[site]
    for platform in build["platforms"]:
        for python in build["pythons"]:
            tags = tag(python, platform, build.get("glibc", "2_28"), build.get("macos", "14_0"))
            plain = platform == "macos_arm64"
            name = f"torch-{build['torch']}{'' if plain else local}-{tags}.whl"
            source = {"pytorch": key, "amd": f"amd-index/{key}", "pypi": "pypi"}[site]
            facts = Metadata(name="torch", version=build["torch"] + local)
            yield Seen("pypi" if plain else source, name, url=f"https://index.example/{name}"), facts


def companions(step: int) -> Iterator[tuple[Seen, Metadata]]:
    """Give the wheels of torchvision and torchaudio on PyPI, which say what torch they go with."""
    out = {build["torch"] for build in builds(step)}
    for project in ("torchvision", "torchaudio"):
        for torch, version in YEAR[project].items():
            for python in ("312", "313", "314", "315") if torch in out else ():
                name = f"{project}-{version}-{tag(python, 'linux_x86_64')}.whl"
                facts = Metadata(name=project, version=version, requires=(f"torch=={torch}",))
                yield Seen("pypi", name, url=f"https://index.example/{name}"), facts


def shipped() -> Iterator[Seen]:
    """Give the pages of the day on which the tables were made."""
    for row in load_catalog().releases:
        for platform, variants in row.variants.items():
            for variant in variants:
                for python in row.pythons.get(platform, row.pythons["any"]):
                    local = "" if variant == "pypi" else f"+{variant}"
                    floor = (
                        row.glibc.get(f"{platform}/{variant}")
                        or row.glibc.get(platform)
                        or row.glibc.get("linux", "2.17")
                    )
                    tags = tag(python, platform, floor.replace(".", "_"), row.macos.wheel.replace(".", "_"))
                    yield Seen(variant, f"torch-{row.version}{local}-{tags}.whl")


@cache
def catalog_at(step: int) -> Catalog:
    """Refresh the tables step by step, each time from those of the step before."""
    before = catalog_at(step - 1) if step else load_catalog()
    found = dict(pair for build in builds(step) for pair in listed(build)) | dict(companions(step))
    seen = (*shipped(), *found)
    tables = kept(before)
    facts = {one.filename: found[one] for one in to_read(tables, seen) if one in found}
    after = refreshed(tables, seen, facts, YEAR["steps"][step]["date"]).tables
    return Catalog(after.torch, before.cuda, after.rocm, before.directml, before.systems)


def during(steps: str, step: int) -> bool:
    """Return whether a step is one of "3" or "4-6"."""
    first, _dash, last = steps.partition("-")
    return int(first) <= step <= int(last or first)


def right(machine: Machine, answer: Planning, wanted: Iterable[str]) -> bool:
    """Return whether the table has an answer: "cuda:cu130|cu132:2.16.0" (* is any build), "other-python" or "none"."""
    choice = answer.choice
    if choice is None:
        return "none" in wanted
    if "other-python" in wanted and not str(machine.python).startswith(choice.python):
        return True
    given = (choice.backend.value, choice.torch)
    rows = [row.split(":") for row in wanted if ":" in row]
    return any(
        given == (backend, torch) and {choice.variant, "*"} & {*builds.split("|")} for backend, builds, torch in rows
    )


def missed(step: int, catalog: Catalog) -> list[str]:
    """Name the machines that get another build at a step than the table gives."""
    found = []
    for case in YEAR["machines"]:
        row = next(row for row in YEAR["table"][case["class"]] if during(row["steps"], step))
        machine = msgspec.convert(case["machine"], Machine)
        answer = make_plans(machine, catalog)
        if not right(machine, answer, row["right"]):
            choice = answer.choice
            got = choice and f"{choice.backend.value}:{choice.variant}:{choice.torch}"
            found.append(f"{case['name']}: {got}, not {row['right']}: {row['why']}")
    return found


def untrue(step: int, catalog: Catalog) -> list[str]:
    """Name the sentences told at a step that the table calls false."""
    found = []
    for case in YEAR["machines"]:
        said = to_json(with_words(make_plans(msgspec.convert(case["machine"], Machine), catalog)))
        for row in YEAR["false"]:
            spared, _colon, steps = row.get("except", "").partition(":")
            if spared == case["class"] and during(steps, step):
                continue
            if during(row["steps"], step) and re.search(row["classes"], case["class"]) and re.search(row["says"], said):
                found.append(f"{case['name']}: {row['says']}")
    return found


@each("step", STEPS)
def test_every_machine_gets_what_the_table_gives(step):
    """No code is changed from one step to the next: what is new comes from pages and metadata alone."""
    assert missed(step, catalog_at(step)) == []


@each("step", STEPS)
def test_nothing_false_is_said(step):
    """No end of support without a row, no newest release that is not, no driver that nobody knows."""
    assert untrue(step, catalog_at(step)) == []


class YearIndex(LoopbackIndex):
    """An index with a folder for each variant, or with none; metadata are made when somebody reads them.

    `held` are the wheels by folder ("" for none) and project; `down` are the folders that answer with an error.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        super().__init__(folder)
        self.held: dict[str, dict[str, dict[str, Metadata | None]]] = {}
        self.down: dict[str, int] = {}

    def put(self, folder: str, project: str, name: str, facts: Metadata | None = None) -> None:
        """Put a wheel on a page."""
        self.held.setdefault(folder, {}).setdefault(project, {})[name] = facts

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Give the list of folders, the page of a project, or the metadata of a wheel."""
        parts = unquote(path.removeprefix("/simple")).strip("/").split("/")
        folder = parts.pop(0) if parts[0] in self.held.keys() - {""} else ""
        if status := self.down.get(folder):
            return status, "text/plain", b"down"
        if parts == [""] and "" not in self.held:
            return 200, "text/html", "\n".join(f'<a href="{one}/">{one}</a>' for one in self.held).encode()
        files = self.held.get(folder, {}).get(parts[0]) if parts else None
        if files is None:
            return 404, "text/plain", b"not found"
        if len(parts) > 1:
            facts = files[parts[1].removesuffix(".metadata")]
            assert parts[1].endswith(".metadata"), f"no wheel is downloaded: {parts[1]}"
            assert facts, f"nobody asks for what is known: {parts[1]}"
            needs = "".join(f"Requires-Dist: {line}\n" for line in facts.requires)
            return 200, "text/plain", f"Name: {facts.name}\nVersion: {facts.version}\n{needs}".encode()
        return 200, "text/html", "\n".join(f'<a href="{quote(name)}">{name}</a>' for name in files).encode()


class World(NamedTuple):
    """PyTorch's index with a folder for each variant, PyPI, and AMD's index for ROCm 10 before and after it moved."""

    own: YearIndex
    pypi: YearIndex
    amd: YearIndex
    moved: YearIndex

    def put_today(self, catalog: Catalog) -> None:
        """Put on the pages what the tables know already."""
        for seen in shipped():
            index, folder = (self.pypi, "") if seen.source == "pypi" else (self.own, seen.source)
            index.put(folder, "torch", seen.filename)
        for row in (one for one in catalog.amd_releases if one.index == "rocm10"):
            for tags in (tag(python, at) for python in row.pythons for at in ("linux_x86_64", "windows_amd64")):
                self.amd.put("", "torch", f"torch-{row.torch}+rocm{row.rocm}-{tags}.whl")

    def put_step(self, step: int) -> None:
        """Put on the pages what comes out at a step, and take those down that do not answer then."""
        for build in (one for one in YEAR["builds"] if one["step"] == step):
            for seen, facts in listed(build):
                index = self.pypi if seen.source == "pypi" else self.amd if "/" in seen.source else self.own
                index.put(seen.source if index is self.own else "", "torch", seen.filename, facts)
        for seen, facts in companions(step):
            self.pypi.put("", facts.name, seen.filename, facts)
        trouble = YEAR["steps"][step].get("trouble", {}).items()
        self.own.down = {one: to for one in self.own.held for page, to in trouble if fnmatch(f"pytorch/{one}", page)}
        for page, to in trouble:
            if page.startswith("amd/"):
                self.amd.down = {"": to}
        self.moved.held = self.amd.held


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Serve the indexes, and have the assistant and pip ask them."""
    world = World(*(YearIndex(tmp_path / name) for name in World._fields))
    settings = {"PIP_INDEX_URL": world.pypi.url, "PIP_CONFIG_FILE": "/dev/null"}
    for name, value in {**settings, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Catalog, "index_url", lambda _self, _variant, _torch="": world.own.url)
    yield world
    for index in world:
        index.close()


def at_amds(catalog: Catalog, url: str) -> Catalog:
    """Name the address of AMD's index for ROCm 10, as newer tables do."""
    rows = tuple(replace(row, url=url) for row in catalog.rocm.amd_indexes.rows if row.key == "rocm10")
    rocm = replace(catalog.rocm, amd_indexes=replace(catalog.rocm.amd_indexes, rows=rows))
    return Catalog(catalog.torch, catalog.cuda, rocm, catalog.directml, catalog.systems)


def unlike(unchecked: str, step: int) -> list[str]:
    """Name what a refresh should say at a step of sources that it could not ask, and what it should never say."""
    rows = [row for row in YEAR["told"] if during(row["steps"], step)]
    if not rows:
        return [unchecked] if unchecked else []
    silent = [row["says"] for row in rows if not re.search(row["says"], unchecked)]
    return silent + [row["never"] for row in rows if re.search(row["never"], unchecked)]


@pytest.mark.process
def test_the_year_over_http(world):
    """The same from real servers: what could not be asked is told, nothing known is lost, and all metadata are read."""
    catalog = at_amds(load_catalog(), world.amd.url)
    world.put_today(catalog)
    for step in STEPS:
        world.put_step(step)
        if "edition" in YEAR["steps"][step]:
            catalog = at_amds(catalog, world.moved.url)
        renewal = renewed(Sources(LiveHost()), catalog, YEAR["steps"][step]["date"])
        after = renewal.found.tables
        catalog = Catalog(after.torch, catalog.cuda, after.rocm, catalog.directml, catalog.systems)
        assert unlike("\n".join(map(str, renewal.listing.unchecked)), step) == []
        assert renewal.read.unread == ()
        assert (missed(step, catalog), untrue(step, catalog)) == ([], []), step
