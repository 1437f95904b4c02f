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
)
from assistant.diagnose.facts import (
    LogContext,
    companion_row,
    pip_install_pair,
    torchcodec_install,
    versions_for_cuda,
)
from assistant.diagnose.log import Log
from assistant.diagnose.missing import (
    LibraryFile,
    Missing,
    Requester,
    missing_files,
    missing_modules,
    missing_symbols,
    parse_library,
)
from assistant.diagnose.rules import Cause
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


_KEYS_OF_DEPENDENCIES = {
    "ort-cuda": "ort-cudnn-missing",
    "tensorrt": "ort-tensorrt-libs",
    "openvino": "ort-openvino-libs",
}


class _Lack(NamedTuple):
    """A library that is missing, its file name taken apart, and who asks for it; None if unknown."""

    missing: Missing
    file: LibraryFile
    requester: Requester | None


def companion_causes(log: Log, machine: Machine) -> Iterable[Cause]:
    """Yield the causes that a log's missing things and pairs of versions point to on a machine."""
    context = LogContext(log, machine)
    yield from build_causes(context)
    yield from pair_causes(context)
    yield from musl_causes(context)
    yield from symbol_causes(context)
    yield from module_causes(context)
    yield from provider_causes(context)
    for missing in (*missing_files(context.text), *_dependencies(context)):
        file = parse_library(missing.thing)
        yield from _library_causes(context, _Lack(missing, file, context.requester_at(missing.at, missing.requester)))
    yield from _torchcodec_causes(context)


def _dependencies(context: LogContext) -> Iterator[Missing]:
    """Yield the modules that do not load since a library of theirs is missing ("DLL load failed …")."""
    return (missing for missing in missing_modules(context.text) if missing.kind == "dependency")


def _library_causes(context: LogContext, lack: _Lack) -> Iterator[Cause]:
    """Yield the cause of one missing library, by its kind and who asks for it; nothing if it is judged elsewhere."""
    row, requester = lack.file.row, lack.requester
    kind = row.kind if row else ""
    if kind in _JUDGED_ELSEWHERE or (
        requester and requester.kind in {"torchcodec", "bitsandbytes", "directml", "ipex"}
    ):
        return
    if kind == "ffmpeg":
        key = "torchcodec-ffmpeg-missing" if requester and requester.kind == "torchvision" else "missing-system-library"
        yield _library_cause(context, lack, key, system="ffmpeg")
    elif lack.missing.kind == "dependency":
        # A file of ONNX Runtime of whose own libraries one is missing: Windows does not say which.
        if kind in _KEYS_OF_DEPENDENCIES:
            yield _library_cause(context, lack, _KEYS_OF_DEPENDENCIES[kind], basis="library-part")
    elif kind in {"torch", "torch-gpu"}:
        yield from _torch_part_causes(context, lack)
    elif kind in {"cuda", "cudnn", "torch-cuda"}:
        yield from _cuda_causes(context, lack)
    elif kind in _KEYS and not (kind == "oneapi" and {gpu.vendor for gpu in context.machine.gpus} & _NOT_INTEL):
        yield _library_cause(context, lack, _KEYS[kind])
    elif (
        (row is None or kind == "system") and _UNIX.fullmatch(lack.missing.thing) and _LOADER in _line_of(context, lack)
    ):
        packages = {
            "arch_package" if name == "arch" else name: package
            for name, package in (row.packages if row else {}).items()
        }
        yield _library_cause(context, lack, "missing-system-library", **packages)


def _line_of(context: LogContext, lack: _Lack) -> str:
    """Return the line of the text that shows a missing library."""
    return context.text[slice(*context.line_span(lack.missing.at))]


def _torch_part_causes(context: LogContext, lack: _Lack) -> Iterator[Cause]:
    """Yield a cause for a missing part of PyTorch if its requester was made for another build or release of it."""
    if (
        lack.file.row
        and lack.file.row.kind == "torch-gpu"
        and (not lack.requester or lack.requester.kind == "torchvision")
    ):
        yield _library_cause(context, lack, "torch-torchvision-mismatch")
    elif lack.requester and lack.requester.kind == "extension":
        yield _library_cause(context, lack, "torch-abi-mismatch", package=lack.requester.package)


