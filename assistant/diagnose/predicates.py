"""The questions that a rule may ask of a machine's facts; each answers yes, no, or None for unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from assistant.catalog import TorchWheel, has_code, identify_gpu, load_catalog, number
from assistant.catalog.companions import installed_of_clash
from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor

Verdict = bool | None


def _os(machine: Machine, systems: list[str]) -> Verdict:
    """Return whether the system is among `systems`: linux, windows, macos, native-linux (outside WSL), wsl (inside)."""
    if machine.os is None:
        apple = any(gpu.vendor is Vendor.APPLE for gpu in machine.gpus)
        return "macos" in systems if apple else True if machine.wsl and {"linux", "wsl"} & set(systems) else None
    if machine.os != "linux" or "linux" in systems:
        return machine.os in systems
    if not {"native-linux", "wsl"} & set(systems):
        return False
    if machine.wsl is None:
        return True if {"native-linux", "wsl"} <= set(systems) else None
    return ("wsl" if machine.wsl else "native-linux") in systems


def _vendor(machine: Machine, vendors: list[str]) -> Verdict:
    """Return whether a GPU's maker is among `vendors`; None if no GPU is known, or none with a known maker."""
    present = {gpu.vendor.value for gpu in machine.gpus} - {Vendor.UNKNOWN.value}
    if not present and any(gpu.vendor is Vendor.UNKNOWN for gpu in machine.gpus):
        return None
    return bool(present & set(vendors)) if present else None


def _gpu(machine: Machine, pattern: str) -> Verdict:
    """Return whether a pattern is in the GPUs' names, targets and PCI ids, joined by " + "; None if none is known."""
    texts = [f"{gpu.name or ''} {gpu.gfx or ''} {gpu.pci_id or ''}".lower() for gpu in machine.gpus]
    texts = list(dict.fromkeys(text for text in texts if text.strip() and "unstated" not in text))
    return bool(re.search(pattern, " + ".join(texts))) if texts else None


def _integrated(machine: Machine, expected: bool) -> Verdict:  # noqa: FBT001 - the rule's argument
    """Return whether a GPU is integrated (or, for False, is not); None if that is known of no GPU."""
    values = [gpu.integrated for gpu in machine.gpus if gpu.integrated is not None]
    return any(value == expected for value in values) if values else None


def _packages(machine: Machine, specifiers: dict[str, str]) -> Verdict:
    """Return whether each package fits: `*` any version, `>=2,<3` a range, `/x/` a pattern; None if one is not listed.

    False if one that is listed does not fit.
    """
    return _all_hold(_package_fits(machine, name, specifier) for name, specifier in specifiers.items())


def _all_hold(verdicts: Iterable[Verdict]) -> Verdict:
    """Return whether all hold: False if one does not, else None if one is unknown."""
    answers = list(verdicts)
    return False if False in answers else None if None in answers else True


def _package_fits(machine: Machine, name: str, specifier: str) -> Verdict:
    """Return whether a package's version fits a specifier (see `_packages`); None if it is not listed."""
    version = machine.packages.get(name)
    if version is None:
        return None
    if specifier.startswith("/"):
        return bool(re.search(specifier.strip("/"), version.lower()))
    return specifier == "*" or _is_within(version.partition("+")[0], specifier)


def _python(machine: Machine, specifier: str) -> Verdict:
    """Return whether the Python's version is within a specifier; None if it is unknown or no version."""
    return _is_within((machine.python or "").partition(" ")[0].rstrip("t"), specifier) if machine.python else None


def _is_within(version: str, specifier: str) -> Verdict:
    """Return whether a version is within a specifier; None if it is no version."""
    try:
        return SpecifierSet(specifier, prereleases=True).contains(Version(version))
    except InvalidVersion:
        return None


def _equals_attribute(name: str) -> Callable[[Machine, Any], Verdict]:
    """Return a predicate: whether an attribute of the machine has a value, None if it is None."""

    def predicate(machine: Machine, expected: object) -> Verdict:
        value = getattr(machine, name)
        return None if value is None else value == expected

    return predicate


