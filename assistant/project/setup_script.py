"""What `setup.py` and `setup.cfg` declare; the script is parsed and never run, so only what it spells out is known."""

from __future__ import annotations

import ast
import configparser
from collections.abc import Mapping

from packaging.utils import canonicalize_name

from assistant.i18n import _
from assistant.project.gathering import Gathering
from assistant.project.imports import parsed
from assistant.project.requirements import take_beside, take_lines
from assistant.project.source import Source, refused, shown

_Known = Mapping[str, ast.expr | None]


# NEEDS = ["torch>=2.5"]
# setup(name="x", install_requires=NEEDS, extras_require={"train": ["wandb"]}, python_requires=">=3.10")
def take_setup_script(text: str, source: Source, gathering: Gathering) -> bool:
    """Take the lists in the call of `setup(…)`; return whether there are any, and note what is computed."""
    tree = parsed(text)
    if tree is None:
        raise refused(source.name, _("this version of Python cannot read it"))
    call = next((node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == "setup"), None)
    if call is None:
        return False
    terms, known = {term.arg: term.value for term in call.keywords}, _assigned(tree)
    optional = terms.get("extras_require")
    offered = _table(known.get(optional.id) if isinstance(optional, ast.Name) else optional, known)
    needs = None if None in terms and "install_requires" not in terms else _lines(terms.get("install_requires"), known)
    parts = {name: lines for name, lines in (offered or {}).items() if canonicalize_name(name) in source.extras}
    if needs is None or None in parts.values() or (optional and offered is None and source.extras):
        gathering.note(_("{file} works out what it needs when it runs; it is not run here.", file=source.file))
    whole = None not in terms and (offered is not None or optional is None)
    gathering.offer(offered or {}, source.extras, source, whole=whole)
    every = [*(needs or []), *(line for lines in parts.values() for line in lines or [])]
    for line in every:
        gathering.take(line, source)
    python = terms.get("python_requires")
    if isinstance(python, ast.Constant) and isinstance(python.value, str):
        gathering.take_pythons(python.value)
    return bool(every)


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def _assigned(tree: ast.Module) -> _Known:
    """Map names to what is assigned to them, None for one that is assigned twice or added to: `needs.append(…)`."""
    found: dict[str, ast.expr | None] = {}
    for node in ast.walk(tree):
        changed = {ast.Assign: "targets", ast.AugAssign: "target", ast.Call: "func"}.get(type(node), "")
        targets = getattr(node, changed, [])
        for target in targets if isinstance(targets, list) else [targets]:
            name = getattr(target, "value", target)  # of needs.append and needs[0], or the name itself
            if isinstance(name, ast.Name):
                once = target is name and name.id not in found
                found[name.id] = node.value if isinstance(node, ast.Assign) and once else None
    return found


def _lines(value: ast.expr | None, known: _Known) -> list[str] | None:
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


def _table(value: ast.expr | None, known: _Known) -> dict[str, list[str] | None] | None:
    """Return the lists of a literal table by name, None where the table is computed."""
    if not isinstance(value, ast.Dict) or not all(isinstance(key, ast.Constant) for key in value.keys):
        return None
    return {
        str(getattr(key, "value", "")): _lines(one, known) for key, one in zip(value.keys, value.values, strict=True)
    }


# [options]
# python_requires = >=3.10
# install_requires =
#     torch>=2.4
# [options.extras_require]
# demo = gradio
def take_setup_cfg(text: str, source: Source, gathering: Gathering) -> bool:
    """Take the lists of a `setup.cfg`; return whether it has any."""
    settings = configparser.RawConfigParser(strict=False)
    try:
        settings.read_string(text)
    except configparser.Error as error:
        raise refused(source.name, shown(error.message)) from error
    if not any(name.startswith("options") for name in settings.sections()):
        return False
    section = "options.extras_require"
    offered = dict(settings.items(section)) if settings.has_section(section) else {}
    gathering.offer(offered, source.extras, source, whole=settings.has_option("options", "install_requires"))
    lists = [lines for name, lines in offered.items() if canonicalize_name(name) in source.extras]
    lists.insert(0, settings.get("options", "install_requires", fallback=""))
    for lines in lists:
        if lines.startswith("file:"):  # file: requirements.txt, more.txt
            for file in filter(None, map(str.strip, lines.removeprefix("file:").split(","))):
                take_beside(file, source, gathering)
        else:
            take_lines(lines, source, gathering)
    if python := settings.get("options", "python_requires", fallback=""):
        gathering.take_pythons(python)
    return any(map(str.strip, lists))
