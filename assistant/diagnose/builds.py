"""What a log says that is missing or of another version, and what a build needs here: wheels, compilers, toolkits.

A message has one grammar in all tools: somebody (a file, a package, a program) asks for a thing (a library, a module, a
symbol, a program), often at a place; or it names a pair, what is wanted and what is there. All texts are those of
`Log.text`: lower case, a system's messages in English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version

from assistant.catalog import has_code, load_catalog, number
from assistant.catalog.companions import carried_by_torch_index, find_companion, wheel_sources
from assistant.diagnose.facts import LogContext, pip_install
from assistant.diagnose.index import platforms_of, tag_of, torch_install
from assistant.diagnose.rules import compiled, is_within, literals, plain_table
from assistant.model.machine import Machine, Vendor

Kind = Literal["file", "dependency", "module", "name", "symbol", "program"]
FAR = 400  # characters of a line before and after a name that are looked at
_LINE = re.compile(r"[^\n]+")


class Missing(NamedTuple):
    """A thing that somebody wants and does not get.

    `thing` is a file, a module, an undefined symbol or a program in lower case; for a "dependency" it is the file whose
    own dependency is missing, for a "name" the module and the name in it, joined by a colon. `requester` is the file
    that asks, "" if none is named. `at` is where it stands in the text.
    """

    kind: Kind
    thing: str
    requester: str
    at: int


class Pair(NamedTuple):
    """What `requester` wants of `subject`, and what is there; "" for what is not told. `at` is where it stands."""

    requester: str
    subject: str
    wanted: str
    present: str
    at: int


# OSError: libavutil.so.58: cannot open shared object file: No such file or directory
# Error loading "onnxruntime_providers_tensorrt.dll" which depends on "nvinfer_10.dll" which is missing. (Error 126)
# ImportError: /venv/vllm/_C.abi3.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSsb
# Library not loaded: @rpath/libavutil.58.dylib
_FILE = re.compile(
    r"(?<![\w.+-])\w[\w+-]{0,80}(?:\.[\w+-]{1,60}){0,3}?\.(?:so(?:\.\d{1,4}){0,3}|dll|pyd|dylib)(?![\w+-])", re.ASCII
)
# Words behind a name: … is not found or cannot be loaded, "x.dll" which is missing, x.dll 找不到
_GONE = re.compile(
    r"""["'`\])}>,]{0,3}[ :,]{0,3}(?:(?:which|that|it|library|file|dll|is|was|are|were|still|also|文件"""
    r"""|库)[ ]{1,2}){0,4}"""
    r"(?:cannot open|can(?:no|')t be (?:found|loaded|opened|located)|can(?:no|')?t? (?:find|load|open)"
    r"|not (?:be )?found|not be (?:found|loaded|opened|located)|could not be (?:found|loaded|opened|located)"
    r"|(?:are |is )?missing|no such file|does ?n[o']t exist|not (?:installed|available|loaded)|not in (?:the )?path"
    r"|.{0,6}(?:找不到|缺失|不存在|未找到|没找到|没有找到|丢失|加载失败|无法加载|打不开))"
)
# Words before a name: Could not locate x.dll, Unable to load any of {x.so.9, …}, 找不到 x.dll, without x, no x
_SOUGHT = re.compile(
    r"(?:(?:could ?n[o']t|can(?:no|')?t|cannot|unable to|failed to|fail(?:s|ed)? at|error|not able to) "
    r"(?:be )?(?:load|find|locate|open|import|loading|opening|finding)(?:ing)?|library not loaded:|not found:|missing:?"
    r"|no such file or directory:|depends on|lacks?|misses|needs?|wants?|cannot open|找不到|缺少|缺失|缺"
    r"|无法(?:加载|找到|定位|打开)|加载不了|没有找到|未找到|少了)"
    r"(?:[ ,]{1,2}(?:any of|the|a|dynamic|shared|required|this|dll|so|library|libraries|module|file|from"
    r"|named|文件|库|模块))*[^\w\n]{0,6}$"
)
_PATH = re.compile(r"(?:[a-z]:[\\/][^'\"\n<>|]{0,240}|(?:@?[\w.~+-]{1,80})?(?:[\\/][^\s'\"\\/]{0,120}){1,30}|[\\/])$")
# [WinError 126] The specified module could not be found. Error loading "C:\…\fbgemm.dll" or one of its dependencies.
# LoadLibrary failed with error 126 "" when trying to load "C:\…\onnxruntime_providers_cuda.dll"
# FFmpeg version 4: Could not load this library: /…/torchcodec/libtorchcodec_core4.dylib
_DEPENDS = re.compile(
    r"or one of its dependenc|(?:error|code) 12[67]\b|specified (?:module|procedure) could not be found"
    r"|could not load this library"
)
_REFERENCED = re.compile(r"referenced from: {0,9}(?:<[^>\n]{1,60}> )?([^\n]{1,300})")


