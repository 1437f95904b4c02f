"""What companions of torch want of the system and of one another, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog.companions import (
    Companion,
    Stretch,
    companion,
    cuda_major,
    for_other_cuda,
    load_companions,
    overlap,
)
from assistant.i18n import Message, Text, _
from assistant.model.plan import Backend


class Need(NamedTuple):
    """Something that must be on the system, by key; `help` is how to get it, "" where it depends on the system."""

    key: str
    text: Message
    help: Text = ""


class Added(NamedTuple):
    """What goes along with companions beside a torch: requirements, folders for the loader's path, warnings.

    `folders` lie below the environment's site-packages, and the system finds libraries in them only if it is told.
    """

    requires: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    warnings: tuple[Message, ...] = ()


class Overlap(NamedTuple):
    """Packages that write one folder, so that only the last one installed is whole."""

    key: str
    names: tuple[str, ...]
    text: Message


_NEEDS = {
    "ffmpeg": _("{name} needs the shared libraries of FFmpeg {what}."),
    "ffmpeg-program": _("{name} calls the program ffmpeg."),
    "msvc-runtime": _("{name} needs a current Visual C++ redistributable, which Windows does not include."),
    "nvcc": _("{name} compiles CUDA code when it is used: it needs nvcc of torch's CUDA and a C++ compiler."),
    "c-compiler": _("{name} compiles its kernels when they are first used: it needs gcc and Python's headers."),
    "libgl": _("{name} needs libGL and GLib, which servers and containers often lack."),
    "rocm": _("{name} needs ROCm {what} on the system; the libraries in torch's wheel are not enough."),
    "triton": _("{name} needs Triton, which it does not ask for itself."),
}
_VC_RUNTIME = _("Install the current Visual C++ redistributable for x64, then open a new terminal.")
_HELP = {
    ("ffmpeg", "linux"): _("Install it with the system's packages, as by: sudo apt install ffmpeg"),
    ("ffmpeg", "windows"): _("Install a build of FFmpeg that is called full-shared, and add its folder bin to PATH."),
    ("ffmpeg", "macos"): _("Install it, as by: brew install ffmpeg"),
    ("ffmpeg-program", "linux"): _("Install it with the system's packages, as by: sudo apt install ffmpeg"),
    ("ffmpeg-program", "macos"): _("Install it, as by: brew install ffmpeg"),
    ("msvc-runtime", "windows"): _VC_RUNTIME,
    ("c-compiler", "linux"): _("Install both, as by: sudo apt install gcc python3-dev"),
    ("libgl", "linux"): _("Install both, as by: sudo apt install libgl1 libglib2.0-0"),
    ("triton", "windows"): _("Ask for triton-windows too."),
}
# What matters on some backends alone.
_BACKENDS = {"nvcc": {Backend.CUDA}, "rocm": {Backend.ROCM}, "c-compiler": {Backend.CUDA, Backend.ROCM, Backend.XPU}}
_VARIABLES = {"linux": "LD_LIBRARY_PATH", "windows": "PATH"}


def needs(name: str, os: str, backend: Backend) -> tuple[Need, ...]:
    """Return what a distribution wants of a system ("linux", "windows", "macos"); nothing for one that is unknown."""
    wanted = {
        (need.key, need.what): Need(
            need.key, _NEEDS[need.key].format(name=row.name, what=need.what), _help(need.key, os)
        )
        for row in _with_those_below(name)
        for need in row.needs
        if os in (need.systems or (os,)) and backend in _BACKENDS.get(need.key, {backend})
    }
    return tuple(wanted.values())


def _help(key: str, os: str) -> Text:
    return _HELP.get((key, os), "")


def beside(requirements: Iterable[Requirement], torch: str, variant: str, platform: str) -> Added:
    """Return what has to go along with companions so that they compute on a build of torch, or why they will not.

    `variant` is such as "cu130", `platform` such as "linux_x86_64". Distributions that the tables do not know, and
    those whose wheels come from torch's own index, add nothing.
    """
    major = cuda_major(torch, variant, platform)
    parts = [
        part
        for need in requirements
        for row in _with_those_below(need.name)
        for part in (_of_extras(row, need, torch, major), _of_wheels(row, need, torch, variant, platform))
    ]
    return Added(
        requires=tuple(dict.fromkeys(line for part in parts for line in part.requires)),
        folders=tuple(dict.fromkeys(folder for part in parts for folder in part.folders)),
        warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
    )


def other_cuda(need: Requirement, torch: str, variant: str, platform: str) -> frozenset[int]:
    """Return the CUDA majors for which all wheels that may be taken are built, where torch computes with another.

    Empty where no versions are known that would serve torch's own: then only a warning can tell.
    """
    row, major = companion(need.name), cuda_major(torch, variant, platform)
    if row is None or not any(major in one.cuda for one in row.stretches):
        return frozenset()
    open_, wrong = _open(row, need, torch), for_other_cuda(row, torch, variant, platform)
    return frozenset(cuda for one in open_ for cuda in one.cuda) if all(one in wrong for one in open_) else frozenset()


def _with_those_below(name: str) -> list[Companion]:
    """Return a companion and those that it computes with."""
    row = companion(name)
    return [one for one in (row, *map(companion, row.through)) if one] if row else []


@cache
def brought_along() -> frozenset[str]:
    """Name the packages that `beside` may add, so that they can give way where no source has them."""
    ways = (way for row in load_companions().companions.rows for way in row.beside_cuda.values())
    return frozenset(canonicalize_name(Requirement(line).name) for way in ways for line in way.requires)


def clashes(versions: Mapping[str, str]) -> tuple[Overlap, ...]:
    """Return the packages (versions by name, "" for one not known yet) that must not stand in one environment."""
    text = _("{names} share one folder and overwrite one another; keep only one of them.")
    found = {key: sharing(key, versions) for key in _by_clash()}
    return tuple(
        Overlap(key, names, text.format(names=", ".join(names))) for key, names in found.items() if len(names) > 1
    )


def sharing(key: str, versions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the packages of one clash that are there, by its key; raise `ValueError` for a key that is none."""
    rows = _by_clash()
    if key not in rows:
        raise ValueError(f"there is no clash {key!r}; there are {', '.join(rows)}")
    known: dict[str, str] = {canonicalize_name(name): version for name, version in versions.items()}
    return tuple(need.name for need in rows[key] if _is_there(need, known))


