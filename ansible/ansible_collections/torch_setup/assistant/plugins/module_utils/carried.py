"""The part of a bundle that a host needs: what of it is there, and how it is taken in piece by piece."""

from __future__ import annotations

import hashlib
import os
import platform

INDEX = "bundle.json"
INCOMING = ".incoming"  # below the bundle's folder: what has not wholly come yet, by its hash
MACHINES = {"amd64": "x86_64"}
BLOCK = 1 << 20  # bytes read at once


def platform_name():
    """Return the name of this host's platform, as a bundle's folders have it: linux-x86_64, macos-arm64."""
    system = {"Darwin": "macos"}.get(platform.system(), platform.system().lower())
    machine = platform.machine().lower()
    return f"{system}-{MACHINES.get(machine, machine)}"


def digest(path):
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            found.update(block)
    return found.hexdigest()


def is_below(path):
    """Return whether a path, with slashes, stays below the folder that it is taken in."""
    parts = path.split("/")
    return not (path.startswith("/") or "\\" in path or ":" in path or {"", ".", ".."} & set(parts))


def there(folder):
    """Return the hash of each file below a folder by its path, and how much has come of each other file by its hash."""
    whole, begun = {}, {}
    for place, _folders, names in os.walk(folder):
        for name in names:
            full = os.path.join(place, name)
            path = os.path.relpath(full, folder).replace(os.sep, "/")
            if os.path.islink(full) or not os.path.isfile(full):
                continue
            if path.startswith(INCOMING + "/"):
                begun[name] = os.path.getsize(full)
            elif path.partition("/")[0] not in OTHERS:
                whole[path] = digest(full)
    return whole, begun


OTHERS = {"reports"}  # what machines write into a bundle's folder is none of its own


def take(folder, piece, parts):
    """Add a piece to the files that it holds parts of; put those in place that are whole; return their paths.

    Each part has `path`, `sha256`, `bytes` (of the whole file), `offset` (in the file), `length` and `mode`. Raises
    ValueError where a file is not what the bundle says, and OSError.
    """
    done = []
    with open(piece, "rb") as data:
        for part in parts:
            if not is_below(part["path"]):
                raise ValueError(f"{part['path']} would lie outside the bundle's folder.")
            begun = os.path.join(folder, INCOMING, part["sha256"])
            os.makedirs(os.path.dirname(begun), exist_ok=True)
            _append(begun, data, part["offset"], part["length"])
            if part["offset"] + part["length"] == part["bytes"]:
                _put_in_place(begun, os.path.join(folder, *part["path"].split("/")), part)
                done.append(part["path"])
    return done


def _append(begun, data, offset, length):
    with open(begun, "r+b" if os.path.exists(begun) else "w+b") as file:
        file.truncate(offset)
        file.seek(offset)
        left = length
        while left:
            block = data.read(min(left, BLOCK))
            if not block:
                raise ValueError("The piece ends early: the connection broke off.")
            file.write(block)
            left -= len(block)


def _put_in_place(begun, target, part):
    if digest(begun) != part["sha256"]:
        os.remove(begun)
        raise ValueError(
            f"{part['path']} is not the file that the bundle describes. Run `assistant bundle check` there."
        )
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.chmod(begun, part["mode"])
    with open(begun, "rb") as file:
        os.fsync(file.fileno())  # a host that loses its power must not find half a file under a whole one's name
    os.replace(begun, target)