def missing_files(text: str) -> Iterator[Missing]:
    """Yield the libraries that a text says are missing, each with the file that asks for it, if named.

    Of a line that names several, words behind a name tell more than words before it. A library that only lacks a symbol
    is there. If a line says no more than that a file does not load, the file is a "dependency".
    """
    for row in _LINE.finditer(text):
        line, start = row[0], row.start()
        files = list(_FILE.finditer(line))
        if not files or "undefined symbol" in line or "not defined in file" in line:
            continue
        does_not_load = _DEPENDS.search(line)
        gone = [file for file in files if _GONE.match(line, file.end(), file.end() + FAR)]
        if not gone and (not does_not_load or "could not load library" in line):
            gone = [file for file in files if _SOUGHT.search(_text_before(line, file.start()))]
        if gone:
            others = [other[0] for other in files if other[0] != gone[0][0]]
            referrer = _REFERENCED.search(text, row.end(), row.end() + FAR)
            requester = others[0] if others else referrer[1].strip() if referrer else ""
            yield Missing("file", gone[0][0], requester, start + gone[0].start())
        elif does_not_load:
            yield Missing("dependency", files[-1][0], "", start + files[-1].start())


def _text_before(line: str, at: int) -> str:
    """Return the line before a name, without the folders that belong to it, and at most `FAR` characters."""
    return _PATH.sub("", line[max(0, at - FAR) : at])


# ImportError: /venv/vllm/_C.abi3.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSsb
# Symbol not found: __ZN2at4_ops5zeros4callE
#   Referenced from: <…> /…/libtorchaudio.so
# symbol not found in flat namespace (__ZN2at4_ops10zeros_like4callE)
_SYMBOL = re.compile(
    r"(?:undefined symbol:? ?|symbol not found(?: in flat namespace)?[:( '\"]{1,4}"
    r"|lookup error: [^\n]{1,200}symbol: ?)\n?[('\"]{0,2}(\w{3,200})"
    r"|symbol (\w{3,200}),? version [\w.]{3,40} not defined in file"
)
# ImportError: DLL load failed while importing _C: The specified procedure could not be found.
_ENTRY = re.compile(r"specified procedure could not be found|error 127\b|procedure entry point")
_IMPORTING = re.compile(r"dll load failed while importing ([\w.]{1,80})")


def missing_symbols(text: str) -> Iterator[Missing]:
    """Yield the symbols that a loader does not find, each with the file that asks, if one is named.

    If Windows does not tell the symbol's name, it is "procedure".
    """
    for match in _SYMBOL.finditer(text):
        before, after = text[: match.start()].rpartition("\n")[2][-FAR:], text[match.end() :].partition("\n")[0]
        files = _FILE.findall(before) or _FILE.findall(after)
        referrer = _REFERENCED.search(text, match.end(), match.end() + FAR)
        requester = referrer[1].strip() if referrer else (files or [""])[-1]
        yield Missing("symbol", match[1] or match[2], requester, match.start())
    if message := _ENTRY.search(text):
        line = text[: message.start()].rpartition("\n")[2] + text[message.start() :].partition("\n")[0]
        names = _IMPORTING.findall(line) or _FILE.findall(line)
        yield Missing("symbol", "procedure", (names or [""])[-1], message.start())


