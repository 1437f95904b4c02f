"""pip for a new environment: the wheel that its own Python brings along, else the newest of the user's sources.

Python's own wheel needs no network, and is the same file each time. It is no part of a plan or a lock: users update pip
as they please, and an environment with another pip is none that has changed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from packaging.utils import parse_wheel_filename

from assistant.host.lock import Lock
from assistant.host.process import stream
from assistant.i18n import _
from assistant.install.inspect_env import interpreter, package_folders
from assistant.install.installer import Installer
from assistant.install.packages import Package
from assistant.install.resolution import resolve
from assistant.install.wheels import fetch
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import replace

PIP = "pip"
# Where `ensurepip` finds pip's wheel (Lib/ensurepip/__init__.py); Debian's and Fedora's Python have it elsewhere, in
# WHEEL_PKG_DIR (https://docs.python.org/3/using/configure.html#cmdoption-with-wheel-pkg-dir).
_FIND = """
import glob, os, sysconfig
folders = os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")
print(*[wheel for folder in folders if folder for wheel in glob.glob(os.path.join(folder, "pip-*.whl"))], sep="\\n")
"""


def pip_for(environment: Path, plan: Plan, installer: Installer, lock: Lock) -> tuple[Package, Path] | None:
    """Return pip as a package with its file on this disk; None where an environment has it, or none can be had."""
    if any((folder / PIP).is_dir() for folder in package_folders(environment)):
        return None
    found: list[str] = []
    python = str(interpreter(environment))
    stream([python, "-I", "-B", "-c", _FIND], found.append, cancel=installer.cancel, lock=lock)
    wheel = next((Path(line) for line in found if line.endswith(".whl") and Path(line).is_file()), None)
    if wheel:
        version, digest = str(parse_wheel_filename(wheel.name)[1]), hashlib.sha256(wheel.read_bytes()).hexdigest()
        return Package(name=PIP, version=version, url=wheel.as_uri(), sha256=digest), wheel
    try:
        bare = replace(plan, requirements=(PIP,), index_url=None)
        package = next(one for one in resolve(bare, installer).packages if one.name == PIP)
        return package, fetch([package], installer)[PIP]
    except WorkFailed as error:
        text = _("This environment has no pip: its Python brings none, and none could be fetched. {reason}")
        installer.log(text.format(reason=error.message))
        return None
