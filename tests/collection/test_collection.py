"""The Ansible collection: its modules, its role and its playbook run by Ansible here."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from playbooks import COLLECTION, NAME, PROGRAMS, module, settings

from assistant import __version__

pytestmark = [pytest.mark.process, pytest.mark.full]
ASSISTANT = str(PROGRAMS / "assistant")


def test_facts_are_the_machine(tmp_path):
    """What `detect --json` prints becomes a fact, in check mode, too; nothing is changed."""
    answer = module(tmp_path, "assistant_facts", "--check", program=ASSISTANT)
    machine = answer["ansible_facts"]["torch_setup_machine"]
    assert not answer["changed"]
    assert (machine["os"], machine["arch"]) == (sys.platform, platform.machine())


def test_without_the_assistant_the_next_step_is_said(tmp_path):
    """A module names what is missing; in check mode the setup says that it would begin there."""
    (tmp_path / "empty").mkdir()
    refused = module(tmp_path, "assistant_facts", bundle=str(tmp_path / "empty"))
    assert refused["msg"].startswith(f"{tmp_path}/empty/start.sh is not on this host. Install the assistant there")
    target = str(tmp_path / "torch")
    foreseen = module(tmp_path, "assistant_setup", "--check", bundle=str(tmp_path / "empty"), target=target)
    assert foreseen["changed"]
    assert foreseen["msg"] == "The assistant is not on this host yet. It would be set up, and PyTorch by it."


def test_a_failure_is_the_assistants_own_sentence(tmp_path):
    """In the language that is asked for, with the exit code and the command."""
    target = str(tmp_path / "nothing")
    refused = module(tmp_path, "assistant_verify", program=ASSISTANT, target=target, lang="zh_CN")
    assert re.match(rf"{re.escape(target)} *不是", refused["msg"]), refused["msg"]
    assert refused["rc"] == 2
    assert refused["cmd"] == [ASSISTANT, "verify", "--target", target, "--json"]


def test_what_an_installation_would_bring_is_shown(loopback_index, tmp_path):
    """Check mode resolves, every package is listed, and nothing is written."""
    loopback_index.add("torch", "2.13.0+cpu")
    for name in ("numpy", "onnx", "onnxruntime", "ipykernel"):
        loopback_index.add(name, "1.0")
    own = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": loopback_index.url, "PIP_FIND_LINKS": ""}
    target = tmp_path / "torch"
    wanted = {"target": str(target), "backend": "cpu", "pins": ["torch==2.13.0"], "index_url": loopback_index.url}
    foreseen = module(tmp_path, "assistant_setup", "--check", env=own, program=ASSISTANT, **wanted)
    assert foreseen["changed"], foreseen
    assert foreseen["packages"]["torch"] == "2.13.0+cpu"
    assert foreseen["plan"]["backend"] == "cpu"
    assert not target.exists()


def plays(folder: Path, *words: str) -> str:
    """Run `ansible-playbook` in a folder; return what it says."""
    command = [PROGRAMS / "ansible-playbook", *words]
    done = subprocess.run(command, cwd=folder, env=settings(folder), capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.torch
def test_the_role_leaves_what_is_there_and_verifies_it(cpu_setup, tmp_path):
    """Played over an environment that holds the plan already it changes nothing; a module returns every check."""
    target = cpu_setup["environment"]["path"]
    verified = module(tmp_path, "assistant_verify", program=ASSISTANT, target=target)
    assert (verified["changed"], verified["failing"]) == (False, [])
    assert verified["report"]["device"] == "cpu"
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "roles": [f"{NAME}.machine"]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    given = {"torch_setup_program": ASSISTANT, "torch_setup_target": target, "torch_setup_backend": "cpu"}
    said = plays(tmp_path, "play.yml", "-e", json.dumps(given))
    assert re.search(r"^localhost +: ok=4 +changed=0 +unreachable=0 +failed=0", said, re.MULTILINE), said


def test_the_table_has_a_row_for_every_host(tmp_path):
    """What a host is and what is wrong there; one without the assistant and one that nobody reaches say so."""
    here = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
    (tmp_path / "hosts.ini").write_text(
        f"here {here} torch_setup_program={ASSISTANT}\n"
        f"bare {here} torch_setup_program={tmp_path}/none\n"
        "gone ansible_host=192.0.2.1 ansible_ssh_common_args='-o ConnectTimeout=1 -o BatchMode=yes'\n"
    )
    table = tmp_path / "table.csv"
    said = plays(tmp_path, "-i", "hosts.ini", f"{NAME}.table", "-e", f"torch_setup_table={table}")
    assert table.exists(), said
    rows = {row["host"]: row for row in csv.DictReader(table.read_text("utf-8").splitlines())}
    assert {"here", "bare", "gone"} == set(rows), said
    assert rows["here"]["state"] in {"good", "could be better", "broken"}
    assert rows["here"]["system"]
    assert (rows["bare"]["state"], rows["gone"]["state"]) == ("no answer", "unreachable")
    assert f"{tmp_path}/none" in rows["bare"]["problems"]


def test_the_collection_has_the_projects_version():
    """Both are released together."""
    about = yaml.safe_load((COLLECTION / "galaxy.yml").read_text(encoding="utf-8"))
    assert about["version"] == __version__


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


def test_it_is_installed_from_the_project(tmp_path):
    """`ansible-galaxy` takes the folder as it is, and Ansible finds the playbook and the role."""
    home = tmp_path / "home"
    home.mkdir()
    own = {"ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "collections")}
    run(tmp_path, home, "ansible-galaxy", "collection", "install", str(COLLECTION), "--offline", **own)
    assert (tmp_path / "collections" / "ansible_collections" / "torch_setup" / "assistant" / "MANIFEST.json").is_file()
    run(tmp_path, home, "ansible-playbook", f"{NAME}.table", "--syntax-check", **own)
    shown = run(tmp_path, home, "ansible-doc", "-t", "role", "--json", f"{NAME}.machine", **own)
    assert set(json.loads(shown)) == {f"{NAME}.machine"}
