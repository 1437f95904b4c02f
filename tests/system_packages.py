"""Ask the system's package manager for what tests need: as root, or with a password-free sudo."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

LIMIT_SECONDS = 600.0
PACKAGE_MANAGERS = {
    "apt-get": ("apt-get install -y -o DPkg::Lock::Timeout=600 --no-install-recommends {packages}", "apt-get update"),
    "dnf": ("dnf install -y {packages}", ""),
    "pacman": ("pacman -Sy --noconfirm {packages}", ""),
    "zypper": ("zypper --non-interactive install {packages}", ""),
    "apk": ("apk add {packages}", ""),
    "brew": ("brew install --cask {packages}", ""),
}


def manager() -> str:
    """Name the package manager of this system, "" where it has none that is known."""
    return next((name for name in PACKAGE_MANAGERS if shutil.which(name)), "")


def install(packages: str | Mapping[str, str]) -> None:
    """Install packages, named alike by all package managers or by each in its own way, where that may be done."""
    name = manager()
    wanted = packages if isinstance(packages, str) else packages.get(name, "")
    if not (name and wanted):
        return
    command, first = PACKAGE_MANAGERS[name]
    rights = [] if name == "brew" or os.geteuid() == 0 else ["sudo", "-n"]
    if first:
        run([*rights, *first.split()], LIMIT_SECONDS)
    run([*rights, *command.format(packages=wanted).split()], LIMIT_SECONDS)


def run(command: list[str], seconds: float) -> bool:
    """Run a command without its output; tell whether it ended well and in time."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
