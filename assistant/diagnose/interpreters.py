"""The Python that a log's program runs in: where it is, and how its packages are changed from a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from assistant.catalog.rows import FAMILY
from assistant.diagnose.log import Log
from assistant.diagnose.rules import table
from assistant.i18n import Message, _, sentences
from assistant.model.finding import Interpreter, Remedy
from assistant.model.machine import Machine
from assistant.model.record import Record, replace
from assistant.model.shell import taken_by_both

# pip's options and uv's in place of them: https://docs.astral.sh/uv/pip/compatibility/. UV_DEFAULT_INDEX, which many
# set to a mirror, goes before --index-url.
UV_OPTIONS = {
    "-y": (),
    "--no-cache-dir": ("--no-cache",),
    "--force-reinstall": ("--reinstall",),
    "--index-url": ("--default-index",),
}
# The folder of an environment, in the lines of a traceback:
#   File "/home/ada/webui/venv/lib/python3.10/site-packages/torch/__init__.py", line 237, in <module>
#   File "C:\Users\ada\ComfyUI\python_embeded\Lib\site-packages\torch_directml\__init__.py", line 21, in <module>
_ENVIRONMENT = re.compile(
    r"(?<![^\s\"'(=])((?:[A-Za-z]:)?[\\/][^\n\"'*?<>|:]{1,300}?)[\\/](?:lib(?:64)?/python3\.\d{1,2}t?|[Ll]ib)[\\/]site-packages[\\/]"
)
# An interpreter that is called, or printed when a program starts:
#   ** Python executable: E:\ComfyUI\python_embeded\python.exe     venv "D:\webui\venv\Scripts\Python.exe"
#   $ ./venv/bin/python app.py     D:\GPT-SoVITS>runtime\python.exe -I webui.py
_CALLED = re.compile(
    r"(?:(?<=[\s\"'>(=])|^)((?:[A-Za-z]:|\.{1,2}|~)?[\\/]?(?:[^\s\\/\"'<>|:*?(]{1,80}[\\/]){1,12}python(?:3(?:\.\d{1,2})?)?(?:\.exe)?)"
    r"(?=[\s\"')]|$)",
    re.IGNORECASE | re.MULTILINE,
)
# \\server\share\…: to look whether it is there would ask that server, and tell it who this user is.
_OF_A_SERVER = re.compile(r"[\\/]{2}")
_OF_SYSTEM = re.compile(r"/usr(?:/local)?|.*/\.local")  # whose Python is no environment of anybody's
# A Python from which environments are made, by the path of its interpreter.
_INSTALLED = re.compile(
    r"/usr/|/bin/|/opt/homebrew/|/library/|.*[\\/](?:windowsapps|program files\b[^\\/]*|programs[\\/]python|\.pyenv|"
    r"uv[\\/](?:data[\\/])?python)[\\/]|[a-z]:\\python3?\d",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"[\"']((?:[A-Za-z]:|[.~])?[\\/][^\"'\n]{1,300}[\\/]python[\d.]{0,4}(?:\.exe)?)[\"']", re.IGNORECASE
)
# On Windows some keep `python.exe` in the folder itself, where an environment of venv has `Scripts`.
_FLAT = re.compile(
    r".*[\\/](?:envs[\\/][^\\/]+|(?:installer_files|alltalk_environment|fishenv)[\\/]env|python[^\\/]*|py(?:3\d+)?|runtime"
    r"|(?:mini|ana)conda\d?|miniforge\d?)",
    re.IGNORECASE,
)
# Environments that an installer makes for a build, and throws away.
_FOR_A_BUILD = re.compile(r"pip-build-env|pip-install-|[\\/]builds-v\d|[\\/]\.tmp\w{4,}")
_CONTAINER = re.compile(
    r"\bdocker(?:-compose| compose| run| build| exec| pull)\b|\bdockerfile\b|\bpodman (?:run|build)\b"
)
_PIP = re.compile(r"python -m pip (install|uninstall|show|check|list|freeze)\b ?(.*)")
# pip install torch    uv add torch    conda install -y numpy    sudo apt install ffmpeg; but not: git lfs install
_CHANGES = re.compile(
    r"\b(?:assistant|pip3?|uv|conda|mamba|pixi|poetry|pdm|apt|apt-get|dnf|pacman|zypper|winget|choco|brew)\b"
    r"[^|&;\n]{0,80}? (?:install|uninstall|add|remove)\b"
)
# Commands that a program's folder or its environment has to do with; not those of the system's packages.
_OF_PYTHON = re.compile(r"python|\b(?:assistant|pip3?|uv|conda|mamba|pixi|poetry|pdm)\b")
# Using VENV: C:\ai\automatic\venv
_NAMED = re.compile(r"using venv: ([^\s\"']{3,300})$", re.IGNORECASE)
# File "D:\StabilityMatrix\Packages\OneTrainer\modules\ui\TrainUI.py", line 745, in …
_STABILITY_MATRIX = re.compile(
    r"((?:[A-Za-z]:)?[\\/][^\n\"'*?<>|:]{0,200}StabilityMatrix[\\/](?:Data[\\/])?Packages[\\/][\w .-]{1,60}?)[\\/]",
    re.IGNORECASE,
)
# A program that comes with a Python of its own.
_BUNDLE = re.compile(
    r"整合包|懒人包|一键包|便携版|绿色版|\bportable (?:version|build|package|install)"
    r"|\bone[ -]click (?:package|install)"
)
_COMPOSE = re.compile(r"\bdocker[ -]compose\b|\bcompose\.ya?ml\b")
_EXPORT = re.compile(r"export (\w+)=(.*)")
# journalctl -u ollama -n 50     sudo systemctl restart comfyui.service
_SERVICE = re.compile(
    r"\b(?:journalctl [^\n]{0,30}-u|systemctl (?:re)?(?:start|status|stop|edit|enable)) "
    r"([a-z][\w@-]{1,40}?)(?:\.service)?(?=\s|$)",
    re.MULTILINE,
)
_NO_PROGRAM = {
    "docker",
    "containerd",
    "podman",
    "nvidia-persistenced",
    "daemon-reload",
    "gdm",
    "sddm",
    "sleep",
    "suspend",
}
# What starts an application, and holds its variables: webui-user.bat     run_amd_gpu.bat     start.sh
_SCRIPT = re.compile(
    r"(?<![\w/\\.-])((?:webui|comfyui|run|start|launch|go|invoke|fooocus)[\w-]{0,30}\.(?:bat|sh|ps1))\b"
)
_DOCKER_RUN = re.compile(r"\b(?:docker|podman) run\b")
# Who types python3 has a system that may know no `python`.
_PYTHON3 = re.compile(r"(?:^|[$#>&(;|] ?)(?:sudo )?(python3(?:\.\d{1,2})?) (?=-|\S{1,80}\.py\b)", re.MULTILINE)
_PLAIN_PYTHON = re.compile(r"(?:^|[$#>&(;|] ?)python (?=-|\S{1,80}\.py\b)", re.MULTILINE)
_CONDA_ENVIRONMENT = re.compile(r".*[\\/]envs[\\/]([\w.-]{1,60})[\\/]")
# What a path may hold that is put into a command: nothing that a shell reads, even between quotation marks.
_PLAIN = re.compile(r"[\w .()+,@~:\\/-]+")
_ABSOLUTE = re.compile(r"(?:[A-Za-z]:)?[\\/]")
_BY_PIP = re.compile(r"\b(?:pip3?|conda|mamba) (?:install|uninstall)\b")  # what a sync takes back
CONDA = "conda"  # the row of conda's own packages
# conda create -n tv python=3.12     conda activate tv
_CONDA_NAME = re.compile(
    r"\b(?:conda|mamba) \w{3,9}[^\n]{0,40}? (?:-n|--name) ([\w.-]{1,40})|\bconda activate ([\w.-]{1,40})"
)


class Application(Record, frozen=True):
    """A row of applications: `marks` of its logs in lower case, and by system how its Python is typed in its folder."""

    name: str
    marks: tuple[str, ...]
    python: dict[str, str]
    pip: str = ""


class Project(Record, frozen=True):
    """A row of projects' tools: `marks` are patterns, `run` types its Python, the others how packages are changed.

    `pin_python` with a version lets the project use another Python.
    """

    name: str
    marks: tuple[str, ...]
    run: str = "python"
    pip: str = ""
    install: tuple[str, ...] = ()
    from_index: tuple[str, ...] = ()
    sync: str = ""
    pin_python: str = ""


class _File(Record, frozen=True):
    as_of: str
    source: str
    application: tuple[Application, ...]
    project: tuple[Project, ...]


def interpreter_of(log: Log, machine: Machine, line: int | None = None) -> Interpreter:
    """Return how the Python of a log's program is reached; `line` is the index of the line that shows its cause.

    Its fields are empty if the log does not tell that.
    """
    path = _interpreter_path(log, line)
    project = project_of_text(log.text)
    application = None if project and project.sync else _application_of(log, machine)
    container = bool(machine.container or _CONTAINER.search(log.text))
    compose = bool(_COMPOSE.search(log.text))
    has_uv = bool(project and project.pip) or bool(application and application.pip)
    if path and not (project and (project.sync or project.name == CONDA)):
        python_command = f'"{path}"' if set(path) & set(" (),") else path
        isolation = " -s" if "python_embed" in path.lower() else ""
        absolute_path = path if _ABSOLUTE.match(path) else ""
        return Interpreter(
            path=absolute_path,
            python=python_command + isolation,
            pip="uv pip" if has_uv and ".venv" in path else "",
            container=container,
            compose=compose,
        )
    if project and project.name == CONDA:
        environment = _CONDA_NAME.search("\n".join(line for _number, line in log.lines))
        python = f"conda run -n {environment[1] or environment[2]} python" if environment else project.run
        return Interpreter(python=python, project=project.name, container=container)
    if project:
        return Interpreter(
            path=path, python=project.run, pip=project.pip, project=project.name, container=container, compose=compose
        )
    if application:
        python_command = application.python[_system_of(application, machine)]
        return Interpreter(python=python_command, pip=application.pip, folder=application.name, container=container)
    bundled = not container and bool(_BUNDLE.search(log.text))
    return Interpreter(python=_typed_python(log, machine), container=container, compose=compose, bundled=bundled)


def _typed_python(log: Log, machine: Machine) -> str:
    """Return how Python is called outside of environments: as python3 if a Unix text calls it so, and never plainly."""
    typed = _PYTHON3.search(log.text) if machine.os != "windows" else None
    return "python3" if typed and not _PLAIN_PYTHON.search(log.text) else "python"


def with_interpreter(remedy: Remedy, interpreter: Interpreter, log: Log | None = None) -> Remedy:
    """Return a remedy with its commands typed for an interpreter, and notes on what is to be minded there.

    `log` tells where the variables that it sets belong.
    """
    remedy = _variables_at(log, remedy) if log else remedy
    remedy = _in_compose(remedy) if interpreter.compose else remedy
    commands = tuple(line for command in remedy.commands for line in _commands_for(command, interpreter))
    check = tuple(line for command in remedy.check for line in _commands_for(command, interpreter))
    if "\\" in interpreter.python:
        commands, check = tuple(map(taken_by_both, commands)), tuple(map(taken_by_both, check))
    commands = _without_uninstalls(commands, _project_of(interpreter))
    changes_packages = any(map(_CHANGES.search, commands))
    if not changes_packages and commands == remedy.commands:
        return replace(remedy, check=check)
    return replace(
        remedy, text=sentences((remedy.text, *_notes(commands, interpreter))), commands=commands, check=check
    )


def _variables_at(log: Log, remedy: Remedy) -> Remedy:
    """Return a remedy that sets variables with a note on where they belong in a log: a service, a start script, docker.

    A shell's variables reach none of these.
    """
    if not remedy.env or _COMPOSE.search(log.text):
        return remedy
    pairs = [f"{name}={value}" for name, value in remedy.env.items()]
    service = next((match[1] for match in _SERVICE.finditer(log.text) if match[1] not in _NO_PROGRAM), "")
    script = _SCRIPT.search(log.text)
    if service:
        lines = " ".join(f'Environment="{pair}"' for pair in pairs)
        note = _("For the service it goes under [Service], as {lines}.", lines=lines)
        commands = (f"sudo systemctl edit {service}", f"sudo systemctl restart {service}")
        return replace(remedy, text=sentences((remedy.text, note)), commands=(*remedy.commands, *commands), env={})
    if script:
        setting = "export" if script[1].endswith("sh") else "set"
        lines = ", ".join(f"{setting} {pair}" for pair in pairs)
        note = _("Write it near the top of {file}, as {lines}.", file=script[1], lines=lines)
        return replace(remedy, text=sentences((remedy.text, note)))
    if _DOCKER_RUN.search(log.text):
        options = " ".join(f"-e {pair}" for pair in pairs)
        note = _("A container gets it from the line that starts it: docker run {options}.", options=options)
        return replace(remedy, text=sentences((remedy.text, note)))
    return remedy


def _in_compose(remedy: Remedy) -> Remedy:
    """Return a remedy with its variables for the compose file of a service, which sees none of the host's shell."""
    exported = [match.groups() for command in remedy.commands if (match := _EXPORT.fullmatch(command))]
    values = {**remedy.env, **{name: value for name, value in exported if "$" not in value}}
    if not values:
        return remedy
    lines = ", ".join(f"{name}: {value}" for name, value in values.items())
    note = _("In the compose file it stands under environment: of the service, as {lines}.", lines=lines)
    commands = tuple(
        command for command in remedy.commands if not (match := _EXPORT.fullmatch(command)) or match[1] not in values
    )
    anew = "docker compose up --detach --force-recreate"
    return replace(remedy, text=sentences((remedy.text, note)), commands=(*commands, anew), env={})


