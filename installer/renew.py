"""Pin a release of uv in the three installers: `python3 installer/renew.py 0.13.9`.

The digests are those that the package index tells: UV_DEFAULT_INDEX, else PyPI.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from pathlib import Path

from pip._internal.models.index import PyPI  # the address that pip itself takes where nothing is set

HERE = Path(__file__).parent
INSTALLERS = ("install.sh", "install.ps1", "pyz/__main__.py")
ENDS = {  # of the names of uv's wheels, by machine; Linux gets the static build, which runs beside glibc and musl alike
    "linux-x86_64": "musllinux_1_1_x86_64.whl",
    "linux-aarch64": "musllinux_1_1_aarch64.whl",
    "macos-x86_64": "_x86_64.whl",
    "macos-arm64": "_arm64.whl",
    "windows-x86_64": "win_amd64.whl",
    "windows-arm64": "win_arm64.whl",
}


def pins(version: str) -> str:
    """Return the lines for a release: machine, wheel and SHA-256."""
    index = os.environ.get("UV_DEFAULT_INDEX") or PyPI.simple_url
    asked = urllib.request.Request(f"{index}/uv/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})  # noqa: S310
    with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310 - the index that a person names
        sums = {file["filename"]: file["hashes"]["sha256"] for file in json.load(answer)["files"]}
    lines = []
    for machine, end in ENDS.items():
        tag = "macosx_" if machine.startswith("macos") else ""
        (name,) = (name for name in sums if name.startswith(f"uv-{version}-py3-none-{tag}") and name.endswith(end))
        lines.append(f"{machine} {name} {sums[name]}")
    return "\n".join(lines)


def renew(version: str) -> None:
    """Write the release and its lines into the installers."""
    lines = pins(version)
    for installer in INSTALLERS:
        text = (HERE / installer).read_text(encoding="utf-8")
        text = re.sub(r"(UV_VERSION ?= ?\"?|\$version = ')[\d.]+", rf"\g<1>{version}", text)
        text = re.sub(r"(?:^\S+ uv-\S+\.whl [0-9a-f]{64}$\n?)+", lines + "\n", text, flags=re.MULTILINE)
        (HERE / installer).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    renew(sys.argv[1])
