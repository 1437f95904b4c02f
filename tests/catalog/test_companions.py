"""Companions of torch: the table is whole, and its answers are those of the makers' own documents."""

from __future__ import annotations

import ast
import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tables import each

from assistant.catalog import load_catalog
from assistant.catalog.companions import (
    WheelSource,
    all_companions,
    all_names,
    carried_by_torch_index,
    companion_trial,
    find_clashes,
    find_companion,
    installed_of_clash,
    system_needs,
    takes_device_extra,
    unpaired_warnings,
    version_ranges,
    wheel_sources,
)
from assistant.catalog.tables import Trial, load_table, rows
from assistant.model.plan import Backend

CATALOG = load_catalog()
NEEDS = {row.key for row in rows("needs.needs")}
ROWS = all_companions()
SOURCES = load_table("companions.wheel_sources", WheelSource).rows
RELEASES = [row.version for row in CATALOG.releases]
LINUX, WINDOWS = "linux_x86_64", "windows_amd64"


# The table itself.


def test_names_are_unique_and_as_installers_write_them():
    """Else a companion would not be found by the name in a requirement."""
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert names == [canonicalize_name(name) for name in names]
    through = {name for row in ROWS for name in row.through}
    assert {place.name for place in SOURCES} | through <= {*names}
    assert all_names() >= {*names, "torch", "flash-attn-3"}


def test_platforms_needs_and_backends_are_those_of_the_project():
    """A word that nothing else knows would never fit."""
    platforms = {platform for row in CATALOG.releases for platform in row.variants} | {"windows_arm64"}
    for row in ROWS:
        assert {*row.platforms} <= platforms, row.name
        assert {*row.backends} <= {backend.value for backend in Backend}, row.name
        assert {need.key for need in row.needs} <= NEEDS, row.name
    assert {platform for place in SOURCES for platform in place.platforms} <= platforms


def test_calls_are_python():
    """The child that verifies an environment runs the line."""
    for row in ROWS:
        ast.parse(row.call)
        assert "\n" not in row.call
        assert row.only_source <= bool(row.compiler), row.name


def test_what_the_table_alone_knows_is_written_as_ranges():
    """Only a range can be left out by one constraint: ">=0.6,<0.8", open at its end where newer versions go on."""
    tied = [(row, one) for row in ROWS for one in row.ranges if one.only_in_table and not row.only_source]
    assert len(tied) > 30
    for row, one in tied:
        assert re.fullmatch(r">=[\w.]+(,<[\w.]+)?", one.versions), (row.name, one.versions)


# Pairs, as the makers publish them.


def test_every_pair_names_a_torch_that_the_catalogue_knows():
    """A pair with a torch that was never released is a slip of the pen."""
    for row in ROWS:
        for one in version_ranges(row.name):
            assert any(map(one.goes_with, RELEASES)), (row.name, one)


# Constraints for those whose metadata names no torch.


def test_what_has_no_known_pair_is_said():
    """Nothing is refused for it, as a pair may have come since."""
    said = [str(message) for message in unpaired_warnings(["Flash_Attn", "triton-windows", "numpy", "vllm"], "2.15.0")]
    assert [text.split(" is known")[0] for text in said] == [
        "No version of flash-attn",
        "No version of triton-windows",
    ]
    assert unpaired_warnings(["flash-attn", "triton-windows", "torchcodec"], "2.14.0") == ()


# CUDA majors of the wheels on PyPI.


# What torch's indexes carry.


@each(
    ("name", "variant", "carried"),
    [
        ("torch", "cu132", True),
        ("torchvision", "amd-index", True),
        ("torchaudio", "cu130", True),
        ("torchaudio", "cu132", False),
        ("torchcodec", "cpu", True),
        ("torchcodec", "rocm7.2", False),
        ("xformers", "cu130", True),
        ("xformers", "cu132", False),
        ("xformers", "rocm7.1", True),
        ("flash-attn-3", "cu126", True),
        ("triton", "cu128", True),
        ("triton-rocm", "rocm7.2", True),
        ("triton-xpu", "xpu", True),
        ("pytorch-triton-rocm", "rocm6.4", True),
        ("pytorch-triton", "nightly/cu130", True),
        ("rocm-sdk-device-gfx1100", "amd-index", True),
        ("triton-windows", "cu130", False),
        ("flash-attn", "cu130", False),
        ("rocm-docs-core", "cu130", False),
        ("numpy", "cpu", False),
        ("torchmetrics", "cpu", False),
    ],
)
def test_what_torchs_index_carries(name, variant, carried):
    """A resolver that was sent to an index without the package would find nothing."""
    assert carried_by_torch_index(name, variant) is carried


def test_without_a_variant_any_index_counts():
    """As when a package is asked whether it belongs to torch's build at all."""
    assert carried_by_torch_index("torchaudio")
    assert not carried_by_torch_index("triton-windows")
    assert [name for name in ("torch", "torchvision", "torchaudio") if takes_device_extra(name)] == [
        "torch",
        "torchvision",
    ]


# What else they want.


