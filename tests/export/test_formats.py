"""Each exported format does its work with the tool that it is for."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from export.setups import DETECTION, ENVIRONMENT, PLAN, REPORT
from loopback import LoopbackIndex

from assistant.export import read_config
from assistant.export.bundle import Bundle
from assistant.export.config import config_text
from assistant.export.requirements import requirements_text
from assistant.export.shells import dotenv_text
from assistant.model.errors import BadInput

change = msgspec.structs.replace
BUNDLE = Bundle(machine=DETECTION.machine, plan=PLAN, environment=ENVIRONMENT, report=REPORT)


def test_the_configuration_reads_back_into_the_same_records():
    """`assistant.toml` keeps machine, plan, environment and verification; of the environment's path only the name."""
    config = read_config(config_text(BUNDLE))
    assert config.machine == BUNDLE.machine
    assert config.plan == BUNDLE.plan
    assert config.environment == change(ENVIRONMENT, path="torch env", python="bin/python")
    assert config.verification == BUNDLE.report
    assert config.versions["torch"] == "2.6.0"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 2", "schema 2; this version reads schema 1"),
        ("schema = 1", "schema = true", "has schema True"),
        ("schema = 1\n", "", "has schema None"),
        ("[plan]", "[plan", "not valid TOML"),
        ('backend = "cuda"', 'backend = "banana"', "banana"),
        ('torch = "2.6.0"', "torch = 2.6", r"\$.plan.torch"),
        ('variant = "cu126"', 'variant = "cu126"\nsurprise = 1', "surprise"),
        ("schema = 1", "schema = 1\nx = " + "[" * 5000, "not valid TOML"),
    ],
)
def test_a_configuration_that_is_wrong_is_refused_in_one_sentence(old, new, said):
    """Another schema, broken TOML, a wrong type or an unknown key is named."""
    text = config_text(BUNDLE)
    assert old in text
    with pytest.raises(BadInput, match=said) as caught:
        read_config(text.replace(old, new, 1))
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_a_truncated_configuration_never_escapes_as_another_error():
    """Cut anywhere, the file is read or refused."""
    text = config_text(BUNDLE)
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


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_reads_the_variables_back_and_runs_nothing():
    """Sourced by bash, every value arrives as it was; only line feeds become spaces."""
    text = dotenv_text(change(BUNDLE, plan=change(PLAN, env={**VALUES, "BAD NAME; id": "x"})))
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
    text = dotenv_text(change(BUNDLE, plan=change(PLAN, env={"INFERENCE_DEVICE": "cpu"})))
    assert "INFERENCE_DEVICE=cuda\n" in text
    assert text.count("INFERENCE_DEVICE") == 1


def test_without_an_index_of_its_own_everything_comes_from_pips_sources():
    """A plan from pip's default sources pins versions and names no address; pip itself is left out."""
    text = requirements_text(change(BUNDLE, plan=change(PLAN, index_url=None)))
    assert "--" not in text
    assert "pip==" not in text
    assert "torch==2.6.0+cu126\n" in text


def test_without_known_packages_the_plans_requirements_are_written():
    """An environment whose packages are unknown gives the plan's own lines."""
    text = requirements_text(change(BUNDLE, environment=change(ENVIRONMENT, packages={})))
    assert "\ntorch==2.6.0\nnumpy\n" in text


@pytest.fixture(scope="module")
def pip(tmp_path_factory):
    """Give the command of a real pip that reads nobody's configuration."""
    folder = tmp_path_factory.mktemp("pip") / "environment"
    venv.create(folder, with_pip=True, symlinks=os.name != "nt")
    return [str(Path(sysconfig.get_path("scripts", "venv", vars={"base": str(folder)})) / "python"), "-m", "pip"]


def test_pip_takes_torchs_family_from_its_index_and_nothing_else_from_there(pip, tmp_path, loopback_index):
    """With a decoy on either side, the real pip finds torch on the index of torch, the rest on its own index."""
    (tmp_path / "pypi").mkdir()
    pypi = LoopbackIndex(tmp_path / "pypi")
    loopback_index.add("torch", "2.6.0+cu126", requires=("numpy",))
    loopback_index.add("triton", "3.2.0")
    loopback_index.add("numpy", "2.1.0")  # a decoy: numpy is not torch's family
    loopback_index.add("torchmetrics", "1.6.0+decoy")
    for name, version in {"torch": "2.6.0", "numpy": "2.1.0", "torchmetrics": "1.6.0"}.items():
        pypi.add(name, version)
    text = requirements_text(change(BUNDLE, plan=change(PLAN, index_url=loopback_index.url)))
    file, told = tmp_path / "requirements.txt", tmp_path / "told.json"
    file.write_text(text, "utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.upper().startswith("PIP_")}
    command = [*pip, "install", "--dry-run", "--index-url", pypi.url, "--report", str(told), "-r", str(file)]
    done = subprocess.run(
        command, env={**clean, "PIP_CONFIG_FILE": os.devnull}, capture_output=True, text=True, check=False
    )
    pypi.close()
    assert done.returncode == 0, done.stdout + done.stderr
    taken = {row["metadata"]["name"]: row["download_info"]["url"] for row in json.loads(told.read_text())["install"]}
    assert {name for name, url in taken.items() if url.startswith(loopback_index.url)} == {"torch", "triton"}
    assert {name for name, url in taken.items() if url.startswith(pypi.url)} == {"numpy", "torchmetrics"}
