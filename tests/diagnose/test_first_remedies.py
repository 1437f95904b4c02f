"""The first remedy is the one that works here: for this machine, this program, and what the person may change."""

from __future__ import annotations

import pytest

from assistant.diagnose import diagnose, read_log
from assistant.diagnose.builds import compiler_names
from assistant.diagnose.facts import LogContext
from assistant.diagnose.remedies import typed_names
from assistant.i18n import render
from assistant.model.finding import Remedy
from assistant.model.machine import Gpu, Machine, Vendor

NVIDIA = (Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4090"),)
LINUX = Machine(os="linux", wsl=False, arch="x86_64", gpus=NVIDIA)
WINDOWS = Machine(os="windows", arch="x86_64", gpus=NVIDIA)


def with_torch(base: Machine, torch: str, python: str = "3.11") -> Machine:
    """Return a machine with a torch and a Python."""
    return Machine(os=base.os, wsl=base.wsl, arch=base.arch, gpus=base.gpus, python=python, packages={"torch": torch})


def first(log: str, machine: Machine, key: str) -> Remedy:
    """Return the first remedy of a log's best cause, which has a key; questions are passed over."""
    found = diagnose(log, machine)
    assert found, log
    assert found[0].key == key
    return next(one for one in found[0].remedies if not render(one.text).startswith("First find out"))


NO_NVCC = "deepspeed builder: MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)\n"
NEW_STUDIO = (
    r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v{}\include\crt/host_config.h(153): fatal error C1189: "
    "#error: -- unsupported Microsoft Visual Studio version!\nerror: command 'nvcc.exe' failed, building wheel for mmcv"
)
PACKS = (
    "nvcc: Cuda compilation tools, release 11.5\nbuilding 'x' extension\n"
    "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with '...'"
)
ROWS = [
    # Compilers that nvcc does not take, and those that are not there.
    (NEW_STUDIO.format("11.8"), WINDOWS, "ext-build-no-compiler", "14.38"),
    (NEW_STUDIO.format("12.6"), WINDOWS, "ext-build-no-compiler", "14.44"),
    (PACKS, LINUX, "ext-build-no-compiler", "sudo apt install g++-10"),
    (
        (
            "building wheel for a\nD:\\py\\pyconfig.h(59): fatal error C1083: Cannot open include file: 'io.h'\n"
            "error: command 'cl.exe' failed: no such file or directory"
        ),
        WINDOWS,
        "ext-build-no-compiler",
        "x64 Native Tools",
    ),
    (
        "building wheel for torchmcubes\ninclude/c10/string_view.h:10:23: fatal error: string_view: No such file",
        LINUX,
        "ext-build-no-compiler",
        "gxx_linux-64",
    ),
    # nvcc: from conda, from the distribution, by Windows' installer, in a Dockerfile.
    (NO_NVCC + "/home/a/miniconda3/envs/t", with_torch(LINUX, "2.6.0+cu124"), "ext-build-no-nvcc", "cuda-12.4.0::cuda"),
    (
        NO_NVCC,
        Machine(os="linux", os_version="Ubuntu 22.04", packages={"torch": "2.8.0+cu128"}),
        "ext-build-no-nvcc",
        "cuda-toolkit-12-8",
    ),
    (NO_NVCC, with_torch(WINDOWS, "2.6.0+cu124"), "ext-build-no-nvcc", "Nvidia.CUDA --version 12.4"),
    (NO_NVCC + "it is in the Dockerfile", LINUX, "ext-build-no-nvcc", "-devel"),
    # A ready wheel before a build.
    (
        "Installing SageAttention\nCall to build_wheel failed\nModuleNotFoundError: No module named 'torch'",
        with_torch(WINDOWS, "2.8.0+cu128"),
        "ext-build-without-torch",
        "sageattention-2.2.0+cu128torch2.8.0.post3-cp39-abi3-win_amd64.whl",
    ),
    (
        "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E",
        with_torch(LINUX, "2.6.0+cu124"),
        "torch-abi-mismatch",
        "flash_attn-2.8.3+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl",
    ),
    (
        (
            '  File "D:\\a\\site-packages\\nunchaku\\a.py"\nnunchaku-1.0.0+torch2.8-cp311-cp311-win_amd64.whl\n'
            "ImportError: DLL load failed while importing _C: The specified procedure could not be found."
        ),
        with_torch(WINDOWS, "2.7.1+cu128"),
        "torch-abi-mismatch",
        "nunchaku-1.0.0+torch2.7-cp311-cp311-win_amd64.whl",
    ),
    (
        "torch_scatter/_scatter_cuda.so: undefined symbol: _ZN2at4_ops6narrow4callE",
        with_torch(LINUX, "2.4.0+cu121"),
        "torch-abi-mismatch",
        "https://data.pyg.org/whl/torch-2.4.0+cu121.html",
    ),
    # Names that went away.
    (
        "ImportError: cannot import name 'cached_download' from 'huggingface_hub'",
        LINUX,
        "companion-version-mismatch",
        'python -m pip install "huggingface-hub<0.26"',
    ),
    # The compiled part of a package.
    ("ModuleNotFoundError: No module named 'mmcv._ext'", LINUX, "ext-not-built", "python -m mim install"),
    (
        "ModuleNotFoundError: No module named 'mmcv._ext'",
        Machine(os="macos", arch="arm64"),
        "ext-not-built",
        "MMCV_WITH_OPS=1",
    ),
    # Triton.
    (
        (
            "D:\\p\\python_embeded\\Lib\\site-packages\\triton\\windows_utils.py: Failed to find Python libs.\n"
            "cuda_utils.c(12): fatal error C1083: Cannot open include file: 'Python.h': No such file or directory"
        ),
        with_torch(WINDOWS, "2.8.0+cu128", "3.12"),
        "triton-no-compiler",
        'tar.exe -xf python_3.12.7_include_libs.zip -C "D:\\p\\python_embeded"',
    ),
    (
        "triton/runtime/build.py\nmain.c:5:10: fatal error: Python.h: No such file or directory",
        LINUX,
        "triton-no-compiler",
        "python3-dev",
    ),
    ("import triton\nModuleNotFoundError: No module named 'triton'", LINUX, "triton-missing", "importlib.metadata"),
    # FFmpeg of the major release that TorchCodec takes.
    (
        (
            "Could not load libtorchcodec. We support versions 4, 5, 6 and 7.\n"
            "FFmpeg version 7: Could not load this library: D:\\e\\torchcodec\\libtorchcodec_core7.dll"
        ),
        with_torch(WINDOWS, "2.8.0+cpu"),
        "torchcodec-ffmpeg-missing",
        "Gyan.FFmpeg.Shared --exact --version 7.1.1",
    ),
    # Drivers that may not be changed.
    (
        "The NVIDIA driver on your system is too old (found version 11040). the driver of this cluster is not ours",
        LINUX,
        "nvidia-driver-too-old",
        "https://download.pytorch.org/whl/cu118",
    ),
    # Programs, and what they offer.
    ("llamafactory-cli train\nCUDA out of memory", LINUX, "oom", "cutoff_len"),
    ("vllm serve\ntorch.OutOfMemoryError: CUDA out of memory", LINUX, "oom", "--max-model-len"),
    # Containers.
    (
        'docker: could not select device driver "" with capabilities: [[gpu]]',
        LINUX,
        "container-gpu-device-missing",
        "sudo nvidia-ctk runtime configure --runtime=docker",
    ),
    # Launchers with a process for each GPU.
    (
        "torchrun --nproc_per_node 2 train.py\nRuntimeError: CUDA error: invalid device ordinal",
        LINUX,
        "device-index-out-of-range",
        "--nproc_per_node 1",
    ),
    # Networks and drives.
    (
        "$ pip install -r requirements.txt\npip._vendor.urllib3.exceptions.ReadTimeoutError: Read timed out.",
        with_torch(LINUX, "2.6.0"),
        "read-timeout",
        "--resume-retries 20 -r requirements.txt",
    ),
    (
        "[3/9] RUN pip3 install torch\nERROR: [Errno 28] No space left on device\nfailed to solve: process",
        LINUX,
        "disk-full",
        "docker builder prune --force",
    ),
    ("ssl: CERTIFICATE_VERIFY_FAILED: certificate has expired", WINDOWS, "ssl-cert", "w32tm /resync"),
    (
        "building flash_attn\nPrecompiled wheel not found. Building from source...",
        with_torch(WINDOWS, "2.9.1+cu128"),
        "ext-no-wheel",
        "torch2.9.0cxx11abiFALSE-cp311-cp311-win_amd64.whl",
    ),
    (
        (
            "> pip install torch==1.7.0+cpu\nERROR: Could not find a version that satisfies the requirement "
            "torch==1.7.0+cpu "
            "(from versions: 1.7.0)\nERROR: No matching distribution found for torch==1.7.0+cpu"
        ),
        Machine(os="windows", arch="x86_64", python="3.8"),
        "release-not-on-index",
        "-f https://download.pytorch.org/whl/torch_stable.html",
    ),
    (
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
        Machine(os="macos", arch="arm64"),
        "cuda-requested-on-mac",
        "map_location",
    ),
    (
        "RuntimeError: Output channels > 65536 not supported at the MPS device",
        Machine(os="macos", arch="arm64"),
        "mps-tensor-size-limit",
        "macOS 15.1",
    ),
    (
        "apptainer shell model.sif\nRuntimeError: Found no NVIDIA driver on your system.",
        Machine(os="linux", wsl=False),
        "container-gpu-device-missing",
        "apptainer exec --nv model.sif nvidia-smi",
    ),
    # What else decides.
    (
        "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory",
        Machine(os="linux", os_version="Ubuntu 24.04"),
        "missing-system-library",
        "sudo apt install -y libnuma1",
    ),
    (
        "/lib/libc.so.6: version `GLIBC_2.32' not found (required by /e/site-packages/flash_attn_2_cuda.so)",
        LINUX,
        "glibc-too-old",
        "--no-binary flash-attn",
    ),
    (
        "HIP error: device kernel image is invalid\nindex: https://stable.repo.amd.com/rocm/whl-next/",
        Machine(
            os="linux", gpus=(Gpu(vendor=Vendor.AMD, name="x", gfx="gfx1151"),), packages={"torch": "2.13.0+rocm10"}
        ),
        "rocm-gfx-not-in-wheel",
        "torch[device-gfx1151]==2.13.0+rocm10",
    ),
    # Projects are mended by the lines of their manifest, and then the user's own command.
    (
        (
            'PS D:\\a> uv sync --extra gpu\n + torch==2.7.0\n[[tool.uv.index]]\nname = "pytorch-cu128"\n'
            'url = "https://download.pytorch.org/whl/cu128"\nexplicit = true\n[tool.uv.sources]\n'
            'torch = [{ index = "pytorch-cu128", marker = "sys_platform == \'linux\'" }]\n2.7.0+cpu None False'
        ),
        with_torch(WINDOWS, "2.7.0+cpu"),
        "index-not-applied",
        "marker = \"sys_platform == 'linux' or sys_platform == 'win32'\" }] (so",
    ),
    (
        (
            "PS D:\\a> uv add torch --index https://download.pytorch.org/whl/cu126\nerror:"
            " Distribution `markupsafe==3.0.2"
            " @ registry+https://download.pytorch.org/whl/cu126` can't be installed because it doesn't have a source "
            "distribution or wheel for the current platform\nhint: You're using CPython 3.10"
            " (`cp310`), but `markupsafe`"
            " (v3.0.2) only has wheels with the following Python implementation tag: `cp313`"
        ),
        WINDOWS,
        "index-not-applied",
        'explicit = true, and under [tool.uv.sources] torch = { index = "pytorch-cu126" }',
    ),
    (
        (
            '$ uv pip install -e "./a[dev]" --extra-index-url https://download.pytorch.org/whl/cpu\n'
            "  x No solution found when resolving dependencies:\n  Because only jinja2<=3.1.4 is"
            " available and you require "
            "jinja2>=3.1.6, we can conclude that your requirements are unsatisfiable.\n\n  hint: `jinja2` was found on "
            "https://download.pytorch.org/whl/cpu, but not at the requested version"
            " (jinja2>=3.1.6). A compatible version "
            "may be available on a subsequent index (e.g., https://pypi.org/simple)."
        ),
        LINUX,
        "index-not-applied",
        (
            'uv pip install -e "./a[dev]" --extra-index-url https://download.pytorch.org/whl/cpu'
            " --index-strategy unsafe-best"
        ),
    ),
    (
        (
            "$ uv sync --extra serve\nerror: Distribution `torch==2.8.0 @ registry+https://pypi.org/simple` can't be "
            "installed because it doesn't have a source distribution or wheel for the current"
            " platform\nhint: You're using "
            "CPython 3.14 (`cp314`), but `torch` (v2.8.0) only has wheels with the following Python ABI tags: `cp313`"
        ),
        LINUX,
        "python-too-new-for-wheel",
        "uv python pin 3.13\nuv sync --extra serve",
    ),
    (
        (
            "$ uv add torch==1.6.0+cu101 --index https://download.pytorch.org/whl/torch_stable.html\n"
            "Because there is no version of torch==1.6.0+cu101 and your project depends on torch==1.6.0+cu101, we can"
            " conclude that your project's requirements are unsatisfiable."
        ),
        LINUX,
        "index-wrong",
        "uv add torch==1.6.0+cu101 --find-links https://download.pytorch.org/whl/torch_stable.html",
    ),
    (
        (
            "[tool.pixi.pypi-dependencies]\n# in pyproject.toml\ntorch = { version ="
            ' "==2.5.1+cu121" }\n$ pixi install\n'
            "Because there is no version of torch==2.5.1+cu121 and you require torch==2.5.1+cu121,"
            " we can conclude that "
            "your requirements are unsatisfiable."
        ),
        LINUX,
        "release-not-on-index",
        '[tool.pixi.pypi-options] extra-index-urls = ["https://download.pytorch.org/whl/cu121"]',
    ),
    (
        (
            'torch = {version = "^2.4.1+cu124", source = "torchs"}\n% poetry lock && poetry install\n'
            "  Unable to find installation candidates for torch (2.4.1+cu124)\n"
        ),
        Machine(os="macos", arch="arm64", python="3.12"),
        "cuda-wheel-on-mac",
        '{version = "2.4.1", markers = "sys_platform == \'darwin\'"}]',
    ),
    (
        (
            "% uv run a.py\nerror: The current Python platform is not compatible with the lockfile's supported "
            "environments: `sys_platform == 'linux'`"
        ),
        Machine(os="macos", arch="arm64", python="3.12"),
        "lock-for-other-platform",
        "add sys_platform == 'darwin' to environments under [tool.uv]",
    ),
    # A wheel keeps the version that the log names; where no torch is there, one with a ready wheel comes first.
    (
        (
            "$ uv pip install -r requirements.txt\n  x Failed to build `flash-attn==2.8.1`\n  The"
            " build backend returned an"
            " error: build_wheel\n      ModuleNotFoundError: No module named 'torch'\n"
        ),
        Machine(os="linux", arch="x86_64", python="3.11", gpus=NVIDIA),
        "ext-build-without-torch",
        'flash_attn-2.8.1+cu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"\nuv pip install -r requirements.txt',
    ),
    (
        (
            "$ conda env create -f environment.yml\nPackagesNotFoundError: The following packages are not available "
            "from current channels:\n\n  - pytorch-cuda=12.6\n"
        ),
        LINUX,
        "release-not-on-index",
        "pytorch-gpu in place of pytorch and pytorch-cuda",
    ),
    (
        (
            "$ pip install torch transformers --index-url https://download.pytorch.org/whl/cu128\nERROR: Could not "
            "find a version that satisfies the requirement transformers (from versions: none)"
        ),
        WINDOWS,
        "index-wrong",
        "install torch --index-url https://download.pytorch.org/whl/cu128\npython -m pip install transformers",
    ),
    (
        "$ uv sync --extra cu128\n + torch==2.8.0+cu128\n$ uv run a.py\n - torch==2.8.0+cu128\n + torch==2.8.0+cpu\n",
        LINUX,
        "torch-replaced",
        "name it in each uv run as well, or write uv run --no-sync.\nuv sync --extra cu128",
    ),
]


def test_the_first_remedy_names_what_helps_here() -> None:
    """Package and release, compiler and toolkit, option and command are those of this case."""
    wrong = {}
    for log, machine, key, wanted in ROWS:
        remedy = first(log, machine, key)
        if wanted not in (text := "\n".join((render(remedy.text), *remedy.commands))):
            wrong[log, wanted] = text
    assert wrong == {}


def test_words_decide_only_where_they_are_said() -> None:
    """Nobody is told that his driver must stay who may change it, and nobody without Docker is sent to it."""
    text = "The NVIDIA driver on your system is too old (found version 11040)."
    assert "driver" in " ".join(first(text, LINUX, "nvidia-driver-too-old").commands)
    assert "docker" not in " ".join(first("OSError: [Errno 28] No space left on device", LINUX, "disk-full").commands)


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("$ pip install -r requirements.txt", "-r requirements.txt"),
        ('> python -m pip install --no-cache-dir "torch>=2.4" numpy', '"torch>=2.4" numpy'),
        ("  Downloading torch-2.4.0-cp310-cp310-manylinux1_x86_64.whl (797.2 MB)", '"torch==2.4.0"'),
        ("$ pip install torch; rm -rf ~", ""),
        ("$ pip install $(calc) torch", ""),
        ("$ pip install torch -i https://elsewhere.example/simple", "torch"),
    ],
)
def test_an_installation_is_repeated_as_it_was_typed(line: str, typed: str) -> None:
    """Only what names packages is taken, in characters that no shell reads, from indexes that are known."""
    assert typed_names(LogContext(read_log(line), LINUX)).get("typed", "") == typed


