"""The body of `start.py`: makes a private environment beside the project, once, then runs the command in it.

Uses only the standard library. It installs the extra of the project that the command needs; an environment that holds
more serves, too. A finished environment is never changed: a changed pyproject.toml, another Python or another folder
gets a new one, and so does another file of which it holds a copy; the old one is removed once the new one is finished.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from assistant.host.files import configure_streams, discard, try_to_lock
from assistant.host.pip_settings import PipSettings, ask_pip, read_pip_settings, uv_arguments, uv_environment
from assistant.host.process import child_environment, interrupt_on_signals, replace_process, running
from assistant.i18n import STARTED_AS, _, render, say
from assistant.model.errors import AssistantError, WorkFailed
from assistant.model.shell import quote
from assistant.privacy import Lines

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "pyproject.toml"
# Even an editable installation holds copies of these.
COPIED = ("labextension/**/*.*", "notebooks/gallery.ipynb", "notebooks/setup.ipynb", "torch_setup_assistant.py")
HOME = ROOT / ".assistant"
LOG = HOME / "start.log"
TAIL_LINES = 12
BROWSER_LIMIT_SECONDS = 900.0
# Of environments; each holds what those before it hold, but the lab no server for agents.
KINDS = ("core", "onnx", "agents", "lab", "test", "bench")
# By command; else the core.
NEEDS = {"lab": "lab", "labs": "lab", "onnx": "onnx", "mcp": "agents", "test": "test", "lint": "test", "bench": "bench"}
TESTS = ("test", "lint", "bench")  # which run in this folder, and hold what the lab holds
# Of pyproject.toml's dependencies, by environment.
GROUPS = {"onnx": ["proof"], "lab": ["proof"], "test": ["proof", "test"], "bench": ["proof", "test", "benchmark"]}


def main(arguments: Sequence[str]) -> int:
    """Run `assistant ARGUMENTS` (`lab` without any), `test` or `lint` (with pytest's arguments) or `bench [NAME]`.

    Its environment is made first if need be. On POSIX this process becomes the command, so that signals and exit codes
    are the command's own; on Windows it exits with the command's code. Only if the command could not be started, or the
    user interrupted that, does this return, with the exit code.
    """
    configure_streams()
    words = arguments[2:] if arguments[:1] == ["--lang"] else arguments  # nothing else may come before the command
    kind = NEEDS.get(words[0], "core") if words else "lab"
    try:
        python = _find_finished(kind) or _prepare(kind)
        if arguments[:1] and arguments[0] in TESTS:
            os.chdir(ROOT)
            if arguments[0] == "test" and "--quick" not in arguments:
                _obtain_browser(python)
            replace_process([python, "-P", *_test_arguments(arguments)])
        os.environ[STARTED_AS] = _typed_command(sys.orig_argv[: len(sys.orig_argv) - len(arguments)])
        replace_process([python, "-P", "-m", "torch_setup_assistant", *(arguments or ["lab"])])
    except AssistantError as error:
        _say(render(error.message))
        _say(render(error.hint))
        return error.exit_code
    except KeyboardInterrupt:
        _say(say("Stopped. Nothing half-made is kept; start again whenever you like."))
        return 130


def _test_arguments(arguments: Sequence[str]) -> list[str]:
    """Return Python's arguments for `test`, `lint` or `bench`; tests run in parallel unless some are named."""
    command, *others = arguments
    if command == "bench":
        return ["tests/benchmarks", *others]
    if command == "lint":
        return ["-m", "pytest", "tests/lint", *others]
    some = any(not word.startswith("-") for word in others)
    return ["-m", "pytest", *([] if some else ["--numprocesses=auto"]), *others]


def _typed_command(words: Sequence[str]) -> str:
    """Return what was typed before the arguments as one quoted text, such as "python3 start.py".

    The interpreter's absolute path, which pyenv and Windows' `py` put there, becomes its name if that is on PATH, and
    uv's becomes "uv run".
    """
    if "UV" in os.environ and Path(words[0]).is_absolute():  # uv names itself so to what `uv run` starts
        return " ".join(map(quote, ["uv" if shutil.which("uv") else os.environ["UV"], "run", *words[1:]]))
    name = "py" if sys.platform == "win32" else Path(words[0]).name
    typed = [name if Path(words[0]).is_absolute() and shutil.which(name) else words[0], *words[1:]]
    return " ".join(map(quote, typed))  # a command follows


def _environment_folder(kind: str) -> Path:
    """Return the folder of the environment, named after Python, this folder, what is installed and the kind."""
    interpreter = _digest(f"{sys.version} {sys.base_prefix} {ROOT}".encode())
    copied = (path for pattern in COPIED for path in sorted(ROOT.glob(pattern)))
    project = _digest(b"".join(path.read_bytes() for path in (PROJECT, *copied)))
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return HOME / f"{version}-{interpreter}-{project}-{kind}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:10]


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _find_finished(kind: str) -> Path | None:
    """Return the Python of the smallest finished environment that holds what `kind` needs; None if there is none."""
    enough = (other for other in KINDS[KINDS.index(kind) :] if (kind, other) != ("agents", "lab"))
    return next((_python(folder) for folder in map(_environment_folder, enough) if _is_finished(folder)), None)


def _is_finished(folder: Path) -> bool:
    try:
        return (folder / "stamp").read_text() == folder.name and _python(folder).exists()
    except OSError:
        return False


def _prepare(kind: str) -> Path:
    """Make the environment, hold a lock meanwhile, remove outdated ones, and return its Python.

    Signals to end raise `KeyboardInterrupt` from now on. If another start has made it by then, that is returned. Raises
    `WorkFailed` if the folder cannot be written, and as `_install` does.
    """
    folder = _environment_folder(kind)
    began = time.monotonic()
    interrupt_on_signals()
    try:
        HOME.mkdir(exist_ok=True)
        with _hold_lock(HOME / "lock"):
            if found := _find_finished(kind):  # another start made it while this one waited
                return found
            _make_environment(folder, kind)
            _remove_others(folder)
    except OSError as error:
        raise WorkFailed(
            _(
                "The assistant's own environment cannot be made in {folder}: {reason}.",
                folder=HOME,
                reason=error.strerror or error,
            ),
            hint=_("Put the project in a folder that you can write to, with 2 GB free, and start again."),
        ) from error
    _say(say("Ready after {seconds:.0f} s.", seconds=time.monotonic() - began))
    return _python(folder)


@contextlib.contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file within the block; wait, with a word to the user, while another start has it.

    The system lets go of it when this process ends, however it ends.
    """
    with path.open("a") as file:
        if not try_to_lock(file.fileno()):
            _say(say("Another start is at work in this folder; waiting for it to finish."))
            while not try_to_lock(file.fileno()):
                time.sleep(0.2)
        yield


def _make_environment(folder: Path, kind: str) -> None:
    """Make a virtual environment, install the project with what `kind` needs, and stamp it.

    What was in the folder before is removed, and so is the environment if anything fails. Raises as `_install` does,
    and `OSError`.
    """
    import tomllib  # noqa: PLC0415 - a second start has no use for it
    import venv  # noqa: PLC0415 - likewise

    _say(say("Making the assistant's own environment in {folder} (this once).", folder=HOME))
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder, symlinks=sys.platform != "win32", with_pip=False)
        LOG.write_text("", encoding="utf-8")
        extras = {"core": "projects,uv", "onnx": "onnx,projects,uv"}.get(kind, "lab" if kind in TESTS else kind)
        # Tests that run side by side would each compile what the first of them has not compiled yet.
        ahead = ["--compile-bytecode"] if kind in TESTS else []
        groups = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["dependency-groups"]
        more = [requirement for group in GROUPS.get(kind, []) for requirement in groups[group]]
        _install(_python(folder), [*ahead, "-e", f"{ROOT}[{extras}]", *more])
        _write_relative_path(folder)
        (folder / "stamp").write_text(folder.name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_relative_path(folder: Path) -> None:
    """Replace the path by which the editable installation finds this project by a relative one, in ASCII.

    Installers write the path in UTF-8, and before 3.12.4 Python reads it in Windows' code page: a project in a folder
    with a Chinese name would not be found (https://github.com/python/cpython/issues/77102).
    """
    packages = "Lib" if sys.platform == "win32" else "lib/python*"
    for file in folder.glob(f"{packages}/site-packages/*.pth"):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()  # one for each package of the project
        if {*filter(None, lines)} == {str(ROOT)}:
            file.unlink()  # uv's cache may hold the same file by a hard link, and keeps it as it was
            file.write_text(f"{os.path.relpath(ROOT, file.parent)}\n", encoding="ascii")


def _remove_others(finished: Path) -> None:
    """Remove environments that are unfinished or made from other files of the project.

    Finished ones from the same files stay, for other Pythons and of other kinds, too.
    """
    project = finished.name.split("-")[2]
    for folder in HOME.glob("python*"):
        if folder.name.split("-")[2:3] != [project] or not _is_finished(folder):
            discard(folder / "stamp")
            shutil.rmtree(folder, ignore_errors=True)


def _install(python: Path, requirements: list[str]) -> None:
    """Install requirements with uv, which pip fetches if there is none; pip's settings hold for both.

    Raises `WorkFailed` if there is no installer or it fails, and `BadInput` as `ask_pip` does.
    """
    pip = _find_pip(python)
    settings = _pip_settings(pip)
    uv = _find_uv(python, pip)
    if not uv:
        raise _installation_error(have_installer=bool(pip))
    _say(say("Installing the assistant and what it needs; the log is {log}.", log=LOG))
    command: list[str | Path] = [uv, "pip", "install", "--python", python, *uv_arguments(settings), *requirements]
    if not _run_logged(command, {**uv_environment(settings, os.environ), "UV_NO_PROGRESS": "1"}):
        raise _installation_error(have_installer=True)


def _installation_error(*, have_installer: bool) -> WorkFailed:
    """Return the error for a failed installation, after printing the end of the log, or for a missing installer."""
    if not have_installer:
        return WorkFailed(
            _("Neither uv nor pip can be had with this Python ({python}).", python=sys.executable),
            hint=_("Install one of them (Debian, Ubuntu: apt install python3-pip; any system: pipx install uv)."),
        )
    tail = LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
    _say("\n".join(f"  {line}" for line in tail))
    return WorkFailed(
        _("The assistant's packages could not be installed; the whole output is in {log}.", log=LOG),
        hint=_("Check the network, pip's index, proxy and certificate, and the free disk space; then start again."),
    )


_PIP_ENVIRONMENT = {"PIP_USER": "0", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def _find_pip(python: Path) -> list[str | Path]:
    """Return the command of a pip: this Python's, else one put into the environment, else that on PATH; [] for none."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if importlib.util.find_spec("ensurepip") and _run_logged([python, "-m", "ensurepip"], _PIP_ENVIRONMENT):
        return [python, "-m", "pip"]
    found = shutil.which("pip3") or shutil.which("pip")
    return [found] if found else []


def _pip_settings(pip: list[str | Path]) -> PipSettings:
    """Return the settings that pip reports, none if it fails; without a pip, those in its environment variables.

    Raises `BadInput` as `ask_pip` does.
    """

    def run(*words: str) -> tuple[bool, str]:
        asked = subprocess.run([*pip, *words], capture_output=True, env=child_environment(), check=False)
        return asked.returncode == 0, b"\n".join((asked.stdout, asked.stderr)).decode("utf-8", "replace")

    if pip:
        return ask_pip(run) or PipSettings()
    named = {name[4:].lower().replace("_", "-"): value for name, value in os.environ.items() if name[:4] == "PIP_"}
    return read_pip_settings("\n".join(f":env:.{name}={value!r}" for name, value in named.items()))


def _find_uv(python: Path, pip: list[str | Path]) -> Path | None:
    """Return the uv that runs this start, one on PATH or of an environment made before, else one installed with pip.

    `pip` are the first words of pip's command, [] if there is none; it installs uv beside `python`. Returns None if
    there is no uv and it cannot be installed.
    """
    name = "uv.exe" if sys.platform == "win32" else "uv"
    there = shutil.which(os.environ.get("UV", "")) or shutil.which("uv")
    places = [Path(there)] if there else [*HOME.glob(f"python*/*/{name}")]
    if not places and pip:
        _say(say("Fetching uv, the installer."))
        command = [*pip, "--python", python, "install", "--retries", "1", "uv"]
        places = [python.with_name(name)] if _run_logged(command, _PIP_ENVIRONMENT) else []
    return next(iter(places), None)


def _run_logged(command: Sequence[str | Path], environment: dict[str, str]) -> bool:
    """Run a command with its output in the log, without private things; return whether it ended with status 0."""
    cleaned = Lines()
    with LOG.open("a", encoding="utf-8") as log:
        print(cleaned(f"$ {' '.join(map(str, command))}"), file=log)
        try:
            with running(command, environment=environment) as child:
                for line in child:
                    print(cleaned(line), file=log)
        except WorkFailed as error:
            print(cleaned(str(error.message)), file=log)
            return False
    return child.returncode == 0


def _obtain_browser(python: Path) -> None:
    """Run the script that finds or downloads the browser for tests, at most for a quarter of an hour.

    A failure is ignored: the tests that need the browser report it.
    """
    script = ROOT / "tests" / "browser" / "obtain.py"
    with contextlib.suppress(TimeoutError), running([python, script], limit=BROWSER_LIMIT_SECONDS) as child:
        for line in child:
            _say(line)


def _say(sentence: str) -> None:
    if sentence:
        print(sentence, file=sys.stderr, flush=True)  # noqa: T201 - this is a shell
