"""Environments that a project tool manages (uv, pixi): which project, and how to keep it from undoing our work."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index
from assistant.i18n import _
from assistant.install.constraints import guarded
from assistant.install.uv import KERNEL
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.shell import command_line

PIXI_ENVIRONMENT = Path(".pixi", "envs", "default")


class Project(Record, frozen=True):
    """A project whose tool makes its environment from what `file` says, again and again."""

    tool: Literal["uv", "pixi"]
    file: str


def environment_of(folder: Path) -> Path:
    """Return the environment of the project in a folder; the folder itself where there is no project."""
    for inside in (Path(".venv"), PIXI_ENVIRONMENT):
        if project_of(folder / inside):
            return folder / inside
    return folder


def project_of(environment: Path) -> Project | None:
    """Return the project whose tool manages an environment; None for an environment of its own."""
    if environment.name == ".venv":
        file = environment.parent / "pyproject.toml"
        if "uv" in _tools(file) or (file.is_file() and (file.parent / "uv.lock").is_file()):
            return Project("uv", str(file))
    if environment.parts[-3:-1] == PIXI_ENVIRONMENT.parts[:2]:
        file = environment.parents[2] / "pixi.toml"
        other = file.with_name("pyproject.toml")
        if file.is_file() or "pixi" in _tools(other):
            return Project("pixi", str(file if file.is_file() else other))
    return None


def undone(project: Project, plan: Plan, coming: Mapping[str, str]) -> Finding:
    """Return the finding that the tool's next run would undo an installation, with the lines that prevent it."""
    command = {"uv": "uv sync", "pixi": "pixi install"}[project.tool]
    lines = snippet(project, plan, coming)
    remedies = [
        Remedy(
            text=_(
                "Add these lines to {file}; where it already has one of these tables, add them below its heading.",
                file=project.file,
            ),
            commands=(lines,),
        )
    ]
    if project.tool == "uv":
        asked = [canonicalize_name(Requirement(line).name) for line in (*plan.requirements, KERNEL)]
        wanted = [f"{name}=={coming[name]}" if guarded(name) and name in coming else name for name in asked]
        again = command_line(["uv", "add", "--project", str(Path(project.file).parent), *wanted])
        remedies.append(Remedy(text=_("Then add the packages to the project."), commands=(again,)))
    text = _("{tool} manages this environment from {file}: the next `{command}` would undo the installation.")
    return Finding(
        key="kept-by-project",
        severity=Severity.WARNING,
        text=text.format(tool=project.tool, file=project.file, command=command),
        remedies=tuple(remedies),
    )


def snippet(project: Project, plan: Plan, packages: Mapping[str, str]) -> str:
    """Write the TOML lines that tie torch's family to its index and versions, for the project's tool.

    By hand, as users put them below headings that their file has already: tomli_w gives each package its own heading.
    """
    pins = {name: version for name, version in packages.items() if guarded(name)}
    own = [name for name in pins if plan.index_url and carried_by_torch_index(name, plan.variant)]
    url = json.dumps(plan.index_url)  # a JSON string is a TOML string too
    if project.tool == "pixi":
        heading = "pypi-dependencies" if project.file.endswith("pixi.toml") else "tool.pixi.pypi-dependencies"
        index = dict.fromkeys(own, f", index = {url}")
        rows = [f'{name} = {{ version = "=={version}"{index.get(name, "")} }}' for name, version in pins.items()]
        return "\n".join([f"[{heading}]", *rows])
    kept = json.dumps([f"{name}=={version}" for name, version in pins.items()])
    lines = ["[tool.uv]", f"constraint-dependencies = {kept}"]
    if own:
        lines += ["", "[tool.uv.sources]", *(f'{name} = {{ index = "torch" }}' for name in own)]
        lines += ["", "[[tool.uv.index]]", 'name = "torch"', f"url = {url}", "explicit = true"]
    return "\n".join(lines)


def _tools(file: Path) -> Mapping[str, object]:
    """Return the `[tool.…]` tables of a `pyproject.toml`; {} where there are none."""
    try:
        tools = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError):
        return {}
    return tools if isinstance(tools, dict) else {}
