#!/usr/bin/python
# Copyright: The torch-setup-assistant maintainers
# SPDX-License-Identifier: MIT OR GPL-3.0-or-later
# As you choose: MIT License (see LICENSE), or
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Brings a host the part of a bundle that it needs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: assistant_bundle
short_description: Bring a host the part of a bundle that it needs
description:
  - Carries the files of a bundle from the controller to the host over Ansible's own connection - the assistant itself,
    uv, a Python where the bundle has one for the host's platform, and the lock and the wheels of the host's kind.
  - Each file is carried once. What is there already and has its hash stays, so that a second run carries nothing.
  - It goes in pieces of 32 MB. A host that is cut off keeps what has come, and the next run goes on from there.
  - Every file is checked by its SHA-256 before it takes its place. Nothing else in the folder is touched.
  - A bundle that lies on a share which the hosts mount need not be carried. Name its folder in the other modules.
version_added: 0.1.0
author:
  - The torch-setup-assistant maintainers (@torch-setup-assistant)
options:
  src:
    description: The folder on the controller that C(assistant bundle make) has written.
    type: path
    required: true
  dest:
    description: The folder on the host.
    type: path
    required: true
  kind:
    description:
      - The key of the kind whose files the host gets, as C(bundle.json) names it.
      - By default the kind that lists the host by its name in the inventory, else the one that the assistant on the
        host chooses, which is brought first.
      - An empty text brings the assistant alone, which is enough for assistant_facts.
    type: str
  _step:
    description: Between the action plugin and the module - what to do.
    type: str
    choices: [look, take, which]
    default: look
  _piece:
    description: Between the action plugin and the module - what was carried just now.
    type: path
  _parts:
    description: Between the action plugin and the module - the parts of files that are in it.
    type: list
    elements: dict
attributes:
  check_mode:
    support: full
    description: Says which files would be carried, and carries none.
  diff_mode:
    support: full
    description: Names each file that is new or differs, with its size.
"""

EXAMPLES = r"""
- name: Bring what this host needs, and nothing else
  torch_setup.assistant.assistant_bundle:
    src: /srv/bundle
    dest: /var/lib/torch-setup/bundle

- name: Say what would be carried of a certain kind
  torch_setup.assistant.assistant_bundle:
    src: /srv/bundle
    dest: /var/lib/torch-setup/bundle
    kind: linux-x86_64-cpu-torch2.15.0-py3.12
  check_mode: true
  diff: true
"""

RETURN = r"""
kind:
  description:
    - The key of the kind that the host gets.
    - It is empty where the assistant alone was asked for, and in check mode where the host is not named in the bundle
      and has no assistant yet to choose.
  returned: always
  type: str
carried:
  description: The paths of the files that were carried, or would be.
  returned: always
  type: list
  elements: str
bytes:
  description: The bytes that were carried, or would be.
  returned: always
  type: int
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.torch_setup.assistant.plugins.module_utils.assistant import ask
from ansible_collections.torch_setup.assistant.plugins.module_utils.carried import platform_name, take, there


def main():
    """Do a step for the action plugin of the same name: look at what is there, take a piece in, or choose the kind."""
    module = AnsibleModule(
        argument_spec={
            "src": {"type": "path", "required": True},
            "dest": {"type": "path", "required": True},
            "kind": {"type": "str"},
            "_step": {"type": "str", "choices": ["look", "take", "which"], "default": "look"},
            "_piece": {"type": "path"},
            "_parts": {"type": "list", "elements": "dict"},
        },
        supports_check_mode=True,
    )
    folder, step = module.params["dest"], module.params["_step"]
    try:
        if step == "take":
            module.exit_json(changed=True, done=take(folder, module.params["_piece"], module.params["_parts"]))
        if step == "which":
            module.exit_json(changed=False, key=ask(module, "bundle", "which", folder, bundle=folder).value["key"])
        whole, begun = there(folder)
        module.exit_json(changed=False, platform=platform_name(), whole=whole, begun=begun)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
