"""Reads what is missing, and what was built for something else, from any program's words; and whose a missing thing is.

A message has one grammar in all tools: somebody (a file, a package, a program) wants a thing (a library, a module, a
symbol, a program), often at a place; or it names a pair, what is wanted and what is there. All texts are those of
`Log.text`: lower case, a system's messages in English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from assistant.catalog.companions import companion
from assistant.diagnose.rules import table
from assistant.model.record import Record

Kind = Literal["file", "dependency", "module", "name", "symbol", "program"]
FAR = 400  # characters of a line before and after a name that are looked at
# What a line holds that is read here, for logs too long to be read whole.
MARKS = (
    "cannot open shared object", "not found", "cannot be loaded", "could not load", "could not find",
    "could not locate", "unable to load", "library not loaded", "undefined symbol", "symbol not found",
    "no module named", "cannot import", "has no attribute", "one of its dependencies", "error 126", "is missing",
    "找不到", "缺少", "but you have", "you have", "but found", "was built for", "mismatches the version",
    "does not match the version", "only supported on cuda", "error #15", "failed to find", "python.h", "nvcc",
    "is not defined for option", "setupbackend failed", "compiling model", "visual c++", "installed version of",
    "libbitsandbytes", "gpu support", "uninstalling torch", "precompiled wheel", "unexpected keyword argument",
    "working triton", "require cudnn", "coreml", "is used but incompatible", "recognized processor",
)  # fmt: skip


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
    r"|not (?:be )?found"
    r"|not be (?:found|loaded|opened|located)|could not be (?:found|loaded|opened|located)|(?:are "
    r"|is )?missing|no such file"
    r"|does ?n[o']t exist|not (?:installed|available|loaded)|not in (?:the )?path"
    r"|.{0,6}(?:找不到|缺失|不存在|未找到|没找到|没有找到|丢失|加载失败|无法加载|打不开))"
)
# Words before a name: Could not locate x.dll, Unable to load any of {x.so.9, …}, 找不到 x.dll, without x, no x
_SOUGHT = re.compile(
    r"(?:(?:could ?n[o']t|can(?:no|')?t|cannot|unable to|failed to|fail(?:s|ed)? at|error|not able to) "
    r"(?:be )?(?:load|find|locate|open|import|loading|opening|finding)(?:ing)?|library not loaded:"
    r"|not found:|missing:?"
    r"|no such file or directory:|depends on|lacks?|misses|needs?|wants?|cannot open|找不到|缺少|缺失|缺|无法(?:加载"
    r"|找到|定位|打开)|加载不了|没有找到|未找到|少了)"
    r"(?:[ ,]{1,2}(?:any of|the|a|dynamic|shared|required|this|dll|so|library|libraries|module|file|from"
    r"|named|文件|库|模块))*[^\w\n]{0,6}$"
)
_PATH = re.compile(r"(?:[a-z]:[\\/][^'\"\n<>|]{0,240}|(?:@?[\w.~+-]{1,80})?(?:[\\/][^\s'\"\\/]{0,120}){1,30}|[\\/])$")
# [WinError 126] The specified module could not be found. Error loading "C:\…\fbgemm.dll" or one of its dependencies.
# Could not find module 'C:\…\libtorchcodec_core7.dll' (or one of its dependencies). Try using the full path
# LoadLibrary failed with error 126 "" when trying to load "C:\…\onnxruntime_providers_cuda.dll"
# FFmpeg version 4: Could not load this library: /…/torchcodec/libtorchcodec_core4.dylib
_DEPENDS = re.compile(
    r"(?:or one of its dependenc)|(?:error|code) 12[67]\b|specified (?:module"
    r"|procedure) could not be found|could not load this library"
)
_REFERENCED = re.compile(r"referenced from: {0,9}(?:<[^>\n]{1,60}> )?([^\n]{1,300})")


def missing_files(text: str) -> Iterator[Missing]:
    """Yield the libraries that a text says are missing, each with the file that asks for it, if named."""
    lines: dict[int, list[re.Match[str]]] = {}
    for match in _FILE.finditer(text):
        lines.setdefault(text.rfind("\n", 0, match.start()) + 1, []).append(match)
    for start, files in lines.items():
        end = text.find("\n", start)
        yield from _missing_in_line(text, start, len(text) if end < 0 else end, files)


def _missing_in_line(text: str, start: int, end: int, files: list[re.Match[str]]) -> Iterator[Missing]:
    """Yield the library that a line says is missing, or the file of which a dependency is; nothing for a symbol's line.

    `files` are the names of libraries in the line, of which words behind a name tell more than words before it.
    """
    line = text[start:end]
    if "undefined symbol" in line or "not defined in file" in line:
        return  # its library is there
    gone_files = [file for file in files if _GONE.match(text, file.end(), min(end, file.end() + FAR))]
    sought_files = [file for file in files if _SOUGHT.search(_text_before(text, start, file.start()))]
    dependency_message = _DEPENDS.search(line)
    if chosen := gone_files or ([] if dependency_message and "could not load library" not in line else sought_files):
        file = chosen[0]
        other_files = [other[0] for other in files if other[0] != file[0]]
        referrer = _REFERENCED.search(text, end, end + FAR)
        requester = other_files[0] if other_files else referrer[1].strip() if referrer else ""
        yield Missing("file", file[0], requester, file.start())
    elif dependency_message and files:
        yield Missing("dependency", files[-1][0], "", files[-1].start())


def _text_before(text: str, start: int, at: int) -> str:
    """Return the line before a name, without the folders that belong to it, and at most `FAR` characters."""
    return _PATH.sub("", text[max(start, at - FAR) : at])


# ImportError: /venv/vllm/_C.abi3.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSsb
# Symbol not found: __ZN2at4_ops5zeros4callE
#   Referenced from: <…> /…/libtorchaudio.so
# symbol not found in flat namespace (__ZN2at4_ops10zeros_like4callE)
_SYMBOL = re.compile(
    r"(?:undefined symbol:? ?|symbol not found(?: in flat namespace)?[:( '\"]{1,4}"
    r"|lookup error: [^\n]{1,200}symbol: ?)\n?[('\"]{0,2}(\w{3,200})"
    r"|symbol (\w{3,200}),? version [\w.]{3,40} not defined in file"
)
_IMPORTING = re.compile(r"dll load failed while importing ([\w.]{1,80})")


def missing_symbols(text: str) -> Iterator[Missing]:
    """Yield the symbols that a loader does not find, each with the file that asks, if one is named.

    If Windows does not tell the symbol's name, it is "procedure".
    """
    for match in _SYMBOL.finditer(text):
        line = text.rfind("\n", 0, match.start()) + 1
        files_before = [file[0] for file in _FILE.finditer(text, max(line, match.start() - FAR), match.start())]
        referrer = _REFERENCED.search(text, match.end(), match.end() + FAR)
        end = text.find("\n", match.end())
        files_near = (
            files_before or [file[0] for file in _FILE.finditer(text, match.end(), end if end > 0 else len(text))]
        )[-1:]
        requester = referrer[1].strip() if referrer else (files_near or [""])[0]
        yield Missing("symbol", match[1] or match[2], requester, match.start())
    at = text.find("specified procedure could not be found")
    if at < 0 and (entry_message := re.search(r"error 127\b|winerror 127\b|procedure entry point", text)):
        at = entry_message.start()
    if at >= 0:
        line, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        line_text = text[line : end if end > 0 else len(text)]
        import_message = _IMPORTING.search(line_text)
        modules_or_files = [import_message[1]] if import_message else [file[0] for file in _FILE.finditer(line_text)]
        yield Missing("symbol", "procedure", (modules_or_files or [""])[-1], at)


# ModuleNotFoundError: No module named 'triton'
# Can't import SageAttention: No module named 'triton'
# ImportError: DLL load failed while importing flash_attn_2_cuda: The specified module could not be found.
_MODULE = re.compile(
    r"no module(?: named)? ['\"]?([a-z_][\w.-]{1,80}\w)['\"]?"
    r"|module ['\"]?([a-z_][\w.]{1,80})['\"]? (?:is )?not found"
)
# ImportError: cannot import name 'AttrsDescriptor' from 'triton.backends.compiler' (/…/triton/backends/compiler.py)
# ImportError: cannot import name '_C' from partially initialized module 'detectron2'
# AttributeError: module 'triton.language' has no attribute 'constexpr_function'
# AttributeError: partially initialized module 'triton' has no attribute 'language'
_NAME = re.compile(
    r"cannot import name ['\"]?(\w{1,80})['\"]? from (?:partially initialized module )?['\"]?([\w.]{1,80}\w)"
    r"|module ['\"]?([a-z_][\w.]{1,80})['\"]? has no attribute ['\"]?(\w{1,80})"
)


def missing_modules(text: str) -> Iterator[Missing]:
    """Yield the modules that cannot be imported, those whose libraries are missing, and the names that modules lack."""
    for match in _MODULE.finditer(text):
        yield Missing("module", match[1] or match[2], "", match.start())
    for match in _NAME.finditer(text):
        yield Missing("name", f"{match[2] or match[3]}:{match[1] or match[4]}", "", match.start())
    for match in _IMPORTING.finditer(text):
        yield Missing("dependency", match[1], "", match.start())


# RuntimeError: flash_attn was requested, but nvcc was not found.
# FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'
# RuntimeError: Compiler: cl is not found.
# error: command 'gcc' failed: No such file or directory
# /bin/sh: 1: nvcc: not found
_PROGRAM = re.compile(
    r"(?<![\w.+-])(nvcc|cl|gcc|g\+\+|cc|c\+\+|clang(?:\+\+)?|tcc|(?:x86_64|aarch64)-linux-gnu-g(?:cc|\+\+)"
    r"|ffmpeg|ptxas|cuda_home|python\.h|c compiler|c\+\+ compiler|cuda toolkit)(?:\.exe)?"
    r"(?![\w+-]|\.\w| version bounds)",
    re.ASCII,
)
_FAILED = re.compile(
    r"""["'`]{0,2}(?:[^\n]{0,40}failed: no such file| environment variable is not set| does not exist"""
    r"""| is not set|: command not found)|[ :]{1,3}(?:is |was )?(?:not|没)(?: set|有设置)"""
)
_WITHOUT = re.compile(
    r"(?:\bno|\bwithout(?: an?)?|没有|没装|没安装|未安装|未设置|没设置|缺"
    r"|filenotfounderror:|file ?not ?found:) ?['\"]{0,2}$"
)
_CHINESE_GONE = re.compile(r" ?(?:.{0,4}(?:没有|没装|未安装|没有安装|没安装|不存在|找不到|未设置|没有设置))")


