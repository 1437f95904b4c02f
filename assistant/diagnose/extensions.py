"""Judges compiled extensions of torch: how they fail to build, to load, and to go with one another's versions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from assistant.catalog.companions import version_ranges
from assistant.diagnose.kits import source_of
from assistant.diagnose.missing import (
    Missing,
    Pair,
    missing_modules,
    missing_programs,
    missing_symbols,
    moves,
    package_of,
    pairs,
    symbol_kind,
)
from assistant.diagnose.rules import Cause
from assistant.diagnose.surroundings import FAR, Surroundings, known, pip_install, pip_install_trio, torchcodec_install
from assistant.diagnose.wheels import gone_names

_TRIO = {"torchvision", "torchaudio"}
_OWN_RULES = {"torch-directml", "ipex", "intel-extension-for-pytorch"}  # whose pins have rules of their own
# The compiled part of a package: mmcv._ext, detectron2._C, flash_attn_2_cuda, sageattention._fused
_COMPILED = re.compile(
    r"[\w.]{1,60}\.(?:_c\w{0,6}|_ext\w{0,20}|_fused|_kernels?\w{0,20}|_\w{2,30}_cuda|\w{2,30}_cuda"
    r"|_qattn_\w{1,20}|ops)|\w{2,40}_cuda|\w{2,40}_ext"
)
_PRIVATE = re.compile(r"_c\w{0,6}|_ext\w{0,20}|\w{2,30}_cuda")
#   File "/…/site-packages/trl/trainer/sft_trainer.py", line 320, in __init__
# TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'
_ARGUMENT = re.compile(r"typeerror: [\w.]{1,80}\(\) got an unexpected keyword argument")
_HALF = "partially initialized module"
# GroundingDINO's code goes on without its compiled part and fails at the first call: name '_C' is not defined
_NOT_DEFINED = re.compile(r"name ['\"]_c['\"] is not defined")
# The loader of musl, of a wheel that was made for glibc (https://git.musl-libc.org/cgit/musl/tree/ldso/dynlink.c):
# Error relocating /…/site-packages/torch/lib/libgomp.so.1: pthread_attr_setaffinity_np: symbol not found
# Error loading shared library ld-linux-x86-64.so.2: No such file or directory (needed by /…/torch/lib/libc10.so)
_MUSL = re.compile(
    r"error (?:relocating\s([^:]{1,300}):\s[^:]{1,300}:\ssymbol\snot\sfound"
    r"|loading\sshared\slibrary\s[^:]{1,300}:[^:(]{1,80}\(needed\sby\s([^)]{1,300})\))"
)


def musl_causes(case: Surroundings) -> Iterator[Cause]:
    """Yield that a package's compiled files were made for glibc, and this system has musl."""
    for found in _MUSL.finditer(case.text):
        file = "".join(next(filter(None, found.groups())).split())  # the lines of a log may be broken
        if package := case.package(found.start(), file):
            yield case.cause("musl-system", found.start(), {"requirement": package})


def symbol_causes(case: Surroundings) -> Iterator[Cause]:
    """Yield what undefined symbols tell: whose file was made for which other library."""
    for one in missing_symbols(case.text):
        kind, asks = symbol_kind(one.thing), case.asks(one.at, one.requester)
        who = asks.kind if asks and (one.requester or kind) else ""
        package = case.package(one.at, one.requester) or (_loading(case, one.at) if one.thing == "procedure" else "")
        who = "torchvision" if package in _TRIO else "torch" if package == "torch" else who
        extension = package if known(package) or (kind == "torch" and one.requester) else ""
        if kind == "nvjitlink":
            yield case.cause("nvjitlink-mismatch", one.at, {"library": "libnvJitLink"})
        elif kind == "oneapi" or who in {"ipex", "directml"} or (who == "onnxruntime" and kind != "torch"):
            continue  # their own rules; ONNX Runtime may be there, but it asks for no symbol of PyTorch
        elif who == "torchvision":
            install = pip_install_trio(case.torch)
            yield case.cause("torch-torchvision-mismatch", one.at, {"install": install} if install else {})
        elif who == "torchcodec" or package == "torchcodec":
            install = torchcodec_install(case)
            yield case.cause(
                "torchcodec-torch-mismatch",
                one.at,
                {"library": one.thing, **({"install": install} if install else {})},
            )
        elif who == "bitsandbytes":
            continue  # by its own words
        elif one.thing == "procedure" and not (extension or who == "extension"):
            continue  # Windows says no more than that two files differ: the rules by the files' names judge that
        elif kind == "torch" or who in {"torch", "extension"} or extension:
            found = extension or (asks.package if asks and who == "extension" else "")
            yield _abi(case, one.at, found if found != "torch" else "")


