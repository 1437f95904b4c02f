"""`assistant.toml`: one setup as a file that people can read and the assistant reads back."""

from __future__ import annotations

import tomllib
from typing import Literal

import tomli_w

from assistant.export.bundle import MARKER, Bundle
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record, from_plain, to_plain
from assistant.model.report import Environment, Report

__all__ = ["Config", "config_text", "read_config"]

SCHEMA = 1
NAME = "assistant.toml"


class Config(Record, frozen=True, omit_defaults=False):
    """A setup as it was: machine, plan, environment, verification, and the versions that wrote it."""

    plan: Plan
    environment: Environment
    verification: Report
    machine: Machine
    versions: dict[str, str] = {}
    schema: Literal[1] = 1


def config_text(bundle: Bundle) -> str:
    """Write the setup as TOML."""
    named = {"assistant": bundle.version, "python": bundle.report.facts.get("python"), "torch": bundle.plan.torch}
    config = Config(
        versions={name: version for name, version in named.items() if version},
        plan=bundle.plan,
        environment=bundle.environment,
        verification=bundle.report,
        machine=bundle.machine,
    )
    plain = _without_none(to_plain(config))
    return f"# {MARKER}: `assistant apply` rebuilds this setup, `assistant check` compares with it.\n" + tomli_w.dumps(
        plain if isinstance(plain, dict) else {}
    )


def read_config(text: str) -> Config:
    """Read an `assistant.toml` strictly; raise `BadInput` naming the place at fault, or the newer schema."""
    try:
        plain = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(
            _("{file} is not valid TOML: {reason}.").format(file=NAME, reason=str(error).rstrip(".")),
            hint=_("Correct that place, or export the file anew."),
        ) from error
    schema = plain.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise BadInput(
            _("{file} has schema {found}; this version reads schema {known}.").format(
                file=NAME, found=schema, known=SCHEMA
            ),
            hint=_("Update the assistant, or export the file anew."),
        )
    return from_plain(plain, Config, NAME)


def _without_none(value: object) -> object:
    """Leave out what is None, which TOML cannot say and which every such field has as its default."""
    if isinstance(value, dict):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_without_none(part) for part in value]
    return value
