"""Reads the output of `python -m torch.utils.collect_env`, alone or somewhere in a pasted issue."""

from __future__ import annotations

import re
from collections.abc import Iterable

from assistant.catalog.identity import find_architecture, find_system, pci_id, vendor_of_name
from assistant.model.machine import Gpu, Vendor
from assistant.parsers import Device, Reading, gib
from assistant.parsers.nvidia import find_smi_complaint

Dump = dict[str, list[str]]


_START = "pytorch version"
_GPUS = "gpu models and configuration"
_INTEL = ("intel gpu models detected", "intel gpu models onboard")
_LABELS = frozenset(
    (
        _START, "is debug build", "cuda used to build pytorch", "rocm used to build pytorch",
        "xpu used to build pytorch", "os", "gcc version", "clang version", "cmake version", "libc version",
        "python version", "python platform", "is cuda available", "cuda runtime version", "cuda_module_loading set to",
        _GPUS, "nvidia driver version", "cudnn version", "is xpu available", "intel gpu driver version", *_INTEL,
        "hip runtime version", "miopen runtime version", "is xnnpack available", "caching allocator config", "cpu",
        "versions of relevant libraries", "is mps available", "is npu available", "vllm version", "neuron sdk version",
        "vllm build flags", "gpu topology", "nccl version", "environment variables",
    )
)  # fmt: skip
# A dump whose first line is lost is recognised by these.
_TELLING = {_START, "cuda used to build pytorch", "python platform"}
# A label may be bold, a cell of a table, or say more in brackets: `OS (e.g., Linux)`.
_LINE = re.compile(r"([^:|(]{2,40})(?:\([^()]{0,30}\)[ \t*]*)?[:|](.*)", re.DOTALL)
_BARE = re.compile(r"(PyTorch version)[ \t]+(\d.*)", re.DOTALL | re.IGNORECASE)


def _line_start_pattern(least: int) -> re.Pattern[str]:
    """Return a pattern for where a line begins in a dump that lost its line ends, after `least` blanks or more."""
    labels = "|".join(sorted(map(re.escape, _LABELS), key=len, reverse=True))
    begins = rf"(?:{labels}):[ \t]|GPU \d{{1,3}}: |MIG \d|\[(?:pip3?|conda)\] "
    return re.compile(rf"(?<![ \t])[ \t]{{{least},}}(?![ \t])(?={begins})", re.IGNORECASE)


_GAP, _RUN_ON = _line_start_pattern(2), _line_start_pattern(1)
_UNTOLD = re.compile(r"(?:no cuda|could not collect|n/?a|none|unknown)?", re.IGNORECASE)
# IPEX's script lists properties there, and drivers right behind.
_NO_MODEL = re.compile(rf"(?:{_UNTOLD.pattern})$|MIG |\[\d|[^:]{{3,40}} version:", re.IGNORECASE)
# All three are chosen: fewer labels are prose, names and dumps are far shorter; the bounds keep a hostile text cheap.
_LEAST_LABELS = 4
_LONGEST_NAME = 300
_LONGEST_RUN_ON = 10**6


# PyTorch version: 1.10.1
# Is debug build: False
# CUDA used to build PyTorch: 11.3
# OS: Ubuntu 20.04.5 LTS (x86_64)
# Python version: 3.8.10 (default, Nov 14 2022, 12:59:47)  [GCC 9.4.0] (64-bit runtime)
# Python platform: Linux-5.15.0-46-generic-x86_64-with-glibc2.29
# GPU models and configuration: GPU 0: NVIDIA GeForce RTX 3090
# Nvidia driver version: 510.54
# Versions of relevant libraries:
# [pip3] torch==1.10.1
def read_collect_env(text: str) -> Reading | None:
    """Return the fullest dump in a text as facts and GPUs, whatever prose, quote marks and bullets are around it.

    If PyTorch saw no GPU, `absence` says so. Returns None for a text without a dump.
    """
    lower = text.lower()
    if not any(label in lower for label in _TELLING):
        return None
    text = _GAP.sub("\n", text)
    dump = _find_fullest_dump(text)
    if dump is None and len(text) < _LONGEST_RUN_ON:
        dump = _find_fullest_dump(_RUN_ON.sub("\n", text))
    if dump is None:
        return None
    facts = {name: value for name, value in _read_facts(dump).items() if value is not None and value != {}}
    gpus = _read_gpus(dump)
    unseen = "this PyTorch saw no GPU; the machine may have one" if _GPUS in dump and not gpus else ""
    return Reading(facts=facts, devices=tuple(Device(gpu=gpu) for gpu in gpus), absence=unseen)


