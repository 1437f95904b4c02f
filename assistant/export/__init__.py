"""The sixth step: a setup as files to take along: configuration, variables, requirements, a report.

This is the room's face: other rooms import from here, never from the modules behind it.
"""

from assistant.export.config import Config, Drift, machine_drift, package_drift, plan_drift, read_config, report_drift
from assistant.export.first_steps import first_notebook, write_first_notebook
from assistant.export.setup import MARKER, Setup
from assistant.export.write import FORMATS, PURPOSES, export
