"""Where a log's program runs: its Python, its container, its project and what mends that; what commands may name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from packaging.utils import canonicalize_name

from assistant.catalog import load_catalog, number
from assistant.catalog.catalog import runtime_builds, runtime_plugins
from assistant.catalog.companions import all_names
from assistant.catalog.tables import CORE, FAMILY
from assistant.diagnose.builds import missing_modules
from assistant.diagnose.facts import LogContext, package_of, pip_install
from assistant.diagnose.index import addresses, classify_address, pattern_of
from assistant.diagnose.log import Log, is_said, may_be_cut
from assistant.diagnose.rules import PLACEHOLDER, Rule, plain_table
from assistant.i18n import Message, _, sentences
from assistant.model.finding import Interpreter, Remedy
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.model.shell import rewrite_for_both_shells

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
#   ** Python executable: E:\ComfyUI\python_embeded\python.exe     venv "D:\my webui\venv\Scripts\Python.exe"
#   $ ./venv/bin/python app.py     D:\GPT-SoVITS>runtime\python.exe -I webui.py
#   /home/ada/demo/.venv/bin/python: No module named pip
_CALLED = re.compile(
    r"[\"'](?P<quoted>(?:[A-Za-z]:|[.~])?[\\/][^\"'\n]{1,300}[\\/]python[\d.]{0,4}(?:\.exe)?)[\"']"
    r"|(?:(?<=[\s\"'>(=])|^)(?P<plain>(?:[A-Za-z]:|\.{1,2}|~)?[\\/]?(?:[^\s\\/\"'<>|:*?(]{1,80}[\\/]){1,12}"
    r"python(?:3(?:\.\d{1,2})?)?(?:\.exe)?)(?=[\s\"')]|: no module|$)",
    re.IGNORECASE | re.MULTILINE,
)
# \\server\share\…: to look whether it is there would ask that server, and tell it who this user is.
_OF_A_SERVER = re.compile(r"[\\/]{2}")
# A Python from which environments are made, by its folder or the path of its interpreter; and what is made for a build.
_OF_SYSTEM = re.compile(r"/usr(?:/local)?|.*/\.local")
_NOBODYS = re.compile(
    r"/usr/|/bin/|/opt/homebrew/|/library/|.*[\\/](?:windowsapps|program files\b[^\\/]*|programs[\\/]python|\.pyenv|"
    r"uv[\\/](?:data[\\/])?python)[\\/]|[a-z]:\\python3?\d",
    re.IGNORECASE,
)
_FOR_A_BUILD = re.compile(r"pip-build-env|pip-install-|[\\/]builds-v\d|[\\/]\.tmp\w{4,}")
# On Windows some keep `python.exe` in the folder itself, where an environment of venv has `Scripts`.
_FLAT = re.compile(
    r".*[\\/](?:envs[\\/][^\\/]+|(?:installer_files|alltalk_environment|fishenv)[\\/]env|python[^\\/]*|py(?:3\d+)?|runtime"
    r"|(?:mini|ana)conda\d?|miniforge\d?)",
    re.IGNORECASE,
)
# What a path may hold that is put into a command: nothing that a shell reads, even between quotation marks.
_PLAIN = re.compile(r"[\w .()+,@~:\\/-]+")
_ABSOLUTE = re.compile(r"(?:[A-Za-z]:)?[\\/]")
# Who types python3 has a system that may know no `python`.
_PYTHON3 = re.compile(r"(?:^|[$#>&(;|] ?)(?:sudo )?python3(?:\.\d{1,2})? (?=-|\S{1,80}\.py\b)", re.MULTILINE)
_PLAIN_PYTHON = re.compile(r"(?:^|[$#>&(;|] ?)python (?=-|\S{1,80}\.py\b)", re.MULTILINE)
CONDA = "conda"  # the row of conda's own packages
# conda create -n tv python=3.12     conda activate tv
_CONDA_NAME = re.compile(
    r"\b(?:conda|mamba) \w{3,9}[^\n]{0,40}? (?:-n|--name) ([\w.-]{1,40})|\bconda activate ([\w.-]{1,40})"
)


def interpreter_of(log: Log, machine: Machine, line: int | None = None) -> Interpreter:
    """Return how the Python of a log's program is reached; `line` is the index of the line that shows its cause.

    Its fields are empty if the log does not tell that.
    """
    path, places = _interpreter_path(log, line), places_of(log, machine.container)
    table = plain_table("environments.toml")
    where = Interpreter(container="container" in places, compose="compose" in places)
    # A place that has its own way of changing packages goes before a tool that a project has.
    rows = (row for row in table["place"] if row["name"] in places and "run" in row)
    project: Mapping[str, Any] = next(rows, project_of_text(log.text))
    row_of = {mark: row for row in table["application"] for mark in row["marks"] if mark in log.text}
    is_of_project = "sync" in project or project.get("name") == CONDA or project in table["place"]
    application = row_of[max(row_of, key=len)] if row_of and not is_of_project else {}
    pythons = application.get("python", table["venv"]) if application else {}
    python = pythons.get(machine.os or "windows", "")  # most are made for Windows
    if path and not is_of_project:
        has_uv = "pip" in project or (python and "pip" in application)
        quoted = f'"{path}"' if set(path) & set(" (),") else path
        return replace(
            where,
            path=path if _ABSOLUTE.match(path) else "",
            python=f"{quoted} -s" if "python_embed" in path.lower() else quoted,
            # A tool of uv has no pip of its own.
            pip="uv pip" if (has_uv and ".venv" in path) or re.search(r"[\\/]uv[\\/]tools[\\/]", path) else "",
        )
    if project:
        text = "\n".join(line for _number, line in log.lines)
        environment = _CONDA_NAME.search(text) if project["name"] == CONDA else None
        python = (
            f"conda run -n {environment[1] or environment[2]} python" if environment else project.get("run", "python")
        )
        return replace(where, path=path, python=python, pip=project.get("pip", ""), project=project["name"])
    if python:
        return replace(where, python=python, pip=application.get("pip", ""), folder=application["name"])
    is_python3 = machine.os != "windows" and _PYTHON3.search(log.text) and not _PLAIN_PYTHON.search(log.text)
    bundled = "bundle" in places and not where.container
    return replace(where, python="python3" if is_python3 else "python", bundled=bundled)


@lru_cache(maxsize=16)
def places_of(log: Log, container: str | None) -> frozenset[str]:
    """Return the places of environments.toml in which a log's program runs; `container` is its machine's, if any."""
    said = frozenset(row["name"] for row in plain_table("environments.toml")["place"] if is_said(row, log))
    return said | {"container"} if container and "notebook" not in said else said


def project_of_text(text: str) -> Mapping[str, Any]:
    """Return the row of the first project's tool that a text shows; {} if it shows none."""
    rows = plain_table("environments.toml")["project"]
    return next((row for row in rows if any(re.search(mark, text) for mark in row["marks"])), {})


