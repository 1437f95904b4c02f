"""Facts that a log states itself: versions, system, hardware; they fill what is not known otherwise."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import replace

if TYPE_CHECKING:
    from assistant.diagnose.log import Log

__all__ = ["facts_in", "merged"]

_SYSTEMS = {
    "windows": r"winerror|dll load failed|the specified (?:module|procedure|path) could not be found|系统找不到指定的"
    r"|\b[a-z]:\\\w[\w .-]{0,40}\\|win_amd64|\bwindows-1[01]-",
    "macos": r"macosx_\d|/users/\w{1,30}/|\bdarwin\b|macos-\d\d|mac os x|\bmps:0",
    "linux": r"/home/\w|manylinux|x86_64-linux-gnu|/usr/lib/|\.so(?:\.\d{1,3}){0,3}: cannot open|/dev/kfd|ubuntu \d\d",
}
_WSL = re.compile(r"wsl environment detected|microsoft-standard|wsl2?-ubuntu|/usr/lib/wsl|/dev/dxg\b(?!.{0,20}no such)")
_VERSION = r"(\d{1,3}\.\d{1,3}[\w.]{0,20}(?:\+[\w.]{1,20})?)"
_PACKAGES = {
    "torch": (
        rf"pytorch version:? {{0,4}}{_VERSION}",
        rf"\btorch==? ?{_VERSION}(?=[\s,;)]|$)(?!.{{0,20}}requirement)",
        rf"torch\.__version__\W{{1,4}}{_VERSION}",
        rf"\btorch:? (?:version:? )?{_VERSION}",
    ),
    "torchvision": (rf"\btorchvision(?:==|: | ){_VERSION}",),
    "torch-directml": (rf"\btorch-directml(?:==|: |-| ){_VERSION}",),
    "onnxruntime": (rf"\bonnxruntime(?:==|: | ){_VERSION}",),
    "onnxruntime-directml": (rf"\bonnxruntime[-_]directml(?:==|: |-| ){_VERSION}",),
    "onnxruntime-gpu": (rf"\bonnxruntime[-_]gpu(?:==|: |-| ){_VERSION}",),
    "ipex": (rf"ipex version:? {{0,4}}{_VERSION}", rf"intel[-_]extension[-_]for[-_]pytorch(?:==|: |-| ){_VERSION}"),
    "numpy": (rf"\bnumpy(?:==|: ){_VERSION}",),
}
_PYTHON = (
    r"python (?:version:? )?(3\.\d{1,2}(?:\.\d{1,2})?)",
    r"cpython-?(3\.\d{1,2})",
    r"[\\/]python(3\.\d{1,2})[\\/]",
)
_BITS = re.compile(r"32[- ]?bit (?:runtime|\(intel\))|python3?\d{1,3}-32[\\/]|python \d\.\d{1,2}[\d.]{0,4} ?\(?32-?bit")
_GPUS = {
    Vendor.NVIDIA: r"\b(?:[rg]tx|quadro|tesla|titan) ?(?:rtx )?[\w ]{0,10}\d{3,4}(?: ?ti| ?super)?",
    Vendor.AMD: r"\bradeon[\w() ]{0,12}(?:rx|pro|vii|vega)[\w ]{0,9}|\bgfx(?:8|9|1[0-2])[0-9a-f]{2,3}\b|\bmi\d{2,3}x\b",
    Vendor.INTEL: r"intel(?:\(r\))? (?:arc|iris|uhd|data center gpu)[\w() ]{0,20}|\barc a\d{3}\b",
    Vendor.APPLE: r"\bapple m[1-9](?: pro| max| ultra)?\b",
}
_CONTEXT = re.compile(
    r"requires|requirement|depends|compat|tensilelibrary|supports?\b|install |wheel|list of|available|need"
)


def facts_in(log: Log) -> Machine:
    """Read what a log says of its machine; a field stays None where it is silent or says two things."""
    text = log.text
    told = [name for name, pattern in _SYSTEMS.items() if re.search(pattern, text)]
    wsl = True if _WSL.search(text) else None
    system: Any = "linux" if wsl else told[0] if len(told) == 1 else None
    return Machine(
        os=system,
        wsl=wsl,
        python=_first(_PYTHON, text),
        python_bits=32 if _BITS.search(text) else None,
        gpus=tuple(_gpus(text)),
        packages={name: value for name, texts in _PACKAGES.items() if (value := _first(texts, text))},
    )


def merged(first: Machine, second: Machine) -> Machine:
    """Give the first machine's facts, and the second's where the first is silent."""
    changes: dict[str, Any] = {
        name: getattr(second, name)
        for name in (
            "os",
            "os_version",
            "arch",
            "wsl",
            "container",
            "python",
            "python_bits",
            "rosetta",
            "gpus",
            "nvidia_driver",
        )
        if getattr(first, name) in {None, ()}
    }
    if first.os and second.wsl and first.os != "linux":
        changes.pop("wsl", None)
    return replace(first, **changes, packages={**second.packages, **first.packages}, env={**second.env, **first.env})


def _first(patterns: tuple[str, ...], text: str) -> str | None:
    """Give the first match outside lines that speak of what is wanted rather than of what is there."""
    for pattern in patterns:
        for found in re.finditer(pattern, text):
            line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()][-200:]
            if not _CONTEXT.search(line):
                return found[1]
    return None


def _gpus(text: str) -> list[Gpu]:
    found: dict[str, Gpu] = {}
    for vendor, pattern in _GPUS.items():
        for match in re.finditer(pattern, text):
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()][-200:]
            if not _CONTEXT.search(line) and len(found) < 8:  # noqa: PLR2004 - more are a list, not a machine
                name = match[0].strip()
                found.setdefault(name, Gpu(vendor=vendor, name=name, gfx=name if name.startswith("gfx") else None))
    return list(found.values())
