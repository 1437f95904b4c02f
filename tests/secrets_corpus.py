"""Kinds of secrets and private facts, in the forms that their makers document; every value is made up.

Formats: gitleaks' table (config/gitleaks.toml), docs.github.com "About authentication to GitHub", Microsoft's "Grant
limited access with SAS", AWS' "Signature Version 4", Google's "Signed URLs", netrc(5), RFC 3986, RFC 7519, RFC 7617.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

__all__ = ["CONTEXTS", "HOST", "KEPT", "KINDS", "USER", "VARIABLES", "Kind", "placed"]

USER, HOST = "margaret", "workbench-17"
VARIABLES = {
    "COMPANY_API_KEY": "Zk3-planted-by-name",
    "HTTPS_PROXY": "http://proxyuser:proxy-pass-7@proxy.example:3128",
}
A = "Qw3rTy7uIoP9aSdF1gHjK5lZxCvB8nM2eR4tY6"  # letters and digits as a maker would draw them
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
KEY = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz\nc2gtZWQyNTUxOQAAACBqWm9vTGFuZHNj\nQUJD=="


class Kind(NamedTuple):
    """A text as it is met, and what must not be left of it; `query` is its form in an address, where that differs.

    `usable` kinds are taken out of requirement lines and addresses too.
    """

    text: str
    secrets: tuple[str, ...]
    query: str = ""
    usable: bool = True


def _token(value: str) -> Kind:
    return Kind(value, (value,))


def _private(text: str, *secrets: str, query: str = "") -> Kind:
    return Kind(text, secrets, query, usable=False)


KINDS: dict[str, Kind] = {
    # tokens by their form
    "GitHub, classic": _token(f"ghp_{A[:36]}"),
    "GitHub, app": _token(f"ghs_{A[:36]}"),
    "GitHub, fine-grained": _token(f"github_pat_11ABCDEFG0{A[:12]}_{A}{A[:21]}"),
    "GitLab": _token(f"glpat-{A[:20]}"),
    "GitLab, runner": _token(f"glrt-{A[:20]}"),
    "Hugging Face": _token("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"),
    "PyPI": _token(f"pypi-AgEIcHlwaS5vcmc{A}{A}"),
    "npm": _token(f"npm_{A[:36]}"),
    "Slack, bot": _token(f"xoxb-123456789012-1234567890123-{A[:24]}"),
    "Slack, app": _token(f"xapp-1-A0123456789-1234567890123-{HEX}"),
    "OpenAI, project": _token(f"sk-proj-{A}-{A}T3BlbkFJ{A}"),
    "OpenAI": _token(f"sk-{A[:20]}T3BlbkFJ{A[:20]}"),
    "Anthropic": _token(f"sk-ant-api03-{A}-{A}_{A[:14]}AA"),
    "AWS, key": _token("AKIAQ7W3E5R2T6Y4U3I2"),
    "AWS, temporary": _token("ASIAQ7W3E5R2T6Y4U3I2"),
    "Google, API": _token(f"AIzaSy{A[:33]}"),
    "Google, OAuth": _token(f"ya29.a0{A}-{A}"),
    "Google, client": _token(f"GOCSPX-{A[:28]}"),
    "Microsoft Entra": _token(f"aB38Q~{A[:34]}"),
    "JWT": _token("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"),
    "Stripe": _token(f"sk_live_{A[:24]}"),
    "SendGrid": _token(f"SG.{A[:22]}.{A}{A[:5]}"),
    "DigitalOcean": _token(f"dop_v1_{HEX}"),
    "Databricks": _token(f"dapi{HEX[:32]}"),
    "HashiCorp Vault": _token(f"hvs.CAES{A}{A}{A[:20]}"),
    "Artifactory": _token(f"AKCp{A}{A[:31]}"),
    "Docker Hub": _token(f"dckr_pat_{A[:27]}"),
    "NVIDIA NGC": _token(f"nvapi-{A}{A[:26]}"),
    "Replicate": _token(f"r8_{A[:37]}"),
    "Groq": _token(f"gsk_{A}{A[:14]}"),
    "Telegram": _token("1234567890:AAF3rTy7uIoP9aSdF1gHjK5lZxCvB8nM2eR"),
    "Slack, webhook": Kind(f"https://hooks.slack.com/services/T01234567/B01234567/{A[:24]}", (A[:24],)),
    # addresses
    "Azure SAS": Kind(
        "https://corp.blob.core.windows.net/pypi/simple/?sv=2024-11-04&ss=b&sig=AbCd%2Fsecretsecret123%3D&se=2026-12-01",
        ("AbCd%2Fsecretsecret123",),
    ),
    "AWS signed": Kind(
        f"https://b.s3.amazonaws.com/f.whl?X-Amz-Credential=AKIAQ7W3E5R2T6Y4U3I2%2F20261122&X-Amz-Security-Token=Fwo{A}"
        f"&X-Amz-Signature={HEX}",
        ("AKIAQ7W3", f"Fwo{A}", HEX),
    ),
    "GCS signed": Kind(
        f"https://storage.googleapis.com/b/f.whl?X-Goog-Credential=svc%40p.iam.gserviceaccount.com&X-Goog-Signature={HEX}",
        ("svc%40p", HEX),
    ),
    "CloudFront signed": Kind(
        f"https://d1.cloudfront.net/f.whl?Policy=eyJTdGF0ZW1lbnQ&Signature={A}~&Key-Pair-Id=K2JCJMDEHXQW5F",
        (A, "K2JCJM"),
    ),
    "user and password": Kind("https://jdoe:hunter2x9@pypi.corp.example/simple", ("jdoe", "hunter2x9")),
    "token as user": Kind("https://t0kenasuser@pypi.corp.example/simple", ("t0kenasuser",)),
    "password with @": Kind("https://jdoe:hunt@er2x9@pypi.corp.example/simple", ("jdoe", "hunt@", "er2x9")),
    "proxy": Kind("http://jdoe:pr0xypass@proxy.corp.example:3128", ("jdoe", "pr0xypass")),
    "database": Kind("postgresql://jdoe:dbp4ssword@db.corp.example:5432/app", ("jdoe", "dbp4ssword")),
    "Jupyter": Kind(f"http://localhost:8888/lab?token={HEX[:48]}", (HEX[:48],)),
    # headers and files of logins
    "basic auth": Kind("Authorization: Basic amRvZTpodW50ZXIyeDk=", ("amRvZTpodW50ZXIyeDk",)),
    "bearer": Kind(f"Authorization: Bearer {A}", (A,)),
    "bearer alone": Kind(f"Bearer {A[:20]}", (A[:20],)),
    "private token": Kind(f"PRIVATE-TOKEN: {A[:20]}", (A[:20],)),
    "API key header": Kind(f"X-API-Key: {A[:30]}", (A[:30],)),
    "cookie": Kind(f"Cookie: sessionid={A[:32]}; csrftoken=Pl4ntedcsrf9", (A[:32], "Pl4ntedcsrf9")),
    "set-cookie": Kind(f"Set-Cookie: _gitlab_session={HEX[:32]}; path=/; HttpOnly", (HEX[:32],)),
    "netrc": Kind(
        "machine pypi.corp.example login jdoe password n3trcpass", ("jdoe", "n3trcpass"), "password=n3trcpass"
    ),
    "netrc, lines": Kind(
        "machine pypi.corp.example\n  login jdoe\n  password n3trcpass", ("jdoe", "n3trcpass"), "password=n3trcpass"
    ),
    "Docker login": Kind(
        '{"auths": {"r.example": {"auth": "amRvZTpodW50ZXIyeDk="}}}',
        ("amRvZTpodW50ZXIyeDk",),
        "auth=amRvZTpodW50ZXIyeDk",
    ),
    "npmrc": Kind("//registry.corp.example/:_authToken=Np4nted-0123456789", ("Np4nted-0123456789",)),
    "OpenSSH key": Kind(
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY}\n-----END OPENSSH PRIVATE KEY-----", tuple(KEY.split("\n"))
    ),
    "RSA key": Kind(
        f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{HEX[:32].upper()}\n\n{KEY}\n"
        "-----END RSA PRIVATE KEY-----",
        tuple(KEY.split("\n")),
    ),
    # names of settings
    "sh": Kind("export DB_PASSWORD='s3cr3t horse'", ("s3cr3t", "horse"), "db_password=s3cr3thorse"),
    "cmd": Kind("set WANDB_API_KEY=pl4ntedwandbkey", ("pl4ntedwandbkey",), "api_key=pl4ntedwandbkey"),
    "PowerShell": Kind(
        '$env:AZURE_CLIENT_SECRET = "pl4nted az secret"', ("pl4nted", "az secret"), "client_secret=pl4nted"
    ),
    "AWS secret": Kind(f"AWS_SECRET_ACCESS_KEY={A[:20]}/{A[20:37]}+x", (A[:20], A[20:37])),
    "YAML": Kind("  password: y4mlpassword", ("y4mlpassword",), "password=y4mlpassword"),
    "JSON": Kind('{"client_secret": "js0nsecret", "n": 1}', ("js0nsecret",), "client_secret=js0nsecret"),
    "ADO.NET": Kind(
        "Server=db.corp.example;User Id=app;Password=ad0netpass;Encrypt=true", ("ad0netpass",), "password=ad0netpass"
    ),
    "Azure storage": Kind(
        f"DefaultEndpointsProtocol=https;AccountName=corp;AccountKey={A}{A}==;EndpointSuffix=core.windows.net", (A,)
    ),
    "pip.conf": Kind(
        "[global]\nindex-url = https://jdoe:p1pconf9@pypi.corp.example/simple", ("jdoe", "p1pconf9"), "pwd=p1pconf9"
    ),
    "curl": Kind("curl -u jdoe:curlp4ss https://pypi.corp.example", ("jdoe", "curlp4ss"), "password=curlp4ss"),
    "option": Kind("twine upload --password tw1nepass dist/x", ("tw1nepass",), "password=tw1nepass"),
    "own variable": Kind("sent Zk3-planted-by-name on", ("Zk3-planted-by-name",), "x=Zk3-planted-by-name"),
    "own proxy": Kind("used proxy-pass-7 there", ("proxy-pass-7",), "x=proxy-pass-7"),
    # who and where
    "home, Linux": _private("/home/jdoe/torch/bin/python", "jdoe"),
    "home, macOS": _private("/Users/jdoe/Library/Caches", "jdoe"),
    "home, Windows": _private(r"C:\Users\J Doe\AppData\Local", "Doe"),
    "home, Windows slashes": _private("C:/Users/jdoe/AppData", "jdoe"),
    "home, WSL": _private("/mnt/c/Users/jdoe/x", "jdoe"),
    "home in a file address": Kind(
        "own @ file:///home/jdoe/own-1-py3-none-any.whl", ("jdoe",), "file:///home/jdoe/x.whl"
    ),
    "own user": _private(f"seen by {USER} today", USER, query=f"by={USER}"),
    "own host": _private(f"run on {HOST}.corp.example now", HOST, query=f"on={HOST}"),
    "mail": _private("jane.doe@corp.example", "jane.doe"),
    "prompt": _private("jdoe@lab-desk:~$ nvidia-smi", "jdoe", "lab-desk", query="jdoe@lab-desk"),
    "Windows host": _private("DESKTOP-7QK2M4P", "7QK2M4P"),
    "dxdiag host": _private("Machine name: OFFICE-PC-9", "OFFICE-PC-9", query="hostname=OFFICE-PC-9"),
    "macOS host": _private("Janes-MacBook-Pro.local", "Janes"),
    "uname": _private("Linux labdesk 6.8.0-48-generic #48-Ubuntu SMP", "labdesk", query="hostname=labdesk"),
    "serial": _private("Serial Number : 1650522003820", "1650522003820", query="serial=1650522003820"),
    "serial, macOS": _private("Serial Number (system): C02XK0ABJG5H", "C02XK0ABJG5H", query="serial=C02XK0ABJG5H"),
    "unique id": _private(
        "unique_id 1234567890123456789", "1234567890123456789", query="unique_id=1234567890123456789"
    ),
    "GPU UUID": _private("GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16", "7fdaf0a5", "daf243e3ff16"),
    "GPU UUID, AMD": _private("GPU-8e1a5a8c5b2f4d11", "8e1a5a8c5b2f4d11"),
    "MAC": _private("52:54:00:ab:34:56", "ab:34:56"),
    "IPv4, private": _private("192.168.17.23", "192.168.17.23"),
    "IPv4 of a server": _private("http://10.20.30.40:8080/simple", "10.20.30.40"),
    "IPv6": _private("fe80::1ff:fe23:4567:890a", "fe23:4567"),
    "Windows SID": _private("S-1-5-21-3623811015-3361044348-30300820-1013", "3623811015"),
}

CONTEXTS = ("log", "query", "assignment", "json", "traceback")


def placed(kind: Kind, context: str) -> str:
    """Put a text into a context as it is met there."""
    text = kind.text
    if context == "log":
        return f"2026-11-22 16:10:40,123 ERROR index: {text}" if "\n" not in text else f"ERROR said:\n{text}\nend of it"
    if context == "query":
        form = kind.query or (text if not set(text) & set(" \n") else quote(text, safe="=&:/@~+-_.()"))
        named = form if kind.query and "=" in form else f"q={form}"
        return f"GET https://files.corp.example/simple/torch/?lang=en&{named}&page=2 HTTP/1.1"
    if context == "assignment":
        return f"export SETTING='{text}'" if "'" not in text else f'SETTING="{text}"'
    if context == "json":
        return json.dumps({"name": "x", "detail": text, "lines": [text]})
    head = 'Traceback (most recent call last):\n  File "/usr/lib/x.py", line 3, in <module>\n    call()'
    return f"{head}\nRuntimeError: {text}"


def every() -> Iterator[tuple[str, str, str, Kind]]:
    """Give each kind in each context: their names, the text, the kind."""
    for name, kind in KINDS.items():
        for context in CONTEXTS:
            yield name, context, placed(kind, context), kind


# What must stay as it is, in free text too.
KEPT = (
    f"torch @ https://download.example/whl/torch-2.6.0-cp312-cp312-linux_x86_64.whl#sha256={HEX}",
    "own @ git+https://github.com/org/own.git@v1.2.3#egg=own&subdirectory=py",
    "own @ git+ssh://git@github.com/org/own.git@0123abcd",
    f"torch==2.6.0+cu126 ; python_version < '3.13' --hash=sha256:{HEX}",
    "nvidia-cudnn-cu12==9.10.2.21",
    "nvidia-cublas-cu12 12.1.3.1 pypi_0",
    "Installing nvidia-curand-cu12 10.3.2.106, cuDNN 9.1.0.70",
    "nvidia_cudnn_cu12-9.10.2.21-py3-none-manylinux_2_27_x86_64.whl (706.8 MB)",
    "hf_transfer-0.1.9-cp38-abi3-manylinux_2_17_x86_64.whl pyserial-asyncio==0.6 sk-learn",
    "https://download.pytorch.org/whl/cu126",
    "https://${PIP_TOKEN}@pypi.corp.example/simple?sig=${SAS}",
    "https://%USER%:%PASSWORD%@pypi.corp.example/simple",
    "password=<your password>",
    "token: ${{ secrets.HF_TOKEN }}",
    "Python 3.12.3 (main) [GCC 13.3.0]",
    '"DriverVersion":"31.0.112.0"',
    "    DriverVersion    REG_SZ    31.0.112.0",
    "6.6.87.2-microsoft-standard-WSL2",
    "NVIDIA GeForce RTX 4090, gfx90a:sramecc+:xnack-",
    "0000:01:00.0 00000000:01:00.0 10de:2684 PCI\\VEN_10DE&DEV_2684&SUBSYS_16F110DE&REV_A1",
    "{4d36e968-e325-11ce-bfc1-08002be10318}",
    "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py",
    "C:\\Program Files\\NVIDIA Corporation\\NVSMI, C:\\Users\\Public\\x",
    "http://127.0.0.1:8888/lab, 0.0.0.0:80, localhost",
    "pad_token=<pad> max_token: 4096, eos_token=None, num_tokens=12",
    "    token = self.next()\n    key = hash(x)\n    x = q@k",
    "memcpy@GLIBC_2.14 torch@2.6.0",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "serial execution, or in parallel; a token expired, the password was wrong",
    "Basic block, bearer authentication",
    "2026-11-22T16:10:40+00:00 12:34:56",
)
