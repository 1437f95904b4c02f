"""Reads what programs say of the machine they run on, in a report of their own or here and there in a log.

Samples without a link are typical forms; those with one are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from assistant.catalog.names import arch_of, patterns, system_of, vendor_of_name
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import Record, replace


class ProgramReport(Record, frozen=True):
    """Values read from such a text; `facts` are named as in `Machine`."""

    facts: dict[str, object]
    gpus: tuple[Gpu, ...] = ()


# Chosen, and tried on the pasted reports in tests/detect and the logs in tests/diagnose:
_LEAST = 3  # facts that make a report of what may be mere prose
_MOST = 64  # matches of one form that are looked at
_MOST_GPUS = 8  # more that a log mentions are a list, not a machine


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.MULTILINE | re.IGNORECASE)


_IS = r"[ \t:=|\"]{1,40}"  # what stands between a name and its value
_VERSION = r"\d{1,3}\.\d{1,3}[\w.+!]{0,60}"
_SYSTEM = _any(
    # OS: Microsoft Windows 11 Pro
    # `sys.platform: linux`
    rf"^[ \t\"]{{0,20}}(?:os|operating system|(?:python[ _]|sys\.)?platform|release){_IS}"
    r"(\S[^\n]{0,120}?)(?: \w+=|$)",
    # Operating System     (the answer stands on a line of its own: a form of GitHub's)
    r"^operating system\n(\w[^\n]{1,60})",
    # Platform: arch=AMD64 cpu=AMD64 Family 25 Model 80 Stepping 0, AuthenticAMD system=Windows
    #     release=Windows-10-10.0.22631-SP0 python=3.10.9      (https://github.com/vladmandic/sdnext/issues/3192)
    r"\b(?:platform|system)=(\w{3,20})",
)
# - **Arguments:** ComfyUI\main.py --windows-standalone-build
# (https://github.com/Lightricks/ComfyUI-LTXVideo/issues/337)
# ** Python executable: D:\ComfyUI\.venv\Scripts\python.exe
# (https://github.com/Comfy-Org/ComfyUI/issues/6843, without its time stamps)
_PATH = _any(rf"^(?:arguments|[\w ]{{1,20}} path|python executable){_IS}(\S[^\n]{{0,120}})")
# `Architecture: arm64`
# Platform: arch=AMD64 cpu=Intel64 Family 6 Model 151 Stepping 5, GenuineIntel system=Windows
# (https://github.com/vladmandic/sdnext/issues/3108)
_ARCH = _any(r"^(?:architecture|processor|platform)[^\n]{1,120}", r"\barch=\w{2,20}")
_PYTHON = (
    # - **Python Version:** 3.13.9 (tags/v3.13.9:8183fa5, Oct 14 2025, 14:09:13) [MSC v.1944 64 bit (AMD64)]
    # (https://github.com/Lightricks/ComfyUI-LTXVideo/issues/337)
    # Ultralytics 8.3.106 🚀 Python-3.13.3 torch-2.6.0+cu126 CUDA:0 (NVIDIA GeForce RTX 4080 SUPER, 16376MiB)
    # (https://github.com/ultralytics/ultralytics/issues/20123)
    _any(
        r"\bpython(?:[ _]version)?(?: \(sys\)| is)?[ \t:=|\"-]{1,40}(?:version=)?v?(3\.\d{1,2}(?:\.\d{1,2})?t?)"
        r"(?:(?:a|b|rc)\d{0,2})?(?![a-z0-9_]|\.\d)"
    ),
    # Using CPython 3.12.8
    _any(r"\bcpython[- ]?(3\.\d{1,2}(?:\.\d{1,2})?)"),
    #   File "/home/u/venv/lib/python3.10/site-packages/torch_directml/__init__.py", line 16, in <module>
    _any(r"[\\/]python(3\.\d{1,2})[\\/]"),
)
# ** Python version: 3.12.10 (main, Aug 14 2026, 22:43:31) [GCC 13.3.0]
# (https://github.com/Tavris1/ComfyUI-Easy-Install/issues/291)
_COMPILER = _any(r"\bpython[^\n]{0,80}(\[(?:MSC v|Clang|GCC)[^\n]{0,60})")
_BITS = _any(
    # [MSC v.1932 32 bit (Intel)]
    r"32[- ]?bit (?:runtime|\(intel\))",
    # c:\python37-32\python.exe
    r"python3?\d{1,3}-32[\\/]",
    # Python 3.8.2 32-bit
    r"python \d\.\d{1,2}[\d.]{0,4} ?\(?32-?bit",
)
_TORCH = _any(
    # pytorch version: 2.3.1+cu121
    # 17:21:03-277184 INFO     Torch 2.1.2+cu118     (https://github.com/bmaltais/kohya_ss/issues/2072)
    rf"(?:^[ \t\"]{{0,20}}|INFO[ \t]{{1,9}})(?:py)?torch(?:[ _.]version)?(?: \([^)\n]{{1,20}}\))?{_IS}v?({_VERSION})",
    # Successfully uninstalled torch-2.8.0
    # [pip3] torch==1.10.1
    rf"(?<![\w.-])torch(?:-|==)({_VERSION})",
)
_MENTIONED_TORCH = (
    # pytorch version: 2.6.0+xpu
    _any(rf"pytorch version:? {{0,4}}({_VERSION})"),
    # [pip3] torch==1.10.1
    _any(rf"\btorch==? ?({_VERSION})(?=[\s,;)]|$)(?!.{{0,20}}requirement)"),
    # >>> torch.__version__
    # '2.5.1+cpu'
    _any(rf"torch\.__version__\W{{1,4}}({_VERSION})"),
    # torch 2.8.0+xpu
    _any(rf"\btorch:? (?:version:? )?({_VERSION})"),
)
# numpy              1.26.4
# "onnxruntime-gpu": "1.22.0",
_PACKAGE = _any(
    r"^[ \"]{0,20}(numpy|torch(?:vision|audio|-directml)?|triton(?:-windows)?|xformers|onnx(?:runtime(?:-\w{2,12})?)?)"
    rf"(?:==|[ \t]{{2,60}}|\"[ \t]{{0,40}}:[ \t]{{0,4}}\")({_VERSION})[ \t\",]{{0,60}}(?:$|pypi|<pip>|\w+_\d)"
)
# Packages that decide a diagnosis, and how logs spell them: torchvision==0.20.1, torch-directml-0.2.5.dev240914
_SPELT = {
    "torchvision": _any(rf"\btorchvision(?:==|: | )({_VERSION})"),
    "torch-directml": _any(rf"\btorch-directml(?:==|: |-| )({_VERSION})"),
    "onnxruntime": _any(rf"\bonnxruntime(?:==|: | )({_VERSION})"),
    "onnxruntime-directml": _any(rf"\bonnxruntime[-_]directml(?:==|: |-| )({_VERSION})"),
    "onnxruntime-gpu": _any(rf"\bonnxruntime[-_]gpu(?:==|: |-| )({_VERSION})"),
    "ipex": _any(rf"\b(?:ipex version:? {{0,4}}|intel[-_]extension[-_]for[-_]pytorch(?:==|: |-| ))({_VERSION})"),
    "numpy": _any(rf"\bnumpy(?:==|: )({_VERSION})"),
}
# Nvidia driver version: 450.51.06
_DRIVER = _any(rf"\bdriver(?:[ _]version)?{_IS}(\d{{3}}\.\d{{2,3}}(?:\.\d{{1,3}})?)(?![\w.])")
# GPU vendor     (a form of GitHub's; the answer below it: AMD (ROCm))
_VENDOR = _any(r"^GPU vendor\n([^\n]{2,40})$")
# INFO     Device: device=AMD Radeon RX 6600 n=1 hip=7.2 agent=gfx1032     (SD.Next's form)
_GFX = _any(r"\bagent=(gfx[0-9a-f]{3,4})\b")
# How programs name a card, best first; the first group that matched is its name.
_CARDS = (
    # - **Name:** cuda:0 NVIDIA GeForce RTX 4070 : cudaMallocAsync
    # (https://github.com/Lightricks/ComfyUI-LTXVideo/issues/337)
    # Ultralytics 8.3.106 🚀 Python-3.13.3 torch-2.6.0+cu126 CUDA:0 (NVIDIA GeForce RTX 4080 SUPER, 16376MiB)
    # (https://github.com/ultralytics/ultralytics/issues/20123)
    _any(r"\b(?:cuda|xpu):\d{1,2} \(?([^:(\n][^:\n]{2,80}?)(?:, \d{3,7}MiB\)|[ \t]:[ \t]|\)?$)"),
    # GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-2f1e0f0c-aaaa-bbbb-cccc-1234567890ab)
    _any(
        r"(?:^|\"|\\n)GPU[ \t]\d[\d,]{0,60}(?::|[ \t])[ \t]{0,60}([^\s\"][^\n\"\\]{2,80}?)"
        r"(?: \((?:arch=|UUID)[^\n]{0,60})?(?:$|\"|\\n)"
    ),
    # 02:04:02-077631 INFO     Device: device=AMD Radeon RX 7800 XT [ZLUDA] n=1 arch=compute_37 cap=(8, 8) cuda=11.8
    # (https://github.com/AUTOMATIC1111/stable-diffusion-webui/issues/14946)
    _any(r"\bdevice=((?!cuda|cpu)[^=\n]{3,60}) n=\d"),
    # INFO     Torch detected GPU: NVIDIA GeForce RTX 4060 Laptop GPU VRAM 8188 Arch (8, 9) Cores 24
    # (https://github.com/bmaltais/kohya_ss/issues/2072)
    _any(r"\bdetected GPU: ([^\n]{3,80}?) VRAM \d"),
    # GPU: NVIDIA GeForce RTX 4070
    _any(r"^(?:GPU(?: type|\.name)?|Accelerator)[ \t:]{1,60}(\w[^\n]{2,80}?)(?:, \d{3,7} ?MiB)?$"),
    # GPU:
    #     NVIDIA A40
    #     NVIDIA A40
    _any(r"^GPU:\n((?:\w[^\n:]{2,80}\n){1,16})"),
    # GPU model     (a form of GitHub's; the answer below it: RTX 4070)
    _any(r"^GPU model\n(\w[^\n]{2,80})$"),
)
# WSL environment detected.
# Linux-5.15.167.4-microsoft-standard-WSL2-x86_64-with-glibc2.35
# /usr/lib/wsl/lib/libcuda.so.1
_WSL = _any(r"wsl environment detected|microsoft-standard|wsl2?-ubuntu|/usr/lib/wsl|/dev/dxg\b(?!.{0,20}no such)")
# A line that says this before a version or a card speaks of what is wanted, not of what is there.
_WANTED = re.compile(
    r"requires|requirement|depends|compat|tensilelibrary|supports?\b|install |wheel|list of|available|need",
    re.IGNORECASE,
)
# - **PyTorch Version:** 2.9.1+cu130     (https://github.com/Lightricks/ComfyUI-LTXVideo/issues/337)
_MARKUP = _any(r"^[ \t]{0,40}(?:(?:[-#>|]{1,6}|\*)[ \t]{1,8}){0,3}")


def program_report(text: str) -> ProgramReport | None:
    """Read what a text says in any of these forms; None where it is too little to be a report."""
    text = _MARKUP.sub("", text.replace("**", "").replace("`", "")).replace("\n\n", "\n")
    torch = ["".join(version) for version in _TORCH.findall(text)[:_MOST]]
    python, driver = _PYTHON[0].search(text), _DRIVER.search(text)
    packages = {name.lower(): version for name, version in _PACKAGE.findall(text)}
    if torch:  # pip collects torch==2.0.1 and installs torch-2.0.1+cu118
        packages["torch"] = next((version for version in torch if version.startswith(f"{torch[0]}+")), torch[0])
    gpus = _gpus(text)
    systems = ["".join(system).strip() for system in _SYSTEM.findall(text)[:_MOST]]
    family = system_of(*systems, *_COMPILER.findall(text)[:1], *_PATH.findall(text)[:3])
    arch = arch_of(*systems, *_ARCH.findall(text)[:3])
    seen = [*filter(None, (family, arch, python, driver, gpus, _VENDOR.search(text))), *packages]
    if len(seen) < _LEAST and len(packages) < _LEAST - 1:
        return None
    detailed = (system for system in systems if family and system_of(system) == family and re.search("[ -]", system))
    facts: dict[str, object] = {
        "os": family,
        "os_version": next(detailed, None),
        "arch": arch,
        "wsl": True if family == "linux" and any("microsoft" in system.lower() for system in systems) else None,
        "python": python[1] if python else None,
        "nvidia_driver": driver[1] if driver else None,
        "packages": packages or None,
    }
    return ProgramReport(facts={name: value for name, value in facts.items() if value is not None}, gpus=gpus)


def _gpus(text: str) -> tuple[Gpu, ...]:
    """Read the cards in the first form that names one; a card that several lines name alike is one."""
    form, gfx = _VENDOR.search(text), _GFX.search(text)
    maker = vendor_of_name(form[1]) if form else Vendor.UNKNOWN
    for pattern in _CARDS[-1:] if form else _CARDS:
        found = {match[0]: match for match in list(pattern.finditer(text))[:_MOST]}
        cards = [card for match in found.values() for card in _cards(match, maker, gfx[1] if gfx else None)]
        if cards:
            return tuple(cards)
    return ()


def _cards(match: re.Match[str], maker: Vendor, gfx: str | None) -> Iterator[Gpu]:
    """Yield a card per number before the name (`GPU 0,1: …`) or per line of a list; words of no maker are none."""
    numbers = match[0].partition(match[1])[0].count(",") + 1
    for name in match[1].strip().split("\n") * numbers:
        vendor = vendor_of_name(name)
        vendor = maker if vendor is Vendor.UNKNOWN else vendor
        if vendor is not Vendor.UNKNOWN:
            yield Gpu(vendor=vendor, name=name.strip(), gfx=gfx)


def mentioned(text: str) -> Machine:
    """Read what a lower-case log says of its machine in passing; a fact is None where it is silent or says two things.

    For example: `File "/usr/lib/python3.12/json/__init__.py", line 346` and `found no amd gpu, gfx1032 …`.
    """
    systems = [name for name, pattern in patterns("hints").items() if pattern.search(text)]
    wsl = True if _WSL.search(text) else None
    versions = {name: _first([spelt], text) for name, spelt in _SPELT.items()}
    versions["torch"] = _first(_MENTIONED_TORCH, text)
    system: Any = "linux" if wsl else systems[0] if len(systems) == 1 else None
    cards: dict[str, Gpu] = {}
    for vendor, pattern in patterns("mentions").items():
        last, end = "", 0
        for match in pattern.finditer(text):
            name = match[0].strip()
            if len(cards) < _MOST_GPUS and not _wanted(match):
                gfx = name if name.startswith("gfx") else None
                if gfx and last and not text[end : match.start()].strip(" ([,"):  # amd radeon rx 7600 (gfx1102)
                    cards[last] = replace(cards[last], gfx=gfx)
                    continue
                cards.setdefault(name, Gpu(vendor=Vendor(vendor), name=name, gfx=gfx))
                last, end = "" if gfx else name, match.end()
    return Machine(
        os=system,
        wsl=wsl,
        python=_first(_PYTHON, text),
        python_bits=32 if _BITS.search(text) else None,
        gpus=tuple(cards.values()),
        packages={name: version for name, version in versions.items() if version},
    )


def _first(forms: Iterable[re.Pattern[str]], text: str) -> str | None:
    """Return the first match of the first pattern that has one outside lines that speak of what is wanted."""
    matches = (found for pattern in forms for found in pattern.finditer(text))
    return next((found[1] for found in matches if not _wanted(found)), None)


def _wanted(found: re.Match[str]) -> bool:
    before = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
    return bool(_WANTED.search(before[-200:]))
