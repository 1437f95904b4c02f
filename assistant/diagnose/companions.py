"""Works out which libraries torch's companions miss, and what ONNX Runtime, bitsandbytes and OpenMP say themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from assistant.catalog import number
from assistant.diagnose.extensions import (
    build_causes,
    module_causes,
    musl_causes,
    pair_causes,
    symbol_causes,
    told_causes,
)
from assistant.diagnose.log import Log
from assistant.diagnose.missing import (
    Missing,
    Named,
    Requester,
    library,
    missing_files,
    missing_modules,
    missing_symbols,
)
from assistant.diagnose.rules import Cause
from assistant.diagnose.surroundings import Surroundings, for_cuda, known, pip_install_trio, torchcodec_install
from assistant.model.machine import Machine, Vendor

_ORT = "onnxruntime-gpu"
_USUAL = 12  # the CUDA that programs beside torch are built for, where a library serves several
_LAST_FFMPEG = re.compile(r"ffmpeg(?: version)?[ :]{1,2}n?([4-9])\.\d")
_LOADER = (
    "cannot open shared object"  # the bare words of Linux' loader, with which ONNX Runtime passes on what it lacks
)


# TorchCodec's are judged together, the others by their own words, or by rules of their own.
_JUDGED_ELSEWHERE = {"torchcodec", "bitsandbytes", "qnn", "other"}


_UNIX = re.compile(r"lib[^\n]{1,90}\.so[\d.]{0,12}")
_NOT_INTEL = {Vendor.NVIDIA, Vendor.AMD, Vendor.APPLE}
# Kinds of libraries whose absence is one cause, whoever asks for them.
_KEYS = {
    "tensorrt": "ort-tensorrt-libs",
    "openvino": "ort-openvino-libs",
    "nvjitlink": "nvjitlink-mismatch",
    "rocm": "rocm-libs-not-on-path",
    "oneapi": "oneapi-version-mismatch",
}


class _Wanted(NamedTuple):
    """A library that is missing, taken apart, with the one who asks for it."""

    missing: Missing
    named: Named
    asks: Requester | None


def companion_causes(log: Log, machine: Machine) -> Iterable[Cause]:
    """Yield the causes that a log's missing things and pairs of versions point to, on a machine with all its facts."""
    case = Surroundings(log, machine)
    yield from build_causes(case)
    yield from pair_causes(case)
    yield from musl_causes(case)
    yield from symbol_causes(case)
    yield from module_causes(case)
    yield from told_causes(case)
    yield from provider_causes(case)
    for missing in (*missing_files(case.text), *_dependencies(case)):
        named = library(missing.thing)
        yield from _library(case, _Wanted(missing, named, case.asks(missing.at, missing.requester)))
    yield from _torchcodec(case)


def _dependencies(case: Surroundings) -> Iterator[Missing]:
    """Yield the modules of which a library of their own is missing, as in “DLL load failed while importing”."""
    return (one for one in missing_modules(case.text) if one.kind == "dependency")


def _library(case: Surroundings, wanted: _Wanted) -> Iterator[Cause]:
    row, asks = wanted.named.row, wanted.asks
    kind = row.kind if row else ""
    if kind in _JUDGED_ELSEWHERE or (asks and asks.kind in {"torchcodec", "bitsandbytes", "directml", "ipex"}):
        return
    if kind == "ffmpeg":
        key = "torchcodec-ffmpeg-missing" if asks and asks.kind == "torchvision" else "missing-system-library"
        yield _cause(case, wanted, key, system="ffmpeg")
    elif wanted.missing.kind == "dependency":
        yield from _dependency(case, wanted)
    elif kind in {"torch", "torch-gpu"}:
        yield from _part_of_torch(case, wanted)
    elif kind in {"cuda", "cudnn", "torch-cuda"}:
        yield from _cuda(case, wanted)
    elif kind in _KEYS and not (kind == "oneapi" and {gpu.vendor for gpu in case.machine.gpus} & _NOT_INTEL):
        yield _cause(case, wanted, _KEYS[kind])
    elif (row is None or kind == "system") and _UNIX.fullmatch(wanted.missing.thing) and _LOADER in _line(case, wanted):
        packages = {
            "arch_package" if name == "arch" else name: one for name, one in (row.packages if row else {}).items()
        }
        yield _cause(case, wanted, "missing-system-library", **packages)


