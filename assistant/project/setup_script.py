"""What `setup.py` and `setup.cfg` declare; the script is parsed and never run, so only what it spells out is known."""

from __future__ import annotations

import ast
import configparser
from collections.abc import Mapping
from pathlib import Path

from assistant.i18n import _
from assistant.model.visible import printable
from assistant.project.code import parsed
from assistant.project.gathering import Gathering
from assistant.project.requirements import take_lines
from assistant.project.source import file_bytes, file_text, is_file, refused, source_of


def read_setup_script(path: Path, gathering: Gathering, extras: frozenset[str] = frozenset()) -> bool:
    """Read the lists in the call of `setup(…)`; return whether there are any, and tell about what is computed."""
    tree = parsed(file_bytes(path))
    if tree is None:
        raise refused(str(path), _("it is no Python that this version can read"))
    call = next((node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_setup(node)), None)
    if call is None:
        return False
    terms = {term.arg: term.value for term in call.keywords if term.arg}
    known = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    needs = _lines(terms.get("install_requires"), known)
    if needs is None:
        gathering.tell(
            _(
                "{file} computes what it needs, and it is not run here; what its code imports is looked at instead.",
                file=printable(path.name),
            )
        )
        return False
    optional = terms.get("extras_require")
    offered = _table(known.get(optional.id) if isinstance(optional, ast.Name) else optional, known)
    for line in [*needs, *(line for extra in sorted(extras) for line in offered.get(extra, []))]:
        gathering.take(line, source_of(path))
    python = terms.get("python_requires")
    if isinstance(python, ast.Constant) and isinstance(python.value, str):
        gathering.take_pythons(python.value)
    if needs:
        gathering.paths[path.resolve()] = None
    return bool(needs)


def _is_setup(call: ast.Call) -> bool:
    return getattr(call.func, "id", getattr(call.func, "attr", "")) == "setup"


def _lines(value: ast.expr | None, known: Mapping[str, ast.expr]) -> list[str] | None:
    """Return the texts of a literal list, or of the name of one; [] where none is given, None where it is computed."""
    if value is None:
        return []
    if isinstance(value, ast.Name):
        value = known.get(value.id)
    try:
        given = ast.literal_eval(value) if value is not None else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(given, str):
        return [line for line in map(str.strip, given.splitlines()) if line]
    return [line for line in given if isinstance(line, str)] if isinstance(given, list | tuple) else None


def _table(value: ast.expr | None, known: Mapping[str, ast.expr]) -> dict[str, list[str]]:
    if not isinstance(value, ast.Dict):
        return {}
    pairs = zip(value.keys, value.values, strict=True)
    return {str(key.value): _lines(one, known) or [] for key, one in pairs if isinstance(key, ast.Constant)}


# [options]
# python_requires = >=3.10
# install_requires =
#     torch>=2.4
# [options.extras_require]
# demo = gradio
def read_setup_cfg(path: Path, gathering: Gathering, extras: frozenset[str] = frozenset()) -> bool:
    """Read the lists of a `setup.cfg`; return whether it has any."""
    settings = configparser.RawConfigParser(strict=False)
    try:
        settings.read_string(file_text(path))
    except configparser.Error as error:
        raise refused(str(path), printable(error.message)) from error
    text = settings.get("options", "install_requires", fallback="")
    if text.startswith("file:"):
        beside = path.parent / text.removeprefix("file:").strip()
        text = file_text(beside) if is_file(beside) else ""
    text += "".join(f"\n{settings.get('options.extras_require', extra, fallback='')}" for extra in sorted(extras))
    if not text.strip():
        return False
    gathering.paths[path.resolve()] = None
    take_lines(text, source_of(path), gathering)
    if python := settings.get("options", "python_requires", fallback=""):
        gathering.take_pythons(python)
    return True
