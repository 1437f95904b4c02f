"""Judges compiled extensions of torch: how they fail to build, to load, and to go with one another's versions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from assistant.catalog import number
from assistant.diagnose.facts import (
    FAR,
    LogContext,
    companion_row,
    pip_install,
    pip_install_pair,
    torchcodec_install,
)
from assistant.diagnose.kits import source_of
from assistant.diagnose.missing import (
    Missing,
    Pair,
    loses_names,
    missing_modules,
    missing_programs,
    missing_symbols,
    package_of,
    pairs,
    symbol_kind,
)
from assistant.diagnose.rules import Cause
from assistant.diagnose.wheels import first_torch_with, removal_of_name

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
# A call in the line before the message, such as bnb.optim.AdamW8bit( above
# TypeError: AdamW8bit.__init__() got an unexpected keyword argument 'percentile_clipping'
_CALLED = re.compile(r"\b([a-z_]\w{1,40})\.[\w.]{1,80}\([^\n]{0,200}\n\Z")
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


def musl_causes(context: LogContext) -> Iterator[Cause]:
    """Yield a cause for each package whose compiled file was made for glibc, on a system with musl."""
    for message in _MUSL.finditer(context.text):
        file = "".join(next(filter(None, message.groups())).split())  # the lines of a log may be broken
        if package := context.package_at(message.start(), file):
            yield context.cause("musl-system", message.start(), {"requirement": package})


def symbol_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes of undefined symbols: whose file was made for which other library.

    Nothing is yielded for those that have rules of their own, such as DirectML's and bitsandbytes'.
    """
    for symbol in missing_symbols(context.text):
        kind, requester = symbol_kind(symbol.thing), context.requester_at(symbol.at, symbol.requester)
        requester_kind = requester.kind if requester and (symbol.requester or kind) else ""
        # Of a library that torch loads for a companion, the message names neither: the frames above it do.
        frames = map(package_of, reversed(context.frames_above(symbol.at))) if symbol.thing == "procedure" else ()
        loader = next((name for name in frames if name != "torch"), "")
        loader = loader if loader in _TRIO or companion_row(loader) else ""
        package = context.package_at(symbol.at, symbol.requester) or loader
        requester_kind = "torchvision" if package in _TRIO else "torch" if package == "torch" else requester_kind
        extension = package if companion_row(package) or (kind == "torch" and symbol.requester) else ""
        if kind == "nvjitlink":
            yield context.cause("nvjitlink-mismatch", symbol.at, {"library": "libnvJitLink"})
        elif (
            kind == "oneapi"
            or requester_kind in {"ipex", "directml"}
            or (requester_kind == "onnxruntime" and kind != "torch")
        ):
            continue  # their own rules; ONNX Runtime may be there, but it asks for no symbol of PyTorch
        elif requester_kind == "torchvision":
            install = pip_install_pair(context.torch)
            yield context.cause("torch-torchvision-mismatch", symbol.at, {"install": install} if install else {})
        elif requester_kind == "torchcodec" or package == "torchcodec":
            install = torchcodec_install(context)
            yield context.cause(
                "torchcodec-torch-mismatch",
                symbol.at,
                {"library": symbol.thing, **({"install": install} if install else {})},
            )
        elif requester_kind == "bitsandbytes":
            continue  # by its own words
        elif symbol.thing == "procedure" and not (extension or requester_kind == "extension"):
            continue  # Windows says no more than that two files differ: the rules by the files' names judge that
        elif kind == "torch" or requester_kind in {"torch", "extension"} or extension:
            package_at_fault = extension or (requester.package if requester and requester_kind == "extension" else "")
            yield _abi_cause(context, symbol.at, package_at_fault if package_at_fault != "torch" else "")


def _abi_cause(context: LogContext, at: int, package: str) -> Cause:
    """Return the cause that a package ("" if unknown) was compiled for another torch, at the line of a position."""
    install = (
        pip_install(package, context.torch)
        if package and (row := companion_row(package)) and not row.only_source
        else ""
    )
    names = {"package": package, "install": install, "torch": context.torch.partition("+")[0]}
    return context.cause("torch-abi-mismatch", at, {name: value for name, value in names.items() if value})


