"""What else decides on an environment's packages: projects of uv and pixi, and tools that go by files of their own.

A project's tool installs what the project's file lists, so torch's build stays only if that file says so. uv's is
edited as text, which keeps comments and form, and only if the result reads as what was there and what was added.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from assistant.catalog import carried_by_torch_index
from assistant.catalog.tables import rows
from assistant.host.files import write_atomically
from assistant.i18n import _
from assistant.install.guards import MARK, THIS_SYSTEM, guard_files, is_pinned_in_constraints
from assistant.install.uv import KERNEL
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Plan, name_of
from assistant.model.record import Record
from assistant.model.shell import command_line

PIXI_ENVIRONMENT = Path(".pixi", "envs", "default")
_END = f"# {MARK}, up to here"  # behind what is added inside a list; the next line is as it was


class Project(Record, frozen=True):
    """A project of uv or pixi; its tool makes the environment from what `file` (pyproject.toml or pixi.toml) lists."""

    tool: Literal["uv", "pixi"]
    file: str


def project_environment(folder: Path) -> Path:
    """Return the environment of uv's or pixi's project in a folder; the folder itself if it holds no such project."""
    for inside in (Path(".venv"), PIXI_ENVIRONMENT):
        if find_project(folder / inside):
            return folder / inside
    return folder


def find_project(environment: Path) -> Project | None:
    """Return the project of uv or pixi whose tool manages an environment; None if there is none.

    It is found by the environment's place, .venv or .pixi/envs/NAME, and by the project's files beside that.
    """
    if environment.name == ".venv":
        file = environment.parent / "pyproject.toml"
        if "uv" in _read_tool_tables(file) or (file.is_file() and (file.parent / "uv.lock").is_file()):
            return Project("uv", str(file))
    if environment.parts[-3:-1] == PIXI_ENVIRONMENT.parts[:2]:
        file = environment.parents[2] / "pixi.toml"
        other = file.with_name("pyproject.toml")
        if file.is_file() or "pixi" in _read_tool_tables(other):
            return Project("pixi", str(file if file.is_file() else other))
    return None


def project_undo_findings(target: Path, plan: Plan, new_versions: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return a warning if uv or pixi manages `target` for a project: its sync would undo the installation; else ().

    Its remedies are what adds the build to the project's file, and for uv the command that adds the packages.
    """
    project = find_project(target)
    if project is None:
        return ()
    if project.tool == "pixi":
        return (_undo_finding(project, _paste_remedy(project, project_tables(project, plan, new_versions))),)
    text = _("Let the assistant add to {file} what keeps the build.", file=project.file)
    guard = Remedy(text=text, commands=(command_line(["assistant", "guard", Path(project.file).parent]),))
    return (_undo_finding(project, guard, _add_remedy(project, plan)),)


def _undo_finding(project: Project, *remedies: Remedy) -> Finding:
    """Return the warning that a project's tool would undo an installation, with what prevents that."""
    text = _("{tool} manages this environment from {file}: the next `{command}` would undo the installation.")
    command = {"uv": "uv sync", "pixi": "pixi install"}[project.tool]
    text = text.format(tool=project.tool, file=project.file, command=command)
    return Finding(key="kept-by-project", severity=Severity.WARNING, text=text, remedies=remedies)


def _paste_remedy(project: Project, tables: Mapping[str, list[str]]) -> Remedy:
    """Return the remedy to paste lines into a project's file."""
    text = _("Add these lines to {file}; where it already has one of these tables, add them below its heading.")
    return Remedy(text=text.format(file=project.file), commands=(tables_text(tables),))


def _add_remedy(project: Project, plan: Plan) -> Remedy:
    """Return the remedy to add a plan's packages to a project of uv, once its file pins their versions."""
    names = [*map(name_of, plan.requirements), KERNEL]
    command = command_line(["uv", "add", "--project", Path(project.file).parent, *names])
    return Remedy(text=_("Then add the packages to the project."), commands=(command,))


