"""A setup package for PCs that are not here: one zip per kind of PC, and a page that shows which PC gets which.

It is made from a machine and a plan alone. `install.sh` or `install.ps1` makes the environment on the PC itself, and
ends by computing on the device.
"""

from __future__ import annotations

import io
import re
import shlex
import zipfile
from collections.abc import Callable, Mapping, Sequence

from assistant.export.formats import FORMATS
from assistant.export.pins import lines
from assistant.export.report import escaped
from assistant.export.setup import MARKER, Setup, Unsuited, clean
from assistant.export.templates import filled
from assistant.i18n import LANGUAGES, Message, Text, _, in_language, render, say, sentences
from assistant.markup import Markup, joined, tag
from assistant.model.plan import Backend
from assistant.model.record import Record, replace
from assistant.model.shell import powershell_quoted
from assistant.model.visible import visible
from assistant.privacy import redact
from assistant.views import plan_title

PAGE = "index.html"
FOLDER = "torch-env"  # of the environment, beside the script, unless the user names another
_FORMATS = ("pylock.toml", "pyproject.toml", "environment.yml", "Dockerfile", "device.py", "verify.py")
# As pip does; uv itself would take all that torch's index holds from there, such as an old NumPy.
_STRATEGY = ("--index-strategy", "unsafe-best-match")
_DATE = (1980, 1, 1, 0, 0, 0)  # the same content gives the same zip; earlier dates no zip can hold


class Kit(Record, frozen=True):
    """One kind of PC: its package's name, the PCs that it is for, and what it is made from.

    `unlocked` says why it has no lock, "" where it has one.
    """

    name: str
    pcs: tuple[Text, ...]
    setup: Setup
    unlocked: Text = ""

    @property
    def windows(self) -> bool:
        """Whether its script is one of PowerShell."""
        return self.setup.machine.os == "windows"

    @property
    def start(self) -> str:
        """The command that starts its script; a script from a downloaded zip would not run in PowerShell otherwise."""
        return "powershell -ExecutionPolicy Bypass -File install.ps1" if self.windows else "bash install.sh"


class Without(Record, frozen=True):
    """A PC that gets no package, and why."""

    pc: Text
    why: Text


def kit_name(setup: Setup) -> str:
    """Name a package by what decides: windows-cuda-cu130-torch2.15.0-py3.12."""
    machine, plan = setup.machine, setup.plan
    system = "wsl" if machine.wsl else machine.os or "linux"
    parts = (system, machine.arch or "", plan.backend.value, plan.variant, f"torch{plan.torch}", f"py{plan.python}")
    return re.sub(r"[^\w.]+", "-", "-".join(dict.fromkeys(filter(None, parts)))).lower()


def commands(setup: Setup) -> tuple[tuple[str, ...], ...]:
    """List what an installation runs on such a PC: make the environment, install by name, compute on the device."""
    python = f"{FOLDER}/Scripts/python.exe" if setup.machine.os == "windows" else f"{FOLDER}/bin/python"
    wanted = [word for line in lines(setup) for word in (line.split(" ", 1) if line.startswith("-") else [line])]
    wanted = [*_STRATEGY, *wanted] if "--extra-index-url" in wanted else wanted
    return (
        ("uv", "venv", "--seed", "--python", setup.plan.python, FOLDER),
        ("uv", "pip", "install", "--python", python, *wanted),
        (python, "verify.py"),
    )


def kit_files(kit: Kit) -> dict[str, str]:
    """Return the texts of a package by path; the script speaks the language in force, the README each of ours."""
    kit = replace(kit, setup=clean(kit.setup), unlocked=redact(kit.unlocked))  # a reason may name an address
    files = {"README.md": _readme(kit)}
    if kit.windows:
        files["install.ps1"] = _script(kit, "install.ps1", powershell_quoted)
    else:
        files["install.sh"] = _script(kit, "install.sh", shlex.quote)
    files["requirements.txt"] = _requirements(kit.setup)
    for name in ("env.ps1" if kit.windows else ".env", *_FORMATS):
        try:
            files |= FORMATS[name].files(kit.setup)
        except Unsuited:
            continue
    return {path: visible(text) for path, text in files.items()}


def kit_zip(kit: Kit) -> bytes:
    """Return a package as a zip."""
    return zipped({path: _encoded(path, text) for path, text in kit_files(kit).items()})


def kit_bundle(kits: Sequence[Kit], without: Sequence[Without] = ()) -> dict[str, bytes]:
    """Return the zip of each package by name, and the page that shows which PC gets which."""
    return {PAGE: page(lambda: _which(kits, without)).encode(), **{f"{kit.name}.zip": kit_zip(kit) for kit in kits}}


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Put files into a zip, uncompressed: `MARKER` of the first one then stands at its beginning, too."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, _DATE)
            entry.external_attr = (0o755 if path.endswith(".sh") else 0o644) << 16
            archive.writestr(entry, content)
    return packed.getvalue()


