#!/usr/bin/python
# Copyright: The torch-setup-assistant maintainers
# SPDX-License-Identifier: MIT OR GPL-3.0-or-later
# As you choose: MIT License (see LICENSE), or
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Finds out what a host is, as far as PyTorch is concerned."""

from __future__ import annotations

DOCUMENTATION = r"""
module: assistant_facts
short_description: Find out what a host is - its system, GPUs, drivers and Python
description:
  - Runs C(assistant detect) on the host and sets what it found as facts. Nothing is changed.
  - The facts are a machine as every command of the assistant reads it. Written one per line into a file, they are
    what C(assistant bundle make --machines) and C(assistant plan --machines) take.
version_added: 0.1.0
author:
  - The torch-setup-assistant maintainers (@torch-setup-assistant)
extends_documentation_fragment:
  - torch_setup.assistant.host
attributes:
  check_mode:
    support: full
    description: Looks as without it.
  diff_mode:
    support: none
    description: Nothing is changed.
"""

EXAMPLES = r"""
- name: What is this machine?
  torch_setup.assistant.assistant_facts:
    bundle: /var/lib/torch-setup/bundle

- name: Which graphics cards are there?
  ansible.builtin.debug:
    msg: "{{ ansible_facts.torch_setup_machine.gpus | map(attribute='name') | list }}"
"""

RETURN = r"""
ansible_facts:
  description: What is added to the facts of the host.
  returned: always
  type: dict
  contains:
    torch_setup_machine:
      description: The machine, as C(assistant detect --json) prints it. A key that is missing or null is not known.
      type: dict
      sample: {"os": "linux", "arch": "x86_64", "gpus": [{"vendor": "nvidia", "name": "NVIDIA GeForce RTX 4090"}]}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.torch_setup.assistant.plugins.module_utils.assistant import HOST_OPTIONS, ONE_OF, ask


def main():
    """Look, and set what was found as facts."""
    module = AnsibleModule(argument_spec=dict(HOST_OPTIONS), mutually_exclusive=ONE_OF, supports_check_mode=True)
    machine = ask(module, "detect").value
    module.exit_json(changed=False, ansible_facts={"torch_setup_machine": machine})


if __name__ == "__main__":
    main()
