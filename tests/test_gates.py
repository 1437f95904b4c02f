"""The rules of the house, checked on every run: lint, types, layers, size, and what no file may hold."""

from __future__ import annotations

import ast
import importlib
import json
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest
import yaml
from packaging.requirements import Requirement

from assistant.cli import COMMANDS

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "assistant").rglob("*.py"))
MODULE_LINES = 400
FUNCTION_LINES = 60
OWN_NAME = "torch-setup-assistant"


def run(tool: str, *arguments: str) -> None:
    """Run a tool of this environment in the checkout; fail with its output."""
    found = shutil.which(tool, path=sysconfig.get_path("scripts"))
    assert found, f"{tool} is not installed beside this Python"
    done = subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{tool} {' '.join(arguments)}\n{done.stdout}{done.stderr}", pytrace=False)


def test_lint():
    """Ruff, with all its rules, has nothing to say."""
    run("ruff", "check", ".")


def test_format():
    """Every file is formatted."""
    run("ruff", "format", "--check", ".")


def test_types():
    """Mypy, strict, has nothing to say."""
    run("mypy")


def test_layers():
    """Arrows point down only."""
    run("lint-imports")


# What may be imported past a room's face all the same.
BESIDE_THE_FACE = {
    "assistant.catalog.": "it is a library of tables, each with a module of its own, and most commands need one or two",
}


