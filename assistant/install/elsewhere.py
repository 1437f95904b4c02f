"""For another machine than this one: the commands that install a plan there, and its packages, resolved by uv here."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Callable
from typing import NamedTuple

from assistant.host.process import running
from assistant.i18n import _
from assistant.install.journal import temporary_folder
from assistant.install.sources import Tools
from assistant.install.uv import (
    IN_A_HURRY,
    KERNEL,
    LOCK,
    Resolution,
    Unsolved,
    Uv,
    check_plan,
    find_network_error,
    only_source,
    resolve,
)
from assistant.model.errors import WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.privacy import Lines, Policy

_X86 = {"x86_64", "amd64"}
# The second numbers of the glibc releases that uv names: https://docs.astral.sh/uv/reference/cli/#uv-pip-compile
_GLIBC = (17, 28, *range(31, 41))
_FOLDER = "torch-env"  # of the environment, in the commands for a machine that is not here
# As pip does; uv itself would take all that torch's index holds from there, such as an old NumPy.
_STRATEGY = ("--index-strategy", "unsafe-best-match")
_NO_SOLUTION = 1  # uv's exit status where no solution exists, and 2 for any other failure (tried with 0.13.9)


class ResolverAnswer(NamedTuple):
    """uv's result for a plan: the packages' versions by name, or its output (`words`), which says why there are none.

    `status` is uv's exit status; `steps` are the lines of its resolver's log that were selected.
    """

    status: int
    versions: dict[str, str]
    words: str
    steps: list[str]

    @property
    def is_refusal(self) -> bool:
        """Whether uv answered that no solution exists."""
        return self.status == _NO_SOLUTION

    @property
    def unreachable(self) -> str:
        """Uv's text on which address could not be reached and why; "" for other failures."""
        return find_network_error(self.words)

    @property
    def only_source(self) -> tuple[str, ...]:
        """The requirements for which there is only source, no wheel."""
        return only_source(self.words)


class RemotePlan(NamedTuple):
    """A plan and the machine that it is for, which need not be this one; its Python need not be installed here."""

    plan: Plan
    machine: Machine

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands of uv that make an environment on that machine, and install the plan and the kernel in it.

        Folders of wheels, which that machine lacks, are left out.
        """
        plan = self.plan
        python = f"{_FOLDER}/Scripts/python.exe" if self.machine.os == "windows" else f"{_FOLDER}/bin/python"
        index = ("--extra-index-url", plan.index_url, *_STRATEGY) if plan.index_url else ()
        links = [word for place in plan.links if "://" in place for word in ("--find-links", place)]
        return (
            ("uv", "venv", "--seed", "--python", plan.python, _FOLDER),
            ("uv", "pip", "install", "--python", python, *index, *links, *plan.requirements, KERNEL),
        )

    def resolve(self, tools: Tools, also: tuple[str, ...] = (KERNEL,)) -> Resolution:
        """Return the plan's packages, and those that the requirements `also` add, resolved for that machine.

        Raises as `resolution.resolve` does, but `WorkFailed` if an index cannot be reached, and as `uv` does.
        """
        try:
            return resolve(self.plan, self.uv(tools, also))
        except Unsolved as error:
            if not error.unreachable:
                raise
            index = self.plan.index_url or _("pip's index")
            raise WorkFailed(_("{index} could not be reached.", index=index), hint=error.hint) from error

    def ask(
        self, tools: Tools, is_step: Callable[[str], bool], *, dependencies: bool = True, **variables: str
    ) -> ResolverAnswer:
        """Resolve the plan with uv, from metadata alone; return its versions, or its output if it failed.

        No package is built or downloaded. Without `dependencies` what the packages require is not resolved. After an
        unclear failure uv is run again, with an empty cache. `is_step` selects the lines of the resolver's log, which
        environment `variables` make uv print. Raises `BadInput` for an invalid index or requirement, `Cancelled`, and
        as `uv`.
        """
        check_plan(self.plan)
        with temporary_folder() as (folder, lock):
            uv = self.uv(tools, ()).in_folder(folder, lock)
            argv = uv.resolve_command(self.plan, folder, dependencies=dependencies)

            def run(uv: Uv) -> ResolverAnswer:
                """Run uv and return its result; its output is parsed only after its end, so as not to block it."""
                cleaned, environment = Lines(Policy.USABLE), {**uv.variables, **variables, **IN_A_HURRY}
                with running(argv, cancel=tools.cancel, environment=environment, lock=lock) as child:
                    said = list(child)
                solved = child.returncode == 0
                found = tomllib.loads((folder / LOCK).read_text(encoding="utf-8")) if solved else {}
                return ResolverAnswer(
                    child.returncode,
                    {row["name"]: row["version"] for row in found.get("packages", ()) if "version" in row},
                    "\n".join(cleaned(line) for line in said if not is_step(line)),
                    [line for line in said if is_step(line)],
                )

            answer = run(uv)
            if answer.status not in {0, _NO_SOLUTION} and not answer.unreachable:
                # A power cut leaves empty files in uv's cache, which it then stumbles over.
                answer = run(uv.with_own_cache(folder))
            return answer

    def uv(self, tools: Tools, also: tuple[str, ...]) -> Uv:
        """Return uv set up to resolve the plan, and `also`, for that machine.

        Raises `WorkFailed` if uv has no name for the platform, and for a free-threaded Python.
        """
        plan, machine = self.plan, self.machine
        platform = uv_platform(machine)
        if not platform or plan.python.endswith("t"):
            raise WorkFailed(
                _(
                    "Packages for {system} on {arch} with Python {python} cannot be resolved here.",
                    system=machine.os,
                    arch=machine.arch,
                    python=plan.python,
                ),
                hint=_("Install on one such PC with `assistant install`, and export there."),
            )
        variables = {"UV_PYTHON_DOWNLOADS": "never"}
        version = re.search(r"\d+(\.\d+)?", machine.os_version or "") if machine.os == "macos" else None  # "macOS 14.6"
        if version:
            variables["MACOSX_DEPLOYMENT_TARGET"] = version[0]
        uv = tools.uv(plan, None)
        return dataclasses.replace(
            uv,
            # Any Python will do, as no package is built; uv would fetch one of the wanted version.
            python=str(tools.host.facts("platform").get("base_executable", "python3")),
            environment={**uv.environment, **variables},
            elsewhere=("--python-platform", platform, "--python-version", plan.python),
            also=also,
        )


def uv_platform(machine: Machine) -> str:
    """Return uv's name of a machine's platform, for `--python-platform`; "" for an unknown processor or an old glibc.

    Any system but Windows and macOS counts as Linux. Missing facts are taken to be x86_64 (arm64 on macOS), glibc 2.28.
    """
    arch = (machine.arch or ("arm64" if machine.os == "macos" else "x86_64")).lower()
    name = "x86_64" if arch in _X86 else "aarch64" if arch in {"aarch64", "arm64"} else ""
    if not name:
        return ""
    if machine.os == "windows":
        return f"{name}-pc-windows-msvc"
    if machine.os == "macos":
        return f"{name}-apple-darwin"
    if machine.libc and machine.libc.startswith("musl"):
        return f"{name}-unknown-linux-musl"
    glibc = re.fullmatch(r"2\.(\d+).*", machine.glibc or "2.28")
    fitting = [number for number in _GLIBC if glibc and number <= int(glibc[1])]
    return f"{name}-manylinux_2_{fitting[-1]}" if fitting else ""