def module_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes of modules and names that cannot be imported, and of calls of what a package does not have."""
    for missing in missing_modules(context.text):
        module, _colon, name = missing.thing.partition(":")
        package = package_of(module)
        if missing.kind == "dependency":
            if _COMPILED.fullmatch(module) and companion_row(package):
                yield _abi_cause(context, missing.at, package)
        elif package == "triton":
            yield from _missing_triton_causes(context, missing)
        elif (missing.kind == "name" and _PRIVATE.fullmatch(name)) or (
            missing.kind == "module"
            and _COMPILED.fullmatch(module)
            and (not module.endswith(".ops") or companion_row(package))
        ):
            if not context.went_on(missing.at) and package != "onnxruntime":
                package = package.removesuffix("-module")
                rebuilt = {"rebuilt": source_of(package)} if source_of(package) != package else {}
                yield context.cause("ext-not-built", missing.at, {"package": package, "library": module, **rebuilt})
        elif missing.kind == "name" and not context.went_on(missing.at):
            yield from _missing_name_causes(context, missing, package)
        elif missing.kind == "module" and "." in module and loses_names(package) and not context.went_on(missing.at):
            yield from _missing_submodule_causes(context, missing, package)
    yield from _call_causes(context)


def _call_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes that show when a part is called: an unknown argument, or a compiled part that does not exist."""
    for message in _ARGUMENT.finditer(context.text):
        called = _CALLED.search(context.text, 0, message.start())
        frames = context.frames_above(message.start())
        caller = package_of(called[1]) if called else package_of(frames[-1]) if frames else ""
        if loses_names(caller) and caller != "triton" and not context.went_on(message.start()):
            yield context.cause(
                "companion-version-mismatch", message.start(), _package_names(context, caller), "library-part"
            )
    if message_of_part := _NOT_DEFINED.search(context.text):
        yield context.cause(
            "ext-not-built",
            message_of_part.start(),
            {"library": "_C", **_source_names(context, message_of_part.start())},
        )


# File "C:\\Py\\GroundingDINO\\groundingdino\\models\\GroundingDINO\\ms_deform_attn.py", line 53, in forward
_FILE = re.compile(r"file \"([^\"\n]{1,300})\", line")


def _source_names(context: LogContext, at: int) -> dict[str, str]:
    """Return a value for the placeholder `package` of the file that fails above a position; {} if no frame names one.

    `checkout` is added, the folder of its source, if that is no folder of an environment.
    """
    files = _FILE.findall(context.text, max(0, at - FAR), at)
    if not files or re.search(r"(?:site|dist)-packages", files[-1]):
        frames = context.frames_above(at)
        return {"package": package_of(frames[-1])} if frames else {}
    parts = re.split(r"[\\/]", files[-1])[1:-1]
    name = next((part for part in reversed(parts) if source_of(part) != part), "")
    return {"package": name, "checkout": name} if name else {}


def _missing_triton_causes(context: LogContext, missing: Missing) -> Iterator[Cause]:
    """Yield the cause that Triton is missing, or of another version if only a part is; nothing if a run went on."""
    if context.went_on(missing.at):
        return
    is_all_of_it = missing.kind == "module" and "." not in missing.thing
    yield triton_cause(context, missing.at, "triton-missing" if is_all_of_it else "triton-version-mismatch")


# Cannot open include file: 'Python.h'      …\python_embeded\…      tcc: error: library 'python312' not found
_PORTABLE = re.compile(r"python\.h\b|python_embed|library 'python3\d|python3\d{1,2}\.lib")


def triton_cause(context: LogContext, at: int, key: str, basis: str = "library") -> Cause:
    """Return a cause of Triton's at the line of a position, with the command for the Triton that goes with torch.

    Its names are `install`, or `unpaired` if no command is known, `torch`, and `headers` for a portable Python.
    """
    name = {"windows": "triton-windows", "linux": "triton"}.get(context.machine.os or "", "")
    install = pip_install(name, context.torch.partition("+")[0]) if name else ""
    names = {"install": install, "torch": context.torch.partition("+")[0]}
    names["unpaired"] = "" if install else "triton-windows"
    portable = context.machine.os == "windows" and _PORTABLE.search(context.text)
    names["headers"] = "include, libs" if portable else ""
    return context.cause(key, at, {name: value for name, value in names.items() if value}, basis)


