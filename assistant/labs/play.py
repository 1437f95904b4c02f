"""A lab that is played in a folder: broken, looked at, diagnosed, judged; by a learner, a grader or a test."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from packaging.specifiers import SpecifierSet

from assistant.detect import detect
from assistant.diagnose import read_log
from assistant.host.extras import lacking
from assistant.host.files import read_plain
from assistant.host.live import LiveHost
from assistant.host.recording import ReplayHost
from assistant.i18n import _, say
from assistant.install import is_environment, look_at
from assistant.labs.definition import FILE_BYTES, Definition, LabText
from assistant.labs.scene import Outcome, Scene, package_sources
from assistant.machines import load
from assistant.model.errors import BadInput
from assistant.model.finding import Diagnosis
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.session.diagnosis import diagnosed

SYSTEMS: dict[str, Literal["windows", "macos"]] = {"win32": "windows", "darwin": "macos"}
MINORS = range(11, 15)  # from `requires-python` to the newest
TITLES = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}


class Play:
    """A lab in a folder; `torch` is a Python that has torch."""

    def __init__(
        self,
        definition: Definition,
        folder: Path,
        learner: str = "",
        *,
        torch: str = "",
    ) -> None:
        self.definition, self.learner = definition, learner
        self._program = definition.program
        self.scene = Scene(folder, definition.folder, torch=torch)
        self.scene.machine = definition.english.machine
        self.scene.pythons = definition.english.python
        self.scene.names = self._given("names")
        self._set_variables()

    def _set_variables(self) -> None:
        self.scene.variables = {**package_sources(), **self._given("variables")}

    def _given(self, name: str) -> Mapping[str, str]:
        function = getattr(self._program, name)
        return function(self.scene) if function else {}

    @property
    def text(self) -> LabText:
        """The lab's texts in the language of the moment."""
        return self.definition.text(self.learner)

    def start(self) -> None:
        """Make the broken state; raise `BadInput` where the lab cannot be played here."""
        check_system(self.text)
        self.scene.clear()
        self._set_variables()  # what an earlier start left in the folder no longer counts
        for program in self.definition.programs:
            self.scene.write(program.name, read_plain(program, FILE_BYTES, follow=True))
        self._program.breaks(self.scene)

    def symptom(self) -> Outcome:
        """Run what fails."""
        return self._program.symptom(self.scene)

    def fault(self) -> str:
        """Return what is still wrong; "" when the lab is solved."""
        self.scene.faults = self.text.faults
        return self._program.fault(self.scene) if self._program.fault else self.scene.fails(self.symptom())

    def causes(self) -> tuple[Diagnosis, ...]:
        """Diagnose what the symptom prints, with what is known of the lab's environment and machine."""
        return diagnosed(read_log(self.symptom().text), self._machine())

    def _machine(self) -> Machine:
        if self.text.machine:
            return detect(ReplayHost(load(self.text.machine))).machine
        system = SYSTEMS.get(sys.platform)
        known = Machine(os=system) if system else Machine(os="linux", wsl=False)
        environment = self.scene.folder / "env"
        if not is_environment(environment):
            return known
        site = look_at(environment, LiveHost())
        return replace(known, python=site.version, packages={one.name: one.version for one in site.distributions})


def needs_of(text: LabText) -> str:
    """Return where a lab can be played, where not everywhere, as a short text."""
    systems = _titles(text) if len(text.systems) < len(TITLES) else []
    return ", ".join([*systems, *filter(None, [_pythons(text.python)])])


def _titles(text: LabText) -> list[str]:
    return [TITLES[one] for one in text.systems]


def _pythons(wanted: str) -> str:
    """Return the Pythons that a lab takes, of those that the assistant runs on."""
    fit = [minor for minor in MINORS if f"3.{minor}" in SpecifierSet(wanted)]
    if len(fit) == len(MINORS):
        return ""
    return say("Python {first} to {last}", first=f"3.{fit[0]}", last=f"3.{fit[-1]}") if fit else f"Python {wanted}"


def check_system(text: LabText) -> None:
    """Raise `BadInput` on a system where a lab cannot be played, `WorkFailed` where the assistant lacks a package."""
    if SYSTEMS.get(sys.platform, "linux") not in text.systems:
        raise BadInput(
            _(
                "The lab “{title}” can be played on {systems} alone.",
                title=text.title,
                systems=", ".join(_titles(text)),
            ),
            hint=_("Choose another lab: `assistant labs list` shows where each can be played."),
        )
    for package in text.needs:
        if find_spec(package) is None:
            raise lacking(package, "onnx" if package == "onnx" else "lab")
