"""Runs the assistant that lies on a host, and reads what it answers."""

from __future__ import annotations

import json
import os

HOST_OPTIONS = {
    "bundle": {"type": "path"},
    "program": {"type": "path"},
    "lang": {"type": "str", "choices": ["en", "zh_CN"]},
}
ONE_OF = [("bundle", "program")]  # `mutually_exclusive` of each module
START = "start.sh"


# Options of the assistant that are called otherwise, or given once for each value.
WORDS = {"pins": "--pin", "purpose": "--for"}


class Answer:
    """What a command answered: its exit code, what it printed as JSON (None where that is none), and its sentences."""

    def __init__(self, code, printed, said):
        self.code, self.said = code, said.strip()
        try:
            self.value = json.loads(printed)
        except ValueError:
            self.value = None


def command(module):
    """Return the words that start the assistant; fail where it is not on this host."""
    bundle, program = module.params["bundle"], module.params["program"]
    if bundle:
        script = os.path.join(bundle, START)
        words = ["sh", script] if os.path.isfile(script) else None
        missing = f"{script} is not there. Bring the bundle to this host first, with assistant_bundle or by a share."
    else:
        found = program or module.get_bin_path("assistant")
        words = [found] if found and os.access(found, os.X_OK) else None
        missing = "The assistant is not on this host: name the bundle's folder (bundle) or its program (program)."
    if words is None:
        module.fail_json(msg=missing)
    return words


def is_there(module):
    """Return whether a bundle's start script or the assistant's program is on this host."""
    bundle, program = module.params["bundle"], module.params["program"]
    if bundle:
        return os.path.isfile(os.path.join(bundle, START))
    return bool(program and os.access(program, os.X_OK)) or bool(module.get_bin_path("assistant"))


def options(module, *names):
    """Return the words for those of some parameters that were given."""
    words = []
    for name in names:
        value = module.params[name]
        for one in value if isinstance(value, list) else [value] if value else []:
            words += [WORDS.get(name, "--" + name.replace("_", "-")), one]
    return words


def ask(module, *words, **more):
    """Run a command of the assistant with `--json`; `may_fail` lets the exit code 1 pass (a check that says no).

    Fails the module with the assistant's own sentence, which names the next step.
    """
    argv = command(module) + list(words) + ["--json"]
    code, out, err = module.run_command(argv, encoding="utf-8", environ_update={"NO_COLOR": "1"})
    answer = Answer(code, out, err)
    passes = (0, 1) if more.get("may_fail") else (0,)
    if code not in passes or answer.value is None:
        module.fail_json(
            msg=answer.said or "The assistant answered nothing that can be read.", rc=code, cmd=argv, stdout=out
        )
    return answer
