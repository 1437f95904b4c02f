"""The table of ONNX Runtimes: names, versions, and what it shares with the other tables."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from tables import each

from assistant.catalog import load_catalog
from assistant.catalog.catalog import (
    CLASH,
    has_wheel,
    is_build,
    maker_by_name,
    runtime_builds,
    runtime_plugins,
)
from assistant.catalog.companions import find_companion, installed_of_clash
from assistant.catalog.tables import rows

PARTS = ("builds", "plugins", "catalogs")


def test_names_are_written_as_installers_write_them_and_successors_are_known():
    """What ended names the day, and leads to a row that has not ended."""
    listed = [row for part in PARTS for row in rows(f"onnxruntimes.{part}")]
    for row in listed:
        name = Requirement(row.requirement).name
        assert name == canonicalize_name(name)
        assert SpecifierSet(row.python)
    for row in rows("onnxruntimes.builds"):
        assert bool(row.ended) == bool(row.ended_on) == bool(re.fullmatch(r"20\d\d-\d\d-\d\d", row.ended_on))
        if row.successor:
            next_ = next(one for one in listed if one.requirement == row.successor)
            assert not getattr(next_, "ended", "")


def test_every_build_is_part_of_the_clash_and_no_plug_in_is():
    """Builds write one folder; a plug-in has its own."""
    builds = dict.fromkeys(runtime_builds(), "1.20.0")
    assert set(installed_of_clash(CLASH, builds)) == set(builds)
    assert installed_of_clash(CLASH, dict.fromkeys((*runtime_plugins(), "windowsml"), "9.0")) == ()


@each(
    ("line", "build"),
    [
        ("onnxruntime", True),
        ("onnxruntime-windowsml==1.30.0.202609102321", True),
        ("onnxruntime-qnn", False),
        ("onnxruntime-qnn==2.7.0", False),
        ("onnxruntime-qnn<2", True),
        ("onnxruntime-ep-openvino", False),
        ("onnxruntime-extensions", False),
        ("windowsml", False),
    ],
)
def test_what_owns_the_module(line, build):
    """onnxruntime-qnn was a build until 1.x and is a plug-in since 2.0."""
    need = Requirement(line)
    assert is_build(need.name, need.specifier) is build


def test_plug_ins_can_be_tried():
    """The line that tries one registers its library; it is that of the module that the row names."""
    for name, row in runtime_plugins().items():
        call = find_companion(name).call
        assert row.module in call
        assert "register_execution_provider_library" in call


def test_what_plans_bring_has_its_pythons_in_the_refreshed_table():
    """The newest wheels' Pythons are among those of all wheels."""
    for package in ("onnxruntime-windowsml", "onnxruntime-directml"):
        row, basic = runtime_builds()[package], load_catalog().by("torch.basics", "package", "cuda")[package, None]
        assert sorted(row.platforms) == sorted(basic.pythons)
        assert all(tag in basic.pythons["windows_amd64"] for tag in ("311", "312", "313", "314"))


def test_makers_without_a_member_of_their_own_are_told_by_name():
    """An unknown name is nobody's."""
    names = ("Qualcomm(R) Adreno(TM) X1-85 GPU", "Snapdragon X Plus NPU")
    assert {maker_by_name(name) for name in names} == {"qualcomm"}
    assert maker_by_name("Moore Threads MTT S80") == maker_by_name("Radeon") == ""


def test_wheels_by_platform_and_python():
    """QNN computes on Arm alone, and for Python 3.11 to 3.14."""
    qnn = runtime_plugins()["onnxruntime-qnn"]
    assert has_wheel(qnn, "windows_arm64", "3.12")
    assert not has_wheel(qnn, "windows_arm64", "3.10")
    assert not has_wheel(qnn, "windows_amd64", "3.12")
