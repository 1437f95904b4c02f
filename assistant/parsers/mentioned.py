"""Reads what a text says of its machine in passing: a version, a card, a driver, wherever they stand.

Texts come in lower case with plain quotes, as a log is searched. A fact is None where a text is silent or says two
things; what is wanted, required or removed is not there. Patterns are for ASCII: Chinese follows without a blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from assistant.catalog.identity import identify_gpu, patterns
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import replace


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII | re.MULTILINE)


_MOST = 200  # chosen: matches of one form that are looked at
_MOST_GPUS = 8  # chosen: more cards that a text mentions are a list, not a machine

_VERSION = r"\d{1,4}(?:\.\d{1,4}){1,3}(?:\.?(?:a|b|rc|post|dev)\d{1,10}){0,2}"
_LOCAL = r"(?:\+[a-z0-9]{2,20}(?:\.(?!dist-)[a-z0-9]{1,20}){0,6})"
_NAMES = (
    r"torch[-_]directml|torchvision|torchaudio|torchcodec|torch|pytorch|numpy|triton-windows|triton|xformers|flash[-_]attn"
    r"|bitsandbytes|onnxruntime(?:[-_]\w{2,12}){0,2}|intel[-_]extension[-_]for[-_]pytorch|ipex|vllm|ctranslate2"
)
# torch==2.3.1+cu121   torch 2.8.0   torch: 2.6.0   "torch": "2.6.0"   torch-2.8.0-cp311-…   pytorch version: 2.3.1
# torch是2.0.1+cpu   pytorch1.9.0   torch.__version__ '2.5.1+cpu'   onnxruntime_directml-1.24.4   torch @ 2.9
_PACKAGE = _form(
    rf"(?<![\w.-])({_NAMES})(?:\.__version__|[ _]version| \((?:gpu|cpu|cuda)\))?"
    rf"(?:==|[ \t]?[:=][ \t]?|-|[ \t]{{1,40}}|\"[ \t]?:[ \t]?|[ \t]?(?:是|为|版本(?:是|为)?)[ \t]?| is | says "
    rf"|(?:(?<=torch)|(?<=vision)|(?<=audio))(?=\d\.\d{{1,2}}\.\d)){{1,3}}"
    rf"[\"'v(]{{0,2}}({_VERSION}{_LOCAL}?)(?![\w.]*(?:\.so|\.dll|\.py\b))"
)
# A build of PyTorch names itself by its tag, wherever it stands: "2.7.0+cpu", "…says 2.5.0+cu126"
_BUILD = _form(rf"(?<![\w.+])({_VERSION}\+(?:cpu|cu\d{{2,3}}|rocm\d[\d.]{{0,12}}|xpu))\b")
# torch 2.4.1 cu121     torch 2.8 (rocm6.4)     torch 2.7.1, cpu build     torch 2.8 with the rocm 6.4
_BUILD_BESIDE = _form(
    r"[ ,(]{1,3}(?:(?:with|for|on|and) )?(?:the )?(cpu(?= (?:build|version|only))|cu1\d\d|rocm ?\d\.\d(?:\.\d)?|xpu)\b"
)
_OTHERS = _form(rf"(?<![\w.-])({_NAMES}|[a-z]\w{{0,30}}[-_]\w{{1,30}})[ \t:=@\"'(v-]{{1,6}}$")
# pytorch=2.4.1=cpu_mkl_py311   pytorch  2.1.0  py3.10_cuda12.1_cudnn8_0   pytorch-2.5.1-cpu_generic_py311h…
_CONDA = _form(
    r"(?<![\w.-])pytorch[=\s-]{1,40}(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)[=\s-]{1,40}"
    r"(?:py3[\d.]{1,4}_)?(cpu|cuda\d{1,2}\.?\d)"
)
# Successfully installed numpy-2.2.6 torch-2.15.0      + torch==2.15.0      installed 4 packages
_INSTALLED = _form(rf"(?:^successfully installed [^\n]{{0,4000}}?\b|^ ?\+ )torch(?:-|==)({_VERSION}{_LOCAL}?)")
# Successfully uninstalled torch-2.8.0    Uninstalling torch-2.6.0+cu126:     - torch==2.6.0+cu126
_REMOVED = _form(rf"(?:uninstall(?:ed|ing|s)|removed|^ ?-)[ \t:]{{1,4}}torch(?:-|==|[ \t])({_VERSION}{_LOCAL}?)")
# from 2.8.0+cu128 to 2.15.0+cpu    从2.8.0+cu128变成了2.15.0+cpu    2.8.0+cu128 -> 2.15.0+cpu
# 2.8.0+cu128 and puts 2.7.1
_CHANGED = _form(
    rf"({_VERSION}{_LOCAL}?)[ \t]?(?:to|->|→|=>|变成了?|换成了?|变为|降到|到"
    rf"|(?:and|then) (?:put|install|bring|get)s?(?: in)?(?: an?)?(?: plain)?(?: torch)?)[ \t]?({_VERSION}{_LOCAL}?)"
)
# nvidia driver version: 450.51.06    driver 472.12    驱动512.95    driver version   : 580.95.05    at driver 550
_DRIVER = _form(r"(?:drivers?|驱动)(?:[^\n\d]{0,24}(?=\d{3}\.\d)|[ 是]{0,2}(?=[345]\d\d ))(\d{3}[\d.]{0,7}\b)(?![\w.])")
_PYTHON = (
    # python 3.13   python-3.10.6   python version: 3.12.4   python: 3.11.9   python3.13   3.14的python   cpython 3.12.8
    _form(
        r"(?<![\w.])c?python(?:[ _]version)?(?: \(sys\)| is|版本)?[ \t:=|\"v是为-]{0,12}"
        r"(3\.\d{1,2}(?:\.\d{1,2})?t?)(?:(?:a|b|rc)\d{1,2})?(?!\w|\.\d)"
    ),
    _form(r"(?<![\d.])(3\.\d{1,2}(?:\.\d{1,2})?)(?:版本?)?的 ?python"),
    # 3.10.14 | packaged by Anaconda, Inc. | (main, May  6 2024 …     3.12.3 (main, Nov  6 2025 …     (sys.version)
    _form(r"(?:^|[\s(])(3\.\d{1,2}\.\d{1,2}) (?:\| packaged|\((?:main|default|tags|heads))"),
    # program is tested with 3.10.6 Python, but you have 3.12.1.    requires a different Python: 3.12.3 not in '<3.12'
    _form(r"(?:python, but you have|requires a different python:) (3\.\d{1,2}(?:\.\d{1,2})?)"),
    # python用的整合包自带的3.10
    _form(
        r"(?<![\w.])python(?:(?!要求|需要|支持|至少|兼容|不)[\u4e00-\u9fff]){1,12}(3\.\d{1,2}(?:\.\d{1,2})?)(?!\w|\.\d)"
    ),
    # py3.10    rocm6.0_ubuntu20.04_py3.9_pytorch_2.1.1
    _form(r"(?<![a-z0-9.])py ?(3\.\d{1,2})(?![\d.])"),
)
# File "/home/u/venv/lib/python3.10/site-packages/…    C:\\Users\\u\\AppData\\Local\\Programs\\Python\\Python39\\lib
# _C.cp310-win_amd64.pyd    _C.cpython-312-x86_64-linux-gnu.so
_PATH = _form(
    r"[\\/]python3(?:\.(\d{1,2})[\\/]|(\d{1,2})\\lib\\)|\w\.cp(?:ython-)?3(\d{1,2})-[\w-]{3,30}\.(?:pyd|so)\b"
)
# using rocm 3.3.0    HIP SDK 5.7.1    HIP 6.2    ROCm 6.4.2.1    rocm/pytorch:rocm6.0_ubuntu20.04_py3.9
_ROCM = _form(r"(?<![\w/+-])(?:rocm[ -]?v?|hip (?:sdk )?|rocm/pytorch:rocm)(\d\.\d(?:\.\d)?)(?!\d)")
_BITS = _form(
    r"32[- ]?bit (?:runtime|\(intel\))|python3?\d{1,3}-32[\\/]|python \d\.\d{1,2}[\d.]{0,4} ?\(?32-?bit|32位的? ?python"
)
# ldd (Ubuntu GLIBC 2.35-0ubuntu3.8) 2.35    ldd (GNU libc) 2.28    Libc version: glibc-2.35
_GLIBC = _form(r"\bldd \([^()\n]{1,60}\) (2\.\d{1,2})\b|libc version: glibc-(2\.\d{1,2})")
# WSL environment detected.   Linux-5.15.167.4-microsoft-standard-WSL2-x86_64   /usr/lib/wsl/lib/libcuda.so.1   in wsl2
# Dropped Escape call with ulEscapeCode : 0x03007703     (of the library that reaches the card through Windows)
_WSL = _form(
    r"wsl environment detected|microsoft-standard|wsl2?-ubuntu|/usr/lib/wsl|/dev/dxg\b(?!.{0,20}no such)"
    r"|(?<![\w-])(?<!not )(?<!no )(?<!without )(?<!不是)(?<!不是 )(?<!没用)(?<!没有)wsl ?2?\b"
    r"|dropped escape call with ulescapecode"
)
# root@c0cb9814a02b:/app#    root@docker-desktop:~#
_CONTAINER = _form(r"\broot@(?:[0-9a-f]{12}|docker-desktop):[/~]")
# What stands before a version or a card that is wanted, not there.
_WANTED = _form(
    r"requires|requirement|depends|compat|tensilelibrary|supports?\b|install |info\W{1,2}installing |wheel|list of|need"
    r"|(?<!is_)available|built for|compiled (?:with|against)|used to build|at least|minimum|or newer|satisf|tried"
    r"|要求|需要|支持|兼容"
)


# pip install torch 装的 2.0.1+cpu    requires torch==2.5.1, but you have torch 2.7.0
_HAD = _form(r"(?:装的是?|装了|现在是|目前是|\b(?:you have|but the running)) ?$")
# (xFormers was built for:) PyTorch 2.9.0+cu128 with CUDA 1208 (you have 2.9.0+cpu)
_INSTEAD = _form(r"\b(python|pytorch) {1,4}\d[\w.+]{1,30}(?: with cuda \w{1,8})? \(you have ([\w.+]{1,30})\)")
# A friend with the same 6700 XT   室友是 4070   my colleague's 4090; but not: a friend gave me his 3060   朋友送的 3060
_OF_OTHERS = _form(
    r"(?:\b(?:friend|colleague|co-?worker|room ?mate|buddy|brother)(?:'?s)?\b"
    r"(?:(?!gave|sold|lent|built|got)[^\n.;,]){0,24}"
    r"|(?:室友|舍友|同事|同学|朋友|师兄|师弟|群友|别人|人家|[旧老](?:机器|电脑|主机))(?:(?![送给卖借帮淘收买])[^\n。；，,]){0,8})$"
)
_ENDS = _form(r"[.;!?][ \t]|[。；！？]")  # of sentences


@lru_cache(maxsize=2)  # a report's cards are looked for apart from its other facts
def read_mentioned(text: str) -> Machine:
    """Return what a lower-case text mentions of its machine, as a machine with those facts alone.

    What is wanted, required or somebody else's does not count. If it names several systems, none counts, unless one
    alone has its version beside it; WSL is Linux. For example: `File "/usr/lib/python3.12/json/__init__.py", line 346`
    and `my 4070 ti, torch 2.6.0+cpu, win 11`.
    """
    text = _INSTEAD.sub(r"\1 \2", text)
    wsl = True if _WSL.search(text) else None
    systems = [name for name, pattern in patterns("hints").items() if pattern.search(text)]
    if not systems:
        systems = [name for name, pattern in patterns("spoken").items() if _first(pattern, text)]
        systems = [name for name in systems if _is_with_version(patterns("spoken")[name], text)] or systems
    system: Any = "linux" if wsl else systems[0] if len(systems) == 1 else None
    found = _PATH.search(text)
    in_path = f"3.{next(filter(None, found.groups()))}" if found else None
    return Machine(
        os=system,
        wsl=wsl,
        container="docker" if _CONTAINER.search(text) else None,
        glibc=next((match[1] or match[2] for match in _GLIBC.finditer(text)), None),
        python=next(filter(None, (_first(form, text) for form in _PYTHON)), None) or in_path,
        python_bits=32 if _BITS.search(text) else None,
        nvidia_driver=_first(_DRIVER, text),
        gpus=_read_gpus(text),
        packages=_read_packages(text),
    )


def read_mentioned_rocm(text: str) -> str | None:
    """Return the version of ROCm that a lower-case text says is there; None for none or several."""
    versions = {match[1] for match in _find_present(_ROCM, text)}
    return versions.pop() if len(versions) == 1 else None


NEWEST_TORCH = 9  # a major version that no torch has reached


def _is_with_version(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a system is mentioned with its version ("windows 10"), which shows that it is there."""
    return any(
        found[0][-1].isdigit() or text[found.end() :][:2].strip()[:1].isdigit()
        for found in _find_present(pattern, text)
    )


