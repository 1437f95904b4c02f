"""Where an environment goes, what exists there already, and whether it may be made or changed there."""

from __future__ import annotations

import os
from pathlib import Path

from assistant.host.base import Host
from assistant.host.files import full_path, is_in_onedrive, is_redirected, is_writable, shared_environments_folder
from assistant.i18n import Text, _
from assistant.install.environments import Places, can_be_renamed_to
from assistant.install.projects import project_environment
from assistant.install.site import Site, is_environment
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import DISK_FACTOR, KERNEL_TARGET, Plan

LONGEST_PATH = 240  # chosen: scripts name their Python in their first line, of 256 bytes at most (Linux, binfmts.h)
# MAX_PATH without its end; the path of a folder has to leave room for a name of 8.3 characters:
# https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
_LONGEST_ON_WINDOWS = 259
_SHORT_NAME = 12
LONG_PATHS = r"HKLM\SYSTEM\CurrentControlSet\Control\FileSystem"


def resolve_target(text: str, host: Host) -> Path:
    """Return the path that a target stands for: the folder of an environment, or its Python; no program is run.

    A target is "kernel" (the Python of `host`), or the path of an environment, of its Python, or of the project of uv
    or pixi that manages it. Raises `BadInput` for a path that no environment can have, and for an unknown Python.
    """
    own_python = str(host.facts("platform").get("executable") or "")
    if text == KERNEL_TARGET and not own_python:
        raise BadInput(
            _("{path} is not an environment.", path=text),
            hint=_("Give the folder of a virtual environment, or its Python."),
        )
    target = Path(own_python) if text == KERNEL_TARGET else full_path(text)
    check_path(target)
    return project_environment(target)


def target_or_default(plan: Plan, text: str) -> str:
    """Return a target unchanged; for "" and "new" a folder named by project or recipe and plan, which none shares."""
    build = f"{plan.backend.value}-torch{plan.torch}" if plan.torch else ""
    name = "-".join(filter(None, (plan.name or plan.recipe, build, f"py{plan.python}"))).replace("/", "-")
    return str(shared_environments_folder() / name) if text in {"", "new"} else text


def find_plan_target(plan: Plan, text: str, host: Host) -> tuple[Path, Site | None]:
    """Return the folder for a plan's environment, and what its Python reports to hold (None without one).

    A target of "" or "new" is a folder named after the plan. Raises `BadInput` for an environment of another Python
    than the plan's.
    """
    target = resolve_target(target_or_default(plan, text), host)
    site = Site.ask(target, host) if is_environment(target) else None
    if site and site.minor != plan.python:
        raise BadInput(
            _(
                "The plan is for Python {plan}, and {path} has Python {version}.",
                plan=plan.python,
                path=target,
                version=site.version,
            ),
            hint=_("Plan for Python {version}.", version=site.minor, option=f"--python {site.minor}"),
        )
    return Path(site.prefix) if site else target, site


def check_target(target: Path, site: Site | None = None) -> None:
    """Raise if no new environment can be made at a target or, with `site`, if that environment cannot be changed.

    `BadInput` if something is there, other programs would not see it, it is the system's, or an unknown folder is in
    the way beside it; `WorkFailed` if it is not writable.
    """
    target = Path(site.prefix) if site else target
    check_path(target)
    if not site and is_redirected(target):
        raise BadInput(
            _(
                "This Python comes from the Microsoft Store: what it writes to {path} goes into a private folder that"
                " JupyterLab, VS Code and other programs do not find.",
                path=target,
            ),
            hint=_(
                "Choose a folder such as {example}.",
                example=shared_environments_folder() / target.name,
                option="--target",
            ),
        )
    if Path(os.path.realpath(target)).name:  # the root of a disk has none, and nothing beside it
        Places(target).refuse_unknown()
    if not site:
        _check_free(target)
    elif site.managed:
        raise BadInput(
            _("{python} belongs to the system, which forbids installing into it.", python=site.python),
            hint=_("Choose a new environment.", option="--target new"),
        )
    for folder in (target, Path(site.purelib)) if site else (_nearest_existing(target),):
        if not is_writable(folder):
            raise _no_permission_error(folder, is_new=site is None)


def _check_free(target: Path) -> None:
    """Raise `BadInput` unless a target does not exist or is an empty folder, and a folder can be renamed to it.

    Raises `WorkFailed` if it cannot be listed.
    """
    try:
        is_free = not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir()))
    except PermissionError:
        raise _no_permission_error(target, is_new=True) from None
    parent = _nearest_existing(target)
    hint = _("Choose another folder, or one that does not exist yet.", option="--target")
    if not is_free and (target / "pyvenv.cfg").is_file():
        raise BadInput(_("{path} already holds an environment, and it is left as it is.", path=target), hint=hint)
    if not is_free:
        raise BadInput(_("{path} exists and is not an environment.", path=target), hint=hint)
    if not parent.is_dir():
        raise BadInput(
            _("{path} is a file, so nothing can be created inside it.", path=parent),
            hint=_("Choose another folder.", option="--target"),
        )
    if os.path.lexists(target) and is_writable(target) and not can_be_renamed_to(target):
        raise BadInput(
            _(
                "{path} is a disk of its own, or its parent cannot be written, so nothing can be put there at once.",
                path=target,
            ),
            hint=_("Choose a folder inside it, such as {example}.", example=target / "torch", option="--target"),
        )


