"""The Binder demo: the image that repo2docker would build, and what its pod does afterwards, on the CPU path."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = [pytest.mark.process, pytest.mark.full]

ROOT = Path(__file__).parents[2]
BINDER = ROOT / "binder"
MEMORY = 2 * 2**30  # what a pod of mybinder.org may use, in bytes


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command and keep what it says."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def dockerfile(tmp_path_factory) -> str:
    """Let repo2docker render the project as it would build it."""
    copy = tmp_path_factory.mktemp("binder") / "project"
    copy.mkdir()
    for name in ("assistant", "binder", "notebooks", "pyproject.toml", "environment.yml", "README.md", "LICENSE"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
    done = run(sys.executable, "-W", "ignore", "-m", "repo2docker", "--no-build", "--debug", copy)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_image_is_made_from_binders_own_file(dockerfile):
    """binder/environment.yml is taken and hides the root's; its Python is the pinned one."""
    assert "COPY --chown=0:0 src/binder/environment.yml" in dockerfile
    assert re.search(r'env update -p \S+ --file "binder/environment\.yml"', dockerfile)
    assert "environment-2epy-2d3-2e12" in dockerfile
    assert "src/environment.yml ${REPO_DIR}/environment.yml" not in dockerfile


@pytest.mark.parametrize("platform", ["x86_64-manylinux_2_28", "x86_64-pc-windows-msvc", "aarch64-apple-darwin"])
def test_every_pip_line_resolves(platform, tmp_path):
    """What Binder and conda install through pip can be had for Linux, Windows and macOS."""
    lines = yaml.safe_load((BINDER / "environment.yml").read_text("utf-8"))["dependencies"][-1]["pip"]
    wanted = tmp_path / "requirements.in"
    wanted.write_text("\n".join([*lines, str(ROOT)]))
    compiled = run(
        *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--python-version", "3.12"),
        *("--python-platform", platform, "--only-binary", ":all:", "--no-binary", "torch-setup-assistant", wanted),
    )
    assert compiled.returncode == 0, compiled.stderr


def limited() -> None:
    """Give the process what a pod has: 2 GB for its data."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


@pytest.mark.skipif(sys.platform != "linux", reason="a pod runs Linux")
def test_the_pod_sets_up_the_cpu_path_in_2_gb(tmp_path):
    """Without any privilege and with 2 GB the demo installs, verifies and exports; its processes stay below that."""
    homes = {name: str(tmp_path / name) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
    plain = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"] if os.geteuid() == 0 else []
    done = run(
        *(*plain, sys.executable, "-m", "assistant", "setup", "--yes", "--json", "--backend", "cpu"),
        *("--target", tmp_path / "env", "--to", tmp_path / "exported"),
        env={**os.environ, **homes, "LANGUAGE": "en"},
        preexec_fn=limited,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["report"]
    assert {check["status"] for check in report["checks"]} == {"passed"}
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < MEMORY


def test_the_links_of_the_documentation_open_what_is_there():
    """Each Binder link names a notebook of the project in its urlpath."""
    page = (ROOT / "docs" / "how-to" / "binder.md").read_text("utf-8")
    named = re.findall(r"urlpath=(?:lab|doc)/tree/([\w/.-]+\.ipynb)", page)
    assert len(named) >= 2
    assert all((ROOT / name).exists() for name in named)
