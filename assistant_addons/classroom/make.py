"""Make a bundle: plan, fetch, write the locks, the start scripts and the page; what is there already stays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from assistant.api import (
    LANGUAGES,
    BadInput,
    Markup,
    Message,
    WorkFailed,
    _,
    html_language,
    in_language,
    joined,
    render,
    replace,
    say,
    style,
    tag,
    unwritable,
)
from assistant.api.steps import MARKER, Fetch, Package, Tools, file_name, plan_title
from assistant_addons.classroom.folder import (
    LOCKS,
    WHEELS,
    Bundle,
    File,
    Folder,
    Kind,
    lock_text,
    read_bundle,
    write_bundle,
)
from assistant_addons.classroom.kinds import Kinds, Report, Resolved, Wanted, kinds_of, own_packages, platform_of
from assistant_addons.classroom.starts import bring_starts

STARTS = {"windows": "start.bat", "linux": "sh start.sh", "macos": "sh start.sh"}
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 0.5rem 0.75rem 0.5rem 0; border-bottom: 1px solid #8888; text-align: left; vertical-align: top; }
code { overflow-wrap: anywhere; }
"""


def bundle_page(bundle: Bundle) -> str:
    """Write the page as HTML, in every language, English first; it loads nothing and runs nothing."""
    parts = []
    for code in LANGUAGES:
        with in_language(code):
            parts.append(tag("section", _body(bundle), lang=html_language()))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", "PyTorch"),
        style(_STYLE),
    )
    html = tag("html", head, tag("body", tag("main", *parts)), lang="en")
    return f"<!doctype html>\n<!-- {MARKER} -->\n{html}\n"


