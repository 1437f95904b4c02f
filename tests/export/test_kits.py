"""Setup packages for PCs that are not here: what is in them, what other tools say of it, and that they install."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_powershell
from export.setups import BOARDS

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.export import FORMATS, MARKER, Kit, Setup, Without, commands, kit_bundle, kit_zip, texts, write_all
from assistant.export.kit import kit_files
from assistant.export.setup import Unsuited
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.host.recording import ReplayHost
from assistant.i18n import use_language
from assistant.install import Sources, Tools
from assistant.machines import load
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.kits import commands_for, package_for

board = pytest.mark.parametrize("name", BOARDS)
PYTHON = "{}.{}".format(*sys.version_info)


def setup_of(name: str) -> Setup:
    """Give what is known of a recorded machine that is not here: its facts and its plan."""
    machine = detect(ReplayHost(load(name))).machine
    return Setup(machine=machine, plan=make_plans(machine, load_catalog()).choice)


def kit_of(setup: Setup) -> Kit:
    """Give a package of a setup."""
    return Kit(name="kit", pcs=("Room 12",), setup=setup, unlocked="" if setup.versions else "Nobody resolved it.")


def locked(setup: Setup) -> Setup:
    """Give the setup with a lock."""
    versions = {"torch": setup.plan.torch, "numpy": "2.1.0", "ipykernel": "7.1.0"}
    return replace(setup, versions=versions, hashes=dict.fromkeys(versions, "ab" * 32))


@board
def test_a_plan_alone_has_every_format_that_needs_no_installation(name):
    """What describes an environment is refused in a sentence, and the list of formats says which those are."""
    setup = setup_of(name)
    refused = {path for path in FORMATS if not _writable(path, setup)}
    assert {path for path, kind in FORMATS.items() if kind.installed} <= refused
    assert refused <= {
        *(path for path, kind in FORMATS.items() if kind.installed),
        *("constraints.txt", "pylock.toml", "Dockerfile", ".devcontainer/devcontainer.json"),
    }
    assert "requirements.txt" in texts(setup)


def _writable(path: str, setup: Setup) -> bool:
    try:
        return bool(FORMATS[path].files(setup))
    except Unsuited:
        return False


@board
@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_package_holds_one_script_and_says_what_it_is_in_both_languages(name, language):
    """README first, one script of the PC's system, and the check; without a lock it says that it has none."""
    use_language(language)
    files = kit_files(kit_of(setup_of(name)))
    use_language("en")
    assert next(iter(files)) == "README.md"
    windows = name.startswith("windows")
    assert ("install.ps1" in files, "install.sh" in files) == (windows, not windows)
    assert {"requirements.txt", "verify.py", "device.py", "environment.yml", "pyproject.toml"} <= set(files)
    assert MARKER in files["README.md"].splitlines()[0]
    assert "is not a lock" in files["README.md"]
    assert "Nobody resolved it." in files["README.md"]
    assert "。 " not in files["README.md"]