def _line(case: Surroundings, wanted: _Wanted) -> str:
    return case.text[slice(*case.line(wanted.missing.at))]


def _part_of_torch(case: Surroundings, wanted: _Wanted) -> Iterator[Cause]:
    """Judge a part of PyTorch that is missing: its requester was made for another build or release of it."""
    if (
        wanted.named.row
        and wanted.named.row.kind == "torch-gpu"
        and (not wanted.asks or wanted.asks.kind == "torchvision")
    ):
        yield _cause(case, wanted, "torch-torchvision-mismatch")
    elif wanted.asks and wanted.asks.kind == "extension":
        yield _cause(case, wanted, "torch-abi-mismatch", package=wanted.asks.package)


def _dependency(case: Surroundings, wanted: _Wanted) -> Iterator[Cause]:
    """Judge a file of whose own libraries one is missing, when Windows does not say which."""
    kind = wanted.named.row.kind if wanted.named.row else ""
    key = {"ort-cuda": "ort-cudnn-missing", "tensorrt": "ort-tensorrt-libs", "openvino": "ort-openvino-libs"}.get(kind)
    if key:
        yield _cause(case, wanted, key, basis="library-part")


def _cuda(case: Surroundings, wanted: _Wanted) -> Iterator[Cause]:
    """Judge a library of CUDA that is missing: the remedy is bound to the one who asks for it."""
    asks = wanted.asks.kind if wanted.asks else ""
    line = _line(case, wanted)
    own_words = (_LOADER not in line and "which is missing" not in line) or "could not load library" in line
    if asks == "torchvision":
        yield _cause(case, wanted, "torch-torchvision-mismatch")
    elif asks == "torch" or (wanted.named.row and wanted.named.row.kind == "torch-cuda"):
        yield _cause(case, wanted, "cuda-wheel-dependency-missing", **_wheel(case, wanted))
    elif asks == "extension":
        yield _cause(case, wanted, "torch-abi-mismatch", package=wanted.asks.package if wanted.asks else "")
    elif asks == "cuda-user" or (asks != "onnxruntime" and own_words):
        if case.went_on(wanted.missing.at):
            return  # TensorFlow looks for CUDA wherever it runs
        yield _cause(case, wanted, "cuda-libs-other-major", **_wheel(case, wanted), **_upgrade(wanted))
    elif wanted.asks or "onnx" in case.text or not case.frames(wanted.missing.at):
        yield from _onnxruntime(case, wanted)
    else:  # the frames are another program's
        yield _cause(case, wanted, "cuda-libs-other-major", **_wheel(case, wanted))


def _onnxruntime(case: Surroundings, wanted: _Wanted) -> Iterator[Cause]:
    """Judge what ONNX Runtime misses of CUDA, or a program that does not tell its name."""
    row = wanted.named.row
    majors = frozenset(row.cuda_majors(wanted.named.major) if row else ())
    if row and row.kind == "cudnn":
        key = "ort-cudnn-missing"
    elif case.cuda and majors:
        key = "ort-cuda-libs-not-on-path" if case.cuda & majors else "ort-cuda-version-mismatch"
    else:  # the first library that is looked for, and thus the one that another CUDA lacks
        key = "ort-cuda-version-mismatch" if wanted.named.stem == "cublaslt" else "ort-cuda-libs-not-on-path"
    basis = "library" if wanted.asks else "library-part"
    yield _cause(
        case,
        wanted,
        key,
        basis=basis,
        **_runtime(case, max(majors & {11, 12, 13}, default=None)),
        **_wheel(case, wanted),
    )


def _runtime(case: Surroundings, wanted: int | None) -> dict[str, str]:
    """Return the requirements of ONNX Runtime with its libraries: for the CUDA that it wants, and for the one there."""
    present = max(case.cuda, default=None)
    names = {} if present else {"either": f"{_ORT}[cuda,cudnn]{for_cuda(known(_ORT), _USUAL)}"}
    for name, major in (("same", wanted), ("fitting", present)):
        versions = for_cuda(known(_ORT), major) if major else ""
        extras = "[cuda,cudnn]" if major and major > 11 else ""  # noqa: PLR2004 - releases for CUDA 11 have no extras
        if versions:
            names[name] = f"{_ORT}{extras}{versions}"
    return names