@cache
def _by_clash() -> dict[str, tuple[Requirement, ...]]:
    return {row.key: tuple(map(Requirement, row.names)) for row in load_companions().clashes.rows}


def _is_there(need: Requirement, versions: Mapping[str, str]) -> bool:
    version = versions.get(need.name)
    return version is not None and (
        not need.specifier or (version != "" and need.specifier.contains(version, prereleases=True))
    )


def _of_extras(row: Companion, need: Requirement, torch: str, major: int | None) -> Added:
    """Warn of an extra that brings the libraries of another CUDA, which write the files of torch's."""
    text = _("{name}[{extra}] brings CUDA {other} libraries, which overwrite those of torch {torch} for CUDA {major}.")
    wrong = [extra for extra in sorted(need.extras) if major and major not in row.extras.get(extra, (major,))]
    return Added(
        warnings=tuple(
            text.format(name=row.name, extra=extra, other=_cudas(row.extras[extra]), torch=torch, major=major)
            for extra in wrong
        )
    )


def _of_wheels(row: Companion, need: Requirement, torch: str, variant: str, platform: str) -> Added:
    """Return what helps where all wheels on PyPI that may be taken are for another CUDA, else warn of them."""
    other = for_other_cuda(row, torch, variant, platform)
    if not other:
        return Added()
    major, os = cuda_major(torch, variant, platform), platform.partition("_")[0]
    open_ = _open(row, need, torch)
    wrong = [one for one in open_ if one in other]
    if not wrong or len(wrong) < len(open_):
        return Added()
    said = {"name": row.name, "other": _cudas(max(wrong, key=lambda one: one.least).cuda), "major": major}
    way = row.beside_cuda.get(str(major))
    if way is None or os not in way.folders:
        text = _("PyPI's wheel of {name} is for CUDA {other} and this torch for CUDA {major}: it may not work on it.")
        return Added(warnings=(text.format(**said),))
    text = _(
        "{name} is built for CUDA {other} and this torch for CUDA {major}: it needs {packages} too, and the folder "
        "{folder} of the environment's packages in {variable} before a program uses the GPU with it."
    )
    where = {"packages": ", ".join(way.requires), "folder": way.folders[os], "variable": _VARIABLES[os]}
    return Added(way.requires, (way.folders[os],), (text.format(**said, **where),))


def _open(row: Companion, need: Requirement, torch: str) -> list[Stretch]:
    """Return the versions of a companion that a requirement of it, or of what computes with it, may take."""
    wanted = str(need.specifier) if canonicalize_name(need.name) == row.name else ""
    return [one for one in row.stretches if one.goes_with(torch) and overlap(one.versions, wanted)]


def _cudas(majors: Iterable[int]) -> str:
    return "/".join(map(str, majors))
