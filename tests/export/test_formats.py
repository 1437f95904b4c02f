"""Each exported format does its work with the tool that it is for."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from export.setups import ENVIRONMENT, PLAN, SETUP
from hypothesis import given
from hypothesis import strategies as st
from loopback import LoopbackIndex
from tables import each

from assistant.export import read_config
from assistant.export.config import config_text
from assistant.export.launch import variable_files
from assistant.export.packages import pinned_files, pyproject_text, requirements_text
from assistant.export.setup import clean
from assistant.model.errors import BadInput

change = msgspec.structs.replace


def dotenv_text(setup):
    """Give the `.env` of a setup."""
    return variable_files(setup)[".env"]


def test_the_configuration_reads_back_into_the_same_records():
    """`assistant.toml` keeps machine, plan, environment and verification; of the environment's path only the name."""
    config = read_config(config_text(SETUP))
    assert config.machine == SETUP.machine
    assert config.plan == SETUP.plan
    assert config.environment == change(ENVIRONMENT, path="torch env", python="bin/python")
    assert config.verification == SETUP.report
    assert config.versions["torch"] == "2.6.0"


@each(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 2", "schema 2; this version reads schema 1"),
        ("schema = 1", "schema = true", "has schema True"),
        ("schema = 1\n", "", "not a configuration"),
        ("[plan]", "[plan", "not valid TOML"),
        ('backend = "cuda"', 'backend = "banana"', "banana"),
        ('torch = "2.6.0"', "torch = 2.6", r"at plan.torch"),
        ('variant = "cu126"', 'variant = "cu126"\nsurprise = 1', "surprise"),
        ("schema = 1", "schema = 1\nx = " + "[" * 5000, "not valid TOML"),
    ],
)
def test_a_configuration_that_is_wrong_is_refused_in_one_sentence(old, new, said):
    """Another schema, broken TOML, a wrong type or an unknown key is named."""
    text = config_text(SETUP)
    assert old in text
    with pytest.raises(BadInput, match=said) as caught:
        read_config(text.replace(old, new, 1))
    assert caught.value.hint
    assert "\n" not in str(caught.value.message)


def test_a_truncated_configuration_never_escapes_as_another_error():
    """Cut anywhere, the file is read or refused."""
    text = config_text(SETUP)
    for end in range(0, len(text), 7):
        with suppress(BadInput):
            assert read_config(text[:end]).plan == PLAN


VALUES = {
    "PLAIN": "cuda:0,1",
    "SPACES": "two words # no comment",
    "DOLLAR": "$HOME `id` $(id)",
    "QUOTES": 'it\'s "quoted" $HOME \\n',
    "LINES": "one\ntwo",
    "EMPTY": "",
}


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_reads_the_variables_back_and_runs_nothing():
    """Sourced by bash, every value arrives as it was; only line feeds become spaces."""
    text = dotenv_text(change(SETUP, plan=change(PLAN, env={**VALUES, "BAD NAME; id": "x"})))
    names = [*VALUES, "INFERENCE_DEVICE"]
    script = 'set -a; . /dev/stdin; exec "$0" -c "import json, os; print(json.dumps(dict(os.environ)))"'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable], input=text, capture_output=True, text=True, check=True
    )
    seen = json.loads(done.stdout)
    assert {name: seen[name] for name in names} == {**VALUES, "LINES": "one two", "INFERENCE_DEVICE": "cuda"}
    assert "BAD NAME" not in text


def test_the_device_that_was_verified_is_the_one_in_the_file():
    """`INFERENCE_DEVICE` names the verified device even where the plan's variables name another."""
    text = dotenv_text(change(SETUP, plan=change(PLAN, env={"INFERENCE_DEVICE": "cpu"})))
    assert "INFERENCE_DEVICE=cuda\n" in text
    assert text.count("INFERENCE_DEVICE") == 1