def _notes(commands: tuple[str, ...], interpreter: Interpreter) -> Iterator[Message]:
    """Yield what to mind with commands: the folder, what a later sync undoes, that a container forgets changes."""
    of_python = any(map(_OF_PYTHON.search, commands))
    tool = _project_of(interpreter) if of_python else None
    if interpreter.folder and of_python:
        yield _("Type it in the folder of {program}.", program=interpreter.folder)
    if interpreter.bundled and any(command.startswith("python ") for command in commands):
        yield _(
            "The program has a Python of its own: type the path of the python.exe in its folder (mostly in runtime,"
            " python_embeded or venv\\Scripts) in place of python."
        )
    adding_commands = tuple(line.partition(" {")[0] for line in (*tool.install, *tool.from_index)) if tool else ()
    if any(line.startswith("uv add --index ") for line in commands):
        yield _("In pyproject.toml write explicit = true below that index, so that all else still comes from PyPI.")
    by_pip = any(map(_BY_PIP.search, commands))
    if tool and tool.sync and by_pip and not any(line.startswith((*adding_commands, tool.sync)) for line in commands):
        yield _("The next `{sync}` undoes it unless pyproject.toml says the same.", sync=tool.sync)
    if interpreter.container and not any("docker" in line for line in commands):
        yield _("In a container it lasts only if the image has it: add it to the Dockerfile as a RUN line.")


