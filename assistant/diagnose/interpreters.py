"""The Python that a log's program runs in: where it is, and how its packages are changed from a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

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
    r"(?<![^\s\"'(=])((?:[A-Za-z]:)?[\\/][^\n\"'*?<>|:]{1,300}?)[\\/](?:lib(?:64)?/python3\.\d{1,2}t?|Lib)[\\/]site-packages[\\/]"
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
    r".*[\\/](?:envs[\\/][^\\/]+|(?:installer_files|alltalk_environment|fishenv)[\\/]env|python[^\\/]*|py3\d+|runtime"
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
# What a path may hold that is put into a command: nothing that a shell reads, even between quotation marks.
_PLAIN = re.compile(r"[\w .()+,@~:\\/-]+")
_ABSOLUTE = re.compile(r"(?:[A-Za-z]:)?[\\/]")


class Application(Record, frozen=True):
    """A row of applications: `marks` of its logs in lower case, and by system how its Python is typed in its folder."""

    name: str
    marks: tuple[str, ...]
    python: dict[str, str]
    pip: str = ""


class Project(Record, frozen=True):
    """A row of projects' tools: `marks` are patterns, `run` types its Python, the others how packages are changed."""

    name: str
    marks: tuple[str, ...]
    run: str = "python"
    pip: str = ""
    install: tuple[str, ...] = ()
    from_index: tuple[str, ...] = ()
    sync: str = ""


class _File(Record, frozen=True):
    as_of: str
    source: str
    application: tuple[Application, ...]
    project: tuple[Project, ...]


def interpreter_of(log: Log, machine: Machine, line: int | None = None) -> Interpreter:
    """Return how the Python of a log's program is reached; `line` is the index of the line that shows its cause."""
    path = _path(log, line)
    project = next((row for row in _file().project if any(re.search(mark, log.text) for mark in row.marks)), None)
    application = None if project and project.sync else _application(log, machine)
    container = bool(machine.container or _CONTAINER.search(log.text))
    uv = bool(project and project.pip) or bool(application and application.pip)
    if path and not (project and project.sync):
        typed = f'"{path}"' if set(path) & set(" (),") else path
        isolated = " -s" if "python_embed" in path.lower() else ""
        absolute = path if _ABSOLUTE.match(path) else ""
        return Interpreter(
            path=absolute, python=typed + isolated, pip="uv pip" if uv and ".venv" in path else "", container=container
        )
    if project:
        return Interpreter(path=path, python=project.run, pip=project.pip, project=project.name, container=container)
    if application:
        typed = application.python[_system(application, machine)]
        return Interpreter(python=typed, pip=application.pip, folder=application.name, container=container)
    return Interpreter(container=container)


def placed(remedy: Remedy, where: Interpreter) -> Remedy:
    """Return a remedy whose commands are typed for the Python that they are for, with what is to be minded there."""
    commands = tuple(line for command in remedy.commands for line in _typed(command, where))
    check = tuple(line for command in remedy.check for line in _typed(command, where))
    if "\\" in where.python:
        commands, check = tuple(map(taken_by_both, commands)), tuple(map(taken_by_both, check))
    changes = any(map(_CHANGES.search, commands))
    if not changes and commands == remedy.commands:
        return replace(remedy, check=check)
    return replace(remedy, text=sentences((remedy.text, *_notes(commands, where))), commands=commands, check=check)


def _notes(commands: tuple[str, ...], where: Interpreter) -> Iterator[Message]:
    tool = _tool(where)
    if where.folder:
        yield _("Type it in the folder of {program}.", program=where.folder)
    adding = tuple(line.partition(" {")[0] for line in (*tool.install, *tool.from_index)) if tool else ()
    if tool and tool.sync and not any(line.startswith(adding) for line in commands):
        yield _("The next `{sync}` undoes it unless pyproject.toml says the same.", sync=tool.sync)
    if where.container:
        yield _("In a container it lasts only if the image has it: add it to the Dockerfile as a RUN line.")


def _typed(command: str, where: Interpreter) -> Iterator[str]:
    """Yield what is typed in place of a command of `python`, which is any Python."""
    found = _PIP.fullmatch(command)
    tool = _tool(where)
    kept = found and tool and _kept(found[1], found[2], tool)
    if kept:
        yield from kept
    elif found and where.pip:
        python = "" if where.project else f" --python {where.python}"
        words = [new for word in found[2].split(" ") for new in UV_OPTIONS.get(word, (word,))]
        yield " ".join((f"{where.pip} {found[1]}{python}", *filter(None, words)))
    else:
        yield re.sub(r"(?:^|(?<=\$\())python(?= )", lambda _found: where.python, command)


def _kept(verb: str, rest: str, tool: Project) -> tuple[str, ...]:
    """Return the commands by which a project itself takes what pip would install; () where it has none for it."""
    words = [word for word in rest.split(" ") if word != "--upgrade"]
    index = ""
    if "--index-url" in words[:-1]:
        place = words.index("--index-url")
        index = words[place + 1]
        del words[place : place + 2]
    rows = tool.from_index if index else tool.install
    if verb != "install" or not words or any(word.startswith("-") for word in words):
        return ()
    name = f"pytorch-{index.rstrip('/').rpartition('/')[2]}"
    return tuple(row.format(packages=" ".join(words), index=index, name=name) for row in rows)


def _tool(where: Interpreter) -> Project | None:
    return next((row for row in _file().project if row.name == where.project), None)


def _application(log: Log, machine: Machine) -> Application | None:
    """Return the application that a log names by its longest mark, if it keeps a Python on this system."""
    named = {mark: row for row in _file().application for mark in row.marks if mark in log.text}
    row = named[max(named, key=len)] if named else None
    return row if row and _system(row, machine) in row.python else None


def _system(row: Application, machine: Machine) -> str:
    """Return the system that an application runs on; where nobody tells, Windows, for which most of these are made."""
    return machine.os or ("windows" if "windows" in row.python else next(iter(row.python)))


@lru_cache(maxsize=16)  # each cause of a log asks, and mostly for the same line
def _path(log: Log, line: int | None) -> str:
    """Return the interpreter that a log names first; "" for none, and for one that a shell would misread."""
    found = next((one for one in _paths(log, line) if not _OF_A_SERVER.match(one)), "")
    return found if _PLAIN.fullmatch(found) else ""


def _paths(log: Log, line: int | None) -> Iterator[str]:
    """Yield the interpreters that a log names: by the folders of packages near a line, then as they are called."""
    for folder in near(log, line, _ENVIRONMENT):
        if not _OF_SYSTEM.fullmatch(folder) and not _FOR_A_BUILD.search(folder):
            if "\\" not in folder:
                yield f"{folder}/bin/python"
            else:
                yield f"{folder}\\python.exe" if _FLAT.fullmatch(folder) else f"{folder}\\Scripts\\python.exe"
    for _number, text in log.lines:
        found = (_QUOTED.search(text) or _CALLED.search(text)) if "python" in text.lower() else None
        if found and not _INSTALLED.match(found[1]) and not _FOR_A_BUILD.search(found[1]):
            yield found[1]


def near(log: Log, line: int | None, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield what lines of packages name, from the one that shows a cause upwards, then those below it."""
    start = len(log.lines) if line is None else line + 1
    for _number, text in (*reversed(log.lines[:start]), *log.lines[start:]):
        if "site-packages" in text and (found := pattern.search(text)):
            yield found[1]


def _file() -> _File:
    return table("interpreters.toml", _File)
