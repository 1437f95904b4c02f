"""`requirements.txt`: every installed package pinned; torch's family, and nothing else, from torch's own index.

pip has no index per package, and with `--extra-index-url` any of the indexes may answer for any name. A `--find-links`
page of one project offers that project's files only; and versions with a label such as `+cu126` cannot be on PyPI.
"""

from __future__ import annotations

from assistant.export.bundle import MARKER, Bundle
from assistant.i18n import _
from assistant.model.plan import of_torch_family

__all__ = ["requirements_text"]

_INSTALLERS = ("pip", "uv")  # pip does not replace itself on Windows


def requirements_text(bundle: Bundle) -> str:
    """Write pins for `python -m pip install -r requirements.txt`."""
    index, packages = bundle.plan.index_url, bundle.environment.packages
    pins = {name: version for name, version in sorted(packages.items()) if name not in _INSTALLERS}
    lines = [f"{name}=={version}" for name, version in pins.items()] or list(bundle.plan.requirements)
    pages = [_page(index, name) for name, version in pins.items() if _from_index(name, version)] if index else []
    return "\n".join([f"# {MARKER}", *_notes(bundle), *pages, *lines, ""])


def _from_index(name: str, version: str) -> bool:
    return "+" in version or of_torch_family(name)


def _page(index: str, name: str) -> str:
    return f"--find-links {index.rstrip('/')}/{name}/"


def _notes(bundle: Bundle) -> list[str]:
    python = bundle.report.facts.get("python", bundle.plan.python)
    notes = [_("For Python {python}: python -m pip install -r requirements.txt").format(python=python)]
    if bundle.plan.index_url:
        notes.append(_("torch and its family come from the pages below, everything else from pip's own index."))
    else:
        notes.append(_("Everything, torch too, comes from the package sources that pip is configured with."))
    return [f"# {note}" for note in notes]