def _cuda_causes(context: LogContext, lack: _Lack) -> Iterator[Cause]:
    """Yield the cause of a missing library of CUDA, by who asks for it; nothing if TensorFlow or the like went on."""
    requester = lack.requester.kind if lack.requester else ""
    line = _line_of(context, lack)
    is_own_message = (_LOADER not in line and "which is missing" not in line) or "could not load library" in line
    if requester == "torchvision":
        yield _library_cause(context, lack, "torch-torchvision-mismatch")
    elif requester == "torch" or (lack.file.row and lack.file.row.kind == "torch-cuda"):
        yield _library_cause(context, lack, "cuda-wheel-dependency-missing", **_cuda_wheel_names(context, lack))
    elif requester == "extension":
        yield _library_cause(
            context, lack, "torch-abi-mismatch", package=lack.requester.package if lack.requester else ""
        )
    elif requester == "cuda-user" or (requester != "onnxruntime" and is_own_message):
        if context.went_on(lack.missing.at):
            return  # TensorFlow looks for CUDA wherever it runs
        package = lack.requester.package if lack.requester and requester != "cuda-user" else ""
        names = {**_cuda_wheel_names(context, lack), **({"package": package} if package else {})}
        yield _library_cause(context, lack, "cuda-libs-other-major", **names)
    elif lack.requester or "onnx" in context.text or not context.frames_above(lack.missing.at):
        yield from _onnxruntime_causes(context, lack)
    else:  # the frames are another program's
        yield _library_cause(context, lack, "cuda-libs-other-major", **_cuda_wheel_names(context, lack))


def _onnxruntime_causes(context: LogContext, lack: _Lack) -> Iterator[Cause]:
    """Yield the cause of a library of CUDA that ONNX Runtime misses, or a program without a name."""
    row = lack.file.row
    majors = frozenset(row.cuda_majors(lack.file.major) if row else ())
    if row and row.kind == "cudnn":
        key = "ort-cudnn-missing"
    elif context.cuda and majors:
        key = "ort-cuda-libs-not-on-path" if context.cuda & majors else "ort-cuda-version-mismatch"
    else:  # the first library that is looked for, and thus the one that another CUDA lacks
        key = "ort-cuda-version-mismatch" if lack.file.stem == "cublaslt" else "ort-cuda-libs-not-on-path"
    basis = "library" if lack.requester else "library-part"
    yield _library_cause(
        context,
        lack,
        key,
        basis=basis,
        **_onnxruntime_requirements(context, max(majors & {11, 12, 13}, default=None)),
        **_cuda_wheel_names(context, lack),
    )


def _onnxruntime_requirements(context: LogContext, major_asked: int | None) -> dict[str, str]:
    """Return the requirements of ONNX Runtime with its libraries as placeholders, without those that are unknown.

    `same` is for the CUDA that is asked for, `fitting` for the one present, `either` for the usual one if none is.
    """
    major_present = max(context.cuda, default=None)
    names = {} if major_present else {"either": f"{_ORT}[cuda,cudnn]{versions_for_cuda(companion_row(_ORT), _USUAL)}"}
    for name, major in (("same", major_asked), ("fitting", major_present)):
        versions = versions_for_cuda(companion_row(_ORT), major) if major else ""
        extras = "[cuda,cudnn]" if major and major > 11 else ""  # noqa: PLR2004 - releases for CUDA 11 have no extras
        if versions:
            names[name] = f"{_ORT}{extras}{versions}"
    return names


_CUDNN_BEFORE, _CUDNN_9_SINCE = 8, (2, 4)  # https://github.com/pytorch/pytorch/releases/tag/v2.4.0


def _is_needed_by_torch(context: LogContext, major: int) -> bool:
    """Return whether torch needs cuDNN 9 from the distribution in which pip would put cuDNN 8."""
    if re.search(rf"nvidia-cudnn-cu{major}[ =]{{1,30}}9", context.text):
        return True
    is_of_torch = context.torch_cuda.partition(".")[0] == str(major)
    return is_of_torch and context.machine.os == "linux" and number(context.torch) >= _CUDNN_9_SINCE


