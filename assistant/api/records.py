"""The nouns: machines, plans, findings, events, and how records are read and written as JSON."""

from __future__ import annotations

from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning, Rejection, Request
from assistant.model.record import decoder, from_json, from_plain, to_json, to_plain
from assistant.model.report import PartDone, Progress, Step, format_duration
