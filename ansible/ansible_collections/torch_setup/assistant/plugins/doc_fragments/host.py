"""Options that every module shares."""

from __future__ import annotations


class ModuleDocFragment:
    """How the assistant is found and spoken to on a host."""

    DOCUMENTATION = r"""
options:
  bundle:
    description:
      - The folder on the host that holds a bundle of the assistant.
      - It may be a share that all hosts mount.
      - Its start script makes the assistant's own environment where there is none, without any network.
    type: path
  program:
    description:
      - The assistant's program on the host, where it is installed there anyway.
      - Give this or O(bundle); without either, C(assistant) is looked for on C(PATH).
    type: path
  lang:
    description:
      - The language of messages; by default that of the host.
    type: str
    choices: [en, zh_CN]
"""
