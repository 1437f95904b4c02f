"""One setup, with nothing secret left in it, and the templates by which files are written from it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import tomli_w

import assistant.runtime
from assistant import __version__
from assistant.i18n import say
from assistant.model.errors import BadInput
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record, replace
from assistant.model.report import Environment, Report
from assistant.model.visible import escape_hidden
from assistant.privacy import NOBODY, PrivateNames, redact

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
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
    """Return an environment with its folder's name and the interpreter's path within it alone, and no `display_name`.

    The rest of these paths exists on this machine alone, and the name in its launcher holds the user's card.
    """
    parts = re.split(r"[\\/]", environment.python)[-2:]
    folder = re.split(r"[\\/]", environment.path.rstrip("\\/"))[-1].strip(". ").replace(":", "")
    inside = parts if parts[0] in {"bin", "Scripts"} else parts[-1:]
    return replace(environment, path=folder or "environment", python="/".join(inside), display_name="")


class Unsuited(BadInput):
    """A format that this setup cannot have: no container reaches Metal, for example."""


def clean(setup: Setup, known: PrivateNames = NOBODY) -> Setup:
    """Return the setup without what must not leave this machine; requirements and addresses stay usable.

    From the lock goes what differs from one export of the same packages to the next: uv's first lines name folders of
    this machine; size and time of a file an index may state today and not tomorrow, and PEP 751 needs neither.
    """
    # wheels = [{ url = "https://…/numpy-2.4.6-….whl", upload-time = 2026-06-01T10:00:00Z, size = 16000000, hashes = …
    rows = "".join(line for line in setup.lock.splitlines(keepends=True) if not line.startswith("#"))
    lasting = re.sub(r"\b(?:upload-time|size) = [\w:.+-]+, (?=\w)", "", rows)
    return redact(replace(setup, lock=lasting), known=known)


def variables(setup: Setup) -> dict[str, str]:
    """Return the variables of the setup by name: the plan's, and `INFERENCE_DEVICE`.

    The latter is the device that was verified. Names that no shell can set are left out, and line breaks become spaces:
    no format of these has a way to write one.
    """
    every = {**setup.plan.env, "INFERENCE_DEVICE": setup.report.device}
    return {name: " ".join(value.splitlines()) for name, value in sorted(every.items()) if _VARIABLE.fullmatch(name)}


FOLDER = Path(__file__).with_name("templates")


def runtime_text(name: str) -> str:
    """Return a file of `assistant/runtime/` (`device.py`, `fallback.py`) under our marker."""
    text = (Path(assistant.runtime.__path__[0]) / name).read_text(encoding="utf-8")
    return f"# {MARKER}\n{text}"


def fill_template(template: str, filters: Mapping[str, Callable[..., str]] | None = None, **content: object) -> str:
    """Return `templates/<template>.j2` filled with `content`; a missing value raises `jinja2.UndefinedError`.

    A template may use `filters`, and `json`, which quotes for JSON and YAML.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - 60 ms, needed only here

    templates = Environment(  # noqa: S701 - none of the formats is HTML; filters and `json` quote
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters.update({"json": json_text, **(filters or {})})
    return templates.get_template(f"{template}.j2").render(_=say, marker=MARKER, **content)


def json_text(value: object, indent: int | None = None) -> str:
    """Encode as JSON with every hidden character escaped; YAML and Python read such strings alike."""
    return escape_hidden(json.dumps(value, ensure_ascii=False, indent=indent))


def toml_text(value: Mapping[str, object]) -> str:
    """Encode as TOML with every hidden character escaped."""
    return escape_hidden(tomli_w.dumps(value), long=True)
