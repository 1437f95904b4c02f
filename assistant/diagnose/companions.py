"""Judges the packages that depend on torch's version: what they miss, were built for, and say of one another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from assistant.catalog import number
from assistant.catalog.companions import find_companion, version_ranges
from assistant.diagnose.builds import (
    LibraryFile,
    Missing,
    Pair,
    missing_files,
    missing_modules,
    missing_programs,
    missing_symbols,
    package_built,
    pairs,
    parse_library,
    removal_names,
    source_of,
)
from assistant.diagnose.facts import (
    LogContext,
    Requester,
    package_of,
    pip_install,
    pip_install_pair,
    torchcodec_install,
    versions_for_cuda,
)
from assistant.diagnose.log import Log
from assistant.diagnose.rules import Cause, is_within, plain_table
from assistant.model.machine import Machine, Vendor

_TRIO = {"torchvision", "torchaudio"}
_ORT = "onnxruntime-gpu"
_USUAL = 12  # the CUDA that programs beside torch are built for, where a library serves several
_FIRST_EXTRAS = 12  # the CUDA since which onnxruntime-gpu brings libraries as extras


def companion_causes(log: Log, machine: Machine) -> Iterable[Cause]:
    """Yield the causes that a log's missing things and pairs of versions point to on a machine."""
    context = LogContext(log, machine)
    yield from _build_causes(context)
    yield from _pair_causes(context)
    yield from _symbol_causes(context)
    yield from _module_causes(context)
    lacks = [
        _Lack(missing, parse_library(missing.thing), context.requester_at(missing.at, missing.requester))
        for missing in (*missing_files(context.text), *missing_modules(context.text))
        if missing.kind in {"file", "dependency"}
    ]
    for lack in lacks:
        if key := _library_key(context, lack):
            yield _library_cause(context, lack, key)
    yield from _torchcodec_causes(context, lacks)


class _Lack(NamedTuple):
    """A library that is missing, its file name taken apart, and who asks for it; None if unknown."""

    missing: Missing
    file: LibraryFile
    requester: Requester | None


_LOADER = "cannot open shared object"  # Linux' loader, whose bare words ONNX Runtime passes on
_NO_INTEL = {Vendor.NVIDIA, Vendor.AMD, Vendor.APPLE}


def _library_key(context: LogContext, lack: _Lack) -> str:
    """Return the cause of one missing library, by its kind and who asks for it; "" if it is judged elsewhere.

    Most stand in the table of verdicts. TensorFlow and the like look for CUDA wherever they run, and go on without it.
    """
    requester, thing, at = lack.requester.kind if lack.requester else "", lack.missing.thing, lack.missing.at
    kind = f"{lack.file.kind}-dependency" if lack.missing.kind == "dependency" else lack.file.kind
    line = context.text[slice(*context.line_span(at))]
    key = next(
        (
            str(row["cause"])
            for row in plain_table("libraries.toml")["verdicts"]
            if kind in row.get("kinds", [kind]) and requester in row.get("requesters", [requester])
        ),
        "",
    )
    torch_major = int(context.torch_cuda.partition(".")[0] or 0)
    if key == "cuda-wheel-dependency-missing" and lack.file.kind == "cuda" and torch_major:
        key = key if torch_major in lack.file.cuda_majors else "cuda-libs-other-major"
    if key == "by-message":
        key = _cuda_key(context, lack, requester, line)
    elif key == "missing-system-library" and kind != "ffmpeg" and not (thing.startswith("lib") and _LOADER in line):
        return ""
    is_no_trouble = key == "cuda-libs-other-major" and context.went_on(at)
    is_nobodys = key == "oneapi-version-mismatch" and {gpu.vendor for gpu in context.machine.gpus} & _NO_INTEL
    return "" if is_no_trouble or is_nobodys else key