def _commands_for(command: str, interpreter: Interpreter) -> Iterator[str]:
    """Yield the commands that do for an interpreter what a command of `python` or pip says."""
    pip_command = _PIP.fullmatch(command)
    tool = _project_of(interpreter)
    if tool and tool.name == CONDA and pip_command:
        yield from _conda_commands(pip_command[1], pip_command[2], tool, interpreter)
        return
    project_commands = pip_command and tool and _project_commands(pip_command[1], pip_command[2], tool)
    if project_commands:
        yield from project_commands
    elif pip_command and interpreter.pip:
        python = "" if interpreter.project else f" --python {interpreter.python}"
        words = [new for word in pip_command[2].split(" ") for new in UV_OPTIONS.get(word, (word,))]
        yield " ".join((f"{interpreter.pip} {pip_command[1]}{python}", *filter(None, words)))
    elif command.startswith("conda install ") and (environment := _CONDA_ENVIRONMENT.match(interpreter.path)):
        yield command.replace("conda install ", f"conda install -n {environment[1]} ", 1)
    else:
        yield re.sub(r"(?:^|(?<=[ $]\())python(?= )", lambda _found: interpreter.python, command)


def _conda_commands(verb: str, arguments: str, tool: Project, interpreter: Interpreter) -> tuple[str, ...]:
    """Return conda's commands for what pip would do with torch's family; pip's own for other packages.

    Conda exchanges what is there itself, so that nothing is uninstalled before.
    """
    words = re.sub(r"--index-url \S+", "", arguments).split()
    names = [re.split(r"[\[=<>~!]", word.strip("\"'"), maxsplit=1)[0] for word in words if not word.startswith("-")]
    is_elsewhere = re.search(r"/whl/(?:rocm|xpu)|repo\.amd\.com", arguments)  # conda-forge has no builds for AMD's GPUs
    if not names or is_elsewhere or not {*names} <= {"torch", *FAMILY} or verb not in {"install", "uninstall"}:
        return (f"{interpreter.python} -m pip {verb} {arguments}",)
    if verb == "uninstall":
        return ()
    environment = re.search(r"conda run( -n \S+)", interpreter.python)
    torch = "pytorch-gpu" if "/whl/cu" in arguments else "pytorch"
    packages = " ".join({"torch": torch}.get(name, name) for name in names if name != "torchaudio")
    return tuple(
        row.format(packages=packages, environment=environment[1] if environment else "") for row in tool.install
    )


