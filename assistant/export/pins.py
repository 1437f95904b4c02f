"""Every installed package pinned: `requirements.txt`, `constraints.txt` and `pylock.toml`.

Torch's family, and nothing else, comes from torch's own index. pip has no index per package, and with
`--extra-index-url` any of the indexes may answer for any name (dependency confusion). A `--find-links` page of one
project offers that project's files only, and PyPI accepts no version with a label such as `+cu126` (PEP 440).
"""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.export.setup import MARKER, Setup, Unsuited
from assistant.host.pip_settings import for_pip
from assistant.i18n import _, say
from assistant.model.visible import spelled

_INSTALLERS = ("pip", "uv")  # left out: on Windows pip cannot replace itself while it runs


def requirements_text(setup: Setup) -> str:
    """Write pins for `python -m pip install -r requirements.txt`."""
    return for_pip("\n".join([f"# {MARKER}", *_notes(setup), *lines(setup), ""]))


def lines(setup: Setup) -> list[str]:
    """List what pip and uv are to install, and where torch comes from: every package, or what the plan asks for."""
    links = [f"--find-links {place}" for place in setup.plan.links if "://" in place]
    return [*pages(setup), *links, *(pins(setup) or setup.plan.requirements)]


def constraints_text(setup: Setup) -> str:
    """Write pins that install nothing: `pip install -c constraints.txt NAME` keeps to these versions."""
    note = say("Keeps what is installed: python -m pip install -c constraints.txt NAME")
    return for_pip("\n".join([f"# {MARKER}", f"# {note}", *pins(setup), ""]))


def lock_text(setup: Setup) -> str:
    """Return the lock (PEP 751) that the environment was installed from; raise `Unsuited` where there was none."""
    if not setup.lock:
        raise Unsuited(
            _("The addresses and hashes of this environment's packages are not known, so there is no pylock.toml."),
            hint=_("Install with `assistant install` or `assistant apply`, then export."),
        )
    return f"# {MARKER}\n{spelled(setup.lock, long=True)}"


def pins(setup: Setup) -> list[str]:
    """List every package with its version, where they are known."""
    return [f"{name}=={version}" for name, version in _packages(setup)]


def pages(setup: Setup) -> list[str]:
    """List the pages of torch's own index, one for each package that comes from there."""
    index = setup.plan.index_url
    wanted = [
        name for name, version in _packages(setup) if "+" in version or carried_by_torch_index(name, setup.plan.variant)
    ]
    return [f"--find-links {index.rstrip('/')}/{name}/" for name in wanted] if index else []


def asked(setup: Setup) -> dict[str, str]:
    """Return the known versions of the packages that the plan asks for, and of torch's whole family."""
    wanted = {canonicalize_name(Requirement(line).name) for line in setup.plan.requirements}
    return {name: version for name, version in _packages(setup) if name in wanted or carried_by_torch_index(name)}


def _packages(setup: Setup) -> list[tuple[str, str]]:
    return [item for item in sorted(setup.environment.packages.items()) if item[0] not in _INSTALLERS]


def _notes(setup: Setup) -> list[str]:
    python = setup.report.facts.get("python", setup.plan.python)
    notes = [say("For Python {python}: python -m pip install -r requirements.txt", python=python)]
    if setup.plan.index_url:
        notes.append(say("torch and its family come from the pages below, everything else from pip's own index."))
    else:
        notes.append(say("Everything, torch too, comes from the package sources that pip is configured with."))
        if public := load_catalog().index_url(setup.plan.variant, setup.plan.torch):
            notes.append(say("Where they lack this build of torch, this index has it: {url}", url=public))
    return [f"# {note}" for note in (*notes, *_indexes(setup))]


def _indexes(setup: Setup) -> list[str]:
    """Say which indexes a project adds: to name them in the file would let them answer for any name."""
    urls = ", ".join(setup.plan.indexes)
    if not urls:
        return []
    return [
        say(
            "Without these indexes in pip's settings, packages of the same names may come from elsewhere: {urls}",
            urls=urls,
        )
    ]
