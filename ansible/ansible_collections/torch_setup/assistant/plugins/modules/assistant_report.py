#!/usr/bin/python
# Copyright: The torch-setup-assistant maintainers
# SPDX-License-Identifier: MIT OR GPL-3.0-or-later
# As you choose: MIT License (see LICENSE), or
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Returns what is to be said about a host: facts, plan, verification, findings."""

from __future__ import annotations

DOCUMENTATION = r"""
module: assistant_report
short_description: Return what a host is, what it can run, and what is wrong with it
description:
  - Runs C(assistant fleet record) on the host - its facts, the best plan for them, the verification of an environment
    and what the assistant would change. Nothing is changed.
  - The record holds the name that is given here and no other; user names, paths and addresses are left out.
  - Written into a folder on the controller, one file for each host, the records are what C(assistant fleet report)
    makes its page of.
version_added: 0.1.0
author:
  - The torch-setup-assistant maintainers (@torch-setup-assistant)
extends_documentation_fragment:
  - torch_setup.assistant.host
options:
  name:
    description: The name that the host has in the record; by default the host's own.
    type: str
  target:
    description: The environment to verify; by default that of the host's last setup.
    type: path
  config:
    description: A file C(assistant.toml) on the host, exported from a setup, to compare the host with.
    type: path
attributes:
  check_mode:
    support: full
    description: Looks as without it.
  diff_mode:
    support: none
    description: Nothing is changed.
"""

EXAMPLES = r"""
- name: What is to be said about this host?
  torch_setup.assistant.assistant_report:
    bundle: /var/lib/torch-setup/bundle
    target: /opt/torch
    name: "{{ inventory_hostname }}"
  register: told

- name: Keep it where the page is made
  ansible.builtin.copy:
    content: "{{ told.record | to_json }}"
    dest: "reports/{{ inventory_hostname }}.json"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
record:
  description: The record, as C(assistant fleet record) writes it.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.torch_setup.assistant.plugins.module_utils.assistant import HOST_OPTIONS, ONE_OF, ask, options


def main():
    """Record, and return the record."""
    module = AnsibleModule(
        argument_spec={
            **HOST_OPTIONS,
            "name": {"type": "str"},
            "target": {"type": "path"},
            "config": {"type": "path"},
        },
        mutually_exclusive=ONE_OF,
        supports_check_mode=True,
    )
    given = options(module, "name", "target", "config")
    module.exit_json(changed=False, record=ask(module, "fleet", "record", "--to", "-", *given).value)


if __name__ == "__main__":
    main()
