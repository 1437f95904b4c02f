"""The sixth step: a setup as files to take along: configuration, variables, requirements, a report.

This is the room's face: other rooms import from here, never from the modules behind it.
"""

from assistant.export.config import (
    DIFFERS,
    Config,
    Drift,
    file_drift,
    machine_drift,
    package_drift,
    plan_drift,
    read_config,
    report_drift,
    same_hardware,
)
from assistant.export.editors import first_notebook, uses, write_first_notebook
from assistant.export.formats import FORMATS, PURPOSES
from assistant.export.report import stated_env_text
from assistant.export.setup import MARKER, Setup, clean
from assistant.export.write import export, texts
