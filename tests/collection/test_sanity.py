"""The collection is held to Ansible's own rules, and installed as a person does it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from playbooks import COLLECTION, NAME, PROGRAMS, settings

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
# Where ansible-test would fetch get-pip.py from an address of its own, its cache has this: the pip that Python brings.
BRINGS_PIP = """
import subprocess, sys
subprocess.check_call([sys.executable, "-m", "ensurepip"])
words = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "-q", *words]))
"""


def run(folder: Path, home: Path, *words: str, **more: str) -> str:
    """Run a program of Ansible's in a folder, with some variables; return what it says."""
    done = subprocess.run(
        [PROGRAMS / words[0], *words[1:]],
        cwd=folder,
        env={**settings(home, more), "PATH": f"{PROGRAMS}:/usr/local/bin:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a home whose pip is set as the user's, and whose cache has what brings a pip."""
    folder = tmp_path / "home"
    (folder / ".config").mkdir(parents=True)
    for name in (".config/pip", ".pip"):
        if (Path.home() / name).exists():
            (folder / name).symlink_to(Path.home() / name)
    source = Path(sysconfig.get_path("purelib")) / "ansible_test" / "_internal" / "python_requirements.py"
    (version,) = re.findall(r"pip='([\d.]+)'", source.read_text(encoding="utf-8"))
    brings = folder / ".ansible" / "test" / "cache" / f"get_pip_{version.replace('.', '_')}.py"
    brings.parent.mkdir(parents=True)
    brings.write_text(BRINGS_PIP)
    return folder


def test_sanity(home, tmp_path):
    """`ansible-test sanity` has nothing to say; what it needs comes from PyPI."""
    copy = tmp_path / "ansible_collections" / "torch_setup" / "assistant"
    shutil.copytree(COLLECTION, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for words in ("init --quiet", "add --all"):  # ansible-test looks at the files that git knows
        subprocess.run(["git", *words.split()], cwd=copy, check=True)
    said = run(copy, home, "ansible-test", "sanity", "--requirements", "--python", "default", "--color", "no")
    assert 'Running sanity test "validate-modules"' in said
    assert "ERROR" not in said


def test_it_is_installed_from_the_project(home, tmp_path):
    """`ansible-galaxy` takes the folder as it is, and Ansible finds the playbook with its roles."""
    own = {"ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "collections")}
    run(tmp_path, home, "ansible-galaxy", "collection", "install", str(COLLECTION), "--offline", **own)
    assert (tmp_path / "collections" / "ansible_collections" / "torch_setup" / "assistant" / "MANIFEST.json").is_file()
    run(tmp_path, home, "ansible-playbook", f"{NAME}.site", "--syntax-check", **own)
