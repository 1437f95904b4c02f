"""One panel per step: made once, then only told what changed."""

from __future__ import annotations

from assistant.model.event import Step
from assistant.wizard.panels.base import Panel
from assistant.wizard.panels.detect import DetectPanel
from assistant.wizard.panels.diagnose import DiagnosePanel
from assistant.wizard.panels.export import ExportPanel
from assistant.wizard.panels.install import InstallPanel
from assistant.wizard.panels.plan import PlanPanel
from assistant.wizard.panels.verify import VerifyPanel

__all__ = ["PANELS", "Panel"]

PANELS: dict[Step, type[Panel]] = {
    Step.DETECT: DetectPanel,
    Step.PLAN: PlanPanel,
    Step.INSTALL: InstallPanel,
    Step.VERIFY: VerifyPanel,
    Step.DIAGNOSE: DiagnosePanel,
    Step.EXPORT: ExportPanel,
}
for _step, _kind in PANELS.items():
    _kind.step = _step
