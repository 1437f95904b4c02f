"""The modules of the Ansible collection, run by Ansible on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from playbooks import COLLECTION, NAME, PROGRAMS, module, settings

pytestmark = pytest.mark.process
ASSISTANT = str(PROGRAMS / "assistant")
MODULES = ("assistant_bundle", "assistant_facts", "assistant_report", "assistant_setup", "assistant_verify")
HERE = f"linux-{platform.machine()}"
STARTS = """#!/bin/sh
# Stands in for a bundle's own start script: the assistant of these tests.
echo "{{\\"key\\": \\"chosen\\"}}"
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Make a folder like a bundle's: three kinds, of which one is for another platform, with small files."""
    folder = tmp_path / "bundle"
    contents = {
        "start.sh": STARTS,
        f"uv/{HERE}/uv": "a program",
        "wheels/shared.whl": "shared " * 999,
        "wheels/named.whl": "named " * 999,
        "wheels/chosen.whl": "chosen " * 999,
        "wheels/windows.whl": "windows",
    }
    for path, text in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "start.sh").chmod(0o755)
    files = [
        {"path": path, "sha256": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text)}
        for path, text in contents.items()
    ]
    kinds = [
        {"key": key, "machines": names, "platform": place, "files": ["wheels/shared.whl", f"wheels/{key}.whl"]}
        for key, names, place in (
            ("named", ["localhost"], HERE),
            ("chosen", [], HERE),
            ("windows", [], "windows-x86_64"),
        )
    ]
    index = {"schema": 1, "made": "2026-11-27T10:00:00Z", "files": files, "kinds": kinds}
    index["platforms"] = {HERE: ["start.sh", f"uv/{HERE}/uv"], "windows-x86_64": []}
    (folder / "bundle.json").write_text(json.dumps(index))
    return folder


