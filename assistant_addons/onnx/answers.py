"""What comes of the work on a model; neither NumPy nor onnx is imported here."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from assistant.api import Message, Record, Text, _
from assistant.api.records import Finding

Provider = Literal["dml", "cpu"]
TITLES: dict[Provider, Text] = {"dml": "DirectML", "cpu": _("ONNX Runtime's CPU provider")}
SHAPES = "shapes"  # the key of the reason for nodes that run on the CPU by choice, and cost nothing there
CHECK_SECONDS, CONVERT_SECONDS, TRY_SECONDS = 600.0, 3600.0, 300.0  # how long each may take unless the user says


class Placed(Record, frozen=True):
    """Where a node runs: "dml", "cpu" or "none"; `why` is empty where nothing needs saying."""

    name: str
    op: str
    device: str
    why: Text


class Checked(Record, frozen=True):
    """The answer for one provider: "dml" or "cpu"."""

    provider: Provider
    nodes: tuple[Placed, ...]
    findings: tuple[Finding, ...]
    verdict: Message


def default_output(source: Path) -> Path:
    """Return where the result of a conversion lies unless another place is asked for."""
    return source.with_name(f"{source.stem}.dml.onnx")


class Change(Record, frozen=True):
    """One change, or one thing left as it was and why: `kind` is its sort, `what` an operation, `why` a sentence."""

    kind: Literal["ir", "opset", "structure", "fp16", "kept"]
    what: Text
    why: Text = ""


class Conversion(Record, frozen=True, omit_defaults=False):
    """How a file was converted: how many operations compute in FP16 now, and why no run proved it ("obstacle"), if so.

    `loaded` is whether ONNX Runtime loads the result with its own settings, None where there is none, or a limit ended
    the attempt.
    """

    source: str
    output: str
    changes: tuple[Change, ...]
    converted: int
    obstacle: Literal["", "missing", "size", "run", "random"]
    opset: int
    ir_version: int
    seconds: float
    loaded: bool | None = None


class Run(Record, frozen=True):
    """One child's run: `placement` counts operators by provider; `error` is what the runtime said, "" when it ran."""

    provider: str = ""
    load_seconds: float = 0.0
    first_seconds: float = 0.0
    seconds: float = 0.0
    placement: dict[str, dict[str, int]] = {}
    error: Text = ""


class Agreement(Record, frozen=True):
    """How an output compares with the reference; `error` is relative to the largest number, None for other shapes."""

    output: str
    agrees: bool
    error: float | None = None
    note: Text = ""


class Attempt(Record, frozen=True, omit_defaults=False):
    """The whole answer; `strict` is the comparison where every node rounds, empty where it could not be made."""

    model: str
    reference: str
    wanted: str
    reference_run: Run
    run: Run
    agreement: tuple[Agreement, ...]
    strict: tuple[Agreement, ...]
    notes: tuple[Message, ...]
    verdict: Message
    passed: bool
