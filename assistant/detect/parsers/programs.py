"""Reads what programs say of the machine they run on: ComfyUI, SD.Next, YOLO, MMDetection, Lightning, pip."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assistant.detect.parsers.guess import arch_of, system_of, vendor_of_name
from assistant.model.machine import Gpu, Vendor
from assistant.model.record import Record

__all__ = ["ProgramReport", "program_report"]


class ProgramReport(Record, frozen=True):
    """What such a text tells; `facts` are named as in `Machine`."""

    facts: dict[str, object]
    gpus: tuple[Gpu, ...] = ()


_LEAST = 3  # facts that make a report of what may be mere prose
_MOST = 64


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.MULTILINE | re.IGNORECASE)


_IS = r"[ \t:=|\"]{1,40}"  # what stands between a name and its value
_VERSION = r"\d{1,3}\.\d{1,3}[\w.+!]{0,60}"
_SYSTEM = _any(
    rf"^[ \t\"]{{0,20}}(?:os|operating system|(?:python[ _]|sys\.)?platform|release){_IS}"
    r"(\S[^\n]{0,120}?)(?: \w+=|$)",
    r"^operating system\n(\w[^\n]{1,60})",
    r"\b(?:platform|system)=(\w{3,20})",
)
_PATH = _any(rf"^(?:arguments|[\w ]{{1,20}} path|python executable){_IS}(\S[^\n]{{0,120}})")
_ARCH = _any(r"^(?:architecture|processor|platform)[^\n]{1,120}", r"\barch=\w{2,20}")
_PYTHON = _any(
    r"\bpython(?:[ _]version)?(?: \(sys\)| is)?[ \t:=|\"-]{1,40}(?:version=)?v?(3\.\d{1,2}(?:\.\d{1,2})?t?)(?![\w.])"
)
_COMPILER = _any(r"\bpython[^\n]{0,80}(\[(?:MSC v|Clang|GCC)[^\n]{0,60})")
_TORCH = _any(
    rf"(?:^[ \t\"]{{0,20}}|INFO[ \t]{{1,9}})(?:py)?torch(?:[ _.]version)?(?: \([^)\n]{{1,20}}\))?{_IS}v?({_VERSION})",
    rf"(?<![\w.-])torch(?:-|==)({_VERSION})",
)
_DRIVER = _any(rf"\bdriver(?:[ _]version)?{_IS}(\d{{3}}\.\d{{2,3}}(?:\.\d{{1,3}})?)(?![\w.])")
_PACKAGE = _any(
    r"^[ \"]{0,20}(numpy|torch(?:vision|audio|-directml)?|triton(?:-windows)?|xformers|onnx(?:runtime(?:-\w{2,12})?)?)"
    rf"(?:==|[ \t]{{2,60}}|\"[ \t]{{0,40}}:[ \t]{{0,4}}\")({_VERSION})[ \t\",]{{0,60}}(?:$|pypi|<pip>|\w+_\d)"
)
_VENDOR = _any(r"^GPU vendor\n([^\n]{2,40})$")
_GFX = _any(r"\bagent=(gfx[0-9a-f]{3,4})\b")
# How programs name a card, best first; the first group that matched is its name.
_CARDS = (
    _any(r"\b(?:cuda|xpu):\d{1,2} \(?([^:(\n][^:\n]{2,80}?)(?:, \d{3,7}MiB\)|[ \t]:[ \t]|\)?$)"),
    _any(
        r"(?:^|\"|\\n)GPU[ \t]\d[\d,]{0,60}(?::|[ \t])[ \t]{0,60}([^\s\"][^\n\"\\]{2,80}?)"
        r"(?: \((?:arch=|UUID)[^\n]{0,60})?(?:$|\"|\\n)"
    ),
    _any(r"\bdevice=((?!cuda|cpu)[^=\n]{3,60}) n=\d"),
    _any(r"\bdetected GPU: ([^\n]{3,80}?) VRAM \d"),
    _any(r"^(?:GPU(?: type|\.name)?|Accelerator)[ \t:]{1,60}(\w[^\n]{2,80}?)(?:, \d{3,7} ?MiB)?$"),
    _any(r"^GPU:\n((?:\w[^\n:]{2,80}\n){1,16})"),
    _any(r"^GPU model\n(\w[^\n]{2,80})$"),
)
_MARKUP = _any(r"^[ \t]{0,40}(?:(?:[-#>|]{1,6}|\*)[ \t]{1,8}){0,3}")


def program_report(text: str) -> ProgramReport | None:
    """Read what a text tells in any of these manners; None where it is too little to be a report."""
    text = _MARKUP.sub("", text.replace("**", "").replace("`", "")).replace("\n\n", "\n")
    torch = ["".join(told) for told in _TORCH.findall(text)[:_MOST]]
    python, driver = _PYTHON.search(text), _DRIVER.search(text)
    packages = {name.lower(): version for name, version in _PACKAGE.findall(text)}
    if torch:  # pip collects torch==2.0.1 and installs torch-2.0.1+cu118
        packages["torch"] = next((told for told in torch if told.startswith(f"{torch[0]}+")), torch[0])
    gpus = _gpus(text)
    systems = ["".join(told).strip() for told in _SYSTEM.findall(text)[:_MOST]]
    family = system_of(*systems, *_COMPILER.findall(text)[:1], *_PATH.findall(text)[:3])
    arch = arch_of(*systems, *_ARCH.findall(text)[:3])
    facts: dict[str, object] = {
        "os": family,
        "os_version": next(
            (told for told in systems if family and system_of(told) == family and re.search("[ -]", told)), None
        ),
        "arch": arch,
        "wsl": True if family == "linux" and any("microsoft" in told.lower() for told in systems) else None,
        "python": python[1] if python else None,
        "nvidia_driver": driver[1] if driver else None,
    }
    told = [*filter(None, (family, arch, python, driver, gpus, _VENDOR.search(text))), *packages]
    if len(told) < _LEAST and len(packages) < _LEAST - 1:
        return None
    facts = {name: value for name, value in (facts | {"packages": packages or None}).items() if value is not None}
    return ProgramReport(facts=facts, gpus=gpus)


def _gpus(text: str) -> tuple[Gpu, ...]:
    """Read the cards in the first manner that names one; a card told in several lines alike is one."""
    form, gfx = _VENDOR.search(text), _GFX.search(text)
    maker = vendor_of_name(form[1]) if form else Vendor.UNKNOWN
    for pattern in _CARDS[-1:] if form else _CARDS:
        found = {match[0]: match for match in list(pattern.finditer(text))[:_MOST]}
        cards = [card for match in found.values() for card in _cards(match, maker, gfx[1] if gfx else None)]
        if cards:
            return tuple(cards)
    return ()


def _cards(match: re.Match[str], maker: Vendor, gfx: str | None) -> Iterator[Gpu]:
    """Give a card for each number before the name (`GPU 0,1: …`) or each line of a list; words of no maker are none."""
    numbers = match[0].partition(match[1])[0].count(",") + 1
    for name in match[1].strip().split("\n") * numbers:
        told = vendor_of_name(name)
        vendor = maker if told is Vendor.UNKNOWN else told
        if vendor is not Vendor.UNKNOWN:
            yield Gpu(vendor=vendor, name=name.strip(), gfx=gfx)
