"""Judges what providers of ONNX Runtime, bitsandbytes and OpenMP say in words of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assistant.diagnose.causes import Cause
from assistant.diagnose.surroundings import Surroundings, for_cuda, known
from assistant.diagnose.wants import missing_symbols

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
    if (found := _REQUIRES.search(case.text)) and not _named_library(case):
        yield _required(case, found)
    if (found := _TENSORRT.search(case.text)) and "onnxruntime" in case.text:
        yield _at(case, "ort-tensorrt-libs", found.start(), {"library": "TensorRT"}, "library-part")
    if found := _QNN.search(case.text):
        yield _at(case, "ort-qnn-unavailable", found.start(), {})
    if (found := _COREML.search(case.text)) and _COREML_ORT.search(case.text):
        yield _at(case, "ort-coreml-failed", found.start(), {})
    yield from _bitsandbytes(case)
    if found := _OPENMP.search(case.text):
        files = dict.fromkeys(_FILES.findall(case.text))
        yield _at(case, "openmp-twice", found.start(), {"library": ", ".join(files) or "OpenMP"})


def _named_library(case: Surroundings) -> bool:
    return any(word in case.text for word in ("cannot open shared object", "which is missing"))


def _required(case: Surroundings, found: re.Match[str]) -> Cause:
    """ONNX Runtime tells the CUDA that it was built for: it is another than the one here, or cuDNN is missing."""
    wanted = int(found[2] or found[3])
    names = {}
    for name, major in (("same", wanted), ("fitting", max(case.cuda, default=0))):
        if versions := for_cuda(known("onnxruntime-gpu"), major):
            names[name] = f"onnxruntime-gpu{'[cuda,cudnn]' if major > 11 else ''}{versions}"  # noqa: PLR2004 - before 12 without extras
    same = bool(case.cuda) and wanted in case.cuda
    return _at(
        case,
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
        yield _at(case, "torch-cpu-build-installed", at, {})
    yield _at(case, "bitsandbytes-no-binary", at, {}, "library-part" if case.build == "cpu" else "library")


def _at(case: Surroundings, key: str, at: int, names: dict[str, str], basis: str = "library") -> Cause:
    return Cause(key, basis, (case.log.index_at(at),), names)