@lru_cache(maxsize=16)  # each cause of a log asks, and mostly for the same line
def _interpreter_path(log: Log, line: int | None) -> str:
    """Return the first path of an interpreter in a log; "" for none, and for one that a shell would misread."""
    path = next((candidate for candidate in _interpreter_paths(log, line) if not _OF_A_SERVER.match(candidate)), "")
    return path if _PLAIN.fullmatch(path) else ""


def _interpreter_paths(log: Log, line: int | None) -> Iterator[str]:
    """Yield the interpreters in a log: by folders of packages, from `line` outwards, then those that are called."""
    for folder in log.near(line, _ENVIRONMENT):
        if not _OF_SYSTEM.fullmatch(folder) and not _FOR_A_BUILD.search(folder):
            flat = _FLAT.fullmatch(folder)
            yield (
                f"{folder}/bin/python"
                if "\\" not in folder
                else folder + ("" if flat else r"\Scripts") + r"\python.exe"
            )
    for _number, text in log.lines:
        match = _CALLED.search(text) if "python" in text.lower() else None
        called = (match["quoted"] or match["plain"]) if match else ""
        if called and not _NOBODYS.match(called) and not _FOR_A_BUILD.search(called):
            yield called


_PIP = re.compile(r"python -m pip (install|uninstall|show|check|list|freeze)\b ?(.*)")
# pip install torch    uv add torch    conda install -y numpy    sudo apt install ffmpeg; but not: git lfs install
_CHANGES = re.compile(
    r"\b(?:assistant|pip3?|uv|conda|mamba|pixi|poetry|pdm|apt|apt-get|dnf|pacman|zypper|winget|choco|brew)\b"
    r"[^|&;\n]{0,80}? (?:install|uninstall|add|remove)\b"
)
# Commands that a program's folder or its environment has to do with; not those of the system's packages.
_OF_PYTHON = re.compile(r"python|\b(?:assistant|pip3?|uv|conda|mamba|pixi|poetry|pdm)\b")
_BY_PIP = re.compile(r"\b(?:pip3?|conda|mamba) (?:install|uninstall)\b")  # what a sync takes back
_EXPORT = re.compile(r"export (\w+)=([^$]*)")
_IN_PLACE_OF_PIP = {
    "notebook": _("Type it in a cell, then restart the session, and run the cells from the start."),
    "nix": _("On Nix pip changes nothing: let an option or an overlay of the flake take it, and build that anew."),
}
_OF_HOST = re.compile(r"\b(?:docker|podman|reboot|modprobe|usermod|systemctl|nvidia-ctk)\b")  # of a container
_CONDA_ENVIRONMENT = re.compile(r".*[\\/]envs[\\/]([\w.-]{1,60})[\\/]")


