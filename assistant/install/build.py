"""Builds the wheel of one source archive, after the user agreed to it by name: the only place that runs such code."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from assistant.catalog.companions import BuildNeeds, build_needs
from assistant.host.download import Fetch, download, file_name
from assistant.host.files import read_plain, write_whole
from assistant.host.folders import user_cache
from assistant.host.index import Archive, local_path
from assistant.host.lock import Lock
from assistant.i18n import Message, _
from assistant.install.build_environment import set_up
from assistant.install.installer import Installer, last_words
from assistant.install.temporary import scratch
from assistant.install.toolchain import Toolchain, capabilities, check_compiler, choose_toolchain, torch_of
from assistant.install.tools import Tools
from assistant.model.errors import WorkFailed, unreadable, unwritable
from assistant.model.plan import Plan
from assistant.model.record import replace

LIMIT = 4 << 30  # bytes; larger than any source archive or wheel that PyPI takes
SETTINGS_LIMIT = 1 << 20  # bytes of a pyproject.toml
HOURS = 6  # chosen: flash-attn takes two on a few cores (its README); what takes longer has come to a standstill
# Where the isolated build lacks torch, Python says "ModuleNotFoundError: No module named 'torch'".
_WITHOUT_TORCH = re.compile(r"No module named '?torch'?(?![\w.-])")
# The lines that tell more than the last ones do: "k.cu(3): error: …", "fatal error: Python.h: No such file"
_FAULT = re.compile(r"(?:\berror: |\bfatal(?: error)?\b|^[A-Z]\w*Error: |\bKilled\b)")


@dataclass(frozen=True, kw_only=True)
class BuildContext:
    """What builds are for: the plan, the versions that are kept beside it, and the tools that make them."""

    plan: Plan
    keep: Mapping[str, str]
    installer: Installer
    tools: Tools

    @property
    def key(self) -> str:
        """A short text that differs where a wheel that was built for one torch or machine is none for another."""
        host = self.tools.host.facts("platform")
        cards = capabilities(self.tools.machine)
        facts = (*torch_of(self.plan, self.keep), self.plan.python, *cards, host.get("system"), host.get("machine"))
        return hashlib.sha256(" ".join(map(str, facts)).encode()).hexdigest()[:8]

    def toolchain(self, name: str, needs: BuildNeeds) -> Toolchain:
        """Choose what a package is built with; raise `WorkFailed` as `choose_toolchain` does."""
        named = map(canonicalize_name, self.tools.sources.consent.built)
        insists = canonicalize_name(name) in set(named)
        plan = replace(self.plan, index_url=self.tools.sources.index_url or self.plan.index_url)
        return choose_toolchain(name, needs, plan, self.keep, self.tools.machine, insists=insists)

    def refuse_hopeless(self, needs: Sequence[Requirement]) -> None:
        """Raise `WorkFailed` for a package whose build is known to be in vain, before anybody is asked about it."""
        for need in needs:
            known = build_needs(need.name)
            if known and known.torch and self.tools.sources.consent.builds:
                self.toolchain(need.name, known)


def build_wheel(name: str, archive: Archive, context: BuildContext) -> Path:
    """Build the wheel of an archive in the user's cache, its hash checked first, and return the folder that holds it.

    Nothing else is built: what the build itself needs comes as wheels. One that imports torch is built for the plan's
    torch, with nvcc of its CUDA. A wheel that was built before for the same torch and cards is used again.
    Raises `WorkFailed` where the archive cannot be had, differs from its hash, or does not build as `name`, and before
    anything is downloaded where it is known that it could not.
    """
    known = build_needs(name) or BuildNeeds()
    this = Requirement(f"{name}=={archive.version}")
    if archive.sha256 and (before := built_before(this, context, archive.sha256)):
        return used_again(before, context)
    if known.torch:
        check_compiler(context.toolchain(name, known), context.tools.host, context.tools.machine)
    with scratch() as (work, lock):
        installer = dataclasses.replace(context.installer, lock=lock)
        source = _obtained(archive, installer, work, context.plan.index_url)
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        if archive.sha256 and digest != archive.sha256:
            raise WorkFailed(
                _("{file} is not the file that its index describes: its hash differs.", file=archive.filename),
                hint=_("None of its code was run. The index or the connection is broken; choose another index."),
            )
        if before := built_before(this, context, digest):
            return used_again(before, context)
        needs = _with_settings(known, source)
        one = _Build(name, archive, source, needs, context, installer, work, lock)
        wheel = one.with_torch() if needs.torch else one.alone()
        return _kept(wheel, _built() / f"{canonicalize_name(name)}-{archive.version}-{digest[:20]}-{context.key}")


def built_before(need: Requirement, context: BuildContext, digest: str = "") -> Path | None:
    """Find the folder of the newest wheel that was built before, meets a requirement and fits the plan; None for none.

    With a `digest` only the archive with that hash counts, else any: the sources may be out of reach.
    """
    name, found = canonicalize_name(need.name), dict[Version, Path]()
    for wheel in _built().glob(f"{name}-*-{digest[:20] or '*'}-{context.key}/*.whl"):
        own, version, *_tags = parse_wheel_filename(wheel.name)
        if own == name and need.specifier.contains(version.public, prereleases=True):
            found[version] = wheel.parent
    return found[max(found)] if found else None


def used_again(folder: Path, context: BuildContext) -> Path:
    """Tell that the wheel in a folder was built before."""
    for wheel in folder.glob("*.whl"):
        name, version, *_tags = parse_wheel_filename(wheel.name)
        text = _("{name} {version} was built before; that wheel is used again.", name=name, version=version.public)
        context.installer.log(text)
    return folder


def _built() -> Path:
    return user_cache() / "built"


def _kept(wheel: Path, folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / wheel.name, read_plain(wheel, LIMIT))
    except OSError as error:
        raise unwritable(folder, error) from error
    return folder


def _obtained(archive: Archive, installer: Installer, work: Path, index_url: str | None) -> Path:
    """Return a copy of the archive that nobody else can change between the check and the build."""
    place = work / (file_name(archive.url) or "archive")
    if path := local_path(archive.url):
        try:
            write_whole(place, read_plain(path, LIMIT, follow=True))
        except OSError as error:
            raise unreadable(path, error) from error
        return place
    installer.progress(_("Downloading {file}", file=place.name))
    download(
        [Fetch(url=archive.url, path=str(place), sha256=archive.sha256)],
        lambda _file, _have: None,
        installer.cancel,
        network=installer.settings.network,
        index_urls=(*filter(None, [index_url]), *installer.index_urls),
        patience=installer.patience,
    )
    return place


def _with_settings(known: BuildNeeds, source: Path) -> BuildNeeds:
    """Add what an archive says itself: the requirements of its build, torch among them, and kernels for nvcc."""
    names, settings = _contents(source)
    lines = tuple(_requirements(settings))
    torch = known.torch or any(canonicalize_name(Requirement(line).name) == "torch" for line in lines)
    nvcc = known.nvcc or ("gpu" if any(name.endswith(".cu") for name in names) else "")
    return replace(known, torch=torch, nvcc=nvcc, requires=(*known.requires, *lines))


def _contents(source: Path) -> tuple[list[str], str]:
    """Return the names in an archive, and the text of its pyproject.toml; nothing for one that cannot be read."""
    try:
        if zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as packed:
                names = packed.namelist()
                return names, "".join(packed.read(name)[:SETTINGS_LIMIT].decode() for name in _settings_file(names))
        with tarfile.open(source) as tar:
            names = tar.getnames()
            files = filter(None, (tar.extractfile(name) for name in _settings_file(names)))
            return names, "".join(file.read(SETTINGS_LIMIT).decode() for file in files)
    except (OSError, EOFError, ValueError, KeyError, tarfile.TarError, zipfile.BadZipFile):
        return [], ""  # the build will say what is wrong with it


def _settings_file(names: Sequence[str]) -> list[str]:
    return [name for name in names if re.fullmatch(r"[^/]+/pyproject\.toml", name)][:1]


# A pyproject.toml says: [build-system] requires = ["setuptools>=64", "torch"]
def _requirements(settings: str) -> Iterator[str]:
    """Yield the requirement lines of the build in a pyproject.toml that have a sense on this Python."""
    try:
        lines = tomllib.loads(settings).get("build-system", {}).get("requires", [])
        needs = [Requirement(line) for line in lines]
    except (tomllib.TOMLDecodeError, InvalidRequirement, AttributeError, TypeError):
        return
    yield from (str(need) for need in needs)


@dataclass(frozen=True)
class _Build:
    """One build in its folder."""

    name: str
    archive: Archive
    source: Path
    needs: BuildNeeds
    context: BuildContext
    installer: Installer
    work: Path
    lock: Lock

    def alone(self) -> Path:
        """Build in an environment of the installer's own; where that lacks torch, in one with the plan's torch."""
        installer, output = self.installer, list[str]()
        installer.progress(_("Building {file}", file=self.source.name))
        failed = self._run(installer.backend.build(installer.python, self.source, self._out), output)
        if failed and any(map(_WITHOUT_TORCH.search, output)):
            return self.with_torch()
        return self._wheel(failed, output)

    def with_torch(self) -> Path:
        """Build in an environment with the plan's torch, which sees nothing else of this machine but its compiler."""
        host, toolchain = self.context.tools.host, self.context.toolchain(self.name, self.needs)
        compiler = check_compiler(toolchain, host, self.context.tools.machine)
        python, variables = set_up(toolchain, compiler, self.installer, host, self.work, self.lock)
        self.installer.progress(_started(self.source.name, toolchain))
        output = list[str]()
        argv = self.installer.backend.build(str(python), self.source, self._out, beside=True)
        return self._wheel(self._run(argv, output, variables), output)

    def _run(self, argv: Sequence[str], output: list[str], only: Mapping[str, str] | None = None) -> int:
        try:
            return self.installer.call(argv, output, self.work, only=only, limit=HOURS * 3600)
        except TimeoutError as error:
            raise WorkFailed(
                _("The build of {file} was stopped after {hours} hours.", file=self.source.name, hours=HOURS),
                hint=_("Nothing was installed. Leave {name} out, or build it on a faster machine.", name=self.name),
            ) from error

    @property
    def _out(self) -> Path:
        return self.work / "out"

    def _wheel(self, failed: int, output: list[str]) -> Path:
        """Return the wheel that was built; raise `WorkFailed` with the build's own words where there is none."""
        wheels = [one for one in self._out.glob("*.whl") if _is_wheel_of(one.name, self.name, self.archive.version)]
        if failed or not wheels:
            raise WorkFailed(
                _("{file} could not be built: {reason}", file=self.source.name, reason=_reason(output)),
                hint=_(
                    "Nothing was installed. Pin a version of {name} that has a wheel, or leave it out.",
                    name=self.name,
                    option="--pin",
                ),
            )
        return wheels[0]


def _started(file: str, toolchain: Toolchain) -> Message:
    if not toolchain.cuda:
        return _("Building {file} against {torch}", file=file, torch=toolchain.torch)
    return _(
        "Building {file} against {torch} with nvcc of CUDA {cuda}; a large package takes an hour or more",
        file=file,
        torch=toolchain.torch,
        cuda=toolchain.cuda,
    )


def _reason(output: Sequence[str]) -> str:
    """Return in one line why a build failed: the first faults that it names, then its last words."""
    faults = [line.strip() for line in output if _FAULT.search(line.strip())][:2]
    return last_words((*faults, *(line for line in output[-4:] if line.strip() not in faults)))


def _is_wheel_of(filename: str, name: str, version: str) -> bool:
    """Return whether a wheel is what was agreed to: an archive may build anything else."""
    try:
        found = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return False
    return found[0] == canonicalize_name(name) and found[1].public == Version(version).public