def _loading(case: Surroundings, at: int) -> str:
    """Return the distribution that loads a file through torch, where the message itself names none.

    For example: torchaudio/_extension.py calls torch.ops.load_library, and Windows answers with error 127.
    """
    modules = [package_of(module) for module in case.frames(at)]
    loading = next((name for name in reversed(modules) if name != "torch"), "")
    return loading if loading in _TRIO or known(loading) else ""


def _abi(case: Surroundings, at: int, package: str) -> Cause:
    install = pip_install(package, case.torch) if package and (row := known(package)) and not row.only_source else ""
    names = {"package": package, "install": install, "torch": case.torch.partition("+")[0]}
    return case.cause("torch-abi-mismatch", at, {name: value for name, value in names.items() if value})


def module_causes(case: Surroundings) -> Iterator[Cause]:
    """Yield what modules and names that cannot be imported tell of companions."""
    for one in missing_modules(case.text):
        module, _colon, name = one.thing.partition(":")
        package = package_of(module)
        if one.kind == "dependency":
            if _COMPILED.fullmatch(module) and known(package):
                yield _abi(case, one.at, package)
        elif package == "triton":
            yield from _triton(case, one)
        elif (one.kind == "module" and _is_compiled(module, package)) or (
            one.kind == "name" and _PRIVATE.fullmatch(name)
        ):
            if not case.went_on(one.at) and package != "onnxruntime":
                package = package.removesuffix("-module")
                built = {"rebuilt": source_of(package)} if source_of(package) != package else {}
                yield case.cause("ext-not-built", one.at, {"package": package, "library": module, **built})
        elif one.kind == "name" and not case.went_on(one.at):
            yield from _name(case, one, package)
        elif one.kind == "module" and "." in module and moves(package) and not case.went_on(one.at):
            yield from _part(case, one, package)
    yield from _goes_wrong(case)


def _goes_wrong(case: Surroundings) -> Iterator[Cause]:
    """Yield what shows only when a part is called: an argument that is unknown, a compiled part that is not there."""
    for unknown in _ARGUMENT.finditer(case.text):
        caller = package_of(frames[-1]) if (frames := case.frames(unknown.start())) else ""
        if moves(caller) and caller != "triton" and not case.went_on(unknown.start()):
            yield case.cause("companion-version-mismatch", unknown.start(), _companion(case, caller), "library-part")
    if found := _NOT_DEFINED.search(case.text):
        yield case.cause("ext-not-built", found.start(), {"library": "_C", **_checkout(case, found.start())})


# File "C:\\Py\\GroundingDINO\\groundingdino\\models\\GroundingDINO\\ms_deform_attn.py", line 53, in forward
_FILE = re.compile(r"file \"([^\"\n]{1,300})\", line")


def _checkout(case: Surroundings, at: int) -> dict[str, str]:
    """Name the package whose own file fails, and the folder of its source where it was installed from one."""
    files = _FILE.findall(case.text, max(0, at - FAR), at)
    if not files or re.search(r"(?:site|dist)-packages", files[-1]):
        frames = case.frames(at)
        return {"package": package_of(frames[-1])} if frames else {}
    parts = re.split(r"[\\/]", files[-1])[1:-1]
    name = next((part for part in reversed(parts) if source_of(part) != part), "")
    return {"package": name, "checkout": name} if name else {}


def _is_compiled(module: str, package: str) -> bool:
    return bool(_COMPILED.fullmatch(module)) and (not module.endswith(".ops") or known(package) is not None)


def _triton(case: Surroundings, one: Missing) -> Iterator[Cause]:
    """Judge Triton, or a part of it, that is missing: then it is there, in another version than is expected."""
    if case.went_on(one.at):
        return
    whole = one.kind == "module" and "." not in one.thing
    yield triton(case, one.at, "triton-missing" if whole else "triton-version-mismatch")


# Cannot open include file: 'Python.h'      …\python_embeded\…      tcc: error: library 'python312' not found
_PORTABLE = re.compile(r"python\.h\b|python_embed|library 'python3\d|python3\d{1,2}\.lib")


def triton(case: Surroundings, at: int, key: str, basis: str = "library") -> Cause:
    """Return a cause of Triton's, with the command for the Triton that goes with torch on this system."""
    name = {"windows": "triton-windows", "linux": "triton"}.get(case.machine.os or "", "")
    install = pip_install(name, case.torch.partition("+")[0]) if name else ""
    names = {"install": install, "torch": case.torch.partition("+")[0]}
    names["unpaired"] = "" if install else "triton-windows"
    portable = case.machine.os == "windows" and _PORTABLE.search(case.text)
    names["headers"] = "include, libs" if portable else ""
    return case.cause(key, at, {name: value for name, value in names.items() if value}, basis)