def with_interpreter(remedy: Remedy, interpreter: Interpreter) -> Remedy:
    """Return a remedy with its commands typed for an interpreter, and notes on what is to be minded there."""
    remedy = _in_compose(remedy) if interpreter.compose else remedy
    table = plain_table("environments.toml")
    tools = (*table["project"], *table["place"])
    tool: Mapping[str, Any] = next((row for row in tools if row["name"] == interpreter.project), {})
    commands = tuple(line for command in remedy.commands for line in _commands_for(command, interpreter, tool))
    check = tuple(line for command in remedy.check for line in _commands_for(command, interpreter, tool))
    if "\\" in interpreter.python:
        commands, check = tuple(map(rewrite_for_both_shells, commands)), tuple(map(rewrite_for_both_shells, check))
    if "sync" in tool and any(line.startswith(_adding(tool)) for line in commands):  # it exchanges what is there
        commands = tuple(line for line in commands if "pip uninstall" not in line)
    if not any(map(_CHANGES.search, commands)) and commands == remedy.commands:
        return replace(remedy, check=check)
    if "Dockerfile" in str(remedy.text):  # it says itself what is to be done in an image
        interpreter = replace(interpreter, container=False)
    text = sentences((remedy.text, *_notes(commands, interpreter, tool)))
    if tool in table["place"]:  # it has no environments beside its own
        commands = tuple(line for line in commands if "pip" in tool or not _BY_PIP.search(line))
        return replace(remedy, text=text, commands=commands, check=check, plan=None)
    return replace(remedy, text=text, commands=commands, check=check)


def _adding(tool: Mapping[str, Any]) -> tuple[str, ...]:
    """Return how the commands begin with which a project's tool takes packages."""
    return tuple(line.partition(" {")[0] for line in (*tool.get("install", ()), *tool.get("from_index", ())))


def _in_compose(remedy: Remedy) -> Remedy:
    """Return a remedy with its variables for the compose file of a service, which sees none of the host's shell."""
    exported = {match[0]: match for match in map(_EXPORT.fullmatch, remedy.commands) if match}
    values = {**remedy.env, **{match[1]: match[2] for match in exported.values()}}
    if not values:
        return remedy
    lines = ", ".join(f"{name}: {value}" for name, value in values.items())
    note = _("In the compose file it stands under environment: of the service, as {lines}.", lines=lines)
    commands = (
        *(line for line in remedy.commands if line not in exported),
        "docker compose up --detach --force-recreate",
    )
    return replace(remedy, text=sentences((remedy.text, note)), commands=commands, env={})


