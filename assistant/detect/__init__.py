"""The first step: what machine is this? Probes ask the host, parsers read the answers, one `Machine` comes out."""

from assistant.detect.common import find_broken_kernels
from assistant.detect.overrides import Fact, check_fact, facts_to_set, override_facts
from assistant.detect.run import detect
from assistant.model.machine import Detection


def read_report(text: str) -> Detection:
    """Return one machine from all reports in a pasted text; raise `BadInput` if it says too little."""
    from assistant.detect.report import read_report as read  # noqa: PLC0415 - looking at this machine needs no parser

    return read(text)
