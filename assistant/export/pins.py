"""Every installed package pinned: `requirements.txt`, `constraints.txt` and `pylock.toml`.

Torch's family, and nothing else, comes from torch's own index. pip has no index per package, and with
`--extra-index-url` any of the indexes may answer for any name. A `--find-links` page of one project offers that
project's files only; and versions with a label such as `+cu126` cannot be on PyPI.
"""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import load_catalog
from assistant.export.bundle import MARKER, Bundle, Unsuited
from assistant.i18n import _, say
from assistant.model.plan import of_torch_family
from assistant.model.visible import spelled

_INSTALLERS = ("pip", "uv")  # pip does not replace itself on Windows


def requirements_text(bundle: Bundle) -> str:
    """Write pins for `python -m pip install -r requirements.txt`."""
    return "\n".join([f"# {MARKER}", *_notes(bundle), *pages(bundle), *(pins(bundle) or bundle.plan.requirements), ""])


def constraints_text(bundle: Bundle) -> str:
    """Write pins that install nothing: `pip install -c constraints.txt NAME` keeps to these versions."""
    note = say("Keeps what is installed: python -m pip install -c constraints.txt NAME")
    return "\n".join([f"# {MARKER}", f"# {note}", *pins(bundle), ""])


def lock_text(bundle: Bundle) -> str:
    """Give the lock (PEP 751) as the installation was made from it; raise `Unsuited` where there was none."""
    if not bundle.lock:
        raise Unsuited(
            _("The addresses and hashes of this environment's packages are not known, so there is no pylock.toml."),
            hint=_("Install with `assistant install` or `assistant apply`, then export."),
        )
    return f"# {MARKER}\n{spelled(bundle.lock, long=True)}"


def pins(bundle: Bundle) -> list[str]:
    """List every installed package with its version."""
    return [f"{name}=={version}" for name, version in _packages(bundle)]


def pages(bundle: Bundle) -> list[str]:
    """List the pages of torch's own index, one for each package that comes from there."""
    index = bundle.plan.index_url
    wanted = [name for name, version in _packages(bundle) if "+" in version or of_torch_family(name)]
    return [f"--find-links {index.rstrip('/')}/{name}/" for name in wanted] if index else []


def asked(bundle: Bundle) -> dict[str, str]:
    """Give the packages that the plan asks for, and torch's whole family, with the versions that are installed."""
    wanted = {canonicalize_name(Requirement(line).name) for line in bundle.plan.requirements}
    return {name: version for name, version in _packages(bundle) if name in wanted or of_torch_family(name)}


def _packages(bundle: Bundle) -> list[tuple[str, str]]:
    return [item for item in sorted(bundle.environment.packages.items()) if item[0] not in _INSTALLERS]


def _notes(bundle: Bundle) -> list[str]:
    python = bundle.report.facts.get("python", bundle.plan.python)
    notes = [say("For Python {python}: python -m pip install -r requirements.txt", python=python)]
    if bundle.plan.index_url:
        notes.append(say("torch and its family come from the pages below, everything else from pip's own index."))
    else:
        notes.append(say("Everything, torch too, comes from the package sources that pip is configured with."))
        public = load_catalog().index_url(bundle.plan.variant)
        if public:
            notes.append(say("Where they lack this build of torch, this index has it: {url}", url=public))
    return [f"# {note}" for note in notes]