def test_without_an_index_of_its_own_everything_comes_from_pips_sources():
    """A plan from pip's default sources pins versions and names no address; pip itself is left out."""
    text = requirements_text(change(SETUP, plan=change(PLAN, index_url=None)))
    assert "--" not in text
    assert "pip==" not in text
    assert "torch==2.6.0+cu126\n" in text


def test_what_a_project_adds_to_the_sources_is_written_or_said():
    """A page of wheels serves its own names and is named; an index would answer for any, so the reader is told."""
    page, index = "https://wheels.example/links.html", "https://company.example/simple"
    plan = change(PLAN, indexes=(index,), links=("/home/jane/wheels", page))
    text = requirements_text(change(SETUP, plan=plan))
    assert f"--find-links {page}\n" in text
    assert "jane" not in text
    (told,) = (line for line in text.splitlines() if index in line)
    assert told.startswith("# Without these indexes in pip's settings")


def test_without_known_packages_the_plans_requirements_are_written():
    """An environment whose packages are unknown gives the plan's own lines."""
    text = requirements_text(change(SETUP, environment=change(ENVIRONMENT, packages={})))
    assert "\ntorch==2.6.0\nnumpy\n" in text


@pytest.fixture(scope="module")
def pip(large_folder):
    """Give the command of a real pip that reads nobody's configuration."""
    folder = large_folder("pip") / "environment"
    venv.create(folder, with_pip=True, symlinks=os.name != "nt")
    return [str(Path(sysconfig.get_path("scripts", "venv", vars={"base": str(folder)})) / "python"), "-m", "pip"]


@pytest.fixture
def asked(tmp_path, loopback_index):
    """Write the requirements for an index of torch, with decoys on either side; give them and the other index."""
    (tmp_path / "pypi").mkdir()
    pypi = LoopbackIndex(tmp_path / "pypi")
    loopback_index.add("torch", "2.6.0+cu126", requires=("numpy",))
    loopback_index.add("triton", "3.2.0")
    loopback_index.add("numpy", "2.1.0")  # a decoy: numpy is not torch's family
    loopback_index.add("torchmetrics", "1.6.0+decoy")
    for name, version in {"torch": "2.6.0", "numpy": "2.1.0", "torchmetrics": "1.6.0"}.items():
        pypi.add(name, version)
    file = tmp_path / "requirements.txt"
    file.write_text(requirements_text(change(SETUP, plan=change(PLAN, index_url=loopback_index.url))), "utf-8")
    yield file, pypi.url
    pypi.close()