def _missing_name_causes(context: LogContext, missing: Missing, package: str) -> Iterator[Cause]:
    """Yield the cause of a name that a package lacks: parts of torch differ, or the package is of another release."""
    line = context.text[slice(*context.line_span(missing.at))]
    if package == "torch":
        yield from _missing_torch_name_causes(context, missing, imports="cannot import name" in line)
    elif (
        loses_names(package) and package not in {*_TRIO, "numpy", "onnxruntime", "torch-directml"} and _HALF not in line
    ):
        names = {**_package_names(context, package), **_removal_names(context, package, missing)}
        yield context.cause("companion-version-mismatch", missing.at, names)
    elif package == "torchaudio" and (gone := _removal_names(context, package, missing)):
        yield context.cause("companion-version-mismatch", missing.at, {"package": package, **gone})


def _missing_torch_name_causes(context: LogContext, missing: Missing, *, imports: bool) -> Iterator[Cause]:
    """Yield the cause of a name that torch lacks: its release is too new or too old for who asks, or its parts differ.

    `imports` is set for an import of the name; a name that only an attribute asks for and no table lists is told if an
    installed package asks for it, as a program's own line may be wrong.
    """
    name = missing.thing.partition(":")[2]
    removal, first = removal_of_name(context, "torch", name), first_torch_with(name)
    asks = next(iter(context.frames_above(missing.at)[-1:]), "")
    package = package_of(asks) if asks and asks != "torch" else ""
    names = {"missing": context.as_spelt(missing.at, name), "package": package or removal.get("newer", "")}
    if removal:
        names["before"] = removal["since"]
    elif first and not (context.torch and number(context.torch) >= number(first)):
        names["least"] = first
    elif imports:
        yield _abi_cause(context, missing.at, "")
        return
    elif not package or package == "torch":
        return
    yield context.cause("torch-name-missing", missing.at, {key: value for key, value in names.items() if value})


def _removal_names(context: LogContext, package: str, missing: Missing) -> dict[str, str]:
    """Return the placeholders `since`, `newer` and `missing` of a name that a package lost; {} if that is unknown.

    `since` is the release, `newer` what no longer asks for the name, `missing` the name as its line spells it.
    """
    name = missing.thing.partition(":")[2]
    removal = removal_of_name(context, package, name)
    return {**removal, "missing": context.as_spelt(missing.at, name)} if removal else {}


def _missing_submodule_causes(context: LogContext, missing: Missing, package: str) -> Iterator[Cause]:
    """Yield the cause of a module that an installed package lacks: it moved or was removed between two releases.

    For example: torchvision.transforms.functional_tensor went away in torchvision 0.17.
    """
    if package not in {"onnxruntime", "torch-directml", "triton"}:
        yield context.cause("companion-version-mismatch", missing.at, _package_names(context, package))


def _package_names(context: LogContext, package: str) -> dict[str, str]:
    """Return values for the placeholders `package` and, if its version is known, `present`."""
    present = context.versions.get(package, "")
    return {"package": package, **({"present": present} if present else {})}