def _find_fullest_dump(text: str) -> Dump | None:
    """Return the dump with the most labels in a text, as the lines under each label; None if there are too few.

    Labels are in lower case. Too few labels are mere prose. A dump begins at PyTorch's version or the system if that is
    named once more. What is before PyTorch's version counts only if the dump does not repeat it: vLLM's script names
    the system first.
    """
    fullest: Dump = {}
    dump: Dump = {}
    lines: list[str] = []
    stale: set[str] = set()
    for raw in text.splitlines():
        line = raw.strip(">*-`|# \t\ufeff")
        found = _LINE.match(line) if ":" in line or "|" in line else _BARE.match(line)
        label, tail = (found[1].rstrip("* `\t").lower(), found[2]) if found else ("", "")
        if label not in _LABELS:
            lines.append(line)
            continue
        if _START in dump and (label == _START or (label == "os" and "os" in dump and "os" not in stale)):
            fullest, dump, stale = max(fullest, dump, key=len), {}, set()
        if label == _START:
            stale = set(dump)
        lines = [tail.strip("*` \t")]
        if label in stale or label not in dump:
            stale.discard(label)
            dump[label] = lines
    fullest = max(fullest, dump, key=len)
    return fullest if fullest.keys() & _TELLING and len(fullest) >= _LEAST_LABELS else None


def _value(dump: Dump, label: str) -> str:
    """Return the first text after a label, "" if there is none or the tool did not know it."""
    first = next((line for line in dump.get(label, ()) if line), "")
    return "" if _UNTOLD.fullmatch(first) else first


def _read_facts(dump: Dump) -> dict[str, object]:
    """Return the facts of a dump, named as in `Machine`; None for what it does not have."""
    system, platform, python = (_value(dump, label) for label in ("os", "python platform", "python version"))
    hints = (_value(dump, label) for label in ("libc version", "cudnn version", "gcc version", "clang version"))
    family = find_system(platform, system, python, *dump.get("cudnn version", ())[:3], *hints)
    arch = find_architecture(platform, system, python, *dump.get("cpu", ())[:4])
    version = re.search(r"\d{1,2}\.\d{1,3}(?:\.\d{1,3})?(?:(?:a|b|rc)\d{1,3})?t?(?![\w.])", python)
    free = version and "free-threading" in python and not version[0].endswith("t")
    bits = re.search(r"(\d\d)-bit runtime", python)
    glibc = re.search(r"glibc-([\d.]{1,10})", _value(dump, "libc version"))
    driver = re.search(r"\d{1,4}(?:\.\d{1,3}){1,5}", _value(dump, "nvidia driver version"))
    rocm = re.match(r"\d{1,2}\.\d{1,2}", _value(dump, "rocm used to build pytorch"))
    return {
        "os": family,
        "os_version": system or None,
        "arch": arch,
        "wsl": "microsoft" in platform.lower() if "-" in platform else None,
        "python": f"{version[0]}{'t' if free else ''}" if version else None,
        "python_bits": int(bits[1]) if bits else None,
        "rosetta": True if family == "macos" and arch == "x86_64" and _apple_chip(dump) else None,
        "glibc": glibc[1] if glibc else None,
        "nvidia_driver": driver[0] if driver else None,
        "nvidia_driver_state": find_smi_complaint(" ".join(dump.get(_GPUS, ())[:2])),
        "rocm_version": rocm[0] if rocm else None,
        "packages": _read_packages(dump),
    }


