"""Removes what must not leave this machine from texts, records and messages, by one table of rules.

Whatever is written to be sent, pasted or kept passes `redact`. What only the machine knows (names, values of secret
variables) is passed in as `PrivateNames`, which `host/live.py` collects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypeVar

from assistant.i18n import Message

SECRET = "SECRET"  # noqa: S105 - what stands where something was taken out


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


# A name that ends so holds a secret, in an address, a file of settings or a variable.
_NAMES = (
    r"(?:token|secret|passw(?:or)?d|passphrase|pwd|signature|credentials?|[:_]_auth|authkey"
    r"|(?:api|access|secret|private|account|auth|signing|encryption|shared[_-]?access|subscription|license)[_-]?key)"
)
# A variable of the shell, cmd, PowerShell or GitHub Actions, or "<your password>", is a place to fill in.
_PLACE = r"(?!\\{0,4}[\"']?(?:\$\{{0,2}\s?[A-Za-z_]|%\w{1,60}%|<[^<>\r\n]{1,60}>|\{\w{0,40}\}|\*{3}))"
# What models and programs call a token is no secret: `pad_token=<pad>`, `max_token: 4096`, `token = self.next()`.
_NO_VALUE = (
    r"(?!\\{0,4}[\"']?(?:(?:none|null|true|false|nil|str|bytes|int|\d{1,6}(?:\.\d{1,6})?)(?![\w@$!-])|[<\[]"
    r"|self\.|[a-z_][\w.]{0,80}\())"
)
_GIVEN = r"(\\{0,4}[\"']?[ \t]{0,3}(?:=>|[:=])[ \t]{0,3}(?![ \t=:]))"
_VALUE = (
    r"(?:(\\{1,4}[\"'])[^\"'\r\n\\]{1,500}|(\")(?:[^\"\r\n\\]|\\.){1,500}|(')(?:[^'\r\n\\]|\\.){1,500}"
    r"|[^\s\"'`;<>&,)\\](?:[^\s\"';<>\\&]|&(?![\w.-]{1,40}=)|\\(?![\"'nrt]))*)"
)

# Formats as their makers or gitleaks' table (config/gitleaks.toml, 2026-11) give them; lengths keep names of packages
# such as hf_transfer and sk-learn out.
_TOKENS = (
    r"gh[pousr]_[A-Za-z0-9]{16,255}",  # GitHub
    r"github_pat_\w{20,255}",
    r"gl(?:pat|dt|ptt|rt|cbt|ft|soat|oas|agent|imt|ffct)-[\w.-]{16,300}",  # GitLab
    r"hf_[A-Za-z0-9]{20,100}|api_org_[A-Za-z]{30,60}",  # Hugging Face
    r"pypi-[\w-]{50,1000}",
    r"npm_[A-Za-z0-9]{36}",
    r"xox[abeoprs](?:\.xox[bp])?-[\w-]{10,300}|xapp-\d-[\w-]{10,200}",  # Slack
    r"sk-(?:proj|svcacct|admin|ant|or)-[\w-]{16,300}|sk-[A-Za-z0-9]{20,100}",  # OpenAI, Anthropic, OpenRouter
    r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,124}|ABSK[A-Za-z0-9+/]{100,300}={0,2}",  # AWS
    r"AIza[\w-]{35}|ya29\.[\w-]{20,300}|1//0[\w-]{30,200}|GOCSPX-[\w-]{28}",  # Google
    r"[\w~.]{3}\dQ~[\w~.-]{31,34}",  # Microsoft Entra
    r"eyJ[\w-]{8,4000}\.[\w-]{8,8000}(?:\.[\w-]{0,4000}){0,3}|eyJrIjoi[A-Za-z0-9+/=]{40,400}",  # JWT, Grafana
    r"gl(?:c_[A-Za-z0-9+/]{32,400}={0,3}|sa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})",  # Grafana
    r"(?:sk|rk|pk|whsec)_(?:live|test|prod)_[A-Za-z0-9]{10,99}|whsec_[A-Za-z0-9+/=]{24,99}",  # Stripe
    r"SG\.[\w.-]{40,80}|key-[a-f0-9]{32}|xkeysib-[\w-]{60,90}|SK[a-f0-9]{32}",  # SendGrid, Mailgun, Brevo, Twilio
    r"do[por]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}(?:-\d)?|HRKU-AA[\w-]{58}",  # DigitalOcean, Databricks, Heroku
    r"hv[sbr]\.[\w-]{20,300}|[\w-]{14}\.atlasv1\.[\w=-]{60,70}",  # HashiCorp
    r"AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59}|sha256~[\w-]{43}",  # Artifactory, OpenShift
    r"dckr_(?:pat|oat)_[\w-]{20,100}|rubygems_[a-f0-9]{48}|cio[A-Za-z0-9]{32}",  # Docker, RubyGems, crates.io
    r"PMAK-[\w-]{50,70}|lin_api_[A-Za-z0-9]{40}|ntn_[A-Za-z0-9]{46}|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",
    r"r8_[A-Za-z0-9]{37}|gsk_[A-Za-z0-9]{40,60}|pplx-[A-Za-z0-9]{40,60}|wandb_v1_\w{20,120}",  # Replicate, Groq, W&B
    r"nvapi-[\w-]{40,100}|KGAT_[a-f0-9]{32}|xai-[A-Za-z0-9]{60,100}|tskey-[\w-]{20,100}",  # NGC, Kaggle, xAI, Tailscale
    r"ATATT3[\w=-]{60,300}|sntry[su]_[\w+/=-]{40,400}|LTAI[A-Za-z0-9]{12,30}",  # Atlassian, Sentry, Alibaba
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|AGE-SECRET-KEY-1[A-Z0-9]{58}|ops_eyJ[A-Za-z0-9+/]{40,2000}={0,3}",
    r"\d{8,10}:AA[\w-]{33}",  # Telegram
)


_GAP, _WORD = r"(?:\s|\\{1,4}[nrt]){1,9}", r"[^\s\\\"]{1,200}"  # a line break may be written as in JSON
_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
# RFC 1918 (10/8 is left to its context: cuRAND is 10.3.2.106), RFC 3927, RFC 6598
_PRIVATE = re.compile(r"192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.")
_BEFORE = (
    r"(?i)(?:[/@\[]|\b(?:inet|addr(?:ess)?|ip(?:v4)?|host(?:name)?|server|peer|gateway|nameserver|dns|proxy|via|ping|ssh|route|client"
    r"|connect(?:ed|ing|ion)?(?: to)?|listening on|refused by)[\"']?[ \t:=]{0,3}[\"']?)$"
)
_CONTEXT = 40


def _replace_private_address(found: re.Match[str]) -> str:
    """Return "0.0.0.0" for what is private, has a port or follows a word for addresses; else the text unchanged."""
    before = found.string[max(0, found.start() - _CONTEXT) : found.start()].rpartition("\n")[2]
    port = re.match(r":\d{2,5}\b", found.string[found.end() : found.end() + 7])
    address = "ersion" not in before and (_PRIVATE.match(found[0]) or _compiled(_BEFORE).search(before) or port)
    return "0.0.0.0" if address else found[0]  # noqa: S104 - an address to print


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
        rf"(?i)((?:[?&;#]|\\u0026|%26)(?:[\w.%-]{{0,40}}{_NAMES}|[\w-]{{0,20}}key|x-(?:amz|goog)-[a-z-]{{0,20}}credential"
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
        "webhook",
        r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/)"
        r"[^\s\"'<>\\]{4,400}",
        rf"\1{SECRET}",
        ("hook",),
        "https://hooks.slack.com/services/T00000000/B00000000/XyZ0123456789abcdefghijk",
        "Whoever has such an address may post; its path is the secret.",
    ),
    Rule(
        "named like a password",
        rf"(?i)((?:passw(?:or)?d|passphrase|pwd)(?![\w.-])){_GIVEN}{_PLACE}"
        rf"(?!\\{{0,4}}[\"']?(?:none|null|true|false|str)\b|[a-z_][\w.]{{0,80}}\(|/){_VALUE}",
        rf"\1\2\3\4\5{SECRET}",
        ("pass", "pwd"),
        "DB_PASSWORD=correct-horse",
        "Settings, variables of sh, cmd and PowerShell, JSON, connection strings. `PWD=/x` is a folder.",
    ),
    Rule(
        "named like a secret",
        rf"(?i)((?:{_NAMES}|(?-i:_(?:KEY|PAT|AUTH|SAS|DSN|TOKENS)))(?![\w.-])){_GIVEN}{_PLACE}{_NO_VALUE}"
        rf"(?=\\{{0,4}}[\"']?[^\s\"']{{3}}){_VALUE}",
        rf"\1\2\3\4\5{SECRET}",
        ("token", "secret", "pass", "pwd", "key", "credential", "signature", "auth", "_pat", "_sas", "_dsn"),
        '$env:WANDB_API_KEY = "0123456789abcdef"',
        "As above; numbers of few digits, `<pad>` and calls are no secrets.",
    ),
    Rule(
        "secret of a command",
        r"((?:\s|^|[\"'\[,])(?:--[\w-]{0,30}(?:token|password|passwd|secret|api-key|auth-key)[\"',]{0,3}[ \t]{1,3}"
        r"|sshpass[ \t]{1,3}-p[ \t]{0,3}"
        r"|(?:-u|--user|--proxy-user)[\"',]{0,3}[ \t=]{1,3}"
        r"(?=\\{0,4}[\"']?(?!\d{1,9}:\d{1,9}\b)[\w.@-]{1,60}:))\\{0,4}[\"']?)"
        rf"{_PLACE}(?!(?:[A-Z_]{{2,40}}|is|was|are|and|or|not|to|for|must|option|required|missing)\b)[^\s\"'\\]{{3,500}}",
        rf"\1{SECRET}",
        ("--", "sshpass", "-u"),
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
        r"(?i)((?<![\w.])(?:/private|/var|/export|/system/volumes/data|/host)?/(?:home|users)/|\b[a-z]:[\\/]{1,4}users[\\/]{1,4}"
        r"|%2F(?:home|users)%2F|\b[a-z](?::|%3A)%5CUsers%5C)"
        r"(?!public\b|shared\b)(?:(?!%2F|%5C)[^/\\\s\"':;,|<>)\]}`&?#=]){1,64}",
        r"\1user",
        ("home", "users"),
        "/home/jane/env/bin/python",
        "Its name is mostly the user's.",
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
        r"(?<![\w.+/@-])(?!git@)[\w.+-]{2,64}@(?!GLIBC|GCC_|CXXABI|OPENSSL|CUDA|lib)(?=[A-Za-z])[\w-]{2,63}(?:\.[\w-]{1,63})*",
        "user@host",
        ("@",),
        "jane.doe@example.org",
        "Also the prompt of a shell; `torch@2.6.0` and `memcpy@GLIBC_2.14` are versions.",
        usable=False,
    ),
    Rule(
        "UUID",
        r"(?i)\b(?![0-9a-f]{8}-e325-11ce-bfc1-08002be10318|f01a9d53-3ff6-48d2-9f97-|8be4df61-93ca-11d2-aa0d-)"
        r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b",
        "00000000-0000-0000-0000-000000000000",
        ("-",),
        "GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16",
        "Of GPUs, disks, boards and accounts; device classes of Windows and EFI are the same everywhere.",
        usable=False,
    ),
    Rule(
        "AMD's UUID",
        r"\bGPU-[0-9a-fA-F]{16}\b",
        "GPU-0000000000000000",
        ("gpu-",),
        "Uuid: GPU-8e1a5a8c5b2f4d11",
        "rocminfo writes sixteen digits.",
        usable=False,
    ),
    Rule(
        "Windows account",
        r"\bS-1-5-21(?:-\d{1,10}){3,4}\b",
        "S-1-5-21-0",
        ("s-1-5-21",),
        "S-1-5-21-3623811015-3361044348-30300820-1013",
        "The security identifier of a user.",
        usable=False,
    ),
    Rule(
        "hardware address",
        r"(?<![0-9A-Za-z:-])[0-9a-fA-F]{2}[:-][0-9a-fA-F]{2}[:-](?:[0-9a-fA-F]{2}[:-]){3}[0-9a-fA-F]{2}(?![\w:-])",
        "00:00:00:00:00:00",
        (":", "-"),
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
        "serial number",
        r"(?i)((?:serial(?:[ _-]?(?:number|no|num))?|asset[ _-]?tag|udid|unique[ _]id|machine[ _-]?id|product[ _]?id"
        r"|imei|service[ _-]?tag|\bpdi)\b[^:=\n\"]{0,40}"
        r"(?:\"?[ \t]{0,3}[:=][ \t]{0,60}\"?|[ \t]{2,60}|(?<=unique_id)[ \t]))"
        r"(?!N/A)(?=[A-Za-z-]{0,30}\d)[A-Za-z0-9-]{4,64}",
        r"\g<1>0",
        ("serial", "asset", "udid", "unique", "machine", "product", "imei", "service", "pdi"),
        "Serial Number (system): C02XK0ABJG5H",
        "As nvidia-smi, system_profiler, dmidecode and the KFD topology write it.",
        usable=False,
    ),
    Rule(
        "name of a computer or user",
        r"(?i)(\b(?:(?:host|computer|machine|node|user|full|login|log|domain) ?name|user(?:domain|profile)"
        r"|logon ?server|registered (?:owner|organization)|logged[ -]on user)"
        r"\\{0,4}[\"']?[ \t]{0,40}[:=][ \t]{0,40}(?![ \t])\\{0,4}[\"']?)"
        r"(?!(?:user|none|null|true|false|str|unknown|localhost)\b|[\[<{(%$\\/])[^\r\n\"',;\\()&]{2,64}",
        r"\1host",
        ("name", "user", "logon", "registered"),
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
        "name of a computer in a system's log",
        r"(?m)(\bLinux )[\w.-]{1,64}(?= \d{1,2}\.\d{1,3}\.\d{1,3}[\w.+~-]{0,60} #)"
        r"|(^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )[\w.-]{1,64}(?= [\w./()-]{1,60}(?:\[\d{1,8}\])?:)",
        r"\1\2host",
        ("linux ", ":"),
        "Nov 22 16:10:40 workbench kernel: NVRM: Xid (PCI:0000:01:00): 79",
        "uname and syslog write it among other words.",
        usable=False,
    ),
    Rule(
        "IPv4 address",
        rf"(?<![\w.<>~-])(?<![=<>~!]=)(?!127\.|0\.0\.0\.0|255\.)(?:{_BYTE}\.){{3}}{_BYTE}(?![\w.-])",
        _replace_private_address,
        (".",),
        "inet 192.168.17.23/24",
        "Four numbers are a version as often (cuDNN 9.10.2.21, drivers of Windows): range and context decide.",
        usable=False,
    ),
)


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
# Names that a system gives by default say nothing about a person, and are also words of drivers' output.
_DEFAULT_NAMES = re.compile(
    r"root|user|admin|administrator|guest|default|ubuntu|debian|fedora|arch|linux|windows|nvidia|jetson|amd|intel|"
    r"docker|container|python|conda|jovyan|runner|vagrant|vscode|codespace|localhost|none|test|gpu|cuda|rocm|host|torch",
    re.IGNORECASE,
)
# Of a secret's values only these are searched for: a plain word or a version number may stand anywhere by chance.
_DISTINCT = re.compile(r"(?=.*[A-Za-z])(?=.*[^a-z.]).{6,}|.{12,}", re.DOTALL)
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS(?:W|$|PHRASE)|API_?KEY|ACCESS_?KEY|CREDENTIAL|_KEY$|_PAT$|_AUTH$", re.IGNORECASE
)
_USER_AND_PASSWORD = re.compile(r"\b[\w+.-]{2,20}://([^\s/@:]*)(?::([^\s/@]*))?@")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_HOME = re.compile(
    r"(?<![\w.-])(?:/home/[^/\s:\"']+|/Users/[^/\s:\"']+|/root|[A-Za-z]:[\\/]Users[\\/][^\\/\s:\"']+)(?![\w-])"
)
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?!.*-----END)")
_SHORT = 3  # letters; shorter names occur in too many words


@dataclass(frozen=True)
class PrivateNames:
    """What only the machine knows: its users' names, its own names, and the values of its secret variables."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