def pair_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes of pairs of versions that a program or an installer prints, but for those that fit after all."""
    build_pairs = [pair for pair in pairs(context.text) if pair.requester == "built"]
    if build_pairs and "xformers" in context.text:
        yield from _xformers_causes(context, build_pairs)
    for pair in pairs(context.text):
        requester = pair.requester.replace("_", "-")
        if pair.requester in {"built", "build"} or requester in _OWN_RULES or _is_satisfied(pair):
            continue
        names = {"package": requester, "library": pair.subject, "wanted": pair.wanted, "present": pair.present}
        names = {name: value for name, value in names.items() if value}
        if pair.subject == "torch" and requester in _TRIO:
            install = pip_install_pair(pair.present)
            yield context.cause("torch-torchvision-mismatch", pair.at, {"install": install} if install else {})
        elif (
            pair.subject == "torch"
            and requester == "xformers"
            and ("built for" in context.text or "xformers_" in context.text)
        ):
            install = pip_install("xformers", pair.present)
            torch_versions = {"wanted": pair.wanted.strip("=.*"), "present": pair.present}
            yield context.cause(
                "xformers-built-for-other-torch",
                pair.at,
                {**torch_versions, **({"install": install} if install else {})},
            )
        elif pair.subject == "torch":
            install = pip_install(requester, pair.present or context.torch) if companion_row(requester) else ""
            yield context.cause("companion-pins-torch", pair.at, {**names, **({"install": install} if install else {})})
        elif pair.subject in _TRIO:
            yield context.cause("companion-pins-torch", pair.at, names)
        elif (companion_row(pair.subject) or companion_row(requester)) and (
            # After an installation that ended well, pip merely warns of what is no companion.
            "successfully installed" not in context.text
            or (companion_row(pair.subject) and companion_row(pair.requester))
        ):
            yield context.cause(
                "companion-version-mismatch",
                pair.at,
                {**names, "package": pair.subject, "requirement": f"{pair.subject}{pair.wanted}"},
            )


def _is_satisfied(pair: Pair) -> bool:
    """Return whether the version that is there satisfies what is wanted; False if one of them is unknown."""
    try:
        return bool(pair.wanted and pair.present) and SpecifierSet(pair.wanted).contains(pair.present, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def _xformers_causes(context: LogContext, build_pairs: list[Pair]) -> Iterator[Cause]:
    """Yield the causes of xFormers' message about what it was built for; nothing if the program went on without it.

    They are that it was built for another torch, and first that torch is a CPU build, if it is one.
    """
    pair = next((build_pair for build_pair in build_pairs if build_pair.subject == "pytorch"), build_pairs[0])
    if context.went_on(pair.at) and "no operator found for" not in context.text:  # xFormers' own words for it
        return
    present = pair.present if pair.subject == "pytorch" else context.torch
    install = pip_install("xformers", present)
    names = {"wanted": pair.wanted, "present": present, **({"install": install} if install else {})}
    if present.endswith("+cpu"):
        yield context.cause("torch-cpu-build-installed", pair.at)
    yield context.cause(
        "xformers-built-for-other-torch",
        pair.at,
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


def build_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes of what a build, or a compiler called by a running program, says it lacks."""
    building = bool(_BUILDS.search(context.text))
    imported = (missing for missing in missing_modules(context.text) if missing.kind == "module" and building)
    for missing in (missing for missing in imported if missing.thing in _ISOLATED):
        yield _build_cause(context, "ext-build-without-torch", missing.at)
    yield from _missing_wheel_causes(context)
    for program in missing_programs(context.text):
        yield from _missing_program_causes(context, program, building=building)
    if message := _CUDA_HOME.search(context.text):
        yield _build_cause(context, "ext-build-no-nvcc", message.start())
    if message := _COMPILER_ASKED.search(context.text):
        yield _missing_compiler_cause(context, message.start())
    if message := _OLD_NVCC.search(context.text):
        yield _build_cause(context, "ext-build-cuda-mismatch", message.start(), "library-sure", arch=message[1])
    if message := _LLVM.search(context.text):
        yield context.cause("triton-ptxas-too-old", message.start(), _torch_names(context), "library-sure")
    for pair in pairs(context.text):
        if pair.requester == "build":
            yield _build_pair_cause(context, pair)
    yield from _triton_compiler_causes(context)