def _read_packages(text: str) -> dict[str, str]:
    """Return the versions that a text mentions, by package; the first counts, but one with a build's tag before others.

    Of torch, it is the installed one, as `_find_installed_torch` says.
    """
    found: dict[str, str] = {}
    for match in _find_present(_PACKAGE, text):
        name = match[1].replace("_", "-").replace("pytorch", "torch")
        name = {"intel-extension-for-torch": "ipex"}.get(name, name)
        version = match[2]
        if name == "torch" and version.partition(".")[0].isdigit() and int(version.partition(".")[0]) > NEWEST_TORCH:
            continue  # used to compile PyTorch (12.8): CUDA's
        if "+" not in version and name == "torch" and (build := _BUILD_BESIDE.match(text, match.end())):
            version = f"{version}+{build[1]}"
        if "+" in version or name not in found:
            found[name] = version if "+" not in found.get(name, "") else found[name]
    if torch := _find_installed_torch(text, found.pop("torch", None)):
        found["torch"] = torch
    return found


def _find_installed_torch(text: str, named: str | None) -> str | None:
    """Return the installed torch: the one installed last, else last changed to, else stated first; None without any.

    Stated are builds, conda's packages and `named`, a version found otherwise, without removed ones. Of the same
    version, one with a build's tag is preferred.
    """
    installed = [match[1] for match in _INSTALLED.finditer(text)]
    removed = {match[1] for match in _REMOVED.finditer(text)}
    changed = list(_CHANGED.finditer(text))
    removed |= {match[1] for match in changed if match[1] != match[2]}
    builds = _find_builds(text)
    conda = [f"{match[1]}+{match[2].replace('cuda', 'cu').replace('.', '')}" for match in _CONDA.finditer(text)]
    after = [match[2] for match in changed if "+" in match[2]]
    stated = [version for version in (*builds, *conda, named) if version and version not in removed]
    versions = [*installed[-1:], *after[-1:], *stated]
    best = versions[0] if versions else None  # pip collects torch==2.0.1 and installs torch-2.0.1+cu118
    return next((version for version in versions if version.startswith(f"{best}+")), best)