_CUBLAS = {11: "nvidia-cublas-cu11", 12: "nvidia-cublas-cu12", 13: "nvidia-cublas"}  # which cuDNN and programs load too


def _cuda_wheel_names(context: LogContext, lack: _Lack) -> dict[str, str]:
    """Return the wheel that brings a missing library of CUDA, as placeholders; {} for a library that the table lacks.

    `wheel` is its requirement, `distribution` its name, `major` its CUDA, `wheels` the words for pip, `folder` where it
    puts the library, and `complete` the command that brings torch's own libraries; those without a value are left out
    or "".
    """
    row, version = lack.file.row, lack.file.major
    if row is None:
        return {}
    torch_majors = {int(cuda.partition(".")[0])} if (cuda := context.torch_cuda) else set()
    majors = row.cuda_majors(version) if row.kind != "torch-cuda" else tuple(torch_majors)
    for_torch = torch_majors & set(majors) if lack.requester and lack.requester.kind == "torch" else set()
    major = max(for_torch or ({_USUAL} & set(majors)) or majors, default=0)
    index = f" --index-url https://download.pytorch.org/whl/{context.build}" if context.build else ""
    names = {"complete": f'python -m pip install "torch=={context.torch}"{index}' if context.torch else ""}
    if str(major) in row.wheels and not (
        row.kind == "cudnn" and version == _CUDNN_BEFORE and _is_needed_by_torch(context, major)
    ):
        distribution = row.wheels[str(major)]
        pinned = f"=={version}.*" if row.kind == "cudnn" and version else ""
        names |= {"wheel": f"{distribution}{pinned}", "distribution": distribution, "major": str(major)}
        cublas = f" {_CUBLAS[major]}" if row.kind == "cudnn" or lack.file.stem == "cudart" else ""
        names["wheels"] = f'"{distribution}{pinned}"{cublas}'
    return {**names, "folder": row.folders.get(str(major), "")}


def _torchcodec_causes(context: LogContext) -> Iterator[Cause]:
    """Yield causes why TorchCodec does not load: FFmpeg is missing, or it was made for another torch; nothing else.

    If the text does not tell which of both it is, both are yielded, the likelier one first.
    """
    if not any(word in context.text for word in ("torchcodec", "torio", "torchaudio")):
        return
    if any("torchcodec" in symbol.requester for symbol in missing_symbols(context.text)):
        return  # a core that lacks a symbol has found its FFmpeg: `symbol_causes`
    lacks = [
        _Lack(missing, parse_library(missing.thing), context.requester_at(missing.at, missing.requester))
        for missing in (*missing_files(context.text), *_dependencies(context))
    ]
    of_torchcodec = [
        lack
        for lack in lacks
        if "torchcodec" in lack.missing.thing or (lack.requester and lack.requester.kind == "torchcodec")
    ]
    lack_of_kind = {lack.file.row.kind: lack for lack in of_torchcodec if lack.file.row}
    name_at = context.text.find("torchcodec")
    message_at = context.text.find("could not load libtorchcodec")
    versions = {"package": "torchcodec", "install": torchcodec_install(context), "torch": context.torch}
    names = {"library": "libtorchcodec", **{name: value for name, value in versions.items() if value}}
    unrelated = next((lack for kind, lack in lack_of_kind.items() if kind not in {"ffmpeg", "torchcodec"}), None)
    if unrelated:
        yield context.cause(
            "torchcodec-torch-mismatch",
            unrelated.missing.at,
            {**names, "library": context.as_spelt(unrelated.missing.at, unrelated.missing.thing)},
        )
    elif "ffmpeg" in lack_of_kind and not _is_unpaired(context):
        yield context.cause(
            "torchcodec-ffmpeg-missing",
            lack_of_kind["ffmpeg"].missing.at,
            {**names, "library": lack_of_kind["ffmpeg"].missing.thing},
        )
    elif ("torchcodec" in lack_of_kind or message_at >= 0) and not context.only_warned(max(message_at, name_at, 0)):
        shown_at = lack_of_kind["torchcodec"].missing.at if "torchcodec" in lack_of_kind else message_at
        has_ffmpeg, is_unpaired = _LAST_FFMPEG.search(context.text), _is_unpaired(context)
        keys = ("torchcodec-torch-mismatch", "torchcodec-ffmpeg-missing")
        for key, basis in zip(
            keys if has_ffmpeg or is_unpaired else keys[::-1], ("library-part", "library-else"), strict=True
        ):
            yield context.cause(key, max(shown_at, name_at, 0), names, basis)


