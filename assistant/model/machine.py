"""A machine as one record: what `detect --json` prints and every other command takes."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from assistant.model.finding import Finding
from assistant.model.record import Record

AnswerStatus = Literal["ok", "missing", "denied", "timeout", "failed", "unrecorded"]


# A text on one line; a name of megabytes is no name, and would be looked at for a minute.
Line = Annotated[str, msgspec.Meta(max_length=1000)]


class Vendor(Enum):
    """Who made the GPU; `other` is a known maker that is none of these four, `unknown` could not be determined."""

    NVIDIA = "nvidia"
    AMD = "amd"
    INTEL = "intel"
    APPLE = "apple"
    OTHER = "other"
    UNKNOWN = "unknown"


class Evidence(Record, frozen=True):
    """The source of a fact, a command, a file or "you" for the user, and the text that was read there."""

    fact: str
    source: str
    text: str = ""


class Gpu(Record, frozen=True):
    """One graphics or compute adapter; `vram_gb` in GiB, `pci_id` as vendor:device in lower-case hex."""

    vendor: Vendor = Vendor.UNKNOWN
    name: Line | None = None
    pci_id: Line | None = None
    vram_gb: float | None = None
    compute_capability: Line | None = None
    gfx: Line | None = None
    integrated: bool | None = None
    driver: Line | None = None

    @property
    def label(self) -> str:
        """Its name, else its maker with the PCI id."""
        return self.name or " ".join(filter(None, (self.vendor.value, self.pci_id)))


class Machine(Record, frozen=True):
    """The facts of one machine; None means unknown, which is not the same as absent."""

    in_answers: ClassVar = ("schema",)

    schema: Literal[1] = 1
    os: Literal["linux", "windows", "macos"] | None = None
    os_version: Line | None = None
    arch: Line | None = None
    wsl: bool | None = None
    container: Line | None = None
    glibc: Line | None = None
    libc: Line | None = None
    python: Line | None = None
    python_implementation: Line | None = None
    python_bits: int | None = None
    rosetta: bool | None = None
    memory_gb: float | None = None
    disk_free_gb: float | None = None
    gpus: tuple[Gpu, ...] = ()
    nvidia_driver: Line | None = None
    cuda_driver_api: Line | None = None
    nvidia_driver_state: str | None = None
    nvidia_smi_output: str | None = None
    rocm_version: Line | None = None
    rocm_tools: bool | None = None
    packages: dict[str, str] = {}
    env: dict[str, str] = {}
    evidence: tuple[Evidence, ...] = ()


class Detection(Record, frozen=True):
    """The result of detection: the machine's facts, and findings about them."""

    machine: Machine
    findings: tuple[Finding, ...] = ()


class Answer(Record, frozen=True):
    """A machine's raw answer to one question: the text read, or why there is none.

    "missing" means that it does not exist; "denied", "timeout", "failed" and "unrecorded" mean that this is unknown.
    `code` is a command's exit status: a command that ended with another than 0 is "failed" and keeps its output.
    """

    status: AnswerStatus = "ok"
    text: str = ""
    code: int | None = None

    def __bool__(self) -> bool:
        return self.status == "ok"


class Exchange(Record, frozen=True):
    """One question to a machine (`ask`: its kind, then its arguments) and the raw answer."""

    ask: tuple[str, ...]
    answer: Answer


class Expected(Record, frozen=True):
    """What a replay must give: facts of the machine, the keys of all findings, and values of the best plan.

    Only the fields in `machine` and `plan` are compared; `plan` is null if nothing fits. What is left out is not
    compared.
    """

    machine: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    findings: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    plan: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class Recording(Record, frozen=True, omit_defaults=False):
    """A recorded machine: the questions asked of it, and its answers.

    `origin` is "recorded" (on real hardware) or "composed" (from published output, see `source`).
    """

    schema: Literal[1] = 1
    label: str = ""
    origin: Literal["recorded", "composed"] = "recorded"
    source: str = ""
    date: str = ""
    said: tuple[Exchange, ...] = ()
    expect: Expected = Expected()