@board
@pytest.mark.parametrize("lock", [False, True])
@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.process
def test_shells_read_the_scripts(name, lock, language):
    """PowerShell's grammar and bash find no fault in either script, in either language, with or without a lock."""
    setup = setup_of(name)
    use_language(language)
    files = kit_files(kit_of(locked(setup) if lock else setup))
    use_language("en")
    script = files.get("install.ps1") or files["install.sh"]
    assert (" --require-hashes " in script) == lock
    assert "extra-index-url" not in script
    assert setup.plan.python in script
    if "install.ps1" in files:
        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
        assert not parser.parse(script.encode()).root_node.has_error
    else:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_a_lock_names_every_package_with_its_hash():
    """Pip and uv refuse any other file, and torch's family comes from torch's own index."""
    lines = kit_files(kit_of(locked(setup_of(BOARDS[0]))))["requirements.txt"].splitlines()
    pins = [line for line in lines if not line.startswith(("#", "--"))]
    assert all(re.fullmatch(r"[\w-]+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in pins)
    assert [line for line in lines if line.startswith("--")] == [
        f"--find-links {setup_of(BOARDS[0]).plan.index_url}/torch/"
    ]


def test_versions_without_hashes_are_no_lock():
    """An index that gives no hashes leaves the versions; nothing claims more, and the script asks for no hash."""
    setup = locked(setup_of(BOARDS[0]))
    files = kit_files(kit_of(replace(setup, hashes={"torch": "ab" * 32})))
    assert "numpy==2.1.0" in files["requirements.txt"]
    assert "--hash" not in files["requirements.txt"]
    assert "--require-hashes" not in files["install.sh"]
    assert "It is not a full lock" in files["README.md"]


def test_a_zip_is_the_same_each_time_and_its_script_can_be_run():
    """Nothing in it depends on the day, and what unpacks it finds a script that may be executed."""
    kit = kit_of(setup_of("linux-debian12-cpu-container"))
    packed = kit_zip(kit)
    assert packed == kit_zip(kit)
    entries = {entry.filename: entry for entry in zipfile.ZipFile(io.BytesIO(packed)).infolist()}
    assert entries["install.sh"].external_attr >> 16 & 0o111
    assert not entries["README.md"].external_attr >> 16 & 0o111


def test_windows_powershell_takes_the_script_for_utf_8():
    """It begins with a byte order mark and its lines end as Windows has them."""
    packed = zipfile.ZipFile(io.BytesIO(kit_zip(kit_of(setup_of("windows11-rtx3060")))))
    for name in ("install.ps1", "env.ps1"):
        content = packed.read(name)
        assert content.startswith(b"\xef\xbb\xbf")
        assert content.count(b"\n") == content.count(b"\r\n") > 3


def test_a_hostile_label_runs_nothing():
    """Whatever a PC is called, the script stays one comment, and README and page show text."""
    label = "x\nrm -rf ~ #' $(id) `id` <script>alert(1)</script>"
    for name in ("windows11-rtx3060", "linux-debian12-cpu-container"):
        kit = replace(kit_of(setup_of(name)), pcs=(label,))
        files = kit_files(kit)
        script = files.get("install.ps1") or files["install.sh"]
        assert all(line.startswith("#") for line in script.splitlines() if "rm -rf" in line)
        assert not re.search(r"^rm -rf|<script|`id`", files["README.md"], re.MULTILINE)
        page = kit_bundle([kit], [Without(pc=label, why=label)])["index.html"].decode()
        assert "<script" not in page


@pytest.mark.process
def test_the_reason_for_having_no_lock_tells_no_password():
    """An index that cannot be reached is named in the package, its user and password are not."""
    host = LiveHost()
    sources = Sources(host, index_url="http://jane:in-the-index-9@127.0.0.1:9/simple")
    tools = Tools(host, sources, lambda _event: None, CancelToken())
    _name, packed = package_for(HERE, CPU, "Room 12", tools)
    files = zipfile.ZipFile(io.BytesIO(packed))
    texts_of_all = {name: files.read(name).decode() for name in files.namelist()}
    assert "127.0.0.1:9/simple could not be reached" in texts_of_all["README.md"]
    assert not [name for name, text in texts_of_all.items() if "in-the-index-9" in text or "jane" in text]


class Links(HTMLParser):
    """Collects the links and languages of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.languages: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        found = dict(attrs)
        self.links |= {found["href"]} if tag == "a" else set()
        self.languages += [found["lang"]] if tag == "section" else []


def test_the_page_leads_to_every_package_in_both_languages(tmp_path):
    """All lie beside it; written again they replace what was written, and nothing of anybody else's."""
    kits = [replace(kit_of(setup_of(name)), name=name, pcs=(name,)) for name in BOARDS[:3]]
    files = kit_bundle(kits, [Without(pc="Alpine", why="No wheel fits it.")])
    page = Links()
    page.feed(files["index.html"].decode())
    assert page.links == set(files) - {"index.html"}
    assert page.languages == ["en", "zh-CN"]
    assert "No wheel fits it." in files["index.html"].decode()
    for _again in range(2):
        write_all(tmp_path, files, lambda _foreign: False)
    assert {path.name for path in tmp_path.iterdir()} == set(files)


def test_the_commands_are_those_of_that_system():
    """Nothing of this machine stands in them: no path, no program of ours."""
    setup = setup_of("windows11-rtx3060")
    first, second, third = commands_for(setup.machine, setup.plan)
    assert first[:2] == ("uv", "venv")
    assert "torch-env/Scripts/python.exe" in second
    assert f"torch=={setup.plan.torch}" in second
    assert setup.plan.index_url in second
    assert third == ("torch-env/Scripts/python.exe", "verify.py")
    assert commands(setup_of("macos15-m3max"))[2][0] == "torch-env/bin/python"


@pytest.fixture
def tools(loopback_index) -> Tools:
    """Give the tools of this machine, with torch on an index on loopback: its own is not within reach of the tests."""
    found = next((path for link in _links() for path in Path(link).glob("torch-2.13.0*.whl")), None)
    assert found, "put a wheel of torch 2.13.0 for this Python into a folder that pip's find-links names"
    (loopback_index.folder / "torch").mkdir()
    (loopback_index.folder / "torch" / found.name).symlink_to(found)
    host = LiveHost()
    return Tools(host, Sources(host, index_url=loopback_index.url), lambda _event: None, CancelToken())


def _links() -> tuple[str, ...]:
    return tuple(link for link in Sources(LiveHost()).settings.find_links if "://" not in link)


HERE = Machine(os="linux", os_version="Debian 12", arch="x86_64", glibc="2.36", python=PYTHON)
CPU = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python=PYTHON, requirements=("torch==2.13.0", "numpy"))


@pytest.mark.torch
@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="the package is for Linux")
@pytest.mark.parametrize("program", ["uv", pytest.param("pip", marks=pytest.mark.heavy)])
def test_the_linux_package_makes_an_environment_that_computes(program, tools, tmp_path):
    """Unpacked in an empty folder and started, it installs what the lock names, computes, and can be started again."""
    name, packed = package_for(HERE, CPU, "Room 12", tools)
    assert name == f"linux-x86_64-cpu-torch2.13.0-py{PYTHON}.zip"
    folder = tmp_path / "a room"
    zipfile.ZipFile(io.BytesIO(packed)).extractall(folder)
    pins = [line for line in (folder / "requirements.txt").read_text("utf-8").splitlines() if "==" in line]
    assert {"torch", "numpy", "ipykernel"} <= {line.partition("==")[0] for line in pins}
    assert all("--hash=sha256:" in line for line in pins)
    path = _path(tmp_path / "bin", program)
    environment = {**os.environ, **Sources(LiveHost()).environment, "PATH": path}
    for name in ("PYTHONPATH", "PYTHONSAFEPATH", "VIRTUAL_ENV", "UV_FIND_LINKS", "PIP_FIND_LINKS"):
        environment.pop(name, None)
    for _again in range(2):
        done = subprocess.run(
            ["bash", folder / "install.sh"], cwd="/", env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(" ok\n") == 4
        assert "PyTorch works." in done.stdout
    code = "import torch, importlib.metadata as m; print(torch.__version__, m.version('ipykernel'))"
    said = subprocess.run([folder / "torch-env/bin/python", "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("2.13.0")


def _path(folder: Path, program: str) -> str:
    """Make a folder of the programs that a student's PC has: a Python, the system's own, and uv or not."""
    folder.mkdir()
    (folder / f"python{PYTHON}").symlink_to(sys._base_executable)
    if program == "uv":
        (folder / "uv").symlink_to(shutil.which("uv", path=str(Path(sys.executable).parent)))
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.process
def test_what_cannot_be_resolved_here_says_so(tools):
    """Without a wheel for that PC the package has no lock, and its README names the reason."""
    machine = Machine(os="windows", os_version="Windows 11", arch="x86_64", python="3.12")
    _name, packed = package_for(machine, replace(CPU, python="3.12"), "Room 13", tools)
    files = zipfile.ZipFile(io.BytesIO(packed))
    assert "pylock.toml" not in files.namelist()
    assert "torch==2.13.0" in files.read("requirements.txt").decode()
    assert "is not a lock" in files.read("README.md").decode()
    assert "No set of packages fits this plan" in files.read("README.md").decode()
