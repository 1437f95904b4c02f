"""uv's command lines and the lines it prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from assistant.host.process import CancelToken, stream
from assistant.model.event import LogLine, Sink, Step
from assistant.model.plan import Plan, of_torch_family
from assistant.model.record import Record

__all__ = [
    "Installed",
    "Installer",
    "Transfer",
    "compile_command",
    "install_command",
    "project_file",
    "read_line",
    "venv_command",
]

KERNEL = "ipykernel"  # an environment without it cannot be a kernel, and JupyterLab could not offer it


def find_uv() -> str:
    """Find the uv that was installed with the assistant."""
    from uv import find_uv_bin  # noqa: PLC0415 - looks through the environment's folders only when needed

    return str(find_uv_bin())


def project_file(plan: Plan) -> str:
    """Write the project that uv resolves: the plan's requirements, with torch's family tied to its own index."""
    project = {
        "name": "environment",
        "version": "0",
        "requires-python": f"=={_minor(plan.python)}.*",
        "dependencies": [*plan.requirements, KERNEL],
    }
    if not plan.index_url:
        return tomli_w.dumps({"project": project})
    index = {"name": "torch", "url": plan.index_url, "explicit": True}
    sources = {name: {"index": "torch"} for name in _family(plan.requirements)}
    return tomli_w.dumps({"project": project, "tool": {"uv": {"index": [index], "sources": sources}}})


def compile_command(python: str, project: Path, lock: Path) -> list[str]:
    """Resolve a project for an interpreter into a `pylock.toml` (PEP 751): versions, addresses, hashes."""
    return [*_pip("compile"), str(project), "--python", python, "--format", "pylock.toml", "-o", str(lock), "--quiet"]


def venv_command(python: str, target: Path) -> list[str]:
    """Make an empty environment."""
    return [find_uv(), "venv", "--no-progress", "--no-project", "--allow-existing", "--python", python, str(target)]


def install_command(python: Path, lock: Path) -> list[str]:
    """Fill an environment with exactly what the lock names, hashes checked."""
    return [*_pip("install"), "--python", str(python), "--requirements", str(lock), "--preview-features", "pylock"]


@dataclass(frozen=True)
class Installer:
    """How uv is run: for which base interpreter, with which variables and arguments, told to whom, stopped by what."""

    python: str
    environment: Mapping[str, str]
    sink: Sink
    cancel: CancelToken
    arguments: tuple[str, ...] = ()

    def run(self, argv: list[str], on_line: Callable[[str], None]) -> int:
        """Run one of the commands above, each line logged and handed on; answer its exit status."""

        def both(line: str) -> None:
            self.sink(LogLine(step=Step.INSTALL, text=line))
            on_line(line)

        extra = self.arguments if argv[1] == "pip" else ()
        return stream([*argv, *extra], both, cancel=self.cancel, environment=self.environment)


class Transfer(Record, frozen=True):
    """A download of one package began, or ended (`finished`)."""

    name: str
    finished: bool = False


class Installed(Record, frozen=True):
    """One package now stands in the environment."""

    name: str
    version: str


# "Downloading onnx (8.5MiB)" · " Downloaded onnx" · " + onnx==1.23.2"
_TRANSFER = re.compile(r"^ ?Download(?P<state>ing|ed) (?P<name>\S+)(?: \(\S+\))?$")
_INSTALLED = re.compile(r"^ \+ (?P<name>\S+?)==(?P<version>\S+?)(?: \(.*\))?$")


def read_line(line: str) -> Transfer | Installed | None:
    """Read one line of uv's output; None for a line that tells no progress."""
    if found := _TRANSFER.match(line):
        return Transfer(name=found["name"], finished=found["state"] == "ed")
    if found := _INSTALLED.match(line):
        return Installed(name=found["name"], version=found["version"])
    return None


def _pip(verb: str) -> list[str]:
    return [find_uv(), "pip", verb, "--no-progress"]


def _family(requirements: tuple[str, ...]) -> list[str]:
    """Name the requirements that come from torch's own index."""
    names = (found[0] for line in requirements if (found := re.match(r"[\w.-]+", line)))
    return [name for name in names if of_torch_family(name.lower())]


def _minor(python: str) -> str:
    return ".".join(re.findall(r"\d+", python)[:2])
