"""What an environment holds, as far as its folders tell, and how that differs from what it is to hold."""

from __future__ import annotations

import glob
import os
import re


def held(target):
    """Return the version of each package in an environment, read off the folders' names; {} where there is none."""
    places = [("lib", "python*", "site-packages"), ("Lib", "site-packages")]
    found = {}
    for place in places:
        for folder in glob.glob(os.path.join(glob.escape(target), *place, "*.dist-info")):
            name, _dash, version = os.path.basename(folder)[: -len(".dist-info")].partition("-")
            found[re.sub(r"[-_.]+", "-", name).lower()] = version
    return found


def listed(target, before, after):
    """Return a diff of packages for Ansible: a line for each, as pip writes them."""
    old, new = ("".join(f"{name}=={version}\n" for name, version in sorted(side.items())) for side in (before, after))
    return {"before": old, "after": new, "before_header": target, "after_header": target}
