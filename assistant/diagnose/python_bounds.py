"""Judges the Pythons that an installer refuses by a bound that it names, not for want of a wheel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assistant.catalog import number
from assistant.diagnose.attempts import attempt_of, tag_of
from assistant.diagnose.causes import Cause
from assistant.diagnose.installer_output import Failure, narrower_pythons, refused_pythons
from assistant.diagnose.log import Log
from assistant.diagnose.offers import newest_python
from assistant.model.machine import Machine

UNNAMED = "the package"


def bound_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield the cause of the first bound in a log that the Python fails, or that the project states too widely."""
    for version, bounds, at in refused_pythons(log.text):
        tag = f"3{version.split('.')[1]}" if version.startswith("3.") else ""
        depends = re.search(r"and ([a-z0-9][\w.-]{0,60}?)(?:==[\w.+]{1,30})? depends", log.text[at : at + 300])
        failure = Failure(depends[1] if depends else UNNAMED, at)
        attempt = attempt_of(failure, log, machine)._replace(python=tag or tag_of(machine))
        bound = re.search(r"<=? ?(\d\.\d{1,2})", bounds)
        high = bool(bound) and number(version) >= number(bound[1] if bound else "")
        key = "python-too-new-for-wheel" if high else "python-unsupported-for-wheel"
        yield attempt.cause(key, best_python=newest_within(bounds) or newest_python(attempt.here))
        return
    for package, bounds, at in narrower_pythons(log.text):
        attempt = attempt_of(Failure(package, at), log, machine)
        yield attempt.cause("python-unsupported-for-wheel", bounds=bounds, best_python="")
        return


def ignored_bounds(release: str, text: str) -> str:
    """Return the Pythons of a release that pip ignored for its own Python; "" where it ignored none.

    ERROR: Ignored the following versions that require a different python version: 1.26.0 Requires-Python <3.13,>=3.9
    """
    found = (
        re.search(rf"(?<![\w.]){re.escape(release)} requires-python ([<>=!~][^;\n]{{1,60}})", text) if release else None
    )
    return found[1] if found else ""


def newest_within(bounds: str) -> str:
    """Return the newest Python below an upper bound, such as 3.12 for `>=3.9,<3.13`; "" where there is none."""
    found = re.search(r"<(=?) ?3\.(\d{1,2})", bounds)
    return f"3.{int(found[2]) - (not found[1])}" if found else ""
