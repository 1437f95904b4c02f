"""Where an environment goes, and whether it may go there."""

from __future__ import annotations

import os
from pathlib import Path

from assistant.host.base import Host
from assistant.host.folders import user_data
from assistant.i18n import Message, Text, _
from assistant.install.journal import entry_of
from assistant.install.work import refuse_unknown
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.plan import DISK_FACTOR, Plan

MARKER = "assistant-environment.json"  # stands in every environment that was made here and finished
LONGEST_PATH = 240  # Windows ends at 260, and packages need some of it


def environments() -> Path:
    """Name the folder of the environments that the assistant makes."""
    return user_data() / "envs"


def default_target(plan: Plan) -> Path:
    """Name the plan's own folder among them."""
    return environments() / f"{plan.backend.value}-torch{plan.torch}-py{plan.python}".replace("/", "-")


def is_ours(target: Path) -> bool:
    """Tell whether the assistant made this environment and finished it."""
    return (target / MARKER).is_file()


def check_target(target: Path) -> None:
    """Refuse a target that a new environment must not or cannot use.

    Raises `BadInput` when something else is there, `WorkFailed` when the folder cannot be written.
    """
    check_path(target)
    begun = entry_of(target).read() is not None
    if target.is_dir() and not begun:
        refuse_unknown(target)
    if os.path.lexists(target) and not _is_free(target, begun=begun):
        raise BadInput(_refusal(target), hint=_("Choose another folder with --target, or one that does not exist yet."))
    parent = _nearest_parent(target)
    if not parent.is_dir():
        raise BadInput(
            _("{path} is a file, so nothing can be made below it.", path=parent),
            hint=_("Choose another folder with --target."),
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise WorkFailed(
            _("You may not write in {path}.", path=parent),
            hint=_("Choose a folder of your own with --target."),
        )


def check_path(path: Path) -> None:
    """Raise `BadInput` for a path that no environment can have: too long, a loop of links, invisible characters."""
    text = str(path)
    reason: Text = ""
    if len(text) > LONGEST_PATH:
        reason = _("it has {count} characters, and {limit} are the most", count=len(text), limit=LONGEST_PATH)
    elif not text.isprintable():
        reason = _("it holds characters that cannot be seen")
    else:
        try:
            path.resolve()
            path.exists()
        except (OSError, RuntimeError):  # Python before 3.13 raises RuntimeError for a loop
            reason = _("its links lead in a circle, or a part of it is too long")
    if reason:
        raise BadInput(
            _("{path} cannot hold an environment: {reason}.", path=ascii(text)[1:-1][:80], reason=reason),
            hint=_("Choose another folder with --target."),
        )


def check_disk(host: Host, target: Path, download: int) -> None:
    """Raise `WorkFailed` when the target's file system is too small for `download` bytes of wheels."""
    free = host.facts("disk", str(target)).get("free")
    need = download * DISK_FACTOR
    if isinstance(free, int) and free < need:
        raise WorkFailed(
            _(
                "{path} has {free} MB free, and this environment needs about {need} MB.",
                path=_nearest_parent(target),
                free=free // 10**6,
                need=need // 10**6,
            ),
            hint=_("Free some space, or choose a folder on another disk with --target."),
        )


def _is_free(target: Path, *, begun: bool) -> bool:
    """Tell whether the folder is empty, or will be once what a killed run of this user began there is taken back."""
    return target.is_dir() and (begun or not any(target.iterdir()))


def _refusal(target: Path) -> Message:
    if (target / "pyvenv.cfg").is_file():
        return _("{path} already holds an environment, and it is left as it is.", path=target)
    return _("{path} exists and is not an environment.", path=target)


def _nearest_parent(target: Path) -> Path:
    folder = target.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