# ModuleNotFoundError: No module named 'triton'
_MODULE = re.compile(
    r"no module(?: named)? ['\"]?([a-z_][\w.-]{1,80}\w)['\"]?"
    r"|module ['\"]?([a-z_][\w.]{1,80})['\"]? (?:is )?not found"
)
# ImportError: cannot import name 'AttrsDescriptor' from 'triton.backends.compiler' (/…/triton/backends/compiler.py)
# AttributeError: partially initialized module 'triton' has no attribute 'language'
_NAME = re.compile(
    r"cannot import name ['\"]?(\w{1,80})['\"]? from (?:partially initialized module )?['\"]?([\w.]{1,80}\w)"
    r"|module ['\"]?([a-z_][\w.]{1,80})['\"]? has no attribute ['\"]?(\w{1,80})"
)


def missing_modules(text: str) -> Iterator[Missing]:
    """Yield what modules lack: modules that cannot be imported, those without their libraries, and names."""
    for match in _MODULE.finditer(text):
        yield Missing("module", match[1] or match[2], "", match.start())
    for match in _NAME.finditer(text):
        yield Missing("name", f"{match[2] or match[3]}:{match[1] or match[4]}", "", match.start())
    for match in _IMPORTING.finditer(text):
        yield Missing("dependency", match[1], "", match.start())


# RuntimeError: flash_attn was requested, but nvcc was not found.
# FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'
# error: command 'gcc' failed: No such file or directory
# /bin/sh: 1: nvcc: not found
_PROGRAM = re.compile(
    r"(?<![\w.+-])(nvcc|cl|gcc|g\+\+|cc|c\+\+|clang(?:\+\+)?|tcc|(?:x86_64|aarch64)-linux-gnu-g(?:cc|\+\+)"
    r"|ffmpeg|cuda_home|python\.h|c compiler|c\+\+ compiler|cuda toolkit)(?:\.exe)?(?![\w+-]|\.\w| version bounds)",
    re.ASCII,
)
_FAILED = re.compile(
    r"""["'`]{0,2}(?:[^\n]{0,40}failed: no such file| environment variable is not set| does not exist"""
    r"""| is not set|: command not found)|[ :]{1,3}(?:is |was )?(?:not|没)(?: set|有设置)"""
    r"""| ?.{0,4}(?:没有|没装|未安装|没有安装|没安装|不存在|找不到|未设置|没有设置)"""
)
_WITHOUT = re.compile(
    r"(?:\bno|\bwithout(?: an?)?|没有|没装|没安装|未安装|未设置|没设置|缺"
    r"|filenotfounderror:|file ?not ?found:) ?['\"]{0,2}$"
)


def missing_programs(text: str) -> Iterator[Missing]:
    """Yield the programs that a text says are missing, and what shows that one is, such as CUDA_HOME and Python.h."""
    for row in _LINE.finditer(text):
        for match in _PROGRAM.finditer(row[0]):
            before = _text_before(row[0], match.start())
            is_gone = any(pattern.match(row[0], match.end(), match.end() + FAR) for pattern in (_GONE, _FAILED))
            if is_gone or _SOUGHT.search(before) or _WITHOUT.search(before):
                yield Missing("program", match[1], "", row.start() + match.start())


# How the table of pairs writes a package, a version and a specifier.
_PARTS = {
    "NAME": r"[a-z][\w.-]{1,60}",
    "VERSION": r"v?\d[\w.+!-]{0,30}",
    "BOUNDS": r"(?:[=<>~!^][^\s,;)]{1,40}(?:, ?[=<>~!][^\s,;)]{1,40}){0,3}|\d[\w.+*]{0,30})",
}


