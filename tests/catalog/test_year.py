"""A simulated year of indexes: after each of twelve steps every machine gets what a table gives, judged beforehand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from catalogs import catalog_as_of, with_tables
from tables import each

from assistant.catalog import Catalog
from assistant.catalog.refresh import Seen, refresh_tables
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.model.record import render_messages, to_json
from assistant.plan import make_plans

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


def listed(build: dict[str, Any]) -> Iterator[Seen]:
    """Give the wheels of a build; the code that they hold is told by no page."""
    site, _slash, key = build["source"].partition("/")
    local = {"pytorch": f"+{key}", "amd": f"+rocm{build.get('rocm')}", "pypi": ""}[site]
    for platform in build["platforms"]:
        for python in build["pythons"]:
            tags = tag(python, platform, build.get("glibc", "2_28"), build.get("macos", "14_0"))
            name = f"torch-{build['torch']}{'' if platform == 'macos_arm64' else local}-{tags}.whl"
            yield Seen(key if site == "amd" else site, name)


def companions(step: int) -> Iterator[Seen]:
    """Give the wheels of torchvision and torchaudio on PyPI."""
    out = {build["torch"] for build in builds(step)}
    for project in ("torchvision", "torchaudio"):
        for torch, version in YEAR[project].items():
            for python in ("312", "313", "314", "315") if torch in out else ():
                yield Seen("pypi", f"{project}-{version}-{tag(python, 'linux_x86_64')}.whl")


def bounds(project: str, version: str) -> str:
    """Give the torch that a torchvision or torchaudio goes with, as PyPI's JSON tells it."""
    return next((f"=={torch}" for torch, one in YEAR[project].items() if one == version), "")


def shipped() -> Iterator[Seen]:
    """Give the pages of the day on which the tables were made."""
    for row in catalog_as_of("2.15.0").releases:
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
                    yield Seen("pypi" if variant == "pypi" else "pytorch", f"torch-{row.version}{local}-{tags}.whl")


@cache
def catalog_at(step: int) -> Catalog:
    """Refresh the tables step by step, each time from those of the step before."""
    before = catalog_at(step - 1) if step else catalog_as_of("2.15.0")
    seen = (*shipped(), *(one for build in builds(step) for one in listed(build)), *companions(step))
    return with_tables(before, refresh_tables(before, seen, bounds, YEAR["steps"][step]["date"]).tables)


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
        said = to_json(render_messages(make_plans(msgspec.convert(case["machine"], Machine), catalog)))
        for row in YEAR["false"]:
            spared, _colon, steps = row.get("except", "").partition(":")
            if spared == case["class"] and during(steps, step):
                continue
            if during(row["steps"], step) and re.search(row["classes"], case["class"]) and re.search(row["says"], said):
                found.append(f"{case['name']}: {row['says']}")
    return found


@each("step", STEPS)
def test_every_machine_gets_what_the_table_gives(step):
    """No code is changed from one step to the next: what is new comes from pages alone."""
    assert missed(step, catalog_at(step)) == []


@each("step", STEPS)
def test_nothing_false_is_said(step):
    """No end of support without a row, no newest release that is not, no driver that nobody knows."""
    assert untrue(step, catalog_at(step)) == []
