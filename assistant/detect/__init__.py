"""The first step: what machine is this? Probes ask the host, parsers read the answers, one `Machine` comes out."""

from assistant.detect.report import read_report
from assistant.detect.run import detect

__all__ = ["detect", "read_report"]
