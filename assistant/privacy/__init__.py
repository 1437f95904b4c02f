"""Removes what must not leave this machine from texts, records and messages, by one table of rules (`rules.py`).

Whatever is written to be sent, pasted or kept passes `redact`. What only the machine knows (names, values of secret
variables) is passed in as `PrivateNames`, which `host/` collects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from assistant.i18n import Message

__all__ = [
    "NOBODY",
    "USABLE_FIELDS",
    "Lines",
    "Policy",
    "PrivateNames",
    "redact",
    "secret_values",
    "shorten_home",
    "without_credentials",
]


SECRET = "SECRET"  # noqa: S105 - what stands where something was taken out


class Policy(Enum):
    """FREE text is read by people. USABLE text (addresses, requirements) must go on working: it loses secrets alone."""

    FREE = "free"
    USABLE = "usable"


# Fields whose values tools read: within FREE records and messages they are USABLE.
USABLE_FIELDS = frozenset(
    {
        "packages", "hashes", "lock", "requirements", "requirement", "pins",
        "index_url", "url", "torch", "variant", "wheel", "version",
        "versions", "package", "driver", "nvidia_driver", "os_version", "cuda_driver_api",
        "rocm_version", "sha256", "pci_id", "installed", "wanted",
    }
)  # fmt: skip
# Of a secret's values only these are searched for: a plain word or a version number may stand anywhere by chance.
_DISTINCT = r"(?s)(?=.*[A-Za-z])(?=.*[^a-z.]).{6,}|.{12,}"
_USER_AND_PASSWORD = r"\b[\w+.-]{2,20}://([^\s/@:]*)(?::([^\s/@]*))?@"  # noqa: S105 - a pattern
_CREDENTIALS = r"(?<=://)[^/@\s]+@"
_HOME = r"(?<![\w.-])(?:/home/[^/\s:\"']+|/Users/[^/\s:\"']+|/root|[A-Za-z]:[\\/]Users[\\/][^\\/\s:\"']+)(?![\w-])"
_KEY_BEGINS = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?!.*-----END)"
_SHORT = 3  # letters; shorter names occur in too many words


class PrivateNames(NamedTuple):
    """What only the machine knows: its users' names, its own names, and the values of its secret variables."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, identity: Mapping[str, object], variables: Mapping[str, str]) -> PrivateNames:
        """Return the `users` and `hosts` of an "identity" answer, and the secrets among environment variables."""
        users, hosts = (value if isinstance(value := identity.get(key), list) else [] for key in ("users", "hosts"))
        return cls(users=tuple(users), hosts=tuple(hosts), secrets=secret_values(variables))


NOBODY = PrivateNames()
V = TypeVar("V")


def redact(
    value: V, policy: Policy = Policy.FREE, known: PrivateNames = NOBODY, usable: frozenset[str] = USABLE_FIELDS
) -> V:
    """Return a copy of a text, or of all texts in values, records and messages, without private data.

    Idempotent. `policy` says what texts lose: all private data, or secrets alone. In messages only the parameters are
    redacted; the fields `usable` only lose secrets, so that addresses and requirements go on working. `known` are this
    machine's private names.
    """
    redacted: V = _redact_value(value, policy, known, usable)
    return redacted


def _redact_value(value: Any, policy: Policy, known: PrivateNames, usable: frozenset[str]) -> Any:  # noqa: ANN401 - as it was given
    """Return a copy with all texts in it redacted, keys of dicts included; a value of an unknown type as it is."""
    fields = partial(_redact_field, policy=policy, known=known, usable=usable)
    if isinstance(value, str) and not isinstance(value, Enum):
        return _redact_text(value, policy, known)
    if isinstance(value, Message):
        return replace(value, params={name: fields(name, item) for name, item in value.params.items()})
    if isinstance(value, dict):
        return {_redact_value(key, policy, known, usable): fields(key, item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(fields, value._fields, value))
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(_redact_value(item, policy, known, usable) for item in value)
    names: tuple[str, ...] = getattr(value, "__struct_fields__", ())  # msgspec's records, of which start.py has none
    return type(value)(**{name: fields(name, getattr(value, name)) for name in names}) if names else value


def _redact_field(name: object, value: Any, policy: Policy, known: PrivateNames, usable: frozenset[str]) -> Any:  # noqa: ANN401
    return _redact_value(value, Policy.USABLE if name in usable else policy, known, usable)


def _redact_text(text: str, policy: Policy, known: PrivateNames) -> str:
    """Return a text without known secrets and names and what the rules find; a USABLE one loses secrets alone."""
    for secret in _secrets(known):
        text = text.replace(secret, SECRET)
    if policy is Policy.FREE and (known.users or known.hosts):
        pattern, names = _names(known)
        text = pattern.sub(lambda found: names[found[0].lower()], text)
    from assistant.privacy.rules import RULES  # noqa: PLC0415 - tables that most commands never need

    lower = text.lower()
    for rule in RULES:
        if rule.usable or policy is Policy.FREE:
            text = rule.apply(text, lower)
    return text


@cache
def _secrets(known: PrivateNames) -> tuple[str, ...]:
    return tuple(sorted((one for one in known.secrets if re.fullmatch(_DISTINCT, one)), key=len, reverse=True))


@cache
def _names(known: PrivateNames) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern of the names as whole words, but for short and default ones, and what replaces each."""
    from assistant.privacy.rules import DEFAULT_NAMES  # noqa: PLC0415 - see above

    hosts = [spelling for name in known.hosts for spelling in (name, name.partition(".")[0])]
    names = {name.lower(): "user" for name in known.users} | {name.lower(): "host" for name in hosts}
    searched = sorted(
        (name for name in names if len(name) >= _SHORT and not re.fullmatch(DEFAULT_NAMES, name)), key=len
    )
    either_name = "|".join(map(re.escape, reversed(searched))) or "(?!)"
    return re.compile(rf"(?<![A-Za-z0-9])(?:{either_name})(?![A-Za-z0-9])", re.IGNORECASE), names


class Lines:
    """Redacts a text that comes line by line, where a private key begins in one line and goes on in the next."""

    LONGEST = 400  # lines of a key at most; after them a log whose key never ends is shown again

    def __init__(self, policy: Policy = Policy.FREE, known: PrivateNames = NOBODY) -> None:
        self._policy, self._known = policy, known
        self._left = 0

    def __call__(self, line: str) -> str:
        """Return the next line redacted; "SECRET" for one inside a private key."""
        if self._left:
            self._left = 0 if "-----END" in line else self._left - 1
            return SECRET
        self._left = self.LONGEST if re.search(_KEY_BEGINS, line) else 0
        return redact(line, self._policy, self._known)


def secret_values(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables that are named like secrets, and the passwords in addresses of any variable.

    Values that are paths are left out; of an address without a password it is the user, mostly a token.
    """
    from assistant.privacy.rules import SECRET_NAME  # noqa: PLC0415 - see above

    named = [value for name, value in variables.items() if re.search(SECRET_NAME, name) and not value.startswith("/")]
    found: Iterable[tuple[str, str]] = (
        pair for value in variables.values() for pair in re.findall(_USER_AND_PASSWORD, value)
    )
    within = [password or user for user, password in found]
    return tuple(dict.fromkeys(filter(None, (*named, *within))))


def without_credentials(address: str) -> str:
    """Return an address without user name and password."""
    return re.sub(_CREDENTIALS, "", address)


def shorten_home(path: str) -> str:
    """Return a text with `~` in place of each home folder, whoever's it is."""
    return re.sub(_HOME, "~", path)
