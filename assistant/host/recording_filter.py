"""What a recording keeps of an answer: what detection's parsers read, and nothing else that a machine might say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from assistant.model.machine import Exchange
from assistant.model.record import replace

Keys = Mapping[str, "Keys | None"]  # of a JSON object, "*" for any; None keeps the value, a mapping goes on inside


def _keys(names: str) -> Keys:
    """Keep the values under these names, a space between them."""
    return dict.fromkeys(names.split())


_ADAPTER = _keys("DriverDate DriverDesc DriverVersion HardwareInformation.qwMemorySize MatchingDeviceId ProviderName")
_WINDOWS = _keys("CurrentBuild CurrentBuildNumber CurrentVersion DisplayVersion ProductName ReleaseId SystemRoot")
_PLATFORM = _keys(
    "system release version machine libc libc_version mac_version python implementation bits free_threaded"
    " executable base_executable prefix base_prefix build"
)
_NVML = {
    "driver": None,
    "cuda": None,
    "devices": _keys("name bus pci_id memory compute_capability"),
}
_DXGI = {"adapters": _keys("name pci_id revision memory shared_memory software remote d3d12")}
_ENVIRONMENT = _keys("NUMBER_OF_PROCESSORS OS PROCESSOR_ARCHITECTURE")
_RUNTIMES = _keys("Installed Major Minor Version")
# Answers that are JSON objects: the kind of the question, the pattern that its argument matches whole, what is kept.
_OBJECTS: tuple[tuple[str, str, Keys], ...] = (
    ("platform", "", _PLATFORM),
    ("server", "", _keys("executable")),
    ("memory", "", _keys("total available")),
    ("disk", ".*", _keys("free total")),
    ("packages", "", {"*": None}),
    ("kernels", "", {"*": _keys("program language works")}),
    ("nvml", "", _NVML),
    ("dxgi", "", _DXGI),
    ("registry", r".*\\Windows NT\\CurrentVersion", {"values": _WINDOWS, "keys": {}}),
    ("registry", r".*\\Control\\Class\\\{[\w-]+\}", {"values": _keys("Class"), "keys": {"*": _ADAPTER}}),
    ("registry", r".*\\Session Manager\\Environment", {"values": _ENVIRONMENT, "keys": {}}),
    ("registry", r".*\\VC\\Runtimes", {"values": {}, "keys": {"*": _RUNTIMES}}),
)
_NUMBER = r"[\w.+:-]{1,80}"
_PATH = r"[^\n]{1,400}"
# Answers that are text: the kind of the question, the pattern of its argument, and that of the lines that are kept.
# Reports of programs that are read as they are keep every line; "(?!)" keeps none.
TEXTS: tuple[tuple[str, str, str], ...] = (
    ("access", ".*", "(?!)"),
    ("link", ".*", _PATH),
    ("which", ".*", _PATH),
    ("file_version", ".*", _NUMBER),
    ("groups", "", "render|video|kfd|root|wheel|sudo|adm|docker"),
    ("names", "/dev/dri", r"(?:card|renderD)\d+|by-path"),
    ("names", "/lib", r"ld-musl-[\w.-]+|libc\.musl-[\w.-]+|apk|firmware"),
    ("names", ".*/topology/nodes", r"\d+"),
    ("pci", "", r"(?:DRIVER|MODALIAS|PCI_CLASS|PCI_ID|PCI_SLOT_NAME|PCI_SUBSYS_ID|REVISION)=.*|"),
    (
        "read",
        "/etc/os-release",
        r"(?:(?:PRETTY_)?NAME|(?:VARIANT_|VERSION_|BUILD_)?ID|ID_LIKE|VERSION|VERSION_CODENAME)=.*",
    ),
    ("read", "/proc/meminfo", r"Mem(?:Total|Free|Available):.*"),
    ("read", ".*/properties", r"(?!unique_id)[\w ]+"),
    ("read", "/proc/driver/nvidia/version|/etc/nv_tegra_release|/proc/device-tree/model", ".*"),
    ("read", "/sys/firmware/efi/efivars/SecureBoot-.*", ".*"),
    ("read", r".*/(?:version|memory\.max|memory\.limit_in_bytes|mem_info_vram_total)", _NUMBER),
    ("run", r"(?:/usr/lib/wsl/lib/)?nvidia-smi|rocminfo|sw_vers|/lib/ld-musl-[\w.-]+", ".*"),
    ("run", "system_profiler -json SPDisplaysDataType|amd-smi static .*|xpu-smi discovery .*", ".*"),
    ("run", "sysctl .*", r"(?:hw|sysctl|machdep)\.[\w.]+: .*"),
    ("run", "reg.exe query .*", rf"HKEY_.*|\s+(?:{'|'.join(map(re.escape, (*_ADAPTER, *_WINDOWS)))})\s.*|\s*"),
    ("variable", "(?:CUDA|HIP|ROCR|GPU|HSA|ONEAPI|ZE|DML|PYTORCH|NVIDIA|INFERENCE)_[A-Z_]+|container", ".*"),
    ("variable", "KUBERNETES_SERVICE_HOST", "(?!)"),
)


def reduced(said: Exchange) -> Exchange | None:
    """Return an answer with only what is read of it; None for a question that no parser is known to ask."""
    kind, argument, answer = said.ask[0], " ".join(said.ask[1:]), said.answer
    for known, pattern, keys in _OBJECTS:
        if kind == known and re.fullmatch(pattern, argument):
            return replace(said, answer=replace(answer, text=_object(answer.text, keys) if answer else ""))
    for known, pattern, line in TEXTS:
        if kind == known and re.fullmatch(pattern, argument):
            lines = answer.text.splitlines(keepends=True)
            kept = [one for one in lines if _compiled(line).fullmatch(one.rstrip("\r\n"))]
            return replace(said, answer=replace(answer, text="".join(kept)))
    return None


def _object(text: str, keys: Keys) -> str:
    """Return a JSON object with these keys alone; an empty one for another text."""
    try:
        return msgspec.json.encode(_kept(msgspec.json.decode(text), keys)).decode()
    except msgspec.DecodeError:
        return "{}"


def _kept(value: object, keys: Keys | None) -> object:
    if keys is None:
        return value
    if isinstance(value, list):
        return [_kept(item, keys) for item in value]
    if not isinstance(value, dict):
        return None
    known = {name: name if name in keys else "*" for name in value}
    return {name: _kept(item, keys[known[name]]) for name, item in value.items() if known[name] in keys}


_compiled = cache(re.compile)
