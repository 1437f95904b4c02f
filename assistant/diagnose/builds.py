"""Judges what builds of extensions say: the stage at which they fail, and what is missing there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assistant.diagnose.causes import Cause
from assistant.diagnose.extensions import triton
from assistant.diagnose.surroundings import Surroundings, known
from assistant.diagnose.wants import Missing, Pair, missing_modules, missing_programs, pairs

# Words of installers and build backends: a message among them is of the build, not of the program.
_BUILDS = re.compile(
    r"metadata-generation-failed|getting requirements to build|get_requires_for_build|preparing metadata"
    r"|prepare_metadata_for_build|build_meta|build backend"
    r"|build_editable|build_wheel|egg_info|failed to build|building wheel for|failed building wheel"
    r"|build[ -]isolation|build dependenc|depends on `torch`|bdist_wheel"
    r"|building '[\w.]{1,80}' extension|cpp_extension|build_ext|setup\.py|op.?builder|cuda op\b"
    r"|was requested, but|error: command '|编译|构建"
)
_ISOLATED = {"torch", "packaging", "wheel", "psutil", "ninja", "numpy", "torch-version"}  # what build scripts import
_COMPILERS = {"cl", "gcc", "g++", "cc", "c++", "clang", "clang++", "tcc", "c compiler", "c++ compiler", "python.h"} | {
    f"{arch}-linux-gnu-{name}" for arch in ("x86_64", "aarch64") for name in ("gcc", "g++")
}
_TRITON = re.compile(r"triton|inductor|torch\.compile|torchdynamo|_dynamo|sageattention|sageattn")
_CUDA_HOME = re.compile(
    r"no cuda toolkit found|cuda_home (?:environment variable is not set|does not exist|is not set)"
    r"|(?:environment variable )?cuda_home[^\n]{0,30}(?:没有设置|未设置|没设置|不存在)"
)
# error: Microsoft Visual C++ 14.0 or greater is required. Get it with "Microsoft C++ Build Tools"
# UserWarning: Error checking compiler version for cl: [WinError 2] …
_COMPILER_ASKED = re.compile(
    r"microsoft visual c\+\+ 14\.\d (?:or greater )?is required|(?:需要|缺少|没有"
    r"|安装)[^\n]{0,10}(?:microsoft )?visual c\+\+|error checking compiler version for (?:cl|g\+\+|c\+\+)"
    r"|unable to find vcvarsall|could not find (?:a )?working c\+\+ compiler|no (?:c|c\+\+) compiler"
    r"|no working c\+\+ compiler"
)
# Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.
# CalledProcessError: Command '['…\\tcc.exe', …cuda_utils.c …]' returned non-zero exit status 1.
_LAUNCHER = re.compile(
    r"failed to find c compiler|calledprocesserror: command '?\[?'?[^\n]{0,200}(?:gcc|tcc|\bcc\b|cl\.exe"
    r"|clang)[^\n]{0,300}(?:non-zero exit|cuda_utils|main\.c)"
    r"|inductorerror: filenotfounderror: \[errno 2\] no such file"
    r"|cannot find -l(?:cuda|python3?)|fatal error:? [^\n]{0,12}python\.h"
    r"|python\.h[^\n]{0,30}(?:no such file|not found)|invalidcxxcompiler"
)
# ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'
_PTXAS = re.compile(
    r"ptxas[^\n]{0,40}(?:does ?n[o']t|不)[^\n]{0,12}(?:know|support|recogni[sz]e|认识"
    r"|支持)[^\n]{0,20}sm_\d{2,3}|ptxas[^\n]{0,40}value '(sm_\w{2,5})' is not defined"
    r"|internal triton ptx codegen error|ptxaserror"
)
# 'sm_120' is not a recognized processor for this target (ignoring processor)     (LLVM inside of Triton)
_LLVM = re.compile(r"'(sm_\d{2,3}\w?)' is not a recognized processor")
# nvcc fatal   : Unsupported gpu architecture 'compute_89'
_OLD_NVCC = re.compile(r"unsupported gpu architecture '((?:compute|sm)_\d{2,3}\w?)'")
# Cannot find a working triton installation. Either the package is not installed or it is too old.
_TRITON_TOLD = re.compile(
    r"cannot find a working triton installation|triton(?:-windows)? (?:is |was )?not (?:installed|found"
    r"|available)|\bno triton\b|requires? triton\b[^\n]{0,40}(?:but|not)"
    r"|(?:没有|没装|没有安装|没安装|未安装|缺少|找不到)[ '\"]{0,2}triton"
    r"|triton[^\n]{0,6}(?:没装|没有装|没有安装|未安装|找不到)"
)
# Guessing wheel name: … flash_attn-2.8.3+cu13torch2.15cxx11abiTRUE-cp314-cp314-linux_x86_64.whl
# Precompiled wheel not found (HTTP Error 404: Not Found). Building from source...
_NO_WHEEL = re.compile(
    r"precompiled wheel not found|guessing wheel (?:name"
    r"|url)[^\n]{0,300}\n(?:[^\n]{0,300}\n){0,6}[^\n]{0,80}(?:http error 404|building from source)"
)
# Because only vllm wheels for manylinux_2_31_x86_64 and macosx_11_0_arm64 exist and you require vllm, …
# ERROR: No matching distribution found for triton
_NOT_HERE = re.compile(
    r"because (?:only )?([a-z][\w-]{1,40})(?:[=<>~]{1,2}[\w.*+]{1,20})?,? (?:wheels for "
    r"|has no wheels with a matching platform)"
    r"|no matching distribution found for ([a-z][\w-]{1,40})"
    r"|requirement ([a-z][\w-]{1,40})[^\n]{0,40}\(from versions: none\)"
    r"|only ([a-z][\w-]{1,40}) wheels for"
)
_BUILT = re.compile(
    r"(?:building wheels? for|failed to build|building|for|wheel for|installing"
    r"|install) [`'\"]?([a-z][\w-]{2,40}?)(?:==[\w.+]{1,20})?[`'\"]?(?:[\s(:@]|$)",
    re.MULTILINE,
)

# Using cached xformers-0.0.28.post2.tar.gz (7.8 MB)
_SOURCE = re.compile(r"(?:using cached|downloading) (?:\S{1,200}/)?([a-z][\w.-]{1,60}?)-\d[\w.]{0,20}\.tar\.gz")


def build_causes(case: Surroundings) -> Iterator[Cause]:
    """Yield what a build, or a compiler that is called while a program runs, says it lacks."""
    building = bool(_BUILDS.search(case.text))
    if building:
        yield from _isolated(case)
    yield from _wheels(case)
    for one in missing_programs(case.text):
        yield from _program(case, one, building=building)
    if home := _CUDA_HOME.search(case.text):
        yield _at(case, "ext-build-no-nvcc", home.start())
    if asked := _COMPILER_ASKED.search(case.text):
        yield _compiler(case, asked.start())
    if old := _OLD_NVCC.search(case.text):
        yield _at(case, "ext-build-cuda-mismatch", old.start(), {**package_built(case), "arch": old[1]}, "library-sure")
    if found := _LLVM.search(case.text):
        yield _at(case, "triton-ptxas-too-old", found.start(), _torch(case), "library-sure")
    for pair in pairs(case.text):
        if pair.requester == "build":
            yield _pair(case, pair)
    yield from _launcher(case)


def _isolated(case: Surroundings) -> Iterator[Cause]:
    for one in missing_modules(case.text):
        if one.kind == "module" and one.thing in _ISOLATED:
            yield _at(case, "ext-build-without-torch", one.at, package_built(case))


def _wheels(case: Surroundings) -> Iterator[Cause]:
    """Yield that a package has no wheel for this torch, or none for this system at all."""
    if found := _NO_WHEEL.search(case.text):
        yield _at(case, "ext-no-wheel", found.start(), {**package_built(case), **_torch(case)})
    for found in _NOT_HERE.finditer(case.text):
        name = next(filter(None, found.groups()))
        row, os = known(name), case.machine.os or ("windows" if "win_amd64" in case.text else "")
        lacks = (
            row is not None
            and bool(row.platforms)
            and os != ""
            and not any(one.startswith(os) for one in row.platforms)
        )
        if not lacks:
            continue
        if name == "triton":
            yield triton(case, found.start(), "triton-missing")
        else:
            yield _at(case, "ext-no-wheel", found.start(), {"package": name, **_torch(case)})


def _program(case: Surroundings, one: Missing, *, building: bool) -> Iterator[Cause]:
    if one.thing in {"nvcc", "cuda_home", "cuda toolkit"} and (building or package_built(case)):
        yield _at(case, "ext-build-no-nvcc", one.at, package_built(case))
    elif one.thing in _COMPILERS and _TRITON.search(case.text) and not case.went_on(one.at):
        yield triton(case, one.at, "triton-no-compiler")
    elif one.thing in _COMPILERS and building:
        yield _compiler(case, one.at)
    elif one.thing == "ffmpeg" and "torchcodec" in case.text:
        yield _at(case, "torchcodec-ffmpeg-missing", one.at, {"library": "FFmpeg"}, "library-part")


def _compiler(case: Surroundings, at: int) -> Cause:
    if re.search(r"inductor|torch\.compile|\btcc\b", case.text):  # TinyCC comes with Triton for Windows alone
        return triton(case, at, "triton-no-compiler")
    return _at(case, "ext-build-no-compiler", at, package_built(case))


def _pair(case: Surroundings, pair: Pair) -> Cause:
    if pair.subject == "compiler":
        return _at(case, "ext-build-no-compiler", pair.at, package_built(case))
    return _at(case, "ext-build-cuda-mismatch", pair.at, package_built(case))


def _launcher(case: Surroundings) -> Iterator[Cause]:
    """Yield what Triton lacks, which compiles its launcher and its kernels when a program first calls them."""
    if not _TRITON.search(case.text):
        return
    told = _TRITON_TOLD.search(case.text)
    if told and not case.went_on(told.start()):
        yield triton(case, told.start(), "triton-missing", "library-part")
    launcher = _LAUNCHER.search(case.text)
    if launcher and not case.went_on(launcher.start()):
        yield triton(case, launcher.start(), "triton-no-compiler")
    if (found := _PTXAS.search(case.text)) and not re.search(r"value 'sm_[1-6]\d'", case.text):
        yield _at(case, "triton-ptxas-too-old", found.start(), _torch(case), "library-sure")


def package_built(case: Surroundings) -> dict[str, str]:
    """Name the package that is built; {} where none is told."""
    fetched = [found[1] for found in _SOURCE.finditer(case.text)]
    named = [found[1] for found in _BUILT.finditer(case.text)]
    for name in (*reversed(fetched), *reversed(named)):
        if known(name) and name not in {"torch", "triton"}:
            return {"package": name.replace("_", "-")}
    names = re.findall(
        r"flash[_-]attn|flashattention|causal[_-]conv1d|mamba[_-]ssm|deepspeed|mmcv|detectron2|xformers"
        r"|bitsandbytes|sageattention|apex|pytorch3d|torch[_-]scatter|auto[_-]gptq|tinycudann|torchmcubes",
        case.text,
    )
    return {"package": names[0].replace("_", "-").replace("flashattention", "flash-attn")} if names else {}


def _torch(case: Surroundings) -> dict[str, str]:
    cuda = case.torch_cuda
    return {**({"torch": case.torch} if case.torch else {}), **({"cuda": cuda} if cuda else {})}


def _at(case: Surroundings, key: str, at: int, names: dict[str, str] | None = None, basis: str = "library") -> Cause:
    return Cause(
        key,
        basis,
        (case.log.index_at(at),),
        {**(_torch(case) if key.startswith("ext-build") else {}), **(names or {})},
    )
