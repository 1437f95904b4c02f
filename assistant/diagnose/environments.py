"""Where a log's program runs: its Python, its project's tool, its container; and which distributions may be named."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

from packaging.utils import canonicalize_name

from assistant.catalog.bundles import runtime_builds, runtime_plugins
from assistant.catalog.companions import all_names
from assistant.catalog.rows import CORE, FAMILY
from assistant.diagnose.builds import missing_modules
from assistant.diagnose.facts import LogContext, package_of, pip_install
from assistant.diagnose.index import installer_tables
from assistant.diagnose.log import Log, may_be_cut
from assistant.diagnose.rules import PLACEHOLDER, Rule, plain_table, table
from assistant.i18n import Message, _, sentences
from assistant.model.finding import Interpreter, Remedy
from assistant.model.machine import Machine
from assistant.model.record import Record, replace
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
# Using VENV: C:\ai\automatic\venv
_NAMED = re.compile(r"using venv: ([^\s\"']{3,300})$", re.IGNORECASE)
# File "D:\StabilityMatrix\Packages\OneTrainer\modules\ui\TrainUI.py", line 745, in …
_STABILITY_MATRIX = re.compile(
    r"((?:[A-Za-z]:)?[\\/][^\n\"'*?<>|:]{0,200}StabilityMatrix[\\/](?:Data[\\/])?Packages[\\/][\w .-]{1,60}?)[\\/]",
    re.IGNORECASE,
)
# What a path may hold that is put into a command: nothing that a shell reads, even between quotation marks.
_PLAIN = re.compile(r"[\w .()+,@~:\\/-]+")
_ABSOLUTE = re.compile(r"(?:[A-Za-z]:)?[\\/]")
_CONTAINER = re.compile(
    r"\bdocker(?:-compose| compose| run| build| exec| pull)\b|\bdockerfile\b|\bpodman (?:run|build)\b"
)
_COMPOSE = re.compile(r"\bdocker[ -]compose\b|\bcompose\.ya?ml\b")
# A program that comes with a Python of its own.
_BUNDLE = re.compile(
    r"整合包|懒人包|一键包|便携版|绿色版|\bportable (?:version|build|package|install)"
    r"|\bone[ -]click (?:package|install)"
)
# Who types python3 has a system that may know no `python`.
_PYTHON3 = re.compile(r"(?:^|[$#>&(;|] ?)(?:sudo )?python3(?:\.\d{1,2})? (?=-|\S{1,80}\.py\b)", re.MULTILINE)
_PLAIN_PYTHON = re.compile(r"(?:^|[$#>&(;|] ?)python (?=-|\S{1,80}\.py\b)", re.MULTILINE)
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

    `pin_python` with a version lets the project use another Python. `lock` writes the lock file, `relock` does so for
    a package that follows, and `locked` checks it.
    """

    name: str
    marks: tuple[str, ...]
    run: str = "python"
    pip: str = ""
    install: tuple[str, ...] = ()
    from_index: tuple[str, ...] = ()
    sync: str = ""
    pin_python: str = ""
    lock: str = ""
    relock: str = ""
    locked: str = ""


class _File(Record, frozen=True):
    as_of: str
    source: str
    application: tuple[Application, ...]
    project: tuple[Project, ...]
    printed: tuple[str, ...]


def _tables() -> _File:
    """Return the shipped rows of applications and projects, read once."""
    return table("environments.toml", _File)


