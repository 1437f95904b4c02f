"""Open the setup assistant for PyTorch with any Python from 3.8 on, with or without pip.

python3 torch-setup-assistant.pyz; any command may follow, such as `setup --yes`. It brings uv, which brings a Python of
its own, and starts the assistant with it; the Python that runs this file is left alone. All else is as in install.sh,
whose head says it.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import http.client
import io
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import NoReturn

UV_VERSION = "0.13.9"
# SHA-256 of uv's wheels. `renew.py` writes these lines here, in install.sh and in install.ps1.
WHEELS = """
linux-x86_64 uv-0.13.9-py3-none-musllinux_1_1_x86_64.whl 2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25
linux-aarch64 uv-0.13.9-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl 5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe
macos-x86_64 uv-0.13.9-py3-none-macosx_10_12_x86_64.whl c16ed11e013557536b3e60065f1b912f6407bd6518e041b961e23ef9e6b4fbf5
macos-arm64 uv-0.13.9-py3-none-macosx_11_0_arm64.whl 66c512266d633bef48384a1f53003f41f2a8e7b36fe6e7fbfd3e0fd52d96fa63
windows-x86_64 uv-0.13.9-py3-none-win_amd64.whl 6a44b2ed8111d2f60d2b92627c5dccda3f7ed7570b18ce115e569cd68c28246b
windows-arm64 uv-0.13.9-py3-none-win_arm64.whl eeb92051c2123b9730c46b04cc843cfa4bc7d7b0aec56df431a2215ef4cb0273
"""
SENTENCES = {
    "fetching": (
        "Fetching uv {version}, which brings Python (this once).",
        "正在下载 uv {version}，由它准备 Python（仅此一次）。",
    ),
    "preparing": (
        "Getting the assistant ready; the first time this takes a minute or two.",
        "正在准备安装助手，第一次需要一两分钟。",
    ),
    "machine": (
        "There is no PyTorch for this machine ({system}, {arch}). If there is one after all, put uv on PATH "
        "(https://docs.astral.sh/uv/) and start again.",
        "没有适合这台机器（{system}，{arch}）的 PyTorch。如果确实有，请先安装 uv（https://docs.astral.sh/uv/）并加入 PATH，"
        "然后重新开始。",
    ),
    "folder": (
        "{folder} cannot be written to. Set {home} to a folder of yours that has 2 GB free, then start again.",
        "无法写入 {folder}。请把 {home} 设为您自己的、有 2 GB 空闲空间的文件夹，然后重新开始。",
    ),
    "noexec": (
        "uv does not run in {folder}; perhaps no program may. Set {home} to another folder of yours, then start again.",
        "uv 无法在 {folder} 中运行，可能是该文件夹不允许运行程序。请把 {home} 设为您自己的其他文件夹，然后重新开始。",
    ),
    "unreachable": (
        "{address} cannot be fetched. Check the network and the proxy (HTTPS_PROXY), or set UV_DEFAULT_INDEX to another "
        "package index, then start again.",
        "无法下载 {address}。请检查网络和代理（HTTPS_PROXY），或用 UV_DEFAULT_INDEX 指定其他软件包索引"
        "（例如 https://pypi.tuna.tsinghua.edu.cn/simple），然后重新开始。",
    ),
    "absent": (
        "{page} does not have {wheel}. Set UV_DEFAULT_INDEX to another package index, or put uv on PATH "
        "(https://docs.astral.sh/uv/), then start again.",
        "{page} 没有 {wheel}。请用 UV_DEFAULT_INDEX 指定其他软件包索引，"
        "或安装 uv（https://docs.astral.sh/uv/）并加入 PATH，然后重新开始。",
    ),
    "damaged": (
        "{wheel} arrived damaged, or was changed on the way, and was thrown away. Start again; if that does not help, use "
        "another network or set UV_DEFAULT_INDEX to another package index.",
        "{wheel} 下载后已损坏或在途中被改动，已丢弃。请重新开始；如仍不行，请换一个网络，"
        "或用 UV_DEFAULT_INDEX 指定其他软件包索引。",
    ),
    "uv": (
        "uv could not get Python or the assistant ready; its own words are above. Often it is the network: check it and "
        "the proxy (HTTPS_PROXY), or set UV_DEFAULT_INDEX to another package index and UV_PYTHON_INSTALL_MIRROR to "
        "another source of Python, then start again.",
        "uv 无法准备好 Python 或安装助手，原因见上方 uv 的提示。多半是网络问题：请检查网络和代理（HTTPS_PROXY），"
        "或用 UV_DEFAULT_INDEX 指定其他软件包索引（例如 https://pypi.tuna.tsinghua.edu.cn/simple），"
        "用 UV_PYTHON_INSTALL_MIRROR 指定 Python 的镜像，然后重新开始。",
    ),
}
SYSTEM = {"win32": "windows", "darwin": "macos"}.get(sys.platform, sys.platform)
PROGRAM, HOME = ("uv.exe", "LOCALAPPDATA") if SYSTEM == "windows" else ("uv", "HOME")
SECONDS = 60.0  # of silence, after which a download has failed
CHINESE = 4  # Windows' LANG_CHINESE


def main(words: list[str]) -> int:
    """Run the assistant with the words of the command line, `lab` without any; answer the exit code."""
    if os.environ.get("PIP_INDEX_URL"):  # uv does not know it: https://docs.astral.sh/uv/pip/compatibility/
        os.environ["UV_DEFAULT_INDEX"] = _index()
    arch = _arch()
    on_path = shutil.which("uv")
    uv = on_path if on_path and _starts(on_path) else _own_uv(arch)
    python = os.environ.get("UV_PYTHON") or "3.12"
    if python == "3.12" and (SYSTEM, arch) == ("macos", "arm64"):
        python = (
            "cpython-3.12-macos-aarch64"  # an x86_64 uv would take an x86_64 Python, which knows nothing of the GPU
        )
    source = os.environ.get("SETUP_ASSISTANT_SOURCE") or "torch-setup-assistant[lab]"
    module = [uv, "tool", "run", "--python", python, "--from", source, "python", "-P", "-m", "torch_setup_assistant"]
    _say("preparing")
    if subprocess.run([*module, "--version"], stdout=subprocess.DEVNULL, check=False).returncode:
        _fail("uv")
    os.environ["SETUP_ASSISTANT_STARTED_AS"] = (  # the assistant shows its commands as they can be typed here
        subprocess.list2cmdline(module) if SYSTEM == "windows" else " ".join(map(shlex.quote, module))
    )
    return _become([*module, *(words or ["lab"])])


def _become(command: list[str]) -> int:
    if SYSTEM != "windows":
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted
    with subprocess.Popen(command) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:  # noqa: PERF203 - the child got it, too, and decides
                continue


def _arch() -> str:
    """Name the machine's processor: under Rosetta, too, where this Python sees an x86_64."""
    if SYSTEM == "macos":
        asked = subprocess.run(["sysctl", "-n", "hw.optional.arm64"], stdout=subprocess.PIPE, check=False)
        return "arm64" if asked.stdout.strip() == b"1" else "x86_64"
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "arm64" if SYSTEM == "windows" else "aarch64"}.get(name, name)


