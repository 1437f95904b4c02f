"""What must not leave this machine: each kind of text with its pattern, a made-up sample and the reason."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from assistant.privacy import SECRET

LABELS: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("labels.toml").read_text("utf-8"))


class Rule(NamedTuple):
    """One kind of private text: `pattern` becomes `instead`; `sample` shows one, `usable` if USABLE texts lose it too.

    A text that holds none of `needs`, in lower case, is not searched: the pattern is compiled when it is first needed.
    """

    name: str
    pattern: str
    instead: str | Callable[[re.Match[str]], str]
    needs: tuple[str, ...]
    sample: str
    reason: str
    usable: bool = True

    def apply(self, text: str, lower: str) -> str:
        """Return a text with it replaced; `lower` is the text in lower case."""
        return _compiled(self.pattern).sub(self.instead, text) if any(word in lower for word in self.needs) else text


_compiled = cache(re.compile)


def words(*kinds: str) -> tuple[str, ...]:
    """Return the labels of some kinds in all languages, as `labels.toml` writes them."""
    return tuple(word for kind in kinds for row in LABELS[kind].values() for word in row)


def either(labels: Iterable[str]) -> str:
    """Return a pattern of labels, the longest first; a blank in one also stands for "_", "-", "." or nothing."""
    return "|".join(re.escape(word).replace(r"\ ", "[ _.-]?") for word in sorted(labels, key=len, reverse=True))


def needs(labels: Iterable[str]) -> tuple[str, ...]:
    """Return what a text must hold, in lower case, for one of some labels to be in it: the first word of each."""
    return tuple(dict.fromkeys(re.split(r"[ '/]", word)[0] for word in labels))


# A variable of the shell, cmd, PowerShell or GitHub Actions, or "<your password>", is a place to fill in.
_PLACE = r"(?!\\{0,4}[\"']?(?:\$[({]{0,2}\s?[A-Za-z_]|%\w{1,60}%|<[^<>\r\n]{1,60}>|\{\w{0,40}\}|\*{3}|\.{3}))"
# Neither is what stands for nothing, nor a call: `token: None`, `password = getpass()`.
_NOTHING = (
    r"(?!\\{0,4}[\"']?(?:none|null|true|false|nil|str|bytes|int|string|required|missing|expired|invalid|incorrect|wrong)(?![\w@$!-]))"
    r"(?![a-z_][\w.]{0,80}\()(?![\"'`]?\))(?!\w{1,30}(?:\[\w{1,30}\])?(?: \| None)? ?= )"
)
# What models and programs call a token is no secret: `pad_token=<pad>`, `max_token: 4096`, `token = tok`.
_CODE = (
    r"(?!\\{0,4}[\"']?(?:\d{1,6}(?:\.\d{1,6})?(?![\w@$!-])|[<\[]|\.{0,2}/[a-z]{2,20}/))"
    r"(?-i:(?!(?:[a-z]{1,3}|[a-z]{0,20}[_.][a-z_.]{0,80}|tokens?|secrets?|keys?|(?:my|new|old|hf|api|auth)(?:token|key)|values?|val"
    r"|args|kwargs|config|cfg|name|env|to|for|in|of)(?![\w.@$!/+=-])))"
)
# What comes between a label and its value: the signs of settings, JSON and code, an annotation, a block of YAML or
# Python, an element of XML, two attributes.
_GIVEN = (
    r"\\{0,4}[\"'`]?\]?(?:(?:[ \t](?:for|of|für|de|du|para|der)\b[^:=\r\n]{1,40})?[ \t]{0,20}"
    r"(?::[ \t]?(?:str|String)[ \t]?)?(?:=>|:=|[:=：＝])[ \t]{0,3}(?![ \t=:])"
    r"(?:(?:[|>]-?|\"{3}|'{3})[ \t]{0,3}\r?\n[ \t]{0,9})?|>(?=[^<>\r\n]{1,500}</)|[ \t]{1,3}value=)"
)
# Group 1 is what stays, up to the value's opening quote, which is group 2.
_VALUE = (
    r"(?(2)(?:(?!\2)(?:[^\r\n\\]|\\.)){1,500}|[^\s\"'`;<>&,，。；)\\]"
    r"(?:[^\s\"';<>\\&，。；]|&(?![\w.-]{1,40}=)|\\(?![\"'nrt]))*)"
)
_QUOTE = r"(\\{0,4}[\"'`])?"
_GAP, _WORD = r"(?:\s|\\{1,4}[nrt]){1,9}", r"[^\s\\\"]{1,200}"  # a line break may be written as in JSON
_PASSWORDS, _SECRETS = words("password"), words("secret")
_SUFFIX = f"(?<=[a-z0-9][_-])(?:{either(words('suffix'))})"
# Of a variable that holds a secret, and those a system gives by default, which are also words of drivers' output.
SECRET_NAME = rf"(?i){either((*_PASSWORDS, *_SECRETS))}|{_SUFFIX}"
DEFAULT_NAMES = f"(?i){either(words('nobody'))}"
_ADDRESS_NAMES = rf"(?:{either((*_PASSWORDS, *_SECRETS))}|signature|[:_]_auth)"

# Makers whose tokens people of this field hold; other makers' go as words that look drawn by chance.
_TOKENS = (
    r"gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_\w{20,255}",  # GitHub
    r"gl(?:pat|dt|ptt|rt|cbt|ft|soat|oas|agent|imt|ffct)-[\w.-]{16,300}",  # GitLab
    r"hf_[A-Za-z0-9]{20,100}|api_org_[A-Za-z]{30,60}",  # Hugging Face
    r"pypi-[\w-]{50,1000}|npm_[A-Za-z0-9]{36}",
    r"sk-(?:proj|svcacct|admin|ant|or)-[\w-]{16,300}|sk-[A-Za-z0-9]{20,100}",  # OpenAI, Anthropic, OpenRouter
    r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,124}",  # AWS
    r"(?:LTAI|AKID|AKLT)[A-Za-z0-9]{12,60}",  # Alibaba, Tencent, Volcano
    r"AIza[\w-]{35}|ya29\.[\w-]{20,300}|1//0[\w-]{30,200}|GOCSPX-[\w-]{28}",  # Google
    r"eyJ[\w-]{8,4000}\.[\w-]{8,8000}(?:\.[\w-]{0,4000}){0,3}",  # JSON Web Tokens
    r"nvapi-[\w-]{40,100}|wandb_v1_\w{20,120}",  # NGC, W&B
    r"xox[abeoprs](?:\.xox[bp])?-[\w-]{10,300}|xapp-\d-[\w-]{10,200}",  # Slack
    r"\d{8,10}:AA[\w-]{33}|[\w~.]{3}\dQ~[\w~.-]{31,34}",  # Telegram, Microsoft Entra
)

_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
# RFC 1918, RFC 3927, RFC 6598; a version begins with 10 as often
_PRIVATE = r"192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\."
_VERSION = r"(?i)version|driver|cu(?:da|dnn|\d\d)|curand|cublas|rocm|[=<>~!]=|[\w+-]$"
_BEFORE = (
    r"(?i)(?:[/@\[]|::ffff:|\b(?:inet|addr(?:ess)?|ip(?:v4)?|host(?:name)?|server|peer|gateway|nameserver|dns|proxy|via|ping"
    r"|ssh|route|client|connect(?:ed|ing|ion)?(?: to)?|listening on|refused by|disconnect from"
    r"|地址|网关|服务器)[\"']?[ \t:=：]{0,3}[\"']?)$"
)
_CONTEXT = 40


def _replace_private_address(found: re.Match[str]) -> str:
    """Return "0.0.0.0" for what is private, has a port or follows a word for addresses; else the text unchanged."""
    before = found.string[max(0, found.start() - _CONTEXT) : found.start()].rpartition("\n")[2]
    port = re.match(r":\d{2,5}\b|<\d{2,5}>", found.string[found.end() : found.end() + 7])
    lan = found[0].startswith("10.") and not re.search(_VERSION, before)
    address = "ersion" not in before and (lan or re.match(_PRIVATE, found[0]) or re.search(_BEFORE, before) or port)
    return "0.0.0.0" if address else found[0]  # noqa: S104 - an address to print


_HOMES = rf"home[s\d]{{0,3}}|{either(words('homes'))}"
# What stands in a person's place and names nobody.
_NO_PERSON = (
    rf"(?:{either(words('nobody', 'folder'))})(?:\d{{0,3}}|\.\w{{1,9}})(?![\w.-])|[a-z]:?[/\\]|127\.|0\.0\.0\.0|::1"
)

_HASH = (
    r"(?i)(?:commit|rev(?:ision)?|hash|sha\d*|md5|digest|blob|tree|head|check(?:ed )?out|snapshot|git|etag|branch|tag"
    r"|h1|build|version)\W{0,9}$|[/\\@#]$"
)
_LETTERS = r"[a-z]{3,}"
MIXED, DIGITS = (
    0.35,
    0.3,
)  # chosen: least share of changes, in words of three kinds and of digits with letters of a case
SHORTEST, DISTINCT = 24, 9  # chosen: of the latter, the least length, and signs of which it has more
MANY = 24  # chosen: signs of which a long word of three kinds has more; of 62 signs drawn 60 times 38 are different
_KINDS = (str.islower, str.isupper, str.isdigit)


def _replace_random_word(found: re.Match[str]) -> str:
    """Return SECRET for a word that looks drawn by chance, as keys do; hashes and other words unchanged."""
    before = found.string[max(0, found.start() - _CONTEXT) : found.start()]
    return found[0] if re.search(_HASH, before) or not is_random(found[0]) else SECRET


def is_random(word: str) -> bool:
    """Return whether the signs of a word of 20 or more look drawn by chance.

    In a random word of capitals, small letters and digits six of ten signs are of another kind than the one before
    (1 - sum of squared shares), of hexadecimal or base-36 digits four to five; in names it is one or two of ten, and
    most small letters stand in runs of three and more.
    """
    kinds = [next((number for number, is_kind in enumerate(_KINDS) if is_kind(sign)), -1) for sign in word]
    changes = sum(one != other and -1 not in {one, other} for one, other in pairwise(kinds)) / (len(word) - 1)
    if kinds.count(-1) > 0.08 * len(word):
        return False
    found = {*kinds} - {-1}
    if len(found) == len(_KINDS):
        return (
            changes >= MIXED
            and len({*word}) > min(0.4 * len(word), MANY)
            and sum(map(len, re.findall(_LETTERS, word))) < 0.4 * len(word)
        )
    longest = max(map(len, re.split(r"[_-]", word)))
    return found in ({0, 2}, {1, 2}) and longest >= SHORTEST and changes >= DIGITS and len({*word}) > DISTINCT


# Lines of tools in which a name stands without a label: what stands before it, in a group, and the name.
_NAME = r"(?!root\b|\d{1,9}\b)[A-Za-z0-9_][\w.-]{0,63}"
_TIME = r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4})"
_HOST_LINES = (
    rf"(\bLinux ){_NAME}(?= \d{{1,2}}\.\d{{1,3}}\.\d{{1,3}}[\w.+~-]{{0,60}} #)",  # uname
    rf"(\bnode(?:name)?='){_NAME}(?=')",  # Python's platform.uname()
    rf"(^{_TIME} ){_NAME}(?= [\w./()-]{{1,60}}(?:\[\d{{1,8}}\])?:)",  # syslog, journalctl
    rf"(\[)(?!localhost){_NAME}(?=\]:\d{{2,5}}\b)|(^[ \t]{{1,9}}host[ \t]{{1,9}}: ){_NAME}",  # torch.distributed
    rf"(\b(?:srun|slurmstepd): error: (?:\*\*\* [A-Z]{{3,4}} [\d.]{{1,16}} ON )?){_NAME}(?=: task| CANCELLED)",  # Slurm
    rf"(^(?:\[[^\]\n]{{1,40}}\]:?[ \t]?)?){_NAME}(?=:\d{{1,8}}:\d{{1,8}} \[\d{{1,3}}\] NCCL )",  # NCCL
)


def _replace_after(found: re.Match[str]) -> str:
    """Return what stands before a computer's name in a tool's output, with "host" in its place."""
    return next(filter(None, found.groups()), "") + "host"


def _replace_uuid(found: re.Match[str]) -> str:
    """Return a UUID of zeros, but that of a class or an interface unchanged."""
    return found[1] or "00000000-0000-0000-0000-000000000000"


RULES: tuple[Rule, ...] = (
    Rule(
        "private key",
        r"-----BEGIN[A-Z0-9 +%]{1,50}PRIVATE(?: |%20|\+)KEY(?:(?: |%20|\+)BLOCK)?-----(?:[^-]|-(?!----)){0,20000}"
        r"(?:-----END[A-Z0-9 +%]{1,50}KEY(?:(?: |%20|\+)BLOCK)?-----)?",
        SECRET,
        ("private",),
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----",
        "PEM, OpenSSH and PGP frame their keys alike; one that was cut off is taken out up to its end.",
    ),
    Rule(
        "header",
        r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|(?:private|job|deploy)-token|x-[a-z-]{0,30}(?:token|key)"
        r"|x-jfrog-art-api|ocp-apim-subscription-key)"
        r"(\\{0,4}[\"']?[ \t]{0,3}:[ \t]{0,3}\\{0,4}[\"']?)[^\r\n\"'\\]{3,4000}",
        rf"\1\2{SECRET}",
        ("authorization", "cookie", "-token", "-key", "-art-api"),
        "Authorization: Basic amFuZTpodW50ZXIy",
        "The value goes to the end of its line or string, as a cookie holds many.",
    ),
    Rule(
        "bearer",
        r"\b([Bb]earer|BEARER|Basic|Negotiate)([ \t]{1,3}|%20|\+)(?=[a-z-]{0,60}[A-Z0-9_.~+/=])[\w.~+/=-]{8,4000}",
        rf"\1\2{SECRET}",
        ("bearer", "basic", "negotiate"),
        "Bearer 9f8e7d6c5b4a",
        "HTTP's schemes name what follows; a plain word such as `authentication` is prose.",
    ),
    Rule(
        "user and password in an address",
        rf"(\b[A-Za-z][\w+.-]{{1,20}}:(?:\\?/){{2}})(?!(?:git|hg|svn)@){_PLACE}[^\s/?#\"'<>|\\]{{1,500}}@",
        r"\1",
        ("@",),
        "https://jane:hunter2@pypi.example.org/simple",
        "RFC 3986 `userinfo`, in indexes, proxies and databases; the address works on with keyring, netrc or a prompt.",
    ),
    Rule(
        "signed address",
        rf"(?i)((?:[?&;#]|\\u0026|%26)(?:[\w.%-]{{0,40}}{_ADDRESS_NAMES}|[\w-]{{0,20}}key|x-(?:amz|goog)-[a-z-]{{0,20}}credential"
        r"|sig|auth|[\w-]{0,20}_auth|key-pair-id|policy|googleaccessid|awsaccesskeyid|sktid|skoid|jwt|code(?=[^&]{16}))"
        rf"(?:=|%3D)){_PLACE}[^\s&#;\"'<>\\]{{1,4000}}",
        rf"\1{SECRET}",
        ("=", "%3d"),
        "https://corp.blob.core.windows.net/x.whl?sv=2024-11-04&sig=AbCd%2Fx%3D&se=2026-12-01",
        "Azure's SAS, AWS' and Google's signed URLs, tokens of Jupyter and of company indexes.",
    ),
    Rule(
        "token",
        rf"(?<![A-Za-z0-9_])(?:{'|'.join(_TOKENS)})",
        SECRET,
        ("",),
        "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
        "Known by its form wherever it stands.",
    ),
    Rule(
        "address that is a secret",
        r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/|/t/(?=[\w-]{16}))"
        r"[^\s\"'<>\\/]{4,400}(?:/[^\s\"'<>\\/]{8,400}){0,3}",
        rf"\1{SECRET}",
        ("hook", "/t/"),
        "https://hooks.slack.com/services/T00000000/B00000000/XyZ0123456789abcdefghijk",
        "Whoever has such an address may post, or read a channel of Anaconda (/t/TOKEN/channel).",
    ),
    Rule(
        "named like a password",
        rf"(?i)((?:{either(_PASSWORDS)})(?![\w.-]){_GIVEN}{_QUOTE}){_PLACE}{_NOTHING}"
        rf"(?!/|(?:{either(_PASSWORDS)})\b){_VALUE}",
        rf"\1{SECRET}",
        needs(_PASSWORDS),
        "DB_PASSWORD=correct-horse",
        "Settings, variables of sh, cmd and PowerShell, JSON, connection strings. `PWD=/x` is a folder.",
    ),
    Rule(
        "named like a secret",
        rf"(?i)((?:{either(_SECRETS)}|[:_]_auth|{_SUFFIX})(?![\w.-]){_GIVEN}{_QUOTE})"
        rf"{_PLACE}{_NOTHING}{_CODE}(?=[^\s\"']{{3}}){_VALUE}",
        rf"\1{SECRET}",
        (*needs((*_SECRETS, *words("suffix"))), "_auth"),
        '$env:WANDB_API_KEY = "0123456789abcdef"',
        "As above; numbers of few digits, `<pad>`, calls and words of code are no secrets.",
    ),
    Rule(
        "secret in a sentence",
        rf"(?i)((?-i:(?!{SECRET}\b))(?:{either((*_PASSWORDS, *_SECRETS))})[\"'”»]?"
        r"(?:[ \t]{1,3}(?:is|was|to|of|ist|lautet|est|es|è)(?=[ \t:])[ \t:]{1,3}"
        rf"|[ \t]?[是为為][ \t]{{0,3}}|[ \t]{{1,3}}|[ \t]?\|[ \t]?){_QUOTE})"
        r"(?:(?<=[是为為])|(?<=[是为為][ \"'])|(?<=(?:is|st|as|es) [\"'])|(?=[!-~]{0,60}\d)(?=[!-~]{0,60}[A-Za-z]))"
        r"(?![\w.-]{1,60}\.(?:py|json|txt|ya?ml|toml|cfg|safetensors|c|cpp|h)\b)[!#-&(-+\--;=?-~]{4,400}",
        rf"\1{SECRET}",
        needs((*_PASSWORDS, *_SECRETS)),
        "your API key is 9f8e7d6c5b4a, mein Passwort lautet hunter2x",
        "Also a row of a table, and `setx HF_TOKEN x`. What has no digit among letters is a word of the sentence.",
    ),
    Rule(
        "variable set by a command",
        rf"((?m:^|[;&>$%#] )[ \t]{{0,9}}(?:[a-z]{{2,12}}[ \t])?"
        rf"(?:set|setx|setenv|export|config|env)[ \t]{{1,3}}(?:-{{1,2}}[\w-]{{1,20}}[ \t]{{1,3}}){{0,3}}"
        rf"[A-Za-z][\w.-]{{0,60}}(?i:{either((*_PASSWORDS, *_SECRETS))}|{_SUFFIX})[\w.-]{{0,40}}[ \t]{{1,3}}{_QUOTE})"
        r"[^\s\"'=:]{4,400}",
        rf"\1{SECRET}",
        ("set ", "setx ", "setenv ", "export ", "config ", "env "),
        "set -gx HF_TOKEN correct-horse",
        "fish, csh, cmd and Poetry have no sign between name and value.",
    ),
    Rule(
        "secret of a command",
        rf"(?i)((?:(?<![^\s\"'\[,])(?:--?|/)[\w-]{{0,30}}(?:{either((*_PASSWORDS, *_SECRETS, 'key', 'pass'))})"
        r"(?:in|out)?[\"',]{0,3}[ \t=:]{1,3}(?:pass:)?"
        r"|\b(?:sshpass|docker|podman|helm|mysql\w{0,9}|mariadb\w{0,9}|redis-cli|ldap\w{1,9}|mongo\w{0,9}|7z\w?|unzip|smbclient|az|oc|lftp)\b"
        r"[^|;\r\n]{0,120}?(?-i:[ \t]-[pPaw])(?<!docker run -p)[ \t]{0,3}(?![ \t]|\d{1,5}:\d|\d{1,5}\b)"
        r"|\b(?:wandb|hf|huggingface-cli) login[ \t]{1,3}(?!-)|\"key\":[ \t]?\"(?=[0-9a-f]{32}\")"
        r"|(?<![^\s\"'\[,])(?:-u|--user|--proxy-user)[\"',]{0,3}[ \t=]{1,3}"
        r"(?=\\{0,4}[\"']?(?!\d{1,9}:\d{1,9}\b)[\w.@-]{1,60}:))"
        rf"\\{{0,4}}[\"']?){_PLACE}"
        r"(?!(?-i:[A-Z_]{2,40}\b)|(?:is|was|are|and|or|not|to|for|must|option|required|missing|in)\b|-)[^\s\"'\\]{3,500}",
        rf"\1{SECRET}",
        ("-", "/pass", " login ", '"key"'),
        "curl -u jane:hunter2 https://example.org",
        "Programs print the command that failed, as text or as a list.",
    ),
    Rule(
        "netrc",
        rf"((?:\b|(?<=\\[nrt]))machine{_GAP}{_WORD}{_GAP}login{_GAP}){_WORD}({_GAP}(?:account{_GAP}{_WORD}{_GAP})?password{_GAP}){_WORD}",
        rf"\1{SECRET}\2{SECRET}",
        ("login",),
        "machine pypi.example.org login jane password hunter2",
        "netrc(5) has no sign between name and value.",
    ),
    Rule(
        "line of a netrc",
        r"(?m)^([ \t]{0,9}(?:login|password)[ \t]{1,9})(?!(?:is|required|failed|incorrect|expired|prompt|needed)\b)"
        r"\S{2,200}(?=[ \t]{0,9}\r?$)",
        rf"\1{SECRET}",
        ("login", "password"),
        "  password hunter2",
        "It may be written over several lines.",
    ),
    Rule(
        "login of docker and npm",
        r"(\\{0,4}\"(?:auth|identitytoken)\\{0,4}\"[ \t]{0,3}:[ \t]{0,3}\\{0,4}\""
        r"|_auth[ \t]{0,3}=[ \t]{0,3}\"?)[\w+/=.-]{8,2000}",
        rf"\1{SECRET}",
        ("auth", "identitytoken"),
        '"auth": "amFuZTpodW50ZXIy"',
        "~/.docker/config.json and .npmrc hold user and password in base64.",
    ),
    Rule(
        "word drawn by chance",
        r"(?<![A-Za-z0-9+~_-])(?!_Z|lambda_|sha\d|[\w-]{0,60}\dx\d{1,4}x|(?:[0-9a-f]{8}){4,16}\b)"
        r"[A-Za-z0-9+~_-]{20,400}={0,2}(?![A-Za-z0-9+~_-]|\.(?:so|dll|py|whl|pt|bin|json|safetensors)\b)",
        _replace_random_word,
        ("",),
        "W&B says x7Gq2LmZ9vTb4KpR8sWn",
        "Makers draw tokens by chance, and no list has all makers. Hashes follow a word that says so, or a slash.",
    ),
    Rule(
        "home folder in a file address",
        r"(?i)(\bfile:/{1,3}(?:localhost/)?(?:[a-z](?::|%3a|\|)/)?(?:(?:var/|export/)?home|users)/)(?!public\b|shared\b)"
        r"[^/\s\"'#?<>]{1,64}",
        r"\1user",
        ("file:",),
        "own @ file:///home/jane/own-1-py3-none-any.whl",
        "Nobody else has that folder: a reader sees which part to fill in.",
    ),
    Rule(
        "home folder with blanks",
        r"([A-Za-z]:\\{1,4}(?:Users|Documents and Settings)\\{1,4}|/mnt/[a-z]/Users/)(?!Public\b|Default\b)"
        r"[^\\/:*?\"<>|\r\n']{1,64}(?=[\\/])",
        r"\1user",
        ("users", "settings"),
        r"C:\Users\Jane Doe\AppData",
        "Windows allows blanks in the names of accounts.",
        usable=False,
    ),
    Rule(
        "home folder",
        rf"(?i)((?:(?<=[/\\])|(?<=%2F)|(?<=%5C))(?:{_HOMES})(?:[/\\]{{1,4}}(?:(?P<initial>[a-z])[/\\](?=(?P=initial)))?|%2F|%5C)"
        r"|(?<![\w.])/(?:scratch|gpfs|lustre|nfs|beegfs|run/media|media)\w{0,9}/(?!(?:home|users)\w?/))"
        rf"(?!(?:public|shared|default|all users)\b)(?:(?!%2F|%5C)[^/\\\s\"':;,|<>)\]}}`&?#=]){{1,64}}",
        r"\1user",
        ("/", "\\", "%2f", "%5c"),
        "/home/jane/env/bin/python",
        "Its name is mostly the user's, also on the disks that a cluster shares (/scratch/jane).",
        usable=False,
    ),
    Rule(
        "folder above a user's own",
        rf"((?<!/)(?<![a-z]{{2}}:)/(?!/)|\\{{1,2}})(?!(?i:\.|{_NO_PERSON}))[^/\\\s\"':;,|<>)\]}}`&?#=]{{2,64}}"
        r"(?=[/\\]{1,4}(?:(?i:(?:ana|mini)conda|mini(?:forge|mamba)|mambaforge)\d?|\.(?:cache|conda|local|config|virtualenvs|pyenv|ssh)"
        r"|Desktop|Documents|Downloads|OneDrive\b[^/\\]{0,40}|桌面|文档|下载)[/\\])",
        r"\1user",
        ("conda", "forge", "mamba", "/.", "\\.", "desktop", "document", "download", "onedrive", "桌面", "文档", "下载"),
        "/data/jane/miniconda3/bin/python",
        "Whoever's environments or downloads lie there has given the folder a name.",
        usable=False,
    ),
    Rule(
        "Chinese name as a folder",
        rf"(?<=[/\\])(?:(?!{either(words('ordinary'))})[{''.join(words('surname'))}][\u4e00-\u9fff]{{1,2}}"
        rf"|[^/\\\s]{{2,20}}(?:{either(words('organisation'))}))(?=[/\\])",
        "user",
        ("/", "\\"),
        r"D:\张伟\ComfyUI",
        "The hundred commonest surnames with one or two signs, but for ordinary words; and how names of companies end.",
        usable=False,
    ),
    Rule(
        "name of a company's share",
        r"(?i)(\bonedrive - )[^\\/\r\n\"']{2,60}(?=[\\/])|((?:smb|nfs|cifs|afp)://)[^\s/\"']{2,80}(?:/[^\s/\"']{1,60})?"
        r"|((?<![^\s\"'(=\[,])\\\\(?:\\\\)?)(?!wsl|[?.]\\)[\w.-]{2,63}(?:\\{1,2}[\w$.-]{1,63})(?=[\\\s\"']|$)"
        r"|(?<!\S)//[\w.-]{2,63}/[\w$.-]{1,63}(?= on /)",
        r"\1\2\3host",
        ("onedrive", "://", "\\\\", "//"),
        r"\\fileserver\jane$\torch",
        "Windows' network paths, OneDrive of an organisation, mounted shares.",
        usable=False,
    ),
    Rule(
        "folder of macOS for one user",
        r"(/var/folders/)[\w+-]{2}/[\w+-]{4,40}",
        r"\1xx/user",
        ("/var/folders/",),
        "/private/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T",
        "The name is made from the user's own UUID.",
        usable=False,
    ),
    Rule(
        "mail address",
        r"(?<![\w.+/@?-])(?!git@)[\w.+-]{2,64}@(?!GLIBC|GCC_|CXXABI|OPENSSL|CUDA|lib|sha256)(?=[A-Za-z])[\w-]{2,63}(?:\.[\w-]{1,63})*(?!@|\w)",
        "user@host",
        ("@",),
        "jane.doe@example.org",
        "Also the prompt of a shell; `torch@2.6.0` and `memcpy@GLIBC_2.14` are versions.",
        usable=False,
    ),
    Rule(
        "UUID",
        r"(?i)((?<!volume)(?<!adapter )(?<!interfaces\\)\{[0-9a-f-]{36}\}|\bscheme guid: [0-9a-f-]{36})"
        r"|\b(?![0-9a-f]{8}-e325-11ce-bfc1-08002be10318|f01a9d53-3ff6-48d2-9f97-|8be4df61-93ca-11d2-aa0d-)"
        r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b",
        _replace_uuid,
        ("-",),
        "GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16",
        "Of GPUs, disks, boards and accounts; device classes of Windows and EFI are the same everywhere.",
        usable=False,
    ),
    Rule(
        "UUID without dashes",
        r"(?i)((?:machine[ _-]?id|boot[ _-]?id|uuid|guid|serial)\W{1,6})[0-9a-f]{32}\b|(\bGPU-)[0-9a-f]{16}\b",
        r"\g<1>\g<2>0000000000000000",
        ("id", "serial", "gpu-"),
        "Uuid: GPU-8e1a5a8c5b2f4d11",
        "systemd's machine-id; rocminfo writes sixteen digits.",
        usable=False,
    ),
    Rule(
        "Windows account",
        r"\bS-1-(?:5-21|12-1)(?:-\d{1,10}){3,4}\b",
        "S-1-5-21-0",
        ("s-1-",),
        "S-1-5-21-3623811015-3361044348-30300820-1013",
        "The security identifier of a user, and of one of Entra.",
        usable=False,
    ),
    Rule(
        "hardware address",
        r"(?<![0-9A-Za-z:-])[0-9a-fA-F]{2}[:-][0-9a-fA-F]{2}[:-](?:[0-9a-fA-F]{2}[:-]){3}[0-9a-fA-F]{2}(?![\w:-])"
        r"|(?<![\w.])[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}(?![\w.])"
        r"|((?i:address|hwaddr|ether|\bmac|物理地址)[ :=：]{1,3})[0-9a-fA-F]{12}(?!\w)",
        r"\g<1>00:00:00:00:00:00",
        (":", "-", ".", "mac", "ether", "addr"),
        "link/ether 52:54:00:12:34:56",
        "MAC addresses follow a machine through networks.",
        usable=False,
    ),
    Rule(
        "IPv6 address",
        r"(?i)(?<![\w:])(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:f[cd]|fe[89ab])[0-9a-f]{1,2}:[0-9a-f:]{2,40}"
        r"|[23][0-9a-f]{3}(?::[0-9a-f]{1,4}){0,6}::[0-9a-f:]{0,36})(?![\w:])",
        "::",
        (":",),
        "inet6 fe80::1ff:fe23:4567:890a scope link",
        "Local ones are made from the hardware address.",
        usable=False,
    ),
    Rule(
        "number of a device or a person",
        rf"(?i)((?<![A-Za-z])(?:{either(words('number'))})(?![A-Za-z])[^:=：\n\"]{{0,40}}"
        r"(?:\"?[ \t]{0,3}[:=：>][ \t]{0,60}\"?|[ \t]{2,60}|[ \t](?=[A-Z0-9-]{0,20}\d{3})|(?<=[是为号])))"
        r"(?!N/A|0x)(?=[A-Za-z-]{0,30}\d)[A-Za-z0-9-]{4,64}",
        r"\g<1>0",
        needs(words("number")),
        "Serial Number (system): C02XK0ABJG5H",
        "As nvidia-smi, system_profiler, dmidecode, Windows and the KFD topology write it.",
        usable=False,
    ),
    Rule(
        "name of a computer or user",
        rf"(?i)((?<![A-Za-z])(?:{either(words('user', 'host'))})"
        rf"\\{{0,4}}[\"']?[ \t.]{{0,60}}[:=：][ \t]{{0,60}}{_QUOTE}"
        rf"|(?<![\w.-])(?-i:{either(map(str.upper, words('variable')))}){_GIVEN}{_QUOTE})(?![ \t])"
        rf"(?!{_NO_PERSON}|[\[<{{(%$\\/])[^\r\n\"',;\\()&<]{{2,64}}",
        r"\1host",
        needs((*words("user", "host", "variable"),)),
        "Machine name: DESKTOP-7QK2M4P (Id: 0)",
        "dxdiag, systeminfo and set name them in a line of their own.",
        usable=False,
    ),
    Rule(
        "name of a computer by its form",
        r"\b(?:(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{7,11}|[\w-]{1,50}-(?:MacBook|MBP|iMac|Mac-mini|Mac-Studio)(?:-(?:Air|Pro))?(?:-\d)?"
        r"(?:\.local)?)(?![\w-])",
        "host",
        ("desktop-", "laptop-", "win-", "-mac", "-mbp", "-imac"),
        "LAPTOP-3F9K2LQ8",
        "Names that Windows and macOS give.",
        usable=False,
    ),
    Rule(
        "computer in a tool's output",
        "(?m)" + "|".join(_HOST_LINES),
        _replace_after,
        ("",),
        "Nov 22 16:10:40 workbench kernel: NVRM: Xid (PCI:0000:01:00): 79",
        "The tools that write it without a label: `_HOST_LINES`.",
        usable=False,
    ),
    Rule(
        "IPv4 address",
        rf"(?<![\w.<>~-])(?<![=<>~!]=)(?!127\.|0\.0\.0\.0|255\.|8\.8\.|1\.1\.1\.1|114\.114\.)(?:{_BYTE}\.){{3}}{_BYTE}(?![\w.-])",
        _replace_private_address,
        (".",),
        "inet 192.168.17.23/24",
        "Four numbers are a version as often (cuDNN 9.10.2.21, drivers of Windows): range and context decide.",
        usable=False,
    ),
)
