"""What the fault tests share: wheels with some body, an index that misbehaves, pictures, children to kill."""

from __future__ import annotations

import atexit
import base64
import compileall
import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from install.workbench import Verify, imports_torch, install
from loopback import LoopbackIndex

from assistant.host.download import Patience
from assistant.host.live import LiveHost
from assistant.host.lock import Lock, read_holder
from assistant.host.process import CancelToken
from assistant.install import contents
from assistant.install.journal import LOCK
from assistant.install.site import Site, write_marker
from assistant.install.sources import Sources, Tools
from assistant.install.uv import Resolution, Uv, resolve
from assistant.model.errors import Cancelled
from assistant.model.plan import Backend, Plan
from assistant.model.record import from_json, to_json
from assistant.model.report import Environment, Event

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
BODY = 300_000  # bytes of the library in torch's wheel


def rich_wheel(folder: Path, name: str, version: str, modules: int = 6) -> Path:
    """Write a wheel with modules, a library, a script, a file of data, and hashes in its RECORD as real ones have."""
    info, noise = f"{name}-{version}.dist-info", random.Random(f"{name}{version}")  # noqa: S311 - repeatable, no secret
    path = folder / f"{name}-{version}-py3-none-any.whl"
    if path.exists():
        return path
    files = {f"{name}/m{number}.py": f"x = {number}  # {version}\n" for number in range(modules)}
    files |= {
        f"{name}/__init__.py": f"__version__ = {version!r}\ndef main(): print(__version__)\n",
        f"{name}/lib/library.so": noise.randbytes(BODY if name == "torch" else 2000).hex()[:BODY],
        f"{name}-{version}.data/data/share/{name}/notes.txt": version,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-run = {name}:main\n",
    }
    if version == "8.0":
        files[f"{name}/gone.py"] = "only = 'old'\n"
    rows = [f"{file},sha256={_digest(text)},{len(text)}" for file, text in files.items()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
        wheel.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,", ""]))
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


class TroubledIndex(LoopbackIndex):
    """An index whose pages are right and whose files are not, as `file_trouble` says of a project.

    An HTTP status; "stall"; "cut" (the connection ends early), "truncate" (half the file), "alter" (other bytes).
    `bad_answers` is how many go wrong before the rest goes right (None: all).
    """

    def __init__(self, folder: Path) -> None:
        self.file_trouble: dict[str, int | str] = {}
        self.bad_answers: int | None = None
        self.resolution: Resolution | None = None  # of the plan that all grounds have
        super().__init__(folder)

    def trouble_with(self, path: str) -> int | str | None:
        """Tell what is to go wrong with this request."""
        project, _, file = path.removeprefix("/simple/").partition("/")
        trouble = self.file_trouble.get(project) if file else None
        if trouble is None or self.bad_answers == 0:
            return None
        if self.bad_answers:
            self.bad_answers -= 1
        return trouble

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Answer as the trouble says."""
        trouble = self.trouble_with(path)
        if trouble == "stall":
            self.over.wait(60)
        if isinstance(trouble, int):
            return trouble, "text/plain", b"trouble"
        status, kind, body = super().answer(path)
        if trouble == "alter":
            body = body[:-100] + bytes(100)
        if trouble == "cut":
            kind = "cut"
        return status, kind, body[: len(body) // 2] if trouble == "truncate" else body

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        index, plain = self, super()._handler()

        class Handler(plain):
            def do_GET(self) -> None:  # noqa: N802 - the library's name
                status, kind, body = index.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    with suppress(OSError):  # a client that was stopped
                        self.wfile.write(body[: len(body) // 2] if kind == "cut" else body)

        return Handler


def picture(folder: Path) -> dict[str, tuple[object, ...]]:
    """Describe every file, folder and link below a folder: kind, mode, content."""
    seen: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        name = str(path.relative_to(folder))
        if path.is_symlink():
            seen[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            seen[name] = ("folder", mode)
        elif not path.is_file():
            seen[name] = ("pipe or the like", mode)
        else:
            seen[name] = ("file", mode, hashlib.sha256(path.read_bytes()).hexdigest())
    return seen


@cache
def pristine() -> Path:
    """Make, once, what is copied for each test: torch 8.0, compiled files, a file of the user's, a link."""
    folder = Path(tempfile.mkdtemp(prefix="assistant-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target, uv = folder / "env", str(Path(sys.executable).with_name("uv"))
    (folder / "torch").mkdir()
    rich_wheel(folder / "torch", "torch", "8.0")
    subprocess.run([uv, "venv", "-q", "--no-project", "--python", sys.executable, target], check=True)
    words = ["pip", "install", "-q", "--no-deps", "--no-index", "--python", target / "bin" / "python"]
    words += ["--find-links", folder / "torch", "torch==8.0"]
    told = {**os.environ, "UV_CACHE_DIR": str(folder / "uv"), "UV_LINK_MODE": "copy"}
    subprocess.run([uv, *words], check=True, env=told)
    compileall.compile_dir(target / "lib", quiet=2)
    site = next(target.glob("lib/*/site-packages"))
    (site / "mine.py").write_text("precious = 1\n")
    (target / "notebooks").mkdir()
    (target / "notebooks" / "thesis.ipynb").write_text("{}")
    (site / "torch" / "mine too.txt").write_text("a file of the user's inside torch\n")
    (site / "numpy").mkdir()
    (site / "numpy" / "__init__.py").write_text("# nobody's, and in the way of the one that comes\n")
    (site / "mine.py").chmod(0o440)
    (target / "link").symlink_to("lib")
    return target


OLD = Plan(backend=Backend.CPU, variant="cpu", torch="8.0", python=PYTHON, requirements=("torch==8.0",))


class Ground:
    """An index, a plan for it, an environment of ours that stands, one of somebody else's, and ways to change them."""

    def __init__(self, index: TroubledIndex, folder: Path) -> None:
        self.index, self.folder = index, folder
        self.events: list[Event] = []
        self.cancel = CancelToken()
        self.standing, self.new = folder / "standing one", folder / "new" / "环境"
        self.foreign = folder / "somebody's"
        self.plan = Plan(
            backend=Backend.CPU,
            variant="cpu",
            torch="9.0",
            python=PYTHON,
            index_url=index.url,
            requirements=("torch==9.0", "numpy"),
        )
        for name, version in (("torch", "8.0"), ("torch", "9.0"), ("numpy", "1.0"), ("ipykernel", "7.0")):
            (index.folder / name).mkdir(exist_ok=True)
            rich_wheel(index.folder / name, name, version)

    def uv(self, **changes: object) -> Uv:
        """Give uv; nothing leaves the machine."""
        environment = {
            "UV_DEFAULT_INDEX": self.index.url,
            "UV_CACHE_DIR": str(self.folder / "uv"),
            "UV_HTTP_RETRIES": "0",
            "UV_HTTP_TIMEOUT": "1",
            "UV_LINK_MODE": "copy",
        }
        given = {"python": sys.executable, "environment": environment, "sink": self.events.append}
        patience = Patience(timeout=1.0, tries=3, pause=0.01)
        return Uv(**{**given, "cancel": self.cancel, "patience": patience, **changes})  # type: ignore[arg-type]

    @property
    def tools(self) -> Tools:
        """Give what a step works with, as the command has it; the index is that of the user's own uv."""
        return Tools(LiveHost(), Sources(LiveHost()), self.events.append, self.cancel)

    def build(self, target: Path | None = None) -> Path:
        """Make an environment of ours that stands."""
        target = target or self.standing
        shutil.copytree(pristine(), target, symlinks=True)
        made = Environment(path=str(target), python=str(target / "bin" / "python"), packages={"torch": "8.0"})
        write_marker(target, OLD, made)
        return target

    def build_foreign(self) -> Path:
        """Make an environment that somebody else made."""
        shutil.copytree(pristine(), self.foreign, symlinks=True)
        return self.foreign

    def resolution(self) -> Resolution:
        """Resolve the plan, once for all grounds on one index."""
        if self.index.resolution is None:
            self.index.resolution = resolve(self.plan, self.uv())
        return self.index.resolution

    def change(self, resolution: Resolution, verify: Verify = imports_torch, target: Path | None = None) -> Environment:
        """Bring the resolution into the environment that stands."""
        target = target or self.standing
        site = Site.ask(target, LiveHost())
        return install(self.plan, resolution, target, site, self.uv(), verify)

    def make(self, resolution: Resolution, verify: Verify = imports_torch) -> Environment:
        """Make a new environment of it."""
        return install(self.plan, resolution, self.new, None, self.uv(), verify)

    def debris(self) -> list[str]:
        """List what an installation must not leave: work folders and pointers; half downloads wait to be resumed.

        A deletion that nobody waited for gets five seconds to end.
        """
        deadline = time.monotonic() + 5
        while any(map(is_deleted, self.folder.glob("state/*/installs/*.part"))) and time.monotonic() < deadline:
            time.sleep(0.01)
        left = [*self.folder.rglob(".*.new"), *self.folder.glob("state/*/installs/*.json")]
        left += [*self.folder.glob("state/*/installs/*.lock"), *self.folder.glob("state/*/installs/*.part")]
        left += self.folder.glob("temporary/*")
        return sorted(str(path) for path in left)


def is_deleted(part: Path) -> bool:
    """Tell whether a temporary folder is being deleted: a program that is recorded does so, or its lock went first."""
    holder = read_holder(part / LOCK)
    return holder is None or bool(holder.children)


class Nursery:
    """A process with everything imported, which forks one child per try: each can be killed at any moment."""

    def __init__(self, ground: Ground, resolution: Resolution) -> None:
        index = {"index": ground.index.url, "index folder": str(ground.index.folder)}
        job = {**index, "folder": str(ground.folder), "resolution": to_json(resolution)}
        command = [sys.executable, __file__, json.dumps(job)]
        path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )

    def attempt(self, kind: str, *, operation: int = 0, seconds: float = 0.0) -> str:
        """Let a child install, killed at its n-th change of a file or after some seconds; answer how it ended."""
        self._process.stdin.write(json.dumps([kind, operation, seconds]) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """Let the process go."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.symlink", "subprocess.Popen", "open"}


def _killed_at(operation: int) -> list[int]:
    """Count what changes files; die at the n-th."""
    count = [0]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event not in CHANGES or (event == "open" and not _writes(arguments)):
            return
        count[0] += 1
        if count[0] == operation:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return count


def _writes(arguments: tuple[object, ...]) -> bool:
    return isinstance(arguments[2], int) and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _attempt(ground: Ground, resolution: Resolution, kind: str, operation: int) -> int:
    count = _killed_at(operation)
    kind, _, cancelled = kind.partition(" ")
    verify = _cancel if cancelled else imports_torch
    with suppress(Cancelled):
        if kind == "new":
            ground.make(resolution, verify)
        else:
            ground.change(resolution, verify, ground.standing if kind == "existing" else ground.foreign)
    return count[0]


def _cancel(made: Environment, _lock: Lock) -> None:
    raise Cancelled(made.path)


def _end(child: int) -> None:
    """Kill a child, which may have ended in the moment in which the alarm went off."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _serve(job: dict[str, str]) -> None:
    """Fork a child for each line that comes."""
    index = LoopbackIndex.__new__(TroubledIndex)
    index.url, index.folder = job["index"], Path(job["index folder"])
    ground = Ground(index, Path(job["folder"]))
    resolution = from_json(job["resolution"], Resolution, "resolution")
    LiveHost().facts("platform")
    contents.LARGE = BODY // 2
    import jupyter_client.kernelspec  # noqa: F401, PLC0415 - before the forks

    for line in sys.stdin:
        kind, operation, seconds = json.loads(line)
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.setsid()
            done = _attempt(ground, resolution, kind, operation)
            os.write(write, str(done).encode())
            os._exit(0)
        os.close(write)
        if seconds:
            signal.signal(signal.SIGALRM, lambda *_, child=child: _end(child))
            signal.setitimer(signal.ITIMER_REAL, seconds)
        _pid, status = os.waitpid(child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        said = os.read(read, 100).decode()
        os.close(read)
        print(said if os.WIFEXITED(status) and said else f"killed {status}", flush=True)


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