def _without_uninstalls(commands: tuple[str, ...], tool: Project | None) -> tuple[str, ...]:
    """Return commands without those that uninstall what a later one of a project's tool exchanges anyway."""
    adding = tuple(line.partition(" {")[0] for line in (*tool.install, *tool.from_index)) if tool and tool.sync else ()
    if not adding or not any(line.startswith(adding) for line in commands):
        return commands
    return tuple(line for line in commands if "pip uninstall" not in line)


def _project_commands(verb: str, arguments: str, tool: Project) -> tuple[str, ...]:
    """Return the commands with which a project's tool takes what pip would install; () if it has none for it."""
    words = [word for word in arguments.split(" ") if word != "--upgrade"]
    index = ""
    if "--index-url" in words[:-1]:
        option_at = words.index("--index-url")
        index = words[option_at + 1]
        del words[option_at : option_at + 2]
    rows = tool.from_index if index else tool.install
    if verb != "install" or not words or any(word.startswith("-") for word in words):
        return ()
    index_name = f"pytorch-{index.rstrip('/').rpartition('/')[2]}"
    return tuple(row.format(packages=" ".join(words), index=index, name=index_name) for row in rows)


def project_of_text(text: str) -> Project | None:
    """Return the row of the first project's tool that a text shows; None if it shows none."""
    return next((row for row in _tables().project if any(re.search(mark, text) for mark in row.marks)), None)


