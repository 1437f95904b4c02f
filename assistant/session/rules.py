"""The rules that a user has beside the shipped ones: in files that they name, and in a folder of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from assistant.diagnose import add_rules
from assistant.diagnose.rules import RuleFile
from assistant.diagnose.user_rules import read_user_rules
from assistant.host.files import read_plain
from assistant.host.folders import user_data
from assistant.i18n import Message, Text, _, learn
from assistant.model.errors import AssistantError, BadInput, unreadable
from assistant.parsers.decode import text_pieces

RULE_BYTES = 1 << 20  # of one file


def rules_folder() -> Path:
    """Return the folder whose `*.toml` count in every diagnosis of this user."""
    return user_data() / "rules"


def use_rules(files: Iterable[str] = ()) -> tuple[Text, ...]:
    """Diagnose from now on with these files' rules and those of the user's folder; return what is wrong in the folder.

    A file there that cannot be used is left out. Raises `BadInput` for one of `files`.
    """
    read = [rules_of(Path(file)) for file in files]
    faults: list[Text] = []
    for path in sorted(rules_folder().glob("*.toml")):
        try:
            read.append(rules_of(path))
        except AssistantError as error:
            faults.append(_("{fault} It is left out.", fault=error.message))
    added = {rule.key: rule for one in reversed(read) for rule in one.rule}  # what was named counts
    add_rules(added.values())
    for one in read:
        learn("zh_CN", one.zh_CN)
    return tuple(faults)


def rules_of(path: Path) -> RuleFile:
    """Read a file of rules; raise `BadInput` for one that cannot be read or used."""
    try:
        text = "".join(text_pieces(read_plain(path, RULE_BYTES, follow=True)))
    except OSError as error:
        raise unreadable(str(path), error) from error
    return read_user_rules(text, path.name)


def template(key: str, day: str) -> str:
    """Return a file of rules to begin with; raise `BadInput` for what can be no key."""
    from importlib.resources import files  # noqa: PLC0415 - every diagnosis would pay for it

    from assistant.diagnose.user_rules import KEY  # noqa: PLC0415 - likewise

    if not KEY.fullmatch(key):
        message: Message = _("{key} cannot be the key of a rule.", key=key)
        raise BadInput(message, hint=_("Take small letters, digits and hyphens: school-proxy."))
    text = files("assistant.diagnose").joinpath("new_rule.toml").read_text("utf-8")
    return text.replace("KEY", key, 1).replace("DATE", day, 1)
