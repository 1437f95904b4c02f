"""A package index on loopback that serves small wheels with real names and tags."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
import threading
import zipfile
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, tag: str, requires: tuple[str, ...] = ()) -> Path:
    """Write an installable wheel with one module; `tag` like "cp311-cp311-manylinux_2_28_x86_64"."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    files = {
        f"{module}/__init__.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    path = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, content in files.items():
            wheel.writestr(file, content)
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"]))
    return path


def with_code(wheel: Path, package: str, code: str, module: str = "__init__") -> None:
    """Let a package of a wheel hold some code."""
    with zipfile.ZipFile(wheel) as read:
        files = {name: read.read(name) for name in read.namelist()}
    with zipfile.ZipFile(wheel, "w") as written:
        for name, content in {**files, f"{package}/{module}.py": code.encode()}.items():
            written.writestr(name, content)


SETUP = """open({mark!r}, "w").close()
from setuptools import setup
setup(name={name!r}, version={version!r})
"""
BACKEND = """open({mark!r}, "w").close()
import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    info = "{name}-{version}.dist-info"
    with zipfile.ZipFile(folder + "/{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("{name}.py", "")
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "/RECORD", "")
    return "{name}-{version}-py3-none-any.whl"
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def make_archive(folder: Path, name: str, version: str, mark: Path, *, by: str = "backend") -> Path:
    """Write a source archive whose build leaves a mark: by a `setup.py`, or by a `backend` of its own."""
    said = {"mark": str(mark), "name": name, "version": version}
    files = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    if by == "backend":
        files |= {"pyproject.toml": PROJECT, "backend.py": BACKEND.format(**said)}
    else:
        files |= {"setup.py": SETUP.format(**said)}
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{file}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def _metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as read:
        (name,) = (one for one in read.namelist() if one.endswith(".dist-info/METADATA"))
        return read.read(name)


class LoopbackIndex:
    """A package index (PEP 503 with hashes, or PEP 691 when `speaks_json`) over real HTTP, and PyPI's JSON of releases.

    `trouble` maps a project to an HTTP status, to "stall" (no answer until the test ends), to "page" (no index), to
    "hash" (its pages tell wrong hashes) or to "bare" (they tell none). `upstream` makes pages name files absolutely, as
    those of a leaking mirror do; `delay` are seconds before each answer; `login` ("user:password") is asked for where
    it is set; `requests` holds every path that was asked for, and `fetched` those that went whole to another program
    than uv, which looks into wheels to resolve.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.speaks_json = False
        self.upstream = ""
        self.delay = 0.0
        self.login = ""
        self.requests: list[str] = []
        self.fetched: list[str] = []
        self.trouble: dict[str, int | str] = {}
        self.over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/simple"

    def add(self, name: str, version: str, tag: str = "py3-none-any", requires: tuple[str, ...] = ()) -> Path:
        """Put a wheel on the index."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return make_wheel(folder, name, version, tag, requires)

    def add_archive(self, name: str, version: str, mark: Path, *, by: str = "backend") -> Path:
        """Put a source archive on the index whose build leaves a mark."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return make_archive(folder, name, version, mark, by=by)

    def close(self) -> None:
        """Let stalled answers go and stop serving."""
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Give status, content type and body for a path."""
        if found := re.fullmatch(r"/pypi/([^/]+)/([^/]+)/json", path):
            return self._release(found[1], found[2])
        project, _, file = path.removeprefix("/simple/").partition("/")
        trouble = self.trouble.get(project)
        self.over.wait(self.delay)
        if trouble == "stall":
            self.over.wait(60)
        if isinstance(trouble, int):
            return trouble, "text/plain", b"trouble"
        if trouble == "page":
            return 200, "application/octet-stream", b"welcome"
        if not project or not (self.folder / project).is_dir():
            return 404, "text/plain", b"not found"
        if file:
            held = self.folder / project / file.removesuffix(".metadata").replace("%2B", "+")
            read = _metadata if file.endswith(".metadata") else Path.read_bytes
            return 200, "application/octet-stream", read(held)
        return self._page(
            sorted((self.folder / project).iterdir()), salt=b"x" if trouble == "hash" else b"", bare=trouble == "bare"
        )

    def _release(self, name: str, version: str) -> tuple[int, str, bytes]:
        """Answer as PyPI's JSON does about a release."""
        wheel = next((self.folder / name).glob(f"{name}-{version}-*.whl"), None)
        if wheel is None:
            return 404, "text/plain", b"not found"
        needs = re.findall(r"^Requires-Dist: (.+)$", _metadata(wheel).decode(), re.MULTILINE)
        return 200, "application/json", json.dumps({"info": {"version": version, "requires_dist": needs}}).encode()

    def _page(self, wheels: list[Path], salt: bytes, *, bare: bool) -> tuple[int, str, bytes]:
        sums = {wheel.name: hashlib.sha256(wheel.read_bytes() + salt).hexdigest() for wheel in wheels}
        base = f"{self.upstream}/{wheels[0].parent.name}/" if self.upstream else ""
        sums = dict.fromkeys(sums, "") if bare else sums
        if self.speaks_json:
            files = [
                {"filename": name, "url": base + name, "hashes": {"sha256": digest}} for name, digest in sums.items()
            ]
            page = {"meta": {"api-version": "1.0"}, "name": "", "files": files}
            return 200, "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()
        links = (
            f'<a href="{base}{name.replace("+", "%2B")}{"#sha256=" * bool(digest)}{digest}">{name}</a>'
            for name, digest in sums.items()
        )
        return 200, "text/html", "\n".join(links).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.requests.append(self.path)
                status, kind, body = index.answer(self.path)
                given = self.headers.get("Authorization", "").removeprefix("Basic ")
                if index.login and base64.b64decode(given).decode() != index.login:
                    status, kind, body = 401, "text/plain", b"who are you"
                wanted = self.headers.get("Range", "").removeprefix("bytes=")
                if wanted and status == 200:
                    body = self.part(body, wanted)
                else:
                    self.send_response(status)
                    resolver = self.headers.get("User-Agent", "").startswith("uv/")
                    index.fetched += [self.path] if self.command == "GET" and not resolver else []
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    with suppress(BrokenPipeError):  # a client that was stopped
                        self.wfile.write(body)

            def part(self, body: bytes, wanted: str) -> bytes:
                """Begin the answer with a part of a file; return what to send of it."""
                first, _, last = wanted.partition("-")
                begin = int(first) if first else max(0, len(body) - int(last))
                end = min(int(last) + 1, len(body)) if first and last else len(body)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(body)}")
                return body[begin:end]

            def do_HEAD(self) -> None:
                self.do_GET()

            def log_message(self, *arguments: object) -> None:
                """Keep the test's output clean."""

        return Handler