def _name(case: Surroundings, one: Missing, package: str) -> Iterator[Cause]:
    """Judge a name that is gone from a package: PyTorch's parts differ, or two companions differ in generation."""
    line = case.text[slice(*case.line(one.at))]
    if package == "torch":
        if "cannot import name" in line:
            yield _abi(case, one.at, "")
    elif moves(package) and package not in {*_TRIO, "numpy", "onnxruntime", "torch-directml"} and _HALF not in line:
        names = {**_companion(case, package), **_gone(case, package, one)}
        yield case.cause("companion-version-mismatch", one.at, names)
    elif package == "torchaudio" and (gone := _gone(case, package, one)):
        yield case.cause("companion-version-mismatch", one.at, {"package": package, **gone})


def _gone(case: Surroundings, package: str, one: Missing) -> dict[str, str]:
    """Return since when a package lacks a name, which is spelt as its line spells it."""
    name = one.thing.partition(":")[2]
    found = gone_names(case, package, name)
    return {**found, "missing": case.spelt(one.at, name)} if found else {}


def _part(case: Surroundings, one: Missing, package: str) -> Iterator[Cause]:
    """Judge a module within a package that is there: it moved, or went away, between two releases of it.

    For example: torchvision.transforms.functional_tensor went away in torchvision 0.17.
    """
    if package not in {"onnxruntime", "torch-directml", "triton"}:
        yield case.cause("companion-version-mismatch", one.at, _companion(case, package))


def _companion(case: Surroundings, package: str) -> dict[str, str]:
    present = case.versions.get(package, "")
    return {"package": package, **({"present": present} if present else {})}


def pair_causes(case: Surroundings) -> Iterator[Cause]:
    """Yield what pairs of versions tell that a program, or an installer, names itself."""
    built = [one for one in pairs(case.text) if one.requester == "built"]
    if built and "xformers" in case.text:
        yield from _xformers(case, built)
    for one in pairs(case.text):
        requester = one.requester.replace("_", "-")
        if one.requester in {"built", "build"} or requester in _OWN_RULES or _fits(one):
            continue
        names = {"package": requester, "library": one.subject, "wanted": one.wanted, "present": one.present}
        names = {name: value for name, value in names.items() if value}
        if one.subject == "torch" and requester in _TRIO:
            install = pip_install_trio(one.present)
            yield case.cause("torch-torchvision-mismatch", one.at, {"install": install} if install else {})
        elif (
            one.subject == "torch"
            and requester == "xformers"
            and ("built for" in case.text or "xformers_" in case.text)
        ):
            install = pip_install("xformers", one.present)
            wanted = {"wanted": one.wanted.strip("=.*"), "present": one.present}
            yield case.cause(
                "xformers-built-for-other-torch", one.at, {**wanted, **({"install": install} if install else {})}
            )
        elif one.subject == "torch":
            beside = pip_install(requester, one.present or case.torch) if known(requester) else ""
            yield case.cause("companion-pins-torch", one.at, {**names, **({"install": beside} if beside else {})})
        elif one.subject in _TRIO:
            yield case.cause("companion-pins-torch", one.at, names)
        elif (known(one.subject) or known(requester)) and not _installed_anyway(case, one):
            yield case.cause(
                "companion-version-mismatch",
                one.at,
                {**names, "package": one.subject, "requirement": f"{one.subject}{one.wanted}"},
            )


# Companions that are tied to one torch by their compiled code, and the cause where they are of another.
_TIED = {
    "torchvision": "torch-torchvision-mismatch",
    "torchaudio": "torch-torchvision-mismatch",
    "torchcodec": "torchcodec-torch-mismatch",
    "xformers": "xformers-built-for-other-torch",
    "triton": "triton-version-mismatch",
    "triton-windows": "triton-version-mismatch",
}
_FAILING = re.compile(
    r"error|exception|fail\w{0,3}|does ?n[o']t (?:load|work)|crash|undefined|报错|失败|崩溃|出错|加载不"
)


def told_causes(case: Surroundings) -> Iterator[Cause]:
    """Yield the companions whose version, as a failing program's text tells it, is known to be of another torch."""
    public = case.torch.partition("+")[0]
    if not public or not case.log.facts.packages.get("torch", "").startswith(public):
        return  # where only one of the two is told, they may be of two machines
    for name, key in _TIED.items():
        version, at = case.versions.get(name, ""), case.text.find(name)
        if not version or at < 0 or not _fails(case, name) or _paired(name, version, public) is not False:
            continue
        install = pip_install_trio(case.torch) if name in _TRIO else pip_install(name, case.torch)
        names = {"library": name, "torch": case.torch, "present": case.torch, "wanted": "?", "install": install}
        yield case.cause(key, at, {name: value for name, value in names.items() if value}, "library-part")


