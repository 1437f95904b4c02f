"""What a machine is to wheels: its platform, Python and floors, or why no wheel fits; its GPUs and NVIDIA's driver."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from assistant.catalog import Catalog, GpuIdentity, Number, identify_gpu, number, vendor_of
from assistant.catalog.tables import Row
from assistant.i18n import Message, _
from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request

USUAL_PYTHON = "3.12"  # chosen: every build since torch 2.8 and all of AMD's have a wheel for it (catalogue of 2026-11)
_ARCHS = {"amd64": "x86_64", "x86_64": "x86_64", "x64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_NAMES = {
    ("linux", "x86_64"): "linux_x86_64",
    ("linux", "aarch64"): "linux_aarch64",
    ("windows", "x86_64"): "windows_amd64",
    ("windows", "aarch64"): "windows_arm64",
    ("macos", "x86_64"): "macos_x86_64",
    ("macos", "aarch64"): "macos_arm64",
}


# What os.name, sys.platform and platform.system() say (PEP 508).
_MARKERS = {
    "linux": {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux"},
    "windows": {"os_name": "nt", "sys_platform": "win32", "platform_system": "Windows"},
    "macos": {"os_name": "posix", "sys_platform": "darwin", "platform_system": "Darwin"},
}


class Refusal(NamedTuple):
    """Why no wheel at all fits, by its key and in words, and what would help."""

    key: str
    why: Message
    would_help: Message


class Target(NamedTuple):
    """A platform of the catalogue ("linux_x86_64"), with its Python ("3.12") and the tag of that ("312").

    () and None stand for what is not known, which excludes no wheel. `warnings` say what was assumed.
    """

    os: str
    platform: str
    python: str
    tag: str | None
    wsl: bool
    glibc: Number
    macos: Number
    windows_build: int | None
    warnings: tuple[Message, ...]

    def anywhere(self) -> Target:
        """Return the same platform with any Python and a new enough system."""
        return self._replace(tag=None, glibc=(), macos=(), windows_build=None)

    @property
    def markers(self) -> dict[str, str]:
        """The values of environment markers (PEP 508) on this platform; all others are those of the running machine."""
        system, machine = self.platform.split("_", 1)
        names = _MARKERS[self.os]
        minor = self.python.rstrip("t")
        return {
            **names,
            "platform_machine": machine if system != "windows" else machine.upper(),
            "python_version": minor,
            "python_full_version": f"{minor}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }

    @property
    def windows_driver(self) -> bool:
        """Whether the NVIDIA driver is that of Windows, as it is in WSL too."""
        return self.wsl or self.os == "windows"


@lru_cache(maxsize=256)
def python_tag(version: str) -> tuple[str, str]:
    """Return the minor version of a Python and its tag: ("3.12", "312") for "3.12.4", ("3.13t", "313t") for "3.13.2t".

    A pre-release such as "3.14.0rc1" or a "+" counts as its minor version. Raises `BadInput` for any other text.
    """
    match = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?(?:(?:rc|a|b)\d+)?\+?(t?)", version.strip())
    if not match:
        raise BadInput(
            _('"{version}" is not a Python version.', version=version), hint=_("Write it like 3.12 or 3.13t.")
        )
    major, minor, free = match.groups()
    return f"{major}.{minor}{free}", f"{major}{minor}{free}"


def find_target(machine: Machine, request: Request, catalog: Catalog) -> Target | Refusal:
    """Return the platform and Python to plan for, or why no wheel of torch fits them.

    The request's Python goes before the machine's. A system, processor or Python that is not given is assumed, with a
    warning in the target. Raises `BadInput` for a Python version that cannot be read.
    """
    warnings: list[Message] = []
    os = machine.os
    if os is None:
        os = "macos" if any(gpu.vendor is Vendor.APPLE for gpu in machine.gpus) else "linux"
        warnings.append(_("The operating system is not given; {os} was assumed.", "system-assumed", os=os))
    arch = _arch(machine, os, warnings)
    version = request.python or machine.python
    if not version:
        text = _("The Python version is not given; {python} was assumed.", "python-assumed", python=USUAL_PYTHON)
        warnings.append(text)
    python, tag = python_tag(version or USUAL_PYTHON)
    platform = _NAMES.get((os, arch), "")
    own = request.python in (None, machine.python)
    implementation = machine.python_implementation if own else None
    refusal = _refuse_system(machine, os, arch, platform) or _refuse_python(
        implementation, python, tag, platform, catalog
    )
    if refusal:
        return refusal
    return Target(
        os=os,
        platform=platform,
        python=python,
        tag=tag,
        wsl=bool(machine.wsl),
        glibc=_glibc(machine, catalog) if os == "linux" else (),
        macos=number(machine.os_version)[:2] if os == "macos" else (),
        windows_build=_windows_build(machine.os_version or "") if os == "windows" else None,
        warnings=tuple(warnings),
    )


def _arch(machine: Machine, os: str, warnings: list[Message]) -> str:
    """Return the processor that wheels must be for, such as "x86_64"; append what is assumed to `warnings`.

    Under Rosetta that is x86_64, with a warning, too. An unknown processor's name is returned as it is.
    """
    if machine.rosetta:
        text = _(
            "This Python is an Intel build that runs under Rosetta; a native arm64 Python gets newer torch and MPS.",
            "python-under-rosetta",
        )
        warnings.append(text)
        return "x86_64"
    if machine.arch is None:
        assumed = "aarch64" if os == "macos" else "x86_64"
        warnings.append(_("The processor is not given; {arch} was assumed.", "processor-assumed", arch=assumed))
        return assumed
    return _ARCHS.get(machine.arch.lower(), machine.arch)


def _refuse_system(machine: Machine, os: str, arch: str, platform: str) -> Refusal | None:
    """Return why no torch is built for this system and processor, whatever the Python version; None if one is."""
    if machine.python_bits == 32 or arch.lower() in {"x86", "i386", "i586", "i686", "win32"}:  # noqa: PLR2004 - bits
        return Refusal(
            "python-32bit",
            _("This Python is a 32-bit build, and PyTorch has 64-bit wheels only."),
            _("Use a 64-bit Python {python}.", python=USUAL_PYTHON),
        )
    if not platform:
        return Refusal(
            "no-wheel-for-system",
            _("PyTorch publishes no wheels for {os} on {arch}.", os=os, arch=arch),
            _("Build PyTorch from source, or use an x86_64 or arm64 machine."),
        )
    alpine = not machine.glibc and (machine.os_version or "").lower().startswith("alpine")
    if os == "linux" and (alpine or (machine.libc or "").lower().startswith("musl")):
        return Refusal(
            "libc-musl",
            _("This system uses musl instead of glibc, and PyTorch publishes no musllinux wheels."),
            _("Use a distribution with glibc, such as Debian, in a container or beside this system."),
        )
    return None


def _refuse_python(
    implementation: str | None, python: str, tag: str, platform: str, catalog: Catalog
) -> Refusal | None:
    """Return why no torch is built for this Python on a platform that has wheels; None if one is."""
    if implementation and implementation.lower() != "cpython":
        return Refusal(
            "python-not-cpython",
            _("This Python is {name}, and PyTorch has wheels for CPython only.", name=implementation),
            _("Use CPython {python}.", python=USUAL_PYTHON),
        )
    tags = catalog.pythons(platform)
    if tag in tags:
        return None
    newest = max((other for other in tags if not other.endswith("t")), key=lambda other: int(other[1:]))
    nearest = USUAL_PYTHON if USUAL_PYTHON.replace(".", "") in tags else f"{newest[0]}.{newest[1:]}"
    return Refusal(
        "no-wheel-for-system",
        _("No PyTorch release has a wheel for Python {python} on {platform}.", python=python, platform=platform),
        _("Use Python {python}.", python=nearest, option=f"--python {nearest}"),
    )


def _glibc(machine: Machine, catalog: Catalog) -> Number:
    """Return the glibc version by the machine's `glibc`, `libc` or, from a table, `os_version`; () when unknown."""
    libc = machine.libc or ""
    named = machine.glibc or (libc if libc.lower().startswith("glibc") else None)
    if named:
        return number(named)[:2]
    release = (machine.os_version or "").lower()
    version = re.search(r"\d+(?:\.\d+)?", release)
    for row in catalog.rows("systems.glibc"):
        if version and any(name in release for name in row.names):
            return number(row.versions.get(version[0]) or row.versions.get(version[0].partition(".")[0]))
    return ()