def _project_of(interpreter: Interpreter) -> Project | None:
    """Return the row of the project's tool that an interpreter belongs to; None if it belongs to none."""
    return next((row for row in _tables().project if row.name == interpreter.project), None)


def _application_of(log: Log, machine: Machine) -> Application | None:
    """Return the application that a log names by its longest mark; None if it has no Python on this system."""
    row_of = {mark: row for row in _tables().application for mark in row.marks if mark in log.text}
    row = row_of[max(row_of, key=len)] if row_of else None
    return row if row and _system_of(row, machine) in row.python else None


def _system_of(row: Application, machine: Machine) -> str:
    """Return the machine's system; if that is unknown, Windows, or the row's first if the application has none for it.

    Most of these applications are made for Windows.
    """
    return machine.os or ("windows" if "windows" in row.python else next(iter(row.python)))


@lru_cache(maxsize=16)  # each cause of a log asks, and mostly for the same line
def _interpreter_path(log: Log, line: int | None) -> str:
    """Return the first path of an interpreter in a log; "" for none, and for one that a shell would misread."""
    path = next((candidate for candidate in _interpreter_paths(log, line) if not _OF_A_SERVER.match(candidate)), "")
    return path if _PLAIN.fullmatch(path) else ""


def _interpreter_paths(log: Log, line: int | None) -> Iterator[str]:
    """Yield the interpreters in a log: by folders of packages, from `line` outwards, then those that are called."""
    for folder in log.near(line, _ENVIRONMENT):
        if not _OF_SYSTEM.fullmatch(folder) and not _FOR_A_BUILD.search(folder):
            if "\\" not in folder:
                yield f"{folder}/bin/python"
            else:
                yield f"{folder}\\python.exe" if _FLAT.fullmatch(folder) else f"{folder}\\Scripts\\python.exe"
    for _number, text in log.lines:
        named, package = _NAMED.search(text), _STABILITY_MATRIX.search(text)
        if environment := named[1] if named else f"{package[1]}/venv" if package else "":
            is_windows = "\\" in environment
            yield f"{environment}/Scripts/python.exe".replace("/", "\\") if is_windows else f"{environment}/bin/python"
        match = (_QUOTED.search(text) or _CALLED.search(text)) if "python" in text.lower() else None
        if match and not _INSTALLED.match(match[1]) and not _FOR_A_BUILD.search(match[1]):
            yield match[1]


def _tables() -> _File:
    """Return the shipped rows of applications and projects, read once."""
    return table("interpreters.toml", _File)
