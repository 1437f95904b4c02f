"""The questions that a rule may ask of a machine's facts; each answers yes, no, or None for unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from assistant.catalog import TorchWheel, has_code, identified, load_catalog, number
from assistant.catalog.companions import sharing
from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor

Verdict = bool | None


def _os(machine: Machine, wanted: list[str]) -> Verdict:
    """linux, windows, macos; `native-linux` is Linux outside WSL, `wsl` inside."""
    if machine.os is None:
        apple = any(gpu.vendor is Vendor.APPLE for gpu in machine.gpus)
        return "macos" in wanted if apple else True if machine.wsl and {"linux", "wsl"} & set(wanted) else None
    if machine.os != "linux" or "linux" in wanted:
        return machine.os in wanted
    if not {"native-linux", "wsl"} & set(wanted):
        return False
    if machine.wsl is None:
        return True if {"native-linux", "wsl"} <= set(wanted) else None
    return ("wsl" if machine.wsl else "native-linux") in wanted


def _vendor(machine: Machine, wanted: list[str]) -> Verdict:
    known = {gpu.vendor.value for gpu in machine.gpus} - {Vendor.UNKNOWN.value}
    if not known and any(gpu.vendor is Vendor.UNKNOWN for gpu in machine.gpus):
        return None
    return bool(known & set(wanted)) if known else None


def _gpu(machine: Machine, pattern: str) -> Verdict:
    """Look for a pattern in what is known of the GPUs, different ones joined by a plus sign."""
    texts = [f"{gpu.name or ''} {gpu.gfx or ''} {gpu.pci_id or ''}".lower() for gpu in machine.gpus]
    texts = list(dict.fromkeys(text for text in texts if text.strip() and "unstated" not in text))
    return bool(re.search(pattern, " + ".join(texts))) if texts else None


def _integrated(machine: Machine, wanted: bool) -> Verdict:  # noqa: FBT001 - the rule's argument
    known = [gpu.integrated for gpu in machine.gpus if gpu.integrated is not None]
    return any(value == wanted for value in known) if known else None


def _packages(machine: Machine, wanted: dict[str, str]) -> Verdict:
    """Each package fits: `*` any version, `>=2,<3` a range, `/regex/` of the whole version."""
    return _all(_package(machine, name, text) for name, text in wanted.items())


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    """Return whether all hold: one that does not outweighs one that is unknown."""
    known = list(verdicts)
    return False if False in known else None if None in known else True


def _package(machine: Machine, name: str, wanted: str) -> Verdict:
    version = machine.packages.get(name)
    if version is None:
        return None
    if wanted.startswith("/"):
        return bool(re.search(wanted.strip("/"), version.lower()))
    return wanted == "*" or _within(version.partition("+")[0], wanted)


def _python(machine: Machine, wanted: str) -> Verdict:
    return _within((machine.python or "").partition(" ")[0].rstrip("t"), wanted) if machine.python else None


def _within(version: str, wanted: str) -> Verdict:
    try:
        return SpecifierSet(wanted, prereleases=True).contains(Version(version))
    except InvalidVersion:
        return None


def _equals(name: str) -> Callable[[Machine, Any], Verdict]:
    def predicate(machine: Machine, wanted: object) -> Verdict:
        value = getattr(machine, name)
        return None if value is None else value == wanted

    return predicate


def _text(name: str) -> Callable[[Machine, str], Verdict]:
    def predicate(machine: Machine, pattern: str) -> Verdict:
        value = getattr(machine, name)
        return None if value is None else bool(re.search(pattern, str(value).lower()))

    return predicate


def installed_of(machine: Machine, names: list[str] | str) -> tuple[str, ...]:
    """Return which of some packages are there: those named, or those that a clash of the catalogue names by its key."""
    if isinstance(names, str):
        return sharing(names, machine.packages)
    return tuple(name for name in names if name in machine.packages)


def _installed(machine: Machine, wanted: dict[str, Any]) -> Verdict:
    """At least so many of these packages are there; a package that is not listed is taken for absent."""
    return len(installed_of(machine, wanted["of"])) >= int(wanted["least"])


def _builds_differ(machine: Machine, names: list[str]) -> Verdict:
    """Return whether packages come from different indexes, by the local parts of their versions (`2.9.1+cu130`)."""
    versions = [machine.packages[name] for name in names if name in machine.packages]
    tags = {re.split(r"\.git|\.lw", version.partition("+")[2])[0] for version in versions if "+" in version}
    return len(tags) > 1


def _targets(machine: Machine, least: int) -> Verdict:
    """AMD GPUs of at least so many different targets are there."""
    known = {gpu.gfx for gpu in machine.gpus if gpu.vendor is Vendor.AMD and gpu.gfx}
    return len(known) >= least if known else None


def _range(name: str) -> Callable[[Machine, str], Verdict]:
    def predicate(machine: Machine, wanted: str) -> Verdict:
        value = getattr(machine, name)
        return None if value is None else _within(str(value), wanted)

    return predicate


def _driver_fits(machine: Machine, wanted: bool) -> Verdict:  # noqa: FBT001 - the rule's argument
    """Return whether NVIDIA's driver runs the CUDA that torch was built with."""
    build = _build(machine)
    driver = number(machine.nvidia_driver)
    floor = load_catalog().drivers.get((build.variant, machine.os == "windows" or bool(machine.wsl))) if build else None
    return (driver >= floor.least) == wanted if floor and floor.least and driver else None


