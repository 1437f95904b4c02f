"""Package indexes on loopback with real names and real metadata: PyPI's as recorded, torch's own composed from them.

`world.json.xz` holds, for each distribution that resolving the sets of this folder touched, its versions with the names
of their wheels, Requires-Python and Requires-Dist, as PyPI told them on the day named there; a version that was never
looked into is left out, so that the world is whole in itself. Torch's own indexes were not recorded but COMPOSED: which
variant holds which release for which Python and platform is the catalogue's word (builds that no index was seen to
hold are left out), the metadata is that of the release
on PyPI with the dependencies that differ replaced (`_adapted`). Wheels are made on the fly, empty but for their
metadata and one module.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import threading
import zipfile
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

import msgspec
from catalogs import catalog_as_of
from loopback import LoopbackIndex
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import AMD_INDEX, Catalog, number
from assistant.catalog.companions import carried_by_torch_index

DATA = Path(__file__).with_name("world.json.xz")
PLATFORM_TAGS = {
    "linux_x86_64": "manylinux_2_28_x86_64",
    "windows_amd64": "win_amd64",
    "macos_arm64": "macosx_11_0_arm64",
}


class Release(msgspec.Struct, omit_defaults=True, rename={"python": "py", "requires": "req", "extras": "ext"}):
    """One version of a distribution: the names of its files, and what its metadata says."""

    files: tuple[str, ...]
    python: str = ""
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    yanked: bool = False

    def metadata(self, name: str, version: str) -> str:
        """Write the core metadata that an installer reads."""
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Python: {self.python}"] * bool(self.python)
        lines += [f"Requires-Dist: {line}" for line in self.requires]
        lines += [f"Provides-Extra: {extra}" for extra in self.extras]
        return "\n".join(lines) + "\n"


Projects = dict[str, dict[str, Release]]  # by canonical name, then by version


class World(msgspec.Struct):
    """The recorded part: what PyPI told, and the day it did."""

    as_of: str
    projects: Projects


Answer = tuple[int, str, bytes]  # status, content type and body
NOT_FOUND: Answer = (404, "text/plain", b"not found")


def read_world(path: Path = DATA) -> World:
    """Read the recorded world."""
    return msgspec.json.decode(lzma.decompress(path.read_bytes()), type=World)


# -- torch's own indexes, composed ------------------------------------------------------------------------------------

_SPECIFIC = re.compile(r"^(nvidia-|cuda-|triton\b|pytorch-triton)")


def composed(variant: str, world: Projects, catalog: Catalog) -> Projects:
    """Compose the index of one variant: the releases that the catalogue says it holds, with adapted metadata."""
    index: Projects = {}
    for row in catalog.releases:
        platforms = [
            platform
            for platform in PLATFORM_TAGS
            if variant in row.variants.get(platform, ()) and variant not in row.unconfirmed.get(platform, ())
        ]
        known = world.get("torch", {}).get(row.version)
        if not (platforms and known):
            continue
        pypi = row.pypi.get("linux_x86_64") == variant
        pythons = {platform: row.pythons.get(platform, row.pythons["any"]) for platform in platforms}
        family = [("torch", row.version, known)]
        for name, versions in (("torchvision", row.torchvision), ("torchaudio", row.torchaudio)):
            for version in versions:
                own = world.get(name, {}).get(version) or Release((), known.python, (f"torch=={row.version}",))
                family.append((name, version, own))
        for name, version, own in family:
            requires = own.requires if pypi else tuple(_adapted(own.requires, variant))
            index.setdefault(name, {})[f"{version}+{variant}"] = msgspec.structs.replace(
                own, files=tuple(_files(name, f"{version}+{variant}", pythons)), requires=requires, yanked=False
            )
        _add_triton(index, known.requires, variant, world)
    _add_carried(index, variant, world)
    return index


def _adapted(requires: tuple[str, ...], variant: str) -> list[str]:
    """Replace what only PyPI's build of a release needs: its CUDA libraries and its Triton.

    Which versions another CUDA build pins is not recorded, so these stand without one; a CPU build needs none.
    """
    kept = [line for line in requires if not _SPECIFIC.match(line)]
    triton = _triton_for(requires, variant)
    if triton:
        kept.append(f'{triton[0]}=={triton[1]}; platform_system == "Linux"')
    if variant.startswith("cu") and any(line.startswith("nvidia-") for line in requires):
        parts = ("cublas", "cuda-runtime", "cudnn", "nccl")
        suffix = f"-cu{variant[2:4]}"
        kept += [f'nvidia-{part}{suffix}; platform_system == "Linux"' for part in parts]
    return kept


def _triton_for(requires: tuple[str, ...], variant: str) -> tuple[str, str] | None:
    """Name the Triton that a variant's build of a release needs: CUDA's own, ROCm's or XPU's of the same number.

    ROCm's and XPU's were called pytorch-triton-rocm and -xpu until torch 2.9 (Triton 3.5).
    """
    said = next((Requirement(line) for line in requires if re.match(r"triton\b", line)), None)
    version = next((item.version for item in said.specifier), "") if said else ""
    if not version or variant == "cpu":
        return None
    kind = "rocm" if variant.startswith(("rocm", AMD_INDEX)) else "xpu" if variant == "xpu" else ""
    if not kind:
        return "triton", version
    return (f"triton-{kind}" if number(version) >= (3, 6) else f"pytorch-triton-{kind}"), version


def _add_triton(index: Projects, requires: tuple[str, ...], variant: str, world: Projects) -> None:
    triton = _triton_for(requires, variant)
    if not triton:
        return
    name, version = triton
    if name == "triton":
        same = {key: one for key, one in world.get("triton", {}).items() if number(key)[:2] == number(version)[:2]}
        index.setdefault(name, {}).update(same)
    else:
        pythons = {"linux_x86_64": ("39", "310", "311", "312", "313", "314")}
        index.setdefault(name, {})[version] = Release(tuple(_files(name, version, pythons)))


def _add_carried(index: Projects, variant: str, world: Projects) -> None:
    """Add what else torch's index carries: torchaudio's last release, which goes with later torches, and companions.

    Of xformers those versions whose torch the index has; torchcodec and torchao name no torch, so all of them.
    """
    held = {version.partition("+")[0] for version in index.get("torch", {})}
    for name in ("torchaudio", "torchcodec", "torchao", "xformers"):
        if not held or not carried_by_torch_index(name, variant):
            continue
        for version, own in world.get(name, {}).items():
            torch = next((Requirement(line) for line in own.requires if re.match(r"torch\b", line)), None)
            fits = torch is None or any(torch.specifier.contains(one) for one in held)
            local = version if name == "xformers" else f"{version}+{variant}"
            versions = index.setdefault(name, {})
            if fits and local not in versions and own.files[0].endswith(".whl"):
                files = tuple(file.replace(f"-{version}-", f"-{local}-") for file in own.files if "macosx" not in file)
                versions[local] = msgspec.structs.replace(own, files=files)


def amd(world: Projects, catalog: Catalog) -> Projects:
    """Compose AMD's own index: torch with an extra for each device, as the catalogue lists them."""
    index: Projects = {}
    extras = tuple(f"device-{gfx}" for gfx in catalog.amd_targets)
    for row in catalog.amd_releases:
        known = world.get("torch", {}).get(row.torch)
        listed = catalog.release(row.torch)
        if not (known and listed):
            continue
        pythons = {"linux_x86_64": listed.pythons["any"], "windows_amd64": listed.pythons["any"]}
        for name, versions in (("torch", (row.torch,)), ("torchvision", listed.torchvision)):
            for version in versions:
                own = world.get(name, {}).get(version)
                if own:
                    local = f"{version}+rocm{row.rocm}"
                    requires = tuple(_adapted(own.requires, AMD_INDEX))
                    files = tuple(_files(name, local, pythons))
                    index.setdefault(name, {})[local] = Release(files, own.python, requires, (*own.extras, *extras))
        _add_triton(index, known.requires, AMD_INDEX, world)
    return index


