"""Checks of what users and plans name before it reaches an installer: index addresses and requirements."""

from __future__ import annotations

from assistant.host.index import local_path
from assistant.i18n import Text, _
from assistant.model.address import SCHEMES, index_fault
from assistant.model.errors import BadInput
from assistant.model.plan import Plan
from assistant.model.requirement import plain_requirement
from assistant.privacy import Policy, redact


def check_plan(plan: Plan) -> None:
    """Raise `BadInput` for an index or a requirement that is none, wherever a plan holds it."""
    for url in filter(None, (plan.index_url, *plan.indexes)):
        check_index_url(url)
    for line in (*plan.requirements, *plan.constraints, *plan.overrides):
        check_requirement(line)


def check_index_url(text: str) -> str:
    """Return the address of a package index as it is; raise `BadInput` for anything else, such as a file."""
    reason = index_fault(text) or _folder_fault(text)
    if reason:
        raise BadInput(
            _(
                "'{text}' is not the address of a package index: {reason}.",
                text=redact(ascii(text)[1:-1], Policy.USABLE)[:80],
                reason=reason,
            ),
            hint=_("Example: {value}", value="https://download.pytorch.org/whl/cpu", option="--index-url"),
        )
    return text


def _folder_fault(address: str) -> Text:
    folder = local_path(address)  # None for an address on a server
    return _("it is not a folder") if folder and not folder.is_dir() else ""


def check_requirement(text: str) -> str:
    """Return a requirement (PEP 508) as it is; raise `BadInput` for options, hidden characters and anything else."""
    need = plain_requirement(text)
    if need is None or (need.url and not need.url.startswith(SCHEMES)):
        raise BadInput(
            _("'{text}' is not a requirement.", text=redact(ascii(text)[1:-1], Policy.USABLE)[:80]),
            hint=_("Write a name, and a version if you need one, such as torch==2.9.1."),
        )
    return text