_CUDNN_BEFORE, _CUDNN_9_SINCE = 8, (2, 4)  # https://github.com/pytorch/pytorch/releases/tag/v2.4.0


def _shares(case: Surroundings, major: int) -> bool:
    """Return whether torch needs cuDNN 9 from the very distribution: pip would put cuDNN 8 in its place."""
    if re.search(rf"nvidia-cudnn-cu{major}[ =]{{1,30}}9", case.text):
        return True
    own = case.torch_cuda.partition(".")[0] == str(major)
    return own and case.machine.os == "linux" and number(case.torch) >= _CUDNN_9_SINCE


_CUBLAS = {11: "nvidia-cublas-cu11", 12: "nvidia-cublas-cu12", 13: "nvidia-cublas"}  # which cuDNN and programs load too


def _wheel(case: Surroundings, wanted: _Wanted) -> dict[str, str]:
    """Return the wheel that brings a library of CUDA in the version that is asked for, and where it lies.

    torch's own comes in the version that torch requires, once torch is asked for again.
    """
    row, version = wanted.named.row, wanted.named.major
    if row is None:
        return {}
    own = {int(cuda.partition(".")[0])} if (cuda := case.torch_cuda) else set()
    majors = row.cuda_majors(version) if row.kind != "torch-cuda" else tuple(own)
    asked = own & set(majors) if wanted.asks and wanted.asks.kind == "torch" else set()
    major = max(asked or ({_USUAL} & set(majors)) or majors, default=0)
    index = f" --index-url https://download.pytorch.org/whl/{case.build}" if case.build else ""
    names = {"complete": f'python -m pip install "torch=={case.torch}"{index}' if case.torch else ""}
    if str(major) in row.wheels and not (row.kind == "cudnn" and version == _CUDNN_BEFORE and _shares(case, major)):
        distribution = row.wheels[str(major)]
        pinned = f"=={version}.*" if row.kind == "cudnn" and version else ""
        names |= {"wheel": f"{distribution}{pinned}", "distribution": distribution, "major": str(major)}
        beside = f" {_CUBLAS[major]}" if row.kind == "cudnn" or wanted.named.stem == "cudart" else ""
        names["wheels"] = f'"{distribution}{pinned}"{beside}'
    return {**names, "folder": row.folders.get(str(major), "")}


def _upgrade(wanted: _Wanted) -> dict[str, str]:
    """Name the package that asks, where it is a distribution that can be upgraded."""
    package = wanted.asks.package if wanted.asks else ""
    return {"package": package} if package and package != "cuda-user" else {}


def _torchcodec(case: Surroundings) -> Iterator[Cause]:
    """Judge why TorchCodec does not load: FFmpeg is missing, or it was made for another torch."""
    if not any(word in case.text for word in ("torchcodec", "torio", "torchaudio")):
        return
    if any("torchcodec" in one.requester for one in missing_symbols(case.text)):
        return  # a core that lacks a symbol has found its FFmpeg: `symbol_causes`
    found = [
        _Wanted(one, library(one.thing), case.asks(one.at, one.requester))
        for one in (*missing_files(case.text), *_dependencies(case))
    ]
    codec = [one for one in found if "torchcodec" in one.missing.thing or (one.asks and one.asks.kind == "torchcodec")]
    kinds = {one.named.row.kind: one for one in codec if one.named.row}
    at = case.text.find("torchcodec")
    claimed = case.text.find("could not load libtorchcodec")
    versions = {"package": "torchcodec", "install": torchcodec_install(case), "torch": case.torch}
    names = {"library": "libtorchcodec", **{name: value for name, value in versions.items() if value}}
    other = next((one for kind, one in kinds.items() if kind not in {"ffmpeg", "torchcodec"}), None)
    if other:
        yield case.cause(
            "torchcodec-torch-mismatch",
            other.missing.at,
            {**names, "library": case.spelt(other.missing.at, other.missing.thing)},
        )
    elif "ffmpeg" in kinds and not _unpaired(case):
        yield case.cause(
            "torchcodec-ffmpeg-missing",
            kinds["ffmpeg"].missing.at,
            {**names, "library": kinds["ffmpeg"].missing.thing},
        )
    elif ("torchcodec" in kinds or claimed >= 0) and not case.only_warned(max(claimed, at, 0)):
        first = kinds["torchcodec"].missing.at if "torchcodec" in kinds else claimed
        there, apart = _LAST_FFMPEG.search(case.text), _unpaired(case)
        keys = ("torchcodec-torch-mismatch", "torchcodec-ffmpeg-missing")
        for key, basis in zip(keys if there or apart else keys[::-1], ("library-part", "library-else"), strict=True):
            yield case.cause(key, max(first, at, 0), names, basis)


