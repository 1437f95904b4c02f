"""Runs Ansible with the project's collection, as a person does: one module, or a playbook."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COLLECTIONS = Path(__file__).parents[1] / "ansible"
COLLECTION = COLLECTIONS / "ansible_collections" / "torch_setup" / "assistant"
NAME = "torch_setup.assistant"
PROGRAMS = Path(sysconfig.get_path("scripts"))


def settings(home: Path, more: Mapping[str, str] = {}) -> dict[str, str]:
    """Return the variables for Ansible's programs, whose own files go into a home of the test's."""
    own = {"HOME": str(home), "ANSIBLE_HOME": str(home / ".ansible"), "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    own |= {"XDG_STATE_HOME": str(home / "state"), "XDG_DATA_HOME": str(home / "data")}  # no other test's last setup
    shown = {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json", "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCALHOST_WARNING": "0"}
    return {**os.environ, "LC_ALL": "C.UTF-8", **own, **shown, **more}


def module(home: Path, called: str, /, *words: str, env: Mapping[str, str] = {}, **arguments: Any) -> dict[str, Any]:
    """Run a module on this machine, with some variables; return its answer."""
    command = [PROGRAMS / "ansible", "localhost", "-c", "local", "-m", f"{NAME}.{called}", "-a", json.dumps(arguments)]
    more = {"ANSIBLE_PYTHON_INTERPRETER": "auto_silent", **env}
    done = subprocess.run(
        [*command, *words], env=settings(home, more), capture_output=True, text=True, check=False, cwd=home
    )
    found = re.search(r"^localhost \| \w+!? => (\{.*\})", done.stdout, re.MULTILINE | re.DOTALL)
    assert found, done.stdout + done.stderr
    return json.loads(found[1])