def held(folder: Path) -> dict[str, str]:
    """Return the text of each file of a folder by its path."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def brings(tmp_path: Path, *words: str, **more: Any) -> dict[str, Any]:
    """Bring the bundle to the folder `there`."""
    return module(
        tmp_path, "assistant_bundle", *words, src=str(tmp_path / "bundle"), dest=str(tmp_path / "there"), **more
    )


def test_a_host_gets_what_it_needs_once(bundle, tmp_path):
    """The files of the platform and of the kind come with their rights; a second time nothing comes."""
    first = brings(tmp_path)
    assert first["changed"]
    assert first["kind"] == "named"
    there = held(tmp_path / "there")
    assert set(there) == {"bundle.json", "start.sh", f"uv/{HERE}/uv", "wheels/shared.whl", "wheels/named.whl"}
    assert there == {path: (bundle / path).read_text() for path in there}
    assert os.access(tmp_path / "there" / "start.sh", os.X_OK)
    assert first["bytes"] == sum((bundle / path).stat().st_size for path in there)
    again = brings(tmp_path)
    assert (again["changed"], again["carried"], again["bytes"]) == (False, [], 0)


def test_the_host_chooses_where_the_bundle_does_not_name_it(bundle, tmp_path):
    """The assistant comes first then, and says which kind the host gets; one for another system is refused."""
    index = json.loads((bundle / "bundle.json").read_text())
    index["kinds"][0]["machines"] = ["somebody-else"]
    (bundle / "bundle.json").write_text(json.dumps(index))
    (bundle / "start.sh").write_text(STARTS.replace("{{", "{").replace("}}", "}"))
    index["files"][0].update(
        sha256=hashlib.sha256((bundle / "start.sh").read_bytes()).hexdigest(),
        bytes=(bundle / "start.sh").stat().st_size,
    )
    (bundle / "bundle.json").write_text(json.dumps(index))
    assert brings(tmp_path, "--check")["kind"] == ""
    assert brings(tmp_path, kind="")["carried"] == ["start.sh", f"uv/{HERE}/uv", "bundle.json"]
    assert brings(tmp_path)["kind"] == "chosen"
    assert "wheels/chosen.whl" in held(tmp_path / "there")
    refused = brings(tmp_path, kind="windows")
    assert refused["msg"] == f"The bundle has no kind windows for {HERE}. It has: named, chosen."


def test_one_changed_byte_is_seen_and_mended(bundle, tmp_path):
    """Check mode names the file and changes nothing, the diff shows it; the next run brings it alone."""
    brings(tmp_path)
    damaged = tmp_path / "there" / "wheels" / "named.whl"
    damaged.write_bytes(b"N" + damaged.read_bytes()[1:])
    foreseen = brings(tmp_path, "--check", "--diff")
    assert foreseen["changed"]
    assert foreseen["carried"] == ["wheels/named.whl"]
    assert "+wheels/named.whl  5994 bytes" in foreseen["shown"]
    assert damaged.read_bytes()[:1] == b"N"
    assert brings(tmp_path)["carried"] == ["wheels/named.whl"]
    assert damaged.read_text() == (bundle / "wheels" / "named.whl").read_text()


def test_what_has_come_before_a_cut_is_kept(bundle, tmp_path):
    """Half a file is gone on with; if that half is not what it should be the file is refused, and comes anew."""
    digest = hashlib.sha256((bundle / "wheels" / "shared.whl").read_bytes()).hexdigest()
    half = tmp_path / "there" / ".incoming" / digest
    half.parent.mkdir(parents=True)
    half.write_text("wrong " * 99)
    refused = brings(tmp_path)
    assert refused["msg"].startswith("wheels/shared.whl is not the file that the bundle describes.")
    assert not half.exists()
    half.write_text("shared " * 99)
    assert "wheels/shared.whl" in brings(tmp_path)["carried"]
    assert held(tmp_path / "there")["wheels/shared.whl"] == (bundle / "wheels" / "shared.whl").read_text()
    assert not any(half.parent.iterdir())


@pytest.mark.parametrize("path", ["../outside", "/etc/outside", "wheels/../../outside", "C:outside", "a\\b"])
def test_no_file_leaves_the_folder(bundle, tmp_path, path):
    """A bundle whose index names a file elsewhere is refused before anything is asked of the host."""
    index = json.loads((bundle / "bundle.json").read_text())
    index["files"][1]["path"] = path
    (bundle / "bundle.json").write_text(json.dumps(index))
    assert brings(tmp_path)["msg"] == f"bundle.json names a file outside the bundle: {path}"
    assert not (tmp_path / "there").exists()


def test_a_folder_that_is_no_finished_bundle_is_refused(bundle, tmp_path):
    """The sentence says what to run."""
    index = json.loads((bundle / "bundle.json").read_text())
    (bundle / "bundle.json").write_text(json.dumps({**index, "made": ""}))
    assert brings(tmp_path)["msg"].endswith("is not finished, or too new. Run `assistant bundle make` again.")
    (bundle / "bundle.json").unlink()
    assert "is no bundle: " in brings(tmp_path)["msg"]


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
    assert refused["msg"].startswith(f"{tmp_path}/empty/start.sh is not on this host. Bring a bundle")
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
    """Check mode resolves, the diff lists every package, and nothing is written."""
    loopback_index.add("torch", "2.13.0+cpu")
    for name in ("numpy", "onnx", "onnxruntime", "ipykernel"):
        loopback_index.add(name, "1.0")
    own = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": loopback_index.url, "PIP_FIND_LINKS": ""}
    target = tmp_path / "torch"
    wanted = {"target": str(target), "backend": "cpu", "pins": ["torch==2.13.0"], "index_url": loopback_index.url}
    foreseen = module(tmp_path, "assistant_setup", "--check", "--diff", env=own, program=ASSISTANT, **wanted)
    assert foreseen["changed"], foreseen
    assert "+torch==2.13.0+cpu" in foreseen["shown"]
    assert foreseen["plan"]["backend"] == "cpu"
    assert not target.exists()


@pytest.mark.torch
def test_what_stands_is_left_and_verified(cpu_setup, tmp_path):
    """An environment that computes passes, and its record has the name that was given."""
    target = cpu_setup["environment"]["path"]
    verified = module(tmp_path, "assistant_verify", program=ASSISTANT, target=target)
    assert (verified["changed"], verified["failing"]) == (False, [])
    assert verified["report"]["device"] == "cpu"
    told = module(tmp_path, "assistant_report", program=ASSISTANT, target=target, name="pc-07")
    assert told["record"]["name"] == "pc-07"
    assert told["record"]["report"]["checks"]


def test_the_documentation_is_shown():
    """`ansible-doc` shows each module with its options, an example, and what check mode and diff mode do."""
    names = [f"{NAME}.{name}" for name in MODULES]
    done = subprocess.run(
        [PROGRAMS / "ansible-doc", "--json", "-t", "module", *names],
        env=settings(COLLECTION),
        capture_output=True,
        text=True,
        check=True,
    )
    shown = json.loads(done.stdout)
    assert set(shown) == set(names)
    for name in names:
        about = shown[name]
        assert set(about["doc"]["attributes"]) >= {"check_mode", "diff_mode"}
        assert all(option["description"] for option in about["doc"]["options"].values())
        assert name in about["examples"]
        assert about["return"]


def test_the_collection_has_the_projects_version():
    """Its version, and the roles that its playbook names, are those that are there."""
    about = yaml.safe_load((COLLECTION / "galaxy.yml").read_text(encoding="utf-8"))
    from assistant import __version__  # noqa: PLC0415 - only this test needs it

    assert about["version"] == __version__
    plays = yaml.safe_load((COLLECTION / "playbooks" / "site.yml").read_text(encoding="utf-8"))
    roles = [role for play in plays for role in play["roles"]]
    assert roles == [f"{NAME}.{name}" for name in ("bundle", "machine", "page")]
    assert {path.name for path in (COLLECTION / "roles").iterdir()} == {"bundle", "machine", "page"}