def _cuda_key(context: LogContext, lack: _Lack, requester: str, line: str) -> str:
    """Return the cause of a missing library of CUDA that no package of torch's asks for; `line` is the message's.

    Without a name it is ONNX Runtime that asks, unless frames of another program stand above.
    """
    is_own_message = (_LOADER not in line and "which is missing" not in line) or "could not load library" in line
    is_others = not requester and "onnx" not in context.text and context.frames_above(lack.missing.at)
    if requester != "onnxruntime" and (is_own_message or is_others):
        return "cuda-libs-other-major"
    if lack.file.kind == "cudnn":
        return "ort-cudnn-missing"
    majors = {*lack.file.cuda_majors}
    if context.cuda and majors:
        return "ort-cuda-libs-not-on-path" if context.cuda & majors else "ort-cuda-version-mismatch"
    # The first library that is looked for, and thus the one that another CUDA lacks.
    return "ort-cuda-version-mismatch" if lack.file.stem == "cublaslt" else "ort-cuda-libs-not-on-path"


def _library_cause(context: LogContext, lack: _Lack, key: str) -> Cause:
    """Return a cause at the line of a missing library, with the names that any rule of libraries may need."""
    file, missing = lack.file, lack.missing
    is_ort = key.startswith("ort-cu")
    names = {
        "library": context.as_spelt(missing.at, missing.thing),
        "owner": file.row.get("owner", ""),
        "package": lack.requester.package if lack.requester and key == "torch-abi-mismatch" else "",
        "install": pip_install_pair(context.torch) if key == "torch-torchvision-mismatch" else "",
        **{
            f"{name}_package" if name == "arch" else name: value for name, value in file.row.get("packages", {}).items()
        },
        **_cuda_wheel_names(context, lack),
        **(onnxruntime_names(context, file) if is_ort and missing.kind == "file" else {}),
    }
    is_vague = missing.kind == "dependency" or (is_ort and lack.requester is None)
    return context.cause(key, missing.at, names, "library-part" if is_vague else "library")


def onnxruntime_names(context: LogContext, file: LibraryFile | None = None) -> dict[str, str]:
    """Return the requirements of ONNX Runtime as placeholders, without those that are unknown.

    `same` is for the CUDA whose `file` is asked for, `fitting` for the one present, `either` for the usual one if none
    is; they bring CUDA's libraries, which `same` has none of for CUDA 11; `ort` is `fitting` without them.
    """
    asked = max({*file.cuda_majors} & {12, 13}, default=0) if file else 0
    present = max(context.cuda, default=0)
    names = {}
    for name, major in (("same", asked), ("fitting", present), ("ort", present), ("either", 0 if present else _USUAL)):
        if versions := versions_for_cuda(find_companion(_ORT), major) if major else "":
            names[name] = f"{_ORT}{'[cuda,cudnn]' if major >= _FIRST_EXTRAS and name != 'ort' else ''}{versions}"
    return names


_CUDNN_BEFORE, CUDNN_9_SINCE = 8, (2, 4)  # https://github.com/pytorch/pytorch/releases/tag/v2.4.0


