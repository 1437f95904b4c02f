"""What packages that stand on torch want of a build of it, held against the makers' own documents."""

from __future__ import annotations

from catalogs import catalog_as_of
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from tables import each

from assistant.catalog.companions import all_companions, version_ranges
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import PlanInputs, make_plans
from assistant_addons.projects.companions import beside, constraints_for, cuda_major, torch_bounds, with_needs

CATALOG = catalog_as_of("2.15.0")
ROWS = all_companions()
RELEASES = [row.version for row in CATALOG.releases]
LINUX, WINDOWS = "linux_x86_64", "windows_amd64"


def bound(requirement):
    """Return the bounds of torch as text, the first ones first."""
    found = torch_bounds(Requirement(requirement))
    return None if found is None else [str(one) for one in found]


def limits(torch, variant, platform=LINUX):
    """Return the constraints beside a torch, by name."""
    lines = map(Requirement, constraints_for(torch, variant, platform))
    return {need.name: need.specifier for need in lines}


def newest(name, versions, torch, variant, platform=LINUX):
    """Return the newest of some versions that the constraints beside a torch let in."""
    allowed = limits(torch, variant, platform).get(name, SpecifierSet())
    return next((version for version in versions.split() if allowed.contains(version)), None)


@each("torch", RELEASES)
def test_constraints_let_in_what_goes_with_torch_and_nothing_else(torch):
    """Of what the table alone knows, for every release: each range that fits stays whole, each other one is out."""
    allowed = limits(torch, "cpu")
    for row in (row for row in ROWS if not row.only_source):
        found = allowed.get(row.name, SpecifierSet())
        assert not found.is_unsatisfiable(), row.name
        for one in version_ranges(row.name):
            both = SpecifierSet(one.versions) & found
            if one.goes_with(torch):
                assert not both.is_unsatisfiable(), (row.name, one.versions, found)
            elif one.only_in_table:
                assert both.is_unsatisfiable(), (row.name, one.versions, found)


@each(
    ("requirement", "torch"),
    [
        ("torchvision==0.18.0", "==2.3.0"),
        ("torchvision==0.28.0", "==2.13.0"),
        ("torchvision==0.29.2", ">=2.14"),
        ("torchaudio==2.4.1", "==2.4.1"),
        ("torchaudio==2.11.0", ">=2.11"),
        ("torchcodec==0.1.1", "==2.5.*"),
        ("torchcodec==0.11.1", "==2.11.*"),
        ("torchao==0.16.0", "==2.10.*"),
        ("triton==2.3.1", "==2.3.1"),
        ("triton==3.8.0", "==2.14.*"),
        ("triton==3.9.0", "==2.15.0"),
        ("triton-windows==3.8.0.post29", "==2.14.*"),
        ("triton-xpu==3.7.0", "==2.11.0"),
        ("pytorch-triton-xpu==3.4.0", "==2.8.0"),
        ("pytorch-triton-rocm==3.3.1", "==2.7.1"),
        ("triton-rocm==3.8.0", "==2.14.*"),
        ("xformers==0.0.26.post1", "==2.3.0"),
        ("xformers==0.0.34", "==2.10.0"),
        ("xformers==0.0.35", ">=2.10"),
        ("vllm==0.6.6", "==2.5.1"),
        ("vllm==0.33.0", "==2.14.0"),
        ("unsloth==2025.7.1", "<=2.7.0,>=2.4"),
        ("unsloth==2026.10.9", "<2.15,>=2.4"),
        ("whisperx>=3.7.4", "~=2.8.0"),
        ("whisperx==3.8.6", "~=2.8.0"),
        ("whisperx==3.6.2", ">=2.7.1"),
        ("bitsandbytes==0.50.2", "<3,>=2.4"),
        ("flash-attn==2.8.3", "<2.15,>=2.4"),
        ("torch-directml==0.2.5.dev240914", "==2.4.1"),
        ("intel-extension-for-pytorch==2.8.0", "==2.8.*"),
        ("torch-scatter", "<2.13,>=2.3"),
    ],
)
def test_pairs_of_the_makers(requirement, torch):
    """A version that fits one torch names it."""
    assert bound(requirement) == [torch]


def test_where_any_torch_will_do_or_nothing_is_known_there_is_no_bound():
    """Unknown is never none, and a bound that says nothing is no hint."""
    for requirement in ("onnxruntime-gpu", "ctranslate2>=4", "jax", "numpy", "no-such-package"):
        assert bound(requirement) is None, requirement


def test_what_is_older_than_the_tables_goes_with_the_torch_of_the_oldest_they_know():
    """Torchao 0.10 came out before 0.12, which is for torch 2.5 to 2.7: newer ones may abort beside it."""
    assert torch_bounds(Requirement("torchao==0.10.0")) == (SpecifierSet(">=2.5,<2.8"),)
    assert torch_bounds(Requirement("torchao==0.10.0"), guess=False) is None


