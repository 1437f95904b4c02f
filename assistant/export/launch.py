"""How programs start with the setup's variables: shells, containers, image applications, a job on GitHub."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from assistant.catalog import carried_by_torch_index
from assistant.catalog.launchers import Launcher, launchers, written
from assistant.catalog.tables import Row, rows
from assistant.export.packages import asked
from assistant.export.setup import MARKER, Setup, Unsuited, filled, json_text, variables
from assistant.i18n import _
from assistant.model.plan import Backend
from assistant.model.shell import Shell, setting

# Windows refuses every script of PowerShell, one that was made here too, unless that is changed; here until the window
# is closed: https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_execution_policies
ALLOW_SCRIPTS = "Set-ExecutionPolicy -Scope Process RemoteSigned -Force"
_PLAIN = re.compile(r"[\w.,:/+@%=-]*", re.ASCII)


def dotenv_text(setup: Setup) -> str:
    """Write `.env`."""
    return _lines(setup, lambda name, value: f"{name}={_quoted(value)}")


def powershell_text(setup: Setup) -> str:
    """Write a script to be dotted into PowerShell."""
    return _lines(setup, lambda name, value: setting(name, value, Shell.POWERSHELL))


def fish_text(setup: Setup) -> str:
    """Write a script to be sourced by fish."""
    escaped = str.maketrans({"\\": "\\\\", "'": "\\'"})
    return _lines(setup, lambda name, value: f"set -gx {name} '{value.translate(escaped)}'")


def _lines(setup: Setup, line: Callable[[str, str], str]) -> str:
    return "\n".join([f"# {MARKER}", *(line(name, value) for name, value in variables(setup).items()), ""])


def _quoted(line: str) -> str:
    """Quote only what needs it: `docker run --env-file` keeps quotes (https://github.com/docker/cli/issues/3630)."""
    if _PLAIN.fullmatch(line):
        return line
    if "'" not in line:
        return f"'{line}'"  # the one form in which neither shells nor dotenv readers expand anything
    escaped = re.sub(r"([\\\"$`])", r"\\\1", line)
    return f'"{escaped}"'


def dockerfile_text(setup: Setup) -> str:
    """Write a `Dockerfile` that installs `requirements.txt`; the container prints which device `device.py` finds."""
    row = _container_of(setup)
    return filled(
        "Dockerfile",
        {"docker": _docker_quoted},
        image=row.image.format(python=setup.plan.python),
        apt=row.apt,
        env={**row.env, **variables(setup)},
        run=shlex.join(row.run),
        tag=f"torch-{setup.plan.variant}".replace("/", "-").lower(),
    )


def devcontainer_text(setup: Setup) -> str:
    """Write `devcontainer.json`: the same Dockerfile, opened in VS Code or Codespaces with the same device."""
    row = _container_of(setup)
    settings = {
        "name": f"PyTorch {setup.plan.torch} ({setup.plan.variant})",
        "build": {"dockerfile": "../Dockerfile", "context": ".."},
        "runArgs": list(row.run),
        "containerEnv": {**row.env, **variables(setup)},
        "remoteUser": "root",
        "customizations": {"vscode": {"extensions": ["ms-python.python", "ms-toolsai.jupyter"]}},
    }
    if setup.plan.backend is Backend.CUDA:
        settings["hostRequirements"] = {"gpu": "optional"}
    return filled("devcontainer.json", settings=settings)


def _container_of(setup: Setup) -> Row:
    """Return the row for this setup; raise `Unsuited` where no container reaches its device.

    `image` is the base ("{python}" is filled in), `apt` are drivers from Debian, `run` the options of `docker run` that
    hand over the device. Under WSL, where the device is another one, a row with `wsl` holds if the backend has any.
    """
    machine, plan = setup.machine, setup.plan
    if (machine.os or "linux") != "linux":
        why = _("A container runs Linux, and these packages are for {system}.", system=machine.os)
    elif not re.fullmatch(r"\d\.\d+", plan.python):
        why = _("There is no base image with Python {python}.", python=plan.python)
    else:
        listed = [row for row in rows("containers.containers") if row.backend == plan.backend.value]
        fitting = [row for row in listed if row.wsl == bool(machine.wsl)] or [row for row in listed if not row.wsl]
        if fitting:
            return fitting[0]
        why = _("On this system no container can reach a device of the backend {backend}.", backend=plan.backend.title)
    raise Unsuited(why, hint=_("Choose another format, such as requirements.txt."))


def _docker_quoted(value: str) -> str:
    """Quote a value for `ENV`, which expands `$` and reads backslashes within double quotes.

    https://docs.docker.com/reference/dockerfile/#environment-replacement
    """
    return '"{}"'.format(re.sub(r'([\\"$])', r"\\\1", value))


_KEEPER = "stabilitymatrix"  # starts the other applications, and keeps their arguments as JSON
_SAFE = re.compile(r"[\w.,:/+@=-]*", re.ASCII)  # what neither sh nor cmd reads as anything but text


def launch_files(setup: Setup) -> dict[str, str]:
    """Write settings for each application that runs on this backend and system; raise `Unsuited` if none does."""
    system, backend = setup.machine.os or "linux", setup.plan.backend
    known = [
        (launcher, launcher.backends[backend])
        for launcher in launchers()
        if launcher.key != _KEEPER and backend in launcher.backends and system in launcher.lines
    ]
    if not known:
        raise Unsuited(
            _("No known application runs on the backend {backend} on this system.", backend=backend.title),
            hint=_("Choose another format."),
        )
    files: dict[str, str] = {}
    kept: dict[str, list[dict[str, object]]] = {}
    for launcher, arguments in known:
        files |= _files(launcher, arguments, system, setup)
        if not launcher.files.get(system, "").endswith(".yaml"):
            kept[launcher.name] = _options(arguments)
    return files | {f"launch/{_KEEPER}/LaunchArgs.json": json_text({"//": MARKER, **kept}, indent=2) + "\n"}


def _files(launcher: Launcher, arguments: tuple[str, ...], system: str, setup: Setup) -> dict[str, str]:
    named, line = launcher.files.get(system, ""), written(launcher, arguments, system) or ""
    if named.endswith(".yaml"):
        return {f"launch/{launcher.key}/{named}": f"# {MARKER}\n{line}\n"}
    kind = "bat" if system == "windows" else "sh"
    text = filled(
        f"launch.{kind}",
        app=launcher.name,
        line=line,
        settings={name: value for name, value in variables(setup).items() if _SAFE.fullmatch(value)},
        torch=_torch_command(setup),
        installs="COMMANDLINE_ARGS" in line,
    )
    name = named or f"start-{launcher.key}.{kind}"
    return {f"launch/{launcher.key}/{name}": text.replace("\n", "\r\n") if kind == "bat" else text}


def _options(arguments: tuple[str, ...]) -> list[dict[str, object]]:
    """Write arguments as StabilityMatrix keeps them: a word that follows an option without dashes is its value."""
    options: list[dict[str, object]] = []
    for word in arguments:
        if word.startswith("-") or not options:
            options.append({"Name": word, "Type": "Bool", "OptionValue": True})
        else:
            options[-1] |= {"Type": "String", "OptionValue": word}
    return options


def _torch_command(setup: Setup) -> str:
    """Return the command by which an application that installs torch itself gets this build; "" if it needs quoting."""
    family = [
        f"{name}=={version}"
        for name, version in asked(setup).items()
        if carried_by_torch_index(name) or name == "torch-directml"
    ]
    index = ["--extra-index-url", setup.plan.index_url] if setup.plan.index_url else []
    words = ["pip", "install", *(family or [f"torch=={setup.plan.torch}"]), *index]
    return " ".join(words) if all(_SAFE.fullmatch(word) for word in words) else ""


# By system, and whether the processor is an ARM one: https://github.com/actions/runner-images#available-images
_RUNNERS = {
    ("linux", False): "ubuntu-24.04",
    ("linux", True): "ubuntu-24.04-arm",
    ("windows", False): "windows-2025",
    ("windows", True): "windows-11-arm",
    ("macos", False): "macos-15-intel",
    ("macos", True): "macos-15",
}
_LABELS = {"linux": "linux", "windows": "windows", "macos": "macOS"}  # that a self-hosted runner gives itself


def workflow_text(setup: Setup) -> str:
    """Write the job: on GitHub's own machine for a CPU or MPS, on one of yours with the right GPU for anything else."""
    system = setup.machine.os or "linux"
    arch = (setup.machine.arch or ("arm64" if system == "macos" else "x86_64")).lower()
    arm = arch in {"aarch64", "arm64"}
    alone = setup.plan.backend in {Backend.CPU, Backend.MPS}
    return filled(
        "workflow.yml",
        runner=_RUNNERS[system, arm] if alone else ["self-hosted", _LABELS[system], "ARM64" if arm else "X64"],
        python=setup.plan.python,
        variables=variables(setup),
        device=setup.report.device,
    )
