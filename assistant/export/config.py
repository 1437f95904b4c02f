"""`assistant.toml`: one setup as a file that people can read and the assistant reads back."""

from __future__ import annotations

import hashlib
import tomllib
from typing import Literal

from assistant.export.pins import lock_text
from assistant.export.setup import MARKER, Setup, without_path
from assistant.export.templates import toml_text
from assistant.export.trust import check_values
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record, from_plain, replace, to_plain
from assistant.model.report import Environment, Report
from assistant.model.visible import printable

SCHEMA = 1
NAME = "assistant.toml"


class Config(Record, frozen=True, omit_defaults=False):
    """A setup as it was: machine, plan, environment, verification, and the versions that wrote it.

    `environment` names its folder alone and the interpreter inside of it: nobody else has that path. `hashes` holds
    the SHA-256 of each package's file (`locked` of them, so that a file without its end is noticed), `lock` that of the
    `pylock.toml`, "" where there is none.
    """

    plan: Plan
    environment: Environment
    verification: Report
    machine: Machine
    versions: dict[str, str] = {}
    hashes: dict[str, str] = {}
    lock: str = ""
    locked: int = 0
    schema: Literal[1] = 1


def config_text(setup: Setup) -> str:
    """Write the setup as TOML, without the folders of wheels that only this machine has."""
    pages = tuple(place for place in setup.plan.links if "://" in place)
    named = {"assistant": setup.version, "python": setup.report.facts.get("python"), "torch": setup.plan.torch}
    config = Config(
        versions={name: version for name, version in named.items() if version},
        plan=replace(setup.plan, wheel=None, links=pages),
        environment=without_path(setup.environment),
        verification=setup.report,
        machine=setup.machine,
        hashes=setup.hashes,
        locked=len(setup.hashes),
        lock=hashlib.sha256(lock_text(setup).encode()).hexdigest() if setup.lock else "",
    )
    plain = _without_none(to_plain(config))
    return f"# {MARKER}: `assistant apply` rebuilds this setup, `assistant check` compares with it.\n" + toml_text(
        plain if isinstance(plain, dict) else {}
    )


def read_config(text: str, file: str = NAME) -> Config:
    """Decode an `assistant.toml` strictly, as data that anybody may have written; `file` is its name in refusals.

    Raises `BadInput` naming the place at fault: broken or cut TOML, another schema, an unknown key, a wrong type, a
    value that is not of the plain form that the assistant writes.
    """
    plain = _toml(text, file)
    schema = plain.get("schema")
    if schema is None:
        raise BadInput(
            _("{file} is not a configuration exported by the assistant.", file=file),
            hint=_("Give the assistant.toml of an export."),
        )
    if schema != SCHEMA or isinstance(schema, bool):
        raise BadInput(
            _(
                "{file} has schema {found}; this version reads schema {known}.",
                file=file,
                found=ascii(schema)[:40],
                known=SCHEMA,
            ),
            hint=_("Update the assistant, or export the file again."),
        )
    config = from_plain(plain, Config, file)
    if len(config.hashes) != config.locked:
        raise BadInput(
            _(
                "{file} announces {locked} hashes but holds {found}; its end may be missing.",
                file=file,
                locked=config.locked,
                found=len(config.hashes),
            ),
            hint=_("Get the complete file, or export it again."),
        )
    check_values(file, config.plan, config.environment, config.verification.device, config.hashes)
    return config


def _toml(text: str, file: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error).rstrip(".")
    raise BadInput(
        _("{file} is not valid TOML: {reason}.", file=file, reason=printable(reason)),
        hint=_("Correct it there, or export the file again."),
    )


def _without_none(value: object) -> object:
    """Leave out what is None: TOML has no null, and None is the default of every such field."""
    if isinstance(value, dict):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_without_none(part) for part in value]
    return value