def _attribute_matches(name: str) -> Callable[[Machine, str], Verdict]:
    """Return a predicate: whether a pattern is in an attribute's text in lower case, None if it is None."""

    def predicate(machine: Machine, pattern: str) -> Verdict:
        value = getattr(machine, name)
        return None if value is None else bool(re.search(pattern, str(value).lower()))

    return predicate


def installed_of(machine: Machine, names: list[str] | str) -> tuple[str, ...]:
    """Return the installed packages among `names`, or among those of the catalogue's clash that has the key `names`."""
    if isinstance(names, str):
        return installed_of_clash(names, machine.packages)
    return tuple(name for name in names if name in machine.packages)


def _are_installed(machine: Machine, condition: dict[str, Any]) -> Verdict:
    """Return whether `condition["least"]` or more of the packages `condition["of"]` are listed; never None."""
    return len(installed_of(machine, condition["of"])) >= int(condition["least"])


def _builds_differ(machine: Machine, names: list[str]) -> Verdict:
    """Return whether packages come from different indexes, by their local versions (`2.9.1+cu130`); never None."""
    versions = [machine.packages[name] for name in names if name in machine.packages]
    tags = {re.split(r"\.git|\.lw", version.partition("+")[2])[0] for version in versions if "+" in version}
    return len(tags) > 1


def _targets_differ(machine: Machine, minimum: int) -> Verdict:
    """Return whether AMD's GPUs have at least so many different targets (gfx…); None if none is known."""
    targets = {gpu.gfx for gpu in machine.gpus if gpu.vendor is Vendor.AMD and gpu.gfx}
    return len(targets) >= minimum if targets else None


def _attribute_within(name: str) -> Callable[[Machine, str], Verdict]:
    """Return a predicate: whether an attribute, read as a version, is within a specifier; None if it is unknown."""

    def predicate(machine: Machine, specifier: str) -> Verdict:
        value = getattr(machine, name)
        return None if value is None else _is_within(str(value), specifier)

    return predicate


def _driver_fits(machine: Machine, expected: bool) -> Verdict:  # noqa: FBT001 - the rule's argument
    """Return whether NVIDIA's driver runs (or, for False, does not run) torch's CUDA; None if one is unknown."""
    build = _installed_build(machine)
    driver = number(machine.nvidia_driver)
    minimum = (
        load_catalog().drivers.get((build.variant, machine.os == "windows" or bool(machine.wsl))) if build else None
    )
    return (driver >= minimum.least) == expected if minimum and minimum.least and driver else None


def _code_fits(machine: Machine, expected: bool) -> Verdict:  # noqa: FBT001 - the rule's argument
    """Return whether torch's build holds code for a GPU at least (or, for False, for none); None if that is unknown."""
    build = _installed_build(machine)
    if build is None or not (build.sm or build.gfx):
        return None
    identities = [identify_gpu(gpu) for gpu in machine.gpus]
    if build.gfx:
        targets = {
            gpu.gfx or (identity.gfx if identity else None)
            for gpu, identity in zip(machine.gpus, identities, strict=True)
        } - {None}
        return bool(targets & {*build.gfx}) == expected if targets else None
    capabilities = {
        gpu.compute_capability or (identity.compute_capability if identity else None)
        for gpu, identity in zip(machine.gpus, identities, strict=True)
    }
    numbers = [number(identity) for identity in capabilities if identity]
    return (
        any(has_code(build.sm, build.ptx, identity, alone=False) for identity in numbers) == expected
        if numbers
        else None
    )