def _apple_chip(dump: Dump) -> str | None:
    return next((line for line in dump.get("cpu", ()) if re.fullmatch(r"Apple M\d{1,2}(?: \w{2,5})?", line)), None)


_PACKAGE = re.compile(
    r"^\[(?:pip3?|conda)\][ \t]{1,8}([A-Za-z][\w.-]{0,60})(?:==|[ \t]{1,60}\(?)([0-9][\w.+!-]{0,80})\)?", re.MULTILINE
)


def _read_packages(dump: Dump) -> dict[str, str]:
    """Return the versions of the listed packages by name; torch's is the one that it printed itself, if it did.

    Of a package listed twice the first counts. conda's "pytorch" is taken for torch if that is not listed.
    """
    listed = _PACKAGE.findall("\n".join(dump.get("versions of relevant libraries", ())))
    versions: dict[str, str] = {}
    for name, version in listed:
        versions.setdefault(name.lower().replace("_", "-"), version)
    running = re.match(r"v?(\d[\w.+-]{0,80})", _value(dump, _START))
    torch = running[1] if running else versions.get("torch") or versions.get("pytorch")
    return {**versions, "torch": torch} if torch else versions


def _read_gpus(dump: Dump) -> tuple[Gpu, ...]:
    """Return the GPUs of the lines `GPU 0: …`, or else of the first line, then Intel's GPUs, then Apple's chip.

    Slices (MIG) and error messages are not GPUs.
    """
    maker = Vendor.AMD if _value(dump, "rocm used to build pytorch") else Vendor.NVIDIA
    lines = [line for line in dump.get(_GPUS, ()) if line]
    many = [line for line in lines if re.match(r"GPU \d{1,3}: ", line)]
    first = [line for line in lines[:1] if not _NO_MODEL.match(line) and not find_smi_complaint(line)]
    named = [_read_gpu_line(line, maker) for line in many or first]
    listed = [dump.get(label, []) for label in _INTEL] + [[line for line in lines if line[:1] == "["]]
    intel = max([list(_read_intel_gpus(each)) for each in listed], key=len)
    chip = _apple_chip(dump)
    return (*named, *intel, *([Gpu(vendor=Vendor.APPLE, name=chip, integrated=True)] if chip else []))


def _read_gpu_line(line: str, vendor: Vendor) -> Gpu:
    """Return the GPU in a line: `GPU 0: NVIDIA GeForce RTX 3090` or `AMD Radeon RX 7900 XTX (gfx1100)`.

    `vendor` counts only if the name tells none. A name that was cut off ("...") becomes None.
    """
    name = re.sub(r"^GPU \d{1,3}: *|\(UUID: [^)]{0,80}\)", "", line[:_LONGEST_NAME]).strip()
    gfx = re.search(r"\((gfx[0-9a-f]{3,5})[^)]{0,40}\)$", name)
    named = vendor_of_name(name)
    return Gpu(
        vendor=vendor if named is Vendor.UNKNOWN else named,
        name=None if name.endswith("...") else (name[: gfx.start()] if gfx else name).strip() or None,
        gfx=gfx[1] if gfx else None,
    )


def _read_intel_gpus(lines: Iterable[str]) -> Iterable[Gpu]:
    """Yield the GPUs in lines such as `_XpuDeviceProperties(name='…', device_id=0xE211, total_memory=24480MB, …)`.

    A line that begins with "Intel" is a bare name; other lines are skipped.
    """
    for line in lines:
        name = re.search(r"\bname='([^']{1,100})'", line)
        device = re.search(r"\bdevice_id=0x([0-9A-Fa-f]{1,4})\b", line)
        memory = re.search(r"\btotal_memory=(\d{1,8})MB", line)
        if name or re.match(r"Intel\b", line):
            yield Gpu(
                vendor=Vendor.INTEL,
                name=name[1] if name else line,
                pci_id=pci_id(Vendor.INTEL, device[1] if device else None),
                vram_gb=gib(memory[1]) if memory else None,
            )
