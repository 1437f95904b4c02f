"""Rules of the code that no tool checks: who prints, who writes files, where facts of hardware stand."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from sources import ADDON_MODULES, ADDONS, MODULES, ROOT, imported_by, modules_of, text_of

# What may be imported past a room's face all the same, and by which rooms; "" is any.
BESIDE_THE_FACE = {
    # It is a library of tables, each with a module of its own, and most commands need one or two.
    "assistant.catalog.": {""},
    # It is a library of readers, a module a tool, of which `__init__.py` has what they share.
    "assistant.parsers.": {"detect"},
    "assistant.parsers.mentioned.": {"diagnose", "session"},
}


def test_rooms_are_entered_by_their_face():
    """What a room keeps to itself can be changed without looking anywhere else."""
    shown = {path.parent.name: {*_offered(path)} for path in (ROOT / "assistant").glob("*/__init__.py")}
    shown = {room: names for room, names in shown.items() if names}  # other rooms have no face
    assert {"detect", "plan", "install", "verify", "diagnose", "export"} <= {*shown}
    past = []
    for path in MODULES:
        own, *_rest = path.relative_to(ROOT / "assistant").parts
        for name in _taken(path):
            _package, room, what = f"{name}..".split(".", 2)
            if room in shown and own not in {room, "api"} and what.rstrip(".") not in {"", *shown[room]}:
                admitted = [rooms for prefix, rooms in BESIDE_THE_FACE.items() if name.startswith(prefix)]
                if not any({own, ""} & rooms for rooms in admitted):
                    past.append(f"{path.relative_to(ROOT)}: {name}")
    assert past == [], "import it from the room itself; what its __init__.py does not show yet, import there"


def _offered(face: Path) -> Iterator[str]:
    """Name what a room's `__init__.py` imports or defines."""
    for node in ast.walk(ast.parse(text_of(face))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"assistant.{face.parent.name}."):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (name.id for name in node.targets if isinstance(name, ast.Name))


def _taken(path: Path) -> Iterator[str]:
    """Name all that a file imports of the package, as `assistant.room.module.name`."""
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("assistant."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("assistant."):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_file_names_this_checkout():
    """No file holds the place where it was written."""
    found = [path for path in _tracked() if str(ROOT) in path.read_text(encoding="utf-8", errors="replace")]
    assert found == []


def _tracked() -> Iterator[Path]:
    """Name the project's own text files."""
    folders = (
        ".github",
        "ansible",
        "assistant",
        "assistant_addons",
        "binder",
        "docs",
        "labextension",
        "notebooks",
        "tests",
    )
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.*"))
    kept = {".py", ".sh", ".ps1", ".js", ".css", ".md", ".txt", ".j2", ".po"}
    kept |= {".ipynb", ".json", ".toml", ".yml", ".yaml"}
    return (path for path in files if path.suffix in kept and path.is_file())


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


# Where the terminal is written to without the filter: what people copy, what runs before anything is installed, and
# children whose parent reads them.
PRINTERS = (
    "cli/draw.py",
    "cli/terminal.py",
    "labs/library/",
    "labs/programs/",
    "onnx/child.py",
    "runtime/",
    "start.py",
    "verify/child.py",
)

# Where files are written without `host/files.py`.
WRITERS = {
    "host/files.py": "it is the one writer",
    "host/download.py": "it adds to what an earlier try fetched; the whole file is put in place by host/files.py",
    "start.py": "it has nothing but the standard library",
    "verify/child.py": "it runs in another environment, and asks the kernel to count anew",
    "onnx/confined.py": "it runs in a Python that has nothing of the assistant, in a folder made for it",
    "onnx/proof.py": "likewise",
    "labs/library/": "they run in other environments",
    "labs/programs/": "they run in other environments",
}


def _calls(excepted: Iterable[str]) -> Iterator[tuple[str, ast.Call]]:
    for path in (*MODULES, *ADDON_MODULES):
        place = path.relative_to(ROOT).as_posix().partition("/")[2]
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
    assert found == [], "print through assistant/cli/draw.py or assistant/cli/terminal.py"


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


def test_every_package_isimported_by():
    """What the core and the extras install is imported somewhere, or started as a program."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    used = {name for path in (*MODULES, *ADDON_MODULES) for name in imported_by(path)}
    declared = modules_of(project["dependencies"] + [need for extra in (*ADDONS, "lab") for need in extras[extra]])
    assert declared - used == {"jupyterlab", "ipykernel", "pypiserver"}
