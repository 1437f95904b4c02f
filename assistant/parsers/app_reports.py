"""Reads what programs say of the machine they run on, in a report of their own or here and there in a log.

Samples without a link are typical forms; those with one are quoted.
"""

from __future__ import annotations

import re

from assistant.catalog.names import arch_of, system_of

# Chosen, and tried on the pasted reports in tests/detect and the logs in tests/diagnose:
_LEAST = 3  # facts that make a report of what may be mere prose
_MOST = 64  # matches of one form that are looked at


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
# - **Python Version:** 3.13.9 (tags/v3.13.9:8183fa5, Oct 14 2025, 14:09:13) [MSC v.1944 64 bit (AMD64)]
# (https://github.com/Lightricks/ComfyUI-LTXVideo/issues/337)
# Ultralytics 8.3.106 🚀 Python-3.13.3 torch-2.6.0+cu126 CUDA:0 (NVIDIA GeForce RTX 4080 SUPER, 16376MiB)
# (https://github.com/ultralytics/ultralytics/issues/20123)
_PYTHON = _any(
    r"(?<!build\.)\bpython(?:[ _]version)?(?: \(sys\)| is)?[ \t:=|\"-]{1,40}(?:version=)?v?(3\.\d{1,2}(?:\.\d{1,2})?t?)"
    r"(?:(?:a|b|rc)\d{0,2})?(?![a-z0-9_]|\.\d)"
)
# ** Python version: 3.12.10 (main, Aug 14 2026, 22:43:31) [GCC 13.3.0]
# (https://github.com/Tavris1/ComfyUI-Easy-Install/issues/291)
_COMPILER = _any(r"\bpython[^\n]{0,80}(\[(?:MSC v|Clang|GCC)[^\n]{0,60})")
_TORCH = _any(
    # pytorch version: 2.3.1+cu121
    # 17:21:03-277184 INFO     Torch 2.1.2+cu118     (https://github.com/bmaltais/kohya_ss/issues/2072)
    rf"(?:^[ \t\"]{{0,20}}|INFO[ \t]{{1,9}})(?:py)?torch(?:[ _.]version)?(?: \([^)\n]{{1,20}}\))?{_IS}v?({_VERSION})",
    # Successfully uninstalled torch-2.8.0
    # [pip3] torch==1.10.1
    rf"(?<![\w.-])torch(?:-|==)({_VERSION})",
)
# numpy              1.26.4
# "onnxruntime-gpu": "1.22.0",
_PACKAGE = _any(
    r"^[ \"]{0,20}(numpy|torch(?:vision|audio|-directml)?|triton(?:-windows)?|xformers|onnx(?:runtime(?:-\w{2,12})?)?)"
    rf"(?:==|[ \t]{{2,60}}|\"[ \t]{{0,40}}:[ \t]{{0,4}}\")({_VERSION})[ \t\",]{{0,60}}(?:$|pypi|<pip>|\w+_\d)"
)
# Nvidia driver version: 450.51.06
_DRIVER = _any(rf"\bdriver(?:[ _]version)?{_IS}(\d{{3}}\.\d{{2,3}}(?:\.\d{{1,3}})?)(?![\w.])")
# GPU vendor     (a form of GitHub's; the answer below it: AMD (ROCm))
_VENDOR = _any(r"^GPU vendor\n([^\n]{2,40})$")
# - **PyTorch Version:** 2.9.1+cu130     (https://github.com/Lightricks/ComfyUI-LTXVideo/issues/337)
_MARKUP = _any(r"^[ \t]{0,40}(?:(?:[-#>|]{1,6}|\*)[ \t]{1,8}){0,3}")


def program_report(text: str, *, known: int = 0) -> dict[str, object] | None:
    """Read what a text says in any of these forms; None where it is too little to be a report."""
    text = _MARKUP.sub("", text.replace("**", "").replace("`", "")).replace("\n\n", "\n")
    torch = ["".join(version) for version in _TORCH.findall(text)[:_MOST]]
    python, driver = _PYTHON.search(text), _DRIVER.search(text)
    packages = {name.lower(): version for name, version in _PACKAGE.findall(text)}
    if torch:  # pip collects torch==2.0.1 and installs torch-2.0.1+cu118
        packages["torch"] = next((version for version in torch if version.startswith(f"{torch[0]}+")), torch[0])
    systems = ["".join(system).strip(" |") for system in _SYSTEM.findall(text)[:_MOST]]
    family = system_of(*systems, *_COMPILER.findall(text)[:1], *_PATH.findall(text)[:3])
    arch = arch_of(*systems, *_ARCH.findall(text)[:3])
    seen = [*filter(None, (family, arch, python, driver, _VENDOR.search(text))), *packages]
    if len(seen) + known < _LEAST and len(packages) < _LEAST - 1:
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
    return {name: value for name, value in facts.items() if value is not None}