def _body(bundle: Bundle) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", plan_title(kind.plan)),
            tag("td", tag("a", kind.key, href=kind.lock)),
            tag("td", tag("code", STARTS[kind.machine.os or "linux"])),
        )
        for kind in bundle.kinds
        for name in kind.machines
    ]
    named = (say("Machine"), say("What it gets"), say("Lock"), say("Start it with"))
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in named)))
    size = say("{count} files, {size} MB", count=len(bundle.files), size=bundle.size // 10**6)
    parts = [
        tag("h1", say("Which machine gets what")),
        tag("p", say("Open this folder on the machine, and start the script beside its name; no network is needed.")),
        tag("p", size),
        tag("table", head, tag("tbody", "", *rows)),
    ]
    if bundle.without:
        items = (part for one in bundle.without for part in (tag("dt", one.machine), tag("dd", one.why)))
        parts += [tag("h2", say("Without a plan")), tag("dl", *items)]
    if lacking := lacking_pythons(bundle):
        parts += [tag("h2", say("Python that is not in this folder")), tag("ul", *(tag("li", one) for one in lacking))]
    return joined(parts)


def lacking_pythons(bundle: Bundle) -> list[Message]:
    """Say for which platforms the bundle lacks a Python that is needed there."""
    needed = dict.fromkeys((platform_of(kind.machine), kind.python) for kind in bundle.kinds)
    return [
        _("Machines of the platform {platform} need a Python {python} of their own.", platform=platform, python=python)
        for platform, python in needed
        if python not in bundle.pythons.get(platform, ())
    ]


PAGE = "index.html"


class Made(NamedTuple):
    """A finished bundle, the bytes that had to be fetched for it, and the machines for which the work failed."""

    bundle: Bundle
    fetched: int
    failed: tuple[str, ...]


def make(folder: Path, wanted: Sequence[Wanted], tools: Tools, report: Report) -> Made:
    """Let a folder be the bundle for some machines; one that was interrupted, or is of yesterday, is gone on with.

    Raises `NothingFits`, `Cancelled`, `BadInput` for a folder with other files, and `WorkFailed` with what was fetched
    kept.
    """
    before = _begun(folder)
    try:
        found = kinds_of(wanted, tools, report)
        if not found.kinds:
            raise WorkFailed(found.without[0].why, hint=_("Check the network and the index, and start again."))
        folder.mkdir(parents=True, exist_ok=True)
        write_bundle(folder, replace(before, made=""))
        held = Folder(folder, before, tools)
        bundle = _filled(held, found, report)
        held.keep_only(bundle.files)
        write_bundle(folder, bundle)
    except OSError as error:
        raise unwritable(folder, error) from error
    return Made(bundle, held.fetched, found.failed)


def _begun(folder: Path) -> Bundle:
    """Return the bundle that stands in a folder, an empty one for an empty folder; raise `BadInput` for another."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return Bundle()
    return read_bundle(folder, _("Name a new or empty folder."))


def _filled(held: Folder, found: Kinds, report: Report) -> Bundle:
    """Bring and write every file of a bundle."""
    own = own_packages(found.kinds, held.tools)
    resolutions = [*(kind.resolution for kind in found.kinds), *(one.resolution for one in own)]
    wheels = wheels_of(package for one in resolutions for package in one.packages)
    size = sum(one.size or 0 for one in wheels) // 10**6
    report(_("{count} packages of {size} MB are needed; those that are here are kept", count=len(wheels), size=size))
    logins = dict.fromkeys(kind.plan.index_url for kind in found.kinds if kind.plan.index_url)
    files = {Path(one.path).name: one for one in held.bring(wheels, index_urls=tuple(logins))}
    needed = {(platform_of(kind.machine), kind.plan.python) for kind in found.kinds}
    starts = bring_starts(held, own, needed, files, report)
    kinds: list[Kind] = []
    written: list[File] = []
    for key, one in _keyed(found.kinds).items():
        lock = lock_text(one.plan.python, one.resolution.packages, files)
        written.append(held.write(f"{LOCKS}/{key}/pylock.toml", lock.encode()))
        kinds.append(_kind(key, one, written[-1]))
    every = {one.path: one for one in (*files.values(), *written, *starts.files)}
    bundle = Bundle(
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        files=tuple(every[path] for path in sorted(every)),
        kinds=tuple(kinds),
        without=found.without,
        pythons=starts.pythons,
    )
    shown = held.write(PAGE, bundle_page(bundle).encode())
    return replace(bundle, files=(*bundle.files, shown))


def wheels_of(packages: Iterable[Package]) -> list[Fetch]:
    """Return every file once; raise `WorkFailed` where two have the same name and are not the same."""
    found: dict[str, Package] = {}
    for one in packages:
        name = file_name(one.url)
        if not name:
            raise BadInput(
                _("{url} does not name a file.", url=one.url), hint=_("The index is broken; choose another one.")
            )
        first = found.setdefault(name, one)
        if first.sha256 != one.sha256:
            raise WorkFailed(
                _("{one} and {other} are different files of the same name.", one=first.url, other=one.url),
                hint=_("Make a bundle for each of the machines that they are for, or name one index for both."),
            )
    return [
        Fetch(url=one.url, path=f"{WHEELS}/{name}", sha256=one.sha256, size=one.size) for name, one in found.items()
    ]


def _keyed(kinds: Sequence[Resolved]) -> dict[str, Resolved]:
    """Name each kind by what decides; a name that is given twice gets a number."""
    seen: dict[str, int] = {}
    keyed = {}
    for one in kinds:
        key = _key(one)
        seen[key] = seen.get(key, 0) + 1
        keyed[key if seen[key] == 1 else f"{key}-{seen[key]}"] = one
    return keyed


def _key(kind: Resolved) -> str:
    """Name a kind by what decides: windows-x86_64-cuda-cu130-torch2.15.0-py3.12."""
    machine, plan = kind.machine, kind.plan
    system = "wsl" if machine.wsl else machine.os or "linux"
    parts = (system, machine.arch or "", plan.backend.value, plan.variant, f"torch{plan.torch}", f"py{plan.python}")
    return re.sub(r"[^\w.]+", "-", "-".join(dict.fromkeys(filter(None, parts)))).lower()


def _kind(key: str, found: Resolved, lock: File) -> Kind:
    return Kind(
        key=key,
        title=render(plan_title(found.plan)),
        machines=found.names,
        plan=found.plan,
        lock=lock.path,
        python=found.plan.python,
        machine=found.machine,
        platform=platform_of(found.machine),
    )