def _code_fits(machine: Machine, wanted: bool) -> Verdict:  # noqa: FBT001 - the rule's argument
    """Return whether torch's build holds code for one of the GPUs of its vendor, at least."""
    build = _build(machine)
    if build is None or not (build.sm or build.gfx):
        return None
    known = [identified(gpu) for gpu in machine.gpus]
    if build.gfx:
        targets = {gpu.gfx or (one.gfx if one else None) for gpu, one in zip(machine.gpus, known, strict=True)} - {None}
        return bool(targets & {*build.gfx}) == wanted if targets else None
    capabilities = {
        gpu.compute_capability or (one.compute_capability if one else None)
        for gpu, one in zip(machine.gpus, known, strict=True)
    }
    numbers = [number(one) for one in capabilities if one]
    return any(has_code(build.sm, build.ptx, one, alone=False) for one in numbers) == wanted if numbers else None


def _build(machine: Machine) -> TorchWheel | None:
    """Return the published build that is installed as torch, None where it is none or not known."""
    version, _plus, tag = machine.packages.get("torch", "").partition("+")
    platform = {"windows": "windows_amd64", "macos": "macos_arm64"}.get(machine.os or "", "linux_x86_64")
    if platform == "linux_x86_64" and machine.arch in {"aarch64", "arm64"}:
        platform = "linux_aarch64"
    variant = tag or load_catalog().build_of(version, "pypi", platform)
    wheels = load_catalog().wheels(platform, None, variant) if version and variant else ()
    return next((one for one in wheels if one.version == version and one.variant == variant), None)


def _env_any(machine: Machine, wanted: dict[str, str]) -> Verdict:
    """One of these variables, at least, is set to what its pattern describes."""
    known = [verdict for verdict in _variables(machine, wanted) if verdict is not None]
    return any(known) if known else None


def _variables(machine: Machine, wanted: dict[str, str]) -> Iterator[Verdict]:
    """Compare each variable with its pattern; one that is not listed is unknown."""
    for name, pattern in wanted.items():
        yield bool(re.search(pattern, machine.env[name])) if name in machine.env else None


PREDICATES: dict[str, tuple[type, Callable[[Machine, Any], Verdict]]] = {
    "os": (list, _os),
    "os_version": (str, _text("os_version")),
    "arch": (str, _text("arch")),
    "vendor": (list, _vendor),
    "gpu": (str, _gpu),
    "gpus": (int, lambda machine, least: len(machine.gpus) >= least if machine.gpus else None),
    "integrated": (bool, _integrated),
    "packages": (dict, _packages),
    "python": (str, _python),
    "python_text": (str, _text("python")),
    "python_bits": (int, _equals("python_bits")),
    "rosetta": (bool, _equals("rosetta")),
    "container": (str, _text("container")),
    "driver": (str, _range("nvidia_driver")),
    "disk_free_gb": (str, _range("disk_free_gb")),
    "memory_gb": (str, _range("memory_gb")),
    "driver_fits": (bool, _driver_fits),
    "code_fits": (bool, _code_fits),
    "installed": (dict, _installed),
    "builds_differ": (list, _builds_differ),
    "targets": (int, _targets),
    "env": (dict, lambda machine, wanted: _all(_variables(machine, wanted))),
    "env_any": (dict, _env_any),
}


def ask(machine: Machine, facts: dict[str, Any]) -> dict[str, Verdict]:
    """Answer each of a rule's questions about a machine, by the question's name."""
    return {name: PREDICATES[name][1](machine, wanted) for name, wanted in facts.items()}


def wrong_in(where: str, reason: Text) -> BadInput:
    """Return the error for a file of rules; `where` names the file and the rule."""
    return BadInput(
        _("{where}: {reason}.", where=where, reason=reason),
        hint=_("Correct it there."),
    )


def check_facts(facts: dict[str, Any], where: str) -> None:
    """Raise `BadInput` for a question that does not exist, an argument of another kind, or a pattern that is wrong."""
    for name, wanted in facts.items():
        if name not in PREDICATES:
            raise wrong_in(
                where, _("there is no fact {name}; there are {names}", name=name, names=", ".join(PREDICATES))
            )
        kind = PREDICATES[name][0].__name__
        if not isinstance(wanted, PREDICATES[name][0]):
            raise wrong_in(
                where, _("the fact {name} wants a {kind}, not {value}", name=name, kind=kind, value=repr(wanted))
            )
        try:
            ask(_all_known(wanted), {name: wanted})
        except (InvalidSpecifier, re.error, LookupError, TypeError, ValueError) as error:
            text = _("the fact {name} cannot be asked so: {reason}", name=name, reason=error)
            raise wrong_in(where, text) from error


def _all_known(wanted: object) -> Machine:
    """Return a machine of which every fact is known, so that a predicate really reads its argument."""
    named = dict.fromkeys(wanted, "1") if isinstance(wanted, dict) else {}
    return Machine(
        os_version="1",
        arch="1",
        container="1",
        nvidia_driver="1",
        python="3.12",
        gpus=(Gpu(name="x", vendor=Vendor.AMD),),
        packages=named,
        env=named,
    )