def find_replaced_torch(text: str) -> tuple[str, str] | None:
    """Return the GPU build of PyTorch that was removed, and its replacement; None without both, or if both are CUDA's.

    If a text says of none that it was removed, the first and the last build that it names are taken. Also None if both
    have the same tag, such as "+xpu".
    """
    changed = list(_CHANGED.finditer(text))
    removed = [*_REMOVED.finditer(text), *changed]
    before = next((match[1] for match in removed if re.search(r"\+(?:cu|rocm|xpu)", match[1])), None)
    after = _find_installed_torch(text, None) or next((match[2] for match in changed), None)
    builds = _find_builds(text)
    kinds = [re.sub(r"[\d.]", "", build.partition("+")[2]) for build in builds]
    if not before and len(builds) > 1 and kinds[0] not in {"cpu", kinds[-1]}:
        before, after = builds[0], builds[-1]  # printed before an installation and after it
    if (
        before
        and after
        and ("+cu" not in after or "+cu" not in before)
        and after.partition("+")[2] != before.partition("+")[2]
    ):
        return before, after
    return None


def _find_builds(text: str) -> list[str]:
    """Return PyTorch's builds that a text names by tag (`2.7.0+cpu`), in its order; other packages' are skipped."""
    found = []
    for match in _find_present(_BUILD, text):
        owner = _OTHERS.search(text[max(0, match.start() - 40) : match.start()])
        if owner is None or owner[1] in {"torch", "pytorch"}:
            found.append(match[1])
    return found


