"""Tells a system, an architecture or a vendor from the words that reports use for it."""

from __future__ import annotations

import re

from assistant.model.machine import Vendor

__all__ = ["arch_of", "field", "gib", "system_of", "vendor_of_name"]

_SYSTEMS = (
    ("windows", re.compile(r"\bwindows\b|^nt$|\bwin(?:32|64|10|11)\b|\b[A-Z]:\\|\bMSC v", re.IGNORECASE)),
    ("macos", re.compile(r"\bmac ?os\b|\bosx\b|\bos x\b|\bdarwin\b|^/(?:Users|Applications)/", re.IGNORECASE)),
    (
        "linux",
        re.compile(
            r"linux|/usr/|/lib/|\b(?:ubuntu|debian|fedora|centos|red hat|rhel|rocky|alma|arch|manjaro|gentoo|mint|"
            r"pop!_os|nixos|opensuse|suse|sles|steamos|endeavouros|kali|raspbian|alpine|void|slackware|mariner|photon|amzn|"
            r"glibc|zorin|elementary|neon|garuda|nobara|deepin|pardus|flatcar|euleros|openeuler|kylin|uos|uniontech|anolis|tencentos|parrot|solus|springdale)\b",
            re.IGNORECASE,
        ),
    ),
)
_ARCHITECTURES = (
    ("arm64", re.compile(r"\barm64\b", re.IGNORECASE)),
    ("aarch64", re.compile(r"\baarch64\b")),
    ("x86_64", re.compile(r"\bx86[_-]64\b|\bamd64\b|\bx64\b", re.IGNORECASE)),
    ("ppc64le", re.compile(r"\bppc64le\b")),
    ("x86", re.compile(r"\bi[3-6]86\b|\bx86\b")),
)
_VENDORS = (
    (Vendor.NVIDIA, re.compile(r"\b(?:nvidia|geforce|quadro|tesla|titan|jetson|[rg]tx)\b", re.IGNORECASE)),
    (Vendor.AMD, re.compile(r"\b(?:amd|ati|radeon|instinct|firepro)\b", re.IGNORECASE)),
    (Vendor.INTEL, re.compile(r"\bintel\b|\b(?:arc|iris|uhd)\b", re.IGNORECASE)),
    (Vendor.APPLE, re.compile(r"\bapple\b", re.IGNORECASE)),
    (Vendor.OTHER, re.compile(r"\b(?:qualcomm|adreno|mali|powervr|moore threads|zhaoxin)\b", re.IGNORECASE)),
)


def field(block: str, name: str) -> str:
    """Give what follows a name (a pattern) on its line: `Name: X`, `Name = X` or `Name   X`; "" for nothing."""
    found = re.search(rf"^[ \t]{{0,40}}{name}[ \t]{{0,80}}[:=]?[ \t]{{1,80}}(\S[^\n]{{0,100}})$", block, re.MULTILINE)
    return found[1].strip() if found else ""


def gib(mib: str | float | None) -> float | None:
    """Turn MiB into GiB; none and zero tell nothing."""
    return round(float(mib) / 1024, 1) if mib and float(mib) else None


def system_of(*texts: str) -> str | None:
    """Tell the system's family from the first text that names one."""
    return next((name for text in texts for name, pattern in _SYSTEMS if pattern.search(text)), None)


def arch_of(*texts: str) -> str | None:
    """Tell the processor architecture from the first text that names one."""
    return next((name for text in texts for name, pattern in _ARCHITECTURES if pattern.search(text)), None)


def vendor_of_name(name: str) -> Vendor:
    """Tell who made a GPU from the whole words of its name."""
    return next((vendor for vendor, pattern in _VENDORS if pattern.search(name)), Vendor.UNKNOWN)
