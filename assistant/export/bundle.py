"""What every exported file is made from, with nothing secret left in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from assistant import __version__
from assistant.host.redact import redact_text
from assistant.model.errors import BadInput
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record, from_plain, replace, to_plain
from assistant.model.report import Environment, Report

__all__ = ["MARKER", "Bundle", "Unsuited", "clean", "without_path"]

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


def clean(bundle: Bundle, secrets: Iterable[str] = (), names: Names = lambda text: text) -> Bundle:
    """Take credentials, tokens and the literal `secrets` out of everything, and names out of what tools have said.

    `names` takes the names of this user and this machine out of a text.
    """
    cleaner = _Cleaner(tuple(sorted(filter(_TELLING.fullmatch, secrets), key=len, reverse=True)), names)
    plain = cleaner.value(to_plain(replace(bundle, lock=_lasting(bundle.lock))))
    return from_plain(plain, Bundle, "export")


Names = Callable[[str], str]
_CREDENTIALS = re.compile(r"(\b[\w+.-]{2,20}://)[^\s/@\"'<>]+@")
_QUERY_SECRET = re.compile(
    r"([?&](?:[\w-]*(?:token|key|secret|sig|signature|password|auth))=)[^\s&#\"']+", re.IGNORECASE
)
# As long as their makers write them: names of packages such as hf_transfer and sk-learn are none.
_TOKENS = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}|hf_[A-Za-z0-9]{20,}|glpat-[\w-]{16,}|pypi-[\w-]{50,}"
    r"|xox[abp]-[\w-]{10,}|sk-[A-Za-z0-9_]{20,}|AKIA[A-Z0-9]{12,}|eyJ[\w-]{10,}\.[\w.-]{10,})"
)
# Texts that a tool must be able to read as they are: addresses, versions, names of packages.
_EXACT = frozenset(
    {
        "packages",
        "hashes",
        "lock",
        "name",
        "requirements",
        "index_url",
        "torch",
        "python",
        "variant",
        "wheel",
        "version",
    }
)
_FREE = frozenset({"detail", "text", "nvidia_smi_output", "facts"})  # what tools said, numbers like addresses in it
# A plain word or a version number, named like a secret, stands anywhere.
_TELLING = re.compile(r"(?=.*[A-Za-z])(?=.*[^a-z.]).{6,}|.{12,}", re.DOTALL)


class _Cleaner:
    """Walks through plain values; what is done to a text depends on the field that it stands in."""

    def __init__(self, secrets: tuple[str, ...], names: Names) -> None:
        self._secrets, self._names = secrets, names

    def value(self, value: object, field: str = "") -> object:
        """Clean a value and all that is in it."""
        if isinstance(value, str):
            return self.text(value, field)
        if isinstance(value, dict):
            inner = {self.text(key, "packages"): part for key, part in value.items()}
            return {key: self.value(part, field if field in _EXACT | _FREE else key) for key, part in inner.items()}
        if isinstance(value, list | tuple):
            return [self.value(part, field) for part in value]
        return value

    def text(self, text: str, field: str) -> str:
        """Clean one text."""
        text = _QUERY_SECRET.sub(r"\1", _CREDENTIALS.sub(r"\1", text))
        text = _TOKENS.sub("SECRET", text)
        for secret in self._secrets:
            text = text.replace(secret, "SECRET")
        if field in _EXACT:
            return text
        return redact_text(self._names(text), "" if field in _FREE else "packages")


def _lasting(lock: str) -> str:
    """Keep what is the same each time.

    uv's first lines name folders of this machine; size and time of a file an index may tell today and not tomorrow
    (PEP 751 needs neither: the hash says which file is meant).
    """
    told = "".join(line for line in lock.splitlines(keepends=True) if not line.startswith("#"))
    return re.sub(r"\b(?:upload-time|size) = [\w:.+-]+, (?=\w)", "", told)
