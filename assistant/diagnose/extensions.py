"""Judges what companions of torch say of one another: missing symbols, modules and names, pairs that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from assistant.catalog.companions import version_ranges
from assistant.diagnose.causes import Cause
from assistant.diagnose.kits import source_of
from assistant.diagnose.libraries import moves, package_of, symbol_kind
from assistant.diagnose.surroundings import FAR, Surroundings, known, pip_install, pip_install_trio, torchcodec_install
from assistant.diagnose.wants import Missing, Pair, missing_modules, missing_symbols, pairs
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
            yield _at(case, "musl-system", found.start(), {"requirement": package})


def symbol_causes(case: Surroundings) -> Iterator[Cause]:
    """Yield what undefined symbols tell: whose file was made for which other library."""
    for one in missing_symbols(case.text):
        kind, asks = symbol_kind(one.thing), case.asks(one.at, one.requester)
        who = asks.kind if asks and (one.requester or kind) else ""
        package = case.package(one.at, one.requester) or (_loading(case, one.at) if one.thing == "procedure" else "")
        who = "torchvision" if package in _TRIO else "torch" if package == "torch" else who
        extension = package if known(package) or _made_for_torch(kind, one) else ""
        if kind == "nvjitlink":
            yield _at(case, "nvjitlink-mismatch", one.at, {"library": "libnvJitLink"})
        elif kind == "oneapi" or who in {"ipex", "directml"} or (who == "onnxruntime" and kind != "torch"):
            continue  # their own rules; ONNX Runtime may be there, but it asks for no symbol of PyTorch
        elif who == "torchvision":
            install = pip_install_trio(case.torch)
            yield _at(case, "torch-torchvision-mismatch", one.at, {"install": install} if install else {})
        elif who == "torchcodec" or package == "torchcodec":
            install = torchcodec_install(case)
            yield _at(
                case,
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


def _made_for_torch(kind: str, one: Missing) -> bool:
    return kind == "torch" and bool(one.requester)


def _abi(case: Surroundings, at: int, package: str) -> Cause:
    install = pip_install(package, case.torch) if package and (row := known(package)) and not row.only_source else ""
    names = {"package": package, "install": install, "torch": case.torch.partition("+")[0]}
    return _at(case, "torch-abi-mismatch", at, {name: value for name, value in names.items() if value})


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
                yield _at(case, "ext-not-built", one.at, {"package": package, "library": module, **built})
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
            yield _at(case, "companion-version-mismatch", unknown.start(), _companion(case, caller), "library-part")
    if found := _NOT_DEFINED.search(case.text):
        yield _at(case, "ext-not-built", found.start(), {"library": "_C", **_checkout(case, found.start())})


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
    return _at(case, key, at, {name: value for name, value in names.items() if value}, basis)


def _name(case: Surroundings, one: Missing, package: str) -> Iterator[Cause]:
    """Judge a name that is gone from a package: PyTorch's parts differ, or two companions differ in generation."""
    line = case.text[slice(*case.line(one.at))]
    if package == "torch":
        if "cannot import name" in line:
            yield _abi(case, one.at, "")
    elif moves(package) and package not in {*_TRIO, "numpy", "onnxruntime", "torch-directml"} and _HALF not in line:
        names = {**_companion(case, package), **_gone(case, package, one)}
        yield _at(case, "companion-version-mismatch", one.at, names)
    elif package == "torchaudio" and (gone := _gone(case, package, one)):
        yield _at(case, "companion-version-mismatch", one.at, {"package": package, **gone})


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
        yield _at(case, "companion-version-mismatch", one.at, _companion(case, package))


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
            yield _at(case, "torch-torchvision-mismatch", one.at, {"install": install} if install else {})
        elif (
            one.subject == "torch"
            and requester == "xformers"
            and ("built for" in case.text or "xformers_" in case.text)
        ):
            install = pip_install("xformers", one.present)
            wanted = {"wanted": one.wanted.strip("=.*"), "present": one.present}
            yield _at(
                case, "xformers-built-for-other-torch", one.at, {**wanted, **({"install": install} if install else {})}
            )
        elif one.subject == "torch":
            beside = pip_install(requester, one.present or case.torch) if known(requester) else ""
            yield _at(case, "companion-pins-torch", one.at, {**names, **({"install": beside} if beside else {})})
        elif one.subject in _TRIO:
            yield _at(case, "companion-pins-torch", one.at, names)
        elif (known(one.subject) or known(requester)) and not _installed_anyway(case, one):
            yield _at(
                case,
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
        yield _at(case, key, at, {name: value for name, value in names.items() if value}, "library-part")


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
        yield _at(case, "torch-cpu-build-installed", torch.at, {})
    yield _at(
        case,
        "xformers-built-for-other-torch",
        torch.at,
        names,
        "library-part" if present.endswith("+cpu") else "library",
    )


def _at(case: Surroundings, key: str, at: int, names: dict[str, str], basis: str = "library") -> Cause:
    return Cause(key, basis, (case.log.index_at(at),), names)
