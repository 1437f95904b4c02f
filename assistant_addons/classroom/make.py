"""Make a bundle: plan, fetch, write the locks, the page and what starts the assistant; what is there already stays."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

from assistant.api import BadInput, Message, WorkFailed, _, render, replace, say
from assistant.api.steps import MARKER, Fetch, Package, Patience, Tools, file_name, find_uv, plan_title
from assistant.api.system import NAME, __version__, running, unwritable_error
from assistant.api.texts import LANGUAGES, Markup, html_language, in_language, joined, style, tag
from assistant_addons.classroom.folder import (
    LOCKS,
    OWN,
    PYTHONS,
    UVS,
    WHEELS,
    Bundle,
    File,
    Folder,
    Kind,
    lock_text,
    read_bundle,
    write_bundle,
)
from assistant_addons.classroom.kinds import Kinds, Own, Report, Resolved, Wanted, kinds_of, own_packages, platform_of

STARTS = {"windows": "start.bat", "linux": "sh start.sh", "macos": "sh start.sh"}
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 0.5rem 0.75rem 0.5rem 0; border-bottom: 1px solid #8888; text-align: left; vertical-align: top; }
code { overflow-wrap: anywhere; }
"""


def bundle_page(bundle: Bundle) -> str:
    """Return the bundle's page as HTML, in every language, English first; it loads nothing and runs nothing."""
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
    """Return the page's content in the current language: what each machine gets, and what the bundle lacks."""
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
    """Return a sentence for each platform and Python that a kind needs and the bundle does not carry."""
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
    """Make a folder the bundle for some machines; one that is there, or was interrupted, is brought up to date.

    Files of the earlier bundle that are not needed any more are deleted. `report` gets the progress. Raises
    `NothingFits` if no machine has a plan, `Cancelled`, `BadInput` for a folder with other files, and `WorkFailed`;
    what was fetched stays.
    """
    before = _begun(folder)
    try:
        found = kinds_of(wanted, tools, report)
        if not found.kinds:
            why = next(one.why for one in found.without if one.machine in found.failed)
            raise WorkFailed(why, hint=_("Check the network and the index, and start again."))
        folder.mkdir(parents=True, exist_ok=True)
        write_bundle(folder, replace(before, made=""))
        held = Folder(folder, before, tools)
        bundle = _filled(held, found, report)
        held.keep_only(bundle.files)
        write_bundle(folder, bundle)
    except OSError as error:
        raise unwritable_error(folder, error) from error
    return Made(bundle, held.fetched, found.failed)


def _begun(folder: Path) -> Bundle:
    """Return the bundle in a folder, an empty one for an empty or missing folder; raise `BadInput` for other files."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return Bundle()
    return read_bundle(folder, _("Name a new or empty folder."))


def _filled(held: Folder, found: Kinds, report: Report) -> Bundle:
    """Bring and write all files of a bundle except `bundle.json`, and return the bundle; `report` gets the progress."""
    own = own_packages(found.kinds, held.tools)
    resolutions = [*(kind.resolution for kind in found.kinds), *(one.resolution for one in own)]
    wheels = wheels_of(package for one in resolutions for package in one.packages)
    size = sum(one.size or 0 for one in wheels) // 10**6
    report(_("{count} packages of {size} MB are needed; those that are here are kept", count=len(wheels), size=size))
    logins = dict.fromkeys(kind.plan.index_url for kind in found.kinds if kind.plan.index_url)
    files = {Path(one.path).name: one for one in held.bring(wheels, index_urls=tuple(logins))}
    needed = {(platform_of(kind.machine), kind.plan.python) for kind in found.kinds}
    starts, pythons = bring_starts(held, own, needed, files, report)
    kinds: list[Kind] = []
    written: list[File] = []
    for key, one in _keyed(found.kinds).items():
        lock = lock_text(one.plan.python, one.resolution.packages, files)
        written.append(held.write(f"{LOCKS}/{key}/pylock.toml", lock.encode()))
        kinds.append(_kind(key, one, written[-1]))
    every = {one.path: one for one in (*files.values(), *written, *starts)}
    bundle = Bundle(
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        files=tuple(every[path] for path in sorted(every)),
        kinds=tuple(kinds),
        without=found.without,
        pythons=pythons,
    )
    shown = held.write(PAGE, bundle_page(bundle).encode())
    return replace(bundle, files=(*bundle.files, shown))


def wheels_of(packages: Iterable[Package]) -> list[Fetch]:
    """Return what to fetch for some packages, each file once.

    Raises `WorkFailed` if two different files have the same name, and `BadInput` for a URL that names no file.
    """
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
    """Return kinds by their keys (`_key`); of several with the same key, the second gets "-2", and so on."""
    seen: dict[str, int] = {}
    keyed = {}
    for one in kinds:
        key = _key(one)
        seen[key] = seen.get(key, 0) + 1
        keyed[key if seen[key] == 1 else f"{key}-{seen[key]}"] = one
    return keyed


def _key(kind: Resolved) -> str:
    """Return a kind's key, made of system and build: windows-x86_64-cuda-cu130-torch2.15.0-py3.12."""
    machine, plan = kind.machine, kind.plan
    system = "wsl" if machine.wsl else machine.os or "linux"
    parts = (system, machine.arch or "", plan.backend.value, plan.variant, f"torch{plan.torch}", f"py{plan.python}")
    return re.sub(r"[^\w.]+", "-", "-".join(dict.fromkeys(filter(None, parts)))).lower()


