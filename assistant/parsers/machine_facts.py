"""Tells what the entries of a report say of the machine: its system, its drivers, Python and PyTorch's family."""

from __future__ import annotations

import re
from collections.abc import Iterable

from assistant.catalog.names import arch_of, system_of
from assistant.catalog.vocabulary import meaning
from assistant.parsers.entry import Entry
from assistant.parsers.meaning import gigabytes

_VERSION = r"\d{1,3}\.\d{1,3}[\w.+!]{0,60}"


_PACKAGES = re.compile(r"^([\w.-]{2,40})==(\S{1,80})$", re.MULTILINE)
FAMILY = re.compile(
    r"torch(?:vision|audio|-directml)?|pytorch|triton(?:-windows)?|xformers|numpy|onnx(?:runtime(?:-\w{2,12}){0,2})?"
    r"|torchcodec|bitsandbytes|flash[-_]attn|vllm|ctranslate2"
)


def packages_of(found: Iterable[Entry]) -> dict[str, str]:
    """Return the versions of PyTorch's family that entries tell; what the running torch says of itself counts most."""
    versions: dict[str, str] = {}
    for entry in found:
        pairs = {raw.strip(" #`*").lower(): value for _key, value, raw in entry.pairs}
        if pairs.get("name") and re.fullmatch(_VERSION, pairs.get("version", "")):  # pip show
            pairs[pairs["name"].lower()] = pairs["version"]
        for key, value, _raw in entry.pairs:
            told = meaning("machine", key)
            version = re.match(rf"v?({_VERSION})", value)
            if told and told[0] == "torch" and version and told[1] < _RUNNING:
                versions.setdefault("torch", version[1])
            for name, number in _PACKAGES.findall(value) if key == "packages" else ():
                versions.setdefault(name.lower(), number)
        versions |= {
            name: value
            for name, value in pairs.items()
            if FAMILY.fullmatch(name) and re.fullmatch(_VERSION, value) and name not in versions
        }
    if "pytorch" in versions:
        versions.setdefault("torch", versions["pytorch"])
    return {name: version for name, version in versions.items() if FAMILY.fullmatch(name) and name != "pytorch"}


_RUNNING = 3  # keys of the row "torch" that the running torch is named by


def facts_of(found: Iterable[Entry]) -> dict[str, object]:
    """Return the machine's facts that entries tell, named as in `Machine`; the first that is understood counts."""
    all_entries = list(found)
    versions = packages_of(all_entries)
    facts: dict[str, object] = {"packages": versions} if versions else {}
    numbers: list[str] = []
    for entry in all_entries:
        if dict(pairs := [(key, value) for key, value, _raw in entry.pairs]).get("name") == "python":  # conda list
            facts |= _read("python", dict(pairs).get("version", ""), "python", entry)
        for key, value in pairs:
            told = meaning("machine", key)
            if not told or not value:
                continue
            if told[0] == "os_number":
                numbers.append(value)
            for name, read in _read(told[0], value, key, entry).items():
                if read is not None:
                    facts.setdefault(name, read)
    if facts.get("os") == "windows":
        build = next((match for value in numbers if (match := re.search(r"\b(10\.0)\.(\d{5})\b", value))), None)
        name = str(facts.get("os_version", ""))
        if build and build[2] not in name:
            facts["os_version"] = f"{name} ({build[0]})".strip()
    return facts


_FORMS = {
    "nvidia_driver": re.compile(r"(?<![\w.])(\d{3}\.\d{2,3}(?:\.\d{1,3})?)(?![\w.])"),
    "cuda_driver_api": re.compile(r"^(\d{1,2}\.\d)(?![\w.])|^(\d\d)0(\d)0$"),  # 12070 as the driver's library counts
    "rocm_version": re.compile(r"^\(?(\d{1,2}(?:\.|, )\d{1,2}(?:\.\d(?!\d))?)"),
    "glibc": re.compile(r"glibc[- ]([\d.]{3,6})"),
    "python": re.compile(r"(?<![\d.])(3\.\d{1,2}(?:\.\d{1,2})?t?)(?:(?:a|b|rc)\d{0,2})?(?![\w.])"),
}


def _read(fact: str, value: str, key: str, entry: Entry) -> dict[str, object]:
    """Read one value of a fact; several facts may stand in it, such as system and architecture in a platform."""
    value = value[:200]
    if fact == "os":
        return _system(value, key)
    if fact == "memory_gb":
        return {fact: gigabytes(value) if re.search(r"\d ?[KMGT]i?B?\b|\d{8,}", value, re.IGNORECASE) else None}
    if fact in {"arch", "cpu"}:
        return {"arch": "arm64" if re.match(r"Apple M\d", value) else arch_of(value) if fact == "arch" else None}
    found = _FORMS[fact].search(value) if fact in _FORMS else None
    if not found or (key == "hip" and not entry.has("agent")):  # SD.Next's line of the device
        return {}
    bits = re.search(r"\b(32|64)[- ]bit", value) if fact == "python" else None
    number = ".".join(part for part in found.groups() if part)
    return {fact: number.replace(", ", "."), "python_bits": int(bits[1]) if bits else None}


def _system(value: str, key: str) -> dict[str, object]:
    guest, on_windows, _host = value.partition(" on Windows")  # neofetch: Ubuntu 22.04.5 LTS on Windows 10 x86_64
    in_wsl = bool(on_windows) and system_of(guest) == "linux"
    value = guest if in_wsl else value
    family = system_of(value)
    if family is None or (key == "systemversion" and family != "macos"):
        return {}
    detailed = key == "distro" or (re.search(r"[ -]\S{0,40}\d", value) and "=" not in value)
    name = re.sub(r"^Microsoft ", "", value) if family == "windows" else value
    kernel = "linux" in value.lower() and "-" in value
    return {
        "os": family,
        "os_version": name if detailed else None,
        "arch": arch_of(value),
        "wsl": True if in_wsl else "microsoft" in value.lower() if family == "linux" and kernel else None,
    }