@lru_cache(maxsize=1)  # several ask what one text tells
def pairs(text: str) -> tuple[Pair, ...]:
    """Return what is wanted and what is there for each message that tells both, or tells the least that will do.

    They stand in the order of the table of messages.
    """
    found = []
    for row in plain_table("libraries.toml")["pair"]:
        there = compiled(row["there"]).search(text) if "there" in row else None
        if not any(mark in text for mark in literals(row["pattern"])) or ("there" in row and not there):
            continue
        pattern = re.sub("NAME|VERSION|BOUNDS", lambda part: _PARTS[part[0]], row["pattern"])
        for match in compiled(pattern).finditer(text):
            part = {**row, "present": there[1] if there else "", **match.groupdict()}
            wanted = part.get("wanted") or (f">={part['least']}" if part.get("least") else "")
            wanted, present = wanted.rstrip(".,`'\"").replace(" ", ""), (part["present"] or "").rstrip(".")
            found.append(Pair(part.get("requester", ""), part["subject"], wanted, present, match.start()))
    return tuple(found)


# The parts of a library's file name: what it is called, and its version.
#   libcublas.so.12   libavutil.58.dylib   cublas64_12.dll   nvinfer_10.dll   avutil-58.dll   cudart64_110.dll
_UNIX = re.compile(
    r"(?:lib)?(.{1,80}?)(?:\.cpython-[\w-]{1,60}|\.abi3)?\.(?:so(?:\.([\d.]{1,12}))?|(?:([\d.]{1,12})\.)?dylib)"
)
_WINDOWS = re.compile(
    r"(?:lib)?(.{1,80}?)(?:(?:64)?[_-](\d{1,4})(?:[_.]\d{1,4}){0,3})?(?:\.cp3\d{1,2}-\w{3,20})?\.(?:dll|pyd)"
)
_THREE_DIGITS = 100  # cudart64_110.dll is of CUDA 11.0


class LibraryFile(NamedTuple):
    """A library's file name, taken apart, and its row in libraries.toml; `kind` is "" and `row` {} if it has none."""

    stem: str
    major: int | None
    kind: str
    row: Mapping[str, Any]

    @property
    def cuda_majors(self) -> tuple[int, ...]:
        """The CUDA majors that this version of the library belongs to; () if none is known."""
        by_version = self.row.get("cuda", {})
        return () if self.major is None else tuple(by_version.get(str(self.major), () if by_version else (self.major,)))


@cache
def parse_library(file: str) -> LibraryFile:
    """Return the parts of a library's file name in lower case, such as "libcublas.so.12", and its row.

    The CUDA runtime's three digits are read as CUDA's major.
    """
    match = _UNIX.fullmatch(file) or _WINDOWS.fullmatch(file)
    stem, version = (match[1], next(filter(None, match.groups()[1:]), "")) if match else (file, "")
    major = int(version.partition(".")[0]) if version[:1].isdigit() else None
    if major and major >= _THREE_DIGITS and stem in {"cudart", "nvrtc"}:
        major //= 10
    rows = (row for row in plain_table("libraries.toml")["library"] if re.fullmatch(row["names"], stem))
    row: Mapping[str, Any] = next(rows, {})
    return LibraryFile(stem, major, row.get("kind", ""), row)