def _cuda_wheel_names(context: LogContext, lack: _Lack) -> dict[str, str]:
    """Return the wheel that brings a missing library of CUDA, as placeholders; {} for a library that the table lacks.

    `wheel` is its requirement, `distribution` its name, `major` its CUDA, `wheels` the words for pip, and `complete`
    the command that brings torch's own libraries. There is none of a cuDNN 8 that would replace the cuDNN 9 of torch.
    """
    row, version = lack.file.row, lack.file.major
    torch_majors = {*number(context.torch_cuda)[:1]}
    majors = torch_majors if lack.file.kind == "torch-cuda" else {*lack.file.cuda_majors}
    of_torch = torch_majors & majors if lack.requester and lack.requester.kind == "torch" else set()
    major = max(of_torch or ({_USUAL} & majors) or majors, default=0)
    index = f" --index-url https://download.pytorch.org/whl/{context.build}" if context.build else ""
    names = {"complete": f'python -m pip install "torch=={context.torch}"{index}' if context.torch and row else ""}
    distribution, is_cudnn = row.get("wheels", {}).get(str(major), ""), lack.file.kind == "cudnn"
    has_cudnn_9 = re.search(rf"nvidia-cudnn-cu{major}[ =]{{1,30}}9", context.text) or (
        major in torch_majors and context.machine.os == "linux" and number(context.torch) >= CUDNN_9_SINCE
    )
    if distribution and not (is_cudnn and version == _CUDNN_BEFORE and has_cudnn_9):
        wheel = f"{distribution}=={version}.*" if is_cudnn and version else distribution
        wheels_of_cublas = parse_library("cublas.dll").row["wheels"]  # which cuDNN and programs load too
        cublas = f" {wheels_of_cublas[str(major)]}" if is_cudnn or lack.file.stem == "cudart" else ""
        names |= {"wheel": wheel, "distribution": distribution, "major": str(major), "wheels": f'"{wheel}"{cublas}'}
    return names


_FFMPEG_FOUND = re.compile(r"ffmpeg(?: version)?[ :]{1,2}n?([4-9])\.\d")
_FFMPEG_TAKEN = re.compile(r"versions \d[\d, and]{1,20}\b([4-9])\b")  # versions 4, 5, 6, 7, and 8.


def _torchcodec_causes(context: LogContext, lacks: list[_Lack]) -> Iterator[Cause]:
    """Yield causes why TorchCodec does not load: FFmpeg is missing, or it was made for another torch; nothing else.

    If the text does not tell which of both it is, both are yielded, the likelier one first.
    """
    if not any(word in context.text for word in ("torchcodec", "torio", "torchaudio")):
        return
    if any("torchcodec" in symbol.requester for symbol in missing_symbols(context.text)):
        return  # a core that lacks a symbol has found its FFmpeg: `_symbol_causes`
    lack_of = {
        lack.file.kind: lack
        for lack in lacks
        if "torchcodec" in lack.missing.thing or (lack.requester and lack.requester.kind == "torchcodec")
    }
    core, ffmpeg = (lack_of.pop(kind, None) for kind in ("torchcodec", "ffmpeg"))
    other = next((lack for kind, lack in lack_of.items() if kind), None)
    names = {"package": "torchcodec", "install": torchcodec_install(context), "torch": context.torch}
    keys = ("torchcodec-ffmpeg-missing", "torchcodec-torch-mismatch")
    at = core.missing.at if core else context.text.find("could not load libtorchcodec")
    if context.only_warned(max(at, context.text.find("torchcodec"), 0), "torchcodec|audiodecoder|ffmpeg|libav"):
        return
    if lack := other or ffmpeg:
        library = context.as_spelt(lack.missing.at, lack.missing.thing)
        yield context.cause(keys[bool(other)], lack.missing.at, {**names, "library": library})
    elif at >= 0 and not context.went_on(at):
        ffmpeg_found, taken = _FFMPEG_FOUND.search(context.text), _FFMPEG_TAKEN.search(context.text)
        is_taken = ffmpeg_found is not None and ffmpeg_found[1] <= (taken[1] if taken else "8")
        torch, here = context.torch.partition("+")[0], context.machine.packages.get("torchcodec", "")
        fits = torch and any(
            each.goes_with(torch) and is_within(here, each.versions) for each in version_ranges("torchcodec")
        )
        likelier_first = keys[::-1] if is_taken and not fits else keys[:1] if fits else keys
        for key, basis in zip(likelier_first, ("library-part", "library-else"), strict=False):
            yield context.cause(key, at, {**names, "library": "libtorchcodec"}, basis)


