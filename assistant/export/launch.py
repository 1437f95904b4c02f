"""How programs start with the setup's variables: shells, containers, image applications."""

from __future__ import annotations

import re
import shlex

from assistant.catalog import carried_by_torch_index
from assistant.catalog.catalog import Launcher, launch_line, launchers
from assistant.catalog.tables import Row, rows
from assistant.export.packages import requested_versions, requirements_text
from assistant.export.setup import MARKER, Setup, Unsuited, fill_template, json_text, runtime_text, variables
from assistant.i18n import _
from assistant.model.plan import Backend
from assistant.model.shell import Shell, setting

_PLAIN = re.compile(r"[\w.,:/+@%=-]*", re.ASCII)


def variable_files(setup: Setup) -> dict[str, str]:
    """Return the variables as the texts of `.env` and of `env.ps1`, a script to be dotted into PowerShell, by name."""
    values = variables(setup).items()
    return {
        ".env": "\n".join([f"# {MARKER}", *(f"{name}={_quote_value(value)}" for name, value in values), ""]),
        "env.ps1": "\n".join([f"# {MARKER}", *(setting(*item, Shell.POWERSHELL) for item in values), ""]),
    }


def _quote_value(line: str) -> str:
    """Return a value for `.env`, quoted only if it must be: `docker run --env-file` keeps quotes.

    https://github.com/docker/cli/issues/3630
    """
    if _PLAIN.fullmatch(line):
        return line
    if "'" not in line:
        return f"'{line}'"  # the one form in which neither shells nor dotenv readers expand anything
    escaped = re.sub(r"([\\\"$`])", r"\\\1", line)
    return f'"{escaped}"'


def container_files(setup: Setup) -> dict[str, str]:
    """Return the texts of a `Dockerfile`, of the two files that it copies, and of `devcontainer.json`, by path.

    The container installs `requirements.txt` and prints which device `device.py` finds; `devcontainer.json` opens it in
    VS Code or Codespaces. Raises `Unsuited` if no container reaches the setup's device.
    """
    row = _find_container_row(setup)
    environment = {**row.env, **variables(setup)}
    settings = {
        "name": f"PyTorch {setup.plan.torch} ({setup.plan.variant})",
        "build": {"dockerfile": "../Dockerfile", "context": ".."},
        "runArgs": list(row.run),
        "containerEnv": environment,
        "remoteUser": "root",
        "customizations": {"vscode": {"extensions": ["ms-python.python", "ms-toolsai.jupyter"]}},
    }
    if setup.plan.backend is Backend.CUDA:
        settings["hostRequirements"] = {"gpu": "optional"}
    dockerfile = fill_template(
        "Dockerfile",
        {"docker": _quote_for_dockerfile},
        image=row.image.format(python=setup.plan.python),
        apt=row.apt,
        env=environment,
        run=shlex.join(row.run),
        tag=f"torch-{setup.plan.variant}".replace("/", "-").lower(),
    )
    return {
        "Dockerfile": dockerfile,
        ".devcontainer/devcontainer.json": f"// {MARKER}\n{json_text(settings, indent=2)}\n",
        "requirements.txt": requirements_text(setup),
        "device.py": runtime_text("device.py"),
    }


def _find_container_row(setup: Setup) -> Row:
    """Return the catalogue's row of the container for this setup; raise `Unsuited` if none reaches its device.

    `image` is the base ("{python}" is filled in), `apt` are drivers from Debian, `run` the options of `docker run` that
    hand over the device. Under WSL, where the device is another one, a row with `wsl` is taken if the backend has any.
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


def _quote_for_dockerfile(value: str) -> str:
    """Return a value in quotes for `ENV`, which expands `$` and reads backslashes within double quotes.

    https://docs.docker.com/reference/dockerfile/#environment-replacement
    """
    return '"{}"'.format(re.sub(r'([\\"$])', r"\\\1", value))


_KEEPER = "stabilitymatrix"  # starts the other applications, and keeps their arguments as JSON
_SAFE = re.compile(r"[\w.,:/+@=-]*", re.ASCII)  # what neither sh nor cmd reads as anything but text


def launch_files(setup: Setup) -> dict[str, str]:
    """Return, by path, a start script or settings for each known application that runs on this backend and system.

    An unknown system counts as Linux. `LaunchArgs.json`, for StabilityMatrix, holds the arguments of all that have no
    YAML file. Raises `Unsuited` if there is no such application.
    """
    system, backend = setup.machine.os or "linux", setup.plan.backend
    rows = [
        (launcher, launcher.backends[backend])
        for launcher in launchers()
        if launcher.key != _KEEPER and backend in launcher.backends and system in launcher.lines
    ]
    if not rows:
        raise Unsuited(
            _("No known application runs on the backend {backend} on this system.", backend=backend.title),
            hint=_("Choose another format."),
        )
    files: dict[str, str] = {}
    stored: dict[str, list[dict[str, object]]] = {}
    for launcher, arguments in rows:
        files |= _launcher_files(launcher, arguments, system, setup)
        if not launcher.files.get(system, "").endswith(".yaml"):
            stored[launcher.name] = _options(arguments)
    return files | {f"launch/{_KEEPER}/LaunchArgs.json": json_text({"//": MARKER, **stored}, indent=2) + "\n"}


def _launcher_files(launcher: Launcher, arguments: tuple[str, ...], system: str, setup: Setup) -> dict[str, str]:
    """Return the text of the file in which an application keeps its arguments, else of a start script, by its path.

    Variables whose values a shell may read as more than text are left out of it.
    """
    named, line = launcher.files.get(system, ""), launch_line(launcher, arguments, system) or ""
    if named.endswith(".yaml"):
        return {f"launch/{launcher.key}/{named}": f"# {MARKER}\n{line}\n"}
    kind = "bat" if system == "windows" else "sh"
    family = [
        f"{name}=={version}"
        for name, version in requested_versions(setup).items()
        if carried_by_torch_index(name) or name == "torch-directml"
    ]
    index = ["--extra-index-url", setup.plan.index_url] if setup.plan.index_url else []
    words = ["pip", "install", *(family or [f"torch=={setup.plan.torch}"]), *index]
    text = fill_template(
        f"launch.{kind}",
        app=launcher.name,
        line=line,
        settings={name: value for name, value in variables(setup).items() if _SAFE.fullmatch(value)},
        # The command by which an application that installs torch gets this build, unless it would have to be quoted.
        torch=" ".join(words) if all(map(_SAFE.fullmatch, words)) else "",
        installs="COMMANDLINE_ARGS" in line,
    )
    name = named or f"start-{launcher.key}.{kind}"
    return {f"launch/{launcher.key}/{name}": text.replace("\n", "\r\n") if kind == "bat" else text}


def _options(arguments: tuple[str, ...]) -> list[dict[str, object]]:
    """Return arguments as StabilityMatrix keeps them: a word without dashes is the value of the option before it."""
    options: list[dict[str, object]] = []
    for word in arguments:
        if word.startswith("-") or not options:
            options.append({"Name": word, "Type": "Bool", "OptionValue": True})
        else:
            options[-1] |= {"Type": "String", "OptionValue": word}
    return options