def _fails(case: Surroundings, name: str) -> bool:
    """Return whether a line that tells of a failure names a companion."""
    lines = (case.text[slice(*case.line(found.start()))] for found in re.finditer(re.escape(name), case.text))
    return any(_FAILING.search(line) for line in lines)


def _paired(name: str, version: str, torch: str) -> bool | None:
    """Return whether a version of a companion goes with a torch; None where the tables do not know that version."""
    holding = [one for one in version_ranges(name) if SpecifierSet(one.versions).contains(version, prereleases=True)]
    return any(one.goes_with(torch) for one in holding) if holding else None


def _fits(one: Pair) -> bool:
    """Return whether what is there is what is wanted after all."""
    try:
        return bool(one.wanted and one.present) and SpecifierSet(one.wanted).contains(one.present, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def _installed_anyway(case: Surroundings, one: Pair) -> bool:
    """Return whether pip warns of a pair of no weight after an installation that it has finished."""
    return "successfully installed" in case.text and not (known(one.subject) and known(one.requester))


def _xformers(case: Surroundings, built: list[Pair]) -> Iterator[Cause]:
    """Judge what xFormers was built for against what is there; its kernels are off, which a run survives."""
    torch = next((one for one in built if one.subject == "pytorch"), built[0])
    if case.went_on(torch.at) and "no operator found for" not in case.text:  # xFormers' own words for it
        return
    present = torch.present if torch.subject == "pytorch" else case.torch
    install = pip_install("xformers", present)
    names = {"wanted": torch.wanted, "present": present, **({"install": install} if install else {})}
    if present.endswith("+cpu"):
        yield case.cause("torch-cpu-build-installed", torch.at)
    yield case.cause(
        "xformers-built-for-other-torch",
        torch.at,
        names,
        "library-part" if present.endswith("+cpu") else "library",
    )


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
        yield _of_build(case, "ext-build-no-nvcc", home.start())
    if asked := _COMPILER_ASKED.search(case.text):
        yield _compiler(case, asked.start())
    if old := _OLD_NVCC.search(case.text):
        yield _of_build(case, "ext-build-cuda-mismatch", old.start(), "library-sure", arch=old[1])
    if found := _LLVM.search(case.text):
        yield case.cause("triton-ptxas-too-old", found.start(), _torch(case), "library-sure")
    for pair in pairs(case.text):
        if pair.requester == "build":
            yield _pair(case, pair)
    yield from _launcher(case)


def _isolated(case: Surroundings) -> Iterator[Cause]:
    for one in missing_modules(case.text):
        if one.kind == "module" and one.thing in _ISOLATED:
            yield _of_build(case, "ext-build-without-torch", one.at)


def _wheels(case: Surroundings) -> Iterator[Cause]:
    """Yield that a package has no wheel for this torch, or none for this system at all."""
    if found := _NO_WHEEL.search(case.text):
        yield case.cause("ext-no-wheel", found.start(), {**package_built(case), **_torch(case)})
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
            yield case.cause("ext-no-wheel", found.start(), {"package": name, **_torch(case)})


def _program(case: Surroundings, one: Missing, *, building: bool) -> Iterator[Cause]:
    if one.thing in {"nvcc", "cuda_home", "cuda toolkit"} and (building or package_built(case)):
        yield _of_build(case, "ext-build-no-nvcc", one.at)
    elif one.thing in _COMPILERS and _TRITON.search(case.text) and not case.went_on(one.at):
        yield triton(case, one.at, "triton-no-compiler")
    elif one.thing in _COMPILERS and building:
        yield _compiler(case, one.at)
    elif one.thing == "ffmpeg" and "torchcodec" in case.text:
        yield case.cause("torchcodec-ffmpeg-missing", one.at, {"library": "FFmpeg"}, "library-part")


def _compiler(case: Surroundings, at: int) -> Cause:
    if re.search(r"inductor|torch\.compile|\btcc\b", case.text):  # TinyCC comes with Triton for Windows alone
        return triton(case, at, "triton-no-compiler")
    return _of_build(case, "ext-build-no-compiler", at)


def _pair(case: Surroundings, pair: Pair) -> Cause:
    if pair.subject == "compiler":
        return _of_build(case, "ext-build-no-compiler", pair.at)
    return _of_build(case, "ext-build-cuda-mismatch", pair.at)


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
        yield case.cause("triton-ptxas-too-old", found.start(), _torch(case), "library-sure")


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


def _of_build(case: Surroundings, key: str, at: int, basis: str = "library", **names: str) -> Cause:
    """Return a cause of a build that fails, with the package that is built and the torch that it is built for."""
    return case.cause(key, at, {**_torch(case), **package_built(case), **names}, basis)