def _windows_build(version: str) -> int | None:
    """Return the build in "10.0.19045", "Windows 11 (22631)" …; 0 for all before Windows 10, None for unknown."""
    found = re.search(r"\b(?:10\.0\.)?(\d{5})\b", version)
    if found:
        return int(found[1])
    return 0 if re.search(r"\bwindows (7|8|8\.1|vista|xp)\b", version.lower()) else None


class Card(NamedTuple):
    """One GPU: `capability` and `gfx` from the machine's facts, else from the tables; `identity` None when unknown.

    `memory` is its own in GiB, None where it is unknown or shared with the processor.
    """

    vendor: Vendor
    name: str
    capability: Number
    gfx: str | None
    integrated: bool
    identity: GpuIdentity | None
    memory: float | None = None


def find_cards(machine: Machine) -> tuple[Card, ...]:
    """Return the GPUs of a machine, each completed from the identity tables."""
    return tuple(map(_card, machine.gpus))


@lru_cache(maxsize=8192)  # far above the kinds of cards that one fleet has
def _card(gpu: Gpu) -> Card:
    """Return a GPU as a card: by its own facts, else by the identity tables.

    If cards of its name have different compute capabilities, the highest is taken.
    """
    vendor = gpu.vendor
    if vendor in (Vendor.UNKNOWN, Vendor.OTHER) and gpu.pci_id:
        vendor = vendor_of(gpu.pci_id)
    needs = {Vendor.NVIDIA: not gpu.compute_capability, Vendor.AMD: not gpu.gfx or gpu.integrated is None}
    identity = identify_gpu(gpu) if needs.get(vendor, True) else None
    if vendor is Vendor.UNKNOWN and identity:
        vendor = identity.vendor
    stated = gpu.compute_capability or (identity and identity.compute_capability)
    capability = stated or (identity and next(reversed(identity.candidates), None)) or ""
    digits = number(capability)  # of "8.6", and of "sm_86" or "86" too
    # A name may hold the target, as "AMD Radeon 8060S (gfx1151)" does.
    named = re.search(r"\bgfx\d{3,4}[a-c]?\b", gpu.name or "")
    target = gpu.gfx or (identity and identity.gfx) or (named[0] if named else "")
    integrated = bool(identity and identity.integrated) if gpu.integrated is None else gpu.integrated
    return Card(
        vendor=vendor,
        name=gpu.name or (identity.name if identity else gpu.pci_id) or vendor.value,
        capability=(digits[0] // 10, digits[0] % 10) if len(digits) == 1 else digits,
        gfx=target.lower().partition(":")[0] or None,
        integrated=integrated,
        identity=identity,
        memory=None if integrated else gpu.vram_gb,
    )


_MAKERS = {
    Backend.CUDA: (Vendor.NVIDIA,),
    Backend.ROCM: (Vendor.AMD,),
    Backend.XPU: (Vendor.INTEL,),
    Backend.MPS: (Vendor.APPLE, Vendor.AMD),
    Backend.DIRECTML: (Vendor.AMD, Vendor.INTEL, Vendor.NVIDIA),
}
_MARKS = re.compile(r"\((?:R|C|TM)\)|^(?:NVIDIA|AMD|Intel)\b|\bGraphics$", re.IGNORECASE)
_LONGEST_NAME = 40  # chosen: characters that a tile of JupyterLab's launcher shows in two lines


def is_driven_by(card: Card, backend: Backend) -> bool:
    """Return whether a card is of a maker whose cards a backend drives."""
    return card.vendor in _MAKERS.get(backend, ())


def card_name(machine: Machine, backend: Backend) -> str:
    """Return the short name of the GPU that a backend computes on, a discrete one first; "" for none and for the CPU.

    "Intel(R) Arc(TM) B580 Graphics" is "Arc B580".
    """
    driven = (card for card in find_cards(machine) if is_driven_by(card, backend))
    card = min(driven, key=lambda card: card.integrated, default=None)  # a card of its own before the processor's
    return short_name(card) if card else ""


class KnownGpu(NamedTuple):
    """A GPU as people know it: its maker, its short name, and whether a backend drives cards of that maker."""

    gpu: Gpu
    vendor: Vendor
    name: str
    driven: bool


def known_gpus(machine: Machine, backend: Backend | None) -> tuple[KnownGpu, ...]:
    """Return all GPUs of a machine, equal ones once, and whether a backend drives them: none is driven without one."""
    cards = zip(machine.gpus, find_cards(machine), strict=True)
    known = (
        KnownGpu(gpu, card.vendor, short_name(card) or gpu.label, backend is not None and is_driven_by(card, backend))
        for gpu, card in cards
    )
    return tuple(dict.fromkeys(known))


def short_name(card: Card) -> str:
    """Return a GPU's name without maker and trademarks, cut to `_LONGEST_NAME` characters."""
    name = "".join(filter(str.isprintable, card.name))
    return " ".join(_MARKS.sub(" ", name).split())[:_LONGEST_NAME].strip()


class Driver(NamedTuple):
    """The NVIDIA driver: its version, the CUDA version that it speaks, and the obstacle if it is known not to be ready.

    Both are () if not known. `text` is the version to show, "CUDA 12.8" if only that is known, "" if neither is. The
    obstacle's own `text` says what it means, `help` what to do, `wsl_help` what to do in WSL where that differs.
    """

    version: Number
    api: Number
    obstacle: Row | None
    text: str = ""


def find_driver(machine: Machine, catalog: Catalog) -> Driver:
    """Return the NVIDIA driver by the machine's facts, else by nvidia-smi's text ("CUDA UMD Version" since 610).

    Its obstacle is what the driver's state, or else that text, says.
    """
    text = machine.nvidia_smi_output or ""
    cards = " ".join(gpu.driver or "" for gpu in machine.gpus if gpu.vendor is Vendor.NVIDIA)
    version = _nvidia_number(machine.nvidia_driver or "") or _version_after("Driver Version|KMD Version", text)
    version = version or _version_after("NVIDIA-SMI", text) or _first_version(cards) or _first_version(text)
    api = machine.cuda_driver_api or _version_after(r"CUDA(?: UMD)? Version", text)
    name = version or (api and f"CUDA {api}") or ""
    state = machine.nvidia_driver_state or ("nouveau" if "nouveau" in cards else "")
    state = state or (text.partition("|===")[0] if "Driver Version" in text else text)
    rows = (row for row in catalog.rows("cuda.states") if re.search(row.words, state, re.IGNORECASE))
    # A driver whose version is known is loaded, whatever else a text says is missing.
    obstacle = next((row for row in rows if not (name and row.key == "nvidia-missing")), None)
    return Driver(number(version), number(api), obstacle, name)


def _nvidia_number(text: str) -> str:
    """Return a text with Windows' driver numbers replaced by NVIDIA's own: 32.0.15.7652 becomes 576.52."""
    return re.sub(r"\b\d+\.\d+\.\d*(\d)\.(\d{2})(\d{2})\b", r"\1\2.\3", text)


def _first_version(text: str) -> str | None:
    found = re.search(r"\b\d{3}\.[\d.]+", _nvidia_number(text))
    return found[0] if found else None


def _version_after(label: str, text: str) -> str | None:
    found = re.search(rf"(?:{label})\s*:?\s*v?(\d[\d.]*)", text)
    return found[1] if found else None
