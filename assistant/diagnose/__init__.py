"""From an error to its cause and a tested remedy: rules as data, matched against a log and the facts of a machine."""

from __future__ import annotations

from assistant.diagnose.engine import Match, as_remedy, diagnose, matches, merged, question, remedies_for
from assistant.diagnose.health import check_packages, check_up, variables
from assistant.diagnose.interpreters import UV_OPTIONS, Interpreter, interpreter_of, near, placed
from assistant.diagnose.kits import supposed_cuda
from assistant.diagnose.launch import launched, relaunched
from assistant.diagnose.log import Log, read_log
from assistant.diagnose.rules import PlanRequest, Rule, RuleRemedy, load_rules
from assistant.diagnose.symptoms import symptoms

__all__ = [
    "UV_OPTIONS",
    "Interpreter",
    "Log",
    "Match",
    "PlanRequest",
    "Rule",
    "RuleRemedy",
    "as_remedy",
    "check_packages",
    "check_up",
    "diagnose",
    "interpreter_of",
    "launched",
    "load_rules",
    "matches",
    "merged",
    "near",
    "placed",
    "question",
    "read_log",
    "relaunched",
    "remedies_for",
    "supposed_cuda",
    "symptoms",
    "variables",
]
