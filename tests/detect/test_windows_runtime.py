"""The Visual C++ runtime is missing only where neither Windows' list of programs nor a folder has it."""

from __future__ import annotations

import pytest

from assistant.detect import detect
from assistant.host.base import Answer, Host, ReplayHost
from assistant.machines import load
from assistant.model.machine import Detection


class With(Host):
    """The recorded Windows without the runtime, and one library that it has all the same."""

    replayed = True

    def __init__(self, library: str) -> None:
        self.recorded, self.library = ReplayHost(load("windows10-32bit-python-no-vcruntime")), library

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Answer as recorded, but for the library."""
        if (kind, *arguments) == ("file_version", self.library):
            return Answer(text="14.44.35211.0")
        return self.recorded.ask(kind, *arguments)


def missing(found: Detection) -> bool:
    """Return whether the runtime is said to be missing."""
    return any(finding.key == "vc-runtime-missing" for finding in found.findings)


def test_a_runtime_that_is_nowhere_is_missing():
    """Neither the registry nor a folder has it."""
    assert missing(detect(With("")))


@pytest.mark.parametrize("library", [r"%SystemRoot%\System32\msvcp140.dll", r"C:\Python312\msvcp140.dll"])
def test_a_library_that_is_there_counts(library):
    """Another program has brought it, or Python's distribution, as conda does."""
    assert not missing(detect(With(library)))