def test_the_program_at_hand_is_told_by_its_words() -> None:
    """The options of the program that runs out of memory are in its remedy; of an unknown one none are guessed."""
    failed = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    named = f"python generate.py --task t2v-1.3b # wan2.1\n{failed}"
    assert "--offload_model" in render(first(named, LINUX, "oom").text)
    assert "--offload_model" not in render(first(failed, LINUX, "oom").text)


def test_nvcc_is_read_from_the_log_before_the_machine() -> None:
    """The nvcc that a build calls counts, not the one that PyTorch was made with."""
    log = read_log("/usr/local/cuda-12.1/bin/nvcc -c a.cu")
    names = compiler_names(LogContext(log, with_torch(LINUX, "2.8.0+cu128")))
    assert (names["nvcc"], names["most_gcc"], names["toolset"]) == ("12.1", "12", "14.38")


@pytest.mark.parametrize(("capability", "build"), [("8.9", "cu126"), ("12.0", "cu128"), (None, "cu126")])
def test_the_older_build_for_an_old_driver_knows_the_card(capability, build):
    """Where a driver is too old, the build that is offered instead has machine code for the card."""
    log = "RuntimeError: The NVIDIA driver on your system is too old (found version 12080). Please update"
    card = Gpu(vendor=Vendor.NVIDIA, name="a card", compute_capability=capability)
    remedies = diagnose(log, Machine(os="linux", wsl=False, arch="x86_64", gpus=(card,)))[0].remedies
    assert any(f"/whl/{build}" in command for one in remedies for command in one.commands)


def test_the_older_build_for_an_old_driver_has_a_wheel_for_the_processor():
    """On Arm no build is offered for CUDA 11, for which PyTorch's index holds wheels of x86 alone."""
    log = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update"
    for os, arch, offered in (("linux", "x86_64", True), ("linux", "aarch64", False), ("windows", "arm64", False)):
        remedies = diagnose(log, Machine(os=os, wsl=False, arch=arch, gpus=NVIDIA))[0].remedies
        assert any("/whl/cu118" in command for one in remedies for command in one.commands) is offered, (os, arch)
