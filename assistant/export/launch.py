"""Launch settings of image applications: arguments that choose the backend, and the torch build to be installed."""

from __future__ import annotations

import re

from assistant.catalog import carried_by_torch_index
from assistant.catalog.launchers import Launcher, launchers, written
from assistant.export.pins import asked
from assistant.export.setup import MARKER, Setup, Unsuited
from assistant.export.shells import variables
from assistant.export.templates import filled, json_text
from assistant.i18n import _

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