def missing_programs(text: str) -> Iterator[Missing]:
    """Yield the programs that a text says are missing, and what shows that one is, such as CUDA_HOME and Python.h."""
    for match in _PROGRAM.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        end = min(len(text) if end < 0 else end, match.end() + FAR)
        before = _text_before(text, start, match.start())
        is_gone = any(pattern.match(text, match.end(), end) for pattern in (_GONE, _FAILED, _CHINESE_GONE))
        if is_gone or _SOUGHT.search(before) or _WITHOUT.search(before):
            yield Missing("program", match[1], "", match.start())


_IS = r"[\w.+!-]{0,30}"
_WANTED = r"[=<>~!^][^\s,;)]{1,40}(?:, ?[=<>~!][^\s,;)]{1,40}){0,3}|\d[\w.+*]{0,30}"
_NAMED = r"[a-z][\w.-]{1,60}"
_START = r"(?<![\w.+-])"  # "cu121" in torch==2.5.1+cu121 is no name
# ERROR: whisperx 3.8.6 has requirement torch~=2.8.0, but you have torch 2.15.0.
# vllm 0.33.0 requires torch==2.14.0, but you have torch 2.15.0 which is incompatible.
# huggingface-hub>=0.34.0,<1.0 is required for a normal functioning of this module, but found huggingface-hub==1.1.2.
_REQUIRES = re.compile(
    rf"{_START}({_NAMED}) (v?\d{_IS}) (?:has requirement|requires|depends on"
    rf"|needs) ({_NAMED})(?:\[[\w,-]{{1,40}}\])? ?({_WANTED}),? (?:but|and) "
    rf"(?:you(?:'ll)? have|found|got|installed is) {_NAMED}[ =]{{1,3}}(\d{_IS})"
)
# The package `torchvision` requires `torch==2.13.0`, but `2.12.0` is installed     (`uv pip check`)
_INSTALLED = re.compile(
    rf"the package ['\"`]?({_NAMED}?)['\"`]?() requires ['\"`]?({_NAMED}?)(?:\[[\w,-]{{1,40}}\])?"
    rf" ?({_WANTED})['\"`]?, but ['\"`]?(\d{_IS})['\"`]? is installed"
)
_NEEDED = re.compile(rf"{_START}({_NAMED})({_WANTED}) is required[^\n]{{0,80}} but found {_NAMED}[ =]{{1,3}}(\d{_IS})")
# AssertionError: MMCV==2.1.0 is used but incompatible. Please install mmcv>=1.2.4, <=1.4.0.
_INCOMPATIBLE = re.compile(
    rf"{_START}({_NAMED})==(\d{_IS}) is used but incompatible\.[^\n]{{0,40}}? install {_NAMED}?({_WANTED})"
)
# The conflict is caused by:
#     The user requested torch==2.15.0
#     whisperx 3.8.6 depends on torch~=2.8.0
# Because whisperx==3.8.6 depends on torch>=2.8.0,<2.9 and you require torch==2.15.0, we can conclude …
_DEPENDS_ON = re.compile(rf"{_START}({_NAMED})(?:==| )(v?\d{_IS}) depends on ({_NAMED}) ?({_WANTED})")
_REQUESTED = re.compile(
    r"(?:the user requested|you require|your project depends on|installed is) (torch) ?(==\d[\w.+]{1,30})"
)
# xFormers was built for:
#     PyTorch 2.6.0+cu124 with CUDA None (you have 2.5.1+cu121)
#     Python  3.11.0 (you have 3.11.5)
_BUILT = re.compile(
    r"^[^\n]{0,40}?\b(pytorch|python|cuda) {1,3}(\d[\w.+]{0,30})[^\n]{0,60}\(you have (\d[\w.+]{0,30}|none)",
    re.MULTILINE,
)
# The detected CUDA version (12.4) mismatches the version that was used to compile PyTorch (13.0).
# Installed CUDA version 12.4 does not match the version torch was compiled with 13.0
# RuntimeError: FlashAttention is only supported on CUDA 11.6 and above.
_CUDA = re.compile(
    r"cuda version \(?([\d.]{2,6})\)? (?:has a (?:minor"
    r"|major) version )?mismatch(?:es)? the version that was used to compile\s{1,4}pytorch \(([\d.]{2,6})\)"
    r"|installed cuda version ([\d.]{2,6}) does not match the version torch was compiled with ([\d.]{2,6})"
    r"(?![\d.]| but since)"
)
_LEAST = re.compile(r"(\w[\w-]{1,40})(?: \w{1,20}){0,3} (?:is|are) only supported on cuda ([\d.]{2,6}) and above")
_LEAST_NVCC = re.compile(
    r"(?:requires?|needs?|at least) (?:nvcc|cuda(?: toolkit)?)(?: version)? ?(?:>=|of at least"
    r"|at least)? ?(1\d\.\d)[^\n]{0,80}(?:found|have|detected|nvcc is|but)[^\d\n]{0,30}(1\d\.\d)"
)
# The current installed version of g++ (4.8.5) is less than the minimum required version by CUDA 11.7 (6.0.0).
_COMPILER = re.compile(
    r"current installed version of (\S{2,20}) \(([\d.]{3,12})\) is (?:less"
    r"|greater) than the m\w{2,4}imum required version"
)
_UNSUPPORTED = re.compile(r"unsupported (gnu|microsoft visual studio|clang) version")


