"""Takes out of raw answers what tells who and where: names, home paths, serials, UUIDs, addresses, secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

__all__ = [
    "AnswerRedaction",
    "Redaction",
    "own_secrets",
    "redact_text",
    "redactors",
    "secret_values",
    "without_credentials",
]

Rule = tuple[re.Pattern[str], str]

_HOME: Rule = (
    re.compile(
        r"(?P<root>[A-Za-z]:\\{1,2}Users\\{1,2}|/mnt/[a-z]/Users/)(?!Public\b)[^\\/:*?\"<>|\r\n]{1,64}(?=[\\/])"
        r"|(?P<plain>/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})(?!Public\b)[^/\\\s\"':;,|<>]+"
    ),
    r"\g<root>\g<plain>user",
)
_RULES: tuple[Rule, ...] = (
    _HOME,
    (re.compile(r"\b(\w{2,10}://)[^/\s@:]{1,200}:[^/\s@]{1,200}@"), r"\1"),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})*"), "user@host"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "00000000-0000-0000-0000-000000000000"),
    (re.compile(r"\bGPU-[0-9a-fA-F]{16}\b"), "GPU-0000000000000000"),
    (re.compile(r"\b(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}\b"), "00:00:00:00:00:00"),
    (re.compile(r"\b(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}\b|\bf[de][0-9a-fA-F]{2}:[0-9a-fA-F:]{2,40}"), "::"),
    (
        re.compile(
            r"((?:serial|asset tag|udid|unique_id|\bpdi)\b[^:=\n\"]{0,40}\"?\s{0,3}[:=]?\s{0,60}\"?)"
            r"(?!N/A)[A-Za-z0-9-]{4,64}",
            re.IGNORECASE,
        ),
        r"\g<1>0",
    ),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|hf_|sk-|xox[abp]-|glpat-|pypi-|AKIA|eyJ)[\w.=-]{12,}"), "SECRET"),
    (
        re.compile(
            r"((?:token|secret|passw(?:or)?d|api_?key|credentials?)\"?\s{0,2}[=:]\s{0,2}\"?)[^\s\"]{3,}", re.IGNORECASE
        ),
        r"\1SECRET",
    ),
)

_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = re.compile(rf"(?<![\w.-])(?:{_BYTE}\.){{3}}{_BYTE}(?![\w.-])")
_VERSION_KINDS = frozenset({"file_version", "platform", "packages"})  # their numbers with dots are versions
_CONTEXT = 40

# Names that a system gives by default tell nothing of a person, and are also words of drivers' output.
_DEFAULT_NAMES = re.compile(
    r"root|user|admin|administrator|guest|default|ubuntu|debian|fedora|arch|linux|windows|nvidia|jetson|amd|intel|"
    r"docker|container|python|conda|jovyan|runner|vagrant|vscode|codespace|localhost|none|test|gpu|cuda|rocm|host",
    re.IGNORECASE,
)


_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def without_credentials(text: str, instead: str = "****@") -> str:
    """Replace user names and passwords inside addresses, for anything that is shown or kept."""
    return _CREDENTIALS.sub(instead, text)


Redaction = Callable[[str], str]
AnswerRedaction = Callable[[str, str], str]


def redact_text(text: str, kind: str = "") -> str:
    """Replace what its form alone gives away in an answer to a question of that kind; the same text gives the same."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text if kind in _VERSION_KINDS else _ADDRESS.sub(_unless_version, text)


def _unless_version(found: re.Match[str]) -> str:
    """Keep a number of four parts that the text before it calls a version, as drivers of Windows have them."""
    before = found.string[max(0, found.start() - _CONTEXT) : found.start()]
    return found[0] if "ersion" in before.rpartition("\n")[2] else "0.0.0.0"  # noqa: S104 - an address to print


_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS(?:W|$|PHRASE)|API_?KEY|ACCESS_?KEY|CREDENTIAL|_KEY$|_PAT$|_AUTH$", re.IGNORECASE
)
_USER_AND_PASSWORD = re.compile(r"\b[\w+.-]{2,20}://([^\s/@:]*)(?::([^\s/@]*))?@")


def own_secrets() -> tuple[str, ...]:
    """Give the secrets that this process's own environment holds."""
    return secret_values(os.environ)


def secret_values(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Give the values of variables that are named like secrets, and the passwords within addresses in any."""
    named = [value for name, value in variables.items() if _SECRET_NAME.search(name) and not value.startswith("/")]
    found = (pair for value in variables.values() for pair in _USER_AND_PASSWORD.findall(value))
    within = [password or user for user, password in found]
    return tuple(dict.fromkeys(filter(None, (*named, *within))))


def redactors(identity: Mapping[str, object]) -> tuple[Redaction, AnswerRedaction]:
    """Make two functions: one for questions, which takes names and home paths out, and one for answers.

    The one for answers takes the question's kind as its second argument, and does all that `redact_text` does.
    The names of `users` and `hosts` in a host's `identity` are taken out wherever they stand as whole words.
    """
    users, hosts = (value if isinstance(value := identity.get(key), list) else [] for key in ("users", "hosts"))
    names = dict.fromkeys(users, "user") | {
        spelling: "host" for name in hosts for spelling in (name, name.lower(), name.upper(), name.partition(".")[0])
    }
    telling = sorted((name for name in names if len(name) > 2 and not _DEFAULT_NAMES.fullmatch(name)), key=len)  # noqa: PLR2004
    words = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, reversed(telling))) or '(?!)'})(?![A-Za-z0-9])")

    def unnamed(text: str) -> str:
        return words.sub(lambda found: names[found[0]], text)

    return lambda text: _HOME[0].sub(_HOME[1], unnamed(text)), lambda text, kind: redact_text(unnamed(text), kind)