def wheel_names(context: LogContext, package: str) -> dict[str, str]:
    """Return the placeholders of a package's wheels for this torch, Python and system, without those unknown.

    `wheel_url` is a wheel's address, `wheel_links` a page of wheels that pip reads, and `ready` the command if torch's
    index has it. Without a torch, `torch_first` installs the newest one that a wheel is ready for, whose build any
    driver of its CUDA's major runs, `torch_of_wheel` is its version, `wheel_then` the wheel.
    """
    torch, variant, machine = context.torch.partition("+")[0], context.build, context.machine
    platform = platforms_of(machine.os, machine.arch)[0] if machine.os else ""
    tag, row = tag_of(machine), find_companion(package)
    name = package.replace("-", "[-_]")
    match = re.search(rf"(?<![\w.]){name}[-= @`v]{{1,4}}(\d[\d.]{{1,12}}\d(?:\.post\d{{1,2}})?)", context.text)
    version = match[1] if match else context.machine.packages.get(package, "")
    names = {}
    if torch and platform:
        variant = variant or load_catalog().build_of(torch, "pypi", platform)
        names["wheel_url"] = _wheel_address(package, version, torch, variant, tag, platform)
        sources = () if names["wheel_url"] else wheel_sources(Requirement(package), torch, variant, platform)
        names["wheel_links"] = next((source.url for source in sources if source.find == "links"), "")
    elif platform == "linux_x86_64" and tag:
        steady = plain_table("kits.toml")["steady"]
        cards = [number(gpu.compute_capability) for gpu in machine.gpus if gpu.vendor is Vendor.NVIDIA]
        for wheel in load_catalog().wheels(platform, tag, steady):
            url = _wheel_address(package, version, wheel.version, steady, tag, platform)
            runs = all(has_code(wheel.sm, wheel.ptx, card, alone=False) for card in cards if card)
            if runs and url and (not version or version in url):
                names = {"torch_first": torch_install(wheel), "wheel_then": url, "torch_of_wheel": wheel.version}
                break
    if row and not row.only_source and carried_by_torch_index(row.name, context.build):
        names["ready"] = pip_install(package, context.torch)
    return {name: value for name, value in names.items() if value}


def _wheel_address(package: str, version: str, torch: str, variant: str, tag: str, platform: str) -> str:
    """Return the address of a package's wheel for a torch, its build, a Python's tag ("311"), a platform; "" if none.

    Of the rows of wheels.toml that fit, the one for the package's `version` counts, else the first.
    """
    table = plain_table("wheels.toml")
    rows = [
        row
        for row in table["file"]
        if row["package"] == package and platform in row["platforms"] and f"cp{tag}" in row.get("pythons", [f"cp{tag}"])
        if any(is_within(torch, bounds) for bounds in row["torch"])
        if any(fnmatchcase(variant, pattern) for pattern in row["variants"])
    ]
    if not tag or not rows or Version(torch).is_devrelease:
        return ""
    row = next((row for row in rows if is_within(version, row.get("told", "==0"))), None)
    abi_since = table["new_abi_before"].get(variant, table["new_abi_since"])
    return str((row or rows[0])["url"]).format(
        torch=".".join(torch.split(".")[:2]),
        major=variant[2:4],
        abi="TRUE" if Version(torch) >= Version(abi_since) else "FALSE",
        python=f"cp{tag}",
        version=version if row else rows[0]["version"],
    )


def removal_names(context: LogContext, package: str, name: str) -> dict[str, str]:
    """Return `since`, the release in which a package lost a name, and `newer`; {} if the table lacks it.

    `newer` is what no longer asks for the name, "" if the text does not show who does.
    """
    for row in plain_table("wheels.toml")["gone"]:
        if row["package"] == package and re.fullmatch(row["name"], name):
            newer = (newer for words, newer in row.get("newer", {}).items() if re.search(words, context.text))
            return {"since": row["since"], "newer": next(newer, "")}
    return {}