def without_settings(*command):
    """Run a command that reads nobody's settings of pip; answer what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.upper().startswith("PIP_")}
    done = subprocess.run(
        command, env={**clean, "PIP_CONFIG_FILE": os.devnull}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.process
def test_pip_takes_torchs_family_from_its_index_and_nothing_else_from_there(pip, tmp_path, asked, loopback_index):
    """With a decoy on either side, the real pip finds torch on the index of torch, the rest on its own index."""
    (file, pypi), report = asked, tmp_path / "told.json"
    without_settings(*pip, "install", "--dry-run", "--index-url", pypi, "--report", report, "-r", file)
    taken = {row["metadata"]["name"]: row["download_info"]["url"] for row in json.loads(report.read_text())["install"]}
    assert {name for name, url in taken.items() if url.startswith(loopback_index.url)} == {"torch", "triton"}
    assert {name for name, url in taken.items() if url.startswith(pypi)} == {"numpy", "torchmetrics"}


@pytest.mark.process
def test_pip_tools_pins_what_was_asked_for(tmp_path, asked):
    """`pip-compile` reads the requirements and keeps the build of torch."""
    (file, pypi), pinned = asked, tmp_path / "pinned.txt"
    compile_ = (sys.executable, "-m", "piptools", "compile", "--index-url", pypi, "--cache-dir", tmp_path / "cache")
    without_settings(*compile_, "--strip-extras", "--output-file", pinned, file)
    assert {"torch==2.6.0+cu126", "triton==3.2.0", "numpy==2.1.0"} < {
        line.partition(" ")[0] for line in pinned.read_text("utf-8").splitlines()
    }


@pytest.mark.process
def test_uv_locks_the_project_with_torch_from_its_own_index(tmp_path, loopback_index):
    """`uv lock` solves `pyproject.toml`: torch from its own index, all else not, decoys on either side."""
    (tmp_path / "pypi").mkdir()
    pypi = LoopbackIndex(tmp_path / "pypi")
    loopback_index.add("torch", "2.6.0+cu126", requires=("numpy",))
    loopback_index.add("triton", "3.2.0")
    loopback_index.add("numpy", "2.1.0")
    for name, version in {"torch": "2.6.0", "triton": "3.2.0", "numpy": "2.1.0", "torchmetrics": "1.6.0"}.items():
        pypi.add(name, version)
    plan = change(PLAN, index_url=loopback_index.url, requirements=("torch==2.6.0", "numpy", "torchmetrics"))
    (tmp_path / "pyproject.toml").write_text(pyproject_text(change(SETUP, plan=plan)), "utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
    command = [
        sys.executable,
        "-m",
        "uv",
        "lock",
        "--no-config",
        "--default-index",
        pypi.url,
        "--python",
        sys.executable,
    ]
    text = (
        (tmp_path / "pyproject.toml")
        .read_text("utf-8")
        .replace("==3.12.*", f"=={sys.version_info[0]}.{sys.version_info[1]}.*")
    )
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
    pypi.close()
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in tomllib.loads((tmp_path / "uv.lock").read_text("utf-8"))["package"]}
    assert rows["torch"]["version"] == "2.6.0+cu126"
    taken = {name for name, row in rows.items() if row["source"].get("registry") == loopback_index.url}
    assert taken == {"torch", "triton"}


@pytest.mark.process
def test_pip_keeps_to_the_constraints(pip, tmp_path, loopback_index):
    """`pip install -c constraints.txt` takes the version that was installed, not the newest."""
    for version in ("2.1.0", "2.9.9"):
        loopback_index.add("numpy", version)
    (tmp_path / "constraints.txt").write_text(pinned_files(SETUP)["constraints.txt"], "utf-8")
    constraints = tmp_path / "constraints.txt"
    said = without_settings(*pip, "install", "--dry-run", "--index-url", loopback_index.url, "-c", constraints, "numpy")
    assert "Would install numpy-2.1.0" in said


POWERSHELL_LINE = re.compile(r"\$env:([A-Za-z_]\w*) = '((?:[^'\u2018-\u201b]|(['\u2018-\u201b])\3)*)'")


@given(st.dictionaries(st.sampled_from(["A", "B", "C_1"]), st.text(max_size=40)))
def test_powershell_can_read_every_value_as_one_literal(values):
    """By the rules of its manual, each line is one assignment of one literal that gives the value back."""
    setup = change(SETUP, plan=change(PLAN, env=values))
    on_one_line = {name: " ".join(value.splitlines()) for name, value in values.items()}
    expected = {**on_one_line, "INFERENCE_DEVICE": "cuda"}
    lines = variable_files(setup)["env.ps1"].split("\n")[1:-1]
    found = map(POWERSHELL_LINE.fullmatch, lines)
    assert {line[1]: re.sub("(['\u2018-\u201b])\\1", r"\1", line[2]) for line in found} == expected


def test_a_lock_holds_nothing_that_an_index_may_tell_or_not():
    """Sizes and times of files come and go with the index's answer; addresses and hashes stay."""
    notes = "upload-time = 2026-10-10T14:06:04Z, size = 5, "
    lock = f'# uv\n[[packages]]\nname = "a"\nwheels = [{{ url = "u", {notes}hashes = {{}} }}]\n'
    cleaned = clean(change(SETUP, lock=lock))
    assert cleaned.lock == '[[packages]]\nname = "a"\nwheels = [{ url = "u", hashes = {} }]\n'