def test_an_open_requirement_gets_the_newest_versions_torch_first():
    """A resolver takes the newest version that it may, so its torch is the best guess."""
    assert bound("vllm")[:3] == ["==2.14.0", "==2.13.0", "==2.11.0"]
    assert bound("vllm<0.20")[0] == "==2.10.0"
    assert bound("TorchVision>=0.20,<0.22") == ["==2.6.0", "==2.5.1", "==2.5.0"]
    assert bound("unsloth")[0] == "<2.15,>=2.4"


TORCHCODEC = "0.17.0 0.16.0 0.14.0 0.13.0 0.12.0 0.11.1 0.11.0 0.10.0 0.9.1 0.9.0 0.8.1 0.7.0 0.6.0 0.5 0.2.1 0.1.1"


TRITON_WINDOWS = "3.8.0.post29 3.7.1.post27 3.6.0.post26 3.5.1.post24 3.4.0.post21 3.3.1.post19 3.2.0.post18"


UNSLOTH = "2026.10.9 2026.9.13 2026.7.4 2026.3.18 2026.3.10 2025.11.1 2025.7.1 2025.5.9"


@each(
    ("name", "versions", "torch", "expected"),
    [
        ("torchcodec", TORCHCODEC, "2.5.1", "0.1.1"),
        ("torchcodec", TORCHCODEC, "2.8.0", "0.7.0"),
        ("torchcodec", TORCHCODEC, "2.9.1", "0.9.1"),
        ("torchcodec", TORCHCODEC, "2.13.0", "0.17.0"),
        ("torchcodec", TORCHCODEC, "2.4.1", None),
        ("torchaudio", "2.11.0 2.10.0 2.9.1 2.8.0", "2.8.0", "2.10.0"),
        ("torchaudio", "2.11.0 2.10.0", "2.15.0", "2.11.0"),
        ("torchao", "0.18.0 0.17.0 0.16.0 0.15.0 0.14.1 0.14.0 0.13.0 0.12.0 0.11.0", "2.8.0", "0.14.0"),
        ("torchao", "0.18.0 0.17.0 0.16.0 0.15.0 0.14.1 0.14.0 0.13.0 0.12.0 0.11.0", "2.10.0", "0.16.0"),
        ("triton-windows", TRITON_WINDOWS, "2.14.1", "3.8.0.post29"),
        ("triton-windows", TRITON_WINDOWS, "2.11.0", "3.6.0.post26"),
        ("triton-windows", TRITON_WINDOWS, "2.15.0", None),
        ("unsloth", UNSLOTH, "2.10.0", "2026.10.9"),
        ("transformers", "5.23.0 5.19.0 5.15.1 4.57.6", "2.5.1", "5.19.0"),
        ("transformers", "5.23.0 5.15.0 5.14.0 5.1.0 5.0.0 4.57.6", "2.4.1", "5.14.0"),
        ("transformers", "5.23.0 5.15.0 5.14.0 5.1.0 5.0.0 4.57.6", "2.3.1", "5.0.0"),
        ("intel-extension-for-pytorch", "2.8.0 2.7.0", "2.9.0", None),
    ],
)
def test_what_a_resolver_would_take_beside_any_torch_is_held_to_its_own(name, versions, torch, expected):
    """The metadata of these names no torch, or no upper end: the newest would come in, and fail when imported."""
    assert newest(name, versions, torch, "cu128") == expected


def test_no_resolver_walks_back_to_an_unsloth_without_an_upper_bound():
    """2026.3.10 asks for torch 2.4 or newer and would be taken beside 2.15, on which it does not run."""
    for torch in ("2.11.0", "2.12.1", "2.14.0", "2.15.0"):
        assert newest("unsloth", "2026.3.10 2025.11.1 2025.5.9", torch, "cu130") is None
    assert newest("unsloth", "2026.3.10", "2.10.0", "cu128") == "2026.3.10"


@each(
    ("torch", "variant", "platform", "major"),
    [
        ("2.14.1", "cu126", LINUX, 12),
        ("2.9.0", "cu130", WINDOWS, 13),
        ("2.6.0", "cu118", LINUX, 11),
        ("2.15.0", "pypi", LINUX, 13),
        ("2.8.0", "pypi", LINUX, 12),
        ("2.8.0", "pypi", "linux_aarch64", None),
        ("2.15.0", "pypi", WINDOWS, None),
        ("2.16.0.dev0", "nightly/cu132", LINUX, 13),
        ("2.14.0", "rocm7.2", LINUX, None),
        ("2.14.0", "cpu", LINUX, None),
        ("9.9", "pypi", LINUX, None),
    ],
)
def test_the_cuda_of_a_build(torch, variant, platform, major):
    """PyPI's own wheel is that of its release and platform."""
    assert cuda_major(torch, variant, platform) == major