# gfx1100;gfx1101;gfx1102    ['gfx900', 'gfx906', 'gfx942']: what a build holds code for, not what the machine has
_TARGETS = _form(r"gfx\w{3,5}['\"]?(?:[;, ] ?['\"]?gfx\w{3,5}['\"]?){2,40}")

# gfx1151     amd radeon 780m, gfx1100 (0x1100)     amdgpu_targets=gfx1100     gfx90a:sramecc+:xnack-     显卡gfx1201
TARGET = _form(r"\bgfx(?:9\d[0-9a-f]|1[0-2]\d\d)\b")

# What the patterns of bare numbers lean on: "my 3050 ti", "显卡3060", "3060显卡"
_LEADS = re.compile(
    r"^(?:(?:my|the|an?|get|got|with|have|own|using) |(?:[^\x00-\x7f]{1,3}|\+) ?)(?=\d|nvidia)"
    r"|(?<=\d) ?(?:gpu|card|[^\x00-\x7f]{1,3})$"
)


def _read_gpus(text: str) -> tuple[Gpu, ...]:
    """Return the GPUs that a text names; a target (gfx…) alone is one only if no GPU with it is named.

    One that is named twice counts once, by its longer name. More than eight are left out.
    """
    cards: dict[str, Gpu] = {}
    text = _TARGETS.sub(" ", text)
    for vendor, pattern in patterns("mentions").items():
        last, end = "", 0
        for match in _find_present(pattern, text):
            name = _LEADS.sub("", match[0]).strip()
            gfx = name if name.startswith("gfx") else None
            if gfx and last and not text[end : match.start()].strip(" ([,"):  # amd radeon rx 7600 (gfx1102)
                cards[last] = replace(cards[last], gfx=gfx)
            elif len(cards) < _MOST_GPUS:
                cards.setdefault(name, Gpu(vendor=Vendor(vendor), name=name, gfx=gfx))
                last, end = "" if gfx else name, match.end()
    bare = [name for name, gpu in cards.items() if gpu.gfx == name]
    targets = {identity.gfx for gpu in cards.values() if gpu.gfx != gpu.name and (identity := identify_gpu(gpu))}
    once = [name for name in cards if not any(other != name and other.endswith(f" {name}") for other in cards)]
    return tuple(cards[name] for name in once if name not in bare or name not in targets)


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    return next((found[1] if pattern.groups else found[0] for found in _find_present(pattern, text)), None)


def _find_present(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield a pattern's matches, without those that the words before them mark as wished for or somebody else's.

    At most 200 matches are looked at.
    """
    for count, found in enumerate(pattern.finditer(text)):
        if count == _MOST:
            return
        before = text[max(text.rfind("\n", 0, found.start()) + 1, found.start() - 200) : found.start()]
        if _OF_OTHERS.search(before):
            continue
        if _HAD.search(before) or not _WANTED.search(_ENDS.split(before)[-1]):
            yield found