def _files(name: str, version: str, pythons: dict[str, tuple[str, ...]]) -> list[str]:
    """Name the wheels of one version: one for each Python and platform."""
    stem = f"{name.replace('-', '_')}-{version}"
    return [
        f"{stem}-cp{tag.rstrip('t')}-cp{tag}-{PLATFORM_TAGS[platform]}.whl"
        for platform, tags in pythons.items()
        for tag in tags
    ]


# -- the server -------------------------------------------------------------------------------------------------------


class Indexes(LoopbackIndex):
    """All indexes over real HTTP: PyPI's at `/simple/`, each variant's at `/whl/VARIANT/`, AMD's at `/amd/`.

    Pages and metadata say how long they may be kept, as PyPI's do, so a warm resolver asks nothing.
    """

    def __init__(self, world: World, catalog: Catalog | None = None) -> None:
        self.world = world
        self.catalog = catalog or catalog_as_of("2.15.0")
        self._composed: dict[str, Projects] = {}
        self._composing = threading.Lock()
        self._pages: dict[str, Answer] = {}
        super().__init__(Path())
        self._server.handle_error = lambda *_about: None  # type: ignore[method-assign] - a client that went away
        self.base = self.url.removesuffix("/simple")

    def variant_url(self, variant: str) -> str | None:
        """Name the index of a variant, as `Catalog.index_url` does for the real ones."""
        if variant in {"pypi", "directml"}:
            return None
        return f"{self.base}/amd" if variant == AMD_INDEX else f"{self.base}/whl/{variant}"

    def projects(self, index: str) -> Projects:
        """Return what an index holds: "simple", "amd" or "whl/VARIANT"."""
        if index == "simple":
            return self.world.projects
        with self._composing:
            if index not in self._composed:
                world = self.world.projects
                variant = index.removeprefix("whl/")
                self._composed[index] = (
                    amd(world, self.catalog) if index == "amd" else composed(variant, world, self.catalog)
                )
            return self._composed[index]

    def release(self, index: str, project: str, version: str) -> Release | None:
        """Find one version on an index."""
        return self.projects(index).get(project, {}).get(version)

    def page(self, index: str, project: str) -> Answer:
        """Answer the list of a project's files (PEP 691)."""
        versions = self.projects(index).get(project)
        if not versions:
            return NOT_FOUND
        files = [
            {
                "filename": file,
                "url": f"{self.base}/files/{index}/{project}/{version}/{file}",
                "hashes": {"sha256": sha256(file.encode()).hexdigest()},
                "requires-python": release.python or None,
                "yanked": release.yanked,
                "core-metadata": file.endswith(".whl"),
                "size": 1000,
            }
            for version, release in versions.items()
            for file in release.files
        ]
        page = {"meta": {"api-version": "1.1"}, "name": project, "versions": list(versions), "files": files}
        return 200, "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()

    def answer(self, path: str) -> Answer:
        """Answer `/INDEX/PROJECT/`, or `/files/INDEX/PROJECT/VERSION/FILE` and the same with `.metadata`."""
        first, *rest = unquote(path).strip("/").split("/")
        if first != "files":
            *folders, project = (first, *rest)
            if path not in self._pages:
                self._pages[path] = self.page("/".join(folders), canonicalize_name(project))
            return self._pages[path]
        index, (project, version, file) = "/".join(rest[:-3]), rest[-3:]
        release = self.release(index, project, version)
        if release is None:
            return NOT_FOUND
        text = release.metadata(project, version)
        body = text.encode() if file.endswith(".metadata") else _wheel(file, text)
        return 200, "application/octet-stream", body

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        class Handler(super()._handler()):  # type: ignore[misc] - made for each server
            protocol_version = "HTTP/1.1"

            def end_headers(self) -> None:
                self.send_header("Cache-Control", "max-age=36000")
                super().end_headers()

        return Handler


def _wheel(file: str, metadata: str) -> bytes:
    """Make a wheel that holds its metadata and one empty module."""
    name, version, *tag = file.removesuffix(".whl").split("-")
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": "",
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {'-'.join(tag)}\n",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))
    return made.getvalue()
