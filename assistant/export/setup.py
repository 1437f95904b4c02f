"""What every exported file is made from: one setup, with nothing secret left in it."""

from __future__ import annotations

import re

from assistant import __version__
from assistant.model.errors import BadInput
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record, replace
from assistant.model.report import Environment, Report
from assistant.privacy import NOBODY, Known, redact

# The first line of every file that we write holds this; a file without it is somebody else's.
MARKER = "Written by torch-setup-assistant"


class Setup(Record, frozen=True):
    """One setup: the machine and its findings, the plan, the environment made from it and its verification.

    `lock` is the packages' PEP 751 text and `hashes` the SHA-256 of each file by package, both empty where they are
    not known.
    """

    machine: Machine
    plan: Plan
    environment: Environment
    report: Report
    findings: tuple[Finding, ...] = ()
    lock: str = ""
    hashes: dict[str, str] = {}
    version: str = __version__


def without_path(environment: Environment) -> Environment:
    """Keep the folder's name and the interpreter's path within it; the rest of either is nobody else's.

    Nor is what this machine's launcher shows, which names the user's card.
    """
    parts = re.split(r"[\\/]", environment.python)[-2:]
    folder = re.split(r"[\\/]", environment.path.rstrip("\\/"))[-1].strip(". ").replace(":", "")
    inside = parts if parts[0] in {"bin", "Scripts"} else parts[-1:]
    return replace(environment, path=folder or "environment", python="/".join(inside), display_name="")


class Unsuited(BadInput):
    """A format that this setup cannot have: no container reaches Metal, for example."""


def clean(setup: Setup, known: Known = NOBODY) -> Setup:
    """Remove what must not leave this machine; requirements and addresses stay usable."""
    return redact(replace(setup, lock=_lasting(setup.lock)), known=known)


def _lasting(lock: str) -> str:
    """Remove what differs from one export of the same packages to the next.

    uv's first lines name folders of this machine; size and time of a file an index may state today and not tomorrow
    (PEP 751 needs neither: the hash says which file is meant).
    """
    # wheels = [{ url = "https://…/numpy-2.4.6-….whl", upload-time = 2026-06-01T10:00:00Z, size = 16000000, hashes = …
    rows = "".join(line for line in lock.splitlines(keepends=True) if not line.startswith("#"))
    return re.sub(r"\b(?:upload-time|size) = [\w:.+-]+, (?=\w)", "", rows)