NOBODY = PrivateNames()
V = TypeVar("V")


def redact(
    value: V, policy: Policy = Policy.FREE, known: PrivateNames = NOBODY, usable: frozenset[str] = USABLE_FIELDS
) -> V:
    """Return a copy of a text, or of all texts in values, records and messages, without private data.

    Idempotent. In messages only the parameters are redacted; the fields `usable` only lose secrets, so that addresses
    and requirements go on working. `known` are this machine's private names.
    """
    redacted: V = _redact_value(value, policy, known, usable)
    return redacted


def _redact_value(value: Any, policy: Policy, known: PrivateNames, usable: frozenset[str]) -> Any:  # noqa: ANN401 - as it was given
    """Return a copy with all texts in it redacted, keys of dicts included; a value of an unknown type as it is."""

    def fields(name: object, item: Any) -> Any:  # noqa: ANN401
        return _redact_value(item, Policy.USABLE if name in usable else policy, known, usable)

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


def _redact_text(text: str, policy: Policy, known: PrivateNames) -> str:
    """Return a text without known secrets and names and what the rules find; a USABLE one loses secrets alone."""
    for secret in _secrets(known):
        text = text.replace(secret, SECRET)
    if policy is Policy.FREE and (known.users or known.hosts):
        words, names = _names(known)
        text = words.sub(lambda found: names[found[0]], text)
    lower = text.lower()
    for rule in RULES:
        if rule.usable or policy is Policy.FREE:
            text = rule.apply(text, lower)
    return text