def _no_permission_error(folder: Path, *, is_new: bool) -> WorkFailed:
    """Return the error for a folder that this user cannot write to."""
    hint = _("Choose a new environment.", option="--target new")
    if is_new:
        hint = _("Choose a folder of your own.", option="--target")
    return WorkFailed(_("You don't have permission to write to {path}.", path=folder), hint=hint)


def check_path(path: Path) -> None:
    """Raise `BadInput` for a path that no environment can have: too long, a loop of links, invisible characters."""
    text = str(path)
    reason: Text = ""
    try:
        path.stat()  # neither `exists` nor, from Python 3.13 on, `resolve` says that links form a loop
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError):
        reason = _("its symbolic links form a loop, or a part of it is too long")
    if len(text) > LONGEST_PATH:
        reason = _("it has {count} characters; the limit is {limit}", count=len(text), limit=LONGEST_PATH)
    elif not text.isprintable():
        reason = _("it contains invisible characters")
    if reason:
        raise BadInput(
            _("{path} cannot hold an environment: {reason}.", path=ascii(text)[1:-1][:80], reason=reason),
            hint=_("Choose another folder.", option="--target"),
        )


def check_disk(host: Host, target: Path, download: int) -> None:
    """Raise `WorkFailed` if less is free at a target than `DISK_FACTOR` times a download (bytes), as far as known."""
    free = host.facts("disk", str(target)).get("free")
    needed = download * DISK_FACTOR
    if isinstance(free, int) and free < needed:
        raise WorkFailed(
            _(
                "{path} has {free} MB free, and this environment needs about {need} MB.",
                path=_nearest_existing(target),
                free=free // 10**6,
                need=needed // 10**6,
            ),
            hint=_("Free some space, or choose a folder on another disk.", option="--target"),
        )


def _nearest_existing(target: Path) -> Path:
    """Return the absolute target if it exists, else the nearest path above it that does, even if that is a file.

    Without any, as on a drive that is missing, the root is returned.
    """
    folder = target.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def check_lengths(host: Host, folder: Path, target: Path) -> None:
    """Raise `BadInput` if a path in `folder` is too long for Windows, there or after a rename to `target`.

    Nothing is checked on other systems, and if long paths are allowed. A folder's path must leave room for a name of 12
    characters (8.3).
    """
    values = host.facts("registry", LONG_PATHS).get("values")
    if not isinstance(values, dict) or values.get("LongPathsEnabled") == 1:
        return
    needed: dict[str, int] = {}
    for root, _folders, files in os.walk(folder):
        below = os.path.relpath(root, folder)
        for name in files:
            needed[f"{below}\\{name}"] = len(below) + max(1 + len(name), _SHORT_NAME)
    longest = max(needed, key=lambda name: needed[name], default="")
    root = max(str(folder), str(target), key=len)
    if longest and len(root) + 1 + needed[longest] > _LONGEST_ON_WINDOWS:
        raise BadInput(
            _(
                "{folder} is too deep: {file} would have a path of {count} characters there, and this Windows allows"
                " {limit}.",
                folder=root,
                file=longest.rpartition("\\")[2],
                count=len(root) + 1 + len(longest),
                limit=_LONGEST_ON_WINDOWS,
            ),
            hint=_(
                "Choose a folder with a shorter path, such as {example}. Or allow long paths: as an administrator, set"
                " LongPathsEnabled to 1 in {key}.",
                example=Path(Path(root).anchor) / "torch",
                key=LONG_PATHS,
                option="--target",
            ),
        )


def onedrive_findings(target: Path) -> tuple[Finding, ...]:
    """Return a warning if a target lies in OneDrive; else ()."""
    if not is_in_onedrive(target):
        return ()
    text = _(
        "{path} is in OneDrive, which would upload every file of the environment; installers can fail there with error"
        " 396 (incompatible hardlinks).",
        path=target,
    )
    remedy = Remedy(text=_("Choose a folder outside OneDrive.", option="--target"))
    # https://github.com/astral-sh/uv/issues/9500, https://github.com/astral-sh/uv/issues/17945
    return (Finding(key="target-in-onedrive", severity=Severity.WARNING, text=text, remedies=(remedy,)),)