# Poetry:  and unsloth (2025.11.1) depends on torch (>=2.4.0,<2.9.0), …
#          So, because llm-ft depends on both torch (2.9.1) and unsloth (^2025.11.1), version solving failed.
_POETRY = re.compile(r"\b([a-z][\w.-]{1,60}) \([^()\n]{1,60}\) (?:depends on|requires) torch \(([^()\n]{1,60})\)")
_BOTH = re.compile(r"depends on both (?:[^\n]{1,80} and )?torch \((\d[^()\s]{0,30})\)")


@lru_cache(maxsize=1)  # several ask what one text tells
def pairs(text: str) -> tuple[Pair, ...]:
    """Return what is wanted and what is there for each message that tells both, or tells the least that will do."""
    return tuple(_find_pairs(text))


def _find_pairs(text: str) -> Iterator[Pair]:
    """Yield what `pairs` returns."""
    installed = _INSTALLED.finditer(text) if "the package " in text else ()
    for match in (*_REQUIRES.finditer(text), *installed):
        yield Pair(match[1], match[3], match[4].rstrip(".,`'\""), match[5].rstrip("."), match.start())
    for match in _NEEDED.finditer(text) if " is required" in text else ():
        yield Pair("transformers", match[1], match[2].rstrip(","), match[3].rstrip("."), match.start())
    for match in _INCOMPATIBLE.finditer(text) if "is used but incompatible" in text else ():
        yield Pair("", match[1], match[3].rstrip(".,").replace(" ", ""), match[2], match.start())
    torch_requested = _REQUESTED.search(text)
    for match in _DEPENDS_ON.finditer(text) if torch_requested else ():
        if match[3] == "torch":
            yield Pair(
                match[1],
                "torch",
                match[4].rstrip(".,"),
                torch_requested[2].lstrip("=") if torch_requested else "",
                match.start(),
            )
    yield from _poetry_pairs(text)
    yield from _build_pairs(text)