# What shows that the program runs in an environment of conda: its folders, its commands.
CONDA = re.compile(
    r"(?:mini|ana)conda|mini(?:forge|mamba)|micromamba|\.conda[\\/]|\bconda |[\\/]envs[\\/]|installer_files[\\/]env"
)
# nvcc: release 11.5, V11.5.119     …\CUDA\v11.8\bin\nvcc     /usr/local/cuda-12.4/bin/nvcc     nvcc V12.6.20
_NVCC = re.compile(
    r"(?:compilation tools, release |nvcc v?)(1\d\.\d)|(?:cuda[\\/]v|cuda-)(1\d\.\d)[\\/](?:bin|include)"
)
_BUILD = re.compile(r"\+?\bcu(1\d)(\d)\b")
# nvcc fatal   : Unsupported gpu architecture 'compute_89'
_ARCHITECTURE = re.compile(r"unsupported gpu architecture '((?:compute|sm)_\d{2,3}\w?)'")
_PORTABLE = re.compile(r"([a-z]:\\[\w .()+\\-]{0,200}?)\\(?:lib\\site-packages|python\.exe)", re.IGNORECASE)
_PROMPT = re.compile(r"(?:^|\n)(?:ps )?([a-z]:\\[\w .()+\\-]{2,120}?python\w{0,12})>")
_OWN = 'python -c "import torch; print(torch.version.cuda)"'  # read by the shell, where nobody told the version


def supposed_cuda(*, new_card: bool = False) -> str:
    """Return the newest CUDA, such as "13.0", that an NVIDIA driver of unknown version is assumed to run."""
    return str(plain_table("kits.toml")["driver"]["new_card" if new_card else "usual"])


def _cuda_for_build(context: LogContext) -> str:
    """Return the CUDA that a build must be made with, such as "12.8"; "" if neither a message nor torch tells it."""
    told = (pair.wanted for pair in pairs(context.text) if pair.subject == "nvcc" and pair.wanted[:1].isdigit())
    build = _BUILD.search(context.text)
    return next(told, "") or context.torch_cuda or (f"{build[1]}.{build[2]}" if build else "")


def kit_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders of the packages that hold CUDA's compiler for this machine, without those unknown.

    They are `cuda` (its version), `conda_kit`, `deb_kit` or `rpm_kit` with NVIDIA's `repository` and the folder
    `kit_home`, `windows_kit`, and `arch`, the architecture that an nvcc does not know. If the version is unknown, the
    shell asks torch for it, but not on Windows.
    """
    cuda, system, table = _cuda_for_build(context), context.machine.os, plain_table("kits.toml")
    version = cuda or (f"$({_OWN})" if system != "windows" else "")
    unknown = _ARCHITECTURE.search(context.text)
    names = {"cuda": cuda, "windows_kit": cuda if system == "windows" else "", "arch": unknown[1] if unknown else ""}
    if CONDA.search(context.text) and version:
        names["conda_kit"] = f'"nvidia/label/cuda-{version}.0::cuda-toolkit"'
    distribution = (context.machine.os_version or "").lower()
    repository = next((row for prefix, row in table["repositories"].items() if distribution.startswith(prefix)), "")
    repository = repository or ("wsl-ubuntu" if context.machine.wsl else "")  # NVIDIA's own for apt
    bounds = f">={table['oldest'].get(repository, '0')},<={table['newest'].get(repository, '99')}"
    if repository and system == "linux" and (not cuda or is_within(cuda, bounds)):
        kind = "rpm_kit" if repository.startswith("rhel") else "deb_kit"
        dashed = cuda.replace(".", "-") or f"$({_OWN} | tr . -)"
        names |= {kind: f"cuda-toolkit-{dashed}", "repository": repository, "kit_home": f"/usr/local/cuda-{version}"}
    return {name: value for name, value in names.items() if value}


def compiler_names(context: LogContext) -> dict[str, str]:
    """Return placeholders of compilers for a build: `least_gcc` that torch takes, and those that the nvcc takes.

    These are `nvcc` (its version), `most_gcc`, `toolset` and `component` of Visual C++, and `older_component` if the
    newest toolset is not accepted; they are missing if the nvcc that is called, or that is needed, is unknown.
    """
    table = plain_table("kits.toml")
    torch = context.torch.partition("+")[0] or load_catalog().releases[0].version
    least_gcc = max((row["gcc"] for row in table["torch_headers"] if is_within(torch, row["torch"])), default=9)
    names = {"least_gcc": str(least_gcc)}
    called = _NVCC.search(context.text)
    version = (called[1] or called[2]) if called else _cuda_for_build(context)
    toolkit = next((row for row in table["toolkit"] if row["cuda"] == version), None)
    if toolkit is None:
        return names
    names |= {"nvcc": toolkit["cuda"], "most_gcc": str(toolkit["gcc"])}
    accepted = [toolset for toolset in table["toolset"] if Version(toolset["below"]) <= Version(toolkit["cl"])]
    if accepted:  # they stand in order, the newest last
        names |= {"toolset": accepted[-1]["version"], "component": accepted[-1]["component"]}
        if accepted[-1] is not table["toolset"][-1]:
            names["older_component"] = accepted[-1]["component"]
    return names


def compiler_command(machine: Machine) -> str:
    """Return the command that installs a C++ compiler on a machine's system; "" if none is known."""
    distribution = (machine.os_version or "").lower()
    rows = (row for row in plain_table("kits.toml")["compiler"] if row["system"] == machine.os)
    return next((row["command"] for row in rows if distribution.startswith(tuple(row.get("names", [""])))), "")