def project_tables(project: Project, plan: Plan, packages: Mapping[str, str]) -> dict[str, list[str]]:
    """Return lines of TOML by their heading: pins of those `packages` that constraints pin, and torch's index.

    uv's hold for this system only, as others may have no such build. Sources and an index that the file has stay:
    https://docs.astral.sh/uv/guides/integration/pytorch/
    """
    pins = {name: version for name, version in packages.items() if is_pinned_in_constraints(name)}
    from_index = [name for name in pins if plan.index_url and carried_by_torch_index(name, plan.variant)]
    url = json.dumps(plan.index_url)  # a JSON string is a TOML string too
    if project.tool == "pixi":
        heading = "pypi-dependencies" if project.file.endswith("pixi.toml") else "tool.pixi.pypi-dependencies"
        index = dict.fromkeys(from_index, f", index = {url}")
        lines = [f'{name} = {{ version = "=={version}"{index.get(name, "")} }}' for name, version in pins.items()]
        return {f"[{heading}]": lines}
    uv = _read_tool_tables(Path(project.file)).get("uv", {})
    needs = [f"    {json.dumps(f'{name}=={version} ; {THIS_SYSTEM}')}," for name, version in pins.items()]
    tables = {"[tool.uv]": ["constraint-dependencies = [", *needs, "]"]}
    if from_index:
        indexes = {row.get("url"): row.get("name") for row in uv.get("index", [])}
        name = indexes.get(plan.index_url) or "torch"
        source = f'{{ index = "{name}", marker = "{THIS_SYSTEM}" }}'
        tables["[tool.uv.sources]"] = [f"{one} = {source}" for one in from_index if one not in uv.get("sources", {})]
        if plan.index_url not in indexes:
            tables["[[tool.uv.index]]"] = [f'name = "{name}"', f"url = {url}", "explicit = true"]
    return {heading: lines for heading, lines in tables.items() if lines}


def tables_text(tables: Mapping[str, list[str]]) -> str:
    """Return tables as they would stand in a file."""
    return "\n\n".join("\n".join([heading, *lines]) for heading, lines in tables.items())


def with_tables(text: str, tables: Mapping[str, list[str]]) -> str:
    """Return the text of a pyproject.toml with lines added to its tables; "" if it is of no form that allows that."""
    end, result = "\r\n" if "\r\n" in text else "\n", text
    for heading, lines in tables.items():
        section = re.search(rf"(?m)^{re.escape(heading)}[ \t]*(?:#[^\r\n]*)?(?=\r?$)", result)
        place, block, last = len(result.rstrip("\r\n")), [heading, *lines], ""
        if section and not heading.startswith("[["):
            beyond = re.compile(r"^\[", re.MULTILINE).search(result, section.end())
            array = re.compile(rf"^{re.escape(lines[0])}", re.MULTILINE).search(
                result, section.end(), beyond.start() if beyond else len(result)
            )
            place = array.end() if array else section.end()
            block, last = (lines[1:-1], f"{end}{_END}{end}") if array else (lines, "")
        added = "".join(f"{end}{line} # {MARK}" for line in block)
        result = f"{result[:place]}{added}{last}{result[place:]}"
    try:
        there, new, whole = (Counter(_leaves(tomllib.loads(one))) for one in (text, tables_text(tables), result))
    except ValueError:
        return ""
    return result if whole == there + new else ""


def without_tables(text: str) -> str:
    """Return the text of a pyproject.toml without what `with_tables` added, but headings that others' lines need."""
    added = re.compile(rf"\r?\n[^\n]*# {MARK}(?:, up to here\r?\n|(?=\r?\n|\Z))")
    result = added.sub("", text)
    try:
        is_whole = set(_leaves(tomllib.loads(result))) <= set(_leaves(tomllib.loads(text)))
    except ValueError:
        is_whole = False
    return result if is_whole else added.sub("", re.sub(rf"(?m)^(\[[^\[].*) # {MARK}", r"\1", text))


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value in tables of TOML with its keys; the order of lists does not matter."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else ((0, one) for one in value):
            yield from _leaves(inner, f"{path}.{key}")
    else:
        yield path, repr(value)


def lines_to_write(environment: Path, plan: Plan, versions: Mapping[str, str]) -> dict[Path, str]:
    """Return what keeping the build would add to files outside of an environment: of uv's project, of applications."""
    project, files = find_project(environment), {}
    if project and project.tool == "uv":
        files[Path(project.file)] = tables_text(project_tables(project, plan, versions))
    tools = find_tools(environment, plan, versions)
    return files | {tool.file: tool.lines for tool in tools if tool.is_written and not tool.file.exists()}