def _symbol_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes of undefined symbols: whose file was made for which other library.

    Nothing is yielded for those that have rules of their own, such as DirectML's and bitsandbytes'.
    """
    for symbol in missing_symbols(context.text):
        kinds = (row["kind"] for row in plain_table("libraries.toml")["symbol"] if re.match(row["names"], symbol.thing))
        kind, requester = next(kinds, ""), context.requester_at(symbol.at, symbol.requester)
        by = requester.kind if requester and (symbol.requester or kind) else ""
        # Of a library that torch loads for a companion, the message names neither: the frames above it do.
        frames = map(package_of, reversed(context.frames_above(symbol.at))) if symbol.thing == "procedure" else ()
        loader = next((name for name in frames if name != "torch"), "")
        package = context.package_at(symbol.at, symbol.requester)
        package = package or (loader if loader in _TRIO or find_companion(loader) else "")
        by = "torchvision" if package in _TRIO else "torch" if package == "torch" else by
        extension = package if find_companion(package) or (kind == "torch" and symbol.requester) else ""
        if kind == "nvjitlink":
            yield context.cause("nvjitlink-mismatch", symbol.at, {"library": "libnvJitLink"})
        elif kind == "oneapi" or by in {"ipex", "directml"} or (by == "onnxruntime" and kind != "torch"):
            continue  # their own rules; ONNX Runtime may be there, but it asks for no symbol of PyTorch
        elif by == "torchvision":
            yield context.cause("torch-torchvision-mismatch", symbol.at, {"install": pip_install_pair(context.torch)})
        elif kind in {"cuda", "cudnn", "torch-cuda"} and by == "torch":
            # A file of PyTorch itself finds another release of a library than it was built with.
            yield context.cause("cuda-libs-other-major", symbol.at, {"library": symbol.thing})
        elif "torchcodec" in {by, package}:
            names = {"library": symbol.thing, "install": torchcodec_install(context)}
            yield context.cause("torchcodec-torch-mismatch", symbol.at, names)
        elif extension or by == "extension" or (symbol.thing != "procedure" and "torch" in {kind, by}):
            yield _abi_cause(
                context, symbol.at, extension or (requester.package if requester and by == "extension" else "")
            )


def _abi_cause(context: LogContext, at: int, package: str) -> Cause:
    """Return the cause that a package ("" if unknown) was compiled for another torch, at the line of a position."""
    package, row = "" if package == "torch" else package, find_companion(package)
    install = pip_install(package, context.torch) if row and not row.only_source else ""
    torch, here = context.torch.partition("+")[0], context.machine.packages.get(package, "").partition("+")[0]
    bounds = (row.torch[0] for row in version_ranges(package) if here and row.torch and is_within(here, row.versions))
    own = next((specifier for specifier in bounds if specifier.startswith("==")), "")
    made_for = f"torch{own}" if own and torch and not is_within(torch, own) else ""
    names = {"package": package, "install": install, "torch": torch, "made_for": made_for}
    return context.cause("torch-abi-mismatch", at, names)


# The compiled part of a package: mmcv._ext, detectron2._C, flash_attn_2_cuda, sageattention._fused
_COMPILED = re.compile(
    r"[\w.]{1,60}\.(?:_c\w{0,6}|_ext\w{0,20}|_fused|_kernels?\w{0,20}|_\w{2,30}_cuda|\w{2,30}_cuda"
    r"|_qattn_\w{1,20}|ops)|\w{2,40}_cuda|\w{2,40}_ext"
)
_PRIVATE = re.compile(r"_c\w{0,6}|_ext\w{0,20}|\w{2,30}_cuda")


def _module_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes of modules, names and arguments that are missing; nothing for what a program goes on without."""
    for missing in missing_modules(context.text):
        module, _colon, name = missing.thing.partition(":")
        module = module or "".join(context.frames_above(missing.at)[-1:])
        package, is_compiled = package_of(module), bool(_COMPILED.fullmatch(module))
        if missing.kind == "dependency":
            if is_compiled and find_companion(package):
                yield _abi_cause(context, missing.at, package)
        elif context.went_on(missing.at):
            continue
        elif package == "triton":
            key = "triton-missing" if missing.thing == "triton" else "triton-version-mismatch"
            yield context.cause(key, missing.at, triton_names(context))
        elif (
            _PRIVATE.fullmatch(name)
            if name
            else is_compiled and (not module.endswith(".ops") or find_companion(package))
        ):
            package = package.removesuffix("-module")
            rebuilt = source_of(package) if source_of(package) != package else ""
            names = {"package": package, "library": module, "rebuilt": rebuilt}
            if package != "onnxruntime":
                yield context.cause("ext-not-built", missing.at, names)
        elif name or "." in module:
            yield from _missing_name_causes(context, missing.at, package, name)