def _installed_build(machine: Machine) -> TorchWheel | None:
    """Return the published build that is installed as torch; None if none is, or the catalogue lacks it."""
    version, _plus, tag = machine.packages.get("torch", "").partition("+")
    platform = {"windows": "windows_amd64", "macos": "macos_arm64"}.get(machine.os or "", "linux_x86_64")
    if platform == "linux_x86_64" and machine.arch in {"aarch64", "arm64"}:
        platform = "linux_aarch64"
    variant = tag or load_catalog().build_of(version, "pypi", platform)
    wheels = load_catalog().wheels(platform, None, variant) if version and variant else ()
    return next((wheel for wheel in wheels if wheel.version == version and wheel.variant == variant), None)


def _env_any(machine: Machine, patterns: dict[str, str]) -> Verdict:
    """Return whether at least one of the variables matches its pattern; None if none of them is listed."""
    answers = [verdict for verdict in _variables_match(machine, patterns) if verdict is not None]
    return any(answers) if answers else None


def _variables_match(machine: Machine, patterns: dict[str, str]) -> Iterator[Verdict]:
    """Yield for each variable whether its value matches its pattern; None for one that is not listed."""
    for name, pattern in patterns.items():
        yield bool(re.search(pattern, machine.env[name])) if name in machine.env else None


PREDICATES: dict[str, tuple[type, Callable[[Machine, Any], Verdict]]] = {
    "os": (list, _os),
    "os_version": (str, _attribute_matches("os_version")),
    "arch": (str, _attribute_matches("arch")),
    "vendor": (list, _vendor),
    "gpu": (str, _gpu),
    "gpus": (int, lambda machine, least: len(machine.gpus) >= least if machine.gpus else None),
    "integrated": (bool, _integrated),
    "packages": (dict, _packages),
    "python": (str, _python),
    "python_text": (str, _attribute_matches("python")),
    "python_bits": (int, _equals_attribute("python_bits")),
    "rosetta": (bool, _equals_attribute("rosetta")),
    "container": (str, _attribute_matches("container")),
    "driver": (str, _attribute_within("nvidia_driver")),
    "disk_free_gb": (str, _attribute_within("disk_free_gb")),
    "memory_gb": (str, _attribute_within("memory_gb")),
    "driver_fits": (bool, _driver_fits),
    "code_fits": (bool, _code_fits),
    "installed": (dict, _are_installed),
    "builds_differ": (list, _builds_differ),
    "targets": (int, _targets_differ),
    "env": (dict, lambda machine, wanted: _all_hold(_variables_match(machine, wanted))),
    "env_any": (dict, _env_any),
}


def evaluate(machine: Machine, facts: dict[str, Any]) -> dict[str, Verdict]:
    """Return the answers to a rule's questions about a machine, by the question's name; None is "unknown"."""
    return {name: PREDICATES[name][1](machine, argument) for name, argument in facts.items()}


def rule_file_error(where: str, reason: Text) -> BadInput:
    """Return the error for what is wrong in a file of rules; `where` names the file and the rule."""
    return BadInput(
        _("{where}: {reason}.", where=where, reason=reason),
        hint=_("Correct it there."),
    )


def check_facts(facts: dict[str, Any], where: str) -> None:
    """Raise `BadInput` for a question that does not exist, an argument of another kind, or a pattern that is wrong."""
    for name, argument in facts.items():
        if name not in PREDICATES:
            raise rule_file_error(
                where, _("there is no fact {name}; there are {names}", name=name, names=", ".join(PREDICATES))
            )
        kind = PREDICATES[name][0].__name__
        if not isinstance(argument, PREDICATES[name][0]):
            raise rule_file_error(
                where, _("the fact {name} wants a {kind}, not {value}", name=name, kind=kind, value=repr(argument))
            )
        try:
            evaluate(_all_known(argument), {name: argument})
        except (InvalidSpecifier, re.error, LookupError, TypeError, ValueError) as error:
            text = _("the fact {name} cannot be asked so: {reason}", name=name, reason=error)
            raise rule_file_error(where, text) from error


def _all_known(argument: object) -> Machine:
    """Return a machine with a value for each fact whose predicate reads its argument only if the fact is known."""
    named = dict.fromkeys(argument, "1") if isinstance(argument, dict) else {}
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
