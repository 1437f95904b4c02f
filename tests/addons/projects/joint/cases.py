"""The cases: each requirement set on each machine, the right answers, and what uv alone makes of a set."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.install.sources import uv_platform
from assistant.model.machine import Machine
from assistant.model.record import from_json

HERE = Path(__file__).parent
FAMILY = {"torch", "torchvision", "torchaudio", "triton"}


class Wanted(msgspec.Struct, omit_defaults=True):
    """A requirement set: its lines (PEP 508), where they are from, and what is wrong with it on purpose.

    `unknown` is the name that no index has, `nearest` the one that was meant ("" where none was). `torch` bounds torch
    by what is known though no metadata says it, `cuda` is the CUDA major that its wheels are built for in the same
    sense (0 for any), and `why` says from where.
    """

    name: str
    kind: str
    source: str
    requires: tuple[str, ...]
    pythons: str = ""
    overrides: tuple[str, ...] = ()
    unknown: str = ""
    nearest: str = ""
    torch: str = ""
    cuda: int = 0
    why: str = ""

    @property
    def asked(self) -> set[str]:
        """The canonical names of the distributions that are asked for, torch's family left out."""
        names: set[str] = {canonicalize_name(Requirement(line).name) for line in self.requires}
        return names - FAMILY


class Box(NamedTuple):
    """A machine of the benchmark."""

    name: str
    machine: Machine

    @property
    def python(self) -> str:
        """The machine's Python, such as "3.12"."""
        return ".".join((self.machine.python or "3.12").split(".")[:2])


class Solved(NamedTuple):
    """What one run of uv found: the versions by name, its words where nothing fits ("" else), its seconds."""

    versions: dict[str, str]
    words: str
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether everything goes together."""
        return not self.words


class Expected(msgspec.Struct, omit_defaults=True):
    """The right answer to a case, `backend` None where that is a refusal; `uv` is the torch that uv alone takes.

    uv itself was asked for every torch that the hardware allows, accelerated builds first, the newest release first.
    The first that resolves together with the set is the answer; but where an older torch gives an asked distribution a
    newer version, it is the newest release at which each is as new as it gets, and `walked_back` says what the newest
    torch would have cost. Then other Pythons were tried (`offered`), and then the set without what comes as source
    alone (`builds`). `asked` are the versions of what the set asks for.
    """

    machine: str
    set: str
    as_of: str
    uv: str | None = None
    backend: str | None = None
    variant: str = ""
    torch: str = ""
    python: str = ""
    offered: bool = False
    asked: dict[str, str] = {}
    walked_back: dict[str, str] = {}
    builds: tuple[str, ...] = ()
    words: str = ""

    @property
    def text(self) -> str:
        """The build, as a miss is told."""
        return f"{self.backend} {self.variant} torch {self.torch} Python {self.python}"


def read_expected() -> dict[tuple[str, str], Expected]:
    """Read the right answers by machine and set."""
    rows = (HERE / "expected.jsonl").read_bytes().splitlines()
    found = (msgspec.json.decode(row, type=Expected) for row in rows)
    return {(one.machine, one.set): one for one in found}


def read_sets() -> list[Wanted]:
    """Read the requirement sets."""
    text = (HERE / "sets.jsonl").read_text(encoding="utf-8")
    return [msgspec.json.decode(line, type=Wanted) for line in text.splitlines()]


def read_machines() -> list[Box]:
    """Read the machines."""
    rows = [msgspec.json.decode(line) for line in (HERE / "machines.jsonl").read_bytes().splitlines()]
    return [Box(row["name"], from_json(msgspec.json.encode(row["machine"]), Machine, row["name"])) for row in rows]


def uv_environment(cache: Path) -> dict[str, str]:
    """Return an environment in which uv knows nothing but what its command line says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
    return {**kept, "UV_CACHE_DIR": str(cache), "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}


def uv_alone(
    box: Box,
    lines: tuple[str, ...],
    index: str,
    first: str | None,
    cache: Path,
    *,
    python: str = "",
    overrides: tuple[str, ...] = (),
) -> Solved:
    """Resolve lines with `uv pip compile` to wheels alone; what the index `first` has is taken from there alone."""
    from uv import find_uv_bin  # noqa: PLC0415 - as in the assistant

    where = ["--default-index", index, *(["--index", first] if first else []), "--index-strategy", "first-index"]
    elsewhere = ["--python-platform", uv_platform(box.machine), "--python-version", python or box.python]
    words = ["--no-header", "--no-annotate", "--no-progress", "--only-binary", ":all:", "--python", sys.executable]
    environment = uv_environment(cache)
    if box.machine.os == "macos":
        version = re.search(r"\d+(\.\d+)?", box.machine.os_version or "")
        environment["MACOSX_DEPLOYMENT_TARGET"] = version[0] if version else "13.0"
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "overrides.txt"
        said.write_text("\n".join(overrides), encoding="utf-8")
        more = ["--overrides", str(said)] if overrides else []
        start = time.perf_counter()
        done = subprocess.run(
            [find_uv_bin(), "pip", "compile", "-", *words, *where, *elsewhere, *more],
            input="\n".join(lines),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - start
    if done.returncode:
        return Solved({}, done.stderr or "refused", seconds)
    found = re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", done.stdout)
    return Solved(dict(found), "", seconds)
