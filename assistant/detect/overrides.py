"""Facts that the user sets by hand: which there are, their valid values, and how they override detected ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from assistant.i18n import Message, Text, _
from assistant.model.errors import BadInput
from assistant.model.machine import Detection, Evidence, Machine, Vendor
from assistant.model.record import from_plain

_GPU = r"gpus[.\[](\d{1,2})\]?\.(\w+)"


class Fact(NamedTuple):
    """A fact that can be set by hand: its name, what people call it, and a value as an example.

    Its value is one of `values` or, without any, a text that matches `pattern`, which `words` describe for people.
    """

    name: str
    label: Text
    example: str
    values: tuple[str, ...] = ()
    pattern: str = ".+"
    words: Message = _("a text")


_switch = partial(Fact, values=("true", "false"))
_version = partial(Fact, pattern=r"\d+(\.\d+){0,3}", words=_("a version number"))
_size = partial(Fact, pattern=r"(?!0+(\.0+)?$)\d{1,6}(\.\d{1,3})?", words=_("a size in GB, more than 0"))
_MACHINE = (
    Fact("os", _("System"), "linux", values=("linux", "windows", "macos")),
    Fact("os_version", _("Version of the system"), "Ubuntu 24.04"),
    Fact("arch", _("Kind of processor"), "x86_64"),
    _size("memory_gb", _("Memory in GB"), "32"),
    _size("disk_free_gb", _("Free disk in GB"), "120"),
    Fact(
        "python",
        _("Python"),
        "3.12.4",
        pattern=r"\d\.\d{1,2}(\.\d{1,2}((a|b|rc)\d{1,2})?)?t?",
        words=_("a Python version"),
    ),
    _version("nvidia_driver", _("NVIDIA driver"), "580.95.05"),
    _version("cuda_driver_api", _("CUDA of the driver"), "13.0"),
    _version("rocm_version", _("ROCm"), "7.2"),
    _version("glibc", _("glibc"), "2.39"),
    _switch("wsl", _("WSL"), "true"),
    Fact("container", _("Container"), "docker"),
)
_SELDOM = (  # for the command line alone
    Fact("libc", "libc", "musl 1.2.5"),
    Fact("python_implementation", "python_implementation", "CPython"),
    Fact("python_bits", "python_bits", "64", values=("32", "64")),
    _switch("rosetta", "rosetta", "true"),
    Fact("nvidia_driver_state", "nvidia_driver_state", "nouveau"),
    Fact("nvidia_smi_output", "nvidia_smi_output", "No devices were found"),
    _switch("rocm_tools", "rocm_tools", "true"),
)
_GROUPS = {"env", "packages"}  # of facts that have any name
_OF_GPU = (
    Fact("vendor", _("maker"), "amd", values=tuple(vendor.value for vendor in Vendor)),
    Fact("name", _("name"), "Radeon RX 7900 XTX"),
    _size("vram_gb", _("memory in GB"), "24"),
    Fact("gfx", _("ROCm target"), "gfx1100", pattern="gfx[0-9a-f]{3,5}", words=_("a ROCm target")),
    Fact(
        "compute_capability",
        _("compute capability"),
        "8.9",
        pattern=r"\d{1,2}\.\d",
        words=_("a compute capability"),
    ),
    Fact(
        "pci_id",
        _("PCI id"),
        "10de:2684",
        pattern="[0-9a-f]{4}:[0-9a-f]{4}",
        words=_("vendor and device in lower-case hexadecimal"),
    ),
    Fact("driver", _("driver"), "32.0.21013.1000"),
    _switch("integrated", _("part of the processor"), "true"),
)


def facts_to_set(machine: Machine) -> Iterator[Fact]:
    """Yield the facts that people set by hand: the machine's, then each GPU's; without a GPU, those of `gpus[0]`."""
    yield from _MACHINE
    for number, gpu in enumerate(machine.gpus or (None,)):
        for fact in _OF_GPU:
            label = Message("{gpu}: {fact}").format(gpu=gpu.label if gpu else _("GPU"), fact=fact.label)
            yield fact._replace(name=f"gpus[{number}].{fact.name}", label=label)


def check_fact(name: str, value: str) -> None:
    """Raise `BadInput` for a fact that does not exist, or a value that does not fit it; "", for unknown, fits any.

    Any `env.NAME` and `packages.NAME` exists.
    """
    group, _dot, key = name.partition(".")
    if key and group in _GROUPS:
        return
    gpu = re.fullmatch(_GPU, name)
    facts = {fact.name: fact for fact in (_OF_GPU if gpu else (*_MACHINE, *_SELDOM))}
    fact = facts.get(gpu[2] if gpu else name)
    if fact is None:
        raise BadInput(
            _("There is no fact called “{name}”.", name=name),
            hint=_("The facts are {names}.", names=", ".join((*(fact.name for fact in _MACHINE), "gpus[0].name"))),
        )
    if value and not (value in fact.values if fact.values else re.fullmatch(fact.pattern, value, re.DOTALL | re.ASCII)):
        expected = _("one of {values}", values=", ".join(fact.values)) if fact.values else fact.words
        raise BadInput(
            _("“{value}” does not fit {name}, which should be {wanted}.", value=value, name=name, wanted=expected),
            hint=_("Example: {value}", value=fact.example),
        )


def override_facts(detection: Detection, overrides: Mapping[str, str]) -> Detection:
    """Return a detection with facts set by name: `nvidia_driver`, `gpus[0].gfx` or `gpus.0.gfx`, `env.NAME`, and so on.

    "" makes a fact unknown, a value of `env` or `packages` empty; the number after the last GPU's adds one. The
    evidence says "you". Raises `BadInput` for a fact or a GPU that does not exist, and for a value that does not fit.
    """
    if not overrides:
        return detection
    overrides = {re.sub(_GPU, r"gpus[\1].\2", name): value for name, value in overrides.items()}
    facts: dict[str, Any] = msgspec.to_builtins(detection.machine)
    for name, text in overrides.items():
        check_fact(name, text)
        group, _dot, key = name.partition(".")
        gpu, gpus = re.fullmatch(_GPU, name), list(facts.get("gpus") or ())
        if gpu and int(gpu[1]) <= len(gpus):  # one behind the last adds a GPU
            index = int(gpu[1])
            facts_of_gpu = {**gpus[index]} if index < len(gpus) else {}
            facts_of_gpu.pop(gpu[2], None)
            facts["gpus"] = [*gpus[:index], facts_of_gpu | ({gpu[2]: text} if text else {}), *gpus[index + 1 :]]
        elif gpu:
            raise BadInput(
                _("“{name}” names a GPU that this machine does not have.", name=name),
                hint=_("The first GPU is gpus[0]; a new one takes the number after the last."),
            )
        elif key and group in _GROUPS:
            facts[group] = {**facts.get(group, {}), key: text}
        else:
            facts[name] = text or None
    machine = from_plain(facts, Machine, "facts", strict=False)
    yours = tuple(Evidence(fact=name, source="you", text=value) for name, value in overrides.items())
    others = tuple(item for item in machine.evidence if item.fact not in overrides)
    return msgspec.structs.replace(detection, machine=msgspec.structs.replace(machine, evidence=(*yours, *others)))
