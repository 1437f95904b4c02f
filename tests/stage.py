"""A place in which installers fail for real, on indexes of our own, and where what a remedy says is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from loopback import LoopbackIndex

from assistant.diagnose import read_log
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Evidence, Machine
from assistant.session.diagnosis import causes_for_log_python, find_causes_and_lines

TORCH = "https://download.pytorch.org/whl"
ORG = "org"
PYPI = f"https://pypi.{ORG}/simple"
HERE = Machine(  # detected, and without a GPU
    os="linux",
    wsl=False,
    arch="x86_64",
    glibc="2.36",
    python="3.11",
    python_bits=64,
    evidence=(Evidence(fact="os", source="platform"),),
)
ENV = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "VIRTUAL_ENV"))}


class Stage:
    """An environment, two loopback indexes that stand in for torch's and PyPI's, and a folder for a project.

    Addresses of the loopback are told as the ones that they stand for, in what the tools print, and the other way
    round in what a remedy types.
    """

    def __init__(self, folder: Path, env: Path, torch: LoopbackIndex, pypi: LoopbackIndex) -> None:
        self.folder, self.torch, self.pypi = folder, torch, pypi
        self.stands_for = {pypi.url: PYPI, torch.url: f"{TORCH}/cu128"}
        self.env = {
            **ENV,
            "PATH": os.pathsep.join([str(env / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "VIRTUAL_ENV": str(env),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_RETRIES": "0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_CACHE_DIR": str(folder / "uv-cache"),
            "UV_NO_CONFIG": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, command: str) -> tuple[int, str]:
        """Run a line in the shell; give its exit code and what it printed, with the addresses it stands for."""
        for own, known in self.stands_for.items():
            command = command.replace(known, own)
        done = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=self.env,
            timeout=120,
        )
        text = done.stdout + done.stderr
        for own, known in self.stands_for.items():
            text = text.replace(own, known)
        return done.returncode, text

    def fails(self, command: str) -> Diagnosis:
        """Run a line that must fail, and diagnose what it printed."""
        code, text = self.run(command)
        assert code != 0, text
        log = read_log(f"$ {command}\n{text}")
        found = causes_for_log_python(find_causes_and_lines(log, HERE), log, HERE)
        assert found, text
        return found[0][0]

    def does(self, command: str) -> str:
        """Run a line that must work."""
        code, text = self.run(command)
        assert code == 0, text
        return text

    def mended(self, remedy: Remedy, proof: str) -> None:
        """Do what a remedy says, with our own index in the place of PyPI where it names none; see that it helped."""
        assert remedy.commands, remedy.text
        self.does(f"PIP_INDEX_URL={self.pypi.url} {remedy.commands[0]}")
        self.does(proof)
