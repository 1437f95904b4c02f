#!/usr/bin/python
# Copyright: The torch-setup-assistant maintainers
# SPDX-License-Identifier: MIT OR GPL-3.0-or-later
# As you choose: MIT License (see LICENSE), or
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Installs the PyTorch that fits a host into an environment, and verifies it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: assistant_setup
short_description: Install the PyTorch that fits a host, and verify it
description:
  - Lets the assistant on the host install its plan into an environment, and verify it. Nothing is changed where the
    environment holds all of the plan already.
  - An installation ends with all of the plan, or with everything as it was. What a killed one has left is rolled back
    first, in check mode, too, since nothing can be said about a half of an environment.
  - From a bundle, the wheels of the host's kind are installed as they were locked, without any network.
version_added: 0.1.0
author:
  - The torch-setup-assistant maintainers (@torch-setup-assistant)
extends_documentation_fragment:
  - torch_setup.assistant.host
options:
  target:
    description: The folder of the environment.
    type: path
    required: true
  backend:
    description: The backend to use; by default the best one for the host.
    type: str
    choices: [cuda, rocm, directml, mps, xpu, cpu]
  kind:
    description: The key of a kind, as C(bundle.json) names it; by default the one that fits the host.
    type: str
  pins:
    description: Requirements that must hold, such as V(torch==2.13.0). A bundle has its own.
    type: list
    elements: str
    default: []
  purpose:
    description: What the environment is for, as C(assistant install --for) takes it. A bundle has its own.
    type: str
  python:
    description: The Python of the environment, such as V(3.12). A bundle has its own.
    type: str
  index_url:
    description: The index that torch comes from. A bundle needs none.
    type: str
  find_links:
    description: Folders or pages that have wheels, too. A bundle needs none.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: Resolves and says what would be installed; on a host without the assistant it says only that.
  diff_mode:
    support: none
    description: What is or would be installed is returned as RV(packages).
"""

EXAMPLES = r"""
- name: Set up what fits this machine, from the bundle
  torch_setup.assistant.assistant_setup:
    bundle: /var/lib/torch-setup/bundle
    target: /opt/torch

- name: Set up a course's environment where the assistant is installed, and packages come from an index
  torch_setup.assistant.assistant_setup:
    program: /opt/assistant/bin/assistant
    target: /opt/course
    purpose: course
    backend: cpu
"""

RETURN = r"""
environment:
  description: The environment as it stands - its folder, its Python, its kernel, its packages.
  returned: when it was installed, or was there already
  type: dict
plan:
  description: The plan that it was made for, with its reasons.
  returned: when the assistant is on the host
  type: dict
packages:
  description: The packages that the environment is to hold, each with its version.
  returned: when the assistant is on the host
  type: dict
  sample: {"torch": "2.13.0+cpu", "numpy": "2.4.6"}
restored:
  description: What a killed installation had left in the target, and what became of it.
  returned: when the assistant is on the host
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.torch_setup.assistant.plugins.module_utils.assistant import (
    HOST_OPTIONS,
    ONE_OF,
    ask,
    find,
    options,
)

OPTIONS = {
    "backend": {"type": "str", "choices": ["cuda", "rocm", "directml", "mps", "xpu", "cpu"]},
    "kind": {"type": "str"},
    "pins": {"type": "list", "elements": "str", "default": []},
    "purpose": {"type": "str"},
    "python": {"type": "str"},
    "index_url": {"type": "str"},
    "find_links": {"type": "list", "elements": "str", "default": []},
}


def main():
    """Say what would be installed; install it, unless it is there or only asked for."""
    module = AnsibleModule(
        argument_spec={**HOST_OPTIONS, "target": {"type": "path", "required": True}, **OPTIONS},
        mutually_exclusive=ONE_OF,
        supports_check_mode=True,
    )
    if module.check_mode and not find(module.params["bundle"], module.params["program"]):
        module.exit_json(
            changed=True, msg="The assistant is not on this host yet. It would be set up, and PyTorch by it."
        )
    target = module.params["target"]
    restored = ask(module, "recover", "--target", target).value
    ready = ask(module, *command_of(module), "--dry-run").value
    changed = "ready" not in ready
    packages = {one["name"]: one["version"] for one in ready["resolution"]["packages"]}
    result = {"plan": ready["plan"], "packages": packages, "restored": restored}
    if changed and not module.check_mode:
        made = ask(module, *command_of(module), "--yes").value
        result["environment"] = made["environment"] if module.params["bundle"] else made
    elif not changed:
        result["environment"] = ready["ready"]
    module.exit_json(changed=changed or bool(restored), **result)


def command_of(module):
    """Return the command that installs what is asked for; a bundle's start script installs where it gets none."""
    return ([] if module.params["bundle"] else ["install"]) + options(module, "target", *OPTIONS)


if __name__ == "__main__":
    main()