def test_wheels_for_another_cuda_are_left_out_where_there_are_some_for_this_one():
    """Metadata never says it: onnxruntime-gpu then computes on the CPU, and vllm fails when it is imported."""
    cuda12, cuda13 = limits("2.11.0", "cu126"), limits("2.11.0", "cu130")
    assert (cuda12["onnxruntime-gpu"], cuda13["onnxruntime-gpu"]) == (
        SpecifierSet(">=1.19,<1.27"),
        SpecifierSet(">=1.27"),
    )
    assert (cuda12["vllm"], cuda13["vllm"]) == (SpecifierSet("<0.20"), SpecifierSet(">=0.20"))
    assert cuda13["bitsandbytes"] == SpecifierSet(">=0.48")
    assert not {"onnxruntime-gpu", "vllm", "bitsandbytes"} & {*limits("2.11.0", "cpu"), *limits("2.11.0", "rocm7.2")}


@each(("major", "torch", "variant"), [(11, "2.6.0", "cu118"), (12, "2.8.0", "cu128"), (13, "2.13.0", "cu130")])
def test_what_a_plan_asks_for_by_default_lies_within_these_bounds(major, torch, variant):
    """The range of onnxruntime-gpu that each plan takes stands in another table, with the Pythons of its wheels."""
    wanted = Requirement(CATALOG.by("torch.basics", "package", "cuda")["onnxruntime-gpu", major].requirement).specifier
    allowed = limits(torch, variant)["onnxruntime-gpu"]
    known = ("1.17.1", "1.18.1", "1.19.0", "1.26.0", "1.27.0", "1.28.0", "1.31.1")
    taken = [version for version in known if wanted.contains(version)]
    assert taken
    assert all(map(allowed.contains, taken))


def test_ctranslate2_gets_its_cuda_12_beside_a_torch_for_cuda_13():
    """It knows no CUDA 13, and says so at the first use of the GPU alone; what computes with it needs the same."""
    for name in ("ctranslate2", "faster-whisper", "whisperx"):
        added = beside([Requirement(name)], "2.13.0", "cu130", LINUX)
        assert added.requires == ("nvidia-cublas-cu12",)
        assert "nvidia/cublas/lib" in str(added.warnings[0])
        assert "LD_LIBRARY_PATH" in str(added.warnings[0])
    assert "PATH must include the folder nvidia/cublas/bin" in str(
        beside([Requirement("ctranslate2")], "2.13.0", "cu130", WINDOWS).warnings[0]
    )
    for variant in ("cu126", "cpu", "rocm7.2"):
        assert beside([Requirement("ctranslate2")], "2.13.0", variant, LINUX) == ((), ())


def test_xformers_of_pypi_is_warned_of_and_that_of_torchs_index_is_not():
    """PyPI's 0.0.35 is for CUDA 12.8; torch's index for CUDA 13.0 has its own."""
    wanted = [Requirement("xformers")]
    assert "CUDA 12" in str(beside(wanted, "2.13.0", "pypi", LINUX).warnings[0])
    assert "CUDA 12" in str(beside(wanted, "2.13.0", "cu132", LINUX).warnings[0])
    assert beside(wanted, "2.13.0", "cu130", LINUX).warnings == ()
    assert beside([Requirement("xformers==0.0.34")], "2.10.0", "pypi", LINUX).warnings == ()


def test_an_extra_with_the_libraries_of_another_cuda_is_warned_of():
    """Both write the same files of cuDNN and NCCL."""
    for line in ("jax[cuda12]", "tensorflow[and-cuda]"):
        assert "overwrite" in str(beside([Requirement(line)], "2.13.0", "cu130", LINUX).warnings)
    for line in ("jax[cuda13]", "jax", "tensorflow", "tensorflow[other]"):
        assert beside([Requirement(line)], "2.13.0", "cu130", LINUX).warnings == ()


CARD = Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4090", compute_capability="8.9", vram_gb=24)
PC = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12.4", gpus=(CARD,), nvidia_driver="590.44")


def planned(*pins, backend=None):
    """Plan for a Linux machine with an RTX 4090 and a driver for CUDA 13."""
    case = PlanInputs(PC, CATALOG, Request(pins=pins, backend=backend))
    return with_needs(make_plans(*case), case).choice


def test_ctranslate2_gets_its_cublas_beside_a_torch_for_cuda_13():
    """It is built for CUDA 12: the library is planned, and where the loader has to look is said."""
    plan = planned("faster-whisper")
    assert plan.variant.startswith("cu13")
    assert "nvidia-cublas-cu12" in plan.requirements
    assert any("nvidia/cublas/lib" in str(warning.params.get("folder")) for warning in plan.warnings)
    for other in (planned("faster-whisper", "torch==2.14.1+cu126"), planned("faster-whisper", backend=Backend.CPU)):
        assert "nvidia-cublas-cu12" not in other.requirements
        assert not any("nvidia/cublas" in str(warning) for warning in other.warnings)


def test_what_the_system_has_to_bring_is_said_with_the_way_to_it():
    """FFmpeg comes with no package of Python."""
    said = [f"{warning}" for warning in planned("torchcodec").warnings]
    assert any("FFmpeg" in text and "sudo apt install ffmpeg" in text for text in said), said
    assert not any("FFmpeg" in str(warning) for warning in planned("einops").warnings)
