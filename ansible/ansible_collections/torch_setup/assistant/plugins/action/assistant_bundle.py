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


class ActionModule(ActionBase):
    """Asks the host what it has, and brings the rest."""

    TRANSFERS_FILES = True
    _supports_check_mode = True
    _VALID_ARGS = frozenset(("src", "dest", "kind"))

    def run(self, tmp=None, task_vars=None):
        """Carry what is missing; answer which files that were."""
        result = super().run(tmp, task_vars)
        del tmp
        args = self._task.args
        if unknown := sorted(set(args) - self._VALID_ARGS):
            raise AnsibleActionFail(f"There is no option {unknown[0]}.")
        if not (args.get("src") and args.get("dest")):
            raise AnsibleActionFail("src and dest are needed: the folders of the bundle here and on the host.")
        source = self._loader.path_dwim(os.path.expanduser(args["src"]))
        bundle = read_index(source)
        try:
            return {**result, **self._bring(source, bundle, task_vars)}
        except Refused as error:
            return {**result, **error.answer}
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)

    def _bring(self, source, bundle, task_vars):
        seen = self._ask(task_vars, _step="look")
        carried = self._carry(source, bundle["platforms"].get(seen["platform"]) or (), bundle, seen, task_vars)
        key = self._task.args.get("kind", named(bundle, task_vars["inventory_hostname"]))
        if key is None and not (self._task.check_mode and carried):  # what is not there yet cannot be asked
            key = self._ask(task_vars, _step="which")["key"]
        if key:
            kind = kind_of(bundle, key, seen["platform"])
            carried += self._carry(
                source, [one for one in kind["files"] if one not in carried], bundle, seen, task_vars
            )
        sizes = {path: bundle["sizes"][path] for path in carried}
        answer = {"changed": bool(carried), "kind": key or "", "carried": carried, "bytes": sum(sizes.values())}
        return {**answer, "diff": differences(sizes)} if self._task.diff and carried else answer

    def _carry(self, source, paths, bundle, seen, task_vars):
        """Carry those of some files that the host lacks, with the bundle's index; return their paths."""
        if not paths:
            raise Refused({"failed": True, "msg": f"The bundle has nothing for {seen['platform']}."})
        wanted = {path: bundle["hashes"][path] for path in (*paths, INDEX)}
        missing = [path for path, digest in wanted.items() if seen["whole"].get(path) != digest]
        files = [{"path": path, "sha256": wanted[path], "bytes": bundle["sizes"][path]} for path in missing]
        for parts in () if self._task.check_mode else pieces(files, seen["begun"]):
            place = self._connection._shell.join_path(self._connection._shell.tmpdir, "piece")
            self._transfer_data(place, b"".join(read_part(source, part) for part in parts))
            self._fixup_perms2((self._connection._shell.tmpdir, place))
            self._ask(task_vars, _step="take", _piece=place, _parts=parts)
        seen["whole"].update({path: wanted[path] for path in missing})
        return missing

    def _ask(self, task_vars, **more):
        args = {**self._task.args, **more}
        answer = self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars)
        if answer.get("failed") or answer.get("unreachable"):
            raise Refused(answer)
        return answer


class Refused(Exception):
    """The host said no; `answer` is what the module returned."""

    def __init__(self, answer):
        super().__init__(answer.get("msg"))
        self.answer = answer


def read_index(source):
    """Read a bundle's index, with the hash and the size of each file by its path; the index is a file like others."""
    place = os.path.join(source, INDEX)
    try:
        with open(place, "rb") as file:
            bundle = json.loads(file.read())
        if bundle["schema"] != 1 or not bundle["made"]:
            raise AnsibleActionFail(f"{source} is not finished, or too new. Run `assistant bundle make` again.")
        files = [*bundle["files"], {"path": INDEX, "sha256": digest(place), "bytes": os.path.getsize(place)}]
        bundle["hashes"] = {one["path"]: one["sha256"] for one in files}
        bundle["sizes"] = {one["path"]: one["bytes"] for one in files}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise AnsibleActionFail(f"{source} is no bundle: {error}.") from error
    if strange := [path for path in bundle["hashes"] if not is_below(path)]:
        raise AnsibleActionFail(f"{INDEX} names a file outside the bundle: {strange[0]}")
    return bundle


def named(bundle, machine):
    """Return the key of the kind that lists a machine, None for none."""
    return next((kind["key"] for kind in bundle["kinds"] if machine in kind["machines"]), None)


def kind_of(bundle, key, platform):
    """Return the kind with a key, which must be for a platform."""
    kinds = {kind["key"]: kind for kind in bundle["kinds"] if kind["platform"] == platform}
    if key not in kinds:
        there = ", ".join(kinds) or "none"
        raise Refused({"failed": True, "msg": f"The bundle has no kind {key} for {platform}. It has: {there}."})
    return kinds[key]


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
        raise AnsibleActionFail(f"{path} is shorter than the bundle says. Run `assistant bundle check`.")
    return data


def differences(sizes):
    """Return a diff that names each file with its size."""
    new = "".join(f"{path}  {size} bytes\n" for path, size in sizes.items())
    return {"before": "", "after": new, "before_header": "on the host", "after_header": "from the bundle"}
