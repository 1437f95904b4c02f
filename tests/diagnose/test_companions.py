"""What companions of torch miss: who asks for which thing, compared with what is there, and what really helps."""

from __future__ import annotations

import pytest

from assistant.diagnose import diagnose, read_log
from assistant.diagnose.builds import missing_files, parse_library
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.session.diagnosis import find_causes

LINUX, WINDOWS = Machine(os="linux", wsl=False), Machine(os="windows")
CARD = (Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4070"),)


def machine(system: str, torch: str = "", **packages: str) -> Machine:
    """Describe a machine with an NVIDIA GPU and some packages."""
    there = {"torch": torch, **packages} if torch else packages
    return Machine(os=system, wsl=False if system == "linux" else None, gpus=CARD, packages=there)


def first(text: str, facts: Machine = LINUX) -> str:
    """Return the key of the first cause, "" for none."""
    found = diagnose(text, facts)
    return found[0].key if found else ""


def commands(text: str, facts: Machine) -> list[str]:
    """Return what the first remedy tells to type."""
    return list(find_causes(read_log(text), facts)[0].remedies[0].commands)


@pytest.mark.parametrize(
    ("line", "thing", "requester"),
    [
        ("libavutil.so.58: cannot open shared object file", "libavutil.so.58", ""),
        ("library libcublas.so.12 is not found or cannot be loaded", "libcublas.so.12", ""),
        ("could not load library cudnn_ops_infer64_8.dll. error code 126", "cudnn_ops_infer64_8.dll", ""),
        (
            "could not load library libcudnn_cnn_infer.so.8. error: libnvrtc.so: cannot open shared object file",
            "libnvrtc.so",
            "libcudnn_cnn_infer.so.8",
        ),
        (
            'error loading "c:\\v\\a_providers_b.dll" which depends on "nvinfer_10.dll" which is missing.',
            "nvinfer_10.dll",
            "a_providers_b.dll",
        ),
        (
            "library not loaded: @rpath/libavutil.58.dylib\n  referenced from: /e/libtorchcodec_core6.dylib",
            "libavutil.58.dylib",
            "/e/libtorchcodec_core6.dylib",
        ),
        ("faster-whisper找不到cublas64_12.dll", "cublas64_12.dll", ""),
        ("unable to load any of {libcudnn_ops.so.9.1, libcudnn_ops.so.9}", "libcudnn_ops.so.9.1", "libcudnn_ops.so.9"),
    ],
)
def test_a_missing_library_is_read_with_who_asks_for_it(line: str, thing: str, requester: str) -> None:
    """Loaders of three systems, libraries' own words and Chinese prose have one grammar."""
    found = next(missing_files(line))
    assert (found.kind, found.thing, found.requester) == ("file", thing, requester)


def test_a_file_with_a_missing_library_of_its_own_is_a_dependency() -> None:
    """Windows names the file that does not load and keeps to itself what that lacks."""
    line = 'loadlibrary failed with error 126 "" when trying to load "c:\\x\\onnxruntime_providers_cuda.dll"'
    assert [(one.kind, one.thing) for one in missing_files(line)] == [("dependency", "onnxruntime_providers_cuda.dll")]


@pytest.mark.parametrize(
    ("file", "stem", "major", "kind"),
    [
        ("libcublas.so.12", "cublas", 12, "cuda"),
        ("cudart64_110.dll", "cudart", 11, "cuda"),
        ("cudnn_ops_infer64_8.dll", "cudnn_ops_infer", 8, "cudnn"),
        ("nvinfer_10.dll", "nvinfer", 10, "tensorrt"),
        ("libavutil.58.dylib", "avutil", 58, "ffmpeg"),
        ("libopenvino.so.2450", "openvino", 2450, "openvino"),
        ("libtorch_cuda.so", "torch_cuda", None, "torch-gpu"),
    ],
)
def test_the_name_of_a_library_tells_its_owner_and_major(file: str, stem: str, major: int | None, kind: str) -> None:
    """One row serves the names of Linux, Windows and macOS."""
    found = parse_library(file)
    assert (found.stem, found.major, found.kind) == (stem, major, kind)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{} /env/lib/python3.11/site-packages/torchcodec/_core/ops.py", "torchcodec-torch-mismatch"),
        ("{} (faster-whisper)", "cuda-libs-other-major"),
        ("Failed to load library libonnxruntime_providers_cuda.so with error: {}", "ort-cuda-libs-not-on-path"),
        ('  File "/e/lib/python3.12/site-packages/torch/__init__.py", line 4\n{}', "cuda-wheel-dependency-missing"),
        ('  File "/e/lib/python3.12/site-packages/torchaudio/_extension.py", line 4\n{}', "torch-torchvision-mismatch"),
    ],
)
def test_one_library_has_another_cause_for_each_requester(text: str, key: str) -> None:
    """The remedy is bound to who asks, not to the library's best-known user."""
    assert first(text.format("OSError: libcudart.so.12: cannot open shared object file")) == key


def test_cudnn_8_is_not_put_beside_a_torch_with_cudnn_9() -> None:
    """The program is brought to the cuDNN that torch has; an old torch has cuDNN 8 itself."""
    told = "faster-whisper找不到cudnn_ops_infer64_8.dll"
    newer = 'python -m pip install --upgrade "ctranslate2>=4.5,<5"'
    assert commands(told, machine("windows", "2.9.1+cu130"))[0] == newer
    older = 'python -m pip install "nvidia-cudnn-cu12==8.*" nvidia-cublas-cu12'
    assert commands(f"{told}, torch 2.3.1+cu121", machine("windows", "2.3.1+cu121"))[0] == older