def _missing_name_causes(context: LogContext, at: int, package: str, name: str) -> Iterator[Cause]:
    """Yield the cause of a name that a package lacks, or of a part of it ("" as name): it is of another release.

    Of torch nothing is told: the program's own line may be wrong.
    """
    line = context.text[slice(*context.line_span(at))]
    gone = removal_names(context, package, name)
    missing = context.as_spelt(at, name)
    if (
        (find_companion(package) or package in plain_table("libraries.toml")["generations"])
        and package not in {"torch", "numpy", "onnxruntime", "torch-directml"}
        and (package != "torchaudio" or gone)
        and (not name or (package != "torchvision" and "partially initialized module" not in line))
    ):
        present = context.machine.packages.get(package, "")
        names = {"package": package, "present": present, **gone, "missing": missing if gone else ""}
        yield context.cause("companion-version-mismatch", at, names)


# Cannot open include file: 'Python.h'      …\python_embeded\…      tcc: error: library 'python312' not found
_PORTABLE = re.compile(r"python\.h\b|python_embed|library 'python3\d|python3\d{1,2}\.lib")


def triton_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders of the Triton that goes with torch.

    They are `install`, or `unpaired` if no command is known, `torch`, and `headers` for a portable Python.
    """
    name = {"windows": "triton-windows", "linux": "triton"}.get(context.machine.os or "", "")
    torch = context.torch.partition("+")[0]
    install = pip_install(name, torch)
    is_portable = context.machine.os == "windows" and _PORTABLE.search(context.text)
    names = {"install": install, "torch": torch, "unpaired": "" if install else "triton-windows"}
    names |= {"headers": "include, libs"} if is_portable else {}
    return {name: value for name, value in names.items() if value}


def _pair_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes of pairs of versions that a program or an installer prints, but for those that fit after all."""
    found = pairs(context.text)
    built = [pair for pair in found if pair.requester == "built"]
    if built and "xformers" in context.text:
        yield from _xformers_causes(context, next((pair for pair in built if pair.subject == "pytorch"), built[0]))
    for pair in found:
        requester, subject = pair.requester.replace("_", "-"), pair.subject
        has_own_rules = requester in {"built", "build", "torch-directml", "ipex", "intel-extension-for-pytorch"}
        if has_own_rules or (pair.wanted and is_within(pair.present, pair.wanted)):
            continue
        names = {"package": requester, "library": subject, "wanted": pair.wanted, "present": pair.present}
        if subject == "torch" and requester in _TRIO:
            yield context.cause("torch-torchvision-mismatch", pair.at, {"install": pip_install_pair(pair.present)})
        elif subject in {"torch", *_TRIO}:
            fits = subject == "torch" and find_companion(requester)
            install = pip_install(requester, pair.present or context.torch) if fits else ""
            yield context.cause("companion-pins-torch", pair.at, {**names, "install": install})
        elif (find_companion(subject) or find_companion(requester)) and (
            # After an installation that ended well, pip merely warns of what is no companion.
            "successfully installed" not in context.text or (find_companion(subject) and find_companion(requester))
        ):
            names = {**names, "package": subject, "requirement": f"{subject}{pair.wanted}"}
            yield context.cause("companion-version-mismatch", pair.at, names)