def _encoded(path: str, text: str) -> bytes:
    """Encode a file; Windows PowerShell takes one without a byte order mark for text of the country's code page."""
    # https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_character_encoding
    return text.replace("\n", "\r\n").encode("utf-8-sig") if path.endswith(".ps1") else text.encode()


def _requirements(setup: Setup) -> str:
    """Write the lock as pip and uv read it alike: every package with its hash. Without one, what the plan asks for."""
    text = FORMATS["requirements.txt"].files(setup)["requirements.txt"]
    if not is_locked(setup):
        return text
    known = {f"{name}=={version}": setup.hashes.get(name) for name, version in setup.versions.items()}
    rows = (f"{line} --hash=sha256:{known[line]}" if known.get(line) else line for line in text.splitlines())
    return "\n".join([*rows, ""])


def is_locked(setup: Setup) -> bool:
    """Whether every package is known with its hash."""
    return bool(setup.versions) and set(setup.versions) <= {name for name, digest in setup.hashes.items() if digest}


def _script(kit: Kit, name: str, quoted: Callable[[str], str]) -> str:
    return filled(
        name,
        {"quoted": quoted},
        title=", ".join(map(render, kit.pcs)).replace("\n", " "),
        python=kit.setup.plan.python,
        folder=FOLDER,
        options="--no-deps --require-hashes" if is_locked(kit.setup) else "",
        strategy="" if is_locked(kit.setup) else " ".join(_STRATEGY),
        what=render(plan_title(kit.setup.plan)),
    )


def _readme(kit: Kit) -> str:
    """Write the README in every language, English first."""
    parts = []
    for code in LANGUAGES:
        with in_language(code):
            parts.append(
                filled(
                    "kit.md",
                    {"text": escaped},
                    pcs=kit.pcs,
                    what=render(plan_title(kit.setup.plan)),
                    kit=kit,
                    folder=FOLDER,
                    lock=render(_about_lock(kit)),
                    gpu=kit.setup.plan.backend is not Backend.CPU,
                    settings=kit.setup.plan.env,
                    warnings=[render(warning) for warning in kit.setup.plan.warnings],
                )
            )
    return f"<!-- {MARKER} -->\n" + "\n".join(parts)


def _about_lock(kit: Kit) -> Message:
    """Say how far the packages are settled."""
    count = len(kit.setup.versions)
    if is_locked(kit.setup):
        return _(
            "`requirements.txt` is a lock: {count} packages, each with its version and the hash of its file, "
            "so that all these PCs get the same.",
            count=count,
        )
    if count:
        return _(
            "`requirements.txt` names {count} packages with their versions. "
            "It is not a full lock: not every index gives the hashes of its files.",
            count=count,
        )
    text = _(
        "`requirements.txt` is not a lock: torch is pinned; "
        "the versions of the other packages are chosen when the script runs."
    )
    return sentences((text, kit.unlocked))


_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 0.5rem 0.75rem 0.5rem 0; border-bottom: 1px solid #8888; text-align: left; vertical-align: top; }
code { overflow-wrap: anywhere; }
"""


def page(body: Callable[[], Markup]) -> str:
    """Write a page whose body is drawn in every language, English first; it loads nothing and runs nothing."""
    parts = []
    for code in LANGUAGES:
        with in_language(code):
            parts.append(tag("section", body(), lang=code.replace("_", "-")))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", "PyTorch"),
        tag("style", Markup(_STYLE)),
    )
    html = tag("html", head, tag("body", tag("main", *parts)), lang="en")
    return f"<!doctype html>\n<!-- {MARKER} -->\n{html}\n"


def _which(kits: Sequence[Kit], without: Sequence[Without]) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", pc, scope="row"),
            tag("td", plan_title(kit.setup.plan)),
            tag("td", tag("a", f"{kit.name}.zip", href=f"{kit.name}.zip")),
            tag("td", tag("code", kit.start)),
        )
        for kit in kits
        for pc in kit.pcs
    ]
    named = (say("PC"), say("What it gets"), say("Setup package"), say("Start it with"))
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in named)))
    parts = [
        tag("h1", say("Which PC gets which package")),
        tag("p", say("Unpack a package on its PC, open a terminal in that folder, and type the command beside it.")),
        tag("table", head, tag("tbody", "", *rows)),
    ]
    if without:
        items = (part for one in without for part in (tag("dt", one.pc), tag("dd", one.why)))
        parts += [tag("h2", say("Without a package")), tag("dl", *items)]
    return joined(parts)