@cache
def _secrets(known: PrivateNames) -> tuple[str, ...]:
    return tuple(sorted(filter(_DISTINCT.fullmatch, known.secrets), key=len, reverse=True))


@cache
def _names(known: PrivateNames) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern of the names as whole words, but for short and default ones, and each spelling's replacement."""
    hosts = [
        spelling for name in known.hosts for spelling in (name, name.lower(), name.upper(), name.partition(".")[0])
    ]
    names = dict.fromkeys(known.users, "user") | dict.fromkeys(hosts, "host")
    searched = sorted((name for name in names if len(name) >= _SHORT and not _DEFAULT_NAMES.fullmatch(name)), key=len)
    either = "|".join(map(re.escape, reversed(searched))) or "(?!)"
    return re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])"), names


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
        self._left = self.LONGEST if _KEY_BEGINS.search(line) else 0
        return redact(line, self._policy, self._known)


def secret_values(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables that are named like secrets, and the passwords in addresses of any variable.

    Values that are paths are left out; of an address without a password it is the user, mostly a token.
    """
    named = [value for name, value in variables.items() if _SECRET_NAME.search(name) and not value.startswith("/")]
    found: Iterable[tuple[str, str]] = (
        pair for value in variables.values() for pair in _USER_AND_PASSWORD.findall(value)
    )
    within = [password or user for user, password in found]
    return tuple(dict.fromkeys(filter(None, (*named, *within))))


def without_credentials(address: str) -> str:
    """Return an address without user name and password."""
    return _CREDENTIALS.sub("", address)


def shorten_home(path: str) -> str:
    """Return a text with `~` in place of each home folder, whoever's it is."""
    return _HOME.sub("~", path)