def interpreter_of(log: Log, machine: Machine, line: int | None = None) -> Interpreter:
    """Return how the Python of a log's program is reached; `line` is the index of the line that shows its cause.

    Its fields are empty if the log does not tell that.
    """
    path, project = _interpreter_path(log, line), project_of_text(log.text)
    application = None if project and project.sync else _application_of(log, machine)
    container = bool(machine.container or _CONTAINER.search(log.text))
    compose = bool(_COMPOSE.search(log.text))
    if path and not (project and (project.sync or project.name == CONDA)):
        has_uv = bool(project and project.pip) or bool(application and application.pip)
        python = f'"{path}"' if set(path) & set(" (),") else path
        return Interpreter(
            path=path if _ABSOLUTE.match(path) else "",
            python=f"{python} -s" if "python_embed" in path.lower() else python,
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
        python = application.python[_system_of(application, machine)]
        return Interpreter(python=python, pip=application.pip, folder=application.name, container=container)
    is_python3 = machine.os != "windows" and _PYTHON3.search(log.text) and not _PLAIN_PYTHON.search(log.text)
    return Interpreter(
        python="python3" if is_python3 else "python",
        container=container,
        compose=compose,
        bundled=not container and bool(_BUNDLE.search(log.text)),
    )


def project_of_text(text: str) -> Project | None:
    """Return the row of the first project's tool that a text shows; None if it shows none."""
    return next((row for row in _tables().project if any(re.search(mark, text) for mark in row.marks)), None)


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
            flat = _FLAT.fullmatch(folder)
            yield (
                f"{folder}/bin/python"
                if "\\" not in folder
                else folder + ("" if flat else r"\Scripts") + r"\python.exe"
            )
    for _number, text in log.lines:
        named, package = _NAMED.search(text), _STABILITY_MATRIX.search(text)
        if environment := named[1] if named else f"{package[1]}/venv" if package else "":
            is_windows = "\\" in environment
            yield f"{environment}/Scripts/python.exe".replace("/", "\\") if is_windows else f"{environment}/bin/python"
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
_CONDA_ENVIRONMENT = re.compile(r".*[\\/]envs[\\/]([\w.-]{1,60})[\\/]")


def with_interpreter(remedy: Remedy, interpreter: Interpreter) -> Remedy:
    """Return a remedy with its commands typed for an interpreter, and notes on what is to be minded there."""
    remedy = _in_compose(remedy) if interpreter.compose else remedy
    tool = next((row for row in _tables().project if row.name == interpreter.project), None)
    commands = tuple(line for command in remedy.commands for line in _commands_for(command, interpreter, tool))
    check = tuple(line for command in remedy.check for line in _commands_for(command, interpreter, tool))
    if "\\" in interpreter.python:
        commands, check = tuple(map(rewrite_for_both_shells, commands)), tuple(map(rewrite_for_both_shells, check))
    if tool and tool.sync and any(line.startswith(_adding(tool)) for line in commands):  # it exchanges what is there
        commands = tuple(line for line in commands if "pip uninstall" not in line)
    if not any(map(_CHANGES.search, commands)) and commands == remedy.commands:
        return replace(remedy, check=check)
    text = sentences((remedy.text, *_notes(commands, interpreter, tool)))
    return replace(remedy, text=text, commands=commands, check=check)


def _adding(tool: Project) -> tuple[str, ...]:
    """Return how the commands begin with which a project's tool takes packages."""
    return tuple(line.partition(" {")[0] for line in (*tool.install, *tool.from_index))


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


def _notes(commands: tuple[str, ...], interpreter: Interpreter, tool: Project | None) -> Iterator[Message]:
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
    if tool and tool.sync and by_pip and not any(line.startswith((*_adding(tool), tool.sync)) for line in commands):
        yield _("The next `{sync}` undoes it unless pyproject.toml says the same.", sync=tool.sync)
    if interpreter.container and not any("docker" in line for line in commands):
        yield _("In a container it lasts only if the image has it: add it to the Dockerfile as a RUN line.")


def _commands_for(command: str, interpreter: Interpreter, tool: Project | None) -> tuple[str, ...]:
    """Return the commands that do for an interpreter, and the tool of its project, what one of `python` or pip says."""
    by_pip = _PIP.fullmatch(command)
    if by_pip and tool and tool.name == CONDA:
        lines = _conda_commands(by_pip[1], by_pip[2], tool, interpreter)
    else:
        lines = _project_commands(by_pip[1], by_pip[2], tool) if by_pip and tool else None
    if lines is not None:
        return lines
    if by_pip and interpreter.pip:
        python = "" if interpreter.project else f" --python {interpreter.python}"
        words = (new for word in by_pip[2].split(" ") for new in UV_OPTIONS.get(word, (word,)))
        return (" ".join((f"{interpreter.pip} {by_pip[1]}{python}", *filter(None, words))),)
    if command.startswith("conda install ") and (environment := _CONDA_ENVIRONMENT.match(interpreter.path)):
        return (command.replace("conda install ", f"conda install -n {environment[1]} ", 1),)
    return (re.sub(r"(?:^|(?<=[ $]\())python(?= )", lambda _found: interpreter.python, command),)


def _conda_commands(verb: str, arguments: str, tool: Project, interpreter: Interpreter) -> tuple[str, ...] | None:
    """Return conda's commands for what pip would do with torch's family; None for other packages, and for AMD's GPUs.

    Conda exchanges what is there itself, so that nothing is uninstalled before.
    """
    words = re.sub(r"--index-url \S+", "", arguments).split()
    names = [re.split(r"[\[=<>~!]", word.strip("\"'"), maxsplit=1)[0] for word in words if not word.startswith("-")]
    is_elsewhere = re.search(r"/whl/(?:rocm|xpu)|repo\.amd\.com", arguments)  # conda-forge has no builds for AMD's GPUs
    if not names or is_elsewhere or not {*names} <= {"torch", *FAMILY} or verb not in {"install", "uninstall"}:
        return None
    environment = re.search(r"conda run( -n \S+)", interpreter.python)
    torch = "pytorch-gpu" if "/whl/cu" in arguments else "pytorch"
    packages = " ".join({"torch": torch}.get(name, name) for name in names if name != "torchaudio")
    rows = tool.install if verb == "install" else ()
    return tuple(row.format(packages=packages, environment=environment[1] if environment else "") for row in rows)


def _project_commands(verb: str, arguments: str, tool: Project) -> tuple[str, ...] | None:
    """Return the commands with which a project's tool takes what pip would install; None if it has none for it."""
    index = re.search(r"--index-url (\S+)", arguments)
    words = re.sub(r"--index-url \S+|--upgrade\b", "", arguments).split()
    rows = tool.from_index if index else tool.install
    if verb != "install" or not words or not rows or any(word.startswith("-") for word in words):
        return None
    url = index[1] if index else ""
    name = f"pytorch-{url.rstrip('/').rpartition('/')[2]}"
    return tuple(row.format(packages=" ".join(words), index=url, name=name) for row in rows)


# A name that somebody could register must never come out of a reading error: of a line that a terminal cut in two, of
# words that ran together, of a module's folder. Without a distribution that is sure, a remedy is left out.
# pip install foo bar     Installing collected packages: foo, bar     Successfully installed foo-1.0 bar-2.0
_LISTS = re.compile(
    r"(?:(?:\bpip3?(?:\.exe)?|\bconda|\bmamba)[ ]install|\buv[ ]add|\bpoetry[ ]add|collected[ ]packages:"
    r"|successfully[ ]installed|'pip', 'install',)[ ][^\n]{0,600}$"
)
# What stands behind a version's "+", or names a Python or a system: never a distribution.
_TAGS = re.compile(r"(?:cu|rocm|cp|py|sm|gfx)\d[\w.]*|cpu|xpu|(?:many|musl)linux[\w.]*|win_?(?:32|amd64|arm64)")
# The options of installers whose value is no distribution.
_VALUED = frozenset(
    {"-c", "-d", "-e", "-f", "-i", "-r", "--build", "--channel", "--default-index", "--extra-index-url"}
    | {"--find-links", "--index", "--index-strategy", "--index-url", "--python", "--resume-retries", "--retries"}
    | {"--target", "--timeout", "-n", "--name", "-p"}
)
_INSTALLS = re.compile(
    r"(?:\bpip(?:3|\.exe)?|\bconda|\bmamba)[ ](?:install|uninstall|show|download)\b|\buv[ ](?:add|remove|lock)\b"
    r"|\b(?:poetry|pdm)[ ](?:add|remove|update)\b|\bassistant[ ](?:install|plan|setup)\b"
)
_OF_CONDA_FORGE = {"pytorch", "pytorch-gpu"}  # which are none of PyPI's: https://anaconda.org/conda-forge/pytorch-gpu
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?(?:$|[ =<>!~;@])")


def sure_names(context: LogContext, rule: Rule, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return a cause's names without those that would put a distribution into a command that is not surely meant.

    Sure are those that the project's tables list, and those that a log's tools print (see `is_printed`).
    """
    unsure_names: set[str] = set()
    for remedy in rule.remedy if rule.computed else ():
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
        if word in _VALUED:
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


def listed_distributions() -> frozenset[str]:
    """Return the canonical names of the distributions that the catalogue and this room's tables know."""
    return _listed_in_tables() | all_names()


@cache
def _listed_in_tables() -> frozenset[str]:
    """Return the canonical names of the distributions in this room's tables and of PyTorch's core packages."""
    libraries = plain_table("libraries.toml")
    names = (
        *(name for row in libraries["library"] for name in row.get("wheels", {}).values()),
        *(row["package"] for row in libraries["requester"]),
        *libraries["modules"].values(),
        *libraries["generations"],
        *runtime_builds(),
        *runtime_plugins(),
        *plain_table("kits.toml")["sources"],
        *installer_tables().names.values(),
        *CORE,
        "uv",  # which brings other Pythons
    )
    return frozenset(map(canonicalize_name, names))


def is_printed(name: str, context: LogContext) -> bool:
    """Return whether a tool's message in a log names a distribution, at a place that no cut line runs through."""
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
    return any(not _is_at_a_cut(context, lines, text, *span) for span in spans)


@cache
def _printed_forms() -> tuple[str, ...]:
    """Return the patterns of how tools print a NAME; each blank stands for any white space or frame."""
    parts = {"EXTRAS": r"(?:\[[\w, -]{1,60}\])?", "VERSION": r"v?\d[\w.+!*-]{0,40}", "END": r"(?![\w+-]|\.\w)"}
    forms = (re.sub(r"(?<!\[) (?!\?)", r"[\\s│|]{1,20}", form) for form in _tables().printed)
    return tuple(re.sub("EXTRAS|VERSION|END", lambda part: parts[part[0]], form) for form in forms)


def _is_at_a_cut(context: LogContext, lines: list[str], text: str, start: int, end: int) -> bool:
    """Return whether the span of a name touches the end of a line that may have been cut, so that it may be a part."""
    first, last = text.count("\n", 0, start), text.count("\n", 0, end)
    pairs = [(first - 1, first)] if text[:start].endswith("\n") else []
    pairs += [(last, last + 1)] if text.startswith("\n", end) else []
    return any(may_be_cut(lines[before], lines[after], len(context.log.lines[before][1])) for before, after in pairs)
