"""What every exported file is made from, with nothing secret left in it."""

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


class Bundle(Record, frozen=True):
    """One setup: the machine and its findings, the plan, the environment made from it and its verification.

    `figures` names the pictures that are written beside the files; `lock` is the installed packages' PEP 751 text and
    `hashes` the SHA-256 of each file by package, both empty where they are not known.
    """

    machine: Machine
    plan: Plan
    environment: Environment
    report: Report
    findings: tuple[Finding, ...] = ()
    figures: tuple[str, ...] = ()
    lock: str = ""
    hashes: dict[str, str] = {}
    version: str = __version__


def without_path(environment: Environment) -> Environment:
    """Keep a folder's name, and its interpreter relative to it: nobody else has that path."""
    parts = re.split(r"[\\/]", environment.python)[-2:]
    folder = re.split(r"[\\/]", environment.path.rstrip("\\/"))[-1].strip(". ").replace(":", "")
    inside = parts if parts[0] in {"bin", "Scripts"} else parts[-1:]
    return replace(environment, path=folder or "environment", python="/".join(inside))


class Unsuited(BadInput):
    """A format that this setup cannot have: no container reaches Metal, say."""


def clean(bundle: Bundle, known: Known = NOBODY) -> Bundle:
    """Take what must not leave this machine out of everything; requirements and addresses stay usable."""
    return redact(replace(bundle, lock=_lasting(bundle.lock)), known=known)


def _lasting(lock: str) -> str:
    """Keep what is the same each time.

    uv's first lines name folders of this machine; size and time of a file an index may tell today and not tomorrow
    (PEP 751 needs neither: the hash says which file is meant).
    """
    told = "".join(line for line in lock.splitlines(keepends=True) if not line.startswith("#"))
    return re.sub(r"\b(?:upload-time|size) = [\w:.+-]+, (?=\w)", "", told)