def guard_project(environment: Path, plan: Plan, versions: Mapping[str, str]) -> tuple[Finding, ...]:
    """Add to the file of an environment's project of uv what keeps the build; return what the user has to do beside.

    That is to paste the lines, for pixi and where the file allows no more, and to add torch where it is not locked.
    Raises `OSError`.
    """
    project = find_project(environment)
    if project is None:
        return ()
    unguard_project(environment)
    file, tables = Path(project.file), project_tables(project, plan, versions)
    text = with_tables(file.read_bytes().decode("utf-8", "surrogateescape"), tables) if project.tool == "uv" else ""
    remedies = [] if text else [_paste_remedy(project, tables)]
    if text:
        write_atomically(file, text.encode("utf-8", "surrogateescape"))
    lock = file.with_name("uv.lock")
    if project.tool == "uv" and not (lock.is_file() and '\nname = "torch"\n' in lock.read_text("utf-8", "replace")):
        remedies.append(_add_remedy(project, plan))
    return (_undo_finding(project, *remedies),) if remedies else ()


def unguard_project(environment: Path) -> None:
    """Undo what `guard_project` did to the project's file; raise `OSError`."""
    project = find_project(environment)
    file = Path(project.file if project and project.tool == "uv" else "")
    text = file.read_bytes().decode("utf-8", "surrogateescape") if file.is_file() else ""
    if (before := without_tables(text)) != text:
        write_atomically(file, before.encode("utf-8", "surrogateescape"))


class Tool(NamedTuple):
    """A tool that installs into an environment by a file of its own, and the lines that make it keep the build.

    `is_written` says that the file is written whole if it is not there; any other is the user's to edit.
    """

    name: str
    file: Path
    lines: str
    is_written: bool


def find_tools(environment: Path, plan: Plan, versions: Mapping[str, str]) -> list[Tool]:
    """Return the tools of the catalogue whose files lie in an environment, or in one of the two folders above it.

    Only tools for this system, one for each file, the nearest folder first. Their lines are filled in from the plan's
    index and the installed `versions`, which must have torch's.
    """
    family = [f"{name}=={version}" for name, version in versions.items() if carried_by_torch_index(name)]
    pins = [f"{name}=={version}" for name, version in versions.items() if is_pinned_in_constraints(name)]
    words = {
        "family": " ".join(family),
        "list": json.dumps(pins),
        "torch": versions["torch"],
        "index": f"--index-url {plan.index_url}" if plan.index_url else "",
        "extra": f"--extra-index-url {plan.index_url}" if plan.index_url else "",
        "url": plan.index_url or "https://pypi.org/simple",
        "constraints": guard_files(environment)[0],
    }
    found: dict[Path, Tool] = {}
    for row in rows("guards.tools"):
        for folder in (environment, *environment.parents[:2]):
            if row.system in {"", os.name} and all(any(folder.glob(name)) for name in row.found):
                file = folder / row.file
                found.setdefault(file, Tool(row.name, file, row.lines.format(**words).rstrip(), row.written))
    return list(found.values())


def guard_tools(environment: Path, plan: Plan, versions: Mapping[str, str]) -> Iterator[Finding]:
    """Write the files of tools that are written whole; yield for each other tool the lines for its file.

    Raises `OSError`.
    """
    for tool in find_tools(environment, plan, versions):
        if tool.is_written and (not tool.file.exists() or _is_ours(tool.file)):
            write_atomically(tool.file, f"# {MARK}: `assistant guard --off` deletes this file.\n{tool.lines}\n")
            continue
        text = _("{tool} installs by a file of its own: {file}.", tool=tool.name, file=tool.file)
        remedy = Remedy(text=_("Add these lines there; they name the build that you have."), commands=(tool.lines,))
        yield Finding(key="kept-by-tool", severity=Severity.INFO, text=text, remedies=(remedy,))


def unguard_tools(environment: Path) -> None:
    """Delete the files that `guard_tools` wrote whole; raise `OSError`."""
    names = {row.file for row in rows("guards.tools") if row.written}
    for file in (folder / name for name in names for folder in environment.parents[:2]):
        if _is_ours(file):
            file.unlink()


def _is_ours(file: Path) -> bool:
    """Return whether `guard_tools` wrote a file."""
    return file.is_file() and file.read_bytes().startswith(f"# {MARK}".encode())


def _read_tool_tables(file: Path) -> Mapping[str, Any]:
    """Return the `[tool.…]` tables of a `pyproject.toml` by name, without what was added; {} if unreadable."""
    try:
        tools = tomllib.loads(without_tables(file.read_text(encoding="utf-8"))).get("tool", {})
    except (OSError, ValueError):
        return {}
    return tools if isinstance(tools, dict) else {}