def _poetry_pairs(text: str) -> Iterator[Pair]:
    """Yield the torch that each package wants beside the one that a project of Poetry asks for."""
    if torch_of_project := _BOTH.search(text):
        for match in _POETRY.finditer(text):
            yield Pair(match[1], "torch", match[2].replace(" ", ""), torch_of_project[1], match.start())


def _build_pairs(text: str) -> Iterator[Pair]:
    """Yield the pairs of compiled packages, requester "built", and those of failed builds, requester "build"."""
    for match in _BUILT.finditer(text):
        yield Pair("built", match[1], match[2], match[3].rstrip("."), match.start())
    for match in _CUDA.finditer(text):
        yield Pair("build", "nvcc", match[2] or match[4], match[1] or match[3], match.start())
    least_cuda_told = _LEAST.finditer(text) if "only supported on cuda" in text else ()
    for match in (*least_cuda_told, *_LEAST_NVCC.finditer(text)):
        least = match[2] if match.re is _LEAST else match[1]
        yield Pair("build", "nvcc", f">={least}", "" if match.re is _LEAST else match[2], match.start())
    for match in _COMPILER.finditer(text):
        yield Pair("build", "compiler", "", match[2], match.start())
    for match in _UNSUPPORTED.finditer(text):
        yield Pair("build", "compiler", "", "", match.start())