def test_needs_of_the_system():
    """Keyed, for this system and backend alone, with how to get it."""
    assert [need.key for need in system_needs("torchcodec", "windows", Backend.CPU)] == ["ffmpeg"]
    assert "full-shared" in str(system_needs("torchcodec", "windows", Backend.CPU)[0].help)
    assert [need.key for need in system_needs("whisperx", "linux", Backend.CUDA)] == ["ffmpeg", "ffmpeg-program"]
    assert [need.key for need in system_needs("faster-whisper", "windows", Backend.CPU)] == ["msvc-runtime"]
    assert [need.key for need in system_needs("deepspeed", "linux", Backend.CUDA)] == ["nvcc"]
    assert system_needs("deepspeed", "linux", Backend.CPU) == ()
    assert [need.key for need in system_needs("ultralytics", "linux", Backend.CPU)] == ["libgl"]
    assert system_needs("ultralytics", "windows", Backend.CPU) == ()
    assert (
        system_needs("opencv-python-headless", "linux", Backend.CPU)
        == system_needs("numpy", "linux", Backend.CPU)
        == ()
    )


def test_what_a_source_is_compiled_with():
    """Told where a package has no wheel."""
    assert find_companion("flash-attn").compiler == "nvcc"
    assert find_companion("mmcv").compiler == "nvcc-for-cuda"
    assert find_companion("insightface").compiler == "c++"
    assert not find_companion("transformers").compiler


def test_trials():
    """What the verification runs beyond the import."""
    assert companion_trial("TorchCodec") == Trial(
        call="from torchcodec.decoders import AudioDecoder, VideoDecoder", on_cpu=True
    )
    assert companion_trial("flash-attn").on_cpu is False
    assert companion_trial("numpy") is companion_trial("flash-attn-3") is None


@each(
    ("versions", "keys"),
    [
        ({"onnxruntime": "1.30.0", "onnxruntime-gpu": "1.31.1"}, ["onnxruntime-packages-conflict"]),
        ({"onnxruntime": "1.30.0", "onnxruntime-qnn": "2.7.0"}, []),
        ({"onnxruntime": "1.30.0", "onnxruntime-qnn": ""}, []),
        ({"onnxruntime": "1.30.0", "onnxruntime-qnn": "1.24.4"}, ["onnxruntime-packages-conflict"]),
        ({"onnxruntime": "", "onnxruntime-ep-openvino": ""}, []),
        ({"OpenCV_Python": "4.12", "opencv-python-headless": ""}, ["opencv-packages-conflict"]),
        ({"triton": "3.7.1", "triton-windows": "3.7.1.post27"}, ["triton-packages-conflict"]),
        ({"mmcv": "2.2.0", "mmcv-lite": "2.2.0"}, ["mmcv-packages-conflict"]),
        ({"nvidia-cudnn-cu12": "9.10", "nvidia-cudnn-cu13": "9.20"}, ["nvidia-cudnn-packages-conflict"]),
        ({"nvidia-cublas-cu12": "12.8", "nvidia-cublas": "13.8"}, []),
        ({"torch": "2.13.0", "numpy": "2.3"}, []),
    ],
)
def test_clashes(versions, keys):
    """Flavours that write one folder; plug-ins with a folder of their own are none."""
    assert [*find_clashes(versions)] == keys


def test_a_clash_that_is_none_is_refused():
    """A check that names one by a slip would never find anything."""
    with pytest.raises(ValueError, match="no clash"):
        installed_of_clash("no-such-clash", {})


@each(
    ("line", "torch", "variant", "platform", "by"),
    [
        ("flash-attn", "2.8.0", "cu128", LINUX, ["its makers", "others"]),
        ("flash-attn==2.8.3", "2.7.1", "cu128", LINUX, ["its makers", "others"]),
        ("flash-attn==2.8.1", "2.7.1", "cu128", LINUX, ["its makers"]),
        ("flash-attn", "2.13.0", "cu130", WINDOWS, ["others", "others"]),
        ("flash-attn", "2.15.0", "cu130", LINUX, []),
        ("flash-attn", "2.13.0", "rocm7.2", LINUX, []),
        ("torch-scatter", "2.13.0", "cu130", LINUX, []),
        ("torch-cluster", "2.12.0", "cu130", LINUX, []),
        ("vllm", "2.14.0", "cu130", LINUX, []),  # its address has its version
        ("vllm==0.33.0", "2.14.0", "cu130", LINUX, ["its makers"]),
    ],
)
def test_where_wheels_lie(line, torch, variant, platform, by):
    """Those of the makers first; none for a torch, a variant, a platform or a version that they do not serve."""
    assert [one.by for one in wheel_sources(Requirement(line), torch, variant, platform)] == by


@each("variant", ["cu130", "pypi"])
def test_the_address_of_wheels_is_whole(variant):
    """PyPI's own torch is a build like any other."""
    pyg = wheel_sources(Requirement("torch-scatter"), "2.12.1", variant, LINUX)[0]
    assert (pyg.find, pyg.url) == ("links", "https://data.pyg.org/whl/torch-2.12.0+cu130.html")
    (vllm,) = wheel_sources(Requirement("vllm==0.33.0"), "2.14.0", "cu130", LINUX)
    assert vllm.url == "https://wheels.vllm.ai/0.33.0/cu130"
