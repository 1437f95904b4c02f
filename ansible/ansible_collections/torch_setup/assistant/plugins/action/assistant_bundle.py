# Copyright: The torch-setup-assistant maintainers
# SPDX-License-Identifier: MIT OR GPL-3.0-or-later
# As you choose: MIT License (see LICENSE), or
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Carries the part of a bundle that a host lacks, in pieces, over whatever connection Ansible has."""

from __future__ import annotations

import json
import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.torch_setup.assistant.plugins.module_utils.carried import INDEX, digest, is_below

MODULE = "torch_setup.assistant.assistant_bundle"
PIECE = 32 << 20  # chosen: bytes; a cut connection loses at most as much, and each costs one run of a module
LISTS = ("locks/", "assistant/")  # the files that name what else is needed


class ActionModule(ActionBase):
    """Asks the host what it has, and brings the rest."""

    TRANSFERS_FILES = True
    _supports_check_mode = True
    _VALID_ARGS = frozenset(("src", "dest", "kind", "machine"))

    def run(self, tmp=None, task_vars=None):
        """Carry what is missing; answer which files that were."""
        result = super().run(tmp, task_vars)
        del tmp
        args = dict(self._task.args)
        unknown = sorted(set(args) - self._VALID_ARGS)
        if unknown or not (args.get("src") and args.get("dest")):
            what = (
                f"There is no option {unknown[0]}."
                if unknown
                else "src and dest are needed: the folders of the bundle."
            )
            raise AnsibleActionFail(what)
        source = self._loader.path_dwim(os.path.expanduser(args["src"]))
        bundle = read_index(source)
        args.setdefault("machine", task_vars["inventory_hostname"])
        kind = kind_of(bundle, args.get("kind"), args["machine"])
        try:
            seen = self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars)
            if seen.get("failed") or "whole" not in seen:
                return {**result, **seen}
            files = needed(bundle, source, kind, seen["platform"])
            missing = [one for one in files if seen["whole"].get(one["path"]) != one["sha256"]]
            result.update(
                changed=bool(missing),
                kind=kind["key"],
                carried=[one["path"] for one in missing],
                bytes=sum(one["bytes"] for one in missing),
            )
            if self._task.diff and missing:
                result["diff"] = differences(missing, seen["whole"])
            if not self._task.check_mode:
                for piece in pieces(missing, seen["begun"]):
                    answer = self._carry(source, piece, args, task_vars)
                    if answer.get("failed"):
                        return {**result, **answer}
            return result
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)

    def _carry(self, source, parts, args, task_vars):
        data = b"".join(read_part(source, part) for part in parts)
        place = self._connection._shell.join_path(self._connection._shell.tmpdir, "piece")
        self._transfer_data(place, data)
        self._fixup_perms2((self._connection._shell.tmpdir, place))
        more = {"_piece": place, "_parts": parts}
        return self._execute_module(module_name=MODULE, module_args={**args, **more}, task_vars=task_vars)


def read_index(source):
    """Read a bundle's index; the index itself is one of the files to carry."""
    try:
        with open(os.path.join(source, INDEX), "rb") as file:
            bundle = json.loads(file.read())
    except (OSError, ValueError) as error:
        raise AnsibleActionFail(f"{source} is no bundle: {error}.") from error
    if bundle.get("schema") != 1 or not bundle.get("made"):
        raise AnsibleActionFail(f"{source} is not finished, or of another version. Run `assistant bundle make` again.")
    if strange := [one["path"] for one in bundle["files"] if not is_below(one["path"])]:
        raise AnsibleActionFail(f"{INDEX} names a file outside the bundle: {strange[0]}")
    own = os.path.join(source, INDEX)
    bundle["files"].append({"path": INDEX, "sha256": digest(own), "bytes": os.path.getsize(own)})
    return bundle


def kind_of(bundle, key, machine):
    """Return the kind with a key, or the one that is for a machine; a single kind is for every machine."""
    kinds = bundle["kinds"]
    found = [one for one in kinds if (one["key"] == key if key else machine in one["machines"])]
    if not found and not key and len(kinds) == 1:
        found = kinds
    if not found:
        keys = ", ".join(one["key"] for one in kinds)
        raise AnsibleActionFail(
            f"The bundle has nothing for {key or machine}. Make it for this machine, too, or name one of its kinds "
            f"with `kind`: {keys}."
        )
    return found[0]


def needed(bundle, source, kind, platform):
    """Return the files that a host of a kind and a platform needs.

    What lies in `wheels/` belongs to it where a lock of its own names the file or its hash.
    """
    lock = kind["lock"].rpartition("/")[0] + "/"
    own = (f"assistant/{platform}-", "assistant/says/", f"uv/{platform}/", f"python/{platform}/", lock)
    base = [one for one in bundle["files"] if "/" not in one["path"] or one["path"].startswith(own)]
    names = "\n".join(read_text(source, one) for one in base if one["path"].startswith(LISTS))
    wheels = [one for one in bundle["files"] if one["path"].startswith("wheels/") and is_named(one, names)]
    return sorted(
        base + wheels, key=lambda one: (one["path"] == INDEX, one["path"])
    )  # the index comes when all is there


def is_named(file, names):
    """Return whether lists name a file, or its hash."""
    return file["sha256"] in names or file["path"].rpartition("/")[2] in names


def read_text(source, file):
    """Read a list of a bundle."""
    with open(os.path.join(source, *file["path"].split("/")), encoding="utf-8") as text:
        return text.read()


def pieces(files, begun):
    """Cut files into pieces of at most PIECE bytes, each a list of parts; what has come of a file is left out."""
    piece, room = [], PIECE
    for one in files:
        offset = begun.get(one["sha256"], 0)
        offset = offset if offset < one["bytes"] else 0
        while True:
            length = min(one["bytes"] - offset, room)
            piece.append({**one, "offset": offset, "length": length})
            offset, room = offset + length, room - length
            if not room:
                yield piece
                piece, room = [], PIECE
            if offset == one["bytes"]:
                break
    if piece:
        yield piece


def read_part(source, part):
    """Read a part of a file, and note in the part how the file may be used."""
    path = os.path.join(source, *part["path"].split("/"))
    part["mode"] = 0o755 if os.access(path, os.X_OK) else 0o644
    with open(path, "rb") as file:
        file.seek(part["offset"])
        data = file.read(part["length"])
    if len(data) != part["length"]:
        raise AnsibleActionFail(f"{path} is shorter than the bundle says: run `assistant bundle check`.")
    return data


def differences(missing, whole):
    """Return a diff that names each file with its size; what is there under the same name is told, too."""
    old = "".join(f"{one['path']}  other content\n" for one in missing if one["path"] in whole)
    new = "".join(f"{one['path']}  {one['bytes']} bytes\n" for one in missing)
    return {"before": old, "after": new, "before_header": "on the host", "after_header": "in the bundle"}