# The parts of a library's file name: what it is called, and its version.
#   libcublas.so.12   libavutil.58.dylib   cublas64_12.dll   nvinfer_10.dll   avutil-58.dll   cudart64_110.dll
_UNIX = re.compile(
    r"(?:lib)?(.{1,80}?)(?:\.cpython-[\w-]{1,60}|\.abi3)?\.(?:so(?:\.([\d.]{1,12}))?|(?:([\d.]{1,12})\.)?dylib)"
)
_WINDOWS = re.compile(
    r"(?:lib)?(.{1,80}?)(?:(?:64)?[_-](\d{1,4})(?:[_.]\d{1,4}){0,3})?(?:\.cp3\d{1,2}-\w{3,20})?\.(?:dll|pyd)"
)
_THREE_DIGITS = 100  # cudart64_110.dll is of CUDA 11.0


class Library(Record, frozen=True):
    """A row of libraries: `names` is a pattern of what their files are called, `owner` is for people.

    `kind` groups those that are judged alike. `wheels` and `folders` are by CUDA's major, `cuda` tells the CUDA majors
    of the library's own if the numbers differ. `packages` have it in distributions, by the manager: "deb", "rpm"
    and "arch".
    """

    names: str
    owner: str
    kind: str
    wheels: dict[str, str] = {}
    folders: dict[str, str] = {}
    cuda: dict[str, tuple[int, ...]] = {}
    packages: dict[str, str] = {}

    def cuda_majors(self, major: int | None) -> tuple[int, ...]:
        """Return the CUDA majors that a version of this library belongs to; () if none is known."""
        return () if major is None else self.cuda.get(str(major), () if self.cuda else (major,))


