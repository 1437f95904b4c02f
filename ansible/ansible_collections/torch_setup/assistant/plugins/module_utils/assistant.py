"""Runs the assistant that lies on a host, and reads what it answers."""

from __future__ import annotations

import json
import os
import shutil

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


def find(bundle, program):
    """Return the words that start the assistant from a bundle, by a program, or as PATH has it; [] where it is not."""
    if bundle:
        script = os.path.join(bundle, START)
        return ["sh", script] if os.path.isfile(script) else []
    found = program or shutil.which("assistant")
    return [found] if found and os.access(found, os.X_OK) else []


def options(module, *names):
    """Return the words for those of some parameters that were given."""
    words = []
    for name in names:
        value = module.params[name]
        for one in value if isinstance(value, list) else [value] if value else []:
            words += [WORDS.get(name, "--" + name.replace("_", "-")), one]
    return words


def ask(module, *words, **more):
    """Run a command of the assistant with `--json` and return its answer.

    `may_fail` lets the exit code 1 pass: a check that says no. Fails the module with the assistant's own sentence,
    which names the next step.
    """
    bundle = module.params["bundle"]
    start = find(bundle, module.params["program"])
    if not start:
        where = os.path.join(bundle, START) if bundle else module.params["program"] or "assistant"
        module.fail_json(
            msg=f"{where} is not on this host. Install the assistant there and name its program (program), or bring a "
            "bundle and name its folder (bundle)."
        )
    argv = [*start, *words, "--json"]
    lang = module.params["lang"]
    code, out, err = module.run_command(argv, encoding="utf-8", environ_update={"LANGUAGE": lang} if lang else {})
    answer = Answer(code, out, err)
    if code not in ((0, 1) if more.get("may_fail") else (0,)) or answer.value is None:
        said = answer.said or "The assistant answered nothing that can be read."
        module.fail_json(msg=said, rc=code, cmd=argv, stdout=out)
    return answer