def _index() -> str:
    names = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
    return next(filter(None, map(os.environ.get, names)), "https://PYPI/simple").rstrip("/")


def _starts(uv: str) -> bool:
    try:
        return subprocess.run([uv, "--version"], stdout=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def _own_uv(arch: str) -> str:
    """Find the uv that an earlier start brought, else bring it."""
    os.environ.setdefault("UV_SYSTEM_CERTS", "true")  # whom the system trusts, such as a company's proxy, uv may trust
    folder = _data() / "pytorch-setup-assistant" / f"uv-{UV_VERSION}"
    uv = folder / PROGRAM
    if _starts(str(uv)):
        return str(uv)
    line = next((line for line in WHEELS.splitlines() if line.startswith(f"{SYSTEM}-{arch} ")), "")
    if not line:
        _fail("machine", code=3, system=SYSTEM, arch=arch)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="part.", dir=folder) as part:
            made = Path(part) / PROGRAM
            made.write_bytes(_program(*line.split(" ")[1:]))
            made.chmod(0o755)
            if not _starts(str(made)):
                _fail("noexec", folder=folder, home=HOME)
            made.replace(uv)
    except OSError:
        _fail("folder", folder=folder, home=HOME)
    return str(uv)


def _data() -> Path:
    """Return the folder in which this system wants a program's data."""
    if SYSTEM == "windows":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    usual = "Library/Application Support" if SYSTEM == "macos" else ".local/share"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / usual)


def _program(wheel: str, expected: str) -> bytes:
    """Fetch uv's wheel from the package index and check it; return the program within."""
    _say("fetching", version=UV_VERSION)
    page = f"{_index()}/uv/"
    link = re.search(rf"href=[\"']([^\"'#]*{re.escape(wheel)})", _fetched(page).decode("utf-8", "replace"))
    if not link:
        _fail("absent", page=_without_password(page), wheel=wheel)
    content = _fetched(urllib.parse.urljoin(page, link.group(1)))
    if hashlib.sha256(content).hexdigest() != expected:
        _fail("damaged", wheel=wheel)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(f"uv-{UV_VERSION}.data/scripts/{PROGRAM}")


def _fetched(address: str) -> bytes:
    """Fetch an address, through the proxy of the environment or the system."""
    parts = urllib.parse.urlsplit(address)
    place = parts.netloc.rpartition("@")[2]  # urllib would take a password for a part of the host's name
    request = urllib.request.Request(urllib.parse.urlunsplit(parts._replace(netloc=place)))
    if parts.username:
        login = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return bytes(answer.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        print(getattr(error, "reason", error), file=sys.stderr)
        _fail("unreachable", address=_without_password(address))


def _without_password(address: str) -> str:
    return re.sub("//[^/]*@", "//", address)


def _say(key: str, **values: object) -> None:
    print(SENTENCES[key][_speaks_chinese()].format(**values), file=sys.stderr, flush=True)


def _speaks_chinese() -> bool:
    """Tell whether the system speaks Chinese and the terminal can write it."""
    try:
        SENTENCES["preparing"][1].encode(sys.stderr.encoding or "ascii")
    except UnicodeError:
        return False
    if sys.platform == "win32":
        return bool(ctypes.windll.kernel32.GetUserDefaultUILanguage() & 0x3FF == CHINESE)
    names = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
    return next(filter(None, map(os.environ.get, names)), "").startswith("zh")


def _fail(key: str, *, code: int = 1, **values: object) -> NoReturn:
    _say(key, **values)
    raise SystemExit(code)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