def _kind(key: str, found: Resolved, lock: File) -> Kind:
    """Return a kind as `bundle.json` lists it."""
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


ROOT = Path(__file__).parents[2]  # where the assistant's packages lie, in a checkout as in an environment
PACKAGES = ("assistant", "assistant_addons")
_WHEEL = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_KEPT = ("METADATA", "entry_points.txt")


def own_wheel() -> tuple[str, bytes]:
    """Return the file name and the content of a wheel of this assistant, however it was installed.

    It is packed from the files that run, so that neither a network nor a build is needed.
    """
    module = NAME.replace("-", "_")
    stem = f"{module}-{__version__}"
    sources = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*")) if _belongs(path)]
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in (*sources, ROOT / f"{module}.py")}
    info, own = f"{stem}.dist-info", distribution(NAME)
    files |= {f"{info}/{name}": (own.read_text(name) or "").encode() for name in _KEPT}
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    rows = [f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files.items()]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        for path, content in files.items():  # without a date, so that the same assistant gives the same wheel
            wheel.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
    return f"{stem}-py3-none-any.whl", packed.getvalue()


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _digest(content: bytes) -> str:
    """Return a SHA-256 as a wheel's RECORD writes it (PEP 376, PEP 427)."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


_ARCH = {"arm64": "aarch64"}  # as uv names it


def archives(wanted: Iterable[tuple[str, str]], tools: Tools) -> dict[tuple[str, str], Fetch]:
    """Return the newest archive of Python for each pair of a platform and a version ("3.12").

    What uv has none for is left out; {} if the sources are offline or uv fails. An archive lies as uv looks for it
    below `UV_PYTHON_INSTALL_MIRROR`, and uv knows its hash by itself:
    https://docs.astral.sh/uv/reference/environment/#uv_python_install_mirror
    """
    pairs = set(wanted)
    if not pairs or tools.sources.offline:
        return {}
    which = ("--all-platforms", "--all-arches", "--only-downloads")
    words = [find_uv(), "python", "list", *which, "--output-format", "json", "--no-config"]
    with running(words, cancel=tools.cancel) as child:
        listed = list(child)
    if child.returncode:
        return {}
    rows = [row for line in listed if line.startswith("[") for row in json.loads(line)]
    found: dict[tuple[str, str], Fetch] = {}
    for platform, python in sorted(pairs):
        system, _dash, arch = platform.partition("-")
        fits = (system, _ARCH.get(arch, arch), "gnu" if system == "linux" else "none", "cpython", "default")
        row = next((row for row in rows if _platform(row) == fits and row["version"].startswith(f"{python}.")), None)
        if row:
            found[platform, python] = Fetch(url=row["url"], path=f"{PYTHONS}/{platform}/{_place(row['url'])}")
    return found


def _platform(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("os", "arch", "libc", "implementation", "variant"))


def _place(url: str) -> str:
    """Return the last two parts of an address: the release and the file."""
    return f"{url.split('/')[-2]}/{file_name(url)}"


SCRIPTS = ("start.sh", "start.bat", "start.ps1")
_IN_A_HURRY = Patience(tries=2)  # a bundle without a Python is one all the same
# What the scripts say before the assistant can; uv's own words stand above.
SAYS = {
    "machine": _(
        "This bundle holds nothing for the system or the processor of this machine; its index.html says for which "
        "machines it is."
    ),
    "folder": _(
        "The assistant's own folder cannot be written. Set XDG_DATA_HOME (on Windows LOCALAPPDATA) to a folder of "
        "yours with 2 GB free, then start again."
    ),
    "python": _(
        "There is no Python for the assistant: the bundle brings none, and this machine has none of the versions that "
        "it is for. Install one of those that its folder `assistant` names, then start again."
    ),
    "failed": _(
        "The assistant could not be made ready; uv's own words are above. Copy the bundle again, or free some space, "
        "then start again."
    ),
}


def bring_starts(
    held: Folder, own: Sequence[Own], needed: Iterable[tuple[str, str]], files: Mapping[str, File], report: Report
) -> tuple[list[File], dict[str, tuple[str, ...]]]:
    """Write or bring the files that start the assistant; return them, and the Pythons that were brought by platform.

    `needed` are the platforms and Pythons of the plans, `files` the wheels that are there, by name. A Python that
    cannot be fetched is reported, and is no failure. Raises `OSError` and `Cancelled`.
    """
    found = [held.write(script, _script(script)) for script in SCRIPTS]
    found += [held.write(f"{OWN}/says/{name}.txt", _said(name).encode()) for name in SAYS]
    name, content = own_wheel()
    wheel = held.write(f"{WHEELS}/{name}", content)
    found.append(wheel)
    for one in own:
        name, lines = _own_requirements(one, files, wheel)
        found += [held.write(f"{OWN}/{name}.txt", lines), _write_uv(held, one)]
    pythons: dict[str, tuple[str, ...]] = {}
    wanted = sorted({*needed, *((one.platform, one.python) for one in own)})
    known = archives(wanted, held.tools)
    for platform, python in wanted:
        try:
            found += held.bring([known[platform, python]], patience=_IN_A_HURRY)
            pythons[platform] = (*pythons.get(platform, ()), python)
        except (KeyError, WorkFailed, BadInput):
            text = _("Python {python} for {platform} could not be fetched: those machines need one of their own.")
            report(text.format(python=python, platform=platform))
    return found, pythons


_SCRIPTS = Path(__file__).with_name("start")


def _script(name: str) -> bytes:
    """Return a start script; cmd misses labels in a file whose lines do not end as Windows has them."""
    content = _SCRIPTS.joinpath(name).read_bytes()
    return content if name.endswith(".sh") else content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _said(name: str) -> str:
    """Return a sentence of `SAYS` in every language, a line each, English first."""
    lines = []
    for code in LANGUAGES:
        with in_language(code):
            lines.append(render(SAYS[name]))
    return "\n".join([*lines, ""])


def _own_requirements(own: Own, files: Mapping[str, File], wheel: File) -> tuple[str, bytes]:
    """Return the name and the content of the list that the start scripts install for the assistant itself.

    The list is one of requirements with hashes. Its name is made of the platform, the Python and a hash of the content.
    """
    lines = [
        f"{one.name}=={one.version} --hash=sha256:{files[file_name(one.url)].sha256}" for one in own.resolution.packages
    ]
    name, version = Path(wheel.path).name.split("-")[:2]
    lines.append(f"{name}=={version} --hash=sha256:{wheel.sha256}")
    content = "\n".join([*lines, ""]).encode()
    return f"{own.platform}-{own.python}-{hashlib.sha256(content).hexdigest()[:12]}", content


def _write_uv(held: Folder, own: Own) -> File:
    """Write the program uv, out of its wheel in the bundle, for a platform's start script, and return its file."""
    package = next(one for one in own.resolution.packages if one.name == "uv")
    program = "uv.exe" if own.platform.startswith("windows") else "uv"
    with zipfile.ZipFile(held.path / WHEELS / file_name(package.url)) as wheel:
        inside = next(name for name in wheel.namelist() if name.endswith(f".data/scripts/{program}"))
        return held.write(f"{UVS}/{own.platform}/{program}", wheel.read(inside), program=True)
