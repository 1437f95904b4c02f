"""Windows' programs run in a Wine prefix, as their user would run them there."""

from __future__ import annotations

import functools
import os
import ssl
import subprocess
import sys
import time
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

import psutil

from assistant.host.pip_settings import read_pip_settings

PYTHON = r"C:\Python311\python.exe"
LIMIT_SECONDS = 540.0
PIPE_SECONDS = 5.0  # after a program's end, in which all that it printed is read
LOCALES = {936: "zh_CN.utf8", 950: "zh_TW.utf8", 932: "ja_JP.utf8", 1252: "en_US.utf8"}  # by code page
# Any locale in UTF-8 does for the names of files; Wine takes language and code page from the name that it bears.
UTF8 = ("/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8", "/usr/lib64/locale/C.utf8", "/usr/lib64/locale/C.UTF-8")
KEPT = ("PATH", "USER", "LOGNAME", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
NO_NETWORK = ("bwrap", "--dev-bind", "/", "/", "--unshare-net", "--")
QUIET = {
    "WINEDEBUG": "-all",
    "WINEDLLOVERRIDES": "mscoree,mshtml=;ucrtbase=n,b",  # no question for Mono and Gecko; our C library before Wine's
    "KMP_AFFINITY": "disabled",  # Intel's OpenMP would ask for NUMA calls that Wine lacks
}


class Done(NamedTuple):
    """How a program ended and what it printed, decoded by the code page that it ran under."""

    code: int
    out: str
    err: str


class Wine:
    """A prefix: its files, and programs in it. What this user has set for Python or Jupyter does not reach them."""

    def __init__(self, prefix: Path, **environment: str) -> None:
        self.prefix = prefix
        self._environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        self._environment |= {"WINEPREFIX": str(prefix), "HOME": str(prefix), "LOCPATH": str(prefix / "locales")}
        self._environment |= {**QUIET, **_pip(), **environment}

    @property
    def system(self) -> Path:
        """The folder of Windows' libraries."""
        return self.path(r"C:\windows\system32")

    def begin(self) -> None:
        """Have Wine's own helpers run from now on: begun by a test's program, they would hold its pipes open."""
        self._waiting = subprocess.Popen(
            ["wine", "cmd", "/c", "pause"],
            cwd=self.prefix,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._waiting.stdout is not None
        self._waiting.stdout.read(1)  # it asks for a key: all is up

    @property
    def user(self) -> str:
        """The name of Windows' user."""
        return next(path.name for path in self.path("C:\\users").iterdir() if path.name != "Public")

    def path(self, windows: str) -> Path:
        """Give the file of this system that Windows calls so."""
        return self.prefix / "drive_c" / Path(*PureWindowsPath(windows).parts[1:])

    def bring_locales(self) -> bool:
        """Make the locales that choose the code page; False where this system has none in UTF-8."""
        (self.prefix / "locales").mkdir()
        found = next((path for path in UTF8 if Path(path).is_dir()), "")
        for name in LOCALES.values():
            (self.prefix / "locales" / name).symlink_to(found)
        return bool(found)

    def start(
        self,
        *words: str,
        folder: str = "C:\\",
        code_page: int = 936,
        network: bool = True,
        environment: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program in a folder, the prefix itself where none is named; its streams are pipes (no console)."""
        return subprocess.Popen(
            [*(() if network else NO_NETWORK), "wine", *words],
            cwd=self.path(folder) if folder else self.prefix,
            env={**self._environment, "LC_ALL": LOCALES[code_page], **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self,
        *words: str,
        folder: str = "C:\\",
        code_page: int = 936,
        typed: str = "",
        network: bool = True,
        environment: dict[str, str] | None = None,
    ) -> Done:
        """Run a program to its end; one that does not end is killed with all others of the prefix."""
        child = self.start(*words, folder=folder, code_page=code_page, network=network, environment=environment)
        codec = f"cp{code_page}"
        out, err = self._heard(child, typed.encode(codec))
        printed = [text.decode(codec, "replace").replace("\r\n", "\n") for text in (out, err)]
        return Done(child.returncode, *printed)

    def _heard(self, child: subprocess.Popen[bytes], typed: bytes) -> tuple[bytes, bytes]:
        """Return what a program printed when it has ended, though one of Wine's helpers may hold its pipes open."""
        deadline, typing = time.monotonic() + LIMIT_SECONDS, typed
        while True:
            ended = child.poll() is not None
            try:
                return child.communicate(typing, timeout=PIPE_SECONDS)
            except subprocess.TimeoutExpired as late:
                typing = None
                if ended:
                    for pipe in (child.stdin, child.stdout, child.stderr):
                        assert pipe is not None
                        pipe.close()
                    return late.output or b"", late.stderr or b""
                if time.monotonic() > deadline:
                    self.restart()
                    child.kill()
                    raise

    def running(self) -> list[str]:
        """Name the programs that run in the prefix, Wine's own aside."""
        names = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("WINEPREFIX") == str(self.prefix):
                    names += [PureWindowsPath(word).name for word in process.cmdline()[:1]]
            except psutil.Error:
                continue  # ended, or another user's
        return [name for name in names if name in {"python.exe", "uv.exe"}]

    def settle(self) -> None:
        """Wait until no program runs in the prefix any more, and all is written."""
        subprocess.run(["wineserver", "--wait"], env=self._environment, check=False)

    def close(self) -> None:
        """End what still runs in the prefix, Wine's helpers too."""
        subprocess.run(["wineserver", "--kill"], env=self._environment, check=False)
        self.settle()
        self._waiting.communicate()

    def restart(self) -> None:
        """End all programs, and go on with Wine's helpers alone."""
        self.close()
        self.begin()


@functools.cache
def _pip() -> dict[str, str]:
    """Hand pip's settings of this user on: Windows' pip fetches from where this system's does.

    But for further indexes in a folder of this system: they hold wheels for it, and uv takes a version that one of them
    has for none that has a wheel for Windows.
    """
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    settings = read_pip_settings(listed.stdout)
    cert = settings.cert or ssl.get_default_verify_paths().cafile or ""
    told = {
        "PIP_INDEX_URL": settings.index_url,
        "PIP_EXTRA_INDEX_URL": " ".join(url for url in settings.extra_index_urls if not url.startswith("file:")),
        "PIP_FIND_LINKS": " ".join(settings.find_links),
        "PIP_NO_INDEX": "1" if settings.no_index else "",
        "PIP_PROXY": settings.proxy,
        "PIP_TRUSTED_HOST": " ".join(settings.trusted_hosts),
        "PIP_TIMEOUT": settings.timeout,
        "PIP_CLIENT_CERT": settings.client_cert,
        "PIP_CERT": cert,
        "SSL_CERT_FILE": cert,  # Wine shows no certificates to Windows' programs
    }
    return {name: " ".join(map(as_windows, value.split())) for name, value in told.items() if value}


def as_windows(path: str) -> str:
    """Name a file or a file's address of this system as Windows' programs see it; other words stay."""
    if path.startswith("file:///"):
        return f"file:///Z:/{path.removeprefix('file:///')}"
    return str(PureWindowsPath(f"Z:{path}")) if path.startswith("/") else path