def _unpaired(case: Surroundings) -> bool:
    """Return whether the TorchCodec of a log is known to be for another torch, or for another build of it.

    Of a torch that is newer than the table nothing is known.
    """
    version, torch = case.versions.get("torchcodec", ""), case.torch
    row = known("torchcodec")
    if not version or not torch or row is None:
        return False
    public, _plus, build = version.partition("+")
    fitting = [one for one in row.ranges if one.goes_with(torch.partition("+")[0])]
    paired = any(SpecifierSet(one.versions).contains(public, prereleases=True) for one in fitting)
    return (bool(fitting) and not paired) or bool(build and case.build and build != case.build)


def _cause(case: Surroundings, wanted: _Wanted, key: str, basis: str = "library", **names: str) -> Cause:
    owner = {"owner": wanted.named.row.owner} if wanted.named.row else {}
    trio = {"install": trio} if key == "torch-torchvision-mismatch" and (trio := pip_install_trio(case.torch)) else {}
    filled = {
        "library": case.spelt(wanted.missing.at, wanted.missing.thing),
        **owner,
        **trio,
        **{name: value for name, value in names.items() if value},
    }
    return case.cause(key, wanted.missing.at, filled, basis)


# Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*, and the latest MSVC runtime.
_REQUIRES = re.compile(r"requires? cudnn (\d{1,2})\.\* and cuda (\d\d)|require cuda (\d\d)\.")
# Please install TensorRT libraries as mentioned in the GPU requirements page
_TENSORRT = re.compile(
    r"please install tensorrt librar|(?:tensorrt|\btrt\b)[^\n]{0,60}(?:librar\w{1,3}"
    r"|provider)[^\n]{0,40}(?:not found|missing|could not|cannot)"
    r"|failed to create tensorrtexecutionprovider"
)
# QNN SetupBackend failed qnn_backend_manager.cc:56 … Unable to load backend, error: load library failed
# Specified provider 'QNNExecutionProvider' is not in available provider names.
# >>> 'QNNExecutionProvider' in onnxruntime.get_available_providers()
# False
_QNN = re.compile(
    r"qnn setupbackend failed|qnn[^\n]{0,120}(?:unable to load backend|failed to (?:load|create"
    r"|initialize)|not supported in this build|error 126)"
    r"|qnnexecutionprovider['\"]?[^\n]{0,60}(?:not in|not available|isn't|not (?:found|listed|supported)"
    r"|不在|没有|不可用)"
    r"|qnnexecutionprovider['\"]? in [^\n]{0,60}\n[^\n]{0,8}false|(?:no|without|missing|找不到"
    r"|没有) qnn ?executionprovider|(?:没有|找不到|缺少)[^\n]{0,6}qnn"
    r"|(?:libqnn|qnnhtp)\w{0,20}\.(?:dll|so)[^\n]{0,60}(?:not found|missing|cannot|could not|找不到)"
)
# [E:onnxruntime:, coreml] Error compiling model: Failed to build the model execution plan …, CoreMLExecutionProvider
# Non-zero status code returned while running CoreML_182…_0 node. … Unable to compute the prediction using …
_COREML = re.compile(
    r"coreml[^\n]{0,200}(?:error compiling model|failed to build the model|error in building plan"
    r"|unable to compute the prediction|error executing model|compiler error|failed to (?:compile"
    r"|load) model)"
    r"|(?:error compiling model|failed to build the model execution plan|error in building plan"
    r"|unable to compute the prediction)[^\n]{0,200}(?:coreml|$)"
    r"|non-zero status code returned while running coreml|coreml[^\n]{0,20}(?:报错|失败|出错)"
)
_COREML_ORT = re.compile(r"onnx|\bort\b|coremlexecutionprovider")
# Could not find the bitsandbytes CUDA binary at WindowsPath('…/libbitsandbytes_cuda128.dll')
# The installed version of bitsandbytes was compiled without GPU support.
# CUDA Setup failed despite GPU being available.   Library not found: …/libbitsandbytes_rocm71.so
_BNB = re.compile(
    r"could not find the bitsandbytes (?:cuda |rocm |\w{2,6} )?binary|configured (?:cuda"
    r"|rocm) binary not found|compiled without gpu support|cuda setup failed despite gpu"
    r"|(?:required library version )?not found:? [^\n]{0,300}libbitsandbytes_\w{3,20}"
    r"|libbitsandbytes_\w{3,40}\.(?:so|dll)[^\n]{0,60}(?:not found|cannot open|no such|missing|找不到"
    r"|undefined symbol)"
    r"|(?:找不到|缺少|没有)[^\n]{0,200}libbitsandbytes_\w{3,20}|bitsandbytes[^\n]{0,80}(?:no (?:cuda|gpu"
    r"|rocm) (?:binary|support)|not compiled with (?:cuda|gpu))"
    r"|error named symbol not found at line"
    r"|bitsandbytes[^\n]{0,40}(?:找不到|没有|不支持)[^\n]{0,20}(?:cuda|gpu|rocm|二进制|库)"
)
# OMP: Error #15: Initializing libomp.dylib, but found libiomp5.dylib already initialized.
# frame #0: 0x00000001015e5828 libomp.dylib`void __kmp_suspend_64<false, true>(…)     (a crash inside it)
_OPENMP = re.compile(
    r"omp:? error #?15\b|error #15: initializing|(?:libi?omp\w{0,4}|libiomp5md|libgomp)[^\n]{0,20}(?:\.dll"
    r"|\.dylib|\.so)?[^\n]{0,20} already initialized|kmp_duplicate_lib_ok"
    r"|lib(?:i?omp|gomp)[\w.]{0,12}`[^\n]{0,20}__kmp_\w"
)
_FILES = re.compile(r"\b(lib(?:i?omp|gomp)\w{0,10}\.(?:dll|dylib|so[.\d]{0,4}))")