def _notes(commands: tuple[str, ...], interpreter: Interpreter, tool: Mapping[str, Any]) -> Iterator[Message]:
    """Yield what to mind with commands: the folder, what a later sync undoes, that a container forgets changes."""
    of_python = any(map(_OF_PYTHON.search, commands))
    if interpreter.folder and of_python:
        yield _("Type it in the folder of {program}.", program=interpreter.folder)
    if interpreter.bundled and any(command.startswith("python ") for command in commands):
        yield _(
            "The program has a Python of its own: type the path of the python.exe in its folder (mostly in runtime,"
            " python_embeded or venv\\Scripts) in place of python."
        )
    if any(line.startswith("uv add --index ") for line in commands):
        yield _("In pyproject.toml write explicit = true below that index, so that all else still comes from PyPI.")
    if any(" venv --clear" in line for line in commands):
        yield _("An environment .venv that is here is replaced: note what it holds before, with `uv pip freeze`.")
    by_pip = of_python and any(map(_BY_PIP.search, commands))
    sync = tool.get("sync")
    if sync and by_pip and not any(line.startswith((*_adding(tool), sync)) for line in commands):
        yield _("The next `{sync}` undoes it unless pyproject.toml says the same.", sync=sync)
    if by_pip and interpreter.project in _IN_PLACE_OF_PIP:
        yield _IN_PLACE_OF_PIP[interpreter.project]
    if interpreter.container and not any(map(_OF_HOST.search, commands)):
        if any(line.startswith("export ") for line in commands):
            yield _("In a container type it inside, or give the variable at its start (docker run -e NAME=value).")
        elif any(map(_CHANGES.search, commands)):
            yield _("In a container it lasts only if the image has it: add it to the Dockerfile as a RUN line.")