def test_rooms_are_entered_by_their_face():
    """What a room keeps to itself can be changed without looking anywhere else."""
    faces = [folder.name for folder in (ROOT / "assistant").iterdir() if "__all__ = [" in _text(folder / "__init__.py")]
    assert {"detect", "plan", "install", "verify", "diagnose", "export"} <= {*faces}
    shown = {room: importlib.import_module(f"assistant.{room}").__all__ for room in faces}
    past = []
    for path in MODULES:
        own, *_rest = path.relative_to(ROOT / "assistant").parts
        for name in _taken(path):
            _package, room, what = f"{name}..".split(".", 2)
            if room in shown and room != own and what.rstrip(".") not in {"", *shown[room]}:
                past.append(f"{path.relative_to(ROOT)}: {name}")
    past = [line for line in past if not line.partition(": ")[2].startswith(tuple(BESIDE_THE_FACE))]
    assert past == [], "import it from the room itself; what its __init__.py does not show yet, add to its __all__"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _taken(path: Path) -> Iterator[str]:
    """Name all that a file imports of the package, as `assistant.room.module.name`."""
    for node in ast.walk(ast.parse(_text(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("assistant."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("assistant."):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MOST_IMPORTS = 16  # of our own modules


def test_nobody_knows_everybody():
    """A module that imports very many others does their work, or that of several modules."""
    rooms = [path for path in MODULES if path.name != "__init__.py"]  # a face only names what is behind it
    known = {path.relative_to(ROOT / "assistant").as_posix(): _modules_known(path) for path in rooms}
    found = {place: len(modules) for place, modules in known.items() if len(modules) > MOST_IMPORTS}
    assert found == {}, "let it hand the work on: to the room whose data it is, or to a module for each of its thoughts"


def _modules_known(path: Path) -> set[str]:
    nodes = [node for node in ast.walk(ast.parse(_text(path))) if isinstance(node, ast.ImportFrom)]
    return {node.module for node in nodes if (node.module or "").startswith("assistant.")}


def test_modules_are_short():
    """One idea per module: none is over 400 lines."""
    lines = {str(path.relative_to(ROOT)): len(_text(path).splitlines()) for path in MODULES}
    long = {name: count for name, count in lines.items() if count > MODULE_LINES}
    assert long == {}, "give its second idea a module of its own"


def test_functions_are_no_tangle():
    """A function is one thought: most need far fewer than sixty lines, and none needs more."""
    long = {name: length for path in MODULES for name, length in _functions(path) if length > FUNCTION_LINES}
    assert long == {}, "find its second thought and give it a name; do not cut it into pieces that have none"


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(_text(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.name}", node.end_lineno - node.lineno + 1


def test_import_is_light():
    """`import assistant` draws in nothing but the standard library's smallest part."""
    code = "import sys; before = set(sys.modules); import assistant; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["assistant"]


def test_start_needs_the_standard_library_only():
    """What start.py runs before anything is installed imports no package."""
    code = "import sys; sys.path.insert(0, '.'); import assistant.start"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=ROOT, check=True)


def test_no_file_names_this_checkout():
    """No file holds the place where it was written."""
    found = [path for path in _tracked() if str(ROOT) in path.read_text(encoding="utf-8", errors="replace")]
    assert found == []


def _tracked() -> Iterator[Path]:
    """Name the project's own text files."""
    folders = (".github", "ansible", "assistant", "binder", "installer", "notebooks", "release", "tests")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.*"))
    kept = {".py", ".sh", ".ps1", ".js", ".css", ".md", ".txt", ".j2", ".po"}
    kept |= {".ipynb", ".json", ".toml", ".yml", ".yaml"}
    return (path for path in files if path.suffix in kept and path.is_file())


# Where the terminal is written to without the filter: what people copy, what runs before anything is installed, and
# children whose parent reads them.
PRINTERS = (
    "cli/console.py",
    "cli/terminal.py",
    "install/programs/",
    "labs/library/",
    "labs/programs/",
    "labs/template/",
    "onnx/child.py",
    "runtime/",
    "start.py",
    "verify/child.py",
)
# Who turns a message into a sentence: the shells, the writers of files, and these.
RENDERERS = {
    "cli/": "it prints",
    "mcp/": "it answers",
    "wizard/": "it draws",
    "bundle/": "it writes a page and sentences for scripts",
    "export/": "it writes files for people",
    "fleet/": "likewise",
    "labs/": "it teaches in a notebook",
    "start.py": "it prints before anything is installed",
    "model/errors.py": "the text of an exception that nobody caught",
    "model/record.py": "`--json` has the text beside the key",
    "session/answers.py": "likewise",
    "onnx/picture.py": "it draws a file",
    "onnx/compare.py": "the first line of what a runtime said",
    "session/gallery.py": "labels are sorted and searched as people read them",
    "session/session.py": "it writes the log",
    "session/causes.py": "the sentences of a failure are diagnosed like any log",
    "verify/plots.py": "it draws a file",
    "verify/results.py": "what a check's process died of is kept as a fact",
}


def test_only_shells_write_sentences():
    """Rooms hand on messages; a sentence that is written early keeps the language of that moment."""
    found = {
        path.relative_to(ROOT / "assistant").as_posix()
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "assistant.i18n"
        if {name.name for name in node.names} & {"render", "say"}
    }
    early = {place for place in found if not place.startswith(tuple(RENDERERS))}
    assert early == set(), "hand on the Message, made by `_()`, and let the shell render it"
    gone = {place for place in RENDERERS if not any(one.startswith(place) for one in found)}
    assert gone == set(), "take it out of RENDERERS"


def test_no_sentence_speaks_the_words_of_the_command_line():
    """What the wizard may show, too, names no option: the terminal adds it, from the message's value `option`."""
    own = _own_options()
    assert {"--target", "--pin", "--to", "--keep"} <= own
    found = [
        f"{path.relative_to(ROOT / 'assistant')}:{node.lineno}: {text}"
        for path in MODULES
        if path.relative_to(ROOT / "assistant").parts[0] != "cli"
        for node in ast.walk(ast.parse(_text(path)))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"_", "say", "ngettext", "Message"}
        for text in (word.value for word in node.args if isinstance(word, ast.Constant))
        if own.intersection(re.findall(r"--[a-z][a-z-]+", re.sub(r"`assistant[^`]*`", "", str(text))))
    ]
    assert found == [], 'say it in words for everybody, and name the option beside them: _("…", option="--target")'


def _own_options() -> set[str]:
    """Name every option of every command."""
    commands: list[click.Command] = [click.Group(commands={name: _command(name) for name in COMMANDS})]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
    return {option for command in commands for param in command.params for option in param.opts if option[:2] == "--"}


def _command(name: str) -> click.Command:
    return getattr(importlib.import_module(f"assistant.cli.{COMMANDS[name]}"), name)


def test_what_is_known_of_hardware_is_data():
    """No GPU target, driver number or Windows build stands in the code that judges a machine."""
    found = [
        f"{path.relative_to(ROOT / 'assistant')}:{node.lineno}: {node.value!r}"
        for path in MODULES
        if path.relative_to(ROOT / "assistant").parts[0] in {"plan", "diagnose", "session"}
        for node in ast.walk(_without_docstrings(ast.parse(path.read_text(encoding="utf-8"))))
        if isinstance(node, ast.Constant)
        if (isinstance(node.value, str) and re.fullmatch(r"gfx\d\w*|[3-8]\d\d(\.\d+)+|10\.0\.\d{5}", node.value))
        or (isinstance(node.value, int) and 10240 <= node.value <= 30000)
    ]
    assert found == [], "put it into a table of assistant/catalog/data/, with source and date"


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


# Where files are written without `host/files.py`.
WRITERS = {
    "host/files.py": "it is the one writer",
    "host/download.py": "it adds to what an earlier try fetched; the whole file is put in place by host/files.py",
    "start.py": "it has nothing but the standard library",
    "verify/child.py": "it runs in another environment, and asks the kernel to count anew",
    "labs/library/": "they run in other environments",
    "labs/programs/": "they run in other environments",
    "labs/template/": "it runs in another process",
}


def _calls(excepted: Iterable[str]) -> Iterator[tuple[str, ast.Call]]:
    for path in MODULES:
        place = path.relative_to(ROOT / "assistant").as_posix()
        if not place.startswith(tuple(excepted)):
            yield from (
                (f"{place}:{node.lineno}", node)
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Call)
            )


def test_what_is_printed_passes_the_filter():
    """Only the edge of the terminal prints, asks and draws; all else would let a stranger's text steer it."""
    edge = {"click.echo", "click.secho", "click.echo_via_pager", "click.confirm", "click.prompt", "click.getchar"}
    edge |= {
        "print",
        "input",
        "Console",
        "rich.print",
        "sys.stdout.write",
        "sys.stderr.write",
        "sys.stdout.buffer.write",
    }
    found = [place for place, call in _calls(PRINTERS) if ast.unparse(call.func) in edge]
    assert found == [], "print through assistant/cli/console.py or assistant/cli/terminal.py"


def test_files_are_written_in_one_place():
    """A file is written whole and durably, or not at all: nobody opens one for writing by himself."""
    found = [place for place, call in _calls(WRITERS) if _writes(call)]
    assert found == [], "write it with assistant/host/files.py"


def _writes(call: ast.Call) -> bool:
    name = ast.unparse(call.func).rpartition(".")[2]
    modes = [
        word.value for word in (*call.args[:2], *(key.value for key in call.keywords)) if isinstance(word, ast.Constant)
    ]
    opened = name in {"open", "fdopen"} and any(
        re.fullmatch(r"[bt]*[wax+][bt+]*|r[bt]?\+[bt]?", str(mode)) for mode in modes
    )
    return opened or name in {"write_text", "write_bytes", "NamedTemporaryFile", "mkstemp", "copyfile", "copy2"}


# What a pattern looks for that takes something private out of a text.
PRIVATE = re.compile(
    r"passw|secret|\btoken\b|token[|)]|credential|api.{0,3}key|signature=|\bsig=|bearer|x-amz|/home/|/users/|\busers\b|uuid"
    r"|serial|akia|ghp_|hf_|://\)?\[\^|\]\+@|\]\*@",
    re.IGNORECASE,
)
# Where it stands, and patterns that only look like one.
LOOKALIKES = {
    "privacy/": "it is the one place",
    "parsers/collect_env.py": "it reads a GPU's name before its UUID",
    "parsers/meaning.py": "it reads a GPU's name before its UUID",
    "install/work_folder.py": "it finds the work folders that a token names",
}


def test_redaction_stands_in_one_place():
    """The rules of `privacy` alone say what is private: a second table would miss what the first one learns."""
    asked = {"re.compile", "re.sub", "re.subn", "re.search", "re.match", "re.fullmatch", "re.findall", "re.split"}
    found = [
        f"{place}: {ast.unparse(call.args[0])[:80]}"
        for place, call in _calls(LOOKALIKES)
        if ast.unparse(call.func) in asked and PRIVATE.search(ast.unparse(call.args[0]))
    ]
    assert found == [], "make it a rule of assistant/privacy/rules.py, or a look-alike with its reason"


def test_readme_and_ci_run_the_same_command():
    """The test command of the README is the one that CI runs."""
    command = "python3 start.py test"
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"exec {command}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_conda_and_binder_agree_with_the_project():
    """Both environment files name the same Python; Binder's is what its script writes from pyproject.toml."""
    for_conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    for_binder = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text(encoding="utf-8"))
    assert for_conda["channels"] == for_binder["channels"]
    assert for_conda["dependencies"][:-1] == for_binder["dependencies"][:-1] == ["python=3.12", "pip"]
    assert for_conda["dependencies"][-1] == {"pip": ["-e .[lab]"]}
    written = runpy.run_path(str(ROOT / "binder" / "renew.py"))["environment"]()
    assert (ROOT / "binder" / "environment.yml").read_text(encoding="utf-8") == written, "run: python3 binder/renew.py"


# Packages whose modules have another name.
MODULES_OF = {"nvidia-ml-py": "pynvml", "protobuf": "google", "pyyaml": "yaml"}
# What a person or an environment other than the assistant's own brings, and is imported only where it is found.
ELSEWHERE = {"torch", "torch_directml", "onnxruntime", "babel"}
# Programs for other environments, files that users copy, and what the translations are made with.
NOT_OURS = ("install/programs/", "labs/library/", "labs/programs/", "labs/template/", "runtime/", "locale/")
# Rooms whose modules only run where an extra is installed; a module of any other room may import the core alone.
EXTRA_OF_ROOM = {"onnx/": "onnx", "wizard/": "lab", "labs/course/grading": "course", "labs/": "lab", "mcp/": "mcp"}
# Where the core asks first whether the package is there, and does without it otherwise.
ASKED_FIRST = {
    "diagnose/prefilter.py": {"ahocorasick_rs"},
    "host/uv.py": {"uv"},
    "runtime/fallback.py": {"matplotlib"},
}


def test_every_import_is_declared():
    """What a module imports from elsewhere is a package that its room may use: the core's, or its extra's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    core = _modules_of(project["dependencies"])
    allowed = {
        "onnx": core | _modules_of(extras["onnx"]),
        "lab": core | _modules_of(extras["onnx"] + extras["lab"]),
        "mcp": core | _modules_of(extras["onnx"] + extras["mcp"]),
        "course": core | _modules_of(extras["onnx"] + extras["lab"] + extras["course"]),
    }
    undeclared = []
    for path in MODULES:
        place = path.relative_to(ROOT / "assistant").as_posix()
        room = next((extra for room, extra in EXTRA_OF_ROOM.items() if place.startswith(room)), "")
        known = allowed.get(room, core) | ASKED_FIRST.get(place, set()) | ELSEWHERE | {"assistant"}
        if not place.startswith(NOT_OURS):
            undeclared += [f"{place}: {name}" for name in sorted(_imported(path) - known - sys.stdlib_module_names)]
    assert undeclared == [], "declare it in pyproject.toml with its reason, or do without it in this room"


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").rglob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_import_what_is_there(path):
    """A name that a notebook imports is not lost when a module is renamed or cleared."""
    cells = [cell["source"] for cell in json.loads(_text(path))["cells"] if cell["cell_type"] == "code"]
    for node in (node for source in cells for node in ast.walk(ast.parse("".join(source)))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("assistant"):
            gone = [alias.name for alias in node.names if not hasattr(importlib.import_module(node.module), alias.name)]
            assert gone == [], f"import it in {path.name} from where it is now"


def test_every_package_is_imported():
    """What the core and the extras install is imported somewhere, or started as a program."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    used = {name for path in MODULES for name in _imported(path)}
    declared = _modules_of(project["dependencies"] + extras["onnx"] + extras["lab"] + extras["mcp"])
    assert declared - used == {"jupyterlab", "ipykernel"}


def _modules_of(requirements: list[str]) -> set[str]:
    names = {Requirement(line).name for line in requirements} - {OWN_NAME}
    return {MODULES_OF.get(name, name.replace("-", "_")) for name in names}


def _imported(path: Path) -> set[str]:
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    named = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.partition(".")[0] for name in plain | named}