def _missing_wheel_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes that a package has no wheel for this torch, and that companions have none for this system."""
    if message := _NO_WHEEL.search(context.text):
        yield context.cause("ext-no-wheel", message.start(), {**package_built(context), **_torch_names(context)})
    for message in _NOT_HERE.finditer(context.text):
        name = next(filter(None, message.groups()))
        row, os = companion_row(name), context.machine.os or ("windows" if "win_amd64" in context.text else "")
        lacks = (
            row is not None
            and bool(row.platforms)
            and os != ""
            and not any(platform.startswith(os) for platform in row.platforms)
        )
        if not lacks:
            continue
        if name == "triton":
            yield triton_cause(context, message.start(), "triton-missing")
        else:
            yield context.cause("ext-no-wheel", message.start(), {"package": name, **_torch_names(context)})


def _missing_program_causes(context: LogContext, program: Missing, *, building: bool) -> Iterator[Cause]:
    """Yield the cause of a missing program: nvcc, a compiler or FFmpeg; nothing for others, and if it is not needed."""
    if program.thing in {"nvcc", "cuda_home", "cuda toolkit"} and (building or package_built(context)):
        if _LAUNCHER.search(context.text):  # Triton names the toolkit as well, and lacks only the compiler's headers
            return
        yield _build_cause(context, "ext-build-no-nvcc", program.at)
    elif program.thing in _COMPILERS and _TRITON.search(context.text) and not context.went_on(program.at):
        yield triton_cause(context, program.at, "triton-no-compiler")
    elif program.thing in _COMPILERS and building:
        yield _missing_compiler_cause(context, program.at)
    elif program.thing == "ffmpeg" and "torchcodec" in context.text:
        yield context.cause("torchcodec-ffmpeg-missing", program.at, {"library": "FFmpeg"}, "library-part")


def _missing_compiler_cause(context: LogContext, at: int) -> Cause:
    """Return the cause of a missing compiler: Triton's if the text shows that it asks, else of a build."""
    if re.search(r"inductor|torch\.compile|\btcc\b", context.text):  # TinyCC comes with Triton for Windows alone
        return triton_cause(context, at, "triton-no-compiler")
    return _build_cause(context, "ext-build-no-compiler", at)


def _build_pair_cause(context: LogContext, pair: Pair) -> Cause:
    """Return the cause of a build whose compiler or CUDA is not the one that it needs."""
    if pair.subject == "compiler":
        return _build_cause(context, "ext-build-no-compiler", pair.at)
    return _build_cause(context, "ext-build-cuda-mismatch", pair.at)


def _triton_compiler_causes(context: LogContext) -> Iterator[Cause]:
    """Yield the causes that Triton is missing or lacks a compiler, or has a ptxas that does not know the GPU.

    It compiles its launcher and its kernels when a program first calls them.
    """
    if not _TRITON.search(context.text):
        return
    missing = _TRITON_TOLD.search(context.text)
    if missing and not context.went_on(missing.start()):
        yield triton_cause(context, missing.start(), "triton-missing", "library-part")
    failure = _LAUNCHER.search(context.text)
    if failure and not context.went_on(failure.start()):
        yield triton_cause(context, failure.start(), "triton-no-compiler")
    if (ptxas := _PTXAS.search(context.text)) and not re.search(r"value 'sm_[1-6]\d'", context.text):
        yield context.cause("triton-ptxas-too-old", ptxas.start(), _torch_names(context), "library-sure")


def package_built(context: LogContext) -> dict[str, str]:
    """Return a value for the placeholder `package`, the one that is built; {} if a log names none that is known."""
    downloads = [match[1] for match in _SOURCE.finditer(context.text)]
    built = [match[1] for match in _BUILT.finditer(context.text)]
    for name in (*reversed(downloads), *reversed(built)):
        if companion_row(name) and name not in {"torch", "triton"}:
            return {"package": name.replace("_", "-")}
    names = re.findall(
        r"flash[_-]attn|flashattention|causal[_-]conv1d|mamba[_-]ssm|deepspeed|mmcv|detectron2|xformers"
        r"|bitsandbytes|sageattention|apex|pytorch3d|torch[_-]scatter|auto[_-]gptq|tinycudann|torchmcubes",
        context.text,
    )
    return {"package": names[0].replace("_", "-").replace("flashattention", "flash-attn")} if names else {}


def _torch_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `torch` (its version) and `cuda` (that it was built with); without unknown ones."""
    cuda = context.torch_cuda
    return {**({"torch": context.torch} if context.torch else {}), **({"cuda": cuda} if cuda else {})}


def _build_cause(context: LogContext, key: str, at: int, basis: str = "library", **names: str) -> Cause:
    """Return the cause of a build that fails, with the package that is built and its torch among the names."""
    return context.cause(key, at, {**_torch_names(context), **package_built(context), **names}, basis)