def _commands_for(command: str, interpreter: Interpreter, tool: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the commands that do for an interpreter, and the tool of its project, what one of `python` or pip says."""
    by_pip = _PIP.fullmatch(command)
    lines = _tool_commands(by_pip[1], by_pip[2], tool, interpreter) if by_pip and tool else None
    if lines is not None:
        return lines
    if by_pip and interpreter.pip:
        python = "" if interpreter.project else f" --python {interpreter.python}"
        options = UV_OPTIONS if interpreter.pip == "uv pip" else {}
        words = (new for word in by_pip[2].split(" ") for new in options.get(word, (word,)))
        return (" ".join((f"{interpreter.pip} {by_pip[1]}{python}", *filter(None, words))),)
    if interpreter.project == "notebook" and not command.startswith("python "):
        # A magic takes a value as it stands.
        return () if "$(" in command else (re.sub("^(?:sudo |(?!%))", "!", command).replace("!export ", "%env "),)
    if command.startswith("conda install ") and (environment := _CONDA_ENVIRONMENT.match(interpreter.path)):
        return (command.replace("conda install ", f"conda install -n {environment[1]} ", 1),)
    return (re.sub(r"(?:^|(?<=[ $]\())python(?= )", lambda _found: interpreter.python, command),)


def _tool_commands(
    verb: str, arguments: str, tool: Mapping[str, Any], interpreter: Interpreter
) -> tuple[str, ...] | None:
    """Return the commands with which a project's tool does what pip would; None if it has none for it.

    Conda has them for torch's family, but not for AMD's and Intel's GPUs, for which conda-forge has no builds. It
    exchanges what is there itself, so that nothing is uninstalled before.
    """
    address = re.search(r"--index-url (\S+)", arguments)
    words = re.sub(r"--index-url \S+|--upgrade\b", "", arguments).split()
    index, environment = address[1] if address else "", re.search(r"conda run( -n \S+)", interpreter.python)
    if tool["name"] == CONDA:
        words = [re.split(r"[\[=<>~!]", word.strip("\"'"), maxsplit=1)[0] for word in words if word[0] != "-"]
        if not words or not {*words} <= {"torch", *FAMILY} or re.search(r"/whl/(?:rocm|xpu)|repo\.amd\.com", index):
            return None
        if verb == "uninstall":
            return ()
        torch = "pytorch-gpu" if "/whl/cu" in index else "pytorch"
        words = [torch if word == "torch" else word for word in words if word != "torchaudio"]
    rows = tool.get("from_index" if index else "install")
    if verb != "install" or not words or not rows or any(word.startswith("-") for word in words):
        return None
    values = {"packages": " ".join(words), "index": index, "name": f"pytorch-{index.rstrip('/').rpartition('/')[2]}"}
    return tuple(row.format(**values, environment=environment[1] if environment else "") for row in rows)


# A name that somebody could register must never come out of a reading error: of a line that a terminal cut in two, of
# words that ran together, of a module's folder. Without a distribution that is sure, a remedy is left out.
# pip install foo bar     Installing collected packages: foo, bar     Successfully installed foo-1.0 bar-2.0
_LISTS = re.compile(
    r"(?:(?:\bpip3?(?:\.exe)?|\bconda|\bmamba)[ ]install|\buv[ ]add|\bpoetry[ ]add|collected[ ]packages:"
    r"|successfully[ ]installed|'pip', 'install',)[ ][^\n]{0,600}$"
)
# What stands behind a version's "+", or names a Python or a system: never a distribution.
_TAGS = re.compile(r"(?:cu|rocm|cp|py|sm|gfx)\d[\w.]*|cpu|xpu|(?:many|musl)linux[\w.]*|win_?(?:32|amd64|arm64)")
_INSTALLS = re.compile(
    r"(?:\bpip(?:3|\.exe)?|\bconda|\bmamba)[ ](?:install|uninstall|show|download)\b|\buv[ ](?:add|remove|lock)\b"
    r"|\b(?:poetry|pdm)[ ](?:add|remove|update)\b|\bassistant[ ](?:install|plan|setup)\b"
)
# Options of installers whose value is no distribution, those that name an index apart.
INDEX_OPTIONS = {"--index", "--index-url", "--extra-index-url", "--default-index", "-i", "--find-links", "-f"}
WITH_VALUE = {"--extra", "--group", "--no-group", "--only-group", "--package", "--python", "-p", "--with", "--without"}
WITH_VALUE |= {"--only", "--extras", "-E", "-r", "-e", "-c", "--feature", "-G", "--directory", "--project", "-d", "-n"}
WITH_VALUE |= {"--name", "--channel", "--index-strategy", "--resume-retries", "--retries", "--target", "--timeout"}
WITH_VALUE |= {"--prefix", "--root", "--trusted-host", "--proxy", "--cache-dir", "--torch-backend", "--only-binary"}
WITH_VALUE |= {"--no-binary", "--platform", "--python-version", "--progress-bar", "--upgrade-strategy", "--log", "-t"}
WITH_VALUE |= {"--requirement", "--constraint", "--editable", "--use-feature"}
_OF_CONDA_FORGE = {"pytorch", "pytorch-gpu"}  # which are none of PyPI's: https://anaconda.org/conda-forge/pytorch-gpu
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?(?:$|[ =<>!~;@])")


def sure_names(context: LogContext, rule: Rule, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return a cause's names without those that would put a distribution into a command that is not surely meant.

    Sure are those that the project's tables list, and those that a log's tools print (see `is_printed`).
    """
    unsure_names: set[str] = set()
    for remedy in rule.remedy:
        pins = [f"assistant plan {pin}" for pin in (remedy.plan.pins if remedy.plan else ())]
        for text in (*remedy.commands, *remedy.check, *pins):
            for name in {*PLACEHOLDER.findall(text)} & {*names}:
                command = PLACEHOLDER.sub(lambda match: names.get(match[1], ""), text)
                words = {*map(canonicalize_name, re.findall(r"[A-Za-z0-9][\w.-]*", names[name]))}
                unlisted = {*distributions_in(command)} & words - listed_distributions()
                if not all(is_printed(distribution, context) for distribution in unlisted):
                    unsure_names.add(name)
    return {name: value for name, value in names.items() if name not in unsure_names}


def distributions_in(command: str) -> Iterator[str]:
    """Yield the distributions that a command installs, removes or shows, by their canonical names."""
    installation = _INSTALLS.search(command)
    text = command[installation.end() :] if installation else ""
    try:
        words = iter(shlex.split(text))
    except ValueError:  # a quotation mark that is never closed
        words = iter(text.split())
    by_conda = command.startswith(("conda ", "mamba "))
    for word in words:
        if word in {"&&", "|", ";"}:
            return
        if word in WITH_VALUE | INDEX_OPTIONS:
            next(words, "")
        elif by_conda and word.partition("=")[0] in _OF_CONDA_FORGE:
            continue
        elif (requirement := _REQUIREMENT.match(word)) and not {"/", "\\", ":"} & set(word.partition("@")[0]):
            yield canonicalize_name(requirement[1])


# ERROR: Failed building wheel for tokenizers     Failed to build `tokenizers==0.12.1`
_BUILD_FAILED = re.compile(r"failed (?:building wheel for|to build) `?([\w-]{2,40})")


def lacking_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `package`, and `install` with its command, of the last module that is missing.

    Without one, the package is that whose build failed. {} if it is not listed, and if the one for a torch that is
    unknown would replace that.
    """
    modules = [missing.thing for missing in missing_modules(context.text) if missing.kind == "module"]
    built = _BUILD_FAILED.search(context.text)
    package = package_of(modules[-1]) if modules else built[1] if built else ""
    if package not in listed_distributions() - {"torch"}:
        return {}
    install = pip_install(package, context.torch) if package in FAMILY else f"python -m pip install {package}"
    return {"package": package, "install": install} if install else {}


@cache
def listed_distributions() -> frozenset[str]:
    """Return the canonical names of the distributions that the catalogue and this room's tables know."""
    libraries = plain_table("libraries.toml")
    names = (
        *(name for row in libraries["library"] for name in row.get("wheels", {}).values()),
        *(row["package"] for row in libraries["requester"]),
        *libraries["modules"].values(),
        *libraries["generations"],
        *runtime_builds(),
        *runtime_plugins(),
        *plain_table("kits.toml")["sources"],
        *plain_table("installers.toml")["names"].values(),
        *all_names(),
        *CORE,
        "uv",  # which brings other Pythons
    )
    return frozenset(map(canonicalize_name, names))


def is_printed(name: str, context: LogContext) -> bool:
    """Return whether a distribution is sure to be called so, since a tool printed its name: "Collecting NAME".

    A name that a broken line may have cut in two, or joined from two words, is not sure.
    """
    lines = context.text.split("\n")[: len(context.log.lines)]
    text = "\n".join(lines)
    spelt = "[-_.]".join(map(re.escape, name.split("-")))
    whole_name = rf"(?<![\w.+@/\\-])(?P<name>{spelt})(?![\w+]|[-.][a-z_])"
    if _TAGS.fullmatch(name) or not re.search(whole_name, text):
        return False
    forms = (re.compile(pattern.replace("NAME", whole_name), re.ASCII) for pattern in _printed_forms())
    spans = [match.span("name") for form in forms for match in form.finditer(text)]
    for match in re.finditer(whole_name, text):
        line = text.rfind("\n", 0, match.start()) + 1
        spans += [match.span("name")] if _LISTS.search(text, line, match.start()) else []
    for start, end in spans:
        first, last = text.count("\n", 0, start), text.count("\n", 0, end)
        ends = [(first - 1, first)] if text[:start].endswith("\n") else []
        ends += [(last, last + 1)] if text.startswith("\n", end) else []
        if not any(may_be_cut(lines[at], lines[after], len(context.log.lines[at][1])) for at, after in ends):
            return True
    return False


@cache
def _printed_forms() -> tuple[str, ...]:
    """Return the patterns of how tools print a NAME; each blank stands for any white space or frame."""
    parts = {"EXTRAS": r"(?:\[[\w, -]{1,60}\])?", "VERSION": r"v?\d[\w.+!*-]{0,40}", "END": r"(?![\w+-]|\.\w)"}
    forms = (re.sub(r"(?<!\[) (?!\?)", r"[\\s│|]{1,20}", form) for form in plain_table("environments.toml")["printed"])
    return tuple(re.sub("EXTRAS|VERSION|END", lambda part: parts[part[0]], form) for form in forms)


# What mends a project of uv, Poetry, pixi or PDM: the lines of its manifest, and then the user's own command again.
INSTALLERS = {"pip", "setuptools", "wheel", "uv"}  # what brings packages, and is none that somebody is after
PLATFORMS = {"windows": "win32", "macos": "darwin", "linux": "linux"}  # sys_platform in a marker
_END = re.compile(r" (?:&&|\|\|?|;|#|2?>) | \.{3}|  |[;；，。→]|(?<! )[.,:](?: |$)")
_WORD = re.compile(r"[A-Za-z0-9_.,/\\:@=+\[\]<>~!'#*-]{1,200}")
# What Debian's and Homebrew's Pythons write for a package when pip is refused (EXTERNALLY-MANAGED, PEP 668):
#     To install Python packages system-wide, try brew install xyz, where xyz is the package you are trying to install.
_PLACEHOLDERS = {"xyz"}
_CUT_WHEEL = re.compile(r"-(?:py|cp)\d[\w.]*-\w+-\w+\Z")  # fastt5-0.1.4-py3-none-any, of which a line broke the ".whl"


def project_names(context: LogContext, package: str = "") -> dict[str, str]:
    """Return the placeholders by which a project is mended, without those that a log does not tell.

    `repeat` is the user's own command, or "", and `redo` that or the one that installs a project. `pin_python` begins
    the command that lets the project use another Python. `lock` writes the lock file, `relock` does so for a package,
    and `locked` checks it. For uv, `redo_plain` is `redo` without indexes, `redo_best` with all indexes compared,
    `redo_links` with its index as a list of files, and `uv_build` lets the build of a `package` see torch; see
    `_manifest_names` for the others.
    """
    project = project_of_text(context.text)
    sync = project.get("sync", "")
    # The last command that installs, else that runs something; a project does not use pip.
    installing = (words for verb, words in typed_commands(context) if verb != "run" and (verb or not sync))
    words = next(installing, None) or next((words for verb, words in typed_commands(context) if verb or not sync), [])
    by_pip = words[1:2] == ["pip"]
    redo = sync if sync and (by_pip or not words) else quoted_words(words)
    names = {"redo": redo, "redo_plain": redo, "repeat": quoted_words(words)}
    if words[:1] == ["uv"] and not (by_pip and sync):
        of_index = [word for before, word in pairwise(("", *words)) if {before, word.partition("=")[0]} & INDEX_OPTIONS]
        links = quoted_words(["--find-links" if word in INDEX_OPTIONS else word for word in words])
        names["redo_plain"] = quoted_words([word for word in words if word not in of_index])
        names["redo_links"] = links if of_index and ".html" in links else ""
        names["redo_best"] = f"{redo} --index-strategy unsafe-best-match" if by_pip else ""
    if project:
        names |= {name: project.get(name, "") for name in ("pin_python", "lock", "relock", "locked")}
        names |= _manifest_names(context, project)
        if package and project["name"] == "uv":
            names["uv_build"] = f'{package} = [{{ requirement = "torch", match-runtime = true }}]'
    return {name: value for name, value in names.items() if value or name == "repeat"}


def typed_commands(context: LogContext, *, within: bool = False) -> Iterator[tuple[str | None, list[str]]]:
    """Yield the commands of installers that were typed, the last first: the verb, None for pip's own, and the words.

    With `within`, those of pip within a line are among them: in a build file, a sentence, a list of an application's.
    """
    for _number, line in reversed(context.log.lines):
        for match in reversed([*pattern_of("typed").finditer(line)]):
            listed = " ".join(re.findall(r"'([^']{1,200})'", match["listed"] or ""))
            words = _safe_words(listed or _END.split(match["line"] or "")[0], typed=within or bool(match["prompt"]))
            if words and (within or match["prompt"] is not None):
                yield match["verb"], words


def _safe_words(text: str, *, typed: bool) -> list[str]:
    """Return a command's words up to the first that is prose; [] if a shell would read one of them otherwise.

    [] also for a command that is incomplete, or names nothing but installers. A text with small words of prose counts
    as not `typed`.

    Where no prompt shows that it was `typed`, only names of packages, options and what is no plain word are taken.
    """
    try:
        words = [word.strip("\"'") for word in shlex.split(text, posix="\\" not in text)]
    except ValueError:  # a quotation mark that is never closed, or that ends what the command stands in
        return _safe_words(re.split("[\"'](?=[^\"']*$)", text)[0], typed=typed)
    typed = typed and not any(map(pattern_of("small_word").fullmatch, words))  # pip install torch takes ages for me
    by_pip = next((at for at, word in enumerate(words[:3]) if re.fullmatch(r"pip3?(?:\.exe)?", word)), None)
    head = 2 if by_pip is None else by_pip + 2
    takes_packages = words[1:2] == ["add"] or by_pip is not None
    understood = words[:head]
    for previous, word in pairwise(words[head - 1 :]):
        is_package = word in all_names() | CORE or bool(set(word) & set("=<>[/\\@"))
        is_argument = word.startswith("-") or previous in WITH_VALUE | INDEX_OPTIONS
        if not (is_argument or (typed and (takes_packages or words[1] == "run")) or (takes_packages and is_package)):
            break
        understood.append(word)
    packages = {word for word in understood[head:] if not word.startswith("-")}
    is_named = not takes_packages or not packages <= INSTALLERS | _PLACEHOLDERS
    is_whole = len(words) >= head and is_named and not any(map(_CUT_WHEEL.search, packages))
    return understood if is_whole and all(map(_WORD.fullmatch, understood)) else []


def quoted_words(words: list[str]) -> str:
    """Return words joined as a command, in quotation marks where a shell would read them."""
    return " ".join(f'"{word}"' if set(word) & set("<>~![]#*") else word for word in words)


def _manifest_names(context: LogContext, project: Mapping[str, Any]) -> dict[str, str]:
    """Return placeholders for what a user writes into pyproject.toml or pixi.toml, as far as a log tells it.

    For uv, `redo_extra` syncs the extra of a GPU build, `uv_source` widens a marker to this system, `uv_index` and
    `uv_torch` give torch's index to torch alone, `uv_here` admits this system. `mac_source` takes PyPI's torch on a
    Mac, and `pixi_index` names torch's index for pixi.
    """
    text = "\n".join(line for _number, line in context.log.lines)  # with its capitals
    versions = sorted(pattern_of("tagged_torch").findall(context.text), key=number, reverse=True)
    tags = [version.partition("+")[2] for version in versions]
    tags += [classify_address(address.url).variant for address in addresses(context.log)]
    tag = next((tag for tag in tags if tag not in {"", "cpu"}), "cpu" if "cpu" in tags else "")
    index = (load_catalog().index_url(tag) or f"https://download.pytorch.org/whl/{tag}") if tag else ""
    name = next((first or second for first, second in pattern_of("index_name").findall(text)), f"pytorch-{tag}")
    if project["name"] == "Poetry" and versions:
        source, release = pattern_of("poetry_source").search(text), versions[0].partition("+")[0]
        name = source[1] if source else name
        on_others = f'{{version = "{versions[0]}", source = "{name}", markers = "sys_platform != \'darwin\'"}}'
        on_macs = f'{{version = "{release}", markers = "sys_platform == \'darwin\'"}}'
        return {"mac_source": f"torch = [{on_others}, {on_macs}]"}
    if project["name"] == "pixi" and index:
        options = "[tool.pixi.pypi-options]" if "pyproject.toml" in text else "[pypi-options]"
        return {"pixi_index": f'{options} extra-index-urls = ["{index}"]'}
    if project["name"] != "uv":
        return {}
    extra, here = pattern_of("uv_extra").search(text), PLATFORMS.get(context.machine.os or "", "")
    names = {"redo_extra": extra[0] if extra else "", "uv_here": f"sys_platform == '{here}'" if here else ""}
    for source, marker in pattern_of("marked_source").findall(text):
        if here and "==" in marker and f"'{here}'" not in marker:
            either = f"({marker})" if " and " in marker else marker
            names["uv_source"] = source.strip().replace(marker, f"{either} or sys_platform == '{here}'")
            break
    if index:
        family = ("torch", *(name for name in ("torchaudio", "torchvision") if name in context.text))
        names["uv_index"] = f'name = "{name}", url = "{index}", explicit = true'
        names["uv_torch"] = ", ".join(f'{package} = {{ index = "{name}" }}' for package in family)
        names["mac_source"] = f'torch = [{{ index = "{name}", marker = "sys_platform != \'darwin\'" }}]'
    return names
