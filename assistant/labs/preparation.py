"""`assistant labs prepare`: makes the folder that all learners of a machine share.

Which wheels the labs need stands in no list: each lab is played here once, and what its environments then hold is
downloaded.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from packaging.utils import parse_wheel_filename

from assistant.host.files import read_plain, write_whole
from assistant.i18n import Text, _, verbatim
from assistant.install import interpreter
from assistant.labs.definition import WAYS, Definition, lab_at, labs
from assistant.labs.play import Play
from assistant.labs.scene import Outcome, install_torch, package_sources, run_here
from assistant.labs.shared import CACHE, INDEX, SHORT, STAMP, TORCH, UNPACKED, WHEELS, Shared, short_name
from assistant.model.errors import AssistantError, BadInput, WorkFailed, unwritable

WHEEL_BYTES = 4 << 30
LIMIT_SECONDS = 1800.0  # of one step; chosen: large wheels over a slow line
_CPYTHON = re.compile(r"cp3(\d+)$")


class Packages(NamedTuple):
    """What an environment holds, as pins; `python` is its version, such as "3.11"."""

    pins: tuple[str, ...]
    python: str


def prepare(folder: Path, keys: Sequence[str] = (), tell: Callable[[Text], None] = lambda _text: None) -> Shared:
    """Make the folder for these labs (all if none is named), read-only for all but its owner, and return it.

    Raises `BadInput` for an unknown lab or a folder that holds something, `WorkFailed` with the last words of the step
    that failed.
    """
    wanted = [lab_at(key) for key in keys] or list(labs().values())
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(_("{folder} holds something already.", folder=folder), hint=_("Name a new or empty folder."))
    made = Shared(folder)
    try:
        (folder / WHEELS).mkdir(parents=True)
        tell(_("Making the environment with torch."))
        with TemporaryDirectory() as notes:
            install_torch(Path(notes), folder / TORCH)
        held: set[Packages] = set()
        for lab in wanted:
            try:
                held.update(_played(lab, made.torch, tell))
            except AssistantError as error:  # it cannot be played here
                tell(error.message)
        tell(_("Downloading the wheels."))
        _download(folder / WHEELS, sorted(held))
        _write_index(folder)
        _fill_cache(made)
        _name_shortly(folder)
        write_whole(folder / STAMP, _stamp(folder))
        _close(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    return made


def _played(lab: Definition, torch: str, tell: Callable[[Text], None]) -> Iterator[Packages]:
    """Play a lab; yield what its environments hold when it is broken, and after each of its right ways."""
    tell(_("Playing the lab {name}.", name=lab.key))
    with TemporaryDirectory() as place:
        play = Play(lab, Path(place, "lab"), torch=torch, sources=package_sources())
        play.start()
        yield from _held(Path(place))
        if not (lab.folder / WAYS).exists():
            tell(
                _(
                    "The ways of the lab {name} are not at hand: what only they install will come from the network.",
                    name=lab.key,
                )
            )
            return
        for way in lab.ways.right:
            play.start()
            for line in lab.filled_way(way).lines:
                play.scene.do(line)
            yield from _held(Path(place))


def _held(folder: Path) -> Iterator[Packages]:
    """Yield what the environments below a folder hold."""
    for settings in folder.rglob("pyvenv.cfg"):
        python = str(interpreter(settings.parent))
        pins = [line for line in _uv("pip", "freeze", "--python", python).text.splitlines() if "==" in line]
        version = _do(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").last
        yield Packages(tuple(pins), version)


def _download(wheels: Path, wanted: Sequence[Packages]) -> None:
    """Let pip, as this user has configured it, download what the labs install; what a lab makes itself is nowhere."""
    with TemporaryDirectory() as place:
        _uv("venv", "--seed", place)
        pip = [str(interpreter(Path(place))), "-m", "pip", "--disable-pip-version-check"]
        known: set[tuple[str, str]] = set()
        for pins, python in wanted:
            chosen = ["--python-version", python, "--only-binary", ":all:", "--no-deps", "--dest", str(wheels)]
            new = [pin for pin in pins if (pin, python) not in known]
            known.update((pin, python) for pin in new)
            if new and _run(*pip, "download", *chosen, *new).status:
                for pin in new:
                    _run(*pip, "download", *chosen, pin)


def _write_index(folder: Path) -> None:
    """Write pages that make the folder of wheels an index (PEP 503): pip and uv need no server for it."""
    links: dict[str, list[str]] = {}
    for wheel in sorted((folder / WHEELS).glob("*.whl")):
        digest = hashlib.sha256(read_plain(wheel, WHEEL_BYTES)).hexdigest()
        place = f"../../{WHEELS}/{wheel.name}#sha256={digest}"
        links.setdefault(parse_wheel_filename(wheel.name)[0], []).append(f'<a href="{place}">{wheel.name}</a><br>\n')
    for name, lines in links.items():
        (folder / INDEX / name).mkdir(parents=True)
        write_whole(folder / INDEX / name / "index.html", f"<!DOCTYPE html>\n{''.join(lines)}")


def _fill_cache(made: Shared) -> None:
    """Let uv unpack each wheel into the cache from which it will serve the learners."""
    variables = {"UV_CACHE_DIR": str(made.folder / CACHE), "UV_INDEX": made.index}
    for wheel in sorted((made.folder / WHEELS).glob("*.whl")):
        name, version, _build, tags = parse_wheel_filename(wheel.name)
        python = next((match[1] for tag in tags if (match := _CPYTHON.match(tag.interpreter))), "")
        chosen = ["--python-version", f"3.{python}"] if python else []
        with TemporaryDirectory() as place:
            _uv("pip", "install", "--no-deps", "--target", place, *chosen, f"{name}=={version}", **variables)


def _name_shortly(folder: Path) -> None:
    """Give each folder of the unpacked wheels a second, short name."""
    (folder / SHORT).mkdir()
    cache = folder / CACHE
    for unpacked in cache.glob(f"{UNPACKED}*"):
        for place, _folders, _files in os.walk(unpacked):
            inside = Path(place).relative_to(cache)
            (folder / SHORT / short_name(inside)).symlink_to(Path("..", CACHE, inside))


def _close(folder: Path) -> None:
    """Take the right to write from all files that learners' environments lead to, and from others than the owner.

    uv copies the file RECORD with its rights and then adds to the copy: the owner keeps the right to write it.
    """
    folder.chmod(0o755)
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            if not path.is_symlink():
                runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                is_kept = path.is_dir() or path.name == "RECORD" or (CACHE in path.parts and UNPACKED not in str(path))
                path.chmod((0o555 if runs else 0o444) | (stat.S_IWUSR if is_kept else 0))


def _stamp(folder: Path) -> str:
    """Name what the folder holds: another preparation gets another name, and so do learners' caches of it."""
    names = sorted(path.name for path in (folder / CACHE).glob(f"{UNPACKED}*/*"))
    return hashlib.sha256(" ".join([str(folder), *names]).encode()).hexdigest()[:16]


def _uv(*arguments: str, **variables: str) -> Outcome:
    return _do(sys.executable, "-m", "uv", *arguments, **variables)


def _do(*argv: str, **variables: str) -> Outcome:
    done = _run(*argv, **variables)
    if done.status:
        raise WorkFailed(verbatim(done.last), hint=_("Fix that, remove what is in the folder, and try again."))
    return done


def _run(*argv: str, **variables: str) -> Outcome:
    return run_here(list(argv), {**package_sources(), **variables}, Path.cwd(), LIMIT_SECONDS)
