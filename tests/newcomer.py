"""A machine without Python or uv, an index on loopback that has uv and an assistant, and who pastes the line there."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import zipapp
import zipfile
from pathlib import Path

from loopback import LoopbackIndex, with_code

INSTALLER = Path(__file__).parents[1] / "installer"
PIN = re.compile(r"^(?P<machine>\S+-\S+) (?P<wheel>uv-\S+\.whl) (?P<sum>[0-9a-f]{64})$", re.MULTILINE)
# What install.sh starts, of every Linux and macOS.
PROGRAMS = (
    "chmod",
    "curl",
    "cut",
    "grep",
    "head",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "sed",
    "sha256sum",
    "tr",
    "uname",
    "unzip",
)
# Tells what it was called with, answers a question, and ends as told.
ASSISTANT = """\
import os, sys
if "--version" in sys.argv:
    sys.exit()
print(*sys.argv[1:], sep="|")
print(os.environ["SETUP_ASSISTANT_STARTED_AS"], sys.prefix, sep="\\n")
if "ask" in sys.argv:
    print("answered", input())
sys.exit(7 if "fail" in sys.argv else 0)
"""


def machine() -> str:
    """Name this machine as the installers do."""
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, sys.platform)
    name = platform.machine().lower()
    return f"{system}-" + {"amd64": "x86_64", "arm64": "aarch64" if system == "linux" else "arm64"}.get(name, name)


class Newcomer:
    """A user whose home has a difficult name, with the programs of a bare system on PATH.

    `way` is the installer that is run: "pyz", or the shell that reads install.sh from its standard input.
    """

    def __init__(self, folder: Path, index: LoopbackIndex, way: str) -> None:
        self.folder, self.index, self.way = folder, index, way
        self.home = folder / "张 三"
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.home.mkdir()
        for name in (*PROGRAMS, "sh", "dash", "bash") if sys.platform != "win32" else ():
            self.have(name)
        self.installer = (INSTALLER / ("pyz/__main__.py" if way == "pyz" else "install.sh")).read_text("utf-8")
        self.pin_uv(Path(sys.executable).with_name("uv.exe" if sys.platform == "win32" else "uv").read_bytes())
        with_code(index.add("torch-setup-assistant", "1"), "torch_setup_assistant", ASSISTANT, "__main__")

    def pin_uv(self, program: bytes) -> None:
        """Put a uv on the index, as the wheel that is pinned for this machine; the installer now pins its digest."""
        pin = next(pin for pin in PIN.finditer(self.installer) if pin["machine"] == machine())
        self.wheel = self.index.folder / "uv" / pin["wheel"]
        self.wheel.parent.mkdir(exist_ok=True)
        inside = f"uv-{self.wheel.name.split('-')[1]}.data/scripts/uv" + ".exe" * (sys.platform == "win32")
        with zipfile.ZipFile(self.wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
            wheel.writestr(inside, program)
        self.text = self.installer.replace(pin["sum"], hashlib.sha256(self.wheel.read_bytes()).hexdigest())

    def have(self, name: str, script: str = "") -> None:
        """Put a program of this machine on the newcomer's PATH, or a script in its place."""
        place = self.programs / name
        place.unlink(missing_ok=True)
        if script:
            place.write_text(script)
            place.chmod(0o755)
        elif found := shutil.which(name):
            place.symlink_to(found)

    def lack(self, *names: str) -> None:
        """Take programs away."""
        for name in names:
            (self.programs / name).unlink(missing_ok=True)

    def command(self, *words: str) -> list[str]:
        """Write the installer as it stands in `text`, and return the command that starts it."""
        if self.way == "pyz":
            (self.folder / "pyz").mkdir(exist_ok=True)
            (self.folder / "pyz" / "__main__.py").write_text(self.text, encoding="utf-8")
            archive = self.folder / "torch-setup-assistant.pyz"
            zipapp.create_archive(self.folder / "pyz", archive)
            return [sys.executable, "-S", str(archive), *words]
        return [str(self.programs / self.way), "-s", "--", *words]

    def environment(self, **more: str) -> dict[str, str]:
        """Return all variables that the newcomer has; the Python is this one, since the index has none."""
        kept = {name: value for name, value in os.environ.items() if name in {"SYSTEMROOT", "TEMP", "TMP"}}
        own = {"PATH": str(self.programs), "HOME": str(self.home), "LANG": "C.UTF-8", "UV_PYTHON": sys.executable}
        own |= {"UV_DEFAULT_INDEX": self.index.url, "UV_HTTP_RETRIES": "0"}
        own |= dict.fromkeys(("USERPROFILE", "APPDATA", "LOCALAPPDATA"), str(self.home))
        return {**kept, **own, **more}

    def begin(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """Paste the line."""
        command = self.command(*words)
        child = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment(**more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # no terminal, so that nothing is asked at the tester's
        )
        if self.way != "pyz":
            child.stdin.write(self.text)
        return child

    def start(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Paste the line, and wait for its end."""
        child = self.begin(*words, **more)
        out, err = child.communicate(timeout=120)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def left(self) -> list[str]:
        """Name the files in the installer's own folder."""
        return sorted(path.name for path in self.home.rglob("pytorch-setup-assistant/**/*") if path.is_file())
