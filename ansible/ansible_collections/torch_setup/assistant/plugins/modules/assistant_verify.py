#!/usr/bin/python
# Copyright: The torch-setup-assistant maintainers
# SPDX-License-Identifier: MIT OR GPL-3.0-or-later
# As you choose: MIT License (see LICENSE), or
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks that an environment computes correctly on its device."""

from __future__ import annotations

DOCUMENTATION = r"""
module: assistant_verify
short_description: Check that an environment really computes on its device
description:
  - Lets torch compute in the environment's own Python, and compares the results with NumPy in double precision.
  - Fails where a check fails. Nothing is changed, in check mode as without it.
version_added: 0.1.0
author:
  - The torch-setup-assistant maintainers (@torch-setup-assistant)
extends_documentation_fragment:
  - torch_setup.assistant.host
options:
  target:
    description: The folder of the environment; by default that of the host's last setup.
    type: path
  device:
    description: The device to compute on, such as V(cpu) or V(cuda:1); by default that of the environment's plan.
    type: str
  full:
    description: Check every operation, small models and speed as well, which takes about a minute.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Computes as without it.
  diff_mode:
    support: none
    description: Nothing is changed.
"""

EXAMPLES = r"""
- name: Does it compute correctly?
  torch_setup.assistant.assistant_verify:
    bundle: /var/lib/torch-setup/bundle
    target: /opt/torch
"""

RETURN = r"""
report:
  description: Every check with its outcome, as C(assistant verify --json) prints it.
  returned: when the environment could be started
  type: dict
failing:
  description: The keys of the checks that failed.
  returned: when the environment could be started
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.torch_setup.assistant.plugins.module_utils.assistant import HOST_OPTIONS, ONE_OF, ask, options


def main():
    """Verify, and fail where a check has failed."""
    module = AnsibleModule(
        argument_spec={
            **HOST_OPTIONS,
            "target": {"type": "path"},
            "device": {"type": "str"},
            "full": {"type": "bool", "default": False},
        },
        mutually_exclusive=ONE_OF,
        supports_check_mode=True,
    )
    full = ["--full"] if module.params["full"] else []
    answer = ask(module, "verify", *options(module, "target", "device"), *full, may_fail=True)
    failing = [check["key"] for check in answer.value["checks"] if check["status"] == "failed"]
    result = {"changed": False, "report": answer.value, "failing": failing}
    if answer.code:
        module.fail_json(msg=answer.said, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