class Symbol(Record, frozen=True):
    """A row of symbols: `names` is a pattern of their beginnings."""

    names: str
    owner: str
    kind: str


class Requester(Record, frozen=True):
    """A row of those who ask: `words` is a pattern of how files, frames and people call them."""

    words: str
    package: str
    kind: str


class _File(Record, frozen=True):
    as_of: str
    source: str
    library: tuple[Library, ...]
    symbol: tuple[Symbol, ...]
    requester: tuple[Requester, ...]
    generations: tuple[str, ...]
    modules: dict[str, str]


class LibraryFile(NamedTuple):
    """A library's file name, taken apart, and the row that owns it; None for a library that the table lacks."""

    file: str
    stem: str
    major: int | None
    row: Library | None


def _tables() -> _File:
    """Return the shipped tables of libraries.toml, read once."""
    return table("libraries.toml", _File)


@cache
def parse_library(file: str) -> LibraryFile:
    """Return the parts of a library's file name, such as "libcublas.so.12", and its row; the row is None if unknown.

    The name is in lower case. The CUDA runtime's three digits are read as CUDA's major.
    """
    match = _UNIX.fullmatch(file) or _WINDOWS.fullmatch(file)
    stem, version = (match[1], next(filter(None, match.groups()[1:]), "")) if match else (file, "")
    first_number = int(version.partition(".")[0]) if version[:1].isdigit() else None
    major = (
        first_number // 10
        if first_number and first_number >= _THREE_DIGITS and stem in {"cudart", "nvrtc"}
        else first_number
    )
    row = next((row for row in _tables().library if re.fullmatch(row.names, stem)), None)
    return LibraryFile(file, stem, major, row)


@cache
def symbol_kind(name: str) -> str:
    """Return the kind of library that an undefined symbol belongs to; "" if that is unknown."""
    return next((row.kind for row in _tables().symbol if re.match(row.names, name)), "")


def requester_in(text: str) -> Requester | None:
    """Return the last of the requesters named in a text, as the nearest to what follows; None if none is named."""
    mentions = [(match.end(), row) for row in _tables().requester for match in re.finditer(row.words, text)]
    return max(mentions, key=lambda pair: pair[0])[1] if mentions else None


def requester_of(packages: frozenset[str]) -> Requester | None:
    """Return the installed package that asks for CUDA's libraries, if there is just one such requester; None else."""
    requesters = {row.package: row for row in _tables().requester if row.kind in {"onnxruntime", "cuda-user"}}
    installed_requesters = list(
        {row.package: row for row in requesters.values() for name in packages if re.search(row.words, name)}.values()
    )
    return installed_requesters[0] if len(installed_requesters) == 1 else None


def table_distributions() -> frozenset[str]:
    """Return the distributions of libraries, requesters and modules that libraries.toml names."""
    wheels = (name for row in _tables().library for name in row.wheels.values())
    requesters = (row.package for row in _tables().requester)
    return frozenset((*wheels, *requesters, *_tables().modules.values(), *_tables().generations))


def loses_names(package: str) -> bool:
    """Return whether a distribution is a companion of torch, or one whose releases differ in their names."""
    return package in _tables().generations or companion(package) is not None


def package_of(module: str) -> str:
    """Return the distribution of a module, by its first part: "flash_attn.bert" is of flash-attn.

    A module that the table lacks is taken for a distribution of the same name.
    """
    first = module.partition(".")[0]
    return _tables().modules.get(first, first.replace("_", "-"))