def _is_unpaired(context: LogContext) -> bool:
    """Return whether a log's TorchCodec is for another release or build of torch; False if one of them is unknown.

    Of a torch that is newer than the table nothing is known.
    """
    version, torch = context.versions.get("torchcodec", ""), context.torch
    row = companion_row("torchcodec")
    if not version or not torch or row is None:
        return False
    public, _plus, build = version.partition("+")
    fitting_ranges = [version_range for version_range in row.ranges if version_range.goes_with(torch.partition("+")[0])]
    is_in_range = any(
        SpecifierSet(version_range.versions).contains(public, prereleases=True) for version_range in fitting_ranges
    )
    return (bool(fitting_ranges) and not is_in_range) or bool(build and context.build and build != context.build)


def _library_cause(context: LogContext, lack: _Lack, key: str, basis: str = "library", **names: str) -> Cause:
    """Return a cause at the line of a missing library, with the names that any rule of libraries may need."""
    owner = lack.file.row.owner if lack.file.row else ""
    install = pip_install_pair(context.torch) if key == "torch-torchvision-mismatch" else ""
    filled = {name: value for name, value in {"owner": owner, "install": install, **names}.items() if value}
    filled["library"] = context.as_spelt(lack.missing.at, lack.missing.thing)
    return context.cause(key, lack.missing.at, filled, basis)


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


def provider_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes that ONNX Runtime, bitsandbytes and OpenMP name in their own messages."""
    names_a_library = "cannot open shared object" in context.text or "which is missing" in context.text
    if (match := _REQUIRES.search(context.text)) and not names_a_library:
        yield _requirement_cause(context, match)
    if (match := _TENSORRT.search(context.text)) and "onnxruntime" in context.text:
        yield context.cause("ort-tensorrt-libs", match.start(), {"library": "TensorRT"}, "library-part")
    if match := _QNN.search(context.text):
        yield context.cause("ort-qnn-unavailable", match.start())
    if (match := _COREML.search(context.text)) and _COREML_ORT.search(context.text):
        yield context.cause("ort-coreml-failed", match.start())
    yield from _bitsandbytes_causes(context)
    if match := _OPENMP.search(context.text):
        files = dict.fromkeys(_FILES.findall(context.text))
        yield context.cause("openmp-twice", match.start(), {"library": ", ".join(files) or "OpenMP"})


def _requirement_cause(context: LogContext, match: re.Match[str]) -> Cause:
    """Return the cause of ONNX Runtime's "Require cuDNN … and CUDA …": another CUDA is present, or cuDNN is missing."""
    major_asked = int(match[2] or match[3])
    names = {}
    for name, major in (("same", major_asked), ("fitting", max(context.cuda, default=0))):
        if versions := versions_for_cuda(companion_row("onnxruntime-gpu"), major):
            names[name] = f"onnxruntime-gpu{'[cuda,cudnn]' if major > 11 else ''}{versions}"  # noqa: PLR2004 - before 12 without extras
    is_present = bool(context.cuda) and major_asked in context.cuda
    return context.cause(
        "ort-cudnn-missing" if is_present else "ort-cuda-version-mismatch",
        match.start(),
        {"library": "cuDNN", **names},
        "library-part",
    )


def _bitsandbytes_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes if bitsandbytes lacks a binary for its GPU: that, and a CPU build of torch if there is one.

    Nothing is yielded if the program went on without it.
    """
    message = _BNB.search(context.text)
    at = (
        message.start()
        if message
        else next((symbol.at for symbol in missing_symbols(context.text) if "libbitsandbytes" in symbol.requester), -1)
    )
    if at < 0 or "bitsandbytes" not in context.text or context.went_on(at):
        return
    if context.build == "cpu":
        yield context.cause("torch-cpu-build-installed", at)
    yield context.cause("bitsandbytes-no-binary", at, {}, "library-part" if context.build == "cpu" else "library")