def header_names(context: LogContext) -> dict[str, str]:
    """Return values for the placeholders `headers_url`, `headers_file` and `portable` for a portable Python on Windows.

    Such a Python lacks the folders with its C headers and libraries: the first two name the archive that holds them,
    the last one the folder of that Python. {} if no archive is known for its version.
    """
    table = plain_table("kits.toml")
    tag = re.search(r"cp3(\d{1,2})-win", context.text)
    python = f"3.{tag[1]}" if tag else ".".join((context.machine.python or "").split(".")[:2])
    archive = table["headers"].get(python)
    if not archive:
        return {}
    folders = (_PORTABLE.search(line.replace("\\\\", "\\")) for _number, line in context.log.lines)
    folder = next(filter(None, folders), None) or _PROMPT.search(context.text)
    portable = folder[1] if folder else "python_embeded"
    return {"headers_url": f"{table['headers_at']}{archive}", "headers_file": archive, "portable": portable}


def source_of(package: str) -> str:
    """Return what pip builds a package from: the address of its source if PyPI does not have it, else its name."""
    return str(plain_table("kits.toml")["sources"].get(package, package))


# Using cached xformers-0.0.28.post2.tar.gz (7.8 MB)
_SOURCE = re.compile(r"(?:using cached|downloading) (?:\S{1,200}/)?([a-z][\w.-]{1,60}?)-\d[\w.]{0,20}\.tar\.gz")
_BUILT = re.compile(
    r"(?:building wheels? for|failed to build|building|for|wheel for|installing"
    r"|install) [`'\"]?([a-z][\w-]{2,40}?)(?:==[\w.+]{1,20})?[`'\"]?(?:[\s(:@]|$)",
    re.MULTILINE,
)
_OFTEN_BUILT = re.compile(
    r"flash[_-]attn|flashattention|causal[_-]conv1d|mamba[_-]ssm|deepspeed|mmcv|detectron2|xformers"
    r"|bitsandbytes|sageattention|apex|pytorch3d|torch[_-]scatter|auto[_-]gptq|tinycudann|torchmcubes"
)


def package_built(context: LogContext) -> dict[str, str]:
    """Return a value for the placeholder `package`, the one that is built; {} if a log names none that is known."""
    for name in reversed([*_BUILT.findall(context.text), *_SOURCE.findall(context.text)]):
        if find_companion(name) and name not in {"torch", "triton"}:
            return {"package": name.replace("_", "-")}
    named = _OFTEN_BUILT.search(context.text)
    return {"package": named[0].replace("_", "-").replace("flashattention", "flash-attn")} if named else {}