def test_the_release_of_onnx_runtime_follows_the_cuda_that_is_there() -> None:
    """A CUDA 12 machine is not told to upgrade into a release for CUDA 13."""
    failing = (
        "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.{}: cannot open shared"
    )
    for missing, torch, bounds in ((13, "2.9.1+cu128", ">=1.19,<1.27"), (12, "2.14.1+cu130", ">=1.28")):
        text = failing.format(missing) + " object file"
        assert first(text, machine("linux", torch)) == "ort-cuda-version-mismatch"
        assert commands(text, machine("linux", torch)) == [
            f'python -m pip install "onnxruntime-gpu[cuda,cudnn]{bounds}"'
        ]


@pytest.mark.parametrize(
    ("text", "facts", "command"),
    [
        (
            "Could not load libtorchcodec.\nOSError: libnvrtc.so.13: cannot open shared object file",
            machine("linux", "2.9.1+cpu"),
            (
                'python -m pip install "torchcodec>=0.8,<0.10" --index-url https://download.pytorch.org/whl/cpu '
                "--force-reinstall --no-deps"
            ),
        ),
        (
            "sageattention: ModuleNotFoundError: No module named 'triton'",
            machine("windows", "2.9.1+cu128"),
            'python -m pip install "triton-windows>=3.5,<3.6"',
        ),
        (
            "OSError: torchaudio/lib/libtorchaudio.so: undefined symbol: _ZN2at4_ops5zeros4callE",
            machine("linux", "2.9.1+cu128"),
            (
                'python -m pip install "torchvision==0.24.1" "torchaudio==2.9.1" '
                "--index-url https://download.pytorch.org/whl/cu128"
            ),
        ),
        (
            ">>> import torch\nImportError: libcudss.so.0: cannot open shared object file",
            machine("linux", "2.9.1+cu128"),
            'python -m pip install "torch==2.9.1+cu128" --index-url https://download.pytorch.org/whl/cu128',
        ),
    ],
)
def test_the_first_remedy_is_the_version_for_this_torch(text: str, facts: Machine, command: str) -> None:
    """Version and index come from the catalogue, by the torch that is installed."""
    assert commands(text, facts)[0] == command


def test_a_library_keeps_the_case_of_its_name() -> None:
    """A command that looks for a file looks for its real name."""
    found = diagnose("ImportError: libGLX.so.0: cannot open shared object file", LINUX)[0]
    assert any("libGLX.so.0" in command for remedy in found.remedies for command in remedy.commands)


@pytest.mark.parametrize(
    "text",
    [
        "INFO: xformers is not available, continuing with sdpa\nstep 10 loss 0.4",
        "No module named 'flash_attn', using PyTorch attention instead\nPrompt executed in 12.81 seconds",
        "triton not found; flop counting will not work for triton kernels",
        "WARNING: No module named 'triton'. Skipping import of cpp extensions\nepoch 3 acc 0.9",
        "xFormers was built for:\n    PyTorch 2.6.0+cu124 (you have 2.5.1+cu121)\n100%|####| 20/20 [00:05, 3.9it/s]",
        "ModuleNotFoundError: No module named 'my_project.ops'",
        "AttributeError: module 'numpy' has no attribute 'float'",
        "ImportError: cannot import name 'Trainer' from 'train' (/home/u/proj/train.py)",
        "gcc: error: foo.c: No such file or directory",
        "nvcc --version\nbash: nvcc: command not found\nbut torch.cuda.is_available() is True. do i need it?",
        "Is flash-attn worth it on a 4070? Without it I get 5 it/s",
        "whisperx 3.8.6 requires torch~=2.8.0, but you have torch 2.8.0.",
    ],
)
def test_what_is_merely_absent_is_no_trouble(text: str) -> None:
    """A speed-up that a program does without, its own mistakes and questions get no cause."""
    assert first(text) == first(text, WINDOWS) == ""


def test_another_build_is_no_trouble_where_it_is_one_for_the_gpu() -> None:
    """PyPI's torch has CUDA on Linux, and none on Windows."""
    text = "Uninstalling torch-2.8.0+cu128\nSuccessfully installed torch-2.9.0 vllm-0.12.0"
    assert (first(text), first(text, WINDOWS)) == ("", "torch-replaced")


def test_uv_tells_a_pair_in_its_own_words() -> None:
    """What `uv pip check` says of a companion has the same cause as what pip says."""
    told = "The package `torchvision` requires `torch==2.13.0`, but `2.12.0` is installed"
    assert first(told) == "torch-torchvision-mismatch"
    assert first("The package `lab-detector` requires `torch>=2.12,<3`, but `2.12.0` is installed") == ""


def test_a_symbol_of_torch_is_no_matter_of_onnx_runtime() -> None:
    """Where ONNX Runtime is installed too, an extension that lacks a symbol of PyTorch's is still the one to blame."""
    log = (
        "OSError: /e/lib/python3.11/site-packages/fbgemm_gpu/fbgemm_gpu_config.so: undefined symbol: _ZN3c104impl3cowE"
    )
    assert first(log, Machine(os="linux", wsl=False, packages={"onnxruntime": "1.27.0"})) == "torch-abi-mismatch"


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: unable to write to file </torch_1842_311_0>: No space left on device (28)",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
    ],
)
def test_a_data_loader_without_shared_memory_is_no_full_drive(text: str) -> None:
    """The worker's own words tell shared memory, though they also say that no space is left."""
    assert [one.key for one in diagnose(text, LINUX)] == ["shared-memory-small"]