def _xformers_causes(context: LogContext, pair: Pair) -> Iterator[Cause]:
    """Yield the causes of xFormers' message about what it was built for; nothing if the program went on without it.

    They are that it was built for another torch, and first that torch is a CPU build, if it is one.
    """
    if context.went_on(pair.at) and "no operator found for" not in context.text:  # xFormers' own words for it
        return
    present = pair.present if pair.subject == "pytorch" else context.torch
    is_cpu = present.endswith("+cpu")
    if is_cpu:
        yield context.cause("torch-cpu-build-installed", pair.at)
    names = {"wanted": pair.wanted, "present": present, "install": pip_install("xformers", present)}
    yield context.cause("xformers-built-for-other-torch", pair.at, names, "library-part" if is_cpu else "library")


# Words of installers and build backends: a message among them is of the build, not of the program.
_BUILDS = re.compile(
    r"metadata-generation-failed|getting requirements to build|get_requires_for_build|preparing metadata"
    r"|prepare_metadata_for_build|build_meta|build backend"
    r"|build_editable|build_wheel|egg_info|failed to build|building wheel for|failed building wheel"
    r"|build[ -]isolation|build dependenc|depends on `torch`|bdist_wheel"
    r"|building '[\w.]{1,80}' extension|cpp_extension|build_ext|setup\.py|op.?builder|cuda op\b"
    r"|was requested, but|error: command '|编译|构建"
)
_IN_BUILDS = {"torch", "packaging", "wheel", "psutil", "ninja", "numpy", "torch-version"}  # what build scripts import
_TRITON = re.compile(r"triton|inductor|torch\.compile|torchdynamo|_dynamo|sageattention|sageattn")
_BY_TRITON = re.compile(r"inductor|torch\.compile|\btcc\b")  # TinyCC comes with Triton for Windows alone
_LAUNCHER = re.compile(r"cuda_utils|failed to find c compiler|python\.h|-l(?:cuda|python3?)")


def _build_causes(context: LogContext) -> Iterator[Cause]:
    """Yield why something could not be compiled: by a build of a package, or by Triton in a running program.

    PyTorch, a compiler, nvcc or a header is not there, or is of another version than PyTorch's CUDA.
    """
    is_build = bool(_BUILDS.search(context.text))
    names = {"torch": context.torch, "cuda": context.torch_cuda, **package_built(context)}
    for missing in missing_modules(context.text) if is_build else ():
        if missing.kind == "module" and missing.thing in _IN_BUILDS:
            yield context.cause("ext-build-without-torch", missing.at, names)
    for program in missing_programs(context.text):
        if key := _program_key(context, program, is_build=is_build):
            tool_names = triton_names(context) if key == "triton-no-compiler" else {"library": "FFmpeg", **names}
            basis = "library-part" if program.thing == "ffmpeg" else "library"
            yield context.cause(key, program.at, tool_names, basis)
    for pair in pairs(context.text):
        if pair.requester == "build":
            key = "ext-build-no-compiler" if pair.subject == "compiler" else "ext-build-cuda-mismatch"
            yield context.cause(key, pair.at, names)


def _program_key(context: LogContext, program: Missing, *, is_build: bool) -> str:
    """Return the cause of a missing program: nvcc, FFmpeg or a compiler; "" if it is not needed."""
    if program.thing in {"nvcc", "cuda_home", "cuda toolkit"}:
        # Triton names the toolkit as well, and lacks only the compiler's headers.
        is_needed = (is_build or package_built(context)) and not _LAUNCHER.search(context.text)
        return "ext-build-no-nvcc" if is_needed else ""
    if program.thing == "ffmpeg":
        return "torchcodec-ffmpeg-missing" if "torchcodec" in context.text else ""
    is_triton = _TRITON.search(context.text) and not context.went_on(program.at)
    if is_triton or (is_build and _BY_TRITON.search(context.text)):
        return "triton-no-compiler"
    return "ext-build-no-compiler" if is_build else ""