def provider_causes(case: Surroundings) -> Iterator[Cause]:
    """Yield what those say that name their trouble themselves."""
    names_a_library = "cannot open shared object" in case.text or "which is missing" in case.text
    if (found := _REQUIRES.search(case.text)) and not names_a_library:
        yield _required(case, found)
    if (found := _TENSORRT.search(case.text)) and "onnxruntime" in case.text:
        yield case.cause("ort-tensorrt-libs", found.start(), {"library": "TensorRT"}, "library-part")
    if found := _QNN.search(case.text):
        yield case.cause("ort-qnn-unavailable", found.start())
    if (found := _COREML.search(case.text)) and _COREML_ORT.search(case.text):
        yield case.cause("ort-coreml-failed", found.start())
    yield from _bitsandbytes(case)
    if found := _OPENMP.search(case.text):
        files = dict.fromkeys(_FILES.findall(case.text))
        yield case.cause("openmp-twice", found.start(), {"library": ", ".join(files) or "OpenMP"})


def _required(case: Surroundings, found: re.Match[str]) -> Cause:
    """ONNX Runtime tells the CUDA that it was built for: it is another than the one here, or cuDNN is missing."""
    wanted = int(found[2] or found[3])
    names = {}
    for name, major in (("same", wanted), ("fitting", max(case.cuda, default=0))):
        if versions := for_cuda(known("onnxruntime-gpu"), major):
            names[name] = f"onnxruntime-gpu{'[cuda,cudnn]' if major > 11 else ''}{versions}"  # noqa: PLR2004 - before 12 without extras
    same = bool(case.cuda) and wanted in case.cuda
    return case.cause(
        "ort-cudnn-missing" if same else "ort-cuda-version-mismatch",
        found.start(),
        {"library": "cuDNN", **names},
        "library-part",
    )


def _bitsandbytes(case: Surroundings) -> Iterator[Cause]:
    found = _BNB.search(case.text)
    at = (
        found.start()
        if found
        else next((one.at for one in missing_symbols(case.text) if "libbitsandbytes" in one.requester), -1)
    )
    if at < 0 or "bitsandbytes" not in case.text or case.went_on(at):
        return
    if case.build == "cpu":
        yield case.cause("torch-cpu-build-installed", at)
    yield case.cause("bitsandbytes-no-binary", at, {}, "library-part" if case.build == "cpu" else "library")
